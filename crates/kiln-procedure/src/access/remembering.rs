//! What an access knows of look-ups and scans before an index is asked: from a plan, or from an
//! earlier run of the same attempt.

use kiln_storage::index::LeafBatch;
use kiln_storage::record::RecordRef;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{IndexScan, RangeValues, Table};

use super::{AbortCause, Halt, Handle, LookupSite, Stop};
use crate::analysis::Observed;
use crate::ir::{Intent, OpId, Reg};
use crate::program::Program;
use crate::restoration::Restoration;

/// A look-up, as the access hears of it before an index is asked.
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    /// The operation.
    pub op: OpId,
    /// The table.
    pub table: &'a Table,
    /// The position of the index.
    pub index: usize,
    /// The registers with the values of the index's columns.
    pub key: &'a [Reg],
    /// What will be done with the record.
    pub intent: Intent,
    /// As in [`Access::visit`](super::Access::visit).
    pub observed: &'a Observed,
    /// Its site, if the arguments alone decide its key.
    pub site: Option<LookupSite>,
    /// Whether it is made again in a restoration only for the handle: what it led to in the run
    /// before it leads to now, and nothing of that is looked at.
    pub is_known: bool,
}

/// A scan, as the access hears of it before the index is asked.
#[derive(Clone, Copy)]
pub struct SoughtScan<'a> {
    /// The table.
    pub table: &'a Table,
    /// The position of the index.
    pub index: usize,
    /// The range.
    pub range: RangeValues<'a>,
    /// Whether it goes from the range's end to its begin.
    pub reverse: bool,
    /// Its number, if the arguments alone decide its range: one with this number has this range.
    pub given: Option<u16>,
}

/// What an access does about a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptScan {
    /// Nothing.
    No,
    /// It keeps the leaves that the scan reads, and gave it this number.
    Noted(u16),
    /// It knows the first leaves, or all of them, and has guarded them.
    Known {
        /// The scan's number.
        scan: u16,
        /// The next leaf's number.
        leaf: u16,
    },
}

/// What an access knows of a look-up without asking the index.
#[derive(Clone, Copy, Debug)]
pub enum Recalled {
    /// There is a row, which the access has met.
    Found(Handle),
    /// There is a record without a row, and the access guards that.
    Absent(RecordRef),
    /// There is no record, and the access guards that.
    Missing,
}

/// How an attempt that has stopped goes on.
#[derive(Clone, Copy, Debug)]
pub enum GoesOn<'p> {
    /// It does not.
    No,
    /// The program runs again from its beginning.
    Again,
    /// A part of it runs again, over the frame as the last run has left it, which came to its end.
    Restored(&'p Restoration),
}

/// What an access remembers of look-ups and scans. One that remembers nothing has each index asked
/// each time.
pub trait Remembering {
    /// Hears that the attempt has stopped, and says whether it goes on all the same: then the
    /// program is run again, or a part of it, as a part of the same attempt, over what the access
    /// has kept of the last run ([`Remembering::recall`]). What the last run has raised or emitted
    /// never was. Asked of attempts that run one program, after
    /// [`Planning::plan`](super::Planning::plan).
    #[inline(always)]
    fn goes_on<'p>(&mut self, _program: &'p Program, _stop: &Stop) -> GoesOn<'p> {
        GoesOn::No
    }

    /// Whether the access knows of most look-ups already ([`Remembering::recall`]), so that nothing
    /// need be fetched ahead of them.
    #[inline(always)]
    fn recalls(&self) -> bool {
        false
    }

    /// Whether the procedure of which this is a reconnaissance runs right after it: then its
    /// prefetches ask for all that the procedure will touch.
    #[inline(always)]
    fn is_run_soon(&self) -> bool {
        true
    }

    /// Whether the access has handles for look-ups before they are made
    /// ([`Remembering::handle_at`]).
    const HAS_HANDLES: bool = false;

    /// The handle to which the look-up of this index at a site leads, if that is known without a
    /// look at anything else: the access has met the record, and knows that it has a row, and the
    /// key.
    #[inline(always)]
    fn handle_at(&mut self, _site: LookupSite, _table: &Table, _index: usize) -> Option<Handle> {
        None
    }

    /// Hears of a look-up before an index is asked, and says what is known of it already. Otherwise
    /// the index is asked, and what follows until [`Remembering::looked_up`] is what comes of it.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn recall(&mut self, _sought: &Sought<'_>, _memory: &Memory) -> Result<Option<Recalled>, Halt> {
        Ok(None)
    }

    /// The look-up that [`Remembering::recall`] heard of is over.
    #[inline(always)]
    fn looked_up(&mut self) {}

    /// Hears of a scan before the index is asked, and says what it does about it: of one that it
    /// knows [`Remembering::recall_leaf`] gives the leaves, and [`Remembering::rest_of_scan`] says
    /// where to go on; of one that it keeps [`Remembering::has_read`] and
    /// [`Remembering::has_scanned`] hear. Not asked where attempts travel.
    ///
    /// # Errors
    /// An [`AbortCause`] when a conflict is met.
    #[inline(always)]
    fn seek_scan(
        &mut self,
        _sought: &SoughtScan<'_>,
        _memory: &Memory,
    ) -> Result<KeptScan, AbortCause> {
        Ok(KeptScan::No)
    }

    /// The leaf with this number of a known scan, and the next one's number; false when there is no
    /// such leaf.
    #[inline(always)]
    fn recall_leaf(&mut self, _leaf: &mut u16, _batch: &mut LeafBatch) -> bool {
        false
    }

    /// Where a scan goes on behind the leaves that are known; `None` if these were all.
    #[inline(always)]
    fn rest_of_scan(&mut self, _scan: u16) -> Option<IndexScan<'static>> {
        None
    }

    /// A scan that is kept has read a leaf. Says no when it is not kept any more.
    #[inline(always)]
    fn has_read(&mut self, _scan: u16, _batch: &LeafBatch) -> bool {
        false
    }

    /// A scan that is kept is over: at the end of its range, or where `rest` goes on.
    #[inline(always)]
    fn has_scanned(&mut self, _scan: u16, _rest: Option<IndexScan<'_>>) {}

    /// Hears of a look-up that a reconnaissance makes ahead of a loop, at this place: `value_of`
    /// gives the values of the index's columns. The record that
    /// [`Access::visit`](super::Access::visit) meets next is the one that the procedure's own
    /// look-up will find.
    #[inline(always)]
    fn seek_ahead(
        &mut self,
        _site: LookupSite,
        _table: &Table,
        _index: usize,
        _value_of: impl Fn(usize) -> Slot,
    ) {
    }
}
