//! Exact decimal numbers with PostgreSQL's NUMERIC semantics in two machine words.
//!
//! A [`Decimal`] is `mantissa / 10^scale`. The scale is part of the value as it is printed
//! (`1.50` and `1.5` are equal but print differently) and follows PostgreSQL's rules: sums keep
//! the larger scale, products add the scales, quotients have at least 16 significant digits,
//! rounding is half away from zero.
//!
//! What differs from PostgreSQL is the range: the mantissa has 112 bits with its sign, that is
//! every number of 33 digits, and the scale is at most 63. A result that does not fit is an
//! error of state 22003, never a rounded value: [`Number`] holds it then, and NaN and the
//! infinities.

mod divide;
mod logarithm;
mod text;
mod wide;

pub(in crate::types) use logarithm::{LOG10_E, invalid_logarithm, invalid_power};

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Neg;

use super::Number;
use super::number::field_overflow;
use crate::error::{Error, Result, SqlState};

/// The largest absolute mantissa, 2^111 - 1: a little more than 33 digits.
const MANTISSA_MAX: i128 = (1 << 111) - 1;

/// The largest scale.
const SCALE_MAX: u8 = 63;

/// `POWERS[k]` is `10^k`.
static POWERS: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut exponent = 1;
    while exponent < 39 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// An exact decimal number, 16 bytes; see the [module](self).
///
/// Comparison, equality and hash are by value: `1.0 == 1.00`.
#[derive(Clone, Copy, Default)]
pub struct Decimal {
    /// The mantissa's lower 64 bits.
    low: u64,
    /// Bits 16..64: the mantissa's upper 48 bits with the sign; bits 8..16: the scale; bits
    /// 0..8: zero.
    high: u64,
}

#[cold]
fn overflow() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
    .with_detail(
        "A Decimal holds at most 33 significant digits, of which at most 63 places are after the \
         decimal point; a Number holds every NUMERIC.",
    )
}

/// `dividend / divisor` rounded half away from zero. `divisor` is positive and below 2^127.
#[inline]
fn divide_rounded(dividend: i128, divisor: i128) -> i128 {
    // A division of 64 bits costs a fraction of one of 128.
    if let (Ok(small), Ok(divisor)) = (i64::try_from(dividend), u64::try_from(divisor)) {
        let magnitude = small.unsigned_abs();
        let (quotient, remainder) = (magnitude / divisor, magnitude % divisor);
        let rounded = i128::from(quotient) + i128::from(remainder >= divisor - remainder);
        return if small < 0 { -rounded } else { rounded };
    }
    let quotient = dividend / divisor;
    let remainder = (dividend % divisor).unsigned_abs();
    if remainder >= divisor.unsigned_abs() - remainder {
        quotient + dividend.signum()
    } else {
        quotient
    }
}

impl Decimal {
    /// Zero, with scale 0.
    pub const ZERO: Decimal = Decimal { low: 0, high: 0 };
    /// One, with scale 0.
    pub const ONE: Decimal = Decimal { low: 1, high: 0 };
    /// The largest value: 2^111 - 1.
    pub const MAX: Decimal = Decimal::from_parts(MANTISSA_MAX, 0);

    /// The value `mantissa / 10^scale`.
    ///
    /// # Errors
    /// 22003 when the mantissa exceeds 2^111 - 1 in absolute value or the scale exceeds 63.
    #[inline]
    pub fn new(mantissa: i128, scale: u8) -> Result<Decimal> {
        // One unsigned comparison covers both signs.
        if (mantissa.wrapping_add(MANTISSA_MAX) as u128) <= 2 * MANTISSA_MAX as u128
            && scale <= SCALE_MAX
        {
            Ok(Decimal::from_parts(mantissa, scale))
        } else {
            Err(overflow())
        }
    }

    #[inline]
    const fn from_parts(mantissa: i128, scale: u8) -> Decimal {
        Decimal {
            low: mantissa as u64,
            high: ((mantissa >> 64) as u64) << 16 | (scale as u64) << 8,
        }
    }

    /// The integer `value`, with scale 0.
    #[inline]
    pub const fn from_i64(value: i64) -> Decimal {
        Decimal::from_parts(value as i128, 0)
    }

    /// All digits as one integer: the value times `10^scale`.
    #[inline]
    pub const fn mantissa(self) -> i128 {
        ((self.high as i64 >> 16) as i128) << 64 | self.low as i128
    }

    /// The number of digits after the decimal point, 0 to 63.
    #[inline]
    pub const fn scale(self) -> u8 {
        (self.high >> 8) as u8
    }

    /// Two words `(low, high)` for a record: `low` is the mantissa's lower 64 bits; `high` holds
    /// its upper 48 bits, sign-extended, in bits 16..64, the scale in bits 8..16 and zero in bits
    /// 0..8, of which bit 0 is the NULL flag of a stored column.
    #[inline]
    pub const fn pack(self) -> (u64, u64) {
        (self.low, self.high)
    }

    /// The value that [`pack`](Decimal::pack) gave as these words; bits 0..8 of `high` are
    /// ignored. Words that no `pack` gave, such as halves of two values that a reader caught
    /// during a write, make some value or other on which every operation is defined.
    #[inline]
    pub const fn unpack(low: u64, high: u64) -> Decimal {
        // Masking the scale keeps it below 64 whatever the words.
        Decimal {
            low,
            high: high & 0xffff_ffff_ffff_3f00,
        }
    }

    /// Whether the value is zero, of whatever scale.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.low == 0 && self.high >> 16 == 0
    }

    /// Whether the value is below zero.
    #[inline]
    pub const fn is_negative(self) -> bool {
        (self.high as i64) < 0
    }

    /// Whether both have the same scale.
    #[inline]
    const fn same_scale(self, other: Decimal) -> bool {
        (self.high ^ other.high) & 0xff00 == 0
    }

    /// The order of two values of different scales.
    fn compare_aligned(self, other: Decimal) -> Ordering {
        match self.align(other) {
            Some((left, right, _)) => left.cmp(&right),
            // The operand of the smaller scale left 127 bits, so it is the larger in magnitude,
            // and it is not zero.
            None if self.scale() < other.scale() => {
                if self.is_negative() {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            None => {
                if other.is_negative() {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
        }
    }

    /// Both mantissas at the larger of the two scales, or `None` when one leaves 127 bits.
    fn align(self, other: Decimal) -> Option<(i128, i128, u8)> {
        let (left, right) = (self.mantissa(), other.mantissa());
        let (left_scale, right_scale) = (self.scale(), other.scale());
        match left_scale.cmp(&right_scale) {
            Ordering::Equal => Some((left, right, left_scale)),
            Ordering::Less => Some((
                scale_up(left, right_scale - left_scale)?,
                right,
                right_scale,
            )),
            Ordering::Greater => {
                Some((left, scale_up(right, left_scale - right_scale)?, left_scale))
            }
        }
    }

    /// The sum, at the larger of the two scales.
    ///
    /// # Errors
    /// 22003 when it does not fit.
    #[inline]
    pub fn try_add(self, other: Decimal) -> Result<Decimal> {
        if self.same_scale(other) {
            return Decimal::new(self.mantissa() + other.mantissa(), self.scale());
        }
        self.add_aligned(other)
    }

    fn add_aligned(self, other: Decimal) -> Result<Decimal> {
        // An operand beyond 127 bits cannot be brought back by the other one, which has 111.
        let (left, right, scale) = self.align(other).ok_or_else(overflow)?;
        Decimal::new(left.checked_add(right).ok_or_else(overflow)?, scale)
    }

    /// The difference, at the larger of the two scales.
    ///
    /// # Errors
    /// 22003 when it does not fit.
    #[inline]
    pub fn try_sub(self, other: Decimal) -> Result<Decimal> {
        self.try_add(-other)
    }

    /// The product, exact, at the sum of the scales.
    ///
    /// # Errors
    /// 22003 when it does not fit.
    #[inline]
    pub fn try_mul(self, other: Decimal) -> Result<Decimal> {
        let (left, right) = (self.mantissa(), other.mantissa());
        let scale = self.scale() + other.scale();
        if left == left as i64 as i128 && right == right as i64 as i128 {
            return Decimal::new(left * right, scale);
        }
        Decimal::new_product(left, right, scale)
    }

    fn new_product(left: i128, right: i128, scale: u8) -> Result<Decimal> {
        Decimal::new(left.checked_mul(right).ok_or_else(overflow)?, scale)
    }

    /// The absolute value.
    #[inline]
    #[must_use]
    pub fn abs(self) -> Decimal {
        if self.is_negative() { -self } else { self }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn signum(self) -> Decimal {
        Decimal::from_i64(self.mantissa().signum() as i64)
    }

    /// Rounded half away from zero to `places` digits after the point; below zero, to tens,
    /// hundreds and so on. More places than the value has are filled with zeros, as PostgreSQL's
    /// `round(value, places)` does.
    ///
    /// # Errors
    /// 22003 when the result does not fit.
    pub fn round(self, places: i32) -> Result<Decimal> {
        self.to_places(places, divide_rounded)
    }

    /// Cut off, towards zero, after `places` digits; otherwise like [`round`](Decimal::round).
    ///
    /// # Errors
    /// 22003 when the result does not fit.
    pub fn trunc(self, places: i32) -> Result<Decimal> {
        self.to_places(places, |dividend, divisor| dividend / divisor)
    }

    fn to_places(self, places: i32, divide: impl Fn(i128, i128) -> i128) -> Result<Decimal> {
        // PostgreSQL limits the places to what its own format can print.
        let places = places.clamp(-2000, 2000);
        let (mantissa, scale) = (self.mantissa(), i32::from(self.scale()));
        if places >= scale {
            if places > i32::from(SCALE_MAX) {
                return Err(overflow());
            }
            let raised = scale_up(mantissa, (places - scale) as u8).ok_or_else(overflow)?;
            return Decimal::new(raised, places as u8);
        }
        let dropped = (scale - places) as usize;
        // A divisor of 39 digits is more than twice any mantissa: everything rounds to zero.
        let quotient = POWERS
            .get(dropped)
            .map_or(0, |power| divide(mantissa, *power));
        if places >= 0 {
            return Decimal::new(quotient, places as u8);
        }
        let raised = if quotient == 0 {
            0
        } else {
            scale_up(quotient, (-places) as u8).ok_or_else(overflow)?
        };
        Decimal::new(raised, 0)
    }

    /// The smallest integer not below the value.
    ///
    /// # Errors
    /// None in practice: an integer part always fits.
    pub fn ceil(self) -> Result<Decimal> {
        let whole = self.trunc(0)?;
        if whole < self {
            whole.try_add(Decimal::ONE)
        } else {
            Ok(whole)
        }
    }

    /// The largest integer not above the value.
    ///
    /// # Errors
    /// None in practice: an integer part always fits.
    pub fn floor(self) -> Result<Decimal> {
        let whole = self.trunc(0)?;
        if whole > self {
            whole.try_sub(Decimal::ONE)
        } else {
            Ok(whole)
        }
    }

    /// The value as a column NUMERIC(`precision`, `scale`) stores it: rounded to `scale` places.
    ///
    /// # Errors
    /// 22003 with PostgreSQL's message and detail when more than `precision - scale` digits
    /// remain before the point.
    #[inline]
    pub fn rescale(self, precision: u16, scale: i16) -> Result<Decimal> {
        // Scales below zero round before the point, and leave no digits behind it.
        let rounded = if i16::from(self.scale()) == scale {
            self
        } else {
            self.round(i32::from(scale))?
        };
        if scale < 0 || scale as u16 > precision {
            return Number::from(rounded)
                .rescale(precision, scale)
                .and_then(|number| number.to_decimal().ok_or_else(overflow));
        }
        let fits = match POWERS.get(precision as usize) {
            Some(limit) => rounded.mantissa().unsigned_abs() < limit.unsigned_abs(),
            None => true,
        };
        if fits {
            Ok(rounded)
        } else {
            Err(field_overflow(precision, scale))
        }
    }

    /// The value without trailing zeros after the point.
    #[must_use]
    pub fn normalize(self) -> Decimal {
        let (mut mantissa, mut scale) = (self.mantissa(), self.scale());
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Decimal::from_parts(mantissa, scale)
    }

    /// The fewest digits after the point that hold the value exactly (PostgreSQL's `min_scale`).
    pub fn min_scale(self) -> u8 {
        if self.is_zero() {
            0
        } else {
            self.normalize().scale()
        }
    }

    /// Rounded half away from zero to an integer of 64 bits.
    ///
    /// # Errors
    /// 22003, `bigint out of range`.
    pub fn to_i64(self) -> Result<i64> {
        self.to_integer("bigint")
    }

    /// Rounded half away from zero to an integer of 32 bits.
    ///
    /// # Errors
    /// 22003, `integer out of range`.
    pub fn to_i32(self) -> Result<i32> {
        self.to_integer("integer")
    }

    /// Rounded half away from zero to an integer of 16 bits.
    ///
    /// # Errors
    /// 22003, `smallint out of range`.
    pub fn to_i16(self) -> Result<i16> {
        self.to_integer("smallint")
    }

    fn to_integer<T: TryFrom<i128>>(self, type_name: &str) -> Result<T> {
        let whole = if self.scale() == 0 {
            self
        } else {
            self.round(0)?
        };
        T::try_from(whole.mantissa()).map_err(|_| Error::out_of_range(type_name))
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        let (mantissa, scale) = (self.mantissa(), self.scale());
        // Both operands are exact doubles here, so that the quotient is correctly rounded.
        if mantissa.unsigned_abs() <= 1 << 53 && scale <= 22 {
            return mantissa as f64 / 10_f64.powi(i32::from(scale));
        }
        // The text of a number is always a valid number.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// A double as PostgreSQL casts it: rounded to 15 significant digits, without trailing zeros.
    ///
    /// # Errors
    /// 0A000 for NaN and infinities, 22003 when it does not fit.
    pub fn from_f64(value: f64) -> Result<Decimal> {
        if !value.is_finite() {
            return Err(not_finite());
        }
        let text = format!("{value:.14e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        Decimal::parse(&format!("{digits}e{exponent}"))
    }
}

/// `mantissa * 10^by`, or `None` when that leaves 127 bits.
#[inline]
fn scale_up(mantissa: i128, by: u8) -> Option<i128> {
    match POWERS.get(by as usize) {
        Some(power) if mantissa == mantissa as i64 as i128 && by <= 18 => {
            // Two factors of 64 bits: one multiplication without overflow.
            Some(mantissa * *power)
        }
        Some(power) => mantissa.checked_mul(*power),
        None => (mantissa == 0).then_some(0),
    }
}

#[cold]
fn not_finite() -> Error {
    Error::unsupported("NaN and Infinity are a Number, and no Decimal")
}

impl Neg for Decimal {
    type Output = Decimal;

    #[inline]
    fn neg(self) -> Decimal {
        Decimal::from_parts(-self.mantissa(), self.scale())
    }
}

impl Ord for Decimal {
    #[inline]
    fn cmp(&self, other: &Decimal) -> Ordering {
        if self.same_scale(*other) {
            // The lower 16 bits of the upper words are equal.
            return (self.high as i64, self.low).cmp(&(other.high as i64, other.low));
        }
        self.compare_aligned(*other)
    }
}

impl PartialOrd for Decimal {
    #[inline]
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    #[inline]
    fn eq(&self, other: &Decimal) -> bool {
        if self.same_scale(*other) {
            return self.low == other.low && self.high == other.high;
        }
        self.compare_aligned(*other).is_eq()
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let normal = if self.is_zero() {
            Decimal::ZERO
        } else {
            self.normalize()
        };
        state.write_u64(normal.low);
        state.write_u64(normal.high);
    }
}

impl From<i16> for Decimal {
    fn from(value: i16) -> Decimal {
        Decimal::from_i64(i64::from(value))
    }
}

impl From<i32> for Decimal {
    fn from(value: i32) -> Decimal {
        Decimal::from_i64(i64::from(value))
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal::from_i64(value)
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decimal({self})")
    }
}

#[cfg(test)]
mod tests;
