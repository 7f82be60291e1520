//! The nodes of the tree as views over their words.
//!
//! ```text
//!  leaf   version │ meta │ low │ high │ keys …           │ payloads …
//!  inner  version │ meta │ keys (separators) …           │ children (one more than keys) …
//! ```
//!
//! Every word is read and written atomically. A view may show a node that is being changed or has
//! been recycled; then the values belong to nothing, but a count is always within the capacity,
//! so that reading is in bounds, and the version tells afterwards.

use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicU64, Ordering, prefetch};

use crate::index::Key;

/// The most entries of a leaf.
pub const FANOUT: usize = 32;

/// The entries of a leaf with keys of more than two words.
const LONG_LEAF: usize = 14;
/// The separators of an inner node with keys of one or two words.
const SHORT_INNER: usize = 56;
/// The separators of an inner node with keys of more than two words.
const LONG_INNER: usize = 30;

/// The low bit of a child's address says that it is a leaf.
const LEAF_TAG: u64 = 1;

/// In a leaf's meta word: no position of a last insertion is known.
const NO_POSITION: u64 = 0xff;
/// In a leaf's meta word: the leaf ends at its high fence, not at the end of all keys.
const BOUNDED: u64 = 1 << 16;

/// The address of a child with its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Child(u64);

impl Child {
    pub(super) fn from_word(word: u64) -> Child {
        Child(word)
    }

    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    fn address(self) -> *mut AtomicU64 {
        (self.0 & !LEAF_TAG) as *mut AtomicU64
    }

    /// # Safety
    /// The child was read from a validated node, so that it is a node of this tree.
    #[inline]
    pub(super) unsafe fn node<K: Key>(self) -> Node<K> {
        // SAFETY: nodes are not at address 0.
        let address = unsafe { NonNull::new_unchecked(self.address()) };
        if self.0 & LEAF_TAG != 0 {
            Node::Leaf(Leaf::at(address))
        } else {
            Node::Inner(Inner::at(address))
        }
    }

    /// Starts fetching the lines that a search in this child will look at: all of a leaf, which is
    /// rarely in the cache, and the first half of an inner node, which mostly is in the second
    /// level. More or fewer were slower.
    #[inline]
    pub(super) fn prefetch<K: Key>(self) {
        let lines = if self.0 & LEAF_TAG != 0 {
            (Leaf::<K>::BYTES / 64).min(16)
        } else {
            (Inner::<K>::BYTES / 64).min(8)
        };
        for line in 0..lines {
            prefetch(self.address().wrapping_add(line * 8));
        }
    }
}

/// A node of either kind.
pub(super) enum Node<K: Key> {
    Leaf(Leaf<K>),
    Inner(Inner<K>),
}

/// A view of a leaf.
pub(super) struct Leaf<K>(NonNull<AtomicU64>, PhantomData<K>);

/// A view of an inner node.
pub(super) struct Inner<K>(NonNull<AtomicU64>, PhantomData<K>);

impl<K> Clone for Leaf<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Leaf<K> {}
impl<K> Clone for Inner<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Inner<K> {}

/// Keys that are compared in one round.
const BLOCK: usize = 8;

/// The position of the first of `count` sorted keys that `before` does not hold for, in a node
/// with room for `CAPACITY` keys whose unused places hold the greatest key.
///
/// The outcome of each comparison is a coin toss that no branch predictor gets right, so none is
/// jumped on. Short keys are compared in two rounds of independent comparisons, the last key of
/// each block and then the keys of one block: a binary search makes fewer, but each has to wait
/// for the one before.
#[inline(always)]
fn partition<const CAPACITY: usize>(
    short: bool,
    count: usize,
    before: impl Fn(usize) -> bool,
) -> usize {
    if short {
        let mut base = 0;
        for block in 1..CAPACITY / BLOCK {
            base += usize::from(before(block * BLOCK - 1)) * BLOCK;
        }
        let mut position = base;
        for offset in 0..BLOCK {
            position += usize::from(before(base + offset));
        }
        // The greatest key itself may be asked for, which unused places then equal.
        return position.min(count);
    }
    let (mut base, mut length) = (0, count);
    while length > 1 {
        let half = length / 2;
        let next = base + half;
        base = std::hint::select_unpredictable(before(next - 1), next, base);
        length -= half;
    }
    base + usize::from(length == 1 && before(base))
}

impl<K: Key> Leaf<K> {
    /// Entries of a leaf. Long keys get fewer, because inserting moves half of them.
    pub(super) const CAPACITY: usize = if K::WORDS <= 2 { FANOUT } else { LONG_LEAF };
    const LOW: usize = 2;
    const HIGH: usize = 2 + K::WORDS;
    const KEYS: usize = 2 + 2 * K::WORDS;
    const PAYLOADS: usize = Self::KEYS + Self::CAPACITY * K::WORDS;
    /// The size of a leaf.
    pub(super) const BYTES: usize = ((Self::PAYLOADS + Self::CAPACITY) * 8).next_multiple_of(64);

    /// A view of the leaf at `address`, which is a node of a leaf pool with this key type.
    #[inline]
    pub(super) fn at(address: NonNull<AtomicU64>) -> Leaf<K> {
        Leaf(address, PhantomData)
    }

    #[inline]
    pub(super) fn address(&self) -> NonNull<AtomicU64> {
        self.0
    }

    pub(super) fn child(&self) -> Child {
        Child(self.0.as_ptr() as u64 | LEAF_TAG)
    }

    #[inline(always)]
    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < Self::BYTES / 8);
        // SAFETY: views are made of nodes of `BYTES` bytes that live as long as the tree, and all
        // indexes are within, because counts never exceed the capacity.
        unsafe { self.0.add(index).as_ref() }
    }

    #[inline(always)]
    fn words(&self, index: usize) -> &[AtomicU64] {
        debug_assert!(index + K::WORDS <= Self::BYTES / 8);
        // SAFETY: as in `word`.
        unsafe { std::slice::from_raw_parts(self.0.add(index).as_ptr(), K::WORDS) }
    }

    #[inline]
    pub(super) fn version(&self) -> &AtomicU64 {
        self.word(0)
    }

    #[inline]
    fn meta(&self) -> u64 {
        self.word(1).load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        (self.meta() & 0xff) as usize
    }

    /// The position of the previous insertion, when nothing else changed the leaf since.
    pub(super) fn last_position(&self) -> Option<usize> {
        let position = self.meta() >> 8 & 0xff;
        (position != NO_POSITION).then_some(position as usize)
    }

    fn set_meta(&self, count: usize, last_position: u64) {
        let bounded = self.meta() & BOUNDED;
        self.word(1).store(
            bounded | last_position << 8 | count as u64,
            Ordering::Relaxed,
        );
    }

    /// The least key that belongs into this leaf.
    #[inline]
    pub(super) fn low(&self) -> K {
        K::load(self.words(Self::LOW))
    }

    /// The least key that belongs into the next leaf; `None` when this is the last.
    #[inline]
    pub(super) fn high(&self) -> Option<K> {
        (self.meta() & BOUNDED != 0).then(|| K::load(self.words(Self::HIGH)))
    }

    pub(super) fn set_low(&self, low: K) {
        low.store(self.words(Self::LOW));
    }

    pub(super) fn set_high(&self, high: Option<K>) {
        let rest = self.meta() & !BOUNDED;
        match high {
            Some(high) => {
                high.store(self.words(Self::HIGH));
                self.word(1).store(rest | BOUNDED, Ordering::Relaxed);
            }
            None => self.word(1).store(rest, Ordering::Relaxed),
        }
    }

    #[inline(always)]
    fn key_words(&self, position: usize) -> &[AtomicU64] {
        self.words(Self::KEYS + position * K::WORDS)
    }

    #[inline]
    pub(super) fn key(&self, position: usize) -> K {
        K::load(self.key_words(position))
    }

    #[inline]
    pub(super) fn payload(&self, position: usize) -> u64 {
        self.word(Self::PAYLOADS + position).load(Ordering::Relaxed)
    }

    pub(super) fn set_payload(&self, position: usize, payload: u64) {
        self.word(Self::PAYLOADS + position)
            .store(payload, Ordering::Relaxed);
    }

    #[inline(always)]
    fn partition(&self, count: usize, before: impl Fn(usize) -> bool) -> usize {
        if K::WORDS <= 2 {
            partition::<FANOUT>(true, count, before)
        } else {
            partition::<LONG_LEAF>(false, count, before)
        }
    }

    /// The position of the first key that is at least `key`.
    #[inline]
    pub(super) fn lower_bound(&self, key: &K, count: usize) -> usize {
        self.partition(count, |position| {
            key.compare_stored(self.key_words(position)) == Order::Less
        })
    }

    /// The position of the first key that is greater than `key`.
    #[inline]
    pub(super) fn upper_bound(&self, key: &K, count: usize) -> usize {
        self.partition(count, |position| {
            key.compare_stored(self.key_words(position)) != Order::Greater
        })
    }

    /// Like [`Leaf::lower_bound`], but looks at the end first, where monotone keys go.
    #[inline]
    pub(super) fn insert_position(&self, key: &K, count: usize) -> usize {
        if count > 0 && key.compare_stored(self.key_words(count - 1)) == Order::Less {
            return count;
        }
        self.lower_bound(key, count)
    }

    /// Whether `key` is at `position`.
    #[inline]
    pub(super) fn holds(&self, position: usize, count: usize, key: &K) -> bool {
        position < count && key.equals_stored(self.key_words(position))
    }

    fn move_entry(&self, from: usize, to: &Leaf<K>, at: usize) {
        for (target, source) in to.key_words(at).iter().zip(self.key_words(from)) {
            target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        to.word(Self::PAYLOADS + at)
            .store(self.payload(from), Ordering::Relaxed);
    }

    /// Whether `key` lies between the fences.
    #[inline]
    pub(super) fn covers(&self, key: &K) -> bool {
        let meta = self.meta();
        let above_low = key.compare_stored(self.words(Self::LOW)) != Order::Greater;
        let below_high =
            meta & BOUNDED == 0 || key.compare_stored(self.words(Self::HIGH)) == Order::Greater;
        above_low && below_high
    }

    /// Sets unused places to the greatest key, as `partition` expects them.
    fn clear_keys(&self, positions: std::ops::Range<usize>) {
        for position in positions {
            K::MAX.store(self.key_words(position));
        }
    }

    /// Makes this an empty leaf for the keys from `low` to below `high`.
    pub(super) fn reset(&self, low: K, high: Option<K>) {
        self.set_low(low);
        self.set_high(high);
        self.set_meta(0, NO_POSITION);
        self.clear_keys(0..Self::CAPACITY);
    }

    /// Inserts at `position`; there is room.
    #[inline]
    pub(super) fn insert(&self, position: usize, key: &K, payload: u64) {
        let count = self.count();
        debug_assert!(count < Self::CAPACITY && position <= count);
        for from in (position..count).rev() {
            self.move_entry(from, self, from + 1);
        }
        key.store(self.key_words(position));
        self.word(Self::PAYLOADS + position)
            .store(payload, Ordering::Relaxed);
        self.set_meta(count + 1, position as u64);
    }

    /// Removes what is at `position`.
    pub(super) fn remove(&self, position: usize) {
        let count = self.count();
        for to in position..count - 1 {
            self.move_entry(to + 1, self, to);
        }
        self.clear_keys(count - 1..count);
        self.set_meta(count - 1, NO_POSITION);
    }

    /// Moves the entries from position `at` on, and the keys from `separator` on, to `right`.
    pub(super) fn split_into(&self, right: &Leaf<K>, at: usize, separator: K) {
        let count = self.count();
        right.reset(separator, self.high());
        for from in at..count {
            self.move_entry(from, right, from - at);
        }
        right.set_meta(count - at, NO_POSITION);
        self.set_high(Some(separator));
        self.clear_keys(at..count);
        self.set_meta(at, NO_POSITION);
    }
}

impl<K: Key> Inner<K> {
    /// Separators of an inner node.
    pub(super) const CAPACITY: usize = if K::WORDS <= 2 {
        SHORT_INNER
    } else {
        LONG_INNER
    };
    const KEYS: usize = 2;
    const CHILDREN: usize = Self::KEYS + Self::CAPACITY * K::WORDS;
    /// The size of an inner node.
    pub(super) const BYTES: usize =
        ((Self::CHILDREN + Self::CAPACITY + 1) * 8).next_multiple_of(64);

    /// A view of the inner node at `address`, a node of an inner pool with this key type.
    #[inline]
    pub(super) fn at(address: NonNull<AtomicU64>) -> Inner<K> {
        Inner(address, PhantomData)
    }

    pub(super) fn address(&self) -> NonNull<AtomicU64> {
        self.0
    }

    pub(super) fn as_child(&self) -> Child {
        Child(self.0.as_ptr() as u64)
    }

    #[inline(always)]
    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < Self::BYTES / 8);
        // SAFETY: views are made of nodes of `BYTES` bytes that live as long as the tree, and all
        // indexes are within, because counts never exceed the capacity.
        unsafe { self.0.add(index).as_ref() }
    }

    #[inline(always)]
    fn key_words(&self, position: usize) -> &[AtomicU64] {
        debug_assert!(position < Self::CAPACITY);
        let index = Self::KEYS + position * K::WORDS;
        // SAFETY: as in `word`.
        unsafe { std::slice::from_raw_parts(self.0.add(index).as_ptr(), K::WORDS) }
    }

    #[inline]
    pub(super) fn version(&self) -> &AtomicU64 {
        self.word(0)
    }

    /// The version word, for as long as the tree lives.
    pub(super) fn version_word<'a>(self) -> &'a AtomicU64 {
        // SAFETY: as in `word`; nodes live as long as the tree, and views are not kept longer.
        unsafe { self.0.as_ref() }
    }

    /// The number of separators; there is one child more.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.word(1).load(Ordering::Relaxed) as usize
    }

    fn set_count(&self, count: usize) {
        self.word(1).store(count as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn key(&self, position: usize) -> K {
        K::load(self.key_words(position))
    }

    pub(super) fn set_key(&self, position: usize, key: &K) {
        key.store(self.key_words(position));
    }

    #[inline]
    pub(super) fn child(&self, position: usize) -> Child {
        Child(self.word(Self::CHILDREN + position).load(Ordering::Relaxed))
    }

    fn set_child(&self, position: usize, child: Child) {
        self.word(Self::CHILDREN + position)
            .store(child.0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn partition(&self, count: usize, before: impl Fn(usize) -> bool) -> usize {
        if K::WORDS <= 2 {
            partition::<SHORT_INNER>(true, count, before)
        } else {
            partition::<LONG_INNER>(false, count, before)
        }
    }

    /// The child whose range holds `key`.
    #[inline]
    pub(super) fn position_of(&self, key: &K, count: usize) -> usize {
        self.partition(count, |position| {
            key.compare_stored(self.key_words(position)) != Order::Greater
        })
    }

    /// The child whose range holds the keys just below `key`.
    #[inline]
    pub(super) fn position_below(&self, key: &K, count: usize) -> usize {
        self.partition(count, |position| {
            key.compare_stored(self.key_words(position)) == Order::Less
        })
    }

    /// Sets unused places to the greatest key, as `partition` expects them.
    fn clear_keys(&self, positions: std::ops::Range<usize>) {
        for position in positions {
            K::MAX.store(self.key_words(position));
        }
    }

    /// Makes this a node with one child.
    pub(super) fn reset(&self, child: Child) {
        self.set_child(0, child);
        self.clear_keys(0..Self::CAPACITY);
        self.set_count(0);
    }

    /// Inserts `child` to the right of the child at `position`, for the keys from `separator` on.
    pub(super) fn insert(&self, position: usize, separator: &K, child: Child) {
        let count = self.count();
        debug_assert!(count < Self::CAPACITY && position <= count);
        for from in (position..count).rev() {
            self.set_key(from + 1, &self.key(from));
            self.set_child(from + 2, self.child(from + 1));
        }
        self.set_key(position, separator);
        self.set_child(position + 1, child);
        self.set_count(count + 1);
    }

    /// Moves what is right of the separator at `at` to `right` and returns that separator, which
    /// belongs into the parent.
    pub(super) fn split_into(&self, right: &Inner<K>, at: usize) -> K {
        let count = self.count();
        let separator = self.key(at);
        right.reset(self.child(at + 1));
        for from in at + 1..count {
            right.set_key(from - at - 1, &self.key(from));
            right.set_child(from - at, self.child(from + 1));
        }
        right.set_count(count - at - 1);
        self.clear_keys(at..count);
        self.set_count(at);
        separator
    }

    /// Removes the child at `child` and the separator at `separator`, one of its two neighbours.
    pub(super) fn remove(&self, separator: usize, child: usize) {
        let count = self.count();
        for to in separator..count - 1 {
            self.set_key(to, &self.key(to + 1));
        }
        self.clear_keys(count - 1..count);
        for to in child..count {
            self.set_child(to, self.child(to + 1));
        }
        self.set_count(count - 1);
    }
}
