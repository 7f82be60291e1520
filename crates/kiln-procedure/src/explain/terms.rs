//! Registers as expressions over parameters, constants and columns that operations read.

use std::borrow::Cow;

use kiln_storage::types::Value;

use crate::ir::*;
use crate::names::{Use, for_each_step, step_registers};
use crate::program::Program;

/// Expressions nested deeper are shortened.
const DEPTH_MAX: usize = 6;

/// Longer expressions are shortened, in characters.
const LENGTH_MAX: usize = 72;

/// Says where the value of a register comes from. A register that several steps write shows all
/// of them, whichever of them a run takes.
pub(super) struct Terms<'a> {
    program: &'a Program,
    definitions: Vec<Vec<&'a Step>>,
    pushes: Vec<Vec<&'a [Reg]>>,
}

impl<'a> Terms<'a> {
    pub fn new(program: &'a Program) -> Terms<'a> {
        let mut definitions = vec![Vec::new(); program.registers.len()];
        let mut pushes = vec![Vec::new(); program.buffers.len()];
        for_each_step(&program.body, &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Write {
                    definitions[register.0 as usize].push(step);
                }
            });
            if let Step::BufferPush { buffer, row } | Step::BufferPushDistinct { buffer, row, .. } =
                step
            {
                pushes[buffer.0 as usize].push(&**row);
            }
        });
        Terms {
            program,
            definitions,
            pushes,
        }
    }

    /// The expression of a register.
    pub fn of(&self, register: Reg) -> String {
        let term = self.term(register, &mut Vec::new(), false);
        if term.chars().count() <= LENGTH_MAX {
            return term;
        }
        let cut: String = term.chars().take(LENGTH_MAX - 1).collect();
        cut + "…"
    }

    /// The name of a column.
    pub fn column(&self, table: TableRef, column: usize) -> Cow<'a, str> {
        self.program.tables[table.0 as usize].schema().columns[column].label()
    }

    /// `open` holds the registers whose expression this one is part of; `nested` asks for
    /// parentheses around operators.
    fn term(&self, register: Reg, open: &mut Vec<Reg>, nested: bool) -> String {
        let position = register.0 as usize;
        if let Some(parameter) = self.program.parameters.get(position) {
            return match parameter.name.as_str() {
                "" => format!("${}", position + 1),
                name => name.to_owned(),
            };
        }
        let constant = self
            .program
            .constants
            .iter()
            .find(|known| known.register == register);
        if let Some(constant) = constant {
            return literal(&constant.value);
        }
        if open.len() >= DEPTH_MAX || open.contains(&register) {
            return "…".to_owned();
        }
        open.push(register);
        let definitions = &self.definitions[position];
        let several = definitions.len() > 1;
        let mut terms: Vec<String> = Vec::new();
        for step in definitions {
            let term = self.definition(step, register, open, nested || several);
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
        open.pop();
        let joined = terms.join(" | ");
        if nested && terms.len() > 1 {
            format!("({joined})")
        } else {
            joined
        }
    }

    fn definition(&self, step: &Step, register: Reg, open: &mut Vec<Reg>, nested: bool) -> String {
        match step {
            Step::Scalar(instruction) => self.instruction(instruction, open, nested),
            Step::Read {
                op, table, columns, ..
            } => {
                let columns = columns.iter().filter(|(_, target)| *target == register);
                let names: Vec<_> = columns
                    .map(|(column, _)| self.column(*table, column.index()))
                    .collect();
                format!("op {}.{}", op.0, names.join("|"))
            }
            Step::Lookup { op, .. } => format!("found by {}", op.0),
            Step::Insert { op, .. } => format!("inserted by {}", op.0),
            Step::ForRange {
                first,
                last,
                reverse,
                ..
            } => {
                let (first, last) = (self.term(*first, open, true), self.term(*last, open, true));
                let range = format!("{first} .. {last}");
                if *reverse {
                    format!("reverse {range}")
                } else {
                    range
                }
            }
            Step::ForEach { array, .. } => format!("each of {}", self.term(*array, open, true)),
            Step::ForBuffer { buffer, row, .. } => {
                let column = row.iter().position(|target| *target == register);
                let mut terms: Vec<String> = Vec::new();
                for pushed in &self.pushes[buffer.0 as usize] {
                    let register = column.and_then(|column| pushed.get(column));
                    let term = register
                        .map_or_else(|| "…".to_owned(), |from| self.term(*from, open, true));
                    if !terms.contains(&term) {
                        terms.push(term);
                    }
                }
                terms.join(" | ")
            }
            Step::BufferCount { buffer, .. } => format!("rows of buffer {}", buffer.0),
            Step::BufferRow { buffer, at, .. } => {
                format!("row {} of buffer {}", self.term(*at, open, true), buffer.0)
            }
            Step::BufferPushDistinct { buffer, .. } => format!("new in buffer {}", buffer.0),
            Step::SaveRecord { .. } => "a record".to_owned(),
            Step::Protect { .. } => "the handler that caught".to_owned(),
            Step::Diagnose { .. } => "what the error says".to_owned(),
            _ => "…".to_owned(),
        }
    }

    fn instruction(&self, instruction: &Instruction, open: &mut Vec<Reg>, nested: bool) -> String {
        use Instruction as I;
        let mut infix = |left: Reg, operator: &str, right: Reg| {
            let (left, right) = (self.term(left, open, true), self.term(right, open, true));
            let term = format!("{left} {operator} {right}");
            if nested { format!("({term})") } else { term }
        };
        match instruction {
            I::Integer {
                op, left, right, ..
            }
            | I::Decimal {
                op, left, right, ..
            }
            | I::Double {
                op, left, right, ..
            } => infix(*left, arithmetic(*op), *right),
            I::Compare {
                op, left, right, ..
            } => infix(*left, comparison(*op), *right),
            I::And { left, right, .. } => infix(*left, "AND", *right),
            I::Or { left, right, .. } => infix(*left, "OR", *right),
            I::Concat { left, right, .. } => infix(*left, "||", *right),
            I::Move { source, .. }
            | I::IntegerToDecimal { source, .. }
            | I::IntegerToDouble { source, .. }
            | I::CheckWidth { source, .. }
            | I::Rescale { source, .. } => self.term(*source, open, nested),
            I::SetNull { .. } => "NULL".to_owned(),
            I::IsNull {
                source, negated, ..
            } => {
                let test = if *negated { "IS NOT NULL" } else { "IS NULL" };
                format!("{} {test}", self.term(*source, open, true))
            }
            I::AnyNull { sources, .. } => {
                let sources = sources.iter();
                let tests =
                    sources.map(|source| format!("{} IS NULL", self.term(*source, open, true)));
                tests.collect::<Vec<String>>().join(" OR ")
            }
            I::Not { source, .. } => format!("NOT {}", self.term(*source, open, true)),
            I::Element { array, index, .. } => {
                format!(
                    "{}[{}]",
                    self.term(*array, open, true),
                    self.term(*index, open, false)
                )
            }
            I::ArrayLength { array, .. } => format!("length({})", self.term(*array, open, false)),
            I::Call {
                name, arguments, ..
            } => {
                let arguments: Vec<String> = arguments
                    .iter()
                    .map(|argument| self.term(*argument, open, false))
                    .collect();
                format!("{name}({})", arguments.join(", "))
            }
            I::Consult {
                function,
                arguments,
                ..
            } => {
                let arguments: Vec<String> = arguments
                    .iter()
                    .map(|argument| self.term(*argument, open, false))
                    .collect();
                format!("{}({})", function.name(), arguments.join(", "))
            }
            I::Require { .. } | I::RequireNotNull { .. } => "…".to_owned(),
        }
    }
}

/// A constant as SQL writes it.
fn literal(value: &Value) -> String {
    match (value, value.to_text()) {
        (_, None) => "NULL".to_owned(),
        (Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_), Some(text))
        | (Value::Numeric(_) | Value::Double(_), Some(text)) => text,
        (Value::LongNumeric(number), Some(text)) if number.is_finite() => text,
        (Value::Boolean(value), _) => value.to_string().to_uppercase(),
        (_, Some(text)) => format!("'{}'", text.replace('\'', "''")),
    }
}

fn arithmetic(op: Arithmetic) -> &'static str {
    match op {
        Arithmetic::Add => "+",
        Arithmetic::Subtract => "-",
        Arithmetic::Multiply => "*",
        Arithmetic::Divide => "/",
        Arithmetic::Remainder => "%",
    }
}

fn comparison(op: Comparison) -> &'static str {
    match op {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Distinct => "IS DISTINCT FROM",
        Comparison::NotDistinct => "IS NOT DISTINCT FROM",
    }
}
