//! The rows of the buffers are changed and inserted.

use std::rc::Rc;

use kiln_platform::sync::Arc;
use kiln_procedure::ir::TextSource;
use kiln_procedure::ir::{Class, Comparison, Failure, Instruction, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::TriggerTime;
use kiln_storage::table::Table;
use kiln_storage::types::DataType;

use super::super::super::bound::Bound;
use super::super::super::rows::RowSource;
use super::super::super::{Compiler, Position};
use super::super::references::{Change, References};
use super::super::triggers::fired;
use super::{Action, Clause, Merged, Rows};

impl<'a> Compiler<'a> {
    /// What each clause's changes may violate, and what follows from them. Those of an INSERT are
    /// in its plan.
    pub(super) fn plan_merge_references(
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

    /// What several changes of one statement may violate, each for itself. Their events are in one
    /// queue if something follows from any of them.
    pub(super) fn plan_several_references(
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
            if changes.len() > 1 {
                for (references, change) in planned.iter_mut().zip(changes) {
                    self.expect_keys_again(references, *change);
                }
            }
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

    /// Updates and deletes matched rows.
    pub(super) fn change_matched(
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
    pub(super) fn insert_unmatched(
        &mut self,
        clauses: &mut [Clause<'_>],
        rows: &Rows,
    ) -> Result<()> {
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

    /// Runs `body` for each row of a buffer, whose registers it gets.
    pub(super) fn for_each_merged(
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
    pub(super) fn when_of_clause(
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
