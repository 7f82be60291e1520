//! What a read-only attempt that failed leaves to the one that repeats it, with timestamp
//! splitting.
//!
//! An attempt that reads many records, which others overwrite all the time, hardly ever finds a
//! timestamp: a record that it met early is overwritten, and one that it meets later was written
//! after that. Both happen while it runs, for the most part between two of its reads. So the
//! records that it met are noted, and the attempt that repeats it begins with a *sweep*: it extends
//! each of them to a common timestamp, somewhat later than all their versions, and copies the
//! columns that were read. Then it runs, and where it meets one of them again at a version that was
//! swept, it reads the copy. That version is valid until the common timestamp: a transaction that
//! has overwritten it since comes after that. Only what happens during the sweep can fail the
//! attempt now, and the sweep is a short loop over records whose addresses are known, and not the
//! procedure.
//!
//! Those who overwrite get later timestamps by it, which costs them nothing if they have left their
//! updates to the commit, and an extension of what they read if not.
//!
//! # Invariants
//!
//! - A copy is of a version that was there, unlocked, after its `rts` was extended (or found to be
//!   late enough) and a full fence: it is what an item with the same note stands for, but that the
//!   columns were read already.
//! - A record may have moved in its indexes since, and then the key by which it is found is not
//!   that of the copy. A transaction that moves or deletes a record advances its second timestamp,
//!   so a copy is used only while that is as it was.

use kiln_platform::atomic::{AtomicU64, Ordering, fence, prefetch};
use kiln_platform::work::{Work, charge};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;

use super::times::{self, GroupTimes};
use crate::canary::Canary;
use crate::shared::optimistic::{split::LOCKED, stable_tid};
use crate::shared::record_map::RecordMap;
use crate::shared::scratch::{RowImage, Scratch};

/// So many records are noted of an attempt at most: the images of their rows take some hundred
/// kilobytes.
const MET_MAX: usize = 1024;

/// A record's header is asked for so many records before it is looked at.
const AHEAD: usize = 8;

/// How much later than all versions met the common timestamp is. A transaction that overwrites one
/// of them meanwhile comes after that, and others go on counting below it. More would only make the
/// leases of split columns (`times.rs`) end sooner.
const LEAP: u64 = 32;

/// Sweeps at most: each fails if a transaction that came after its timestamp wrote what it had yet
/// to copy.
const SWEEPS_MAX: usize = 8;

/// A record that an attempt met, and the columns that it was about to read.
#[derive(Clone, Copy)]
struct Met {
    record: RecordRef,
    table: *const Table,
    columns: ColumnSet,
}

// SAFETY: only the thread that runs the access follows the table, during the call whose program
// keeps it.
unsafe impl Send for Met {}

/// What the present attempt has read of a record before it meets it.
struct Copy {
    /// The version that was read,
    tid: Tid,
    /// the second timestamp then,
    split: u64,
    /// and up to when the version is valid.
    until: u64,
    columns: ColumnSet,
    image: RowImage,
}

// SAFETY: the image is in the scratch beside it.
unsafe impl Send for Copy {}

/// The records noted, and the copies; see the module's documentation.
#[derive(Default)]
pub(super) struct Kept {
    /// What the present attempt has met, if it is one that notes it.
    met: Vec<Met>,
    is_noting: bool,
    /// What one before it had met, which failed.
    former: Vec<Met>,
    copies: Vec<Copy>,
    by_record: RecordMap,
    images: Scratch,
}

impl Kept {
    /// Another attempt of the same call is about to start.
    #[inline(always)]
    pub fn begin_again(&mut self) {
        if self.met.len() > self.former.len() {
            // One that failed early knows less than one before it.
            std::mem::swap(&mut self.met, &mut self.former);
        }
        self.met.clear();
    }

    /// The call is over.
    #[inline(always)]
    pub fn end_call(&mut self) {
        self.met.clear();
        self.former.clear();
    }

    /// The present attempt only reads: what it meets is noted.
    #[inline(always)]
    pub fn note(&mut self) {
        self.is_noting = true;
    }

    /// The attempt meets a record, and is about to read these columns.
    #[inline(always)]
    pub fn meets(&mut self, table: &Table, record: RecordRef, columns: ColumnSet) {
        if self.is_noting && self.met.len() < MET_MAX {
            self.met.push(Met {
                record,
                table,
                columns,
            });
        }
    }

    /// The attempt is over.
    #[inline(always)]
    pub fn end(&mut self) {
        self.is_noting = false;
        self.forget_copies();
    }

    #[inline(always)]
    fn forget_copies(&mut self) {
        if !self.copies.is_empty() {
            self.copies.clear();
            self.by_record.clear();
            self.images.clear();
        }
    }

    /// Reserves and copies what an attempt before this one met, and says until when; 0 if there was
    /// none.
    pub fn sweep(&mut self, times: &GroupTimes) -> u64 {
        if self.former.is_empty() {
            return 0;
        }
        let mut until = 0;
        for _ in 0..SWEEPS_MAX {
            let mut newest = 0;
            for (position, met) in self.former.iter().enumerate() {
                if let Some(met) = self.former.get(position + AHEAD) {
                    prefetch(met.record.tid());
                }
                // Relaxed: it is an estimate.
                let tid = Tid(met.record.tid().load(Ordering::Relaxed));
                newest = newest.max(tid.version());
            }
            until = newest + LEAP;
            self.forget_copies();
            for position in 0..self.former.len() {
                self.copy(times, self.former[position], until);
            }
            // Else the attempt would end later than some of its copies are known to be valid.
            let versions = self.copies.iter().map(|copy| copy.tid.version());
            if versions.max() <= Some(until) {
                break;
            }
        }
        until
    }

    fn copy(&mut self, times: &GroupTimes, met: Met, until: u64) {
        let Met {
            record, columns, ..
        } = met;
        if self.by_record.get(record).is_some() {
            return;
        }
        charge(Work::Record);
        let Ok(tid) = stable_tid(record) else {
            return;
        };
        if tid.is_absent() || tid.is_dead() {
            return;
        }
        // Acquire: the look at the tid that follows is not moved before it.
        let split = record.aux().load(Ordering::Acquire) & times::SPLIT;
        if split & LOCKED != 0 {
            return;
        }
        let mut valid_until = times.of(record, tid.version());
        if valid_until < until {
            if !Canary::CopyNotReserved.sings() {
                times.extend(record, tid.version(), until);
            }
            // Sequentially consistent: the extension is visible before the tid is looked at. Pairs
            // with the fence between a writer's locks and its timestamp.
            fence(Ordering::SeqCst);
            valid_until = until;
        }
        // SAFETY: the call, whose attempt met the record, goes on, and its program keeps the table.
        let table = unsafe { &*met.table };
        let layout = table.layout();
        let image = self.images.take(layout.words());
        // SAFETY: the images are cleared only when the attempt has ended.
        layout.copy(columns, table.row(record), unsafe { image.words() });
        // Acquire pairs with the release fence between locking and installing: if a word above is
        // of a newer version, the load below sees its lock bit or tid.
        fence(Ordering::Acquire);
        if record.tid().load(Ordering::Relaxed) != tid.0 {
            return;
        }
        self.by_record.insert(record, self.copies.len() as u32);
        self.copies.push(Copy {
            tid,
            split,
            until: valid_until,
            columns,
            image,
        });
    }

    #[inline]
    fn of(&self, record: RecordRef) -> Option<&Copy> {
        Some(&self.copies[self.by_record.get(record)? as usize])
    }

    /// The version of a record that was copied, and up to when it is valid, if the record is where
    /// it was then.
    #[inline]
    pub fn version(&self, record: RecordRef) -> Option<(Tid, u64)> {
        let copy = self.of(record)?;
        // Acquire: the count of its moves, and deletions, is no older than the entry by which it
        // was found.
        let split = record.aux().load(Ordering::Acquire) & times::SPLIT;
        let now = Tid(record.tid().load(Ordering::Relaxed));
        let stayed = split == copy.split && times::is_near(copy.tid, now)
            || Canary::CopyOfMovedRecord.sings();
        stayed.then_some((copy.tid, copy.until))
    }

    /// A row that has these columns as they are in this version, if that is the one that was
    /// copied.
    #[inline(always)]
    pub fn row(
        &self,
        record: RecordRef,
        observed: u64,
        mut columns: impl Iterator<Item = ColumnId>,
    ) -> Option<&[AtomicU64]> {
        if self.copies.is_empty() {
            return None;
        }
        let copy = self.of(record)?;
        let has_all = copy.tid.0 == observed && columns.all(|column| copy.columns.contains(column));
        // SAFETY: as in `copy`.
        has_all.then(|| unsafe { copy.image.words() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_storage::schema::{Column, TableId, TableSchema};
    use kiln_storage::slot::{Heap, Slot};
    use kiln_storage::types::DataType;
    use std::ptr::NonNull;

    const ID: ColumnId = ColumnId(0);
    const BALANCE: ColumnId = ColumnId(1);

    fn accounts() -> Table {
        let column = |name: &str| Column {
            name: name.to_owned(),
            data_type: DataType::BigInt,
            not_null: true,
            default: None,
            domain: None,
            generated: None,
        };
        let schema = TableSchema {
            name: "account".to_owned(),
            columns: vec![column("id"), column("balance")],
            primary_key: vec![ID],
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            primary_key_name: None,
            triggers: Vec::new(),
            unbuilt: Vec::new(),
            partition_by: None,
        };
        Table::new(TableId(1), schema, 0, Vec::new()).expect("a table like others")
    }

    #[test]
    fn a_repeated_attempt_reads_what_was_swept() {
        let table = accounts();
        let cell = [const { AtomicU64::new(0) }; 8];
        assert!(2 + table.layout().words() <= cell.len());
        // SAFETY: a header of two words and a row, which outlive the test.
        let record = unsafe { RecordRef::from_cell(NonNull::from(&cell[0]).cast()) };
        let balance = table.layout().column(BALANCE);
        let store = |value: i64, version: u64| {
            balance.store(table.row(record), Slot::from_i64(value), &Heap::new());
            record.tid().store(version, Ordering::Release);
        };
        let times = GroupTimes::default();
        let mut kept = Kept::default();

        store(100, 10);
        kept.begin_again();
        kept.note();
        assert_eq!(kept.sweep(&times), 0, "nothing has failed");
        kept.meets(&table, record, [BALANCE].into_iter().collect());
        kept.end();
        kept.begin_again();
        kept.note();
        assert_eq!(kept.sweep(&times), 10 + LEAP);
        assert_eq!(times.of(record, 10), 10 + LEAP, "it is reserved");

        // A transaction writes it, and comes after that.
        store(200, 11 + LEAP);
        assert_eq!(kept.version(record), Some((Tid(10), 10 + LEAP)));
        let row = kept.row(record, 10, [BALANCE].into_iter());
        let row = row.expect("it was copied");
        assert_eq!(balance.load(row, &mut Heap::new()).as_i64(), 100);
        let another_version = kept.row(record, 11 + LEAP, [BALANCE].into_iter());
        assert!(another_version.is_none());
        let another_column = kept.row(record, 10, [ID, BALANCE].into_iter());
        assert!(another_column.is_none());

        // A transaction moves or deletes it.
        let aux = record.aux().load(Ordering::Relaxed);
        record.aux().store(aux | LOCKED, Ordering::Relaxed);
        assert_eq!(kept.version(record), None);
        record.aux().store(times::advanced(aux), Ordering::Relaxed);
        assert_eq!(kept.version(record), None);

        kept.end();
        kept.end_call();
        kept.begin_again();
        assert_eq!(kept.sweep(&times), 0, "another call");
    }
}
