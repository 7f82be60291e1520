//! Where `rts` is: in the record's `aux`, or, with timestamp splitting, beside the records.
//!
//! A record has room for one word besides its tid. With `+ts` that is the version of the columns kept apart
//! ([`apart`](crate::shared::optimistic::apart)), and the read timestamps of all records are in an array, by the hash
//! of the record's address. An `rts` may be greater than need be: then a writer commits somewhat later, and
//! nothing else. So it does no harm that records share one, nor that the two groups of a record do; what
//! matters, and is exact, is the `wts` of each group, by which readers find out that there is something newer.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::memory;
use kiln_storage::record::RecordRef;

use crate::shared::optimistic::CLAIMED;

/// The read timestamps of all records, with timestamp splitting. Workers of one protocol share them.
pub struct ReadTimes {
    stripes: Box<[AtomicU64]>,
}

impl Default for ReadTimes {
    fn default() -> ReadTimes {
        ReadTimes {
            stripes: (0..1 << ReadTimes::BITS)
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }
}

impl ReadTimes {
    /// 512 KiB: the hot records of a database hardly ever share a stripe.
    const BITS: u32 = 16;

    #[inline(always)]
    fn stripe(&self, record: RecordRef) -> &AtomicU64 {
        let hash = memory::hash(record.address());
        &self.stripes[(hash >> (u64::BITS - ReadTimes::BITS)) as usize]
    }

    /// Up to when the record's present versions were read, at most.
    #[inline(always)]
    pub(super) fn of(&self, record: RecordRef) -> u64 {
        // Acquire: a look at the record's words that follows is not moved before it.
        self.stripe(record).load(Ordering::Acquire)
    }

    /// Says that the record was read at `timestamp`.
    #[inline]
    pub(super) fn extend(&self, record: RecordRef, timestamp: u64) {
        let word = self.stripe(record);
        if word.load(Ordering::Relaxed) < timestamp {
            // What orders it is the fence that follows.
            word.fetch_max(timestamp, Ordering::AcqRel);
        }
    }
}

/// What a record's `aux` says about its `rts`, without timestamp splitting.
#[inline(always)]
pub(super) fn extended(record: RecordRef) -> u64 {
    // Acquire: a look at the tid that follows is not moved before it.
    record.aux().load(Ordering::Acquire) & !CLAIMED
}

/// Extends a record's `rts` in its `aux` to at least `timestamp`, and leaves the claim as it is.
#[inline]
pub(super) fn extend(record: RecordRef, timestamp: u64) {
    let word = record.aux();
    let mut seen = word.load(Ordering::Relaxed);
    while seen & !CLAIMED < timestamp {
        let extended = seen & CLAIMED | timestamp;
        // Relaxed on failure as it is tried again; what orders the extension is the fence that follows.
        match word.compare_exchange_weak(seen, extended, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}
