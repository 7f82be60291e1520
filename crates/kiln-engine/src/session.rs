//! Sessions: programs run in the caller's thread, alone or as transactions of several.

use std::time::Duration;

use kiln_platform::sync::{Arc, Mutex, MutexGuard, Weak, lock};
use kiln_platform::time;
use kiln_procedure::{Arguments, Interrupt, Program, Stop, interrupt};
use kiln_protocols::Outcome;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::LogEpoch;
use kiln_storage::table::Table;

use crate::call::{Call, Reply, Rows, Statement, SubmitError};
use crate::catalog::Catalog;
use crate::completion::{Completions, deadline_after};
use crate::engine::Engine;
use crate::errors;
use crate::journal::Observed;
use crate::memory::SeatUser;
use crate::seat::{Seat, check_current};
use crate::shared::Shared;
use crate::slots::PooledSeat;

/// How a transaction block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All its effects are there.
    Committed,
    /// It has no effects.
    RolledBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Each program is a transaction of its own.
    None,
    /// A block that has run nothing: it has no slot yet.
    Begun,
    /// A transaction is open; the session has a slot, whose seat is entered.
    Open,
    /// The transaction failed and was rolled back; the block waits for its end.
    Failed,
    /// As `Failed`, because it idled too long; nobody was told yet.
    TimedOut,
}

/// Cancels what a session runs, from any thread. It is cheap to clone and outlives the session.
///
/// A statement that is cancelled ends with 57014 and has no effects; in a transaction block the
/// block has failed. A request that comes while no statement runs does nothing, and one that comes
/// too late does not either: the statement's own outcome says which it was.
#[derive(Clone, Debug)]
pub struct CancelHandle(Interrupt);

impl CancelHandle {
    /// Asks the statement that runs to end; false when none does. It ends soon, but perhaps not
    /// before it has waited for a lock in vain, which takes up to half a second.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }
}

/// A statement that runs, in one program or several.
#[derive(Clone, Copy, Debug)]
struct Running {
    deadline_ns: Option<u64>,
}

/// What a session is; shared with the reaper of idle transactions while a block is open.
pub(crate) struct State {
    number: u64,
    /// There while a transaction is open.
    seat: Option<PooledSeat>,
    block: Block,
    /// Whether the reaper knows the session.
    is_watched: bool,
    /// When the block began, in microseconds since 1970.
    began_us: i64,
    /// When the last statement of the open transaction ended.
    idle_since_ns: u64,
    /// The log epoch that was current when the last statement ended.
    observed: LogEpoch,
    /// Whether results wait until what they rest on is on disk.
    is_synchronous: bool,
    /// The version of the catalog in which the open transaction began.
    version: u64,
}

impl State {
    fn seat(&mut self) -> &mut Seat {
        self.seat.as_mut().expect("an open block has a seat")
    }

    /// Takes a slot and starts the transaction of a block at its first program.
    fn open(&mut self, inner: &Arc<Shared>, limits: Limits<'_>) -> Result<()> {
        let mut seat = limits.slot(inner, self.number)?;
        seat.limit(limits.deadline_ns, Some(limits.interrupt));
        let entered = seat.enter(limits.deadline_ns);
        seat.limit(None, None);
        entered.map_err(|refusal| limits.refused(refusal))?;
        if let Err(refusal) = seat.begin_since(self.began_us) {
            seat.leave();
            return Err(refusal.error());
        }
        self.version = seat.catalog().version();
        self.seat = Some(seat);
        self.block = Block::Open;
        Ok(())
    }

    /// What has to be on disk before the result of the open block's transaction is told, or of one of its statements.
    fn settle<T>(&mut self, result: Result<T>) -> Observed<T> {
        match self.is_synchronous {
            true => self.seat().settle(result),
            false => self.seat().unsettled(result),
        }
    }

    /// As [`State::settle`], for a statement outside of a block.
    fn settle_alone(
        &self,
        seat: &Seat,
        result: Result<Rows>,
        program: &[Arc<Program>],
    ) -> Observed<Rows> {
        let outcome = seat.unsettled(result);
        match self.is_synchronous {
            true => seat.inner().settle(outcome, program, |_| None),
            false => outcome,
        }
    }

    /// Whether a block is open or about to be: what the reaper ends when it idles.
    fn is_in_block(&self) -> bool {
        matches!(self.block, Block::Begun | Block::Open)
    }

    /// Fails the open block, if there is one.
    fn give_up(&mut self) {
        if self.is_in_block() {
            self.abandon(Block::Failed);
        }
    }

    /// Rolls the open transaction back, if there is one; the block goes on as `block`.
    fn abandon(&mut self, block: Block) {
        if let Some(seat) = &mut self.seat {
            // Without a limit it waits until the gate is open.
            let _ = seat.resume(None);
            seat.roll_back();
        }
        self.close(block);
    }

    /// After the transaction has committed or was rolled back: it is over, as sessions repeat nothing.
    fn close(&mut self, block: Block) {
        if let Some(mut seat) = self.seat.take() {
            seat.end_transaction();
            seat.forget_tables();
            seat.leave();
        }
        self.block = block;
    }
}

/// Runs programs in the caller's thread: each as a transaction of its own, or several between
/// [`Session::begin`] and [`Session::commit`].
///
/// A program on its own is repeated until it commits or raises. In a transaction block the caller
/// has seen results already, so a conflict is reported as 40001, and the caller may start again.
/// After an error in a block everything but its end is refused with 25P02.
///
/// A session is no worker. It takes a worker slot for the time of a program or, from the first
/// program of a block on, until the block ends; where all slots are used it waits for one, for
/// [`Options::slot_wait_ms`](crate::Options) at most (53300). A session without a block costs some
/// hundred bytes.
///
/// An open block holds up changes of the tables that it has used (under `mvcc`, of all tables) and
/// the reuse of memory, and under protocols that run one transaction at a time all other
/// transactions. One that idles longer than
/// [`Options::idle_in_transaction_ms`](crate::Options) is therefore rolled back; the next
/// statement reports that as 25P03.
pub struct Session {
    engine: Engine,
    state: Arc<Mutex<State>>,
    statement_timeout: Option<Duration>,
    interrupt: Interrupt,
    running: Option<Running>,
}

impl Session {
    pub(crate) fn open(engine: Engine) -> Result<Session> {
        let state = State {
            number: engine.inner().begin_session()?,
            seat: None,
            block: Block::None,
            is_watched: false,
            began_us: 0,
            idle_since_ns: 0,
            observed: LogEpoch::default(),
            is_synchronous: true,
            version: 0,
        };
        Ok(Session {
            engine,
            state: Arc::new(Mutex::new(state)),
            statement_timeout: None,
            interrupt: Interrupt::new(),
            running: None,
        })
    }

    /// Its number, by which messages name it; no other session of the database has the same.
    pub fn number(&self) -> u64 {
        self.state().number
    }

    /// The database.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Bounds the time of each statement; when it has passed the statement ends with 57014. `None`,
    /// the default, does not.
    pub fn set_statement_timeout(&mut self, timeout: Option<Duration>) {
        self.statement_timeout = timeout;
    }

    /// What cancels the statements of this session.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(self.interrupt.clone())
    }

    /// A statement begins: what runs in this session until [`Session::end_statement`] has one
    /// deadline, and a request to cancel ends all of it. A program that runs outside of a statement
    /// is one by itself.
    pub fn begin_statement(&mut self) {
        self.running = Some(Running {
            deadline_ns: self.statement_timeout.map(deadline_after),
        });
        self.interrupt.begin();
    }

    /// The statement has ended: a request to cancel is too late from here on.
    pub fn end_statement(&mut self) {
        self.interrupt.end();
        self.running = None;
    }

    /// Submits `statement`, as a transaction of its own on a worker, whose outcome arrives in `completions` under
    /// `token`; see [`Engine::submit_to`]. It is the statement that began last
    /// ([`Session::begin_statement`]): its deadline and its cancel are the call's.
    ///
    /// # Errors
    /// As there; and 25001 in a transaction block, whose statements run in the caller's thread.
    pub fn submit(
        &self,
        statement: Arc<dyn Statement>,
        arguments: Arguments,
        completions: &Arc<Completions>,
        token: u64,
    ) -> std::result::Result<(), SubmitError> {
        if self.in_transaction() {
            let message = "a statement of a transaction block cannot be submitted";
            return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message).into());
        }
        let call = Call::statement(statement, arguments).interrupt(&self.interrupt);
        let mut call = call.synchronous_commit(self.is_synchronous());
        if let Some(deadline_ns) = self.limits().deadline_ns {
            let left_ns = deadline_ns.saturating_sub(time::now_ns());
            call = call.deadline(Duration::from_nanos(left_ns));
        }
        let refused = self.engine.submit_to(call, completions, token);
        refused.map_err(|refused| refused.error)
    }

    /// The rows of the statement that was submitted.
    ///
    /// # Errors
    /// What the statement raised; 57014 when it was cancelled or its time was over.
    pub fn submitted(&self, outcome: Result<Reply>) -> Result<Rows> {
        match outcome? {
            Reply::Committed(rows) => Ok(rows),
            Reply::Rejected(error) => Err(error),
            Reply::Expired => Err(self.limits().exceeded()),
        }
    }

    /// Why the statement that runs must end, if it must: it was cancelled, or its time is over.
    ///
    /// # Errors
    /// 57014.
    pub fn check_limits(&self) -> Result<()> {
        self.limits().check()
    }

    fn limits(&self) -> Limits<'_> {
        Limits {
            deadline_ns: self.running.and_then(|running| running.deadline_ns),
            interrupt: &self.interrupt,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Runs a program with these arguments.
    ///
    /// # Errors
    /// What the program raises; 40001 for a conflict in a transaction block; 25P02 in a failed
    /// one; 55000 when a table of the program was changed since it was compiled
    /// ([`Session::run_with`] avoids that); those of [`Arguments::bind`].
    pub fn run(&mut self, program: &Arc<Program>, arguments: &mut Arguments) -> Result<Rows> {
        self.run_with(|_, _| Ok(program.clone()), arguments)
    }

    /// Runs the program that `compile` finds or makes for the catalog it is given, which does not
    /// change before the program has run. It may set the arguments. It is asked again when the catalog has changed
    /// while the program waited for a table.
    ///
    /// # Errors
    /// Those of `compile`, which fail an open transaction too, and those of [`Session::run`].
    pub fn run_with(
        &mut self,
        compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
    ) -> Result<Rows> {
        if self.running.is_some() {
            return self.run_limited(compile, arguments);
        }
        self.begin_statement();
        let result = self.run_limited(compile, arguments);
        self.end_statement();
        result
    }

    fn run_limited(
        &mut self,
        compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
    ) -> Result<Rows> {
        let mut guard = self.state();
        let Observed { result, epoch } = self.run_in(&mut guard, compile, arguments);
        guard.observed = epoch;
        let acknowledged = self.acknowledge(guard);
        if acknowledged.is_err() {
            self.state().give_up();
        }
        acknowledged.and(result)
    }

    /// Waits until all is on disk that was observed last, if results of the session wait for that.
    ///
    /// # Errors
    /// 53100 and 58030 when it will not be.
    fn acknowledge(&self, state: MutexGuard<'_, State>) -> Result<()> {
        let (observed, waits) = (state.observed, state.is_synchronous);
        drop(state);
        match waits {
            true => self.engine.inner().await_durable(observed),
            false => Ok(()),
        }
    }

    /// Waits until the catalog is on disk, if results of the session wait for that: before an error is told of a statement that it does not
    /// fit.
    ///
    /// # Errors
    /// 53100 and 58030 when it will not be.
    pub fn await_catalog(&self) -> Result<()> {
        match self.is_synchronous() {
            true => self.engine.inner().await_catalog(),
            false => Ok(()),
        }
    }

    /// Whether results wait until what they rest on is on disk.
    pub fn is_synchronous(&self) -> bool {
        self.state().is_synchronous
    }

    /// Has results wait until what they rest on is on disk, or not. One that does not wait may be lost when the database
    /// crashes, with what it was told of; what it shows to others they wait for.
    pub fn set_synchronous_commit(&mut self, is_synchronous: bool) {
        self.state().is_synchronous = is_synchronous;
    }

    fn run_in(
        &self,
        state: &mut State,
        compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
    ) -> Observed<Rows> {
        let limits = self.limits();
        let inner = self.engine.inner();
        match state.block {
            Block::None => {
                let mut seat = match limits.slot(inner, state.number) {
                    Ok(seat) => seat,
                    Err(error) => return Observed::nothing(error),
                };
                seat.limit(limits.deadline_ns, Some(limits.interrupt));
                let outcome = match seat.enter(limits.deadline_ns) {
                    Ok(()) => {
                        let (result, program) = run_alone(&mut seat, compile, arguments, limits);
                        let outcome = state.settle_alone(&seat, result, program.as_slice());
                        seat.leave();
                        outcome
                    }
                    Err(refusal) => Observed::nothing(limits.refused(refusal)),
                };
                seat.limit(None, None);
                outcome
            }
            Block::Begun | Block::Open => {
                if state.block == Block::Begun
                    && let Err(error) = state.open(inner, limits)
                {
                    state.block = Block::Failed;
                    return Observed::nothing(error);
                }
                (state.seat()).limit(limits.deadline_ns, Some(limits.interrupt));
                let result = state.run_in_block(compile, arguments, limits);
                state.seat().limit(None, None);
                let outcome = state.settle(result);
                match outcome.result {
                    Ok(_) => state.seat().step_aside(),
                    Err(_) => state.abandon(Block::Failed),
                }
                state.idle_since_ns = time::now_ns();
                outcome
            }
            Block::Failed => Observed::nothing(errors::failed_transaction()),
            Block::TimedOut => {
                state.block = Block::Failed;
                Observed::nothing(timed_out())
            }
        }
    }

    /// The log epoch up to which the last program, or the end of the last transaction block, has observed what is in the
    /// database: what has to be durable before its result may be told to whom durability was promised.
    pub fn observed(&self) -> LogEpoch {
        self.state().observed
    }

    /// The catalog that the next program would run in.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.engine.catalog()
    }

    /// Opens a transaction block.
    ///
    /// # Errors
    /// 25001 when one is open; 57P01 when the database is closed.
    pub fn begin(&mut self) -> Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        if state.block != Block::None {
            return Err(Error::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "there is already a transaction in progress",
            ));
        }
        let inner = self.engine.inner();
        inner.check_open()?;
        state.block = Block::Begun;
        state.began_us = time::wall_clock_us();
        state.idle_since_ns = time::now_ns();
        if !std::mem::replace(&mut state.is_watched, true) {
            inner.watch(Arc::downgrade(&self.state));
        }
        Ok(())
    }

    /// Ends the transaction block and makes its effects visible; a failed block is rolled back,
    /// which the result says.
    ///
    /// # Errors
    /// 40001 when it must be started again, 25P01 when no block is open. The block has ended
    /// either way.
    pub fn commit(&mut self) -> Result<Ended> {
        let mut guard = self.state();
        let state = &mut *guard;
        match state.block {
            Block::None => Err(no_block()),
            Block::Begun => {
                state.block = Block::None;
                Ok(Ended::Committed)
            }
            Block::Open => {
                // Without a limit it waits until the gate is open.
                let _ = state.seat().resume(None);
                let committed = state.seat().commit().map_err(errors::conflict);
                let Observed { result, epoch } = state.settle(committed);
                state.observed = epoch;
                state.close(Block::None);
                result?;
                self.acknowledge(guard).map(|()| Ended::Committed)
            }
            Block::Failed => {
                state.block = Block::None;
                Ok(Ended::RolledBack)
            }
            Block::TimedOut => {
                state.block = Block::None;
                Err(timed_out())
            }
        }
    }

    /// Ends the transaction block without effects.
    ///
    /// # Errors
    /// 25P01 when no block is open.
    pub fn roll_back(&mut self) -> Result<()> {
        let mut guard = self.state();
        match guard.block {
            Block::None => return Err(no_block()),
            Block::Begun | Block::Open => guard.abandon(Block::None),
            Block::Failed | Block::TimedOut => guard.block = Block::None,
        }
        Ok(())
    }

    /// Fails the open transaction block, for errors that the layer above finds by itself. Does
    /// nothing outside of one.
    pub fn fail(&mut self) {
        self.state().give_up();
    }

    /// Whether a transaction block is open or failed.
    pub fn in_transaction(&self) -> bool {
        self.state().block != Block::None
    }

    /// Whether the transaction block has failed, so that only its end is accepted.
    pub fn has_failed(&self) -> bool {
        matches!(self.state().block, Block::Failed | Block::TimedOut)
    }
}

impl State {
    fn run_in_block(
        &mut self,
        mut compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
        limits: Limits<'_>,
    ) -> Result<Rows> {
        let program = loop {
            limits.resume(self.seat())?;
            if let Some(refusal) = self.seat().interruption() {
                return Err(refusal.error());
            }
            limits.check()?;
            let program = compile(self.seat().catalog(), arguments)?;
            check_current(&program)?;
            let catalog = self.seat().catalog().clone();
            if !self.seat().uses_tables() {
                // It has seen nothing of any table yet.
                self.version = catalog.version();
            }
            check_unchanged(&catalog, self.version, &program)?;
            if self.seat().use_tables(&program) {
                break program;
            }
            limits.wait_for_tables(self.seat(), &program)?;
        };
        arguments.bind(&program)?;
        match self.seat().run(&program, arguments) {
            Ok(()) => Ok(rows(self.seat(), &program)),
            // A statement that was to end may have lost a lock for that reason.
            Err(Stop::Abort(cause)) => match (limits.check(), self.seat().interruption()) {
                (Err(error), _) => Err(error),
                // There is no point in starting again.
                (Ok(()), Some(refusal)) => Err(refusal.error()),
                (Ok(()), None) => Err(errors::conflict(cause)),
            },
            Err(Stop::Raise(error)) => Err(error),
        }
    }
}

/// When the statement that runs must end.
#[derive(Clone, Copy)]
struct Limits<'a> {
    deadline_ns: Option<u64>,
    interrupt: &'a Interrupt,
}

impl Limits<'_> {
    /// Whether the statement may go on.
    fn check(self) -> Result<()> {
        if self.interrupt.is_canceled() {
            return Err(interrupt::canceled());
        }
        match self.deadline_ns {
            Some(deadline) if time::now_ns() >= deadline => Err(interrupt::timed_out()),
            _ => Ok(()),
        }
    }

    /// The error of a statement that ran out of its limits.
    fn exceeded(self) -> Error {
        match self.interrupt.is_canceled() {
            true => interrupt::canceled(),
            false => interrupt::timed_out(),
        }
    }

    /// A worker slot for the statement.
    fn slot(self, inner: &Arc<Shared>, session: u64) -> Result<PooledSeat> {
        let slot = inner.slots.take(
            inner,
            SeatUser::Session(session),
            self.deadline_ns,
            Some(self.interrupt),
        );
        slot.map_err(|error| self.check().err().unwrap_or(error))
    }

    /// Goes on with the transaction of a block.
    fn resume(self, seat: &mut Seat) -> Result<()> {
        seat.resume(self.deadline_ns)
            .map_err(|refusal| self.refused(refusal))
    }

    /// Waits, aside, until no change of the catalog waits for a table that the program uses.
    fn wait_for_tables(self, seat: &mut Seat, program: &Program) -> Result<()> {
        seat.step_aside();
        match seat.wait_for_tables(program, self.deadline_ns, self.interrupt) {
            true => Ok(()),
            false => Err(self.exceeded()),
        }
    }

    /// The error of a statement that could not start.
    fn refused(self, refusal: errors::Refusal) -> Error {
        match refusal {
            errors::Refusal::Expired => self.exceeded(),
            other => other.error(),
        }
    }
}

/// Runs a program as a transaction of its own; returns the program as well, if there was one.
fn run_alone(
    seat: &mut Seat,
    mut compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
    arguments: &mut Arguments,
    limits: Limits<'_>,
) -> (Result<Rows>, Option<Arc<Program>>) {
    let compiled = compile(seat.catalog(), arguments).and_then(|program| {
        check_current(&program)?;
        arguments.bind(&program)?;
        Ok(program)
    });
    let program = match compiled {
        Ok(program) => program,
        Err(error) => return (Err(error), None),
    };
    let result = match seat.call(&program, arguments, limits.deadline_ns, None) {
        Outcome::Committed => Ok(rows(seat, &program)),
        Outcome::Rejected(error) => Err(error),
        Outcome::Expired => Err(limits.exceeded()),
    };
    (result, Some(program))
}

/// Checks that no table of a program was changed since the catalog had this version: a transaction that began then
/// comes before the change, and cannot see the table as it was.
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

/// What a program left in the seat's frame.
pub(crate) fn rows(seat: &Seat, program: &Program) -> Rows {
    Rows::take(seat.frame(), program)
}

/// Rolls the open transaction of a session back if it has idled since before `deadline_ns`.
/// Returns whether the session still has a block to look after.
pub(crate) fn reap(session: &Weak<Mutex<State>>, idle_since_before_ns: u64) -> bool {
    let Some(session) = session.upgrade() else {
        return false;
    };
    // A session whose mutex is taken runs something, so it does not idle.
    let Ok(mut state) = session.try_lock() else {
        return true;
    };
    if state.is_in_block() && state.idle_since_ns < idle_since_before_ns {
        state.abandon(Block::TimedOut);
    }
    state.is_watched = state.is_in_block();
    state.is_watched
}

/// The session's number, and since when its open block idles, if it does.
pub(crate) fn idle_block(session: &Weak<Mutex<State>>) -> Option<(u64, u64)> {
    let session = session.upgrade()?;
    let state = session.try_lock().ok()?;
    (state.block == Block::Open).then_some((state.number, state.idle_since_ns))
}

#[cold]
fn no_block() -> Error {
    Error::new(
        SqlState::NO_ACTIVE_SQL_TRANSACTION,
        "there is no transaction in progress",
    )
}

#[cold]
fn timed_out() -> Error {
    let state = SqlState::parse("25P03").unwrap_or(SqlState::IN_FAILED_SQL_TRANSACTION);
    Error::new(
        state,
        "the transaction was rolled back because it idled too long",
    )
    .with_hint("Start it again; idle_in_transaction_ms sets the limit.")
}

impl Drop for Session {
    fn drop(&mut self) {
        // Now, and not when the reaper lets go of the state.
        let mut state = self.state();
        if state.is_in_block() {
            state.abandon(Block::None);
        }
        drop(state);
        self.engine.inner().end_session();
    }
}
