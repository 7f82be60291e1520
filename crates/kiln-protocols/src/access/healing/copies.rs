//! Meeting records, and the copies of what was read of them (§4.5).

use kiln_platform::atomic::{AtomicU64, Ordering, fence};
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::Visit;
use kiln_procedure::ir::{Intent, OpId, Reg};
use kiln_procedure::{AbortCause, Handle};
use kiln_storage::layout::{is_spilled, resolve};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::{Healing, installed_tid};
use crate::canary::Canary;
use crate::shared::optimistic::{Item, WriteKind};
use crate::shared::recorder::Recorded;
use crate::shared::scratch::{RowImage, Scratch};

/// What an item notes of its record besides the tid. Small, as the read set is gone through at each
/// commit.
#[derive(Clone, Copy)]
pub struct Copied {
    table: *const Table,
    /// The position of what was copied in [`Copies`], or [`NOTHING`].
    copy: u32,
    /// The operation that met the record, or [`UNKNOWN`].
    op: u16,
    flags: u8,
}

/// All of the version is relied on, and not only the columns that were read.
const WHOLE: u8 = 1;
/// More than one version was read: nothing but reading anew will do.
const STALE: u8 = 2;
/// A restoration has given it up: nothing relies on it.
const VOID: u8 = 4;
/// Another operation than the one that met the record uses the item as well.
const SHARED: u8 = 8;

const NOTHING: u32 = u32::MAX;
const UNKNOWN: u16 = u16::MAX;

// SAFETY: only the thread that runs the access follows the table, while it is kept.
unsafe impl Send for Copied {}

impl Copied {
    /// Of a record whose whole version is relied on, met by this operation if it is known.
    #[inline(always)]
    pub(super) fn whole(table: *const Table, op: Option<OpId>) -> Copied {
        Copied {
            table,
            copy: NOTHING,
            op: op.map_or(UNKNOWN, |op| op.0),
            flags: WHOLE,
        }
    }

    /// The operation that met the record, if it is known.
    pub(super) fn op(&self) -> Option<OpId> {
        (self.op != UNKNOWN).then_some(OpId(self.op))
    }

    /// From now on all of the version is relied on, by other operations than the one that met the
    /// record: an insert that the row was in the way of, or an update that was deferred to the
    /// commit and had to run before.
    #[inline(always)]
    pub(super) fn rely_on_version(&mut self) {
        self.flags |= WHOLE | SHARED;
    }

    #[inline(always)]
    fn is_whole(&self) -> bool {
        self.flags & WHOLE != 0
    }

    /// Whether nothing but reading anew will do.
    #[inline(always)]
    pub(super) fn is_stale(&self) -> bool {
        self.flags & STALE != 0
    }

    /// Nothing relies on it any more.
    pub(super) fn give_up(&mut self) {
        self.flags |= VOID;
    }

    /// Whether nothing relies on it.
    #[inline(always)]
    pub(super) fn is_void(&self) -> bool {
        self.flags & VOID != 0
    }

    /// Whether several operations use it.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.flags & SHARED != 0
    }

    /// An operation uses it, perhaps not the one that met the record.
    #[inline(always)]
    fn used_by(&mut self, op: Option<OpId>) {
        if self.op() != op {
            self.flags |= SHARED;
        }
    }

    /// The record's table.
    #[inline(always)]
    pub(super) fn table<'a>(&self) -> &'a Table {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &*self.table }
    }
}

/// The columns that were read of a record, as they were.
#[derive(Clone, Copy)]
struct CopiedRow {
    columns: ColumnSet,
    image: RowImage,
}

impl CopiedRow {
    #[inline(always)]
    fn words<'a>(&self) -> &'a [AtomicU64] {
        // SAFETY: the copies are cleared only when the attempt has ended.
        unsafe { self.image.words() }
    }
}

/// The copies of an attempt, those of its earlier runs included.
#[derive(Default)]
pub(super) struct Copies {
    copies: Vec<CopiedRow>,
    images: Scratch,
    /// How many of them are of earlier runs.
    former: usize,
}

impl Copies {
    /// The program runs again.
    pub fn begin_again(&mut self) {
        self.former = self.copies.len();
    }

    /// Forgets everything.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.copies.clear();
        self.images.clear();
        self.former = 0;
    }

    #[inline(always)]
    fn of(&self, copied: &Copied) -> Option<&CopiedRow> {
        self.copies.get(copied.copy as usize)
    }

    /// Whether a record that is there, in another version, is to the attempt as it was. `row` is
    /// stable.
    pub fn cover(&self, copied: &Copied, row: &[AtomicU64]) -> bool {
        copied.flags & (WHOLE | STALE) == 0 && self.is_same(copied, row)
    }

    #[inline]
    fn is_same(&self, copied: &Copied, row: &[AtomicU64]) -> bool {
        self.of(copied).is_none_or(|copy| {
            let layout = copied.table().layout();
            layout.is_same(copy.columns, copy.words(), row)
        })
    }

    /// The item's own copy: other items may have one of an earlier run too, so that this one is
    /// copied.
    #[inline]
    fn own(&mut self, copied: &mut Copied) -> &mut CopiedRow {
        let layout = copied.table().layout();
        let position = copied.copy as usize;
        let former = self.copies.get(position).copied();
        if former.is_none() || position < self.former {
            let copy = CopiedRow {
                columns: former.map_or(ColumnSet::EMPTY, |former| former.columns),
                image: self.images.take(layout.words()),
            };
            if let Some(former) = former {
                layout.copy(former.columns, former.words(), copy.words());
            }
            copied.copy = self.copies.len() as u32;
            self.copies.push(copy);
        }
        &mut self.copies[copied.copy as usize]
    }
}

impl Healing {
    /// Meets a record in the first run.
    #[inline(always)]
    pub(super) fn meet(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: ColumnSet,
    ) -> Result<Visit, AbortCause> {
        self.sets.protocol.table = table;
        let met = self.sets.items.len();
        charge(Work::Record);
        let visit = self.sets.meet(table, record, intent)?;
        if let Visit::Present(handle) = visit
            && handle.note as usize != met
        {
            let op = self.sets.protocol.under_way;
            self.sets.items[handle.note as usize].note.used_by(op);
        }
        if !self.copies_reads {
            return Ok(visit);
        }
        match visit {
            Visit::Present(handle) if handle.note as usize == met => {
                self.sets.items[met].note.flags &= !WHOLE;
                self.copy_keys(handle, observed)?;
            }
            // It may have been found by another key than before it was written. That one counts now
            // as well.
            Visit::Present(handle) if !observed.is_empty() => {
                let write = self.sets.write_of(handle);
                if !write.is_some_and(|write| self.sets.writes[write].inserts()) {
                    self.copy_keys(handle, observed)?;
                }
            }
            _ => {}
        }
        Ok(visit)
    }

    /// Has a record count by those keys, too, that can lead elsewhere.
    #[inline(always)]
    fn copy_keys(&mut self, handle: Handle, observed: ColumnSet) -> Result<(), AbortCause> {
        let table = self.sets.items[handle.note as usize].note.table();
        let keys = observed.intersection(table.indexed_columns());
        match keys.is_empty() {
            true => Ok(()),
            false => self.copy(handle.note, keys),
        }
    }

    /// Meets a record when the program runs again: one that the last run knew comes from its
    /// copies, unless it has changed since.
    pub(super) fn meet_again(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: ColumnSet,
    ) -> Result<Visit, AbortCause> {
        let known = match self.sets.written.get(record) {
            None => self.known_by_record.get(record),
            // The write knows.
            Some(_) => None,
        };
        let Some(known) = known else {
            return self.meet(table, record, intent, observed);
        };
        // Without a lock this is a hint: what changes from now on is found when the record is
        // locked.
        let now = installed_tid(record)?;
        if now.is_dead() {
            return Ok(Visit::Dead);
        }
        let Item {
            observed: seen,
            note: copied,
            ..
        } = self.known[known as usize];
        let is_as_it_was = match now.0 == seen {
            true => !copied.is_stale(),
            false => {
                let covers = !Tid(seen).is_absent()
                    && !now.is_absent()
                    && self.copies.cover(&copied, table.row(record));
                // Acquire: as in `copy`, what was compared is of the version seen before and after.
                fence(Ordering::Acquire);
                covers && record.tid().load(Ordering::Relaxed) == now.0
            }
        };
        if !is_as_it_was && !now.is_absent() {
            self.counters.restored(self.sets.protocol.under_way);
            if Canary::DependentNotRestored.sings() && self.has_restored {
                // Its tid is the new one, its values are the old ones.
                return Ok(self.take_known(record, now, copied));
            }
            self.has_restored = true;
        }
        if !is_as_it_was || copied.copy == NOTHING {
            return self.meet(table, record, intent, observed);
        }
        let visit = self.take_known(record, now, copied);
        if let Visit::Present(handle) = visit {
            self.copy_keys(handle, observed)?;
        }
        Ok(visit)
    }

    /// Takes a record over with the copies of the last run.
    fn take_known(&mut self, record: RecordRef, now: Tid, mut copied: Copied) -> Visit {
        copied.flags &= !(VOID | SHARED);
        copied.op = self.sets.protocol.under_way.map_or(UNKNOWN, |op| op.0);
        let note = self.sets.items.len() as u32;
        let writes = self.sets.writes.len();
        self.sets
            .items
            .push(Item::new(record, now.0, copied, writes));
        match now.is_absent() {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note }),
        }
    }

    /// Has an item name the version of its record that is there now, with what was copied of the
    /// former one. Says no when there is no row any more.
    ///
    /// # Errors
    /// An [`AbortCause`] when other workers are changing the record for too long.
    pub(super) fn renew(&mut self, position: usize) -> Result<bool, AbortCause> {
        let item = &mut self.sets.items[position];
        let (record, table) = (item.record, item.note.table());
        let copied = self.copies.of(&item.note).map(|copy| copy.columns);
        loop {
            let now = installed_tid(record)?;
            if now.is_absent() {
                return Ok(false);
            }
            if let Some(columns) = copied {
                let copy = self.copies.own(&mut item.note);
                table
                    .layout()
                    .copy(columns, table.row(record), copy.words());
            }
            // Acquire: as in `copy`.
            fence(Ordering::Acquire);
            if record.tid().load(Ordering::Relaxed) == now.0 {
                let former = Tid(std::mem::replace(&mut item.observed, now.0));
                item.note.flags &= !STALE;
                self.sets.recorder().read_moves(record, former, now);
                return Ok(true);
            }
        }
    }

    /// Copies columns, of the version that the item names. If that is no more, and what was copied
    /// before is not as it was either, the item is stale, and what is copied is of some version. So
    /// it is when the attempt has written the record's keys: which entries go and which stay at the
    /// commit was found out from that version, and from no other, though nothing of it need have
    /// been copied.
    #[inline]
    fn copy(&mut self, note: u32, columns: ColumnSet) -> Result<(), AbortCause> {
        let item = &mut self.sets.items[note as usize];
        let copied = self.copies.of(&item.note);
        let missing = columns.difference(copied.map_or(ColumnSet::EMPTY, |copy| copy.columns));
        if missing.is_empty() {
            return Ok(());
        }
        let table = item.note.table();
        let (layout, row) = (table.layout(), table.row(item.record));
        let words = self.copies.own(&mut item.note).words();
        let mut version = item.observed;
        loop {
            layout.copy(missing, row, words);
            // Acquire pairs with the release fence between locking and installing: if one of the
            // loads above saw a word of a newer version, the load below sees its lock bit or tid.
            fence(Ordering::Acquire);
            if item.record.tid().load(Ordering::Relaxed) == version {
                break;
            }
            let now = installed_tid(item.record)?;
            let written = self.sets.written.get(item.record);
            let moves = written.is_some_and(|write| self.sets.writes[write as usize].moves());
            let is_same = self.copies.is_same(&item.note, row);
            let note = &mut item.note;
            if note.is_whole() || now.is_absent() || moves || !is_same {
                note.flags |= STALE;
            }
            version = now.0;
        }
        let copy = self.copies.own(&mut item.note);
        copy.columns = copy.columns.union(missing);
        if version != item.observed && !item.note.is_stale() {
            let (record, former) = (item.record, Tid(item.observed));
            item.observed = version;
            self.sets
                .recorder()
                .read_moves(record, former, Tid(version));
        }
        Ok(())
    }

    /// Reads columns: those written from the image of the write, the others from the copies.
    #[inline(always)]
    pub(super) fn read_copied(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        if !self.copies_reads {
            return self.read_through(table, handle, columns, memory);
        }
        let (written, image): (ColumnSet, &[AtomicU64]) = match self.sets.write_of(*handle) {
            Some(write) => {
                let write = &self.sets.writes[write];
                if write.kind == WriteKind::Insert {
                    return self.sets.load(table, handle, columns, memory);
                }
                match write.columns.is_empty() {
                    true => (ColumnSet::EMPTY, &[]),
                    false => (write.columns, write.image()),
                }
            }
            None => (ColumnSet::EMPTY, &[]),
        };
        let read: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        let layout = table.layout();
        self.copy(handle.note, read.difference(written))?;
        let copied = match self.copies.of(&self.sets.items[handle.note as usize].note) {
            Some(copied) => copied.words(),
            // All of it was written.
            None => image,
        };
        for &(column, register) in columns {
            let from = if written.contains(column) {
                image
            } else {
                copied
            };
            let mut slot = layout.column(column).load(from, &mut memory.heap);
            if is_spilled(slot) {
                // SAFETY: the copy is of one version, and the image is the attempt's own; the epoch
                // entered by `begin` keeps the blob.
                slot = unsafe { resolve(slot, &mut memory.heap) };
            }
            memory.slots[register.0 as usize] = slot;
        }
        Ok(())
    }

    /// Reads columns without copies: an item whose record has changed is stale.
    #[inline(always)]
    fn read_through(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        match self.sets.load(table, handle, columns, memory) {
            Err(AbortCause::ReadValidation) if self.heals => {
                self.read_stale(table, handle, columns, memory)
            }
            done => done,
        }
    }

    /// Reads columns of a record that has changed since it was met.
    #[cold]
    fn read_stale(
        &mut self,
        table: &Table,
        handle: &Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), AbortCause> {
        let note = handle.note as usize;
        self.sets.items[note].note.flags |= STALE;
        let first = self.sets.items[note].observed;
        loop {
            self.sets.items[note].observed = installed_tid(handle.record)?.0;
            match self.sets.load(table, handle, columns, memory) {
                Err(AbortCause::ReadValidation) => {}
                done => {
                    // What was read before was of the first version.
                    self.sets.items[note].observed = first;
                    return done;
                }
            }
        }
    }
}
