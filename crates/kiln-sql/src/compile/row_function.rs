//! Functions that give rows, and how several of them stand side by side.
//!
//! They are called in FROM, where a scalar function is a function of one row, and in the output of
//! a SELECT. Several side by side go on until the last of them has ended; those that ended before
//! give NULLs.

use kiln_procedure::ir::{
    Arithmetic, BufferId, Class, Comparison, Instruction, Match, Reg, Step, Width,
};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{CatalogType, DataType, Value};

use super::bind::as_array;
use super::bound::{Bound, RowFunction, RowFunctions};
use super::coerce::{CastContext, coerce, converts_implicitly, session_style};
use super::functions::JsonRows;
use super::overload;
use super::{Compiler, Position, fail, functions, unsupported};

/// Whether a builtin of this name gives rows.
pub(super) fn gives_rows(name: &str) -> bool {
    matches!(
        name,
        "unnest"
            | "generate_series"
            | "generate_subscripts"
            | "pg_partition_ancestors"
            | "pg_listening_channels"
            | "string_to_table"
            | "regexp_split_to_table"
            | "regexp_matches"
            | "jsonb_path_query"
    ) || JsonFunction::of(name).is_some()
}

/// A function that gives what is in a JSON value.
#[derive(Clone, Copy)]
struct JsonFunction {
    rows: JsonRows,
    is_binary: bool,
    as_text: bool,
}

impl JsonFunction {
    fn of(name: &str) -> Option<JsonFunction> {
        let (is_binary, name) = match name.strip_prefix("jsonb_") {
            Some(name) => (true, name),
            None => (false, name.strip_prefix("json_")?),
        };
        let (rows, as_text) = match name {
            "array_elements" => (JsonRows::Elements, false),
            "array_elements_text" => (JsonRows::Elements, true),
            "object_keys" => (JsonRows::Keys, true),
            "each" => (JsonRows::Values, false),
            "each_text" => (JsonRows::Values, true),
            _ => return None,
        };
        Some(JsonFunction {
            rows,
            is_binary,
            as_text,
        })
    }

    fn json(self) -> DataType {
        match self.is_binary {
            false => DataType::JSON,
            true => DataType::JSONB,
        }
    }

    /// Its columns.
    fn bind(self, argument: Bound, position: Position) -> Result<Vec<RowFunction>> {
        let value = coerce(argument, &self.json(), CastContext::Implicit)?;
        let column = |rows, as_text, element, name: Option<&str>| {
            let named = functions::json_rows(rows, self.is_binary, as_text);
            let array = DataType::array(element);
            let array = functions::direct(named, vec![value.clone()], array, position);
            RowFunction::Unnest(array, name.map(Box::from))
        };
        let element = match self.as_text {
            true => DataType::Text,
            false => self.json(),
        };
        Ok(match self.rows {
            JsonRows::Keys => vec![column(JsonRows::Keys, true, DataType::Text, None)],
            JsonRows::Elements => {
                vec![column(
                    JsonRows::Elements,
                    self.as_text,
                    element,
                    Some("value"),
                )]
            }
            JsonRows::Values => vec![
                column(JsonRows::Keys, false, DataType::Text, Some("key")),
                column(JsonRows::Values, self.as_text, element, Some("value")),
            ],
        })
    }
}

/// The columns of a call of a builtin for which [`gives_rows`] holds.
///
/// # Errors
/// 42883 when it does not take such arguments.
pub(super) fn builtins(
    name: &str,
    mut arguments: Vec<Bound>,
    position: Position,
) -> Result<Vec<RowFunction>> {
    match JsonFunction::of(name) {
        Some(function) if arguments.len() == 1 => {
            let argument = arguments.swap_remove(0);
            let json = function.json();
            if converts_implicitly(&argument, &json) {
                return function.bind(argument, position);
            }
            builtin(name, vec![argument], position).map(|one| vec![one])
        }
        None if name == "unnest" && arguments.len() > 1 => {
            let each = arguments.into_iter();
            each.map(|bound| builtin(name, vec![bound], position))
                .collect()
        }
        _ => builtin(name, arguments, position).map(|one| vec![one]),
    }
}

/// A call of a builtin for which [`gives_rows`] holds.
///
/// # Errors
/// 42883 when it does not take such arguments.
pub(super) fn builtin(
    name: &str,
    mut arguments: Vec<Bound>,
    position: Position,
) -> Result<RowFunction> {
    let undefined = |arguments: &[Bound]| {
        let types: Vec<String> = arguments.iter().map(Bound::type_name).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        fail(SqlState::UNDEFINED_FUNCTION, message, position)
    };
    if let (Some(function), [argument]) = (JsonFunction::of(name), arguments.as_slice())
        && converts_implicitly(argument, &function.json())
    {
        let mut columns = function.bind(arguments.swap_remove(0), position)?;
        return match (columns.pop(), columns.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => Err(unsupported("a row as a value", position)),
        };
    }
    match (name, arguments.len()) {
        ("unnest", 1) => {
            let array = as_array(arguments.swap_remove(0))?;
            if array.is_unknown() {
                let message = "function unnest(unknown) is not unique";
                return Err(fail(SqlState::AMBIGUOUS_FUNCTION, message, position));
            }
            match array.data_type {
                DataType::Array(_) => Ok(RowFunction::Unnest(array, None)),
                _ => Err(undefined(&[array])),
            }
        }
        ("string_to_table", 2 | 3) => {
            let array = overload::bind("string_to_array", arguments, position)?;
            Ok(RowFunction::Unnest(array, None))
        }
        ("regexp_split_to_table", 2 | 3) => {
            let array = overload::bind("regexp_split_to_array", arguments, position)?;
            Ok(RowFunction::Unnest(array, None))
        }
        ("jsonb_path_query", 2..=4) => {
            let array = overload::bind("jsonb_path_query", arguments, position)?;
            Ok(RowFunction::Unnest(array, None))
        }
        ("regexp_matches", 2 | 3) => {
            let array = overload::bind("regexp_matches", arguments, position)?;
            Ok(RowFunction::Unnest(array, None))
        }
        ("pg_partition_ancestors", 1) => {
            let class = DataType::Catalog(CatalogType::RegClass);
            let relation = coerce(arguments.swap_remove(0), &class, CastContext::Implicit)?;
            let array = functions::partition_ancestors(relation, position);
            Ok(RowFunction::Unnest(array, None))
        }
        ("generate_subscripts", 2 | 3) => {
            let array = arguments.remove(0);
            arguments.insert(0, as_array(array)?);
            let is_reverse = match arguments.get(2).map(Bound::as_constant) {
                None => false,
                Some(Some(Value::Boolean(reverse))) => *reverse,
                Some(_) => {
                    let what = "generate_subscripts with a direction that is no constant";
                    return Err(unsupported(what, position));
                }
            };
            arguments.truncate(2);
            let first = overload::bind("array_lower", arguments.clone(), position)?;
            let last = overload::bind("array_upper", arguments, position)?;
            Ok(match is_reverse {
                false => RowFunction::Series(first, last, 1),
                true => RowFunction::Series(last, first, -1),
            })
        }
        ("generate_series", 2 | 3) => match series_type(&arguments) {
            Some(data_type) => series(arguments, &data_type, position),
            None if arguments.iter().all(Bound::is_unknown) => {
                let message = "function generate_series(unknown, unknown) is not unique";
                Err(fail(SqlState::AMBIGUOUS_FUNCTION, message, position))
            }
            None => Err(undefined(&arguments)),
        },
        _ => Err(undefined(&arguments)),
    }
}

/// The type of a series with these bounds and this step.
fn series_type(arguments: &[Bound]) -> Option<DataType> {
    let bounds = &arguments[..2];
    let step = arguments.get(2);
    let is = |bound: &Bound, data_type: &DataType| {
        !bound.is_unknown() && bound.data_type.without_modifier() == *data_type
    };
    let candidates = [
        DataType::Integer,
        DataType::BigInt,
        DataType::NUMERIC,
        DataType::TIMESTAMPTZ,
        DataType::TIMESTAMP,
    ];
    let fits = |data_type: &DataType| {
        let is_time = matches!(data_type, DataType::Timestamp(_) | DataType::TimestampTz(_));
        let of_step = if is_time {
            &DataType::INTERVAL
        } else {
            data_type
        };
        bounds.iter().all(|bound| converts_implicitly(bound, data_type))
            && step.map_or(!is_time, |step| converts_implicitly(step, of_step))
            // Literals alone would do for anything.
            && arguments.iter().any(|bound| !bound.is_unknown())
    };
    let fitting = candidates.into_iter().filter(fits);
    // The one that most arguments have already is best.
    let mut best: Option<(usize, DataType)> = None;
    for data_type in fitting {
        let exact = arguments
            .iter()
            .filter(|bound| is(bound, &data_type))
            .count();
        if best.as_ref().is_none_or(|(most, _)| exact > *most) {
            best = Some((exact, data_type));
        }
    }
    best.map(|(_, data_type)| data_type)
}

fn series(arguments: Vec<Bound>, data_type: &DataType, position: Position) -> Result<RowFunction> {
    let is_time = matches!(data_type, DataType::Timestamp(_) | DataType::TimestampTz(_));
    let mut parts = Vec::with_capacity(3);
    for (place, argument) in arguments.into_iter().enumerate() {
        let target = match place {
            2 if is_time => &DataType::INTERVAL,
            _ => data_type,
        };
        parts.push(coerce(argument, target, CastContext::Implicit)?);
    }
    if data_type.is_integer() {
        let by = match parts.get(2).map(Bound::as_constant) {
            None => Some(1),
            Some(Some(Value::Integer(by))) => Some(i64::from(*by)),
            Some(Some(Value::BigInt(by))) => Some(*by),
            Some(_) => None,
        };
        if let Some(by) = by.filter(|by| *by != 0) {
            let mut bounds = parts.into_iter();
            if let (Some(first), Some(last)) = (bounds.next(), bounds.next()) {
                return Ok(RowFunction::Series(first, last, by));
            }
            return Err(unsupported("this call", position));
        }
    }
    if parts.len() == 2 {
        let one = kiln_storage::types::Decimal::ONE;
        parts.push(Bound::constant(
            Value::Numeric(one),
            DataType::NUMERIC,
            position,
        ));
    }
    let named = functions::series(data_type);
    if matches!(data_type, DataType::TimestampTz(_)) {
        parts.push(session_style(position));
    }
    let array = DataType::array(data_type.clone());
    let array = functions::direct(named, parts, array, position);
    Ok(RowFunction::Unnest(array, None))
}

impl<'a> Compiler<'a> {
    /// Emits the rows of functions side by side.
    pub(super) fn emit_row_functions(
        &mut self,
        calls: &RowFunctions,
        position: Position,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        match (calls.parts.as_slice(), calls.has_ordinality) {
            ([call], false) => self.emit_row_function(call, position, sink),
            ([call], true) => {
                let number = self.zero();
                self.emit_row_function(call, position, &mut |compiler, row| {
                    compiler.increment(number);
                    let row: Vec<Reg> = row.iter().copied().chain([number]).collect();
                    sink(compiler, &row)
                })
            }
            (parts, has_ordinality) => self.emit_in_step(parts, has_ordinality, position, sink),
        }
    }

    /// Functions side by side: the rows of each are kept with their numbers, and then one row of
    /// each is taken at a time.
    fn emit_in_step(
        &mut self,
        parts: &[RowFunction],
        has_ordinality: bool,
        position: Position,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let longest = self.zero();
        let mut kept: Vec<(BufferId, Vec<DataType>)> = Vec::with_capacity(parts.len());
        for part in parts {
            let columns = part.columns("").into_iter();
            let types: Vec<DataType> = columns.map(|(_, data_type)| data_type).collect();
            let buffer = self.builder.buffer(types.len() + 1);
            self.builder.push(Step::BufferClear { buffer });
            let number = self.zero();
            self.emit_row_function(part, position, &mut |compiler, row| {
                compiler.increment(number);
                let row = row.iter().copied().chain([number]).collect();
                compiler.builder.push(Step::BufferPush { buffer, row });
                Ok(())
            })?;
            self.raise_to(longest, number);
            kept.push((buffer, types));
        }
        let one = self.builder.constant(DataType::BigInt, Value::BigInt(1));
        let at = self.builder.register(DataType::BigInt);
        self.open_ir_loop();
        let mut row = Vec::new();
        for (buffer, types) in kept {
            row.extend(self.take_numbered(buffer, &types, at));
        }
        if has_ordinality {
            row.push(at);
        }
        let result = sink(self, &row);
        let body = self.close_ir_loop();
        self.builder.push(Step::ForRange {
            variable: at,
            first: one,
            last: longest,
            step: one,
            reverse: false,
            body,
        });
        result
    }

    /// The row with a number, or NULLs.
    fn take_numbered(&mut self, buffer: BufferId, types: &[DataType], number: Reg) -> Vec<Reg> {
        let registers = |compiler: &mut Self| -> Vec<Reg> {
            let each = types.iter();
            each.map(|data_type| compiler.builder.register(data_type.clone()))
                .collect()
        };
        let targets = registers(self);
        for target in &targets {
            self.builder
                .scalar(Instruction::SetNull { target: *target });
        }
        self.open_ir_loop();
        let mut row = registers(self);
        for (target, source) in targets.iter().zip(&row) {
            let (target, source) = (*target, *source);
            self.builder.scalar(Instruction::Move { target, source });
        }
        row.push(self.builder.register(DataType::BigInt));
        let body = self.close_ir_loop();
        let matching = [Match {
            column: types.len() as u16,
            value: number,
            class: Class::Integer,
        }];
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: matching.into(),
            row: row.into(),
            body,
        });
        targets
    }

    /// Emits the rows of one function.
    fn emit_row_function(
        &mut self,
        call: &RowFunction,
        position: Position,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        match call {
            RowFunction::Value(bound) => {
                let value = self.emit(bound)?;
                sink(self, &[value])
            }
            RowFunction::Unnest(array, _) => {
                let element = match &array.data_type {
                    DataType::Array(element) => (**element).clone(),
                    other => other.clone(),
                };
                let array = self.emit(array)?;
                let condition = self.not_null(array);
                let variable = self.builder.register(element);
                self.open();
                self.open_ir_loop();
                let result = sink(self, &[variable]);
                let body = self.close_ir_loop();
                self.builder.push(Step::ForEach {
                    variable,
                    array,
                    body,
                });
                self.close_if(condition);
                result
            }
            RowFunction::Series(first, last, by) => {
                let reverse = *by < 0;
                let stride = by.checked_abs().unwrap_or(i64::MAX);
                let variable = self.builder.register(first.data_type.clone());
                let first = self.emit(first)?;
                let last = self.emit(last)?;
                let step = self
                    .builder
                    .constant(DataType::BigInt, Value::BigInt(stride));
                let (left, right) = (self.not_null(first), self.not_null(last));
                let condition = self.builder.register(DataType::Boolean);
                self.builder.scalar(Instruction::And {
                    target: condition,
                    left,
                    right,
                });
                self.open();
                self.open_ir_loop();
                let result = sink(self, &[variable]);
                let body = self.close_ir_loop();
                self.builder.push(Step::ForRange {
                    variable,
                    first,
                    last,
                    step,
                    reverse,
                    body,
                });
                self.close_if(condition);
                result
            }
            RowFunction::Routine(callee, arguments) => {
                let arguments = self.emit_row(arguments)?;
                let buffer = callee.call_rows(self, &arguments, position)?;
                let columns = callee.columns_in_from("");
                let row: Vec<Reg> = columns
                    .iter()
                    .map(|(_, data_type)| self.builder.register(data_type.clone()))
                    .collect();
                self.open_ir_loop();
                let result = sink(self, &row);
                let body = self.close_ir_loop();
                self.builder.push(Step::ForBuffer {
                    buffer,
                    matching: Box::default(),
                    row: row.into(),
                    body,
                });
                result
            }
        }
    }

    /// Closes a block that runs where `condition` is TRUE.
    pub(super) fn close_if(&mut self, condition: Reg) {
        let then = self.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
    }

    /// Closes a block that runs where `condition` is TRUE.
    pub(super) fn close_when(&mut self, condition: Reg) {
        let then = self.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
    }

    /// Closes a block that runs where `condition` is not TRUE.
    pub(super) fn close_unless(&mut self, condition: Reg) {
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition,
            then: Vec::new(),
            otherwise,
        });
    }

    /// A new counter at 0.
    pub(super) fn zero(&mut self) -> Reg {
        let target = self.builder.register(DataType::BigInt);
        let source = self.builder.constant(DataType::BigInt, Value::BigInt(0));
        self.builder.scalar(Instruction::Move { target, source });
        target
    }

    /// Adds 1 to a counter.
    pub(super) fn increment(&mut self, counter: Reg) {
        let one = self.builder.constant(DataType::BigInt, Value::BigInt(1));
        self.builder.scalar(Instruction::Integer {
            op: Arithmetic::Add,
            width: Width::Eight,
            target: counter,
            left: counter,
            right: one,
        });
    }

    /// Sets a counter to `value` if that is greater.
    fn raise_to(&mut self, counter: Reg, value: Reg) {
        let condition = self.builder.register(DataType::Boolean);
        self.builder.scalar(Instruction::Compare {
            op: Comparison::Greater,
            class: Class::Integer,
            target: condition,
            left: value,
            right: counter,
        });
        self.open();
        self.builder.scalar(Instruction::Move {
            target: counter,
            source: value,
        });
        self.close_if(condition);
    }
}
