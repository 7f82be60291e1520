//! Index nodes that an attempt has emptied and goes on to rely on.
//!
//! An attempt that gives a key up again guards its gap. A node that loses its last entry leaves the
//! index, and guards of it fail. So nodes that an attempt empties by entries of its own stay until
//! it ends: else it would meet its own removals as another's insertions, and abort each time.

use kiln_storage::epoch::Participant;
use kiln_storage::index::Withdrawal;
use kiln_storage::table::{Entry, EntryKey, Table};

/// The nodes, each by the index and by a key of its range.
#[derive(Default)]
pub struct EmptiedNodes(Vec<(*const Table, usize, EntryKey)>);

// SAFETY: the pointers are to tables that outlive the attempt on every worker that runs it.
unsafe impl Send for EmptiedNodes {}

impl EmptiedNodes {
    /// Takes out an entry of the attempt's own. Returns whether it was there.
    pub fn withdraw(
        &mut self,
        (table, index): (&Table, usize),
        key: &EntryKey,
        entry: Entry,
        participant: &Participant,
    ) -> bool {
        match table.indexes()[index].withdraw_key(key, entry, participant) {
            Withdrawal::Missing => false,
            Withdrawal::Done => true,
            Withdrawal::Emptied => {
                self.0.push((table, index, key.clone()));
                true
            }
        }
    }

    /// Takes the nodes out of their indexes that are empty still. The attempt has ended.
    #[inline]
    pub fn unlink(&mut self, participant: &Participant) {
        if !self.0.is_empty() {
            self.unlink_all(participant);
        }
    }

    #[cold]
    fn unlink_all(&mut self, participant: &Participant) {
        for (table, index, key) in self.0.drain(..) {
            // SAFETY: the engine keeps a table while a transaction that uses it runs.
            let index = unsafe { &(*table).indexes()[index] };
            index.unlink_empty_node(&key, participant);
        }
    }
}
