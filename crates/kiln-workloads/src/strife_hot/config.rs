//! The settings of HOT.

use kiln_platform::time;

use super::{ABOUT, Terminal, closing_checks, populate_part};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::unknown;
use crate::population::parts;
use crate::records::RecordChoice;

/// The settings of HOT.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How transactions choose their records.
    pub choice: RecordChoice,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            choice: RecordChoice {
                hot_records: 100,
                hot_operations: 1,
                partitions: 30,
                remote_accesses: 3,
                ..RecordChoice::default()
            },
        }
    }
}

const CHOICES: &[&str] = &[
    "records",
    "operations",
    "hot-records",
    "hot-operations",
    "hot-position",
    "theta",
    "partitions",
    "remote-accesses",
    "vary-ms",
];

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config { choice } = self;
        let choices = CHOICES.iter().map(|name| choice.option(name));
        choices.collect()
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match CHOICES.contains(&option) {
            true => self.choice.set(option, value),
            false => Err(unknown(ABOUT.name, option, &self.options())),
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.choice.validate()
    }

    fn shrink(&mut self) {
        self.choice = RecordChoice {
            records: 24,
            operations: 4,
            hot_records: 3,
            partitions: 3,
            remote_accesses: 2,
            ..self.choice.clone()
        };
    }

    fn parts(&self) -> u64 {
        parts(self.choice.rows())
    }

    fn populate_part(&self, _seed: u64, part: u64, sink: &mut dyn RowSink) {
        populate_part(self, part, sink);
    }

    fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        let begin_ns = time::now_ns();
        (0..workers)
            .map(|worker| Terminal::new(self, seed, worker, begin_ns))
            .collect()
    }

    fn closing_checks(&self, _seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        closing_checks(self, totals)
    }
}
