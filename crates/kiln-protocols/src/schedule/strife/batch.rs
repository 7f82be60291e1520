//! A batch: its transactions, and what the analysis knows of them.

use std::cell::UnsafeCell;

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kiln_platform::memory::name_range;
use kiln_platform::plain;

use super::context::{Context, analysed, fetch_context};
use super::forest::Forest;
use super::list::List;
use super::locks::NODE_BITS;
use super::plan::Plan;
use super::stages::Between;
use super::tuning::{Bounds, Tuned};
use crate::batches::Clusters;
use crate::schedule::cache_padded::CachePadded;
use crate::schedule::in_flight::Loan;

/// Samples of SPOT at most, and special clusters.
pub(super) const SAMPLES_MAX: u32 = 1024;
/// Transactions of a batch at most.
pub(super) const SIZE_MAX: u32 = 1 << 16;
/// Data nodes at most: special nodes have room besides in a label.
const DATA_NODES_MAX: u32 = 1 << (NODE_BITS - 1);
/// Data nodes for each transaction that a batch should have: one each for twice as many, those of
/// records that several transactions write, and what workers take too much. Where there are no
/// more, such records stay with the transaction that labelled them first, and a transaction that
/// needs one is a residual.
const DATA_NODES_EACH: u32 = 8;

/// See the module's documentation.
pub(super) struct Batch {
    /// What it is analysed with.
    pub tuned: Tuned,
    /// Microseconds that its first call waits for others at most, or 0: by its size.
    wait_us: u32,
    /// Samples of SPOT that there is room for.
    samples_max: u32,
    /// Transactions that it has room for.
    pub capacity: u32,
    /// The number of the batch that is collected, or in work.
    number: CachePadded<AtomicU64>,
    /// Changed while it is collected, under a lock; read afterwards.
    contexts: UnsafeCell<Vec<Loan<Context>>>,
    /// Its clusters.
    pub forest: Forest,
    /// By data node: the last batch in which a record was parted from it, by the lower half of its
    /// number.
    parted: Box<[AtomicU32]>,
    /// Data nodes that workers have taken for themselves.
    pub nodes_taken: CachePadded<AtomicU32>,
    /// Whether a worker has labelled records that are left to commits.
    has_left: CachePadded<AtomicBool>,
    /// Special clusters that SPOT has made.
    pub specials: AtomicU32,
    /// Those of them that the second half of its samples made.
    pub late_specials: AtomicU32,
    /// By special cluster: transactions that are connected to it and to no other special one.
    pub counts: Box<[CachePadded<AtomicU32>]>,
    /// By two special clusters, the lesser number first: transactions that are connected to both.
    pub pairs: Box<[AtomicU32]>,
    /// The positions in `pairs` that are not 0.
    pub pairs_met: List,
    /// By root: how many transactions are in the cluster's queue, and the number of the last one
    /// plus one.
    queues: Box<[AtomicU64]>,
    /// The same by special cluster.
    special_queues: Box<[CachePadded<AtomicU64>]>,
    /// Transactions of the largest cluster that is not special.
    pub largest_small: CachePadded<AtomicU32>,
    /// Clusters that are not special, by their roots.
    pub small: List,
    /// What runs with locks.
    pub residuals: List,
    /// What has failed with locks often.
    pub lasts: List,
    /// By transaction: the next one in its queue, by its number plus one; 0 is none. Beside each
    /// other, as queues are followed ahead of what runs.
    nexts: Box<[UnsafeCell<u32>]>,
    /// Written between stages.
    plan: UnsafeCell<Plan>,
}

// SAFETY: the cells are used as their fields say, and the stages order that.
unsafe impl Sync for Batch {}

impl Batch {
    /// A batch that has room for the most that may be chosen.
    pub fn new(bounds: &Bounds, wait_us: u32) -> Batch {
        // Workers that come or go change how many calls each may add.
        let capacity = bounds.size.end() * 2;
        let data_nodes = (bounds.size.end().saturating_mul(DATA_NODES_EACH))
            .next_power_of_two()
            .clamp(1 << 12, DATA_NODES_MAX);
        let samples = *bounds.samples.end();
        Batch {
            tuned: Tuned::new(bounds.first()),
            wait_us,
            samples_max: samples,
            capacity,
            number: CachePadded(AtomicU64::new(1)),
            contexts: UnsafeCell::new(Vec::with_capacity(capacity as usize)),
            forest: Forest::new(data_nodes, samples),
            parted: (0..data_nodes).map(|_| AtomicU32::new(0)).collect(),
            nodes_taken: CachePadded::default(),
            has_left: CachePadded::default(),
            specials: AtomicU32::new(0),
            late_specials: AtomicU32::new(0),
            counts: (0..samples).map(|_| CachePadded::default()).collect(),
            pairs: (0..samples * samples).map(|_| AtomicU32::new(0)).collect(),
            pairs_met: List::new(samples * samples / 2),
            queues: (0..data_nodes).map(|_| AtomicU64::new(0)).collect(),
            special_queues: (0..samples).map(|_| CachePadded::default()).collect(),
            largest_small: CachePadded::default(),
            small: List::new(capacity),
            residuals: List::new(capacity),
            lasts: List::new(capacity),
            nexts: (0..capacity).map(|_| UnsafeCell::new(0)).collect(),
            plan: UnsafeCell::default(),
        }
    }

    /// Names its memory in reports about cache lines.
    pub fn name_memory(&self) {
        let name = |start: usize, bytes: usize, name: &str| {
            name_range(start, bytes, || format!("strife.{name}"));
        };
        name(
            self.queues.as_ptr().addr(),
            size_of_val(&*self.queues),
            "queues",
        );
        name(
            self.parted.as_ptr().addr(),
            size_of_val(&*self.parted),
            "parted",
        );
        name(
            self.counts.as_ptr().addr(),
            size_of_val(&*self.counts),
            "counts",
        );
        name(
            self.pairs.as_ptr().addr(),
            size_of_val(&*self.pairs),
            "pairs",
        );
        for (list, called) in [
            (&self.small, "small"),
            (&self.residuals, "residuals"),
            (&self.lasts, "lasts"),
        ] {
            list.name_memory(called);
        }
        self.forest.name_memory();
        name(
            std::ptr::from_ref(&self.number).addr(),
            size_of_val(&self.number),
            "number",
        );
        let taken = &self.nodes_taken;
        name(
            std::ptr::from_ref(taken).addr(),
            size_of_val(taken),
            "nodes taken",
        );
        name(std::ptr::from_ref(self).addr(), size_of::<Batch>(), "batch");
    }

    /// How long its first call waits for others at most.
    pub fn wait_ns(&self) -> u64 {
        let wait_us = match self.wait_us {
            // About as long as one worker takes to draw and plan so many.
            0 => (self.tuned.size() * 4).max(5_000),
            wait_us => wait_us,
        };
        1_000 * u64::from(wait_us)
    }

    /// A record that had this data node has one to itself now: the worker that labelled it first
    /// looks for that.
    #[inline]
    pub fn note_parted(&self, node: u32, number: u64) {
        // Relaxed: looked at when the batch is closed; the tickets of the stages lie between.
        self.parted[node as usize].store(number as u32, Ordering::Relaxed);
    }

    /// Whether [`Batch::note_parted`] was told of a data node in the batch with this number. Yes
    /// for a node of a batch long ago does no harm.
    #[inline]
    pub fn is_parted(&self, node: u32, number: u64) -> bool {
        // Relaxed: as above.
        self.parted[node as usize].load(Ordering::Relaxed) == number as u32
    }

    /// Where transactions are counted that two special clusters have in common.
    #[inline]
    pub fn pair(&self, one: u32, other: u32) -> u32 {
        one.min(other) * self.samples_max + one.max(other)
    }

    /// The two special clusters of a pair.
    pub fn pair_of(&self, pair: u32) -> (u32, u32) {
        (pair / self.samples_max, pair % self.samples_max)
    }

    /// The number of the batch that is collected, or in work.
    #[inline]
    pub fn number(&self) -> u64 {
        // Acquire pairs with the release in `clear`: what was done to the transactions of former
        // batches is visible.
        self.number.0.load(Ordering::Acquire)
    }

    /// Its transactions.
    ///
    /// # Safety
    /// The batch is not collected any more.
    #[inline]
    pub unsafe fn contexts(&self) -> &[Loan<Context>] {
        // SAFETY: workers add transactions only while the batch is collected, which it is not any
        // more.
        unsafe { &*self.contexts.get() }
    }

    /// Its transactions, to be added to.
    ///
    /// # Safety
    /// The batch is collected, and the caller has the lock.
    #[expect(clippy::mut_from_ref, reason = "the holder of the lock has it alone")]
    pub unsafe fn contexts_mut(&self) -> &mut Vec<Loan<Context>> {
        // SAFETY: while the batch is collected only the holder of the lock uses the list, and the
        // caller has it.
        unsafe { &mut *self.contexts.get() }
    }

    /// A transaction by its number.
    ///
    /// # Safety
    /// The caller has taken the item that the transaction belongs to, and has no other reference to
    /// it.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "the taker of an item has its own alone"
    )]
    pub unsafe fn context(&self, number: u32) -> &mut Context {
        // SAFETY: the caller has taken the transaction's item, and has no other reference to it;
        // the batch is not collected while items are taken.
        unsafe {
            let at = &self.contexts()[number as usize];
            plain::reads_one(at);
            plain::reads(analysed(at.as_ptr()));
            &mut *at.as_ptr()
        }
    }

    /// How many transactions it has.
    pub fn length(&self, _: &Between) -> u32 {
        // SAFETY: no worker adds to it between two stages.
        unsafe { self.contexts() }.len() as u32
    }

    /// As [`Batch::context`], between two stages.
    pub fn context_between<'b>(&'b self, _: &'b mut Between, number: u32) -> &'b mut Context {
        // SAFETY: no worker has an item, and the caller has one reference at a time.
        unsafe { self.context(number) }
    }

    /// Asks for the first so many bytes of a transaction's memory, if there is one with this
    /// number.
    ///
    /// # Safety
    /// As for [`Batch::contexts`].
    #[inline]
    pub unsafe fn fetch(&self, number: u32, bytes: usize) {
        // SAFETY: the batch is not collected any more.
        if let Some(context) = unsafe { self.contexts() }.get(number as usize) {
            plain::reads_one(context);
            fetch_context(context.as_ptr(), bytes);
        }
    }

    /// The next transaction in the queue of this one, by its number plus one; 0 is none.
    ///
    /// # Safety
    /// The caller has taken the item that the transaction belongs to.
    #[inline]
    pub unsafe fn next_of(&self, number: u32) -> u32 {
        let next = &self.nexts[number as usize];
        plain::reads_one(next);
        // SAFETY: only the worker that has taken the item uses its transactions, and the caller is
        // that one.
        unsafe { *next.get() }
    }

    /// As [`Batch::next_of`], between two stages.
    pub fn next_between(&self, _: &Between, number: u32) -> u32 {
        // SAFETY: no worker has an item.
        unsafe { self.next_of(number) }
    }

    /// Says what follows a transaction in its queue.
    ///
    /// # Safety
    /// As for [`Batch::next_of`].
    #[inline]
    pub unsafe fn set_next(&self, number: u32, next: u32) {
        plain::writes_one(&self.nexts[number as usize]);
        // SAFETY: as for `next_of`.
        unsafe { *self.nexts[number as usize].get() = next }
    }

    /// What was decided between two stages.
    ///
    /// # Safety
    /// The caller has taken an item.
    #[inline]
    pub unsafe fn plan(&self) -> &Plan {
        plain::reads_one(&self.plan);
        // SAFETY: it is changed only while no item can be taken.
        unsafe { &*self.plan.get() }
    }

    /// As [`Batch::plan`], between two stages.
    pub fn plan_between<'b>(&'b self, _: &'b Between) -> &'b Plan {
        // SAFETY: it is changed only by the one that has the time between two stages.
        unsafe { self.plan() }
    }

    /// What is decided between two stages.
    pub fn plan_mut<'b>(&'b self, _: &'b mut Between) -> &'b mut Plan {
        plain::reads_one(&self.plan);
        plain::writes_one(&self.plan);
        // SAFETY: between two stages no other worker uses the plan, and the caller has one
        // reference at a time.
        unsafe { &mut *self.plan.get() }
    }

    /// The queue of the cluster with this root: how many transactions, and the number of the last
    /// one plus one.
    #[inline]
    pub fn queue(&self, root: u32) -> &AtomicU64 {
        match self.forest.is_special(root) {
            true => &self.special_queues[self.forest.number(root) as usize].0,
            false => &self.queues[root as usize],
        }
    }

    /// Notes that something is left to commits.
    #[inline]
    pub fn note_deferred(&self) {
        // Relaxed, in all of these: the ticket of the next stage publishes it. Most find it noted.
        if !self.has_left.0.load(Ordering::Relaxed) {
            self.has_left.0.store(true, Ordering::Relaxed);
        }
    }

    /// Whether something may be left to commits.
    pub fn has_left(&self) -> bool {
        self.has_left.0.load(Ordering::Relaxed)
    }

    /// The clusters after ALLOCATE, by their roots, with the numbers of their transactions; of
    /// special ones that may be none.
    pub fn roots(&self) -> Vec<(u32, u32)> {
        let small = (0..self.small.length()).map(|at| self.small.get(at));
        let special = (0..self.specials.load(Ordering::Relaxed)).map(|at| self.forest.special(at));
        let queue = |root: u32| self.queue(root).load(Ordering::Relaxed);
        special
            .chain(small)
            .map(|root| (root, (queue(root) >> 32) as u32))
            .collect()
    }

    /// What the analysis has made of the batch, after ALLOCATE.
    pub fn clusters(&self, between: &Between) -> Clusters {
        let roots = self.roots().into_iter();
        let mut conflict_free: Vec<usize> = roots.map(|(_, length)| length as usize).collect();
        conflict_free.retain(|length| *length > 0);
        conflict_free.sort_unstable_by(|one, other| other.cmp(one));
        Clusters {
            transactions: self.length(between) as usize,
            spot: self.specials.load(Ordering::Relaxed) as usize,
            conflict_free,
            residuals: self.residuals.length() as usize,
            samples: self.tuned.samples() as usize,
            alpha_permille: self.tuned.chosen().alpha_permille as usize,
        }
    }

    /// Begins the next batch, after the last stage.
    pub fn clear(&self, _: &mut Between) {
        // SAFETY: between two stages no other worker uses the list, or adds to it.
        unsafe { self.contexts_mut() }.clear();
        // Relaxed: the ticket of the next stage publishes these.
        self.nodes_taken.0.store(0, Ordering::Relaxed);
        self.has_left.0.store(false, Ordering::Relaxed);
        self.specials.store(0, Ordering::Relaxed);
        self.largest_small.0.store(0, Ordering::Relaxed);
        self.pairs_met.clear();
        self.small.clear();
        self.residuals.clear();
        self.lasts.clear();
        let number = self.number.0.load(Ordering::Relaxed);
        // Release: see `number`.
        self.number.0.store(number + 1, Ordering::Release);
    }
}
