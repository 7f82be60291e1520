//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, PROCEDURES, READ, REPLACE, UPDATE};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::{Call, DrawCalls};

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    config: Config,
    totals: Totals,
}

impl Terminal {
    pub(super) fn new(config: &Config, seed: u64, worker: usize) -> Terminal {
        Terminal {
            // Streams of their own: the population has those from 0.
            random: Random::stream(seed, (1 << 32) + worker as u64),
            config: config.clone(),
            totals: Totals::new(PROCEDURES.len()),
        }
    }

    /// The first and the last key of a range.
    fn range(&mut self) -> (i64, i64) {
        let free = self.config.bits - self.config.shared_bits;
        let prefix = self.random.below(1 << self.config.shared_bits) as i64;
        if free == 0 {
            return (prefix, prefix);
        }
        // They differ in the first bit that they do not share.
        let half = 1_i64 << (free - 1);
        let begin = prefix << free;
        let first = begin + self.random.below(half as usize) as i64;
        let last = begin + half + self.random.below(half as usize) as i64;
        (first, last)
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        let (first, last) = self.range();
        arguments.push_i64(first);
        arguments.push_i64(last);
        let Config {
            rounds,
            delay,
            delayed_percent,
            read_percent,
            replace_percent,
            ..
        } = self.config;
        let delay = match self.random.percent(delayed_percent) {
            true => delay,
            false => 0,
        };
        arguments.push_i64(i64::from(rounds) + i64::from(delay));
        let reads = self.random.percent(read_percent);
        let rest = 100.0 - read_percent;
        Call::immediate(match reads {
            true => READ,
            false if rest > 0.0 && self.random.percent(100.0 * replace_percent / rest) => REPLACE,
            false => UPDATE,
        })
    }

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
        for row in rows {
            // Results that come as text have no type, and arrive as the smallest that holds them.
            self.totals.rows_changed += match row.as_ref().first() {
                Some(Value::BigInt(changed)) => *changed as u64,
                Some(Value::Integer(changed)) => *changed as u64,
                _ => 0,
            };
        }
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
