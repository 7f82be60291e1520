//! Partitions of the locks with owners: no other worker touches the locks of a partition, a worker
//! that wants some sends a message.
//!
//! What `orthrus`, `vll-single` and `dora` have in common. They differ in what a partition does
//! with its requests ([`PartitionTable`]), in whether the owner of a partition runs transactions as
//! well, and in whether transactions come to the owners to be run (`travel.rs`) or are run by the
//! worker that has drawn them.
//!
//! # Messages
//!
//! ```text
//!  worker            owner of partition 1   owner of partition 4        worker
//!  plan ── demand ─────────► take locks ──────► take locks ───────► run, commit
//!                              │ forwarded when all of one partition are granted │
//!                              ◄──────────── give back ─────────────────────────┘
//! ```
//!
//! A *demand* is a list of requests, sorted by partition. It visits its partitions in their order,
//! and is passed on when all locks of one are granted: Ncc + 1 messages instead of 2 Ncc (ORTHRUS
//! §3.3). Messages are pointers to demands in rings with one producer and one consumer
//! ([`ring`](crate::shared::ring)): one from each worker to each partition, one back, and one from
//! each partition to each later one, or, where transactions travel, to each.
//!
//! Under `vll-single` a demand does not visit one partition after the other. It is put into a ring
//! of each of its partitions at once, by the thread that holds the *sequencer*, and the last
//! partition that answers sends it on.
//!
//! # Invariants
//!
//! - A demand belongs to the thread that has the last message about it. Only while its locks are
//!   given back, or where it has come to all its partitions at once, do several partitions have it,
//!   each its own requests of it.
//! - Requests of a demand enter a partition together. So no two transactions wait for each other in
//!   one partition, and across partitions all wait in one order, of the partitions or of the
//!   sequencer: there are no deadlocks.
//! - A partition is used under its latch. In the steady state one worker takes it, again and again;
//!   it is there for changes of roles, for statements, and for times when its owner does not run.
//! - Rings are never full: a worker has [`IN_FLIGHT_MAX`] demands, and each has one message in a
//!   ring at most, or two when it is withdrawn. That one may be a plan or a transaction on its way,
//!   where these travel, or locks that come back: the latter follow when it has ended.
//! - A table that every partition has is locked as a whole: in one partition by who reads it, in
//!   all by who writes.
//!
//! # What else there is
//!
//! - *Records that were not planned* end the attempt, and are in the next plan. *New records* have
//!   a mark in `aux` until their transaction has ended, as no partition knows them; an attempt that
//!   meets one with its mark starts again. Gaps are guarded by the versions of index nodes
//!   (`access/planned_locking`).
//! - *Transactions of several statements* take what is free from the partitions themselves, and
//!   wait for none.
//! - *More workers than cores* have no owners: each worker looks after the partitions when it would
//!   wait.
//! - *Deadlines.* A demand whose call has no time left is withdrawn, unless owners are planning it
//!   still: its worker tells all its partitions, and the one where it waits sends it home. It is
//!   used again when all of them have heard of it.
//! - *How many owners there are* may be found out while they run (`balance.rs`), and which of them
//!   has which data (`slots.rs`).
//! - *Blocks that idle.* A call that fails again and again while a transaction of several
//!   statements is open is parked (`in_flight/parking.rs`), and has nothing in the partitions
//!   meanwhile. With more workers than cores a demand that waits for longer than a millisecond
//!   meanwhile is withdrawn, and its call is parked: while it waits its worker keeps its core slot.
//! - *Starvation.* A call that has failed often runs while all others are kept out.

mod alone;
mod balance;
mod context;
mod demand;
mod family;
mod inbox;
mod isolated;
mod limit;
mod locks;
mod messages;
mod partition;
mod partition_table;
pub(in crate::schedule) mod queues;
mod roles;
mod run;
mod slots;
mod state;
mod table;
mod travel;
mod worker;

pub use demand::{Demand, Request, Span};
pub use isolated::Isolated;
pub use partition_table::PartitionTable;
pub use state::OwnedState;
pub use table::LockTable;
pub use worker::Owned;

pub(crate) use demand::{RequestState, hash};
pub(crate) use family::{of_data, of_workers};

/// Calls that a worker has in flight at most, those whose locks are still being given back
/// included. See `limit.rs` for how many wait.
pub const IN_FLIGHT_MAX: usize = 8;
