//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, LONG, PROCEDURES, SHORT};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::{Call, DrawCalls};
use crate::records::RecordDraw;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    draw: RecordDraw,
    long_percent: f64,
    rounds: i64,
    totals: Totals,
}

impl Terminal {
    pub(super) fn new(config: &Config, seed: u64, worker: usize, begin_ns: u64) -> Terminal {
        Terminal {
            // Streams of their own: the population has those from 0.
            random: Random::stream(seed, (1 << 32) + worker as u64),
            draw: RecordDraw::new(&config.choice, seed, worker, begin_ns),
            long_percent: config.long_percent,
            rounds: config.rounds.into(),
            totals: Totals::new(PROCEDURES.len()),
        }
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        self.draw.draw(&mut self.random);
        arguments.push_i64_array(&self.draw.partitions);
        arguments.push_i64_array(&self.draw.ids);
        if !self.random.percent(self.long_percent) {
            return Call::immediate(SHORT);
        }
        arguments.push_i64(self.rounds);
        Call::immediate(LONG)
    }

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, _rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
