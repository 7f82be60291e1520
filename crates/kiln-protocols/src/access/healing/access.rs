//! What an attempt does when the executor and the scheduler call it; its locks, copies and
//! restorations are in the other files.

use crate::Statistics;
use crate::canary::Canary;
use crate::factors::Use;
use crate::phases::{Phased, Phases};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;
use kiln_history::{Log, Version};
use kiln_platform::sync::Arc;
use kiln_procedure::access::{
    Deferring, Flawed, GoesOn, Inserted, Planning, Recalled, Recording, Remembering, Scanning,
    Sought, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, OpId, Reg};
use kiln_procedure::{AbortCause, Access, Arguments, Halt, Handle, Program, Stop, Updater};
use kiln_storage::error::Error;
use kiln_storage::index::NodeVersion;
use kiln_storage::journal::Journal;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use super::Healing;
use super::dependents::Part;

impl Access for Healing {
    #[inline]
    fn begin(&mut self) {
        self.heals = false;
        self.is_calm = false;
        self.copies_reads = false;
        self.round = 0;
        self.locks_reads = self.factors.read_locks == Use::On;
        self.asks = false;
        self.is_confirmed = false;
        self.is_complete = false;
        self.failed = None;
        self.part = Part::default();
        self.late.is_on = false;
        self.counters.begin();
        self.sets.begin();
    }

    #[inline]
    fn visit(
        &mut self,
        table: &Table,
        record: RecordRef,
        intent: Intent,
        observed: &Observed,
    ) -> Result<Visit, Halt> {
        let observed = observed.columns(self.defers());
        let visit = match self.round == 0 || self.part.is_on {
            true => self.meet(table, record, intent, observed)?,
            false => self.meet_again(table, record, intent, observed)?,
        };
        match visit {
            Visit::Present(handle) => self.cache.met(record, handle.note, true),
            _ => self.cache.met(record, 0, false),
        }
        Ok(visit)
    }

    #[inline]
    fn guard(&mut self, _: &Table, _: usize, node: NodeVersion) -> Result<(), AbortCause> {
        self.rely_on_node(node)
    }

    #[inline]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.sets.apply_for_read(handle, columns)?;
        Ok(self.read_copied(table, handle, columns, memory)?)
    }

    fn update(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.sets.protocol.table = table;
        if Canary::DependencyForgotten.sings() && self.part.is_on {
            return Ok(());
        }
        let updated = self.sets.update(table, handle, columns, memory);
        if let Err(Halt::Stop(Stop::Raise(_))) = &updated {
            // A row has the key already: one that was met before counts with its key from now on,
            // and this one with what its keys were made of.
            for item in &mut self.sets.items {
                item.note.rely_on_version();
            }
        }
        updated
    }

    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        self.sets.protocol.table = table;
        self.sets.protocol.under_way = None;
        let inserted = match self.late.is_on {
            true => self.insert_late(table, values, memory).map_err(Halt::from),
            false => self.sets.insert(table, values, memory),
        };
        match &inserted {
            // Also if it was met before: it counts with its key from now on.
            Ok(Inserted::Exists { handle, .. }) => {
                self.sets.items[handle.note as usize].note.rely_on_version();
            }
            Err(Halt::Stop(Stop::Abort(AbortCause::KeyInTransit))) if self.is_calm => {
                // Another attempt is about after all: the run that follows inserts late.
                self.asks = true;
                self.counters.calm().is_disturbed();
            }
            _ => {}
        }
        inserted
    }

    fn delete(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.sets.delete(table, handle, memory)
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.sets.protocol.table = table;
        self.sets.bring_back(table, handle, values, memory)
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        self.sets.moves_entries()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.sets.resolve(table, index, entry)
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<(), Stop> {
        self.commit_and_forget()
            .map_err(|cause| match self.sets.take_raised() {
                Some(error) => {
                    self.is_confirmed = true;
                    Stop::Raise(error)
                }
                None => Stop::Abort(cause),
            })
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        match self.is_confirmed {
            true => Ok(()),
            false => self.sets.confirm(),
        }
    }
    fn roll_back(&mut self) {
        self.drop_late();
        self.sets.roll_back();
        self.forget();
    }
}

impl Planning for Healing {
    fn begin_call(&mut self, _: Option<u64>) {
        // Spread evenly over the calls.
        self.ad_hoc_rest += self.factors.ad_hoc_percent;
        self.is_ad_hoc = self.ad_hoc_rest >= 100;
        self.ad_hoc_rest %= 100;
    }

    fn plan(&mut self, program: &Program, _: &Arguments) -> Result<(), AbortCause> {
        self.heals = self.factors.access_cache == Use::On && !self.is_ad_hoc;
        self.counters.runs(program);
        self.is_calm = self.heals && self.counters.calm().is_calm();
        self.late.is_allowed = self.heals && program.analysis.inserts_late();
        self.late.is_on = self.late.is_allowed && !self.is_calm;
        self.copies_reads = self.keeps_copies() && !self.is_calm;
        Ok(())
    }
}

impl Remembering for Healing {
    fn goes_on<'p>(&mut self, program: &'p Program, stop: &Stop) -> GoesOn<'p> {
        let goes_on = match self.heals && self.may_restore(stop) {
            true => self.restore(program, stop),
            false => GoesOn::No,
        };
        if let Stop::Abort(cause) = stop
            && matches!(goes_on, GoesOn::No)
        {
            let blamed = self.blames.or(self.last);
            self.counters.aborted(blamed, *cause);
        }
        self.blames = None;
        goes_on
    }

    #[inline(always)]
    fn recalls(&self) -> bool {
        self.round > 0
    }

    #[inline(always)]
    fn recall(&mut self, sought: &Sought<'_>, memory: &Memory) -> Result<Option<Recalled>, Halt> {
        self.sets.protocol.under_way = Some(sought.op);
        self.last = Some(sought.op);
        match self.heals && !self.is_calm {
            true => self.look_back(sought, memory),
            false => Ok(None),
        }
    }

    #[inline(always)]
    fn looked_up(&mut self) {
        self.cache.end();
        self.sets.protocol.under_way = None;
    }
}

impl Scanning for Healing {
    #[inline(always)]
    fn scans(&mut self, op: OpId) {
        self.sets.protocol.under_way = Some(op);
        self.last = Some(op);
    }
}

impl Deferring for Healing {
    fn confirm_raise(&mut self, error: Error) -> Result<Error, AbortCause> {
        match self.is_confirmed {
            // An update deferred to the commit may have raised before.
            true => Ok(self.sets.take_raised().unwrap_or(error)),
            false => self.sets.confirm_raise(error),
        }
    }

    #[inline(always)]
    fn defers(&self) -> bool {
        self.sets.defers()
    }

    fn defer_nothing(&mut self) {
        self.sets.defer_nothing();
    }

    fn defer(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        updater: &Updater,
        operands: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Stop> {
        self.sets.defer(table, handle, updater, operands, memory)
    }
}

impl Recording for Healing {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.sets.history()
    }

    fn version_of(&self, handle: &Handle) -> Version {
        self.sets.version_of(handle)
    }

    fn version_met(&self, record: RecordRef) -> Version {
        self.sets.version_met(record)
    }

    fn version_dead(&self, record: RecordRef) -> Version {
        self.sets.version_dead(record)
    }
}

impl Travelling for Healing {}
impl Flawed for Healing {}

impl Recorded for Healing {
    fn recorder(&mut self) -> &mut Recorder {
        self.sets.recorder()
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.sets.attach(journal);
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        self.sets.reporter()
    }
}

impl Phased for Healing {
    fn phases(&mut self) -> &mut Phases {
        self.sets.phases()
    }

    fn count_in(&mut self, counters: &Arc<crate::Counters>) {
        self.counters.shared = counters.clone();
    }

    fn add_counts(&self, statistics: &mut Statistics) {
        self.counters.add_to(statistics);
    }

    fn reset_counts(&mut self) {
        self.counters.reset();
    }
}
