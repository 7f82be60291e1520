//! None: all workers, and no concurrency control at all. **An unsafe baseline.**
//!
//! Source: "no locking" in VLL (VLDB Journal 24, 2015, §3.2), which shows what the other systems
//! pay for their locks.
//!
//! # The idea
//!
//! Rows are read and written in place, as in `serial`, but by all workers at once. Updates get
//! lost, reads are of any mixture of transactions, and a roll-back writes over what others wrote
//! since. No attempt waits for another, and nothing is validated.
//!
//! # What is left, so that it does not crash
//!
//! The database stays in one piece; only its contents are arbitrary. That takes three things, none
//! of which outlasts an operation on one row, but for the second:
//!
//! - A **latch**, the lock bit of the tid, is held while a row's words are written, as columns
//!   share words, and a byte string whose length and pointer are from different writers is not one.
//!   Numbers are read without looking at it; byte strings are read again when the tid has changed,
//!   as it does with each write and each roll-back. (While a history is recorded, versions come at
//!   the end: then byte strings are read under the latch.)
//! - Who deletes a record, or changes an indexed column, **claims** it first, as in the optimistic
//!   protocols, and its index entries until the end. The attempt that comes second aborts: that is
//!   the only abort here, with meeting an entry that is moving.
//! - **A blob has one owner** (`undo.rs`): the row that points to it, or the undo log of the
//!   attempt that displaced it from there. So it is freed once.
//!
//! # Invariants
//!
//! - A tid changes only under the latch; a dead record does not change at all.
//! - What a dead record points to is its deleter's to free.

pub(crate) mod registration;
mod undo;

use kiln_history::Log;
use kiln_platform::atomic::{Ordering, fence};
use kiln_platform::schedule::point;
use kiln_platform::spin::Spinner;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recording, Remembering, Scanning, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::NodeVersion;
use kiln_storage::journal::Journal;
use kiln_storage::layout::{is_spilled, resolve};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Memory};
use kiln_storage::table::{Entry, EntryKey, Table};

use crate::phases::{Phase, Phased, Phases};
use crate::shared::in_place::{InPlace, refused_update};
use crate::shared::index_changes::{Changed, IndexChanges};
use crate::shared::links::{self, Linked};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;
use crate::shared::scratch::Scratch;
use undo::{Change, Undo};

/// The bit of a record's `aux` that says that an attempt deletes the record or changes its entries.
const CLAIMED: u64 = 1 << 63;

/// The access of one worker; see the module's documentation.
pub struct Unprotected {
    participant: Participant,
    recorder: Recorder,
    log: Vec<Undo>,
    changes: IndexChanges,
    /// The records that the attempt inserts, deletes or moves.
    claimed: Vec<RecordRef>,
    /// Those among them that it has deleted, and not inserted again.
    deleted: Vec<RecordRef>,
    /// The written records that have no new version yet, each once, while they are installed.
    written: Vec<RecordRef>,
    scratch: Scratch,
    heap: Heap,
    last: Tid,
    phases: Phases,
}

// SAFETY: the table pointers inside are only followed by the thread that runs the access, while the
// tables are kept.
unsafe impl Send for Unprotected {}

/// Latches a record and returns its tid; `None` when it is dead, and not latched.
#[inline]
fn latch(record: RecordRef) -> Option<Tid> {
    let word = record.tid();
    let mut spinner = Spinner::default();
    loop {
        let seen = Tid(word.load(Ordering::Relaxed));
        if seen.is_dead() {
            return None;
        }
        // Acquire pairs with the release of the last holder, whose words are visible.
        let latched = !seen.is_locked()
            && word
                .compare_exchange_weak(
                    seen.0,
                    seen.0 | Tid::LOCKED,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok();
        if latched {
            // Pairs with the acquire fence of readers of byte strings: who sees a word written
            // below finds the latch, or another tid.
            fence(Ordering::Release);
            return Some(seen);
        }
        // The holder is copying a row.
        spinner.spin();
    }
}

/// Lets go of a latched record, whose tid is now `tid`.
#[inline(always)]
fn unlatch(record: RecordRef, tid: Tid) {
    // Release: who sees this tid sees the words.
    record.tid().store(tid.0, Ordering::Release);
}

impl Unprotected {
    /// An access for the worker that `participant` stands for.
    pub fn new(participant: Participant) -> Unprotected {
        Unprotected {
            participant,
            recorder: Recorder::default(),
            log: Vec::new(),
            changes: IndexChanges::default(),
            claimed: Vec::new(),
            deleted: Vec::new(),
            written: Vec::new(),
            scratch: Scratch::default(),
            heap: Heap::new(),
            last: Tid(0),
            phases: Phases::default(),
        }
    }

    /// The version that a record gets which is latched, and had `tid`.
    #[inline]
    fn next_version(&mut self, tid: Tid) -> Tid {
        let epoch = self.participant.epochs().current();
        self.last = self.last.max(Tid(tid.version())).next_in(epoch);
        Tid(self.last.0 | tid.0 & Tid::ABSENT)
    }

    /// As [`Unprotected::next_version`], of a record whose words were written: another one, so that
    /// who reads them meanwhile sees it. A history has the versions of a transaction installed at
    /// its end.
    #[inline]
    fn written_version(&mut self, tid: Tid) -> Tid {
        match self.recorder.log() {
            None => self.next_version(tid),
            Some(_) => tid,
        }
    }

    /// Makes sure that no other attempt deletes the record or changes its entries, and that it is
    /// alive.
    fn claim(&mut self, record: RecordRef) -> Result<(), AbortCause> {
        if !self.claimed.contains(&record) {
            // Acquire pairs with the release in `finish`: what the last claimant did is there.
            let before = record.aux().fetch_or(CLAIMED, Ordering::Acquire);
            if before & CLAIMED != 0 {
                return Err(AbortCause::KeyInTransit);
            }
            self.claimed.push(record);
        }
        match Tid(record.tid().load(Ordering::Acquire)).is_dead() {
            true => Err(AbortCause::KeyInTransit),
            false => Ok(()),
        }
    }

    /// Reads columns, some of them byte strings, as of one moment.
    fn read_whole(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) {
        let (layout, row) = (table.layout(), table.row(record));
        let load = |memory: &mut Memory| {
            for &(column, register) in columns {
                let slot = layout.column(column).load(row, &mut memory.heap);
                memory.slots[register.0 as usize] = slot;
            }
        };
        if self.recorder.log().is_some() {
            // The tid does not tell of what was written: versions are installed at the end.
            let latched = latch(record);
            load(memory);
            if let Some(tid) = latched {
                unlatch(record, tid);
            }
        } else {
            let mut spinner = Spinner::default();
            loop {
                // Acquire pairs with the release of the last writer.
                let before = Tid(record.tid().load(Ordering::Acquire));
                if !before.is_locked() {
                    load(memory);
                    // Acquire pairs with the release fence in `latch`.
                    fence(Ordering::Acquire);
                    let after = record.tid().load(Ordering::Relaxed);
                    // The words of a dead record stay as they are.
                    if after == before.0 || before.is_dead() {
                        break;
                    }
                }
                spinner.spin();
            }
        }
        for &(_, register) in columns {
            let slot = memory.slots[register.0 as usize];
            if is_spilled(slot) {
                // SAFETY: no other attempt wrote while the pointer was read; the epoch entered by
                // `begin` keeps the blob.
                let slot = unsafe { resolve(slot, &mut memory.heap) };
                memory.slots[register.0 as usize] = slot;
            }
        }
    }

    /// Writes columns of a record in place.
    fn write(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        changed: ColumnSet,
        memory: &Memory,
    ) {
        let (layout, row) = (table.layout(), table.row(record));
        let old = self.scratch.take(layout.words());
        let new = match changed.intersects(layout.spilling()) {
            true => Some(self.scratch.take(layout.words())),
            false => None,
        };
        // An update of a record that is gone is lost.
        let Some(tid) = latch(record) else { return };
        // SAFETY: the scratch is cleared only when the attempt has ended.
        layout.copy(changed, row, unsafe { old.words() });
        for &(column, register) in columns {
            let slot = memory.slots[register.0 as usize];
            layout.column(column).store(row, slot, &memory.heap);
        }
        if let Some(new) = new {
            // SAFETY: as above.
            layout.copy(changed, row, unsafe { new.words() });
        }
        let written = self.written_version(tid);
        unlatch(record, written);
        let columns = changed;
        let change = Change::Update { columns, old, new };
        self.log.push(Undo::new(record, table, change));
    }

    /// Writes columns, and moves the record's entries if need be. Returns the record in the way,
    /// and the index, when a unique index has the new key for another one; then nothing was
    /// written.
    fn write_and_move(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        let changed: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        if table.indexed_columns().intersects(changed) {
            // Also when the key stays: no other attempt shall change it until this one ends.
            self.claim(record)?;
            let refused = self.move_entries(table, record, columns, changed, memory)?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        self.write(table, record, columns, changed, memory);
        Ok(None)
    }

    #[cold]
    fn move_entries(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        changed: ColumnSet,
        memory: &mut Memory,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        for (position, index) in table.indexes().iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            // The claim keeps the indexed columns as they are.
            let old = table.entry_key_of(index, table.row(record), &mut memory.heap)?;
            let new = InPlace::new_key(table, position, record, columns, memory)?;
            if old == new && self.changes.is_empty() {
                continue;
            }
            let moved = self.move_entry(table, position, record, (old, new))?;
            if let Changed::Taken(other) = moved {
                self.move_back(table, record, (columns, changed), position, memory)?;
                return Ok(Some((position, other)));
            }
        }
        Ok(None)
    }

    /// Moves the record from one key to another one in an index.
    fn move_entry(
        &mut self,
        table: &Table,
        position: usize,
        record: RecordRef,
        (old, new): (EntryKey, EntryKey),
    ) -> Result<Changed, Stop> {
        let deleted = &self.deleted;
        self.changes.change(
            table,
            position,
            record,
            (Some(old), new),
            &self.participant,
            &mut self.recorder,
            |other| deleted.contains(&other),
            |_| Ok(()),
        )
    }

    /// Moves the entries of a record back that an update has moved in the indexes before the one
    /// that refuses it.
    fn move_back(
        &mut self,
        table: &Table,
        record: RecordRef,
        (columns, changed): (&[(ColumnId, Reg)], ColumnSet),
        refusing: usize,
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        for (position, index) in table.indexes()[..refusing].iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            let old = table.entry_key_of(index, table.row(record), &mut memory.heap)?;
            let new = InPlace::new_key(table, position, record, columns, memory)?;
            if old != new
                && let Changed::Taken(_) = self.move_entry(table, position, record, (new, old))?
            {
                return Err(AbortCause::KeyInTransit.into());
            }
        }
        Ok(())
    }

    /// Inserts over a record that the attempt has deleted.
    fn revive(
        &mut self,
        table: &Table,
        record: RecordRef,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop> {
        let columns: Vec<(ColumnId, Reg)> = (0..values.len())
            .map(|column| (ColumnId(column as u16), values[column]))
            .collect();
        let was_deleted = self.deleted.iter().position(|deleted| *deleted == record);
        let was_deleted = was_deleted.map(|position| self.deleted.swap_remove(position));
        if let Some((index, other)) = self.write_and_move(table, record, &columns, memory)? {
            // It stays deleted.
            self.deleted.extend(was_deleted);
            return exists(index, other);
        }
        if let Some(tid) = latch(record) {
            unlatch(record, Tid(tid.0 & !Tid::ABSENT));
        }
        self.log.push(Undo::new(record, table, Change::Revive));
        Ok(Inserted::New(Handle { record, note: 0 }))
    }
}

/// What an insert says about a record that has its key.
fn exists(index: usize, record: RecordRef) -> Result<Inserted, Stop> {
    let tid = Tid(record.tid().load(Ordering::Acquire));
    if tid.is_absent() {
        // It is leaving.
        return Err(AbortCause::KeyInTransit.into());
    }
    let handle = Handle { record, note: 0 };
    Ok(Inserted::Exists { index, handle })
}

impl Access for Unprotected {
    #[inline]
    fn begin(&mut self) {
        self.participant.enter();
    }

    #[inline(always)]
    fn visit(
        &mut self,
        _: &Table,
        record: RecordRef,
        _: Intent,
        _: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        // Acquire: the row is there that the tid speaks of.
        let tid = Tid(record.tid().load(Ordering::Acquire));
        Ok(match tid {
            tid if tid.is_dead() => Visit::Dead,
            tid if tid.is_absent() => Visit::Absent,
            _ => Visit::Present(Handle { record, note: 0 }),
        })
    }

    #[inline(always)]
    fn guard(&mut self, _: &Table, _: usize, _: NodeVersion) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        let (layout, row) = (table.layout(), table.row(handle.record));
        // What lies elsewhere, or in several words that must be of one value.
        let byte_strings = layout.byte_strings().union(layout.spilling());
        if columns
            .iter()
            .any(|(column, _)| byte_strings.contains(*column))
        {
            self.read_whole(table, handle.record, columns, memory);
            return Ok(());
        }
        for &(column, register) in columns {
            let slot = layout.column(column).load(row, &mut memory.heap);
            memory.slots[register.0 as usize] = slot;
        }
        Ok(())
    }

    #[inline]
    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        let record = handle.record;
        match self.write_and_move(table, record, columns, memory)? {
            None => Ok(()),
            Some((index, _)) => Err(refused_update(table, index, record, columns, memory).into()),
        }
    }

    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        charge(Work::Record);
        // Others may read and update it from now on, but not delete or move it before it is certain
        // to stay.
        let (record, number) =
            links::create(table, values, memory, 0, Some(CLAIMED), &self.participant)?;
        let deleted = &self.deleted;
        let linked = links::link(
            table,
            record,
            values,
            number,
            memory,
            &self.participant,
            &mut self.recorder,
            &mut self.changes,
            |other| deleted.contains(&other),
            |_| Ok(()),
            |record| {
                // Others may have met it in the indexes, and be writing to it.
                if latch(record).is_some() {
                    links::bury(record);
                }
            },
        );
        let in_the_way = match linked {
            Ok(Linked::All) => {
                self.claimed.push(record);
                self.log.push(Undo::new(record, table, Change::Insert));
                return Ok(Inserted::New(Handle { record, note: 0 }));
            }
            Ok(Linked::Exists(index, other)) => Ok((index, other)),
            Err(stop) => Err(stop),
        };
        links::retire(table, record, &self.participant);
        let (index, other) = in_the_way?;
        Ok(match index == 0 && self.deleted.contains(&other) {
            true => self.revive(table, other, values, memory)?,
            false => exists(index, other)?,
        })
    }

    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        let record = handle.record;
        self.claim(record)?;
        if !self.deleted.contains(&record)
            && let Some(tid) = latch(record)
        {
            unlatch(record, Tid(tid.0 | Tid::ABSENT));
            self.deleted.push(record);
            self.log.push(Undo::new(record, table, Change::Delete));
        }
        Ok(())
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        match self.revive(table, handle.record, values, memory)? {
            Inserted::New(_) => Ok(()),
            Inserted::Exists { .. } => Err(AbortCause::KeyInTransit.into()),
        }
    }

    fn commit(&mut self) -> Result<(), Stop> {
        point("none.executed");
        self.phases.enter(Phase::Install);
        self.make_final();
        point("none.written");
        self.finish();
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.changes.is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.changes.resolve(table, index, entry)
    }

    fn roll_back(&mut self) {
        self.undo();
        self.finish();
    }
}

impl Recording for Unprotected {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.recorder.log()
    }
}

impl Planning for Unprotected {}
impl Remembering for Unprotected {}
impl Scanning for Unprotected {}
impl Travelling for Unprotected {}
impl Deferring for Unprotected {}
impl Flawed for Unprotected {}

impl Recorded for Unprotected {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        assert!(
            journal.is_none(),
            "commits that are not isolated have no order to be reported in"
        );
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        None
    }
}

impl Phased for Unprotected {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
