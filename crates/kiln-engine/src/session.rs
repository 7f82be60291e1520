//! Sessions: programs run in the caller's thread, alone or as transactions of several.

mod channels;
mod constraints;
mod definitions;
mod limits;
mod locks;
mod replay;
mod sleep;
mod state;
mod temporary;

use std::time::Duration;

use kiln_platform::sync::{Arc, Mutex, MutexGuard, lock};
use kiln_platform::time;
use kiln_procedure::{Arguments, Interrupt, Program};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::log_epoch::LogEpoch;

use crate::calls::{Call, Completions, Reply, Rows, Statement, SubmitError};
use crate::catalog::Catalog;
use crate::change::Definition;
use crate::engine::Engine;
use crate::errors;
use crate::kernel::Replays;
use crate::observed::Observed;
use crate::wait::deadline_after;
use constraints::CheckMark;
use limits::Limits;
use locks::LockMark;
pub use locks::LockScope;
pub use sleep::SLEEPERS_MAX;
use state::{Block, State};
use temporary::Seen;

/// A place in a transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// How many statements it had run, if they were kept.
    statements: Option<usize>,
    /// How far it had come with checks of constraints.
    checks: CheckMark,
    /// What it had locked by name.
    locks: LockMark,
    /// How often it had said to which channels its session listens.
    listening: usize,
}

/// How a transaction block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All its effects are there.
    Committed,
    /// It has no effects.
    RolledBack,
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

    /// Asks the statement that runs to end, and each that begins later: the session is about to go.
    pub fn end_all(&self) {
        self.0.end_all();
    }
}

/// A statement that runs, in one program or several.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// `u64::MAX` where it has none: so a session stays small.
    deadline_ns: u64,
    /// Whether it may hold locks that its client has asked for by name.
    has_locks: bool,
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
    /// 0 for none, as below.
    statement_timeout_ns: u64,
    lock_timeout_ns: u64,
    interrupt: Interrupt,
    running: Option<Running>,
}

impl Session {
    pub(crate) fn open(engine: Engine) -> Result<Session> {
        let interrupt = Interrupt::new();
        let number = engine.inner().begin_session(&interrupt)?;
        let idle_ms = engine.inner().options.idle_in_transaction_ms;
        let state = State::new(number, idle_ms.saturating_mul(1_000_000));
        Ok(Session {
            engine,
            state: Arc::new(Mutex::new(state)),
            statement_timeout_ns: 0,
            lock_timeout_ns: 0,
            interrupt,
            running: None,
        })
    }

    /// Its number, by which messages name it; no other session of the database has the same.
    pub fn number(&self) -> u64 {
        self.state().number
    }

    /// Shows it to other sessions, as one of this role, or hides it: they know it by its number,
    /// and may ask it to end.
    pub fn show_as(&self, role: Option<&str>) {
        self.engine.inner().open_sessions.show(self.number(), role);
    }

    /// Tells other sessions what its client calls itself.
    pub fn rename(&self, application: &str) {
        let number = self.number();
        self.engine
            .inner()
            .open_sessions
            .rename(number, application);
    }

    /// # Errors
    /// 57P01 when the session was asked to end.
    pub fn check_terminated(&self) -> Result<()> {
        match self.interrupt.is_over() {
            true => Err(self.interrupt.error()),
            false => Ok(()),
        }
    }

    /// The database.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Bounds the time of each statement; when it has passed the statement ends with 57014. `None`,
    /// the default, does not.
    pub fn set_statement_timeout(&mut self, timeout: Option<Duration>) {
        self.statement_timeout_ns = nanoseconds(timeout);
    }

    /// Bounds the time that a transaction block may wait for its next statement; when it has passed
    /// the block is rolled back, and that statement is told so (25P03). `None` does not bound it;
    /// [`Options::idle_in_transaction_ms`](crate::Options) is the default.
    pub fn set_idle_timeout(&mut self, timeout: Option<Duration>) {
        self.state().idle_limit_ns = nanoseconds(timeout);
    }

    /// Bounds the time for which each statement waits for a worker slot, for a lock
    /// ([`Session::lock`]), or for a table that is being changed; when it has passed the statement
    /// ends with 55P03. `None`, the default, does not.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.lock_timeout_ns = nanoseconds(timeout);
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
            deadline_ns: duration(self.statement_timeout_ns).map_or(u64::MAX, deadline_after),
            has_locks: false,
        });
        self.interrupt.begin();
    }

    /// The statement has ended: a request to cancel is too late from here on.
    pub fn end_statement(&mut self) {
        self.interrupt.end();
        if self.running.take().is_some_and(|running| running.has_locks) {
            self.end_statement_locks();
        }
    }

    /// Submits `statement`, as a transaction of its own on a worker, whose outcome arrives in
    /// `completions` under `token`; see [`Engine::submit_to`]. It is the statement that began last
    /// ([`Session::begin_statement`]): its deadline and its cancel are the call's.
    ///
    /// One that is `is_early` is told when it has ended, perhaps before it is durable: the caller
    /// keeps its result from the client until [`Engine::is_durable`].
    ///
    /// # Errors
    /// Those of [`Engine::submit_to`], and 25001 in a transaction block, whose statements run in
    /// the caller's thread.
    pub fn submit(
        &self,
        statement: Arc<dyn Statement>,
        mut arguments: Arguments,
        (completions, token): (&Arc<Completions>, u64),
        is_early: bool,
    ) -> std::result::Result<(), SubmitError> {
        if self.in_transaction() {
            let message = "a statement of a transaction block cannot be submitted";
            return Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message).into());
        }
        let mut state = self.state();
        arguments.set_session(state.sequences());
        state.hand_surroundings(&mut arguments);
        let statement = match &state.temporary {
            None => statement,
            Some(temporary) => Arc::new(Seen {
                statement,
                temporary: temporary.clone(),
            }),
        };
        drop(state);
        let call = Call::statement(statement, arguments).interrupt(&self.interrupt);
        let call = call.of_session(self.number());
        let mut call = (call.synchronous_commit(self.is_synchronous())).early(is_early);
        if let Some(deadline_ns) = self.limits().deadline_ns {
            let remaining_ns = deadline_ns.saturating_sub(time::now_ns());
            call = call.deadline(Duration::from_nanos(remaining_ns));
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
        let deadline_ns = self.running.map(|running| running.deadline_ns);
        Limits {
            deadline_ns: deadline_ns.filter(|deadline_ns| *deadline_ns != u64::MAX),
            lock_timeout: duration(self.lock_timeout_ns),
            interrupt: &self.interrupt,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Forgets which values of sequences the session has drawn, and those that it has drawn ahead.
    pub fn forget_sequences(&self) {
        if let Some(sequences) = &self.state().sequences {
            sequences.forget();
        }
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
    /// change before the program has run. It may set the arguments. It is asked again when the
    /// catalog has changed while the program waited for a table.
    ///
    /// # Errors
    /// Those of `compile`, which fail an open transaction too, and those of [`Session::run`].
    pub fn run_with(
        &mut self,
        compile: impl FnMut(&Arc<Catalog>, &mut Arguments) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
    ) -> Result<Rows> {
        self.limited(|session, state, limits| {
            let inner = session.engine.inner();
            match state.block {
                Block::None => state.run_alone(inner, compile, arguments, limits),
                _ => state.in_block(inner, limits, |state| {
                    state.run_once(inner, compile, arguments, limits)
                }),
            }
        })
    }

    /// Runs a statement with these arguments. In a block it is run again, with all that the block
    /// has run before, when that meets a conflict with other transactions; the client notices
    /// nothing unless a result that it has seen is another one then ([`Session::set_replay`]).
    ///
    /// # Errors
    /// As [`Session::run_with`].
    pub fn run_statement(
        &mut self,
        statement: &Arc<dyn Statement>,
        arguments: &mut Arguments,
    ) -> Result<Rows> {
        self.limited(|session, state, limits| {
            let inner = session.engine.inner();
            match state.block {
                Block::None => {
                    let compile =
                        |catalog: &Arc<Catalog>, _: &mut Arguments| statement.program(catalog);
                    state.run_alone(inner, compile, arguments, limits)
                }
                _ => state.in_block(inner, limits, |state| {
                    state.run_statement(inner, statement, arguments, limits)
                }),
            }
        })
    }

    /// Has blocks be run again when they meet conflicts, where all that they have run are
    /// statements ([`Session::run_statement`]) within bounds: 10,000 of them, with arguments of a
    /// megabyte. From the next block on.
    pub fn set_replay(&mut self, replays: bool) {
        self.state().transcript.is_wanted = replays;
    }

    /// Whether blocks are run again when they meet conflicts.
    pub fn replays(&self) -> bool {
        self.state().transcript.is_wanted
    }

    /// Whether the last transaction block has failed because of other transactions alone: it may be
    /// tried again by a client to which nothing of it was told.
    pub fn has_lost(&self) -> bool {
        self.state().has_lost
    }

    /// Runs something as a statement, or as a part of the one that runs.
    fn limited(
        &mut self,
        run: impl FnOnce(&Session, &mut State, Limits<'_>) -> Observed<Rows>,
    ) -> Result<Rows> {
        let is_within = self.running.is_some();
        if !is_within {
            self.begin_statement();
        }
        let mut guard = self.state();
        let Observed { mut result, epoch } = run(self, &mut guard, self.limits());
        guard.observed = epoch;
        let acknowledged = self.acknowledge(guard);
        if acknowledged.is_err() {
            self.state().give_up();
        } else if let Ok(rows) = &mut result {
            self.announce_alone(rows);
        }
        if !is_within {
            self.end_statement();
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

    /// Waits until the catalog is on disk, if results of the session wait for that: before an error
    /// is told of a statement that it does not fit.
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

    /// Has results wait until what they rest on is on disk, or not. One that does not wait may be
    /// lost when the database crashes, with what it was told of; what it shows to others they wait
    /// for.
    pub fn set_synchronous_commit(&mut self, is_synchronous: bool) {
        self.state().is_synchronous = is_synchronous;
    }

    /// The log epoch up to which the last program, or the end of the last transaction block, has
    /// observed what is in the database: what has to be durable before its result may be told to
    /// whom durability was promised.
    pub fn observed(&self) -> LogEpoch {
        self.state().observed
    }

    /// The catalog that the next program would run in.
    pub fn catalog(&self) -> Arc<Catalog> {
        let state = self.state();
        let tried = state.tried_catalog();
        state.seen(&tried.unwrap_or_else(|| self.engine.catalog()))
    }

    /// Changes the catalog in the transaction block: for the block's own statements from now on,
    /// and for all others when it commits.
    ///
    /// # Errors
    /// Those of the definition; 25P01 when no block is open; 40001 on a conflict; 54000 when the
    /// block has run too much; 55P03 when others use for too long what it changes. The block has
    /// failed then.
    pub fn define(&mut self, definition: &Arc<dyn Definition>) -> Result<()> {
        let run = self.limited(|session, state, limits| {
            let inner = session.engine.inner();
            match state.block {
                Block::None => Observed::nothing(no_block()),
                _ => state.in_block(inner, limits, |state| {
                    let tried = state.try_definition(inner, definition, limits);
                    tried.map(|()| Rows::default())
                }),
            }
        });
        run.map(drop)
    }

    /// Whether the open block has changed the catalog.
    pub fn has_definitions(&self) -> bool {
        self.state().transcript.has_definitions()
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
        state.has_lost = false;
        let clock = state.start_clock().clone();
        state.idle_since_ns = time::now_ns();
        if !std::mem::replace(&mut state.is_watched, true) {
            inner.watch(&self.state, clock);
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
                let announcement = state.take_announcement();
                state.end(Block::None);
                drop(guard);
                self.announce(announcement);
                Ok(Ended::Committed)
            }
            Block::Open => {
                // Without a limit it waits until the gate is open.
                let _ = state.worker_slot().resume(None);
                let inner = self.engine.inner();
                let checked = state.refuse_unchecked();
                let made = checked.and_then(|()| match state.transcript.has_definitions() {
                    true => state.make(inner, self.limits()),
                    false => state
                        .commit(inner, self.limits())
                        .map(|()| LogEpoch::default()),
                });
                let logged = *made.as_ref().unwrap_or(&LogEpoch::default());
                let Observed { result, epoch } = match state.transcript.has_definitions() {
                    true => state.worker_slot().outcome_observed(made),
                    false => state.outcome_for_client(made),
                };
                state.observed = epoch.max(logged);
                if result.is_ok() {
                    state.commit_temporary(inner);
                }
                let announcement = state.take_announcement();
                state.roll_back_attempt();
                state.close(Block::None);
                result?;
                self.acknowledge(guard)?;
                self.engine.inner().forget_change(logged);
                self.announce(announcement);
                Ok(Ended::Committed)
            }
            Block::Failed => {
                state.end(Block::None);
                Ok(Ended::RolledBack)
            }
            Block::TimedOut => {
                state.end(Block::None);
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
            Block::Failed | Block::TimedOut => guard.end(Block::None),
        }
        Ok(())
    }

    /// A place in the transaction block, to which [`Session::roll_back_to`] goes back.
    ///
    /// # Errors
    /// 25P01 when no block is open, 25P02 in a failed one.
    pub fn savepoint(&mut self) -> Result<Savepoint> {
        let mut state = self.state();
        match state.block {
            Block::None => return Err(no_block()),
            Block::Failed => return Err(errors::failed_transaction()),
            Block::TimedOut => return Err(state.tell_of_timeout()),
            Block::Begun | Block::Open => {}
        }
        state.transcript.has_savepoint = true;
        Ok(Savepoint {
            statements: state.transcript.len(),
            checks: state.check_mark(),
            locks: state.lock_mark(),
            listening: state.listening_mark(),
        })
    }

    /// Undoes what the block has done since a savepoint, and an error that it has failed with. The
    /// block is run again up to the savepoint, and its results are compared with what the client
    /// has seen, as after a conflict.
    ///
    /// # Errors
    /// 25P01 when no block is open; 0A000 when its statements are not kept ([`Session::set_replay`]
    /// says which are); 40001 when a result is another one now, or on a conflict where blocks are
    /// not replayed; 25P03 when it has idled too long. The block has failed then.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        let is_new = match state.block {
            Block::None => return Err(no_block()),
            Block::TimedOut => return Err(state.tell_of_timeout()),
            // It has idled too long, and was told so.
            Block::Failed if !state.transcript.has_savepoint => {
                return Err(errors::failed_transaction());
            }
            Block::Begun | Block::Failed => true,
            Block::Open => false,
        };
        let left = match state.transcript.truncate(savepoint.statements) {
            Ok(left) => left,
            Err(error) => {
                state.give_up();
                return Err(error);
            }
        };
        state.return_to_checks(savepoint.checks);
        state.keep_transaction_locks(savepoint.locks);
        state.return_to_listening(savepoint.listening);
        if left == 0 {
            state.abandon(Block::Begun);
        } else if is_new {
            state.block = Block::Begun;
        }
        state.idle_since_ns = time::now_ns();
        if !std::mem::replace(&mut state.is_watched, true) {
            let clock = state.clock().clone();
            self.engine.inner().watch(&self.state, clock);
        }
        drop(guard);
        if left == 0 {
            return Ok(());
        }
        let run = self.limited(|session, state, limits| {
            let inner = session.engine.inner();
            state.in_block(inner, limits, |state| {
                let run = state.run_up_to_savepoint(inner, limits, is_new);
                run.map(|()| Rows::default())
            })
        });
        run.map(drop)
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

    /// Whether the open block holds a worker slot: the next program waits for none.
    pub fn holds_slot(&self) -> bool {
        self.state().block == Block::Open
    }

    /// Why the transaction block has failed, if it has idled too long (25P03) and that was not told
    /// yet.
    pub fn tell_of_timeout(&mut self) -> Option<Error> {
        let mut state = self.state();
        (state.block == Block::TimedOut).then(|| state.tell_of_timeout())
    }

    /// Whether the transaction block has failed, so that only its end is accepted.
    pub fn has_failed(&self) -> bool {
        matches!(self.state().block, Block::Failed | Block::TimedOut)
    }
}

/// A limit in nanoseconds; 0 for none.
fn nanoseconds(timeout: Option<Duration>) -> u64 {
    let nanoseconds = timeout.map_or(0, |timeout| timeout.as_nanos());
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}

fn duration(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
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
        state.held = None;
        if let Some(temporary) = &state.temporary {
            temporary.end(self.engine.inner());
        }
        let number = state.number;
        drop(state);
        self.engine.inner().end_session(number);
    }
}

impl Engine {
    /// A session for the calling thread.
    ///
    /// # Errors
    /// 53300 when [`sessions_max`](crate::Options::sessions_max) sessions are open, 57P01 when the
    /// database is closed.
    pub fn session(&self) -> Result<Session> {
        Session::open(self.clone())
    }

    /// How often blocks of sessions were replayed after conflicts.
    pub fn replays(&self) -> Replays {
        self.inner().replays.read()
    }

    /// The number of open sessions.
    pub fn sessions_open(&self) -> usize {
        self.inner().sessions_open()
    }
}
