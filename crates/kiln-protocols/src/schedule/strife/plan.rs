//! What one worker decides between two stages: how the work of the next one is cut into items, and
//! what is noted of the batch.

use kiln_platform::atomic::Ordering;
use kiln_platform::time;

use super::batch::Batch;
use super::stages::Between;
use super::tuning::Shown;
use crate::batches::{BatchStatistics, Step};

/// Transactions that one item of the analysis is about, at least and at most.
const CHUNK: std::ops::RangeInclusive<u32> = 16..=512;
/// Items of the analysis for each worker: the last one should not be waited for long.
const CHUNKS_EACH: u32 = 2;
/// Items that small clusters, or residuals, are divided into at most.
const GROUPS_MAX: u32 = 192;

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

impl Batch {
    /// Decides what the items of the analysis are, for so many workers.
    pub fn divide(&self, between: &mut Between, workers: u32) {
        let length = self.length(between);
        let plan = self.plan_mut(between);
        let chunk = length.div_ceil(workers.max(1) * CHUNKS_EACH);
        plan.chunk = chunk.clamp(*CHUNK.start(), *CHUNK.end());
        (plan.is_alone, plan.is_among_statements) = (false, false);
        plan.began_ns = time::now_ns();
        plan.shown.workers = u64::from(workers);
        plan.shown.transactions = u64::from(length);
    }

    /// How many items a stage of the analysis has.
    pub fn chunks(&self, between: &Between) -> u32 {
        let chunk = self.plan_between(between).chunk;
        self.length(between).div_ceil(chunk)
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
    pub fn arrange(&self, between: &mut Between) -> u32 {
        let plan = self.plan_mut(between);
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
    pub fn note_clusters(&self, between: &mut Between) {
        let plan = self.plan_mut(between);
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
    pub fn note_end(&self, between: &mut Between, step: Step) {
        let plan = self.plan_mut(between);
        let now = time::cycles();
        let began = std::mem::replace(&mut plan.step_began, now);
        // The first batch has no beginning.
        if began > 0 {
            plan.counted.step_mut(step).lasted += now.saturating_sub(began);
        }
    }

    /// What was counted of the batch, at its end.
    pub fn take_counted(&self, between: &mut Between) -> BatchStatistics {
        let length = u64::from(self.length(between));
        let plan = self.plan_mut(between);
        let mut counted = std::mem::take(&mut plan.counted);
        (counted.batches, counted.transactions) = (1, length);
        counted
    }

    /// Notes that the time since the last such moment was that of one worker alone.
    pub fn note_serial(&self, between: &mut Between, since_ns: u64) {
        let plan = self.plan_mut(between);
        plan.shown.serial_ns += time::now_ns().saturating_sub(since_ns);
    }

    /// What the batch has shown, at its end.
    pub fn take_shown(&self, between: &mut Between) -> Shown {
        let plan = self.plan_mut(between);
        let now_ns = time::now_ns();
        let mut shown = std::mem::take(&mut plan.shown);
        shown.total_ns = now_ns.saturating_sub(plan.began_ns);
        shown.period_ns = now_ns.saturating_sub(plan.ended_ns);
        plan.ended_ns = now_ns;
        shown
    }

    /// Decides what the items of the residual stage are; their number.
    pub fn arrange_residuals(&self, between: &mut Between) -> u32 {
        let plan = self.plan_mut(between);
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
    pub fn arrange_alone(&self, between: &mut Between) {
        let plan = self.plan_mut(between);
        (plan.is_alone, plan.is_among_statements) = (true, false);
    }

    /// Decides that all are residuals, as a transaction of several statements is open; how many
    /// items they are.
    pub fn arrange_among_statements(&self, between: &mut Between) -> u32 {
        self.plan_mut(between).is_among_statements = true;
        self.arrange_residuals(between)
    }

    /// The small clusters of an item of the conflict-free stage, by their positions.
    pub fn small_of(&self, plan: &Plan, item: u32) -> std::ops::Range<u32> {
        let first = (item - plan.large.len() as u32) * plan.group;
        first..(first + plan.group).min(self.small.length())
    }
}
