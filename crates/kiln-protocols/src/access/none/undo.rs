//! What an attempt has done, how it is made final, and how it is taken back.
//!
//! The blob that a byte string of a row lies in is the row's. An attempt that writes another string
//! over it displaces it: from then on it is in the undo log of that attempt, and that attempt's to
//! free when it commits. Rolled back, the attempt puts it into the row again, if what it wrote
//! there is still there (then it frees what it wrote). Else another attempt has displaced what it
//! wrote, and is its owner: then no attempt can want the older one back, and it is freed.

use kiln_history::Version;
use kiln_platform::atomic::Ordering;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnSet;
use kiln_storage::table::Table;

use super::{CLAIMED, Unprotected, latch, unlatch};
use crate::shared::links;
use crate::shared::recorder::object;
use crate::shared::scratch::RowImage;

/// What was done to a record.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// `columns` were overwritten; `old` holds what they were, `new` what they became, if some of
    /// them may point to blobs.
    Update {
        columns: ColumnSet,
        old: RowImage,
        new: Option<RowImage>,
    },
    Insert,
    Delete,
    /// A record deleted by the same attempt was inserted again.
    Revive,
}

/// One change, with where it was made.
pub(super) struct Undo {
    record: RecordRef,
    table: *const Table,
    change: Change,
}

impl Undo {
    pub(super) fn new(record: RecordRef, table: &Table, change: Change) -> Undo {
        Undo {
            record,
            table,
            change,
        }
    }

    fn table<'a>(&self) -> &'a Table {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &*self.table }
    }
}

impl Unprotected {
    /// Gives everything written a new version, and lets go what was deleted or displaced.
    pub(super) fn make_final(&mut self) {
        for record in &self.deleted {
            self.changes.forget(*record);
        }
        self.changes.commit(&self.participant, &mut self.recorder);
        let is_recorded = self.recorder.log().is_some();
        let has_version = |entry: &Undo| matches!(entry.change, Change::Update { .. });
        let without = self.log.iter();
        let without = without.filter(|entry| is_recorded || !has_version(entry));
        self.written.clear();
        self.written.extend(without.map(|entry| entry.record));
        self.written.sort_unstable_by_key(|record| record.address());
        self.written.dedup();
        for position in 0..self.written.len() {
            let record = self.written[position];
            // Who deleted it has the last word.
            let Some(tid) = latch(record) else { continue };
            let next = Tid(self.next_version(tid).version());
            if let Some(log) = self.recorder.log() {
                let (former, version) = (Version(tid.version()), Version(next.version()));
                log.install(object(record), former, version);
            }
            let flags = match self.deleted.contains(&record) {
                true => Tid::ABSENT | Tid::DEAD,
                false => tid.0 & Tid::ABSENT,
            };
            unlatch(record, Tid(next.0 | flags));
        }
        for entry in &self.log {
            if let Change::Update { columns, old, .. } = entry.change {
                // SAFETY: the scratch is cleared only when the attempt has ended.
                let old = unsafe { old.words() };
                for blob in entry.table().layout().blobs(columns, old) {
                    links::retire_blob(blob, &self.participant);
                }
            }
        }
        while let Some(record) = self.deleted.pop() {
            let of_record = |entry: &&Undo| entry.record == record;
            let entry = self.log.iter().find(of_record);
            let table = entry.expect("a deletion is in the log").table();
            self.remove(table, record);
        }
    }

    /// Takes a dead record, which this attempt has claimed, out of the indexes and gives it back.
    fn remove(&mut self, table: &Table, record: RecordRef) {
        links::unlink(
            table,
            record,
            &mut self.heap,
            &self.participant,
            &mut self.recorder,
        );
        links::retire(table, record, &self.participant);
        self.heap.clear();
    }

    /// Takes all changes back, the last one first.
    #[cold]
    pub(super) fn undo(&mut self) {
        self.changes
            .roll_back(&self.participant, &mut self.recorder);
        while let Some(entry) = self.log.pop() {
            let (table, record) = (entry.table(), entry.record);
            match entry.change {
                Change::Update { columns, old, new } => {
                    self.undo_update(table, record, columns, old, new);
                }
                Change::Insert => {
                    // No other attempt has deleted it, as it was claimed from its first moment.
                    if latch(record).is_some() {
                        links::bury(record);
                    }
                    self.remove(table, record);
                }
                Change::Delete | Change::Revive => {
                    if let Some(tid) = latch(record) {
                        let tid = match entry.change {
                            Change::Delete => tid.0 & !Tid::ABSENT,
                            _ => tid.0 | Tid::ABSENT,
                        };
                        unlatch(record, Tid(tid));
                    }
                }
            }
        }
        self.deleted.clear();
    }

    /// Puts back what columns were, over whatever others wrote since.
    fn undo_update(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: ColumnSet,
        old: RowImage,
        new: Option<RowImage>,
    ) {
        let (layout, row) = (table.layout(), table.row(record));
        // SAFETY: the scratch is cleared only when the attempt has ended.
        let (old, new) = unsafe { (old.words(), new.map(|new| new.words())) };
        let latched = latch(record);
        for column in columns.iter() {
            let access = layout.column(column);
            let displaced = access.blob(old);
            let is_there = latched.is_some()
                && new.is_none_or(|new| {
                    !layout.spilling().contains(column) || access.blob(row) == access.blob(new)
                });
            let freed = match is_there {
                true => {
                    let written = match layout.spilling().contains(column) {
                        true => access.blob(row),
                        false => None,
                    };
                    access.copy(old, row);
                    written
                }
                false => displaced,
            };
            if let Some(blob) = freed {
                links::retire_blob(blob, &self.participant);
            }
        }
        if let Some(tid) = latched {
            unlatch(record, self.written_version(tid));
        }
    }

    /// Forgets the attempt and leaves the epoch.
    pub(super) fn finish(&mut self) {
        self.log.clear();
        self.changes.end(&self.participant);
        self.scratch.clear();
        for record in self.claimed.drain(..) {
            // Release pairs with the acquire in `claim`: the record and its entries are as they
            // will be.
            record.aux().fetch_and(!CLAIMED, Ordering::Release);
        }
        self.participant.leave();
    }
}
