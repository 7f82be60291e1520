//! Exponentials, logarithms and powers, with the scales that PostgreSQL gives them.
//!
//! Exponentials and logarithms are computed in binary fixed point with 119 bits after the point,
//! which is 35 decimal digits, and powers with an integer exponent in 128 significant bits; then
//! they are rounded to the result's scale. A [`Decimal`] holds two digits less.

use super::wide::Wide;
use super::{Decimal, POWERS, SCALE_MAX, divide_rounded, overflow};
use crate::error::{Error, Result, SqlState};

const SIGNIFICANT_DIGITS_MIN: i32 = 16;

/// Places after which a fixed-point number has no more digits to give.
const PLACES_MAX: i32 = 34;

/// A number times 2^119; its absolute value is below 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fixed(i128);

const FRACTION_BITS: u32 = 119;
const ONE: Fixed = Fixed(1 << FRACTION_BITS);
/// The natural logarithm of 10.
const LN_10: Fixed = Fixed(1_530_330_284_142_349_739_854_176_724_030_170_644);
/// The natural logarithm of 2.
const LN_2: Fixed = Fixed(460_675_318_799_830_652_613_172_153_836_239_227);

/// `value / 2^bits`, cut off; `None` when it leaves 127 bits.
fn shift_right(value: Wide, bits: u32) -> Option<i128> {
    let low = value.low >> bits;
    let shifted = if bits == 0 {
        low
    } else {
        low | value.high << (128 - bits)
    };
    (value.high >> bits == 0)
        .then(|| i128::try_from(shifted).ok())
        .flatten()
}

impl Fixed {
    /// `magnitude`, negated when `negative`.
    fn signed(magnitude: i128, negative: bool) -> Fixed {
        Fixed(if negative { -magnitude } else { magnitude })
    }

    fn multiply(self, other: Fixed) -> Option<Fixed> {
        let product = Wide::product(self.0.unsigned_abs(), other.0.unsigned_abs());
        let magnitude = shift_right(product, FRACTION_BITS)?;
        Some(Fixed::signed(magnitude, (self.0 < 0) != (other.0 < 0)))
    }

    fn divide(self, other: Fixed) -> Option<Fixed> {
        let dividend = Wide::product(self.0.unsigned_abs(), ONE.0.unsigned_abs());
        let (magnitude, _) = dividend.divide(other.0.unsigned_abs())?;
        let magnitude = i128::try_from(magnitude).ok()?;
        Some(Fixed::signed(magnitude, (self.0 < 0) != (other.0 < 0)))
    }

    /// This number times a decimal; `None` beyond 256.
    fn times(self, factor: Decimal) -> Option<Fixed> {
        let product = Wide::product(self.0.unsigned_abs(), factor.mantissa().unsigned_abs());
        // Two steps, as a scale can exceed the powers of ten that a divisor holds.
        let first = factor.scale().min(37);
        let second = factor.scale() - first;
        let (quotient, _) = product.divide_wide(POWERS[first as usize].unsigned_abs());
        let (quotient, _) = quotient.divide_wide(POWERS[second as usize].unsigned_abs());
        let magnitude = shift_right(quotient, 0)?;
        Some(Fixed::signed(
            magnitude,
            (self.0 < 0) != factor.is_negative(),
        ))
    }

    /// The natural logarithm of a positive integer of at most 119 bits.
    fn ln_of_integer(value: u128) -> Option<Fixed> {
        // value = m * 2^exponent with 1 <= m < 2, and ln m = 2 artanh((m - 1) / (m + 1)).
        let exponent = value.ilog2();
        let m = Fixed((value << (FRACTION_BITS - exponent)) as i128);
        let z = Fixed(m.0 - ONE.0).divide(Fixed(m.0 + ONE.0))?;
        let square = z.multiply(z)?;
        let mut power = z;
        let mut sum = 0;
        let mut divisor = 1;
        while power.0 != 0 {
            sum += power.0 / divisor;
            power = power.multiply(square)?;
            divisor += 2;
        }
        Some(Fixed(2 * sum + i128::from(exponent) * LN_2.0))
    }

    /// The natural logarithm of a positive number.
    fn ln(value: Decimal) -> Option<Fixed> {
        let whole = Fixed::ln_of_integer(value.mantissa().unsigned_abs())?;
        Some(Fixed(whole.0 - i128::from(value.scale()) * LN_10.0))
    }

    /// `e^self` rounded to `scale` places.
    ///
    /// # Errors
    /// 22003 when it does not fit.
    fn exp(self, scale: i32) -> Result<Decimal> {
        // e^self = 10^tens * e^rest with 0 <= rest < ln 10.
        let tens = self.0.div_euclid(LN_10.0);
        let rest = Fixed(self.0.rem_euclid(LN_10.0));
        let mut sum = 0;
        let mut term = ONE;
        let mut index = 1;
        while term.0 != 0 {
            sum += term.0;
            term = Fixed(term.multiply(rest).ok_or_else(overflow)?.0 / index);
            index += 1;
        }
        let places = i128::from(scale) + tens;
        if places > i128::from(PLACES_MAX) {
            return Err(overflow());
        }
        if places < 0 {
            // Less than a tenth of the last place.
            return Decimal::new(i128::from(places == -1 && sum >= 5 * ONE.0), scale as u8);
        }
        Fixed(sum).round_times_power(places as usize, scale)
    }

    /// The number rounded to `scale` places.
    fn round(self, scale: i32) -> Result<Decimal> {
        if scale > PLACES_MAX {
            return Err(overflow());
        }
        self.round_times_power(scale as usize, scale)
    }

    /// A decimal of this scale whose mantissa is this number times `10^power`, rounded.
    fn round_times_power(self, power: usize, scale: i32) -> Result<Decimal> {
        let product = Wide::product(self.0.unsigned_abs(), POWERS[power].unsigned_abs());
        let halves = shift_right(product, FRACTION_BITS - 1).ok_or_else(overflow)?;
        let magnitude = (halves + 1) >> 1;
        Decimal::new(if self.0 < 0 { -magnitude } else { magnitude }, scale as u8)
    }
}

/// `mantissa * 2^exponent` with 128 significant bits: for powers with an integer exponent, with
/// which the error of a logarithm would grow.
#[derive(Clone, Copy, Debug)]
struct Floating {
    /// Its top bit is set.
    mantissa: u128,
    exponent: i64,
}

impl Floating {
    /// The upper 128 bits of `value * 2^exponent`; `value` is not zero.
    fn normal(value: Wide, exponent: i64) -> Floating {
        let shift = if value.high == 0 {
            128 + value.low.leading_zeros()
        } else {
            value.high.leading_zeros()
        };
        let mantissa = match shift {
            0 => value.high,
            1..128 => value.high << shift | value.low >> (128 - shift),
            _ => value.low << (shift - 128),
        };
        Floating {
            mantissa,
            exponent: exponent + 128 - i64::from(shift),
        }
    }

    /// The quotient of two integers, the divisor below 2^127.
    fn quotient(dividend: u128, divisor: u128) -> Floating {
        let (quotient, remainder) = Wide {
            high: dividend,
            low: 0,
        }
        .divide_wide(divisor);
        // The bits after the point matter when the quotient is short.
        let (fraction, _) = Wide {
            high: remainder,
            low: 0,
        }
        .divide_wide(divisor);
        if quotient.high == 0 {
            let joined = Wide {
                high: quotient.low,
                low: fraction.low,
            };
            Floating::normal(joined, -256)
        } else {
            Floating::normal(quotient, -128)
        }
    }

    /// A positive decimal.
    fn from_decimal(value: Decimal) -> Floating {
        let first = value.scale().min(37);
        let second = value.scale() - first;
        let whole = Floating::quotient(
            value.mantissa().unsigned_abs(),
            POWERS[first as usize].unsigned_abs(),
        );
        if second == 0 {
            return whole;
        }
        whole.multiply(Floating::quotient(
            1,
            POWERS[second as usize].unsigned_abs(),
        ))
    }

    fn multiply(self, other: Floating) -> Floating {
        let exponent = self.exponent.saturating_add(other.exponent);
        Floating::normal(Wide::product(self.mantissa, other.mantissa), exponent)
    }

    fn power(self, exponent: u32) -> Floating {
        let mut result = Floating {
            mantissa: 1 << 127,
            exponent: -127,
        };
        for bit in (0..32).rev() {
            result = result.multiply(result);
            if exponent >> bit & 1 == 1 {
                result = result.multiply(self);
            }
        }
        result
    }

    fn invert_if(self, invert: bool) -> Floating {
        if !invert {
            return self;
        }
        // The divisor loses its lowest bit to stay below 2^127.
        let one = Floating::quotient(1, self.mantissa >> 1);
        Floating {
            exponent: one.exponent.saturating_sub(self.exponent + 1),
            ..one
        }
    }

    /// Rounded to `scale` places.
    fn round(self, scale: i32) -> Result<Decimal> {
        let power = POWERS.get(scale as usize).ok_or_else(overflow)?;
        let product = Floating::normal(
            Wide::product(self.mantissa, power.unsigned_abs()),
            self.exponent,
        );
        // One bit more than the integer part decides the rounding.
        let drop = -1 - product.exponent;
        if drop >= 128 {
            return Decimal::new(0, scale as u8);
        }
        if drop <= 0 {
            return Err(overflow());
        }
        let halves = i128::try_from(product.mantissa >> drop).map_err(|_| overflow())?;
        Decimal::new((halves + 1) >> 1, scale as u8)
    }
}

/// `scale` as a result has it: at least that of each operand and not below zero.
fn result_scale(scale: i32, operands: &[Decimal]) -> Result<i32> {
    let least = operands
        .iter()
        .map(|operand| i32::from(operand.scale()))
        .max()
        .unwrap_or(0);
    let scale = scale.max(least).max(0);
    if scale > i32::from(SCALE_MAX) {
        Err(overflow())
    } else {
        Ok(scale)
    }
}

#[cold]
pub(in crate::types) fn invalid_logarithm(message: &str) -> Error {
    Error::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message)
}

#[cold]
pub(in crate::types) fn invalid_power(message: &str) -> Error {
    Error::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message)
}

/// log10(e) as PostgreSQL writes it; its last digit decides the scale of some results.
#[expect(
    clippy::approx_constant,
    reason = "the nearest double would give other scales"
)]
pub(in crate::types) const LOG10_E: f64 = 0.434_294_481_903_252;

impl Decimal {
    /// The exponent in base 10 of the logarithm's first digit, estimated as PostgreSQL does.
    fn logarithm_weight(self) -> i32 {
        let near_one = Decimal::from_parts(9, 1) <= self && self <= Decimal::from_parts(11, 1);
        if near_one {
            let offset = (self.mantissa() - POWERS[self.scale().min(38) as usize]).unsigned_abs();
            return offset
                .checked_ilog10()
                .map_or(0, |log| log as i32 - i32::from(self.scale()));
        }
        // Two groups of four digits make a double that is near enough.
        self.to_f64().ln().abs().log10() as i32
    }

    fn check_logarithm(self) -> Result<()> {
        if self.is_zero() {
            Err(invalid_logarithm("cannot take logarithm of zero"))
        } else if self.is_negative() {
            Err(invalid_logarithm(
                "cannot take logarithm of a negative number",
            ))
        } else {
            Ok(())
        }
    }

    /// `e` to the power of this number.
    ///
    /// # Errors
    /// 22003 when the result does not fit.
    pub fn exp(self) -> Result<Decimal> {
        let weight = (self.to_f64() * LOG10_E).clamp(-2_000.0, 2_000.0);
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight as i32, &[self])?;
        ONE.times(self).ok_or_else(overflow)?.exp(scale)
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// 2201E for zero and below, 22003 when the result does not fit.
    pub fn ln(self) -> Result<Decimal> {
        self.check_logarithm()?;
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - self.logarithm_weight(), &[self])?;
        Fixed::ln(self).ok_or_else(overflow)?.round(scale)
    }

    /// The logarithm to this base.
    ///
    /// # Errors
    /// 2201E for zero and below, 22012 for base 1, 22003 when the result does not fit.
    pub fn log(self, base: Decimal) -> Result<Decimal> {
        base.check_logarithm()?;
        self.check_logarithm()?;
        let weight = self.logarithm_weight() - base.logarithm_weight();
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight, &[self, base])?;
        if base == Decimal::ONE {
            return Err(Error::division_by_zero());
        }
        let logarithm = Fixed::ln(self).ok_or_else(overflow)?;
        let of_base = Fixed::ln(base).ok_or_else(overflow)?;
        logarithm.divide(of_base).ok_or_else(overflow)?.round(scale)
    }

    /// The logarithm to base 10.
    ///
    /// # Errors
    /// As [`log`](Decimal::log).
    pub fn log10(self) -> Result<Decimal> {
        self.log(Decimal::from_i64(10))
    }

    /// This number to the power of `exponent`.
    ///
    /// # Errors
    /// 2201F for zero to a negative power and for a negative number to a power that is no
    /// integer, 22003 when the result does not fit.
    pub fn power(self, exponent: Decimal) -> Result<Decimal> {
        if self.is_zero() && exponent.is_negative() {
            return Err(invalid_power(
                "zero raised to a negative power is undefined",
            ));
        }
        let whole = exponent.min_scale() == 0;
        if let (true, Ok(exponent)) = (whole, exponent.to_i32()) {
            return self.integer_power(exponent);
        }
        if self.is_zero() {
            return Decimal::new(0, SIGNIFICANT_DIGITS_MIN as u8);
        }
        if self.is_negative() && !whole {
            return Err(invalid_power(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        let logarithm = Fixed::ln(self.abs()).ok_or_else(overflow)?;
        // PostgreSQL estimates the result's weight from eight digits of the logarithm.
        let places = (8 - self.abs().logarithm_weight()).clamp(0, PLACES_MAX);
        let estimate = logarithm.round(places)?.to_f64() * exponent.to_f64();
        let unit = 10_f64.powi(places);
        let estimate = (estimate * unit).round() / unit * LOG10_E;
        let weight = estimate.clamp(-2_000.0, 2_000.0) as i32;
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight, &[self, exponent])?;
        let magnitude = logarithm.times(exponent).ok_or_else(overflow)?.exp(scale)?;
        let odd = exponent.trunc(0)?.mantissa() % 2 != 0;
        Ok(if self.is_negative() && odd {
            -magnitude
        } else {
            magnitude
        })
    }

    fn integer_power(self, exponent: i32) -> Result<Decimal> {
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN, &[self])?;
        if self.is_zero() && exponent != 0 {
            return Decimal::new(0, scale as u8);
        }
        let negative = self.is_negative() && exponent % 2 != 0;
        let magnitude = match self.exact_power(exponent.unsigned_abs()) {
            Some((mantissa, places)) if exponent >= 0 => rounded(mantissa, places, scale)?,
            _ => Floating::from_decimal(self.abs())
                .power(exponent.unsigned_abs())
                .invert_if(exponent < 0)
                .round(scale)?,
        };
        Ok(if negative { -magnitude } else { magnitude })
    }

    /// The absolute value's power as mantissa and scale, if 127 bits hold it.
    fn exact_power(self, exponent: u32) -> Option<(i128, u32)> {
        let normal = self.abs().normalize();
        Some((
            normal.mantissa().checked_pow(exponent)?,
            u32::from(normal.scale()).checked_mul(exponent)?,
        ))
    }
}

/// `mantissa / 10^places` rounded to `scale` places.
fn rounded(mantissa: i128, places: u32, scale: i32) -> Result<Decimal> {
    let scale = scale as u32;
    let shifted = if places <= scale {
        let power = POWERS.get((scale - places) as usize).ok_or_else(overflow)?;
        mantissa.checked_mul(*power).ok_or_else(overflow)?
    } else {
        let dropped = (places - scale) as usize;
        match POWERS.get(dropped) {
            Some(power) => divide_rounded(mantissa, *power),
            // A power of at most 39 digits is less than half of a larger divisor.
            None => 0,
        }
    };
    Decimal::new(shifted, scale as u8)
}
