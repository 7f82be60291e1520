//! The population: every record, with random fields.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, DRAWN, FIELDS, REPETITIONS};
use crate::RowSink;
use crate::population::{part_rows, text};
use crate::random::push_alphanumeric;

/// Fills `value` with twenty random characters, five times over.
pub(super) fn draw_value(value: &mut String, random: &mut Random) {
    value.clear();
    push_alphanumeric(value, random, DRAWN, DRAWN);
    for _ in 1..REPETITIONS {
        value.extend_from_within(..DRAWN);
    }
}

/// Makes the records of one part.
pub(super) fn populate_part(config: &Config, seed: u64, part: u64, sink: &mut dyn RowSink) {
    let rows = part_rows(config.records.into(), part);
    sink.table(
        "usertable",
        &[
            "ycsb_key", "field0", "field1", "field2", "field3", "field4", "field5", "field6",
            "field7", "field8", "field9",
        ],
        rows.end - rows.start,
    );
    let random = &mut Random::stream(seed, part);
    let mut row = vec![Value::Null; FIELDS as usize + 1];
    for number in rows {
        row[0] = Value::Integer(number as i32 + 1);
        for field in &mut row[1..] {
            draw_value(text(field), random);
        }
        sink.row(&row);
    }
}
