//! Emitting SELECT: the loops of a plan, grouping, duplicates, order.

use kiln_procedure::ir::{
    Block, BufferId, Class, Comparison, Instruction, Match, Reg, SortKey, Step,
};
use kiln_storage::error::{Error, Result};
use kiln_storage::types::{DataType, Value};

use super::Compiler;
use super::bound::{Bound, BoundQuery, ItemKind, OrderKey, RowFunctions, Select, SourceId};
use super::limit::Limits;
use super::operators;
use super::order::{Needs, class_in, sort_key};
use super::path::Access;
use super::plan::{Plan, PlanStep};
use super::query::QueryOptions;

/// What is emitted for each row.
pub(super) type RowSink<'s, 'a> = &'s mut dyn FnMut(&mut Compiler<'a>) -> Result<()>;

/// What is emitted for each row of outputs.
pub(super) type OutputSink<'s, 'a> = &'s mut dyn FnMut(&mut Compiler<'a>, &[Reg]) -> Result<()>;

impl<'a> Compiler<'a> {
    /// Emits a SELECT within its limits.
    pub(super) fn emit_select(
        &mut self,
        query: &BoundQuery,
        select: &Select,
        options: QueryOptions,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        if let Some(postponed) = self.split_at_sort(query, select) {
            return self.emit_postponed(&postponed, options, limits, sink);
        }
        if !select.distinct_on.is_empty() {
            return self.emit_distinct_on(query, select, limits, sink);
        }
        if let Some(grouping) = &select.grouping {
            return self.emit_grouped(query, select, grouping, limits, sink);
        }
        let limited = limits.limit.is_some();
        let plan = self.plan(select, &query.order, limited);
        // A function in the output may give several rows for one.
        let ordered = plan.ordered && select.row_functions.is_empty();
        let sorts = !ordered && !query.order.is_empty();
        let single = plan.single && select.row_functions.is_empty();
        let distinct = select.distinct && !single;
        if !sorts && (!options.materialise || single) {
            return self.emit_direct(&plan, select, &select.outputs, distinct, limits, sink);
        }
        let (columns, keys) = with_sort_keys(&select.outputs, &query.order)?;
        let buffer = self.builder.buffer(columns.len());
        self.builder.push(Step::BufferClear { buffer });
        let mut push = |compiler: &mut Compiler<'a>, row: &[Reg]| {
            compiler.builder.push(Step::BufferPush {
                buffer,
                row: row.into(),
            });
            Ok(())
        };
        let unlimited = Limits::default();
        let (inner, outer) = if sorts {
            (&unlimited, limits)
        } else {
            (limits, &unlimited)
        };
        self.emit_direct(&plan, select, &columns, distinct, inner, &mut push)?;
        if sorts {
            self.sort(buffer, keys);
        }
        let types = types_of(&columns);
        let width = select.outputs.len();
        self.emit_buffer_rows(buffer, &types, outer, &mut |compiler, row| {
            sink(compiler, &row[..width])
        })
    }

    /// DISTINCT ON: of the rows that are equal in some expressions, the first one in the order.
    fn emit_distinct_on(
        &mut self,
        query: &BoundQuery,
        select: &Select,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        let mut order = query.order.clone();
        for bound in &select.distinct_on {
            if !order.iter().any(|key| key.bound == *bound) {
                order.push(OrderKey {
                    bound: bound.clone(),
                    descending: false,
                    nulls_first: false,
                });
            }
        }
        let (outputs, by) = with_sort_keys(&select.outputs, &order)?;
        let places = select.distinct_on.iter().map(|bound| {
            let place = outputs.iter().position(|known| known == bound);
            place.ok_or_else(|| Error::internal("DISTINCT ON of what is not sorted by"))
        });
        let places: Vec<usize> = places.collect::<Result<_>>()?;
        let types = types_of(&outputs);
        let rows = BoundQuery::of(Select {
            outputs,
            distinct_on: Vec::new(),
            ..select.clone()
        });
        let buffer = self.builder.buffer(types.len());
        self.builder.push(Step::BufferClear { buffer });
        self.emit_query(&rows, QueryOptions::default(), &mut |compiler, row| {
            let row = row.into();
            compiler.builder.push(Step::BufferPush { buffer, row });
            Ok(())
        })?;
        self.sort(buffer, by);
        let (seen, classes) = self.start_distinct(&select.distinct_on)?;
        let outside = self.depth;
        let width = select.outputs.len();
        self.start_limits(limits);
        self.emit_buffer_rows(buffer, &types, &Limits::default(), &mut |compiler, row| {
            let keys: Vec<Reg> = places.iter().map(|place| row[*place]).collect();
            let added = compiler.push_distinct(seen, &classes, &keys);
            compiler.open();
            let result = compiler.within_limits(limits, outside, &mut |compiler| {
                sink(compiler, &row[..width])
            });
            compiler.close_if(added);
            result
        })
    }

    /// The rows of a plan as they come, without duplicates if `distinct`.
    fn emit_direct(
        &mut self,
        plan: &Plan,
        select: &Select,
        outputs: &[Bound],
        distinct: bool,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        let outside = self.depth;
        self.start_limits(limits);
        let seen = if distinct {
            Some(self.start_distinct(outputs)?)
        } else {
            None
        };
        let mut each = |compiler: &mut Compiler<'a>| {
            let Some((buffer, classes)) = &seen else {
                return compiler.within_limits(limits, outside, &mut |compiler| {
                    let row = compiler.emit_row(outputs)?;
                    sink(compiler, &row)
                });
            };
            let row = compiler.emit_row(outputs)?;
            let condition = compiler.push_distinct(*buffer, classes, &row);
            compiler.open();
            let result =
                compiler.within_limits(limits, outside, &mut |compiler| sink(compiler, &row));
            let then = compiler.close();
            compiler.builder.push(Step::If {
                condition,
                then,
                otherwise: Vec::new(),
            });
            result
        };
        self.emit_plan(plan, &mut |compiler| {
            compiler.emit_output_functions(&select.row_functions, &mut each)
        })
    }

    /// Runs `body` for each row that the functions in the output of a SELECT give.
    pub(super) fn emit_output_functions(
        &mut self,
        functions: &[(SourceId, RowFunctions)],
        body: RowSink<'_, 'a>,
    ) -> Result<()> {
        let Some(((source, calls), others)) = functions.split_first() else {
            return body(self);
        };
        let position = self.source(*source).position;
        self.emit_row_functions(calls, position, &mut |compiler, row| {
            compiler.set_row(*source, row);
            compiler.emit_output_functions(others, &mut *body)
        })
    }

    pub(super) fn emit_row(&mut self, outputs: &[Bound]) -> Result<Vec<Reg>> {
        Ok(self
            .emit_all(outputs)?
            .into_iter()
            .map(|typed| typed.register)
            .collect())
    }

    pub(super) fn start_distinct(&mut self, outputs: &[Bound]) -> Result<(BufferId, Vec<Class>)> {
        let class = |bound: &Bound| {
            class_in(
                "DISTINCT",
                Needs::Equality,
                &bound.data_type,
                bound.position,
            )
        };
        let classes: Vec<Class> = outputs.iter().map(class).collect::<Result<_>>()?;
        let buffer = self.builder.buffer(outputs.len());
        self.builder.push(Step::BufferClear { buffer });
        Ok((buffer, classes))
    }

    pub(super) fn push_distinct(
        &mut self,
        buffer: BufferId,
        classes: &[Class],
        row: &[Reg],
    ) -> Reg {
        let added = self.builder.register(DataType::Boolean);
        let classes = classes.into();
        self.builder.push(Step::BufferPushDistinct {
            buffer,
            row: row.into(),
            classes,
            added,
        });
        added
    }

    /// Emits the loops of a plan with `body` inside.
    pub(super) fn emit_plan(&mut self, plan: &Plan, body: RowSink<'_, 'a>) -> Result<()> {
        let result = self.emit_filters(&plan.guards, &mut |compiler| {
            let mut buffers = Vec::with_capacity(plan.steps.len());
            for step in &plan.steps {
                let buffer = if step.buffered {
                    Some(compiler.copied_once(&step.kind, |compiler| compiler.fill_buffer(step))?)
                } else {
                    None
                };
                buffers.push(buffer);
            }
            compiler.emit_step(plan, &buffers, 0, body)
        });
        // A second emission of the same query shall not read through handles of this one.
        for step in &plan.steps {
            self.source_mut(step.source).record = None;
        }
        result
    }

    /// Copies what is needed of a source into a buffer, before the loops over other sources.
    fn fill_buffer(&mut self, step: &PlanStep) -> Result<(BufferId, Vec<u16>)> {
        let mut columns: Vec<u16> = step.all_needed.iter().map(|(_, column)| *column).collect();
        // Filters on other sources too are checked when the buffer is read.
        let (own, others): (Vec<&Bound>, Vec<&Bound>) =
            step.filters.iter().partition(|filter| step.is_own(filter));
        for filter in &others {
            let needed = filter
                .columns()
                .into_iter()
                .filter(|(source, _)| *source == step.source);
            columns.extend(needed.map(|(_, column)| column));
        }
        columns.extend(step.matches.iter().map(|(column, _, _)| *column));
        columns.sort_unstable();
        columns.dedup();
        let buffer = self.builder.buffer(columns.len());
        self.builder.push(Step::BufferClear { buffer });
        let own: Vec<Bound> = own.into_iter().cloned().collect();
        let needed: Vec<_> = columns
            .iter()
            .map(|column| (step.source, *column))
            .collect();
        self.emit_access(step, &mut |compiler| {
            compiler.emit_filters(&own, &mut |compiler| {
                compiler.prefetch_columns(&needed)?;
                let row = compiler.row_of(step, &columns)?;
                compiler.builder.push(Step::BufferPush {
                    buffer,
                    row: row.into(),
                });
                Ok(())
            })
        })?;
        self.source_mut(step.source).record = None;
        Ok((buffer, columns))
    }

    /// The registers of a source's columns.
    fn row_of(&mut self, step: &PlanStep, columns: &[u16]) -> Result<Vec<Reg>> {
        let mut row = Vec::with_capacity(columns.len());
        for column in columns {
            row.push(self.available_column(step.source, *column)?);
        }
        Ok(row)
    }

    /// New registers for a row with these columns of a source, which are available from here on.
    fn declare_row(&mut self, step: &PlanStep, columns: &[u16]) -> Vec<Reg> {
        let mut row = Vec::with_capacity(columns.len());
        for column in columns {
            let data_type = self.column_type(step.source, *column);
            let register = self.builder.register(data_type);
            self.set_column(step.source, *column as usize, register);
            row.push(register);
        }
        row
    }

    fn emit_step(
        &mut self,
        plan: &Plan,
        buffers: &[Option<(BufferId, Vec<u16>)>],
        number: usize,
        body: RowSink<'_, 'a>,
    ) -> Result<()> {
        let Some(step) = plan.steps.get(number) else {
            return body(self);
        };
        if let Some(after) = &step.left {
            return self.emit_left(plan, buffers, number, after, body);
        }
        let is_last = number + 1 == plan.steps.len();
        let filters = step.late_filters();
        let mut inner = |compiler: &mut Compiler<'a>| {
            compiler.emit_filters(&filters, &mut |compiler| {
                if !is_last {
                    compiler.prefetch_columns(&step.needed)?;
                }
                compiler.emit_step(plan, buffers, number + 1, body)
            })
        };
        match &buffers[number] {
            Some(buffer) => self.emit_buffered(step, buffer, &mut inner),
            None => self.emit_access(step, &mut inner),
        }
    }

    /// The right side of a LEFT JOIN.
    fn emit_left(
        &mut self,
        plan: &Plan,
        buffers: &[Option<(BufferId, Vec<u16>)>],
        number: usize,
        after: &[Bound],
        body: RowSink<'_, 'a>,
    ) -> Result<()> {
        let step = &plan.steps[number];
        let columns: Vec<u16> = step.all_needed.iter().map(|(_, column)| *column).collect();
        if let (Access::Lookup { index, key }, []) = (&step.access, step.each.as_slice()) {
            self.emit_left_lookup(step, *index, key, &columns)?;
            return self.emit_filters(after, &mut |compiler| {
                compiler.emit_step(plan, buffers, number + 1, &mut *body)
            });
        }
        // The matches are collected, a row of NULLs if there are none, so that what follows is
        // emitted once.
        let matches = self.builder.buffer(columns.len());
        self.builder.push(Step::BufferClear { buffer: matches });
        let needed: Vec<_> = columns
            .iter()
            .map(|column| (step.source, *column))
            .collect();
        let filters = step.late_filters();
        let mut push = |compiler: &mut Compiler<'a>| {
            compiler.emit_filters(&filters, &mut |compiler| {
                compiler.prefetch_columns(&needed)?;
                let row = compiler.row_of(step, &columns)?;
                compiler.builder.push(Step::BufferPush {
                    buffer: matches,
                    row: row.into(),
                });
                Ok(())
            })
        };
        match &buffers[number] {
            Some(buffer) => self.emit_buffered(step, buffer, &mut push)?,
            None => self.emit_access(step, &mut push)?,
        }
        self.source_mut(step.source).record = None;
        let count = self.builder.register(DataType::BigInt);
        self.builder.push(Step::BufferCount {
            buffer: matches,
            target: count,
        });
        let condition = self.builder.register(DataType::Boolean);
        let right = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        self.builder.scalar(Instruction::Compare {
            op: Comparison::Equal,
            class: Class::Integer,
            target: condition,
            left: count,
            right,
        });
        let mut nulls = Vec::with_capacity(columns.len());
        for column in &columns {
            let data_type = self.column_type(step.source, *column);
            nulls.push(self.builder.constant(data_type, Value::Null));
        }
        self.builder.open();
        self.builder.push(Step::BufferPush {
            buffer: matches,
            row: nulls.into(),
        });
        let then = self.builder.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
        self.open_ir_loop();
        let row = self.declare_row(step, &columns);
        let result = self.emit_filters(after, &mut |compiler| {
            compiler.emit_step(plan, buffers, number + 1, &mut *body)
        });
        let steps = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: matches,
            matching: Box::default(),
            row: row.into(),
            body: steps,
        });
        result
    }

    /// A LEFT JOIN by a whole unique key: its columns are read, or set to NULL.
    fn emit_left_lookup(
        &mut self,
        step: &PlanStep,
        index: u16,
        key: &[Bound],
        columns: &[u16],
    ) -> Result<()> {
        let ItemKind::Table(table) = &step.kind else {
            return Err(Error::internal("a look-up in something that is no table"));
        };
        self.note_read(table.id());
        let table = self.builder.table(table);
        let key = self.emit_row(key)?;
        let position = self.source(step.source).position;
        let (record, found) = self.builder.lookup(table, index, &key, position);
        let mut all: Vec<u16> = columns.to_vec();
        for filter in &step.filters {
            let own = filter
                .columns()
                .into_iter()
                .filter(|(source, _)| *source == step.source);
            all.extend(own.map(|(_, column)| column));
        }
        all.sort_unstable();
        all.dedup();
        self.open();
        self.source_mut(step.source).record = Some((table, record));
        let needed: Vec<_> = all.iter().map(|column| (step.source, *column)).collect();
        self.prefetch_columns(&needed)?;
        let mut registers = Vec::with_capacity(columns.len());
        for column in columns {
            registers.push(self.available_column(step.source, *column)?);
        }
        let nulls: Block = registers
            .iter()
            .map(|target| Step::Scalar(Instruction::SetNull { target: *target }))
            .collect();
        if !step.filters.is_empty() {
            let filter = operators::all(step.filters.clone());
            let condition = self.emit_condition(&filter)?;
            let otherwise = nulls.clone();
            self.builder.push(Step::If {
                condition,
                then: Vec::new(),
                otherwise,
            });
        }
        let then = self.close();
        self.source_mut(step.source).record = None;
        self.builder.push(Step::If {
            condition: found,
            then,
            otherwise: nulls,
        });
        for (column, register) in columns.iter().zip(registers) {
            self.set_column(step.source, *column as usize, register);
        }
        Ok(())
    }

    fn emit_buffered(
        &mut self,
        step: &PlanStep,
        (buffer, columns): &(BufferId, Vec<u16>),
        body: RowSink<'_, 'a>,
    ) -> Result<()> {
        let values: Vec<Bound> = step
            .matches
            .iter()
            .map(|(_, _, value)| value.clone())
            .collect();
        let values = self.emit_row(&values)?;
        let mut matching = Vec::with_capacity(values.len());
        for ((column, class, _), value) in step.matches.iter().zip(values) {
            let place = columns.iter().position(|known| known == column);
            let column = place.ok_or_else(|| Error::internal("a copy lacks a column"))? as u16;
            matching.push(Match {
                column,
                value,
                class: *class,
            });
        }
        self.open_ir_loop();
        let row = self.declare_row(step, columns);
        let result = body(self);
        let body = self.close_ir_loop();
        let (matching, row) = (matching.into(), row.into());
        self.builder.push(Step::ForBuffer {
            buffer: *buffer,
            matching,
            row,
            body,
        });
        result
    }

    pub(super) fn not_null(&mut self, source: Reg) -> Reg {
        let target = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::IsNull {
            target,
            source,
            negated: true,
        });
        target
    }

    /// Runs `body` where all of `filters` hold. Those that cannot raise are one condition.
    pub(super) fn emit_filters(&mut self, filters: &[Bound], body: RowSink<'_, 'a>) -> Result<()> {
        let all: Vec<&Bound> = filters.iter().collect();
        self.prefetch(&all)?;
        let mut conditions = Vec::new();
        for group in filters.chunk_by(|one, next| !one.is_lazy() && !next.is_lazy()) {
            let filter = operators::all(group.to_vec());
            conditions.push(self.emit_condition(&filter)?);
            self.open();
        }
        let result = body(self);
        while let Some(condition) = conditions.pop() {
            let then = self.close();
            self.builder.push(Step::If {
                condition,
                then,
                otherwise: Vec::new(),
            });
        }
        result
    }
}

pub(super) fn types_of(bounds: &[Bound]) -> Vec<DataType> {
    bounds.iter().map(|bound| bound.data_type.clone()).collect()
}

/// The outputs, and after them those sort keys that are not among them; and the sort.
pub(super) fn with_sort_keys(
    outputs: &[Bound],
    order: &[OrderKey],
) -> Result<(Vec<Bound>, Vec<SortKey>)> {
    let mut columns = outputs.to_vec();
    let mut keys = Vec::with_capacity(order.len());
    for key in order {
        let column = columns
            .iter()
            .position(|known| *known == key.bound)
            .unwrap_or_else(|| {
                columns.push(key.bound.clone());
                columns.len() - 1
            });
        keys.push(sort_key(column, key)?);
    }
    Ok((columns, keys))
}
