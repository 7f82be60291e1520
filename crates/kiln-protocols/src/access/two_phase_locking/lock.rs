//! The lock word: a record's `aux`. The highest bit says exclusive; else it counts the sharers.

use kiln_platform::atomic::Ordering;
use kiln_storage::record::RecordRef;

/// Held by one writer.
pub(super) const EXCLUSIVE: u64 = 1 << 63;

/// Takes the shared lock if no writer holds the record.
#[inline(always)]
pub(super) fn share(record: RecordRef) -> bool {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    while seen != EXCLUSIVE {
        // Acquire pairs with the release of the last writer: its row is visible.
        match word.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
    false
}

/// Takes the exclusive lock if nobody holds the record.
#[inline(always)]
pub(super) fn take(record: RecordRef) -> bool {
    // Acquire pairs with the releases of the last writer and of the last readers: this one's
    // writes come after their accesses.
    let taken = record
        .aux()
        .compare_exchange(0, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok()
}

/// Turns the caller's shared lock into the exclusive one if nobody else shares it.
#[inline(always)]
pub(super) fn upgrade(record: RecordRef) -> bool {
    // Acquire: as for `take`, with respect to the other readers that have let go.
    let taken = record
        .aux()
        .compare_exchange(1, EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok()
}

/// Lets go of a lock held in this mode.
#[inline(always)]
pub(super) fn release(record: RecordRef, exclusive: bool) {
    if exclusive {
        record.aux().store(0, Ordering::Release);
    } else {
        record.aux().fetch_sub(1, Ordering::Release);
    }
}
