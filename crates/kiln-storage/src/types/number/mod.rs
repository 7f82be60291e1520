//! NUMERIC in all of PostgreSQL's range: 131,072 digits before the point and 16,383 after it, NaN
//! and the infinities.
//!
//! Nearly every number of a database is a [`Decimal`], which has two words and its own arithmetic.
//! A [`Number`] is any other one, and what a computation with one gives; it allocates. A value that
//! a [`Decimal`] can hold is one wherever values are kept ([`Number::to_decimal`]), so that two
//! forms never stand for the same digits and scale.
//!
//! The scale of each result follows PostgreSQL's rules, and so do the results of NaN and of the
//! infinities: NaN equals itself and is greater than every other number.

mod arithmetic;
mod bytes;
mod logarithm;
mod text;

pub(super) use arithmetic::field_overflow;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use num_bigint::{BigInt, BigUint, Sign};

use super::Decimal;
use super::double::parse_double;
use crate::error::{Error, Result, SqlState};

/// Digits before the point, at most.
const WHOLE_DIGITS_MAX: i64 = 131_072;

/// The largest scale of a number.
pub(super) const SCALE_MAX: i64 = 16_383;

/// The largest scale that quotients, roots and logarithms are given.
const RESULT_SCALE_MAX: i64 = 1_000;

/// The significant digits that these have at least.
const SIGNIFICANT_DIGITS_MIN: i64 = 16;

/// PostgreSQL computes in digits of base 10,000; scales of some results follow from those.
const DIGITS_PER_GROUP: i64 = 4;

/// Any NUMERIC; see the [module](self).
///
/// Comparison, equality and hash are by value: `1.0 == 1.00`. The variants are in their order.
#[derive(Clone, Debug)]
pub enum Number {
    /// Less than every other number.
    NegativeInfinity,
    /// A number with digits.
    Finite(Finite),
    /// Greater than every other number but NaN.
    Infinity,
    /// Equal to itself, and greater than every other number.
    NaN,
}

/// `digits / 10^scale`.
#[derive(Clone, Debug)]
pub struct Finite {
    digits: BigInt,
    scale: u16,
}

#[cold]
fn overflow() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

/// `10^exponent`.
fn power_of_ten(exponent: i64) -> BigUint {
    BigUint::from(10_u8).pow(u32::try_from(exponent).unwrap_or(0))
}

/// Bounds of the decimal digits of a number, mostly the same: a double says its logarithm to nine
/// digits behind the point. Zero has none.
fn length_bounds(value: &BigUint) -> (i64, i64) {
    let bits = value.bits();
    if bits == 0 {
        return (0, 0);
    }
    let dropped = bits.saturating_sub(64);
    let leading = u64::try_from(value >> dropped).unwrap_or(u64::MAX) as f64;
    let logarithm = leading.log10() + dropped as f64 * std::f64::consts::LOG10_2;
    let error = 1e-9;
    let length = |logarithm: f64| logarithm.max(0.0).floor() as i64 + 1;
    (length(logarithm - error), length(logarithm + error))
}

/// The decimal digits of a number that is not zero; 0 for zero.
fn decimal_length(value: &BigUint) -> i64 {
    match length_bounds(value) {
        (least, most) if least == most => least,
        // It is near a power of ten.
        (least, most) => match *value >= power_of_ten(least) {
            true => most,
            false => least,
        },
    }
}

/// `dividend / divisor` rounded half away from zero; the divisor is positive.
fn divide_rounded(dividend: &BigInt, divisor: &BigUint) -> BigInt {
    let (sign, magnitude) = (dividend.sign(), dividend.magnitude());
    let quotient = (magnitude * 2_u8 + divisor) / (divisor * 2_u8);
    BigInt::from_biguint(sign, quotient)
}

impl Finite {
    fn new(digits: BigInt, scale: i64) -> Finite {
        let scale = u16::try_from(scale).unwrap_or(u16::MAX);
        Finite { digits, scale }
    }

    fn zero(scale: i64) -> Finite {
        Finite::new(BigInt::ZERO, scale)
    }

    fn scale(&self) -> i64 {
        i64::from(self.scale)
    }

    fn is_zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    fn is_negative(&self) -> bool {
        self.digits.sign() == Sign::Minus
    }

    /// The exponent in base 10 of the first digit; 0 for zero.
    fn exponent(&self) -> i64 {
        match self.is_zero() {
            true => 0,
            false => decimal_length(self.digits.magnitude()) - 1 - self.scale(),
        }
    }

    /// The number with PostgreSQL's limits.
    fn checked(self) -> Result<Number> {
        let (_, length_max) = length_bounds(self.digits.magnitude());
        let may_be_long = length_max - self.scale() > WHOLE_DIGITS_MAX;
        if self.scale() > SCALE_MAX || may_be_long && self.exponent() >= WHOLE_DIGITS_MAX {
            return Err(overflow());
        }
        Ok(Number::Finite(self))
    }

    /// The digits at a scale that is not smaller than its own.
    fn raised(&self, scale: i64) -> BigInt {
        match scale - self.scale() {
            0 => self.digits.clone(),
            by => &self.digits * BigInt::from(power_of_ten(by)),
        }
    }

    /// Rounded to `places`, which may be below zero.
    fn rounded(&self, places: i64) -> Finite {
        self.to_places(places, divide_rounded)
    }

    fn to_places(&self, places: i64, divide: impl Fn(&BigInt, &BigUint) -> BigInt) -> Finite {
        if places >= self.scale() {
            return Finite::new(self.raised(places), places);
        }
        // The number is less than a tenth of the last place.
        if self.exponent() + 1 < -places {
            return Finite::zero(places.max(0));
        }
        let digits = divide(&self.digits, &power_of_ten(self.scale() - places));
        match places {
            0.. => Finite::new(digits, places),
            _ => Finite::new(digits * BigInt::from(power_of_ten(-places)), 0),
        }
    }

    /// Without zeros at the end after the point.
    fn normalized(&self) -> Finite {
        if self.is_zero() {
            return Finite::zero(0);
        }
        let (mut digits, mut scale) = (self.digits.clone(), self.scale());
        // Halves of what may be left: a few divisions instead of one a digit.
        let mut step = (scale as u64).next_power_of_two() as i64;
        while step > 0 {
            if step <= scale {
                let power = BigInt::from(power_of_ten(step));
                if (&digits % &power).sign() == Sign::NoSign {
                    digits /= power;
                    scale -= step;
                    continue;
                }
            }
            step /= 2;
        }
        Finite::new(digits, scale)
    }

    fn compare(&self, other: &Finite) -> Ordering {
        let signs = (self.digits.sign()).cmp(&other.digits.sign());
        if signs.is_ne() || self.is_zero() {
            return signs;
        }
        let scale = self.scale().max(other.scale());
        self.raised(scale).cmp(&other.raised(scale))
    }
}

impl Number {
    /// Zero, with scale 0.
    pub const ZERO: Number = Number::Finite(Finite {
        digits: BigInt::ZERO,
        scale: 0,
    });

    fn from_finite(digits: BigInt, scale: i64) -> Number {
        Number::Finite(Finite::new(digits, scale))
    }

    /// The same number in two words, if it has as few digits as that.
    pub fn to_decimal(&self) -> Option<Decimal> {
        let Number::Finite(Finite { digits, scale }) = self else {
            return None;
        };
        let mantissa = i128::try_from(digits).ok()?;
        Decimal::new(mantissa, u8::try_from(*scale).ok()?).ok()
    }

    /// Whether it is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Number::NaN)
    }

    /// Whether it is neither NaN nor infinite.
    pub fn is_finite(&self) -> bool {
        matches!(self, Number::Finite(_))
    }

    /// Whether it is zero, of whatever scale.
    pub fn is_zero(&self) -> bool {
        matches!(self, Number::Finite(finite) if finite.is_zero())
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        match self {
            Number::NegativeInfinity => true,
            Number::Finite(finite) => finite.is_negative(),
            Number::Infinity | Number::NaN => false,
        }
    }

    /// The infinity of a sign.
    fn infinity(is_negative: bool) -> Number {
        match is_negative {
            true => Number::NegativeInfinity,
            false => Number::Infinity,
        }
    }

    /// -1, 0 or 1; 1 for NaN too, which is never asked.
    fn sign(&self) -> i8 {
        match self {
            _ if self.is_zero() => 0,
            _ if self.is_negative() => -1,
            _ => 1,
        }
    }

    /// The digits after the point; `None` for NaN and infinities.
    pub fn scale(&self) -> Option<u16> {
        match self {
            Number::Finite(finite) => Some(finite.scale),
            _ => None,
        }
    }

    /// The fewest digits after the point that hold the value exactly; `None` for NaN and the
    /// infinities.
    pub fn min_scale(&self) -> Option<u16> {
        match self {
            Number::Finite(finite) => Some(finite.normalized().scale),
            _ => None,
        }
    }

    /// The value without trailing zeros after the point.
    #[must_use]
    pub fn normalize(&self) -> Number {
        match self {
            Number::Finite(finite) => Number::Finite(finite.normalized()),
            other => other.clone(),
        }
    }

    /// Rounded half away from zero to an integer of 64 bits.
    ///
    /// # Errors
    /// 22003, `bigint out of range`, and 0A000 for NaN and infinities.
    pub fn to_i64(&self) -> Result<i64> {
        self.to_integer("bigint")
    }

    /// Rounded half away from zero to an integer of 32 bits.
    ///
    /// # Errors
    /// 22003, `integer out of range`, and 0A000 for NaN and infinities.
    pub fn to_i32(&self) -> Result<i32> {
        self.to_integer("integer")
    }

    /// Rounded half away from zero to an integer of 16 bits.
    ///
    /// # Errors
    /// 22003, `smallint out of range`, and 0A000 for NaN and infinities.
    pub fn to_i16(&self) -> Result<i16> {
        self.to_integer("smallint")
    }

    fn to_integer<T: TryFrom<i64>>(&self, type_name: &str) -> Result<T> {
        let finite = match self {
            Number::Finite(finite) => finite,
            Number::NaN => {
                let message = format!("cannot convert NaN to {type_name}");
                return Err(Error::unsupported(message));
            }
            _ => {
                let message = format!("cannot convert infinity to {type_name}");
                return Err(Error::unsupported(message));
            }
        };
        let whole = i64::try_from(finite.rounded(0).digits).ok();
        let whole = whole.and_then(|whole| T::try_from(whole).ok());
        whole.ok_or_else(|| Error::out_of_range(type_name))
    }

    /// The nearest double.
    ///
    /// # Errors
    /// 22003 for a number beyond the range of doubles.
    pub fn to_f64(&self) -> Result<f64> {
        match self {
            Number::NegativeInfinity => Ok(f64::NEG_INFINITY),
            Number::Infinity => Ok(f64::INFINITY),
            Number::NaN => Ok(f64::NAN),
            Number::Finite(_) => parse_double(&self.to_string()),
        }
    }

    /// A double as PostgreSQL casts it: rounded to 15 significant digits, without trailing zeros.
    ///
    /// # Errors
    /// None in practice: every double has so many digits.
    pub fn from_f64(value: f64) -> Result<Number> {
        if value.is_nan() {
            return Ok(Number::NaN);
        }
        if value.is_infinite() {
            return Ok(Number::infinity(value < 0.0));
        }
        let text = format!("{value:.14e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        Number::parse(&format!("{digits}e{exponent}"))
    }

    /// An estimate that is exact to some fifteen digits, infinite beyond the range of doubles.
    fn estimate(&self) -> f64 {
        match self {
            Number::Finite(finite) => {
                let (mantissa, exponent) = finite.leading_digits();
                mantissa * 10_f64.powi(exponent.clamp(-20_000, 200_000) as i32)
            }
            Number::NegativeInfinity => f64::NEG_INFINITY,
            Number::Infinity => f64::INFINITY,
            Number::NaN => f64::NAN,
        }
    }
}

impl Finite {
    /// `mantissa * 10^exponent` is the number to seventeen digits.
    fn leading_digits(&self) -> (f64, i64) {
        let length = decimal_length(self.digits.magnitude());
        let dropped = (length - 17).max(0);
        let leading = self.digits.magnitude() / power_of_ten(dropped);
        let leading = u64::try_from(leading).unwrap_or(u64::MAX) as f64;
        let leading = if self.is_negative() {
            -leading
        } else {
            leading
        };
        (leading, dropped - self.scale())
    }
}

impl Finite {
    /// The exponent in base 10 of the place before the first digit that is not zero, and the
    /// digits from that on, without zeros at their end: what keys have.
    pub(crate) fn key_digits(&self) -> (i32, Vec<u8>) {
        let mut digits = self.digits.magnitude().to_radix_be(10);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let exponent = match digits.is_empty() {
            true => 0,
            false => self.exponent() + 1,
        };
        (exponent as i32, digits)
    }
}

impl From<Decimal> for Number {
    fn from(value: Decimal) -> Number {
        Number::from_finite(value.mantissa().into(), value.scale().into())
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::from_finite(value.into(), 0)
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        let rank = |number: &Number| match number {
            Number::NegativeInfinity => 0,
            Number::Finite(_) => 1,
            Number::Infinity => 2,
            Number::NaN => 3,
        };
        match (self, other) {
            (Number::Finite(one), Number::Finite(other)) => one.compare(other),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl Hash for Number {
    /// That of the [`Decimal`] for a value that one can have.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let normal = self.normalize();
        match normal.to_decimal() {
            Some(decimal) => decimal.hash(state),
            None => {
                let mut bytes = Vec::new();
                normal.append_bytes_to(&mut bytes);
                state.write(&bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests;
