//! Sequences: numbers that are given once.
//!
//! A value is drawn outside of transactions: one that rolls back does not give it back, and two
//! transactions that draw do not conflict. A sequence (`state.rs`) is one atomic word, of which a
//! draw takes the next step. The values that it may give before it asks anybody are a *range*: a
//! log keeps the end of each range before the first of its values is given, so that after a crash
//! the sequence goes on behind all values that were given ([`SequenceLog`]).
//!
//! A call that is run again, because its attempt failed on a conflict, is given the values once
//! more that it was given before (`draws.rs`): so a protocol may plan with a value and run with it
//! later, and a block of statements that is replayed has the results that its client has seen.

mod definition;
mod draws;
mod state;

pub use definition::{Identity, SequenceDefinition, SequenceOwner};
pub use draws::{Draws, SessionSequences};
pub use state::{Drawn, Sequence, SequenceId, SequenceLog, SequenceLogs, SequenceState};
