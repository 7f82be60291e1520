//! Aggregates of numbers by what was accumulated of them, and of values that were collected: an
//! array of them, with NULLs that do not count.

use kiln_procedure::frame::compare;
use kiln_procedure::ir::{Class, ScalarFunction};
use kiln_procedure::number::product_work;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{Decimal, Number};

use super::super::bound::{Bits, Deviation};
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

/// The variance of NUMERICs by their sum, how many there are, and the sum of their squares, or its
/// root. PostgreSQL computes it exactly (`numeric_stddev_internal`), and divides once. Where one is
/// NaN or infinite, what deviates from it is NaN.
fn of_decimals(heap: &mut Heap, arguments: &[Slot], asked: Deviation) -> Result<Slot> {
    let [sum, count, squares] = arguments else {
        return Ok(Slot::NULL);
    };
    let count = count.as_i64();
    if count == 0 || asked.of_sample && count == 1 {
        return Ok(Slot::NULL);
    }
    heap.spend(product_work(*sum, *sum))?;
    let (sum, squares) = (heap.number(*sum), heap.number(*squares));
    if !sum.is_finite() || !squares.is_finite() {
        return Ok(Slot::NAN);
    }
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

/// The same of DOUBLE PRECISIONs, by their sum, how many there are, and their spread.
fn of_doubles(arguments: &[Slot], asked: Deviation) -> Slot {
    let [_, count, spread] = arguments else {
        return Slot::NULL;
    };
    let count = count.as_i64() as f64;
    let others = if asked.of_sample { count - 1.0 } else { count };
    if others <= 0.0 {
        return Slot::NULL;
    }
    let variance: f64 = spread.as_f64() / others;
    Slot::from_f64(if asked.is_root {
        variance.sqrt()
    } else {
        variance
    })
}

fn overflow() -> Error {
    let message = "value out of range: overflow";
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// The sum of two DOUBLE PRECISIONs, of which none or one is infinite where the sum is.
pub(in super::super) const PLAIN_SUM: Named = ("plain_sum", |_, arguments| {
    let (left, right) = (arguments[0].as_f64(), arguments[1].as_f64());
    let sum = left + right;
    match sum.is_infinite() && !left.is_infinite() && !right.is_infinite() {
        true => Err(overflow()),
        false => Ok(Slot::from_f64(sum)),
    }
});

/// The product of the deviations of pairs from their means, summed, once one more pair is among
/// them. Taken in one after the other as PostgreSQL does (`float8_regr_accum`, `float8_accum`,
/// after Youngs and Cramer): how many there are with it, the sum of products, and of either part
/// of the pairs the sum without it and what it has itself. `add` puts a product of deviations to
/// the others, by what it is divided by: PostgreSQL's two functions round in two ways.
fn spread(arguments: &[Slot], add: fn(f64, f64, f64) -> f64) -> Result<Slot> {
    let [count, products, parts @ ..] = arguments else {
        return Ok(Slot::NULL);
    };
    let [x_sum, x, y_sum, y] = parts else {
        return Ok(Slot::NULL);
    };
    let count = count.as_i64() as f64;
    let [x_sum, x, y_sum, y] = [x_sum, x, y_sum, y].map(|part| part.as_f64());
    if count == 1.0 {
        let known = x.is_finite() && y.is_finite();
        return Ok(Slot::from_f64(if known { 0.0 } else { f64::NAN }));
    }
    let beyond_x = x * count - (x_sum + x);
    let beyond_y = y * count - (y_sum + y);
    let divisor = count * (count - 1.0);
    let spread = add(products.as_f64(), beyond_x * beyond_y, divisor);
    let all = [spread, x_sum + x, y_sum + y];
    if !all.iter().any(|sum| sum.is_infinite()) {
        return Ok(Slot::from_f64(spread));
    }
    match [x_sum, x, y_sum, y].iter().any(|part| part.is_infinite()) {
        true if spread.is_infinite() => Ok(Slot::from_f64(f64::NAN)),
        true => Ok(Slot::from_f64(spread)),
        false => Err(overflow()),
    }
}

/// See [`spread`].
pub(in super::super) const SPREAD: Named = ("spread", |_, arguments| {
    spread(arguments, |sum, product, divisor| sum + product / divisor)
});

/// The same of pairs.
pub(in super::super) const SPREAD_OF_PAIRS: Named = ("spread_of_pairs", |_, arguments| {
    spread(arguments, |sum, product, divisor| {
        sum + product * (1.0 / divisor)
    })
});

macro_rules! deviations {
    ($($decimals:ident $doubles:ident $name:literal $of_sample:literal $is_root:literal;)+) => {
        $(
            fn $decimals(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
                let asked = Deviation { of_sample: $of_sample, is_root: $is_root };
                of_decimals(heap, arguments, asked)
            }
            fn $doubles(_: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
                let asked = Deviation { of_sample: $of_sample, is_root: $is_root };
                Ok(of_doubles(arguments, asked))
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

/// What puts the bits of two integers together.
pub(in super::super) fn bits(how: Bits) -> Named {
    fn put_together(arguments: &[Slot], put: fn(i64, i64) -> i64) -> Result<Slot> {
        let [left, right] = arguments else {
            return Ok(Slot::NULL);
        };
        Ok(Slot::from_i64(put(left.as_i64(), right.as_i64())))
    }
    match how {
        Bits::And => ("bit_and", |_, arguments| {
            put_together(arguments, |one, other| one & other)
        }),
        Bits::Or => ("bit_or", |_, arguments| {
            put_together(arguments, |one, other| one | other)
        }),
        Bits::Xor => ("bit_xor", |_, arguments| {
            put_together(arguments, |one, other| one ^ other)
        }),
    }
}

/// The sum of two intervals.
pub(in super::super) const SUM_OF_INTERVALS: Named = ("interval_pl", |heap, arguments| {
    let (left, right) = (heap.interval(arguments[0]), heap.interval(arguments[1]));
    let sum = left.try_add(right)?;
    Ok(heap.push_interval(sum))
});

/// The mean of intervals, by their sum and how many there are.
pub(in super::super) const MEAN_OF_INTERVALS: Named = ("interval_avg", |heap, arguments| {
    let mean = heap
        .interval(arguments[0])
        .try_div(arguments[1].as_i64() as f64)?;
    Ok(heap.push_interval(mean))
});

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
