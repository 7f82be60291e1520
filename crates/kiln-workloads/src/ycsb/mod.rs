//! YCSB, core workloads A, B and C (Cooper et al., SoCC 2010), as transactions of several
//! operations (STO §3.1, ORTHRUS Appendix A).
//!
//! One table of 1,000-byte records of ten fields, found by whole keys. Each operation reads or
//! writes one record: half of them write in A, one in twenty in B, none in C. The records are
//! drawn by a Zipf distribution, distinct ones for one transaction. As in STO's benchmark a
//! transaction has sixteen operations, and a read is of one field drawn at random; YCSB itself has
//! one operation and reads all fields, which the options give. What departs from YCSB: neither
//! inserts nor scans (workloads D and E), and popular records are those of low keys, not scattered
//! by a hash, which is all the same to a hash index.
//!
//! A value is a text of twenty characters five times over, drawn anew by each transaction that
//! writes. The audit is that no record is lost and that every field is as one write left it.

mod config;
mod populate;
mod terminal;

pub use config::{Config, Mix, Reads};
pub use terminal::Terminal;

use crate::audit::ClosingCheck;
use crate::definition::{About, Procedure, ProcedureIndex};
use crate::population::count;

/// The table.
pub const SCHEMA_SQL: &str = include_str!("../../sql/ycsb/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/ycsb/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/ycsb/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/ycsb/audit.sql");

/// The only table.
pub const TABLES: [&str; 1] = ["usertable"];

/// A transaction without writes.
pub const READ_ONLY: ProcedureIndex = ProcedureIndex(0);
/// A transaction with writes.
pub const READ_WRITE: ProcedureIndex = ProcedureIndex(1);

/// The two procedures.
pub const PROCEDURES: [Procedure; 2] = [
    Procedure::new("read_only", &["integer[]", "integer[]"], 1),
    Procedure::new("read_write", &["integer[]", "integer[]", "varchar"], 1),
];

/// SQLSTATE of a record that does not exist; no generated call meets it.
pub const NO_SUCH_RECORD: &str = "YC001";

/// Fields of a record.
const FIELDS: i64 = 10;
/// Characters that a write draws; a field repeats them.
const DRAWN: usize = 20;
/// How often.
const REPETITIONS: usize = 5;

const ABOUT: About = About {
    name: "ycsb",
    description: "YCSB A, B, C: reads and writes of 1,000-byte records, several to a transaction",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

/// No record is lost.
pub fn closing_checks(config: &Config) -> Vec<ClosingCheck> {
    vec![ClosingCheck {
        name: "records",
        sql: "SELECT count(*) FROM usertable",
        expected: count(config.records.into()),
    }]
}

#[cfg(test)]
mod tests;
