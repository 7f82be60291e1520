//! Functions over the labels of enums.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, EnumValue, Value};

use super::super::Position;
use super::super::bound::{Bound, Builtin, Operation};
use super::super::coerce::{CastContext, coerce};
use super::super::constant::operation;
use super::super::functions::enum_range;

/// Binds a call of `enum_first`, `enum_last` or `enum_range`; `None` for any other function.
///
/// # Errors
/// 55000 for an enum without labels.
pub(super) fn bind(name: &str, arguments: &[Bound], position: Position) -> Result<Option<Bound>> {
    let fits = match name {
        "enum_first" | "enum_last" => arguments.len() == 1,
        "enum_range" => matches!(arguments.len(), 1 | 2),
        _ => false,
    };
    if !fits {
        return Ok(None);
    }
    let Some(known) = arguments.iter().find(|argument| !argument.is_unknown()) else {
        return Ok(None);
    };
    let DataType::Enum(of) = &known.data_type else {
        return Ok(None);
    };
    let is_one = |argument: &Bound| argument.is_unknown() || argument.data_type == known.data_type;
    if !arguments.iter().all(is_one) {
        return Ok(None);
    }
    let data_type = DataType::Enum(of.clone());
    let value = |number: i64| {
        let of = of.clone();
        Value::Enum(EnumValue { number, of })
    };
    let end = |label: Option<&kiln_storage::types::EnumLabel>| match label {
        Some(label) => Ok(Bound::constant(
            value(label.number),
            data_type.clone(),
            position,
        )),
        None => {
            let message = format!("enum {} contains no values", of.printed());
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            Err(Error::new(state, message))
        }
    };
    match name {
        "enum_first" => return end(of.labels().first()).map(Some),
        "enum_last" => return end(of.labels().last()).map(Some),
        _ => {}
    }
    let array = DataType::array(data_type.clone());
    let all = of.labels().iter().map(|label| value(label.number));
    let all = Bound::constant(Value::Array(all.collect()), array.clone(), position);
    let mut operands = Vec::new();
    match arguments {
        [low, high] => {
            for argument in [low, high] {
                let context = CastContext::Implicit;
                operands.push(coerce(argument.clone(), &data_type, context)?);
            }
        }
        _ => return Ok(Some(all)),
    }
    operands.push(all);
    let builtin = Builtin {
        name: "enum_range",
        function: enum_range,
        volatile: false,
    };
    let call = Operation::Call(builtin);
    Ok(Some(operation(call, operands, array, position)))
}
