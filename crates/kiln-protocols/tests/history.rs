//! What one worker's history says is replayed on a model: as it is alone, every read must see what
//! was installed last, every range exactly the entries that are there, and the versions of a cell
//! only grow, over all the rows that it ever holds.

#![cfg(feature = "history")]

use std::collections::{BTreeMap, BTreeSet};

use kiln_history::{
    Cell, EntryChange, Event, IndexId, LogReader, Moment, Object, Version, WriteKind,
};
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_procedure::{Arguments, Program, ProgramBuilder};
use kiln_protocols::{
    Common, Configuration, Observation, Outcome, Protocol, ProtocolOption, Worker,
};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::SqlState;
use kiln_storage::schema::*;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Decimal, Value};

const ID: ColumnId = ColumnId(0);
const CODE: ColumnId = ColumnId(1);
const AMOUNT: ColumnId = ColumnId(2);
const NOTE: ColumnId = ColumnId(3);
const KEYS: usize = 12;

fn table() -> Arc<Table> {
    let column = |name: &str, data_type: DataType, not_null| Column {
        name: name.to_owned(),
        data_type,
        not_null,
        default: None,
        domain: None,
        generated: None,
    };
    let amount = DataType::Numeric {
        precision_scale: None,
    };
    let schema = TableSchema {
        name: "item".to_owned(),
        columns: vec![
            column("id", DataType::Integer, true),
            column("code", DataType::VarChar(Some(100)), true),
            column("amount", amount, true),
            column("note", DataType::Char(5), false),
        ],
        primary_key: vec![ID],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    };
    let ordered = IndexKind::Ordered {
        partition_columns: 0,
    };
    let index = |name: &str, columns, unique, kind| IndexDefinition {
        name: name.to_owned(),
        columns,
        unique,
        constraint: false,
        partial: false,
        nulls_equal: false,
        deferral: Default::default(),
        method: IndexMethod::BTree,
        kind,
    };
    let indexes = vec![
        index("item_code", vec![CODE], true, ordered),
        index("item_amount", vec![AMOUNT], false, ordered),
        index("item_hash", vec![ID], true, IndexKind::Hash),
    ];
    Arc::new(Table::new(TableId(7), schema, 0, indexes).expect("a table like others"))
}

/// Raises P0002 unless `condition`.
fn require(builder: &mut ProgramBuilder, condition: Reg) {
    builder.scalar(Instruction::Require {
        condition,
        null_fails: true,
        error: Box::new(Failure {
            state: SqlState::NO_DATA_FOUND,
            message: "no such item".to_owned(),
            arguments: [].into(),
            detail: None,
            hint: None,
            subject: None,
            position: None,
        }),
    });
}

/// Emits a row, so that the optimiser keeps the reading of it.
fn emit(builder: &mut ProgramBuilder, row: Vec<Reg>) {
    let columns = row.iter().map(|column| {
        let data_type = builder.type_of(*column).clone();
        (String::from("column"), data_type)
    });
    let columns = columns.collect();
    builder.returns(columns);
    builder.push(Step::Emit { row: row.into() });
}

struct Programs {
    get: Arc<Program>,
    find: Arc<Program>,
    set: Arc<Program>,
    rename: Arc<Program>,
    insert: Arc<Program>,
    replace: Arc<Program>,
    succeed: Arc<Program>,
    delete: Arc<Program>,
    scan: Arc<Program>,
    first: Arc<Program>,
}

fn programs(table: &Arc<Table>) -> Programs {
    let column = |column: ColumnId| {
        let column = &table.schema().columns[column.index()];
        (column.name.clone(), column.data_type.clone())
    };
    let mut b = ProgramBuilder::new("get", [column(ID)]);
    let items = b.table(table);
    let (item, found) = b.lookup(items, 3, &[b.parameter(0)], None);
    require(&mut b, found);
    let row = b.read(items, item, &[CODE, AMOUNT, NOTE], None);
    emit(&mut b, row);
    let get = Arc::new(b.finish());

    let mut b = ProgramBuilder::new("find", [column(CODE)]);
    let items = b.table(table);
    let (item, found) = b.lookup(items, 1, &[b.parameter(0)], None);
    require(&mut b, found);
    let row = b.read(items, item, &[ID, NOTE], None);
    emit(&mut b, row);
    let find = Arc::new(b.finish());

    // Reads what it wrote, and writes twice.
    let mut b = ProgramBuilder::new("set", [column(ID), column(AMOUNT), column(NOTE)]);
    let items = b.table(table);
    let (item, found) = b.lookup(items, 0, &[b.parameter(0)], None);
    require(&mut b, found);
    b.update(items, item, &[(AMOUNT, b.parameter(1))], None);
    let row = b.read(items, item, &[AMOUNT, NOTE], None);
    emit(&mut b, row);
    b.update(items, item, &[(NOTE, b.parameter(2))], None);
    let set = Arc::new(b.finish());

    let mut b = ProgramBuilder::new("rename", [column(ID), column(CODE)]);
    let items = b.table(table);
    let (item, found) = b.lookup(items, 0, &[b.parameter(0)], None);
    require(&mut b, found);
    b.update(items, item, &[(CODE, b.parameter(1))], None);
    let rename = Arc::new(b.finish());

    let all = || [column(ID), column(CODE), column(AMOUNT), column(NOTE)];
    let mut b = ProgramBuilder::new("insert", all());
    let items = b.table(table);
    let values: Vec<Reg> = (0..4).map(|at| b.parameter(at)).collect();
    b.insert(items, &values, None, None);
    let insert = Arc::new(b.finish());

    // Deletes and inserts again, with a look at the gap between.
    let mut b = ProgramBuilder::new("replace", all());
    let items = b.table(table);
    let (item, found) = b.lookup(items, 0, &[b.parameter(0)], None);
    require(&mut b, found);
    b.delete(items, item, None);
    b.lookup(items, 3, &[b.parameter(0)], None);
    let values: Vec<Reg> = (0..4).map(|at| b.parameter(at)).collect();
    b.insert(items, &values, None, None);
    let replace = Arc::new(b.finish());

    // Moves the item to another number and inserts one under the number that it had.
    let parameters = all().into_iter().chain([column(ID)]);
    let mut b = ProgramBuilder::new("succeed", parameters);
    let items = b.table(table);
    let (item, found) = b.lookup(items, 0, &[b.parameter(0)], None);
    require(&mut b, found);
    b.update(items, item, &[(ID, b.parameter(4))], None);
    let values: Vec<Reg> = (0..4).map(|at| b.parameter(at)).collect();
    b.insert(items, &values, None, None);
    let succeed = Arc::new(b.finish());

    let mut b = ProgramBuilder::new("delete", [column(ID)]);
    let items = b.table(table);
    let (item, found) = b.lookup(items, 0, &[b.parameter(0)], None);
    require(&mut b, found);
    b.delete(items, item, None);
    let delete = Arc::new(b.finish());

    let mut b = ProgramBuilder::new("scan", [column(ID), column(ID)]);
    let items = b.table(table);
    for (index, reverse) in [(0, false), (0, true)] {
        let item = b.record();
        b.open();
        let row = b.read(items, item, &[AMOUNT], None);
        emit(&mut b, row);
        let body = b.close();
        let bound = |at| {
            Some(Bound {
                value: b.parameter(at),
                inclusive: at == 0,
            })
        };
        let range = Range {
            lower: bound(0),
            upper: bound(1),
            ..Range::default()
        };
        b.scan(items, index, range, reverse, item, body, None);
    }
    let scan = Arc::new(b.finish());

    // The item with the least amount, and the one with the greatest code.
    let mut b = ProgramBuilder::new("first", []);
    let items = b.table(table);
    for (index, reverse) in [(2, false), (1, true)] {
        let item = b.record();
        b.open();
        let row = b.read(items, item, &[ID], None);
        emit(&mut b, row);
        b.push(Step::Exit { depth: 0 });
        let body = b.close();
        b.scan(items, index, Range::default(), reverse, item, body, None);
    }
    let first = Arc::new(b.finish());

    Programs {
        get,
        find,
        set,
        rename,
        insert,
        replace,
        succeed,
        delete,
        scan,
        first,
    }
}

/// What a replay knows of a cell.
#[derive(Clone, Default)]
struct State {
    version: u64,
    columns: BTreeMap<u16, u32>,
    exists: bool,
}

/// A range that is being read: its index, its bounds, what was met.
type OpenRange = (IndexId, Vec<u8>, Vec<u8>, BTreeSet<Object>);

#[derive(Default)]
struct Replay {
    objects: BTreeMap<Object, State>,
    /// What the open attempt has written.
    own: BTreeMap<Object, State>,
    entries: BTreeSet<(u32, u16, Vec<u8>, Object)>,
    /// Entries that go when no snapshot has them any more, and may be gone.
    leaving: BTreeSet<(u32, u16, Vec<u8>, Object)>,
    ranges: BTreeMap<u32, OpenRange>,
    counts: BTreeMap<&'static str, u32>,
    cells_reused: u32,
}

impl Replay {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn seen(&self, object: Object) -> State {
        let installed = self.objects.get(&object).cloned().unwrap_or_default();
        self.own.get(&object).cloned().unwrap_or(installed)
    }

    fn version(&self, object: Object) -> u64 {
        self.objects.get(&object).map_or(0, |state| state.version)
    }

    fn apply(&mut self, event: Event<'_>, names: &[String]) {
        match event {
            Event::Begin { procedure, invoked } => {
                assert!((procedure as usize) < names.len());
                assert!(invoked.0 > 0 || self.counts.is_empty());
                self.own.clear();
                self.ranges.clear();
                self.count("begin");
            }
            Event::Read {
                object,
                version,
                cells,
            } => {
                let state = self.seen(object);
                assert!(state.exists, "{names:?}");
                assert_eq!(version, Version(self.version(object)));
                for cell in cells.iter().copied().map(Cell::from_word) {
                    assert_eq!(state.columns[&cell.column], cell.print, "{cell:?}");
                    self.count("cell");
                }
                self.count("read");
            }
            Event::ReadAbsent {
                object,
                version,
                as_of,
            } => {
                assert!(!self.seen(object).exists);
                let current = Version(self.version(object));
                assert!(version == current || (as_of && version > current));
                self.count("read absent");
            }
            Event::Write {
                object,
                kind,
                cells,
            } => {
                let mut state = self.seen(object);
                let cells = cells.iter().copied().map(Cell::from_word);
                match kind {
                    WriteKind::Update => assert!(state.exists && cells.len() > 0),
                    WriteKind::Insert => assert!(!state.exists && cells.len() == 4),
                    // A deleted row may lose its key to another one, which is recorded as a
                    // deletion.
                    WriteKind::Delete => {
                        let leaves = || self.leaving.iter().any(|entry| entry.3 == object);
                        assert!((state.exists || leaves()) && cells.len() == 0);
                    }
                }
                if kind == WriteKind::Insert && !state.columns.is_empty() {
                    self.cells_reused += 1;
                }
                state.exists = kind != WriteKind::Delete;
                state
                    .columns
                    .extend(cells.map(|cell| (cell.column, cell.print)));
                self.own.insert(object, state);
                self.count("write");
            }
            Event::RangeBegin {
                range,
                index,
                low,
                high,
                ..
            } => {
                let range_of = (index, low.to_vec(), high.to_vec(), BTreeSet::new());
                assert!(self.ranges.insert(range, range_of).is_none());
            }
            Event::Met { range, object } => {
                let range = self.ranges.get_mut(&range).expect("the range has begun");
                assert!(range.3.insert(object));
                self.count("met");
            }
            Event::RangeEnd {
                range,
                stopped_at,
                reverse,
                ..
            } => {
                let (index, mut low, mut high, met) =
                    self.ranges.remove(&range).expect("the range has begun");
                if !stopped_at.is_empty() {
                    self.count("stopped");
                    *(if reverse { &mut low } else { &mut high }) = stopped_at.to_vec();
                }
                let within = |entries: &BTreeSet<(u32, u16, Vec<u8>, Object)>| {
                    let entries = entries.iter().filter(|(table, position, key, _)| {
                        (*table, *position) == (index.table, index.index)
                            && *key >= low
                            && (*key <= high || key.starts_with(&high))
                    });
                    entries.map(|entry| entry.3).collect::<BTreeSet<Object>>()
                };
                let (there, leaving) = (within(&self.entries), within(&self.leaving));
                assert!(met.is_superset(&there), "{index:?}");
                assert!(met.is_subset(&(&there | &leaving)), "{index:?}");
                self.count("range");
            }
            Event::Entry {
                index,
                change,
                object,
                window,
                key,
            } => {
                assert!(window.from < window.to);
                let entry = (index.table, index.index, key.to_vec(), object);
                match change {
                    EntryChange::Added => {
                        // The cell has another row, so the entry of its last one was gone.
                        self.leaving.remove(&entry);
                        assert!(self.entries.insert(entry));
                    }
                    EntryChange::Removed => {
                        assert!(self.entries.remove(&entry));
                        if window.to == Moment::LATER {
                            self.leaving.insert(entry);
                        }
                    }
                }
                self.count("entry");
            }
            Event::Install {
                object,
                previous,
                version,
            } => {
                assert_eq!(previous, Version(self.version(object)));
                assert!(previous < version, "versions of a cell only grow");
                let mut state = self.own.get(&object).expect("it was written").clone();
                state.version = version.0;
                self.objects.insert(object, state);
                self.own.remove(&object);
                self.count("install");
            }
            Event::Commit { .. } => {
                assert!(self.own.is_empty(), "all that was written was installed");
                self.count("commit");
            }
            Event::Reject { .. } => self.count("reject"),
            Event::Abort { .. } => self.count("abort"),
        }
    }
}

fn call(worker: &mut Worker, program: &Arc<Program>, values: &[Value]) -> Outcome {
    let mut arguments = Arguments::from_values(values);
    arguments
        .bind(program)
        .expect("the arguments suit the program");
    worker.call(program, &arguments, None)
}

fn run(protocol: impl Into<Configuration>) {
    let protocol = protocol.into();
    let table = table();
    if protocol.has(ProtocolOption::TimestampSplitting) {
        table.split_by([ID, CODE, NOTE].into_iter().collect());
    }
    let programs = programs(&table);
    let epochs = Epochs::new(WORKERS_MAX);
    let participant = epochs.register().expect("a slot is free");
    let mut random = Random::from_seed(11);
    let mut worker = Worker::new(
        &Arc::new(Common::new(protocol)),
        participant,
        Random::from_seed(1),
    );
    let observation = Observation::new(64 << 20);
    worker.observe(Some(&observation));
    let mut succeeded = 0;
    for _ in 0..6_000 {
        epochs.advance();
        let id = Value::Integer(random.below(KEYS) as i32);
        // Long common beginnings, so that keys differ in later words only.
        let code = Value::Text("c".repeat(20) + &random.below(KEYS).to_string());
        let scale = random.below(3) as u8;
        let mantissa = random.between(-5, 5) as i128 * 10_i128.pow(scale as u32);
        let amount = Value::Numeric(Decimal::new(mantissa, scale).expect("a small number"));
        let note = match random.below(4) {
            0 => Value::Null,
            length => Value::Text("x".repeat(length)),
        };
        let outcome = match random.below(14) {
            0..2 => call(&mut worker, &programs.get, &[id]),
            2 => call(&mut worker, &programs.find, &[code]),
            3 => call(&mut worker, &programs.set, &[id, amount, note]),
            4 => call(&mut worker, &programs.rename, &[id, code]),
            5..8 => call(&mut worker, &programs.insert, &[id, code, amount, note]),
            8 => call(&mut worker, &programs.replace, &[id, code, amount, note]),
            9..11 => call(&mut worker, &programs.delete, &[id]),
            11 => {
                let next = Value::Integer(random.below(KEYS * 4) as i32);
                let outcome = call(
                    &mut worker,
                    &programs.succeed,
                    &[id, code, amount, note, next],
                );
                succeeded += matches!(outcome, Outcome::Committed) as u32;
                outcome
            }
            12 => {
                let last = Value::Integer(random.below(KEYS) as i32);
                call(&mut worker, &programs.scan, &[id, last])
            }
            _ => call(&mut worker, &programs.first, &[]),
        };
        match outcome {
            Outcome::Committed => {}
            Outcome::Rejected(error) => assert!(
                [SqlState::NO_DATA_FOUND, SqlState::UNIQUE_VIOLATION].contains(&error.state()),
                "{error}"
            ),
            Outcome::Expired => panic!("there was no deadline"),
        }
    }
    assert!(!worker.is_history_full());
    // SAFETY: the worker runs no transaction.
    let mut logs = unsafe { observation.take_logs() };
    // A worker whose calls in flight are run by others has one for each; one after the other they
    // all use the same.
    logs.retain(|log| !log.is_empty());
    assert_eq!(logs.len(), 1);
    let names = observation.procedures();
    let mut replay = Replay::default();
    for event in LogReader::new(&logs[0]) {
        replay.apply(event.expect("a log can be decoded"), &names);
    }
    assert_eq!(names.len(), 10);
    assert!(succeeded > 5, "{protocol}: {succeeded}");
    for what in [
        "begin",
        "cell",
        "commit",
        "entry",
        "install",
        "met",
        "range",
        "read",
        "read absent",
        "reject",
        "stopped",
        "write",
    ] {
        let count = replay.counts.get(what).copied().unwrap_or(0);
        assert!(count > 20, "{protocol}: {count} times {what}");
    }
    assert!(replay.cells_reused > 100, "{protocol}");
    // No other transaction is in the way. Healing runs the program again when a row that it inserts
    // late is refused, and under dora what was not planned cannot be had: a row that an insert
    // meets.
    let aborts = replay.counts.get("abort").copied().unwrap_or(0);
    let repeats = matches!(protocol.protocol, Protocol::Healing | Protocol::Dora);
    assert!(aborts == 0 || repeats, "{protocol}");
}

#[test]
fn serial_histories_replay() {
    run(Protocol::Serial);
}

#[test]
fn silo_histories_replay() {
    run(Protocol::Silo);
}

#[test]
fn occ_histories_replay() {
    run(Protocol::Occ);
}

#[test]
fn healing_histories_replay() {
    run(Protocol::Healing);
}

#[test]
fn tictoc_histories_replay() {
    run(Protocol::TicToc);
}

#[test]
fn hybrid_histories_replay() {
    run(Protocol::Hybrid);
}

#[test]
fn mocc_histories_replay() {
    run(Protocol::Mocc);
}

#[test]
fn none_histories_of_one_worker_replay() {
    run(Protocol::None);
}

#[test]
fn two_phase_locking_histories_replay() {
    run(Protocol::TwoPhaseLockingNoWait);
    run(Protocol::TwoPhaseLockingWaitDie);
    run(Protocol::TwoPhaseLockingWaitForGraph);
    run(Protocol::TwoPhaseLockingDreadlocks);
}

#[test]
fn planned_histories_replay() {
    run(Protocol::LockSorted);
    run(Protocol::LockAtomic);
    run(Protocol::PreNoWait);
    run(Protocol::Vll);
    run(Protocol::VllSca);
    run(Protocol::VllArrayed);
    run(Protocol::Vllr);
    run(Protocol::VllrSca);
    run(Protocol::RangeMap);
    run(Protocol::RangeHierarchical);
    run(Protocol::Strife);
    run(Protocol::Dora);
}

#[test]
fn mvcc_histories_replay() {
    run(Protocol::Mvcc);
}

#[test]
fn histories_under_timestamp_splitting_replay() {
    for name in ["silo+ts", "silo+cu+ts", "tictoc+cu+ts", "mvcc+cu+ts"] {
        run(name.parse::<Configuration>().expect("a protocol's name"));
    }
}

#[test]
fn a_full_log_says_so_and_keeps_all() {
    let table = table();
    let programs = programs(&table);
    let epochs = Epochs::new(WORKERS_MAX);
    let participant = epochs.register().expect("a slot is free");
    let mut worker = Worker::new(
        &Arc::new(Common::new(Protocol::Silo)),
        participant,
        Random::from_seed(1),
    );
    let observation = Observation::new(1_000);
    worker.observe(Some(&observation));
    let mut calls = 0;
    while !worker.is_history_full() {
        call(&mut worker, &programs.first, &[]);
        calls += 1;
        assert!(calls < 1_000, "the log fills");
    }
    call(&mut worker, &programs.first, &[]);
    // SAFETY: the worker runs no transaction.
    let logs = unsafe { observation.take_logs() };
    let ends = LogReader::new(&logs[0])
        .filter(|event| matches!(event, Ok(Event::Commit { .. })))
        .count();
    assert_eq!(ends, calls + 1);
    worker.observe(None);
    assert!(!worker.is_history_full());
    call(&mut worker, &programs.first, &[]);
    // SAFETY: as above.
    let logs = unsafe { observation.take_logs() };
    assert!(
        logs.iter().all(Vec::is_empty),
        "no worker is observed any more"
    );
}
