//! Strict two-phase locking, in the table of protocols: a row for each policy against deadlocks.

use super::{NoWait, TwoPhaseLocking};
use crate::family::{self, Family};
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration, Setting};
use crate::shared::locks::deadlock::{self, DeadlockPolicy, Dreadlocks, WaitDie, WaitForGraph};
use crate::shared::locks::{BesideRecord, LockWords, LockingState, Locks};

pub(crate) const NO_WAIT: Registration = Registration {
    name: "2pl-no-wait",
    aliases: &[],
    description: "strict two-phase locking, aborts instead of waiting",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &[],
    family: |setting| match setting.has(ProtocolOption::LockTable) {
        false => family::of_accesses(|participant| NoWait::new(participant, LockWords)),
        true => {
            let shared = LockingState::new(setting.core_slots.clone());
            over(move |number| shared.queued(shared.table.clone(), deadlock::NoWait, number))
        }
    },
};

pub(crate) const WAIT_DIE: Registration = Registration {
    name: "2pl-wait-die",
    aliases: &[],
    description: "strict two-phase locking, older transactions wait, younger ones abort",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &["lock-queue"],
    family: |setting| waiting(setting, |_, number| WaitDie::new(number)),
};

pub(crate) const WAIT_FOR_GRAPH: Registration = Registration {
    name: "2pl-wait-for-graph",
    // Yu et al., and VLL and STRIFE after them.
    aliases: &["dl-detect"],
    description: "strict two-phase locking, deadlocks found in a waits-for graph (dl-detect)",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &["lock-queue"],
    family: |setting| {
        waiting(setting, |shared, number| {
            WaitForGraph::new(shared.waits_for.clone(), number)
        })
    },
};

pub(crate) const DREADLOCKS: Registration = Registration {
    name: "2pl-dreadlocks",
    aliases: &[],
    description: "strict two-phase locking, deadlocks found by digests of who waits for whom",
    promises: Promises::STRICT,
    options: &[ProtocolOption::LockTable],
    factors: &["lock-queue"],
    family: |setting| {
        waiting(setting, |shared, number| {
            Dreadlocks::new(shared.digests.clone(), number)
        })
    },
};

/// A family whose locks are waited for, where the setting places them, with
/// the deadlock policy that `policy` makes for a worker's number.
fn waiting<H: DeadlockPolicy + Send + 'static>(
    setting: &Setting,
    policy: fn(&LockingState, u32) -> H,
) -> Box<dyn Family> {
    let (shared, queue) = (
        LockingState::new(setting.core_slots.clone()),
        setting.factors.lock_queue,
    );
    match setting.has(ProtocolOption::LockTable) {
        false => over(move |number| {
            let locks = shared.queued(BesideRecord, policy(&shared, number), number);
            locks.handed_on(queue)
        }),
        true => over(move |number| {
            let table = shared.table.clone();
            let locks = shared.queued(table, policy(&shared, number), number);
            locks.handed_on(queue)
        }),
    }
}

/// A family of two-phase locking over the locks that `locks` makes for a worker's number.
fn over<L: Locks + Send + 'static>(
    locks: impl Fn(u32) -> L + Send + Sync + 'static,
) -> Box<dyn Family>
where
    L::Held: Send,
{
    family::of_accesses(move |participant| {
        let number = participant.slot() as u32;
        TwoPhaseLocking::new(participant, locks(number))
    })
}
