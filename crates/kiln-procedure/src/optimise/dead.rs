//! Removes steps whose result nobody reads.

use crate::analysis::names::{Use, for_each_step, instruction_registers, step_registers};
use crate::ir::*;
use crate::program::Program;

/// Removes computations that cannot raise and columns of reads whose registers are never read,
/// reads without columns, and conditionals without steps, until nothing more is found.
pub(super) fn remove(program: &mut Program) {
    loop {
        let mut is_read = vec![false; program.registers.len()];
        for_each_step(&program.body, &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Read
                    && let Some(is_read) = is_read.get_mut(register.0 as usize)
                {
                    *is_read = true;
                }
            });
        });
        if !sweep(&mut program.body, &is_read) {
            return;
        }
    }
}

/// One round over a block; whether it removed something.
fn sweep(block: &mut Block, is_read: &[bool]) -> bool {
    let mut removed = false;
    let unread = |register: Reg| is_read.get(register.0 as usize) == Some(&false);
    block.retain_mut(|step| {
        for inner in crate::analysis::names::step_blocks_mut(step)
            .into_iter()
            .flatten()
        {
            removed |= sweep(inner, is_read);
        }
        let keep = match step {
            Step::Scalar(instruction) => {
                let mut useless = is_pure(instruction);
                instruction_registers(instruction, &mut |register, usage| {
                    useless &= usage == Use::Read || unread(*register);
                });
                !useless
            }
            Step::Read { columns, .. } => {
                if columns.iter().any(|(_, register)| unread(*register)) {
                    removed = true;
                    let rest = columns.iter().filter(|(_, register)| !unread(*register));
                    *columns = rest.copied().collect();
                }
                !columns.is_empty()
            }
            Step::If {
                then, otherwise, ..
            } => !then.is_empty() || !otherwise.is_empty(),
            _ => true,
        };
        removed |= !keep;
        keep
    });
    removed
}

/// Whether an instruction does nothing but write its target, and cannot raise.
fn is_pure(instruction: &Instruction) -> bool {
    use Instruction as I;
    match instruction {
        I::Move { .. }
        | I::SetNull { .. }
        | I::Compare { .. }
        | I::IsNull { .. }
        | I::AnyNull { .. }
        | I::Not { .. }
        | I::And { .. }
        | I::Or { .. }
        | I::IntegerToDecimal { .. }
        | I::IntegerToDouble { .. }
        | I::Element { .. }
        | I::ArrayLength { .. } => true,
        I::Integer { .. }
        | I::Decimal { .. }
        | I::Double { .. }
        | I::CheckWidth { .. }
        | I::Rescale { .. }
        | I::Concat { .. }
        | I::Call { .. }
        | I::Require { .. }
        | I::RequireNotNull { .. } => false,
    }
}
