//! A B+-tree with optimistic lock coupling, leaf guards and contention-aware partitioning.
//!
//! ```text
//!  root ─► inner ─┬─► leaf [low, high)   keys in order, payloads
//!                 ├─► leaf [low, high)   `high` of one is `low` of the next; leaves are not linked:
//!                 └─► leaf [low, ∞)      a scan goes on at the fence, through the parent
//! ```
//!
//! # Invariants
//!
//! 1. The ranges `[low, high)` of the leaves partition the key space; a leaf's entries lie within.
//! 2. With prefix bits, the entries of a leaf have one prefix, and a leaf with entries covers no
//!    key of another prefix (contention-aware index, STO §4.5): the first key of a prefix cuts a
//!    leaf of its own out of the empty leaf that it falls into. Empty leaves may cover any range.
//! 3. An insertion changes the guard of the leaf that covers the key before the entry can be read;
//!    a leaf's guard also changes when its range shrinks or the leaf goes. A removal, and growing
//!    by an empty neighbour's range, change no guard: nothing was added that a guard denies.
//!
//! # Latches
//!
//! Readers take none: they read a node between two looks at its version, and a child's version
//! between two looks at the parent's. Writers descend like readers and latch what they change by
//! compare-and-swap from the version they saw, parents first; if that fails they let go of
//! everything and start again, so that there are no deadlocks. Full inner nodes are split on the
//! way down, so that a parent always has room for what a child's split needs.

mod cursor;
mod node;
mod unlink;

use std::fmt;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::work::{Work, charge};

pub use cursor::{Cursor, LeafBatch};
pub use node::FANOUT;

use super::pool::Pool;
use super::version;
use super::{InsertEffect, Insertion, Key, Lookup, NodeVersion, Sighting, Withdrawal};
use crate::epoch::Participant;
use node::{Child, Inner, Leaf, Node};

/// Where the tree begins: a version word like a node's and the root's address, alone on their
/// cache lines, because every access reads them.
#[repr(align(128))]
struct Root {
    version: AtomicU64,
    child: AtomicU64,
}

/// The leaf that a worker inserted into last, where its next key probably goes too; null at first.
/// Only a hint: leaves are never given back, and one that is unlinked is empty.
#[repr(align(64))]
struct Finger(AtomicU64);

/// An ordered index from keys to payloads, usable by many threads at once.
pub struct OrderedIndex<K: Key> {
    root: Root,
    prefix_bits: u32,
    leaves: Pool,
    inners: Pool,
    fingers: Box<[Finger]>,
    keys: std::marker::PhantomData<fn(K)>,
}

/// The node above another, as a descent saw it.
struct Above<K: Key> {
    /// `None` is the root pointer itself.
    inner: Option<Inner<K>>,
    version: u64,
    /// Which child the descent took.
    position: usize,
}

/// A leaf as a descent found it.
struct Found<K: Key> {
    leaf: Leaf<K>,
    version: u64,
    above: Above<K>,
}

impl<K: Key> OrderedIndex<K> {
    /// Workers beyond this number share fingers.
    const FINGERS: usize = 32;

    /// An empty index that is not partitioned.
    pub fn new() -> OrderedIndex<K> {
        Self::with_prefix_bits(0)
    }

    /// An empty index whose leaves never hold keys that differ in their top `bits` bits, so that
    /// scans inside one prefix never conflict with insertions into another (STO §4.5). Each
    /// prefix in use costs at least one leaf. With 0 the index is not partitioned.
    pub fn with_prefix_bits(bits: u32) -> OrderedIndex<K> {
        let leaves = Pool::new(Leaf::<K>::BYTES);
        let (first, seen) = leaves.alloc(0);
        let leaf = Leaf::<K>::at(first);
        leaf.reset(K::MIN, None);
        version::unlatch_changed(leaf.version(), seen);
        OrderedIndex {
            root: Root {
                version: AtomicU64::new(0),
                child: AtomicU64::new(leaf.child().word()),
            },
            prefix_bits: bits,
            leaves,
            inners: Pool::new(Inner::<K>::BYTES),
            fingers: (0..Self::FINGERS)
                .map(|_| Finger(AtomicU64::new(0)))
                .collect(),
            keys: std::marker::PhantomData,
        }
    }

    /// The number of leading key bits by which the index is partitioned.
    pub fn prefix_bits(&self) -> u32 {
        self.prefix_bits
    }

    /// The payload of `key`, or the guard of its absence.
    #[inline]
    pub fn get(&self, key: &K) -> Lookup {
        loop {
            let found = self.descend(|inner, count| inner.position_of(key, count));
            let (leaf, seen) = (found.leaf, found.version);
            let count = leaf.count();
            let position = leaf.lower_bound(key, count);
            let payload = leaf
                .holds(position, count, key)
                .then(|| leaf.payload(position));
            if !version::validate(leaf.version(), seen) {
                continue;
            }
            return match payload {
                Some(payload) => Lookup::Found(payload),
                None => Lookup::Missing(version::guard(leaf.version(), seen)),
            };
        }
    }

    /// Finds `key` as [`OrderedIndex::get`] does, and notes where.
    pub fn sight(&self, key: &K) -> Option<Sighting> {
        let found = self.descend(|inner, count| inner.position_of(key, count));
        let (leaf, seen) = (found.leaf, found.version);
        let count = leaf.count();
        let position = leaf.lower_bound(key, count);
        let holds = leaf.holds(position, count, key);
        let payload = holds.then(|| leaf.payload(position))?;
        // Not found for whatever reason: who needs the key looks it up.
        let is_whole = version::validate(leaf.version(), seen);
        is_whole.then(|| Sighting::new(payload, leaf.version(), seen))
    }

    /// Starts fetching the leaf of `key` into the cache; walks the inner nodes, and does not wait
    /// for the leaf. Another thread's change of these nodes ends it.
    pub fn prefetch(&self, key: &K) {
        let (mut word, mut seen) = (&self.root.version, version::read(&self.root.version));
        let mut child = Child::from_word(self.root.child.load(Ordering::Relaxed));
        // Before the address is followed: it may be half of a change.
        while version::validate(word, seen) {
            child.prefetch::<K>();
            // SAFETY: the child was read from a node, or the root pointer, that was valid then, so
            // it is a node of this tree and stays one of its kind.
            let inner = match unsafe { child.node::<K>() } {
                Node::Leaf(_) => return,
                Node::Inner(inner) => inner,
            };
            let seen_inner = version::read(inner.version());
            child = inner.child(inner.position_of(key, inner.count()));
            (word, seen) = (inner.version_word(), seen_inner);
        }
    }

    /// Inserts `key` with `payload`, which is not zero, unless the key is there already. The
    /// participant's slot picks where new nodes come from and where the last key went; it need not
    /// be in an epoch.
    ///
    /// # Panics
    /// When `payload` is zero, or the system has no memory for another node.
    pub fn insert(&self, key: &K, payload: u64, participant: &Participant) -> Insertion {
        assert!(payload != 0, "a payload is the address of a record");
        charge(Work::IndexChange);
        let finger = &self.fingers[participant.arena() % Self::FINGERS].0;
        if let Some(effect) = self.insert_at_finger(finger, key, payload) {
            return Insertion::Inserted(effect);
        }
        loop {
            let Some(found) = self.descend_for_insert(key, participant) else {
                continue;
            };
            let (leaf, seen) = (found.leaf, found.version);
            let count = leaf.count();
            let position = leaf.insert_position(key, count);
            if leaf.holds(position, count, key) {
                let existing = leaf.payload(position);
                if version::validate(leaf.version(), seen) {
                    return Insertion::Exists(existing);
                }
                continue;
            }
            let cut = self.prefix_bits > 0 && count == 0 && self.covers_other_prefix(&leaf, key);
            let inserted = if cut {
                self.cut_and_insert(&found, key, payload, participant)
            } else if count == Leaf::<K>::CAPACITY {
                self.split_and_insert(&found, position, key, payload, participant)
            } else if version::try_latch_change(leaf.version(), seen) {
                leaf.insert(position, key, payload);
                let after = version::unlatch_changed(leaf.version(), seen);
                Some((leaf, effect(&leaf, seen, after, [None, None])))
            } else {
                None
            };
            if let Some((leaf, effect)) = inserted {
                finger.store(leaf.address().as_ptr() as u64, Ordering::Relaxed);
                return Insertion::Inserted(effect);
            }
        }
    }

    /// Inserts into the leaf of the last insertion, if the key belongs there, is new and needs no
    /// other change. Saves the walk from the root when keys arrive in order.
    #[inline]
    fn insert_at_finger(&self, finger: &AtomicU64, key: &K, payload: u64) -> Option<InsertEffect> {
        let address = NonNull::new(finger.load(Ordering::Relaxed) as *mut AtomicU64)?;
        let leaf = Leaf::<K>::at(address);
        let seen = version::read(leaf.version());
        let count = leaf.count();
        // An empty leaf may be unlinked, or cover keys of several prefixes and have to be cut; a
        // leaf with entries is linked, and then its fences say what belongs there.
        if !leaf.covers(key) || count == Leaf::<K>::CAPACITY || count == 0 {
            return None;
        }
        let position = leaf.insert_position(key, count);
        if leaf.holds(position, count, key) || !version::try_latch_change(leaf.version(), seen) {
            return None;
        }
        // The latch was taken at the version that all of the above was read at.
        leaf.insert(position, key, payload);
        let after = version::unlatch_changed(leaf.version(), seen);
        Some(effect(&leaf, seen, after, [None, None]))
    }

    /// Removes `key` if it has this `payload`; says whether it did.
    ///
    /// No guard changes. Who has read the key must notice by other means that it is gone: the
    /// record is marked absent, with a new tid, before its key is removed.
    pub fn remove(&self, key: &K, payload: u64, participant: &Participant) -> bool {
        self.take_out(key, payload, participant, false)
    }

    /// [`OrderedIndex::remove`] of a record that lives on under another key. Guards of the leaf
    /// fail: a scan that has met the entry here may see the record as it is there.
    pub fn remove_moved(&self, key: &K, payload: u64, participant: &Participant) -> bool {
        self.take_out(key, payload, participant, true)
    }

    fn take_out(&self, key: &K, payload: u64, participant: &Participant, moved: bool) -> bool {
        let withdrawal = self.take_from_leaf(key, payload, moved);
        if withdrawal == Withdrawal::Emptied {
            self.unlink_empty_leaf(key, participant);
        }
        withdrawal != Withdrawal::Missing
    }

    /// [`OrderedIndex::remove`] for a transaction that goes on, and may guard the leaf: it stays
    /// where it is, also when it is empty, until [`OrderedIndex::unlink_empty_leaf`].
    pub fn withdraw(&self, key: &K, payload: u64, _: &Participant) -> Withdrawal {
        self.take_from_leaf(key, payload, false)
    }

    #[inline(always)]
    fn take_from_leaf(&self, key: &K, payload: u64, moved: bool) -> Withdrawal {
        charge(Work::IndexChange);
        loop {
            let found = self.descend(|inner, count| inner.position_of(key, count));
            let (leaf, seen) = (found.leaf, found.version);
            let count = leaf.count();
            let position = leaf.lower_bound(key, count);
            if !leaf.holds(position, count, key) || leaf.payload(position) != payload {
                if version::validate(leaf.version(), seen) {
                    return Withdrawal::Missing;
                }
                continue;
            }
            if !try_latch_for(moved, leaf.version(), seen) {
                continue;
            }
            leaf.remove(position);
            unlatch_for(moved, leaf.version(), seen);
            return match count == 1 && found.above.inner.is_some() {
                true => Withdrawal::Emptied,
                false => Withdrawal::Done,
            };
        }
    }

    /// Gives `key` another payload, if it has `old`. Guards stay valid: no key comes or goes.
    /// Returns whether it did.
    pub fn replace(&self, key: &K, old: u64, new: u64) -> bool {
        self.exchange(key, old, new, false)
    }

    /// [`OrderedIndex::replace`] of a record that lives on under another key; guards of the leaf
    /// fail.
    pub fn replace_moved(&self, key: &K, old: u64, new: u64) -> bool {
        self.exchange(key, old, new, true)
    }

    fn exchange(&self, key: &K, old: u64, new: u64, moved: bool) -> bool {
        loop {
            let found = self.descend(|inner, count| inner.position_of(key, count));
            let (leaf, seen) = (found.leaf, found.version);
            let count = leaf.count();
            let position = leaf.lower_bound(key, count);
            if !leaf.holds(position, count, key) || leaf.payload(position) != old {
                if version::validate(leaf.version(), seen) {
                    return false;
                }
                continue;
            }
            if try_latch_for(moved, leaf.version(), seen) {
                leaf.set_payload(position, new);
                unlatch_for(moved, leaf.version(), seen);
                return true;
            }
        }
    }

    /// Calls `visit` with every entry in key order. Each leaf is seen at one moment, different
    /// leaves at different moments.
    pub fn for_each(&self, mut visit: impl FnMut(K, u64)) {
        let mut entries = Vec::with_capacity(FANOUT);
        let mut low = K::MIN;
        loop {
            entries.clear();
            let found = self.descend(|inner, count| inner.position_of(&low, count));
            let leaf = found.leaf;
            // Entries below `low` were reported before the leaf's range grew to the left.
            let count = leaf.count();
            for position in leaf.lower_bound(&low, count)..count {
                entries.push((leaf.key(position), leaf.payload(position)));
            }
            let high = leaf.high();
            if !version::validate(leaf.version(), found.version) {
                continue;
            }
            for &(key, payload) in &entries {
                visit(key, payload);
            }
            match high {
                Some(high) => low = high,
                None => return,
            }
        }
    }

    /// The number of entries, counted leaf by leaf.
    pub fn len(&self) -> usize {
        let (mut total, mut low) = (0, K::MIN);
        loop {
            let found = self.descend(|inner, count| inner.position_of(&low, count));
            let (count, high) = (found.leaf.count(), found.leaf.high());
            if !version::validate(found.leaf.version(), found.version) {
                continue;
            }
            total += count;
            match high {
                Some(high) => low = high,
                None => return total,
            }
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of levels above the leaves. Exact when no other thread changes the index.
    pub fn height(&self) -> usize {
        let levels = std::cell::Cell::new(0);
        self.descend(|_, _| {
            levels.set(levels.get() + 1);
            0
        });
        levels.get()
    }

    /// Bytes taken from the system for nodes, used or not.
    pub fn bytes(&self) -> usize {
        self.leaves.bytes() + self.inners.bytes()
    }

    /// What lies at `address` if it is in its memory, in words for reports.
    pub fn part_at(&self, address: usize) -> Option<String> {
        let words = |kind: &str, (node, offset): (usize, usize)| match offset {
            0 => format!("{kind} {node}, latch"),
            _ => format!("{kind} {node}, byte {offset}"),
        };
        let leaf = self.leaves.node_at(address).map(|at| words("leaf", at));
        leaf.or_else(|| self.inners.node_at(address).map(|at| words("inner", at)))
    }

    /// Walks from the root to a leaf; `choose` picks the child of an inner node with that many
    /// separators.
    #[inline]
    fn descend(&self, choose: impl Fn(&Inner<K>, usize) -> usize) -> Found<K> {
        let walked = self.walk(|inner, count, _, _| Some(choose(inner, count)));
        walked.expect("a walk that never gives up ends at a leaf")
    }

    /// Walks from the root to the leaf of `key` and splits full inner nodes on the way. `None`
    /// when something was split, or could not be: the caller starts again.
    #[inline]
    fn descend_for_insert(&self, key: &K, participant: &Participant) -> Option<Found<K>> {
        // Cutting out a prefix adds two separators to the parent, a split one.
        let room = if self.prefix_bits > 0 { 2 } else { 1 };
        self.walk(|inner, count, seen, above| {
            let position = inner.position_of(key, count);
            if count + room <= Inner::<K>::CAPACITY {
                return Some(position);
            }
            self.split_inner(inner, seen, position, above, participant);
            None
        })
    }

    /// Walks from the root to a leaf. `choose` gets each inner node with its count and version,
    /// and the node above; what it reads is validated afterwards. It may end the walk by `None`.
    #[inline(always)]
    fn walk(
        &self,
        choose: impl Fn(&Inner<K>, usize, u64, &Above<K>) -> Option<usize>,
    ) -> Option<Found<K>> {
        charge(Work::Lookup);
        'restart: loop {
            let mut above = Above {
                inner: None,
                version: version::read(&self.root.version),
                position: 0,
            };
            let mut child = Child::from_word(self.root.child.load(Ordering::Relaxed));
            if !version::validate(&self.root.version, above.version) {
                continue 'restart;
            }
            loop {
                charge(Work::Level);
                child.prefetch::<K>();
                // SAFETY: the child was read from a node, or the root pointer, that was valid
                // then, so it is a node of this tree and stays one of its kind.
                let inner = match unsafe { child.node::<K>() } {
                    Node::Leaf(leaf) => {
                        let version = version::read(leaf.version());
                        // The child's version counts only if the child was still linked when it
                        // was read; from then on its own version tells what happens to it.
                        if !version::validate(self.word_of(&above), above.version) {
                            continue 'restart;
                        }
                        return Some(Found {
                            leaf,
                            version,
                            above,
                        });
                    }
                    Node::Inner(inner) => inner,
                };
                let seen = version::read(inner.version());
                if !version::validate(self.word_of(&above), above.version) {
                    continue 'restart;
                }
                let count = inner.count();
                let position = choose(&inner, count, seen, &above)?;
                child = inner.child(position);
                // Before the address is followed: it may be half of a change.
                if !version::validate(inner.version(), seen) {
                    continue 'restart;
                }
                above = Above {
                    inner: Some(inner),
                    version: seen,
                    position,
                };
            }
        }
    }

    /// The version word of the node above.
    #[inline]
    fn word_of<'a>(&'a self, above: &'a Above<K>) -> &'a AtomicU64 {
        match &above.inner {
            Some(inner) => inner.version(),
            None => &self.root.version,
        }
    }

    /// Whether the empty `leaf` covers a key whose prefix is not `key`'s.
    fn covers_other_prefix(&self, leaf: &Leaf<K>, key: &K) -> bool {
        leaf.low() < key.prefix(self.prefix_bits)
            || !within(leaf.high(), key.prefix_successor(self.prefix_bits))
    }

    /// Latches the node above and a node below it, or neither.
    fn latch_both(&self, above: &Above<K>, word: &AtomicU64, seen: u64) -> bool {
        let above_word = self.word_of(above);
        if !version::try_latch_change(above_word, above.version) {
            return false;
        }
        if version::try_latch_change(word, seen) {
            return true;
        }
        version::unlatch_unchanged(above_word, above.version);
        false
    }

    /// Adds siblings to the right of the child that the descent took; the node above is latched
    /// and has room. Below the root pointer, a new root takes them.
    fn add_siblings(
        &self,
        above: &Above<K>,
        old: Child,
        siblings: &[(K, Child)],
        participant: &Participant,
    ) {
        match &above.inner {
            Some(inner) => {
                for (offset, (separator, child)) in siblings.iter().enumerate() {
                    inner.insert(above.position + offset, separator, *child);
                }
            }
            None => {
                let (address, seen) = self.inners.alloc(participant.arena());
                let root = Inner::<K>::at(address);
                root.reset(old);
                for (position, (separator, child)) in siblings.iter().enumerate() {
                    root.insert(position, separator, *child);
                }
                version::unlatch_changed(root.version(), seen);
                self.root
                    .child
                    .store(root.as_child().word(), Ordering::Relaxed);
            }
        }
    }

    /// Splits a full inner node, unless something changed meanwhile.
    #[cold]
    fn split_inner(
        &self,
        inner: &Inner<K>,
        seen: u64,
        position: usize,
        above: &Above<K>,
        participant: &Participant,
    ) {
        if !self.latch_both(above, inner.version(), seen) {
            return;
        }
        let count = inner.count();
        // At the right end keys probably go on to grow: the left half stays full.
        let at = if position == count {
            count - 1
        } else {
            count / 2
        };
        let (address, right_seen) = self.inners.alloc(participant.arena());
        let right = Inner::<K>::at(address);
        let separator = inner.split_into(&right, at);
        version::unlatch_changed(right.version(), right_seen);
        self.add_siblings(
            above,
            inner.as_child(),
            &[(separator, right.as_child())],
            participant,
        );
        version::unlatch_changed(inner.version(), seen);
        version::unlatch_changed(self.word_of(above), above.version);
    }

    /// Splits a full leaf and inserts `key`, whose place is `position`. `None` when something
    /// changed meanwhile.
    #[cold]
    fn split_and_insert(
        &self,
        found: &Found<K>,
        position: usize,
        key: &K,
        payload: u64,
        participant: &Participant,
    ) -> Option<(Leaf<K>, InsertEffect)> {
        let (leaf, seen) = (found.leaf, found.version);
        if !self.latch_both(&found.above, leaf.version(), seen) {
            return None;
        }
        let count = leaf.count();
        // Where the previous insertion went tells whether keys arrive in order; then the split
        // leaves one leaf full and the other with room where the next keys will go.
        let last = leaf.last_position();
        let (at, separator) = if position == count && last.is_some_and(|last| last + 1 == count) {
            (count, *key)
        } else if position > 0 && position < count && last == Some(position - 1) {
            (position, leaf.key(position))
        } else if position == 0 && last == Some(0) {
            (0, leaf.key(0))
        } else {
            (count / 2, leaf.key(count / 2))
        };
        let (address, right_seen) = self.leaves.alloc(participant.arena());
        let right = Leaf::<K>::at(address);
        leaf.split_into(&right, at, separator);
        let target = if *key < separator {
            leaf.insert(position, key, payload);
            leaf
        } else {
            right.insert(position - at, key, payload);
            right
        };
        let right_version = version::unlatch_changed(right.version(), right_seen);
        self.add_siblings(
            &found.above,
            leaf.child(),
            &[(separator, right.child())],
            participant,
        );
        let after = version::unlatch_changed(leaf.version(), seen);
        version::unlatch_changed(self.word_of(&found.above), found.above.version);
        let guard = version::guard(right.version(), right_version);
        Some((target, effect(&leaf, seen, after, [Some(guard), None])))
    }

    /// Cuts the range of `key`'s prefix out of an empty leaf and inserts the key there. `None`
    /// when something changed meanwhile.
    #[cold]
    fn cut_and_insert(
        &self,
        found: &Found<K>,
        key: &K,
        payload: u64,
        participant: &Participant,
    ) -> Option<(Leaf<K>, InsertEffect)> {
        let (leaf, seen) = (found.leaf, found.version);
        if !self.latch_both(&found.above, leaf.version(), seen) {
            return None;
        }
        let (first, next) = (
            key.prefix(self.prefix_bits),
            key.prefix_successor(self.prefix_bits),
        );
        let mut siblings = [(first, leaf.child()); 2];
        let mut guards: [Option<NodeVersion>; 2] = [None, None];
        let mut made = 0;
        // Cuts `rest` at `at` and returns the new right part, latched.
        let mut cut = |rest: Leaf<K>, at: K| {
            let (address, seen) = self.leaves.alloc(participant.arena());
            let right = Leaf::<K>::at(address);
            rest.split_into(&right, 0, at);
            siblings[made] = (at, right.child());
            made += 1;
            (right, seen)
        };
        let own = (leaf.low() < first).then(|| cut(leaf, first));
        let target = own.map_or(leaf, |(own, _)| own);
        let above = match next {
            Some(next) if !within(target.high(), Some(next)) => Some(cut(target, next)),
            _ => None,
        };
        target.insert(0, key, payload);
        for (guard, (new, new_seen)) in guards.iter_mut().zip([own, above].into_iter().flatten()) {
            let new_version = version::unlatch_changed(new.version(), new_seen);
            *guard = Some(version::guard(new.version(), new_version));
        }
        self.add_siblings(&found.above, leaf.child(), &siblings[..made], participant);
        let after = version::unlatch_changed(leaf.version(), seen);
        version::unlatch_changed(self.word_of(&found.above), found.above.version);
        Some((target, effect(&leaf, seen, after, guards)))
    }
}

/// Whether a range that ends before `high` ends no later than one that ends before `limit`, where
/// `None` is the end of all keys.
fn within<K: Key>(high: Option<K>, limit: Option<K>) -> bool {
    match (high, limit) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(high), Some(limit)) => high <= limit,
    }
}

fn effect<K: Key>(
    leaf: &Leaf<K>,
    before: u64,
    after: u64,
    splits: [Option<NodeVersion>; 2],
) -> InsertEffect {
    InsertEffect {
        node: NonNull::from(leaf.version()),
        before: version::guard_part(before),
        after: version::guard_part(after),
        splits,
    }
}

impl<K: Key> Default for OrderedIndex<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> fmt::Debug for OrderedIndex<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OrderedIndex")
            .field("prefix_bits", &self.prefix_bits)
            .field("bytes", &self.bytes())
            .finish()
    }
}

/// Latches for the removal or exchange of an entry: guards fail if its record has `moved`.
fn try_latch_for(moved: bool, word: &AtomicU64, seen: u64) -> bool {
    match moved {
        true => version::try_latch_change(word, seen),
        false => version::try_latch_removal(word, seen),
    }
}

/// The opposite.
fn unlatch_for(moved: bool, word: &AtomicU64, seen: u64) {
    match moved {
        true => {
            version::unlatch_changed(word, seen);
        }
        false => version::unlatch_removed(word, seen),
    }
}
