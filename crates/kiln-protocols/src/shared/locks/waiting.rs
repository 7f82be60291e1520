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
use super::handling::Handling;
use super::placement::Placement;
use super::queue::Sleepers;
use super::request::{CHANGED, GRANTED, PARKED, RequestRef, WAITING};

/// The longest wait for one lock, in nanoseconds: half a second.
pub const WAIT_MAX_NS: u64 = 500_000_000;

/// Turns spent spinning, about two microseconds: a holder that runs is often done by then.
const SPINS: u32 = 64;
/// Turns after those spent giving the core to others.
const YIELDS: u32 = 16;
/// A worker that sleeps looks around after so long, though nobody has woken it.
const SLEEP_NS: [u64; 5] = [50_000, 100_000, 200_000, 400_000, 800_000];

/// The threads of the workers that sleep; clones are the same.
#[derive(Clone)]
pub struct Alarms(Arc<[Mutex<Option<Thread>>]>);

impl Default for Alarms {
    fn default() -> Alarms {
        Alarms((0..WORKERS_MAX).map(|_| Mutex::new(None)).collect())
    }
}

impl Alarms {
    /// Wakes workers that have been told something while they slept.
    #[cold]
    pub(super) fn wake(&self, sleepers: Sleepers) {
        for worker in sleepers.iter() {
            if let Some(thread) = &*lock(&self.0[worker]) {
                thread.unpark();
            }
        }
    }
}

impl<P: Placement, H: Handling> QueuedLocks<P, H> {
    /// See [`super::Locks::wait`].
    pub(super) fn wait_for(
        &mut self,
        record: RecordRef,
        request: RequestRef,
    ) -> Result<(), AbortCause> {
        if H::WATCHES {
            self.handling.block();
        }
        let result = self.turns(record, request);
        if H::WATCHES {
            self.handling.unblock();
        }
        if result.is_ok() {
            point("locks.granted");
        }
        result
    }

    fn turns(&mut self, record: RecordRef, request: RequestRef) -> Result<(), AbortCause> {
        let mut latest_ns = None;
        for turn in 1.. {
            // Acquire pairs with the release in `Queue::tell`: what former holders did is visible.
            match request.state.load(Ordering::Acquire) {
                GRANTED => return Ok(()),
                CHANGED if self.look_ahead(record, request) => return Ok(()),
                _ => {}
            }
            if H::WATCHES && self.handling.is_deadlocked(turn) {
                return self.give_up(record, request, H::REFUSED[1]);
            }
            if turn <= SPINS {
                spin::hint();
                continue;
            }
            let now = time::now_ns();
            let latest = *latest_ns.get_or_insert_with(|| {
                let latest = now + WAIT_MAX_NS;
                self.deadline_ns
                    .map_or(latest, |deadline| latest.min(deadline))
            });
            if now >= latest {
                return self.give_up(record, request, AbortCause::LockTimeout);
            }
            match turn - SPINS {
                ..=YIELDS => thread::yield_now(),
                slept => {
                    let longest = SLEEP_NS[((slept - YIELDS) as usize - 1).min(SLEEP_NS.len() - 1)];
                    self.sleep(request, longest.min(latest - now));
                }
            }
        }
        unreachable!("the wait ends before its turns are counted out")
    }

    /// Sleeps until something is told, or for `nanoseconds`.
    fn sleep(&self, request: RequestRef, nanoseconds: u64) {
        // The thread may be another one than last time.
        *lock(&self.alarms.0[self.pool.worker() as usize]) = Some(thread::current());
        // Release pairs with the acquire of the swap in `Queue::tell`, whose worker then looks for the
        // thread; a wake-up that comes before the sleep ends it at once.
        let parked =
            request
                .state
                .compare_exchange(WAITING, PARKED, Ordering::Release, Ordering::Relaxed);
        if parked.is_ok() {
            thread::park_for(nanoseconds);
            // Fails when something was told, which the next turn sees.
            let _ = request.state.compare_exchange(
                PARKED,
                WAITING,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// Looks anew whom the request waits for; whether it has got the lock meanwhile.
    #[cold]
    pub(super) fn look_ahead(&mut self, record: RecordRef, request: RequestRef) -> bool {
        let handling = &mut self.handling;
        let is_granted = self.placement.latched(record, |latched| {
            if request.state.load(Ordering::Relaxed) == GRANTED {
                return true;
            }
            request.state.store(WAITING, Ordering::Relaxed);
            if H::WATCHES {
                handling.forget(&request);
                let watch = |ahead: RequestRef| handling.watch(&ahead);
                latched.0.each_predecessor(request, watch);
            }
            false
        });
        if !is_granted && H::WATCHES {
            self.handling.block();
        }
        is_granted
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
