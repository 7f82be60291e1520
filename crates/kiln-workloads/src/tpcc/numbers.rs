//! Numbers of orders that terminals give (fast order ids).

use kiln_platform::atomic::{AtomicU32, Ordering};

use super::{Config, DISTRICTS};

/// A district's counter, on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct District(AtomicU32);

/// The number of each district's next order, shared by all terminals of a run.
#[derive(Debug)]
pub(super) struct NextNumbers(Box<[District]>);

impl NextNumbers {
    /// After those of the population, and after `last`.
    pub(super) fn new(config: &Config, last: u32) -> NextNumbers {
        let districts = usize::from(config.warehouses) * DISTRICTS as usize;
        let next = last.max(config.customers_per_district) + 1;
        NextNumbers(
            (0..districts)
                .map(|_| District(AtomicU32::new(next)))
                .collect(),
        )
    }

    fn counter(&self, warehouse: i64, district: i64) -> &AtomicU32 {
        let at = (warehouse - 1) * i64::from(DISTRICTS) + district - 1;
        &self.0[at as usize].0
    }

    /// A number that no other order of the district has.
    pub(super) fn take(&self, warehouse: i64, district: i64) -> u32 {
        // Relaxed: the number is all that it tells anybody.
        self.counter(warehouse, district)
            .fetch_add(1, Ordering::Relaxed)
    }

    /// The number that the district's next order gets.
    pub(super) fn next(&self, warehouse: i64, district: i64) -> u32 {
        // Relaxed: as above; orders that are not there yet are missing from a Stock-Level, as they
        // would be a moment ago.
        self.counter(warehouse, district).load(Ordering::Relaxed)
    }
}
