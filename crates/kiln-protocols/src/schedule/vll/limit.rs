//! How many blocked transactions there may be before no new ones are drawn.
//!
//! VLL §2.1 tunes this limit by hand: with few, workers run out of transactions that could run; with many,
//! each new one meets more requests and is blocked itself. Here it looks for its place: after so many
//! transactions it compares how long they took with how long those before took, and goes on in the same
//! direction or turns round.

use kiln_platform::time;

/// The limit, in its place under the queue's latch.
pub(super) struct Limit {
    value: usize,
    grows: bool,
    /// Transactions that have ended since `since_ns`.
    ended: u32,
    since_ns: u64,
    /// How long the last `WINDOW` of them took.
    took_ns: u64,
}

/// Transactions between two looks.
const WINDOW: u32 = 256;
const MIN: usize = 1;
const MAX: usize = 256;

impl Limit {
    pub fn new() -> Limit {
        Limit {
            value: 16,
            grows: true,
            ended: 0,
            since_ns: 0,
            took_ns: u64::MAX,
        }
    }

    pub fn value(&self) -> usize {
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
        let took = now_ns.saturating_sub(self.since_ns);
        // A difference of one in sixty-four says nothing.
        if took > self.took_ns.saturating_add(self.took_ns / 64) {
            self.grows = !self.grows;
        }
        self.value = match self.grows {
            true => (self.value * 2).min(MAX),
            false => (self.value / 2).max(MIN),
        };
        // At an end the only way is back.
        if self.value == MIN || self.value == MAX {
            self.grows = self.value == MIN;
        }
        (self.ended, self.since_ns, self.took_ns) = (0, now_ns, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transactions that take longer the further the limit is from `best`.
    fn settles_at(best: usize) -> Vec<usize> {
        let mut limit = Limit::new();
        let mut now = 1_000_000;
        let mut values = Vec::new();
        for _ in 0..200 {
            let distance = limit.value().ilog2().abs_diff(best.ilog2());
            now += 100_000 + 30_000 * u64::from(distance);
            limit.ended = WINDOW;
            limit.look(now);
            values.push(limit.value());
        }
        values.split_off(100)
    }

    #[test]
    fn the_limit_stays_around_what_is_best() {
        for best in [1, 4, 32, 256] {
            let values = settles_at(best);
            assert!(
                values
                    .iter()
                    .all(|value| value.ilog2().abs_diff(best.ilog2()) <= 2),
                "{best}: {values:?}"
            );
        }
    }
}
