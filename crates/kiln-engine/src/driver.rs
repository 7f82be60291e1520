//! Drivers: closed-loop callers, one for each thread of a benchmark.

use std::collections::VecDeque;

use kiln_durability::log::Log;
use kiln_platform::spin::Spinner;
use kiln_platform::sync::Arc;
use kiln_platform::thread::{self};
use kiln_procedure::{Arguments, Frame, Program};
use kiln_protocols::{Call, Calls, Next, Outcome, Statistics};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};
use kiln_storage::table::WORKERS_MAX;
use kiln_storage::types::Value;

use crate::calls::ProcedureHandle;
use crate::catalog::{Catalog, Procedure, check_current};
use crate::engine::Engine;
use crate::errors;
use crate::kernel::{EngineInner, NEVER, SlotUser, WorkerSlot};
use crate::options::RESERVED;

/// The source of a driver's calls, with several in flight where the protocol wants that.
///
/// A caller has a closed loop: it is asked for a call whenever there is room for one, and told when
/// it has ended, in any order. See [`Driver::drive`].
pub trait Caller {
    /// Puts the arguments of the next call into `request`, whose are empty, and names its
    /// procedure. Asked again after [`Asked::Pause`] only by another [`Driver::drive`].
    fn next(&mut self, request: &mut Request) -> Asked<'_>;

    /// Whether the next answer would be [`Asked::Pause`].
    fn is_over(&mut self) -> bool;

    /// The call with this ticket has ended.
    fn ended(&mut self, ticket: u64, outcome: Outcome, answer: &Answer<'_>);
}

/// What a caller answers when it is asked for a call.
#[derive(Debug)]
pub enum Asked<'a> {
    /// A call of this procedure.
    Call(&'a ProcedureHandle),
    /// No call at present.
    Nothing,
    /// No call any more.
    Pause,
}

/// A call that a caller makes.
#[derive(Debug, Default)]
pub struct Request {
    /// Its arguments.
    pub arguments: Arguments,
    /// When it must have ended, in nanoseconds of [`kiln_platform::time::now_ns`], if ever.
    pub deadline_ns: Option<u64>,
    /// What the caller calls it; no other call in flight has the same.
    pub ticket: u64,
    /// Whether the history that is being recorded has no room for another call: then pause.
    pub is_history_full: bool,
}

/// What a call left that has ended.
pub struct Answer<'a> {
    frame: &'a Frame,
    resolved: &'a Resolved,
    observed: LogEpoch,
}

impl Answer<'_> {
    /// The log epoch up to which the call has observed what is in the database.
    pub fn observed(&self) -> LogEpoch {
        self.observed
    }

    /// The memory of the call, with the rows that it emitted.
    pub fn frame(&self) -> &Frame {
        self.frame
    }

    /// The rows that it emitted, when it was a call of `procedure`.
    ///
    /// # Errors
    /// 42883 when no such procedure was called since the catalog changed.
    pub fn values(&self, procedure: &ProcedureHandle) -> Result<Vec<Vec<Value>>> {
        self.resolved.values(procedure, self.frame)
    }
}

/// Procedures by the number of their handle.
#[derive(Default)]
struct Resolved(Vec<Option<(Arc<str>, Arc<Procedure>)>>);

impl Resolved {
    #[inline(always)]
    fn get(&self, handle: &ProcedureHandle) -> Option<&Arc<Program>> {
        match self.0.get(handle.number) {
            Some(Some((name, procedure))) if Arc::ptr_eq(name, &handle.name) => {
                Some(procedure.program())
            }
            _ => None,
        }
    }

    /// The program of a procedure in `catalog`, the one that all were resolved in.
    #[inline]
    fn resolve(&mut self, handle: &ProcedureHandle, catalog: &Catalog) -> Result<&Arc<Program>> {
        if self.get(handle).is_none() {
            self.find(handle, catalog)?;
        }
        Ok(self.get(handle).expect("just resolved"))
    }

    #[cold]
    fn find(&mut self, handle: &ProcedureHandle, catalog: &Catalog) -> Result<()> {
        let procedure = catalog.require_procedure(&handle.name)?.clone();
        if self.0.len() <= handle.number {
            self.0.resize(handle.number + 1, None);
        }
        self.0[handle.number] = Some((handle.name.clone(), procedure));
        Ok(())
    }

    fn values(&self, procedure: &ProcedureHandle, frame: &Frame) -> Result<Vec<Vec<Value>>> {
        match self.get(procedure) {
            Some(program) => Ok(frame.result_values(program)),
            None => Err(errors::undefined_procedure(&procedure.name)),
        }
    }
}

/// Calls procedures on the caller's own thread, without a queue. What they tell by `pg_notify` is
/// in the frame, and no session hears of it.
pub struct Driver {
    worker_slot: WorkerSlot,
    position: usize,
    resolved: Resolved,
    /// The gate's state that procedures were resolved in.
    resolved_in: u64,
    /// Calls that were handed back, to be made first.
    handed_back: VecDeque<(ProcedureHandle, Request)>,
}

impl Driver {
    pub(crate) fn new(worker_slot: WorkerSlot, position: usize) -> Driver {
        Driver {
            worker_slot,
            position,
            resolved: Resolved::default(),
            resolved_in: NEVER,
            handed_back: VecDeque::new(),
        }
    }

    /// Its position among the drivers of one run, from 0.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Binds the arguments to the procedure and runs it to its end. The rows that it emitted are
    /// in [`Driver::frame`] until the next call.
    #[inline]
    pub fn call(&mut self, procedure: &ProcedureHandle, arguments: &mut Arguments) -> Outcome {
        self.call_until(procedure, arguments, None)
    }

    /// [`Driver::call`] with a deadline in nanoseconds of [`kiln_platform::time::now_ns`].
    #[inline]
    pub fn call_until(
        &mut self,
        procedure: &ProcedureHandle,
        arguments: &mut Arguments,
        deadline_ns: Option<u64>,
    ) -> Outcome {
        if let Err(refusal) = self.worker_slot.enter(deadline_ns) {
            return refusal.outcome();
        }
        let outcome = self.run(procedure, arguments, deadline_ns);
        self.worker_slot.leave();
        outcome
    }

    #[inline(always)]
    fn run(
        &mut self,
        handle: &ProcedureHandle,
        arguments: &mut Arguments,
        deadline_ns: Option<u64>,
    ) -> Outcome {
        self.forget_stale();
        let program = match self.resolved.resolve(handle, self.worker_slot.catalog()) {
            Ok(program) => program,
            Err(error) => return Outcome::Rejected(error),
        };
        if let Err(error) = arguments.bind(program) {
            return Outcome::Rejected(error);
        }
        self.worker_slot.call(program, arguments, deadline_ns, None)
    }

    /// Forgets what was resolved in another catalog; the worker slot is entered.
    #[inline(always)]
    fn forget_stale(&mut self) {
        if self.resolved_in != self.worker_slot.known() {
            self.resolved.0.clear();
            self.resolved_in = self.worker_slot.known();
        }
    }

    /// Makes the calls that `caller` asks for until it pauses, and all have ended: one after the
    /// other, or with several in flight if the protocol is one that puts calls aside.
    pub fn drive(&mut self, caller: &mut impl Caller) {
        let mut request = Request::default();
        let mut spinner = Spinner::default();
        loop {
            if self.worker_slot.is_pipelined() {
                match self.serve(caller) {
                    Served::Paused => return,
                    Served::Interrupted => continue,
                    // Each call is told why it cannot be.
                    Served::Refused => {}
                }
            }
            request.arguments.clear();
            request.deadline_ns = None;
            request.is_history_full = self.worker_slot.is_history_full();
            let outcome = if let Some((handle, again)) = self.handed_back.pop_front() {
                request = again;
                self.call_until(&handle, &mut request.arguments, request.deadline_ns)
            } else {
                match caller.next(&mut request) {
                    Asked::Call(handle) => {
                        self.call_until(handle, &mut request.arguments, request.deadline_ns)
                    }
                    Asked::Nothing => {
                        spinner.spin();
                        continue;
                    }
                    Asked::Pause => return,
                }
            };
            let answer = Answer {
                frame: self.worker_slot.frame(),
                resolved: &self.resolved,
                observed: self.worker_slot.observed(),
            };
            caller.ended(request.ticket, outcome, &answer);
        }
    }

    /// Makes calls with several in flight, until the caller pauses or the gate interrupts it.
    fn serve(&mut self, caller: &mut impl Caller) -> Served {
        if self.worker_slot.enter(None).is_err() {
            return Served::Refused;
        }
        if !self.worker_slot.is_pipelined() {
            // The protocol was switched since the driver looked.
            self.worker_slot.leave();
            return Served::Interrupted;
        }
        self.forget_stale();
        let catalog = self.worker_slot.catalog().clone();
        let epochs = self.worker_slot.log_epochs().clone();
        let mut driven = Driven {
            caller,
            inner: self.worker_slot.inner().clone(),
            handed_back: &mut self.handed_back,
            epochs: &epochs,
            resolved: &mut self.resolved,
            catalog: &catalog,
            request: Request::default(),
            nothing: Frame::new(),
            has_paused: false,
        };
        self.worker_slot.serve(&mut driven);
        let has_paused = driven.has_paused;
        self.worker_slot.leave();
        match has_paused && self.handed_back.is_empty() {
            true => Served::Paused,
            false => Served::Interrupted,
        }
    }

    /// Runs a program that is not in the catalog, as a transaction of its own.
    pub fn run_program(&mut self, program: &Arc<Program>, arguments: &mut Arguments) -> Outcome {
        if let Err(refusal) = self.worker_slot.enter(None) {
            return refusal.outcome();
        }
        let ready = check_current(program).and_then(|()| arguments.bind(program));
        let outcome = match ready {
            Ok(()) => self.worker_slot.call(program, arguments, None, None),
            Err(error) => Outcome::Rejected(error),
        };
        self.worker_slot.leave();
        outcome
    }

    /// The memory of the last call, with the rows that it emitted.
    pub fn frame(&self) -> &Frame {
        self.worker_slot.frame()
    }

    /// The log epoch that is current: an upper bound of what the calls have observed that have
    /// ended.
    pub fn observed(&self) -> LogEpoch {
        self.worker_slot.observed()
    }

    /// The log of the database, if it has one: the outcomes of calls do not wait for it.
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.worker_slot.inner().log()
    }

    /// The rows that the last call of `procedure` emitted, when that was the last call.
    ///
    /// # Errors
    /// 42883 when no such procedure was called since the catalog changed.
    pub fn values(&self, procedure: &ProcedureHandle) -> Result<Vec<Vec<Value>>> {
        self.resolved.values(procedure, self.frame())
    }

    /// Whether the history that is being recorded has no room for another call: then stop. False
    /// when none is.
    pub fn is_history_full(&mut self) -> bool {
        self.worker_slot.is_history_full()
    }

    /// What this driver's calls have counted.
    pub fn statistics(&mut self) -> Statistics {
        self.worker_slot.statistics()
    }

    /// Starts counting anew.
    pub fn reset_statistics(&mut self) {
        self.worker_slot.reset_statistics();
    }
}

/// How a round of serving ended.
enum Served {
    /// The caller has no more calls.
    Paused,
    /// Another thread wants the database alone, or the database has changed.
    Interrupted,
    /// No call can be made.
    Refused,
}

/// A caller as the worker sees it.
struct Driven<'a, C> {
    caller: &'a mut C,
    inner: Arc<EngineInner>,
    handed_back: &'a mut VecDeque<(ProcedureHandle, Request)>,
    epochs: &'a LogEpochs,
    resolved: &'a mut Resolved,
    catalog: &'a Catalog,
    request: Request,
    /// For calls that could not be made.
    nothing: Frame,
    has_paused: bool,
}

impl<C: Caller> Calls for Driven<'_, C> {
    fn next(&mut self, call: &mut Call) -> Next {
        // The memory of the worker's call becomes the request's for the time of the question.
        std::mem::swap(&mut call.arguments, &mut self.request.arguments);
        let next = loop {
            self.request.arguments.clear();
            self.request.deadline_ns = None;
            self.request.is_history_full = call.is_history_full;
            let again;
            let handle = match self.handed_back.pop_front() {
                Some((handle, request)) => {
                    (again, self.request) = (handle, request);
                    &again
                }
                None => match self.caller.next(&mut self.request) {
                    Asked::Call(handle) => handle,
                    Asked::Nothing => break Next::Nothing,
                    Asked::Pause => {
                        self.has_paused = true;
                        break Next::Pause;
                    }
                },
            };
            let arguments = &mut self.request.arguments;
            let ready = self.resolved.resolve(handle, self.catalog);
            let ready = ready.and_then(|program| arguments.bind(program).map(|()| program));
            match ready {
                Ok(program) => {
                    call.set_program(program);
                    (call.deadline_ns, call.ticket) =
                        (self.request.deadline_ns, self.request.ticket);
                    break Next::Call;
                }
                Err(error) => {
                    let answer = Answer {
                        frame: &self.nothing,
                        resolved: self.resolved,
                        observed: self.epochs.current(),
                    };
                    let outcome = Outcome::Rejected(error);
                    self.caller.ended(self.request.ticket, outcome, &answer);
                }
            }
        };
        std::mem::swap(&mut call.arguments, &mut self.request.arguments);
        next
    }

    fn is_over(&mut self) -> bool {
        self.has_paused |= self.caller.is_over();
        self.has_paused && self.handed_back.is_empty()
    }

    fn take_back(&mut self, call: &mut Call) {
        let Some(program) = &call.program else {
            unreachable!("a call that was drawn has a program")
        };
        let (number, name) = self.inner.intern(&program.name);
        let request = Request {
            arguments: std::mem::take(&mut call.arguments),
            deadline_ns: call.deadline_ns,
            ticket: call.ticket,
            is_history_full: false,
        };
        let handle = ProcedureHandle { number, name };
        self.handed_back.push_back((handle, request));
    }

    fn ended(&mut self, call: &Call, outcome: Outcome, frame: &Frame) {
        let answer = Answer {
            frame,
            resolved: self.resolved,
            observed: self.epochs.current(),
        };
        self.caller.ended(call.ticket, outcome, &answer);
    }
}

impl Engine {
    /// A driver for the calling thread; `position` is what it says of itself.
    ///
    /// # Errors
    /// 53300 when all worker slots are taken.
    pub fn driver(&self, position: usize) -> Result<Driver> {
        let worker_slot = WorkerSlot::new(self.inner(), SlotUser::Driver(position));
        worker_slot
            .map(|worker_slot| Driver::new(worker_slot, position))
            .ok_or_else(|| errors::no_worker_slot(WORKERS_MAX - RESERVED))
    }

    /// Runs `body` on each of `threads` threads, each with a driver of its own and, as the
    /// workers, pinned to a core, and returns what they returned, by position.
    ///
    /// # Errors
    /// 22023 for no thread at all, 53300 when there are not as many worker slots.
    ///
    /// # Panics
    /// When `body` does.
    pub fn drive<T: Send>(
        &self,
        threads: usize,
        body: impl Fn(&mut Driver) -> T + Sync,
    ) -> Result<Vec<T>> {
        if threads == 0 {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "at least one thread is needed to drive a database, not 0",
            ));
        }
        let drivers: Result<Vec<Driver>> = (0..threads).map(|at| self.driver(at)).collect();
        let (drivers, body, pin) = (drivers?, &body, self.options().pin_workers);
        Ok(thread::scope(|scope| {
            let handles: Vec<_> = drivers
                .into_iter()
                .map(|mut driver| {
                    scope.spawn(move || {
                        if pin {
                            thread::pin_to_core(driver.position());
                        }
                        body(&mut driver)
                    })
                })
                .collect();
            let joined = handles.into_iter().map(|handle| handle.join());
            joined
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        }))
    }
}
