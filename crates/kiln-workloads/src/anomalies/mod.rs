//! Anomalies: random small transactions on few rows, to provoke whatever can go wrong.
//!
//! Reads, blind writes, read-modify-writes, insertions, deletions, scans by the primary key and by
//! a secondary index, updates that move rows in an index, several accesses to one row, and failures
//! on purpose, some of which are caught, in any order in one transaction. Every stamp that is
//! written is unique, so that a judge tells from a value who wrote it.
//!
//! The audit is that money and seats are conserved, that both columns of an item are of one
//! write, and that rows are found by all their indexes. Transactions check some of that themselves.

mod config;
mod populate;
mod terminal;

pub use config::Config;
pub use populate::populate;
pub use terminal::Terminal;

use crate::audit::ClosingCheck;
use crate::definition::{About, Procedure, ProcedureIndex};
use kiln_storage::types::Decimal;

/// The tables.
pub const SCHEMA_SQL: &str = include_str!("../../sql/anomalies/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/anomalies/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/anomalies/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/anomalies/audit.sql");

/// The tables, in the order of the schema.
pub const TABLES: [&str; 3] = ["registers", "items", "seats"];

/// A list of operations.
pub const MIXED: ProcedureIndex = ProcedureIndex(0);
/// Moves money between registers.
pub const TRANSFER: ProcedureIndex = ProcedureIndex(1);
/// Moves two seats.
pub const SHIFT: ProcedureIndex = ProcedureIndex(2);
/// Takes the first item.
pub const TAKE: ProcedureIndex = ProcedureIndex(3);
/// Adds all money up.
pub const TOTAL: ProcedureIndex = ProcedureIndex(4);

/// A list of operations that catch their errors.
pub const PROTECTED: ProcedureIndex = ProcedureIndex(5);

/// The six transactions.
pub const PROCEDURES: [Procedure; 6] = [
    Procedure::new(
        "mixed",
        &["integer[]", "integer[]", "integer[]", "bigint"],
        1,
    ),
    Procedure::new("transfer", &["integer", "integer", "bigint"], 1),
    Procedure::new("shift", &["integer", "integer", "integer"], 1),
    Procedure::new("take", &["integer", "integer", "bigint"], 1),
    Procedure::new("total", &["bigint"], 1),
    Procedure::new(
        "protected",
        &["integer[]", "integer[]", "integer[]", "bigint"],
        1,
    ),
];

/// SQLSTATE of a call that failed on purpose, or for lack of funds.
pub const EXPECTED_FAILURE: &str = "AN001";
/// SQLSTATE of a call that saw a state which no serial order has; no call of a run should meet it.
pub const IMPOSSIBLE_STATE: &str = "AN002";

const ABOUT: About = About {
    name: "anomalies",
    description: "Anomalies: random small transactions on few rows, for tests of isolation",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[EXPECTED_FAILURE],
    unaudited: &[],
};

/// What each register has at first.
pub(crate) const INITIAL_BALANCE: i64 = 1_000;

/// What all registers have together, at any time.
pub(crate) fn money(config: &Config) -> i64 {
    INITIAL_BALANCE * i64::from(config.keys)
}

/// Money and seats are conserved.
pub fn closing_checks(config: &Config) -> Vec<ClosingCheck> {
    let number = |value: i64| Decimal::new(value.into(), 0).unwrap_or(Decimal::MAX);
    vec![
        ClosingCheck {
            name: "money",
            sql: "SELECT sum(balance) FROM registers",
            expected: number(money(config)),
        },
        ClosingCheck {
            name: "seats conserved",
            sql: "SELECT count(*) FROM seats",
            expected: number(config.keys.into()),
        },
    ]
}

#[cfg(test)]
mod tests;
