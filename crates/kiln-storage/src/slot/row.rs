//! Rows as byte strings: a composite value is one in slots, in rows of tables and in keys of
//! buffers. It says itself how its fields compare, so that nothing that sorts or groups rows needs
//! their types.
//!
//! | part | bytes |
//! |---|---|
//! | number of fields | 2 |
//! | each field | a form (1), and what it has |
//!
//! | form | has |
//! |---|---|
//! | 0 | nothing: NULL |
//! | 1, 2, 4, 8 | a lower word, in so many bytes |
//! | 16 | the two words of a NUMERIC (16) |
//! | 17 | a NUMERIC that no slot has room for: its length (4), its bytes |
//! | 18 | DOUBLE PRECISION, REAL (8) |
//! | 19, 20, 21, 22 | a length (4) and the bytes: of a byte string, an interval, a JSONB, a row |
//! | 23 | an array: the length of what follows (4), the number of elements (4), and these as fields |
//!
//! Numbers are little-endian.

use super::{Heap, LONG, Slot};
use crate::error::{Error, Result, SqlState};
use crate::types::{DataType, Interval, Number, Representation, RowType};

/// How a field of a row is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The lower word of its slot.
    Word,
    /// A NUMERIC.
    Number,
    /// A double.
    Double,
    /// Bytes, compared as they lie.
    Bytes,
    /// An interval.
    Interval,
    /// A JSONB.
    Json,
    /// A row.
    Row,
}

impl Form {
    /// The form of values of a type, and whether they are arrays of that.
    pub fn of(data_type: &DataType) -> (Form, bool) {
        let form = match data_type {
            DataType::Array(element) => return (Form::of(element).0, true),
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Boolean
            | DataType::Date
            | DataType::Timestamp(_)
            | DataType::TimestampTz(_)
            | DataType::Time(_)
            | DataType::Enum(_) => Form::Word,
            DataType::Numeric { .. } => Form::Number,
            DataType::Double => Form::Double,
            DataType::Char(_)
            | DataType::VarChar(_)
            | DataType::Text
            | DataType::Bytea
            | DataType::Uuid => Form::Bytes,
            DataType::Interval(_) => Form::Interval,
            DataType::Row(_) => Form::Row,
            DataType::Catalog(_) if *data_type == DataType::JSONB => Form::Json,
            DataType::Catalog(catalog) => match catalog.representation() {
                Representation::Number => Form::Word,
                Representation::Double => Form::Double,
                Representation::Text | Representation::Object => Form::Bytes,
                Representation::Vector => return (Form::Word, true),
            },
        };
        (form, false)
    }

    const LETTERS: [(char, Form); 7] = [
        ('w', Form::Word),
        ('n', Form::Number),
        ('f', Form::Double),
        ('b', Form::Bytes),
        ('i', Form::Interval),
        ('j', Form::Json),
        ('r', Form::Row),
    ];

    /// The forms of a row's fields as a text, a letter each, a capital one for an array.
    pub fn letters(row: &RowType) -> String {
        let each = row.fields().iter().map(|field| {
            let (form, is_array) = Form::of(&field.data_type);
            let mut known = Form::LETTERS.iter();
            let letter = known.find(|(_, known)| *known == form);
            let letter = letter.map_or('b', |(letter, _)| *letter);
            match is_array {
                true => letter.to_ascii_uppercase(),
                false => letter,
            }
        });
        each.collect()
    }

    /// The form with a letter.
    pub fn of_letter(letter: char) -> (Form, bool) {
        let small = letter.to_ascii_lowercase();
        let mut known = Form::LETTERS.iter();
        let form = known.find(|(known, _)| *known == small);
        let form = form.map_or(Form::Bytes, |(_, form)| *form);
        (form, letter.is_ascii_uppercase())
    }
}

/// A field of a packed row, or an element of an array in one.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// NULL.
    Null,
    /// An integer, and what compares as one.
    Word(i64),
    /// A NUMERIC that is no long one.
    Decimal(Slot),
    /// The bytes of a long NUMERIC.
    Number(&'a [u8]),
    /// A double.
    Double(f64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An interval.
    Interval(Interval),
    /// The text of a JSONB.
    Json(&'a [u8]),
    /// A packed row.
    Row(&'a [u8]),
    /// The elements of an array.
    Array(Fields<'a>),
}

/// The fields of a packed row, or the elements of an array in one. What is no packed row has fewer.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    all: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a> Fields<'a> {
    /// Those of a packed row.
    pub fn of(row: &'a [u8]) -> Fields<'a> {
        let left = match row.first_chunk::<2>() {
            Some(count) => u16::from_le_bytes(*count).into(),
            None => 0,
        };
        let at = 2;
        Fields { all: row, at, left }
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether nothing is left, and nothing lies behind it.
    pub fn is_at_end(&self) -> bool {
        self.left == 0 && self.at == self.all.len()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.all.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        let bytes: [u8; 4] = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    }

    fn counted(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn word(&mut self, width: usize) -> Option<i64> {
        let bytes = self.take(width)?;
        let mut word = [match bytes.last()? & 0x80 {
            0 => 0,
            _ => 0xff,
        }; 8];
        word[..width].copy_from_slice(bytes);
        Some(i64::from_le_bytes(word))
    }

    fn read(&mut self) -> Option<Field<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(match *self.take(1)?.first()? {
            0 => Field::Null,
            width @ (1 | 2 | 4 | 8) => Field::Word(self.word(width.into())?),
            16 => {
                let (low, high) = (self.word(8)?, self.word(8)?);
                // The lowest byte is the flags' place.
                Field::Decimal(Slot::from_words(low as u64, high as u64 & !0xff))
            }
            17 => Field::Number(self.counted()?),
            18 => Field::Double(f64::from_bits(self.word(8)? as u64)),
            19 => Field::Bytes(self.counted()?),
            20 => Field::Interval(interval(self.counted()?)?),
            21 => Field::Json(self.counted()?),
            22 => Field::Row(self.counted()?),
            23 => {
                let all = self.counted()?;
                let count: [u8; 4] = all.get(..4)?.try_into().ok()?;
                let left = u32::from_le_bytes(count) as usize;
                Field::Array(Fields { all, at: 4, left })
            }
            _ => return None,
        })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        self.read()
    }
}

fn interval(bytes: &[u8]) -> Option<Interval> {
    let word = |at: usize| {
        bytes
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(i32::from_le_bytes)
    };
    let microseconds: [u8; 8] = bytes.get(8..16)?.try_into().ok()?;
    Some(Interval {
        months: word(0)?,
        days: word(4)?,
        microseconds: i64::from_le_bytes(microseconds),
    })
}

impl Heap {
    /// Appends the bytes of a row of these fields, each with the form that its letter says; see
    /// [`Form::letters`].
    ///
    /// # Errors
    /// 54000 for a row of more than a gigabyte.
    pub fn pack_row(&mut self, letters: &str, fields: &[Slot]) -> Result<Slot> {
        let forms = letters.chars().map(Form::of_letter);
        let mut bytes = (fields.len() as u16).to_le_bytes().to_vec();
        for (slot, (form, is_array)) in fields.iter().zip(forms) {
            self.pack_field(&mut bytes, *slot, form, is_array);
            if bytes.len() > Heap::LIMIT_BYTES {
                let message = "a row has more than a gigabyte";
                return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
        }
        if self.bytes.len() + bytes.len() > u32::MAX as usize {
            let message = "a row has more than a gigabyte";
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(self.push_bytes(&bytes))
    }

    fn pack_field(&self, bytes: &mut Vec<u8>, slot: Slot, form: Form, is_array: bool) {
        if slot.is_null() {
            return bytes.push(0);
        }
        if is_array {
            bytes.push(23);
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            let elements = self.array(slot);
            bytes.extend_from_slice(&(elements.len() as u32).to_le_bytes());
            for element in elements {
                self.pack_field(bytes, *element, form, false);
            }
            let length = (bytes.len() - start - 4) as u32;
            bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
            return;
        }
        let counted = |bytes: &mut Vec<u8>, form: u8, what: &[u8]| {
            bytes.push(form);
            bytes.extend_from_slice(&(what.len() as u32).to_le_bytes());
            bytes.extend_from_slice(what);
        };
        match form {
            Form::Word => {
                let word = slot.as_i64();
                let width: u8 = match word {
                    -0x80..=0x7f => 1,
                    -0x8000..=0x7fff => 2,
                    -0x8000_0000..=0x7fff_ffff => 4,
                    _ => 8,
                };
                bytes.push(width);
                bytes.extend_from_slice(&word.to_le_bytes()[..width.into()]);
            }
            Form::Number if slot.is_long() => {
                let mut digits = Vec::new();
                self.number(slot).append_bytes_to(&mut digits);
                counted(bytes, 17, &digits);
            }
            Form::Number => {
                let (low, high) = slot.words();
                bytes.push(16);
                bytes.extend_from_slice(&low.to_le_bytes());
                bytes.extend_from_slice(&high.to_le_bytes());
            }
            Form::Double => {
                bytes.push(18);
                bytes.extend_from_slice(&slot.as_f64().to_bits().to_le_bytes());
            }
            Form::Bytes => counted(bytes, 19, self.bytes(slot)),
            Form::Interval => counted(bytes, 20, self.bytes(slot)),
            Form::Json => counted(bytes, 21, self.bytes(slot)),
            Form::Row => counted(bytes, 22, self.bytes(slot)),
        }
    }

    /// The field with this number of a packed row that is not NULL.
    ///
    /// # Errors
    /// XX001 for bytes that are no row with such a field: a reader may look at a row of a table
    /// that is being changed.
    pub fn row_field(&mut self, row: Slot, number: usize) -> Result<Slot> {
        let (offset, length) = row.span();
        let damaged = || Error::new(SqlState::DATA_CORRUPTED, "a composite value is damaged");
        let Heap {
            bytes, elements, ..
        } = self;
        let all = bytes.get(offset..offset + length).ok_or_else(damaged)?;
        let mut fields = Fields::of(all);
        let field = fields.nth(number).ok_or_else(damaged)?;
        let base = all.as_ptr().addr();
        let place = |part: &[u8]| {
            let at = part.as_ptr().addr() - base + offset;
            Slot::from_span(at as u32, part.len() as u32)
        };
        // The numbers that take more than two words are made when what is borrowed is free.
        let plain = |field: &Field<'_>| {
            Some(match field {
                Field::Null | Field::Array(_) => Slot::NULL,
                Field::Word(word) => Slot::from_i64(*word),
                Field::Decimal(slot) => *slot,
                Field::Number(part) => match Number::from_bytes(part)? {
                    Number::NaN => Slot::NAN,
                    Number::Infinity => Slot::INFINITY,
                    Number::NegativeInfinity => Slot::NEGATIVE_INFINITY,
                    Number::Finite(_) => {
                        let (low, high) = place(part).words();
                        Slot::from_words(low, high | LONG)
                    }
                },
                Field::Double(double) => Slot::from_f64(*double),
                Field::Bytes(part) | Field::Json(part) | Field::Row(part) => place(part),
                Field::Interval(_) => return None,
            })
        };
        let placed = |field: &Field<'_>, end: usize| match field {
            Field::Interval(_) => Some(Slot::from_span((end - 16) as u32, 16)),
            field => plain(field),
        };
        match field {
            Field::Array(mut array) => {
                let start = elements.len();
                let count = array.left();
                let inner = array.all.as_ptr().addr() - base + offset;
                while let Some(element) = array.next() {
                    let slot = placed(&element, inner + array.at);
                    elements.push(slot.ok_or_else(damaged)?);
                }
                match elements.len() - start == count {
                    true => Ok(Slot::from_span(start as u32, count as u32)),
                    false => {
                        elements.truncate(start);
                        Err(damaged())
                    }
                }
            }
            field => placed(&field, offset + fields.at).ok_or_else(damaged),
        }
    }
}

/// Whether all fields of a packed row are NULL, or with `negated`, none is.
pub fn all_null(row: &[u8], negated: bool) -> bool {
    Fields::of(row).all(|field| matches!(field, Field::Null) != negated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Decimal;

    #[test]
    fn fields_come_back() {
        let mut heap = Heap::new();
        let interval = Interval::new(1, -2, 3);
        let long = "1e60".parse::<Number>().expect("a number");
        let text = heap.push_str("a text");
        let texts = [text, Slot::NULL, text];
        let spans = [heap.push_interval(interval), Slot::NULL];
        let words = [Slot::from_i64(-1), Slot::from_i64(1 << 40)];
        let numbers = [heap.push_number(&long), Slot::NAN];
        let slots = [
            Slot::NULL,
            Slot::from_i64(-300),
            Slot::from_decimal(Decimal::from_i64(77)),
            heap.push_number(&long),
            Slot::INFINITY,
            Slot::from_f64(-0.5),
            text,
            heap.push_interval(interval),
            heap.push_array(&words),
            heap.push_array(&texts),
            heap.push_array(&spans),
            heap.push_array(&numbers),
            heap.push_array(&[]),
        ];
        let inner = heap.pack_row("w", &[Slot::from_i64(5)]).expect("a row");
        let row = heap.pack_row("wwnnnfbiWBINWr", &[&slots[..], &[inner]].concat());
        let row = row.expect("a row");
        let mut field = |number: usize| heap.row_field(row, number).expect("a field");
        let back: Vec<Slot> = (0..14).map(&mut field).collect();
        assert!(back[0].is_null());
        assert_eq!((back[1], back[2]), (slots[1], slots[2]));
        assert_eq!((back[4], back[5]), (slots[4], slots[5]));
        assert_eq!(heap.number(back[3]), long);
        assert_eq!(heap.str(back[6]), "a text");
        assert_eq!(heap.interval(back[7]), interval);
        assert_eq!(heap.array(back[8]), words);
        let read: Vec<Slot> = heap.array(back[9]).to_vec();
        assert!(heap.str(read[2]) == "a text" && read[1].is_null());
        let read: Vec<Slot> = heap.array(back[10]).to_vec();
        assert!(heap.interval(read[0]) == interval && read[1].is_null());
        let read: Vec<Slot> = heap.array(back[11]).to_vec();
        assert!(heap.number(read[0]) == long && read[1] == Slot::NAN);
        assert!(heap.array(back[12]).is_empty());
        assert_eq!(heap.row_field(back[13], 0), Ok(Slot::from_i64(5)));
        assert!(heap.row_field(row, 14).is_err());
        assert!(!all_null(heap.bytes(row), false) && !all_null(heap.bytes(row), true));
    }

    #[test]
    fn damaged_rows_are_errors_and_never_panics() {
        let mut heap = Heap::new();
        let text = heap.push_str("abc");
        let array = heap.push_array(&[text, text]);
        let whole = heap.pack_row("wbB", &[Slot::from_i64(7), text, array]);
        let whole = heap.bytes(whole.expect("a row")).to_vec();
        for at in 0..whole.len() {
            for byte in [0, 1, 8, 19, 23, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                for end in [at, whole.len()] {
                    let row = heap.push_bytes(&bytes[..end]);
                    for field in 0..4 {
                        let _ = heap.row_field(row, field);
                    }
                }
            }
        }
        assert!(heap.row_field(Slot::from_span(0, 0), 0).is_err());
    }
}
