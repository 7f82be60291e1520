//! Written before read, found before used, emptied before filled: on every path.

use super::{Path, block_names};
use crate::ir::*;
use crate::names::{Use, step_blocks, step_name, step_record, step_registers};
use crate::procedure::Procedure;

/// A set of small numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(numbers: usize) -> Set {
        Set(vec![0; numbers.div_ceil(64)])
    }

    fn insert(&mut self, number: u16) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    fn contains(&self, number: u16) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 != 0
    }

    fn intersect(&mut self, other: &Set) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }
}

/// What is certain at a point of the program.
#[derive(Clone)]
struct State {
    registers: Set,
    records: Set,
    buffers: Set,
}

/// The certainty where two paths meet; `None` is a path that does not get there.
fn join(left: Option<State>, right: Option<State>) -> Option<State> {
    match (left, right) {
        (Some(mut left), Some(right)) => {
            left.registers.intersect(&right.registers);
            left.records.intersect(&right.records);
            left.buffers.intersect(&right.buffers);
            Some(left)
        }
        (one, None) | (None, one) => one,
    }
}

struct Flow {
    path: Path,
    /// For each open loop, innermost last: what is certain at every EXIT of it so far.
    exits: Vec<Option<State>>,
}

/// Checks the rules about order; the shape is known to be right.
pub(super) fn verify(procedure: &Procedure) -> Result<(), String> {
    let mut state = State {
        registers: Set::new(procedure.registers.len()),
        records: Set::new(procedure.records),
        buffers: Set::new(procedure.buffers.len()),
    };
    for parameter in &procedure.parameters {
        state.registers.insert(parameter.register.0);
    }
    for constant in &procedure.constants {
        state.registers.insert(constant.register.0);
    }
    let mut flow = Flow {
        path: Path::default(),
        exits: Vec::new(),
    };
    flow.block("body", &procedure.body, state)?;
    Ok(())
}

impl Flow {
    fn block(
        &mut self,
        name: &'static str,
        steps: &[Step],
        state: State,
    ) -> Result<Option<State>, String> {
        let mut state = state;
        self.path.enter(name);
        for (position, step) in steps.iter().enumerate() {
            self.path.at(position);
            match self.step(step, state)? {
                Some(next) => state = next,
                // What follows in this block never runs.
                None => {
                    self.path.leave();
                    return Ok(None);
                }
            }
        }
        self.path.leave();
        Ok(Some(state))
    }

    fn fault(&self, step: &Step, rule: String) -> String {
        format!("{} ({}): {rule}", self.path, step_name(step))
    }

    /// Checks what a step itself names, in order, and notes what it writes.
    fn names(&self, step: &Step, state: &mut State) -> Result<(), String> {
        let mut unwritten = None;
        let loop_condition = matches!(step, Step::Loop { .. });
        step_registers(step, &mut |register, usage| match usage {
            // A loop's condition is read after the block before it.
            Use::Read if loop_condition => {}
            Use::Read => {
                if unwritten.is_none() && !state.registers.contains(register.0) {
                    unwritten = Some(register.0);
                }
            }
            Use::Write => state.registers.insert(register.0),
        });
        if let Some(register) = unwritten {
            let rule = format!("register {register} is read but not written on every path to here");
            return Err(self.fault(step, rule));
        }
        match step_record(step) {
            Some((record, Use::Read)) if !state.records.contains(record.0) => {
                let rule = format!(
                    "record {} is used but not found on every path to here",
                    record.0
                );
                return Err(self.fault(step, rule));
            }
            Some((record, Use::Write)) => state.records.insert(record.0),
            _ => {}
        }
        match step {
            Step::BufferClear { buffer } | Step::BufferFill { buffer, .. } => {
                state.buffers.insert(buffer.0);
            }
            Step::BufferPush { buffer, .. }
            | Step::BufferPushDistinct { buffer, .. }
            | Step::BufferSort { buffer, .. }
            | Step::BufferCount { buffer, .. }
            | Step::BufferRow { buffer, .. }
            | Step::ForBuffer { buffer, .. }
                if !state.buffers.contains(buffer.0) =>
            {
                let rule = format!("buffer {} is used but not emptied before", buffer.0);
                return Err(self.fault(step, rule));
            }
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, before: State) -> Result<Option<State>, String> {
        let mut state = before.clone();
        self.names(step, &mut state)?;
        let [first_name, second_name] = block_names(step);
        let [first, second] = step_blocks(step);
        match step {
            Step::If { .. } => {
                let then = self.block(first_name, first, state.clone())?;
                let otherwise = self.block(second_name, second, state)?;
                Ok(join(then, otherwise))
            }
            Step::Loop { condition, .. } => {
                let Some(tested) = self.block(first_name, first, state)? else {
                    return Ok(None);
                };
                if let Some(condition) = condition
                    && !tested.registers.contains(condition.0)
                {
                    let register = condition.0;
                    let rule = format!("the condition, register {register}, is not written before");
                    return Err(self.fault(step, rule));
                }
                self.exits.push(None);
                self.block(second_name, second, tested.clone())?;
                let exits = self.exits.pop().flatten();
                Ok(join(condition.is_some().then_some(tested), exits))
            }
            Step::ForRange { .. }
            | Step::ForEach { .. }
            | Step::Scan { .. }
            | Step::ForBuffer { .. } => {
                self.exits.push(None);
                self.block(first_name, first, state)?;
                self.exits.pop();
                // The body may not run, and what it wrote may be of any iteration: only what was
                // certain before the loop is certain behind it.
                Ok(Some(before))
            }
            Step::Protect { caught, .. } => {
                self.exits.push(None);
                self.block(first_name, first, before.clone())?;
                self.exits.pop();
                // An error may have ended the body anywhere.
                let mut behind = before;
                behind.registers.insert(caught.0);
                Ok(Some(behind))
            }
            Step::Exit { depth } => {
                let target = self.exits.len() - 1 - *depth as usize;
                let known = self.exits[target].take();
                self.exits[target] = join(known, Some(state));
                Ok(None)
            }
            Step::Continue { .. } | Step::Return | Step::Raise { .. } | Step::RaiseAgain { .. } => {
                Ok(None)
            }
            _ => Ok(Some(state)),
        }
    }
}
