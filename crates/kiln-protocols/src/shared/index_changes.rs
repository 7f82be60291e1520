//! Updates of indexed columns: a record gets entries under its new keys at once, and loses those
//! under the old keys when the transaction commits. In between it can be found under both, so
//! whoever looks through a secondary index checks the columns themselves.

use kiln_procedure::{AbortCause, Stop};
use kiln_storage::epoch::Participant;
use kiln_storage::index::{InsertEffect, Insertion};
use kiln_storage::record::RecordRef;
use kiln_storage::table::{EntryKey, Table};

/// One moved entry.
struct IndexChange {
    table: *const Table,
    index: usize,
    record: RecordRef,
    old: EntryKey,
    new: EntryKey,
    /// The old key's entry goes at commit.
    removes_old: bool,
    /// The new key's entry goes on roll-back.
    removes_new: bool,
}

// SAFETY: the pointer is to a table that outlives the attempt, whoever runs it.
unsafe impl Send for IndexChange {}

/// The entries that one attempt has moved.
#[derive(Default)]
pub struct IndexChanges(Vec<IndexChange>);

impl IndexChanges {
    /// Whether nothing was moved.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves the entry of `record` in the index at `index` from `old` to `new`.
    ///
    /// Returns the record in the way when the index is unique and has `new` for another one.
    ///
    /// # Errors
    /// What `noted` returns.
    pub fn change(
        &mut self,
        table: &Table,
        index: usize,
        record: RecordRef,
        (old, new): (EntryKey, EntryKey),
        participant: &Participant,
        mut noted: impl FnMut(&InsertEffect) -> Result<(), Stop>,
    ) -> Result<Option<RecordRef>, Stop> {
        let mut removes_new = true;
        match table.indexes()[index].insert_key(&new, record, participant) {
            Insertion::Inserted(effect) => {
                if let Err(stop) = noted(&effect) {
                    table.indexes()[index].remove_key(&new, record, participant);
                    return Err(stop);
                }
            }
            Insertion::Exists(address) if address == record.address() => {
                let mut came_back = false;
                for earlier in &mut self.0 {
                    if earlier.record == record && earlier.index == index && earlier.old == new {
                        earlier.removes_old = false;
                        came_back = true;
                    }
                }
                // Either the record comes back to a key that it had in this attempt, and that
                // entry stays at commit; or another transaction is moving it, one of the two must
                // fail, and the entry is the other's to keep or to remove.
                if !came_back {
                    return Err(AbortCause::KeyInTransit.into());
                }
                removes_new = false;
            }
            // SAFETY: indexes hold addresses of their own table's records.
            Insertion::Exists(address) => {
                return Ok(Some(unsafe { RecordRef::from_address(address) }));
            }
        }
        let removes_old = true;
        self.0.push(IndexChange { table, index, record, old, new, removes_old, removes_new });
        Ok(None)
    }

    /// Removes what the updates leave behind. The attempt is certain to commit and still holds its
    /// records, so that nobody can move one back meanwhile.
    pub fn commit(&mut self, participant: &Participant) {
        for change in self.0.drain(..).filter(|change| change.removes_old) {
            // SAFETY: tables outlive the transactions that use them.
            let index = unsafe { &(&(*change.table).indexes())[change.index] };
            index.remove_key(&change.old, change.record, participant);
        }
    }

    /// Removes what the undone updates had added.
    pub fn roll_back(&mut self, participant: &Participant) {
        for change in self.0.drain(..).filter(|change| change.removes_new) {
            // SAFETY: tables outlive the transactions that use them.
            let index = unsafe { &(&(*change.table).indexes())[change.index] };
            index.remove_key(&change.new, change.record, participant);
        }
    }

    /// Removes every entry that the changes of `record` made or left, as it is being deleted; its
    /// row gives the one remaining key.
    pub fn remove_all_of(&mut self, record: RecordRef, participant: &Participant) {
        self.0.retain(|change| {
            if change.record != record {
                return true;
            }
            // SAFETY: tables outlive the transactions that use them.
            let index = unsafe { &(&(*change.table).indexes())[change.index] };
            index.remove_key(&change.old, record, participant);
            index.remove_key(&change.new, record, participant);
            false
        });
    }
}
