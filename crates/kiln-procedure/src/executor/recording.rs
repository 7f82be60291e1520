//! What the executor tells a history about what an attempt met, read and wrote.
//!
//! Attempts that are not observed skip everything here: [`Executor::run`] asks
//! [`Recording::history`](crate::access::Recording::history) once, and takes other ops for those
//! that are observed. Rare events ask again.

use kiln_history::{Cell, IndexId, Log, Moment, Object, Version, WriteKind};
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::{Heap, Memory, Slot};
use kiln_storage::table::{Entry, EntryKey, IndexScan, Table};

use super::{Executor, Stopped};
use crate::access::{Access, Handle, Recalled, Visit};
use crate::code::{Columns, Insert, Lookup, Updater};
use crate::frame;
use crate::ir::*;

/// The fingerprint of NULL.
const NULL_PRINT: u32 = 0x4e55_4c4c;

fn object(record: RecordRef) -> Object {
    Object(record.address())
}

fn index_id(table: &Table, index: usize) -> IndexId {
    IndexId {
        table: table.id().0,
        index: index as u16,
    }
}

/// A column and the fingerprint of its value, for histories. Values that compare as equal have
/// equal ones, however they are stored.
pub fn fingerprint(table: &Table, column: ColumnId, slot: Slot, heap: &Heap) -> Cell {
    let data_type = table.schema().columns[column.index()].data_type.in_rows();
    let class = Class::of(data_type).expect("rows have no arrays");
    let print = match slot.is_null() {
        true => NULL_PRINT,
        false => (frame::hash(heap, class, slot) >> 32) as u32,
    };
    Cell {
        column: column.0,
        print,
    }
}

/// Records what an updater read of a version of its record, and what it writes; both are in its
/// registers.
pub fn record_deferred(
    log: &mut Log,
    table: &Table,
    record: RecordRef,
    version: Version,
    updater: &Updater,
    memory: &Memory,
) {
    let cells = |columns: &[(ColumnId, Reg)]| -> Vec<Cell> {
        let of = |&(column, register): &(ColumnId, Reg)| {
            fingerprint(
                table,
                column,
                memory.slots[register.0 as usize],
                &memory.heap,
            )
        };
        columns.iter().map(of).collect()
    };
    log.read(object(record), version, cells(updater.inputs()).into_iter());
    let written = cells(updater.outputs());
    log.write(object(record), WriteKind::Update, written.into_iter());
}

impl<'a, A: Access> Executor<'a, A> {
    /// The present moment, if the attempt is observed.
    #[inline(always)]
    pub(super) fn moment(&mut self) -> Option<Moment> {
        self.access.history().map(|log| log.now())
    }

    /// What is recorded next comes of this operation: a restoration that runs it again takes it
    /// back.
    #[cold]
    pub(super) fn records_operation(&mut self, op: OpId) {
        if let Some(log) = self.access.history() {
            log.operation(op.0);
        }
    }

    /// As [`Executor::lookup`], and records it.
    #[cold]
    #[inline(never)]
    pub(super) fn lookup_observed(&mut self, lookup: &Lookup) -> Result<bool, Stopped> {
        let begun = self.moment();
        let (table, index, key) = (&*lookup.table, lookup.index, &lookup.key);
        if lookup.is_known {
            return self.lookup(lookup);
        }
        self.records_operation(lookup.op);
        let ahead = match A::HAS_HANDLES {
            true => self.handle_ahead(lookup),
            false => None,
        };
        let recalled = match ahead {
            Some(handle) => Some(Recalled::Found(handle)),
            None => self.recall(lookup)?,
        };
        let handle = match recalled {
            None => {
                let is_there = self.lookup_anew(lookup);
                self.access.looked_up();
                return is_there;
            }
            Some(Recalled::Found(handle)) => Some(handle),
            Some(recalled) => {
                // The access has looked since `begun` whether that is so still.
                let met = match recalled {
                    Recalled::Absent(record) => Some(Entry::of(record)),
                    _ => None,
                };
                if let Some(begun) = begun {
                    self.record_missing(table, index, key, begun, met);
                }
                None
            }
        };
        if let Some(handle) = handle {
            self.set_handle(lookup.record, handle);
            self.record_found(table, index, |position| key[position], handle);
        }
        self.set(lookup.found, Slot::from_bool(handle.is_some()));
        Ok(handle.is_some())
    }

    /// As [`Executor::read`], and records it.
    #[cold]
    #[inline(never)]
    pub(super) fn read_observed(&mut self, read: &Columns) -> Result<(), Stopped> {
        self.read(read)?;
        if read.is_known {
            return Ok(());
        }
        self.records_operation(read.op);
        let handle = self.handle(read.record);
        self.record_read(&read.table, handle, read.columns.iter().copied());
        Ok(())
    }

    /// As [`Executor::update`], and records it.
    #[cold]
    #[inline(never)]
    pub(super) fn update_observed(&mut self, update: &Columns) -> Result<(), Stopped> {
        self.records_operation(update.op);
        self.update(update)?;
        // An updater that had to run first is another operation.
        self.records_operation(update.op);
        let (handle, columns) = (self.handle(update.record), update.columns.iter().copied());
        self.record_write(&update.table, handle.record, WriteKind::Update, columns);
        Ok(())
    }

    /// As [`Executor::insert`], and records it.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_observed(&mut self, insert: &Insert) -> Result<(), Stopped> {
        self.records_operation(insert.op);
        if self.insert(insert)? {
            let (record, values) = (self.handle(insert.record).record, &insert.values);
            let columns = (0..values.len() as u16).map(ColumnId);
            let columns = columns.map(|column| (column, values[column.index()]));
            self.record_write(&insert.table, record, WriteKind::Insert, columns);
        }
        Ok(())
    }

    /// As [`Executor::delete`], and records it.
    #[cold]
    #[inline(never)]
    pub(super) fn delete_observed(
        &mut self,
        op: OpId,
        table: TableRef,
        record: RecordReg,
    ) -> Result<(), Stopped> {
        self.records_operation(op);
        self.delete(table, record)?;
        self.records_operation(op);
        let (record, nothing) = (self.handle(record).record, [(ColumnId(0), Reg(0)); 0]);
        let table = &*self.program.tables[table.0 as usize];
        self.record_write(table, record, WriteKind::Delete, nothing.into_iter());
        Ok(())
    }

    /// Records that columns were read into registers.
    #[cold]
    #[inline(never)]
    pub(super) fn record_read(
        &mut self,
        table: &Table,
        handle: Handle,
        columns: impl ExactSizeIterator<Item = (ColumnId, Reg)>,
    ) {
        let version = self.access.version_of(&handle);
        let Memory { slots, heap, .. } = &self.frame.memory;
        let cells = columns
            .map(|(column, register)| fingerprint(table, column, slots[register.0 as usize], heap));
        if let Some(log) = self.access.history() {
            log.read(object(handle.record), version, cells);
        }
    }

    /// Records that columns were written from registers.
    #[cold]
    #[inline(never)]
    pub(super) fn record_write(
        &mut self,
        table: &Table,
        record: RecordRef,
        kind: WriteKind,
        columns: impl ExactSizeIterator<Item = (ColumnId, Reg)>,
    ) {
        let Memory { slots, heap, .. } = &self.frame.memory;
        let cells = columns
            .map(|(column, register)| fingerprint(table, column, slots[register.0 as usize], heap));
        if let Some(log) = self.access.history() {
            log.write(object(record), kind, cells);
        }
    }

    /// Records that the unique index at `index` led to a row for the values in `key`: the columns
    /// of its key have these values.
    #[cold]
    #[inline(never)]
    pub(super) fn record_found(
        &mut self,
        table: &Table,
        index: usize,
        key: impl Fn(usize) -> Reg,
        handle: Handle,
    ) {
        let columns = table.indexes()[index].definition().columns.iter();
        let columns = columns
            .enumerate()
            .map(|(position, column)| (*column, key(position)));
        self.record_read(table, handle, columns);
    }

    /// Records that a look-up, begun at `begun`, led to no row, and the entry that it met if any.
    #[cold]
    #[inline(never)]
    pub(super) fn record_missing(
        &mut self,
        table: &Table,
        index: usize,
        key: &[Reg],
        begun: Moment,
        met: Option<Entry>,
    ) {
        let Memory { slots, heap, .. } = &self.frame.memory;
        let values = key.iter().map(|register| slots[register.0 as usize]);
        let key = table.indexes()[index].point_key(heap, values);
        let Some(key) = key.as_ref().map(EntryKey::to_bytes) else {
            return;
        };
        let mut met_objects = Vec::new();
        if let Some(entry) = met {
            met_objects.push(object(entry.record()));
            let index_place = (table, index);
            self.record_later_holders(index_place, entry, |_, former| met_objects.push(former));
        }
        if let Some(log) = self.access.history() {
            log.point(index_id(table, index), &key, begun, &met_objects);
        }
        if let Some(entry) = met {
            self.record_absent(table, index, entry, A::version_met);
        }
    }

    /// Records that no row was found behind an entry, in this version of its record, unless the
    /// attempt itself has moved the entry away.
    fn record_absent(
        &mut self,
        table: &Table,
        index: usize,
        entry: Entry,
        version: impl Fn(&A, RecordRef) -> Version,
    ) {
        let record = match entry.is_moving() || self.access.moves_entries() {
            true => self.access.resolve(table, index, entry).ok().flatten(),
            false => Some(entry.record()),
        };
        let Some(record) = record else { return };
        self.record_absent_record(record, version(self.access, record));
    }

    /// Records that a record has no row in a version.
    fn record_absent_record(&mut self, record: RecordRef, version: Version) {
        let snapshot = self.access.snapshot();
        if let Some(log) = self.access.history() {
            match snapshot {
                Some(snapshot) => log.read_absent_as_of(object(record), snapshot),
                None => log.read_absent(object(record), version),
            }
        }
    }

    /// Records that those do not exist yet that an entry led to before the record that counts: in a
    /// snapshot from before a key changed hands, those that have it now. `met` is told of each
    /// record that had the key before another.
    fn record_later_holders(
        &mut self,
        (table, index): (&Table, usize),
        entry: Entry,
        mut met: impl FnMut(&mut A, Object),
    ) {
        let mut record = entry.record();
        while entry.is_moving()
            && let Some(former) = self.access.former_holder(table, index, record)
        {
            self.record_absent_record(record, self.access.version_met(record));
            record = former;
            met(self.access, object(record));
        }
    }

    /// Records that a scan begins; returns its number, if the attempt is observed.
    #[cold]
    #[inline(never)]
    pub(super) fn record_range(
        &mut self,
        table: &Table,
        index: usize,
        scan: &mut IndexScan<'_>,
    ) -> Option<u32> {
        let (low, high) = scan.bounds();
        scan.keep_keys();
        let log = self.access.history()?;
        Some(log.range_begin(index_id(table, index), &low, &high))
    }

    /// Records that a scan met an entry, and what was behind it.
    #[cold]
    #[inline(never)]
    pub(super) fn record_met(
        &mut self,
        range: u32,
        (table, index): (&Table, usize),
        entry: Entry,
        visit: Visit,
    ) {
        if let Some(log) = self.access.history() {
            log.met(range, object(entry.record()));
        }
        self.record_later_holders((table, index), entry, |access, former| {
            if let Some(log) = access.history() {
                log.met(range, former);
            }
        });
        match visit {
            Visit::Present(handle) => {
                let nothing: [(ColumnId, Reg); 0] = [];
                self.record_read(table, handle, nothing.into_iter());
            }
            Visit::Absent => self.record_absent(table, index, entry, A::version_met),
            Visit::Dead => self.record_absent(table, index, entry, A::version_dead),
        }
    }

    /// The key of an entry of a leaf that the access knew, and whose record it has met.
    #[cold]
    #[inline(never)]
    pub(super) fn key_of_known(&mut self, table: &Table, index: usize, entry: Entry) -> Vec<u8> {
        let (index, row) = (&table.indexes()[index], table.row(entry.record()));
        let key = table.entry_key_of(index, row, &mut self.frame.memory.heap);
        key.map_or_else(|_| Vec::new(), |key| key.to_bytes())
    }

    /// Records that a scan has ended: before its entry with the key `left_at`, or at the end of its
    /// range.
    #[cold]
    #[inline(never)]
    pub(super) fn record_range_end(&mut self, range: u32, left_at: Option<&[u8]>, reverse: bool) {
        if let Some(log) = self.access.history() {
            log.range_end(range, left_at.unwrap_or(&[]), reverse);
        }
    }
}
