//! Sums and differences of dates, timestamps and intervals, and their constructors.
//!
//! An infinite date or timestamp stays infinite under addition.

use super::calendar::{
    Civil, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND, check_date, check_timestamp, civil_from_days, date_out_of_range,
    days_from_civil, days_in_month, split_timestamp, timestamp_out_of_range,
};
use super::interval::{Interval, interval_out_of_range};
use super::zone::Zone;
use crate::error::{Error, Result, SqlState};

fn is_infinite_date(date: i32) -> bool {
    date == i32::MIN || date == i32::MAX
}

fn is_infinite_timestamp(timestamp: i64) -> bool {
    timestamp == i64::MIN || timestamp == i64::MAX
}

/// `date + days`.
///
/// # Errors
/// 22008, `date out of range`.
pub fn date_add_days(date: i32, days: i64) -> Result<i32> {
    if is_infinite_date(date) {
        return Ok(date);
    }
    check_date(
        i64::from(date)
            .checked_add(days)
            .ok_or_else(date_out_of_range)?,
    )
}

/// `left - right` in days.
///
/// # Errors
/// 22008 when either is infinite or the difference leaves 32 bits.
pub fn date_difference(left: i32, right: i32) -> Result<i32> {
    if is_infinite_date(left) || is_infinite_date(right) {
        return Err(Error::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "cannot subtract infinite dates",
        ));
    }
    left.checked_sub(right).ok_or_else(date_out_of_range)
}

/// Midnight of the date.
///
/// # Errors
/// 22008 when the date is past the last timestamp.
pub fn date_to_timestamp(date: i32) -> Result<i64> {
    match date {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        _ => check_timestamp(i128::from(date) * i128::from(MICROSECONDS_PER_DAY)).map_err(|_| {
            Error::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                "date out of range for timestamp",
            )
        }),
    }
}

/// The midnight that a day begins with, to be compared with timestamps: later than all that are
/// finite where there is no such timestamp.
pub fn date_as_timestamp(date: i32) -> i64 {
    date_to_timestamp(date).unwrap_or(i64::MAX - 1)
}

/// The date on which a timestamp falls.
pub fn timestamp_to_date(timestamp: i64) -> i32 {
    match timestamp {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        // 64 bits of microseconds are fewer than 2^27 days.
        _ => split_timestamp(timestamp).0 as i32,
    }
}

/// `timestamp + interval`: months first, to the same day of the month or its last one, then
/// days, then the time.
///
/// # Errors
/// 22008, `timestamp out of range`.
pub fn timestamp_add_interval(timestamp: i64, interval: Interval) -> Result<i64> {
    if is_infinite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let (mut days, time) = split_timestamp(timestamp);
    if interval.months != 0 {
        let civil = civil_from_days(days);
        let month =
            i64::from(civil.year) * 12 + i64::from(civil.month - 1) + i64::from(interval.months);
        let (year, month) = (month.div_euclid(12), month.rem_euclid(12) as u32 + 1);
        let day = civil.day.min(days_in_month(year, month));
        days = days_from_civil(year, month, i64::from(day));
    }
    let midnight =
        (i128::from(days) + i128::from(interval.days)) * i128::from(MICROSECONDS_PER_DAY);
    // PostgreSQL checks after each step; a sum that leaves the range in between is rare enough
    // that only its end is judged here.
    check_timestamp(midnight + i128::from(time) + i128::from(interval.microseconds))
}

/// `timestamptz + interval`: months and days go by the clocks of a zone, the time does not.
///
/// # Errors
/// 22008, `timestamp out of range`.
pub fn timestamptz_add_interval(timestamp: i64, interval: Interval, zone: &Zone) -> Result<i64> {
    if is_infinite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let mut moment = timestamp;
    for step in [
        Interval::new(interval.months, 0, 0),
        Interval::new(0, interval.days, 0),
    ] {
        if step.months != 0 || step.days != 0 {
            let shown = zone.shown_at(moment).time;
            moment = zone.to_moment(timestamp_add_interval(shown, step)?)?;
        }
    }
    check_timestamp(i128::from(moment) + i128::from(interval.microseconds))
}

/// [`age`] of two TIMESTAMPTZ, as the clocks of a zone show them.
///
/// # Errors
/// 22008 when either is infinite.
pub fn timestamptz_age(left: i64, right: i64, zone: &Zone) -> Result<Interval> {
    if is_infinite_timestamp(left) || is_infinite_timestamp(right) {
        return Err(timestamp_out_of_range());
    }
    let shown = |timestamp| zone.shown_at(timestamp).time;
    Ok(symbolic_difference(
        shown(left),
        shown(right),
        left >= right,
    ))
}

/// `timestamp - interval`.
///
/// # Errors
/// 22008, `timestamp out of range` or `interval out of range`.
pub fn timestamp_sub_interval(timestamp: i64, interval: Interval) -> Result<i64> {
    timestamp_add_interval(timestamp, interval.try_neg()?)
}

/// `date + interval`, a timestamp.
///
/// # Errors
/// 22008 when a step is out of range.
pub fn date_add_interval(date: i32, interval: Interval) -> Result<i64> {
    timestamp_add_interval(date_to_timestamp(date)?, interval)
}

/// `left - right` in days and time.
///
/// # Errors
/// 22008 when either is infinite or the difference leaves the range.
pub fn timestamp_difference(left: i64, right: i64) -> Result<Interval> {
    if is_infinite_timestamp(left) || is_infinite_timestamp(right) {
        return Err(Error::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "cannot subtract infinite timestamps",
        ));
    }
    let microseconds = left.checked_sub(right).ok_or_else(interval_out_of_range)?;
    Interval::new(0, 0, microseconds).justify_hours()
}

/// The difference in years, months, days and time as a person counts it (PostgreSQL's `age`).
///
/// # Errors
/// 22008 when either is infinite.
pub fn age(left: i64, right: i64) -> Result<Interval> {
    if is_infinite_timestamp(left) || is_infinite_timestamp(right) {
        return Err(timestamp_out_of_range());
    }
    Ok(symbolic_difference(left, right, left >= right))
}

fn symbolic_difference(left: i64, right: i64, is_forward: bool) -> Interval {
    let (later, earlier, sign) = if is_forward {
        (left, right, 1)
    } else {
        (right, left, -1)
    };
    let ((later_days, later_time), (earlier_days, earlier_time)) =
        (split_timestamp(later), split_timestamp(earlier));
    let (from, to) = (civil_from_days(earlier_days), civil_from_days(later_days));
    let mut months = (i64::from(to.year) - i64::from(from.year)) * 12 + i64::from(to.month)
        - i64::from(from.month);
    let mut days = i64::from(to.day) - i64::from(from.day);
    let mut time = later_time - earlier_time;
    if time < 0 {
        time += MICROSECONDS_PER_DAY;
        days -= 1;
    }
    while days < 0 {
        // The days borrowed are those of the earlier date's month.
        days += i64::from(days_in_month(i64::from(from.year), from.month));
        months -= 1;
    }
    Interval::new((months * sign) as i32, (days * sign) as i32, time * sign)
}

/// The date of a year (negative: BC), a month and a day.
///
/// # Errors
/// 22008 when there is no such date.
pub fn make_date(year: i32, month: i32, day: i32) -> Result<i32> {
    let civil = checked_civil(year, month, day)?;
    let days = days_from_civil(i64::from(civil.year), civil.month, i64::from(civil.day));
    check_date(days).map_err(|_| out_of_range("date out of range", civil.year, month, day))
}

#[cold]
fn out_of_range(what: &str, astronomical_year: i32, month: i32, day: i32) -> Error {
    Error::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("{what}: {astronomical_year}-{month:02}-{day:02}"),
    )
}

fn checked_civil(year: i32, month: i32, day: i32) -> Result<Civil> {
    // There is no year 0: 1 BC comes before 1 AD. A sum cannot overflow.
    let astronomical_year = if year < 0 { year + 1 } else { year };
    let valid = year != 0
        && (1..=12).contains(&month)
        && (1..=days_in_month(i64::from(astronomical_year), month as u32) as i32).contains(&day);
    if valid {
        Ok(Civil {
            year: astronomical_year,
            month: month as u32,
            day: day as u32,
        })
    } else {
        Err(out_of_range(
            "date field value out of range",
            astronomical_year,
            month,
            day,
        ))
    }
}

/// The timestamp of a date and a time; `second` may have a fraction and be 60.
///
/// # Errors
/// 22008 when there is no such date or time.
pub fn make_timestamp(
    year: i32,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
    second: f64,
) -> Result<i64> {
    let civil = checked_civil(year, month, day)?;
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
    let days = days_from_civil(i64::from(civil.year), civil.month, i64::from(civil.day));
    check_timestamp(i128::from(days) * i128::from(MICROSECONDS_PER_DAY) + i128::from(time))
}

/// The beginning of the stretch of `stride` that a timestamp is in, where one begins at `origin`.
///
/// # Errors
/// 0A000 for a stride of months, 22008 for one that is not positive, and for an infinite origin.
pub fn date_bin(stride: Interval, timestamp: i64, origin: i64) -> Result<i64> {
    if is_infinite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let out_of_range =
        |message: &str| Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message.to_owned());
    if is_infinite_timestamp(origin) {
        return Err(out_of_range("origin out of range"));
    }
    if stride.months != 0 {
        return Err(Error::unsupported(
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let length = i128::from(stride.days) * i128::from(MICROSECONDS_PER_DAY)
        + i128::from(stride.microseconds);
    if length <= 0 {
        return Err(out_of_range("stride must be greater than zero"));
    }
    let distance = i128::from(timestamp) - i128::from(origin);
    check_timestamp(i128::from(origin) + distance.div_euclid(length) * length)
}

/// The interval of these parts; `seconds` may have a fraction.
///
/// # Errors
/// 22008, `interval out of range`.
pub fn make_interval(parts: [i32; 6], seconds: f64) -> Result<Interval> {
    let [years, months, weeks, days, hours, minutes] = parts;
    let months = years.checked_mul(12).and_then(|it| it.checked_add(months));
    let days = weeks.checked_mul(7).and_then(|it| it.checked_add(days));
    let microseconds = (seconds * MICROSECONDS_PER_SECOND as f64).round_ties_even();
    let time =
        i64::from(hours) * MICROSECONDS_PER_HOUR + i64::from(minutes) * MICROSECONDS_PER_MINUTE;
    match (months, days) {
        (Some(months), Some(days)) if microseconds.abs() < 9.2e18 => {
            let time = time.checked_add(microseconds as i64);
            let time = time.ok_or_else(interval_out_of_range)?;
            Ok(Interval::new(months, days, time))
        }
        _ => Err(interval_out_of_range()),
    }
}
