//! Results as JSON: one row for each protocol and number of cores, each complete in itself.

use kiln_lab::json::joined;
use kiln_lab::{explain, machine};
use kiln_platform::file;
use kiln_procedure::AbortCause;
use kiln_protocols::phases::Phase;
use serde_json::{Map, Value, json};

use crate::latency;
use crate::outcome::{Point, Tested};
use crate::plan::{Measurement, Plan, Test, TestSchedule};
use crate::report::{shares, show};

/// Writes the plan's file, if it wants one.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(plan: &Plan, rows: impl FnOnce() -> Value) -> Result<(), String> {
    let Some(path) = &plan.json else {
        return Ok(());
    };
    let text = format!("{:#}\n", rows());
    file::write(path, text.as_bytes()).map_err(|error| format!("cannot write {error}"))?;
    show(&format!("\nResult written to {}.\n", path.display()))
}

fn options(plan: &Plan) -> Value {
    let options = plan.workload.options().into_iter();
    Value::Object(
        options
            .map(|option| (option.name.to_owned(), Value::from(option.value)))
            .collect::<Map<_, _>>(),
    )
}

/// Adds what the plan chose to a row, and how the program was built.
fn with_choices(plan: &Plan, row: Value) -> Value {
    // Without `..`, here and below: what can differ between two runs stands in their rows.
    let Plan {
        workload,
        protocols: _,
        cores: _,
        basis_factors,
        seed: _,
        mode: _,
        check,
        jobs: _,
        json: _,
    } = plan;
    let choices = json!({
        "workload": workload.name(),
        "options": options(plan),
        "basis_factors": kiln_lab::json::basis_factors(basis_factors),
        "checked": check,
        "build": kiln_lab::json::build(),
        "commit": machine::commit(),
    });
    joined(choices, row)
}

/// The schedule of a test.
fn schedule(schedule: TestSchedule) -> Value {
    match schedule {
        TestSchedule::Random => json!({ "name": "random" }),
        TestSchedule::Pct { depth, steps } => {
            json!({ "name": "pct", "depth": depth, "steps": steps })
        }
    }
}

fn named<T: Into<Value>>(
    names: impl IntoIterator<Item = &'static str>,
    values: impl IntoIterator<Item = T>,
) -> Value {
    let pairs = names.into_iter().zip(values);
    Value::Object(
        pairs
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect(),
    )
}

/// The rows of a test.
pub(crate) fn tested(plan: &Plan, test: &Test, all: &[Tested]) -> Value {
    let Test {
        schedule: order,
        seeds: _,
        calls,
        step_ns,
    } = test;
    let row = |tested: &Tested| {
        let failures = tested.failures.iter().map(|finding| {
            json!({ "seed": finding.seed, "what": finding.what, "command": finding.command })
        });
        let row = json!({
            "protocol": tested.protocol.name(),
            "cores": tested.cores,
            "schedule": schedule(*order),
            "calls": calls,
            "step_ns": step_ns,
            "first_seed": plan.seed,
            "seeds": tested.seeds,
            "committed": tested.committed,
            "rejected": tested.rejected,
            "aborts": tested.aborts,
            "judged_transactions": tested.judged.0,
            "judged_edges": tested.judged.1,
            "accesses": tested.accesses,
            "switches": tested.switches,
            "digest": format!("{:016x}", tested.digest),
            "failures": failures.collect::<Vec<_>>(),
        });
        with_choices(plan, row)
    };
    Value::Array(all.iter().map(row).collect())
}

/// The rows of a measurement.
pub(crate) fn measured(plan: &Plan, measurement: &Measurement, points: &[Point]) -> Value {
    let Measurement {
        machine,
        milliseconds,
        warmup_ms,
        lines: _,
    } = measurement;
    let procedures = plan.workload.procedures();
    let names = || procedures.iter().map(|procedure| procedure.name);
    let row = |point: &Point| {
        let statistics = &point.statistics;
        let cycles = point.done.statistics.phase_cycles;
        let all = cycles.iter().sum::<u64>().max(1) as f64;
        let lines = point.lines.iter().map(|line| {
            json!({
                "line": line.name,
                "moved_per_commit": point.per_commit(line.transfers),
                "waited_ns_per_commit": point.per_commit(line.queued_ps) / 1e3,
            })
        });
        let row = json!({
            "protocol": point.protocol.name(),
            "cores": point.cores,
            "machine": machine.name,
            "seed": plan.seed,
            "milliseconds": milliseconds,
            "warmup_milliseconds": warmup_ms,
            "committed_per_s": point.committed_per_s(),
            "rejected": point.done.rejected,
            "latency": latency::to_json(point, names()),
            "aborts_per_commit": point.per_commit(point.done.statistics.aborts_total()),
            "aborts_per_commit_by_cause": named(
                AbortCause::ALL.map(AbortCause::name),
                AbortCause::ALL.map(|cause| {
                    point.per_commit(point.done.statistics.aborts[cause.number()])
                }),
            ),
            "healings_per_commit": point.per_commit(point.done.statistics.healings),
            "run_again_share": point.done.statistics.run_again_share(),
            "reruns_per_commit": Value::Object(
                (point.done.statistics.reruns.iter())
                    .map(|(reason, count)| {
                        ((*reason).to_owned(), point.per_commit(*count).into())
                    })
                    .collect(),
            ),
            "restored_per_commit": Value::Object(
                (point.done.statistics.restored.iter())
                    .map(|((procedure, line), count)| {
                        (format!("{procedure}:{line}"), point.per_commit(*count).into())
                    })
                    .collect(),
            ),
            "locks_let_go_per_commit": point.per_commit(point.done.statistics.locks_let_go),
            "failed_per_commit": Value::Object(
                (point.done.statistics.failed.iter())
                    .map(|((procedure, line, cause), count)| {
                        let place = format!("{procedure}:{line} {cause}");
                        (place, point.per_commit(*count).into())
                    })
                    .collect(),
            ),
            "time_shares": named(
                shares(point).map(|(name, _)| name),
                shares(point).map(|(_, share)| share),
            ),
            "phase_shares": named(
                Phase::ALL.map(Phase::name),
                cycles.map(|cycles| cycles as f64 / all),
            ),
            "batches": explain::batches_json(&point.done.statistics.batches, point.cores),
            "accesses_per_commit": point.per_commit(statistics.accesses()),
            "lines_moved_per_commit": point.per_commit(statistics.lines_transferred()),
            "lines_moved_across_sockets_per_commit": point.per_commit(statistics.transfers_across),
            "lines_from_memory_per_commit":
                point.per_commit(statistics.memory_local + statistics.memory_remote),
            "contended_lines": lines.collect::<Vec<_>>(),
            "audit": point.audit.verdict(),
            "judged_transactions": point.done.judged.0,
            "trace_hash": format!("{:016x}", point.report.trace_hash),
            "accesses": point.report.accesses,
        });
        with_choices(plan, row)
    };
    Value::Array(points.iter().map(row).collect())
}
