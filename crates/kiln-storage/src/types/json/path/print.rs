//! The canonical text of a path.

use std::fmt;

use super::{JsonPath, Operator, Step};
use crate::types::json::quote;

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_lax {
            f.write_str("strict ")?;
        }
        steps(f, &self.steps, true)
    }
}

/// How firmly an operator binds; what is none binds most.
fn firmness(step: &Step) -> u8 {
    match step {
        Step::Binary(Operator::Or, ..) => 0,
        Step::Binary(Operator::And, ..) => 1,
        Step::Binary(Operator::Add | Operator::Subtract, ..) => 3,
        Step::Binary(Operator::Multiply | Operator::Divide | Operator::Modulo, ..) => 4,
        Step::Binary(..) => 2,
        Step::Sign(..) => 5,
        _ => 6,
    }
}

/// Steps, of which the first has parentheses where `in_parentheses` says so and it is an operator,
/// or others follow it.
fn steps(f: &mut fmt::Formatter<'_>, steps: &[Step], in_parentheses: bool) -> fmt::Result {
    let Some((first, rest)) = steps.split_first() else {
        return Ok(());
    };
    step(f, first, in_parentheses, !rest.is_empty())?;
    for accessor in rest {
        step(f, accessor, true, false)?;
    }
    Ok(())
}

/// The operand of an operator that binds so firmly.
fn operand(f: &mut fmt::Formatter<'_>, operand: &[Step], outer: u8) -> fmt::Result {
    let inner = operand.first().map_or(6, firmness);
    steps(f, operand, inner <= outer || operand.len() > 1)
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut out = String::new();
    quote(text, &mut out);
    f.write_str(&out)
}

fn level(f: &mut fmt::Formatter<'_>, level: Option<u32>) -> fmt::Result {
    match level {
        Some(level) => write!(f, "{level}"),
        None => f.write_str("last"),
    }
}

fn step(
    f: &mut fmt::Formatter<'_>,
    step: &Step,
    in_parentheses: bool,
    has_next: bool,
) -> fmt::Result {
    let (open, close) = match in_parentheses {
        true => ("(", ")"),
        false => ("", ""),
    };
    match step {
        Step::Null => f.write_str("null"),
        Step::Boolean(value) => write!(f, "{value}"),
        Step::Number(text) if has_next => write!(f, "({text})"),
        Step::Number(text) => f.write_str(text),
        Step::Text(text) => quoted(f, text),
        Step::Variable(name) => {
            f.write_str("$")?;
            quoted(f, name)
        }
        Step::Root => f.write_str("$"),
        Step::Current => f.write_str("@"),
        Step::Last => f.write_str("last"),
        Step::Binary(operator, left, right) => {
            let outer = firmness(step);
            f.write_str(open)?;
            operand(f, left, outer)?;
            write!(f, " {} ", operator.symbol())?;
            operand(f, right, outer)?;
            f.write_str(close)
        }
        Step::Sign(negates, of) => {
            f.write_str(open)?;
            f.write_str(if *negates { "-" } else { "+" })?;
            operand(f, of, firmness(step))?;
            f.write_str(close)
        }
        Step::Not(of) => {
            f.write_str("!(")?;
            steps(f, of, false)?;
            f.write_str(")")
        }
        Step::IsUnknown(of) => {
            f.write_str("(")?;
            steps(f, of, false)?;
            f.write_str(") is unknown")
        }
        Step::Exists(of) => {
            f.write_str("exists (")?;
            steps(f, of, false)?;
            f.write_str(")")
        }
        Step::LikeRegex {
            subject,
            pattern,
            flags,
        } => {
            f.write_str(open)?;
            operand(f, subject, 6)?;
            f.write_str(" like_regex ")?;
            quoted(f, pattern)?;
            if !flags.is_empty() {
                write!(f, " flag \"{flags}\"")?;
            }
            f.write_str(close)
        }
        Step::AnyElement => f.write_str("[*]"),
        Step::AnyMember => f.write_str(".*"),
        Step::Member(key) => {
            f.write_str(".")?;
            quoted(f, key)
        }
        Step::Elements(subscripts) => {
            f.write_str("[")?;
            for (at, (from, to)) in subscripts.iter().enumerate() {
                if at > 0 {
                    f.write_str(",")?;
                }
                steps(f, from, false)?;
                if let Some(to) = to {
                    f.write_str(" to ")?;
                    steps(f, to, false)?;
                }
            }
            f.write_str("]")
        }
        Step::Levels {
            first: Some(0),
            last: None,
        } => f.write_str(".**"),
        Step::Levels { first, last } => {
            f.write_str(".**{")?;
            level(f, *first)?;
            if first != last {
                f.write_str(" to ")?;
                level(f, *last)?;
            }
            f.write_str("}")
        }
        Step::Method(method) => write!(f, ".{}()", method.name()),
        Step::Filter(of) => {
            f.write_str("?(")?;
            steps(f, of, false)?;
            f.write_str(")")
        }
    }
}
