//! The changes of one index's entries, by key and by time.
//!
//! An entry is a key and an object. Its changes, in order of time, divide time into intervals in which
//! it was there and in which it was not; only the windows in which changes happened are in doubt.
//!
//! The changes are sorted by key and cut into blocks. A tree over the blocks answers for a range of
//! keys *and* a moment: a node holds the changes of its blocks in order of time. Nodes are made when
//! they are first asked for, as most never are.

use std::collections::HashMap;

use kiln_history::{EntryChange, IndexId, Key};

use crate::accesses::EntryEvent;
use crate::graph::{Edge, Kind, Reason, Sink};

/// Entries of one block: as many as are looked at one by one.
const BLOCK: usize = 4;

/// All changes of one key and object: `events[begin..end]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The first bytes of the key: most comparisons need no more of it.
    prefix: u64,
    pub(crate) object: u32,
    begin: u32,
    end: u32,
}

/// A time at which an entry was certainly there: after its addition was done and before its removal
/// began.
#[derive(Clone, Copy, Debug)]
struct Presence {
    begin: u64,
    end: u64,
}

/// What can be said about a range in which an entry was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It was there all the time.
    Impossible,
    /// After this change of it, and before that one, as far as there are any.
    Between(Option<u32>, Option<u32>),
}

/// The entries of one index.
pub(crate) struct Entries<'a> {
    pub(crate) events: Vec<EntryEvent<'a>>,
    /// In order of key and object.
    pub(crate) all: Vec<Entry>,
    /// Positions in `events` by object and version installed.
    by_object: Vec<u32>,
    /// Positions in `all` by object.
    of_object: Vec<(u32, u32)>,
    /// A bit for each object, whether any entry of it was changed: mostly none was.
    changed: Vec<u64>,
    nodes: HashMap<(u32, u32), Node>,
}

/// The changes of the entries of some blocks.
struct Node {
    /// Additions by their windows' beginnings, with the latest end so far, and the first of their
    /// auxiliary nodes.
    added: Vec<Timed>,
    added_aux: u32,
    /// Removals by their windows' ends, from the last to the first, with the earliest beginning so
    /// far, and the first of their auxiliary nodes.
    removed: Vec<Timed>,
    removed_aux: u32,
    /// Removals of which only the beginning is known: the entry went some time afterwards, if it has. By when
    /// the entry was certainly there and its removal under way, which is `from`; and the first of their
    /// auxiliary nodes.
    pending: Vec<Timed>,
    pending_aux: u32,
    presence_begins: Vec<Presence>,
    presence_ends: Vec<u64>,
}

/// A change in a node.
#[derive(Clone, Copy)]
struct Timed {
    attempt: u32,
    entry: u32,
    from: u64,
    to: u64,
    /// Of all up to this one in the node's order: the latest end (additions) or the earliest
    /// beginning (removals).
    extreme: u64,
}

/// Who read a range, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) attempt: u32,
    /// Around the reading of the range.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Around the attempt.
    pub(crate) invoked: u64,
    pub(crate) responded: u64,
}

/// Numbers auxiliary nodes.
pub(crate) struct Auxiliary {
    pub(crate) next: u32,
}

impl Auxiliary {
    /// The first of `count` new nodes.
    pub(crate) fn take(&mut self, count: usize) -> u32 {
        let first = self.next;
        self.next = u32::try_from(count)
            .ok()
            .and_then(|count| first.checked_add(count))
            .expect("a graph of fewer than 2^32 nodes");
        first
    }
}

impl<'a> Entries<'a> {
    /// The entries of these changes. What a transaction added and removed again itself is left out, and
    /// the objects of such entries are given to `passing`.
    pub(crate) fn new(
        mut events: Vec<EntryEvent<'a>>,
        mut passing: impl FnMut(u32),
    ) -> Entries<'a> {
        // One object's versions give the order of its changes; where they do not, time does.
        events.sort_by(|a, b| {
            let key = a.key.cmp(b.key).then(a.object.cmp(&b.object));
            key.then((a.version, a.from).cmp(&(b.version, b.from)))
        });
        let is_undone = |pair: &[EntryEvent<'_>]| {
            let [added, removed] = pair else { return false };
            added.attempt == removed.attempt
                && (added.object, added.key) == (removed.object, removed.key)
                && (added.change, removed.change) == (EntryChange::Added, EntryChange::Removed)
        };
        let undone: Vec<usize> = (1..events.len())
            .filter(|second| is_undone(&events[second - 1..=*second]))
            .collect();
        if !undone.is_empty() {
            let mut position = 0;
            events.retain(|event| {
                let is_part = |second: usize| undone.binary_search(&second).is_ok();
                let goes = is_part(position) || is_part(position + 1);
                position += 1;
                if goes {
                    passing(event.object);
                }
                !goes
            });
        }
        let mut all = Vec::new();
        let mut begin = 0;
        for entry in events.chunk_by(|a, b| a.object == b.object && a.key == b.key) {
            let end = begin + entry.len() as u32;
            all.push(Entry {
                prefix: prefix(entry[0].key, 0),
                object: entry[0].object,
                begin,
                end,
            });
            begin = end;
        }
        for entry in &all {
            tighten(&mut events[entry.begin as usize..entry.end as usize]);
        }
        let mut by_object: Vec<u32> = (0..events.len() as u32).collect();
        by_object.sort_unstable_by_key(|position| {
            let event = &events[*position as usize];
            (event.object, event.version, event.from)
        });
        let mut of_object: Vec<(u32, u32)> = all
            .iter()
            .enumerate()
            .map(|(position, entry)| (entry.object, position as u32))
            .collect();
        of_object.sort_unstable();
        let last = of_object.last().map_or(0, |(object, _)| *object);
        let mut changed = vec![0; last as usize / 64 + 1];
        for (object, _) in &of_object {
            changed[*object as usize / 64] |= 1 << (object % 64);
        }
        Entries {
            events,
            all,
            by_object,
            of_object,
            changed,
            nodes: HashMap::new(),
        }
    }

    pub(crate) fn key(&self, entry: u32) -> Key<'a> {
        self.events[self.all[entry as usize].begin as usize].key
    }

    pub(crate) fn events_of(&self, entry: u32) -> &[EntryEvent<'a>] {
        let entry = &self.all[entry as usize];
        &self.events[entry.begin as usize..entry.end as usize]
    }

    /// Forgets the nodes: they are made again, with the same numbers in the same order.
    pub(crate) fn forget_nodes(&mut self) {
        self.nodes.clear();
    }

    /// How many entries have smaller keys.
    pub(crate) fn count_below(&self, bound: Key<'_>) -> u32 {
        let least = prefix(bound, 0);
        self.count_while(least, least, |key| key < bound)
    }

    /// How many entries have smaller keys or this one.
    pub(crate) fn count_up_to(&self, bound: Key<'_>) -> u32 {
        let least = prefix(bound, 0);
        self.count_while(least, least, |key| key <= bound)
    }

    /// How many entries have smaller keys, this one, or one that begins with it.
    pub(crate) fn count_up_to_prefix(&self, bound: Key<'_>) -> u32 {
        let (least, greatest) = (prefix(bound, 0), prefix(bound, u8::MAX));
        self.count_while(least, greatest, |key| {
            key <= bound || key.starts_with(bound)
        })
    }

    /// The entries whose keys satisfy a condition come before those whose keys do not: how many? It is
    /// known of keys whose prefixes are less than one bound or greater than the other.
    fn count_while(&self, least: u64, greatest: u64, condition: impl Fn(Key<'a>) -> bool) -> u32 {
        let holds = |entry: &Entry| {
            entry.prefix < least
                || entry.prefix <= greatest && condition(self.events[entry.begin as usize].key)
        };
        self.all.partition_point(holds) as u32
    }

    /// Who changed an object's entries last before a version or at it, and who first afterwards.
    pub(crate) fn changes_around(&self, object: u32, version: u64) -> (Option<u32>, Option<u32>) {
        let event = |position: &u32| &self.events[*position as usize];
        let of_object = |position: &&u32| {
            let event = event(position);
            // Without a version it is not known when the object was changed.
            (event.object == object && event.version != 0).then_some(event.attempt)
        };
        let behind = self.by_object.partition_point(|position| {
            let event = event(position);
            (event.object, event.version) <= (object, version)
        });
        let before = behind
            .checked_sub(1)
            .and_then(|at| of_object(&&self.by_object[at]));
        let after = self.by_object.get(behind).as_ref().and_then(of_object);
        (before, after)
    }

    /// Whether any entry of an object was changed.
    pub(crate) fn has_object(&self, object: u32) -> bool {
        let word = self.changed.get(object as usize / 64);
        word.is_some_and(|word| word >> (object % 64) & 1 == 1)
    }

    /// The entries of an object among those from one to before another.
    pub(crate) fn of_object_within(
        &self,
        object: u32,
        (begin, end): (u32, u32),
    ) -> impl Iterator<Item = u32> {
        let first = self.of_object.partition_point(|of| *of < (object, begin));
        let entries = self.of_object[first..].iter();
        entries
            .take_while(move |of| **of < (object, end))
            .map(|(_, entry)| *entry)
    }

    /// Whether an attempt has changed an entry itself.
    pub(crate) fn is_own(&self, entry: u32, reading: &Reading) -> bool {
        let events = self.events_of(entry);
        let first = events.partition_point(|event| event.to < reading.invoked);
        events[first..]
            .iter()
            .take_while(|event| event.from <= reading.responded)
            .any(|event| event.attempt == reading.attempt)
    }

    /// The positions of an entry's changes next to which it was in doubt between two moments: the
    /// intervals before each of them reach into that time.
    fn intervals(&self, entry: u32, from: u64, to: u64) -> std::ops::RangeInclusive<usize> {
        let events = self.events_of(entry);
        let first = events.partition_point(|event| event.to < from);
        let last = events.partition_point(|event| event.from <= to);
        first..=last
    }

    /// Whether an entry was there in the interval before the change at `position` of it: unknown if
    /// it was never changed.
    fn is_there_before(events: &[EntryEvent<'a>], position: usize) -> bool {
        match (position.checked_sub(1), events.get(position)) {
            (Some(before), _) => events[before].change == EntryChange::Added,
            (None, Some(after)) => after.change == EntryChange::Removed,
            (None, None) => false,
        }
    }

    /// When an entry that was not met between two moments may have been absent.
    pub(crate) fn absence(&self, entry: u32, from: u64, to: u64) -> Absence {
        let events = self.events_of(entry);
        let base = self.all[entry as usize].begin;
        let mut absent = self
            .intervals(entry, from, to)
            .filter(|position| !Entries::is_there_before(events, *position));
        let Some(first) = absent.next() else {
            // Changes that contradict each other say nothing.
            let is_consistent = !self.intervals(entry, from, to).is_empty();
            return match is_consistent {
                true => Absence::Impossible,
                false => Absence::Between(None, None),
            };
        };
        let last = absent.next_back().unwrap_or(first);
        Absence::Between(
            first.checked_sub(1).map(|before| base + before as u32),
            (last < events.len()).then_some(base + last as u32),
        )
    }

    /// Whether an entry may have been there between two moments.
    pub(crate) fn may_be_present(&self, entry: u32, from: u64, to: u64) -> bool {
        let events = self.events_of(entry);
        self.intervals(entry, from, to)
            .any(|position| Entries::is_there_before(events, position))
    }

    /// The time at which an entry was certainly there before the change at `position` of it.
    fn presence(events: &[EntryEvent<'a>], position: usize) -> Option<Presence> {
        Entries::is_there_before(events, position).then(|| Presence {
            begin: position
                .checked_sub(1)
                .map_or(0, |before| events[before].to),
            end: events.get(position).map_or(u64::MAX, |after| after.from),
        })
    }

    fn presences(&self, entry: u32) -> impl Iterator<Item = Presence> {
        let events = self.events_of(entry);
        (0..=events.len())
            .filter_map(|position| Entries::presence(events, position))
            .filter(|presence| presence.begin <= presence.end)
    }

    /// Whether an entry was certainly there from one moment to another.
    pub(crate) fn is_present(&self, entry: u32, from: u64, to: u64) -> bool {
        let events = self.events_of(entry);
        let position = events.partition_point(|event| event.to < from);
        Entries::presence(events, position).is_some_and(|presence| presence.end > to)
    }

    /// Splits a range of entries into those to be looked at one by one, and nodes of the tree.
    pub(crate) fn cover(
        &self,
        begin: u32,
        end: u32,
        singles: &mut Vec<u32>,
        nodes: &mut Vec<(u32, u32)>,
    ) {
        let block = BLOCK as u32;
        let (first, last) = (begin.div_ceil(block), end / block);
        if last <= first {
            singles.extend(begin..end);
            return;
        }
        singles.extend(begin..first * block);
        singles.extend(last * block..end);
        // As in a segment tree that is stored bottom up; a node is its level and its position there.
        let (mut left, mut right, mut level) = (first, last, 0);
        while left < right {
            if left % 2 == 1 {
                nodes.push((level, left));
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                nodes.push((level, right));
            }
            left /= 2;
            right /= 2;
            level += 1;
        }
    }

    /// Whether a node has an entry.
    pub(crate) fn contains((level, position): (u32, u32), entry: u32) -> bool {
        u64::from(entry) / ((BLOCK as u64) << level) == u64::from(position)
    }

    /// Makes a node unless it is there, with the edges of its chains.
    pub(crate) fn require<S: Sink>(
        &mut self,
        index: IndexId,
        node: (u32, u32),
        auxiliary: &mut Auxiliary,
        sink: &mut S,
    ) {
        if self.nodes.contains_key(&node) {
            return;
        }
        let (level, position) = node;
        let width = (BLOCK as u64) << level;
        let begin = u64::from(position) * width;
        let end = (begin + width).min(self.all.len() as u64);
        let (mut added, mut removed, mut pending) = (Vec::new(), Vec::new(), Vec::new());
        let (mut presence_begins, mut presence_ends) = (Vec::new(), Vec::new());
        for entry in begin as u32..end as u32 {
            for event in self.events_of(entry) {
                let timed = Timed {
                    attempt: event.attempt,
                    entry,
                    from: event.from,
                    to: event.to,
                    extreme: 0,
                };
                match event.change {
                    EntryChange::Added => added.push(timed),
                    EntryChange::Removed => removed.push(timed),
                }
            }
            if let Some((since, event)) = self.pending(entry) {
                let last = removed.pop();
                debug_assert_eq!(last.map(|last| last.entry), Some(entry));
                pending.push(Timed {
                    attempt: event.attempt,
                    entry,
                    from: since,
                    to: event.to,
                    extreme: 0,
                });
            }
            for presence in self.presences(entry) {
                presence_begins.push(presence);
                presence_ends.push(presence.end);
            }
        }
        presence_begins.sort_unstable_by_key(|presence| presence.begin);
        presence_ends.sort_unstable();

        added.sort_unstable_by_key(|timed| timed.from);
        let mut latest = 0;
        for timed in &mut added {
            latest = timed.to.max(latest);
            timed.extreme = latest;
        }
        let added_aux = auxiliary.take(added.len());
        removed.sort_unstable_by_key(|timed| std::cmp::Reverse(timed.to));
        let mut earliest = u64::MAX;
        for timed in &mut removed {
            earliest = timed.from.min(earliest);
            timed.extreme = earliest;
        }
        let removed_aux = auxiliary.take(removed.len());
        pending.sort_unstable_by_key(|timed| timed.from);
        let pending_aux = auxiliary.take(pending.len());

        let mut rest = |from, to| {
            let reason = Reason::Rest;
            sink.edge(Edge { from, to, reason });
        };
        for (position, timed) in added.iter().enumerate() {
            let aux = added_aux + position as u32;
            rest(aux, timed.attempt);
            if position + 1 < added.len() {
                rest(aux, aux + 1);
            }
        }
        for position in 1..removed.len() as u32 {
            let aux = removed_aux + position;
            rest(aux, aux - 1);
        }
        for position in 1..pending.len() as u32 {
            let aux = pending_aux + position;
            rest(aux - 1, aux);
        }
        for (first, changes) in [(removed_aux, &removed), (pending_aux, &pending)] {
            for (position, timed) in changes.iter().enumerate() {
                let kind = Kind::RangeWriteRead;
                sink.edge(Edge {
                    from: timed.attempt,
                    to: first + position as u32,
                    reason: Reason::Range { kind, index },
                });
            }
        }
        self.nodes.insert(
            node,
            Node {
                added,
                added_aux,
                removed,
                removed_aux,
                pending,
                pending_aux,
                presence_begins,
                presence_ends,
            },
        );
    }

    /// The removal of an entry of which only the beginning is known, and since when it was under way and the
    /// entry certainly there before.
    fn pending(&self, entry: u32) -> Option<(u64, &EntryEvent<'a>)> {
        let events = self.events_of(entry);
        let last = events
            .last()
            .filter(|event| event.change == EntryChange::Removed && event.to == u64::MAX)?;
        let before = events.len().checked_sub(2).map_or(0, |at| events[at].to);
        Some((last.from.max(before), last))
    }

    /// The node's claims about a range in which these objects were met. Entries that changed meanwhile are put
    /// into `singles`; they may come several times.
    pub(crate) fn claim(
        &self,
        node: (u32, u32),
        reading: &Reading,
        met: &[u32],
        singles: &mut Vec<u32>,
        mut edge: impl FnMut(u32, u32, Kind),
    ) {
        let (level, position) = node;
        let width = (BLOCK as u64) << level;
        let begin = u64::from(position) * width;
        let end = (begin + width).min(self.all.len() as u64);
        let node = &self.nodes[&node];
        let (reader, from, to) = (reading.attempt, reading.from, reading.to);
        // All that was added afterwards.
        let after = node.added.partition_point(|timed| timed.from <= to);
        let lifetime = |timed: &Timed| timed.from <= reading.responded;
        let free = free_of_own(&node.added, after, reader, lifetime);
        for timed in &node.added[after..free] {
            if timed.attempt != reader {
                edge(reader, timed.attempt, Kind::RangeReadWrite);
            }
        }
        if free < node.added.len() {
            let aux = node.added_aux + free as u32;
            edge(reader, aux, Kind::RangeReadWrite);
        }
        let overlapping = node.added[..after].iter().rev();
        let overlapping = overlapping.take_while(|timed| timed.extreme >= from);
        let meanwhile = overlapping.filter(|timed| timed.to >= from);
        singles.extend(meanwhile.map(|timed| timed.entry));
        // All that was removed before.
        let before = node.removed.partition_point(|timed| timed.to >= from);
        let lifetime = |timed: &Timed| timed.to >= reading.invoked;
        let free = free_of_own(&node.removed, before, reader, lifetime);
        for timed in &node.removed[before..free] {
            if timed.attempt != reader {
                edge(timed.attempt, reader, Kind::RangeWriteRead);
            }
        }
        if free < node.removed.len() {
            let aux = node.removed_aux + free as u32;
            edge(aux, reader, Kind::Rest);
        }
        let overlapping = node.removed[..before].iter().rev();
        let overlapping = overlapping.take_while(|timed| timed.extreme <= to);
        let meanwhile = overlapping.filter(|timed| timed.from <= to);
        singles.extend(meanwhile.map(|timed| timed.entry));
        // What was being removed before and was not met, had gone. The reader holds on to the chain up to the first
        // that it met, or removed itself; the others are few, as entries that were met go soon.
        let begun = node.pending.partition_point(|timed| timed.from < from);
        let own = node.pending[..begun].iter().enumerate().rev();
        let own = own.take_while(|(_, timed)| timed.from >= reading.invoked);
        let own = own.filter(|(_, timed)| timed.attempt == reader);
        let mut free = own.last().map_or(begun, |(position, _)| position);
        if free > 0 {
            for object in met.iter().filter(|object| self.has_object(**object)) {
                for entry in self.of_object_within(*object, (begin as u32, end as u32)) {
                    if let Some((since, _)) = self.pending(entry) {
                        let of = node.pending.partition_point(|timed| timed.from < since);
                        free = free.min(of);
                    }
                }
            }
        }
        if let Some(last) = free.checked_sub(1) {
            edge(node.pending_aux + last as u32, reader, Kind::Rest);
        }
        let doubtful = node.pending[free..].iter();
        let doubtful = doubtful.take_while(|timed| timed.from <= to);
        singles.extend(doubtful.map(|timed| timed.entry));
    }

    /// How many entries of a node were certainly there from one moment to another.
    pub(crate) fn count_present(&self, node: (u32, u32), from: u64, to: u64) -> i64 {
        let node = &self.nodes[&node];
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

/// The first eight bytes of a key as a number, missing ones filled up.
fn prefix(key: Key<'_>, filling: u8) -> u64 {
    let mut bytes = [filling; 8];
    let length = key.len().min(8);
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

/// Narrows the windows of an entry's changes by what is known of their order: a change was done
/// before the next one was, and began after the previous one did.
fn tighten(events: &mut [EntryEvent<'_>]) {
    for position in 1..events.len() {
        events[position].from = events[position].from.max(events[position - 1].from);
    }
    for position in (1..events.len()).rev() {
        events[position - 1].to = events[position - 1].to.min(events[position].to);
    }
}

/// Where a chain is free of the reader's own changes, from `begin` on: it cannot hold on to the chain
/// before them, which would lead back to itself. They lie within its lifetime.
fn free_of_own(
    changes: &[Timed],
    begin: usize,
    reader: u32,
    lifetime: impl Fn(&Timed) -> bool,
) -> usize {
    let later = &changes[begin..];
    let meanwhile = &later[..later.partition_point(lifetime)];
    let last = meanwhile.iter().rposition(|timed| timed.attempt == reader);
    begin + last.map_or(0, |position| position + 1)
}
