//! How much memory the tables take.

use kiln_storage::table::Table;

/// The memory of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableMemory {
    /// The table's name.
    pub table: String,
    /// Its rows.
    pub rows: usize,
    /// The bytes that the values of all rows take, as if each were stored alone.
    pub raw_bytes: usize,
    /// The bytes of the records in use, headers and padding included.
    pub record_bytes: usize,
    /// The bytes taken from the system for records, used or not; long values kept outside of
    /// their rows are not among them.
    pub reserved_bytes: usize,
    /// Its indexes.
    pub indexes: Vec<IndexMemory>,
}

/// The memory of one index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexMemory {
    /// The index's name.
    pub index: String,
    /// Its entries.
    pub entries: usize,
    /// The bytes it takes.
    pub bytes: usize,
}

impl TableMemory {
    /// The memory of a table that nobody changes meanwhile.
    pub(crate) fn of(table: &Table) -> TableMemory {
        let (raw_bytes, rows) = table.raw_bytes();
        let slab = table.slab();
        let indexes = table.indexes().iter().map(|index| IndexMemory {
            index: index.definition().name.clone(),
            entries: index.len(),
            bytes: index.bytes(),
        });
        TableMemory {
            table: table.schema().name.clone(),
            rows,
            raw_bytes,
            record_bytes: slab.cells_in_use() * slab.cell_stride(),
            reserved_bytes: slab.bytes_reserved(),
            indexes: indexes.collect(),
        }
    }

    /// The bytes of all its indexes.
    pub fn index_bytes(&self) -> usize {
        self.indexes.iter().map(|index| index.bytes).sum()
    }
}
