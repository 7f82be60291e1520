//! Exponentials, logarithms and powers, with the scales that PostgreSQL gives them.
//!
//! They are computed in binary fixed point with as many bits after the point as the result's
//! digits take, and sixty-four more; then they are rounded to the result's scale.

use num_bigint::{BigInt, BigUint};

use super::{
    DIGITS_PER_GROUP, Finite, Number, RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN, WHOLE_DIGITS_MAX,
    divide_rounded, overflow, power_of_ten,
};
use crate::error::{Error, Result};
use crate::types::decimal::{LOG10_E, invalid_logarithm, invalid_power};

/// Bits beyond those of the result's digits.
const GUARD_BITS: u64 = 64;

/// PostgreSQL raises no exponential beyond this.
const EXPONENT_MAX: f64 = 6_000.0;

/// What a number's estimate as a logarithm's digits is cut off to.
const WEIGHT_MAX: f64 = 2_000.0;

/// The bits that so many decimal digits take.
fn bits_of(digits: i64) -> u64 {
    (digits.max(0) as f64 * std::f64::consts::LOG2_10) as u64 + 1
}

/// A number times `2^bits`.
struct Fixed {
    value: BigInt,
    bits: u64,
}

impl Fixed {
    /// `1 / divisor` and its like: twice the sum of `z^(2k + 1) / (2k + 1)`, which is the logarithm
    /// of `(1 + z) / (1 - z)`.
    fn twice_artanh(z: BigInt, bits: u64) -> BigInt {
        let square = (&z * &z) >> bits;
        let (mut sum, mut power, mut divisor) = (BigInt::ZERO, z, 1_u64);
        while power.magnitude().bits() > 0 {
            sum += &power / divisor;
            power = (power * &square) >> bits;
            // An arithmetic shift does not come to zero from below.
            if power == BigInt::from(-1) {
                break;
            }
            divisor += 2;
        }
        sum * 2
    }

    fn ln_2(bits: u64) -> BigInt {
        Fixed::twice_artanh((BigInt::from(1) << bits) / 3, bits)
    }

    /// The natural logarithm of a number above zero.
    fn ln(number: &Finite, bits: u64) -> Fixed {
        let digits = number.digits.magnitude();
        let divisor = power_of_ten(number.scale());
        // number = m * 2^exponent with m near 1, between about 0.7 and 1.5.
        let exponent = digits.bits() as i64 - divisor.bits() as i64;
        let inner = bits + 32;
        let shift = inner as i64 - exponent;
        let mut m = match shift {
            0.. => (digits << shift as u64) / divisor,
            _ => digits / (divisor << (-shift) as u64),
        };
        let mut exponent = exponent;
        let one = BigUint::from(1_u8) << inner;
        if m > &one + (&one >> 1_u8) {
            m >>= 1_u8;
            exponent += 1;
        }
        let (m, one) = (BigInt::from(m), BigInt::from(one));
        let z = ((&m - &one) << inner) / (m + one);
        let mut sum = Fixed::twice_artanh(z, inner);
        if exponent != 0 {
            sum += Fixed::ln_2(inner) * exponent;
        }
        Fixed {
            value: sum >> 32_u8,
            bits,
        }
    }

    /// A decimal number.
    fn of(number: &Finite, bits: u64) -> Fixed {
        Fixed {
            value: (&number.digits << bits) / BigInt::from(power_of_ten(number.scale())),
            bits,
        }
    }

    /// `e^self`, rounded to `scale` places.
    fn exp(&self, scale: i64) -> Finite {
        let bits = self.bits;
        let ln_2 = Fixed::ln_2(bits);
        // self = twos * ln 2 + rest, with 0 <= rest < ln 2
        let mut twos = &self.value / &ln_2;
        let mut rest = &self.value % &ln_2;
        if rest < BigInt::ZERO {
            rest += &ln_2;
            twos -= 1;
        }
        // The series of a part of it takes fewer terms; each squaring costs about a bit.
        let halvings = (bits as f64).sqrt() as u64 / 2;
        let inner = bits + 2 * halvings;
        let part = (rest << (inner - bits)) >> halvings;
        let (mut sum, mut term) = (BigInt::ZERO, BigInt::from(1) << inner);
        let mut index = 1_u64;
        while term.magnitude().bits() > 0 {
            sum += &term;
            term = ((term * &part) >> inner) / index;
            index += 1;
        }
        for _ in 0..halvings {
            sum = (&sum * &sum) >> inner;
        }
        let twos = i64::try_from(twos).unwrap_or(0);
        let product = sum * BigInt::from(power_of_ten(scale));
        let drop = inner as i64 - twos;
        let digits = match drop {
            1.. => ((product >> (drop - 1) as u64) + 1) >> 1_u8,
            _ => product << (-drop) as u64,
        };
        Finite::new(digits, scale)
    }

    /// The number rounded to `scale` places.
    fn round(&self, scale: i64) -> Finite {
        let product = &self.value * BigInt::from(power_of_ten(scale));
        let unit = BigUint::from(1_u8) << self.bits;
        Finite::new(divide_rounded(&product, &unit), scale)
    }
}

/// `scale` as a result has it: at least that of each operand, from 0 to 1,000.
fn result_scale(scale: i64, operands: &[&Finite]) -> i64 {
    let least = operands.iter().map(|operand| operand.scale());
    (scale.max(least.max().unwrap_or(0))).clamp(0, RESULT_SCALE_MAX)
}

impl Finite {
    /// The exponent in base 10 of the logarithm's first digit, estimated as PostgreSQL does.
    fn logarithm_weight(&self) -> i64 {
        let tenths = |tenths: i64| Finite::new(tenths.into(), 1);
        if self.compare(&tenths(9)).is_ge() && self.compare(&tenths(11)).is_le() {
            let offset = &self.digits - BigInt::from(power_of_ten(self.scale()));
            let offset = Finite::new(offset, self.scale());
            return match offset.is_zero() {
                true => 0,
                false => offset.length() - 1 - self.scale(),
            };
        }
        let (leading, exponent) = self.leading_digits();
        let logarithm = leading.abs().ln() + exponent as f64 * std::f64::consts::LN_10;
        logarithm.abs().log10() as i64
    }

    /// A logarithm of this weight to so many places.
    fn ln_at_scale(&self, scale: i64) -> Finite {
        Fixed::ln(self, bits_of(scale + 8) + GUARD_BITS).round(scale)
    }

    /// `e^self`, rounded to `scale` places. `weight` is about the result's exponent in base 10.
    fn exp_at_scale(&self, scale: i64, weight: i64) -> Finite {
        let bits = bits_of(scale + weight.max(0) + 8) + GUARD_BITS;
        Fixed::of(self, bits).exp(scale)
    }

    /// The weight of the power, whose logarithm is `exponent * log10(self)`.
    fn power_weight(&self, exponent: f64) -> f64 {
        let (leading, places) = self.leading_digits();
        exponent * (leading.abs().log10() + places as f64)
    }

    /// `self^exponent` for an integer, rounded to `scale` places.
    fn integer_power(&self, exponent: i64, scale: i64) -> Result<Finite> {
        if exponent == 0 {
            return Ok(Finite::new(BigInt::from(power_of_ten(scale)), scale));
        }
        if self.is_zero() {
            return match exponent {
                ..0 => Err(Error::division_by_zero()),
                _ => Ok(Finite::zero(scale)),
            };
        }
        let weight = self.power_weight(exponent as f64);
        if weight > (WHOLE_DIGITS_MAX + 1) as f64 {
            return Err(overflow());
        }
        if weight + 1.0 < -(scale as f64) {
            return Ok(Finite::zero(scale));
        }
        let normal = self.normalized();
        // Digits that count, and some more: what is cut off in each multiplication grows with those
        // that follow.
        let kept = 1 + scale + weight as i64 + exponent.unsigned_abs().ilog10() as i64 + 16;
        let mut result = Finite::new(1.into(), 0);
        let (mut result_places, mut places) = (0_i64, normal.scale());
        let mut base = normal.digits.magnitude().clone();
        let mut digits = result.digits.magnitude().clone();
        let mut rest = exponent.unsigned_abs();
        let cut = |digits: &mut BigUint, places: &mut i64| {
            let excess = super::decimal_length(digits) - kept.max(32);
            if excess > 0 {
                *digits /= power_of_ten(excess);
                *places -= excess;
            }
        };
        while rest > 0 {
            if rest & 1 == 1 {
                digits *= &base;
                result_places += places;
                cut(&mut digits, &mut result_places);
            }
            rest >>= 1;
            if rest > 0 {
                base = &base * &base;
                places *= 2;
                cut(&mut base, &mut places);
            }
        }
        let is_negative = self.is_negative() && exponent % 2 != 0;
        // digits / 10^result_places, or its reciprocal, at the scale.
        let magnitude = match exponent {
            0.. => match scale - result_places {
                raise @ 0.. => BigInt::from(digits * power_of_ten(raise)),
                drop => divide_rounded(&digits.into(), &power_of_ten(-drop)),
            },
            _ => match scale + result_places {
                raise @ 0.. => divide_rounded(&power_of_ten(raise).into(), &digits),
                drop => divide_rounded(&1.into(), &(digits * power_of_ten(-drop))),
            },
        };
        result.digits = if is_negative { -magnitude } else { magnitude };
        result.scale = scale as u16;
        Ok(result)
    }
}

impl Number {
    fn check_logarithm(&self) -> Result<()> {
        if self.is_negative() {
            let message = "cannot take logarithm of a negative number";
            Err(invalid_logarithm(message))
        } else if self.is_zero() {
            Err(invalid_logarithm("cannot take logarithm of zero"))
        } else {
            Ok(())
        }
    }

    /// `e` to the power of this number.
    ///
    /// # Errors
    /// 22003 beyond PostgreSQL's limits.
    pub fn exp(&self) -> Result<Number> {
        let finite = match self {
            Number::NegativeInfinity => return Ok(Number::ZERO),
            Number::Finite(finite) => finite,
            other => return Ok(other.clone()),
        };
        let value = self.estimate();
        let weight = (value * LOG10_E).clamp(-WEIGHT_MAX, WEIGHT_MAX) as i64;
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight, &[finite]);
        if value.abs() >= EXPONENT_MAX {
            return match value > 0.0 {
                true => Err(overflow()),
                false => Finite::zero(scale).checked(),
            };
        }
        (finite.exp_at_scale(scale, (value * LOG10_E) as i64 + 1)).checked()
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// 2201E for zero and below.
    pub fn ln(&self) -> Result<Number> {
        if !self.is_nan() {
            self.check_logarithm()?;
        }
        let Number::Finite(finite) = self else {
            return Ok(self.clone());
        };
        let scale = SIGNIFICANT_DIGITS_MIN - finite.logarithm_weight();
        let scale = result_scale(scale, &[finite]);
        finite.ln_at_scale(scale).checked()
    }

    /// The logarithm to this base.
    ///
    /// # Errors
    /// 2201E for zero and below, 22012 for base 1.
    pub fn log(&self, base: &Number) -> Result<Number> {
        if self.is_nan() || base.is_nan() {
            return Ok(Number::NaN);
        }
        let is_finite = self.is_finite() && base.is_finite();
        if !is_finite && (self.is_negative() || base.is_negative()) {
            let message = "cannot take logarithm of a negative number";
            return Err(invalid_logarithm(message));
        }
        base.check_logarithm()?;
        self.check_logarithm()?;
        let (value, base) = match (self, base) {
            (Number::Finite(value), Number::Finite(base)) => (value, base),
            // log(finite, Infinity) is none of these: the base is the argument here.
            (Number::Finite(_), _) => return Ok(Number::ZERO),
            (_, Number::Finite(_)) => return Ok(Number::Infinity),
            _ => return Ok(Number::NaN),
        };
        let (value_weight, base_weight) = (value.logarithm_weight(), base.logarithm_weight());
        let weight = value_weight - base_weight;
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight, &[value, base]);
        let places = (scale + weight).max(0) + 12;
        let of_base = base.ln_at_scale((places - base_weight).max(0));
        if of_base.is_zero() {
            return Err(Error::division_by_zero());
        }
        let of_value = value.ln_at_scale((places - value_weight).max(0));
        of_value.divided(&of_base, scale).checked()
    }

    /// The logarithm to base 10.
    ///
    /// # Errors
    /// As [`Number::log`].
    pub fn log10(&self) -> Result<Number> {
        self.log(&Number::from(10))
    }

    /// Whether it is an integer; the infinities are.
    fn is_integer(&self) -> bool {
        !self.is_nan() && self.min_scale().unwrap_or(0) == 0
    }

    fn is_odd(&self) -> bool {
        match self {
            Number::Finite(finite) => finite.rounded(0).digits.bit(0),
            _ => false,
        }
    }

    /// This number to the power of `exponent`.
    ///
    /// # Errors
    /// 2201F for zero to a negative power and for a negative number to a power that is no
    /// integer, 22003 beyond PostgreSQL's limits.
    pub fn power(&self, exponent: &Number) -> Result<Number> {
        // POSIX: NaN ^ 0 and 1 ^ NaN are 1.
        let one = Number::from(1);
        if self.is_nan() || exponent.is_nan() {
            return Ok(match exponent.is_zero() || *self == one {
                true => one,
                false => Number::NaN,
            });
        }
        if self.is_zero() && exponent.is_negative() {
            return Err(invalid_power(
                "zero raised to a negative power is undefined",
            ));
        }
        if self.is_negative() && !exponent.is_integer() {
            return Err(invalid_power(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        match (self, exponent) {
            (Number::Finite(base), Number::Finite(exponent)) => base.power(exponent),
            _ => Ok(self.power_with_infinity(exponent)),
        }
    }

    /// The power where one of the two is infinite, as of POSIX's `pow`.
    fn power_with_infinity(&self, exponent: &Number) -> Number {
        let one = Number::from(1);
        if *self == one || exponent.is_zero() {
            return one;
        }
        if self.is_zero() {
            return Number::ZERO;
        }
        if !exponent.is_finite() {
            let magnitude = self.abs();
            if magnitude == one {
                return one;
            }
            return match (magnitude > one) != exponent.is_negative() {
                true => Number::Infinity,
                false => Number::ZERO,
            };
        }
        match exponent.is_negative() {
            true => Number::ZERO,
            false => Number::infinity(self.is_negative() && exponent.is_odd()),
        }
    }
}

impl Finite {
    fn power(&self, exponent: &Finite) -> Result<Number> {
        let whole = exponent.normalized();
        if whole.scale == 0
            && let Ok(exponent) = i32::try_from(&whole.digits)
        {
            let scale = result_scale(SIGNIFICANT_DIGITS_MIN, &[self]);
            return self.integer_power(exponent.into(), scale)?.checked();
        }
        if self.is_zero() {
            return Finite::zero(SIGNIFICANT_DIGITS_MIN).checked();
        }
        let base = Finite::new(self.digits.magnitude().clone().into(), self.scale());
        let is_negative = self.is_negative() && whole.digits.bit(0);
        // The result's weight, estimated from eight digits of the logarithm.
        let weight = base.logarithm_weight();
        let places = (8 - weight).max(0);
        let logarithm = base.ln_at_scale(places);
        let product = Finite::new(
            &logarithm.digits * &exponent.digits,
            logarithm.scale() + exponent.scale(),
        );
        let value = Number::Finite(product.rounded(places)).estimate();
        if value.abs() > EXPONENT_MAX * 1.003_333_333_333_333_4 {
            return match value > 0.0 {
                true => Err(overflow()),
                false => Finite::zero(RESULT_SCALE_MAX).checked(),
            };
        }
        let result_weight = (value * LOG10_E) as i64;
        let scale = SIGNIFICANT_DIGITS_MIN - result_weight;
        let scale = result_scale(scale, &[self, exponent]);
        let significant = (scale + result_weight).max(0);
        // The error of the logarithm grows with the exponent.
        let grown = exponent.exponent().max(0);
        let places = (significant - weight).max(0) + grown + 12;
        let logarithm = base.ln_at_scale(places);
        let product = Finite {
            digits: &logarithm.digits * &exponent.digits,
            scale: (logarithm.scale() + exponent.scale()).min(i64::from(u16::MAX)) as u16,
        };
        let magnitude = product.exp_at_scale(scale, result_weight + DIGITS_PER_GROUP);
        match is_negative {
            true => Finite::new(-magnitude.digits, scale).checked(),
            false => magnitude.checked(),
        }
    }
}
