//! What an optimistic attempt does when the executor and the scheduler call it.

use crate::canary::Canary;
use crate::phases::{Phased, Phases};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;
use kiln_history::{Log, Version};
use kiln_platform::atomic::Ordering;
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
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use super::{Commit, Optimistic};

impl<C: Commit> Access for Optimistic<C> {
    #[inline]
    fn begin(&mut self) {
        self.participant.enter();
        let is_careful = self.calm.begins_careful() || !self.calms;
        self.is_deferring = self.defers && is_careful;
        self.observes_split = self.uses_split && is_careful;
        self.protocol.begin(&self.participant);
    }

    // Always: so that it becomes a part of each kind of look-up.
    #[inline(always)]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        charge(Work::Record);
        let observed = observed.columns(self.is_deferring);
        Ok(match self.observes_split || observed.is_empty() {
            true => self.meet_columns(table, record, intent, observed)?,
            false => self.meet(table, record, intent)?,
        })
    }

    #[inline]
    fn guard(&mut self, table: &Table, index: usize, node: NodeVersion) -> Result<(), AbortCause> {
        self.protocol.relies_on_gap(table, index);
        self.rely_on_node(node)
    }

    // Always: as more than one place calls it, it would be a call of its own.
    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.apply_for_read(handle, columns)?;
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
            let written = columns.iter().map(|&(column, _)| column).collect();
            self.apply_touching(handle, written, true)?;
        }
        Ok(self.buffer(table, handle, columns, memory)?)
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
        if let Some(write) = self.written.get(handle.record) {
            self.apply_updates(write)?;
        }
        Ok(self.mark_deleted(table, handle)?)
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        let write = self.written.get(handle.record);
        let write = write.expect("the attempt has deleted the record");
        match self.revive(table, write as usize, values, memory)? {
            Inserted::New(back) => *handle = back,
            Inserted::Exists { .. } => return Err(AbortCause::KeyInTransit.into()),
        }
        Ok(())
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<(), Stop> {
        C::commit(self).map_err(|cause| match self.updates.take_raised() {
            Some(error) => Stop::Raise(error),
            None => Stop::Abort(cause),
        })
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        C::confirm(self)
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.changes.is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.changes.resolve(table, index, entry)
    }

    fn roll_back(&mut self) {
        self.undo();
        self.finish();
    }
}

impl<C: Commit> Planning for Optimistic<C> {
    #[inline(always)]
    fn prepare(&mut self, failures: u32) {
        if failures > 0 {
            self.calm.is_disturbed();
        }
        self.protocol.prepare(failures);
    }

    #[inline(always)]
    fn begin_call(&mut self, deadline_ns: Option<u64>) {
        self.protocol.begin_call(deadline_ns);
    }

    #[inline(always)]
    fn end_call(&mut self) {
        self.protocol.end_call();
    }

    #[inline]
    fn begin_read_only(&mut self) {
        self.begin();
        self.protocol.begin_read_only();
    }
}

impl<C: Commit> Deferring for Optimistic<C> {
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
        self.observes_split = self.uses_split;
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

impl<C: Commit> Recording for Optimistic<C> {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.recorder.log()
    }

    fn version_of(&self, handle: &Handle) -> Version {
        Version(Tid(self.items[handle.note as usize].observed).version())
    }

    fn version_met(&self, record: RecordRef) -> Version {
        self.observed_version(record)
    }

    fn version_dead(&self, record: RecordRef) -> Version {
        // Final, and not noted.
        Version(Tid(record.tid().load(Ordering::Relaxed)).version())
    }
}

impl<C: Commit> Flawed for Optimistic<C> {
    #[inline(always)]
    fn gives_up(&self) -> bool {
        C::VALIDATES
    }

    #[inline(always)]
    fn write_over(
        &mut self,
        table: &Table,
        values: &[Reg],
        handle: &Handle,
        memory: &Memory,
    ) -> Result<bool, Stop> {
        if !C::VALIDATES {
            self.keep_over(table, values, handle, memory);
        }
        Ok(!C::VALIDATES)
    }

    fn forgets_change(&mut self) -> bool {
        Canary::ChangeNotTakenBack.sings()
    }
}

impl<C: Commit> Remembering for Optimistic<C> {}
impl<C: Commit> Scanning for Optimistic<C> {}
impl<C: Commit> Travelling for Optimistic<C> {}

impl<C: Commit> Recorded for Optimistic<C> {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.reporter.attach(journal, self.participant.slot());
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        Some(&mut self.reporter)
    }
}

impl<C: Commit> Phased for Optimistic<C> {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
