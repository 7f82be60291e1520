//! The settings of the anomalies workload.

use super::{ABOUT, Terminal, closing_checks, populate};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{number, option, percent, unknown};

/// The settings of the anomalies workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Registers, seats, and numbers of items: at least 2. The fewer there are, the more conflicts.
    pub keys: u32,
    /// The most operations of a mixed transaction.
    pub operations: u32,
    /// Mixed transactions that fail on purpose, in percent.
    pub abort_percent: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            keys: 16,
            operations: 6,
            abort_percent: 5.0,
        }
    }
}

impl Config {
    /// Buckets of items, from 0: a few items each.
    pub(crate) fn buckets(&self) -> u32 {
        (self.keys / 4).max(2)
    }
}

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config {
            keys,
            operations,
            abort_percent,
        } = *self;
        vec![
            option(
                "keys",
                keys,
                "Rows of each table: the fewer, the more conflicts.",
            ),
            option(
                "operations",
                operations,
                "The most operations of a mixed transaction.",
            ),
            option(
                "abort-percent",
                abort_percent,
                "Mixed transactions that fail on purpose.",
            ),
        ]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "keys" => self.keys = number(option, value, 2, 1_000_000)?,
            "operations" => self.operations = number(option, value, 1, 60)?,
            "abort-percent" => self.abort_percent = percent(option, value)?,
            _ => return Err(unknown("anomalies", option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        match self.keys {
            0 | 1 => Err(format!(
                "keys is {}, but money moves between at least 2",
                self.keys
            )),
            _ => Ok(()),
        }
    }

    fn shrink(&mut self) {
        self.keys = 6;
    }

    fn populate_part(&self, _seed: u64, part: u64, sink: &mut dyn RowSink) {
        if part == 0 {
            populate(self, sink);
        }
    }

    fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        (0..workers)
            .map(|worker| Terminal::new(self, seed, worker))
            .collect()
    }

    fn closing_checks(&self, _seed: u64, _totals: &Totals) -> Vec<ClosingCheck> {
        closing_checks(self)
    }
}
