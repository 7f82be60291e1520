//! Spinning: the hint, bounded waits, and randomised exponential backoff.

use crate::random::Random;
use crate::thread;
use crate::time;

/// Tells the core that this is a spin loop.
#[inline(always)]
pub fn hint() {
    thread::spin_hint();
}

/// Spins until `ready` says so, at most `limit` times. Returns whether it became ready.
#[inline]
pub fn until(limit: u32, mut ready: impl FnMut() -> bool) -> bool {
    for _ in 0..limit {
        if ready() {
            return true;
        }
        hint();
    }
    ready()
}

/// A wait without bound for something another running thread will do in a few instructions (a
/// latch held over straight-line code). Spins, then yields, so that it also ends when there are
/// more threads than cores.
#[derive(Default)]
pub struct Spinner {
    spins: u32,
}

impl Spinner {
    /// Spins before the first yield: about two microseconds.
    const SPINS_BEFORE_YIELD: u32 = 64;

    /// Spins once, or yields.
    #[inline]
    pub fn spin(&mut self) {
        // A wait may outlast the count.
        self.spins = self.spins.wrapping_add(1);
        if self.spins.is_multiple_of(Self::SPINS_BEFORE_YIELD) {
            thread::yield_now();
        } else {
            hint();
        }
    }
}

/// Randomised exponential backoff between the attempts of one transaction.
///
/// STO §4.1: without regulation contention collapses, with too much the cores idle; doubling a
/// small random wait per failed attempt is the compromise the paper's baseline uses. That ends at a
/// length which says nothing to attempts that take longer themselves: several of those can fail
/// each other for ever. So a worker that goes on failing waits for a random multiple of what its
/// own last attempt took. The multiple grows with each attempt, until one worker runs alone.
pub struct Backoff {
    random: Random,
    attempts: u32,
    /// When the last wait ended; known from the last doubling on.
    resumed_ns: u64,
}

impl Backoff {
    /// The first wait's upper bound, in spins (25 to 40 ns each).
    const FIRST_SPINS: u64 = 8;
    /// The longest wait doubles this often: 8 << 10 spins, about a quarter of a millisecond.
    const DOUBLINGS_MAX: u32 = 10;
    /// No wait is longer than a tenth of a second.
    const LONGEST_NS: u64 = 100_000_000;

    /// A backoff whose waits are drawn from `random`.
    pub fn new(random: Random) -> Backoff {
        Backoff {
            random,
            attempts: 0,
            resumed_ns: 0,
        }
    }

    /// Forgets earlier failures; called when a new transaction starts.
    #[inline]
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// The number of waits since the last reset.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Waits once, longer on average than the time before, and not past `deadline_ns`, of
    /// [`time::now_ns`], by more than a quarter of a millisecond.
    pub fn wait(&mut self, deadline_ns: Option<u64>) {
        if self.attempts > Self::DOUBLINGS_MAX {
            return self.wait_out(deadline_ns);
        }
        let bound = Self::FIRST_SPINS << self.attempts;
        let spins = self.random.below(bound as usize) as u64;
        thread::pause(spins);
        // With more threads than cores, the lock's holder may be waiting for this core.
        if self.attempts >= 4 {
            thread::yield_now();
        }
        self.count();
    }

    /// Waits no longer than the first time, however many attempts failed: for attempts that hold
    /// nothing another transaction waits for.
    pub fn wait_shortly(&mut self) {
        thread::pause(self.random.below(Self::FIRST_SPINS as usize) as u64);
        // With more threads than cores, the thread that it waits for may be waiting for this core.
        if self.attempts >= 4 {
            thread::yield_now();
        }
        self.count();
    }

    /// Counts a failed attempt without waiting.
    pub fn skip(&mut self) {
        self.count();
    }

    /// Counts a failed attempt; the next begins now.
    fn count(&mut self) {
        if self.attempts >= Self::DOUBLINGS_MAX {
            self.resumed_ns = time::now_ns();
        }
        self.attempts += 1;
    }

    /// Waits for a random multiple of what the last attempt took.
    #[cold]
    fn wait_out(&mut self, deadline_ns: Option<u64>) {
        const SHORTEST_NS: u64 = 250_000;
        let now = time::now_ns();
        let multiple = u64::from(self.attempts - Self::DOUBLINGS_MAX);
        let bound = (now - self.resumed_ns)
            .saturating_mul(multiple)
            .clamp(SHORTEST_NS, Self::LONGEST_NS);
        let wanted = self.random.below(bound as usize) as u64;
        let left = deadline_ns.map_or(u64::MAX, |deadline| deadline.saturating_sub(now));
        thread::sleep(wanted.min(left));
        self.count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_the_attempts_and_end_at_the_deadline() {
        let mut backoff = Backoff::new(Random::from_seed(1));
        let timed = |backoff: &mut Backoff, deadline_ns: Option<u64>| {
            let began = time::now_ns();
            backoff.wait(deadline_ns);
            time::now_ns() - began
        };
        for _ in 0..=Backoff::DOUBLINGS_MAX {
            timed(&mut backoff, None);
        }
        // Attempts of five milliseconds: the fourteenth failure may wait for four of them.
        let longest = (0..4).map(|_| {
            thread::sleep(5_000_000);
            timed(&mut backoff, None)
        });
        let longest = longest.max().expect("four waits");
        assert!(longest > 1_000_000, "{longest} ns: attempts are longer");
        thread::sleep(5_000_000);
        let soon = time::now_ns();
        assert!(
            timed(&mut backoff, Some(soon)) < 2_000_000,
            "past the deadline"
        );
        backoff.reset();
        assert_eq!(backoff.attempts(), 0);
    }
}
