//! Claims by column group (`--claims columns`): a record has a second lock, for the columns that no
//! registered procedure writes ([`Table::unwritten`]), and a claim says which of the two it names.
//!
//! | what is done with a record | its own lock | the lock on unwritten columns |
//! |---|---|---|
//! | only unwritten columns are read, or only whether there is a row | | shared |
//! | other columns are read | shared | |
//! | other columns are written | exclusive | |
//! | it is deleted, or inserted, or its primary key or an unwritten column is written | exclusive | exclusive |
//!
//! So two claims conflict if they name the same lock and one of them is exclusive. Each writer of a
//! record names the record's own lock: of two writers one waits, whatever columns they write, as
//! columns share words, and all share the record's version. For the same reason a reader that has
//! the record's own lock needs no other.
//!
//! `unwritten` may be any set of columns: a transaction that writes one of them, such as a
//! statement, takes both locks. That no procedure does makes the option pay. The set changes only
//! while no transaction has used the table.
//!
//! # Names
//!
//! Lock managers know a lock by an address. That of a record's own lock is the record's. That of
//! the other lock has one bit more, which addresses of records do not have: it is the *name* of a
//! lock, compared and hashed, and followed nowhere.

use kiln_platform::memory;
use kiln_procedure::analysis::Observed;
use kiln_procedure::ir::Intent;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;

use crate::canary::Canary;

/// The bit of the name of a lock on unwritten columns. Cells are aligned to eight bytes.
const UNWRITTEN: u64 = 4;

/// Which locks of a record are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The record's own.
    #[default]
    Record,
    /// The one on its unwritten columns.
    Unwritten,
    /// Both, exclusively.
    Both,
}

impl Extent {
    /// What a claim names for a record with which `observed` is done.
    #[inline(always)]
    pub fn of(table: &Table, intent: Intent, observed: &Observed) -> Extent {
        match intent {
            Intent::Read if reads_unwritten(table, observed.at_once) => Extent::Unwritten,
            Intent::Write if observed.deletes || writes_unwritten(table, observed.written) => {
                Extent::Both
            }
            _ => Extent::Record,
        }
    }
}

/// Whether the lock on unwritten columns is enough to read `columns`.
#[inline(always)]
pub fn reads_unwritten(table: &Table, columns: ColumnSet) -> bool {
    let mut unwritten = table.unwritten();
    if Canary::WrittenColumnForgotten.sings() && !unwritten.is_empty() {
        let count = table.schema().columns.len() as u16;
        let mut written = (0..count).map(ColumnId);
        let forgotten = written.find(|column| !unwritten.contains(*column));
        unwritten = unwritten.union(forgotten.into_iter().collect());
    }
    !unwritten.is_empty() && columns.difference(unwritten).is_empty()
}

/// Whether writing `columns` takes the lock on unwritten columns: one of them is written, or the
/// primary key, by which readers found the row without looking at it.
#[inline(always)]
pub fn writes_unwritten(table: &Table, columns: ColumnSet) -> bool {
    let unwritten = table.unwritten();
    let is_there = !unwritten.is_empty();
    is_there && columns.intersects(unwritten.union(table.indexes()[0].columns()))
}

/// The name of the lock on a record's unwritten columns.
#[inline(always)]
pub fn unwritten_of(record: RecordRef) -> RecordRef {
    // SAFETY: no code follows the name of a lock.
    unsafe { RecordRef::from_address(record.address() | UNWRITTEN) }
}

/// Whether a name is that of a lock on unwritten columns.
#[inline(always)]
pub fn is_unwritten(name: RecordRef) -> bool {
    name.address() & UNWRITTEN != 0
}

/// The record whose lock has this name.
#[inline(always)]
pub fn record_of(name: RecordRef) -> RecordRef {
    // SAFETY: it is the address of the record by which the name was made.
    unsafe { RecordRef::from_address(name.address() & !UNWRITTEN) }
}

/// A hash of what a lock is known by, in the highest bits: another one for each lock of a record,
/// for managers in which locks with one hash are one lock.
#[inline(always)]
pub fn hash(name: u64) -> u64 {
    let is_unwritten = u64::from(name & UNWRITTEN != 0);
    memory::hash(name) ^ is_unwritten.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_records_and_hash_apart() {
        for address in (1 << 20..(1 << 20) + 4096).step_by(8) {
            // SAFETY: no code follows it here.
            let record = unsafe { RecordRef::from_address(address) };
            let name = unwritten_of(record);
            assert!(is_unwritten(name) && !is_unwritten(record));
            assert_eq!((record_of(name), record_of(record)), (record, record));
            assert_ne!(hash(name.address()) >> 50, hash(record.address()) >> 50);
            assert_eq!(hash(record.address()), memory::hash(record.address()));
        }
    }
}
