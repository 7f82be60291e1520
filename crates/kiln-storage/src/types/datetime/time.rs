//! TIME: the time of a day, in microseconds since midnight up to 24:00.

use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND,
    split_timestamp, time_of_day, write_fraction,
};
use super::field::{Field, time_field};
use super::interval::Interval;
use crate::error::{Error, Result, SqlState};
use crate::types::Decimal;

const TIME_NAME: &str = "time without time zone";

/// A TIME as PostgreSQL prints it: `12:30:00.5`.
pub fn format_time(time: i64) -> String {
    let time = time_of_day(time.clamp(0, MICROSECONDS_PER_DAY));
    let mut out = format!("{:02}:{:02}:{:02}", time.hour, time.minute, time.second);
    write_fraction(time.microsecond, &mut out);
    out
}

/// A TIME from outside.
///
/// # Errors
/// 22008 before 00:00 and after 24:00.
pub fn time_in_range(microseconds: i64) -> Result<i64> {
    match microseconds {
        0..=MICROSECONDS_PER_DAY => Ok(microseconds),
        _ => Err(Error::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "time out of range",
        )),
    }
}

/// `time + interval`: whole days do not count.
pub fn time_add_interval(time: i64, interval: Interval) -> i64 {
    (time + interval.microseconds % MICROSECONDS_PER_DAY).rem_euclid(MICROSECONDS_PER_DAY)
}

/// `time - interval`.
pub fn time_sub_interval(time: i64, interval: Interval) -> i64 {
    (time - interval.microseconds % MICROSECONDS_PER_DAY).rem_euclid(MICROSECONDS_PER_DAY)
}

/// `left - right`.
pub fn time_difference(left: i64, right: i64) -> Interval {
    Interval::new(0, 0, left - right)
}

/// The time of a timestamp; `None` of an infinite one.
pub fn timestamp_to_time(timestamp: i64) -> Option<i64> {
    match timestamp {
        i64::MIN | i64::MAX => None,
        _ => Some(split_timestamp(timestamp).1),
    }
}

/// The time of an interval, without its days.
pub fn interval_to_time(interval: Interval) -> i64 {
    interval.microseconds.rem_euclid(MICROSECONDS_PER_DAY)
}

/// The time of an hour, a minute and a second, which may have a fraction and be 60.
///
/// # Errors
/// 22008 when there is no such time.
pub fn make_time(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let in_range =
        (0..=24).contains(&hour) && (0..=59).contains(&minute) && (0.0..=60.0).contains(&second);
    let time = i64::from(hour) * MICROSECONDS_PER_HOUR
        + i64::from(minute) * MICROSECONDS_PER_MINUTE
        + (second * MICROSECONDS_PER_SECOND as f64).round_ties_even() as i64;
    if !in_range || time > MICROSECONDS_PER_DAY {
        return Err(Error::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("time field value out of range: {hour}:{minute:02}:{second:02}"),
        ));
    }
    Ok(time)
}

/// `extract(field from time)`.
///
/// # Errors
/// 0A000 for a field that a time has not.
pub fn extract_from_time(field: Field, time: i64) -> Result<Decimal> {
    match (time_field(field, time), field) {
        (Some(value), _) => value,
        (None, Field::Epoch) => Decimal::new(time.into(), 6),
        _ => Err(field.unsupported(TIME_NAME)),
    }
}
