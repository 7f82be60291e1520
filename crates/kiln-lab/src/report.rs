//! Results as tables for people.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use kiln_procedure::AbortCause;
use kiln_protocols::phases::Phase;
use kiln_workloads::Workload;

use crate::audit::AuditReport;
use crate::figures::{PERCENTILES, Point};
use crate::number::{grouped, rate, ratio, significant};

/// How many of a condition's violating rows are shown.
const ROWS_SHOWN: usize = 5;

/// A line under the header and nothing else.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table whose first `left` columns are texts and whose others are numbers.
pub(crate) fn table(headings: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(headings.iter().copied());
    for (position, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(match position < left {
            true => CellAlignment::Left,
            false => CellAlignment::Right,
        });
    }
    table
}

/// Text under a heading.
fn section(heading: &str, body: &str) -> String {
    format!("\n{heading}\n{body}\n")
}

/// What the logs have written, where there are any.
fn logs(points: &[Point]) -> Option<String> {
    let headings = [
        "Protocol",
        "Threads",
        "Commits",
        "Bytes a commit",
        "MB written",
        "Groups",
        "Commits a group",
        "p50",
        "p99",
        "Write µs p50",
        "p99",
        "max",
        "Recovery s",
    ];
    let mut table = table(&headings, 1);
    let us = |nanoseconds: u64| significant(nanoseconds as f64 / 1e3);
    for point in points {
        let Some(log) = point.log() else { continue };
        let (groups, writes) = (&log.group_entries, &log.write_ns);
        table.add_row([
            point.protocol.to_string(),
            point.threads.to_string(),
            grouped(log.entries),
            significant(log.entry_bytes as f64 / log.entries.max(1) as f64),
            significant(log.written_bytes as f64 / 1e6),
            grouped(groups.count()),
            significant(groups.mean()),
            grouped(groups.quantile(0.5)),
            grouped(groups.quantile(0.99)),
            us(writes.quantile(0.5)),
            us(writes.quantile(0.99)),
            us(writes.max()),
            point
                .recovery_estimate_s()
                .map_or_else(String::new, significant),
        ]);
    }
    (table.row_iter().next().is_some()).then(|| table.to_string())
}

/// The whole report.
pub(crate) fn report(workload: &Workload, points: &[Point]) -> String {
    let mut text = section("Throughput", &throughput(points));
    text += &section(
        "Latency by procedure, in microseconds (all attempts of a call; a deferred one from its queueing)",
        &latency(workload, points),
    );
    if let Some(table) = logs(points) {
        text += &section(
            "Log (warm-up included; a group is written at once, and latencies end when it is on disk; how long a recovery \
             would take in the end, as estimated)",
            &table,
        );
    }
    match aborts(points) {
        Some(table) => text += &section("Failed attempts per 1,000 commits, by cause", &table),
        None if points.iter().all(Point::has_counts) => text += "\nNo attempt failed.\n",
        None => {}
    }
    if let Some(table) = restored(points) {
        text += &section(
            "Restored operations per 1,000 commits, by procedure and line",
            &table,
        );
    }
    if points.iter().any(Point::has_counts) {
        text += &section(
            "Time by phase, in percent of sampled transactions",
            &phases(points),
        );
    }
    text += &audits(points);
    text
}

/// The number of threads, with a mark when there are more than cores, and that of sessions.
fn threads(point: &Point) -> String {
    let mark = if point.oversubscribed { "*" } else { "" };
    match point.sessions {
        Some(sessions) => format!("{}{mark} / {}", point.threads, grouped(sessions as u64)),
        None => format!("{}{mark}", point.threads),
    }
}

/// The heading of [`threads`].
fn threads_heading(points: &[Point]) -> &'static str {
    match points.iter().any(|point| point.sessions.is_some()) {
        true => "threads / sessions",
        false => "threads",
    }
}

fn throughput(points: &[Point]) -> String {
    let mut table = table(
        &[
            "protocol",
            threads_heading(points),
            "audit",
            "committed/s",
            "least – most",
            "rejected/s",
            "expired",
            "aborts/commit",
        ],
        1,
    );
    for point in points {
        let (least, most) = point.committed_per_s_range();
        table.add_row([
            point.protocol.name(),
            threads(point),
            point.audit.verdict().to_owned(),
            rate(point.committed_per_s()),
            format!("{} – {}", rate(least), rate(most)),
            rate(point.rejected_per_s()),
            grouped(point.expired()),
            match point.has_counts() {
                true => ratio(point.aborts_per_commit()),
                false => "–".to_owned(),
            },
        ]);
    }
    let runs = points
        .iter()
        .map(|point| point.runs.len())
        .max()
        .unwrap_or(0);
    let mut note = match runs {
        0 | 1 => "one run each".to_owned(),
        _ => format!("committed/s is the median of {runs} runs"),
    };
    if points.iter().any(|point| point.oversubscribed) {
        note += "; * oversubscribed: more threads than cores";
    }
    format!("{table}\n({note})")
}

fn latency(workload: &Workload, points: &[Point]) -> String {
    let mut headings = vec!["protocol", threads_heading(points), "procedure", "share"];
    headings.extend(PERCENTILES.map(|percentile| percentile.name));
    let mut table = table(&headings, 1);
    for point in points {
        let procedures = point.procedures();
        let calls: u64 = procedures.iter().map(|figures| figures.calls()).sum();
        let mut first = true;
        for (procedure, figures) in workload.procedures().iter().zip(&procedures) {
            if figures.calls() == 0 {
                continue;
            }
            // The protocol is named once, so that its rows read as a group.
            let (protocol, threads) = match first {
                true => (point.protocol.name(), threads(point)),
                false => (String::new(), String::new()),
            };
            first = false;
            let share = 100.0 * figures.calls() as f64 / calls as f64;
            let mut row = vec![
                protocol,
                threads,
                procedure.name.to_owned(),
                format!("{share:.1} %"),
            ];
            row.extend(PERCENTILES.map(|percentile| significant(figures.latency_us(percentile))));
            table.add_row(row);
        }
    }
    if let Some(column) = table.column_mut(2) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    table.to_string()
}

fn aborts(points: &[Point]) -> Option<String> {
    if points.iter().all(|point| point.aborts_per_commit() == 0.0) {
        return None;
    }
    let mut headings = vec!["protocol".to_owned(), "threads".to_owned()];
    headings.extend(AbortCause::ALL.map(|cause| cause.name().replace('_', " ")));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = table(&headings, 1);
    for point in points {
        let mut row = vec![point.protocol.name(), threads(point)];
        row.extend(
            point
                .aborts_by_cause()
                .map(|share| significant(1_000.0 * share)),
        );
        table.add_row(row);
    }
    Some(table.to_string())
}

fn restored(points: &[Point]) -> Option<String> {
    if points
        .iter()
        .all(|point| point.healings_per_commit() == 0.0)
    {
        return None;
    }
    let headings = ["protocol", "threads", "procedure", "line", "restored"];
    let mut table = table(&headings, 3);
    for point in points {
        let mut row = |procedure: String, line: String, count: f64| {
            let count = significant(1_000.0 * count);
            table.add_row([
                point.protocol.name(),
                threads(point),
                procedure,
                line,
                count,
            ]);
        };
        if point.healings_per_commit() > 0.0 {
            row(
                "attempts".to_owned(),
                String::new(),
                point.healings_per_commit(),
            );
            let share = 100.0 * point.statistics().run_again_share();
            let of = format!("operations, {share:.0} % of their procedures");
            row(of, String::new(), point.run_again_per_commit());
        }
        for (reason, count) in point.statistics().reruns {
            let of = format!("whole procedures: {reason}");
            row(of, String::new(), point.per_commit(count));
        }
        for (procedure, line, count) in point.restored_per_commit() {
            row(procedure, line.to_string(), count);
        }
    }
    Some(table.to_string())
}

fn phases(points: &[Point]) -> String {
    let mut headings = vec!["protocol", "threads"];
    headings.extend(Phase::ALL.map(|phase| phase.name()));
    let mut table = table(&headings, 1);
    for point in points {
        let mut row = vec![point.protocol.name(), threads(point)];
        row.extend(
            point
                .phase_shares()
                .map(|share| format!("{:.1}", 100.0 * share)),
        );
        table.add_row(row);
    }
    table.to_string()
}

fn audits(points: &[Point]) -> String {
    let mut text = String::new();
    let (mut conditions, mut audits, mut seconds) = (0, 0, 0.0);
    for point in points {
        conditions += point.audit.conditions;
        audits += point.audit.audits;
        seconds += point.audit.seconds;
        if !point.audit.passed() {
            text += &format!("\n{}, {} threads:\n", point.protocol, threads(point));
            text += &violations(&point.audit);
        }
    }
    let verdict = match text.is_empty() {
        true => format!(
            "\nAudit: passed. {} conditions held, after {audits} runs; checking took {seconds:.1} s.\n",
            grouped(conditions as u64)
        ),
        false => "\nAudit: FAILED.\n".to_owned(),
    };
    verdict + &text
}

/// The conditions that did not hold, with the first of their rows.
pub(crate) fn violations(audit: &AuditReport) -> String {
    let mut text = String::new();
    for violation in &audit.violations {
        text += &format!("  {}: {}\n", violation.name, violation.what);
        for row in violation.rows.iter().take(ROWS_SHOWN) {
            let cells: Vec<String> = violation
                .columns
                .iter()
                .zip(row)
                .map(|(column, value)| format!("{column} = {value}"))
                .collect();
            text += &format!("    {}\n", cells.join(", "));
        }
        if violation.rows.len() > ROWS_SHOWN {
            text += &format!("    and {} more rows\n", violation.rows.len() - ROWS_SHOWN);
        }
    }
    text
}
