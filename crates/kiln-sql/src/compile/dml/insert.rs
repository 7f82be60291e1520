//! INSERT.

use std::rc::Rc;

use kiln_engine::Privilege;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{self, Conflict, Instruction, Reg, TableRef};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ColumnSet, TriggerTime};
use kiln_storage::sequence::Identity;
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, Insert, ObjectName, OnInsert, Query, SelectItem, SetExpr, TableObject};

use super::super::bound::{Bound, ColumnMeta};
use super::super::part::{Step, type_of_part, with_part};
use super::super::plpgsql::Returned;
use super::super::query::{OutputColumn, QueryOptions, Sink};
use super::super::rows::TargetView;
use super::super::{Compiler, Position, fail, name_of, position_of, relation_name, unsupported};
use super::conflict::OnConflictPlan;
use super::references::{Change, References};
use super::target::Target;
use super::triggers::{Rows, fired};
use super::{again, all_columns, generated, is_default};
use crate::parse::refills;
use crate::parse::{Overriding, is_overriding_list, overriding};

/// What an INSERT is, apart from its rows.
pub(super) struct Plan<'s> {
    pub table: Arc<Table>,
    /// The view by way of which rows are inserted.
    pub view: Option<Rc<TargetView>>,
    pub reference: TableRef,
    pub alias: String,
    targets: Vec<ColumnId>,
    /// For each of them, where it is a field of the column: the steps to it.
    places: Vec<Vec<Step>>,
    /// Its identity columns, and what becomes of values that are given for them.
    identities: Vec<(ColumnId, Given)>,
    pub on_conflict: OnConflictPlan<'s>,
    pub returning: Option<&'s [SelectItem]>,
    references: References,
    pub counter: Option<Reg>,
    pub position: Position,
}

/// What becomes of a value that is given for an identity column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    Taken,
    Ignored,
    Refused,
}

impl Plan<'_> {
    /// What of a value that is given for a column counts.
    ///
    /// # Errors
    /// 428C9 for one that an identity column or a generated column does not take.
    fn given<T>(&self, column: ColumnId, value: Option<T>) -> Result<Option<T>> {
        if value.is_some()
            && self.table.schema().columns[column.index()]
                .generated
                .is_some()
        {
            let message =
                |name: &str| format!("cannot insert a non-DEFAULT value into column \"{name}\"");
            return Err(generated::refusal(&self.table, column, message));
        }
        let mut identities = self.identities.iter();
        let identity = identities.find(|(known, _)| *known == column);
        match (identity, value) {
            (Some((_, Given::Ignored)), _) => Ok(None),
            (Some((_, Given::Refused)), Some(_)) => {
                let name = &self.table.schema().columns[column.index()].name;
                let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
                let error = Error::new(SqlState::GENERATED_ALWAYS, message);
                Err(error
                    .with_detail(always_detail(name))
                    .with_hint("Use OVERRIDING SYSTEM VALUE to override."))
            }
            (_, value) => Ok(value),
        }
    }

    /// One row without RETURNING.
    pub(super) fn of_row(
        compiler: &mut Compiler<'_>,
        table: &Arc<Table>,
        references: References,
        ignore_conflict: bool,
    ) -> Self {
        Plan {
            table: table.clone(),
            view: None,
            reference: compiler.builder.table(table),
            alias: name_in_schema(&table.schema().name).to_owned(),
            targets: all_columns(table).collect(),
            places: Vec::new(),
            identities: Vec::new(),
            on_conflict: match ignore_conflict {
                true => OnConflictPlan::Nothing { index: None },
                false => OnConflictPlan::Raise,
            },
            returning: None,
            references,
            counter: None,
            position: None,
        }
    }

    /// Makes it that of a clause of MERGE, which gives values for some columns.
    pub(super) fn of_clause(
        &mut self,
        compiler: &Compiler<'_>,
        (targets, places): (Vec<ColumnId>, Vec<Vec<Step>>),
        overriding: Option<Overriding>,
        alias: String,
    ) {
        self.targets = targets;
        self.places = places;
        self.identities = compiler.identities(&self.table, overriding);
        self.alias = alias;
    }

    /// The columns that it gives values for.
    pub(super) fn targets(&self) -> &[ColumnId] {
        &self.targets
    }

    pub(super) fn set_references(&mut self, references: References) {
        self.references = references;
    }

    pub(super) fn into_references(self) -> References {
        self.references
    }
}

/// Refuses a view that has a column of its table twice.
fn refuse_repeated(table: &Table, targets: &[ColumnId], position: Position) -> Result<()> {
    let mut numbers = targets.iter().enumerate();
    let repeated = numbers.find(|(at, column)| targets[..*at].contains(column));
    let Some((_, column)) = repeated else {
        return Ok(());
    };
    let name = &table.schema().columns[column.index()].name;
    let message = format!("multiple assignments to same column \"{name}\"");
    Err(fail(SqlState::SYNTAX_ERROR, message, position))
}

impl<'a> Compiler<'a> {
    /// Compiles INSERT. `counter`, a BIGINT register, is set to the number of rows inserted or
    /// updated; `sink` gets the RETURNING columns. Returns those columns; there are none without
    /// RETURNING.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the statement; 0A000 for what is not supported.
    pub fn insert(
        &mut self,
        insert: &Insert,
        sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
    ) -> Result<Vec<ColumnMeta>> {
        self.statement(|compiler| compiler.insert_rows(insert, sink, counter))
    }

    fn insert_rows(
        &mut self,
        insert: &Insert,
        sink: Option<Sink<'_, 'a>>,
        counter: Option<Reg>,
    ) -> Result<Vec<ColumnMeta>> {
        let TableObject::TableName(name) = &insert.table else {
            return Err(unsupported("INSERT into anything but a table", None));
        };
        let position = position_of(name);
        if !insert.assignments.is_empty() || insert.or.is_some() {
            return Err(unsupported("this form of INSERT", position));
        }
        let overriding = overriding(insert)?;
        self.refilled |= refills(insert);
        let target = self.target(
            Privilege::Insert,
            &relation_name(self.catalog, name)?,
            position,
        )?;
        let table = target.table.clone();
        let changed = table.id();
        let (alias, columns) = match is_overriding_list(insert) {
            true => (&None, &[][..]),
            false => (&insert.table_alias, insert.columns.as_slice()),
        };
        let alias = match alias {
            Some(alias) => name_of(&alias.alias),
            None => name_in_schema(target.name()).to_owned(),
        };
        let (mut targets, places) = self.listed_columns(&target, columns)?;
        let listed = !targets.is_empty();
        let rows = insert.source.as_deref().map(literal_rows);
        if !listed {
            let width = match &rows {
                Some(Some(rows)) => rows.first().map_or(0, |row| row.len()),
                Some(None) => usize::MAX,
                None => 0,
            };
            targets = target.columns(width, "insert into")?;
            refuse_repeated(&table, &targets, position)?;
        }
        let single = match &rows {
            None => true,
            Some(Some(rows)) => rows.len() == 1,
            Some(None) => false,
        };
        self.start_counting(counter);
        let mut references = self.plan_references(&table, Change::Insert, single)?;
        let on_conflict = match &insert.on {
            None => OnConflictPlan::Raise,
            Some(OnInsert::OnConflict(clause)) => {
                let rows = (&mut references, single);
                self.plan_conflict(&target, clause, rows, position)?
            }
            Some(_) => return Err(unsupported("ON DUPLICATE KEY", position)),
        };
        let reference = self.builder.table(&table);
        let returning = insert.returning.as_deref();
        if returning.is_some() || insert.on.is_some() {
            self.note_reading(target.name());
        }
        if let OnConflictPlan::Update { .. } = &on_conflict {
            self.note_writing(&target, Privilege::Update);
        }
        self.refuse_reading(&target, returning, position)?;
        let identities = self.identities(&table, overriding);
        let mut plan = Plan {
            identities,
            table,
            view: target.view.clone(),
            reference,
            alias,
            targets,
            places,
            on_conflict,
            returning,
            references,
            counter,
            position,
        };
        let metas = match (rows, insert.source.as_deref()) {
            (Some(Some(rows)), _) => self.insert_values(&mut plan, &rows, listed, sink)?,
            (Some(None), Some(query)) => self.insert_query(&mut plan, query, listed, sink)?,
            _ => {
                plan.targets.clear();
                self.insert_values(&mut plan, &[&[]], false, sink)?
            }
        };
        self.finish_insert(&plan)?;
        self.changed = Some(changed);
        Ok(metas)
    }

    /// The columns that an INSERT lists.
    pub(super) fn listed_columns(
        &self,
        target: &Target,
        columns: &[ObjectName],
    ) -> Result<(Vec<ColumnId>, Vec<Vec<Step>>)> {
        let mut targets = Vec::with_capacity(columns.len());
        let mut places: Vec<Vec<Step>> = Vec::with_capacity(columns.len());
        for name in columns {
            let column = self.target_column_of(target, name, "insert into")?;
            let fields = name.0.iter().skip(1).filter_map(|part| part.as_ident());
            let place: Vec<Step> = fields.map(|field| Step::Field(name_of(field))).collect();
            let mut known = targets.iter().zip(&places);
            if known.any(|(known, of)| *known == column && (of.is_empty() || place.is_empty())) {
                return Err(fail(
                    SqlState::DUPLICATE_COLUMN,
                    format!(
                        "column \"{}\" specified more than once",
                        target.table.schema().columns[column.index()].name
                    ),
                    position_of(name),
                ));
            }
            targets.push(column);
            places.push(place);
        }
        Ok((targets, places))
    }

    /// The value of a column of which an INSERT gives values for fields, by the positions of these
    /// values; `None` where it gives none.
    fn of_fields(
        &mut self,
        plan: &Plan<'_>,
        (column, width): (ColumnId, usize),
        value: &mut dyn FnMut(usize) -> Result<Bound>,
    ) -> Result<Option<Bound>> {
        let definition = &plan.table.schema().columns[column.index()];
        let targets = plan
            .targets
            .iter()
            .zip(&plan.places)
            .take(width)
            .enumerate();
        let mut row = None;
        for (position, (target, place)) in targets {
            if *target == column && !place.is_empty() {
                let null = || Bound::null(definition.data_type.clone(), plan.position);
                let whole = row.take().unwrap_or_else(null);
                row = Some(with_part(whole, place, value(position)?, &definition.name)?);
            }
        }
        row.map(|row| self.of_column(row, definition)).transpose()
    }

    /// What follows the last row.
    pub(super) fn finish_insert(&mut self, plan: &Plan<'_>) -> Result<()> {
        self.finish_references(&plan.table, &plan.references, plan.position)?;
        match &plan.on_conflict {
            OnConflictPlan::Update { references, .. } => {
                self.finish_references(&plan.table, references, plan.position)
            }
            _ => Ok(()),
        }
    }

    /// INSERT … VALUES. One row goes straight into the table; several are computed first and then
    /// inserted in a loop, so that the program does not grow with them.
    fn insert_values(
        &mut self,
        plan: &mut Plan<'_>,
        rows: &[&[Expr]],
        listed: bool,
        sink: Option<Sink<'_, 'a>>,
    ) -> Result<Vec<ColumnMeta>> {
        let width = rows.first().map_or(0, |row| row.len());
        for row in rows {
            if row.len() != width {
                return Err(fail(
                    SqlState::SYNTAX_ERROR,
                    "VALUES lists must all be the same length",
                    row.first().map_or(plan.position, position_of),
                ));
            }
        }
        check_width(
            plan,
            width,
            listed,
            rows.first().and_then(|row| row.get(plan.targets.len())),
        )?;
        let targets = plan.targets[..width].to_vec();
        if let [row] = rows {
            let values = self.row_values(plan, &targets, row)?;
            return self.insert_row(plan, &values, sink);
        }
        let types: Vec<DataType> = plan
            .table
            .schema()
            .columns
            .iter()
            .map(|column| column.data_type.clone())
            .collect();
        let buffer = self.builder.buffer(types.len());
        self.builder.push(ir::Step::BufferClear { buffer });
        for row in rows {
            let values = self.row_values(plan, &targets, row)?;
            self.builder.push(ir::Step::BufferPush {
                buffer,
                row: values.into(),
            });
            if self.builder.is_too_large() {
                return Err(fail(
                    SqlState::STATEMENT_TOO_COMPLEX,
                    format!(
                        "an INSERT of {} rows is too large for one statement",
                        rows.len()
                    ),
                    plan.position,
                )
                .with_hint("Insert fewer rows at a time."));
            }
        }
        let values: Vec<Reg> = types
            .into_iter()
            .map(|data_type| self.builder.register(data_type))
            .collect();
        self.open_ir_loop();
        let metas = self.insert_row(plan, &values, sink);
        let body = self.close_ir_loop();
        self.builder.push(ir::Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: values.into(),
            body,
        });
        metas
    }

    /// Computes a row of VALUES; returns all columns in table order.
    fn row_values(
        &mut self,
        plan: &Plan<'_>,
        targets: &[ColumnId],
        row: &[Expr],
    ) -> Result<Vec<Reg>> {
        let bounds = self.bind_row_values(plan, targets, row)?;
        self.emit_row(&bounds)
    }

    /// Binds a row of VALUES; gives all columns in table order.
    pub(super) fn bind_row_values(
        &mut self,
        plan: &Plan<'_>,
        targets: &[ColumnId],
        row: &[Expr],
    ) -> Result<Vec<Bound>> {
        // All values first, as they were written: then the columns decide the types of parameters.
        let mut written = Vec::with_capacity(row.len());
        for expr in row {
            written.push(match is_default(expr) {
                true => None,
                false => Some(self.bind(expr)?),
            });
        }
        let mut bounds = Vec::new();
        for column in all_columns(&plan.table) {
            let definition = &plan.table.schema().columns[column.index()];
            let of_fields = self.of_fields(plan, (column, row.len()), &mut |position| {
                let value = written.get_mut(position).and_then(Option::take);
                value.ok_or_else(|| {
                    let message = "cannot set a subfield to DEFAULT";
                    fail(SqlState::FEATURE_NOT_SUPPORTED, message, plan.position)
                })
            })?;
            if let Some(row) = of_fields {
                bounds.push(row);
                continue;
            }
            let position = targets.iter().position(|target| *target == column);
            let given = position.and_then(|position| written.get_mut(position)?.take());
            let given = plan.given(column, given)?;
            bounds.push(match given {
                Some(bound) => self.for_column(bound, definition, "expression")?,
                None => self.bind_default_of(plan, column)?,
            });
        }
        Ok(bounds)
    }

    /// INSERT … SELECT.
    fn insert_query(
        &mut self,
        plan: &mut Plan<'_>,
        query: &Query,
        listed: bool,
        mut sink: Option<Sink<'_, 'a>>,
    ) -> Result<Vec<ColumnMeta>> {
        let has_triggers = !fired(&plan.table, TriggerTime::Before, Change::Insert).is_empty();
        let materialise = has_triggers || self.may_read(&[query.to_string()], &plan.table);
        let mut metas = Vec::new();
        let columns = &plan.table.schema().columns;
        let types: Vec<DataType> = plan
            .targets
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let whole = &columns[column.index()].data_type;
                let steps = plan.places.get(at).map(Vec::as_slice);
                type_of_part(whole, steps.unwrap_or_default()).clone()
            })
            .collect();
        self.query_for(
            query,
            &types,
            QueryOptions { materialise },
            &mut |compiler, columns| {
                check_width(plan, columns.len(), listed, None)?;
                let targets = plan.targets[..columns.len()].to_vec();
                let values = compiler.selected_values(plan, &targets, columns)?;
                metas = compiler.insert_row(plan, &values, again(&mut sink))?;
                Ok(())
            },
        )?;
        Ok(metas)
    }

    /// Converts a selected row; returns all columns in table order.
    fn selected_values(
        &mut self,
        plan: &Plan<'_>,
        targets: &[ColumnId],
        columns: &[OutputColumn],
    ) -> Result<Vec<Reg>> {
        let mut bounds = Vec::new();
        for column in all_columns(&plan.table) {
            let definition = &plan.table.schema().columns[column.index()];
            let of_fields = self.of_fields(plan, (column, columns.len()), &mut |position| {
                let selected = &columns[position];
                let data_type = selected.data_type.clone();
                Ok(Bound::register(selected.register, data_type, plan.position))
            })?;
            if let Some(row) = of_fields {
                bounds.push(row);
                continue;
            }
            let position = targets.iter().position(|target| *target == column);
            bounds.push(match plan.given(column, position)? {
                Some(position) => {
                    let OutputColumn {
                        register,
                        data_type,
                        ..
                    } = &columns[position];
                    let selected = Bound::register(*register, data_type.clone(), plan.position);
                    self.for_column(selected, definition, "expression")?
                }
                None => self.bind_default_of(plan, column)?,
            });
        }
        Ok(self
            .emit_all(&bounds)?
            .into_iter()
            .map(|typed| typed.register)
            .collect())
    }

    /// The identity columns of a table, and what an INSERT makes of values for them.
    fn identities(
        &self,
        table: &Arc<Table>,
        overriding: Option<Overriding>,
    ) -> Vec<(ColumnId, Given)> {
        let schema = table.schema();
        let identities = all_columns(table).filter_map(|column| {
            let definition = &schema.columns[column.index()];
            // Others have no default value, or another one.
            definition.default.as_ref()?;
            let sequence = (self.catalog).identity_sequence(&schema.name, &definition.name)?;
            let identity = sequence.definition().owner.as_ref()?.identity?;
            let given = match (identity, overriding) {
                (_, Some(Overriding::UserValue)) => Given::Ignored,
                (Identity::Always, None) => Given::Refused,
                _ => Given::Taken,
            };
            Some((column, given))
        });
        identities.collect()
    }

    /// The default value of a column. An identity column draws from its sequence without anybody
    /// being asked for privileges.
    fn bind_default_of(&mut self, plan: &Plan<'_>, column: ColumnId) -> Result<Bound> {
        let definition = &plan.table.schema().columns[column.index()];
        match plan.identities.iter().any(|(known, _)| *known == column) {
            true => self.unrestricted(|compiler| compiler.bind_default(definition)),
            false => self.bind_default(definition),
        }
    }

    /// Inserts one row, whose columns are in `values`, unless a BEFORE trigger keeps it away.
    pub(super) fn insert_row(
        &mut self,
        plan: &mut Plan<'_>,
        values: &[Reg],
        sink: Option<Sink<'_, 'a>>,
    ) -> Result<Vec<ColumnMeta>> {
        let firings = fired(&plan.table, TriggerTime::Before, Change::Insert);
        if firings.is_empty() {
            return self.insert_new_row(plan, values, sink);
        }
        let rows = Rows {
            old: None,
            new: Some(values),
        };
        let Returned { kept, row } = self.fire_before(&firings, rows)?;
        let mut metas = Vec::new();
        self.when(kept, |compiler| {
            metas = compiler.insert_new_row(plan, &row, sink)?;
            Ok(())
        })?;
        Ok(metas)
    }

    fn insert_new_row(
        &mut self,
        plan: &mut Plan<'_>,
        values: &[Reg],
        sink: Option<Sink<'_, 'a>>,
    ) -> Result<Vec<ColumnMeta>> {
        let values = &self.compute_generated(&plan.table, values)?;
        let source = self.declare_new_row(&plan.table, &plan.alias, values);
        let all: ColumnSet = all_columns(&plan.table).collect();
        let checks = self.bind_checks(&plan.table, source, all)?;
        self.emit_checks(&plan.table, source, &checks, plan.position)?;
        let (mut named, mut view_checks) = (source, Vec::new());
        if let Some(view) = &plan.view {
            let shown = self.show_row(view, source, &plan.alias)?;
            view_checks = self.view_checks(view, &shown);
            named = shown.source;
        }
        self.push_rows(&[named]);
        let returning = self.bind_returning(plan.returning, &[named]);
        self.pop_rows();
        let returning = returning?;
        let metas = returning.metas();
        let index = match &plan.on_conflict {
            OnConflictPlan::Raise => {
                self.builder
                    .insert(plan.reference, values, None, plan.position);
                self.emit_view_checks(&plan.table, source, &view_checks, plan.position)?;
                self.check_new_references(plan, source)?;
                self.count_row(plan.counter);
                self.hand_over(&returning, sink)?;
                return Ok(metas);
            }
            OnConflictPlan::Nothing { index } => *index,
            OnConflictPlan::Update { index, .. } => Some(*index),
        };
        let inserted = self.builder.register(DataType::Boolean);
        let conflict = Conflict { index, inserted };
        let record = self
            .builder
            .insert(plan.reference, values, Some(conflict), plan.position);
        if matches!(plan.on_conflict, OnConflictPlan::Nothing { .. }) {
            self.when(inserted, |compiler| {
                compiler.emit_view_checks(&plan.table, source, &view_checks, plan.position)?;
                compiler.check_new_references(plan, source)?;
                compiler.count_row(plan.counter);
                compiler.hand_over(&returning, sink)
            })?;
            return Ok(metas);
        }
        // Both branches leave their RETURNING columns in the same registers.
        let produced = self.builder.register(DataType::Boolean);
        let truth = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(true));
        let falsehood = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(false));
        let merged: Vec<OutputColumn> = metas
            .iter()
            .map(|meta| OutputColumn {
                name: meta.name.clone(),
                data_type: meta.data_type.clone(),
                register: self.builder.register(meta.data_type.clone()),
            })
            .collect();
        self.builder.scalar(Instruction::Move {
            target: produced,
            source: falsehood,
        });
        for column in &merged {
            self.builder.scalar(Instruction::SetNull {
                target: column.register,
            });
        }
        self.open();
        let mut result = self.note_change(plan, values, false).and_then(|()| {
            self.emit_view_checks(&plan.table, source, &view_checks, plan.position)?;
            self.check_new_references(plan, source)?;
            self.count_row(plan.counter);
            let columns = self.emit_returning(&returning)?;
            self.move_into(&merged, &columns);
            self.builder.scalar(Instruction::Move {
                target: produced,
                source: truth,
            });
            Ok(())
        });
        let then = self.close();
        self.open();
        if result.is_ok() {
            result = self.update_instead(plan, record, values, &merged, produced, truth);
        }
        let otherwise = self.close();
        self.builder.push(ir::Step::If {
            condition: inserted,
            then,
            otherwise,
        });
        result?;
        if let Some(sink) = sink {
            self.when(produced, |compiler| compiler.call_sink(sink, &merged))?;
        }
        Ok(metas)
    }

    /// Copies a row into other registers.
    pub(super) fn move_into(&mut self, targets: &[OutputColumn], columns: &[OutputColumn]) {
        for (target, column) in targets.iter().zip(columns) {
            let (target, source) = (target.register, column.register);
            self.builder.scalar(Instruction::Move { target, source });
        }
    }

    fn check_new_references(
        &mut self,
        plan: &Plan<'_>,
        source: super::super::bound::SourceId,
    ) -> Result<()> {
        self.check_references(&plan.table, &plan.references, source, &[], plan.position)
    }
}

/// Why an identity column does not take a value.
pub(super) fn always_detail(column: &str) -> String {
    format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS.")
}

/// The rows of a query that is nothing but VALUES.
fn literal_rows(query: &Query) -> Option<Vec<&[Expr]>> {
    let plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    match &*query.body {
        SetExpr::Values(values) if plain => Some(
            values
                .rows
                .iter()
                .map(|row| row.content.as_slice())
                .collect(),
        ),
        _ => None,
    }
}

pub(super) fn check_width(
    plan: &Plan<'_>,
    width: usize,
    listed: bool,
    surplus: Option<&Expr>,
) -> Result<()> {
    let columns = plan.targets.len();
    if width > columns {
        let position = surplus.map_or(plan.position, position_of);
        let message = "INSERT has more expressions than target columns";
        return Err(fail(SqlState::SYNTAX_ERROR, message, position));
    }
    if width < columns && listed {
        let message = "INSERT has more target columns than expressions";
        return Err(fail(SqlState::SYNTAX_ERROR, message, plan.position));
    }
    Ok(())
}
