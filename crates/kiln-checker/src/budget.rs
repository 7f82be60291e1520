//! The memory that judging a history may take, besides its logs.

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::attempts::HistoryError;

/// What is left of the memory. What is taken stays taken: the judge frees what it needs no more, so
/// this errs on the safe side.
pub(crate) struct Budget {
    bytes: u64,
    taken: AtomicU64,
    is_exceeded: AtomicBool,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Budget {
        Budget {
            bytes,
            taken: AtomicU64::new(0),
            is_exceeded: AtomicBool::new(false),
        }
    }

    /// Takes memory for `count` things of so many bytes each. Returns whether there is as much.
    pub(crate) fn take(&self, count: usize, bytes_each: usize) -> bool {
        let bytes = (count as u64).saturating_mul(bytes_each as u64);
        // Relaxed: a sum, which nothing else is ordered by.
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let is_enough = before.saturating_add(bytes) <= self.bytes;
        if !is_enough {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        is_enough
    }

    /// Gives memory back.
    pub(crate) fn give(&self, count: usize, bytes_each: usize) {
        let bytes = (count as u64).saturating_mul(bytes_each as u64);
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether more was wanted than there is; then results are not complete.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    /// # Errors
    /// If it is exceeded.
    pub(crate) fn check(&self) -> Result<(), HistoryError> {
        match self.is_exceeded() {
            true => Err(HistoryError::NoMemory { bytes: self.bytes }),
            false => Ok(()),
        }
    }
}
