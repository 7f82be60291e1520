//! A whole benchmark, from the empty database to the report.

use std::io::Write;
use std::path::Path;

use kiln_engine::{BasisFactors, Driver, Engine, Logging, Protocol};
use kiln_platform::disk::{Directory, Kind};
use kiln_platform::file;
use kiln_sql::{Database, Options};
use kiln_storage::error::{Error, Result};
use kiln_workloads::{Totals, Workload};

use crate::audit::audit;
use crate::figures::Point;
use crate::helpers::SESSION_SLOTS;
use crate::load::LoadFigures;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::run::Run;
use crate::{Plan, explain, json, load, report};

/// How a benchmark ended.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether every audit passed of a protocol that promises so.
    pub passed: bool,
    /// What was measured, in the order of [`Plan::points`].
    pub points: Vec<Point>,
    /// What loading took.
    pub load: LoadFigures,
}

/// Why a benchmark has no result: a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(format!("{error:#}"))
    }
}

/// A new database with the workload's tables and procedures, without rows, and with so many MiB
/// set aside.
///
/// # Errors
/// Those of the workload's scripts.
pub fn open(
    workload: &Workload,
    reserve_mib: usize,
    basis_factors: BasisFactors,
) -> Result<Database> {
    open_with(workload, reserve_mib, basis_factors, None, Options::new())
}

/// What a database has in force before and after its runs: the default protocol, which has all
/// basis factors, or one whose log keeps commands.
fn neutral(logging: Logging) -> Protocol {
    let is_wanted = |it: &Protocol| match logging {
        Logging::Values => *it == Protocol::default(),
        Logging::Commands => it.logs_commands() && !it.is_single_worker(),
    };
    let found = Protocol::ALL.into_iter().find(is_wanted);
    found.unwrap_or_default()
}

/// [`open`] with `workers` workers that run the calls of sessions; `None` where the benchmark's own
/// threads make the calls, and the one worker has nothing to do. `kept` says where the database is
/// kept, and how.
fn open_with(
    workload: &Workload,
    reserve_mib: usize,
    basis_factors: BasisFactors,
    workers: Option<usize>,
    kept: Options,
) -> Result<Database> {
    // Each run puts its own protocol in force.
    let protocol = neutral(kept.logging);
    let options = kept
        .workers(workers.unwrap_or(1))
        .session_slots(SESSION_SLOTS)
        .reserve_bytes(reserve_mib << 20)
        .basis_factors(basis_factors)
        .protocol(protocol)
        // Baselines are measured here, and reports mark them.
        .allow_unserializable(true)
        .pin_workers(workers.is_some());
    let database = Database::open(options)?;
    database.execute(workload.schema_sql())?;
    database.execute(workload.partitions_sql())?;
    database.execute(workload.procedures_sql())?;
    Ok(database)
}

/// A database with the workload's population of `seed` and so many MiB set aside, for measurements
/// of other kinds.
///
/// # Errors
/// Those of the workload's scripts and of loading.
pub fn loaded(workload: &Workload, seed: u64, reserve_mib: usize) -> Result<Database> {
    let database = open(workload, reserve_mib, BasisFactors::default())?;
    populate(&database, workload, seed)?;
    Ok(database)
}

/// A database with the plan's population, and with as many workers as its runs want: the one with
/// this number, from 1 on, of the benchmark.
fn load_anew(plan: &Plan, number: &mut usize) -> Result<(Database, LoadFigures)> {
    *number += 1;
    let data_dir = plan.data.as_ref().map(|path| path.join(number.to_string()));
    let workers = (!plan.sessions.is_empty()).then(|| plan.threads[0]);
    let (workload, factors) = (&plan.workload, plan.basis_factors);
    let kept = Options::new()
        .data_dir(data_dir)
        .logging(plan.logging)
        .recovery_target_s(plan.recovery_target_s);
    let database = open_with(workload, plan.reserve_mib, factors, workers, kept)?;
    let figures = populate(&database, workload, plan.seed)?;
    Ok((database, figures))
}

/// Checks that the directory of a benchmark's databases is empty or not there: a benchmark makes
/// its own tables, and removes nothing.
fn ensure_empty(path: &Path) -> std::result::Result<(), Failure> {
    let entries = match Directory::open(path).and_then(|directory| directory.list()) {
        Ok(entries) => entries,
        Err(error) if *error.kind() == Kind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Failure(format!(
                "{error}; name a new directory with --data"
            )));
        }
    };
    match entries.first() {
        None => Ok(()),
        Some(first) => Err(Failure(format!(
            "{} is not empty (it has {}), and a benchmark makes databases of its own: name a new directory with --data",
            path.display(),
            first.name
        ))),
    }
}

fn populate(database: &Database, workload: &Workload, seed: u64) -> Result<LoadFigures> {
    let progress = Progress::counting(&format!("Loading {}", workload.name()), "rows");
    let figures = load::load(database.engine(), workload, seed, &progress)?;
    progress.clear();
    Ok(figures)
}

/// Writes to standard output. That the reader went away (`| head`) is no reason to lose the JSON.
fn show(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
}

/// Carries out a plan: prints progress to stderr and the report to stdout, and writes the JSON.
///
/// # Errors
/// Why there is no result. An audit that failed is a result.
pub fn bench(plan: &Plan) -> std::result::Result<Verdict, Failure> {
    plan.validate().map_err(Failure)?;
    if let Some(path) = &plan.json {
        // Before the run, so that the user does not wait for a result that cannot be kept.
        file::ensure_writable(path).map_err(|error| Failure(format!("cannot write {error}")))?;
    }
    if let Some(path) = &plan.batch_svg {
        file::ensure_writable(path).map_err(|error| Failure(format!("cannot write {error}")))?;
    }
    if let Some(path) = &plan.data {
        ensure_empty(path)?;
    }
    let machine = Machine::current();
    show(&format!("{}\n", heading(plan, &machine)));
    let cores = machine.cores;
    let mut points: Vec<Point> = plan
        .points()
        .into_iter()
        .map(|(protocol, threads, sessions)| Point::new(protocol, threads, sessions, cores))
        .collect();
    let (mut load, mut databases) = (LoadFigures::default(), 0);
    for round in 0..plan.repeat {
        let (database, loaded) = load_anew(plan, &mut databases)?;
        if round == 0 {
            show(&format!("{}\n", loaded.line(&plan.workload)));
            load = loaded;
        }
        run_all(plan, round, &database, &mut points, true)?;
        drop(database);
        // A baseline that does not serialize may leave wrong rows, so each gets a database of its
        // own.
        let baselines = points
            .iter_mut()
            .filter(|point| !point.protocol.protocol.is_serializable());
        for point in baselines {
            let (database, _) = load_anew(plan, &mut databases)?;
            run_all(plan, round, &database, std::slice::from_mut(point), false)?;
        }
    }
    show(&report::report(&plan.workload, &points));
    for point in &points {
        let Some(batch) = &point.batch else { continue };
        show(&format!("\n{}", explain::text(batch)));
        if let Some(text) = explain::batches(&point.statistics().batches, point.threads) {
            show(&format!("\nOf all runs: {text}"));
        }
        if let Some(path) = &plan.batch_svg {
            let written = file::write(path, explain::svg(batch).as_bytes());
            written.map_err(|error| Failure(format!("cannot write {error}")))?;
            show(&format!(
                "Its access graph is drawn in {}.\n",
                path.display()
            ));
        }
    }
    if let Some(path) = &plan.json {
        let rows = json::rows(plan, &machine, &load, &points);
        let mut text = format!("{rows:#}");
        text.push('\n');
        file::write(path, text.as_bytes())
            .map_err(|error| Failure(format!("cannot write {error}")))?;
        show(&format!("\nResult written to {}.\n", path.display()));
    }
    let passed = points
        .iter()
        .filter(|point| point.protocol.protocol.is_serializable())
        .all(|point| point.audit.passed());
    Ok(Verdict {
        passed,
        points,
        load,
    })
}

/// What is going to be measured, and on what.
fn heading(plan: &Plan, machine: &Machine) -> String {
    let options = plan.workload.options().into_iter();
    let options: Vec<String> = options
        .map(|option| format!("{} {}", option.name, option.value))
        .collect();
    let mut factors = String::new();
    for (name, value) in plan.basis_factors.departures() {
        factors += &format!("basis factor not as recommended: {name} {value}\n");
    }
    format!(
        "{}\n{}, allocator {}\n{}: {}\n{factors}{} runs of {} s after {} s of warm-up, seed {}\n",
        plan.workload.description(),
        machine.line(),
        plan.allocator,
        plan.workload.name(),
        options.join(", "),
        plan.repeat,
        plan.seconds,
        plan.warmup,
        plan.seed,
    )
}

/// Makes one run of each kind that serializes, or of each that does not, on one database.
fn run_all(
    plan: &Plan,
    round: usize,
    database: &Database,
    points: &mut [Point],
    serializable: bool,
) -> std::result::Result<(), Failure> {
    let engine = database.engine();
    let (mut handles, mut columns) = (Vec::new(), Vec::new());
    for procedure in plan.workload.procedures() {
        let catalog = engine.catalog();
        let stored = catalog.require_procedure(procedure.name)?;
        let types = stored
            .columns()
            .iter()
            .map(|(_, data_type)| data_type.clone());
        columns.push(types.collect());
        handles.push(engine.procedure(procedure.name)?);
    }
    let run = Run {
        workload: &plan.workload,
        handles: &handles,
        columns: &columns,
        warmup_ns: (plan.warmup * 1e9) as u64,
        measured_ns: (plan.seconds * 1e9) as u64,
        any_rejection: !serializable,
    };
    let mut totals = Totals::new(handles.len());
    let progress = Progress::steps("Running", points.len() as u64);
    // There and back, round by round: what grows from run to run, such as the tables, then weighs
    // on all kinds alike.
    let mut order: Vec<usize> = (0..points.len())
        .filter(|position| points[*position].protocol.protocol.is_serializable() == serializable)
        .collect();
    if round % 2 == 1 {
        order.reverse();
    }
    for position in order {
        let point = &mut points[position];
        let (protocol, threads) = (point.protocol, point.threads);
        let oversubscribed = match point.oversubscribed {
            true => ", oversubscribed",
            false => "",
        };
        let plural = if threads == 1 { "" } else { "s" };
        let sessions = match point.sessions {
            Some(sessions) => format!(", {sessions} sessions"),
            None => String::new(),
        };
        progress.say(&format!(
            "Run {} of {}: {protocol}, {threads} thread{plural}{sessions}{oversubscribed}",
            round + 1,
            plan.repeat
        ));
        engine.set_protocol(protocol)?;
        if plan.explain_batch {
            engine.explain_batch();
        }
        let count = point.sessions.unwrap_or(threads);
        let terminals = (plan.workload).terminals_after(plan.seed, count, &totals);
        let before = engine.log().map(|log| log.statistics());
        let mut figures = match point.sessions {
            Some(_) => run.make_with_sessions(engine, terminals, || progress.tick())?,
            None => run.make(drivers(engine, threads)?, terminals, || progress.tick())?,
        };
        let after = engine.log().map(|log| log.statistics());
        figures.log = after
            .zip(before)
            .map(|(after, before)| after.since(&before));
        figures.recovery_estimate_s = engine.recovery_estimate_s();
        totals.merge(&figures.totals);
        point.runs.push(figures);
        if let Some(batch) = engine.explained_batch() {
            point.batch = Some(batch);
        }
        // The audit is judged under a protocol of its own, under which its queries run in parallel.
        engine.set_protocol(neutral(plan.logging))?;
        let report = audit(database, &plan.workload, plan.seed, &totals)?;
        point.audit.add(report);
        progress.advance(1);
    }
    progress.clear();
    Ok(())
}

fn drivers(engine: &Engine, threads: usize) -> Result<Vec<Driver>> {
    (0..threads)
        .map(|position| engine.driver(position))
        .collect()
}
