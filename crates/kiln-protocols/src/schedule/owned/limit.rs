//! How many of a worker's calls may wait for their locks when it draws another one.
//!
//! A worker goes on with other calls while messages about one are on their way (ORTHRUS §3.3), and
//! the further a demand has to go, the more calls it takes to fill that time. But where many
//! transactions want the same locks, each call more makes the queues longer, and in those of its
//! other locks it keeps others waiting meanwhile. The paper leaves open how many are good.
//!
//! What tells is whether demands wait for locks. Each one that did lets the limit fall by a part of
//! a call, each one that did not lets it rise by as much: it stays where half of them wait, or at
//! an end.
//!
//! A worker begins with two calls. Too many cost more than too few: where all wait for the same
//! lock, its queue grows by each worker's surplus before the first demand of them is heard of, and
//! it falls only as fast as that queue moves.

use super::IN_FLIGHT_MAX;

/// The limit, in parts of a call.
pub struct Limit(u32);

/// Parts of a call.
const CALL: u32 = 4;

/// With how many calls a worker begins.
const FIRST: u32 = 2;

impl Default for Limit {
    fn default() -> Limit {
        Limit(FIRST * CALL)
    }
}

impl Limit {
    /// In whole calls: one at least.
    #[inline(always)]
    pub fn calls(&self) -> usize {
        (self.0 / CALL) as usize
    }

    /// A demand has got all its locks, after it `has_waited` for one or at once.
    #[inline(always)]
    pub fn granted(&mut self, has_waited: bool) {
        self.0 = match has_waited {
            true => (self.0 - 1).max(CALL),
            false => (self.0 + 1).min(IN_FLIGHT_MAX as u32 * CALL),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_the_share_of_those_that_wait() {
        let mut limit = Limit::default();
        let mut converge = |waits: &dyn Fn(u32) -> bool| {
            for number in 0..1000 {
                limit.granted(waits(number));
                assert!((1..=IN_FLIGHT_MAX).contains(&limit.calls()));
            }
            limit.calls()
        };
        assert_eq!(converge(&|_| true), 1);
        assert_eq!(converge(&|number| number % 3 == 1), IN_FLIGHT_MAX);
        assert_eq!(converge(&|number| number % 3 != 0), 1);
    }

    #[test]
    fn it_comes_down_within_few_calls() {
        let mut limit = Limit::default();
        (0..4).for_each(|_| limit.granted(true));
        assert_eq!(limit.calls(), 1);
        // And is at its end after fewer than a worker ends in a fifth of a millisecond when none of
        // them waits.
        let mut limit = Limit::default();
        (0..24).for_each(|_| limit.granted(false));
        assert_eq!(limit.calls(), IN_FLIGHT_MAX);
    }

    #[test]
    fn it_stays_where_half_of_them_wait() {
        let mut limit = Limit::default();
        // With more than three under way each one waits.
        for _ in 0..1000 {
            limit.granted(limit.calls() > 3);
        }
        assert!((3..=4).contains(&limit.calls()));
    }
}
