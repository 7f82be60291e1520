//! How a worker waits for its lock, and how it is woken.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::thread::{self, Thread};
use kiln_platform::{spin, time};
use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;
use kiln_storage::table::WORKERS_MAX;

use super::QueuedLocks;
use super::deadlock::DeadlockPolicy;
use super::placement::Placement;
use super::request::{CHANGED, GRANTED, PARKED, RequestRef, WAITING};
use crate::shared::core_slots::{CoreSlots, WAIT_IN_CORE_SLOT_NS};
use crate::shared::workers::WorkerSet;

/// The longest wait for one lock, in nanoseconds: half a second. Where others want the worker's
/// core slot it is `WAIT_IN_CORE_SLOT_NS`.
pub const WAIT_MAX_NS: u64 = 500_000_000;

/// Rounds spent spinning, about two microseconds: a holder that runs is often done by then.
const SPINS: u32 = 64;
/// Rounds after those spent giving the core to others; if there are none, about half a millisecond.
/// As workers share core slots there are seldom more that wait than cores. Who sleeps is slow to
/// come, and slow to hand on whom it waits for: on 80 virtual cores and 64 hot records, sleeping
/// after 64 rounds, digests found no deadlock within five milliseconds.
const YIELDS: u32 = 1_000;
/// Times that a worker comes for a lock which another one was faster to take; then it insists.
const MISSES_MAX: u32 = 5;
/// How long it keeps away after the first time that it was too late, in spins; it doubles each
/// time.
const PAUSE_SPINS: u64 = 8;
/// A worker that sleeps looks around after so long, though no other one has woken it.
const SLEEP_NS: [u64; 5] = [50_000, 100_000, 200_000, 400_000, 800_000];

/// The threads of the workers that sleep, and the core slots that they keep meanwhile; clones are
/// the same.
#[derive(Clone)]
pub struct Alarms {
    threads: Arc<[Mutex<Option<Thread>>]>,
    core_slots: CoreSlots,
}

impl Alarms {
    /// For workers that share these core slots.
    pub fn new(core_slots: CoreSlots) -> Alarms {
        Alarms {
            threads: (0..WORKERS_MAX).map(|_| Mutex::new(None)).collect(),
            core_slots,
        }
    }

    /// Wakes workers that have been told something while they slept.
    #[cold]
    pub(super) fn wake(&self, sleepers: WorkerSet) {
        for worker in sleepers.iter() {
            if let Some(thread) = &*lock(&self.threads[worker]) {
                thread.unpark();
            }
        }
    }
}

/// What a worker finds that looks at the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// It has the lock.
    Granted,
    /// It is the next, and another worker has the lock.
    Missed,
    /// Others are the next.
    Behind,
}

impl<P: Placement, H: DeadlockPolicy> QueuedLocks<P, H> {
    /// See [`super::Locks::wait`].
    pub(super) fn wait_for(
        &mut self,
        record: RecordRef,
        request: RequestRef,
    ) -> Result<(), AbortCause> {
        if H::WATCHES {
            if !self.overtaken.is_empty() {
                self.own_up();
            }
            self.policy.block();
        }
        let result = self.spin_or_sleep(record, request);
        if H::WATCHES {
            self.policy.unblock();
        }
        if result.is_ok() {
            point("locks.granted");
        }
        result
    }

    fn spin_or_sleep(&mut self, record: RecordRef, request: RequestRef) -> Result<(), AbortCause> {
        let mut since_ns = None;
        // Rounds since the lock was missed last, and how often that was.
        let (mut idle, mut missed) = (0, 0);
        for look in 1.. {
            idle += 1;
            // Acquire pairs with the release in `Queue::tell`: what former holders did is visible.
            match request.state.load(Ordering::Acquire) {
                GRANTED => return Ok(()),
                CHANGED => {
                    if missed > 0 {
                        // The faster worker goes on meanwhile, with all it needs in its core's
                        // cache.
                        thread::pause(PAUSE_SPINS << missed.min(MISSES_MAX));
                    }
                    match self.look_ahead(record, request, missed >= MISSES_MAX) {
                        Look::Granted => return Ok(()),
                        Look::Missed if missed < MISSES_MAX => (idle, missed) = (0, missed + 1),
                        Look::Missed | Look::Behind => {}
                    }
                }
                _ => {}
            }
            if H::WATCHES && self.policy.is_deadlocked(look) {
                return self.give_up(record, request, H::REFUSED[1]);
            }
            if idle <= SPINS {
                spin::hint();
                continue;
            }
            let now = time::now_ns();
            let since = *since_ns.get_or_insert(now);
            let deadline = self.deadline_ns.unwrap_or(u64::MAX);
            let latest = deadline.min(since + WAIT_MAX_NS);
            if now >= latest {
                return self.give_up(record, request, AbortCause::LockTimeout);
            }
            if now - since >= WAIT_IN_CORE_SLOT_NS && self.keeps_others_out() {
                return self.give_up(record, request, AbortCause::GaveWay);
            }
            match idle - SPINS {
                ..=YIELDS => thread::yield_now(),
                slept => {
                    let longest = SLEEP_NS[((slept - YIELDS) as usize - 1).min(SLEEP_NS.len() - 1)];
                    self.sleep(request, longest.min(latest - now));
                }
            }
        }
        unreachable!("the wait ends before its rounds are counted out")
    }

    /// Whether others want the core slot in which it waits.
    #[cold]
    fn keeps_others_out(&self) -> bool {
        self.alarms.core_slots.is_awaited(self.pool.worker())
    }

    /// Sleeps until something is told, or for `nanoseconds`.
    fn sleep(&self, request: RequestRef, nanoseconds: u64) {
        // The thread may be another one than last time.
        *lock(&self.alarms.threads[self.pool.worker() as usize]) = Some(thread::current());
        // Release pairs with the acquire of the swap in `Queue::tell`, whose worker then looks for
        // the thread; a wake-up that comes before the sleep ends it at once.
        let parked =
            request
                .state
                .compare_exchange(WAITING, PARKED, Ordering::Release, Ordering::Relaxed);
        if parked.is_ok() {
            thread::park_for(nanoseconds);
            // Fails when something was told, which the next round sees.
            let _ = request.state.compare_exchange(
                PARKED,
                WAITING,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// Looks at the queue: takes the lock if it is there by now, else notes anew whom the request
    /// waits for. A request that `insists` is not overtaken any more.
    #[cold]
    pub(super) fn look_ahead(
        &mut self,
        record: RecordRef,
        request: RequestRef,
        insists: bool,
    ) -> Look {
        let policy = &mut self.policy;
        let overtakes = H::OVERTAKES && self.overtakes;
        let look = self.placement.latched(record, |latched| {
            let queue = &mut latched.0;
            if overtakes && request.state.load(Ordering::Relaxed) != GRANTED {
                queue.come(request);
            }
            if request.state.load(Ordering::Relaxed) == GRANTED {
                return Look::Granted;
            }
            request.state.store(WAITING, Ordering::Relaxed);
            request.insists.store(insists, Ordering::Relaxed);
            if H::WATCHES {
                policy.forget(&request);
                queue.each_predecessor(request, |ahead| policy.watch(&ahead));
            }
            match queue.is_next(request) {
                true => Look::Missed,
                false => Look::Behind,
            }
        });
        if look != Look::Granted && H::WATCHES {
            self.policy.block();
        }
        look
    }

    /// Tells those who were overtaken, before the worker waits: from now on they wait for this one,
    /// and that may be a deadlock. As long as no waiter needs to know, none is told.
    #[cold]
    pub(super) fn own_up(&mut self) {
        while let Some((record, _)) = self.overtaken.pop() {
            let sleepers = self.placement.latched(record, |latched| {
                latched.0.call_those_overtaken();
                latched.0.sleepers
            });
            if !sleepers.is_empty() {
                self.alarms.wake(sleepers);
            }
        }
    }

    /// Leaves the queue, or takes the upgrade back; unless the lock has been granted meanwhile.
    #[cold]
    pub(super) fn give_up(
        &mut self,
        record: RecordRef,
        request: RequestRef,
        cause: AbortCause,
    ) -> Result<(), AbortCause> {
        let (is_granted, is_holder, sleepers) = self.placement.latched(record, |latched| {
            let queue = &mut latched.0;
            let is_granted = request.state.load(Ordering::Relaxed) == GRANTED;
            let is_holder = request.is_holder();
            match (is_granted, is_holder) {
                (true, _) => {}
                (false, true) => queue.cancel_upgrade(request),
                (false, false) => queue.withdraw(request),
            }
            (is_granted, is_holder, queue.sleepers)
        });
        if !sleepers.is_empty() {
            self.alarms.wake(sleepers);
        }
        if is_granted {
            return Ok(());
        }
        if !is_holder {
            self.pool.put(request);
        }
        point("locks.given-up");
        Err(cause)
    }
}
