//! Transactions of several statements.

use kiln_history::Moment;
use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::{AbortCause, Access, Arguments, Executor, Program, Stop};

use super::{Direct, End};
use crate::factors::AbortMechanism;
use crate::phases::Phased;
use crate::shared::recorder::Recorded;
use crate::shared::unwinding;

/// A transaction of several statements.
#[derive(Default)]
pub(super) struct Open {
    /// Whether the access knows of it.
    is_announced: bool,
    /// What the present attempt has run. The tables of these programs stay until the next attempt
    /// has ended as well: that one plans with the addresses of records that this one met.
    pub(super) programs: Vec<Arc<Program>>,
    /// What the attempt before it has run.
    former_programs: Vec<Arc<Program>>,
    /// For histories: when the attempt was asked for, until its first statement; one without any is
    /// not recorded.
    invoked: Option<Moment>,
    /// Whether the attempt's beginning was recorded.
    recorded: bool,
    /// How it will have ended when it is rolled back, if that is known: it must be repeated, or
    /// what it has read is consistent.
    ending: Option<End>,
}

impl Open {
    /// The transaction is over.
    #[inline]
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_announced) {
            // After the addresses of their records.
            self.programs.clear();
            self.former_programs.clear();
        }
    }
}

/// The procedure that histories name for transactions of several statements.
const STATEMENTS: &str = "transaction";

impl<A: Access + Phased + Recorded> Direct<A> {
    /// Starts an attempt of a transaction of several statements: of the one whose last attempt
    /// failed, until [`Direct::end_transaction`]. It always can: says yes, as schedulers that are
    /// built on this may say no.
    pub fn begin(&mut self) -> bool {
        self.frame.deadline_ns = None;
        self.frame.memory.heap.transaction_began_us = Some(time::wall_clock_us());
        let open = &mut self.open;
        std::mem::swap(&mut open.programs, &mut open.former_programs);
        open.programs.clear();
        (open.invoked, open.recorded) = (self.access.recorder().now(), false);
        open.ending = None;
        self.access.prepare(self.backoff.attempts());
        if !std::mem::replace(&mut open.is_announced, true) {
            self.access.begin_call(None);
        }
        self.access.begin();
        // Its next statement may look at what this one would leave to the commit, and its error
        // belongs to it.
        self.access.defer_nothing();
        self.access.plan_statements();
        true
    }

    /// Runs one statement of the transaction that [`Direct::begin`] started.
    ///
    /// # Errors
    /// [`Stop::Abort`] when the whole transaction must be repeated, [`Stop::Raise`] when the
    /// statement raised; the caller rolls back either way.
    pub fn run(&mut self, program: &Arc<Program>, arguments: &Arguments) -> Result<(), Stop> {
        // Before it runs: what it touches refers to the program's tables.
        let mut known = self.open.programs.iter();
        if !known.any(|known| Arc::ptr_eq(known, program)) {
            self.open.programs.push(program.clone());
        }
        if let Some(invoked) = self.open.invoked.take() {
            self.access.recorder().begin(STATEMENTS, invoked);
            self.open.recorded = true;
        }
        let mut statement =
            || Executor::run(program, &mut self.access, &mut self.frame, arguments).map(drop);
        let result = match self.factors.abort_mechanism {
            AbortMechanism::Return => statement(),
            AbortMechanism::Unwind => unwinding::catch(statement),
        };
        let result = match result {
            // An error seen in a state that never was is an abort, not an error.
            Err(Stop::Raise(error)) => match self.access.confirm() {
                Ok(()) => Err(Stop::Raise(error)),
                Err(cause) => Err(Stop::Abort(cause)),
            },
            result => result,
        };
        self.open.ending = match &result {
            Ok(()) => None,
            Err(Stop::Raise(_)) => Some(End::Rejected),
            Err(Stop::Abort(cause)) => Some(End::Aborted(*cause)),
        };
        result
    }

    /// Commits the attempt.
    ///
    /// # Errors
    /// Why it must be repeated; it is rolled back already.
    pub fn commit(&mut self) -> Result<(), AbortCause> {
        let result = match self.factors.abort_mechanism {
            AbortMechanism::Return => self.access.commit(),
            AbortMechanism::Unwind => unwinding::catch(|| self.access.commit()),
        };
        let result = result.map_err(|stop| match stop {
            Stop::Abort(cause) => cause,
            Stop::Raise(error) => unreachable!("no statement left an update: {error}"),
        });
        match result {
            Ok(()) => {
                self.counters.count_commit();
                self.close(End::Committed);
            }
            Err(cause) => {
                self.counters.count_abort(cause);
                self.access.roll_back();
                self.close(End::Aborted(cause));
            }
        }
        result
    }

    /// Undoes the attempt. A history has it as rejected where what it has read is consistent: a
    /// caller may roll back before that is known, and no result rests on it then.
    pub fn roll_back(&mut self) {
        let ending = match self.open.ending.take() {
            None if self.open.recorded => self.access.confirm().into(),
            known => known.unwrap_or(End::Rejected),
        };
        self.access.roll_back();
        self.close(ending);
    }

    /// Records how the transaction of several statements ended, if its beginning was.
    #[inline]
    fn close(&mut self, end: End) {
        if std::mem::take(&mut self.open.recorded) {
            self.record_end(end);
        }
    }

    /// Whether what the transaction has read is consistent and final, asked before its caller
    /// gives it up for a reason of its own; [`Direct::roll_back`] follows either way.
    ///
    /// # Errors
    /// Why it must be repeated instead.
    pub fn confirm(&mut self) -> Result<(), AbortCause> {
        let confirmed = self.access.confirm();
        self.open.ending = Some(confirmed.into());
        confirmed
    }
}
