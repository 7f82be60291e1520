//! What an access hears of scans besides their records and leaves.

use kiln_storage::table::{IndexScan, Table};

use super::AbortCause;
use crate::ir::{Intent, OpId};

/// What an access hears of a scan: its range, for protocols that lock ranges, and which operation
/// it is, for those that run operations again.
pub trait Scanning {
    /// Hears of a scan before the index is asked: of the index at a position of the table, with
    /// what will be done with the records.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn begins_scan(
        &mut self,
        _table: &Table,
        _index: usize,
        _scan: &IndexScan<'_>,
        _intent: Intent,
    ) -> Result<(), AbortCause> {
        Ok(())
    }

    /// The scan `op` meets the next record.
    #[inline(always)]
    fn scans(&mut self, _op: OpId) {}
}
