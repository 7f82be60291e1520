//! What is done with transactions that may run: the runs, and the ways home.

use kiln_platform::schedule::point;
use kiln_platform::time;
use kiln_procedure::{AbortCause, Interrupt};

use super::context::{Context, Stage};
use super::queue::{Entered, Guest};
use super::worker::NEVER_NS;
use super::{Ledger, Vll};
use crate::Outcome;
use crate::canary::Canary;
use crate::schedule::in_flight::{Idle, Solitude};
use crate::serve::Calls;

impl<L: Ledger> Vll<L> {
    /// Runs a transaction that is in the queue and holds its locks, and then those at the head that
    /// may.
    pub(super) fn run_all(&mut self, context: Box<Context<L>>, calls: &mut dyn Calls) {
        let mut next = Some(context);
        while let Some(mut context) = next {
            match context.stage {
                // It waits there.
                Stage::Statements => return self.shared.send_home(context),
                Stage::Barred => return self.deliver(context, calls),
                _ => {}
            }
            if Canary::LeftBeforeUnlocking.sings() {
                next = self.shared.queue.leave(context.entry);
                self.attempt(&mut context);
            } else {
                self.attempt(&mut context);
                if self.may_linger(&context) {
                    context.plan.linger();
                    point("vll.lingers");
                    return self.receive(context, calls, true);
                }
                next = self.shared.queue.leave(context.entry);
            }
            point("vll.left");
            self.deliver(context, calls);
        }
    }

    /// Whether a transaction that has run may stay in the queue until this worker's next step
    /// there.
    #[inline]
    fn may_linger(&self, context: &Context<L>) -> bool {
        let has_ended = context.flight.outcome.is_some();
        has_ended
            && context.home == self.number
            && self.lingers.is_none()
            && self.shared.queue.may_linger()
    }

    /// Takes the transaction that lingers out of the queue; whether one did.
    pub(super) fn leave_at_last(&mut self, calls: &mut dyn Calls) -> bool {
        let Some(context) = self.lingers.take() else {
            return false;
        };
        let next = self.shared.queue.leave_at_last(context.entry);
        point("vll.left");
        self.home.pool.push(context);
        if let Some(next) = next {
            self.run_all(next, calls);
        }
        true
    }

    /// One attempt, which holds its locks already, and lets them go.
    fn attempt(&mut self, context: &mut Context<L>) {
        point("vll.runs");
        let demand = &context.plan.demand;
        let flight = &mut context.flight;
        flight.attempt(&mut self.direct, demand, L::held(context.entry.node));
        context.is_planned = flight.outcome.is_some();
    }

    /// Brings a context that is not in the queue to its worker.
    pub(super) fn deliver(&mut self, context: Box<Context<L>>, calls: &mut dyn Calls) {
        if context.home == self.number {
            return self.receive(context, calls, false);
        }
        self.shared.send_home(context);
    }

    /// Takes one of the worker's own contexts back, which may linger in the queue.
    pub(super) fn receive(
        &mut self,
        mut context: Box<Context<L>>,
        calls: &mut dyn Calls,
        lingers: bool,
    ) {
        match std::mem::replace(&mut context.stage, Stage::Home) {
            Stage::Granted => return self.run_managed(context, calls),
            Stage::Refused => return self.home.ready.push(context),
            Stage::Barred => {
                let entry = context.entry;
                self.waiting.retain(|(waiting, _)| *waiting != entry);
                return self.park(context);
            }
            Stage::Expired => {
                self.direct.counters().count_abort(AbortCause::LockTimeout);
                context.flight.outcome = Some(Outcome::Expired);
            }
            _ => {}
        }
        let entry = context.entry;
        self.waiting.retain(|(waiting, _)| *waiting != entry);
        context.flight.tell(&mut self.direct, calls);
        if context.flight.has_ended {
            self.has_ended(context.flight.call.ticket);
            if lingers {
                self.lingers = Some(context);
                return;
            }
        }
        self.home.keep(context, &self.shared.blocks);
    }

    /// Runs a transaction whose locks the manager has granted.
    fn run_managed(&mut self, mut context: Box<Context<L>>, calls: &mut dyn Calls) {
        self.attempt(&mut context);
        context.flight.tell(&mut self.direct, calls);
        context.stage = Stage::Ends;
        match (self.homeless_manager(), &self.shared.manager) {
            (Some(manager), _) => self.has_asked = !manager.end(context, &self.shared),
            (None, Some(manager)) => manager.send(context),
            (None, None) => unreachable!("a manager has granted its locks"),
        }
    }

    /// Takes back what others have run.
    pub(super) fn collect(&mut self, calls: &mut dyn Calls) -> bool {
        let mut has_done = false;
        while let Some(context) = self.shared.open_letter(self.number) {
            self.receive(context, calls, false);
            has_done = true;
        }
        has_done
    }

    /// Looks for a transaction that may run although others before it wait; when nothing else is to
    /// be done.
    pub(super) fn analyse(&mut self, calls: &mut dyn Calls) -> bool {
        let Some(analysis) = &mut self.analysis else {
            return false;
        };
        let departures = self.shared.queue.departures();
        if self.analysed_at == Some(departures) {
            return false;
        }
        match self.shared.queue.take_without_conflict(analysis) {
            Some(context) => {
                point("vll.unblocked");
                self.run_all(context, calls);
                true
            }
            None => {
                self.analysed_at = Some(departures);
                false
            }
        }
    }

    /// Ends the worker's calls that wait in the queue although their time is over.
    pub(super) fn expire(&mut self, calls: &mut dyn Calls) {
        // A client that can cancel has no other call here.
        let is_canceled = (self.direct.interrupt()).is_some_and(Interrupt::is_canceled);
        let now = match self
            .waiting
            .iter()
            .any(|(_, deadline)| *deadline != NEVER_NS)
        {
            _ if is_canceled => NEVER_NS,
            true => time::now_ns(),
            false => return,
        };
        while let Some(&(entry, _)) = (self.waiting.iter()).find(|(_, deadline)| now >= *deadline) {
            self.waiting.retain(|(waiting, _)| *waiting != entry);
            // Else another worker runs it.
            if let Some(mut context) = self.shared.queue.withdraw(entry) {
                self.direct.counters().count_abort(AbortCause::LockTimeout);
                context.flight.outcome = Some(Outcome::Expired);
                self.receive(context, calls, false);
            }
        }
    }

    /// Runs a transaction that keeps failing while all others are kept out. Whether that was to be
    /// had.
    #[cold]
    pub(super) fn run_alone(
        &mut self,
        mut context: Box<Context<L>>,
        calls: &mut dyn Calls,
    ) -> bool {
        if !self.shared.queue.claim_alone() {
            self.home.ready.push(context);
            return false;
        }
        let limit = time::now_ns() + Solitude::WAIT_NS;
        let mut idle = Idle::default();
        // No transaction lingers from now on.
        self.leave_at_last(calls);
        while !self.shared.queue.is_empty() {
            if self.collect(calls) {
                idle = Idle::default();
            } else if let Some(head) = self.take_head() {
                self.run_all(head, calls);
            } else if time::now_ns() >= limit || self.direct.is_broken() {
                // A transaction of several statements is open; the call goes on among the others.
                self.shared.queue.end_alone();
                self.shared.solitude.asked(false);
                self.home.ready.push(context);
                return false;
            } else {
                self.manage_for_others();
                self.shared.queue.pass_lingering();
                idle.pause();
            }
        }
        self.shared.solitude.asked(true);
        context.was_barred = false;
        while context.flight.outcome.is_none() {
            if context.flight.expires() {
                break;
            }
            self.plan(&mut context);
            context = match self.shared.queue.enter(context, None, Guest::Alone) {
                Entered::Free(mut context) => {
                    self.attempt(&mut context);
                    let next = self.shared.queue.leave(context.entry);
                    debug_assert!(next.is_none(), "no other transaction is in the queue");
                    context
                }
                Entered::Full(_) | Entered::Blocked(_) | Entered::Barred(_) => {
                    unreachable!("the queue is empty, and no other transaction has a request")
                }
            };
        }
        self.shared.queue.end_alone();
        self.receive(context, calls, false);
        true
    }
}
