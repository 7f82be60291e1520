//! Two-phase locking whose locks are all taken before a transaction runs, in the table of
//! protocols.

use super::PlannedLocking;
use crate::factors::Claims;
use crate::family::{self, Family};
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration, Setting};
use crate::shared::locks::deadlock::{NoWait, Ordered, Patient};
use crate::shared::locks::planned::{AllOrNone, Atomic, Sorted};
use crate::shared::locks::{BesideRecord, ByGroup, LockWords, LockingState, PlannedLocks};

pub(crate) const LOCK_SORTED: Registration = Registration {
    name: "lock-sorted",
    // ORTHRUS §3.2.
    aliases: &["deadlock-free"],
    description: "planned: all locks are taken in one order before the transaction runs",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &["lock-queue", "claims"],
    family: |setting| {
        let queue = setting.factors.lock_queue;
        let shared = LockingState::new(setting.core_slots.clone());
        match LockPlacement::of(setting) {
            LockPlacement::BesideRecord => over(move |number| {
                let locks = shared.queued(BesideRecord, Ordered, number);
                Sorted(locks.handed_on(queue))
            }),
            LockPlacement::ByGroup => over(move |number| {
                let locks = shared.queued(ByGroup(shared.table.clone()), Ordered, number);
                Sorted(locks.handed_on(queue))
            }),
            LockPlacement::Table { by_group } => over(move |number| {
                let locks = shared.queued(shared.table.clone().grouped(by_group), Ordered, number);
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
    factors: &["claims"],
    family: |setting| {
        let shared = LockingState::new(setting.core_slots.clone());
        match LockPlacement::of(setting) {
            LockPlacement::BesideRecord => over(move |number| {
                let locks = shared.queued(BesideRecord, Patient, number);
                Atomic::new(locks, shared.section.clone())
            }),
            LockPlacement::ByGroup => over(move |number| {
                let locks = shared.queued(ByGroup(shared.table.clone()), Patient, number);
                Atomic::new(locks, shared.section.clone())
            }),
            LockPlacement::Table { by_group } => over(move |number| {
                let locks = shared.queued(shared.table.clone().grouped(by_group), Patient, number);
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
    factors: &["claims"],
    family: |setting| {
        let shared = LockingState::new(setting.core_slots.clone());
        match LockPlacement::of(setting) {
            LockPlacement::BesideRecord => over(|_| AllOrNone(LockWords)),
            LockPlacement::ByGroup => over(move |number| {
                AllOrNone(shared.queued(ByGroup(shared.table.clone()), NoWait, number))
            }),
            LockPlacement::Table { by_group } => over(move |number| {
                let table = shared.table.clone().grouped(by_group);
                AllOrNone(shared.queued(table, NoWait, number))
            }),
        }
    },
};

/// Where a setting has the locks.
enum LockPlacement {
    /// Beside the records.
    BesideRecord,
    /// Beside the records, and those on unwritten columns in a table.
    ByGroup,
    /// In a table, by column group or not.
    Table { by_group: bool },
}

impl LockPlacement {
    fn of(setting: &Setting) -> LockPlacement {
        let by_group = setting.factors.claims == Claims::Columns;
        match (setting.has(ProtocolOption::LockTable), by_group) {
            (true, by_group) => LockPlacement::Table { by_group },
            (false, true) => LockPlacement::ByGroup,
            (false, false) => LockPlacement::BesideRecord,
        }
    }
}

/// A family of planned locking over the locks that `locks` makes for a worker's number.
fn over<L: PlannedLocks + Send + 'static>(
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
