//! Cycles in words: a line for each step from one transaction to the next.

use kiln_history::{EntryChange, Event, IndexId, Key};

use crate::attempts::Attempts;
use crate::choices::Choice;
use crate::graph::{EXISTENCE, Edge, Kind, Reason};
use crate::names::{Names, key, version};

/// The lines of a cycle.
pub(crate) fn cycle(attempts: &Attempts<'_>, names: &Names<'_>, edges: &[Edge]) -> Vec<String> {
    let is_transaction = |node: u32| (node as usize) < attempts.all.len();
    // A step begins at a transaction and goes over auxiliary nodes to the next one.
    let begin = edges
        .iter()
        .position(|edge| is_transaction(edge.from))
        .unwrap_or(0);
    let rotated: Vec<&Edge> = edges[begin..].iter().chain(&edges[..begin]).collect();
    let mut steps: Vec<(u32, u32, Reason)> = Vec::new();
    let mut open: Option<(u32, Reason)> = None;
    for edge in rotated {
        let (from, reason) = match open.take() {
            // From an auxiliary node, the reason is that of the step's first edge that has one.
            Some((from, Reason::Rest)) => (from, edge.reason),
            Some(step) => step,
            None => (edge.from, edge.reason),
        };
        match is_transaction(edge.to) {
            true => steps.push((from, edge.to, reason)),
            false => open = Some((from, reason)),
        }
    }
    // It begins with the transaction that was first in time.
    let first = (0..steps.len()).min_by_key(|step| attempts.get(steps[*step].0).responded);
    steps.rotate_left(first.unwrap_or(0));
    steps
        .iter()
        .map(|(from, to, reason)| step(attempts, names, *from, *to, reason))
        .collect()
}

fn step(attempts: &Attempts<'_>, names: &Names<'_>, from: u32, to: u32, reason: &Reason) -> String {
    let (first, second) = (names.attempt(from), names.attempt(to));
    match reason {
        Reason::Item {
            kind,
            object,
            column,
            versions: (before, after),
        } => {
            let what = match *column {
                EXISTENCE => format!("{} (its existence)", names.object(*object)),
                column => names.column(*object, column),
            };
            let at = match *before {
                0 => "as it was at first".to_owned(),
                before => format!("at version {}", version(before)),
            };
            let after = version(*after);
            match kind {
                Kind::WriteWrite => {
                    format!("{first} wrote {what} {at}; then {second} replaced it by {after}")
                }
                Kind::WriteRead if version(*before) == after => {
                    format!("{first} wrote {what} {at}; then {second} read it")
                }
                Kind::WriteRead => format!(
                    "{first} wrote {what} {at}; then {second} read it when the row was at {after}"
                ),
                _ => format!("{first} read {what} {at}; then {second} replaced it by {after}"),
            }
        }
        Reason::Range { kind, index } => match kind {
            Kind::RangeReadWrite => match conflict(attempts, from, to, *index, true) {
                Some(conflict) => format!(
                    "{first} read {}; then {second} {}",
                    conflict.range(names, *index),
                    conflict.change(names)
                ),
                None => format!(
                    "{first} read a range of {}; then {second} changed it",
                    names.index(*index)
                ),
            },
            _ => match conflict(attempts, to, from, *index, false) {
                Some(conflict) => format!(
                    "{first} {}; then {second} read {}",
                    conflict.change(names),
                    conflict.range(names, *index)
                ),
                None => format!(
                    "{first} changed {}; then {second} read the range",
                    names.index(*index)
                ),
            },
        },
        Reason::RealTime | Reason::Rest => {
            let end = attempts.get(from).responded.0;
            let begin = attempts.get(to).invoked.0;
            format!("{first} was over (at moment {end}) before {second} began (at {begin})")
        }
    }
}

/// Why a cycle by what a range did not meet cannot be avoided.
pub(crate) fn choice(names: &Names<'_>, choice: &Choice) -> String {
    let (reader, object) = (names.attempt(choice.reader), names.object(choice.object));
    let (added, removed) = (names.attempt(choice.added), names.attempt(choice.removed));
    let index = names.index(choice.index);
    format!(
        "while {reader} read {index} and did not meet {object}, {added} added it and {removed} removed it: the \
         reader comes before the one or after the other, and each closes a cycle"
    )
}

/// A range and a change of an entry in it.
struct Conflict<'a> {
    low: Key<'a>,
    high: Key<'a>,
    met: bool,
    object: u32,
    key: Key<'a>,
    change: EntryChange,
}

impl Conflict<'_> {
    fn range(&self, names: &Names<'_>, index: IndexId) -> String {
        let met = if self.met { "with" } else { "without" };
        format!(
            "{} from {} to {} {met} {}",
            names.index(index),
            key(self.low),
            key(self.high),
            names.object(self.object)
        )
    }

    fn change(&self, names: &Names<'_>) -> String {
        let change = match self.change {
            EntryChange::Added => "added",
            EntryChange::Removed => "removed",
        };
        format!(
            "{change} {} under key {}",
            names.object(self.object),
            key(self.key)
        )
    }
}

struct ReadRange<'a> {
    number: u32,
    low: Key<'a>,
    high: Key<'a>,
    from: u64,
    to: u64,
    met: Vec<u32>,
}

/// What connects a reader of ranges of an index with an attempt that changed the index.
fn conflict<'a>(
    attempts: &Attempts<'a>,
    reader: u32,
    writer: u32,
    index: IndexId,
    reader_first: bool,
) -> Option<Conflict<'a>> {
    let mut ranges: Vec<ReadRange<'a>> = Vec::new();
    for (_, event) in attempts.events(reader) {
        match event {
            Event::RangeBegin {
                range,
                index: of,
                low,
                high,
                from,
            } if of == index => ranges.push(ReadRange {
                number: range,
                low,
                high,
                from: from.0,
                to: u64::MAX,
                met: Vec::new(),
            }),
            Event::Met { range, object } => {
                if let Some(range) = ranges.iter_mut().find(|open| open.number == range) {
                    range.met.push(attempts.number(object));
                }
            }
            Event::RangeEnd { range, to, .. } => {
                if let Some(range) = ranges.iter_mut().find(|open| open.number == range) {
                    range.to = to.0;
                }
            }
            _ => {}
        }
    }
    let mut found = None;
    for (_, event) in attempts.events(writer) {
        let Event::Entry {
            index: of,
            change,
            object,
            window,
            key,
        } = event
        else {
            continue;
        };
        let object = attempts.number(object);
        for range in ranges.iter().filter(|_| of == index) {
            let is_within = range.low <= key && (key <= range.high || key.starts_with(range.high));
            let is_possible = match reader_first {
                true => window.to.0 > range.from,
                false => window.from.0 < range.to,
            };
            if !is_within || !is_possible {
                continue;
            }
            let met = range.met.contains(&object);
            // What a range did not show must have been added later, or removed before.
            let explains = met == ((change == EntryChange::Removed) == reader_first);
            let conflict = Conflict {
                low: range.low,
                high: range.high,
                met,
                object,
                key,
                change,
            };
            if explains {
                return Some(conflict);
            }
            found.get_or_insert(conflict);
        }
    }
    found
}
