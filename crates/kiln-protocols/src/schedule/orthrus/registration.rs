//! Orthrus, with lock tables for each concurrency controller or with one, in the table of
//! protocols.

use super::{LockTable, SharedLockTable, shared};
use crate::registry::{Promises, Registration};
use crate::schedule::owned;

pub(crate) const ORTHRUS: Registration = Registration {
    name: "orthrus",
    aliases: &[],
    description: "planned: some workers only control concurrency, the others only run transactions",
    promises: Promises::STRICT,
    options: &[],
    factors: &["cc-threads", "partitioning"],
    family: |setting| {
        let factors = setting.factors;
        let shared = shared::<LockTable>(factors.concurrency_controllers);
        owned::of_workers(shared.divided(factors.partitioning))
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
        let controllers = setting.factors.concurrency_controllers;
        owned::of_workers(shared::<SharedLockTable>(controllers))
    },
};
