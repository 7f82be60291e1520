//! The pool of worker slots: those that sessions, Rust transactions and loaders take for the time
//! of a statement or a block, and the queue of those that wait for one.
//!
//! There are far fewer slots than sessions. A slot that comes free goes to the thread that has
//! waited longest.

use std::collections::VecDeque;

use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::time;
use kiln_procedure::Interrupt;
use kiln_storage::error::Result;

use super::inner::EngineInner;
use super::slot_user::SlotUser;
use super::worker_slot::WorkerSlot;
use crate::errors;
use crate::wait::wait_unless;

/// The slots. Invariant: `used` counts the slots that were taken and not given back, a slot that is
/// granted to a waiter included; a waiter waits only while all are used.
pub(crate) struct SlotPool {
    pool: Mutex<Pool>,
    /// Slots that may be used at a time.
    limit: usize,
    /// Nanoseconds that a thread waits for a slot at most.
    wait_ns: u64,
}

#[derive(Default)]
struct Pool {
    used: usize,
    /// Worker slots that wait for the next use, and since when in nanoseconds.
    idle: Vec<(Box<WorkerSlot>, u64)>,
    /// The longest waiting first.
    waiters: VecDeque<Arc<Waiter>>,
    closed: bool,
}

/// A thread that waits for a slot.
#[derive(Default)]
struct Waiter {
    grant: Mutex<Option<Grant>>,
    granted: Condvar,
}

/// What ends a wait.
enum Grant {
    /// A slot, with the worker of the one that was used last if that can be used again.
    Slot(Option<Box<WorkerSlot>>),
    /// No slot any more.
    Closed,
}

impl Waiter {
    fn end(&self, grant: Grant) {
        *lock(&self.grant) = Some(grant);
        self.granted.notify_one();
    }
}

/// A worker slot in use; it goes back to the slots when this is dropped.
pub(crate) struct PooledSlot {
    inner: Arc<EngineInner>,
    /// There until this is dropped. Boxed, so that a session without a block stays small.
    worker_slot: Option<Box<WorkerSlot>>,
}

impl std::ops::Deref for PooledSlot {
    type Target = WorkerSlot;

    fn deref(&self) -> &WorkerSlot {
        self.worker_slot.as_deref().expect("there until the drop")
    }
}

impl std::ops::DerefMut for PooledSlot {
    fn deref_mut(&mut self) -> &mut WorkerSlot {
        self.worker_slot
            .as_deref_mut()
            .expect("there until the drop")
    }
}

impl Drop for PooledSlot {
    fn drop(&mut self) {
        let worker_slot = self.worker_slot.take();
        let (usable, broken) = match worker_slot {
            Some(worker_slot) if worker_slot.is_at_rest() => (Some(worker_slot), None),
            worker_slot => (None, worker_slot),
        };
        // A worker slot frees its number before another one is made in its place.
        drop(broken);
        self.inner.slots.give_back(usable);
    }
}

impl SlotPool {
    /// `limit` slots, for each of which a thread waits for at most `wait_ns` nanoseconds.
    pub fn new(limit: usize, wait_ns: u64) -> SlotPool {
        SlotPool {
            pool: Mutex::default(),
            limit,
            wait_ns,
        }
    }

    /// Takes a slot for `user`; waits for one until `deadline_ns` or the limit of the wait, or
    /// until `interrupt` asks for the end.
    ///
    /// # Errors
    /// 53300 when no slot came free in time, 57P01 when the database is closed.
    pub fn take(
        &self,
        inner: &Arc<EngineInner>,
        user: SlotUser,
        deadline_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Result<PooledSlot> {
        let mut pool = lock(&self.pool);
        if pool.closed {
            return Err(errors::closing());
        }
        let known = if pool.used < self.limit {
            pool.used += 1;
            pool.idle.pop().map(|(worker_slot, _)| worker_slot)
        } else {
            let waiter = Arc::new(Waiter::default());
            pool.waiters.push_back(waiter.clone());
            drop(pool);
            self.wait(inner, &waiter, deadline_ns, interrupt)?
        };
        // Outside the mutex: making a worker takes a moment.
        let worker_slot = known.or_else(|| WorkerSlot::new(inner, user).map(Box::new));
        match worker_slot {
            Some(mut worker_slot) => {
                worker_slot.set_user(user);
                Ok(PooledSlot {
                    inner: inner.clone(),
                    worker_slot: Some(worker_slot),
                })
            }
            // Drivers have taken what was left for slots.
            None => {
                self.give_back(None);
                Err(errors::no_session_slot(
                    self.limit,
                    inner.longest_open_block(),
                ))
            }
        }
    }

    fn wait(
        &self,
        inner: &EngineInner,
        waiter: &Arc<Waiter>,
        deadline_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Option<Box<WorkerSlot>>> {
        let limit = time::now_ns().saturating_add(self.wait_ns);
        let deadline = deadline_ns.map_or(limit, |deadline| deadline.min(limit));
        let mut grant = lock(&waiter.grant);
        loop {
            match grant.take() {
                Some(Grant::Slot(worker_slot)) => return Ok(worker_slot),
                Some(Grant::Closed) => return Err(errors::closing()),
                None => {}
            }
            match wait_unless(&waiter.granted, grant, Some(deadline), interrupt) {
                Some(waited) => grant = waited,
                None => break,
            }
        }
        // The pool's mutex comes before the waiter's.
        let mut pool = lock(&self.pool);
        let position = pool
            .waiters
            .iter()
            .position(|other| Arc::ptr_eq(other, waiter));
        match position {
            Some(position) => {
                pool.waiters.remove(position);
                drop(pool);
                Err(match deadline_ns.is_some_and(|asked| asked <= limit) {
                    true => errors::expired(),
                    false => errors::no_session_slot(self.limit, inner.longest_open_block()),
                })
            }
            // It was granted in the last moment.
            None => match lock(&waiter.grant).take() {
                Some(Grant::Slot(worker_slot)) => Ok(worker_slot),
                _ => Err(errors::closing()),
            },
        }
    }

    /// Gives a slot to the thread that has waited longest, or back to the pool.
    fn give_back(&self, worker_slot: Option<Box<WorkerSlot>>) {
        let mut pool = lock(&self.pool);
        if let Some(waiter) = pool.waiters.pop_front() {
            // Under the pool's mutex: a waiter that is not in the queue has its grant.
            waiter.end(Grant::Slot(worker_slot));
            return;
        }
        pool.used -= 1;
        match worker_slot {
            Some(worker_slot) if !pool.closed => pool.idle.push((worker_slot, time::now_ns())),
            worker_slot => {
                // Outside the mutex: ending a worker takes a moment.
                drop(pool);
                drop(worker_slot);
            }
        }
    }

    /// How many slots are in use, and how many threads wait for one.
    pub fn usage(&self) -> (usize, usize) {
        let pool = lock(&self.pool);
        (pool.used, pool.waiters.len())
    }

    /// Drops the worker slots that were not used since `unused_since_ns`.
    pub fn drop_idle(&self, unused_since_ns: u64) {
        let mut old = Vec::new();
        {
            let mut pool = lock(&self.pool);
            let mut at = 0;
            while at < pool.idle.len() {
                if pool.idle[at].1 < unused_since_ns {
                    old.push(pool.idle.swap_remove(at));
                } else {
                    at += 1;
                }
            }
        }
        drop(old);
    }

    /// Gives out no more slots, and ends all waits.
    pub fn close(&self) {
        // Idle worker slots refer to the shared state, so they would keep it alive.
        let (idle, waiters) = {
            let mut pool = lock(&self.pool);
            pool.closed = true;
            let waiters = std::mem::take(&mut pool.waiters);
            (std::mem::take(&mut pool.idle), waiters)
        };
        drop(idle);
        waiters.iter().for_each(|waiter| waiter.end(Grant::Closed));
    }
}
