//! Attempts that change threads.

use kiln_storage::slot::Slot;
use kiln_storage::table::Table;

use super::Halt;

/// What an access hears of an attempt whose operations belong to different threads. An operation of
/// another thread is not done, and ends with [`Halt::Leaves`]. Where attempts stay with the thread
/// that began them none does, and nothing of this is asked.
pub trait Travelling {
    /// Whether the thread that runs an attempt may change between two operations.
    const TRAVELS: bool = false;

    /// Hears that an operation is done, or a record met to which a scan has come.
    #[inline(always)]
    fn has_done(&mut self) {}

    /// Hears that a range of an index is about to be looked through whose leading columns have
    /// these values.
    ///
    /// # Errors
    /// [`Halt::Leaves`] when another thread looks through it.
    #[inline(always)]
    fn seeks_range(&mut self, _table: &Table, _index: usize, _prefix: &[Slot]) -> Result<(), Halt> {
        Ok(())
    }
}
