//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::populate::AMOUNTS;
use super::{BUY_NOW, Config, PLACE_BID, PROCEDURES, VIEW_ITEM};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::clock::START;
use crate::definition::{Call, DrawCalls};
use crate::random::Ranks;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    items: Ranks,
    users: Ranks,
    /// The logical clock, in microseconds since 2000-01-01: a millisecond a call.
    clock: i64,
    totals: Totals,
}

impl Terminal {
    /// The terminal of worker `worker`, from 0.
    pub fn new(config: &Config, seed: u64, worker: usize) -> Terminal {
        Terminal {
            // Streams of their own: the population has those from 0.
            random: Random::stream(seed, (1 << 32) + worker as u64),
            items: Ranks::new(config.items.into(), config.theta),
            users: Ranks::new(config.users.into(), config.user_theta),
            clock: START,
            totals: Totals::new(PROCEDURES.len()),
        }
    }
}

impl DrawCalls for Terminal {
    fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        arguments.clear();
        self.clock += 1_000;
        let random = &mut self.random;
        let procedure = match random.below(100) {
            0..30 => PLACE_BID,
            30..50 => BUY_NOW,
            _ => VIEW_ITEM,
        };
        arguments.push_i64(self.items.next(random));
        match procedure {
            PLACE_BID => {
                arguments.push_i64(self.users.next(random));
                arguments.push_i64(1);
                let amount = random.between(*AMOUNTS.start(), *AMOUNTS.end());
                arguments.push_i64(amount);
                arguments.push_i64(random.between(amount, *AMOUNTS.end()));
                arguments.push_timestamp(self.clock);
            }
            BUY_NOW => {
                arguments.push_i64(self.users.next(random));
                arguments.push_i64(1);
                arguments.push_timestamp(self.clock);
            }
            _ => {}
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
