//! A worker's plans.

use kiln_procedure::{Arguments, Program};

use super::findings::Findings;
use super::footprint::{Claim, Footprint};
use super::reconnaissance::Planned;
use super::scout::Scout;

/// Makes plans, in memory that is used again.
pub struct Planner {
    scout: Scout,
    footprint: Footprint,
    /// What the run that follows the plan need not search for.
    pub findings: Findings,
    /// What failed attempts of the present call missed, or a failed attempt of statements met.
    missed: Vec<Claim>,
    /// The epoch in which the records of `missed` were met.
    missed_in: u64,
}

impl Planner {
    /// A planner whose plans are such.
    pub fn new(planned: Planned) -> Planner {
        let mut footprint = Footprint::default();
        footprint.clear();
        Planner {
            scout: Scout::new(planned),
            footprint,
            findings: Findings::default(),
            missed: Vec::new(),
            missed_in: 0,
        }
    }

    /// The transaction is over: what it missed is forgotten.
    #[inline]
    pub fn forget(&mut self) {
        self.missed.clear();
    }

    /// Notes a record that an attempt met without having planned it, or that it held, in the epoch
    /// that the worker is in.
    #[cold]
    pub fn miss(&mut self, claim: Claim, epoch: u64) {
        self.forget_old(epoch);
        if self.missed.len() < Footprint::CLAIMS_MAX {
            self.missed.push(claim);
        }
    }

    /// Forgets records that were met in an earlier epoch: their memory may be another record's by
    /// now. One that was met in the epoch `e` was unlinked in `e` at the earliest, so that it is
    /// not used again before the global epoch is `e + 2`, which it cannot be while a worker is in
    /// `e`.
    fn forget_old(&mut self, epoch: u64) {
        if epoch != self.missed_in {
            self.missed.clear();
            self.missed_in = epoch;
        }
    }

    /// Plans a call: what its reconnaissance meets, and what its failed attempts missed. The worker
    /// is in the epoch `epoch`, and stays in it as long as it uses the plan.
    pub fn plan(&mut self, program: &Program, arguments: &Arguments, epoch: u64) {
        self.forget_old(epoch);
        let call = (program, arguments);
        let (footprint, findings) = (&mut self.footprint, &mut self.findings);
        (self.scout).plan(call, epoch, &self.missed, footprint, findings);
    }

    /// Plans a call that runs later, where its plan is kept: what its reconnaissance meets in the
    /// epoch `epoch`, and `missed`.
    pub fn plan_ahead(
        &mut self,
        call: (&Program, &Arguments),
        epoch: u64,
        missed: &[Claim],
        footprint: &mut Footprint,
        findings: &mut Findings,
    ) {
        (self.scout).plan(call, epoch, missed, footprint, findings);
    }

    /// As [`Planner::plan_ahead`], where many plans are kept: it is copied there, and what it was
    /// made in stays here, where a cache has it.
    pub fn plan_ahead_here(
        &mut self,
        call: (&Program, &Arguments),
        epoch: u64,
        missed: &[Claim],
        footprint: &mut Footprint,
        findings: &mut Findings,
    ) {
        let here = (&mut self.footprint, &mut self.findings);
        (self.scout).plan(call, epoch, missed, here.0, here.1);
        footprint.copy_from(&self.footprint);
        findings.copy_from(&self.findings);
        self.findings.clear();
    }

    /// Plans a transaction of several statements that failed: what the last attempt met.
    pub fn plan_again(&mut self, epoch: u64) {
        self.footprint.clear();
        self.forget_old(epoch);
        (self.scout).add(&self.missed, &mut self.footprint, &mut self.findings);
        self.missed.clear();
    }

    /// Hands out what was missed.
    pub fn take_missed(&mut self, missed: &mut Vec<Claim>) {
        missed.append(&mut self.missed);
    }

    /// The last plan.
    pub fn parts(&mut self) -> (&Footprint, &mut Findings) {
        (&self.footprint, &mut self.findings)
    }
}
