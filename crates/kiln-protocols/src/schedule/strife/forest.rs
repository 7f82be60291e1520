//! The clusters of a batch's data nodes: a union-find forest that all workers change at once
//! (STRIFE §4).
//!
//! # Definitions
//!
//! - A *data node* is a number below [`Forest::data_nodes`]; it stands for a record in one batch.
//! - A *special node* has a number from there on. It stands for no record, but for a special
//!   cluster.
//! - Each node has a *parent*. A node that is its own parent is a *root*, and names its cluster.
//!
//! # Invariants
//!
//! 1. A parent is greater than its child. So there are no circles, and following parents ends.
//! 2. A node that is no root never becomes one again. Its parent may be replaced, by another node
//!    that lies between it and its root: the root above it stays the same, or is linked below a
//!    greater one.
//! 3. A node is linked below another one by a compare-and-swap that finds it to be a root. Of
//!    several workers that would link it, one does.
//! 4. Special nodes are greater than all data nodes, so a cluster that has one has it as its root.
//!    [`Forest::unite`] links no special node: two special clusters stay two, also when workers
//!    race. Only [`Forest::merge`] links them, when one worker is there alone.
//!
//! In the paper nodes are records, their order is that of their addresses, and special roots are
//! those above an address `M`. Here they are numbers in a dense array, so that the forest of a
//! batch fits into a cache that its records do not fit into; a record's `aux` says which node is
//! its. Paths are halved while they are followed, and not compressed in a second pass; by invariant
//! 2 that needs no compare-and-swap.
//!
//! # Orderings
//!
//! All relaxed. Nothing is published through a parent but other parents, and each is followed
//! wherever it leads: who sees an old parent sees a node on its own path (invariant 2), and who
//! takes a former root for one finds out by the compare-and-swap. The numbers themselves, and what
//! else is known of nodes, come through the tickets of the stages.

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::memory::name_range;

use crate::canary::Canary;

/// See the module's documentation.
pub struct Forest {
    parents: Box<[AtomicU32]>,
    data_nodes: u32,
}

impl Forest {
    /// A forest with room for so many data nodes and special nodes, each of them a root.
    pub fn new(data_nodes: u32, special_nodes: u32) -> Forest {
        let nodes = data_nodes + special_nodes;
        Forest {
            parents: (0..nodes).map(AtomicU32::new).collect(),
            data_nodes,
        }
    }

    /// Names its memory in reports about cache lines.
    pub fn name_memory(&self) {
        let bytes = size_of_val(&*self.parents);
        name_range(self.parents.as_ptr().addr(), bytes, || {
            "strife.parents".to_owned()
        });
    }

    /// The number of data nodes.
    pub fn data_nodes(&self) -> u32 {
        self.data_nodes
    }

    /// Whether the cluster with this root is special.
    #[inline(always)]
    pub fn is_special(&self, root: u32) -> bool {
        root >= self.data_nodes
    }

    /// The special node with this number among the special ones.
    #[inline(always)]
    pub fn special(&self, number: u32) -> u32 {
        self.data_nodes + number
    }

    /// The number among the special ones of a special node.
    #[inline(always)]
    pub fn number(&self, special: u32) -> u32 {
        special - self.data_nodes
    }

    /// Makes a node a cluster of its own, before any other worker knows it.
    #[inline(always)]
    pub fn reset(&self, node: u32) {
        self.parents[node as usize].store(node, Ordering::Relaxed);
    }

    /// The root of a node's cluster.
    #[inline]
    pub fn find(&self, node: u32) -> u32 {
        let mut node = node;
        loop {
            let parent = self.parents[node as usize].load(Ordering::Relaxed);
            if parent == node {
                return node;
            }
            let above = self.parents[parent as usize].load(Ordering::Relaxed);
            if above == parent {
                return parent;
            }
            self.parents[node as usize].store(above, Ordering::Relaxed);
            node = above;
        }
    }

    /// The first special node above a node, itself included, or its root: which special cluster it
    /// belonged to before they were merged.
    pub fn find_first_special(&self, node: u32) -> u32 {
        let mut node = node;
        loop {
            let parent = self.parents[node as usize].load(Ordering::Relaxed);
            if parent == node || self.is_special(node) {
                return node;
            }
            node = parent;
        }
    }

    /// Makes one cluster of those of two nodes, unless both are special; false if they are two
    /// after that.
    #[inline]
    pub fn unite(&self, one: u32, other: u32) -> bool {
        let (mut one, mut other) = (one, other);
        loop {
            (one, other) = (self.find(one), self.find(other));
            if one == other {
                return true;
            }
            let (child, parent) = (one.min(other), one.max(other));
            if self.is_special(child) {
                return false;
            }
            if Canary::UnionLost.sings() || self.link(child, parent) {
                return true;
            }
        }
    }

    /// Makes one cluster of two, special or not. No other worker uses the forest.
    pub fn merge(&self, one: u32, other: u32) {
        let (one, other) = (self.find(one), self.find(other));
        if one != other {
            self.link(one.min(other), one.max(other));
        }
    }

    /// Links a child below a greater node if it is a root.
    #[inline(always)]
    fn link(&self, child: u32, parent: u32) -> bool {
        self.parents[child as usize]
            .compare_exchange(child, parent, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;
    use kiln_platform::schedule::point;
    use kiln_platform::thread;

    use super::*;

    const DATA: u32 = 24;
    const SPECIAL: u32 = 4;
    const WORKERS: u64 = 3;

    /// What a worker was told of its unions.
    type Told = Vec<(u32, u32, bool)>;

    /// Sets of nodes, the simple way: by node, the least node that it was ever united with.
    fn closure(unions: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
        let mut sets: Vec<u32> = (0..DATA + SPECIAL).collect();
        for (one, other) in unions {
            let (one, other) = (sets[one as usize], sets[other as usize]);
            for set in &mut sets {
                if *set == one.max(other) {
                    *set = one.min(other);
                }
            }
        }
        sets
    }

    /// Workers unite random nodes at once. Then the clusters are what the unions that succeeded
    /// make together, no two special nodes are in one, and a union that was refused was refused for
    /// that reason.
    fn race(seed: u64, unions: u64) {
        let forest = Forest::new(DATA, SPECIAL);
        let work = &|worker: u64| -> Told {
            let mut random = Random::stream(seed, worker);
            let mut told = Vec::new();
            for _ in 0..unions {
                // Special nodes come seldom, as in batches; else all clusters are special at once.
                let one = random.below(DATA as usize) as u32;
                let other = match random.below(6) {
                    0 => forest.special(random.below(SPECIAL as usize) as u32),
                    _ => random.below(DATA as usize) as u32,
                };
                point("strife.unites");
                told.push((one, other, forest.unite(one, other)));
                let node = random.below(DATA as usize) as u32;
                assert!(
                    forest.find(node) >= node,
                    "a root is no less than its nodes"
                );
            }
            told
        };
        let told: Vec<(u32, u32, bool)> = thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| scope.spawn(move || work(worker)))
                .collect();
            let told = workers.into_iter().map(|worker| worker.join());
            told.flat_map(|told| told.expect("it is done")).collect()
        });
        let made = told.iter().filter(|(_, _, is_one)| *is_one);
        let sets = closure(made.map(|&(one, other, _)| (one, other)));
        let nodes = DATA + SPECIAL;
        for one in 0..nodes {
            for other in 0..nodes {
                let is_one = forest.find(one) == forest.find(other);
                let is_expected = sets[one as usize] == sets[other as usize];
                assert_eq!(is_one, is_expected, "{one} and {other}, seed {seed}");
            }
            let parent = forest.parents[one as usize].load(Ordering::Relaxed);
            assert!(parent >= one, "a parent is greater than its child");
        }
        for special in (0..SPECIAL).map(|number| forest.special(number)) {
            assert_eq!(forest.find(special), special, "special nodes stay roots");
        }
        for (one, other, is_one) in told {
            let (one, other) = (forest.find(one), forest.find(other));
            let are_special = forest.is_special(one) && forest.is_special(other);
            assert!(is_one || are_special && one != other, "seed {seed}");
        }
    }

    #[cfg(not(kiln_sim))]
    #[test]
    fn clusters_are_what_the_unions_make() {
        let rounds = if cfg!(miri) { 4 } else { 400 };
        for seed in 0..rounds {
            race(seed, if cfg!(miri) { 10 } else { 40 });
        }
    }

    /// Few unions by three workers, under thousands of schedules: each second one random, the
    /// others by priorities.
    #[cfg(kiln_sim)]
    #[test]
    fn clusters_are_what_the_unions_make_under_many_schedules() {
        use kiln_platform::sim::{self, Config, Schedule};
        for seed in 0..3_000 {
            let schedule = match seed % 2 {
                0 => Schedule::Random,
                _ => Schedule::Pct {
                    depth: 2 + (seed / 2 % 3) as u32,
                    steps: 300,
                },
            };
            let mut config = Config::new(schedule, seed);
            config.cores = WORKERS as usize;
            let run = sim::run(&config, || race(seed, 6 + seed % 10));
            run.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        }
    }

    #[test]
    fn special_clusters_become_one_when_they_are_merged() {
        let forest = Forest::new(DATA, SPECIAL);
        let (one, other) = (forest.special(0), forest.special(3));
        assert!(forest.unite(1, one) && forest.unite(2, other) && forest.unite(2, 5));
        assert!(!forest.unite(5, 1));
        forest.merge(one, other);
        assert_eq!(
            (forest.find_first_special(1), forest.find_first_special(5)),
            (one, other)
        );
        assert_eq!(forest.find(1), forest.find(5));
        assert!(forest.unite(1, 5));
        forest.reset(1);
        assert_eq!(forest.find(1), 1);
    }
}
