//! The execution-time breakdown: how long a worker spends in which phase.
//!
//! Reading the cycle counter costs about ten nanoseconds, so only every so many transactions are
//! measured; the shares are those of the sample.

use kiln_platform::sync::Arc;
use kiln_platform::time;

pub use crate::statistics::Phase;
use crate::{Counters, Statistics};

/// Something whose phases are measured.
pub trait Phased {
    /// The measurement.
    fn phases(&mut self) -> &mut Phases;

    /// Counts there as well what all may read at any time.
    fn count_in(&mut self, _counters: &Arc<Counters>) {}

    /// Adds what it counts besides.
    fn add_counts(&self, _statistics: &mut Statistics) {}

    /// Starts counting that anew.
    fn reset_counts(&mut self) {}
}

/// The cycles spent in each phase by the measured transactions of one worker.
#[derive(Clone, Debug)]
pub struct Phases {
    measuring: bool,
    current: Phase,
    since: u64,
    until_next: u32,
    cycles: [u64; Phase::ALL.len()],
}

impl Default for Phases {
    fn default() -> Phases {
        Phases {
            measuring: false,
            current: Phase::Execute,
            since: 0,
            until_next: Phases::PERIOD,
            cycles: [0; Phase::ALL.len()],
        }
    }
}

impl Phases {
    /// One of so many transactions is measured: all on virtual cores, where reading the counter
    /// costs nothing and runs are short.
    const PERIOD: u32 = if cfg!(kiln_sim) { 1 } else { 32 };

    /// A transaction starts, in [`Phase::Execute`].
    #[inline(always)]
    pub fn start(&mut self) {
        self.until_next -= 1;
        if self.until_next == 0 {
            self.until_next = Phases::PERIOD;
            self.measuring = true;
            self.current = Phase::Execute;
            self.since = time::cycles();
        }
    }

    /// The transaction goes over to `phase`.
    #[inline(always)]
    pub fn enter(&mut self, phase: Phase) {
        if self.measuring {
            let now = time::cycles();
            self.cycles[self.current as usize] += now.wrapping_sub(self.since);
            (self.current, self.since) = (phase, now);
        }
    }

    /// The transaction ends.
    #[inline(always)]
    pub fn stop(&mut self) {
        if self.measuring {
            self.enter(Phase::Execute);
            self.measuring = false;
        }
    }

    /// The cycles spent in each phase, in the order of [`Phase::ALL`].
    pub fn cycles(&self) -> [u64; Phase::ALL.len()] {
        self.cycles
    }

    /// Forgets what was measured.
    pub fn reset(&mut self) {
        self.cycles = [0; Phase::ALL.len()];
    }
}
