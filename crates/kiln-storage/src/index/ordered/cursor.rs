//! Range scans: a cursor that takes a consistent snapshot of one leaf at a time.

use std::fmt;
use std::ops::Bound;

use kiln_platform::work::{Work, charge};

use super::node::{FANOUT, Inner, Leaf, Node};
use super::{Found, OrderedIndex, version};
use crate::index::{Key, NodeVersion};

/// What a cursor found in one leaf: the payloads of its keys within the cursor's bounds, in scan
/// order, as they were at one moment.
#[derive(Clone, Copy)]
pub struct LeafBatch {
    /// The guard of the leaf: while it is current, no key has come between these.
    pub version: NodeVersion,
    /// The payloads; the first `count` are valid.
    pub payloads: [u64; FANOUT],
    /// How many payloads there are; 0 when the leaf has no key within the bounds, and its guard
    /// then covers the gap.
    pub count: usize,
}

impl LeafBatch {
    /// A batch to be filled by [`Cursor::next_leaf`].
    pub fn new() -> LeafBatch {
        LeafBatch {
            version: NodeVersion {
                node: std::ptr::NonNull::dangling(),
                observed: 0,
            },
            payloads: [0; FANOUT],
            count: 0,
        }
    }

    /// The payloads in scan order.
    #[inline]
    pub fn payloads(&self) -> &[u64] {
        &self.payloads[..self.count]
    }
}

impl Default for LeafBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LeafBatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.payloads()).finish()
    }
}

/// Where a cursor saw the leaf that it read last: if the node above is unchanged, the next leaf is
/// its neighbour there, and no walk from the root is needed.
struct Hint<K: Key> {
    above: Inner<K>,
    version: u64,
    position: usize,
}

/// A scan over the keys between two bounds, in either direction. It holds no latch and may be
/// kept while the index changes: what remains to be scanned is found by key.
pub struct Cursor<'a, K: Key> {
    index: &'a OrderedIndex<K>,
    /// The part of the range that is not scanned yet.
    lower: Bound<K>,
    upper: Bound<K>,
    reverse: bool,
    done: bool,
    hint: Option<Hint<K>>,
    /// The keys of the leaf read last, if the caller asked for them.
    keys: Option<Vec<K>>,
}

impl<K: Key> OrderedIndex<K> {
    /// A scan from `lower` to `upper`, or from `upper` to `lower` when `reverse`.
    #[inline]
    pub fn cursor(&self, lower: Bound<K>, upper: Bound<K>, reverse: bool) -> Cursor<'_, K> {
        Cursor {
            index: self,
            lower,
            upper,
            reverse,
            done: is_empty(&lower, &upper),
            hint: None,
            keys: None,
        }
    }
}

/// Whether no key can lie between the bounds.
fn is_empty<K: Key>(lower: &Bound<K>, upper: &Bound<K>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, Bound::Excluded(upper)) => *upper == K::MIN,
        (Bound::Excluded(lower), Bound::Unbounded) => *lower == K::MAX,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
    }
}

impl<K: Key> Cursor<'_, K> {
    /// From now on keeps the keys that belong to a batch.
    pub fn keep_keys(&mut self) {
        self.keys.get_or_insert_default();
    }

    /// The keys of the last batch's payloads; none unless they are kept.
    pub fn keys(&self) -> &[K] {
        self.keys.as_deref().unwrap_or_default()
    }

    /// The part of the range that is not scanned yet.
    pub fn bounds(&self) -> (Bound<K>, Bound<K>) {
        (self.lower, self.upper)
    }

    #[cold]
    fn copy_keys(&mut self, leaf: Leaf<K>, start: usize, end: usize) {
        let Some(keys) = &mut self.keys else { return };
        keys.clear();
        keys.extend((start..end).map(|position| leaf.key(position)));
        if self.reverse {
            keys.reverse();
        }
    }

    /// Reads the next leaf in scan order into `batch`, which may turn out empty; false when the
    /// whole range has been scanned. The guards of all batches together cover the whole range.
    #[inline]
    pub fn next_leaf(&mut self, batch: &mut LeafBatch) -> bool {
        if self.done {
            return false;
        }
        let rest = loop {
            let found = self.find_leaf();
            if let Some(rest) = self.read_leaf(&found, batch) {
                self.hint = found.above.inner.map(|above| Hint {
                    above,
                    version: found.above.version,
                    position: found.above.position,
                });
                break rest;
            }
        };
        match rest {
            Some(fence) if self.reverse => self.upper = Bound::Excluded(fence),
            Some(fence) => self.lower = Bound::Included(fence),
            None => self.done = true,
        }
        true
    }

    /// The leaf at the end of the remaining range where the scan goes on.
    #[inline]
    fn find_leaf(&mut self) -> Found<K> {
        if let Some(hint) = self.hint.take()
            && let Some(found) = self.neighbour(&hint)
        {
            return found;
        }
        let index = self.index;
        if self.reverse {
            match self.upper {
                Bound::Unbounded => index.descend(|_, count| count),
                Bound::Included(key) => {
                    index.descend(|inner, count| inner.position_of(&key, count))
                }
                Bound::Excluded(key) => {
                    index.descend(|inner, count| inner.position_below(&key, count))
                }
            }
        } else {
            match self.lower {
                Bound::Unbounded => index.descend(|_, _| 0),
                Bound::Included(key) | Bound::Excluded(key) => {
                    index.descend(|inner, count| inner.position_of(&key, count))
                }
            }
        }
    }

    /// The next leaf below the same inner node, if that is unchanged and has one.
    #[inline]
    fn neighbour(&self, hint: &Hint<K>) -> Option<Found<K>> {
        let above = hint.above;
        let position = if self.reverse {
            hint.position.checked_sub(1)?
        } else if hint.position < above.count() {
            hint.position + 1
        } else {
            return None;
        };
        let child = above.child(position);
        // As in a walk: first that nothing has changed and the address is whole, then that the
        // leaf was still linked when its version was read.
        if !version::validate(above.version(), hint.version) {
            return None;
        }
        child.prefetch::<K>();
        // SAFETY: the child was read from a node that was valid then.
        let Node::Leaf(leaf) = (unsafe { child.node::<K>() }) else {
            return None;
        };
        let seen = version::read(leaf.version());
        if !version::validate(above.version(), hint.version) {
            return None;
        }
        Some(Found {
            leaf,
            version: seen,
            above: super::Above {
                inner: Some(above),
                version: hint.version,
                position,
            },
        })
    }

    /// Copies the part of the leaf that is in range. The inner result is the fence where the scan
    /// goes on, or `None` when the range ends in this leaf; the outer one is `None` when the leaf
    /// changed meanwhile.
    #[inline]
    fn read_leaf(&mut self, found: &Found<K>, batch: &mut LeafBatch) -> Option<Option<K>> {
        let leaf: Leaf<K> = found.leaf;
        let count = leaf.count();
        let high = leaf.high();
        let low = leaf.low();
        // The bounds decide by the fences whether the leaf needs a search at either end.
        let start = match self.lower {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) if key < low => 0,
            Bound::Included(key) => leaf.lower_bound(&key, count),
            Bound::Excluded(key) => leaf.upper_bound(&key, count),
        };
        let ends_here = match (self.upper, high) {
            (_, None) => true,
            (Bound::Unbounded, _) => false,
            (Bound::Included(key), Some(high)) => key < high,
            (Bound::Excluded(key), Some(high)) => key <= high,
        };
        let end = match self.upper {
            Bound::Included(key) if ends_here => leaf.upper_bound(&key, count),
            Bound::Excluded(key) if ends_here => leaf.lower_bound(&key, count),
            _ => count,
        };
        let length = end.saturating_sub(start);
        for _ in 0..length {
            charge(Work::Scan);
        }
        if self.reverse {
            for (offset, target) in batch.payloads[..length].iter_mut().enumerate() {
                *target = leaf.payload(end - 1 - offset);
            }
        } else {
            for (offset, target) in batch.payloads[..length].iter_mut().enumerate() {
                *target = leaf.payload(start + offset);
            }
        }
        if self.keys.is_some() {
            self.copy_keys(leaf, start, start + length);
        }
        let rest = if self.reverse {
            let starts_here = match self.lower {
                Bound::Unbounded => low == K::MIN,
                Bound::Included(key) | Bound::Excluded(key) => key >= low,
            };
            (!starts_here).then_some(low)
        } else if ends_here {
            None
        } else {
            high
        };
        if !version::validate(leaf.version(), found.version) {
            return None;
        }
        batch.count = length;
        batch.version = version::guard(leaf.version(), found.version);
        Some(rest)
    }
}

impl<K: Key> fmt::Debug for Cursor<'_, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Cursor")
            .field("lower", &self.lower)
            .field("upper", &self.upper)
            .field("reverse", &self.reverse)
            .field("done", &self.done)
            .finish()
    }
}
