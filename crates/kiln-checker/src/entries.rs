//! The changes of one index's entries, by key and by time.
//!
//! An entry is a key and an object. Its changes, in order of time, divide time into intervals in
//! which it was there and in which it was not; only the windows in which changes happened are in
//! doubt.
//!
//! The changes are sorted by key and cut into blocks; `nodes` has the tree over the blocks.

use kiln_history::{EntryChange, Key};

use crate::accesses::EntryEvent;

/// Entries of one block: as many as are looked at one by one.
pub(crate) const BLOCK: usize = 4;

/// All changes of one key and object: `events[begin..end]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The first bytes of the key: most comparisons need no more of it.
    prefix: u64,
    pub(crate) object: u32,
    pub(crate) begin: u32,
    end: u32,
}

/// A time at which an entry was certainly there: after its addition was done and before its removal
/// began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// A presence of one of an object's entries.
#[derive(Clone, Copy, Debug)]
struct Holding {
    object: u32,
    entry: u32,
    /// When its addition began: 0 if it was there at first.
    since: u64,
    certain: Presence,
    /// The latest end of the certain presences of the object up to this one.
    latest: u64,
}

/// What can be said about a range in which an entry was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It was there all the time.
    Impossible,
    /// After this change of it, and before that one, as far as there are any. Between the two it
    /// may have been there for a while.
    Between(Option<u32>, Option<u32>),
}

/// The entries of one index.
pub(crate) struct Entries<'a> {
    pub(crate) events: Vec<EntryEvent<'a>>,
    /// In order of key and object.
    pub(crate) all: Vec<Entry>,
    /// Positions in `events` by object and version installed.
    by_object: Vec<u32>,
    /// When the first of the changes from each one of `by_object` on began, among those of its
    /// object.
    earliest: Vec<u64>,
    /// By object and beginning.
    holdings: Vec<Holding>,
    /// A bit for each object, whether any entry of it was changed: mostly none was.
    changed: Vec<u64>,
    /// Attempts and the entries that they changed.
    changers: Vec<(u32, u32)>,
}

/// An attempt that read a range, and when.
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
    /// The entries of these changes. What a transaction added and removed again itself is left out,
    /// and the objects of such entries are given to `passing`.
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
        let mut earliest = vec![0; events.len()];
        let mut later = (u32::MAX, u64::MAX);
        for (at, position) in by_object.iter().enumerate().rev() {
            let event = &events[*position as usize];
            let from = match later.0 == event.object {
                true => event.from.min(later.1),
                false => event.from,
            };
            earliest[at] = from;
            later = (event.object, from);
        }
        let last = all.iter().map(|entry| entry.object).max().unwrap_or(0);
        let mut changed = vec![0; last as usize / 64 + 1];
        for entry in &all {
            changed[entry.object as usize / 64] |= 1 << (entry.object % 64);
        }
        let mut changers = Vec::with_capacity(events.len());
        for (number, entry) in all.iter().enumerate() {
            let events = &events[entry.begin as usize..entry.end as usize];
            changers.extend(events.iter().map(|event| (event.attempt, number as u32)));
        }
        changers.sort_unstable();
        changers.dedup();
        let mut entries = Entries {
            events,
            all,
            by_object,
            earliest,
            holdings: Vec::new(),
            changed,
            changers,
        };
        entries.holdings = entries.all_holdings();
        entries
    }

    fn all_holdings(&self) -> Vec<Holding> {
        let mut holdings = Vec::new();
        for (number, entry) in self.all.iter().enumerate() {
            let events = self.events_of(number as u32);
            for position in 0..=events.len() {
                let Some(certain) = Entries::presence(events, position) else {
                    continue;
                };
                let added = position.checked_sub(1).map(|before| events[before].from);
                holdings.push(Holding {
                    object: entry.object,
                    entry: number as u32,
                    since: added.unwrap_or(0),
                    certain,
                    latest: 0,
                });
            }
        }
        holdings.sort_unstable_by_key(|holding| (holding.object, holding.since, holding.entry));
        let mut latest = (u32::MAX, 0);
        for holding in &mut holdings {
            let before = match latest.0 == holding.object {
                true => latest.1,
                false => 0,
            };
            holding.latest = holding.certain.end.max(before);
            latest = (holding.object, holding.latest);
        }
        holdings
    }

    pub(crate) fn key(&self, entry: u32) -> Key<'a> {
        self.events[self.all[entry as usize].begin as usize].key
    }

    pub(crate) fn events_of(&self, entry: u32) -> &[EntryEvent<'a>] {
        let entry = &self.all[entry as usize];
        &self.events[entry.begin as usize..entry.end as usize]
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

    /// The entries whose keys satisfy a condition come before those whose keys do not: how many? It
    /// is known of keys whose prefixes are less than one bound or greater than the other.
    fn count_while(&self, least: u64, greatest: u64, condition: impl Fn(Key<'a>) -> bool) -> u32 {
        let holds = |entry: &Entry| {
            entry.prefix < least
                || entry.prefix <= greatest && condition(self.events[entry.begin as usize].key)
        };
        self.all.partition_point(holds) as u32
    }

    /// The attempts that changed an object's entries last before a version or at it, and first
    /// afterwards.
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

    /// An object's presences that began at a moment or before, the latest first.
    fn holdings_until(&self, object: u32, to: u64) -> impl Iterator<Item = &Holding> {
        let begun = |holding: &Holding| (holding.object, holding.since) <= (object, to);
        let behind = self.holdings.partition_point(begun);
        let holdings = self.holdings[..behind].iter().rev();
        holdings.take_while(move |holding| holding.object == object)
    }

    /// Whether an object had an entry, among those from one to before another, that may have been
    /// there between the two moments of a reading, or is the reader's own.
    pub(crate) fn explains(
        &self,
        object: u32,
        (begin, end): (u32, u32),
        reading: &Reading,
    ) -> bool {
        self.holdings_until(object, reading.to.max(reading.responded))
            .map(|holding| holding.entry)
            .filter(|entry| (begin..end).contains(entry))
            .any(|entry| {
                self.may_be_present(entry, reading.from, reading.to)
                    || self.is_own(entry, reading.attempt)
            })
    }

    /// The entries of an object that were certainly there from one moment to another.
    pub(crate) fn present_of(&self, object: u32, from: u64, to: u64) -> impl Iterator<Item = u32> {
        self.holdings_until(object, to)
            .take_while(move |holding| holding.latest > to)
            .filter(move |holding| holding.certain.begin < from && holding.certain.end > to)
            .map(|holding| holding.entry)
    }

    /// The entries of an object, some several times.
    pub(crate) fn of_object(&self, object: u32) -> impl Iterator<Item = u32> {
        self.holdings_until(object, u64::MAX)
            .map(|holding| holding.entry)
    }

    /// The positions of the changes of an object that came after a version, or may have, and some
    /// of which began until a moment.
    pub(crate) fn changes_after(
        &self,
        object: u32,
        version: u64,
        until: u64,
    ) -> impl Iterator<Item = u32> {
        let behind = |version: u64| {
            self.by_object.partition_point(|position| {
                let event = &self.events[*position as usize];
                (event.object, event.version) <= (object, version)
            })
        };
        let of_object = move |position: &u32| self.events[*position as usize].object == object;
        let later = (behind(version)..self.by_object.len())
            .take_while(move |at| self.earliest[*at] <= until)
            .map(|at| self.by_object[at]);
        // Without a version it is not known when the object was changed.
        let unknown = self.by_object[..behind(0)].iter().rev().copied();
        let unknown = unknown.take_while(|position| self.events[*position as usize].version == 0);
        later
            .take_while(of_object)
            .chain(unknown.take_while(of_object))
    }

    /// The entry that the change at a position is of.
    pub(crate) fn entry_of(&self, position: u32) -> u32 {
        self.all.partition_point(|entry| entry.begin <= position) as u32 - 1
    }

    /// The entries that an attempt has changed itself, among those from one to before another.
    pub(crate) fn own(&self, attempt: u32, (begin, end): (u32, u32)) -> impl Iterator<Item = u32> {
        let first = self.changers.partition_point(|of| *of < (attempt, begin));
        let own = self.changers[first..].iter();
        own.take_while(move |of| **of < (attempt, end))
            .map(|(_, entry)| *entry)
    }

    /// The positions of the changes of a reader's own entries during its lifetime.
    pub(crate) fn own_changes(
        &self,
        reading: &Reading,
        span: (u32, u32),
    ) -> impl Iterator<Item = u32> {
        let (invoked, responded) = (reading.invoked, reading.responded);
        self.own(reading.attempt, span).flat_map(move |entry| {
            let (first, events) = (self.all[entry as usize].begin, self.events_of(entry));
            let begin = events.partition_point(|event| event.to < invoked);
            let end = events.partition_point(|event| event.from <= responded);
            first + begin as u32..first + end.max(begin) as u32
        })
    }

    /// The positions of the changes of the entries from one to before another.
    pub(crate) fn changes_of(&self, (begin, end): (u32, u32)) -> std::ops::Range<u32> {
        let at = |entry: u32| {
            let entry = self.all.get(entry as usize);
            entry.map_or(self.events.len() as u32, |entry| entry.begin)
        };
        at(begin)..at(end)
    }

    /// Whether an attempt has changed an entry itself.
    pub(crate) fn is_own(&self, entry: u32, attempt: u32) -> bool {
        self.changers.binary_search(&(attempt, entry)).is_ok()
    }

    /// From when on a range without the entry comes after the removal at `position` of its changes:
    /// when the removal was under way, and the entry certainly there before.
    pub(crate) fn gone_since(events: &[EntryEvent<'a>], position: usize) -> u64 {
        let event = &events[position];
        match position.checked_sub(1).map(|before| &events[before]) {
            None => event.from,
            Some(before) if before.change == EntryChange::Added => event.from.max(before.to),
            // Changes that contradict each other: only that it is done is certain.
            Some(_) => event.to,
        }
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

    /// The changes, between two others, with which the entry came and then went again.
    pub(crate) fn stays(
        &self,
        entry: u32,
        (after, before): (Option<u32>, Option<u32>),
    ) -> impl Iterator<Item = (u32, u32)> {
        let all = self.changes_of((entry, entry + 1));
        let begin = after.map_or(all.start, |after| after + 1);
        let end = before.unwrap_or(all.end);
        let change = |position: u32| self.events[position as usize].change;
        (begin + 1..end.max(begin + 1))
            .map(|removed| (removed - 1, removed))
            .filter(move |(added, removed)| {
                change(*added) == EntryChange::Added && change(*removed) == EntryChange::Removed
            })
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

    pub(crate) fn presences(&self, entry: u32) -> impl Iterator<Item = Presence> {
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
        parts(first, last, |level, position| nodes.push((level, position)));
    }
}

/// Splits the elements from one to before another into nodes of a binary tree over them: a node is
/// its level, 0 for the elements themselves, and its position there.
pub(crate) fn parts(begin: u32, end: u32, mut node: impl FnMut(u32, u32)) {
    let (mut left, mut right, mut level) = (begin, end, 0);
    while left < right {
        if left % 2 == 1 {
            node(level, left);
            left += 1;
        }
        if right % 2 == 1 {
            right -= 1;
            node(level, right);
        }
        left /= 2;
        right /= 2;
        level += 1;
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
