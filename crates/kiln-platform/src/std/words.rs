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

/// Appends the bytes of `source`, each word's lowest byte first, to `target`.
#[inline(always)]
pub fn append_bytes(source: &[AtomicU64], target: &mut Vec<u8>) {
    let length = target.len();
    let added = source.len() * 8;
    target.reserve(added);
    // SAFETY: `reserve` made room for `added` bytes after `length`; each iteration writes eight of
    // them, so all are initialised when the length is set. Unaligned writes need no alignment.
    unsafe {
        let mut end = target.as_mut_ptr().add(length).cast::<u64>();
        for word in source {
            end.write_unaligned(word.load(Ordering::Relaxed).to_le());
            end = end.add(1);
        }
        target.set_len(length + added);
    }
}
