//! TicToc, in the table of protocols.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_storage::epoch::Participant;

use super::{Gaps, GroupTimes, TicToc};
use crate::direct::Direct;
use crate::family::{Family, boxed};
use crate::options::ProtocolOption;
use crate::registration::{Promises, Registration};
use crate::scheduler::Scheduler;

pub(crate) const TICTOC: Registration = Registration {
    name: "tictoc",
    aliases: &[],
    description: "optimistic, timestamps computed from what was read and written, not strict",
    promises: Promises {
        strict: false,
        leaves_aux: true,
        holds_nothing_in_blocks: true,
        orders_columns: true,
        ..Promises::STRICT
    },
    options: &[
        ProtocolOption::CommitTimeUpdates,
        ProtocolOption::TimestampSplitting,
        ProtocolOption::Sweeps,
    ],
    factors: &[],
    family: |setting| {
        let splits = setting.has(ProtocolOption::TimestampSplitting);
        Box::new(Times {
            gaps: Arc::default(),
            groups: splits.then(Arc::default),
            defers: setting.has(ProtocolOption::CommitTimeUpdates),
            sweeps: setting.has(ProtocolOption::Sweeps),
        })
    },
};

/// The timestamps that are not in records.
struct Times {
    gaps: Arc<Gaps>,
    /// Those of reads, where they are beside the records.
    groups: Option<Arc<GroupTimes>>,
    defers: bool,
    sweeps: bool,
}

impl Family for Times {
    fn worker(&self, participant: Participant, random: Random) -> Box<dyn Scheduler> {
        let access = TicToc::sharing(participant, self.gaps.clone(), self.groups.clone());
        let mut access = access.sweeping(self.sweeps);
        access.defers = self.defers;
        boxed(Direct::new(access, random))
    }

    fn tables_changed(&self) {
        self.gaps.spread();
    }
}
