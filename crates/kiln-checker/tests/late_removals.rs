//! Entries that go some time after their rows did: under a protocol that keeps versions, ranges go
//! on meeting them for a while. The judge's work grows with the events all the same.

mod common;

use common::{Tape, judge, names};
use kiln_checker::Order::{Serializable, Strict};
use kiln_checker::{HistoryError, Options, Order, Report, check};
use kiln_history::{History, WriteKind};

/// Rows 100 to 100 + ROWS are deleted.
const ROWS: u64 = 2_000;
const FIRST: u64 = 100;
/// A row that the middle deletion changes too.
const OTHER: u64 = 1;
const MIDDLE: u64 = FIRST + ROWS / 2;

/// Rows are deleted one after the other, and after each deletion a range over all of them is read.
/// It meets the entries in `met` that were there at first, and finds their rows in this version: 10
/// as they were before, 20 deleted. The last reader reads the other row as it was before the middle
/// deletion, if `is_old`.
fn rows_that_go(order: Order, met: &[u64], version: u64, is_old: bool) -> Report {
    judge(&history(met, version, is_old), order)
}

fn history(met: &[u64], version: u64, is_old: bool) -> History {
    let key = |object: u64| u16::try_from(object).expect("few rows").to_be_bytes();
    let mut tape = Tape::new(2);
    for object in FIRST..FIRST + ROWS {
        tape.begin(0);
        tape.write(0, object, WriteKind::Delete, &[]);
        tape.install(0, object, 10, 20);
        tape.goes(0, object, &key(object));
        if object == MIDDLE {
            tape.update(0, OTHER, (10, 11), &[(0, 1)]);
        }
        tape.commit(0);
        tape.begin(1);
        let range = tape.range_begin(1, &key(FIRST), &key(u16::MAX.into()));
        for met in met.iter().filter(|met| **met <= object) {
            tape.met(1, range, *met);
            match version {
                10 => tape.read(1, *met, 10, &[]),
                _ => tape.read_absent(1, *met, version),
            }
        }
        // The rows that are not deleted yet lie behind the stop.
        tape.range_stop(1, range, &key(object + 1), false);
        if is_old && object + 1 == FIRST + ROWS {
            tape.read(1, OTHER, 10, &[(0, 9)]);
        }
        tape.commit(1);
    }
    tape.history()
}

#[test]
fn an_entry_that_stays_costs_later_ranges_little() {
    for (order, version) in [(Strict, 20), (Serializable, 20), (Serializable, 10)] {
        let report = rows_that_go(order, &[FIRST, MIDDLE + 500], version, false);
        assert!(report.is_serializable(), "{report}");
        // Each deletion with each range after it would be a million.
        assert!(report.edges < 50 * ROWS, "{report}");
    }
}

#[test]
fn a_range_comes_after_the_removals_around_those_whose_entries_it_met() {
    // The last reader did not meet the middle row, so it cannot have seen the other as it was
    // before.
    for met in [
        &[FIRST][..],
        &[],
        &[FIRST, MIDDLE - 1, MIDDLE + 1, MIDDLE + 500],
    ] {
        for version in [10, 20] {
            let report = rows_that_go(Serializable, met, version, true);
            assert_eq!(names(&report), ["G-single"], "{met:?} {version}: {report}");
        }
    }
    // It met that too, as it was before.
    for met in [&[MIDDLE][..], &[FIRST, MIDDLE - 1, MIDDLE, MIDDLE + 1]] {
        let report = rows_that_go(Serializable, met, 10, true);
        assert!(report.is_serializable(), "{met:?}: {report}");
    }
}

#[test]
fn a_history_is_refused_or_judged_whatever_memory_there_is() {
    let history = history(&[FIRST, MIDDLE + 500], 20, true);
    let (mut refused, mut judged) = (0, 0);
    for memory_bytes in (10..32).map(|power| 1 << power) {
        let options = Options {
            order: Serializable,
            threads: 2,
            memory_bytes,
        };
        match check(&history, &options) {
            Err(HistoryError::NoMemory { bytes }) => {
                assert_eq!(bytes, memory_bytes);
                assert_eq!(judged, 0, "less memory was enough");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
            Ok(report) => {
                assert_eq!(names(&report), ["G-single"], "{report}");
                judged += 1;
            }
        }
    }
    assert!(
        refused > 3 && judged > 3,
        "{refused} refused, {judged} judged"
    );
}
