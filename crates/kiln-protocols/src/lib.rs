//! Concurrency-control protocols.
//!
//! A protocol is one scheduler ([`schedule`]: when a call may run, and where) and one access
//! ([`access`]: how one attempt touches records). Protocols do not import each other; what
//! several are built from is in [`shared`].
//!
//! [`Protocol`] lists them. The head of a protocol's folder says what it is, and its page in
//! `docs/protocols/` when to use it. Most run their calls under [`direct`], the planned
//! ones after a reconnaissance ([`shared::planning`]). Those that have several calls in flight have
//! schedulers of their own.
//!
//! # To add one
//!
//! 1. A folder under `access` or `schedule`, whose `registration.rs` has a row: the name, what the
//!    protocol promises, the options and basis factors that it takes, and a function that makes
//!    what its workers share, its *family*. `family::of_accesses` makes one whose workers run calls
//!    at once, `family::of_workers` one whose workers have a scheduler of their own. A protocol
//!    that has to do something when tables change, or when another one takes over, implements
//!    `Family` itself: each method but one has a default.
//! 2. A line in the list in `registry.rs`.
//! 3. A page in `docs/protocols/`, and a line in the table there.
//!
//! No other code names it: `tests/one_row.rs` looks, and lists the exceptions with their reasons.

pub mod access;
mod answer;
pub mod batches;
mod breakdown;
pub mod canary;
mod common;
pub mod counters;
pub mod direct;
pub mod factors;
mod family;
mod options;
mod outcome;
pub mod phases;
mod protocol;
mod refusal;
mod registration;
mod registry;
pub mod schedule;
mod scheduler;
mod serve;
pub mod shared;
mod statistics;
mod worker;

pub use answer::AnswerWriter;
pub use breakdown::broken_down;
pub use common::Common;
pub use counters::{Counted, Counters};
pub use factors::Factors;
pub use options::ProtocolOption;
pub use outcome::Outcome;
pub use protocol::Configuration;
pub use registry::Protocol;
pub use serve::{Call, Calls, Next};
pub use shared::recorder::{Observation, RECORDS_HISTORIES};
pub use statistics::{Statistics, Versions};
pub use worker::Worker;
