//! Tables that are declared in another way: the same rows under another schema, and rows for a
//! table of another layout.

use kiln_platform::atomic::Ordering;

use super::{Entry, Table, first_index_name};
use crate::epoch::Participant;
use crate::error::{Error, Result, SqlState, Subject};
use crate::index::{Insertion, LeafBatch};
use crate::qualified::name_in_schema;
use crate::record::{RecordRef, Tid};
use crate::schema::TableSchema;
use crate::slot::{Heap, Slot};

impl Table {
    /// A successor that is declared as `schema` says. Its rows lie as they do, so that columns keep
    /// their types, and whether they may be NULL; names, default values and constraints may be
    /// others.
    pub fn with_schema(&self, schema: TableSchema) -> Table {
        debug_assert!(self.has_layout_of(&schema));
        let mut table = self.with_same_indexes();
        table.indexes[0].definition.name = first_index_name(&schema);
        table.schema = schema;
        table
    }

    /// A successor whose index called `from`, which is not the first, is called `to`; `None` when
    /// there is no such index.
    pub fn with_renamed_index(&self, from: &str, to: &str) -> Option<Table> {
        let mut table = self.with_same_indexes();
        let mut others = table.indexes.iter_mut().skip(1);
        let index = others.find(|index| index.definition.name == from)?;
        index.definition.name = to.to_owned();
        Some(table)
    }

    /// Whether rows of a table that is declared so lie as the rows of this one do, under keys of
    /// the same form.
    pub fn has_layout_of(&self, schema: &TableSchema) -> bool {
        let own = &self.schema;
        own.columns.len() == schema.columns.len()
            && own.primary_key == schema.primary_key
            && (own.columns.iter().zip(&schema.columns)).all(|(own, other)| {
                (&own.data_type, own.not_null) == (&other.data_type, other.not_null)
            })
    }

    /// Calls `each` with each row and its number, if rows have numbers, in the order of the first
    /// index, as long as it returns no error. No transaction runs, and the rows are up to date.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn each_row(
        &self,
        mut each: impl FnMut(RecordRef, Option<i64>) -> Result<()>,
    ) -> Result<()> {
        let mut scan = self.indexes[0].entries_after(None);
        let mut batch = LeafBatch::new();
        while scan.next_leaf(&mut batch) {
            for payload in batch.payloads() {
                // SAFETY: the payload is of this table's index.
                let record = unsafe { Entry::from_payload(*payload) }.record();
                // Relaxed: the gate has ordered what transactions did before.
                if Tid(record.tid().load(Ordering::Relaxed)).is_absent() {
                    continue;
                }
                let number = self.layout.row_number();
                each(
                    record,
                    number.map(|access| access.load_integer(self.row(record))),
                )?;
            }
        }
        Ok(())
    }

    /// Adds a row to a table that has no index besides its first, and that no other thread knows
    /// yet. `values` has one for each column; their bytes are in `heap`. A table without a primary
    /// key gives the row the number, or its next one.
    ///
    /// # Errors
    /// 23502 for a NULL where there can be none; 23505 when there is a row with the key; 54000 when
    /// that is too long; 53200 when memory is short.
    pub fn append_row(
        &self,
        values: &[Slot],
        number: Option<i64>,
        heap: &mut Heap,
        participant: &Participant,
    ) -> Result<()> {
        self.check_not_null(values)?;
        // SAFETY: the arena is the participant's, which this thread alone uses.
        let cell = unsafe { self.slab().alloc(participant.arena()) };
        let cell = cell.map_err(|_| {
            let message = "the system grants no more memory for records";
            Error::new(SqlState::OUT_OF_MEMORY, message)
        })?;
        // SAFETY: the cell is of this table's slab.
        let record = unsafe { RecordRef::from_cell(cell) };
        let row = self.row(record);
        for (access, value) in self.layout.columns().iter().zip(values) {
            access.store(row, *value, heap);
        }
        if let Some(access) = self.layout.row_number() {
            let number = number.unwrap_or_else(|| self.next_row_number(0));
            access.store(row, Slot::from_i64(number), heap);
        }
        let added = self.add_entry(record, heap, participant);
        if added.is_err() {
            for blob in self.layout.blobs(self.layout.all(), row) {
                // SAFETY: the row was just written, and nothing refers to it.
                unsafe { crate::layout::Blob::free(blob) };
            }
        }
        added
    }

    fn add_entry(
        &self,
        record: RecordRef,
        heap: &mut Heap,
        participant: &Participant,
    ) -> Result<()> {
        let index = &self.indexes[0];
        let mark = heap.mark();
        let key = self.entry_key_of(index, self.row(record), heap)?;
        heap.release(mark);
        // Relaxed: other threads learn of the record when they learn of the table.
        record.tid().store(Tid(1).version(), Ordering::Relaxed);
        record.aux().store(0, Ordering::Relaxed);
        match index.insert_key(&key, Entry::of(record), participant) {
            Insertion::Inserted(_) => Ok(()),
            Insertion::Exists(_) => Err(self.not_unique(index)),
        }
    }

    fn check_not_null(&self, values: &[Slot]) -> Result<()> {
        let mut columns = self.schema.columns.iter().zip(values);
        let refused = columns.find(|(column, value)| column.not_null && value.is_null());
        match refused {
            None => Ok(()),
            Some((column, _)) => Err(contains_null(&self.schema, &column.name)),
        }
    }
}

/// The error for rows that have a NULL in a column that is to have none.
#[cold]
fn contains_null(schema: &TableSchema, column: &str) -> Error {
    let table = name_in_schema(&schema.name);
    let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
    let subject = Subject::table(&schema.name).with_column(column);
    Error::new(SqlState::NOT_NULL_VIOLATION, message).about(subject)
}
