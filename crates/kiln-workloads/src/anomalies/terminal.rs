//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, MIXED, PROCEDURES, PROTECTED, SHIFT, TAKE, TOTAL, TRANSFER, money};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::{Call, DrawCalls, ProcedureIndex};

/// The operations of a mixed transaction, by their numbers there, each as often as it is wanted.
const OPERATIONS: [i64; 24] = [
    1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 10, 11, 12, 13, 14,
];
/// The operation that fails.
const FAIL: i64 = 15;
/// Stamps of one call: two for each operation, and some to spare.
const STAMPS_PER_CALL: i64 = 128;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    config: Config,
    next_stamp: i64,
    totals: Totals,
    kinds: Vec<i64>,
    ids: Vec<i64>,
    others: Vec<i64>,
}

impl Terminal {
    /// The terminal of worker `worker`, from 0.
    pub fn new(config: &Config, seed: u64, worker: usize) -> Terminal {
        Terminal {
            random: Random::stream(seed, (1 << 32) + worker as u64),
            config: config.clone(),
            // Apart from the population's stamps, and from those of other workers.
            next_stamp: (worker as i64 + 1) << 44,
            totals: Totals::new(PROCEDURES.len()),
            kinds: Vec::new(),
            ids: Vec::new(),
            others: Vec::new(),
        }
    }

    fn key(&mut self) -> i64 {
        self.random.between(1, self.config.keys.into())
    }

    fn bucket(&mut self) -> i64 {
        self.random.between(0, i64::from(self.config.buckets()) - 1)
    }

    fn stamps(&mut self) -> i64 {
        let first = self.next_stamp;
        self.next_stamp += STAMPS_PER_CALL;
        first
    }

    fn draw_procedure(&mut self) -> ProcedureIndex {
        match self.random.below(100) {
            0..52 => MIXED,
            52..64 => PROTECTED,
            64..74 => TRANSFER,
            74..84 => SHIFT,
            84..94 => TAKE,
            _ => TOTAL,
        }
    }

    /// Draws the operations of a mixed transaction.
    fn mix(&mut self) {
        self.kinds.clear();
        self.ids.clear();
        self.others.clear();
        let count = self.random.between(1, self.config.operations.into());
        let fails = self.random.percent(self.config.abort_percent);
        let mut key = self.key();
        for step in 1..=count {
            // Often the same row again.
            if !self.random.percent(30.0) {
                key = self.key();
            }
            let kind = match step == count && fails {
                true => FAIL,
                false => OPERATIONS[self.random.below(OPERATIONS.len())],
            };
            let other = match kind {
                4 => self.key(),
                9 => self.random.between(0, 4),
                _ => self.bucket(),
            };
            self.kinds.push(kind);
            self.ids.push(key);
            self.others.push(other);
        }
    }
}

impl Terminal {
    /// Draws operations that catch their errors.
    fn protect(&mut self) {
        self.kinds.clear();
        self.ids.clear();
        self.others.clear();
        for _ in 0..self.random.between(1, 3) {
            let (kind, key) = (self.random.between(1, 5), self.key());
            let other = match kind {
                1 => self.key(),
                3 => self.random.between(1, 2 * i64::from(self.config.keys)),
                _ => self.bucket(),
            };
            self.kinds.push(kind);
            self.ids.push(key);
            self.others.push(other);
        }
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        let procedure = self.draw_procedure();
        match procedure {
            MIXED | PROTECTED => {
                match procedure {
                    MIXED => self.mix(),
                    _ => self.protect(),
                }
                arguments.push_i64_array(&self.kinds);
                arguments.push_i64_array(&self.ids);
                arguments.push_i64_array(&self.others);
                arguments.push_i64(self.stamps());
            }
            TRANSFER => {
                arguments.push_i64(self.key());
                arguments.push_i64(self.key());
                // Now and then more than there is.
                arguments.push_i64(self.random.between(1, 1_500));
            }
            SHIFT => {
                arguments.push_i64(self.key());
                arguments.push_i64(self.key());
                let places = 2 * i64::from(self.config.keys);
                arguments.push_i64(self.random.between(1, places));
            }
            TAKE => {
                arguments.push_i64(self.bucket());
                arguments.push_i64(self.key());
                arguments.push_i64(self.stamps());
            }
            _ => arguments.push_i64(money(&self.config)),
        }
        Call::immediate(procedure)
    }

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, _rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
