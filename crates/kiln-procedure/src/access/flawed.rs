//! What only those accesses do that are wrong on purpose.

use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::{Handle, Stop};
use crate::ir::Reg;

/// What baselines do that check nothing, and canaries.
pub trait Flawed {
    /// Whether a look-up gives up when what it meets stays dead for long: the transaction that
    /// takes the record out of the index is without a core.
    #[inline(always)]
    fn gives_up(&self) -> bool {
        true
    }

    /// Hears of an insert that would raise 23505, as the row behind `handle` has a unique key of
    /// its row. Whether the access has written the values over that row instead, which only a
    /// baseline does that checks nothing.
    ///
    /// # Errors
    /// An [`AbortCause`](super::AbortCause) when a conflict is met.
    #[inline(always)]
    fn write_over(
        &mut self,
        _table: &Table,
        _values: &[Reg],
        _handle: &Handle,
        _memory: &Memory,
    ) -> Result<bool, Stop> {
        Ok(false)
    }

    /// Whether a protected region that has caught an error forgets to take its last change back: a
    /// canary's flaw.
    #[inline(always)]
    fn forgets_change(&mut self) -> bool {
        false
    }
}
