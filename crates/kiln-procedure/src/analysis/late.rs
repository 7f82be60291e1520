//! Whether the rows that a procedure inserts can be kept out of the indexes until it commits.
//!
//! A protocol that heals may run a procedure over a stale key first: it would put rows in the way
//! of others, under keys that it gives up again. Where nothing in the procedure looks for a row
//! that it inserts, no step misses the row in the indexes.

use super::Analysis;
use crate::ir::*;
use crate::names::for_each_step;
use crate::procedure::Procedure;

/// Whether it inserts rows, each without ON CONFLICT, into tables in which it looks nothing up, and
/// neither updates nor deletes them, and catches no errors, which an insert may raise only where it
/// stands.
pub(super) fn inserts_late(procedure: &Procedure, analysis: &Analysis) -> bool {
    let mut tables = Vec::new();
    let mut has_conflict_clause = false;
    for_each_step(&procedure.body, &mut |step| {
        if let Step::Insert {
            table, conflict, ..
        } = step
        {
            tables.push(procedure.tables[table.0 as usize].id());
            has_conflict_clause |= conflict.is_some();
        }
    });
    let mut operations = procedure.operations.iter().zip(analysis.operations());
    let is_late =
        operations.all(|(operation, facts)| match operation.kind {
            OperationKind::Insert | OperationKind::Read => true,
            _ => {
                facts.found_by.iter().all(|finder| {
                    procedure.operations[finder.0 as usize].kind != OperationKind::Insert
                }) && !tables.contains(&operation.table)
            }
        });
    !tables.is_empty() && !has_conflict_clause && is_late && procedure.regions == 0
}
