//! Decimal numbers to and from text.

use std::fmt;
use std::str::FromStr;

use super::{Decimal, SCALE_MAX, not_finite, overflow, scale_up};
use crate::error::{Error, Result};

impl Decimal {
    /// Reads what PostgreSQL accepts as NUMERIC: blanks around, a sign, digits with an optional
    /// point, an exponent. The scale is the number of digits after the point, less the exponent.
    ///
    /// # Errors
    /// 22P02 for anything else, 0A000 for NaN and Infinity, 22003 when it does not fit.
    pub fn parse(text: &str) -> Result<Decimal> {
        let invalid = || Error::invalid_input("numeric", text);
        let trimmed = text.trim_ascii();
        let (negative, unsigned) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let named = |name: &str| unsigned.eq_ignore_ascii_case(name);
        if named("infinity") || named("inf") || trimmed.eq_ignore_ascii_case("nan") {
            return Err(not_finite());
        }

        let bytes = unsigned.as_bytes();
        let mut at = 0;
        let mut mantissa: i128 = 0;
        let mut fits = true;
        let mut digits = 0;
        let mut places: i64 = 0;
        let mut after_point = false;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    digits += 1;
                    places += i64::from(after_point);
                    let next = scale_up(mantissa, 1).map(|sum| sum + i128::from(byte - b'0'));
                    match next {
                        Some(next) if next <= i128::MAX / 16 => mantissa = next,
                        _ => fits = false,
                    }
                }
                b'.' if !after_point => after_point = true,
                _ => break,
            }
            at += 1;
        }
        if digits == 0 {
            return Err(invalid());
        }
        let mut exponent: i64 = 0;
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            let exponent_negative = match bytes.get(at) {
                Some(b'-') => {
                    at += 1;
                    true
                }
                Some(b'+') => {
                    at += 1;
                    false
                }
                _ => false,
            };
            let start = at;
            while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
                exponent = (exponent * 10 + i64::from(digit - b'0')).min(1 << 40);
                at += 1;
            }
            if at == start {
                return Err(invalid());
            }
            if exponent_negative {
                exponent = -exponent;
            }
        }
        if at != bytes.len() {
            return Err(invalid());
        }
        if !fits {
            return Err(overflow());
        }

        let signed = if negative { -mantissa } else { mantissa };
        let scale = places - exponent;
        if scale > i64::from(SCALE_MAX) {
            return Err(overflow());
        }
        if scale >= 0 {
            return Decimal::new(signed, scale as u8);
        }
        let raised = scale_up(signed, (-scale).min(255) as u8).ok_or_else(overflow)?;
        Decimal::new(raised, 0)
    }

    /// Appends the number as PostgreSQL prints it: all digits of its scale, no exponent.
    pub fn write_to(self, out: &mut String) {
        let mut buffer = [0; BUFFER];
        out.push_str(self.format_into(&mut buffer));
    }

    /// Writes the digits from the buffer's end backwards.
    fn format_into(self, buffer: &mut [u8; BUFFER]) -> &str {
        let mut rest = self.mantissa().unsigned_abs();
        let scale = self.scale() as usize;
        let mut at = BUFFER;
        let mut written = 0;
        // A digit a step costs a division of 128 bits only while the number needs it.
        while rest > 0 || written <= scale {
            if written == scale && scale > 0 {
                at -= 1;
                buffer[at] = b'.';
            }
            let digit = if let Ok(small) = u64::try_from(rest) {
                rest = u128::from(small / 10);
                (small % 10) as u8
            } else {
                let digit = (rest % 10) as u8;
                rest /= 10;
                digit
            };
            at -= 1;
            buffer[at] = b'0' + digit;
            written += 1;
        }
        if self.is_negative() {
            at -= 1;
            buffer[at] = b'-';
        }
        // Only ASCII was written.
        std::str::from_utf8(&buffer[at..]).unwrap_or_default()
    }
}

/// Room for 34 digits or a scale of 63 with a leading zero, the point and the sign.
const BUFFER: usize = 72;

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; BUFFER];
        f.pad(self.format_into(&mut buffer))
    }
}

impl FromStr for Decimal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Decimal> {
        Decimal::parse(text)
    }
}
