//! Writing in place with an undo log: what a protocol needs that holds its records exclusively
//! while it writes them (or has no rivals at all).

mod commit;
mod keys;

use kiln_platform::atomic::Ordering;
use kiln_platform::plain;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::journal::Journal;
use kiln_storage::layout::{is_spilled, resolve};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Memory};
use kiln_storage::table::Table;

use super::index_changes::{IndexChanges, Touched};
use super::links::{self, Linked};
use super::record_map::RecordMap;
use super::record_set::RecordSet;
use super::recorder::Recorder;
use super::report::Reporter;
use super::scratch::{RowImage, Scratch};
use crate::canary::Canary;

pub use keys::refused_update;

/// What was done to a record.
#[derive(Clone, Copy)]
enum Change {
    /// `columns` were overwritten; `image` holds what they were.
    Update {
        columns: ColumnSet,
        image: RowImage,
    },
    Insert,
    Delete,
    /// A record deleted by the same attempt was inserted again.
    Revive,
}

struct Entry {
    record: RecordRef,
    table: *const Table,
    change: Change,
}

impl Entry {
    fn table<'a>(&self) -> &'a Table {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &*self.table }
    }
}

/// What an attempt has done, apart from the worker that runs it: where attempts travel from worker
/// to worker.
#[derive(Default)]
pub struct Done {
    /// The part in an observation, which is the attempt's own then.
    pub recorder: Recorder,
    log: Vec<Entry>,
    deleted: RecordSet,
    changes: IndexChanges,
    scratch: Scratch,
    heap: Heap,
}

impl Done {
    /// Tells virtual cores that the calling thread reads it, and another one may have made it.
    pub fn note_reads(&self) {
        plain::reads(self.log.as_slice());
        self.heap.note_reads();
    }

    /// As [`Done::note_reads`], where the thread has made it and another one will go on.
    pub fn note_writes(&self) {
        plain::writes(self.log.as_slice());
        self.heap.note_writes();
    }
}

// SAFETY: as for `InPlace`.
unsafe impl Send for Done {}

/// The changes of one attempt, made at once and undone if need be.
pub struct InPlace {
    /// The worker's part in the epochs.
    pub participant: Participant,
    /// The worker's part in an observation.
    pub recorder: Recorder,
    log: Vec<Entry>,
    /// The records that the attempt has deleted; it may have inserted some again.
    deleted: RecordSet,
    changes: IndexChanges,
    scratch: Scratch,
    heap: Heap,
    last: Tid,
    reporter: Reporter,
    /// What the attempt has done to each record, while that is reported, and where it is in there.
    rows: Vec<Row>,
    named: RecordMap,
}

/// What an attempt has done to a record, all in all.
struct Row {
    record: RecordRef,
    table: *const Table,
    is_new: bool,
    /// The columns that were overwritten.
    columns: ColumnSet,
}

// SAFETY: only the thread that runs the attempt follows the table pointers inside, while the tables
// are kept.
unsafe impl Send for InPlace {}

impl InPlace {
    /// For the worker that `participant` stands for.
    pub fn new(participant: Participant) -> InPlace {
        InPlace {
            participant,
            recorder: Recorder::default(),
            log: Vec::new(),
            deleted: RecordSet::default(),
            changes: IndexChanges::default(),
            scratch: Scratch::default(),
            heap: Heap::new(),
            last: Tid(0),
            reporter: Reporter::default(),
            rows: Vec::new(),
            named: RecordMap::default(),
        }
    }

    /// Reports commits to a listener of this journal from now on, or to none; no transaction is
    /// open.
    pub fn attach(&mut self, journal: Option<&Journal>) {
        self.reporter.attach(journal, self.participant.slot());
    }

    /// What reports.
    pub fn reporter(&mut self) -> &mut Reporter {
        &mut self.reporter
    }

    /// Takes over what an attempt has done elsewhere, and gives out what was here.
    #[inline]
    pub fn exchange(&mut self, other: &mut Done) {
        std::mem::swap(&mut self.recorder, &mut other.recorder);
        std::mem::swap(&mut self.log, &mut other.log);
        std::mem::swap(&mut self.deleted, &mut other.deleted);
        std::mem::swap(&mut self.changes, &mut other.changes);
        std::mem::swap(&mut self.scratch, &mut other.scratch);
        std::mem::swap(&mut self.heap, &mut other.heap);
    }

    /// The entries that the attempt has moved.
    #[inline(always)]
    pub fn changes(&self) -> &IndexChanges {
        &self.changes
    }

    /// Whether the attempt itself has deleted `record`, and not inserted it again.
    pub fn has_deleted(&self, record: RecordRef) -> bool {
        is_deleted(&self.deleted, record)
    }

    /// Reads columns of a record that no transaction changes.
    #[inline(always)]
    pub fn read(
        &self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) {
        let (layout, row) = (table.layout(), table.row(record));
        for &(column, register) in columns {
            let mut slot = layout.column(column).load(row, &mut memory.heap);
            if is_spilled(slot) {
                // SAFETY: the row is stable, and the epoch entered keeps the blob.
                slot = unsafe { resolve(slot, &mut memory.heap) };
            }
            memory.slots[register.0 as usize] = slot;
        }
    }

    /// Writes columns of a record held exclusively. Returns the record in the way, and the index,
    /// when a unique index has the new key for another one; then nothing was written.
    ///
    /// # Errors
    /// What `noted` returns, and 54000 when a key is too long.
    #[inline(always)]
    pub fn update(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
        noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        let changed: ColumnSet = columns.iter().map(|&(column, _)| column).collect();
        if table.indexed_columns().intersects(changed) {
            let refused = self.move_entries(table, record, columns, changed, memory, noted)?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        let (layout, row) = (table.layout(), table.row(record));
        let image = self.scratch.take(layout.words());
        // SAFETY: the scratch is cleared only when the attempt has ended.
        layout.copy(changed, row, unsafe { image.words() });
        for &(column, register) in columns {
            let slot = memory.slots[register.0 as usize];
            layout.column(column).store(row, slot, &memory.heap);
        }
        self.log.push(Entry {
            record,
            table,
            change: Change::Update {
                columns: changed,
                image,
            },
        });
        Ok(None)
    }

    /// Inserts a record whose header's `aux` is `aux`, or what its cell had last. `created` gets it
    /// before any other attempt can.
    ///
    /// # Errors
    /// What `created` and `noted` return, and 54000 when a key is too long.
    #[inline(always)]
    pub fn insert(
        &mut self,
        table: &Table,
        values: &[Reg],
        memory: &Memory,
        aux: Option<u64>,
        created: impl FnOnce(RecordRef) -> Result<(), AbortCause>,
        noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<Result<RecordRef, (usize, RecordRef)>, Stop> {
        let (record, number) = links::create(table, values, memory, 0, aux, &self.participant)?;
        if let Err(cause) = created(record) {
            self.discard(table, record);
            return Err(cause.into());
        }
        let deleted = &self.deleted;
        let linked = links::link(
            table,
            record,
            values,
            number,
            memory,
            &self.participant,
            &mut self.recorder,
            &mut self.changes,
            |other| is_deleted(deleted, other),
            noted,
            links::bury,
        );
        match linked {
            Ok(Linked::All) => {
                self.log.push(Entry {
                    record,
                    table,
                    change: Change::Insert,
                });
                Ok(Ok(record))
            }
            Ok(Linked::Exists(index, other)) => {
                self.discard(table, record);
                Ok(Err((index, other)))
            }
            Err(stop) => {
                self.discard(table, record);
                Err(stop)
            }
        }
    }

    /// Gives back a new record that did not get into the indexes.
    fn discard(&mut self, table: &Table, record: RecordRef) {
        links::retire(table, record, &self.participant);
    }

    /// Deletes a record held exclusively.
    #[inline]
    pub fn delete(&mut self, table: &Table, record: RecordRef) {
        let tid = record.tid().load(Ordering::Relaxed);
        record.tid().store(tid | Tid::ABSENT, Ordering::Relaxed);
        self.log.push(Entry {
            record,
            table,
            change: Change::Delete,
        });
        if !self.deleted.contains(record) {
            self.deleted.push(record);
        }
    }

    /// Inserts over a record that the attempt has deleted before: all its columns are updated.
    ///
    /// # Errors
    /// As [`InPlace::update`].
    pub fn revive(
        &mut self,
        table: &Table,
        record: RecordRef,
        values: &[Reg],
        memory: &mut Memory,
        noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        let tid = record.tid().load(Ordering::Relaxed);
        record.tid().store(tid & !Tid::ABSENT, Ordering::Relaxed);
        self.log.push(Entry {
            record,
            table,
            change: Change::Revive,
        });
        let columns: Vec<(ColumnId, Reg)> = (0..values.len())
            .map(|column| (ColumnId(column as u16), values[column]))
            .collect();
        let refused = self.update(table, record, &columns, memory, noted)?;
        if refused.is_some() {
            // It stays deleted.
            self.log.pop();
            record.tid().store(tid, Ordering::Relaxed);
        }
        Ok(refused)
    }

    /// Brings a record back that the attempt has deleted, with these values.
    ///
    /// # Errors
    /// What `noted` returns; [`AbortCause::KeyInTransit`] when a key is not the attempt's any more.
    pub fn bring_back(
        &mut self,
        table: &Table,
        record: RecordRef,
        values: &[Reg],
        memory: &mut Memory,
        noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match self.revive(table, record, values, memory, noted)? {
            None => Ok(()),
            Some(_) => Err(AbortCause::KeyInTransit.into()),
        }
    }

    /// Undoes the changes, the last one first. The caller still holds its records.
    #[cold]
    pub fn roll_back(&mut self) {
        self.changes
            .roll_back(&self.participant, &mut self.recorder);
        for entry in self.log.iter().rev() {
            let (table, record) = (entry.table(), entry.record);
            let tid = record.tid().load(Ordering::Relaxed);
            match entry.change {
                // Keys and spilled values are undone all the same: records lost from their indexes
                // would be a crash and not a wrong history.
                Change::Update { columns, .. }
                    if Canary::UndoLost.sings()
                        && !columns.intersects(table.indexed_columns())
                        && !columns.intersects(table.layout().spilling()) => {}
                Change::Update { columns, image } => {
                    let (layout, row) = (table.layout(), table.row(record));
                    for blob in layout.blobs(columns, row) {
                        links::retire_blob(blob, &self.participant);
                    }
                    // SAFETY: the scratch is cleared only when the attempt has ended.
                    layout.copy(columns, unsafe { image.words() }, row);
                }
                Change::Insert => {
                    links::bury(record);
                    links::unlink(
                        table,
                        record,
                        &mut self.heap,
                        &self.participant,
                        &mut self.recorder,
                    );
                    links::retire(table, record, &self.participant);
                }
                Change::Delete => record.tid().store(tid & !Tid::ABSENT, Ordering::Release),
                Change::Revive => record.tid().store(tid | Tid::ABSENT, Ordering::Release),
            }
        }
        self.heap.clear();
    }

    /// Ends the attempt, but stays in its epoch.
    pub fn clear(&mut self) {
        self.log.clear();
        self.deleted.clear();
        self.changes.end(&self.participant);
        self.scratch.clear();
    }

    /// Forgets the attempt and leaves the epoch. The caller has let its records go.
    #[inline]
    pub fn finish(&mut self) {
        self.clear();
        self.leave_epoch();
    }

    /// Leaves the epoch.
    #[inline]
    pub fn leave_epoch(&mut self) {
        self.participant.leave();
    }
}

/// Whether the attempt that has deleted these records has deleted `record`, and not inserted it
/// again.
fn is_deleted(deleted: &RecordSet, record: RecordRef) -> bool {
    is_absent(record) && deleted.contains(record)
}

fn is_absent(record: RecordRef) -> bool {
    Tid(record.tid().load(Ordering::Relaxed)).is_absent()
}
