//! What computations compute, told by the numbers of their operands (see `numbering`).

use std::collections::HashMap;

use crate::ir::*;

/// The number of a value.
pub(super) type Number = u32;

/// What is computed, apart from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Computation {
    Integer(Arithmetic, Width),
    Decimal(Arithmetic),
    Double(Arithmetic),
    Compare(Comparison, Class),
    IsNull { negated: bool },
    AnyNull,
    Not,
    And,
    Or,
    IntegerToDecimal,
    IntegerToDouble,
    CheckWidth(Width),
    Rescale { precision: u16, scale: i16 },
    Concat,
    Element,
    ArrayLength,
}

/// A computation of values with these numbers. It has one result, or raises one error, whenever it
/// is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Expression(Computation, Vec<Number>);

impl Expression {
    /// What `instruction` computes, where `number` says which number a register has, and where it
    /// puts that. `None` of builtins, which may give another result the next time, and of what
    /// computes nothing.
    pub(super) fn of(
        instruction: &Instruction,
        number: impl Fn(Reg) -> Number,
    ) -> Option<(Expression, Reg)> {
        use Computation as Is;
        let (computation, target, operands): (_, _, &[Reg]) = match *instruction {
            Instruction::Integer {
                op,
                width,
                target,
                left,
                right,
            } => (Is::Integer(op, width), target, &[left, right]),
            Instruction::Decimal {
                op,
                target,
                left,
                right,
            } => (Is::Decimal(op), target, &[left, right]),
            Instruction::Double {
                op,
                target,
                left,
                right,
            } => (Is::Double(op), target, &[left, right]),
            Instruction::Compare {
                op,
                class,
                target,
                left,
                right,
            } => (Is::Compare(op, class), target, &[left, right]),
            Instruction::IsNull {
                target,
                source,
                negated,
            } => (Is::IsNull { negated }, target, &[source]),
            Instruction::AnyNull {
                target,
                ref sources,
            } => (Is::AnyNull, target, sources),
            Instruction::Not { target, source } => (Is::Not, target, &[source]),
            Instruction::And {
                target,
                left,
                right,
            } => (Is::And, target, &[left, right]),
            Instruction::Or {
                target,
                left,
                right,
            } => (Is::Or, target, &[left, right]),
            Instruction::IntegerToDecimal { target, source } => {
                (Is::IntegerToDecimal, target, &[source])
            }
            Instruction::IntegerToDouble { target, source } => {
                (Is::IntegerToDouble, target, &[source])
            }
            Instruction::CheckWidth {
                width,
                target,
                source,
            } => (Is::CheckWidth(width), target, &[source]),
            Instruction::Rescale {
                target,
                source,
                precision,
                scale,
            } => (Is::Rescale { precision, scale }, target, &[source]),
            Instruction::Concat {
                target,
                left,
                right,
            } => (Is::Concat, target, &[left, right]),
            Instruction::Element {
                target,
                array,
                index,
            } => (Is::Element, target, &[array, index]),
            Instruction::ArrayLength { target, array } => (Is::ArrayLength, target, &[array]),
            Instruction::Move { .. }
            | Instruction::SetNull { .. }
            | Instruction::Call { .. }
            | Instruction::Consult { .. }
            | Instruction::Require { .. }
            | Instruction::RequireNotNull { .. } => return None,
        };
        let operands = operands.iter().map(|register| number(*register));
        Some((Expression(computation, operands.collect()), target))
    }
}

/// The numbers of the values that were computed. A number speaks of a value that was computed where
/// some register has it, so nothing is forgotten here where paths meet.
#[derive(Default)]
pub(super) struct Expressions(HashMap<Expression, Number>);

impl Expressions {
    /// The number of the value that was computed last.
    pub(super) fn number(&self, expression: &Expression) -> Option<Number> {
        self.0.get(expression).copied()
    }

    /// Notes that the value has a number.
    pub(super) fn learn(&mut self, expression: Expression, number: Number) {
        self.0.insert(expression, number);
    }
}
