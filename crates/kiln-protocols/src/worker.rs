//! A worker of whichever protocol is in force.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Arguments, Frame, Interrupt, Program, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::journal::Journal;

use crate::common::Common;
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::Calls;
use crate::shared::core_slots::CoreSlot;
use crate::shared::recorder::Observation;
use crate::{AnswerWriter, Counters, Outcome, Statistics};

/// One worker of any protocol: one virtual call a call.
pub struct Worker {
    scheduler: Box<dyn Scheduler>,
    /// Whether commits have an order in which they can be reported.
    is_serializable: bool,
}

impl Worker {
    /// A worker of the protocol that is in force, with its own part in the epochs and its own
    /// random waits.
    pub fn new(common: &Common, participant: Participant, random: Random) -> Worker {
        let core_slot = CoreSlot::new(common.core_slots(), &participant);
        let epochs = participant.epochs().clone();
        let mut scheduler = common.family().worker(participant, random);
        scheduler
            .attempts()
            .set_up(common.factors(), core_slot, epochs);
        Worker {
            scheduler,
            is_serializable: common.configuration().protocol.is_serializable(),
        }
    }

    fn attempts(&mut self) -> &mut dyn Attempts {
        self.scheduler.attempts()
    }

    /// Records histories for `observation` from now on, or none; no transaction is open. Does
    /// nothing in builds without the feature `history`.
    pub fn observe(&mut self, observation: Option<&Observation>) {
        self.scheduler.observe(observation);
    }

    /// Reports commits to a listener of this journal from now on, or to none; no transaction is
    /// open.
    ///
    /// # Panics
    /// When the protocol is not serializable
    /// ([`Protocol::is_serializable`](crate::Protocol::is_serializable)): then there is no order of
    /// what is reported.
    pub fn attach(&mut self, journal: Option<&Journal>) {
        assert!(
            journal.is_none() || self.is_serializable,
            "commits that are not isolated have no order to be reported in"
        );
        self.attempts().attach(journal);
    }

    /// Whether the history has no room for another call: the one that makes the calls stops then.
    pub fn is_history_full(&mut self) -> bool {
        self.scheduler.is_history_full()
    }

    /// Runs a call to its end, however often it must be repeated; see [`Worker::try_call`].
    pub fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
    ) -> Outcome {
        match self.try_call(program, arguments, deadline_ns, None, None) {
            Some(outcome) => outcome,
            None => unreachable!("nobody gives up without a limit to patience"),
        }
    }

    /// Runs a call to its end; `arguments` are bound to `program`. The rows that it emitted are in
    /// [`Worker::frame`] until the next one. Gives up, with `None`, when its attempts have failed
    /// for longer than `patience_ns`: nothing of the call is left then, but the next call is taken
    /// for the same one. What it wrote is reported with its answer, if it has one.
    pub fn try_call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        (self.scheduler).call(program, arguments, deadline_ns, patience_ns, answer)
    }

    /// Whether it has several calls in flight when it serves.
    #[inline]
    pub fn is_pipelined(&self) -> bool {
        self.scheduler.is_pipelined()
    }

    /// Lets go of the programs of former calls, which keep their tables; no call is in flight.
    pub fn forget_programs(&mut self) {
        self.scheduler.forget_programs();
    }

    /// Runs calls, in any order, until there are no more and all have ended; see
    /// [`Calls`]. A worker that is not pipelined makes one after the other.
    pub fn serve(&mut self, calls: &mut dyn Calls) {
        self.scheduler.serve(calls);
    }

    /// The next call, or the next statement of the open transaction, ends at `deadline_ns` if ever,
    /// or when `interrupt` asks it to. Holds until it is set anew; a call brings its own deadline.
    pub fn limit(&mut self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>) {
        self.attempts().limit(deadline_ns, interrupt);
    }

    /// Starts an attempt of a transaction of several statements: of the one whose last attempt
    /// failed, until [`Worker::end_transaction`]. Says no, and has started none, when it would have
    /// to wait for a worker that broke down.
    #[must_use]
    pub fn begin(&mut self) -> bool {
        self.scheduler.begin()
    }

    /// Says when the open transaction began, in microseconds since 1970, where that was earlier
    /// than [`Worker::begin`].
    pub fn set_transaction_began(&mut self, began_us: i64) {
        self.attempts().set_transaction_began(began_us);
    }

    /// Runs one statement of the transaction that [`Worker::begin`] started.
    ///
    /// # Errors
    /// [`Stop::Abort`] when the whole transaction must be repeated, [`Stop::Raise`] when the
    /// statement raised; the caller rolls back either way.
    pub fn run(&mut self, program: &Arc<Program>, arguments: &Arguments) -> Result<(), Stop> {
        self.attempts().run(program, arguments)
    }

    /// Commits an attempt of a transaction of several statements.
    ///
    /// # Errors
    /// Why it must be repeated; it is rolled back already.
    pub fn commit(&mut self) -> Result<(), AbortCause> {
        self.scheduler.commit()
    }

    /// Rolls an attempt of a transaction of several statements back. A history has it as rejected
    /// where what it has read is consistent: a caller may roll back before that is known, and no
    /// result rests on it then.
    pub fn roll_back(&mut self) {
        self.scheduler.roll_back();
    }

    /// A transaction of several statements is over: it has committed, was rejected or given up, its
    /// time has passed, or its client has abandoned it. Whatever its attempts left for later
    /// attempts ends here, under all protocols, and the next transaction of this worker starts
    /// afresh. No attempt is open. Calls do this themselves.
    pub fn end_transaction(&mut self) {
        self.attempts().end_transaction();
    }

    /// What the attempt of a transaction of several statements has run that began last, until
    /// [`Worker::end_transaction`].
    pub fn programs(&mut self) -> &[Arc<Program>] {
        self.attempts().programs()
    }

    /// Whether what a transaction of several statements has read is consistent and final, asked
    /// before its caller gives it up for a reason of its own; [`Worker::roll_back`] follows either
    /// way.
    ///
    /// # Errors
    /// Why it must be repeated instead.
    pub fn confirm(&mut self) -> Result<(), AbortCause> {
        self.attempts().confirm()
    }

    /// Counts a failed attempt and waits before the next, not past `deadline_ns`; for callers that
    /// repeat a transaction of several statements.
    pub fn back_off(&mut self, deadline_ns: Option<u64>) {
        self.attempts().back_off(deadline_ns);
    }

    /// It panicked and will run nothing any more: lets another one have its core.
    pub fn leave_core(&mut self) {
        self.attempts().give_way();
    }

    /// Ends its work without freeing anything: a worker of the database broke down, and others may
    /// have pointers to what this one has.
    pub fn leak(mut self) {
        self.scheduler.leave_threads();
        std::mem::forget(self);
    }

    /// The memory of the last run, with the rows that it emitted.
    pub fn frame(&self) -> &Frame {
        self.scheduler.frame()
    }

    /// What this worker counts, for all to read at any time.
    pub fn counters(&mut self) -> &Arc<Counters> {
        self.attempts().counters()
    }

    /// What this worker has counted.
    pub fn statistics(&mut self) -> Statistics {
        self.attempts().statistics()
    }

    /// Starts counting anew.
    pub fn reset_statistics(&mut self) {
        self.attempts().reset_statistics();
    }
}
