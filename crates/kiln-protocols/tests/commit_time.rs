//! Updates deferred to the commit do what they would have done where they stand.
//!
//! One worker runs the same random programs under `serial` and under protocols with their options.
//! What each call returns or raises, and the rows behind it, must be equal: the worker is alone, so
//! that nothing but our own order of doing things can make a difference.

#![cfg(feature = "history")]

#[allow(dead_code, reason = "trials are for other tests")]
mod judged;

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::{Arguments, Program};
use kiln_protocols::access::silo::Silo;
use kiln_protocols::direct::Direct;
use kiln_protocols::{Common, Configuration, Outcome, Protocol, ProtocolOption, Worker};
use kiln_storage::epoch::{Epochs, Participant};
use kiln_storage::slot::Heap;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::Value;

use judged::{Extras, ID, OPERATIONS_MAX};

/// A table and a worker of a protocol.
struct Side {
    table: Arc<Table>,
    programs: Vec<Arc<Program>>,
    worker: Worker,
    /// What calls go to instead, under `silo`: an access that uses the options though no worker
    /// disturbs it.
    careful: Option<Direct<Silo>>,
    common: Arc<Common>,
    maintenance: Participant,
}

const PROGRAMS: usize = 60;
const KEYS: usize = 5;

impl Side {
    fn new(configuration: &str, seed: u64) -> Side {
        let configuration: Configuration = configuration.parse().expect("a protocol");
        let table = judged::table();
        table.split_by([ID].into_iter().collect());
        let extras = Extras {
            loops: true,
            texts: true,
            deletions: true,
            primary_keys: true,
            through_keys: seed.is_multiple_of(2),
            chains: false,
            mix: judged::Mix::Everything,
        };
        let mut random = Random::from_seed(seed);
        let programs = (0..PROGRAMS)
            .map(|number| Arc::new(judged::program(&table, number, extras, &mut random)))
            .collect();
        let epochs = Epochs::new(WORKERS_MAX);
        let participant = epochs.register().expect("a slot is free");
        let common = Arc::new(Common::new(configuration));
        let mut worker = Worker::new(&common, participant, Random::from_seed(seed));
        let careful = (configuration.protocol == Protocol::Silo).then(|| {
            let mut silo = Silo::new(epochs.register().expect("a slot is free"));
            silo.defers = configuration.has(ProtocolOption::CommitTimeUpdates);
            silo.splits = configuration.has(ProtocolOption::TimestampSplitting);
            silo.uses_split = silo.defers || silo.splits;
            Direct::new(silo, Random::from_seed(seed))
        });
        judged::populate(&table, &mut worker, KEYS, 2);
        Side {
            table,
            programs,
            worker,
            careful,
            common,
            maintenance: epochs.register().expect("a slot is free"),
        }
    }

    fn call(&mut self, program: usize, values: &[Value]) -> String {
        let program = &self.programs[program];
        let mut arguments = Arguments::from_values(values);
        arguments.bind(program).expect("they suit the program");
        let (outcome, frame) = match &mut self.careful {
            Some(careful) => {
                let outcome = careful.call(program, &arguments, None, None, None);
                (outcome.expect("it has all the time"), careful.frame())
            }
            None => {
                let outcome = self.worker.call(program, &arguments, None);
                (outcome, self.worker.frame())
            }
        };
        match outcome {
            Outcome::Committed => format!("{:?}", frame.result_values(program)),
            outcome => format!("{outcome:?}"),
        }
    }

    fn rows(&self) -> Vec<String> {
        // Rows may be behind their newest versions.
        self.common.settle(&self.maintenance);
        let mut rows = Vec::new();
        self.table.indexes()[0].for_each(|record| {
            let mut heap = Heap::new();
            let row = self.table.row(record);
            let columns = self.table.schema().columns.iter().zip(0_u16..);
            let values: Vec<String> = columns
                .map(|(column, at)| {
                    let column_id = kiln_storage::schema::ColumnId(at);
                    let slot = self.table.column_value(column_id, row, &mut heap);
                    match column.data_type {
                        kiln_storage::types::DataType::Text => heap.str(slot).to_owned(),
                        _ => slot.as_i64().to_string(),
                    }
                })
                .collect();
            rows.push(values.join(" "));
        });
        rows
    }
}

#[test]
fn one_worker_sees_no_difference() {
    let mut rejected = 0;
    for configuration in [
        "silo",
        "silo+cu",
        "silo+ts",
        "silo+cu+ts",
        "occ+cu",
        "tictoc+cu",
        "tictoc+ts",
        "tictoc+cu+ts",
        "mvcc+cu",
        "mvcc+ts",
        "mvcc+cu+ts",
    ] {
        for seed in 0..40 {
            let mut plain = Side::new("serial", seed);
            let mut other = Side::new(configuration, seed);
            let deferrable: usize = (other.programs.iter())
                .map(|program| program.analysis.deferrable().len())
                .sum();
            assert!(deferrable > 0, "some updates can be deferred to the commit");
            let mut random = Random::from_seed(seed + 1_000);
            for round in 0..400 {
                let program = random.below(PROGRAMS);
                let mut values = Vec::new();
                for _ in 0..OPERATIONS_MAX {
                    values.push(Value::Integer(random.below(KEYS) as i32));
                    values.push(Value::BigInt(random.between(1, 1 << 40)));
                    values.push(Value::Integer(random.below(KEYS * 2) as i32));
                }
                let letter = char::from(b'a' + random.below(26) as u8);
                values.push(Value::Text(letter.to_string().repeat(random.below(80))));
                let keys = 0..random.below(4);
                let keys = keys.map(|_| Value::Integer(random.below(KEYS) as i32));
                values.push(Value::Array(keys.collect()));
                let expected = plain.call(program, &values);
                let actual = other.call(program, &values);
                let place = format!("{configuration}, seed {seed}, round {round}");
                assert_eq!(
                    actual, expected,
                    "{place}: {:#?}",
                    plain.programs[program].body
                );
                assert_eq!(other.rows(), plain.rows(), "{place}");
                rejected += usize::from(expected.contains("below zero"));
            }
        }
    }
    assert!(rejected > 100, "updaters raised: {rejected}");
}
