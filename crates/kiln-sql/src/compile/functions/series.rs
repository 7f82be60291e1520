//! The values of `generate_series`, as an array, where they are not a loop over integers.

use kiln_procedure::frame::compare;
use kiln_procedure::ir::{Arithmetic, Class};
use kiln_procedure::number;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::datetime::{timestamp_add_interval, timestamptz_add_interval};
use kiln_storage::types::{DataType, Decimal, Interval};

use super::array::check_elements;
use super::cast::strict;
use super::datetime::zone_of;
use super::{Named, check_length};

/// The builtin that gives the values of a series of `data_type`. That of a TIMESTAMPTZ is given the
/// session's style as well.
pub(in super::super) fn series(data_type: &DataType) -> Named {
    match data_type {
        DataType::Integer | DataType::BigInt => INTEGERS,
        DataType::Timestamp(_) => TIMESTAMPS,
        DataType::TimestampTz(_) => TIMESTAMPTZS,
        _ => DECIMALS,
    }
}

fn no_step() -> Error {
    let message = "step size cannot equal zero";
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Puts what `next` gives into an array, until it gives nothing.
fn collect(heap: &mut Heap, mut next: impl FnMut() -> Result<Option<Slot>>) -> Result<Slot> {
    let mut values = Vec::new();
    while let Some(value) = next()? {
        check_elements(values.len())?;
        values.push(value);
    }
    Ok(heap.push_array(&values))
}

strict! {
    INTEGERS = "generate_series_integer", |heap, first, last, step| {
        let (last, step) = (last.as_i64(), step.as_i64());
        if step == 0 {
            return Err(no_step());
        }
        let mut at = Some(first.as_i64());
        collect(heap, || {
            let Some(value) = at.filter(|at| if step > 0 { *at <= last } else { *at >= last }) else {
                return Ok(None);
            };
            at = value.checked_add(step);
            Ok(Some(Slot::from_i64(value)))
        })
    };
    DECIMALS = "generate_series_numeric", |heap, first, last, step| {
        for (value, name) in [(first, "start value"), (last, "stop value"), (step, "step size")] {
            let number = heap.number(value);
            if !number.is_finite() {
                let what = if number.is_nan() { "NaN" } else { "infinity" };
                let message = format!("{name} cannot be {what}");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        let zero = Slot::from_decimal(Decimal::ZERO);
        let is_up = match compare(heap, Class::Decimal, step, zero) {
            std::cmp::Ordering::Equal => return Err(no_step()),
            order => order.is_gt(),
        };
        let (mut at, mut values) = (first, Vec::new());
        loop {
            let order = compare(heap, Class::Decimal, at, last);
            if if is_up { order.is_gt() } else { order.is_lt() } {
                return Ok(heap.push_array(&values));
            }
            check_elements(values.len())?;
            check_length(heap.used_bytes())?;
            values.push(at);
            at = number::compute(heap, Arithmetic::Add, at, step)?;
        }
    };
    TIMESTAMPS = "generate_series_timestamp", |heap, first, last, step| {
        timestamps(heap, (first, last, step), timestamp_add_interval)
    };
    TIMESTAMPTZS = "generate_series_timestamptz", |heap, first, last, step, style| {
        let zone = zone_of(heap, style);
        timestamps(heap, (first, last, step), |at, step| {
            timestamptz_add_interval(at, step, &zone)
        })
    };
}

fn timestamps(
    heap: &mut Heap,
    (first, last, step): (Slot, Slot, Slot),
    add: impl Fn(i64, Interval) -> Result<i64>,
) -> Result<Slot> {
    let (last, step) = (last.as_i64(), heap.interval(step));
    let is_up = match step.cmp(&Interval::default()) {
        std::cmp::Ordering::Equal => return Err(no_step()),
        order => order.is_gt(),
    };
    let mut at = first.as_i64();
    collect(heap, || {
        if if is_up { at > last } else { at < last } {
            return Ok(None);
        }
        let value = at;
        at = add(at, step)?;
        Ok(Some(Slot::from_i64(value)))
    })
}
