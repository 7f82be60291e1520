//! The settings of `rmw` and of `read-only`.

use kiln_platform::time;

use super::{ABOUT, ABOUT_READ_ONLY, Terminal, closing_checks, populate_part};
use crate::RowSink;
use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, WorkloadOption};
use crate::options::{number, option, unknown};
use crate::population::parts;
use crate::records::RecordChoice;

/// Which of the two workloads it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `rmw`.
    ReadModifyWrite,
    /// `read-only`.
    ReadOnly,
}

/// The settings of `rmw` and of `read-only`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which of the two it is.
    pub kind: Kind,
    /// How transactions choose their records.
    pub choice: RecordChoice,
    /// Records of a transaction that are read and not modified; of `read-only`, none matters.
    pub reads: u32,
}

impl Config {
    /// ORTHRUS' high contention: ten records, the first two of 64 hot ones.
    fn orthrus(kind: Kind) -> Config {
        Config {
            kind,
            choice: RecordChoice {
                hot_records: 64,
                hot_operations: 2,
                ..RecordChoice::default()
            },
            reads: 0,
        }
    }

    /// Transactions that read and modify.
    pub fn read_modify_write() -> Config {
        Config::orthrus(Kind::ReadModifyWrite)
    }

    /// Transactions that read.
    pub fn read_only() -> Config {
        Config::orthrus(Kind::ReadOnly)
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
    "partition-theta",
    "home",
    "spread",
    "spread-percent",
    "remote-percent",
];

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        match self.kind {
            Kind::ReadModifyWrite => &ABOUT,
            Kind::ReadOnly => &ABOUT_READ_ONLY,
        }
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config {
            kind,
            ref choice,
            reads,
        } = *self;
        let choices = CHOICES.iter().map(|name| choice.option(name));
        let reads = option(
            "reads",
            reads,
            "Records of a transaction that are only read.",
        );
        let reads = (kind == Kind::ReadModifyWrite).then_some(reads);
        choices.chain(reads).collect()
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "reads" if self.kind == Kind::ReadModifyWrite => {
                self.reads = number(option, value, 0, 1_000)?;
            }
            name if CHOICES.contains(&name) => self.choice.set(option, value)?,
            _ => return Err(unknown(self.about().name, option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        if self.reads > self.choice.operations {
            return Err(format!(
                "reads is {}, but operations is {}",
                self.reads, self.choice.operations
            ));
        }
        self.choice.validate()
    }

    fn shrink(&mut self) {
        self.choice = RecordChoice {
            records: 24,
            operations: 4,
            hot_records: 4,
            partitions: 2,
            remote_percent: 20.0,
            ..self.choice.clone()
        };
        if self.kind == Kind::ReadModifyWrite {
            self.reads = 1;
        }
    }

    fn parts(&self) -> u64 {
        parts(self.choice.rows())
    }

    fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        populate_part(self, seed, part, sink);
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
