//! Removes steps whose result nobody reads.

use crate::analysis::names::{Use, for_each_step, instruction_registers, step_registers};
use crate::ir::*;
use crate::program::Program;

/// Removes computations that cannot raise and columns of reads whose registers are never read,
/// reads without columns, and conditionals without steps, until nothing more is found.
pub(super) fn remove(program: &mut Program) {
    remove_where(program, &Wanted::Errors);
}

/// As [`remove`], for who wants no errors: computations that could raise go as well, and with them
/// loops that do nothing and rows that nobody looks at.
pub(crate) fn remove_unused(program: &mut Program) {
    loop {
        remove_where(program, &Wanted::Records);
        if !remove_buffers(program) {
            return;
        }
    }
}

/// What a program is run for.
#[derive(PartialEq, Eq)]
enum Wanted {
    /// All that it does, its errors included.
    Errors,
    /// The records that it finds.
    Records,
}

/// Removes what is done to buffers that nobody looks at; whether there was any.
fn remove_buffers(program: &mut Program) -> bool {
    let mut is_read = vec![false; program.buffers.len()];
    for_each_step(&program.body, &mut |step| match step {
        Step::ForBuffer { buffer, .. }
        | Step::BufferCount { buffer, .. }
        | Step::BufferPushDistinct { buffer, .. } => is_read[buffer.0 as usize] = true,
        _ => {}
    });
    fn sweep(block: &mut Block, is_read: &[bool]) -> bool {
        let before = block.len();
        let mut removed = false;
        block.retain_mut(|step| {
            for inner in crate::analysis::names::step_blocks_mut(step)
                .into_iter()
                .flatten()
            {
                removed |= sweep(inner, is_read);
            }
            match step {
                Step::BufferClear { buffer }
                | Step::BufferPush { buffer, .. }
                | Step::BufferSort { buffer, .. } => is_read[buffer.0 as usize],
                _ => true,
            }
        });
        removed || block.len() < before
    }
    sweep(&mut program.body, &is_read)
}

fn remove_where(program: &mut Program, wanted: &Wanted) {
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
        if !sweep(&mut program.body, &is_read, wanted) {
            return;
        }
    }
}

/// One round over a block; whether it removed something.
fn sweep(block: &mut Block, is_read: &[bool], wanted: &Wanted) -> bool {
    let mut removed = false;
    let unread = |register: Reg| is_read.get(register.0 as usize) == Some(&false);
    block.retain_mut(|step| {
        for inner in crate::analysis::names::step_blocks_mut(step)
            .into_iter()
            .flatten()
        {
            removed |= sweep(inner, is_read, wanted);
        }
        let keep = match step {
            Step::Scalar(instruction) => {
                let is_check = matches!(
                    instruction,
                    Instruction::Require { .. } | Instruction::RequireNotNull { .. }
                );
                let may_go = *wanted == Wanted::Records && !is_check;
                let mut useless = may_go || is_pure(instruction);
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
            // They end by themselves, and what they count is read by their bodies alone or not at all.
            Step::ForRange { variable, body, .. } | Step::ForEach { variable, body, .. }
                if *wanted == Wanted::Records =>
            {
                !body.is_empty() || !unread(*variable)
            }
            Step::ForBuffer { row, body, .. } if *wanted == Wanted::Records => {
                !body.is_empty() || !row.iter().all(|register| unread(*register))
            }
            Step::SaveRecord { target, .. } if *wanted == Wanted::Records => !unread(*target),
            _ => true,
        };
        removed |= !keep;
        keep
    });
    removed
}

/// Whether an instruction does nothing but write its target, and cannot raise.
pub(super) fn is_pure(instruction: &Instruction) -> bool {
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
