//! MERGE.
//!
//! The statement reads first and writes then, so that what it writes changes neither which rows
//! match nor which clause is theirs:
//!
//! ```text
//! for each row of the source                      by its plan
//!     for each row of the target that ON accepts  by an index, or among copies, hashed
//!         the first WHEN MATCHED that holds       its values into a buffer, with the record
//!     if there was none
//!         the first WHEN NOT MATCHED that holds   its values into another buffer
//! for each row of the first buffer                UPDATE or DELETE of the record
//! for each row of the second one                  INSERT
//! ```
//!
//! What an action does to one row is what UPDATE, DELETE and INSERT do. The events of all actions
//! are in one queue, where something follows from them at the end of the statement.

use std::rc::Rc;

use kiln_engine::{Object, Privilege};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{BufferId, Class, Comparison, Failure, Instruction, Match, Reg, Step};
use kiln_procedure::ir::{MATCHES_MAX, TextSource};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ColumnSet, TriggerTime};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{
    Expr, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeUpdateKind,
    ObjectName, TableFactor,
};

use super::super::bound::{Bound, FromItem, ItemKind, Kind, Select, SourceId, conjuncts};
use super::super::from::FromScope;
use super::super::path::{Access, restriction};
use super::super::plan::Plan as JoinPlan;
use super::super::rows::RowSource;
use super::super::scope::{AggregatePolicy, Level};
use super::super::{
    Compiler, Position, fail, name_of, position_of, position_of_span, relation_name,
};
use super::generated::with_generated;
use super::insert::{Plan, check_width};
use super::references::{Change, References};
use super::target::Target;
use super::triggers::fired;
use crate::parse::{is_merge_of_postgres, merged_row};

/// The table that a MERGE changes.
struct Merged {
    target: Target,
    alias: String,
    /// Its row where conditions and values are computed.
    source: SourceId,
    position: Position,
}

impl Merged {
    fn table(&self) -> &Arc<Table> {
        &self.target.table
    }
}

/// A WHEN clause.
struct Clause<'s> {
    is_matched: bool,
    /// Its AND.
    condition: Option<Bound>,
    action: Action<'s>,
    /// What its action computes, and where that stands in a row of its buffer.
    values: Vec<Bound>,
    places: Vec<usize>,
}

/// What a WHEN clause does.
enum Action<'s> {
    Nothing,
    Delete,
    Update(Vec<ColumnId>),
    Insert(Box<Plan<'s>>),
}

impl Action<'_> {
    /// What it does to the rows of the table.
    fn change(&self, table: &Table) -> Result<Option<Change>> {
        Ok(match self {
            Action::Nothing => None,
            Action::Delete => Some(Change::Delete),
            Action::Update(columns) => {
                let set: ColumnSet = columns.iter().copied().collect();
                Some(Change::Update(with_generated(table, set)?))
            }
            Action::Insert(_) => Some(Change::Insert),
        })
    }
}

/// The rows of one of the two buffers.
struct Rows {
    buffer: BufferId,
    /// What stands before the values: the number of the clause, and for matched rows the record
    /// and what tells it from others.
    leading: Vec<DataType>,
    values: Vec<DataType>,
}

/// What is known of a matched row where its clause is chosen.
struct Found {
    record: Reg,
    key: Vec<Reg>,
}

/// Copies of the target's rows, and how they are searched.
struct Copies {
    buffer: BufferId,
    columns: Vec<u16>,
    hashed: Vec<(u16, Class, Bound)>,
    rest: Vec<Bound>,
}

impl<'a> Compiler<'a> {
    /// Compiles MERGE. `counter`, a BIGINT register, is set to the number of rows inserted, updated
    /// or deleted.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the statement; 0A000 for what is not supported.
    pub fn merge(&mut self, merge: &Merge, counter: Option<Reg>) -> Result<()> {
        self.statement(|compiler| compiler.merge_rows(merge, counter))
    }

    fn merge_rows(&mut self, merge: &Merge, counter: Option<Reg>) -> Result<()> {
        let merged = self.merge_target(merge)?;
        let (table, position) = (merged.table().clone(), merged.position);
        let mut scope = self.bind_factor(&merge.source, &[])?;
        self.check_merge_names(&merged, &scope)?;
        let on = self.bind_merge_condition(&merge.on, &merged, &scope)?;
        let mut clauses = Vec::with_capacity(merge.clauses.len());
        for clause in &merge.clauses {
            clauses.push(self.bind_clause(clause, &merged, &scope, counter)?);
        }
        let all = clauses
            .iter()
            .flat_map(|clause| clause.condition.iter().chain(&clause.values));
        let all: Vec<&Bound> = on.iter().chain(all).collect();
        let mut needed: Vec<_> = all.iter().flat_map(|bound| bound.columns()).collect();
        if needed.iter().any(|(source, _)| *source == merged.source) {
            self.note_reading(&table.schema().name);
        }
        needed.sort_unstable();
        needed.dedup();
        self.start_counting(counter);
        let mut references = self.plan_merge_references(&table, &mut clauses)?;
        let own: Vec<SourceId> = scope.items.iter().map(|item| item.source).collect();
        let outputs = needed.iter().filter(|(source, _)| own.contains(source));
        let outputs = outputs.map(|(source, column)| self.column_bound(*source, *column));
        let select = Select {
            filters: std::mem::take(&mut scope.filters),
            ..select_of(std::mem::take(&mut scope.items), outputs.collect())
        };
        let plan = self.plan(&select, &[], false);
        // With one row of the source at most, no row of the target is matched twice.
        let key = match plan.single {
            true => None,
            false => Some(table.schema().primary_key.clone()),
        };
        let of_target = needed.iter().filter(|(source, _)| *source == merged.source);
        let of_target: Vec<u16> = of_target.map(|(_, column)| *column).collect();
        let (inner, is_indexed) = self.plan_merge_target(&merged, &on, &of_target);
        let is_copied = match &key {
            None => false,
            Some(key) => !is_indexed || key.is_empty(),
        };
        let key_types: Vec<DataType> = match (&key, is_copied) {
            (None, _) => Vec::new(),
            (Some(_), true) => vec![DataType::BigInt],
            (Some(key), false) => {
                let columns = key.iter();
                columns
                    .map(|column| self.column_type(merged.source, column.0))
                    .collect()
            }
        };
        let mut leading = vec![DataType::BigInt, DataType::BigInt];
        leading.extend(key_types.iter().cloned());
        let matched = self.merge_buffer(&mut clauses, true, leading);
        let unmatched = self.merge_buffer(&mut clauses, false, vec![DataType::BigInt]);
        let copies = match is_copied {
            true => Some(self.copy_merge_target(&merged, &on, &of_target)?),
            false => None,
        };
        let found = self.builder.register(DataType::Boolean);
        self.emit_plan(&plan, &mut |compiler| {
            compiler.set_truth(found, false);
            compiler.for_each_match(
                &merged,
                &inner,
                copies.as_ref(),
                key.as_deref(),
                &mut |c, it| {
                    c.set_truth(found, true);
                    let numbered = clauses.iter().enumerate();
                    let numbered = numbered.filter(|(_, clause)| clause.is_matched);
                    c.choose_clause(&numbered.collect::<Vec<_>>(), &matched, Some(it))
                },
            )?;
            let numbered = clauses.iter().enumerate();
            let numbered: Vec<_> = numbered.filter(|(_, clause)| !clause.is_matched).collect();
            match numbered.is_empty() {
                true => Ok(()),
                false => compiler.unless(found, |c| c.choose_clause(&numbered, &unmatched, None)),
            }
        })?;
        self.change_matched(
            &merged,
            &clauses,
            &references,
            (&matched, &key_types),
            counter,
        )?;
        self.insert_unmatched(&mut clauses, &unmatched)?;
        let inserts = clauses
            .into_iter()
            .filter_map(|clause| match clause.action {
                Action::Insert(plan) => Some(plan.into_references()),
                _ => None,
            });
        references.extend(inserts.map(Some));
        for references in references.iter().flatten() {
            self.finish_references(&table, references, position)?;
        }
        self.changed = Some(table.id());
        Ok(())
    }

    /// What MERGE changes.
    fn merge_target(&mut self, merge: &Merge) -> Result<Merged> {
        let (name, alias) = table_of(&merge.table)?;
        let position = position_of(name);
        if !is_merge_of_postgres(merge) {
            let message = "syntax error in MERGE";
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
        let relation = relation_name(self.catalog, name)?;
        let is_view = self.view(&relation).is_some();
        let is_sequence =
            self.catalog.table(&relation).is_none() && self.catalog.sequence(&relation).is_some();
        if is_view || is_sequence || self.catalog.materialized_view(&relation).is_some() {
            let message = format!(
                "cannot execute MERGE on relation \"{}\"",
                name_in_schema(&relation)
            );
            let kind = match (is_view, is_sequence) {
                (true, _) => "views",
                (_, true) => "sequences",
                _ => "materialized views",
            };
            let detail = format!("This operation is not supported for {kind}.");
            let state = SqlState::FEATURE_NOT_SUPPORTED;
            return Err(fail(state, message, position).with_detail(detail));
        }
        let table = self.table(&relation, position)?;
        for clause in &merge.clauses {
            let privilege = match &clause.action {
                MergeAction::Insert(_) => Privilege::Insert,
                MergeAction::Update(_) => Privilege::Update,
                MergeAction::Delete { .. } => Privilege::Delete,
                MergeAction::DoNothing { .. } => continue,
            };
            self.note_access(Object::table(&relation), privilege);
        }
        let alias = alias.unwrap_or_else(|| name_in_schema(&relation).to_owned());
        refuse_unreachable(&merge.clauses)?;
        let source = self.add_table_source(&table, &alias, position);
        let target = Target { table, view: None };
        Ok(Merged {
            target,
            alias,
            source,
            position,
        })
    }

    fn check_merge_names(&self, merged: &Merged, scope: &FromScope) -> Result<()> {
        let is_same = |source: &SourceId| self.source(*source).name == merged.alias;
        if !scope.sources.iter().any(is_same) {
            return Ok(());
        }
        let message = format!("name \"{}\" specified more than once", merged.alias);
        let error = fail(SqlState::DUPLICATE_ALIAS, message, merged.position);
        Err(error.with_detail("The name is used both as MERGE target table and data source."))
    }

    /// The names of both rows.
    fn merge_level(
        &self,
        merged: &Merged,
        scope: &FromScope,
        aggregates: AggregatePolicy,
    ) -> Level {
        let mut level = scope.level(aggregates);
        level.sources.insert(0, merged.source);
        let own = self.columns_of_row(merged.source).into_iter();
        level.columns = own.chain(scope.columns.iter().cloned()).collect();
        level
    }

    fn bind_merge_condition(
        &mut self,
        on: &Expr,
        merged: &Merged,
        scope: &FromScope,
    ) -> Result<Vec<Bound>> {
        let level = self.merge_level(merged, scope, AggregatePolicy::Refused("JOIN conditions"));
        self.levels.push(level);
        let bound = self.bind_condition(on, "JOIN/ON");
        self.levels.pop();
        let mut all = Vec::new();
        conjuncts(bound?, &mut all);
        Ok(all)
    }

    /// Binds a WHEN clause.
    fn bind_clause<'s>(
        &mut self,
        clause: &'s MergeClause,
        merged: &Merged,
        scope: &FromScope,
        counter: Option<Reg>,
    ) -> Result<Clause<'s>> {
        let is_matched = clause.clause_kind == MergeClauseKind::Matched;
        let level = |compiler: &Self, what: &'static str| match is_matched {
            true => compiler.merge_level(merged, scope, AggregatePolicy::Refused(what)),
            false => scope.level(AggregatePolicy::Refused(what)),
        };
        let condition = match &clause.predicate {
            None => None,
            Some(predicate) => {
                let level = level(self, "MERGE WHEN conditions");
                self.levels.push(level);
                let bound = self.bind_condition(predicate, "WHEN");
                self.levels.pop();
                Some(bound.map_err(|error| of_target_row(error, merged))?)
            }
        };
        let (action, values) = match &clause.action {
            MergeAction::DoNothing { .. } => (Action::Nothing, Vec::new()),
            MergeAction::Delete { .. } => (Action::Delete, Vec::new()),
            MergeAction::Update(update) => {
                let MergeUpdateKind::Set(assignments) = &update.kind else {
                    let message = "syntax error in MERGE";
                    return Err(fail(SqlState::SYNTAX_ERROR, message, merged.position));
                };
                let assignments = self.assignments(&merged.target, assignments)?;
                let level = level(self, "UPDATE");
                self.levels.push(level);
                let values = self.bind_assigned(merged.table(), merged.source, &assignments);
                self.levels.pop();
                let (columns, values) = values?.into_iter().unzip();
                (Action::Update(columns), values)
            }
            MergeAction::Insert(insert) => {
                let level = level(self, "VALUES");
                self.levels.push(level);
                let bound = self.bind_merge_insert(insert, merged, counter);
                self.levels.pop();
                let (plan, values) = bound.map_err(|error| of_target_row(error, merged))?;
                (Action::Insert(Box::new(plan)), values)
            }
        };
        Ok(Clause {
            is_matched,
            condition,
            action,
            values,
            places: Vec::new(),
        })
    }

    /// Binds INSERT; gives the values of all columns.
    fn bind_merge_insert<'s>(
        &mut self,
        insert: &'s MergeInsertExpr,
        merged: &Merged,
        counter: Option<Reg>,
    ) -> Result<(Plan<'s>, Vec<Bound>)> {
        let (row, overriding) = merged_row(insert);
        let row = row.unwrap_or_default();
        let mut targets = self.listed_columns(&merged.target, &insert.columns)?;
        let listed = !targets.is_empty();
        if !listed {
            targets = merged.target.columns(row.len(), "insert into")?;
        }
        let references = References::Checked(Vec::new());
        let mut plan = Plan::of_row(self, merged.table(), references, false);
        plan.of_clause(self, targets, overriding, merged.alias.clone());
        plan.counter = counter;
        plan.position = merged.position;
        check_width(&plan, row.len(), listed, row.get(plan.targets().len()))?;
        let targets = plan.targets()[..row.len()].to_vec();
        let values = self.bind_row_values(&plan, &targets, row)?;
        Ok((plan, values))
    }

    /// What each clause's changes may violate, and what follows from them. Those of an INSERT are
    /// in its plan.
    fn plan_merge_references(
        &mut self,
        table: &Arc<Table>,
        clauses: &mut [Clause<'_>],
    ) -> Result<Vec<Option<References>>> {
        let mut changes = Vec::new();
        for clause in &*clauses {
            changes.push(clause.action.change(table)?);
        }
        let given: Vec<Change> = changes.iter().copied().flatten().collect();
        let planned = self.plan_several_references(table, &given)?;
        let mut planned = planned.into_iter();
        let mut all = Vec::with_capacity(clauses.len());
        for (clause, change) in clauses.iter_mut().zip(changes) {
            let own = change.and_then(|_| planned.next());
            match (&mut clause.action, own) {
                (Action::Insert(plan), Some(references)) => {
                    plan.set_references(references);
                    all.push(None);
                }
                (_, own) => all.push(own),
            }
        }
        Ok(all)
    }

    /// A buffer for the rows of the clauses of one kind, whose values find their places in it.
    fn merge_buffer(
        &mut self,
        clauses: &mut [Clause<'_>],
        is_matched: bool,
        leading: Vec<DataType>,
    ) -> Rows {
        let mut types: Vec<DataType> = Vec::new();
        for clause in clauses.iter_mut() {
            if clause.is_matched != is_matched {
                continue;
            }
            let mut taken = vec![false; types.len()];
            for value in &clause.values {
                let is_free = |at: &usize| !taken[*at] && types[*at] == value.data_type;
                let at = (0..types.len()).find(is_free).unwrap_or_else(|| {
                    types.push(value.data_type.clone());
                    types.len() - 1
                });
                taken.resize(types.len(), false);
                taken[at] = true;
                clause.places.push(at);
            }
        }
        let buffer = self.builder.buffer(leading.len() + types.len());
        self.builder.push(Step::BufferClear { buffer });
        Rows {
            buffer,
            leading,
            values: types,
        }
    }

    fn column_bound(&self, source: SourceId, column: u16) -> Bound {
        let data_type = self.column_type(source, column);
        Bound::new(Kind::Column { source, column }, data_type, None)
    }

    /// How the rows of the target are found that match a row of the source, and whether an index
    /// leads to them.
    fn plan_merge_target(
        &mut self,
        merged: &Merged,
        on: &[Bound],
        columns: &[u16],
    ) -> (JoinPlan, bool) {
        let item = target_item(merged);
        let outputs = columns
            .iter()
            .map(|column| self.column_bound(merged.source, *column));
        let select = Select {
            filters: on.to_vec(),
            ..select_of(vec![item], outputs.collect())
        };
        let plan = self.plan_for(&select, &[], false, Some(merged.source));
        let of_source = |bound: &Bound| !bound.sources().is_empty();
        let is_there = |bound: &Bound| !bound.is_volatile() && of_source(bound);
        let is_hashed = on.iter().any(|condition| {
            let one = restriction(merged.source, 0, condition, &is_there);
            one.is_some_and(|one| one.comparison == Comparison::Equal)
        });
        // A range that is the same for each row of the source, or one where values are equal, would
        // be read again and again.
        let is_indexed = plan.steps.first().is_some_and(|step| match &step.access {
            Access::Lookup { .. } => true,
            Access::Scan { range, .. } => {
                let mut bounds = range.lower.iter().chain(&range.upper);
                range.prefix.iter().any(of_source)
                    || (!is_hashed && bounds.any(|(bound, _)| of_source(bound)))
            }
            Access::Rows => false,
        });
        (plan, is_indexed)
    }

    /// Copies the rows of the target that may match, each with its record and a number.
    fn copy_merge_target(
        &mut self,
        merged: &Merged,
        on: &[Bound],
        columns: &[u16],
    ) -> Result<Copies> {
        let source = merged.source;
        let is_own = |bound: &&Bound| {
            let sources = bound.sources();
            !bound.is_volatile() && !sources.is_empty() && sources.iter().all(|it| *it == source)
        };
        let (own, others): (Vec<&Bound>, Vec<&Bound>) = on.iter().partition(is_own);
        let is_there = |bound: &Bound| !bound.is_volatile() && !bound.sources().contains(&source);
        let (mut hashed, mut rest) = (Vec::new(), Vec::new());
        for condition in others {
            match restriction(source, 0, condition, &is_there) {
                Some(one) if one.comparison == Comparison::Equal && hashed.len() < MATCHES_MAX => {
                    let place = columns.iter().position(|column| *column == one.column);
                    let place = place.unwrap_or_default() as u16 + 2;
                    hashed.push((place, one.class, one.value.clone()));
                }
                _ => rest.push(condition.clone()),
            }
        }
        let outputs = columns
            .iter()
            .map(|column| self.column_bound(source, *column));
        let select = Select {
            filters: own.into_iter().cloned().collect(),
            ..select_of(vec![target_item(merged)], outputs.collect())
        };
        let plan = self.plan_for(&select, &[], false, Some(source));
        let buffer = self.builder.buffer(columns.len() + 2);
        self.builder.push(Step::BufferClear { buffer });
        let number = self.builder.register(DataType::BigInt);
        let zero = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        self.builder.scalar(Instruction::Move {
            target: number,
            source: zero,
        });
        let needed: Vec<_> = columns.iter().map(|column| (source, *column)).collect();
        self.emit_plan(&plan, &mut |compiler| {
            let Some((_, record)) = compiler.source(source).record else {
                return Ok(());
            };
            compiler.count_row(Some(number));
            let saved = compiler.save_record(record);
            compiler.prefetch_columns(&needed)?;
            let mut row = vec![saved, number];
            for (source, column) in &needed {
                row.push(compiler.available_column(*source, *column)?);
            }
            let row = row.into();
            compiler.builder.push(Step::BufferPush { buffer, row });
            Ok(())
        })?;
        Ok(Copies {
            buffer,
            columns: columns.to_vec(),
            hashed,
            rest,
        })
    }

    fn save_record(&mut self, record: kiln_procedure::ir::RecordReg) -> Reg {
        let target = self.builder.register(DataType::BigInt);
        self.builder.push(Step::SaveRecord { target, record });
        target
    }

    /// Runs `body` for each row of the target that matches the source's row at hand.
    fn for_each_match(
        &mut self,
        merged: &Merged,
        plan: &JoinPlan,
        copies: Option<&Copies>,
        key: Option<&[ColumnId]>,
        body: &mut dyn FnMut(&mut Self, &Found) -> Result<()>,
    ) -> Result<()> {
        let Some(copies) = copies else {
            return self.emit_plan(plan, &mut |compiler| {
                let Some((_, record)) = compiler.source(merged.source).record else {
                    return Ok(());
                };
                let record = compiler.save_record(record);
                let columns = key.unwrap_or_default().iter();
                let key = columns.map(|column| compiler.column(merged.source, *column));
                let key = key.collect::<Result<Vec<Reg>>>()?;
                body(compiler, &Found { record, key })
            });
        };
        let values: Vec<Bound> = copies.hashed.iter().map(|one| one.2.clone()).collect();
        let values = self.emit_row(&values)?;
        let matching = copies.hashed.iter().zip(values);
        let matching = matching.map(|((column, class, _), value)| Match {
            column: *column,
            value,
            class: *class,
        });
        let matching: Vec<Match> = matching.collect();
        self.open_ir_loop();
        let record = self.builder.register(DataType::BigInt);
        let number = self.builder.register(DataType::BigInt);
        let mut row = vec![record, number];
        for column in &copies.columns {
            let register = self
                .builder
                .register(self.column_type(merged.source, *column));
            self.set_column(merged.source, usize::from(*column), register);
            row.push(register);
        }
        let key = vec![number];
        let result = self.emit_filters(&copies.rest, &mut |compiler| {
            let key = key.clone();
            body(compiler, &Found { record, key })
        });
        let steps = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: copies.buffer,
            matching: matching.into(),
            row: row.into(),
            body: steps,
        });
        result
    }

    /// Computes what the first clause that holds says, and puts it into the buffer.
    fn choose_clause(
        &mut self,
        clauses: &[(usize, &Clause<'_>)],
        rows: &Rows,
        found: Option<&Found>,
    ) -> Result<()> {
        let Some(((number, clause), others)) = clauses.split_first() else {
            return Ok(());
        };
        let Some(condition) = &clause.condition else {
            return self.push_clause(*number, clause, rows, found);
        };
        let condition = self.emit_condition(condition)?;
        self.open();
        let mut result = self.push_clause(*number, clause, rows, found);
        let then = self.close();
        self.open();
        if result.is_ok() {
            result = self.choose_clause(others, rows, found);
        }
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise,
        });
        result
    }

    fn push_clause(
        &mut self,
        number: usize,
        clause: &Clause<'_>,
        rows: &Rows,
        found: Option<&Found>,
    ) -> Result<()> {
        if let Action::Nothing = clause.action {
            return Ok(());
        }
        let number = self.clause_number(number);
        let mut row = vec![number];
        if let Some(Found { record, key }) = found {
            row.push(*record);
            row.extend(key);
        }
        let first = row.len();
        for data_type in &rows.values {
            row.push(self.builder.constant(data_type.clone(), Value::Null));
        }
        let values = self.emit_row(&clause.values)?;
        for (place, value) in clause.places.iter().zip(values) {
            row[first + place] = value;
        }
        let (buffer, row) = (rows.buffer, row.into());
        self.builder.push(Step::BufferPush { buffer, row });
        Ok(())
    }

    fn clause_number(&mut self, number: usize) -> Reg {
        let number = Value::BigInt(i64::try_from(number).unwrap_or(i64::MAX));
        self.builder.constant(DataType::BigInt, number)
    }

    /// Runs `body` for each row of a buffer, whose registers it gets.
    fn for_each_merged(
        &mut self,
        rows: &Rows,
        body: impl FnOnce(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let types = rows.leading.iter().chain(&rows.values).cloned();
        let row: Vec<Reg> = types
            .map(|data_type| self.builder.register(data_type))
            .collect();
        self.open_ir_loop();
        let result = body(self, &row);
        let steps = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: rows.buffer,
            matching: Box::default(),
            row: row.into(),
            body: steps,
        });
        result
    }

    /// Runs `body` where the row at hand is of a clause.
    fn when_of_clause(
        &mut self,
        number: usize,
        tag: Reg,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let right = self.clause_number(number);
        let is_it = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Compare {
            op: Comparison::Equal,
            class: Class::Integer,
            target: is_it,
            left: tag,
            right,
        });
        self.when(is_it, body)
    }

    /// Updates and deletes matched rows.
    fn change_matched(
        &mut self,
        merged: &Merged,
        clauses: &[Clause<'_>],
        references: &[Option<References>],
        (rows, key_types): (&Rows, &[DataType]),
        counter: Option<Reg>,
    ) -> Result<()> {
        let changes =
            |clause: &Clause<'_>| matches!(clause.action, Action::Update(_) | Action::Delete);
        if !clauses.iter().any(changes) {
            return Ok(());
        }
        let (table, position) = (merged.table(), merged.position);
        let classes = key_types
            .iter()
            .map(|it| Class::of(it).unwrap_or(Class::Bytes));
        let classes: Vec<Class> = classes.collect();
        let seen = self.builder.buffer(classes.len());
        self.builder.push(Step::BufferClear { buffer: seen });
        let reference = self.builder.table(table);
        self.for_each_merged(rows, |compiler, row| {
            let (key, values) = row[2..].split_at(classes.len());
            if !key.is_empty() {
                let added = compiler.push_distinct(seen, &classes, key);
                compiler.unless(added, |c| {
                    c.raise(changed_twice(position));
                    Ok(())
                })?;
            }
            let record = compiler.builder.record();
            compiler.builder.push(Step::RestoreRecord {
                record,
                source: row[1],
            });
            for (number, (clause, references)) in clauses.iter().zip(references).enumerate() {
                let Some(references) = references else {
                    continue;
                };
                compiler.when_of_clause(number, row[0], |c| {
                    let source = c.declare_record_row(table, &merged.alias, record, position);
                    let row = RowSource {
                        source,
                        named: source,
                        table: reference,
                        record,
                    };
                    let done = |c: &mut Self| {
                        c.count_row(counter);
                        Ok(())
                    };
                    let Action::Update(columns) = &clause.action else {
                        return c.emit_delete(table, row, references, position, done);
                    };
                    let new = columns.iter().zip(&clause.places).zip(&clause.values);
                    let new = new.map(|((column, place), value)| {
                        let data_type = value.data_type.clone();
                        (
                            *column,
                            Bound::register(values[*place], data_type, position),
                        )
                    });
                    let returning = c.bind_returning(None, &[])?;
                    let change = c.bind_change((table, None), source, new.collect(), returning)?;
                    c.emit_change(table, row, &change, references, position, done)
                })?;
            }
            Ok(())
        })
    }

    /// Inserts rows for those of the source that match none.
    fn insert_unmatched(&mut self, clauses: &mut [Clause<'_>], rows: &Rows) -> Result<()> {
        let inserts = |clause: &Clause<'_>| matches!(clause.action, Action::Insert(_));
        if !clauses.iter().any(inserts) {
            return Ok(());
        }
        self.for_each_merged(rows, |compiler, row| {
            for (number, clause) in clauses.iter_mut().enumerate() {
                let Action::Insert(plan) = &mut clause.action else {
                    continue;
                };
                let values = clause.places.iter().map(|place| row[1 + place]);
                let values: Vec<Reg> = values.collect();
                compiler.when_of_clause(number, row[0], |c| {
                    c.insert_row(plan, &values, None)?;
                    Ok(())
                })?;
            }
            Ok(())
        })
    }

    /// What several changes of one statement may violate, each for itself. Their events are in one
    /// queue if something follows from any of them.
    fn plan_several_references(
        &mut self,
        table: &Arc<Table>,
        changes: &[Change],
    ) -> Result<Vec<References>> {
        let mut planned = Vec::with_capacity(changes.len());
        for change in changes {
            planned.push(self.plan_references(table, *change, false)?);
        }
        let is_queued = |one: &References| matches!(one, References::Queued { .. });
        let has_trigger = |change: &Change| !fired(table, TriggerTime::After, *change).is_empty();
        if !planned.iter().any(is_queued) && !changes.iter().any(has_trigger) {
            return Ok(planned);
        }
        let mut kinds: Vec<Change> = Vec::new();
        for change in changes {
            if !kinds.contains(change) {
                kinds.push(*change);
            }
        }
        let cascade = Rc::new(self.plan_cascade(table, &kinds)?);
        let queued = changes
            .iter()
            .enumerate()
            .map(|(at, change)| References::Queued {
                cascade: cascade.clone(),
                event: kinds
                    .iter()
                    .position(|kind| kind == change)
                    .unwrap_or_default(),
                is_first: at == 0,
            });
        Ok(queued.collect())
    }
}

/// The table that MERGE names, and its alias.
fn table_of(factor: &TableFactor) -> Result<(&ObjectName, Option<String>)> {
    match factor {
        TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } if alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) => {
            Ok((name, alias.as_ref().map(|alias| name_of(&alias.name))))
        }
        _ => Err(fail(
            SqlState::SYNTAX_ERROR,
            "syntax error: MERGE changes a table",
            position_of(factor),
        )),
    }
}

/// Refuses a clause behind one of its kind that always holds.
fn refuse_unreachable(clauses: &[MergeClause]) -> Result<()> {
    let mut closed = [false; 2];
    for clause in clauses {
        let is_closed = &mut closed[usize::from(clause.clause_kind == MergeClauseKind::Matched)];
        if *is_closed {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            let position = position_of_span(clause.when_token.0.span);
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
        *is_closed = clause.predicate.is_none();
    }
    Ok(())
}

/// The error of a clause for rows that match nothing, which names the target.
fn of_target_row(error: kiln_storage::error::Error, merged: &Merged) -> kiln_storage::error::Error {
    let missing = format!("missing FROM-clause entry for table \"{}\"", merged.alias);
    if error.message() != missing {
        return error;
    }
    let message = format!(
        "invalid reference to FROM-clause entry for table \"{}\"",
        merged.alias
    );
    let detail = format!(
        "There is an entry for table \"{}\", but it cannot be referenced from this part of the \
         query.",
        merged.alias
    );
    let position = error.position().map(|at| (at.line, at.column));
    fail(error.state(), message, position).with_detail(detail)
}

fn target_item(merged: &Merged) -> FromItem {
    FromItem {
        source: merged.source,
        kind: ItemKind::Table(merged.table().clone()),
        left: None,
    }
}

fn select_of(items: Vec<FromItem>, outputs: Vec<Bound>) -> Select {
    Select {
        items,
        filters: Vec::new(),
        outputs,
        open_outputs: Vec::new(),
        distinct: false,
        distinct_on: Vec::new(),
        row_functions: Vec::new(),
        grouping: None,
    }
}

fn changed_twice(position: Position) -> Failure {
    let hint = "Ensure that not more than one source row matches any one target row.";
    Failure {
        state: SqlState::CARDINALITY_VIOLATION,
        message: "MERGE command cannot affect row a second time".to_owned(),
        arguments: Box::default(),
        detail: None,
        hint: Some(TextSource::Literal(hint.to_owned())),
        subject: None,
        position,
    }
}
