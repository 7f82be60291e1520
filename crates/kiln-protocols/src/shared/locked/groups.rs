//! Locks by [column group](crate::shared::planning::groups): whether a record has a second lock,
//! and which record a lock is of.

use kiln_storage::record::RecordRef;
use kiln_storage::schema::Partitioning;
use kiln_storage::table::Table;

use super::Locked;
use crate::shared::locks::{Locks, Naming};
use crate::shared::planning::groups;

impl<L: Locks> Locked<L> {
    /// Whether records have locks by column group.
    #[inline(always)]
    pub fn by_group(&self) -> bool {
        L::GROUPS && self.manager.by_group()
    }

    /// Whether the records of a table have a lock on unwritten columns. A table that every
    /// partition has is locked as a whole.
    #[inline(always)]
    pub fn has_unwritten(&self, table: &Table) -> bool {
        let is_replicated = || table.schema().partition_by == Some(Partitioning::Replicated);
        self.by_group() && !table.unwritten().is_empty() && !(L::Naming::BY_PART && is_replicated())
    }
}

/// The record whose lock has this name.
#[inline(always)]
pub fn record_of<L: Locks>(name: RecordRef) -> RecordRef {
    match L::GROUPS {
        true => groups::record_of(name),
        false => name,
    }
}
