//! Dates and timestamps from text: ISO 8601 and the other unambiguous forms that PostgreSQL
//! accepts (`Jan 2, 2020`, `1/2/2020` as month and day, `20200102T0304`).

use super::calendar::{
    MICROSECONDS_PER_DAY, TIMESTAMP_END, TIMESTAMP_MIN, UNIX_EPOCH_DAYS, check_date,
    check_timestamp,
};
use super::input_decode;
use super::zone::Zone;
use crate::error::{Error, Result, SqlState};

/// The months' English names; the first three letters suffice.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The weekdays' English names, from Sunday.
pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Why a text is no date or time; the caller adds the text and the type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Syntax,
    FieldRange,
    /// A field out of range that another order of day, month and year might explain.
    FieldRangeOrOrder,
    Zone,
    /// The name of no time zone.
    UnknownZone,
    /// A word whose meaning depends on the time of the call.
    Relative,
}

impl Fault {
    #[cold]
    fn error(self, type_name: &str, text: &str) -> Error {
        match self {
            Fault::Syntax => Error::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            Fault::FieldRange => Error::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            ),
            Fault::FieldRangeOrOrder => Fault::FieldRange
                .error(type_name, text)
                .with_hint("Write the date as year-month-day."),
            Fault::Zone => Error::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                format!("time zone displacement out of range: \"{text}\""),
            ),
            Fault::UnknownZone => {
                let mut words = text.split_ascii_whitespace();
                let is_name = |word: &&str| word.starts_with(|first: char| first.is_alphabetic());
                let zone = words.rfind(is_name);
                let zone = zone.unwrap_or(text).to_ascii_lowercase();
                Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("time zone \"{zone}\" not recognized"),
                )
            }
            Fault::Relative => Error::unsupported(format!(
                "date/time input \"{text}\" is not supported because its value changes with time"
            ))
            .with_hint("Use CURRENT_DATE or CURRENT_TIMESTAMP."),
        }
    }
}

/// What a text says.
pub(super) enum Moment {
    Finite {
        /// Days since 2000-01-01.
        days: i64,
        /// Microseconds since midnight.
        time: i64,
        /// How far it is east of UTC, if it says so.
        zone: Option<Zone>,
    },
    Infinity,
    MinusInfinity,
}

impl Moment {
    /// 1970-01-01 00:00 UTC.
    pub const EPOCH: Moment = Moment::Finite {
        days: -UNIX_EPOCH_DAYS,
        time: 0,
        zone: Some(Zone::UTC),
    };
}

/// Takes the leading ASCII digits off `text`.
pub(super) fn take_digits<'a>(text: &mut &'a str) -> &'a str {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    digits
}

/// Takes the leading ASCII letters off `text`.
pub(super) fn take_letters<'a>(text: &mut &'a str) -> &'a str {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (letters, rest) = text.split_at(end);
    *text = rest;
    letters
}

fn read_moment(text: &str) -> std::result::Result<Moment, Fault> {
    input_decode::moment(&text.to_ascii_lowercase())
}

/// Reads a DATE; a time of day is read and dropped.
///
/// # Errors
/// 22007 for what is no date, 22008 for a field or a date out of range.
pub fn parse_date(text: &str) -> Result<i32> {
    match read_moment(text).map_err(|fault| fault.error("date", text))? {
        Moment::Finite { days, .. } => check_date(days).map_err(|error| out_of_range(&error, text)),
        Moment::Infinity => Ok(i32::MAX),
        Moment::MinusInfinity => Ok(i32::MIN),
    }
}

/// Reads a TIME; a date and a zone are read and dropped, as in PostgreSQL.
///
/// # Errors
/// 22007 for what is no time, 22008 for a field out of range.
pub fn parse_time(text: &str) -> Result<i64> {
    let read = input_decode::time(&text.to_ascii_lowercase());
    read.map_err(|fault| fault.error("time", text))
}

/// Reads a TIMESTAMP; a zone is read and dropped, as in PostgreSQL.
///
/// # Errors
/// 22007 for what is no timestamp, 22008 for a field or a timestamp out of range.
pub fn parse_timestamp(text: &str) -> Result<i64> {
    let moment = read_moment(text).map_err(|fault| fault.error("timestamp", text))?;
    moment.timestamp(text, |_| 0)
}

/// Reads a TIMESTAMPTZ; without a zone it is in this one.
///
/// # Errors
/// 22007 for what is no timestamp, 22008 for a field or a timestamp out of range, 22009 for a
/// zone out of range.
pub fn parse_timestamptz_in(text: &str, zone: &Zone) -> Result<i64> {
    let moment = read_moment(text);
    let moment = moment.map_err(|fault| fault.error("timestamp with time zone", text))?;
    let own = match &moment {
        Moment::Finite { zone: own, .. } => own.clone(),
        _ => None,
    };
    let zone = own.as_ref().unwrap_or(zone);
    moment.timestamp(text, |shown| zone.east_at(shown))
}

/// [`parse_timestamptz_in`] UTC.
///
/// # Errors
/// As there.
pub fn parse_timestamptz(text: &str) -> Result<i64> {
    parse_timestamptz_in(text, &Zone::UTC)
}

/// Whether a text is a TIMESTAMPTZ that is another moment in another zone.
pub fn depends_on_zone(text: &str) -> bool {
    matches!(read_moment(text), Ok(Moment::Finite { zone: None, .. }))
}

impl Moment {
    /// As a timestamp, of what `east_at` says of its zone.
    fn timestamp(self, text: &str, east_at: impl FnOnce(i64) -> i64) -> Result<i64> {
        match self {
            Moment::Finite { days, time, .. } => {
                let shown = i128::from(days) * i128::from(MICROSECONDS_PER_DAY) + i128::from(time);
                // The range is that of the moment: a clock in the west may show an earlier day.
                let at = shown.clamp(TIMESTAMP_MIN.into(), TIMESTAMP_END.into());
                let east = east_at(at as i64);
                check_timestamp(shown - i128::from(east))
                    .map_err(|error| out_of_range(&error, text))
            }
            Moment::Infinity => Ok(i64::MAX),
            Moment::MinusInfinity => Ok(i64::MIN),
        }
    }
}

/// The error with the text that was read.
#[cold]
fn out_of_range(error: &Error, text: &str) -> Error {
    Error::new(error.state(), format!("{}: \"{text}\"", error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_in_the_west_may_show_a_day_before_the_first_one() {
        for (text, expected) in [
            ("4714-11-23 16:00:00-08 BC", Some(TIMESTAMP_MIN)),
            ("4714-11-24 00:00:01+00:00:01 BC", Some(TIMESTAMP_MIN)),
            ("4714-11-24 00:00:00+01 BC", None),
            ("4714-11-23 BC", None),
            (
                "294277-01-01 00:00:00+01",
                Some(TIMESTAMP_END - 3_600_000_000),
            ),
            ("294277-01-01", None),
            ("2147483647-01-01", None),
        ] {
            assert_eq!(parse_timestamptz(text).ok(), expected, "{text}");
        }
    }
}
