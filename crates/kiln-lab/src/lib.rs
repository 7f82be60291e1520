//! Benchmarks: load a workload, run it under several protocols, audit it, and report.
//!
//! [`bench()`] does it all for a [`Plan`]. Each round loads the database anew and makes one run of
//! each kind on it, going over from protocol to protocol, so that what drifts meanwhile (the clock
//! of the processor, the neighbours on the machine) falls on all of them alike. After every run
//! the workload's audit decides whether the run counts.
//!
//! | module | holds |
//! |---|---|
//! | `load` | fills the tables, by several threads |
//! | `run` | the measured loop, on the workers themselves |
//! | `sessions` | the measured loop of many sessions, through the workers' inboxes |
//! | `figures` | what runs measured, and what several add up to |
//! | [`explain`] | what became of batches of calls, as tables and as a picture |
//! | [`audit`](mod@audit) | the audit after each run |
//! | [`calibrate`] | measures the machine at hand for the machine model |
//! | [`machine`] | what the figures were measured on |
//! | `report`, `json` | results for people and for programs |

pub mod audit;
pub mod calibrate;
pub mod explain;
mod figures;
pub mod json;
pub mod machine;

mod bench;
mod helpers;
mod load;
mod number;
mod plan;
pub mod progress;
mod report;
mod run;
mod sessions;

pub use bench::{Failure, Verdict, bench, loaded, open};
pub use load::LoadFigures;
pub use plan::Plan;
