//! Aggregate functions: what they take, how they accumulate, what they give.

use kiln_procedure::ir::{Arithmetic, BufferId, Class, Comparison, Instruction, Reg, Step, Width};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{CatalogType, DataType, Decimal, Interval, Value};

use super::bound::{AggregateCall, AggregateKind, Bound, Kind, OrderKey};
use super::coerce::{CastContext, coerce};
use super::functions::{regression, statistics};
use super::order::{Needs, class_in};
use super::{Compiler, Position, fail, functions, unsupported};

/// What a call of an aggregate says beside its arguments.
pub(super) struct Clauses {
    pub is_star: bool,
    pub distinct: bool,
    pub filter: Option<Bound>,
    pub order: Vec<OrderKey>,
    /// The number of the level whose rows it is over.
    pub level: usize,
}

/// Binds a call of an aggregate.
///
/// # Errors
/// 42883 when the aggregate does not take such arguments.
pub(super) fn call(
    kind: AggregateKind,
    name: &str,
    mut arguments: Vec<Bound>,
    clauses: Clauses,
    position: Position,
) -> Result<Bound> {
    let Clauses {
        is_star,
        distinct,
        filter,
        order,
        level,
    } = clauses;
    let undefined = |arguments: &[Bound]| {
        let types: Vec<String> = arguments.iter().map(Bound::type_name).collect();
        fail(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {name}({}) does not exist", types.join(", ")),
            position,
        )
        .with_hint(
            "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
        )
    };
    let wanted = match kind {
        _ if is_star => 0,
        _ if kind.takes_two() => 2,
        _ => 1,
    };
    if kind == AggregateKind::Count && !is_star && arguments.is_empty() {
        return Err(fail(
            SqlState::WRONG_OBJECT_TYPE,
            "count(*) must be used to call a parameterless aggregate function",
            position,
        ));
    }
    if arguments.len() != wanted {
        return Err(undefined(&arguments));
    }
    if let AggregateKind::Pairs(_) = kind {
        let is_number = |bound: &Bound| bound.is_unknown() || bound.data_type.is_number();
        if !arguments.iter().all(is_number) {
            return Err(undefined(&arguments));
        }
        if distinct {
            return Err(unsupported("DISTINCT in an aggregate of pairs", position));
        }
        let double = |bound: Bound| coerce(bound, &DataType::Double, CastContext::Implicit);
        arguments = arguments.into_iter().map(double).collect::<Result<_>>()?;
    }
    let delimiter = match kind.takes_two() {
        true => arguments.pop(),
        false => None,
    };
    let argument = arguments.pop();
    let argument = match argument {
        Some(bound) if bound.is_unknown() => match kind {
            AggregateKind::Sum | AggregateKind::Average | AggregateKind::Bits(_) => {
                let message = format!("function {name}(unknown) is not unique");
                let hint = "Could not choose a best candidate function. You might need to add \
                            explicit type casts.";
                let error = fail(SqlState::AMBIGUOUS_FUNCTION, message, position);
                return Err(error.with_hint(hint));
            }
            AggregateKind::Deviation(_) => {
                Some(coerce(bound, &DataType::Double, CastContext::Implicit)?)
            }
            AggregateKind::BoolAnd | AggregateKind::BoolOr => {
                Some(coerce(bound, &DataType::Boolean, CastContext::Implicit)?)
            }
            AggregateKind::Count if let Kind::Parameter(parameter) = &bound.kind => {
                // Any type would do, so that none is decided.
                parameter.leave_undecided(bound.position);
                Some(Bound::null(DataType::Text, bound.position))
            }
            _ => Some(coerce(bound, &DataType::Text, CastContext::Implicit)?),
        },
        other => other,
    };
    let data_type = match (kind, argument.as_ref().map(|bound| bound.data_type.clone())) {
        (AggregateKind::Count, _) => DataType::BigInt,
        (AggregateKind::Sum, Some(DataType::SmallInt | DataType::Integer)) => DataType::BigInt,
        (AggregateKind::Sum, Some(DataType::BigInt | DataType::Numeric { .. })) => {
            DataType::NUMERIC
        }
        (AggregateKind::Sum | AggregateKind::Average, Some(DataType::Double))
        | (AggregateKind::Average, Some(DataType::REAL)) => DataType::Double,
        (AggregateKind::Sum, Some(DataType::REAL)) => DataType::REAL,
        (AggregateKind::Sum | AggregateKind::Average, Some(DataType::Interval(_))) => {
            DataType::INTERVAL
        }
        (AggregateKind::Deviation(_), Some(DataType::Double | DataType::REAL)) => DataType::Double,
        (AggregateKind::Deviation(_), Some(number)) if number.is_number() => DataType::NUMERIC,
        (AggregateKind::Bits(_), Some(integer)) if integer.is_integer() => integer,
        (AggregateKind::Pairs(regression::COUNT), _) => DataType::BigInt,
        (AggregateKind::Pairs(_), _) => DataType::Double,
        (AggregateKind::Average, Some(number)) if number.is_number() => DataType::NUMERIC,
        (AggregateKind::Minimum | AggregateKind::Maximum, Some(data_type)) => match data_type {
            DataType::Boolean
            | DataType::Bytea
            | DataType::Uuid
            | DataType::JSON
            | DataType::JSONB => {
                let arguments: Vec<Bound> = argument.into_iter().collect();
                return Err(undefined(&arguments));
            }
            DataType::VarChar(_) => DataType::Text,
            other => match other {
                char @ DataType::Char(_) => char,
                other => other.without_modifier(),
            },
        },
        (AggregateKind::BoolAnd | AggregateKind::BoolOr, Some(DataType::Boolean)) => {
            DataType::Boolean
        }
        (AggregateKind::StringAgg, Some(data_type)) if data_type.is_string() => DataType::Text,
        (AggregateKind::ArrayAgg, Some(DataType::Array(_))) => {
            return Err(unsupported("an array of more than one dimension", position));
        }
        (AggregateKind::ArrayAgg, Some(data_type)) => DataType::array(data_type.without_modifier()),
        _ => {
            let arguments: Vec<Bound> = argument.into_iter().collect();
            return Err(undefined(&arguments));
        }
    };
    let delimiter = match delimiter {
        Some(bound) if kind == AggregateKind::StringAgg => {
            Some(coerce(bound, &DataType::Text, CastContext::Implicit)?)
        }
        other => other,
    };
    // What is summed as NUMERIC is converted once, here.
    let argument = match argument {
        Some(bound) if data_type == DataType::NUMERIC && bound.data_type == DataType::BigInt => {
            Some(coerce(bound, &DataType::NUMERIC, CastContext::Implicit)?)
        }
        Some(bound) if matches!(kind, AggregateKind::Deviation(_)) => {
            Some(coerce(bound, &data_type, CastContext::Implicit)?)
        }
        other => other,
    };
    if distinct && is_star {
        return Err(fail(
            SqlState::SYNTAX_ERROR,
            "DISTINCT is not possible with *",
            position,
        ));
    }
    let mut call = AggregateCall {
        kind,
        argument,
        delimiter,
        distinct,
        filter,
        order: Vec::new(),
        data_type: data_type.clone(),
        level,
    };
    call.set_order(order)?;
    Ok(Bound::new(
        Kind::Aggregate(Box::new(call)),
        data_type,
        position,
    ))
}

/// The registers in which one aggregate accumulates.
pub(super) struct State {
    call: AggregateCall,
    value: Reg,
    /// The number of values, for aggregates that need it.
    count: Option<Reg>,
    /// The values seen, for DISTINCT: the group's keys, then the value.
    distinct: Option<BufferId>,
    /// With an order, the value is an array of all values; and these are arrays of the delimiters,
    /// if there are some, and of what the values are sorted by.
    sorted: Vec<Reg>,
    /// Sums of squares and products, for the aggregates that deviate.
    parts: Vec<Reg>,
}

impl State {
    /// The registers that hold what was accumulated.
    pub(super) fn registers(&self) -> impl Iterator<Item = Reg> {
        let sorted = self.sorted.iter().copied();
        let parts = self.parts.iter().copied();
        let all = std::iter::once(self.value).chain(self.count);
        all.chain(sorted).chain(parts)
    }
}

/// Where an accumulation takes its arguments from.
pub(super) struct Inputs {
    pub argument: Option<Reg>,
    pub delimiter: Option<Reg>,
    pub filter: Option<Reg>,
    /// What its values are sorted by.
    pub order: Vec<Reg>,
    /// Whether the argument cannot be NULL.
    pub never_null: bool,
    /// The keys of the group, with their classes.
    pub keys: Vec<(Reg, Class)>,
}

impl Compiler<'_> {
    /// The registers for `call` in groups of so many keys. What DISTINCT has seen is forgotten
    /// once, here.
    pub(super) fn aggregate_state(&mut self, call: &AggregateCall, keys: usize) -> State {
        let counts = matches!(
            call.kind,
            AggregateKind::Sum
                | AggregateKind::Average
                | AggregateKind::Deviation(_)
                | AggregateKind::Pairs(_)
        );
        // Texts are joined when the group is complete: to join them one by one would copy each time
        // all that there is.
        let keeps_values = !call.order.is_empty() || call.kind == AggregateKind::StringAgg;
        let data_type = match (call.kind, &call.argument) {
            // Integers are summed as integers and divided at the end.
            (AggregateKind::Average, Some(argument)) if argument.data_type.is_integer() => {
                DataType::BigInt
            }
            (_, Some(argument)) if keeps_values => DataType::array(argument.data_type.clone()),
            (AggregateKind::Pairs(_), _) => DataType::Double,
            _ => call.data_type.clone(),
        };
        let mut sorted = Vec::new();
        if keeps_values {
            let by = call.order.iter().map(|key| &key.bound);
            for bound in call.delimiter.iter().chain(by) {
                let data_type = DataType::array(bound.data_type.clone());
                sorted.push(self.builder.register(data_type));
            }
        }
        let distinct = call.distinct.then(|| self.builder.buffer(keys + 1));
        if let Some(buffer) = distinct {
            self.builder.push(Step::BufferClear { buffer });
        }
        let parts = match call.kind {
            AggregateKind::Deviation(_) => 1,
            AggregateKind::Pairs(_) => 4,
            _ => 0,
        };
        let parts = (0..parts).map(|_| self.builder.register(data_type.clone()));
        let parts = parts.collect();
        State {
            call: call.clone(),
            parts,
            value: self.builder.register(data_type),
            count: counts.then(|| self.builder.register(DataType::BigInt)),
            distinct,
            sorted,
        }
    }

    /// Resets it for a group.
    pub(super) fn aggregate_start(&mut self, state: &State) {
        let zero = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        let target = state.value;
        let has_sum = state.count.is_some();
        let start = match self.builder.type_of(target).clone() {
            _ if state.call.kind == AggregateKind::Count => Some(zero),
            _ if !has_sum => None,
            DataType::BigInt => Some(zero),
            data_type @ (DataType::Double | DataType::REAL) => {
                Some(self.builder.constant(data_type, Value::Double(0.0)))
            }
            DataType::Interval(_) => {
                let zero = Value::Interval(Interval::default());
                Some(self.builder.constant(DataType::INTERVAL, zero))
            }
            _ => {
                let zero = Value::Numeric(Decimal::ZERO);
                Some(self.builder.constant(DataType::NUMERIC, zero))
            }
        };
        if let Some(source) = start {
            for part in &state.parts {
                let target = *part;
                self.builder.scalar(Instruction::Move { target, source });
            }
        }
        self.builder.scalar(match start {
            Some(source) => Instruction::Move { target, source },
            None => Instruction::SetNull { target },
        });
        if let Some(count) = state.count {
            self.builder.scalar(Instruction::Move {
                target: count,
                source: zero,
            });
        }
        for target in &state.sorted {
            self.builder
                .scalar(Instruction::SetNull { target: *target });
        }
    }

    /// Takes in what another state of the same call, over other rows of the group, has accumulated;
    /// see [`AggregateCall::combines`].
    ///
    /// `registers` are those of the other state.
    pub(super) fn aggregate_merge(&mut self, state: &State, registers: &[Reg]) {
        let Some((value, rest)) = registers.split_first() else {
            return;
        };
        let value = *value;
        let mut add = |target: Reg, right: Reg| {
            self.builder.scalar(Instruction::Integer {
                op: Arithmetic::Add,
                width: Width::Eight,
                target,
                left: target,
                right,
            });
        };
        if state.call.kind == AggregateKind::Count {
            return add(state.value, value);
        }
        if let (Some(target), Some((count, parts))) = (state.count, rest.split_first()) {
            add(target, *count);
            for (target, part) in state.parts.iter().zip(parts) {
                self.add(*target, *part);
            }
            return self.add(state.value, value);
        }
        // NULL so far is no value.
        let known = self.not_null(value);
        self.open();
        self.accumulate(state, Some(value));
        let then = self.close();
        self.builder.push(Step::If {
            condition: known,
            then,
            otherwise: Vec::new(),
        });
    }

    /// `value := value + right`, by the type of `value`.
    fn add(&mut self, value: Reg, right: Reg) {
        let (op, target, left) = (Arithmetic::Add, value, value);
        let addition = match self.builder.type_of(value) {
            DataType::BigInt => Instruction::Integer {
                op,
                width: Width::Eight,
                target,
                left,
                right,
            },
            DataType::Double | DataType::Catalog(CatalogType::Real) => Instruction::Double {
                op,
                target,
                left,
                right,
            },
            DataType::Interval(_) => {
                return self.call_into(value, statistics::SUM_OF_INTERVALS, &[left, right]);
            }
            _ => Instruction::Decimal {
                op,
                target,
                left,
                right,
            },
        };
        let is_real = *self.builder.type_of(value) == DataType::REAL;
        self.builder.scalar(addition);
        if is_real {
            self.call_into(value, functions::cast::DOUBLE_TO_REAL, &[value]);
        }
    }

    fn call_into(&mut self, target: Reg, named: functions::Named, arguments: &[Reg]) {
        let (name, function) = named;
        self.builder.scalar(Instruction::Call {
            function,
            name,
            target,
            arguments: arguments.into(),
        });
    }

    /// `state` takes in a number whose deviation from the mean is asked for.
    fn deviate(&mut self, state: &State, argument: Reg) {
        let (Some(count), [part]) = (state.count, state.parts.as_slice()) else {
            return;
        };
        self.increment(count);
        if state.call.data_type == DataType::Double {
            let sum = state.value;
            let pair = [count, *part, sum, argument, sum, argument];
            self.call_into(*part, statistics::SPREAD, &pair);
            return self.call_into(sum, statistics::PLAIN_SUM, &[sum, argument]);
        }
        let square = self.builder.register(DataType::NUMERIC);
        self.builder.scalar(Instruction::Decimal {
            op: Arithmetic::Multiply,
            target: square,
            left: argument,
            right: argument,
        });
        self.add(*part, square);
        self.add(state.value, argument);
    }

    /// `state` takes in a pair of numbers.
    fn correlate(&mut self, state: &State, y: Reg, x: Reg) {
        let (Some(count), [x_sum, xx, yy, xy]) = (state.count, state.parts.as_slice()) else {
            return;
        };
        let y_sum = state.value;
        self.increment(count);
        let (first, second) = ([*x_sum, x], [y_sum, y]);
        for (target, one, other) in [
            (*xx, first, first),
            (*yy, second, second),
            (*xy, first, second),
        ] {
            let pair = [count, target, one[0], one[1], other[0], other[1]];
            self.call_into(target, statistics::SPREAD_OF_PAIRS, &pair);
        }
        self.call_into(*x_sum, statistics::PLAIN_SUM, &first);
        self.call_into(y_sum, statistics::PLAIN_SUM, &second);
    }

    /// Takes in one row.
    pub(super) fn aggregate_step(&mut self, state: &State, inputs: &Inputs) -> Result<()> {
        let mut conditions = 0;
        let mut guards = Vec::new();
        if let Some(filter) = inputs.filter {
            guards.push(filter);
            self.open();
            conditions += 1;
        }
        let skips_null = inputs.argument.is_some()
            && !inputs.never_null
            && state.call.kind != AggregateKind::ArrayAgg;
        let is_pair = matches!(state.call.kind, AggregateKind::Pairs(_));
        let second = inputs.delimiter.filter(|_| is_pair);
        let first = inputs.argument.filter(|_| skips_null);
        for source in first.into_iter().chain(second) {
            let target = self.builder.register(DataType::Boolean);
            self.builder.scalar(Instruction::IsNull {
                target,
                source,
                negated: true,
            });
            guards.push(target);
            self.open();
            conditions += 1;
        }
        if let (Some(buffer), Some(argument)) = (state.distinct, inputs.argument) {
            let class = match &state.call.argument {
                Some(bound) => class_in(
                    "DISTINCT",
                    Needs::Equality,
                    &bound.data_type,
                    bound.position,
                )?,
                None => return Err(Error::internal("DISTINCT of no value")),
            };
            let added = self.builder.register(DataType::Boolean);
            let columns = inputs.keys.iter().copied().chain([(argument, class)]);
            let (row, classes): (Vec<Reg>, Vec<Class>) = columns.unzip();
            self.builder.push(Step::BufferPushDistinct {
                buffer,
                row: row.into(),
                classes: classes.into(),
                added,
            });
            guards.push(added);
            self.open();
            conditions += 1;
        }
        if let (Some(y), Some(x)) = (inputs.argument, second) {
            self.correlate(state, y, x);
        } else if state.sorted.is_empty() {
            self.accumulate(state, inputs.argument);
        } else {
            let values = inputs.argument.iter().chain(&inputs.delimiter);
            let values: Vec<Reg> = values.chain(&inputs.order).copied().collect();
            for (array, value) in std::iter::once(&state.value)
                .chain(&state.sorted)
                .zip(values)
            {
                self.append(*array, value);
            }
        }
        for _ in 0..conditions {
            let then = self.close();
            let Some(condition) = guards.pop() else { break };
            self.builder.push(Step::If {
                condition,
                then,
                otherwise: Vec::new(),
            });
        }
        Ok(())
    }

    fn accumulate(&mut self, state: &State, argument: Option<Reg>) {
        let value = state.value;
        let one = self.builder.constant(DataType::BigInt, Value::BigInt(1));
        let increment = |target: Reg| Instruction::Integer {
            op: Arithmetic::Add,
            width: Width::Eight,
            target,
            left: target,
            right: one,
        };
        let Some(argument) = argument else {
            self.builder.scalar(increment(value));
            return;
        };
        match state.call.kind {
            AggregateKind::Count => self.builder.scalar(increment(value)),
            AggregateKind::Sum | AggregateKind::Average => {
                self.add(value, argument);
                if let Some(count) = state.count {
                    self.builder.scalar(increment(count));
                }
            }
            AggregateKind::Minimum | AggregateKind::Maximum => {
                let Some(class) = Class::of(&state.call.data_type) else {
                    return;
                };
                let op = if state.call.kind == AggregateKind::Minimum {
                    Comparison::Greater
                } else {
                    Comparison::Less
                };
                // Nothing changes when the value is on the right side; a NULL so far is on none. Of
                // equal values that are written in several ways the last one counts, as in
                // PostgreSQL.
                let stays = self.builder.register(DataType::Boolean);
                let (left, right) = (argument, value);
                self.builder.scalar(Instruction::Compare {
                    op,
                    class,
                    target: stays,
                    left,
                    right,
                });
                self.builder.open();
                self.builder.scalar(Instruction::Move {
                    target: value,
                    source: argument,
                });
                let otherwise = self.builder.close();
                self.builder.push(Step::If {
                    condition: stays,
                    then: Vec::new(),
                    otherwise,
                });
            }
            AggregateKind::BoolAnd | AggregateKind::BoolOr => {
                let is_and = state.call.kind == AggregateKind::BoolAnd;
                self.first_or(value, argument, |builder| {
                    let (target, left, right) = (value, value, argument);
                    builder.scalar(if is_and {
                        Instruction::And {
                            target,
                            left,
                            right,
                        }
                    } else {
                        Instruction::Or {
                            target,
                            left,
                            right,
                        }
                    });
                });
            }
            AggregateKind::Deviation(_) => self.deviate(state, argument),
            AggregateKind::Bits(how) => self.first_or(value, argument, |builder| {
                let (name, function) = statistics::bits(how);
                builder.scalar(Instruction::Call {
                    function,
                    name,
                    target: value,
                    arguments: [value, argument].into(),
                });
            }),
            AggregateKind::Pairs(_) => {}
            AggregateKind::StringAgg | AggregateKind::ArrayAgg => self.append(value, argument),
        }
    }

    fn append(&mut self, array: Reg, value: Reg) {
        let (name, function) = functions::array_append();
        self.builder.scalar(Instruction::Call {
            function,
            name,
            target: array,
            arguments: [array, value].into(),
        });
    }

    /// The value of an aggregate that has kept its values, to sort or to join them.
    fn sorted_result(&mut self, state: &State) -> Reg {
        let keys = state.call.order.iter().filter_map(|key| {
            let class = Class::of(&key.bound.data_type)?;
            Some((class, key.descending, key.nulls_first))
        });
        let order = functions::order_of(&keys.collect::<Vec<_>>());
        let order = self.builder.constant(DataType::Text, Value::Text(order));
        let (name, function) = match state.call.kind {
            AggregateKind::StringAgg => functions::sorted_texts(),
            _ => functions::sorted_values(),
        };
        let target = self.builder.register(state.call.data_type.clone());
        let arguments = state.registers().chain([order]).collect();
        self.builder.scalar(Instruction::Call {
            function,
            name,
            target,
            arguments,
        });
        target
    }

    /// `value := argument` when it is NULL so far, else `combine`.
    fn first_or(
        &mut self,
        value: Reg,
        argument: Reg,
        combine: impl FnOnce(&mut kiln_procedure::ProgramBuilder),
    ) {
        let first = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::IsNull {
            target: first,
            source: value,
            negated: false,
        });
        self.builder.open();
        self.builder.scalar(Instruction::Move {
            target: value,
            source: argument,
        });
        let then = self.builder.close();
        self.builder.open();
        combine(&mut self.builder);
        let otherwise = self.builder.close();
        self.builder.push(Step::If {
            condition: first,
            then,
            otherwise,
        });
    }

    /// The aggregate's value after the last row.
    pub(super) fn aggregate_result(&mut self, state: &State) -> Reg {
        if !state.sorted.is_empty() {
            return self.sorted_result(state);
        }
        let Some(count) = state.count else {
            return state.value;
        };
        let result = self.builder.register(state.call.data_type.clone());
        let named = match state.call.kind {
            AggregateKind::Deviation(asked) => {
                let is_double = state.call.data_type == DataType::Double;
                Some(statistics::deviation(asked, is_double))
            }
            AggregateKind::Pairs(regression::COUNT) => return count,
            AggregateKind::Pairs(name) => regression::aggregate(name),
            _ => None,
        };
        if let Some(named) = named {
            let registers: Vec<Reg> = state.registers().collect();
            self.call_into(result, named, &registers);
            return result;
        }
        let zero = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        let condition = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Compare {
            op: Comparison::Equal,
            class: Class::Integer,
            target: condition,
            left: count,
            right: zero,
        });
        self.builder.open();
        self.builder.scalar(Instruction::SetNull { target: result });
        let then = self.builder.close();
        self.builder.open();
        if state.call.kind == AggregateKind::Sum {
            self.builder.scalar(Instruction::Move {
                target: result,
                source: state.value,
            });
        } else if state.call.data_type == DataType::INTERVAL {
            let mean = [state.value, count];
            self.call_into(result, statistics::MEAN_OF_INTERVALS, &mean);
        } else if state.call.data_type == DataType::Double {
            let divisor = self.builder.register(DataType::Double);
            self.builder.scalar(Instruction::IntegerToDouble {
                target: divisor,
                source: count,
            });
            self.builder.scalar(Instruction::Double {
                op: Arithmetic::Divide,
                target: result,
                left: state.value,
                right: divisor,
            });
        } else {
            let mut dividend = state.value;
            if *self.builder.type_of(dividend) == DataType::BigInt {
                dividend = self.builder.register(DataType::NUMERIC);
                self.builder.scalar(Instruction::IntegerToDecimal {
                    target: dividend,
                    source: state.value,
                });
            }
            let divisor = self.builder.register(DataType::NUMERIC);
            self.builder.scalar(Instruction::IntegerToDecimal {
                target: divisor,
                source: count,
            });
            self.builder.scalar(Instruction::Decimal {
                op: Arithmetic::Divide,
                target: result,
                left: dividend,
                right: divisor,
            });
        }
        let otherwise = self.builder.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise,
        });
        result
    }
}
