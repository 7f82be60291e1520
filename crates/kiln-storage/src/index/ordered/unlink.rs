//! Taking empty leaves out of the tree, so that a table used as a queue neither grows nor leaves
//! a trail of empty leaves before its least key.
//!
//! The range of an empty leaf goes to its right or left neighbour. Mostly that is a sibling:
//!
//! ```text
//!        [ … 10 20 … ]              [ … 10 … ]
//!      ┌────┘ │  └───┐      ►      ┌────┘ └──┐
//!   [..10) [10..20) [20..30)    [..10)    [10..30)
//!             empty
//! ```
//!
//! At the edge of an inner node the neighbour hangs below another inner node. Then the separator
//! in the lowest common ancestor moves to the other end of the empty leaf, the leaf is cut off its
//! branch, and an inner node that loses its only child goes with it.

use kiln_platform::atomic::Ordering;
use kiln_platform::spin::Spinner;

use super::node::{Child, Inner, Leaf, Node};
use super::{OrderedIndex, version, within};
use crate::epoch::Participant;
use crate::index::Key;

/// More levels than a tree can have that fits into memory; in a taller one leaves stay empty.
const LEVELS_MAX: usize = 24;

/// One inner node on the way down.
struct Step<K: Key> {
    inner: Inner<K>,
    version: u64,
    /// The child that was taken.
    position: usize,
    /// The number of separators.
    count: usize,
}

/// The way from the root to a leaf.
struct Path<K: Key> {
    steps: [Option<Step<K>>; LEVELS_MAX],
    length: usize,
    leaf: Leaf<K>,
    leaf_version: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// How one attempt ended.
enum Attempt {
    /// Nothing remains to be done.
    Done,
    /// Something changed meanwhile, or another step may be possible.
    Again,
}

impl<K: Key> Path<K> {
    fn step(&self, level: usize) -> &Step<K> {
        self.steps[level]
            .as_ref()
            .expect("a path has a step for each of its levels")
    }

    /// The lowest level whose node has a child on that `side` of the path.
    fn common_ancestor(&self, side: Side) -> Option<usize> {
        (0..self.length).rev().find(|&level| {
            let step = self.step(level);
            match side {
                Side::Left => step.position > 0,
                Side::Right => step.position < step.count,
            }
        })
    }
}

impl<K: Key> OrderedIndex<K> {
    /// Unlinks the leaf of `key` if it is empty and a neighbour may take over its range.
    #[cold]
    pub fn unlink_empty_leaf(&self, key: &K, participant: &Participant) {
        let mut spinner = Spinner::default();
        while let Attempt::Again = self.try_unlink(key, participant) {
            spinner.spin();
        }
    }

    fn try_unlink(&self, key: &K, participant: &Participant) -> Attempt {
        let path = match self.path_to(key) {
            Ok(path) => path,
            Err(attempt) => return attempt,
        };
        if path.length == 0 {
            return Attempt::Done;
        }
        let (low, high) = (path.leaf.low(), path.leaf.high());
        let empty = path.leaf.count() == 0;
        if !version::validate(path.leaf.version(), path.leaf_version) {
            return Attempt::Again;
        }
        if !empty {
            return Attempt::Done;
        }
        // A sibling is cheaper than a cousin; of two, the right one, because queues empty from
        // the left and their next leaf has the same prefix.
        let mut candidates = [
            (Side::Right, path.common_ancestor(Side::Right)),
            (Side::Left, path.common_ancestor(Side::Left)),
        ];
        if candidates[1].1 > candidates[0].1 {
            candidates.swap(0, 1);
        }
        for (side, ancestor) in candidates {
            let Some(ancestor) = ancestor else { continue };
            let Some((neighbour, seen)) = self.neighbour(&path, ancestor, side) else {
                return Attempt::Again;
            };
            let allowed = neighbour.count() == 0
                || match side {
                    Side::Right => self.in_one_prefix(low, neighbour.high()),
                    Side::Left => self.in_one_prefix(neighbour.low(), high),
                };
            if !version::validate(neighbour.version(), seen) {
                return Attempt::Again;
            }
            if allowed {
                let neighbour = (neighbour, seen);
                return self.merge(&path, ancestor, side, neighbour, (low, high), participant);
            }
        }
        Attempt::Done
    }

    /// Whether all keys from `low` to below `high` have the same prefix.
    fn in_one_prefix(&self, low: K, high: Option<K>) -> bool {
        self.prefix_bits == 0 || within(high, low.prefix_successor(self.prefix_bits))
    }

    /// The way to the leaf of `key`; else whether to try again.
    fn path_to(&self, key: &K) -> Result<Path<K>, Attempt> {
        let root_version = version::read(&self.root.version);
        let mut child = Child::from_word(self.root.child.load(Ordering::Relaxed));
        if !version::validate(&self.root.version, root_version) {
            return Err(Attempt::Again);
        }
        let mut steps: [Option<Step<K>>; LEVELS_MAX] = [const { None }; LEVELS_MAX];
        let mut length = 0;
        let (mut above, mut above_version) = (&self.root.version, root_version);
        loop {
            // SAFETY: the child was read from a node, or the root pointer, that was valid then.
            let node = unsafe { child.node::<K>() };
            let word = match &node {
                Node::Leaf(leaf) => leaf.version(),
                Node::Inner(inner) => inner.version(),
            };
            let seen = version::read(word);
            if !version::validate(above, above_version) {
                return Err(Attempt::Again);
            }
            let inner = match node {
                Node::Leaf(leaf) => {
                    return Ok(Path {
                        steps,
                        length,
                        leaf,
                        leaf_version: seen,
                    });
                }
                Node::Inner(_) if length == LEVELS_MAX => return Err(Attempt::Done),
                Node::Inner(inner) => inner,
            };
            let count = inner.count();
            let position = inner.position_of(key, count);
            child = inner.child(position);
            if !version::validate(inner.version(), seen) {
                return Err(Attempt::Again);
            }
            let step = steps[length].insert(Step {
                inner,
                version: seen,
                position,
                count,
            });
            (above, above_version) = (step.inner.version_word(), seen);
            length += 1;
        }
    }

    /// The leaf next to the path's leaf on that side, below the common ancestor at that level,
    /// and its version; `None` when something changed on the way.
    fn neighbour(&self, path: &Path<K>, ancestor: usize, side: Side) -> Option<(Leaf<K>, u64)> {
        let step = path.step(ancestor);
        let (mut above, mut above_version) = (step.inner, step.version);
        let mut child = above.child(match side {
            Side::Left => step.position - 1,
            Side::Right => step.position + 1,
        });
        if !version::validate(above.version(), above_version) {
            return None;
        }
        loop {
            // SAFETY: the child was read from a node that was valid then.
            match unsafe { child.node::<K>() } {
                Node::Leaf(leaf) => {
                    let seen = version::read(leaf.version());
                    return version::validate(above.version(), above_version)
                        .then_some((leaf, seen));
                }
                Node::Inner(inner) => {
                    let seen = version::read(inner.version());
                    if !version::validate(above.version(), above_version) {
                        return None;
                    }
                    child = inner.child(match side {
                        Side::Left => inner.count(),
                        Side::Right => 0,
                    });
                    if !version::validate(inner.version(), seen) {
                        return None;
                    }
                    (above, above_version) = (inner, seen);
                }
            }
        }
    }

    /// Gives the range of the path's empty leaf to its neighbour and unlinks it.
    fn merge(
        &self,
        path: &Path<K>,
        ancestor: usize,
        side: Side,
        (neighbour, neighbour_version): (Leaf<K>, u64),
        (low, high): (K, Option<K>),
        participant: &Participant,
    ) -> Attempt {
        // Everything that changes is latched from the version that was seen, the ancestor first,
        // so that all findings still hold. The neighbour's guard stays: its range grows by keys
        // that are covered by the vanishing leaf's guard, which fails from here on.
        let mut latched = ancestor;
        while latched < path.length {
            let step = path.step(latched);
            if !version::try_latch_change(step.inner.version(), step.version) {
                break;
            }
            latched += 1;
        }
        let all = latched == path.length
            && version::try_latch_removal(neighbour.version(), neighbour_version);
        let all = all
            && (version::try_latch_change(path.leaf.version(), path.leaf_version) || {
                version::unlatch_unchanged(neighbour.version(), neighbour_version);
                false
            });
        if !all {
            for level in ancestor..latched {
                let step = path.step(level);
                version::unlatch_unchanged(step.inner.version(), step.version);
            }
            return Attempt::Again;
        }

        let still_empty = neighbour.count() == 0;
        match side {
            Side::Right => neighbour.set_low(low),
            Side::Left => neighbour.set_high(high),
        }
        // Upwards from the leaf: nodes that lose their only child vanish with it.
        let mut level = path.length - 1;
        while level > ancestor && path.step(level).count == 0 {
            level -= 1;
        }
        let vanished = level + 1;
        let step = path.step(level);
        if level > ancestor {
            // The path is at the edge of this node, away from the neighbour's side.
            let separator = match side {
                Side::Left => 0,
                Side::Right => step.count - 1,
            };
            step.inner.remove(separator, step.position);
            let step = path.step(ancestor);
            match (side, high) {
                (Side::Right, _) => step.inner.set_key(step.position, &low),
                (Side::Left, Some(high)) => step.inner.set_key(step.position - 1, &high),
                (Side::Left, None) => {
                    // A leaf with a right part of its branch left over is not the last leaf.
                    unreachable!("the last leaf has nothing to its right");
                }
            }
        } else {
            let separator = match side {
                Side::Left => step.position - 1,
                Side::Right => step.position,
            };
            step.inner.remove(separator, step.position);
        }

        version::unlatch_changed(path.leaf.version(), path.leaf_version);
        version::unlatch_removed(neighbour.version(), neighbour_version);
        for level in (ancestor..path.length).rev() {
            let step = path.step(level);
            version::unlatch_changed(step.inner.version(), step.version);
        }
        self.leaves.free(participant.arena(), path.leaf.address());
        for level in vanished..path.length {
            let inner = path.step(level).inner;
            self.inners.free(participant.arena(), inner.address());
        }
        if ancestor == 0 {
            self.lower_root(participant);
        }
        if still_empty {
            // The neighbour on the other side may take both.
            Attempt::Again
        } else {
            Attempt::Done
        }
    }

    /// While the root is an inner node with one child, makes that child the root.
    fn lower_root(&self, participant: &Participant) {
        loop {
            let root_version = version::read(&self.root.version);
            let child = Child::from_word(self.root.child.load(Ordering::Relaxed));
            if !version::validate(&self.root.version, root_version) {
                continue;
            }
            // SAFETY: the root pointer was valid when it was read.
            let Node::Inner(inner) = (unsafe { child.node::<K>() }) else {
                return;
            };
            let seen = version::read(inner.version());
            if !version::validate(&self.root.version, root_version) {
                continue;
            }
            let count = inner.count();
            if !version::validate(inner.version(), seen) {
                continue;
            }
            if count > 0 {
                return;
            }
            if !version::try_latch_change(&self.root.version, root_version) {
                continue;
            }
            if !version::try_latch_change(inner.version(), seen) {
                version::unlatch_unchanged(&self.root.version, root_version);
                continue;
            }
            self.root
                .child
                .store(inner.child(0).word(), Ordering::Relaxed);
            version::unlatch_changed(inner.version(), seen);
            version::unlatch_changed(&self.root.version, root_version);
            self.inners.free(participant.arena(), inner.address());
        }
    }
}
