//! Transactions of several statements, which are outside of the queue.

use kiln_platform::time;
use kiln_procedure::Frame;

use super::context::{Context, Stage};
use super::queue::{Entered, Guest};
use super::{Ledger, Vll};
use crate::Outcome;
use crate::direct::Direct;
use crate::schedule::in_flight::{Idle, Pipelined};
use crate::serve::{Call, Calls, Next};
use crate::shared::planning::{Demand, PlannedAhead};

/// How long a transaction of several statements waits for what its last attempt met: the record may
/// belong to one whose client thinks.
const STATEMENTS_WAIT_NS: u64 = 20_000_000;

impl<L: Ledger> Vll<L> {
    /// Waits in the queue for what the last attempt met, not too long.
    #[cold]
    fn wait_for_met(&mut self) -> Option<Box<Context<L>>> {
        let mut context = self.home.pool.pop()?;
        context.plan.demand.clear();
        for claim in self.met.drain(..) {
            context.plan.demand.claim(claim);
        }
        context.plan.demand.arrange();
        context.plan.changed();
        (context.stage, context.was_barred) = (Stage::Statements, false);
        context.flight.call.deadline_ns = None;
        let entry = match self.shared.queue.enter(context, None, Guest::Any) {
            Entered::Free(context) => return Some(context),
            Entered::Full(context) | Entered::Barred(context) => {
                self.home.pool.push(context);
                return None;
            }
            Entered::Blocked(entry) => entry,
        };
        let limit = time::now_ns() + STATEMENTS_WAIT_NS;
        let mut idle = Idle::default();
        loop {
            match self.take_head() {
                Some(head) if head.entry == entry => return self.unless_barred(head, limit),
                // No call of this worker is drawn, so no caller hears of its end here.
                Some(head) => self.run_all(head, &mut NoCalls),
                None => {
                    self.manage_for_others();
                    if idle.is_long() {
                        self.shared.queue.pass_lingering();
                    }
                    idle.pause();
                }
            }
            if let Some(context) = self.shared.open_letter(self.number) {
                return self.unless_barred(context, limit);
            }
            if idle.has_spun() && (time::now_ns() >= limit || self.direct.is_broken()) {
                if let Some(context) = self.shared.queue.withdraw(entry) {
                    self.home.pool.push(context);
                    return None;
                }
                if self.direct.is_broken() {
                    // It may be lost with the worker that has it.
                    return None;
                }
            }
        }
    }

    /// A context of statements that waited in the queue, unless others have what they met: then it
    /// has left, and they wait outside until a block ends, but not past `limit_ns`.
    fn unless_barred(
        &mut self,
        context: Box<Context<L>>,
        limit_ns: u64,
    ) -> Option<Box<Context<L>>> {
        if context.stage != Stage::Barred {
            return Some(context);
        }
        self.home.pool.push(context);
        let (ended, mut idle) = (self.shared.blocks.ended(), Idle::default());
        while self.shared.blocks.ended() == ended && time::now_ns() < limit_ns {
            idle.pause();
        }
        None
    }
}

impl<L: Ledger> Pipelined for Vll<L>
where
    L::Access: Send,
{
    type Access = L::Access;

    fn direct(&self) -> &Direct<L::Access> {
        &self.direct
    }

    fn direct_mut(&mut self) -> &mut Direct<L::Access> {
        &mut self.direct
    }

    fn forget_former(&mut self) {
        self.home.forget_programs();
    }

    fn call_frame(&self) -> Option<&Frame> {
        self.home.frame()
    }

    fn serve_calls(&mut self, calls: &mut dyn Calls) {
        self.serve(calls);
    }

    fn open_statements(&mut self) -> bool {
        self.home.was_call = false;
        let is_open = self.shared.queue.open();
        if is_open {
            self.shared.blocks.open();
        }
        is_open
    }

    /// A transaction that is repeated stands in the queue with what its last attempt met, and waits
    /// for it.
    fn begin_statements(&mut self) {
        self.met.clear();
        self.direct.access().take_missed(&mut self.met);
        self.open = match self.met.is_empty() {
            true => None,
            false => self.wait_for_met(),
        };
        self.direct.begin();
        if let Some(context) = &self.open {
            let demand = &context.plan.demand;
            let held = L::held(context.entry.node);
            self.direct.access().hold_ahead(demand, held);
        }
    }

    fn close_statements(&mut self) {
        if let Some(mut context) = self.open.take() {
            self.shared.queue.leave_alone(context.entry);
            context.stage = Stage::Home;
            self.home.pool.push(context);
        }
        self.shared.queue.close();
        self.shared.blocks.close();
    }

    fn leave_manager(&mut self) {
        self._manager = None;
    }
}

/// For a worker that has drawn no call.
struct NoCalls;

impl Calls for NoCalls {
    fn next(&mut self, _: &mut Call) -> Next {
        Next::Pause
    }

    fn is_over(&mut self) -> bool {
        true
    }

    fn ended(&mut self, _: &Call, _: Outcome, _: &Frame) {
        unreachable!("no call was drawn")
    }
}
