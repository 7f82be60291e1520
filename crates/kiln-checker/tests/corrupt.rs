//! Logs that no worker recorded are refused, with the place.

mod common;

use common::Tape;
use kiln_checker::{HistoryError, Options, check};
use kiln_history::History;

#[track_caller]
fn assert_refused(history: &History, reason: &str) {
    match check(history, &Options::default()) {
        Err(HistoryError::Corrupt { worker, corrupt }) => {
            assert_eq!((worker, corrupt.reason), (0, reason));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_history_is_serializable() {
    let report = check(&History::default(), &Options::default()).unwrap();
    assert!(report.is_serializable());
    assert_eq!(
        report.to_string(),
        "strictly serializable: yes (0 transactions, 0 edges)"
    );
}

#[test]
fn events_outside_of_attempts() {
    let mut tape = Tape::new(1);
    tape.read(0, 1, 10, &[]);
    assert_refused(&tape.history(), "an event outside of any attempt");
    let mut tape = Tape::new(1);
    tape.begin(0);
    tape.commit(0);
    tape.commit(0);
    assert_refused(&tape.history(), "an event outside of any attempt");
}

#[test]
fn attempts_that_do_not_end() {
    let mut tape = Tape::new(1);
    tape.begin(0);
    assert_refused(&tape.history(), "the log ends within an attempt");
    let mut tape = Tape::new(1);
    tape.begin(0);
    tape.begin(0);
    assert_refused(&tape.history(), "an attempt begins within another");
}

#[test]
fn ranges_that_are_not_open() {
    let mut tape = Tape::new(1);
    tape.begin(0);
    tape.met(0, 3, 1);
    assert_refused(
        &tape.history(),
        "an entry was met in a range that is not read",
    );
    let mut tape = Tape::new(1);
    tape.begin(0);
    tape.range_end(0, 3);
    assert_refused(&tape.history(), "a range ends that is not read");
    let mut tape = Tape::new(1);
    tape.begin(0);
    tape.range_begin(0, b"a", b"b");
    tape.commit(0);
    assert_refused(&tape.history(), "a commit while a range is being read");
}

#[test]
fn a_worker_that_ends_a_call_before_it_begins() {
    let mut tape = Tape::new(1);
    tape.begin(0);
    tape.commit(0);
    let mut history = tape.history();
    history.logs[0][1] = u64::MAX;
    assert_refused(&history, "an attempt ends before its call begins");
}

#[test]
fn events_that_are_cut_off() {
    let mut tape = Tape::new(1);
    tape.begin(0);
    tape.read(0, 1, 10, &[(1, 1)]);
    tape.commit(0);
    let mut history = tape.history();
    history.logs[0].truncate(4);
    assert_refused(&history, "the log ends within an event");
    let text = check(&history, &Options::default())
        .unwrap_err()
        .to_string();
    assert_eq!(
        text,
        "the log of worker 0: corrupted event at word 2: the log ends within an event"
    );
}
