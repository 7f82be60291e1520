//! Quotients, remainders and square roots, with the scales that PostgreSQL gives them.

use super::wide::Wide;
use super::{Decimal, POWERS, SCALE_MAX, divide_rounded, overflow, scale_up};
use crate::error::{Error, Result, SqlState};

/// The significant digits that a quotient has at least.
const SIGNIFICANT_DIGITS_MIN: i32 = 16;

/// PostgreSQL computes in digits of base 10,000; scales of quotients follow from those.
const DIGITS_PER_GROUP: i32 = 4;

/// The weight (exponent in base 10,000) of the first nonzero group of four digits, and that
/// group; zeros for zero.
fn leading_group(mantissa: u128, scale: u8) -> (i32, u128) {
    if mantissa == 0 {
        return (0, 0);
    }
    // Groups are aligned at the decimal point: the exponent in base 10 of the first digit says
    // which group it belongs to.
    let exponent = mantissa.ilog10() as i32 - i32::from(scale);
    let weight = exponent.div_euclid(DIGITS_PER_GROUP);
    let shift = i32::from(scale) + weight * DIGITS_PER_GROUP;
    let group = if shift >= 0 {
        mantissa / POWERS[shift as usize].unsigned_abs()
    } else {
        mantissa * POWERS[(-shift) as usize].unsigned_abs()
    };
    (weight, group)
}

impl Decimal {
    /// The scale of a quotient: PostgreSQL's `select_div_scale`.
    fn quotient_scale(self, divisor: Decimal) -> i32 {
        let (weight, group) = leading_group(self.mantissa().unsigned_abs(), self.scale());
        let (divisor_weight, divisor_group) =
            leading_group(divisor.mantissa().unsigned_abs(), divisor.scale());
        let mut quotient_weight = weight - divisor_weight;
        if group <= divisor_group {
            quotient_weight -= 1;
        }
        (SIGNIFICANT_DIGITS_MIN - quotient_weight * DIGITS_PER_GROUP)
            .max(i32::from(self.scale()))
            .max(i32::from(divisor.scale()))
    }

    /// The quotient, rounded half away from zero, with PostgreSQL's scale: at least 16
    /// significant digits and at least the scale of either operand.
    ///
    /// # Errors
    /// 22012 for a zero divisor, 22003 when the quotient does not fit.
    pub fn try_div(self, divisor: Decimal) -> Result<Decimal> {
        if divisor.is_zero() {
            return Err(Error::division_by_zero());
        }
        let scale = self.quotient_scale(divisor);
        if scale > i32::from(SCALE_MAX) {
            return Err(overflow());
        }
        self.divide_at_scale(divisor, scale as u8)
    }

    /// The quotient rounded half away from zero to `scale` places. The divisor is not zero.
    fn divide_at_scale(self, divisor: Decimal, scale: u8) -> Result<Decimal> {
        // quotient * 10^scale = mantissa * 10^raise / divisor mantissa; a scale is never below
        // that of the dividend, so `raise` is not negative.
        let raise = scale + divisor.scale() - self.scale();
        let (dividend, by) = (self.mantissa(), divisor.mantissa());
        if let Some(raised) = scale_up(dividend, raise) {
            let rounded = divide_rounded(raised, by.abs());
            return Decimal::new(if by < 0 { -rounded } else { rounded }, scale);
        }
        let negative = (dividend < 0) != (by < 0);
        let raised = Wide::from_u128(dividend.unsigned_abs())
            .checked_scale_up(u32::from(raise))
            .ok_or_else(overflow)?;
        let (quotient, remainder) = raised.divide(by.unsigned_abs()).ok_or_else(overflow)?;
        let round_up = remainder >= by.unsigned_abs() - remainder;
        let magnitude = i128::try_from(quotient)
            .ok()
            .and_then(|quotient| quotient.checked_add(i128::from(round_up)))
            .ok_or_else(overflow)?;
        Decimal::new(if negative { -magnitude } else { magnitude }, scale)
    }

    /// The quotient cut off to an integer (PostgreSQL's `div`).
    ///
    /// # Errors
    /// 22012 for a zero divisor, 22003 when the quotient does not fit.
    pub fn try_div_trunc(self, divisor: Decimal) -> Result<Decimal> {
        if divisor.is_zero() {
            return Err(Error::division_by_zero());
        }
        let (dividend, by) = (self.mantissa(), divisor.mantissa());
        let magnitude = if self.scale() >= divisor.scale() {
            // A divisor beyond 127 bits is larger than any dividend.
            scale_up(by, self.scale() - divisor.scale())
                .map_or(0, |raised| dividend.unsigned_abs() / raised.unsigned_abs())
        } else {
            let raise = u32::from(divisor.scale() - self.scale());
            let raised = Wide::from_u128(dividend.unsigned_abs())
                .checked_scale_up(raise)
                .ok_or_else(overflow)?;
            raised.divide(by.unsigned_abs()).ok_or_else(overflow)?.0
        };
        let magnitude = i128::try_from(magnitude).map_err(|_| overflow())?;
        Decimal::new(
            if (dividend < 0) != (by < 0) {
                -magnitude
            } else {
                magnitude
            },
            0,
        )
    }

    /// The remainder of the division cut off to an integer: it has the dividend's sign and the
    /// larger of the two scales.
    ///
    /// # Errors
    /// 22012 for a zero divisor, 22003 when the remainder does not fit.
    pub fn try_rem(self, divisor: Decimal) -> Result<Decimal> {
        if divisor.is_zero() {
            return Err(Error::division_by_zero());
        }
        let (left, right) = (self.mantissa(), divisor.mantissa());
        let (left_scale, right_scale) = (self.scale(), divisor.scale());
        if left_scale >= right_scale {
            return match scale_up(right, left_scale - right_scale) {
                Some(raised) => Decimal::new(left % raised, left_scale),
                // The divisor is larger than any dividend of this scale.
                None => Ok(self),
            };
        }
        // (left * 10^k) mod right, four digits at a time: a remainder has at most 111 bits, so
        // that a step stays within 127.
        let modulus = right.unsigned_abs();
        let mut remainder = left.unsigned_abs() % modulus;
        let mut digits = right_scale - left_scale;
        while digits > 0 {
            let step = digits.min(4);
            remainder = remainder * POWERS[step as usize].unsigned_abs() % modulus;
            digits -= step;
        }
        let magnitude = remainder as i128;
        Decimal::new(if left < 0 { -magnitude } else { magnitude }, right_scale)
    }

    /// The square root, rounded, with PostgreSQL's scale.
    ///
    /// # Errors
    /// 2201F below zero, 22003 when the root does not fit.
    pub fn sqrt(self) -> Result<Decimal> {
        if self.is_negative() {
            return Err(Error::new(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "cannot take square root of a negative number",
            ));
        }
        let (mantissa, scale) = (self.mantissa().unsigned_abs(), self.scale());
        let (weight, _) = leading_group(mantissa, scale);
        let root_digits = (weight + 1) * DIGITS_PER_GROUP / 2 - 1;
        let root_scale = (SIGNIFICANT_DIGITS_MIN - root_digits)
            .max(i32::from(scale))
            .max(0);
        if root_scale > i32::from(SCALE_MAX) {
            return Err(overflow());
        }
        self.sqrt_at_scale(root_scale as u8)
    }

    /// The square root of a value that is not negative, rounded to so many places: at least half as
    /// many as it has.
    ///
    /// # Errors
    /// 22003 when the root does not fit.
    pub fn sqrt_at_scale(self, root_scale: u8) -> Result<Decimal> {
        let raise = (2 * u32::from(root_scale)).saturating_sub(u32::from(self.scale()));
        let raised = Wide::from_u128(self.mantissa().unsigned_abs())
            .checked_scale_up(raise)
            .ok_or_else(overflow)?;
        let (root, round_up) = raised.square_root();
        let root = i128::try_from(root).map_err(|_| overflow())?;
        Decimal::new(root + i128::from(round_up), root_scale)
    }
}
