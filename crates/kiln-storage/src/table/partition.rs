//! Partitions: which part of the data a record belongs to, for protocols that divide it among
//! workers.
//!
//! A record's part follows from the row that is in its cell: from a column that no row ever
//! changes, so that it stays the same as long as the cell has that row. Another row that gets the
//! cell later may be of another part. A planner that notes a record's part compares it again once
//! the record cannot go any more.
//!
//! An index entry whose key has that column says the part of its record as well, so that a plan
//! need not read the row.

use kiln_platform::memory;

use super::Table;
use crate::error::{Error, Result};
use crate::record::RecordRef;
use crate::schema::{ColumnId, Partitioning, TableSchema};
use crate::slot::Slot;
use crate::types::DataType;

/// The part of the data that a record belongs to, however many partitions there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(u32);

impl Part {
    /// Set for a table that every partition has: its number is in the other bits.
    const REPLICATED: u32 = 1 << 31;

    /// The part of rows whose partition column has this value.
    #[inline(always)]
    pub const fn of_value(value: i64) -> Part {
        Part(value as u32 & !Part::REPLICATED)
    }

    /// Whether it is a table that every partition has.
    #[inline(always)]
    pub const fn is_replicated(self) -> bool {
        self.0 & Part::REPLICATED != 0
    }

    /// Its partition, of so many; for a replicated table one that stands for all.
    #[inline(always)]
    pub const fn partition(self, partitions: usize) -> usize {
        // Neighbours are in different partitions: as many warehouses as partitions have one each.
        (self.0 & !Part::REPLICATED) as usize % partitions
    }

    /// What the lock of a record is known by: its address, or the table where that is replicated,
    /// which no address is equal to.
    #[inline(always)]
    pub fn lock_of(self, record: RecordRef) -> u64 {
        match self.is_replicated() {
            true => (self.0 as u64) << 1 | 1,
            false => record.address(),
        }
    }
}

impl Table {
    /// The part that a record belongs to. For a record that a transaction is still inserting, or
    /// whose cell is used again, any part.
    #[inline]
    pub fn part_of(&self, record: RecordRef) -> Part {
        match self.schema.partition_by {
            Some(Partitioning::Column(column)) => {
                let value = self.layout.column(column).load_integer(self.row(record));
                Part::of_value(value)
            }
            Some(Partitioning::Replicated) => Part(Part::REPLICATED | self.id.0),
            None => Part((memory::hash(record.address()) >> 33) as u32),
        }
    }

    /// The part that the record of an index entry belongs to, if the entry's key says it: it has
    /// the column that divides the rows, which no row changes. `value_of` gives the key's value by
    /// its position. The row need not be looked at.
    #[inline]
    pub fn part_of_key(&self, index: usize, value_of: impl FnOnce(usize) -> Slot) -> Option<Part> {
        let column = self.schema.partition_column()?;
        let columns = &self.indexes[index].definition().columns;
        let position = columns.iter().position(|&one| one == column)?;
        let value = value_of(position);
        (!value.is_null()).then(|| Part::of_value(value.as_i64()))
    }

    /// As [`Table::part_of_key`], for the keys of a range that begin with these values.
    #[inline]
    pub fn part_of_range(&self, index: usize, prefix: &[Slot]) -> Option<Part> {
        self.part_of_key(index, |position| {
            prefix.get(position).copied().unwrap_or(Slot::NULL)
        })
    }

    /// The part that a row with these values will belong to, if they say it.
    #[inline]
    pub fn part_of_row(&self, value_of: impl FnOnce(ColumnId) -> Slot) -> Option<Part> {
        let value = value_of(self.schema.partition_column()?);
        (!value.is_null()).then(|| Part::of_value(value.as_i64()))
    }

    /// A successor whose rows are divided over partitions in another way.
    ///
    /// # Errors
    /// 0A000 when the column's type is not that of a whole number.
    pub fn with_partitioning(&self, partitioning: Option<Partitioning>) -> Result<Table> {
        let mut table = self.successor(self.indexes.iter().map(super::Index::share).collect());
        table.schema.partition_by = partitioning;
        check(&table.schema)?;
        Ok(table)
    }
}

/// Whether rows can be divided as a schema declares.
///
/// # Errors
/// 0A000 when the column's type is not that of a whole number.
pub(super) fn check(schema: &TableSchema) -> Result<()> {
    let Some(column) = schema.partition_column() else {
        return Ok(());
    };
    match &schema.columns[column.index()].data_type {
        DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Date
        | DataType::Timestamp(_)
        | DataType::TimestampTz(_)
        | DataType::Time(_) => Ok(()),
        other => Err(Error::unsupported(format!(
            "a partition key of type {other} is not supported"
        ))
        .with_hint("Use an integer, a date or a timestamp.")),
    }
}
