//! Drives a real PostgreSQL with the workloads' calls and audits it.
//!
//! Each workload's population is loaded, a few hundred seeded calls run, and then every audit must
//! return nothing and every closing check its number. After that each tamper of `tampers/` is
//! applied in a transaction of its own, and the audits that it names must report it: an audit that
//! cannot fail proves nothing.
//!
//! The server is named by `KILN_TEST_POSTGRES`, a libpq connection string. Without one the tests
//! are reported as skipped, which is why the harness is our own (`harness = false`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};

use kiln_platform::thread;
use kiln_storage::types::{Decimal, Value};
use kiln_workloads::{
    ArgumentValues, Totals, Workload, export, export::CopySink, named_statements,
};

const SEED: u64 = 20_260_101;

/// Starts the lines that tell what follows in psql's output.
const MARKER: &str = "=#=kiln=#=";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let list_only = words.iter().any(|word| word == "--list");
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let connection = std::env::var("KILN_TEST_POSTGRES")
        .ok()
        .filter(|name| !name.is_empty());
    let mut failures = 0;
    for (name, workload, tampers, calls) in cases() {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        if list_only {
            println!("{name}: test");
            continue;
        }
        let Some(connection) = &connection else {
            println!("test {name} ... skipped: KILN_TEST_POSTGRES is not set");
            continue;
        };
        match check(connection, &workload, tampers, calls) {
            Ok(summary) => println!("test {name} ... ok ({summary})"),
            Err(message) => {
                println!("test {name} ... FAILED\n{message}");
                failures += 1;
            }
        }
    }
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn cases() -> Vec<(&'static str, Workload, &'static str, usize)> {
    let with = |name, options: &[(&str, &str)]| {
        let mut workload = Workload::by_name(name).expect("a known workload");
        for (option, value) in options {
            workload.set(option, value).expect("a valid option");
        }
        workload
    };
    let small = |name, tampers| {
        let workload = Workload::by_name(name).expect("a known workload");
        (name, workload.small(), tampers, 600)
    };
    vec![
        (
            "tpcc",
            with(
                "tpcc",
                // Rollbacks and remote accesses are made common, so that few calls meet many.
                &[
                    ("warehouses", "2"),
                    ("items", "500"),
                    ("customers-per-district", "60"),
                    ("rollback-percent", "10"),
                    ("remote-item-percent", "20"),
                    ("warehouse-choice", "uniform"),
                ],
            ),
            include_str!("tampers/tpcc.sql"),
            400,
        ),
        (
            "smallbank",
            with(
                "smallbank",
                &[
                    ("accounts", "100"),
                    ("hot-accounts", "5"),
                    ("hot-percent", "60"),
                ],
            ),
            include_str!("tampers/smallbank.sql"),
            600,
        ),
        (
            "anomalies",
            with("anomalies", &[("keys", "8"), ("operations", "10")]),
            include_str!("tampers/anomalies.sql"),
            600,
        ),
        small("ycsb", include_str!("tampers/ycsb.sql")),
        small("rmw", include_str!("tampers/rmw.sql")),
        small("hot", include_str!("tampers/hot.sql")),
        small("strife-hot", include_str!("tampers/strife-hot.sql")),
        small("short-long", include_str!("tampers/short-long.sql")),
        small("wikipedia", include_str!("tampers/wikipedia.sql")),
        small("rubis", include_str!("tampers/rubis.sql")),
        small("ranges", include_str!("tampers/ranges.sql")),
    ]
}

/// Loads, runs, audits and tampers.
fn check(
    connection: &str,
    workload: &Workload,
    tampers: &str,
    calls: usize,
) -> Result<String, String> {
    let name = workload.name().replace('-', "_");
    let schema = format!("kiln_{name}_{}", std::process::id());
    let result = check_in_schema(connection, workload, tampers, calls, &schema);
    psql(
        connection,
        format!("DROP SCHEMA IF EXISTS {schema} CASCADE;\n"),
    )?;
    result
}

fn check_in_schema(
    connection: &str,
    workload: &Workload,
    tampers: &str,
    calls: usize,
    schema: &str,
) -> Result<String, String> {
    let enter = format!("SET search_path TO {schema};\nSET client_min_messages = error;\n");
    let mut population = CopySink::new(Vec::new());
    workload.populate(SEED, &mut population);
    let population = population.finish().map_err(|error| error.to_string())?;
    psql(
        connection,
        format!(
            "\\set ON_ERROR_STOP on\nDROP SCHEMA IF EXISTS {schema} CASCADE;\n\
             CREATE SCHEMA {schema};\n{enter}{}\n{}\n{}",
            workload.schema_sql(),
            workload.procedures_sql(),
            String::from_utf8_lossy(&population)
        ),
    )?;

    // One worker, so that calls run in the order in which they are drawn. The terminal learns of
    // the results afterwards: nothing it draws depends on those.
    let mut terminal = workload.terminals(SEED, 1).remove(0);
    let mut arguments = ArgumentValues::default();
    let mut script = enter.clone();
    let mut drawn = Vec::new();
    for _ in 0..calls {
        let call = terminal.next(&mut arguments);
        let procedure = &workload.procedures()[call.procedure.0];
        let statement = export::render_call(procedure, arguments.values());
        write!(script, "{statement}\n\\echo {MARKER} :SQLSTATE\n").expect("to a string");
        drawn.push(call);
    }
    let printed = psql(connection, script)?;
    let outcomes = sections(&printed);
    if outcomes.len() != calls {
        return Err(format!("{} of {calls} calls were answered", outcomes.len()));
    }
    let mut rejected: BTreeMap<&str, usize> = BTreeMap::new();
    for (call, (rows, sqlstate)) in drawn.iter().zip(&outcomes) {
        match sqlstate.as_str() {
            "00000" => {
                terminal.committed(*call, &parse_rows(rows));
            }
            expected if workload.expected_rejections().contains(&expected) => {
                *rejected.entry(sqlstate).or_default() += 1;
            }
            other => {
                let name = workload.procedures()[call.procedure.0].name;
                return Err(format!("{name} failed with SQLSTATE {other}"));
            }
        }
    }
    let totals = terminal.totals();
    // Settings choose one procedure of rmw.
    if totals.committed.contains(&0) && workload.name() != "rmw" {
        return Err(format!(
            "some procedure never committed: {:?}",
            totals.committed
        ));
    }

    audit(connection, &enter, workload, totals)?;
    let tampered = tamper(connection, &enter, workload, totals, tampers)?;
    Ok(format!(
        "{calls} calls, rejected {rejected:?}, {tampered} tampers"
    ))
}

/// Every audit returns nothing, every closing check its number.
fn audit(
    connection: &str,
    enter: &str,
    workload: &Workload,
    totals: &Totals,
) -> Result<(), String> {
    let mut script = enter.to_owned();
    for sql in queries(workload, totals) {
        write!(script, "{sql}\n\\echo {MARKER} :SQLSTATE\n").expect("to a string");
    }
    let broken = violations(workload, totals, &sections(&psql(connection, script)?))?;
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "after the calls, {} are violated",
            broken.join(", ")
        ))
    }
}

fn queries(workload: &Workload, totals: &Totals) -> Vec<String> {
    let audits = workload
        .audits()
        .into_iter()
        .map(|audit| audit.sql.to_owned());
    let closing = workload.closing_checks(SEED, totals);
    audits
        .chain(closing.into_iter().map(|check| format!("{};", check.sql)))
        .collect()
}

/// The names of the audits and closing checks that the answers to [`queries`] violate.
fn violations(
    workload: &Workload,
    totals: &Totals,
    answers: &[(Vec<String>, String)],
) -> Result<Vec<String>, String> {
    let (audits, closing) = (workload.audits(), workload.closing_checks(SEED, totals));
    if answers.len() != audits.len() + closing.len() {
        return Err(format!("{} audits were answered", answers.len()));
    }
    if let Some((_, sqlstate)) = answers.iter().find(|(_, sqlstate)| sqlstate != "00000") {
        return Err(format!("an audit failed with SQLSTATE {sqlstate}"));
    }
    let (of_audits, of_closing) = answers.split_at(audits.len());
    let mut broken = Vec::new();
    for (audit, (rows, _)) in audits.iter().zip(of_audits) {
        if !rows.is_empty() {
            broken.push(audit.name.to_owned());
        }
    }
    for (check, (rows, _)) in closing.iter().zip(of_closing) {
        let found = rows.first().and_then(|row| Decimal::parse(row).ok());
        if found != Some(check.expected) {
            broken.push(check.name.to_owned());
        }
    }
    Ok(broken)
}

/// Applies each tamper, expects the violations that it names, and takes it back.
fn tamper(
    connection: &str,
    enter: &str,
    workload: &Workload,
    totals: &Totals,
    tampers: &str,
) -> Result<usize, String> {
    let queries = queries(workload, totals);
    let tampers = named_statements(tampers);
    for (breaks, description, sql) in &tampers {
        let mut script = format!("{enter}BEGIN;\n{sql}\n");
        for query in &queries {
            write!(script, "{query}\n\\echo {MARKER} :SQLSTATE\n").expect("to a string");
        }
        script += "ROLLBACK;\n";
        let broken = violations(workload, totals, &sections(&psql(connection, script)?))?;
        for expected in breaks.trim_start_matches("breaks ").split(", ") {
            let named = |name: &String| name.trim_start_matches("condition ") == expected;
            if !broken.iter().any(named) {
                return Err(format!(
                    "\"{description}\" does not violate {expected}, but {}",
                    broken.join(", ")
                ));
            }
        }
    }
    Ok(tampers.len())
}

/// Psql's output cut at the markers: the rows before each and the text after it.
fn sections(printed: &str) -> Vec<(Vec<String>, String)> {
    let mut sections = Vec::new();
    let mut rows = Vec::new();
    for line in printed.lines() {
        match line.strip_prefix(MARKER) {
            Some(text) => sections.push((std::mem::take(&mut rows), text.trim().to_owned())),
            None => rows.push(line.to_owned()),
        }
    }
    sections
}

/// Rows of integers and decimals; other values are not needed here and become NULL.
fn parse_rows(rows: &[String]) -> Vec<Vec<Value>> {
    let value = |field: &str| match (field.parse(), Decimal::parse(field)) {
        (Ok(number), _) => Value::Integer(number),
        (_, Ok(number)) => Value::Numeric(number),
        _ => Value::Null,
    };
    rows.iter()
        .map(|row| row.split('|').map(value).collect())
        .collect()
}

/// Runs a script and returns what it printed, unaligned and without headings.
fn psql(connection: &str, script: String) -> Result<String, String> {
    let mut process = Command::new("psql")
        .args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--dbname",
            connection,
        ])
        .env("PGCLIENTENCODING", "UTF8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start psql, PostgreSQL's client: {error}"))?;
    let mut stdin = process.stdin.take().expect("the input is a pipe");
    // psql answers while it reads: writing everything first would block both sides.
    let writer = thread::spawn("psql-input", move || stdin.write_all(script.as_bytes()))
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    let output = process
        .wait_with_output()
        .map_err(|error| format!("psql: {error}"))?;
    // A broken pipe shows in the status below, with psql's own words.
    let _ = writer.join();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "psql ended with {}: {}",
            output.status,
            errors.trim()
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| "psql printed text that is not UTF-8".to_owned())
}
