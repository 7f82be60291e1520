//! Which rows match, and what the clause of each computes: both go into buffers.

use kiln_procedure::ir::MATCHES_MAX;
use kiln_procedure::ir::{Comparison, Instruction, Match, Reg, Step};
use kiln_storage::error::Result;
use kiln_storage::schema::ColumnId;
use kiln_storage::types::{DataType, Value};

use super::super::super::Compiler;
use super::super::super::bound::{Bound, FromItem, ItemKind, Kind, Select, SourceId};
use super::super::super::path::{Access, restriction};
use super::super::super::plan::Plan as JoinPlan;
use super::{Action, Clause, Copies, Found, Merged, Rows};

impl<'a> Compiler<'a> {
    /// A buffer for the rows of the clauses of one kind, whose values find their places in it.
    pub(super) fn merge_buffer(
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

    pub(super) fn column_bound(&self, source: SourceId, column: u16) -> Bound {
        let data_type = self.column_type(source, column);
        Bound::new(Kind::Column { source, column }, data_type, None)
    }

    /// How the rows of the target are found that match a row of the source, and whether an index
    /// leads to them.
    pub(super) fn plan_merge_target(
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
            items: vec![item],
            outputs: outputs.collect(),
            ..Select::default()
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
    pub(super) fn copy_merge_target(
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
            items: vec![target_item(merged)],
            outputs: outputs.collect(),
            ..Select::default()
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

    pub(super) fn save_record(&mut self, record: kiln_procedure::ir::RecordReg) -> Reg {
        let target = self.builder.register(DataType::BigInt);
        self.builder.push(Step::SaveRecord { target, record });
        target
    }

    /// Runs `body` for each row of the target that matches the source's row at hand.
    pub(super) fn for_each_match(
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
    pub(super) fn choose_clause(
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

    pub(super) fn push_clause(
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

    pub(super) fn clause_number(&mut self, number: usize) -> Reg {
        let number = Value::BigInt(i64::try_from(number).unwrap_or(i64::MAX));
        self.builder.constant(DataType::BigInt, number)
    }
}

fn target_item(merged: &Merged) -> FromItem {
    FromItem {
        source: merged.source,
        kind: ItemKind::Table(merged.table().clone()),
        left: None,
    }
}
