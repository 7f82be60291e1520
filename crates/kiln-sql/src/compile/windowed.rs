//! Window functions: emitting.
//!
//! The rows are sorted by a window's partition and order, and visited one after the other. What a
//! call looks at is known by positions: where the partition begins and ends, the rows that are
//! equal in the order, the frame. An aggregate whose frame begins with the partition goes on from
//! row to row, and so do those that `sliding` is about; others are computed anew for each.

use kiln_procedure::ir::{Arithmetic, Comparison, Instruction, Reg, SortKey, Step, Width};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;

use super::Compiler;
use super::bound::{Definition, PlacedCall, WindowFunction, Windowed};
use super::framed::{Neighbours, Place, Pointers, Rows, failure};
use super::limit::Limits;
use super::order::{Needs, class_in};
use super::query::QueryOptions;
use super::sliding::Accumulation;

impl Compiler<'_> {
    /// Emits rows with the results of window functions.
    pub(super) fn emit_windowed(
        &mut self,
        windowed: &Windowed,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let offsets = self.emit_offsets(&windowed.offsets)?;
        let columns = windowed.input.columns.iter();
        let mut rows = Rows {
            types: columns.map(|column| column.data_type.clone()).collect(),
            buffer: self.builder.buffer(windowed.input.columns.len()),
        };
        let buffer = rows.buffer;
        self.builder.push(Step::BufferClear { buffer });
        self.emit_query(
            &windowed.input,
            QueryOptions::default(),
            &mut |compiler, row| {
                let row = row.into();
                compiler.builder.push(Step::BufferPush { buffer, row });
                Ok(())
            },
        )?;
        // The results come in the order of the definitions, and are wanted in that of the calls.
        let mut places = Vec::new();
        for definition in &windowed.definitions {
            let first = rows.types.len();
            rows = self.add_results(&rows, definition, &offsets)?;
            for (offset, call) in definition.calls.iter().enumerate() {
                places.push((call.result, first + offset));
            }
        }
        places.sort_unstable();
        let base = windowed.input.columns.len();
        let Rows { buffer, types } = rows;
        self.emit_buffer_rows(buffer, &types, &Limits::default(), &mut |compiler, row| {
            let mut output = row[..base].to_vec();
            output.extend(places.iter().map(|(_, neighbours)| row[*neighbours]));
            sink(compiler, &output)
        })
    }

    /// The rows with the results of the calls of one definition behind their columns.
    fn add_results(
        &mut self,
        rows: &Rows,
        definition: &Definition,
        offsets: &[Reg],
    ) -> Result<Rows> {
        self.sort(rows.buffer, sort_keys(rows, definition)?);
        let mut types = rows.types.clone();
        types.extend(definition.calls.iter().map(|call| call.data_type.clone()));
        let results = Rows {
            buffer: self.builder.buffer(types.len()),
            types,
        };
        let buffer = results.buffer;
        self.builder.push(Step::BufferClear { buffer });
        let count = self.builder.register(DataType::BigInt);
        self.builder.push(Step::BufferCount {
            buffer: rows.buffer,
            target: count,
        });
        let neighbours = Neighbours {
            at: self.builder.register(DataType::BigInt),
            first: self.zero(),
            last: self.zero(),
            first_peer: self.zero(),
            last_peer: self.zero(),
            distinct: self.zero(),
        };
        let accumulations = self.accumulations(definition);
        let calls = definition.calls.iter();
        let pointers: Vec<Pointers> = calls.map(|call| self.pointers(call, offsets)).collect();
        let one = self.number(1);
        self.open_ir_loop();
        let row = self.read_row(rows, neighbours.at);
        let place = Place {
            rows,
            definition,
            row: &row,
            neighbours,
        };
        self.find_partition(place, count, &accumulations, &pointers)?;
        self.find_peers(rows, definition, &row, neighbours)?;
        let mut output = row.clone();
        let mut result = Ok(());
        for (call, pointers) in definition.calls.iter().zip(pointers) {
            let accumulation = accumulations
                .iter()
                .find(|one| std::ptr::eq(one.call, call));
            match self.emit_call(call, place, pointers, accumulation) {
                Ok(register) => output.push(register),
                Err(error) => result = Err(error),
            }
        }
        if result.is_ok() {
            let row = output.into();
            self.builder.push(Step::BufferPush { buffer, row });
        }
        let body = self.close_ir_loop();
        self.builder.push(Step::ForRange {
            variable: neighbours.at,
            first: one,
            last: count,
            step: one,
            reverse: false,
            body,
        });
        result.map(|()| results)
    }

    fn accumulations<'c>(&mut self, definition: &'c Definition) -> Vec<Accumulation<'c>> {
        let mut accumulations = Vec::new();
        for call in &definition.calls {
            if let WindowFunction::Aggregate(aggregate) = &call.call.function {
                let state = self.aggregate_state(aggregate, 0);
                self.aggregate_start(&state);
                accumulations.push(Accumulation {
                    call,
                    state,
                    done: self.zero(),
                    sliding: self.sliding(call),
                });
            }
        }
        accumulations
    }

    /// New registers with the row at a position.
    pub(super) fn read_row(&mut self, rows: &Rows, at: Reg) -> Vec<Reg> {
        let types = rows.types.iter();
        let row: Vec<Reg> = types
            .map(|data_type| self.builder.register(data_type.clone()))
            .collect();
        self.builder.push(Step::BufferRow {
            buffer: rows.buffer,
            at,
            row: row.as_slice().into(),
        });
        row
    }

    /// Where a new partition begins, finds its end, and starts anew what is accumulated.
    fn find_partition(
        &mut self,
        place: Place<'_>,
        count: Reg,
        accumulations: &[Accumulation<'_>],
        pointers: &[Pointers],
    ) -> Result<()> {
        let Place {
            rows,
            definition,
            row,
            neighbours,
        } = place;
        let is_new = self.compared(Comparison::Greater, neighbours.at, neighbours.last);
        self.open();
        self.set(neighbours.first, neighbours.at);
        let zero = self.number(0);
        self.set(neighbours.distinct, zero);
        let result = self.run_to_last(
            rows,
            &definition.partition,
            row,
            neighbours.at,
            neighbours.last,
            count,
        );
        let one = self.number(1);
        self.computed_into(
            Arithmetic::Subtract,
            neighbours.last_peer,
            neighbours.at,
            one,
        );
        for accumulation in accumulations {
            self.aggregate_start(&accumulation.state);
            self.set(accumulation.done, neighbours.last_peer);
            if let Some(sliding) = &accumulation.sliding {
                self.reset_sliding(sliding, neighbours.last_peer);
            }
        }
        for pointers in pointers {
            self.reset_pointers(*pointers, neighbours.first);
        }
        self.close_if(is_new);
        result
    }

    /// Where rows begin that are equal in the order, finds the last of them.
    fn find_peers(
        &mut self,
        rows: &Rows,
        definition: &Definition,
        row: &[Reg],
        neighbours: Neighbours,
    ) -> Result<()> {
        let is_new = self.compared(Comparison::Greater, neighbours.at, neighbours.last_peer);
        self.open();
        self.set(neighbours.first_peer, neighbours.at);
        self.increment(neighbours.distinct);
        let keys: Vec<usize> = definition.order.iter().map(|(key, ..)| *key).collect();
        let result = self.run_to_last(
            rows,
            &keys,
            row,
            neighbours.at,
            neighbours.last_peer,
            neighbours.last,
        );
        self.close_if(is_new);
        result
    }

    /// Sets `last` to the last row from `at` to `end` that has the values of `row` in `keys`.
    pub(super) fn run_to_last(
        &mut self,
        rows: &Rows,
        keys: &[usize],
        row: &[Reg],
        at: Reg,
        last: Reg,
        end: Reg,
    ) -> Result<()> {
        if keys.is_empty() {
            self.set(last, end);
            return Ok(());
        }
        self.set(last, at);
        let one = self.number(1);
        let next = self.builder.register(DataType::BigInt);
        self.open_ir_loop();
        self.computed_into(Arithmetic::Add, next, last, one);
        let is_behind = self.compared(Comparison::Greater, next, end);
        self.exit_if(is_behind);
        let other = self.read_row(rows, next);
        let mut result = Ok(());
        for key in keys {
            let class = match class_in("a window", Needs::Equality, &rows.types[*key], None) {
                Ok(class) => class,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            let differs = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::Compare {
                op: Comparison::Distinct,
                class,
                target: differs,
                left: row[*key],
                right: other[*key],
            });
            self.exit_if(differs);
        }
        self.set(last, next);
        self.close_endless();
        result
    }

    /// The result of a call for a row.
    fn emit_call(
        &mut self,
        call: &PlacedCall,
        place: Place<'_>,
        pointers: Pointers,
        accumulation: Option<&Accumulation<'_>>,
    ) -> Result<Reg> {
        let Place {
            rows,
            row,
            neighbours,
            ..
        } = place;
        let argument = |at: usize| row[call.arguments[at]];
        Ok(match &call.call.function {
            WindowFunction::RowNumber => self.length(neighbours.first, neighbours.at),
            WindowFunction::Rank => self.length(neighbours.first, neighbours.first_peer),
            WindowFunction::DenseRank => {
                let result = self.builder.register(DataType::BigInt);
                self.set(result, neighbours.distinct);
                result
            }
            WindowFunction::PercentRank => {
                let before = self.computed(
                    Arithmetic::Subtract,
                    neighbours.first_peer,
                    neighbours.first,
                );
                let others = self.computed(Arithmetic::Subtract, neighbours.last, neighbours.first);
                let one = self.number(1);
                let none = self.compared(Comparison::Less, others, one);
                self.open();
                self.set(others, one);
                self.close_if(none);
                self.ratio(before, others)
            }
            WindowFunction::CumeDist => {
                let up_to = self.length(neighbours.first, neighbours.last_peer);
                let all = self.length(neighbours.first, neighbours.last);
                self.ratio(up_to, all)
            }
            WindowFunction::Ntile => self.ntile(argument(0), neighbours),
            WindowFunction::Lag => {
                let at = self.computed(Arithmetic::Subtract, neighbours.at, argument(1));
                self.shifted(rows, call, at, argument(2), neighbours)
            }
            WindowFunction::Lead => {
                let at = self.computed(Arithmetic::Add, neighbours.at, argument(1));
                self.shifted(rows, call, at, argument(2), neighbours)
            }
            WindowFunction::FirstValue => {
                let frame = self.frame(call, place, pointers)?;
                let at = self.skip_from_start(call, frame.0, frame, neighbours);
                self.value_of_frame(rows, call, at, frame, neighbours)
            }
            WindowFunction::LastValue => {
                let frame = self.frame(call, place, pointers)?;
                let at = self.skip_from_end(call, frame, neighbours);
                self.value_of_frame(rows, call, at, frame, neighbours)
            }
            WindowFunction::NthValue => {
                let number = argument(1);
                self.require_positive(
                    number,
                    SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE_FUNCTION,
                    "argument of nth_value must be greater than zero",
                );
                let frame = self.frame(call, place, pointers)?;
                let at = self.computed(Arithmetic::Add, frame.0, number);
                let one = self.number(1);
                let at = self.computed(Arithmetic::Subtract, at, one);
                let at = self.skip_from_start(call, at, frame, neighbours);
                self.value_of_frame(rows, call, at, frame, neighbours)
            }
            WindowFunction::Aggregate(_) => {
                let (first, last) = self.frame(call, place, pointers)?;
                let Some(accumulation) = accumulation else {
                    return Ok(row[0]);
                };
                let value = match &accumulation.sliding {
                    Some(sliding) => self.slide_to(rows, accumulation, sliding, first, last)?,
                    None => {
                        if !accumulation.goes_on() {
                            self.aggregate_start(&accumulation.state);
                            let one = self.number(1);
                            let done = accumulation.done;
                            self.computed_into(Arithmetic::Subtract, done, first, one);
                        }
                        self.take_in(rows, accumulation, last, Some(neighbours))?;
                        self.aggregate_result(&accumulation.state)
                    }
                };
                let result = self.builder.register(call.data_type.clone());
                self.set(result, value);
                result
            }
        })
    }

    /// Takes in the rows up to the last of a frame, but for those that it excludes.
    pub(super) fn take_in(
        &mut self,
        rows: &Rows,
        accumulation: &Accumulation<'_>,
        last: Reg,
        neighbours: Option<Neighbours>,
    ) -> Result<()> {
        let Accumulation {
            call, state, done, ..
        } = accumulation;
        self.open_ir_loop();
        let is_done = self.compared(Comparison::GreaterOrEqual, *done, last);
        self.exit_if(is_done);
        self.increment(*done);
        let excluded = neighbours.and_then(|known| self.is_excluded(call, *done, known));
        self.open();
        let row = self.read_row(rows, *done);
        let result = self.aggregate_step(state, &accumulation.inputs(&row));
        match excluded {
            Some(excluded) => self.close_unless(excluded),
            None => {
                for step in self.close() {
                    self.builder.push(step);
                }
            }
        }
        self.close_endless();
        result
    }

    /// The first argument of the row at a position of a frame, NULL where that is none of its rows.
    fn value_of_frame(
        &mut self,
        rows: &Rows,
        call: &PlacedCall,
        at: Reg,
        (first, last): (Reg, Reg),
        neighbours: Neighbours,
    ) -> Reg {
        let result = self.value_within(rows, call, at, first, last);
        if let Some(excluded) = self.is_excluded(call, at, neighbours) {
            self.open();
            self.builder.scalar(Instruction::SetNull { target: result });
            self.close_if(excluded);
        }
        result
    }

    /// The first argument of the row at a position within a frame, else NULL.
    fn value_within(
        &mut self,
        rows: &Rows,
        call: &PlacedCall,
        at: Reg,
        first: Reg,
        last: Reg,
    ) -> Reg {
        let result = self.builder.register(call.data_type.clone());
        self.builder.scalar(Instruction::SetNull { target: result });
        let is_within = self.is_within(at, first, last);
        self.open();
        let row = self.read_row(rows, at);
        self.set(result, row[call.arguments[0]]);
        self.close_if(is_within);
        result
    }

    /// The first argument of another row of the partition, `otherwise` where there is none, and
    /// NULL without a position.
    fn shifted(
        &mut self,
        rows: &Rows,
        call: &PlacedCall,
        at: Reg,
        otherwise: Reg,
        neighbours: Neighbours,
    ) -> Reg {
        let result = self.value_within(rows, call, at, neighbours.first, neighbours.last);
        let is_within = self.is_within(at, neighbours.first, neighbours.last);
        let is_known = self.not_null(at);
        self.open();
        self.open();
        self.set(result, otherwise);
        self.close_unless(is_within);
        self.close_if(is_known);
        result
    }

    /// In which of `buckets` stretches of the partition the row is; those that are a row longer
    /// come first.
    fn ntile(&mut self, buckets: Reg, neighbours: Neighbours) -> Reg {
        self.require_positive(
            buckets,
            SqlState::INVALID_ARGUMENT_FOR_NTILE_FUNCTION,
            "argument of ntile must be greater than zero",
        );
        let one = self.number(1);
        let rows = self.length(neighbours.first, neighbours.last);
        let before = self.computed(Arithmetic::Subtract, neighbours.at, neighbours.first);
        let short = self.computed(Arithmetic::Divide, rows, buckets);
        let longer = self.computed(Arithmetic::Remainder, rows, buckets);
        let long = self.computed(Arithmetic::Add, short, one);
        let in_long = self.computed(Arithmetic::Multiply, long, longer);
        let bucket = self.builder.register(DataType::BigInt);
        let is_long = self.compared(Comparison::Less, before, in_long);
        self.open();
        self.computed_into(Arithmetic::Divide, bucket, before, long);
        let then = self.close();
        self.open();
        // NULL where there are no buckets.
        let rest = self.computed(Arithmetic::Subtract, before, in_long);
        let rest = self.computed(Arithmetic::Divide, rest, short);
        self.computed_into(Arithmetic::Add, bucket, rest, longer);
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition: is_long,
            then,
            otherwise,
        });
        let result = self.builder.register(DataType::Integer);
        self.builder.scalar(Instruction::Integer {
            op: Arithmetic::Add,
            width: Width::Four,
            target: result,
            left: bucket,
            right: one,
        });
        result
    }

    fn require_positive(&mut self, number: Reg, state: SqlState, message: &str) {
        let zero = self.number(0);
        let condition = self.compared(Comparison::Greater, number, zero);
        self.builder.scalar(Instruction::Require {
            condition,
            null_fails: false,
            error: failure(state, message.to_owned()),
        });
    }

    /// How many rows there are from one to another.
    pub(super) fn length(&mut self, first: Reg, last: Reg) -> Reg {
        let distance = self.computed(Arithmetic::Subtract, last, first);
        self.increment(distance);
        distance
    }

    fn ratio(&mut self, dividend: Reg, divisor: Reg) -> Reg {
        let as_double = |compiler: &mut Self, source: Reg| {
            let target = compiler.builder.register(DataType::Double);
            let convert = Instruction::IntegerToDouble { target, source };
            compiler.builder.scalar(convert);
            target
        };
        let (left, right) = (as_double(self, dividend), as_double(self, divisor));
        let target = self.builder.register(DataType::Double);
        self.builder.scalar(Instruction::Double {
            op: Arithmetic::Divide,
            target,
            left,
            right,
        });
        target
    }

    pub(super) fn computed(&mut self, op: Arithmetic, left: Reg, right: Reg) -> Reg {
        let target = self.builder.register(DataType::BigInt);
        self.computed_into(op, target, left, right);
        target
    }

    pub(super) fn computed_into(&mut self, op: Arithmetic, target: Reg, left: Reg, right: Reg) {
        self.builder.scalar(Instruction::Integer {
            op,
            width: Width::Eight,
            target,
            left,
            right,
        });
    }

    /// Closes a loop that only EXIT ends.
    pub(super) fn close_endless(&mut self) {
        let body = self.close_ir_loop();
        self.builder.push(Step::Loop {
            before: Vec::new(),
            condition: None,
            body,
        });
    }
}

/// How the rows are sorted for the calls of a definition.
fn sort_keys(rows: &Rows, definition: &Definition) -> Result<Vec<SortKey>> {
    let partition = definition.partition.iter().map(|key| (*key, false, false));
    let keys = partition.chain(definition.order.iter().copied());
    keys.map(|(column, descending, nulls_first)| {
        Ok(SortKey {
            column: column as u16,
            class: class_in("a window", Needs::Order, &rows.types[column], None)?,
            descending,
            nulls_first,
        })
    })
    .collect()
}
