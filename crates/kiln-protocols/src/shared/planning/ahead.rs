//! What a scheduler asks of an access whose locks it takes before the attempt begins.

use kiln_procedure::{Access, Arguments, Program};

use super::findings::Findings;
use super::footprint::{Claim, Footprint};
use crate::phases::Phased;
use crate::shared::recorder::Recorded;

/// What a transaction asks for: claims that are added and then put in order. Its memory is used
/// again.
pub trait Demand: Default + Send + Sync {
    /// What it consists of.
    type Claim: Copy + Send;

    /// Forgets all claims.
    fn clear(&mut self);

    /// Adds a claim; says no when there is no room.
    fn claim(&mut self, claim: Self::Claim) -> bool;

    /// Makes it what locks are taken by.
    fn arrange(&mut self);

    /// Tells virtual cores that the calling thread reads it, and another one may have made it.
    fn note_reads(&self);

    /// As [`Demand::note_reads`], where the thread has made it and others will read it.
    fn note_writes(&self);
}

impl Demand for Footprint {
    type Claim = Claim;

    fn clear(&mut self) {
        Footprint::clear(self);
    }

    fn claim(&mut self, claim: Claim) -> bool {
        self.add(claim)
    }

    fn arrange(&mut self) {
        self.unite(&mut Findings::default());
    }

    #[inline(always)]
    fn note_reads(&self) {
        Footprint::note_reads(self);
    }

    #[inline(always)]
    fn note_writes(&self) {
        Footprint::note_writes(self);
    }
}

/// An access that is told what it may touch.
pub trait PlannedAhead: Access + Phased + Recorded {
    /// What a transaction asks for.
    type Demand: Demand;
    /// How the locks of a demand are held.
    type Held: Copy;

    /// Plans a call that runs later: what its reconnaissance meets, and what its failed attempts
    /// missed. The epoch is left again, so that the demand's references may not be followed.
    fn plan_ahead(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        missed: &[ClaimOf<Self>],
        demand: &mut Self::Demand,
        findings: &mut Findings,
    );

    /// Takes over what was found when the call was planned that now runs in the epoch that has
    /// begun: before [`PlannedAhead::hold_ahead`].
    fn follow(&mut self, findings: &mut Findings);

    /// Notes locks that a scheduler has taken for the attempt that has begun.
    fn hold_ahead(&mut self, demand: &Self::Demand, held: Self::Held);

    /// Hands out what the attempt missed; it is about to be rolled back.
    fn take_missed(&mut self, missed: &mut Vec<ClaimOf<Self>>);
}

/// What the demands of an access consist of.
pub type ClaimOf<A> = <<A as PlannedAhead>::Demand as Demand>::Claim;
