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
mod programs;
mod rows;

use kiln_checker::{Order, Report};
use kiln_history::{History, ObjectName, TableNames};
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::random::Random;
use kiln_platform::sync::Arc;
use kiln_platform::thread;
use kiln_procedure::{AbortCause, Arguments, Program, Stop};
use kiln_protocols::factors::{
    self, Claims, Controllers, DeadlockAvoidance, HealingFactors, LockQueue, Use,
};
use kiln_protocols::{
    Common, Configuration, Factors, Observation, Outcome, Protocol, ProtocolOption, Statistics,
    Worker,
};
use kiln_storage::epoch::Epochs;
use kiln_storage::schema::*;
use kiln_storage::table::WORKERS_MAX;

use answers::Answers;
use drawn::Drawn;
use journal::Heard;
#[allow(unused_imports, reason = "the search for flaws alone asks")]
pub use journal::JOURNAL;
use programs::REJECTIONS;
#[allow(
    unused_imports,
    reason = "the test of baselines alone writes programs of its own"
)]
pub use programs::raise;
pub use programs::{OPERATIONS_MAX, program};
use rows::{CODE, LEFT, RIGHT, check_indexes};
#[allow(unused_imports, reason = "not all who judge know the columns")]
pub use rows::{ID, NOTE, populate, table};

/// Longer than any call should take, however the threads share core slots.
const LONG_NS: u64 = 2_000_000_000;

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
            // It serves calls again, its own and those that others send it.
            if worker.is_pipelined() && drawn.random.below(2) == 0 {
                let left = std::mem::replace(&mut drawn.left, 2);
                drawn.call_on(&mut worker);
                drawn.left = left;
            }
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
