//! Operators and functions of arrays.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::Expr;

use super::bound::Bound;
use super::category::{common_type, no_operator};
use super::coerce::{CastContext, assigns, cast_context, coerce};
use super::constant::call;
use super::order::{Needs, class_in};
use super::overload;
use super::types::same_base;
use super::{Compiler, Position, fail, functions, unsupported};

/// The type of the elements of an array whose type is known.
pub(super) fn element_of(bound: &Bound) -> Option<DataType> {
    match &bound.data_type {
        DataType::Array(element) if !bound.is_unknown() => Some((**element).clone()),
        _ => None,
    }
}

impl Compiler<'_> {
    /// `ARRAY[…]`; in a cast the elements are cast, each to its type.
    ///
    /// # Errors
    /// 42P18 where nothing says what the elements are; 42804 where they are of types that do not go
    /// together.
    pub(super) fn bind_array(
        &mut self,
        elements: &[Expr],
        cast: Option<&DataType>,
        position: Position,
    ) -> Result<Bound> {
        let items = elements.iter().map(|element| self.bind(element));
        let items: Vec<Bound> = items.collect::<Result<_>>()?;
        let all: Vec<&Bound> = items.iter().collect();
        let (element, context) = match cast {
            Some(element) => (element.clone(), CastContext::Explicit),
            None if items.is_empty() => {
                let message = "cannot determine type of empty array";
                let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
                let error = fail(SqlState::INDETERMINATE_DATATYPE, message, position);
                return Err(error.with_hint(hint));
            }
            None => {
                let common = common_type("ARRAY", &all, position)?;
                (common.without_modifier(), CastContext::Implicit)
            }
        };
        let is_array = |bound: &&Bound| element_of(bound).is_some();
        if matches!(element, DataType::Array(_)) || all.iter().any(is_array) {
            return Err(unsupported("an array of more than one dimension", position));
        }
        let items = items
            .into_iter()
            .map(|item| coerce(item, &element, context));
        let items: Vec<Bound> = items.collect::<Result<_>>()?;
        let named = functions::construct_array();
        Ok(call(named, items, DataType::array(element), position))
    }
}

/// `left || right` where one side is an array.
///
/// # Errors
/// 42883 when the other side is no element of it, and no such array.
pub(super) fn concatenate(left: Bound, right: Bound, position: Position) -> Result<Bound> {
    let (named, left, right) = match (element_of(&left), element_of(&right)) {
        (Some(one), Some(other)) if same_base(&one, &other) => {
            (functions::array_concat(), left, right)
        }
        // A literal beside an array is an array.
        (Some(_), None) if right.is_unknown() => {
            let right = coerce(right, &left.data_type, CastContext::Implicit)?;
            (functions::array_concat(), left, right)
        }
        (None, Some(_)) if left.is_unknown() => {
            let left = coerce(left, &right.data_type, CastContext::Implicit)?;
            (functions::array_concat(), left, right)
        }
        (Some(element), None) if converts(&right, &element) => {
            let right = coerce(right, &element.without_modifier(), CastContext::Implicit)?;
            (functions::array_append(), left, right)
        }
        (None, Some(element)) if converts(&left, &element) => {
            let left = coerce(left, &element.without_modifier(), CastContext::Implicit)?;
            (functions::array_prepend(), left, right)
        }
        _ => return Err(no_operator("||", &left, &right, position)),
    };
    let data_type = match element_of(&left) {
        Some(_) => left.data_type.without_modifier(),
        None => right.data_type.without_modifier(),
    };
    Ok(call(named, vec![left, right], data_type, position))
}

fn converts(bound: &Bound, element: &DataType) -> bool {
    cast_context(&bound.data_type, element) == Some(CastContext::Implicit)
}

/// `@>`, `<@` or `&&` of two arrays.
///
/// # Errors
/// 42883 for arrays of different types.
pub(super) fn compare_sets(
    symbol: &str,
    left: Bound,
    right: Bound,
    position: Position,
) -> Result<Bound> {
    let (left, right) = match (left.is_unknown(), right.is_unknown()) {
        (true, false) => (
            coerce(left, &right.data_type, CastContext::Implicit)?,
            right,
        ),
        (false, true) => {
            let right = coerce(right, &left.data_type, CastContext::Implicit)?;
            (left, right)
        }
        _ => (left, right),
    };
    let element = match (element_of(&left), element_of(&right)) {
        (Some(one), Some(other)) if same_base(&one, &other) => one,
        _ => return Err(no_operator(symbol, &left, &right, position)),
    };
    let class = class_in(symbol, Needs::Equality, &element, position)?;
    let (named, operands) = match symbol {
        "@>" => (functions::array_contains(class), vec![left, right]),
        "<@" => (functions::array_contains(class), vec![right, left]),
        _ => (functions::array_overlaps(class), vec![left, right]),
    };
    Ok(call(named, operands, DataType::Boolean, position))
}

/// `array_position`, `array_positions`, `array_remove` and `array_replace`, which compare elements.
///
/// # Errors
/// 42883 where there is no such function for the arguments.
pub(super) fn search(name: &str, arguments: Vec<Bound>, position: Position) -> Result<Bound> {
    let Some(element) = arguments.first().and_then(element_of) else {
        return overload::bind(name, arguments, position);
    };
    let array = arguments[0].data_type.without_modifier();
    let mut operands = Vec::with_capacity(arguments.len());
    for (at, argument) in arguments.into_iter().enumerate() {
        let target = match (at, name) {
            (0, _) => array.clone(),
            (2, "array_position") => DataType::Integer,
            _ => element.without_modifier(),
        };
        operands.push(coerce(argument, &target, CastContext::Implicit)?);
    }
    let class = class_in(name, Needs::Equality, &element, position)?;
    let (named, data_type) = match name {
        "array_position" => (functions::array_position(class), DataType::Integer),
        "array_positions" => {
            let positions = DataType::array(DataType::Integer);
            (functions::array_positions(class), positions)
        }
        "array_replace" => (functions::array_replace(class), array),
        _ => (functions::array_remove(class), array),
    };
    Ok(functions::direct(named, operands, data_type, position))
}

/// The array with another value of the element with this number; `column` is where it is.
///
/// # Errors
/// 42804 for what is no array, and for a value that is no element.
pub(super) fn set_element(array: Bound, index: Bound, value: Bound, column: &str) -> Result<Bound> {
    let position = index.position;
    let element = element_to_set(&array, position)?;
    let index = subscript_to_set(index)?;
    let value = value_to_set(value, &element, column)?;
    let data_type = array.data_type.clone();
    let operands = vec![array, index, value];
    let named = functions::array_set_in_row();
    Ok(functions::direct(named, operands, data_type, position))
}

/// The array with other elements between two numbers, which are the first and the last one where
/// they are left out.
///
/// # Errors
/// 42804 for what is no array, and for a value that is no such array.
pub(super) fn set_slice(
    array: Bound,
    bounds: [Option<Bound>; 2],
    value: Bound,
    column: &str,
) -> Result<Bound> {
    let position = value.position;
    element_to_set(&array, position)?;
    let data_type = array.data_type.clone();
    let mut operands = vec![array];
    for bound in bounds {
        let is_given = Value::Boolean(bound.is_some());
        operands.push(Bound::constant(is_given, DataType::Boolean, position));
        operands.push(match bound {
            Some(bound) => subscript_to_set(bound)?,
            None => Bound::integer(0),
        });
    }
    operands.push(value_to_set(value, &data_type, column)?);
    let named = functions::array_set_slice();
    Ok(functions::direct(named, operands, data_type, position))
}

/// The type of the elements of an array of which a part is assigned.
fn element_to_set(array: &Bound, position: Position) -> Result<DataType> {
    element_of(array).ok_or_else(|| {
        let message = format!(
            "cannot subscript type {} because it does not support subscripting",
            array.data_type.base_name()
        );
        fail(SqlState::DATATYPE_MISMATCH, message, position)
    })
}

fn subscript_to_set(index: Bound) -> Result<Bound> {
    if !assigns(&index, &DataType::Integer) {
        let message = "array subscript must have type integer";
        return Err(fail(SqlState::DATATYPE_MISMATCH, message, index.position));
    }
    coerce(index, &DataType::Integer, CastContext::Assignment)
}

fn value_to_set(value: Bound, target: &DataType, column: &str) -> Result<Bound> {
    if !assigns(&value, target) {
        let message = format!(
            "subscripted assignment to \"{column}\" requires type {} but expression is of type {}",
            target.base_name(),
            value.data_type.base_name()
        );
        return Err(fail(SqlState::DATATYPE_MISMATCH, message, value.position)
            .with_hint("You will need to rewrite or cast the expression."));
    }
    coerce(value, target, CastContext::Assignment)
}
