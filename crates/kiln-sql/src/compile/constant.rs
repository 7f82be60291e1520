//! Constants: values in slots, and folding of operations on them.

use kiln_procedure::frame::{compare, push_value, to_value};
use kiln_procedure::ir::{Arithmetic, Comparison, Width};
use kiln_procedure::number;
use kiln_storage::error::{Error, Result};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{DataType, Value};

use super::bound::{Bound, Builtin, Kind, Operation};
use super::{Position, constant};

/// The longest text that folding makes, and the most that a folded function goes through: what is
/// longer is computed at run time, where a client can cancel it.
const FOLDED_BYTES_MAX: u32 = 1 << 16;

/// The operation on constants, computed now. `None` when an operand is no constant, the operation
/// is volatile or too large, or it raises: then it shall raise when and if it is evaluated.
pub(super) fn fold(
    operation: Operation,
    operands: &[Bound],
    data_type: &DataType,
) -> Option<Value> {
    let mut heap = Heap::with_work_max(FOLDED_BYTES_MAX);
    let mut slots = Vec::with_capacity(operands.len());
    let mut any_null = false;
    for operand in operands {
        let Kind::Constant(value) = &operand.kind else {
            return None;
        };
        any_null |= value.is_null();
        slots.push(push_value(&mut heap, value));
    }
    let strict = !matches!(
        operation,
        Operation::Call(_)
            | Operation::Consult(_)
            | Operation::Sequence(_)
            | Operation::LockRow(_)
            | Operation::Signal(_)
            | Operation::Notify
            | Operation::IsNull { .. }
            | Operation::Compare(Comparison::Distinct | Comparison::NotDistinct, _)
    );
    if strict && any_null {
        return Some(Value::Null);
    }
    let slot = evaluate(operation, &mut heap, &slots).ok()??;
    if heap.used_bytes() > FOLDED_BYTES_MAX as usize {
        return None;
    }
    Some(to_value(&heap, slot, data_type))
}

fn evaluate(operation: Operation, heap: &mut Heap, slots: &[Slot]) -> Result<Option<Slot>> {
    Ok(Some(match (operation, slots) {
        (Operation::Integer(arithmetic, width), [left, right]) => {
            integer(arithmetic, width, left.as_i64(), right.as_i64())?
        }
        (Operation::Decimal(arithmetic), [left, right]) => {
            number::compute(heap, arithmetic, *left, *right)?
        }
        (Operation::Compare(comparison, class), [left, right]) => {
            let order = match (left.is_null(), right.is_null()) {
                (false, false) => compare(heap, class, *left, *right),
                (left, right) => left.cmp(&right),
            };
            Slot::from_bool(match comparison {
                Comparison::Equal | Comparison::NotDistinct => order.is_eq(),
                Comparison::NotEqual | Comparison::Distinct => order.is_ne(),
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                Comparison::GreaterOrEqual => order.is_ge(),
            })
        }
        (Operation::IsNull { negated }, [source]) => Slot::from_bool(source.is_null() != negated),
        (Operation::Not, [source]) => Slot::from_bool(!source.as_bool()),
        (Operation::IntegerToDecimal, [source]) => {
            Slot::from_decimal(kiln_storage::types::Decimal::from_i64(source.as_i64()))
        }
        (Operation::IntegerToDouble, [source]) => Slot::from_f64(source.as_i64() as f64),
        (Operation::CheckWidth(width), [source]) => check_width(width, source.as_i64())?,
        (Operation::Rescale { precision, scale }, [source]) => {
            number::rescale(heap, *source, precision, scale)?
        }
        (Operation::Concat, [left, right]) => heap.concat(*left, *right),
        (Operation::Call(builtin), _) if !builtin.volatile => (builtin.function)(heap, slots)?,
        _ => return Ok(None),
    }))
}

fn check_width(width: Width, value: i64) -> Result<Slot> {
    let (fits, name) = match width {
        Width::Two => (i16::try_from(value).is_ok(), "smallint"),
        Width::Four => (i32::try_from(value).is_ok(), "integer"),
        Width::Eight => (true, "bigint"),
    };
    if fits {
        Ok(Slot::from_i64(value))
    } else {
        Err(Error::out_of_range(name))
    }
}

fn integer(arithmetic: Arithmetic, width: Width, left: i64, right: i64) -> Result<Slot> {
    let result = match arithmetic {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide | Arithmetic::Remainder if right == 0 => {
            return Err(Error::division_by_zero());
        }
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => Some(left.wrapping_rem(right)),
    };
    check_width(width, result.ok_or_else(|| Error::out_of_range("bigint"))?)
}

/// An operation on operands, computed now when they are constants.
pub(super) fn operation(
    operation: Operation,
    operands: Vec<Bound>,
    data_type: DataType,
    position: Position,
) -> Bound {
    match constant::fold(operation, &operands, &data_type) {
        Some(value) => Bound::constant(value, data_type, position),
        None => Bound::new(Kind::Operation(operation, operands), data_type, position),
    }
}

/// A call of a builtin that depends on its arguments alone.
pub(super) fn call(
    (name, function): (&'static str, kiln_procedure::ir::ScalarFunction),
    operands: Vec<Bound>,
    data_type: DataType,
    position: Position,
) -> Bound {
    let builtin = Builtin {
        name,
        function,
        volatile: false,
    };
    operation(Operation::Call(builtin), operands, data_type, position)
}
