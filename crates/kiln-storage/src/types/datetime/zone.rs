//! Time zones by their names. Their rules are those of the tz database that is built in.

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_SECOND, UNIX_EPOCH_DAYS,
    check_timestamp, civil_from_days, split_timestamp, time_of_day,
};
use super::interval::Interval;
use crate::error::{Error, Result, SqlState};

/// Abbreviations with the hours east of UTC that PostgreSQL takes them for, whatever the time of
/// the year.
const ABBREVIATIONS: &[(&str, i64)] = &[
    ("utc", 0),
    ("gmt", 0),
    ("z", 0),
    ("zulu", 0),
    ("ut", 0),
    ("wet", 0),
    ("west", 1),
    ("bst", 1),
    ("cet", 1),
    ("cest", 2),
    ("eet", 2),
    ("eest", 3),
    ("jst", 9),
    ("kst", 9),
    ("nzst", 12),
    ("nzdt", 13),
    ("ast", -4),
    ("adt", -3),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
    ("akst", -9),
    ("akdt", -8),
    ("hst", -10),
];

/// How far a time zone is east of UTC, in microseconds.
pub(super) enum Zone {
    /// At all times.
    Fixed(i64),
    /// As the rules say.
    Rules(TimeZone),
}

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone::Fixed(0);

    /// The zone with this abbreviation, in any case.
    pub fn abbreviated(name: &str) -> Option<Zone> {
        // As PostgreSQL has it, this one means what it meant at the time.
        if name.eq_ignore_ascii_case("msk") {
            return Zone::named("Europe/Moscow");
        }
        let mut known = ABBREVIATIONS.iter();
        let known = known.find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, hours)| Zone::Fixed(hours * MICROSECONDS_PER_HOUR))
    }

    /// The zone with this name in the tz database.
    pub fn named(name: &str) -> Option<Zone> {
        TimeZone::get(name).ok().map(Zone::Rules)
    }

    /// How far it is east when its clocks show this timestamp, which is finite.
    ///
    /// # Errors
    /// 0A000 beyond the year 9999.
    pub fn east_at(self, shown: i64) -> Result<i64> {
        let rules = match self {
            Zone::Fixed(east) => return Ok(east),
            Zone::Rules(rules) => rules,
        };
        let (days, time) = split_timestamp(shown);
        let (civil, time) = (civil_from_days(days), time_of_day(time));
        let year = i16::try_from(civil.year).unwrap_or(i16::MAX);
        let date = Date::new(year, civil.month as i8, civil.day as i8).map_err(beyond)?;
        let (hour, minute) = (time.hour as i8, time.minute as i8);
        let nanoseconds = time.microsecond as i32 * 1_000;
        let shown = date.at(hour, minute, time.second as i8, nanoseconds);
        let offset = match rules.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        Ok(i64::from(offset.seconds()) * MICROSECONDS_PER_SECOND)
    }
}

fn zone(name: &str) -> Result<Zone> {
    if let Some(known) = Zone::abbreviated(name) {
        return Ok(known);
    }
    if let Some(east) = written_offset(name) {
        return Ok(Zone::Fixed(east));
    }
    // Rules as POSIX writes them, with letters in any case.
    let rules = TimeZone::get(name).or_else(|_| TimeZone::posix(&name.to_uppercase()));
    match rules {
        Ok(rules) => Ok(Zone::Rules(rules)),
        Err(_) => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("time zone \"{name}\" not recognized"),
        )),
    }
}

/// Whether clocks of a zone show UTC at all times. An abbreviation names no zone here, as in
/// PostgreSQL's setting `TimeZone`.
///
/// # Errors
/// 22023 for an unknown zone.
pub fn is_utc(name: &str) -> Result<bool> {
    if let Ok(rules) = TimeZone::get(name) {
        let has_changes = rules.following(jiff::Timestamp::MIN).next().is_some();
        return Ok(!has_changes && rules.to_offset(jiff::Timestamp::UNIX_EPOCH).is_zero());
    }
    match zone(name)? {
        Zone::Fixed(east) => Ok(east == 0),
        Zone::Rules(_) => Ok(false),
    }
}

/// How far a zone is east of UTC that is written as POSIX does, hours, minutes and seconds west of
/// it, perhaps behind a name: `UTC-2`, `+02:30`, `<+02>-2`.
fn written_offset(name: &str) -> Option<i64> {
    let offset = match name.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => name.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()),
    };
    let (sign, offset) = match offset.as_bytes().first()? {
        b'-' => (1, &offset[1..]),
        b'+' => (-1, &offset[1..]),
        _ => (-1, offset),
    };
    let mut seconds = 0;
    let mut parts = offset.split(':');
    for (unit, below) in [(3_600, 168), (60, 60), (1, 60)] {
        let Some(part) = parts.next() else { break };
        let is_number = !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
        let number: i64 = part.parse().ok().filter(|_| is_number)?;
        seconds += unit * Some(number).filter(|number| *number < below)?;
    }
    match parts.next() {
        None => Some(sign * seconds * MICROSECONDS_PER_SECOND),
        Some(_) => None,
    }
}

#[cold]
fn beyond(_: jiff::Error) -> Error {
    Error::unsupported("a time zone at a time beyond the year 9999 is not supported")
}

fn is_infinite(timestamp: i64) -> bool {
    matches!(timestamp, i64::MIN | i64::MAX)
}

/// The time that clocks of a zone show: `timestamptz AT TIME ZONE zone`.
///
/// # Errors
/// 22023 for an unknown zone, 22008 out of range.
pub fn timestamptz_at_zone(timestamp: i64, name: &str) -> Result<i64> {
    let zone = zone(name)?;
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    let east = match zone {
        Zone::Fixed(east) => east,
        Zone::Rules(rules) => {
            let unix = timestamp.saturating_add(UNIX_EPOCH_DAYS * MICROSECONDS_PER_DAY);
            let moment = jiff::Timestamp::from_microsecond(unix).map_err(beyond)?;
            i64::from(rules.to_offset(moment).seconds()) * MICROSECONDS_PER_SECOND
        }
    };
    check_timestamp(i128::from(timestamp) + i128::from(east))
}

/// When clocks of a zone show a time: `timestamp AT TIME ZONE zone`. A time that they skip is read
/// as if they had not been set yet, one that they show twice as if they had been.
///
/// # Errors
/// As [`timestamptz_at_zone`].
pub fn timestamp_at_zone(timestamp: i64, name: &str) -> Result<i64> {
    let zone = zone(name)?;
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    let east = zone.east_at(timestamp)?;
    check_timestamp(i128::from(timestamp) - i128::from(east))
}

/// A time moved by an interval of hours, which says how far a zone is east of UTC: away from UTC,
/// or back.
///
/// # Errors
/// 22023 for an interval of months or days.
pub fn shift_by_zone(timestamp: i64, zone: Interval, to_utc: bool) -> Result<i64> {
    if zone.months != 0 || zone.days != 0 {
        let message = format!("interval time zone \"{zone}\" must not include months or days");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if is_infinite(timestamp) {
        return Ok(timestamp);
    }
    let east = i128::from(zone.microseconds);
    check_timestamp(i128::from(timestamp) + if to_utc { -east } else { east })
}
