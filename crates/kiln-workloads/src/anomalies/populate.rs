//! The population: all registers and seats, and every second item.

use kiln_storage::types::Value;

use super::{Config, INITIAL_BALANCE};
use crate::population::RowSink;

/// Makes the rows; they depend on the settings alone.
pub fn populate(config: &Config, sink: &mut dyn RowSink) {
    let ids = 1..=config.keys as i32;
    let rows = u64::from(config.keys);
    sink.table("registers", &["id", "balance", "stamp"], rows);
    for id in ids.clone() {
        sink.row(&[
            Value::Integer(id),
            Value::BigInt(INITIAL_BALANCE),
            Value::BigInt(id.into()),
        ]);
    }
    sink.table("items", &["id", "bucket", "stamp", "mirror"], rows / 2);
    for id in ids.clone().step_by(2) {
        sink.row(&[
            Value::Integer(id),
            Value::Integer(id % config.buckets() as i32),
            Value::BigInt(id.into()),
            Value::BigInt(-i64::from(id)),
        ]);
    }
    sink.table("seats", &["id", "place"], rows);
    for id in ids {
        sink.row(&[Value::Integer(id), Value::Integer(id)]);
    }
}
