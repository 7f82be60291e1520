//! Draws the calls of one worker.

use kiln_platform::random::Random;
use kiln_storage::types::Value;

use super::{Config, Kind, MIX, MODIFY, PROCEDURES, READ};
use crate::ArgumentSink;
use crate::audit::Totals;
use crate::definition::{Call, DrawCalls, ProcedureIndex};
use crate::records::RecordDraw;

/// The terminal of one worker.
#[derive(Debug)]
pub struct Terminal {
    random: Random,
    draw: RecordDraw,
    procedure: ProcedureIndex,
    /// Which records of a [`MIX`] are modified: 1, and 0 for the others.
    modified: Vec<i64>,
    totals: Totals,
}

impl Terminal {
    pub(super) fn new(config: &Config, seed: u64, worker: usize, begin_ns: u64) -> Terminal {
        let operations = config.choice.operations;
        let modified = (0..operations).map(|operation| i64::from(operation >= config.reads));
        Terminal {
            // Streams of their own: the population has those from 0.
            random: Random::stream(seed, (1 << 32) + worker as u64),
            draw: RecordDraw::new(&config.choice, seed, worker, begin_ns),
            procedure: match config.kind {
                Kind::ReadOnly => READ,
                Kind::ReadModifyWrite if config.reads == 0 => MODIFY,
                Kind::ReadModifyWrite if config.reads >= operations => READ,
                Kind::ReadModifyWrite => MIX,
            },
            modified: modified.collect(),
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
        if self.procedure == MIX {
            self.random.shuffle(&mut self.modified);
            arguments.push_i64_array(&self.modified);
        }
        Call::immediate(self.procedure)
    }

    fn committed<R: AsRef<[Value]>>(&mut self, call: Call, _rows: &[R]) {
        self.totals.committed[call.procedure.0] += 1;
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}
