//! Orthrus, with lock tables for each concurrency controller or with one, in the table of
//! protocols.

use super::{LockTable, SharedLockTable, shared};
use crate::registration::{Promises, Registration};
use crate::schedule::owned;

pub(crate) const ORTHRUS: Registration = Registration {
    name: "orthrus",
    aliases: &[],
    description: "planned: some workers only control concurrency, the others only run transactions",
    promises: Promises::STRICT,
    options: &[],
    factors: &["cc-threads", "partitioning", "claims"],
    family: |setting| {
        let factors = setting.factors;
        let shared = shared::<LockTable>(factors.concurrency_controllers);
        let shared = shared.divided(factors.partitioning);
        owned::of_workers(shared.claimed(factors.claims))
    },
};

pub(crate) const ORTHRUS_SHARED: Registration = Registration {
    name: "orthrus-shared",
    aliases: &[],
    description: "planned: orthrus whose concurrency controllers share one lock table",
    promises: Promises::STRICT,
    options: &[],
    factors: &["cc-threads", "claims"],
    family: |setting| {
        let factors = setting.factors;
        let shared = shared::<SharedLockTable>(factors.concurrency_controllers);
        owned::of_workers(shared.claimed(factors.claims))
    },
};
