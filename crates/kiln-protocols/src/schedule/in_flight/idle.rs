//! Waits of a worker that has nothing to do.

use kiln_platform::{spin, thread, time};

/// Pauses of a worker that has nothing to do, longer and longer.
#[derive(Default)]
pub(crate) struct Idle {
    pauses: u32,
    /// When it had spun enough.
    since_ns: u64,
}

impl Idle {
    const SPINS: u32 = 64;
    const YIELDS: u32 = 192;

    const YIELDS_AWAKE: u32 = 1024;

    /// Longer than a transaction waits for its locks, mostly, where many want the same; shorter
    /// than a thread that has lost its core waits for it.
    const LONG_NS: u64 = 500_000;

    /// Waits for others to do something.
    pub fn pause(&mut self) {
        self.wait(Idle::YIELDS);
    }

    /// As [`Idle::pause`], but sleeps later: others wait for what this worker will be told soon.
    pub fn pause_awake(&mut self) {
        self.wait(Idle::YIELDS_AWAKE);
    }

    fn wait(&mut self, yields: u32) {
        self.pauses = self.pauses.saturating_add(1);
        if self.pauses == Idle::SPINS {
            self.since_ns = time::now_ns();
        }
        if self.pauses < Idle::SPINS {
            spin::hint();
        } else if self.pauses < yields {
            thread::yield_now();
        } else {
            thread::park_for(20_000);
        }
    }

    /// Whether it spins no more, and lets others have the core: there is time to look at clocks.
    pub fn has_spun(&self) -> bool {
        self.pauses >= Idle::SPINS
    }

    /// Whether those who should do something seem not to run: they were given the core again and
    /// again, and half a millisecond.
    pub fn is_long(&self) -> bool {
        self.has_lasted(Idle::LONG_NS)
    }

    /// Whether others were given the core again and again, and for this time.
    pub fn has_lasted(&self, nanoseconds: u64) -> bool {
        self.pauses >= Idle::YIELDS && time::now_ns() - self.since_ns >= nanoseconds
    }
}
