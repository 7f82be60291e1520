//! Locks that a scheduler takes before the attempt begins.

use kiln_procedure::{Arguments, Program};

use super::PlannedLocking;
use crate::shared::locks::PlannedLocks;
use crate::shared::planning::{Claim, Findings, Footprint, PlannedAhead};

impl<L: PlannedLocks> PlannedAhead for PlannedLocking<L> {
    type Demand = Footprint;
    type Held = L::Held;

    fn plan_ahead(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        missed: &[Claim],
        demand: &mut Footprint,
        findings: &mut Findings,
    ) {
        // Where attempts travel the epoch is held until they have ended.
        let participant = &self.locked.in_place.participant;
        if !L::TRAVELS {
            participant.enter();
        }
        let (call, epoch) = ((program, arguments), participant.epoch());
        self.plan.planner.forget();
        (self.plan.planner).plan_ahead(call, epoch, missed, demand, findings);
        if !L::TRAVELS {
            self.locked.in_place.participant.leave();
        }
    }

    #[inline]
    fn follow(&mut self, findings: &mut Findings) {
        let own = &mut self.plan.planner.findings;
        std::mem::swap(own, findings);
        if !L::TRAVELS {
            own.keep_of(self.locked.in_place.participant.epoch());
        }
    }

    #[inline]
    fn hold_ahead(&mut self, demand: &Footprint, held: L::Held) {
        // Where attempts travel, records are met by the owners of their partitions.
        (self.plan).hold_ahead(&mut self.locked, demand, held, !L::TRAVELS);
    }

    #[cold]
    fn take_missed(&mut self, missed: &mut Vec<Claim>) {
        self.plan.take_missed(missed);
    }
}
