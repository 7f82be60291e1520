//! The locking of a transaction without the transaction, and without messages: for measurements.

use super::{Demand, PartitionTable};
use crate::shared::planning::Claim;

/// One partition, whose owner takes locks and lets them go, as it does before and after each
/// attempt.
pub struct Isolated<T> {
    table: T,
    demand: Box<Demand>,
}

impl<T: PartitionTable> Default for Isolated<T> {
    fn default() -> Isolated<T> {
        Isolated {
            table: T::several(1).pop().expect("one table"),
            demand: Demand::new(0),
        }
    }
}

impl<T: PartitionTable> Isolated<T> {
    /// Takes the locks of these records and lets them go. Whether they were to be had at once.
    pub fn lock_and_release(&mut self, claims: &[Claim]) -> bool {
        if claims.is_empty() {
            return true;
        }
        self.demand.set(claims, 1, |_| 0);
        let demand: *mut Demand = &mut *self.demand;
        let mut woken = |_| unreachable!("no transaction waits here");
        // SAFETY: this thread alone has the demand and the table.
        unsafe {
            let span = (&(*demand).spans)[0];
            let is_free = self.table.acquire_span(demand, span, &mut woken);
            self.table.release_span((*demand).first, span, &mut woken);
            is_free
        }
    }
}
