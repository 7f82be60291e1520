//! Healing equals running again: random programs run up to their commit, somebody else changes rows, and the
//! healed attempt must do what a fresh run on the changed rows does.
//!
//! Two tables of each kind have the same rows. In one the program is interrupted and healed, in the other it
//! runs once, serially, after the changes. The rows, the result and the error must be the same. The programs
//! follow keys from row to row, and have conditionals, loops, scans that are left early, all kinds of
//! writes, rows that are inserted late and errors that depend on what was read.
//!
//! `KILN_HEALING_CASES` says how many cases, `KILN_TEST_SEED` where they begin.

use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::*;
use kiln_procedure::{Access, Arguments, Executor, Frame, Program, ProgramBuilder, Stop};
use kiln_protocols::access::healing::Healing;
use kiln_protocols::factors::{HealingFactors, Use, ValidationOrder};
use kiln_protocols::phases::Phased;
use kiln_protocols::{Common, Outcome, Protocol, Statistics, Worker};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::SqlState;
use kiln_storage::schema::*;
use kiln_storage::slot::Heap;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

const ID: ColumnId = ColumnId(0);
const CODE: ColumnId = ColumnId(1);
const LEFT: ColumnId = ColumnId(2);
const RIGHT: ColumnId = ColumnId(3);
const NOTE: ColumnId = ColumnId(4);

const BY_ID: u16 = 0;
const BY_CODE: u16 = 1;
const BY_LEFT: u16 = 2;
const BY_ID_HASHED: u16 = 3;

/// Rows are keyed by numbers below this.
const KEYS: usize = 6;
/// Parameters of a program.
const PARAMETERS: usize = 6;
/// Attempts of one call in a row, with nobody else about, that may fail.
const ATTEMPTS_MAX: u32 = 50;

fn table(number: u32) -> Arc<Table> {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        not_null: name != "note",
        default: None,
    };
    let schema = TableSchema {
        name: format!("item{number}"),
        columns: vec![
            column("id", DataType::Integer),
            column("code", DataType::Integer),
            column("left", DataType::BigInt),
            column("right", DataType::BigInt),
            column("note", DataType::Text),
        ],
        primary_key: vec![ID],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        primary_key_name: None,
        partition_by: None,
    };
    let index = |name: &str, columns, unique, kind| IndexDefinition {
        name: name.to_owned(),
        columns,
        unique,
        constraint: false,
        kind,
    };
    let ordered = IndexKind::Ordered {
        partition_columns: 0,
    };
    let indexes = vec![
        index("item_code", vec![CODE], true, ordered),
        index("item_left", vec![LEFT], false, ordered),
        index("item_hash", vec![ID], true, IndexKind::Hash),
    ];
    Arc::new(Table::new(TableId(number), schema, 0, indexes).expect("a table like others"))
}

/// One of the two databases: a table that programs look into, and one that they only insert into.
struct Database {
    items: Arc<Table>,
    log: Arc<Table>,
    epochs: Epochs,
    worker: Worker,
}

impl Database {
    fn new(protocol: Protocol) -> Database {
        let epochs = Epochs::new(WORKERS_MAX);
        let participant = epochs.register().expect("a slot is free");
        let common = Arc::new(Common::new(protocol));
        Database {
            items: table(1),
            log: table(2),
            worker: Worker::new(&common, participant, Random::from_seed(1)),
            epochs,
        }
    }

    fn rows(&self) -> Vec<Vec<Value>> {
        let mut rows = Vec::new();
        for table in [&self.items, &self.log] {
            let mut heap = Heap::new();
            let start = rows.len();
            table.indexes()[0].for_each(|record| {
                let columns = table.schema().columns.iter().zip(0..);
                let values = columns.map(|(column, position)| {
                    let slot = table.column_value(ColumnId(position), table.row(record), &mut heap);
                    kiln_procedure::frame::to_value(&heap, slot, &column.data_type)
                });
                rows.push(values.collect());
            });
            rows[start..].sort_by_key(|row: &Vec<Value>| match row[0] {
                Value::Integer(id) => id,
                _ => unreachable!("ids are integers"),
            });
        }
        rows
    }
}

/// What came of a call: the rows emitted, or the error.
type Effect = Result<Vec<Vec<Value>>, (SqlState, String)>;

fn effect_of(worker: &Worker, program: &Program, outcome: Outcome) -> Effect {
    match outcome {
        Outcome::Committed => Ok(worker.frame().result_values(program)),
        Outcome::Rejected(error) => Err((error.state(), error.to_string())),
        Outcome::Expired => unreachable!("there is no deadline"),
    }
}

/// Makes the same program for both databases.
fn program(database: &Database, seed: u64, operations: usize) -> Program {
    let parameters = (0..PARAMETERS).map(|at| (format!("p{at}"), DataType::Integer));
    let mut maker = Maker {
        b: ProgramBuilder::new("random", parameters),
        items: TableRef(0),
        log: TableRef(0),
        random: Random::from_seed(seed),
        depth: 0,
    };
    maker.items = maker.b.table(&database.items);
    maker.log = maker.b.table(&database.log);
    let start = maker.number(1);
    maker.steps(operations, start);
    maker.b.returns(vec![("seen".to_owned(), DataType::BigInt)]);
    maker.b.finish()
}

struct Maker {
    b: ProgramBuilder,
    items: TableRef,
    log: TableRef,
    random: Random,
    depth: u32,
}

impl Maker {
    fn number(&mut self, value: i64) -> Reg {
        self.b.constant(DataType::BigInt, Value::BigInt(value))
    }

    fn compute(&mut self, op: Arithmetic, left: Reg, right: Reg) -> Reg {
        let target = self.b.register(DataType::BigInt);
        self.b.scalar(Instruction::Integer {
            op,
            width: Width::Eight,
            target,
            left,
            right,
        });
        target
    }

    /// A key: a parameter, or what was read last.
    fn key(&mut self, value: Reg) -> Reg {
        if self.random.below(2) == 0 {
            let parameter = self.random.below(PARAMETERS);
            return self.b.parameter(parameter);
        }
        let keys = self.number(KEYS as i64);
        let rest = self.compute(Arithmetic::Remainder, value, keys);
        let target = self.b.register(DataType::Integer);
        self.b.scalar(Instruction::CheckWidth {
            width: Width::Four,
            target,
            source: rest,
        });
        target
    }

    /// Whether a number that was read is below a constant.
    fn condition(&mut self, value: Reg) -> Reg {
        let bound = self.random.between(-2, 8);
        let (target, right) = (self.b.register(DataType::Boolean), self.number(bound));
        self.b.scalar(Instruction::Compare {
            op: Comparison::Less,
            class: Class::Integer,
            target,
            left: value,
            right,
        });
        target
    }

    fn failure(state: SqlState) -> Box<Failure> {
        Box::new(Failure {
            state,
            message: "no".to_owned(),
            arguments: [].into(),
            detail: None,
            hint: None,
            constraint: None,
            position: None,
        })
    }

    /// Appends steps. `value` is what was read last; it holds a value on all ways here.
    fn steps(&mut self, count: usize, mut value: Reg) {
        for _ in 0..count {
            value = self.step(value);
        }
    }

    fn step(&mut self, value: Reg) -> Reg {
        // What comes after may depend on what happens in a branch.
        let next = self.b.register(DataType::BigInt);
        self.b.scalar(Instruction::Move {
            target: next,
            source: value,
        });
        match self.random.below(20) {
            0..10 => self.look_up(value, next),
            10..13 => self.scan(value, next),
            13 | 14 if self.depth < 2 => {
                let condition = self.condition(value);
                let count = 1 + self.random.below(2);
                self.depth += 1;
                self.b.open();
                self.steps(count, next);
                let then = self.b.close();
                self.b.open();
                self.steps(1, next);
                let otherwise = self.b.close();
                self.depth -= 1;
                self.b.push(Step::If {
                    condition,
                    then,
                    otherwise,
                });
            }
            15 if self.depth < 2 => self.repeat(next),
            16 => self.insert(value),
            17 => {
                let code = self.key(value);
                let row = self.row(value, code);
                self.b.insert(self.log, &row, None, None);
            }
            18 => {
                let condition = self.condition(value);
                let condition = self.random.below(3).eq(&0).then_some(condition);
                if let Some(condition) = condition {
                    self.b.scalar(Instruction::Require {
                        condition,
                        null_fails: false,
                        error: Maker::failure(SqlState::CHECK_VIOLATION),
                    });
                }
            }
            _ => self.b.push(Step::Emit {
                row: [value].into(),
            }),
        }
        next
    }

    /// A loop whose length depends on what was read.
    fn repeat(&mut self, next: Reg) {
        let four = self.number(4);
        let (first, one) = (self.number(0), self.number(1));
        let last = self.compute(Arithmetic::Remainder, next, four);
        let variable = self.b.register(DataType::BigInt);
        self.depth += 1;
        self.b.open();
        let sum = self.compute(Arithmetic::Add, next, variable);
        self.b.scalar(Instruction::Move {
            target: next,
            source: sum,
        });
        self.look_up(next, next);
        if self.random.below(2) == 0 {
            let condition = self.condition(next);
            self.b.push(Step::If {
                condition,
                then: vec![Step::Exit { depth: 0 }],
                otherwise: Vec::new(),
            });
        }
        let body = self.b.close();
        self.depth -= 1;
        self.b.push(Step::ForRange {
            variable,
            first,
            last,
            step: one,
            reverse: false,
            body,
        });
    }

    fn row(&mut self, value: Reg, code: Reg) -> [Reg; 5] {
        let note = self
            .b
            .constant(DataType::Text, Value::Text("new".to_owned()));
        let key = self.key(value);
        [key, code, value, value, note]
    }

    fn insert(&mut self, value: Reg) {
        let code = self.key(value);
        let row = self.row(value, code);
        if self.random.below(4) == 0 {
            self.b.insert(self.items, &row, None, None);
            return;
        }
        let inserted = self.b.register(DataType::Boolean);
        let conflict = Conflict {
            index: None,
            inserted,
        };
        let item = self.b.insert(self.items, &row, Some(conflict), None);
        self.b.open();
        self.b.update(self.items, item, &[(RIGHT, value)], None);
        let otherwise = self.b.close();
        self.b.push(Step::If {
            condition: inserted,
            then: Vec::new(),
            otherwise,
        });
    }

    fn look_up(&mut self, value: Reg, next: Reg) {
        let index = [BY_ID, BY_ID_HASHED, BY_CODE][self.random.below(3)];
        let key = self.key(value);
        let (item, found) = self.b.lookup(self.items, index, &[key], None);
        self.b.open();
        self.touch(item, next);
        let then = self.b.close();
        self.b.push(Step::If {
            condition: found,
            then,
            otherwise: Vec::new(),
        });
    }

    fn scan(&mut self, value: Reg, next: Reg) {
        let record = self.b.record();
        let key = self.key(value);
        let bound = Some(Bound {
            value: key,
            inclusive: self.random.below(2) == 0,
        });
        let (index, range) = match self.random.below(4) {
            0 => (BY_LEFT, Range::default()),
            1 => (
                BY_CODE,
                Range {
                    lower: bound,
                    ..Range::default()
                },
            ),
            2 => (
                BY_ID,
                Range {
                    upper: bound,
                    ..Range::default()
                },
            ),
            _ => (BY_ID, Range::default()),
        };
        let reverse = self.random.below(2) == 0;
        self.b.open();
        let seen = self.b.read(self.items, record, &[RIGHT], None)[0];
        let sum = self.compute(Arithmetic::Add, next, seen);
        self.b.scalar(Instruction::Move {
            target: next,
            source: sum,
        });
        if self.random.below(2) == 0 {
            self.b.update(self.items, record, &[(RIGHT, sum)], None);
        }
        match self.random.below(3) {
            0 => self.b.push(Step::Exit { depth: 0 }),
            1 => {
                let condition = self.condition(sum);
                self.b.push(Step::If {
                    condition,
                    then: vec![Step::Exit { depth: 0 }],
                    otherwise: Vec::new(),
                });
            }
            _ => {}
        }
        let body = self.b.close();
        self.b
            .scan(self.items, index, range, reverse, record, body, None);
    }

    /// Does something with a row that was found.
    fn touch(&mut self, item: RecordReg, next: Reg) {
        let column = [LEFT, RIGHT][self.random.below(2)];
        match self.random.below(10) {
            0..6 => {
                let seen = self.b.read(self.items, item, &[column], None)[0];
                let sum = self.compute(Arithmetic::Add, next, seen);
                let hundred = self.number(100);
                let sum = self.compute(Arithmetic::Remainder, sum, hundred);
                self.b.scalar(Instruction::Move {
                    target: next,
                    source: sum,
                });
                if self.random.below(3) > 0 {
                    self.b.update(self.items, item, &[(column, sum)], None);
                }
            }
            6 => self.b.update(self.items, item, &[(RIGHT, next)], None),
            7 => {
                let code = self.key(next);
                self.b.update(self.items, item, &[(CODE, code)], None);
            }
            8 => {
                let note = self.b.read(self.items, item, &[NOTE], None)[0];
                self.b
                    .update(self.items, item, &[(NOTE, note), (LEFT, next)], None);
            }
            _ => self.b.delete(self.items, item, None),
        }
    }
}

/// The changes that others make meanwhile, and what brings rows back.
struct Changes {
    change: Vec<Program>,
    refill: Program,
}

impl Changes {
    fn new(database: &Database) -> Changes {
        let parameters = || {
            [
                ("id".to_owned(), DataType::Integer),
                ("v".to_owned(), DataType::BigInt),
                ("c".to_owned(), DataType::Integer),
            ]
        };
        let by_key = |kind: usize| {
            let mut b = ProgramBuilder::new(&format!("change{kind}"), parameters());
            let (items, log) = (b.table(&database.items), b.table(&database.log));
            let table = if kind == 5 { log } else { items };
            let (id, value, code) = (b.parameter(0), b.parameter(1), b.parameter(2));
            let (item, found) = b.lookup(table, BY_ID, &[id], None);
            b.open();
            match kind {
                0 => b.update(items, item, &[(LEFT, value)], None),
                1 => b.update(items, item, &[(RIGHT, value)], None),
                2 => {
                    let note = b.constant(DataType::Text, Value::Text("long ".repeat(30)));
                    b.update(items, item, &[(NOTE, note)], None);
                }
                3 => b.update(items, item, &[(CODE, code)], None),
                _ => b.delete(table, item, None),
            }
            let then = b.close();
            b.push(Step::If {
                condition: found,
                then,
                otherwise: Vec::new(),
            });
            b.finish()
        };
        let mut b = ProgramBuilder::new("refill", parameters());
        let items = b.table(&database.items);
        let null = b.register(DataType::Text);
        b.scalar(Instruction::SetNull { target: null });
        let row = [
            b.parameter(0),
            b.parameter(2),
            b.parameter(1),
            b.parameter(1),
            null,
        ];
        let inserted = b.register(DataType::Boolean);
        let conflict = Conflict {
            index: None,
            inserted,
        };
        b.insert(items, &row, Some(conflict), None);
        Changes {
            change: (0..6).map(by_key).collect(),
            refill: b.finish(),
        }
    }
}

/// What the cases met.
#[derive(Default)]
struct Met {
    healed: u64,
    rejected: u64,
    aborts: u64,
    given_up: u64,
}

struct Pair {
    healed: Database,
    fresh: Database,
    healing: Healing,
    frame: Frame,
    changes: [Changes; 2],
    met: Met,
}

impl Pair {
    fn new(factors: HealingFactors, defers: bool) -> Pair {
        let (healed, fresh) = (
            Database::new(Protocol::Healing),
            Database::new(Protocol::Serial),
        );
        let participant = healed.epochs.register().expect("a slot is free");
        Pair {
            changes: [Changes::new(&healed), Changes::new(&fresh)],
            healing: Healing::new(participant, factors, defers),
            frame: Frame::new(),
            healed,
            fresh,
            met: Met::default(),
        }
    }

    /// Makes the same change in both databases, unless the attempt that is open has what it takes: a key that
    /// it means to insert, or an entry that it moves.
    fn change(&mut self, random: &mut Random, which: Option<usize>) {
        let values = [
            Value::Integer(random.below(KEYS) as i32),
            Value::BigInt(random.between(-3, 9)),
            Value::Integer(random.below(KEYS) as i32),
        ];
        let mut effects = Vec::new();
        let databases = [&mut self.healed, &mut self.fresh];
        for (database, changes) in databases.into_iter().zip(&self.changes) {
            let program = which.map_or(&changes.refill, |which| &changes.change[which]);
            let mut arguments = Arguments::from_values(&values);
            arguments.bind(program).expect("the arguments suit it");
            let outcome = database.worker.try_call(program, &arguments, None, Some(0));
            let Some(outcome) = outcome else {
                assert!(effects.is_empty(), "nobody is in the way of the serial one");
                self.met.given_up += 1;
                return;
            };
            effects.push(effect_of(&database.worker, program, outcome));
        }
        assert_eq!(effects[0], effects[1]);
    }

    fn case(&mut self, seed: u64) {
        let mut random = Random::from_seed(seed);
        for _ in 0..2 {
            self.change(&mut random, None);
        }
        let (making, operations) = (random.between(0, i64::MAX) as u64, 2 + random.below(7));
        let program_healed = program(&self.healed, making, operations);
        let program_fresh = program(&self.fresh, making, operations);
        let values: Vec<Value> = (0..PARAMETERS)
            .map(|_| Value::Integer(random.below(KEYS) as i32))
            .collect();
        let mut arguments = Arguments::from_values(&values);
        arguments
            .bind(&program_healed)
            .expect("the arguments suit it");
        let changes = 1 + random.below(4);

        let effect = self.heal(&program_healed, &arguments, changes, &mut random);
        let outcome = self.fresh.worker.call(&program_fresh, &arguments, None);
        let expected = effect_of(&self.fresh.worker, &program_fresh, outcome);
        assert_eq!(effect, expected, "seed {seed}: {:#?}", program_fresh.body);
        assert_eq!(
            self.healed.rows(),
            self.fresh.rows(),
            "seed {seed}: {:#?}",
            program_fresh.body
        );
        self.met.rejected += u64::from(expected.is_err());
        for database in [&self.healed, &self.fresh] {
            database.epochs.advance();
        }
    }

    /// Runs the program up to its end, has others change rows, and brings it to its end.
    fn heal(
        &mut self,
        program: &Program,
        arguments: &Arguments,
        changes: usize,
        random: &mut Random,
    ) -> Effect {
        self.healing.begin_call(None);
        for attempt in 0..ATTEMPTS_MAX {
            self.healing.prepare(attempt);
            self.healing.begin();
            self.healing
                .plan(program, arguments)
                .expect("nothing is planned");
            let mut is_first = true;
            let stop = loop {
                let run = Executor::run(program, &mut self.healing, &mut self.frame, arguments);
                if attempt == 0 && is_first {
                    is_first = false;
                    for _ in 0..changes {
                        let which = random.below(self.changes[0].change.len() + 1);
                        let which = (which < self.changes[0].change.len()).then_some(which);
                        self.change(random, which);
                    }
                }
                match run.and_then(|()| self.healing.commit_or_raise()) {
                    Ok(()) => return Ok(self.frame.result_values(program)),
                    Err(stop) if self.healing.goes_on(&stop) => self.met.healed += 1,
                    Err(stop) => break stop,
                }
            };
            let error = match stop {
                Stop::Raise(error) => self.healing.confirm_raise(error).ok(),
                Stop::Abort(_) => None,
            };
            self.healing.roll_back();
            if let Some(error) = error {
                return Err((error.state(), error.to_string()));
            }
            self.met.aborts += 1;
        }
        panic!("an attempt with nobody else about fails again and again");
    }
}

fn cases() -> u64 {
    let asked = std::env::var("KILN_HEALING_CASES").ok();
    asked.map_or(3_000, |asked| asked.parse().expect("a number of cases"))
}

fn first_seed() -> u64 {
    let asked = std::env::var("KILN_TEST_SEED").ok();
    asked.map_or(0, |asked| asked.parse().expect("a seed"))
}

fn run(factors: HealingFactors, cases: u64) -> (Met, Statistics) {
    run_with(factors, false, cases)
}

fn run_with(factors: HealingFactors, defers: bool, cases: u64) -> (Met, Statistics) {
    let mut pair = Pair::new(factors, defers);
    for seed in first_seed()..first_seed() + cases {
        pair.case(seed);
    }
    let mut statistics = Statistics::default();
    pair.healing.add_counts(&mut statistics);
    let Met {
        healed,
        rejected,
        aborts,
        given_up,
    } = pair.met;
    println!(
        "{cases} cases: healed {healed} times, {rejected} rejected, {aborts} aborts, {given_up} \
         changes given up"
    );
    (pair.met, statistics)
}

#[test]
fn healing_equals_running_again() {
    let (met, statistics) = run(HealingFactors::default(), cases());
    assert!(met.healed * 10 > cases(), "most cases have nothing to heal");
    assert!(met.aborts * 50 < cases(), "attempts are aborted instead");
    assert_eq!(statistics.healings, met.healed);
    assert!(statistics.restored_total() > met.healed / 2);
}

#[test]
fn healing_in_other_orders_and_without_copies_equals_running_again() {
    for order in [ValidationOrder::Address, ValidationOrder::Reversed] {
        let factors = HealingFactors {
            validation_order: order,
            read_locks: Use::On,
            ..HealingFactors::default()
        };
        run(factors, cases() / 10);
    }
    let factors = HealingFactors {
        read_copies: Use::Off,
        ..HealingFactors::default()
    };
    let (met, _) = run(factors, cases() / 10);
    assert!(met.healed > 0);
}

#[test]
fn healing_with_commit_time_updates_equals_running_again() {
    run_with(HealingFactors::default(), true, cases() / 3);
}

#[test]
fn without_access_cache_attempts_abort() {
    let factors = HealingFactors {
        access_cache: Use::Off,
        ..HealingFactors::default()
    };
    let (met, statistics) = run(factors, cases() / 10);
    assert_eq!((met.healed, statistics.healings), (0, 0));
    assert!(met.aborts > 0);
}
