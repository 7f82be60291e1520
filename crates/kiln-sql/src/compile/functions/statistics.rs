//! Aggregates of values that were collected: an array of them, with NULLs that do not count.

use kiln_procedure::frame::compare;
use kiln_procedure::ir::{Class, ScalarFunction};
use kiln_procedure::number::product_work;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{Decimal, Interval, Number};

use super::Named;

/// The values of an array that are not NULL; none of an array that is NULL.
fn values(heap: &Heap, array: Slot) -> Vec<Slot> {
    match array.is_null() {
        true => Vec::new(),
        false => {
            let elements = heap.array(array).iter().copied();
            elements.filter(|value| !value.is_null()).collect()
        }
    }
}

/// What is asked of the deviation of values from their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Deviation {
    /// Whether the values are a sample, and not all that there are.
    pub of_sample: bool,
    /// Whether the root is asked for.
    pub is_root: bool,
}

/// The sum of NUMERICs and that of their squares; `None` where one is NaN or infinite: what
/// deviates from that is NaN.
fn sums_of_decimals(heap: &mut Heap, values: &[Slot]) -> Result<Option<(Number, Number)>> {
    let mut all = values.iter();
    let short = all.try_fold((Decimal::ZERO, Decimal::ZERO), |(sum, squares), value| {
        let value = (!value.is_long()).then(|| value.as_decimal())?;
        let square = value.try_mul(value).ok()?;
        Some((sum.try_add(value).ok()?, squares.try_add(square).ok()?))
    });
    if let Some((sum, squares)) = short {
        return Ok(Some((sum.into(), squares.into())));
    }
    let (mut sum, mut squares) = (Number::ZERO, Number::ZERO);
    for slot in values {
        heap.spend(product_work(*slot, *slot))?;
        let value = heap.number(*slot);
        if !value.is_finite() {
            return Ok(None);
        }
        squares = squares.try_add(&value.try_mul(&value)?)?;
        sum = sum.try_add(&value)?;
    }
    Ok(Some((sum, squares)))
}

/// The variance of NUMERICs, or its root. PostgreSQL computes it exactly
/// (`numeric_stddev_internal`), and divides once.
fn of_decimals(heap: &mut Heap, array: Slot, asked: Deviation) -> Result<Slot> {
    let values = values(heap, array);
    let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
    if values.is_empty() || asked.of_sample && count == 1 {
        return Ok(Slot::NULL);
    }
    let Some((sum, squares)) = sums_of_decimals(heap, &values)? else {
        return Ok(Slot::NAN);
    };
    let of_squares = Number::from(count).try_mul(&squares)?;
    let spread = of_squares.try_sub(&sum.try_mul(&sum)?)?;
    if spread.is_zero() || spread.is_negative() {
        return Ok(Slot::from_decimal(Decimal::ZERO));
    }
    let others = if asked.of_sample { count - 1 } else { count };
    let divisor = Number::from(count).try_mul(&Number::from(others))?;
    let variance = spread.try_div(&divisor)?;
    let result = match (asked.is_root, variance.scale()) {
        (true, Some(scale)) => variance.sqrt_at_scale(scale),
        _ => variance,
    };
    Ok(heap.push_number(&result))
}

/// The same of DOUBLE PRECISIONs, taken in one after the other as PostgreSQL does (`float8_accum`,
/// after Youngs and Cramer).
fn of_doubles(heap: &Heap, array: Slot, asked: Deviation) -> Slot {
    let (mut count, mut sum, mut spread) = (0.0, 0.0, 0.0);
    for value in values(heap, array) {
        let value = value.as_f64();
        count += 1.0;
        sum += value;
        if count > 1.0 {
            let beyond = value * count - sum;
            spread += beyond * beyond / (count * (count - 1.0));
        } else if !value.is_finite() {
            spread = f64::NAN;
        }
    }
    let others = if asked.of_sample { count - 1.0 } else { count };
    if others <= 0.0 {
        return Slot::NULL;
    }
    let variance: f64 = spread / others;
    Slot::from_f64(if asked.is_root {
        variance.sqrt()
    } else {
        variance
    })
}

macro_rules! deviations {
    ($($decimals:ident $doubles:ident $name:literal $of_sample:literal $is_root:literal;)+) => {
        $(
            fn $decimals(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
                let asked = Deviation { of_sample: $of_sample, is_root: $is_root };
                of_decimals(heap, arguments[0], asked)
            }
            fn $doubles(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
                let asked = Deviation { of_sample: $of_sample, is_root: $is_root };
                Ok(of_doubles(heap, arguments[0], asked))
            }
        )+

        /// What gives a deviation of NUMERICs, or of DOUBLE PRECISIONs.
        pub(in super::super) fn deviation(asked: Deviation, is_double: bool) -> Named {
            match (asked.of_sample, asked.is_root, is_double) {
                $(
                    ($of_sample, $is_root, false) => ($name, $decimals as ScalarFunction),
                    ($of_sample, $is_root, true) => ($name, $doubles as ScalarFunction),
                )+
            }
        }
    };
}

deviations! {
    decimals_stddev doubles_stddev "stddev_samp" true true;
    decimals_stddev_pop doubles_stddev_pop "stddev_pop" false true;
    decimals_variance doubles_variance "var_samp" true false;
    decimals_var_pop doubles_var_pop "var_pop" false false;
}

/// How bits are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Bits {
    And,
    Or,
    Xor,
}

/// What puts the bits of integers together.
pub(in super::super) fn bits(how: Bits) -> Named {
    fn put_together(heap: &Heap, array: Slot, put: fn(i64, i64) -> i64) -> Result<Slot> {
        let values = values(heap, array).into_iter().map(Slot::as_i64);
        Ok(values.reduce(put).map_or(Slot::NULL, Slot::from_i64))
    }
    match how {
        Bits::And => ("bit_and", |heap, arguments| {
            put_together(heap, arguments[0], |one, other| one & other)
        }),
        Bits::Or => ("bit_or", |heap, arguments| {
            put_together(heap, arguments[0], |one, other| one | other)
        }),
        Bits::Xor => ("bit_xor", |heap, arguments| {
            put_together(heap, arguments[0], |one, other| one ^ other)
        }),
    }
}

fn sum_of_intervals(heap: &Heap, array: Slot) -> Result<Option<(Interval, usize)>> {
    let values = values(heap, array);
    let mut intervals = values.iter().map(|value| heap.interval(*value));
    let Some(first) = intervals.next() else {
        return Ok(None);
    };
    let sum = intervals.try_fold(first, Interval::try_add)?;
    Ok(Some((sum, values.len())))
}

/// What sums intervals, or gives their mean.
pub(in super::super) fn of_intervals(is_mean: bool) -> Named {
    match is_mean {
        false => ("sum", |heap, arguments| {
            let sum = sum_of_intervals(heap, arguments[0])?;
            Ok(sum.map_or(Slot::NULL, |(sum, _)| heap.push_interval(sum)))
        }),
        true => ("avg", |heap, arguments| {
            let Some((sum, count)) = sum_of_intervals(heap, arguments[0])? else {
                return Ok(Slot::NULL);
            };
            let mean = sum.try_div(count as f64)?;
            Ok(heap.push_interval(mean))
        }),
    }
}

/// A fraction of a percentile; `None` where it is NULL.
///
/// # Errors
/// 22003 outside of 0 and 1.
fn fraction(slot: Slot) -> Result<Option<f64>> {
    if slot.is_null() {
        return Ok(None);
    }
    let fraction = slot.as_f64();
    match (0.0..=1.0).contains(&fraction) {
        true => Ok(Some(fraction)),
        false => {
            let message = format!("percentile value {fraction} is not between 0 and 1");
            Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
    }
}

/// `percentile_cont` of DOUBLE PRECISIONs in their order: between two of them where the fraction
/// asks for that.
pub(in super::super) const PERCENTILE_CONT: Named = ("percentile_cont", |heap, arguments| {
    let (Some(fraction), values) = (fraction(arguments[1])?, values(heap, arguments[0])) else {
        return Ok(Slot::NULL);
    };
    let Some(last) = values.len().checked_sub(1) else {
        return Ok(Slot::NULL);
    };
    let place = fraction * last as f64;
    let (first, second) = (place.floor(), place.ceil());
    let low = values[first as usize].as_f64();
    if first == second {
        return Ok(Slot::from_f64(low));
    }
    let high = values[second as usize].as_f64();
    Ok(Slot::from_f64(low + (place - first) * (high - low)))
});

/// `percentile_disc` of values in their order: the first whose place is at the fraction or behind
/// it.
pub(in super::super) const PERCENTILE_DISC: Named = ("percentile_disc", |heap, arguments| {
    let (Some(fraction), values) = (fraction(arguments[1])?, values(heap, arguments[0])) else {
        return Ok(Slot::NULL);
    };
    let place = (fraction * values.len() as f64).ceil().max(1.0);
    Ok(values
        .get(place as usize - 1)
        .copied()
        .unwrap_or(Slot::NULL))
});

/// The value of a sorted array that is there most often, the first of several; by how values of a
/// class compare.
pub(in super::super) fn mode(class: Class) -> Named {
    macro_rules! of {
        ($($class:ident)+) => {
            match class {
                $(Class::$class => {
                    ("mode", |heap, arguments| Ok(most_frequent(heap, arguments[0], Class::$class)))
                })+
            }
        };
    }
    of!(Integer Decimal Double Bytes Interval Json Row Integers Decimals Doubles Texts Intervals Rows)
}

fn most_frequent(heap: &Heap, array: Slot, class: Class) -> Slot {
    let values = values(heap, array);
    let mut best = (Slot::NULL, 0);
    for run in values.chunk_by(|one, other| compare(heap, class, *one, *other).is_eq()) {
        if run.len() > best.1 {
            best = (run[0], run.len());
        }
    }
    best.0
}
