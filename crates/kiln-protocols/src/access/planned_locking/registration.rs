//! Two-phase locking whose locks are all taken before a transaction runs, in the table of
//! protocols.

use super::PlannedLocking;
use crate::family::{self, Family};
use crate::protocol::ProtocolOption;
use crate::registry::{Promises, Registration};
use crate::shared::locks::deadlock::{NoWait, Ordered, Patient};
use crate::shared::locks::planned::{AllOrNone, Atomic, Sorted};
use crate::shared::locks::{BesideRecord, LockWords, LockingState, Locks};

pub(crate) const LOCK_SORTED: Registration = Registration {
    name: "lock-sorted",
    // ORTHRUS §3.2.
    aliases: &["deadlock-free"],
    description: "planned: all locks are taken in one order before the transaction runs",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &["lock-queue"],
    family: |setting| {
        let queue = setting.factors.lock_queue;
        let shared = LockingState::new(setting.core_slots.clone());
        match setting.has(ProtocolOption::LockTable) {
            false => over(move |number| {
                let locks = shared.queued(BesideRecord, Ordered, number);
                Sorted(locks.handed_on(queue))
            }),
            true => over(move |number| {
                let locks = shared.queued(shared.table.clone(), Ordered, number);
                Sorted(locks.handed_on(queue))
            }),
        }
    },
};

pub(crate) const LOCK_ATOMIC: Registration = Registration {
    name: "lock-atomic",
    aliases: &[],
    description: "planned: all locks are asked for in one critical section before it runs",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &[],
    family: |setting| {
        let shared = LockingState::new(setting.core_slots.clone());
        match setting.has(ProtocolOption::LockTable) {
            false => over(move |number| {
                let locks = shared.queued(BesideRecord, Patient, number);
                Atomic::new(locks, shared.section.clone())
            }),
            true => over(move |number| {
                let locks = shared.queued(shared.table.clone(), Patient, number);
                Atomic::new(locks, shared.section.clone())
            }),
        }
    },
};

pub(crate) const PRE_NO_WAIT: Registration = Registration {
    name: "pre-no-wait",
    aliases: &[],
    description: "planned: all locks are had at once before the transaction runs, or it starts again",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &[],
    family: |setting| match setting.has(ProtocolOption::LockTable) {
        false => over(|_| AllOrNone(LockWords)),
        true => {
            let shared = LockingState::new(setting.core_slots.clone());
            over(move |number| AllOrNone(shared.queued(shared.table.clone(), NoWait, number)))
        }
    },
};

/// A family of planned locking over the locks that `locks` makes for a worker's number.
fn over<L: Locks + Send + 'static>(
    locks: impl Fn(u32) -> L + Send + Sync + 'static,
) -> Box<dyn Family>
where
    L::Held: Send,
{
    family::of_accesses(move |participant| {
        let number = participant.slot() as u32;
        PlannedLocking::new(participant, locks(number))
    })
}
