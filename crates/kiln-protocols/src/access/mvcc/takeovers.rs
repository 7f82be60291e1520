//! The keys that an attempt's new records take over at commit.

use kiln_platform::memory;
use kiln_storage::record::RecordRef;
use kiln_storage::table::{EntryKey, Table};

use crate::shared::positions::Positions;

/// A key that a new record takes over at commit.
pub(super) struct Takeover {
    pub table: *const Table,
    pub index: usize,
    pub key: EntryKey,
    /// Who has the entry until then: deleted, or being deleted by this attempt.
    pub previous: RecordRef,
    /// Who gets it.
    pub record: RecordRef,
}

impl Takeover {
    pub fn table<'a>(&self) -> &'a Table {
        // SAFETY: the engine keeps a table while a transaction that uses it runs.
        unsafe { &*self.table }
    }

    fn is_of(&self, table: &Table, index: usize, previous: RecordRef) -> bool {
        self.index == index && self.previous == previous && std::ptr::eq(self.table, table)
    }
}

fn hash(record: RecordRef) -> u64 {
    memory::hash(record.address())
}

/// All of an attempt, in the order in which they came.
#[derive(Default)]
pub(super) struct Takeovers {
    list: Vec<Takeover>,
    by_previous: Positions,
    by_record: Positions,
}

impl Takeovers {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Takeover> {
        self.list.iter()
    }

    /// Where the key of `previous` in the index is taken over.
    pub fn find(&self, table: &Table, index: usize, previous: RecordRef) -> Option<usize> {
        let mut candidates = (self.by_previous).candidates(self.list.len(), || hash(previous));
        candidates.find(|position| self.list[*position].is_of(table, index, previous))
    }

    /// Those by which `record` gets keys.
    pub fn of(&self, record: RecordRef) -> impl Iterator<Item = &Takeover> + Clone {
        let candidates = (self.by_record).candidates(self.list.len(), || hash(record));
        candidates
            .map(|position| &self.list[position])
            .filter(move |takeover| takeover.record == record)
    }

    /// Who gets the key.
    pub fn heir(&self, position: usize) -> RecordRef {
        self.list[position].record
    }

    /// Gives the key to another record.
    pub fn set_heir(&mut self, position: usize, record: RecordRef) {
        let takeover = &mut self.list[position];
        self.by_record.forget(hash(takeover.record), position);
        takeover.record = record;
        let (list, len) = (&self.list, self.list.len());
        self.by_record
            .note(position, len, |position| Some(hash(list[position].record)));
    }

    pub fn push(&mut self, takeover: Takeover) {
        self.list.push(takeover);
        let (list, len) = (&self.list, self.list.len());
        self.by_previous
            .append(len, |position| Some(hash(list[position].previous)));
        self.by_record
            .append(len, |position| Some(hash(list[position].record)));
    }

    /// Forgets all but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        while self.list.len() > len {
            let position = self.list.len() - 1;
            let takeover = &self.list[position];
            self.by_previous.forget(hash(takeover.previous), position);
            self.by_record.forget(hash(takeover.record), position);
            self.list.pop();
        }
    }

    pub fn clear(&mut self) {
        self.list.clear();
        self.by_previous.clear();
        self.by_record.clear();
    }
}
