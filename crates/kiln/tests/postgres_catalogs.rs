//! The catalogs of Kiln and of PostgreSQL: the same tables in both, and the same rows from what
//! clients ask.
//!
//! `postgres/catalogs/schema.sql` is made in both systems, and each statement of the files beside
//! it must do the same in both. Those in `later/` use what Kiln's SQL may not have yet: it may
//! refuse one of them (0A000) or not know a function (42883), but not answer another thing.

#![cfg(not(kiln_sim))]

mod postgres;

use std::process::ExitCode;

use kiln_engine::Protocol;
use kiln_sql::Session;
use postgres::harness::Harness;
use postgres::kiln;
use postgres::outcome::{StatementOutcome, UNSUPPORTED};
use postgres::server::Server;

const SCHEMA: &str = include_str!("postgres/catalogs/schema.sql");

/// The SQLSTATE of a call of a function that is not known.
const UNKNOWN_FUNCTION: &str = "42883";

/// The statements that must do the same, and those of which Kiln may refuse some.
const FILES: [(&str, &str, bool); 6] = [
    (
        "relations",
        include_str!("postgres/catalogs/relations.sql"),
        true,
    ),
    (
        "information_schema",
        include_str!("postgres/catalogs/information_schema.sql"),
        true,
    ),
    (
        "functions",
        include_str!("postgres/catalogs/functions.sql"),
        true,
    ),
    (
        "drivers",
        include_str!("postgres/catalogs/drivers.sql"),
        true,
    ),
    (
        "psql",
        include_str!("postgres/catalogs/later/psql.sql"),
        false,
    ),
    (
        "clients",
        include_str!("postgres/catalogs/later/clients.sql"),
        false,
    ),
];

fn main() -> ExitCode {
    let mut harness = Harness::from_arguments();
    let server = Server::from_environment();
    kiln::keep_panics();
    for (name, text, is_whole) in FILES {
        match &server {
            Some(server) => harness.run(name, || compare(server, text, is_whole)),
            None => harness.skip(name),
        }
    }
    harness.finish()
}

/// The statements of a file, a line each.
fn statements(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("--") && !line.is_empty());
    lines
        .map(|line| line.trim_end_matches(';').to_owned())
        .collect()
}

fn compare(server: &Server, text: &str, is_whole: bool) -> Result<String, String> {
    let statements = statements(text);
    let setup = format!("DROP ROLE IF EXISTS kiln_catalogs_shop;\n{SCHEMA}");
    let theirs = server.run_after(&setup, &statements)?;
    let ours = kiln::guarded(|| ours(&statements))??;
    let mut differences = String::new();
    let mut refused = 0;
    for ((statement, ours), theirs) in statements.iter().zip(&ours).zip(&theirs) {
        let theirs = as_ours(theirs);
        if [UNSUPPORTED, UNKNOWN_FUNCTION].contains(&ours.sqlstate.as_str()) && !is_whole {
            refused += 1;
            continue;
        }
        if !ours.agrees_with(&theirs, false) {
            differences += &format!("{statement}\n  Kiln:\n{ours}\n  PostgreSQL:\n{theirs}\n\n");
        }
    }
    match differences.is_empty() {
        true => Ok(format!(
            " ({} statements, {refused} of them refused by Kiln)",
            statements.len()
        )),
        false => Err(differences),
    }
}

fn ours(statements: &[String]) -> Result<Vec<StatementOutcome>, String> {
    let database = kiln::open(Protocol::default().into()).map_err(|error| error.to_string())?;
    database
        .execute(SCHEMA)
        .map_err(|error| error.to_string())?;
    let mut session: Session = database.session().map_err(|error| error.to_string())?;
    let outcomes = statements.iter();
    Ok(outcomes
        .map(|statement| kiln::run_statement(&mut session, statement))
        .collect())
}

/// PostgreSQL's outcome with Kiln's names of the schema and the database.
fn as_ours(theirs: &StatementOutcome) -> StatementOutcome {
    let schema = format!("kiln_test_{}", std::process::id());
    let renamed = |text: &str| text.replace(&schema, "public");
    StatementOutcome {
        sqlstate: theirs.sqlstate.clone(),
        output: renamed(&theirs.output),
        message: renamed(&theirs.message),
    }
}
