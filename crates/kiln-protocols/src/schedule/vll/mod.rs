//! Very lightweight locking: two counters a record, and one queue that knows the order of all
//! requests.
//!
//! Source: K. Ren, A. Thomson, D. J. Abadi, *VLL: a lock manager redesign for main memory database
//! systems*, VLDB Journal 24, 2015: §2.1 the algorithm, §2.2 counters in arrays, §2.4 plans, §2.6
//! contention analysis.
//!
//! # The idea
//!
//! A traditional lock manager keeps a list of requests for each lock. VLL counts them: how many
//! transactions want the record exclusively, and how many want to share it. A transaction asks for
//! all its locks at once, in one critical section, in which it also gets its place in a queue of
//! all transactions. If no other transaction has a request that is in its way it is *free*, and
//! runs. Else it is *blocked*, and put aside; the worker goes on with another one. A transaction
//! that lets a lock go does not know which one to hand it to. But the first transaction in the
//! queue may always run: all that asked before it have ended, and all that asked after it are
//! blocked where they conflict. That makes deadlocks impossible, too.
//!
//! # Phases
//!
//! | phase | where |
//! |---|---|
//! | draw a call, plan it (a reconnaissance without isolation) | [`Vll::serve`] |
//! | count its requests and give it its place, in one critical section | `queue.rs`, `enter` |
//! | run: in place, with an undo log, as two-phase locking that holds its locks already | `attempt` |
//! | commit, take the counts back | `attempt` |
//! | leave the queue; the first one, if it waits, runs next | `leave` |
//!
//! Where no transaction waits the last step is taken together with the next transaction's requests,
//! in one critical section: see the queue about transactions that *linger*.
//!
//! A context with everything a transaction needs travels: the worker that finds it runnable runs
//! it, and sends it back to its worker, which tells its caller.
//!
//! # What decides whom to run
//!
//! 1. the first of the queue, if it waits;
//! 2. transactions of the worker that failed, once more: with a record added that they had missed;
//! 3. a new call, unless there are as many blocked transactions as the limit allows (`limit.rs`);
//! 4. with contention analysis (`vll-sca`, §2.6), when nothing else can be done: the first
//!    transaction that has nothing in common with those before it, by bit arrays of hashes
//!    (`contention.rs`).
//!
//! # Beyond the paper
//!
//! - *Records that were not planned*, and new ones, are taken if their counters are 0 and are
//!   counted as *unplanned* besides, as they are in no plan that others look at
//!   ([`counters`](crate::shared::locks::counters)); where they are not 0 the attempt ends, and the
//!   next plan has that record. Gaps are guarded by the versions of index nodes
//!   (`access/two_phase_locking`).
//! - *Transactions of several statements* are outside of the queue: they take what is free as they
//!   meet it, and fail where it is not, so none waits for one that waits. They can keep the first
//!   of the queue from running, which looks at the unplanned counts of its records. One that is
//!   repeated, as a closure is, stands in the queue with what its last attempt met.
//! - *Blocks that idle.* A transaction at the head that wants what statements have leaves the
//!   queue, and is parked (`parking.rs`), as is one that fails again and again while statements are
//!   open.
//! - *Starvation.* A call that has failed often keeps all others out and runs alone.
//!
//! # Which anomalies are excluded, and how
//!
//! All: as in strict two-phase locking no transaction touches a record on which another has a
//! conflicting lock, and all locks are held to the end. The order of conflicting transactions is
//! that of the queue.
//!
//! # Other locks
//!
//! What is locked, and how it is counted, is the business of a [`Ledger`], which the queue keeps
//! under its latch. That of `vll` and `vll-arrayed` is the counters of records;
//! [`ranges`](super::ranges) has others.
//!
//! # Order of latches
//!
//! The queue's latch, then none. A mailbox's latch is taken with no other.

#![expect(
    clippy::vec_box,
    reason = "contexts travel: a context is moved by moving a pointer"
)]

mod contention;
mod context;
mod isolated;
mod ledger;
mod limit;
mod manager;
mod queue;
pub(crate) mod registration;
mod scheduler;
mod statements;

pub use isolated::Isolated;
pub use ledger::{Analysis, DemandOf, Ledger};
pub use manager::{CounterArray, ManagerThread};

use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::plain;
use kiln_platform::random::Random;
use kiln_platform::schedule::point;
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::time;
use kiln_procedure::{AbortCause, Arguments, Frame, Interrupt, Program};
use kiln_storage::epoch::Participant;
use kiln_storage::table::WORKERS_MAX;

use context::{Context, Place, Stage};
use manager::Manager;
use queue::{Entered, Guest, TxnQueue};

use crate::canary::Canary;
use crate::schedule::direct::Direct;
use crate::schedule::in_flight::{Idle, Single};
use crate::schedule::parking::{Blocks, Solitude};
use crate::serve::{Calls, Next};
use crate::shared::planning::ClaimOf;
use crate::shared::turns::SharedTurns;
use crate::{AnswerWriter, Outcome};

/// Calls that a worker has in flight at most.
pub const IN_FLIGHT_MAX: usize = 16;

/// A call that has failed so often runs alone.
const FAILURES_MAX: u32 = 10;

/// So long the others may take to let a call be alone.
const ALONE_WAIT_NS: u64 = 5_000_000;

/// What the workers of one database share.
pub struct SharedVll<L: Ledger> {
    queue: TxnQueue<L>,
    /// By worker: contexts of its that others have run. A worker has no more than its mailbox has
    /// room for.
    mailboxes: Box<[Mailbox<L>]>,
    /// Where the lock manager is a thread.
    manager: Option<Manager<L>>,
    /// Transactions of several statements.
    blocks: Blocks,
    solitude: Solitude,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Mailbox<L: Ledger> {
    contexts: Mutex<Vec<Box<Context<L>>>>,
    length: AtomicUsize,
}

impl<L: Ledger> SharedVll<L> {
    /// For workers with numbers below [`WORKERS_MAX`], with these locks.
    pub fn new(ledger: L) -> SharedVll<L> {
        SharedVll::with(ledger, None)
    }

    /// As [`SharedVll::new`], for a lock manager that is a thread, and workers that share `turns`.
    fn managed(ledger: L, turns: SharedTurns) -> SharedVll<L> {
        SharedVll::with(ledger, Some(Manager::new(turns)))
    }

    fn with(ledger: L, manager: Option<Manager<L>>) -> SharedVll<L> {
        let capacity = WORKERS_MAX * IN_FLIGHT_MAX;
        SharedVll {
            queue: TxnQueue::new(ledger, capacity, L::TAKES_BACK || manager.is_some()),
            manager,
            blocks: Blocks::default(),
            solitude: Solitude::default(),
            mailboxes: (0..WORKERS_MAX)
                .map(|_| Mailbox {
                    contexts: Mutex::new(Vec::with_capacity(IN_FLIGHT_MAX)),
                    length: AtomicUsize::new(0),
                })
                .collect(),
        }
    }

    /// Calls `body` with the locks, under the queue's latch.
    pub(crate) fn with_ledger<R>(&self, body: impl FnOnce(&mut L) -> R) -> R {
        self.queue.with_ledger(body)
    }

    /// As the manager, answers the worker of a transaction.
    fn give(&self, mut context: Box<Context<L>>, stage: Stage) {
        context.stage = stage;
        self.send_home(context);
    }

    /// As the manager, lets a transaction run that was the first, or sends it back, as it is
    /// barred.
    fn answer(&self, context: Box<Context<L>>) {
        let stage = match context.stage {
            Stage::Barred => Stage::Barred,
            _ => Stage::Granted,
        };
        self.give(context, stage);
    }

    /// Puts a context into the mailbox of its worker.
    fn send_home(&self, context: Box<Context<L>>) {
        let mailbox = &self.mailboxes[context.home as usize];
        let mut contexts = lock(&mailbox.contexts);
        plain::writes_one(&raw const context.stage);
        contexts.push(context);
        plain::writes(&raw const contexts[contexts.len() - 1..]);
        // Relaxed: who sees that something is there takes the latch.
        mailbox.length.store(contexts.len(), Ordering::Relaxed);
    }
}

/// One worker; see the module's documentation.
pub struct Vll<L: Ledger> {
    /// The attempts, and the transactions of several statements.
    direct: Direct<L::Access>,
    shared: Arc<SharedVll<L>>,
    /// The manager stays while it has workers.
    _manager: Option<Arc<ManagerThread<L>>>,
    number: u32,
    /// Contexts without a call.
    pool: Vec<Box<Context<L>>>,
    /// The last transaction that it has run, if that has ended and lingers in the queue. None
    /// outside of [`Vll::serve`].
    lingers: Option<Box<Context<L>>>,
    /// Contexts that are neither in the queue nor on their way.
    retries: Vec<Box<Context<L>>>,
    /// As these, of those that wait for a transaction of several statements to end.
    parked: Vec<Box<Context<L>>>,
    /// Where the worker's own transactions waited last, and until when.
    waiting: Vec<(Place, u64)>,
    /// Whether it has sent the manager something that may still be there.
    has_asked: bool,
    /// The tickets of the calls that it has drawn and not told the end of.
    in_flight: Vec<u64>,
    /// For the analysis of contention.
    analysis: Option<Box<L::Analysis>>,
    /// The queue's departures when the analysis found nothing.
    analysed_at: Option<usize>,
    /// Whether the last run was a call, and not a statement.
    was_call: bool,
    /// What the last attempt of a transaction of several statements met, while the next one begins.
    met: Vec<ClaimOf<L::Access>>,
    /// The open transaction of several statements, if it is in the queue.
    open: Option<Box<Context<L>>>,
}

/// The end of calls that have none.
const NEVER_NS: u64 = u64::MAX;

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
        shared: Arc<SharedVll<L>>,
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
            pool: (0..IN_FLIGHT_MAX).map(|_| Context::new(number)).collect(),
            lingers: None,
            retries: Vec::with_capacity(IN_FLIGHT_MAX),
            parked: Vec::with_capacity(IN_FLIGHT_MAX),
            waiting: Vec::with_capacity(IN_FLIGHT_MAX),
            has_asked: false,
            in_flight: Vec::with_capacity(IN_FLIGHT_MAX),
            analysis: analyses_contention.then(|| Box::new(L::Analysis::new())),
            analysed_at: None,
            was_call: false,
            met: Vec::new(),
            open: None,
        }
    }

    /// Runs calls until there are no more and all have ended; see [`Calls`]. Runs others'
    /// transactions meanwhile, when they may.
    pub fn serve(&mut self, calls: &mut dyn Calls) {
        self.was_call = true;
        let mut is_over = false;
        let mut idle = Idle::default();
        loop {
            let mut has_done = self.collect(calls);
            self.unpark();
            if is_over && !self.parked.is_empty() && calls.takes_back() {
                self.hand_back(calls);
            }
            if !self.shared.queue.may_linger() {
                has_done |= self.leave_at_last(calls);
            }
            // Whatever the manager has granted waits for this worker alone. Looked at before the
            // next call is drawn: the last one may just have ended.
            if self.direct.is_turn_over() && !self.has_promised() {
                // More than once where the one that it lets in lingers itself.
                while self.leave_at_last(calls) {}
                self.pass_turn();
            }
            if let Some(context) = self.take_head() {
                self.run_all(context, calls);
                has_done = true;
            } else if !self.retries.is_empty() {
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
            if (idle.has_spun() || !self.retries.is_empty()) && self.direct.is_broken() {
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
                    idle.turn();
                }
            }
        }
    }

    /// A worker broke down: tells the end of its calls as far as it is known, and gives up the
    /// others. These stay with the workers that have them.
    #[cold]
    fn break_off(&mut self, calls: &mut dyn Calls) {
        while let Some(mut context) = self.open_letter() {
            if context.flight.outcome.is_some() {
                context.flight.tell(&mut self.direct, calls);
                let ticket = context.flight.call.ticket;
                self.in_flight.retain(|known| *known != ticket);
            }
            // It may be in the queue, with locks that the manager has granted: others look at its
            // plan there.
            std::mem::forget(context);
        }
        for (place, _) in self.waiting.drain(..) {
            // Else another worker runs it, or has lost it.
            self.pool.extend(self.shared.queue.withdraw(place));
        }
        self.pool.append(&mut self.retries);
        if let Some(context) = self.lingers.take() {
            self.shared.queue.forget(context.place);
            self.pool.push(context);
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
        self.shared.manager.is_some() && self.in_flight.len() > self.parked.len()
    }

    /// Whether it draws no call because it will leave its turn as soon as it has kept its promises.
    #[inline]
    fn is_draining(&mut self) -> bool {
        self.has_promised() && self.direct.is_turn_over()
    }

    /// Lets another worker have the core, if there are more of them than cores. A worker that finds
    /// that a transaction of this one may run, runs it.
    #[cold]
    fn pass_turn(&mut self) {
        let waiting = self.waiting.iter().map(|(_, deadline)| *deadline);
        let retries = self.retries.iter().chain(&self.parked);
        let retries = retries.filter_map(|context| context.flight.call.deadline_ns);
        let earliest = waiting.chain(retries).min();
        self.direct.leave_turn();
        self.direct.enter_turn_until(earliest);
    }

    /// The first transaction of the queue, if it waits and may run, and no manager looks after it.
    fn take_head(&self) -> Option<Box<Context<L>>> {
        match &self.shared.manager {
            None => self.shared.queue.take_head(),
            Some(_) => None,
        }
    }

    /// The manager, where that is a thread without a core of its own.
    #[inline]
    fn homeless_manager(&self) -> Option<&Manager<L>> {
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
    fn manage_for_others(&mut self) {
        if let Some(manager) = self.homeless_manager() {
            self.has_asked = !manager.work(&self.shared);
        }
    }

    /// Draws a call, if there is one and room for it, and starts it.
    fn draw(&mut self, calls: &mut dyn Calls, is_over: &mut bool) -> bool {
        let Some(mut context) = self.pool.pop() else {
            return false;
        };
        match context.flight.draw(calls, &mut self.direct) {
            Next::Call => {}
            none => {
                *is_over = none == Next::Pause;
                self.pool.push(context);
                return false;
            }
        }
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
        match self.retries.pop() {
            Some(context)
                if context.flight.failures >= FAILURES_MAX && self.shared.solitude.may_ask() =>
            {
                self.run_alone(context, calls)
            }
            Some(context) => self.start(context, calls),
            None => false,
        }
    }

    /// Plans a transaction and brings it to the queue; whether it came in, or ended.
    fn start(&mut self, mut context: Box<Context<L>>, calls: &mut dyn Calls) -> bool {
        if context.flight.is_expired() {
            context.flight.outcome = Some(Outcome::Expired);
            self.deliver(context, calls);
            return true;
        }
        context.flight.look(&self.shared.blocks);
        self.plan(&mut context);
        if let Some(manager) = &self.shared.manager {
            if context.flight.failures > 0 && !self.shared.queue.has_room() {
                context.stage = Stage::Home;
                self.retries.push(context);
                return false;
            }
            context.stage = Stage::Asks;
            manager.send(context);
            self.has_asked = true;
            return true;
        }
        let deadline = context.flight.call.deadline_ns.unwrap_or(NEVER_NS);
        let lingers = self.lingers.take();
        let place = lingers.as_ref().map(|context| context.place);
        let entered = self.shared.queue.enter(context, place, Guest::Any);
        self.pool.extend(lingers);
        match entered {
            Entered::Free(context) => self.run_all(context, calls),
            Entered::Blocked(place) => self.waiting.push((place, deadline)),
            Entered::Full(context) => {
                self.retries.push(context);
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
    fn park(&mut self, mut context: Box<Context<L>>) {
        context.flight.pause();
        self.parked.push(context);
    }

    /// Has those tried again that are parked, when there is a reason to.
    #[inline]
    fn unpark(&mut self) {
        if !self.parked.is_empty() {
            let (blocks, now_ns) = (&self.shared.blocks, time::now_ns());
            let may_go_on =
                |context: &mut Box<Context<L>>| context.flight.may_go_on(blocks, now_ns);
            self.retries.extend(self.parked.extract_if(.., may_go_on));
        }
    }

    /// Hands the calls back that are parked.
    #[cold]
    fn hand_back(&mut self, calls: &mut dyn Calls) {
        while let Some(mut context) = self.parked.pop() {
            self.has_ended(context.flight.call.ticket);
            context.flight.hand_back(calls);
            self.pool.push(context);
        }
    }

    /// A call that was drawn is not in flight any more.
    fn has_ended(&mut self, ticket: u64) {
        if let Some(at) = self.in_flight.iter().position(|known| *known == ticket) {
            self.in_flight.swap_remove(at);
        }
    }

    fn plan(&mut self, context: &mut Context<L>) {
        if context.is_planned {
            return;
        }
        let plan = &mut context.plan;
        context.flight.plan(&mut self.direct, &mut plan.demand);
        plan.changed();
        context.is_planned = true;
        point("vll.planned");
    }

    /// Runs a transaction that is in the queue and holds its locks, and then those at the head that
    /// may.
    fn run_all(&mut self, context: Box<Context<L>>, calls: &mut dyn Calls) {
        let mut next = Some(context);
        while let Some(mut context) = next {
            match context.stage {
                // It waits there.
                Stage::Statements => return self.shared.send_home(context),
                Stage::Barred => return self.deliver(context, calls),
                _ => {}
            }
            if Canary::LeftBeforeUnlocking.sings() {
                next = self.shared.queue.leave(context.place);
                self.attempt(&mut context);
            } else {
                self.attempt(&mut context);
                if self.may_linger(&context) {
                    context.plan.linger();
                    point("vll.lingers");
                    return self.receive(context, calls, true);
                }
                next = self.shared.queue.leave(context.place);
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
    fn leave_at_last(&mut self, calls: &mut dyn Calls) -> bool {
        let Some(context) = self.lingers.take() else {
            return false;
        };
        let next = self.shared.queue.leave_at_last(context.place);
        point("vll.left");
        self.pool.push(context);
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
        flight.attempt(&mut self.direct, demand, L::held(context.place.node));
        context.is_planned = flight.outcome.is_some();
    }

    /// Brings a context that is not in the queue to its worker.
    fn deliver(&mut self, context: Box<Context<L>>, calls: &mut dyn Calls) {
        if context.home == self.number {
            return self.receive(context, calls, false);
        }
        self.shared.send_home(context);
    }

    /// Takes one of the worker's own contexts back, which may linger in the queue.
    fn receive(&mut self, mut context: Box<Context<L>>, calls: &mut dyn Calls, lingers: bool) {
        match std::mem::replace(&mut context.stage, Stage::Home) {
            Stage::Granted => return self.run_managed(context, calls),
            Stage::Refused => return self.retries.push(context),
            Stage::Barred => {
                let place = context.place;
                self.waiting.retain(|(waiting, _)| *waiting != place);
                return self.park(context);
            }
            Stage::Expired => {
                self.direct.counters().count_abort(AbortCause::LockTimeout);
                context.flight.outcome = Some(Outcome::Expired);
            }
            _ => {}
        }
        let place = context.place;
        self.waiting.retain(|(waiting, _)| *waiting != place);
        context.flight.tell(&mut self.direct, calls);
        if context.flight.has_ended {
            self.has_ended(context.flight.call.ticket);
            match lingers {
                true => self.lingers = Some(context),
                false => self.pool.push(context),
            }
        } else if context.flight.park(&self.shared.blocks) {
            self.parked.push(context);
        } else {
            self.retries.push(context);
        }
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
    fn collect(&mut self, calls: &mut dyn Calls) -> bool {
        let mut has_done = false;
        while let Some(context) = self.open_letter() {
            self.receive(context, calls, false);
            has_done = true;
        }
        has_done
    }

    /// Looks for a transaction that may run although others before it wait; when nothing else is to
    /// be done.
    fn analyse(&mut self, calls: &mut dyn Calls) -> bool {
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
    fn expire(&mut self, calls: &mut dyn Calls) {
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
        while let Some(&(place, _)) = (self.waiting.iter()).find(|(_, deadline)| now >= *deadline) {
            self.waiting.retain(|(waiting, _)| *waiting != place);
            // Else another worker runs it.
            if let Some(mut context) = self.shared.queue.withdraw(place) {
                self.direct.counters().count_abort(AbortCause::LockTimeout);
                context.flight.outcome = Some(Outcome::Expired);
                self.receive(context, calls, false);
            }
        }
    }

    /// Runs a transaction that keeps failing while all others are kept out. Whether that was to be
    /// had.
    #[cold]
    fn run_alone(&mut self, mut context: Box<Context<L>>, calls: &mut dyn Calls) -> bool {
        if !self.shared.queue.claim_alone() {
            self.retries.push(context);
            return false;
        }
        let limit = time::now_ns() + ALONE_WAIT_NS;
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
                self.retries.push(context);
                return false;
            } else {
                self.manage_for_others();
                self.shared.queue.pass_lingering();
                idle.turn();
            }
        }
        self.shared.solitude.asked(true);
        context.was_barred = false;
        while context.flight.outcome.is_none() {
            if context.flight.is_expired() {
                context.flight.outcome = Some(Outcome::Expired);
                break;
            }
            self.plan(&mut context);
            context = match self.shared.queue.enter(context, None, Guest::Alone) {
                Entered::Free(mut context) => {
                    self.attempt(&mut context);
                    let next = self.shared.queue.leave(context.place);
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

    /// Runs one call to its end; see [`Direct::call`]. It is given up only where it waits for a
    /// block: one that fails often keeps others out by itself.
    pub fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        patience_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Option<Outcome> {
        let interrupt = self.direct.interrupt();
        let single = Single::new(program, arguments, deadline_ns, patience_ns, interrupt);
        let single = single.answered(answer);
        single.serve_with(|single| self.serve(single))
    }

    /// A context from the worker's mailbox.
    fn open_letter(&mut self) -> Option<Box<Context<L>>> {
        let mailbox = &self.shared.mailboxes[self.number as usize];
        // Relaxed: as in `send_home`.
        if mailbox.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut contexts = lock(&mailbox.contexts);
        plain::reads(&raw const contexts[contexts.len().saturating_sub(1)..]);
        let context = contexts.pop();
        if let Some(context) = &context {
            plain::reads_one(&raw const context.stage);
        }
        mailbox.length.store(contexts.len(), Ordering::Relaxed);
        context
    }

    /// The memory of the last run, with the rows that it emitted.
    pub fn frame(&self) -> &Frame {
        match self.pool.last() {
            Some(context) if self.was_call => &context.flight.frame,
            _ => self.direct.frame(),
        }
    }
}
