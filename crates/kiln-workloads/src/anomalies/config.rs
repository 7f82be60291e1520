//! The settings of the anomalies workload.

use crate::workload::WorkloadOption;
use crate::workload::parse::{number, percent, unknown};

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
    pub(crate) fn options(&self) -> Vec<WorkloadOption> {
        let option = |name, value: String, help| WorkloadOption { name, value, help };
        vec![
            option(
                "keys",
                self.keys.to_string(),
                "Rows of each table: the fewer, the more conflicts.",
            ),
            option(
                "operations",
                self.operations.to_string(),
                "The most operations of a mixed transaction.",
            ),
            option(
                "abort-percent",
                self.abort_percent.to_string(),
                "Mixed transactions that fail on purpose.",
            ),
        ]
    }

    pub(crate) fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "keys" => self.keys = number(option, value, 2, 1_000_000)?,
            "operations" => self.operations = number(option, value, 1, 60)?,
            "abort-percent" => self.abort_percent = percent(option, value)?,
            _ => return Err(unknown("anomalies", option, &self.options())),
        }
        Ok(())
    }

    pub(crate) fn validate(&self) -> Result<(), String> {
        match self.keys {
            0 | 1 => Err(format!(
                "keys is {}, but money moves between at least 2",
                self.keys
            )),
            _ => Ok(()),
        }
    }

    /// Buckets of items, from 0: a few items each.
    pub(crate) fn buckets(&self) -> u32 {
        (self.keys / 4).max(2)
    }
}
