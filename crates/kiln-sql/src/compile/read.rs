//! Emitting the access to one source: look-ups, scans, and the loops over what is no table.

use kiln_procedure::ir::{Bound as KeyBound, BufferId, Class, Range, Reg, Step};
use kiln_storage::error::{Error, Result};

use super::Compiler;
use super::bound::{Bound, ItemKind, SourceId, Subquery};
use super::path::{Access, Each, KeyRange, Values};
use super::plan::PlanStep;
use super::produce::RowSink;
use super::query::QueryOptions;

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
            Values::Array(array) => {
                let array = self.emit(array)?;
                let is_there = self.not_null(array);
                self.open();
                self.open_ir_loop();
                self.push_distinct(buffer, &[first.class], &[value]);
                let body = self.close_ir_loop();
                self.builder.push(Step::ForEach {
                    variable: value,
                    array,
                    body,
                });
                self.close_if(is_there);
            }
            Values::Rows(subquery, _) => self.push_listed(subquery, first.class, buffer, value)?,
        }
        self.open_ir_loop();
        let element = self.builder.register(first.data_type.clone());
        self.slots.insert(first.slot, element);
        let result = self.emit_each(step, others, body);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: [element].into(),
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
                let (query, columns) = query.with_columns(&step.used_columns());
                self.emit_query(&query, QueryOptions::default(), &mut |compiler, row| {
                    for (column, register) in columns.iter().zip(row) {
                        compiler.set_column(step.source, *column as usize, *register);
                    }
                    body(compiler)
                })
            }
            (_, ItemKind::Full(join)) => self.emit_full(join, &mut |compiler, row| {
                compiler.set_row(step.source, row);
                body(compiler)
            }),
            (_, ItemKind::Catalog(relation, session)) => {
                self.emit_relation(step, relation, session.as_ref(), body)
            }
            (_, ItemKind::Sequence(sequence)) => self.emit_sequence_row(step, sequence, body),
            (_, ItemKind::With(reference)) => self.emit_with(*reference, &mut |compiler, row| {
                compiler.set_row(step.source, row);
                body(compiler)
            }),
            (_, ItemKind::Functions(calls)) => {
                self.emit_row_functions(calls, position, &mut |compiler, row| {
                    compiler.set_row(step.source, row);
                    body(compiler)
                })
            }
            _ => Err(Error::internal("a path to something that is no table")),
        }
    }

    /// Says where the columns of a row are.
    pub(super) fn set_row(&mut self, source: SourceId, row: &[Reg]) {
        for (column, register) in row.iter().enumerate() {
            self.set_column(source, column, *register);
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
