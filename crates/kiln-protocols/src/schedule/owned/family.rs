//! The workers of a protocol whose locks are in partitions.

use kiln_platform::sync::Arc;
use kiln_platform::thread;

use super::{Owned, OwnedState, PartitionTable};
use crate::factors::Factors;
use crate::family::{self, Family};

/// Workers that share these partitions.
pub(crate) fn of_workers<T: PartitionTable>(shared: OwnedState<T>) -> Box<dyn Family> {
    let shared = Arc::new(shared);
    family::of_workers(move |participant, random| Owned::new(shared.clone(), participant, random))
}

/// Workers of which each owns partitions of the data: as many partitions as these factors say, or
/// one for each core.
pub(crate) fn of_data<T: PartitionTable>(factors: Factors) -> Box<dyn Family> {
    let partitions = match factors.partitions {
        0 => thread::available_cores(),
        wanted => wanted as usize,
    };
    let shared = OwnedState::<T>::new(partitions).divided(factors.partitioning);
    of_workers(shared.claimed(factors.claims))
}
