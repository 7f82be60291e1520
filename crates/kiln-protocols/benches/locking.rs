//! What locking costs a transaction in isolation: ten records locked exclusively and let go, on one
//! core (VLL, Fig. 16): `cargo bench -p kiln-protocols --bench locking [-- --quick]`.
//!
//! Nothing is planned and nothing is run. The records of a transaction are drawn from a table
//! larger than the caches, or from a small one. Figures are the least and the median of the rounds,
//! in nanoseconds a transaction. `--only NAME` runs one kind, for profilers that count
//! instructions.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::{Arguments, ProgramBuilder};
use kiln_protocols::schedule::vll::{CounterArray, Isolated, VllState};
use kiln_protocols::schedule::{orthrus, owned, vll_single};
use kiln_protocols::shared::core_slots::CoreSlots;
use kiln_protocols::shared::locks::counters::BesideRecords;
use kiln_protocols::shared::locks::deadlock::NoWait;
use kiln_protocols::shared::locks::{
    LockTable, LockWords, LockingState, Locks, QueuedLocks, Taken,
};
use kiln_protocols::shared::planning::{Claim, Findings};
use kiln_protocols::{Common, Outcome, Protocol, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::record::RecordRef;
use kiln_storage::schema::{Column, ColumnId, TableId, TableSchema};
use kiln_storage::table::{Part, Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

/// Records of a transaction.
const KEYS: usize = 10;

/// A table with so many rows, and its records.
fn records(rows: i64) -> (Arc<Table>, Vec<RecordRef>) {
    let schema = TableSchema {
        name: "item".to_owned(),
        columns: vec![Column {
            name: "id".to_owned(),
            data_type: DataType::BigInt,
            not_null: true,
            default: None,
            domain: None,
            generated: None,
        }],
        primary_key: vec![ColumnId(0)],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let table = Table::new(TableId(1), schema, 0, Vec::new()).expect("a table like others");
    let table = Arc::new(table);
    let mut b = ProgramBuilder::new("insert", [("id".to_owned(), DataType::BigInt)]);
    let items = b.table(&table);
    let id = b.parameter(0);
    b.insert(items, &[id], None, None);
    let program = Arc::new(b.finish());
    let epochs = Epochs::new(WORKERS_MAX);
    let participant = epochs.register().expect("a slot is free");
    let common = Arc::new(Common::new(Protocol::Serial));
    let mut worker = Worker::new(&common, participant, Random::from_seed(1));
    for id in 0..rows {
        let mut arguments = Arguments::from_values(&[Value::BigInt(id)]);
        arguments.bind(&program).expect("one number");
        let outcome = worker.call(&program, &arguments, None);
        assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
    }
    let mut records = Vec::new();
    table.indexes()[0].for_each(|record| records.push(record));
    (table, records)
}

/// The claims of some transactions, each record of one once.
fn transactions(records: &[RecordRef], count: usize) -> Vec<Vec<Claim>> {
    let mut random = Random::from_seed(7);
    let mut one = || {
        let mut drawn: Vec<RecordRef> = Vec::new();
        while drawn.len() < KEYS {
            let record = records[random.below(records.len())];
            if !drawn.contains(&record) {
                drawn.push(record);
            }
        }
        let claim = |record| Claim {
            record,
            exclusive: true,
            is_deferred: false,
            part: Part::default(),
            finding: Findings::NO_FINDING,
        };
        // As plans are.
        drawn.sort_unstable_by_key(|record| record.address());
        drawn.into_iter().map(claim).collect()
    };
    (0..count).map(|_| one()).collect()
}

/// Takes and lets go one by one.
fn one_by_one<L: Locks>(locks: &mut L, held: &mut Vec<L::Held>, claims: &[Claim]) {
    held.clear();
    for claim in claims {
        match locks.take(claim.record, claim.exclusive) {
            Ok(Taken::Now(one)) => held.push(one),
            _ => unreachable!("no other transaction is there"),
        }
    }
    for (claim, held) in claims.iter().zip(&*held) {
        locks.release(claim.record, *held, claim.exclusive);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let only = arguments.iter().position(|argument| argument == "--only");
    let only = only.and_then(|at| arguments.get(at + 1)).cloned();
    thread::pin_to_core(0);
    let (rounds, count) = if quick { (5, 500) } else { (41, 20_000) };
    println!("nanoseconds for {KEYS} records, least and median of {rounds} rounds");
    for rows in if quick {
        [100, 2_000]
    } else {
        [1_000, 1_000_000]
    } {
        let (_table, records) = records(rows);
        let transactions = transactions(&records, count);
        let measure = |name: &str, run: &mut dyn FnMut(&[Claim])| {
            if only.as_ref().is_some_and(|only| only != name) {
                return;
            }
            let mut times: Vec<f64> = (0..rounds)
                .map(|_| {
                    let begin = time::now_ns();
                    transactions.iter().for_each(|claims| run(claims));
                    (time::now_ns() - begin) as f64 / count as f64
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!(
                "{rows:>9} rows  {name:<14} {:>8.0} {:>8.0}",
                times[0],
                times[rounds / 2]
            );
        };
        let mut vll = Isolated::new(Arc::new(VllState::new(BesideRecords)));
        measure("vll", &mut |claims| assert!(vll.lock_and_release(claims)));
        let mut array = Isolated::new(Arc::new(VllState::new(CounterArray::default())));
        // Two records may share an element.
        measure("vll-arrayed", &mut |claims| {
            _ = array.lock_and_release(claims)
        });
        // As above.
        let mut single = owned::Isolated::<vll_single::CounterTable>::default();
        measure("vll-single", &mut |claims| {
            _ = single.lock_and_release(claims)
        });
        let mut owner = owned::Isolated::<orthrus::LockTable>::default();
        measure("orthrus", &mut |claims| {
            assert!(owner.lock_and_release(claims))
        });
        let (mut words, mut none) = (LockWords, Vec::new());
        // The counters of `vll` are 0 again, which is free in this kind too.
        measure("lock word", &mut |claims| {
            one_by_one(&mut words, &mut none, claims)
        });
        let shared = LockingState::new(CoreSlots::default());
        let table = LockTable::new(LockTable::BUCKETS);
        let mut queues = QueuedLocks::new(table, NoWait, shared.alarms.clone(), 0);
        let mut held = Vec::new();
        measure("lock table", &mut |claims| {
            one_by_one(&mut queues, &mut held, claims)
        });
    }
}
