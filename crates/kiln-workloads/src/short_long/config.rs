//! The settings of the short and the long microbenchmark.

use kiln_platform::time;

use super::{ABOUT, Terminal, closing_checks, populate_part};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{number, option, percent, unknown};
use crate::population::parts;
use crate::records::RecordChoice;

/// The settings of the short and the long microbenchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How transactions choose their records.
    pub choice: RecordChoice,
    /// Transactions that are long, in percent.
    pub long_percent: f64,
    /// Rounds of computation on each record of a long transaction.
    pub rounds: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            choice: RecordChoice {
                hot_records: 100,
                hot_operations: 1,
                ..RecordChoice::default()
            },
            long_percent: 0.0,
            rounds: 500,
        }
    }
}

const CHOICES: &[&str] = &[
    "records",
    "operations",
    "hot-operations",
    "hot-position",
    "partitions",
    "spread",
    "spread-percent",
];

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config {
            ref choice,
            long_percent,
            rounds,
        } = *self;
        let choices = CHOICES.iter().map(|name| choice.option(name));
        let own = [
            option(
                "contention-index",
                1.0 / f64::from(choice.hot_records.max(1)),
                "Probability that two transactions conflict: 1 by the number of hot records.",
            ),
            option("long-percent", long_percent, "Transactions that are long."),
            option(
                "computation",
                rounds,
                "Rounds of computation on each record of a long transaction.",
            ),
        ];
        choices.chain(own).collect()
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "contention-index" => {
                let index = number(option, value, 1e-9_f64, 1.0)?;
                self.choice.hot_records = (1.0 / index).round() as u32;
            }
            "long-percent" => self.long_percent = percent(option, value)?,
            "computation" => self.rounds = number(option, value, 0, 100_000_000)?,
            name if CHOICES.contains(&name) => self.choice.set(option, value)?,
            _ => return Err(unknown(ABOUT.name, option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        self.choice.validate()
    }

    fn shrink(&mut self) {
        self.choice = RecordChoice {
            records: 20,
            operations: 4,
            hot_records: 2,
            ..self.choice.clone()
        };
        self.long_percent = 30.0;
        self.rounds = 5;
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
