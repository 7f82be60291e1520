//! The analysis of a batch: PREPARE, SPOT, FUSE, MERGE and ALLOCATE (STRIFE §3.1, Algorithm 1).
//!
//! In PREPARE a record gets a label, and with it a data node, if a transaction of the batch plans
//! to write it; a record that is without one when the batch is closed is ignored. With `+cu` that
//! also holds of a record to which all transactions only add, by updates that can be deferred to
//! the commit: its label says so, until a transaction wants more of it. The data access graph is
//! not made: its edges are the transactions' footprints.
//!
//! The records that no transaction has labelled before this one get one data node together, the
//! transaction's own. A record that a second transaction writes is parted from them, and gets a
//! node to itself, as each record has in the paper: else all that touch hot records would be tied
//! together by the transaction that came to these first, also when that is a residual. That
//! transaction finds such nodes when the batch is closed ([`Context::resolve`]). Most records of a
//! batch are touched by one transaction, so most transactions have two nodes, or three, and the
//! steps after PREPARE need not look at each key.

use kiln_platform::atomic::Ordering;
use kiln_platform::plain;
use kiln_platform::random::Random;

use super::batch::Batch;
use super::context::{ANALYSED_BYTES, Context, analysed};
use super::locks::{Origin, Wanted, claim_deferred, put_label, tie_of};
use crate::canary::Canary;
use crate::shared::planning::{Claim, Demand};

/// Data nodes that a worker takes for itself at a time: this part of all, within bounds. All
/// workers label at once, and wait for the counter's cache line.
const NODES_TAKEN_PART: u32 = 256;
const NODES_TAKEN: std::ops::RangeInclusive<u32> = 16..=512;

/// Transactions of an item are asked for when those before them, by so many, are looked at.
const FETCHED_AHEAD: u32 = 6;

/// A worker's memory for the analysis.
#[derive(Default)]
pub(super) struct Analyst {
    /// Data nodes that it has taken and not used, of the batch with this number.
    nodes: std::ops::Range<u32>,
    nodes_of: u64,
    /// The special clusters that a transaction is connected to.
    special: Vec<u32>,
    /// By special cluster: what is to be added to its count.
    counted: Vec<u32>,
    /// Pairs of special clusters that were met for the first time.
    pairs: Vec<u32>,
    /// Queues that are to be appended to those of the batch.
    chains: Vec<Chain>,
    /// Residuals that are to be appended to those of the batch.
    residuals: Vec<u32>,
    /// Clusters that are not special, and whose first transactions it appended.
    small: Vec<u32>,
    /// Transactions of the largest small cluster that it appended to.
    largest: u32,
}

/// Transactions of one cluster, linked to each other.
#[derive(Clone, Copy, Default)]
struct Chain {
    root: u32,
    /// Numbers plus one.
    first: u32,
    last: u32,
    length: u32,
}

/// Chains that a worker has at a time.
const CHAINS: usize = 128;

impl Analyst {
    /// A data node that the worker has not used.
    #[inline]
    fn spare_node(&mut self, batch: &Batch, number: u64) -> Option<u32> {
        if self.nodes.is_empty() || self.nodes_of != number {
            let all = batch.forest.data_nodes();
            let count = (all / NODES_TAKEN_PART).clamp(*NODES_TAKEN.start(), *NODES_TAKEN.end());
            // Relaxed: numbers are all that is handed out.
            let first = batch.nodes_taken.0.fetch_add(count, Ordering::Relaxed);
            if first + count > all {
                batch.nodes_taken.0.fetch_sub(count, Ordering::Relaxed);
                return None;
            }
            (self.nodes, self.nodes_of) = (first..first + count, number);
        }
        Some(self.nodes.start)
    }

    /// A data node that stands for no record.
    fn new_node(&mut self, batch: &Batch) -> Option<u32> {
        let node = self.spare_node(batch, batch.number())?;
        batch.forest.reset(node);
        self.nodes.start += 1;
        Some(node)
    }

    /// PREPARE: labels what a transaction will write. The batch is not closed meanwhile.
    #[inline]
    pub fn prepare(&mut self, batch: &Batch, number: u64, context: &mut Context) {
        context.nodes.clear();
        (context.is_resolved, context.is_residual) = (false, false);
        (context.reads, context.leaves) = (false, false);
        // The node of what it labels first, and whether it ties anything together yet.
        let (mut own, mut is_own_used) = (None, false);
        for claim in context.footprint.claims() {
            if !claim.exclusive {
                context.reads = true;
                continue;
            }
            let put = put_label(claim.record, number, claim.is_deferred, |wanted| {
                if wanted == Wanted::Common && own.is_some() {
                    return own;
                }
                let node = self.spare_node(batch, number)?;
                batch.forest.reset(node);
                Some(node)
            });
            let Some(label) = put else {
                context.is_residual = true;
                return;
            };
            match label.origin {
                Origin::New if own.is_none() => {
                    self.nodes.start += 1;
                    own = Some(label.node);
                }
                Origin::Parted(from) => {
                    self.nodes.start += 1;
                    batch.note_parted(from, number);
                }
                Origin::New | Origin::Known => {}
            }
            if label.is_deferred {
                // A later transaction may claim it, and then it counts.
                context.leaves = true;
            } else if own != Some(label.node) {
                context.nodes.push(label.node);
            } else if !is_own_used {
                is_own_used = true;
                context.nodes.push(label.node);
            }
        }
        context.note_change();
        if context.leaves {
            batch.note_deferred();
        }
    }

    /// A record that a transaction reads is not left to commits. Before SPOT, of batches in which
    /// something is.
    pub fn exclude(&mut self, batch: &Batch, item: u32) {
        let number = batch.number();
        // SAFETY: the caller has taken the item, here and below.
        for at in unsafe { batch.chunk(item) } {
            // SAFETY: as above.
            let context = unsafe {
                batch.fetch(at + FETCHED_AHEAD, ANALYSED_BYTES);
                batch.context(at)
            };
            if !context.reads || Canary::LeftThoughRead.sings() {
                continue;
            }
            context.footprint.note_reads();
            for claim in context.footprint.claims() {
                if !claim.exclusive {
                    claim_deferred(claim.record, number);
                }
            }
        }
    }

    /// SPOT: makes special clusters of random transactions that are connected to none.
    pub fn spot(&mut self, batch: &Batch, random: &mut Random) {
        let forest = &batch.forest;
        let number = batch.number();
        // SAFETY: the caller has taken the one item that all transactions belong to.
        let length = unsafe { batch.contexts() }.len();
        let (mut specials, mut late) = (0, 0);
        let samples = batch.tuned.samples();
        for sample in 0..samples {
            // SAFETY: as above; there is one reference at a time.
            let context = unsafe { batch.context(random.below(length) as u32) };
            if context.is_residual {
                continue;
            }
            context.resolve(batch, number);
            let mut roots = context.nodes.iter().map(|&node| forest.find(node));
            if context.nodes.is_empty() || roots.any(|root| forest.is_special(root)) {
                continue;
            }
            let special = forest.special(specials);
            forest.reset(special);
            for &node in &context.nodes {
                forest.unite(special, node);
            }
            specials += 1;
            late += u32::from(sample * 2 >= samples);
        }
        // Relaxed: the ticket of the next stage publishes it.
        batch.specials.store(specials, Ordering::Relaxed);
        batch.late_specials.store(late, Ordering::Relaxed);
    }

    /// FUSE: unites the data nodes of each transaction of an item, unless it is connected to
    /// several special clusters.
    pub fn fuse(&mut self, batch: &Batch, item: u32) {
        let specials = batch.specials.load(Ordering::Relaxed) as usize;
        self.counted.clear();
        self.counted.resize(specials, 0);
        self.pairs.clear();
        let number = batch.number();
        // SAFETY: the caller has taken the item, here and below.
        for at in unsafe { batch.chunk(item) } {
            // SAFETY: as above.
            let context = unsafe {
                batch.fetch(at + FETCHED_AHEAD, ANALYSED_BYTES);
                batch.context(at)
            };
            if !context.is_residual {
                context.resolve(batch, number);
                self.fuse_one(batch, context);
                context.note_change();
            }
        }
        for (count, counted) in batch.counts.iter().zip(&self.counted) {
            if *counted > 0 {
                // Relaxed: looked at in MERGE, after the stage.
                count.0.fetch_add(*counted, Ordering::Relaxed);
            }
        }
        batch.pairs_met.append(&self.pairs);
    }

    #[inline]
    fn fuse_one(&mut self, batch: &Batch, context: &mut Context) {
        let (forest, nodes) = (&batch.forest, &mut context.nodes);
        plain::reads(nodes.as_slice());
        let Some(&first) = nodes.first() else { return };
        self.connect(batch, nodes);
        if self.special.len() <= 1 {
            let cluster = self.special.first().copied().unwrap_or(first);
            if nodes.iter().all(|&node| forest.unite(cluster, node)) {
                // They are one from now on.
                let root = forest.find(cluster);
                nodes.truncate(1);
                nodes[0] = root;
                if forest.is_special(root) {
                    self.counted[forest.number(root) as usize] += 1;
                }
                return;
            }
            // Another worker has made two of them parts of special clusters meanwhile.
            self.connect(batch, nodes);
        }
        for (position, &one) in self.special.iter().enumerate() {
            for &other in &self.special[position + 1..] {
                let (one, other) = (forest.number(one), forest.number(other));
                let pair = batch.pair(one, other);
                // Relaxed: as above.
                if batch.pairs[pair as usize].fetch_add(1, Ordering::Relaxed) == 0 {
                    self.pairs.push(pair);
                }
            }
        }
    }

    /// Puts the roots in the places of nodes, and notes which of them are special.
    #[inline]
    fn connect(&mut self, batch: &Batch, nodes: &mut [u32]) {
        self.special.clear();
        for node in nodes {
            *node = batch.forest.find(*node);
            if batch.forest.is_special(*node) && !self.special.contains(node) {
                self.special.push(*node);
            }
        }
    }

    /// MERGE: makes one cluster of special ones that many transactions have in common. No other
    /// worker is at work.
    pub fn merge(batch: &Batch) {
        let forest = &batch.forest;
        let alpha_permille = u64::from(batch.tuned.chosen().alpha_permille);
        let specials = batch.specials.load(Ordering::Relaxed);
        let count = |number: u32| {
            let count = &batch.counts[number as usize].0;
            u64::from(count.load(Ordering::Relaxed))
        };
        for at in 0..batch.pairs_met.length() {
            let pair = batch.pairs_met.get(at);
            let (one, other) = batch.pair_of(pair);
            let both = u64::from(batch.pairs[pair as usize].swap(0, Ordering::Relaxed));
            let all = count(one) + count(other) + both;
            if both * 1000 >= alpha_permille * all {
                forest.merge(forest.special(one), forest.special(other));
            }
        }
        if alpha_permille == 0 {
            // The inequality holds for all pairs, also for those that have nothing in common.
            (1..specials).for_each(|one| forest.merge(forest.special(0), forest.special(one)));
        }
        for count in &batch.counts[..specials as usize] {
            count.0.store(0, Ordering::Relaxed);
        }
    }

    /// ALLOCATE: puts each transaction of an item into the queue of its cluster, or among the
    /// residuals.
    pub fn allocate(&mut self, batch: &Batch, item: u32) {
        let forest = &batch.forest;
        self.chains.clear();
        self.chains.resize(CHAINS, Chain::default());
        self.residuals.clear();
        self.small.clear();
        self.largest = 0;
        // SAFETY: the caller has taken the item, here and below.
        for at in unsafe { batch.chunk(item) } {
            // SAFETY: as above.
            let context = unsafe {
                batch.fetch(at + FETCHED_AHEAD, ANALYSED_BYTES);
                batch.context(at)
            };
            if context.is_residual {
                self.residuals.push(at);
                continue;
            }
            if context.nodes.is_empty() {
                // It reads what no transaction writes, and inserts: a cluster of its own.
                context.nodes.extend(self.new_node(batch));
            }
            plain::reads(context.nodes.as_slice());
            let Some((&first, others)) = context.nodes.split_first() else {
                context.is_residual = true;
                self.residuals.push(at);
                continue;
            };
            let root = forest.find(first);
            let is_one = others.iter().all(|&node| forest.find(node) == root);
            if is_one || Canary::ResidualWithoutLocks.sings() {
                let root = match Canary::SpecialsMergedByName.sings() {
                    true => forest.find_first_special(first),
                    false => root,
                };
                self.enqueue(batch, root, at);
            } else {
                context.is_residual = true;
                self.residuals.push(at);
            }
        }
        batch.residuals.append(&self.residuals);
        for position in 0..CHAINS {
            self.append(batch, position);
        }
        batch.small.append(&self.small);
        // Relaxed: looked at after the stage.
        batch
            .largest_small
            .0
            .fetch_max(self.largest, Ordering::Relaxed);
    }

    #[inline]
    fn enqueue(&mut self, batch: &Batch, root: u32, at: u32) {
        let position = root as usize % CHAINS;
        if self.chains[position].length > 0 && self.chains[position].root != root {
            self.append(batch, position);
        }
        let chain = &mut self.chains[position];
        if chain.length == 0 {
            (chain.root, chain.first) = (root, at + 1);
        }
        // SAFETY: of the item that the caller has taken.
        unsafe { batch.set_next(at, chain.last) };
        chain.last = at + 1;
        chain.length += 1;
    }

    /// Appends a chain to the queue of its cluster.
    fn append(&mut self, batch: &Batch, position: usize) {
        let chain = std::mem::take(&mut self.chains[position]);
        if chain.length == 0 {
            return;
        }
        let queue = batch.queue(chain.root);
        let mut seen = queue.load(Ordering::Relaxed);
        loop {
            // SAFETY: the first of the chain is of the item that the caller has taken.
            unsafe { batch.set_next(chain.first - 1, seen as u32) };
            let length = (seen >> 32) + u64::from(chain.length);
            let new = length << 32 | u64::from(chain.last);
            // Relaxed: the queue is read after the stage.
            match queue.compare_exchange_weak(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        if !batch.forest.is_special(chain.root) {
            self.largest = self.largest.max((seen >> 32) as u32 + chain.length);
            if seen == 0 {
                self.small.push(chain.root);
            }
        }
    }
}

impl Context {
    /// Tells virtual cores that what the analysis knows of it has changed.
    #[inline(always)]
    fn note_change(&self) {
        plain::writes(analysed(self));
        plain::writes(self.nodes.as_slice());
    }

    /// Finds the data nodes of what it only reads, of what it would have left to its commit, and of
    /// what others have written after it. The batch is closed, so all labels are there.
    #[inline]
    fn resolve(&mut self, batch: &Batch, number: u64) {
        if std::mem::replace(&mut self.is_resolved, true) {
            return;
        }
        let is_parted = (self.nodes.iter()).any(|&node| batch.is_parted(node, number));
        if self.reads || self.leaves || is_parted {
            self.footprint.note_reads();
        }
        if is_parted {
            // Its common node may have no record any more, and ties nothing to anything then.
            self.nodes.clear();
        }
        if self.leaves || is_parted {
            // What was left when it was labelled, and is not any more; or has got a node to itself.
            let others = |claim: &&Claim| claim.exclusive && (is_parted || claim.is_deferred);
            for claim in self.footprint.claims().iter().filter(others) {
                if let Some(node) = tie_of(claim.record, number)
                    && !self.nodes.contains(&node)
                {
                    self.nodes.push(node);
                }
            }
        }
        if self.reads {
            let read = self.footprint.claims().iter();
            let read = read.filter(|claim| !claim.exclusive);
            (self.nodes).extend(read.filter_map(|claim| tie_of(claim.record, number)));
        }
    }
}
