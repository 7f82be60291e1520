//! What an updater need not do: tests for NULL that are decided, computations whose result no step
//! takes.

use std::collections::BTreeSet;

use super::{instruction_can_raise, registers_of};
use crate::ir::*;
use crate::names::{Use, for_each_step, step_registers};

/// Decides tests for NULL of what is not NULL, and takes the branches that follow. `present` has
/// the registers that are not NULL, `refuted` those that are FALSE.
pub(super) fn fold(
    steps: Block,
    present: &mut BTreeSet<Reg>,
    refuted: &mut BTreeSet<Reg>,
    proven: &mut bool,
) -> Block {
    use Instruction as I;
    let mut out = Block::new();
    for step in steps {
        match step {
            Step::If {
                condition,
                otherwise,
                ..
            } if refuted.contains(&condition) => {
                *proven = true;
                out.extend(fold(otherwise, present, refuted, proven));
            }
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let (mut other_present, mut other_refuted) = (present.clone(), refuted.clone());
                let then = fold(then, present, refuted, proven);
                let otherwise = fold(otherwise, &mut other_present, &mut other_refuted, proven);
                present.retain(|register| other_present.contains(register));
                refuted.retain(|register| other_refuted.contains(register));
                out.push(Step::If {
                    condition,
                    then,
                    otherwise,
                });
            }
            Step::Scalar(instruction) => {
                let mut inputs_present = true;
                let mut target = None;
                let step = Step::Scalar(instruction);
                step_registers(&step, &mut |register, usage| match usage {
                    Use::Read => inputs_present &= present.contains(register),
                    Use::Write => target = Some(*register),
                });
                let Step::Scalar(instruction) = &step else {
                    unreachable!("just made")
                };
                let is_test = matches!(
                    instruction,
                    I::IsNull { negated: false, .. } | I::AnyNull { .. }
                );
                let stays_present = match instruction {
                    I::IsNull { .. } | I::AnyNull { .. } => true,
                    I::SetNull { .. } | I::Element { .. } | I::Call { .. } | I::Consult { .. } => {
                        false
                    }
                    _ => inputs_present,
                };
                if let I::RequireNotNull { source, .. } = instruction
                    && present.contains(source)
                {
                    *proven = true;
                    continue;
                }
                if let Some(target) = target {
                    match stays_present {
                        true => present.insert(target),
                        false => present.remove(&target),
                    };
                    match is_test && inputs_present {
                        true => refuted.insert(target),
                        false => refuted.remove(&target),
                    };
                }
                out.push(step);
            }
            other => out.push(other),
        }
    }
    out
}

/// Takes out computations that cannot raise and whose result no step takes.
pub(super) fn remove_dead(steps: &mut Block, results: &BTreeSet<Reg>) {
    loop {
        let mut read = results.clone();
        for_each_step(steps, &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Read {
                    read.insert(*register);
                }
            });
        });
        if !remove_unread(steps, &read) {
            return;
        }
    }
}

fn remove_unread(steps: &mut Block, read: &BTreeSet<Reg>) -> bool {
    let before = steps.len();
    steps.retain(|step| match step {
        Step::Scalar(instruction) if !instruction_can_raise(instruction) => {
            registers_of(step).1.iter().any(|one| read.contains(one))
        }
        Step::If {
            then, otherwise, ..
        } => !then.is_empty() || !otherwise.is_empty(),
        _ => true,
    });
    let mut removed = steps.len() < before;
    for step in steps {
        if let Step::If {
            then, otherwise, ..
        } = step
        {
            removed |= remove_unread(then, read);
            removed |= remove_unread(otherwise, read);
        }
    }
    removed
}

/// Adds to `needed` what is read before it is certainly written.
pub(super) fn undefined(steps: &[Step], defined: &mut BTreeSet<Reg>, needed: &mut BTreeSet<Reg>) {
    for step in steps {
        let mut written = Vec::new();
        step_registers(step, &mut |register, usage| match usage {
            Use::Read => {
                if !defined.contains(register) {
                    needed.insert(*register);
                }
            }
            Use::Write => written.push(*register),
        });
        defined.extend(written);
        if let Step::If {
            then, otherwise, ..
        } = step
        {
            let mut other = defined.clone();
            undefined(then, defined, needed);
            undefined(otherwise, &mut other, needed);
            defined.retain(|register| other.contains(register));
        }
    }
}
