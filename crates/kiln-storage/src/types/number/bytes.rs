//! Numbers as bytes, for heaps, rows and logs: a byte that says what it is (0 a number above or
//! equal to zero, 1 one below, 2 NaN, 3 Infinity, 4 -Infinity), and of numbers with digits the
//! scale (2, little-endian) and the digits as one integer (little-endian, without zeros at its
//! end).

use num_bigint::{BigInt, BigUint, Sign};

use super::{Finite, Number};

const POSITIVE: u8 = 0;
const NEGATIVE: u8 = 1;
const NAN: u8 = 2;
const INFINITY: u8 = 3;
const NEGATIVE_INFINITY: u8 = 4;

impl Number {
    /// Appends the number's bytes.
    pub fn append_bytes_to(&self, bytes: &mut Vec<u8>) {
        let finite = match self {
            Number::NegativeInfinity => return bytes.push(NEGATIVE_INFINITY),
            Number::Infinity => return bytes.push(INFINITY),
            Number::NaN => return bytes.push(NAN),
            Number::Finite(finite) => finite,
        };
        bytes.push(match finite.is_negative() {
            true => NEGATIVE,
            false => POSITIVE,
        });
        bytes.extend_from_slice(&finite.scale.to_le_bytes());
        if !finite.is_zero() {
            bytes.extend_from_slice(&finite.digits.magnitude().to_bytes_le());
        }
    }

    /// The number that has these bytes; `None` for bytes that no number has.
    pub fn from_bytes(bytes: &[u8]) -> Option<Number> {
        let (kind, rest) = bytes.split_first()?;
        let is_negative = match (*kind, rest) {
            (POSITIVE, _) => false,
            (NEGATIVE, _) => true,
            (NAN, []) => return Some(Number::NaN),
            (INFINITY, []) => return Some(Number::Infinity),
            (NEGATIVE_INFINITY, []) => return Some(Number::NegativeInfinity),
            _ => return None,
        };
        let (scale, magnitude) = rest.split_first_chunk::<2>()?;
        // One form for each number: no zeros at the end, and no zero below zero.
        if magnitude.last() == Some(&0) || is_negative && magnitude.is_empty() {
            return None;
        }
        let sign = match (magnitude.is_empty(), is_negative) {
            (true, _) => Sign::NoSign,
            (false, true) => Sign::Minus,
            (false, false) => Sign::Plus,
        };
        let digits = BigInt::from_biguint(sign, BigUint::from_bytes_le(magnitude));
        let scale = u16::from_le_bytes(*scale);
        Finite { digits, scale }.checked().ok()
    }
}
