//! A worker's plans of ranges.

use kiln_procedure::{Arguments, Executor, Frame, Program};
use kiln_storage::slot::Heap;

use super::claim::RangeClaim;
use super::plan::{Naming, RangePlan};
use super::reconnaissance::RangeReconnaissance;
use crate::shared::planning::reconnaissance::{Reconnaissance, Remembered};
use crate::shared::planning::{Demand, Findings, Footprint, Planned};

/// A reconnaissance that takes longer than this many nanoseconds ends where it is, as for plans of
/// records.
const RECONNAISSANCE_MAX_NS: u64 = 50_000_000;

/// Makes plans, in memory that is used again.
#[derive(Default)]
pub struct RangePlanner {
    frame: Frame,
    remembered: Remembered,
    /// The records that a reconnaissance has met; they are not used.
    footprint: Footprint,
    /// For the keys of records.
    heap: Heap,
}

impl RangePlanner {
    /// Plans a call: what its reconnaissance asks for, and what its failed attempts missed. The
    /// worker is in the epoch `epoch`.
    pub fn plan<N: Naming>(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        missed: &[RangeClaim],
        plan: &mut RangePlan<N>,
        (findings, epoch): (&mut Findings, u64),
    ) {
        plan.clear();
        findings.start(epoch);
        self.footprint.clear();
        self.frame.begin_within(RECONNAISSANCE_MAX_NS);
        let records = Reconnaissance::new(
            &mut self.footprint,
            findings,
            &mut self.remembered,
            Planned {
                is_run_soon: true,
                keeps_scans: false,
                ..Planned::default()
            },
        );
        let mut access = RangeReconnaissance::new(records, plan, &mut self.heap);
        // However it ends: what it asked for is the plan, and the worker that runs the call guards
        // it.
        let program = program.reconnaissance_with_keys();
        let _ = Executor::run(program, &mut access, &mut self.frame, arguments);
        for claim in missed {
            plan.claim(*claim);
        }
        plan.arrange();
    }
}
