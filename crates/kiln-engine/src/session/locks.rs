//! Locks that the session's client asks for by name.

use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_storage::error::{Error, Result, SqlState};

use super::Session;
use super::limits::{Limits, lock_not_available};
use super::state::{Block, State};
use crate::kernel::EngineInner;
use crate::locks::{LockMode, LockTarget, Locks, Request};

/// Locks of a session, each counted as often as it was taken.
const LOCKS_MAX: usize = 10_000;

/// What a lock is held by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockScope {
    /// The session, until it gives the lock back or ends.
    Session,
    /// The transaction, until it ends, or is rolled back to a savepoint from before.
    Transaction,
}

/// The locks of a session. They are given back when this is dropped.
pub(super) struct Held {
    locks: Arc<Locks>,
    session: u64,
    of_session: Vec<(LockTarget, LockMode)>,
    of_transaction: Vec<(LockTarget, LockMode)>,
    /// Whether the transaction may have locked rows.
    has_rows: bool,
}

impl Held {
    fn of(&mut self, scope: LockScope) -> &mut Vec<(LockTarget, LockMode)> {
        match scope {
            LockScope::Session => &mut self.of_session,
            LockScope::Transaction => &mut self.of_transaction,
        }
    }

    /// Gives back all but the first `count` locks of a scope.
    fn keep(&mut self, scope: LockScope, count: usize) {
        while self.of(scope).len() > count {
            let Some((target, mode)) = self.of(scope).pop() else {
                return;
            };
            self.give_back(target, mode);
        }
    }

    fn give_back(&self, target: LockTarget, mode: LockMode) {
        self.locks.give_back(Request {
            session: self.session,
            target,
            mode,
        });
    }

    fn is_empty(&self) -> bool {
        self.of_session.is_empty() && self.of_transaction.is_empty() && !self.has_rows
    }

    /// Gives back what the transaction has locked since a mark.
    fn keep_of_transaction(&mut self, mark: LockMark) {
        self.keep(LockScope::Transaction, mark.locks);
        if self.has_rows {
            self.locks.keep_rows(self.session, mark.rows);
            self.has_rows = mark.rows > 0;
        }
    }
}

/// How many locks a transaction held at a mark in it, and how many of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LockMark {
    locks: usize,
    rows: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.keep_of_transaction(LockMark::default());
        self.keep(LockScope::Session, 0);
    }
}

impl State {
    /// The transaction has ended, and with it the locks that it has held.
    pub(super) fn release_transaction_locks(&mut self) {
        self.keep_transaction_locks(LockMark::default());
    }

    /// Gives back what the transaction has locked since a mark.
    pub(super) fn keep_transaction_locks(&mut self, mark: LockMark) {
        if let Some(held) = &mut self.held {
            held.keep_of_transaction(mark);
            if held.is_empty() {
                self.held = None;
            }
        }
    }

    /// What the transaction has locked so far.
    pub(super) fn lock_mark(&self) -> LockMark {
        let held = self.held.as_ref();
        held.map_or_else(LockMark::default, |held| LockMark {
            locks: held.of_transaction.len(),
            rows: held.locks.rows_of(held.session),
        })
    }

    /// # Errors
    /// 25P02 and 25P03 in a block that has failed; 53200 when the session has too many locks.
    fn check_may_lock(&mut self) -> Result<()> {
        self.check_not_failed()?;
        let held = self.held.as_ref();
        let count = held.map_or(0, |held| held.of_session.len() + held.of_transaction.len());
        match count < LOCKS_MAX {
            true => Ok(()),
            false => {
                let message = format!("a session holds at most {LOCKS_MAX} locks");
                Err(Error::new(SqlState::OUT_OF_MEMORY, message))
            }
        }
    }

    fn note_lock(&mut self, inner: &EngineInner, request: Request, scope: LockScope) {
        let locks = self.held(inner).of(scope);
        locks.push((request.target, request.mode));
    }

    fn held(&mut self, inner: &EngineInner) -> &mut Held {
        let session = self.number;
        self.held.get_or_insert_with(|| {
            Box::new(Held {
                locks: inner.locks.clone(),
                session,
                of_session: Vec::new(),
                of_transaction: Vec::new(),
                has_rows: false,
            })
        })
    }

    /// Until when an open block may wait, for a lock or for a time: others may wait for what it
    /// holds, as they do while it idles.
    pub(super) fn wait_deadline(&self) -> Option<u64> {
        let waits = self.block == Block::Open && self.idle_limit_ns > 0;
        waits.then(|| time::now_ns().saturating_add(self.idle_limit_ns))
    }
}

impl Session {
    /// Takes a lock, and waits for it. The wait ends as other waits of the session's statements do,
    /// and in a block that has run something at the latest when the block has waited as long as it
    /// may idle.
    ///
    /// # Errors
    /// 55P03 after the lock timeout; 57014 when the statement was cancelled or its time is over;
    /// 40P01 when those that hold the lock wait for this session; 53200 when there are too many
    /// locks; 53300 when too many sessions wait; 25P02 and 25P03 in a block that has failed.
    pub fn lock(&mut self, target: LockTarget, mode: LockMode, scope: LockScope) -> Result<()> {
        self.note_locks();
        let (mut state, limits) = (self.state(), self.limits());
        state.check_may_lock()?;
        let inner = self.engine.inner();
        let request = Request {
            session: state.number,
            target,
            mode,
        };
        take(inner, request, limits, state.wait_deadline())?;
        state.note_lock(inner, request, scope);
        state.idle_since_ns = time::now_ns();
        Ok(())
    }

    /// Takes a lock if it is free; says whether it was.
    ///
    /// # Errors
    /// 53200 when there are too many locks; 25P02 and 25P03 in a block that has failed.
    pub fn try_lock(
        &mut self,
        target: LockTarget,
        mode: LockMode,
        scope: LockScope,
    ) -> Result<bool> {
        self.note_locks();
        let mut state = self.state();
        state.check_may_lock()?;
        let inner = self.engine.inner();
        let request = Request {
            session: state.number,
            target,
            mode,
        };
        let is_taken = inner.locks.try_take(request)?;
        if is_taken {
            state.note_lock(inner, request, scope);
        }
        Ok(is_taken)
    }

    /// Gives back a lock that the session holds, once; `false` when it holds none.
    pub fn unlock(&mut self, target: LockTarget, mode: LockMode) -> bool {
        let mut state = self.state();
        let Some(held) = &mut state.held else {
            return false;
        };
        let mut own = held.of_session.iter();
        let Some(place) = own.rposition(|own| *own == (target, mode)) else {
            return false;
        };
        held.of_session.remove(place);
        held.give_back(target, mode);
        true
    }

    /// Gives back all locks that the session holds; its transaction keeps its own.
    pub fn unlock_all(&mut self) {
        if let Some(held) = &mut self.state().held {
            held.keep(LockScope::Session, 0);
        }
    }

    /// The statement that runs next may lock rows for its transaction
    /// ([`RowLocks`](crate::RowLocks)), in the name of the session whose number this gives.
    ///
    /// # Errors
    /// 0A000 under a protocol in which open blocks hold rows that others wait for: such a statement
    /// would wait for what it wants to leave out.
    pub fn locks_rows(&mut self) -> Result<u64> {
        let inner = self.engine.inner();
        let protocol = inner.common().configuration().protocol;
        if !protocol.holds_nothing_in_blocks() {
            let message = format!("SKIP LOCKED and NOWAIT under the protocol {protocol}");
            let hint = "An UPDATE of a row that a subquery chooses needs neither: it is repeated until it has one to itself.";
            return Err(Error::unsupported(&message).with_hint(hint));
        }
        let mut state = self.state();
        state.held(inner).has_rows = true;
        let number = state.number;
        drop(state);
        self.note_locks();
        Ok(number)
    }

    /// Whether the session, or its transaction, holds a lock.
    pub fn holds_locks(&self) -> bool {
        self.state().held.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// The statement that runs may have taken locks.
    fn note_locks(&mut self) {
        if let Some(running) = &mut self.running {
            running.has_locks = true;
        }
    }

    /// A statement outside of a block is a transaction, which has ended.
    pub(super) fn end_statement_locks(&mut self) {
        let mut state = self.state();
        if state.block == Block::None {
            state.release_transaction_locks();
        }
    }
}

/// Waits for a lock.
fn take(
    inner: &EngineInner,
    request: Request,
    limits: Limits<'_>,
    block_deadline_ns: Option<u64>,
) -> Result<()> {
    let deadline_ns = limits.wait_deadline().into_iter().chain(block_deadline_ns);
    let check_open = || inner.check_open();
    let locks = &inner.locks;
    match locks.take(request, deadline_ns.min(), limits.interrupt, check_open)? {
        true => Ok(()),
        false => Err(limits.check().err().unwrap_or_else(lock_not_available)),
    }
}
