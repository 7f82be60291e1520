//! Removes steps whose result no other step reads.

use crate::ir::*;
use crate::names::{Use, for_each_step, instruction_registers, step_blocks, step_registers};
use crate::procedure::Procedure;

/// Removes computations that cannot raise and columns of reads whose registers are never read,
/// reads without columns, conditionals without steps, and loops over buffers to which nothing is
/// appended, until nothing more is found.
pub(super) fn remove(procedure: &mut Procedure) {
    loop {
        remove_where(procedure, Wanted::Errors);
        if !remove_empty_walks(procedure) {
            return;
        }
    }
}

/// Removes loops over buffers to which no step appends; returns whether there was any. The
/// condition of an UPDATE may have been decided, so that no record is saved: then no step may
/// restore one either.
fn remove_empty_walks(procedure: &mut Procedure) -> bool {
    let mut is_filled = vec![false; procedure.buffers.len()];
    for_each_step(&procedure.body, &mut |step| {
        if let Step::BufferPush { buffer, .. }
        | Step::BufferPushDistinct { buffer, .. }
        | Step::BufferFill { buffer, .. } = step
            && let Some(is_filled) = is_filled.get_mut(buffer.0 as usize)
        {
            *is_filled = true;
        }
    });
    fn sweep(block: &mut Block, is_filled: &[bool]) -> bool {
        let before = block.len();
        block.retain(|step| match step {
            Step::ForBuffer { buffer, .. } => is_filled.get(buffer.0 as usize) != Some(&false),
            _ => true,
        });
        let mut removed = block.len() < before;
        for step in block.iter_mut() {
            for inner in crate::names::step_blocks_mut(step).into_iter().flatten() {
                removed |= sweep(inner, is_filled);
            }
        }
        removed
    }
    sweep(&mut procedure.body, &is_filled)
}

/// As [`remove`], for a program that need not raise: computations that could raise go as well, and
/// with them loops that do nothing and rows that no step looks at. With `keeps_draws` no value of a
/// sequence is left out.
pub(crate) fn remove_unused(procedure: &mut Procedure, keeps_draws: bool) {
    let wanted = match keeps_draws {
        true => Wanted::RecordsAndDraws,
        false => Wanted::Records,
    };
    loop {
        remove_where(procedure, wanted);
        if !remove_buffers(procedure) {
            return;
        }
    }
}

/// What a program is run for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All that it does, its errors included.
    Errors,
    /// The records that it finds.
    Records,
    /// The same, and the values that it draws from sequences.
    RecordsAndDraws,
}

impl Wanted {
    /// Whether an instruction is wanted whatever becomes of its result.
    fn keeps(self, instruction: &Instruction) -> bool {
        match instruction {
            Instruction::Require { .. } | Instruction::RequireNotNull { .. } => true,
            Instruction::Consult { function, .. } => {
                self == Wanted::RecordsAndDraws && function.advances()
            }
            _ => false,
        }
    }
}

/// Removes what is done to buffers that no step looks at; says whether there was any. A step that
/// adds distinct rows looks at the buffer if a later step asks whether a row was added.
fn remove_buffers(procedure: &mut Procedure) -> bool {
    let is_asked = read_registers(procedure);
    let mut is_read = vec![false; procedure.buffers.len()];
    for_each_step(&procedure.body, &mut |step| match step {
        Step::ForBuffer { buffer, .. }
        | Step::BufferCount { buffer, .. }
        | Step::BufferRow { buffer, .. } => {
            is_read[buffer.0 as usize] = true;
        }
        Step::BufferPushDistinct { buffer, added, .. } => {
            is_read[buffer.0 as usize] |= is_asked[added.0 as usize];
        }
        _ => {}
    });
    fn sweep(block: &mut Block, is_read: &[bool]) -> bool {
        let before = block.len();
        let mut removed = false;
        block.retain_mut(|step| {
            for inner in crate::names::step_blocks_mut(step).into_iter().flatten() {
                removed |= sweep(inner, is_read);
            }
            match step {
                Step::BufferClear { buffer }
                | Step::BufferFill { buffer, .. }
                | Step::BufferPush { buffer, .. }
                | Step::BufferPushDistinct { buffer, .. }
                | Step::BufferSort { buffer, .. } => is_read[buffer.0 as usize],
                _ => true,
            }
        });
        removed || block.len() < before
    }
    sweep(&mut procedure.body, &is_read)
}

fn remove_where(procedure: &mut Procedure, wanted: Wanted) {
    loop {
        let is_read = match wanted {
            Wanted::Errors => read_registers(procedure),
            Wanted::Records | Wanted::RecordsAndDraws => needed_registers(procedure, wanted),
        };
        if !sweep(&mut procedure.body, &is_read, wanted) {
            return;
        }
    }
}

/// The registers that some step reads.
fn read_registers(procedure: &Procedure) -> Vec<bool> {
    let mut is_read = vec![false; procedure.registers.len()];
    for_each_step(&procedure.body, &mut |step| {
        note_reads(step, &mut is_read);
    });
    is_read
}

/// Notes the registers that a step itself reads; returns whether it is the first to do so for any.
fn note_reads(step: &Step, is_read: &mut [bool]) -> bool {
    let mut is_first = false;
    step_registers(step, &mut |register, usage| {
        if usage == Use::Read
            && let Some(is_read) = is_read.get_mut(register.0 as usize)
        {
            is_first |= !std::mem::replace(is_read, true);
        }
    });
    is_first
}

/// The registers on which the records that are found depend. A sum over a loop's iterations is read
/// by the computation of the next sum: that alone does not make it needed.
fn needed_registers(procedure: &Procedure, wanted: Wanted) -> Vec<bool> {
    let mut is_needed = vec![false; procedure.registers.len()];
    loop {
        let mut grows = false;
        mark(&procedure.body, wanted, &mut is_needed, &mut grows);
        if !grows {
            return is_needed;
        }
    }
}

/// Notes the registers that the needed steps of a block read, as far as is known; returns whether
/// it has needed steps.
fn mark(block: &[Step], wanted: Wanted, is_needed: &mut [bool], grows: &mut bool) -> bool {
    let mut any = false;
    for step in block {
        let mut has_needed = false;
        for inner in step_blocks(step) {
            has_needed |= mark(inner, wanted, is_needed, grows);
        }
        let mut writes_needed = false;
        step_registers(step, &mut |register, usage| {
            let register = is_needed.get(register.0 as usize);
            writes_needed |= usage == Use::Write && register == Some(&true);
        });
        let stays = match step {
            Step::Scalar(instruction) if wanted.keeps(instruction) => true,
            Step::Scalar(_) | Step::Read { .. } | Step::SaveRecord { .. } => writes_needed,
            Step::If { .. } => has_needed,
            Step::ForRange { .. } | Step::ForEach { .. } | Step::ForBuffer { .. } => {
                has_needed || writes_needed
            }
            _ => true,
        };
        if stays {
            *grows |= note_reads(step, is_needed);
        }
        any |= stays;
    }
    any
}

/// One round over a block; returns whether it removed something.
fn sweep(block: &mut Block, is_read: &[bool], wanted: Wanted) -> bool {
    let mut removed = false;
    let wants_errors = wanted == Wanted::Errors;
    let unread = |register: Reg| is_read.get(register.0 as usize) == Some(&false);
    block.retain_mut(|step| {
        for inner in crate::names::step_blocks_mut(step).into_iter().flatten() {
            removed |= sweep(inner, is_read, wanted);
        }
        let keep = match step {
            Step::Scalar(instruction) => {
                let may_go = !wants_errors && !wanted.keeps(instruction);
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
            // They end by themselves, and what they count is read by their bodies alone or not at
            // all.
            Step::ForRange { variable, body, .. } | Step::ForEach { variable, body, .. }
                if !wants_errors =>
            {
                !body.is_empty() || !unread(*variable)
            }
            Step::ForBuffer { row, body, .. } if !wants_errors => {
                !body.is_empty() || !row.iter().all(|register| unread(*register))
            }
            Step::SaveRecord { target, .. } if !wants_errors => !unread(*target),
            _ => true,
        };
        removed |= !keep;
        keep
    });
    removed
}

/// Whether a step may raise an error.
pub(super) fn may_raise(step: &Step) -> bool {
    match step {
        Step::Scalar(instruction) => !is_pure(instruction),
        Step::NoteUndo { .. } | Step::Read { .. } => false,
        _ => true,
    }
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
        | I::Consult { .. }
        | I::Require { .. }
        | I::RequireNotNull { .. } => false,
    }
}
