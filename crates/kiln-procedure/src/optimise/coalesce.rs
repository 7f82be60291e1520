//! Computes a value where it is wanted, and not in a register from which it is only moved there:
//! what the branches of a `CASE` give, assigned to a variable.
//!
//! A move goes when no other step reads its source, the steps directly before it in its block are
//! all that write the source, and none of these names the target, leaves the block or does more
//! with the source than to compute or read a column into it. Then they write the target. Within a
//! protected region no step between the first and the move may raise: the handler would find the
//! target written too early.

use super::dead::may_raise;
use super::numbering::{has_blocks, numbers_in_range};
use crate::ir::*;
use crate::names::{
    Use, for_each_step, for_each_step_mut, step_blocks_mut, step_registers, step_registers_mut,
};
use crate::procedure::Procedure;

/// How often each register is read and written in the whole program.
#[derive(Default, Clone, Copy)]
struct Count {
    reads: u32,
    writes: u32,
}

/// Removes such moves.
pub(super) fn run(procedure: &mut Procedure) {
    // Programs that name what does not exist are for verification to refuse.
    if !numbers_in_range(procedure) {
        return;
    }
    let mut counts = vec![Count::default(); procedure.registers.len()];
    for_each_step(&procedure.body, &mut |step| {
        step_registers(step, &mut |register, usage| {
            let count = &mut counts[register.0 as usize];
            match usage {
                Use::Read => count.reads += 1,
                Use::Write => count.writes += 1,
            }
        });
    });
    let mut body = std::mem::take(&mut procedure.body);
    block(procedure, &mut counts, &mut body, false);
    procedure.body = body;
}

fn block(procedure: &Procedure, counts: &mut [Count], steps: &mut Block, is_protected: bool) {
    for step in steps.iter_mut() {
        let is_protected = is_protected || matches!(step, Step::Protect { .. });
        for inner in step_blocks_mut(step).into_iter().flatten() {
            block(procedure, counts, inner, is_protected);
        }
    }
    let mut position = 0;
    while position < steps.len() {
        if let Step::Scalar(Instruction::Move { target, source }) = steps[position]
            && procedure.registers[target.0 as usize] == procedure.registers[source.0 as usize]
            && let Some(first) = first_writer(counts, steps, position, source, target)
            && !(is_protected && may_stop(steps, first, position))
        {
            for_each_in(&mut steps[first..position], source, target);
            steps.remove(position);
            let writes = std::mem::take(&mut counts[source.0 as usize]).writes;
            counts[target.0 as usize].writes += writes - 1;
        } else {
            position += 1;
        }
    }
}

/// Whether an error may come between a step, once it has written something, and the one at `to`.
fn may_stop(steps: &[Step], from: usize, to: usize) -> bool {
    has_blocks(&steps[from]) || steps[from + 1..to].iter().any(may_raise)
}

/// Writes `target` instead of `source` in these steps.
fn for_each_in(steps: &mut [Step], source: Reg, target: Reg) {
    for step in steps {
        let mut one = vec![std::mem::replace(step, Step::Return)];
        for_each_step_mut(&mut one, &mut |step| {
            step_registers_mut(step, &mut |register, usage| {
                if usage == Use::Write && *register == source {
                    *register = target;
                }
            });
        });
        *step = one.remove(0);
    }
}

/// The first of the steps before the move at `position` that write its source, if the move can go.
fn first_writer(
    counts: &[Count],
    steps: &[Step],
    position: usize,
    source: Reg,
    target: Reg,
) -> Option<usize> {
    let Count { reads, writes } = counts[source.0 as usize];
    if source == target || reads != 1 || writes == 0 {
        return None;
    }
    let mut left = writes;
    for first in (0..position).rev() {
        let mut is_usable = true;
        for_each_step(std::slice::from_ref(&steps[first]), &mut |step| {
            is_usable &= !matches!(
                step,
                Step::Exit { .. } | Step::Continue { .. } | Step::Return
            );
            step_registers(step, &mut |register, usage| {
                is_usable &= *register != target;
                if usage == Use::Write && *register == source {
                    is_usable &= matches!(step, Step::Scalar(_) | Step::Read { .. });
                    left -= 1;
                }
            });
        });
        if !is_usable {
            return None;
        }
        if left == 0 {
            return Some(first);
        }
    }
    None
}
