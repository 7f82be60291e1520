//! Fields of dates, timestamps and intervals: `extract`, `date_part` and `date_trunc`.

use std::fmt;

use super::calendar::{
    Civil, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND, UNIX_EPOCH_DAYS, check_timestamp, civil_from_days, days_from_civil,
    split_timestamp, time_of_day,
};
use super::interval::Interval;
use super::zone::{Shown, Zone};
use crate::error::{Error, Result, SqlState};
use crate::types::Decimal;

/// The Julian day of 2000-01-01.
pub(super) const EPOCH_JULIAN_DAY: i64 = 2_451_545;

/// What `extract` and `date_trunc` name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// A thousand years; the third begins in 2001.
    Millennium,
    /// A hundred years; the 21st begins in 2001.
    Century,
    /// The year divided by ten.
    Decade,
    /// The year; 1 BC is -1.
    Year,
    /// The year that an ISO 8601 week belongs to.
    IsoYear,
    /// 1 to 4.
    Quarter,
    /// 1 to 12.
    Month,
    /// The ISO 8601 week, 1 to 53.
    Week,
    /// The day of the month.
    Day,
    /// The day of the week, Sunday is 0.
    DayOfWeek,
    /// The day of the week, Monday is 1 and Sunday 7.
    IsoDayOfWeek,
    /// The day of the year, from 1.
    DayOfYear,
    /// 0 to 23.
    Hour,
    /// 0 to 59.
    Minute,
    /// Seconds with their fraction.
    Second,
    /// Seconds with their fraction, times 1,000.
    Milliseconds,
    /// Seconds with their fraction, times 1,000,000.
    Microseconds,
    /// Seconds since 1970-01-01 00:00 UTC.
    Epoch,
    /// Days since the beginning of 4714-11-24 BC, with the fraction of the day.
    Julian,
    /// Seconds east of UTC.
    Timezone,
    /// Hours east of UTC.
    TimezoneHour,
    /// Minutes east of UTC past the hour.
    TimezoneMinute,
}

/// A field of a date or timestamp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// Of a finite one.
    Finite(Decimal),
    /// Of `infinity`, where the field grows with time.
    Infinity,
    /// Of `-infinity`.
    NegativeInfinity,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Finite(value) => value.fmt(f),
            Part::Infinity => f.write_str("Infinity"),
            Part::NegativeInfinity => f.write_str("-Infinity"),
        }
    }
}

/// Every field with its names, the first of which messages use.
const NAMES: &[(Field, &[&str])] = &[
    (
        Field::Millennium,
        &["millennium", "millennia", "mil", "mils"],
    ),
    (Field::Century, &["century", "centuries", "c", "cent"]),
    (Field::Decade, &["decade", "decades", "dec", "decs"]),
    (Field::Year, &["year", "years", "y", "yr", "yrs"]),
    (Field::IsoYear, &["isoyear"]),
    (Field::Quarter, &["quarter", "qtr"]),
    (Field::Month, &["month", "months", "mon", "mons"]),
    (Field::Week, &["week", "weeks", "w"]),
    (Field::Day, &["day", "days", "d"]),
    (Field::DayOfWeek, &["dow"]),
    (Field::IsoDayOfWeek, &["isodow"]),
    (Field::DayOfYear, &["doy"]),
    (Field::Hour, &["hour", "hours", "h", "hr", "hrs"]),
    (Field::Minute, &["minute", "minutes", "m", "min", "mins"]),
    (Field::Second, &["second", "seconds", "s", "sec", "secs"]),
    (
        Field::Milliseconds,
        &["milliseconds", "millisecond", "ms", "msec", "msecs"],
    ),
    (
        Field::Microseconds,
        &["microseconds", "microsecond", "us", "usec", "usecs"],
    ),
    (Field::Epoch, &["epoch"]),
    (Field::Julian, &["julian", "j", "jd"]),
    (Field::Timezone, &["timezone"]),
    (Field::TimezoneHour, &["timezone_hour", "timezone_h"]),
    (Field::TimezoneMinute, &["timezone_minute", "timezone_m"]),
];

const DATE_NAME: &str = "date";
const TIMESTAMP_NAME: &str = "timestamp without time zone";
const TIMESTAMPTZ_NAME: &str = "timestamp with time zone";
const INTERVAL_NAME: &str = "interval";

impl Field {
    /// The field of this name in any letter case.
    ///
    /// # Errors
    /// 22023 for an unknown name; `type_name` is the type that the message names.
    pub fn parse(name: &str, type_name: &str) -> Result<Field> {
        NAMES
            .iter()
            .find(|(_, names)| names.iter().any(|known| name.eq_ignore_ascii_case(known)))
            .map(|(field, _)| *field)
            .ok_or_else(|| {
                Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!(
                        "unit \"{}\" not recognized for type {type_name}",
                        name.to_ascii_lowercase()
                    ),
                )
            })
    }

    /// The name as messages print it.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(field, _)| *field == self)
            .map_or("", |(_, names)| names[0])
    }

    #[cold]
    pub(super) fn unsupported(self, type_name: &str) -> Error {
        Error::unsupported(format!(
            "unit \"{}\" not supported for type {type_name}",
            self.name()
        ))
    }
}

/// A century or millennium of a year, as counted from 1 with no year 0.
fn count_of_years(year: i64, length: i64) -> i64 {
    if year > 0 {
        (year + length - 1) / length
    } else {
        -((length - year) / length)
    }
}

/// Days since Monday, 0 to 6.
fn days_since_monday(days: i64) -> i64 {
    // 2000-01-01 was a Saturday.
    (days + 5).rem_euclid(7)
}

/// The ISO year and week of a day.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    // A week belongs to the year of its Thursday.
    let thursday = days - days_since_monday(days) + 3;
    let year = i64::from(civil_from_days(thursday).year);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// Day of the week, Sunday 0.
pub(super) fn day_of_week(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// Day of the year, from 1.
pub(super) fn day_of_year(days: i64, civil: Civil) -> i64 {
    days - days_from_civil(i64::from(civil.year), 1, 1) + 1
}

/// The Julian day number of a day.
pub(super) fn julian_day(days: i64) -> i64 {
    days + EPOCH_JULIAN_DAY
}

/// Years count down past 1 AD to 1 BC, which is -1.
fn year_without_zero(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// A field that depends on the day only.
fn day_field(field: Field, days: i64) -> Option<i64> {
    let civil = civil_from_days(days);
    let year = i64::from(civil.year);
    Some(match field {
        Field::Millennium => count_of_years(year, 1_000),
        Field::Century => count_of_years(year, 100),
        Field::Decade => year.div_euclid(10),
        Field::Year => year_without_zero(year),
        Field::IsoYear => year_without_zero(iso_week(days).0),
        Field::Quarter => i64::from(civil.month - 1) / 3 + 1,
        Field::Month => i64::from(civil.month),
        Field::Week => iso_week(days).1,
        Field::Day => i64::from(civil.day),
        Field::DayOfWeek => day_of_week(days),
        Field::IsoDayOfWeek => days_since_monday(days) + 1,
        Field::DayOfYear => day_of_year(days, civil),
        _ => return None,
    })
}

/// A field that depends on the time of day only; `time` may be negative in an interval.
pub(super) fn time_field(field: Field, time: i64) -> Option<Result<Decimal>> {
    let within_minute = time % MICROSECONDS_PER_MINUTE;
    Some(match field {
        Field::Hour => Ok(Decimal::from_i64(time / MICROSECONDS_PER_HOUR)),
        Field::Minute => Ok(Decimal::from_i64(time / MICROSECONDS_PER_MINUTE % 60)),
        Field::Second => Decimal::new(i128::from(within_minute), 6),
        Field::Milliseconds => Decimal::new(i128::from(within_minute), 3),
        Field::Microseconds => Ok(Decimal::from_i64(within_minute)),
        _ => return None,
    })
}

/// A field of an infinite date or timestamp; `None` for one that repeats itself, such as the hour.
fn part_of_infinity(field: Field, is_negative: bool) -> Option<Part> {
    let grows = matches!(
        field,
        Field::Millennium
            | Field::Century
            | Field::Decade
            | Field::Year
            | Field::IsoYear
            | Field::Epoch
            | Field::Julian
    );
    grows.then_some(match is_negative {
        true => Part::NegativeInfinity,
        false => Part::Infinity,
    })
}

/// `extract(field from date)`; `None` for NULL.
///
/// # Errors
/// 0A000 for a field that a date has not.
pub fn extract_from_date(field: Field, date: i32) -> Result<Option<Part>> {
    let days = i64::from(date);
    let value = match field {
        Field::Epoch => Some((days + UNIX_EPOCH_DAYS) * 86_400),
        Field::Julian => Some(julian_day(days)),
        _ => day_field(field, days),
    };
    let value = value.ok_or_else(|| field.unsupported(DATE_NAME))?;
    Ok(match date {
        i32::MIN | i32::MAX => part_of_infinity(field, date < 0),
        _ => Some(Part::Finite(Decimal::from_i64(value))),
    })
}

fn extract_at(field: Field, timestamp: i64, type_name: &str) -> Result<Decimal> {
    let (days, time) = split_timestamp(timestamp);
    if let Some(value) = day_field(field, days) {
        return Ok(Decimal::from_i64(value));
    }
    if let Some(value) = time_field(field, time) {
        return value;
    }
    match field {
        Field::Epoch => {
            let unix = i128::from(UNIX_EPOCH_DAYS) * i128::from(MICROSECONDS_PER_DAY);
            Decimal::new(i128::from(timestamp) + unix, 6)
        }
        Field::Julian => {
            let fraction =
                Decimal::from_i64(time).try_div(Decimal::from_i64(MICROSECONDS_PER_DAY))?;
            // Below ten seconds past midnight PostgreSQL prints more than 20 digits of the
            // fraction; with the day these would be more than a numeric holds.
            let fraction = fraction.round(i32::from(fraction.scale().min(26)))?;
            Decimal::from_i64(julian_day(days)).try_add(fraction)
        }
        _ => Err(field.unsupported(type_name)),
    }
}

/// `extract(field from timestamp)`; `None` for NULL.
///
/// # Errors
/// 0A000 for a field of the time zone.
pub fn extract_from_timestamp(field: Field, timestamp: i64) -> Result<Option<Part>> {
    if timestamp == i64::MIN || timestamp == i64::MAX {
        return Ok(part_of_infinity(field, timestamp < 0));
    }
    extract_at(field, timestamp, TIMESTAMP_NAME).map(|part| Some(Part::Finite(part)))
}

/// `extract(field from timestamptz)`, in a zone; `None` for NULL.
///
/// # Errors
/// 22003 for a number that a decimal does not hold.
pub fn extract_from_timestamptz(field: Field, timestamp: i64, zone: &Zone) -> Result<Option<Part>> {
    if timestamp == i64::MIN || timestamp == i64::MAX {
        return Ok(part_of_infinity(field, timestamp < 0));
    }
    let Shown { time, east } = zone.shown_at(timestamp);
    let part = match field {
        Field::Epoch => extract_at(field, timestamp, TIMESTAMPTZ_NAME),
        Field::Timezone => Ok(Decimal::from_i64(east)),
        Field::TimezoneHour => Ok(Decimal::from_i64(east / 3_600)),
        Field::TimezoneMinute => Ok(Decimal::from_i64(east / 60 % 60)),
        _ => extract_at(field, time, TIMESTAMPTZ_NAME),
    };
    part.map(|part| Some(Part::Finite(part)))
}

/// `extract(field from interval)`.
///
/// # Errors
/// 0A000 for a field that an interval has not.
pub fn extract_from_interval(field: Field, interval: Interval) -> Result<Decimal> {
    if let Some(value) = time_field(field, interval.microseconds) {
        return value;
    }
    let (years, months) = (
        i64::from(interval.months / 12),
        i64::from(interval.months % 12),
    );
    Ok(Decimal::from_i64(match field {
        Field::Millennium => years / 1_000,
        Field::Century => years / 100,
        Field::Decade => years / 10,
        Field::Year => years,
        Field::Quarter => months / 3 + 1,
        Field::Month => months,
        Field::Day => i64::from(interval.days),
        Field::Epoch => {
            // A year counts 365.25 days here, a month 30.
            let days = i128::from(months * 30 + i64::from(interval.days));
            let seconds = i128::from(years) * 31_557_600 + days * 86_400;
            let total =
                seconds * i128::from(MICROSECONDS_PER_SECOND) + i128::from(interval.microseconds);
            return Decimal::new(total, 6);
        }
        _ => return Err(field.unsupported(INTERVAL_NAME)),
    }))
}

/// The first year of the span of `length` years that the year falls in.
fn first_year(year: i64, length: i64) -> i64 {
    if year > 0 {
        (year - 1) / length * length + 1
    } else {
        -((length - year) / length * length) + 1
    }
}

/// `date_trunc(field, timestamp)`: the beginning of the field's span that the timestamp is in.
///
/// # Errors
/// 22023 for a field that has no span, 22008 when the beginning is out of range.
pub fn date_trunc(field: Field, timestamp: i64) -> Result<i64> {
    truncated(field, timestamp, TIMESTAMP_NAME)
}

/// `date_trunc(field, timestamptz, zone)`. Spans of a day and more begin when the zone's clocks say
/// so; below that the zone stays as far from UTC as it is.
///
/// # Errors
/// As [`date_trunc`].
pub fn date_trunc_in(field: Field, timestamp: i64, zone: &Zone) -> Result<i64> {
    if timestamp == i64::MIN || timestamp == i64::MAX {
        return Ok(timestamp);
    }
    let Shown { time, east } = zone.shown_at(timestamp);
    let beginning = truncated(field, time, TIMESTAMPTZ_NAME)?;
    let is_time = matches!(
        field,
        Field::Hour | Field::Minute | Field::Second | Field::Milliseconds | Field::Microseconds
    );
    match is_time {
        true => check_timestamp(
            i128::from(beginning) - i128::from(east) * i128::from(MICROSECONDS_PER_SECOND),
        ),
        false => zone.to_moment(beginning),
    }
}

fn truncated(field: Field, timestamp: i64, type_name: &str) -> Result<i64> {
    if timestamp == i64::MIN || timestamp == i64::MAX {
        return Ok(timestamp);
    }
    let (days, time) = split_timestamp(timestamp);
    let civil = civil_from_days(days);
    let year = i64::from(civil.year);
    let first_day = |year: i64, month: u32| days_from_civil(year, month, 1);
    let (days, time) = match field {
        Field::Microseconds => (days, time),
        Field::Milliseconds => (days, time - time % 1_000),
        Field::Second => (days, time - time % MICROSECONDS_PER_SECOND),
        Field::Minute => (days, time - time % MICROSECONDS_PER_MINUTE),
        Field::Hour => (days, time - time % MICROSECONDS_PER_HOUR),
        Field::Day => (days, 0),
        Field::Week => (days - days_since_monday(days), 0),
        Field::Month => (first_day(year, civil.month), 0),
        Field::Quarter => (first_day(year, (civil.month - 1) / 3 * 3 + 1), 0),
        Field::Year => (first_day(year, 1), 0),
        Field::Decade => (first_day(year.div_euclid(10) * 10, 1), 0),
        Field::Century => (first_day(first_year(year, 100), 1), 0),
        Field::Millennium => (first_day(first_year(year, 1_000), 1), 0),
        _ => return Err(not_truncatable(field, type_name)),
    };
    check_timestamp(i128::from(days) * i128::from(MICROSECONDS_PER_DAY) + i128::from(time))
}

#[cold]
fn not_truncatable(field: Field, type_name: &str) -> Error {
    if matches!(
        field,
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute
    ) {
        return field.unsupported(type_name);
    }
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!(
            "unit \"{}\" not recognized for type {type_name}",
            field.name()
        ),
    )
}

/// `date_trunc(field, interval)`: the interval with everything below the field cut off.
///
/// # Errors
/// 0A000 for weeks, 22023 for a field that has no span.
pub fn date_trunc_interval(field: Field, interval: Interval) -> Result<Interval> {
    let Interval {
        months,
        days,
        microseconds,
    } = interval;
    let cut_months = |length: i32| Interval::new(months - months % length, 0, 0);
    let cut_time = |length: i64| Interval::new(months, days, microseconds - microseconds % length);
    Ok(match field {
        Field::Microseconds => interval,
        Field::Milliseconds => cut_time(1_000),
        Field::Second => cut_time(MICROSECONDS_PER_SECOND),
        Field::Minute => cut_time(MICROSECONDS_PER_MINUTE),
        Field::Hour => cut_time(MICROSECONDS_PER_HOUR),
        Field::Day => Interval::new(months, days, 0),
        Field::Month => cut_months(1),
        Field::Quarter => cut_months(3),
        Field::Year => cut_months(12),
        Field::Decade => cut_months(120),
        Field::Century => cut_months(1_200),
        Field::Millennium => cut_months(12_000),
        Field::Week => {
            return Err(field
                .unsupported(INTERVAL_NAME)
                .with_detail("Months usually have fractional weeks."));
        }
        _ => return Err(not_truncatable(field, INTERVAL_NAME)),
    })
}

/// The time of day of a timestamp, for output.
pub(super) fn civil_and_time(timestamp: i64) -> (i64, Civil, super::calendar::TimeOfDay) {
    let (days, time) = split_timestamp(timestamp);
    (days, civil_from_days(days), time_of_day(time))
}
