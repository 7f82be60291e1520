//! A worker: draws calls, plans them, brings them to the queue, and does what else is to be done
//! meanwhile.

use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;

use super::context::{Context, QueueEntry, Stage};
use super::manager::Manager;
use super::queue::{Entered, Guest};
use super::{Analysis, IN_FLIGHT_MAX, Ledger, ManagerThread, VllState};
use crate::direct::Direct;
use crate::schedule::in_flight::{Home, Idle};
use crate::serve::Calls;
use crate::shared::planning::ClaimOf;

/// One worker; see the module above.
pub struct Vll<L: Ledger> {
    /// The attempts, and the transactions of several statements.
    pub(super) direct: Direct<L::Access>,
    pub(super) shared: Arc<VllState<L>>,
    /// The manager stays while it has workers.
    pub(super) _manager: Option<Arc<ManagerThread<L>>>,
    pub(super) number: u32,
    /// Contexts that are neither in the queue nor on their way.
    pub(super) home: Home<Box<Context<L>>>,
    /// The last transaction that it has run, if that has ended and lingers in the queue. None while
    /// it does not serve.
    pub(super) lingers: Option<Box<Context<L>>>,
    /// Where the worker's own transactions waited last, and until when.
    pub(super) waiting: Vec<(QueueEntry, u64)>,
    /// Whether it has sent the manager something that may still be there.
    pub(super) has_asked: bool,
    /// The tickets of the calls that it has drawn and not told the end of.
    in_flight: Vec<u64>,
    /// For the analysis of contention.
    pub(super) analysis: Option<Box<L::Analysis>>,
    /// The queue's departures when the analysis found nothing.
    pub(super) analysed_at: Option<usize>,
    /// What the last attempt of a transaction of several statements met, while the next one begins.
    pub(super) met: Vec<ClaimOf<L::Access>>,
    /// The open transaction of several statements, if it is in the queue.
    pub(super) open: Option<Box<Context<L>>>,
}

/// The end of calls that have none.
pub(super) const NEVER_NS: u64 = u64::MAX;

impl<L: Ledger> Vll<L> {
    /// The worker that `participant` stands for, of a lock manager that is a thread.
    pub fn managed(
        manager: Arc<ManagerThread<L>>,
        participant: Participant,
        random: Random,
    ) -> Vll<L> {
        let mut worker = Vll::new(manager.shared().clone(), participant, random, false);
        worker._manager = Some(manager);
        worker
    }

    /// The worker that `participant` stands for.
    pub fn new(
        shared: Arc<VllState<L>>,
        participant: Participant,
        random: Random,
        analyses_contention: bool,
    ) -> Vll<L> {
        let number = participant.slot() as u32;
        Vll {
            direct: Direct::new(L::access(&shared, participant), random),
            shared,
            _manager: None,
            number,
            home: Home::new((0..IN_FLIGHT_MAX).map(|_| Context::new(number)).collect()),
            lingers: None,
            waiting: Vec::with_capacity(IN_FLIGHT_MAX),
            has_asked: false,
            in_flight: Vec::with_capacity(IN_FLIGHT_MAX),
            analysis: analyses_contention.then(|| Box::new(L::Analysis::new())),
            analysed_at: None,
            met: Vec::new(),
            open: None,
        }
    }

    /// Runs calls until there are no more and all have ended; see [`Calls`]. Runs others'
    /// transactions meanwhile, when they may.
    pub(super) fn serve(&mut self, calls: &mut dyn Calls) {
        self.home.was_call = true;
        let mut is_over = false;
        let mut idle = Idle::default();
        loop {
            let mut has_done = self.collect(calls);
            self.home.unpark(&self.shared.blocks);
            if is_over {
                self.hand_back(calls);
            }
            if !self.shared.queue.may_linger() {
                has_done |= self.leave_at_last(calls);
            }
            // Whatever the manager has granted waits for this worker alone. Looked at before the
            // next call is drawn: the last one may just have ended.
            if self.direct.is_core_slot_over() && !self.has_promised() {
                // More than once where the one that it lets in lingers itself.
                while self.leave_at_last(calls) {}
                self.pass_core_slot();
            }
            if let Some(context) = self.take_head() {
                self.run_all(context, calls);
                has_done = true;
            } else if !self.home.ready.is_empty() {
                has_done |= self.retry(calls);
            } else if !is_over && self.shared.queue.has_room() && !self.is_draining() {
                has_done |= self.draw(calls, &mut is_over);
            }
            if !has_done {
                self.manage();
                has_done = self.leave_at_last(calls) || self.analyse(calls);
            }
            if is_over && self.in_flight.is_empty() {
                self.leave_at_last(calls);
                self.direct.give_way();
                return;
            }
            if (idle.has_spun() || !self.home.ready.is_empty()) && self.direct.is_broken() {
                return self.break_off(calls);
            }
            match has_done {
                true => idle = Idle::default(),
                false => {
                    if idle.has_spun() {
                        self.expire(calls);
                        self.manage_for_others();
                        // A worker without room for a call draws none, and so is not told that
                        // there are none.
                        is_over = is_over || calls.is_over();
                        // Where there is no room for a call the others have nothing more to do.
                        if !self.has_promised() && self.shared.queue.has_room() {
                            self.direct.give_way();
                        }
                    }
                    if idle.is_long() {
                        // Its worker may have much to plan, or a caller that thinks.
                        self.shared.queue.pass_lingering();
                        if let Some(manager) = self.homeless_manager() {
                            manager.expire(&self.shared);
                        }
                    }
                    idle.pause();
                }
            }
        }
    }

    /// A worker broke down: tells the end of its calls as far as it is known, and gives up the
    /// others. These stay with the workers that have them.
    #[cold]
    fn break_off(&mut self, calls: &mut dyn Calls) {
        while let Some(mut context) = self.shared.open_letter(self.number) {
            if context.flight.outcome.is_some() {
                context.flight.tell(&mut self.direct, calls);
                let ticket = context.flight.call.ticket;
                self.in_flight.retain(|known| *known != ticket);
            }
            // It may be in the queue, with locks that the manager has granted: others look at its
            // plan there.
            std::mem::forget(context);
        }
        for (entry, _) in self.waiting.drain(..) {
            // Else another worker runs it, or has lost it.
            self.home.pool.extend(self.shared.queue.withdraw(entry));
        }
        self.home.pool.append(&mut self.home.ready);
        if let Some(context) = self.lingers.take() {
            self.shared.queue.forget(context.entry);
            self.home.pool.push(context);
        }
        for ticket in self.in_flight.drain(..) {
            calls.lost(ticket);
        }
        self.direct.give_way();
    }

    /// Whether others may wait for something that only this worker does: with a manager, a
    /// transaction is run where it was drawn.
    #[inline]
    fn has_promised(&self) -> bool {
        self.shared.manager.is_some() && self.in_flight.len() > self.home.parked.len()
    }

    /// Whether it draws no call because it will leave its core slot as soon as it has kept its
    /// promises.
    #[inline]
    fn is_draining(&mut self) -> bool {
        self.has_promised() && self.direct.is_core_slot_over()
    }

    /// Lets another worker have the core, if there are more of them than cores. A worker that finds
    /// that a transaction of this one may run, runs it.
    #[cold]
    fn pass_core_slot(&mut self) {
        let waiting = self.waiting.iter().map(|(_, deadline)| *deadline);
        let earliest = waiting.chain(self.home.deadline_ns()).min();
        self.direct.leave_core_slot();
        self.direct.enter_core_slot_until(earliest);
    }

    /// The first transaction of the queue, if it waits and may run, and no manager looks after it.
    pub(super) fn take_head(&self) -> Option<Box<Context<L>>> {
        match &self.shared.manager {
            None => self.shared.queue.take_head(),
            Some(_) => None,
        }
    }

    /// The manager, where that is a thread without a core of its own.
    #[inline]
    pub(super) fn homeless_manager(&self) -> Option<&Manager<L>> {
        let manager = self.shared.manager.as_ref();
        manager.filter(|manager| !manager.has_core())
    }

    /// Does such a manager's work, if this worker has asked for something.
    #[inline]
    fn manage(&mut self) {
        if self.has_asked {
            self.manage_for_others();
        }
    }

    /// As [`Vll::manage`], in any case.
    pub(super) fn manage_for_others(&mut self) {
        if let Some(manager) = self.homeless_manager() {
            self.has_asked = !manager.work(&self.shared);
        }
    }

    /// Draws a call, if there is one and room for it, and starts it.
    fn draw(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        let Some(context) = self.home.pool.pop() else {
            return false;
        };
        let direct = &mut self.direct;
        let draw = |context: &mut Box<Context<L>>| context.flight.draw(calls, direct);
        let drawn = self.home.draw(context, is_over, draw);
        let Some(mut context) = drawn else {
            return false;
        };
        // Its last transaction may have been one of several statements that has waited in vain, and
        // may have been barred.
        context.stage = Stage::Home;
        (context.is_planned, context.was_barred) = (false, false);
        self.in_flight.push(context.flight.call.ticket);
        self.start(context, calls);
        true
    }

    /// Starts one of the transactions that wait for another attempt; whether it came anywhere.
    fn retry(&mut self, calls: &mut dyn Calls) -> bool {
        match self.home.next(&self.shared.solitude) {
            Some((context, true)) => self.run_alone(context, calls),
            Some((context, false)) => self.start(context, calls),
            None => false,
        }
    }

    /// Plans a transaction and brings it to the queue; whether it came in, or ended.
    fn start(&mut self, mut context: Box<Context<L>>, calls: &mut dyn Calls) -> bool {
        if context.flight.expires() {
            self.deliver(context, calls);
            return true;
        }
        context.flight.look(&self.shared.blocks);
        self.plan(&mut context);
        if let Some(manager) = &self.shared.manager {
            if context.flight.failures > 0 && !self.shared.queue.has_room() {
                context.stage = Stage::Home;
                self.home.ready.push(context);
                return false;
            }
            context.stage = Stage::Asks;
            manager.send(context);
            self.has_asked = true;
            return true;
        }
        let deadline = context.flight.call.deadline_ns.unwrap_or(NEVER_NS);
        let lingers = self.lingers.take();
        let entry = lingers.as_ref().map(|context| context.entry);
        let entered = self.shared.queue.enter(context, entry, Guest::Any);
        self.home.pool.extend(lingers);
        match entered {
            Entered::Free(context) => self.run_all(context, calls),
            Entered::Blocked(entry) => self.waiting.push((entry, deadline)),
            Entered::Full(context) => {
                self.home.ready.push(context);
                return false;
            }
            Entered::Barred(context) => {
                self.park(context);
                return false;
            }
        }
        true
    }

    /// Puts a transaction aside that wants what statements have.
    #[cold]
    pub(super) fn park(&mut self, mut context: Box<Context<L>>) {
        context.flight.pause();
        self.home.parked.push(context);
    }

    /// Hands the calls back that are parked, if their drawer wants that.
    fn hand_back(&mut self, calls: &mut dyn Calls) {
        let in_flight = &mut self.in_flight;
        (self.home).hand_back(calls, |flight| forget(in_flight, flight.call.ticket));
    }

    /// A call that was drawn is not in flight any more.
    pub(super) fn has_ended(&mut self, ticket: u64) {
        forget(&mut self.in_flight, ticket);
    }

    /// Plans a transaction, unless it is planned.
    pub(super) fn plan(&mut self, context: &mut Context<L>) {
        if context.is_planned {
            return;
        }
        let plan = &mut context.plan;
        context.flight.plan(&mut self.direct, &mut plan.demand);
        plan.changed();
        context.is_planned = true;
        point("vll.planned");
    }
}

/// Takes one ticket out of some, in no order.
#[inline]
fn forget(tickets: &mut Vec<u64>, ticket: u64) {
    if let Some(at) = tickets.iter().position(|known| *known == ticket) {
        tickets.swap_remove(at);
    }
}
