//! Concurrency-control protocols.
//!
//! A protocol is one scheduler ([`schedule`]: when a call may run, and where) and one access
//! ([`access`]: how one attempt touches records). Protocols do not import each other; what
//! several are built from is in [`shared`].
//!
//! | name | scheduler | access |
//! |---|---|---|
//! | `serial` | [`schedule::direct`], one worker | [`access::serial`] |
//! | `silo`, `silo-unchecked` | [`schedule::direct`] | [`access::silo`] |
//! | `occ`, `occ-unchecked` | [`schedule::direct`] | [`access::occ`] |
//! | `healing` | [`schedule::direct`] | [`access::healing`] |
//! | `tictoc` | [`schedule::direct`] | [`access::tictoc`] |
//! | `hybrid` | [`schedule::direct`] | [`access::hybrid`] |
//! | `mocc` | [`schedule::direct`] | [`access::mocc`] |
//! | `none` | [`schedule::direct`] | [`access::none`] |
//! | `2pl-no-wait`, `2pl-wait-die`, `2pl-wait-for-graph`, `2pl-dreadlocks` | [`schedule::direct`] | [`access::two_phase_locking`] |
//! | `mvcc` | [`schedule::direct`] | [`access::mvcc`] |
//! | `lock-sorted`, `lock-atomic`, `pre-no-wait` | [`schedule::direct`], after [`shared::planning`] | [`access::two_phase_locking`] |
//! | `strife` | [`schedule::strife`] | [`access::two_phase_locking`] |
//! | `orthrus`, `orthrus-shared` | [`schedule::orthrus`], over [`schedule::owned`] | [`access::two_phase_locking`] |
//! | `vll-single` | [`schedule::vll_single`], over [`schedule::owned`] | [`access::two_phase_locking`] |
//! | `dora` | [`schedule::dora`], over [`schedule::owned`] | [`access::two_phase_locking`] |
//! | `partitioned` | [`schedule::direct`], after [`shared::planning`], over [`schedule::partitioned`] | [`access::two_phase_locking`] |
//! | `vll`, `vll-sca`, `vll-arrayed` | [`schedule::vll`] | [`access::two_phase_locking`] |
//!
//! To add one: a folder under `access` or `schedule`, a name in [`Protocol`], an arm in
//! [`Worker::new`], what its workers share in [`Common`], and a page in `docs/protocols/`.

pub mod access;
mod answer;
pub mod batches;
mod breakdown;
pub mod canary;
mod common;
pub mod counters;
pub mod factors;
pub mod phases;
mod protocol;
pub mod schedule;
mod serve;
pub mod shared;
mod statistics;
mod worker;

pub use answer::AnswerWriter;
pub use breakdown::broken_down;
pub use common::Common;
pub use counters::{Counted, Counters};
pub use factors::Factors;
pub use protocol::{Configuration, Protocol, ProtocolOption};
pub use serve::{Call, Calls, Next};
pub use shared::recorder::{Observation, RECORDS_HISTORIES};
pub use statistics::Statistics;
pub use worker::{Outcome, Worker};
