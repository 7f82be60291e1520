//! How many blocked transactions there may be before no new ones are drawn.
//!
//! VLL §2.1 tunes this limit by hand: with few, workers run out of transactions that could run; with many,
//! each new one meets more requests and is blocked itself. Here it looks for its place among the powers of two. It stays
//! at one of them for so many transactions, then tries the next, comes back, and tries the one before. How long each trial took is compared
//! with how long those just before it took, which had the same machine and the same calls; a single comparison says little, as a
//! worker may have lost its core meanwhile, so a mean of several decides.

use std::mem::offset_of;

use kiln_platform::time;

/// The limit, in its place under the queue's latch.
#[repr(C)]
pub(super) struct Limit {
    /// The present limit.
    value: u32,
    /// Transactions that have ended since `since_ns`.
    ended: u32,
    /// The logarithm of what seems best.
    level: u32,
    step: Step,
    since_ns: u64,
    /// How long the last `WINDOW` of them took at `level`.
    took_ns: u64,
    /// What is known of twice as many, and of half.
    more: Comparison,
    fewer: Comparison,
}

/// What is done with the present transactions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    BeforeMore,
    More,
    BeforeFewer,
    Fewer,
}

/// How long transactions took with another limit.
#[derive(Clone, Copy, Default)]
struct Comparison {
    /// The mean of the last ones, `ONE` for as long.
    ratio: u64,
    trials: u32,
}

impl Comparison {
    const ONE: u64 = 1 << 10;
    /// A mean is of about so many trials.
    const TRIALS: u32 = 8;

    fn add(&mut self, took_ns: u64, other_ns: u64) {
        // Whoever has lost its core in one of them has not found out anything.
        let ratio = (took_ns.saturating_mul(Comparison::ONE) / other_ns.max(1))
            .clamp(Comparison::ONE / 2, Comparison::ONE * 2);
        let weight = u64::from(self.trials.min(Comparison::TRIALS - 1));
        self.ratio = (self.ratio * weight + ratio) / (weight + 1);
        self.trials += 1;
    }

    /// A difference of one in thirty-two says nothing.
    fn is_better(self) -> bool {
        self.trials >= Comparison::TRIALS && self.ratio < Comparison::ONE - Comparison::ONE / 32
    }
}

/// Transactions between two looks.
const WINDOW: u32 = 256;
const FIRST: u32 = 4;
const LEVEL_MAX: u32 = 8;

impl Limit {
    /// So much of it is used for each transaction; it comes first.
    pub const HOT_BYTES: usize = offset_of!(Limit, level);

    pub fn new() -> Limit {
        Limit {
            value: 1 << FIRST,
            ended: 0,
            level: FIRST,
            step: Step::BeforeMore,
            since_ns: 0,
            took_ns: 0,
            more: Comparison::default(),
            fewer: Comparison::default(),
        }
    }

    #[inline]
    pub fn value(&self) -> u32 {
        self.value
    }

    fn present(&self) -> u32 {
        match self.step {
            Step::BeforeMore | Step::BeforeFewer => self.level,
            Step::More => LEVEL_MAX.min(self.level + 1),
            Step::Fewer => self.level.saturating_sub(1),
        }
    }

    /// A transaction has ended.
    #[inline]
    pub fn ended(&mut self) {
        self.ended += 1;
        if self.ended >= WINDOW {
            self.look(time::now_ns());
        }
    }

    #[cold]
    fn look(&mut self, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(self.since_ns);
        let present = self.present();
        let (comparison, next) = match self.step {
            Step::BeforeMore => (None, Step::More),
            Step::More => (Some(&mut self.more), Step::BeforeFewer),
            Step::BeforeFewer => (None, Step::Fewer),
            Step::Fewer => (Some(&mut self.fewer), Step::BeforeMore),
        };
        match comparison {
            // At an end there is nothing to try.
            Some(comparison) if present != self.level => {
                comparison.add(took_ns, self.took_ns);
                if comparison.is_better() {
                    self.level = present;
                    (self.more, self.fewer) = Default::default();
                }
            }
            _ => self.took_ns = took_ns,
        }
        self.step = next;
        self.value = 1 << self.present();
        (self.ended, self.since_ns) = (0, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transactions that take longer the further the limit is from `best`.
    fn settles_at(best: u32) -> Vec<u32> {
        let mut limit = Limit::new();
        let mut now = 1_000_000;
        let mut values = Vec::new();
        for _ in 0..400 {
            let distance = limit.value().ilog2().abs_diff(best.ilog2());
            now += 100_000 + 30_000 * u64::from(distance);
            limit.ended = WINDOW;
            limit.look(now);
            values.push(limit.value());
        }
        values.split_off(200)
    }

    #[test]
    fn the_limit_stays_around_what_is_best() {
        for best in [1, 4, 32, 256] {
            let values = settles_at(best);
            assert!(
                values
                    .iter()
                    .all(|value| value.ilog2().abs_diff(best.ilog2()) <= 1),
                "{best}: {values:?}"
            );
        }
    }
}
