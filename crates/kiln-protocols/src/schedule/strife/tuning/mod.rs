//! What `auto` chooses: the size of batches, `k` and `α`, from what the last batches showed.
//!
//! # What a batch shows
//!
//! - *Lopsided* is a conflict-free stage in which workers have nothing to do because one cluster is
//!   larger than a worker's share. Then there should be more clusters, or smaller ones.
//! - *Samples that hit* are SPOT's draws that made a special cluster. Where many of the second half
//!   do, there are more hot records than were found; as many hits in all may be all that there are.
//!   A hot record that was not found does not stay alone: FUSE ties the clusters of all of them
//!   together, as transactions have cold records in common, and at some point most of the batch is
//!   one cluster. The larger a batch, the more they have.
//! - *Residuals* run with locks. With a smaller `α` clusters are merged instead.
//! - *Serial time* is that of SPOT and MERGE, which one worker does while the others wait. It is
//!   the same however many transactions there are.
//! - *Pace* is how many transactions ended, by the time from the end of the batch before.
//!
//! # The rule
//!
//! What batches showed [proposes](propose) a step, up or down by a factor of two within bounds. It
//! is tried for some batches and stays if the pace has become better; else it is taken back, and
//! not tried again for a while, which doubles each time. A try ends early when it makes things much
//! worse. When the pace changes much while nothing is tried, the workload is another one, and
//! everything may be tried again.
//!
//! All that is looked at are counts and the clock, which is virtual on virtual cores: a schedule
//! repeats its choices.

use kiln_platform::atomic::{AtomicU32, Ordering};
use kiln_platform::thread;

use super::batch::{SAMPLES_MAX, SIZE_MAX};
use crate::batches::Chosen;
use crate::factors::Batches;
use crate::schedule::climb::{Climb, Learnt, Rules};

/// The `α` of the paper, in thousandths, with which `auto` begins.
const ALPHA: u32 = 200;
/// Batches that a decision is made of.
const BATCHES: u32 = 3;
/// Batches after a step that are not looked at: their calls were drawn before.
const SKIPPED: u32 = 1;
/// When paces differ: by enough for a step to stay, or as the workload is another one.
const RULES: Rules = Rules {
    better: 1.03,
    other: 1.5,
};
/// Decisions for which a step is not tried again after it did no good for the first time, and at
/// most.
const PATIENCE: std::ops::RangeInclusive<u32> = 16..=4096;
/// `auto` makes no batch larger that takes longer than this: every call waits for all of its batch.
const TIME_MAX_NS: u64 = 4_000_000;

/// The least and the most that may be chosen; both are the same where the user has chosen.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub size: std::ops::RangeInclusive<u32>,
    pub samples: std::ops::RangeInclusive<u32>,
    pub alpha_permille: std::ops::RangeInclusive<u32>,
}

impl Bounds {
    pub fn new(chosen: Batches) -> Bounds {
        let cores = thread::available_cores() as u32;
        let fixed = |value: u32, or: std::ops::RangeInclusive<u32>| match value {
            0 => or,
            value => value..=value,
        };
        let size_max = (cores * 1024).min(SIZE_MAX);
        let samples_max = (cores * 32).clamp(64, SAMPLES_MAX);
        Bounds {
            size: fixed(chosen.size.min(SIZE_MAX), cores * 32..=size_max),
            samples: fixed(u32::from(chosen.samples).min(SAMPLES_MAX), 16..=samples_max),
            alpha_permille: match chosen.residuals_permille {
                None => 25..=800,
                Some(alpha) => u32::from(alpha)..=u32::from(alpha),
            },
        }
    }

    /// What is chosen before anything is known.
    pub fn first(&self) -> Chosen {
        let cores = thread::available_cores() as u32;
        let first = Chosen {
            size: cores * 256,
            // The paper's 100 of 30 cores.
            samples: (cores * 10).div_ceil(3),
            alpha_permille: ALPHA,
        };
        self.clamp(first)
    }

    fn clamp(&self, chosen: Chosen) -> Chosen {
        let within = |value: u32, bounds: &std::ops::RangeInclusive<u32>| {
            value.clamp(*bounds.start(), *bounds.end())
        };
        Chosen {
            size: within(chosen.size, &self.size),
            samples: within(chosen.samples, &self.samples),
            alpha_permille: within(chosen.alpha_permille, &self.alpha_permille),
        }
    }

    fn is_open(&self) -> bool {
        let is_open = |range: &std::ops::RangeInclusive<u32>| range.start() < range.end();
        is_open(&self.size) || is_open(&self.samples) || is_open(&self.alpha_permille)
    }
}

/// What some batches showed, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Batches.
    pub batches: u64,
    /// Those of them that had as many calls as they should have.
    pub full: u64,
    /// Workers, of each batch.
    pub workers: u64,
    /// Transactions.
    pub transactions: u64,
    /// Special clusters that SPOT made.
    pub spot: u64,
    /// Those of them that the second half of its samples made.
    pub late: u64,
    /// Special clusters that have transactions after MERGE.
    pub left: u64,
    /// Transactions of the largest cluster.
    pub largest: u64,
    /// Transactions that belong to several clusters.
    pub residuals: u64,
    /// Time of SPOT and MERGE.
    pub serial_ns: u64,
    /// Time from the closing of the batch to its end.
    pub total_ns: u64,
    /// Time from the end of the batch before to its end.
    pub period_ns: u64,
}

impl Shown {
    fn add(&mut self, other: &Shown) {
        self.batches += other.batches;
        self.full += other.full;
        self.workers = other.workers;
        self.transactions += other.transactions;
        self.spot += other.spot;
        self.late += other.late;
        self.left += other.left;
        self.largest += other.largest;
        self.residuals += other.residuals;
        self.serial_ns += other.serial_ns;
        self.total_ns += other.total_ns;
        self.period_ns += other.period_ns;
    }

    /// Transactions in a second.
    fn pace(&self) -> u64 {
        self.transactions.saturating_mul(1_000_000_000) / self.period_ns.max(1)
    }

    /// Transactions of clusters, and how many could have run while the largest cluster did.
    fn free_and_room(&self) -> (u64, u64) {
        let free = self.transactions.saturating_sub(self.residuals);
        (free, self.largest * self.workers)
    }

    fn is_lopsided(&self) -> bool {
        let (free, room) = self.free_and_room();
        room * 4 > free * 5
    }
}

/// A step that may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More samples, so that more hot records have clusters of their own.
    MoreSamples,
    /// A larger `α`: clusters stay apart, and what they have in common is a residual.
    LargerAlpha,
    /// Smaller batches: transactions have fewer records in common, and are tied together less.
    SmallerBatches,
    /// Larger ones: fewer boundaries between stages.
    LargerBatches,
    /// A smaller `α`: fewer residuals.
    SmallerAlpha,
    /// Fewer samples.
    FewerSamples,
}

impl Step {
    /// All, in the order in which they are tried.
    const ALL: [Step; 6] = [
        Step::MoreSamples,
        Step::LargerAlpha,
        Step::SmallerBatches,
        Step::LargerBatches,
        Step::SmallerAlpha,
        Step::FewerSamples,
    ];

    fn taken(self, from: Chosen, bounds: &Bounds) -> Chosen {
        let mut next = from;
        match self {
            Step::MoreSamples => next.samples *= 2,
            Step::FewerSamples => next.samples /= 2,
            Step::LargerAlpha => next.alpha_permille *= 2,
            Step::SmallerAlpha => next.alpha_permille /= 2,
            Step::LargerBatches => next.size *= 2,
            Step::SmallerBatches => next.size /= 2,
        }
        bounds.clamp(next)
    }

    /// Whether what batches showed that were analysed with `now` speaks for it.
    fn is_proposed(self, now: Chosen, shown: &Shown) -> bool {
        let is_lopsided = shown.is_lopsided();
        let drawn = u64::from(now.samples) * shown.batches;
        let is_full = shown.full == shown.batches;
        match self {
            // What the second half finds is about what as many again would.
            Step::MoreSamples => is_lopsided && shown.late * 16 >= drawn,
            Step::LargerAlpha => is_lopsided && (shown.spot - shown.left) * 4 > shown.spot,
            Step::SmallerBatches => {
                let is_long = shown.total_ns > 3 * TIME_MAX_NS * shown.batches;
                is_full && (is_lopsided || is_long)
            }
            Step::LargerBatches => {
                let is_serial = shown.serial_ns * 32 > shown.total_ns;
                is_full && is_serial && shown.total_ns < TIME_MAX_NS * shown.batches
            }
            Step::SmallerAlpha => {
                let (free, room) = shown.free_and_room();
                shown.residuals * 4 > shown.transactions && room * 4 < free * 3
            }
            Step::FewerSamples => shown.spot * 16 < drawn,
        }
    }
}

/// The first step that what batches showed speaks for, of those that may be tried.
pub(super) fn propose(
    now: Chosen,
    shown: &Shown,
    bounds: &Bounds,
    may_try: impl Fn(Step) -> bool,
) -> Option<Step> {
    Step::ALL.into_iter().find(|&step| {
        may_try(step) && step.taken(now, bounds) != now && step.is_proposed(now, shown)
    })
}

/// What has been tried.
#[derive(Clone, Debug)]
pub(super) struct Tuner {
    bounds: Bounds,
    /// What seems best, and the pace that it had.
    climb: Climb<Chosen>,
    /// The step that is being tried, and what it leads to.
    tried: Option<(Step, Chosen)>,
    /// By step: decisions until it may be tried, and after it does no good.
    patience: [(u32, u32); Step::ALL.len()],
    sum: Shown,
    skipped: u32,
}

impl Tuner {
    pub fn new(bounds: Bounds) -> Tuner {
        Tuner {
            climb: Climb::new(bounds.first(), RULES),
            bounds,
            tried: None,
            patience: [(0, *PATIENCE.start()); Step::ALL.len()],
            sum: Shown::default(),
            skipped: 0,
        }
    }

    /// What the next batch should be analysed with.
    pub fn now(&self) -> Chosen {
        self.tried.map_or(self.climb.best(), |(_, tried)| tried)
    }

    /// A batch is done that showed this.
    pub fn learn(&mut self, batch: &Shown) {
        if batch.batches == 0 || !self.bounds.is_open() {
            return;
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        self.sum.add(batch);
        if self.sum.batches >= u64::from(BATCHES) || self.is_hopeless() {
            self.decide();
        }
    }

    /// Whether what is being tried makes things much worse.
    fn is_hopeless(&self) -> bool {
        let pace = self.sum.pace() as f64;
        let known = self.climb.rate();
        self.tried.is_some() && known.is_some_and(|known| pace * 3.0 < known * 2.0)
    }

    fn decide(&mut self) {
        let shown = std::mem::take(&mut self.sum);
        for (left, _) in &mut self.patience {
            *left = left.saturating_sub(1);
        }
        let learnt = self.climb.learn(self.now(), shown.pace() as f64);
        if let Some((step, _)) = self.tried.take() {
            let (left, after) = &mut self.patience[step as usize];
            if learnt == Learnt::Worse {
                self.skipped = SKIPPED;
                *left = *after;
                *after = (*after * 2).min(*PATIENCE.end());
                return;
            }
            *after = *PATIENCE.start();
        } else if learnt == Learnt::Changed {
            self.patience = [(0, *PATIENCE.start()); Step::ALL.len()];
        }
        self.propose(&shown);
    }

    /// Tries the step that what batches showed speaks for, if there is one.
    fn propose(&mut self, shown: &Shown) {
        let now = self.climb.best();
        let may_try = |step: Step| self.patience[step as usize].0 == 0;
        if let Some(step) = propose(now, shown, &self.bounds, may_try) {
            self.tried = Some((step, step.taken(now, &self.bounds)));
            self.skipped = SKIPPED;
        }
    }
}

/// What is chosen at the moment. Workers read it all the time, and it hardly ever changes.
#[repr(align(128))]
pub(super) struct Tuned {
    size: AtomicU32,
    samples: AtomicU32,
    alpha_permille: AtomicU32,
}

impl Tuned {
    pub fn new(first: Chosen) -> Tuned {
        Tuned {
            size: AtomicU32::new(first.size),
            samples: AtomicU32::new(first.samples),
            alpha_permille: AtomicU32::new(first.alpha_permille),
        }
    }

    // Relaxed, in all of these: it changes between two batches, and the opening of the stage
    // publishes it. Who looks at the size while a batch comes to its end may see that of the next
    // one, and finds out under the lock that it is over.

    /// Calls that a batch should have.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Samples of SPOT.
    #[inline]
    pub fn samples(&self) -> u32 {
        self.samples.load(Ordering::Relaxed)
    }

    /// What the batch is analysed with.
    pub fn chosen(&self) -> Chosen {
        Chosen {
            size: self.size(),
            samples: self.samples(),
            alpha_permille: self.alpha_permille.load(Ordering::Relaxed),
        }
    }

    /// Chooses for the next batch. No other worker is at work.
    pub fn set(&self, next: Chosen) {
        if next != self.chosen() {
            self.size.store(next.size, Ordering::Relaxed);
            self.samples.store(next.samples, Ordering::Relaxed);
            (self.alpha_permille).store(next.alpha_permille, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
