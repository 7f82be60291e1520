//! Drivers: closed-loop callers, one for each thread of a benchmark.

use kiln_platform::sync::Arc;
use kiln_procedure::{Arguments, Frame, Program};
use kiln_protocols::{Outcome, Statistics};
use kiln_storage::types::Value;

use crate::catalog::Procedure;
use crate::errors;
use crate::gate::NEVER;
use crate::seat::Seat;

/// A procedure's name, looked up once; see [`Engine::procedure`](crate::Engine::procedure). It
/// stays good when the procedure is replaced.
#[derive(Clone, Debug)]
pub struct ProcedureHandle {
    /// Its number among the names that handles were made for.
    pub(crate) number: usize,
    /// Its name; the same allocation in all handles of a database to that name.
    pub(crate) name: Arc<str>,
}

impl ProcedureHandle {
    /// The procedure's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Calls procedures on the caller's own thread, one after the other, without a queue.
pub struct Driver {
    seat: Seat,
    position: usize,
    /// The procedures by the number of their handle.
    resolved: Vec<Option<(Arc<str>, Arc<Procedure>)>>,
    /// The gate's state that they were resolved in.
    resolved_in: u64,
}

impl Driver {
    pub(crate) fn new(seat: Seat, position: usize) -> Driver {
        Driver {
            seat,
            position,
            resolved: Vec::new(),
            resolved_in: NEVER,
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
        if let Err(refusal) = self.seat.enter(deadline_ns) {
            return refusal.outcome();
        }
        let outcome = self.run(procedure, arguments, deadline_ns);
        self.seat.leave();
        outcome
    }

    #[inline(always)]
    fn run(
        &mut self,
        handle: &ProcedureHandle,
        arguments: &mut Arguments,
        deadline_ns: Option<u64>,
    ) -> Outcome {
        let known = self.resolved_in == self.seat.known()
            && matches!(self.resolved.get(handle.number),
                Some(Some((name, _))) if Arc::ptr_eq(name, &handle.name));
        if !known && let Err(error) = self.resolve(handle) {
            return Outcome::Rejected(error);
        }
        let Some(Some((_, procedure))) = self.resolved.get(handle.number) else {
            unreachable!("just resolved")
        };
        let program = &**procedure.program();
        if let Err(error) = arguments.bind(program) {
            return Outcome::Rejected(error);
        }
        self.seat.call(program, arguments, deadline_ns)
    }

    #[cold]
    fn resolve(&mut self, handle: &ProcedureHandle) -> kiln_storage::error::Result<()> {
        if self.resolved_in != self.seat.known() {
            self.resolved.clear();
            self.resolved_in = self.seat.known();
        }
        let procedure = self.seat.catalog().require_procedure(&handle.name)?.clone();
        if self.resolved.len() <= handle.number {
            self.resolved.resize(handle.number + 1, None);
        }
        self.resolved[handle.number] = Some((handle.name.clone(), procedure));
        Ok(())
    }

    /// Runs a program that is not in the catalog, as a transaction of its own.
    pub fn run_program(&mut self, program: &Arc<Program>, arguments: &mut Arguments) -> Outcome {
        if let Err(refusal) = self.seat.enter(None) {
            return refusal.outcome();
        }
        let ready = crate::seat::check_current(program).and_then(|()| arguments.bind(program));
        let outcome = match ready {
            Ok(()) => self.seat.call(program, arguments, None),
            Err(error) => Outcome::Rejected(error),
        };
        self.seat.leave();
        outcome
    }

    /// The memory of the last call, with the rows that it emitted.
    pub fn frame(&self) -> &Frame {
        self.seat.frame()
    }

    /// The rows that the last call of `procedure` emitted, when that was the last call.
    ///
    /// # Errors
    /// 42883 when no such procedure was called since the catalog changed.
    pub fn values(
        &self,
        procedure: &ProcedureHandle,
    ) -> kiln_storage::error::Result<Vec<Vec<Value>>> {
        match self.resolved.get(procedure.number) {
            Some(Some((_, resolved))) => Ok(self.frame().result_values(resolved.program())),
            _ => Err(errors::undefined_procedure(&procedure.name)),
        }
    }

    /// Whether the history that is being recorded has no room for another call: then stop. False when
    /// none is.
    pub fn is_history_full(&mut self) -> bool {
        self.seat.is_history_full()
    }

    /// What this driver's calls have counted.
    pub fn statistics(&mut self) -> Statistics {
        self.seat.statistics()
    }

    /// Starts counting anew.
    pub fn reset_statistics(&mut self) {
        self.seat.reset_statistics();
    }
}
