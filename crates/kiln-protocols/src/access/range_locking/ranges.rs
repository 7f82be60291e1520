//! The locks of an attempt, and what it takes besides its plan.

use kiln_procedure::AbortCause;
use kiln_storage::record::RecordRef;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::table::Table;

use super::MAX_FIELDS;
use crate::shared::locks::soon;
use crate::shared::ranges::{RangeClaim, RangeManager, RangePlan};

/// The locks of an attempt.
pub(super) struct Ranges<M: RangeManager> {
    pub(super) manager: M,
    pub(super) held: RangePlan<M::Naming>,
    /// What was taken besides by a transaction of several statements, or missed by any: the next
    /// attempt plans it.
    pub(super) missed: Vec<RangeClaim>,
    /// Whether the attempt has several statements, of which the next one is unknown.
    pub(super) has_statements: bool,
    /// For the keys of records.
    heap: Heap,
}

impl<M: RangeManager> Ranges<M> {
    /// None yet, on this side of the locks.
    pub(super) fn new(manager: M) -> Ranges<M> {
        Ranges {
            manager,
            held: RangePlan::default(),
            missed: Vec::new(),
            has_statements: false,
            heap: Heap::new(),
        }
    }

    /// Makes sure that the keys between two points are held.
    #[inline]
    pub(super) fn claim(
        &mut self,
        table: &Table,
        space: usize,
        points: (u128, u128),
        exclusive: bool,
    ) -> Result<(), AbortCause> {
        let claim = RangeClaim::new(table, space, points, exclusive);
        match self.held.covers(&claim) {
            true => Ok(()),
            false => self.take(claim),
        }
    }

    /// Takes what was not planned.
    #[cold]
    fn take(&mut self, claim: RangeClaim) -> Result<(), AbortCause> {
        let manager = &mut self.manager;
        let is_taken = match self.has_statements {
            true => soon(|| manager.take(&claim).then_some(())).is_some(),
            false => manager.take(&claim),
        };
        let has_room = self.missed.len() < RangePlan::<M::Naming>::CLAIMS_MAX;
        if has_room && (self.has_statements || !is_taken) {
            self.missed.push(claim);
        }
        match is_taken {
            true => Ok(()),
            false => Err(AbortCause::FootprintMiss),
        }
    }

    /// Makes sure that all keys of a record are held exclusively, one of which is held.
    #[inline]
    pub(super) fn claim_keys(
        &mut self,
        table: &Table,
        record: RecordRef,
    ) -> Result<(), AbortCause> {
        for (position, space) in table.key_spaces().iter().enumerate() {
            let index = &table.indexes()[space.index];
            self.heap.clear();
            let mut values = [Slot::NULL; MAX_FIELDS];
            for (value, field) in values.iter_mut().zip(index.key_layout().fields()) {
                *value = table.field_value(field, table.row(record), &mut self.heap);
            }
            // A key that is too long is in no index.
            if let Some(point) = index.entry_lead(&self.heap, |at, _| values[at]) {
                self.claim(table, position, (point, point), true)?;
            }
        }
        Ok(())
    }
}
