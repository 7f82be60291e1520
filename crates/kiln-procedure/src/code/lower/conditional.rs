//! Conditionals: together with what decides them, or as one jump over a table.

use super::{Lowering, Pending, known, number};
use crate::code::{Accepts, Op, Switch};
use crate::ir::*;

/// A conditional that is one jump over a table.
struct Cases<'s> {
    source: Reg,
    /// Each constant with the branch that it leads to.
    branches: Vec<(i64, &'s [Step])>,
    /// The branch of all else, NULL too.
    otherwise: &'s [Step],
}

/// From how many branches on a table is worth it.
const SWITCH_MIN: usize = 4;

/// The constants of a table lie within this.
const SWITCH_MAX: i64 = 256;

impl Lowering<'_> {
    pub(super) fn conditional(&mut self, condition: Reg, then: &[Step], otherwise: &[Step]) {
        if let Some(cases) = self.cases(condition, then, otherwise) {
            return self.switch(cases);
        }
        let end = self.label();
        if then.is_empty() {
            self.jump_if(condition, true, end);
            self.branch(otherwise);
        } else if otherwise.is_empty() {
            self.jump_if(condition, false, end);
            self.branch(then);
        } else {
            let other = self.label();
            self.jump_if(condition, false, other);
            self.branch(then);
            self.emit(Op::Jump { to: self.to(end) });
            self.land(other);
            self.branch(otherwise);
        }
        self.land(end);
    }

    /// The branches of a conditional that compares one integer with one constant after the other.
    /// The comparison with the first is the op before.
    fn cases<'s>(
        &self,
        condition: Reg,
        then: &'s [Step],
        otherwise: &'s [Step],
    ) -> Option<Cases<'s>> {
        let Some(Op::CompareIntegers {
            accepts,
            target,
            left,
            right,
        }) = self.code.ops.last()
        else {
            return None;
        };
        let first = Instruction::Compare {
            op: Comparison::Equal,
            class: Class::Integer,
            target: *target,
            left: *left,
            right: *right,
        };
        if *accepts != Accepts::of(Comparison::Equal) || self.landed == self.code.ops.len() {
            return None;
        }
        let mut cases = Cases {
            source: *left,
            branches: Vec::new(),
            otherwise: &[],
        };
        let (mut comparison, mut condition) = (&first, condition);
        let (mut then, mut otherwise) = (then, otherwise);
        while let Some(constant) = self.case(comparison, condition, cases.source) {
            let known = cases.branches.iter().any(|(known, _)| *known == constant);
            if !known {
                cases.branches.push((constant, then));
            }
            cases.otherwise = otherwise;
            let [
                Step::Scalar(next),
                Step::If {
                    condition: next_condition,
                    then: next_then,
                    otherwise: next_otherwise,
                },
            ] = otherwise
            else {
                break;
            };
            (comparison, condition) = (next, *next_condition);
            (then, otherwise) = (next_then, next_otherwise);
        }
        let constants = || cases.branches.iter().map(|(constant, _)| *constant);
        let (least, greatest) = (constants().min()?, constants().max()?);
        let is_dense = greatest.checked_sub(least)? < SWITCH_MAX;
        (is_dense && cases.branches.len() >= SWITCH_MIN).then_some(cases)
    }

    /// The constant with which the instruction compares `source` for equality, if it does and
    /// has no other purpose than to decide `condition`.
    fn case(&self, instruction: &Instruction, condition: Reg, source: Reg) -> Option<i64> {
        match instruction {
            Instruction::Compare {
                op: Comparison::Equal,
                class: Class::Integer,
                target,
                left,
                right,
            } if *left == source
                && *target == condition
                && *target != source
                && self.reads[target.0 as usize] == 1 =>
            {
                let value = known(&self.constants, *right)?;
                (!value.is_null()).then(|| value.as_i64())
            }
            _ => None,
        }
    }

    fn switch(&mut self, cases: Cases<'_>) {
        // The comparison with the first constant.
        self.code.ops.pop();
        let (end, other) = (self.label(), self.label());
        let constants = || cases.branches.iter().map(|(constant, _)| *constant);
        let least = constants().min().unwrap_or(0);
        let greatest = constants().max().unwrap_or(0);
        let count = (greatest - least + 1) as usize;
        let table = Switch {
            least,
            to: vec![self.to(other); count],
        };
        let table = number(&mut self.code.switches, table);
        self.emit(Op::Switch {
            source: cases.source,
            table,
        });
        self.land(other);
        self.branch(cases.otherwise);
        for (constant, then) in &cases.branches {
            self.emit(Op::Jump { to: self.to(end) });
            let label = self.label();
            self.land(label);
            let to = self.to(label);
            self.code.switches[table as usize].to[(constant - least) as usize] = to;
            self.branch(then);
        }
        self.land(end);
    }

    /// Jumps when whether the condition is TRUE is `when`; together with the op that computed the
    /// condition, where that one has no other purpose.
    pub(super) fn jump_if(&mut self, condition: Reg, when: bool, label: Pending) {
        let to = self.to(label);
        let only_here = self.reads[condition.0 as usize] == 1;
        let follows = self.landed < self.code.ops.len();
        let merged = match self.code.ops.last_mut().filter(|_| follows) {
            // The register is written all the same: others may read it.
            Some(Op::Lookup {
                lookup,
                to: missing,
            }) if !when && self.code.lookups[*lookup as usize].found == condition => {
                *missing = to;
                return;
            }
            Some(Op::CompareIntegers {
                accepts,
                target,
                left,
                right,
            }) if only_here && *target == condition => Some(Op::JumpIfIntegers {
                when,
                accepts: *accepts,
                left: *left,
                right: *right,
                to,
            }),
            Some(Op::IsNull {
                target,
                source,
                negated,
            }) if only_here && *target == condition => Some(Op::JumpIfNull {
                when: when != *negated,
                source: *source,
                to,
            }),
            Some(Op::Scalar { instruction }) if only_here => {
                match &self.code.instructions[*instruction as usize] {
                    Instruction::Not { target, source } if *target == condition => {
                        Some(Op::JumpIfFalse {
                            when,
                            condition: *source,
                            to,
                        })
                    }
                    Instruction::AnyNull { target, sources } if *target == condition => {
                        let registers = number(&mut self.code.register_lists, sources.clone());
                        Some(Op::JumpIfAnyNull {
                            when,
                            registers,
                            to,
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let alone = Op::JumpIf {
            when,
            condition,
            to,
        };
        if merged.is_some() {
            self.code.ops.pop();
        }
        self.emit(merged.unwrap_or(alone));
    }
}
