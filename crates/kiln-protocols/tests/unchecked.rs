//! Without validation nothing fails: transactions that insert rows under one key, as TPC-C's
//! NewOrder does once an order number was read twice, all commit, and so do those that delete one
//! row, as two Deliveries do.

use kiln_platform::atomic::{AtomicBool, Ordering};
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_procedure::ir::*;
use kiln_procedure::{Arguments, Program, ProgramBuilder};
use kiln_protocols::{Common, Outcome, Protocol, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::schema::*;
use kiln_storage::slot::Heap;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

const DISTRICTS: usize = 2;
const CUSTOMERS: i32 = 5;
const LINES: i32 = 4;
const WORKERS: u64 = 4;
const CALLS: u64 = if cfg!(kiln_sim) { 200 } else { 10_000 };

const NEXT: ColumnId = ColumnId(1);
const NOTE: ColumnId = ColumnId(3);

fn table(
    id: u32,
    name: &str,
    columns: &[&str],
    key: u16,
    indexes: Vec<IndexDefinition>,
) -> Arc<Table> {
    let column = |name: &&str| Column {
        name: (*name).to_owned(),
        data_type: match *name {
            "note" => DataType::Text,
            _ => DataType::Integer,
        },
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: name.to_owned(),
        columns: columns.iter().map(column).collect(),
        primary_key: (0..key).map(ColumnId).collect(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    Arc::new(Table::new(TableId(id), schema, 0, indexes).expect("a table like others"))
}

/// A small TPC-C: districts that number their orders, orders with lines, and those still to be
/// delivered.
struct Tables {
    districts: Arc<Table>,
    orders: Arc<Table>,
    lines: Arc<Table>,
    new_orders: Arc<Table>,
}

impl Tables {
    fn new() -> Tables {
        let by_customer = IndexDefinition {
            name: "orders_customer".to_owned(),
            columns: [0, 2, 1].map(ColumnId).into(),
            unique: false,
            constraint: false,
            partial: false,
            nulls_equal: false,
            deferral: Default::default(),
            method: IndexMethod::BTree,
            kind: IndexKind::Ordered {
                partition_columns: 0,
            },
        };
        let order = ["district", "number", "customer", "note"];
        let line = ["district", "number", "line", "note"];
        Tables {
            districts: table(1, "districts", &["id", "next"], 1, Vec::new()),
            orders: table(2, "orders", &order, 2, vec![by_customer]),
            lines: table(3, "lines", &line, 3, Vec::new()),
            new_orders: table(4, "new_orders", &order[..2], 2, Vec::new()),
        }
    }

    fn all(&self) -> [&Arc<Table>; 4] {
        [&self.districts, &self.orders, &self.lines, &self.new_orders]
    }
}

fn integer(name: &str) -> (String, DataType) {
    (name.to_owned(), DataType::Integer)
}

fn number(b: &mut ProgramBuilder, value: i32) -> Reg {
    b.constant(DataType::Integer, Value::Integer(value))
}

fn open_district(tables: &Tables) -> Arc<Program> {
    let mut b = ProgramBuilder::new("open_district", [integer("id")]);
    let districts = b.table(&tables.districts);
    let values = [b.parameter(0), number(&mut b, 1)];
    b.insert(districts, &values, None, None);
    Arc::new(b.finish())
}

/// new_order(district, customer, note)
fn new_order(tables: &Tables) -> Arc<Program> {
    let note = ("note".to_owned(), DataType::Text);
    let mut b = ProgramBuilder::new(
        "new_order",
        [integer("district"), integer("customer"), note],
    );
    let [districts, orders, lines, new_orders] = tables.all().map(|table| b.table(table));
    let [district, customer, note] = [0, 1, 2].map(|position| b.parameter(position));
    let (row, _) = b.lookup(districts, 0, &[district], None);
    let order = b.read(districts, row, &[NEXT], None)[0];
    let (next, one) = (b.register(DataType::Integer), number(&mut b, 1));
    b.scalar(Instruction::Integer {
        op: Arithmetic::Add,
        width: Width::Four,
        target: next,
        left: order,
        right: one,
    });
    b.update(districts, row, &[(NEXT, next)], None);
    b.insert(orders, &[district, order, customer, note], None, None);
    b.insert(new_orders, &[district, order], None, None);
    for line in 0..LINES {
        let line = number(&mut b, line);
        b.insert(lines, &[district, order, line, note], None, None);
    }
    Arc::new(b.finish())
}

/// deliver(district, note): the oldest order goes on.
fn deliver(tables: &Tables) -> Arc<Program> {
    let note = ("note".to_owned(), DataType::Text);
    let mut b = ProgramBuilder::new("deliver", [integer("district"), note]);
    let [_, orders, _, new_orders] = tables.all().map(|table| b.table(table));
    let (district, note) = (b.parameter(0), b.parameter(1));
    let record = b.record();
    b.open();
    let order = b.read(new_orders, record, &[ColumnId(1)], None)[0];
    // By its key, as TPC-C does: another delivery may be about to take it out of the index.
    let (oldest, found) = b.lookup(new_orders, 0, &[district, order], None);
    b.open();
    b.delete(new_orders, oldest, None);
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    let (row, found) = b.lookup(orders, 0, &[district, order], None);
    b.open();
    b.update(orders, row, &[(NOTE, note)], None);
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    b.push(Step::Exit { depth: 0 });
    let body = b.close();
    let range = Range {
        prefix: [district].into(),
        ..Range::default()
    };
    b.scan(new_orders, 0, range, false, record, body, None);
    Arc::new(b.finish())
}

fn call(worker: &mut Worker, program: &Arc<Program>, values: &[Value]) {
    let outcome = worker.call(program, &arguments(program, values), None);
    assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
}

/// Every index has the same rows, each under the key that the row has.
fn check(table: &Table) {
    let (mut heap, mut rows) = (Heap::new(), 0);
    table.indexes()[0].for_each(|_| rows += 1);
    for index in table.indexes() {
        let mut entries = 0;
        index.for_each(|record| {
            entries += 1;
            let key = table.entry_key_of(index, table.row(record), &mut heap);
            let found = index.find_key(&key.expect("keys are short"));
            assert!(found.is_some_and(|entry| entry.record() == record));
        });
        assert_eq!(entries, rows, "{}", index.definition().name);
    }
}

fn run(protocol: Protocol) {
    let tables = Tables::new();
    let epochs = Epochs::new(WORKERS_MAX);
    let common = Arc::new(Common::new(protocol));
    let worker = |seed: u64| {
        let participant = epochs.register().expect("a slot is free");
        Worker::new(&common, participant, Random::from_seed(seed))
    };
    let mut first = worker(0);
    let opens = open_district(&tables);
    for district in 0..DISTRICTS as i32 {
        call(&mut first, &opens, &[Value::Integer(district)]);
    }
    let (orders, delivers) = (&new_order(&tables), &deliver(&tables));
    let done = &AtomicBool::new(false);
    let work = |mut worker: Worker, seed: u64| {
        let mut random = Random::from_seed(seed);
        for _ in 0..CALLS {
            let district = Value::Integer(random.below(DISTRICTS) as i32);
            // Some of these do not fit the row.
            let note = Value::Text("x".repeat(random.below(60)));
            match random.below(3) {
                0 => call(&mut worker, delivers, &[district, note]),
                _ => {
                    let customer = Value::Integer(random.below(CUSTOMERS as usize) as i32);
                    call(&mut worker, orders, &[district, customer, note]);
                }
            }
        }
        assert_eq!(worker.statistics().aborts_total(), 0, "{protocol}");
    };
    let (work, epochs) = (&work, &epochs);
    thread::scope(|scope| {
        let workers = (1..=WORKERS).map(|seed| (worker(seed), seed));
        let workers: Vec<_> = workers.collect();
        let handles = workers.into_iter();
        let handles: Vec<_> = handles
            .map(|(worker, seed)| scope.spawn(move || work(worker, seed)))
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                epochs.advance();
                thread::sleep(1_000_000);
            }
        });
        for handle in handles {
            let ended = handle.join();
            if ended.is_err() {
                done.store(true, Ordering::Relaxed);
            }
            ended.expect("no call fails");
        }
        done.store(true, Ordering::Relaxed);
    });
    tables.all().into_iter().for_each(|table| check(table));
    let kept = rows(&tables.orders);
    let orders = WORKERS * CALLS * 2 / 3;
    println!("{protocol}: {kept} rows of about {orders} orders");
    assert_eq!(rows(&tables.lines), kept * LINES as usize);
}

fn rows(table: &Table) -> usize {
    let mut rows = 0;
    table.indexes()[0].for_each(|_| rows += 1);
    rows
}

fn arguments(program: &Arc<Program>, values: &[Value]) -> Arguments {
    let mut arguments = Arguments::from_values(values);
    (arguments.bind(program)).expect("the arguments suit the program");
    arguments
}

/// Two transactions of the same program that are open at once: the one that began first commits
/// first or last.
fn meet(protocol: Protocol) {
    let tables = Tables::new();
    let epochs = Epochs::new(WORKERS_MAX);
    let common = Arc::new(Common::new(protocol));
    let workers = [1, 2].map(|seed| {
        let participant = epochs.register().expect("a slot is free");
        Worker::new(&common, participant, Random::from_seed(seed))
    });
    let [mut first, mut second] = workers;
    let (opens, orders, delivers) = (open_district(&tables), new_order(&tables), deliver(&tables));
    call(&mut first, &opens, &[Value::Integer(0)]);
    let note = |text: &str| Value::Text(text.to_owned());
    let order = |customer, text: &str| [Value::Integer(0), Value::Integer(customer), note(text)];
    let delivery = [Value::Integer(0), note("delivered")];
    for (round, first_commits_first) in [(1, true), (2, false)] {
        for (worker, customer) in [(&mut first, 1), (&mut second, 2)] {
            assert!(worker.begin());
            let values = arguments(&orders, &order(customer, "ordered"));
            (worker.run(&orders, &values)).expect("nothing is in its way");
        }
        let (one, other) = match first_commits_first {
            true => (&mut first, &mut second),
            false => (&mut second, &mut first),
        };
        one.commit().expect("nothing is validated");
        other.commit().expect("nothing is validated");
        assert_eq!(rows(&tables.orders), round, "{protocol}");
        assert_eq!(rows(&tables.lines), round * LINES as usize, "{protocol}");
    }
    for worker in [&mut first, &mut second] {
        assert!(worker.begin());
        let values = arguments(&delivers, &delivery);
        (worker.run(&delivers, &values)).expect("nothing is in its way");
    }
    second.commit().expect("nothing is validated");
    first.commit().expect("nothing is validated");
    assert_eq!(rows(&tables.new_orders), 1, "{protocol}");
    tables.all().into_iter().for_each(|table| check(table));
    for worker in [&mut first, &mut second] {
        assert_eq!(worker.statistics().aborts_total(), 0, "{protocol}");
    }
}

#[test]
fn transactions_that_meet_share_rows() {
    meet(Protocol::SiloUnchecked);
    meet(Protocol::OccUnchecked);
}

#[test]
fn nothing_aborts_or_is_rejected_without_validation() {
    run(Protocol::SiloUnchecked);
    run(Protocol::OccUnchecked);
}
