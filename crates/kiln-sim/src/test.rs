//! Tests: one workload, many schedules.

use kiln_engine::Protocol;
use kiln_platform::sim::{Config, Failure, Report, Schedule};
use kiln_platform::{sim, time};

use crate::plan::{Mode, Plan, Test, TestSchedule};
use crate::session::{Done, Session, Until};
use crate::{json, report};

/// What the seeds of one protocol and number of cores did.
#[derive(Clone, Debug)]
pub(crate) struct Tested {
    /// The protocol.
    pub(crate) protocol: Protocol,
    /// The number of cores.
    pub(crate) cores: usize,
    /// Seeds that ran.
    pub(crate) seeds: u64,
    /// Calls that committed.
    pub(crate) committed: u64,
    /// Calls that were rejected.
    pub(crate) rejected: u64,
    /// Attempts that failed.
    pub(crate) aborts: u64,
    /// Transactions judged, and dependencies between them.
    pub(crate) judged: (u64, u64),
    /// Accesses to shared memory.
    pub(crate) accesses: u64,
    /// Switches between threads.
    pub(crate) switches: u64,
    /// A digest of all runs' traces.
    pub(crate) digest: u64,
    /// What went wrong.
    pub(crate) failures: Vec<Finding>,
}

/// A run that went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Its seed.
    pub(crate) seed: u64,
    /// What went wrong.
    pub(crate) what: String,
    /// The command that makes it happen again.
    pub(crate) command: String,
}

/// Failures of one protocol and number of cores after which its other seeds are left out.
const FAILURES_MAX: usize = 5;

/// Carries out a test. Returns whether nothing went wrong.
///
/// # Errors
/// Why there is no result.
pub(crate) fn test(plan: &Plan, test: &Test) -> Result<bool, String> {
    report::show(&report::test_heading(plan, test))?;
    let mut all = Vec::new();
    for &protocol in &plan.protocols {
        for &cores in &plan.cores {
            let begin = time::now_ns();
            let tested = test_one(plan, test, protocol, cores);
            let seconds = (time::now_ns() - begin) as f64 / 1e9;
            eprintln!(
                "{protocol}, {cores} cores: {:.1} s, {:.1} million accesses/s",
                seconds,
                tested.accesses as f64 / seconds / 1e6
            );
            for finding in &tested.failures {
                report::show(&report::finding(protocol, cores, finding))?;
            }
            all.push(tested);
        }
    }
    report::show(&report::tested(plan, &all))?;
    json::write(plan, || json::tested(plan, &all))?;
    Ok(all.iter().all(|tested| tested.failures.is_empty()))
}

fn test_one(plan: &Plan, test: &Test, protocol: Protocol, cores: usize) -> Tested {
    let mut tested = Tested {
        protocol,
        cores,
        seeds: 0,
        committed: 0,
        rejected: 0,
        aborts: 0,
        judged: (0, 0),
        accesses: 0,
        switches: 0,
        digest: 0,
        failures: Vec::new(),
    };
    for seed in plan.seed..plan.seed.saturating_add(test.seeds) {
        tested.seeds += 1;
        match run_seed(plan, test, protocol, cores, seed) {
            Ok((done, report)) => {
                tested.committed += done.committed.iter().sum::<u64>();
                tested.rejected += done.rejected;
                tested.aborts += done.statistics.aborts_total();
                tested.judged.0 += done.judged.0;
                tested.judged.1 += done.judged.1;
                tested.accesses += report.accesses;
                tested.switches += report.switches;
                tested.digest = (tested.digest ^ report.trace_hash).rotate_left(9);
            }
            Err(what) => {
                let once = Plan {
                    protocols: vec![protocol],
                    cores: vec![cores],
                    seed,
                    mode: Mode::Test(Test {
                        seeds: 1,
                        ..test.clone()
                    }),
                    ..plan.clone()
                };
                let command = format!("cargo sim {}", once.arguments());
                tested.failures.push(Finding {
                    seed,
                    what,
                    command,
                });
                if tested.failures.len() == FAILURES_MAX {
                    break;
                }
            }
        }
    }
    tested
}

/// The configuration of one run.
fn config(test: &Test, cores: usize, seed: u64) -> Config {
    let schedule = match test.schedule {
        TestSchedule::Random => Schedule::Random,
        TestSchedule::Pct { depth, steps } => Schedule::Pct { depth, steps },
    };
    let mut config = Config::new(schedule, seed);
    config.cores = cores;
    config.step_ns = test.step_ns;
    config
}

/// One run and its audit; an error says what went wrong.
fn run_seed(
    plan: &Plan,
    test: &Test,
    protocol: Protocol,
    cores: usize,
    seed: u64,
) -> Result<(Done, Report), String> {
    /// Epochs as short as they can be, so that tests see them change.
    const EPOCH_MS: u64 = 1;
    let body = || -> Result<Done, String> {
        let text = |error: kiln_storage::error::Error| format!("{error:#}");
        let session = Session::open(&plan.workload, protocol, EPOCH_MS, seed).map_err(text)?;
        if plan.check {
            session.record()?;
        }
        let mut done = session
            .make_calls(cores, Until::Calls(test.calls), || ())
            .map_err(text)?;
        if plan.check {
            done.judged = session.judge()?;
        }
        let audit = session.audit(&done).map_err(text)?;
        match audit.passed() {
            true => Ok(done),
            false => Err(report::violations(&audit)),
        }
    };
    let run = sim::run(&config(test, cores, seed), body);
    let run = run.map_err(|failure: Failure| failure.to_string())?;
    // Texts made in a run lie in its memory, which is used again only when they are gone.
    let done = run.value.map_err(|what| what.as_str().to_owned())?;
    Ok((done, run.report))
}
