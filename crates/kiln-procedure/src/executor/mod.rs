//! Runs a program over an access.
//!
//! The executor is generic over [`Access`], so that each protocol gets its own copy of this loop
//! with the access's methods inlined: no virtual call per record. It walks the step tree; a step
//! that leaves its block says so by a small `Flow` value, and details of a stop are kept aside.
//!
//! Registers, record registers and buffers are indexed without a check where it is hot: a
//! [`Program`] can only be made by [`ProgramBuilder::finish`](crate::ProgramBuilder::finish),
//! which verifies that every number is in range, and `Frame::prepare` makes room for all.

use kiln_storage::error::{Error, SqlState};
use kiln_storage::slot::Slot;
use kiln_storage::table::Table;

use crate::access::{Access, Stop};
use crate::arguments::Arguments;
use crate::frame::Frame;
use crate::ir::*;
use crate::program::Program;

/// Where control goes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// To the next step.
    Next,
    /// Behind the loop this many levels out.
    Exit(u16),
    /// To the next turn of the loop this many levels out.
    Continue(u16),
    /// To the end of the procedure.
    Return,
    /// Out: [`Executor::stop`] says why.
    Stop,
}

/// Turns of a loop that are prefetched at most: more would push each other out of the cache.
const PREFETCH_TURNS_MAX: i64 = 24;

/// Look-ups repeated because the record found was leaving the index, before giving up.
const DEAD_RETRIES_MAX: u32 = 100;

/// One attempt of one call.
pub struct Executor<'a, A: Access> {
    program: &'a Program,
    access: &'a mut A,
    frame: &'a mut Frame,
    stop: Option<Stop>,
}

/// Ends the step with a stop when `result` is an error.
macro_rules! attempt {
    ($self:ident, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(stop) => {
                $self.stop = Some($crate::access::Stop::from(stop));
                return Flow::Stop;
            }
        }
    };
}

/// What a loop does after its body: goes on, or leaves with a flow.
macro_rules! after_body {
    ($self:ident, $flow:expr) => {
        match $flow {
            Flow::Next | Flow::Continue(0) => {
                if $self.tick() == Flow::Stop {
                    return Flow::Stop;
                }
            }
            Flow::Exit(0) => break,
            Flow::Exit(depth) => return Flow::Exit(depth - 1),
            Flow::Continue(depth) => return Flow::Continue(depth - 1),
            out => return out,
        }
    };
}

mod buffers;
mod errors;
mod operations;
mod recording;
mod scalar;

pub use operations::unique_violation;
pub use scalar::ARGUMENTS_MAX;

impl<'a, A: Access> Executor<'a, A> {
    /// Runs `program` with `arguments` (bound to it) up to, but not including, the commit. What
    /// it emitted is in `frame`.
    ///
    /// # Errors
    /// [`Stop::Abort`] when the attempt must be repeated, [`Stop::Raise`] when the procedure
    /// raised. The caller rolls back.
    pub fn run(
        program: &'a Program,
        access: &'a mut A,
        frame: &'a mut Frame,
        arguments: &Arguments,
    ) -> Result<(), Stop> {
        frame.prepare(program, arguments);
        let mut executor = Executor {
            program,
            access,
            frame,
            stop: None,
        };
        match executor.block(&program.body) {
            Flow::Stop => Err(executor.stop.take().expect("a stop has a reason")),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn get(&self, register: Reg) -> Slot {
        debug_assert!((register.0 as usize) < self.frame.memory.slots.len());
        // SAFETY: verified programs name registers below their number, and `prepare` made room.
        unsafe { *self.frame.memory.slots.get_unchecked(register.0 as usize) }
    }

    #[inline(always)]
    fn set(&mut self, register: Reg, slot: Slot) {
        debug_assert!((register.0 as usize) < self.frame.memory.slots.len());
        // SAFETY: as in `get`.
        unsafe {
            *self
                .frame
                .memory
                .slots
                .get_unchecked_mut(register.0 as usize) = slot
        }
    }

    #[inline(always)]
    fn table(&self, table: TableRef) -> &'a Table {
        &self.program.tables[table.0 as usize]
    }

    /// Counts a loop turn, and now and then looks at the limits.
    #[inline(always)]
    fn tick(&mut self) -> Flow {
        self.frame.turns_until_check -= 1;
        if self.frame.turns_until_check == 0 {
            attempt!(self, self.frame.check_limits());
        }
        Flow::Next
    }

    fn block(&mut self, steps: &'a [Step]) -> Flow {
        for step in steps {
            let flow = self.step(step);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    #[inline(always)]
    fn step(&mut self, step: &'a Step) -> Flow {
        match step {
            Step::Scalar(instruction) => return self.scalar(instruction),
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let is_true = self.get(*condition).is_true();
                return self.block(if is_true { then } else { otherwise });
            }
            Step::Loop {
                before,
                condition,
                body,
            } => return self.repeat(before, *condition, body),
            Step::ForRange {
                variable,
                first,
                last,
                step,
                reverse,
                body,
            } => return self.for_range(*variable, *first, *last, *step, *reverse, body),
            Step::ForEach {
                variable,
                array,
                body,
            } => return self.for_each(*variable, *array, body),
            Step::Exit { depth } => return Flow::Exit(*depth),
            Step::Continue { depth } => return Flow::Continue(*depth),
            Step::Return => return Flow::Return,
            Step::Raise { error } => return self.raise(error),
            Step::Notice { level, error } => self.notice(level, error),

            Step::Prefetch {
                first,
                last,
                lookups,
            } => self.prefetch(*first, *last, lookups),
            Step::Lookup {
                table,
                index,
                key,
                record,
                found,
                intent,
                ..
            } => return self.lookup(*table, *index, key, *record, *found, *intent),
            Step::Scan {
                table,
                index,
                range,
                reverse,
                record,
                intent,
                body,
                ..
            } => return self.scan(*table, *index, range, *reverse, *record, *intent, body),
            Step::Read {
                table,
                record,
                columns,
                ..
            } => return self.read(*table, *record, columns),
            Step::Update {
                table,
                record,
                columns,
                ..
            } => return self.update(*table, *record, columns),
            Step::Insert {
                table,
                values,
                record,
                conflict,
                ..
            } => return self.insert(*table, values, *record, *conflict),
            Step::Delete { table, record, .. } => return self.delete(*table, *record),

            Step::SaveRecord { target, record } => self.save_record(*target, *record),
            Step::RestoreRecord { record, source } => self.restore_record(*record, *source),
            Step::BufferClear { buffer } => self.frame.buffers[buffer.0 as usize].clear(),
            Step::BufferPush { buffer, row } => self.push(*buffer, row),
            Step::BufferPushDistinct {
                buffer,
                row,
                classes,
                added,
            } => {
                let is_new = self.push_distinct(*buffer, row, classes);
                self.set(*added, Slot::from_bool(is_new));
            }
            Step::BufferSort { buffer, by } => self.sort(*buffer, by),
            Step::BufferCount { buffer, target } => self.set(*target, self.count(*buffer)),
            Step::ForBuffer {
                buffer,
                matching,
                row,
                body,
            } => {
                return match matching.is_empty() {
                    true => self.for_buffer(*buffer, row, body),
                    false => self.for_matching(*buffer, matching, row, body),
                };
            }
            Step::Emit { row } => self.emit(row),
        }
        Flow::Next
    }

    fn for_each(&mut self, variable: Reg, array: Reg, body: &'a [Step]) -> Flow {
        let array = self.get(array);
        if array.is_null() {
            let message = "FOREACH expression must not be null";
            let error = Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message);
            attempt!(self, Err(error));
        }
        for position in 0..self.frame.memory.heap.array(array).len() {
            let element = self.frame.memory.heap.array(array)[position];
            self.set(variable, element);
            after_body!(self, self.block(body));
        }
        Flow::Next
    }

    fn repeat(&mut self, before: &'a [Step], condition: Option<Reg>, body: &'a [Step]) -> Flow {
        loop {
            let flow = self.block(before);
            if flow != Flow::Next {
                return flow;
            }
            if condition.is_some_and(|condition| !self.get(condition).is_true()) {
                break;
            }
            after_body!(self, self.block(body));
        }
        Flow::Next
    }

    fn for_range(
        &mut self,
        variable: Reg,
        first: Reg,
        last: Reg,
        step: Reg,
        reverse: bool,
        body: &'a [Step],
    ) -> Flow {
        let (first, last, step) = (self.get(first), self.get(last), self.get(step));
        for (slot, name) in [
            (first, "lower bound"),
            (last, "upper bound"),
            (step, "BY value"),
        ] {
            if slot.is_null() {
                let message = format!("{name} of FOR loop cannot be null");
                attempt!(
                    self,
                    Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
                );
            }
        }
        let (mut at, last, step) = (first.as_i64(), last.as_i64(), step.as_i64());
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            attempt!(
                self,
                Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message))
            );
        }
        while if reverse { at >= last } else { at <= last } {
            self.set(variable, Slot::from_i64(at));
            after_body!(self, self.block(body));
            let next = if reverse {
                at.checked_sub(step)
            } else {
                at.checked_add(step)
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        Flow::Next
    }
}
