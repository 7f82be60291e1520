//! `to_char` by PostgreSQL's template patterns, and that of timestamps.

use std::fmt::Write;

use super::calendar::{Civil, TimeOfDay};
use super::field::{civil_and_time, day_of_week, day_of_year, iso_week, julian_day};
use super::input::{MONTHS, WEEKDAYS};
use super::zone::Shown;
use crate::error::Result;
use crate::types::Style;

/// Roman numerals of the months.
pub(super) const ROMAN: [&str; 12] = [
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];

/// The patterns whose output is a number; each is also known in lower case.
const NUMBERS: &[&str] = &[
    "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I", "MM", "DDD", "DD", "D", "IDDD",
    "ID", "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US", "FF1", "FF2", "FF3",
    "FF4", "FF5", "FF6", "Q", "WW", "W", "IW", "CC", "J",
];

/// The patterns whose output is text; the letter case of the pattern is that of the output.
const TEXTS: &[&str] = &[
    "MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy", "AM",
    "PM", "am", "pm", "A.M.", "P.M.", "a.m.", "p.m.", "BC", "AD", "bc", "ad", "B.C.", "A.D.",
    "b.c.", "a.d.", "RM", "rm", "TZ", "tz", "OF", "of", "TZH", "tzh", "TZM", "tzm",
];

struct Moment {
    days: i64,
    civil: Civil,
    time: TimeOfDay,
    /// How far the zone is east of UTC, in seconds, and what its time is called.
    zone: Option<(i64, String)>,
}

/// A TIMESTAMP printed by a template such as `YYYY-MM-DD HH24:MI:SS.MS`. Text outside patterns is
/// copied; text in double quotes is copied without looking for patterns. An infinite timestamp
/// prints as the empty string.
pub fn to_char(timestamp: i64, template: &str) -> Option<String> {
    print_moment(timestamp, template, None)
}

/// [`to_char`] of a TIMESTAMPTZ, in the zone of `style`.
pub fn timestamptz_to_char(timestamp: i64, template: &str, style: &Style<'_>) -> Option<String> {
    if timestamp == i64::MIN || timestamp == i64::MAX {
        return None;
    }
    let Shown { time, east } = style.zone.shown_at(timestamp);
    let name = style.zone.abbreviation_at(timestamp, style.zone_name);
    print_moment(time, template, Some((east, name)))
}

fn print_moment(timestamp: i64, template: &str, zone: Option<(i64, String)>) -> Option<String> {
    if timestamp == i64::MIN || timestamp == i64::MAX {
        return None;
    }
    let (days, civil, time) = civil_and_time(timestamp);
    let moment = Moment {
        days,
        civil,
        time,
        zone,
    };
    Some(print(template, &moment).unwrap_or_default())
}

/// Appends a part of how far a zone is east of UTC.
fn push_offset(pattern: &str, east: i64, fill: bool, out: &mut String) {
    let sign = if east < 0 { '-' } else { '+' };
    let (hours, minutes) = (east.abs() / 3_600, east.abs() % 3_600 / 60);
    let _ = match pattern.to_ascii_uppercase().as_str() {
        "TZM" => write!(out, "{minutes:02}"),
        "OF" if !fill => write!(out, "{sign}{hours}"),
        _ => write!(out, "{sign}{hours:02}"),
    };
    if pattern.eq_ignore_ascii_case("OF") && east % 3_600 != 0 {
        let _ = write!(out, ":{minutes:02}");
    }
}

/// What a template prints the patterns of.
pub(super) trait Printed {
    /// The number that an upper-case pattern stands for, with its width.
    fn number(&self, pattern: &str) -> Result<Number>;

    /// Appends the text of a pattern.
    fn push_text(&self, pattern: &str, fill: bool, out: &mut String) -> Result<()>;
}

/// Prints by a template. Text outside patterns is copied; text in double quotes is copied without
/// looking for patterns.
pub(super) fn print(template: &str, printed: &impl Printed) -> Result<String> {
    let mut out = String::with_capacity(template.len() + 8);
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = copy_quoted(&rest[1..], &mut out);
            continue;
        }
        // Only an escaped quote loses its backslash.
        if let Some(after) = rest.strip_prefix("\\\"") {
            out.push('"');
            rest = after;
            continue;
        }
        let mut pattern = rest;
        let mut fill = true;
        while let Some(after) = pattern
            .strip_prefix("FM")
            .or_else(|| pattern.strip_prefix("fm"))
        {
            fill = false;
            pattern = after;
        }
        // TM is for names in other languages than English. They are as long as they are.
        let translated = pattern
            .strip_prefix("TM")
            .or_else(|| pattern.strip_prefix("tm"))
            .filter(|_| fill);
        pattern = translated.unwrap_or(pattern);
        let text = longest(TEXTS, pattern, false);
        let number = longest(NUMBERS, pattern, true)
            .filter(|number| text.is_none_or(|text| text.len() < number.len()));
        if let Some(name) = number {
            let width_and_value = printed.number(&name.to_ascii_uppercase())?;
            let start = out.len();
            push_number(width_and_value, fill, &mut out);
            rest = &pattern[name.len()..];
            for (suffix, upper) in [("TH", true), ("th", false)] {
                if let Some(after) = rest.strip_prefix(suffix) {
                    let ending = ordinal_ending(&out[start..]);
                    out.push_str(if upper { ending.0 } else { ending.1 });
                    rest = after;
                    break;
                }
            }
        } else if let Some(name) = text {
            printed.push_text(name, fill && translated.is_none(), &mut out)?;
            rest = &pattern[name.len()..];
            // Only numbers have an ordinal ending.
            rest = rest
                .strip_prefix("TH")
                .or_else(|| rest.strip_prefix("th"))
                .unwrap_or(rest);
        } else if pattern.len() < rest.len() {
            // A modifier without a pattern prints nothing.
            rest = pattern;
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(out)
}

/// Copies up to the closing quote and returns what follows it.
fn copy_quoted<'a>(quoted: &'a str, out: &mut String) -> &'a str {
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return &quoted[at + 1..],
            '\\' => out.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => out.push(character),
        }
    }
    ""
}

/// The longest of the names that `text` begins with, as it is written there.
fn longest<'a>(names: &[&str], text: &'a str, or_lower: bool) -> Option<&'a str> {
    names
        .iter()
        .filter_map(|name| {
            let candidate = text.get(..name.len())?;
            let found = candidate == *name
                || (or_lower
                    && candidate.eq_ignore_ascii_case(name)
                    && !candidate.bytes().any(|byte| byte.is_ascii_uppercase()));
            found.then_some(candidate)
        })
        .max_by_key(|name| name.len())
}

/// Endings of ordinal numbers in upper and lower case.
fn ordinal_ending(digits: &str) -> (&'static str, &'static str) {
    let bytes = digits.as_bytes();
    let teens = bytes.len() >= 2 && bytes[bytes.len() - 2] == b'1';
    match bytes.last() {
        Some(b'1') if !teens => ("ST", "st"),
        Some(b'2') if !teens => ("ND", "nd"),
        Some(b'3') if !teens => ("RD", "rd"),
        _ => ("TH", "th"),
    }
}

/// A number as a pattern prints it.
pub(super) enum Number {
    Padded(i64, usize),
    Text(String),
}

fn push_number(number: Number, fill: bool, out: &mut String) {
    match number {
        Number::Text(text) => out.push_str(&text),
        Number::Padded(value, _) if !fill => out.push_str(&value.to_string()),
        Number::Padded(value, width) => {
            let width = width + usize::from(value < 0);
            out.push_str(&format!("{value:0width$}"));
        }
    }
}

impl Printed for Moment {
    fn number(&self, pattern: &str) -> Result<Number> {
        let Moment {
            days, civil, time, ..
        } = *self;
        let shown = |year: i64| if year > 0 { year } else { 1 - year };
        let year = shown(i64::from(civil.year));
        let (iso_year, iso_week) = iso_week(days);
        let iso_year = shown(iso_year);
        let hour_of_12 = i64::from((time.hour + 11) % 12 + 1);
        let week_day = day_of_week(days);
        let iso_week_day = (week_day + 6) % 7 + 1;
        let of_year = day_of_year(days, civil);
        let second_of_day = i64::from(time.hour * 3_600 + time.minute * 60 + time.second);
        let fraction = |digits: u32| {
            let value = time.microsecond / 10_u32.pow(6 - digits);
            // Leading zeros of a fraction are digits of it, whatever the modifier.
            Number::Text(format!("{value:0width$}", width = digits as usize))
        };
        Ok(match pattern {
            "Y,YYY" => Number::Text(format!("{},{:03}", year / 1_000, year % 1_000)),
            "YYYY" => Number::Padded(year, 4),
            "YYY" => Number::Padded(year % 1_000, 3),
            "YY" => Number::Padded(year % 100, 2),
            "Y" => Number::Padded(year % 10, 1),
            "IYYY" => Number::Padded(iso_year, 4),
            "IYY" => Number::Padded(iso_year % 1_000, 3),
            "IY" => Number::Padded(iso_year % 100, 2),
            "I" => Number::Padded(iso_year % 10, 1),
            "MM" => Number::Padded(i64::from(civil.month), 2),
            "DDD" => Number::Padded(of_year, 3),
            "DD" => Number::Padded(i64::from(civil.day), 2),
            "D" => Number::Padded(week_day + 1, 1),
            "IDDD" => Number::Padded((iso_week - 1) * 7 + iso_week_day, 3),
            "ID" => Number::Padded(iso_week_day, 1),
            "HH24" => Number::Padded(i64::from(time.hour), 2),
            "HH12" | "HH" => Number::Padded(hour_of_12, 2),
            "MI" => Number::Padded(i64::from(time.minute), 2),
            "SSSSS" | "SSSS" => Number::Padded(second_of_day, 1),
            "SS" => Number::Padded(i64::from(time.second), 2),
            "MS" => fraction(3),
            "US" => fraction(6),
            "FF1" => fraction(1),
            "FF2" => fraction(2),
            "FF3" => fraction(3),
            "FF4" => fraction(4),
            "FF5" => fraction(5),
            "FF6" => fraction(6),
            "Q" => Number::Padded(i64::from((civil.month - 1) / 3 + 1), 1),
            "WW" => Number::Padded((of_year - 1) / 7 + 1, 2),
            "W" => Number::Padded(i64::from((civil.day - 1) / 7 + 1), 1),
            "IW" => Number::Padded(iso_week, 2),
            "CC" => {
                let century = (year - 1) / 100 + 1;
                Number::Padded(if civil.year > 0 { century } else { -century }, 2)
            }
            _ => Number::Padded(julian_day(days), 1),
        })
    }

    fn push_text(&self, pattern: &str, fill: bool, out: &mut String) -> Result<()> {
        let afternoon = self.time.hour >= 12;
        let before_christ = self.civil.year <= 0;
        let month = MONTHS[self.civil.month as usize - 1];
        let day = WEEKDAYS[day_of_week(self.days) as usize];
        // The names' columns are as wide as the longest name, except the abbreviations'.
        let (text, width) = match pattern.to_ascii_uppercase().as_str() {
            "MONTH" => (month, 9),
            "MON" => (&month[..3], 0),
            "DAY" => (day, 9),
            "DY" => (&day[..3], 0),
            "AM" | "PM" => (if afternoon { "PM" } else { "AM" }, 0),
            "A.M." | "P.M." => (if afternoon { "P.M." } else { "A.M." }, 0),
            "BC" | "AD" => (if before_christ { "BC" } else { "AD" }, 0),
            "B.C." | "A.D." => (if before_christ { "B.C." } else { "A.D." }, 0),
            "RM" => (ROMAN[self.civil.month as usize - 1], 4),
            "TZ" => (self.zone.as_ref().map_or("", |(_, name)| name), 0),
            _ => {
                push_offset(
                    pattern,
                    self.zone.as_ref().map_or(0, |(east, _)| *east),
                    fill,
                    out,
                );
                return Ok(());
            }
        };
        let width = if fill { width } else { 0 };
        push_in_case(text, pattern, width, out);
        Ok(())
    }
}

/// Appends a text in the letter case of its pattern.
pub(super) fn push_in_case(text: &str, pattern: &str, width: usize, out: &mut String) {
    let upper = !pattern.bytes().any(|byte| byte.is_ascii_lowercase());
    let lower = !pattern.bytes().any(|byte| byte.is_ascii_uppercase());
    let text = match (upper, lower) {
        (true, false) => text.to_ascii_uppercase(),
        (false, true) => text.to_ascii_lowercase(),
        _ => text.to_string(),
    };
    out.push_str(&format!("{text:<width$}"));
}
