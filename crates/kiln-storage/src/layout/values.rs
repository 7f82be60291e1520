//! A row's values as bytes that do not depend on where its columns lie in memory: the form that goes to a log.
//!
//! | part | bytes |
//! |---|---|
//! | *set* of columns | a bit for each column of the table, in as few bytes as have room for them |
//! | fixed-size value | little-endian: BOOLEAN 1, SMALLINT 2, INTEGER and DATE 4, BIGINT, timestamps and doubles 8; of a NUMERIC the mantissa, in 4 bytes for at most 9 digits and in 8 for at most 18, else the two words of its slot |
//! | byte string | its length in 4 bytes, and the bytes: all texts, BYTEA, UUID |
//! | *values* of a set | in the table's order; before that of a column that may be NULL a byte: 0 if it is, and then there is no value, else 1 |
//! | *row* | the row number, 8 bytes, if the table has no primary key; the fixed-size values, first those of 8 and 16 bytes, then of 4, of 2 and of 1, each in the table's order, where the bytes of a NULL mean nothing; a bit for each column that may be NULL, in the table's order, in as few bytes as have room for them; the byte strings that are not NULL |
//!
//! A row has all but its byte strings in this order in memory as well, so that these are copied as words.

use std::cmp::Reverse;

use kiln_platform::atomic::AtomicU64;
use kiln_platform::words;

use super::{Blob, ColumnAccess, RowLayout, Storage, decimal_slot};
use crate::bytes::{Reader, Writer, corrupt};
use crate::error::{Error, Result};
use crate::schema::{Column, ColumnId, ColumnSet};
use crate::slot::{Heap, Slot};
use crate::types::{DataType, Decimal};

/// Where a value is read that has a fixed size of at most eight bytes and is never NULL: its word, the bits before it in
/// that, and its bytes. Others have no bytes here.
#[derive(Clone, Copy, Debug)]
struct Place {
    word: u16,
    shift: u8,
    bytes: u8,
}

/// What writing values takes, worked out once for each layout.
#[derive(Clone, Debug)]
pub(super) struct ValueFormat {
    places: Box<[Place]>,
    nullable: ColumnSet,
    /// Those of the first 64 columns that have a place in `places`.
    plain: u64,
    /// The fixed-size columns, and those of byte strings, in the order of a whole row.
    fixed: Box<[ColumnId]>,
    strings: Box<[(ColumnId, ColumnAccess)]>,
    /// The fixed-size columns that cannot have all values that their bytes can.
    checked: Box<[ColumnId]>,
    /// The bytes of a whole row before its byte strings.
    head_bytes: usize,
    /// Whether a row has all words of the pairs in which these lie.
    head_in_pairs: bool,
    set_bytes: usize,
    /// What a set with its values takes at most, or a row, without spilled byte strings.
    bytes_max: usize,
}

impl ValueFormat {
    pub(super) fn new(columns: &[ColumnAccess], has_row_number: bool, words: usize) -> ValueFormat {
        let places: Box<[Place]> = columns
            .iter()
            .map(|column| {
                let bytes = column.storage.shape().1;
                let is_plain = !column.is_byte_string() && bytes <= 8 && !column.is_nullable();
                Place {
                    word: (column.offset / 8) as u16,
                    shift: (column.offset % 8 * 8) as u8,
                    bytes: if is_plain { bytes as u8 } else { 0 },
                }
            })
            .collect();
        let plain = places.iter().take(64).enumerate();
        let plain = plain.fold(0, |set, (at, place)| set | u64::from(place.bytes > 0) << at);
        let ids = (0..columns.len() as u16).map(ColumnId);
        let access = |id: ColumnId| &columns[id.index()];
        let (strings, mut fixed): (Vec<ColumnId>, Vec<ColumnId>) =
            ids.clone().partition(|id| access(*id).is_byte_string());
        fixed.sort_by_key(|id| Reverse(access(*id).storage.shape().0));
        let checked = fixed.iter().copied().filter(|id| {
            !matches!(
                access(*id).storage,
                Storage::Two | Storage::Four | Storage::Eight
            )
        });
        let checked = checked.collect();
        let nullable: ColumnSet = ids.filter(|id| access(*id).is_nullable()).collect();
        let bytes_of = |ids: &[ColumnId]| -> usize {
            ids.iter().map(|id| access(*id).storage.shape().1).sum()
        };
        let head_bytes =
            8 * usize::from(has_row_number) + bytes_of(&fixed) + nullable.len().div_ceil(8);
        let set_bytes = columns.len().div_ceil(8);
        let string_bytes = 4 * strings.len() + bytes_of(&strings);
        ValueFormat {
            places,
            nullable,
            plain,
            fixed: fixed.into(),
            checked,
            strings: strings.iter().map(|id| (*id, *access(*id))).collect(),
            head_bytes,
            head_in_pairs: head_bytes > 0 && head_bytes.next_multiple_of(16) <= words * 8,
            set_bytes,
            bytes_max: head_bytes + string_bytes + set_bytes + nullable.len(),
        }
    }

    /// The columns that are NULL in a row whose bytes begin with these, of which there are enough.
    #[inline]
    fn nulls_of(&self, head: &[u8]) -> ColumnSet {
        let mut bits = [0; 16];
        let bytes = self.nullable.len().div_ceil(8);
        bits[..bytes].copy_from_slice(&head[self.head_bytes - bytes..self.head_bytes]);
        let bits = u128::from_le_bytes(bits);
        if bits == 0 {
            return ColumnSet::EMPTY;
        }
        let nullable = self.nullable.iter().enumerate();
        nullable
            .filter(|(at, _)| bits >> at & 1 != 0)
            .map(|(_, column)| column)
            .collect()
    }
}

impl RowLayout {
    /// What a set of columns and its values take at most, or a row, without spilled byte strings.
    #[inline(always)]
    pub(crate) fn values_bytes_max(&self) -> usize {
        self.values.bytes_max
    }

    /// What the byte strings to which `columns` of a stable row point take besides.
    pub(crate) fn spilled_bytes(&self, columns: ColumnSet, row: &[AtomicU64]) -> usize {
        // SAFETY: the row is stable, so its blobs live.
        let lengths = (self.blobs(columns, row)).map(|blob| 4 + unsafe { Blob::bytes(blob) }.len());
        lengths.sum()
    }

    /// Puts a set of columns.
    ///
    /// # Safety
    /// As many bytes may be put.
    #[inline(always)]
    pub(crate) unsafe fn put_set(&self, columns: ColumnSet, writer: &mut Writer<'_>) {
        let [low, high] = columns.to_words();
        let bytes = self.values.set_bytes;
        // SAFETY: as of the caller.
        unsafe {
            match bytes {
                ..=8 => writer.put(low, bytes),
                _ => {
                    writer.put(low, 8);
                    writer.put(high, bytes - 8);
                }
            }
        }
    }

    /// Puts the values of `columns` of a row or an image.
    ///
    /// # Safety
    /// [`RowLayout::values_bytes_max`] bytes may be put. The columns, and the words, are of this layout; the words are
    /// stable, and the blobs that they point to live.
    #[inline(always)]
    pub(crate) unsafe fn put_values(
        &self,
        columns: ColumnSet,
        words: &[AtomicU64],
        writer: &mut Writer<'_>,
    ) {
        let format = &self.values;
        let [mut rest, high] = columns.to_words();
        if rest & !format.plain | high != 0 {
            // SAFETY: as of the caller.
            *writer = unsafe { self.put_values_from(columns, |_| words, *writer) };
            return;
        }
        let (places, words) = (format.places.as_ptr(), words.as_ptr());
        let values = std::iter::from_fn(|| {
            let at = rest.trailing_zeros() as usize;
            (rest != 0).then(|| {
                rest &= rest - 1;
                // SAFETY: as of the caller: the column is one of this layout, and so are the words.
                unsafe {
                    let place = *places.add(at);
                    let word = words::read_one(&*words.add(place.word as usize));
                    (word >> place.shift, place.bytes as usize)
                }
            })
        });
        // SAFETY: as of the caller.
        unsafe { writer.put_all(values) };
    }

    /// Puts values that may be of any type; `words` says in which words that of a column lies.
    ///
    /// # Safety
    /// As for [`RowLayout::put_values`].
    #[inline(never)]
    pub(crate) unsafe fn put_values_from<'a, 'w>(
        &self,
        columns: ColumnSet,
        words: impl Fn(ColumnId) -> &'a [AtomicU64],
        mut writer: Writer<'w>,
    ) -> Writer<'w> {
        for column in columns.iter() {
            let (access, words) = (self.column(column), words(column));
            // SAFETY: as of the caller.
            unsafe {
                if access.is_nullable() {
                    writer.put(u64::from(!access.is_null(words)), 1);
                }
                match access.storage {
                    Storage::Bytes { .. } => put_string(access, words, &mut writer),
                    _ if access.is_null(words) => {}
                    _ => {
                        let (start, end) = access.byte_range();
                        writer.put_words(words, start, end - start);
                    }
                }
            }
        }
        writer
    }

    /// Puts a whole row.
    ///
    /// # Safety
    /// As for [`RowLayout::put_values`].
    #[inline(always)]
    pub(crate) unsafe fn put_row(&self, row: &[AtomicU64], writer: &mut Writer<'_>) {
        let format = &self.values;
        // SAFETY: as of the caller.
        unsafe {
            match format.head_in_pairs {
                true => writer.put_pairs(row, format.head_bytes),
                false => writer.put_words(row, 0, format.head_bytes),
            }
            for (_, access) in &format.strings {
                put_string(access, row, writer);
            }
        }
    }

    /// Puts a whole row, some of whose values lie elsewhere.
    ///
    /// # Safety
    /// As for [`RowLayout::put_values`]; `row` has the row number.
    #[inline(never)]
    pub(crate) unsafe fn put_row_from<'a, 'w>(
        &self,
        row: &[AtomicU64],
        words: impl Fn(ColumnId) -> &'a [AtomicU64],
        mut writer: Writer<'w>,
    ) -> Writer<'w> {
        let format = &self.values;
        let mut nulls = 0_u128;
        for (at, column) in format.nullable.iter().enumerate() {
            nulls |= u128::from(self.column(column).is_null(words(column))) << at;
        }
        let null_bytes = format.nullable.len().div_ceil(8);
        // SAFETY: as of the caller.
        unsafe {
            if self.row_number.is_some() {
                writer.put_words(row, 0, 8);
            }
            for column in &format.fixed {
                let (start, end) = self.column(*column).byte_range();
                writer.put_words(words(*column), start, end - start);
            }
            writer.put(nulls as u64, null_bytes.min(8));
            writer.put((nulls >> 64) as u64, null_bytes.saturating_sub(8));
            for (column, access) in &format.strings {
                put_string(access, words(*column), &mut writer);
            }
        }
        writer
    }

    /// Reads a set of columns.
    ///
    /// # Errors
    /// XX001 when there is none, or the table has no such columns.
    pub fn read_set(&self, reader: &mut Reader<'_>) -> Result<ColumnSet> {
        let bytes = self.values.set_bytes;
        let low = reader.number(bytes.min(8))?;
        let high = reader.number(bytes.saturating_sub(8))?;
        let columns = ColumnSet::from_words([low, high]);
        match columns.difference(ColumnSet::first(self.columns.len())) {
            ColumnSet::EMPTY => Ok(columns),
            others => Err(corrupt(format!("no table has the columns {others:?}"))),
        }
    }

    /// Reads the values of `columns` into `heap`, and hands each over; `definitions` are those of all columns.
    ///
    /// # Errors
    /// XX001 for what was never written: a value that its column cannot have, or too few bytes.
    pub fn read_values(
        &self,
        definitions: &[Column],
        columns: ColumnSet,
        reader: &mut Reader<'_>,
        heap: &mut Heap,
        mut each: impl FnMut(ColumnId, Slot, &mut Heap),
    ) -> Result<()> {
        for column in columns.iter() {
            let is_there = match self.column(column).is_nullable() {
                true => reader.number(1)?,
                false => 1,
            };
            let value = match is_there {
                0 => Slot::NULL,
                1 => self.read_value(column, &definitions[column.index()], reader, heap)?,
                _ => return Err(corrupt("no value is NULL in such a way")),
            };
            each(column, value, heap);
        }
        Ok(())
    }

    /// Reads a row in the same way, and returns the row number of a table without primary key.
    ///
    /// # Errors
    /// As [`RowLayout::read_values`].
    pub fn read_row(
        &self,
        definitions: &[Column],
        reader: &mut Reader<'_>,
        heap: &mut Heap,
        mut each: impl FnMut(ColumnId, Slot, &mut Heap),
    ) -> Result<Option<i64>> {
        let format = &self.values;
        let mut head = Reader::new(reader.take(format.head_bytes)?);
        let nulls = format.nulls_of(head.rest());
        let row_number = match self.row_number {
            Some(_) => Some(head.number(8)? as i64),
            None => None,
        };
        let mut read = |column: ColumnId, reader: &mut Reader<'_>| {
            let definition = &definitions[column.index()];
            let value = match (nulls.contains(column), self.column(column).storage) {
                (false, _) => self.read_value(column, definition, reader, heap)?,
                (true, Storage::Bytes { .. }) => Slot::NULL,
                (true, storage) => {
                    reader.take(storage.shape().1)?;
                    Slot::NULL
                }
            };
            each(column, value, heap);
            Ok(())
        };
        (format.fixed.iter()).try_for_each(|column| read(*column, &mut head))?;
        (format.strings.iter()).try_for_each(|(column, _)| read(*column, reader))?;
        Ok(row_number)
    }

    /// Reads a row into the words of a record that has none, and returns the row number of a table without primary key. Nothing is
    /// allocated for a row that is damaged.
    ///
    /// # Errors
    /// As [`RowLayout::read_row`].
    #[inline]
    pub(crate) fn restore_row(
        &self,
        definitions: &[Column],
        reader: &mut Reader<'_>,
        heap: &mut Heap,
        row: &[AtomicU64],
    ) -> Result<Option<i64>> {
        let format = &self.values;
        let head = reader.take(format.head_bytes)?;
        let nulls = format.nulls_of(head);
        for column in &format.checked {
            if !nulls.contains(*column) {
                let mut reader = Reader::new(&head[self.column(*column).byte_range().0..]);
                self.read_value(*column, &definitions[column.index()], &mut reader, heap)?;
            }
        }
        // The head has the order that it has in memory.
        let (whole, rest) = head.as_chunks::<8>();
        for (word, bytes) in row.iter().zip(whole) {
            words::write_one(word, u64::from_le_bytes(*bytes));
        }
        if !rest.is_empty() {
            words::write_one(&row[whole.len()], Reader::new(rest).number(rest.len())?);
        }
        for (at, (column, access)) in format.strings.iter().enumerate() {
            if nulls.contains(*column) {
                continue;
            }
            match read_string_of(&definitions[column.index()].data_type, reader) {
                Ok(bytes) => access.store_bytes(row, bytes),
                Err(error) => {
                    let stored = format.strings[..at].iter().map(|(column, _)| *column);
                    for blob in self.blobs(stored.collect(), row) {
                        // SAFETY: the row that points to it was just written, and is no other thread's.
                        unsafe { Blob::free(blob) };
                    }
                    return Err(error);
                }
            }
        }
        Ok(self.row_number.map(|access| access.load_integer(row)))
    }

    /// Passes over the values of `columns`.
    ///
    /// # Errors
    /// XX001 for too few bytes.
    #[inline]
    pub(crate) fn pass_values(&self, columns: ColumnSet, reader: &mut Reader<'_>) -> Result<()> {
        let format = &self.values;
        let [mut rest, high] = columns.to_words();
        if rest & !format.plain | high == 0 {
            let mut bytes = 0;
            while rest != 0 {
                bytes += format.places[rest.trailing_zeros() as usize].bytes as usize;
                rest &= rest - 1;
            }
            return reader.take(bytes).map(drop);
        }
        for column in columns.iter() {
            let access = self.column(column);
            let is_there = !access.is_nullable() || reader.number(1)? != 0;
            if is_there {
                pass_value(access, reader)?;
            }
        }
        Ok(())
    }

    /// Reads the values of `columns`, those of a key, from a row as [`RowLayout::read_row`] does, and passes over the rest of it.
    ///
    /// # Errors
    /// XX001 for too few bytes, and for values that these columns cannot have.
    #[inline]
    pub(crate) fn read_key_of_row(
        &self,
        definitions: &[Column],
        columns: ColumnSet,
        reader: &mut Reader<'_>,
        heap: &mut Heap,
        mut each: impl FnMut(ColumnId, Slot, &mut Heap),
    ) -> Result<Option<i64>> {
        let format = &self.values;
        let head = reader.take(format.head_bytes)?;
        let nulls = format.nulls_of(head);
        for column in columns.iter() {
            let access = self.column(column);
            if access.is_byte_string() {
                continue;
            }
            let value = match nulls.contains(column) {
                true => Slot::NULL,
                false => {
                    // The head has the order that it has in memory.
                    let mut reader = Reader::new(&head[access.byte_range().0..]);
                    self.read_value(column, &definitions[column.index()], &mut reader, heap)?
                }
            };
            each(column, value, heap);
        }
        for (column, access) in &format.strings {
            let is_wanted = columns.contains(*column);
            match (nulls.contains(*column), is_wanted) {
                (false, false) => pass_value(access, reader)?,
                (false, true) => {
                    let definition = &definitions[column.index()];
                    let value = self.read_value(*column, definition, reader, heap)?;
                    each(*column, value, heap);
                }
                (true, false) => {}
                (true, true) => each(*column, Slot::NULL, heap),
            }
        }
        match self.row_number {
            Some(_) => Ok(Some(Reader::new(head).number(8)? as i64)),
            None => Ok(None),
        }
    }

    /// Reads a value that is not NULL.
    #[inline(always)]
    fn read_value(
        &self,
        column: ColumnId,
        definition: &Column,
        reader: &mut Reader<'_>,
        heap: &mut Heap,
    ) -> Result<Slot> {
        let data_type = &definition.data_type;
        Ok(match self.column(column).storage {
            Storage::One => match reader.number(1)? {
                0 => Slot::FALSE,
                1 => Slot::TRUE,
                _ => return Err(impossible(data_type)),
            },
            Storage::Two => Slot::from_i64(reader.number(2)? as i16 as i64),
            Storage::Four => Slot::from_i64(reader.number(4)? as i32 as i64),
            Storage::Eight => Slot::from_words(reader.number(8)?, 0),
            storage
            @ (Storage::Decimal4 { .. } | Storage::Decimal8 { .. } | Storage::Decimal16) => {
                read_decimal(storage, data_type, reader)?
            }
            Storage::Bytes { .. } => {
                let bytes = read_string_of(data_type, reader)?;
                if !heap.has_room(bytes.len()) {
                    return Err(impossible(data_type));
                }
                heap.push_bytes(bytes)
            }
        })
    }
}

fn read_decimal(storage: Storage, data_type: &DataType, reader: &mut Reader<'_>) -> Result<Slot> {
    let slot = match storage {
        Storage::Decimal4 { scale } => decimal_slot(reader.number(4)? as i32 as i64, scale),
        Storage::Decimal8 { scale } => decimal_slot(reader.number(8)? as i64, scale),
        _ => Slot::from_words(reader.number(8)?, reader.number(8)?),
    };
    match data_type {
        DataType::Numeric { precision_scale } if !is_number(slot, *precision_scale) => {
            Err(impossible(data_type))
        }
        _ => Ok(slot),
    }
}

/// Passes over a value that is not NULL.
#[inline(always)]
fn pass_value(access: &ColumnAccess, reader: &mut Reader<'_>) -> Result<()> {
    let bytes = match access.storage {
        Storage::Bytes { .. } => reader.number(4)? as usize,
        storage => storage.shape().1,
    };
    reader.take(bytes).map(drop)
}

/// Reads a byte string that is not NULL.
#[inline]
fn read_string_of<'b>(data_type: &DataType, reader: &mut Reader<'b>) -> Result<&'b [u8]> {
    let length = reader.number(4)? as usize;
    let bytes = reader.take(length)?;
    match is_possible(bytes, data_type) {
        true => Ok(bytes),
        false => Err(impossible(data_type)),
    }
}

#[cold]
fn impossible(data_type: &DataType) -> Error {
    corrupt(format!("no {data_type} has such a value"))
}

/// Puts a byte string, if it is not NULL.
///
/// # Safety
/// As for [`RowLayout::put_values`]; the column is one of byte strings.
#[inline(always)]
unsafe fn put_string(access: &ColumnAccess, words: &[AtomicU64], writer: &mut Writer<'_>) {
    let Storage::Bytes { capacity, wide } = access.storage else {
        unreachable!("only byte strings have a length")
    };
    if access.is_null(words) {
        return;
    }
    let (at, shift) = access.word();
    let (length, spilled, start) = access.length(words::read_one(&words[at]) >> shift, wide);
    // SAFETY: as of the caller.
    unsafe {
        if spilled {
            *writer = put_blob(access, words, *writer);
            return;
        }
        let length = length.min(capacity as usize);
        writer.put(length as u64, 4);
        writer.put_words(words, start, length);
    }
}

/// Puts a spilled byte string.
///
/// # Safety
/// As for [`RowLayout::put_values`].
#[cold]
#[inline(never)]
unsafe fn put_blob<'w>(
    access: &ColumnAccess,
    words: &[AtomicU64],
    mut writer: Writer<'w>,
) -> Writer<'w> {
    let blob = access.blob(words).expect("a spilled column has a pointer");
    // SAFETY: as of the caller: the words are stable, so the pointer is whole and its blob lives.
    let bytes = unsafe { Blob::bytes(blob) };
    if writer.has_extra_room(4 + bytes.len()) {
        // SAFETY: as was just found.
        unsafe {
            writer.put(bytes.len() as u64, 4);
            writer.put_bytes(bytes);
        }
    }
    writer
}

/// Whether these can be the bytes of a value of such a type.
fn is_possible(bytes: &[u8], data_type: &DataType) -> bool {
    let characters_max = match data_type {
        DataType::Bytea => return true,
        DataType::Uuid => return bytes.len() == 16,
        DataType::Char(length) | DataType::VarChar(Some(length)) => *length as usize,
        _ => usize::MAX,
    };
    // No text contains a zero byte: keys end texts with it.
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|_| !bytes.contains(&0));
    text.is_some_and(|text| bytes.len() <= characters_max || text.chars().count() <= characters_max)
}

/// Whether a slot is a number with at most as many digits, so many of them after the point.
fn is_number(slot: Slot, precision_scale: Option<(u8, u8)>) -> bool {
    let value = slot.as_decimal();
    let Ok(number) = Decimal::new(value.mantissa(), value.scale()) else {
        return false;
    };
    let fits = precision_scale.is_none_or(|(precision, scale)| {
        let limit = 10_u128.checked_pow(precision.into());
        let digits_fit = limit.is_none_or(|limit| number.mantissa().unsigned_abs() < limit);
        digits_fit && number.scale() == scale
    });
    fits && number.pack() == slot.words()
}
