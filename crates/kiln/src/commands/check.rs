//! `kiln check`: runs a workload, records its history, and judges it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use kiln_checker::{HistoryError, Options, Order, Report};
use kiln_engine::{
    Answer, Asked, Caller, Configuration, Driver, Engine, Outcome, ProcedureHandle, Protocol,
    Request,
};
use kiln_history::History;
use kiln_lab::Plan;
use kiln_lab::audit::{AuditReport, audit};
use kiln_lab::progress::Progress;
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{file, thread, time};
use kiln_storage::error::Error;
use kiln_workloads::{Call as WorkloadCall, Terminal, Totals, Workload};

use super::bench::{Settings, workload_names};

/// The arguments of `kiln check`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kiln check --protocol silo\n  \
    kiln check tpcc --protocol silo,2pl-no-wait --warehouses 1 --seconds 1\n  \
    kiln check --protocol silo --keys 4 --save run.history\n  \
    kiln check --history run.history --order serializable")]
pub struct Arguments {
    /// What to run
    #[arg(default_value = "anomalies", value_parser = workload_names())]
    workload: String,
    /// Protocols, separated by commas, each with its options, as in silo+cu [default: all that
    /// promise an order]
    #[arg(long, value_name = "P[,P…]", value_delimiter = ',', value_parser = super::protocol)]
    protocol: Vec<Configuration>,
    /// Where the locks are, for all protocols named; P+table is the same for one
    /// [default: beside the record]
    #[arg(long, value_enum)]
    locks: Option<super::Locks>,
    /// Threads that make calls; a protocol of one worker runs with one [default: one for each core,
    /// at least 2]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=Plan::THREADS_MAX as i64))]
    threads: Option<u16>,
    /// Seconds of each run
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    seconds: f64,
    /// Determines the population and the calls
    #[arg(long, value_name = "N", default_value_t = Plan::SEED)]
    seed: u64,
    /// The order that is promised [default: what the protocol promises]
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// MiB that all workers may record together; the run ends when there is no room
    /// [default: a third of --memory-mb]
    #[arg(long, value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    limit_mb: Option<u32>,
    /// MiB that what is recorded and its judge may take together; a history that takes more is
    /// refused
    #[arg(long, value_name = "MIB", default_value_t = 2_048,
        value_parser = clap::value_parser!(u32).range(4..=1_048_576))]
    memory_mb: u32,
    /// Keep the history in this file; for one protocol at a time
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Judge the history in this file, instead of running anything
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["workload", "protocol", "threads", "seconds", "seed", "limit_mb", "save"])]
    history: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// The order that a protocol promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderName {
    /// A serial order that agrees with real time
    Strict,
    /// Some serial order
    Serializable,
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Order {
        match name {
            OrderName::Strict => Order::Strict,
            OrderName::Serializable => Order::Serializable,
        }
    }
}

/// What to run, checked.
struct Run {
    workload: Workload,
    protocols: Vec<Configuration>,
    threads: usize,
    seconds: f64,
    seed: u64,
    /// The order that is promised, if not the protocol's.
    order: Option<Order>,
    limit_bytes: usize,
    memory_bytes: u64,
    save: Option<PathBuf>,
}

impl Arguments {
    /// What to run, or what is wrong with it.
    fn run(self) -> Result<Run, String> {
        let mut workload = Workload::by_name(&self.workload)
            .ok_or_else(|| format!("there is no workload \"{}\"", self.workload))?;
        for (option, value) in self.settings.iter() {
            workload.set(option, value)?;
        }
        workload.validate()?;
        let protocols: Vec<Configuration> = match self.protocol.is_empty() {
            true => Configuration::serializable().collect(),
            false => self.protocol,
        };
        let protocols = super::placed(protocols, self.locks)?;
        if !(self.seconds > 0.0 && self.seconds <= 86_400.0) {
            return Err(format!(
                "seconds is {}, but must be more than 0 and at most 86400",
                self.seconds
            ));
        }
        if self.save.is_some() && protocols.len() > 1 {
            return Err("a file keeps one history: name one protocol with --protocol".to_owned());
        }
        let threads = match self.threads {
            Some(threads) => threads.into(),
            None => thread::available_cores().clamp(2, Plan::THREADS_MAX),
        };
        Ok(Run {
            workload,
            protocols,
            threads,
            seconds: self.seconds,
            seed: self.seed,
            order: self.order.map(Order::from),
            limit_bytes: (self.limit_mb.unwrap_or(self.memory_mb / 3) as usize) << 20,
            memory_bytes: u64::from(self.memory_mb) << 20,
            save: self.save,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// What is to be printed before the program ends with exit code 1.
pub fn run(arguments: Arguments) -> Result<ExitCode, String> {
    if let Some(path) = &arguments.history {
        if arguments.settings.iter().next().is_some() {
            return Err("options of workloads do not go together with --history".to_owned());
        }
        let history = History::load(path).map_err(|error| at(path, error))?;
        super::print(&format!(
            "{} under {}, from {}\n",
            history.workload,
            history.protocol,
            path.display()
        ))?;
        let order = arguments.order.map(Order::from);
        let memory_bytes = u64::from(arguments.memory_mb) << 20;
        let report = judge(&history, order, memory_bytes).map_err(|error| at(path, error))?;
        return verdict(report.is_serializable());
    }
    let run = match arguments.run() {
        Ok(run) => run,
        Err(message) => {
            let hint = "For more information, try 'kiln check --help'.";
            let message = format!("{message}\n\n{hint}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).exit()
        }
    };
    if let Some(path) = &run.save {
        // Before the run, so that the user does not wait for a history that cannot be kept.
        file::ensure_writable(path).map_err(|error| format!("cannot write {error}"))?;
    }
    let mut passed = true;
    for protocol in &run.protocols {
        passed &= run.check(*protocol)?;
    }
    verdict(passed)
}

fn verdict(passed: bool) -> Result<ExitCode, String> {
    match passed {
        true => Ok(ExitCode::SUCCESS),
        false => Err("the check failed".to_owned()),
    }
}

/// An error of a file, with its path unless the error names it.
fn at(path: &Path, error: impl std::fmt::Display) -> String {
    let (path, error) = (path.display().to_string(), error.to_string());
    match error.starts_with(&path) {
        true => error,
        false => format!("{path}: {error}"),
    }
}

/// Parts of judging that the bar shows.
const PARTS: u64 = 1_000;

/// Judges a history by an order, or by the one that its protocol promises, and prints what was
/// found. The logs and the judge together may take so much memory.
fn judge(history: &History, order: Option<Order>, memory_bytes: u64) -> Result<Report, String> {
    let promised = || match history.protocol.parse::<Configuration>() {
        Ok(configuration) if !configuration.is_strict() => Order::Serializable,
        _ => Order::Strict,
    };
    let options = &Options {
        order: order.unwrap_or_else(promised),
        memory_bytes: memory_bytes.saturating_sub(history.log_bytes() as u64),
        ..Options::default()
    };
    let begin = time::now_ns();
    let progress = Progress::steps("Judging", PARTS);
    let mut done = 0;
    let mut watch = |part: f64| {
        let now = (part * PARTS as f64) as u64;
        progress.advance(now.saturating_sub(done));
        done = now.max(done);
    };
    let report = kiln_checker::check_watched(history, options, &mut watch);
    progress.clear();
    let report = report.map_err(|error| match error {
        HistoryError::NoMemory { .. } => format!(
            "{error}, which are {} MiB: record less, with --seconds, --limit-mb or fewer --threads, or allow \
             more with --memory-mb",
            history.log_bytes() >> 20
        ),
        error => error.to_string(),
    })?;
    let seconds = (time::now_ns() - begin) as f64 / 1e9;
    super::print(&format!(
        "{report}\njudged {} events in {seconds:.1} s\n",
        report.events
    ))?;
    Ok(report)
}

/// What the calls of a run came to.
#[derive(Default)]
struct Calls {
    totals: Totals,
    rejected: u64,
    /// The first rejection that the workload does not provoke.
    failure: Option<Error>,
    /// Whether there was no room left in a log.
    is_full: bool,
}

impl Run {
    /// Runs the workload under a protocol, and judges it. Returns whether nothing is wrong.
    fn check(&self, protocol: Configuration) -> Result<bool, String> {
        let threads = match protocol.is_single_worker() {
            true => 1,
            false => self.threads,
        };
        let readable = |error: Error| format!("{error:#}");
        let database = kiln_lab::loaded(&self.workload, self.seed, 0).map_err(readable)?;
        let engine = database.engine();
        engine.set_protocol(protocol).map_err(readable)?;
        engine
            .record_history(self.limit_bytes / threads)
            .map_err(readable)?;
        let begin = time::now_ns();
        let calls = self.call(engine, threads).map_err(readable)?;
        let seconds = (time::now_ns() - begin) as f64 / 1e9;
        let mut history = engine.take_history().map_err(readable)?;
        self.workload.name().clone_into(&mut history.workload);
        let committed: u64 = calls.totals.committed.iter().sum();
        let plural = if threads == 1 { "" } else { "s" };
        let mut text = format!(
            "{} under {protocol}, {threads} thread{plural}, {seconds:.1} s: {committed} committed, {} \
             rejected, {:.1} MiB recorded\n",
            self.workload.name(),
            calls.rejected,
            history.log_bytes() as f64 / (1 << 20) as f64,
        );
        if calls.is_full {
            text += "The run ended early: a log was full; --limit-mb gives it more room.\n";
        }
        if let Some(error) = &calls.failure {
            text += &format!("A call was rejected for a reason that is never given: {error:#}\n");
        }
        super::print(&text)?;
        if let Some(path) = &self.save {
            history.save(path).map_err(|error| at(path, error))?;
            super::print(&format!("History kept in {}.\n", path.display()))?;
        }
        // The audit's queries run in parallel under the default protocol.
        engine.set_protocol(Protocol::default()).map_err(readable)?;
        let audit = audit(&database, &self.workload, self.seed, &calls.totals).map_err(readable)?;
        super::print(&audit_lines(&audit))?;
        // The judge needs the memory more.
        drop(database);
        let report = judge(&history, self.order, self.memory_bytes)?;
        Ok(calls.failure.is_none() && audit.passed() && report.is_serializable())
    }

    /// Makes calls on several threads until the time is over or a log is full.
    fn call(&self, engine: &Engine, threads: usize) -> Result<Calls, Error> {
        let handles: Result<Vec<ProcedureHandle>, Error> = self
            .workload
            .procedures()
            .iter()
            .map(|procedure| engine.procedure(procedure.name))
            .collect();
        let handles = handles?;
        let drivers: Result<Vec<Driver>, Error> =
            (0..threads).map(|worker| engine.driver(worker)).collect();
        let drivers = drivers?;
        let terminals = self.workload.terminals(self.seed, threads);
        let end_ns = time::now_ns() + (self.seconds * 1e9) as u64;
        let sum = Mutex::new(Calls {
            totals: Totals::new(handles.len()),
            ..Calls::default()
        });
        thread::scope(|scope| {
            for (worker, (driver, terminal)) in drivers.into_iter().zip(terminals).enumerate() {
                let (handles, sum) = (&handles, &sum);
                scope.spawn(move || {
                    thread::pin_to_core(worker);
                    let calls = self.work(driver, terminal, handles, end_ns);
                    let sum = &mut *lock(sum);
                    sum.totals.merge(&calls.totals);
                    sum.rejected += calls.rejected;
                    sum.is_full |= calls.is_full;
                    sum.failure = sum.failure.take().or(calls.failure);
                });
            }
        });
        Ok(std::mem::take(&mut *lock(&sum)))
    }

    /// One worker's calls.
    fn work(
        &self,
        mut driver: Driver,
        terminal: Terminal,
        handles: &[ProcedureHandle],
        end_ns: u64,
    ) -> Calls {
        let mut caller = TerminalCaller {
            workload: &self.workload,
            handles,
            terminal,
            end_ns,
            calls: Calls::default(),
            in_flight: Vec::new(),
        };
        driver.drive(&mut caller);
        caller.calls.totals = caller.terminal.totals().clone();
        caller.calls
    }
}

/// A worker's terminal, and its calls in flight.
struct TerminalCaller<'a> {
    workload: &'a Workload,
    handles: &'a [ProcedureHandle],
    terminal: Terminal,
    end_ns: u64,
    calls: Calls,
    /// By ticket.
    in_flight: Vec<Option<WorkloadCall>>,
}

impl Caller for TerminalCaller<'_> {
    fn next(&mut self, request: &mut Request) -> Asked<'_> {
        self.calls.is_full |= request.is_history_full;
        if self.is_over() {
            return Asked::Pause;
        }
        let call = self.terminal.next(&mut request.arguments);
        let handle = &self.handles[call.procedure.0];
        let free = self.in_flight.iter().position(Option::is_none);
        let ticket = free.unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        request.ticket = ticket as u64;
        self.in_flight[ticket] = Some(call);
        Asked::Call(handle)
    }

    fn is_over(&mut self) -> bool {
        self.calls.is_full || self.calls.failure.is_some() || time::now_ns() >= self.end_ns
    }

    fn ended(&mut self, ticket: u64, outcome: Outcome, answer: &Answer<'_>) {
        let call = self.in_flight[ticket as usize].take();
        let call = call.expect("a call ends that was made, once");
        let number = call.procedure.0;
        match outcome {
            Outcome::Committed => {
                let rows = match self.workload.procedures()[number].rows_wanted {
                    true => answer.values(&self.handles[number]).unwrap_or_default(),
                    false => Vec::new(),
                };
                self.terminal.committed(call, &rows);
            }
            Outcome::Rejected(error) => {
                self.calls.rejected += 1;
                let expected = self.workload.expected_rejections();
                if !expected.contains(&error.state().as_str()) {
                    self.calls.failure.get_or_insert(error);
                }
            }
            Outcome::Expired => {}
        }
    }
}

/// What the audit found, in lines.
fn audit_lines(audit: &AuditReport) -> String {
    let mut text = format!(
        "audit: {} ({} conditions)\n",
        audit.verdict(),
        audit.conditions
    );
    for violation in &audit.violations {
        text += &format!("  {}: {} does not hold:\n", violation.name, violation.what);
        for row in violation.rows.iter().take(8) {
            text += &format!("    {}\n", row.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tests::parsed_by;

    fn parsed(arguments: &str) -> Result<Run, String> {
        parsed_by::<Arguments>("check", arguments)?.run()
    }

    #[test]
    fn the_defaults_run_anomalies_under_every_protocol() {
        let run = parsed("").expect("the defaults are valid");
        assert_eq!(run.workload.name(), "anomalies");
        assert!(Configuration::serializable().eq(run.protocols));
        assert!(run.threads >= 2);
        assert_eq!(run.order, None);
    }

    #[test]
    fn settings_reach_the_run() {
        let run = parsed("smallbank --protocol silo --threads 3 --accounts 7 --order serializable")
            .expect("the arguments are valid");
        assert_eq!(run.workload.name(), "smallbank");
        assert_eq!(run.protocols, [Protocol::Silo]);
        assert_eq!(run.threads, 3);
        assert_eq!(run.order, Some(Order::Serializable));
        let options = run.workload.options();
        assert!(
            options
                .iter()
                .any(|o| o.name == "accounts" && o.value == "7")
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, part) in [
            ("tpcd", "possible values: tpcc, smallbank"),
            ("--protocol hope", "possible values: serial, "),
            ("--threads 0", "1..="),
            ("--seconds 0", "seconds is 0"),
            ("--seconds nan", "seconds is NaN"),
            ("--limit-mb 0", "1..="),
            ("--memory-mb 0", "4..="),
            ("--order causal", "possible values: strict, serializable"),
            ("--keys 1", "keys is \"1\""),
            ("tpcc --keys 5", "tpcc has no option \"keys\""),
            ("--protocol silo,serial --save x", "one protocol"),
            ("--history x --seed 1", "cannot be used with"),
            ("tpcc --history x", "cannot be used with"),
        ] {
            let message = match parsed(arguments) {
                Err(message) => message,
                Ok(_) => panic!("{arguments} is accepted"),
            };
            assert!(message.contains(part), "{arguments}: {message}");
        }
    }
}
