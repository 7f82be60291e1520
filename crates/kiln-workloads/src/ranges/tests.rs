use super::*;
use crate::Workload;
use crate::testing::{Rows, calls, integer};

fn workload(settings: &[(&str, &str)]) -> Workload {
    let mut workload = Workload::by_name("ranges").unwrap();
    for (option, value) in settings {
        workload.set(option, value).unwrap();
    }
    workload
}

#[test]
fn the_ends_of_a_range_share_as_many_bits_as_they_should() {
    for (shared, mean) in [(16, 1.0..=1.0), (11, 16.5..=17.5), (7, 245.0..=270.0)] {
        let workload = workload(&[("shared-bits", &shared.to_string())]);
        let mut sum = 0;
        for (call, arguments) in calls(&workload, 5, 4_000) {
            assert_eq!(call.procedure, UPDATE);
            let (first, last) = (integer(&arguments[0]), integer(&arguments[1]));
            assert!((0..1 << 16).contains(&first) && (first..1 << 16).contains(&last));
            let common = ((first ^ last) as u16).leading_zeros();
            assert_eq!(common, shared, "{first:016b} {last:016b}");
            sum += last - first + 1;
        }
        let mean_drawn = sum as f64 / 4_000.0;
        assert!(mean.contains(&mean_drawn), "{shared}: {mean_drawn}");
    }
}

#[test]
fn all_kinds_are_drawn_as_often_as_they_should() {
    let workload = workload(&[
        ("read-percent", "50"),
        ("replace-percent", "25"),
        ("delayed-percent", "10"),
        ("computation", "3"),
    ]);
    let (mut kinds, mut delayed) = ([0; 3], 0);
    for (call, arguments) in calls(&workload, 5, 4_000) {
        kinds[call.procedure.0] += 1;
        match integer(&arguments[2]) {
            3 => {}
            2_003 => delayed += 1,
            other => panic!("{other} rounds"),
        }
    }
    assert!((1_900..2_100).contains(&kinds[READ.0]), "{kinds:?}");
    assert!((900..1_100).contains(&kinds[REPLACE.0]), "{kinds:?}");
    assert!((340..460).contains(&delayed), "{delayed}");
}

#[test]
fn all_keys_are_there() {
    let rows = Rows::populated(&workload(&[("bits", "9")]), 3);
    let ids = rows.integers("entries", "entry_id").into_iter();
    assert!(ids.eq(0..512));
}

#[test]
fn settings_are_checked() {
    let message = workload(&[("bits", "4")]).validate().unwrap_err();
    assert_eq!(message, "shared-bits is 11, but a key has 4 bits");
    let message = workload(&[("read-percent", "60"), ("replace-percent", "60")])
        .validate()
        .unwrap_err();
    assert!(message.contains("more than 100"), "{message}");
}
