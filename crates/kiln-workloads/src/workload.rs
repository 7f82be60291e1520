//! A workload as the benchmark driver sees it.

use kiln_storage::types::Value;

use crate::audit::{Audit, ClosingCheck, Totals};
use crate::{ArgumentSink, RowSink, anomalies, hot, smallbank, tpcc};

/// A procedure's place in [`Workload::procedures`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcedureIndex(pub usize);

/// How SQL text calls a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcedureKind {
    /// `CREATE PROCEDURE`: `CALL name(…)`, at most one row comes back.
    Procedure,
    /// `CREATE FUNCTION … RETURNS TABLE`: `SELECT * FROM name(…)`.
    Function,
}

/// What a caller must know of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Procedure {
    /// Its SQL name.
    pub name: &'static str,
    /// How it is called.
    pub kind: ProcedureKind,
    /// The SQL types of its IN parameters.
    pub parameters: &'static [&'static str],
    /// How many OUT parameters follow them.
    pub outputs: usize,
    /// Whether [`Terminal::committed`] must be given its result rows.
    pub rows_wanted: bool,
}

/// A call that a terminal asks for; its arguments are in the sink that the terminal was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What to call.
    pub procedure: ProcedureIndex,
    /// The queued request that the call executes; `None` for a call that starts now.
    pub delivery: Option<tpcc::DeliveryRequest>,
}

impl Call {
    /// A call that starts now.
    pub(crate) fn immediate(procedure: ProcedureIndex) -> Call {
        Call {
            procedure,
            delivery: None,
        }
    }

    /// When the call was asked for, if that was before now: its latency counts from then. In
    /// nanoseconds of [`kiln_platform::time::now_ns`].
    pub fn queued_ns(&self) -> Option<u64> {
        self.delivery.map(|request| request.queued_ns)
    }
}

/// One setting of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadOption {
    /// Its name, as [`Workload::set`] takes it.
    pub name: &'static str,
    /// Its present value.
    pub value: String,
    /// What it does, one sentence.
    pub help: &'static str,
}

/// A workload and its settings.
#[derive(Clone, Debug)]
pub enum Workload {
    /// TPC-C.
    Tpcc(tpcc::Config),
    /// SmallBank.
    SmallBank(smallbank::Config),
    /// The hot-record microbenchmark.
    Hot(hot::Config),
    /// Random small transactions that provoke anomalies.
    Anomalies(anomalies::Config),
}

impl Workload {
    /// Every workload with its default settings.
    pub fn all() -> Vec<Workload> {
        vec![
            Workload::Tpcc(tpcc::Config::default()),
            Workload::SmallBank(smallbank::Config::default()),
            Workload::Anomalies(anomalies::Config::default()),
            Workload::Hot(hot::Config::default()),
        ]
    }

    /// The workload of this name with its default settings.
    pub fn by_name(name: &str) -> Option<Workload> {
        Workload::all()
            .into_iter()
            .find(|workload| workload.name() == name)
    }

    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Workload::Tpcc(_) => "tpcc",
            Workload::SmallBank(_) => "smallbank",
            Workload::Anomalies(_) => "anomalies",
            Workload::Hot(_) => "hot",
        }
    }

    /// One sentence for lists.
    pub fn description(&self) -> &'static str {
        match self {
            Workload::Tpcc(_) => {
                "TPC-C: order processing in warehouses, five transactions on nine tables"
            }
            Workload::SmallBank(_) => "SmallBank: six short transactions on the accounts of a bank",
            Workload::Anomalies(_) => {
                "Anomalies: random small transactions on few rows, for tests of isolation"
            }
            Workload::Hot(_) => "hot: increments of one row, or of a few",
        }
    }

    /// The settings with their present values.
    pub fn options(&self) -> Vec<WorkloadOption> {
        match self {
            Workload::Tpcc(config) => config.options(),
            Workload::SmallBank(config) => config.options(),
            Workload::Anomalies(config) => config.options(),
            Workload::Hot(config) => config.options(),
        }
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A sentence that says what is wrong: an unknown option, or a value outside its range.
    pub fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match self {
            Workload::Tpcc(config) => config.set(option, value),
            Workload::SmallBank(config) => config.set(option, value),
            Workload::Anomalies(config) => config.set(option, value),
            Workload::Hot(config) => config.set(option, value),
        }
    }

    /// Whether the settings fit together; [`Workload::set`] checks one at a time.
    ///
    /// # Errors
    /// A sentence that says which do not.
    pub fn validate(&self) -> Result<(), String> {
        match self {
            Workload::Tpcc(config) => config.validate(),
            Workload::SmallBank(config) => config.validate(),
            Workload::Anomalies(config) => config.validate(),
            Workload::Hot(_) => Ok(()),
        }
    }

    /// The script that creates tables and indexes.
    pub fn schema_sql(&self) -> &'static str {
        match self {
            Workload::Tpcc(_) => tpcc::SCHEMA_SQL,
            Workload::SmallBank(_) => smallbank::SCHEMA_SQL,
            Workload::Anomalies(_) => anomalies::SCHEMA_SQL,
            Workload::Hot(_) => hot::SCHEMA_SQL,
        }
    }

    /// The script that creates the procedures.
    pub fn procedures_sql(&self) -> &'static str {
        match self {
            Workload::Tpcc(_) => tpcc::PROCEDURES_SQL,
            Workload::SmallBank(_) => smallbank::PROCEDURES_SQL,
            Workload::Anomalies(_) => anomalies::PROCEDURES_SQL,
            Workload::Hot(_) => hot::PROCEDURES_SQL,
        }
    }

    /// The procedures, by [`ProcedureIndex`].
    pub fn procedures(&self) -> &'static [Procedure] {
        match self {
            Workload::Tpcc(_) => &tpcc::PROCEDURES,
            Workload::SmallBank(_) => &smallbank::PROCEDURES,
            Workload::Anomalies(_) => &anomalies::PROCEDURES,
            Workload::Hot(_) => &hot::PROCEDURES,
        }
    }

    /// SQLSTATEs of rejections that belong to the workload; any other means that something is wrong.
    pub fn expected_rejections(&self) -> &'static [&'static str] {
        match self {
            Workload::Tpcc(_) => &[tpcc::UNUSED_ITEM],
            Workload::SmallBank(_) => &[smallbank::INSUFFICIENT_FUNDS],
            Workload::Anomalies(_) => &[anomalies::EXPECTED_FAILURE],
            Workload::Hot(_) => &[],
        }
    }

    /// The tables, in the order of the schema.
    pub fn tables(&self) -> &'static [&'static str] {
        match self {
            Workload::Tpcc(_) => &tpcc::TABLES,
            Workload::SmallBank(_) => &smallbank::TABLES,
            Workload::Anomalies(_) => &anomalies::TABLES,
            Workload::Hot(_) => &hot::TABLES,
        }
    }

    /// How many parts the population has that can be made independently, by threads in parallel.
    pub fn parts(&self) -> u64 {
        match self {
            Workload::Tpcc(config) => u64::from(config.warehouses) + 1,
            Workload::SmallBank(config) => smallbank::parts(config),
            Workload::Anomalies(_) => 1,
            Workload::Hot(_) => 1,
        }
    }

    /// Makes part `part` of the population that belongs to `seed`. A table may get rows from
    /// several parts, each of which announces it.
    pub fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        match self {
            Workload::Tpcc(config) => match u16::try_from(part) {
                Ok(0) => tpcc::populate_shared(config, seed, sink),
                Ok(warehouse) => tpcc::populate_warehouse(config, seed, warehouse, sink),
                Err(_) => {}
            },
            Workload::SmallBank(config) => smallbank::populate_part(config, seed, part, sink),
            Workload::Anomalies(config) if part == 0 => anomalies::populate(config, sink),
            Workload::Anomalies(_) => {}
            Workload::Hot(config) if part == 0 => hot::populate(config, sink),
            Workload::Hot(_) => {}
        }
    }

    /// Makes the whole population.
    pub fn populate(&self, seed: u64, sink: &mut dyn RowSink) {
        for part in 0..self.parts() {
            self.populate_part(seed, part, sink);
        }
    }

    /// The terminals of `workers` workers, which may share queues: make all those of a run by one
    /// call. The same seed gives the same calls.
    pub fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        match self {
            Workload::Tpcc(config) => tpcc::Terminal::for_workers(config, seed, workers)
                .into_iter()
                .map(Terminal::Tpcc)
                .collect(),
            Workload::SmallBank(config) => (0..workers)
                .map(|worker| smallbank::Terminal::new(config, seed, worker))
                .map(Terminal::SmallBank)
                .collect(),
            Workload::Anomalies(config) => (0..workers)
                .map(|worker| anomalies::Terminal::new(config, seed, worker))
                .map(Terminal::Anomalies)
                .collect(),
            Workload::Hot(config) => (0..workers)
                .map(|worker| hot::Terminal::new(config, seed, worker))
                .map(Terminal::Hot)
                .collect(),
        }
    }

    /// The queries that must return no rows.
    pub fn audits(&self) -> Vec<Audit> {
        match self {
            Workload::Tpcc(_) => crate::audit::audits(tpcc::AUDIT_SQL),
            Workload::SmallBank(_) => crate::audit::audits(smallbank::AUDIT_SQL),
            Workload::Anomalies(_) => crate::audit::audits(anomalies::AUDIT_SQL),
            Workload::Hot(_) => crate::audit::audits(hot::AUDIT_SQL),
        }
    }

    /// The queries whose results follow from the population of `seed` and from `totals`, which
    /// must cover every committed call since, warm-up included.
    pub fn closing_checks(&self, seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        match self {
            Workload::Tpcc(config) => tpcc::closing_checks(config, totals),
            Workload::SmallBank(config) => smallbank::closing_checks(config, seed, totals),
            Workload::Anomalies(config) => anomalies::closing_checks(config),
            Workload::Hot(_) => hot::closing_checks(totals),
        }
    }
}

/// Draws the calls of one worker.
#[derive(Debug)]
pub enum Terminal {
    /// A terminal of TPC-C.
    Tpcc(tpcc::Terminal),
    /// A terminal of SmallBank.
    SmallBank(smallbank::Terminal),
    /// A terminal of the hot-record microbenchmark.
    Hot(hot::Terminal),
    /// A terminal of the anomalies workload.
    Anomalies(anomalies::Terminal),
}

impl Terminal {
    /// Draws the next call and puts its arguments into `arguments`, in place of what they held.
    /// Allocates nothing in the steady state.
    #[inline]
    pub fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        match self {
            Terminal::Tpcc(terminal) => terminal.next(arguments),
            Terminal::SmallBank(terminal) => terminal.next(arguments),
            Terminal::Anomalies(terminal) => terminal.next(arguments),
            Terminal::Hot(terminal) => terminal.next(arguments),
        }
    }

    /// Counts a call that committed; calls may commit in any order. `rows` is its result, and may be empty unless the procedure
    /// says [`Procedure::rows_wanted`].
    pub fn committed<R: AsRef<[Value]>>(&mut self, call: Call, rows: &[R]) {
        match self {
            Terminal::Tpcc(terminal) => terminal.committed(call, rows),
            Terminal::SmallBank(terminal) => terminal.committed(call, rows),
            Terminal::Anomalies(terminal) => terminal.committed(call, rows),
            Terminal::Hot(terminal) => terminal.committed(call),
        }
    }

    /// What the calls counted so far add up to.
    pub fn totals(&self) -> &Totals {
        match self {
            Terminal::Tpcc(terminal) => terminal.totals(),
            Terminal::SmallBank(terminal) => terminal.totals(),
            Terminal::Anomalies(terminal) => terminal.totals(),
            Terminal::Hot(terminal) => terminal.totals(),
        }
    }
}

/// Reads the values of options.
pub(crate) mod parse {
    use std::fmt::Display;
    use std::str::FromStr;

    use super::WorkloadOption;

    /// A number in `low..=high`.
    pub(crate) fn number<T>(option: &str, value: &str, low: T, high: T) -> Result<T, String>
    where
        T: FromStr + PartialOrd + Display,
    {
        match value.parse() {
            Ok(number) if low <= number && number <= high => Ok(number),
            _ => Err(format!(
                "{option} is \"{value}\", but must be a number from {low} to {high}"
            )),
        }
    }

    /// A percentage, 0 to 100.
    pub(crate) fn percent(option: &str, value: &str) -> Result<f64, String> {
        number(option, value, 0.0, 100.0)
    }

    /// The message for an option that the workload does not have.
    pub(crate) fn unknown(workload: &str, option: &str, known: &[WorkloadOption]) -> String {
        let names: Vec<&str> = known.iter().map(|option| option.name).collect();
        format!(
            "{workload} has no option \"{option}\"; it has {}",
            names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests;
