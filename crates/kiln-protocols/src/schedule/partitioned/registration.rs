//! Partitioned, in the table of protocols.

use kiln_platform::sync::Arc;

use super::{PartitionLocks, PartitionedState};
use crate::access::partition_locking::PartitionLocking;
use crate::family;
use crate::registration::{Promises, Registration};

pub(crate) const PARTITIONED: Registration = Registration {
    name: "partitioned",
    // STRIFE §5.4, ORTHRUS §4.3, healing §5.
    aliases: &["partcc", "partitioned-store", "h-store"],
    description: "planned: one lock for each partition of the data, taken in one order (H-Store)",
    promises: Promises::STRICT,
    options: &[],
    factors: &["data-partitions"],
    family: |setting| {
        let shared = Arc::new(PartitionedState::new(setting.factors.partitions as usize));
        let core_slots = setting.core_slots.clone();
        family::of_accesses(move |participant| {
            let number = participant.slot() as u32;
            let locks = PartitionLocks::new(shared.clone(), core_slots.clone(), number);
            PartitionLocking::new(participant, locks)
        })
    },
};
