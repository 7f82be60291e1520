use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::Workload;
use crate::testing::{Rows, calls, integer};
use kiln_storage::types::Value;

fn length(value: &Value) -> i64 {
    match value {
        Value::Text(text) => text.len() as i64,
        other => panic!("{other:?} is no text"),
    }
}

#[test]
fn pages_revisions_texts_and_users_agree() {
    let workload = Workload::by_name("wikipedia").unwrap();
    let rows = Rows::populated(&workload, 3);
    assert_eq!(rows.of("page").count(), 1_000);
    assert_eq!(rows.of("useracct").count(), 2_000);
    let texts: BTreeMap<i64, (i64, i64)> = rows
        .of("text")
        .map(|row| (integer(&row[0]), (integer(&row[3]), length(&row[1]))))
        .collect();
    let mut edits = BTreeMap::new();
    let mut latest = BTreeMap::new();
    for row in rows.of("revision") {
        let [id, page, text_id] = [0, 1, 2].map(|column| integer(&row[column]));
        assert_eq!(texts[&text_id], (page, integer(&row[9])));
        latest.insert(page, (id, integer(&row[9])));
        *edits.entry(integer(&row[4])).or_insert(0) += 1;
    }
    assert_eq!(texts.len() as u64, revisions(&Config::default(), 3));
    let mut titles = BTreeSet::new();
    for row in rows.of("page") {
        assert_eq!(
            latest[&integer(&row[0])],
            (integer(&row[8]), integer(&row[9]))
        );
        assert!(titles.insert((integer(&row[1]), row[2].to_string())));
    }
    for row in rows.of("useracct") {
        let expected = edits.get(&integer(&row[0])).copied().unwrap_or(0);
        assert_eq!(integer(&row[6]), expected);
    }
    let watched: BTreeSet<(i64, i64, String)> = rows
        .of("watchlist")
        .map(|row| (integer(&row[0]), integer(&row[1]), row[2].to_string()))
        .collect();
    assert_eq!(watched.len(), rows.of("watchlist").count());
    for (user, namespace, title) in &watched {
        assert!(*namespace != 0 || watched.contains(&(*user, 1, title.clone())));
    }
    let mean = texts.values().map(|(_, length)| length).sum::<i64>() / texts.len() as i64;
    assert!((1_600..2_400).contains(&mean), "{mean}");
}

#[test]
fn the_mix_is_that_of_oltp_bench() {
    let workload = Workload::by_name("wikipedia").unwrap();
    let drawn = calls(&workload, 5, 100_000);
    let mut counts = [0_usize; 5];
    for (call, _) in &drawn {
        counts[call.procedure.0] += 1;
    }
    // Each update comes with the reading before it.
    let transactions = drawn.len() - counts[UPDATE_PAGE.0];
    for (procedure, weight, deviation) in [
        (ADD_WATCH_LIST, 0.07, 0.04),
        (REMOVE_WATCH_LIST, 0.07, 0.04),
        (UPDATE_PAGE, 7.6725, 0.4),
        (GET_PAGE_ANONYMOUS, 91.2656 + 7.6725, 0.4),
        (GET_PAGE_AUTHENTICATED, 0.9219, 0.15),
    ] {
        let percent = 100.0 * counts[procedure.0] as f64 / transactions as f64;
        assert!(
            (percent - weight).abs() < deviation,
            "{procedure:?}: {percent} %"
        );
    }
    let mut ids = BTreeSet::new();
    let (mut anonymous, mut updates) = (0, 0);
    for (position, (call, arguments)) in drawn.iter().enumerate() {
        if call.procedure != UPDATE_PAGE {
            continue;
        }
        let (before, read) = &drawn[position - 1];
        assert_eq!(before.procedure, GET_PAGE_ANONYMOUS);
        assert_eq!(read[1..], arguments[1..3]);
        assert!(ids.insert(integer(&arguments[6])));
        anonymous += usize::from(integer(&arguments[3]) == 0);
        updates += 1;
    }
    assert!((23..29).contains(&(100 * anonymous / updates)));
}

#[test]
fn calls_name_pages_as_the_population_does() {
    let workload = Workload::by_name("wikipedia").unwrap().small();
    let rows = Rows::populated(&workload, 3);
    let pages: BTreeSet<(i64, String)> = rows
        .of("page")
        .map(|row| (integer(&row[1]), row[2].to_string()))
        .collect();
    let users: BTreeMap<i64, String> = rows
        .of("useracct")
        .map(|row| (integer(&row[0]), row[1].to_string()))
        .collect();
    for (call, arguments) in calls(&workload, 3, 5_000) {
        assert!(pages.contains(&(integer(&arguments[1]), arguments[2].to_string())));
        if call.procedure == UPDATE_PAGE && integer(&arguments[3]) > 0 {
            assert_eq!(users[&integer(&arguments[3])], arguments[4].to_string());
        }
    }
}
