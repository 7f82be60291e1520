//! Dates, timestamps and intervals.

use kiln_platform::time::wall_clock_us;
use kiln_procedure::ir::{Arithmetic, ScalarFunction};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::datetime::{self, Field, MICROSECONDS_PER_SECOND, Part, Zone};
use kiln_storage::types::{DataType, Interval, Number, Style};

use super::cast::strict;
use super::{Named, Ty, check_length, int4, signatures};

/// Seconds from 1970-01-01 to 2000-01-01.
const UNIX_EPOCH_SECONDS: i64 = datetime::UNIX_EPOCH_DAYS * 86_400;

/// The wall clock as a TIMESTAMPTZ.
pub(super) const CLOCK: ScalarFunction = {
    fn function(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
        Ok(timestamp(wall_clock_us()))
    }
    function
};

/// When the server began, as a TIMESTAMPTZ.
pub(super) fn started(_: &mut Heap, _: &[Slot]) -> Result<Slot> {
    Ok(timestamp(crate::server::started_us()))
}

/// The time at which the transaction began, as a TIMESTAMPTZ.
pub(super) const TRANSACTION_CLOCK: ScalarFunction = {
    fn function(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
        let began_us = heap.transaction_began_us;
        Ok(timestamp(began_us.unwrap_or_else(wall_clock_us)))
    }
    function
};

/// The style of the session that calls, as [`Style::bytes_of`] has it.
pub(super) const STYLE: ScalarFunction = {
    fn function(heap: &mut Heap, _: &[Slot]) -> Result<Slot> {
        let style = heap.style().cloned();
        if style.as_deref() == Some(Style::REFUSED) {
            let message =
                "a definition that depends on the time zone is not supported in this zone";
            let error = Error::unsupported(message);
            return Err(error.with_hint("SET timezone = 'UTC' and extra_float_digits = 1 for it."));
        }
        Ok(heap.push_bytes(style.as_deref().unwrap_or_default()))
    }
    function
};

/// The zone of a style.
pub(super) fn zone_of(heap: &Heap, style: Slot) -> Zone {
    Style::read(heap.bytes(style)).zone
}

/// Whether a builtin is given the session's style behind its arguments.
pub(in super::super) fn reads_style(name: &str, arguments: &[Ty]) -> bool {
    matches!(
        (name, arguments),
        ("date_part" | "date_trunc", [_, Ty::TimestampTz])
            | ("to_char" | "age", [Ty::TimestampTz, _])
            | ("to_timestamp", [Ty::Text, Ty::Text])
    )
}

/// Microseconds since 1970 as a TIMESTAMPTZ, which counts from 2000.
fn timestamp(unix_us: i64) -> Slot {
    Slot::from_i64(unix_us - UNIX_EPOCH_SECONDS * MICROSECONDS_PER_SECOND)
}

fn days(slot: Slot) -> i32 {
    slot.as_i64() as i32
}

fn date(days: i32) -> Slot {
    Slot::from_i64(i64::from(days))
}

fn push(heap: &mut Heap, interval: Interval) -> Result<Slot> {
    Ok(heap.push_interval(interval))
}

fn field_of(heap: &Heap, name: Slot, type_name: &str) -> Result<Field> {
    Field::parse(heap.str(name), type_name)
}

fn as_double(value: kiln_storage::types::Decimal) -> Slot {
    Slot::from_f64(value.to_f64())
}

/// A part as a NUMERIC.
fn as_numeric(heap: &mut Heap, part: Option<Part>) -> Slot {
    match part {
        None => Slot::NULL,
        Some(Part::Finite(value)) => Slot::from_decimal(value),
        Some(Part::Infinity) => heap.push_number(&Number::Infinity),
        Some(Part::NegativeInfinity) => heap.push_number(&Number::NegativeInfinity),
    }
}

fn part_as_double(part: Option<Part>) -> Slot {
    match part {
        None => Slot::NULL,
        Some(Part::Finite(value)) => as_double(value),
        Some(Part::Infinity) => Slot::from_f64(f64::INFINITY),
        Some(Part::NegativeInfinity) => Slot::from_f64(f64::NEG_INFINITY),
    }
}

/// A timestamp that is the beginning of its spans, whatever these are.
fn is_infinite(timestamp: Slot) -> bool {
    matches!(timestamp.as_i64(), i64::MIN | i64::MAX)
}

const DATE: &str = "date";
const TIMESTAMP: &str = "timestamp without time zone";
const TIMESTAMPTZ: &str = "timestamp with time zone";
const INTERVAL: &str = "interval";
const TIME: &str = "time without time zone";

strict! {
    DATE_PLUS_DAYS = "date_pl", |heap, left, right| {
        Ok(date(datetime::date_add_days(days(left), right.as_i64())?))
    };
    DAYS_PLUS_DATE = "date_pl", |heap, left, right| {
        Ok(date(datetime::date_add_days(days(right), left.as_i64())?))
    };
    DATE_MINUS_DAYS = "date_mi", |heap, left, right| {
        Ok(date(datetime::date_add_days(days(left), -right.as_i64())?))
    };
    DATE_MINUS_DATE = "date_mi", |heap, left, right| {
        Ok(date(datetime::date_difference(days(left), days(right))?))
    };
    DATE_PLUS_INTERVAL = "date_pl_interval", |heap, left, right| {
        datetime::date_add_interval(days(left), heap.interval(right)).map(Slot::from_i64)
    };
    INTERVAL_PLUS_DATE = "date_pl_interval", |heap, left, right| {
        datetime::date_add_interval(days(right), heap.interval(left)).map(Slot::from_i64)
    };
    DATE_MINUS_INTERVAL = "date_mi_interval", |heap, left, right| {
        let interval = heap.interval(right).try_neg()?;
        datetime::date_add_interval(days(left), interval).map(Slot::from_i64)
    };
    TIMESTAMP_PLUS_INTERVAL = "timestamp_pl_interval", |heap, left, right| {
        datetime::timestamp_add_interval(left.as_i64(), heap.interval(right)).map(Slot::from_i64)
    };
    INTERVAL_PLUS_TIMESTAMP = "timestamp_pl_interval", |heap, left, right| {
        datetime::timestamp_add_interval(right.as_i64(), heap.interval(left)).map(Slot::from_i64)
    };
    TIMESTAMP_MINUS_INTERVAL = "timestamp_mi_interval", |heap, left, right| {
        datetime::timestamp_sub_interval(left.as_i64(), heap.interval(right)).map(Slot::from_i64)
    };
    TIMESTAMPTZ_PLUS_INTERVAL = "timestamptz_pl_interval", |heap, left, right, style| {
        let (zone, interval) = (zone_of(heap, style), heap.interval(right));
        datetime::timestamptz_add_interval(left.as_i64(), interval, &zone).map(Slot::from_i64)
    };
    INTERVAL_PLUS_TIMESTAMPTZ = "interval_pl_timestamptz", |heap, left, right, style| {
        let (zone, interval) = (zone_of(heap, style), heap.interval(left));
        datetime::timestamptz_add_interval(right.as_i64(), interval, &zone).map(Slot::from_i64)
    };
    TIMESTAMPTZ_MINUS_INTERVAL = "timestamptz_mi_interval", |heap, left, right, style| {
        let (zone, interval) = (zone_of(heap, style), heap.interval(right).try_neg()?);
        datetime::timestamptz_add_interval(left.as_i64(), interval, &zone).map(Slot::from_i64)
    };
    TIMESTAMP_MINUS_TIMESTAMP = "timestamp_mi", |heap, left, right| {
        let interval = datetime::timestamp_difference(left.as_i64(), right.as_i64())?;
        push(heap, interval)
    };
    INTERVAL_PLUS = "interval_pl", |heap, left, right| {
        let interval = heap.interval(left).try_add(heap.interval(right))?;
        push(heap, interval)
    };
    INTERVAL_MINUS = "interval_mi", |heap, left, right| {
        let interval = heap.interval(left).try_sub(heap.interval(right))?;
        push(heap, interval)
    };
    INTERVAL_TIMES = "interval_mul", |heap, left, right| {
        let interval = heap.interval(left).try_mul(right.as_f64())?;
        push(heap, interval)
    };
    TIMES_INTERVAL = "interval_mul", |heap, left, right| {
        let interval = heap.interval(right).try_mul(left.as_f64())?;
        push(heap, interval)
    };
    INTERVAL_DIVIDE = "interval_div", |heap, left, right| {
        let interval = heap.interval(left).try_div(right.as_f64())?;
        push(heap, interval)
    };
    INTERVAL_NEGATE = "interval_um", |heap, value| {
        let interval = heap.interval(value).try_neg()?;
        push(heap, interval)
    };

    TIME_PLUS_INTERVAL = "time_pl_interval", |heap, left, right| {
        let time = datetime::time_add_interval(left.as_i64(), heap.interval(right));
        Ok(Slot::from_i64(time))
    };
    INTERVAL_PLUS_TIME = "interval_pl_time", |heap, left, right| {
        let time = datetime::time_add_interval(right.as_i64(), heap.interval(left));
        Ok(Slot::from_i64(time))
    };
    TIME_MINUS_INTERVAL = "time_mi_interval", |heap, left, right| {
        let time = datetime::time_sub_interval(left.as_i64(), heap.interval(right));
        Ok(Slot::from_i64(time))
    };
    TIME_MINUS_TIME = "time_mi_time", |heap, left, right| {
        push(heap, datetime::time_difference(left.as_i64(), right.as_i64()))
    };
    DATE_PLUS_TIME = "datetime_pl", |heap, left, right| {
        let time = Interval::new(0, 0, right.as_i64());
        datetime::date_add_interval(days(left), time).map(Slot::from_i64)
    };
    TIME_PLUS_DATE = "timedate_pl", |heap, left, right| {
        let time = Interval::new(0, 0, left.as_i64());
        datetime::date_add_interval(days(right), time).map(Slot::from_i64)
    };
    EXTRACT_TIME = "extract", |heap, field, value| {
        let field = field_of(heap, field, TIME)?;
        Ok(Slot::from_decimal(datetime::extract_from_time(field, value.as_i64())?))
    };
    PART_TIME = "date_part", |heap, field, value| {
        let field = field_of(heap, field, TIME)?;
        Ok(as_double(datetime::extract_from_time(field, value.as_i64())?))
    };
    MAKE_TIME = "make_time", |heap, hour, minute, second| {
        datetime::make_time(int4(hour), int4(minute), second.as_f64()).map(Slot::from_i64)
    };

    EXTRACT_DATE = "extract", |heap, field, value| {
        let field = field_of(heap, field, DATE)?;
        let part = datetime::extract_from_date(field, days(value))?;
        Ok(as_numeric(heap, part))
    };
    EXTRACT_TIMESTAMP = "extract", |heap, field, value| {
        let field = field_of(heap, field, TIMESTAMP)?;
        let part = datetime::extract_from_timestamp(field, value.as_i64())?;
        Ok(as_numeric(heap, part))
    };
    EXTRACT_TIMESTAMPTZ = "extract", |heap, field, value, style| {
        let (field, zone) = (field_of(heap, field, TIMESTAMPTZ)?, zone_of(heap, style));
        let part = datetime::extract_from_timestamptz(field, value.as_i64(), &zone)?;
        Ok(as_numeric(heap, part))
    };
    EXTRACT_INTERVAL = "extract", |heap, field, value| {
        let field = field_of(heap, field, INTERVAL)?;
        Ok(Slot::from_decimal(datetime::extract_from_interval(field, heap.interval(value))?))
    };
    // Of the timestamp that the date is.
    PART_DATE = "date_part", |heap, field, value| {
        let field = field_of(heap, field, TIMESTAMP)?;
        let timestamp = datetime::date_to_timestamp(days(value))?;
        Ok(part_as_double(datetime::extract_from_timestamp(field, timestamp)?))
    };
    PART_TIMESTAMP = "date_part", |heap, field, value| {
        let field = field_of(heap, field, TIMESTAMP)?;
        Ok(part_as_double(datetime::extract_from_timestamp(field, value.as_i64())?))
    };
    PART_TIMESTAMPTZ = "date_part", |heap, field, value, style| {
        let (field, zone) = (field_of(heap, field, TIMESTAMPTZ)?, zone_of(heap, style));
        Ok(part_as_double(datetime::extract_from_timestamptz(field, value.as_i64(), &zone)?))
    };
    PART_INTERVAL = "date_part", |heap, field, value| {
        let field = field_of(heap, field, INTERVAL)?;
        Ok(as_double(datetime::extract_from_interval(field, heap.interval(value))?))
    };
    TRUNC_TIMESTAMP = "date_trunc", |heap, field, value| {
        if is_infinite(value) {
            return Ok(value);
        }
        let field = field_of(heap, field, TIMESTAMP)?;
        datetime::date_trunc(field, value.as_i64()).map(Slot::from_i64)
    };
    TRUNC_TIMESTAMPTZ = "date_trunc", |heap, field, value, style| {
        if is_infinite(value) {
            return Ok(value);
        }
        let (field, zone) = (field_of(heap, field, TIMESTAMPTZ)?, zone_of(heap, style));
        datetime::date_trunc_in(field, value.as_i64(), &zone).map(Slot::from_i64)
    };
    TRUNC_IN_ZONE = "date_trunc", |heap, field, value, zone| {
        if is_infinite(value) {
            return Ok(value);
        }
        let (field, zone) = (
            field_of(heap, field, TIMESTAMPTZ)?,
            datetime::zone(heap.str(zone))?,
        );
        datetime::date_trunc_in(field, value.as_i64(), &zone).map(Slot::from_i64)
    };
    TRUNC_INTERVAL = "date_trunc", |heap, field, value| {
        let field = field_of(heap, field, INTERVAL)?;
        let interval = datetime::date_trunc_interval(field, heap.interval(value))?;
        push(heap, interval)
    };
    MAKE_DATE = "make_date", |heap, year, month, day| {
        Ok(date(datetime::make_date(int4(year), int4(month), int4(day))?))
    };
    MAKE_TIMESTAMP = "make_timestamp", |heap, year, month, day, hour, minute, second| {
        datetime::make_timestamp(
            int4(year), int4(month), int4(day), int4(hour), int4(minute), second.as_f64(),
        )
        .map(Slot::from_i64)
    };
    TO_DATE = "to_date", |heap, text, template| {
        Ok(date(datetime::to_date(heap.str(text), heap.str(template))?))
    };
    TO_TIMESTAMP_BY_TEMPLATE = "to_timestamp", |heap, text, template, style| {
        let zone = zone_of(heap, style);
        datetime::to_timestamp(heap.str(text), heap.str(template), &zone).map(Slot::from_i64)
    };
    DATE_BIN = "date_bin", |heap, stride, value, origin| {
        let (value, origin) = (value.as_i64(), origin.as_i64());
        datetime::date_bin(heap.interval(stride), value, origin).map(Slot::from_i64)
    };
    TIMESTAMP_AT_ZONE = "timezone", |heap, zone, value| {
        datetime::timestamp_at_zone(value.as_i64(), heap.str(zone)).map(Slot::from_i64)
    };
    MOMENT_IN_ZONE = "make_timestamptz", |heap, zone, value| {
        datetime::moment_in_zone(value.as_i64(), heap.str(zone)).map(Slot::from_i64)
    };
    TIMESTAMPTZ_AT_ZONE = "timezone", |heap, zone, value| {
        datetime::timestamptz_at_zone(value.as_i64(), heap.str(zone)).map(Slot::from_i64)
    };
    TIMESTAMP_AT_INTERVAL = "timezone", |heap, zone, value| {
        datetime::shift_by_zone(value.as_i64(), heap.interval(zone), true).map(Slot::from_i64)
    };
    TIMESTAMPTZ_AT_INTERVAL = "timezone", |heap, zone, value| {
        datetime::shift_by_zone(value.as_i64(), heap.interval(zone), false).map(Slot::from_i64)
    };
    AGE = "age", |heap, left, right| {
        let interval = datetime::age(left.as_i64(), right.as_i64())?;
        push(heap, interval)
    };
    AGE_TIMESTAMPTZ = "age", |heap, left, right, style| {
        let zone = zone_of(heap, style);
        let interval = datetime::timestamptz_age(left.as_i64(), right.as_i64(), &zone)?;
        push(heap, interval)
    };
    JUSTIFY_HOURS = "justify_hours", |heap, interval| {
        let justified = heap.interval(interval).justify_hours()?;
        push(heap, justified)
    };
    JUSTIFY_DAYS = "justify_days", |heap, interval| {
        let justified = heap.interval(interval).justify_days()?;
        push(heap, justified)
    };
    JUSTIFY_INTERVAL = "justify_interval", |heap, interval| {
        let justified = heap.interval(interval).justify()?;
        push(heap, justified)
    };
    TO_TIMESTAMP = "to_timestamp", |heap, seconds| {
        if seconds.as_f64().is_infinite() {
            let is_past = seconds.as_f64() < 0.0;
            return Ok(Slot::from_i64(if is_past { i64::MIN } else { i64::MAX }));
        }
        let seconds = seconds.as_f64() - UNIX_EPOCH_SECONDS as f64;
        let microseconds = seconds * MICROSECONDS_PER_SECOND as f64;
        if !microseconds.is_finite() || microseconds.abs() > 9.2e18 {
            return Err(Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
        }
        Ok(Slot::from_i64(microseconds.round_ties_even() as i64))
    };
    TO_CHAR_TIMESTAMP = "to_char", |heap, value, template| {
        let Some(text) = datetime::to_char(value.as_i64(), heap.str(template)) else {
            return Ok(Slot::NULL);
        };
        check_length(text.len())?;
        Ok(heap.push_str(&text))
    };
    TO_CHAR_TIMESTAMPTZ = "to_char", |heap, value, template, style| {
        let style = Style::read(heap.bytes(style));
        let text = datetime::timestamptz_to_char(value.as_i64(), heap.str(template), &style);
        let Some(text) = text else {
            return Ok(Slot::NULL);
        };
        check_length(text.len())?;
        Ok(heap.push_str(&text))
    };
    TO_CHAR_INTERVAL = "to_char", |heap, value, template| {
        let text = datetime::interval_to_char(heap.interval(value), heap.str(template))?;
        check_length(text.len())?;
        Ok(heap.push_str(&text))
    };
    IS_FINITE_DATE = "isfinite", |heap, value| {
        Ok(Slot::from_bool(!matches!(days(value), i32::MIN | i32::MAX)))
    };
    IS_FINITE_TIMESTAMP = "isfinite", |heap, value| {
        Ok(Slot::from_bool(!is_infinite(value)))
    };
    IS_FINITE_INTERVAL = "isfinite", |heap, _value| {
        Ok(Slot::from_bool(true))
    };
}

/// The parts of an interval, of which the last ones may be missing.
const MAKE_INTERVAL: Named = ("make_interval", {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        if arguments.iter().any(|argument| argument.is_null()) {
            return Ok(Slot::NULL);
        }
        let mut parts = [0; 6];
        for (part, argument) in parts.iter_mut().zip(arguments) {
            *part = int4(*argument);
        }
        let seconds = arguments.get(6).map_or(0.0, |seconds| seconds.as_f64());
        let interval = datetime::make_interval(parts, seconds)?;
        push(heap, interval)
    }
    function
});

/// What an operator on dates and the like needs: the types that its operands are converted to,
/// the function, and the result's type. That of an interval and a TIMESTAMPTZ is given the
/// session's style as well.
pub(in super::super) type Pairing = (DataType, DataType, Named, DataType);

/// The arithmetic operator on these types, one of which is a date, a timestamp or an interval.
pub(in super::super) fn date_operator(
    operator: Arithmetic,
    left: &DataType,
    right: &DataType,
) -> Option<Pairing> {
    use Arithmetic::{Add, Divide, Multiply, Subtract};
    use DataType::{Date, Double, Integer, Interval, SmallInt, Time, Timestamp, TimestampTz};
    const TIME: DataType = DataType::TIME;
    const INTERVAL: DataType = DataType::INTERVAL;
    const TIMESTAMP: DataType = DataType::TIMESTAMP;
    let (left, right) = (&left.without_modifier(), &right.without_modifier());
    let pairing = |left: &DataType, right: &DataType, named, result: &DataType| {
        Some((left.clone(), right.clone(), named, result.clone()))
    };
    match (operator, left, right) {
        (Add, Date, Integer | SmallInt) => pairing(&Date, &Integer, DATE_PLUS_DAYS, &Date),
        (Add, Integer | SmallInt, Date) => pairing(&Integer, &Date, DAYS_PLUS_DATE, &Date),
        (Subtract, Date, Integer | SmallInt) => pairing(&Date, &Integer, DATE_MINUS_DAYS, &Date),
        (Subtract, Date, Date) => pairing(&Date, &Date, DATE_MINUS_DATE, &Integer),
        (Add, Date, Interval(_)) => pairing(&Date, &INTERVAL, DATE_PLUS_INTERVAL, &TIMESTAMP),
        (Add, Interval(_), Date) => pairing(&INTERVAL, &Date, INTERVAL_PLUS_DATE, &TIMESTAMP),
        (Subtract, Date, Interval(_)) => pairing(&Date, &INTERVAL, DATE_MINUS_INTERVAL, &TIMESTAMP),
        (Add, Date, Time(_)) => pairing(&Date, &TIME, DATE_PLUS_TIME, &TIMESTAMP),
        (Add, Time(_), Date) => pairing(&TIME, &Date, TIME_PLUS_DATE, &TIMESTAMP),
        (Add, Time(_), Interval(_)) => pairing(&TIME, &INTERVAL, TIME_PLUS_INTERVAL, &TIME),
        (Add, Interval(_), Time(_)) => pairing(&INTERVAL, &TIME, INTERVAL_PLUS_TIME, &TIME),
        (Subtract, Time(_), Interval(_)) => pairing(&TIME, &INTERVAL, TIME_MINUS_INTERVAL, &TIME),
        (Subtract, Time(_), Time(_)) => pairing(&TIME, &TIME, TIME_MINUS_TIME, &INTERVAL),
        // Beside anything else it is an interval.
        (_, Time(_), other) if *other != TIME => date_operator(operator, &INTERVAL, other)
            .map(|(_, right, named, result)| (INTERVAL, right, named, result)),
        (_, other, Time(_)) if *other != TIME => date_operator(operator, other, &INTERVAL)
            .map(|(left, _, named, result)| (left, INTERVAL, named, result)),
        (Add, Timestamp(_), Interval(_)) => pairing(left, &INTERVAL, TIMESTAMP_PLUS_INTERVAL, left),
        (Add, Interval(_), Timestamp(_)) => {
            pairing(&INTERVAL, right, INTERVAL_PLUS_TIMESTAMP, right)
        }
        (Subtract, Timestamp(_), Interval(_)) => {
            pairing(left, &INTERVAL, TIMESTAMP_MINUS_INTERVAL, left)
        }
        (Add, TimestampTz(_), Interval(_)) => {
            pairing(left, &INTERVAL, TIMESTAMPTZ_PLUS_INTERVAL, left)
        }
        (Add, Interval(_), TimestampTz(_)) => {
            pairing(&INTERVAL, right, INTERVAL_PLUS_TIMESTAMPTZ, right)
        }
        (Subtract, TimestampTz(_), Interval(_)) => {
            pairing(left, &INTERVAL, TIMESTAMPTZ_MINUS_INTERVAL, left)
        }
        (Subtract, Timestamp(_) | TimestampTz(_) | Date, Timestamp(_) | TimestampTz(_) | Date) => {
            let has_zone = [left, right].contains(&&DataType::TIMESTAMPTZ);
            let common = match has_zone {
                true => DataType::TIMESTAMPTZ,
                false => TIMESTAMP,
            };
            pairing(&common, &common, TIMESTAMP_MINUS_TIMESTAMP, &INTERVAL)
        }
        (Add, Interval(_), Interval(_)) => pairing(&INTERVAL, &INTERVAL, INTERVAL_PLUS, &INTERVAL),
        (Subtract, Interval(_), Interval(_)) => {
            pairing(&INTERVAL, &INTERVAL, INTERVAL_MINUS, &INTERVAL)
        }
        (Multiply, Interval(_), number) if number.is_number() => {
            pairing(&INTERVAL, &Double, INTERVAL_TIMES, &INTERVAL)
        }
        (Multiply, number, Interval(_)) if number.is_number() => {
            pairing(&Double, &INTERVAL, TIMES_INTERVAL, &INTERVAL)
        }
        (Divide, Interval(_), number) if number.is_number() => {
            pairing(&INTERVAL, &Double, INTERVAL_DIVIDE, &INTERVAL)
        }
        _ => None,
    }
}

/// The function behind EXTRACT for a type, and behind the minus sign of an interval.
pub(in super::super) fn extract(data_type: &DataType) -> Option<Named> {
    Some(match data_type {
        DataType::Date => EXTRACT_DATE,
        DataType::Timestamp(_) => EXTRACT_TIMESTAMP,
        DataType::TimestampTz(_) => EXTRACT_TIMESTAMPTZ,
        DataType::Interval(_) => EXTRACT_INTERVAL,
        DataType::Time(_) => EXTRACT_TIME,
        _ => return None,
    })
}

/// The minus sign of an interval.
pub(in super::super) const fn interval_negate() -> Named {
    INTERVAL_NEGATE
}

signatures! {
    "date_part"(Text, Date) -> Double = PART_DATE;
    "date_part"(Text, Timestamp) -> Double = PART_TIMESTAMP;
    "date_part"(Text, TimestampTz) -> Double = PART_TIMESTAMPTZ;
    "date_part"(Text, Interval) -> Double = PART_INTERVAL;
    "date_part"(Text, Time) -> Double = PART_TIME;
    "date_trunc"(Text, Timestamp) -> Timestamp = TRUNC_TIMESTAMP;
    "date_trunc"(Text, TimestampTz) -> TimestampTz = TRUNC_TIMESTAMPTZ;
    "date_trunc"(Text, TimestampTz, Text) -> TimestampTz = TRUNC_IN_ZONE;
    "date_trunc"(Text, Interval) -> Interval = TRUNC_INTERVAL;
    "make_date"(Int4, Int4, Int4) -> Date = MAKE_DATE;
    "make_time"(Int4, Int4, Double) -> Time = MAKE_TIME;
    "make_timestamp"(Int4, Int4, Int4, Int4, Int4, Double) -> Timestamp = MAKE_TIMESTAMP;
    "make_interval"() -> Interval = MAKE_INTERVAL;
    "make_interval"(Int4) -> Interval = MAKE_INTERVAL;
    "make_interval"(Int4, Int4) -> Interval = MAKE_INTERVAL;
    "make_interval"(Int4, Int4, Int4) -> Interval = MAKE_INTERVAL;
    "make_interval"(Int4, Int4, Int4, Int4) -> Interval = MAKE_INTERVAL;
    "make_interval"(Int4, Int4, Int4, Int4, Int4) -> Interval = MAKE_INTERVAL;
    "make_interval"(Int4, Int4, Int4, Int4, Int4, Int4) -> Interval = MAKE_INTERVAL;
    "make_interval"(Int4, Int4, Int4, Int4, Int4, Int4, Double) -> Interval = MAKE_INTERVAL;
    "date_bin"(Interval, Timestamp, Timestamp) -> Timestamp = DATE_BIN;
    "date_bin"(Interval, TimestampTz, TimestampTz) -> TimestampTz = DATE_BIN;
    "timezone"(Text, Timestamp) -> TimestampTz = TIMESTAMP_AT_ZONE;
    "timezone"(Text, TimestampTz) -> Timestamp = TIMESTAMPTZ_AT_ZONE;
    "timezone"(Interval, Timestamp) -> TimestampTz = TIMESTAMP_AT_INTERVAL;
    "timezone"(Interval, TimestampTz) -> Timestamp = TIMESTAMPTZ_AT_INTERVAL;
    "to_date"(Text, Text) -> Date = TO_DATE;
    "to_timestamp"(Text, Text) -> TimestampTz = TO_TIMESTAMP_BY_TEMPLATE;
    "age"(Timestamp, Timestamp) -> Interval = AGE;
    "age"(TimestampTz, TimestampTz) -> Interval = AGE_TIMESTAMPTZ;
    "justify_hours"(Interval) -> Interval = JUSTIFY_HOURS;
    "justify_days"(Interval) -> Interval = JUSTIFY_DAYS;
    "justify_interval"(Interval) -> Interval = JUSTIFY_INTERVAL;
    "to_timestamp"(Double) -> TimestampTz = TO_TIMESTAMP;
    "to_char"(Timestamp, Text) -> Text = TO_CHAR_TIMESTAMP;
    "to_char"(TimestampTz, Text) -> Text = TO_CHAR_TIMESTAMPTZ;
    "to_char"(Interval, Text) -> Text = TO_CHAR_INTERVAL;
    "isfinite"(Date) -> Boolean = IS_FINITE_DATE;
    "isfinite"(Timestamp) -> Boolean = IS_FINITE_TIMESTAMP;
    "isfinite"(TimestampTz) -> Boolean = IS_FINITE_TIMESTAMP;
    "isfinite"(Interval) -> Boolean = IS_FINITE_INTERVAL;
}
