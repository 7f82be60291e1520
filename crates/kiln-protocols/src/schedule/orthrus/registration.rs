//! Orthrus, with lock tables for each concurrency controller or with one, in the table of
//! protocols.

use kiln_platform::sync::Arc;

use super::{Orthrus, OrthrusShared, shared};
use crate::family;
use crate::registry::{Promises, Registration};

pub(crate) const ORTHRUS: Registration = Registration {
    name: "orthrus",
    aliases: &[],
    description: "planned: some workers only control concurrency, the others only run transactions",
    promises: Promises::STRICT,
    options: &[],
    factors: &["cc-threads", "partitioning"],
    family: |setting| {
        let factors = setting.factors;
        let shared = shared(factors.concurrency_controllers).divided(factors.partitioning);
        let shared = Arc::new(shared);
        family::of_workers(move |participant, random| {
            Orthrus::new(shared.clone(), participant, random)
        })
    },
};

pub(crate) const ORTHRUS_SHARED: Registration = Registration {
    name: "orthrus-shared",
    aliases: &[],
    description: "planned: orthrus whose concurrency controllers share one lock table",
    promises: Promises::STRICT,
    options: &[],
    factors: &["cc-threads"],
    family: |setting| {
        let shared = Arc::new(shared(setting.factors.concurrency_controllers));
        family::of_workers(move |participant, random| {
            OrthrusShared::new(shared.clone(), participant, random)
        })
    },
};
