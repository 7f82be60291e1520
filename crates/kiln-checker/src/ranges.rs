//! Dependencies by ranges: predicate reads against changes of index entries.

use std::collections::{BTreeMap, HashSet};

use kiln_history::{Event, IndexId, Key};

use crate::accesses::EntryEvent;
use crate::attempts::{Attempts, Ending};
use crate::budget::Budget;
use crate::choices::{BYTES_PER_CHOICE, Choice};
use crate::entries::{Absence, Auxiliary, Entries, Reading};
use crate::graph::{Edge, Kind, Reason, Sink};
use crate::names::{Names, key};
use crate::nodes::{Edges, Nodes, contains};
use crate::violation::{Anomaly, Violations};

/// The memory that a change of an entry takes, without the tree's nodes.
pub(crate) const BYTES_PER_CHANGE: usize = size_of::<EntryEvent<'_>>() + 72;

/// The changed entries of all indexes.
pub(crate) struct Ranges<'a> {
    entries: BTreeMap<IndexId, (Entries<'a>, Nodes)>,
    /// Entries that the attempt that added them took back.
    passing: HashSet<(IndexId, u32)>,
}

/// A range that an attempt is reading.
struct Open<'a> {
    number: u32,
    index: IndexId,
    low: Key<'a>,
    high: Key<'a>,
    from: u64,
    /// The objects that were met.
    met: Vec<u32>,
    /// Their versions then, by addresses, as far as those were read. An attempt may have read
    /// another version of an object before: of columns that did not change in between.
    versions: Vec<(u64, u64)>,
    /// The address of the one that was met last, while its version was not read.
    awaited: Option<u64>,
}

impl Open<'_> {
    fn read(&mut self, address: u64, version: u64) {
        if self.awaited == Some(address) {
            self.awaited = None;
            self.versions.push((address, version));
        }
    }

    /// The version in which the object at an address was first met.
    fn version(&self, address: u64) -> Option<u64> {
        let mut versions = self.versions.iter();
        let (_, version) = versions.find(|(met, _)| *met == address)?;
        Some(*version)
    }
}

impl<'a> Ranges<'a> {
    pub(crate) fn new(
        events: BTreeMap<IndexId, Vec<EntryEvent<'a>>>,
        mut passing: HashSet<(IndexId, u32)>,
    ) -> Ranges<'a> {
        let entries = events.into_iter().map(|(index, events)| {
            let mut pass = |object| {
                passing.insert((index, object));
            };
            (index, (Entries::new(events, &mut pass), Nodes::default()))
        });
        let entries = entries.collect();
        Ranges { entries, passing }
    }

    /// Finds the edges of all ranges, always in the same order, and returns what is no edge.
    pub(crate) fn add<S: Sink>(
        &mut self,
        attempts: &Attempts<'a>,
        names: &Names<'_>,
        budget: &Budget,
        (auxiliary, sink, violations): (&mut Auxiliary, &mut S, &mut Violations),
        watch: &mut dyn FnMut(f64),
    ) -> Vec<Choice> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let mut judge = Judge {
            attempts,
            names,
            auxiliary,
            sink,
            violations,
            passing: &self.passing,
            versions: Vec::new(),
            versions_of: None,
            singles: Vec::new(),
            cover: Vec::new(),
            kept: Vec::new(),
            choices: Vec::new(),
            budget,
        };
        let mut open: Vec<Open<'a>> = Vec::new();
        for number in 0..attempts.all.len() as u32 {
            if number.is_multiple_of(4096) {
                watch(f64::from(number) / attempts.all.len() as f64);
                if budget.is_exceeded() {
                    break;
                }
            }
            let attempt = attempts.get(number);
            if attempt.ending == Ending::Aborted || !attempt.ranges {
                continue;
            }
            open.clear();
            for (_, event) in attempts.events(number) {
                match event {
                    Event::RangeBegin {
                        range,
                        index,
                        low,
                        high,
                        from,
                    } if self.entries.contains_key(&index) => open.push(Open {
                        number: range,
                        index,
                        low,
                        high,
                        from: from.0,
                        met: Vec::new(),
                        versions: Vec::new(),
                        awaited: None,
                    }),
                    Event::Met { range, object } => {
                        if let Some(range) = open.iter_mut().find(|open| open.number == range) {
                            range.met.push(attempts.number(object));
                            range.awaited = Some(object.0);
                        }
                    }
                    Event::Read {
                        object, version, ..
                    }
                    | Event::ReadAbsent {
                        object, version, ..
                    } if !open.is_empty() => {
                        for range in &mut open {
                            range.read(object.0, version.0);
                        }
                    }
                    Event::RangeEnd {
                        range,
                        to,
                        stopped_at,
                        reverse,
                    } => {
                        let position = open.iter().position(|open| open.number == range);
                        let Some(position) = position else { continue };
                        let mut range = open.swap_remove(position);
                        range.met.sort_unstable();
                        range.met.dedup();
                        let attempt = attempts.get(number);
                        let reading = Reading {
                            attempt: number,
                            from: range.from,
                            to: to.0,
                            invoked: attempt.invoked.0,
                            responded: attempt.responded.0,
                        };
                        let entries = self.entries.get_mut(&range.index);
                        let (entries, nodes) = entries.expect("others are not opened");
                        judge.range(entries, nodes, &range, reading, (stopped_at, reverse));
                    }
                    _ => {}
                }
            }
        }
        judge.choices
    }
}

struct Judge<'b, 'a, S> {
    attempts: &'b Attempts<'a>,
    names: &'b Names<'b>,
    auxiliary: &'b mut Auxiliary,
    sink: &'b mut S,
    violations: &'b mut Violations,
    passing: &'b HashSet<(IndexId, u32)>,
    /// The versions that an attempt read first, by its objects' addresses.
    versions: Vec<(u64, u64)>,
    /// Which attempt.
    versions_of: Option<u32>,
    singles: Vec<u32>,
    cover: Vec<(u32, u32)>,
    /// Removals that say nothing about the range, as positions of changes.
    kept: Vec<u32>,
    choices: Vec<Choice>,
    budget: &'b Budget,
}

impl<'a, S: Sink> Judge<'_, 'a, S> {
    fn range(
        &mut self,
        entries: &Entries<'a>,
        nodes: &mut Nodes,
        range: &Open<'a>,
        reading: Reading,
        (stopped_at, reverse): (Key<'a>, bool),
    ) {
        let whole = (
            entries.count_below(range.low),
            entries.count_up_to_prefix(range.high),
        );
        let (mut begin, mut end) = whole;
        if !stopped_at.is_empty() {
            // Of several entries with the key at which it stopped, the history does not say which
            // were met before.
            match reverse {
                false => end = end.min(entries.count_below(stopped_at)),
                true => begin = begin.max(entries.count_up_to(stopped_at)),
            }
        }
        self.kept.clear();
        for object in &range.met {
            self.met(entries, range, whole, reading, *object);
        }
        if begin >= end {
            return;
        }
        let mut singles = std::mem::take(&mut self.singles);
        let mut cover = std::mem::take(&mut self.cover);
        singles.clear();
        cover.clear();
        entries.cover(begin, end, &mut singles, &mut cover);
        self.kept.sort_unstable();
        self.kept.dedup();
        for node in &cover {
            let mut edges = Edges {
                index: range.index,
                auxiliary: &mut *self.auxiliary,
                sink: &mut *self.sink,
                budget: self.budget,
            };
            nodes.claim(
                entries,
                *node,
                &reading,
                &self.kept,
                &mut singles,
                &mut edges,
            );
        }
        singles.sort_unstable();
        singles.dedup();
        for entry in &singles {
            self.unmet(entries, range, reading, *entry);
        }
        let both = (entries, &*nodes);
        self.count(both, range, reading, (begin, end), &cover, &singles);
        self.singles = singles;
        self.cover = cover;
    }

    fn edge(&mut self, from: u32, to: u32, kind: Kind, index: IndexId) {
        if from != to {
            let reason = Reason::Range { kind, index };
            self.sink.edge(Edge { from, to, reason });
        }
    }

    /// Judges an entry of the range that is looked at alone: says what follows if it was not met.
    fn unmet(&mut self, entries: &Entries<'a>, range: &Open<'a>, reading: Reading, entry: u32) {
        if self.is_exempt(entries, range, reading, entry) {
            return;
        }
        match entries.absence(entry, reading.from, reading.to) {
            Absence::Impossible => self.missed(entries, range, reading, entry),
            Absence::Between(before, after) => {
                let attempt = |change: u32| entries.events[change as usize].attempt;
                if let Some(before) = before {
                    let from = attempt(before);
                    self.edge(from, reading.attempt, Kind::RangeWriteRead, range.index);
                }
                if let Some(after) = after {
                    let to = attempt(after);
                    self.edge(reading.attempt, to, Kind::RangeReadWrite, range.index);
                }
                for (added, removed) in entries.stays(entry, (before, after)) {
                    let (added, removed) = (attempt(added), attempt(removed));
                    if added != removed && self.budget.take(1, BYTES_PER_CHOICE) {
                        self.choices.push(Choice {
                            reader: reading.attempt,
                            added,
                            removed,
                            object: entries.all[entry as usize].object,
                            index: range.index,
                        });
                    }
                }
            }
        }
    }

    /// Whether an entry was met, or is the reader's own.
    fn is_exempt(
        &self,
        entries: &Entries<'a>,
        range: &Open<'a>,
        reading: Reading,
        entry: u32,
    ) -> bool {
        let object = entries.all[entry as usize].object;
        range.met.binary_search(&object).is_ok() || entries.is_own(entry, reading.attempt)
    }

    /// Looks for missed entries in the nodes of a range by counting.
    fn count(
        &mut self,
        (entries, nodes): (&Entries<'a>, &Nodes),
        range: &Open<'a>,
        reading: Reading,
        (begin, end): (u32, u32),
        cover: &[(u32, u32)],
        singles: &[u32],
    ) {
        if cover.is_empty() {
            return;
        }
        let (from, to) = (reading.from, reading.to);
        let present = cover
            .iter()
            .map(|node| nodes.count_present(*node, from, to));
        let expected: i64 = present.sum();
        let in_nodes = |entry: u32| cover.iter().any(|node| contains(*node, entry));
        let mut found = 0;
        for object in &range.met {
            let present = entries.present_of(*object, from, to);
            found += present.filter(|entry| in_nodes(*entry)).count() as i64;
        }
        let own = entries.own(reading.attempt, (begin, end));
        let own = own.filter(|entry| in_nodes(*entry) && entries.is_present(*entry, from, to));
        let is_met = |entry: &u32| {
            let object = entries.all[*entry as usize].object;
            range.met.binary_search(&object).is_ok()
        };
        found += own.filter(|entry| !is_met(entry)).count() as i64;
        if expected == found {
            return;
        }
        if self.violations.is_full() {
            // Which they are is not asked any more.
            self.violations.count += expected.abs_diff(found);
            return;
        }
        for entry in begin..end {
            if in_nodes(entry)
                && singles.binary_search(&entry).is_err()
                && entries.is_present(entry, from, to)
                && !self.is_exempt(entries, range, reading, entry)
            {
                self.missed(entries, range, reading, entry);
            }
        }
    }

    fn missed(&mut self, entries: &Entries<'a>, range: &Open<'a>, reading: Reading, entry: u32) {
        let names = self.names;
        self.violations.add(Anomaly::MissedEntry, || {
            let object = entries.all[entry as usize].object;
            let since = entries
                .events_of(entry)
                .iter()
                .rfind(|event| event.to < reading.from)
                .map(|event| format!(", which {} had added", names.attempt(event.attempt)));
            let mut lines = describe(names, range, reading);
            lines.push(format!(
                "it did not meet {} under key {}{}",
                names.object(object),
                key(entries.key(entry)),
                since.unwrap_or_default()
            ));
            lines
        });
    }

    /// Judges an object that was met. Whether its entry was there says little: an entry comes
    /// before its row is committed. The version that was read of it decides.
    fn met(
        &mut self,
        entries: &Entries<'a>,
        range: &Open<'a>,
        whole: (u32, u32),
        reading: Reading,
        object: u32,
    ) {
        if !entries.has_object(object) {
            return;
        }
        let version = range.version(self.attempts.objects[object as usize]);
        if let Some(version) = version.or_else(|| self.version(reading.attempt, object)) {
            let (before, after) = entries.changes_around(object, version);
            if after == Some(reading.attempt) {
                return;
            }
            if let Some(before) = before {
                self.edge(before, reading.attempt, Kind::RangeWriteRead, range.index);
            }
            if let Some(after) = after {
                self.edge(reading.attempt, after, Kind::RangeReadWrite, range.index);
            }
            let later = entries.changes_after(object, version, reading.to);
            self.kept.extend(later);
        } else {
            for entry in entries.of_object(object) {
                let begin = entries.all[entry as usize].begin;
                self.kept
                    .extend((begin..).take(entries.events_of(entry).len()));
            }
        }
        if self.passing.contains(&(range.index, object)) {
            return;
        }
        if !entries.explains(object, whole, &reading) {
            let names = self.names;
            self.violations.add(Anomaly::StaleEntry, || {
                let mut lines = describe(names, range, reading);
                lines.push(format!(
                    "it met {}, which had no entry in it at that time",
                    names.object(object)
                ));
                lines
            });
        }
    }

    /// The version of an object that an attempt read first.
    fn version(&mut self, attempt: u32, object: u32) -> Option<u64> {
        if self.versions_of != Some(attempt) {
            self.versions_of = Some(attempt);
            self.versions.clear();
            for (_, event) in self.attempts.events(attempt) {
                if let Event::Read {
                    object, version, ..
                }
                | Event::ReadAbsent {
                    object, version, ..
                } = event
                {
                    self.versions.push((object.0, version.0));
                }
            }
            // Stable: the first of several stays first.
            self.versions.sort_by_key(|(object, _)| *object);
        }
        let address = self.attempts.objects[object as usize];
        let first = self.versions.partition_point(|(of, _)| *of < address);
        let (of, version) = self.versions.get(first)?;
        (*of == address).then_some(*version)
    }
}

fn describe(names: &Names<'_>, range: &Open<'_>, reading: Reading) -> Vec<String> {
    vec![format!(
        "{} read {} from {} to {}",
        names.attempt(reading.attempt),
        names.index(range.index),
        key(range.low),
        key(range.high)
    )]
}
