//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::config::{READ_ALL, Reads};
use super::populate::draw_value;
use super::{Config, DRAWN, FIELDS, PROCEDURES, READ_ONLY, READ_WRITE, REPETITIONS};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::{Call, DrawCalls};
use crate::random::Ranks;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    config: Config,
    ranks: Ranks,
    totals: Totals,
    keys: Vec<i64>,
    operations: Vec<i64>,
    value: String,
}

impl Terminal {
    /// The terminal of worker `worker`, from 0.
    pub fn new(config: &Config, seed: u64, worker: usize) -> Terminal {
        Terminal {
            // Streams of their own: the population has those from 0.
            random: Random::stream(seed, (1 << 32) + worker as u64),
            ranks: Ranks::new(config.records.into(), config.theta),
            totals: Totals::new(PROCEDURES.len()),
            keys: Vec::with_capacity(config.operations as usize),
            operations: Vec::with_capacity(config.operations as usize),
            value: String::with_capacity(DRAWN * REPETITIONS),
            config: config.clone(),
        }
    }

    /// Draws the operations, and returns whether one writes.
    fn draw(&mut self) -> bool {
        let Terminal {
            random,
            config,
            ranks,
            keys,
            operations,
            ..
        } = self;
        keys.clear();
        operations.clear();
        let mut writes = false;
        for _ in 0..config.operations {
            let key = ranks.next_free(random, |key| keys.contains(&key));
            keys.push(key);
            let field = random.between(0, FIELDS - 1);
            operations.push(if random.percent(config.mix.write_percent()) {
                writes = true;
                FIELDS + field
            } else {
                match config.reads {
                    Reads::OneField => field,
                    Reads::AllFields => READ_ALL,
                }
            });
        }
        writes
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        let writes = self.draw();
        arguments.push_i64_array(&self.keys);
        arguments.push_i64_array(&self.operations);
        if !writes {
            return Call::immediate(READ_ONLY);
        }
        draw_value(&mut self.value, &mut self.random);
        arguments.push_text(&self.value);
        Call::immediate(READ_WRITE)
    }

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, _rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
