//! Transactions that read and modify, or only read, some records of 1,000 bytes: `rmw` and
//! `read-only`.
//!
//! ORTHRUS §4.1 and Appendices A and B: ten records in a transaction, two of them (or one) from a
//! hot set, at its beginning, at its end or anywhere; all are read and modified, or all are read
//! (Figures 1 and 11). The records of a transaction are in one partition, in two, or anywhere.
//! STRIFE §5.1: twenty records, read or updated, of one of thirty partitions, drawn by a Zipf
//! distribution there:
//!
//! ```text
//! rmw --operations 20 --reads 10 --hot-operations 0 --theta 0.99 --partitions 30
//! ```
//!
//! What departs from the papers: fewer records by default (they have 10 and 20 millions), and a
//! transaction touches the counter of a record and not its 1,000 bytes, as Kiln does not read
//! columns that a transaction does not want. STRIFE's records have 128 bytes.
//!
//! The audit is that no increment is lost.

mod config;
mod terminal;

pub use crate::records::{Home, HotPosition, RecordChoice};
pub use config::{Config, Kind};
pub use terminal::Terminal;

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Procedure, ProcedureIndex};
use crate::population::{count, text};
use crate::random::push_alphanumeric;

/// The table.
pub const SCHEMA_SQL: &str = include_str!("../../sql/rmw/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/rmw/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/rmw/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/rmw/audit.sql");

/// The only table.
pub const TABLES: [&str; 1] = ["records"];

/// Reads and modifies all its records.
pub const MODIFY: ProcedureIndex = ProcedureIndex(0);
/// Reads all its records.
pub const READ: ProcedureIndex = ProcedureIndex(1);
/// Reads some of its records, and modifies the others too.
pub const MIX: ProcedureIndex = ProcedureIndex(2);

/// The three procedures.
pub const PROCEDURES: [Procedure; 3] = [
    Procedure::new("modify_records", &["smallint[]", "integer[]"], 1),
    Procedure::new("read_records", &["smallint[]", "integer[]"], 1),
    Procedure::new("mix_records", &["smallint[]", "integer[]", "smallint[]"], 1),
];

/// SQLSTATE of a record that does not exist; no generated call meets it.
pub const NO_SUCH_RECORD: &str = "RM001";

const ABOUT: About = About {
    name: "rmw",
    description: "rmw: read-modify-writes of hot and cold records (ORTHRUS, STRIFE)",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

const ABOUT_READ_ONLY: About = About {
    name: "read-only",
    description: "read-only: reads of hot and cold records, which never conflict (ORTHRUS)",
    ..ABOUT
};

/// Makes the records of one part; every counter is 0.
pub fn populate_part(config: &Config, seed: u64, part: u64, sink: &mut dyn RowSink) {
    let columns = [
        "partition_id",
        "record_id",
        "counter",
        "field_1",
        "field_2",
        "field_3",
        "field_4",
        "field_5",
        "field_6",
        "field_7",
        "field_8",
        "field_9",
        "field_10",
    ];
    let random = &mut Random::stream(seed, part);
    config.choice.populate_part(part, sink, &columns, |values| {
        values[0] = Value::BigInt(0);
        for (field, length) in values[1..].iter_mut().zip(FIELD_LENGTHS) {
            push_alphanumeric(text(field), random, length, length);
        }
    });
}

/// Bytes of the ten fields; with key and counter they make a thousand.
const FIELD_LENGTHS: [usize; 10] = [100, 100, 100, 100, 100, 100, 100, 100, 100, 86];

/// No increment and no record is lost.
pub fn closing_checks(config: &Config, totals: &Totals) -> Vec<ClosingCheck> {
    let committed = |procedure: ProcedureIndex| {
        let committed = totals.committed.get(procedure.0).copied();
        committed.unwrap_or_default() as i64
    };
    let operations = i64::from(config.choice.operations);
    let increments =
        committed(MODIFY) * operations + committed(MIX) * (operations - i64::from(config.reads));
    vec![
        ClosingCheck {
            name: "increments",
            sql: "SELECT sum(counter) FROM records",
            expected: count(increments),
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
