//! Rows that statements with SKIP LOCKED and NOWAIT lock for their transaction, so that others of
//! these leave them out.
//!
//! The protocol does not know of these locks either. A row is known by a digest of its key: that
//! two rows of a table have the same one is not to be expected, and the digest's keys are drawn
//! anew for each database that is opened.

use std::hash::{DefaultHasher, Hasher};

use kiln_platform::random::{entropy, fresh_seed};
use kiln_platform::sync::{Arc, lock};
use kiln_storage::error::{Error, Result, SqlState};

use super::{LockMode, LockTable, LockTarget, Locks, Request};

/// Rows that a transaction has locked at a time.
const ROWS_MAX: usize = 10_000;

/// The locks of rows, for programs.
pub struct RowLocks {
    pub(crate) locks: Arc<Locks>,
    keys: [[u8; 16]; 2],
}

impl Default for RowLocks {
    fn default() -> RowLocks {
        let draw = || entropy().unwrap_or_else(|_| u128::from(fresh_seed()).to_le_bytes());
        RowLocks {
            locks: Arc::default(),
            keys: [draw(), draw()],
        }
    }
}

impl RowLocks {
    /// Locks a row of the table with this number for the transaction of a session, in a mode that
    /// may be shared with others; says whether it could. `key` is the row's key, in parts.
    ///
    /// # Errors
    /// 53200 when there are too many locks.
    pub fn try_lock<'a>(
        &self,
        session: u64,
        table: u32,
        key: impl Iterator<Item = &'a [u8]> + Clone,
        is_shared: bool,
    ) -> Result<bool> {
        let mode = match is_shared {
            true => LockMode::Share,
            false => LockMode::Exclusive,
        };
        lock(&self.locks.table).grant_row(Request {
            session,
            target: LockTarget::Row(table, self.digest(key)),
            mode,
        })
    }

    fn digest<'a>(&self, key: impl Iterator<Item = &'a [u8]> + Clone) -> u128 {
        let [first, second] = self.keys.map(|own| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&own);
            for part in key.clone() {
                hasher.write_usize(part.len());
                hasher.write(part);
            }
            hasher.finish()
        });
        u128::from(first) << 64 | u128::from(second)
    }
}

impl Locks {
    /// How many rows a session's transaction has locked.
    pub fn rows_of(&self, session: u64) -> usize {
        lock(&self.table).rows.get(&session).map_or(0, Vec::len)
    }

    /// Gives back all but the first `count` rows that a session's transaction has locked.
    pub fn keep_rows(&self, session: u64, count: usize) {
        let mut table = lock(&self.table);
        let Some(rows) = table.rows.get_mut(&session) else {
            return;
        };
        let behind = rows.split_off(count.min(rows.len()));
        if rows.is_empty() {
            table.rows.remove(&session);
        }
        for (target, mode) in behind {
            table.release(Request {
                session,
                target,
                mode,
            });
        }
    }
}

impl LockTable {
    fn grant_row(&mut self, request: Request) -> Result<bool> {
        let Request {
            session,
            target,
            mode,
        } = request;
        let mut known = self
            .locks
            .get(&target)
            .into_iter()
            .flat_map(|lock| &lock.grants);
        if known.any(|grant| grant.session == session && grant.mode == mode) {
            return Ok(true);
        }
        if self.rows.get(&session).map_or(0, Vec::len) >= ROWS_MAX {
            let message =
                format!("a transaction locks at most {ROWS_MAX} rows by SKIP LOCKED and NOWAIT");
            let error = Error::new(SqlState::OUT_OF_MEMORY, message);
            return Err(error.with_hint("Give the query a LIMIT."));
        }
        let is_granted = self.grant(request)?;
        if is_granted {
            self.rows.entry(session).or_default().push((target, mode));
        }
        Ok(is_granted)
    }
}
