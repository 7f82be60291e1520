//! Dora, in the table of protocols.

use kiln_platform::sync::Arc;

use super::{Dora, shared};
use crate::family;
use crate::registry::{Promises, Registration};

pub(crate) const DORA: Registration = Registration {
    name: "dora",
    aliases: &[],
    description: "planned: transactions flow between threads that own partitions of the data",
    promises: Promises::STRICT,
    options: &[],
    factors: &["data-partitions", "partitioning"],
    family: |setting| {
        let factors = setting.factors;
        let shared = shared(factors.partitions as usize).divided(factors.partitioning);
        let shared = Arc::new(shared);
        family::of_workers(move |participant, random| {
            Dora::new(shared.clone(), participant, random)
        })
    },
};
