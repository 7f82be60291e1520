//! A batch: its transactions, and what the analysis knows of them.

use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::ptr::NonNull;

use kiln_platform::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, prefetch_plain};
use kiln_platform::memory::name_range;
use kiln_platform::plain;
use kiln_platform::time;

use super::forest::Forest;
use super::locks::NODE_BITS;
use super::tuning::{Bounds, Shown, Tuned};
use crate::batches::{BatchStatistics, Clusters, Step};
use crate::schedule::in_flight::InFlight;
use crate::shared::planning::{Claim, Findings, Footprint};

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
/// Transactions that one item of the analysis is about, at least and at most.
const CHUNK: std::ops::RangeInclusive<u32> = 16..=512;
/// Items of the analysis for each worker: the last one should not be waited for long.
const CHUNKS_EACH: u32 = 2;
/// Items that small clusters, or residuals, are divided into at most.
const GROUPS_MAX: u32 = 192;

/// A call in flight, and its place in a batch. Who has it changes from stage to stage: the worker
/// that drew it while it is in no batch, else the worker that has taken the item that it belongs
/// to.
///
/// A batch's contexts are more than a core's cache has, and half of them, or more, were last in
/// another core's. So their lines are asked for some transactions ahead wherever one goes through
/// them.
#[repr(C, align(64))]
pub(super) struct Context {
    /// Data nodes of its records, those that it writes first. Once FUSE has made one cluster of
    /// them, one is enough.
    pub nodes: Vec<u32>,
    /// Whether the data nodes of what it only reads are among them.
    pub is_resolved: bool,
    /// Whether the footprint is that of the call.
    pub is_planned: bool,
    /// Whether there is anything that it only reads.
    pub reads: bool,
    /// Whether it has labelled records that were left then.
    pub leaves: bool,
    /// Whether it runs with locks.
    pub is_residual: bool,
    pub footprint: Footprint,
    pub flight: InFlight,
}

impl Context {
    pub fn new() -> Context {
        let mut footprint = Footprint::default();
        footprint.clear();
        Context {
            flight: InFlight::default(),
            footprint,
            nodes: Vec::new(),
            is_resolved: false,
            is_planned: false,
            reads: false,
            leaves: false,
            is_residual: false,
        }
    }

    /// Adds what its attempts have missed to its plan.
    #[cold]
    pub fn plan_missed(&mut self) {
        for &claim in self.flight.missed() {
            self.footprint.add(claim);
        }
        self.footprint.order(&mut Findings::default());
    }

    /// Asks for the memory in which the next call will be kept with its plan.
    #[inline]
    pub fn fetch_room(&self) {
        self.flight.fetch_room();
        self.footprint.fetch_room();
    }
}

/// Bytes of a context that the analysis uses, the first ones.
pub(super) const ANALYSED_BYTES: usize = 64;
/// Bytes of a context that most calls use.
pub(super) const USED_BYTES: usize = offset_of!(Context, flight) + InFlight::<Claim>::USED_BYTES;

/// What the analysis uses of a context, apart from what that refers to.
#[inline]
pub(super) fn analysed(context: *const Context) -> *const [u8] {
    std::ptr::slice_from_raw_parts(context.cast::<u8>(), ANALYSED_BYTES)
}

/// Asks for the first so many bytes of a context.
#[inline]
pub(super) fn fetch_context(context: NonNull<Context>, bytes: usize) {
    let memory = context.as_ptr().cast::<u8>().cast_const();
    prefetch_plain(std::ptr::slice_from_raw_parts(memory, bytes), bytes);
}

/// A list that all workers append to. What is in it is read in a later stage.
pub(super) struct List {
    slots: Box<[AtomicU32]>,
    length: Apart<AtomicU32>,
}

impl List {
    fn new(capacity: u32) -> List {
        List {
            slots: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
            length: Apart::default(),
        }
    }

    // Relaxed, in all of these: the tickets of the stages lie between.

    /// Appends a value; there is room for all transactions of a batch.
    #[inline]
    pub fn push(&self, value: u32) {
        let at = self.length.0.fetch_add(1, Ordering::Relaxed);
        self.slots[at as usize].store(value, Ordering::Relaxed);
    }

    /// Appends values; there is room as in [`List::push`].
    #[inline]
    pub fn append(&self, values: &[u32]) {
        if values.is_empty() {
            return;
        }
        let at = self
            .length
            .0
            .fetch_add(values.len() as u32, Ordering::Relaxed) as usize;
        for (slot, value) in self.slots[at..].iter().zip(values) {
            slot.store(*value, Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn get(&self, at: u32) -> u32 {
        self.slots[at as usize].load(Ordering::Relaxed)
    }

    #[inline]
    pub fn length(&self) -> u32 {
        self.length.0.load(Ordering::Relaxed)
    }

    pub fn clear(&self) {
        self.length.0.store(0, Ordering::Relaxed);
    }
}

/// A word that many workers change, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Apart<T>(pub T);

/// What one worker decides between two stages.
#[derive(Default)]
pub(super) struct Plan {
    /// Transactions of an item of the analysis.
    pub chunk: u32,
    /// Special clusters with transactions, the largest first: their special nodes with the numbers
    /// of transactions.
    pub large: Vec<(u32, u32)>,
    /// How many of the small clusters make one item.
    pub group: u32,
    /// How many residuals make one.
    pub residual_group: u32,
    /// Whether the batch has one transaction, which no other one disturbs.
    pub is_alone: bool,
    /// Whether a transaction of several statements may be open.
    pub is_among_statements: bool,
    /// What the batch has shown so far.
    pub shown: Shown,
    /// When it was closed, or the stage that `shown` is to know the time of began.
    pub began_ns: u64,
    /// When the batch before ended.
    pub ended_ns: u64,
    /// What is counted of the batch so far; times are in cycles.
    pub counted: BatchStatistics,
    /// When the present step began, by the counter of cycles.
    pub step_began: u64,
}

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
    number: Apart<AtomicU64>,
    /// Changed while it is collected, under a lock; read afterwards.
    contexts: UnsafeCell<Vec<NonNull<Context>>>,
    /// Its clusters.
    pub forest: Forest,
    /// By data node: the last batch in which a record was parted from it, by the lower half of its
    /// number.
    parted: Box<[AtomicU32]>,
    /// Data nodes that workers have taken for themselves.
    pub nodes_taken: Apart<AtomicU32>,
    /// Whether a worker has labelled records that are left to commits.
    has_left: Apart<AtomicBool>,
    /// Special clusters that SPOT has made.
    pub specials: AtomicU32,
    /// Those of them that the second half of its samples made.
    pub late_specials: AtomicU32,
    /// By special cluster: transactions that are connected to it and to no other special one.
    pub counts: Box<[Apart<AtomicU32>]>,
    /// By two special clusters, the lesser number first: transactions that are connected to both.
    pub pairs: Box<[AtomicU32]>,
    /// The positions in `pairs` that are not 0.
    pub pairs_met: List,
    /// By root: how many transactions are in the cluster's queue, and the number of the last one
    /// plus one.
    queues: Box<[AtomicU64]>,
    /// The same by special cluster.
    special_queues: Box<[Apart<AtomicU64>]>,
    /// Transactions of the largest cluster that is not special.
    pub largest_small: Apart<AtomicU32>,
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
// SAFETY: contexts may be used by any thread in its turn.
unsafe impl Send for Batch {}

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
            number: Apart(AtomicU64::new(1)),
            contexts: UnsafeCell::new(Vec::with_capacity(capacity as usize)),
            forest: Forest::new(data_nodes, samples),
            parted: (0..data_nodes).map(|_| AtomicU32::new(0)).collect(),
            nodes_taken: Apart::default(),
            has_left: Apart::default(),
            specials: AtomicU32::new(0),
            late_specials: AtomicU32::new(0),
            counts: (0..samples).map(|_| Apart::default()).collect(),
            pairs: (0..samples * samples).map(|_| AtomicU32::new(0)).collect(),
            pairs_met: List::new(samples * samples / 2),
            queues: (0..data_nodes).map(|_| AtomicU64::new(0)).collect(),
            special_queues: (0..samples).map(|_| Apart::default()).collect(),
            largest_small: Apart::default(),
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
            name(
                list.slots.as_ptr().addr(),
                size_of_val(&*list.slots),
                called,
            );
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
    pub unsafe fn contexts(&self) -> &[NonNull<Context>] {
        // SAFETY: workers add transactions only while the batch is collected, which it is not any
        // more.
        unsafe { &*self.contexts.get() }
    }

    /// Its transactions, to be added to.
    ///
    /// # Safety
    /// The batch is collected, and the caller has the lock.
    #[expect(clippy::mut_from_ref, reason = "the holder of the lock has it alone")]
    pub unsafe fn contexts_mut(&self) -> &mut Vec<NonNull<Context>> {
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
            fetch_context(*context, bytes);
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

    /// What is decided between two stages.
    ///
    /// # Safety
    /// The caller has done the last item of a stage, and has not opened the next one.
    #[expect(
        clippy::mut_from_ref,
        reason = "the worker between two stages has it alone"
    )]
    pub unsafe fn plan_mut(&self) -> &mut Plan {
        plain::reads_one(&self.plan);
        plain::writes_one(&self.plan);
        // SAFETY: between the last item of a stage and the next stage no other worker uses the
        // plan; the caller is there.
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
    pub fn note_left(&self) {
        // Relaxed, in all of these: the ticket of the next stage publishes it. Most find it noted.
        if !self.has_left.0.load(Ordering::Relaxed) {
            self.has_left.0.store(true, Ordering::Relaxed);
        }
    }

    /// Whether something may be left to commits.
    pub fn has_left(&self) -> bool {
        self.has_left.0.load(Ordering::Relaxed)
    }

    /// Decides what the items of the analysis are, for so many workers.
    ///
    /// # Safety
    /// The batch is not collected any more, and no stage is open.
    pub unsafe fn divide(&self, workers: u32) {
        // SAFETY: no stage is open, so the plan is the caller's, and the batch is not collected any
        // more.
        let (plan, length) = unsafe { (self.plan_mut(), self.contexts().len() as u32) };
        let chunk = length.div_ceil(workers.max(1) * CHUNKS_EACH);
        plan.chunk = chunk.clamp(*CHUNK.start(), *CHUNK.end());
        (plan.is_alone, plan.is_among_statements) = (false, false);
        plan.began_ns = time::now_ns();
        plan.shown.workers = u64::from(workers);
        plan.shown.transactions = u64::from(length);
    }

    /// How many items a stage of the analysis has.
    ///
    /// # Safety
    /// As for [`Batch::plan`].
    pub unsafe fn chunks(&self) -> u32 {
        // SAFETY: as for `plan`, and the batch is not collected while a stage has items.
        let (plan, length) = unsafe { (self.plan(), self.contexts().len() as u32) };
        length.div_ceil(plan.chunk)
    }

    /// The transactions of an item of the analysis.
    ///
    /// # Safety
    /// The caller has taken it.
    pub unsafe fn chunk(&self, item: u32) -> std::ops::Range<u32> {
        // SAFETY: the caller has taken an item, and the batch is not collected while items are
        // taken.
        let (plan, length) = unsafe { (self.plan(), self.contexts().len() as u32) };
        item * plan.chunk..((item + 1) * plan.chunk).min(length)
    }

    /// Decides what the items of the conflict-free stage are; their number.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`].
    pub unsafe fn arrange(&self) -> u32 {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        let plan = unsafe { self.plan_mut() };
        plan.large.clear();
        for number in 0..self.specials.load(Ordering::Relaxed) {
            let special = self.forest.special(number);
            let length = self.queue(special).load(Ordering::Relaxed) >> 32;
            if length > 0 {
                plan.large.push((special, length as u32));
            }
        }
        // Who takes a large one last is waited for.
        plan.large
            .sort_unstable_by_key(|&(special, length)| (u32::MAX - length, special));
        let small = self.small.length();
        plan.group = small.div_ceil(GROUPS_MAX).max(1);
        self.items_of(plan)
    }

    /// How many items the conflict-free stage has.
    pub fn items_of(&self, plan: &Plan) -> u32 {
        plan.large.len() as u32 + self.small.length().div_ceil(plan.group)
    }

    /// Notes what the analysis has shown, for `auto`: after [`Batch::arrange`].
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`].
    pub unsafe fn note_clusters(&self) {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        let plan = unsafe { self.plan_mut() };
        let shown = &mut plan.shown;
        shown.batches = 1;
        shown.full = u64::from(shown.transactions >= u64::from(self.tuned.size()));
        shown.spot = u64::from(self.specials.load(Ordering::Relaxed));
        shown.late = u64::from(self.late_specials.load(Ordering::Relaxed));
        shown.left = plan.large.len() as u64;
        // What SPOT has not found may have become large all the same.
        let small = self.largest_small.0.load(Ordering::Relaxed);
        let large = plan.large.first().map_or(0, |&(_, length)| length);
        shown.largest = u64::from(large.max(small));
        shown.residuals = u64::from(self.residuals.length());
        let counted = &mut plan.counted;
        (counted.spot, counted.special) = (shown.spot, shown.left);
        counted.analysed = 1;
        counted.small = u64::from(self.small.length());
        (counted.largest, counted.residuals) = (shown.largest, shown.residuals);
    }

    /// Notes that a step has come to its end, and the next one begins.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`].
    pub unsafe fn note_end(&self, step: Step) {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        let plan = unsafe { self.plan_mut() };
        let now = time::cycles();
        let began = std::mem::replace(&mut plan.step_began, now);
        // The first batch has no beginning.
        if began > 0 {
            plan.counted.step_mut(step).lasted += now.saturating_sub(began);
        }
    }

    /// What was counted of the batch, at its end.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`], after the last stage.
    pub unsafe fn take_counted(&self) -> BatchStatistics {
        // SAFETY: the caller is between two stages, as for `plan_mut`; the next batch is not
        // collected yet.
        let (plan, length) = unsafe { (self.plan_mut(), self.contexts().len() as u64) };
        let mut counted = std::mem::take(&mut plan.counted);
        (counted.batches, counted.transactions) = (1, length);
        counted
    }

    /// Notes that the time since the last such moment was that of one worker alone.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`].
    pub unsafe fn note_serial(&self, since_ns: u64) {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        let plan = unsafe { self.plan_mut() };
        plan.shown.serial_ns += time::now_ns().saturating_sub(since_ns);
    }

    /// What the batch has shown, at its end.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`], after the last stage.
    pub unsafe fn take_shown(&self) -> Shown {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        let plan = unsafe { self.plan_mut() };
        let now_ns = time::now_ns();
        let mut shown = std::mem::take(&mut plan.shown);
        shown.total_ns = now_ns.saturating_sub(plan.began_ns);
        shown.period_ns = now_ns.saturating_sub(plan.ended_ns);
        plan.ended_ns = now_ns;
        shown
    }

    /// Decides what the items of the residual stage are; their number.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`].
    pub unsafe fn arrange_residuals(&self) -> u32 {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        let plan = unsafe { self.plan_mut() };
        let residuals = self.residuals.length();
        plan.residual_group = residuals.div_ceil(GROUPS_MAX).max(1);
        residuals.div_ceil(plan.residual_group)
    }

    /// The residuals of an item, by their positions.
    pub fn residuals_of(&self, plan: &Plan, item: u32) -> std::ops::Range<u32> {
        let first = item * plan.residual_group;
        first..(first + plan.residual_group).min(self.residuals.length())
    }

    /// Decides that the one transaction of the batch runs alone.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`].
    pub unsafe fn arrange_alone(&self) {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        let plan = unsafe { self.plan_mut() };
        (plan.is_alone, plan.is_among_statements) = (true, false);
    }

    /// Decides that all are residuals, as a transaction of several statements is open; how many
    /// items they are.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`].
    pub unsafe fn arrange_among_statements(&self) -> u32 {
        // SAFETY: the caller is between two stages, as for `plan_mut`.
        unsafe {
            self.plan_mut().is_among_statements = true;
            self.arrange_residuals()
        }
    }

    /// The small clusters of an item of the conflict-free stage, by their positions.
    pub fn small_of(&self, plan: &Plan, item: u32) -> std::ops::Range<u32> {
        let first = (item - plan.large.len() as u32) * plan.group;
        first..(first + plan.group).min(self.small.length())
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

    /// What the analysis has made of the batch.
    ///
    /// # Safety
    /// As for [`Batch::plan_mut`], after ALLOCATE.
    pub unsafe fn clusters(&self) -> Clusters {
        let roots = self.roots().into_iter();
        let mut conflict_free: Vec<usize> = roots.map(|(_, length)| length as usize).collect();
        conflict_free.retain(|length| *length > 0);
        conflict_free.sort_unstable_by(|one, other| other.cmp(one));
        Clusters {
            // SAFETY: it is not collected any more.
            transactions: unsafe { self.contexts() }.len(),
            spot: self.specials.load(Ordering::Relaxed) as usize,
            conflict_free,
            residuals: self.residuals.length() as usize,
            samples: self.tuned.samples() as usize,
            alpha_permille: self.tuned.chosen().alpha_permille as usize,
        }
    }

    /// Begins the next batch.
    ///
    /// # Safety
    /// All stages are done, and the caller has the lock.
    pub unsafe fn clear(&self) {
        // SAFETY: all stages are done, so no worker uses the list, and the caller has the lock.
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
