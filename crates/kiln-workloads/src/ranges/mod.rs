//! Transactions on ranges of keys: `ranges`.
//!
//! VLL §3.4: each transaction locks one range. Keys are bit strings of sixteen bits, and the first
//! and the last key of a range share a prefix of so many bits: with 11 of 16 a range is within 32
//! keys, and has 16 on average. Short prefixes are contended. A share of the transactions is
//! delayed, with its locks, as if it waited for other machines (Figure 14).
//!
//! What departs from the paper: it does not say what a transaction does to the records of its
//! range. Here it increments each, or reads them, or deletes them and inserts them again. A delay
//! is computation, in rounds, which virtual cores can count, and keeps its worker. All keys are
//! there.
//!
//! The audit is that no change is lost, none is torn, and that each transaction finds all entries
//! of its range.

mod config;
mod terminal;

pub use config::Config;
pub use terminal::Terminal;

use kiln_storage::types::Value;

use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Procedure, ProcedureIndex};
use crate::population::{count, part_rows};

/// The table.
pub const SCHEMA_SQL: &str = include_str!("../../sql/ranges/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/ranges/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/ranges/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/ranges/audit.sql");

/// The only table.
pub const TABLES: [&str; 1] = ["entries"];

/// Increments the entries of its range.
pub const UPDATE: ProcedureIndex = ProcedureIndex(0);
/// Reads them.
pub const READ: ProcedureIndex = ProcedureIndex(1);
/// Deletes them and inserts them again.
pub const REPLACE: ProcedureIndex = ProcedureIndex(2);

const PARAMETERS: &[&str] = &["integer", "integer", "integer"];

/// The three transactions.
pub const PROCEDURES: [Procedure; 3] = [
    Procedure::new("update_range", PARAMETERS, 2).with_rows_wanted(),
    Procedure::new("read_range", PARAMETERS, 2),
    Procedure::new("replace_range", PARAMETERS, 2).with_rows_wanted(),
];

/// SQLSTATE of a range without all its entries; no transaction meets it.
pub const ENTRIES_MISSING: &str = "RG001";

const ABOUT: About = About {
    name: "ranges",
    description: "ranges: updates, reads and replacements of ranges of keys (VLL)",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

/// Makes the entries of one part; every counter is 0.
pub fn populate_part(config: &Config, part: u64, sink: &mut dyn RowSink) {
    let rows = part_rows(config.entries(), part);
    sink.table(
        "entries",
        &["entry_id", "counter", "digest"],
        rows.end - rows.start,
    );
    for entry in rows {
        let id = Value::Integer(entry as i32);
        sink.row(&[id, Value::BigInt(0), Value::BigInt(0)]);
    }
}

/// No change and no entry is lost.
pub fn closing_checks(config: &Config, totals: &Totals) -> Vec<ClosingCheck> {
    vec![
        ClosingCheck {
            name: "changes",
            sql: "SELECT sum(counter) FROM entries",
            expected: count(totals.rows_changed as i64),
        },
        ClosingCheck {
            name: "entries",
            sql: "SELECT count(*) FROM entries",
            expected: count(config.entries() as i64),
        },
    ]
}

#[cfg(test)]
mod tests;
