//! Occ, and occ without validation, in the table of protocols.

use super::{Occ, OccUnchecked};
use crate::family;
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration};

pub(crate) const OCC: Registration = Registration {
    name: "occ",
    aliases: &[],
    description: "optimistic, locks what was read and written in one order, then validates",
    promises: Promises {
        holds_nothing_in_blocks: true,
        ..Promises::STRICT
    },
    options: &[ProtocolOption::CommitTimeUpdates],
    factors: &[],
    family: |setting| {
        let defers = setting.has(ProtocolOption::CommitTimeUpdates);
        family::of_accesses(move |participant| {
            let mut access = Occ::new(participant);
            access.defers = defers;
            access
        })
    },
};

pub(crate) const OCC_UNCHECKED: Registration = Registration {
    name: "occ-unchecked",
    aliases: &[],
    description: "unsafe baseline: occ without validation",
    promises: Promises::NOTHING,
    options: &[],
    factors: &[],
    family: |_| family::of_accesses(OccUnchecked::new),
};
