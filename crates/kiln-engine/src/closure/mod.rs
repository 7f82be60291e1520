//! The door for Rust closures that run as transactions.

mod run;
mod transaction;

pub use transaction::{Row, ScanRange, Transaction};
