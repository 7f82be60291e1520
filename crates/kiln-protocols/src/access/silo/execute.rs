//! The execution phase: meeting, reading and buffering, without a lock.

use kiln_history::Version;
use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_procedure::access::{Inserted, Visit};
use kiln_procedure::executor::unique_violation;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Handle, Stop};
use kiln_storage::layout::{is_spilled, resolve};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{EntryKey, Table};

use super::{Item, NO_WRITE, Silo, Write, WriteKind};
use crate::canary::Canary;
use crate::shared::index_changes::Changed;
use crate::shared::links::{self, Linked};
use crate::shared::record_map::RecordMap;

impl Silo {
    /// Notes a record's tid, or finds that the attempt writes it already.
    #[inline(always)]
    pub(super) fn meet(&mut self, record: RecordRef) -> Result<Visit, AbortCause> {
        if let Some(write) = self.written.get(record) {
            let write = &self.writes[write as usize];
            return Ok(match write.kind {
                WriteKind::Update | WriteKind::Insert => Visit::Present(Handle {
                    record,
                    note: write.item,
                }),
                WriteKind::Delete | WriteKind::Forget => Visit::Absent,
            });
        }
        let tid = Silo::stable_tid(record).ok_or(AbortCause::ReadLock)?;
        if tid.is_dead() {
            return Ok(Visit::Dead);
        }
        if Canary::AbsenceNotNoted.sings() && tid.is_absent() {
            return Ok(Visit::Absent);
        }
        let note = self.items.len() as u32;
        self.items.push(Item {
            record,
            observed: tid.0,
            write: NO_WRITE,
        });
        Ok(if tid.is_absent() {
            Visit::Absent
        } else {
            Visit::Present(Handle { record, note })
        })
    }

    /// The version that the attempt observed of a record that it met; for histories.
    pub(super) fn observed_version(&self, record: RecordRef) -> Version {
        let met = self.items.iter().rev().find(|item| item.record == record);
        // A dead record is not noted: its version is final.
        let tid = met.map_or_else(
            || record.tid().load(Ordering::Relaxed),
            |item| item.observed,
        );
        Version(Tid(tid).version())
    }

    /// The write of the record behind `handle`, if the attempt has one.
    #[inline(always)]
    fn write_of(&mut self, handle: Handle) -> Option<usize> {
        let item = &mut self.items[handle.note as usize];
        if item.write == NO_WRITE {
            // It may have been written through another handle.
            item.write = self.written.get(handle.record)?;
        }
        Some(item.write as usize)
    }

    /// Reads columns: those written from the image, the others from the record.
    #[inline(always)]
    pub(super) fn load(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        let (written, image): (ColumnSet, &[AtomicU64]) = match self.write_of(*handle) {
            Some(write) if !self.writes[write].columns.is_empty() => {
                (self.writes[write].columns, self.writes[write].image())
            }
            _ => (ColumnSet::EMPTY, &[]),
        };
        let (layout, row) = (table.layout(), table.row(handle.record));
        let mut spilled = false;
        for &(column, register) in columns {
            let from = if written.contains(column) { image } else { row };
            let slot = layout.column(column).load(from, &mut memory.heap);
            spilled |= is_spilled(slot);
            memory.slots[register.0 as usize] = slot;
        }
        // Acquire pairs with the release fence between locking and installing: if one of the
        // loads above saw a word of a newer version, the load below sees its lock bit or tid.
        fence(Ordering::Acquire);
        let now = handle.record.tid().load(Ordering::Relaxed);
        if now != self.items[handle.note as usize].observed {
            return Err(AbortCause::ReadValidation);
        }
        if spilled {
            for &(_, register) in columns {
                let slot = memory.slots[register.0 as usize];
                if is_spilled(slot) {
                    // SAFETY: the tid did not change while the pointer was read, or the pointer is
                    // in the attempt's own image; the epoch entered by `begin` keeps the blob.
                    let slot = unsafe { resolve(slot, &mut memory.heap) };
                    memory.slots[register.0 as usize] = slot;
                }
            }
        }
        Ok(())
    }

    /// The write of the record behind `handle`, made if there is none.
    fn write_for(&mut self, table: &Table, handle: Handle, kind: WriteKind) -> usize {
        if let Some(write) = self.write_of(handle) {
            return write;
        }
        let write = self.writes.len();
        self.writes.push(Write {
            record: handle.record,
            table,
            item: handle.note,
            kind,
            columns: ColumnSet::EMPTY,
            image: None,
        });
        self.written.insert(handle.record, write as u32);
        self.items[handle.note as usize].write = write as u32;
        write
    }

    /// Writes columns to the record's image.
    pub(super) fn buffer(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        let changed: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        if table.indexed_columns().intersects(changed) {
            let taken = self.move_entries(table, *handle, columns, changed, memory)?;
            if let Some((index, other)) = taken {
                return Err(self.refuse(table, index, other, *handle, columns, memory));
            }
        }
        self.keep(table, handle, columns, memory);
        Ok(())
    }

    /// Writes columns to the record's image; its entries are where they belong already.
    fn keep(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &Memory,
    ) {
        let changed: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        let write = self.write_for(table, *handle, WriteKind::Update);
        let write = &mut self.writes[write];
        if write.image.is_none() {
            write.image = Some(self.scratch.take(table.layout().words()));
        }
        let (layout, image) = (table.layout(), write.image());
        for blob in layout.blobs(write.columns.intersection(changed), image) {
            // SAFETY: an image's blob is the attempt's own until it is installed.
            unsafe { kiln_storage::layout::Blob::free(blob) };
        }
        for &(column, register) in columns {
            let slot = memory.slots[register.0 as usize];
            layout.column(column).store(image, slot, &memory.heap);
        }
        write.columns = write.columns.union(changed);
    }

    /// Gives the record entries under its new keys in the indexes that the update concerns. Returns
    /// the index and the record in the way when a unique one has the key already.
    #[cold]
    fn move_entries(
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
            let (old, new) = self.keys(table, position, handle, columns, memory)?;
            // A record that comes back from its deletion may have lost its key meanwhile.
            if old == new && self.changes.is_empty() {
                continue;
            }
            self.claim(handle.record)?;
            let Silo {
                nodes,
                changes,
                written,
                writes,
                participant,
                recorder,
                ..
            } = self;
            let changed = changes.change(
                table,
                position,
                handle.record,
                (Some(old), new),
                participant,
                recorder,
                |other| is_deleted(written, writes, other),
                |effect| Ok(nodes.inserted(effect)?),
            )?;
            if let Changed::Taken(other) = changed {
                return Ok(Some((position, other)));
            }
        }
        Ok(None)
    }

    /// Makes sure that no other attempt moves entries of the record.
    fn claim(&mut self, record: RecordRef) -> Result<(), AbortCause> {
        const CLAIMED: u64 = 1;
        if self.claimed.contains(&record) || Canary::MovedByTwo.sings() {
            return Ok(());
        }
        // Acquire pairs with the release in `finish`: no moving entry of the last one is left.
        let claimed =
            record
                .aux()
                .compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed);
        match claimed {
            Ok(_) => {
                self.claimed.push(record);
                Ok(())
            }
            Err(_) => Err(AbortCause::KeyInTransit),
        }
    }

    /// The present and the future key of a record in an index.
    fn keys(
        &mut self,
        table: &Table,
        index: usize,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(EntryKey, EntryKey), Stop> {
        let index = &table.indexes()[index];
        let fields = index.key_layout().fields();
        let mut present = [Slot::NULL; kiln_storage::schema::COLUMNS_MAX + 1];
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
    fn refuse(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Stop {
        match self.meet(other) {
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

    /// Inserts a record: absent, but in all indexes, so that nobody else can.
    pub(super) fn add(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Stop> {
        let absent = match Canary::InsertedPresent.sings() {
            true => 0,
            false => Tid::ABSENT,
        };
        let (record, number) = links::create(table, values, memory, absent, 0, &self.participant)?;
        let Silo {
            nodes,
            changes,
            written,
            writes,
            participant,
            recorder,
            ..
        } = self;
        let linked = links::link(
            table,
            record,
            values,
            number,
            memory,
            participant,
            recorder,
            changes,
            |other| is_deleted(written, writes, other),
            |effect| Ok(nodes.inserted(effect)?),
        );
        let linked = match linked {
            Ok(Linked::All) => {
                let note = self.items.len() as u32;
                self.items.push(Item {
                    record,
                    // Nobody but this attempt changes it before it is installed or dead.
                    observed: record.tid().load(Ordering::Relaxed),
                    write: NO_WRITE,
                });
                let handle = Handle { record, note };
                self.write_for(table, handle, WriteKind::Insert);
                return Ok(Inserted::New(handle));
            }
            Ok(Linked::Exists(index, other)) => Ok((index, other)),
            Err(stop) => Err(stop),
        };
        // Others may have met the record in the indexes: it ends as a dead one.
        links::bury(record);
        links::retire(table, record, &self.participant);
        let (index, other) = linked?;
        if index == 0
            && let Some(write) = self.written.get(other)
            && is_deleted(&self.written, &self.writes, other)
        {
            return self.revive(table, write as usize, values, memory);
        }
        self.exists(table, index, other, values, memory)
    }

    /// What an insert says when a unique index has the key for another record.
    fn exists(
        &mut self,
        table: &Table,
        index: usize,
        other: RecordRef,
        values: &[Reg],
        memory: &Memory,
    ) -> Result<Inserted, Stop> {
        let visit = self.meet(other)?;
        let key = links::key_of(table, index, values, memory)?;
        match visit {
            Visit::Present(handle) if self.changes.is_found(table, index, &key, other) => {
                Ok(Inserted::Exists { index, handle })
            }
            // It is leaving, or went on to another key before it was met.
            _ => Err(AbortCause::KeyInTransit.into()),
        }
    }

    /// Inserts over a record that the attempt itself has deleted: an update of all columns.
    fn revive(
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
            return self.exists(table, index, other, values, memory);
        }
        // The entries have moved. Asked again they would move from the image's old key, which they may
        // have left by going back to the row's.
        self.keep(table, &handle, &columns, memory);
        Ok(Inserted::New(handle))
    }

    /// Notes that a record is to go.
    pub(super) fn mark_deleted(&mut self, table: &Table, handle: &Handle) {
        let write = self.write_for(table, *handle, WriteKind::Delete);
        let write = &mut self.writes[write];
        write.kind = match write.kind {
            WriteKind::Insert | WriteKind::Forget => WriteKind::Forget,
            WriteKind::Update | WriteKind::Delete => WriteKind::Delete,
        };
    }
}

/// Whether the attempt with these writes has deleted `record`.
fn is_deleted(written: &RecordMap, writes: &[Write], record: RecordRef) -> bool {
    written.get(record).is_some_and(|write| {
        matches!(
            writes[write as usize].kind,
            WriteKind::Delete | WriteKind::Forget
        )
    })
}
