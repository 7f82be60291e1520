//! Whether conditions imply another one, as PostgreSQL proves it (`predtest.c`): by equal
//! conditions, by AND and OR, by strict operators for IS NOT NULL, and by comparisons with
//! constants.

use kiln_procedure::ir::{Class, Comparison};
use kiln_storage::types::{DataType, Value};

use super::bound::{Bound, Kind, Operation};
use super::constant::fold;

/// Whether `wanted` is TRUE in each row in which all of `given` are.
pub(super) fn implies(given: &[Bound], wanted: &Bound) -> bool {
    match &wanted.kind {
        Kind::And(parts) => parts.iter().all(|part| implies(given, part)),
        Kind::Constant(Value::Boolean(true)) => true,
        Kind::Or(arms) if arms.iter().any(|arm| implies(given, arm)) => true,
        _ => given.iter().any(|one| implies_by_itself(one, wanted)),
    }
}

fn implies_by_itself(given: &Bound, wanted: &Bound) -> bool {
    if given == wanted {
        return true;
    }
    match &given.kind {
        Kind::And(parts) => return implies(parts, wanted),
        Kind::Or(arms) => {
            return arms
                .iter()
                .all(|arm| implies(std::slice::from_ref(arm), wanted));
        }
        _ => {}
    }
    if let Kind::Operation(Operation::IsNull { negated: true }, operands) = &wanted.kind
        && let [operand] = operands.as_slice()
    {
        return is_false_of_null(given, operand);
    }
    match (comparison_of(given), comparison_of(wanted)) {
        (Some(given), Some(wanted)) => given.implies(&wanted),
        _ => false,
    }
}

/// Whether a condition is not TRUE where `operand` is NULL.
fn is_false_of_null(condition: &Bound, operand: &Bound) -> bool {
    match &condition.kind {
        Kind::Operation(operation, operands) => {
            let is_strict = !matches!(
                operation,
                Operation::Compare(Comparison::Distinct | Comparison::NotDistinct, _)
            );
            let is_test = matches!(operation, Operation::Compare(..) | Operation::Not);
            is_test && is_strict && operands.iter().any(|it| is_null_with(it, operand))
        }
        _ => condition == operand,
    }
}

/// Whether a value is NULL where `operand` is.
fn is_null_with(value: &Bound, operand: &Bound) -> bool {
    if value == operand {
        return true;
    }
    match &value.kind {
        Kind::Operation(operation, operands) => {
            let is_strict = matches!(
                operation,
                Operation::Integer(..)
                    | Operation::Decimal(_)
                    | Operation::Double(_)
                    | Operation::IntegerToDecimal
                    | Operation::IntegerToDouble
                    | Operation::CheckWidth(_)
                    | Operation::Rescale { .. }
                    | Operation::Not
                    | Operation::Concat
            );
            is_strict && operands.iter().any(|it| is_null_with(it, operand))
        }
        Kind::Shared(_, inner) => is_null_with(inner, operand),
        _ => false,
    }
}

/// `operand <op> constant`.
struct WithConstant<'b> {
    operand: &'b Bound,
    comparison: Comparison,
    class: Class,
    constant: &'b Bound,
}

fn comparison_of(bound: &Bound) -> Option<WithConstant<'_>> {
    let Kind::Operation(Operation::Compare(comparison, class), operands) = &bound.kind else {
        return None;
    };
    let [left, right] = operands.as_slice() else {
        return None;
    };
    let is_constant =
        |bound: &Bound| matches!(&bound.kind, Kind::Constant(value) if !value.is_null());
    let (operand, comparison, constant) = match (is_constant(left), is_constant(right)) {
        (false, true) => (left, *comparison, right),
        (true, false) => (right, flipped(*comparison), left),
        _ => return None,
    };
    Some(WithConstant {
        operand,
        comparison,
        class: *class,
        constant,
    })
}

fn flipped(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        other => other,
    }
}

impl WithConstant<'_> {
    fn implies(&self, wanted: &WithConstant<'_>) -> bool {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        if self.operand != wanted.operand || self.class != wanted.class {
            return false;
        }
        // How the own constant has to compare with the wanted one.
        let needed = match (self.comparison, wanted.comparison) {
            (Equal, wanted) => wanted,
            (Less, Less | LessOrEqual | NotEqual) | (LessOrEqual, LessOrEqual) => LessOrEqual,
            (LessOrEqual, Less | NotEqual) => Less,
            (Greater, Greater | GreaterOrEqual | NotEqual) | (GreaterOrEqual, GreaterOrEqual) => {
                GreaterOrEqual
            }
            (GreaterOrEqual, Greater | NotEqual) => Greater,
            _ => return false,
        };
        let constants = [self.constant.clone(), wanted.constant.clone()];
        let compare = Operation::Compare(needed, self.class);
        fold(compare, &constants, &DataType::Boolean) == Some(Value::Boolean(true))
    }
}
