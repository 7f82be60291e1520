//! Measurements: one workload on larger and larger machines.

use std::collections::BTreeMap;

use kiln_engine::Configuration;
use kiln_platform::atomic::{AtomicUsize, Ordering};
use kiln_platform::sim::{self, Config, Schedule};
use kiln_platform::sync::{Mutex, lock};
use kiln_platform::{thread, time};

use crate::outcome::{HotLine, Point};
use crate::plan::{Measurement, Plan};
use crate::session::{Session, Until};
use crate::{json, names, report};

/// Carries out a measurement. Returns whether every audit passed.
///
/// # Errors
/// Why there is no result.
pub(crate) fn measure(plan: &Plan, measurement: &Measurement) -> Result<bool, String> {
    report::show(&report::heading(plan, measurement))?;
    let points = measure_all(plan, measurement)?;
    report::show(&report::measured(plan, &points))?;
    json::write(plan, || json::measured(plan, measurement, &points))?;
    Ok(points.iter().all(|point| point.audit.passed()))
}

/// All points, several at a time, in the plan's order.
fn measure_all(plan: &Plan, measurement: &Measurement) -> Result<Vec<Point>, String> {
    let pairs: Vec<(Configuration, usize)> = plan
        .protocols
        .iter()
        .flat_map(|protocol| plan.cores.iter().map(|cores| (*protocol, *cores)))
        .collect();
    let next = AtomicUsize::new(0);
    let points = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..plan.jobs.min(pairs.len()) {
            scope.spawn(|| {
                loop {
                    // Relaxed: a position carries nothing but itself.
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some((protocol, cores)) = pairs.get(position) else {
                        break;
                    };
                    let begin = time::now_ns();
                    let point = measure_one(plan, measurement, *protocol, *cores, *cores);
                    let seconds = (time::now_ns() - begin) as f64 / 1e9;
                    if let Ok(point) = &point {
                        eprintln!(
                            "{protocol}, {cores} cores: {seconds:.1} s, {:.1} million accesses/s",
                            point.report.accesses as f64 / seconds / 1e6
                        );
                    }
                    lock(&points).insert(position, point);
                }
            });
        }
    });
    let points = std::mem::take(&mut *lock(&points));
    points.into_values().collect()
}

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Measures one point: a protocol with a number of workers, each on a core of its own, of a
/// machine that may have more.
///
/// # Errors
/// Why there is no result.
pub(crate) fn measure_one(
    plan: &Plan,
    measurement: &Measurement,
    protocol: Configuration,
    workers: usize,
    cores: usize,
) -> Result<Point, String> {
    /// The engine's usual one.
    const EPOCH_MS: u64 = 10;
    let mut config = Config::new(Schedule::LeastTime, plan.seed);
    config.cores = cores;
    config.machine = measurement.machine.clone();
    let warmup_ns = (measurement.warmup_ms * 1e6) as u64;
    let measured_ns = (measurement.milliseconds * 1e6) as u64;
    let body = || -> Result<_, String> {
        let text = |error: kiln_storage::error::Error| format!("{error:#}");
        let session = Session::open(
            &plan.workload,
            protocol,
            plan.basis_factors,
            EPOCH_MS,
            plan.seed,
        )
        .map_err(text)?;
        let memory = sim::quiet(|| session.database.engine().memory());
        let bytes: usize = memory
            .iter()
            .map(|table| table.record_bytes + table.index_bytes())
            .sum();
        sim::assume_warm((bytes / LINE_BYTES) as u64);
        if plan.check {
            session.record()?;
        }
        let begin_ns = time::now_ns() + warmup_ns;
        let end_ns = begin_ns + measured_ns;
        let until = Until::Time { begin_ns, end_ns };
        let mut seen = None;
        let done = session.make_calls(workers, until, || {
            thread::sleep(begin_ns.saturating_sub(time::now_ns()));
            sim::reset_statistics();
            thread::sleep(end_ns.saturating_sub(time::now_ns()));
            let addresses = sim::hottest(measurement.lines);
            seen = Some((sim::statistics(), addresses));
        });
        let mut done = done.map_err(text)?;
        let Some((statistics, addresses)) = seen else {
            unreachable!("the calls end after what happens meanwhile")
        };
        let name = |(address, heat): &(usize, sim::LineHeat)| HotLine {
            name: names::of_line(&session.database, *address),
            transfers: heat.transfers,
            queued_ps: heat.queued_ps,
        };
        let lines = sim::quiet(|| addresses.iter().map(name).collect());
        if plan.check {
            done.judged = session.judge()?;
        }
        let batches = session.database.engine().batches_chosen();
        let audit = session.audit(&done).map_err(text)?;
        Ok((done, statistics, lines, batches, audit))
    };
    let run = sim::run(&config, body).map_err(|failure| failure.to_string())?;
    // What was made in a run lies in its memory, which is used again only when it is gone: so
    // copies.
    let (done, statistics, lines, batches, audit) = match &run.value {
        Ok(made) => made.clone(),
        Err(what) => return Err(what.clone()),
    };
    Ok(Point {
        protocol,
        cores: workers,
        seconds: measured_ns as f64 / 1e9,
        done,
        statistics,
        lines,
        batches,
        audit,
        report: run.report,
    })
}

#[cfg(test)]
mod tests {
    use kiln_machine::Preset;
    use kiln_protocols::batches::{BatchStatistics, Step};
    use kiln_workloads::Workload;

    use kiln_engine::{BasisFactors, Protocol};

    use super::*;
    use crate::plan::Mode;

    /// SmallBank with so many accounts.
    fn smallbank(accounts: &str) -> Workload {
        let mut workload = Workload::by_name("smallbank").expect("a workload");
        workload.set("accounts", accounts).expect("a setting");
        workload
    }

    /// What `strife` does with batches of so many calls on some virtual cores, and the report.
    fn batches(
        cores: usize,
        size: u32,
        milliseconds: f64,
        warmup_ms: f64,
    ) -> (BatchStatistics, String) {
        let measurement = Measurement {
            machine: Preset::named("strife").expect("a machine"),
            milliseconds,
            warmup_ms,
            lines: 0,
        };
        let mut basis_factors = BasisFactors::default();
        basis_factors.protocols.batches.size = size;
        let plan = Plan {
            workload: smallbank("1000"),
            protocols: vec![Protocol::Strife.into()],
            cores: vec![cores],
            seed: 3,
            mode: Mode::Measure(measurement.clone()),
            check: false,
            basis_factors,
            jobs: 1,
            json: None,
        };
        let points = measure_all(&plan, &measurement).expect("points");
        let text = report::measured(&plan, &points);
        (points[0].done.statistics.batches, text)
    }

    /// The steps of batches follow each other without a gap, so they last as long as the run; and
    /// what workers did in them fits in.
    #[test]
    fn batches_and_their_steps_are_counted() {
        const CORES: usize = 4;
        let (batches, text) = batches(CORES, 128, 3.0, 1.0);
        assert!(batches.batches > 3, "{text}");
        let each = batches.transactions / batches.batches;
        assert!((96..=144).contains(&each), "{text}");
        let lasted: u64 = batches.steps.iter().map(|step| step.lasted).sum();
        assert!((2_500_000..4_500_000).contains(&lasted), "{text}");
        for step in Step::ALL {
            let time = batches.step(step);
            assert!(time.worked == 0 || time.transactions > 0, "{text}");
            if !matches!(step, Step::Plan | Step::Prepare) {
                // One that has begun before the run's begin or ends after its end is counted once.
                let most = time.lasted * CORES as u64 * 3 / 2;
                assert!(time.worked <= most, "{}: {text}", step.name());
            }
        }
        let prepared = batches.step(Step::Prepare).transactions;
        let fused = batches.step(Step::Fuse).transactions;
        assert!(prepared.abs_diff(fused) <= 2 * each, "{text}");
        assert!(text.contains("conflict-free"), "{text}");
    }

    /// Workers without calls look after their memory every twenty milliseconds. That is a
    /// transaction to all protocols, but no reason to run a batch with locks which is collected
    /// then.
    #[test]
    fn idle_workers_do_not_disturb_a_batch() {
        const SIZE: u32 = 60_000;
        let (batches, text) = batches(1, SIZE, 1.0, 0.0);
        assert_eq!(batches.transactions, u64::from(SIZE), "{text}");
        let collecting = [Step::Plan, Step::Prepare].map(|step| batches.step(step).worked);
        assert!(collecting.iter().sum::<u64>() > 20_000_000, "{text}");
        assert!(batches.spot > 0, "{text}");
        let without_locks = batches.step(Step::ConflictFree).transactions;
        assert!(without_locks > u64::from(SIZE) / 2, "{text}");
    }

    /// Each request of a SmallBank call is a cache line: it goes to the owner of its lock with the
    /// call's demand, and the next call's comes back to the worker.
    #[test]
    fn requests_for_locks_move_between_caches() {
        let measurement = Measurement {
            machine: Preset::named("orthrus").expect("a machine"),
            milliseconds: 0.5,
            warmup_ms: 0.2,
            lines: 0,
        };
        let plan = Plan {
            workload: smallbank("1000"),
            protocols: vec![Protocol::Orthrus.into()],
            cores: vec![2],
            seed: 3,
            mode: Mode::Measure(measurement.clone()),
            check: false,
            basis_factors: BasisFactors::default(),
            jobs: 1,
            json: None,
        };
        let points = measure_all(&plan, &measurement).expect("points");
        let text = report::measured(&plan, &points);
        // Four of the rings, two of each demand, and the requests, of which there are more than
        // two.
        let moved = points[0].per_commit(points[0].statistics.lines_transferred());
        assert!(moved > 12.0, "{moved}: {text}");
    }

    #[test]
    fn the_same_plan_gives_the_same_report() {
        let measurement = Measurement {
            machine: Preset::named("orthrus").expect("a machine"),
            milliseconds: 0.2,
            warmup_ms: 0.1,
            lines: 5,
        };
        let mut plan = Plan {
            workload: smallbank("20"),
            protocols: vec![
                Protocol::Silo.into(),
                Protocol::TwoPhaseLockingNoWait.into(),
            ],
            cores: vec![1, 4, 20],
            seed: 3,
            mode: Mode::Measure(measurement.clone()),
            check: true,
            basis_factors: BasisFactors::default(),
            jobs: 2,
            json: None,
        };
        let points = measure_all(&plan, &measurement).expect("points");
        let text = report::measured(&plan, &points);
        assert_eq!(points.len(), 6);
        for point in &points {
            assert!(point.audit.passed(), "{text}");
            assert!(
                point.committed() > 0 && point.done.judged.0 >= point.committed(),
                "{text}"
            );
        }
        let moved = |point: &Point| point.per_commit(point.statistics.lines_transferred());
        assert!(moved(&points[0]) < 0.1 && moved(&points[2]) > 1.0, "{text}");
        assert!(
            text.contains("savings[") || text.contains("checking["),
            "{text}"
        );
        plan.jobs = 1;
        let again = measure_all(&plan, &measurement).expect("points");
        assert_eq!(report::measured(&plan, &again), text);
    }
}
