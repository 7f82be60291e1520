//! Frames of RANGE with an offset: whether the end of a frame is at a row, by the values of that row
//! and of the frame's own row (PostgreSQL's `in_range_…` and `update_frameheadpos`).

use std::cmp::Ordering;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, DataType, Number, datetime};

use super::Named;

/// Whether the offset is subtracted.
pub(in super::super) const SUBTRACTS: i64 = 1;
/// Whether rows with NULL come first.
pub(in super::super) const NULLS_FIRST: i64 = 2;
/// Whether the order is descending.
pub(in super::super) const DESCENDING: i64 = 4;
/// Whether the first row of the frame is looked for, and not the first behind it.
pub(in super::super) const STARTS: i64 = 8;

/// # Errors
/// 22013.
fn negative<T>() -> Result<T> {
    let message = "invalid preceding or following size in window function";
    let state = SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE;
    Err(Error::new(state, message))
}

/// Whether the end is found at a row: `compare` says where its value is to the end.
fn is_found(
    heap: &mut Heap,
    arguments: &[Slot],
    compare: fn(&mut Heap, Slot, Slot, Slot, bool) -> Result<Option<Ordering>>,
) -> Result<Slot> {
    let [value, base, offset, flags] = arguments else {
        return Ok(Slot::NULL);
    };
    let has = |flag| flags.as_i64() & flag != 0;
    let starts = has(STARTS);
    let found = match (value.is_null(), base.is_null()) {
        (false, false) => {
            let subtracts = has(SUBTRACTS) != has(DESCENDING);
            let below = starts == has(DESCENDING);
            // `None` where each value is within the end.
            let order = compare(heap, *value, *base, *offset, subtracts)?;
            let is_within = match order {
                Some(order) if below => order.is_le(),
                Some(order) => order.is_ge(),
                None => true,
            };
            is_within == starts
        }
        (value, base) => match (has(NULLS_FIRST), starts) {
            (true, true) => !value || base,
            (true, false) => !value,
            (false, true) => value || !base,
            (false, false) => value && !base,
        },
    };
    Ok(Slot::from_bool(found))
}

const INTEGERS: Named = ("in_range_int", |heap, arguments| {
    is_found(heap, arguments, |_, value, base, offset, subtracts| {
        let offset = i128::from(offset.as_i64());
        if offset < 0 {
            return negative();
        }
        let distance = if subtracts { -offset } else { offset };
        let end = i128::from(base.as_i64()) + distance;
        Ok(Some(i128::from(value.as_i64()).cmp(&end)))
    })
});

/// How a value compares with an end, where NaN is above all others and equal to itself.
fn of_nan(value: bool, base: bool) -> Option<Ordering> {
    (value || base).then(|| value.cmp(&base))
}

const DOUBLES: Named = ("in_range_float8", |heap, arguments| {
    is_found(heap, arguments, |_, value, base, offset, subtracts| {
        let (value, base, offset) = (value.as_f64(), base.as_f64(), offset.as_f64());
        if offset.is_nan() || offset < 0.0 {
            return negative();
        }
        if let Some(order) = of_nan(value.is_nan(), base.is_nan()) {
            return Ok(Some(order));
        }
        let end = if subtracts {
            base - offset
        } else {
            base + offset
        };
        Ok(value.partial_cmp(&end))
    })
});

const NUMERICS: Named = ("in_range_numeric", |heap, arguments| {
    is_found(heap, arguments, |heap, value, base, offset, subtracts| {
        let (value, base) = (heap.number(value), heap.number(base));
        let offset = heap.number(offset);
        if offset.is_nan() || offset.is_negative() {
            return negative();
        }
        if let Some(order) = of_nan(value.is_nan(), base.is_nan()) {
            return Ok(Some(order));
        }
        let end: Number = match subtracts {
            true => base.try_sub(&offset)?,
            false => base.try_add(&offset)?,
        };
        // The difference of infinities.
        Ok((!end.is_nan()).then(|| value.cmp(&end)))
    })
});

/// # Errors
/// 22013 for a negative offset, 22008 outside of the timestamps.
fn compare_timestamps(
    heap: &Heap,
    value: i64,
    base: i64,
    offset: Slot,
    subtracts: bool,
) -> Result<Option<Ordering>> {
    let offset = heap.interval(offset);
    if offset < datetime::Interval::default() {
        return negative();
    }
    let end = match subtracts {
        true => datetime::timestamp_sub_interval(base, offset)?,
        false => datetime::timestamp_add_interval(base, offset)?,
    };
    Ok(Some(value.cmp(&end)))
}

const TIMESTAMPS: Named = ("in_range_timestamp", |heap, arguments| {
    is_found(heap, arguments, |heap, value, base, offset, subtracts| {
        compare_timestamps(heap, value.as_i64(), base.as_i64(), offset, subtracts)
    })
});

const DATES: Named = ("in_range_date", |heap, arguments| {
    is_found(heap, arguments, |heap, value, base, offset, subtracts| {
        let at = |date: Slot| datetime::date_to_timestamp(date.as_i64() as i32);
        compare_timestamps(heap, at(value)?, at(base)?, offset, subtracts)
    })
});

/// Months and days of the offset do not count, and no day ends.
const TIMES: Named = ("in_range_time", |heap, arguments| {
    is_found(heap, arguments, |heap, value, base, offset, subtracts| {
        let offset = i128::from(heap.interval(offset).microseconds);
        if offset < 0 {
            return negative();
        }
        let distance = if subtracts { -offset } else { offset };
        let end = i128::from(base.as_i64()) + distance;
        Ok(Some(i128::from(value.as_i64()).cmp(&end)))
    })
});

const INTERVALS: Named = ("in_range_interval", |heap, arguments| {
    is_found(heap, arguments, |heap, value, base, offset, subtracts| {
        let (value, base) = (heap.interval(value), heap.interval(base));
        let offset = heap.interval(offset);
        if offset < datetime::Interval::default() {
            return negative();
        }
        let end = match subtracts {
            true => base.try_sub(offset)?,
            false => base.try_add(offset)?,
        };
        Ok(Some(value.cmp(&end)))
    })
});

/// What finds the ends of frames over values of a type, and the types of offsets, of which the
/// first is meant by a literal. `None` for a type without such frames.
pub(in super::super) fn in_range(order: &DataType) -> Option<(Named, &'static [DataType])> {
    const OF_SMALL: &[DataType] = &[DataType::SmallInt, DataType::Integer, DataType::BigInt];
    const OF_INTEGER: &[DataType] = &[DataType::Integer, DataType::SmallInt, DataType::BigInt];
    Some(match order {
        DataType::SmallInt => (INTEGERS, OF_SMALL),
        DataType::Integer => (INTEGERS, OF_INTEGER),
        DataType::BigInt => (INTEGERS, &[DataType::BigInt]),
        DataType::Double | DataType::Catalog(CatalogType::Real) => (DOUBLES, &[DataType::Double]),
        DataType::Numeric { .. } => (NUMERICS, const { &[DataType::NUMERIC] }),
        DataType::Date => (DATES, const { &[DataType::INTERVAL] }),
        DataType::Timestamp(_) | DataType::TimestampTz(_) => {
            (TIMESTAMPS, const { &[DataType::INTERVAL] })
        }
        DataType::Time(_) => (TIMES, const { &[DataType::INTERVAL] }),
        DataType::Interval(_) => (INTERVALS, const { &[DataType::INTERVAL] }),
        _ => return None,
    })
}
