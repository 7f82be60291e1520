//! Passes over the finished steps of a body.

use std::collections::HashMap;

use kiln_procedure::analysis::names::{
    Use, for_each_step, instruction_registers_mut, step_blocks, step_blocks_mut, step_registers,
    step_registers_mut,
};
use kiln_procedure::ir::{Block, Instruction, Reg, Step};
use kiln_storage::error::SqlState;
use kiln_storage::types::{DataType, Value};

use super::super::types::same_base;
use super::super::{Compiler, fail};
use super::variables::failure;

/// Appends the steps of a body: accesses to records that may be unassigned are guarded, and
/// needless copies removed.
pub(super) fn append(c: &mut Compiler<'_>, steps: Block, guards: &[(Reg, Vec<Reg>)]) {
    let mut steps = steps;
    if !guards.is_empty() {
        let yes = c.builder.constant(DataType::Boolean, Value::Boolean(true));
        let mut guard = Guard::new(yes, guards);
        guard.block(&mut steps, Some(Vec::new()));
    }
    coalesce(&mut steps, &|one, other| {
        let (one, other) = (c.builder.type_of(one), c.builder.type_of(other));
        one.is_string() && other.is_string() || same_base(one, other)
    });
    remove_dead_stores(&mut steps);
    for step in steps {
        c.builder.push(step);
    }
}

/// Guards reads of record fields by what says whether the record is assigned.
struct Guard {
    /// The register of TRUE.
    yes: Reg,
    /// The flag of each field.
    flags: HashMap<Reg, Reg>,
    /// Flags known to be TRUE at every EXIT of the open loops; `None` where there is none yet.
    exits: Vec<Option<Vec<Reg>>>,
}

/// The flags that are TRUE for certain; `None` where control never gets.
type Known = Option<Vec<Reg>>;

fn join(left: Known, right: Known) -> Known {
    match (left, right) {
        (Some(left), Some(right)) => Some(
            left.into_iter()
                .filter(|flag| right.contains(flag))
                .collect(),
        ),
        (one, None) | (None, one) => one,
    }
}

impl Guard {
    fn new(yes: Reg, guards: &[(Reg, Vec<Reg>)]) -> Guard {
        let mut flags = HashMap::new();
        for (flag, fields) in guards {
            flags.extend(fields.iter().map(|field| (*field, *flag)));
        }
        Guard {
            yes,
            flags,
            exits: Vec::new(),
        }
    }

    /// Goes through a block with what is known before it; returns what is known behind it.
    fn block(&mut self, block: &mut Block, before: Known) -> Known {
        let mut known = before;
        let mut index = 0;
        while index < block.len() {
            let mut needed: Vec<Reg> = Vec::new();
            step_registers(&block[index], &mut |register, usage| {
                if usage == Use::Read
                    && let Some(flag) = self.flags.get(register)
                    && !needed.contains(flag)
                {
                    needed.push(*flag);
                }
            });
            if let Some(state) = &mut known {
                needed.retain(|flag| !state.contains(flag));
                for flag in needed {
                    block.insert(index, require(flag));
                    index += 1;
                    state.push(flag);
                }
            }
            known = self.step(&mut block[index], known);
            index += 1;
        }
        known
    }

    fn step(&mut self, step: &mut Step, known: Known) -> Known {
        match step {
            Step::Scalar(Instruction::Move { target, source }) => {
                let (target, source) = (*target, *source);
                let mut known = known;
                if let Some(state) = &mut known
                    && self.flags.values().any(|flag| *flag == target)
                {
                    state.retain(|flag| *flag != target);
                    if source == self.yes {
                        state.push(target);
                    }
                }
                known
            }
            Step::If {
                then, otherwise, ..
            } => {
                let after = self.block(then, known.clone());
                let otherwise = self.block(otherwise, known);
                join(after, otherwise)
            }
            Step::Loop {
                before,
                condition,
                body,
            } => {
                let tested = self.block(before, known);
                self.exits.push(None);
                self.block(body, tested.clone());
                let exits = self.exits.pop().flatten();
                join(if condition.is_some() { tested } else { None }, exits)
            }
            Step::ForRange { body, .. }
            | Step::ForEach { body, .. }
            | Step::Scan { body, .. }
            | Step::ForBuffer { body, .. }
            | Step::Protect { body, .. } => {
                self.exits.push(None);
                self.block(body, known.clone());
                self.exits.pop();
                known
            }
            Step::Exit { depth } => {
                let target = self.exits.len().checked_sub(*depth as usize + 1);
                if let Some(target) = target {
                    let before = self.exits[target].take();
                    self.exits[target] = join(before, known);
                }
                None
            }
            Step::Continue { .. } | Step::Return | Step::Raise { .. } | Step::RaiseAgain { .. } => {
                None
            }
            _ => known,
        }
    }
}

fn require(condition: Reg) -> Step {
    let error = fail(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the record is not assigned yet",
        None,
    )
    .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.");
    let error = Box::new(failure(&error));
    Step::Scalar(Instruction::Require {
        condition,
        null_fails: true,
        error,
    })
}

/// How often a register is written and read.
#[derive(Clone, Copy, Default)]
struct Count {
    writes: u32,
    reads: u32,
}

/// Where a value is computed into a temporary that is moved to a variable in the end, computes it
/// into the variable. `alike` says whether a register can stand for another wherever it is read.
fn coalesce(steps: &mut Block, alike: &dyn Fn(Reg, Reg) -> bool) {
    let mut counts: HashMap<Reg, Count> = HashMap::new();
    for_each_step(steps, &mut |step| {
        step_registers(step, &mut |register, usage| {
            let count = counts.entry(*register).or_default();
            match usage {
                Use::Read => count.reads += 1,
                Use::Write => count.writes += 1,
            }
        });
    });
    coalesce_block(steps, &counts, alike);
}

fn coalesce_block(
    block: &mut Block,
    counts: &HashMap<Reg, Count>,
    alike: &dyn Fn(Reg, Reg) -> bool,
) {
    let mut index = 0;
    while index < block.len() {
        // What a protected region writes early, its handlers may find when an error comes between.
        if !matches!(block[index], Step::Protect { .. }) {
            for inner in step_blocks_mut(&mut block[index]).into_iter().flatten() {
                coalesce_block(inner, counts, alike);
            }
        }
        if let Step::Scalar(Instruction::Move { target, source }) = &block[index] {
            let (target, source) = (*target, *source);
            let count = counts.get(&source).copied().unwrap_or_default();
            if count.writes == 1
                && (count.reads == 1 || alike(source, target))
                && retarget(&mut block[..index], source, target, count.reads - 1)
            {
                block.remove(index);
                continue;
            }
        }
        index += 1;
    }
}

/// Lets the step that writes `source`, and the `reads` that follow it, name `target` instead. It
/// does so only if they are all among `steps`, and nothing from there to the end of the steps
/// names `target` or goes elsewhere.
fn retarget(steps: &mut [Step], source: Reg, target: Reg, reads: u32) -> bool {
    let mut found = 0;
    for index in (0..steps.len()).rev() {
        let step = &steps[index];
        let (mut writes, mut names_target, mut writes_target) = (false, false, false);
        step_registers(step, &mut |register, usage| {
            writes |= *register == source && usage == Use::Write;
            names_target |= *register == target;
            writes_target |= *register == target && usage == Use::Write;
        });
        if writes {
            if writes_target
                || found != reads
                || !replace_written(&mut steps[index], source, target)
            {
                return false;
            }
            steps[index + 1..]
                .iter_mut()
                .for_each(|step| replace_read(step, source, target));
            return true;
        }
        let goes = matches!(
            step,
            Step::Exit { .. } | Step::Continue { .. } | Step::Return
        );
        if names_target
            || goes
            || step_blocks(step)
                .iter()
                .any(|block| disturbs(block, target))
        {
            return false;
        }
        found += reads_in(std::slice::from_ref(step), source);
    }
    false
}

/// How often steps read `register`.
fn reads_in(steps: &[Step], register: Reg) -> u32 {
    let mut reads = 0;
    for_each_step(steps, &mut |step| {
        step_registers(step, &mut |named, usage| {
            reads += u32::from(*named == register && usage == Use::Read);
        });
    });
    reads
}

fn replace_read(step: &mut Step, source: Reg, target: Reg) {
    step_registers_mut(step, &mut |register, usage| {
        if usage == Use::Read && *register == source {
            *register = target;
        }
    });
    for inner in step_blocks_mut(step).into_iter().flatten() {
        inner
            .iter_mut()
            .for_each(|step| replace_read(step, source, target));
    }
}

/// Whether a block names `target` or may go elsewhere.
fn disturbs(block: &[Step], target: Reg) -> bool {
    let mut found = false;
    for_each_step(block, &mut |step| {
        found |= matches!(
            step,
            Step::Exit { .. } | Step::Continue { .. } | Step::Return
        );
        step_registers(step, &mut |register, _| found |= *register == target);
    });
    found
}

/// Replaces what a computation or a read writes.
fn replace_written(step: &mut Step, source: Reg, target: Reg) -> bool {
    match step {
        Step::Scalar(instruction) => {
            let mut replaced = false;
            instruction_registers_mut(instruction, &mut |register, usage| {
                if usage == Use::Write && *register == source {
                    *register = target;
                    replaced = true;
                }
            });
            replaced
        }
        Step::Read { columns, .. } => {
            let mut replaced = false;
            for (_, register) in columns.iter_mut() {
                if *register == source {
                    *register = target;
                    replaced = true;
                }
            }
            replaced
        }
        _ => false,
    }
}

/// What a sequence of steps does first with the value that a register has before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// May read it, or go where it may be read.
    Reads,
    /// Overwrites it on every path that goes on.
    Writes,
    /// Nothing on some path.
    Nothing,
}

/// Removes NULLs and copies that are overwritten before anybody looks at them: variables begin as
/// NULL, and most are assigned to before they are read.
pub(super) fn remove_dead_stores(block: &mut Block) {
    let mut index = 0;
    while index < block.len() {
        // What a protected region writes, its handlers may read before it writes that again.
        if !matches!(block[index], Step::Protect { .. }) {
            for inner in step_blocks_mut(&mut block[index]).into_iter().flatten() {
                remove_dead_stores(inner);
            }
        }
        if let Step::Scalar(Instruction::SetNull { target } | Instruction::Move { target, .. }) =
            &block[index]
            && first_in(&block[index + 1..], *target) == First::Writes
        {
            block.remove(index);
            continue;
        }
        index += 1;
    }
}

fn first_in(steps: &[Step], register: Reg) -> First {
    for step in steps {
        match first_of(step, register) {
            First::Nothing => {}
            known => return known,
        }
    }
    First::Nothing
}

fn first_of(step: &Step, register: Reg) -> First {
    let (mut reads, mut writes) = (false, false);
    step_registers(step, &mut |named, usage| {
        if *named == register {
            match usage {
                Use::Read => reads = true,
                Use::Write => writes = true,
            }
        }
    });
    if reads {
        return First::Reads;
    }
    match step {
        Step::If {
            then, otherwise, ..
        } => match (first_in(then, register), first_in(otherwise, register)) {
            (First::Reads, _) | (_, First::Reads) => First::Reads,
            (First::Writes, First::Writes) => First::Writes,
            _ => First::Nothing,
        },
        // What ends the procedure never reads it again.
        Step::Raise { .. } | Step::RaiseAgain { .. } | Step::Return => First::Writes,
        Step::Exit { .. } | Step::Continue { .. } => First::Reads,
        _ => {
            let inside = step_blocks(step);
            if inside.iter().all(|block| block.is_empty()) {
                return if writes {
                    First::Writes
                } else {
                    First::Nothing
                };
            }
            // A loop may run no iteration; it may be left in ways that matter.
            let harmless = inside.iter().all(|block| !mentions(block, register));
            if harmless {
                First::Nothing
            } else {
                First::Reads
            }
        }
    }
}

/// Whether a block names `register`, or leaves a loop around it.
fn mentions(block: &[Step], register: Reg) -> bool {
    fn leaves(block: &[Step], loops: u16) -> bool {
        block.iter().any(|step| match step {
            Step::Exit { depth } | Step::Continue { depth } => *depth >= loops,
            step => {
                let inside = loops + u16::from(!matches!(step, Step::If { .. }));
                step_blocks(step).iter().any(|block| leaves(block, inside))
            }
        })
    }
    let mut found = false;
    for_each_step(block, &mut |step| {
        step_registers(step, &mut |named, _| found |= *named == register);
    });
    found || leaves(block, 1)
}
