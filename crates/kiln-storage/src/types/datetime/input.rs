//! Dates and timestamps from text: ISO 8601 and the other unambiguous forms that PostgreSQL
//! accepts (`Jan 2, 2020`, `1/2/2020` as month and day, `20200102T0304`).

use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND,
    UNIX_EPOCH_DAYS, check_date, check_timestamp, days_from_civil, days_in_month,
};
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

/// The largest displacement from UTC, in hours.
const ZONE_HOUR_MAX: i64 = 15;

/// Why a text is no date or time; the caller adds the text and the type.
#[derive(Clone, Copy, Debug)]
enum Fault {
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
                let zone = words.rfind(|word| word.contains(['/', '_']));
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
enum Moment {
    Finite {
        /// Days since 2000-01-01.
        days: i64,
        /// Microseconds since midnight, up to 24 hours.
        time: i64,
        /// How far it is east of UTC, if it says so.
        zone: Option<Zone>,
    },
    Infinity,
    MinusInfinity,
}

/// One part of a date: a month's name, or digits whose number tells years from days.
#[derive(Clone, Copy)]
enum DatePart {
    Month(u32),
    Number { value: i64, digits: usize },
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    date: Vec<DatePart>,
    time: Option<i64>,
    zone: Option<Zone>,
    afternoon: Option<bool>,
    before_christ: Option<bool>,
    /// A `T` came: what follows is a time even without colons.
    time_follows: bool,
    /// Whether the text is that of a time, before which there may be a date.
    is_time: bool,
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

/// The number that a name abbreviates to three letters or more, counted from 0.
fn index_of_name(names: &[&str], word: &str) -> Option<usize> {
    // PostgreSQL knows whole names, three letters, and a few in between.
    names.iter().position(|name| {
        word.eq_ignore_ascii_case(name)
            || word.eq_ignore_ascii_case(&name[..3])
            || (word.len() == 4
                && ["sept", "tues", "thur", "weds"]
                    .iter()
                    .any(|s| word.eq_ignore_ascii_case(s))
                && word[..3].eq_ignore_ascii_case(&name[..3]))
            || (word.eq_ignore_ascii_case("thurs") && *name == "Thursday")
    })
}

/// Microseconds of a fraction's digits, rounded as PostgreSQL rounds them.
pub(super) fn fraction_microseconds(digits: &str) -> i64 {
    // A fraction of digits always parses.
    let fraction: f64 = format!("0.{digits}0").parse().unwrap_or(0.0);
    (fraction * 1e6).round_ties_even() as i64
}

/// The year that two digits mean: 1970 to 2069.
fn expand_year(year: i64) -> i64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}

impl<'a> Reader<'a> {
    fn number(digits: &str) -> std::result::Result<i64, Fault> {
        if digits.is_empty() {
            return Err(Fault::Syntax);
        }
        digits.parse().map_err(|_| Fault::FieldRange)
    }

    fn eat(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn read(mut self) -> std::result::Result<Moment, Fault> {
        self.parts()?;
        self.resolve()
    }

    /// Reads a time of day.
    fn read_time(mut self) -> std::result::Result<i64, Fault> {
        self.parts()?;
        let time = self.time_of_day()?.ok_or(Fault::Syntax)?;
        if !self.date.is_empty() {
            self.resolve()?;
        }
        Ok(time)
    }

    fn parts(&mut self) -> std::result::Result<(), Fault> {
        while let Some(first) = self.rest.chars().next() {
            match first {
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' | ',' => {
                    self.rest = &self.rest[1..];
                }
                'a'..='z' | 'A'..='Z' => self.word()?,
                '0'..='9' => self.digits()?,
                '-' | '/' if matches!(self.date.len(), 1 | 2) && self.time.is_none() => {
                    self.rest = &self.rest[1..];
                }
                '+' | '-' if !self.date.is_empty() || self.time.is_some() => self.zone()?,
                _ => return Err(Fault::Syntax),
            }
        }
        Ok(())
    }

    fn word(&mut self) -> std::result::Result<(), Fault> {
        let word = take_letters(&mut self.rest);
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if let Some(month) = index_of_name(&MONTHS, word) {
            self.date.push(DatePart::Month(month as u32 + 1));
        } else if is("t") && !self.date.is_empty() && self.time.is_none() && !self.time_follows {
            self.time_follows = true;
        } else if (is("am") || is("pm")) && self.afternoon.is_none() && self.time.is_some() {
            self.afternoon = Some(is("pm"));
        } else if (is("bc") || is("ad")) && self.before_christ.is_none() {
            self.before_christ = Some(is("bc"));
        } else if index_of_name(&WEEKDAYS, word).is_none() {
            return self.named_zone(word);
        }
        Ok(())
    }

    /// A zone's abbreviation, or its name that begins with `word`.
    fn named_zone(&mut self, word: &str) -> std::result::Result<(), Fault> {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
        let zone = match self.rest.starts_with(['/', '_']) {
            true => {
                let end = self.rest.bytes().position(|byte| !is_of_name(byte));
                let (more, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                Zone::named(&format!("{word}{more}")).ok_or(Fault::UnknownZone)?
            }
            false => Zone::abbreviated(word).ok_or(Fault::Syntax)?,
        };
        match self.zone.replace(zone) {
            Some(_) => Err(Fault::Syntax),
            None => Ok(()),
        }
    }

    fn digits(&mut self) -> std::result::Result<(), Fault> {
        let digits = take_digits(&mut self.rest);
        let next = self.rest.bytes().next();
        let after_date = !self.date.is_empty();
        if next == Some(b':') && self.time.is_none() {
            return self.colon_time(digits);
        }
        let is_alone = self.is_time && !after_date && next.is_none_or(|next| next != b'-');
        if (self.time_follows || is_alone) && self.time.is_none() {
            return self.compact_time(digits);
        }
        match next {
            Some(separator @ (b'-' | b'/' | b'.')) if !after_date && self.time.is_none() => {
                return self.separated_date(digits, separator as char);
            }
            _ => {}
        }
        if !after_date && (digits.len() == 6 || digits.len() >= 8) {
            let (year, month_day) = digits.split_at(digits.len() - 4);
            let (month, day) = month_day.split_at(2);
            let value = Self::number(year)?;
            let value = if year.len() == 2 {
                expand_year(value)
            } else {
                value
            };
            // As the first of a date of three numbers, so that none takes it for a day.
            self.date.push(DatePart::Number { value, digits: 4 });
            self.date.push(DatePart::Month(self.month_number(month)?));
            return self.date_number(day);
        }
        if self.date.len() == 3 && digits.len() == 6 && self.time.is_none() {
            return self.compact_time(digits);
        }
        self.date_number(digits)
    }

    fn month_number(&self, digits: &str) -> std::result::Result<u32, Fault> {
        match Self::number(digits)? {
            month @ 1..=12 => Ok(month as u32),
            _ => Err(Fault::FieldRangeOrOrder),
        }
    }

    fn date_number(&mut self, digits: &str) -> std::result::Result<(), Fault> {
        let value = Self::number(digits)?;
        self.date.push(DatePart::Number {
            value,
            digits: digits.len(),
        });
        Ok(())
    }

    /// The rest of `2020-01-02`, `2/1/2020` or `2-Jan-2020`.
    fn separated_date(&mut self, first: &str, separator: char) -> std::result::Result<(), Fault> {
        self.date_number(first)?;
        let mut numbers = 1;
        for _ in 0..2 {
            if !self.eat(separator) {
                return Err(Fault::Syntax);
            }
            let letters = take_letters(&mut self.rest);
            // The month's name is the first or the second.
            if letters.is_empty() || numbers == 2 {
                numbers += 1;
                let digits = take_digits(&mut self.rest);
                self.date_number(digits)?;
            } else {
                let month = index_of_name(&MONTHS, letters).ok_or(Fault::Syntax)?;
                self.date.push(DatePart::Month(month as u32 + 1));
            }
        }
        Ok(())
    }

    /// The rest of `03:04`, `03:04:05` or `03:04:05.678`.
    fn colon_time(&mut self, hour: &str) -> std::result::Result<(), Fault> {
        let hour = Self::number(hour)?;
        self.eat(':');
        let minute = Self::number(take_digits(&mut self.rest))?;
        let mut second = 0;
        let mut fraction = 0;
        if self.eat(':') {
            second = Self::number(take_digits(&mut self.rest))?;
            if self.eat('.') {
                fraction = fraction_microseconds(take_digits(&mut self.rest));
            }
        }
        self.set_time(hour, minute, second, fraction)
    }

    /// `0304` or `030405` with a fraction.
    fn compact_time(&mut self, digits: &str) -> std::result::Result<(), Fault> {
        let part = |from: usize| digits.get(from..from + 2).map_or(Ok(0), Self::number);
        if !matches!(digits.len(), 4 | 6) {
            return Err(Fault::Syntax);
        }
        let (hour, minute, second) = (part(0)?, part(2)?, part(4)?);
        let mut fraction = 0;
        if digits.len() == 6 && self.eat('.') {
            fraction = fraction_microseconds(take_digits(&mut self.rest));
        }
        self.set_time(hour, minute, second, fraction)
    }

    fn set_time(
        &mut self,
        hour: i64,
        minute: i64,
        second: i64,
        fraction: i64,
    ) -> std::result::Result<(), Fault> {
        if self.time.is_some() {
            return Err(Fault::Syntax);
        }
        // A leap second counts as the next minute's first.
        if hour > 24 || minute > 59 || second > 60 {
            return Err(Fault::FieldRange);
        }
        let time = hour * MICROSECONDS_PER_HOUR
            + minute * MICROSECONDS_PER_MINUTE
            + second * MICROSECONDS_PER_SECOND
            + fraction;
        if time > MICROSECONDS_PER_DAY {
            return Err(Fault::FieldRange);
        }
        self.time = Some(time);
        Ok(())
    }

    /// `+02`, `-0830`, `+05:30` or `+05:30:15`.
    fn zone(&mut self) -> std::result::Result<(), Fault> {
        if self.zone.is_some() {
            return Err(Fault::Syntax);
        }
        let west = self.eat('-');
        if !west {
            self.eat('+');
        }
        let digits = take_digits(&mut self.rest);
        let (mut hour, mut minute, mut second) = (Self::number(digits)?, 0, 0);
        if self.eat(':') {
            minute = Self::number(take_digits(&mut self.rest))?;
            if self.eat(':') {
                second = Self::number(take_digits(&mut self.rest))?;
            }
        } else if digits.len() > 2 {
            (hour, minute) = (hour / 100, hour % 100);
        }
        if hour > ZONE_HOUR_MAX || minute > 59 || second > 59 {
            return Err(Fault::Zone);
        }
        let displacement = hour * 3_600 + minute * 60 + second;
        let east = if west { -displacement } else { displacement };
        self.zone = Some(Zone::Fixed(east * MICROSECONDS_PER_SECOND));
        Ok(())
    }

    /// The time with its AM or PM.
    fn time_of_day(&self) -> std::result::Result<Option<i64>, Fault> {
        let (Some(time), Some(afternoon)) = (self.time, self.afternoon) else {
            return Ok(self.time);
        };
        let hour = time / MICROSECONDS_PER_HOUR;
        if hour > 12 {
            return Err(Fault::FieldRange);
        }
        let hours = i64::from(afternoon) * 12 - i64::from(hour == 12) * 12;
        Ok(Some(time + hours * MICROSECONDS_PER_HOUR))
    }

    fn resolve(self) -> std::result::Result<Moment, Fault> {
        let (year, month, day, year_digits) = match *self.date {
            [
                DatePart::Number {
                    value: year,
                    digits,
                },
                DatePart::Number { value: month, .. },
                DatePart::Number { value: day, .. },
            ] if digits > 2 => (year, month, day, digits),
            [
                DatePart::Number { value: month, .. },
                DatePart::Number { value: day, .. },
                DatePart::Number {
                    value: year,
                    digits,
                },
            ] => (year, month, day, digits),
            [DatePart::Month(month), first, second]
            | [first, DatePart::Month(month), second]
            | [first, second, DatePart::Month(month)] => match (first, second) {
                (
                    DatePart::Number {
                        value: first,
                        digits: first_digits,
                    },
                    DatePart::Number {
                        value: second,
                        digits: second_digits,
                    },
                ) => {
                    // The number that cannot be a day is the year; else the day comes first.
                    if first_digits > 2 {
                        (first, i64::from(month), second, first_digits)
                    } else {
                        (second, i64::from(month), first, second_digits)
                    }
                }
                _ => return Err(Fault::Syntax),
            },
            _ => return Err(Fault::Syntax),
        };

        let year = match self.before_christ {
            _ if year == 0 && year_digits > 2 => return Err(Fault::FieldRange),
            Some(true) => 1 - year,
            Some(false) => year,
            None if year_digits <= 2 => expand_year(year),
            None => year,
        };
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(Fault::FieldRangeOrOrder);
        }
        if day > i64::from(days_in_month(year, month as u32)) {
            return Err(Fault::FieldRange);
        }
        if year.abs() > 10_000_000 {
            return Err(Fault::FieldRange);
        }

        let time = self.time_of_day()?.unwrap_or(0);
        Ok(Moment::Finite {
            days: days_from_civil(year, month as u32, day),
            time,
            zone: self.zone,
        })
    }
}

fn read_moment(text: &str) -> std::result::Result<Moment, Fault> {
    let trimmed = text.trim_ascii();
    let is = |name: &str| trimmed.eq_ignore_ascii_case(name);
    if is("epoch") {
        return Ok(Moment::Finite {
            days: -UNIX_EPOCH_DAYS,
            time: 0,
            zone: Some(Zone::UTC),
        });
    }
    if is("infinity") || is("+infinity") {
        return Ok(Moment::Infinity);
    }
    if is("-infinity") {
        return Ok(Moment::MinusInfinity);
    }
    if ["now", "today", "tomorrow", "yesterday"]
        .iter()
        .any(|name| is(name))
    {
        return Err(Fault::Relative);
    }
    Reader {
        rest: trimmed,
        ..Reader::default()
    }
    .read()
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
    let trimmed = text.trim_ascii();
    if trimmed.eq_ignore_ascii_case("allballs") {
        return Ok(0);
    }
    let reader = Reader {
        rest: trimmed,
        is_time: true,
        ..Reader::default()
    };
    let read = match trimmed.eq_ignore_ascii_case("now") {
        true => Err(Fault::Relative),
        false => reader.read_time(),
    };
    read.map_err(|fault| fault.error("time", text))
}

/// Reads a TIMESTAMP; a zone is read and dropped, as in PostgreSQL.
///
/// # Errors
/// 22007 for what is no timestamp, 22008 for a field or a timestamp out of range.
pub fn parse_timestamp(text: &str) -> Result<i64> {
    let moment = read_moment(text).map_err(|fault| fault.error("timestamp", text))?;
    moment.timestamp(text, |_| Ok(0))
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
    moment.timestamp(text, |shown| Ok(zone.east_at(check_timestamp(shown)?)))
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
    fn timestamp(self, text: &str, east_at: impl FnOnce(i128) -> Result<i64>) -> Result<i64> {
        match self {
            Moment::Finite { days, time, .. } => {
                let shown = i128::from(days) * i128::from(MICROSECONDS_PER_DAY) + i128::from(time);
                let east = east_at(shown).map_err(|error| out_of_range(&error, text))?;
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
