//! Builtins behind conversions between types.

use std::fmt::Write;

use kiln_procedure::frame::{push_value, to_value};
use kiln_procedure::ir::ScalarFunction;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::datetime::{
    date_as_timestamp, date_to_timestamp, format_date, format_time, format_timestamp,
    format_timestamptz_in, interval_to_time, parse_date, parse_interval, parse_time,
    parse_timestamp, parse_timestamptz_in, round_seconds, timestamp_to_date, timestamp_to_time,
};
use kiln_storage::types::double::{format_double_in, format_real_in, narrowed, parse_double};
use kiln_storage::types::text::{format_bytea, format_uuid, parse_bytea, parse_uuid};
use kiln_storage::types::{
    CatalogType, DataType, Decimal, Interval, Number, ObjectName, Style, Value, format_value,
    parse_numeric,
};

use super::datetime::zone_of;

/// A builtin's name and function.
pub(crate) type Named = (&'static str, ScalarFunction);

/// Declares strict builtins: NULL for a NULL argument.
macro_rules! strict {
    ($($(#[$meta:meta])* $constant:ident = $name:literal, |$heap:ident, $($argument:ident),+| $body:expr;)*) => {
        $($(#[$meta])* pub(crate) const $constant: $crate::compile::functions::Named = ($name, {
            fn function(
                $heap: &mut kiln_storage::slot::Heap,
                arguments: &[kiln_storage::slot::Slot],
            ) -> kiln_storage::error::Result<kiln_storage::slot::Slot> {
                let [$($argument),+] = arguments else {
                    return Err(kiln_storage::error::Error::internal(concat!(
                        "wrong number of arguments for ",
                        $name
                    )));
                };
                if $($argument.is_null())||+ {
                    return Ok(kiln_storage::slot::Slot::NULL);
                }
                let ($($argument,)+) = ($(*$argument,)+);
                let _ = &$heap;
                $body
            }
            function
        });)*
    };
}
pub(crate) use strict;

/// The double that is nearest to a NUMERIC.
fn to_double(heap: &Heap, value: Slot) -> Result<f64> {
    match value.is_long() {
        false => Ok(value.as_decimal().to_f64()),
        true => heap.number(value).to_f64(),
    }
}

strict! {
    DECIMAL_TO_SMALLINT = "int2", |heap, value| {
        let number = heap.number(value).to_i16()?;
        Ok(Slot::from_i64(number.into()))
    };
    DECIMAL_TO_INTEGER = "int4", |heap, value| {
        let number = heap.number(value).to_i32()?;
        Ok(Slot::from_i64(number.into()))
    };
    DECIMAL_TO_BIGINT = "int8", |heap, value| Ok(Slot::from_i64(heap.number(value).to_i64()?));
    DECIMAL_TO_DOUBLE = "float8", |heap, value| Ok(Slot::from_f64(to_double(heap, value)?));
    DOUBLE_TO_SMALLINT = "int2", |heap, value| {
        double_to_integer(value.as_f64(), "smallint", i64::from(i16::MIN), i64::from(i16::MAX))
    };
    DOUBLE_TO_INTEGER = "int4", |heap, value| {
        double_to_integer(value.as_f64(), "integer", i64::from(i32::MIN), i64::from(i32::MAX))
    };
    DOUBLE_TO_BIGINT = "int8", |heap, value| {
        double_to_integer(value.as_f64(), "bigint", i64::MIN, i64::MAX)
    };
    DOUBLE_TO_DECIMAL = "numeric", |heap, value| {
        Ok(heap.push_number(&Number::from_f64(value.as_f64())?))
    };
    BOOLEAN_TO_INTEGER = "int4", |heap, value| Ok(Slot::from_i64(i64::from(value.as_bool())));
    DATE_TO_TIMESTAMP = "timestamp", |heap, value| {
        Ok(Slot::from_i64(date_to_timestamp(value.as_i64() as i32)?))
    };
    TIMESTAMP_TO_DATE = "date", |heap, value| {
        Ok(Slot::from_i64(i64::from(timestamp_to_date(value.as_i64()))))
    };

    INTEGER_TO_TEXT = "text", |heap, value| {
        heap.build_bytes(|out| write_integer(out, value.as_i64()))
    };
    DECIMAL_TO_TEXT = "text", |heap, value| {
        let mut text = String::new();
        match value.is_long() {
            false => value.as_decimal().write_to(&mut text),
            true => heap.number(value).write_to(&mut text),
        }
        Ok(heap.push_str(&text))
    };
    DOUBLE_TO_TEXT = "text", |heap, value, style| {
        let digits = Style::read(heap.bytes(style)).float_digits;
        Ok(heap.push_str(&format_double_in(value.as_f64(), digits)))
    };
    BOOLEAN_TO_TEXT = "text", |heap, value| {
        Ok(heap.push_str(if value.as_bool() { "true" } else { "false" }))
    };
    BOOLEAN_TO_LETTER = "boolout", |heap, value| {
        Ok(heap.push_str(if value.as_bool() { "t" } else { "f" }))
    };
    DATE_TO_TEXT = "text", |heap, value| {
        Ok(heap.push_str(&format_date(value.as_i64() as i32)))
    };
    TIMESTAMP_TO_TEXT = "text", |heap, value| {
        Ok(heap.push_str(&format_timestamp(value.as_i64())))
    };
    TIMESTAMPTZ_TO_TEXT = "text", |heap, value, style| {
        let zone = zone_of(heap, style);
        Ok(heap.push_str(&format_timestamptz_in(value.as_i64(), &zone)))
    };
    UUID_TO_TEXT = "text", |heap, value| {
        let mut uuid = [0; 16];
        uuid.copy_from_slice(heap.bytes(value));
        Ok(heap.push_str(&format_uuid(&uuid)))
    };
    BYTEA_TO_TEXT = "text", |heap, value| {
        super::check_length(heap.bytes(value).len().saturating_mul(2))?;
        let text = format_bytea(heap.bytes(value));
        Ok(heap.push_str(&text))
    };
    INTERVAL_TO_TEXT = "text", |heap, value| {
        let text = heap.interval(value).to_string();
        Ok(heap.push_str(&text))
    };
    INTEGERS_TO_TEXT = "array_out", |heap, value| array_text(heap, value, &DataType::BigInt);
    DECIMALS_TO_TEXT = "array_out", |heap, value| array_text(heap, value, &DataType::NUMERIC);
    BOOLEANS_TO_TEXT = "array_out", |heap, value| array_text(heap, value, &DataType::Boolean);
    TEXTS_TO_TEXT = "array_out", |heap, value| array_text(heap, value, &DataType::Text);
    DATES_TO_TEXT = "array_out", |heap, value| array_text(heap, value, &DataType::Date);
    TIMESTAMPS_TO_TEXT = "array_out", |heap, value| array_text(heap, value, &DataType::TIMESTAMP);

    TEXT_TO_SMALLINT = "int2", |heap, text| {
        parse_integer(heap.str(text), "smallint", i64::from(i16::MAX)).map(Slot::from_i64)
    };
    TEXT_TO_INTEGER = "int4", |heap, text| {
        parse_integer(heap.str(text), "integer", i64::from(i32::MAX)).map(Slot::from_i64)
    };
    TEXT_TO_BIGINT = "int8", |heap, text| {
        parse_integer(heap.str(text), "bigint", i64::MAX).map(Slot::from_i64)
    };
    TEXT_TO_DECIMAL = "numeric", |heap, text| {
        let value = parse_numeric(heap.str(text))?;
        Ok(push_value(heap, &value))
    };
    TEXT_TO_DOUBLE = "float8", |heap, text| Ok(Slot::from_f64(parse_double(heap.str(text))?));
    TEXT_TO_BOOLEAN = "bool", |heap, text| Ok(Slot::from_bool(parse_boolean(heap.str(text))?));
    TEXT_TO_DATE = "date", |heap, text| {
        Ok(Slot::from_i64(i64::from(parse_date(heap.str(text))?)))
    };
    TEXT_TO_TIMESTAMP = "timestamp", |heap, text| {
        Ok(Slot::from_i64(parse_timestamp(heap.str(text))?))
    };
    TEXT_TO_TIMESTAMPTZ = "timestamptz", |heap, text, style| {
        let zone = zone_of(heap, style);
        Ok(Slot::from_i64(parse_timestamptz_in(heap.str(text), &zone)?))
    };
    TEXT_TO_UUID = "uuid", |heap, text| {
        let uuid = parse_uuid(heap.str(text))?;
        Ok(heap.push_bytes(&uuid))
    };
    TEXT_TO_BYTEA = "bytea", |heap, text| {
        let bytes = parse_bytea(heap.str(text))?;
        Ok(heap.push_bytes(&bytes))
    };
    TEXT_TO_INTERVAL = "interval", |heap, text| {
        let interval = parse_interval(heap.str(text))?;
        Ok(heap.push_interval(interval))
    };
    TEXT_TO_SMALLINTS = "array_in", |heap, text| text_array(heap, text, DataType::SmallInt);
    TEXT_TO_INTEGERS = "array_in", |heap, text| text_array(heap, text, DataType::Integer);
    TEXT_TO_BIGINTS = "array_in", |heap, text| text_array(heap, text, DataType::BigInt);
    TEXT_TO_DECIMALS = "array_in", |heap, text| text_array(heap, text, DataType::NUMERIC);
    TEXT_TO_DOUBLES = "array_in", |heap, text| text_array(heap, text, DataType::Double);
    TEXT_TO_BOOLEANS = "array_in", |heap, text| text_array(heap, text, DataType::Boolean);
    TEXT_TO_TEXTS = "array_in", |heap, text| text_array(heap, text, DataType::Text);

    INTEGER_TO_OID = "oid", |heap, number| {
        let number = number.as_i64();
        // An INTEGER below 0 stands for what has the same bits.
        let oid = u32::try_from(number).ok();
        let oid = oid.or_else(|| i32::try_from(number).ok().map(|number| number as u32));
        oid.map(|oid| Slot::from_i64(oid.into())).ok_or_else(|| Error::out_of_range("OID"))
    };
    OID_TO_INTEGER = "int4", |heap, oid| Ok(Slot::from_i64((oid.as_i64() as u32 as i32).into()));
    OBJECT_TO_TEXT = "text", |heap, object| {
        let object = ObjectName::from_bytes(heap.bytes(object));
        Ok(heap.push_str(&object.name))
    };
    REAL_TO_DECIMAL = "numeric", |heap, value| {
        // The digits that every REAL has.
        let number = value.as_f64();
        if !number.is_finite() {
            return Ok(heap.push_number(&Number::from_f64(number)?));
        }
        let digits = format!("{number:.5e}");
        let (digits, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        Ok(heap.push_number(&Number::parse(&format!("{digits}e{exponent}"))?))
    };
    ROUND_SECONDS = "timestamp", |_heap, at, digits| {
        let digits = u8::try_from(digits.as_i64()).ok();
        Ok(Slot::from_i64(round_seconds(at.as_i64(), digits)))
    };
    ROUND_INTERVAL = "interval", |heap, interval, digits| {
        let digits = u8::try_from(digits.as_i64()).ok();
        let rounded = heap.interval(interval).rounded(digits);
        Ok(heap.push_interval(rounded))
    };
    // What computes a text computes no other type: the value goes through this.
    TEXT_AS_IT_IS = "text", |heap, text| Ok(text);
    DECIMAL_TO_REAL = "float4", |heap, value| {
        let number = heap.number(value);
        let text = number.to_string();
        let narrow = text.parse::<f32>().unwrap_or(f32::NAN);
        let is_lost = narrow.is_infinite() || narrow == 0.0 && !number.is_zero();
        if is_lost && number.is_finite() {
            let message = format!("\"{text}\" is out of range for type real");
            return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        Ok(Slot::from_f64(narrow.into()))
    };
    DOUBLE_TO_REAL = "float4", |heap, number| {
        Ok(Slot::from_f64(narrowed(number.as_f64())?))
    };
    TEXT_TO_NAME = "name", |heap, text| {
        let kept = CatalogType::Name.fit(heap.str(text)).len();
        Ok(shortened(text, kept))
    };
    TEXT_TO_CHAR = "char", |heap, text| {
        let read = CatalogType::read_char(heap.str(text))?;
        Ok(heap.push_str(&read))
    };
    INTEGER_TO_CHAR = "char", |heap, number| {
        let Ok(byte) = i8::try_from(number.as_i64()) else {
            let message = "\"char\" out of range";
            return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        };
        let read = CatalogType::char_of(byte.cast_unsigned())?;
        Ok(heap.push_str(&read))
    };
    CHAR_TO_INTEGER = "int4", |heap, char| {
        let byte = heap.str(char).bytes().next().unwrap_or(0);
        Ok(Slot::from_i64(byte.into()))
    };
    REAL_TO_TEXT = "text", |heap, value, style| {
        let digits = Style::read(heap.bytes(style)).float_digits;
        Ok(heap.push_str(&format_real_in(value.as_f64(), digits)))
    };
    VECTOR_TO_TEXT = "text", |heap, value| formatted(heap, value, CatalogType::OidVector);
    OBJECTS_TO_TEXT = "array_out", |heap, value| {
        let object = DataType::Catalog(CatalogType::RegClass);
        formatted_as(heap, value, &DataType::array(object))
    };
    TEXT_TO_OID = "oid", |heap, text| parsed(heap, text, &DataType::OID);
    TEXT_TO_REAL = "float4", |heap, text| {
        parsed(heap, text, &DataType::Catalog(CatalogType::Real))
    };
    TEXT_TO_INT2VECTOR = "int2vector", |heap, text| {
        parsed(heap, text, &DataType::Catalog(CatalogType::Int2Vector))
    };
    TEXT_TO_OIDVECTOR = "oidvector", |heap, text| {
        parsed(heap, text, &DataType::Catalog(CatalogType::OidVector))
    };
    TEXT_TO_OIDS = "array_in", |heap, text| text_array(heap, text, DataType::OID);
    TEXT_TO_NAMES = "array_in", |heap, text| text_array(heap, text, DataType::NAME);

    INTEGERS_TO_DECIMALS = "numeric", |heap, array| {
        let elements: Vec<Slot> = heap
            .array(array)
            .iter()
            .map(|element| {
                if element.is_null() {
                    Slot::NULL
                } else {
                    Slot::from_decimal(Decimal::from_i64(element.as_i64()))
                }
            })
            .collect();
        Ok(heap.push_array(&elements))
    };
    NARROW_INTEGERS = "int4", |heap, array, limit| {
        let limit = limit.as_i64();
        let fits = |element: &Slot| {
            element.is_null() || (-limit - 1..=limit).contains(&element.as_i64())
        };
        if heap.array(array).iter().all(fits) {
            return Ok(array);
        }
        let short = limit == i64::from(i16::MAX);
        Err(Error::out_of_range(if short { "smallint" } else { "integer" }))
    };

    TIME_TO_TEXT = "text", |heap, value| Ok(heap.push_str(&format_time(value.as_i64())));
    TEXT_TO_TIME = "time", |heap, text| Ok(Slot::from_i64(parse_time(heap.str(text))?));
    // Beside a timestamp: what is later than all that are finite is no error.
    DATE_AS_TIMESTAMP = "timestamp", |heap, value| {
        Ok(Slot::from_i64(date_as_timestamp(value.as_i64() as i32)))
    };
    DATE_AS_TIMESTAMPTZ = "timestamptz", |heap, value, style| {
        let midnight = date_as_timestamp(value.as_i64() as i32);
        let moment = zone_of(heap, style).to_moment(midnight);
        // Its clocks may be past the ends of time where UTC's are not.
        let end = match midnight < 0 {
            true => i64::MIN + 1,
            false => i64::MAX - 1,
        };
        Ok(Slot::from_i64(moment.unwrap_or(end)))
    };
    DATE_TO_TIMESTAMPTZ = "timestamptz", |heap, value, style| {
        let midnight = date_to_timestamp(value.as_i64() as i32)?;
        zone_of(heap, style).to_moment(midnight).map(Slot::from_i64)
    };
    TIMESTAMP_TO_TIMESTAMPTZ = "timestamptz", |heap, value, style| {
        zone_of(heap, style).to_moment(value.as_i64()).map(Slot::from_i64)
    };
    TIMESTAMPTZ_TO_TIMESTAMP = "timestamp", |heap, value, style| {
        zone_of(heap, style).to_shown(value.as_i64()).map(Slot::from_i64)
    };
    TIMESTAMPTZ_TO_DATE = "date", |heap, value, style| {
        let shown = zone_of(heap, style).to_shown(value.as_i64())?;
        Ok(Slot::from_i64(i64::from(timestamp_to_date(shown))))
    };
    TIMESTAMPTZ_TO_TIME = "time", |heap, value, style| {
        let shown = zone_of(heap, style).to_shown(value.as_i64())?;
        Ok(timestamp_to_time(shown).map_or(Slot::NULL, Slot::from_i64))
    };
    TIMESTAMP_TO_TIME = "time", |heap, value| {
        Ok(timestamp_to_time(value.as_i64()).map_or(Slot::NULL, Slot::from_i64))
    };
    TIME_TO_INTERVAL = "interval", |heap, value| {
        Ok(heap.push_interval(Interval::new(0, 0, value.as_i64())))
    };
    INTERVAL_TO_TIME = "time", |heap, value| {
        Ok(Slot::from_i64(interval_to_time(heap.interval(value))))
    };

    PAD = "bpchar", |heap, text, length| {
        let missing = (length.as_i64() as usize).saturating_sub(heap.str(text).chars().count());
        super::check_length(missing)?;
        let bytes = heap.bytes(text).to_vec();
        heap.build_bytes(|out| {
            out.extend_from_slice(&bytes);
            out.resize(out.len() + missing, b' ');
            Ok(())
        })
    };
    CHAR_EXPLICIT = "bpchar", |heap, text, length| {
        let kept = prefix(heap.str(text), length.as_i64()).trim_end_matches(' ').len();
        Ok(shortened(text, kept))
    };
    CHAR_ASSIGNMENT = "bpchar", |heap, text, length| {
        let whole = heap.str(text);
        let kept = prefix(whole, length.as_i64());
        if whole[kept.len()..].bytes().any(|byte| byte != b' ') {
            return Err(too_long("character", length.as_i64()));
        }
        Ok(shortened(text, kept.trim_end_matches(' ').len()))
    };
    VARCHAR_EXPLICIT = "varchar", |heap, text, length| {
        Ok(shortened(text, prefix(heap.str(text), length.as_i64()).len()))
    };
    VARCHAR_ASSIGNMENT = "varchar", |heap, text, length| {
        // As long in bytes as is allowed in characters: nothing to count.
        if heap.bytes(text).len() as i64 <= length.as_i64() {
            return Ok(text);
        }
        let whole = heap.str(text);
        let kept = prefix(whole, length.as_i64());
        if whole[kept.len()..].bytes().any(|byte| byte != b' ') {
            return Err(too_long("character varying", length.as_i64()));
        }
        Ok(shortened(text, kept.len()))
    };
}

/// A value of a type of the catalogs as it is printed.
fn formatted(heap: &mut Heap, value: Slot, catalog: CatalogType) -> Result<Slot> {
    formatted_as(heap, value, &DataType::Catalog(catalog))
}

fn formatted_as(heap: &mut Heap, value: Slot, data_type: &DataType) -> Result<Slot> {
    let text = format_value(&to_value(heap, value, data_type), data_type);
    super::check_length(text.len())?;
    Ok(heap.push_str(&text))
}

/// The value that a text writes.
fn parsed(heap: &mut Heap, text: Slot, data_type: &DataType) -> Result<Slot> {
    let value = parse_value(heap.str(text), data_type)?;
    Ok(push_value(heap, &value))
}

/// The first `length` characters.
fn prefix(text: &str, length: i64) -> &str {
    if text.len() as i64 <= length {
        return text;
    }
    match text.char_indices().nth(length as usize) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The first `bytes` of a stretch of the heap.
fn shortened(text: Slot, bytes: usize) -> Slot {
    let (offset, _) = text.span();
    Slot::from_span(offset as u32, bytes as u32)
}

#[cold]
fn too_long(type_name: &str, length: i64) -> Error {
    Error::new(
        SqlState::STRING_DATA_RIGHT_TRUNCATION,
        format!("value too long for type {type_name}({length})"),
    )
}

/// Writes an integer without going through the formatting machinery.
fn write_integer(out: &mut Vec<u8>, value: i64) -> Result<()> {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
    Ok(())
}

/// PostgreSQL rounds doubles half to even when it makes integers of them.
fn double_to_integer(value: f64, type_name: &str, minimum: i64, maximum: i64) -> Result<Slot> {
    let rounded = value.round_ties_even();
    // The bound above is exact as a double for all three types when it is one more.
    if rounded >= minimum as f64 && rounded < maximum as f64 + 1.0 && !rounded.is_nan() {
        return Ok(Slot::from_i64(rounded as i64));
    }
    Err(Error::out_of_range(type_name))
}

/// `value "…" is out of range for type …`, 22003.
#[cold]
pub(crate) fn integer_range(text: &str, type_name: &str) -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value \"{text}\" is out of range for type {type_name}"),
    )
}

/// Reads an integer of at most `maximum`, blanks around it allowed.
pub(crate) fn parse_integer(text: &str, type_name: &str, maximum: i64) -> Result<i64> {
    let trimmed =
        text.trim_matches(|character: char| character.is_ascii_whitespace() || character == '\x0b');
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::invalid_input(type_name, text));
    }
    match trimmed.parse::<i64>() {
        Ok(value) if value <= maximum && value >= -maximum - 1 => Ok(value),
        _ => Err(integer_range(text, type_name)),
    }
}

/// Reads a boolean: any unambiguous beginning of true, false, yes, no, on, off, and 1 and 0.
pub(crate) fn parse_boolean(text: &str) -> Result<bool> {
    let word = text
        .trim_matches(|character: char| character.is_ascii_whitespace() || character == '\x0b')
        .to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || word == "on" || word == "1" {
        return Ok(true);
    }
    if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        return Ok(false);
    }
    Err(Error::invalid_input("boolean", text))
}

#[cold]
fn malformed(text: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed array literal: \"{text}\""),
    )
}

/// The elements of a one-dimensional array literal `{a,"b c",NULL}`; `None` is NULL.
pub(crate) fn parse_array(text: &str) -> Result<Vec<Option<String>>> {
    let trimmed = text.trim();
    let Some(inside) = trimmed
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    else {
        return Err(malformed(text));
    };
    let mut elements = Vec::new();
    if inside.trim().is_empty() {
        return Ok(elements);
    }
    let mut characters = inside.chars().peekable();
    loop {
        while characters
            .peek()
            .is_some_and(|character| character.is_ascii_whitespace())
        {
            characters.next();
        }
        let mut element = String::new();
        if characters.peek() == Some(&'"') {
            characters.next();
            loop {
                match characters.next() {
                    Some('"') => break,
                    Some('\\') => element.push(characters.next().ok_or_else(|| malformed(text))?),
                    Some(character) => element.push(character),
                    None => return Err(malformed(text)),
                }
            }
            while characters
                .peek()
                .is_some_and(|character| character.is_ascii_whitespace())
            {
                characters.next();
            }
            elements.push(Some(element));
        } else {
            let mut escaped = false;
            while let Some(character) = characters.peek().copied().filter(|next| *next != ',') {
                characters.next();
                match character {
                    '{' => {
                        return Err(Error::unsupported(
                            "arrays of more than one dimension are not supported",
                        ));
                    }
                    '}' | '"' => return Err(malformed(text)),
                    '\\' => {
                        escaped = true;
                        element.push(characters.next().ok_or_else(|| malformed(text))?);
                    }
                    character => element.push(character),
                }
            }
            let word = element.trim_end();
            if word.is_empty() {
                return Err(malformed(text));
            }
            let is_null = !escaped && word.eq_ignore_ascii_case("null");
            elements.push((!is_null).then(|| word.to_owned()));
        }
        match characters.next() {
            None => return Ok(elements),
            Some(',') => {}
            Some(_) => return Err(malformed(text)),
        }
    }
}

fn text_array(heap: &mut Heap, text: Slot, element: DataType) -> Result<Slot> {
    let value = parse_value(heap.str(text), &DataType::array(element))?;
    Ok(push_value(heap, &value))
}

fn array_text(heap: &mut Heap, array: Slot, element: &DataType) -> Result<Slot> {
    let mut values = Vec::new();
    for slot in heap.array(array) {
        values.push(to_value(heap, *slot, element));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", Value::Array(values));
    super::check_length(text.len())?;
    Ok(heap.push_str(&text))
}

/// Reads a literal as a value of `data_type`, whose length, precision and scale are not looked at.
///
/// # Errors
/// What PostgreSQL's input functions report: 22P02, 22003, 22007, 22008.
pub(crate) fn parse_value(text: &str, data_type: &DataType) -> Result<Value> {
    parse_value_in(text, data_type, &Style::default())
}

/// [`parse_value`] in a session's style.
///
/// # Errors
/// As there.
pub(super) fn parse_value_in(text: &str, data_type: &DataType, style: &Style<'_>) -> Result<Value> {
    use kiln_storage::types::{datetime, double, text as strings};
    Ok(match data_type {
        DataType::SmallInt => Value::SmallInt(
            i16::try_from(parse_integer(text, "smallint", i64::from(i16::MAX))?)
                .map_err(|_| integer_range(text, "smallint"))?,
        ),
        DataType::Integer => Value::Integer(
            i32::try_from(parse_integer(text, "integer", i64::from(i32::MAX))?)
                .map_err(|_| integer_range(text, "integer"))?,
        ),
        DataType::BigInt => Value::BigInt(parse_integer(text, "bigint", i64::MAX)?),
        DataType::Numeric { .. } => parse_numeric(text)?,
        DataType::Double => Value::Double(double::parse_double(text)?),
        DataType::Boolean => Value::Boolean(parse_boolean(text)?),
        DataType::Char(_) => Value::Text(text.trim_end_matches(' ').to_owned()),
        DataType::VarChar(_) | DataType::Text => Value::Text(text.to_owned()),
        DataType::Bytea => Value::Bytea(strings::parse_bytea(text)?),
        DataType::Date => Value::Date(datetime::parse_date(text)?),
        DataType::Timestamp(_) => Value::Timestamp(datetime::parse_timestamp(text)?),
        DataType::TimestampTz(_) => {
            Value::TimestampTz(datetime::parse_timestamptz_in(text, &style.zone)?)
        }
        DataType::Time(_) => Value::Time(datetime::parse_time(text)?),
        DataType::Uuid => Value::Uuid(strings::parse_uuid(text)?),
        DataType::Interval(_) => Value::Interval(datetime::parse_interval(text)?),
        DataType::Array(element) => {
            let mut values = Vec::new();
            for part in parse_array(text)? {
                values.push(match part {
                    Some(part) => parse_value_in(&part, element, style)?,
                    None => Value::Null,
                });
            }
            Value::Array(values)
        }
        DataType::Enum(_) | DataType::Row(_) | DataType::Catalog(_) => {
            kiln_storage::types::parse_value_in(data_type, text, style)?
        }
    })
}
