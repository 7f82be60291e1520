//! Where `rts` is, and with timestamp splitting the timestamps of the split columns.
//!
//! Without `+ts` a record's `aux` is its `rts`, beside the claim bit. With it, `aux` is
//!
//! ```text
//!  63      62      61 … 42                          41 … 0
//! ┌───────┬───────┬────────────────────────────────┬──────────────────────────────────┐
//! │ claim │ lock  │ writes of the split columns,   │ rts of the record − wts of the   │
//! │       │ split │ counted and cut to 20 bits     │ record (the version in its tid)  │
//! └───────┴───────┴────────────────────────────────┴──────────────────────────────────┘
//! ```
//!
//! so that an extension touches no line but the record's own, which a reader of the record has
//! anyway.
//!
//! **The split columns** need two things of their writes. *That there was none* since the attempt
//! met the record, is what the count says, if the record's version has not grown by so much since
//! that the count may have come round ([`is_near`]): each write raises it by at least one. *When
//! the last one was* has only to be known from above: it is no later than the version of a record
//! that no transaction has locked, and no later than the last write of such columns anywhere in the
//! table ([`GroupTimes`]).
//!
//! **Up to when they were read** is one word per table: a write that comes later than it had to
//! does no harm. It is raised in leaps ([`LEASE`]), and so it is hardly ever written; all readers
//! of the group share it in their caches, where a word per record would be written by each of them.
//! Writes should be rare, then: they follow each leap, and readers leap from there. Where they turn
//! out not to be ([`OFTEN`]) readers extend the `rts` of the record instead, and look at it only
//! while it is not locked. Writers of the split columns come after both, always.

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::memory::name_range;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::table::Table;

use super::gaps::Mask;
use crate::shared::optimistic::{CLAIMED, split::LOCKED};

/// The bits of `aux` that hold `rts − wts`, with timestamp splitting.
const EXTENSION: u64 = (1 << 42) - 1;
/// Stands for an extension that has no room: [`GroupTimes::far`] is the `rts` of such a record.
const FAR: u64 = EXTENSION;
/// One write of the split columns.
const COUNT_ONE: u64 = EXTENSION + 1;
/// The bits of `aux` in which the writes of the split columns are counted.
const COUNT: u64 = LOCKED - COUNT_ONE;
/// How far beyond a reader's timestamp the word of its table is raised.
const LEASE: u64 = 1024;
/// As [`LEASE`], for the word of records whose extension has no room: of these there may be many,
/// until they are written.
const FAR_LEASE: u64 = 1 << 16;

/// Said of what an attempt notes of split columns: not their table's word but the `rts` of the
/// record counts.
pub(super) const BY_RECORD: u64 = 1 << 63;
/// Stands for when split columns of a table were written that are often written.
const OFTEN: u64 = u64::MAX;
/// So many writes of split columns in a table, each less than [`CLOSE`] behind the one before, are
/// often.
const CLOSE_MAX: u64 = 16;
/// A few leases, as a write comes up to one later than it would without.
const CLOSE: u64 = 4 * LEASE;

/// The bits of `aux` that tell whether the split columns are as they were.
pub(super) const SPLIT: u64 = LOCKED | COUNT;

/// `aux` when the split columns are written: counted, unlocked, and the new version not extended.
#[inline(always)]
pub(super) fn advanced(aux: u64) -> u64 {
    aux & CLAIMED | (aux & COUNT).wrapping_add(COUNT_ONE) & COUNT
}

/// Whether the split columns of a record cannot have been written so often between two versions
/// that the count of such writes is the same again. Each of them raises the version, and the last
/// one's may be about to.
#[inline(always)]
pub(super) fn is_near(former: Tid, now: Tid) -> bool {
    now.version() - former.version() < COUNT / COUNT_ONE
}

/// The timestamps of column groups, with timestamp splitting. Workers of one protocol share them.
pub struct GroupTimes {
    tables: Box<[GroupTime; GroupTimes::STRIPES]>,
    /// The `rts` of all records marked [`FAR`].
    far: Padded,
}

/// Of the split columns of a table, and others with the same number.
#[derive(Default)]
#[repr(align(128))]
struct GroupTime {
    /// No later than this they were read.
    read: AtomicU64,
    /// When they were last written, or [`OFTEN`].
    written: AtomicU64,
    /// How many of the writes came soon after the one before.
    close: AtomicU64,
    /// No later than this a record was inserted.
    inserted: AtomicU64,
}

#[derive(Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl Default for GroupTimes {
    fn default() -> GroupTimes {
        let times = GroupTimes {
            tables: Box::new(std::array::from_fn(|_| GroupTime::default())),
            far: Padded::default(),
        };
        for (number, time) in times.tables.iter().enumerate() {
            let address = std::ptr::from_ref(time).addr();
            name_range(address, size_of::<GroupTime>(), || {
                format!("tictoc.split columns[{number}]")
            });
        }
        times
    }
}

impl GroupTimes {
    const STRIPES: usize = Mask::BITS as usize;

    #[inline(always)]
    fn number(table: &Table) -> usize {
        table.id().0 as usize % GroupTimes::STRIPES
    }

    /// The table's bit in a set of tables.
    #[inline(always)]
    pub(super) fn mask(table: &Table) -> Mask {
        1 << GroupTimes::number(table)
    }

    fn each(&self, mut mask: Mask) -> impl Iterator<Item = &GroupTime> {
        std::iter::from_fn(move || {
            let number = mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
            self.tables.get(number as usize)
        })
    }

    /// Up to when, at most, the record was read that has this version; see [`extended`].
    #[inline(always)]
    pub(super) fn of(&self, record: RecordRef, version: u64) -> u64 {
        // Acquire: a look at the tid that follows is not moved before it, nor that at the word for
        // all records that are far.
        let extension = record.aux().load(Ordering::Acquire) & EXTENSION;
        match extension == FAR {
            // Acquire: as above.
            true => self.far.0.load(Ordering::Acquire).max(version + FAR),
            false => version + extension,
        }
    }

    /// Extends the `rts` of a record whose version was this a moment ago. If it is another one by
    /// now, that one is extended in vain.
    #[inline]
    pub(super) fn extend(&self, record: RecordRef, version: u64, timestamp: u64) {
        let wanted = timestamp.saturating_sub(version).min(FAR);
        if wanted == FAR {
            raise(&self.far.0, timestamp, FAR_LEASE);
        }
        let word = record.aux();
        let mut seen = word.load(Ordering::Relaxed);
        while seen & EXTENSION < wanted {
            let extended = seen & !EXTENSION | wanted;
            // Relaxed on failure as it is tried again; what orders the extension is the fence that
            // follows.
            match word.compare_exchange_weak(seen, extended, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Called by the holder of a record's lock, which writes columns that are not split, when
    /// the record is about to get its next version. If the record was extended beyond that
    /// meanwhile, for the sake of the split columns, it stays so.
    #[inline(always)]
    pub(super) fn carry_over(&self, record: RecordRef, former: u64, version: u64) {
        let word = record.aux();
        let mut seen = word.load(Ordering::Relaxed);
        while seen & EXTENSION != 0 {
            let until = match seen & EXTENSION {
                FAR => self.far.0.load(Ordering::Acquire),
                extension => former + extension,
            };
            let extension = until.saturating_sub(version).min(FAR);
            // Relaxed: who sees the new version by its acquire of the tid sees this.
            let carried = seen & !EXTENSION | extension;
            match word.compare_exchange_weak(seen, carried, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Up to when the split columns were read, at most.
    #[inline(always)]
    pub(super) fn read_split(&self, table: &Table) -> u64 {
        // Acquire: a look at the record's words that follows is not moved before it.
        self.tables[GroupTimes::number(table)]
            .read
            .load(Ordering::Acquire)
    }

    /// When the split columns were last written, at the latest: asked by who has seen the count of
    /// a record. `None` where they are often written; no later than a record's version, if it is
    /// not locked.
    #[inline(always)]
    pub(super) fn written_split(&self, table: &Table) -> Option<u64> {
        // Relaxed: it was raised before the count, or the tid of a new record, was released, which
        // the caller has acquired.
        let time = &self.tables[GroupTimes::number(table)];
        match time.written.load(Ordering::Relaxed) {
            OFTEN => None,
            written => Some(written.max(time.inserted.load(Ordering::Relaxed))),
        }
    }

    /// Says that split columns of these tables were read at `timestamp`.
    #[inline]
    pub(super) fn extend_split(&self, tables: Mask, timestamp: u64) {
        for time in self.each(tables) {
            raise(&time.read, timestamp, LEASE);
        }
    }

    /// Says that split columns are about to be written at `timestamp` in some tables, and records
    /// inserted in others.
    #[inline]
    pub(super) fn write_split(&self, written: Mask, inserted: Mask, timestamp: u64) {
        for time in self.each(written) {
            let last = time.written.load(Ordering::Relaxed);
            if last == OFTEN {
                continue;
            }
            if timestamp < last + CLOSE && time.close.fetch_add(1, Ordering::Relaxed) >= CLOSE_MAX {
                // For good: who has seen it raises nothing here any more.
                time.written.store(OFTEN, Ordering::Release);
            }
            time.written.fetch_max(timestamp, Ordering::AcqRel);
        }
        for time in self.each(inserted) {
            raise(&time.inserted, timestamp, LEASE);
        }
    }
}

/// Raises a word to `timestamp` at least, and then further, so that it has not to be raised soon
/// again.
#[inline]
fn raise(word: &AtomicU64, timestamp: u64, lease: u64) {
    if word.load(Ordering::Relaxed) < timestamp {
        // What orders it is the fence, or the release of the record's words, that follows.
        word.fetch_max(timestamp + lease, Ordering::AcqRel);
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
        // Relaxed on failure as it is tried again; what orders the extension is the fence that
        // follows.
        match word.compare_exchange_weak(seen, extended, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_the_split_columns_counts_and_ends_the_extension() {
        let aux = CLAIMED | LOCKED | (5 * COUNT_ONE) | 77;
        assert_eq!(advanced(aux), CLAIMED | (6 * COUNT_ONE));
        assert_eq!(advanced(COUNT | 1), 0, "the count comes round");
    }

    #[test]
    fn versions_are_near_until_the_count_may_have_come_round() {
        let rounds = COUNT / COUNT_ONE;
        assert!(is_near(Tid(7), Tid(7 + rounds - 1)));
        assert!(!is_near(Tid(7), Tid(7 + rounds)));
    }
}
