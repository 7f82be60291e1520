//! Mocc, in the table of protocols.

use kiln_platform::sync::Arc;

use super::{Mocc, Temperatures};
use crate::family;
use crate::registry::{Promises, Registration};

pub(crate) const MOCC: Registration = Registration {
    name: "mocc",
    aliases: &[],
    description: "optimistic, with locks on hot records",
    promises: Promises::STRICT,
    options: &[],
    factors: &[],
    family: |_| {
        let temperatures = Arc::<Temperatures>::default();
        family::of_accesses(move |participant| Mocc::sharing(participant, temperatures.clone()))
    },
};
