//! Bulk loading and the memory report.

use crate::common::*;
use kiln_engine::{LoadReport, Protocol};
use kiln_platform::thread;
use kiln_storage::error::SqlState;
use kiln_storage::types::Value;

fn row(id: i64) -> [Value; 3] {
    [
        Value::BigInt(id),
        Value::Text(format!("owner {id}")),
        Value::BigInt(1),
    ]
}

const COLUMNS: [&str; 3] = ["id", "owner", "balance"];

#[test]
fn several_loaders_fill_a_table_under_every_protocol() {
    for protocol in Protocol::serializable() {
        let engine = bank(small(protocol), 0, 0);
        thread::scope(|scope| {
            for thread in 0..3_i64 {
                let engine = &engine;
                scope.spawn(move || {
                    let rows = (0..2_000).map(|at| row(thread * 2_000 + at));
                    let report = engine.load("account", &COLUMNS, rows);
                    let report: LoadReport = report.expect("all are new");
                    assert_eq!(report.rows, 2_000);
                });
            }
        });
        assert_eq!(number(&engine, "total", &[]), 6_000, "{protocol}");
        let memory = engine.memory();
        let account = &memory[0];
        assert_eq!(account.rows, 6_000);
        let raw = engine.raw_bytes().expect("nothing runs");
        let (name, raw_bytes) = &raw[0];
        assert_eq!(name, "account");
        assert!(*raw_bytes >= 6_000 * 16, "{raw:?}");
        assert!(account.record_bytes >= *raw_bytes, "{account:?}");
        assert!(
            account.reserved_bytes >= account.record_bytes,
            "{account:?}"
        );
        assert_eq!(account.indexes[0].entries, 6_000);
        assert!(account.index_bytes() >= 6_000 * 16, "{account:?}");
    }
}

#[test]
fn a_bad_row_is_told_and_its_batch_left_out() {
    let engine = bank(small(Protocol::Silo), 1, 0);
    let mut loader = engine
        .loader("account", &COLUMNS)
        .expect("the columns are there");
    for (values, state) in [
        (vec![1_i64.into()], SqlState::SYNTAX_ERROR),
        (
            vec![1_i64.into(), Value::Null, 0_i64.into()],
            SqlState::NOT_NULL_VIOLATION,
        ),
        (
            vec![1_i64.into(), "x".repeat(21).into(), 0_i64.into()],
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
        ),
        (
            vec![1_i64.into(), "x".into(), false.into()],
            SqlState::DATATYPE_MISMATCH,
        ),
    ] {
        assert_eq!(
            loader.row(&values).expect_err("it does not fit").state(),
            state
        );
    }
    // Narrower numbers and texts with blanks past the limit do fit.
    loader
        .row(&[1_i32.into(), format!("{:25}", "x").into(), 0_i16.into()])
        .expect("it fits");
    loader
        .row(&row(0))
        .expect("the loader has not looked at the key yet");
    let error = loader.finish().expect_err("account 0 is there");
    assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
    assert!(
        error
            .detail()
            .is_some_and(|detail| detail.contains("row 2 of the load")),
        "{error:#}"
    );
    assert_eq!(engine.memory()[0].rows, 1);
    for (columns, state) in [
        (vec!["id", "nonsense"], SqlState::UNDEFINED_COLUMN),
        (vec!["id", "id"], SqlState::DUPLICATE_COLUMN),
    ] {
        let error = engine
            .loader("account", &columns)
            .err()
            .expect("it is refused");
        assert_eq!(error.state(), state);
    }
    let error = engine.loader("nonsense", &[]).err().expect("it is refused");
    assert_eq!(error.state(), SqlState::UNDEFINED_TABLE);
    // The refused loaders gave their worker slots back.
    for _ in 0..200 {
        assert!(engine.loader("account", &["nonsense"]).is_err());
    }
    engine.session().expect("there is a worker slot");
}
