//! What an attempt does when the executor and the scheduler call it.

use crate::phases::Phases;
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;
use kiln_history::{Log, Version};
use kiln_platform::schedule::point;
use kiln_platform::work::{Work, charge};
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recording, Remembering, Scanning, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop, Updater};
use kiln_storage::error::Error;
use kiln_storage::index::NodeVersion;
use kiln_storage::journal::Journal;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use super::Mvcc;

impl Access for Mvcc {
    #[inline]
    fn begin(&mut self) {
        self.participant.enter();
        self.is_deferring = self.defers;
    }

    #[inline]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        _: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        let observed = observed.columns(self.is_deferring);
        if self.is_covered(table, observed) && self.snapshot.is_none() {
            return Ok(self.meet_split(table, record)?);
        }
        Ok(match self.is_deferring && observed.is_empty() {
            true => self.meet_unobserving(record)?,
            false => self.meet(record)?,
        })
    }

    #[inline]
    fn guard(&mut self, _: &Table, _: usize, node: NodeVersion) -> Result<(), AbortCause> {
        match self.snapshot {
            Some(_) => Ok(()),
            None => self.nodes.guard(node),
        }
    }

    #[inline]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        if self.snapshot.is_some() {
            return Ok(self.load_past(table, handle, columns, memory)?);
        }
        self.follow(handle);
        if !self.updates.is_empty() {
            let read = columns.iter().map(|&(column, _)| column).collect();
            self.apply_for_read(*handle, read)?;
        }
        Ok(self.load(table, handle, columns, memory)?)
    }

    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        charge(Work::Record);
        if !self.updates.is_empty() {
            self.follow(handle);
            let written = columns.iter().map(|&(column, _)| column).collect();
            self.apply_for_write(table, *handle, written)?;
        }
        Ok(self.change(table, handle, columns, memory)?)
    }

    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        charge(Work::Record);
        Ok(self.add(table, values, memory)?)
    }

    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        self.follow(handle);
        if let Some(write) = self.written.get(handle.record) {
            self.apply_updates(write as usize)?;
        }
        self.mark_deleted(table, *handle);
        Ok(())
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        Ok(self.replace_deleted(table, handle, values, memory)?)
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<(), Stop> {
        if self.snapshot.is_none()
            && let Err(cause) = self.commit_writes()
        {
            let raised = self.updates.take_raised();
            return Err(raised.map_or(Stop::Abort(cause), Stop::Raise));
        }
        self.finish();
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        self.confirm_reads()
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.takeovers.is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        Ok(Some(self.resolve_entry(table, index, entry)))
    }

    fn roll_back(&mut self) {
        self.withdraw();
        self.drop_timestamp();
        self.undo();
        self.finish();
    }
}

impl Planning for Mvcc {
    #[inline]
    fn begin_read_only(&mut self) {
        self.participant.enter();
        self.is_deferring = false;
        self.snapshot = Some(self.shared.clock.begin_reading(self.worker));
        point("mvcc.snapshot");
    }
}

impl Deferring for Mvcc {
    #[inline(always)]
    #[expect(
        clippy::misnamed_getters,
        reason = "the field of this name is the access's, this is asked of the attempt"
    )]
    fn defers(&self) -> bool {
        self.is_deferring
    }

    fn defer_nothing(&mut self) {
        self.is_deferring = false;
    }

    fn defer(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        charge(Work::Record);
        self.keep_pending(table, handle, updater, operands, memory)
    }

    fn confirm_raise(&mut self, error: Error) -> Result<Error, AbortCause> {
        self.first_error(error)
    }
}

impl Recording for Mvcc {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.recorder.log()
    }

    fn version_of(&self, handle: &Handle) -> Version {
        self.version_behind(handle)
    }

    fn version_met(&self, record: RecordRef) -> Version {
        self.observed_version(record)
    }

    fn former_holder(&self, _: &Table, index: usize, record: RecordRef) -> Option<RecordRef> {
        Mvcc::former_holder(self, index, record)
    }

    fn snapshot(&self) -> Option<Version> {
        self.snapshot.map(Version)
    }
}

impl Remembering for Mvcc {}
impl Scanning for Mvcc {}
impl Travelling for Mvcc {}
impl Flawed for Mvcc {}

impl Recorded for Mvcc {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.reporter.attach(journal, self.worker);
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        Some(&mut self.reporter)
    }
}

impl crate::phases::Phased for Mvcc {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
