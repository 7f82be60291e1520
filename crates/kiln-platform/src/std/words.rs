//! Bulk access to the words of a record.
//!
//! Record data is shared memory that optimistic readers may read while a writer changes it, so
//! every access is a relaxed atomic one; whether what was read belongs together is decided
//! afterwards by the record's version. One call moves many words, which lets a simulating
//! backend account for cache lines instead of single words.

use super::atomic::{AtomicU64, Ordering};

/// Reads one word.
#[inline(always)]
pub fn read_one(source: &AtomicU64) -> u64 {
    source.load(Ordering::Relaxed)
}

/// Writes one word.
#[inline(always)]
pub fn write_one(target: &AtomicU64, value: u64) {
    target.store(value, Ordering::Relaxed);
}

/// Reads `source` into `target`; both have the same length.
#[inline(always)]
pub fn read(source: &[AtomicU64], target: &mut [u64]) {
    assert_eq!(source.len(), target.len(), "word ranges differ in length");
    for (to, from) in target.iter_mut().zip(source) {
        *to = from.load(Ordering::Relaxed);
    }
}

/// Writes `source` to `target`; both have the same length.
#[inline(always)]
pub fn write(target: &[AtomicU64], source: &[u64]) {
    assert_eq!(source.len(), target.len(), "word ranges differ in length");
    for (to, from) in target.iter().zip(source) {
        to.store(*from, Ordering::Relaxed);
    }
}
