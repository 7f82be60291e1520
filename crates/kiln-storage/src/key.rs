//! Keys: the values of an index's columns packed into one integer that sorts as they do.
//!
//! Fixed-width columns are packed into 64 or 128 bits when they fit, the first column in the
//! highest bits: each becomes an unsigned number in the order of its type (the sign bit flipped).
//! What does not fit, and every key with text, becomes a byte key of at most 256 bytes, compared
//! as memcmp compares: text ends in a zero byte (which text cannot contain), BYTEA escapes its
//! zeroes. A nullable column is preceded by a flag, so that NULLs sort last.
//!
//! A key that is not unique by its own columns is made so by a *suffix*: the primary key's
//! columns, or the row number of a table without one.

use crate::index::{ByteKey, Key};
use crate::layout::bounded_number;
use crate::schema::ColumnId;
use crate::slot::{Heap, Slot};
use crate::types::{CatalogType, DataType, Decimal, Number};

/// Why values do not make a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// A value is NULL: it equals no key.
    Null,
    /// A value lies below the range of its column's type.
    Below,
    /// A value lies above the range of its column's type.
    Above,
    /// A number has more digits than its column: it lies between two keys and equals none.
    Between,
    /// The key would be longer than 256 bytes.
    TooLong,
}

/// The encoding of one column within a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// A signed integer of this many bits.
    Signed(u32),
    /// The mantissa, at this scale, as a signed integer of this many bits.
    Decimal { bits: u32, scale: u8 },
    /// Numbers with their own scale: sign, exponent, chunks of digits. Byte keys only.
    AnyDecimal,
    /// A double by its order-preserving bits.
    Double,
    /// Text, ended by a zero byte. Byte keys only.
    Text,
    /// Bytes with zeroes escaped. Byte keys only.
    Bytea,
    /// Sixteen bytes. Byte keys only.
    Uuid,
}

/// One column of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyField {
    /// The column; `None` for the row number.
    pub column: Option<ColumnId>,
    encoding: Encoding,
    nullable: bool,
}

impl KeyField {
    fn new(column: ColumnId, data_type: &DataType, nullable: bool) -> KeyField {
        let encoding = match data_type {
            DataType::Boolean => Encoding::Signed(8),
            DataType::SmallInt => Encoding::Signed(16),
            DataType::Integer | DataType::Date => Encoding::Signed(32),
            DataType::BigInt
            | DataType::Timestamp(_)
            | DataType::TimestampTz(_)
            | DataType::Time(_)
            | DataType::Enum(_)
            | DataType::Catalog(CatalogType::Oid | CatalogType::Xid) => Encoding::Signed(64),
            DataType::Numeric { precision_scale } => match bounded_number(*precision_scale) {
                Some((..=9, scale)) => Encoding::Decimal { bits: 32, scale },
                Some((_, scale)) => Encoding::Decimal { bits: 64, scale },
                None => Encoding::AnyDecimal,
            },
            DataType::Double | DataType::Catalog(CatalogType::Real) => Encoding::Double,
            DataType::Bytea => Encoding::Bytea,
            DataType::Uuid => Encoding::Uuid,
            DataType::Char(_)
            | DataType::VarChar(_)
            | DataType::Text
            | DataType::Catalog(CatalogType::Name | CatalogType::Char) => Encoding::Text,
            DataType::Interval(_)
            | DataType::Array(_)
            | DataType::Row(_)
            | DataType::Catalog(_) => {
                unreachable!("columns of type {data_type} are refused when a table is created")
            }
        };
        KeyField {
            column: Some(column),
            encoding,
            nullable,
        }
    }

    /// What a value means for a bound that is only looked for: a number with more digits than a key
    /// has room for lies between two keys.
    #[cold]
    fn sought(&self, fault: KeyFault) -> KeyFault {
        match (fault, self.encoding) {
            (KeyFault::TooLong, Encoding::AnyDecimal) => KeyFault::Between,
            (fault, _) => fault,
        }
    }

    /// The bits in a packed key, the NULL flag included; `None` when only a byte key can hold it.
    fn bits(&self) -> Option<u32> {
        let value = match self.encoding {
            Encoding::Signed(bits) | Encoding::Decimal { bits, .. } => bits,
            Encoding::Double => 64,
            Encoding::AnyDecimal | Encoding::Text | Encoding::Bytea | Encoding::Uuid => {
                return None;
            }
        };
        Some(value + self.nullable as u32)
    }

    /// The bytes in a byte key at most, if the type bounds them.
    fn bytes(&self, data_type: Option<&DataType>) -> usize {
        let value = match (self.encoding, data_type) {
            (Encoding::Signed(bits) | Encoding::Decimal { bits, .. }, _) => bits as usize / 8,
            (Encoding::Double, _) => 8,
            (
                Encoding::AnyDecimal,
                Some(DataType::Numeric {
                    precision_scale: Some((precision, _)),
                }),
            ) => 3 + CHUNK_BYTES * usize::from(*precision).div_ceil(CHUNK_DIGITS as usize),
            (Encoding::AnyDecimal, _) => 3 + CHUNK_BYTES,
            (Encoding::Uuid, _) => 16,
            (_, Some(DataType::Char(length) | DataType::VarChar(Some(length)))) => {
                *length as usize + 1
            }
            _ => 65,
        };
        value + self.nullable as usize
    }

    /// A packed field's value as an unsigned number of its width, without the flag.
    #[inline(always)]
    fn number(&self, slot: Slot, heap: &Heap) -> Result<u64, KeyFault> {
        let (value, bits) = match self.encoding {
            Encoding::Signed(bits) => (slot.as_i64(), bits),
            Encoding::Decimal { bits, scale } => {
                let mantissa = match slot.is_long() {
                    false => decimal_mantissa(slot.as_decimal(), scale, bits)?,
                    true => long_mantissa(heap, slot, scale, bits)?,
                };
                (mantissa, bits)
            }
            Encoding::Double => {
                // Negative zero equals zero, and NaN is above everything.
                let value = slot.as_f64() + 0.0;
                let raw = if value.is_nan() {
                    u64::MAX >> 1
                } else {
                    value.to_bits()
                };
                return Ok(if raw >> 63 != 0 { !raw } else { raw | 1 << 63 });
            }
            _ => unreachable!("the encoding is not packed"),
        };
        if bits == 64 {
            return Ok(value as u64 ^ 1 << 63);
        }
        let offset = 1_i64 << (bits - 1);
        match value {
            value if value < -offset => Err(KeyFault::Below),
            value if value >= offset => Err(KeyFault::Above),
            value => Ok((value + offset) as u64),
        }
    }
}

/// The number as an integer at `scale`. What is above all numbers of so many bits lies between them
/// and the column's NaN.
#[inline(always)]
fn decimal_mantissa(value: Decimal, scale: u8, bits: u32) -> Result<i64, KeyFault> {
    let outside = if value.is_negative() {
        KeyFault::Below
    } else {
        KeyFault::Between
    };
    let power = |exponent: u8| 10_i128.checked_pow(exponent as u32);
    let mantissa = if value.scale() <= scale {
        let factor = power(scale - value.scale()).ok_or(outside)?;
        value.mantissa().checked_mul(factor).ok_or(outside)?
    } else {
        let divisor = power(value.scale() - scale).ok_or(KeyFault::Between)?;
        if value.mantissa() % divisor != 0 {
            return Err(KeyFault::Between);
        }
        value.mantissa() / divisor
    };
    match i64::try_from(mantissa) {
        Ok(mantissa) if mantissa < nan_mantissa(bits) => Ok(mantissa),
        _ => Err(outside),
    }
}

/// What stands for NaN among the integers of so many bits: more than any number of the column.
const fn nan_mantissa(bits: u32) -> i64 {
    i64::MAX >> (64 - bits)
}

/// The same of a number that is not in its slot.
#[cold]
fn long_mantissa(heap: &Heap, slot: Slot, scale: u8, bits: u32) -> Result<i64, KeyFault> {
    let number = heap.number(slot);
    if number.is_nan() {
        return Ok(nan_mantissa(bits));
    }
    // With zeros behind the last place it may be a number of the column all the same.
    if let Some(decimal) = number.normalize().to_decimal() {
        return decimal_mantissa(decimal, scale, bits);
    }
    // What has more than 33 digits is below the column, or between two of its values.
    match number < Number::from(i64::MIN) {
        true => Err(KeyFault::Below),
        false => Err(KeyFault::Between),
    }
}

/// Which integer an index's keys are packed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyWidth {
    /// 64 bits.
    Word,
    /// 128 bits.
    DoubleWord,
    /// A byte key of 64 bytes.
    Bytes64,
    /// A byte key of 256 bytes.
    Bytes256,
}

/// How an index packs its keys.
#[derive(Clone, Debug)]
pub struct KeyLayout {
    fields: Box<[KeyField]>,
    /// How many of the fields are the index's own columns; the rest is the suffix.
    declared: usize,
    /// The suffix counts only when one of so many columns from the first on is NULL: in unique
    /// indexes, where NULLs differ from each other. 0 where it always counts, or never.
    distinct_nulls: usize,
    /// Whether NULLs are keys like other values: in unique indexes whose NULLs are equal.
    nulls_equal: bool,
    width: KeyWidth,
    bits: u32,
    /// The bits of each field, when all are integers that are never NULL and all count: the keys
    /// that are looked up most are packed without a look at each field's encoding.
    integers: Option<Box<[u8]>>,
}

/// The uppermost bits of a row number: the slot of the worker that gave it.
pub const ROW_NUMBER_SLOT_BITS: u32 = 16;

impl KeyLayout {
    /// The layout of a key of the columns `declared`, followed by those of `suffix` that are not
    /// among them; `suffix` ends with the row number for tables without a primary key. In a `unique`
    /// index a NULL in one of the first `distinct_nulls` columns makes rows distinct.
    pub fn new(
        columns: &[crate::schema::Column],
        declared: &[ColumnId],
        suffix: &[ColumnId],
        row_number: bool,
        (unique, distinct_nulls): (bool, usize),
    ) -> KeyLayout {
        let field = |column: &ColumnId| {
            let definition = &columns[column.index()];
            KeyField::new(*column, &definition.data_type, !definition.not_null)
        };
        let mut fields: Vec<KeyField> = declared.iter().map(field).collect();
        let nulls_equal = unique && distinct_nulls < declared.len();
        let is_nullable = |fields: &[KeyField]| fields.iter().any(|field| field.nullable);
        let distinct_nulls = match unique && is_nullable(&fields[..distinct_nulls]) {
            true => distinct_nulls,
            false => 0,
        };
        if !unique || distinct_nulls > 0 {
            fields.extend(
                suffix
                    .iter()
                    .filter(|column| !declared.contains(column))
                    .map(field),
            );
            if row_number {
                let encoding = Encoding::Signed(64);
                fields.push(KeyField {
                    column: None,
                    encoding,
                    nullable: false,
                });
            }
        }
        let bits: Option<u32> = fields.iter().map(KeyField::bits).sum();
        let bytes: usize = fields
            .iter()
            .map(|field| {
                field.bytes(
                    field
                        .column
                        .map(|column| &columns[column.index()].data_type),
                )
            })
            .sum();
        let width = match bits {
            Some(0..=64) => KeyWidth::Word,
            Some(65..=128) => KeyWidth::DoubleWord,
            _ if bytes <= 64 => KeyWidth::Bytes64,
            _ => KeyWidth::Bytes256,
        };
        let integers = fields.iter().map(|field| match field.encoding {
            Encoding::Signed(bits) if !field.nullable => Some(bits as u8),
            _ => None,
        });
        let is_packed = matches!(width, KeyWidth::Word | KeyWidth::DoubleWord);
        let integers = integers.collect::<Option<_>>().filter(|_| is_packed);
        KeyLayout {
            fields: fields.into(),
            declared: declared.len(),
            distinct_nulls,
            nulls_equal,
            width,
            bits: bits.unwrap_or(0),
            integers,
        }
    }

    /// The key of a hidden index over row numbers alone; see `ROW_NUMBER_SLOT_BITS`.
    pub fn of_row_numbers() -> KeyLayout {
        let encoding = Encoding::Signed(64);
        let field = KeyField {
            column: None,
            encoding,
            nullable: false,
        };
        KeyLayout {
            fields: [field].into(),
            declared: 1,
            distinct_nulls: 0,
            nulls_equal: false,
            width: KeyWidth::Word,
            bits: 64,
            integers: Some([64].into()),
        }
    }

    /// All fields: declared columns, then the suffix.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// Whether keys are packed into integers, so that no value of theirs lies outside of its slot.
    #[inline(always)]
    pub fn is_packed(&self) -> bool {
        matches!(self.width, KeyWidth::Word | KeyWidth::DoubleWord)
    }

    /// Which integer the keys are packed into.
    pub fn width(&self) -> KeyWidth {
        self.width
    }

    /// The number of leading key bits that the first `columns` columns fill; 0 when one of them
    /// has no fixed width (then the index cannot be partitioned by them). Row numbers are
    /// partitioned by the slot that gave them, so that workers that append never meet.
    pub fn prefix_bits(&self, columns: usize) -> u32 {
        if self.fields[0].column.is_none() {
            return ROW_NUMBER_SLOT_BITS;
        }
        match self.width {
            KeyWidth::Word | KeyWidth::DoubleWord => self.fields[..columns]
                .iter()
                .filter_map(KeyField::bits)
                .sum(),
            KeyWidth::Bytes64 | KeyWidth::Bytes256 => {
                let fixed = self.fields[..columns].iter().map(|field| {
                    let bits = field.bits()? - field.nullable as u32;
                    Some(bits + 8 * field.nullable as u32)
                });
                fixed.sum::<Option<u32>>().unwrap_or(0)
            }
        }
    }

    /// The cuts at which range locks divide keys into prefixes: numbers of leading bits, in
    /// ascending order. The last cut names a key by its first 128 bits.
    ///
    /// A scan fixes the values of some columns and bounds the next one. So there is a cut behind
    /// each column, and within the last two, which scans bound, also 4, 8, 12 and 16 bits before
    /// the end of a number: most bounds are less than some thousands apart, and all bits above are
    /// those of the other side. Within texts and bytes, behind which no column has a place of its
    /// own, there are some at the first bytes.
    pub fn cuts(&self) -> Vec<u32> {
        const MAX_BITS: u32 = 128;
        let is_packed = self.is_packed();
        let mut cuts = Vec::new();
        let mut start = 0;
        let mut end_of_all = Some(0);
        for (position, field) in self.fields.iter().enumerate() {
            let flag = match is_packed {
                true => field.nullable as u32,
                false => 8 * field.nullable as u32,
            };
            let value_bits = match field.encoding {
                Encoding::Signed(bits) | Encoding::Decimal { bits, .. } => Some(bits),
                Encoding::Double => Some(64),
                Encoding::AnyDecimal => Some(160),
                Encoding::Uuid => Some(128),
                Encoding::Text | Encoding::Bytea => None,
            };
            let is_declared = position < self.declared;
            let Some(value_bits) = value_bits else {
                if is_declared {
                    cuts.extend([8, 16, 24, 32, 48, 64, 96].map(|bits| start + flag + bits));
                }
                end_of_all = None;
                break;
            };
            let end = start + flag + value_bits;
            if is_declared {
                if position + 2 >= self.declared && matches!(field.encoding, Encoding::Signed(_)) {
                    let within = [16, 12, 8, 4].iter().filter(|bits| **bits < value_bits);
                    cuts.extend(within.map(|bits| end - bits));
                }
                cuts.push(end);
            }
            start = end;
            end_of_all = Some(end);
        }
        let whole = end_of_all.unwrap_or(MAX_BITS).min(MAX_BITS);
        cuts.retain(|cut| *cut < whole);
        cuts.push(whole);
        cuts
    }

    /// The number of leading key bits at whose end the number in `column` ends, if it is among the
    /// key's first 64 bits and is not NULL: its lowest bits are in front of that position.
    pub fn end_of(&self, column: ColumnId) -> Option<u32> {
        let position = self.fields[..self.declared]
            .iter()
            .position(|field| field.column == Some(column))?;
        let is_number = matches!(self.fields[position].encoding, Encoding::Signed(_));
        if !is_number || self.fields[position].nullable {
            return None;
        }
        let bits = self.prefix_bits(position + 1);
        (8..=64).contains(&bits).then_some(bits)
    }

    /// The values in an entry's key, given as bytes, for people; zeroes at its end may be missing.
    pub fn describe(&self, key: &[u8]) -> String {
        let packed = matches!(self.width, KeyWidth::Word | KeyWidth::DoubleWord);
        let mut bits = KeyBits { key, position: 0 };
        let mut values = Vec::new();
        let mut any_null = false;
        for (position, field) in self.fields.iter().enumerate() {
            if position >= self.declared && self.distinct_nulls > 0 && !any_null {
                break;
            }
            if field.nullable && bits.take(if packed { 1 } else { 8 }) != 0 {
                any_null |= position < self.distinct_nulls;
                if packed {
                    bits.take(field.bits().unwrap_or(1) - 1);
                }
                values.push("NULL".to_owned());
                continue;
            }
            values.push(match field.encoding {
                Encoding::Signed(width) => bits.signed(width).to_string(),
                Encoding::Decimal { bits: width, scale } => match bits.signed(width) {
                    mantissa if mantissa == nan_mantissa(width) => "NaN".to_owned(),
                    mantissa => Decimal::new(mantissa.into(), scale)
                        .map_or_else(|_| "?".into(), |value| value.to_string()),
                },
                Encoding::Double => {
                    let raw = bits.take(64);
                    let raw = if raw >> 63 != 0 { raw ^ 1 << 63 } else { !raw };
                    f64::from_bits(raw).to_string()
                }
                Encoding::AnyDecimal => {
                    let mut text = bits.hexadecimal(3);
                    let is_special = match text.as_str() {
                        "02ffff" | "000000" => {
                            text += &bits.hexadecimal(4);
                            matches!(&text[6..], "fffffffe" | "ffffffff" | "00000001")
                        }
                        _ => false,
                    };
                    // The last byte of a chunk says whether another one follows.
                    let mut follows = !is_special;
                    while follows {
                        text += &bits.hexadecimal(CHUNK_BYTES);
                        follows = text.ends_with("01") || text.ends_with("fe");
                    }
                    text
                }
                Encoding::Uuid => bits.hexadecimal(16),
                Encoding::Text => {
                    let bytes = std::iter::from_fn(|| Some(bits.take(8) as u8));
                    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
                    String::from_utf8_lossy(&text).into_owned()
                }
                Encoding::Bytea => {
                    let mut text = String::from("\\x");
                    loop {
                        match bits.take(8) as u8 {
                            0 if bits.take(8) == 0 => break,
                            byte => text += &format!("{byte:02x}"),
                        }
                    }
                    text
                }
            });
        }
        values.join(", ")
    }

    /// Whether a whole key can be looked up: no field of it needs the suffix.
    pub fn is_unique_by_columns(&self) -> bool {
        self.fields.len() == self.declared || self.distinct_nulls > 0
    }

    /// The key with all fields, for entries. `value` gives a field's value, also by its position.
    ///
    /// # Errors
    /// [`KeyFault::TooLong`]; range faults cannot happen for values that fit their columns.
    #[inline(always)]
    pub fn entry<K: PackedKey>(
        &self,
        heap: &Heap,
        value: impl Fn(usize, &KeyField) -> Slot,
    ) -> Result<K, KeyFault> {
        if let Some(bits) = &self.integers {
            let values = self.fields.iter().enumerate();
            let values = values.map(|(position, field)| value(position, field));
            if let Some(key) = K::of_integers(bits, values) {
                return Ok(key);
            }
        }
        let mut packer = K::Packer::default();
        let mut any_null = false;
        for (position, field) in self.fields.iter().enumerate() {
            if position >= self.declared && self.distinct_nulls > 0 && !any_null {
                break;
            }
            let slot = value(position, field);
            any_null |= position < self.distinct_nulls && slot.is_null();
            packer.push(field, slot, heap)?;
        }
        packer.finish(self.bits, false)
    }

    /// The key that the entries with these values of the declared columns have, if the index is
    /// unique by them.
    ///
    /// # Errors
    /// [`KeyFault`]: no entry can have this key.
    #[inline(always)]
    pub fn point<K: PackedKey>(
        &self,
        heap: &Heap,
        values: impl Iterator<Item = Slot>,
    ) -> Result<K, KeyFault> {
        if let Some(bits) = &self.integers {
            return K::of_integers(bits, values).ok_or(KeyFault::Between);
        }
        let mut packer = K::Packer::default();
        for (field, slot) in self.fields.iter().zip(values) {
            if slot.is_null() {
                return Err(KeyFault::Null);
            }
            packer.push(field, slot, heap)?;
        }
        packer.finish(self.bits, false)
    }

    /// The key by which another row would be in the way of one with these values of the declared
    /// columns: as [`KeyLayout::point`], but NULLs that are equal to each other are values.
    ///
    /// # Errors
    /// [`KeyFault`]: no row can be in its way.
    pub fn row_point<K: PackedKey>(
        &self,
        heap: &Heap,
        values: impl Iterator<Item = Slot>,
    ) -> Result<K, KeyFault> {
        if !self.nulls_equal {
            return self.point(heap, values);
        }
        let mut packer = K::Packer::default();
        let fields = self.fields[..self.declared].iter().zip(values);
        for (position, (field, slot)) in fields.enumerate() {
            if slot.is_null() && position < self.distinct_nulls {
                return Err(KeyFault::Null);
            }
            packer.push(field, slot, heap)?;
        }
        packer.finish(self.bits, false)
    }

    /// The smallest (or with `upper` the greatest) key whose first columns have these values.
    ///
    /// # Errors
    /// [`KeyFault`], naming where the first value that does not fit lies.
    pub fn prefix<K: PackedKey>(
        &self,
        heap: &Heap,
        values: impl Iterator<Item = Slot>,
        upper: bool,
    ) -> Result<K, KeyFault> {
        let mut packer = K::Packer::default();
        for (field, slot) in self.fields.iter().zip(values) {
            if slot.is_null() {
                return Err(KeyFault::Null);
            }
            (packer.push(field, slot, heap)).map_err(|fault| field.sought(fault))?;
        }
        packer.finish(self.bits, upper)
    }

    /// The greatest key whose first columns have these values and whose next column is not NULL.
    ///
    /// # Errors
    /// As [`KeyLayout::prefix`].
    pub fn prefix_not_null<K: PackedKey>(
        &self,
        heap: &Heap,
        values: impl Iterator<Item = Slot>,
    ) -> Result<K, KeyFault> {
        let mut packer = K::Packer::default();
        let mut fields = self.fields.iter();
        for slot in values {
            let field = fields.next().expect("at most one value a field");
            if slot.is_null() {
                return Err(KeyFault::Null);
            }
            packer.push(field, slot, heap)?;
        }
        if let Some(next) = fields.next()
            && next.nullable
        {
            packer.push_flag(false);
        }
        packer.finish(self.bits, true)
    }
}

/// A key's bits, from the highest down; zeroes follow it.
struct KeyBits<'a> {
    key: &'a [u8],
    position: u32,
}

impl KeyBits<'_> {
    /// The next `count` bits, at most 64.
    fn take(&mut self, count: u32) -> u64 {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.key.get(self.position as usize / 8).unwrap_or(&0);
            value = value << 1 | (byte >> (7 - self.position % 8) & 1) as u64;
            self.position += 1;
        }
        value
    }

    /// The next `width` bits as a signed number.
    fn signed(&mut self, width: u32) -> i64 {
        (self.take(width) as i64).wrapping_sub(1_i64.wrapping_shl(width - 1))
    }

    fn hexadecimal(&mut self, bytes: usize) -> String {
        (0..bytes)
            .map(|_| format!("{:02x}", self.take(8)))
            .collect()
    }
}

/// A key type and how it is put together.
pub trait PackedKey: Key {
    /// The key while fields are appended.
    type Packer: Packer<Self>;

    /// The key of integers with so many bits each, the first in the highest; `None` when one is
    /// NULL or does not fit, and for byte keys.
    fn of_integers(bits: &[u8], values: impl Iterator<Item = Slot>) -> Option<Self>;
}

/// An integer as an unsigned number of `bits` bits in the same order; `None` when it is NULL or
/// does not fit.
#[inline(always)]
fn unsigned(slot: Slot, bits: u32) -> Option<u64> {
    // For 64 bits the offset is the sign bit, and everything fits.
    let number = (slot.as_i64() as u64).wrapping_add(1 << (bits - 1));
    let fits = number >> 1 >> (bits - 1) == 0;
    (fits && !slot.is_null()).then_some(number)
}

/// A key while fields are appended.
pub trait Packer<K>: Default {
    /// Appends a field with its NULL flag.
    fn push(&mut self, field: &KeyField, slot: Slot, heap: &Heap) -> Result<(), KeyFault>;
    /// Appends only a NULL flag.
    fn push_flag(&mut self, null: bool);
    /// The key; what is not filled becomes zeroes, or ones with `upper`. `bits` is the width of
    /// the whole packed key.
    fn finish(self, bits: u32, upper: bool) -> Result<K, KeyFault>;
}

/// Packs into an integer from the highest bit down.
#[derive(Default)]
pub struct IntegerPacker {
    value: u128,
    bits: u32,
}

impl IntegerPacker {
    #[inline(always)]
    fn append(&mut self, value: u64, bits: u32) {
        self.value = self.value << bits | value as u128;
        self.bits += bits;
    }

    #[inline(always)]
    fn push_number(&mut self, field: &KeyField, slot: Slot, heap: &Heap) -> Result<(), KeyFault> {
        let bits = match field.encoding {
            Encoding::Signed(bits) | Encoding::Decimal { bits, .. } => bits,
            _ => 64,
        };
        if field.nullable {
            self.append(slot.is_null() as u64, 1);
            if slot.is_null() {
                self.append(0, bits);
                return Ok(());
            }
        }
        self.append(field.number(slot, heap)?, bits);
        Ok(())
    }

    #[inline(always)]
    fn aligned(self, total: u32, upper: bool) -> u128 {
        let free = total - self.bits;
        if free == 128 {
            return if upper { u128::MAX } else { 0 };
        }
        let fill = if upper { (1_u128 << free) - 1 } else { 0 };
        (self.value << free) | fill
    }
}

impl PackedKey for u64 {
    type Packer = IntegerPacker;

    #[inline(always)]
    fn of_integers(bits: &[u8], values: impl Iterator<Item = Slot>) -> Option<u64> {
        let (mut key, mut free) = (0, 64);
        // Without `zip`, which counts both sides before it begins: more work than most keys are.
        let mut values = values;
        for &bits in bits {
            let Some(slot) = values.next() else { break };
            let bits = u32::from(bits);
            free -= bits;
            key |= unsigned(slot, bits)? << free;
        }
        Some(key)
    }
}

impl Packer<u64> for IntegerPacker {
    #[inline(always)]
    fn push(&mut self, field: &KeyField, slot: Slot, heap: &Heap) -> Result<(), KeyFault> {
        self.push_number(field, slot, heap)
    }

    fn push_flag(&mut self, null: bool) {
        self.append(null as u64, 1);
    }

    #[inline(always)]
    fn finish(self, _: u32, upper: bool) -> Result<u64, KeyFault> {
        Ok(self.aligned(64, upper) as u64)
    }
}

impl PackedKey for u128 {
    type Packer = IntegerPacker;

    #[inline(always)]
    fn of_integers(bits: &[u8], values: impl Iterator<Item = Slot>) -> Option<u128> {
        let (mut key, mut free) = (0, 128);
        // As for 64 bits.
        let mut values = values;
        for &bits in bits {
            let Some(slot) = values.next() else { break };
            let bits = u32::from(bits);
            free -= bits;
            key |= u128::from(unsigned(slot, bits)?) << free;
        }
        Some(key)
    }
}

impl Packer<u128> for IntegerPacker {
    #[inline(always)]
    fn push(&mut self, field: &KeyField, slot: Slot, heap: &Heap) -> Result<(), KeyFault> {
        self.push_number(field, slot, heap)
    }

    fn push_flag(&mut self, null: bool) {
        self.append(null as u64, 1);
    }

    #[inline(always)]
    fn finish(self, _: u32, upper: bool) -> Result<u128, KeyFault> {
        Ok(self.aligned(128, upper))
    }
}

/// Packs into a byte key.
pub struct BytePacker<const WORDS: usize> {
    bytes: [[u8; 8]; WORDS],
    length: usize,
}

impl<const WORDS: usize> Default for BytePacker<WORDS> {
    fn default() -> Self {
        BytePacker {
            bytes: [[0; 8]; WORDS],
            length: 0,
        }
    }
}

impl<const WORDS: usize> BytePacker<WORDS> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), KeyFault> {
        let end = self.length + bytes.len();
        let target = self.bytes.as_flattened_mut().get_mut(self.length..end);
        target.ok_or(KeyFault::TooLong)?.copy_from_slice(bytes);
        self.length = end;
        Ok(())
    }
}

impl<const WORDS: usize> BytePacker<WORDS> {
    /// A number that is not in its slot, as [`decimal_bytes`] has those that are.
    #[cold]
    fn append_long(&mut self, number: &Number) -> Result<(), KeyFault> {
        // Negative numbers are inverted behind the byte of their sign.
        let (sign, mask) = match number.is_negative() {
            true => (NEGATIVE, 0xff),
            false => (POSITIVE, 0),
        };
        let finite = match number {
            Number::Finite(finite) => finite,
            _ => {
                let rank: u32 = if number.is_nan() {
                    u32::MAX
                } else {
                    u32::MAX - 1
                };
                self.append(&[sign, 0xff ^ mask, 0xff ^ mask])?;
                return self.append(&rank.to_be_bytes().map(|byte| byte ^ mask));
            }
        };
        let (exponent, digits) = finite.key_digits();
        if digits.is_empty() {
            return self.append(&decimal_bytes(Decimal::ZERO));
        }
        self.append(&[sign])?;
        match u16::try_from(exponent + EXPONENT_OFFSET) {
            Ok(short) if short < u16::MAX => {
                self.append(&short.to_be_bytes().map(|it| it ^ mask))?
            }
            _ => {
                self.append(&[0xff ^ mask; 2])?;
                self.append(&exponent.to_be_bytes().map(|it| it ^ mask))?;
            }
        }
        let mut chunks = digits.chunks(CHUNK_DIGITS as usize).peekable();
        while let Some(chunk) = chunks.next() {
            let digits = chunk.iter().copied().chain(std::iter::repeat(0));
            let aligned = (digits.take(CHUNK_DIGITS as usize))
                .fold(0_u128, |sum, digit| sum * 10 + u128::from(digit));
            let mut bytes = [0; CHUNK_BYTES];
            bytes[..16].copy_from_slice(&aligned.to_be_bytes());
            bytes[16] = u8::from(chunks.peek().is_some());
            self.append(&bytes.map(|byte| byte ^ mask))?;
        }
        Ok(())
    }
}

impl<const WORDS: usize> PackedKey for ByteKey<WORDS> {
    type Packer = BytePacker<WORDS>;

    fn of_integers(_: &[u8], _: impl Iterator<Item = Slot>) -> Option<Self> {
        None
    }
}

impl<const WORDS: usize> Packer<ByteKey<WORDS>> for BytePacker<WORDS> {
    fn push(&mut self, field: &KeyField, slot: Slot, heap: &Heap) -> Result<(), KeyFault> {
        if field.nullable {
            self.append(&[slot.is_null() as u8])?;
            if slot.is_null() {
                return Ok(());
            }
        }
        match field.encoding {
            Encoding::Signed(bits) | Encoding::Decimal { bits, .. } => {
                let number = field.number(slot, heap)?.to_be_bytes();
                self.append(&number[8 - bits as usize / 8..])
            }
            Encoding::Double => self.append(&field.number(slot, heap)?.to_be_bytes()),
            Encoding::AnyDecimal if slot.is_long() => self.append_long(&heap.number(slot)),
            Encoding::AnyDecimal => self.append(&decimal_bytes(slot.as_decimal())),
            Encoding::Uuid => self.append(heap.bytes(slot)),
            Encoding::Text => {
                self.append(heap.bytes(slot))?;
                self.append(&[0])
            }
            Encoding::Bytea => {
                for &byte in heap.bytes(slot) {
                    self.append(if byte == 0 {
                        &[0, 0xff]
                    } else {
                        std::slice::from_ref(&byte)
                    })?;
                }
                self.append(&[0, 0])
            }
        }
    }

    fn push_flag(&mut self, null: bool) {
        // A flag that does not fit cannot make a difference: the bound is the whole array.
        let _ = self.append(&[null as u8]);
    }

    fn finish(mut self, _: u32, upper: bool) -> Result<ByteKey<WORDS>, KeyFault> {
        if upper {
            self.bytes.as_flattened_mut()[self.length..].fill(0xff);
        }
        Ok(ByteKey(self.bytes.map(u64::from_be_bytes)))
    }
}

/// The digits of a number of any scale lie in a key in chunks: so many digits as one number of 16
/// bytes, and a byte that is 1 if another chunk follows. The first chunk begins with the first
/// digit that is not zero, and zeros at the end of the last one count for nothing.
const CHUNK_DIGITS: u32 = 38;
const CHUNK_BYTES: usize = 17;

/// The first bytes of numbers below zero, of zero, and of numbers above it.
const NEGATIVE: u8 = 0;
const ZERO: u8 = 1;
const POSITIVE: u8 = 2;

/// What is added to a decimal exponent, so that it has no sign.
const EXPONENT_OFFSET: i32 = 0x4000;

/// Numbers of any scale in memcmp order: the sign, the decimal exponent (2 bytes), a chunk of
/// digits; negative numbers inverted. Every number that a slot has room for takes 20 bytes. The
/// greatest exponent stands for a longer one behind it (4 bytes), or for an infinity or NaN, which
/// have no digits.
fn decimal_bytes(value: Decimal) -> [u8; 3 + CHUNK_BYTES] {
    let mantissa = value.mantissa();
    let mut bytes = [0; 3 + CHUNK_BYTES];
    if mantissa == 0 {
        bytes[0] = ZERO;
        return bytes;
    }
    let digits = mantissa.unsigned_abs().ilog10() + 1;
    let exponent = digits as i32 - value.scale() as i32;
    let aligned = mantissa.unsigned_abs() * 10_u128.pow(CHUNK_DIGITS - digits);
    bytes[0] = POSITIVE;
    bytes[1..3].copy_from_slice(&((exponent + EXPONENT_OFFSET) as u16).to_be_bytes());
    bytes[3..19].copy_from_slice(&aligned.to_be_bytes());
    if mantissa < 0 {
        bytes[0] = NEGATIVE;
        bytes[1..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    bytes
}
