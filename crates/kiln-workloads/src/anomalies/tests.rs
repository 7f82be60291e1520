use super::*;
use crate::definition::DrawCalls;
use crate::testing::integers;
use crate::{ArgumentValues, Workload};
use std::collections::BTreeSet;

#[test]
fn every_operation_is_drawn_and_stamps_are_unique() {
    let config = Config::default();
    let mut arguments = ArgumentValues::default();
    let (mut kinds, mut stamps, mut procedures) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for worker in 0..3 {
        let mut terminal = Terminal::new(&config, 7, worker);
        for _ in 0..5_000 {
            let call = terminal.next(&mut arguments);
            procedures.insert(call.procedure);
            let values = arguments.values();
            assert_eq!(values.len(), PROCEDURES[call.procedure.0].parameters.len());
            if call.procedure != MIXED {
                continue;
            }
            let [mixed, ids, others] = [0, 1, 2].map(|position| integers(&values[position]));
            assert_eq!((mixed.len(), mixed.len()), (ids.len(), others.len()));
            assert!((1..=config.operations as usize).contains(&mixed.len()));
            assert!(
                ids.iter()
                    .all(|id| (1..=i64::from(config.keys)).contains(id))
            );
            let first = integers(&values[3])[0];
            for step in 1..=mixed.len() as i64 {
                assert!(stamps.insert(first + 2 * step));
                assert!(stamps.insert(first + 2 * step + 1));
            }
            kinds.extend(mixed);
        }
    }
    assert_eq!(kinds, (1..=15).collect());
    assert_eq!(procedures.len(), PROCEDURES.len());
}

#[test]
fn the_same_seed_gives_the_same_calls() {
    let calls = |seed| {
        let mut terminal = Terminal::new(&Config::default(), seed, 1);
        let mut arguments = ArgumentValues::default();
        let mut all = Vec::new();
        for _ in 0..100 {
            let call = terminal.next(&mut arguments);
            all.push((call, arguments.values().to_vec()));
        }
        all
    };
    assert!(calls(1) == calls(1));
    assert!(calls(1) != calls(2));
}

#[test]
fn settings_are_checked() {
    let mut workload = Workload::by_name("anomalies").unwrap();
    for (option, value) in [("keys", "1"), ("operations", "0"), ("abort-percent", "101")] {
        let message = workload.set(option, value).unwrap_err();
        assert!(message.starts_with(option), "{message}");
    }
    let message = workload.set("colour", "red").unwrap_err();
    assert!(message.contains("it has keys, operations, abort-percent"));
    workload.set("keys", "2").unwrap();
    workload.validate().unwrap();
}
