//! Finding out how many are best, by trials: of transactions that may be blocked at once, or of
//! cores that work at once.
//!
//! The number is a power of two, its logarithm a *level*. A search stays at one of them for a
//! window, then tries the next one, comes back, and tries the one before. What each trial cost is
//! compared with what the window just before it cost, which had the same machine and the same
//! calls; a single comparison says little, as a worker may have lost its core meanwhile, so a mean
//! of several decides, or some in a row that are all plain. Once a search has converged it tries less
//! and less often, if it is told to.
//!
//! What was best may be so no longer from one moment to the next: a host that moves the cores of a
//! virtual machine puts them now near each other and now far apart, and a cache line travels
//! between them in 35 ns and then in 160 (docs/performance.md). So a pause ends where some windows
//! in a row cost plainly more or less than those before, and where one trial is plainly better the
//! next follows at once.

/// A level, and what is known of those beside it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Trials {
    /// What seems best.
    level: u32,
    /// The highest level.
    most: u32,
    step: Step,
    /// What the last window at `level` cost, and what those of the pause cost on average.
    cost: u64,
    usual: u64,
    /// How many of the last windows of the pause were far from that.
    unusual: u32,
    /// What is known of the next level, and of the one before.
    more: Comparison,
    fewer: Comparison,
    /// Windows without trials between two of them, and how many of those are left.
    pause: u32,
    left: u32,
    /// The longest pause.
    pause_max: u32,
}

/// What is done in the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    BeforeMore,
    More,
    BeforeFewer,
    Fewer,
}

/// What another level has cost.
#[derive(Clone, Copy, Debug, Default)]
struct Comparison {
    /// The mean of the last trials, `ONE` for as much.
    ratio: u64,
    trials: u32,
    /// So many of the last ones, one after the other, were plainly better.
    plain: u32,
}

/// A cost in parts of another one, `ONE` for as much.
fn ratio(cost: u64, other: u64) -> u64 {
    cost.saturating_mul(Comparison::ONE) / other.max(1)
}

impl Comparison {
    const ONE: u64 = 1 << 10;
    /// A mean is of about so many trials.
    const TRIALS: u32 = 8;
    /// What costs less than this is plainly better, and so many in a row need no mean.
    const PLAIN: u64 = Comparison::ONE * 3 / 4;
    const PLAIN_TRIALS: u32 = 3;

    /// Adds a trial; its ratio.
    fn add(&mut self, cost: u64, other: u64) -> u64 {
        // A worker that has lost its core in one of them has not found out anything.
        let ratio = ratio(cost, other).clamp(Comparison::ONE / 2, Comparison::ONE * 2);
        self.plain = match ratio < Comparison::PLAIN {
            true => self.plain + 1,
            false => 0,
        };
        let weight = u64::from(self.trials.min(Comparison::TRIALS - 1));
        self.ratio = (self.ratio * weight + ratio) / (weight + 1);
        self.trials += 1;
        ratio
    }

    fn is_known(self) -> bool {
        self.trials >= Comparison::TRIALS
    }

    /// A difference of one in thirty-two says nothing.
    fn is_better(self) -> bool {
        self.plain >= Comparison::PLAIN_TRIALS
            || self.is_known() && self.ratio < Comparison::ONE - Comparison::ONE / 32
    }
}

impl Trials {
    /// So many windows in a row are not unusual by chance.
    const UNUSUAL: u32 = 3;

    /// A search that begins at `level`, goes no higher than `most`, and leaves up to `pause_max`
    /// windows between two trials.
    pub fn new(level: u32, most: u32, pause_max: u32) -> Trials {
        Trials {
            level,
            most,
            step: Step::BeforeMore,
            cost: 0,
            usual: 0,
            unusual: 0,
            more: Comparison::default(),
            fewer: Comparison::default(),
            pause: 0,
            left: 0,
            pause_max,
        }
    }

    /// The level of the present window.
    #[inline]
    pub fn present(&self) -> u32 {
        match self.step {
            Step::BeforeMore | Step::BeforeFewer => self.level,
            Step::More => self.most.min(self.level + 1),
            Step::Fewer => self.level.saturating_sub(1),
        }
    }

    /// A window is over, in which one transaction cost so much on average; the next one begins.
    pub fn end_window(&mut self, cost: u64) {
        let present = self.present();
        let (comparison, next) = match self.step {
            Step::BeforeMore => (None, Step::More),
            Step::More => (Some(&mut self.more), Step::BeforeFewer),
            Step::BeforeFewer => (None, Step::Fewer),
            Step::Fewer => (Some(&mut self.fewer), Step::BeforeMore),
        };
        match comparison {
            Some(comparison) if present != self.level => {
                let ratio = comparison.add(cost, self.cost);
                match comparison.is_better() {
                    true => {
                        (self.level, self.pause) = (present, 0);
                        (self.usual, self.unusual) = (0, 0);
                        (self.more, self.fewer) = Default::default();
                    }
                    false => self.adjust_pause(ratio),
                }
            }
            _ => self.cost = cost,
        }
        // Pauses are at the present level.
        if self.left > 0 && present == self.level {
            self.left -= 1;
            self.watch(cost);
            return;
        }
        self.step = self.possible(next);
        if matches!(self.step, Step::BeforeMore | Step::BeforeFewer) {
            self.left = self.pause;
        }
    }

    /// Ends the pause where some windows in a row cost plainly more, or plainly less, than those
    /// before.
    fn watch(&mut self, cost: u64) {
        if self.usual == 0 {
            self.usual = cost;
        }
        if ratio(cost.min(self.usual), cost.max(self.usual)) >= Comparison::PLAIN {
            self.usual = (self.usual * 7 + cost) / 8;
            self.unusual = 0;
            return;
        }
        self.unusual += 1;
        if self.unusual >= Trials::UNUSUAL {
            (self.usual, self.unusual, self.left) = (cost, 0, 0);
        }
    }

    /// The step, or the other way at an end of the levels, where there is nothing to try.
    fn possible(&self, step: Step) -> Step {
        match step {
            Step::BeforeMore if self.level == self.most => Step::BeforeFewer,
            Step::BeforeFewer if self.level == 0 => Step::BeforeMore,
            step => step,
        }
    }

    /// Tries less and less often while it is known that the others are no better, and more often
    /// when one seems to be; at once when one plainly is.
    fn adjust_pause(&mut self, ratio: u64) {
        let is_settled = (self.level == self.most || self.more.is_known())
            && (self.level == 0 || self.fewer.is_known());
        self.pause = match ratio >= Comparison::ONE {
            true if is_settled => (self.pause * 4 + 3).min(self.pause_max),
            _ if ratio < Comparison::PLAIN => 0,
            _ => self.pause / 2,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels of the last windows of many, where a transaction costs the more the further the
    /// level is from `best`.
    fn converges_at(trials: &mut Trials, best: u32) -> Vec<u32> {
        (0..2_000)
            .map(|_| {
                let level = trials.present();
                trials.end_window(1_000 + 300 * u64::from(level.abs_diff(best)));
                level
            })
            .skip(1_000)
            .collect()
    }

    #[test]
    fn the_level_stays_around_what_is_best() {
        for best in [0, 2, 5, 8] {
            let levels = converges_at(&mut Trials::new(4, 8, 0), best);
            assert!(
                levels.iter().all(|level| level.abs_diff(best) <= 1),
                "{best}: {levels:?}"
            );
            assert!(levels.iter().filter(|level| **level == best).count() >= 500);
        }
    }

    #[test]
    fn a_search_that_has_converged_tries_seldom_and_finds_a_new_best() {
        let mut trials = Trials::new(1, 1, 31);
        for best in [1, 0, 1, 0] {
            let levels = converges_at(&mut trials, best);
            let tried = levels.iter().filter(|level| **level != best).count();
            assert!((10..100).contains(&tried), "{best}: {tried} of 1,000");
        }
    }

    /// Of two levels, in windows that cost so much at the second one and 1,000 at the first: how
    /// many it takes until `level` is the better one for it.
    fn windows_until(trials: &mut Trials, level: u32, cost: u64) -> usize {
        let mut windows = 0;
        while trials.level != level {
            let costs = [1_000, cost];
            trials.end_window(costs[trials.present() as usize]);
            windows += 1;
        }
        windows
    }

    #[test]
    fn what_has_changed_plainly_is_found_out_in_a_pause() {
        let mut trials = Trials::new(1, 1, 63);
        converges_at(&mut trials, 1);
        // It is seen at the present level.
        let windows = windows_until(&mut trials, 0, 2_000);
        assert!(windows <= 10, "{windows}");
        converges_at(&mut trials, 0);
        // It is not: the next trial is waited for.
        let windows = windows_until(&mut trials, 1, 600);
        assert!((8..=63 + 8).contains(&windows), "{windows}");
    }

    #[test]
    fn a_lost_core_changes_nothing() {
        let mut trials = Trials::new(1, 1, 63);
        converges_at(&mut trials, 1);
        for window in 0..2_000 {
            let lost = if window % 17 == 0 { 3_000 } else { 0 };
            trials.end_window([1_200, 1_000][trials.present() as usize] + lost);
            assert_eq!(trials.level, 1, "{window}");
        }
    }

    #[test]
    fn there_is_nothing_to_try_where_there_is_one_level() {
        let mut trials = Trials::new(0, 0, 7);
        for cost in 0..100 {
            assert_eq!(trials.present(), 0);
            trials.end_window(cost);
        }
    }
}
