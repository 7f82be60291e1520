//! A transaction block that idles holds up who wants its rows, and no other call.

mod common;

use common::{ORDERED, SetOnDrop, index};
use kiln_engine::{
    Answer, Arguments, Asked, Caller, Configuration, Driver, Engine, Options, Outcome, Procedure,
    ProcedureHandle, Program, ProgramBuilder, Protocol, Request,
};
use kiln_platform::atomic::{AtomicBool, AtomicU64, Ordering};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_platform::{thread, time};
use kiln_procedure::ir::*;
use kiln_storage::schema::*;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

const ID: ColumnId = ColumnId(0);
const PLACE: ColumnId = ColumnId(1);
const COUNT: ColumnId = ColumnId(2);

/// Rows that are there, and the one that the block inserts.
const ROWS: i64 = 64;
/// The row that the block updates, moves or deletes.
const OLD: i64 = 7;
/// Where no row is until the block moves one there.
const ELSEWHERE: i64 = 1_000;

/// `item (id BIGINT PRIMARY KEY, place BIGINT NOT NULL, count BIGINT NOT NULL)`.
fn schema() -> TableSchema {
    let mut schema = common::account_schema("item");
    for (column, name) in schema.columns.iter_mut().zip(["id", "place", "count"]) {
        column.name = name.to_owned();
        column.data_type = DataType::BigInt;
    }
    schema
}

fn builder(name: &str, parameters: &[&str]) -> ProgramBuilder {
    let parameters = parameters.iter();
    ProgramBuilder::new(
        name,
        parameters.map(|name| ((*name).to_owned(), DataType::BigInt)),
    )
}

/// `touch(id)`: adds one to a row's count, if it is there.
fn touch(table: &Arc<Table>) -> Program {
    change("touch", table, |builder, reference, record| {
        let count = builder.read(reference, record, &[COUNT], None)[0];
        let one = builder.constant(DataType::BigInt, Value::BigInt(1));
        let target = builder.register(DataType::BigInt);
        builder.scalar(Instruction::Integer {
            op: Arithmetic::Add,
            width: Width::Eight,
            target,
            left: count,
            right: one,
        });
        builder.update(reference, record, &[(COUNT, target)], None);
    })
}

/// `put_elsewhere(id)`: moves a row.
fn put_elsewhere(table: &Arc<Table>) -> Program {
    change("put_elsewhere", table, |builder, reference, record| {
        let place = builder.constant(DataType::BigInt, Value::BigInt(ELSEWHERE));
        builder.update(reference, record, &[(PLACE, place)], None);
    })
}

/// `remove(id)`: deletes a row.
fn remove(table: &Arc<Table>) -> Program {
    change("remove", table, |builder, reference, record| {
        builder.delete(reference, record, None);
    })
}

/// A procedure that looks a row up by its parameter and does something with it if it is there.
fn change(
    name: &str,
    table: &Arc<Table>,
    body: impl FnOnce(&mut ProgramBuilder, TableRef, RecordReg),
) -> Program {
    let mut builder = builder(name, &["id"]);
    let id = builder.parameter(0);
    let reference = builder.table(table);
    let (record, found) = builder.lookup(reference, 0, &[id], None);
    builder.open();
    body(&mut builder, reference, record);
    let then = builder.close();
    builder.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    builder.finish()
}

/// `add(id)`: inserts a row.
fn add(table: &Arc<Table>) -> Program {
    let mut builder = builder("add", &["id"]);
    let id = builder.parameter(0);
    let reference = builder.table(table);
    let zero = builder.constant(DataType::BigInt, Value::BigInt(0));
    builder.insert(reference, &[id, id, zero], None, None);
    builder.finish()
}

/// `visit(place)`: reads the counts of all rows at a place.
fn visit(table: &Arc<Table>) -> Program {
    let mut builder = builder("visit", &["place"]);
    let place = builder.parameter(0);
    let reference = builder.table(table);
    let record = builder.record();
    builder.open();
    let count = builder.read(reference, record, &[COUNT], None)[0];
    builder.push(Step::Emit {
        row: [count].into(),
    });
    let body = builder.close();
    let range = Range {
        prefix: [place].into(),
        ..Range::default()
    };
    builder.scan(reference, 1, range, false, record, body, None);
    builder.returns(vec![("count".to_owned(), DataType::BigInt)]);
    builder.finish()
}

fn open(options: Options, partitioning: Option<Partitioning>) -> (Engine, Arc<Table>) {
    let engine = Engine::open(options).expect("the options make sense");
    let by_place = index("item_place", &[PLACE, ID], false, ORDERED);
    let change = engine.change_catalog(|change| {
        change.create_table(schema(), 0, vec![by_place.clone()])?;
        let table = change.partition_table("item", partitioning)?;
        for program in [touch(&table), visit(&table)] {
            change.create_procedure(Procedure::new(Arc::new(program)), false)?;
        }
        Ok(())
    });
    change.expect("the catalog is empty");
    let rows = (0..ROWS).map(|id| [id, id, 0].map(Value::BigInt));
    let report = engine.load("item", &["id", "place", "count"], rows);
    report.expect("the rows are good");
    let table = engine.table("item").expect("it was made");
    (engine, table)
}

/// What the block does before it idles, and the call that meets it.
struct Case {
    name: &'static str,
    statement: fn(&Arc<Table>) -> Program,
    id: i64,
    call: (&'static str, i64),
}

const CASES: [Case; 5] = [
    Case {
        name: "an inserted row",
        statement: add,
        id: ROWS,
        call: ("touch", ROWS),
    },
    Case {
        name: "an updated row",
        statement: touch,
        id: OLD,
        call: ("touch", OLD),
    },
    Case {
        name: "where a row moves to",
        statement: put_elsewhere,
        id: OLD,
        call: ("visit", ELSEWHERE),
    },
    Case {
        name: "where a row moves from",
        statement: put_elsewhere,
        id: OLD,
        call: ("visit", OLD),
    },
    Case {
        name: "a deleted row",
        statement: remove,
        id: OLD,
        call: ("touch", OLD),
    },
];

/// How calls come to the workers.
#[derive(Clone, Copy, Debug)]
enum Clients {
    /// So many threads call, and the database has so many workers. One more meets the block.
    Calls { threads: usize, workers: usize },
    /// So many drivers, and so many that meet the block.
    Drivers { others: usize, meeting: usize },
}

impl Clients {
    /// How long calls run before they are counted. Where many wait for core slots,
    /// until all that meet the block have had one.
    fn warm_up_ns(self) -> u64 {
        match self {
            Clients::Drivers { others: 8.., .. } => 150_000_000,
            _ => 30_000_000,
        }
    }
}

/// Other rows, of which each thread takes its own turns through a few that all want. Where blocks
/// lock partitions they are in another partition than the block's row, of two or four.
fn row(protocol: Protocol, thread: usize, turn: u64) -> i64 {
    let rows = match protocol {
        Protocol::Partitioned => [20, 24, 28, 32 + 4 * (thread as i64 % 8)],
        _ => [20, 21, 22, 30 + thread as i64 % 30],
    };
    rows[(turn % 4) as usize]
}

/// Makes calls until it is told to stop, with several in flight where the protocol has that.
struct Others<'a> {
    touch: &'a ProcedureHandle,
    protocol: Protocol,
    thread: usize,
    turn: u64,
    ended: &'a AtomicU64,
    done: &'a AtomicBool,
}

impl Caller for Others<'_> {
    fn next(&mut self, request: &mut Request) -> Asked<'_> {
        if self.is_over() {
            return Asked::Pause;
        }
        self.turn += 1;
        request.ticket = self.turn;
        request
            .arguments
            .push_i64(row(self.protocol, self.thread, self.turn));
        Asked::Call(self.touch)
    }

    fn is_over(&mut self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    fn ended(&mut self, _: u64, outcome: Outcome, _: &Answer<'_>) {
        assert!(matches!(outcome, Outcome::Committed));
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

fn one(value: i64) -> Arguments {
    let mut arguments = Arguments::new();
    arguments.push_i64(value);
    arguments
}

/// How long calls are counted.
const WINDOW_NS: u64 = 60_000_000;

/// Calls that end in a window, after a time to warm up.
fn count(ended: &AtomicU64, warm_up_ns: u64) -> u64 {
    thread::park_for(warm_up_ns);
    let (before, began) = (ended.load(Ordering::Relaxed), time::now_ns());
    while time::now_ns() - began < WINDOW_NS {
        thread::park_for(WINDOW_NS - (time::now_ns() - began).min(WINDOW_NS));
    }
    let calls = ended.load(Ordering::Relaxed) - before;
    // The window is longer where this thread gets no core.
    calls * WINDOW_NS / (time::now_ns() - began)
}

/// What was seen of one case.
#[derive(Debug)]
struct Seen {
    /// Calls of the others while the block idles, without the call that meets it and with it.
    without: u64,
    with: u64,
    /// From the end of the block to that of the call.
    ended_after_ns: u64,
}

fn watch(protocol: Configuration, clients: Clients, case: &Case) -> Seen {
    let workers = match clients {
        Clients::Calls { workers, .. } => workers,
        Clients::Drivers { .. } => 1,
    };
    let partitioning = match protocol.protocol {
        Protocol::Partitioned => Some(Partitioning::Column(ID)),
        _ => None,
    };
    let options = Options::new().workers(workers).protocol(protocol);
    let (engine, table) = open(options, partitioning);
    let kind = protocol.protocol;
    let handle = |name: &str| engine.procedure(name).expect("it is there");
    let (touch, meeting) = (handle("touch"), handle(case.call.0));
    let (ended, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let (met, block_ended_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    let drive = |thread: usize, driver: &mut Driver| {
        driver.drive(&mut Others {
            touch: &touch,
            protocol: kind,
            thread,
            turn: 0,
            ended: &ended,
            done: &done,
        });
    };
    let call = |thread: usize| {
        let mut turn = 0;
        while !done.load(Ordering::Acquire) {
            turn += 1;
            let reply = engine.call("touch", (row(kind, thread, turn),));
            assert!(reply.expect("it runs").is_committed());
            ended.fetch_add(1, Ordering::Relaxed);
        }
    };
    // A call that meets the block: when it has ended, the time since the block has.
    let meet = || {
        match clients {
            Clients::Calls { .. } => {
                let reply = engine.call(case.call.0, (case.call.1,));
                assert!(reply.expect("it runs").is_committed());
            }
            Clients::Drivers { .. } => {
                let mut driver = engine.driver(0).expect("there is a worker slot");
                let outcome = driver.call(&meeting, &mut one(case.call.1));
                assert!(matches!(outcome, Outcome::Committed));
            }
        }
        met.fetch_add(1, Ordering::Release);
        match block_ended_ns.load(Ordering::Acquire) {
            0 => 0,
            block_ended_ns => time::now_ns() - block_ended_ns,
        }
    };
    thread::scope(|scope| {
        let _stop = SetOnDrop(&done);
        let mut session = engine.session().expect("there is a worker slot");
        session.begin().expect("no block is open");
        let statement = Arc::new((case.statement)(&table));
        (session.run(&statement, &mut one(case.id))).expect("no transaction has the row");
        match clients {
            Clients::Calls { threads, .. } => {
                for thread in 0..threads {
                    scope.spawn(move || call(thread));
                }
            }
            Clients::Drivers { others, .. } => {
                for thread in 0..others {
                    let mut driver = engine.driver(thread).expect("there is a worker slot");
                    scope.spawn(move || drive(thread, &mut driver));
                }
            }
        }
        let without = count(&ended, clients.warm_up_ns());
        let meeting = match clients {
            Clients::Calls { .. } => 1,
            Clients::Drivers { meeting, .. } => meeting,
        };
        let meetings: Vec<_> = (0..meeting).map(|_| scope.spawn(meet)).collect();
        let with = count(&ended, clients.warm_up_ns());
        block_ended_ns.store(time::now_ns(), Ordering::Release);
        // Optimistic protocols may have let the call overtake it.
        let _ = session.commit();
        let patience = time::now_ns() + 5_000_000_000;
        let all_ended = || met.load(Ordering::Acquire) == meeting as u64;
        while !all_ended() && time::now_ns() < patience {
            thread::park_for(1_000_000);
        }
        assert!(
            all_ended(),
            "{protocol}, {clients:?}, {}: the call waits on when the block has ended",
            case.name
        );
        let ends = meetings.into_iter();
        let ends = ends.map(|meeting| meeting.join().expect("it has ended"));
        let ended_after_ns = ends.max().expect("there is one");
        Seen {
            without,
            with,
            ended_after_ns,
        }
    })
}

/// One at a time: they measure.
static MEASURES: Mutex<()> = Mutex::new(());

/// The cores may belong to other programs for a while, so a case is watched so often before it is a
/// failure.
const TRIALS: u32 = 4;

/// So soon a call goes on that has waited for a block. Where many wait for core slots each has one
/// in a tenth of a second.
const ENDS_WITHIN_NS: u64 = 600_000_000;

fn others_go_on(
    protocols: impl Iterator<Item = Configuration>,
    clients: Clients,
    one_part_in: u64,
) {
    others_go_on_in(protocols, clients, one_part_in, &CASES);
}

/// Checks under these protocols that the others get at least one part in so many of what they get
/// without the call that meets the block, and that this one goes on when the block has ended.
fn others_go_on_in(
    protocols: impl Iterator<Item = Configuration>,
    clients: Clients,
    one_part_in: u64,
    cases: &[Case],
) {
    let _alone = lock(&MEASURES);
    let mut failures = Vec::new();
    for protocol in protocols {
        for case in cases {
            let mut trials = Vec::new();
            let goes_on = (0..TRIALS).any(|_| {
                let seen = watch(protocol, clients, case);
                println!("{protocol}, {clients:?}, {}: {seen:?}", case.name);
                let goes_on = seen.with * one_part_in >= seen.without.max(1)
                    && seen.ended_after_ns < ENDS_WITHIN_NS;
                trials.push(seen);
                goes_on
            });
            if !goes_on {
                failures.push(format!("{protocol}, {}: {trials:?}", case.name));
            }
        }
    }
    let all = failures.join("\n");
    assert!(failures.is_empty(), "{clients:?}:\n{all}");
}

/// The protocols under which a block locks rows, and not all of a partition, nor all there are.
fn with_locks_of_rows() -> impl Iterator<Item = Configuration> {
    let is_coarse = |protocol| matches!(protocol, Protocol::Serial | Protocol::Partitioned);
    Configuration::serializable().filter(move |it| !is_coarse(it.protocol))
}

/// Whether a protocol is as its name alone says: options change how it commits, not what it locks.
fn is_plain(configuration: &Configuration) -> bool {
    *configuration == Configuration::from(configuration.protocol)
}

/// The protocols whose workers have several calls in flight.
const SEVERAL_IN_FLIGHT: [Protocol; 12] = [
    Protocol::Vll,
    Protocol::VllSca,
    Protocol::VllArrayed,
    Protocol::Vllr,
    Protocol::VllrSca,
    Protocol::RangeMap,
    Protocol::RangeHierarchical,
    Protocol::VllSingle,
    Protocol::Dora,
    Protocol::Strife,
    Protocol::Orthrus,
    Protocol::OrthrusShared,
];

/// Under other protocols those calls wait that come to the worker of the one that meets the block.
/// Between two calls threads sleep, or do not come to that, which makes a difference of seven.
#[test]
fn calls_on_two_workers_go_on() {
    let clients = Clients::Calls {
        threads: 2,
        workers: 2,
    };
    let protocols = with_locks_of_rows().filter(is_plain);
    let protocols = protocols.filter(|it| SEVERAL_IN_FLIGHT.contains(&it.protocol));
    others_go_on(protocols, clients, 14);
}

const TWO: Clients = Clients::Drivers {
    others: 2,
    meeting: 1,
};

#[test]
fn two_drivers_go_on() {
    others_go_on(kinds_of_locks(), TWO, 3);
}

/// Many more drivers than cores, several of which want the block's row.
const CROWD: Clients = Clients::Drivers {
    others: 54,
    meeting: 8,
};

/// One protocol of each kind of lock, of queue and of scheduler; tests that are ignored have them
/// all.
const KINDS_OF_LOCKS: [Protocol; 12] = [
    Protocol::Silo,
    Protocol::TwoPhaseLockingWaitDie,
    Protocol::TwoPhaseLockingDreadlocks,
    Protocol::LockSorted,
    Protocol::LockAtomic,
    Protocol::Vll,
    Protocol::Vllr,
    Protocol::VllSingle,
    Protocol::Strife,
    Protocol::Orthrus,
    Protocol::OrthrusShared,
    Protocol::Dora,
];

fn kinds_of_locks() -> impl Iterator<Item = Configuration> {
    let protocols = with_locks_of_rows().filter(is_plain);
    protocols.filter(|it| KINDS_OF_LOCKS.contains(&it.protocol))
}

#[test]
fn many_drivers_go_on_that_wait_for_their_core_slots() {
    others_go_on(kinds_of_locks(), CROWD, 2);
}

/// Of the cases those that look for rows by the columns that divide them.
#[test]
fn many_drivers_of_other_partitions_go_on() {
    let protocols = std::iter::once(Configuration::from(Protocol::Partitioned));
    others_go_on_in(protocols, CROWD, 2, &CASES[..2]);
}

#[test]
#[ignore = "takes a minute: run it with --ignored after changes to turns, locks or schedulers"]
fn two_drivers_go_on_under_all_protocols() {
    others_go_on(with_locks_of_rows().filter(is_plain), TWO, 3);
}

#[test]
#[ignore = "takes two minutes: run it with --ignored after changes to turns, locks or schedulers"]
fn many_drivers_go_on_under_all_protocols() {
    others_go_on(with_locks_of_rows(), CROWD, 2);
}

/// Makes so many calls, of which every other one meets the block, and counts how they have ended by
/// their tickets.
struct Meeting<'a> {
    touch: &'a ProcedureHandle,
    ended: Vec<u32>,
    asked: usize,
}

impl Caller for Meeting<'_> {
    fn next(&mut self, request: &mut Request) -> Asked<'_> {
        if self.is_over() {
            return Asked::Pause;
        }
        request.ticket = self.asked as u64;
        self.asked += 1;
        let id = [OLD, 20][self.asked % 2];
        request.arguments.push_i64(id);
        Asked::Call(self.touch)
    }

    fn is_over(&mut self) -> bool {
        self.asked == self.ended.len()
    }

    fn ended(&mut self, ticket: u64, outcome: Outcome, _: &Answer<'_>) {
        assert!(matches!(outcome, Outcome::Committed));
        self.ended[ticket as usize] += 1;
    }
}

/// A worker with several calls in flight hands those back that wait, others stand aside; each is
/// run once in the end.
#[test]
fn changes_go_on_while_calls_in_flight_wait_for_a_block() {
    const CALLS: usize = 40;
    let beside_blocks = |it: &Configuration| it.protocol != Protocol::Serial;
    for protocol in Configuration::serializable().filter(beside_blocks) {
        let (engine, table) = open(Options::new().workers(1).protocol(protocol), None);
        let touch = engine.procedure("touch").expect("it is there");
        let mut session = engine.session().expect("there is a worker slot");
        session.begin().expect("no block is open");
        let statement = Arc::new(self::touch(&table));
        (session.run(&statement, &mut one(OLD))).expect("no transaction has the row");
        let is_committed = thread::scope(|scope| {
            let drivers: Vec<_> = (0..3)
                .map(|position| {
                    let mut driver = engine.driver(position).expect("there is a worker slot");
                    let touch = &touch;
                    scope.spawn(move || {
                        let mut meeting = Meeting {
                            touch,
                            ended: vec![0; CALLS],
                            asked: 0,
                        };
                        driver.drive(&mut meeting);
                        assert_eq!(meeting.ended, [1; CALLS], "{protocol}");
                    })
                })
                .collect();
            thread::park_for(20_000_000);
            for name in ["first", "second"] {
                let change = engine.change_catalog(|change| {
                    change.create_table(common::account_schema(name), 0, vec![])
                });
                change.unwrap_or_else(|error| panic!("{protocol}: {error}"));
                thread::park_for(5_000_000);
            }
            let is_committed = session.commit().is_ok();
            for driver in drivers {
                driver.join().expect("no panic");
            }
            is_committed
        });
        for (id, by_block) in [(OLD, u64::from(is_committed)), (20, 0)] {
            let reply = engine.call("visit", (id,)).expect("it runs");
            let count = reply.rows().expect("it commits").values()[0][0].clone();
            let expected = (3 * CALLS / 2) as u64 + by_block;
            assert_eq!(count, Value::BigInt(expected as i64), "{protocol}: {id}");
        }
    }
}
