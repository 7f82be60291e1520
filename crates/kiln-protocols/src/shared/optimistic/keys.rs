//! Index entries: insertions, and updates of indexed columns.

use kiln_platform::atomic::Ordering;
use kiln_platform::spin::Spinner;
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::executor::unique_violation;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Handle, Stop};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{COLUMNS_MAX, ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{EntryKey, Table};

use super::{CLAIMED, Commit, Item, Optimistic, Write, WriteKind};
use crate::canary::Canary;
use crate::shared::index_changes::{Changed, Touched};
use crate::shared::links::{self, Linked};
use crate::shared::node_set::NodeSet;
use crate::shared::record_map::RecordMap;

impl<C: Commit> Optimistic<C> {
    /// Gives the record entries under its new keys in the indexes that the update concerns. Returns
    /// the index and the record in the way when a unique one has the key already.
    #[cold]
    pub(super) fn move_entries(
        &mut self,
        table: &Table,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        changed: ColumnSet,
        memory: &mut Memory,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        for (position, index) in table.indexes().iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            if !C::VALIDATES {
                // No other attempt changes an indexed column until this one ends, be it to the same
                // key.
                self.claim_alive(handle.record)?;
            }
            let (old, new) = self.keys(table, position, handle, columns, memory)?;
            if !self.early_aborts && !self.is_as_observed(handle) {
                // These may be keys of several versions. It may be as it was again, when another
                // one has failed that had locked it.
                self.is_doomed = true;
                return Ok(None);
            }
            // A record that comes back from its deletion may have lost its key meanwhile.
            if old == new && self.changes.is_empty() {
                continue;
            }
            self.claim(handle.record)?;
            if let Changed::Taken(other) =
                self.move_entry(table, position, handle.record, (old, new))?
            {
                self.move_back(table, handle, (columns, changed), position, memory)?;
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
        self.protocol.adds_entry(table, position);
        let Optimistic {
            protocol,
            nodes,
            changes,
            written,
            writes,
            participant,
            recorder,
            early_aborts,
            ..
        } = self;
        changes.change(
            table,
            position,
            record,
            (Some(old), new),
            participant,
            recorder,
            |other| is_deleted(written, writes, other),
            |touched| note_touched((protocol, *early_aborts), nodes, table, touched),
        )
    }

    /// Moves the entries of a record back that an update has moved in the indexes before the one
    /// that refuses it.
    fn move_back(
        &mut self,
        table: &Table,
        handle: Handle,
        (columns, changed): (&[(ColumnId, Reg)], ColumnSet),
        refusing: usize,
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        for (position, index) in table.indexes()[..refusing].iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            let (old, new) = self.keys(table, position, handle, columns, memory)?;
            if old == new {
                continue;
            }
            if let Changed::Taken(_) =
                self.move_entry(table, position, handle.record, (new, old))?
            {
                return Err(AbortCause::KeyInTransit.into());
            }
        }
        Ok(())
    }

    /// Makes sure that no other attempt moves entries of the record.
    fn claim(&mut self, record: RecordRef) -> Result<(), AbortCause> {
        if self.claimed.contains(record) || Canary::MovedByTwo.sings() {
            return Ok(());
        }
        // Acquire pairs with the release in `finish`: no moving entry of the last one is left.
        let before = record.aux().fetch_or(CLAIMED, Ordering::Acquire);
        if before & CLAIMED != 0 {
            return Err(AbortCause::KeyInTransit);
        }
        self.claimed.push(record);
        Ok(())
    }

    /// Where commits validate nothing: makes sure that no other attempt moves, deletes or inserts
    /// the record.
    pub(super) fn claim_alive(&mut self, record: RecordRef) -> Result<(), AbortCause> {
        let is_new = || {
            let write = self.written.get(record);
            write.is_some_and(|write| self.writes[write as usize].inserts())
        };
        // Acquire: what the last one to have the claim installed is there.
        let tid = || Tid(record.tid().load(Ordering::Acquire));
        if tid().is_absent() && !is_new() {
            return Err(AbortCause::KeyInTransit);
        }
        self.claim(record)?;
        match tid().is_dead() {
            true => Err(AbortCause::KeyInTransit),
            false => Ok(()),
        }
    }

    /// The present and the future key of a record in an index.
    pub(super) fn keys(
        &mut self,
        table: &Table,
        index: usize,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(EntryKey, EntryKey), Stop> {
        let index = &table.indexes()[index];
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
        Ok((old, new))
    }

    /// One column as the attempt sees it; `None` stands for the row number.
    fn column_value(
        &mut self,
        table: &Table,
        handle: Handle,
        column: Option<ColumnId>,
        memory: &mut Memory,
    ) -> Result<Slot, AbortCause> {
        let Some(column) = column else {
            let access = table
                .layout()
                .row_number()
                .expect("a numbered table has row numbers");
            return Ok(access.load(table.row(handle.record), &mut memory.heap));
        };
        // A register beyond the procedure's own takes the value.
        let register = memory.slots.len();
        memory.slots.push(Slot::NULL);
        let loaded = self.load(table, &handle, &[(column, Reg(register as u16))], memory);
        let slot = memory.slots.pop().expect("just pushed");
        loaded.map(|()| slot)
    }

    /// What to do about a record that has a unique key already: 23505 if it is there to stay.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Stop {
        match self.meet(table, other, Intent::Read) {
            Err(cause) => cause.into(),
            Ok(Visit::Absent | Visit::Dead) => AbortCause::KeyInTransit.into(),
            Ok(Visit::Present(_)) => {
                match self.keys(table, index, handle, columns, memory) {
                    Ok((_, key)) if self.changes.is_found(table, index, &key, other) => {}
                    // It went on to another key before it was met.
                    Ok(_) => return AbortCause::KeyInTransit.into(),
                    Err(stop) => return stop,
                }
                let mut values = vec![Slot::NULL; table.schema().columns.len()];
                for &column in &table.indexes()[index].definition().columns {
                    let update = columns.iter().find(|(updated, _)| *updated == column);
                    let value = match update {
                        Some((_, register)) => Ok(memory.slots[register.0 as usize]),
                        None => self.column_value(table, handle, Some(column), memory),
                    };
                    match value {
                        Ok(slot) => values[column.index()] = slot,
                        Err(cause) => return cause.into(),
                    }
                }
                unique_violation(table, index, memory, |column| values[column]).into()
            }
        }
    }

    /// Inserts a record: absent, but in all indexes, so that no other attempt can insert it.
    pub(super) fn add(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop> {
        let mut spinner = Spinner::default();
        loop {
            if let Some(inserted) = self.try_add(table, values, memory)? {
                return Ok(inserted);
            }
            // The attempt that deletes the row takes it out of the indexes now, and waits for
            // nothing.
            spinner.spin();
        }
    }

    /// As [`Optimistic::add`]; `None`, where commits validate nothing or nothing aborts early, when
    /// a row with one of the keys is leaving.
    #[inline(always)]
    fn try_add(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Option<Inserted>, Stop> {
        let absent = match Canary::InsertedPresent.sings() {
            true => 0,
            false => Tid::ABSENT,
        };
        let (record, number) = links::create(
            table,
            values,
            memory,
            absent,
            self.protocol.new_aux(),
            &self.participant,
        )?;
        let linked = match self.link_new(table, record, values, number, memory) {
            Ok(Linked::All) => {
                let handle = self.enter_new(table, record);
                if !self.early_aborts {
                    self.offer(record);
                }
                return Ok(Some(Inserted::New(handle)));
            }
            Ok(Linked::Exists(index, other)) => Ok((index, other)),
            Err(stop) => Err(stop),
        };
        if !self.early_aborts
            && let Ok(met) = linked
            && let Some(inserted) = self.insert_late(table, record, met, values, memory)?
        {
            return Ok(inserted);
        }
        links::retire(table, record, &self.participant);
        let (index, other) = linked?;
        if index == 0
            && let Some(write) = self.written.get(other)
            && is_deleted(&self.written, &self.writes, other)
        {
            return self.revive(table, write as usize, values, memory).map(Some);
        }
        self.exists(table, index, other, values, memory)
    }

    /// Puts a new record with these values into all indexes. When it cannot be in all, it is dead
    /// and in none.
    ///
    /// # Errors
    /// 54000 when a key is too long, or an [`AbortCause`].
    #[inline(always)]
    pub fn link_new(
        &mut self,
        table: &Table,
        record: RecordRef,
        values: &[Reg],
        number: i64,
        memory: &Memory,
    ) -> Result<Linked, Stop> {
        for position in 0..table.indexes().len() {
            self.protocol.adds_entry(table, position);
        }
        let Optimistic {
            protocol,
            nodes,
            changes,
            written,
            writes,
            participant,
            recorder,
            early_aborts,
            ..
        } = self;
        links::link(
            table,
            record,
            values,
            number,
            memory,
            participant,
            recorder,
            changes,
            |other| is_deleted(written, writes, other),
            |touched| note_touched((protocol, *early_aborts), nodes, table, touched),
            // Others may have met the record in the indexes: it ends as a dead one.
            links::bury,
        )
    }

    /// Takes a new record into the attempt's sets.
    #[inline(always)]
    pub fn enter_new(&mut self, table: &Table, record: RecordRef) -> Handle {
        let note = self.items.len() as u32;
        // Only this attempt changes it before it is installed or dead, or offered to others.
        let observed = record.tid().load(Ordering::Relaxed);
        let noted = self.protocol.adopt(record);
        self.items
            .push(Item::new(record, observed, noted, self.writes.len()));
        let handle = Handle { record, note };
        self.write_for(table, handle, WriteKind::Insert);
        handle
    }

    /// What an insert says when a unique index has the key for another record; `None` as in
    /// [`Optimistic::try_add`].
    fn exists(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        values: &[Reg],
        memory: &Memory,
    ) -> Result<Option<Inserted>, Stop> {
        let visit = self.meet(table, other, Intent::Read)?;
        let key = links::key_of(table, index, values, memory)?;
        match visit {
            Visit::Present(handle) if self.changes.is_found(table, index, &key, other) => {
                Ok(Some(Inserted::Exists { index, handle }))
            }
            Visit::Absent if !C::VALIDATES && self.written.get(other).is_none() => {
                // Another attempt inserts it: both write the one row, as in healing §4.7.1.
                let (record, note) = (other, self.items.len() as u32 - 1);
                let handle = Handle { record, note };
                Ok(Some(Inserted::Exists { index, handle }))
            }
            Visit::Dead if !C::VALIDATES => Ok(None),
            // It is leaving, or went on to another key before it was met.
            _ => Err(AbortCause::KeyInTransit.into()),
        }
    }

    /// Inserts over a record that the attempt itself has deleted: an update of all columns.
    pub(super) fn revive(
        &mut self,
        table: &Table,
        write: usize,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop> {
        let Write {
            record, item, kind, ..
        } = self.writes[write];
        self.writes[write].kind = match kind {
            WriteKind::Forget => WriteKind::Insert,
            _ => WriteKind::Update,
        };
        let handle = Handle { record, note: item };
        let columns: Vec<(ColumnId, Reg)> = (0..values.len())
            .map(|column| (ColumnId(column as u16), values[column]))
            .collect();
        let all = columns.iter().map(|&(column, _)| column).collect();
        if let Some((index, other)) = self.move_entries(table, handle, &columns, all, memory)? {
            self.writes[write].kind = kind;
            let exists = self.exists(table, index, other, values, memory)?;
            return exists.ok_or(AbortCause::KeyInTransit.into());
        }
        self.writes[write].comes_back = true;
        // The entries have moved. Asked again they would move from the image's old key, which they
        // may have left by going back to the row's.
        self.keep(table, &handle, &columns, memory);
        Ok(Inserted::New(handle))
    }
}

impl<C: Commit> Optimistic<C> {
    /// Writes the values of a new row over the row that has one of its keys, but for the indexed
    /// columns: the row stays where the indexes have it.
    #[cold]
    pub(super) fn keep_over(
        &mut self,
        table: &Table,
        values: &[Reg],
        handle: &Handle,
        memory: &Memory,
    ) {
        let mut columns = [(ColumnId(0), Reg(0)); COLUMNS_MAX];
        let indexed = table.indexed_columns();
        let all = (values.iter().zip(0..)).map(|(value, column)| (ColumnId(column), *value));
        let kept = all.filter(|(column, _)| !indexed.contains(*column));
        let kept = columns.iter_mut().zip(kept);
        let count = kept.map(|(place, column)| *place = column).count();
        self.keep(table, handle, &columns[..count], memory);
    }
}

/// Takes what an attempt did to a node into account.
#[inline(always)]
fn note_touched<C: Commit>(
    (protocol, early_aborts): (&mut C, bool),
    nodes: &mut NodeSet,
    table: &Table,
    touched: Touched<'_>,
) -> Result<(), Stop> {
    if let Touched::Withdrawn(index, _) = touched {
        protocol.relies_on_gap(table, index);
    }
    match nodes.touched(touched) {
        // As in `rely_on_node`.
        Err(_) if !C::VALIDATES || !early_aborts => Ok(()),
        touched => Ok(touched?),
    }
}

/// Whether the attempt with these writes has deleted `record`.
fn is_deleted(written: &RecordMap, writes: &[Write], record: RecordRef) -> bool {
    written
        .get(record)
        .is_some_and(|write| writes[write as usize].removes())
}
