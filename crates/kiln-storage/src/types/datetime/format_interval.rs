//! `to_char` of intervals.

use super::calendar::{MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND};
use super::format::{Number, Printed, print, push_in_case};
use super::interval::Interval;
use crate::error::{Error, Result, SqlState};

/// An INTERVAL printed by a template; its hours may be more than a day has.
///
/// # Errors
/// 22007 for a pattern that only a date has, 0A000 for other patterns of calendars.
pub fn interval_to_char(interval: Interval, template: &str) -> Result<String> {
    print(template, &interval)
}

impl Printed for Interval {
    fn number(&self, pattern: &str) -> Result<Number> {
        let time = self.microseconds;
        let hour = time / MICROSECONDS_PER_HOUR;
        let second_of_time = time / MICROSECONDS_PER_SECOND;
        let microsecond = time % MICROSECONDS_PER_SECOND;
        let year = i64::from(self.months / 12);
        let fraction = |digits: u32| {
            let value = microsecond / 10_i64.pow(6 - digits);
            let width = digits as usize + usize::from(value < 0);
            Number::Text(format!("{value:0width$}"))
        };
        Ok(match pattern {
            "YYYY" => Number::Padded(year, 4),
            "YYY" => Number::Padded(year % 1_000, 3),
            "YY" => Number::Padded(year % 100, 2),
            "Y" => Number::Padded(year % 10, 1),
            "MM" => Number::Padded((self.months % 12).into(), 2),
            "DD" => Number::Padded(self.days.into(), 2),
            "HH24" => Number::Padded(hour, 2),
            "HH12" | "HH" => match hour % 12 {
                0 => Number::Padded(12, 2),
                hour => Number::Padded(hour, 2),
            },
            "MI" => Number::Padded(time / MICROSECONDS_PER_MINUTE % 60, 2),
            "SSSSS" | "SSSS" => Number::Padded(second_of_time, 1),
            "SS" => Number::Padded(second_of_time % 60, 2),
            "MS" => fraction(3),
            "US" => fraction(6),
            "FF1" => fraction(1),
            "FF2" => fraction(2),
            "FF3" => fraction(3),
            "FF4" => fraction(4),
            "FF5" => fraction(5),
            "FF6" => fraction(6),
            _ => {
                return Err(Error::unsupported(format!(
                    "the template pattern \"{pattern}\" of to_char for intervals is not supported"
                )));
            }
        })
    }

    fn push_text(&self, pattern: &str, _: bool, out: &mut String) -> Result<()> {
        let hour = (self.microseconds / MICROSECONDS_PER_HOUR).rem_euclid(24);
        let text = match (pattern.to_ascii_uppercase().as_str(), hour >= 12) {
            ("AM" | "PM", true) => "PM",
            ("AM" | "PM", false) => "AM",
            ("A.M." | "P.M.", true) => "P.M.",
            ("A.M." | "P.M.", false) => "A.M.",
            _ => {
                let message = "invalid format specification for an interval value";
                return Err(Error::new(SqlState::INVALID_DATETIME_FORMAT, message)
                    .with_hint("Intervals are not tied to specific calendar dates."));
            }
        };
        push_in_case(text, pattern, 0, out);
        Ok(())
    }
}
