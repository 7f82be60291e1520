//! What a MERGE says: its target, its condition and its clauses, bound.

use kiln_engine::{Object, Privilege};
use kiln_procedure::ir::Reg;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use sqlparser::ast::{
    Expr, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeUpdateKind,
    ObjectName, TableFactor,
};

use super::super::super::bound::{Bound, SourceId, conjuncts};
use super::super::super::from::FromScope;
use super::super::super::scope::{AggregatePolicy, Level};
use super::super::super::{Compiler, fail, name_of, position_of, position_of_span, relation_name};
use super::super::insert::{Plan, check_width};
use super::super::references::References;
use super::super::target::Target;
use super::{Action, Clause, Merged};
use crate::parse::{is_merge_of_postgres, merged_row};

impl<'a> Compiler<'a> {
    /// What MERGE changes.
    pub(super) fn merge_target(&mut self, merge: &Merge) -> Result<Merged> {
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

    pub(super) fn check_merge_names(&self, merged: &Merged, scope: &FromScope) -> Result<()> {
        let is_same = |source: &SourceId| self.source(*source).name == merged.alias;
        if !scope.sources.iter().any(is_same) {
            return Ok(());
        }
        let message = format!("name \"{}\" specified more than once", merged.alias);
        let error = fail(SqlState::DUPLICATE_ALIAS, message, merged.position);
        Err(error.with_detail("The name is used both as MERGE target table and data source."))
    }

    /// The names of both rows.
    pub(super) fn merge_level(
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

    pub(super) fn bind_merge_condition(
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
    pub(super) fn bind_clause<'s>(
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
    pub(super) fn bind_merge_insert<'s>(
        &mut self,
        insert: &'s MergeInsertExpr,
        merged: &Merged,
        counter: Option<Reg>,
    ) -> Result<(Plan<'s>, Vec<Bound>)> {
        let (row, overriding) = merged_row(insert);
        let row = row.unwrap_or_default();
        let (mut targets, places) = self.listed_columns(&merged.target, &insert.columns)?;
        let listed = !targets.is_empty();
        if !listed {
            targets = merged.target.columns(row.len(), "insert into")?;
        }
        let references = References::Checked(Vec::new());
        let mut plan = Plan::of_row(self, merged.table(), references, false);
        plan.of_clause(self, (targets, places), overriding, merged.alias.clone());
        plan.counter = counter;
        plan.position = merged.position;
        check_width(&plan, row.len(), listed, row.get(plan.targets().len()))?;
        let targets = plan.targets()[..row.len()].to_vec();
        let values = self.bind_row_values(&plan, &targets, row)?;
        Ok((plan, values))
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
