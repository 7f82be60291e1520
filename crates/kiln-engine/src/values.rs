//! Rust values as arguments and keys.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::Column;
use kiln_storage::types::datetime::round_seconds;
use kiln_storage::types::{DataType, RowValue, Value, fit_text, rescale_numeric};

/// Rust types that are lists of values: tuples of up to eight, arrays, slices and vectors of
/// [`Value`].
pub trait IntoValues {
    /// The values, in order.
    fn into_values(self) -> Vec<Value>;
}

impl IntoValues for Vec<Value> {
    fn into_values(self) -> Vec<Value> {
        self
    }
}

impl IntoValues for &[Value] {
    fn into_values(self) -> Vec<Value> {
        self.to_vec()
    }
}

impl IntoValues for &Vec<Value> {
    fn into_values(self) -> Vec<Value> {
        self.clone()
    }
}

impl<const N: usize> IntoValues for [Value; N] {
    fn into_values(self) -> Vec<Value> {
        self.into()
    }
}

impl<const N: usize> IntoValues for &[Value; N] {
    fn into_values(self) -> Vec<Value> {
        self.to_vec()
    }
}

impl IntoValues for () {
    fn into_values(self) -> Vec<Value> {
        Vec::new()
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: Into<Value>),+> IntoValues for ($($name,)+) {
            #[expect(non_snake_case, reason = "each value is named as its type parameter")]
            fn into_values(self) -> Vec<Value> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);

/// Whether a value can be stored in a column as it is: of its type, NULL only where that is
/// allowed, within its length. `false` only means that [`fit`] must look.
#[inline]
pub(crate) fn fits(value: &Value, column: &Column) -> bool {
    match (value, &column.data_type) {
        (Value::Null, _) => !column.not_null,
        (Value::BigInt(_), DataType::BigInt)
        | (Value::Integer(_), DataType::Integer | DataType::BigInt)
        | (Value::SmallInt(_), DataType::SmallInt | DataType::Integer | DataType::BigInt)
        | (Value::Boolean(_), DataType::Boolean)
        | (Value::Double(_), DataType::Double)
        | (Value::Text(_), DataType::Text | DataType::VarChar(None))
        | (Value::Bytea(_), DataType::Bytea)
        | (Value::Date(_), DataType::Date)
        | (Value::Timestamp(_), DataType::Timestamp(None))
        | (Value::TimestampTz(_), DataType::TimestampTz(None))
        | (Value::Time(_), DataType::Time(None))
        | (Value::Uuid(_), DataType::Uuid)
        | (Value::Interval(_), DataType::Interval(_)) => true,
        (Value::Enum(value), DataType::Enum(of)) => {
            value.of == *of && of.label(value.number).is_some()
        }
        // As many bytes as characters at least.
        (Value::Text(text), DataType::VarChar(Some(length))) => text.len() <= *length as usize,
        (Value::Text(text), DataType::Char(length)) => {
            text.len() <= *length as usize && !text.ends_with(' ')
        }
        _ => false,
    }
}

/// The value as it is stored in a column: converted as by an assignment, rounded to the column's
/// scale, without a CHAR's trailing blanks.
///
/// # Errors
/// 23502 for NULL where that is refused, 22001 for a text too long, 22003 for a number out of
/// range, 42804 and others for a value of another type.
pub(crate) fn fit(value: &Value, column: &Column, table: &str) -> Result<Value> {
    let located = |error: Error| {
        if error.detail().is_some() {
            return error;
        }
        error.with_detail(format!(
            "This is for column \"{}\" of \"{table}\".",
            column.name
        ))
    };
    if value.is_null() {
        if column.not_null {
            let (table, name) = (name_in_schema(table), &column.name);
            return Err(Error::new(
                SqlState::NOT_NULL_VIOLATION,
                format!(
                    "null value in column \"{name}\" of relation \"{table}\" violates \
                     not-null constraint"
                ),
            ));
        }
        return Ok(Value::Null);
    }
    fit_value(value, &column.data_type).map_err(located)
}

/// A value that is not NULL as one of a column's type.
fn fit_value(value: &Value, data_type: &DataType) -> Result<Value> {
    let converted = match (value, data_type) {
        // A text for a column of texts keeps its blanks until its length was looked at.
        (Value::Text(text), _) if data_type.is_string() => Value::Text(text.clone()),
        (Value::Numeric(number), DataType::Double) => Value::Double(number.to_f64()),
        (Value::Numeric(number), DataType::Numeric { .. }) => Value::Numeric(*number),
        (Value::LongNumeric(_), DataType::Numeric { .. }) => value.clone(),
        (Value::Array(elements), DataType::Array(element)) => {
            let elements = elements.iter().map(|value| match value {
                Value::Null => Ok(Value::Null),
                value => fit_value(value, element),
            });
            return Ok(Value::Array(elements.collect::<Result<_>>()?));
        }
        (Value::Row(row), DataType::Row(of)) if row.fields.len() == of.fields().len() => {
            let pairs = row.fields.iter().zip(of.fields());
            let fields = pairs.map(|(value, field)| match value {
                Value::Null => Ok(Value::Null),
                value => fit_value(value, &field.data_type),
            });
            return Ok(RowValue::value(of, fields.collect::<Result<_>>()?));
        }
        (value, _) => kiln_procedure::arguments::convert(value.clone(), data_type)?,
    };
    Ok(match (converted, data_type) {
        (
            number @ (Value::Numeric(_) | Value::LongNumeric(_)),
            DataType::Numeric {
                precision_scale: Some((precision, scale)),
            },
        ) => rescale_numeric(&number, *precision, *scale)?,
        (Value::Text(text), data_type) => {
            Value::Text(fit_text(&text, data_type, false)?.into_owned())
        }
        (Value::Timestamp(at), _) => {
            Value::Timestamp(round_seconds(at, data_type.digits_of_seconds()))
        }
        (Value::TimestampTz(at), _) => {
            Value::TimestampTz(round_seconds(at, data_type.digits_of_seconds()))
        }
        (Value::Interval(interval), _) => {
            Value::Interval(interval.rounded(data_type.digits_of_seconds()))
        }
        (Value::Time(at), _) => Value::Time(round_seconds(at, data_type.digits_of_seconds())),
        (converted, _) => converted,
    })
}
