//! The columns by which operations find records, and those that they read and write.

use kiln_storage::schema::{ColumnId, ColumnSet};

use crate::ir::*;
use crate::procedure::Procedure;

/// The columns of all indexes of a table.
pub(super) fn indexed_columns(procedure: &Procedure, table: TableRef) -> ColumnSet {
    let indexes = procedure.tables[table.0 as usize].indexes();
    indexes
        .iter()
        .flat_map(|index| index.definition().columns.iter().copied())
        .collect()
}

fn index_columns(procedure: &Procedure, table: TableRef, index: u16) -> ColumnSet {
    let index = &procedure.tables[table.0 as usize].indexes()[index as usize];
    index.definition().columns.iter().copied().collect()
}

fn all_columns(procedure: &Procedure, table: TableRef) -> ColumnSet {
    let width = procedure.tables[table.0 as usize].schema().columns.len();
    (0..width).map(|column| ColumnId(column as u16)).collect()
}

/// The key columns, the columns read and the columns written by an operation, and its table.
pub(super) fn columns_of(
    procedure: &Procedure,
    step: &Step,
) -> Option<(OpId, TableRef, [ColumnSet; 3])> {
    let none = ColumnSet::EMPTY;
    Some(match step {
        Step::Lookup {
            op, table, index, ..
        } => (
            *op,
            *table,
            [index_columns(procedure, *table, *index), none, none],
        ),
        Step::Scan {
            op,
            table,
            index,
            range,
            ..
        } => {
            let bounded = range.lower.is_some() || range.upper.is_some();
            let used = range.prefix.len() + bounded as usize;
            let index = &procedure.tables[table.0 as usize].indexes()[*index as usize];
            let columns = index
                .definition()
                .columns
                .iter()
                .take(used)
                .copied()
                .collect();
            (*op, *table, [columns, none, none])
        }
        Step::Read {
            op, table, columns, ..
        } => (
            *op,
            *table,
            [
                none,
                columns.iter().map(|(column, _)| *column).collect(),
                none,
            ],
        ),
        Step::Update {
            op, table, columns, ..
        } => {
            let written: ColumnSet = columns.iter().map(|(column, _)| *column).collect();
            let keys = written.intersection(indexed_columns(procedure, *table));
            (*op, *table, [keys, none, written])
        }
        Step::Insert { op, table, .. } | Step::Delete { op, table, .. } => {
            let keys = indexed_columns(procedure, *table);
            (*op, *table, [keys, none, all_columns(procedure, *table)])
        }
        _ => return None,
    })
}
