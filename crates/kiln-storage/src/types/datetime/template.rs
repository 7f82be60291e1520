//! `to_timestamp` and `to_date`: a text read by a template, as PostgreSQL reads it.

use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND,
    check_date, check_timestamp, civil_from_days, days_from_civil, days_in_month, is_leap_year,
    round_seconds,
};
use super::field::{day_of_week, julian_day};
use super::format::ROMAN;
use super::input::{MONTHS, WEEKDAYS};
use super::zone::Zone;
use crate::error::{Error, Result, SqlState};

/// The patterns, the longer ones before those that they begin with; a number's has digits in the
/// text.
const PATTERNS: &[(&str, Kind)] = &[
    ("A.D.", Kind::Name),
    ("A.M.", Kind::Name),
    ("AD", Kind::Name),
    ("AM", Kind::Name),
    ("B.C.", Kind::Name),
    ("BC", Kind::Name),
    ("CC", Kind::Digits),
    ("DAY", Kind::Name),
    ("DDD", Kind::Digits),
    ("DD", Kind::Digits),
    ("DY", Kind::Name),
    ("D", Kind::Digits),
    ("FF1", Kind::Digits),
    ("FF2", Kind::Digits),
    ("FF3", Kind::Digits),
    ("FF4", Kind::Digits),
    ("FF5", Kind::Digits),
    ("FF6", Kind::Digits),
    ("FX", Kind::Other),
    ("HH24", Kind::Digits),
    ("HH12", Kind::Digits),
    ("HH", Kind::Digits),
    ("IDDD", Kind::Digits),
    ("ID", Kind::Digits),
    ("IW", Kind::Digits),
    ("IYYY", Kind::Digits),
    ("IYY", Kind::Digits),
    ("IY", Kind::Digits),
    ("I", Kind::Digits),
    ("J", Kind::Digits),
    ("MI", Kind::Digits),
    ("MM", Kind::Digits),
    ("MONTH", Kind::Name),
    ("MON", Kind::Name),
    ("MS", Kind::Digits),
    ("OF", Kind::Other),
    ("P.M.", Kind::Name),
    ("PM", Kind::Name),
    ("Q", Kind::Digits),
    ("RM", Kind::Name),
    ("SSSSS", Kind::Digits),
    ("SSSS", Kind::Digits),
    ("SS", Kind::Digits),
    ("TZH", Kind::Other),
    ("TZM", Kind::Digits),
    ("TZ", Kind::Other),
    ("US", Kind::Digits),
    ("WW", Kind::Digits),
    ("W", Kind::Digits),
    ("Y,YYY", Kind::Digits),
    ("YYYY", Kind::Digits),
    ("YYY", Kind::Digits),
    ("YY", Kind::Digits),
    ("Y", Kind::Digits),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Digits,
    Name,
    Other,
}

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'t> {
    Pattern {
        name: &'static str,
        /// As it is written.
        shown: &'t str,
        kind: Kind,
        fills: bool,
        /// Whether the ending of an ordinal number follows.
        is_ordinal: bool,
    },
    /// A blank, or a character that is no letter and no digit.
    Separator,
    /// Any other character, or one in quotes.
    Character(char),
}

fn parts_of(template: &str) -> Result<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        let mut pattern = rest;
        let mut fills = true;
        while let Some(after) = strip(pattern, "FM") {
            (fills, pattern) = (false, after);
        }
        // TM is for names in other languages than English.
        let translated = strip(pattern, "TM").filter(|_| fills);
        pattern = translated.unwrap_or(pattern);
        let mut known = PATTERNS.iter();
        let found = known.find_map(|(name, kind)| Some((*name, *kind, strip(pattern, name)?)));
        if let Some((name, kind, after)) = found {
            let ordinal = strip(after, "TH");
            rest = ordinal.unwrap_or(after);
            let is_ordinal = ordinal.is_some();
            let shown = &pattern[..name.len()];
            parts.push(Part::Pattern {
                name,
                shown,
                kind,
                fills,
                is_ordinal,
            });
            continue;
        }
        if pattern.len() < rest.len() {
            rest = pattern;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        match first {
            '"' => {
                let mut quoted = rest.char_indices();
                let mut end = rest.len();
                while let Some((at, character)) = quoted.next() {
                    match character {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => parts.extend(quoted.next().map(|(_, next)| Part::Character(next))),
                        _ => parts.push(Part::Character(character)),
                    }
                }
                rest = &rest[end..];
            }
            '\\' if rest.starts_with('"') => {
                parts.push(Part::Character('"'));
                rest = &rest[1..];
            }
            _ if is_separator(first) => parts.push(Part::Separator),
            _ => parts.push(Part::Character(first)),
        }
    }
    Ok(parts)
}

fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let begins = text.get(..prefix.len())?.eq_ignore_ascii_case(prefix);
    begins.then(|| &text[prefix.len()..])
}

/// A blank, or a printing character of ASCII that is no letter and no digit.
fn is_separator(character: char) -> bool {
    is_blank(character) || character.is_ascii_punctuation()
}

fn is_blank(character: char) -> bool {
    character.is_ascii_whitespace() || character == '\x0b'
}

/// What a text says, by the patterns of the template. 0 stands for what it does not say, as in
/// PostgreSQL.
#[derive(Default)]
struct Found {
    hour: i32,
    is_of_12: bool,
    afternoon: bool,
    minute: i32,
    second: i32,
    second_of_day: i32,
    millisecond: i32,
    microsecond: i32,
    year: i32,
    year_digits: usize,
    before_christ: bool,
    century: i32,
    month: i32,
    day: i32,
    day_of_year: i32,
    /// Sunday is 1.
    day_of_week: i32,
    week: i32,
    week_of_month: i32,
    julian: i32,
    zone_sign: i32,
    zone_hour: i32,
    zone_minute: i32,
    /// The digits of FF1 to FF6.
    fraction: Option<u8>,
    /// Whether the year, week or day is of ISO 8601, once one of them was there.
    is_iso: Option<bool>,
}

#[cold]
fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

#[cold]
fn invalid_value(value: &str, name: &str, detail: String) -> Error {
    invalid(format!("invalid value \"{value}\" for \"{name}\"")).with_detail(detail)
}

struct Reader<'a> {
    rest: &'a str,
    found: Found,
    /// How many characters of the text the template has not.
    skipped: i32,
    /// The last character that was passed over.
    passed: Option<char>,
}

impl<'a> Reader<'a> {
    fn read(mut self, parts: &[Part<'_>]) -> Result<Found> {
        let mut is_exact = false;
        for (at, part) in parts.iter().enumerate() {
            if self.rest.is_empty() {
                break;
            }
            if !is_exact && (at == 0 || matches!(part, Part::Pattern { .. })) {
                self.skipped += self.skip_blanks();
            }
            match *part {
                Part::Separator if is_exact => self.skip(),
                Part::Separator => {
                    self.skipped -= 1;
                    if self.rest.starts_with(is_separator) {
                        self.skip();
                        self.skipped += 1;
                    }
                }
                Part::Character(_) if !is_exact && self.skipped > 0 => self.skipped -= 1,
                Part::Character(_) => self.skip(),
                Part::Pattern { name: "FX", .. } => is_exact = true,
                Part::Pattern {
                    name,
                    shown,
                    kind,
                    fills,
                    is_ordinal,
                } => {
                    let takes_all = !fills || is_ordinal || ends_number(parts.get(at + 1));
                    self.pattern((name, shown), kind, takes_all)?;
                    if is_ordinal {
                        self.skip();
                        self.skip();
                    }
                    if !is_exact {
                        self.skipped = self.skip_blanks();
                    }
                }
            }
        }
        Ok(self.found)
    }

    fn skip(&mut self) {
        let mut characters = self.rest.chars();
        self.passed = characters.next();
        self.rest = characters.as_str();
    }

    fn skip_blanks(&mut self) -> i32 {
        let rest = self.rest.trim_start_matches(is_blank);
        let skipped = self.rest.len() - rest.len();
        self.rest = rest;
        skipped as i32
    }

    fn pattern(
        &mut self,
        (name, shown): (&'static str, &str),
        kind: Kind,
        takes_all: bool,
    ) -> Result<()> {
        match name {
            "TZ" | "OF" => {
                let message = format!("formatting field \"{shown}\" is only supported in to_char");
                return Err(Error::unsupported(message));
            }
            "TZH" => {
                if self.rest.starts_with(['+', '-', ' ']) {
                    self.skip();
                    self.skipped = 1;
                }
                // The template may have taken the sign for a separator.
                self.found.zone_sign = match (self.passed, self.skipped) {
                    (Some('-'), 1..) => -1,
                    _ => 1,
                };
                self.found.zone_hour = self.number(shown, 2, takes_all)?.0;
                return Ok(());
            }
            _ if kind == Kind::Name => return self.name(name, shown),
            _ => {}
        }
        self.set_mode(name)?;
        if name == "Y,YYY" {
            return self.year_with_comma();
        }
        let length = match name {
            "HH12" | "HH24" | "TZM" | "SS" => 2,
            "MS" | "DDD" | "IDDD" => 3,
            "US" => 6,
            "ID" => 1,
            name if name.starts_with("FF") => usize::from(name.as_bytes()[2] - b'0'),
            name => name.len(),
        };
        let (value, digits) = self.number(shown, length, takes_all)?;
        if name.starts_with("FF") {
            self.found.fraction = Some(length as u8);
        }
        let found = &mut self.found;
        let decimal = |digits: usize, of: usize| 10_i32.pow(of.saturating_sub(digits) as u32);
        match name {
            "HH" | "HH12" => {
                found.is_of_12 = true;
                set(&mut found.hour, value, shown)
            }
            "HH24" => set(&mut found.hour, value, shown),
            "MI" => set(&mut found.minute, value, shown),
            "SS" => set(&mut found.second, value, shown),
            "SSSS" | "SSSSS" => set(&mut found.second_of_day, value, shown),
            "MS" => set(
                &mut found.millisecond,
                value.saturating_mul(decimal(digits, 3)),
                shown,
            ),
            "TZM" => set(&mut found.zone_minute, value, shown),
            "MM" => set(&mut found.month, value, shown),
            "DDD" | "IDDD" => set(&mut found.day_of_year, value, shown),
            "DD" => set(&mut found.day, value, shown),
            "D" => set(&mut found.day_of_week, value, shown),
            // Sunday is the last day of ISO 8601's week.
            "ID" => set(
                &mut found.day_of_week,
                if value >= 7 { 1 } else { value + 1 },
                shown,
            ),
            "WW" | "IW" => set(&mut found.week, value, shown),
            "W" => set(&mut found.week_of_month, value, shown),
            "J" => set(&mut found.julian, value, shown),
            "CC" => set(&mut found.century, value, shown),
            "Q" => Ok(()),
            name if name.ends_with('Y') || name == "I" => {
                let width = length.min(4);
                found.year_digits = width;
                let year = match width < 4 && digits < 4 {
                    true => near_2020(value),
                    false => value,
                };
                set(&mut found.year, year, shown)
            }
            // US, and FF1 to FF6.
            _ => set(
                &mut found.microsecond,
                value.saturating_mul(decimal(digits, 6)),
                shown,
            ),
        }
    }

    /// Dates of ISO 8601's weeks are not mixed with others.
    fn set_mode(&mut self, name: &str) -> Result<()> {
        let is_iso = match name {
            "IYYY" | "IYY" | "IY" | "I" | "IW" | "ID" | "IDDD" => true,
            "Y,YYY" | "YYYY" | "YYY" | "YY" | "Y" | "WW" | "W" | "D" | "DDD" | "DD" | "MM"
            | "J" | "CC" | "Q" | "MONTH" | "MON" | "DAY" | "DY" | "RM" => false,
            _ => return Ok(()),
        };
        match self.found.is_iso.replace(is_iso) {
            Some(before) if before != is_iso => Err(invalid(
                "invalid combination of date conventions".to_owned(),
            )
            .with_hint(
                "Do not mix Gregorian and ISO week date conventions in a formatting template.",
            )),
            _ => Ok(()),
        }
    }

    /// A number of at most `length` digits, or of as many as there are, and how many characters it
    /// had.
    fn number(&mut self, name: &str, length: usize, takes_all: bool) -> Result<(i32, usize)> {
        self.skip_blanks();
        let all = self.rest;
        let given = match takes_all {
            true => all,
            false => {
                let end = all
                    .char_indices()
                    .nth(length)
                    .map_or(all.len(), |(at, _)| at);
                &all[..end]
            }
        };
        if !takes_all && given.chars().count() < length {
            let remain = given.chars().count();
            let message = format!("source string too short for \"{name}\" formatting field");
            let detail = format!("Field requires {length} characters, but only {remain} remain.");
            return Err(invalid(message).with_detail(detail));
        }
        let sign = usize::from(given.starts_with(['+', '-']));
        let digits = given[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let used = if digits == 0 { 0 } else { sign + digits };
        let shown = || {
            let end = all
                .char_indices()
                .nth(length)
                .map_or(all.len(), |(at, _)| at);
            all[..end].to_owned()
        };
        if used == 0 {
            let detail = "Value must be an integer.".to_owned();
            return Err(invalid_value(&shown(), name, detail));
        }
        if !takes_all && used < length {
            let detail =
                format!("Field requires {length} characters, but only {used} could be parsed.");
            return Err(invalid_value(&shown(), name, detail));
        }
        let value = given[..used]
            .trim_start_matches('+')
            .parse::<i32>()
            .map_err(|_| {
                let message = format!("value for \"{name}\" in source string is out of range");
                Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
            })?;
        self.rest = &all[used..];
        Ok((value, used))
    }

    fn year_with_comma(&mut self) -> Result<()> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let first = digits(self.rest);
        let behind = self.rest[first..].strip_prefix(',');
        let second = behind.map_or(0, |behind| digits(behind).min(3));
        let (Some(behind), true, true) = (behind, first > 0, second > 0) else {
            return Err(invalid("invalid input string for \"Y,YYY\"".to_owned()));
        };
        let number = |text: &str| text.parse::<i32>().ok();
        let year = number(&self.rest[..first]).zip(number(&behind[..second]));
        let year = year.and_then(|(high, low)| high.checked_mul(1_000)?.checked_add(low));
        let year = year.ok_or_else(|| {
            let message = "value for \"Y,YYY\" in source string is out of range";
            Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        })?;
        self.rest = &behind[second..];
        self.found.year_digits = 4;
        set(&mut self.found.year, year, "Y,YYY")
    }

    fn name(&mut self, name: &'static str, shown: &str) -> Result<()> {
        self.set_mode(name)?;
        let short = |names: &[&'static str]| names.iter().map(|name| &name[..3]).collect();
        let names: Vec<&str> = match name {
            "MONTH" => MONTHS.to_vec(),
            "MON" => short(&MONTHS),
            "DAY" => WEEKDAYS.to_vec(),
            "DY" => short(&WEEKDAYS),
            "A.M." | "P.M." => vec!["A.M.", "P.M."],
            "AM" | "PM" => vec!["AM", "PM"],
            "A.D." | "B.C." => vec!["A.D.", "B.C."],
            "AD" | "BC" => vec!["AD", "BC"],
            // XII before XI before X, and so on.
            _ => ROMAN.iter().rev().copied().collect(),
        };
        let rest = self.rest;
        let found = names.iter().position(|known| strip(rest, known).is_some());
        let Some(found) = found else {
            let word = rest.split(is_blank).next().unwrap_or_default();
            let detail = "The given value did not match any of the allowed values for this field.";
            return Err(invalid_value(word, shown, detail.to_owned()));
        };
        self.rest = &rest[names[found].len()..];
        let value = found as i32;
        let target = &mut self.found;
        match name {
            "MONTH" | "MON" => set(&mut target.month, value + 1, shown),
            "RM" => set(&mut target.month, 12 - value, shown),
            "DAY" | "DY" => set(&mut target.day_of_week, value + 1, shown),
            "A.M." | "P.M." | "AM" | "PM" => {
                (target.afternoon, target.is_of_12) = (value == 1, true);
                Ok(())
            }
            _ => {
                target.before_christ = value == 1;
                Ok(())
            }
        }
    }
}

/// Whether a number ends where the text has something other than a digit, by what follows in the
/// template.
fn ends_number(next: Option<&Part<'_>>) -> bool {
    match next {
        Some(Part::Pattern { kind, .. }) => *kind != Kind::Digits,
        Some(Part::Character(character)) => !character.is_ascii_digit(),
        Some(Part::Separator) | None => true,
    }
}

fn set(field: &mut i32, value: i32, name: &str) -> Result<()> {
    if *field != 0 && *field != value {
        let message = format!("conflicting values for \"{name}\" field in formatting string");
        let detail = "This value contradicts a previous setting for the same field type.";
        return Err(invalid(message).with_detail(detail));
    }
    *field = value;
    Ok(())
}

/// The year that fewer than four digits mean.
fn near_2020(year: i32) -> i32 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// Days since 2000-01-01 of a day of ISO 8601's week, Monday being 1.
fn iso_day(year: i64, week: i64, day: i64) -> i64 {
    // The first week has the fourth of January.
    let fourth = days_from_civil(year, 1, 4);
    let monday = fourth - (day_of_week(fourth) + 6) % 7;
    monday + (week - 1) * 7 + day - 1
}

impl Found {
    /// Days since 2000-01-01.
    fn days(&self, text: &str) -> Result<i64> {
        let out_of_range = || field_out_of_range(text);
        let year = self.full_year();
        let is_year_known = self.year != 0 || self.century != 0;
        let (mut month, mut day) = (1_i64, 1_i64);
        if self.julian != 0 {
            return Ok(i64::from(self.julian) - julian_day(0));
        }
        let mut day_of_year = i64::from(self.day_of_year);
        if self.is_iso == Some(true) {
            if self.week != 0 {
                let day = match self.day_of_week {
                    0 => 1,
                    1 => 7,
                    day => i64::from(day) - 1,
                };
                return Ok(iso_day(year, self.week.into(), day));
            }
            if day_of_year != 0 && is_year_known {
                return Ok(iso_day(year, 1, 1) + day_of_year - 1);
            }
        }
        if self.week != 0 {
            day_of_year = (i64::from(self.week) - 1) * 7 + 1;
        }
        if self.week_of_month != 0 {
            day = (i64::from(self.week_of_month) - 1) * 7 + 1;
        }
        if self.day != 0 {
            day = self.day.into();
        }
        if self.month != 0 {
            month = self.month.into();
        }
        if day_of_year != 0 && (month <= 1 || day <= 1) {
            if !is_year_known && !self.before_christ {
                let message = "cannot calculate day of year without year information";
                return Err(invalid(message.to_owned()));
            }
            if !(1..=365 + i64::from(is_leap_year(year))).contains(&day_of_year) {
                return Err(out_of_range());
            }
            let civil = civil_from_days(days_from_civil(year, 1, 1) + day_of_year - 1);
            if month <= 1 {
                month = civil.month.into();
            }
            if day <= 1 {
                day = civil.day.into();
            }
        }
        let is_month = (1..=12).contains(&month);
        if !is_month || !(1..=i64::from(days_in_month(year, month as u32))).contains(&day) {
            return Err(out_of_range());
        }
        Ok(days_from_civil(year, month as u32, day))
    }

    /// The year; 0 is 1 BC.
    fn full_year(&self) -> i64 {
        let century = i64::from(match self.before_christ {
            true => -self.century,
            false => self.century,
        });
        let year = i64::from(self.year);
        if self.year != 0 && self.century != 0 && self.year_digits <= 2 {
            return match year % 100 {
                0 => century * 100 + i64::from(century < 0),
                year if century >= 0 => year + (century - 1) * 100,
                year => (century + 1) * 100 - year + 1,
            };
        }
        if self.year != 0 {
            let year = if self.before_christ { -year } else { year };
            return year + i64::from(year < 0);
        }
        match century {
            0 => 0,
            1.. => (century - 1) * 100 + 1,
            _ => century * 100 + 1,
        }
    }

    /// Microseconds since midnight.
    fn time(&self, text: &str) -> Result<i64> {
        let (mut hour, mut minute, mut second) = match self.second_of_day {
            0 => (0, 0, 0),
            all => (all / 3_600, all / 60 % 60, all % 60),
        };
        for (field, given) in [
            (&mut hour, self.hour),
            (&mut minute, self.minute),
            (&mut second, self.second),
        ] {
            if given != 0 {
                *field = given;
            }
        }
        if self.is_of_12 {
            if !(1..=12).contains(&hour) {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                return Err(invalid(message)
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + if self.afternoon { 12 } else { 0 };
        }
        let fraction = i64::from(self.millisecond) * 1_000 + i64::from(self.microsecond);
        let is_time = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..MICROSECONDS_PER_SECOND).contains(&fraction);
        if !is_time {
            return Err(field_out_of_range(text));
        }
        Ok(i64::from(hour) * MICROSECONDS_PER_HOUR
            + i64::from(minute) * MICROSECONDS_PER_MINUTE
            + i64::from(second) * MICROSECONDS_PER_SECOND
            + fraction)
    }
}

#[cold]
fn field_out_of_range(text: &str) -> Error {
    let message = format!("date/time field value out of range: \"{text}\"");
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

fn read(text: &str, template: &str) -> Result<Found> {
    let parts = parts_of(template)?;
    let reader = Reader {
        rest: text,
        found: Found::default(),
        skipped: 0,
        passed: None,
    };
    reader.read(&parts)
}

/// `to_date(text, template)`.
///
/// # Errors
/// 22007 for a text that the template does not fit, 22008 for a field or a date out of range.
pub fn to_date(text: &str, template: &str) -> Result<i32> {
    let found = read(text, template)?;
    let days = found.days(text)?;
    found.time(text)?;
    let out_of_range =
        |error: Error| Error::new(error.state(), format!("{}: \"{text}\"", error.message()));
    check_date(days).map_err(out_of_range)
}

/// `to_timestamp(text, template)`, in this zone unless the text has one.
///
/// # Errors
/// As [`to_date`].
pub fn to_timestamp(text: &str, template: &str, zone: &Zone) -> Result<i64> {
    let found = read(text, template)?;
    let (days, time) = (found.days(text)?, found.time(text)?);
    let shown = i128::from(days) * i128::from(MICROSECONDS_PER_DAY) + i128::from(time);
    let east = i64::from(found.zone_hour) * MICROSECONDS_PER_HOUR
        + i64::from(found.zone_minute) * MICROSECONDS_PER_MINUTE;
    let east = match found.zone_sign {
        0 => zone.east_at(check_timestamp(shown)?),
        -1 => -east,
        _ => east,
    };
    let timestamp = check_timestamp(shown - i128::from(east))?;
    Ok(round_seconds(timestamp, found.fraction))
}
