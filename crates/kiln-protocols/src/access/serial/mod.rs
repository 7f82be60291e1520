//! Serial: one worker, no concurrency control.
//!
//! The floor that every overhead is measured against: records are read and written in place, and
//! an undo log takes back what a rejected transaction did. Nothing is locked, validated or
//! waited for; correct only because the scheduler runs one transaction at a time in the whole
//! database. Versions are still advanced, so that the history tells what was read, and so that
//! another protocol can take over between epochs.

pub(crate) mod registration;

use kiln_history::Log;
use kiln_platform::atomic::Ordering;
use kiln_procedure::access::{
    Deferring, Flawed, Inserted, Planning, Recording, Remembering, Scanning, Travelling, Visit,
};
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::{Intent, Reg};
use kiln_procedure::{AbortCause, Access, Halt, Handle, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::NodeVersion;
use kiln_storage::journal::Journal;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::ColumnId;
use kiln_storage::slot::Memory;
use kiln_storage::table::{Entry, Table};

use crate::phases::{Phase, Phased, Phases};
use crate::shared::in_place::{InPlace, refused_update};
use crate::shared::recorder::{Recorded, Recorder};
use crate::shared::report::Reporter;

/// The access of the one worker; see the module's documentation.
pub struct Serial {
    in_place: InPlace,
    phases: Phases,
}

impl Serial {
    /// An access for the worker that `participant` stands for.
    pub fn new(participant: Participant) -> Serial {
        Serial {
            in_place: InPlace::new(participant),
            phases: Phases::default(),
        }
    }
}

impl Access for Serial {
    #[inline]
    fn begin(&mut self) {
        self.in_place.participant.enter();
    }

    #[inline(always)]
    fn visit(
        &mut self,
        _: &Table,
        record: RecordRef,
        _: Intent,
        _: &Observed,
    ) -> Result<Visit, Halt> {
        let tid = Tid(record.tid().load(Ordering::Relaxed));
        Ok(match tid.is_absent() {
            true => Visit::Absent,
            false => Visit::Present(Handle { record, note: 0 }),
        })
    }

    #[inline(always)]
    fn guard(&mut self, _: &Table, _: usize, _: NodeVersion) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn read(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        self.in_place.read(table, handle.record, columns, memory);
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
        let record = handle.record;
        let refused = self
            .in_place
            .update(table, record, columns, memory, |_| Ok(()))?;
        match refused {
            None => Ok(()),
            Some((index, _)) => Err(refused_update(table, index, record, columns, memory).into()),
        }
    }

    #[inline]
    fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<Inserted, Halt> {
        let record =
            match self
                .in_place
                .insert(table, values, memory, Some(0), |_| Ok(()), |_| Ok(()))?
            {
                Ok(record) => record,
                Err((index, other)) => {
                    if index > 0 || !self.in_place.has_deleted(other) {
                        let handle = Handle {
                            record: other,
                            note: 0,
                        };
                        return Ok(Inserted::Exists { index, handle });
                    }
                    let refused = self
                        .in_place
                        .revive(table, other, values, memory, |_| Ok(()))?;
                    if let Some((index, other)) = refused {
                        let handle = Handle {
                            record: other,
                            note: 0,
                        };
                        return Ok(Inserted::Exists { index, handle });
                    }
                    other
                }
            };
        Ok(Inserted::New(Handle { record, note: 0 }))
    }

    #[inline]
    fn delete(&mut self, table: &Table, handle: &mut Handle, _: &mut Memory) -> Result<(), Halt> {
        self.in_place.delete(table, handle.record);
        Ok(())
    }

    fn bring_back(
        &mut self,
        table: &Table,
        handle: &mut Handle,
        values: &[Reg],
        memory: &mut Memory,
    ) -> Result<(), Halt> {
        Ok((self.in_place).bring_back(table, handle.record, values, memory, |_| Ok(()))?)
    }

    #[inline]
    fn commit(&mut self) -> Result<(), Stop> {
        self.phases.enter(Phase::Install);
        self.in_place.commit(Tid(0));
        self.in_place.finish();
        Ok(())
    }

    fn confirm(&mut self) -> Result<(), AbortCause> {
        Ok(())
    }

    #[inline(always)]
    fn moves_entries(&self) -> bool {
        !self.in_place.changes().is_empty()
    }

    fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        self.in_place.changes().resolve(table, index, entry)
    }

    fn roll_back(&mut self) {
        self.in_place.roll_back();
        self.in_place.finish();
    }
}

impl Recording for Serial {
    #[inline(always)]
    fn history(&mut self) -> Option<&mut Log> {
        self.in_place.recorder.log()
    }
}

impl Planning for Serial {}
impl Remembering for Serial {}
impl Scanning for Serial {}
impl Travelling for Serial {}
impl Deferring for Serial {}
impl Flawed for Serial {}

impl Recorded for Serial {
    fn recorder(&mut self) -> &mut Recorder {
        &mut self.in_place.recorder
    }

    fn attach(&mut self, journal: Option<&Journal>) {
        self.in_place.attach(journal);
    }

    fn reporter(&mut self) -> Option<&mut Reporter> {
        Some(self.in_place.reporter())
    }
}

impl Phased for Serial {
    fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }
}
