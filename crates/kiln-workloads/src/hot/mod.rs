//! The hot-record microbenchmark: all threads increment one row, or a few.
//!
//! It is what contention comes down to: a transaction of one read-modify-write on a record that
//! every transaction wants. How a protocol fares with it is decided by the memory system (how long
//! the record's cache lines take from core to core) and by what it does with a transaction that
//! cannot have the record now, which makes it the touchstone of the machine model.
//!
//! The audit is that no increment is lost.

mod terminal;

pub use terminal::Terminal;

use kiln_storage::types::{Decimal, Value};

use crate::audit::{ClosingCheck, Totals};
use crate::definition::{About, Definition, Procedure, ProcedureIndex, WorkloadOption};
use crate::options::{number, option, unknown};
use crate::population::RowSink;

/// The tables.
pub const SCHEMA_SQL: &str = include_str!("../../sql/hot/schema.sql");
/// How the tables are divided over partitions.
pub const PARTITIONS_SQL: &str = include_str!("../../sql/hot/partitions.sql");
/// The procedures.
pub const PROCEDURES_SQL: &str = include_str!("../../sql/hot/procedures.sql");
/// The queries that must return no rows.
pub const AUDIT_SQL: &str = include_str!("../../sql/hot/audit.sql");

/// The tables, in the order of the schema.
pub const TABLES: [&str; 1] = ["counters"];

/// Adds one to a counter.
pub const INCREMENT: ProcedureIndex = ProcedureIndex(0);

/// The only transaction.
pub const PROCEDURES: [Procedure; 1] = [Procedure::new("increment", &["integer"], 0)];

/// SQLSTATE of a counter that does not exist; no generated call meets it.
pub const NO_SUCH_COUNTER: &str = "HR001";

const ABOUT: About = About {
    name: "hot",
    description: "hot: increments of one row, or of a few",
    schema_sql: SCHEMA_SQL,
    partitions_sql: PARTITIONS_SQL,
    procedures_sql: PROCEDURES_SQL,
    audit_sql: AUDIT_SQL,
    tables: &TABLES,
    procedures: &PROCEDURES,
    expected_rejections: &[],
    unaudited: &[],
};

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Counters; calls choose among them uniformly.
    pub counters: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { counters: 1 }
    }
}

impl Definition for Config {
    type Terminal = Terminal;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options(&self) -> Vec<WorkloadOption> {
        // Without `..`: results have what is named here and nothing else of a configuration.
        let Config { counters } = *self;
        vec![option(
            "counters",
            counters,
            "Rows, among which increments choose uniformly.",
        )]
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "counters" => self.counters = number(option, value, 1, 1_000_000_000)?,
            _ => return Err(unknown("hot", option, &self.options())),
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), String> {
        Ok(())
    }

    /// The default is small enough.
    fn shrink(&mut self) {}

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

    fn closing_checks(&self, _seed: u64, totals: &Totals) -> Vec<ClosingCheck> {
        closing_checks(totals)
    }
}

/// Makes the population: every counter is 0.
pub fn populate(config: &Config, sink: &mut dyn RowSink) {
    sink.table(
        "counters",
        &["counter_id", "count"],
        u64::from(config.counters),
    );
    for counter in 1..=config.counters {
        sink.row(&[Value::Integer(counter as i32), Value::BigInt(0)]);
    }
}

/// No increment is lost: the counters add up to the committed calls.
pub fn closing_checks(totals: &Totals) -> Vec<ClosingCheck> {
    let committed = totals.committed.get(INCREMENT.0).copied().unwrap_or(0);
    vec![ClosingCheck {
        name: "increments",
        sql: "SELECT sum(count) FROM counters",
        expected: Decimal::new(i128::from(committed), 0).unwrap_or(Decimal::MAX),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArgumentValues;
    use crate::definition::DrawCalls;

    #[test]
    fn calls_choose_among_all_counters() {
        let config = Config { counters: 3 };
        let mut terminal = Terminal::new(&config, 7, 0);
        let mut arguments = ArgumentValues::default();
        let mut chosen = [0; 4];
        for _ in 0..3_000 {
            let call = terminal.next(&mut arguments);
            assert_eq!(call.procedure, INCREMENT);
            let [Value::BigInt(counter)] = arguments.values() else {
                panic!("one integer: {:?}", arguments.values());
            };
            chosen[*counter as usize] += 1;
            terminal.committed::<Vec<Value>>(call, &[]);
        }
        assert_eq!(chosen[0], 0);
        assert!(chosen[1..].iter().all(|&count| count > 800), "{chosen:?}");
        let checks = closing_checks(terminal.totals());
        assert_eq!(checks[0].expected, Decimal::new(3_000, 0).unwrap());
    }

    #[test]
    fn terminals_of_several_workers_differ() {
        let config = Config { counters: 1_000 };
        let draw = |worker| {
            let mut terminal = Terminal::new(&config, 7, worker);
            let mut arguments = ArgumentValues::default();
            let mut all = Vec::new();
            for _ in 0..10 {
                terminal.next(&mut arguments);
                all.extend(arguments.values().to_vec());
            }
            format!("{all:?}")
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }

    #[test]
    fn options_are_checked() {
        let mut config = Config::default();
        config.set("counters", "8").unwrap();
        assert_eq!(config.options()[0].value, "8");
        assert!(config.set("counters", "0").unwrap_err().contains("from 1"));
        assert!(
            config
                .set("rows", "1")
                .unwrap_err()
                .contains("it has counters")
        );
    }
}
