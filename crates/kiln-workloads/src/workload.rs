//! A workload as the benchmark driver sees it.
//!
//! Each module of a workload defines its settings, which are a [`Definition`], and a terminal,
//! which is a [`DrawCalls`]; the enums here choose among them.

use kiln_storage::types::Value;

use crate::audit::{Audit, ClosingCheck, Totals};
use crate::definition::{About, Call, Definition, DrawCalls, Procedure, WorkloadOption};
use crate::{
    ArgumentSink, RowSink, anomalies, hot, ranges, rmw, rubis, short_long, smallbank, strife_hot,
    tpcc, wikipedia, ycsb,
};

/// The two enums, one variant for each module, and `each!`, which does the same with any of them.
macro_rules! workloads {
    ($($(#[$docs:meta])* $variant:ident($module:ident),)*) => {
        /// A workload and its settings.
        #[derive(Clone, Debug)]
        pub enum Workload {
            $($(#[$docs])* $variant($module::Config),)*
        }

        /// Draws the calls of one worker.
        #[derive(Debug)]
        pub enum Terminal {
            $($(#[$docs])* $variant($module::Terminal),)*
        }

        $(impl From<$module::Terminal> for Terminal {
            fn from(terminal: $module::Terminal) -> Terminal {
                Terminal::$variant(terminal)
            }
        })*
    };
}

macro_rules! each {
    ($enum:ident, $value:expr, $inner:ident => $result:expr) => {
        match $value {
            $enum::Tpcc($inner) => $result,
            $enum::SmallBank($inner) => $result,
            $enum::Anomalies($inner) => $result,
            $enum::Ycsb($inner) => $result,
            $enum::Rmw($inner) => $result,
            $enum::Hot($inner) => $result,
            $enum::StrifeHot($inner) => $result,
            $enum::ShortLong($inner) => $result,
            $enum::Wikipedia($inner) => $result,
            $enum::Rubis($inner) => $result,
            $enum::Ranges($inner) => $result,
        }
    };
}

workloads! {
    /// TPC-C.
    Tpcc(tpcc),
    /// SmallBank.
    SmallBank(smallbank),
    /// Random small transactions that provoke anomalies.
    Anomalies(anomalies),
    /// YCSB A, B and C.
    Ycsb(ycsb),
    /// Read-modify-writes, or reads, of hot and cold records.
    Rmw(rmw),
    /// The hot-record microbenchmark.
    Hot(hot),
    /// HOT, of STRIFE.
    StrifeHot(strife_hot),
    /// Short and long transactions.
    ShortLong(short_long),
    /// Wikipedia.
    Wikipedia(wikipedia),
    /// The bidding core of RUBiS.
    Rubis(rubis),
    /// Ranges of keys.
    Ranges(ranges),
}

impl Workload {
    /// Every workload with its default settings.
    pub fn all() -> Vec<Workload> {
        vec![
            Workload::Tpcc(tpcc::Config::default()),
            Workload::SmallBank(smallbank::Config::default()),
            Workload::Anomalies(anomalies::Config::default()),
            Workload::Ycsb(ycsb::Config::default()),
            Workload::Rmw(rmw::Config::read_modify_write()),
            Workload::Rmw(rmw::Config::read_only()),
            Workload::Hot(hot::Config::default()),
            Workload::StrifeHot(strife_hot::Config::default()),
            Workload::ShortLong(short_long::Config::default()),
            Workload::Wikipedia(wikipedia::Config::default()),
            Workload::Rubis(rubis::Config::default()),
            Workload::Ranges(ranges::Config::default()),
        ]
    }

    /// The workload of this name with its default settings.
    pub fn by_name(name: &str) -> Option<Workload> {
        Workload::all()
            .into_iter()
            .find(|workload| workload.name() == name)
    }

    /// The same workload with few rows, for tests: it loads in no time, and calls meet each other.
    #[must_use]
    pub fn small(mut self) -> Workload {
        each!(Workload, &mut self, config => Definition::shrink(config));
        self
    }

    fn about(&self) -> &'static About {
        each!(Workload, self, config => Definition::about(config))
    }

    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        self.about().name
    }

    /// One sentence for lists.
    pub fn description(&self) -> &'static str {
        self.about().description
    }

    /// The settings with their present values.
    pub fn options(&self) -> Vec<WorkloadOption> {
        each!(Workload, self, config => Definition::options(config))
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A sentence that says what is wrong: an unknown option, or a value outside its range.
    pub fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        each!(Workload, self, config => Definition::set(config, option, value))
    }

    /// Whether the settings fit together; [`Workload::set`] checks one at a time.
    ///
    /// # Errors
    /// A sentence that says which do not.
    pub fn validate(&self) -> Result<(), String> {
        each!(Workload, self, config => Definition::validate(config))
    }

    /// The script that creates tables and indexes.
    pub fn schema_sql(&self) -> &'static str {
        self.about().schema_sql
    }

    /// The script that divides the tables over partitions; for Kiln alone, PostgreSQL has no such
    /// statements.
    pub fn partitions_sql(&self) -> &'static str {
        self.about().partitions_sql
    }

    /// The script that creates the procedures.
    pub fn procedures_sql(&self) -> &'static str {
        self.about().procedures_sql
    }

    /// The procedures, by [`ProcedureIndex`](crate::ProcedureIndex).
    pub fn procedures(&self) -> &'static [Procedure] {
        self.about().procedures
    }

    /// SQLSTATEs of rejections that belong to the workload; any other means that something is
    /// wrong.
    pub fn expected_rejections(&self) -> &'static [&'static str] {
        self.about().expected_rejections
    }

    /// The tables, in the order of the schema.
    pub fn tables(&self) -> &'static [&'static str] {
        self.about().tables
    }

    /// How many parts the population has that can be made independently, by threads in parallel.
    pub fn parts(&self) -> u64 {
        each!(Workload, self, config => Definition::parts(config))
    }

    /// Makes part `part` of the population that belongs to `seed`. A table may get rows from
    /// several parts, each of which announces it.
    pub fn populate_part(&self, seed: u64, part: u64, sink: &mut dyn RowSink) {
        each!(Workload, self, config => Definition::populate_part(config, seed, part, sink));
    }

    /// Makes the whole population.
    pub fn populate(&self, seed: u64, sink: &mut dyn RowSink) {
        for part in 0..self.parts() {
            self.populate_part(seed, part, sink);
        }
    }

    /// The terminals of `workers` workers, which may share queues: make all those of a run by one
    /// call. The same seed gives the same calls, but for row numbers that must be new in each run.
    pub fn terminals(&self, seed: u64, workers: usize) -> Vec<Terminal> {
        self.terminals_after(seed, workers, &Totals::default())
    }

    /// The same for a database that earlier runs have left; `before` covers all that they did.
    pub fn terminals_after(&self, seed: u64, workers: usize, before: &Totals) -> Vec<Terminal> {
        each!(Workload, self, config => {
            let terminals = Definition::terminals_after(config, seed, workers, before).into_iter();
            terminals.map(Terminal::from).collect()
        })
    }

    /// The queries that must return no rows.
    pub fn audits(&self) -> Vec<Audit> {
        let about = self.about();
        let mut audits = crate::audit::audits(about.audit_sql);
        audits.retain(|audit| !about.unaudited.contains(&audit.name));
        audits
    }

    /// The queries whose results follow from the population of `seed` and from `totals`, which
    /// must cover every committed call since, warm-up included.
    pub fn closing_checks(&self, seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        each!(Workload, self, config => Definition::closing_checks(config, seed, totals))
    }
}

impl Terminal {
    /// Draws the next call and puts its arguments into `arguments`, in place of what they held.
    /// Allocates nothing in the steady state.
    #[inline]
    pub fn next<A: ArgumentSink>(&mut self, arguments: &mut A) -> Call {
        each!(Terminal, self, terminal => DrawCalls::next(terminal, arguments))
    }

    /// Counts a call that committed; calls may commit in any order. `rows` is its result, and may
    /// be empty unless the procedure says [`Procedure::rows_wanted`].
    pub fn committed<R: AsRef<[Value]>>(&mut self, call: Call, rows: &[R]) {
        each!(Terminal, self, terminal => DrawCalls::committed(terminal, call, rows));
    }

    /// What the calls counted so far add up to.
    pub fn totals(&self) -> &Totals {
        each!(Terminal, self, terminal => DrawCalls::totals(terminal))
    }
}

#[cfg(test)]
mod tests;
