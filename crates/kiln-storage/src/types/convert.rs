//! Rust values to and from [`Value`].

use super::datetime::Interval;
use super::{Decimal, Number, Value};
use crate::error::{Error, Result, SqlState};

macro_rules! into_value {
    ($($rust:ty => |$value:ident| $convert:expr;)*) => {
        $(impl From<$rust> for Value {
            fn from($value: $rust) -> Value {
                $convert
            }
        })*
    };
}

into_value! {
    bool => |value| Value::Boolean(value);
    i16 => |value| Value::SmallInt(value);
    i32 => |value| Value::Integer(value);
    i64 => |value| Value::BigInt(value);
    f64 => |value| Value::Double(value);
    Decimal => |value| Value::Numeric(value);
    Number => |value| match value.to_decimal() {
        Some(decimal) => Value::Numeric(decimal),
        None => Value::LongNumeric(Box::new(value)),
    };
    &str => |value| Value::Text(value.to_string());
    String => |value| Value::Text(value);
    Vec<u8> => |value| Value::Bytea(value);
    &[u8] => |value| Value::Bytea(value.to_vec());
    [u8; 16] => |value| Value::Uuid(value);
    Interval => |value| Value::Interval(value);
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// Types whose vectors are arrays; bytes are not among them, as `Vec<u8>` is BYTEA.
trait ArrayElement {}

macro_rules! array_elements {
    ($($rust:ty),*) => { $(impl ArrayElement for $rust {})* };
}

array_elements!(
    bool,
    i16,
    i32,
    i64,
    f64,
    Decimal,
    Number,
    &str,
    String,
    Vec<u8>,
    [u8; 16],
    Interval,
    Value
);

impl<T> ArrayElement for Option<T> {}

impl<T: Into<Value> + ArrayElement> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::Array(values.into_iter().map(Into::into).collect())
    }
}

/// Rust types that a [`Value`] converts to.
pub trait FromValue: Sized {
    /// The Rust value. Integers widen, and integers widen to [`Decimal`] and [`Number`]; nothing
    /// else converts. A NUMERIC of more than 33 digits, NaN or infinite is a [`Number`] alone.
    ///
    /// # Errors
    /// 42804 that says what was expected and what came; 22004 for NULL where `Self` is no
    /// [`Option`].
    fn from_value(value: Value) -> Result<Self>;
}

#[cold]
fn mismatch(expected: &str, value: &Value) -> Error {
    if value.is_null() {
        return Error::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            format!("expected a value of type {expected} but got NULL"),
        )
        .with_hint("Convert to an Option where NULL can occur.");
    }
    if let (Value::LongNumeric(number), "numeric") = (value, expected) {
        let message = format!("{number} is no Decimal: it has too many digits, or none");
        return Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
            .with_hint("Convert to a Number, which every NUMERIC is.");
    }
    Error::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "expected a value of type {expected} but got {} ({value})",
            value.type_name()
        ),
    )
}

macro_rules! from_value {
    ($($rust:ty, $expected:literal: $($pattern:pat => $convert:expr),+;)*) => {
        $(impl FromValue for $rust {
            fn from_value(value: Value) -> Result<$rust> {
                match value {
                    $($pattern => Ok($convert),)+
                    other => Err(mismatch($expected, &other)),
                }
            }
        })*
    };
}

from_value! {
    bool, "boolean": Value::Boolean(value) => value;
    i16, "smallint": Value::SmallInt(value) => value;
    i32, "integer":
        Value::Integer(value) => value,
        Value::SmallInt(value) => i32::from(value);
    i64, "bigint":
        Value::BigInt(value) => value,
        Value::Integer(value) => i64::from(value),
        Value::SmallInt(value) => i64::from(value);
    f64, "double precision": Value::Double(value) => value;
    Decimal, "numeric":
        Value::Numeric(value) => value,
        Value::BigInt(value) => Decimal::from(value),
        Value::Integer(value) => Decimal::from(value),
        Value::SmallInt(value) => Decimal::from(value);
    Number, "numeric":
        Value::LongNumeric(value) => *value,
        Value::Numeric(value) => Number::from(value),
        Value::BigInt(value) => Number::from(value),
        Value::Integer(value) => Number::from(i64::from(value)),
        Value::SmallInt(value) => Number::from(i64::from(value));
    String, "text":
        Value::Text(value) => value,
        Value::Enum(value) => value.label().to_owned();
    Vec<u8>, "bytea": Value::Bytea(value) => value;
    [u8; 16], "uuid": Value::Uuid(value) => value;
    Interval, "interval": Value::Interval(value) => value;
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Value> {
        Ok(value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Option<T>> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl<T: FromValue + ArrayElement> FromValue for Vec<T> {
    fn from_value(value: Value) -> Result<Vec<T>> {
        match value {
            Value::Array(values) => values.into_iter().map(T::from_value).collect(),
            other => Err(mismatch("array", &other)),
        }
    }
}

/// Rust types that a result row converts to: tuples of up to eight columns, and `Vec<Value>`.
pub trait FromRow: Sized {
    /// The row, column by column.
    ///
    /// # Errors
    /// 42804 when the number of columns or a column's type differs; 22004 for an unexpected NULL.
    fn from_row(row: Vec<Value>) -> Result<Self>;
}

impl FromRow for Vec<Value> {
    fn from_row(row: Vec<Value>) -> Result<Vec<Value>> {
        Ok(row)
    }
}

impl FromRow for () {
    fn from_row(row: Vec<Value>) -> Result<()> {
        let [] = take_columns(row)?;
        Ok(())
    }
}

fn take_columns<const N: usize>(row: Vec<Value>) -> Result<[Value; N]> {
    row.try_into().map_err(|row: Vec<Value>| {
        Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!("expected a row of {N} columns but got {}", row.len()),
        )
    })
}

macro_rules! from_row {
    ($($name:ident: $number:literal),+) => {
        impl<$($name: FromValue),+> FromRow for ($($name,)+) {
            #[expect(non_snake_case, reason = "each column is named as its type parameter")]
            fn from_row(row: Vec<Value>) -> Result<Self> {
                let [$($name),+] = take_columns(row)?;
                Ok(($($name::from_value($name).map_err(|error| in_column(&error, $number))?,)+))
            }
        }
    };
}

/// The error with the column that it is about, counted from 1.
#[cold]
fn in_column(error: &Error, number: u32) -> Error {
    let named = Error::new(
        error.state(),
        format!("column {number}: {}", error.message()),
    );
    match error.hint() {
        Some(hint) => named.with_hint(hint),
        None => named,
    }
}

from_row!(A: 1);
from_row!(A: 1, B: 2);
from_row!(A: 1, B: 2, C: 3);
from_row!(A: 1, B: 2, C: 3, D: 4);
from_row!(A: 1, B: 2, C: 3, D: 4, E: 5);
from_row!(A: 1, B: 2, C: 3, D: 4, E: 5, F: 6);
from_row!(A: 1, B: 2, C: 3, D: 4, E: 5, F: 6, G: 7);
from_row!(A: 1, B: 2, C: 3, D: 4, E: 5, F: 6, G: 7, H: 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_values_come_back_as_they_went() {
        fn there_and_back<T: Clone + PartialEq + std::fmt::Debug + Into<Value> + FromValue>(
            value: T,
        ) {
            assert_eq!(T::from_value(value.clone().into()), Ok(value));
        }
        there_and_back(true);
        there_and_back(-7_i16);
        there_and_back(7_i32);
        there_and_back(i64::MAX);
        there_and_back(0.1);
        there_and_back("text".to_string());
        there_and_back(vec![0_u8, 255]);
        there_and_back([7_u8; 16]);
        there_and_back(Decimal::from(12));
        there_and_back(Number::NaN);
        there_and_back("1e40".parse::<Number>().expect("a number"));
        there_and_back(Some(5_i32));
        there_and_back(None::<String>);
        there_and_back(vec![1_i32, 2, 3]);
        there_and_back(vec![Some("a".to_string()), None]);
        assert_eq!(Value::from("text"), Value::Text("text".to_string()));
    }

    #[test]
    fn integers_widen_and_nothing_else_converts() {
        assert_eq!(i64::from_value(Value::SmallInt(3)), Ok(3));
        let long: Number = "1e40".parse().expect("a number");
        assert_eq!(Number::from_value(Value::Integer(3)), Ok(Number::from(3)));
        assert_eq!(
            Value::from(Number::from(3)),
            Value::Numeric(Decimal::from(3))
        );
        let refused = Decimal::from_value(long.into()).expect_err("it has 41 digits");
        assert_eq!(refused.state(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        assert_eq!(Decimal::from_value(Value::Integer(3)), Ok(Decimal::from(3)));
        let error = i32::from_value(Value::BigInt(3)).unwrap_err();
        assert_eq!(error.state(), SqlState::DATATYPE_MISMATCH);
        assert_eq!(
            error.message(),
            "expected a value of type integer but got bigint (3)"
        );
        let error = String::from_value(Value::Null).unwrap_err();
        assert_eq!(error.state(), SqlState::NULL_VALUE_NOT_ALLOWED);
    }

    #[test]
    fn rows_become_tuples() {
        let row = || vec![Value::Integer(1), Value::Text("a".to_string()), Value::Null];
        assert_eq!(
            FromRow::from_row(row()),
            Ok((1_i32, "a".to_string(), None::<bool>))
        );
        let error = <(i32, String)>::from_row(row()).unwrap_err();
        assert_eq!(error.message(), "expected a row of 2 columns but got 3");
        let error = <(i32, bool, Option<bool>)>::from_row(row()).unwrap_err();
        assert_eq!(
            error.message(),
            "column 2: expected a value of type boolean but got text (a)"
        );
        assert_eq!(<()>::from_row(Vec::new()), Ok(()));
    }
}
