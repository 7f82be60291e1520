//! Silo, and silo without validation, in the table of protocols.

use kiln_storage::epoch::Participant;

use super::{Silo, SiloUnchecked};
use crate::factors::{AbortMechanism, DeadlockAvoidance, Use};
use crate::family;
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration, Setting};
use crate::shared::unwinding::Unwinding;

pub(crate) const SILO: Registration = Registration {
    name: "silo",
    aliases: &[],
    description: "optimistic, validated at commit, epoch-based versions",
    promises: Promises {
        holds_nothing_in_blocks: true,
        ..Promises::STRICT
    },
    options: &[
        ProtocolOption::CommitTimeUpdates,
        ProtocolOption::TimestampSplitting,
    ],
    factors: &["aborts", "deadlock", "early-abort"],
    family: |setting| {
        let access = accesses(setting);
        match setting.factors.abort_mechanism {
            AbortMechanism::Return => family::of_accesses(access),
            AbortMechanism::Unwind => {
                family::of_accesses(move |participant| Unwinding(access(participant)))
            }
        }
    },
};

pub(crate) const SILO_UNCHECKED: Registration = Registration {
    name: "silo-unchecked",
    aliases: &[],
    description: "unsafe baseline: silo without validation",
    promises: Promises::NOTHING,
    options: &[],
    factors: &[],
    family: |_| family::of_accesses(SiloUnchecked::new),
};

/// Makes the accesses of workers.
fn accesses(setting: &Setting) -> impl Fn(Participant) -> Silo + use<> {
    let factors = setting.factors;
    let sorts_locks = factors.deadlock_avoidance == DeadlockAvoidance::Sort;
    let early_aborts = factors.early_aborts == Use::On;
    // The bad choices are measured on the plain protocol.
    let is_plain =
        sorts_locks || !early_aborts || factors.abort_mechanism != AbortMechanism::Return;
    let defers = !is_plain && setting.has(ProtocolOption::CommitTimeUpdates);
    let splits = !is_plain && setting.has(ProtocolOption::TimestampSplitting);
    move |participant| {
        let mut silo = Silo::new(participant);
        silo.sorts_locks = sorts_locks;
        silo.early_aborts = early_aborts;
        silo.protocol.waits = !early_aborts;
        silo.defers = defers;
        silo.splits = splits;
        silo.uses_split = defers || splits;
        silo.calms = true;
        silo
    }
}
