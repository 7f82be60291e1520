//! Breakdown: a worker has panicked in the middle of a transaction.
//!
//! What that worker has locked stays locked, and rows that it has written stay half written, so the
//! database is over. Two things are left to do:
//!
//! - **The other workers end what they have in hand with an error.** The engine says through
//!   [`Epochs::break_down`](kiln_storage::epoch::Epochs::break_down) that a worker broke down; each
//!   loop that waits for another worker, or repeats an attempt, looks at that.
//! - **Nothing is freed that others can reach.** The worker that panicked is never dropped, nor are
//!   the others of that database ([`Worker::leak`](crate::Worker::leak)); what unwinding drops on
//!   its way there leaks, as what is lent does (`schedule/in_flight/lending.rs`). Epochs stand
//!   still as far as the worker was in one.

use kiln_storage::error::Error;

/// What a client is told whose transaction ends because a worker broke down, and each one that
/// comes later.
#[cold]
pub fn broken_down() -> Error {
    Error::internal("a worker of this database broke down in the middle of a transaction")
        .with_detail("Whether the transactions that ran then have had effects is unknown.")
        .with_hint("Open the database anew; the first panic's message names the place.")
}
