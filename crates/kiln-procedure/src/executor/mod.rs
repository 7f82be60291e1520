//! Runs a program over an access.
//!
//! The executor is generic over [`Access`], so that each protocol gets its own copy of this loop
//! with the access's methods inlined: no virtual call per record. What does not touch records is
//! not generic, and compiled once. It runs the flat [`code`](crate::code) that the program was
//! lowered to.
//!
//! Registers and code are indexed without a check: a [`Program`] can only be made by
//! [`ProgramBuilder::finish`](crate::ProgramBuilder::finish), which verifies that every number is
//! in range, and `Frame::prepare` makes room for all.

mod buffers;
mod compute;
pub(crate) mod errors;
mod journey;
mod operations;
mod prefetch;
mod protected;
mod recording;
pub(crate) mod scalar;
mod scans;
mod updater;

use kiln_storage::slot::Slot;

use crate::access::{Access, Halt, Stop};
use crate::arguments::Arguments;
use crate::code::{Code, Label, Op};
use crate::frame::{self, Frame};
use crate::ir::*;
use crate::program::Program;
use crate::restoration::Restoration;
use compute::match_op;

pub use crate::ir::ARGUMENTS_MAX;
pub use journey::Ran;
pub use operations::unique_violation;
pub use recording::{fingerprint, record_deferred};

/// Look-ups repeated because the record found was leaving the index, before giving up.
const DEAD_RETRIES_MAX: u32 = 100;

/// One attempt of one call.
pub struct Executor<'a, A: Access> {
    program: &'a Program,
    code: &'a Code,
    /// The code's ops, as they are for this attempt.
    ops: &'a [Op],
    access: &'a mut A,
    frame: &'a mut Frame,
    halt: Option<Halt>,
    /// Whether no protected region catches the error that is on its way.
    is_final: bool,
}

/// Why [`Executor::run_from`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// An iteration of the body that it was called for is over.
    Iteration,
    /// That many bodies are left, and the code goes on there.
    Unwind { bodies: u32, to: Label },
    /// The procedure is over.
    Return,
    /// The attempt is over: [`Executor::stopped`] says why.
    Stop,
    /// The attempt goes on elsewhere: where in the program, the frame knows.
    Away,
}

/// An operation was not done: [`Executor::halt`] says why.
#[derive(Clone, Copy, Debug)]
struct Stopped;

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
        let mut executor = Executor::new(program, access, frame);
        match executor.run_from(0) {
            Leave::Stop => Err(executor.stopped()),
            _ => Ok(()),
        }
    }

    /// Runs a part of `program` again, over the frame that a run of it has left which came to its
    /// end. Otherwise as [`Executor::run`].
    ///
    /// # Errors
    /// Those of [`Executor::run`].
    pub fn restore(
        program: &'a Program,
        restoration: &'a Restoration,
        access: &'a mut A,
        frame: &'a mut Frame,
    ) -> Result<(), Stop> {
        frame.prepare_restoration(restoration);
        let mut executor = Executor::over(program, &restoration.code, access, frame);
        match executor.run_from(0) {
            Leave::Stop => Err(executor.stopped()),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn new(program: &'a Program, access: &'a mut A, frame: &'a mut Frame) -> Executor<'a, A> {
        Executor::over(program, &program.code, access, frame)
    }

    #[inline(always)]
    fn over(
        program: &'a Program,
        code: &'a Code,
        access: &'a mut A,
        frame: &'a mut Frame,
    ) -> Executor<'a, A> {
        let ops = match access.history().is_some() {
            true => &code.observed_ops,
            false => &code.ops,
        };
        Executor {
            program,
            code,
            ops,
            access,
            frame,
            halt: None,
            is_final: false,
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
        let slots = &mut self.frame.memory.slots;
        // SAFETY: as in `get`.
        unsafe { *slots.get_unchecked_mut(register.0 as usize) = slot }
    }

    /// Notes why an operation was not done.
    #[cold]
    #[inline(never)]
    fn halt(&mut self, halt: Halt) -> Stopped {
        self.halt = Some(halt);
        Stopped
    }

    /// Notes why the attempt is over.
    #[cold]
    fn stop(&mut self, stop: Stop) -> Stopped {
        self.halt(Halt::Stop(stop))
    }

    /// Why the attempt is over.
    #[cold]
    fn stopped(&mut self) -> Stop {
        match self.halt.take() {
            Some(Halt::Stop(stop)) => stop,
            Some(Halt::Leaves) => unreachable!("an attempt leaves only where attempts travel"),
            None => unreachable!("a stop has a reason"),
        }
    }

    /// Looks at the limits. No region catches that one is exceeded: what there is too much of would
    /// only grow.
    #[cold]
    fn is_within_limits(&mut self) -> bool {
        let Err(error) = self.frame.check_limits() else {
            return true;
        };
        self.is_final = true;
        self.stop(error.into());
        false
    }

    /// Runs the code from `at` until the procedure ends, or the iteration of a body that this was
    /// called for.
    fn run_from(&mut self, at: Label) -> Leave {
        let code: &'a Code = self.code;
        let ops = self.ops.as_ptr();
        // The registers, fetched anew after everything that may move them.
        let mut slots = self.frame.memory.slots.as_mut_ptr();
        macro_rules! get {
            ($register:expr) => {{
                let register: Reg = $register;
                debug_assert!((register.0 as usize) < self.frame.memory.slots.len());
                // SAFETY: verified programs name registers below their number, hidden ones were
                // counted when the program was lowered, and `prepare` made room for all.
                unsafe { *slots.add(register.0 as usize) }
            }};
        }
        macro_rules! set {
            ($register:expr, $slot:expr) => {{
                let (register, slot): (Reg, Slot) = ($register, $slot);
                debug_assert!((register.0 as usize) < self.frame.memory.slots.len());
                // SAFETY: as in `get`.
                unsafe { *slots.add(register.0 as usize) = slot }
            }};
        }
        // SAFETY: lowered code ends with a `Return`, and jumps lead into it.
        let mut next = unsafe { ops.add(at as usize) };
        macro_rules! jump {
            ($to:expr) => {{
                let to: Label = $to;
                debug_assert!((to as usize) < code.ops.len());
                // SAFETY: as above.
                next = unsafe { ops.add(to as usize) };
            }};
        }
        // An entry of one of the code's tables.
        macro_rules! entry {
            ($table:expr, $number:expr) => {{
                let (table, number) = (&$table, $number as usize);
                debug_assert!(number < table.len());
                // SAFETY: lowering numbers the entries as it appends them, and takes none away.
                unsafe { table.get_unchecked(number) }
            }};
        }
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(stop) => {
                        self.stop(Stop::from(stop));
                        return Leave::Stop;
                    }
                }
            };
        }
        // Where the body behind the present op begins.
        macro_rules! body {
            () => {{
                // SAFETY: both are in the code.
                let position = unsafe { next.offset_from(ops) };
                position as Label
            }};
        }
        // Runs a method that may touch the registers.
        macro_rules! operation {
            ($result:expr) => {{
                let Ok(value) = $result else {
                    return match A::TRAVELS {
                        true => self.leave_before(body!() - 1),
                        false => Leave::Stop,
                    };
                };
                if A::TRAVELS {
                    self.access.has_done();
                }
                slots = self.frame.memory.slots.as_mut_ptr();
                value
            }};
        }
        macro_rules! jump_if {
            ($truth:expr, $when:expr, $to:expr) => {
                if ($truth) == $when {
                    jump!($to);
                }
            };
        }
        // After what may have moved the registers.
        macro_rules! refetch {
            () => {
                slots = self.frame.memory.slots.as_mut_ptr()
            };
        }
        // After a call of a builtin: looks at the limits when it has taken long.
        macro_rules! called {
            () => {
                if self.frame.memory.heap.has_worked_long() && !self.is_within_limits() {
                    return Leave::Stop;
                }
            };
        }
        // Counts an iteration of a loop, and now and then looks at the limits.
        macro_rules! tick {
            () => {
                self.frame.iterations_until_check -= 1;
                if self.frame.iterations_until_check == 0 && !self.is_within_limits() {
                    return Leave::Stop;
                }
            };
        }
        loop {
            // SAFETY: as above; what is behind a `Return` is not run.
            let op = unsafe { &*next };
            // SAFETY: the place behind an op is in the code, or its end.
            next = unsafe { next.add(1) };
            match_op! { *op, code, self.frame.memory, [get, set, jump, jump_if, entry, attempt, called, refetch] {
                Op::Constants { list } => {
                    let constants = entry!(code.rare_constants, list);
                    frame::put_constants(&mut self.frame.memory, constants);
                }
                Op::Again { to } => {
                    tick!();
                    jump!(to);
                }
                Op::CountFrom {
                    first,
                    last,
                    step,
                    state,
                    variable,
                    reverse,
                    to,
                } => {
                    let (first, last, step) = (get!(first), get!(last), get!(step));
                    let runs = attempt!(scalar::count_from(first, last, step, reverse));
                    set!(state, first);
                    set!(Reg(state.0 + 1), last);
                    set!(Reg(state.0 + 2), step);
                    if runs {
                        set!(variable, first);
                    } else {
                        jump!(to);
                    }
                }
                Op::CountOn {
                    state,
                    variable,
                    reverse,
                    to,
                } => {
                    tick!();
                    let counter = get!(state).as_i64();
                    let last = get!(Reg(state.0 + 1)).as_i64();
                    let step = get!(Reg(state.0 + 2)).as_i64();
                    // A counter that overflows is past every bound.
                    let next = match reverse {
                        false => counter.checked_add(step).filter(|next| *next <= last),
                        true => counter.checked_sub(step).filter(|next| *next >= last),
                    };
                    if let Some(next) = next {
                        set!(state, Slot::from_i64(next));
                        set!(variable, Slot::from_i64(next));
                        jump!(to);
                    }
                }
                Op::EachFrom {
                    array,
                    state,
                    variable,
                    to,
                } => {
                    let array = get!(array);
                    let elements = attempt!(scalar::elements(&self.frame.memory.heap, array));
                    set!(state, array);
                    set!(Reg(state.0 + 1), Slot::from_i64(1));
                    match elements.first() {
                        Some(first) => set!(variable, *first),
                        None => jump!(to),
                    }
                }
                Op::EachOn {
                    state,
                    variable,
                    to,
                } => {
                    tick!();
                    let position = get!(Reg(state.0 + 1)).as_i64();
                    let elements = self.frame.memory.heap.array(get!(state));
                    if let Some(element) = elements.get(position as usize) {
                        set!(variable, *element);
                        set!(Reg(state.0 + 1), Slot::from_i64(position + 1));
                        jump!(to);
                    }
                }
                Op::EndIteration => return Leave::Iteration,
                Op::Unwind { bodies, to } => return Leave::Unwind { bodies, to },
                Op::Return => return Leave::Return,
                Op::Raise { failure } => {
                    let failure = &code.failures[failure as usize];
                    attempt!(Err(errors::error(&self.frame.memory, failure)));
                }
                Op::Notice { notice } => {
                    let (level, failure) = &code.notices[notice as usize];
                    errors::notice(self.frame, level, failure);
                }
                Op::Notify { channel, payload } => {
                    let (channel, payload) = (get!(channel), get!(payload));
                    attempt!(self.frame.notify(channel, payload));
                }

                Op::Lookup { lookup, to } => {
                    if !operation!(self.lookup(entry!(code.lookups, lookup))) {
                        jump!(to);
                    }
                }
                Op::Read { read } => operation!(self.read(entry!(code.reads, read))),
                Op::Update { update } => operation!(self.update(entry!(code.updates, update))),
                Op::UnlessDeferring { to } => {
                    if !self.access.defers() {
                        jump!(to);
                    }
                }
                Op::Defer { defer, to } => {
                    if operation!(self.defer(entry!(code.defers, defer))) {
                        jump!(to);
                    }
                }
                Op::Insert { insert } => {
                    operation!(self.insert(entry!(code.inserts, insert)));
                }
                Op::Delete { table, record, .. } => operation!(self.delete(table, record)),
                Op::Scan { scan, to } => match self.scan(entry!(code.scans, scan), body!()) {
                    Leave::Iteration => {
                        slots = self.frame.memory.slots.as_mut_ptr();
                        jump!(to);
                    }
                    Leave::Unwind { bodies: 0, to } => {
                        slots = self.frame.memory.slots.as_mut_ptr();
                        jump!(to);
                    }
                    leave => return leave,
                },
                Op::Prefetch { prefetch } => {
                    let prefetch = entry!(code.prefetches, prefetch);
                    match self.access.recalls() {
                        false => {
                            let is_run_soon = self.access.is_run_soon();
                            prefetch::prefetch(self.frame, prefetch, is_run_soon);
                        }
                        true => prefetch::forget_sightings(self.frame, prefetch),
                    }
                    if prefetch.meets_all() {
                        match self.meet_all(prefetch, body!()) {
                            Leave::Iteration => slots = self.frame.memory.slots.as_mut_ptr(),
                            leave => return leave,
                        }
                    }
                }
                Op::SaveRecord { target, record } => self.save_record(target, record),
                Op::RestoreRecord { record, source } => self.restore_record(record, source),

                Op::Rows { rows } => {
                    buffers::rows(self.frame, entry!(code.rows, rows));
                    slots = self.frame.memory.slots.as_mut_ptr();
                }
                Op::ForBuffer { walk, to } => {
                    match self.for_buffer(entry!(code.walks, walk), body!()) {
                        Leave::Iteration => {
                            slots = self.frame.memory.slots.as_mut_ptr();
                            jump!(to);
                        }
                        Leave::Unwind { bodies: 0, to } => {
                            slots = self.frame.memory.slots.as_mut_ptr();
                            jump!(to);
                        }
                        leave => return leave,
                    }
                }
                Op::Emit { row } => buffers::emit(self.frame, entry!(code.emits, row)),
                Op::Protect { protect, to } => {
                    match self.protect(entry!(code.protects, protect), body!()) {
                        Leave::Iteration => {
                            slots = self.frame.memory.slots.as_mut_ptr();
                            jump!(to);
                        }
                        Leave::Unwind { bodies: 0, to } => {
                            slots = self.frame.memory.slots.as_mut_ptr();
                            jump!(to);
                        }
                        leave => return leave,
                    }
                }
                Op::NoteUndo { undo } => operation!(self.note_undo(undo)),
                Op::Diagnose {
                    region,
                    item,
                    target,
                } => set!(target, self.diagnose(region, item)),
                Op::RaiseAgain { region } => {
                    let stop = self.caught_again(region);
                    attempt!(Err(stop));
                }

                Op::LookupObserved { lookup, to } => {
                    if !operation!(self.lookup_observed(entry!(code.lookups, lookup))) {
                        jump!(to);
                    }
                }
                Op::ReadObserved { read } => {
                    operation!(self.read_observed(entry!(code.reads, read)))
                }
                Op::UpdateObserved { update } => {
                    operation!(self.update_observed(entry!(code.updates, update)))
                }
                Op::InsertObserved { insert } => {
                    operation!(self.insert_observed(entry!(code.inserts, insert)))
                }
                Op::DeleteObserved { op, table, record } => {
                    operation!(self.delete_observed(op, table, record))
                }
            } }
        }
    }

    /// Runs one iteration of the body at `body`. `None`: on with the next iteration.
    #[inline(always)]
    fn iteration(&mut self, body: Label) -> Option<Leave> {
        let leave = self.run_from(body);
        self.after_iteration(leave)
    }

    /// What comes of an iteration that was left in this way. `None`: on with the next iteration.
    #[inline(always)]
    fn after_iteration(&mut self, leave: Leave) -> Option<Leave> {
        match leave {
            Leave::Iteration => {
                self.frame.iterations_until_check -= 1;
                if self.frame.iterations_until_check > 0 {
                    return None;
                }
                match self.is_within_limits() {
                    true => None,
                    false => Some(Leave::Stop),
                }
            }
            Leave::Unwind { bodies, to } => Some(Leave::Unwind {
                bodies: bodies - 1,
                to,
            }),
            leave => Some(leave),
        }
    }
}
