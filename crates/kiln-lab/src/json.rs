//! Results as JSON: one row per protocol and number of threads, each complete in itself, so that
//! rows of several files can be put together: a row has every choice that may differ between two
//! runs.

use kiln_engine::{BasisFactors, LogHistogram, LogStatistics};
use kiln_procedure::AbortCause;
use kiln_protocols::phases::Phase;
use kiln_workloads::Workload;
use serde_json::{Map, Value, json};

use crate::figures::{PERCENTILES, Point, RunFigures};
use crate::load::LoadFigures;
use crate::machine::Machine;
use crate::{Plan, explain};

/// The rows of a result file.
pub(crate) fn rows(plan: &Plan, machine: &Machine, load: &LoadFigures, points: &[Point]) -> Value {
    let rows = points.iter().map(|point| row(plan, machine, load, point));
    Value::Array(rows.collect())
}

fn row(plan: &Plan, machine: &Machine, load: &LoadFigures, point: &Point) -> Value {
    let mut row = choices(plan, point);
    row["machine"] = machine_of(machine);
    row["load"] = json!({
        "rows": load.rows,
        "seconds": load.seconds,
        "raw_bytes": load.raw_bytes,
        "record_bytes": load.record_bytes,
        "index_bytes": load.index_bytes,
    });
    joined(row, measured(plan, point))
}

/// The members of both objects.
pub fn joined(mut one: Value, other: Value) -> Value {
    if let (Value::Object(all), Value::Object(other)) = (&mut one, other) {
        all.extend(other);
    }
    one
}

/// All that may differ between two runs on a machine.
fn choices(plan: &Plan, point: &Point) -> Value {
    // Without `..`: a choice that is added has to be named here.
    let Plan {
        workload,
        protocols: _,
        threads: _,
        sessions: _,
        seconds,
        warmup,
        repeat,
        seed,
        reserve_mib,
        basis_factors: factors,
        allocator,
        data,
        logging,
        recovery_target_s,
        json: _,
        explain_batch,
        batch_svg: _,
    } = plan;
    json!({
        "workload": workload.name(),
        "protocol": point.protocol.name(),
        "serializable": point.protocol.protocol.is_serializable(),
        "basis_factors": basis_factors(factors),
        "allocator": allocator,
        "build": build(),
        "threads": point.threads,
        "sessions": point.sessions,
        "oversubscribed": point.oversubscribed,
        "pinned": point.runs.iter().all(|run| run.pinned),
        "warehouses": match workload {
            Workload::Tpcc(config) => Value::from(config.warehouses),
            _ => Value::Null,
        },
        "options": options(workload),
        "seconds": seconds,
        "warmup_seconds": warmup,
        "repeat": repeat,
        "seed": seed,
        "reserve_mib": reserve_mib,
        "explain_batch": explain_batch,
        "synced": data.is_some(),
        "logging": data.as_ref().map(|_| logging.name()),
        "recovery_target_seconds": data.as_ref().map(|_| recovery_target_s),
    })
}

fn machine_of(machine: &Machine) -> Value {
    let Machine {
        cpu,
        cores,
        memory_bytes,
        os,
        commit,
        date,
        unoptimised,
    } = machine;
    json!({
        "cpu": cpu,
        "cores": cores,
        "memory_bytes": memory_bytes,
        "os": os,
        "commit": commit,
        "date": date,
        "optimised": !unoptimised,
    })
}

/// What came of it.
fn measured(plan: &Plan, point: &Point) -> Value {
    let (least, most) = point.committed_per_s_range();
    let runs: Vec<f64> = point.runs.iter().map(RunFigures::committed_per_s).collect();
    json!({
        "committed_per_s": point.committed_per_s(),
        "committed_per_s_min": least,
        "committed_per_s_max": most,
        "committed_per_s_runs": runs,
        "rejected_per_s": point.rejected_per_s(),
        "expired": point.expired(),
        "aborts_per_commit": point.has_counts().then(|| point.aborts_per_commit()),
        "aborts_per_commit_by_cause":
            named(AbortCause::ALL.map(AbortCause::name), point.aborts_by_cause()),
        "healings_per_commit": point.healings_per_commit(),
        "run_again_share": point.statistics().run_again_share(),
        "reruns_per_commit": Value::Object(
            (point.statistics().reruns.iter())
                .map(|(reason, count)| ((*reason).to_owned(), point.per_commit(*count).into()))
                .collect(),
        ),
        "restored_per_commit": restored(point),
        "phase_shares": named(Phase::ALL.map(Phase::name), point.phase_shares()),
        "batches": explain::batches_json(&point.statistics().batches, point.threads),
        "latency_us": latencies(&plan.workload, point),
        "log": point.log().map(|log| log_of(&log)),
        "recovery_estimate_s": point.recovery_estimate_s(),
        "audit": point.audit.verdict(),
        "audit_conditions": point.audit.conditions,
        "audit_violations": point
            .audit
            .violations
            .iter()
            .map(|violation| json!({
                "condition": violation.name,
                "description": violation.what,
                "columns": violation.columns,
                "rows": violation.rows,
            }))
            .collect::<Vec<_>>(),
    })
}

/// What the log has written: bytes, entries of groups, and durable writes in nanoseconds.
fn log_of(log: &LogStatistics) -> Value {
    let histogram = |of: &LogHistogram| {
        json!({
            "count": of.count(),
            "mean": of.mean(),
            "p50": of.quantile(0.5),
            "p90": of.quantile(0.9),
            "p99": of.quantile(0.99),
            "p999": of.quantile(0.999),
            "max": of.max(),
        })
    };
    json!({
        "entries": log.entries,
        "entry_bytes": log.entry_bytes,
        "written_bytes": log.written_bytes,
        "group_entries": histogram(&log.group_entries),
        "write_ns": histogram(&log.write_ns),
    })
}

/// All basis factors, those with their defaults too: a default may be another one in another
/// version.
pub fn basis_factors(factors: &BasisFactors) -> Value {
    let choices = factors.choices().into_iter();
    Value::Object(
        choices
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect(),
    )
}

/// How the program was built, as far as that is chosen.
pub fn build() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "records_histories": kiln_protocols::RECORDS_HISTORIES,
        "virtual_cores": cfg!(kiln_sim),
        "optimised": !cfg!(debug_assertions),
    })
}

fn named<const N: usize>(names: [&str; N], values: [f64; N]) -> Value {
    let pairs = names.into_iter().zip(values);
    Value::Object(
        pairs
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect(),
    )
}

/// Restored operations per committed call, by procedure and line.
fn restored(point: &Point) -> Value {
    let restored = point.restored_per_commit().into_iter();
    let named =
        restored.map(|(procedure, line, count)| (format!("{procedure}:{line}"), json!(count)));
    Value::Object(named.collect())
}

/// The workload's settings as they were.
fn options(workload: &Workload) -> Value {
    let pairs = workload.options().into_iter().map(|option| {
        let number = option.value.parse::<i64>().map(Value::from);
        let number = number.or_else(|_| option.value.parse::<f64>().map(Value::from));
        (
            option.name.to_owned(),
            number.unwrap_or_else(|_| option.value.into()),
        )
    });
    Value::Object(pairs.collect())
}

fn latencies(workload: &Workload, point: &Point) -> Value {
    let mut object = Map::new();
    for (procedure, figures) in workload.procedures().iter().zip(point.procedures()) {
        if figures.calls() == 0 {
            continue;
        }
        let mut row = Map::new();
        for percentile in PERCENTILES {
            row.insert(
                percentile.key.to_owned(),
                json!(figures.latency_us(percentile)),
            );
        }
        row.insert("committed".to_owned(), json!(figures.committed));
        row.insert("rejected".to_owned(), json!(figures.rejected));
        object.insert(procedure.name.to_owned(), Value::Object(row));
    }
    Value::Object(object)
}
