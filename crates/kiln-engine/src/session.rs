//! Sessions: programs run in the caller's thread, alone or as transactions of several.

use std::time::Duration;

use kiln_platform::sync::{Arc, Mutex, MutexGuard, Weak, lock};
use kiln_platform::time;
use kiln_procedure::{Arguments, Program, Stop};
use kiln_protocols::Outcome;
use kiln_storage::error::{Error, Result, SqlState};

use crate::call::Rows;
use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::errors;
use crate::seat::{Seat, check_current};
use crate::shared::PooledSeat;

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
    /// A transaction is open; the seat is entered.
    Open,
    /// The transaction failed and was rolled back; the block waits for its end.
    Failed,
    /// As `Failed`, because it idled too long; nobody was told yet.
    TimedOut,
}

/// What a session is; shared with the reaper of idle transactions.
pub(crate) struct State {
    /// There until the session ends.
    seat: Option<PooledSeat>,
    block: Block,
    /// When the last statement of the open transaction ended.
    idle_since_ns: u64,
    /// What the open transaction has run: its tables must stay until it ends.
    programs: Vec<Arc<Program>>,
}

impl State {
    fn seat(&mut self) -> &mut Seat {
        self.seat.as_mut().expect("a live session has a seat")
    }

    /// Rolls the open transaction back; the block goes on as `block`.
    fn abandon(&mut self, block: Block) {
        self.seat().roll_back();
        self.close(block);
    }

    /// After the worker's transaction has ended.
    fn close(&mut self, block: Block) {
        self.seat().leave();
        self.programs.clear();
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
/// An open block holds up changes of the catalog and the reuse of memory, and under protocols
/// that run one transaction at a time everybody else. One that idles longer than
/// [`Options::idle_in_transaction_ms`](crate::Options) is therefore rolled back; the next
/// statement reports that as 25P03.
pub struct Session {
    engine: Engine,
    state: Arc<Mutex<State>>,
    statement_timeout: Option<Duration>,
}

impl Session {
    pub(crate) fn new(engine: Engine, seat: PooledSeat) -> Session {
        let state = State {
            seat: Some(seat),
            block: Block::None,
            idle_since_ns: 0,
            programs: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        engine.inner().watch(Arc::downgrade(&state));
        Session {
            engine,
            state,
            statement_timeout: None,
        }
    }

    /// The database.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The number of the session's seat, which no other session in use has: what
    /// [`SeatUser::Session`](crate::SeatUser::Session) names.
    pub fn seat(&self) -> usize {
        self.state().seat().number()
    }

    /// Bounds the time of programs outside transaction blocks; when it has passed they end with
    /// 57014. `None`, the default, does not.
    pub fn set_statement_timeout(&mut self, timeout: Option<Duration>) {
        self.statement_timeout = timeout;
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
        self.run_with(|_| Ok(program.clone()), arguments)
    }

    /// Runs the program that `compile` finds or makes for the catalog it is given, which does not
    /// change before the program has run.
    ///
    /// # Errors
    /// Those of `compile`, which fail an open transaction too, and those of [`Session::run`].
    pub fn run_with(
        &mut self,
        compile: impl FnOnce(&Arc<Catalog>) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
    ) -> Result<Rows> {
        let timeout = self.statement_timeout;
        let mut guard = self.state();
        let state = &mut *guard;
        match state.block {
            Block::None => {
                let deadline = timeout.map(crate::engine::deadline_after);
                let seat = state.seat();
                seat.enter(deadline).map_err(errors::Refusal::error)?;
                let result = run_alone(seat, compile, arguments, deadline);
                seat.leave();
                result
            }
            Block::Open => {
                let result = state.run_in_block(compile, arguments);
                if result.is_err() && state.block == Block::Open {
                    state.abandon(Block::Failed);
                }
                state.idle_since_ns = time::now_ns();
                result
            }
            Block::Failed => Err(errors::failed_transaction()),
            Block::TimedOut => {
                state.block = Block::Failed;
                Err(timed_out())
            }
        }
    }

    /// The catalog that the next program would run in.
    pub fn catalog(&self) -> Arc<Catalog> {
        let guard = self.state();
        match (&guard.seat, guard.block) {
            (Some(seat), Block::Open) => seat.catalog().clone(),
            _ => self.engine.catalog(),
        }
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
        let seat = state.seat();
        seat.enter(None).map_err(errors::Refusal::error)?;
        seat.begin();
        state.block = Block::Open;
        state.idle_since_ns = time::now_ns();
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
            Block::Open => {
                let committed = state.seat().commit();
                state.close(Block::None);
                committed
                    .map(|()| Ended::Committed)
                    .map_err(errors::conflict)
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
            Block::Open => guard.abandon(Block::None),
            Block::Failed | Block::TimedOut => guard.block = Block::None,
        }
        Ok(())
    }

    /// Fails the open transaction block, for errors that the layer above finds by itself. Does
    /// nothing outside of one.
    pub fn fail(&mut self) {
        let mut guard = self.state();
        if guard.block == Block::Open {
            guard.abandon(Block::Failed);
        }
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
        compile: impl FnOnce(&Arc<Catalog>) -> Result<Arc<Program>>,
        arguments: &mut Arguments,
    ) -> Result<Rows> {
        if let Some(refusal) = self.seat().interruption() {
            return Err(refusal.error());
        }
        let program = compile(self.seat().catalog())?;
        check_current(&program)?;
        arguments.bind(&program)?;
        // Before it runs: what it touches refers to the program's tables until the end.
        if !self
            .programs
            .iter()
            .any(|known| Arc::ptr_eq(known, &program))
        {
            self.programs.push(program.clone());
        }
        match self.seat().run(&program, arguments) {
            Ok(()) => Ok(rows(self.seat(), &program)),
            Err(Stop::Abort(cause)) => Err(errors::conflict(cause)),
            Err(Stop::Raise(error)) => Err(error),
        }
    }
}

fn run_alone(
    seat: &mut Seat,
    compile: impl FnOnce(&Arc<Catalog>) -> Result<Arc<Program>>,
    arguments: &mut Arguments,
    deadline_ns: Option<u64>,
) -> Result<Rows> {
    let program = compile(seat.catalog())?;
    check_current(&program)?;
    arguments.bind(&program)?;
    match seat.call(&program, arguments, deadline_ns) {
        Outcome::Committed => Ok(rows(seat, &program)),
        Outcome::Rejected(error) => Err(error),
        Outcome::Expired => Err(Error::new(
            SqlState::QUERY_CANCELED,
            "canceling statement due to statement timeout",
        )),
    }
}

/// What a program left in the seat's frame.
pub(crate) fn rows(seat: &Seat, program: &Program) -> Rows {
    Rows::take(seat.frame(), program, program.result.columns.clone().into())
}

/// Rolls the open transaction of a session back if it has idled since before `deadline_ns`.
/// Returns whether the session is still there.
pub(crate) fn reap(session: &Weak<Mutex<State>>, idle_since_before_ns: u64) -> bool {
    let Some(session) = session.upgrade() else {
        return false;
    };
    // A session whose mutex is taken runs something, so it does not idle.
    if let Ok(mut state) = session.try_lock()
        && state.block == Block::Open
        && state.idle_since_ns < idle_since_before_ns
    {
        state.abandon(Block::TimedOut);
    }
    true
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
        let mut state = self.state();
        if state.block == Block::Open {
            state.abandon(Block::None);
        }
        // Now, and not when the reaper lets go of the state.
        state.seat = None;
    }
}
