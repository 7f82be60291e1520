//! Values as bytes that name their own types: for results and arguments, which may have types that
//! no column has. Rows of tables have a shorter form ([`crate::layout`]).
//!
//! Numbers are little-endian; a *length* takes 4 bytes.
//!
//! | form (1) | value |
//! |---|---|
//! | 0 | NULL |
//! | 1, 2 | FALSE, TRUE |
//! | 3, 4, 5 | SMALLINT (2), INTEGER (4), BIGINT (8) |
//! | 6 | NUMERIC: the scale (1) and the mantissa (16) |
//! | 7 | DOUBLE PRECISION (8) |
//! | 8, 9 | text in UTF-8, BYTEA: the length and the bytes |
//! | 10 | DATE: days (4) |
//! | 11, 12 | TIMESTAMP, TIMESTAMP WITH TIME ZONE: microseconds (8) |
//! | 13 | UUID (16) |
//! | 14 | INTERVAL: months (4), days (4), microseconds (8) |
//! | 15 | an array: the number of its elements (4), which follow |
//! | 16 | a named object: its number (4), and the length and the bytes of its name |
//! | 17 | TIME: microseconds (8) |
//! | 18 | any other NUMERIC: the length and the bytes, as [`Number`] has them |
//! | 19 | a row: the number of its fields (4), which follow |
//!
//! A label of an enum is a text: that is read as one of the enum where its type is known. So a row has
//! fields of types that their values have by themselves until its type is known.

use kiln_platform::sync::Arc;

use super::{DataType, Decimal, Interval, Number, ObjectName, RowField, RowType, RowValue, Value};
use crate::bytes::{Reader, append_string, corrupt, read_string, read_text};
use crate::error::Result;

/// Arrays are read as far as they are nested so deep. A parameter has no type that is nested
/// deeper, so what is deeper was never written; reading it would take as much of the stack.
pub const DEPTH_MAX: usize = 32;

/// The forms of values, by name where others write them too.
pub mod form {
    /// NULL.
    pub const NULL: u8 = 0;
    /// FALSE.
    pub const FALSE: u8 = 1;
    /// TRUE.
    pub const TRUE: u8 = 2;
    /// BIGINT.
    pub const BIGINT: u8 = 5;
    /// NUMERIC.
    pub const NUMERIC: u8 = 6;
    /// A NUMERIC that no slot has room for.
    pub const LONG_NUMERIC: u8 = 18;
    /// DOUBLE PRECISION.
    pub const DOUBLE: u8 = 7;
    /// A text.
    pub const TEXT: u8 = 8;
    /// TIMESTAMP.
    pub const TIMESTAMP: u8 = 11;
    /// An array.
    pub const ARRAY: u8 = 15;
}

impl Value {
    /// Appends the form of the value, and what the form has.
    pub fn append_to(&self, target: &mut Vec<u8>) {
        let form = match self {
            Value::Null => form::NULL,
            Value::Boolean(false) => form::FALSE,
            Value::Boolean(true) => form::TRUE,
            Value::SmallInt(_) => 3,
            Value::Integer(_) => 4,
            Value::BigInt(_) => form::BIGINT,
            Value::Numeric(_) => form::NUMERIC,
            Value::LongNumeric(_) => form::LONG_NUMERIC,
            Value::Double(_) => form::DOUBLE,
            Value::Text(_) | Value::Enum(_) => form::TEXT,
            Value::Bytea(_) => 9,
            Value::Date(_) => 10,
            Value::Timestamp(_) => form::TIMESTAMP,
            Value::TimestampTz(_) => 12,
            Value::Uuid(_) => 13,
            Value::Interval(_) => 14,
            Value::Array(_) => form::ARRAY,
            Value::Object(_) => 16,
            Value::Time(_) => 17,
            Value::Row(_) => 19,
        };
        target.push(form);
        match self {
            Value::Null | Value::Boolean(_) => {}
            Value::SmallInt(value) => target.extend_from_slice(&value.to_le_bytes()),
            Value::Integer(value) | Value::Date(value) => {
                target.extend_from_slice(&value.to_le_bytes());
            }
            Value::BigInt(value)
            | Value::Timestamp(value)
            | Value::TimestampTz(value)
            | Value::Time(value) => {
                target.extend_from_slice(&value.to_le_bytes());
            }
            Value::Numeric(value) => {
                target.push(value.scale());
                target.extend_from_slice(&value.mantissa().to_le_bytes());
            }
            Value::LongNumeric(number) => {
                let mut bytes = Vec::new();
                number.append_bytes_to(&mut bytes);
                append_string(target, &bytes);
            }
            Value::Double(value) => target.extend_from_slice(&value.to_bits().to_le_bytes()),
            Value::Text(text) => append_string(target, text.as_bytes()),
            Value::Enum(value) => append_string(target, value.label().as_bytes()),
            Value::Bytea(bytes) => append_string(target, bytes),
            Value::Uuid(bytes) => target.extend_from_slice(bytes),
            Value::Interval(interval) => {
                target.extend_from_slice(&interval.months.to_le_bytes());
                target.extend_from_slice(&interval.days.to_le_bytes());
                target.extend_from_slice(&interval.microseconds.to_le_bytes());
            }
            Value::Array(values) => {
                target.extend_from_slice(&(values.len() as u32).to_le_bytes());
                values.iter().for_each(|value| value.append_to(target));
            }
            Value::Row(row) => {
                target.extend_from_slice(&(row.fields.len() as u32).to_le_bytes());
                row.fields.iter().for_each(|value| value.append_to(target));
            }
            Value::Object(object) => {
                target.extend_from_slice(&object.oid.to_le_bytes());
                append_string(target, object.name.as_bytes());
            }
        }
    }

    /// Reads a value that [`Value::append_to`] has appended. What it allocates memory for has at
    /// least one of the bytes.
    ///
    /// # Errors
    /// XX001 for other bytes.
    pub fn read_from(reader: &mut Reader<'_>) -> Result<Value> {
        read(reader, 0)
    }
}

fn read(reader: &mut Reader<'_>, depth: usize) -> Result<Value> {
    Ok(match reader.number(1)? as u8 {
        form::NULL => Value::Null,
        form::FALSE => Value::Boolean(false),
        form::TRUE => Value::Boolean(true),
        3 => Value::SmallInt(reader.number(2)? as i16),
        4 => Value::Integer(reader.number(4)? as i32),
        form::BIGINT => Value::BigInt(reader.number(8)? as i64),
        form::NUMERIC => {
            let scale = reader.number(1)? as u8;
            let (low, high) = (reader.number(8)?, reader.number(8)?);
            let mantissa = (u128::from(high) << 64 | u128::from(low)) as i128;
            let decimal = Decimal::new(mantissa, scale);
            Value::Numeric(decimal.map_err(|_| corrupt("no NUMERIC has such digits"))?)
        }
        form::DOUBLE => Value::Double(f64::from_bits(reader.number(8)?)),
        form::TEXT => Value::Text(read_text(reader)?.to_owned()),
        9 => Value::Bytea(read_string(reader)?.to_vec()),
        10 => Value::Date(reader.number(4)? as i32),
        form::TIMESTAMP => Value::Timestamp(reader.number(8)? as i64),
        12 => Value::TimestampTz(reader.number(8)? as i64),
        13 => {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(reader.take(16)?);
            Value::Uuid(bytes)
        }
        14 => Value::Interval(Interval::new(
            reader.number(4)? as i32,
            reader.number(4)? as i32,
            reader.number(8)? as i64,
        )),
        form::ARRAY if depth < DEPTH_MAX => {
            // Nothing is reserved for a number of elements that was read: there may be fewer bytes
            // than that.
            let mut values = Vec::new();
            for _ in 0..reader.number(4)? {
                values.push(read(reader, depth + 1)?);
            }
            Value::Array(values)
        }
        16 => Value::Object(Box::new(ObjectName {
            oid: reader.number(4)? as u32,
            name: read_text(reader)?.to_owned(),
        })),
        17 => Value::Time(reader.number(8)? as i64),
        19 if depth < DEPTH_MAX => {
            let mut values = Vec::new();
            for _ in 0..reader.number(4)? {
                values.push(read(reader, depth + 1)?);
            }
            row(values)?
        }
        form::LONG_NUMERIC => {
            let number = Number::from_bytes(read_string(reader)?);
            let number = number.filter(|number| number.to_decimal().is_none());
            Value::LongNumeric(Box::new(
                number.ok_or_else(|| corrupt("no NUMERIC has such digits"))?,
            ))
        }
        form => return Err(corrupt(format!("no value has the form {form}"))),
    })
}

/// A row of these values, whose types are those that they have by themselves.
fn row(values: Vec<Value>) -> Result<Value> {
    let fields = values.iter().enumerate().map(|(number, value)| RowField {
        name: format!("f{}", number + 1),
        data_type: value.data_type().unwrap_or(DataType::Text),
    });
    let of = RowType::record(fields.collect());
    let of = of.map_err(|_| corrupt("no row has so many fields"))?;
    Ok(RowValue::value(&Arc::new(of), values))
}
