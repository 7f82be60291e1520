//! Arithmetic.

use kiln_procedure::ir::Arithmetic;
use kiln_procedure::number;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::Slot;
use kiln_storage::types::{Decimal, Number};

use super::cast::strict;
use super::{int4, of_number, of_numbers, signatures};

fn integer_in(value: Option<i64>, minimum: i64, maximum: i64, name: &str) -> Result<Slot> {
    match value {
        Some(value) if (minimum..=maximum).contains(&value) => Ok(Slot::from_i64(value)),
        _ => Err(Error::out_of_range(name)),
    }
}

fn in_range(result: f64, arguments_finite: bool, is_never_zero: bool) -> Result<Slot> {
    let lost = match result {
        _ if !arguments_finite => None,
        result if result.is_infinite() => Some("overflow"),
        result if result == 0.0 && is_never_zero => Some("underflow"),
        _ => None,
    };
    let Some(lost) = lost else {
        return Ok(Slot::from_f64(result));
    };
    let message = format!("value out of range: {lost}");
    Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
}

fn remainder(left: i64, right: i64) -> Result<Slot> {
    if right == 0 {
        return Err(Error::division_by_zero());
    }
    Ok(Slot::from_i64(left.wrapping_rem(right)))
}

fn greatest_common_divisor(left: i64, right: i64) -> u64 {
    let (mut left, mut right) = (left.unsigned_abs(), right.unsigned_abs());
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

#[cold]
fn not_logarithmic(value_is_zero: bool) -> Error {
    Error::new(
        SqlState::INVALID_ARGUMENT_FOR_LOGARITHM,
        if value_is_zero {
            "cannot take logarithm of zero"
        } else {
            "cannot take logarithm of a negative number"
        },
    )
}

fn logarithm(value: f64, of: impl Fn(f64) -> f64) -> Result<Slot> {
    if value <= 0.0 {
        return Err(not_logarithmic(value == 0.0));
    }
    Ok(Slot::from_f64(of(value)))
}

fn double_power(base: f64, exponent: f64) -> Result<Slot> {
    if base == 0.0 && exponent < 0.0 {
        return Err(Error::new(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "zero raised to a negative power is undefined",
        ));
    }
    if base < 0.0 && exponent.fract() != 0.0 && exponent.is_finite() {
        return Err(Error::new(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    in_range(
        base.powf(exponent),
        base.is_finite() && exponent.is_finite(),
        base != 0.0,
    )
}

/// How many times a multiplication's work finding the greatest common divisor of long numbers is.
const DIVISOR_WORK: usize = 32;

/// The least common multiple; `None` beyond 64 bits.
fn least_common_multiple(left: i64, right: i64) -> Option<i64> {
    if left == 0 || right == 0 {
        return Some(0);
    }
    let divisor = greatest_common_divisor(left, right);
    let multiple = (left.unsigned_abs() / divisor).checked_mul(right.unsigned_abs())?;
    i64::try_from(multiple).ok()
}

#[cold]
fn no_bucket(message: &str) -> Error {
    Error::new(
        SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION,
        message,
    )
}

/// What `width_bucket` gives for a value outside of the bounds, or for the bounds themselves;
/// `None` between them.
fn bucket_outside<T: PartialOrd>(operand: &T, low: &T, high: &T, count: i64) -> Option<i64> {
    let (is_before, is_behind) = match low < high {
        true => (operand < low, operand >= high),
        false => (operand > low, operand <= high),
    };
    match (is_before, is_behind) {
        (true, _) => Some(0),
        (false, true) => Some(count + 1),
        (false, false) => None,
    }
}

fn check_buckets(count: i64, has_nan: bool, is_finite: bool, is_empty: bool) -> Result<()> {
    if count <= 0 {
        return Err(no_bucket("count must be greater than zero"));
    }
    if has_nan {
        return Err(no_bucket(
            "operand, lower bound, and upper bound cannot be NaN",
        ));
    }
    if !is_finite {
        return Err(no_bucket("lower and upper bounds must be finite"));
    }
    match is_empty {
        true => Err(no_bucket("lower bound cannot equal upper bound")),
        false => Ok(()),
    }
}

/// The bucket of a NUMERIC among `count` of the same width, from 1.
fn bucket_of(operand: &Number, low: &Number, high: &Number, count: i64) -> Result<Slot> {
    let has_nan = operand.is_nan() || low.is_nan() || high.is_nan();
    let is_finite = low.is_finite() && high.is_finite();
    check_buckets(count, has_nan, is_finite, low == high)?;
    let bucket = match bucket_outside(operand, low, high, count) {
        Some(bucket) => bucket,
        None => {
            let (offset, width) = match low < high {
                true => (operand.try_sub(low)?, high.try_sub(low)?),
                false => (low.try_sub(operand)?, low.try_sub(high)?),
            };
            let place = offset.try_mul(&Number::from(count))?.try_div(&width)?;
            // Rounding may have led to the end of the last one.
            (place.floor()?.to_i64()? + 1).min(count)
        }
    };
    integer_in(Some(bucket), 0, i64::from(i32::MAX), "integer")
}

/// The same of a DOUBLE PRECISION.
fn double_bucket(operand: f64, low: f64, high: f64, count: i64) -> Result<Slot> {
    let has_nan = operand.is_nan() || low.is_nan() || high.is_nan();
    let is_finite = low.is_finite() && high.is_finite();
    check_buckets(count, has_nan, is_finite, low == high)?;
    let bucket = match bucket_outside(&operand, &low, &high, count) {
        Some(bucket) => bucket,
        None => {
            let (offset, width) = match low < high {
                true => (operand - low, high - low),
                false => (low - operand, low - high),
            };
            // Bounds may be further apart than a double can say.
            let share = match width.is_finite() {
                true => offset / width,
                false => {
                    let (offset, width) = match low < high {
                        true => (operand / 2.0 - low / 2.0, high / 2.0 - low / 2.0),
                        false => (low / 2.0 - operand / 2.0, low / 2.0 - high / 2.0),
                    };
                    offset / width
                }
            };
            ((count as f64 * share).floor() as i64 + 1).min(count)
        }
    };
    integer_in(Some(bucket), 0, i64::from(i32::MAX), "integer")
}

strict! {
    ABS_INT2 = "abs", |heap, value| {
        integer_in(value.as_i64().checked_abs(), 0, i64::from(i16::MAX), "smallint")
    };
    ABS_INT4 = "abs", |heap, value| {
        integer_in(value.as_i64().checked_abs(), 0, i64::from(i32::MAX), "integer")
    };
    ABS_INT8 = "abs", |heap, value| {
        integer_in(value.as_i64().checked_abs(), 0, i64::MAX, "bigint")
    };
    ABS_DECIMAL = "abs", |heap, value| {
        of_number(heap, value, |it| Ok(it.abs()), |it| Ok(it.abs()))
    };
    ABS_DOUBLE = "abs", |heap, value| Ok(Slot::from_f64(value.as_f64().abs()));
    SIGN_DECIMAL = "sign", |heap, value| {
        of_number(heap, value, |it| Ok(it.signum()), |it| Ok(it.signum()))
    };
    SIGN_DOUBLE = "sign", |heap, value| {
        let value = value.as_f64();
        // PostgreSQL gives 0 for NaN and for both zeros.
        let sign = if value == 0.0 || value.is_nan() { 0.0 } else { value.signum() };
        Ok(Slot::from_f64(sign))
    };
    CEIL_DECIMAL = "ceil", |heap, value| of_number(heap, value, Decimal::ceil, Number::ceil);
    CEIL_DOUBLE = "ceil", |heap, value| Ok(Slot::from_f64(value.as_f64().ceil()));
    FLOOR_DECIMAL = "floor", |heap, value| of_number(heap, value, Decimal::floor, Number::floor);
    FLOOR_DOUBLE = "floor", |heap, value| Ok(Slot::from_f64(value.as_f64().floor()));
    ROUND_DECIMAL = "round", |heap, value| {
        of_number(heap, value, |it| it.round(0), |it| it.round(0))
    };
    ROUND_DECIMAL_TO = "round", |heap, value, places| {
        let places = int4(places);
        of_number(heap, value, |it| it.round(places), |it| it.round(places))
    };
    ROUND_DOUBLE = "round", |heap, value| Ok(Slot::from_f64(value.as_f64().round_ties_even()));
    TRUNC_DECIMAL = "trunc", |heap, value| {
        of_number(heap, value, |it| it.trunc(0), |it| it.trunc(0))
    };
    TRUNC_DECIMAL_TO = "trunc", |heap, value, places| {
        let places = int4(places);
        of_number(heap, value, |it| it.trunc(places), |it| it.trunc(places))
    };
    TRUNC_DOUBLE = "trunc", |heap, value| Ok(Slot::from_f64(value.as_f64().trunc()));
    MOD_INTEGER = "mod", |heap, left, right| remainder(left.as_i64(), right.as_i64());
    MOD_DECIMAL = "mod", |heap, left, right| {
        number::compute(heap, Arithmetic::Remainder, left, right)
    };
    DIV_DECIMAL = "div", |heap, left, right| {
        of_numbers(heap, left, right, Decimal::try_div_trunc, Number::try_div_trunc)
    };
    GCD_INT4 = "gcd", |heap, left, right| {
        let divisor = i64::try_from(greatest_common_divisor(left.as_i64(), right.as_i64())).ok();
        integer_in(divisor, 0, i64::from(i32::MAX), "integer")
    };
    GCD_INT8 = "gcd", |heap, left, right| {
        let divisor = i64::try_from(greatest_common_divisor(left.as_i64(), right.as_i64())).ok();
        integer_in(divisor, 0, i64::MAX, "bigint")
    };
    GCD_DECIMAL = "gcd", |heap, left, right| {
        heap.spend(number::product_work(left, right).saturating_mul(DIVISOR_WORK))?;
        let divisor = heap.number(left).gcd(&heap.number(right))?;
        Ok(heap.push_number(&divisor))
    };
    LCM_INT4 = "lcm", |heap, left, right| {
        let multiple = least_common_multiple(left.as_i64(), right.as_i64());
        integer_in(multiple, 0, i64::from(i32::MAX), "integer")
    };
    LCM_INT8 = "lcm", |heap, left, right| {
        let multiple = least_common_multiple(left.as_i64(), right.as_i64());
        integer_in(multiple, 0, i64::MAX, "bigint")
    };
    LCM_DECIMAL = "lcm", |heap, left, right| {
        heap.spend(number::product_work(left, right).saturating_mul(DIVISOR_WORK))?;
        let multiple = heap.number(left).lcm(&heap.number(right))?;
        Ok(heap.push_number(&multiple))
    };
    FACTORIAL = "factorial", |heap, of| {
        let product = Number::factorial(of.as_i64())?;
        let product = heap.push_number(&product);
        heap.spend(number::product_work(product, product))?;
        Ok(product)
    };
    WIDTH_BUCKET_DECIMAL = "width_bucket", |heap, operand, low, high, count| {
        heap.spend(number::product_work(operand, high) + number::product_work(low, high))?;
        let [operand, low, high] = [operand, low, high].map(|slot| heap.number(slot));
        bucket_of(&operand, &low, &high, count.as_i64())
    };
    WIDTH_BUCKET_DOUBLE = "width_bucket", |heap, operand, low, high, count| {
        let (operand, low, high) = (operand.as_f64(), low.as_f64(), high.as_f64());
        double_bucket(operand, low, high, count.as_i64())
    };
    LOG_DECIMALS = "log", |heap, base, value| {
        of_numbers(heap, base, value, |base, it| it.log(base), |base, it| it.log(base))
    };
    SQRT_DECIMAL = "sqrt", |heap, value| of_number(heap, value, Decimal::sqrt, Number::sqrt);
    SQRT_DOUBLE = "sqrt", |heap, value| {
        if value.as_f64() < 0.0 {
            return Err(Error::new(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "cannot take square root of a negative number",
            ));
        }
        Ok(Slot::from_f64(value.as_f64().sqrt()))
    };
    CBRT_DOUBLE = "cbrt", |heap, value| Ok(Slot::from_f64(value.as_f64().cbrt()));
    POWER_DECIMAL = "power", |heap, base, exponent| {
        of_numbers(heap, base, exponent, Decimal::power, Number::power)
    };
    POWER_DOUBLE = "power", |heap, base, exponent| {
        double_power(base.as_f64(), exponent.as_f64())
    };
    EXP_DECIMAL = "exp", |heap, value| of_number(heap, value, Decimal::exp, Number::exp);
    EXP_DOUBLE = "exp", |heap, value| {
        in_range(value.as_f64().exp(), value.as_f64().is_finite(), true)
    };
    LN_DECIMAL = "ln", |heap, value| of_number(heap, value, Decimal::ln, Number::ln);
    LN_DOUBLE = "ln", |heap, value| logarithm(value.as_f64(), f64::ln);
    LOG_DECIMAL = "log", |heap, value| of_number(heap, value, Decimal::log10, Number::log10);
    LOG_DOUBLE = "log", |heap, value| logarithm(value.as_f64(), f64::log10);
    SIN = "sin", |heap, value| Ok(Slot::from_f64(value.as_f64().sin()));
    COS = "cos", |heap, value| Ok(Slot::from_f64(value.as_f64().cos()));
    TAN = "tan", |heap, value| Ok(Slot::from_f64(value.as_f64().tan()));
    ATAN = "atan", |heap, value| Ok(Slot::from_f64(value.as_f64().atan()));
    ATAN2 = "atan2", |heap, y, x| Ok(Slot::from_f64(y.as_f64().atan2(x.as_f64())));
    DEGREES = "degrees", |heap, value| {
        in_range(value.as_f64().to_degrees(), value.as_f64().is_finite(), false)
    };
    RADIANS = "radians", |heap, value| Ok(Slot::from_f64(value.as_f64().to_radians()));
    SCALE = "scale", |heap, value| {
        let scale = heap.number(value).scale();
        Ok(scale.map_or(Slot::NULL, |scale| Slot::from_i64(scale.into())))
    };
    MIN_SCALE = "min_scale", |heap, value| {
        let scale = heap.number(value).min_scale();
        Ok(scale.map_or(Slot::NULL, |scale| Slot::from_i64(scale.into())))
    };
    TRIM_SCALE = "trim_scale", |heap, value| {
        of_number(heap, value, |it| Ok(it.normalize()), |it| Ok(it.normalize()))
    };
    DOUBLE_NEGATE = "negate", |heap, value| Ok(Slot::from_f64(-value.as_f64()));
    BIT_AND = "bit_and", |heap, left, right| Ok(Slot::from_i64(left.as_i64() & right.as_i64()));
    BIT_OR = "bit_or", |heap, left, right| Ok(Slot::from_i64(left.as_i64() | right.as_i64()));
    BIT_XOR = "bit_xor", |heap, left, right| Ok(Slot::from_i64(left.as_i64() ^ right.as_i64()));
    BIT_NOT = "bit_not", |heap, value| Ok(Slot::from_i64(!value.as_i64()));
    SHIFT_LEFT_2 = "shift_left", |heap, value, by| {
        Ok(Slot::from_i64(i64::from((value.as_i64() as i16 as i32).wrapping_shl(int4(by) as u32) as i16)))
    };
    SHIFT_LEFT_4 = "shift_left", |heap, value, by| {
        Ok(Slot::from_i64(i64::from((value.as_i64() as i32).wrapping_shl(int4(by) as u32))))
    };
    SHIFT_LEFT_8 = "shift_left", |heap, value, by| {
        Ok(Slot::from_i64(value.as_i64().wrapping_shl(int4(by) as u32)))
    };
    SHIFT_RIGHT_4 = "shift_right", |heap, value, by| {
        Ok(Slot::from_i64(i64::from((value.as_i64() as i32).wrapping_shr(int4(by) as u32))))
    };
    SHIFT_RIGHT_8 = "shift_right", |heap, value, by| {
        Ok(Slot::from_i64(value.as_i64().wrapping_shr(int4(by) as u32)))
    };
}

pub(in super::super) const fn double_negate() -> super::Named {
    DOUBLE_NEGATE
}

/// The function behind `^`.
pub(in super::super) const fn power(is_decimal: bool) -> super::Named {
    if is_decimal {
        POWER_DECIMAL
    } else {
        POWER_DOUBLE
    }
}

/// The function behind a bitwise operator (`&`, `|`, `#`, `~`, `<<`, `>>`) on integers of this
/// many bytes.
pub(in super::super) fn integer_operator(symbol: &str, bytes: u8) -> Option<super::Named> {
    Some(match (symbol, bytes) {
        ("&", _) => BIT_AND,
        ("|", _) => BIT_OR,
        ("#", _) => BIT_XOR,
        ("~", _) => BIT_NOT,
        ("<<", 2) => SHIFT_LEFT_2,
        ("<<", 4) => SHIFT_LEFT_4,
        ("<<", _) => SHIFT_LEFT_8,
        (">>", 2 | 4) => SHIFT_RIGHT_4,
        (">>", _) => SHIFT_RIGHT_8,
        _ => return None,
    })
}

signatures! {
    "abs"(Int2) -> Int2 = ABS_INT2;
    "abs"(Int4) -> Int4 = ABS_INT4;
    "abs"(Int8) -> Int8 = ABS_INT8;
    "abs"(Numeric) -> Numeric = ABS_DECIMAL;
    "abs"(Real) -> Real = ABS_DOUBLE;
    "abs"(Double) -> Double = ABS_DOUBLE;
    "sign"(Numeric) -> Numeric = SIGN_DECIMAL;
    "sign"(Double) -> Double = SIGN_DOUBLE;
    "ceil"(Numeric) -> Numeric = CEIL_DECIMAL;
    "ceil"(Double) -> Double = CEIL_DOUBLE;
    "ceiling"(Numeric) -> Numeric = CEIL_DECIMAL;
    "ceiling"(Double) -> Double = CEIL_DOUBLE;
    "floor"(Numeric) -> Numeric = FLOOR_DECIMAL;
    "floor"(Double) -> Double = FLOOR_DOUBLE;
    "round"(Numeric) -> Numeric = ROUND_DECIMAL;
    "round"(Numeric, Int4) -> Numeric = ROUND_DECIMAL_TO;
    "round"(Double) -> Double = ROUND_DOUBLE;
    "trunc"(Numeric) -> Numeric = TRUNC_DECIMAL;
    "trunc"(Numeric, Int4) -> Numeric = TRUNC_DECIMAL_TO;
    "trunc"(Double) -> Double = TRUNC_DOUBLE;
    "mod"(Int2, Int2) -> Int2 = MOD_INTEGER;
    "mod"(Int4, Int4) -> Int4 = MOD_INTEGER;
    "mod"(Int8, Int8) -> Int8 = MOD_INTEGER;
    "mod"(Numeric, Numeric) -> Numeric = MOD_DECIMAL;
    "div"(Numeric, Numeric) -> Numeric = DIV_DECIMAL;
    "gcd"(Int4, Int4) -> Int4 = GCD_INT4;
    "gcd"(Int8, Int8) -> Int8 = GCD_INT8;
    "gcd"(Numeric, Numeric) -> Numeric = GCD_DECIMAL;
    "lcm"(Int4, Int4) -> Int4 = LCM_INT4;
    "lcm"(Int8, Int8) -> Int8 = LCM_INT8;
    "lcm"(Numeric, Numeric) -> Numeric = LCM_DECIMAL;
    "factorial"(Int8) -> Numeric = FACTORIAL;
    "width_bucket"(Numeric, Numeric, Numeric, Int4) -> Int4 = WIDTH_BUCKET_DECIMAL;
    "width_bucket"(Double, Double, Double, Int4) -> Int4 = WIDTH_BUCKET_DOUBLE;
    "sqrt"(Numeric) -> Numeric = SQRT_DECIMAL;
    "sqrt"(Double) -> Double = SQRT_DOUBLE;
    "cbrt"(Double) -> Double = CBRT_DOUBLE;
    "power"(Numeric, Numeric) -> Numeric = POWER_DECIMAL;
    "power"(Double, Double) -> Double = POWER_DOUBLE;
    "pow"(Numeric, Numeric) -> Numeric = POWER_DECIMAL;
    "pow"(Double, Double) -> Double = POWER_DOUBLE;
    "exp"(Numeric) -> Numeric = EXP_DECIMAL;
    "exp"(Double) -> Double = EXP_DOUBLE;
    "ln"(Numeric) -> Numeric = LN_DECIMAL;
    "ln"(Double) -> Double = LN_DOUBLE;
    "log"(Numeric) -> Numeric = LOG_DECIMAL;
    "log"(Double) -> Double = LOG_DOUBLE;
    "log"(Numeric, Numeric) -> Numeric = LOG_DECIMALS;
    "log10"(Numeric) -> Numeric = LOG_DECIMAL;
    "log10"(Double) -> Double = LOG_DOUBLE;
    "sin"(Double) -> Double = SIN;
    "cos"(Double) -> Double = COS;
    "tan"(Double) -> Double = TAN;
    "atan"(Double) -> Double = ATAN;
    "atan2"(Double, Double) -> Double = ATAN2;
    "degrees"(Double) -> Double = DEGREES;
    "radians"(Double) -> Double = RADIANS;
    "scale"(Numeric) -> Int4 = SCALE;
    "min_scale"(Numeric) -> Int4 = MIN_SCALE;
    "trim_scale"(Numeric) -> Numeric = TRIM_SCALE;
}
