//! A seat: one worker of the present protocol, and the right to run transactions on it.

use kiln_durability::log::Log;
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::{AbortCause, Arguments, CallCounts, Frame, Interrupt, Program, Stop};
use kiln_protocols::{
    AnswerWriter, Call, Calls, Common, Next, Observation, Outcome, Statistics, Worker,
};
use kiln_storage::error::Result;
use kiln_storage::journal::Journal;
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};

use crate::catalog::Catalog;
use crate::errors::{self, Refusal};
use crate::gate::{Alone, BROKEN, CLOSING, NEVER, SHUT};
use crate::journal::Observed;
use crate::memory::SeatUser;
use crate::shared::Shared;

/// One worker and its seat number; used by one thread at a time.
///
/// Invariants: the worker is of `common`, and `catalog` is the one of the gate's state `known`.
/// A transaction is open in the worker only while the flag is up (`entered`), or half up (`aside`).
pub(crate) struct Seat {
    inner: Arc<Shared>,
    number: usize,
    user: SeatUser,
    /// The slot of the worker's participant in the epochs.
    participant: usize,
    /// The gate's state that the fields below belong to.
    known: u64,
    /// Always there, but for the moment of its replacement.
    worker: Option<Worker>,
    common: Arc<Common>,
    /// The observer of the worker.
    observation: Option<Observation>,
    /// The listeners of its commits.
    journal: Option<Journal>,
    /// What keeps it.
    log: Option<Arc<Log>>,
    /// Whether transactions need the token.
    single: bool,
    catalog: Arc<Catalog>,
    /// What former workers of this seat have counted.
    past: Statistics,
    /// Whether transactions may start although the database is being closed.
    draining: bool,
    entered: bool,
    /// Whether a transaction is open that waits for its client: the flag is half down.
    aside: bool,
    /// The procedures that the open transaction of several statements has called, and how often.
    called: Vec<(Arc<CallCounts>, u64)>,
    /// What may ask the present statement to end.
    interrupt: Option<Interrupt>,
    /// Whether control is inside the worker: a panic there leaves records in an unknown state.
    inside: bool,
}

/// A call whose attempts fail for so long is helped.
const PATIENCE_NS: u64 = 50_000_000;
/// How long the others may take to let it be alone, in nanoseconds. They are held up meanwhile, so
/// it is a tenth of the patience.
pub(crate) const ALONE_WAIT_NS: u64 = 5_000_000;
/// A call that starves stands aside for so long at most while a change of the catalog waits, and
/// looks so often whether it still does.
const STAND_BY_NS: u64 = 1_000_000_000;
const STAND_BY_LOOK_NS: u64 = 500_000;

impl Seat {
    /// A free seat for `user` with a worker of the present protocol; `None` when all are taken.
    pub fn new(inner: &Arc<Shared>, user: SeatUser) -> Option<Seat> {
        let number = inner.gate.sit()?;
        let (common, observation, journal) = (inner.common(), inner.observation(), inner.journal());
        let (worker, participant) =
            Seat::worker_of(inner, &common, observation.as_ref(), journal.as_ref(), user);
        Some(Seat {
            inner: inner.clone(),
            number,
            user,
            known: NEVER,
            worker: Some(worker),
            participant,
            observation,
            journal,
            log: inner.log().cloned(),
            single: common.configuration().is_single_worker(),
            common,
            catalog: inner.catalog(),
            past: Statistics::default(),
            draining: false,
            entered: false,
            aside: false,
            called: Vec::new(),
            interrupt: None,
            inside: false,
        })
    }

    fn worker_of(
        inner: &Shared,
        common: &Arc<Common>,
        observation: Option<&Observation>,
        journal: Option<&Journal>,
        user: SeatUser,
    ) -> (Worker, usize) {
        // Each seat has at most one participant, so there is one for every seat.
        let participant = inner
            .epochs
            .register()
            .expect("there is a participant for every seat");
        let slot = participant.slot();
        inner.users.set(slot, user);
        let random = Random::stream(inner.options.seed, inner.next_stream());
        let mut worker = Worker::new(common, participant, random);
        worker.observe(observation);
        worker.attach(journal);
        let counters = worker.counters().clone();
        inner.tallies.join(common.configuration(), counters);
        (worker, slot)
    }

    /// What all seats of the database share.
    pub fn inner(&self) -> &Arc<Shared> {
        &self.inner
    }

    /// Has the transactions that run next be those of `user`, in reports.
    pub fn set_user(&mut self, user: SeatUser) {
        self.user = user;
        self.inner.users.set(self.participant, user);
    }

    /// Lets transactions start also while the database is being closed.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// What runs next ends at `deadline_ns` if ever, or when `interrupt` asks it to; holds until it
    /// is set anew. A call brings its own deadline.
    pub fn limit(&mut self, deadline_ns: Option<u64>, interrupt: Option<&Interrupt>) {
        self.worker_mut().limit(deadline_ns, interrupt);
        self.interrupt = interrupt.cloned();
    }

    /// Whether one transaction runs at a time.
    pub fn is_single(&self) -> bool {
        self.single
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The gate's state that the last [`Seat::enter`] saw: changes with the catalog.
    #[inline(always)]
    pub fn known(&self) -> u64 {
        self.known
    }

    /// The catalog; current while entered.
    #[inline(always)]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The current log epoch: all that the transactions which have ended here observed belongs to
    /// this epoch or an earlier one.
    #[inline(always)]
    pub fn observed(&self) -> LogEpoch {
        self.log_epochs().current()
    }

    /// The log epochs of the database.
    pub fn log_epochs(&self) -> &LogEpochs {
        &self.inner.log_epochs
    }

    /// Raises the flag: from here to [`Seat::leave`] or [`Seat::step_aside`] the catalog and the
    /// protocol stay as they are, and up to [`Seat::leave`] no other transaction runs if the
    /// protocol needs that.
    #[inline(always)]
    pub fn enter(&mut self, deadline_ns: Option<u64>) -> std::result::Result<(), Refusal> {
        if let Some(log) = &self.log
            && log.is_congested()
            && !log.wait_for_room(deadline_ns)
        {
            return Err(Refusal::Expired);
        }
        self.raise(deadline_ns)?;
        if self.single {
            self.take_token(deadline_ns)
        } else {
            self.entered = true;
            Ok(())
        }
    }

    #[inline(always)]
    fn raise(&mut self, deadline_ns: Option<u64>) -> std::result::Result<(), Refusal> {
        let state = self.inner.gate.enter(self.number);
        match state == self.known {
            true => Ok(()),
            false => self.catch_up(state, deadline_ns),
        }
    }

    #[inline]
    fn take_token(&mut self, deadline_ns: Option<u64>) -> std::result::Result<(), Refusal> {
        if !self.inner.gate.token().try_take() {
            self.wait_for_token(deadline_ns)?;
        }
        self.entered = true;
        // The one that had the token may have panicked with it.
        if self.inner.gate.state() & BROKEN != 0 {
            self.leave();
            return Err(Refusal::Broken);
        }
        Ok(())
    }

    /// Waits with the flag down: an open block that has the token holds up other transactions, but
    /// not a change of the catalog. The flag is up again when the seat has the token, or needs none
    /// any more.
    #[cold]
    fn wait_for_token(&mut self, deadline_ns: Option<u64>) -> std::result::Result<(), Refusal> {
        let inner = self.inner.clone();
        let (gate, token) = (&inner.gate, inner.gate.token());
        loop {
            gate.leave(self.number);
            if !token.take(deadline_ns, self.interrupt.as_ref()) {
                return Err(Refusal::Expired);
            }
            if gate.enter(self.number) == self.known {
                return Ok(());
            }
            gate.leave(self.number);
            token.give();
            self.raise(deadline_ns)?;
            if !self.single || token.try_take() {
                return Ok(());
            }
        }
    }

    /// The transaction waits for its client: until [`Seat::resume`] it touches nothing of the
    /// database, which may change but for the tables that it has used ([`crate::blocks`]).
    pub fn step_aside(&mut self) {
        debug_assert!(self.entered);
        (self.entered, self.aside) = (false, true);
        self.inner.gate.step_aside(self.number);
    }

    /// Goes on with a transaction that has stood aside, in the present catalog.
    ///
    /// # Errors
    /// When the gate stays shut until `deadline_ns`, or until the statement is asked to end.
    pub fn resume(&mut self, deadline_ns: Option<u64>) -> std::result::Result<(), Refusal> {
        if !self.aside {
            return Ok(());
        }
        let (gate, interrupt) = (&self.inner.gate, self.interrupt.as_ref());
        let state = gate.resume(self.number, deadline_ns, interrupt)?;
        self.go_on(state);
        Ok(())
    }

    /// The flag is up again, and the gate's state is this.
    fn go_on(&mut self, state: u64) {
        (self.entered, self.aside) = (true, false);
        if state != self.known {
            self.catalog = self.inner.catalog();
            // The next transaction looks at what is refused. Protocol, observers and listeners do
            // not change while a transaction is open.
            let is_refused = state & (BROKEN | CLOSING) != 0;
            self.known = if is_refused { NEVER } else { state };
        }
    }

    /// Notes that the open block uses a program's tables; false when it must wait for one of them
    /// first.
    pub fn use_tables(&self, program: &Program) -> bool {
        let blocks = &self.inner.blocks;
        blocks.use_tables(self.number, self.user, &program.tables)
    }

    /// Whether the open block has used a table.
    pub fn uses_tables(&self) -> bool {
        self.inner.blocks.uses_tables(self.number)
    }

    /// Waits, aside, until a program's tables can be used; false when the limits end the wait
    /// before.
    pub fn wait_for_tables(
        &self,
        program: &Program,
        deadline_ns: Option<u64>,
        interrupt: &Interrupt,
    ) -> bool {
        let blocks = &self.inner.blocks;
        blocks.wait_unbarred(&program.tables, deadline_ns, interrupt)
    }

    /// The block is over: changes of the catalog need not wait for its tables any more.
    pub fn forget_tables(&self) {
        self.inner.blocks.forget(self.number);
    }

    /// Lowers the flag; no transaction is open in the worker. After a panic there the flag is down
    /// already.
    #[inline(always)]
    pub fn leave(&mut self) {
        if !self.entered {
            return;
        }
        if self.single {
            self.inner.gate.token().give();
        }
        self.entered = false;
        self.inner.gate.leave(self.number);
    }

    /// As [`Seat::enter`], of the thread that has shut the gate.
    pub fn enter_alone(&mut self, _: &Alone<'_>) -> std::result::Result<(), Refusal> {
        let state = self.inner.gate.enter(self.number) & !SHUT;
        if state != self.known {
            self.follow(state)?;
        }
        if self.single && !self.inner.gate.token().try_take() {
            self.inner.gate.leave(self.number);
            return Err(Refusal::Expired);
        }
        self.entered = true;
        Ok(())
    }

    /// As [`Seat::resume`], of the thread that has shut the gate.
    pub fn resume_alone(&mut self, _: &Alone<'_>) {
        let state = self.inner.gate.enter(self.number) & !SHUT;
        self.go_on(state);
    }

    /// Has the worker report its commits to another journal until the next [`Seat::listen`]; no
    /// transaction is open.
    pub fn listen(&mut self, journal: Option<&Journal>) {
        let journal = journal.or(self.journal.as_ref()).cloned();
        self.worker_mut().attach(journal.as_ref());
    }

    #[cold]
    fn catch_up(
        &mut self,
        mut state: u64,
        deadline_ns: Option<u64>,
    ) -> std::result::Result<(), Refusal> {
        if state & SHUT != 0 {
            self.inner.gate.leave(self.number);
            let interrupt = self.interrupt.as_ref();
            let gate = &self.inner.gate;
            state = gate.enter_when_open(self.number, deadline_ns, interrupt)?;
        }
        self.follow(state)
    }

    /// Takes over what has changed before the gate's state, whose flag is up; it comes down again
    /// where that is refused.
    fn follow(&mut self, state: u64) -> std::result::Result<(), Refusal> {
        if let Some(refusal) = self.refusal(state) {
            self.inner.gate.leave(self.number);
            return Err(refusal);
        }
        let observation = self.inner.observation();
        let is_observed = match (&observation, &self.observation) {
            (Some(new), Some(old)) => new.is(old),
            (new, old) => new.is_none() && old.is_none(),
        };
        if !is_observed {
            self.worker_mut().observe(observation.as_ref());
            self.observation = observation;
        }
        let journal = self.inner.journal();
        let is_attached = match (&journal, &self.journal) {
            (Some(new), Some(old)) => new.is(old),
            (new, old) => new.is_none() && old.is_none(),
        };
        self.journal = journal;
        self.log = self.inner.log().cloned();
        let common = self.inner.common();
        if Arc::ptr_eq(&common, &self.common) {
            if !is_attached {
                let journal = self.journal.clone();
                self.worker_mut().attach(journal.as_ref());
            }
        } else {
            self.past = self.statistics();
            // The old worker first: it gives back the participant that the new one takes.
            self.worker = None;
            let observation = self.observation.as_ref();
            let journal = self.journal.as_ref();
            let (worker, participant) =
                Seat::worker_of(&self.inner, &common, observation, journal, self.user);
            (self.worker, self.participant) = (Some(worker), participant);
            self.single = common.configuration().is_single_worker();
            self.common = common;
            let interrupt = self.interrupt.clone();
            self.worker_mut().limit(None, interrupt.as_ref());
        }
        self.catalog = self.inner.catalog();
        self.known = state;
        Ok(())
    }

    fn refusal(&self, state: u64) -> Option<Refusal> {
        if state & BROKEN != 0 {
            Some(Refusal::Broken)
        } else if state & CLOSING != 0 && !self.draining {
            Some(Refusal::Closing)
        } else {
            None
        }
    }

    /// Why the open transaction must end, if it must: the database is being closed.
    pub fn interruption(&self) -> Option<Refusal> {
        self.refusal(self.inner.gate.state())
    }

    /// The worker. A method that calls into it uses [`Seat::inside`].
    #[inline(always)]
    fn worker_mut(&mut self) -> &mut Worker {
        match &mut self.worker {
            Some(worker) => worker,
            None => unreachable!("a seat has a worker"),
        }
    }

    /// Runs `body` on the worker. If it panics the database is over.
    #[inline(always)]
    fn inside<T>(&mut self, body: impl FnOnce(&mut Worker) -> T) -> T {
        debug_assert!(self.entered);
        self.inside = true;
        let breakdown = Breakdown(self);
        let result = body(breakdown.0.worker_mut());
        std::mem::forget(breakdown);
        self.inside = false;
        result
    }

    /// Runs a whole call; the arguments are bound to the program, and the seat is entered. What it
    /// wrote is reported with its answer, if it has one.
    #[inline(always)]
    pub fn call(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Outcome {
        if let Err(error) = self.check_log(program) {
            return Outcome::Rejected(error);
        }
        let patience = Some(PATIENCE_NS);
        let ended = self
            .inside(|worker| worker.try_call(program, arguments, deadline_ns, patience, answer));
        let outcome = match ended {
            Some(outcome) => outcome,
            None => self.call_alone(program, arguments, deadline_ns, answer),
        };
        if let Outcome::Committed = outcome {
            count(self.number, program);
        }
        outcome
    }

    /// Checks that the log takes what a program may change.
    #[inline(always)]
    fn check_log(&self, program: &Program) -> Result<()> {
        match &self.log {
            None => Ok(()),
            Some(_) => self.inner.check_log(program),
        }
    }

    /// Runs a call that starves: the gate keeps the other transactions out for its time, so that no
    /// call is repeated for ever. While the gate cannot be shut, because the catalog is being
    /// changed or others stay inside, the call goes on trying among them.
    #[cold]
    fn call_alone(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
        deadline_ns: Option<u64>,
        answer: Option<&Arc<dyn AnswerWriter>>,
    ) -> Outcome {
        loop {
            self.stand_by(program, deadline_ns);
            let inner = self.inner.clone();
            let alone = inner.gate.shut_around(self.number, ALONE_WAIT_NS);
            let patience = match &alone {
                Some(_) => None,
                // Not for longer than the first time: a change of the catalog may wait for it.
                None => Some(PATIENCE_NS),
            };
            let ended = self.inside(|worker| {
                worker.try_call(program, arguments, deadline_ns, patience, answer)
            });
            if let Some(outcome) = ended {
                return outcome;
            }
        }
    }

    /// Stands aside between two attempts of a call that starves, if a change of the catalog waits:
    /// what the call waits for may be an open block, and the change need not wait for that. The
    /// call's tables stay as they are.
    #[cold]
    fn stand_by(&mut self, program: &Program, deadline_ns: Option<u64>) {
        // Where one transaction runs at a time none is in its way.
        if self.single || !self.inner.gate.is_wanted() {
            return;
        }
        let blocks = &self.inner.blocks;
        blocks.hold_tables(self.number, self.user, &program.tables);
        self.step_aside();
        let latest_ns = time::now_ns() + STAND_BY_NS;
        let latest_ns = deadline_ns.map_or(latest_ns, |deadline| deadline.min(latest_ns));
        while self.inner.gate.is_wanted() && time::now_ns() < latest_ns {
            thread::park_for(STAND_BY_LOOK_NS);
        }
        // Without a limit it waits until the gate is open. The call itself sees when its time is
        // over.
        let _ = self.resume(None);
        self.forget_tables();
    }

    /// Whether the worker has several calls in flight when it serves; the seat is entered.
    #[inline(always)]
    pub fn is_pipelined(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::is_pipelined)
    }

    /// Lets the worker serve calls until there are no more, or until the gate is shut or its state
    /// changes: leave then, and enter again for what is left. The seat is entered all the while,
    /// and its worker is [pipelined](Seat::is_pipelined): any other would not end a call that waits
    /// for a block when a change of the catalog waits for the call.
    pub fn serve(&mut self, calls: &mut dyn Calls) {
        debug_assert!(self.is_pipelined());
        let inner = self.inner.clone();
        let mut gated = Gated {
            inner: &inner,
            log: inner.log().map(|log| &**log),
            known: self.known,
            seat: self.number,
            has_paused: false,
            calls,
        };
        self.inside(|worker| worker.serve(&mut gated));
    }

    /// Starts an attempt of a transaction of several statements.
    pub fn begin(&mut self) -> std::result::Result<(), Refusal> {
        self.called.clear();
        match self.inside(Worker::begin) {
            true => Ok(()),
            false => Err(Refusal::Broken),
        }
    }

    /// Starts a transaction of several statements that its client began earlier, in microseconds
    /// since 1970.
    pub fn begin_since(&mut self, began_us: i64) -> std::result::Result<(), Refusal> {
        self.begin()?;
        self.inside(|worker| worker.set_transaction_began(began_us));
        Ok(())
    }

    /// Runs one of its statements.
    pub fn run(
        &mut self,
        program: &Arc<Program>,
        arguments: &Arguments,
    ) -> std::result::Result<(), Stop> {
        self.check_log(program).map_err(Stop::Raise)?;
        self.inside(|worker| worker.run(program, arguments))?;
        if let Some(calls) = program.calls.get() {
            let mut called = self.called.iter_mut();
            match called.find(|(known, _)| Arc::ptr_eq(known, calls)) {
                Some((_, count)) => *count += 1,
                None => self.called.push((calls.clone(), 1)),
            }
        }
        Ok(())
    }

    /// The result of a transaction of several statements, or of one statement of it, with the log
    /// epoch that must be on disk before the client hears it; or the error that the client gets
    /// instead, when the log has failed. Not called after [`Seat::end_transaction`].
    pub fn settle<T>(&mut self, result: Result<T>) -> Observed<T> {
        let outcome = self.unsettled(result);
        let programs = self.worker.as_mut().map_or(&[][..], Worker::programs);
        self.inner.settle(outcome, programs, |_| None)
    }

    /// The result of a transaction that has ended here just now, and all that it can have observed.
    pub fn unsettled<T>(&self, result: Result<T>) -> Observed<T> {
        let epoch = self.observed();
        Observed { result, epoch }
    }

    /// Commits it; when that fails it is rolled back.
    pub fn commit(&mut self) -> std::result::Result<(), AbortCause> {
        self.inside(Worker::commit)?;
        for (calls, count) in self.called.drain(..) {
            calls.add(self.number, count);
        }
        Ok(())
    }

    /// Rolls it back, unless the worker panicked in it.
    pub fn roll_back(&mut self) {
        if !self.inside {
            self.inside(Worker::roll_back);
        }
    }

    /// Whether what it has read is consistent.
    pub fn confirm(&mut self) -> std::result::Result<(), AbortCause> {
        self.inside(Worker::confirm)
    }

    /// Whether nothing runs on it, and nothing panicked while it did.
    pub fn is_at_rest(&self) -> bool {
        !self.inside && !self.entered && !self.aside
    }

    /// The transaction of several statements is over, however it has ended: nothing of it is left
    /// in the worker.
    pub fn end_transaction(&mut self) {
        self.called.clear();
        if !self.inside {
            self.worker_mut().end_transaction();
        }
    }

    /// Waits as between two attempts, not past `deadline_ns`; nothing is open.
    pub fn back_off(&mut self, deadline_ns: Option<u64>) {
        self.worker_mut().back_off(deadline_ns);
    }

    /// The frame of the last run.
    pub fn frame(&self) -> &Frame {
        self.worker.as_ref().expect("a seat has a worker").frame()
    }

    /// What the seat's workers have counted.
    pub fn statistics(&mut self) -> Statistics {
        let mut sum = self.past.clone();
        sum.add(&self.worker_mut().statistics());
        sum
    }

    /// Whether the worker's history has no room for another call.
    pub fn is_history_full(&mut self) -> bool {
        self.worker_mut().is_history_full()
    }

    /// Starts counting anew.
    pub fn reset_statistics(&mut self) {
        self.past = Statistics::default();
        self.worker_mut().reset_statistics();
    }
}

/// A transaction of several statements on a seat, through all its attempts: it is over when this is
/// dropped.
pub(crate) struct Repeated<'a>(pub &'a mut Seat);

impl Drop for Repeated<'_> {
    fn drop(&mut self) {
        self.0.end_transaction();
    }
}

/// Calls that pause when another thread wants the database alone, and when it has changed.
struct Gated<'a> {
    inner: &'a Shared,
    log: Option<&'a Log>,
    /// The gate's state that the seat entered in: open.
    known: u64,
    seat: usize,
    /// Whether the worker was told to pause for the gate's sake.
    has_paused: bool,
    calls: &'a mut dyn Calls,
}

impl Gated<'_> {
    /// Whether the worker has to leave.
    #[inline(always)]
    fn is_interrupted(&mut self) -> bool {
        // It has to leave although the gate may be open again: until it does it draws no calls.
        self.has_paused |= self.inner.gate.state() != self.known;
        // Also where the log has to catch up: outside it waits for that.
        self.has_paused |= self.log.is_some_and(Log::is_congested);
        self.has_paused
    }
}

/// Counts a call of a program that has committed on a seat, if it is a stored procedure's.
#[inline(always)]
fn count(seat: usize, program: &Program) {
    if let Some(calls) = program.calls.get() {
        calls.add(seat, 1);
    }
}

impl Calls for Gated<'_> {
    fn next(&mut self, call: &mut Call) -> Next {
        loop {
            if self.is_interrupted() {
                return Next::Pause;
            }
            let next = self.calls.next(call);
            let (Next::Call, Some(program)) = (&next, &call.program) else {
                return next;
            };
            match self.inner.check_log(program) {
                Ok(()) => return next,
                Err(error) => {
                    let outcome = Outcome::Rejected(error);
                    self.calls.ended(call, outcome, &Frame::new());
                }
            }
        }
    }

    fn is_over(&mut self) -> bool {
        self.is_interrupted() || self.calls.is_over()
    }

    fn is_bound(&self) -> bool {
        self.calls.is_bound()
    }

    fn takes_back(&mut self) -> bool {
        self.is_interrupted()
    }

    fn take_back(&mut self, call: &mut Call) {
        self.calls.take_back(call);
    }

    fn ended(&mut self, call: &Call, outcome: Outcome, frame: &Frame) {
        if let (Outcome::Committed, Some(program)) = (&outcome, &call.program) {
            count(self.seat, program);
        }
        self.calls.ended(call, outcome, frame);
    }

    fn lost(&mut self, ticket: u64) {
        self.calls.lost(ticket);
    }
}

/// Control is inside a worker; dropped only when that panics. From then on no transaction starts,
/// those that run elsewhere give up, and the worker stays as it is.
struct Breakdown<'a>(&'a mut Seat);

impl Drop for Breakdown<'_> {
    #[cold]
    fn drop(&mut self) {
        let seat = &mut *self.0;
        // In this order: a worker that gives up is not freed, and that is decided by the gate.
        seat.inner.gate.set(BROKEN);
        seat.inner.epochs.break_down();
        seat.worker_mut().leave_core();
        seat.leave();
    }
}

/// Checks that no table of a program was changed since it was compiled; the seat is entered.
#[inline]
pub(crate) fn check_current(program: &Program) -> Result<()> {
    if program.tables.iter().any(|table| table.is_superseded()) {
        return Err(errors::stale(&program.name));
    }
    Ok(())
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.inner.gate.state() & BROKEN != 0 {
            // Others may reach what it has, so it is not freed, and its seat is not given to
            // another worker.
            if let Some(worker) = self.worker.take() {
                worker.leak();
            }
            self.leave();
            return;
        }
        if self.entered {
            self.leave();
        }
        // The participant goes before the seat is free for another user.
        self.worker = None;
        self.inner.gate.stand_up(self.number);
    }
}
