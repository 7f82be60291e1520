//! Values with other parts: what an assignment to a field of a row, to an element or a slice of an
//! array, or to a place in JSON makes of them.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::arrays::{self, element_of};
use super::bound::{Bound, Operation};
use super::coerce::{CastContext, assigns, coerce};
use super::constant::operation;
use super::{fail, functions, row_value, unsupported};

/// A step to a part of a value.
pub(super) enum Step {
    /// A field of a row.
    Field(String),
    /// An element of an array, or the place of a key in JSON.
    Element(Bound),
    /// The elements between two numbers, of which either may be left out.
    Slice(Option<Bound>, Option<Bound>),
}

impl Step {
    fn is_subscript(&self) -> bool {
        !matches!(self, Step::Field(_))
    }
}

/// The type of the part of a value to which these steps lead, as far as there are such parts.
pub(super) fn type_of_part<'t>(whole: &'t DataType, steps: &[Step]) -> &'t DataType {
    let mut found = whole;
    for step in steps {
        found = match (step, found) {
            (Step::Field(name), DataType::Row(of)) => match of.position(name) {
                Some(number) => &of.fields()[number].data_type,
                None => break,
            },
            (Step::Element(_), DataType::Array(element)) => element,
            (Step::Slice(..), DataType::Array(_)) => found,
            _ => break,
        };
    }
    found
}

/// `whole` with another value of the part that these steps lead to; `column` is where it is.
///
/// # Errors
/// 42804 for what has no such parts, and for a value that is no such part; 42703 for a field that
/// is not there; 0A000 for arrays of more than one dimension.
pub(super) fn with_part(whole: Bound, steps: &[Step], value: Bound, column: &str) -> Result<Bound> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(value);
    };
    if step.is_subscript() && whole.data_type == DataType::JSONB {
        return with_json_part(whole, steps, value, column);
    }
    match step {
        Step::Field(name) => with_field(whole, name, rest, value, column),
        Step::Element(index) if rest.is_empty() => {
            arrays::set_element(whole, index.clone(), value, column)
        }
        Step::Slice(lower, upper) if rest.is_empty() => {
            arrays::set_slice(whole, [lower.clone(), upper.clone()], value, column)
        }
        _ if rest.iter().any(Step::is_subscript) => Err(unsupported(
            "an array of more than one dimension",
            whole.position,
        )),
        Step::Element(index) => {
            let Some(element) = element_of(&whole) else {
                return arrays::set_element(whole, index.clone(), value, column);
            };
            if index.is_volatile() {
                let what = "a field of an element whose number is a volatile expression";
                return Err(unsupported(what, index.position));
            }
            let number = coerce(index.clone(), &DataType::Integer, CastContext::Assignment)?;
            let operands = vec![whole.clone(), number];
            let inner = operation(Operation::Element, operands, element, index.position);
            let inner = with_part(inner, rest, value, column)?;
            arrays::set_element(whole, index.clone(), inner, column)
        }
        Step::Slice(..) => {
            let message = "cannot assign to a field of a slice";
            Err(fail(SqlState::DATATYPE_MISMATCH, message, whole.position))
        }
    }
}

fn with_field(
    whole: Bound,
    name: &str,
    rest: &[Step],
    value: Bound,
    column: &str,
) -> Result<Bound> {
    let position = value.position;
    let refuse = |state, why: String| {
        let message =
            format!("cannot assign to field \"{name}\" of column \"{column}\" because {why}");
        Err(fail(state, message, position))
    };
    let Some(of) = row_value::type_of(&whole).cloned() else {
        let of = whole.type_name();
        let why = format!("its type {of} is not a composite type");
        return refuse(SqlState::DATATYPE_MISMATCH, why);
    };
    let Some(number) = of.position(name) else {
        let why = format!("there is no such column in data type {}", of.printed());
        return refuse(SqlState::UNDEFINED_COLUMN, why);
    };
    let target = of.fields()[number].data_type.clone();
    let value = match rest {
        [] => {
            if !assigns(&value, &target) {
                let message = format!(
                    "subfield \"{name}\" is of type {} but expression is of type {}",
                    target.base_name(),
                    value.data_type.base_name()
                );
                let error = fail(SqlState::DATATYPE_MISMATCH, message, position);
                return Err(error.with_hint("You will need to rewrite or cast the expression."));
            }
            coerce(value, &target, CastContext::Assignment)?
        }
        _ => with_part(
            row_value::field(&whole, number, position)?,
            rest,
            value,
            name,
        )?,
    };
    let fields = row_value::fields(&whole, position)?.into_iter();
    let mut fields: Vec<Bound> = fields.map(|(_, field)| field).collect();
    fields[number] = value;
    Ok(row_value::pack(fields, &of, position))
}

/// `j['a'][0] = value`.
fn with_json_part(whole: Bound, steps: &[Step], value: Bound, column: &str) -> Result<Bound> {
    let position = value.position;
    let mut path = Vec::with_capacity(steps.len());
    let mut is_of_array = false;
    for (number, step) in steps.iter().enumerate() {
        let key = match step {
            Step::Element(key) => key.clone(),
            Step::Slice(..) => {
                let message = "jsonb subscript does not support slices";
                return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
            }
            Step::Field(name) => {
                let message = format!(
                    "cannot assign to field \"{name}\" of column \"{column}\" because its type \
                     jsonb is not a composite type"
                );
                return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
            }
        };
        let (key, is_number) = json_key(key)?;
        is_of_array |= number == 0 && is_number;
        path.push(key);
    }
    if !assigns(&value, &DataType::JSONB) {
        let message = format!(
            "subscripted assignment to \"{column}\" requires type jsonb but expression is of type {}",
            value.data_type.base_name()
        );
        let error = fail(SqlState::DATATYPE_MISMATCH, message, position);
        return Err(error.with_hint("You will need to rewrite or cast the expression."));
    }
    let value = coerce(value, &DataType::JSONB, CastContext::Assignment)?;
    let texts = DataType::array(DataType::Text);
    let path = functions::direct(functions::construct_array(), path, texts, position);
    let is_of_array = Bound::constant(Value::Boolean(is_of_array), DataType::Boolean, position);
    let operands = vec![whole, path, value, is_of_array];
    Ok(functions::direct(
        functions::JSONB_WITH_PART,
        operands,
        DataType::JSONB,
        position,
    ))
}

/// A subscript of JSON as a text, and whether it is a number.
///
/// # Errors
/// 42804 for a key of another type.
pub(super) fn json_key(key: Bound) -> Result<(Bound, bool)> {
    let is_number =
        !key.is_unknown() && matches!(key.data_type, DataType::SmallInt | DataType::Integer);
    if !key.is_unknown() && !key.data_type.is_string() && !is_number {
        let message = format!("subscript type {} is not supported", key.type_name());
        let hint = "jsonb subscript must be coercible to either integer or text.";
        return Err(fail(SqlState::DATATYPE_MISMATCH, message, key.position).with_hint(hint));
    }
    Ok((
        coerce(key, &DataType::Text, CastContext::Explicit)?,
        is_number,
    ))
}
