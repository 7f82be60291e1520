//! Updates of indexed columns.
//!
//! The record gets a *moving* entry under its new key at once, so that nobody else can take the
//! key; the entry under the old key stays. Others that meet the moving entry fail, so they see the
//! record in one place only. At commit, while the record is still held, the old entry goes and
//! the moving one becomes an ordinary one; on roll-back the moving one goes.
//!
//! A key that the attempt itself has vacated (by moving or deleting the record that had it) is
//! *taken over*: nothing changes in the index until the commit, when the attempt holds the
//! previous record too; until then the attempt resolves the entry for itself. Taking the entry at
//! once would hide it from another attempt that moves or deletes the previous record and
//! commits first.
//!
//! A record that the attempt has deleted keeps its claim on a key, in case it is inserted again, until
//! another record wants the key: then that one gets the claim, be it a moving entry or a key that
//! was taken over.

use kiln_history::EntryChange;
use kiln_procedure::{AbortCause, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::{InsertEffect, Insertion, NodeVersion};
use kiln_storage::record::RecordRef;
use kiln_storage::table::{Entry, EntryKey, Table};

use super::recorder::Recorder;
use crate::canary::Canary;

/// What an attempt does to the nodes of an index, of which it keeps guards.
pub enum Touched<'a> {
    /// An entry of its own came in.
    Inserted(&'a InsertEffect),
    /// An entry of its own under a unique key of the index at this position went again. That there was room for
    /// it said that nobody else had the key, which the entry held while it was there and this guard does from now on.
    Left(usize, NodeVersion),
}

/// One moved entry. For each record and index there is at most one.
struct IndexChange {
    table: *const Table,
    index: usize,
    record: RecordRef,
    /// The key under which the record was found before; `None` for a record that is new here.
    old: Option<EntryKey>,
    /// The key that it gets.
    new: EntryKey,
    /// The record that has the new key until the commit; without one, the record has a moving
    /// entry under it.
    taken_over_from: Option<RecordRef>,
    /// Whether the claim on the new key is still this record's.
    holds: bool,
    /// The record is being deleted for good.
    gone: bool,
}

impl IndexChange {
    fn index<'a>(&self) -> &'a kiln_storage::table::Index {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &(*self.table).indexes()[self.index] }
    }

    /// Its place, for histories.
    fn place<'a>(&self) -> (&'a Table, usize) {
        // SAFETY: as in `index`.
        (unsafe { &*self.table }, self.index)
    }

    fn is_of(&self, table: &Table, index: usize) -> bool {
        self.index == index && std::ptr::eq(self.table, table)
    }

    fn has_moving_entry(&self) -> bool {
        self.holds && self.taken_over_from.is_none()
    }

    /// Takes the moving entry back, while the attempt goes on.
    fn leave(
        &self,
        participant: &Participant,
        recorder: &mut Recorder,
        noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if !self.has_moving_entry() {
            return Ok(());
        }
        self.withdraw(participant, recorder);
        let (table, index) = self.place();
        leave_key((table, index), &self.new, recorder, |_| false, noted)
    }

    /// Takes the moving entry back.
    fn withdraw(&self, participant: &Participant, recorder: &mut Recorder) {
        if self.has_moving_entry() {
            let begun = recorder.now();
            self.index()
                .remove_key(&self.new, Entry::moving(self.record), participant);
            if let Some(begun) = begun {
                let change = EntryChange::Removed;
                recorder.entry(self.place(), change, self.record, begun, &self.new);
            }
        }
    }
}

// SAFETY: the pointer is to a table that outlives the attempt, whoever runs it.
unsafe impl Send for IndexChange {}

/// Has the attempt rely on a unique key that it has just given up: nobody else had it until now. `is_own` says of a
/// record whether the key is still the attempt's by it.
///
/// # Errors
/// [`AbortCause::KeyInTransit`] when somebody else has it already, and what `noted` returns.
pub fn leave_key(
    (table, index): (&Table, usize),
    key: &EntryKey,
    recorder: &mut Recorder,
    is_own: impl Fn(RecordRef) -> bool,
    mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let map = &table.indexes()[index];
    if !map.supports_lookup() {
        return Ok(());
    }
    let begun = recorder.now();
    match map.guard_key(key) {
        Ok(node) => {
            if let Some(begun) = begun {
                recorder.missing((table, index), begun, key);
            }
            match Canary::LeftKeyForgotten.sings() {
                true => Ok(()),
                false => noted(Touched::Left(index, node)),
            }
        }
        Err(entry) if is_own(entry.record()) => Ok(()),
        Err(_) => Err(AbortCause::KeyInTransit.into()),
    }
}

/// What came of a change.
pub enum Changed {
    /// The record has the new key.
    Done,
    /// The index is unique and has the key for this record.
    Taken(RecordRef),
}

/// The entries that one attempt has moved.
#[derive(Default)]
pub struct IndexChanges(Vec<IndexChange>);

impl IndexChanges {
    /// Whether nothing was moved.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The record that the attempt itself finds at an entry; `None` when it has moved it away.
    ///
    /// # Errors
    /// [`AbortCause::KeyInTransit`] when another attempt is moving a record there.
    pub fn resolve(
        &self,
        table: &Table,
        index: usize,
        entry: Entry,
    ) -> Result<Option<RecordRef>, AbortCause> {
        let record = entry.record();
        if entry.is_moving() {
            let own = self.position(table, index, record).is_some();
            return if own || Canary::MovingEntryFollowed.sings() {
                Ok(Some(record))
            } else {
                Err(AbortCause::KeyInTransit)
            };
        }
        let successor = self.0.iter().find(|change| {
            change.holds && change.is_of(table, index) && change.taken_over_from == Some(record)
        });
        Ok(match successor {
            Some(change) => Some(change.record),
            None if self.position(table, index, record).is_some() => None,
            None => Some(record),
        })
    }

    fn position(&self, table: &Table, index: usize, record: RecordRef) -> Option<usize> {
        self.0
            .iter()
            .position(|change| change.record == record && change.is_of(table, index))
    }

    /// Whether the attempt moves `record` in the index at `index`.
    pub fn moves(&self, table: &Table, index: usize, record: RecordRef) -> bool {
        self.position(table, index, record).is_some()
    }

    /// The key that `record` had in its table's first index, if the attempt has moved it to another one.
    pub fn former_first_key(&self, record: RecordRef) -> Option<&EntryKey> {
        let mut changes = self.0.iter();
        let change = changes.find(|change| change.index == 0 && change.record == record)?;
        change.old.as_ref()
    }

    /// The tables in whose first indexes records get other keys.
    pub fn first_tables(&self) -> impl Iterator<Item = &Table> {
        let changes = self.0.iter().filter(|change| change.index == 0);
        changes.map(|change| change.place().0)
    }

    /// Moves `record` in the index at `index` from `old` (`None` when it is new) to `new`; the two
    /// are the same when a deleted record comes back with the key that it had. `is_deleted` says
    /// of another record whether the attempt has deleted it.
    ///
    /// # Errors
    /// What `noted` returns, and [`AbortCause::KeyInTransit`] when another attempt is moving a
    /// record to the same key.
    #[expect(
        clippy::too_many_arguments,
        reason = "the move, and the attempt that it is part of"
    )]
    pub fn change(
        &mut self,
        table: &Table,
        index: usize,
        record: RecordRef,
        (old, new): (Option<EntryKey>, EntryKey),
        participant: &Participant,
        recorder: &mut Recorder,
        is_deleted: impl Fn(RecordRef) -> bool,
        mut noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<Changed, Stop> {
        let rival = self.0.iter_mut().find(|change| {
            change.holds
                && change.is_of(table, index)
                && change.new == new
                && change.record != record
        });
        let mut inherited = None;
        if let Some(rival) = rival {
            if !is_deleted(rival.record) {
                return Ok(Changed::Taken(rival.record));
            }
            rival.holds = false;
            inherited = Some((rival.record, rival.taken_over_from));
        }
        let earlier = self.position(table, index, record);
        if earlier.is_some_and(|position| self.0[position].holds && self.0[position].new == new) {
            return Ok(Changed::Done);
        }
        let old = match earlier {
            Some(position) => self.0[position].old.clone(),
            None => old,
        };
        // Back at the key that it had, the record needs nothing but its old entry.
        if old.as_ref() != Some(&new) {
            let map = &table.indexes()[index];
            if !Canary::FoundWhereItWas.sings() {
                map.set_moves();
            }
            let begun = recorder.now();
            let mut note = |change, record| {
                if let Some(begun) = begun {
                    recorder.entry((table, index), change, record, begun, &new);
                }
            };
            let mut taken_over_from = None;
            if let Some((rival, previous)) = inherited {
                taken_over_from = previous;
                if previous.is_none() {
                    map.replace_key(&new, Entry::moving(rival), Entry::moving(record));
                    note(EntryChange::Removed, rival);
                    note(EntryChange::Added, record);
                }
            } else {
                match map.insert_key(&new, Entry::moving(record), participant) {
                    Insertion::Inserted(effect) => {
                        // Others fail at it, but the attempt itself meets it from now on.
                        note(EntryChange::Added, record);
                        if let Err(stop) = noted(Touched::Inserted(&effect)) {
                            map.remove_key(&new, Entry::moving(record), participant);
                            note(EntryChange::Removed, record);
                            return Err(stop);
                        }
                    }
                    Insertion::Exists(payload) => {
                        // SAFETY: the payload is of an index of a living table.
                        let entry = unsafe { Entry::from_payload(payload) };
                        let other = entry.record();
                        if entry.is_moving() || other == record {
                            return Err(AbortCause::KeyInTransit.into());
                        }
                        if self.position(table, index, other).is_none() && !is_deleted(other) {
                            return Ok(Changed::Taken(other));
                        }
                        taken_over_from = Some(other);
                    }
                }
            }
            self.0.push(IndexChange {
                table,
                index,
                record,
                old,
                new,
                taken_over_from,
                holds: true,
                gone: false,
            });
        }
        if let Some(position) = earlier {
            let earlier = self.0.remove(position);
            earlier.leave(participant, recorder, noted)?;
        }
        Ok(Changed::Done)
    }

    /// Makes the moves final. The attempt is certain to commit and still holds its records, so
    /// that nobody moves one of them meanwhile.
    pub fn commit(&mut self, participant: &Participant, recorder: &mut Recorder) {
        use EntryChange::{Added, Removed};
        for change in &self.0 {
            if let Some(previous) = change.taken_over_from
                && change.holds
                && !change.gone
            {
                let begun = recorder.now();
                let (from, to) = (Entry::of(previous), Entry::of(change.record));
                change.index().replace_moved_key(&change.new, from, to);
                if let Some(begun) = begun {
                    recorder.entry(change.place(), Removed, previous, begun, &change.new);
                    recorder.entry(change.place(), Added, change.record, begun, &change.new);
                }
            }
        }
        for change in &self.0 {
            if let Some(old) = &change.old {
                let begun = recorder.now();
                // When the old key was taken over, its entry is no longer this record's.
                let entry = Entry::of(change.record);
                let removed = match Canary::FoundWhereItWas.sings() {
                    true => change.index().remove_key(old, entry, participant),
                    false => change.index().remove_moved_key(old, entry, participant),
                };
                if let Some(begun) = begun
                    && removed
                {
                    recorder.entry(change.place(), Removed, change.record, begun, old);
                }
            }
        }
        for change in self.0.drain(..) {
            if change.gone {
                change.withdraw(participant, recorder);
            } else if change.has_moving_entry() {
                let (moving, ordinary) = (Entry::moving(change.record), Entry::of(change.record));
                change.index().replace_key(&change.new, moving, ordinary);
            }
        }
    }

    /// Whether the attempt still finds `record` under `key`, whoever moves it meanwhile: asked after the
    /// record was met, whose version or lock then holds it there.
    pub fn is_found(&self, table: &Table, index: usize, key: &EntryKey, record: RecordRef) -> bool {
        let map = &table.indexes()[index];
        if !map.moves() {
            return true;
        }
        let entry = map.find_key(key);
        let found = entry.map(|entry| self.resolve(table, index, entry));
        matches!(found, Some(Ok(Some(found))) if found == record)
    }

    /// Takes the moves back, the last one first.
    pub fn roll_back(&mut self, participant: &Participant, recorder: &mut Recorder) {
        while let Some(change) = self.0.pop() {
            change.withdraw(participant, recorder);
        }
    }

    /// Takes the moves of a record back that did not become one.
    pub fn withdraw(
        &mut self,
        record: RecordRef,
        participant: &Participant,
        recorder: &mut Recorder,
    ) {
        while let Some(position) = self.0.iter().rposition(|change| change.record == record) {
            self.0.remove(position).withdraw(participant, recorder);
        }
    }

    /// Notes before [`IndexChanges::commit`] that a record is being deleted for good: it loses its
    /// old and its new entries.
    pub fn forget(&mut self, record: RecordRef) {
        for change in self.0.iter_mut().filter(|change| change.record == record) {
            change.gone = true;
        }
    }
}
