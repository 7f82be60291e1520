//! Locks on ranges of keys, in the table of protocols: a row for each way to keep them.

use kiln_platform::sync::Arc;

use super::{HierarchicalLocks, HierarchicalSide, MapLocks, MapSide, PrefixCounters};
use crate::access::range_locking::RangeLocking;
use crate::family::{self, Family};
use crate::registration::{Promises, Registration};
use crate::schedule::vll::{Vll, VllState};

const COUNTERS: Promises = Promises {
    logs_commands: true,
    ..Promises::STRICT
};

pub(crate) const VLLR: Registration = Registration {
    name: "vllr",
    aliases: &[],
    description: "planned: vll that locks ranges of keys, and no records",
    promises: COUNTERS,
    options: &[],
    factors: &[],
    family: |_| counters(false),
};

pub(crate) const VLLR_SCA: Registration = Registration {
    name: "vllr-sca",
    aliases: &[],
    description: "planned: vllr that looks for transactions without conflicts when it has time",
    promises: COUNTERS,
    options: &[],
    factors: &[],
    family: |_| counters(true),
};

pub(crate) const RANGE_MAP: Registration = Registration {
    name: "range-map",
    aliases: &[],
    description: "planned: ranges of keys are locked in an ordered map",
    promises: Promises::STRICT,
    options: &[],
    factors: &[],
    family: |setting| {
        let shared = Arc::new(MapLocks::new(setting.core_slots.clone()));
        family::of_accesses(move |participant| {
            let side = MapSide::new(shared.clone(), participant.slot() as u32);
            RangeLocking::new(participant, side)
        })
    },
};

pub(crate) const RANGE_HIERARCHICAL: Registration = Registration {
    name: "range-hierarchical",
    aliases: &[],
    description: "planned: ranges of keys are locked by intentions in a hash table",
    promises: Promises::STRICT,
    options: &[],
    factors: &[],
    family: |setting| {
        let shared = Arc::new(HierarchicalLocks::new(setting.core_slots.clone()));
        family::of_accesses(move |participant| {
            let side = HierarchicalSide::new(shared.clone(), participant.slot() as u32);
            RangeLocking::new(participant, side)
        })
    },
};

fn counters(analyses_contention: bool) -> Box<dyn Family> {
    let shared = Arc::new(VllState::new(PrefixCounters::default()));
    family::of_workers(move |participant, random| {
        Vll::new(shared.clone(), participant, random, analyses_contention)
    })
}
