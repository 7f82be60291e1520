//! Sums, products, quotients, remainders, roots; roundings and the range of columns.

use num_bigint::{BigInt, BigUint, Sign};

use super::{
    DIGITS_PER_GROUP, Finite, Number, RESULT_SCALE_MAX, SCALE_MAX, SIGNIFICANT_DIGITS_MIN,
    WHOLE_DIGITS_MAX, decimal_length, divide_rounded, overflow, power_of_ten,
};
use crate::error::{Error, Result, SqlState};

impl Finite {
    /// The weight (exponent in base 10,000) of the first group of four digits that is not zero, and
    /// that group; zeros for zero.
    fn leading_group(&self) -> (i64, u64) {
        if self.is_zero() {
            return (0, 0);
        }
        let weight = self.exponent().div_euclid(DIGITS_PER_GROUP);
        let shift = self.scale() + weight * DIGITS_PER_GROUP;
        let magnitude = self.digits.magnitude();
        let group = match shift {
            0.. => magnitude / power_of_ten(shift),
            _ => magnitude * power_of_ten(-shift),
        };
        (weight, u64::try_from(group).unwrap_or(0))
    }

    /// The scale of a quotient: PostgreSQL's `select_div_scale`.
    fn quotient_scale(&self, divisor: &Finite) -> i64 {
        let (weight, group) = self.leading_group();
        let (divisor_weight, divisor_group) = divisor.leading_group();
        let mut quotient_weight = weight - divisor_weight;
        if group <= divisor_group {
            quotient_weight -= 1;
        }
        (SIGNIFICANT_DIGITS_MIN - quotient_weight * DIGITS_PER_GROUP)
            .max(self.scale())
            .max(divisor.scale())
            .clamp(0, RESULT_SCALE_MAX)
    }

    /// The quotient rounded to `scale` places; the divisor is not zero.
    pub(super) fn divided(&self, divisor: &Finite, scale: i64) -> Finite {
        // quotient * 10^scale = digits * 10^raise / divisor's digits
        let raise = scale + divisor.scale() - self.scale();
        let is_negative = divisor.is_negative();
        let by = divisor.digits.magnitude();
        let quotient = match raise {
            0.. => divide_rounded(&(&self.digits * BigInt::from(power_of_ten(raise))), by),
            _ => divide_rounded(&self.digits, &(by * power_of_ten(-raise))),
        };
        Finite::new(if is_negative { -quotient } else { quotient }, scale)
    }

    /// Both digits at the larger of the two scales.
    fn aligned(&self, other: &Finite) -> (BigInt, BigInt, i64) {
        let scale = self.scale().max(other.scale());
        (self.raised(scale), other.raised(scale), scale)
    }
}

/// Places that make a difference: what is rounded to fewer is zero, or has too many digits, and no
/// number has more.
fn within_limits(places: i32) -> i64 {
    i64::from(places).clamp(-WHOLE_DIGITS_MAX - 1, SCALE_MAX)
}

impl Number {
    /// The sum, at the larger of the two scales.
    ///
    /// # Errors
    /// 22003 beyond PostgreSQL's limits.
    pub fn try_add(&self, other: &Number) -> Result<Number> {
        match (self, other) {
            (Number::Finite(one), Number::Finite(other)) => {
                let (one, other, scale) = one.aligned(other);
                Finite::new(one + other, scale).checked()
            }
            (Number::NaN, _) | (_, Number::NaN) => Ok(Number::NaN),
            (Number::Infinity, Number::NegativeInfinity)
            | (Number::NegativeInfinity, Number::Infinity) => Ok(Number::NaN),
            (Number::Finite(_), infinite) | (infinite, _) => Ok(infinite.clone()),
        }
    }

    /// The difference, at the larger of the two scales.
    ///
    /// # Errors
    /// 22003 beyond PostgreSQL's limits.
    pub fn try_sub(&self, other: &Number) -> Result<Number> {
        self.try_add(&other.negated())
    }

    /// The product, exact at the sum of the scales, unless that is beyond the largest scale.
    ///
    /// # Errors
    /// 22003 beyond PostgreSQL's limits.
    pub fn try_mul(&self, other: &Number) -> Result<Number> {
        match (self, other) {
            (Number::Finite(one), Number::Finite(other)) => {
                let scale = one.scale() + other.scale();
                let product = Finite::new(&one.digits * &other.digits, scale);
                match scale > SCALE_MAX {
                    true => product.rounded(SCALE_MAX).checked(),
                    false => product.checked(),
                }
            }
            (Number::NaN, _) | (_, Number::NaN) => Ok(Number::NaN),
            _ => Ok(match self.sign() * other.sign() {
                0 => Number::NaN,
                sign => Number::infinity(sign < 0),
            }),
        }
    }

    /// The quotient, rounded half away from zero, with PostgreSQL's scale.
    ///
    /// # Errors
    /// 22012 for a zero divisor, 22003 beyond PostgreSQL's limits.
    pub fn try_div(&self, divisor: &Number) -> Result<Number> {
        self.divide(divisor, |dividend, divisor| {
            dividend.divided(divisor, dividend.quotient_scale(divisor))
        })
    }

    /// The quotient cut off to an integer (PostgreSQL's `div`).
    ///
    /// # Errors
    /// As [`Number::try_div`].
    pub fn try_div_trunc(&self, divisor: &Number) -> Result<Number> {
        self.divide(divisor, |dividend, divisor| {
            let (dividend, divisor, _) = dividend.aligned(divisor);
            Finite::new(dividend / divisor, 0)
        })
    }

    fn divide(
        &self,
        divisor: &Number,
        divide: impl FnOnce(&Finite, &Finite) -> Finite,
    ) -> Result<Number> {
        if self.is_nan() || divisor.is_nan() {
            return Ok(Number::NaN);
        }
        if divisor.is_zero() {
            return Err(Error::division_by_zero());
        }
        match (self, divisor) {
            (Number::Finite(dividend), Number::Finite(divisor)) => {
                divide(dividend, divisor).checked()
            }
            (Number::Finite(_), _) => Ok(Number::ZERO),
            (_, Number::Finite(_)) => Ok(Number::infinity(self.sign() != divisor.sign())),
            _ => Ok(Number::NaN),
        }
    }

    /// The remainder of the division cut off to an integer: it has the dividend's sign and the
    /// larger of the two scales.
    ///
    /// # Errors
    /// 22012 for a zero divisor.
    pub fn try_rem(&self, divisor: &Number) -> Result<Number> {
        if self.is_nan() || divisor.is_nan() {
            return Ok(Number::NaN);
        }
        if divisor.is_zero() {
            return Err(Error::division_by_zero());
        }
        match (self, divisor) {
            (Number::Finite(dividend), Number::Finite(divisor)) => {
                let (dividend, divisor, scale) = dividend.aligned(divisor);
                Finite::new(dividend % divisor, scale).checked()
            }
            (Number::Finite(_), _) => Ok(self.clone()),
            _ => Ok(Number::NaN),
        }
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(&self) -> Number {
        match self {
            Number::NegativeInfinity => Number::Infinity,
            Number::Infinity => Number::NegativeInfinity,
            Number::NaN => Number::NaN,
            Number::Finite(finite) => Number::from_finite(-&finite.digits, finite.scale()),
        }
    }

    /// The absolute value.
    #[must_use]
    pub fn abs(&self) -> Number {
        match self.is_negative() {
            true => self.negated(),
            false => self.clone(),
        }
    }

    /// -1, 0 or 1, and NaN for NaN.
    #[must_use]
    pub fn signum(&self) -> Number {
        match self.is_nan() {
            true => Number::NaN,
            false => Number::from(i64::from(self.sign())),
        }
    }

    /// Rounded half away from zero to `places` digits after the point; below zero, to tens,
    /// hundreds and so on. More places than the value has are filled with zeros, as far as numbers
    /// have places.
    ///
    /// # Errors
    /// 22003 when the result is beyond PostgreSQL's limits.
    pub fn round(&self, places: i32) -> Result<Number> {
        self.finite_or_same(|finite| finite.rounded(within_limits(places)))
    }

    /// Cut off, towards zero, after `places` digits; otherwise like [`round`](Number::round).
    ///
    /// # Errors
    /// 22003 when the result is beyond PostgreSQL's limits.
    pub fn trunc(&self, places: i32) -> Result<Number> {
        self.finite_or_same(|finite| {
            finite.to_places(within_limits(places), |dividend, divisor| {
                dividend / BigInt::from(divisor.clone())
            })
        })
    }

    /// The smallest integer not below the value.
    ///
    /// # Errors
    /// 22003 when the result is beyond PostgreSQL's limits.
    pub fn ceil(&self) -> Result<Number> {
        let whole = self.trunc(0)?;
        match whole < *self {
            true => whole.try_add(&Number::from(1)),
            false => Ok(whole),
        }
    }

    /// The largest integer not above the value.
    ///
    /// # Errors
    /// 22003 when the result is beyond PostgreSQL's limits.
    pub fn floor(&self) -> Result<Number> {
        let whole = self.trunc(0)?;
        match whole > *self {
            true => whole.try_sub(&Number::from(1)),
            false => Ok(whole),
        }
    }

    fn finite_or_same(&self, compute: impl FnOnce(&Finite) -> Finite) -> Result<Number> {
        match self {
            Number::Finite(finite) => compute(finite).checked(),
            other => Ok(other.clone()),
        }
    }

    /// The value as a column NUMERIC(`precision`, `scale`) stores it: rounded to `scale` places,
    /// which may be below zero, or more than all digits.
    ///
    /// # Errors
    /// 22003 with PostgreSQL's message and detail when more than `precision - scale` digits remain
    /// before the point, and for infinities.
    pub fn rescale(&self, precision: u16, scale: i16) -> Result<Number> {
        let finite = match self {
            Number::NaN => return Ok(Number::NaN),
            Number::Finite(finite) => finite,
            _ => return Err(infinite_field(precision, scale)),
        };
        let rounded = finite.rounded(scale.into());
        let digits = i64::from(precision) - i64::from(scale);
        if !rounded.is_zero() && rounded.exponent() >= digits {
            return Err(field_overflow(precision, scale));
        }
        rounded.checked()
    }

    /// Whether a column NUMERIC(`precision`, `scale`) may have the value.
    pub(crate) fn fits(&self, precision: u16, scale: i16) -> bool {
        let Number::Finite(finite) = self else {
            return self.is_nan();
        };
        let digits = i64::from(precision) - i64::from(scale);
        finite.scale() == i64::from(scale.max(0))
            && (finite.is_zero() || finite.exponent() < digits)
    }

    /// The square root, rounded, with PostgreSQL's scale.
    ///
    /// # Errors
    /// 2201F below zero.
    pub fn sqrt(&self) -> Result<Number> {
        if self.is_negative() {
            return Err(Error::new(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "cannot take square root of a negative number",
            ));
        }
        let Number::Finite(finite) = self else {
            return Ok(self.clone());
        };
        let (weight, _) = finite.leading_group();
        let root_digits = (weight + 1) * DIGITS_PER_GROUP / 2 - 1;
        let scale = (SIGNIFICANT_DIGITS_MIN - root_digits)
            .max(finite.scale())
            .clamp(0, RESULT_SCALE_MAX);
        Ok(Number::Finite(finite.root(scale)))
    }

    /// The square root of a number that is not negative, rounded to so many places.
    pub fn sqrt_at_scale(&self, scale: u16) -> Number {
        match self {
            Number::Finite(finite) => Number::Finite(finite.root(scale.into())),
            other => other.clone(),
        }
    }

    /// The greatest common divisor, at the larger of the two scales; NaN unless both are finite.
    ///
    /// # Errors
    /// None in practice: it is not larger than both.
    pub fn gcd(&self, other: &Number) -> Result<Number> {
        let (Number::Finite(one), Number::Finite(other)) = (self, other) else {
            return Ok(Number::NaN);
        };
        let (one, other, scale) = one.aligned(other);
        let divisor = common_divisor(one.magnitude(), other.magnitude());
        Finite::new(divisor, scale).checked()
    }

    /// The least common multiple, at the larger of the two scales; NaN unless both are finite.
    ///
    /// # Errors
    /// 22003 beyond PostgreSQL's limits.
    pub fn lcm(&self, other: &Number) -> Result<Number> {
        let (Number::Finite(one), Number::Finite(second)) = (self, other) else {
            return Ok(Number::NaN);
        };
        let (left, right, scale) = one.aligned(second);
        let Number::Finite(divisor) = self.gcd(other)? else {
            return Ok(Number::NaN);
        };
        if left.sign() == Sign::NoSign || right.sign() == Sign::NoSign {
            return Finite::zero(scale).checked();
        }
        let multiple = left / divisor.digits * right;
        Finite::new(multiple.magnitude().clone().into(), scale).checked()
    }

    /// The product of all integers from 1 to `of`.
    ///
    /// # Errors
    /// 22003 below zero, and beyond PostgreSQL's limits.
    pub fn factorial(of: i64) -> Result<Number> {
        if of < 0 {
            return Err(Error::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "factorial of a negative number is undefined",
            ));
        }
        // The next one has more digits than a number can have.
        if of > 32_177 {
            return Err(overflow());
        }
        let mut product = BigInt::from(1);
        let mut small = 1_u64;
        for factor in 2..=of.unsigned_abs() {
            // Some factors at a time: a multiplication of a long number costs its length.
            match small.checked_mul(factor) {
                Some(next) => small = next,
                None => {
                    product *= small;
                    small = factor;
                }
            }
        }
        Finite::new(product * small, 0).checked()
    }
}

/// The greatest common divisor, by Lehmer's algorithm: many steps of Euclid's are made with the
/// first digits of both alone, and then with all digits at once.
fn common_divisor(one: &BigUint, other: &BigUint) -> BigInt {
    let (mut large, mut small) = match one >= other {
        true => (BigInt::from(one.clone()), BigInt::from(other.clone())),
        false => (BigInt::from(other.clone()), BigInt::from(one.clone())),
    };
    while small.sign() != Sign::NoSign {
        match steps_of(&large, &small) {
            Some([a, b, c, d]) => {
                let next = &large * a + &small * b;
                small = &large * c + &small * d;
                large = next;
            }
            None => {
                let rest = &large % &small;
                large = std::mem::replace(&mut small, rest);
            }
        }
    }
    large
}

/// What some steps of Euclid's algorithm make of two numbers: `a * large + b * small` and
/// `c * large + d * small`. `None` where their first 62 bits do not decide the first step.
fn steps_of(large: &BigInt, small: &BigInt) -> Option<[i64; 4]> {
    let dropped = large.bits().saturating_sub(62);
    let mut large = i64::try_from(large >> dropped).ok()?;
    let mut small = i64::try_from(small >> dropped).ok()?;
    let [mut a, mut b, mut c, mut d] = [1, 0, 0, 1_i64];
    // The quotient is the same for all numbers that begin so.
    while small + c != 0 && small + d != 0 {
        let quotient = (large + a) / (small + c);
        if quotient != (large + b) / (small + d) {
            break;
        }
        (a, c) = (c, a - quotient * c);
        (b, d) = (d, b - quotient * d);
        (large, small) = (small, large - quotient * small);
    }
    (b != 0).then_some([a, b, c, d])
}

impl Finite {
    /// The square root of a number that is not negative, rounded to `scale` places.
    fn root(&self, scale: i64) -> Finite {
        // One digit more decides the rounding: a root with more digits than that has them without
        // end, or it has none behind it.
        let raise = 2 * (scale + 1) - self.scale();
        let magnitude = self.digits.magnitude();
        let raised = match raise {
            0.. => magnitude * power_of_ten(raise),
            _ => magnitude / power_of_ten(-raise),
        };
        let root = BigInt::from(raised.sqrt());
        Finite::new(root, scale + 1).rounded(scale)
    }

    /// The decimal digits before rounding, for estimates.
    pub(super) fn length(&self) -> i64 {
        decimal_length(self.digits.magnitude())
    }
}

#[cold]
pub(in crate::types) fn field_overflow(precision: u16, scale: i16) -> Error {
    let digits = i32::from(precision) - i32::from(scale);
    let (prefix, limit) = if digits == 0 {
        ("", 1)
    } else {
        ("10^", digits)
    };
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "numeric field overflow",
    )
    .with_detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less \
         than {prefix}{limit}."
    ))
}

#[cold]
fn infinite_field(precision: u16, scale: i16) -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "numeric field overflow",
    )
    .with_detail(format!(
        "A field with precision {precision}, scale {scale} cannot hold an infinite value."
    ))
}
