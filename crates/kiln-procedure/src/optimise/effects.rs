//! What a block may write, whichever way it takes.

use std::collections::BTreeMap;

use kiln_storage::schema::ColumnSet;

use crate::ir::*;
use crate::names::{Use, for_each_step, step_record, step_registers};

/// The registers, records and tables that a block may write.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Registers written.
    pub registers: Vec<Reg>,
    /// Record registers written.
    pub records: Vec<RecordReg>,
    /// What happens to tables.
    pub tables: BTreeMap<TableRef, TableEffects>,
}

/// What happens to a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableEffects {
    /// Records are inserted.
    pub inserts: bool,
    /// Records are deleted.
    pub deletes: bool,
    /// Columns that are updated.
    pub updates: ColumnSet,
}

impl Effects {
    /// The effects of `step` itself and of all blocks in it.
    pub fn of(step: &Step) -> Effects {
        let mut effects = Effects::default();
        for_each_step(std::slice::from_ref(step), &mut |step| effects.add(step));
        effects
    }

    fn add(&mut self, step: &Step) {
        step_registers(step, &mut |register, usage| {
            if usage == Use::Write {
                self.registers.push(*register);
            }
        });
        if let Some((record, Use::Write)) = step_record(step) {
            self.records.push(record);
        }
        if let Step::NoteUndo { table, undo, .. } = step {
            // A region that takes an insert back deletes, and the other way round.
            let known = self.tables.entry(*table).or_default();
            known.deletes |= matches!(undo, Undo::Insert);
            known.inserts |= matches!(undo, Undo::Delete(_));
        }
        if let Some((table, effects)) = table_effects(step) {
            let known = self.tables.entry(table).or_default();
            known.inserts |= effects.inserts;
            known.deletes |= effects.deletes;
            known.updates = known.updates.union(effects.updates);
        }
    }
}

/// What a step itself does to its table.
pub(super) fn table_effects(step: &Step) -> Option<(TableRef, TableEffects)> {
    let none = TableEffects::default();
    match step {
        Step::Insert { table, .. } => Some((
            *table,
            TableEffects {
                inserts: true,
                ..none
            },
        )),
        Step::Delete { table, .. } => Some((
            *table,
            TableEffects {
                deletes: true,
                ..none
            },
        )),
        Step::Update { table, columns, .. } => {
            let updates = columns.iter().map(|(column, _)| *column).collect();
            Some((*table, TableEffects { updates, ..none }))
        }
        _ => None,
    }
}
