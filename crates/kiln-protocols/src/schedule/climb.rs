//! Climbing: which setting does best, found by trying others while the system runs.
//!
//! A climb knows a *best* setting, and the rate that was measured under it. Its user names another
//! one to be tried, measures the rate under it, and tells. If that is clearly greater the setting
//! is the best from then on, else the one before stays. Under the best one a rate that differs much
//! from what was known says that the workload is another one.
//!
//! What differs is the user's: which setting is tried next, and how long the climb rests after one
//! that did no good. `owned/balance.rs` climbs over the number of workers that control concurrency,
//! by steps that become smaller, and rests for a while at the top. `strife/tuning` climbs over
//! three knobs at once, by the step that what batches showed speaks for, and has less and less
//! patience with those that do no good.
//!
//! # What is of another kind
//!
//! - [`Trials`](crate::shared::trials::Trials), of `vll/limit.rs` and of the cores that work, also
//!   tries the neighbours of a level, but compares each trial with the window *just before* it, and
//!   decides by a mean of several. It can: its settings change from one window to the next at no
//!   cost. To change one of a climb, all transactions have to end first, or a batch; so a climb
//!   compares with a rate that it remembers, and each trial counts.
//! - `owned/limit.rs` compares nothing. Each demand tells by itself in which direction the limit
//!   should go, as it had to wait or not.

/// When rates differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A rate that is greater by this factor is better; one that is less so may be so by chance.
    pub better: f64,
    /// Rates under one setting that differ by more than this factor are of two workloads.
    pub other: f64,
}

/// What a rate has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learnt {
    /// It is that of the best setting, as it was.
    Same,
    /// It is that of the best setting, under another workload.
    Changed,
    /// What was tried is the best setting now.
    Better,
    /// What was tried is no better.
    Worse,
}

/// A search for the setting under which the rate is greatest.
#[derive(Clone, Debug)]
pub(crate) struct Climb<S> {
    rules: Rules,
    best: S,
    /// The rate under it; none before it is measured.
    rate: Option<f64>,
}

impl<S: Copy + PartialEq> Climb<S> {
    /// Begins at `start`.
    pub fn new(start: S, rules: Rules) -> Climb<S> {
        Climb {
            rules,
            best: start,
            rate: None,
        }
    }

    /// The best setting so far.
    #[inline]
    pub fn best(&self) -> S {
        self.best
    }

    /// The rate that was measured under it last.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// The rate under `setting` was measured, the best one or one that was tried.
    pub fn learn(&mut self, setting: S, rate: f64) -> Learnt {
        let Rules { better, other } = self.rules;
        if setting == self.best {
            let differs = |known: f64| rate > known * other || rate * other < known;
            let is_other = self.rate.replace(rate).is_some_and(differs);
            return if is_other {
                Learnt::Changed
            } else {
                Learnt::Same
            };
        }
        if self.rate.is_some_and(|known| rate <= known * better) {
            return Learnt::Worse;
        }
        (self.best, self.rate) = (setting, Some(rate));
        Learnt::Better
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        better: 1.1,
        other: 2.0,
    };

    #[test]
    fn the_best_setting_is_one_that_is_clearly_better() {
        let mut climb = Climb::new('a', RULES);
        assert_eq!(climb.rate(), None);
        assert_eq!(climb.learn('a', 100.0), Learnt::Same);
        assert_eq!(climb.learn('b', 109.0), Learnt::Worse);
        assert_eq!((climb.best(), climb.rate()), ('a', Some(100.0)));
        assert_eq!(climb.learn('b', 111.0), Learnt::Better);
        assert_eq!((climb.best(), climb.rate()), ('b', Some(111.0)));
        assert_eq!(climb.learn('a', 111.0), Learnt::Worse);
    }

    #[test]
    fn another_workload_is_seen_under_the_best_setting_alone() {
        let mut climb = Climb::new(1, RULES);
        assert_eq!(climb.learn(1, 100.0), Learnt::Same);
        assert_eq!(climb.learn(1, 190.0), Learnt::Same);
        assert_eq!(climb.learn(2, 10.0), Learnt::Worse);
        assert_eq!(climb.learn(1, 90.0), Learnt::Changed);
        assert_eq!(climb.learn(1, 185.0), Learnt::Changed);
        assert_eq!(climb.rate(), Some(185.0));
    }

    #[test]
    fn what_is_tried_before_anything_is_known_is_better() {
        let mut climb = Climb::new(1, RULES);
        assert_eq!(climb.learn(2, 1.0), Learnt::Better);
        assert_eq!(climb.best(), 2);
    }

    /// Up a hill, one step at a time, from both sides.
    #[test]
    fn a_hill_is_climbed_by_steps() {
        for start in [0_i32, 9] {
            let rate = |at: i32| 100.0 / f64::from((at - 6).abs() + 1);
            let mut climb = Climb::new(start, RULES);
            climb.learn(start, rate(start));
            for step in [1, -1].repeat(10) {
                let next = climb.best() + step;
                climb.learn(next, rate(next));
            }
            assert_eq!(climb.best(), 6, "from {start}");
        }
    }
}
