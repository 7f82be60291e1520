//! How often a stored procedure was called, counted by worker slot.
//!
//! Each worker slot of the engine, which one thread uses at a time, has a count of its own on cache
//! lines of its own, so that a call costs a load and a store in memory that no other worker writes.
//! The counts are summed when a design is derived from them. They begin at 0 when the procedure is
//! created, or the database opened, and go with the procedure.

use std::fmt;

use kiln_platform::atomic::{AtomicU64, Ordering};

/// The count of one worker slot.
#[repr(align(128))]
struct Count(AtomicU64);

/// How often a procedure was called; see the module's documentation.
pub struct CallCounts {
    by_worker_slot: Box<[Count]>,
    /// Calls that were not made.
    assumed: AtomicU64,
}

impl CallCounts {
    /// For worker slots with numbers below `worker_slots`.
    pub fn new(worker_slots: usize) -> CallCounts {
        // Zeroed by the system, page by page as worker slots come to be used.
        let by_worker_slot = Box::<[Count]>::new_zeroed_slice(worker_slots);
        CallCounts {
            // SAFETY: zero bytes are an atomic 0.
            by_worker_slot: unsafe { by_worker_slot.assume_init() },
            assumed: AtomicU64::new(0),
        }
    }

    /// Counts `calls` calls on a worker slot, which no other thread uses meanwhile.
    #[inline(always)]
    pub fn add(&self, worker_slot: usize, calls: u64) {
        if let Some(Count(count)) = self.by_worker_slot.get(worker_slot) {
            // Relaxed: one thread writes it at a time, and who hands the worker slot to another
            // orders the two.
            let before = count.load(Ordering::Relaxed);
            count.store(before.wrapping_add(calls), Ordering::Relaxed);
        }
    }

    /// Adds calls that were not made, to see what would follow from them.
    pub fn assume(&self, calls: u64) {
        // Relaxed: it orders nothing.
        self.assumed.fetch_add(calls, Ordering::Relaxed);
    }

    /// The calls counted so far; those of transactions that run may be missing.
    pub fn sum(&self) -> u64 {
        let counts = self.by_worker_slot.iter().map(|Count(count)| count);
        // Relaxed: the gate, when it is shut, orders them; else the sum is of some moment
        // meanwhile.
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        counts.fold(self.assumed.load(Ordering::Relaxed), u64::saturating_add)
    }
}

impl fmt::Debug for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallCounts").field(&self.sum()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_of_all_worker_slots_and_no_worker_slot_beyond_them_counts() {
        let counts = CallCounts::new(3);
        counts.add(0, 1);
        counts.add(2, 5);
        counts.add(2, 1);
        counts.add(3, 100);
        assert_eq!(counts.sum(), 7);
        counts.assume(10);
        assert_eq!(counts.sum(), 17);
    }
}
