//! The execution phase: meeting, reading and buffering, without a lock.

use kiln_history::Version;
use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_procedure::access::Visit;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Handle, Stop};
use kiln_storage::index::NodeVersion;
use kiln_storage::layout::{AnySpilled, Blob, RowLayout, is_spilled, resolve};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::{Commit, Item, NO_WRITE, Optimistic, WHOLE, Write, WriteKind, awaited_tid};
use crate::canary::Canary;

impl<C: Commit> Optimistic<C> {
    /// Observes a record, or finds that the attempt writes it already.
    #[inline(always)]
    pub fn meet(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
    ) -> Result<Visit, AbortCause> {
        if let Some(write) = self.written.get(record) {
            let write = &self.writes[write as usize];
            if write.removes() {
                return Ok(Visit::Absent);
            }
            let note = write.item;
            let item = &mut self.items[note as usize];
            if item.is_split() {
                self.widen(note)?;
            } else if !Canary::ReadStaysUnobserved.sings() {
                // From now on more than its being there counts.
                item.split = WHOLE;
            }
            return Ok(Visit::Present(Handle { record, note }));
        }
        let (tid, noted) = self.protocol.observe(record, intent)?;
        if tid.is_dead() {
            return Ok(Visit::Dead);
        }
        if Canary::AbsenceNotNoted.sings() && tid.is_absent() {
            return Ok(Visit::Absent);
        }
        let note = self.items.len() as u32;
        self.items
            .push(Item::new(record, tid.0, noted, self.writes.len()));
        Ok(if tid.is_absent() {
            self.protocol.met_absent(table);
            Visit::Absent
        } else {
            Visit::Present(Handle { record, note })
        })
    }

    /// Relies on a gap.
    ///
    /// # Errors
    /// [`AbortCause::Phantom`] when the attempt relied on another version of the node before.
    #[inline(always)]
    pub(super) fn rely_on_node(&mut self, node: NodeVersion) -> Result<(), AbortCause> {
        match self.nodes.guard(node) {
            // The older version stays in the set, so that validation fails.
            Err(_) if !C::VALIDATES || !self.early_aborts => Ok(()),
            guarded => guarded,
        }
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
    pub fn write_of(&mut self, handle: Handle) -> Option<usize> {
        let (item, writes) = (
            &mut self.items[handle.note as usize],
            self.writes.len() as u32,
        );
        if item.write == NO_WRITE {
            if item.searched == writes {
                return None;
            }
            // It may have been written through another handle.
            match self.written.get(handle.record) {
                Some(write) => item.write = write,
                None => {
                    item.searched = writes;
                    return None;
                }
            }
        }
        Some(item.write as usize)
    }

    /// Reads columns: those written from the image, the others from the record.
    ///
    /// # Errors
    /// [`AbortCause::ReadValidation`] when the record has changed since it was met.
    #[inline(always)]
    pub fn load(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        let written: Option<(ColumnSet, &[AtomicU64])> = match self.write_of(*handle) {
            Some(write) if !self.writes[write].columns.is_empty() => {
                Some((self.writes[write].columns, self.writes[write].image()))
            }
            _ => None,
        };
        if self.items[handle.note as usize].is_split() {
            let read: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
            let own = written.map_or(ColumnSet::EMPTY, |(written, _)| written);
            if !self.is_covered(table, read.difference(own)) {
                self.widen(handle.note)?;
            }
        }
        let (layout, mut row) = (table.layout(), table.row(handle.record));
        let item = &self.items[handle.note as usize];
        let kept = match item.is_split() {
            true => None,
            false => (self.protocol).row_kept(handle.record, item.observed, columns),
        };
        let is_kept = kept.is_some();
        if let Some(kept) = kept {
            row = kept;
        }
        let mut spilled;
        loop {
            spilled = AnySpilled::default();
            match written {
                None => {
                    for &(column, register) in columns {
                        let slot = layout.column(column).load(row, &mut memory.heap);
                        spilled.note(slot);
                        memory.slots[register.0 as usize] = slot;
                    }
                }
                Some((written, image)) => {
                    spilled = load_mixed(layout, (row, image, written), columns, memory);
                }
            }
            // Acquire pairs with the release fence between locking and installing: if one of the
            // loads above saw a word of a newer version, the load below sees its lock bit or tid.
            fence(Ordering::Acquire);
            let item = &self.items[handle.note as usize];
            let is_unchanged = is_kept
                || match item.is_split() {
                    true => handle.record.aux().load(Ordering::Relaxed) & C::SPLIT == item.split,
                    false => handle.record.tid().load(Ordering::Relaxed) == item.observed,
                };
            if is_unchanged {
                if item.is_unobserved() && !Canary::ReadStaysUnobserved.sings() {
                    self.items[handle.note as usize].split = WHOLE;
                }
                break;
            }
            if C::VALIDATES {
                return self.load_changed(table, handle, columns, memory);
            }
            // Dead or alive, the words of a version are there until the epoch is over.
            self.items[handle.note as usize].observed = awaited_tid(handle.record).0;
        }
        if spilled.is_any() {
            // SAFETY: the tid did not change while the pointers were read, or they are in the
            // attempt's own image; the epoch entered by `begin` keeps the blobs.
            unsafe { resolve_all(columns, memory) };
        }
        Ok(())
    }

    /// The write of the record behind `handle`, made if there is none.
    pub(super) fn write_for(&mut self, table: &Table, handle: Handle, kind: WriteKind) -> usize {
        if let Some(write) = self.write_of(handle) {
            return write;
        }
        let write = self.writes.len();
        self.writes
            .push(Write::new(handle.record, table, handle.note, kind));
        self.written.insert(handle.record, write as u32);
        self.items[handle.note as usize].write = write as u32;
        write
    }

    /// Forgets the writes that are lost: no record counts as written by them.
    pub fn forget_lost_writes(&mut self) {
        self.written.clear();
        for (write, position) in self.writes.iter().zip(0..) {
            if write.kind != WriteKind::Lost {
                self.written.insert(write.record, position);
            }
        }
        for item in &mut self.items {
            let write = self.writes.get(item.write as usize);
            if write.is_some_and(|write| write.kind == WriteKind::Lost) {
                item.write = NO_WRITE;
                item.searched = 0;
            }
        }
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
    pub(super) fn keep(
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
            unsafe { Blob::free(blob) };
        }
        for &(column, register) in columns {
            let slot = memory.slots[register.0 as usize];
            layout.column(column).store(image, slot, &memory.heap);
        }
        write.columns = write.columns.union(changed);
    }

    /// Notes that a record is to go. Where commits validate nothing, a deletion of what another
    /// attempt deletes, moves or inserts is lost.
    pub(super) fn mark_deleted(
        &mut self,
        table: &Table,
        handle: &Handle,
    ) -> Result<(), AbortCause> {
        if !C::VALIDATES && self.claim_alive(handle.record).is_err() {
            return Ok(());
        }
        let item = &mut self.items[handle.note as usize];
        if item.is_unobserved() {
            // An attempt that inserts its unique keys again relies on their being this record's.
            item.split = WHOLE;
        }
        let write = self.write_for(table, *handle, WriteKind::Delete);
        let write = &mut self.writes[write];
        write.kind = match write.kind {
            // Its owner alone takes it out of the indexes.
            WriteKind::Share => return Err(AbortCause::KeyInTransit),
            WriteKind::Insert | WriteKind::Forget => WriteKind::Forget,
            WriteKind::Update | WriteKind::Delete | WriteKind::Lost => WriteKind::Delete,
        };
        Ok(())
    }
}

/// Reads the byte strings that lie outside of their rows.
///
/// # Safety
/// The slots were read from one version, or from images, whose blobs are there.
#[inline(always)]
pub(super) unsafe fn resolve_all(columns: &[(ColumnId, Reg)], memory: &mut Memory) {
    for &(_, register) in columns {
        let slot = memory.slots[register.0 as usize];
        if is_spilled(slot) {
            // SAFETY: the caller has read the slot from a version, or an image, whose blobs are
            // there.
            let slot = unsafe { resolve(slot, &mut memory.heap) };
            memory.slots[register.0 as usize] = slot;
        }
    }
}

/// Reads columns of which the attempt has written some: those from its image, the others from the
/// row. Whether any is spilled.
#[inline(never)]
pub(super) fn load_mixed(
    layout: &RowLayout,
    (row, image, written): (&[AtomicU64], &[AtomicU64], ColumnSet),
    columns: &[(ColumnId, Reg)],
    memory: &mut Memory,
) -> AnySpilled {
    let mut spilled = AnySpilled::default();
    for &(column, register) in columns {
        let from = if written.contains(column) { image } else { row };
        let slot = layout.column(column).load(from, &mut memory.heap);
        spilled.note(slot);
        memory.slots[register.0 as usize] = slot;
    }
    spilled
}
