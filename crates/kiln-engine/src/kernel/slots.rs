//! Worker slots: the seats that sessions, Rust transactions and loaders take for the time of a
//! statement or a block, and the queue of those that wait for one.
//!
//! There are far fewer slots than sessions. A slot that comes free goes to the thread that has
//! waited longest.

use std::collections::VecDeque;

use kiln_platform::sync::{Arc, Condvar, Mutex, lock};
use kiln_platform::time;
use kiln_procedure::Interrupt;
use kiln_storage::error::Result;

use super::seat::Seat;
use super::seat_user::SeatUser;
use super::shared::Shared;
use crate::errors;
use crate::wait::wait_unless;

/// The slots. Invariant: `used` counts the slots that were taken and not given back, a slot that is
/// granted to a waiter included; a waiter waits only while all are used.
pub(crate) struct Slots {
    pool: Mutex<Pool>,
    /// Slots that may be used at a time.
    limit: usize,
    /// Nanoseconds that a thread waits for a slot at most.
    wait_ns: u64,
}

#[derive(Default)]
struct Pool {
    used: usize,
    /// Seats that wait for the next use, and since when in nanoseconds.
    idle: Vec<(Box<Seat>, u64)>,
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
    /// A slot, with the seat that was used last if it can be used again.
    Slot(Option<Box<Seat>>),
    /// No slot any more.
    Closed,
}

impl Waiter {
    fn end(&self, grant: Grant) {
        *lock(&self.grant) = Some(grant);
        self.granted.notify_one();
    }
}

/// A seat in use; it goes back to the slots when this is dropped.
pub(crate) struct PooledSeat {
    inner: Arc<Shared>,
    /// There until this is dropped. Boxed, so that a session without a block stays small.
    seat: Option<Box<Seat>>,
}

impl std::ops::Deref for PooledSeat {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        self.seat.as_deref().expect("there until the drop")
    }
}

impl std::ops::DerefMut for PooledSeat {
    fn deref_mut(&mut self) -> &mut Seat {
        self.seat.as_deref_mut().expect("there until the drop")
    }
}

impl Drop for PooledSeat {
    fn drop(&mut self) {
        let seat = self.seat.take();
        let (usable, broken) = match seat {
            Some(seat) if seat.is_at_rest() => (Some(seat), None),
            seat => (None, seat),
        };
        // A seat frees its number before another one is made in its place.
        drop(broken);
        self.inner.slots.give_back(usable);
    }
}

impl Slots {
    /// `limit` slots, for each of which a thread waits for at most `wait_ns` nanoseconds.
    pub fn new(limit: usize, wait_ns: u64) -> Slots {
        Slots {
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
        inner: &Arc<Shared>,
        user: SeatUser,
        deadline_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Result<PooledSeat> {
        let mut pool = lock(&self.pool);
        if pool.closed {
            return Err(errors::closing());
        }
        let known = if pool.used < self.limit {
            pool.used += 1;
            pool.idle.pop().map(|(seat, _)| seat)
        } else {
            let waiter = Arc::new(Waiter::default());
            pool.waiters.push_back(waiter.clone());
            drop(pool);
            self.wait(inner, &waiter, deadline_ns, interrupt)?
        };
        // Outside the mutex: making a worker takes a moment.
        let seat = known.or_else(|| Seat::new(inner, user).map(Box::new));
        match seat {
            Some(mut seat) => {
                seat.set_user(user);
                Ok(PooledSeat {
                    inner: inner.clone(),
                    seat: Some(seat),
                })
            }
            // Drivers have taken what was left for slots.
            None => {
                self.give_back(None);
                Err(errors::no_slot(self.limit, inner.longest_open_block()))
            }
        }
    }

    fn wait(
        &self,
        inner: &Shared,
        waiter: &Arc<Waiter>,
        deadline_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Option<Box<Seat>>> {
        let limit = time::now_ns().saturating_add(self.wait_ns);
        let deadline = deadline_ns.map_or(limit, |deadline| deadline.min(limit));
        let mut grant = lock(&waiter.grant);
        loop {
            match grant.take() {
                Some(Grant::Slot(seat)) => return Ok(seat),
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
                    false => errors::no_slot(self.limit, inner.longest_open_block()),
                })
            }
            // It was granted in the last moment.
            None => match lock(&waiter.grant).take() {
                Some(Grant::Slot(seat)) => Ok(seat),
                _ => Err(errors::closing()),
            },
        }
    }

    /// Gives a slot to the thread that has waited longest, or back to the pool.
    fn give_back(&self, seat: Option<Box<Seat>>) {
        let mut pool = lock(&self.pool);
        if let Some(waiter) = pool.waiters.pop_front() {
            // Under the pool's mutex: a waiter that is not in the queue has its grant.
            waiter.end(Grant::Slot(seat));
            return;
        }
        pool.used -= 1;
        match seat {
            Some(seat) if !pool.closed => pool.idle.push((seat, time::now_ns())),
            seat => {
                // Outside the mutex: ending a worker takes a moment.
                drop(pool);
                drop(seat);
            }
        }
    }

    /// How many slots are in use, and how many threads wait for one.
    pub fn usage(&self) -> (usize, usize) {
        let pool = lock(&self.pool);
        (pool.used, pool.waiters.len())
    }

    /// Drops the seats that were not used since `unused_since_ns`.
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
        // Idle seats refer to the shared state, so they would keep it alive.
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
