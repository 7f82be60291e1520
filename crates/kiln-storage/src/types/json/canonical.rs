//! The one text of a JSONB value.

use std::borrow::Cow;

use super::reader::{Json, Node, read, unescape};
use super::write::quote;
use crate::error::{Error, Result, SqlState};

/// The most bytes of a JSONB value, as in PostgreSQL.
const BYTES_MAX: usize = 0x0fff_ffff;

/// Digits before and behind the point of a number that PostgreSQL's NUMERIC has, at most.
const WHOLE_DIGITS_MAX: i64 = 131_072;
const FRACTION_DIGITS_MAX: i64 = 16_383;

/// The canonical text of the JSONB value that `text` writes.
///
/// # Errors
/// Those of [`read`] and [`unescape`]; 22003 for a number with too many digits, 54000 for a value
/// that is too large.
pub fn canonical(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    append(&read(text)?, &mut out)?;
    Ok(out)
}

/// Appends the canonical text of a value.
pub(super) fn append(value: &Json<'_>, out: &mut String) -> Result<()> {
    match &value.node {
        Node::Null | Node::Boolean(_) => out.push_str(value.text),
        Node::Number => append_number(value.text, out)?,
        Node::String(raw) => quote(&unescape(raw)?, out),
        Node::Array(elements) => {
            out.push('[');
            for (position, element) in elements.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                append(element, out)?;
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (position, (key, value)) in ordered(members)?.into_iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                quote(&key, out);
                out.push_str(": ");
                append(value, out)?;
            }
            out.push('}');
        }
    }
    check_size(out)
}

fn check_size(out: &str) -> Result<()> {
    if out.len() <= BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("total size of jsonb object elements exceeds the maximum of {BYTES_MAX} bytes");
    Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

/// The members in the order of JSONB; of those with one key, the last.
fn ordered<'a, 'b>(
    members: &'b [(&'a str, Json<'a>)],
) -> Result<Vec<(Cow<'a, str>, &'b Json<'a>)>> {
    let mut ordered = Vec::with_capacity(members.len());
    // The latest comes first, so that it is the one that stays.
    for (key, value) in members.iter().rev() {
        ordered.push((unescape(key)?, value));
    }
    ordered
        .sort_by(|(one, _), (other, _)| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    let mut dropped = Vec::new();
    ordered.dedup_by(|(later, value), (kept, _)| {
        let is_same = later == kept;
        dropped.extend(is_same.then_some(*value));
        is_same
    });
    // What goes has to be a value all the same.
    for value in dropped {
        append(value, &mut String::new())?;
    }
    Ok(ordered)
}

/// A number of JSON written out, as NUMERIC prints it: `-1.50e2` is `-150`.
///
/// # Errors
/// 22003 for one with more digits than a NUMERIC of PostgreSQL has.
pub fn normal_number(text: &str) -> Result<String> {
    let mut out = String::new();
    append_number(text, &mut out)?;
    Ok(out)
}

fn append_number(text: &str, out: &mut String) -> Result<()> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", text),
    };
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let digits = [whole, fraction].concat();
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let is_zero = leading == digits.len();
    // Where the point is among the digits, and how many digits are behind it.
    let point = whole.len() as i64 + exponent.clamp(-(1 << 40), 1 << 40);
    let scale = (digits.len() as i64 - point).max(0);
    if !is_zero && point - leading as i64 > WHOLE_DIGITS_MAX || scale > FRACTION_DIGITS_MAX {
        let message = "value overflows numeric format";
        return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    if !is_zero {
        out.push_str(sign);
    }
    let zeroes = |count: i64, out: &mut String| (0..count).for_each(|_| out.push('0'));
    if is_zero || point <= leading as i64 {
        out.push('0');
    } else {
        let end = (point as usize).min(digits.len());
        out.push_str(&digits[leading..end]);
        zeroes(point - digits.len() as i64, out);
    }
    if scale > 0 {
        out.push('.');
        zeroes(-point, out);
        let behind = point.max(0) as usize;
        out.push_str(&digits[behind.min(digits.len())..]);
    }
    check_size(out)
}
