//! The function that locks a row for SKIP LOCKED and NOWAIT.

use kiln_engine::RowLocks;
use kiln_platform::sync::Arc;
use kiln_procedure::outside::OutsideFunction;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::sequence::Draws;
use kiln_storage::slot::{Heap, Slot};

/// Locks a row: the arguments are the number of the session and the texts of the row's key.
pub(crate) struct RowLock {
    pub locks: Arc<RowLocks>,
    /// The number of the table.
    pub table: u32,
    /// What the query calls the table.
    pub name: String,
    pub is_shared: bool,
    /// Whether it is an error that another transaction has the row.
    pub no_wait: bool,
}

impl std::fmt::Debug for RowLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RowLock").field(&self.name).finish()
    }
}

impl OutsideFunction for RowLock {
    fn name(&self) -> &str {
        "lock_row"
    }

    fn call(&self, heap: &mut Heap, _: Option<&Draws>, arguments: &[Slot]) -> Result<Slot> {
        let [session, key @ ..] = arguments else {
            return Err(Error::internal("a row is locked without a session"));
        };
        if key.iter().any(|part| part.is_null()) {
            // An outer join has found no row.
            return Ok(Slot::from_bool(true));
        }
        let session = session.as_i64().cast_unsigned();
        let key = key.iter().map(|part| heap.bytes(*part));
        let is_locked = (self.locks).try_lock(session, self.table, key, self.is_shared)?;
        if !is_locked && self.no_wait {
            let message = format!("could not obtain lock on row in relation \"{}\"", self.name);
            return Err(Error::new(SqlState::LOCK_NOT_AVAILABLE, message));
        }
        Ok(Slot::from_bool(is_locked))
    }
}
