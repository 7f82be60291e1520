//! Whole statements, from text to rows.

mod cancel;
mod catalogs;
mod changes;
mod constraints;
mod definitions;
mod design;
mod groups;
mod joins;
mod no_columns;
mod panics;
mod rebuild;
mod replaced;
mod schemas;
mod sessions;
mod stages;
mod submitted;
mod volatile;

use kiln_engine::Options;

use super::{Database, Session};
use crate::parse::script;

/// An empty database with one worker.
fn open() -> Database {
    Database::open(Options::new().workers(1).pin_workers(false)).expect("the options are good")
}

/// What each statement of a script did in a fresh database: its rows as CSV, else its tag or its
/// error; notices before them.
fn transcript(text: &str) -> String {
    let database = open();
    let mut session = database.session().expect("a session is free");
    transcript_in(&mut session, text)
}

fn transcript_in(session: &mut Session, text: &str) -> String {
    let mut out = String::new();
    for source in script(text) {
        match session.execute_statement(&source) {
            Ok(result) => {
                for notice in &result.notices {
                    out.push_str(&format!("{notice}\n"));
                }
                match &result.result {
                    Some(rows) => out.push_str(&rows.to_csv()),
                    None => out.push_str(&format!("{}\n", result.tag)),
                }
            }
            Err(error) => {
                out.push_str(&format!("{}: {}", error.state(), error.message()));
                if let Some(detail) = error.detail() {
                    out.push_str(&format!(" / {detail}"));
                }
                out.push('\n');
            }
        }
    }
    out
}

/// Compares a script's transcript with the lines expected, of which leading blanks do not count.
#[track_caller]
fn check(text: &str, expected: &str) {
    let trimmed: Vec<&str> = expected
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty())
        .collect();
    let actual = transcript(text);
    let actual: Vec<&str> = actual.lines().collect();
    assert_eq!(actual, trimmed, "{text}");
}
