//! Counts for reports, to which one thread alone writes.

use core::sync::atomic::{AtomicU64, Ordering};

/// A count that one thread at a time adds to, and any thread may read. It costs what a plain number
/// costs, and orders nothing.
///
/// It is no scheduling point of a simulated run, as nothing that a run does depends on it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. No other thread adds meanwhile.
    #[inline(always)]
    pub fn add(&self, count: u64) {
        // Relaxed, and no read-modify-write: there is one writer, and readers want some recent
        // value.
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.wrapping_add(count), Ordering::Relaxed);
    }

    /// Adds to it where several threads may.
    #[inline]
    pub fn add_shared(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// What was counted.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
