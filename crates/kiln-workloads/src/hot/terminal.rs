//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, INCREMENT, PROCEDURES};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::{Call, DrawCalls};

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
}

impl DrawCalls for Terminal {
    #[inline]
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        arguments.push_i64(match self.counters {
            1 => 1,
            all => self.random.between(1, all),
        });
        Call::immediate(INCREMENT)
    }

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, _rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
