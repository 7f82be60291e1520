//! Spinning: the hint, bounded waits, and randomised exponential backoff.

use crate::random::Random;
use crate::thread;

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
    turns: u32,
}

impl Spinner {
    /// Spins before the first yield: about two microseconds.
    const SPINS_BEFORE_YIELD: u32 = 64;

    /// Waits one turn.
    #[inline]
    pub fn turn(&mut self) {
        self.turns += 1;
        if self.turns.is_multiple_of(Self::SPINS_BEFORE_YIELD) {
            thread::yield_now();
        } else {
            hint();
        }
    }
}

/// Randomised exponential backoff between the attempts of one transaction.
///
/// STO §4.1: without regulation contention collapses, with too much the cores idle; doubling a
/// small random wait per failed attempt is the compromise the paper's baseline uses.
pub struct Backoff {
    random: Random,
    attempts: u32,
}

impl Backoff {
    /// The first wait's upper bound, in spins (25 to 40 ns each).
    const FIRST_SPINS: u64 = 8;
    /// The longest wait doubles this often: 8 << 10 spins, about a quarter of a millisecond.
    const DOUBLINGS_MAX: u32 = 10;

    /// A backoff whose waits are drawn from `random`.
    pub fn new(random: Random) -> Backoff {
        Backoff {
            random,
            attempts: 0,
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

    /// Waits once, longer on average than the time before.
    pub fn wait(&mut self) {
        let bound = Self::FIRST_SPINS << self.attempts.min(Self::DOUBLINGS_MAX);
        self.attempts += 1;
        let spins = self.random.below(bound as usize) as u64;
        thread::pause(spins);
        // With more threads than cores, whoever holds the lock may be waiting for this core.
        if self.attempts > 4 {
            thread::yield_now();
        }
    }
}
