//! Emitting the access to one source: look-ups, scans, and the loops over what is no table.

use kiln_procedure::ir::{Bound as KeyBound, BufferId, Class, Instruction, Range, Reg, Step};
use kiln_storage::error::{Error, Result};
use kiln_storage::types::{DataType, Value};

use super::Compiler;
use super::bound::Bound;
use super::path::{Access, Each, KeyRange, Values};
use super::plan::PlanStep;
use super::produce::RowSink;
use super::query::QueryOptions;
use super::select::ItemKind;
use super::subquery::Subquery;

impl<'a> Compiler<'a> {
    /// Runs `body` for each row of a source.
    pub(super) fn emit_access(&mut self, step: &PlanStep, body: RowSink<'_, 'a>) -> Result<()> {
        self.emit_each(step, &step.each, body)
    }

    /// Runs the access of a step for each combination of the values that its key takes, none of
    /// them twice.
    fn emit_each(&mut self, step: &PlanStep, each: &[Each], body: RowSink<'_, 'a>) -> Result<()> {
        let Some((first, others)) = each.split_first() else {
            return self.emit_path(step, body);
        };
        let buffer = self.builder.buffer(1);
        self.builder.push(Step::BufferClear { buffer });
        let value = self.builder.register(first.data_type.clone());
        match &first.values {
            Values::List(list) => {
                for bound in list {
                    self.emit_into(bound, value)?;
                    self.push_distinct(buffer, &[first.class], &[value]);
                }
            }
            Values::Rows(subquery, _) => self.push_listed(subquery, first.class, buffer, value)?,
        }
        self.open_ir_loop();
        let turn = self.builder.register(first.data_type.clone());
        self.slots.insert(first.slot, turn);
        let result = self.emit_each(step, others, body);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: [turn].into(),
            body,
        });
        result
    }

    /// Puts the values of a subquery's rows into `buffer`, by way of `value`.
    fn push_listed(
        &mut self,
        subquery: &Subquery,
        class: Class,
        buffer: BufferId,
        value: Reg,
    ) -> Result<()> {
        let Some(search) = subquery.search() else {
            return Err(Error::internal("a subquery that cannot be a list"));
        };
        let options = QueryOptions::default();
        self.emit_query(&subquery.query, options, &mut |compiler, row| {
            compiler.name_row(subquery, row);
            compiler.emit_into(search.right, value)?;
            compiler.push_distinct(buffer, &[class], &[value]);
            Ok(())
        })
    }

    /// Runs `body` for each row that the access of a step gives.
    fn emit_path(&mut self, step: &PlanStep, body: RowSink<'_, 'a>) -> Result<()> {
        let position = self.source(step.source).position;
        match (&step.access, &step.kind) {
            (Access::Lookup { index, key }, ItemKind::Table(table)) => {
                self.note_read(table.id());
                let table = self.builder.table(table);
                let registers = self.emit_row(key)?;
                let (record, found) = self.builder.lookup(table, *index, &registers, position);
                self.open();
                self.source_mut(step.source).record = Some((table, record));
                self.set_known(step, key, &registers);
                let result = body(self);
                let then = self.close();
                self.builder.push(Step::If {
                    condition: found,
                    then,
                    otherwise: Vec::new(),
                });
                result
            }
            (
                Access::Scan {
                    index,
                    range,
                    reverse,
                },
                ItemKind::Table(table),
            ) => {
                self.note_read(table.id());
                let table = self.builder.table(table);
                let KeyRange {
                    prefix,
                    lower,
                    upper,
                } = range;
                let mut all = prefix.clone();
                all.extend(lower.iter().chain(upper).map(|(bound, _)| bound.clone()));
                let registers = self.emit_row(&all)?;
                let mut bounds = registers[prefix.len()..].iter().copied();
                let mut bound_of = |bound: &Option<(Bound, bool)>| {
                    bound.as_ref().and_then(|(_, inclusive)| {
                        let value = bounds.next()?;
                        Some(KeyBound {
                            value,
                            inclusive: *inclusive,
                        })
                    })
                };
                let lower = bound_of(lower);
                let upper = bound_of(upper);
                let range = Range {
                    prefix: registers[..prefix.len()].into(),
                    lower,
                    upper,
                };
                let record = self.builder.record();
                self.open_ir_loop();
                self.source_mut(step.source).record = Some((table, record));
                self.set_known(step, prefix, &registers);
                let result = body(self);
                let steps = self.close_ir_loop();
                self.builder
                    .scan(table, *index, range, *reverse, record, steps, position);
                result
            }
            (_, ItemKind::Derived(query)) => {
                self.emit_query(query, QueryOptions::default(), &mut |compiler, row| {
                    for (column, register) in row.iter().enumerate() {
                        compiler.set_column(step.source, column, *register);
                    }
                    body(compiler)
                })
            }
            (_, ItemKind::With(reference)) => self.emit_with(*reference, &mut |compiler, row| {
                for (column, register) in row.iter().enumerate() {
                    compiler.set_column(step.source, column, *register);
                }
                body(compiler)
            }),
            (_, ItemKind::Catalog(relation, session)) => {
                self.emit_relation(step, relation, session.as_ref(), body)
            }
            (_, ItemKind::Unnest(array)) => {
                let data_type = self.column_type(step.source, 0);
                let array = self.emit(array)?;
                let condition = self.not_null(array);
                let variable = self.builder.register(data_type);
                self.open();
                self.open_ir_loop();
                self.set_column(step.source, 0, variable);
                let result = body(self);
                let steps = self.close_ir_loop();
                self.builder.push(Step::ForEach {
                    variable,
                    array,
                    body: steps,
                });
                let then = self.close();
                self.builder.push(Step::If {
                    condition,
                    then,
                    otherwise: Vec::new(),
                });
                result
            }
            (_, ItemKind::Series(first, last, stride)) => {
                let data_type = self.column_type(step.source, 0);
                let reverse = matches!(stride.as_constant(), Some(Value::BigInt(by)) if *by < 0);
                let stride = match stride.as_constant() {
                    Some(Value::BigInt(by)) => by.checked_abs().unwrap_or(i64::MAX),
                    _ => 1,
                };
                let first = self.emit(first)?;
                let last = self.emit(last)?;
                let by = self
                    .builder
                    .constant(DataType::BigInt, Value::BigInt(stride));
                let (one, other) = (self.not_null(first), self.not_null(last));
                let condition = self.builder.register(DataType::Boolean);
                self.builder.scalar(Instruction::And {
                    target: condition,
                    left: one,
                    right: other,
                });
                let variable = self.builder.register(data_type);
                self.open();
                self.open_ir_loop();
                self.set_column(step.source, 0, variable);
                let result = body(self);
                let steps = self.close_ir_loop();
                self.builder.push(Step::ForRange {
                    variable,
                    first,
                    last,
                    step: by,
                    reverse,
                    body: steps,
                });
                let then = self.close();
                self.builder.push(Step::If {
                    condition,
                    then,
                    otherwise: Vec::new(),
                });
                result
            }
            (_, ItemKind::Routine(callee, arguments)) => {
                let arguments = self.emit_all(arguments)?;
                let arguments: Vec<Reg> = arguments.iter().map(|typed| typed.register).collect();
                let position = self.source(step.source).position;
                let buffer = callee.call_rows(self, &arguments, position)?;
                let columns = callee.columns_in_from("");
                let row: Vec<Reg> = columns
                    .iter()
                    .map(|(_, data_type)| self.builder.register(data_type.clone()))
                    .collect();
                self.open_ir_loop();
                for (column, register) in row.iter().enumerate() {
                    self.set_column(step.source, column, *register);
                }
                let result = body(self);
                let body = self.close_ir_loop();
                self.builder.push(Step::ForBuffer {
                    buffer,
                    matching: Box::default(),
                    row: row.into(),
                    body,
                });
                result
            }
            _ => Err(Error::internal("a path to something that is no table")),
        }
    }

    /// The columns that equal a key's registers need not be read.
    fn set_known(&mut self, step: &PlanStep, key: &[Bound], registers: &[Reg]) {
        for (column, value) in &step.known {
            if let Some(position) = key.iter().position(|bound| bound == value) {
                self.set_column(step.source, *column as usize, registers[position]);
            }
        }
    }
}
