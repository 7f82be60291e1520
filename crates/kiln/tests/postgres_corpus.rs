//! Runs the SQL and PL/pgSQL snippets of `postgres/corpus` on a real PostgreSQL and on Kiln, under
//! each protocol, and compares what every statement did: its rows as CSV, or its SQLSTATE.
//!
//! `--show` prints what PostgreSQL answers, for whoever writes snippets.

mod postgres;

use std::path::Path;
use std::process::ExitCode;

use kiln_engine::Protocol;

use postgres::corpus::{self, CorpusFile};
use postgres::harness::Harness;
use postgres::kiln;
use postgres::outcome::{SUCCESS, StatementOutcome};
use postgres::server::Server;

/// Fewer snippets than this mean that files were lost.
const SNIPPETS_MIN: usize = 500;

fn main() -> ExitCode {
    kiln::keep_panics();
    let mut harness = Harness::from_arguments();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/corpus");
    let files = match corpus::load(&directory) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("the corpus cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    for (name, test) in SELF_TESTS {
        harness.run(name, || test(&files).map(|()| ""));
    }
    let server = Server::from_environment();
    let show = harness.show;
    for file in &files {
        let name = format!("corpus::{}", file.theme);
        match &server {
            Some(server) => harness.run(&name, || check(file, server, show)),
            None => harness.skip(&name),
        }
    }
    harness.finish()
}

/// Runs one file and reports every statement that did something else than it should.
fn check(file: &CorpusFile, server: &Server, show: bool) -> Result<String, String> {
    let scripts: Vec<Vec<&str>> = file
        .snippets
        .iter()
        .map(|snippet| snippet.statements.iter().map(|s| s.sql.as_str()).collect())
        .collect();
    let on_postgres = server.run(&scripts)?;
    let mut differences = Vec::new();
    let (mut statements, mut snippets_that_differ) = (0, 0);
    for ((snippet, script), postgres) in file.snippets.iter().zip(&scripts).zip(&on_postgres) {
        statements += postgres.len();
        let before = differences.len();
        for (statement, outcome) in snippet.statements.iter().zip(postgres) {
            if show {
                println!(
                    "{}:{}: {}\n{outcome}\n",
                    file.theme, statement.line, statement.sql
                );
            }
            if outcome.sqlstate != statement.expected_sqlstate {
                differences.push(format!(
                    "{}.sql:{} {}: {}\n  the corpus expects SQLSTATE {}\n  PostgreSQL: {outcome}",
                    file.theme,
                    statement.line,
                    snippet.name,
                    statement.sql,
                    statement.expected_sqlstate,
                ));
            }
        }
        // What the default protocol gets wrong needs to be read once.
        let others = Protocol::ALL
            .into_iter()
            .filter(|other| *other != Protocol::default());
        for protocol in [Protocol::default()].into_iter().chain(others) {
            let found = differences.len();
            let on_kiln = kiln::run(protocol, script);
            for ((statement, expected), got) in
                snippet.statements.iter().zip(postgres).zip(&on_kiln)
            {
                if !expected.agrees_with(got, file.compares_messages) {
                    differences.push(format!(
                        "{}.sql:{} {}: {}\n  PostgreSQL: {expected}\n  Kiln ({protocol}): {got}",
                        file.theme, statement.line, snippet.name, statement.sql,
                    ));
                }
            }
            if differences.len() > found {
                break;
            }
        }
        snippets_that_differ += usize::from(differences.len() > before);
    }
    let snippets = file.snippets.len();
    if differences.is_empty() {
        return Ok(format!(" ({snippets} snippets, {statements} statements)"));
    }
    differences.push(format!(
        "{snippets_that_differ} of {snippets} snippets differ"
    ));
    Err(differences.join("\n\n"))
}

type SelfTest = fn(&[CorpusFile]) -> Result<(), String>;

/// What must hold without a server: the corpus is whole and the harness sees what it should see.
const SELF_TESTS: [(&str, SelfTest); 4] = [
    ("harness::corpus_is_whole", corpus_is_whole),
    ("harness::statements_are_split", statements_are_split),
    (
        "harness::malformed_corpus_is_refused",
        malformed_corpus_is_refused,
    ),
    ("harness::differences_are_seen", differences_are_seen),
];

fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

fn corpus_is_whole(files: &[CorpusFile]) -> Result<(), String> {
    let mut names: Vec<&str> = files
        .iter()
        .flat_map(|file| file.snippets.iter().map(|snippet| snippet.name.as_str()))
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    ensure(names.len() == count, "two snippets have the same name")?;
    ensure(
        count >= SNIPPETS_MIN,
        &format!("{count} snippets; at least {SNIPPETS_MIN} were there once"),
    )
}

fn statements_are_split(_: &[CorpusFile]) -> Result<(), String> {
    let script = "SELECT ';'; -- a; comment\nSELECT E'\\';', 'it''s;', \"a;b\", $1;\n\
                  /* a ; /* nested ; */ */ DO $x$ BEGIN; $$ ; END; $x$;\n\nSELECT a$b, 1";
    let expected = [
        "SELECT ';'",
        "SELECT E'\\';', 'it''s;', \"a;b\", $1",
        "/* a ; /* nested ; */ */ DO $x$ BEGIN; $$ ; END; $x$",
        "SELECT a$b, 1",
    ];
    let split = corpus::split_statements(script);
    ensure(split == expected, &format!("split into {split:#?}"))
}

fn malformed_corpus_is_refused(_: &[CorpusFile]) -> Result<(), String> {
    for (text, complaint) in [
        ("SELECT 1;", "1: a statement before"),
        ("-- snippet: a\n\nSELECT 1", "3: the statement does not end"),
        (
            "-- snippet: a\nSELECT 1;\n-- error: 22012\n",
            "4: '-- error:' without",
        ),
        (
            "-- snippet: a\n-- snippet: b\nSELECT 1;",
            "1: snippet a has no statement",
        ),
    ] {
        let refused = corpus::parse("sample", text)
            .err()
            .is_some_and(|error| error.starts_with(complaint));
        ensure(refused, &format!("not refused with '{complaint}': {text}"))?;
    }
    let parsed = corpus::parse(
        "sample",
        "-- snippet: a\n-- error: 22012\nSELECT\n1 / 0;SELECT 2;",
    )?;
    let statements = &parsed.snippets[0].statements;
    ensure(
        statements.len() == 2
            && statements[0].sql == "SELECT\n1 / 0"
            && statements[0].line == 3
            && statements[0].expected_sqlstate == "22012"
            && statements[1].line == 4
            && statements[1].expected_sqlstate == SUCCESS,
        &format!("parsed as {statements:#?}"),
    )
}

fn differences_are_seen(_: &[CorpusFile]) -> Result<(), String> {
    let rows = StatementOutcome::success("a\n1\n");
    let other_rows = StatementOutcome::success("a\n2\n");
    let failure = StatementOutcome::failure("22012", "division by zero");
    let reworded = StatementOutcome::failure("22012", "cannot divide");
    let other_failure = StatementOutcome::failure("22003", "division by zero");
    ensure(rows.agrees_with(&rows, true), "equal rows differ")?;
    ensure(!rows.agrees_with(&other_rows, false), "unequal rows agree")?;
    ensure(
        !rows.agrees_with(&failure, false),
        "rows agree with an error",
    )?;
    ensure(
        failure.agrees_with(&reworded, false),
        "wording counts where it must not",
    )?;
    ensure(
        !failure.agrees_with(&reworded, true),
        "wording does not count where it must",
    )?;
    ensure(
        !failure.agrees_with(&other_failure, false),
        "unequal SQLSTATEs agree",
    )
}
