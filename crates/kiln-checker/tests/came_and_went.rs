//! A key is inserted and deleted while a range over it is read that does not meet it. The reader
//! comes before the insertion or after the deletion; what it depends on otherwise may exclude both.

mod common;

use common::{Tape, names};
use kiln_checker::Order::{Serializable, Strict};
use kiln_checker::{Order, Report};

/// Transaction 1 inserts a row and changes object 1, transaction 2 deletes the row and changes
/// object 2, while transaction 0 reads a range. It sees the first change or not, and the second or
/// not; whether it meets the row, and in which version, is told, too.
fn reader(order: Order, sees_first: bool, sees_second: bool, met: Option<u64>) -> Report {
    let mut tape = Tape::new(3);
    (0..3).for_each(|worker| tape.begin(worker));
    let range = tape.range_begin(0, b"a", b"m");
    tape.insert(1, 3, (30, 31), b"c", &[(1, 5)]);
    tape.update(1, 1, (10, 11), &[(1, 1)]);
    tape.commit(1);
    tape.delete(2, 3, (31, 32), b"c");
    tape.update(2, 2, (20, 21), &[(1, 2)]);
    if let Some(version) = met {
        tape.met(0, range, 3);
        match version {
            31 => tape.read(0, 3, 31, &[(1, 5)]),
            _ => tape.read_absent(0, 3, version),
        }
    }
    tape.range_end(0, range);
    match sees_first {
        true => tape.read(0, 1, 11, &[(1, 1)]),
        false => tape.read(0, 1, 10, &[(1, 9)]),
    }
    match sees_second {
        true => tape.read(0, 2, 21, &[(1, 2)]),
        false => tape.read(0, 2, 20, &[(1, 9)]),
    }
    tape.commit(0);
    tape.commit(2);
    tape.judge(order)
}

#[test]
fn a_reader_between_the_insertion_and_the_deletion_must_meet_the_row() {
    for order in [Serializable, Strict] {
        let report = reader(order, true, false, None);
        assert_eq!(names(&report), ["G-single"], "{report}");
        assert!(
            report.to_string().contains("and did not meet account[3]"),
            "{report}"
        );
        let report = reader(order, true, false, Some(31));
        assert!(report.is_serializable(), "{report}");
    }
}

#[test]
fn a_reader_before_the_insertion_or_after_the_deletion_does_not_meet_the_row() {
    for order in [Serializable, Strict] {
        for sees in [false, true] {
            for met in [None, Some(if sees { 32 } else { 30 })] {
                let report = reader(order, sees, sees, met);
                assert!(report.is_serializable(), "{report}");
            }
            // Had it met the row, it would be neither before nor after.
            let report = reader(order, sees, sees, Some(31));
            assert_eq!(names(&report), ["G-single"], "{report}");
        }
    }
}

/// Transactions 0 and 1 read a range each. 2 and 3 insert and delete a row in the first one, 4 and
/// 5 in the second; the readers meet neither. Of four dependencies one may be missing.
fn two_rows(missing: Option<usize>) -> Report {
    let mut tape = Tape::new(6);
    (0..6).for_each(|worker| tape.begin(worker));
    let ranges = [(0, b"a"), (1, b"b")].map(|(worker, key)| {
        let range = tape.range_begin(worker, key, key);
        (worker, range)
    });
    for (object, key, by) in [(3, b"a", 2), (4, b"b", 4)] {
        tape.insert(by, object, (30, 31), key, &[(1, 5)]);
        tape.delete(by + 1, object, (31, 32), key);
    }
    for (worker, range) in ranges {
        tape.range_end(worker, range);
    }
    // Who comes before whom. The first reader is past the insertion, so past the deletion. As the
    // second insertion comes before that, the second reader is past it, but not past the second
    // deletion.
    let before = [(2, 0), (4, 3), (0, 1), (1, 5)];
    for (number, (writer, reader)) in before.into_iter().enumerate() {
        let object = 5 + number as u64;
        tape.update(writer, object, (10, 11), &[(1, 1)]);
        if missing != Some(number) {
            tape.read(reader, object, 11, &[(1, 1)]);
        }
    }
    (0..6).for_each(|worker| tape.commit(worker));
    tape.judge(Serializable)
}

#[test]
fn what_one_reader_must_be_tells_about_another() {
    for missing in 0..4 {
        let report = two_rows(Some(missing));
        assert!(report.is_serializable(), "{missing}: {report}");
    }
    let report = two_rows(None);
    assert!(!report.is_serializable(), "{report}");
}

/// Rows that come and go while many ranges are read, and nothing says on which side the readers
/// are.
#[test]
fn many_choices_that_nothing_decides_are_accepted() {
    const READERS: usize = 50;
    let mut tape = Tape::new(READERS + 2);
    let ranges: Vec<u32> = (0..READERS)
        .map(|worker| {
            tape.begin(worker);
            tape.range_begin(worker, b"a", b"m")
        })
        .collect();
    let mut version = 10;
    for _ in 0..50 {
        for worker in [READERS, READERS + 1] {
            tape.begin(worker);
            match worker == READERS {
                true => tape.insert(worker, 3, (version, version + 1), b"c", &[(1, 5)]),
                false => tape.delete(worker, 3, (version, version + 1), b"c"),
            }
            version += 1;
            tape.commit(worker);
        }
    }
    for (worker, range) in ranges.into_iter().enumerate() {
        tape.range_end(worker, range);
        tape.commit(worker);
    }
    let report = tape.judge(Strict);
    assert!(report.is_serializable() && !report.is_open, "{report}");
}
