//! Healing, in the table of protocols.

use kiln_platform::sync::Arc;

use super::{Healing, WaitingArray};
use crate::family;
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration};

pub(crate) const HEALING: Registration = Registration {
    name: "healing",
    aliases: &[],
    description: "optimistic, repairs what was read too early at the commit instead of starting again",
    promises: Promises {
        looks_at_columns: true,
        ..Promises::STRICT
    },
    options: &[ProtocolOption::CommitTimeUpdates],
    factors: &[
        "restoration",
        "validation-order",
        "access-cache",
        "read-copies",
        "read-locks",
        "ad-hoc",
    ],
    family: |setting| {
        let factors = setting.factors.healing;
        let defers = setting.has(ProtocolOption::CommitTimeUpdates);
        let waiting_array = Arc::<WaitingArray>::default();
        family::of_accesses(move |participant| {
            Healing::new(participant, factors, defers).sharing(waiting_array.clone())
        })
    },
};
