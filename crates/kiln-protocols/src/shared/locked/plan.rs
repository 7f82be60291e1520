//! Locks that are planned: what an attempt takes before it runs, and what it has missed.

use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_procedure::access::{KeptScan, LookupSite, Recalled, SoughtScan, Visit};
use kiln_procedure::{AbortCause, Handle};
use kiln_storage::epoch::Participant;
use kiln_storage::record::Tid;
use kiln_storage::slot::Memory;
use kiln_storage::table::Table;

use super::{Locked, record_of};
use crate::canary::Canary;
use crate::phases::Phase;
use crate::shared::locks::PlannedLocks;
use crate::shared::node_set::NodeSet;
use crate::shared::planning::{Claim, Findings, Footprint, Planned, Planner};

/// The plan of an attempt.
pub struct LockPlan {
    /// What makes it.
    pub planner: Planner,
    /// Whether the attempt has several statements, of which the next one is unknown.
    pub has_statements: bool,
    /// Whether the attempt missed something, so that the next one of the same call begins in the
    /// same epoch: what was missed is still there then, to be planned.
    pub stays: bool,
}

impl LockPlan {
    /// Plans that are made so.
    pub fn new(planned: Planned) -> LockPlan {
        LockPlan {
            planner: Planner::new(planned),
            has_statements: false,
            stays: false,
        }
    }

    /// The transaction is over: the epoch is left in which an attempt stayed.
    #[inline]
    pub fn end_call(&mut self, participant: &Participant) {
        if std::mem::take(&mut self.stays) {
            participant.leave();
        }
        self.planner.forget();
    }

    /// Takes the locks of the plan that `plan` makes of the worker's epoch.
    ///
    /// # Errors
    /// Why they are not to be had.
    #[inline(always)]
    pub fn take<L: PlannedLocks>(
        &mut self,
        locked: &mut Locked<L>,
        plan: impl FnOnce(&mut Planner, u64),
    ) -> Result<(), AbortCause> {
        locked.phases.enter(Phase::Plan);
        plan(&mut self.planner, locked.in_place.participant.epoch());
        point("planned.planned");
        locked.phases.enter(Phase::Lock);
        let has_handles = locked.has_handles();
        let (locks, newest) = (&mut locked.locks, &mut locked.newest);
        let (footprint, findings) = self.planner.parts();
        let taken = locked.manager.take_all(footprint.iter(), |claim, held| {
            let tid = Tid(record_of::<L>(claim.record).tid().load(Ordering::Relaxed));
            *newest = (*newest).max(Tid(tid.version()));
            let note = locks.hold::<L::Naming>(claim, held);
            findings.held(claim.finding, note, has_handles && has_row(tid));
        });
        point("planned.locked");
        locked.phases.enter(Phase::Execute);
        taken
    }

    /// Takes what the last attempt of the same statements had; what is not to be had now is met
    /// unplanned.
    pub fn take_statements<L: PlannedLocks>(&mut self, locked: &mut Locked<L>) {
        self.has_statements = true;
        let _ = self.take(locked, Planner::plan_again);
    }

    /// Notes what the next plan needs besides, and gives the cause on.
    #[cold]
    pub fn missed(
        &mut self,
        participant: &Participant,
        claim: Claim,
        cause: AbortCause,
    ) -> AbortCause {
        self.planner.miss(claim, participant.epoch());
        self.stays = !self.has_statements;
        cause
    }

    /// The attempt is rolled back: if it had statements, the next one takes what it holds.
    pub fn keep_for_statements<L: PlannedLocks>(&mut self, locked: &Locked<L>) {
        if !self.has_statements {
            return;
        }
        let epoch = locked.in_place.participant.epoch();
        for lock in &locked.locks.all {
            let claim = Claim {
                record: lock.record,
                exclusive: lock.exclusive,
                is_deferred: false,
                part: lock.part,
                finding: Findings::NO_FINDING,
            };
            self.planner.miss(claim, epoch);
        }
    }

    /// The attempt has ended: its findings are forgotten.
    #[inline(always)]
    pub fn end(&mut self) {
        self.planner.findings.clear();
        self.has_statements = false;
    }

    /// Guards what the plan has read of a range, if nothing of that has changed since: an entry
    /// that has moved away has said so.
    ///
    /// # Errors
    /// [`AbortCause::Phantom`] when the attempt relies on another version of a leaf.
    #[inline(always)]
    pub fn seek_scan(
        &mut self,
        nodes: &mut NodeSet,
        sought: &SoughtScan<'_>,
        memory: &Memory,
    ) -> Result<KeptScan, AbortCause> {
        let scans = &mut self.planner.findings.scans;
        let Some(scan) = scans.recall(sought, memory) else {
            return Ok(KeptScan::No);
        };
        let (leaf, mut versions) = scans.leaves(scan);
        if Canary::ScanOutdated.sings() {
            return Ok(KeptScan::Known { scan, leaf });
        }
        if sought.table.indexes()[sought.index].moves() || !versions.all(|leaf| leaf.is_current()) {
            return Ok(KeptScan::No);
        }
        for version in scans.leaves(scan).1 {
            nodes.guard(version)?;
        }
        Ok(KeptScan::Known { scan, leaf })
    }

    /// Notes locks that a scheduler has taken for the attempt that has begun. With `meets` their
    /// records' versions are met now.
    #[inline(always)]
    pub fn hold_ahead<L: PlannedLocks>(
        &mut self,
        locked: &mut Locked<L>,
        demand: &Footprint,
        held: L::Held,
        meets: bool,
    ) {
        locked.locks.all.reserve(demand.len());
        let has_handles = locked.has_handles();
        for claim in demand.iter() {
            let is_ready = meets && {
                let record = record_of::<L>(claim.record);
                let tid = locked.meet(record);
                has_handles && has_row(tid) && locked.manager.admits(record, held).is_ok()
            };
            let note = locked.locks.hold::<L::Naming>(claim, held);
            (self.planner.findings).held(claim.finding, note, is_ready);
        }
    }

    /// Hands out what the attempt missed, which is about to be rolled back.
    #[cold]
    pub fn take_missed(&mut self, missed: &mut Vec<Claim>) {
        // It leaves its epoch: what was missed is known by its address alone from now on.
        self.stays = false;
        self.planner.take_missed(missed);
    }
}

/// Whether the plan's look-up leads to a row, as far as the record says, whose lock is held.
#[inline(always)]
fn has_row(tid: Tid) -> bool {
    !tid.is_dead() && !tid.is_absent() || Canary::HandleOfGoneRow.sings()
}

/// What a look-up leads to whose record the plan has found, and the attempt has met by its lock: no
/// other transaction has taken the record away since, unless it was gone before, or the attempt
/// itself has deleted it.
#[inline(always)]
pub fn recalled(table: &Table, index: usize, visit: Visit) -> Option<Recalled> {
    match visit {
        Visit::Present(handle) if !moves(table, index) => Some(Recalled::Found(handle)),
        _ => None,
    }
}

/// The handle that a look-up leads to whose record the plan has found at this site, if that was
/// seen when the lock was taken.
#[inline(always)]
pub fn handle_at(
    findings: &Findings,
    site: LookupSite,
    table: &Table,
    index: usize,
) -> Option<Handle> {
    findings.handle(site).filter(|_| !moves(table, index))
}

/// Whether records of an index may have moved on to other keys. Looked at when the lock is held: a
/// transaction that has moved the record before has said so.
#[inline(always)]
fn moves(table: &Table, index: usize) -> bool {
    table.indexes()[index].moves() && !Canary::FindingOutdated.sings()
}
