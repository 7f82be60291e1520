//! Locks that are planned ([`Locks::PLANNED`]): taken by the attempt itself when it begins, or by a
//! scheduler before that.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_procedure::{AbortCause, Arguments, Program};
use kiln_storage::record::Tid;

use super::TwoPhaseLocking;
use crate::phases::Phase;
use crate::shared::locks::Locks;
use crate::shared::planning::{Claim, Findings, Footprint, PlannedAhead, Planner};

impl<L: Locks> TwoPhaseLocking<L> {
    /// Takes the locks of the plan that `plan` makes of the worker's epoch.
    pub(super) fn take_planned(
        &mut self,
        plan: impl FnOnce(&mut Planner, u64),
    ) -> Result<(), AbortCause> {
        let Some(planner) = &mut self.planner else {
            return Ok(());
        };
        self.phases.enter(Phase::Plan);
        plan(planner, self.in_place.participant.epoch());
        point("planned.planned");
        self.phases.enter(Phase::Lock);
        let (locks, newest) = (&mut self.locks, &mut self.newest);
        let (footprint, findings) = planner.parts();
        let taken = self.manager.take_all(footprint.claims(), |claim, held| {
            let tid = Tid(claim.record.tid().load(Ordering::Relaxed));
            *newest = (*newest).max(Tid(tid.version()));
            let note = locks.hold::<L>(claim, held);
            findings.held(claim.finding, note);
        });
        point("planned.locked");
        self.phases.enter(Phase::Execute);
        taken
    }

    /// Notes what the next plan needs besides.
    #[cold]
    pub(super) fn missed<T>(&mut self, claim: Claim, cause: AbortCause) -> Result<T, AbortCause> {
        if let Some(planner) = &mut self.planner {
            planner.miss(claim, self.in_place.participant.epoch());
            self.stays = !self.has_statements;
        }
        Err(cause)
    }
}

impl<L: Locks> PlannedAhead for TwoPhaseLocking<L> {
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
        let Some(planner) = &mut self.planner else {
            unreachable!("locks that are not planned are not planned ahead")
        };
        // Where attempts travel the epoch is held until they have ended.
        if !L::TRAVELS {
            self.in_place.participant.enter();
        }
        let epoch = self.in_place.participant.epoch();
        planner.forget();
        let call = (program, arguments);
        match L::GRANTS {
            true => planner.plan_ahead_here(call, epoch, missed, demand, findings),
            false => planner.plan_ahead(call, epoch, missed, demand, findings),
        }
        if !L::TRAVELS {
            self.in_place.participant.leave();
        }
    }

    #[inline]
    fn follow(&mut self, findings: &mut Findings) {
        if let Some(planner) = &mut self.planner {
            std::mem::swap(&mut planner.findings, findings);
            if !L::TRAVELS {
                planner.findings.keep_of(self.in_place.participant.epoch());
            }
        }
    }

    #[inline]
    fn hold_ahead(&mut self, demand: &Footprint, held: L::Held) {
        let Some(planner) = &mut self.planner else {
            unreachable!("locks that are not planned are not held ahead")
        };
        self.locks.all.reserve(demand.claims().len());
        for &claim in demand.claims() {
            // Else it is met by the owner of its partition.
            if !L::TRAVELS {
                let tid = Tid(claim.record.tid().load(Ordering::Relaxed));
                self.newest = self.newest.max(Tid(tid.version()));
            }
            let note = self.locks.hold::<L>(claim, held);
            planner.findings.held(claim.finding, note);
        }
    }

    #[cold]
    fn take_missed(&mut self, missed: &mut Vec<Claim>) {
        // It leaves its epoch: what was missed is known by its address alone from now on.
        self.stays = false;
        if let Some(planner) = &mut self.planner {
            planner.take_missed(missed);
        }
    }
}
