//! One module a subcommand.

pub mod bench;
pub mod explain;
pub mod sql;
