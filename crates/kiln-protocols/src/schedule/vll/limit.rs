//! How many blocked transactions there may be before no new ones are drawn.
//!
//! VLL §2.1 tunes this limit by hand: with few, workers run out of transactions that could run;
//! with many, each new one meets more requests and is blocked itself. Here it looks for its place
//! among the powers of two, by [trials](crate::shared::trials) of so many transactions each.

use std::mem::offset_of;

use kiln_platform::time;

use crate::shared::trials::Trials;

/// The limit, in its place under the queue's latch.
#[repr(C)]
pub(super) struct Limit {
    /// The present limit.
    value: u32,
    /// Transactions that have ended since `since_ns`.
    ended: u32,
    since_ns: u64,
    trials: Trials,
}

/// Transactions between two looks.
const WINDOW: u32 = 256;
const FIRST: u32 = 4;
const LEVEL_MAX: u32 = 8;

impl Limit {
    /// So much of it is used for each transaction; it comes first.
    pub const HOT_BYTES: usize = offset_of!(Limit, since_ns);

    pub fn new() -> Limit {
        Limit {
            value: 1 << FIRST,
            ended: 0,
            since_ns: 0,
            trials: Trials::new(FIRST, LEVEL_MAX, 0),
        }
    }

    #[inline]
    pub fn value(&self) -> u32 {
        self.value
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
        self.trials.end_window(now_ns.saturating_sub(self.since_ns));
        self.value = 1 << self.trials.present();
        (self.ended, self.since_ns) = (0, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transactions that take longer the further the limit is from `best`.
    fn converges_at(best: u32) -> Vec<u32> {
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
            let values = converges_at(best);
            assert!(
                values
                    .iter()
                    .all(|value| value.ilog2().abs_diff(best.ilog2()) <= 1),
                "{best}: {values:?}"
            );
        }
    }
}
