//! Strife, in the table of protocols.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;

use super::{Strife, StrifeState};
use crate::batches::{Chosen, Explained};
use crate::family::{Family, boxed};
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration};
use crate::scheduler::Scheduler;

pub(crate) const STRIFE: Registration = Registration {
    name: "strife",
    aliases: &[],
    description: "planned: batches fall apart into clusters, which run without concurrency control",
    promises: Promises {
        leaves_aux: true,
        aux_outlives_records: true,
        explains_batches: true,
        ..Promises::STRICT
    },
    options: &[ProtocolOption::CommitTimeUpdates],
    factors: &["batch-size", "batch-us", "k", "alpha"],
    family: |setting| {
        Box::new(Batching {
            shared: StrifeState::new(setting.factors.batches),
            leaves_updates: setting.has(ProtocolOption::CommitTimeUpdates),
        })
    },
};

/// The batches of all workers.
struct Batching {
    shared: Arc<StrifeState>,
    leaves_updates: bool,
}

impl Family for Batching {
    fn worker(&self, participant: Participant, random: Random) -> Box<dyn Scheduler> {
        let shared = self.shared.clone();
        boxed(Strife::new(
            shared,
            participant,
            random,
            self.leaves_updates,
        ))
    }

    fn explain_batch(&self) {
        self.shared.explain();
    }

    fn explained_batch(&self) -> Option<Explained> {
        self.shared.explained()
    }

    fn batches_chosen(&self) -> Option<Chosen> {
        Some(self.shared.chosen())
    }
}
