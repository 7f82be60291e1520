//! Short forms of the values that rows are made of.

use kiln_storage::types::{ObjectName, Value};

/// A row of a relation, in the order of its columns.
pub(super) type Row = Vec<Value>;

/// A number of an object.
pub(super) fn oid(oid: u32) -> Value {
    Value::BigInt(oid.into())
}

/// A text, NAME, or anything else that is held as one.
pub(super) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// A text, or NULL.
pub(super) fn optional(text: Option<impl Into<String>>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.into()))
}

/// TRUE or FALSE.
pub(super) fn boolean(value: bool) -> Value {
    Value::Boolean(value)
}

/// `YES` or `NO`.
pub(super) fn yes_or_no(value: bool) -> Value {
    text(if value { "YES" } else { "NO" })
}

/// A SMALLINT.
pub(super) fn small(value: usize) -> Value {
    Value::SmallInt(i16::try_from(value).unwrap_or(i16::MAX))
}

/// An INTEGER.
pub(super) fn integer(value: i32) -> Value {
    Value::Integer(value)
}

/// A BIGINT.
pub(super) fn bigint(value: i64) -> Value {
    Value::BigInt(value)
}

/// An array, or a vector.
pub(super) fn array(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Array(values.into_iter().collect())
}

/// The numbers of columns, from 1.
pub(super) fn column_numbers(columns: impl IntoIterator<Item = usize>) -> Value {
    array(columns.into_iter().map(|column| small(column + 1)))
}

/// No function: REGPROC prints it as `-`.
pub(super) fn no_function() -> Value {
    Value::Object(Box::new(ObjectName {
        oid: 0,
        name: "-".to_owned(),
    }))
}
