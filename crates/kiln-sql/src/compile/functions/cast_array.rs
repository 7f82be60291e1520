//! Builtins behind conversions of arrays. Those of arrays of any type are told the type of their
//! elements by its name.

use kiln_procedure::frame::{push_value, to_value};
use kiln_procedure::ir::ScalarFunction;
use kiln_procedure::number;
use kiln_storage::error::{Error, Result};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::datetime::round_seconds;
use kiln_storage::types::{
    CatalogType, DataType, Decimal, Style, Value, fit_text, format_value_in,
};

use super::cast::{self, Named, parse_value_in, strict};

strict! {
    /// An array as it is printed.
    ARRAY_TO_TEXT = "text", |heap, array, element, style| {
        let data_type = DataType::array(named(heap, element)?);
        let value = to_value(heap, array, &data_type);
        let text = format_value_in(&value, &data_type, &Style::read(heap.bytes(style)));
        super::check_length(text.len())?;
        Ok(heap.push_str(&text))
    };
    /// The array that a text writes.
    TEXT_TO_ARRAY = "array_in", |heap, text, element, style| {
        let data_type = DataType::array(named(heap, element)?);
        let style = Style::read(heap.bytes(style));
        let value = parse_value_in(heap.str(text), &data_type, &style)?;
        Ok(push_value(heap, &value))
    };
    /// The elements as they are printed alone.
    ARRAY_TO_OUTPUT_TEXTS = "text", |heap, array, element, style| {
        let (element, style) = (named(heap, element)?, heap.bytes(style).to_vec());
        let style = Style::read(&style);
        each(heap, array, |heap, slot| {
            let text = format_value_in(&to_value(heap, slot, &element), &element, &style);
            Ok(heap.push_str(&text))
        })
    };
    /// The elements of one type as those of another one.
    ARRAY_TO_ARRAY = "array", |heap, array, from, to, style| {
        let (from, to) = (named(heap, from)?, named(heap, to)?);
        each(heap, array, |heap, slot| convert(heap, slot, (&from, &to), style))
    };
    /// The elements within their length, or precision and scale; what is longer is an error.
    ARRAY_ASSIGNMENT = "array", |heap, array, element| {
        let element = named(heap, element)?;
        each(heap, array, |heap, slot| fit(heap, slot, &element, false))
    };
    /// The elements within their length, or precision and scale; what is longer is cut.
    ARRAY_EXPLICIT = "array", |heap, array, element| {
        let element = named(heap, element)?;
        each(heap, array, |heap, slot| fit(heap, slot, &element, true))
    };
}

fn named(heap: &Heap, name: Slot) -> Result<DataType> {
    let parsed = heap.str(name).parse();
    parsed.map_err(|()| Error::internal("an array's type has no name"))
}

/// An array of what becomes of the elements that are not NULL.
fn each(
    heap: &mut Heap,
    array: Slot,
    mut change: impl FnMut(&mut Heap, Slot) -> Result<Slot>,
) -> Result<Slot> {
    let mut elements = heap.array(array).to_vec();
    for element in elements.iter_mut().filter(|element| !element.is_null()) {
        *element = change(heap, *element)?;
    }
    Ok(heap.push_array(&elements))
}

pub(super) fn fit(
    heap: &mut Heap,
    slot: Slot,
    element: &DataType,
    is_explicit: bool,
) -> Result<Slot> {
    match element {
        DataType::Numeric {
            precision_scale: Some((precision, scale)),
        } => number::rescale(heap, slot, *precision, *scale),
        DataType::Interval(digits) => {
            let rounded = heap.interval(slot).rounded(*digits);
            Ok(heap.push_interval(rounded))
        }
        element if element.digits_of_seconds().is_some() => {
            let rounded = round_seconds(slot.as_i64(), element.digits_of_seconds());
            Ok(Slot::from_i64(rounded))
        }
        element if element.is_string() => {
            let text = heap.str(slot).to_owned();
            Ok(heap.push_str(&fit_text(&text, element, is_explicit)?))
        }
        _ => Ok(slot),
    }
}

/// What converts between times that have a zone and those that have none, in the session's zone.
pub(in super::super) fn between_zones(from: &DataType, to: &DataType) -> Option<Named> {
    use DataType::{Date, Time, Timestamp, TimestampTz};
    Some(match (from, to) {
        (Date, TimestampTz(_)) => cast::DATE_TO_TIMESTAMPTZ,
        (Timestamp(_), TimestampTz(_)) => cast::TIMESTAMP_TO_TIMESTAMPTZ,
        (TimestampTz(_), Timestamp(_)) => cast::TIMESTAMPTZ_TO_TIMESTAMP,
        (TimestampTz(_), Date) => cast::TIMESTAMPTZ_TO_DATE,
        (TimestampTz(_), Time(_)) => cast::TIMESTAMPTZ_TO_TIME,
        _ => return None,
    })
}

/// Whether elements convert in this way.
pub(in super::super) fn elements_convert(from: &DataType, to: &DataType) -> bool {
    from.is_string()
        || to.is_string()
        || between_zones(from, to).is_some()
        || function(from, to).is_some()
}

pub(super) fn convert(
    heap: &mut Heap,
    slot: Slot,
    (from, to): (&DataType, &DataType),
    style: Slot,
) -> Result<Slot> {
    if let Some((_, function)) = between_zones(from, to) {
        return function(heap, &[slot, style]);
    }
    match function(from, to) {
        Some(function) => function(heap, &[slot]),
        None if from.without_modifier() == to.without_modifier() => Ok(slot),
        None if to.is_string() => {
            let text = match to_value(heap, slot, from) {
                Value::Boolean(value) => value.to_string(),
                value => format_value_in(&value, from, &Style::read(heap.bytes(style))),
            };
            super::check_length(text.len())?;
            Ok(heap.push_str(&text))
        }
        None => {
            let style = Style::read(heap.bytes(style));
            let value = parse_value_in(heap.str(slot), to, &style)?;
            Ok(push_value(heap, &value))
        }
    }
}

strict! {
    INTEGER_TO_DECIMAL = "numeric", |heap, value| {
        Ok(Slot::from_decimal(Decimal::from_i64(value.as_i64())))
    };
    INTEGER_TO_DOUBLE = "float8", |heap, value| Ok(Slot::from_f64(value.as_i64() as f64));
    INTEGER_TO_SMALLINT = "int2", |heap, value| {
        let narrow = i16::try_from(value.as_i64());
        narrow.map(|_| value).map_err(|_| Error::out_of_range("smallint"))
    };
    BIGINT_TO_INTEGER = "int4", |heap, value| {
        let narrow = i32::try_from(value.as_i64());
        narrow.map(|_| value).map_err(|_| Error::out_of_range("integer"))
    };
    AS_IT_IS = "same", |heap, value| Ok(value);
    INTEGER_TO_REAL = "float4", |heap, value| {
        Ok(Slot::from_f64((value.as_i64() as f32).into()))
    };
}

/// What converts a value, other than from or to its text.
fn function(from: &DataType, to: &DataType) -> Option<ScalarFunction> {
    use DataType::*;
    const REAL: DataType = Catalog(CatalogType::Real);
    let named: Named = match (from, to) {
        (from, to) if from.is_string() && to.is_string() => AS_IT_IS,
        (SmallInt, Integer | BigInt) | (Integer, BigInt) | (Double, Double) => AS_IT_IS,
        (Timestamp(_), TimestampTz(_)) | (TimestampTz(_), Timestamp(_)) => AS_IT_IS,
        (Integer | BigInt, SmallInt) => INTEGER_TO_SMALLINT,
        (BigInt, Integer) => BIGINT_TO_INTEGER,
        (SmallInt | Integer | BigInt, Numeric { .. }) => INTEGER_TO_DECIMAL,
        (SmallInt | Integer | BigInt, Double) => INTEGER_TO_DOUBLE,
        (SmallInt | Integer | BigInt, to) if *to == REAL => INTEGER_TO_REAL,
        (Numeric { .. }, SmallInt) => cast::DECIMAL_TO_SMALLINT,
        (Numeric { .. }, Integer) => cast::DECIMAL_TO_INTEGER,
        (Numeric { .. }, BigInt) => cast::DECIMAL_TO_BIGINT,
        (Numeric { .. }, Double) => cast::DECIMAL_TO_DOUBLE,
        (Numeric { .. }, to) if *to == REAL => cast::DECIMAL_TO_REAL,
        (from, Numeric { .. }) if *from == REAL => cast::REAL_TO_DECIMAL,
        (from, Double) if *from == REAL => AS_IT_IS,
        (from, _) if *from == REAL => return function(&Double, to),
        (Double, to) if *to == REAL => cast::DOUBLE_TO_REAL,
        (Double, SmallInt) => cast::DOUBLE_TO_SMALLINT,
        (Double, Integer) => cast::DOUBLE_TO_INTEGER,
        (Double, BigInt) => cast::DOUBLE_TO_BIGINT,
        (Double, Numeric { .. }) => cast::DOUBLE_TO_DECIMAL,
        (Date, Timestamp(_)) => cast::DATE_TO_TIMESTAMP,
        (Timestamp(_), Date) => cast::TIMESTAMP_TO_DATE,
        _ => return None,
    };
    Some(named.1)
}
