//! Draws the calls of one worker.

use kiln_platform::random::Random;

use super::{Config, INCREMENT, PROCEDURES};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::workload::Call;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    counters: i64,
    totals: Totals,
}

impl Terminal {
    /// The terminal of worker `worker`, from 0.
    pub fn new(config: &Config, seed: u64, worker: usize) -> Terminal {
        Terminal {
            random: Random::stream(seed, worker as u64),
            counters: i64::from(config.counters),
            totals: Totals::new(PROCEDURES.len()),
        }
    }

    /// Draws the next call and its argument.
    #[inline]
    pub fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        arguments.push_i64(match self.counters {
            1 => 1,
            all => self.random.between(1, all),
        });
        Call::immediate(INCREMENT)
    }

    /// Counts a committed call.
    pub fn committed(&mut self, call: Call) {
        self.totals.committed[call.procedure.0] += 1;
    }

    /// What the committed calls add up to.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }
}
