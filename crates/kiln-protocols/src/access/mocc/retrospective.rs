//! The retrospective list (§3.4): what a transaction locks because its earlier attempts failed on
//! it, or meant to write it.

use kiln_storage::record::RecordRef;

use crate::shared::optimistic::record_lock::Mode;

/// The list of one transaction.
///
/// Between attempts the cells may become other records, or free. They stay mapped: a transaction
/// keeps its tables.
#[derive(Default)]
pub(super) struct Retrospective {
    /// Each record once, in the order of their addresses, with the mode in which it is locked.
    records: Vec<(RecordRef, Mode)>,
    /// What the present attempt has added, in any order.
    added: Vec<(RecordRef, Mode)>,
}

impl Retrospective {
    /// Beyond so many records an attempt adds none.
    const RECORDS_MAX: usize = 1 << 12;

    /// Adds a record for the next attempts.
    pub fn add(&mut self, record: RecordRef, mode: Mode) {
        if self.records.len() + self.added.len() < Self::RECORDS_MAX {
            self.added.push((record, mode));
        }
    }

    /// The next attempt begins.
    #[inline]
    pub fn begin(&mut self) {
        if !self.added.is_empty() {
            self.merge();
        }
    }

    #[cold]
    fn merge(&mut self) {
        self.records.append(&mut self.added);
        let order = |(record, mode): &(RecordRef, Mode)| (record.address(), *mode == Mode::Shared);
        self.records.sort_unstable_by_key(order);
        self.records.dedup_by_key(|(record, _)| record.address());
    }

    /// The mode in which the record is locked, if it is in the list.
    #[inline]
    pub fn mode(&self, record: RecordRef) -> Option<Mode> {
        if self.records.is_empty() {
            return None;
        }
        let address = record.address();
        let found = (self.records).binary_search_by_key(&address, |(other, _)| other.address());
        found.ok().map(|position| self.records[position].1)
    }

    /// The first record of the list between two addresses.
    pub fn next_between(&self, above: u64, below: u64) -> Option<(RecordRef, Mode)> {
        let position = (self.records).partition_point(|(record, _)| record.address() <= above);
        let next = self.records.get(position).copied();
        next.filter(|(record, _)| record.address() < below)
    }

    /// The transaction is over.
    #[inline]
    pub fn clear(&mut self) {
        self.records.clear();
        self.added.clear();
    }
}
