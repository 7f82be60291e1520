//! Very lightweight locking: two counters a record, and one queue that knows the order of all
//! requests.
//!
//! Source: K. Ren, A. Thomson, D. J. Abadi, *VLL: a lock manager redesign for main memory database
//! systems*, VLDB Journal 24, 2015: §2.1 the algorithm, §2.2 counters in arrays, §2.4 plans, §2.6
//! contention analysis.
//!
//! # The idea
//!
//! A traditional lock manager keeps a list of requests for each lock. VLL counts them: how many
//! transactions want the record exclusively, and how many want to share it. A transaction asks for
//! all its locks at once, in one critical section, in which it also gets its entry in a queue of
//! all transactions. If no other transaction has a request that is in its way it is *free*, and
//! runs. Else it is *blocked*, and put aside; the worker goes on with another one. A transaction
//! that lets a lock go does not know which one to hand it to. But the first transaction in the
//! queue may always run: all that asked before it have ended, and all that asked after it are
//! blocked where they conflict. That makes deadlocks impossible, too.
//!
//! # Phases
//!
//! | phase | where |
//! |---|---|
//! | draw a call, plan it (a reconnaissance without isolation) | `worker.rs` |
//! | count its requests and give it its entry, in one critical section | `queue`, `enter` |
//! | run: in place, with an undo log, as two-phase locking that holds its locks already | `run.rs`, `attempt` |
//! | commit, take the counts back | `run.rs`, `attempt` |
//! | leave the queue; the first one, if it waits, runs next | `queue`, `leave` |
//!
//! Where no transaction waits the last step is taken together with the next transaction's requests,
//! in one critical section: see the queue about transactions that *linger*.
//!
//! A context with everything a transaction needs travels: the worker that finds it runnable runs
//! it, and sends it back to its worker, which tells its caller.
//!
//! # What decides whom to run
//!
//! 1. the first of the queue, if it waits;
//! 2. transactions of the worker that failed, once more: with a record added that they had missed;
//! 3. a new call, unless there are as many blocked transactions as the limit allows (`limit.rs`);
//! 4. with contention analysis (`vll-sca`, §2.6), when nothing else can be done: the first
//!    transaction that has nothing in common with those before it, by bit arrays of hashes
//!    (`contention.rs`).
//!
//! # Beyond the paper
//!
//! - *Records that were not planned*, and new ones, are taken if their counters are 0 and are
//!   counted as *unplanned* besides, as they are in no plan that others look at
//!   ([`counters`](crate::shared::locks::counters)); where they are not 0 the attempt ends, and the
//!   next plan has that record. Gaps are guarded by the versions of index nodes
//!   (`access/planned_locking`).
//! - *Transactions of several statements* are outside of the queue: they take what is free as they
//!   meet it, and fail where it is not, so none waits for one that waits. They can keep the first
//!   of the queue from running, which looks at the unplanned counts of its records. One that is
//!   repeated, as a closure is, stands in the queue with what its last attempt met.
//! - *Blocks that idle.* A transaction at the head that wants what statements have leaves the
//!   queue, and is parked (`in_flight/parking.rs`), as is one that fails again and again while
//!   statements are open.
//! - *Starvation.* A call that has failed often keeps all others out and runs alone.
//!
//! # Which anomalies are excluded, and how
//!
//! All: as in strict two-phase locking no transaction touches a record on which another has a
//! conflicting lock, and all locks are held to the end. The order of conflicting transactions is
//! that of the queue.
//!
//! # Other locks
//!
//! What is locked, and how it is counted, is the business of a [`Ledger`], which the queue keeps
//! under its latch. That of `vll` and `vll-arrayed` is the counters of records;
//! [`ranges`](super::ranges) has others.
//!
//! # Order of latches
//!
//! The queue's latch, then none. A mailbox's latch is taken with no other.

#![expect(
    clippy::vec_box,
    reason = "contexts travel: a context is moved by moving a pointer"
)]

mod contention;
mod context;
mod isolated;
mod ledger;
mod limit;
mod manager;
mod queue;
pub(crate) mod registration;
mod run;
mod state;
mod statements;
mod worker;

pub use isolated::Isolated;
pub use ledger::{Analysis, DemandOf, Ledger};
pub use manager::{BesideByGroup, CounterArray, ManagerThread};
pub use state::VllState;
pub use worker::Vll;

/// Calls that a worker has in flight at most.
pub const IN_FLIGHT_MAX: usize = 16;
