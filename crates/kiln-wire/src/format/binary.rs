//! The binary format: values as the `send` functions of PostgreSQL's types write them, in
//! big-endian order.
//!
//! | type | bytes |
//! |---|---|
//! | boolean | 1: 0 or 1 |
//! | smallint, integer, bigint | 2, 4, 8 |
//! | double precision | 8: IEEE 754 |
//! | numeric | number of digits 2, weight 2, sign 2 (0, 0x4000, NaN 0xc000, Infinity 0xd000, -Infinity 0xf000), digits after the point 2; and the digits, base 10,000, 2 each |
//! | text, varchar, char, bytea | as they are; char with its blanks |
//! | date | 4: days since 2000-01-01 |
//! | timestamp, timestamptz | 8: microseconds since 2000-01-01 |
//! | interval | microseconds 8, days 4, months 4 |
//! | uuid | 16 |
//! | oid, xid; the oid of a named object | 4 |
//! | real | 4: IEEE 754 |
//! | name, "char", pg_node_tree | as they are |
//! | int2vector, oidvector | an array whose first subscript is 0 |
//! | row | fields 4; of each the type 4, the length 4 (-1 for NULL), and the value |
//! | array | dimensions 4 (0 or 1), whether it has NULLs 4, type of elements 4; elements 4, first subscript 4; and the elements, each with its length 4 (-1 for NULL) |

use std::fmt::Write;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::datetime::{date_in_range, time_in_range, timestamp_in_range};
use kiln_storage::types::text::{not_utf8, utf8};
use kiln_storage::types::{
    CatalogType, DataType, Decimal, Interval, Number, ObjectName, Representation, RowType,
    RowValue, Value, parse_value,
};

use super::{oid, parameter_type};

/// The form of JSONB in binary: its text follows.
const JSONB_FORM: u8 = 1;

/// Appends a value of this type in its binary format. NULL is nothing.
pub fn encode_binary(value: &Value, data_type: &DataType, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Boolean(value) => bytes.push(u8::from(*value)),
        Value::SmallInt(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Value::Integer(value) | Value::Date(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Value::BigInt(value) if matches!(data_type, DataType::Catalog(_)) => {
            bytes.extend_from_slice(&(*value as u32).to_be_bytes());
        }
        Value::Double(value) if matches!(data_type, DataType::Catalog(_)) => {
            bytes.extend_from_slice(&(*value as f32).to_be_bytes());
        }
        Value::Object(object) => bytes.extend_from_slice(&object.oid.to_be_bytes()),
        Value::Enum(value) => bytes.extend_from_slice(value.label().as_bytes()),
        Value::BigInt(value)
        | Value::Timestamp(value)
        | Value::TimestampTz(value)
        | Value::Time(value) => {
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        Value::Double(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Value::Numeric(value) => encode_numeric(*value, bytes),
        Value::LongNumeric(value) => encode_number(value, bytes),
        Value::Text(value) => {
            if matches!(
                data_type,
                DataType::Catalog(CatalogType::Jsonb | CatalogType::JsonPath)
            ) {
                bytes.push(JSONB_FORM);
            }
            bytes.extend_from_slice(value.as_bytes());
            if let DataType::Char(length) = data_type {
                let blanks = (*length as usize).saturating_sub(value.chars().count());
                bytes.resize(bytes.len() + blanks, b' ');
            }
        }
        Value::Bytea(value) => bytes.extend_from_slice(value),
        Value::Uuid(value) => bytes.extend_from_slice(value),
        Value::Interval(Interval {
            months,
            days,
            microseconds,
        }) => {
            bytes.extend_from_slice(&microseconds.to_be_bytes());
            bytes.extend_from_slice(&days.to_be_bytes());
            bytes.extend_from_slice(&months.to_be_bytes());
        }
        Value::Array(elements) => encode_array(elements, data_type, bytes),
        Value::Row(row) => {
            bytes.extend_from_slice(&(row.fields.len() as u32).to_be_bytes());
            for (value, data_type) in row.typed() {
                bytes.extend_from_slice(&oid(data_type).to_be_bytes());
                encode_counted(value, data_type, bytes);
            }
        }
    }
}

fn encode_array(elements: &[Value], data_type: &DataType, bytes: &mut Vec<u8>) {
    let element = &data_type.element().unwrap_or(DataType::Text);
    let is_vector = matches!(data_type, DataType::Catalog(_));
    let mut word = |value: u32| bytes.extend_from_slice(&value.to_be_bytes());
    // A vector without elements has its dimension all the same.
    word(u32::from(is_vector || !elements.is_empty()));
    word(u32::from(elements.contains(&Value::Null)));
    word(oid(element));
    if elements.is_empty() && !is_vector {
        return;
    }
    word(elements.len() as u32);
    word(u32::from(!is_vector));
    for value in elements {
        encode_counted(value, element, bytes);
    }
}

/// Appends the length of a value, -1 for NULL, and the value.
fn encode_counted(value: &Value, data_type: &DataType, bytes: &mut Vec<u8>) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0xff; 4]);
    if !value.is_null() {
        encode_binary(value, data_type, bytes);
        let length = (bytes.len() - at - 4) as u32;
        bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;
/// The most places after the point that PostgreSQL sends.
const SCALE_MAX: u16 = 0x3fff;
/// The digits of the greatest number of 128 bits.
const DIGITS_MAX: usize = 39;

/// A number with more digits than those that [`encode_numeric`] takes, NaN, or an infinity.
fn encode_number(value: &Number, bytes: &mut Vec<u8>) {
    let sign = match value {
        Number::NaN => NAN,
        Number::Infinity => INFINITY,
        Number::NegativeInfinity => NEGATIVE_INFINITY,
        Number::Finite(_) if value.is_negative() => NEGATIVE,
        Number::Finite(_) => 0,
    };
    let text = match value.is_finite() {
        true => value.abs().to_string(),
        false => String::new(),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // Whole groups of four digits on both sides of the point.
    let padded = format!(
        "{}{whole}{fraction}{}",
        "0".repeat(whole.len().next_multiple_of(4) - whole.len()),
        "0".repeat(fraction.len().next_multiple_of(4) - fraction.len()),
    );
    let groups = padded.as_bytes().chunks(4).map(|group| {
        let digits = group.iter().map(|digit| u16::from(digit - b'0'));
        digits.fold(0, |group, digit| group * 10 + digit)
    });
    let groups: Vec<u16> = groups.collect();
    let first = groups.iter().position(|group| *group != 0);
    let first = first.unwrap_or(groups.len());
    let end = groups.iter().rposition(|group| *group != 0);
    let kept = groups.get(first..end.map_or(first, |last| last + 1));
    let kept = kept.unwrap_or_default();
    let weight = match kept.is_empty() {
        true => 0,
        false => whole.len().div_ceil(4) as i32 - 1 - first as i32,
    };
    bytes.extend_from_slice(&(kept.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&(weight as i16).to_be_bytes());
    bytes.extend_from_slice(&sign.to_be_bytes());
    // PostgreSQL sends the bits that it has there for the infinities.
    let scale = match value {
        Number::Infinity | Number::NegativeInfinity => 0x20,
        _ => fraction.len() as u16,
    };
    bytes.extend_from_slice(&scale.to_be_bytes());
    for group in kept {
        bytes.extend_from_slice(&group.to_be_bytes());
    }
}

fn encode_numeric(value: Decimal, bytes: &mut Vec<u8>) {
    let (mantissa, scale) = (value.mantissa(), usize::from(value.scale()));
    // Decimal digits, from the last one.
    let (mut digits, mut count) = ([0_u8; DIGITS_MAX], 0);
    let mut rest = mantissa.unsigned_abs();
    while rest > 0 {
        digits[count] = (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    // The group of four digits at a power of 10,000.
    let group = |power: i32| {
        (0..4).rev().fold(0_u16, |group, place| {
            let at = power * 4 + place + scale as i32;
            let digit = usize::try_from(at).ok().filter(|at| *at < count);
            group * 10 + digit.map_or(0, |at| u16::from(digits[at]))
        })
    };
    let highest = (count as i32 - scale as i32 + 3).div_euclid(4) - 1;
    let lowest = -((scale as i32 + 3) / 4);
    let mut powers = lowest..highest + 1;
    while !powers.is_empty() && group(powers.end - 1) == 0 {
        powers.end -= 1;
    }
    while !powers.is_empty() && group(powers.start) == 0 {
        powers.start += 1;
    }
    let weight = if powers.is_empty() { 0 } else { powers.end - 1 };
    let sign = if mantissa < 0 { NEGATIVE } else { 0 };
    bytes.extend_from_slice(&(powers.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&(weight as i16).to_be_bytes());
    bytes.extend_from_slice(&sign.to_be_bytes());
    bytes.extend_from_slice(&(scale as u16).to_be_bytes());
    for power in powers.rev() {
        bytes.extend_from_slice(&group(power).to_be_bytes());
    }
}

/// The value of this type that bytes in its binary format say.
///
/// # Errors
/// 22P03 for bytes that are no such value, 22021 for text that is not UTF-8, 22003 and 22008 for
/// what is out of range here.
pub fn decode_binary(bytes: &[u8], data_type: &DataType) -> Result<Value> {
    let mut reader = Reader(bytes);
    let value = reader.value(data_type)?;
    match reader.0.is_empty() {
        true => Ok(value),
        false => Err(incorrect()),
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or_else(incorrect)?;
        self.0 = rest;
        Ok(*array)
    }

    fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn value(&mut self, data_type: &DataType) -> Result<Value> {
        Ok(match data_type {
            DataType::Boolean => match self.array()? {
                [0] => Value::Boolean(false),
                [1] => Value::Boolean(true),
                _ => return Err(incorrect()),
            },
            DataType::SmallInt => Value::SmallInt(i16::from_be_bytes(self.array()?)),
            DataType::Integer => Value::Integer(self.i32()?),
            DataType::BigInt => Value::BigInt(self.i64()?),
            DataType::Double => Value::Double(f64::from_be_bytes(self.array()?)),
            DataType::Numeric { .. } => self.numeric()?,
            DataType::Char(_) | DataType::VarChar(_) | DataType::Text => {
                let text = self.rest();
                if text.contains(&0) {
                    return Err(not_utf8(&[0]));
                }
                let text = utf8(text)?;
                // Without its blanks, which are there when it is printed.
                Value::Text(match data_type {
                    DataType::Char(_) => text.trim_end_matches(' ').to_owned(),
                    _ => text.to_owned(),
                })
            }
            DataType::Enum(_) => {
                let text = self.rest();
                if text.contains(&0) {
                    return Err(not_utf8(&[0]));
                }
                Value::Text(utf8(text)?.to_owned())
            }
            DataType::Bytea => Value::Bytea(self.rest().to_vec()),
            DataType::Date => Value::Date(date_in_range(self.i32()?)?),
            DataType::Timestamp(_) => Value::Timestamp(timestamp_in_range(self.i64()?)?),
            DataType::TimestampTz(_) => Value::TimestampTz(timestamp_in_range(self.i64()?)?),
            DataType::Time(_) => Value::Time(time_in_range(self.i64()?)?),
            DataType::Uuid => Value::Uuid(self.array()?),
            DataType::Interval(_) => Value::Interval(Interval {
                microseconds: self.i64()?,
                days: self.i32()?,
                months: self.i32()?,
            }),
            DataType::Array(element) => Value::Array(self.elements(element)?),
            DataType::Row(of) => RowValue::value(of, self.fields(of)?),
            DataType::Catalog(catalog) => self.catalog_value(*catalog)?,
        })
    }

    fn catalog_value(&mut self, catalog: CatalogType) -> Result<Value> {
        Ok(match catalog.representation() {
            Representation::Number => Value::BigInt(u32::from_be_bytes(self.array()?).into()),
            Representation::Double => Value::Double(f32::from_be_bytes(self.array()?).into()),
            Representation::Text => {
                let bytes = match catalog {
                    CatalogType::Jsonb | CatalogType::JsonPath => self.with_form(catalog)?,
                    _ => self.rest(),
                };
                if bytes.contains(&0) {
                    return Err(not_utf8(&[0]));
                }
                parse_value(&DataType::Catalog(catalog), utf8(bytes)?)?
            }
            Representation::Vector => {
                let element = catalog.element().unwrap_or(DataType::SmallInt);
                Value::Array(self.elements(&element)?)
            }
            Representation::Object => {
                let oid = u32::from_be_bytes(self.array()?);
                let name = oid.to_string();
                Value::Object(Box::new(ObjectName { oid, name }))
            }
        })
    }

    /// The text of a JSONB or JSONPATH, which the number of its form precedes.
    fn with_form(&mut self, catalog: CatalogType) -> Result<&'a [u8]> {
        match self.array()? {
            [JSONB_FORM] => Ok(self.rest()),
            [form] => {
                let name = catalog.name();
                let message = format!("unsupported {name} version number {form}");
                Err(Error::new(SqlState::PROTOCOL_VIOLATION, message))
            }
        }
    }

    fn elements(&mut self, element: &DataType) -> Result<Vec<Value>> {
        let (dimensions, flags) = (self.i32()?, self.i32()?);
        if dimensions < 0 || !(0..=1).contains(&flags) {
            return Err(incorrect());
        }
        let declared = u32::from_be_bytes(self.array()?);
        let is_text = |oid: u32| {
            let known = parameter_type(oid).ok().flatten();
            known.is_some_and(|data_type| data_type.is_string())
        };
        let own = oid(element);
        let is_read_as_text = is_text(own) || element.enumeration().is_some();
        if declared != own && !(is_text(declared) && is_read_as_text) {
            let message =
                format!("binary data has array element type {declared} instead of expected {own}");
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        match dimensions {
            0 => return Ok(Vec::new()),
            1 => {}
            _ => return Err(Error::unsupported("an array of more than one dimension")),
        }
        let (count, _first) = (self.i32()?, self.i32()?);
        let count = u32::try_from(count).map_err(|_| incorrect())?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.counted(element)?);
        }
        Ok(values)
    }

    /// A value behind its length.
    fn counted(&mut self, data_type: &DataType) -> Result<Value> {
        let length = match self.i32()? {
            -1 => return Ok(Value::Null),
            length => usize::try_from(length).map_err(|_| incorrect())?,
        };
        let (value, rest) = self.0.split_at_checked(length).ok_or_else(incorrect)?;
        self.0 = rest;
        decode_binary(value, data_type)
    }

    /// The fields of a row, as PostgreSQL's `record_recv` reads them.
    fn fields(&mut self, of: &RowType) -> Result<Vec<Value>> {
        if of.is_record() {
            let message = "input of anonymous composite types is not implemented";
            return Err(Error::unsupported(message));
        }
        let mismatch = |message: String| Error::new(SqlState::DATATYPE_MISMATCH, message);
        let (count, expected) = (self.i32()?, of.fields().len());
        if usize::try_from(count) != Ok(expected) {
            let message = format!("wrong number of columns: {count}, expected {expected}");
            return Err(mismatch(message));
        }
        let mut values = Vec::with_capacity(expected);
        for (number, field) in of.fields().iter().enumerate() {
            let (declared, own) = (u32::from_be_bytes(self.array()?), oid(&field.data_type));
            if declared != own {
                return Err(mismatch(format!(
                    "binary data has type {declared} instead of expected {own} in record column {}",
                    number + 1
                )));
            }
            let value = self.counted(&field.data_type)?;
            values.push(match (value, field.data_type.enumeration()) {
                // The label of an enum is one of those that the type is known to have.
                (Value::Text(label), Some(_)) => parse_value(&field.data_type, &label)?,
                (value, _) => value,
            });
        }
        Ok(values)
    }

    fn numeric(&mut self) -> Result<Value> {
        let (count, weight) = (self.u16()?, i32::from(self.u16()? as i16));
        let (sign, scale) = (self.u16()?, self.u16()?);
        let digits = self.rest();
        if digits.len() != 2 * usize::from(count) {
            return Err(incorrect());
        }
        if scale > SCALE_MAX {
            return Err(incorrect());
        }
        let sign = match sign {
            0 => "",
            NEGATIVE => "-",
            NAN => return Ok(Number::NaN.into()),
            INFINITY => return Ok(Number::Infinity.into()),
            NEGATIVE_INFINITY => return Ok(Number::NegativeInfinity.into()),
            _ => return Err(incorrect()),
        };
        // The digits without a point; the first group is at the weight.
        let mut text = String::with_capacity(4 * usize::from(count) + 16);
        text.push_str(sign);
        text.push('0');
        for digit in digits.as_chunks::<2>().0 {
            let digit = u16::from_be_bytes(*digit);
            if digit >= 10_000 {
                return Err(incorrect());
            }
            let _ = write!(text, "{digit:04}");
        }
        // Places that the digits have behind the point: zeros fill them up to the scale, and what
        // is beyond that is cut off, as in PostgreSQL.
        let places = 4 * (i32::from(count) - 1 - weight);
        let missing = i32::from(scale) - places;
        match usize::try_from(missing) {
            Ok(missing) => text.extend(std::iter::repeat_n('0', missing)),
            Err(_) => text.truncate(text.len().saturating_sub(missing.unsigned_abs() as usize)),
        }
        if text.len() <= sign.len() {
            text = "0".to_owned();
        }
        let _ = write!(text, "e-{scale}");
        Ok(Number::parse(&text)?.into())
    }
}

#[cold]
fn incorrect() -> Error {
    let message = "incorrect binary data format";
    Error::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_storage::types::Style;

    use crate::format::{TYPES, decode_text};

    fn hex(text: &str) -> Vec<u8> {
        let pairs = text.as_bytes().as_chunks::<2>().0.iter();
        let digit = |digit: u8| char::from(digit).to_digit(16).expect("a digit") as u8;
        pairs
            .map(|[high, low]| digit(*high) << 4 | digit(*low))
            .collect()
    }

    /// What PostgreSQL 15 sends: `SELECT encode(record_send(ROW(7, NULL, ARRAY[1])::pair), 'hex')`.
    #[test]
    fn rows_are_written_and_read_as_postgresql_does() {
        let described =
            "row 20000 20001 4:pair 4:pair 1:a 7:integer 1:b 4:text 1:c 9:integer[] end";
        let pair: DataType = described.parse().expect("a type");
        for (text, bytes) in [
            (
                "(7,,{1})",
                "0000000300000017000000040000000700000019ffffffff000003ef0000001c\
                 00000001000000000000001700000001000000010000000400000001",
            ),
            (
                "(-1,\"a b\",)",
                "000000030000001700000004ffffffff0000001900000003612062000003efffffffff",
            ),
        ] {
            let value = decode_text(text.as_bytes(), &pair, &Style::default()).expect(text);
            let mut sent = Vec::new();
            encode_binary(&value, &pair, &mut sent);
            assert_eq!(sent, hex(bytes), "{text}");
            assert_eq!(decode_binary(&sent, &pair), Ok(value));
            for end in 0..sent.len() {
                assert!(decode_binary(&sent[..end], &pair).is_err());
            }
        }
        let few = decode_binary(&hex("00000001000000170000000400000007"), &pair);
        assert_eq!(
            few.expect_err("too few").state(),
            SqlState::DATATYPE_MISMATCH
        );
    }

    /// What PostgreSQL 15 sends: `SELECT encode(numeric_send(12345.678), 'hex')` and its like.
    #[test]
    fn values_are_written_as_postgresql_sends_them() {
        let integers = || DataType::array(DataType::Integer);
        for (data_type, text, bytes) in [
            (
                DataType::NUMERIC,
                "12345.678",
                "0003000100000003000109291a7c",
            ),
            (DataType::NUMERIC, "0", "0000000000000000"),
            (DataType::NUMERIC, "0.00", "0000000000000002"),
            (DataType::NUMERIC, "-0.0001", "0001ffff400000040001"),
            (DataType::NUMERIC, "10000", "00010001000000000001"),
            (
                DataType::NUMERIC,
                "100000000.5",
                "00040002000000010001000000001388",
            ),
            (
                DataType::NUMERIC,
                "99999999999999999999999999999.99",
                "00090007000000020009270f270f270f270f270f270f270f26ac",
            ),
            (
                DataType::NUMERIC,
                "0.00000000000000000001",
                "0001fffb000000140001",
            ),
            (DataType::NUMERIC, "-1", "00010000400000000001"),
            (DataType::NUMERIC, "NaN", "00000000c0000000"),
            (DataType::NUMERIC, "Infinity", "00000000d0000020"),
            (DataType::NUMERIC, "-Infinity", "00000000f0000020"),
            (DataType::NUMERIC, "1e40", "0001000a000000000001"),
            (DataType::NUMERIC, "1e-70", "0001ffee000000460064"),
            (
                DataType::NUMERIC,
                "-12345678901234567890123456789012345678901234.5",
                "000c000a4000000104d2162e23340d801ed204d2162e23340d801ed204d21388",
            ),
            (DataType::TIME, "02:03:04.5", "00000001b8268720"),
            (
                DataType::INTERVAL,
                "1 year 2 mons 3 days 04:05:06.789",
                "000000036c97ca88000000030000000e",
            ),
            (DataType::Date, "2026-11-23", "0000265f"),
            (
                DataType::TIMESTAMPTZ,
                "2026-11-23 12:00:00+00",
                "000303ef1a185000",
            ),
            (
                integers(),
                "{1,NULL,3}",
                "00000001000000010000001700000003000000010000000400000001ffffffff0000000400000003",
            ),
            (
                DataType::array(DataType::Text),
                "{}",
                "000000000000000000000019",
            ),
            (DataType::Char(4), "ab", "61622020"),
            (DataType::Double, "-0.5", "bfe0000000000000"),
            (DataType::Boolean, "t", "01"),
            (DataType::SmallInt, "-2", "fffe"),
            (DataType::Bytea, "\\x00ff", "00ff"),
            (DataType::OID, "4294967295", "ffffffff"),
            (DataType::NAME, "pg_class", "70675f636c617373"),
            (DataType::Catalog(CatalogType::Char), "r", "72"),
            (DataType::Catalog(CatalogType::Real), "-1", "bf800000"),
            (DataType::JSON, "[1 ,2]", "5b31202c325d"),
            (DataType::JSONB, "[1, 2]", "015b312c20325d"),
            (
                DataType::Catalog(CatalogType::Int2Vector),
                "1 3",
                "000000010000000000000015000000020000000000000002000100000002\
                 0003",
            ),
            (
                DataType::array(DataType::OID),
                "{26}",
                "00000001000000000000001a0000000100000001000000040000001a",
            ),
        ] {
            let value = decode_text(text.as_bytes(), &data_type, &Style::default()).expect(text);
            let mut written = Vec::new();
            encode_binary(&value, &data_type, &mut written);
            assert_eq!(written, hex(bytes), "{text}");
            if !matches!(data_type, DataType::Char(_)) {
                assert_eq!(decode_binary(&written, &data_type), Ok(value), "{text}");
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_infinities_come_back() {
        let refused = |data_type: &DataType, bytes: &[u8]| {
            let error = decode_binary(bytes, data_type).expect_err("it is out of range");
            error.state().as_str().to_owned()
        };
        // A day before the first one, and a microsecond.
        assert_eq!(
            refused(&DataType::Date, &(-2_451_546_i32).to_be_bytes()),
            "22008"
        );
        let early = (i64::MIN + 1).to_be_bytes();
        assert_eq!(refused(&DataType::TIMESTAMP, &early), "22008");
        assert_eq!(refused(&DataType::TIMESTAMPTZ, &early), "22008");
        for text in ["infinity", "-infinity"] {
            for data_type in [DataType::Date, DataType::TIMESTAMP, DataType::TIMESTAMPTZ] {
                let value =
                    decode_text(text.as_bytes(), &data_type, &Style::default()).expect(text);
                let mut bytes = Vec::new();
                encode_binary(&value, &data_type, &mut bytes);
                assert_eq!(decode_binary(&bytes, &data_type), Ok(value), "{text}");
            }
        }
        assert_eq!(
            refused(&DataType::NUMERIC, &hex("0000000000004000")),
            "22P03"
        );
        let flagged = hex("000000000000000200000017");
        assert_eq!(
            refused(&DataType::array(DataType::Integer), &flagged),
            "22P03"
        );
        let negative = hex("ffffffff0000000000000017");
        assert_eq!(
            refused(&DataType::array(DataType::Integer), &negative),
            "22P03"
        );
    }

    #[test]
    fn a_wide_char_has_its_blanks() {
        for length in [1, 70_000] {
            let (value, data_type) = (Value::Text("x".to_owned()), DataType::Char(length));
            let (mut binary, mut text) = (Vec::new(), Vec::new());
            encode_binary(&value, &data_type, &mut binary);
            crate::format::encode_text(&value, &data_type, &Style::default(), &mut text);
            assert_eq!(
                (binary.len(), text.len()),
                (length as usize, length as usize)
            );
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic() {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u8
        };
        let types = TYPES.iter().map(|(data_type, ..)| data_type.clone());
        let arrays = TYPES.iter().map(|(it, ..)| DataType::array(it.clone()));
        let catalogs = CatalogType::ALL.map(DataType::Catalog);
        let types: Vec<DataType> = types.chain(arrays).chain(catalogs).collect();
        for round in 0..20_000 {
            let data_type = &types[round % types.len()];
            let length = usize::from(random() % 40);
            // Small numbers are likelier to mean something.
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    if random() % 3 == 0 {
                        random()
                    } else {
                        random() % 3
                    }
                })
                .collect();
            if let Ok(value) = decode_binary(&bytes, data_type) {
                let mut written = Vec::new();
                encode_binary(&value, data_type, &mut written);
                let again = decode_binary(&written, data_type).expect("it was just written");
                // NaN is no equal of itself.
                assert_eq!(format!("{again:?}"), format!("{value:?}"));
            }
            let _ = decode_text(&bytes, data_type, &Style::default());
        }
        let many = hex("0000000100000000000000177fffffff00000001");
        let huge = decode_binary(&many, &DataType::array(DataType::Integer));
        assert!(huge.is_err(), "a count without elements takes no memory");
        for (data_type, bytes) in [
            (DataType::Integer, &b"123"[..]),
            (DataType::Boolean, b"\x02"),
            (DataType::NUMERIC, b"\0\x01\0\0\0\0\0\0\x27\x10"),
        ] {
            let error = decode_binary(bytes, &data_type).expect_err("it is malformed");
            assert_eq!(error.state().as_str(), "22P03", "{data_type:?}");
        }
    }
}
