//! What a session is between its statements, and how a program runs in it: alone, or in the open
//! block.

use std::time::Duration;

use kiln_platform::sync::{Arc, Mutex};
use kiln_platform::time;
use kiln_procedure::{Arguments, Program, Stop};
use kiln_protocols::Outcome;
use kiln_storage::error::{Error, Result};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::sequence::SessionSequences;
use kiln_storage::table::Table;

use super::definitions::Own;
use super::limits::Limits;
use super::locks::Held;
use super::replay::Transcript;
use super::timed_out;
use crate::calls::Rows;
use crate::catalog::{Catalog, check_current};
use crate::change::Temporary;
use crate::errors;
use crate::kernel::{BlockClock, EngineInner, PooledSlot, WatchedSession, WorkerSlot};
use crate::observed::Observed;

/// How long a block that cannot be run again waits for a change of the catalog while it holds what
/// others may wait for.
const HELD_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// Each program is a transaction of its own.
    None,
    /// A block that has run nothing: it has no slot yet.
    Begun,
    /// A transaction is open; the session has a worker slot, which is entered.
    Open,
    /// The transaction failed and was rolled back; the block waits for its end.
    Failed,
    /// As `Failed`, because it idled too long; the client was not told yet.
    TimedOut,
}

/// Why a statement of a block, or its commit, has failed.
pub(super) enum Failure {
    /// Other transactions: the block may succeed when it is run again.
    Conflict(Error),
    /// A change of the catalog waits for a table of this program: the block may succeed when it is
    /// run again after that.
    Barred(Arc<Program>),
    /// Its own reasons.
    Final(Error),
}

impl Failure {
    pub fn error(self) -> Error {
        match self {
            Failure::Conflict(error) | Failure::Final(error) => error,
            Failure::Barred(program) => changed_meanwhile(&program),
        }
    }
}

/// What a session is; shared with the reaper of idle transactions while a block is open.
pub(crate) struct State {
    pub(super) number: u64,
    /// There while a transaction is open.
    pub(super) worker_slot: Option<PooledSlot>,
    pub(super) block: Block,
    /// Whether the worker has an attempt of the open transaction that was neither committed nor
    /// rolled back.
    pub(super) has_attempt: bool,
    /// Whether the reaper knows the session.
    pub(super) is_watched: bool,
    /// When the block began; there from the first one on.
    pub(super) clock: Option<Arc<BlockClock>>,
    /// When the last statement of the open transaction ended.
    pub(super) idle_since_ns: u64,
    /// How long an open block may idle before it is rolled back; 0 for as long as it likes.
    pub(super) idle_limit_ns: u64,
    /// The log epoch that was current when the last statement ended.
    pub(super) observed: LogEpoch,
    /// Whether results wait until what they rest on is on disk.
    pub(super) is_synchronous: bool,
    /// The version of the catalog in which the open transaction began.
    pub(super) version: u64,
    /// What the open block has run, and what its client has seen.
    pub(super) transcript: Transcript,
    /// Whether the last block failed because of other transactions.
    pub(super) has_lost: bool,
    /// What the session has drawn from sequences, once it has.
    pub(super) sequences: Option<Arc<SessionSequences>>,
    /// What few blocks have. Boxed, so that a session without blocks stays small.
    pub(super) own: Option<Box<Own>>,
    /// The locks that its client has asked for by name; there while it holds some.
    pub(super) held: Option<Box<Held>>,
    /// Its temporary objects; there once it has had some.
    pub(super) temporary: Option<Arc<Temporary>>,
}

impl State {
    pub fn new(number: u64, idle_limit_ns: u64) -> State {
        State {
            number,
            idle_limit_ns,
            worker_slot: None,
            block: Block::None,
            has_attempt: false,
            is_watched: false,
            clock: None,
            idle_since_ns: 0,
            observed: LogEpoch::default(),
            is_synchronous: true,
            version: 0,
            transcript: Transcript::default(),
            has_lost: false,
            sequences: None,
            own: None,
            held: None,
            temporary: None,
        }
    }

    /// What says since when a block is open.
    pub(super) fn clock(&mut self) -> &Arc<BlockClock> {
        let number = self.number;
        (self.clock).get_or_insert_with(|| Arc::new(BlockClock::new(number)))
    }

    /// A block begins now; returns its clock.
    pub(super) fn start_clock(&mut self) -> &Arc<BlockClock> {
        let clock = self.clock();
        clock.start();
        clock
    }

    /// No block is open any more.
    pub(super) fn stop_clock(&self) {
        if let Some(clock) = &self.clock {
            clock.stop();
        }
    }

    /// What the session has drawn from sequences.
    pub(super) fn sequences(&mut self) -> &Arc<SessionSequences> {
        self.sequences.get_or_insert_default()
    }

    pub(super) fn worker_slot(&mut self) -> &mut WorkerSlot {
        self.worker_slot
            .as_mut()
            .expect("an open block has a worker slot")
    }

    /// Takes a slot and starts the transaction of a block at its first program.
    fn open(&mut self, inner: &Arc<EngineInner>, limits: Limits<'_>) -> Result<()> {
        self.worker_slot = Some(limits.slot(inner, self.number)?);
        self.worker_slot()
            .limit(limits.deadline_ns, Some(limits.interrupt));
        let begun = self.begin_attempt(limits);
        self.worker_slot().limit(None, None);
        match begun {
            Ok(()) => self.block = Block::Open,
            Err(_) => self.worker_slot = None,
        }
        begun
    }

    /// Enters the worker slot, and begins an attempt of the block's transaction.
    pub(super) fn begin_attempt(&mut self, limits: Limits<'_>) -> Result<()> {
        let began_us = self.clock.as_ref().and_then(|clock| clock.open_block());
        let began_us = began_us.map_or(0, |(_, began_us)| began_us);
        let worker_slot = self.worker_slot();
        let entered = worker_slot.enter(limits.deadline_ns);
        entered.map_err(|refusal| limits.refused(refusal))?;
        if let Err(refusal) = worker_slot.begin_since(began_us) {
            worker_slot.leave();
            return Err(refusal.error());
        }
        self.version = self.worker_slot().catalog().version();
        self.has_attempt = true;
        self.forget_written();
        self.forget_sent();
        Ok(())
    }

    /// The result of the open block's transaction, or of one of its statements, as
    /// [`WorkerSlot::outcome_for_client`] gives it.
    pub(super) fn outcome_for_client<T>(&mut self, result: Result<T>) -> Observed<T> {
        match self.is_synchronous {
            true => self.worker_slot().outcome_for_client(result),
            false => self.worker_slot().outcome_observed(result),
        }
    }

    /// As [`State::outcome_for_client`], for a statement outside of a block.
    fn outcome_alone(
        &self,
        worker_slot: &WorkerSlot,
        result: Result<Rows>,
        program: &[Arc<Program>],
    ) -> Observed<Rows> {
        let outcome = worker_slot.outcome_observed(result);
        match self.is_synchronous {
            true => worker_slot
                .inner()
                .outcome_for_client(outcome, program, |_| None),
            false => outcome,
        }
    }

    /// # Errors
    /// 25P02 and 25P03 in a block that has failed.
    pub(super) fn check_not_failed(&mut self) -> Result<()> {
        match self.block {
            Block::Failed => Err(errors::failed_transaction()),
            Block::TimedOut => Err(self.tell_of_timeout()),
            Block::None | Block::Begun | Block::Open => Ok(()),
        }
    }

    /// Whether a block is open or about to be: what the reaper ends when it idles.
    pub(super) fn is_in_block(&self) -> bool {
        matches!(self.block, Block::Begun | Block::Open)
    }

    /// The error of a block that has idled too long; from now on it has failed.
    pub(super) fn tell_of_timeout(&mut self) -> Error {
        self.block = Block::Failed;
        timed_out()
    }

    /// Fails the open block, if there is one.
    pub(super) fn give_up(&mut self) {
        if self.is_in_block() {
            self.abandon(Block::Failed);
        }
    }

    /// Undoes the attempt that is open, if one is.
    pub(super) fn roll_back_attempt(&mut self) {
        if std::mem::take(&mut self.has_attempt) {
            self.worker_slot().roll_back();
        }
        self.give_up_temporary();
        self.give_up_trial();
    }

    /// Rolls the open transaction back, if there is one; the block goes on as `block`.
    pub(super) fn abandon(&mut self, block: Block) {
        if let Some(worker_slot) = &mut self.worker_slot {
            // Without a limit it waits until the gate is open.
            let _ = worker_slot.resume(None);
            self.roll_back_attempt();
        }
        self.close(block);
    }

    /// After the transaction has committed or was rolled back: it is over, as sessions repeat
    /// nothing.
    pub(super) fn close(&mut self, block: Block) {
        if let Some(mut worker_slot) = self.worker_slot.take() {
            worker_slot.end_transaction();
            worker_slot.forget_tables();
            worker_slot.leave();
        }
        self.has_attempt = false;
        self.forget_sent();
        self.end(block);
    }

    /// The block goes on as `block`, without a transaction. A failed one with a savepoint may be
    /// rolled back to that.
    pub(super) fn end(&mut self, block: Block) {
        let goes_on =
            matches!(block, Block::Begun | Block::Failed) && self.transcript.has_savepoint;
        if !goes_on {
            self.transcript.clear();
            // All but what the session has set.
            let style = self.own.take().and_then(|own| own.style);
            if style.is_some() {
                self.own.get_or_insert_default().style = style;
            }
            self.release_transaction_locks();
            self.stop_clock();
        }
        self.block = block;
    }

    /// Runs a program as a transaction of its own.
    pub(super) fn run_alone(
        &mut self,
        inner: &Arc<EngineInner>,
        mut compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
        limits: Limits<'_>,
    ) -> Observed<Rows> {
        let mut worker_slot = match limits.slot(inner, self.number) {
            Ok(worker_slot) => worker_slot,
            Err(error) => return Observed::nothing(error),
        };
        worker_slot.limit(limits.deadline_ns, Some(limits.interrupt));
        let outcome = match worker_slot.enter(limits.deadline_ns) {
            Ok(()) => {
                let temporary = self.temporary.clone();
                let style = self.style();
                let compile = |catalog: &Arc<Catalog>, arguments: &mut Arguments| {
                    let seen = temporary.as_ref().map(|it| it.over(catalog));
                    let program = compile(seen.as_ref().unwrap_or(catalog), arguments)?;
                    arguments.set_style(style.as_ref());
                    Ok(program)
                };
                let call = (&mut *arguments, &mut self.sequences);
                let (result, program) = run_alone(&mut worker_slot, compile, call, limits);
                if let (Ok(_), Some(program), Some(temporary)) = (&result, &program, &temporary)
                    && temporary.ends_with(program)
                {
                    temporary.commit(inner);
                }
                let outcome = self.outcome_alone(&worker_slot, result, program.as_slice());
                worker_slot.leave();
                outcome
            }
            Err(refusal) => Observed::nothing(limits.refused(refusal)),
        };
        worker_slot.limit(None, None);
        outcome
    }

    /// Runs a statement of a block that has begun, in `run`, and fails the block when that fails.
    pub(super) fn in_block(
        &mut self,
        inner: &Arc<EngineInner>,
        limits: Limits<'_>,
        run: impl FnOnce(&mut State) -> Result<Rows>,
    ) -> Observed<Rows> {
        match self.block {
            Block::Failed => return Observed::nothing(errors::failed_transaction()),
            Block::TimedOut => return Observed::nothing(self.tell_of_timeout()),
            Block::None | Block::Open => {}
            Block::Begun => {
                if let Err(error) = self.open(inner, limits) {
                    self.end(Block::Failed);
                    return Observed::nothing(error);
                }
            }
        }
        (self.worker_slot()).limit(limits.deadline_ns, Some(limits.interrupt));
        let result = run(self);
        self.worker_slot().limit(None, None);
        let outcome = self.outcome_for_client(result);
        match outcome.result {
            Ok(_) => self.worker_slot().step_aside(),
            Err(_) => self.abandon(Block::Failed),
        }
        self.idle_since_ns = time::now_ns();
        outcome
    }

    /// Lets a change of the catalog pass that waits for a table of the program. The change may wait
    /// for calls as well, and these for what the block holds: so the attempt ends, and the block is
    /// run again after the change.
    fn let_pass(
        &mut self,
        program: Arc<Program>,
        limits: Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        if !self.worker_slot().uses_tables() {
            let begun = self.begin_after_change(&program, limits);
            return begun.map_err(Failure::Final);
        }
        if self.transcript.is_whole() {
            return Err(Failure::Barred(program));
        }
        // It cannot be run again, and so holds what it holds, but not for long.
        self.worker_slot().step_aside();
        let within = limits.lock_timeout_of_at_most(HELD_WAIT);
        if within.wait_for_tables(self.worker_slot(), &program).is_ok() {
            return Ok(());
        }
        limits.check().map_err(Failure::Final)?;
        Err(Failure::Conflict(changed_meanwhile(&program)))
    }

    /// Gives the attempt up, and begins the next one when no change of the catalog waits for a
    /// table of the program.
    pub(super) fn begin_after_change(
        &mut self,
        program: &Program,
        limits: Limits<'_>,
    ) -> Result<()> {
        self.leave_attempt();
        limits.wait_for_tables(self.worker_slot(), program)?;
        self.begin_attempt(limits)?;
        (self.worker_slot()).limit(limits.deadline_ns, Some(limits.interrupt));
        Ok(())
    }

    /// Runs a program in the open transaction. While this thread has the database alone
    /// (`is_alone`) it does not wait for a table, as no other transaction could release it.
    pub(super) fn run_open(
        &mut self,
        mut compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
        limits: Limits<'_>,
        is_alone: bool,
    ) -> std::result::Result<Rows, Failure> {
        let program = loop {
            limits.resume(self.worker_slot()).map_err(Failure::Final)?;
            if let Some(refusal) = self.worker_slot().interruption() {
                return Err(Failure::Final(refusal.error()));
            }
            limits.check().map_err(Failure::Final)?;
            let catalog = self.block_catalog()?;
            let catalog = self.seen(&catalog);
            let compiled = compile(&catalog, arguments);
            let program = compiled.map_err(Failure::Final)?;
            check_current(&program).map_err(Failure::Final)?;
            if !self.worker_slot().uses_tables() {
                // It has seen nothing of any table yet.
                self.version = catalog.version();
            }
            check_unchanged(&catalog, self.version, &program).map_err(Failure::Conflict)?;
            if self.worker_slot().use_tables(&program) {
                break program;
            }
            if is_alone {
                return Err(Failure::Conflict(changed_meanwhile(&program)));
            }
            self.let_pass(program, limits)?;
        };
        if program.analysis.draws() {
            arguments.set_session(self.sequences());
        }
        if !program.deferred.is_empty() {
            arguments.defer_constraints(Arc::default);
        }
        arguments.bind(&program).map_err(Failure::Final)?;
        match self.worker_slot().run(&program, arguments) {
            Ok(()) => {
                self.note_written(&program);
                let mut rows = self.worker_slot().rows(&program);
                self.keep_sent(&mut rows).map_err(Failure::Final)?;
                Ok(rows)
            }
            // A statement that was to end may have lost a lock for that reason.
            Err(Stop::Abort(cause)) => {
                Err(match (limits.check(), self.worker_slot().interruption()) {
                    (Err(error), _) => Failure::Final(error),
                    // There is no point in starting again.
                    (Ok(()), Some(refusal)) => Failure::Final(refusal.error()),
                    (Ok(()), None) => Failure::Conflict(errors::conflict(cause)),
                })
            }
            Err(Stop::Raise(error)) => Err(Failure::Final(error)),
        }
    }
}

/// The error of a block that meets a change of a program's tables.
fn changed_meanwhile(program: &Program) -> Error {
    errors::changed_meanwhile(&program.tables[0].schema().name)
}

/// Runs a program as a transaction of its own; returns the program as well, if there was one.
fn run_alone(
    worker_slot: &mut WorkerSlot,
    mut compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
    (arguments, session): (&mut Arguments, &mut Option<Arc<SessionSequences>>),
    limits: Limits<'_>,
) -> (Result<Rows>, Option<Arc<Program>>) {
    let compiled = compile(worker_slot.catalog(), arguments).and_then(|program| {
        check_current(&program)?;
        if program.analysis.draws() {
            arguments.set_session(session.get_or_insert_default());
        }
        arguments.bind(&program)?;
        Ok(program)
    });
    let program = match compiled {
        Ok(program) => program,
        Err(error) => return (Err(error), None),
    };
    let result = match worker_slot.call(&program, arguments, limits.deadline_ns, None) {
        Outcome::Committed => Ok(worker_slot.rows(&program)),
        Outcome::Rejected(error) => Err(error),
        Outcome::Expired => Err(limits.exceeded()),
    };
    (result, Some(program))
}

/// Checks that no table of a program was changed since the catalog had this version: a transaction
/// that began then comes before the change, and cannot see the table as it was.
///
/// # Errors
/// 40001.
fn check_unchanged(catalog: &Catalog, version: u64, program: &Program) -> Result<()> {
    if catalog.version() == version {
        return Ok(());
    }
    let is_changed = |table: &Arc<Table>| catalog.is_changed_since(version, table.id());
    match program.tables.iter().find(|table| is_changed(table)) {
        Some(table) => Err(errors::changed_meanwhile(&table.schema().name)),
        None => Ok(()),
    }
}

impl WatchedSession for Mutex<State> {
    fn reap(&self, now_ns: u64) -> bool {
        // A session whose mutex is taken runs something, so it does not idle.
        let Ok(mut state) = self.try_lock() else {
            return true;
        };
        let idle_ns = now_ns.saturating_sub(state.idle_since_ns);
        if state.is_in_block() && state.idle_limit_ns > 0 && idle_ns > state.idle_limit_ns {
            state.abandon(Block::TimedOut);
        }
        state.is_watched = state.is_in_block();
        state.is_watched
    }

    fn idle_block(&self) -> Option<(u64, u64)> {
        let state = self.try_lock().ok()?;
        (state.block == Block::Open).then_some((state.number, state.idle_since_ns))
    }
}
