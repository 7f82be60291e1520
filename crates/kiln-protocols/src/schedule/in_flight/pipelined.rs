//! A scheduler whose workers have several calls in flight: what it says of itself, and the
//! [`Scheduler`] that it is by that.

use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Access, Arguments, Frame, Program};

use super::{Idle, Single};
use crate::direct::Direct;
use crate::phases::Phased;
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::Calls;
use crate::shared::recorder::{Observation, Recorded};
use crate::{AnswerWriter, Outcome};

/// One worker of such a scheduler.
pub(crate) trait Pipelined: Send {
    /// What runs its attempts.
    type Access: Access + Phased + Recorded;

    /// The attempts, and the transactions of several statements.
    fn direct(&self) -> &Direct<Self::Access>;

    /// The same, to be used.
    fn direct_mut(&mut self) -> &mut Direct<Self::Access>;

    /// The memory of the last run, with the rows that it emitted, if that was a call.
    fn call_frame(&self) -> Option<&Frame>;

    /// Runs calls until there are no more and all have ended; see [`Calls`].
    fn serve_calls(&mut self, calls: &mut dyn Calls);

    /// As [`Pipelined::serve_calls`], for a caller that waits for one call and looks at its rows
    /// then. It is given up only where it waits for a transaction of several statements: one that
    /// fails often is seen to by its scheduler.
    fn serve_one(&mut self, call: &mut Single<'_>) {
        self.serve_calls(call);
    }

    /// See [`Scheduler::forget_programs`].
    fn forget_former(&mut self);

    /// Counts a transaction of several statements as open, if it may begin now.
    fn open_statements(&mut self) -> bool;

    /// Starts an attempt of a transaction of several statements, which is open.
    fn begin_statements(&mut self) {
        self.direct_mut().begin();
    }

    /// A transaction of several statements has ended.
    fn close_statements(&mut self);

    /// See [`Scheduler::observe`].
    fn observe_all(&mut self, observation: Option<&Observation>) {
        self.direct_mut().observe(observation);
    }

    /// See [`Scheduler::is_history_full`].
    fn is_any_history_full(&mut self) -> bool {
        self.direct_mut().is_history_full()
    }

    /// See [`Scheduler::leave_threads`].
    fn leave_manager(&mut self) {}
}

impl<P: Pipelined> Scheduler for P {
    fn attempts(&mut self) -> &mut dyn Attempts {
        self.direct_mut()
    }

    fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        let interrupt = self.direct().interrupt();
        let single = Single::new(program, arguments, deadline_ns, patience_ns, interrupt);
        let single = single.answered(answer);
        single.serve_with(|single| self.serve_one(single))
    }

    fn is_pipelined(&self) -> bool {
        true
    }

    fn serve(&mut self, calls: &mut dyn Calls) {
        self.serve_calls(calls);
    }

    fn forget_programs(&mut self) {
        self.forget_former();
    }

    fn begin(&mut self) -> bool {
        let mut idle = Idle::default();
        while !self.open_statements() {
            if self.direct().is_broken() {
                return false;
            }
            idle.pause();
        }
        self.begin_statements();
        true
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        let result = self.direct_mut().commit();
        self.close_statements();
        result
    }

    fn roll_back(&mut self) {
        self.direct_mut().roll_back();
        self.close_statements();
    }

    fn frame(&self) -> &Frame {
        let frame = self.call_frame();
        frame.unwrap_or_else(|| self.direct().frame())
    }

    fn observe(&mut self, observation: Option<&Observation>) {
        self.observe_all(observation);
    }

    fn is_history_full(&mut self) -> bool {
        self.is_any_history_full()
    }

    fn leave_threads(&mut self) {
        self.leave_manager();
    }
}
