//! The tree over an index's entries: a node holds the changes of its entries in order of time, with
//! auxiliary nodes of the graph, so that a range needs few edges however many changes it comes
//! after or before. Nodes are made when they are first asked for, as most never are.

use std::collections::HashMap;

use kiln_history::{EntryChange, IndexId};

use crate::budget::Budget;
use crate::entries::{Auxiliary, BLOCK, Entries, Presence, Reading, parts};
use crate::graph::{Edge, Kind, Reason, Sink};

/// The nodes of one index that were asked for, by level and position.
#[derive(Default)]
pub(crate) struct Nodes(HashMap<(u32, u32), Node>);

/// The changes of the entries of some blocks.
struct Node {
    /// The first of its entries, and the first behind them.
    span: (u32, u32),
    /// Additions by their windows' beginnings.
    added: Chain,
    /// The latest end of the additions up to each one.
    latest: Vec<u64>,
    /// Removals by [`Entries::gone_since`].
    removed: Chain,
    presence_begins: Vec<Presence>,
    presence_ends: Vec<u64>,
}

/// Changes in order of time, of which a range is after the first or before the last, apart from a
/// few exceptions.
struct Chain {
    changes: Vec<Timed>,
    /// What the edges that the chain makes mean.
    kind: Kind,
    /// The auxiliary node of the first change. Each leads to the next one.
    first: u32,
    /// The first auxiliary nodes of the levels above the changes of a binary tree over them. Only
    /// ranges with exceptions need it.
    levels: Vec<u32>,
}

/// A change in a chain.
#[derive(Clone, Copy)]
struct Timed {
    at: u64,
    /// The position among the index's changes.
    event: u32,
    attempt: u32,
}

/// The memory that a change takes in a node, with what it contributes to the presences.
const BYTES_PER_CHANGE: usize = size_of::<Timed>() + 8 + size_of::<Presence>() / 2 + 4;

/// What takes the edges of an index.
pub(crate) struct Edges<'b, S> {
    pub(crate) index: IndexId,
    pub(crate) auxiliary: &'b mut Auxiliary,
    pub(crate) sink: &'b mut S,
    /// What the nodes' memory is taken from.
    pub(crate) budget: &'b Budget,
}

impl<S: Sink> Edges<'_, S> {
    fn edge(&mut self, from: u32, to: u32, kind: Kind) {
        let index = self.index;
        let reason = match kind {
            Kind::Rest => Reason::Rest,
            _ => Reason::Range { kind, index },
        };
        self.sink.edge(Edge { from, to, reason });
    }
}

impl Nodes {
    /// The claims of a node about a range. `kept` are changes about which it says nothing, sorted.
    /// Entries that changed while the range was read are put into `singles`; they may come several
    /// times.
    pub(crate) fn claim<S: Sink>(
        &mut self,
        entries: &Entries<'_>,
        node: (u32, u32),
        reading: &Reading,
        kept: &[u32],
        singles: &mut Vec<u32>,
        edges: &mut Edges<'_, S>,
    ) {
        let made = self.0.entry(node);
        let node = made.or_insert_with(|| Node::new(entries, node, edges));
        node.claim(entries, reading, kept, singles, edges);
    }

    /// How many entries of a node that was asked for were certainly there from one moment to
    /// another.
    pub(crate) fn count_present(&self, node: (u32, u32), from: u64, to: u64) -> i64 {
        let node = &self.0[&node];
        let begun = node.presence_begins.partition_point(|p| p.begin < from);
        let ended = node.presence_ends.partition_point(|end| *end <= to);
        // Those that began and ended meanwhile are among the ended, but not among the begun.
        let meanwhile = node.presence_begins[begun..].iter();
        let within = meanwhile
            .take_while(|presence| presence.begin <= to)
            .filter(|presence| presence.end <= to)
            .count();
        (begun + within) as i64 - ended as i64
    }
}

/// Whether a node has an entry.
pub(crate) fn contains((level, position): (u32, u32), entry: u32) -> bool {
    u64::from(entry) / ((BLOCK as u64) << level) == u64::from(position)
}

impl Node {
    fn new<S: Sink>(
        entries: &Entries<'_>,
        (level, position): (u32, u32),
        edges: &mut Edges<'_, S>,
    ) -> Node {
        let width = (BLOCK as u64) << level;
        let begin = u64::from(position) * width;
        let end = (begin + width).min(entries.all.len() as u64);
        let span = (begin as u32, end as u32);
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        let (mut presence_begins, mut presence_ends) = (Vec::new(), Vec::new());
        for entry in span.0..span.1 {
            let first = entries.all[entry as usize].begin;
            let events = entries.events_of(entry);
            for (position, event) in events.iter().enumerate() {
                let timed = |at| Timed {
                    at,
                    event: first + position as u32,
                    attempt: event.attempt,
                };
                match event.change {
                    EntryChange::Added => added.push(timed(event.from)),
                    EntryChange::Removed => {
                        removed.push(timed(Entries::gone_since(events, position)));
                    }
                }
            }
            for presence in entries.presences(entry) {
                presence_begins.push(presence);
                presence_ends.push(presence.end);
            }
        }
        // Lists grow by doubling.
        edges
            .budget
            .take(added.len() + removed.len(), 2 * BYTES_PER_CHANGE);
        presence_begins.sort_unstable_by_key(|presence| presence.begin);
        presence_ends.sort_unstable();
        let added = Chain::new(added, Kind::RangeReadWrite, edges);
        let mut latest = 0;
        let ends = added.changes.iter().map(|timed| {
            latest = entries.events[timed.event as usize].to.max(latest);
            latest
        });
        Node {
            span,
            latest: ends.collect(),
            removed: Chain::new(removed, Kind::RangeWriteRead, edges),
            added,
            presence_begins,
            presence_ends,
        }
    }

    fn claim<S: Sink>(
        &mut self,
        entries: &Entries<'_>,
        reading: &Reading,
        kept: &[u32],
        singles: &mut Vec<u32>,
        edges: &mut Edges<'_, S>,
    ) {
        let (reader, from, to) = (reading.attempt, reading.from, reading.to);
        let event = |position: u32| &entries.events[position as usize];
        let own: Vec<u32> = entries.own_changes(reading, self.span).collect();
        // All that was added afterwards.
        let after = self.added.begun(to.saturating_add(1));
        let of_reader = own.iter().filter(|own| event(**own).attempt == reader);
        let exceptions = of_reader.filter_map(|own| self.added.position(entries, *own));
        let mut exceptions: Vec<usize> = exceptions.filter(|own| *own >= after).collect();
        exceptions.sort_unstable();
        let count = self.added.changes.len();
        self.added.claim(reader, after..count, &exceptions, edges);
        for position in (0..after).rev() {
            if self.latest[position] < from {
                break;
            }
            let change = self.added.changes[position].event;
            if event(change).to >= from {
                singles.push(entries.entry_of(change));
            }
        }
        // All that was being removed before and was not met.
        let begun = self.removed.begun(from);
        let changes = entries.changes_of(self.span);
        let first = kept.partition_point(|position| *position < changes.start);
        let kept = kept[first..].iter().copied();
        let kept = kept.take_while(|position| *position < changes.end);
        let in_doubt = kept.filter(|position| event(*position).to >= from);
        let exceptions = in_doubt.chain(own);
        let exceptions = exceptions.filter_map(|change| self.removed.position(entries, change));
        let mut exceptions: Vec<usize> = exceptions.filter(|change| *change < begun).collect();
        exceptions.sort_unstable();
        exceptions.dedup();
        self.removed.claim(reader, 0..begun, &exceptions, edges);
        let meanwhile = &self.removed.changes[begun..self.removed.begun(to.saturating_add(1))];
        singles.extend(meanwhile.iter().map(|timed| entries.entry_of(timed.event)));
    }
}

impl Chain {
    fn new<S: Sink>(mut changes: Vec<Timed>, kind: Kind, edges: &mut Edges<'_, S>) -> Chain {
        changes.sort_unstable_by_key(|timed| (timed.at, timed.event));
        let chain = Chain {
            first: edges.auxiliary.take(changes.len()),
            changes,
            kind,
            levels: Vec::new(),
        };
        for (position, timed) in chain.changes.iter().enumerate() {
            let aux = chain.first + position as u32;
            chain.link(timed.attempt, aux, true, edges);
            if position > 0 {
                edges.edge(aux - 1, aux, Kind::Rest);
            }
        }
        chain
    }

    /// The number of changes before a moment.
    fn begun(&self, moment: u64) -> usize {
        self.changes.partition_point(|timed| timed.at < moment)
    }

    /// The position in the chain of one of the index's changes.
    fn position(&self, entries: &Entries<'_>, event: u32) -> Option<usize> {
        let at = moment_of(entries, event);
        let key = |timed: &Timed| (timed.at, timed.event);
        self.changes.binary_search_by_key(&(at, event), key).ok()
    }

    /// Joins a change, or an auxiliary node for some, to an auxiliary node for more of them.
    fn link<S: Sink>(&self, part: u32, whole: u32, is_change: bool, edges: &mut Edges<'_, S>) {
        match self.kind {
            Kind::RangeWriteRead if is_change => edges.edge(part, whole, self.kind),
            Kind::RangeWriteRead => edges.edge(part, whole, Kind::Rest),
            _ => edges.edge(whole, part, Kind::Rest),
        }
    }

    /// Joins a reader to what it comes after, or before.
    fn join<S: Sink>(&self, reader: u32, node: u32, is_change: bool, edges: &mut Edges<'_, S>) {
        match self.kind {
            Kind::RangeWriteRead if is_change => edges.edge(node, reader, self.kind),
            Kind::RangeWriteRead => edges.edge(node, reader, Kind::Rest),
            _ => edges.edge(reader, node, self.kind),
        }
    }

    /// The reader is after the changes in a range of positions, or before them, apart from
    /// exceptions.
    fn claim<S: Sink>(
        &mut self,
        reader: u32,
        range: std::ops::Range<usize>,
        exceptions: &[usize],
        edges: &mut Edges<'_, S>,
    ) {
        // The chain serves what reaches to its beginning or its end, the tree what lies between.
        let is_after = self.kind == Kind::RangeWriteRead;
        let mut begin = range.start;
        for end in exceptions.iter().copied().chain([range.end]) {
            if begin < end {
                match is_after {
                    true if begin == 0 => self.join(reader, self.aux(end - 1), false, edges),
                    false if end == self.changes.len() => {
                        self.join(reader, self.aux(begin), false, edges);
                    }
                    _ => self.claim_part(reader, begin..end, edges),
                }
            }
            begin = end + 1;
        }
    }

    fn aux(&self, position: usize) -> u32 {
        self.first + position as u32
    }

    fn claim_part<S: Sink>(
        &mut self,
        reader: u32,
        range: std::ops::Range<usize>,
        edges: &mut Edges<'_, S>,
    ) {
        if self.levels.is_empty() {
            self.make_levels(edges);
        }
        parts(range.start as u32, range.end as u32, |level, position| {
            let (node, is_change) = self.at_level(level, position);
            self.join(reader, node, is_change, edges);
        });
    }

    /// A node of the tree: a change's attempt or an auxiliary node.
    fn at_level(&self, level: u32, position: u32) -> (u32, bool) {
        match level.checked_sub(1) {
            None => (self.changes[position as usize].attempt, true),
            Some(above) => (self.levels[above as usize] + position, false),
        }
    }

    fn make_levels<S: Sink>(&mut self, edges: &mut Edges<'_, S>) {
        let mut below = self.changes.len() as u32;
        while below > 1 {
            let count = below.div_ceil(2);
            let level = self.levels.len() as u32;
            self.levels.push(edges.auxiliary.take(count as usize));
            for position in 0..below {
                let (part, is_change) = self.at_level(level, position);
                let (whole, _) = self.at_level(level + 1, position / 2);
                self.link(part, whole, is_change, edges);
            }
            below = count;
        }
    }
}

/// When a change takes its place in its chain.
fn moment_of(entries: &Entries<'_>, event: u32) -> u64 {
    let change = &entries.events[event as usize];
    match change.change {
        EntryChange::Added => change.from,
        EntryChange::Removed => {
            let entry = entries.entry_of(event);
            let position = event - entries.all[entry as usize].begin;
            Entries::gone_since(entries.events_of(entry), position as usize)
        }
    }
}
