//! What a commit wrote, as bytes that do not depend on how rows and indexes lie in memory.
//!
//! Numbers are little-endian. Sets, values and rows are those of [`crate::layout`].
//!
//! | part | bytes |
//! |---|---|
//! | commit | order 8, number of changes 4, the changes |
//! | change | form 1, table 4, and by its form: |
//! | 0, an insertion | the row |
//! | 1, an update | the key; the set of columns that were written; their values |
//! | 2, a deletion | the key |
//! | 3, a deletion whose key the row does not have any more | a length in 2 bytes, and the key as the table's first index orders it |
//! | key | the values of the primary key's columns, or the row number in 8 bytes |
//!
//! The log epoch is not among them: logs keep commits by epochs. [`Commit::append_within`] puts a
//! commit into a buffer that has room for it and allocates nothing; what room that takes at most
//! says [`Commit::bytes_max`].

use kiln_platform::atomic::AtomicU64;

use crate::bytes::{Reader, Writer, corrupt};
use crate::error::Result;
use crate::journal::{Change, ChangeKind, Commit};
use crate::schema::{ColumnId, ColumnSet, KEY_COLUMNS_MAX, TableId};
use crate::slot::{Heap, Slot};
use crate::table::{EntryKey, Table};

const INSERTED: u8 = 0;
const UPDATED: u8 = 1;
const DELETED: u8 = 2;
const DELETED_BY_FORMER_KEY: u8 = 3;

/// The head of a commit: its order and the number of its changes. The head of a change: its form
/// and its table.
const COMMIT_HEAD_BYTES: usize = 8 + 4;
const CHANGE_HEAD_BYTES: usize = 1 + 4;
/// Where the row is in a commit that only inserts one.
pub(crate) const ROW_AT: usize = COMMIT_HEAD_BYTES + CHANGE_HEAD_BYTES;

/// What the values of a key take at most: 256 bytes in an index, where a byte string takes one byte
/// more than it has, and here four; or the key itself with its length.
const KEY_BYTES_MAX: usize = 256 + 4 * KEY_COLUMNS_MAX;

impl Commit<'_> {
    /// The spare capacity in bytes that a buffer needs to [take](Commit::append_within) the commit:
    /// somewhat more than the bytes that it gets.
    pub fn bytes_max(&self) -> usize {
        let changes = self.changes.iter().map(Change::bytes_max);
        Writer::SLACK_BYTES + COMMIT_HEAD_BYTES + changes.sum::<usize>()
    }

    /// Appends the order and the changes if `target` has room for them, and returns whether it had:
    /// else nothing is appended. Does not allocate.
    #[inline]
    #[must_use]
    pub fn append_within(&self, target: &mut Vec<u8>) -> bool {
        self.append_some(target, self.changes.len(), |_| true)
    }

    /// As [`Commit::append_within`], the changes that `is_kept` picks, `count` of them.
    #[inline(always)]
    fn append_some(
        &self,
        target: &mut Vec<u8>,
        count: usize,
        is_kept: impl Fn(&Change) -> bool,
    ) -> bool {
        let mut writer = Writer::new(target.spare_capacity_mut());
        if !writer.begin(COMMIT_HEAD_BYTES) {
            return false;
        }
        // SAFETY: it was just asked for.
        unsafe {
            writer.put(self.order, 8);
            writer.put(count as u64, 4);
        }
        for change in self.changes.iter().filter(|change| is_kept(change)) {
            if !writer.begin(change.plain_bytes_max()) {
                return false;
            }
            // SAFETY: as much was just asked for.
            unsafe { change.put(&mut writer) };
        }
        let Some(end) = writer.end() else {
            return false;
        };
        let length = end - target.as_ptr().addr();
        // SAFETY: the bytes up to the end were put, within the capacity.
        unsafe { target.set_len(length) };
        true
    }

    /// Appends the order and the changes. Allocates if `target` has not room enough.
    #[inline]
    pub fn append(&self, target: &mut Vec<u8>) {
        if !self.append_within(target) {
            target.reserve(self.bytes_max());
            let is_appended = self.append_within(target);
            debug_assert!(is_appended, "{} bytes are enough", self.bytes_max());
        }
    }

    /// As [`Commit::append`], the changes of tables that `is_kept` picks; nothing when there are
    /// none.
    pub fn append_of(&self, target: &mut Vec<u8>, is_kept: impl Fn(&Table) -> bool) {
        let is_kept = |change: &Change| is_kept(change.table());
        let count = self.changes.iter().filter(|change| is_kept(change)).count();
        if count > 0 {
            target.reserve(self.bytes_max());
            let is_appended = self.append_some(target, count, is_kept);
            debug_assert!(is_appended, "{} bytes are enough", self.bytes_max());
        }
    }
}

impl Change {
    /// What the change takes at most, without spilled byte strings: the same for all changes of a
    /// table.
    #[inline(always)]
    fn plain_bytes_max(&self) -> usize {
        CHANGE_HEAD_BYTES + KEY_BYTES_MAX + self.table().layout().values_bytes_max()
    }

    fn bytes_max(&self) -> usize {
        let layout = self.table().layout();
        let (imaged, image) = self.image();
        let written = self.columns();
        let row = self.table().row(self.record());
        self.plain_bytes_max()
            + layout.spilled_bytes(written.intersection(imaged), image)
            + layout.spilled_bytes(written.difference(imaged), row)
            + match self.kind() {
                ChangeKind::Insert => 0,
                ChangeKind::Update | ChangeKind::Delete => {
                    let key = self.table().indexes()[0].columns();
                    layout.spilled_bytes(key.intersection(imaged), image)
                        + layout.spilled_bytes(key.difference(imaged), row)
                }
            }
    }

    /// Puts the change.
    ///
    /// # Safety
    /// [`Change::plain_bytes_max`] bytes may be put.
    #[inline(always)]
    unsafe fn put(&self, writer: &mut Writer<'_>) {
        let table = self.table();
        let (layout, row) = (table.layout(), table.row(self.record()));
        let head = |form: u8| u64::from(form) | u64::from(table.id().0) << 8;
        // SAFETY: the caller reserved [`Change::plain_bytes_max`] bytes. The callers of `new` and
        // `imaged` keep the row and the image stable until the change is dropped.
        unsafe {
            match self.kind() {
                ChangeKind::Insert => {
                    writer.put(head(INSERTED), CHANGE_HEAD_BYTES);
                    match self.is_imaged() {
                        true => {
                            let words = |column| self.words(column);
                            *writer = layout.put_row_from(row, words, *writer);
                        }
                        false => layout.put_row(row, writer),
                    }
                }
                ChangeKind::Update => {
                    writer.put(head(UPDATED), CHANGE_HEAD_BYTES);
                    let columns = self.columns();
                    self.put_key(row, writer);
                    layout.put_set(columns, writer);
                    // All columns that an update wrote are in its image, if it has one.
                    let words = match self.is_imaged() {
                        true => self.image().1,
                        false => row,
                    };
                    layout.put_values(columns, words, writer);
                }
                ChangeKind::Delete => match self.former_key() {
                    None => {
                        writer.put(head(DELETED), CHANGE_HEAD_BYTES);
                        self.put_key(row, writer);
                    }
                    Some(key) => {
                        writer.put(head(DELETED_BY_FORMER_KEY), CHANGE_HEAD_BYTES);
                        *writer = put_entry_key(key, *writer);
                    }
                },
            }
        }
    }

    /// # Safety
    /// As for [`Change::put`].
    #[inline(always)]
    unsafe fn put_key(&self, row: &[AtomicU64], writer: &mut Writer<'_>) {
        let layout = self.table().layout();
        let columns = self.table().indexes()[0].columns();
        // SAFETY: as of the caller.
        unsafe {
            if layout.row_number().is_some() {
                writer.put_words(row, 0, 8);
            } else if columns.intersects(self.image().0) {
                *writer = layout.put_values_from(columns, |column| self.words(column), *writer);
            } else {
                layout.put_values(columns, row, writer);
            }
        }
    }
}

/// # Safety
/// As for [`Change::put`].
#[cold]
unsafe fn put_entry_key<'w>(key: &EntryKey, mut writer: Writer<'w>) -> Writer<'w> {
    let words: &[u64] = match key {
        EntryKey::Word(word) => &[*word],
        EntryKey::DoubleWord(word) => &[(word >> 64) as u64, *word as u64],
        EntryKey::Bytes64(key) => &key.0,
        EntryKey::Bytes256(key) => &key.0,
    };
    // SAFETY: as of the caller.
    unsafe {
        writer.put(words.len() as u64 * 8, 2);
        words
            .iter()
            .for_each(|word| writer.put(word.swap_bytes(), 8));
    }
    writer
}

/// A change whose key was read, and whose values were passed over.
#[derive(Clone, Debug)]
pub struct KeyedChange<'t, 'b> {
    /// The row's table.
    pub table: &'t Table,
    /// What happened to the row.
    pub kind: ChangeKind,
    /// Its key in the table's first index.
    pub key: EntryKey,
    /// What follows the key: of an insertion the row, of an update the set of columns that were
    /// written and their values.
    rest: &'b [u8],
}

impl KeyedChange<'_, '_> {
    /// The columns that were written: all of an insertion, none of a deletion.
    ///
    /// # Errors
    /// XX001 for columns that the table does not have.
    #[inline]
    pub fn written(&self) -> Result<ColumnSet> {
        let layout = self.table.layout();
        match self.kind {
            ChangeKind::Insert => Ok(layout.all()),
            ChangeKind::Update => layout.read_set(&mut Reader::new(self.rest)),
            ChangeKind::Delete => Ok(ColumnSet::EMPTY),
        }
    }

    /// Reads the row of an insertion into the words of a record that has none, and returns its row
    /// number if the table has no primary key. `heap` is room.
    ///
    /// # Errors
    /// XX001 for values that their columns cannot have; then the record has no byte strings
    /// outside.
    #[inline]
    pub(crate) fn restore_row(&self, heap: &mut Heap, row: &[AtomicU64]) -> Result<Option<i64>> {
        debug_assert_eq!(self.kind, ChangeKind::Insert);
        let columns = &self.table.schema().columns;
        let mut reader = Reader::new(self.rest);
        (self.table.layout()).restore_row(columns, &mut reader, heap, row)
    }

    /// Reads the values of these columns, and hands each over with the heap, where its bytes are if
    /// it is a byte string. Returns the row number of an insertion into a table without a primary
    /// key.
    ///
    /// # Errors
    /// XX001 for values that their columns cannot have.
    #[inline]
    pub fn read_each(
        &self,
        heap: &mut Heap,
        each: impl FnMut(ColumnId, Slot, &mut Heap),
    ) -> Result<Option<i64>> {
        let (layout, columns) = (self.table.layout(), &self.table.schema().columns);
        let mut reader = Reader::new(self.rest);
        match self.kind {
            ChangeKind::Insert => layout.read_row(columns, &mut reader, heap, each),
            ChangeKind::Update => {
                let written = layout.read_set(&mut reader)?;
                layout.read_values(columns, written, &mut reader, heap, each)?;
                Ok(None)
            }
            ChangeKind::Delete => Ok(None),
        }
    }
}

/// Reads the key of a row of `table`, as the key of its insertion, and passes over the rest of it.
/// What the heap gets for it is taken from it again after that.
///
/// # Errors
/// XX001 for bytes that no row of the table has.
pub fn read_keyed_row<'t, 'b>(
    table: &'t Table,
    reader: &mut Reader<'b>,
    room: &mut KeyRoom,
) -> Result<KeyedChange<'t, 'b>> {
    read_keyed(INSERTED, table, reader, room)
}

/// A change that was read.
#[derive(Debug)]
pub struct ReadChange<'a> {
    /// The row's table.
    pub table: &'a Table,
    /// What happened to the row.
    pub kind: ChangeKind,
    /// Its key in the table's first index.
    pub key: EntryKey,
    /// The columns that were written, with their values, in the order of the columns: all of an
    /// insertion, none of a deletion. Byte strings are in the heap.
    pub values: &'a [(ColumnId, Slot)],
    /// The number of a row that was inserted, where the table has no primary key.
    pub row_number: Option<i64>,
}

/// Reads a commit: hands its changes over in their order, and returns its order. `table` says which
/// table has a number. What the heap gets for a change is taken from it again after that.
///
/// # Errors
/// XX001 for bytes that no commit has appended, or not to these tables; and what `each` returns.
pub fn read_commit<'t>(
    reader: &mut Reader<'_>,
    table: impl FnMut(TableId) -> Option<&'t Table>,
    heap: &mut Heap,
    mut each: impl FnMut(&ReadChange<'_>, &mut Heap) -> Result<()>,
) -> Result<u64> {
    let (mut values, mut room) = (Vec::new(), KeyRoom::default());
    read_keys(reader, table, &mut room, |change| {
        let mark = heap.mark();
        values.clear();
        let row_number = change.read_each(heap, |column, value, _| values.push((column, value)))?;
        // The bytes of a row have them in another order.
        values.sort_unstable_by_key(|(column, _)| *column);
        let read = ReadChange {
            table: change.table,
            kind: change.kind,
            key: change.key,
            values: &values,
            row_number,
        };
        each(&read, heap)?;
        heap.release(mark);
        Ok(())
    })
}

/// Reads a commit, but of each change only the key; see [`read_commit`].
///
/// # Errors
/// Those of [`read_commit`], but for values that their columns cannot have.
#[inline]
pub fn read_keys<'t, 'b>(
    reader: &mut Reader<'b>,
    mut table: impl FnMut(TableId) -> Option<&'t Table>,
    room: &mut KeyRoom,
    mut each: impl FnMut(KeyedChange<'t, 'b>) -> Result<()>,
) -> Result<u64> {
    let (order, changes) = (reader.number(8)?, reader.number(4)?);
    for _ in 0..changes {
        let form = reader.number(1)? as u8;
        let id = TableId(reader.number(4)? as u32);
        let table = table(id).ok_or_else(|| corrupt(format!("no table has number {}", id.0)))?;
        each(read_keyed(form, table, reader, room)?)?;
    }
    Ok(order)
}

/// Room for what reading a key takes, used again and again.
#[derive(Debug, Default)]
pub struct KeyRoom {
    values: Vec<(ColumnId, Slot)>,
    heap: Heap,
}

#[inline]
fn read_keyed<'t, 'b>(
    form: u8,
    table: &'t Table,
    reader: &mut Reader<'b>,
    room: &mut KeyRoom,
) -> Result<KeyedChange<'t, 'b>> {
    let layout = table.layout();
    let (kind, key, start) = match form {
        INSERTED => {
            let start = reader.rest();
            let key = read_key(table, reader, room, true)?;
            (ChangeKind::Insert, key, start)
        }
        UPDATED => {
            let key = read_key(table, reader, room, false)?;
            let start = reader.rest();
            let written = layout.read_set(reader)?;
            layout.pass_values(written, reader)?;
            (ChangeKind::Update, key, start)
        }
        DELETED => {
            let key = read_key(table, reader, room, false)?;
            (ChangeKind::Delete, key, reader.rest())
        }
        DELETED_BY_FORMER_KEY => {
            let length = reader.number(2)? as usize;
            let width = table.indexes()[0].key_layout().width();
            let key = EntryKey::from_bytes(width, reader.take(length)?);
            let key = key.ok_or_else(|| corrupt(format!("{table:?} has no such keys")))?;
            (ChangeKind::Delete, key, reader.rest())
        }
        _ => return Err(corrupt(format!("no change has the form {form}"))),
    };
    Ok(KeyedChange {
        table,
        kind,
        key,
        rest: &start[..start.len() - reader.rest().len()],
    })
}

/// Reads a key, of which a whole row has the values, or which stands by itself.
#[inline]
fn read_key(
    table: &Table,
    reader: &mut Reader<'_>,
    room: &mut KeyRoom,
    is_in_row: bool,
) -> Result<EntryKey> {
    let (layout, definitions) = (table.layout(), &table.schema().columns);
    let KeyRoom { values, heap } = room;
    values.clear();
    heap.clear();
    let each = |column, value, _: &mut Heap| values.push((column, value));
    let columns = table.indexes()[0].columns();
    let number = match (is_in_row, layout.row_number().is_some()) {
        (true, _) => layout.read_key_of_row(definitions, columns, reader, heap, each)?,
        (false, true) => Some(reader.number(8)? as i64),
        (false, false) => {
            layout.read_values(definitions, columns, reader, heap, each)?;
            None
        }
    };
    key_of(table, number, values, heap)
}

/// The key of a row with this number, or these values.
fn key_of(
    table: &Table,
    number: Option<i64>,
    values: &[(ColumnId, Slot)],
    heap: &Heap,
) -> Result<EntryKey> {
    table.indexes()[0].entry_key(heap, |_, field| match field.column {
        Some(column) => {
            let value = values.iter().find(|(own, _)| *own == column);
            value.expect("all columns of the key were read").1
        }
        None => Slot::from_i64(number.unwrap_or_default()),
    })
}
