//! Reading values from the bytes that [`super::values`] says: nothing is known of them.

use kiln_platform::atomic::AtomicU64;
use kiln_platform::words;

use super::{
    Blob, ColumnAccess, RowLayout, SPILLED_NUMBER, Storage, decimal4_slot, decimal8_slot,
    spilled_number,
};
use crate::bytes::{Reader, corrupt};
use crate::error::{Error, Result};
use crate::schema::{Column, ColumnId, ColumnSet};
use crate::slot::packed::{self, Element};
use crate::slot::row::{Field, Fields, Form};
use crate::slot::{Heap, Packing, Slot};
use crate::types::{DataType, Decimal, Number, RowType};

impl RowLayout {
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

    /// Reads the values of `columns` into `heap`, and hands each over; `definitions` are those of
    /// all columns.
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
        let read = |column: ColumnId,
                    reader: &mut Reader<'_>,
                    heap: &mut Heap,
                    each: &mut dyn FnMut(ColumnId, Slot, &mut Heap)| {
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
        for column in &format.fixed {
            // What a long number's words say comes behind the head, after those before it.
            let length = match self.column(*column).storage {
                Storage::Decimal16 if !nulls.contains(*column) => long_number_length(head.rest()),
                _ => None,
            };
            match length {
                None => read(*column, &mut head, heap, &mut each)?,
                Some(length) => {
                    head.take(16)?;
                    let data_type = &definitions[column.index()].data_type;
                    let number = read_number_of(data_type, length, reader)?;
                    let slot = push_number(number, data_type, heap)?;
                    each(*column, slot, heap);
                }
            }
        }
        (format.strings.iter())
            .try_for_each(|(column, _)| read(*column, reader, heap, &mut each))?;
        Ok(row_number)
    }

    /// Reads a row into the words of a record that has none, and returns the row number of a table
    /// without primary key. Nothing is allocated for a row that is damaged.
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
        let mut numbers: Vec<(ColumnId, &[u8])> = Vec::new();
        for column in &format.checked {
            if nulls.contains(*column) {
                continue;
            }
            let access = self.column(*column);
            let value = &head[access.byte_range().0..];
            let data_type = &definitions[column.index()].data_type;
            let length = match access.storage {
                Storage::Decimal16 => long_number_length(value),
                _ => None,
            };
            match length {
                Some(length) => {
                    let number = read_number_of(data_type, length, reader)?;
                    numbers.push((*column, number));
                }
                None => {
                    let definition = &definitions[column.index()];
                    self.read_value(*column, definition, &mut Reader::new(value), heap)?;
                }
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
        // The lengths of long numbers in the head give way to their pointers.
        for (column, number) in &numbers {
            let (at, _) = self.column(*column).word();
            let (lower, upper) = spilled_number(number);
            words::write(&row[at..at + 2], &[lower, upper]);
        }
        for (at, (column, access)) in format.strings.iter().enumerate() {
            if nulls.contains(*column) {
                continue;
            }
            match read_string_of(&definitions[column.index()].data_type, reader) {
                Ok(bytes) => access.store_bytes(row, bytes),
                Err(error) => {
                    let strings = format.strings[..at].iter().map(|(column, _)| *column);
                    let stored = strings.chain(numbers.iter().map(|(column, _)| *column));
                    for blob in self.blobs(stored.collect(), row) {
                        // SAFETY: the row that points to it was just written, and is no other
                        // thread's.
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
                bytes += format.locations[rest.trailing_zeros() as usize].bytes as usize;
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

    /// Reads the values of `columns`, those of a key, from a row as [`RowLayout::read_row`] does,
    /// and passes over the rest of it.
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
        // Long numbers come first behind the head, in the order of the columns there.
        let mut numbers = Vec::new();
        for (column, access) in &format.numbers {
            let value = &head[access.byte_range().0..];
            let Some(length) = long_number_length(value).filter(|_| !nulls.contains(*column))
            else {
                continue;
            };
            let data_type = &definitions[column.index()].data_type;
            let number = read_number_of(data_type, length, reader)?;
            if columns.contains(*column) {
                numbers.push((*column, push_number(number, data_type, heap)?));
            }
        }
        for column in columns.iter() {
            let access = self.column(column);
            if access.is_byte_string() {
                continue;
            }
            let mut long = numbers.iter();
            let value = match long.find(|(known, _)| *known == column) {
                _ if nulls.contains(column) => Slot::NULL,
                Some((_, slot)) => *slot,
                None => {
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
                match storage == Storage::Decimal16 {
                    true if let Some(length) = long_number_length(reader.rest()) => {
                        reader.take(16)?;
                        let number = read_number_of(data_type, length, reader)?;
                        push_number(number, data_type, heap)?
                    }
                    _ => read_decimal(storage, data_type, reader)?,
                }
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
        Storage::Decimal4 { scale } => decimal4_slot(reader.number(4)? as i32, scale),
        Storage::Decimal8 { scale } => decimal8_slot(reader.number(8)? as i64, scale),
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
        Storage::Decimal16 => 16 + long_number_length(reader.rest()).unwrap_or(0),
        storage => storage.shape().1,
    };
    reader.take(bytes).map(drop)
}

/// The length that stands for a long number in the place of a NUMERIC.
fn long_number_length(value: &[u8]) -> Option<usize> {
    let (words, _) = value.split_first_chunk::<16>()?;
    let word = |at: usize| words[at..at + 8].try_into().map(u64::from_le_bytes);
    match (word(0), word(8)) {
        (Ok(length), Ok(SPILLED_NUMBER)) => usize::try_from(length).ok(),
        _ => None,
    }
}

/// Reads the bytes of a long number.
fn read_number_of<'b>(
    data_type: &DataType,
    length: usize,
    reader: &mut Reader<'b>,
) -> Result<&'b [u8]> {
    let bytes = reader.take(length)?;
    let DataType::Numeric { precision_scale } = data_type else {
        return Err(impossible(data_type));
    };
    match is_long_number(bytes, *precision_scale) {
        true => Ok(bytes),
        false => Err(impossible(data_type)),
    }
}

/// Whether these are the bytes of a number that no slot has room for, with at most as many digits.
fn is_long_number(bytes: &[u8], precision_scale: Option<(u16, i16)>) -> bool {
    Number::from_bytes(bytes).is_some_and(|number| {
        let fits = precision_scale.is_none_or(|(precision, scale)| number.fits(precision, scale));
        fits && number.is_finite() && number.to_decimal().is_none()
    })
}

fn push_number(bytes: &[u8], data_type: &DataType, heap: &mut Heap) -> Result<Slot> {
    match heap.has_room(bytes.len()) {
        true => Ok(heap.push_number_bytes(bytes)),
        false => Err(impossible(data_type)),
    }
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

/// Whether these can be the bytes of an array of such elements.
fn is_possible_array(packed: &[u8], element: &DataType) -> bool {
    let packing = Packing::of(element);
    let accepts = |found: Element| match found {
        Element::Null => true,
        Element::Bytes(start, length) => is_possible(&packed[start..start + length], element),
        Element::Number(start, length) => {
            let number = Number::from_bytes(&packed[start..start + length]);
            let DataType::Numeric { precision_scale } = element else {
                return false;
            };
            number.is_some_and(|number| {
                precision_scale.is_none_or(|(precision, scale)| number.fits(precision, scale))
            })
        }
        Element::Slot(slot) => match element {
            DataType::Boolean => matches!(slot.as_i64(), 0 | 1),
            DataType::SmallInt => i16::try_from(slot.as_i64()).is_ok(),
            DataType::Integer | DataType::Date => i32::try_from(slot.as_i64()).is_ok(),
            DataType::Numeric { precision_scale } => is_number(slot, *precision_scale),
            _ => true,
        },
    };
    packed::packing_of(packed) == Some(packing) && packed::each_element(packed, accepts)
}

/// Whether these can be the bytes of such a row.
fn is_possible_row(bytes: &[u8], of: &RowType) -> bool {
    let mut fields = Fields::of(bytes);
    let mut types = of.fields().iter().map(|field| &field.data_type);
    fields.left() == of.fields().len()
        && types.all(|data_type| {
            let field = fields.next();
            field.is_some_and(|field| is_possible_field(field, data_type))
        })
        && fields.is_at_end()
}

fn is_possible_field(field: Field<'_>, data_type: &DataType) -> bool {
    match (field, Form::of(data_type)) {
        (Field::Null, _) => true,
        (Field::Array(mut elements), (_, true)) => {
            let Some(element) = data_type.element() else {
                return false;
            };
            let mut left = elements.left();
            while left > 0 {
                match elements.next() {
                    Some(field) if is_possible_field(field, &element) => left -= 1,
                    _ => return false,
                }
            }
            elements.is_at_end()
        }
        (Field::Word(word), (Form::Word, false)) => match data_type {
            DataType::Boolean => matches!(word, 0 | 1),
            DataType::SmallInt => i16::try_from(word).is_ok(),
            DataType::Integer | DataType::Date => i32::try_from(word).is_ok(),
            _ => true,
        },
        (Field::Decimal(slot), (Form::Number, false)) => is_number(slot, None) && !slot.is_long(),
        (Field::Number(number), (Form::Number, false)) => Number::from_bytes(number).is_some(),
        (Field::Double(_), (Form::Double, false)) => true,
        (Field::Interval(_), (Form::Interval, false)) => true,
        (Field::Bytes(bytes), (Form::Bytes, false)) | (Field::Json(bytes), (Form::Json, false)) => {
            is_possible(bytes, data_type)
        }
        (Field::Row(row), (Form::Row, false)) => match data_type {
            DataType::Row(of) => is_possible_row(row, of),
            _ => false,
        },
        _ => false,
    }
}

/// Whether these can be the bytes of a value of such a type. A reader of a row that is being
/// changed may have others.
pub fn is_possible(bytes: &[u8], data_type: &DataType) -> bool {
    let characters_max = match data_type {
        DataType::Bytea => return true,
        DataType::Uuid | DataType::Interval(_) => return bytes.len() == 16,
        DataType::Array(element) => return is_possible_array(bytes, element),
        DataType::Row(of) => return is_possible_row(bytes, of),
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
fn is_number(slot: Slot, precision_scale: Option<(u16, i16)>) -> bool {
    match slot {
        Slot::NAN => return true,
        Slot::INFINITY | Slot::NEGATIVE_INFINITY => return precision_scale.is_none(),
        _ => {}
    }
    let value = slot.as_decimal();
    let Ok(number) = Decimal::new(value.mantissa(), value.scale()) else {
        return false;
    };
    let fits = precision_scale
        .is_none_or(|(precision, scale)| Number::from(number).fits(precision, scale));
    fits && number.pack() == slot.words()
}
