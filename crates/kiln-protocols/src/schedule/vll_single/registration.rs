//! Vll-single, in the table of protocols.

use super::CounterTable;
use crate::registration::{Promises, Registration};
use crate::schedule::owned;

pub(crate) const VLL_SINGLE: Registration = Registration {
    name: "vll-single",
    aliases: &[],
    description: "planned: vll with a thread, and counters, for each partition of the data",
    promises: Promises {
        logs_commands: true,
        ..Promises::STRICT
    },
    options: &[],
    factors: &["data-partitions", "partitioning", "claims"],
    family: |setting| owned::of_data::<CounterTable>(setting.factors),
};
