//! The door to virtual cores: how a run is made, and what is known of it.
//!
//! A run executes a closure, and all threads that it starts, as coroutines on one real thread. It
//! is a function of the build, of the closure, and of the configuration with its seed: the same
//! three give the same [`Report::trace_hash`], in any process. What would make two runs differ, and
//! how each is kept out, is listed in `docs/simulation.md`.
//!
//! ```
//! use kiln_platform::atomic::{AtomicU64, Ordering};
//! use kiln_platform::{sim, thread};
//!
//! // Two threads that load and store instead of adding: some schedule loses an update.
//! let lost = (0..100).any(|seed| {
//!     let config = sim::Config::new(sim::Schedule::Random, seed);
//!     let run = sim::run(&config, || {
//!         let sum = AtomicU64::new(0);
//!         thread::scope(|scope| {
//!             for _ in 0..2 {
//!                 scope.spawn(|| sum.store(sum.load(Ordering::SeqCst) + 1, Ordering::SeqCst));
//!             }
//!         });
//!         sum.load(Ordering::SeqCst)
//!     });
//!     run.expect("nothing panics").value == 1
//! });
//! assert!(lost);
//! ```

use std::fmt;

pub use kiln_machine::{LineHeat, Machine, MachineStatistics, Preset};

pub use super::disk::control as disk;
pub use super::net::control as net;

use super::disk::Disk;
use super::machine::Prices;
use super::net::Network;
use super::runtime;
use super::space::Space;
use super::state::Runtime;

/// The rule that chooses the next thread at a scheduling point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// Any thread that can run, each as likely as the others.
    Random,
    /// Probabilistic concurrency testing: by random priorities, with `depth - 1` changes at random
    /// points of each `steps` scheduling points.
    Pct {
        /// The number of ordered events that the bugs looked for take; at least 1.
        depth: u32,
        /// Scheduling points in a round; at least 1.
        steps: u64,
    },
    /// The thread whose virtual core's clock is the furthest behind. The machine model says what
    /// accesses and work cost.
    LeastTime,
}

/// How a run is made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The rule that chooses the next thread.
    pub schedule: Schedule,
    /// Determines every choice of the schedule and what the run draws as fresh randomness.
    pub seed: u64,
    /// How many cores the run's threads see and can be pinned to.
    pub cores: usize,
    /// The machine, for [`Schedule::LeastTime`].
    pub machine: Preset,
    /// Nanoseconds that a scheduling point takes under the other schedules (200), on one clock for
    /// all: how often timers run, compared with everything else.
    pub step_ns: u64,
    /// Scheduling points after which a run is given up as one that never ends.
    pub steps_max: u64,
    /// Interleavings to force, one after the other: the thread of this name runs alone, unless it
    /// waits or spins, until it reaches this [point](crate::schedule::point). Afterwards the
    /// schedule is free. Not for [`Schedule::LeastTime`].
    pub script: Vec<(String, &'static str)>,
    /// What the run's files are on; without one all that it does with [`crate::disk`] fails. One
    /// run at a time can use it.
    pub disk: Option<Disk>,
    /// What the run's sockets are connected by; without one all that it does with [`crate::net`]
    /// fails. One run at a time can use it.
    pub network: Option<Network>,
}

impl Config {
    /// Two cores of the machine `here`, no script, no disk, no network.
    ///
    /// # Panics
    /// When the machine model has no preset `here`.
    pub fn new(schedule: Schedule, seed: u64) -> Config {
        Config {
            schedule,
            seed,
            cores: 2,
            machine: Preset::named("here").expect("the model has a preset for the machine at hand"),
            step_ns: 200,
            steps_max: match schedule {
                Schedule::LeastTime => u64::MAX,
                _ => 100_000_000,
            },
            script: Vec::new(),
            disk: None,
            network: None,
        }
    }

    /// Whether a run can be made so.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn validate(&self) -> Result<(), String> {
        if self.cores == 0 {
            return Err("a run needs at least one core, not 0".to_owned());
        }
        if let Schedule::Pct { depth, steps } = self.schedule
            && (depth == 0 || steps == 0)
        {
            return Err(format!(
                "PCT needs a depth and steps of at least 1, not {depth} and {steps}"
            ));
        }
        if !runtime::has_clocks(self.schedule) {
            return Ok(());
        }
        self.machine.check()?;
        if self.cores > self.machine.cores() {
            return Err(format!(
                "the machine \"{}\" has {} cores, not {}",
                self.machine.name,
                self.machine.cores(),
                self.cores
            ));
        }
        if !self.script.is_empty() {
            return Err("a script forces an order that virtual time does not have".to_owned());
        }
        Ok(())
    }
}

/// What a run counted. Equal for equal configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// A digest of all accesses in their order: thread, cache line, kind.
    pub trace_hash: u64,
    /// Accesses to shared memory, those of quiet parts apart.
    pub accesses: u64,
    /// Scheduling points.
    pub steps: u64,
    /// Switches between threads.
    pub switches: u64,
    /// Cache lines touched.
    pub lines: usize,
    /// How far the clocks came, in nanoseconds.
    pub virtual_ns: u64,
    /// Threads started, the first included.
    pub threads: usize,
    /// Threads that had not ended when the first one did.
    pub unfinished: usize,
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Run<T> {
    /// What the closure returned.
    pub value: T,
    /// What was counted.
    pub report: Report,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The configuration makes no sense, or the system grants no memory.
    NotStarted(String),
    /// A thread panicked.
    Panic {
        /// Its name.
        thread: String,
        /// The panic's message.
        message: String,
    },
    /// No thread can run, and no deadline will wake one.
    Deadlock {
        /// What each thread waits for.
        waits: Vec<String>,
    },
    /// The run did not end within its limit of steps.
    TooLong {
        /// The scheduling points granted.
        steps: u64,
        /// What each thread is doing.
        waits: Vec<String>,
    },
    /// The run ended before its script did.
    Script {
        /// The thread that the script waited for.
        thread: String,
        /// The point that it never reached.
        point: String,
    },
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// Why.
    pub cause: Cause,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: ", self.seed)?;
        match &self.cause {
            Cause::NotStarted(why) => write!(f, "the run cannot be made: {why}"),
            Cause::Panic { thread, message } => write!(f, "{thread} panicked: {message}"),
            Cause::Deadlock { waits } => write!(f, "deadlock: {}", waits.join("; ")),
            Cause::TooLong { steps, waits } => {
                write!(f, "no end after {steps} steps: {}", waits.join("; "))
            }
            Cause::Script { thread, point } => {
                write!(f, "the run ended before {thread} reached {point}")
            }
        }
    }
}

impl std::error::Error for Failure {}

/// Runs `body`, and all threads that it starts, on virtual cores. Runs on several real threads do
/// not disturb each other.
///
/// What the body works on should be made inside of it: where an object lies matters, and only the
/// memory of the run itself is laid out anew for each run.
///
/// # Errors
/// When a thread panics, when no thread can run any more, when the run does not end, or when it
/// ends before its script.
///
/// # Panics
/// When called inside of a run.
pub fn run<T: Send>(config: &Config, body: impl FnOnce() -> T + Send) -> Result<Run<T>, Failure> {
    let failed = |cause: Cause| Failure {
        seed: config.seed,
        cause,
    };
    let not_started = |why: String| failed(Cause::NotStarted(why));
    config.validate().map_err(not_started)?;
    assert!(!runtime::is_running(), "a run inside of a run");
    let _disk_in_use = match config.disk.as_ref().map(Disk::begin_run) {
        Some(begun) => Some(begun.map_err(not_started)?),
        None => None,
    };
    let _network_in_use = match config.network.as_ref().map(Network::begin_run) {
        Some(begun) => Some(begun.map_err(not_started)?),
        None => None,
    };
    // A thread of its own, so that nothing a run leaves in thread-local memory meets another run.
    let on_thread = || {
        let space = Space::take().map_err(|error| not_started(error.to_string()))?;
        let prices = if runtime::has_clocks(config.schedule) {
            let machine = Machine::new(&config.machine, config.cores);
            Prices::Machine(Box::new(machine))
        } else {
            Prices::Flat {
                step_ps: config.step_ns.saturating_mul(1_000),
            }
        };
        let mut runtime = Box::new(Runtime::new(config, space, prices));
        let mut value = None;
        let first = || value = Some(body());
        runtime::run(&mut runtime, Box::new(first));
        let failure = runtime.take_failure();
        let counts = runtime.counts();
        runtime.end();
        if let Some(cause) = failure {
            // What the body returned, if anything, belongs to a run that failed.
            std::mem::forget(value);
            return Err(failed(cause));
        }
        let value = value.expect("a body that came to its end returned something");
        let report = Report {
            trace_hash: counts.trace_hash,
            accesses: counts.accesses,
            steps: counts.steps,
            switches: counts.switches,
            lines: counts.lines,
            virtual_ns: counts.virtual_ps / 1_000,
            threads: counts.threads,
            unfinished: counts.unfinished,
        };
        Ok(Run { value, report })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("kiln-sim".to_owned())
            .spawn_scoped(scope, on_thread);
        match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(not_started(error.to_string())),
        }
    })
}

/// Whether the calling code is part of a run.
pub fn is_running() -> bool {
    runtime::is_running()
}

/// Ends a quiet part.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        runtime::set_quiet(false);
    }
}

/// Runs `body` quietly: accesses are neither scheduling points nor charged nor traced, only waiting
/// switches. For loading and auditing, which would take most of a run's time and prove nothing.
/// Outside of a run it just calls `body`.
pub fn quiet<T>(body: impl FnOnce() -> T) -> T {
    if !runtime::is_running() {
        return body();
    }
    runtime::set_quiet(true);
    let _loud = Loud;
    body()
}

/// Gives `bytes` bytes from `address` on a name in reports about cache lines. Nothing outside of a
/// run.
pub fn name_range(address: usize, bytes: usize, name: impl FnOnce() -> String) {
    if runtime::is_running() {
        runtime::with(|runtime| runtime.lines.name_range(address, bytes, name()));
    }
}

/// The name of `address`, if some range with it has one.
///
/// # Panics
/// Outside of a run.
pub fn name_of(address: usize) -> Option<String> {
    runtime::with(|runtime| runtime.lines.name_of(address))
}

/// Takes the program to have used `lines` cache lines before, so that the caches are warm; see
/// [`Machine::assume_warm`]. Nothing without [`Schedule::LeastTime`].
///
/// # Panics
/// Outside of a run.
pub fn assume_warm(lines: u64) {
    runtime::with(|runtime| runtime.prices().assume_warm(lines));
}

/// Forgets what the machine has counted so far; caches keep their content.
///
/// # Panics
/// Outside of a run.
pub fn reset_statistics() {
    runtime::with(|runtime| runtime.prices().reset());
}

/// What the machine has counted; nothing but zeroes without [`Schedule::LeastTime`].
///
/// # Panics
/// Outside of a run.
pub fn statistics() -> MachineStatistics {
    runtime::with(|runtime| runtime.prices().statistics())
}

/// The addresses of at most `count` lines that were contended, the most first.
///
/// # Panics
/// Outside of a run.
pub fn hottest(count: usize) -> Vec<(usize, LineHeat)> {
    runtime::with(|runtime| runtime.hottest(count))
}
