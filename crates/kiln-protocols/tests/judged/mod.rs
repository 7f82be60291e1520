//! Trials: workers run random small programs over a few rows, and the judge looks at what they did.
//!
//! The programs do everything that an attempt can do, several times to the same rows: reads, blind
//! writes, read-modify-writes, insertions, deletions, scans of both kinds of index that end early
//! or not, moves through a unique index, and errors raised after all that. A trial runs on real
//! threads, or on virtual cores with `--cfg kiln_sim`: then its seed determines the interleaving as
//! well.

mod answers;
mod drawn;
mod journal;

use kiln_checker::{Order, Report};
use kiln_history::{History, ObjectName, TableNames};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_procedure::ir::*;
use kiln_procedure::{AbortCause, Arguments, Program, ProgramBuilder, Stop};
use kiln_protocols::factors::{
    self, Claims, Controllers, DeadlockAvoidance, HealingFactors, LockQueue, Use,
};
use kiln_protocols::{
    Common, Configuration, Factors, Observation, Outcome, Protocol, ProtocolOption, Statistics,
    Worker,
};
use kiln_storage::epoch::Epochs;
use kiln_storage::error::SqlState;
use kiln_storage::schema::*;
use kiln_storage::table::{Table, WORKERS_MAX};
use kiln_storage::types::{DataType, Value};

use answers::Answers;
use drawn::Drawn;
use journal::Heard;
#[allow(unused_imports, reason = "the search for flaws alone asks")]
pub use journal::JOURNAL;

pub const ID: ColumnId = ColumnId(0);
const CODE: ColumnId = ColumnId(1);
const LEFT: ColumnId = ColumnId(2);
const RIGHT: ColumnId = ColumnId(3);
const NOTE: ColumnId = ColumnId(4);

/// Positions of the table's indexes.
const BY_ID: u16 = 0;
const BY_CODE: u16 = 1;
const BY_LEFT: u16 = 2;
const BY_ID_HASHED: u16 = 3;
const BY_CODE_HASHED: u16 = 4;

/// The most operations of a program; each has a key, a value and a code as parameters.
pub const OPERATIONS_MAX: usize = 5;
/// Longer than any call should take, however the threads share core slots.
const LONG_NS: u64 = 2_000_000_000;
/// What programs raise.
const REJECTIONS: [SqlState; 3] = [
    SqlState::RAISE_EXCEPTION,
    SqlState::UNIQUE_VIOLATION,
    SqlState::CHECK_VIOLATION,
];
/// Programs of a trial.
const PROGRAMS: usize = 12;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub protocol: Configuration,
    pub workers: u64,
    /// Virtual cores; with fewer of them than workers these share core slots.
    #[cfg_attr(
        not(kiln_sim),
        expect(dead_code, reason = "real threads have the machine's cores")
    )]
    pub cores: u64,
    /// Calls of each worker.
    pub calls: u64,
    /// How many rows there can be.
    pub keys: usize,
    /// How long a call may take; a broken protocol may never let one through. Without a limit that
    /// is a failure of the trial.
    pub limit_ns: Option<u64>,
    /// What programs do besides.
    pub extras: Extras,
    /// How healing does it.
    pub healing: HealingFactors,
    /// Who gets a lock that is let go, where locks are queues.
    pub lock_queue: LockQueue,
    /// What transactions claim of records, where locks are planned.
    pub claims: Claims,
    /// Whether silo's attempts end before their commit, and how its commits lock.
    pub early_aborts: Use,
    pub deadlock_avoidance: DeadlockAvoidance,
    /// Whether listeners hear of each commit, from the first one on.
    pub listens: bool,
    /// Whether the last worker runs transactions of several statements, which idle now and then.
    /// Calls that wait for one of them are handed back again and again.
    pub blocks: bool,
    /// Determines programs, calls, and on virtual cores the schedule.
    pub seed: u64,
}

/// Operations that a protocol that is broken in certain ways may not survive, as it frees memory
/// twice.
#[derive(Clone, Copy, Debug)]
pub struct Extras {
    /// Long texts are written, which lie outside of their rows.
    pub texts: bool,
    /// Rows are deleted.
    pub deletions: bool,
    /// Primary keys are updated in place, which no front end asks for: it deletes and inserts.
    /// Protocols whose attempts may find a row and observe nothing of it rely on that.
    pub primary_keys: bool,
    /// Rows go through one unique key to another.
    pub through_keys: bool,
    /// Keys are read from other rows, and what is read decides what is done.
    pub chains: bool,
    /// Programs have an array of keys besides, and some go through it.
    pub loops: bool,
    /// What most operations are.
    pub mix: Mix,
}

/// What programs do mostly: the rarer something is that a flaw needs, the more transactions it
/// takes to find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// All there is.
    #[default]
    Everything,
    /// Rows move to other codes, and are looked for by them.
    #[allow(dead_code, reason = "the search for flaws alone has it")]
    Moves,
    /// Rows that are all there are read and written, and stay where they are.
    #[allow(dead_code, reason = "the search for flaws alone has it")]
    Values,
}

impl Trial {
    /// Runs it and judges it; with what the workers counted. An error says what broke before the
    /// judge could look.
    #[cfg(not(kiln_sim))]
    pub fn judge(self) -> Result<(Report, Statistics), String> {
        let run = std::panic::catch_unwind(|| self.run());
        run.map_err(|panic| match panic.downcast_ref::<String>() {
            Some(message) => message.clone(),
            None => "a worker panicked".to_owned(),
        })
        .and_then(Ran::judge)
    }

    /// As on real threads, under the schedule that the seed determines: each second one random, the
    /// others by priorities.
    #[cfg(kiln_sim)]
    pub fn judge(self) -> Result<(Report, Statistics), String> {
        use kiln_platform::sim::{self, Config, Schedule};
        let schedule = match self.seed % 2 {
            0 => Schedule::Random,
            _ => Schedule::Pct {
                depth: 2 + (self.seed / 2 % 3) as u32,
                steps: 2_000,
            },
        };
        let mut config = Config::new(schedule, self.seed);
        config.cores = self.cores as usize;
        // About as long as an access takes: waits between attempts then are in proportion.
        config.step_ns = 20;
        let run = sim::run(&config, || self.run());
        run.map_err(|failure| failure.to_string())
            .and_then(|run| run.value.judge())
    }

    /// How rows are divided over partitions: in all ways in turn.
    fn partitioning(&self) -> Option<Partitioning> {
        let divides = matches!(
            self.protocol.protocol,
            Protocol::Orthrus | Protocol::Partitioned | Protocol::VllSingle | Protocol::Dora
        );
        match self.seed / 5 % 3 {
            1 if divides => Some(Partitioning::Column(ID)),
            2 if divides => Some(Partitioning::Replicated),
            _ => None,
        }
    }

    fn run(mut self) -> Ran {
        let partitioning = self.partitioning();
        let table = table().with_partitioning(partitioning);
        let table = Arc::new(table.expect("numbers divide rows"));
        // Rows stay where they are.
        self.extras.primary_keys &= partitioning != Some(Partitioning::Column(ID));
        let mut random = Random::from_seed(self.seed);
        if self.protocol.has(ProtocolOption::TimestampSplitting) {
            let splits: [&[ColumnId]; 4] =
                [&[RIGHT], &[LEFT, NOTE], &[ID, CODE], &[ID, RIGHT, NOTE]];
            table.split_by(splits[self.seed as usize / 2 % 4].iter().copied().collect());
        }
        if self.claims == Claims::Columns {
            let unwritten: [&[ColumnId]; 4] = [
                &[ID, CODE, NOTE],
                &[ID, LEFT],
                &[RIGHT, NOTE],
                &[LEFT, RIGHT],
            ];
            let unwritten = unwritten[self.seed as usize / 2 % 4];
            table.set_unwritten(unwritten.iter().copied().collect());
        }
        let programs: Vec<Arc<Program>> = quietly(|| {
            (0..PROGRAMS)
                .map(|number| Arc::new(program(&table, number, self.extras, &mut random)))
                .collect()
        });
        let epochs = Epochs::new(WORKERS_MAX);
        let mut factors = Factors::default();
        factors.healing = self.healing;
        factors.lock_queue = self.lock_queue;
        factors.claims = self.claims;
        factors.early_aborts = self.early_aborts;
        factors.deadlock_avoidance = self.deadlock_avoidance;
        factors.concurrency_controllers = match self.seed / 4 % 4 {
            // Again and again in the few calls that there are.
            3 => Controllers::Auto { count: 5 },
            number => Controllers::Fixed(1 + number as u16),
        };
        // They are dealt out anew again and again.
        if (self.seed / 3).is_multiple_of(3) {
            factors.partitioning = factors::Partitioning::Balanced { claims: 2 };
        }
        factors.batches.size = [2, 5, 16, 0][self.seed as usize / 2 % 4];
        factors.batches.samples = [2, 0, 4][self.seed as usize % 3];
        factors.batches.residuals_permille =
            [None, Some(500), Some(0), Some(1000)][self.seed as usize / 8 % 4];
        factors.partitions = 1 + (self.seed % 3) as u16;
        let common = Arc::new(Common::with_factors(self.protocol, factors));
        let worker = |stream: u64| {
            let participant = epochs.register().expect("a slot is free");
            Worker::new(
                &common,
                participant,
                Random::stream(self.seed, 100 + stream),
            )
        };
        let mut workers: Vec<Worker> = (0..self.workers).map(worker).collect();
        let observation = Observation::new(256 << 20);
        let heard = Arc::new(Heard::default());
        let journal = self.listens.then(|| heard.journal());
        quietly(|| {
            for worker in workers.iter_mut().filter(|_| self.listens) {
                worker.attach(journal.as_ref());
            }
            let every = match self.extras.mix {
                Mix::Everything => 2,
                Mix::Moves | Mix::Values => 1,
            };
            populate(&table, &mut workers[0], self.keys, every);
            for worker in &mut workers {
                worker.observe(Some(&observation));
            }
        });
        let (programs, epochs) = (&programs, &epochs);
        let working = &AtomicU64::new(self.workers);
        let answers = self.listens.then_some(&heard.answers);
        let mut statistics = Statistics::default();
        thread::scope(|scope| {
            let handles: Vec<_> = workers
                .into_iter()
                .zip(0..)
                .map(|(worker, stream)| {
                    scope.spawn(move || {
                        let _done = Done(working);
                        let random = Random::stream(self.seed, stream);
                        match self.blocks && stream + 1 == self.workers {
                            true => self.open_blocks(worker, programs, random),
                            false => self.work(worker, programs, random, answers),
                        }
                    })
                })
                .collect();
            // About ten log epochs to an epoch, each with a few commits.
            for turn in 0_u64.. {
                if working.load(Ordering::Acquire) == 0 {
                    break;
                }
                let mut pause_ns = if cfg!(kiln_sim) { 10_000 } else { 100_000 };
                if let Some(journal) = &journal {
                    heard.close(journal);
                    pause_ns /= 10;
                }
                if !self.listens || turn.is_multiple_of(10) {
                    epochs.advance();
                }
                thread::sleep(pause_ns);
            }
            for handle in handles {
                match handle.join() {
                    Ok(counted) => statistics.add(&counted),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        // What the workers left to be freed.
        let maintenance = epochs.register().expect("a slot is free");
        common.settle(&maintenance);
        for _ in 0..3 {
            epochs.advance();
        }
        maintenance.collect(usize::MAX);
        // Of a protocol that is broken on purpose the judge shall say what is wrong.
        if !cfg!(feature = "canaries") {
            check_indexes(&table);
        }
        // SAFETY: the workers are gone, and their threads were waited for.
        let logs = unsafe { observation.take_logs() };
        let schema = table.schema();
        let names = TableNames {
            name: schema.name.clone(),
            columns: schema
                .columns
                .iter()
                .map(|column| column.name.clone())
                .collect(),
            indexes: (table.indexes().iter())
                .map(|index| index.definition().name.clone())
                .collect(),
        };
        let mut objects = Vec::new();
        table.indexes()[0].for_each(|record| {
            let mut heap = kiln_storage::slot::Heap::new();
            let id = table
                .column_value(ID, table.row(record), &mut heap)
                .as_i64();
            objects.push(ObjectName {
                object: kiln_history::Object(record.address()),
                table: 1,
                name: format!("item[{id}]"),
            });
        });
        let history = History {
            protocol: self.protocol.name(),
            workload: "random programs".to_owned(),
            procedures: observation.procedures(),
            causes: AbortCause::ALL.map(|cause| cause.name().to_owned()).into(),
            tables: vec![TableNames::default(), names],
            objects,
            logs,
        };
        let heard = match self.listens {
            true => quietly(|| heard.check(&table, &history)),
            false => Ok(()),
        };
        Ran {
            history,
            statistics,
            heard,
        }
    }

    /// Runs transactions of several statements, as many as others make calls.
    fn open_blocks(
        self,
        mut worker: Worker,
        programs: &[Arc<Program>],
        random: Random,
    ) -> Statistics {
        let mut drawn = Drawn::new(self, programs, random, None);
        let mut arguments = Arguments::new();
        while drawn.left > 0 {
            let statements: Vec<_> = (0..drawn.random.between(1, 3))
                .map(|_| (drawn.draw_again(&mut arguments), arguments.clone()))
                .collect();
            drawn.left -= 1;
            // It may lose to calls again and again: no worker keeps the calls out for it.
            for _ in 0..10 {
                assert!(worker.begin(), "no worker has broken down");
                let idles_ns = drawn.random.below(4) as u64 * IDLE_NS;
                let mut ran = statements.iter().map(|(program, arguments)| {
                    let ran = worker.run(program, arguments);
                    thread::sleep(idles_ns);
                    ran
                });
                let ran = ran.find(Result::is_err).unwrap_or(Ok(()));
                match ran {
                    Ok(()) if worker.commit().is_ok() => break,
                    Ok(()) => {}
                    Err(Stop::Abort(_)) => worker.roll_back(),
                    Err(Stop::Raise(error)) => {
                        let is_confirmed = worker.confirm().is_ok();
                        worker.roll_back();
                        if is_confirmed {
                            drawn.check(Outcome::Rejected(error));
                            break;
                        }
                    }
                }
                worker.back_off(None);
            }
            worker.end_transaction();
        }
        worker.statistics()
    }

    fn work(
        self,
        mut worker: Worker,
        programs: &[Arc<Program>],
        random: Random,
        answers: Option<&Answers>,
    ) -> Statistics {
        let mut drawn = Drawn::new(self, programs, random, answers);
        // Workers that can have several calls in flight are also handed one after the other.
        if worker.is_pipelined() && self.seed % 4 != 3 {
            drawn.serve_on(&mut worker);
        } else {
            drawn.call_on(&mut worker);
        }
        if self.limit_ns.is_some() && !cfg!(feature = "canaries") {
            // Calls that were given up must have left no lock: these have time enough.
            drawn.go_on_without_limit(LAST_CALLS);
            drawn.call_on(&mut worker);
        }
        worker.statistics()
    }
}

/// What a trial left.
struct Ran {
    history: History,
    statistics: Statistics,
    /// Whether the listeners heard what they should.
    heard: Result<(), String>,
}

impl Ran {
    /// The judge's report on the history, unless the listeners have heard something wrong of what
    /// is right.
    fn judge(self) -> Result<(Report, Statistics), String> {
        let report = judged(self.history)?;
        if report.is_serializable() {
            self.heard?;
        }
        Ok((report, self.statistics))
    }
}

/// Calls without a limit after those that had one.
const LAST_CALLS: u64 = 6;

/// How long a block idles after a statement, or some times as long.
const IDLE_NS: u64 = if cfg!(kiln_sim) { 100_000 } else { 1_000_000 };

/// Every index has the same records, which are there to stay, each under its row's key.
fn check_indexes(table: &Table) {
    let records = |index: &kiln_storage::table::Index| {
        let mut records = Vec::new();
        index.for_each(|record| records.push(record.address()));
        records.sort_unstable();
        records
    };
    let all = records(&table.indexes()[0]);
    let mut heap = kiln_storage::slot::Heap::new();
    for index in table.indexes() {
        assert_eq!(records(index), all, "{}", index.definition().name);
        index.for_each(|record| {
            let tid = record.tid().load(Ordering::Acquire);
            assert_eq!(
                tid >> 61,
                0,
                "a record is locked, absent or dead at the end"
            );
            let key = table.entry_key_of(index, table.row(record), &mut heap);
            let found = index.find_key(&key.expect("keys are short"));
            let found = found.expect("there is an entry under the row's key");
            assert!(!found.is_moving() && found.record() == record);
        });
    }
}

/// Counts a worker off when it ends, however it does.
struct Done<'a>(&'a AtomicU64);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// What the error of a trial begins with whose workers came through, but left no history: two of
/// them say that they replaced the same version, for example.
pub const NO_HISTORY: &str = "no history";

/// The report on a history, by the order that its protocol promises.
fn judged(history: History) -> Result<Report, String> {
    let configuration: Configuration = history.protocol.parse().expect("a protocol's name");
    let options = kiln_checker::Options {
        order: match configuration.is_strict() {
            true => Order::Strict,
            false => Order::Serializable,
        },
        threads: 1,
        ..kiln_checker::Options::default()
    };
    kiln_checker::check(&history, &options).map_err(|error| format!("{NO_HISTORY}: {error}"))
}

#[cfg(kiln_sim)]
fn quietly<T>(body: impl FnOnce() -> T) -> T {
    kiln_platform::sim::quiet(body)
}

#[cfg(not(kiln_sim))]
fn quietly<T>(body: impl FnOnce() -> T) -> T {
    body()
}

pub fn table() -> Arc<Table> {
    let column = |name: &str, data_type: DataType| Column {
        name: name.to_owned(),
        data_type,
        not_null: true,
        default: None,
        domain: None,
        generated: None,
    };
    let schema = TableSchema {
        name: "item".to_owned(),
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
        triggers: Vec::new(),
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
        kind,
    };
    let indexes = vec![
        index("item_code", vec![CODE], true, ordered),
        index("item_left", vec![LEFT], false, ordered),
        index("item_hash", vec![ID], true, IndexKind::Hash),
        index("item_code_hash", vec![CODE], true, IndexKind::Hash),
    ];
    Arc::new(Table::new(TableId(1), schema, 0, indexes).expect("a table like others"))
}

/// Each row of so many.
pub fn populate(table: &Arc<Table>, worker: &mut Worker, keys: usize, every: usize) {
    let mut b = ProgramBuilder::new("populate", [("id".to_owned(), DataType::Integer)]);
    let items = b.table(table);
    let zero = b.constant(DataType::BigInt, Value::BigInt(0));
    let note = b.constant(DataType::Text, Value::Text("first".to_owned()));
    let id = b.parameter(0);
    b.insert(items, &[id, id, zero, zero, note], None, None);
    let program = Arc::new(b.finish());
    for id in (0..keys as i32).step_by(every) {
        let mut arguments = Arguments::from_values(&[Value::Integer(id)]);
        arguments.bind(&program).expect("one number");
        let outcome = worker.call(&program, &arguments, None);
        assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
    }
}

/// A program of some random operations.
pub fn program(table: &Arc<Table>, number: usize, extras: Extras, random: &mut Random) -> Program {
    let parameters = (0..OPERATIONS_MAX).flat_map(|at| {
        [
            (format!("key{at}"), DataType::Integer),
            (format!("value{at}"), DataType::BigInt),
            (format!("code{at}"), DataType::Integer),
        ]
    });
    let keys = ("keys".to_owned(), DataType::array(DataType::Integer));
    let parameters = parameters
        .chain([("note".to_owned(), DataType::Text)])
        .chain(extras.loops.then_some(keys));
    let mut b = ProgramBuilder::new(&format!("program{number}"), parameters);
    let items = b.table(table);
    // Some only read.
    let kinds = match (extras.mix, number % 4) {
        (_, 0) | (Mix::Moves, 2) => Kinds::Reads,
        _ => Kinds::All,
    };
    let operations = match (extras.mix, kinds) {
        // Whatever moves is met.
        (Mix::Moves, Kinds::Reads) => OPERATIONS_MAX,
        _ => 1 + random.below(OPERATIONS_MAX),
    };
    let loop_at = extras.loops.then(|| random.below(4 * OPERATIONS_MAX));
    for at in 0..operations {
        if Some(at) == loop_at {
            for_each_key(&mut b, items, kinds, random);
        }
        let parameters = [3 * at, 3 * at + 1, 3 * at + 2].map(|at| b.parameter(at));
        operation(&mut b, items, parameters, (kinds, extras), random);
    }
    if random.below(6) == 0 {
        let failure = Failure {
            state: SqlState::RAISE_EXCEPTION,
            message: "not this time".to_owned(),
            arguments: [].into(),
            detail: None,
            hint: None,
            subject: None,
            position: None,
        };
        b.push(Step::Raise {
            error: Box::new(failure),
        });
    }
    let columns = [("seen", DataType::BigInt), ("note", DataType::Text)];
    b.returns(
        columns
            .map(|(name, data_type)| (name.to_owned(), data_type))
            .into(),
    );
    b.finish()
}

/// What the operations of a program may do.
#[derive(Clone, Copy)]
enum Kinds {
    All,
    Reads,
}

fn operation(
    b: &mut ProgramBuilder,
    items: TableRef,
    [key, value, code]: [Reg; 3],
    (kinds, extras): (Kinds, Extras),
    random: &mut Random,
) {
    let note = b.parameter(3 * OPERATIONS_MAX);
    let column = [LEFT, RIGHT][random.below(2)];
    let reverse = random.below(2) == 0;
    let by_id = [BY_ID, BY_ID_HASHED][random.below(2)];
    let by_code = [BY_CODE, BY_CODE_HASHED][random.below(2)];
    let kind = match (kinds, extras.mix) {
        (Kinds::All, Mix::Everything) if extras.chains => random.below(20),
        (Kinds::All, Mix::Everything) => random.below(14),
        // Look-ups by either key, and scans.
        (Kinds::Reads, Mix::Everything) => [0, 1, 2, 12][random.below(4)],
        (Kinds::All, Mix::Moves) => [3, 5, 7, 7][random.below(4)],
        (Kinds::Reads, Mix::Moves) => 0,
        (Kinds::All, Mix::Values) => [1, 1, 3, 5][random.below(4)],
        (Kinds::Reads, Mix::Values) => 1,
    };
    match kind {
        kind @ 0..10 => {
            let (index, key) = match kind {
                0 => (by_code, code),
                _ => (by_id, key),
            };
            let (item, found) = b.lookup(items, index, &[key], None);
            b.open();
            match kind {
                0..3 => look(b, items, item, column),
                3..5 => modify(b, items, item, column, value, random.below(6) == 0),
                5 => b.update(items, item, &[(column, value)], None),
                6 if extras.texts => {
                    let seen = b.read(items, item, &[NOTE], None)[0];
                    let row = [value, seen].into();
                    b.push(Step::Emit { row });
                    b.update(items, item, &[(NOTE, note)], None);
                }
                6 => b.update(items, item, &[(LEFT, value), (RIGHT, value)], None),
                7 => {
                    b.update(items, item, &[(CODE, code)], None);
                    if extras.through_keys {
                        b.update(items, item, &[(CODE, key)], None);
                    }
                }
                8 if extras.primary_keys => b.update(items, item, &[(ID, code)], None),
                8 => b.update(items, item, &[(CODE, code), (RIGHT, value)], None),
                _ if extras.deletions => b.delete(items, item, None),
                _ => look(b, items, item, column),
            }
            let then = b.close();
            b.push(Step::If {
                condition: found,
                then,
                otherwise: Vec::new(),
            });
        }
        10 | 11 => {
            let inserted = b.register(DataType::Boolean);
            let conflict = Conflict {
                index: None,
                inserted,
            };
            let values = [key, code, value, value, note];
            let item = b.insert(items, &values, Some(conflict), None);
            b.open();
            // As an upsert does: the row in the way is changed instead.
            b.update(items, item, &[(column, value)], None);
            let otherwise = b.close();
            b.push(Step::If {
                condition: inserted,
                then: Vec::new(),
                otherwise,
            });
        }
        14.. => {
            let (item, found) = b.lookup(items, by_id, &[key], None);
            b.open();
            chain(b, items, (item, column), value, random);
            let then = b.close();
            b.push(Step::If {
                condition: found,
                then,
                otherwise: Vec::new(),
            });
        }
        kind => {
            let record = b.record();
            let (index, range) = match random.below(3) {
                0 => (BY_LEFT, Range::default()),
                1 => (BY_CODE, range_from(code, random)),
                _ => (BY_ID, range_from(key, random)),
            };
            b.open();
            match kind {
                12 => look(b, items, record, column),
                // The column that the scan does not go by.
                _ => modify(b, items, record, RIGHT, value, false),
            }
            if random.below(2) == 0 {
                b.push(Step::Exit { depth: 0 });
            }
            let body = b.close();
            b.scan(items, index, range, reverse, record, body, None);
        }
    }
}

/// Looks each of an array's keys up, whose records plans know beforehand, and does something to
/// those that are there.
fn for_each_key(b: &mut ProgramBuilder, items: TableRef, kinds: Kinds, random: &mut Random) {
    let keys = b.parameter(3 * OPERATIONS_MAX + 1);
    let one = b.constant(DataType::BigInt, Value::BigInt(1));
    let [variable, last] = [(); 2].map(|()| b.register(DataType::BigInt));
    let key = b.register(DataType::Integer);
    b.scalar(Instruction::ArrayLength {
        target: last,
        array: keys,
    });
    let index = [BY_ID, BY_ID_HASHED, BY_CODE_HASHED][random.below(3)];
    b.open();
    b.scalar(Instruction::Element {
        target: key,
        array: keys,
        index: variable,
    });
    let (item, found) = b.lookup(items, index, &[key], None);
    b.open();
    match (kinds, random.below(2)) {
        (Kinds::All, 0) => modify(b, items, item, RIGHT, variable, false),
        _ => look(b, items, item, RIGHT),
    }
    let then = b.close();
    b.push(Step::If {
        condition: found,
        then,
        otherwise: Vec::new(),
    });
    let body = b.close();
    b.push(Step::ForRange {
        variable,
        first: one,
        last,
        step: one,
        reverse: false,
        body,
    });
}

/// Upwards from `value`, or downwards.
fn range_from(value: Reg, random: &mut Random) -> Range {
    let bound = Some(Bound {
        value,
        inclusive: random.below(2) == 0,
    });
    match random.below(2) {
        0 => Range {
            lower: bound,
            ..Range::default()
        },
        _ => Range {
            upper: bound,
            ..Range::default()
        },
    }
}

/// Follows a key that a row has, or goes one of two ways.
fn chain(
    b: &mut ProgramBuilder,
    items: TableRef,
    (item, column): (RecordReg, ColumnId),
    value: Reg,
    random: &mut Random,
) {
    let seen = b.read(items, item, &[column], None)[0];
    let three = b.constant(DataType::BigInt, Value::BigInt(3));
    let (rest, key) = (b.register(DataType::BigInt), b.register(DataType::Integer));
    b.scalar(Instruction::Integer {
        op: Arithmetic::Remainder,
        width: Width::Eight,
        target: rest,
        left: seen,
        right: three,
    });
    b.scalar(Instruction::CheckWidth {
        width: Width::Four,
        target: key,
        source: rest,
    });
    let other_column = [LEFT, RIGHT][random.below(2)];
    let follow = |b: &mut ProgramBuilder, modifies: bool| {
        let (other, found) = b.lookup(items, BY_ID, &[key], None);
        b.open();
        match modifies {
            true => modify(b, items, other, other_column, value, false),
            false => look(b, items, other, other_column),
        }
        let then = b.close();
        b.push(Step::If {
            condition: found,
            then,
            otherwise: Vec::new(),
        });
    };
    match random.below(3) {
        0 => follow(b, true),
        1 => {
            // What is read there is written here.
            follow(b, false);
            modify(b, items, item, column, seen, false);
        }
        _ => {
            let condition = b.register(DataType::Boolean);
            let one = b.constant(DataType::BigInt, Value::BigInt(1));
            b.scalar(Instruction::Compare {
                op: Comparison::Less,
                class: Class::Integer,
                target: condition,
                left: rest,
                right: one,
            });
            b.open();
            follow(b, true);
            let then = b.close();
            b.open();
            modify(b, items, item, column, value, false);
            let otherwise = b.close();
            b.push(Step::If {
                condition,
                then,
                otherwise,
            });
        }
    }
}

fn look(b: &mut ProgramBuilder, items: TableRef, record: RecordReg, column: ColumnId) {
    let seen = b.read(items, record, &[column], None)[0];
    let row = [seen, b.parameter(3 * OPERATIONS_MAX)].into();
    b.push(Step::Emit { row });
}

fn modify(
    b: &mut ProgramBuilder,
    items: TableRef,
    record: RecordReg,
    column: ColumnId,
    value: Reg,
    is_checked: bool,
) {
    let left = b.read(items, record, &[column], None)[0];
    let target = b.register(DataType::BigInt);
    b.scalar(Instruction::Integer {
        op: Arithmetic::Subtract,
        width: Width::Eight,
        target,
        left: value,
        right: left,
    });
    if is_checked {
        // About every second time this is below zero.
        let condition = b.register(DataType::Boolean);
        let zero = b.constant(DataType::BigInt, Value::BigInt(0));
        b.scalar(Instruction::Compare {
            op: Comparison::GreaterOrEqual,
            class: Class::Integer,
            target: condition,
            left: target,
            right: zero,
        });
        let failure = Failure {
            state: SqlState::CHECK_VIOLATION,
            message: format!("below zero in column {}", column.0),
            arguments: [].into(),
            detail: None,
            hint: None,
            subject: None,
            position: None,
        };
        b.scalar(Instruction::Require {
            condition,
            null_fails: false,
            error: Box::new(failure),
        });
    }
    b.update(items, record, &[(column, target)], None);
}
