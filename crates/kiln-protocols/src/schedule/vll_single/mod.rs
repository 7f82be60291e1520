//! Single-threaded VLL: a thread for each partition of the data, whose locks are counters without
//! latches.
//!
//! Source: K. Ren, A. Thomson, D. J. Abadi, *VLL: a lock manager redesign for main memory database
//! systems*, VLDB Journal 24, 2015: §2.3 the algorithm (Figure 3), §2.2 counters in arrays.
//!
//! # The idea
//!
//! [`vll`](super::vll) counts the requests for each lock, and has one queue of transactions, under
//! a latch. Here the data are partitioned, and each partition has its counters, its queue and its
//! thread: no other thread touches them, so they need neither latches nor atomic instructions. In
//! H-Store such a thread runs one transaction after the other, and sleeps while it waits for
//! another partition. Here it goes on: a transaction that waits for other partitions is put aside
//! (*waiting*), with its locks counted, and whatever does not conflict with it runs meanwhile.
//!
//! # Phases
//!
//! A worker owns partitions, draws calls, plans them and runs them. A call of several partitions is
//! put into the rings of all of them under one latch, the *sequencer*:
//!
//! | the paper's | here |
//! |---|---|
//! | the sequencer | `owned::OwnedState::sequence` |
//! | `BeginTransaction`: count the requests, free or blocked | [`CounterTable::acquire_span`](super::owned::PartitionTable::acquire_span) |
//! | a distributed transaction waits for the reads of other partitions | it waits until all have granted |
//! | the first of the queue may run | `wake_first`: it is granted here |
//! | `Execute` | at the worker that drew it, when all partitions have granted |
//! | `FinishTransaction`: take the counts back, leave the queue | `release_span` |
//!
//! # Departures from the paper
//!
//! - Partitions share memory. So no reads are sent: what another partition sends is that the
//!   transaction may touch the records there, and one worker runs it. The paper's partitions each
//!   run it with all reads. A transaction that went from owner to owner held its locks for that
//!   long, and the queues behind it grew: see the page for figures.
//! - Transactions of one partition are in no order with those of others: each queue has its own.
//! - A transaction is counted, and in the queue, also when it is free and in a single partition.
//! - Counters are in arrays (§2.2): two locks may share a counter, which costs concurrency and
//!   nothing else.
//! - A partition has a latch that its owner takes once a core slot, not once a transaction, for the
//!   times when the owner does not run.
//!
//! # Which anomalies are excluded, and how
//!
//! All: as in strict two-phase locking no transaction touches a record on which another has a
//! conflicting lock, and all locks are held to the end.

mod counters;
pub(crate) mod registration;

use super::owned;

pub use counters::CounterTable;

/// A worker.
pub type VllSingle = owned::Owned<CounterTable>;
