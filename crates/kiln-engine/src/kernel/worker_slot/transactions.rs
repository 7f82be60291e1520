//! Transactions of several statements on a worker slot.

use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Arguments, Program, Stop};
use kiln_protocols::Worker;
use kiln_storage::error::Result;

use super::WorkerSlot;
use crate::kernel::refusal::Refusal;
use crate::observed::Observed;

impl WorkerSlot {
    /// Starts an attempt of a transaction of several statements.
    pub fn begin(&mut self) -> std::result::Result<(), Refusal> {
        self.called.clear();
        match self.inside(Worker::begin) {
            true => Ok(()),
            false => Err(Refusal::Broken),
        }
    }

    /// Starts a transaction of several statements that its client began earlier, in microseconds
    /// since 1970.
    pub fn begin_since(&mut self, began_us: i64) -> std::result::Result<(), Refusal> {
        self.begin()?;
        self.inside(|worker| worker.set_transaction_began(began_us));
        Ok(())
    }

    /// Runs one of its statements.
    pub fn run(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
    ) -> std::result::Result<(), Stop> {
        self.check_log(program).map_err(Stop::Raise)?;
        self.inside(|worker| worker.run(program, arguments))?;
        if let Some(calls) = program.calls.get() {
            let mut called = self.called.iter_mut();
            match called.find(|(known, _)| Arc::ptr_eq(known, calls)) {
                Some((_, count)) => *count += 1,
                None => self.called.push((calls.clone(), 1)),
            }
        }
        Ok(())
    }

    /// The result of a transaction of several statements, or of one statement of it, with the log
    /// epoch that must be on disk before the client hears it; or the error that the client gets
    /// instead, when the log has failed. Not called after [`WorkerSlot::end_transaction`].
    pub fn outcome_for_client<T>(&mut self, result: Result<T>) -> Observed<T> {
        let outcome = self.outcome_observed(result);
        let programs = self.worker.as_mut().map_or(&[][..], Worker::programs);
        self.inner.outcome_for_client(outcome, programs, |_| None)
    }

    /// The result of a transaction that has ended here just now, and all that it can have observed.
    pub fn outcome_observed<T>(&self, result: Result<T>) -> Observed<T> {
        let epoch = self.observed();
        Observed { result, epoch }
    }

    /// Commits it; when that fails it is rolled back.
    pub fn commit(&mut self) -> std::result::Result<(), AbortCause> {
        self.inside(Worker::commit)?;
        for (calls, count) in self.called.drain(..) {
            calls.add(self.number, count);
        }
        Ok(())
    }

    /// Rolls it back, unless the worker panicked in it.
    pub fn roll_back(&mut self) {
        if !self.inside {
            self.inside(Worker::roll_back);
        }
    }

    /// Whether what it has read is consistent.
    pub fn confirm(&mut self) -> std::result::Result<(), AbortCause> {
        self.inside(Worker::confirm)
    }

    /// The transaction of several statements is over, however it has ended: nothing of it is left
    /// in the worker.
    pub fn end_transaction(&mut self) {
        self.called.clear();
        if !self.inside {
            self.worker_mut().end_transaction();
        }
    }

    /// Waits as between two attempts, not past `deadline_ns`; nothing is open.
    pub fn back_off(&mut self, deadline_ns: Option<u64>) {
        self.worker_mut().back_off(deadline_ns);
    }
}

/// A transaction of several statements on a worker slot, through all its attempts: it is over when
/// this is dropped.
pub(crate) struct Repeated<'a>(pub &'a mut WorkerSlot);

impl Drop for Repeated<'_> {
    fn drop(&mut self) {
        self.0.end_transaction();
    }
}
