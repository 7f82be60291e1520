//! Locks that a scheduler takes, or records that it grants, before the attempt begins.

use kiln_procedure::{Arguments, Program};

use super::GrantedLocking;
use crate::shared::locks::GrantingLocks;
use crate::shared::planning::{Claim, Findings, Footprint, PlannedAhead};

impl<L: GrantingLocks> PlannedAhead for GrantedLocking<L> {
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
        self.locked.in_place.participant.enter();
        let epoch = self.locked.in_place.participant.epoch();
        self.plan.planner.forget();
        let call = (program, arguments);
        (self.plan.planner).plan_ahead_here(call, epoch, missed, demand, findings);
        self.locked.in_place.participant.leave();
    }

    #[inline]
    fn follow(&mut self, findings: &mut Findings) {
        let own = &mut self.plan.planner.findings;
        std::mem::swap(own, findings);
        own.keep_of(self.locked.in_place.participant.epoch());
    }

    #[inline]
    fn hold_ahead(&mut self, demand: &Footprint, held: L::Held) {
        (self.plan).hold_ahead(&mut self.locked, demand, held, true);
    }

    #[cold]
    fn take_missed(&mut self, missed: &mut Vec<Claim>) {
        self.plan.take_missed(missed);
    }
}
