//! Intervals from text: `1 year 2 mons`, `1 day 02:03:04`, `1-2`, `P1DT2H`, `3 hours ago`.

use super::calendar::{MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND};
use super::input::{take_digits, take_letters};
use super::interval::{Interval, interval_out_of_range};
use crate::error::{Error, Result, SqlState};

/// What a unit's amount counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A number of months.
    Months(i64),
    /// A number of days.
    Days(i64),
    /// A number of microseconds.
    Microseconds(i64),
}

/// Units with the bit that forbids naming one twice.
const UNITS: &[(&[&str], Unit, u32)] = &[
    (
        &[
            "microsecond",
            "microseconds",
            "microsecon",
            "us",
            "usec",
            "usecs",
            "usecond",
            "useconds",
        ],
        Unit::Microseconds(1),
        1,
    ),
    (
        &[
            "millisecond",
            "milliseconds",
            "millisecon",
            "ms",
            "msec",
            "msecs",
            "msecond",
            "mseconds",
        ],
        Unit::Microseconds(1_000),
        2,
    ),
    (&["second", "seconds", "s", "sec", "secs"], SECONDS, 4),
    (&["minute", "minutes", "m", "min", "mins"], MINUTES, 8),
    (&["hour", "hours", "h", "hr", "hrs"], HOURS, 16),
    (&["day", "days", "d"], Unit::Days(1), 32),
    (&["week", "weeks", "w"], Unit::Days(7), 64),
    (&["month", "months", "mon", "mons"], Unit::Months(1), 128),
    (&["year", "years", "y", "yr", "yrs"], Unit::Months(12), 256),
    (
        &["decade", "decades", "dec", "decs"],
        Unit::Months(120),
        512,
    ),
    (
        &["century", "centuries", "c", "cent"],
        Unit::Months(1_200),
        1_024,
    ),
    (
        &["millennium", "millenniums", "millennia", "mil", "mils"],
        Unit::Months(12_000),
        2_048,
    ),
];

/// Seconds and their parts: what seconds with a fraction set.
const ALL_SECOND_BITS: u32 = 1 | 2 | 4;
/// Hours, minutes and seconds: what `02:03:04` sets.
const TIME_BITS: u32 = ALL_SECOND_BITS | 8 | 16;
const SECOND: (Unit, u32) = (SECONDS, 4);
const DAY: (Unit, u32) = (Unit::Days(1), 32);

const HOURS: Unit = Unit::Microseconds(3_600_000_000);
const MINUTES: Unit = Unit::Microseconds(60_000_000);
const SECONDS: Unit = Unit::Microseconds(1_000_000);

enum Fault {
    Syntax,
    /// One field is out of range.
    FieldRange,
    /// Each field is in range, but not the months together.
    Range,
}

type Read<T> = std::result::Result<T, Fault>;

/// A decimal amount: its sign applies to both parts.
#[derive(Clone, Copy)]
struct Amount {
    negative: bool,
    whole: u64,
    fraction: f64,
}

#[derive(Default)]
struct Builder {
    years: i64,
    /// Besides the years.
    months: i64,
    days: i64,
    microseconds: i64,
    seen: u32,
}

fn checked_sum(sum: &mut i64, amount: i64, factor: i64) -> Read<()> {
    *sum = amount
        .checked_mul(factor)
        .and_then(|product| sum.checked_add(product))
        .ok_or(Fault::FieldRange)?;
    Ok(())
}

/// Adds to a field of 32 bits.
fn checked_field(sum: &mut i64, amount: i64, factor: i64) -> Read<()> {
    checked_sum(sum, amount, factor)?;
    i32::try_from(*sum).map(drop).map_err(|_| Fault::FieldRange)
}

impl Builder {
    fn mark(&mut self, bits: u32) -> Read<()> {
        if self.seen & bits != 0 {
            return Err(Fault::Syntax);
        }
        self.seen |= bits;
        Ok(())
    }

    /// Adds an amount; the fraction of a unit goes to the next smaller part.
    fn add(&mut self, amount: Amount, unit: Unit) -> Read<()> {
        let sign = if amount.negative { -1 } else { 1 };
        let whole = i128::from(amount.whole) * sign;
        let whole = i64::try_from(whole).map_err(|_| Fault::FieldRange)?;
        let fraction = amount.fraction * sign as f64;
        match unit {
            Unit::Microseconds(size) => {
                checked_sum(&mut self.microseconds, whole, size)?;
                self.add_microseconds(fraction * size as f64)
            }
            Unit::Days(size) => {
                checked_sum(&mut self.days, whole, size)?;
                self.add_days(fraction * size as f64)
            }
            // The fraction of a year is rounded to months; that of a month goes to days.
            Unit::Months(1) => {
                checked_field(&mut self.months, whole, 1)?;
                self.add_days(fraction * 30.0)
            }
            Unit::Months(size) => {
                checked_field(&mut self.years, whole, size / 12)?;
                checked_field(
                    &mut self.months,
                    (fraction * size as f64).round_ties_even() as i64,
                    1,
                )
            }
        }
    }

    /// Adds three amounts of two digits each, the first of all the rest, written as one: the fraction
    /// is that of the last.
    fn add_basic(&mut self, amount: Amount, units: [Unit; 3]) -> Read<()> {
        let parts = [
            amount.whole / 10_000,
            amount.whole / 100 % 100,
            amount.whole % 100,
        ];
        for (index, (whole, unit)) in parts.into_iter().zip(units).enumerate() {
            let fraction = if index == 2 { amount.fraction } else { 0.0 };
            let part = Amount {
                whole,
                fraction,
                ..amount
            };
            self.add(part, unit)?;
        }
        Ok(())
    }

    fn add_days(&mut self, days: f64) -> Read<()> {
        checked_sum(&mut self.days, days.trunc() as i64, 1)?;
        self.add_microseconds((days - days.trunc()) * MICROSECONDS_PER_DAY as f64)
    }

    fn add_microseconds(&mut self, microseconds: f64) -> Read<()> {
        checked_sum(
            &mut self.microseconds,
            microseconds.round_ties_even() as i64,
            1,
        )
    }

    fn finish(self, ago: bool) -> Read<Interval> {
        let sign = if ago { -1 } else { 1 };
        let part = |value: i64| i32::try_from(value * sign).map_err(|_| Fault::FieldRange);
        let months = self.years * 12 + self.months;
        if i32::try_from(months).is_err() {
            return Err(Fault::Range);
        }
        if i32::try_from(self.days).is_err() {
            return Err(Fault::FieldRange);
        }
        let microseconds = self
            .microseconds
            .checked_mul(sign)
            .ok_or(Fault::FieldRange)?;
        Ok(Interval::new(part(months)?, part(self.days)?, microseconds))
    }
}

/// Takes `12`, `12.5` or `.5` off the text, after its sign.
fn take_amount(rest: &mut &str, negative: bool) -> Read<Amount> {
    let whole = take_digits(rest);
    let mut fraction = 0.0;
    let mut fraction_digits = "";
    if let Some(after) = rest.strip_prefix('.') {
        *rest = after;
        fraction_digits = take_digits(rest);
        fraction = format!("0.{fraction_digits}0")
            .parse()
            .map_err(|_| Fault::Syntax)?;
    }
    if whole.is_empty() && fraction_digits.is_empty() {
        return Err(Fault::Syntax);
    }
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| Fault::FieldRange)?
    };
    Ok(Amount {
        negative,
        whole,
        fraction,
    })
}

fn find_unit(word: &str) -> Read<(Unit, u32)> {
    UNITS
        .iter()
        .find(|(names, ..)| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
        .map(|(_, unit, bit)| (*unit, *bit))
        .ok_or(Fault::Syntax)
}

fn read_interval(text: &str) -> Read<Interval> {
    let mut rest = text.trim_ascii();
    if let Some(iso) = rest.strip_prefix('P') {
        return read_iso(iso);
    }
    let mut builder = Builder::default();
    let mut any = false;
    let mut ago = false;
    rest = rest.strip_prefix('@').unwrap_or(rest);
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let Some(first) = rest.bytes().next() else {
            break;
        };
        if ago {
            return Err(Fault::Syntax);
        }
        if first.is_ascii_alphabetic() {
            if !take_letters(&mut rest).eq_ignore_ascii_case("ago") || !any {
                return Err(Fault::Syntax);
            }
            ago = true;
            continue;
        }
        let negative = first == b'-';
        if negative || first == b'+' {
            rest = rest[1..].trim_ascii_start();
        }
        any = true;
        let amount = take_amount(&mut rest, negative)?;
        match rest.bytes().next() {
            Some(b':') => {
                builder.mark(TIME_BITS)?;
                read_clock(&mut rest, amount, &mut builder)?;
                // It is read without its sign.
                if builder.microseconds == i64::MIN {
                    return Err(Fault::Syntax);
                }
            }
            Some(b'-') if amount.fraction == 0.0 => {
                rest = &rest[1..];
                let months = take_digits(&mut rest).parse().map_err(|_| Fault::Syntax)?;
                if !(0..12).contains(&months) {
                    return Err(Fault::FieldRange);
                }
                builder.mark(128 | 256)?;
                builder.add(amount, Unit::Months(12))?;
                builder.add(
                    Amount {
                        whole: months,
                        ..amount
                    },
                    Unit::Months(1),
                )?;
                if i32::try_from(builder.years * 12 + builder.months).is_err() {
                    return Err(Fault::FieldRange);
                }
            }
            _ => {
                rest = rest.trim_ascii_start();
                let (unit, bit) = match rest.bytes().next() {
                    Some(byte) if byte.is_ascii_alphabetic() => find_unit(take_letters(&mut rest))?,
                    // A bare number is seconds at the end and days before a time of day.
                    None => SECOND,
                    Some(_) if is_clock(rest) => DAY,
                    Some(_) => return Err(Fault::Syntax),
                };
                builder.mark(match amount.fraction != 0.0 && (unit, bit) == SECOND {
                    true => ALL_SECOND_BITS,
                    false => bit,
                })?;
                builder.add(amount, unit)?;
            }
        }
    }
    if !any {
        return Err(Fault::Syntax);
    }
    builder.finish(ago)
}

/// Whether the text goes on with `02:03`, signed or not.
fn is_clock(rest: &str) -> bool {
    let mut unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    !take_digits(&mut unsigned).is_empty() && unsigned.starts_with(':')
}

/// The rest of `02:03`, `02:03:04.5` or, minutes and seconds, `02:03.5`.
fn read_clock(rest: &mut &str, first: Amount, builder: &mut Builder) -> Read<()> {
    let negative = first.negative;
    *rest = &rest[1..];
    let mut parts = vec![first, take_amount(rest, negative)?];
    if let Some(after) = rest.strip_prefix(':') {
        *rest = after;
        parts.push(take_amount(rest, negative)?);
    }
    let last = parts.len() - 1;
    if parts[..last].iter().any(|part| part.fraction != 0.0) {
        return Err(Fault::Syntax);
    }
    let minutes_and_seconds = parts.len() == 2 && parts[1].fraction != 0.0;
    let units: &[i64] = if minutes_and_seconds {
        &[60, 1]
    } else {
        &[3_600, 60, 1]
    };
    for (index, (part, seconds)) in parts.iter().zip(units).enumerate() {
        let limit = if seconds * 60 <= 60 { 60 } else { 59 };
        if index > 0 && part.whole > limit {
            return Err(Fault::FieldRange);
        }
        builder.add(*part, Unit::Microseconds(seconds * MICROSECONDS_PER_SECOND))?;
    }
    Ok(())
}

/// The amount that begins the text, of ISO 8601.
fn take_iso_amount(rest: &mut &str) -> Read<Amount> {
    let negative = rest.starts_with('-');
    *rest = rest.strip_prefix('-').unwrap_or(rest);
    take_amount(rest, negative)
}

/// ISO 8601 after the `P`: with designators (`1Y2M3DT4H5M6S`, `2W`), or in the alternative format
/// (`0001-02-03T04:05:06`, `00010203T040506`).
fn read_iso(text: &str) -> Read<Interval> {
    let mut builder = Builder::default();
    let mut rest = text;
    let mut in_time = false;
    // Whether there was a field since the `P` or the `T`.
    let mut has_field = false;
    if text.is_empty() {
        return Err(Fault::Syntax);
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (in_time, has_field) = (true, false);
            rest = after;
            continue;
        }
        let digits = rest.trim_start_matches('-');
        let width = digits.bytes().take_while(u8::is_ascii_digit).count();
        let amount = take_iso_amount(&mut rest)?;
        let unit = match (rest.bytes().next(), in_time) {
            (Some(b'Y'), false) => Unit::Months(12),
            (Some(b'M'), false) => Unit::Months(1),
            (Some(b'W'), false) => Unit::Days(7),
            (Some(b'D'), false) => Unit::Days(1),
            (Some(b'H'), true) => HOURS,
            (Some(b'M'), true) => MINUTES,
            (Some(b'S'), true) => SECONDS,
            (None | Some(b'T' | b'-' | b':'), _) if !has_field => {
                let (units, mark, is_basic) = match in_time {
                    false => (
                        [Unit::Months(12), Unit::Months(1), Unit::Days(1)],
                        '-',
                        width == 8,
                    ),
                    true => ([HOURS, MINUTES, SECONDS], ':', width == 6),
                };
                match is_basic && !rest.starts_with(mark) {
                    true => builder.add_basic(amount, units)?,
                    false => read_extended(amount, &mut rest, units, mark, &mut builder)?,
                }
                let goes_on = !in_time && rest.starts_with('T');
                if !rest.is_empty() && !goes_on {
                    return Err(Fault::Syntax);
                }
                continue;
            }
            _ => return Err(Fault::Syntax),
        };
        rest = &rest[1..];
        has_field = true;
        builder.add(amount, unit)?;
    }
    builder.finish(false)
}

/// The rest of `0001-02-03` or `04:05:06`, whose amounts stand between `mark`s.
fn read_extended(
    first: Amount,
    rest: &mut &str,
    units: [Unit; 3],
    mark: char,
    builder: &mut Builder,
) -> Read<()> {
    let [first_unit, others @ ..] = units;
    builder.add(first, first_unit)?;
    for unit in others {
        let Some(after) = rest.strip_prefix(mark) else {
            break;
        };
        *rest = after;
        let amount = take_iso_amount(rest)?;
        builder.add(amount, unit)?;
    }
    Ok(())
}

/// Reads an INTERVAL in PostgreSQL's, SQL's (`1-2`) or ISO 8601's (`P1DT2H`) notation.
///
/// # Errors
/// 22007 for what is no interval, 22015 for a field out of range.
pub fn parse_interval(text: &str) -> Result<Interval> {
    read_interval(text).map_err(|fault| match fault {
        Fault::Syntax => Error::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{text}\""),
        ),
        Fault::Range => interval_out_of_range(),
        Fault::FieldRange => Error::new(
            SqlState::INTERVAL_FIELD_OVERFLOW,
            format!("interval field value out of range: \"{text}\""),
        ),
    })
}
