//! Explanations of programs.

use kiln_procedure::Program;
use kiln_storage::types::{DataType, Value};

use super::result::{ResultSet, StatementResult};

/// The program's operations and what the analysis knows of them.
pub(super) fn text(program: &Program) -> String {
    kiln_procedure::explain::text(program)
}

/// The program's dependencies as a graph for Graphviz.
pub(super) fn dot(program: &Program) -> String {
    kiln_procedure::explain::dot(program)
}

/// An explanation as PostgreSQL returns it: a row for each line.
pub(super) fn as_rows(text: &str) -> StatementResult {
    StatementResult {
        tag: "EXPLAIN".to_owned(),
        result: Some(ResultSet {
            columns: vec![("QUERY PLAN".to_owned(), DataType::Text)],
            rows: text.lines().map(|line| vec![Value::from(line)]).collect(),
        }),
        notices: Vec::new(),
    }
}
