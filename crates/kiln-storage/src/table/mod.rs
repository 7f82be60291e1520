//! Tables: a schema, the memory of its records, and its indexes.

mod entry;
mod index;
mod key_space;
mod partition;
mod scan;
mod shape;
mod sight;

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};

use crate::epoch::Participant;
use crate::error::{Error, Result, SqlState, Subject};
use crate::index::Insertion;
use crate::key::{KeyField, KeyLayout, ROW_NUMBER_SLOT_BITS};
use crate::layout::RowLayout;
use crate::qualified::name_in_schema;
use crate::record::{HEADER_BYTES, RecordRef, Tid};
use crate::schema::{
    ColumnId, ColumnSet, Deferral, IndexDefinition, IndexKind, IndexMethod, KEY_COLUMNS_MAX,
    TableId, TableSchema,
};
use crate::slab::Slab;
use crate::slot::{Heap, Slot};
use crate::types::DataType;

pub use entry::{Entry, EntryKey, Found};
pub use index::Index;
pub use key_space::{CUTS_MAX, Cuts, KeySpace};
pub use partition::Part;
pub use scan::{IndexScan, RangeValues};
pub use sight::SightKey;

use index::Map;
use key_space::KeySpaces;

/// How many workers may have an arena of their own in a table.
pub const WORKERS_MAX: usize = 256;
/// Numbers of the arenas that workers use are smaller
/// ([`Participant::arena`](crate::epoch::Participant::arena)).
pub const ARENAS_MAX: usize = 2 * WORKERS_MAX;

/// A counter on a cache line of its own.
#[repr(align(64))]
struct PaddedCounter(AtomicU64);

/// The records of a table, shared by the table and its successors.
struct Rows {
    slab: Slab,
    row_numbers: Box<[PaddedCounter]>,
    /// The columns whose values may be kept outside the row, and how to find these.
    layout: RowLayout,
    /// The first index of the newest successor: it names every row.
    newest: Mutex<Arc<Map>>,
    /// The columns that have a timestamp of their own; see [`Table::split_by`].
    split: [AtomicU64; 2],
    /// The columns that have a lock of their own; see [`Table::set_unwritten`].
    unwritten: [AtomicU64; 2],
}

/// The columns in words that change only while no transaction runs.
#[inline(always)]
fn columns_in([low, high]: &[AtomicU64; 2]) -> ColumnSet {
    // Relaxed: the gate orders the change with all transactions.
    ColumnSet::from_words([low.load(Ordering::Relaxed), high.load(Ordering::Relaxed)])
}

/// Stores columns where [`columns_in`] finds them.
fn set_columns(words: &[AtomicU64; 2], columns: ColumnSet) {
    for (word, value) in words.iter().zip(columns.to_words()) {
        // Relaxed: as in `columns_in`.
        word.store(value, Ordering::Relaxed);
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // The slab's memory goes as a whole; only what rows point to must be freed one by one.
        let layout = &self.layout;
        if layout.spilling().is_empty() {
            return;
        }
        lock(&self.newest).for_each(|address| {
            // SAFETY: the address is that of a record of this table. No table is left that has
            // these rows, so no thread reads them or their blobs.
            unsafe {
                let record = RecordRef::from_address(address);
                for blob in layout.blobs(layout.spilling(), record.row(layout.words())) {
                    crate::layout::Blob::free(blob);
                }
            }
        });
    }
}

/// A table. The first index is always ordered: over the primary key, or over a hidden row number.
///
/// A table never changes its shape. What changes it in SQL makes a *successor* that shares the
/// rows and the indexes that stay ([`Table::with_index`], [`Table::with_rebuilt_index`],
/// [`Table::without_index`]); the predecessor is then [superseded](Table::supersede), and nothing
/// that was compiled for it may run any more, as it would leave the successor's indexes behind.
pub struct Table {
    id: TableId,
    schema: TableSchema,
    layout: RowLayout,
    indexes: Vec<Index>,
    key_spaces: KeySpaces,
    indexed_columns: ColumnSet,
    rows: Arc<Rows>,
    superseded: AtomicBool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}, {})", self.id.0, self.schema.name)
    }
}

impl Table {
    /// An empty table with its first index and these secondary ones.
    ///
    /// # Errors
    /// 54011 when it has too many columns; 54000 when a row would be longer than 64 KiB.
    pub fn new(
        id: TableId,
        schema: TableSchema,
        primary_partition_columns: usize,
        secondary: Vec<IndexDefinition>,
    ) -> Result<Table> {
        if schema.columns.len() > crate::schema::COLUMNS_MAX {
            return Err(Error::new(
                SqlState::TOO_MANY_COLUMNS,
                format!(
                    "tables can have at most {} columns",
                    crate::schema::COLUMNS_MAX
                ),
            ));
        }
        partition::check(&schema)?;
        check_key(&schema, &schema.primary_key)?;
        secondary
            .iter()
            .try_for_each(|index| check_key(&schema, &index.columns))?;
        let numbered = schema.primary_key.is_empty();
        let layout = RowLayout::new(&schema.columns, numbered);
        let cell_bytes = HEADER_BYTES + layout.words() * 8;
        if cell_bytes > 64 << 10 {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "a row of table \"{}\" would take {cell_bytes} bytes",
                    schema.name
                ),
            )
            .with_hint("Rows take at most 65536 bytes; use TEXT for long columns."));
        }
        let primary = if numbered {
            let definition = IndexDefinition {
                name: first_index_name(&schema),
                columns: Vec::new(),
                unique: true,
                constraint: true,
                partial: false,
                nulls_equal: false,
                deferral: Deferral::No,
                method: IndexMethod::BTree,
                // Each worker numbers its rows in a range of its own: its inserts meet no other's.
                kind: IndexKind::Ordered {
                    partition_columns: 0,
                },
            };
            Index::new(definition, KeyLayout::of_row_numbers(), 0, None)
        } else {
            let key = &schema.primary_key;
            let key_layout = KeyLayout::new(&schema.columns, key, &[], false, (true, key.len()));
            let definition = IndexDefinition {
                name: first_index_name(&schema),
                columns: key.clone(),
                unique: true,
                constraint: true,
                partial: false,
                nulls_equal: false,
                deferral: Deferral::No,
                method: IndexMethod::BTree,
                kind: IndexKind::Ordered {
                    partition_columns: primary_partition_columns,
                },
            };
            Index::new(definition, key_layout, 0, None)
        };
        // Zeroed by the system, page by page as arenas come to be used.
        let row_numbers = Box::<[PaddedCounter]>::new_zeroed_slice(ARENAS_MAX);
        // SAFETY: zero bytes are an atomic 0.
        let row_numbers = unsafe { row_numbers.assume_init() };
        let rows = Rows {
            slab: Slab::new(cell_bytes, ARENAS_MAX),
            row_numbers,
            layout: layout.clone(),
            newest: Mutex::new(primary.map.clone()),
            split: [const { AtomicU64::new(0) }; 2],
            unwritten: [const { AtomicU64::new(0) }; 2],
        };
        let mut table = Table {
            id,
            schema,
            layout,
            indexed_columns: primary.columns(),
            key_spaces: KeySpaces::default(),
            indexes: vec![primary],
            rows: Arc::new(rows),
            superseded: AtomicBool::new(false),
        };
        for definition in secondary {
            let index = table.empty_index(definition, 0);
            table.indexed_columns = table.indexed_columns.union(index.columns());
            table.indexes.push(index);
        }
        table.key_spaces = KeySpaces::of(&table.indexes);
        Ok(table)
    }

    fn empty_index(&self, definition: IndexDefinition, expected: usize) -> Index {
        let layout = KeyLayout::new(
            &self.schema.columns,
            &definition.columns,
            &self.schema.primary_key,
            self.schema.primary_key.is_empty(),
            (definition.unique, definition.distinct_nulls()),
        );
        Index::new(definition, layout, expected, self.schema.partition_column())
    }

    /// A successor that shares all indexes.
    pub(crate) fn with_same_indexes(&self) -> Table {
        self.successor(self.indexes.iter().map(Index::share).collect())
    }

    /// A table with the same rows and these indexes.
    fn successor(&self, indexes: Vec<Index>) -> Table {
        let columns = indexes.iter().map(Index::columns);
        Table {
            id: self.id,
            schema: self.schema.clone(),
            layout: self.layout.clone(),
            indexed_columns: columns.fold(ColumnSet::EMPTY, ColumnSet::union),
            key_spaces: KeySpaces::of(&indexes),
            indexes,
            rows: self.rows.clone(),
            superseded: AtomicBool::new(false),
        }
    }

    /// A successor with one more index, the last one, filled from the present rows. No transaction
    /// changes the rows meanwhile.
    ///
    /// # Errors
    /// 23505 when the index is unique and the rows are not; 54000 when a key is too long.
    pub fn with_index(
        &self,
        definition: IndexDefinition,
        participant: &Participant,
    ) -> Result<Table> {
        check_key(&self.schema, &definition.columns)?;
        let index = self.empty_index(definition, self.indexes[0].len());
        self.fill(&index, participant)?;
        let shared = self.indexes.iter().map(Index::share);
        Ok(self.successor(shared.chain([index]).collect()))
    }

    /// A successor with one more index, the last one, without entries: for rows that are still
    /// being restored.
    ///
    /// # Errors
    /// 54011 for too many columns.
    pub fn with_empty_index(&self, definition: IndexDefinition) -> Result<Table> {
        check_key(&self.schema, &definition.columns)?;
        let index = self.empty_index(definition, self.indexes[0].len());
        let shared = self.indexes.iter().map(Index::share);
        Ok(self.successor(shared.chain([index]).collect()))
    }

    /// A successor whose index at `position`, which is not the first, has another kind and no
    /// entries: for rows that are still being restored.
    pub fn with_emptied_index(&self, position: usize, kind: IndexKind) -> Table {
        let old = &self.indexes[position];
        let definition = IndexDefinition {
            kind,
            ..old.definition.clone()
        };
        let mut indexes: Vec<Index> = self.indexes.iter().map(Index::share).collect();
        indexes[position] = self.empty_index(definition, old.len());
        self.successor(indexes)
    }

    /// A successor whose index at `position` is built anew with another kind. No transaction
    /// changes the rows meanwhile.
    ///
    /// # Errors
    /// None that the present index would not have raised.
    pub fn with_rebuilt_index(
        &self,
        position: usize,
        kind: IndexKind,
        participant: &Participant,
    ) -> Result<Table> {
        let old = &self.indexes[position];
        let definition = IndexDefinition {
            kind,
            ..old.definition.clone()
        };
        let index = if position == 0 && self.schema.primary_key.is_empty() {
            Index::new(definition, KeyLayout::of_row_numbers(), 0, None)
        } else {
            self.empty_index(definition, old.len())
        };
        self.fill(&index, participant)?;
        let mut indexes: Vec<Index> = self.indexes.iter().map(Index::share).collect();
        indexes[position] = index;
        Ok(self.successor(indexes))
    }

    /// A successor without the index called `name`; `None` when there is no such secondary index.
    pub fn without_index(&self, name: &str) -> Option<Table> {
        let position = self
            .indexes
            .iter()
            .skip(1)
            .position(|index| index.definition.name == name);
        let mut indexes: Vec<Index> = self.indexes.iter().map(Index::share).collect();
        indexes.remove(position? + 1);
        Some(self.successor(indexes))
    }

    /// Says that `successor` has taken this table's place, or that it was dropped. No transaction
    /// runs meanwhile.
    pub fn supersede(&self, successor: Option<&Table>) {
        if let Some(successor) = successor {
            *lock(&self.rows.newest) = successor.indexes[0].map.clone();
        }
        // Relaxed: a reader synchronises with the end of the time without transactions.
        self.superseded.store(true, Ordering::Relaxed);
    }

    /// Whether another table has taken this one's place, or it was dropped: programs that name it
    /// must be compiled again. Does not change while a transaction runs.
    #[inline(always)]
    pub fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    fn fill(&self, index: &Index, participant: &Participant) -> Result<()> {
        let mut result = Ok(());
        let mut heap = Heap::new();
        self.indexes[0].for_each(|record| {
            let absent = Tid(record.tid().load(Ordering::Acquire)).is_absent();
            if result.is_err() || absent {
                return;
            }
            heap.clear();
            let row = self.row(record);
            result = self.entry_key_of(index, row, &mut heap).and_then(|key| {
                match index.insert_key(&key, Entry::of(record), participant) {
                    Insertion::Inserted(_) => Ok(()),
                    Insertion::Exists(_) => Err(self.not_unique(index)),
                }
            });
        });
        result
    }

    /// The error for rows that have the same key of a new index that is unique.
    #[cold]
    fn not_unique(&self, index: &Index) -> Error {
        let name = &index.definition.name;
        let message = format!("could not create unique index \"{name}\"");
        let subject = Subject::table(&self.schema.name).with_constraint(name);
        Error::new(SqlState::UNIQUE_VIOLATION, message).about(subject)
    }

    /// The key that `index` has for a row; the row is stable, or the caller validates it.
    ///
    /// # Errors
    /// 54000 when the key is longer than a key may be.
    pub fn entry_key_of(
        &self,
        index: &Index,
        row: &[AtomicU64],
        heap: &mut Heap,
    ) -> Result<EntryKey> {
        let mut values = [Slot::NULL; crate::schema::COLUMNS_MAX + 1];
        for (position, field) in index.layout.fields().iter().enumerate() {
            values[position] = self.field_value(field, row, heap);
        }
        index.entry_key(heap, |position, _| values[position])
    }

    /// The value of a key field in a stable row.
    pub fn field_value(&self, field: &KeyField, row: &[AtomicU64], heap: &mut Heap) -> Slot {
        match field.column {
            Some(column) => self.column_value(column, row, heap),
            None => {
                let access = self
                    .layout
                    .row_number()
                    .expect("a numbered table has row numbers");
                access.load(row, heap)
            }
        }
    }

    /// The value of a column in a stable row.
    pub fn column_value(&self, column: ColumnId, row: &[AtomicU64], heap: &mut Heap) -> Slot {
        let slot = self.layout.column(column).load(row, heap);
        if crate::layout::is_spilled(slot) {
            // SAFETY: the row is stable, so the pointer is live.
            return unsafe { crate::layout::resolve(slot, heap) };
        }
        slot
    }

    /// The table's number.
    #[inline(always)]
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The table as declared.
    #[inline(always)]
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// How its rows lie in memory.
    #[inline(always)]
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// Its indexes; the first is ordered and over the primary key or the row number.
    #[inline(always)]
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The keys of its indexes, each kind of key once.
    #[inline(always)]
    pub fn key_spaces(&self) -> &[KeySpace] {
        &self.key_spaces.all
    }

    /// The position of the key space of the index at a position.
    #[inline(always)]
    pub fn key_space_of(&self, index: usize) -> usize {
        self.key_spaces.of_index[index]
    }

    /// The columns of all its indexes: an update of one of them moves entries.
    #[inline(always)]
    pub fn indexed_columns(&self) -> ColumnSet {
        self.indexed_columns
    }

    /// The columns that protocols with timestamp splitting cover by a second timestamp; none where
    /// there is nothing to split.
    #[inline(always)]
    pub fn split(&self) -> ColumnSet {
        columns_in(&self.rows.split)
    }

    /// Has protocols with timestamp splitting cover `columns` by a second timestamp: those rarely
    /// written but often read. No transaction runs meanwhile. Successors of the table have it too.
    pub fn split_by(&self, columns: ColumnSet) {
        set_columns(&self.rows.split, columns);
    }

    /// The columns that no registered procedure writes, where protocols that claim records by
    /// column group keep a lock for them beside the record's; none where that would not pay.
    #[inline(always)]
    pub fn unwritten(&self) -> ColumnSet {
        columns_in(&self.rows.unwritten)
    }

    /// Has protocols that claim records by column group keep a lock for `columns`. Any set is
    /// right, and one that no transaction writes pays. No transaction runs meanwhile, and none that
    /// has used the table is open. Successors of the table have it too.
    pub fn set_unwritten(&self, columns: ColumnSet) {
        set_columns(&self.rows.unwritten, columns);
    }

    /// The memory of its records.
    #[inline(always)]
    pub fn slab(&self) -> &Slab {
        &self.rows.slab
    }

    /// A record's row.
    #[inline(always)]
    pub fn row<'a>(&self, record: RecordRef) -> &'a [AtomicU64] {
        // SAFETY: the record is of this table, whose rows have this many words.
        unsafe { record.row(self.layout.words()) }
    }

    /// The next row number of the worker in `slot`, for tables without a primary key.
    #[inline]
    pub fn next_row_number(&self, slot: usize) -> i64 {
        // Only the slot's worker counts here, so that relaxed load and store would do as well;
        // the addition keeps the numbers unique also when a slot changes hands.
        let number = self.rows.row_numbers[slot]
            .0
            .fetch_add(1, Ordering::Relaxed);
        (slot as i64) << (64 - ROW_NUMBER_SLOT_BITS) | number as i64
    }

    /// The next row number of each arena that has given one out, without the arena's own bits:
    /// for [`Table::restore_row_number`]. While transactions run they are those of some moment.
    pub fn row_numbers(&self) -> Vec<(usize, u64)> {
        let counters = self.rows.row_numbers.iter().enumerate();
        // Relaxed: the counters order nothing.
        let counts = counters.map(|(slot, counter)| (slot, counter.0.load(Ordering::Relaxed)));
        counts.filter(|(_, next)| *next > 0).collect()
    }

    /// Goes on counting from `next` in an arena, where it has not come as far yet. There may be no
    /// such arena here: then its numbers are not given out again either, as they have its bits.
    pub fn restore_row_number(&self, slot: usize, next: u64) {
        if let Some(counter) = self.rows.row_numbers.get(slot) {
            // Relaxed: the counters order nothing.
            counter.0.fetch_max(next, Ordering::Relaxed);
        }
    }

    /// The number of its rows; concurrent changes may or may not be seen.
    pub fn rows_present(&self) -> usize {
        let mut rows = 0;
        self.indexes[0].for_each(|record| {
            let is_absent = Tid(record.tid().load(Ordering::Acquire)).is_absent();
            rows += usize::from(!is_absent);
        });
        rows
    }

    /// The bytes that the values of all present rows take, as if each were stored alone. No
    /// transaction changes the table meanwhile.
    pub fn raw_bytes(&self) -> usize {
        let mut bytes = 0;
        self.indexes[0].for_each(|record| {
            if !Tid(record.tid().load(Ordering::Acquire)).is_absent() {
                let row = self.row(record);
                let columns = self.layout.columns().iter();
                bytes += columns.map(|access| access.raw_bytes(row)).sum::<usize>();
            }
        });
        bytes
    }
}

/// What the index over the primary key is called, or over the row number.
fn first_index_name(schema: &TableSchema) -> String {
    match (&schema.primary_key_name, schema.primary_key.is_empty()) {
        (Some(name), false) => name.clone(),
        (None, false) => format!("{}_pkey", name_in_schema(&schema.name)),
        (_, true) => format!("{}_row_number", name_in_schema(&schema.name)),
    }
}

/// Refuses keys of too many columns, and of types without an order.
fn check_key(schema: &TableSchema, columns: &[ColumnId]) -> Result<()> {
    if columns.len() > KEY_COLUMNS_MAX {
        let message = format!("cannot use more than {KEY_COLUMNS_MAX} columns in an index");
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    for column in columns {
        match schema.columns[column.index()].data_type {
            DataType::JSON => {
                let message =
                    "data type json has no default operator class for access method \"btree\"";
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message).with_hint(
                    "You must specify an operator class for the index or define a default \
                     operator class for the data type.",
                ));
            }
            ref data_type @ (DataType::JSONB
            | DataType::Interval(_)
            | DataType::Array(_)
            | DataType::Row(_)) => {
                let message = format!("an index over a column of type {data_type}");
                return Err(Error::unsupported(message));
            }
            _ => {}
        }
    }
    Ok(())
}
