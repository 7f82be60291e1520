//! One reader for seconds, and writers all the time, under `mvcc`: the reader sees the same state
//! to its end and commits at its first attempt, and memory does not grow with what is written
//! meanwhile.
//!
//! ```text
//! KILN_SECONDS=60 cargo test --release -p kiln-protocols --test long_reader -- --nocapture
//! ```

// Against the clock, on real threads.
#![cfg(not(kiln_sim))]

use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::{thread, time};
use kiln_procedure::ir::*;
use kiln_procedure::{Arguments, Program, ProgramBuilder};
use kiln_protocols::{Common, Outcome, Protocol, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::schema::*;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

const ROWS: i64 = 64;
const ID: ColumnId = ColumnId(0);
const BALANCE: ColumnId = ColumnId(1);
const VISITS: ColumnId = ColumnId(2);
const NOTE: ColumnId = ColumnId(3);

/// Of the versions written while the reader runs, at most this share may be there at a time: those
/// that wait for their epoch, which takes as long as a thread may be off its core.
const SHARE_MAX: (u64, u64) = (2, 5);

fn table() -> Arc<Table> {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: "account".to_owned(),
        columns: vec![
            column("id", DataType::Integer),
            column("balance", DataType::BigInt),
            column("visits", DataType::BigInt),
            column("note", DataType::Text),
        ],
        primary_key: vec![ID],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    Arc::new(Table::new(TableId(1), schema, 0, Vec::new()).expect("a table like others"))
}

fn integer(name: &str) -> (String, DataType) {
    (name.to_owned(), DataType::Integer)
}

fn arithmetic(b: &mut ProgramBuilder, op: Arithmetic, left: Reg, right: Reg) -> Reg {
    let target = b.register(DataType::BigInt);
    b.scalar(Instruction::Integer {
        op,
        width: Width::Eight,
        target,
        left,
        right,
    });
    target
}

/// Opens an account without money.
fn open(table: &Arc<Table>) -> Arc<Program> {
    let mut b = ProgramBuilder::new("open", [integer("id")]);
    let accounts = b.table(table);
    let zero = b.constant(DataType::BigInt, Value::BigInt(0));
    let note = b.constant(DataType::Text, Value::Text("opened".to_owned()));
    let id = b.parameter(0);
    b.insert(accounts, &[id, zero, zero, note], None, None);
    Arc::new(b.finish())
}

/// Moves one unit of money, and leaves a note that does not fit the row.
fn transfer(table: &Arc<Table>) -> Arc<Program> {
    let parameters = [
        integer("from"),
        integer("to"),
        ("note".to_owned(), DataType::Text),
    ];
    let mut b = ProgramBuilder::new("transfer", parameters);
    let accounts = b.table(table);
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    for (account, op) in [(0, Arithmetic::Subtract), (1, Arithmetic::Add)] {
        let (row, found) = b.lookup(accounts, 0, &[b.parameter(account)], None);
        b.open();
        let balance = b.read(accounts, row, &[BALANCE], None)[0];
        let balance = arithmetic(&mut b, op, balance, one);
        let note = b.parameter(2);
        b.update(accounts, row, &[(BALANCE, balance), (NOTE, note)], None);
        let then = b.close();
        b.push(Step::If {
            condition: found,
            then,
            otherwise: Vec::new(),
        });
    }
    Arc::new(b.finish())
}

/// Counts a visit: writes one column, which the other writer leaves alone.
fn visit(table: &Arc<Table>) -> Arc<Program> {
    let mut b = ProgramBuilder::new("visit", [integer("id")]);
    let accounts = b.table(table);
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    let (row, found) = b.lookup(accounts, 0, &[b.parameter(0)], None);
    b.open();
    let visits = b.read(accounts, row, &[VISITS], None)[0];
    let visits = arithmetic(&mut b, Arithmetic::Add, visits, one);
    b.update(accounts, row, &[(VISITS, visits)], None);
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    Arc::new(b.finish())
}

/// Adds everything up, again and again; emits the sums whenever they are others than before.
fn watch(table: &Arc<Table>) -> Arc<Program> {
    let mut b = ProgramBuilder::new("watch", [("turns".to_owned(), DataType::BigInt)]);
    let accounts = b.table(table);
    let zero = b.constant(DataType::BigInt, Value::BigInt(0));
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    let never = b.constant(DataType::BigInt, Value::BigInt(-1));
    let [variable, money, visits, former] = [(); 4].map(|()| b.register(DataType::BigInt));
    let copy = |b: &mut ProgramBuilder, target: Reg, source: Reg| {
        b.scalar(Instruction::Move { target, source });
    };
    copy(&mut b, former, never);
    b.open();
    copy(&mut b, money, zero);
    copy(&mut b, visits, zero);
    let row = b.record();
    b.open();
    let columns = b.read(accounts, row, &[BALANCE, VISITS, NOTE], None);
    let sum = arithmetic(&mut b, Arithmetic::Add, money, columns[0]);
    copy(&mut b, money, sum);
    let sum = arithmetic(&mut b, Arithmetic::Add, visits, columns[1]);
    copy(&mut b, visits, sum);
    let body = b.close();
    b.scan(accounts, 0, Range::default(), false, row, body, None);
    let same = b.register(DataType::Boolean);
    b.scalar(Instruction::Compare {
        op: Comparison::Equal,
        class: Class::Integer,
        target: same,
        left: visits,
        right: former,
    });
    b.open();
    let emitted = [money, visits].into();
    b.push(Step::Emit { row: emitted });
    copy(&mut b, former, visits);
    let otherwise = b.close();
    b.push(Step::If {
        condition: same,
        then: Vec::new(),
        otherwise,
    });
    let body = b.close();
    b.push(Step::ForRange {
        variable,
        first: one,
        last: b.parameter(0),
        step: one,
        reverse: false,
        body,
    });
    let columns = ["money", "visits"];
    b.returns(
        columns
            .map(|name| (name.to_owned(), DataType::BigInt))
            .into(),
    );
    Arc::new(b.finish())
}

fn call(worker: &mut Worker, program: &Arc<Program>, values: &[Value]) {
    let mut arguments = Arguments::from_values(values);
    arguments
        .bind(program)
        .expect("the arguments suit the program");
    let outcome = worker.call(program, &arguments, None);
    assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
}

#[test]
fn memory_is_bounded_under_a_long_reader() {
    let seconds = std::env::var("KILN_SECONDS").map_or(2, |seconds| {
        seconds.parse().expect("KILN_SECONDS is a number")
    });
    let table = table();
    let epochs = Epochs::new(WORKERS_MAX);
    let common = Arc::new(Common::new(Protocol::Mvcc));
    let worker = |seed: u64| {
        let participant = epochs.register().expect("a slot is free");
        Worker::new(&common, participant, Random::from_seed(seed))
    };
    let mut reader = worker(0);
    let open = open(&table);
    for id in 0..ROWS {
        call(&mut reader, &open, &[Value::Integer(id as i32)]);
    }
    let (transfer, visit, watch) = (transfer(&table), visit(&table), watch(&table));
    assert!(watch.analysis.is_read_only());
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let write = |mut worker: Worker, seed: u64| {
        let mut random = Random::from_seed(seed);
        while !done.load(Ordering::Relaxed) {
            let mut id = || Value::Integer(random.below(ROWS as usize) as i32);
            let (from, to) = (id(), id());
            call(&mut worker, &visit, std::slice::from_ref(&from));
            let note = Value::Text("x".repeat(100));
            call(&mut worker, &transfer, &[from, to, note]);
            written.fetch_add(2, Ordering::Relaxed);
        }
    };
    let (write, done, epochs) = (&write, &done, &epochs);
    thread::scope(|scope| {
        let writers: Vec<_> = (1..3).map(worker).collect();
        for (writer, seed) in writers.into_iter().zip(1..) {
            scope.spawn(move || write(writer, seed));
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                epochs.advance();
                thread::sleep(2_000_000);
            }
        });
        // How long do some turns take?
        let (mut turns, mut took_ns) = (200_u64, 0);
        while took_ns < 200_000_000 {
            turns *= 2;
            let begun = time::now_ns();
            call(&mut reader, &watch, &[Value::BigInt(turns as i64)]);
            took_ns = time::now_ns() - begun;
        }
        let turns = turns * seconds * 1_000_000_000 / took_ns;
        let (begun, before) = (time::now_ns(), written.load(Ordering::Relaxed));
        let watched = AtomicBool::new(false);
        let most = thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut most = 0;
                while !watched.load(Ordering::Relaxed) {
                    most = most.max(common.versions().count);
                    thread::sleep(10_000_000);
                }
                most as u64
            });
            call(&mut reader, &watch, &[Value::BigInt(turns as i64)]);
            watched.store(true, Ordering::Relaxed);
            looking.join().expect("nothing fails")
        });
        let rows = reader.frame().result_values(&watch);
        let took_ms = (time::now_ns() - begun) / 1_000_000;
        let meanwhile = written.load(Ordering::Relaxed) - before;
        done.store(true, Ordering::Relaxed);
        let versions = meanwhile / 2 * 3;
        println!(
            "{turns} turns in {took_ms} ms; {versions} versions written meanwhile, at most {most} there at \
             a time; {} KiB of memory for them",
            common.versions().bytes >> 10
        );
        assert_eq!(rows.len(), 1, "the reader saw one state: {rows:?}");
        assert_eq!(
            rows[0][0],
            Value::BigInt(0),
            "money is neither made nor lost"
        );
        assert_eq!(reader.statistics().aborts_total(), 0);
        assert!(meanwhile > 1_000, "the writers got through: {meanwhile}");
        assert!(
            most * SHARE_MAX.1 < versions * SHARE_MAX.0,
            "{most} of {versions} versions at a time"
        );
    });
    // With the reader gone, nothing is left but the rows.
    let maintenance = epochs.register().expect("a slot is free");
    drop(reader);
    common.settle(&maintenance);
    for _ in 0..3 {
        epochs.advance();
    }
    maintenance.collect(usize::MAX);
    assert_eq!(common.versions().count, 0);
}
