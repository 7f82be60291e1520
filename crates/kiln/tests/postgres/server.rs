//! A PostgreSQL server, reached through the `psql` client: one process runs a whole script and
//! reports on every statement.

use std::io::Write as _;
use std::process::{Command, Stdio};

use kiln_platform::thread;

use super::outcome::{NULL_TEXT, SUCCESS, StatementOutcome};

/// The environment variable that names the server by a libpq connection string.
pub const VARIABLE: &str = "KILN_TEST_POSTGRES";

/// What to tell a person whose run has no server.
pub const HOW_TO_GET_ONE: &str = "KILN_TEST_POSTGRES is not set, so nothing was compared with \
PostgreSQL. Set it to a libpq connection string of a server of version 15 or newer whose schemas \
may be created and dropped, or let a throwaway server run: .ci/postgres cargo test --workspace";

/// Starts the lines that `psql` prints around each statement's output.
const MARKER: &str = "=#=kiln=#=";

/// The settings on which output depends.
const SETTINGS: &str = "\
SET client_min_messages = error;
SET client_encoding = 'UTF8';
SET lc_messages = 'C';
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
SET intervalstyle = 'postgres';
SET extra_float_digits = 1;
SET bytea_output = 'hex';
SET standard_conforming_strings = on;
SET check_function_bodies = on;
";

/// A server to compare with.
pub struct Server {
    connection: String,
}

impl Server {
    /// The server that [`VARIABLE`] names, if it is set.
    pub fn from_environment() -> Option<Server> {
        let connection = std::env::var(VARIABLE).ok()?;
        (!connection.is_empty()).then_some(Server { connection })
    }

    /// Runs each of `scripts`, a list of statements, in a fresh schema of its own, one after
    /// another, and gives what each statement did.
    ///
    /// # Errors
    /// What kept `psql` from running all statements.
    pub fn run(&self, scripts: &[Vec<&str>]) -> Result<Vec<Vec<StatementOutcome>>, String> {
        let mut input = format!("{SETTINGS}\\pset null '{NULL_TEXT}'\n");
        // Runs against the same server at the same time must not meet.
        let schema = format!("kiln_test_{}", std::process::id());
        for script in scripts {
            input += &format!(
                "DISCARD TEMP;\nDROP SCHEMA IF EXISTS {schema} CASCADE;\nCREATE SCHEMA {schema};\n\
                 SET search_path TO {schema};\n\\echo {MARKER} script\n"
            );
            for statement in script {
                push_statement(&mut input, statement);
            }
            input += "ROLLBACK;\n";
        }
        input += &format!("DROP SCHEMA IF EXISTS {schema} CASCADE;\n\\echo {MARKER} end\n");

        let printed = self.psql(input)?;
        let outcomes = read_outcomes(&printed);
        let complete = outcomes.len() == scripts.len()
            && outcomes
                .iter()
                .zip(scripts)
                .all(|(outcomes, script)| outcomes.len() == script.len());
        if complete && is_whole(&printed) {
            Ok(outcomes)
        } else {
            Err(incomplete(&printed))
        }
    }

    /// Runs `setup`, a script for psql that must succeed, in a fresh schema, and then `statements`,
    /// and gives what each of those did.
    ///
    /// # Errors
    /// What kept `psql` from running all of it.
    pub fn run_after(
        &self,
        setup: &str,
        statements: &[String],
    ) -> Result<Vec<StatementOutcome>, String> {
        let schema = format!("kiln_test_{}", std::process::id());
        let enter = format!(
            "{SETTINGS}DROP SCHEMA IF EXISTS {schema} CASCADE;\nCREATE SCHEMA {schema};\n\
             SET search_path TO {schema};\n"
        );
        let mut input =
            format!("\\set ON_ERROR_STOP on\n{enter}{setup}\n\\set ON_ERROR_STOP off\n");
        input += &format!("\\pset null '{NULL_TEXT}'\n\\echo {MARKER} script\n");
        for statement in statements {
            push_statement(&mut input, statement);
        }
        input += &format!("DROP SCHEMA IF EXISTS {schema} CASCADE;\n\\echo {MARKER} end\n");
        let printed = self.psql(input)?;
        match read_outcomes(&printed).pop() {
            Some(outcomes) if outcomes.len() == statements.len() && is_whole(&printed) => {
                Ok(outcomes)
            }
            _ => Err(incomplete(&printed)),
        }
    }

    fn psql(&self, input: String) -> Result<String, String> {
        let mut process = Command::new("psql")
            .args(["--no-psqlrc", "--quiet", "--csv", "--dbname"])
            .arg(&self.connection)
            .env("PGCLIENTENCODING", "UTF8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start psql, PostgreSQL's client: {error}"))?;
        let mut stdin = process.stdin.take().expect("the input is a pipe");
        // psql answers while it reads: writing everything first would block both sides.
        let writer = thread::spawn("psql-input", move || stdin.write_all(input.as_bytes()))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let output = process
            .wait_with_output()
            .map_err(|error| format!("psql: {error}"))?;
        // A broken pipe shows in the status below, with psql's own words.
        let _ = writer.join();
        if !output.status.success() {
            return Err(format!(
                "psql ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            ));
        }
        String::from_utf8(output.stdout).map_err(|_| "psql printed text that is not UTF-8".into())
    }
}

/// Appends a statement, and commands that tell what it did.
fn push_statement(input: &mut String, statement: &str) {
    *input += &format!(
        "{statement}\n;\n\\echo {MARKER} sqlstate :SQLSTATE\n\
         \\echo :LAST_ERROR_MESSAGE\n\\echo {MARKER} next\n"
    );
}

/// Whether psql came to the end of its script.
fn is_whole(printed: &str) -> bool {
    printed.ends_with(&format!("{MARKER} end\n"))
}

fn incomplete(printed: &str) -> String {
    let last: Vec<&str> = printed.lines().rev().take(12).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    format!(
        "psql did not report on every statement; it stopped at:\n{}",
        last.join("\n")
    )
}

/// Cuts what `psql` printed at the markers.
fn read_outcomes(printed: &str) -> Vec<Vec<StatementOutcome>> {
    let mut scripts: Vec<Vec<StatementOutcome>> = Vec::new();
    let mut text = String::new();
    let mut pending: Option<StatementOutcome> = None;
    for line in printed.split_inclusive('\n') {
        let Some(marker) = line.strip_prefix(MARKER) else {
            text += line;
            continue;
        };
        let mut passed = std::mem::take(&mut text);
        // The names of no columns.
        if passed == "\n" {
            passed.clear();
        }
        let marker = marker.trim();
        if marker == "script" {
            scripts.push(Vec::new());
        } else if let Some(sqlstate) = marker.strip_prefix("sqlstate ") {
            let mut outcome = StatementOutcome::success(passed);
            outcome.sqlstate = sqlstate.to_owned();
            pending = Some(outcome);
        } else if marker == "next"
            && let Some(mut outcome) = pending.take()
            && let Some(script) = scripts.last_mut()
        {
            // The variable keeps the last error's text after a success.
            if outcome.sqlstate != SUCCESS {
                outcome.message = passed.trim_end_matches('\n').to_owned();
            }
            script.push(outcome);
        }
    }
    scripts
}
