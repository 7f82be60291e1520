//! UPDATE and DELETE, and the change of one row, which ON CONFLICT DO UPDATE shares.

use kiln_engine::Privilege;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ColumnSet, TriggerTime};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::{
    Delete, Expr, FromTable, ObjectName, SelectItem, TableFactor, TableWithJoins, Update,
    UpdateTableFromKind,
};

use super::super::bound::{Bound, ColumnMeta, SourceId};
use super::super::emit::eager_columns;
use super::super::plpgsql::Firing;
use super::super::query::Sink;
use super::super::rows::{RowSource, TargetView};
use super::super::{Compiler, Position, fail, name_of, position_of, relation_name, unsupported};
use super::assign::Assignments;
use super::constraints::RowChecks;
use super::generated::with_generated;
use super::references::{Change, References};
use super::target::Target;
use super::triggers::{Rows, fired};
use super::{Returning, again, all_columns};
use crate::parse::empties;

/// The change of one row, bound to the row's source.
pub(super) struct RowChange {
    /// Columns and their new values.
    values: Vec<(ColumnId, Bound)>,
    /// The triggers that fire before the row is written.
    before: Vec<Firing>,
    /// Generated columns that follow from them.
    generated: Vec<(ColumnId, Bound)>,
    changed: ColumnSet,
    checks: RowChecks,
    /// The views in which the row must be when it is changed, and their conditions.
    view_checks: Vec<(String, Bound)>,
    returning: Returning,
}

/// What happens to a row whose new values were computed before.
type UpdateBody<'b, 'a> =
    &'b mut dyn FnMut(&mut Compiler<'a>, RowSource, Vec<(ColumnId, Bound)>) -> Result<()>;

impl RowChange {
    /// The RETURNING list over the changed row.
    pub(super) fn returning(&self) -> &Returning {
        &self.returning
    }

    /// Whether the row's primary key changes.
    fn moves(&self, table: &Table) -> bool {
        let mut key = table.schema().primary_key.iter();
        key.any(|column| self.changed.contains(*column))
    }
}

impl<'a> Compiler<'a> {
    /// Compiles UPDATE. `counter`, a BIGINT register, is set to the number of rows updated;
    /// `sink` gets the RETURNING columns with the new values. Returns those columns; there are
    /// none without RETURNING.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the statement; 0A000 for what is not supported.
    pub fn update(
        &mut self,
        update: &Update,
        sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
    ) -> Result<Vec<ColumnMeta>> {
        self.statement(|compiler| compiler.update_rows(update, sink, counter))
    }

    fn update_rows(
        &mut self,
        update: &Update,
        mut sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
    ) -> Result<Vec<ColumnMeta>> {
        let (name, alias) = target_of(&update.table)?;
        let position = position_of(name);
        if !update.order_by.is_empty() || update.limit.is_some() || update.or.is_some() {
            return Err(unsupported("ORDER BY or LIMIT in UPDATE", position));
        }
        let target = self.target(
            Privilege::Update,
            &relation_name(self.catalog, name)?,
            position,
        )?;
        let alias = alias.unwrap_or_else(|| name_in_schema(target.name()).to_owned());
        let (table, view) = (target.table.clone(), target.view.as_deref());
        let from = match &update.from {
            None => &[][..],
            Some(
                UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables),
            ) => tables,
        };
        let assignments = self.assignments(&target, &update.assignments)?;
        let changed = assignments.iter().map(|(column, _)| *column).collect();
        let changed = with_generated(&table, changed)?;
        let returning = update.returning.as_deref();
        let values: Vec<String> = assignments
            .iter()
            .flat_map(|(_, assigned)| assigned.expressions())
            .map(Expr::to_string)
            .collect();
        let reads = update.selection.is_some() || returning.is_some() || !from.is_empty();
        if reads || !assignments.iter().all(|(_, assigned)| assigned.is_given()) {
            self.note_reading(target.name());
        }
        self.refuse_reading(&target, returning, position)?;
        self.start_counting(counter);
        let references = self.plan_references(&table, Change::Update(changed), false)?;
        let mut metas = Vec::new();
        let fires = !fired(&table, TriggerTime::Before, Change::Update(changed)).is_empty();
        // What a trigger writes must not change the values of rows after it.
        let has_query = values
            .iter()
            .any(|value| value.to_lowercase().contains("select"));
        let collects = target.has_subquery() || self.may_read(&values, &table);
        if collects || (fires && has_query) {
            if !from.is_empty() {
                return Err(unsupported(
                    "a subquery on the changed table with FROM",
                    position,
                ));
            }
            self.collect_and_update(
                (&table, view),
                &alias,
                &assignments,
                update.selection.as_ref(),
                position,
                &mut |compiler, row, values| {
                    let returning = compiler.bind_returning(returning, &[row.named])?;
                    metas = returning.metas();
                    let change =
                        compiler.bind_change((&table, view), row.source, values, returning)?;
                    compiler.emit_change(&table, row, &change, &references, position, |compiler| {
                        compiler.count_row(counter);
                        compiler.hand_over(&change.returning, again(&mut sink))
                    })
                },
            )?;
        } else {
            let selection: Vec<String> = update.selection.iter().map(Expr::to_string).collect();
            let all = self.changed_with(&table, changed)?;
            let materialise = fires
                || all.intersects(table.indexed_columns())
                || self.may_read(&selection, &table);
            self.for_each_matching_row(
                &table,
                view,
                &alias,
                from,
                update.selection.as_ref(),
                materialise,
                position,
                &mut |compiler, row| {
                    let values = compiler.bind_assigned(&table, row.source, &assignments)?;
                    let wildcard = compiler.rows_in_scope(row.named);
                    let returning = compiler.bind_returning(returning, &wildcard)?;
                    metas = returning.metas();
                    let change =
                        compiler.bind_change((&table, view), row.source, values, returning)?;
                    compiler.emit_change(&table, row, &change, &references, position, |compiler| {
                        compiler.count_row(counter);
                        compiler.hand_over(&change.returning, again(&mut sink))
                    })
                },
            )?;
        }
        self.finish_references(&table, &references, position)?;
        self.changed = Some(table.id());
        Ok(metas)
    }

    /// Compiles DELETE; see [`Compiler::update`]. The RETURNING columns have the old values.
    ///
    /// # Errors
    /// Those of [`Compiler::update`].
    pub fn delete(
        &mut self,
        delete: &Delete,
        sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
    ) -> Result<Vec<ColumnMeta>> {
        self.statement(|compiler| compiler.delete_rows(delete, sink, counter))
    }

    fn delete_rows(
        &mut self,
        delete: &Delete,
        mut sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
    ) -> Result<Vec<ColumnMeta>> {
        let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
        let [target] = tables.as_slice() else {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "syntax error: DELETE names one table",
                None,
            ));
        };
        let (name, alias) = target_of(target)?;
        let position = position_of(name);
        self.refilled |= empties(delete);
        if !delete.tables.is_empty() || !delete.order_by.is_empty() || delete.limit.is_some() {
            return Err(unsupported("this form of DELETE", position));
        }
        let target = self.target(
            Privilege::Delete,
            &relation_name(self.catalog, name)?,
            position,
        )?;
        let alias = alias.unwrap_or_else(|| name_in_schema(target.name()).to_owned());
        let (table, view) = (target.table.clone(), target.view.as_deref());
        let returning = delete.returning.as_deref();
        if delete.selection.is_some() || returning.is_some() {
            self.note_reading(target.name());
        }
        self.refuse_reading(&target, returning, position)?;
        self.start_counting(counter);
        let references = self.plan_references(&table, Change::Delete, false)?;
        let selection: Vec<String> = delete.selection.iter().map(Expr::to_string).collect();
        let fires = !fired(&table, TriggerTime::Before, Change::Delete).is_empty();
        let materialise = fires || target.has_subquery() || self.may_read(&selection, &table);
        let mut metas = Vec::new();
        self.for_each_matching_row(
            &table,
            view,
            &alias,
            delete.using.as_deref().unwrap_or_default(),
            delete.selection.as_ref(),
            materialise,
            position,
            &mut |compiler, row| {
                let wildcard = compiler.rows_in_scope(row.named);
                let returning = compiler.bind_returning(returning, &wildcard)?;
                metas = returning.metas();
                // A deleted record cannot be read any more, so that nothing is left for later.
                let returned = returning.columns.iter();
                let mut needed: Vec<_> = returned.flat_map(|(_, bound)| bound.columns()).collect();
                let keys = references.old_columns().into_iter();
                needed.extend(keys.map(|column| (row.source, column.0)));
                compiler.prefetch_columns(&needed)?;
                compiler.emit_delete(&table, row, &references, position, |compiler| {
                    compiler.count_row(counter);
                    compiler.hand_over(&returning, again(&mut sink))
                })
            },
        )?;
        self.finish_references(&table, &references, position)?;
        self.changed = Some(table.id());
        Ok(metas)
    }

    /// Deletes one row, unless a BEFORE trigger keeps it; `done` follows where it is deleted.
    pub(super) fn emit_delete(
        &mut self,
        table: &Arc<Table>,
        row: RowSource,
        references: &References,
        position: Position,
        done: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let keys = references.old_columns().into_iter();
        let mut needed: Vec<_> = keys.map(|column| (row.source, column.0)).collect();
        let firings = fired(table, TriggerTime::Before, Change::Delete);
        if !firings.is_empty() {
            needed.extend(all_columns(table).map(|column| (row.source, column.0)));
        }
        self.prefetch_columns(&needed)?;
        let delete = |compiler: &mut Self| {
            compiler.builder.delete(row.table, row.record, position);
            let keys = compiler.old_keys(references, row.source)?;
            compiler.check_references(table, references, row.source, &keys, position)?;
            done(compiler)
        };
        if firings.is_empty() {
            return delete(self);
        }
        let old = self.row_registers(table, row.source)?;
        let rows = Rows {
            old: Some(&old),
            new: None,
        };
        let returned = self.fire_before(&firings, rows)?;
        self.when(returned.kept, delete)
    }

    /// All columns of a row.
    fn row_registers(&mut self, table: &Arc<Table>, source: SourceId) -> Result<Vec<Reg>> {
        let columns = all_columns(table);
        columns.map(|column| self.column(source, column)).collect()
    }

    /// What `*` in RETURNING means: the changed row, then those of FROM or USING.
    fn rows_in_scope(&self, target: SourceId) -> Vec<SourceId> {
        let mut rows = vec![target];
        let others = self
            .levels
            .last()
            .map(|level| level.sources.clone())
            .unwrap_or_default();
        rows.extend(others.into_iter().filter(|source| *source != target));
        rows
    }

    fn columns_of(&self, returning: &Returning) -> Vec<(SourceId, u16)> {
        // Long columns that only one branch of a CASE gives back are read in that branch.
        let mut columns = Vec::new();
        for (_, bound) in &returning.columns {
            eager_columns(bound, &mut columns);
        }
        columns
    }

    /// RETURNING is computed row by row, when some rows have changed and others have not.
    pub(super) fn refuse_reading(
        &self,
        target: &Target,
        returning: Option<&[SelectItem]>,
        position: Position,
    ) -> Result<()> {
        if returning.is_some() && target.has_subquery() {
            let what = "RETURNING by way of a view that has a subquery";
            return Err(unsupported(what, position));
        }
        let items = returning.unwrap_or_default().iter();
        let items: Vec<String> = items.map(SelectItem::to_string).collect();
        if self.may_read(&items, &target.table) {
            return Err(unsupported(
                "a subquery on the changed table in RETURNING",
                position,
            ));
        }
        Ok(())
    }

    /// Computes the RETURNING columns and calls the sink with them.
    pub(super) fn hand_over(
        &mut self,
        returning: &Returning,
        sink: Option<Sink<'_, 'a>>,
    ) -> Result<()> {
        match sink {
            Some(sink) => {
                let columns = self.emit_returning(returning)?;
                self.call_sink(sink, &columns)
            }
            None => Ok(()),
        }
    }

    /// Binds the rest of a row's change.
    pub(super) fn bind_change(
        &mut self,
        (table, view): (&Arc<Table>, Option<&TargetView>),
        source: SourceId,
        values: Vec<(ColumnId, Bound)>,
        returning: Returning,
    ) -> Result<RowChange> {
        let set = values.iter().map(|(column, _)| *column).collect();
        let set = with_generated(table, set)?;
        let before = fired(table, TriggerTime::Before, Change::Update(set));
        let changed = self.changed_with(table, set)?;
        let generated = self.bind_generated(table, source, changed)?;
        let is_given = |column: &ColumnId| !generated.iter().any(|(known, _)| known == column);
        let values = values
            .into_iter()
            .filter(|(column, _)| is_given(column))
            .collect();
        let checks = self.bind_checks(table, source, changed)?;
        let view_checks = match view {
            Some(view) => {
                let shown = self.show_row(view, source, "")?;
                self.view_checks(view, &shown)
            }
            None => Vec::new(),
        };
        Ok(RowChange {
            values,
            before,
            generated,
            changed,
            checks,
            view_checks,
            returning,
        })
    }

    /// Changes one row, unless a BEFORE trigger keeps it as it is. After that the row's columns
    /// have their new values, and `done` follows.
    pub(super) fn emit_change(
        &mut self,
        table: &Arc<Table>,
        row: RowSource,
        change: &RowChange,
        references: &References,
        position: Position,
        done: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let RowChange { values, before, .. } = change;
        let source = row.source;
        self.prefetch_for_change(table, source, change, references)?;
        let bounds: Vec<Bound> = values.iter().map(|(_, bound)| bound.clone()).collect();
        let registers = self.emit_all(&bounds)?;
        let registers = registers.iter().map(|value| value.register);
        let columns = values.iter().map(|(column, _)| *column);
        let mut written: Vec<(ColumnId, Reg)> = columns.zip(registers).collect();
        let old_keys = self.old_keys(references, source)?;
        if before.is_empty() {
            self.write_change(table, row, change, written, position)?;
            self.check_references(table, references, source, &old_keys, position)?;
            return done(self);
        }
        let old = self.row_registers(table, source)?;
        let mut new = old.clone();
        for (column, register) in &written {
            new[column.index()] = *register;
        }
        let rows = Rows {
            old: Some(&old),
            new: Some(&new),
        };
        let returned = self.fire_before(before, rows)?;
        let is_generated =
            |column: &ColumnId| table.schema().columns[column.index()].generated.is_some();
        let columns = change.changed.iter().filter(|column| !is_generated(column));
        written = columns
            .map(|column| (column, returned.row[column.index()]))
            .collect();
        self.when(returned.kept, |compiler| {
            compiler.write_change(table, row, change, written, position)?;
            compiler.check_references(table, references, source, &old_keys, position)?;
            done(compiler)
        })
    }

    /// Reads all that is needed of a record that changes, in one read.
    fn prefetch_for_change(
        &mut self,
        table: &Arc<Table>,
        source: SourceId,
        change: &RowChange,
        references: &References,
    ) -> Result<()> {
        let RowChange {
            values,
            before,
            generated,
            changed,
            checks,
            view_checks,
            returning,
        } = change;
        let later = checks
            .columns()
            .into_iter()
            .chain(generated.iter().flat_map(|(_, bound)| bound.columns()))
            .chain(view_checks.iter().flat_map(|(_, bound)| bound.columns()))
            .chain(self.columns_of(returning));
        let kept =
            |(of, column): &(SourceId, u16)| *of != source || !changed.contains(ColumnId(*column));
        let mut needed: Vec<(SourceId, u16)> = later.filter(kept).collect();
        needed.extend(values.iter().flat_map(|(_, bound)| bound.columns()));
        let in_row = |column: ColumnId| (source, column.0);
        needed.extend(references.old_columns().into_iter().map(in_row));
        let new_keys = references.new_columns().into_iter().map(in_row);
        needed.extend(new_keys.filter(kept));
        if change.moves(table) {
            needed.extend(all_columns(table).map(in_row).filter(kept));
        }
        if !before.is_empty() {
            needed.extend(all_columns(table).map(in_row));
        }
        self.prefetch_columns(&needed)
    }

    /// Writes new values of a row that satisfy its checks.
    fn write_change(
        &mut self,
        table: &Arc<Table>,
        row: RowSource,
        change: &RowChange,
        mut written: Vec<(ColumnId, Reg)>,
        position: Position,
    ) -> Result<()> {
        let source = row.source;
        for (column, register) in &written {
            self.set_column(source, column.index(), *register);
        }
        let generated = change.generated.iter();
        let bounds: Vec<Bound> = generated.map(|(_, bound)| bound.clone()).collect();
        for ((column, _), value) in change.generated.iter().zip(self.emit_all(&bounds)?) {
            self.set_column(source, column.index(), value.register);
            written.push((*column, value.register));
        }
        self.emit_checks(table, source, &change.checks, position)?;
        if change.moves(table) {
            // A record keeps its primary key for life: the row moves to another one.
            let all = self.row_registers(table, source)?;
            self.builder.delete(row.table, row.record, position);
            self.builder.insert(row.table, &all, None, position);
        } else if !written.is_empty() {
            self.builder
                .update(row.table, row.record, &written, position);
        }
        self.emit_view_checks(table, source, &change.view_checks, position)
    }

    /// An UPDATE whose new values depend on what it changes: finds the rows and computes the
    /// values first, and then calls `body` for each row.
    fn collect_and_update(
        &mut self,
        (table, view): (&Arc<Table>, Option<&TargetView>),
        alias: &str,
        assignments: &Assignments<'_>,
        selection: Option<&Expr>,
        position: Position,
        body: UpdateBody<'_, 'a>,
    ) -> Result<()> {
        let buffer = self.builder.buffer(1 + assignments.len());
        self.builder.push(Step::BufferClear { buffer });
        self.for_each_matching_row(
            table,
            view,
            alias,
            &[],
            selection,
            false,
            position,
            &mut |compiler, row| {
                let values = compiler.bind_assigned(table, row.source, assignments)?;
                let bounds: Vec<Bound> = values.into_iter().map(|(_, bound)| bound).collect();
                let values = compiler.emit_all(&bounds)?;
                let saved = compiler.builder.register(DataType::BigInt);
                compiler.builder.push(Step::SaveRecord {
                    target: saved,
                    record: row.record,
                });
                let values = values.iter().map(|value| value.register);
                let row = std::iter::once(saved).chain(values).collect();
                compiler.builder.push(Step::BufferPush { buffer, row });
                Ok(())
            },
        )?;
        let saved = self.builder.register(DataType::BigInt);
        let mut registers = vec![saved];
        let mut values = Vec::new();
        for (column, _) in assignments {
            let data_type = table.schema().columns[column.index()].data_type.clone();
            let register = self.builder.register(data_type.clone());
            registers.push(register);
            values.push((*column, Bound::register(register, data_type, position)));
        }
        self.open_ir_loop();
        let record = self.builder.record();
        self.builder.push(Step::RestoreRecord {
            record,
            source: saved,
        });
        let source = self.declare_record_row(table, alias, record, position);
        let reference = self.builder.table(table);
        let named = match view {
            Some(view) => self.show_row(view, source, alias)?.source,
            None => source,
        };
        let hidden = std::mem::take(&mut self.levels);
        self.push_rows(&[named]);
        let result = body(
            self,
            RowSource {
                source,
                named,
                table: reference,
                record,
            },
            values,
        );
        self.levels = hidden;
        let steps = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: registers.into(),
            body: steps,
        });
        result
    }
}

/// The table that UPDATE or DELETE changes, and its alias.
fn target_of(target: &TableWithJoins) -> Result<(&ObjectName, Option<String>)> {
    match &target.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } if target.joins.is_empty() => {
            if let Some(alias) = alias
                && !alias.columns.is_empty()
            {
                return Err(fail(
                    SqlState::SYNTAX_ERROR,
                    "syntax error: a changed table's alias names no columns",
                    position_of(name),
                ));
            }
            Ok((name, alias.as_ref().map(|alias| name_of(&alias.name))))
        }
        _ => Err(unsupported("changing anything but a table", None)),
    }
}

/// Refuses to change the column by which rows are divided over partitions: a row stays where it is.
///
/// # Errors
/// 0A000.
pub(super) fn refuse_moving(table: &Table, column: ColumnId, position: Position) -> Result<()> {
    if table.schema().partition_column() != Some(column) {
        return Ok(());
    }
    let name = &table.schema().columns[column.index()].name;
    Err(
        unsupported(format!("updating the partition key \"{name}\""), position)
            .with_hint("Delete the row and insert it anew."),
    )
}
