//! Mvcc, in the table of protocols.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;
use kiln_storage::schema::TableId;

use super::{Mvcc, MvccState};
use crate::Versions;
use crate::direct::Direct;
use crate::family::{Family, boxed};
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration};
use crate::scheduler::Scheduler;

pub(crate) const MVCC: Registration = Registration {
    name: "mvcc",
    aliases: &[],
    description: "multiversion: read-only procedures read the past, and always commit",
    promises: Promises {
        leaves_aux: true,
        holds_nothing_in_blocks: true,
        orders_columns: true,
        ..Promises::STRICT
    },
    options: &[
        ProtocolOption::CommitTimeUpdates,
        ProtocolOption::TimestampSplitting,
        ProtocolOption::LaggingSnapshots,
    ],
    factors: &[],
    family: |setting| {
        let lags = setting.has(ProtocolOption::LaggingSnapshots);
        Box::new(Multiversion {
            shared: Arc::new(MvccState::new(lags)),
            defers: setting.has(ProtocolOption::CommitTimeUpdates),
            splits: setting.has(ProtocolOption::TimestampSplitting),
        })
    },
};

/// What the workers share, and their options.
struct Multiversion {
    shared: Arc<MvccState>,
    defers: bool,
    splits: bool,
}

impl Family for Multiversion {
    fn worker(&self, participant: Participant, random: Random) -> Box<dyn Scheduler> {
        let mut access = Mvcc::new(self.shared.clone(), participant);
        access.defers = self.defers;
        access.splits = self.splits;
        boxed(Direct::new(access, random))
    }

    fn settle(&self, participant: &Participant) {
        self.shared.settle(participant);
    }

    fn settles_later(&self) -> bool {
        true
    }

    fn settle_table(&self, participant: &Participant, table: TableId) {
        self.shared.settle_table(participant, table);
    }

    fn look_after_idle(&self, participant: &Participant) -> bool {
        self.shared.look_after_idle(participant)
    }

    fn versions(&self) -> Versions {
        Versions {
            count: self.shared.versions(),
            bytes: self.shared.version_bytes(),
        }
    }
}
