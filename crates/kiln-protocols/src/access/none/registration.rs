//! None, in the table of protocols.

use super::Unprotected;
use crate::family;
use crate::registration::{Promises, Registration};

pub(crate) const NONE: Registration = Registration {
    name: "none",
    aliases: &[],
    description: "unsafe baseline: all workers, no concurrency control",
    promises: Promises::NOTHING,
    options: &[],
    factors: &[],
    family: |_| family::of_accesses(Unprotected::new),
};
