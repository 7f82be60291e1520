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
//! The log epoch is not among them: logs keep commits by epochs. [`Commit::append_within`] puts a commit into a buffer that
//! has room for it and allocates nothing; what room that takes at most says [`Commit::bytes_max`].

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

/// Of a commit: its order and the number of its changes. Of a change: its form and its table.
const COMMIT_HEAD_BYTES: usize = 8 + 4;
const CHANGE_HEAD_BYTES: usize = 1 + 4;
/// Where the row is in a commit that only inserts one.
pub(crate) const ROW_AT: usize = COMMIT_HEAD_BYTES + CHANGE_HEAD_BYTES;

/// What the values of a key take at most: 256 bytes in an index, where a byte string takes one byte more than it has, and
/// here four; or the key itself with its length.
const KEY_BYTES_MAX: usize = 256 + 4 * KEY_COLUMNS_MAX;

impl Commit<'_> {
    /// The capacity besides what it has that a buffer needs to [take](Commit::append_within) the commit: somewhat more
    /// than the bytes that it gets.
    pub fn bytes_max(&self) -> usize {
        let changes = self.changes.iter().map(Change::bytes_max);
        Writer::SLACK_BYTES + COMMIT_HEAD_BYTES + changes.sum::<usize>()
    }

    /// Appends the order and the changes if `target` has room for them, and returns whether it had: else nothing is
    /// appended. Does not allocate.
    #[inline]
    #[must_use]
    pub fn append_within(&self, target: &mut Vec<u8>) -> bool {
        let mut writer = Writer::new(target.spare_capacity_mut());
        if !writer.begin(COMMIT_HEAD_BYTES) {
            return false;
        }
        // SAFETY: it was just asked for.
        unsafe {
            writer.put(self.order, 8);
            writer.put(self.changes.len() as u64, 4);
        }
        for change in self.changes {
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
}

impl Change {
    /// What the change takes at most, without spilled byte strings: the same for all changes of a table.
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
        // SAFETY: by the contract there is room. By the contracts of `new` and `imaged` row and image are stable.
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

/// Reads a row of `table` and hands it over as its insertion. What the heap gets for it is taken from it again after that.
///
/// # Errors
/// XX001 for bytes that no row of the table has; and what `each` returns.
pub fn read_row(
    table: &Table,
    reader: &mut Reader<'_>,
    heap: &mut Heap,
    each: impl FnOnce(&ReadChange<'_>, &mut Heap) -> Result<()>,
) -> Result<()> {
    let mark = heap.mark();
    let mut values = Vec::with_capacity(table.schema().columns.len());
    let (kind, key, row_number) = read_change(INSERTED, table, reader, heap, &mut values)?;
    let values = &values[..];
    let read = ReadChange {
        table,
        kind,
        key,
        values,
        row_number,
    };
    each(&read, heap)?;
    heap.release(mark);
    Ok(())
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
    /// The columns that were written, with their values: all of an insertion, none of a deletion. Byte strings are in
    /// the heap.
    pub values: &'a [(ColumnId, Slot)],
    /// The number of a row that was inserted, where the table has no primary key.
    pub row_number: Option<i64>,
}

/// Reads a commit: hands its changes over in their order, and returns its order. `table` says which table has a
/// number. What the heap gets for a change is taken from it again after that.
///
/// # Errors
/// XX001 for bytes that no commit has appended, or not to these tables; and what `each` returns.
pub fn read_commit<'t>(
    reader: &mut Reader<'_>,
    mut table: impl FnMut(TableId) -> Option<&'t Table>,
    heap: &mut Heap,
    mut each: impl FnMut(&ReadChange<'_>, &mut Heap) -> Result<()>,
) -> Result<u64> {
    let (order, changes) = read_head(reader)?;
    let mut values = Vec::new();
    for _ in 0..changes {
        read_one(reader, &mut table, heap, &mut values, &mut each)?;
    }
    Ok(order)
}

/// Reads what a commit begins with: its order, and the number of its changes.
///
/// # Errors
/// XX001 for fewer bytes.
pub fn read_head(reader: &mut Reader<'_>) -> Result<(u64, u64)> {
    Ok((reader.number(8)?, reader.number(4)?))
}

/// Reads one change of a commit, as [`read_commit`] does. `values` is room that is used again.
///
/// # Errors
/// As there.
#[inline]
pub fn read_one<'t>(
    reader: &mut Reader<'_>,
    table: impl FnOnce(TableId) -> Option<&'t Table>,
    heap: &mut Heap,
    values: &mut Vec<(ColumnId, Slot)>,
    each: impl FnOnce(&ReadChange<'_>, &mut Heap) -> Result<()>,
) -> Result<()> {
    let mark = heap.mark();
    values.clear();
    let form = reader.number(1)? as u8;
    let id = TableId(reader.number(4)? as u32);
    let table = table(id).ok_or_else(|| corrupt(format!("no table has number {}", id.0)))?;
    let (kind, key, row_number) = read_change(form, table, reader, heap, values)?;
    let read = ReadChange {
        table,
        kind,
        key,
        values,
        row_number,
    };
    each(&read, heap)?;
    heap.release(mark);
    Ok(())
}

fn read_change(
    form: u8,
    table: &Table,
    reader: &mut Reader<'_>,
    heap: &mut Heap,
    values: &mut Vec<(ColumnId, Slot)>,
) -> Result<(ChangeKind, EntryKey, Option<i64>)> {
    let (layout, columns) = (table.layout(), &table.schema().columns);
    match form {
        INSERTED => {
            // The bytes have them in another order.
            values.extend((0..columns.len() as u16).map(|at| (ColumnId(at), Slot::NULL)));
            let each = |column: ColumnId, value| values[column.index()].1 = value;
            let number = layout.read_row(columns, reader, heap, each)?;
            let key = key_of(table, number, values, heap)?;
            Ok((ChangeKind::Insert, key, number))
        }
        UPDATED => {
            let key = read_key(table, reader, heap, values)?;
            values.clear();
            let written = layout.read_set(reader)?;
            let each = |column, value| values.push((column, value));
            layout.read_values(columns, written, reader, heap, each)?;
            Ok((ChangeKind::Update, key, None))
        }
        DELETED => {
            let key = read_key(table, reader, heap, values)?;
            values.clear();
            Ok((ChangeKind::Delete, key, None))
        }
        DELETED_BY_FORMER_KEY => {
            let length = reader.number(2)? as usize;
            let width = table.indexes()[0].key_layout().width();
            let key = EntryKey::from_bytes(width, reader.take(length)?);
            let key = key.ok_or_else(|| corrupt(format!("{table:?} has no such keys")))?;
            Ok((ChangeKind::Delete, key, None))
        }
        _ => Err(corrupt(format!("no change has the form {form}"))),
    }
}

/// Reads a key; `values` is empty, and gets those of the key's columns.
fn read_key(
    table: &Table,
    reader: &mut Reader<'_>,
    heap: &mut Heap,
    values: &mut Vec<(ColumnId, Slot)>,
) -> Result<EntryKey> {
    if table.layout().row_number().is_some() {
        let number = reader.number(8)? as i64;
        return key_of(table, Some(number), &[], heap);
    }
    let columns: ColumnSet = table.indexes()[0].columns();
    let each = |column, value| values.push((column, value));
    let definitions = &table.schema().columns;
    (table.layout()).read_values(definitions, columns, reader, heap, each)?;
    key_of(table, None, values, heap)
}

/// The key of a row with this number, or these values, which have the order of their columns.
fn key_of(
    table: &Table,
    number: Option<i64>,
    values: &[(ColumnId, Slot)],
    heap: &Heap,
) -> Result<EntryKey> {
    table.indexes()[0].entry_key(heap, |_, field| match field.column {
        Some(column) => {
            // Whole rows have each column in its own place.
            let at = match values.get(column.index()) {
                Some((own, _)) if *own == column => Ok(column.index()),
                _ => values.binary_search_by_key(&column, |(column, _)| *column),
            };
            values[at.expect("all columns of the key were read")].1
        }
        None => Slot::from_i64(number.unwrap_or_default()),
    })
}
