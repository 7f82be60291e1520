//! An ordered map from ranges of keys to queues of requests.
//!
//! A range that overlaps others in part makes *fragments* of them, each with a copy of the queue,
//! so that each key is in one fragment at most. Ranges are locked exactly, and no other keys.
//! Fragments vanish with their last requests.
//!
//! The paper's map is a red-black tree. Ours is a treap, balanced by random priorities, in memory
//! that is used again.

use kiln_platform::atomic::{AtomicU64, Ordering};

use super::queues::{NONE, Queue, Queues, Word};
use crate::shared::ranges::RangeClaim;
use crate::shared::ranges::claim::SpaceId;
use crate::shared::ranges::nodes::{Modes, Node};
use crate::shared::ranges::plan::Naming;

/// Ranges are known by their keys.
pub struct Keys;

impl Naming for Keys {
    const BY_NODES: bool = false;

    fn name(node: Node) -> u64 {
        node.hash >> 4
    }
}

/// A range of keys that a transaction wants, and its node in the tree.
#[derive(Default)]
struct Fragment {
    space: AtomicU64,
    first: Point,
    last: Point,
    /// The first request.
    queue: Word,
    /// Not below those of the nodes under it.
    priority: Word,
    /// The lower ranges under it; or the next free fragment.
    left: Word,
    /// The higher ranges under it.
    right: Word,
}

impl Fragment {
    #[inline(always)]
    fn space(&self) -> SpaceId {
        // Relaxed, as where it is stored: the latch orders them.
        self.space.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn place(&self) -> (SpaceId, u128) {
        (self.space(), self.first.get())
    }
}

/// A point in two words.
#[derive(Default)]
struct Point {
    high: AtomicU64,
    low: AtomicU64,
}

impl Point {
    #[inline(always)]
    fn get(&self) -> u128 {
        // Relaxed, as below: the latch orders them.
        let (high, low) = (
            self.high.load(Ordering::Relaxed),
            self.low.load(Ordering::Relaxed),
        );
        u128::from(high) << 64 | u128::from(low)
    }

    #[inline(always)]
    fn set(&self, point: u128) {
        self.high.store((point >> 64) as u64, Ordering::Relaxed);
        self.low.store(point as u64, Ordering::Relaxed);
    }
}

/// The map, in its place under a latch.
pub struct RangeMap {
    fragments: Vec<Fragment>,
    root: u32,
    free: u32,
    /// Where priorities come from.
    random: u32,
    queues: Queues,
}

impl Default for RangeMap {
    fn default() -> RangeMap {
        RangeMap {
            fragments: Vec::new(),
            root: NONE,
            free: NONE,
            random: 0x9e37_79b9,
            queues: Queues::default(),
        }
    }
}

impl RangeMap {
    #[inline(always)]
    fn at(&self, fragment: u32) -> &Fragment {
        &self.fragments[fragment as usize]
    }

    /// The tree's fragments below a place, and the others.
    fn split(&self, tree: u32, place: (SpaceId, u128)) -> (u32, u32) {
        if tree == NONE {
            return (NONE, NONE);
        }
        let node = self.at(tree);
        if node.place() < place {
            let (low, high) = self.split(node.right.get(), place);
            node.right.set(low);
            (tree, high)
        } else {
            let (low, high) = self.split(node.left.get(), place);
            node.left.set(high);
            (low, tree)
        }
    }

    /// One tree of two, all of whose fragments are below those of the other.
    fn join(&self, low: u32, high: u32) -> u32 {
        if low == NONE || high == NONE {
            return if low == NONE { high } else { low };
        }
        if self.at(low).priority.get() > self.at(high).priority.get() {
            let node = self.at(low);
            node.right.set(self.join(node.right.get(), high));
            low
        } else {
            let node = self.at(high);
            node.left.set(self.join(low, node.left.get()));
            high
        }
    }

    fn insert(&mut self, space: SpaceId, (first, last): (u128, u128), queue: Queue) -> u32 {
        // Xorshift (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let new = match self.free {
            NONE => {
                self.fragments.push(Fragment::default());
                self.fragments.len() as u32 - 1
            }
            free => {
                self.free = self.at(free).left.get();
                free
            }
        };
        let fragment = self.at(new);
        fragment.space.store(space, Ordering::Relaxed);
        fragment.first.set(first);
        fragment.last.set(last);
        fragment.queue.set(queue.first());
        fragment.priority.set(self.random);
        fragment.left.set(NONE);
        fragment.right.set(NONE);
        let (low, high) = self.split(self.root, (space, first));
        let low = self.join(low, new);
        self.root = self.join(low, high);
        new
    }

    fn remove(&mut self, fragment: u32) {
        let place = self.at(fragment).place();
        let (low, rest) = self.split(self.root, place);
        // It is the lowest of the rest.
        let high = self.without_first(rest);
        self.root = self.join(low, high);
        self.at(fragment).left.set(self.free);
        self.free = fragment;
    }

    /// A tree without its lowest fragment.
    fn without_first(&self, tree: u32) -> u32 {
        let node = self.at(tree);
        match node.left.get() {
            NONE => node.right.get(),
            left => {
                node.left.set(self.without_first(left));
                tree
            }
        }
    }

    /// The fragment that has a point, or else the first one above it in its space.
    fn from(&self, space: SpaceId, point: u128) -> Option<u32> {
        let (mut at, mut below, mut above) = (self.root, NONE, NONE);
        while at != NONE {
            let fragment = self.at(at);
            if fragment.place() <= (space, point) {
                (below, at) = (at, fragment.right.get());
            } else {
                (above, at) = (at, fragment.left.get());
            }
        }
        if below != NONE {
            let fragment = self.at(below);
            if fragment.space() == space && fragment.last.get() >= point {
                return Some(below);
            }
        }
        (above != NONE && self.at(above).space() == space).then_some(above)
    }

    /// Cuts a fragment in two, of which the second one begins with `point`, and returns that.
    fn cut(&mut self, fragment: u32, point: u128) -> u32 {
        let cut = self.at(fragment);
        let (space, last) = (cut.space(), cut.last.get());
        cut.last.set(point - 1);
        let queue = self
            .queues
            .copy(Queue::at(self.fragments[fragment as usize].queue.get()));
        self.insert(space, (point, last), queue)
    }

    /// Whether a transaction has all that it has asked for.
    pub fn has_all(&self, txn: u32) -> bool {
        self.queues.has_all(txn)
    }

    /// Makes a transaction's request for a range.
    pub fn add(&mut self, txn: u32, claim: &RangeClaim) {
        let modes = Modes::of(claim.exclusive).0;
        let mut next = claim.first;
        loop {
            let found = self.from(claim.space, next);
            let found = found.map(|found| (found, self.at(found).first.get()));
            let fragment = match found.filter(|(_, first)| *first <= claim.last) {
                Some((found, first)) if first < next => self.cut(found, next),
                Some((found, first)) if first == next => found,
                // No transaction wants the keys up to the next fragment, or to the end.
                before => {
                    let last = before.map_or(claim.last, |(_, first)| first - 1);
                    self.insert(claim.space, (next, last), Queue::EMPTY)
                }
            };
            if self.at(fragment).last.get() > claim.last {
                self.cut(fragment, claim.last + 1);
            }
            let place = &self.fragments[fragment as usize];
            let mut queue = Queue::at(place.queue.get());
            self.queues.request(&mut queue, txn, modes);
            place.queue.set(queue.first());
            match place.last.get() {
                last if last >= claim.last => return,
                last => next = last + 1,
            }
        }
    }

    /// Takes it back; `granted` gets the transactions that have all that they have asked for
    /// because of that.
    pub fn take_back(&mut self, txn: u32, claim: &RangeClaim, granted: &mut Vec<u32>) {
        let mut next = claim.first;
        while let Some(found) = self.from(claim.space, next) {
            let place = &self.fragments[found as usize];
            if place.first.get() > claim.last {
                return;
            }
            let mut queue = Queue::at(place.queue.get());
            self.queues.withdraw(&mut queue, txn, granted);
            place.queue.set(queue.first());
            let last = place.last.get();
            if queue.is_empty() {
                self.remove(found);
            }
            match last {
                last if last >= claim.last => return,
                last => next = last + 1,
            }
        }
    }

    /// Whether none of these has, or waits for, any key of a range in a way that is in the way.
    pub fn is_free(&self, of: impl Fn(u32) -> bool, claim: &RangeClaim) -> bool {
        let modes = Modes::of(claim.exclusive).0;
        let mut next = claim.first;
        while let Some(found) = self.from(claim.space, next) {
            let fragment = self.at(found);
            if fragment.first.get() > claim.last {
                return true;
            }
            let queue = Queue::at(fragment.queue.get());
            if self.queues.is_taken(queue, &of, modes) {
                return false;
            }
            match fragment.last.get() {
                last if last >= claim.last => return true,
                last => next = last + 1,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;

    use super::*;

    /// The first and the last keys of all fragments.
    fn fragments(map: &RangeMap) -> Vec<(u128, u128)> {
        let (mut all, mut next) = (Vec::new(), 0);
        while let Some(found) = map.from(7, next) {
            let last = map.at(found).last.get();
            all.push((map.at(found).first.get(), last));
            next = last + 1;
        }
        all
    }

    /// Against lists of whole ranges: who has to wait, and who may run when a transaction goes.
    #[test]
    fn fragments_say_what_whole_ranges_say() {
        let mut random = Random::from_seed(11);
        let mut map = RangeMap::default();
        // By transaction: its ranges, and whether it has them all.
        let mut present: Vec<(u32, Vec<RangeClaim>, bool)> = Vec::new();
        for _ in 0..20_000 {
            if present.len() < 12 && random.below(2) == 0 {
                let unused = (0..16).find(|txn| present.iter().all(|(used, ..)| used != txn));
                let txn = unused.expect("twelve are used at most");
                let ranges = 1 + random.below(3);
                let claims: Vec<RangeClaim> = (0..ranges).map(|_| drawn(&mut random)).collect();
                let is_free = |(_, others, _): &(u32, Vec<RangeClaim>, bool)| {
                    others
                        .iter()
                        .all(|other| claims.iter().all(|own| !own.conflicts(other)))
                };
                let is_free = present.iter().all(is_free);
                claims.iter().for_each(|claim| map.add(txn, claim));
                assert_eq!(map.has_all(txn), is_free);
                present.push((txn, claims, is_free));
            } else if !present.is_empty() {
                let (txn, claims, _) = present.remove(random.below(present.len()));
                let mut granted = Vec::new();
                for claim in &claims {
                    map.take_back(txn, claim, &mut granted);
                }
                granted.sort_unstable();
                let mut expected = Vec::new();
                for at in 0..present.len() {
                    let (before, rest) = present.split_at_mut(at);
                    let (txn, claims, has_all) = &mut rest[0];
                    let is_free = before.iter().all(|(_, others, _)| {
                        others
                            .iter()
                            .all(|other| claims.iter().all(|own| !own.conflicts(other)))
                    });
                    if is_free && !*has_all {
                        *has_all = true;
                        expected.push(*txn);
                    }
                }
                expected.sort_unstable();
                assert_eq!(granted, expected);
            }
            let fragments = fragments(&map);
            assert!(
                (fragments.windows(2)).all(|pair| pair[0].1 < pair[1].0),
                "each key is in one fragment at most"
            );
            assert_eq!(fragments.is_empty(), present.is_empty());
        }
    }

    fn drawn(random: &mut Random) -> RangeClaim {
        let first = random.below(40) as u128;
        let cuts = crate::shared::ranges::claim::no_cuts();
        RangeClaim {
            first,
            last: first + random.below(12) as u128,
            space: 7,
            cuts,
            level: 0,
            exclusive: random.below(2) == 0,
        }
    }
}
