//! Dora, in the table of protocols.

use super::LockTable;
use crate::registration::{Promises, Registration};
use crate::schedule::owned;

pub(crate) const DORA: Registration = Registration {
    name: "dora",
    aliases: &[],
    description: "planned: transactions flow between threads that own partitions of the data",
    promises: Promises::STRICT,
    options: &[],
    factors: &["data-partitions", "partitioning"],
    family: |setting| owned::of_data::<LockTable>(setting.factors),
};
