//! Locks by [column group](crate::shared::planning::groups): which of a record's locks an attempt
//! has, and how it gets the other one.

use kiln_procedure::access::Visit;
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Halt, Handle};
use kiln_storage::epoch::Participant;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;

use super::PlannedLocking;
use crate::shared::locked::Locking;
use crate::shared::locks::{Naming, PlannedLocks};
use crate::shared::planning::Claim;
use crate::shared::planning::groups::{self, Extent};

impl<L: PlannedLocks> PlannedLocking<L> {
    /// Which locks an attempt takes of a record with which `observed` is done.
    #[inline(always)]
    pub(super) fn extent(&self, table: &Table, intent: Intent, observed: &Observed) -> Extent {
        match self.locked.by_group() {
            true => Extent::of(table, intent, observed),
            false => Extent::Record,
        }
    }

    /// Whether a lock that is held is the one that a claim asks for, or no other can be.
    #[inline(always)]
    pub(super) fn is_asked(&self, note: u32, claim: Claim) -> bool {
        !self.locked.by_group() || self.locked.locks.all[note as usize].record == claim.record
    }

    /// Whether the attempt has the record of a handle by the lock on unwritten columns alone, as
    /// far as the handle says.
    #[inline(always)]
    fn is_within(&self, handle: &Handle) -> bool {
        let lock = self.locked.locks.all.get(handle.note as usize);
        lock.is_some_and(|lock| groups::is_unwritten(lock.record))
    }

    /// Makes sure that `columns` may be read through a handle.
    #[inline(always)]
    pub(super) fn cover_read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
    ) -> Result<(), Halt> {
        if !self.locked.by_group() || !self.is_within(handle) {
            return Ok(());
        }
        match groups::reads_unwritten(table, set_of(columns)) {
            true => Ok(()),
            false => self.widen(table, handle, Intent::Read),
        }
    }

    /// Makes sure that the attempt has what an update of `columns`, or a deletion, takes besides
    /// the record's own lock, and that the handle is by that one.
    #[inline(always)]
    pub(super) fn cover_write(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: Option<&[(ColumnId, Reg)]>,
    ) -> Result<(), Halt> {
        if !self.locked.has_unwritten(table) {
            return Ok(());
        }
        if self.is_within(handle) {
            self.widen(table, handle, Intent::Write)?;
        }
        let writes = |columns| groups::writes_unwritten(table, set_of(columns));
        match columns.is_none_or(writes) {
            true => Ok(self.lock_unwritten(table, handle.record)?),
            false => Ok(()),
        }
    }

    /// Takes a record's own lock besides the one on its unwritten columns.
    #[cold]
    fn widen(&mut self, table: &Table, handle: &mut Handle, intent: Intent) -> Result<(), Halt> {
        match self.lock(table, handle.record, intent)? {
            Visit::Present(wider) => {
                *handle = wider;
                Ok(())
            }
            Visit::Absent | Visit::Dead => Err(AbortCause::FootprintMiss.into()),
        }
    }

    /// Takes the lock on a record's unwritten columns exclusively, or finds that it is held so.
    #[cold]
    pub(super) fn lock_unwritten(
        &mut self,
        table: &Table,
        record: RecordRef,
    ) -> Result<(), AbortCause> {
        let claim = L::Naming::claim(table, record, true).within(Extent::Unwritten);
        let (locked, plan) = (&mut self.locked, &mut self.plan);
        let mut missed =
            |participant: &Participant, claim, cause| plan.missed(participant, claim, cause);
        if let Some(note) = locked.locks.find::<L::Naming>(claim) {
            return locked.upgrade(claim.record, note, missed);
        }
        let taken = match locked.take(claim) {
            Ok(taken) => taken,
            Err(cause) => return Err(missed(&locked.in_place.participant, claim, cause)),
        };
        let held = locked.wait(claim.record, taken)?;
        locked.locks.hold::<L::Naming>(claim, held);
        Ok(())
    }
}

fn set_of(columns: &[(ColumnId, Reg)]) -> ColumnSet {
    columns.iter().map(|&(column, _)| column).collect()
}
