use super::*;
use crate::Workload;
use crate::testing::{Rows, calls, integers};

#[test]
fn records_are_a_thousand_bytes_and_counted_by_partition() {
    let mut config = Config::read_modify_write();
    config.choice.records = 40_001;
    config.choice.partitions = 4;
    let rows = Rows::populated(&Workload::Rmw(config), 3);
    assert_eq!(rows.count(), 40_000);
    let keys = rows.integers("records", "partition_id").into_iter();
    let keys = keys.zip(rows.integers("records", "record_id"));
    let expected = (1..=4).flat_map(|partition| (1..=10_000).map(move |id| (partition, id)));
    assert!(keys.eq(expected));
    for row in rows.of("records") {
        let bytes = |value: &Value| match value {
            Value::SmallInt(_) => 2,
            Value::Integer(_) => 4,
            Value::BigInt(_) => 8,
            Value::Text(text) => text.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(row.iter().map(bytes).sum::<usize>(), 1_000);
    }
}

#[test]
fn the_defaults_are_those_of_orthrus() {
    for (workload, procedure) in [
        (Workload::by_name("rmw").unwrap(), MODIFY),
        (Workload::by_name("read-only").unwrap(), READ),
    ] {
        for (call, arguments) in calls(&workload, 5, 1_000) {
            assert_eq!(call.procedure, procedure);
            let ids = integers(&arguments[1]);
            assert_eq!(ids.len(), 10);
            assert!(ids[..2].iter().all(|id| *id <= 64));
            assert!(ids[2..].iter().all(|id| *id > 64));
        }
    }
}

#[test]
fn a_mix_modifies_as_many_as_it_says() {
    let mut config = Config::read_modify_write();
    config.reads = 3;
    let mut terminal = Workload::Rmw(config.clone()).terminals(5, 1).remove(0);
    let mut places = [0; 10];
    for (call, arguments) in calls(&Workload::Rmw(config.clone()), 5, 1_000) {
        assert_eq!(call.procedure, MIX);
        let modified = integers(&arguments[2]);
        assert_eq!(modified.iter().sum::<i64>(), 7);
        for (place, modified) in places.iter_mut().zip(modified) {
            *place += modified;
        }
        terminal.committed::<Vec<Value>>(call, &[]);
    }
    assert!(places.iter().all(|count| (600..800).contains(count)));
    let checks = closing_checks(&config, terminal.totals());
    assert_eq!(checks[0].expected, count(7_000));
}

#[test]
fn settings_are_checked() {
    let mut workload = Workload::by_name("read-only").unwrap();
    let message = workload.set("reads", "1").unwrap_err();
    assert!(message.starts_with("read-only has no option \"reads\""));
    let mut workload = Workload::by_name("rmw").unwrap();
    workload.set("reads", "11").unwrap();
    assert!(
        workload
            .validate()
            .unwrap_err()
            .contains("operations is 10")
    );
}
