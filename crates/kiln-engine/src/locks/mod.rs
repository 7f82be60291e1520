//! Locks that clients ask for by name: advisory locks, those of LOCK TABLE, and rows with SKIP
//! LOCKED and NOWAIT.
//!
//! No protocol knows of them, and no transaction needs them to be serializable. They keep apart
//! those sessions that ask for them. A lock is held by a session, until it gives the lock back, or
//! by its transaction, until that ends, however often it is run again meanwhile.
//!
//! ```text
//! target ─► grants  (session, mode, how often)
//!           queue   (session, mode), in the order in which they came
//! ```
//!
//! Invariants: no two grants of different sessions conflict; a waiter conflicts with a grant or
//! with a waiter before it; a session waits for one lock at a time; a target with no grant and no
//! waiter is not kept.
//!
//! A session that is about to wait looks first whether those that it would wait for wait for it.
//! Each circle is closed by a session that begins to wait, so that none is missed.

mod mode;
mod rows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use kiln_platform::sync::{Arc, Condvar, Mutex, MutexGuard, lock};
use kiln_platform::time;
use kiln_procedure::Interrupt;
use kiln_storage::error::{Error, Result, SqlState};

use crate::wait::wait_unless;
pub use mode::LockMode;
pub use rows::RowLocks;

/// Locks that are held or waited for at a time, each of them once for a session and mode.
const GRANTS_MAX: usize = 100_000;
/// Sessions that wait for locks at a time. A server needs more threads than these for what waits:
/// the holder of a lock needs one to go on.
pub const LOCK_WAITERS_MAX: usize = 48;

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockTarget {
    /// An advisory lock with one key.
    Key(i64),
    /// An advisory lock with two keys.
    Keys(i32, i32),
    /// The table with this number ([`ObjectNumbers`](crate::ObjectNumbers)).
    Table(u32),
    /// A row of the table with this number, by a digest of its key.
    Row(u32, u128),
}

impl fmt::Display for LockTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockTarget::Key(key) => write!(f, "advisory lock [{key}]"),
            LockTarget::Keys(first, second) => write!(f, "advisory lock [{first},{second}]"),
            LockTarget::Table(number) => write!(f, "relation {number}"),
            LockTarget::Row(number, _) => write!(f, "a row of relation {number}"),
        }
    }
}

/// A lock that a session holds or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedLock {
    /// What is locked.
    pub target: LockTarget,
    /// How.
    pub mode: LockMode,
    /// The session.
    pub session: u64,
    /// Since when it waits, in microseconds since 1970; `None` for a lock that it holds.
    pub waits_since_us: Option<i64>,
}

/// A lock that a session wants.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub session: u64,
    pub target: LockTarget,
    pub mode: LockMode,
}

/// All locks of a database.
#[derive(Default)]
pub(crate) struct Locks {
    table: Mutex<LockTable>,
}

#[derive(Default)]
struct LockTable {
    locks: BTreeMap<LockTarget, Lock>,
    /// Grants of all locks.
    grants: usize,
    /// What each session waits for.
    waits: BTreeMap<u64, LockTarget>,
    /// Rows that each session's transaction has locked, in the order in which it did.
    rows: BTreeMap<u64, Vec<(LockTarget, LockMode)>>,
}

#[derive(Default)]
struct Lock {
    grants: Vec<Grant>,
    queue: VecDeque<Waiter>,
}

struct Grant {
    session: u64,
    mode: LockMode,
    /// How often the session has taken it.
    count: u32,
}

struct Waiter {
    session: u64,
    mode: LockMode,
    since_us: i64,
    granted: Arc<Condvar>,
}

impl Locks {
    /// Takes a lock if it is free; says whether it was.
    ///
    /// # Errors
    /// 53200 when there are too many locks.
    pub fn try_take(&self, request: Request) -> Result<bool> {
        lock(&self.table).grant(request)
    }

    /// Takes a lock, and waits for it; `false` when `deadline_ns` has passed, or `interrupt` has
    /// asked for the end, before it was free.
    ///
    /// # Errors
    /// 53200 when there are too many locks, 53300 when too many sessions wait, 40P01 when those
    /// that hold the lock wait for this session; those of `check_open`, which is asked now and
    /// then.
    pub fn take(
        &self,
        request: Request,
        deadline_ns: Option<u64>,
        interrupt: &Interrupt,
        check_open: impl Fn() -> Result<()>,
    ) -> Result<bool> {
        let mut table = lock(&self.table);
        if table.grant(request)? {
            return Ok(true);
        }
        let granted = table.enqueue(request)?;
        loop {
            if !table.waits.contains_key(&request.session) {
                return Ok(true);
            }
            let closed = check_open().err();
            let waited = match closed {
                Some(_) => None,
                None => wait_unless(&granted, table, deadline_ns, Some(interrupt)),
            };
            match waited {
                Some(woken) => table = woken,
                None => return self.give_up(request, closed),
            }
        }
    }

    /// Ends a wait, unless the lock was granted in the last moment.
    fn give_up(&self, request: Request, error: Option<Error>) -> Result<bool> {
        let mut table = lock(&self.table);
        if !table.waits.contains_key(&request.session) {
            return Ok(true);
        }
        table.dequeue(request);
        error.map_or(Ok(false), Err)
    }

    /// Gives a lock back that was taken once.
    pub fn give_back(&self, request: Request) {
        lock(&self.table).release(request);
    }

    /// What is held and waited for, in the order of targets; holders before those who wait, these
    /// in their order.
    pub fn listed(&self) -> Vec<ListedLock> {
        let table: MutexGuard<'_, LockTable> = lock(&self.table);
        let mut listed = Vec::with_capacity(table.grants + table.waits.len());
        for (target, lock) in &table.locks {
            let row = |session, mode, waits_since_us| ListedLock {
                target: *target,
                mode,
                session,
                waits_since_us,
            };
            let grants = lock.grants.iter();
            listed.extend(grants.map(|grant| row(grant.session, grant.mode, None)));
            let queue = lock.queue.iter();
            listed.extend(queue.map(|it| row(it.session, it.mode, Some(it.since_us))));
        }
        listed
    }
}

impl LockTable {
    /// Grants a lock that is free, or that the session has already.
    fn grant(&mut self, request: Request) -> Result<bool> {
        let Request {
            session,
            target,
            mode,
        } = request;
        let lock = self.locks.get_mut(&target);
        if let Some(lock) = lock {
            let mut own = lock
                .grants
                .iter_mut()
                .filter(|grant| grant.session == session);
            if let Some(grant) = own.find(|grant| grant.mode == mode) {
                grant.count = grant.count.saturating_add(1);
                return Ok(true);
            }
            let is_held = lock.is_held_against(session, mode);
            // A holder does not queue behind those that wait for it.
            let is_holder = lock.grants.iter().any(|grant| grant.session == session);
            if is_held || !is_holder && lock.is_wanted_before(lock.queue.len(), session, mode) {
                return Ok(false);
            }
        }
        if self.grants >= GRANTS_MAX {
            let message =
                format!("too many locks: all sessions together hold at most {GRANTS_MAX}");
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message));
        }
        self.grants += 1;
        self.locks.entry(target).or_default().grants.push(Grant {
            session,
            mode,
            count: 1,
        });
        Ok(true)
    }

    /// Lets a session wait; returns what wakes it.
    fn enqueue(&mut self, request: Request) -> Result<Arc<Condvar>> {
        if self.waits.len() >= LOCK_WAITERS_MAX {
            let message =
                format!("too many sessions wait for locks: at most {LOCK_WAITERS_MAX} do");
            let error = Error::new(SqlState::TOO_MANY_CONNECTIONS, message);
            return Err(error.with_hint("Use pg_try_advisory_lock, or NOWAIT, and try again."));
        }
        let granted = Arc::new(Condvar::new());
        let lock = self.locks.entry(request.target).or_default();
        let waiter = Waiter {
            session: request.session,
            mode: request.mode,
            since_us: time::wall_clock_us(),
            granted: granted.clone(),
        };
        let place = lock.place_of(request.session);
        lock.queue.insert(place, waiter);
        self.waits.insert(request.session, request.target);
        let mut path = vec![request.session];
        if self.leads_back(request.session, &mut BTreeSet::new(), &mut path) {
            let error = self.deadlock(&path);
            self.dequeue(request);
            return Err(error);
        }
        Ok(granted)
    }

    /// A session waits no more.
    fn dequeue(&mut self, request: Request) {
        self.waits.remove(&request.session);
        if let Some(lock) = self.locks.get_mut(&request.target) {
            lock.queue
                .retain(|waiter| waiter.session != request.session);
        }
        self.wake(request.target);
    }

    fn release(&mut self, request: Request) {
        let Some(lock) = self.locks.get_mut(&request.target) else {
            return;
        };
        let mut grants = lock.grants.iter();
        let position =
            grants.position(|grant| grant.session == request.session && grant.mode == request.mode);
        let Some(position) = position else { return };
        let grant = &mut lock.grants[position];
        grant.count -= 1;
        if grant.count == 0 {
            lock.grants.swap_remove(position);
            self.grants -= 1;
            self.wake(request.target);
        }
    }

    /// Grants a lock to those that wait for it and need wait no more.
    fn wake(&mut self, target: LockTarget) {
        let Some(lock) = self.locks.get_mut(&target) else {
            return;
        };
        let mut at = 0;
        while let Some(waiter) = lock.queue.get(at) {
            let (session, mode) = (waiter.session, waiter.mode);
            if lock.is_held_against(session, mode) || lock.is_wanted_before(at, session, mode) {
                at += 1;
                continue;
            }
            if let Some(waiter) = lock.queue.remove(at) {
                lock.grants.push(Grant {
                    session,
                    mode,
                    count: 1,
                });
                self.grants += 1;
                self.waits.remove(&session);
                waiter.granted.notify_one();
            }
        }
        if lock.grants.is_empty() && lock.queue.is_empty() {
            self.locks.remove(&target);
        }
    }

    /// Whether those for whom the last session of `path` waits wait for `goal`, some over others;
    /// `path` leads there then.
    fn leads_back(&self, goal: u64, seen: &mut BTreeSet<u64>, path: &mut Vec<u64>) -> bool {
        let from = path.last().copied().unwrap_or(goal);
        for next in self.blockers(from) {
            if next == goal {
                return true;
            }
            if seen.insert(next) {
                path.push(next);
                if self.leads_back(goal, seen, path) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }

    /// The sessions for which one waits.
    fn blockers(&self, session: u64) -> Vec<u64> {
        let waited = self.waits.get(&session);
        let Some(lock) = waited.and_then(|target| self.locks.get(target)) else {
            return Vec::new();
        };
        let queue = || lock.queue.iter();
        let Some(place) = queue().position(|waiter| waiter.session == session) else {
            return Vec::new();
        };
        let mode = lock.queue[place].mode;
        let holders = lock.grants.iter().map(|grant| (grant.session, grant.mode));
        let before = queue()
            .take(place)
            .map(|waiter| (waiter.session, waiter.mode));
        holders
            .chain(before)
            .filter(|(other, held)| *other != session && held.conflicts(mode))
            .map(|(other, _)| other)
            .collect()
    }

    #[cold]
    fn deadlock(&self, path: &[u64]) -> Error {
        let lines = path.iter().enumerate().map(|(place, session)| {
            let next = path[(place + 1) % path.len()];
            match self.wait_of(*session) {
                Some((target, mode)) => format!(
                    "Process {session} waits for {} on {target}; blocked by process {next}.",
                    mode.name()
                ),
                None => format!("Process {session} is blocked by process {next}."),
            }
        });
        let lines: Vec<String> = lines.collect();
        Error::new(SqlState::DEADLOCK_DETECTED, "deadlock detected").with_detail(lines.join("\n"))
    }

    fn wait_of(&self, session: u64) -> Option<(LockTarget, LockMode)> {
        let target = self.waits.get(&session)?;
        let mut queue = self.locks.get(target)?.queue.iter();
        let waiter = queue.find(|waiter| waiter.session == session)?;
        Some((*target, waiter.mode))
    }
}

impl Lock {
    /// Where a session waits: a holder before the first that waits for it, any other behind all.
    fn place_of(&self, session: u64) -> usize {
        let own = || self.grants.iter().filter(|grant| grant.session == session);
        let waits_for = |waiter: &Waiter| own().any(|grant| grant.mode.conflicts(waiter.mode));
        let first = self.queue.iter().position(waits_for);
        first.unwrap_or(self.queue.len())
    }

    /// Whether another session holds it in a mode that excludes this one.
    fn is_held_against(&self, session: u64, mode: LockMode) -> bool {
        let mut others = self.grants.iter().filter(|grant| grant.session != session);
        others.any(|grant| grant.mode.conflicts(mode))
    }

    /// Whether one of the first `count` waiters wants what excludes this mode.
    fn is_wanted_before(&self, count: usize, session: u64, mode: LockMode) -> bool {
        let mut before = self.queue.iter().take(count);
        before.any(|waiter| waiter.session != session && waiter.mode.conflicts(mode))
    }
}

#[cfg(test)]
mod tests;
