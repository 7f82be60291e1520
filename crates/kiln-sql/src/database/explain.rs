//! Explanations of programs.

use std::fmt::Write;

use kiln_engine::{Catalog, Procedure};
use kiln_procedure::Program;
use kiln_storage::schema::IndexKind;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::design::is_auxiliary;
use super::result::{ResultSet, StatementResult};

/// The column of an explanation.
pub(super) const COLUMN: &str = "QUERY PLAN";

/// The program's operations and what the analysis knows of them.
pub(super) fn text(program: &Program) -> String {
    kiln_procedure::explain::text(program)
}

/// As [`text()`], with the indexes that a stored procedure uses and how they are built.
pub(super) fn procedure(catalog: &Catalog, procedure: &Procedure) -> String {
    let mut out = text(procedure.program());
    let mut seen = Vec::new();
    for requirement in procedure.index_uses() {
        let found = (requirement.table, requirement.index);
        let table = catalog.table_by_id(requirement.table);
        let (Some(table), false) = (table, seen.contains(&found)) else {
            continue;
        };
        if seen.is_empty() {
            out.push_str("\nindexes\n");
        }
        seen.push(found);
        let _ = writeln!(out, "  {}", index(table, usize::from(requirement.index)));
    }
    out
}

/// An index and how it is built: `stock_pkey_hash on stock: hash (derived)`.
fn index(table: &Table, position: usize) -> String {
    let definition = table.indexes()[position].definition();
    let schema = table.schema();
    let built = match definition.kind {
        IndexKind::Hash if is_auxiliary(table, definition) => "hash (derived)".to_owned(),
        IndexKind::Hash => "hash".to_owned(),
        IndexKind::SplitHash => "hash, split as the rows are (derived)".to_owned(),
        IndexKind::Ordered {
            partition_columns: 0,
        } => "ordered".to_owned(),
        IndexKind::Ordered { partition_columns } => {
            let columns = definition.columns[..partition_columns].iter();
            let names: Vec<&str> = columns
                .map(|column| schema.columns[column.index()].name.as_str())
                .collect();
            format!("ordered, partitioned by {} (derived)", names.join(", "))
        }
    };
    format!("{} on {}: {built}", definition.name, schema.name)
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
            columns: vec![(COLUMN.to_owned(), DataType::Text)],
            rows: text.lines().map(|line| vec![Value::from(line)]).collect(),
        }),
        notices: Vec::new(),
    }
}
