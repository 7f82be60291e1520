//! YCSB's settings.

use super::{ABOUT, FIELDS, Terminal, closing_checks, populate};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{choice, chosen, number, option, unknown};
use crate::population::parts;

/// How many operations write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Half of them.
    A,
    /// One in twenty.
    B,
    /// None.
    C,
}

impl Mix {
    /// The share of writes, in percent.
    pub(super) fn write_percent(self) -> f64 {
        match self {
            Mix::A => 50.0,
            Mix::B => 5.0,
            Mix::C => 0.0,
        }
    }
}

/// What a read reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// One field, drawn at random (STO).
    OneField,
    /// All fields (YCSB's default).
    AllFields,
}

/// The settings of YCSB.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Records.
    pub records: u32,
    /// How many operations write.
    pub mix: Mix,
    /// The exponent of the Zipf distribution of records; 0 is uniform.
    pub theta: f64,
    /// Operations of a transaction.
    pub operations: u32,
    /// What a read reads.
    pub reads: Reads,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            records: 100_000,
            mix: Mix::A,
            theta: 0.99,
            operations: 16,
            reads: Reads::OneField,
        }
    }
}

const MIXES: &[(&str, Mix)] = &[("A", Mix::A), ("B", Mix::B), ("C", Mix::C)];

const READS: &[(&str, Reads)] = &[
    ("one-field", Reads::OneField),
    ("all-fields", Reads::AllFields),
];

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config {
            records,
            mix,
            theta,
            operations,
            reads,
        } = *self;
        vec![
            option("records", records, "Records of 1,000 bytes."),
            option(
                "mix",
                chosen(MIXES, mix),
                "Operations that write: A half of them, B one in twenty, C none.",
            ),
            option("theta", theta, "Zipf skew of the records; 0 is uniform."),
            option("operations", operations, "Operations of a transaction."),
            option(
                "reads",
                chosen(READS, reads),
                "What a read reads: one-field, all-fields.",
            ),
        ]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "records" => self.records = number(option, value, 1, 1_000_000_000)?,
            "mix" => self.mix = choice(option, value, MIXES)?,
            "theta" => self.theta = number(option, value, 0.0, 10.0)?,
            "operations" => self.operations = number(option, value, 1, 1_000)?,
            "reads" => self.reads = choice(option, value, READS)?,
            _ => return Err(unknown(ABOUT.name, option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        match self.operations > self.records {
            true => Err(format!(
                "operations is {}, but a transaction has no two on one record, and records is {}",
                self.operations, self.records
            )),
            false => Ok(()),
        }
    }

    fn shrink(&mut self) {
        self.records = 12;
        self.operations = 4;
    }

    fn parts(&self) -> u64 {
        parts(self.records.into())
    }

    fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        populate::populate_part(self, seed, part, sink);
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

/// The number of the operation that reads all fields; smaller ones read a field, or write one when
/// [`FIELDS`] is added.
pub(super) const READ_ALL: i64 = 2 * FIELDS;
