//! How much memory the tables take, and how much waits to be freed.

use std::time::Duration;

use kiln_platform::sync::Arc;
use kiln_platform::time;
use kiln_storage::epoch::Epochs;
use kiln_storage::error::Result;
use kiln_storage::table::Table;

use crate::engine::Engine;
use crate::kernel::{SlotUser, SlotUsers};

/// Memory that transactions have retired, because nothing leads to it any more, and that is not
/// free yet: deleted records, superseded versions, replaced strings. It is freed when all
/// transactions have ended that were there when it was retired, some ten milliseconds later; one
/// that stays open keeps everything from being freed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetiredMemory {
    /// The number of objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Those whose open transactions keep it from being freed. Under load there is often one for a
    /// moment.
    pub held_by: Vec<EpochHolder>,
}

/// A transaction that keeps retired memory from being freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochHolder {
    /// The session or thread that runs the transaction.
    pub user: SlotUser,
    /// It has been open for at least so long.
    pub duration: Duration,
}

impl RetiredMemory {
    pub(crate) fn of(epochs: &Epochs, users: &SlotUsers) -> RetiredMemory {
        let waiting = epochs.waiting();
        let now = time::now_ns();
        let holders = epochs.laggards().into_iter().map(|laggard| EpochHolder {
            user: users.of(laggard.slot),
            duration: Duration::from_nanos(now.saturating_sub(laggard.since_ns)),
        });
        RetiredMemory {
            objects: waiting.objects,
            bytes: waiting.bytes,
            held_by: holders.collect(),
        }
    }
}

/// The memory of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableMemory {
    /// The table's name.
    pub table: String,
    /// Its rows; under `mvcc` also those that were deleted a moment ago.
    pub rows: usize,
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
    /// The memory of a table, which may be changed meanwhile.
    pub(crate) fn of(table: &Table) -> TableMemory {
        let slab = table.slab();
        let indexes = table.indexes().iter().map(|index| IndexMemory {
            index: index.definition().name.clone(),
            entries: index.len(),
            bytes: index.bytes(),
        });
        TableMemory {
            table: table.schema().name.clone(),
            rows: table.rows_present(),
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

impl Engine {
    /// The memory that transactions have retired and that is not free yet, and the participants
    /// that keep it from being freed. A moment's figure, at any time: transactions go on meanwhile.
    pub fn retired_memory(&self) -> RetiredMemory {
        let inner = self.inner();
        RetiredMemory::of(&inner.epochs, &inner.users)
    }

    /// The memory of all tables, by name. Transactions go on meanwhile, so that figures may differ
    /// by what they change.
    pub fn memory(&self) -> Vec<TableMemory> {
        let catalog = self.catalog();
        let tables = catalog.tables();
        tables.map(|(_, table)| TableMemory::of(table)).collect()
    }

    /// The bytes that the values of all rows take, as if each were stored alone, and by table: for
    /// measurements. No transaction runs meanwhile, however long that takes; [`Engine::memory`]
    /// delays no transaction.
    ///
    /// # Errors
    /// 55P03 when running transactions do not end within
    /// [`ddl_wait_ms`](crate::Options::ddl_wait_ms).
    pub fn raw_bytes(&self) -> Result<Vec<(String, usize)>> {
        let _alone = self.inner().shut_gate()?;
        let catalog = self.catalog();
        let bytes = |(name, table): (&str, &Arc<Table>)| (name.to_owned(), table.raw_bytes());
        Ok(catalog.tables().map(bytes).collect())
    }
}
