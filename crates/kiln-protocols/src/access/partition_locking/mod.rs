//! Strict two-phase locking whose locks cover all that is in a partition of the data: planned, as
//! in `access/planned_locking`.
//!
//! Source: STRIFE §5.4, ORTHRUS §4.3, healing §5, after H-Store.
//!
//! A record that is met needs no lock if its part is [covered](CoveringLocks::covers). The locks are
//! exclusive; a table that every partition has is read with any, and written with all. What a
//! transaction has inserted is locked besides, until the partitions are let go: the next to have
//! one finds new records finished. Gaps are guarded by versions, as under two-phase locking.

use kiln_history::Log;
use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, KeptScan, Planning, Recalled, Recording, Remembering, Scanning,
    Sought, SoughtScan, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Arguments, Halt, Handle, Program, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::{LeafBatch, NodeVersion};
use kiln_storage::journal::Journal;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, IndexScan, Table};

use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::locked::plan::{LockPlan, recalled};
use crate::shared::locked::{self, Locked, Locking, visit_of};
use crate::shared::locks::CoveringLocks;
use crate::shared::planning::{Claim, Planned, Planner};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

/// The note of a handle whose record is covered by the lock of a partition.
const COVERED: u32 = u32::MAX - 1;

/// The access of one worker; see the module's documentation.
pub struct PartitionLocking<L: CoveringLocks> {
    locked: Locked<L>,
    plan: LockPlan,
}

impl<L: CoveringLocks> PartitionLocking<L> {
    /// An access for the worker that `participant` stands for, with this side of the locks.
    pub fn new(participant: Participant, manager: L) -> PartitionLocking<L> {
        PartitionLocking {
            locked: Locked::new(participant, manager),
            plan: LockPlan::new(Planned {
                is_divided: true,
                is_run_soon: true,
                keeps_scans: true,
                ..Planned::default()
            }),
        }
    }

    /// Makes sure that the lock of a partition covers a record.
    #[inline(always)]
    fn cover(&mut self, claim: Claim) -> Result<(), AbortCause> {
        let locked = &mut self.locked;
        let is_ignored = Canary::PartitionGuardIgnored.sings() && !claim.exclusive;
        if is_ignored || locked.manager.covers(claim.part, claim.exclusive) {
            return Ok(());
        }
        match locked.manager.take_claim(claim) {
            Ok(taken) => {
                let held = locked.wait(claim.record, taken)?;
                locked.locks.hold::<L::Naming>(claim, held);
                Ok(())
            }
            Err(cause) => Err((self.plan).missed(&locked.in_place.participant, claim, cause)),
        }
    }

    fn release_all(&mut self) {
        // New records first: the next to have their partition finds them finished.
        self.locked.locks.all.reverse();
        self.locked.release_all();
        self.plan.end();
    }
}

impl<L: CoveringLocks> Locking for PartitionLocking<L> {
    type Locks = L;

    #[inline(always)]
    fn locked(&mut self) -> &mut Locked<L> {
        &mut self.locked
    }

    #[inline(always)]
    fn lock(&mut self, table: &Table, record: RecordRef, intent: Intent) -> Result<Visit, Halt> {
        let claim = Claim::new(table, record, intent == Intent::Write, true);
        let note = match self.locked.locks.find::<L::Naming>(claim) {
            // The attempt has inserted it.
            Some(note) => {
                let held = self.locked.locks.all[note as usize].held;
                self.locked.manager.admits(record, held)?;
                note
            }
            None => {
                self.cover(claim)?;
                self.locked.manager.admits_covered(record)?;
                COVERED
            }
        };
        if Tid(record.tid().load(Ordering::Relaxed)).is_dead() {
            return Ok(Visit::Dead);
        }
        self.locked.meet(record);
        Ok(visit_of(record, note))
    }

    #[inline(always)]
    fn make_exclusive(&mut self, table: &Table, handle: &Handle) -> Result<(), AbortCause> {
        match handle.note {
            COVERED => self.cover(Claim::new(table, handle.record, true, true)),
            // New records are locked exclusively.
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn hold_new(&mut self, table: &Table, record: RecordRef, held: L::Held) -> u32 {
        let claim = Claim::new(table, record, true, true);
        self.locked.locks.hold_new::<L::Naming>(claim, held)
    }

    fn note_of_deleted(&mut self, table: &Table, record: RecordRef) -> u32 {
        let claim = Claim::new(table, record, true, true);
        self.locked
            .locks
            .find::<L::Naming>(claim)
            .unwrap_or(COVERED)
    }
}

impl<L: CoveringLocks> Access for PartitionLocking<L> {
    #[inline]
    fn begin(&mut self) {
        if !std::mem::take(&mut self.plan.stays) {
            self.locked.in_place.participant.enter();
        }
        self.locked.manager.begin();
    }

    #[inline(always)]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        _: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        // The run has come to what the plan has found here.
        let _ = self.plan.planner.findings.lock_of(record);
        self.lock(table, record, intent)
    }

    #[inline]
    fn guard(&mut self, _: &Table, _: usize, node: NodeVersion) -> Result<(), AbortCause> {
        self.locked.nodes.guard(node)
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        (self.locked.in_place).read(table, handle.record, columns, memory);
        Ok(())
    }

    #[inline]
    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.update_row(table, handle, columns, memory)
    }

    #[inline]
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        self.insert_row(table, values, memory)
    }

    #[inline]
    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        Ok(self.delete_row(table, handle)?)
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        Ok(self.bring_row_back(table, handle, values, memory)?)
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.locked.in_place.changes().is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        (self.locked.in_place.changes()).resolve(table, index, entry)
    }

    #[inline]
    fn commit(&mut self) -> Result<(), Stop> {
        point("2pl.executed");
        self.locked.phases.enter(Phase::Validate);
        self.locked.confirm_read()?;
        let write = |attempt: &mut Self, newest| attempt.locked.in_place.commit(newest);
        locked::install(self, write, Self::release_all);
        self.locked.in_place.finish();
        Ok(())
    }

    #[inline]
    fn confirm(&mut self) -> Result<(), AbortCause> {
        self.locked.confirm_read()
    }

    fn roll_back(&mut self) {
        self.locked.in_place.roll_back();
        self.plan.keep_for_statements(&self.locked);
        self.release_all();
        match self.plan.stays {
            true => self.locked.in_place.clear(),
            false => self.locked.in_place.finish(),
        }
    }
}

impl<L: CoveringLocks> Planning for PartitionLocking<L> {
    #[inline]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.locked.manager.begin_call(deadline_ns);
    }

    #[inline]
    fn end_call(&mut self) {
        self.plan.end_call(&self.locked.in_place.participant);
    }

    #[inline(always)]
    fn plan(&mut self, program: &Program, arguments: &Arguments) -> Result<(), AbortCause> {
        let plan = |planner: &mut Planner, epoch| planner.plan(program, arguments, epoch);
        self.plan.take(&mut self.locked, plan)
    }

    fn plan_statements(&mut self) {
        self.plan.take_statements(&mut self.locked);
    }
}

impl<L: CoveringLocks> Remembering for PartitionLocking<L> {
    #[inline(always)]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        let Some((record, _)) = self.plan.planner.findings.recall(sought, memory) else {
            return Ok(None);
        };
        charge(Work::Record);
        let visit = self.lock(sought.table, record, sought.intent)?;
        Ok(recalled(sought.table, sought.index, visit))
    }

    #[inline(always)]
    fn seek_scan(
        &mut self,
        sought: &SoughtScan<'_>,
        memory: &Memory,
    ) -> Result<KeptScan, AbortCause> {
        (self.plan).seek_scan(&mut self.locked.nodes, sought, memory)
    }

    #[inline(always)]
    fn recall_leaf(&mut self, leaf: &mut u16, batch: &mut LeafBatch) -> bool {
        (self.plan.planner.findings.scans).recall_leaf(leaf, batch)
    }

    #[inline(always)]
    fn rest_of_scan(&mut self, scan: u16) -> Option<IndexScan<'static>> {
        self.plan.planner.findings.scans.rest(scan)
    }

    #[inline(always)]
    fn recalls(&self) -> bool {
        !self.plan.planner.findings.is_empty()
    }
}

impl<L: CoveringLocks> Recording for PartitionLocking<L> {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.locked.in_place.recorder.log()
    }
}

impl<L: CoveringLocks> Flawed for PartitionLocking<L> {
    fn forgets_change(&mut self) -> bool {
        Canary::ChangeNotTakenBack.sings()
    }
}

impl<L: CoveringLocks> Recorded for PartitionLocking<L> {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.locked.in_place.recorder
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.locked.in_place.attach(journal);
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        Some(self.locked.in_place.reporter())
    }
}

impl<L: CoveringLocks> Phased for PartitionLocking<L> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.locked.phases
    }
}

impl<L: CoveringLocks> Scanning for PartitionLocking<L> {}
impl<L: CoveringLocks> Travelling for PartitionLocking<L> {}
impl<L: CoveringLocks> Deferring for PartitionLocking<L> {}
