//! Instructions: ops of their own, or entries of a table.

use kiln_storage::types::{DataType, Representation};

use super::{Lowering, number};
use crate::code::{Accepts, Call, Op};
use crate::ir::*;

impl Lowering<'_> {
    pub(super) fn scalar(&mut self, instruction: &Instruction) {
        let op = match *instruction {
            Instruction::Move { target, source } => Op::Move { target, source },
            Instruction::SetNull { target } => Op::SetNull { target },
            Instruction::Integer {
                op: Arithmetic::Add,
                width,
                target,
                left,
                right,
            } => Op::Add {
                width,
                target,
                left,
                right,
            },
            Instruction::Integer {
                op: Arithmetic::Subtract,
                width,
                target,
                left,
                right,
            } => Op::Subtract {
                width,
                target,
                left,
                right,
            },
            Instruction::Integer {
                op: Arithmetic::Multiply,
                width,
                target,
                left,
                right,
            } => Op::Multiply {
                width,
                target,
                left,
                right,
            },
            Instruction::Decimal {
                op,
                target,
                left,
                right,
            } => Op::Decimal {
                op,
                target,
                left,
                right,
            },
            Instruction::Compare {
                op,
                class: Class::Integer,
                target,
                left,
                right,
            } if !matches!(op, Comparison::Distinct | Comparison::NotDistinct) => {
                Op::CompareIntegers {
                    accepts: Accepts::of(op),
                    target,
                    left,
                    right,
                }
            }
            Instruction::IsNull {
                target,
                source,
                negated,
            } => Op::IsNull {
                target,
                source,
                negated,
            },
            Instruction::CheckWidth {
                width,
                target,
                source,
            } => Op::CheckWidth {
                width,
                target,
                source,
            },
            Instruction::IntegerToDecimal { target, source } => {
                Op::IntegerToDecimal { target, source }
            }
            Instruction::Rescale {
                target,
                source,
                precision,
                scale,
            } => Op::Rescale {
                target,
                source,
                precision,
                scale,
            },
            Instruction::Element {
                target,
                array,
                index,
            } => Op::Element {
                target,
                array,
                index,
            },
            Instruction::Concat {
                target,
                left,
                right,
            } => Op::Concat {
                target,
                left,
                right,
            },
            Instruction::Require {
                condition,
                null_fails,
                ref error,
            } => Op::Require {
                condition,
                null_fails,
                failure: number(&mut self.code.failures, (**error).clone()),
            },
            Instruction::RequireNotNull { source, ref error } => Op::RequireNotNull {
                source,
                failure: number(&mut self.code.failures, (**error).clone()),
            },
            Instruction::Call {
                function,
                target,
                ref arguments,
                ..
            } => {
                let registers = arguments.iter().chain([&target]).copied();
                let call = Call {
                    function,
                    target,
                    arguments: arguments.clone(),
                    stretches: registers.filter(|it| self.is_stretch(*it)).collect(),
                };
                Op::Call {
                    call: number(&mut self.code.calls, call),
                }
            }
            ref other => Op::Scalar {
                instruction: number(&mut self.code.instructions, other.clone()),
            },
        };
        self.emit(op);
    }

    /// Whether a register holds texts, byte strings or arrays, whose length may be large.
    fn is_stretch(&self, register: Reg) -> bool {
        match self.procedure.registers.get(register.0 as usize) {
            Some(DataType::Catalog(catalog)) => matches!(
                catalog.representation(),
                Representation::Text | Representation::Vector
            ),
            Some(
                DataType::Char(_)
                | DataType::VarChar(_)
                | DataType::Text
                | DataType::Bytea
                | DataType::Array(_),
            ) => true,
            _ => false,
        }
    }
}
