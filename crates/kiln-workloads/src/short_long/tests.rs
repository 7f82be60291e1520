use super::*;
use crate::Workload;
use crate::testing::{calls, integer, integers};

fn workload(settings: &[(&str, &str)]) -> Workload {
    let mut workload = Workload::by_name("short-long").unwrap();
    for (option, value) in settings {
        workload.set(option, value).unwrap();
    }
    workload
}

#[test]
fn the_contention_index_gives_the_number_of_hot_records() {
    for (index, hot) in [("1", 1), ("0.01", 100), ("0.0003", 3_333)] {
        let workload = workload(&[("contention-index", index)]);
        let Workload::ShortLong(config) = &workload else {
            panic!("{workload:?}");
        };
        assert_eq!(config.choice.hot_records, hot);
        let mut greatest = 0;
        for (_, arguments) in calls(&workload, 5, 2_000) {
            let ids = integers(&arguments[1]);
            greatest = greatest.max(ids[0]);
            assert!(ids[1..].iter().all(|id| *id > i64::from(hot)));
        }
        assert!(greatest <= i64::from(hot) && greatest > i64::from(hot / 2));
        // What is shown gives the same again.
        let mut again = Workload::by_name("short-long").unwrap();
        for option in workload.options() {
            again.set(option.name, &option.value).unwrap();
        }
        assert_eq!(again.options(), workload.options());
    }
    let message = Workload::by_name("short-long")
        .unwrap()
        .set("contention-index", "0")
        .unwrap_err();
    assert!(message.contains("contention-index is \"0\""), "{message}");
}

#[test]
fn transactions_are_short_or_long() {
    for (percent, expected) in [("0", 0..=0), ("25", 450..=550), ("100", 2_000..=2_000)] {
        let drawn = calls(
            &workload(&[("long-percent", percent), ("computation", "7")]),
            5,
            2_000,
        );
        let long = drawn.iter().filter(|(call, _)| call.procedure == LONG);
        assert!(
            long.clone()
                .all(|(_, arguments)| integer(&arguments[2]) == 7)
        );
        assert!(expected.contains(&long.count()), "{percent}");
    }
}
