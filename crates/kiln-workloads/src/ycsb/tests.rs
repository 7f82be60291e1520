use super::*;
use crate::Workload;
use crate::testing::{Rows, calls, integers};
use kiln_storage::types::Value;

fn is_whole(value: &Value) -> bool {
    let Value::Text(text) = value else {
        return false;
    };
    text.len() == 100 && *text == text[..20].repeat(5)
}

#[test]
fn every_record_has_ten_whole_fields() {
    let config = Config {
        records: 20_000,
        ..Config::default()
    };
    let rows = Rows::populated(&Workload::Ycsb(config), 3);
    let keys = rows.integers("usertable", "ycsb_key");
    assert!(keys.into_iter().eq(1..=20_000));
    for row in rows.of("usertable") {
        assert_eq!(row.len(), 11);
        assert!(row[1..].iter().all(is_whole));
    }
}

#[test]
fn mixes_have_their_shares_of_writes() {
    for (mix, percent, deviation) in [(Mix::A, 50.0, 1.0), (Mix::B, 5.0, 0.5), (Mix::C, 0.0, 0.0)] {
        let config = Config {
            mix,
            ..Config::default()
        };
        let (mut writes, mut all) = (0, 0);
        for (call, arguments) in calls(&Workload::Ycsb(config), 5, 2_000) {
            let operations = integers(&arguments[1]);
            assert_eq!(operations.len(), 16);
            let writing = operations.iter().filter(|o| (10..20).contains(*o)).count();
            assert_eq!(call.procedure == READ_WRITE, writing > 0);
            assert!(writing == 0 || is_whole(&arguments[2]));
            writes += writing;
            all += operations.len();
        }
        let found = 100.0 * writes as f64 / all as f64;
        assert!((found - percent).abs() <= deviation, "{mix:?}: {found} %");
    }
}

#[test]
fn keys_of_a_transaction_are_distinct_and_skewed() {
    let config = Config {
        records: 1_000,
        ..Config::default()
    };
    let mut ones = 0;
    for (_, arguments) in calls(&Workload::Ycsb(config), 5, 1_000) {
        let mut keys = integers(&arguments[0]);
        ones += keys.iter().filter(|key| **key == 1).count();
        assert!(keys.iter().all(|key| (1..=1_000).contains(key)));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 16);
    }
    // One draw in 7.7 is of key 1, and a transaction has at most one of those.
    assert!((800..=1_000).contains(&ones), "{ones}");

    // As many operations as records, under a skew that draws almost always the same.
    let config = Config {
        records: 16,
        theta: 10.0,
        ..Config::default()
    };
    for (_, arguments) in calls(&Workload::Ycsb(config), 5, 100) {
        let mut keys = integers(&arguments[0]);
        keys.sort_unstable();
        assert!(keys.into_iter().eq(1..=16));
    }
}

#[test]
fn reads_are_of_one_field_or_of_all() {
    for (reads, expected) in [(Reads::OneField, 0..10), (Reads::AllFields, 20..21)] {
        let config = Config {
            mix: Mix::C,
            reads,
            ..Config::default()
        };
        let mut operations = std::collections::BTreeSet::new();
        for (_, arguments) in calls(&Workload::Ycsb(config), 5, 100) {
            operations.extend(integers(&arguments[1]));
        }
        assert!(operations.into_iter().eq(expected));
    }
}

#[test]
fn settings_are_checked() {
    let mut workload = Workload::by_name("ycsb").unwrap();
    let message = workload.set("mix", "D").unwrap_err();
    assert_eq!(message, "mix is \"D\", but must be A, B or C");
    workload.set("records", "10").unwrap();
    assert!(
        workload
            .validate()
            .unwrap_err()
            .contains("operations is 16")
    );
}
