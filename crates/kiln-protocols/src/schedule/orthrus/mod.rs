//! ORTHRUS: some workers only control concurrency, the others only run transactions.
//!
//! Source: K. Ren, J. M. Faleiro, D. J. Abadi, *Design principles for scaling multi-core OLTP under
//! high contention*, SIGMOD 2016, §3: partitioned functionality, planned access, asynchrony,
//! forwarding.
//!
//! # The idea
//!
//! In other systems every thread does everything, so that the lock manager's data move between all
//! cores. Here the locks are partitioned over *concurrency-control* (CC) workers, and no other
//! worker touches a partition's lock table: it stays in one core's cache and needs no latches.
//! *Execution* workers plan a transaction, send what it wants to the first of its partitions, and
//! go on with others; they hear from the last one that all is granted. Then the transaction runs,
//! on records that no other transaction may touch.
//!
//! # Phases
//!
//! ```text
//!  execution worker          CC worker 1         CC worker 4        execution worker
//!  plan ── demand ─────────► take locks ──────► take locks ───────► run, commit
//!                              │ forwarded when all of one partition are granted │
//!                              ◄──────────── give back ─────────────────────────┘
//! ```
//!
//! Under `orthrus-shared` all CC workers share one lock table, and one of them takes all locks of a
//! transaction ([`SharedLockTable`]; §3.4): a message there and one back, and latches that only CC
//! workers take.
//!
//! What a demand is, how messages travel, and what is beyond the paper: [`owned`].
//!
//! # Which anomalies are excluded, and how
//!
//! All: as in strict two-phase locking no transaction touches a record on which another has a
//! conflicting lock, and all locks are held to the end.

pub(crate) mod registration;
mod shared_table;

use kiln_platform::thread;

use super::owned;
use crate::factors::Controllers;

pub use shared_table::SharedLockTable;

/// The locks of a partition, whose owner does nothing else.
pub type LockTable = owned::LockTable<false>;

/// A worker.
pub type Orthrus = owned::Owned<LockTable>;

/// A worker whose CC workers share one lock table (§3.4): `orthrus-shared`.
pub type OrthrusShared = owned::Owned<SharedLockTable>;

/// For workers of which some only control concurrency, with as many partitions. By default a fifth
/// of the cores, as the paper's best (16 of 80). If that is found out, there are partitions for
/// half of the cores.
pub fn shared<T: owned::PartitionTable>(controllers: Controllers) -> owned::OwnedState<T> {
    let fifth = thread::available_cores() / 5;
    match controllers {
        Controllers::Fifth => owned::OwnedState::new(fifth),
        Controllers::Fixed(number) => owned::OwnedState::new(number as usize),
        Controllers::Auto { count } => {
            owned::OwnedState::new(thread::available_cores() / 2).balanced(fifth, count)
        }
    }
}
