//! What an attempt does, with a grant or without, when the executor and the scheduler call it.

use kiln_history::{Log, Version};
use kiln_platform::atomic::Ordering;
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, KeptScan, Planning, Recalled, Recording, Remembering, Scanning,
    Sought, SoughtScan, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Arguments, Halt, Handle, Program, Stop, Updater};
use kiln_storage::error::Error;
use kiln_storage::index::{LeafBatch, NodeVersion};
use kiln_storage::journal::Journal;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, IndexScan, Table};

use super::GrantedLocking;
use super::deferral::Deferral;
use crate::canary::Canary;
use crate::phases::{Phase, Phased, Phases};
use crate::shared::locked::plan::recalled;
use crate::shared::locked::{self, Locking};
use crate::shared::locks::GrantingLocks;
use crate::shared::planning::Planner;
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

impl<L: GrantingLocks> Access for GrantedLocking<L> {
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
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        if observed.is_deferred
            && self.locked.manager.defers()
            && let Some(visit) = self.meet_deferred(table, record)
        {
            return Ok(visit);
        }
        let known = self.plan.planner.findings.lock_of(record);
        Ok(self.lock_known(table, record, intent, known)?)
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
        if Deferral::is_deferred(handle) {
            return Ok(self.miss_deferred(table, handle)?);
        }
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
        if !self.deferral.is_empty() {
            self.apply_deferred()?;
            point("strife.left-written");
        }
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

impl<L: GrantingLocks> Planning for GrantedLocking<L> {
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

impl<L: GrantingLocks> Remembering for GrantedLocking<L> {
    #[inline(always)]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        let Some((record, known)) = self.plan.planner.findings.recall(sought, memory) else {
            return Ok(None);
        };
        charge(Work::Record);
        let left = match sought.observed.is_deferred && self.locked.manager.defers() {
            true => self.meet_deferred(sought.table, record),
            false => None,
        };
        let visit = match left {
            Some(visit) => visit,
            None => self.lock_known(sought.table, record, sought.intent, known)?,
        };
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

impl<L: GrantingLocks> Deferring for GrantedLocking<L> {
    #[inline(always)]
    fn defers(&self) -> bool {
        self.locked.manager.defers()
    }

    #[inline]
    fn defer(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        charge(Work::Record);
        self.keep_deferred(table, handle, updater, operands, memory)
    }

    #[inline]
    fn confirm_raise(&mut self, error: Error) -> Result<Error, AbortCause> {
        match self.deferral.is_empty() {
            false => self.first_error(error),
            true => self.confirm().map(|()| error),
        }
    }
}

impl<L: GrantingLocks> Recording for GrantedLocking<L> {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.locked.in_place.recorder.log()
    }

    fn version_of(&self, handle: &Handle) -> Version {
        let left = self.deferral.version_of(handle);
        left.unwrap_or_else(|| Version(Tid(handle.record.tid().load(Ordering::Relaxed)).version()))
    }
}

impl<L: GrantingLocks> Flawed for GrantedLocking<L> {
    fn forgets_change(&mut self) -> bool {
        Canary::ChangeNotTakenBack.sings()
    }
}

impl<L: GrantingLocks> Recorded for GrantedLocking<L> {
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

impl<L: GrantingLocks> Phased for GrantedLocking<L> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.locked.phases
    }
}

impl<L: GrantingLocks> Scanning for GrantedLocking<L> {}
impl<L: GrantingLocks> Travelling for GrantedLocking<L> {}
