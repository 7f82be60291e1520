//! The worker, as any is seen.

use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Arguments, Frame, Program};

use super::{Ledger, Vll};
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::Calls;
use crate::{AnswerWriter, Outcome};

impl<L: Ledger> Scheduler for Vll<L>
where
    L::Access: Send,
{
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
        Vll::call(self, program, arguments, deadline_ns, patience_ns, answer)
    }

    fn is_pipelined(&self) -> bool {
        true
    }

    fn serve(&mut self, calls: &mut dyn Calls) {
        Vll::serve(self, calls);
    }

    fn begin(&mut self) -> bool {
        Vll::begin(self)
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        Vll::commit(self)
    }

    fn roll_back(&mut self) {
        Vll::roll_back(self);
    }

    fn frame(&self) -> &Frame {
        Vll::frame(self)
    }

    fn leave_threads(&mut self) {
        self._manager = None;
    }
}
