//! Records and their index entries: insertions, moves, and keys that change hands.
//!
//! A record's keys never change: an update of indexed columns deletes it and inserts another one
//! with the rest of the row, which the attempt follows. So a snapshot finds each row under the keys
//! that it had.
//!
//! An index has one entry for a key. Where the key of a new record is still that of a deleted one,
//! it *takes the key over*: at commit, when the attempt holds the deleted record as well, the entry
//! is given to the new record and marked (as *moving*), and the new record's first version lists
//! whom it had it from. Who writes follows the entry to the new record; a snapshot from before goes
//! on to the former one ([`Mvcc::resolve_entry`]). The mark goes when no snapshot is as old.
//!
//! An attempt that has found the key free has seen a version of the deleted record that says so.
//! Taking over therefore writes another such version (`WriteKind::Touch`), which validation finds
//! as it finds any other write.

use kiln_history::{Cell, EntryChange, WriteKind as Written};
use kiln_platform::atomic::Ordering;
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::executor::{fingerprint, unique_violation};
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Handle, Stop};
use kiln_storage::index::Insertion;
use kiln_storage::key::KeyField;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{COLUMNS_MAX, ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, EntryKey, Table};

use super::takeovers::Takeover;
use super::version::{Head, head};
use super::{Item, Mvcc, NO_WRITE, WriteKind};
use crate::shared::index_changes::leave_key;
use crate::shared::links;
use crate::shared::recorder::object;

/// What came of putting a record into the indexes.
enum Linked {
    /// It is in all.
    All,
    /// It is in none: the index at this position has its key for another row.
    Exists(usize, Handle),
}

impl Mvcc {
    /// The record that the attempt finds at an entry.
    pub(super) fn resolve_entry(&self, table: &Table, index: usize, entry: Entry) -> RecordRef {
        let mut record = entry.record();
        if self.snapshot.is_none() {
            return self.heir(table, index, record);
        }
        while let Some(former) = self.former_holder(index, record) {
            record = former;
        }
        record
    }

    /// Who had the key of `record`, if the snapshot is from before that took it over.
    pub(super) fn former_holder(&self, index: usize, record: RecordRef) -> Option<RecordRef> {
        let snapshot = self.snapshot?;
        // Acquire pairs with the release store that linked the record's first version.
        let Head::Chain(newest) = head(record.aux().load(Ordering::Acquire)) else {
            return None;
        };
        let mut first = newest;
        while let Some(older) = first.next() {
            first = older;
        }
        first.link(index).filter(|_| first.wts() > snapshot)
    }

    /// Who has the key of `record` in this attempt's eyes.
    fn heir(&self, table: &Table, index: usize, record: RecordRef) -> RecordRef {
        let takeover = self.takeovers.find(table, index, record);
        takeover.map_or(record, |position| self.takeovers.heir(position))
    }

    /// Whether the attempt has deleted `record`.
    fn has_deleted(&self, record: RecordRef) -> bool {
        self.written.get(record).is_some_and(|write| {
            !matches!(
                self.writes[write as usize].kind,
                WriteKind::Update | WriteKind::Insert
            )
        })
    }

    /// Inserts a row: absent until it commits, but in all indexes in which no other row has its
    /// keys.
    pub(super) fn add(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop> {
        Ok(match self.add_record(table, values, None, memory)? {
            Ok(handle) => Inserted::New(handle),
            Err((index, handle)) => Inserted::Exists { index, handle },
        })
    }

    /// Makes a record and puts it into the indexes; `number` is its row number if it has one
    /// already. Otherwise returns the unique index that refused it, and the row that is in the way.
    fn add_record(
        &mut self,
        table: &Table,
        values: &[Reg],
        number: Option<i64>,
        memory: &mut Memory,
    ) -> Result<Result<Handle, (usize, Handle)>, Stop> {
        let participant = &self.participant;
        let (record, mut fresh) =
            links::create(table, values, memory, Tid::ABSENT, Some(0), participant)?;
        if let Some(number) = number
            && let Some(access) = table.layout().row_number()
        {
            access.store(table.row(record), Slot::from_i64(number), &memory.heap);
            fresh = number;
        }
        let taken_before = self.takeovers.len();
        let mut inherited = Vec::new();
        let linked = self.link(table, record, values, fresh, &mut inherited, memory);
        if let Ok(Linked::All) = linked {
            let note = self.items.len() as u32;
            // Only this attempt changes it before it is installed or dead.
            let version = Tid(record.tid().load(Ordering::Relaxed)).version();
            self.items.push(Item::new(record, version, None, true));
            let handle = Handle { record, note };
            self.write_for(table, handle, WriteKind::Insert);
            return Ok(Ok(handle));
        }
        self.takeovers.truncate(taken_before);
        for (position, heir) in inherited.into_iter().rev() {
            self.takeovers.set_heir(position, heir);
        }
        // Others may have met the record in the indexes: it ends as a dead one.
        self.discard(table, record);
        match linked? {
            Linked::Exists(index, handle) => {
                self.leave_keys(table, index, values, memory)?;
                Ok(Err((index, handle)))
            }
            Linked::All => unreachable!("returned above"),
        }
    }

    /// Has the attempt rely on the unique keys that a new record had for a moment, in the indexes
    /// before the one that refused it.
    #[cold]
    fn leave_keys(
        &mut self,
        table: &Table,
        before: usize,
        values: &[Reg],
        memory: &Memory,
    ) -> Result<(), Stop> {
        for position in 0..before {
            if !table.indexes()[position].supports_lookup() {
                continue;
            }
            let key = links::key_of(table, position, values, memory)?;
            let Mvcc {
                nodes,
                recorder,
                written,
                ..
            } = self;
            // A key that it would have taken over is a deleted record's, which the attempt writes:
            // it deletes or touches it.
            let is_own = |record| written.get(record).is_some();
            leave_key((table, position), &key, recorder, is_own, |touched| {
                Ok(nodes.touched(touched)?)
            })?;
        }
        Ok(())
    }

    /// Takes a record out of the indexes of which no transaction has seen a row, and gives it back.
    pub(super) fn discard(&mut self, table: &Table, record: RecordRef) {
        links::bury(record);
        links::withdraw(
            table,
            record,
            &mut self.heap,
            (&mut self.emptied, &self.participant),
            &mut self.recorder,
        );
        self.leave_grave(table, record);
    }

    /// Puts a record into the indexes. Notes in `inherited` which takeovers of the attempt's own it
    /// has got, and whose they were.
    fn link(
        &mut self,
        table: &Table,
        record: RecordRef,
        values: &[Reg],
        number: i64,
        inherited: &mut Vec<(usize, RecordRef)>,
        memory: &Memory,
    ) -> Result<Linked, Stop> {
        let value = |_: usize, field: &KeyField| match field.column {
            Some(column) => memory.slots[values[column.index()].0 as usize],
            None => Slot::from_i64(number),
        };
        for (position, index) in table.indexes().iter().enumerate() {
            let begun = self.recorder.now();
            let payload = match index.insert(&memory.heap, value, record, &self.participant)? {
                Insertion::Inserted(effect) => {
                    if let Some(begun) = begun {
                        let key = index.entry_key(&memory.heap, value)?;
                        let place = (table, position);
                        self.recorder
                            .entry(place, EntryChange::Added, record, begun, &key);
                    }
                    self.nodes.inserted(&effect)?;
                    continue;
                }
                Insertion::Exists(payload) => payload,
            };
            // SAFETY: the payload is of an index of a living table.
            let previous = unsafe { Entry::from_payload(payload) }.record();
            let known = self.takeovers.find(table, position, previous);
            let holder = known.map_or(previous, |known| self.takeovers.heir(known));
            if !self.has_deleted(holder) {
                let key = index.entry_key(&memory.heap, value)?;
                let occupant = self.occupant(table, position, &key, (previous, holder))?;
                if let Some(handle) = occupant {
                    return Ok(Linked::Exists(position, handle));
                }
            }
            match known {
                Some(known) => {
                    inherited.push((known, holder));
                    self.takeovers.set_heir(known, record);
                }
                None => self.takeovers.push(Takeover {
                    table,
                    index: position,
                    key: index.entry_key(&memory.heap, value)?,
                    previous,
                    record,
                }),
            }
        }
        Ok(Linked::All)
    }

    /// The row of `holder`, which has `key`, be it by an entry of `previous` that it takes over;
    /// when it is deleted, notes that the attempt touches it.
    fn occupant(
        &mut self,
        table: &Table,
        index: usize,
        key: &EntryKey,
        (previous, holder): (RecordRef, RecordRef),
    ) -> Result<Option<Handle>, Stop> {
        let visit = self.meet(holder)?;
        // It may have been taken over before it was met.
        let now = table.indexes()[index].find_key(key);
        if now.map(Entry::record) != Some(previous) {
            return Err(AbortCause::KeyInTransit.into());
        }
        match visit {
            Visit::Present(handle) => Ok(Some(handle)),
            Visit::Dead => Err(AbortCause::KeyInTransit.into()),
            Visit::Absent => {
                let note = self.items.len() as u32 - 1;
                let item = &self.items[note as usize];
                debug_assert!(item.record == holder && item.absent);
                // Deleted records keep a chain until they leave the indexes; without one the record
                // is another transaction's, which has not committed.
                if item.node.is_none() {
                    return Err(AbortCause::KeyInTransit.into());
                }
                let handle = Handle {
                    record: holder,
                    note,
                };
                self.write_for(table, handle, WriteKind::Touch);
                Ok(None)
            }
        }
    }

    /// Whether an update changes a key of the row.
    #[cold]
    pub(super) fn moves_keys(
        &mut self,
        table: &Table,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        changed: ColumnSet,
        memory: &mut Memory,
    ) -> Result<bool, Stop> {
        for index in table.indexes() {
            if !index.columns().intersects(changed) {
                continue;
            }
            let fields = index.key_layout().fields();
            let mut present = [Slot::NULL; COLUMNS_MAX + 1];
            for (slot, field) in present.iter_mut().zip(fields) {
                *slot = self.column_value(table, handle, field.column, memory)?;
            }
            let old = index.entry_key(&memory.heap, |position, _| present[position])?;
            let new = index.entry_key(&memory.heap, |position, field| {
                let update = columns
                    .iter()
                    .find(|(column, _)| Some(*column) == field.column);
                update.map_or(present[position], |(_, register)| {
                    memory.slots[register.0 as usize]
                })
            })?;
            if old != new {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes the row and inserts it as it is to be; the handle follows.
    #[cold]
    pub(super) fn relocate(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        let first = memory.slots.len();
        let result = self.relocate_from(table, *handle, columns, first, memory);
        memory.slots.truncate(first);
        *handle = result?;
        Ok(())
    }

    /// With the row's values in registers from `first` on.
    fn relocate_from(
        &mut self,
        table: &Table,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        first: usize,
        memory: &mut Memory,
    ) -> Result<Handle, Stop> {
        let count = table.schema().columns.len();
        let values: Vec<Reg> = (first..first + count)
            .map(|register| Reg(register as u16))
            .collect();
        let mut former = Vec::with_capacity(count);
        for column in (0..count as u16).map(ColumnId) {
            let present = self.column_value(table, handle, Some(column), memory)?;
            let update = columns.iter().find(|(updated, _)| *updated == column);
            let slot = update.map_or(present, |(_, register)| memory.slots[register.0 as usize]);
            former.push(present);
            memory.slots.push(slot);
        }
        let number = match table.layout().row_number() {
            Some(_) => Some(self.column_value(table, handle, None, memory)?.as_i64()),
            None => None,
        };
        self.mark_deleted(table, handle);
        let moved_to = match self.add_record(table, &values, number, memory)? {
            Ok(moved_to) => moved_to,
            Err((index, _)) => {
                let slots = &memory.slots;
                let error = unique_violation(table, index, memory, |column| slots[first + column]);
                // The row stays what it was, as the procedure may go on after the error.
                memory.slots[first..].copy_from_slice(&former);
                let back = self.add_record(table, &values, number, memory)?;
                let back = back.map_err(|_| AbortCause::KeyInTransit)?;
                self.moves(table, handle, back, first, memory);
                return Err(error.into());
            }
        };
        self.moves(table, handle, moved_to, first, memory);
        Ok(moved_to)
    }

    /// The row behind a handle, deleted just now, is behind another one from now on; its values are
    /// in registers from `first` on.
    fn moves(&mut self, table: &Table, from: Handle, to: Handle, first: usize, memory: &Memory) {
        let write = self.items[from.note as usize].write;
        debug_assert!(write != NO_WRITE, "it was just deleted");
        self.writes[write as usize].moved_to = Some(to);
        self.record_relocation(table, from.record, to.record, first, memory);
    }

    /// Puts a row with these values in the place of one that the attempt has deleted; the handle
    /// follows, and so do all others.
    #[cold]
    pub(super) fn replace_deleted(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        self.follow(handle);
        let number = match table.layout().row_number() {
            // The inserter alone changes it.
            Some(access) => Some(
                access
                    .load(table.row(handle.record), &mut memory.heap)
                    .as_i64(),
            ),
            None => None,
        };
        let added = self.add_record(table, values, number, memory)?;
        let back = added.map_err(|_| AbortCause::KeyInTransit)?;
        let write = self.written.get(handle.record);
        let write = write.expect("the attempt has deleted the record");
        self.writes[write as usize].moved_to = Some(back);
        *handle = back;
        Ok(())
    }

    /// Records a move as what it is; the executor adds the update.
    fn record_relocation(
        &mut self,
        table: &Table,
        from: RecordRef,
        to: RecordRef,
        first: usize,
        memory: &Memory,
    ) {
        if let Some(log) = self.recorder.log() {
            let nothing: [Cell; 0] = [];
            log.write(object(from), Written::Delete, nothing.into_iter());
            let cells = (0..table.schema().columns.len()).map(|column| {
                let slot = memory.slots[first + column];
                fingerprint(table, ColumnId(column as u16), slot, &memory.heap)
            });
            log.write(object(to), Written::Insert, cells);
        }
    }

    /// Whether no other attempt has taken over what this one is about to, asked while it holds all
    /// records concerned.
    pub(super) fn can_take_over(&self) -> bool {
        self.takeovers.iter().all(|takeover| {
            let index = &takeover.table().indexes()[takeover.index];
            let entry = index.find_key(&takeover.key);
            entry.map(Entry::record) == Some(takeover.previous)
        })
    }

    /// Gives the entries to their new records. The attempt holds all records concerned and is
    /// certain to commit.
    pub(super) fn take_over(&mut self) {
        for takeover in self.takeovers.iter() {
            let (table, record) = (takeover.table(), takeover.record);
            let kind_of = |record: RecordRef| {
                let write = self.written.get(record).expect("the attempt writes it");
                self.writes[write as usize].kind
            };
            if kind_of(record) == WriteKind::Forget {
                continue;
            }
            let index = &table.indexes()[takeover.index];
            index.set_moves();
            let begun = self.recorder.now();
            // A record that never was is the former one of no other.
            let entry = match kind_of(takeover.previous) {
                WriteKind::Forget => Entry::of(record),
                _ => Entry::moving(record),
            };
            if let Some(old) = index.find_key(&takeover.key) {
                index.replace_moved_key(&takeover.key, old, entry);
            }
            if let Some(begun) = begun {
                let (place, key) = ((table, takeover.index), &takeover.key);
                if kind_of(takeover.previous) == WriteKind::Forget {
                    let change = EntryChange::Removed;
                    self.recorder
                        .entry(place, change, takeover.previous, begun, key);
                }
                let change = EntryChange::Added;
                self.recorder.entry(place, change, record, begun, key);
            }
        }
    }

    /// Whether a new record needs a node: because it takes over a key from a row that was.
    pub(super) fn predecessors(
        &self,
        record: RecordRef,
    ) -> impl Iterator<Item = (usize, RecordRef)> + Clone + '_ {
        self.takeovers
            .of(record)
            .filter(|takeover| {
                let write = self.written.get(takeover.previous);
                write.is_none_or(|write| self.writes[write as usize].kind != WriteKind::Forget)
            })
            .map(|takeover| (takeover.index, takeover.previous))
    }

    /// Records that the entries of a deleted record go some time after its deletion: when no
    /// snapshot has them any more.
    pub(super) fn record_removals(&mut self, table: &Table, record: RecordRef) {
        if self.recorder.log().is_none() {
            return;
        }
        for position in 0..table.indexes().len() {
            let mark = self.heap.mark();
            let row = table.row(record);
            // The key was short enough when the entry was made.
            if let Ok(key) = table.entry_key_of(&table.indexes()[position], row, &mut self.heap) {
                self.recorder.entry_goes((table, position), record, &key);
            }
            self.heap.release(mark);
        }
    }
}
