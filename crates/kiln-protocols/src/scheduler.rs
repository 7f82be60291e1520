//! A scheduler: what a worker does with a call.

use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Arguments, Frame, Interrupt, Program, Stop};
use kiln_storage::epoch::Epochs;
use kiln_storage::journal::Journal;

use crate::factors::Factors;
use crate::serve::Calls;
use crate::shared::core_slots::CoreSlot;
use crate::shared::recorder::Observation;
use crate::{AnswerWriter, Counters, Outcome, Statistics};

/// One worker of any protocol. One virtual call a call, or a statement, and none a record: what is
/// behind it knows its access.
pub(crate) trait Scheduler: Send {
    /// What runs its attempts.
    fn attempts(&mut self) -> &mut dyn Attempts;

    /// See [`Worker::try_call`](crate::Worker::try_call).
    fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome>;

    /// See [`Worker::is_pipelined`](crate::Worker::is_pipelined).
    fn is_pipelined(&self) -> bool;

    /// See [`Worker::serve`](crate::Worker::serve).
    fn serve(&mut self, calls: &mut dyn Calls);

    /// See [`Worker::forget_programs`](crate::Worker::forget_programs).
    fn forget_programs(&mut self) {}

    /// See [`Worker::begin`](crate::Worker::begin).
    fn begin(&mut self) -> bool;

    /// See [`Worker::commit`](crate::Worker::commit).
    fn commit(&mut self) -> Result<(), AbortCause>;

    /// See [`Worker::roll_back`](crate::Worker::roll_back).
    fn roll_back(&mut self);

    /// See [`Worker::frame`](crate::Worker::frame).
    fn frame(&self) -> &Frame;

    /// See [`Worker::observe`](crate::Worker::observe).
    fn observe(&mut self, observation: Option<&Observation>) {
        self.attempts().observe(observation);
    }

    /// See [`Worker::is_history_full`](crate::Worker::is_history_full).
    fn is_history_full(&mut self) -> bool {
        self.attempts().is_history_full()
    }

    /// It is about to be [leaked](crate::Worker::leak): lets go of threads that end when their last
    /// worker has gone.
    fn leave_threads(&mut self) {}
}

/// What runs the attempts of a worker, whatever its access is: what does not depend on when calls
/// may run.
pub(crate) trait Attempts {
    /// Said once, before the first call: the basis factors, the worker's place among those that
    /// share core slots, and the participants of whom none has broken down while it goes on.
    fn set_up(&mut self, factors: Factors, core_slot: CoreSlot, epochs: Epochs);

    /// See [`Worker::observe`](crate::Worker::observe).
    fn observe(&mut self, observation: Option<&Observation>);

    /// See [`Worker::is_history_full`](crate::Worker::is_history_full).
    fn is_history_full(&mut self) -> bool;

    /// See [`Worker::attach`](crate::Worker::attach).
    fn attach(&mut self, journal: Option<&Journal>);

    /// See [`Worker::limit`](crate::Worker::limit).
    fn limit(&mut self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>);

    /// See [`Worker::set_transaction_began`](crate::Worker::set_transaction_began).
    fn set_transaction_began(&mut self, began_us: i64);

    /// See [`Worker::run`](crate::Worker::run).
    fn run(&mut self, program: &Arc<Program>, arguments: &Arguments) -> Result<(), Stop>;

    /// See [`Worker::confirm`](crate::Worker::confirm).
    fn confirm(&mut self) -> Result<(), AbortCause>;

    /// See [`Worker::back_off`](crate::Worker::back_off).
    fn back_off(&mut self, deadline_ns: Option<u64>);

    /// See [`Worker::programs`](crate::Worker::programs).
    fn programs(&self) -> &[Arc<Program>];

    /// See [`Worker::end_transaction`](crate::Worker::end_transaction).
    fn end_transaction(&mut self);

    /// See [`Worker::leave_core`](crate::Worker::leave_core).
    fn give_way(&mut self);

    /// See [`Worker::counters`](crate::Worker::counters).
    fn counters(&self) -> &Arc<Counters>;

    /// See [`Worker::statistics`](crate::Worker::statistics).
    fn statistics(&mut self) -> Statistics;

    /// See [`Worker::reset_statistics`](crate::Worker::reset_statistics).
    fn reset_statistics(&mut self);
}
