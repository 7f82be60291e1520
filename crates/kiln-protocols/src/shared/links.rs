//! Putting records into the indexes and taking them out.

use std::ptr::NonNull;

use kiln_history::{EntryChange, Moment};
use kiln_platform::atomic::Ordering;
use kiln_procedure::Stop;
use kiln_procedure::ir::Reg;
use kiln_storage::epoch::{Participant, Retired};
use kiln_storage::error::{Error, SqlState};
use kiln_storage::index::Insertion;
use kiln_storage::key::KeyField;
use kiln_storage::layout::Blob;
use kiln_storage::record::{RecordRef, Tid};
use kiln_storage::slot::{Heap, Memory, Slot};
use kiln_storage::table::{Entry, EntryKey, Table};

use super::emptied::EmptiedNodes;
use super::index_changes::{Changed, IndexChanges, Touched, leave_key};
use super::recorder::Recorder;

/// What linking a new record did.
pub enum Linked {
    /// It is in all indexes.
    All,
    /// It is in none: the unique index at this position has its key for another record.
    Exists(usize, RecordRef),
}

/// A new record of `table` with `values` for all columns, in no index yet. Its tid has `flags` and
/// the version that its cell had last, so that the versions of a cell only grow, over all records
/// that it ever holds. Its `aux` is the one given, or what its cell had last.
///
/// # Errors
/// 53200 when there is no memory.
#[inline(always)]
pub fn create(
    table: &Table,
    values: &[Reg],
    memory: &Memory,
    flags: u64,
    aux: Option<u64>,
    participant: &Participant,
) -> Result<(RecordRef, i64), Error> {
    // SAFETY: the arena that the participant uses is this worker's alone.
    let cell = unsafe { table.slab().alloc(participant.arena()) };
    let cell = cell.map_err(|_| {
        Error::new(
            SqlState::OUT_OF_MEMORY,
            "the system grants no more memory for records",
        )
    })?;
    // SAFETY: the cell is of this table's slab.
    let record = unsafe { RecordRef::from_cell(cell) };
    // No other transaction sees the record before an index has it; the index publishes these
    // writes.
    let version = Tid(record.tid().load(Ordering::Relaxed)).version();
    record.tid().store(version | flags, Ordering::Relaxed);
    if let Some(aux) = aux {
        record.aux().store(aux, Ordering::Relaxed);
    }
    let row = table.row(record);
    for (access, value) in table.layout().columns().iter().zip(values) {
        access.store(row, memory.slots[value.0 as usize], &memory.heap);
    }
    let mut number = 0;
    if let Some(access) = table.layout().row_number() {
        number = table.next_row_number(participant.arena());
        access.store(row, Slot::from_i64(number), &memory.heap);
    }
    Ok((record, number))
}

/// Puts a new record into all indexes, and tells `noted` what that did to their nodes. Unique keys
/// that the attempt has vacated itself, by `changes` or because it has deleted their record, are
/// taken over. When the record cannot be in all of them, `given_up` buries it before it is taken
/// out again: a transaction that has met it must not find its keys free while it seems to be on its
/// way still.
///
/// # Errors
/// 54000 when a key is too long, or what `noted` returns; then the record is in no index.
#[inline]
#[expect(
    clippy::too_many_arguments,
    reason = "what a new record consists of, and its attempt"
)]
pub fn link(
    table: &Table,
    record: RecordRef,
    values: &[Reg],
    row_number: i64,
    memory: &Memory,
    participant: &Participant,
    recorder: &mut Recorder,
    changes: &mut IndexChanges,
    is_deleted: impl Fn(RecordRef) -> bool,
    mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    given_up: impl FnOnce(RecordRef),
) -> Result<Linked, Stop> {
    let value = |_: usize, field: &KeyField| match field.column {
        Some(column) => memory.slots[values[column.index()].0 as usize],
        None => Slot::from_i64(row_number),
    };
    let begun = recorder.now();
    for (position, index) in table.indexes().iter().enumerate() {
        // All that is rare is done elsewhere, so that this stays small enough to become a part of
        // its callers, with what they do in `noted`.
        let outcome = match index.insert(&memory.heap, value, record, participant) {
            Ok(Insertion::Inserted(effect)) => noted(Touched::Inserted(&effect)).map(|()| None),
            Ok(Insertion::Exists(payload)) => {
                // SAFETY: the payload is of an index of a living table.
                let entry = unsafe { Entry::from_payload(payload) };
                take_over(
                    (table, position),
                    entry,
                    record,
                    (&memory.heap, value),
                    participant,
                    recorder,
                    changes,
                    (&is_deleted, &mut noted),
                )
            }
            Err(error) => Err(Stop::Raise(error)),
        };
        if !matches!(outcome, Ok(None)) {
            given_up(record);
            changes.withdraw(record, participant, recorder);
            let heap_and_value = (&memory.heap, value);
            unlink_again(
                (table, position),
                record,
                heap_and_value,
                (changes.emptied(), participant),
                recorder,
                begun,
            );
            let other = outcome?.expect("just checked");
            leave_keys(
                (table, 0..position),
                (&memory.heap, value),
                recorder,
                (changes, is_deleted),
                noted,
            )?;
            return Ok(Linked::Exists(position, other));
        }
    }
    if let Some(begun) = begun {
        note_added(
            table,
            record,
            (&memory.heap, value),
            recorder,
            changes,
            begun,
        );
    }
    Ok(Linked::All)
}

/// What [`link`] does in an index that has the key for `entry` already: takes the key over when the
/// attempt itself has vacated it, or gives the record that has it.
#[cold]
#[inline(never)]
#[expect(
    clippy::too_many_arguments,
    reason = "what a new record consists of, and its attempt"
)]
fn take_over(
    (table, position): (&Table, usize),
    entry: Entry,
    record: RecordRef,
    (heap, value): (&Heap, impl Fn(usize, &KeyField) -> Slot),
    participant: &Participant,
    recorder: &mut Recorder,
    changes: &mut IndexChanges,
    (is_deleted, noted): (
        impl Fn(RecordRef) -> bool,
        impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ),
) -> Result<Option<RecordRef>, Stop> {
    // A record of the attempt's own that was deleted comes back under its primary key; one that was
    // moved away from it leaves the key to the new record, as in other indexes.
    if position == 0 && !changes.moves(table, position, entry.record()) {
        return Ok(Some(entry.record()));
    }
    let key = table.indexes()[position].entry_key(heap, value)?;
    let changed = changes.change(
        table,
        position,
        record,
        (None, key),
        participant,
        recorder,
        is_deleted,
        noted,
    )?;
    Ok(match changed {
        Changed::Done => None,
        Changed::Taken(other) => Some(other),
    })
}

/// Takes a new record out of the indexes up to the one at `position` again.
#[cold]
#[inline(never)]
fn unlink_again(
    (table, position): (&Table, usize),
    record: RecordRef,
    (heap, value): (&Heap, impl Fn(usize, &KeyField) -> Slot),
    (emptied, participant): (&mut EmptiedNodes, &Participant),
    recorder: &mut Recorder,
    begun: Option<Moment>,
) {
    for (position, earlier) in table.indexes()[..=position].iter().enumerate() {
        // Without a key it came into no index.
        let Ok(key) = earlier.entry_key(heap, &value) else {
            continue;
        };
        let removed = emptied.withdraw((table, position), &key, Entry::of(record), participant);
        if let Some(begun) = begun
            && removed
        {
            for change in [EntryChange::Added, EntryChange::Removed] {
                let index = (table, position);
                note_entry(recorder, index, change, record, begun, heap, &value);
            }
        }
    }
}

/// Has the attempt rely on the unique keys in these indexes that a new record had for a moment.
#[cold]
#[inline(never)]
fn leave_keys(
    (table, positions): (&Table, std::ops::Range<usize>),
    (heap, value): (&Heap, impl Fn(usize, &KeyField) -> Slot),
    recorder: &mut Recorder,
    (changes, is_deleted): (&IndexChanges, impl Fn(RecordRef) -> bool),
    mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    for position in positions {
        let place = (table, position);
        let key = table.indexes()[position].entry_key(heap, &value)?;
        // A key that it had taken over still has the entry of the record that the attempt has
        // vacated it by.
        let is_own = |other| is_deleted(other) || changes.moves(table, position, other);
        leave_key(place, &key, recorder, is_own, &mut noted)?;
    }
    Ok(())
}

/// Records the entries of a new record.
#[cold]
#[inline(never)]
fn note_added(
    table: &Table,
    record: RecordRef,
    (heap, value): (&Heap, impl Fn(usize, &KeyField) -> Slot),
    recorder: &mut Recorder,
    changes: &IndexChanges,
    begun: Moment,
) {
    for position in 0..table.indexes().len() {
        // Where the key was another's, `changes` records the entry.
        if !changes.moves(table, position, record) {
            let (index, change) = ((table, position), EntryChange::Added);
            note_entry(recorder, index, change, record, begun, heap, &value);
        }
    }
}

/// The key that a row of these values has in the index at `position`, which is unique by its
/// columns.
///
/// # Errors
/// 54000 when the key is too long.
pub fn key_of(
    table: &Table,
    position: usize,
    values: &[Reg],
    memory: &Memory,
) -> Result<EntryKey, Error> {
    table.indexes()[position].entry_key(&memory.heap, |_, field| match field.column {
        Some(column) => memory.slots[values[column.index()].0 as usize],
        // Only keys with a NULL go on to the row number, and these are never in the way.
        None => Slot::from_i64(0),
    })
}

/// Takes a record out of all indexes. Its tid says dead already, so a transaction that still meets
/// it looks again; `heap` is only used for the time of the call.
pub fn unlink(
    table: &Table,
    record: RecordRef,
    heap: &mut Heap,
    participant: &Participant,
    recorder: &mut Recorder,
) {
    unlink_by(table, record, heap, recorder, |index, key| {
        let entry = Entry::of(record);
        table.indexes()[index].remove_key(key, entry, participant)
    });
}

/// [`unlink`] of a record that the attempt itself has put there, while the attempt goes on.
pub fn withdraw(
    table: &Table,
    record: RecordRef,
    heap: &mut Heap,
    (emptied, participant): (&mut EmptiedNodes, &Participant),
    recorder: &mut Recorder,
) {
    unlink_by(table, record, heap, recorder, |index, key| {
        let entry = Entry::of(record);
        emptied.withdraw((table, index), key, entry, participant)
    });
}

#[inline(always)]
fn unlink_by(
    table: &Table,
    record: RecordRef,
    heap: &mut Heap,
    recorder: &mut Recorder,
    mut remove: impl FnMut(usize, &EntryKey) -> bool,
) {
    let row = table.row(record);
    for (position, index) in table.indexes().iter().enumerate() {
        let mark = heap.mark();
        // An entry's key was short enough when it was made, and the row has not changed.
        if let Ok(key) = table.entry_key_of(index, row, heap) {
            let begun = recorder.now();
            let removed = remove(position, &key);
            if let Some(begun) = begun
                && removed
            {
                let change = EntryChange::Removed;
                recorder.entry((table, position), change, record, begun, &key);
            }
        }
        heap.release(mark);
    }
}

/// Records what happened to the entry of a record with these values.
#[cold]
#[inline(never)]
fn note_entry(
    recorder: &mut Recorder,
    (table, position): (&Table, usize),
    change: EntryChange,
    record: RecordRef,
    begun: Moment,
    heap: &Heap,
    value: impl Fn(usize, &KeyField) -> Slot,
) {
    // The entry was made, so its key can be.
    if let Ok(key) = table.indexes()[position].entry_key(heap, value) {
        recorder.entry((table, position), change, record, begun, &key);
    }
}

/// Says that a record is leaving the indexes: a transaction that meets it looks again. Its version
/// stays.
#[inline]
pub fn bury(record: RecordRef) {
    let version = Tid(record.tid().load(Ordering::Relaxed)).version();
    let dead = version | Tid::ABSENT | Tid::DEAD;
    // Release: a transaction that sees that it is dead sees what its transaction did before.
    record.tid().store(dead, Ordering::Release);
}

/// Gives a record back that is in no index, after its grace period, with all it points to.
pub fn retire(table: &Table, record: RecordRef, participant: &Participant) {
    let layout = table.layout();
    for blob in layout.blobs(layout.spilling(), table.row(record)) {
        retire_blob(blob, participant);
    }
    // SAFETY: the record is in no index, so only participants active now can reach it; the slab
    // lives as long as its table, which the engine gives to the epochs when it is dropped.
    unsafe { participant.retire(table.slab().retired(record.cell())) };
}

/// Gives a blob back after its grace period; no row points to it any more.
pub fn retire_blob(blob: NonNull<Blob>, participant: &Participant) {
    unsafe fn reclaim(_: *const (), pointer: NonNull<u8>, _: usize) {
        // SAFETY: retired below, and its grace period is over.
        unsafe { Blob::free(pointer.cast()) }
    }
    let retired = Retired {
        pointer: blob.cast(),
        reclaim,
        context: std::ptr::null(),
        // SAFETY: readers may still have the blob, so it is not freed.
        bytes: unsafe { Blob::bytes_allocated(blob) },
    };
    // SAFETY: no row points to the blob any more, and freeing it needs no context.
    unsafe { participant.retire(retired) };
}
