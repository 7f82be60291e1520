//! A set of records that an attempt has met, in the order in which they came.

use kiln_platform::memory;
use kiln_storage::record::RecordRef;

use super::positions::Positions;

/// Few records are searched one by one, many by a hash table.
#[derive(Default)]
pub struct RecordSet {
    records: Vec<RecordRef>,
    by_address: Positions,
}

fn hash(record: RecordRef) -> u64 {
    memory::hash(record.address())
}

impl RecordSet {
    /// Whether the record is in the set.
    #[inline]
    pub fn contains(&self, record: RecordRef) -> bool {
        let mut candidates = self
            .by_address
            .candidates(self.records.len(), || hash(record));
        candidates.any(|position| self.records[position] == record)
    }

    /// Adds a record that is not in the set.
    #[inline]
    pub fn push(&mut self, record: RecordRef) {
        self.records.push(record);
        let records = &self.records;
        self.by_address
            .append(records.len(), |position| Some(hash(records[position])));
    }

    /// The records.
    pub fn iter(&self) -> impl Iterator<Item = RecordRef> {
        self.records.iter().copied()
    }

    /// Removes all records.
    #[inline]
    pub fn clear(&mut self) {
        self.records.clear();
        self.by_address.clear();
    }
}
