//! Random SQL over a small schema. Kiln compiles and runs each statement without a panic or an
//! internal error, and, where there is a PostgreSQL, does what PostgreSQL does: the same rows or
//! the same SQLSTATE. What Kiln refuses as not supported is counted and left out on both sides.
//!
//! `KILN_SEEDS=0..1000` says which scripts to run; each is a function of its seed, and `--show`
//! prints it.

mod postgres;

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;

use kiln_engine::Configuration;
use kiln_platform::random::Random;

use postgres::harness::Harness;
use postgres::kiln::{self, PANICKED};
use postgres::outcome::{StatementOutcome, UNSUPPORTED};
use postgres::random::{CONTENT, Generator, SETUP};
use postgres::server::Server;

/// Random statements in a script, between the setup and the look at all tables.
const STATEMENTS: usize = 20;

/// The seeds of the run that needs no server, and of the one that compares.
const SEEDS_ALONE: Range<u64> = 0..150;
const SEEDS_COMPARED: Range<u64> = 0..60;

/// Internal errors, which no statement may cause.
const INTERNAL: &str = "XX000";

/// The most differences that are printed.
const SHOWN_MAX: usize = 20;

fn main() -> ExitCode {
    kiln::keep_panics();
    let mut harness = Harness::from_arguments();
    let seeds = match seeds() {
        Ok(seeds) => seeds,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let show = harness.show;
    harness.run("random::no_statement_is_an_internal_error", || {
        alone(seeds.clone().unwrap_or(SEEDS_ALONE), show)
    });
    match Server::from_environment() {
        Some(server) => harness.run("random::does_what_postgresql_does", || {
            compared(&server, seeds.unwrap_or(SEEDS_COMPARED))
        }),
        None => harness.skip("random::does_what_postgresql_does"),
    }
    harness.finish()
}

/// The seeds that the environment asks for.
fn seeds() -> Result<Option<Range<u64>>, String> {
    let Ok(text) = std::env::var("KILN_SEEDS") else {
        return Ok(None);
    };
    let range = text.split_once("..").and_then(|(first, last)| {
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first < last).then_some(first..last)
    });
    match range {
        Some(range) => Ok(Some(range)),
        None => Err(format!("KILN_SEEDS should be like 0..100 and is {text}")),
    }
}

/// The script of a seed.
fn script(seed: u64) -> Vec<String> {
    let mut random = Random::from_seed(seed);
    let mut choose = |bound: usize| random.below(bound);
    let mut generator = Generator::new(&mut choose);
    let setup = SETUP.iter().map(|text| (*text).to_owned());
    let content = CONTENT.iter().map(|text| (*text).to_owned());
    let statements: Vec<String> = (0..STATEMENTS).map(|_| generator.statement()).collect();
    setup.chain(statements).chain(content).collect()
}

fn on_kiln(script: &[String]) -> Vec<StatementOutcome> {
    let statements: Vec<&str> = script.iter().map(String::as_str).collect();
    kiln::run(Configuration::default(), &statements)
}

/// Runs scripts on Kiln alone.
fn alone(seeds: Range<u64>, show: bool) -> Result<String, String> {
    let (mut statements, mut done, mut refused) = (0, 0, 0);
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    for seed in seeds.clone() {
        let script = script(seed);
        if show {
            println!("-- seed {seed}\n{};", script.join(";\n"));
        }
        for (text, outcome) in script.iter().zip(on_kiln(&script)) {
            statements += 1;
            done += usize::from(outcome.message.is_empty());
            refused += usize::from(outcome.sqlstate == UNSUPPORTED);
            if outcome.sqlstate == INTERNAL || outcome.sqlstate == PANICKED {
                // One fault mostly shows in many statements, of which the shortest says most.
                let cause: String = outcome.message.replace(|c: char| c.is_ascii_digit(), "");
                let shown = format!("seed {seed}: {text}\n  {outcome}");
                let known: &mut String = faults.entry(cause).or_default();
                if known.is_empty() || known.len() > shown.len() {
                    *known = shown;
                }
                break;
            }
        }
    }
    report(faults.into_values().collect())?;
    // Most must compile, or the generator makes nonsense.
    if done * 3 < statements * 2 {
        return Err(format!(
            "of {statements} statements {done} were done and {refused} refused"
        ));
    }
    Ok(format!(
        " (seeds {seeds:?}: {statements} statements, {done} done, {refused} refused)"
    ))
}

/// Runs scripts on both and compares.
fn compared(server: &Server, seeds: Range<u64>) -> Result<String, String> {
    let (mut statements, mut refused) = (0, 0);
    let mut faults = Vec::new();
    for seed in seeds.clone() {
        let script = script(seed);
        let outcomes = on_kiln(&script);
        // What Kiln refuses must not be done by PostgreSQL either.
        let (texts, outcomes): (Vec<&str>, Vec<StatementOutcome>) = script
            .iter()
            .map(String::as_str)
            .zip(outcomes)
            .filter(|(_, outcome)| outcome.sqlstate != UNSUPPORTED)
            .unzip();
        refused += script.len() - texts.len();
        statements += texts.len();
        let on_postgres = server.run(std::slice::from_ref(&texts))?;
        let pairs = texts
            .iter()
            .zip(&outcomes)
            .zip(on_postgres.iter().flatten());
        // After the first difference the tables may differ.
        let difference = pairs
            .into_iter()
            .find(|((_, kiln), postgres)| !agree(kiln, postgres));
        if let Some(((text, kiln), postgres)) = difference {
            faults.push(format!(
                "seed {seed}: {text}\n  PostgreSQL: {postgres}\n  Kiln: {kiln}"
            ));
        }
    }
    report(faults)?;
    Ok(format!(
        " (seeds {seeds:?}: {statements} statements; Kiln refuses {refused})"
    ))
}

fn report(faults: Vec<String>) -> Result<(), String> {
    if faults.is_empty() {
        return Ok(());
    }
    let count = faults.len();
    let shown: Vec<String> = faults.into_iter().take(SHOWN_MAX).collect();
    Err(format!("{}\n\n{count} faults", shown.join("\n\n")))
}

/// Whether both gave the same rows, in whatever order, or the same error.
fn agree(one: &StatementOutcome, other: &StatementOutcome) -> bool {
    let rows = |outcome: &StatementOutcome| {
        // The header comes first; its names are compared by the corpus.
        let mut lines: Vec<String> = outcome.output.lines().skip(1).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    one.sqlstate == other.sqlstate && rows(one) == rows(other)
}
