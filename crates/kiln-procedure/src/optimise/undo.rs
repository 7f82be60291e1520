//! How the changes of protected regions are taken back.
//!
//! Before each update and delete within a region the old values are read, by steps as any others:
//! the analysis and the protocols see them, and what was read already is not read again. A
//! [`Step::NoteUndo`] then says what brings the old state back:
//!
//! ```text
//!   update stock: quantity := q     ──►     read stock: r := quantity
//!                                           note: update stock: quantity := r
//!                                           update stock: quantity := q
//! ```
//!
//! The note of an update comes before it, as one that a unique index refuses may have moved entries
//! of other indexes.

use kiln_platform::sync::Arc;
use kiln_storage::schema::ColumnId;
use kiln_storage::table::Table;

use crate::ir::*;
use crate::names::{for_each_step, step_blocks_mut};
use crate::procedure::Procedure;

/// Puts the notes in.
pub fn note_undo(procedure: &mut Procedure) {
    if procedure.regions == 0 {
        return;
    }
    let mut body = std::mem::take(&mut procedure.body);
    outside(procedure, &mut body);
    procedure.body = body;
}

/// How many values the notes of these blocks hold at most, and one more for each change.
pub(crate) fn noted_values(blocks: &[Block], tables: &[Arc<Table>]) -> usize {
    let mut values = 0;
    let mut count = |step: &Step| match step {
        Step::Update { columns, .. } => values += columns.len() + 1,
        Step::Delete { table, .. } => {
            values += tables[table.0 as usize].schema().columns.len() + 1;
        }
        _ => {}
    };
    for block in blocks {
        for_each_step(block, &mut count);
    }
    values
}

/// A block outside of all regions.
fn outside(procedure: &mut Procedure, block: &mut Block) {
    for step in block {
        match step {
            Step::Protect { body, .. } => inside(procedure, body),
            step => {
                for inner in step_blocks_mut(step).into_iter().flatten() {
                    outside(procedure, inner);
                }
            }
        }
    }
}

/// A block within a region.
fn inside(procedure: &mut Procedure, block: &mut Block) {
    let mut noted = Vec::with_capacity(block.len());
    for mut step in std::mem::take(block) {
        for inner in step_blocks_mut(&mut step).into_iter().flatten() {
            inside(procedure, inner);
        }
        match &step {
            Step::Update {
                op,
                table,
                record,
                columns,
            } => {
                let columns = columns.iter().map(|(column, _)| *column);
                let at = (*op, *table, *record);
                let (read, old) = read(procedure, at, columns);
                let undo = Undo::Update(old);
                let (table, record) = (*table, *record);
                let note = Step::NoteUndo {
                    table,
                    record,
                    undo,
                };
                noted.extend([read, note, step]);
            }
            Step::Delete { op, table, record } => {
                let schema = procedure.tables[table.0 as usize].schema();
                let columns = (0..schema.columns.len() as u16).map(ColumnId);
                let (read, old) = read(procedure, (*op, *table, *record), columns);
                let values = old.iter().map(|(_, register)| *register).collect();
                let undo = Undo::Delete(values);
                let (table, record) = (*table, *record);
                let note = Step::NoteUndo {
                    table,
                    record,
                    undo,
                };
                noted.extend([read, step, note]);
            }
            Step::Insert {
                table,
                record,
                conflict,
                ..
            } => {
                let note = Step::NoteUndo {
                    table: *table,
                    record: *record,
                    undo: Undo::Insert,
                };
                let note = match conflict {
                    None => note,
                    Some(conflict) => Step::If {
                        condition: conflict.inserted,
                        then: vec![note],
                        otherwise: Vec::new(),
                    },
                };
                noted.extend([step, note]);
            }
            _ => noted.push(step),
        }
    }
    *block = noted;
}

/// A read of a record's columns for the change `op`, into registers of its own.
fn read(
    procedure: &mut Procedure,
    (op, table, record): (OpId, TableRef, RecordReg),
    columns: impl Iterator<Item = ColumnId>,
) -> (Step, Box<[(ColumnId, Reg)]>) {
    let changed = procedure.operations[op.0 as usize].clone();
    let kind = OperationKind::Read;
    procedure.operations.push(Operation { kind, ..changed });
    let op = OpId((procedure.operations.len() - 1) as u16);
    let schema = procedure.tables[table.0 as usize].schema();
    let registers = &mut procedure.registers;
    let columns: Box<[(ColumnId, Reg)]> = columns
        .map(|column| {
            let data_type = schema.columns[column.index()].data_type.in_rows();
            registers.push(data_type.clone());
            (column, Reg((registers.len() - 1) as u16))
        })
        .collect();
    let read = Step::Read {
        op,
        table,
        record,
        columns: columns.clone(),
    };
    (read, columns)
}
