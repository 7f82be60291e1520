//! Runs the SQL and PL/pgSQL snippets of `postgres/corpus` on a real PostgreSQL and on Kiln, under
//! each protocol, and compares what every statement did: its rows as CSV, or its SQLSTATE.
//!
//! For authors of snippets, `--show` prints what PostgreSQL answers, and `--corpus=DIRECTORY` reads
//! snippets from elsewhere.

mod postgres;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kiln_engine::Configuration;

use postgres::corpus::{self, CorpusFile, Snippet, Statement};
use postgres::harness::Harness;
use postgres::kiln;
use postgres::outcome::{SUCCESS, StatementOutcome, UNSUPPORTED};
use postgres::server::Server;

/// Fewer snippets than this mean that files were lost.
const SNIPPETS_MIN: usize = 500;

fn main() -> ExitCode {
    kiln::keep_panics();
    let mut harness = Harness::from_arguments();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/corpus");
    let directory = harness.corpus.as_ref().map_or(own, PathBuf::from);
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
    let (mut statements, mut refused, mut differing) = (0, 0, 0);
    // The default, and another protocol for each snippet: what they all share is compiled once.
    let others: Vec<Configuration> = Configuration::serializable()
        .filter(|other| *other != Configuration::default())
        .collect();
    let snippets = file.snippets.iter().enumerate();
    for (((number, snippet), script), postgres) in snippets.zip(&scripts).zip(&on_postgres) {
        let mut turn = others
            .iter()
            .cycle()
            .skip(number % others.len())
            .take(others.len());
        let other = turn.find(|other| snippet.runs_under(other.protocol.name()));
        let other = other.copied().unwrap_or_default();
        statements += postgres.len();
        refused += usize::from(snippet.statements.iter().any(|s| s.refused.is_some()));
        if show {
            for (statement, outcome) in snippet.statements.iter().zip(postgres) {
                println!(
                    "{}:{}: {}\n{outcome}\n",
                    file.theme, statement.line, statement.sql
                );
            }
        }
        let before = differences.len();
        differences.extend(unexpected(file, snippet, postgres));
        // A difference under both protocols needs to be read once.
        for protocol in [Configuration::default(), other] {
            let on_kiln = kiln::run(protocol, script);
            let found = compare(file, snippet, protocol, postgres, &on_kiln);
            if !found.is_empty() {
                differences.extend(found);
                break;
            }
        }
        differing += usize::from(differences.len() > before);
    }
    let snippets = file.snippets.len();
    if !differences.is_empty() {
        differences.push(format!("{differing} of {snippets} snippets differ"));
        return Err(differences.join("\n\n"));
    }
    Ok(match refused {
        0 => format!(" ({snippets} snippets, {statements} statements)"),
        _ => format!(" ({snippets} snippets, {statements} statements; Kiln refuses {refused})"),
    })
}

/// Where PostgreSQL does not do what the corpus says.
fn unexpected(file: &CorpusFile, snippet: &Snippet, postgres: &[StatementOutcome]) -> Vec<String> {
    let pairs = snippet.statements.iter().zip(postgres);
    pairs
        .filter(|(statement, outcome)| outcome.sqlstate != statement.expected_sqlstate)
        .map(|(statement, outcome)| {
            format!(
                "{}\n  the corpus expects SQLSTATE {}\n  PostgreSQL: {outcome}",
                place(file, snippet, statement),
                statement.expected_sqlstate,
            )
        })
        .collect()
}

/// Where Kiln does not do what PostgreSQL does, nor refuses what it should.
fn compare(
    file: &CorpusFile,
    snippet: &Snippet,
    protocol: Configuration,
    postgres: &[StatementOutcome],
    on_kiln: &[StatementOutcome],
) -> Vec<String> {
    let mut differences = Vec::new();
    for ((statement, expected), got) in snippet.statements.iter().zip(postgres).zip(on_kiln) {
        let place = || place(file, snippet, statement);
        match &statement.refused {
            Some(feature) => {
                if got.sqlstate != UNSUPPORTED || !got.message.contains(feature.as_str()) {
                    differences.push(format!(
                        "{}\n  refused should be: {feature}\n  Kiln ({protocol}): {got}",
                        place()
                    ));
                }
                break;
            }
            None if !expected.agrees_with(got, file.compares_messages) => {
                differences.push(format!(
                    "{}\n  PostgreSQL: {expected}\n  Kiln ({protocol}): {got}",
                    place()
                ));
            }
            None => {}
        }
    }
    differences
}

fn place(file: &CorpusFile, snippet: &Snippet, statement: &Statement) -> String {
    format!(
        "{}.sql:{} {}: {}",
        file.theme, statement.line, snippet.name, statement.sql
    )
}

type SelfTest = fn(&[CorpusFile]) -> Result<(), String>;

/// What must hold without a server: the corpus is whole and the harness sees what it should see.
const SELF_TESTS: [(&str, SelfTest); 6] = [
    ("harness::corpus_is_whole", corpus_is_whole),
    ("harness::statements_are_split", statements_are_split),
    (
        "harness::malformed_corpus_is_refused",
        malformed_corpus_is_refused,
    ),
    ("harness::differences_are_seen", differences_are_seen),
    ("harness::refusals_are_checked", refusals_are_checked),
    (
        "blocks::do_what_their_statements_do",
        blocks_do_what_their_statements_do,
    ),
];

/// Each snippet as one transaction block, in which errors are rolled back to a savepoint, gives
/// what it gives statement by statement: also when it is made again at the end.
fn blocks_do_what_their_statements_do(files: &[CorpusFile]) -> Result<(), String> {
    let protocols: Vec<Configuration> = Configuration::serializable().collect();
    let mut protocols = protocols.into_iter().cycle();
    let mut differences = Vec::new();
    for (file, snippet) in files
        .iter()
        .flat_map(|file| file.snippets.iter().map(move |snippet| (file, snippet)))
        .filter(|(_, snippet)| snippet.statements.iter().all(may_be_in_block))
    {
        let protocol = protocols.next().unwrap_or_default();
        let alone: Vec<&str> = snippet
            .statements
            .iter()
            .map(|it| it.sql.as_str())
            .collect();
        let alone = kiln::run(protocol, &alone);
        let (mut script, mut places) = (vec!["BEGIN"], Vec::new());
        let refused = snippet
            .statements
            .iter()
            .position(|it| it.refused.is_some());
        let statements = &snippet.statements[..refused.unwrap_or(snippet.statements.len())];
        for statement in statements {
            let fails = statement.expected_sqlstate != SUCCESS;
            script.extend(fails.then_some("SAVEPOINT before"));
            places.push(script.len());
            script.push(&statement.sql);
            script.extend(fails.then_some("ROLLBACK TO before"));
        }
        script.push("COMMIT");
        let within = kiln::run(protocol, &script);
        for ((statement, alone), at) in statements.iter().zip(&alone).zip(places) {
            if !alone.agrees_with(&within[at], true) {
                let place = place(file, snippet, statement);
                let within = &within[at];
                differences.push(format!(
                    "{place}\n  alone: {alone}\n  within ({protocol}): {within}"
                ));
                break;
            }
        }
        let ended = &within[within.len() - 1];
        if ended.sqlstate != SUCCESS {
            differences.push(format!(
                "{}: {} ({protocol}): {ended}",
                file.theme, snippet.name
            ));
        }
    }
    ensure(differences.is_empty(), &differences.join("\n\n"))
}

/// Whether a statement does nothing to transactions, and gives the same each time.
fn may_be_in_block(statement: &Statement) -> bool {
    const OTHERS: [&str; 12] = [
        "BEGIN",
        "START",
        "COMMIT",
        "END",
        "ROLLBACK",
        "ABORT",
        "SAVEPOINT",
        "RELEASE",
        "SET ",
        "VACUUM",
        "DISCARD",
        "EXPLAIN",
    ];
    // What a sequence has logged ahead depends on how often the block was tried. What ends with a
    // transaction does not end in it.
    const CHANGING: [&str; 8] = [
        "random(",
        "now()",
        "current_",
        "clock_",
        "log_cnt",
        "* from s",
        "_seq",
        "on commit",
    ];
    let text = statement.sql.to_uppercase();
    !OTHERS.iter().any(|other| text.starts_with(other))
        && !CHANGING
            .iter()
            .any(|it| statement.sql.to_lowercase().contains(it))
}

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
            "-- snippet: a\nSELECT 1;\n-- refused: it\n",
            "4: '-- refused:' without",
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
        "-- snippet: a\n-- error: 22012\nSELECT\n1 / 0;SELECT 2;\n-- refused: the lot\nSELECT 3;",
    )?;
    let statements = &parsed.snippets[0].statements;
    ensure(
        statements.len() == 3
            && statements[0].sql == "SELECT\n1 / 0"
            && statements[0].line == 3
            && statements[0].expected_sqlstate == "22012"
            && statements[1].line == 4
            && statements[1].expected_sqlstate == SUCCESS
            && statements[1].refused.is_none()
            && statements[2].refused.as_deref() == Some("the lot"),
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

fn refusals_are_checked(_: &[CorpusFile]) -> Result<(), String> {
    let text = "-- snippet: a\nSELECT 1;\n-- refused: magic\nSELECT 2;\nSELECT 3;";
    let file = corpus::parse("sample", text)?;
    let row = |text: &str| StatementOutcome::success(text);
    let postgres = [row("1"), row("2"), row("3")];
    let differences = |second: StatementOutcome| {
        let on_kiln = [row("1"), second, row("other")];
        compare(
            &file,
            &file.snippets[0],
            Configuration::default(),
            &postgres,
            &on_kiln,
        )
        .len()
    };
    let refusal = StatementOutcome::failure(UNSUPPORTED, "magic is not supported");
    ensure(differences(refusal) == 0, "a refusal is a difference")?;
    let unnamed = StatementOutcome::failure(UNSUPPORTED, "no");
    ensure(
        differences(unnamed) == 1,
        "a refusal need not name the feature",
    )?;
    ensure(
        differences(row("2")) == 1,
        "what works may be called refused",
    )
}
