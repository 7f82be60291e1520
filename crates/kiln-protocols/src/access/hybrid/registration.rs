//! Hybrid, in the table of protocols.

use super::Hybrid;
use crate::family;
use crate::registration::{Promises, Registration};

pub(crate) const HYBRID: Registration = Registration {
    name: "hybrid",
    aliases: &[],
    description: "optimistic at the first attempt, two-phase locking afterwards",
    promises: Promises::STRICT,
    options: &[],
    factors: &[],
    family: |_| family::of_accesses(Hybrid::new),
};
