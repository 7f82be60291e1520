//! INTERVAL: months, days and microseconds apart, as a month has no fixed length in days.

use std::cmp::Ordering;
use std::fmt;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND,
    round_seconds, write_fraction,
};
use crate::error::{Error, Result, SqlState};

/// The days of a month where nothing else is known of it.
const DAYS_PER_MONTH: i32 = 30;

/// A span of time. Months, days and microseconds are separate and each has its own sign.
///
/// Comparison and equality take a month as 30 days and a day as 24 hours, as PostgreSQL does:
/// `1 month` equals `30 days` and prints differently.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Whole months; a year is 12.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// Microseconds.
    pub microseconds: i64,
}

#[cold]
pub(super) fn interval_out_of_range() -> Error {
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

impl Interval {
    /// An interval of these three parts.
    pub const fn new(months: i32, days: i32, microseconds: i64) -> Interval {
        Interval {
            months,
            days,
            microseconds,
        }
    }

    /// With the seconds rounded to so many digits.
    #[must_use]
    pub fn rounded(self, digits: Option<u8>) -> Interval {
        Interval {
            microseconds: round_seconds(self.microseconds, digits),
            ..self
        }
    }

    /// The whole span in microseconds, a month as 30 days: what comparison uses.
    fn span(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(MICROSECONDS_PER_DAY) + i128::from(self.microseconds)
    }

    /// The sum, part by part.
    ///
    /// # Errors
    /// 22008, `interval out of range`.
    pub fn try_add(self, other: Interval) -> Result<Interval> {
        let parts = (
            self.months.checked_add(other.months),
            self.days.checked_add(other.days),
            self.microseconds.checked_add(other.microseconds),
        );
        match parts {
            (Some(months), Some(days), Some(microseconds)) => Ok(Interval {
                months,
                days,
                microseconds,
            }),
            _ => Err(interval_out_of_range()),
        }
    }

    /// The difference, part by part.
    ///
    /// # Errors
    /// 22008, `interval out of range`.
    pub fn try_sub(self, other: Interval) -> Result<Interval> {
        self.try_add(other.try_neg()?)
    }

    /// The interval with every part's sign turned.
    ///
    /// # Errors
    /// 22008, `interval out of range`.
    pub fn try_neg(self) -> Result<Interval> {
        match (
            self.months.checked_neg(),
            self.days.checked_neg(),
            self.microseconds.checked_neg(),
        ) {
            (Some(months), Some(days), Some(microseconds)) => Ok(Interval {
                months,
                days,
                microseconds,
            }),
            _ => Err(interval_out_of_range()),
        }
    }

    /// The interval times a factor; fractions of months become days, and those of days become
    /// time, as in PostgreSQL.
    ///
    /// # Errors
    /// 22008, `interval out of range`.
    pub fn try_mul(self, factor: f64) -> Result<Interval> {
        self.scaled(|part| part * factor)
    }

    /// The interval divided by a number; see [`try_mul`](Interval::try_mul).
    ///
    /// # Errors
    /// 22012 for zero, 22008, `interval out of range`.
    pub fn try_div(self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(Error::division_by_zero());
        }
        self.scaled(|part| part / divisor)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        let whole = |value: f64, limit: f64| {
            if value.is_finite() && value.abs() < limit {
                Ok(value.trunc())
            } else {
                Err(interval_out_of_range())
            }
        };
        // Rounding to a microsecond hides what binary fractions lose.
        let round_part = |value: f64| (value * 1e6).round_ties_even() / 1e6;
        let integer_limit = f64::from(i32::MAX) + 1.0;

        let months = scale(f64::from(self.months));
        let days = scale(f64::from(self.days));
        let whole_months = whole(months, integer_limit)?;
        let whole_days = whole(days, integer_limit)?;

        // What months leave over becomes days, what days leave over becomes seconds.
        let month_days = round_part((months - whole_months) * 30.0);
        let mut seconds = (days - whole_days + month_days - month_days.trunc()) * 86_400.0;
        seconds = round_part(seconds);
        let mut carried_days = month_days.trunc();
        if seconds.abs() >= 86_400.0 {
            let extra = (seconds / 86_400.0).trunc();
            carried_days += extra;
            seconds -= extra * 86_400.0;
        }
        let total_days = whole(whole_days + carried_days, integer_limit)?;
        let time = scale(self.microseconds as f64) + seconds * 1e6;
        let time = time.round_ties_even();
        if time.is_nan() || time.abs() >= 9.223_372_036_854_775e18 {
            return Err(interval_out_of_range());
        }
        Ok(Interval::new(
            whole_months as i32,
            total_days as i32,
            time as i64,
        ))
    }

    /// Turns each 24 hours of the time into a day (PostgreSQL's `justify_hours`).
    ///
    /// # Errors
    /// 22008, `interval out of range`.
    pub fn justify_hours(self) -> Result<Interval> {
        let carried = self.microseconds / MICROSECONDS_PER_DAY;
        let mut days = i64::from(self.days) + carried;
        let mut microseconds = self.microseconds % MICROSECONDS_PER_DAY;
        if days > 0 && microseconds < 0 {
            microseconds += MICROSECONDS_PER_DAY;
            days -= 1;
        } else if days < 0 && microseconds > 0 {
            microseconds -= MICROSECONDS_PER_DAY;
            days += 1;
        }
        let days = i32::try_from(days).map_err(|_| interval_out_of_range())?;
        Ok(Interval {
            days,
            microseconds,
            ..self
        })
    }

    /// Turns each 30 days into a month (PostgreSQL's `justify_days`).
    ///
    /// # Errors
    /// 22008, `interval out of range`.
    pub fn justify_days(self) -> Result<Interval> {
        let mut justified = self.with_months_of_days()?;
        if justified.months > 0 && justified.days < 0 {
            justified.days += DAYS_PER_MONTH;
            justified.months -= 1;
        } else if justified.months < 0 && justified.days > 0 {
            justified.days -= DAYS_PER_MONTH;
            justified.months += 1;
        }
        Ok(justified)
    }

    /// Turns each 24 hours into a day and each 30 days into a month, and gives all parts one sign
    /// (PostgreSQL's `justify_interval`).
    ///
    /// # Errors
    /// 22008, `interval out of range`.
    pub fn justify(self) -> Result<Interval> {
        // Days and a time of different signs cannot be too many together; others become months
        // first.
        let mut justified = match i64::from(self.days).signum() == self.microseconds.signum() {
            true => self.with_months_of_days()?,
            false => self,
        };
        justified.days += (justified.microseconds / MICROSECONDS_PER_DAY) as i32;
        justified.microseconds %= MICROSECONDS_PER_DAY;
        let mut justified = justified.with_months_of_days()?;
        let rest = (justified.days, justified.microseconds);
        if justified.months > 0 && rest < (0, 0) {
            justified.days += DAYS_PER_MONTH;
            justified.months -= 1;
        } else if justified.months < 0 && rest > (0, 0) {
            justified.days -= DAYS_PER_MONTH;
            justified.months += 1;
        }
        if justified.days > 0 && justified.microseconds < 0 {
            justified.microseconds += MICROSECONDS_PER_DAY;
            justified.days -= 1;
        } else if justified.days < 0 && justified.microseconds > 0 {
            justified.microseconds -= MICROSECONDS_PER_DAY;
            justified.days += 1;
        }
        Ok(justified)
    }

    fn with_months_of_days(self) -> Result<Interval> {
        let months = self.months.checked_add(self.days / DAYS_PER_MONTH);
        Ok(Interval {
            months: months.ok_or_else(interval_out_of_range)?,
            days: self.days % DAYS_PER_MONTH,
            ..self
        })
    }
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.span() == other.span()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Interval) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Interval) -> Ordering {
        self.span().cmp(&other.span())
    }
}

impl Hash for Interval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.span().hash(state);
    }
}

impl fmt::Display for Interval {
    /// PostgreSQL's style `postgres`: `1 year 2 mons -3 days +04:05:06.7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        // After a negative part, a positive one shows its sign.
        let mut negative_before = false;
        let parts = [
            (self.months / 12, "year"),
            (self.months % 12, "mon"),
            (self.days, "day"),
        ];
        for (amount, unit) in parts {
            if amount == 0 {
                continue;
            }
            let space = if out.is_empty() { "" } else { " " };
            let sign = if negative_before && amount > 0 {
                "+"
            } else {
                ""
            };
            let plural = if amount == 1 { "" } else { "s" };
            let _ = write!(out, "{space}{sign}{amount} {unit}{plural}");
            negative_before = amount < 0;
        }
        if self.microseconds != 0 || out.is_empty() {
            let space = if out.is_empty() { "" } else { " " };
            let sign = match (self.microseconds < 0, negative_before) {
                (true, _) => "-",
                (false, true) => "+",
                (false, false) => "",
            };
            let time = self.microseconds.unsigned_abs();
            let hours = time / MICROSECONDS_PER_HOUR as u64;
            let minutes = time / MICROSECONDS_PER_MINUTE as u64 % 60;
            let seconds = time / MICROSECONDS_PER_SECOND as u64 % 60;
            let _ = write!(out, "{space}{sign}{hours:02}:{minutes:02}:{seconds:02}");
            write_fraction((time % MICROSECONDS_PER_SECOND as u64) as u32, &mut out);
        }
        f.pad(&out)
    }
}
