//! What a planned attempt does when the executor and the scheduler call it.

use kiln_history::Log;
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, KeptScan, LookupSite, Planning, Recalled, Recording, Remembering,
    Scanning, Sought, SoughtScan, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Arguments, Halt, Handle, Program, Stop};
use kiln_storage::index::{LeafBatch, NodeVersion};
use kiln_storage::journal::Journal;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::{Memory, Slot};
use kiln_storage::table::{Entry, IndexScan, Table};

use super::PlannedLocking;
use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::locked::plan::{handle_at, recalled};
use crate::shared::locked::{self, Locking};
use crate::shared::locks::{Naming, PlannedLocks};
use crate::shared::planning::Planner;
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

impl<L: PlannedLocks> Access for PlannedLocking<L> {
    #[inline]
    fn begin(&mut self) {
        if !std::mem::take(&mut self.plan.stays) && !self.journey.is_guest {
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
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        let finding = self.finding();
        let known = self.plan.planner.findings.lock_of(record);
        let extent = self.extent(table, intent, observed);
        let visit = self.lock_known(table, record, intent, extent, known);
        visit.inspect_err(|_| self.go_back(finding))
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
        self.stay_with(table, handle)?;
        self.cover_read(table, handle, columns)?;
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
        self.stay_with(table, handle)?;
        self.cover_write(table, handle, Some(columns))?;
        self.update_row(table, handle, columns, memory)
    }

    #[inline]
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        self.stay_to_insert(table, values, memory)?;
        self.insert_row(table, values, memory)
    }

    #[inline]
    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        self.stay_with(table, handle)?;
        self.cover_write(table, handle, None)?;
        if !Canary::HandleOfGoneRow.sings() {
            self.plan.planner.findings.forget_handles();
        }
        Ok(self.delete_row(table, handle)?)
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.stay_with(table, handle)?;
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
        locked::install(self, Self::write, Self::release_all);
        self.finish();
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
            false => self.finish(),
        }
    }
}

impl<L: PlannedLocks> Planning for PlannedLocking<L> {
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

impl<L: PlannedLocks> Remembering for PlannedLocking<L> {
    const HAS_HANDLES: bool = !L::Naming::BY_PART;

    #[inline(always)]
    fn handle_at(&mut self, site: LookupSite, table: &Table, index: usize) -> Option<Handle> {
        let handle = handle_at(&self.plan.planner.findings, site, table, index)?;
        charge(Work::Record);
        Some(handle)
    }

    #[inline(always)]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        let finding = self.finding();
        let Some((record, known)) = self.plan.planner.findings.recall(sought, memory) else {
            self.stay_to_seek(sought, memory)?;
            return Ok(None);
        };
        charge(Work::Record);
        let extent = self.extent(sought.table, sought.intent, sought.observed);
        let visit = self.lock_known(sought.table, record, sought.intent, extent, known);
        let visit = visit.inspect_err(|_| self.go_back(finding))?;
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

impl<L: PlannedLocks> Travelling for PlannedLocking<L> {
    const TRAVELS: bool = L::TRAVELS;

    #[inline(always)]
    fn has_done(&mut self) {
        self.journey.has_arrived = false;
    }

    #[inline(always)]
    fn seeks_range(&mut self, table: &Table, index: usize, prefix: &[Slot]) -> Result<(), Halt> {
        match table.part_of_range(index, prefix) {
            Some(part) => self.stay(part),
            None => Ok(()),
        }
    }
}

impl<L: PlannedLocks> Recording for PlannedLocking<L> {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.locked.in_place.recorder.log()
    }
}

impl<L: PlannedLocks> Flawed for PlannedLocking<L> {
    fn forgets_change(&mut self) -> bool {
        Canary::ChangeNotTakenBack.sings()
    }
}

impl<L: PlannedLocks> Recorded for PlannedLocking<L> {
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

impl<L: PlannedLocks> Phased for PlannedLocking<L> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.locked.phases
    }
}

impl<L: PlannedLocks> Scanning for PlannedLocking<L> {}
impl<L: PlannedLocks> Deferring for PlannedLocking<L> {}
