//! Serial, in the table of protocols.

use super::Serial;
use crate::family;
use crate::registration::{Promises, Registration};

pub(crate) const SERIAL: Registration = Registration {
    name: "serial",
    aliases: &[],
    description: "one worker, no concurrency control: the floor",
    promises: Promises {
        single_worker: true,
        logs_commands: true,
        ..Promises::STRICT
    },
    options: &[],
    factors: &[],
    family: |_| family::of_accesses(Serial::new),
};
