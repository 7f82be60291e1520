use super::*;
use crate::Workload;
use crate::testing::{Rows, calls, integers};

#[test]
fn the_population_is_what_the_audit_expects() {
    let workload = Workload::by_name("strife-hot").unwrap().small();
    let rows = Rows::populated(&workload, 3);
    assert_eq!(rows.count(), 24);
    for row in rows.of("records") {
        assert_eq!(row.len(), 22);
        assert_eq!((&row[2], &row[21]), (&Value::BigInt(0), &Value::BigInt(0)));
        assert_eq!((&row[3], &row[20]), (&Value::BigInt(2), &Value::BigInt(19)));
    }
}

#[test]
fn a_transaction_has_one_hot_record_and_few_remote_ones() {
    let workload = Workload::by_name("strife-hot").unwrap();
    let mut homes = std::collections::BTreeSet::new();
    let mut most = 0;
    for (_, arguments) in calls(&workload, 5, 2_000) {
        let (partitions, ids) = (integers(&arguments[0]), integers(&arguments[1]));
        assert_eq!((partitions.len(), ids.len()), (10, 10));
        // A hundred hot records in thirty partitions: at most four in each.
        assert!(ids[0] <= 4 && ids[1..].iter().all(|id| *id > 4));
        homes.insert(partitions[0]);
        let remote = partitions.iter().filter(|p| **p != partitions[0]).count();
        most = most.max(remote);
    }
    assert_eq!((homes.len(), most), (30, 3));
}

#[test]
fn updates_are_counted_by_records() {
    let workload = Workload::by_name("strife-hot").unwrap();
    let mut terminal = workload.terminals(5, 1).remove(0);
    for (call, _) in calls(&workload, 5, 7) {
        terminal.committed::<Vec<Value>>(call, &[]);
    }
    let checks = workload.closing_checks(5, terminal.totals());
    assert_eq!(checks[0].expected, count(70));
    // A hundred thousand, but for those that thirty partitions cannot share.
    assert_eq!(checks[1].expected, count(99_990));
}
