//! Vll, with contention analysis or without, and vll whose lock manager is a thread, in the table
//! of protocols.

use kiln_platform::sync::Arc;

use super::{BesideByGroup, CounterArray, Ledger, ManagerThread, Vll, VllState};
use crate::factors::Claims;
use crate::family::{self, Family};
use crate::registration::{Promises, Registration, Setting};
use crate::shared::locks::counters::BesideRecords;

/// The counters lie beside records.
const PROMISES: Promises = Promises {
    logs_commands: true,
    aux_outlives_records: true,
    ..Promises::STRICT
};

pub(crate) const VLL: Registration = Registration {
    name: "vll",
    aliases: &[],
    description: "planned: locks are counters, in one queue of all transactions",
    promises: PROMISES,
    options: &[],
    factors: &["claims"],
    family: |setting| beside_records(setting, false),
};

pub(crate) const VLL_SCA: Registration = Registration {
    name: "vll-sca",
    aliases: &[],
    description: "planned: vll that looks for transactions without conflicts when it has time",
    promises: PROMISES,
    options: &[],
    factors: &["claims"],
    family: |setting| beside_records(setting, true),
};

pub(crate) const VLL_ARRAYED: Registration = Registration {
    name: "vll-arrayed",
    aliases: &[],
    description: "planned: vll whose lock manager is a thread, with an array",
    promises: Promises {
        logs_commands: true,
        ..Promises::STRICT
    },
    options: &[],
    factors: &["claims"],
    family: |setting| {
        let by_group = setting.factors.claims == Claims::Columns;
        let counters = CounterArray::default().grouped(by_group);
        let manager = ManagerThread::start(counters, setting.core_slots.clone());
        let manager = Arc::new(manager);
        family::of_workers(move |participant, random| {
            Vll::managed(manager.clone(), participant, random)
        })
    },
};

fn beside_records(setting: &Setting, analyses_contention: bool) -> Box<dyn Family> {
    match setting.factors.claims {
        Claims::Record => counted(BesideRecords, analyses_contention),
        Claims::Columns => counted(BesideByGroup(CounterArray::default()), analyses_contention),
    }
}

fn counted<L: Ledger>(ledger: L, analyses_contention: bool) -> Box<dyn Family>
where
    L::Access: Send,
{
    let shared = Arc::new(VllState::new(ledger));
    family::of_workers(move |participant, random| {
        Vll::new(shared.clone(), participant, random, analyses_contention)
    })
}
