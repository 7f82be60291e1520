//! Bulk access to the words of a record; see the ordinary backend for what it means.
//!
//! Each cache line that a call touches is one access, so that a thread that interrupts it finds the
//! lines before changed and those after not.

use kiln_machine::AccessKind;

use super::atomic::{AtomicU64, Ordering};
use super::runtime;
use super::space::LINE_BYTES;

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

/// Calls `body` with the words of each line of `words` and the position of the first.
#[inline(always)]
fn by_lines(words: &[AtomicU64], kind: AccessKind, mut body: impl FnMut(usize, &[AtomicU64])) {
    let mut at = 0;
    while at < words.len() {
        let address = std::ptr::from_ref(&words[at]).addr();
        let in_line = (LINE_BYTES - address % LINE_BYTES) / size_of::<AtomicU64>();
        let end = words.len().min(at + in_line.max(1));
        runtime::access(address, kind);
        body(at, &words[at..end]);
        at = end;
    }
}

/// Reads `source` into `target`; both have the same length.
#[inline(always)]
pub fn read(source: &[AtomicU64], target: &mut [u64]) {
    assert_eq!(source.len(), target.len(), "word ranges differ in length");
    by_lines(source, AccessKind::Load, |at, words| {
        for (to, from) in target[at..].iter_mut().zip(words) {
            *to = from.raw().load(Ordering::Relaxed);
        }
    });
}

/// Writes `source` to `target`; both have the same length.
#[inline(always)]
pub fn write(target: &[AtomicU64], source: &[u64]) {
    assert_eq!(source.len(), target.len(), "word ranges differ in length");
    by_lines(target, AccessKind::Store, |at, words| {
        for (to, from) in words.iter().zip(&source[at..]) {
            to.raw().store(*from, Ordering::Relaxed);
        }
    });
}

/// Appends the bytes of `source`, each word's lowest byte first, to `target`.
#[inline(always)]
pub fn append_bytes(source: &[AtomicU64], target: &mut Vec<u8>) {
    target.reserve(source.len() * 8);
    by_lines(source, AccessKind::Load, |_, words| {
        for word in words {
            target.extend_from_slice(&word.raw().load(Ordering::Relaxed).to_le_bytes());
        }
    });
}
