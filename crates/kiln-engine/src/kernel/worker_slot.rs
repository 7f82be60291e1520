//! A worker slot: one worker of the present protocol, and the right to run transactions on it.

mod calls;
mod serving;
mod transactions;

use kiln_durability::log::Log;
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::{CallCounts, Frame, Interrupt, Program};
use kiln_protocols::{Common, Observation, Statistics, Worker};
use kiln_storage::error::Result;
use kiln_storage::journal::Journal;
use kiln_storage::log_epoch::{LogEpoch, LogEpochs};

use super::gate::{Alone, BROKEN, CLOSING, NEVER, SHUT};
use super::inner::EngineInner;
use super::refusal::Refusal;
use super::slot_user::SlotUser;
use crate::calls::Rows;
use crate::catalog::Catalog;
pub(crate) use calls::ALONE_WAIT_NS;
pub(crate) use transactions::Repeated;

/// One worker and the slot's number; used by one thread at a time.
///
/// Invariants: the worker is of `common`, and `catalog` is the one of the gate's state `known`.
/// A transaction is open in the worker only while the flag is up (`entered`), or half up (`aside`).
pub(crate) struct WorkerSlot {
    inner: Arc<EngineInner>,
    number: usize,
    user: SlotUser,
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
    /// What former workers of this worker slot have counted.
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

impl WorkerSlot {
    /// A free worker slot for `user` with a worker of the present protocol; `None` when all are
    /// taken.
    pub fn new(inner: &Arc<EngineInner>, user: SlotUser) -> Option<WorkerSlot> {
        let number = inner.gate.take_worker_slot()?;
        let (common, observation, journal) = (inner.common(), inner.observation(), inner.journal());
        let (worker, participant) =
            WorkerSlot::worker_of(inner, &common, observation.as_ref(), journal.as_ref(), user);
        Some(WorkerSlot {
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
        inner: &EngineInner,
        common: &Arc<Common>,
        observation: Option<&Observation>,
        journal: Option<&Journal>,
        user: SlotUser,
    ) -> (Worker, usize) {
        // Each worker slot has at most one participant, so there is one for every worker slot.
        let participant = inner
            .epochs
            .register()
            .expect("there is a participant for every worker slot");
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

    /// What all worker slots of the database share.
    pub fn inner(&self) -> &Arc<EngineInner> {
        &self.inner
    }

    /// Has the transactions that run next be those of `user`, in reports.
    pub fn set_user(&mut self, user: SlotUser) {
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

    /// The gate's state that the last [`WorkerSlot::enter`] saw: changes with the catalog.
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

    /// Raises the flag: from here to [`WorkerSlot::leave`] or [`WorkerSlot::step_aside`] the
    /// catalog and the protocol stay as they are, and up to [`WorkerSlot::leave`] no other
    /// transaction runs if the protocol needs that.
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

    /// Takes over what has changed although no call is there: the worker slot lets go of dropped
    /// tables and of a former protocol. While the gate is shut it does nothing.
    pub fn look(&mut self) {
        let gate = &self.inner.gate;
        let state = gate.enter(self.number);
        // A refusal has lowered the flag.
        if state & SHUT != 0 || state == self.known || self.follow(state).is_ok() {
            self.inner.gate.leave(self.number);
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
    /// not a change of the catalog. The flag is up again when the worker slot has the token, or
    /// needs none any more.
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

    /// The transaction waits for its client: until [`WorkerSlot::resume`] it touches nothing of the
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

    /// As [`WorkerSlot::enter`], of the thread that has shut the gate.
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

    /// As [`WorkerSlot::resume`], of the thread that has shut the gate.
    pub fn resume_alone(&mut self, _: &Alone<'_>) {
        let state = self.inner.gate.enter(self.number) & !SHUT;
        self.go_on(state);
    }

    /// Has the worker report its commits to another journal until the next [`WorkerSlot::listen`];
    /// no transaction is open.
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
                WorkerSlot::worker_of(&self.inner, &common, observation, journal, self.user);
            (self.worker, self.participant) = (Some(worker), participant);
            self.single = common.configuration().is_single_worker();
            self.common = common;
            let interrupt = self.interrupt.clone();
            self.worker_mut().limit(None, interrupt.as_ref());
        }
        self.worker_mut().forget_programs();
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

    /// The worker. A method that calls into it uses [`WorkerSlot::inside`].
    #[inline(always)]
    fn worker_mut(&mut self) -> &mut Worker {
        match &mut self.worker {
            Some(worker) => worker,
            None => unreachable!("a worker slot has a worker"),
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

    /// Checks that the log takes what a program may change.
    #[inline(always)]
    fn check_log(&self, program: &Program) -> Result<()> {
        match &self.log {
            None => Ok(()),
            Some(_) => self.inner.check_log(program),
        }
    }

    /// Whether nothing runs on it, and nothing panicked while it did.
    pub fn is_at_rest(&self) -> bool {
        !self.inside && !self.entered && !self.aside
    }

    /// What a program left in the frame of the last run.
    pub fn rows(&self, program: &Program) -> Rows {
        Rows::take(self.frame(), program)
    }

    /// The frame of the last run.
    pub fn frame(&self) -> &Frame {
        self.worker
            .as_ref()
            .expect("a worker slot has a worker")
            .frame()
    }

    /// What the worker slot's workers have counted.
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

/// Control is inside a worker; dropped only when that panics. From then on no transaction starts,
/// those that run elsewhere give up, and the worker stays as it is.
struct Breakdown<'a>(&'a mut WorkerSlot);

impl Drop for Breakdown<'_> {
    #[cold]
    fn drop(&mut self) {
        let worker_slot = &mut *self.0;
        // In this order: a worker that gives up is not freed, and that is decided by the gate.
        worker_slot.inner.gate.set(BROKEN);
        worker_slot.inner.epochs.break_down();
        worker_slot.worker_mut().leave_core();
        worker_slot.leave();
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        if self.inner.gate.state() & BROKEN != 0 {
            // Others may reach what it has, so it is not freed, and its worker slot is not given to
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
        // The participant goes before the worker slot is free for another user.
        self.worker = None;
        self.inner.gate.give_worker_slot_back(self.number);
    }
}
