//! Which registers, records and blocks a step names.
//!
//! Everything that looks at programs as a whole (verifying, optimising, analysing, explaining)
//! goes through these visitors, so that a new kind of step is described once.

use crate::ir::*;

/// How a step uses what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It reads it.
    Read,
    /// It writes it.
    Write,
}

/// Defines the visitors of registers for shared and for exclusive references.
macro_rules! register_visitors {
    ($instruction:ident, $step:ident, $failure:ident, $undo:ident $(, $exclusive:tt)?) => {
        /// Visits the registers that an instruction names, those read before those written.
        pub fn $instruction(
            instruction: &$($exclusive)? Instruction,
            visit: &mut impl FnMut(&$($exclusive)? Reg, Use),
        ) {
            use Instruction as I;
            match instruction {
                I::Move { target, source }
                | I::IsNull { target, source, .. }
                | I::Not { target, source }
                | I::IntegerToDecimal { target, source }
                | I::IntegerToDouble { target, source }
                | I::CheckWidth { target, source, .. }
                | I::Rescale { target, source, .. }
                | I::ArrayLength { target, array: source } => {
                    visit(source, Use::Read);
                    visit(target, Use::Write);
                }
                I::SetNull { target } => visit(target, Use::Write),
                I::Integer { target, left, right, .. }
                | I::Decimal { target, left, right, .. }
                | I::Double { target, left, right, .. }
                | I::Compare { target, left, right, .. }
                | I::And { target, left, right }
                | I::Or { target, left, right }
                | I::Concat { target, left, right }
                | I::Element { target, array: left, index: right } => {
                    visit(left, Use::Read);
                    visit(right, Use::Read);
                    visit(target, Use::Write);
                }
                I::AnyNull { target, sources: arguments }
                | I::Call { target, arguments, .. }
                | I::Consult { target, arguments, .. } => {
                    for argument in arguments {
                        visit(argument, Use::Read);
                    }
                    visit(target, Use::Write);
                }
                I::Require { condition, error, .. } => {
                    visit(condition, Use::Read);
                    $failure(error, visit);
                }
                I::RequireNotNull { source, error } => {
                    visit(source, Use::Read);
                    $failure(error, visit);
                }
            }
        }

        fn $failure(
            failure: &$($exclusive)? Failure,
            visit: &mut impl FnMut(&$($exclusive)? Reg, Use),
        ) {
            for argument in & $($exclusive)? failure.arguments {
                visit(argument, Use::Read);
            }
            for text in [& $($exclusive)? failure.detail, & $($exclusive)? failure.hint] {
                if let Some(TextSource::Register(register)) = text {
                    visit(register, Use::Read);
                }
            }
        }

        /// Visits the registers that a step itself names, without those of the blocks in it;
        /// those read before those written. A loop's condition counts as the loop's own.
        pub fn $step(
            step: &$($exclusive)? Step,
            visit: &mut impl FnMut(&$($exclusive)? Reg, Use),
        ) {
            match step {
                Step::Scalar(instruction) => $instruction(instruction, visit),
                Step::If { condition, .. } => visit(condition, Use::Read),
                Step::Loop { condition, .. } => {
                    if let Some(condition) = condition {
                        visit(condition, Use::Read);
                    }
                }
                Step::ForRange { variable, first, last, step, .. } => {
                    visit(first, Use::Read);
                    visit(last, Use::Read);
                    visit(step, Use::Read);
                    visit(variable, Use::Write);
                }
                Step::ForEach { variable, array, .. } => {
                    visit(array, Use::Read);
                    visit(variable, Use::Write);
                }
                // The optimiser puts it in after the last pass that asks for names.
                Step::Prefetch { .. } => {}
                Step::Exit { .. } | Step::Continue { .. } | Step::Return => {}
                Step::RaiseAgain { .. } => {}
                Step::Protect { caught, .. } => visit(caught, Use::Write),
                Step::NoteUndo { undo, .. } => {
                    for register in undo.$undo() {
                        visit(register, Use::Read);
                    }
                }
                Step::Diagnose { target, .. } => visit(target, Use::Write),
                Step::Raise { error } | Step::Notice { error, .. } => $failure(error, visit),
                Step::Notify { channel, payload } => {
                    visit(channel, Use::Read);
                    visit(payload, Use::Read);
                }
                Step::Lookup { key, found, .. } => {
                    for register in key {
                        visit(register, Use::Read);
                    }
                    visit(found, Use::Write);
                }
                Step::Scan { range, .. } => {
                    for register in & $($exclusive)? range.prefix {
                        visit(register, Use::Read);
                    }
                    for bound in [& $($exclusive)? range.lower, & $($exclusive)? range.upper] {
                        if let Some(Bound { value, .. }) = bound {
                            visit(value, Use::Read);
                        }
                    }
                }
                Step::Read { columns, .. } => {
                    for (_, register) in columns {
                        visit(register, Use::Write);
                    }
                }
                Step::Update { columns, .. } => {
                    for (_, register) in columns {
                        visit(register, Use::Read);
                    }
                }
                Step::Insert { values, conflict, .. } => {
                    for register in values {
                        visit(register, Use::Read);
                    }
                    if let Some(Conflict { inserted, .. }) = conflict {
                        visit(inserted, Use::Write);
                    }
                }
                Step::Delete { .. } => {}
                Step::SaveRecord { target, .. } => visit(target, Use::Write),
                Step::RestoreRecord { source, .. } => visit(source, Use::Read),
                Step::BufferClear { .. } | Step::BufferSort { .. } => {}
                Step::BufferFill { arguments, .. } => {
                    for register in arguments {
                        visit(register, Use::Read);
                    }
                }
                Step::BufferPush { row, .. } | Step::Emit { row } => {
                    for register in row {
                        visit(register, Use::Read);
                    }
                }
                Step::BufferPushDistinct { row, added, .. } => {
                    for register in row {
                        visit(register, Use::Read);
                    }
                    visit(added, Use::Write);
                }
                Step::BufferCount { target, .. } => visit(target, Use::Write),
                Step::BufferRow { at, row, .. } => {
                    visit(at, Use::Read);
                    for register in row {
                        visit(register, Use::Write);
                    }
                }
                Step::ForBuffer { matching, row, .. } => {
                    for Match { value, .. } in matching {
                        visit(value, Use::Read);
                    }
                    for register in row {
                        visit(register, Use::Write);
                    }
                }
            }
        }
    };
}

register_visitors!(
    instruction_registers,
    step_registers,
    failure_registers,
    registers
);
register_visitors!(
    instruction_registers_mut,
    step_registers_mut,
    failure_registers_mut,
    registers_mut,
    mut
);

/// The record register that a step itself names, and how it uses it.
pub fn step_record(step: &Step) -> Option<(RecordReg, Use)> {
    match step {
        Step::Lookup { record, .. }
        | Step::Scan { record, .. }
        | Step::Insert { record, .. }
        | Step::RestoreRecord { record, .. } => Some((*record, Use::Write)),
        Step::Read { record, .. }
        | Step::Update { record, .. }
        | Step::Delete { record, .. }
        | Step::NoteUndo { record, .. }
        | Step::SaveRecord { record, .. } => Some((*record, Use::Read)),
        _ => None,
    }
}

/// The record register that a step itself names, to be changed.
pub fn step_record_mut(step: &mut Step) -> Option<&mut RecordReg> {
    match step {
        Step::Lookup { record, .. }
        | Step::Scan { record, .. }
        | Step::Insert { record, .. }
        | Step::RestoreRecord { record, .. } => Some(record),
        other => step_record_read_mut(other),
    }
}

/// The record register that a step reads, to be changed.
pub fn step_record_read_mut(step: &mut Step) -> Option<&mut RecordReg> {
    match step {
        Step::Read { record, .. }
        | Step::Update { record, .. }
        | Step::Delete { record, .. }
        | Step::NoteUndo { record, .. }
        | Step::SaveRecord { record, .. } => Some(record),
        _ => None,
    }
}

/// The operation that a step is.
pub fn step_operation(step: &Step) -> Option<OpId> {
    match step {
        Step::Lookup { op, .. }
        | Step::Scan { op, .. }
        | Step::Read { op, .. }
        | Step::Update { op, .. }
        | Step::Insert { op, .. }
        | Step::Delete { op, .. } => Some(*op),
        _ => None,
    }
}

/// The number of the operation that a step is, to be changed.
pub fn step_operation_mut(step: &mut Step) -> Option<&mut OpId> {
    match step {
        Step::Lookup { op, .. }
        | Step::Scan { op, .. }
        | Step::Read { op, .. }
        | Step::Update { op, .. }
        | Step::Insert { op, .. }
        | Step::Delete { op, .. } => Some(op),
        _ => None,
    }
}

/// The blocks in a step, in the order in which they run.
pub fn step_blocks(step: &Step) -> [&[Step]; 2] {
    match step {
        Step::If {
            then, otherwise, ..
        } => [then, otherwise],
        Step::Loop { before, body, .. } => [before, body],
        Step::ForRange { body, .. }
        | Step::ForEach { body, .. }
        | Step::Scan { body, .. }
        | Step::ForBuffer { body, .. }
        | Step::Protect { body, .. } => [body, &[]],
        _ => [&[], &[]],
    }
}

/// The blocks in a step, to be changed.
pub fn step_blocks_mut(step: &mut Step) -> [Option<&mut Block>; 2] {
    match step {
        Step::If {
            then, otherwise, ..
        } => [Some(then), Some(otherwise)],
        Step::Loop { before, body, .. } => [Some(before), Some(body)],
        Step::ForRange { body, .. }
        | Step::ForEach { body, .. }
        | Step::Scan { body, .. }
        | Step::ForBuffer { body, .. }
        | Step::Protect { body, .. } => [Some(body), None],
        _ => [None, None],
    }
}

/// Visits every step of a block, each before the steps of its own blocks.
pub fn for_each_step<'a>(block: &'a [Step], visit: &mut impl FnMut(&'a Step)) {
    for step in block {
        visit(step);
        for inner in step_blocks(step) {
            for_each_step(inner, visit);
        }
    }
}

/// Visits every step of a block, to be changed, each before the steps of its own blocks.
pub fn for_each_step_mut(block: &mut Block, visit: &mut impl FnMut(&mut Step)) {
    for step in block {
        visit(step);
        for inner in step_blocks_mut(step).into_iter().flatten() {
            for_each_step_mut(inner, visit);
        }
    }
}

/// The step's kind, for messages.
pub fn step_name(step: &Step) -> &'static str {
    use Instruction as I;
    match step {
        Step::Scalar(instruction) => match instruction {
            I::Move { .. } => "Move",
            I::SetNull { .. } => "SetNull",
            I::Integer { .. } => "Integer",
            I::Decimal { .. } => "Decimal",
            I::Double { .. } => "Double",
            I::Compare { .. } => "Compare",
            I::IsNull { .. } => "IsNull",
            I::AnyNull { .. } => "AnyNull",
            I::Not { .. } => "Not",
            I::And { .. } => "And",
            I::Or { .. } => "Or",
            I::IntegerToDecimal { .. } => "IntegerToDecimal",
            I::IntegerToDouble { .. } => "IntegerToDouble",
            I::CheckWidth { .. } => "CheckWidth",
            I::Rescale { .. } => "Rescale",
            I::Concat { .. } => "Concat",
            I::Element { .. } => "Element",
            I::ArrayLength { .. } => "ArrayLength",
            I::Call { .. } => "Call",
            I::Consult { .. } => "Consult",
            I::Require { .. } => "Require",
            I::RequireNotNull { .. } => "RequireNotNull",
        },
        Step::If { .. } => "If",
        Step::Loop { .. } => "Loop",
        Step::ForRange { .. } => "ForRange",
        Step::ForEach { .. } => "ForEach",
        Step::Exit { .. } => "Exit",
        Step::Continue { .. } => "Continue",
        Step::Return => "Return",
        Step::Raise { .. } => "Raise",
        Step::Notice { .. } => "Notice",
        Step::Notify { .. } => "Notify",
        Step::Protect { .. } => "Protect",
        Step::NoteUndo { .. } => "NoteUndo",
        Step::Diagnose { .. } => "Diagnose",
        Step::RaiseAgain { .. } => "RaiseAgain",
        Step::Prefetch { .. } => "Prefetch",
        Step::Lookup { .. } => "Lookup",
        Step::Scan { .. } => "Scan",
        Step::Read { .. } => "Read",
        Step::Update { .. } => "Update",
        Step::Insert { .. } => "Insert",
        Step::Delete { .. } => "Delete",
        Step::SaveRecord { .. } => "SaveRecord",
        Step::RestoreRecord { .. } => "RestoreRecord",
        Step::BufferClear { .. } => "BufferClear",
        Step::BufferFill { .. } => "BufferFill",
        Step::BufferPush { .. } => "BufferPush",
        Step::BufferPushDistinct { .. } => "BufferPushDistinct",
        Step::BufferSort { .. } => "BufferSort",
        Step::BufferCount { .. } => "BufferCount",
        Step::BufferRow { .. } => "BufferRow",
        Step::ForBuffer { .. } => "ForBuffer",
        Step::Emit { .. } => "Emit",
    }
}
