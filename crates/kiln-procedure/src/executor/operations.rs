//! The operations: how records are found, and what is done to them through the access.

use kiln_history::WriteKind;
use kiln_storage::error::{Error, SqlState};
use kiln_storage::index::LeafBatch;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, Found, IndexScan, RangeValues, Table};

use super::scalar::element;
use super::{DEAD_RETRIES_MAX, Executor, Flow, PREFETCH_TURNS_MAX};
use crate::access::{AbortCause, Access, Handle, Inserted, Visit};
use crate::frame;
use crate::ir::*;

impl<'a, A: Access> Executor<'a, A> {
    /// The handle in a record register.
    #[inline(always)]
    fn handle(&self, record: RecordReg) -> Handle {
        self.frame.records[record.0 as usize].expect("a verified program found this record")
    }

    #[inline(always)]
    fn set_handle(&mut self, record: RecordReg, handle: Handle) {
        self.frame.records[record.0 as usize] = Some(handle);
    }

    /// Asks for the index entries and records of the turns of a loop.
    #[inline(never)]
    pub(super) fn prefetch(&mut self, first: Reg, last: Reg, lookups: &'a [PrefetchLookup]) {
        let (first, last) = (self.get(first), self.get(last));
        if Slot::either_null(first, last) {
            return;
        }
        let first = first.as_i64();
        let last = last
            .as_i64()
            .min(first.saturating_add(PREFETCH_TURNS_MAX - 1));
        let Memory { slots, heap } = &self.frame.memory;
        let value = |part: &PrefetchKey, turn: i64| match *part {
            PrefetchKey::Register(register) => slots[register.0 as usize],
            PrefetchKey::Variable => Slot::from_i64(turn),
            PrefetchKey::Element(array) => {
                element(heap, slots[array.0 as usize], Slot::from_i64(turn))
            }
        };
        for turn in first..=last {
            for lookup in lookups {
                let table = &*self.program.tables[lookup.table.0 as usize];
                let key = lookup.key.iter().map(|part| value(part, turn));
                table.indexes()[lookup.index as usize].prefetch(heap, key);
            }
        }
        for turn in first..=last {
            for lookup in lookups {
                let table = &*self.program.tables[lookup.table.0 as usize];
                let key = lookup.key.iter().map(|part| value(part, turn));
                let index = &table.indexes()[lookup.index as usize];
                if let Found::Entry(entry) = index.get(heap, key) {
                    let start = entry.record().cell().as_ptr();
                    let mut lines = lookup.lines;
                    while lines != 0 {
                        let line = lines.trailing_zeros() as usize;
                        kiln_platform::atomic::prefetch(start.wrapping_add(line * 64));
                        lines &= lines - 1;
                    }
                }
            }
        }
    }

    /// Meets the record of an index entry, if the entry is the one that counts.
    #[inline(always)]
    fn meet(
        &mut self,
        table: &Table,
        index: usize,
        entry: Entry,
        intent: Intent,
    ) -> Result<Visit, AbortCause> {
        let record = if entry.is_moving() || self.access.moves_entries() {
            match self.access.resolve(table, index, entry)? {
                Some(record) => record,
                None => return Ok(Visit::Absent),
            }
        } else {
            entry.record()
        };
        self.access.visit(table, record, intent)
    }

    /// Meets the record that an index look-up found, or guards its absence.
    #[inline(always)]
    pub(super) fn lookup(
        &mut self,
        table: TableRef,
        index: u16,
        key: &[Reg],
        record: RecordReg,
        found: Reg,
        intent: Intent,
    ) -> Flow {
        let table = self.table(table);
        let index_number = index;
        let index = &table.indexes()[index as usize];
        for _ in 0..DEAD_RETRIES_MAX {
            let begun = self.moment();
            let Memory { slots, heap } = &self.frame.memory;
            let values = key.iter().map(|register| slots[register.0 as usize]);
            let is_there = match index.get(heap, values) {
                Found::Entry(entry) => {
                    match attempt!(self, self.meet(table, index_number as usize, entry, intent)) {
                        Visit::Present(handle) => {
                            self.set_handle(record, handle);
                            if begun.is_some() {
                                let key = |position: usize| key[position];
                                self.record_found(table, index_number as usize, key, handle);
                            }
                            true
                        }
                        Visit::Absent => {
                            if let Some(begun) = begun {
                                let index = index_number as usize;
                                self.record_missing(table, index, key, begun, Some(entry));
                            }
                            false
                        }
                        Visit::Dead => {
                            kiln_platform::spin::hint();
                            continue;
                        }
                    }
                }
                Found::Missing(node) => {
                    attempt!(self, self.access.guard(node));
                    if let Some(begun) = begun {
                        self.record_missing(table, index_number as usize, key, begun, None);
                    }
                    false
                }
                Found::Never => false,
            };
            self.set(found, Slot::from_bool(is_there));
            return Flow::Next;
        }
        attempt!(self, Err(AbortCause::KeyInTransit))
    }

    #[inline(always)]
    pub(super) fn read(
        &mut self,
        table: TableRef,
        record: RecordReg,
        columns: &[(ColumnId, Reg)],
    ) -> Flow {
        let (table, mut handle) = (self.table(table), self.handle(record));
        let memory = &mut self.frame.memory;
        attempt!(self, self.access.read(table, &mut handle, columns, memory));
        self.set_handle(record, handle);
        if self.access.history().is_some() {
            self.record_read(table, handle, columns.iter().copied());
        }
        Flow::Next
    }

    #[inline(always)]
    pub(super) fn update(
        &mut self,
        table: TableRef,
        record: RecordReg,
        columns: &[(ColumnId, Reg)],
    ) -> Flow {
        let (table, mut handle) = (self.table(table), self.handle(record));
        let memory = &mut self.frame.memory;
        attempt!(
            self,
            self.access.update(table, &mut handle, columns, memory)
        );
        self.set_handle(record, handle);
        if self.access.history().is_some() {
            let columns = columns.iter().copied();
            self.record_write(table, handle.record, WriteKind::Update, columns);
        }
        Flow::Next
    }

    pub(super) fn delete(&mut self, table: TableRef, record: RecordReg) -> Flow {
        let (table, mut handle) = (self.table(table), self.handle(record));
        let memory = &mut self.frame.memory;
        attempt!(self, self.access.delete(table, &mut handle, memory));
        self.set_handle(record, handle);
        if self.access.history().is_some() {
            let nothing: [(ColumnId, Reg); 0] = [];
            self.record_write(table, handle.record, WriteKind::Delete, nothing.into_iter());
        }
        Flow::Next
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of the step")]
    pub(super) fn scan(
        &mut self,
        table: TableRef,
        index: u16,
        range: &Range,
        reverse: bool,
        record: RecordReg,
        intent: Intent,
        body: &'a [Step],
    ) -> Flow {
        let table = self.table(table);
        let place = (table, index as usize);
        let index = &table.indexes()[index as usize];
        let mut prefix = [Slot::NULL; kiln_storage::schema::KEY_COLUMNS_MAX];
        let prefix = &mut prefix[..range.prefix.len()];
        for (slot, register) in prefix.iter_mut().zip(&range.prefix) {
            *slot = self.get(*register);
        }
        let bound =
            |bound: &Option<Bound>| bound.map(|bound| (self.get(bound.value), bound.inclusive));
        let values = RangeValues {
            prefix,
            lower: bound(&range.lower),
            upper: bound(&range.upper),
        };
        let scan = attempt!(self, index.scan(&self.frame.memory.heap, values, reverse));
        let Some(mut scan) = scan else {
            return Flow::Next;
        };
        let range = match self.access.history().is_some() {
            true => self.record_range(table, place.1, &mut scan),
            false => None,
        };
        let mut left_at = None;
        let flow = self.visit_range(
            place,
            &mut scan,
            (record, intent),
            body,
            range,
            &mut left_at,
        );
        if let Some(range) = range {
            self.record_range_end(range, &scan, left_at, reverse);
        }
        flow
    }

    /// Runs `body` for each record in the range of `scan`. When it leaves early, `left_at` is the
    /// position in the last batch of the record at which it did. The scan has the number `range` in
    /// the history, if the attempt is observed.
    #[inline(always)]
    fn visit_range(
        &mut self,
        (table, index): (&Table, usize),
        scan: &mut IndexScan<'_>,
        (record, intent): (RecordReg, Intent),
        body: &'a [Step],
        range: Option<u32>,
        left_at: &mut Option<usize>,
    ) -> Flow {
        let mut batch = LeafBatch::default();
        while scan.next_leaf(&mut batch) {
            attempt!(self, self.access.guard(batch.version));
            if batch.count > 1 {
                // The records' cache misses overlap instead of following each other.
                for payload in batch.payloads() {
                    let address = *payload as *const u8;
                    kiln_platform::atomic::prefetch(address);
                    kiln_platform::atomic::prefetch(address.wrapping_add(64));
                }
            }
            for position in 0..batch.count {
                // SAFETY: the payload is of an index of a living table.
                let entry = unsafe { Entry::from_payload(batch.payloads[position]) };
                // A dead record's key is guarded by the leaf's version, as any gap is.
                let visit = attempt!(self, self.meet(table, index, entry, intent));
                if let Some(range) = range {
                    self.record_met(range, (table, index), entry, visit);
                }
                let Visit::Present(handle) = visit else {
                    continue;
                };
                self.frame.records[record.0 as usize] = Some(handle);
                let flow = match self.block(body) {
                    Flow::Next | Flow::Continue(0) => match self.tick() {
                        Flow::Next => continue,
                        stop => stop,
                    },
                    Flow::Exit(0) => Flow::Next,
                    Flow::Exit(depth) => Flow::Exit(depth - 1),
                    Flow::Continue(depth) => Flow::Continue(depth - 1),
                    out => out,
                };
                *left_at = Some(position);
                return flow;
            }
        }
        Flow::Next
    }

    pub(super) fn insert(
        &mut self,
        reference: TableRef,
        values: &[Reg],
        record: RecordReg,
        conflict: Option<Conflict>,
    ) -> Flow {
        let table = self.table(reference);
        let inserted = self.access.insert(table, values, &mut self.frame.memory);
        match attempt!(self, inserted) {
            Inserted::New(handle) => {
                if self.access.history().is_some() {
                    let columns = (0..values.len() as u16).map(ColumnId);
                    let columns = columns.map(|column| (column, values[column.index()]));
                    self.record_write(table, handle.record, WriteKind::Insert, columns);
                }
                self.frame.records[record.0 as usize] = Some(handle);
                if let Some(conflict) = conflict {
                    self.set(conflict.inserted, Slot::TRUE);
                }
            }
            Inserted::Exists { index, handle } => {
                if self.access.history().is_some() {
                    let columns = &table.indexes()[index].definition().columns;
                    let key = |position: usize| values[columns[position].index()];
                    self.record_found(table, index, key, handle);
                }
                if let Some(conflict) = conflict
                    && conflict.index.is_none_or(|only| only as usize == index)
                {
                    self.frame.records[record.0 as usize] = Some(handle);
                    self.set(conflict.inserted, Slot::FALSE);
                } else {
                    if let Some(Conflict {
                        index: Some(only),
                        inserted,
                    }) = conflict
                    {
                        // The row is in the way of two others: as PostgreSQL, which looks at the
                        // index of ON CONFLICT first, go on with the one that is caught.
                        let columns = &table.indexes()[only as usize].definition().columns;
                        let key: Vec<Reg> = columns
                            .iter()
                            .map(|column| values[column.index()])
                            .collect();
                        let flow =
                            self.lookup(reference, only, &key, record, inserted, Intent::Write);
                        if flow != Flow::Next {
                            return flow;
                        }
                        if self.get(inserted).is_true() {
                            self.set(inserted, Slot::FALSE);
                            return Flow::Next;
                        }
                    }
                    let slots = &self.frame.memory.slots;
                    let error = unique_violation(table, index, &self.frame.memory, |column| {
                        slots[values[column].0 as usize]
                    });
                    attempt!(self, Err(error));
                }
            }
        }
        Flow::Next
    }

    /// Keeps a record's handle in a register: the address in the lower word, the access's note in
    /// the upper one, shifted past the NULL flag.
    pub(super) fn save_record(&mut self, target: Reg, record: RecordReg) {
        let handle = self.handle(record);
        let note = (handle.note as u64) << 8;
        self.set(target, Slot::from_words(handle.record.address(), note));
    }

    /// The opposite.
    pub(super) fn restore_record(&mut self, record: RecordReg, source: Reg) {
        let (address, note) = self.get(source).words();
        let handle = Handle {
            // SAFETY: verified programs restore only what `SaveRecord` wrote in this run.
            record: unsafe { RecordRef::from_address(address) },
            note: (note >> 8) as u32,
        };
        self.set_handle(record, handle);
    }
}

/// PostgreSQL's error for a key that is there already; `value` gives the new row's columns.
#[cold]
pub fn unique_violation(
    table: &Table,
    index: usize,
    memory: &Memory,
    value: impl Fn(usize) -> Slot,
) -> Error {
    let definition = table.indexes()[index].definition();
    let schema = table.schema();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in &definition.columns {
        let column_definition = &schema.columns[column.index()];
        names.push(column_definition.name.clone());
        let value = frame::to_value(
            &memory.heap,
            value(column.index()),
            &column_definition.data_type,
        );
        values.push(kiln_storage::types::format_value(
            &value,
            &column_definition.data_type,
        ));
    }
    Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!(
            "duplicate key value violates unique constraint \"{}\"",
            definition.name
        ),
    )
    .with_detail(format!(
        "Key ({})=({}) already exists.",
        names.join(", "),
        values.join(", ")
    ))
    .with_constraint(definition.name.clone())
}
