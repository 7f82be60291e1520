//! Arithmetic.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::Slot;
use kiln_storage::types::Decimal;

use super::cast::strict;
use super::{decimal, int4, signatures};

fn integer_in(value: Option<i64>, minimum: i64, maximum: i64, name: &str) -> Result<Slot> {
    match value {
        Some(value) if (minimum..=maximum).contains(&value) => Ok(Slot::from_i64(value)),
        _ => Err(Error::out_of_range(name)),
    }
}

fn finite(result: f64, arguments_finite: bool) -> Result<Slot> {
    if result.is_infinite() && arguments_finite {
        return Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    Ok(Slot::from_f64(result))
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

fn decimal_logarithm(value: Decimal, of: impl Fn(Decimal) -> Result<Decimal>) -> Result<Slot> {
    if value.is_zero() || value.is_negative() {
        return Err(not_logarithmic(value.is_zero()));
    }
    Ok(decimal(of(value)?))
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
    finite(
        base.powf(exponent),
        base.is_finite() && exponent.is_finite(),
    )
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
    ABS_DECIMAL = "abs", |heap, value| Ok(decimal(value.as_decimal().abs()));
    ABS_DOUBLE = "abs", |heap, value| Ok(Slot::from_f64(value.as_f64().abs()));
    SIGN_DECIMAL = "sign", |heap, value| Ok(decimal(value.as_decimal().signum()));
    SIGN_DOUBLE = "sign", |heap, value| {
        let value = value.as_f64();
        // PostgreSQL gives 0 for NaN and for both zeros.
        let sign = if value == 0.0 || value.is_nan() { 0.0 } else { value.signum() };
        Ok(Slot::from_f64(sign))
    };
    CEIL_DECIMAL = "ceil", |heap, value| Ok(decimal(value.as_decimal().ceil()?));
    CEIL_DOUBLE = "ceil", |heap, value| Ok(Slot::from_f64(value.as_f64().ceil()));
    FLOOR_DECIMAL = "floor", |heap, value| Ok(decimal(value.as_decimal().floor()?));
    FLOOR_DOUBLE = "floor", |heap, value| Ok(Slot::from_f64(value.as_f64().floor()));
    ROUND_DECIMAL = "round", |heap, value| Ok(decimal(value.as_decimal().round(0)?));
    ROUND_DECIMAL_TO = "round", |heap, value, places| {
        Ok(decimal(value.as_decimal().round(int4(places))?))
    };
    ROUND_DOUBLE = "round", |heap, value| Ok(Slot::from_f64(value.as_f64().round_ties_even()));
    TRUNC_DECIMAL = "trunc", |heap, value| Ok(decimal(value.as_decimal().trunc(0)?));
    TRUNC_DECIMAL_TO = "trunc", |heap, value, places| {
        Ok(decimal(value.as_decimal().trunc(int4(places))?))
    };
    TRUNC_DOUBLE = "trunc", |heap, value| Ok(Slot::from_f64(value.as_f64().trunc()));
    MOD_INTEGER = "mod", |heap, left, right| remainder(left.as_i64(), right.as_i64());
    MOD_DECIMAL = "mod", |heap, left, right| {
        Ok(decimal(left.as_decimal().try_rem(right.as_decimal())?))
    };
    DIV_DECIMAL = "div", |heap, left, right| {
        Ok(decimal(left.as_decimal().try_div_trunc(right.as_decimal())?))
    };
    GCD_INT4 = "gcd", |heap, left, right| {
        let divisor = i64::try_from(greatest_common_divisor(left.as_i64(), right.as_i64())).ok();
        integer_in(divisor, 0, i64::from(i32::MAX), "integer")
    };
    GCD_INT8 = "gcd", |heap, left, right| {
        let divisor = i64::try_from(greatest_common_divisor(left.as_i64(), right.as_i64())).ok();
        integer_in(divisor, 0, i64::MAX, "bigint")
    };
    SQRT_DECIMAL = "sqrt", |heap, value| Ok(decimal(value.as_decimal().sqrt()?));
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
        Ok(decimal(base.as_decimal().power(exponent.as_decimal())?))
    };
    POWER_DOUBLE = "power", |heap, base, exponent| {
        double_power(base.as_f64(), exponent.as_f64())
    };
    EXP_DECIMAL = "exp", |heap, value| Ok(decimal(value.as_decimal().exp()?));
    EXP_DOUBLE = "exp", |heap, value| {
        finite(value.as_f64().exp(), value.as_f64().is_finite())
    };
    LN_DECIMAL = "ln", |heap, value| decimal_logarithm(value.as_decimal(), Decimal::ln);
    LN_DOUBLE = "ln", |heap, value| logarithm(value.as_f64(), f64::ln);
    LOG_DECIMAL = "log", |heap, value| decimal_logarithm(value.as_decimal(), Decimal::log10);
    LOG_DOUBLE = "log", |heap, value| logarithm(value.as_f64(), f64::log10);
    SIN = "sin", |heap, value| Ok(Slot::from_f64(value.as_f64().sin()));
    COS = "cos", |heap, value| Ok(Slot::from_f64(value.as_f64().cos()));
    TAN = "tan", |heap, value| Ok(Slot::from_f64(value.as_f64().tan()));
    ATAN = "atan", |heap, value| Ok(Slot::from_f64(value.as_f64().atan()));
    ATAN2 = "atan2", |heap, y, x| Ok(Slot::from_f64(y.as_f64().atan2(x.as_f64())));
    DEGREES = "degrees", |heap, value| Ok(Slot::from_f64(value.as_f64().to_degrees()));
    RADIANS = "radians", |heap, value| Ok(Slot::from_f64(value.as_f64().to_radians()));
    SCALE = "scale", |heap, value| Ok(Slot::from_i64(i64::from(value.as_decimal().scale())));
    MIN_SCALE = "min_scale", |heap, value| {
        Ok(Slot::from_i64(i64::from(value.as_decimal().min_scale())))
    };
    TRIM_SCALE = "trim_scale", |heap, value| Ok(decimal(value.as_decimal().normalize()));
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
