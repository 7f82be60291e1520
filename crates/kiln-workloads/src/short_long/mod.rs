//! The short and the long microbenchmark of VLL §3.1.2: `short-long`.
//!
//! Each transaction reads and updates ten records, one of which is hot. The *contention index* is
//! the probability that two transactions conflict, which is one by the number of hot records. A
//! long transaction computes besides, for so many rounds on each record. With two hot records or
//! more in a transaction deadlocks become possible (Figure 8 b and d).
//!
//! What departs from the paper: there every transaction of a run is short, or every one is long;
//! here the share of long ones is an option.
//!
//! The audit is that no update is lost and none is torn.

mod config;
mod terminal;

pub use crate::records::{HotPosition, RecordChoice};
pub use config::Config;
pub use terminal::Terminal;

use kiln_storage::types::Value;

use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Procedure, ProcedureIndex};
use crate::population::count;

/// The table.
pub const SCHEMA_SQL: &str = include_str!("../../sql/short-long/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/short-long/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/short-long/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/short-long/audit.sql");

/// The only table.
pub const TABLES: [&str; 1] = ["records"];

/// Reads and updates its records.
pub const SHORT: ProcedureIndex = ProcedureIndex(0);
/// Does so, and computes.
pub const LONG: ProcedureIndex = ProcedureIndex(1);

/// The two transactions.
pub const PROCEDURES: [Procedure; 2] = [
    Procedure::new("short_transaction", &["smallint[]", "integer[]"], 1),
    Procedure::new(
        "long_transaction",
        &["smallint[]", "integer[]", "integer"],
        1,
    ),
];

/// SQLSTATE of a record that does not exist; no generated call meets it.
pub const NO_SUCH_RECORD: &str = "SL001";

const ABOUT: About = About {
    name: "short-long",
    description: "short-long: short and long transactions of a contention index (VLL)",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

/// Makes the records of one part; every counter is 0.
pub fn populate_part(config: &Config, part: u64, sink: &mut dyn RowSink) {
    let columns = ["partition_id", "record_id", "counter", "digest"];
    config.choice.populate_part(part, sink, &columns, |values| {
        values.fill(Value::BigInt(0));
    });
}

/// No update and no record is lost.
pub fn closing_checks(config: &Config, totals: &Totals) -> Vec<ClosingCheck> {
    let committed: u64 = totals.committed.iter().sum();
    vec![
        ClosingCheck {
            name: "updates",
            sql: "SELECT sum(counter) FROM records",
            expected: count(committed as i64 * i64::from(config.choice.operations)),
        },
        ClosingCheck {
            name: "records",
            sql: "SELECT count(*) FROM records",
            expected: count(config.choice.rows() as i64),
        },
    ]
}

#[cfg(test)]
mod tests;
