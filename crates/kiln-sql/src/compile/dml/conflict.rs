//! ON CONFLICT.

use kiln_procedure::ir::{BufferId, Class, Failure, Instruction, RecordReg, Reg, Step, TextSource};
use kiln_storage::error::{Error, Result, SqlState, Subject};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ColumnSet, IndexDefinition};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::{ConflictTarget, CreateIndex, Expr, OnConflict, OnConflictAction};

use super::super::computed::split_conjuncts;
use super::super::query::OutputColumn;
use super::super::rows::RowSource;
use super::super::{
    Compiler, Position, fail, name_of, object_name, position_of, position_of_span, unsupported,
};
use super::assign::Assignments;
use super::generated::with_generated;
use super::insert::Plan;
use super::references::References;
use super::target::Target;
use crate::parse::conflict_target;

/// What ON CONFLICT says.
pub(super) enum OnConflictPlan<'s> {
    /// It is not there.
    Raise,
    /// DO NOTHING, for one unique index or for all.
    Nothing { index: Option<u16> },
    /// DO UPDATE.
    Update {
        index: u16,
        assignments: Assignments<'s>,
        selection: Option<&'s Expr>,
        references: References,
        /// The keys of the rows that the statement has inserted or updated, where it has several.
        seen: Option<BufferId>,
    },
}

impl Compiler<'_> {
    /// Notes the key of a changed row, and raises when `is_update` and the statement has changed
    /// that row before. A key with a NULL stands in no row's way, so it does not matter that the
    /// list takes it for equal to others.
    pub(super) fn note_change(
        &mut self,
        plan: &Plan<'_>,
        values: &[Reg],
        is_update: bool,
    ) -> Result<()> {
        let OnConflictPlan::Update {
            index,
            seen: Some(buffer),
            ..
        } = &plan.on_conflict
        else {
            return Ok(());
        };
        let (mut row, mut classes) = (Vec::new(), Vec::new());
        for column in &plan.table.indexes()[usize::from(*index)]
            .definition()
            .columns
        {
            let data_type = &plan.table.schema().columns[column.index()].data_type;
            row.push(values[column.index()]);
            classes.push(Class::of(data_type).unwrap_or(Class::Bytes));
        }
        let added = self.builder.register(DataType::Boolean);
        let (row, classes) = (row.into(), classes.into());
        self.builder.push(Step::BufferPushDistinct {
            buffer: *buffer,
            row,
            classes,
            added,
        });
        if !is_update {
            return Ok(());
        }
        self.unless(added, |compiler| {
            let hint = "Ensure that no rows proposed for insertion within the same command have \
                        duplicate constrained values.";
            compiler.raise(Failure {
                state: SqlState::CARDINALITY_VIOLATION,
                message: "ON CONFLICT DO UPDATE command cannot affect row a second time".to_owned(),
                arguments: Box::default(),
                detail: None,
                hint: Some(TextSource::Literal(hint.to_owned())),
                subject: None,
                position: plan.position,
            });
            Ok(())
        })
    }

    /// DO UPDATE: changes the row that stood in the way.
    pub(super) fn update_instead(
        &mut self,
        plan: &Plan<'_>,
        record: RecordReg,
        values: &[Reg],
        merged: &[OutputColumn],
        produced: Reg,
        truth: Reg,
    ) -> Result<()> {
        let OnConflictPlan::Update {
            assignments,
            selection,
            references,
            ..
        } = &plan.on_conflict
        else {
            return Ok(());
        };
        let table = &plan.table;
        let source = self.declare_record_row(table, &plan.alias, record, plan.position);
        let excluded = self.declare_new_row(table, "excluded", values);
        let (named, excluded) = match &plan.view {
            None => (source, excluded),
            Some(view) => (
                self.show_row(view, source, &plan.alias)?.source,
                self.show_row(view, excluded, "excluded")?.source,
            ),
        };
        self.push_rows(&[named, excluded]);
        let selected = match selection {
            Some(expr) => self.condition(expr, "WHERE").map(Some),
            None => Ok(None),
        };
        self.pop_rows();
        let selected = selected?;
        self.open();
        let result = self.note_change(plan, values, true).and_then(|()| {
            self.push_rows(&[named, excluded]);
            let new_values = self.bind_assigned(table, source, assignments);
            self.pop_rows();
            self.push_rows(&[named]);
            let returning = self.bind_returning(plan.returning, &[named]);
            self.pop_rows();
            let view = plan.view.as_deref();
            let change = self.bind_change((table, view), source, new_values?, returning?)?;
            let row = RowSource {
                source,
                named,
                table: plan.reference,
                record,
            };
            self.emit_change(table, row, &change, references, plan.position, |compiler| {
                compiler.count_row(plan.counter);
                let columns = compiler.emit_returning(change.returning())?;
                compiler.move_into(merged, &columns);
                compiler.builder.scalar(Instruction::Move {
                    target: produced,
                    source: truth,
                });
                Ok(())
            })
        });
        let then = self.close();
        match selected {
            Some(condition) => {
                self.builder.push(Step::If {
                    condition,
                    then,
                    otherwise: Vec::new(),
                });
            }
            None => then.into_iter().for_each(|step| self.builder.push(step)),
        }
        result
    }

    /// Checks ON CONFLICT and finds the index that it means. `inserted` is what the new rows may
    /// violate, and `single` says that there is one of them at most.
    pub(super) fn plan_conflict<'s>(
        &mut self,
        target: &Target,
        clause: &'s OnConflict,
        (inserted, single): (&mut References, bool),
        position: Position,
    ) -> Result<OnConflictPlan<'s>> {
        let table = &target.table;
        let deferrable = |is_meant: &dyn Fn(&IndexDefinition) -> bool| {
            let mut indexes = table.indexes().iter().map(|index| index.definition());
            match indexes.find(|index| index.deferral.is_deferrable() && is_meant(index)) {
                Some(index) => Err(no_deferrable_arbiter(table, &index.name)),
                None => Ok(()),
            }
        };
        let index = match &clause.conflict_target {
            None => {
                deferrable(&|_| true)?;
                None
            }
            Some(ConflictTarget::Columns(idents))
                if let [ident] = idents.as_slice()
                    && let Some(inferred) = conflict_target(ident)? =>
            {
                let index = self.inferred_index(target, &inferred, position)?;
                Some(index.ok_or_else(|| no_arbiter(position))?)
            }
            Some(ConflictTarget::Columns(idents)) => {
                let mut columns = ColumnSet::EMPTY;
                for ident in idents {
                    let column = target.column(ident, "update").map_err(|error| {
                        match error.state() {
                            // No index is over what a view computes.
                            SqlState::FEATURE_NOT_SUPPORTED => no_arbiter(position),
                            SqlState::UNDEFINED_COLUMN => {
                                let message =
                                    format!("column \"{}\" does not exist", name_of(ident));
                                let position = position_of_span(ident.span);
                                fail(SqlState::UNDEFINED_COLUMN, message, position)
                            }
                            _ => error,
                        }
                    })?;
                    columns.insert(column);
                    // PostgreSQL reads the target as an expression, in which variables count.
                    let name = name_of(ident);
                    if self.variable(std::slice::from_ref(&name)).is_some() {
                        return Err(fail(
                            SqlState::AMBIGUOUS_COLUMN,
                            format!("column reference \"{name}\" is ambiguous"),
                            position_of_span(ident.span),
                        )
                        .with_detail(
                            "It could refer to either a PL/pgSQL variable or a table column.",
                        ));
                    }
                }
                deferrable(&|index| is_over(index, columns))?;
                Some(unique_index(table, columns).ok_or_else(|| no_arbiter(position))?)
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let constraint = object_name(name)?;
                deferrable(&|index| index.name == constraint)?;
                let found = table.indexes().iter().position(|index| {
                    let definition = index.definition();
                    // A view has no constraints.
                    target.view.is_none()
                        && definition.unique
                        && definition.constraint
                        && definition.name == constraint
                });
                Some(found.map(|position| position as u16).ok_or_else(|| {
                    fail(
                        SqlState::UNDEFINED_OBJECT,
                        format!(
                            "constraint \"{constraint}\" for table \"{}\" does not exist",
                            name_in_schema(target.name())
                        ),
                        position_of(name),
                    )
                })?)
            }
        };
        let update = match &clause.action {
            OnConflictAction::DoNothing => return Ok(OnConflictPlan::Nothing { index }),
            OnConflictAction::DoUpdate(update) => update,
        };
        let Some(index) = index else {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                position,
            )
            .with_hint("For example, ON CONFLICT (column_name)."));
        };
        let assignments = self.assignments(target, &update.assignments)?;
        let changed = assignments.iter().map(|(column, _)| *column).collect();
        let changed = with_generated(table, changed)?;
        let references = self.plan_upsert(table, inserted, changed, single)?;
        let seen = (!single).then(|| {
            let width = table.indexes()[usize::from(index)]
                .definition()
                .columns
                .len();
            let buffer = self.builder.buffer(width);
            self.builder.push(Step::BufferClear { buffer });
            buffer
        });
        let selection = update.selection.as_ref();
        let values = assignments
            .iter()
            .flat_map(|(_, assigned)| assigned.expressions());
        let read: Vec<String> = values.chain(selection).map(Expr::to_string).collect();
        if !single && self.may_read(&read, table) {
            return Err(unsupported(
                "a subquery on the changed table in ON CONFLICT with several rows",
                position,
            ));
        }
        Ok(OnConflictPlan::Update {
            index,
            assignments,
            selection,
            references,
            seen,
        })
    }
}

impl Compiler<'_> {
    /// The unique index over columns and expressions, whose rows are all that are of the target's
    /// part of the table.
    fn inferred_index(
        &mut self,
        target: &Target,
        inferred: &CreateIndex,
        position: Position,
    ) -> Result<Option<u16>> {
        let (table, schema) = (&target.table, target.table.schema());
        let source = self.add_table_source(table, name_in_schema(&schema.name), position);
        let named = match &target.view {
            None => source,
            Some(view) => {
                self.show_row(view, source, name_in_schema(target.name()))?
                    .source
            }
        };
        self.isolated(|compiler| {
            compiler.push_rows_of(&[named], "index expressions");
            let mut columns = ColumnSet::EMPTY;
            for column in &inferred.columns {
                let bound = compiler.bind(&column.column.expr)?;
                match compiler.column_with(source, &bound) {
                    Some(column) => columns.insert(ColumnId(column)),
                    None => return Ok(None),
                }
            }
            let predicate = inferred.predicate.as_ref();
            let predicate = predicate.map(|it| compiler.bind_condition(it, "WHERE"));
            let filters = split_conjuncts(predicate.transpose()?);
            let implied = compiler.implied_predicates(source, table, &filters);
            let position = table.indexes().iter().position(|index| {
                let definition = index.definition();
                let is_whole = (definition.predicate()).is_none_or(|it| implied.contains(&it.0));
                is_whole && definition.unique && is_over(definition, columns)
            });
            Ok(position.map(|position| position as u16))
        })
    }
}

#[cold]
fn no_deferrable_arbiter(table: &Table, constraint: &str) -> Error {
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion \
                   constraints as arbiters";
    let subject = Subject::table(&table.schema().name).with_constraint(constraint);
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).about(subject)
}

#[cold]
fn no_arbiter(position: Position) -> Error {
    let message =
        "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    fail(SqlState::INVALID_COLUMN_REFERENCE, message, position)
}

fn is_over(definition: &IndexDefinition, columns: ColumnSet) -> bool {
    let key = definition.key_columns();
    !key.is_empty() && key.iter().copied().collect::<ColumnSet>() == columns
}

/// The unique index of the whole table over these columns, in whatever order.
fn unique_index(table: &Table, columns: ColumnSet) -> Option<u16> {
    let position = table.indexes().iter().position(|index| {
        let definition = index.definition();
        definition.unique && !definition.partial && is_over(definition, columns)
    })?;
    Some(position as u16)
}
