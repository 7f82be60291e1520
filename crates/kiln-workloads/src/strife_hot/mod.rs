//! HOT, the benchmark of STRIFE §5.1: `strife-hot`.
//!
//! Each transaction updates ten records of twenty numbers, one of a hundred hot ones and nine cold
//! ones. The hot ones are spread evenly over the partitions; of the cold ones at most three are in
//! another partition than the hot one. Its time-varying form (§5.5) moves the hot records after so
//! many milliseconds to a random number of partitions, `--vary-ms 30000` in the paper.
//!
//! What departs from the paper: fewer records by default (it has 50 millions), and how many cold
//! records are remote is drawn uniformly, as the paper says only that it is at most three. An
//! update changes two of the twenty numbers.
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
pub const SCHEMA_SQL: &str = include_str!("../../sql/strife-hot/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/strife-hot/partitions.sql");
/// The procedure.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/strife-hot/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/strife-hot/audit.sql");

/// The only table.
pub const TABLES: [&str; 1] = ["records"];

/// Updates its records.
pub const UPDATE: ProcedureIndex = ProcedureIndex(0);

/// The only procedure.
pub const PROCEDURES: [Procedure; 1] = [Procedure::new(
    "update_hot",
    &["smallint[]", "integer[]"],
    1,
)];

/// SQLSTATE of a record that does not exist; no generated call meets it.
pub const NO_SUCH_RECORD: &str = "SH001";

const ABOUT: About = About {
    name: "strife-hot",
    description: "HOT: updates of one hot record and of cold ones, on partitions (STRIFE)",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

/// Makes the records of one part: the first and the last number are 0, those between their places.
pub fn populate_part(config: &Config, part: u64, sink: &mut dyn RowSink) {
    let columns = [
        "partition_id",
        "record_id",
        "value_01",
        "value_02",
        "value_03",
        "value_04",
        "value_05",
        "value_06",
        "value_07",
        "value_08",
        "value_09",
        "value_10",
        "value_11",
        "value_12",
        "value_13",
        "value_14",
        "value_15",
        "value_16",
        "value_17",
        "value_18",
        "value_19",
        "value_20",
    ];
    config.choice.populate_part(part, sink, &columns, |values| {
        for (place, value) in (1..).zip(values) {
            *value = Value::BigInt(match place {
                1 | 20 => 0,
                place => place,
            });
        }
    });
}

/// No update and no record is lost.
pub fn closing_checks(config: &Config, totals: &Totals) -> Vec<ClosingCheck> {
    let committed = totals.committed.get(UPDATE.0).copied().unwrap_or_default() as i64;
    vec![
        ClosingCheck {
            name: "updates",
            sql: "SELECT sum(value_01) FROM records",
            expected: count(committed * i64::from(config.choice.operations)),
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
