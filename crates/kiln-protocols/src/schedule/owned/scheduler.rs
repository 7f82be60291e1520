//! The worker, as any is seen.

use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Arguments, Frame, Program};

use super::{Owned, PartitionTable};
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::Calls;
use crate::shared::recorder::Observation;
use crate::{AnswerWriter, Outcome};

impl<T: PartitionTable> Scheduler for Owned<T> {
    fn attempts(&mut self) -> &mut dyn Attempts {
        &mut self.direct
    }

    fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        Owned::call(self, program, arguments, deadline_ns, patience_ns, answer)
    }

    fn is_pipelined(&self) -> bool {
        true
    }

    fn serve(&mut self, calls: &mut dyn Calls) {
        Owned::serve(self, calls);
    }

    fn begin(&mut self) -> bool {
        Owned::begin(self)
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        Owned::commit(self)
    }

    fn roll_back(&mut self) {
        Owned::roll_back(self);
    }

    fn frame(&self) -> &Frame {
        Owned::frame(self)
    }

    fn observe(&mut self, observation: Option<&Observation>) {
        Owned::observe(self, observation);
    }

    fn is_history_full(&mut self) -> bool {
        Owned::is_history_full(self)
    }
}
