//! How workers hear that they have the locks for which they wait.

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::time;
use kiln_procedure::AbortCause;
use kiln_storage::table::WORKERS_MAX;

use crate::schedule::in_flight::Idle;
use crate::shared::core_slots::{CoreSlots, WAIT_IN_CORE_SLOT_NS};
use crate::shared::locks::WAIT_MAX_NS;

/// Whether a worker has all that it waits for; on cache lines of its own, as the worker looks at it
/// again and again.
#[derive(Default)]
#[repr(align(128))]
struct Signal(AtomicBool);

/// The signals of all workers.
pub struct Signals {
    by_worker: Box<[Signal]>,
    core_slots: CoreSlots,
}

impl Signals {
    /// For workers that share these core slots.
    pub fn new(core_slots: CoreSlots) -> Signals {
        Signals {
            by_worker: (0..WORKERS_MAX).map(|_| Signal::default()).collect(),
            core_slots,
        }
    }

    /// A worker begins to wait; called under the latch of what it waits for.
    pub fn clear(&self, worker: u32) {
        // Relaxed: who grants has the latch later.
        self.by_worker[worker as usize]
            .0
            .store(false, Ordering::Relaxed);
    }

    /// A worker has what it waits for.
    pub fn grant(&self, worker: u32) {
        // Release pairs with the acquire in `wait`: what former holders did is visible.
        self.by_worker[worker as usize]
            .0
            .store(true, Ordering::Release);
    }

    /// Waits until the worker has what it waits for.
    ///
    /// # Errors
    /// When its call has no time left; when it has waited for long, as the holder may be a block
    /// whose client thinks; and sooner where other workers want this one's core slot.
    pub fn wait(&self, worker: u32, deadline_ns: Option<u64>) -> Result<(), AbortCause> {
        let signal = &self.by_worker[worker as usize].0;
        let (mut idle, mut limit) = (Idle::default(), None);
        while !signal.load(Ordering::Acquire) {
            if idle.has_spun() {
                let now = time::now_ns();
                let limit = *limit.get_or_insert_with(|| {
                    let deadline = deadline_ns.unwrap_or(u64::MAX);
                    deadline.min(now + WAIT_MAX_NS)
                });
                if now >= limit {
                    return Err(AbortCause::LockTimeout);
                }
                if idle.has_lasted(WAIT_IN_CORE_SLOT_NS) && self.core_slots.is_awaited(worker) {
                    return Err(AbortCause::GaveWay);
                }
            }
            idle.pause();
        }
        Ok(())
    }
}
