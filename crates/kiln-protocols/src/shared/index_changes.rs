//! Updates of indexed columns.
//!
//! The record gets a *moving* entry under its new key at once, so that no other transaction can
//! take the key; the entry under the old key stays. Others that meet the moving entry fail, so they
//! see the record in one place only. At commit, while the record is still held, the old entry goes
//! and the moving one becomes an ordinary one; on roll-back the moving one goes.
//!
//! A key that the attempt itself has vacated (by moving or deleting the record that had it) is
//! *taken over*: nothing changes in the index until the commit, when the attempt holds the
//! previous record too; until then the attempt resolves the entry for itself. Taking the entry at
//! once would hide it from another attempt that moves or deletes the previous record and
//! commits first.
//!
//! A record that the attempt has deleted keeps its claim on a key, in case it is inserted again,
//! until another record wants the key: then that one gets the claim, be it a moving entry or a key
//! that was taken over.

use kiln_history::EntryChange;
use kiln_platform::memory;
use kiln_procedure::{AbortCause, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::{InsertEffect, Insertion, NodeVersion};
use kiln_storage::record::RecordRef;
use kiln_storage::table::{Entry, EntryKey, Table};

use super::emptied::EmptiedNodes;
use super::positions::Positions;
use super::recorder::Recorder;
use crate::canary::Canary;

/// What an attempt does to the nodes of an index, of which it keeps guards.
pub enum Touched<'a> {
    /// An entry of its own came in.
    Inserted(&'a InsertEffect),
    /// An entry of its own under a unique key of the index at this position went again. That there
    /// was room for the entry said that no other transaction had the key; the entry held the key
    /// while it was there, and this guard does from now on.
    Withdrawn(usize, NodeVersion),
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

    fn hash_of_record(&self) -> u64 {
        hash_of_record(self.record)
    }

    /// While it holds its key, it is found by it.
    fn hash_of_key(&self) -> Option<u64> {
        self.holds.then(|| hash_of_key(self.index, &self.new))
    }

    /// While it holds its key, it is found by the record that has the key until the commit.
    fn hash_of_previous(&self) -> Option<u64> {
        self.taken_over_from
            .filter(|_| self.holds)
            .map(hash_of_record)
    }

    fn has_moving_entry(&self) -> bool {
        self.holds && self.taken_over_from.is_none()
    }

    /// Takes the moving entry back, while the attempt goes on.
    fn leave(
        &self,
        emptied: &mut EmptiedNodes,
        participant: &Participant,
        recorder: &mut Recorder,
        noted: impl FnMut(Touched<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if !self.has_moving_entry() {
            return Ok(());
        }
        self.withdraw(emptied, participant, recorder);
        let (table, index) = self.place();
        leave_key((table, index), &self.new, recorder, |_| false, noted)
    }

    /// Takes the moving entry back.
    fn withdraw(
        &self,
        emptied: &mut EmptiedNodes,
        participant: &Participant,
        recorder: &mut Recorder,
    ) {
        if self.has_moving_entry() {
            let begun = recorder.now();
            let entry = Entry::moving(self.record);
            emptied.withdraw(self.place(), &self.new, entry, participant);
            if let Some(begun) = begun {
                let change = EntryChange::Removed;
                recorder.entry(self.place(), change, self.record, begun, &self.new);
            }
        }
    }
}

// SAFETY: the pointer is to a table that outlives the attempt, on whichever thread that runs.
unsafe impl Send for IndexChange {}

fn hash_of_record(record: RecordRef) -> u64 {
    memory::hash(record.address())
}

fn hash_of_key(index: usize, key: &EntryKey) -> u64 {
    key.hash().wrapping_add(memory::hash((index as u64) << 4))
}

/// Has the attempt rely on a unique key that it has just given up: no other transaction had it
/// until now. `is_own` says of a record whether the key is still the attempt's by it.
///
/// # Errors
/// [`AbortCause::KeyInTransit`] when another transaction has the key already, and what `noted`
/// returns.
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
                false => noted(Touched::Withdrawn(index, node)),
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
pub struct IndexChanges {
    changes: Vec<IndexChange>,
    by_record: Positions,
    by_key: Positions,
    by_previous: Positions,
    emptied: EmptiedNodes,
}

impl IndexChanges {
    /// The nodes that the attempt has emptied.
    pub fn emptied(&mut self) -> &mut EmptiedNodes {
        &mut self.emptied
    }

    /// The attempt has ended: takes the nodes out of the indexes that it has emptied.
    #[inline]
    pub fn end(&mut self, participant: &Participant) {
        self.emptied.unlink(participant);
    }

    /// Whether nothing was moved.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
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
        Ok(match self.successor(table, index, record) {
            Some(change) => Some(change.record),
            None if self.position(table, index, record).is_some() => None,
            None => Some(record),
        })
    }

    /// The change that takes the key of `record` over.
    fn successor(&self, table: &Table, index: usize, record: RecordRef) -> Option<&IndexChange> {
        let (len, hash) = (self.changes.len(), || hash_of_record(record));
        let candidates = self.by_previous.candidates(len, hash);
        let mut changes = candidates.map(|position| &self.changes[position]);
        changes.find(|change| {
            change.holds && change.is_of(table, index) && change.taken_over_from == Some(record)
        })
    }

    /// The positions of the changes of `record`, in any index.
    fn positions(&self, record: RecordRef) -> impl Iterator<Item = usize> {
        let (len, hash) = (self.changes.len(), || hash_of_record(record));
        let candidates = self.by_record.candidates(len, hash);
        candidates.filter(move |position| self.changes[*position].record == record)
    }

    fn position(&self, table: &Table, index: usize, record: RecordRef) -> Option<usize> {
        self.positions(record)
            .find(|position| self.changes[*position].is_of(table, index))
    }

    /// The change by which the attempt gives `key` to a record.
    fn holder(&self, table: &Table, index: usize, key: &EntryKey) -> Option<usize> {
        let (len, hash) = (self.changes.len(), || hash_of_key(index, key));
        self.by_key.candidates(len, hash).find(|position| {
            let change = &self.changes[*position];
            change.holds && change.is_of(table, index) && change.new == *key
        })
    }

    fn push(&mut self, change: IndexChange) {
        self.changes.push(change);
        let (changes, len) = (&self.changes, self.changes.len());
        self.by_record
            .append(len, |position| Some(changes[position].hash_of_record()));
        self.by_key
            .append(len, |position| changes[position].hash_of_key());
        self.by_previous
            .append(len, |position| changes[position].hash_of_previous());
    }

    /// Ends the claim of a change on its key.
    fn lose_key(&mut self, position: usize) {
        let change = &mut self.changes[position];
        if let Some(hash) = change.hash_of_key() {
            self.by_key.forget(hash, position);
        }
        if let Some(hash) = change.hash_of_previous() {
            self.by_previous.forget(hash, position);
        }
        change.holds = false;
    }

    /// Takes a change out of the list; the last one gets its position.
    fn remove(&mut self, position: usize) -> IndexChange {
        let holds = self.changes[position].holds;
        self.lose_key(position);
        let mut removed = self.changes.swap_remove(position);
        removed.holds = holds;
        self.by_record.forget(removed.hash_of_record(), position);
        let last = self.changes.len();
        if let Some(moved) = self.changes.get(position) {
            self.by_record
                .relocate(moved.hash_of_record(), last, position);
            if let Some(hash) = moved.hash_of_key() {
                self.by_key.relocate(hash, last, position);
            }
            if let Some(hash) = moved.hash_of_previous() {
                self.by_previous.relocate(hash, last, position);
            }
        }
        removed
    }

    /// Calls `each` for all changes, which are no longer in the list.
    fn take_all(&mut self, mut each: impl FnMut(IndexChange, &mut EmptiedNodes)) {
        self.by_record.clear();
        self.by_key.clear();
        self.by_previous.clear();
        for change in self.changes.drain(..) {
            each(change, &mut self.emptied);
        }
    }

    /// Whether the attempt moves `record` in the index at `index`.
    pub fn moves(&self, table: &Table, index: usize, record: RecordRef) -> bool {
        self.position(table, index, record).is_some()
    }

    /// The key that `record` had in its table's first index, if the attempt has moved it to another
    /// one.
    pub fn former_first_key(&self, record: RecordRef) -> Option<&EntryKey> {
        let mut changes = self.positions(record).map(|at| &self.changes[at]);
        changes.find(|change| change.index == 0)?.old.as_ref()
    }

    /// The tables in whose first indexes records get other keys.
    pub fn first_tables(&self) -> impl Iterator<Item = &Table> {
        let changes = self.changes.iter().filter(|change| change.index == 0);
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
        let mut inherited = None;
        if let Some(position) = self.holder(table, index, &new) {
            let holder = &self.changes[position];
            if holder.record == record {
                return Ok(Changed::Done);
            }
            if !is_deleted(holder.record) {
                return Ok(Changed::Taken(holder.record));
            }
            inherited = Some((holder.record, holder.taken_over_from));
            self.lose_key(position);
        }
        let earlier = self.position(table, index, record);
        let old = match earlier {
            Some(position) => self.changes[position].old.clone(),
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
            self.push(IndexChange {
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
            let earlier = self.remove(position);
            earlier.leave(&mut self.emptied, participant, recorder, noted)?;
        }
        Ok(Changed::Done)
    }

    /// Makes the moves final. The attempt is certain to commit and still holds its records, so that
    /// no other transaction moves one of them meanwhile.
    pub fn commit(&mut self, participant: &Participant, recorder: &mut Recorder) {
        use EntryChange::{Added, Removed};
        for change in &self.changes {
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
        for change in &self.changes {
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
        self.take_all(|change, emptied| {
            if change.gone {
                change.withdraw(emptied, participant, recorder);
            } else if change.has_moving_entry() {
                let (moving, ordinary) = (Entry::moving(change.record), Entry::of(change.record));
                change.index().replace_key(&change.new, moving, ordinary);
            }
        });
    }

    /// Whether the attempt still finds `record` under `key`, also when another transaction moves it
    /// meanwhile: asked after the record was met, whose version or lock then holds it there.
    pub fn is_found(&self, table: &Table, index: usize, key: &EntryKey, record: RecordRef) -> bool {
        let map = &table.indexes()[index];
        if !map.moves() {
            return true;
        }
        let entry = map.find_key(key);
        let found = entry.map(|entry| self.resolve(table, index, entry));
        matches!(found, Some(Ok(Some(found))) if found == record)
    }

    /// Takes the moves back. Each has another entry, so that their order does not matter.
    pub fn roll_back(&mut self, participant: &Participant, recorder: &mut Recorder) {
        self.take_all(|change, emptied| change.withdraw(emptied, participant, recorder));
    }

    /// Takes the moves of a record back that did not become one.
    pub fn withdraw(
        &mut self,
        record: RecordRef,
        participant: &Participant,
        recorder: &mut Recorder,
    ) {
        let next = |changes: &IndexChanges| changes.positions(record).next();
        while let Some(position) = next(self) {
            let change = self.remove(position);
            change.withdraw(&mut self.emptied, participant, recorder);
        }
    }

    /// Notes before [`IndexChanges::commit`] that a record is being deleted for good: it loses its
    /// old and its new entries.
    pub fn forget(&mut self, record: RecordRef) {
        let (len, hash) = (self.changes.len(), || hash_of_record(record));
        for position in self.by_record.candidates(len, hash) {
            let change = &mut self.changes[position];
            change.gone |= change.record == record;
        }
    }
}
