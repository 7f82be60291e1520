//! What is wrong with objects, in words; and who wrote a value that should not have been read.

use std::collections::HashMap;

use kiln_history::{Cell, Event};

use crate::attempts::{Attempts, Ending};
use crate::graph::NOBODY;
use crate::items::Finding;
use crate::names::{Names, version};
use crate::violation::{Anomaly, Violations};

/// The attempt that wrote a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Writer {
    /// An attempt whose write became a version.
    Committed(u32),
    /// An attempt that overwrote it before its end.
    Intermediate(u32),
    /// An attempt that did not commit.
    Uncommitted(u32),
}

/// A value: the object's address, the column in the log, and the fingerprint.
type Value = (u64, u16, u32);

/// Turns findings into violations.
pub(crate) fn report(
    attempts: &Attempts<'_>,
    names: &Names<'_>,
    findings: &[Finding],
    violations: &mut Violations,
) {
    let writers = writers(attempts, findings);
    for finding in findings {
        let (anomaly, line) = describe(attempts, names, &writers, finding);
        violations.add(anomaly, || vec![line]);
    }
}

fn value(attempts: &Attempts<'_>, object: u32, column: u32, print: u32) -> Value {
    let address = attempts.objects[object as usize];
    (address, (column - 1) as u16, print)
}

/// The attempts that wrote values that should not have been read; for each value the most telling
/// one.
fn writers(attempts: &Attempts<'_>, findings: &[Finding]) -> HashMap<Value, Writer> {
    let mut wanted: HashMap<Value, Option<Writer>> = HashMap::new();
    for finding in findings {
        if let Finding::Value {
            object,
            column,
            print,
            expected,
            ..
        } = finding
        {
            for print in [*print, *expected] {
                wanted.insert(value(attempts, *object, *column, print), None);
            }
        }
    }
    if wanted.is_empty() {
        return HashMap::new();
    }
    for attempt in 0..attempts.all.len() as u32 {
        for (_, event) in attempts.events(attempt) {
            let Event::Write { object, cells, .. } = event else {
                continue;
            };
            for cell in cells.iter().map(|word| Cell::from_word(*word)) {
                let value = (object.0, cell.column, cell.print);
                let Some(writer) = wanted.get_mut(&value) else {
                    continue;
                };
                let found = match attempts.get(attempt).ending {
                    Ending::Committed if is_last(attempts, attempt, value) => {
                        Writer::Committed(attempt)
                    }
                    Ending::Committed => Writer::Intermediate(attempt),
                    Ending::Rejected | Ending::Aborted => Writer::Uncommitted(attempt),
                };
                // An attempt that is repeated writes the same again: a committed write explains
                // more.
                *writer = Some(writer.map_or(found, |known| known.min(found)));
            }
        }
    }
    wanted
        .into_iter()
        .filter_map(|(value, writer)| Some((value, writer?)))
        .collect()
}

/// Whether an attempt left the column with this value.
fn is_last(attempts: &Attempts<'_>, attempt: u32, (address, column, print): Value) -> bool {
    let mut last = None;
    for (_, event) in attempts.events(attempt) {
        if let Event::Write { object, cells, .. } = event
            && object.0 == address
        {
            let cells = cells.iter().map(|word| Cell::from_word(*word));
            let of_column = cells.filter(|cell| cell.column == column);
            last = of_column.map(|cell| cell.print).next_back().or(last);
        }
    }
    last == Some(print)
}

fn describe(
    attempts: &Attempts<'_>,
    names: &Names<'_>,
    writers: &HashMap<Value, Writer>,
    finding: &Finding,
) -> (Anomaly, String) {
    match *finding {
        Finding::SameVersion {
            object,
            version: at,
            first,
            second,
        } => (
            Anomaly::SameVersionTwice,
            format!(
                "{} and {} both installed {} at version {}",
                names.attempt(first),
                names.attempt(second),
                names.object(object),
                version(at)
            ),
        ),
        Finding::ReplacedTwice {
            object,
            replaced,
            first,
            second,
        } => (
            Anomaly::ReplacedTwice,
            format!(
                "{} replaced {} at version {} by {}; {} replaced the same version by {}",
                names.attempt(first.0),
                names.object(object),
                version(replaced),
                version(first.1),
                names.attempt(second.0),
                version(second.1)
            ),
        ),
        Finding::Broken {
            object,
            attempt,
            replaced,
            version: at,
            current,
        } => (
            Anomaly::BrokenOrder,
            format!(
                "{} replaced {} at version {} by {}, but its version was {}",
                names.attempt(attempt),
                names.object(object),
                version(replaced),
                version(at),
                version(current)
            ),
        ),
        Finding::DidNotGrow {
            object,
            attempt,
            replaced,
            version: at,
        } => (
            Anomaly::VersionDidNotGrow,
            format!(
                "{} replaced {} at version {} by {}",
                names.attempt(attempt),
                names.object(object),
                version(replaced),
                version(at)
            ),
        ),
        Finding::UnknownVersion {
            object,
            attempt,
            version: at,
            current,
        } => (
            Anomaly::UnknownVersion,
            format!(
                "{} read {} at version {}, which nobody installed; the last one before is {}",
                names.attempt(attempt),
                names.object(object),
                version(at),
                version(current)
            ),
        ),
        Finding::OwnFuture {
            object,
            attempt,
            version: at,
        } => (
            Anomaly::UnknownVersion,
            format!(
                "{} read {} at version {}, which it installed itself afterwards",
                names.attempt(attempt),
                names.object(object),
                version(at)
            ),
        ),
        Finding::Existence {
            object,
            attempt,
            version: at,
            found,
            source,
        } => {
            let row = names.object(object);
            let found = match found {
                true => "found a row",
                false => "found no row",
            };
            let other = match source {
                NOBODY => "it was otherwise at first".to_owned(),
                source => format!("{} knows better", names.attempt(source)),
            };
            (
                Anomaly::WrongExistence,
                format!(
                    "{} {found} in {row} at version {}; {other}",
                    names.attempt(attempt),
                    version(at)
                ),
            )
        }
        Finding::Own {
            object,
            column,
            attempt,
        } => (
            Anomaly::OwnWriteNotSeen,
            format!(
                "{} read {} and did not find what it had written itself",
                names.attempt(attempt),
                names.column(object, column)
            ),
        ),
        Finding::Value {
            object,
            column,
            attempt,
            version: at,
            print,
            expected,
            source,
            is_learned,
        } => {
            let writer_of = |print| {
                writers
                    .get(&value(attempts, object, column, print))
                    .copied()
            };
            // Of two attempts that read different values in the same initial version, the one is
            // wrong whose value another attempt wrote later.
            let is_other =
                is_learned && writer_of(print).is_none() && writer_of(expected).is_some();
            let (reader, other, writer) = match is_other {
                true => (source, attempt, writer_of(expected)),
                false => (attempt, source, writer_of(print)),
            };
            let read = format!(
                "{} read {} at version {}",
                names.attempt(reader),
                names.column(object, column),
                version(at)
            );
            match writer {
                Some(Writer::Uncommitted(writer)) => (
                    Anomaly::AbortedRead,
                    format!(
                        "{read} and found what {} had written",
                        names.attempt(writer)
                    ),
                ),
                Some(Writer::Intermediate(writer)) => (
                    Anomaly::IntermediateRead,
                    format!(
                        "{read} and found what {} had written and overwrote itself later",
                        names.attempt(writer)
                    ),
                ),
                Some(Writer::Committed(writer)) => (
                    Anomaly::WrongValue,
                    format!(
                        "{read} and found what {} wrote at another version",
                        names.attempt(writer)
                    ),
                ),
                None => (
                    Anomaly::WrongValue,
                    format!(
                        "{read} and found what nobody wrote; {} {} something else there",
                        names.attempt(other),
                        if is_learned { "read" } else { "wrote" }
                    ),
                ),
            }
        }
    }
}
