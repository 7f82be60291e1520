//! Results as tables for people. The same plan gives the same text, byte for byte.

use std::fmt::Write as _;
use std::io::Write as _;

use kiln_engine::Configuration;
use kiln_lab::audit::AuditReport;
use kiln_lab::explain;
use kiln_procedure::AbortCause;
use kiln_protocols::phases::Phase;

use crate::latency::{Latencies, PERCENTILES};
use crate::outcome::{Finding, Point, Tested};
use crate::plan::{Measurement, Plan, Test, TestSchedule};

/// How many of a condition's violating rows are shown.
const ROWS_SHOWN: usize = 5;

/// Writes to standard output. A reader that went away (`| head`) is no error: a result may still
/// have to be written to a file.
pub(crate) fn show(text: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// A table: the first `left` columns are texts, the others numbers.
fn table(headings: &[&str], left: usize, rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([headings[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (column, cell) in cells.enumerate() {
            let width = widths[column];
            let _ = match column < left {
                true => write!(text, "  {cell:<width$}"),
                false => write!(text, "  {cell:>width$}"),
            };
        }
        text.trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut headings.iter().copied());
    let rule: usize = widths.iter().map(|width| width + 2).sum();
    let _ = writeln!(text, "  {}", "─".repeat(rule - 2));
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

/// A whole number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn settings(plan: &Plan) -> String {
    let options = plan.workload.options().into_iter();
    let options: Vec<String> = options
        .map(|option| format!("{} {}", option.name, option.value))
        .collect();
    format!(
        "{}\n{}: {}\n",
        plan.workload.description(),
        plan.workload.name(),
        options.join(", ")
    )
}

/// What is going to be tested.
pub(crate) fn test_heading(plan: &Plan, test: &Test) -> String {
    let schedule = match test.schedule {
        TestSchedule::Random => "random schedules".to_owned(),
        TestSchedule::Pct { depth, steps } => {
            format!("PCT schedules of depth {depth} over {steps} steps")
        }
    };
    let last = plan.seed.saturating_add(test.seeds - 1);
    format!(
        "{}{schedule}, seeds {} to {last}, {} calls on each core; each run is audited{}\n\n",
        settings(plan),
        plan.seed,
        test.calls,
        if plan.check { " and judged" } else { "" }
    )
}

/// A failure, with the command that makes it happen again.
pub(crate) fn finding(protocol: Configuration, cores: usize, finding: &Finding) -> String {
    format!(
        "FAILED: {protocol}, {cores} cores, seed {}\n{}\nTo see it again:\n  {}\n\n",
        finding.seed, finding.what, finding.command
    )
}

/// The conditions that an audit found violated.
pub(crate) fn violations(audit: &AuditReport) -> String {
    let mut text = String::from("the audit failed");
    for violation in &audit.violations {
        let _ = write!(text, "\n{}: {}", violation.name, violation.what);
        let _ = write!(text, "\n  {}", violation.columns.join(" | "));
        for row in violation.rows.iter().take(ROWS_SHOWN) {
            let _ = write!(text, "\n  {}", row.join(" | "));
        }
    }
    text
}

/// The result of a test.
pub(crate) fn tested(plan: &Plan, all: &[Tested]) -> String {
    let mut headings = vec![
        "protocol",
        "cores",
        "seeds",
        "failed",
        "committed",
        "rejected",
        "aborts",
        "accesses",
        "switches",
        "digest",
    ];
    if plan.check {
        headings.extend(["judged", "edges"]);
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|tested| {
            let mut row = vec![
                tested.protocol.name(),
                tested.cores.to_string(),
                grouped(tested.seeds),
                tested.failures.len().to_string(),
                grouped(tested.committed),
                grouped(tested.rejected),
                grouped(tested.aborts),
                grouped(tested.accesses),
                grouped(tested.switches),
                format!("{:016x}", tested.digest),
            ];
            if plan.check {
                row.extend([grouped(tested.judged.0), grouped(tested.judged.1)]);
            }
            row
        })
        .collect();
    table(&headings, 1, &rows)
}

/// What is going to be measured, and on what.
pub(crate) fn heading(plan: &Plan, measurement: &Measurement) -> String {
    format!(
        "{}machine {}: {}\n{} ms of virtual time after {} ms of warm-up, seed {}\n\n",
        settings(plan),
        measurement.machine.name,
        measurement.machine.description,
        measurement.milliseconds,
        measurement.warmup_ms,
        plan.seed,
    )
}

/// The result of a measurement.
pub(crate) fn measured(plan: &Plan, points: &[Point]) -> String {
    let mut text = format!("Throughput on virtual cores\n{}", throughput(plan, points));
    text += &format!("\nTime of the cores, in percent\n{}", times(points));
    text += &format!(
        "\nTime by phase, in percent of transactions\n{}",
        phases(points)
    );
    text += &format!(
        "\nLatency of committed calls in microseconds, failed attempts included\n{}",
        latencies(points)
    );
    if let Some(aborts) = aborts(points) {
        text += &format!("\nFailed attempts per 1,000 commits, by cause\n{aborts}");
    }
    if let Some(restored) = restored(points) {
        text +=
            &format!("\nRestored operations per 1,000 commits, by procedure and line\n{restored}");
    }
    if let Some(failed) = failed(points) {
        text += &format!("\nFailed attempts per 1,000 commits, by procedure and line\n{failed}");
    }
    if points.iter().any(|point| !point.lines.is_empty()) {
        text += &format!(
            "\nCache lines that cores waited for most\n{}",
            lines(points)
        );
    }
    for point in points {
        let Some(batches) = point.batches else {
            continue;
        };
        let _ = writeln!(
            text,
            "\n{} on {} cores: at the end batches of {}, k = {}, α = {}",
            point.protocol,
            point.cores,
            batches.size,
            batches.samples,
            f64::from(batches.alpha_permille) / 1000.0,
        );
        if let Some(batches) = explain::batches(&point.done.statistics.batches, point.cores) {
            text += &batches;
        }
    }
    for point in points.iter().filter(|point| !point.audit.passed()) {
        let _ = writeln!(
            text,
            "\n{}, {} cores: {}",
            point.protocol,
            point.cores,
            violations(&point.audit)
        );
    }
    text
}

fn row_of(point: &Point, cells: Vec<String>) -> Vec<String> {
    let mut row = vec![point.protocol.name(), point.cores.to_string()];
    row.extend(cells);
    row
}

fn throughput(plan: &Plan, points: &[Point]) -> String {
    let mut headings = vec![
        "protocol",
        "cores",
        "audit",
        "committed/s",
        "per core",
        "rejected",
        "aborts/commit",
        "accesses/commit",
        "lines moved/commit",
        "across sockets",
    ];
    if plan.check {
        headings.push("judged");
    }
    let row = |point: &Point| {
        let statistics = &point.statistics;
        let mut cells = vec![
            point.audit.verdict().to_owned(),
            grouped(point.committed_per_s().round() as u64),
            grouped((point.committed_per_s() / point.cores as f64).round() as u64),
            grouped(point.done.rejected),
            format!(
                "{:.3}",
                point.per_commit(point.done.statistics.aborts_total())
            ),
            format!("{:.0}", point.per_commit(statistics.accesses())),
            format!("{:.2}", point.per_commit(statistics.lines_transferred())),
            format!("{:.2}", point.per_commit(statistics.transfers_across)),
        ];
        if plan.check {
            cells.push(grouped(point.done.judged.0));
        }
        row_of(point, cells)
    };
    table(&headings, 1, &points.iter().map(row).collect::<Vec<_>>())
}

/// What a core's time went into: a name, and how much of it.
pub(crate) fn shares(point: &Point) -> [(&'static str, f64); 6] {
    let statistics = &point.statistics;
    let waiting = statistics.queued_ps + statistics.store_buffer_ps + statistics.prefetch_ps;
    let times = [
        ("compute", statistics.compute_ps),
        ("memory", statistics.memory_ps.saturating_sub(waiting)),
        ("queued", statistics.queued_ps),
        ("store buffer", statistics.store_buffer_ps),
        ("prefetch", statistics.prefetch_ps),
        ("backoff", statistics.spin_ps),
    ];
    times.map(|(name, time)| (name, point.share(time)))
}

fn times(points: &[Point]) -> String {
    let Some(first) = points.first() else {
        return String::new();
    };
    let mut headings = vec!["protocol", "cores"];
    headings.extend(shares(first).map(|(name, _)| name));
    headings.push("other");
    let row = |point: &Point| {
        let shares = shares(point).map(|(_, share)| share);
        // Asleep, or past the end of the measurement while others were not.
        let other = (1.0 - shares.iter().sum::<f64>()).max(0.0);
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let cells = shares.into_iter().chain([other]).map(percent);
        row_of(point, cells.collect())
    };
    table(&headings, 1, &points.iter().map(row).collect::<Vec<_>>())
}

fn phases(points: &[Point]) -> String {
    let mut headings = vec!["protocol", "cores"];
    headings.extend(Phase::ALL.map(Phase::name));
    let row = |point: &Point| {
        let cycles = point.done.statistics.phase_cycles;
        let all = cycles.iter().sum::<u64>().max(1) as f64;
        let percent = |cycles: u64| format!("{:.1}", cycles as f64 * 100.0 / all);
        row_of(point, cycles.map(percent).to_vec())
    };
    table(&headings, 1, &points.iter().map(row).collect::<Vec<_>>())
}

fn latencies(points: &[Point]) -> String {
    let mut headings = vec!["protocol".to_owned(), "cores".to_owned()];
    headings.extend(PERCENTILES.map(|percentile| format!("{percentile} %")));
    headings.push("longest".to_owned());
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let row = |point: &Point| {
        let latencies = Latencies::of_all(point);
        let mut values: Vec<f64> = PERCENTILES
            .map(|percentile| latencies.percentile_us(percentile))
            .into();
        values.push(latencies.max_us());
        row_of(point, values.iter().map(|us| format!("{us:.2}")).collect())
    };
    table(&headings, 1, &points.iter().map(row).collect::<Vec<_>>())
}

fn aborts(points: &[Point]) -> Option<String> {
    let met = |cause: &AbortCause| {
        let count = |point: &Point| point.done.statistics.aborts[cause.number()];
        points.iter().any(|point| count(point) > 0)
    };
    let causes: Vec<AbortCause> = AbortCause::ALL.into_iter().filter(met).collect();
    if causes.is_empty() {
        return None;
    }
    let names: Vec<String> = causes
        .iter()
        .map(|cause| cause.name().replace('_', " "))
        .collect();
    let mut headings = vec!["protocol", "cores"];
    headings.extend(names.iter().map(String::as_str));
    let row = |point: &Point| {
        let aborts = &point.done.statistics.aborts;
        let per_thousand =
            |cause: &AbortCause| format!("{:.1}", point.per_commit(aborts[cause.number()]) * 1e3);
        row_of(point, causes.iter().map(per_thousand).collect())
    };
    Some(table(
        &headings,
        1,
        &points.iter().map(row).collect::<Vec<_>>(),
    ))
}

fn restored(points: &[Point]) -> Option<String> {
    let headings = ["protocol", "cores", "restored", "where"];
    let mut rows = Vec::new();
    for point in points {
        let statistics = &point.done.statistics;
        let mut row = |count: u64, place: String| {
            let count = format!("{:.1}", point.per_commit(count) * 1e3);
            rows.push(row_of(point, vec![count, place]));
        };
        if statistics.healings > 0 {
            let share = 100.0 * statistics.run_again_share();
            let attempts = format!("attempts, {share:.0} % of their procedures");
            row(statistics.healings, attempts);
        }
        for (reason, count) in &statistics.reruns {
            row(*count, format!("whole procedures: {reason}"));
        }
        for ((procedure, line), count) in &statistics.restored {
            row(*count, format!("{procedure}:{line}"));
        }
    }
    (!rows.is_empty()).then(|| table(&headings, 1, &rows))
}

fn failed(points: &[Point]) -> Option<String> {
    let headings = ["protocol", "cores", "failed", "where", "cause"];
    let mut rows = Vec::new();
    for point in points {
        for ((procedure, line, cause), count) in &point.done.statistics.failed {
            let count = format!("{:.2}", point.per_commit(*count) * 1e3);
            let place = format!("{procedure}:{line}");
            rows.push(row_of(point, vec![count, place, (*cause).to_owned()]));
        }
    }
    (!rows.is_empty()).then(|| table(&headings, 1, &rows))
}

fn lines(points: &[Point]) -> String {
    let headings = [
        "protocol",
        "cores",
        "line",
        "moved/commit",
        "waited ns/commit",
    ];
    let rows = points.iter().flat_map(|point| {
        point.lines.iter().enumerate().map(|(position, line)| {
            // Each point is named once, so that its lines read as a group.
            let (protocol, cores) = match position {
                0 => (point.protocol.name(), point.cores.to_string()),
                _ => (String::new(), String::new()),
            };
            vec![
                protocol,
                cores,
                line.name.clone(),
                format!("{:.3}", point.per_commit(line.transfers)),
                format!("{:.1}", point.per_commit(line.queued_ps) / 1e3),
            ]
        })
    });
    table(&headings, 3, &rows.collect::<Vec<_>>())
}
