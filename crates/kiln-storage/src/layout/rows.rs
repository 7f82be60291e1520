//! A row's bytes from its values, where there is no row in memory: see [`values`](super::values) for the form.

use super::RowLayout;
use super::values::{is_number, is_possible};
use crate::error::{Error, Result};
use crate::schema::{Column, ColumnId};
use crate::slot::Slot;
use crate::types::{DataType, Value};

impl RowLayout {
    /// Appends the row that has these values, in the order of the columns, of which `definitions` are those of this layout. The
    /// bytes of a NULL are zeros. What is appended can be read; of a row that cannot be, nothing is appended.
    ///
    /// # Errors
    /// XX000 for values that no row of these columns has, and for a row number where there is none, or none where there is one.
    pub(crate) fn append_row(
        &self,
        definitions: &[Column],
        values: &[Value],
        row_number: Option<i64>,
        target: &mut Vec<u8>,
    ) -> Result<()> {
        let start = target.len();
        let appended = self.append_values(definitions, values, row_number, target);
        if appended.is_err() {
            target.truncate(start);
        }
        appended
    }

    fn append_values(
        &self,
        definitions: &[Column],
        values: &[Value],
        row_number: Option<i64>,
        target: &mut Vec<u8>,
    ) -> Result<()> {
        let (count, expected) = (values.len(), self.columns().len());
        if count != expected || row_number.is_some() != self.row_number.is_some() {
            return Err(Error::internal(format!(
                "no row of {expected} columns has {count} values and the row number {row_number:?}"
            )));
        }
        if let Some(number) = row_number {
            target.extend_from_slice(&number.to_le_bytes());
        }
        let format = &self.values;
        let refuse = |column: ColumnId| {
            let Column {
                name, data_type, ..
            } = &definitions[column.index()];
            let value = values[column.index()].type_name();
            Error::internal(format!(
                "column \"{name}\" of type {data_type} has no such value of type {value}"
            ))
        };
        for column in &format.fixed {
            let (access, value) = (self.column(*column), &values[column.index()]);
            let bytes = access.storage.shape().1;
            match value {
                Value::Null if access.is_nullable() => target.resize(target.len() + bytes, 0),
                value => {
                    let words = fixed_words(&definitions[column.index()].data_type, value);
                    let (low, high) = words.ok_or_else(|| refuse(*column))?;
                    let words = [low.to_le_bytes(), high.to_le_bytes()];
                    target.extend_from_slice(&words.as_flattened()[..bytes]);
                }
            }
        }
        let mut nulls = 0_u128;
        for (at, column) in format.nullable.iter().enumerate() {
            nulls |= u128::from(values[column.index()].is_null()) << at;
        }
        target.extend_from_slice(&nulls.to_le_bytes()[..format.nullable.len().div_ceil(8)]);
        for (column, access) in &format.strings {
            let value = &values[column.index()];
            if value.is_null() && access.is_nullable() {
                continue;
            }
            let bytes = string_bytes(&definitions[column.index()].data_type, value);
            let bytes = bytes.ok_or_else(|| refuse(*column))?;
            let length = u32::try_from(bytes.len()).map_err(|_| refuse(*column))?;
            target.extend_from_slice(&length.to_le_bytes());
            target.extend_from_slice(bytes);
        }
        Ok(())
    }
}

/// The words of a fixed-size value, of which a row has the first bytes; `None` if it cannot be of this type.
fn fixed_words(data_type: &DataType, value: &Value) -> Option<(u64, u64)> {
    let word = match (data_type, value) {
        (DataType::Boolean, Value::Boolean(value)) => u64::from(*value),
        (DataType::SmallInt, Value::SmallInt(value)) => *value as u64,
        (DataType::Integer, Value::Integer(value)) | (DataType::Date, Value::Date(value)) => {
            *value as u64
        }
        (DataType::BigInt, Value::BigInt(value))
        | (DataType::Timestamp, Value::Timestamp(value))
        | (DataType::TimestampTz, Value::TimestampTz(value)) => *value as u64,
        (DataType::Double, Value::Double(value)) => value.to_bits(),
        (DataType::Numeric { precision_scale }, Value::Numeric(value)) => {
            // In four or eight bytes is the mantissa, which the lower word begins with.
            let slot = Slot::from_decimal(*value);
            return is_number(slot, *precision_scale).then(|| slot.words());
        }
        _ => return None,
    };
    Some((word, 0))
}

/// The bytes of a byte string; `None` if it cannot be of this type.
fn string_bytes<'a>(data_type: &DataType, value: &'a Value) -> Option<&'a [u8]> {
    let bytes = match (data_type, value) {
        (DataType::Char(_) | DataType::VarChar(_) | DataType::Text, Value::Text(text)) => {
            text.as_bytes()
        }
        (DataType::Bytea, Value::Bytea(bytes)) => bytes,
        (DataType::Uuid, Value::Uuid(bytes)) => bytes,
        _ => return None,
    };
    is_possible(bytes, data_type).then_some(bytes)
}
