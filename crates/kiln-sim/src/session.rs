//! One run: a database is loaded, each core calls procedures, the database is audited.

use kiln_engine::{
    Answer, Asked, BasisFactors, Caller, Configuration, Driver, Outcome, ProcedureHandle, Protocol,
    Request, Statistics,
};
use kiln_lab::audit::{AuditReport, audit};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::work::{Work, charge};
use kiln_platform::{sim, thread, time};
use kiln_procedure::AbortCause;
use kiln_sql::{Database, Options};
use kiln_storage::error::{Error, Result};
use kiln_storage::types::Value;
use kiln_workloads::{Call, RowSink, Terminal, Totals, Workload};

/// When a core stops making calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// After so many calls.
    Calls(u64),
    /// When its clock shows this many nanoseconds; calls before `begin_ns` are in no figure.
    Time {
        /// The end of the warm-up.
        begin_ns: u64,
        /// The end.
        end_ns: u64,
    },
}

/// What the cores of a run did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Calls that committed, by procedure.
    pub(crate) committed: Vec<u64>,
    /// Calls that their procedure rejected.
    pub(crate) rejected: u64,
    /// How long the calls that committed took, from being made to their end with all failed
    /// attempts, by procedure, in nanoseconds and in no order.
    pub(crate) latencies_ns: Vec<Vec<u64>>,
    /// What the workers counted.
    pub(crate) statistics: Statistics,
    /// Transactions judged, and dependencies between them.
    pub(crate) judged: (u64, u64),
    /// What the committed calls add up to, the warm-up's included.
    totals: Totals,
}

impl Done {
    fn new(procedures: usize) -> Done {
        Done {
            committed: vec![0; procedures],
            latencies_ns: vec![Vec::new(); procedures],
            totals: Totals::new(procedures),
            ..Done::default()
        }
    }

    fn add(&mut self, other: &Done) {
        for (sum, value) in self.committed.iter_mut().zip(&other.committed) {
            *sum += value;
        }
        for (all, latencies) in self.latencies_ns.iter_mut().zip(&other.latencies_ns) {
            all.extend(latencies);
        }
        self.rejected += other.rejected;
        self.statistics.add(&other.statistics);
        self.totals.merge(&other.totals);
    }
}

/// A loaded database with a driver on each core.
pub(crate) struct Session<'a> {
    workload: &'a Workload,
    seed: u64,
    configuration: Configuration,
    pub(crate) database: Database,
    handles: Vec<ProcedureHandle>,
}

impl Session<'_> {
    /// Opens and loads the database, quietly.
    pub(crate) fn open(
        workload: &Workload,
        protocol: Configuration,
        basis_factors: BasisFactors,
        epoch_ms: u64,
        seed: u64,
    ) -> Result<Session<'_>> {
        sim::quiet(|| {
            // Calls are made by the session's own threads; the engine's worker has nothing to do.
            let options = Options::new()
                .workers(1)
                .session_slots(SESSION_SLOTS)
                .pin_workers(false)
                .epoch_ms(epoch_ms)
                .basis_factors(basis_factors)
                // It has all basis factors; this is while the rows are loaded.
                .protocol(Protocol::default())
                // Baselines are measured here, and reports mark them.
                .allow_unserializable(true)
                .seed(seed);
            let database = Database::open(options)?;
            database.execute(workload.schema_sql())?;
            database.execute(workload.partitions_sql())?;
            database.execute(workload.procedures_sql())?;
            let mut sink = Sink {
                database: &database,
                loader: None,
                error: None,
            };
            workload.populate(seed, &mut sink);
            sink.end_table();
            if let Some(error) = sink.error {
                return Err(error);
            }
            let engine = database.engine();
            engine.set_protocol(protocol)?;
            let handles: Result<Vec<ProcedureHandle>> = workload
                .procedures()
                .iter()
                .map(|procedure| engine.procedure(procedure.name))
                .collect();
            Ok(Session {
                workload,
                seed,
                configuration: protocol,
                handles: handles?,
                database,
            })
        })
    }

    /// Lets each of `cores` cores make calls. `meanwhile` runs on the calling thread as soon as
    /// they have started.
    ///
    /// # Errors
    /// The error of a call that was rejected for a reason that the workload does not know.
    pub(crate) fn make_calls(
        &self,
        cores: usize,
        until: Until,
        meanwhile: impl FnOnce(),
    ) -> Result<Done> {
        let drivers: Result<Vec<Driver>> = (0..cores)
            .map(|position| self.database.engine().driver(position))
            .collect();
        let pairs = drivers?
            .into_iter()
            .zip(self.workload.terminals(self.seed, cores));
        let failure = Mutex::new(None);
        let mut sum = Done::new(self.handles.len());
        thread::scope(|scope| {
            let failure = &failure;
            let running: Vec<_> = pairs
                .enumerate()
                .map(|(position, (driver, terminal))| {
                    scope.spawn(move || self.work(position, driver, terminal, until, failure))
                })
                .collect();
            meanwhile();
            for core in running {
                match core.join() {
                    Ok(done) => sum.add(&done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        match lock(&failure).take() {
            Some(error) => Err(error),
            None => Ok(sum),
        }
    }

    /// One core, from its first call to its last.
    fn work(
        &self,
        position: usize,
        mut driver: Driver,
        terminal: Terminal,
        until: Until,
        failure: &Mutex<Option<Error>>,
    ) -> Done {
        thread::pin_to_core(position);
        let mut caller = TerminalCaller {
            session: self,
            terminal,
            until,
            failure,
            done: Done::new(self.handles.len()),
            in_flight: Vec::new(),
            is_measuring: matches!(until, Until::Calls(_)),
            calls: 0,
            now: time::now_ns(),
            is_expired: None,
            has_failed: false,
        };
        loop {
            driver.drive(&mut caller);
            if caller.is_measuring || caller.is_done() {
                break;
            }
            caller.is_measuring = true;
            driver.reset_statistics();
        }
        if let Some(number) = caller.is_expired {
            let error = starved(self.handles[number].name(), &driver.statistics());
            lock(failure).get_or_insert(error);
        }
        caller.done.statistics = driver.statistics();
        caller.done.totals = caller.terminal.totals().clone();
        caller.done
    }

    /// Records from now on what transactions read and write.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn record(&self) -> std::result::Result<(), String> {
        let engine = self.database.engine();
        let started = sim::quiet(|| engine.record_history(HISTORY_BYTES));
        started.map_err(|error| format!("{error:#}"))
    }

    /// Judges what was recorded. Returns the numbers of transactions and of dependencies.
    ///
    /// # Errors
    /// What is wrong with the history.
    pub(crate) fn judge(&self) -> std::result::Result<(u64, u64), String> {
        sim::quiet(|| {
            let history = self.database.engine().take_history();
            let history = history.map_err(|error| format!("{error:#}"))?;
            let options = kiln_checker::Options {
                order: match self.configuration.is_strict() {
                    true => kiln_checker::Order::Strict,
                    false => kiln_checker::Order::Serializable,
                },
                threads: 1,
                ..kiln_checker::Options::default()
            };
            let report =
                kiln_checker::check(&history, &options).map_err(|error| error.to_string())?;
            match report.is_serializable() {
                true => Ok((report.transactions, report.edges)),
                false => Err(report.to_string()),
            }
        })
    }

    /// Audits the database, quietly.
    pub(crate) fn audit(&self, done: &Done) -> Result<AuditReport> {
        sim::quiet(|| {
            // Judged under a protocol of its own, which is not the one under test.
            self.database.engine().set_protocol(Protocol::default())?;
            audit(&self.database, self.workload, self.seed, &done.totals)
        })
    }
}

/// A call in flight.
struct Made {
    call: Call,
    /// When it was made.
    at_ns: u64,
}

/// A core's terminal, and its calls in flight.
struct TerminalCaller<'a> {
    session: &'a Session<'a>,
    terminal: Terminal,
    until: Until,
    failure: &'a Mutex<Option<Error>>,
    done: Done,
    /// By ticket.
    in_flight: Vec<Option<Made>>,
    is_measuring: bool,
    /// Calls made.
    calls: u64,
    /// When the last call ended.
    now: u64,
    /// The procedure of a call that did not end in time.
    is_expired: Option<usize>,
    has_failed: bool,
}

impl TerminalCaller<'_> {
    /// Whether the run is over.
    fn is_done(&self) -> bool {
        self.has_failed
            || match self.until {
                Until::Calls(count) => self.calls >= count,
                Until::Time { end_ns, .. } => self.now >= end_ns,
            }
    }

    fn tell_terminal(&mut self, call: Call, outcome: Outcome, answer: &Answer<'_>) {
        let number = call.procedure.0;
        match outcome {
            Outcome::Committed => {
                let rows = match self.session.workload.procedures()[number].rows_wanted {
                    true => answer.values(&self.session.handles[number]),
                    false => Ok(Vec::new()),
                };
                self.terminal.committed(call, &rows.unwrap_or_default());
            }
            Outcome::Rejected(error) => {
                let expected = self.session.workload.expected_rejections();
                // Baselines that do not serialize reject for any reason.
                if self.session.configuration.protocol.is_serializable()
                    && !expected.contains(&error.state().as_str())
                {
                    lock(self.failure).get_or_insert(error);
                    self.has_failed = true;
                }
            }
            Outcome::Expired => {
                self.is_expired.get_or_insert(number);
                self.has_failed = true;
            }
        }
    }
}

impl Caller for TerminalCaller<'_> {
    fn next(&mut self, request: &mut Request) -> Asked<'_> {
        if self.is_over() {
            return Asked::Pause;
        }
        self.calls += 1;
        charge(Work::Call);
        let call = self.terminal.next(&mut request.arguments);
        // Benchmarks on real cores read the clock twice a call, for the latency.
        let now = time::now_ns();
        let handle = &self.session.handles[call.procedure.0];
        let free = self.in_flight.iter().position(Option::is_none);
        let ticket = free.unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        request.ticket = ticket as u64;
        request.deadline_ns = matches!(self.until, Until::Calls(_)).then_some(now + PATIENCE_NS);
        self.in_flight[ticket] = Some(Made { call, at_ns: now });
        Asked::Call(handle)
    }

    fn is_over(&mut self) -> bool {
        let begins = match self.until {
            Until::Time { begin_ns, .. } => !self.is_measuring && self.now >= begin_ns,
            Until::Calls(_) => false,
        };
        begins || self.is_done()
    }

    fn ended(&mut self, ticket: u64, outcome: Outcome, answer: &Answer<'_>) {
        self.now = time::now_ns();
        let made = self.in_flight[ticket as usize].take();
        let Made { call, at_ns } = made.expect("a call ends that was made, once");
        let (number, committed) = (call.procedure.0, matches!(outcome, Outcome::Committed));
        self.tell_terminal(call, outcome, answer);
        if self.is_measuring && !self.has_failed {
            self.done.committed[number] += u64::from(committed);
            if committed {
                self.done.latencies_ns[number].push(self.now - at_ns);
            }
            self.done.rejected += u64::from(!committed);
        }
    }
}

/// Virtual time after which a call of a test is given up: millions of scheduling points.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Says that a call was repeated and repeated.
fn starved(procedure: &str, statistics: &Statistics) -> Error {
    let aborts = AbortCause::ALL.into_iter().filter_map(|cause| {
        let count = statistics.aborts[cause.number()];
        (count > 0).then(|| format!("{} {count}", cause.name()))
    });
    let aborts: Vec<String> = aborts.collect();
    Error::internal(format!(
        "a call of {procedure} has not ended after {} s of virtual time; failed attempts of its core: {}",
        PATIENCE_NS / 1_000_000_000,
        aborts.join(", ")
    ))
}

/// What each worker's history may take.
const HISTORY_BYTES: usize = 256 << 20;

/// Sessions of the loader and of the audit; the drivers have the other worker slots.
const SESSION_SLOTS: usize = 28;

/// Gives the rows of a population to a loader for each table in turn.
struct Sink<'a> {
    database: &'a Database,
    loader: Option<kiln_engine::Loader>,
    /// The first error; what follows it is ignored.
    error: Option<Error>,
}

impl Sink<'_> {
    fn note(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.loader = None;
    }

    fn end_table(&mut self) {
        if let Some(loader) = self.loader.take()
            && let Err(error) = loader.finish()
        {
            self.note(error);
        }
    }
}

impl RowSink for Sink<'_> {
    fn table(&mut self, name: &str, columns: &[&str], _rows_expected: u64) {
        self.end_table();
        if self.error.is_none() {
            match self.database.engine().loader(name, columns) {
                Ok(loader) => self.loader = Some(loader),
                Err(error) => self.note(error),
            }
        }
    }

    fn row(&mut self, values: &[Value]) {
        if let Some(loader) = &mut self.loader
            && let Err(error) = loader.row(values)
        {
            self.note(error);
        }
    }
}
