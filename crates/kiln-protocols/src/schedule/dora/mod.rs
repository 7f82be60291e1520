//! DORA: threads are assigned to data, and transactions flow from thread to thread.
//!
//! Source: I. Pandis, R. Johnson, N. Hardavellas, A. Ailamaki, *Data-oriented transaction
//! execution*, PVLDB 3, 2010, as the main-memory variant that STRIFE §5.4 compares with: a
//! thread-to-data assignment with partition-local record locks.
//!
//! # The idea
//!
//! In other systems a thread is assigned to a transaction, and touches records all over the
//! database: locks and rows move between all cores. Here each partition of the data has an *owner*,
//! a worker that alone keeps the locks of its records, without latches, and alone reads and writes
//! them: a transaction goes to where its data are, one operation after the other. The owner has its
//! partition's records in its cache and keeps them there.
//!
//! # Phases
//!
//! ```text
//!  worker             owner of partition 1      owner of partition 4        worker
//!  route ── call ─────────► plan its records ─────► plan its records
//!                         take local locks ◄────────┘
//!                             └── demand ───────► take local locks
//!                         run its operations ◄─────────┘ ready
//!                             └── flows ────────► run its operations
//!                                                 commit ──── demand ───────► tell the caller
//!                         give back ◄─────────────┘ give back
//! ```
//!
//! 1. *Route.* A call goes to the owner of the first record that its arguments name.
//! 2. *Plan.* A reconnaissance says which records it will meet (`shared/planning`). It goes from
//!    owner to owner: each looks at its own records.
//! 3. *Lock.* Its requests enter the lock tables of their partitions, in the order of the
//!    partitions: those of one all at once. So there are no deadlocks.
//! 4. *Flow.* The transaction sets out where its first record is. Before an operation on a record
//!    of another partition it leaves, with its registers and its place in the code, and the other
//!    owner goes on with it ([`Executor::resume`](kiln_procedure::Executor::resume)).
//! 5. *End.* The owner where the last operation was commits, or undoes what was done, and tells the
//!    other owners to let go.
//!
//! Demands, rings and roles are those of [`owned`], the flow is in its `travel.rs`.
//!
//! # Which anomalies are excluded, and how
//!
//! All: as in strict two-phase locking no transaction touches a record on which another has a
//! conflicting lock, and all locks are held to the end.

pub(crate) mod registration;

use super::owned;

/// The locks of a partition, whose owner does what is done with its records.
pub type LockTable = owned::LockTable<true>;

/// A worker.
pub type Dora = owned::Owned<LockTable>;
