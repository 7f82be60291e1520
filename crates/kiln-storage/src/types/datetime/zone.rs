//! Time zones by their names. Their rules are those of the tz database that is built in.
//!
//! The rules of a zone repeat every 400 years from some year on, as the calendar does: a time beyond
//! the years that the library knows is looked up that much earlier.

use std::fmt::Write;

use jiff::Timestamp;
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

/// Years in which the calendar repeats, in microseconds.
const CYCLE: i64 = 146_097 * MICROSECONDS_PER_DAY;

/// Times that the library knows, in microseconds since 2000-01-01: whole cycles before and after.
const KNOWN: std::ops::Range<i64> = -29 * CYCLE..19 * CYCLE;

/// The largest number of hours that a zone is given by, in either direction.
const HOURS_MAX: f64 = 168.0;

/// When PostgreSQL has clocks set forward and back whose POSIX zone does not say when.
const USUAL_CHANGES: &str = ",M3.2.0,M11.1.0";

/// How far a time zone is east of UTC, in microseconds.
#[derive(Clone, Debug)]
pub enum Zone {
    /// At all times.
    Fixed(i64),
    /// As the rules say.
    Rules(TimeZone),
}

/// What clocks of a zone show at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The time, in microseconds since 2000-01-01.
    pub time: i64,
    /// How far they are east of UTC, in seconds.
    pub east: i64,
}

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone::Fixed(0);

    /// The zone with this abbreviation, in any case.
    pub(super) fn abbreviated(name: &str) -> Option<Zone> {
        // As PostgreSQL has it, this one means what it meant at the time.
        if name.eq_ignore_ascii_case("msk") {
            return Zone::named("Europe/Moscow");
        }
        let mut known = ABBREVIATIONS.iter();
        let known = known.find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, hours)| Zone::Fixed(hours * MICROSECONDS_PER_HOUR))
    }

    /// The zone with this name in the tz database.
    pub(super) fn named(name: &str) -> Option<Zone> {
        TimeZone::get(name).ok().map(Zone::Rules)
    }

    /// Whether its clocks were ever set another way.
    pub(super) fn changes(&self) -> bool {
        match self {
            Zone::Fixed(_) => false,
            Zone::Rules(rules) => {
                rules.preceding(Timestamp::MAX).next().is_some()
                    || rules.following(Timestamp::MIN).next().is_some()
            }
        }
    }

    /// The zone that PostgreSQL's setting `TimeZone` names, and its name as it is shown: one of the
    /// tz database, a number of hours east of UTC, or rules as POSIX writes them.
    ///
    /// # Errors
    /// 22023 for what is no zone.
    pub fn of_setting(value: &str) -> Result<(Zone, String)> {
        if let Ok(hours) = value.trim().parse::<f64>() {
            return Zone::of_hours(hours).ok_or_else(|| not_recognized(value));
        }
        if let Ok(rules) = TimeZone::get(value)
            && let Some(name) = rules.iana_name()
        {
            let name = name.to_owned();
            let zone = match name.as_str() {
                "UTC" => Zone::UTC,
                _ => Zone::Rules(rules),
            };
            return Ok((zone, name));
        }
        let name = value.to_ascii_uppercase();
        let zone = Zone::posix(&name).ok_or_else(|| not_recognized(value))?;
        Ok((zone, name))
    }

    /// The zone that [`Zone::of_setting`] shows under this name; UTC for any other name.
    pub(crate) fn shown_as(name: &str) -> Zone {
        if name == "UTC" {
            return Zone::UTC;
        }
        let named = Zone::named(name).or_else(|| Zone::posix(name));
        named.unwrap_or(Zone::UTC)
    }

    /// The zone so many hours east of UTC.
    fn of_hours(hours: f64) -> Option<(Zone, String)> {
        if hours.abs() >= HOURS_MAX || !hours.is_finite() {
            return None;
        }
        let seconds = (hours * 3_600.0) as i64;
        let mut shown = format!("{:02}", seconds.abs() / 3_600);
        for part in [seconds.abs() % 3_600 * 60, seconds.abs() % 60 * 3_600] {
            if part == 0 {
                break;
            }
            let _ = write!(shown, ":{:02}", part / 3_600);
        }
        let (ahead, behind) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
        let name = format!("<{ahead}{shown}>{behind}{shown}");
        Some((Zone::Fixed(seconds * MICROSECONDS_PER_SECOND), name))
    }

    /// The zone whose rules are written as POSIX does, in capital letters.
    fn posix(rules: &str) -> Option<Zone> {
        if let Some(east) = written_offset(rules) {
            return Some(Zone::Fixed(east));
        }
        let read = TimeZone::posix(rules);
        let read = read.or_else(|_| TimeZone::posix(&format!("{rules}{USUAL_CHANGES}")));
        read.ok().map(Zone::Rules)
    }

    /// What its clocks show at this timestamp, which is finite.
    pub fn shown_at(&self, timestamp: i64) -> Shown {
        let east = match self {
            Zone::Fixed(east) => *east,
            Zone::Rules(rules) => {
                let offset = rules.to_offset(moment_of(timestamp));
                i64::from(offset.seconds()) * MICROSECONDS_PER_SECOND
            }
        };
        Shown {
            // Timestamps are far from the ends of 64 bits.
            time: timestamp.saturating_add(east),
            east: east / MICROSECONDS_PER_SECOND,
        }
    }

    /// What its time is called at this timestamp, which is finite.
    pub(super) fn abbreviation_at(&self, timestamp: i64, name: &str) -> String {
        match self {
            Zone::Rules(rules) => {
                let info = rules.to_offset_info(moment_of(timestamp));
                info.abbreviation().to_owned()
            }
            // UTC, or what POSIX writes before the offset.
            Zone::Fixed(_) => match name.strip_prefix('<').and_then(|name| name.split_once('>')) {
                Some((quoted, _)) => quoted.to_owned(),
                None => {
                    let is_letter = |letter: &char| letter.is_ascii_alphabetic();
                    name.chars().take_while(is_letter).collect()
                }
            },
        }
    }

    /// How far it is east when its clocks show this timestamp, which is finite. A time that they
    /// skip is read as if they had not been set yet, one that they show twice as if they had been.
    pub(super) fn east_at(&self, shown: i64) -> i64 {
        let rules = match self {
            Zone::Fixed(east) => return *east,
            Zone::Rules(rules) => rules,
        };
        let (days, time) = split_timestamp(within_known(shown));
        let (civil, time) = (civil_from_days(days), time_of_day(time));
        let date = Date::new(civil.year as i16, civil.month as i8, civil.day as i8);
        let date = date.expect("the year is one that the library knows");
        let (hour, minute) = (time.hour as i8, time.minute as i8);
        let nanoseconds = time.microsecond as i32 * 1_000;
        let shown = date.at(hour, minute, time.second as i8, nanoseconds);
        let offset = match rules.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        i64::from(offset.seconds()) * MICROSECONDS_PER_SECOND
    }

    /// `timestamptz::timestamp`: the time that its clocks show.
    ///
    /// # Errors
    /// 22008 out of range.
    pub fn to_shown(&self, timestamp: i64) -> Result<i64> {
        match is_infinite(timestamp) {
            true => Ok(timestamp),
            false => check_timestamp(self.shown_at(timestamp).time.into()),
        }
    }

    /// `timestamp::timestamptz`: when its clocks show this time.
    ///
    /// # Errors
    /// 22008 out of range.
    pub fn to_moment(&self, shown: i64) -> Result<i64> {
        match is_infinite(shown) {
            true => Ok(shown),
            false => check_timestamp(i128::from(shown) - i128::from(self.east_at(shown))),
        }
    }
}

/// A time that has the same place in the calendar and that the library knows.
fn within_known(timestamp: i64) -> i64 {
    match timestamp {
        _ if KNOWN.contains(&timestamp) => timestamp,
        _ if timestamp < KNOWN.start => KNOWN.start + timestamp.rem_euclid(CYCLE),
        _ => KNOWN.end - CYCLE + timestamp.rem_euclid(CYCLE),
    }
}

fn moment_of(timestamp: i64) -> Timestamp {
    let unix = within_known(timestamp) + UNIX_EPOCH_DAYS * MICROSECONDS_PER_DAY;
    Timestamp::from_microsecond(unix).expect("the year is one that the library knows")
}

#[cold]
fn not_recognized(name: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("time zone \"{name}\" not recognized"),
    )
}

/// The zone that AT TIME ZONE names: abbreviations come first.
///
/// # Errors
/// 22023 for what is no zone.
pub fn zone(name: &str) -> Result<Zone> {
    if let Some(known) = Zone::abbreviated(name) {
        return Ok(known);
    }
    if let Some(known) = Zone::named(name) {
        return Ok(known);
    }
    Zone::posix(&name.to_ascii_uppercase()).ok_or_else(|| not_recognized(name))
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

fn is_infinite(timestamp: i64) -> bool {
    matches!(timestamp, i64::MIN | i64::MAX)
}

/// The time that clocks of a zone show: `timestamptz AT TIME ZONE zone`.
///
/// # Errors
/// 22023 for an unknown zone, 22008 out of range.
pub fn timestamptz_at_zone(timestamp: i64, name: &str) -> Result<i64> {
    zone(name)?.to_shown(timestamp)
}

/// When clocks of a zone show a time: `timestamp AT TIME ZONE zone`. A time that they skip is read
/// as if they had not been set yet, one that they show twice as if they had been.
///
/// # Errors
/// As [`timestamptz_at_zone`].
pub fn timestamp_at_zone(timestamp: i64, name: &str) -> Result<i64> {
    zone(name)?.to_moment(timestamp)
}

/// When clocks of a zone show a time, as MAKE_TIMESTAMPTZ has it: hours and minutes that a sign
/// stands before are east of UTC, and not west of it, as those of [`timestamp_at_zone`] are.
///
/// # Errors
/// As [`timestamp_at_zone`].
pub fn moment_in_zone(timestamp: i64, name: &str) -> Result<i64> {
    let refused = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(refused(message).with_hint(hint));
    }
    if !name.starts_with(['+', '-']) || is_infinite(timestamp) {
        return timestamp_at_zone(timestamp, name);
    }
    let (sign, digits) = name.split_at(1);
    // `+0230` is `+02:30`.
    let offset = match digits.len() {
        3.. if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            let (hours, minutes) = digits.split_at(digits.len() - 2);
            written_offset(&format!("{sign}{hours}:{minutes}"))
        }
        _ => written_offset(name),
    };
    let east = -offset.ok_or_else(|| not_recognized(name))?;
    if east.abs() >= 16 * MICROSECONDS_PER_HOUR {
        let message = format!("numeric time zone \"{name}\" out of range");
        return Err(refused(message));
    }
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
