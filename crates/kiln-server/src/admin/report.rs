//! What the page of metrics shows, and how the server is.

use kiln_platform::process;
use kiln_sql::{AbortCause, Database, LogHistogram, Metrics, TableMetrics};

use super::page::{Kind, Page};
use crate::monitor::{BOUNDS_NS, Histogram, Monitor, Refusal};

/// Tables whose memory is shown apart: those that take most. All others are one.
const TABLES_MAX: usize = 100;
/// Procedures whose calls are shown apart: those that are called most.
const PROCEDURES_MAX: usize = 100;
/// The name of what is shown together.
const OTHER: &str = "other";

const NS_PER_S: f64 = 1e9;

/// Why the server does not do all that it is there for, if so.
pub(super) fn ailment(database: &Database, is_ending: bool) -> Option<String> {
    let engine = database.engine();
    if engine.is_broken() {
        return Some("broken: a worker has panicked, and nothing runs any more".to_owned());
    }
    match engine.read_only() {
        Some(read_only) => Some(read_only.to_string()),
        None => is_ending.then(|| "draining: the server ends".to_owned()),
    }
}

/// The page of metrics.
pub(super) fn page(database: &Database, monitor: &Monitor, is_ending: bool) -> String {
    let metrics = database.metrics();
    let mut page = Page::default();
    server(&mut page, database, monitor, is_ending);
    connections(&mut page, monitor, &metrics);
    statements(&mut page, monitor);
    transactions(&mut page, &metrics);
    blocks(&mut page, monitor, &metrics);
    log(&mut page, &metrics);
    checkpoints(&mut page, &metrics);
    memory(&mut page, &metrics);
    of_process(&mut page, monitor);
    page.finish()
}

fn server(page: &mut Page, database: &Database, monitor: &Monitor, is_ending: bool) {
    let engine = database.engine();
    let protocol = engine.protocol().to_string();
    page.family(
        "kiln_build_info",
        Kind::Gauge,
        "The version that runs; always 1.",
    )
    .metric(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let help = "The concurrency-control protocol in force; always 1.";
    page.family("kiln_protocol_info", Kind::Gauge, help)
        .metric(&[("protocol", &protocol)], 1);
    let help = "1 while the server serves without restriction; 0 while it is read-only, broken or draining.";
    let is_up = ailment(database, is_ending).is_none();
    page.single("kiln_healthy", Kind::Gauge, help, u8::from(is_up));
    let help =
        "1 once the database takes no changes any more, because a write of its log has failed.";
    let is_read_only = engine.read_only().is_some();
    page.single("kiln_read_only", Kind::Gauge, help, u8::from(is_read_only));
    let help = "Connections that ended because of a panic.";
    page.single(
        "kiln_connection_panics_total",
        Kind::Counter,
        help,
        monitor.panics.get(),
    );
    let help = "Threads that run transactions.";
    page.single("kiln_workers", Kind::Gauge, help, engine.options().workers);
}

fn connections(page: &mut Page, monitor: &Monitor, metrics: &Metrics) {
    let help = "Connections that were accepted.";
    let accepted = monitor.accepted.get();
    page.single(
        "kiln_connections_accepted_total",
        Kind::Counter,
        help,
        accepted,
    );
    let help = "Connections that were refused, or ended before they began a session, by cause.";
    page.family("kiln_connections_refused_total", Kind::Counter, help);
    for refusal in Refusal::ALL {
        page.metric(&[("cause", refusal.name())], monitor.refused(refusal));
    }
    let help = "Clients that did not prove who they are.";
    let failures = monitor.refused(Refusal::Authentication);
    page.single(
        "kiln_authentication_failures_total",
        Kind::Counter,
        help,
        failures,
    );
    let help = "Sessions that were begun.";
    let begun = monitor.sessions_begun.get();
    page.single("kiln_sessions_begun_total", Kind::Counter, help, begun);
    let help = "Clients by state, as of some moment in the last quarter of a second: starting (no session yet), idle, in_block (an open \
                transaction block waits for its client), active (the client waits for an answer), waiting (of the active ones, those that \
                wait for a worker slot).";
    let states = monitor.sessions.states();
    let waiting = metrics.slots_awaited.min(states.active);
    page.family("kiln_sessions", Kind::Gauge, help);
    for (state, count) in [
        ("starting", states.starting),
        ("idle", states.idle),
        ("in_block", states.in_block),
        ("active", states.active - waiting),
        ("waiting", waiting),
    ] {
        page.metric(&[("state", state)], count);
    }
    let help = "Worker slots that sessions use, for statements of transaction blocks.";
    page.single(
        "kiln_session_slots_used",
        Kind::Gauge,
        help,
        metrics.slots_used,
    );
    let help = "Errors that clients were told of, by class of their SQLSTATE.";
    page.family("kiln_errors_total", Kind::Counter, help);
    for (class, count) in monitor.errors() {
        page.metric(&[("class", &class)], count);
    }
}

fn statements(page: &mut Page, monitor: &Monitor) {
    let help =
        "How long statements took that have ended, from their message to their answer, by command.";
    page.family("kiln_statement_duration_seconds", Kind::Histogram, help);
    for (command, histogram) in monitor.durations.by_command() {
        durations(page, ("command", command), histogram);
    }
    let help =
        "How long calls of procedures took, from their message to their answer, by procedure.";
    page.family("kiln_call_duration_seconds", Kind::Histogram, help);
    for (procedure, histogram) in monitor.durations.by_procedure() {
        durations(page, ("procedure", &procedure), &histogram);
    }
}

fn durations(page: &mut Page, label: (&str, &str), histogram: &Histogram) {
    let (counts, sum_s) = (histogram.counts(), histogram.sum_ns() as f64 / NS_PER_S);
    let bounds = BOUNDS_NS.map(|bound_ns| bound_ns as f64 / NS_PER_S);
    page.histogram(
        &[label],
        bounds.into_iter().zip(counts),
        counts[BOUNDS_NS.len()],
        sum_s,
    );
}

fn transactions(page: &mut Page, metrics: &Metrics) {
    let help = "Transactions that have ended on a worker, by how; those of failed blocks are not among them.";
    page.family("kiln_transactions_total", Kind::Counter, help);
    let counted = metrics.counted();
    for (outcome, count) in [
        ("committed", counted.committed),
        ("rejected", counted.rejected),
        ("expired", counted.expired),
    ] {
        page.metric(&[("outcome", outcome)], count);
    }
    let help = "Transactions that raised an error, by class of its SQLSTATE.";
    page.family("kiln_rejections_total", Kind::Counter, help);
    for (class, count) in &counted.rejected_by_class {
        page.metric(&[("class", class)], count);
    }
    let help = "Attempts that failed because of other transactions and were repeated, by protocol and cause.";
    page.family("kiln_aborts_total", Kind::Counter, help);
    for (protocol, counted) in &metrics.by_protocol {
        let protocol = protocol.to_string();
        for (cause, count) in AbortCause::ALL.iter().zip(counted.aborts) {
            page.metric(&[("protocol", &protocol), ("cause", cause.name())], count);
        }
    }
    let help = "Attempts that were healed: restored in place of being repeated.";
    page.single("kiln_heals_total", Kind::Counter, help, counted.healings);
    let help = "Calls of stored procedures that committed, by procedure.";
    page.family("kiln_calls_total", Kind::Counter, help);
    let mut calls: Vec<(&str, u64)> = (metrics.calls.iter())
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    calls.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let others = calls.split_off(calls.len().min(PROCEDURES_MAX));
    for (procedure, count) in calls {
        page.metric(&[("procedure", procedure)], count);
    }
    if !others.is_empty() {
        let count: u64 = others.iter().map(|(_, count)| count).sum();
        page.metric(&[("procedure", OTHER)], count);
    }
}

fn blocks(page: &mut Page, monitor: &Monitor, metrics: &Metrics) {
    let replays = metrics.replays;
    let help = "Replays of transaction blocks after conflicts.";
    page.single(
        "kiln_block_replays_total",
        Kind::Counter,
        help,
        replays.replays,
    );
    let help = "Replays of blocks that ran alone, after others that had lost.";
    page.single(
        "kiln_block_replays_alone_total",
        Kind::Counter,
        help,
        replays.alone,
    );
    let help = "Blocks that were given 40001, by cause: a replay gave another result than the client had seen, or the block could not be replayed.";
    page.family("kiln_blocks_refused_total", Kind::Counter, help)
        .metric(&[("cause", "differing")], replays.differing)
        .metric(&[("cause", "not_replayable")], replays.refused);
    let help = "For how long the oldest open transaction block has been open; 0 while none is.";
    let oldest = metrics.oldest_block;
    let age_s = oldest.map_or(0.0, |block| block.age_ns as f64 / NS_PER_S);
    page.single("kiln_oldest_block_age_seconds", Kind::Gauge, help, age_s);
    let help = "Whose the oldest open transaction block is; always 1.";
    page.family("kiln_oldest_block_info", Kind::Gauge, help);
    if let Some(block) = oldest {
        let session = block.session.to_string();
        let who = monitor.sessions.get(block.session).unwrap_or_default();
        let labels = [
            ("session", session.as_str()),
            ("role", &who.role),
            ("application", &who.application),
            ("client", &who.client),
        ];
        page.metric(&labels, 1);
    }
}

fn log(page: &mut Page, metrics: &Metrics) {
    let Some(log) = &metrics.log else {
        return;
    };
    let help = "The log epoch that is current.";
    page.single("kiln_log_epoch", Kind::Gauge, help, log.epoch);
    let help = "Log epochs between the current one and the last one that is on disk.";
    let lag = log.epoch.saturating_sub(log.durable_epoch);
    page.single("kiln_log_epoch_lag", Kind::Gauge, help, lag);
    let written = &log.written;
    let help = "Entries that were written to the log: commits, changes of the catalog, answers.";
    page.single(
        "kiln_log_entries_total",
        Kind::Counter,
        help,
        written.entries,
    );
    let help = "Bytes of these entries.";
    page.single(
        "kiln_log_entry_bytes_total",
        Kind::Counter,
        help,
        written.entry_bytes,
    );
    let help = "Bytes that were written to the log, headers and padding included.";
    page.single(
        "kiln_log_written_bytes_total",
        Kind::Counter,
        help,
        written.written_bytes,
    );
    let help = "How long durable writes of the log took.";
    page.family("kiln_log_sync_duration_seconds", Kind::Histogram, help);
    by_size(page, &written.write_ns, &BOUNDS_NS, NS_PER_S);
    let help = "Entries that were written together, by one durable write.";
    page.family("kiln_log_group_entries", Kind::Histogram, help);
    by_size(page, &written.group_entries, &GROUP_BOUNDS, 1.0);
    let help = "Bytes of the log that a recovery would read.";
    page.single(
        "kiln_recovery_log_bytes",
        Kind::Gauge,
        help,
        log.recovery_bytes,
    );
    let help = "How long a recovery would take, as estimated.";
    page.single(
        "kiln_recovery_estimate_seconds",
        Kind::Gauge,
        help,
        log.recovery_estimate_s,
    );
}

/// Entries in a group, in steps that the log's histogram has.
const GROUP_BOUNDS: [u64; 10] = [1, 2, 4, 8, 15, 31, 63, 127, 511, 2_047];

/// A histogram of the log, with these bounds.
fn by_size(page: &mut Page, histogram: &LogHistogram, bounds: &[u64], unit: f64) {
    let mut below = 0;
    let buckets: Vec<(f64, u64)> = (bounds.iter())
        .map(|bound| {
            let until = histogram.count_at_most(*bound);
            (
                *bound as f64 / unit,
                until - std::mem::replace(&mut below, until),
            )
        })
        .collect();
    let sum = histogram.sum() as f64 / unit;
    page.histogram(&[], buckets, histogram.count() - below, sum);
}

fn checkpoints(page: &mut Page, metrics: &Metrics) {
    let Some(checkpoints) = &metrics.checkpoints else {
        return;
    };
    let help = "Checkpoints since the server started, by how they ended.";
    page.family("kiln_checkpoints_total", Kind::Counter, help)
        .metric(&[("outcome", "written")], checkpoints.written)
        .metric(&[("outcome", "failed")], checkpoints.failed);
    let help = "When the last checkpoint was complete, also an earlier process's, in seconds since 1970; 0 for none.";
    let last_s = checkpoints
        .last_written_us
        .map_or(0.0, |us| us as f64 / 1e6);
    page.single(
        "kiln_checkpoint_last_timestamp_seconds",
        Kind::Gauge,
        help,
        last_s,
    );
    let help = "How long ago that was; 0 for none.";
    let age_s = match checkpoints.last_written_us {
        Some(us) => (kiln_platform::time::wall_clock_us() - us).max(0) as f64 / 1e6,
        None => 0.0,
    };
    page.single("kiln_checkpoint_age_seconds", Kind::Gauge, help, age_s);
    if let Some(last) = &checkpoints.last {
        let help = "How long the last checkpoint of this process took.";
        let elapsed_s = last.elapsed_ns as f64 / NS_PER_S;
        page.single(
            "kiln_checkpoint_duration_seconds",
            Kind::Gauge,
            help,
            elapsed_s,
        );
        let help = "For how much of that transactions were held up.";
        let held_s = last.held_ns as f64 / NS_PER_S;
        page.single("kiln_checkpoint_held_seconds", Kind::Gauge, help, held_s);
        let help = "Bytes of its files.";
        page.single("kiln_checkpoint_bytes", Kind::Gauge, help, last.bytes);
    }
}

fn memory(page: &mut Page, metrics: &Metrics) {
    let mut tables: Vec<&TableMetrics> = metrics.tables.iter().collect();
    let bytes = |table: &TableMetrics| table.reserved_bytes + table.index_bytes;
    tables.sort_by_key(|table| std::cmp::Reverse(bytes(table)));
    let others = tables.split_off(tables.len().min(TABLES_MAX));
    type Figure = fn(&TableMetrics) -> usize;
    let families: [(&'static str, &str, Figure); 5] = [
        (
            "kiln_table_records",
            "Records of each table, those that were deleted a moment ago included.",
            |table| table.records,
        ),
        (
            "kiln_table_record_bytes",
            "Bytes of these records.",
            |table| table.record_bytes,
        ),
        (
            "kiln_table_reserved_bytes",
            "Bytes that were taken from the system for records.",
            |table| table.reserved_bytes,
        ),
        ("kiln_table_indexes", "Indexes of each table.", |table| {
            table.indexes
        }),
        (
            "kiln_table_index_bytes",
            "Bytes of these indexes.",
            |table| table.index_bytes,
        ),
    ];
    for (name, help, figure) in families {
        page.family(name, Kind::Gauge, help);
        for table in &tables {
            page.metric(&[("table", &table.table)], figure(table));
        }
        if !others.is_empty() {
            let sum: usize = others.iter().map(|table| figure(table)).sum();
            page.metric(&[("table", OTHER)], sum);
        }
    }
    let help = "Objects that transactions have retired and that are not free yet.";
    page.single(
        "kiln_retired_objects",
        Kind::Gauge,
        help,
        metrics.retired.objects,
    );
    let help = "Bytes of these objects.";
    page.single(
        "kiln_retired_bytes",
        Kind::Gauge,
        help,
        metrics.retired.bytes,
    );
}

/// The metrics of the process, by the names that Prometheus' own clients use.
fn of_process(page: &mut Page, monitor: &Monitor) {
    let help = "When the server started, in seconds since 1970.";
    let started_s = monitor.started_us as f64 / 1e6;
    page.single("process_start_time_seconds", Kind::Gauge, help, started_s);
    if let Some(bytes) = process::resident_bytes() {
        let help = "Memory that the process has in use, in bytes.";
        page.single("process_resident_memory_bytes", Kind::Gauge, help, bytes);
    }
    if let Some(count) = process::descriptors() {
        let help = "Files and sockets that the process has open.";
        page.single("process_open_fds", Kind::Gauge, help, count);
    }
    if let Some(seconds) = process::cpu_s() {
        let help = "Seconds of all cores that the process has used.";
        page.single("process_cpu_seconds_total", Kind::Counter, help, seconds);
    }
}
