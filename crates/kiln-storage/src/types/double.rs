//! DOUBLE PRECISION: text in and out, and PostgreSQL's total order.

use std::cmp::Ordering;

use crate::error::{Error, Result, SqlState};

/// A double as PostgreSQL prints it: the shortest digits that read back as the same number, with
/// an exponent below 1e-4 and from 1e15 on.
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..15).contains(&exponent) {
        // Without an exponent Rust prints the same shortest digits.
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Reads a double as PostgreSQL does: blanks around, `NaN`, `Infinity` and `inf` in any case.
///
/// # Errors
/// 22P02 for anything else, 22003 when the number is too large or too small for a double.
pub fn parse_double(text: &str) -> Result<f64> {
    let trimmed = text.trim_ascii();
    let invalid = || Error::invalid_input("double precision", text);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let named = ["infinity", "inf", "nan"]
        .iter()
        .any(|name| unsigned.eq_ignore_ascii_case(name));
    // Rust's parser admits what PostgreSQL's does, and no more than that here.
    let numeric = unsigned
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !named && !numeric {
        return Err(invalid());
    }
    let value: f64 = trimmed.parse().map_err(|_| invalid())?;
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let nonzero_digits = mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if !named && (value.is_infinite() || (value == 0.0 && nonzero_digits)) {
        return Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{trimmed}\" is out of range for type double precision"),
        ));
    }
    Ok(value)
}

/// PostgreSQL's order of doubles: NaN equals itself and is above everything, -0 equals 0.
#[inline]
pub fn compare_doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}
