//! Tests of the parser as a whole.

mod fuzz;
mod limits;
mod plpgsql;
mod statements;

use super::{SourceStatement, Statement, script, statement};
use kiln_storage::error::{Error, Position};

/// The files that every workload is made of, which PostgreSQL accepts.
pub(super) const WORKLOADS: &[(&str, &str)] = &[
    (
        "tpcc/schema.sql",
        include_str!("../../../../kiln-workloads/sql/tpcc/schema.sql"),
    ),
    (
        "tpcc/procedures.sql",
        include_str!("../../../../kiln-workloads/sql/tpcc/procedures.sql"),
    ),
    (
        "tpcc/audit.sql",
        include_str!("../../../../kiln-workloads/sql/tpcc/audit.sql"),
    ),
    (
        "smallbank/schema.sql",
        include_str!("../../../../kiln-workloads/sql/smallbank/schema.sql"),
    ),
    (
        "smallbank/procedures.sql",
        include_str!("../../../../kiln-workloads/sql/smallbank/procedures.sql"),
    ),
    (
        "smallbank/audit.sql",
        include_str!("../../../../kiln-workloads/sql/smallbank/audit.sql"),
    ),
];

/// Parses a text that is one statement.
fn parse(text: &str) -> Result<Statement, Error> {
    statement(&SourceStatement::from(text))
}

fn parse_ok(text: &str) -> Statement {
    parse(text).unwrap_or_else(|error| panic!("{error:#}\nin: {text}"))
}

/// Checks that `text` fails with this SQLSTATE and that its message has `message` in it. The place
/// is marked in the text with `¶`, before the offending token.
fn assert_refused(text: &str, state: &str, message: &str) {
    let (before, after) = text
        .split_once('¶')
        .unwrap_or_else(|| panic!("no mark in: {text}"));
    let marked = super::position::after_text(super::position::START, before);
    let text = format!("{before}{after}");
    match parse(&text) {
        Ok(tree) => panic!("was accepted: {text}\n{tree:#?}"),
        Err(error) => {
            assert_eq!(error.state().as_str(), state, "{error:#}\nin: {text}");
            assert!(error.message().contains(message), "{error:#}\nin: {text}");
            assert_eq!(error.position(), Some(marked), "{error:#}\nin: {text}");
        }
    }
}

/// Whether `position` is a character of `text` or the end of it.
fn is_inside(text: &str, position: Position) -> bool {
    let mut here = super::position::START;
    for character in text.chars() {
        if here == position {
            return true;
        }
        here = super::position::after(here, character);
    }
    here == position
}

#[test]
fn every_workload_parses() {
    for (name, text) in WORKLOADS {
        let statements = script(text);
        assert!(statements.len() > 1, "{name} has statements");
        for source in statements {
            if let Err(error) = statement(&source) {
                panic!("{name}: {error:#}\n{}", source.text);
            }
        }
    }
}

#[test]
fn positions_count_from_the_start_of_the_script() {
    let text = "select 1;\n/* é */ create function f() returns int language plpgsql as $b$\n\
                begin\n  return 1 + ;\nend $b$;";
    let statements = script(text);
    let error = statement(&statements[1]).unwrap_err();
    assert_eq!(
        error.position(),
        Some(Position {
            line: 4,
            column: 14
        }),
        "{error}"
    );
    assert_eq!(error.message(), "syntax error at or near \";\"");
}
