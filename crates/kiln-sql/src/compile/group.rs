//! Emitting aggregates, with GROUP BY and without.

use kiln_procedure::ir::{BufferId, Class, Comparison, Instruction, Reg, SortKey, Step};
use kiln_storage::error::Result;
use kiln_storage::types::{DataType, Value};

use super::aggregate::{AggregateKind, Inputs, State};
use super::bound::{Bound, Kind};
use super::limit::Limits;
use super::produce::{OutputSink, types_of, with_sort_keys};
use super::query::{BoundQuery, OrderKey, sort_key};
use super::select::{Grouping, Select};
use super::{Compiler, unsupported};

impl<'a> Compiler<'a> {
    pub(super) fn emit_grouped(
        &mut self,
        query: &BoundQuery,
        select: &Select,
        grouping: &Grouping,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        if !grouping.keys.is_empty() {
            return self.emit_groups(query, select, grouping, limits, sink);
        }
        // One minimum or maximum of an index's next column is its first entry.
        let wanted = extreme_order(grouping);
        let plan = self.plan(select, wanted.as_slice(), wanted.is_some());
        let first_only = wanted.is_some() && plan.ordered && plan.steps.len() == 1;
        let plan = if wanted.is_some() && !first_only {
            self.plan(select, &[], false)
        } else {
            plan
        };
        let states: Vec<State> = grouping
            .aggregates
            .iter()
            .map(|(call, _)| self.aggregate_state(call))
            .collect();
        for state in &states {
            self.aggregate_start(state);
        }
        let outside = self.depth;
        self.emit_plan(&plan, &mut |compiler| {
            let mut needed: Vec<&Bound> = Vec::new();
            for (call, _) in &grouping.aggregates {
                needed.extend(call.operands());
            }
            compiler.prefetch(&needed)?;
            for ((call, _), state) in grouping.aggregates.iter().zip(&states) {
                let filter = match &call.filter {
                    Some(filter) => Some(compiler.emit_condition(filter)?),
                    None => None,
                };
                // With a filter the arguments are computed only where it holds.
                if let Some(condition) = filter {
                    compiler.open();
                    let inputs = compiler.inputs(call)?;
                    compiler.aggregate_step(state, &inputs)?;
                    let then = compiler.close();
                    compiler.builder.push(Step::If {
                        condition,
                        then,
                        otherwise: Vec::new(),
                    });
                    continue;
                }
                let inputs = compiler.inputs(call)?;
                compiler.aggregate_step(state, &inputs)?;
                if first_only && let Some(argument) = inputs.argument {
                    if inputs.never_null {
                        compiler.leave(outside);
                    } else {
                        let condition = compiler.not_null(argument);
                        compiler.open();
                        compiler.leave(outside);
                        let then = compiler.close();
                        compiler.builder.push(Step::If {
                            condition,
                            then,
                            otherwise: Vec::new(),
                        });
                    }
                }
            }
            Ok(())
        })?;
        for ((_, slot), state) in grouping.aggregates.iter().zip(&states) {
            let register = self.aggregate_result(state);
            self.slots.insert(*slot, register);
        }
        let having: Vec<Bound> = grouping.having.iter().cloned().collect();
        self.start_limits(limits);
        let outside = self.depth;
        self.emit_filters(&having, &mut |compiler| {
            compiler.within_limits(limits, outside, &mut |compiler| {
                let row = compiler.emit_row(&select.outputs)?;
                sink(compiler, &row)
            })
        })
    }

    fn inputs(&mut self, call: &super::aggregate::AggregateCall) -> Result<Inputs> {
        let never_null = call
            .argument
            .as_ref()
            .is_some_and(|bound| self.never_null(bound));
        // A count of what is never NULL counts rows.
        let counts_rows = call.kind == AggregateKind::Count && never_null && !call.distinct;
        let argument = match &call.argument {
            Some(bound) if !counts_rows => Some(self.emit(bound)?),
            _ => None,
        };
        let delimiter = match &call.delimiter {
            Some(bound) => Some(self.emit(bound)?),
            None => None,
        };
        Ok(Inputs {
            argument,
            delimiter,
            filter: None,
            never_null,
        })
    }

    /// GROUP BY: the rows are sorted by their keys, and each run of equal keys is a group.
    fn emit_groups(
        &mut self,
        query: &BoundQuery,
        select: &Select,
        grouping: &Grouping,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        let plan = self.plan(select, &[], false);
        // The columns of a row: the keys, then what the aggregates take.
        let mut columns: Vec<Bound> = grouping.keys.iter().map(|(key, _)| key.clone()).collect();
        let place = |columns: &mut Vec<Bound>, bound: &Bound| {
            columns
                .iter()
                .position(|known| known == bound)
                .unwrap_or_else(|| {
                    columns.push(bound.clone());
                    columns.len() - 1
                })
        };
        let mut places = Vec::with_capacity(grouping.aggregates.len());
        for (call, _) in &grouping.aggregates {
            let argument = call
                .argument
                .as_ref()
                .map(|bound| place(&mut columns, bound));
            let delimiter = call
                .delimiter
                .as_ref()
                .map(|bound| place(&mut columns, bound));
            let filter = call.filter.as_ref().map(|bound| place(&mut columns, bound));
            places.push((argument, delimiter, filter));
        }
        let rows = self.builder.buffer(columns.len());
        self.builder.push(Step::BufferClear { buffer: rows });
        self.emit_plan(&plan, &mut |compiler| {
            let row = compiler.emit_row(&columns)?;
            compiler.builder.push(Step::BufferPush {
                buffer: rows,
                row: row.into(),
            });
            Ok(())
        })?;
        let (by, in_order) = group_sort(grouping, &query.order)?;
        self.sort(rows, by);
        let groups = self.collect_groups(grouping, &columns, &places, rows)?;

        // The groups, in the order of their keys.
        let sorts = !query.order.is_empty() && !in_order;
        let mut slots = Vec::with_capacity(groups.1.len());
        let numbers = grouping
            .keys
            .iter()
            .map(|(_, slot)| *slot)
            .chain(grouping.aggregates.iter().map(|(_, slot)| *slot));
        for (slot, data_type) in numbers.zip(&groups.1) {
            let register = self.builder.register(data_type.clone());
            self.slots.insert(slot, register);
            slots.push(register);
        }
        let having: Vec<Bound> = grouping.having.iter().cloned().collect();
        let outside = self.depth;
        if !sorts {
            self.start_limits(limits);
        }
        let (output_columns, keys) = with_sort_keys(&select.outputs, &query.order)?;
        let outputs = if sorts {
            &output_columns
        } else {
            &select.outputs
        };
        let seen = if select.distinct {
            Some(self.start_distinct(outputs)?)
        } else {
            None
        };
        let sorted = sorts.then(|| {
            let buffer = self.builder.buffer(outputs.len());
            self.builder.push(Step::BufferClear { buffer });
            buffer
        });
        self.open_ir_loop();
        let result = self.emit_filters(&having, &mut |compiler| {
            let row = compiler.emit_row(outputs)?;
            let mut emit = |compiler: &mut Compiler<'a>| match sorted {
                Some(buffer) => {
                    let row = row.as_slice().into();
                    compiler.builder.push(Step::BufferPush { buffer, row });
                    Ok(())
                }
                None => {
                    compiler.within_limits(limits, outside, &mut |compiler| sink(compiler, &row))
                }
            };
            let Some((buffer, classes)) = &seen else {
                return emit(compiler);
            };
            let condition = compiler.push_distinct(*buffer, classes, &row);
            compiler.open();
            let result = emit(compiler);
            let then = compiler.close();
            compiler.builder.push(Step::If {
                condition,
                then,
                otherwise: Vec::new(),
            });
            result
        });
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: groups.0,
            matching: Box::default(),
            row: slots.into(),
            body,
        });
        result?;
        let Some(buffer) = sorted else { return Ok(()) };
        self.sort(buffer, keys);
        let width = select.outputs.len();
        let types = types_of(&output_columns);
        self.emit_buffer_rows(buffer, &types, limits, &mut |compiler, row| {
            sink(compiler, &row[..width])
        })
    }

    /// Aggregates each run of equal keys of `rows` into a row of the buffer that is returned: the
    /// keys, then the aggregates.
    fn collect_groups(
        &mut self,
        grouping: &Grouping,
        columns: &[Bound],
        places: &[(Option<usize>, Option<usize>, Option<usize>)],
        rows: BufferId,
    ) -> Result<(BufferId, Vec<DataType>)> {
        let mut types = types_of(&columns[..grouping.keys.len()]);
        types.extend(
            grouping
                .aggregates
                .iter()
                .map(|(call, _)| call.data_type.clone()),
        );
        let groups = self.builder.buffer(types.len());
        self.builder.push(Step::BufferClear { buffer: groups });
        let keys: Vec<Reg> = types[..grouping.keys.len()]
            .iter()
            .map(|data_type| self.builder.register(data_type.clone()))
            .collect();
        let states: Vec<State> = grouping
            .aggregates
            .iter()
            .map(|(call, _)| self.aggregate_state(call))
            .collect();
        let started = self.builder.register(DataType::Boolean);
        let source = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(false));
        self.builder.scalar(Instruction::Move {
            target: started,
            source,
        });
        for key in &keys {
            self.builder.scalar(Instruction::SetNull { target: *key });
        }
        for state in &states {
            self.aggregate_start(state);
        }
        let row: Vec<Reg> = columns
            .iter()
            .map(|bound| self.builder.register(bound.data_type.clone()))
            .collect();
        self.open_ir_loop();
        let mut same = started;
        for (key, (value, bound)) in keys.iter().zip(row.iter().zip(columns)) {
            let class = Class::of(&bound.data_type)
                .ok_or_else(|| unsupported("GROUP BY of arrays", bound.position))?;
            let equal = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::Compare {
                op: Comparison::NotDistinct,
                class,
                target: equal,
                left: *key,
                right: *value,
            });
            let both = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::And {
                target: both,
                left: same,
                right: equal,
            });
            same = both;
        }
        self.open();
        self.open();
        self.push_group(groups, &keys, &states);
        let then = self.close();
        self.builder.push(Step::If {
            condition: started,
            then,
            otherwise: Vec::new(),
        });
        for (key, value) in keys.iter().zip(&row) {
            self.builder.scalar(Instruction::Move {
                target: *key,
                source: *value,
            });
        }
        let source = self
            .builder
            .constant(DataType::Boolean, Value::Boolean(true));
        self.builder.scalar(Instruction::Move {
            target: started,
            source,
        });
        for state in &states {
            self.aggregate_start(state);
        }
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition: same,
            then: Vec::new(),
            otherwise,
        });
        for (((call, _), state), (argument, delimiter, filter)) in
            grouping.aggregates.iter().zip(&states).zip(places)
        {
            let never_null = call
                .argument
                .as_ref()
                .is_some_and(|bound| self.never_null(bound));
            let counts_rows = call.kind == AggregateKind::Count && never_null && !call.distinct;
            let inputs = Inputs {
                argument: argument.filter(|_| !counts_rows).map(|place| row[place]),
                delimiter: delimiter.map(|place| row[place]),
                filter: filter.map(|place| row[place]),
                never_null,
            };
            self.aggregate_step(state, &inputs)?;
        }
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer: rows,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        self.open();
        self.push_group(groups, &keys, &states);
        let then = self.close();
        self.builder.push(Step::If {
            condition: started,
            then,
            otherwise: Vec::new(),
        });
        Ok((groups, types))
    }

    fn push_group(&mut self, groups: BufferId, keys: &[Reg], states: &[State]) {
        let mut row = keys.to_vec();
        for state in states {
            row.push(self.aggregate_result(state));
        }
        self.builder.push(Step::BufferPush {
            buffer: groups,
            row: row.into(),
        });
    }
}

/// The order in which the one minimum or maximum of a query comes first.
fn extreme_order(grouping: &Grouping) -> Option<OrderKey> {
    let [(call, _)] = grouping.aggregates.as_slice() else {
        return None;
    };
    let descending = match call.kind {
        AggregateKind::Minimum => false,
        AggregateKind::Maximum => true,
        _ => return None,
    };
    if call.filter.is_some() {
        return None;
    }
    let bound = call.argument.clone()?;
    matches!(bound.kind, Kind::Column { .. }).then_some(OrderKey {
        bound,
        descending,
        nulls_first: descending,
    })
}

/// How the rows are sorted for grouping: by the wanted order if its keys are all group keys, which
/// the flag says, and by the other keys after.
fn group_sort(grouping: &Grouping, order: &[OrderKey]) -> Result<(Vec<SortKey>, bool)> {
    let mut by = Vec::with_capacity(grouping.keys.len());
    let mut in_order = true;
    for key in order {
        let column = match key.bound.kind {
            Kind::Slot(slot) => grouping.keys.iter().position(|(_, number)| *number == slot),
            _ => None,
        };
        match column {
            Some(column) => by.push(sort_key(column, key)?),
            None => {
                in_order = false;
                by.clear();
                break;
            }
        }
    }
    for (column, (bound, _)) in grouping.keys.iter().enumerate() {
        if by.iter().any(|key: &SortKey| key.column == column as u16) {
            continue;
        }
        let key = OrderKey {
            bound: bound.clone(),
            descending: false,
            nulls_first: false,
        };
        by.push(sort_key(column, &key)?);
    }
    Ok((by, in_order))
}
