//! Emitting aggregates, with GROUP BY and without.

use kiln_procedure::ir::{BufferId, Class, Comparison, Instruction, Reg, SortKey, Step};
use kiln_storage::error::Result;
use kiln_storage::types::DataType;

use super::aggregate::{Inputs, State};
use super::bound::{AggregateKind, Bound, BoundQuery, Grouping, Kind, OrderKey, Select};
use super::limit::Limits;
use super::produce::{OutputSink, types_of, with_sort_keys};
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
            .map(|(call, _)| self.aggregate_state(call, 0))
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
        let sorts = !query.order.is_empty() || select.distinct;
        if sorts && !select.row_functions.is_empty() {
            return self.emit_sorted_functions(query, select, &having, limits, sink);
        }
        self.start_limits(limits);
        let outside = self.depth;
        self.emit_filters(&having, &mut |compiler| {
            compiler.emit_output_functions(&select.row_functions, &mut |compiler| {
                compiler.within_limits(limits, outside, &mut |compiler| {
                    let row = compiler.emit_row(&select.outputs)?;
                    sink(compiler, &row)
                })
            })
        })
    }

    /// The rows that functions in the output give for the one row of aggregates, in order or
    /// without duplicates.
    fn emit_sorted_functions(
        &mut self,
        query: &BoundQuery,
        select: &Select,
        having: &[Bound],
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        let (columns, keys) = with_sort_keys(&select.outputs, &query.order)?;
        let distinct = match select.distinct {
            true => Some(self.start_distinct(&columns)?),
            false => None,
        };
        let buffer = match &distinct {
            Some((buffer, _)) => *buffer,
            None => self.start_buffer(columns.len()),
        };
        self.emit_filters(having, &mut |compiler| {
            compiler.emit_output_functions(&select.row_functions, &mut |compiler| {
                let row = compiler.emit_row(&columns)?;
                match &distinct {
                    Some((buffer, classes)) => {
                        compiler.push_distinct(*buffer, classes, &row);
                    }
                    None => {
                        let row = row.into();
                        compiler.builder.push(Step::BufferPush { buffer, row });
                    }
                }
                Ok(())
            })
        })?;
        self.sort(buffer, keys);
        let width = select.outputs.len();
        self.emit_buffer_rows(buffer, &types_of(&columns), limits, &mut |compiler, row| {
            sink(compiler, &row[..width])
        })
    }

    fn inputs(&mut self, call: &super::bound::AggregateCall) -> Result<Inputs> {
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
        let mut order = Vec::with_capacity(call.order.len());
        for key in &call.order {
            order.push(self.emit(&key.bound)?);
        }
        Ok(Inputs {
            argument,
            delimiter,
            filter: None,
            order,
            never_null,
            keys: Vec::new(),
        })
    }

    /// GROUP BY: rows with equal keys that follow each other are a run, and are aggregated as they
    /// come. Then the runs are sorted by their keys, and those with equal keys put together. Rows
    /// mostly come in the order of an index, so that there are few runs. Aggregates that cannot be
    /// put together have their rows sorted first: then a run is a group.
    fn emit_groups(
        &mut self,
        query: &BoundQuery,
        select: &Select,
        grouping: &Grouping,
        limits: &Limits,
        sink: OutputSink<'_, 'a>,
    ) -> Result<()> {
        let plan = self.plan(select, &[], false);
        let (rows, places) = columns_of(grouping);
        let (by, in_order) = group_sort(grouping, &query.order)?;
        let groups = if grouping.aggregates.iter().all(|(call, _)| call.combines()) {
            let run = self.start_run(grouping, &rows)?;
            let parts = self.parts_of(&run);
            let buffer = self.start_buffer(parts.len());
            self.emit_plan(&plan, &mut |compiler| {
                let row = compiler.emit_row(&rows)?;
                compiler.next_of_run(&run, &row, |compiler| compiler.push_parts(buffer, &run));
                compiler.aggregate_row(&run, grouping, &places, &row)
            })?;
            self.end_run(&run, |compiler| compiler.push_parts(buffer, &run));
            self.sort(buffer, by);
            self.collect_parts(grouping, &rows, buffer, &parts)?
        } else {
            let buffer = self.start_buffer(rows.len());
            self.emit_plan(&plan, &mut |compiler| {
                let row = compiler.emit_row(&rows)?.into();
                compiler.builder.push(Step::BufferPush { buffer, row });
                Ok(())
            })?;
            self.sort(buffer, by);
            self.collect_rows(grouping, &rows, &places, buffer)?
        };

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
        let functions = &select.row_functions;
        let mut each = |compiler: &mut Compiler<'a>| {
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
        };
        let result = self.emit_filters(&having, &mut |compiler| {
            compiler.emit_output_functions(functions, &mut each)
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

    fn start_buffer(&mut self, width: usize) -> BufferId {
        let buffer = self.builder.buffer(width);
        self.builder.push(Step::BufferClear { buffer });
        buffer
    }

    /// The registers of a run, before its first row.
    fn start_run(&mut self, grouping: &Grouping, rows: &[Bound]) -> Result<Run> {
        let started = self.builder.register(DataType::Boolean);
        self.set_truth(started, false);
        let mut keys = Vec::with_capacity(grouping.keys.len());
        for bound in &rows[..grouping.keys.len()] {
            let class = class_of_key(bound)?;
            let register = self.builder.register(bound.data_type.clone());
            self.builder
                .scalar(Instruction::SetNull { target: register });
            keys.push(RunKey {
                register,
                class,
                never_null: self.never_null(bound),
            });
        }
        let calls = grouping.aggregates.iter();
        let states: Vec<State> = calls
            .map(|(call, _)| self.aggregate_state(call, keys.len()))
            .collect();
        for state in &states {
            self.aggregate_start(state);
        }
        Ok(Run {
            started,
            keys,
            states,
        })
    }

    /// Before a row whose first columns are its keys: when these are others than the run's, ends
    /// that, which `push` puts away, and starts the next one.
    fn next_of_run(&mut self, run: &Run, row: &[Reg], push: impl FnOnce(&mut Self)) {
        let changes = self.builder.register(DataType::Boolean);
        self.set_truth(changes, true);
        self.open();
        let mut equals = Vec::with_capacity(run.keys.len());
        for (key, value) in run.keys.iter().zip(row) {
            let equal = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::Compare {
                op: match key.never_null {
                    true => Comparison::Equal,
                    false => Comparison::NotDistinct,
                },
                class: key.class,
                target: equal,
                left: key.register,
                right: *value,
            });
            equals.push(equal);
            self.open();
        }
        self.set_truth(changes, false);
        for condition in equals.into_iter().rev() {
            let then = self.close();
            self.builder.push(Step::If {
                condition,
                then,
                otherwise: Vec::new(),
            });
        }
        let then = self.close();
        self.builder.push(Step::If {
            condition: run.started,
            then,
            otherwise: Vec::new(),
        });
        self.open();
        self.end_run(run, push);
        for (key, value) in run.keys.iter().zip(row) {
            self.builder.scalar(Instruction::Move {
                target: key.register,
                source: *value,
            });
        }
        self.set_truth(run.started, true);
        for state in &run.states {
            self.aggregate_start(state);
        }
        let then = self.close();
        self.builder.push(Step::If {
            condition: changes,
            then,
            otherwise: Vec::new(),
        });
    }

    /// After the last row: `push` puts the run away, if there is one.
    fn end_run(&mut self, run: &Run, push: impl FnOnce(&mut Self)) {
        self.open();
        push(self);
        let then = self.close();
        self.builder.push(Step::If {
            condition: run.started,
            then,
            otherwise: Vec::new(),
        });
    }

    /// Aggregates a row of the run.
    fn aggregate_row(
        &mut self,
        run: &Run,
        grouping: &Grouping,
        places: &[Places],
        row: &[Reg],
    ) -> Result<()> {
        for (((call, _), state), places) in grouping.aggregates.iter().zip(&run.states).zip(places)
        {
            let argument = call.argument.as_ref();
            let never_null = argument.is_some_and(|bound| self.never_null(bound));
            let counts_rows = call.kind == AggregateKind::Count && never_null && !call.distinct;
            let argument = places.argument.filter(|_| !counts_rows);
            let keys = run.keys.iter().map(|key| (key.register, key.class));
            let inputs = Inputs {
                argument: argument.map(|place| row[place]),
                delimiter: places.delimiter.map(|place| row[place]),
                filter: places.filter.map(|place| row[place]),
                order: places.order.iter().map(|place| row[*place]).collect(),
                never_null,
                keys: keys.collect(),
            };
            self.aggregate_step(state, &inputs)?;
        }
        Ok(())
    }

    /// The types of what is kept of a run: its keys, and what its aggregates have accumulated.
    fn parts_of(&self, run: &Run) -> Vec<DataType> {
        let registers = run.registers();
        registers
            .map(|register| self.builder.type_of(register).clone())
            .collect()
    }

    fn push_parts(&mut self, buffer: BufferId, run: &Run) {
        let row = run.registers().collect();
        self.builder.push(Step::BufferPush { buffer, row });
    }

    fn push_group(&mut self, buffer: BufferId, run: &Run) {
        let mut row: Vec<Reg> = run.keys.iter().map(|key| key.register).collect();
        for state in &run.states {
            row.push(self.aggregate_result(state));
        }
        let row = row.into();
        self.builder.push(Step::BufferPush { buffer, row });
    }

    /// The buffer of the groups, with the types of its columns: the keys, then the aggregates.
    fn groups_of(&mut self, grouping: &Grouping, rows: &[Bound]) -> (BufferId, Vec<DataType>) {
        let mut types = types_of(&rows[..grouping.keys.len()]);
        let calls = grouping.aggregates.iter();
        types.extend(calls.map(|(call, _)| call.data_type.clone()));
        (self.start_buffer(types.len()), types)
    }

    /// Aggregates sorted rows.
    fn collect_rows(
        &mut self,
        grouping: &Grouping,
        rows: &[Bound],
        places: &[Places],
        buffer: BufferId,
    ) -> Result<(BufferId, Vec<DataType>)> {
        let (groups, types) = self.groups_of(grouping, rows);
        let run = self.start_run(grouping, rows)?;
        let row: Vec<Reg> = rows
            .iter()
            .map(|bound| self.builder.register(bound.data_type.clone()))
            .collect();
        self.open_ir_loop();
        self.next_of_run(&run, &row, |compiler| compiler.push_group(groups, &run));
        let result = self.aggregate_row(&run, grouping, places, &row);
        self.close_loop_over(buffer, row);
        self.end_run(&run, |compiler| compiler.push_group(groups, &run));
        result.map(|()| (groups, types))
    }

    /// Puts together sorted runs.
    fn collect_parts(
        &mut self,
        grouping: &Grouping,
        rows: &[Bound],
        buffer: BufferId,
        parts: &[DataType],
    ) -> Result<(BufferId, Vec<DataType>)> {
        let (groups, types) = self.groups_of(grouping, rows);
        let run = self.start_run(grouping, rows)?;
        let row: Vec<Reg> = parts
            .iter()
            .map(|data_type| self.builder.register(data_type.clone()))
            .collect();
        self.open_ir_loop();
        self.next_of_run(&run, &row, |compiler| compiler.push_group(groups, &run));
        let mut accumulated = row[run.keys.len()..].iter().copied();
        for state in &run.states {
            let count = state.registers().count();
            let registers: Vec<Reg> = accumulated.by_ref().take(count).collect();
            self.aggregate_merge(state, &registers);
        }
        self.close_loop_over(buffer, row);
        self.end_run(&run, |compiler| compiler.push_group(groups, &run));
        Ok((groups, types))
    }

    fn close_loop_over(&mut self, buffer: BufferId, row: Vec<Reg>) {
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: row.into(),
            body,
        });
    }
}

/// Rows with equal keys that follow each other, while they are aggregated.
struct Run {
    /// Whether there was a row.
    started: Reg,
    keys: Vec<RunKey>,
    states: Vec<State>,
}

struct RunKey {
    register: Reg,
    class: Class,
    never_null: bool,
}

impl Run {
    /// What is kept of it: its keys, and what its aggregates have accumulated.
    fn registers(&self) -> impl Iterator<Item = Reg> {
        let keys = self.keys.iter().map(|key| key.register);
        keys.chain(self.states.iter().flat_map(State::registers))
    }
}

/// The columns that an aggregate takes, by their position in a row.
struct Places {
    argument: Option<usize>,
    delimiter: Option<usize>,
    filter: Option<usize>,
    order: Vec<usize>,
}

/// The columns of a row to be grouped: the keys, then what the aggregates take; and where that is.
fn columns_of(grouping: &Grouping) -> (Vec<Bound>, Vec<Places>) {
    let mut columns: Vec<Bound> = grouping.keys.iter().map(|(key, _)| key.clone()).collect();
    let mut place = |bound: &Bound| {
        let known = columns.iter().position(|known| known == bound);
        known.unwrap_or_else(|| {
            columns.push(bound.clone());
            columns.len() - 1
        })
    };
    let calls = grouping.aggregates.iter();
    let places = calls.map(|(call, _)| Places {
        argument: call.argument.as_ref().map(&mut place),
        delimiter: call.delimiter.as_ref().map(&mut place),
        filter: call.filter.as_ref().map(&mut place),
        order: call.order.iter().map(|key| place(&key.bound)).collect(),
    });
    let places = places.collect();
    (columns, places)
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
            Some(column) => by.push(key_of(column, key)?),
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
        by.push(key_of(column, &key)?);
    }
    Ok((by, in_order))
}

/// By which the rows of groups are sorted. A key that depends on others may be of a type without an
/// order: any will do.
fn key_of(column: usize, key: &OrderKey) -> Result<SortKey> {
    Ok(SortKey {
        column: column as u16,
        class: class_of_key(&key.bound)?,
        descending: key.descending,
        nulls_first: key.nulls_first,
    })
}

fn class_of_key(bound: &Bound) -> Result<Class> {
    let class = Class::of(&bound.data_type);
    class.ok_or_else(|| unsupported(format!("GROUP BY of {}", bound.data_type), bound.position))
}
