//! The calendar: day numbers to years, months and days and back, and PostgreSQL's ISO output.

use std::fmt::Write;

use super::zone::{Shown, Zone};
use crate::error::{Error, Result, SqlState};

/// Microseconds in a day.
pub const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
/// Microseconds in an hour.
pub const MICROSECONDS_PER_HOUR: i64 = 3_600_000_000;
/// Microseconds in a minute.
pub const MICROSECONDS_PER_MINUTE: i64 = 60_000_000;
/// Microseconds in a second.
pub const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// The digits of a second that microseconds have.
const DIGITS_MAX: u32 = 6;

/// Microseconds rounded to so many digits of a second, half away from zero as PostgreSQL does.
/// Infinity stays.
pub fn round_seconds(microseconds: i64, digits: Option<u8>) -> i64 {
    let dropped = digits.map_or(0, |digits| DIGITS_MAX.saturating_sub(digits.into()));
    let unit = 10_i64.pow(dropped);
    if dropped == 0 || matches!(microseconds, i64::MIN | i64::MAX) {
        return microseconds;
    }
    let rounded = |magnitude: i64| magnitude.saturating_add(unit / 2) / unit * unit;
    match microseconds < 0 {
        true => -rounded(-microseconds),
        false => rounded(microseconds),
    }
}

/// Days from 0000-03-01 to 2000-01-01.
const EPOCH_FROM_MARCH_YEAR_ZERO: i64 = 730_425;
/// Days in the calendar's cycle of 400 years.
const DAYS_PER_CYCLE: i64 = 146_097;
/// Days from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_DAYS: i64 = 10_957;

/// The first day that PostgreSQL can represent, 4714-11-24 BC (Julian day 0).
pub(super) const DATE_MIN: i32 = -2_451_545;
/// The last day of a DATE, 5874897-12-31.
pub(super) const DATE_MAX: i32 = 2_145_031_948;
/// The first microsecond of a TIMESTAMP, 4714-11-24 00:00 BC.
pub(super) const TIMESTAMP_MIN: i64 = DATE_MIN as i64 * MICROSECONDS_PER_DAY;
/// The first microsecond past a TIMESTAMP, 294277-01-01 00:00.
pub(super) const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// A calendar date. Years before 1 AD count down from 0, which is 1 BC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Civil {
    /// The astronomical year: 0 is 1 BC.
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

/// Whether February has 29 days in the year.
pub fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The number of days in a month; `month` is 1 to 12.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 2000-01-01 of a calendar date; `month` is 1 to 12, `day` may be any number.
pub fn days_from_civil(year: i64, month: u32, day: i64) -> i64 {
    // Years that begin in March put the leap day at the end, so that the days before a month
    // follow from its number alone: 153 days are five months.
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * DAYS_PER_CYCLE + day_of_cycle - EPOCH_FROM_MARCH_YEAR_ZERO
}

/// The calendar date of a day since 2000-01-01.
pub fn civil_from_days(days: i64) -> Civil {
    let days = days + EPOCH_FROM_MARCH_YEAR_ZERO;
    let cycle = days.div_euclid(DAYS_PER_CYCLE);
    let day_of_cycle = days.rem_euclid(DAYS_PER_CYCLE);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
        - day_of_cycle / (DAYS_PER_CYCLE - 1))
        / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    Civil {
        year: year as i32,
        month: month as u32,
        day: day as u32,
    }
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 to 999,999.
    pub microsecond: u32,
}

/// Splits a timestamp into its day since 2000-01-01 and its microsecond of that day.
pub fn split_timestamp(timestamp: i64) -> (i64, i64) {
    (
        timestamp.div_euclid(MICROSECONDS_PER_DAY),
        timestamp.rem_euclid(MICROSECONDS_PER_DAY),
    )
}

/// The time of day of a microsecond within a day.
pub fn time_of_day(microseconds: i64) -> TimeOfDay {
    TimeOfDay {
        hour: (microseconds / MICROSECONDS_PER_HOUR) as u32,
        minute: (microseconds / MICROSECONDS_PER_MINUTE % 60) as u32,
        second: (microseconds / MICROSECONDS_PER_SECOND % 60) as u32,
        microsecond: (microseconds % MICROSECONDS_PER_SECOND) as u32,
    }
}

#[cold]
pub(super) fn date_out_of_range() -> Error {
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range")
}

#[cold]
pub(super) fn timestamp_out_of_range() -> Error {
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// The day as a DATE, unless PostgreSQL's range ends before it.
pub(super) fn check_date(days: i64) -> Result<i32> {
    match i32::try_from(days) {
        Ok(date) if (DATE_MIN..=DATE_MAX).contains(&date) => Ok(date),
        _ => Err(date_out_of_range()),
    }
}

/// The microseconds as a TIMESTAMP, unless PostgreSQL's range ends before it.
pub(super) fn check_timestamp(microseconds: i128) -> Result<i64> {
    match i64::try_from(microseconds) {
        Ok(timestamp) if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp) => Ok(timestamp),
        _ => Err(timestamp_out_of_range()),
    }
}

/// A DATE from outside, in days since 2000-01-01, or one of the infinities.
///
/// # Errors
/// 22008 beyond PostgreSQL's range.
pub fn date_in_range(days: i32) -> Result<i32> {
    match days {
        i32::MIN | i32::MAX => Ok(days),
        _ => check_date(days.into()),
    }
}

/// A TIMESTAMP from outside, in microseconds since 2000-01-01, or one of the infinities.
///
/// # Errors
/// 22008 beyond PostgreSQL's range.
pub fn timestamp_in_range(microseconds: i64) -> Result<i64> {
    match microseconds {
        i64::MIN | i64::MAX => Ok(microseconds),
        _ => check_timestamp(microseconds.into()),
    }
}

/// Appends year, month and day; the caller appends [`write_era`] after the time.
fn write_civil(civil: Civil, out: &mut String) {
    let year = if civil.year > 0 {
        civil.year
    } else {
        1 - civil.year
    };
    let _ = write!(out, "{year:04}-{:02}-{:02}", civil.month, civil.day);
}

fn write_era(civil: Civil, out: &mut String) {
    if civil.year <= 0 {
        out.push_str(" BC");
    }
}

/// Appends `.` and the microseconds without trailing zeros, or nothing for zero.
pub(super) fn write_fraction(microsecond: u32, out: &mut String) {
    if microsecond != 0 {
        let digits = format!(".{microsecond:06}");
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// The name of an infinite value, given whether it is the smallest or the largest.
fn infinity(smallest: bool, largest: bool) -> Option<&'static str> {
    match (smallest, largest) {
        (true, _) => Some("-infinity"),
        (_, true) => Some("infinity"),
        _ => None,
    }
}

/// A DATE as PostgreSQL prints it in ISO style: `2026-01-31`.
pub fn format_date(date: i32) -> String {
    if let Some(name) = infinity(date == i32::MIN, date == i32::MAX) {
        return name.to_string();
    }
    let civil = civil_from_days(i64::from(date));
    let mut out = String::with_capacity(16);
    write_civil(civil, &mut out);
    write_era(civil, &mut out);
    out
}

fn format_timestamp_in(timestamp: i64, zone: &str) -> String {
    if let Some(name) = infinity(timestamp == i64::MIN, timestamp == i64::MAX) {
        return name.to_string();
    }
    let (days, microseconds) = split_timestamp(timestamp);
    let civil = civil_from_days(days);
    let time = time_of_day(microseconds);
    let mut out = String::with_capacity(32);
    write_civil(civil, &mut out);
    let _ = write!(
        out,
        " {:02}:{:02}:{:02}",
        time.hour, time.minute, time.second
    );
    write_fraction(time.microsecond, &mut out);
    out.push_str(zone);
    write_era(civil, &mut out);
    out
}

/// A TIMESTAMP as PostgreSQL prints it in ISO style: `2026-01-31 12:30:00.5`.
pub fn format_timestamp(timestamp: i64) -> String {
    format_timestamp_in(timestamp, "")
}

/// A TIMESTAMPTZ as PostgreSQL prints it in ISO style in a zone: `2026-01-31 13:30:00.5+01`.
pub fn format_timestamptz_in(timestamp: i64, zone: &Zone) -> String {
    if matches!(timestamp, i64::MIN | i64::MAX) {
        return format_timestamp(timestamp);
    }
    let Shown { time, east } = zone.shown_at(timestamp);
    format_timestamp_in(time, &format_offset(east, false))
}

/// [`format_timestamptz_in`] UTC.
pub fn format_timestamptz(timestamp: i64) -> String {
    format_timestamp_in(timestamp, "+00")
}

/// Seconds east of UTC: `+01`, `-04:56:02`; with `minutes`, `+01:00`.
pub fn format_offset(east: i64, minutes: bool) -> String {
    let sign = if east < 0 { '-' } else { '+' };
    let east = east.abs();
    let (hour, minute, second) = (east / 3_600, east / 60 % 60, east % 60);
    let mut out = format!("{sign}{hour:02}");
    if minutes || minute != 0 || second != 0 {
        let _ = write!(out, ":{minute:02}");
    }
    if second != 0 {
        let _ = write!(out, ":{second:02}");
    }
    out
}
