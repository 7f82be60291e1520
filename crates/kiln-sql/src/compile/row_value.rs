//! Rows as values.
//!
//! A row that is written, `ROW(a, b)` or `(a, b)`, is a [`Kind::Row`] as long as it may be compared
//! with another one, field by field. Where its value is needed it is *packed*: a call of a function
//! that makes one value of the fields. The rows of tables and variables are packed at once. Fields
//! of what is packed here are taken from the operands, so that a row that is only looked into is
//! never made.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::slot::row::Form;
use kiln_storage::types::{DataType, RowField, RowType, Value};

use super::bound::{Bound, Kind, Operation};
use super::constant::call;
use super::functions::{ROW, ROW_FIELD, ROW_UNLESS_NULL};
use super::{Error, Position, fail};

/// The type of a record of these values, with names for them.
///
/// # Errors
/// As [`RowType::new`].
pub(super) fn record_of<'b>(
    fields: impl IntoIterator<Item = (String, &'b DataType)>,
    position: Position,
) -> Result<Arc<RowType>> {
    let fields = fields.into_iter().map(|(name, data_type)| RowField {
        name,
        data_type: data_type.clone(),
    });
    let made = RowType::record(fields.collect());
    made.map(Arc::new).map_err(|error| match position {
        Some((line, column)) => error.at(line, column),
        None => error,
    })
}

/// A row that is written.
///
/// # Errors
/// As [`record_of`].
pub(super) fn written(items: Vec<Bound>, position: Position) -> Result<Bound> {
    let types = items.iter().map(|item| &item.data_type).enumerate();
    let named = types.map(|(number, data_type)| (format!("f{}", number + 1), data_type));
    let of = record_of(named, position)?;
    Ok(Bound::new(Kind::Row(items), DataType::Row(of), position))
}

/// The row of these fields, which have the types that the row's type says.
pub(super) fn pack(fields: Vec<Bound>, of: &Arc<RowType>, position: Position) -> Bound {
    let letters = Bound::text(Form::letters(of));
    let operands = std::iter::once(letters).chain(fields).collect();
    call(ROW, operands, DataType::Row(of.clone()), position)
}

/// As [`pack`]; NULL where all fields are.
pub(super) fn pack_unless_null(fields: Vec<Bound>, of: &Arc<RowType>, position: Position) -> Bound {
    let letters = Bound::text(Form::letters(of));
    let operands = std::iter::once(letters).chain(fields).collect();
    call(
        ROW_UNLESS_NULL,
        operands,
        DataType::Row(of.clone()),
        position,
    )
}

/// The type of a row.
pub(super) fn type_of(bound: &Bound) -> Option<&Arc<RowType>> {
    match &bound.data_type {
        DataType::Row(of) if !bound.is_unknown() => Some(of),
        _ => None,
    }
}

/// The fields of a row whose value is made of them here.
pub(super) fn parts(bound: &Bound) -> Option<Vec<Bound>> {
    let of = type_of(bound)?;
    match &bound.kind {
        Kind::Row(items) => Some(items.clone()),
        Kind::Operation(Operation::Call(builtin), operands) if builtin.name == ROW.0 => {
            Some(operands[1..].to_vec())
        }
        Kind::Constant(Value::Row(row)) => {
            let fields = row.fields.iter().zip(of.fields());
            let each = fields.map(|(value, field)| {
                Bound::constant(value.clone(), field.data_type.clone(), bound.position)
            });
            Some(each.collect())
        }
        _ => None,
    }
}

/// The field of a row with this number.
pub(super) fn field(bound: &Bound, number: usize, position: Position) -> Result<Bound> {
    if let Some(mut parts) = parts(bound)
        && number < parts.len()
    {
        return Ok(parts.swap_remove(number).at(position));
    }
    let field = type_of(bound).and_then(|of| of.fields().get(number));
    let field = field.ok_or_else(|| Error::internal("a row has no such field"))?;
    let data_type = field.data_type.clone();
    if let Kind::Constant(Value::Null) = bound.kind {
        return Ok(Bound::null(data_type, position));
    }
    let number = Bound::integer(i32::try_from(number).unwrap_or(i32::MAX));
    let operands = vec![bound.clone(), number];
    Ok(call(ROW_FIELD, operands, data_type, position))
}

/// All fields of a row, with their names.
pub(super) fn fields(bound: &Bound, position: Position) -> Result<Vec<(String, Bound)>> {
    let Some(of) = type_of(bound) else {
        return Err(no_composite(bound, position));
    };
    let names = of.fields().iter().map(|field| field.name.clone());
    let each = names
        .enumerate()
        .map(|(number, name)| Ok((name, field(bound, number, position)?)));
    each.collect()
}

/// The field of a row with this name.
///
/// # Errors
/// 42809 for what is no row, 42703 for a field that it does not have.
pub(super) fn field_named(bound: &Bound, name: &str, position: Position) -> Result<Bound> {
    let Some(of) = type_of(bound) else {
        let message = format!(
            "column notation .{name} applied to type {}, which is not a composite type",
            bound.type_name()
        );
        return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
    };
    match of.position(name) {
        Some(number) => field(bound, number, position),
        None if of.is_record() => {
            let message = format!("could not identify column \"{name}\" in record data type");
            Err(fail(SqlState::UNDEFINED_COLUMN, message, position))
        }
        None => {
            let message = format!("column \"{name}\" not found in data type {}", of.printed());
            Err(fail(SqlState::UNDEFINED_COLUMN, message, position))
        }
    }
}

/// The error for `(value).*` of what is no row.
#[cold]
pub(super) fn no_composite(bound: &Bound, position: Position) -> Error {
    let message = format!("type {} is not composite", bound.type_name());
    fail(SqlState::WRONG_OBJECT_TYPE, message, position)
}
