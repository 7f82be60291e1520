//! Types, schema, records, indexes and epochs: everything that knows how data lies in memory, and
//! nothing that knows when a transaction may touch it.
//!
//! | module | holds |
//! |---|---|
//! | [`types`] | SQL's types and values with PostgreSQL's semantics |
//! | [`error`] | the error of everything above: SQLSTATE, message, position |
//! | [`schema`] | tables as declared |
//! | [`slot`] | registers of a running procedure and the heap behind them |
//! | [`layout`] | where a row's columns lie, reading and writing them |
//! | [`record`] | the sixteen-byte header, tids |
//! | [`key`] | keys as order-preserving integers |
//! | [`index`] | the hash index and the ordered index, with versions against phantoms |
//! | [`table`] | a table: schema, record memory, indexes |
//! | [`slab`] | fixed-size cells per worker on huge pages |
//! | [`deferral`] | constraints that are checked when a transaction ends |
//! | [`epoch`] | epochs: when memory may be reused, and the upper half of every version |
//! | [`log_epoch`] | log epochs: which commits are of one group of the log |
//! | [`journal`] | what a commit wrote, as those hear it who listen |
//! | [`redo`] | what a commit wrote, as bytes |
//! | [`sequence`] | sequences: what they are, and the values that sessions draw from them |
//! | [`bytes`] | writing and reading such bytes |

pub mod bytes;
pub mod deferral;
pub mod epoch;
pub mod error;
pub mod index;
pub mod journal;
pub mod key;
pub mod layout;
pub mod log_epoch;
pub mod qualified;
pub mod record;
pub mod redo;
pub mod restore;
pub mod schema;
pub mod sequence;
pub mod slab;
pub mod slot;
pub mod table;
pub mod types;
