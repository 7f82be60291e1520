//! Benchmark workloads: SQL files, populations, argument generators and audits.
//!
//! A workload is plain SQL (`sql/<name>/schema.sql`, `procedures.sql` and `audit.sql`, the same
//! files that run on PostgreSQL) and Rust that fills the tables and draws the arguments of calls.
//! Nothing here knows an engine: rows go to a [`RowSink`], arguments to an [`ArgumentSink`], and
//! an audit is a list of queries, so that Kiln and PostgreSQL are driven by the same code.
//!
//! ```
//! use kiln_workloads::{ArgumentValues, Workload};
//!
//! let mut workload = Workload::by_name("tpcc").unwrap();
//! workload.set("warehouses", "2").unwrap();
//! let mut terminal = workload.terminals(42, 1).remove(0);
//! let mut arguments = ArgumentValues::default();
//! let call = terminal.next(&mut arguments);
//! let procedure = &workload.procedures()[call.procedure.0];
//! println!("{}", kiln_workloads::export::render_call(procedure, arguments.values()));
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`tpcc`] | TPC-C: all five transactions, or New-Order and Payment only |
//! | [`smallbank`] | SmallBank |
//! | [`anomalies`] | random small transactions that provoke anomalies |
//! | [`ycsb`] | YCSB A, B and C |
//! | [`rmw`] | read-modify-writes, or reads, of hot and cold records |
//! | [`hot`] | increments of one row, or of a few |
//! | [`strife_hot`] | the HOT benchmark of STRIFE, whose hot records may move |
//! | [`ranges`] | updates, reads and replacements of ranges of keys |
//! | [`short_long`] | short and long transactions of a given contention index |
//! | [`wikipedia`] | Wikipedia, as OLTP-bench has it |
//! | [`rubis`] | the bidding core of RUBiS |
//! | [`random`] | the specifications' distributions |
//! | [`export`] | populations and calls as PostgreSQL text |

pub mod anomalies;
pub mod export;
pub mod hot;
pub mod random;
pub mod ranges;
pub mod rmw;
pub mod rubis;
pub mod short_long;
pub mod smallbank;
pub mod strife_hot;
pub mod tpcc;
pub mod wikipedia;
pub mod ycsb;

mod arguments;
mod audit;
mod clock;
mod definition;
mod options;
mod population;
mod records;
#[cfg(test)]
mod testing;
mod workload;

pub use arguments::{ArgumentSink, ArgumentValues};
pub use audit::{Audit, ClosingCheck, Totals, named_statements};
pub use definition::{Call, Procedure, ProcedureIndex, ProcedureKind, WorkloadOption};
pub use population::RowSink;
pub use workload::{Terminal, Workload};
