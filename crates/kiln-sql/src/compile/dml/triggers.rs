//! Row triggers of the rows that a statement writes.
//!
//! BEFORE triggers run where a row is about to be written, one after the other by their names, each
//! on the row that the one before it has returned; a row for which one returns NULL is left alone.
//! AFTER triggers run at the end of the statement: the rows wait in the queue of
//! [`actions`](super::actions), together with what follows from them by foreign keys.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Instruction, Reg};
use kiln_storage::error::Result;
use kiln_storage::schema::{ColumnSet, Trigger, TriggerEvent, TriggerTime};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};

use super::super::Compiler;
use super::super::domain::domain_of;
use super::super::plpgsql::{Firing, Returned};
use super::generated::{generated_columns, with_generated};
use super::references::Change;
use super::stored_expression;
use super::update::refuse_moving;

/// The row before a change, and the row as it is to be, where there are such rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'r> {
    pub old: Option<&'r [Reg]>,
    pub new: Option<&'r [Reg]>,
}

/// The triggers of a table that fire for `change`, which names the columns that the statement sets,
/// in their order.
pub(super) fn fired(table: &Arc<Table>, time: TriggerTime, change: Change) -> Vec<Firing> {
    let event = match change {
        Change::Insert => TriggerEvent::Insert,
        Change::Update(_) => TriggerEvent::Update,
        Change::Delete => TriggerEvent::Delete,
    };
    let is_set = |trigger: &Trigger| match change {
        Change::Update(set) if !trigger.columns.is_empty() => {
            trigger.columns.iter().any(|column| set.contains(*column))
        }
        _ => true,
    };
    let triggers = table.schema().triggers.iter();
    let triggers = triggers.filter(|it| it.is_enabled && it.time == time);
    let triggers = triggers.filter(|it| it.events.contains(&event) && is_set(it));
    let firings = triggers.map(|trigger| Firing {
        table: table.clone(),
        trigger: trigger.clone(),
        event,
    });
    firings.collect()
}

impl Compiler<'_> {
    /// The columns that may change in a row of which a statement sets these: those of BEFORE
    /// triggers too, and what is computed from any of them.
    ///
    /// # Errors
    /// 0A000 for a trigger that may move the row to another partition.
    pub(super) fn changed_with(&self, table: &Arc<Table>, set: ColumnSet) -> Result<ColumnSet> {
        let mut changed = set;
        let narrow = Change::Update(with_generated(table, set)?);
        for firing in fired(table, TriggerTime::Before, narrow) {
            let columns = self.columns_of_new(table, &firing.trigger.function);
            for column in columns.difference(set).iter() {
                refuse_moving(table, column, None)?;
            }
            changed = changed.union(columns);
        }
        with_generated(table, changed)
    }

    /// Fires BEFORE triggers; says where the row is then, and whether it is to be written.
    pub(super) fn fire_before(&mut self, firings: &[Firing], rows: Rows<'_>) -> Result<Returned> {
        let kept = self.builder.register(DataType::Boolean);
        let source = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(true));
        self.builder.scalar(Instruction::Move {
            target: kept,
            source,
        });
        let mut row = Vec::new();
        if let (Some(new), Some(first)) = (rows.new, firings.first()) {
            let generated = generated_columns(&first.table);
            for (at, (column, source)) in first.table.schema().columns.iter().zip(new).enumerate() {
                let target = self.builder.register(column.data_type.clone());
                let is_generated = generated.iter().any(|column| column.index() == at);
                self.builder.scalar(match is_generated {
                    true => Instruction::SetNull { target },
                    false => Instruction::Move {
                        target,
                        source: *source,
                    },
                });
                row.push(target);
            }
        }
        let schema = firings.first().map(|first| first.table.schema());
        let shown = schema.map_or(0, |schema| schema.shown().len());
        let seen = Returned {
            kept,
            row: row.iter().take(shown).copied().collect(),
        };
        for (number, firing) in firings.iter().enumerate() {
            let rows = Rows {
                old: rows.old.map(|row| &row[..shown]),
                new: rows.new.map(|_| seen.row.as_slice()),
            };
            match number {
                0 => self.fire(firing, rows, Some(&seen))?,
                _ => self.when(kept, |c| c.fire(firing, rows, Some(&seen)))?,
            }
        }
        self.check_domains_of(firings, kept, &row)?;
        Ok(Returned { kept, row })
    }

    /// Checks what BEFORE triggers have made of the columns of domains.
    fn check_domains_of(&mut self, firings: &[Firing], kept: Reg, row: &[Reg]) -> Result<()> {
        let Some(Firing { table, .. }) = firings.first() else {
            return Ok(());
        };
        let mut checked = Vec::new();
        for (column, register) in table.schema().columns.iter().zip(row) {
            if column.generated.is_none()
                && let Some(domain) = domain_of(column, self.catalog)?
            {
                checked.push((*register, domain));
            }
        }
        if checked.is_empty() {
            return Ok(());
        }
        self.when(kept, |compiler| {
            let mut checked = checked.iter();
            checked.try_for_each(|(register, domain)| compiler.check_domain(*register, domain))
        })
    }

    /// Fires a trigger, if its condition holds.
    pub(super) fn fire(
        &mut self,
        firing: &Firing,
        rows: Rows<'_>,
        returned: Option<&Returned>,
    ) -> Result<()> {
        let Some(text) = &firing.trigger.condition else {
            return self.fire_trigger(firing, rows.old, rows.new, returned);
        };
        let expr = stored_expression(text)?;
        let condition = self.isolated(|c| {
            let old = rows
                .old
                .map(|row| c.declare_new_row(&firing.table, "old", row));
            let new = rows
                .new
                .map(|row| c.declare_new_row(&firing.table, "new", row));
            let sources: Vec<_> = old.into_iter().chain(new).collect();
            c.push_rows(&sources);
            c.condition(&expr, "WHEN")
        })?;
        self.when(condition, |c| {
            c.fire_trigger(firing, rows.old, rows.new, returned)
        })
    }
}
