//! The settings of transactions on ranges.

use super::{ABOUT, Terminal, closing_checks, populate_part};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{number, option, percent, unknown};
use crate::population::parts;

/// The settings of transactions on ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Bits of a key; all keys of so many bits are there.
    pub bits: u32,
    /// The bits that the first and the last key of a range have in common; with as many as a key
    /// has it is one key.
    pub shared_bits: u32,
    /// Transactions that read, in percent.
    pub read_percent: f64,
    /// Transactions that delete and insert, in percent.
    pub replace_percent: f64,
    /// Rounds of computation in each transaction.
    pub rounds: u32,
    /// Transactions that are delayed, in percent.
    pub delayed_percent: f64,
    /// Rounds of computation that a delay takes.
    pub delay: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bits: 16,
            shared_bits: 11,
            read_percent: 0.0,
            replace_percent: 0.0,
            rounds: 0,
            delayed_percent: 0.0,
            delay: 2_000,
        }
    }
}

impl Config {
    /// How many entries there are.
    pub fn entries(&self) -> u64 {
        1 << self.bits
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
            bits,
            shared_bits,
            read_percent,
            replace_percent,
            rounds,
            delayed_percent,
            delay,
        } = *self;
        vec![
            option(
                "bits",
                bits,
                "Bits of a key; all keys of so many bits are there.",
            ),
            option(
                "shared-bits",
                shared_bits,
                "Leading bits that the first and the last key of a range share.",
            ),
            option("read-percent", read_percent, "Transactions that read."),
            option(
                "replace-percent",
                replace_percent,
                "Transactions that delete their entries and insert them again.",
            ),
            option(
                "computation",
                rounds,
                "Rounds of computation in each transaction.",
            ),
            option(
                "delayed-percent",
                delayed_percent,
                "Transactions that are delayed while they have their locks.",
            ),
            option("delay", delay, "Rounds of computation that a delay takes."),
        ]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "bits" => self.bits = number(option, value, 1, 26)?,
            "shared-bits" => self.shared_bits = number(option, value, 0, 26)?,
            "read-percent" => self.read_percent = percent(option, value)?,
            "replace-percent" => self.replace_percent = percent(option, value)?,
            "computation" => self.rounds = number(option, value, 0, 100_000_000)?,
            "delayed-percent" => self.delayed_percent = percent(option, value)?,
            "delay" => self.delay = number(option, value, 0, 100_000_000)?,
            _ => return Err(unknown(ABOUT.name, option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        if self.shared_bits > self.bits {
            return Err(format!(
                "shared-bits is {}, but a key has {} bits",
                self.shared_bits, self.bits
            ));
        }
        if self.read_percent + self.replace_percent > 100.0 {
            return Err(format!(
                "read-percent is {} and replace-percent is {}: more than 100 together",
                self.read_percent, self.replace_percent
            ));
        }
        Ok(())
    }

    fn shrink(&mut self) {
        *self = Config {
            bits: 5,
            shared_bits: 2,
            read_percent: 30.0,
            replace_percent: 30.0,
            rounds: 2,
            delayed_percent: 20.0,
            delay: 20,
        };
    }

    fn parts(&self) -> u64 {
        parts(self.entries())
    }

    fn populate_part(&self, _seed: u64, part: u64, sink: &mut dyn RowSink) {
        populate_part(self, part, sink);
    }

    fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        (0..workers)
            .map(|worker| Terminal::new(self, seed, worker))
            .collect()
    }

    fn closing_checks(&self, _seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        closing_checks(self, totals)
    }
}
