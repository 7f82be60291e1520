//! Tests: one workload, many schedules.

use std::collections::BTreeMap;
use std::ops::Range;

use kiln_engine::Configuration;
use kiln_platform::atomic::{AtomicU64, Ordering};
use kiln_platform::sim::{Config, Failure, Report, Schedule};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{sim, thread, time};

use crate::outcome::{Finding, Tested};
use crate::plan::{Mode, Plan, Test, TestSchedule};
use crate::session::{Done, Session, Until};
use crate::{json, report};

/// What one seed did, or what went wrong.
type SeedRun = Result<(Done, Report), String>;

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
    json::write(plan, || json::tested(plan, test, &all))?;
    Ok(all.iter().all(|tested| tested.failures.is_empty()))
}

/// Runs all seeds of one protocol and number of cores, several at a time.
fn test_one(plan: &Plan, test: &Test, protocol: Configuration, cores: usize) -> Tested {
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
    let seeds = plan.seed..plan.seed.saturating_add(test.seeds);
    // Batches, so that a test that fails again and again ends early; each a few rounds of all jobs.
    let batch = plan.jobs as u64 * 8;
    let mut first = seeds.start;
    while first < seeds.end && tested.failures.len() < FAILURES_MAX {
        let end = seeds.end.min(first.saturating_add(batch));
        for (seed, run) in (first..end).zip(run_seeds(plan, test, protocol, cores, first..end)) {
            if tested.failures.len() < FAILURES_MAX {
                tested.add(plan, test, seed, run);
            }
        }
        first = end;
    }
    tested
}

/// Runs seeds on several real cores. Returns what they did, in order.
fn run_seeds(
    plan: &Plan,
    test: &Test,
    protocol: Configuration,
    cores: usize,
    seeds: Range<u64>,
) -> Vec<SeedRun> {
    let next = AtomicU64::new(seeds.start);
    let runs = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..plan.jobs {
            scope.spawn(|| {
                loop {
                    // Relaxed: a seed carries nothing but itself.
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let run = run_seed(plan, test, protocol, cores, seed);
                    lock(&runs).insert(seed, run);
                }
            });
        }
    });
    let runs = std::mem::take(&mut *lock(&runs));
    runs.into_values().collect()
}

impl Tested {
    /// Adds what one seed did.
    fn add(&mut self, plan: &Plan, test: &Test, seed: u64, run: SeedRun) {
        self.seeds += 1;
        match run {
            Ok((done, report)) => {
                self.committed += done.committed.iter().sum::<u64>();
                self.rejected += done.rejected;
                self.aborts += done.statistics.aborts_total();
                self.judged.0 += done.judged.0;
                self.judged.1 += done.judged.1;
                self.accesses += report.accesses;
                self.switches += report.switches;
                self.digest = (self.digest ^ report.trace_hash).rotate_left(9);
            }
            Err(what) => {
                let test = Test {
                    seeds: 1,
                    ..test.clone()
                };
                let once = Plan {
                    protocols: vec![self.protocol],
                    cores: vec![self.cores],
                    seed,
                    mode: Mode::Test(test),
                    ..plan.clone()
                };
                let command = format!("cargo sim {}", once.arguments());
                self.failures.push(Finding {
                    seed,
                    what,
                    command,
                });
            }
        }
    }
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
fn run_seed(plan: &Plan, test: &Test, protocol: Configuration, cores: usize, seed: u64) -> SeedRun {
    /// Epochs as short as they can be, so that tests see them change.
    const EPOCH_MS: u64 = 1;
    let body = || -> Result<Done, String> {
        let text = |error: kiln_storage::error::Error| format!("{error:#}");
        let session = Session::open(&plan.workload, protocol, plan.basis_factors, EPOCH_MS, seed)
            .map_err(text)?;
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
    // What was made in a run lies in its memory, which is used again only when it is gone: so
    // copies.
    match &run.value {
        Ok(done) => Ok((done.clone(), run.report.clone())),
        Err(what) => Err(what.clone()),
    }
}

#[cfg(test)]
mod tests {
    use kiln_workloads::Workload;

    use kiln_engine::{BasisFactors, Protocol};

    use super::*;

    fn plan(workload: &str, settings: &[(&str, &str)], seeds: u64, schedule: TestSchedule) -> Plan {
        let mut workload = Workload::by_name(workload).expect("a workload");
        for (option, value) in settings {
            workload.set(option, value).expect("a setting");
        }
        let test = Test {
            schedule,
            seeds,
            calls: 10,
            step_ns: Test::STEP_NS,
        };
        Plan {
            workload,
            protocols: Protocol::serializable().map(Configuration::from).collect(),
            cores: vec![3],
            seed: 1,
            mode: Mode::Test(test),
            check: true,
            basis_factors: BasisFactors::default(),
            jobs: 2,
            json: None,
        }
    }

    fn tested(plan: &Plan) -> Vec<Tested> {
        let Mode::Test(test) = &plan.mode else {
            panic!("a test")
        };
        let of = |protocol: &Configuration| test_one(plan, test, *protocol, plan.cores[0]);
        plan.protocols.iter().map(of).collect()
    }

    const SCHEDULES: [TestSchedule; 2] = [
        TestSchedule::Random,
        TestSchedule::Pct {
            depth: 3,
            steps: 500,
        },
    ];

    /// Few rows, so that all transactions meet, with and without the other job at work.
    #[test]
    fn tests_pass_and_do_the_same_again() {
        let small_tpcc = [("items", "20"), ("customers-per-district", "3")];
        let workloads = [
            ("smallbank", &[("accounts", "3")][..], 5),
            ("tpcc", &small_tpcc, 2),
        ];
        for (workload, settings, seeds) in workloads {
            for schedule in SCHEDULES {
                let mut plan = plan(workload, settings, seeds, schedule);
                let first = tested(&plan);
                for tested in &first {
                    let failures: Vec<&String> = tested
                        .failures
                        .iter()
                        .map(|finding| &finding.what)
                        .collect();
                    assert!(failures.is_empty(), "{failures:?}");
                    assert_eq!(tested.seeds, seeds);
                    assert_eq!(tested.judged.0, seeds * 3 * 10, "{}", tested.protocol);
                }
                plan.jobs = 1;
                let again = tested(&plan);
                assert_eq!(report::tested(&plan, &first), report::tested(&plan, &again));
            }
        }
    }

    /// The others, with a few seeds each.
    #[test]
    fn every_small_workload_passes() {
        for workload in Workload::all() {
            let mut plan = plan(workload.name(), &[], 3, TestSchedule::Random);
            plan.workload = workload.small();
            for tested in tested(&plan) {
                let what = tested.failures.iter().map(|finding| &finding.what);
                let what: Vec<&String> = what.collect();
                let name = plan.workload.name();
                assert!(
                    what.is_empty(),
                    "{name} under {}: {what:?}",
                    tested.protocol
                );
                assert!(tested.judged.0 > 0, "{name} under {}", tested.protocol);
            }
        }
    }

    #[test]
    fn a_failure_comes_with_the_command_that_repeats_it() {
        // Loading fails: the population does not fit the worker slots of so many cores.
        let mut plan = plan("smallbank", &[("accounts", "2")], 20, TestSchedule::Random);
        plan.cores = vec![5_000];
        plan.protocols = vec![Protocol::Silo.into()];
        let first = tested(&plan);
        assert_eq!(first[0].failures.len(), FAILURES_MAX);
        let finding = &first[0].failures[1];
        assert_eq!(finding.seed, 2);
        assert_eq!(
            finding.command,
            "cargo sim smallbank --protocol silo --cores 5000 --seed 2 --schedule random --seeds 1 \
             --calls 10 --step-ns 500 --check --accounts 2"
        );
    }
}
