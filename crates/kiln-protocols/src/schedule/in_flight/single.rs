//! One call, served as if it were many.

use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_procedure::{Arguments, Frame, Interrupt, Program};

use crate::serve::{Call, Calls, Next};
use crate::{AnswerWriter, Outcome, broken_down};

/// One call, whose caller waits for it.
pub(crate) struct Single<'a> {
    program: &'a Arc<Program>,
    arguments: &'a Arguments,
    deadline_ns: Option<u64>,
    interrupt: Option<Interrupt>,
    patience_ns: Option<u64>,
    answer: Option<Arc<dyn AnswerWriter>>,
    /// When the patience ends, once it was asked about.
    until_ns: Option<u64>,
    is_drawn: bool,
    is_given_up: bool,
    outcome: Option<Outcome>,
}

impl<'a> Single<'a> {
    /// A call with these arguments, which ends at `deadline_ns` if ever, or when it is asked to. It
    /// is given up, if ever, when it has waited for a block for `patience_ns`.
    pub fn new(
        program: &'a Arc<Program>,
        arguments: &'a Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        interrupt: Option<&Interrupt>,
    ) -> Single<'a> {
        Single {
            program,
            arguments,
            deadline_ns,
            interrupt: interrupt.cloned(),
            patience_ns,
            answer: None,
            until_ns: None,
            is_drawn: false,
            is_given_up: false,
            outcome: None,
        }
    }

    /// With an answer, or without one, which is reported with what it wrote.
    pub fn answered(self, answer: Option<&Arc<dyn AnswerWriter>>) -> Single<'a> {
        Single {
            answer: answer.cloned(),
            ..self
        }
    }

    /// Has its worker serve it, and says how it has ended; `None` when it was given up. A worker
    /// that did not ask for it has returned as another one broke down.
    pub fn serve_with(mut self, serve: impl FnOnce(&mut Single<'a>)) -> Option<Outcome> {
        serve(&mut self);
        match self.is_given_up {
            true => None,
            false => self
                .outcome
                .or_else(|| Some(Outcome::Rejected(broken_down()))),
        }
    }
}

impl Calls for Single<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        if std::mem::replace(&mut self.is_drawn, true) {
            return Next::Pause;
        }
        call.set_program(self.program);
        call.arguments.copy_from(self.arguments);
        (call.deadline_ns, call.ticket) = (self.deadline_ns, 0);
        call.interrupt = self.interrupt.take();
        call.answer = self.answer.take();
        Next::Call
    }

    fn is_over(&mut self) -> bool {
        self.is_drawn
    }

    fn takes_back(&mut self) -> bool {
        let Some(patience_ns) = self.patience_ns else {
            return false;
        };
        let now_ns = time::now_ns();
        now_ns >= *self.until_ns.get_or_insert(now_ns + patience_ns)
    }

    fn take_back(&mut self, _: &mut Call) {
        self.is_given_up = true;
    }

    fn ended(&mut self, _: &Call, outcome: Outcome, _: &Frame) {
        self.outcome = Some(outcome);
    }
}
