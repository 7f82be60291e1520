//! Mocc, in the table of protocols.

use kiln_platform::sync::Arc;

use super::{HotRecords, Mocc};
use crate::family;
use crate::registration::{Promises, Registration};

pub(crate) const MOCC: Registration = Registration {
    name: "mocc",
    aliases: &[],
    description: "optimistic, with locks on hot records",
    promises: Promises {
        aux_outlives_records: true,
        ..Promises::STRICT
    },
    options: &[],
    factors: &[],
    family: |setting| {
        let hot = Arc::new(HotRecords::new(setting.core_slots.clone()));
        family::of_accesses(move |participant| Mocc::sharing(participant, hot.clone()))
    },
};
