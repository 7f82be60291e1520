//! Numbers to and from text.

use std::fmt;
use std::str::FromStr;

use num_bigint::{BigInt, BigUint, Sign};

use super::{Finite, Number, SCALE_MAX, WHOLE_DIGITS_MAX, overflow, power_of_ten};
use crate::error::{Error, Result};

impl Number {
    /// Reads what PostgreSQL accepts as NUMERIC: blanks around, a sign, digits with an optional
    /// point, an exponent; `NaN`, `Infinity` and `inf` with a sign. The scale is the number of
    /// digits after the point, less the exponent.
    ///
    /// # Errors
    /// 22P02 for anything else, 22003 beyond PostgreSQL's limits.
    pub fn parse(text: &str) -> Result<Number> {
        let invalid = || Error::invalid_input("numeric", text);
        let trimmed = text.trim_ascii();
        let (is_negative, unsigned) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let named = |name: &str| unsigned.eq_ignore_ascii_case(name);
        if named("infinity") || named("inf") {
            return Ok(Number::infinity(is_negative));
        }
        if trimmed.eq_ignore_ascii_case("nan") {
            return Ok(Number::NaN);
        }

        let is_exponent = |byte: &u8| matches!(byte, b'e' | b'E');
        let end = unsigned.bytes().position(|byte| is_exponent(&byte));
        let (mantissa, exponent) = match end {
            Some(at) => (&unsigned[..at], read_exponent(&unsigned[at + 1..])),
            None => (unsigned, Some(0)),
        };
        let exponent = exponent.ok_or_else(invalid)?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
            return Err(invalid());
        }

        let scale = fraction.len() as i64 - exponent;
        let digits: Vec<u8> = (whole.bytes().chain(fraction.bytes()))
            .map(|byte| byte - b'0')
            .skip_while(|digit| *digit == 0)
            .collect();
        // What has no place is refused before anything is computed with it.
        let whole_digits = digits.len() as i64 - scale;
        if scale > SCALE_MAX || !digits.is_empty() && whole_digits > WHOLE_DIGITS_MAX {
            return Err(overflow());
        }
        let magnitude = match digits.is_empty() {
            true => BigUint::ZERO,
            false => BigUint::from_radix_be(&digits, 10).ok_or_else(invalid)?,
        };
        let magnitude = match scale {
            ..0 if !digits.is_empty() => magnitude * power_of_ten(-scale),
            _ => magnitude,
        };
        let sign = if is_negative { Sign::Minus } else { Sign::Plus };
        Finite::new(BigInt::from_biguint(sign, magnitude), scale.max(0)).checked()
    }

    /// Appends the number as PostgreSQL prints it: all digits of its scale, no exponent.
    pub fn write_to(&self, out: &mut String) {
        let finite = match self {
            Number::NegativeInfinity => return out.push_str("-Infinity"),
            Number::Infinity => return out.push_str("Infinity"),
            Number::NaN => return out.push_str("NaN"),
            Number::Finite(finite) => finite,
        };
        if finite.is_negative() {
            out.push('-');
        }
        let digits = finite.digits.magnitude().to_str_radix(10);
        let scale = usize::from(finite.scale);
        let missing = (scale + 1).saturating_sub(digits.len());
        let padded = "0".repeat(missing) + &digits;
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        out.push_str(whole);
        if scale > 0 {
            out.push('.');
            out.push_str(fraction);
        }
    }
}

/// The exponent behind the `e`, within what can matter; `None` when it is none.
fn read_exponent(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exponent = digits.bytes().fold(0_i64, |exponent, byte| {
        (exponent * 10 + i64::from(byte - b'0')).min(1 << 40)
    });
    Some(if is_negative { -exponent } else { exponent })
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_to(&mut text);
        f.pad(&text)
    }
}

impl FromStr for Number {
    type Err = Error;

    fn from_str(text: &str) -> Result<Number> {
        Number::parse(text)
    }
}
