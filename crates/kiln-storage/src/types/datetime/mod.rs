//! Dates, timestamps and intervals on the proleptic Gregorian calendar, with PostgreSQL's
//! ranges, input, output and arithmetic.
//!
//! A DATE is an `i32` of days since 2000-01-01. A TIMESTAMP is an `i64` of microseconds since
//! 2000-01-01 00:00; a TIMESTAMPTZ is the same in UTC. The
//! smallest and largest integer of each mean `-infinity` and `infinity`. A TIME is an `i64` of
//! microseconds since midnight, up to 24 hours.

mod arithmetic;
mod calendar;
mod field;
mod format;
mod format_interval;
mod input;
mod input_decode;
mod input_pieces;
mod input_words;
mod interval;
mod interval_input;
mod template;
mod time;
mod zone;

pub use arithmetic::{
    age, date_add_days, date_add_interval, date_as_timestamp, date_bin, date_difference,
    date_to_timestamp, make_date, make_interval, make_timestamp, timestamp_add_interval,
    timestamp_difference, timestamp_sub_interval, timestamp_to_date, timestamptz_add_interval,
    timestamptz_age,
};
pub use calendar::{
    Civil, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND, TimeOfDay, UNIX_EPOCH_DAYS, civil_from_days, date_in_range,
    days_from_civil, days_in_month, format_date, format_offset, format_timestamp,
    format_timestamptz, format_timestamptz_in, is_leap_year, round_seconds, split_timestamp,
    time_of_day, timestamp_in_range,
};
pub use field::{
    Field, Part, date_trunc, date_trunc_in, date_trunc_interval, extract_from_date,
    extract_from_interval, extract_from_timestamp, extract_from_timestamptz,
};
pub use format::{timestamptz_to_char, to_char};
pub use format_interval::interval_to_char;
pub use input::{
    depends_on_zone, parse_date, parse_time, parse_timestamp, parse_timestamptz,
    parse_timestamptz_in,
};
pub use interval::Interval;
pub use interval_input::parse_interval;
pub use template::{to_date, to_timestamp};
pub use time::{
    extract_from_time, format_time, interval_to_time, make_time, time_add_interval,
    time_difference, time_in_range, time_sub_interval, timestamp_to_time,
};
pub use zone::{
    Shown, Zone, moment_in_zone, shift_by_zone, timestamp_at_zone, timestamptz_at_zone, zone,
};
