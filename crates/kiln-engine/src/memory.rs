//! How much memory the tables take, and how much waits to be freed.

use std::fmt;
use std::time::Duration;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::time;
use kiln_storage::epoch::Epochs;
use kiln_storage::table::Table;

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
    pub user: SeatUser,
    /// It has been open for at least so long.
    pub duration: Duration,
}

/// The user of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeatUser {
    /// The engine itself.
    Engine,
    /// The worker thread at this position.
    Worker(usize),
    /// The driver at this position.
    Driver(usize),
    /// The session with this number ([`Session::number`](crate::Session::number)).
    Session(u64),
    /// A closure that runs as a transaction, or a loader.
    Closure,
}

impl fmt::Display for SeatUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeatUser::Engine => f.write_str("the engine"),
            SeatUser::Worker(position) => write!(f, "worker {position}"),
            SeatUser::Driver(position) => write!(f, "driver {position}"),
            SeatUser::Session(number) => write!(f, "session {number}"),
            SeatUser::Closure => f.write_str("a closure or a loader"),
        }
    }
}

/// The users of the seats, by their participants' slots.
pub(crate) struct SeatUsers(Box<[AtomicU64]>);

impl SeatUsers {
    /// For participants in slots below this one; all are the engine's.
    pub fn new(slots: usize) -> SeatUsers {
        SeatUsers((0..slots).map(|_| AtomicU64::new(0)).collect())
    }

    /// Notes that the participant in this slot runs the transactions of `user`.
    pub fn set(&self, slot: usize, user: SeatUser) {
        let (kind, number) = match user {
            SeatUser::Engine => (0, 0),
            SeatUser::Worker(position) => (1, position as u64),
            SeatUser::Driver(position) => (2, position as u64),
            SeatUser::Session(number) => (3, number),
            SeatUser::Closure => (4, 0),
        };
        // Relaxed: for reports, which may be some moments old.
        self.0[slot].store(kind | number << 3, Ordering::Relaxed);
    }

    fn of(&self, slot: usize) -> SeatUser {
        let word = self.0[slot].load(Ordering::Relaxed);
        let number = word >> 3;
        match word & 7 {
            0 => SeatUser::Engine,
            1 => SeatUser::Worker(number as usize),
            2 => SeatUser::Driver(number as usize),
            3 => SeatUser::Session(number),
            _ => SeatUser::Closure,
        }
    }
}

impl RetiredMemory {
    pub(crate) fn of(epochs: &Epochs, users: &SeatUsers) -> RetiredMemory {
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
