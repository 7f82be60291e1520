//! Writing in place with an undo log: what a protocol needs that holds its records exclusively
//! while it writes them (or has no rivals at all).

use kiln_platform::atomic::Ordering;
use kiln_platform::plain;
use kiln_procedure::ir::Reg;
use kiln_procedure::{AbortCause, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::error::Error;
use kiln_storage::journal::{Change as Reported, ChangeKind, Journal};
use kiln_storage::layout::{is_spilled, resolve};
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::slot::{Heap, Memory};
use kiln_storage::table::{EntryKey, Table};

use super::index_changes::{Changed, IndexChanges, Touched};
use super::links::{self, Linked};
use super::record_map::RecordMap;
use super::record_set::RecordSet;
use super::recorder::Recorder;
use super::report::{Reporter, Window, all_columns};
use super::scratch::{RowImage, Scratch};
use crate::canary::Canary;

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

    #[cold]
    fn move_entries(
        &mut self,
        table: &Table,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        changed: ColumnSet,
        memory: &mut Memory,
        mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<Option<(usize, RecordRef)>, Stop> {
        for (position, index) in table.indexes().iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            let old = table.entry_key_of(index, table.row(record), &mut memory.heap)?;
            let new = InPlace::new_key(table, position, record, columns, memory)?;
            // A record that comes back from its deletion may have lost its key meanwhile.
            if old == new && self.changes.is_empty() {
                continue;
            }
            let deleted = &self.deleted;
            let moved = self.changes.change(
                table,
                position,
                record,
                (Some(old), new),
                &self.participant,
                &mut self.recorder,
                |other| is_deleted(deleted, other),
                &mut noted,
            )?;
            if let Changed::Taken(other) = moved {
                let update = (columns, changed);
                self.move_back(table, record, update, position, memory, noted)?;
                return Ok(Some((position, other)));
            }
        }
        Ok(None)
    }

    /// Moves the entries of a record back that an update has moved in the indexes before the one
    /// that refuses it.
    fn move_back(
        &mut self,
        table: &Table,
        record: RecordRef,
        (columns, changed): (&[(ColumnId, Reg)], ColumnSet),
        refusing: usize,
        memory: &mut Memory,
        mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        for (position, index) in table.indexes()[..refusing].iter().enumerate() {
            if !index.columns().intersects(changed) {
                continue;
            }
            let old = table.entry_key_of(index, table.row(record), &mut memory.heap)?;
            let new = InPlace::new_key(table, position, record, columns, memory)?;
            if old == new {
                continue;
            }
            let deleted = &self.deleted;
            let moved = self.changes.change(
                table,
                position,
                record,
                (Some(new), old),
                &self.participant,
                &mut self.recorder,
                |other| is_deleted(deleted, other),
                &mut noted,
            )?;
            if let Changed::Taken(_) = moved {
                return Err(AbortCause::KeyInTransit.into());
            }
        }
        Ok(())
    }

    /// The key that a record held exclusively has in the index at `position` when `columns` are
    /// written.
    ///
    /// # Errors
    /// 54000 when the key is too long.
    pub fn new_key(
        table: &Table,
        position: usize,
        record: RecordRef,
        columns: &[(ColumnId, Reg)],
        memory: &mut Memory,
    ) -> Result<EntryKey, Error> {
        let (index, row) = (&table.indexes()[position], table.row(record));
        let mut present = [kiln_storage::slot::Slot::NULL; MAX_FIELDS];
        for (slot, field) in present.iter_mut().zip(index.key_layout().fields()) {
            *slot = table.field_value(field, row, &mut memory.heap);
        }
        index.entry_key(&memory.heap, |field_position, field| {
            let update = columns
                .iter()
                .find(|(column, _)| Some(*column) == field.column);
            update.map_or(present[field_position], |(_, register)| {
                memory.slots[register.0 as usize]
            })
        })
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

    /// Makes the changes final with a tid above `newest` and all that is written, in the current
    /// epoch. The caller still holds its records.
    #[inline]
    pub fn commit(&mut self, newest: Tid) {
        self.commit_leaving(newest, |_, _, _| false);
    }

    /// As [`InPlace::commit`]; `leaves` says of a record that was updated whether another function
    /// stores the tid before the record is let go.
    #[inline(always)]
    pub fn commit_leaving(
        &mut self,
        newest: Tid,
        mut leaves: impl FnMut(&Table, RecordRef, Tid) -> bool,
    ) {
        if self.log.is_empty() {
            return;
        }
        let epoch = self.participant.epochs().current();
        // New records too: their cells may have had other records before.
        let version = |entry: &Entry| Tid(entry.record.tid().load(Ordering::Relaxed)).version();
        let written = self.log.iter().map(version).max().unwrap_or(0);
        let tid = newest.max(self.last).max(Tid(written)).next_in(epoch);
        let tid = match self.reporter.is_attached() {
            true => self.above_deletions(tid),
            false => tid,
        };
        self.last = tid;
        // Before the first entry moves and the first tid is stored, while the caller holds its
        // records: what others see is of its log epoch.
        let mut window = Window::none();
        if self.reporter.is_asked(&mut self.recorder) {
            window = self.reporter.open();
            self.report(&window, tid);
        }
        if !self.changes.is_empty() {
            for record in self.deleted.iter().filter(|record| is_absent(*record)) {
                self.changes.forget(record);
            }
            self.changes.commit(&self.participant, &mut self.recorder);
        }
        let mut removals = false;
        for entry in &self.log {
            match entry.change {
                Change::Update { columns, image } => {
                    if columns.intersects(entry.table().layout().spilling()) {
                        // SAFETY: the scratch is cleared only when the attempt has ended.
                        let image = unsafe { image.words() };
                        for blob in entry.table().layout().blobs(columns, image) {
                            links::retire_blob(blob, &self.participant);
                        }
                    }
                }
                Change::Delete => removals = true,
                Change::Insert | Change::Revive => {}
            }
            if matches!(entry.change, Change::Update { .. })
                && leaves(entry.table(), entry.record, tid)
            {
                continue;
            }
            let absent = entry.record.tid().load(Ordering::Relaxed) & Tid::ABSENT;
            // Release: a transaction that reads this tid sees the row that it belongs to.
            entry.record.tid().store(tid.0 | absent, Ordering::Release);
        }
        if removals {
            self.remove_deleted();
        }
        drop(window);
    }

    /// With a flaw on purpose: reports the commit when its records are others' already.
    #[inline(always)]
    pub fn report_late(&mut self) {
        self.reporter.send_late(self.last);
    }

    #[inline(never)]
    fn above_deletions(&mut self, tid: Tid) -> Tid {
        let entries = self.log.iter();
        let inserted = entries.filter(|entry| matches!(entry.change, Change::Insert));
        let inserted = inserted.map(Entry::table);
        self.reporter.above_deletions(inserted, &self.changes, tid)
    }

    /// Reports what is about to become final.
    #[inline(never)]
    fn report(&mut self, window: &Window, tid: Tid) {
        let InPlace {
            reporter,
            recorder,
            log,
            changes,
            rows,
            named,
            ..
        } = self;
        for entry in log.iter() {
            let columns = match entry.change {
                Change::Update { columns, .. } => columns,
                Change::Insert | Change::Delete | Change::Revive => ColumnSet::EMPTY,
            };
            match named.get(entry.record) {
                Some(row) => {
                    let row = &mut rows[row as usize];
                    row.columns = row.columns.union(columns);
                }
                None => {
                    named.insert(entry.record, rows.len() as u32);
                    rows.push(Row {
                        record: entry.record,
                        table: entry.table,
                        is_new: matches!(entry.change, Change::Insert),
                        columns,
                    });
                }
            }
        }
        named.clear();
        let order = (tid, false);
        for row in rows.drain(..) {
            // SAFETY: the engine keeps a table while a transaction that uses it runs.
            let table = unsafe { &*row.table };
            let former = Tid(row.record.tid().load(Ordering::Relaxed));
            // SAFETY: the caller holds the record, whose table is kept.
            let change = |kind, columns| unsafe {
                Reported::new(table, row.record, kind, columns, former.version())
            };
            // SAFETY: the report is sent below.
            unsafe {
                match (row.is_new, former.is_absent()) {
                    (true, true) => reporter.add_void(row.record, former.version()),
                    (true, false) => {
                        reporter.add(change(ChangeKind::Insert, all_columns(table)));
                    }
                    (false, true) => {
                        // The row may have had another key until it was deleted.
                        let key = changes.former_first_key(row.record);
                        let change = change(ChangeKind::Delete, ColumnSet::EMPTY);
                        reporter.add_deletion(change, key, order);
                    }
                    (false, false) => {
                        let change = || change(ChangeKind::Update, row.columns);
                        reporter.add_update(change, changes, order);
                    }
                }
            }
        }
        reporter.send(window, recorder, tid);
    }

    fn remove_deleted(&mut self) {
        for entry in &self.log {
            let tid = Tid(entry.record.tid().load(Ordering::Relaxed));
            // A record deleted twice in one attempt is removed once.
            if tid.is_absent() && !tid.is_dead() {
                entry
                    .record
                    .tid()
                    .store(tid.0 | Tid::DEAD, Ordering::Release);
                links::unlink(
                    entry.table(),
                    entry.record,
                    &mut self.heap,
                    &self.participant,
                    &mut self.recorder,
                );
                links::retire(entry.table(), entry.record, &self.participant);
            }
        }
        self.heap.clear();
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

/// The most fields of a key.
const MAX_FIELDS: usize = kiln_storage::schema::COLUMNS_MAX + 1;
