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
    with_exponent_from(&shortest_digits(value), 15)
}

/// A double with `extra_float_digits`: above 0 as [`format_double`], else with so many digits more
/// than the 15 that every number of so many digits keeps, zeros at the end left out.
pub fn format_double_in(value: f64, float_digits: i8) -> String {
    match float_digits > 0 || !value.is_finite() {
        true => format_double(value),
        false => with_digits(value, (15 + i32::from(float_digits)).max(1)),
    }
}

/// The same of a REAL, of 6 digits.
pub fn format_real_in(value: f64, float_digits: i8) -> String {
    match float_digits > 0 || !value.is_finite() {
        true => format_real(value),
        false => with_digits(value, (6 + i32::from(float_digits)).max(1)),
    }
}

/// So many significant digits, as C prints them by `%g`.
fn with_digits(value: f64, digits: i32) -> String {
    let places = digits as usize - 1;
    let scientific = format!("{value:.places$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    with_exponent_from(&format!("{mantissa}e{exponent}"), digits)
}

/// A REAL as PostgreSQL prints it: as [`format_double`], with the digits of 32 bits and an exponent
/// from 1e6 on.
pub fn format_real(value: f64) -> String {
    if !value.is_finite() {
        return format_double(value);
    }
    with_exponent_from(&format!("{:e}", value as f32), 6)
}

/// The REAL that is nearest to a double.
///
/// # Errors
/// 22003 for one that is too great, or too small, for a REAL.
pub fn narrowed(value: f64) -> Result<f64> {
    let narrow = value as f32;
    let lost = if narrow.is_infinite() && value.is_finite() {
        "overflow"
    } else if narrow == 0.0 && value != 0.0 {
        "underflow"
    } else {
        return Ok(narrow.into());
    };
    Err(Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value out of range: {lost}"),
    ))
}

/// Digits in scientific notation as they are printed: with the exponent only below 1e-4, and from
/// that power of ten on.
fn with_exponent_from(scientific: &str, limit: i32) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..limit).contains(&exponent) {
        return without_exponent(digits, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The shortest digits in scientific notation, as PostgreSQL chooses them.
///
/// Rust's shortest digits differ in two rare cases: PostgreSQL does not use a number exactly
/// between two doubles, although reading it back would round to the right one, and of two
/// equally near candidates it takes the even one.
fn shortest_digits(value: f64) -> String {
    let shortest = format!("{value:e}");
    let places = shortest
        .split('e')
        .next()
        .unwrap_or_default()
        .trim_start_matches('-')
        .len();
    // Digits after the first one; the point is one of the characters.
    let mut places = places.saturating_sub(2);
    // So few digits are nearest without doubt, and exact in the binary numbers below 2^53.
    if places < 14 && value.abs() < 9e15 {
        return shortest;
    }
    // A candidate of 17 digits always reads back.
    while places <= 16 {
        let nearest = format!("{value:.places$e}");
        if reads_back(&nearest, value) {
            return nearest;
        }
        // Next to a power of two the nearest candidate may belong to the other side.
        if shortest.len() == nearest.len() && reads_back(&shortest, value) {
            return shortest;
        }
        places += 1;
    }
    shortest
}

/// Whether the number, and both numbers a hair beside it, read back as `value`.
fn reads_back(candidate: &str, value: f64) -> bool {
    let (digits, exponent) = candidate.split_once('e').unwrap_or((candidate, "0"));
    let point = if digits.contains('.') { "" } else { "." };
    let above = format!("{digits}{point}{:025}e{exponent}", 1);
    let same = |text: &str| text.parse::<f64>().is_ok_and(|read| read == value);
    if !same(candidate) || !same(&above) {
        return false;
    }
    // One unit of the last digit less, then nines.
    let mut lower = digits.as_bytes().to_vec();
    for byte in lower.iter_mut().rev() {
        match byte {
            b'0' => *byte = b'9',
            b'1'..=b'9' => {
                *byte -= 1;
                break;
            }
            _ => {}
        }
    }
    let below = format!(
        "{}{point}{:9<25}e{exponent}",
        String::from_utf8_lossy(&lower),
        ""
    );
    same(&below)
}

/// Digits in scientific notation, `1.25`, moved to the point that the exponent says.
fn without_exponent(digits: &str, exponent: i32) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", digits),
    };
    let all = digits.replace('.', "");
    if exponent < 0 {
        return format!("{sign}0.{}{all}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    match all.split_at_checked(whole) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{all:0<whole$}"),
    }
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
