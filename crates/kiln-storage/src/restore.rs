//! Restoring: rows come back into tables, as a log or a checkpoint has them.
//!
//! No transaction runs meanwhile, and nothing else uses the tables. [`Restorer::change`] keeps only
//! the first index of a table up to date: unique values of other columns may be in two rows for a
//! moment, as commits of one log epoch are ordered by key. [`Table::with_restored_indexes`] builds
//! the others when all is in.
//!
//! Where calls are made again in between all indexes have to be right before each call. Then all
//! rows that a commit changes are [taken out](Restorer::unlink) of these indexes before the first
//! change is made, as two rows may exchange their keys, and are [put back](Restorer::link) after
//! it. Commits of a log epoch that has no calls may be in another order than they happened in, but
//! for those of the same key: a row whose place in a unique index another one still has
//! [waits](Waiting) for the end of the log epoch.
//!
//! Several threads restore at a time ([`Crew`]) as long as each row is restored by one of them.

mod crew;

pub use crew::{Crew, Ends};

use std::ptr::NonNull;

use kiln_platform::atomic::Ordering;

use crate::epoch::Participant;
use crate::error::{Error, Result, SqlState};
use crate::index::Insertion;
use crate::journal::{Change, ChangeKind, Commit};
use crate::key::ROW_NUMBER_SLOT_BITS;
use crate::layout::Blob;
use crate::log_epoch::LogEpoch;
use crate::record::{RecordRef, Tid, Words};
use crate::redo::{KeyedChange, ROW_AT};
use crate::schema::{ColumnSet, TableId};
use crate::slot::Heap;
use crate::table::{Entry, EntryKey, Index, Table};

/// How a change is treated that does not fit the present rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Damage: XX001.
    Refused,
    /// It is ignored, as the rows may have the change already: it is from the time in which a
    /// checkpoint read them. The insertion of a present row replaces it, and a missing row is not
    /// changed.
    Ignored,
}

/// Changes whose rows are fetched before the first of them is made: their cache misses overlap.
const AHEAD: usize = 16;

/// A change that is to be made.
#[derive(Clone, Debug)]
pub struct Intended<'t, 'b> {
    /// The change.
    pub change: KeyedChange<'t, 'b>,
    /// How it is treated if it does not fit the rows.
    pub mismatch: Mismatch,
    /// Where its commit ends, for the error.
    pub end: usize,
}

/// A row that is not in an index yet, since the row with its key there is to be changed by a commit
/// of the same log epoch.
#[derive(Debug)]
pub struct Waiting {
    table: TableId,
    /// The index's position among the table's.
    index: usize,
    key: EntryKey,
    entry: Entry,
}

/// Puts rows into tables.
pub struct Restorer<'p> {
    participant: &'p Participant,
}

impl<'p> Restorer<'p> {
    /// For tables that no transaction uses while there is this. Where several restore rows of a
    /// table at a time, each is in an epoch and has keys of its own.
    pub fn new(participant: &'p Participant) -> Restorer<'p> {
        Restorer { participant }
    }

    /// The part of the epochs that is this thread's.
    pub fn participant(&self) -> &'p Participant {
        self.participant
    }

    /// Makes changes, one after the other, each with what it is if it does not fit to the rows.
    /// What they touch is fetched ahead: first the nodes of the index for a few changes, then the
    /// rows to which these lead. `heap` is room for byte strings.
    ///
    /// # Errors
    /// As [`Restorer::change`], with the position of the change.
    pub fn changes(
        &self,
        changes: &[Intended<'_, '_>],
        heap: &mut Heap,
    ) -> std::result::Result<(), (usize, Error)> {
        for (number, changes) in changes.chunks(AHEAD).enumerate() {
            let mut inserted_into = None;
            for Intended { change, .. } in changes {
                // An insertion into the table of the one before it goes to the same leaf, as a
                // rule.
                let into = (change.kind == ChangeKind::Insert).then(|| change.table.id());
                if into.is_none() || into != inserted_into {
                    change.table.indexes()[0].prefetch_key(&change.key);
                }
                inserted_into = into;
            }
            let mut entries = [None; AHEAD];
            for (Intended { change, .. }, entry) in changes.iter().zip(&mut entries) {
                if change.kind != ChangeKind::Insert {
                    *entry = change.table.indexes()[0].find_key(&change.key);
                    if let (Some(entry), Ok(written)) = (*entry, change.written()) {
                        fetch(change.table, entry.record(), written);
                    }
                }
            }
            let mut is_known = true;
            for (at, (intended, entry)) in changes.iter().zip(entries).enumerate() {
                let Intended {
                    change, mismatch, ..
                } = intended;
                let index = &change.table.indexes()[0];
                let found = match (change.kind, entry) {
                    (ChangeKind::Insert, _) if *mismatch == Mismatch::Refused => None,
                    // What was found is there as long as nothing was removed.
                    (_, Some(entry)) if is_known => Some(entry),
                    _ => index.find_key(&change.key),
                };
                is_known &= change.kind == ChangeKind::Update || found.is_none();
                let made = self.change_found(change, found, heap, *mismatch);
                made.map_err(|error| (number * AHEAD + at, error))?;
            }
        }
        Ok(())
    }

    /// Makes a change. `heap` is room for its byte strings.
    ///
    /// # Errors
    /// XX001 when it does not fit to the rows and that is refused, and for values that its columns
    /// cannot have; 53200 when memory is short.
    pub fn change(
        &self,
        change: &KeyedChange<'_, '_>,
        heap: &mut Heap,
        mismatch: Mismatch,
    ) -> Result<()> {
        let found = match (change.kind, mismatch) {
            // The index tells.
            (ChangeKind::Insert, Mismatch::Refused) => None,
            _ => change.table.indexes()[0].find_key(&change.key),
        };
        self.change_found(change, found, heap, mismatch)
    }

    /// Makes a change of the row that was found; none has to be looked for before an insertion that
    /// is refused if there is one.
    #[inline]
    fn change_found(
        &self,
        change: &KeyedChange<'_, '_>,
        found: Option<Entry>,
        heap: &mut Heap,
        mismatch: Mismatch,
    ) -> Result<()> {
        let mark = heap.mark();
        match (change.kind, found) {
            (ChangeKind::Insert, found) => {
                if let Some(entry) = found {
                    self.remove(change, entry);
                }
                self.insert(change, heap)?;
            }
            (ChangeKind::Update, Some(entry)) => {
                let (layout, row) = (change.table.layout(), change.table.row(entry.record()));
                let spilling = layout.spilling();
                change.read_each(heap, |column, value, heap| {
                    let access = layout.column(column);
                    if spilling.contains(column)
                        && let Some(blob) = access.blob(row)
                    {
                        free(blob);
                    }
                    access.store(row, value, heap);
                })?;
            }
            (ChangeKind::Delete, Some(entry)) => self.remove(change, entry),
            (ChangeKind::Update | ChangeKind::Delete, None) => match mismatch {
                Mismatch::Refused => return Err(mismatched(change)),
                Mismatch::Ignored => {}
            },
        }
        heap.release(mark);
        Ok(())
    }

    /// Takes the row that is about to be changed out of the secondary indexes in which it gets
    /// another key.
    ///
    /// # Errors
    /// XX001 when it is neither in one of them nor waiting for it.
    pub fn unlink(
        &self,
        change: &KeyedChange<'_, '_>,
        heap: &mut Heap,
        waiting: &mut Vec<Waiting>,
    ) -> Result<()> {
        // A row that is there and has this key goes with a deletion of the same commit.
        if change.kind == ChangeKind::Insert {
            return Ok(());
        }
        self.for_each_key(change, heap, |position, index, key, entry| {
            let is_this = |it: &Waiting| it.entry == entry && it.index == position;
            match waiting.iter().position(is_this) {
                Some(known) => drop(waiting.swap_remove(known)),
                None => return index.remove_key(&key, entry, self.participant),
            }
            true
        })
    }

    /// Puts the row that was changed into the secondary indexes in which it has got another key, or
    /// notes that it waits for them.
    ///
    /// # Errors
    /// Those of reading its keys.
    pub fn link(
        &self,
        change: &KeyedChange<'_, '_>,
        heap: &mut Heap,
        waiting: &mut Vec<Waiting>,
    ) -> Result<()> {
        self.for_each_key(change, heap, |position, index, key, entry| {
            let insertion = index.insert_key(&key, entry, self.participant);
            if !matches!(insertion, Insertion::Inserted(_)) {
                waiting.push(Waiting {
                    table: change.table.id(),
                    index: position,
                    key,
                    entry,
                });
            }
            true
        })
    }

    /// Puts the rows that wait into their indexes: all commits of the log epoch were applied.
    /// `find` has the tables.
    ///
    /// # Errors
    /// XX001 when other rows have their keys there.
    pub fn link_waiting<'t>(
        &self,
        waiting: &mut Vec<Waiting>,
        find: impl Fn(TableId) -> Option<&'t Table>,
    ) -> Result<()> {
        for Waiting {
            table,
            index,
            key,
            entry,
        } in waiting.drain(..)
        {
            let table = find(table).ok_or_else(|| Error::internal("a table has gone"))?;
            let insertion = table.indexes()[index].insert_key(&key, entry, self.participant);
            if !matches!(insertion, Insertion::Inserted(_)) {
                let name = &table.schema().name;
                let message = format!("two rows of table \"{name}\" have the same unique key");
                return Err(Error::new(SqlState::DATA_CORRUPTED, message));
            }
        }
        Ok(())
    }

    /// Calls `each` with the keys that the change's row has at present in the secondary indexes
    /// that the change concerns.
    fn for_each_key(
        &self,
        change: &KeyedChange<'_, '_>,
        heap: &mut Heap,
        mut each: impl FnMut(usize, &Index, EntryKey, Entry) -> bool,
    ) -> Result<()> {
        let (table, indexes) = (change.table, change.table.indexes());
        // Tables with one index are not looked at.
        let Some(entry) = (indexes.len() > 1)
            .then(|| indexes[0].find_key(&change.key))
            .flatten()
        else {
            return Ok(());
        };
        let written = change.written()?;
        for (position, index) in indexes.iter().enumerate().skip(1) {
            if change.kind == ChangeKind::Update && !index.columns().intersects(written) {
                continue;
            }
            let mark = heap.mark();
            let key = table.entry_key_of(index, table.row(entry.record()), heap)?;
            heap.release(mark);
            if !each(position, index, key, entry) {
                return Err(mismatched(change));
            }
        }
        Ok(())
    }

    fn insert(&self, change: &KeyedChange<'_, '_>, heap: &mut Heap) -> Result<()> {
        let table = change.table;
        let slot = self.participant.arena();
        // SAFETY: the arena is the participant's, which this thread alone uses.
        let cell = unsafe { table.slab().alloc(slot) };
        let cell = cell.map_err(|_| {
            let message = "the system grants no more memory for records";
            Error::new(SqlState::OUT_OF_MEMORY, message)
        })?;
        // SAFETY: the cell is of this table's slab.
        let record = unsafe { RecordRef::from_cell(cell) };
        // Relaxed, here and below: no other thread has a row with this key, and transactions begin
        // after the threads have ended.
        let version = Tid(record.tid().load(Ordering::Relaxed)).version();
        record.tid().store(version.max(1), Ordering::Relaxed);
        record.aux().store(0, Ordering::Relaxed);
        let (layout, row) = (table.layout(), table.row(record));
        let number = match change.restore_row(heap, row) {
            Ok(number) => number,
            Err(error) => {
                self.discard(table, record, ColumnSet::EMPTY);
                return Err(error);
            }
        };
        if let Some(number) = number {
            let bits = 64 - ROW_NUMBER_SLOT_BITS;
            let (arena, count) = (number as u64 >> bits, number as u64 & ((1 << bits) - 1));
            table.restore_row_number(arena as usize, count + 1);
        }
        let index = &table.indexes()[0];
        match index.insert_key(&change.key, Entry::of(record), self.participant) {
            Insertion::Inserted(_) => Ok(()),
            Insertion::Exists(_) => {
                self.discard(table, record, layout.all());
                Err(mismatched(change))
            }
        }
    }

    fn remove(&self, change: &KeyedChange<'_, '_>, entry: Entry) {
        let (table, record) = (change.table, entry.record());
        table.indexes()[0].remove_key(&change.key, entry, self.participant);
        self.discard(table, record, table.layout().all());
    }

    /// Frees a record that is in no index, and what these columns of it point to.
    fn discard(&self, table: &Table, record: RecordRef, columns: ColumnSet) {
        for blob in table.layout().blobs(columns, table.row(record)) {
            free(blob);
        }
        let version = Tid(record.tid().load(Ordering::Relaxed)).version();
        let dead = version | Tid::ABSENT | Tid::DEAD;
        record.tid().store(dead, Ordering::Relaxed);
        // SAFETY: the arena is the participant's, the cell is of this slab, and nothing refers to
        // it any more.
        unsafe { table.slab().free(self.participant.arena(), record.cell()) };
    }
}

/// Asks for the lines of a record that storing these columns touches first.
#[inline]
fn fetch(table: &Table, record: RecordRef, written: ColumnSet) {
    let mut words = Words::HEADER;
    for column in written.iter() {
        let (start, end) = table.layout().column(column).byte_range();
        words = words.with_bytes((start, end.min(start + 8)));
    }
    record.fetch(words.lines_at(record));
}

fn free(blob: NonNull<Blob>) {
    // SAFETY: the row that pointed to it alone did, and gets another value or goes; no other thread
    // uses the row.
    unsafe { Blob::free(blob) };
}

#[cold]
fn mismatched(change: &KeyedChange<'_, '_>) -> Error {
    let (what, is) = match change.kind {
        ChangeKind::Insert => ("inserts", "is there"),
        ChangeKind::Update => ("updates", "is not there"),
        ChangeKind::Delete => ("deletes", "is not there"),
    };
    let table = &change.table.schema().name;
    let message = format!("a commit {what} a row of table \"{table}\" that {is}");
    Error::new(SqlState::DATA_CORRUPTED, message)
}

/// Appends a record's row in the bytes of a commit that inserts it, without the form of the change
/// and the table.
///
/// # Safety
/// The record is of this table and has a row, which nothing changes meanwhile.
pub unsafe fn append_stored_row(table: &Table, record: RecordRef, target: &mut Vec<u8>) {
    // SAFETY: the caller passes a record of this table whose row nothing changes meanwhile; the
    // change lives no longer than this call.
    let change = unsafe { Change::new(table, record, ChangeKind::Insert, table.layout().all(), 0) };
    let start = target.len();
    let commit = Commit {
        epoch: LogEpoch(0),
        version: 0,
        order: 0,
        changes: &[change],
        answer: None,
        command: None,
    };
    commit.append(target);
    target.drain(start..start + ROW_AT);
}

impl Table {
    /// A successor whose secondary indexes are built from the first one, as [`Restorer`] leaves
    /// them behind.
    ///
    /// # Errors
    /// XX001 when unique columns are not.
    pub fn with_restored_indexes(&self, participant: &Participant) -> Result<Table> {
        let mut restored = self.with_same_indexes();
        for position in 1..self.indexes().len() {
            let kind = self.indexes()[position].definition().kind;
            let rebuilt = restored.with_rebuilt_index(position, kind, participant);
            restored = rebuilt.map_err(|error| {
                let (name, message) = (&self.schema().name, error.message());
                let message = format!("the rows of table \"{name}\" are damaged: {message}");
                Error::new(SqlState::DATA_CORRUPTED, message)
            })?;
        }
        Ok(restored)
    }
}
