//! Vll-single, in the table of protocols.

use kiln_platform::sync::Arc;

use super::{VllSingle, shared};
use crate::family;
use crate::registry::{Promises, Registration};

pub(crate) const VLL_SINGLE: Registration = Registration {
    name: "vll-single",
    aliases: &[],
    description: "planned: vll with a thread, and counters, for each partition of the data",
    promises: Promises {
        logs_commands: true,
        ..Promises::STRICT
    },
    options: &[],
    factors: &["data-partitions", "partitioning"],
    family: |setting| {
        let factors = setting.factors;
        let shared = shared(factors.partitions as usize).divided(factors.partitioning);
        let shared = Arc::new(shared);
        family::of_workers(move |participant, random| {
            VllSingle::new(shared.clone(), participant, random)
        })
    },
};
