//! Trigonometric and hyperbolic functions of DOUBLE PRECISION.
//!
//! Those of degrees are exact where the result is, as PostgreSQL's: they are computed in the first
//! quadrant as multiples of what the library computes for 30, 45 and 60 degrees.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::Slot;

use super::cast::strict;
use super::signatures;

#[cold]
fn out_of_range() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "input is out of range",
    )
}

/// What a function gives for a number for which `is_taken` holds; NaN for NaN.
fn within(
    value: Slot,
    is_taken: impl FnOnce(f64) -> bool,
    compute: impl FnOnce(f64) -> f64,
) -> Result<Slot> {
    let number = value.as_f64();
    match number.is_nan() || is_taken(number) {
        true if number.is_nan() => Ok(value),
        true => Ok(Slot::from_f64(compute(number))),
        false => Err(out_of_range()),
    }
}

fn is_cosine(number: f64) -> bool {
    (-1.0..=1.0).contains(&number)
}

/// From 0 to 30 degrees.
fn sine_of_few(degrees: f64) -> f64 {
    degrees.to_radians().sin() / 30_f64.to_radians().sin() / 2.0
}

/// From 0 to 60 degrees.
fn cosine_of_few(degrees: f64) -> f64 {
    let missing = |degrees: f64| 1.0 - degrees.to_radians().cos();
    1.0 - missing(degrees) / missing(60.0) / 2.0
}

/// From 0 to 90 degrees.
fn sine(degrees: f64) -> f64 {
    match degrees <= 30.0 {
        true => sine_of_few(degrees),
        false => cosine_of_few(90.0 - degrees),
    }
}

/// From 0 to 90 degrees.
fn cosine(degrees: f64) -> f64 {
    match degrees <= 60.0 {
        true => cosine_of_few(degrees),
        false => sine_of_few(90.0 - degrees),
    }
}

/// The degrees from 0 to 90 of a sine from 0 to 1.
fn arc_sine(number: f64) -> f64 {
    match number <= 0.5 {
        true => number.asin() / 0.5_f64.asin() * 30.0,
        false => 90.0 - number.acos() / 0.5_f64.acos() * 60.0,
    }
}

/// The degrees from 0 to 90 of a cosine from 0 to 1.
fn arc_cosine(number: f64) -> f64 {
    match number <= 0.5 {
        true => 90.0 - number.asin() / 0.5_f64.asin() * 30.0,
        false => number.acos() / 0.5_f64.acos() * 60.0,
    }
}

/// Degrees as such from 0 to 90, with the signs of their sine and their cosine.
fn folded(degrees: f64) -> (f64, f64, f64) {
    let (mut degrees, mut of_sine, mut of_cosine) = (degrees % 360.0, 1.0, 1.0);
    if degrees < 0.0 {
        (degrees, of_sine) = (-degrees, -of_sine);
    }
    if degrees > 180.0 {
        (degrees, of_sine) = (360.0 - degrees, -of_sine);
    }
    if degrees > 90.0 {
        (degrees, of_cosine) = (180.0 - degrees, -of_cosine);
    }
    (degrees, of_sine, of_cosine)
}

/// A quotient of sine and cosine, or of cosine and sine, without a negative zero.
fn quotient(numerator: fn(f64) -> f64, denominator: fn(f64) -> f64, degrees: f64) -> f64 {
    let (degrees, of_sine, of_cosine) = folded(degrees);
    let of = |degrees| numerator(degrees) / denominator(degrees);
    of_sine * of_cosine * (of(degrees) / of(45.0)) + 0.0
}

strict! {
    ASIN = "asin", |heap, value| within(value, is_cosine, f64::asin);
    ACOS = "acos", |heap, value| within(value, is_cosine, f64::acos);
    COT = "cot", |heap, value| within(value, f64::is_finite, |value| 1.0 / value.tan());
    SINH = "sinh", |heap, value| Ok(Slot::from_f64(value.as_f64().sinh()));
    COSH = "cosh", |heap, value| Ok(Slot::from_f64(value.as_f64().cosh()));
    TANH = "tanh", |heap, value| Ok(Slot::from_f64(value.as_f64().tanh()));
    ASINH = "asinh", |heap, value| Ok(Slot::from_f64(value.as_f64().asinh()));
    ACOSH = "acosh", |heap, value| within(value, |value| value >= 1.0, f64::acosh);
    ATANH = "atanh", |heap, value| within(value, is_cosine, f64::atanh);
    SIND = "sind", |heap, value| within(value, f64::is_finite, |value| {
        let (degrees, sign, _) = folded(value);
        sign * sine(degrees)
    });
    COSD = "cosd", |heap, value| within(value, f64::is_finite, |value| {
        let (degrees, _, sign) = folded(value);
        sign * cosine(degrees)
    });
    TAND = "tand", |heap, value| within(value, f64::is_finite, |value| quotient(sine, cosine, value));
    COTD = "cotd", |heap, value| within(value, f64::is_finite, |value| quotient(cosine, sine, value));
    ASIND = "asind", |heap, value| within(value, is_cosine, |value| match value >= 0.0 {
        true => arc_sine(value),
        false => -arc_sine(-value),
    });
    ACOSD = "acosd", |heap, value| within(value, is_cosine, |value| match value >= 0.0 {
        true => arc_cosine(value),
        false => 90.0 + arc_sine(-value),
    });
    ATAND = "atand", |heap, value| Ok(Slot::from_f64(value.as_f64().atan() / 1_f64.atan() * 45.0));
    ATAN2D = "atan2d", |heap, y, x| {
        Ok(Slot::from_f64(y.as_f64().atan2(x.as_f64()) / 1_f64.atan() * 45.0))
    };
}

signatures! {
    "asin"(Double) -> Double = ASIN;
    "acos"(Double) -> Double = ACOS;
    "cot"(Double) -> Double = COT;
    "sinh"(Double) -> Double = SINH;
    "cosh"(Double) -> Double = COSH;
    "tanh"(Double) -> Double = TANH;
    "asinh"(Double) -> Double = ASINH;
    "acosh"(Double) -> Double = ACOSH;
    "atanh"(Double) -> Double = ATANH;
    "sind"(Double) -> Double = SIND;
    "cosd"(Double) -> Double = COSD;
    "tand"(Double) -> Double = TAND;
    "cotd"(Double) -> Double = COTD;
    "asind"(Double) -> Double = ASIND;
    "acosd"(Double) -> Double = ACOSD;
    "atand"(Double) -> Double = ATAND;
    "atan2d"(Double, Double) -> Double = ATAN2D;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_with_exact_results_have_these() {
        let all = [
            (0.0, 0.0, 1.0),
            (30.0, 0.5, f64::NAN),
            (60.0, f64::NAN, 0.5),
            (90.0, 1.0, 0.0),
            (150.0, 0.5, f64::NAN),
            (180.0, 0.0, -1.0),
            (270.0, -1.0, 0.0),
            (-30.0, -0.5, f64::NAN),
            (-720.0, 0.0, 1.0),
        ];
        for (degrees, expected_sine, expected_cosine) in all {
            let (folded, of_sine, of_cosine) = folded(degrees);
            if !expected_sine.is_nan() {
                assert_eq!(of_sine * sine(folded), expected_sine, "sine of {degrees}");
            }
            if !expected_cosine.is_nan() {
                assert_eq!(
                    of_cosine * cosine(folded),
                    expected_cosine,
                    "cosine of {degrees}"
                );
            }
        }
        assert_eq!(quotient(sine, cosine, 45.0), 1.0);
        assert_eq!(quotient(cosine, sine, 135.0), -1.0);
        assert!(quotient(sine, cosine, 180.0).is_sign_positive());
    }
}
