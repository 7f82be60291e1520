//! The worker, as any is seen.

use kiln_platform::sync::Arc;
use kiln_procedure::{AbortCause, Arguments, Frame, Program};

use super::Strife;
use crate::scheduler::{Attempts, Scheduler};
use crate::serve::Calls;
use crate::{AnswerWriter, Outcome};

impl Scheduler for Strife {
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
        Strife::call(self, program, arguments, deadline_ns, patience_ns, answer)
    }

    fn is_pipelined(&self) -> bool {
        true
    }

    fn serve(&mut self, calls: &mut dyn Calls) {
        Strife::serve(self, calls);
    }

    fn begin(&mut self) -> bool {
        Strife::begin(self)
    }

    fn commit(&mut self) -> Result<(), AbortCause> {
        Strife::commit(self)
    }

    fn roll_back(&mut self) {
        Strife::roll_back(self);
    }

    fn frame(&self) -> &Frame {
        Strife::frame(self)
    }
}
