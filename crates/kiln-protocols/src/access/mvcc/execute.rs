//! The execution phase: meeting and reading records, and preparing what is written.

use kiln_history::Version;
use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_platform::spin;
use kiln_procedure::access::Visit;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Handle, Stop};
use kiln_storage::error::{Error, SqlState};
use kiln_storage::layout::{AnySpilled, Blob, is_spilled, resolve};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::Table;

use super::split::WHOLE;
use super::version::{Head, NodeRef, Visible, head, source, status, visible};
use super::{Item, Mvcc, NO_WRITE, SPINS_MAX, Write, WriteKind};
use crate::canary::Canary;

/// The newest version of a record, as a transaction that writes meets it.
enum Newest {
    /// The record is leaving the indexes.
    Dead,
    /// It is committed.
    Version(Item),
}

/// Finds the newest version of `record`, waiting a little for one that is not decided.
#[inline]
fn newest(record: RecordRef) -> Result<Newest, AbortCause> {
    let mut found = None;
    let look = || {
        // Acquire pairs with the releases of those who link nodes and unlink them.
        let aux = record.aux().load(Ordering::Acquire);
        match head(aux) {
            Head::Row(_) => {
                // Acquire pairs with the release that ends a change of the row: its words are
                // there.
                let tid = Tid(record.tid().load(Ordering::Acquire));
                if tid.is_locked() {
                    return false;
                }
                found = Some(match tid.is_dead() {
                    true => Newest::Dead,
                    false => {
                        Newest::Version(Item::new(record, tid.version(), None, tid.is_absent()))
                    }
                });
            }
            Head::Chain(node) => {
                let status = node.status();
                if status & status::STATE != status::COMMITTED {
                    return false;
                }
                let absent = status & status::ABSENT != 0;
                found = Some(Newest::Version(Item::new(
                    record,
                    node.wts(),
                    Some(node),
                    absent,
                )));
            }
        }
        true
    };
    spin::until(SPINS_MAX, look);
    found.ok_or(AbortCause::ReadLock)
}

impl Mvcc {
    /// Meets a record: notes its newest version, or finds the one that the snapshot has.
    #[inline(always)]
    pub(super) fn meet(&mut self, record: RecordRef) -> Result<Visit, AbortCause> {
        if self.snapshot.is_some() {
            return self.meet_past(record);
        }
        if let Some(visit) = self.meet_again(record) {
            if let Visit::Present(handle) = visit
                && !Canary::ReadStaysUnobserved.sings()
            {
                // From now on more than its being there counts.
                let item = &mut self.items[handle.note as usize];
                (item.is_unobserved, item.split) = (false, WHOLE);
            }
            return Ok(visit);
        }
        let item = match newest(record)? {
            Newest::Dead => return Ok(Visit::Dead),
            Newest::Version(item) => item,
        };
        let note = self.items.len() as u32;
        let absent = item.absent;
        self.items.push(item);
        Ok(match absent {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note }),
        })
    }

    /// Meets a record of which no column is going to be observed.
    #[inline]
    pub(super) fn meet_unobserving(&mut self, record: RecordRef) -> Result<Visit, AbortCause> {
        if let Some(visit) = self.meet_again(record) {
            return Ok(visit);
        }
        let visit = self.meet(record)?;
        if let Visit::Present(handle) = visit {
            self.items[handle.note as usize].is_unobserved = true;
        }
        Ok(visit)
    }

    /// A record that the attempt writes, as it finds it.
    #[inline(always)]
    pub(super) fn meet_again(&self, record: RecordRef) -> Option<Visit> {
        let write = &self.writes[self.written.get(record)? as usize];
        Some(match write.kind {
            WriteKind::Update | WriteKind::Insert => Visit::Present(Handle {
                record,
                note: write.item,
            }),
            _ => Visit::Absent,
        })
    }

    /// Meets a record in the snapshot.
    #[inline(always)]
    fn meet_past(&mut self, record: RecordRef) -> Result<Visit, AbortCause> {
        self.refresh();
        Ok(match self.look(record) {
            Visible::Row(_) | Visible::Node(_) => Visit::Present(Handle { record, note: 0 }),
            Visible::Absent(_) | Visible::Nothing => Visit::Absent,
            Visible::Foreign(version) => return Err(self.catch_up(version)),
        })
    }

    /// The version of `record` that the snapshot has.
    #[inline(always)]
    pub(super) fn look(&self, record: RecordRef) -> Visible {
        let snapshot = self.snapshot.expect("the attempt reads a snapshot");
        visible(record, snapshot, || self.shared.clock.now())
    }

    /// Moves the clock past a version from before its time, so that the next attempt sees it.
    #[cold]
    pub(super) fn catch_up(&self, version: u64) -> AbortCause {
        self.shared.clock.raise(version);
        AbortCause::ReadValidation
    }

    /// Goes on to the present epoch, so that a long reader does not hold up the reuse of memory.
    /// Between two operations it holds on to no node and no blob, and records wait for its end; see
    /// `reclaim.rs`.
    #[inline(always)]
    pub(super) fn refresh(&self) {
        if self.participant.epochs().current() != self.participant.epoch() {
            self.participant.enter();
        }
    }

    /// The version that the attempt observed of a record that it met; for histories.
    pub(super) fn observed_version(&self, record: RecordRef) -> Version {
        let met = self.items.iter().rev().find(|item| item.record == record);
        let version = met.map_or_else(
            || Tid(record.tid().load(Ordering::Relaxed)).version(),
            |item| item.version,
        );
        Version(version)
    }

    /// The version behind `handle`; for histories.
    pub(super) fn version_behind(&self, handle: &Handle) -> Version {
        if self.snapshot.is_none() {
            return Version(self.items[handle.note as usize].version);
        }
        Version(match self.look(handle.record) {
            Visible::Row(version) | Visible::Absent(version) | Visible::Foreign(version) => version,
            Visible::Node(node) => node.wts(),
            Visible::Nothing => 0,
        })
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

    /// Follows a record that the attempt has moved to its new place.
    #[inline(always)]
    pub(super) fn follow(&mut self, handle: &mut Handle) {
        while let Some(write) = self.write_of(*handle)
            && let Some(moved_to) = self.writes[write].moved_to
        {
            *handle = moved_to;
        }
    }

    /// Reads columns as the snapshot has them.
    #[inline(always)]
    pub(super) fn load_past(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        self.refresh();
        let node = match self.look(handle.record) {
            Visible::Row(_) => None,
            Visible::Node(node) => Some(node),
            _ => unreachable!("a row of the snapshot stays in it"),
        };
        let layout = table.layout();
        for &(column, register) in columns {
            let from = source(table, handle.record, node, column);
            let mut slot = layout.column(column).load(from, &mut memory.heap);
            if is_spilled(slot) {
                // SAFETY: nothing that the snapshot has is changed while it is read (see
                // `reclaim.rs`), so the pointer is whole; the epoch keeps the blob.
                slot = unsafe { resolve(slot, &mut memory.heap) };
            }
            memory.slots[register.0 as usize] = slot;
        }
        Ok(())
    }

    /// Reads columns: those written from the attempt's own image, the others from the version met.
    #[inline(always)]
    pub(super) fn load(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        let layout = table.layout();
        let (written, image): (ColumnSet, &[AtomicU64]) = match self.write_of(*handle) {
            Some(write) => match self.writes[write].node {
                Some(node) => (self.writes[write].columns, node.image(layout.words())),
                None => (ColumnSet::EMPTY, &[]),
            },
            None => (ColumnSet::EMPTY, &[]),
        };
        if self.splits && self.items[handle.note as usize].is_split() {
            self.widen_split(table, handle.note, columns, written);
        }
        let item = &self.items[handle.note as usize];
        let mut spilled = AnySpilled::default();
        for &(column, register) in columns {
            let from = match written.contains(column) {
                true => image,
                false => source(table, handle.record, item.node, column),
            };
            let slot = layout.column(column).load(from, &mut memory.heap);
            spilled.note(slot);
            memory.slots[register.0 as usize] = slot;
        }
        // Acquire pairs with the release fence before the row is changed: if one of the loads above
        // saw a word of a newer version, the load below sees its lock bit or its version.
        fence(Ordering::Acquire);
        if !item.is_row_old_enough() && !self.has_kept_split(item) {
            return Err(AbortCause::ReadValidation);
        }
        if item.is_unobserved && !Canary::ReadStaysUnobserved.sings() {
            self.items[handle.note as usize].is_unobserved = false;
        }
        if spilled.is_any() {
            for &(_, register) in columns {
                let slot = memory.slots[register.0 as usize];
                if is_spilled(slot) {
                    // SAFETY: the version did not change while the pointer was read, or the pointer
                    // is in the attempt's own image; the epoch entered by `begin` keeps the blob.
                    let slot = unsafe { resolve(slot, &mut memory.heap) };
                    memory.slots[register.0 as usize] = slot;
                }
            }
        }
        Ok(())
    }

    /// The write of the record behind `handle`, made if there is none.
    pub(super) fn write_for(&mut self, table: &Table, handle: Handle, kind: WriteKind) -> usize {
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
            pending: ColumnSet::EMPTY,
            pending_read: ColumnSet::EMPTY,
            node: None,
            moved_to: None,
            published: false,
        });
        self.written.insert(handle.record, write as u32);
        self.items[handle.note as usize].write = write as u32;
        write
    }

    /// Writes columns of a row.
    pub(super) fn change(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        self.follow(handle);
        let changed: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        if table.indexed_columns().intersects(changed)
            && self.moves_keys(table, *handle, columns, changed, memory)?
        {
            return self.relocate(table, handle, columns, memory);
        }
        self.keep(table, *handle, columns, changed, memory)
    }

    /// Writes columns where the attempt keeps them: its entries are where they belong.
    pub(super) fn keep(
        &mut self,
        table: &Table,
        handle: Handle,
        columns: &[(ColumnId, Reg)],
        changed: ColumnSet,
        memory: &Memory,
    ) -> Result<(), Stop> {
        let layout = table.layout();
        let write = self.write_for(table, handle, WriteKind::Update);
        let write = &mut self.writes[write];
        let image = if write.kind == WriteKind::Insert {
            // No other transaction reads the row of a record that is absent.
            let row = table.row(handle.record);
            for blob in layout.blobs(changed, row) {
                // SAFETY: no other transaction has read the row of the absent record, and so none
                // has the blob.
                unsafe { Blob::free(blob) };
            }
            row
        } else {
            let node = match write.node {
                Some(node) => node,
                None => take_node(&self.shared.pools, layout.words(), &self.participant)?,
            };
            write.node = Some(node);
            let image = node.image(layout.words());
            for blob in layout.blobs(write.columns.intersection(changed), image) {
                // SAFETY: an image's blob is the attempt's own until others see the node.
                unsafe { Blob::free(blob) };
            }
            write.columns = write.columns.union(changed);
            image
        };
        for &(column, register) in columns {
            let slot = memory.slots[register.0 as usize];
            layout.column(column).store(image, slot, &memory.heap);
        }
        Ok(())
    }

    /// One column as the attempt sees it; `None` stands for the row number.
    pub(super) fn column_value(
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

    /// Notes that a record is to go.
    pub(super) fn mark_deleted(&mut self, table: &Table, handle: Handle) {
        let write = self.write_for(table, handle, WriteKind::Delete);
        let write = &mut self.writes[write];
        for note in [handle.note, write.item] {
            let item = &mut self.items[note as usize];
            (item.is_unobserved, item.split) = (false, WHOLE);
        }
        if let Some(node) = write.node {
            let columns = std::mem::take(&mut write.columns);
            for blob in table
                .layout()
                .blobs(columns, node.image(table.layout().words()))
            {
                // SAFETY: an image's blob is the attempt's own until others see the node.
                unsafe { Blob::free(blob) };
            }
        }
        write.kind = match write.kind {
            WriteKind::Insert | WriteKind::Forget => WriteKind::Forget,
            _ => WriteKind::Delete,
        };
    }
}

impl Item {
    /// Whether the row has nothing newer than this version.
    #[inline(always)]
    fn is_row_old_enough(&self) -> bool {
        let mut tid = Tid(0);
        let look = || {
            // Relaxed: the caller's fence orders it.
            tid = Tid(self.record.tid().load(Ordering::Relaxed));
            !tid.is_locked()
        };
        if self.node.is_none() {
            let mut look = look;
            return look() && tid.version() == self.version;
        }
        // Versions up to this one may come into the row meanwhile: what is read of it is only what
        // no node has, and stays the same.
        spin::until(SPINS_MAX, look) && tid.version() <= self.version
    }
}

/// A node for an image of `words` words.
pub(super) fn take_node(
    pools: &super::version::Pools,
    words: usize,
    participant: &kiln_storage::epoch::Participant,
) -> Result<NodeRef, Error> {
    pools.take(words, participant).map_err(|_| {
        Error::new(
            SqlState::OUT_OF_MEMORY,
            "the system grants no more memory for versions",
        )
    })
}
