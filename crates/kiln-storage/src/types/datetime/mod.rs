//! Dates, timestamps and intervals on the proleptic Gregorian calendar, with PostgreSQL's
//! ranges, input, output and arithmetic.
//!
//! A DATE is an `i32` of days since 2000-01-01. A TIMESTAMP is an `i64` of microseconds since
//! 2000-01-01 00:00; a TIMESTAMPTZ is the same in UTC, which is every session's time zone. The
//! smallest and largest integer of each mean `-infinity` and `infinity`.

mod calendar;
mod interval;

pub use calendar::{
    Civil, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND, TimeOfDay, UNIX_EPOCH_DAYS, civil_from_days, days_from_civil,
    days_in_month, format_date, format_timestamp, format_timestamptz, is_leap_year,
    split_timestamp, time_of_day,
};
pub use interval::Interval;
