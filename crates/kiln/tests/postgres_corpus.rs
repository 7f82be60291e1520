//! Runs the SQL and PL/pgSQL snippets of `postgres/corpus` on a real PostgreSQL.
//!
//! The harness is our own (`harness = false`) because a run without a server must say *skipped*,
//! which the standard one cannot. Arguments are those of the standard one as far as they matter:
//! words that select tests by their names, `--list`, and options, which are ignored. `--show`
//! prints what PostgreSQL answers, for whoever writes snippets.

mod postgres;

use std::path::Path;
use std::process::ExitCode;

use postgres::corpus::{self, CorpusFile};
use postgres::outcome::{SUCCESS, StatementOutcome};
use postgres::server::{HOW_TO_GET_ONE, Server};

/// Fewer snippets than this mean that files were lost.
const SNIPPETS_MIN: usize = 500;

fn main() -> ExitCode {
    let mut filters = Vec::new();
    let mut list_only = false;
    let mut show = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--list" => list_only = true,
            "--show" => show = true,
            option if option.starts_with('-') => {}
            _ => filters.push(argument),
        }
    }
    let selected = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(&**f));

    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/corpus");
    let files = match corpus::load(&directory) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("the corpus cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };

    let mut report = Report::default();
    for (name, test) in SELF_TESTS {
        if selected(name) {
            report.run(list_only, name, || test(&files).map(|()| String::new()));
        }
    }
    let server = Server::from_environment();
    for file in &files {
        let name = format!("corpus::{}", file.theme);
        if !selected(&name) {
            continue;
        }
        match &server {
            Some(server) => report.run(list_only, &name, || check(file, server, show)),
            None => report.skip(list_only, &name),
        }
    }
    report.finish(list_only)
}

/// Counts and prints the results in the words of the standard harness.
#[derive(Default)]
struct Report {
    passed: usize,
    skipped: usize,
    failures: Vec<(String, String)>,
}

impl Report {
    fn run(&mut self, list_only: bool, name: &str, test: impl FnOnce() -> Result<String, String>) {
        if list_only {
            println!("{name}: test");
            return;
        }
        match test() {
            Ok(remark) => {
                println!("test {name} ... ok{remark}");
                self.passed += 1;
            }
            Err(failure) => {
                println!("test {name} ... FAILED");
                self.failures.push((name.to_owned(), failure));
            }
        }
    }

    fn skip(&mut self, list_only: bool, name: &str) {
        if list_only {
            println!("{name}: test");
            return;
        }
        println!("test {name} ... skipped");
        self.skipped += 1;
    }

    fn finish(self, list_only: bool) -> ExitCode {
        if list_only {
            return ExitCode::SUCCESS;
        }
        for (name, failure) in &self.failures {
            println!("\n---- {name} ----\n{failure}");
        }
        if self.skipped > 0 {
            eprintln!("\nSKIPPED: {HOW_TO_GET_ONE}");
        }
        let failed = self.failures.len();
        println!(
            "\ntest result: {}. {} passed; {failed} failed; {} skipped\n",
            if failed == 0 { "ok" } else { "FAILED" },
            self.passed,
            self.skipped
        );
        if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
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
    let mut statements = 0;
    for (snippet, postgres) in file.snippets.iter().zip(&on_postgres) {
        statements += postgres.len();
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
    }
    if differences.is_empty() {
        Ok(format!(
            " ({} snippets, {statements} statements)",
            file.snippets.len()
        ))
    } else {
        Err(differences.join("\n\n"))
    }
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
