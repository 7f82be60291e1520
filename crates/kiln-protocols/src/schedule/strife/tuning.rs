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

/// The `α` of the paper, in thousandths, with which `auto` begins.
const ALPHA: u32 = 200;
/// Batches that a decision is made of.
const BATCHES: u32 = 3;
/// Batches after a step that are not looked at: their calls were drawn before.
const SKIPPED: u32 = 1;
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

/// A step that is being tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Try {
    step: Step,
    before: Chosen,
    pace_before: u64,
}

/// What has been tried.
#[derive(Clone, Debug)]
pub(super) struct Tuner {
    pub now: Chosen,
    bounds: Bounds,
    tried: Option<Try>,
    /// The pace when nothing was tried last.
    pace: u64,
    /// By step: decisions until it may be tried, and after it does no good.
    patience: [(u32, u32); Step::ALL.len()],
    sum: Shown,
    skipped: u32,
}

impl Tuner {
    pub fn new(bounds: Bounds) -> Tuner {
        Tuner {
            now: bounds.first(),
            bounds,
            tried: None,
            pace: 0,
            patience: [(0, *PATIENCE.start()); Step::ALL.len()],
            sum: Shown::default(),
            skipped: 0,
        }
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
        let is_bad = |tried: &Try| self.sum.pace() * 3 < tried.pace_before * 2;
        if self.sum.batches >= u64::from(BATCHES) || self.tried.as_ref().is_some_and(is_bad) {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let shown = std::mem::take(&mut self.sum);
        let pace = shown.pace();
        for (left, _) in &mut self.patience {
            *left = left.saturating_sub(1);
        }
        if let Some(tried) = self.tried.take() {
            let (left, after) = &mut self.patience[tried.step as usize];
            if pace * 100 < tried.pace_before * 103 {
                self.now = tried.before;
                self.skipped = SKIPPED;
                *left = *after;
                *after = (*after * 2).min(*PATIENCE.end());
                return;
            }
            *after = *PATIENCE.start();
        } else if self.pace > pace + pace / 2 || pace > self.pace + self.pace / 2 {
            self.patience = [(0, *PATIENCE.start()); Step::ALL.len()];
        }
        self.pace = pace;
        let may_try = |step: Step| self.patience[step as usize].0 == 0;
        let Some(step) = propose(self.now, &shown, &self.bounds, may_try) else {
            return;
        };
        self.tried = Some(Try {
            step,
            before: self.now,
            pace_before: pace,
        });
        self.now = step.taken(self.now, &self.bounds);
        self.skipped = SKIPPED;
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
mod tests {
    use super::*;

    const NOW: Chosen = Chosen {
        size: 4096,
        samples: 100,
        alpha_permille: 200,
    };

    /// Four batches of 4096 transactions on eight workers with forty clusters of equal size.
    const EVEN: Shown = Shown {
        batches: 4,
        full: 4,
        workers: 8,
        transactions: 4 * 4096,
        spot: 4 * 40,
        late: 4 * 12,
        left: 4 * 40,
        largest: 4 * 100,
        residuals: 4 * 100,
        serial_ns: 4 * 20_000,
        total_ns: 4 * 2_000_000,
        period_ns: 4 * 3_000_000,
    };

    fn bounds() -> Bounds {
        Bounds {
            size: 512..=8192,
            samples: 16..=320,
            alpha_permille: 25..=800,
        }
    }

    fn proposed(shown: Shown) -> Option<Step> {
        propose(NOW, &shown, &bounds(), |_| true)
    }

    #[test]
    fn each_step_has_its_reason() {
        assert_eq!(proposed(EVEN), None);
        let lopsided = Shown {
            largest: 4 * 2000,
            ..EVEN
        };
        assert_eq!(proposed(lopsided), Some(Step::MoreSamples));
        let few_hits = Shown {
            spot: 4 * 40,
            late: 4 * 5,
            left: 4 * 40,
            ..lopsided
        };
        assert_eq!(proposed(few_hits), Some(Step::SmallerBatches));
        let merged = Shown {
            left: 4 * 20,
            ..few_hits
        };
        assert_eq!(proposed(merged), Some(Step::LargerAlpha));
        let serial = Shown {
            serial_ns: 4 * 200_000,
            ..EVEN
        };
        assert_eq!(proposed(serial), Some(Step::LargerBatches));
        assert_eq!(proposed(Shown { full: 3, ..serial }), None);
        let residual = Shown {
            residuals: 4 * 1500,
            largest: 4 * 60,
            ..EVEN
        };
        assert_eq!(proposed(residual), Some(Step::SmallerAlpha));
        let missed = Shown {
            spot: 4 * 5,
            left: 4 * 5,
            ..EVEN
        };
        assert_eq!(proposed(missed), Some(Step::FewerSamples));
        let long = Shown {
            total_ns: 4 * 13_000_000,
            ..EVEN
        };
        assert_eq!(proposed(long), Some(Step::SmallerBatches));
    }

    #[test]
    fn steps_stay_within_bounds() {
        let mut now = NOW;
        for (step, expected) in [
            (Step::MoreSamples, (4096, 200, 200)),
            (Step::MoreSamples, (4096, 320, 200)),
            (Step::LargerBatches, (8192, 320, 200)),
            (Step::LargerBatches, (8192, 320, 200)),
            (Step::LargerAlpha, (8192, 320, 400)),
            (Step::FewerSamples, (8192, 160, 400)),
            (Step::SmallerAlpha, (8192, 160, 200)),
        ] {
            now = step.taken(now, &bounds());
            let found = (now.size, now.samples, now.alpha_permille);
            assert_eq!(found, expected, "{step:?}");
        }
        let most = Chosen {
            samples: 320,
            ..NOW
        };
        let lopsided = Shown {
            spot: 4 * 300,
            late: 4 * 120,
            left: 4 * 300,
            largest: 4 * 2000,
            ..EVEN
        };
        let step = propose(most, &lopsided, &bounds(), |_| true);
        assert_eq!(step, Some(Step::SmallerBatches));
    }

    /// What a batch would show, of a workload whose clusters are even from so many samples on.
    /// Twice as even, twice as fast.
    fn shown(now: Chosen, samples_needed: u32) -> Shown {
        let largest = if now.samples < samples_needed {
            2000
        } else {
            100
        };
        Shown {
            batches: 1,
            full: 1,
            workers: 8,
            transactions: 4096,
            spot: u64::from(now.samples.min(samples_needed)) * 2 / 3,
            late: if now.samples < samples_needed { 40 } else { 4 },
            left: u64::from(now.samples.min(samples_needed)) * 2 / 3,
            largest,
            residuals: 100,
            serial_ns: 20_000,
            total_ns: 10_000 * largest,
            period_ns: 10_000 * largest,
        }
    }

    #[test]
    fn what_does_good_stays_and_what_does_not_is_taken_back() {
        let mut tuner = Tuner::new(bounds());
        tuner.now = NOW;
        // Steps go on while each is better: here the second one is, and the first one is not.
        for _ in 0..400 {
            tuner.learn(&shown(tuner.now, 200));
        }
        assert_eq!(tuner.now.samples, 200);
        assert_eq!(tuner.tried, None);
        // A workload in which nothing helps: what is tried is taken back, and seldom repeated.
        let mut tuner = Tuner::new(bounds());
        tuner.now = NOW;
        let mut away = 0;
        for _ in 0..4000 {
            let lopsided = shown(
                Chosen {
                    samples: 100,
                    ..NOW
                },
                150,
            );
            tuner.learn(&lopsided);
            away += u32::from(tuner.now != NOW);
        }
        assert!((1..400).contains(&away), "{away} of 4000 batches");
    }

    #[test]
    fn a_try_that_makes_things_much_worse_ends_with_its_first_batch() {
        let mut tuner = Tuner::new(bounds());
        tuner.now = NOW;
        let lopsided = shown(NOW, 200);
        for _ in 0..BATCHES {
            tuner.learn(&lopsided);
        }
        assert_eq!(tuner.now.samples, 200);
        let slow = Shown {
            period_ns: lopsided.period_ns * 2,
            ..lopsided
        };
        for _ in 0..=SKIPPED {
            tuner.learn(&slow);
        }
        assert_eq!((tuner.now, tuner.tried), (NOW, None));
    }

    #[test]
    fn another_workload_makes_impatient() {
        let mut tuner = Tuner::new(bounds());
        tuner.now = NOW;
        tuner.patience = [(1000, 2000); Step::ALL.len()];
        let even = shown(
            Chosen {
                samples: 100,
                ..NOW
            },
            100,
        );
        for _ in 0..BATCHES {
            tuner.learn(&even);
        }
        tuner.patience = [(1000, 2000); Step::ALL.len()];
        for _ in 0..BATCHES * 3 {
            tuner.learn(&even);
        }
        assert_eq!(tuner.patience[0], (997, 2000));
        for _ in 0..BATCHES {
            tuner.learn(&shown(
                Chosen {
                    samples: 100,
                    ..NOW
                },
                150,
            ));
        }
        assert_eq!(tuner.now.samples, 200);
    }

    #[test]
    fn what_somebody_has_chosen_stays() {
        let chosen = Batches {
            size: 100,
            samples: 7,
            residuals_permille: Some(0),
            ..Batches::default()
        };
        let mut tuner = Tuner::new(Bounds::new(chosen));
        let first = tuner.now;
        assert_eq!(
            (first.size, first.samples, first.alpha_permille),
            (100, 7, 0)
        );
        for _ in 0..100 {
            tuner.learn(&shown(NOW, 200));
        }
        assert_eq!(tuner.now, first);
    }
}
