//! Owned values, for the edges of the API: arguments, results, literals.

use std::fmt;
use std::fmt::Write;

use super::Style;
use super::datetime::{
    Interval, format_date, format_time, format_timestamp, format_timestamptz_in,
};
use super::double::{format_double_in, format_real_in};
use super::text::{format_bytea, format_uuid};
use super::{
    CatalogType, DataType, Decimal, EnumValue, Number, ObjectName, Representation, RowValue,
};

/// One owned value of any type, or NULL.
///
/// Equality is Rust's, for tests and plans: NULL equals NULL, numbers of different types differ.
/// SQL's comparison lives with the expressions.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// SQL's NULL, of every type.
    #[default]
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// NUMERIC of at most 33 digits.
    Numeric(Decimal),
    /// Any other NUMERIC: one with more digits, NaN, or infinite. [`Value::from`] makes of a
    /// [`Number`] the one or the other.
    LongNumeric(Box<Number>),
    /// DOUBLE PRECISION.
    Double(f64),
    /// CHAR (without trailing blanks), VARCHAR and TEXT.
    Text(String),
    /// BYTEA.
    Bytea(Vec<u8>),
    /// DATE, in days since 2000-01-01.
    Date(i32),
    /// TIMESTAMP, in microseconds since 2000-01-01 00:00.
    Timestamp(i64),
    /// TIMESTAMPTZ, in microseconds since 2000-01-01 00:00 UTC.
    TimestampTz(i64),
    /// TIME, in microseconds since midnight.
    Time(i64),
    /// UUID.
    Uuid([u8; 16]),
    /// INTERVAL.
    Interval(Interval),
    /// An array's elements.
    Array(Vec<Value>),
    /// What a value of REGCLASS and its like names.
    Object(Box<ObjectName>),
    /// A label of an enum.
    Enum(EnumValue),
    /// A row.
    Row(Box<RowValue>),
}

impl Value {
    /// Whether the value is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The type's name as error messages use it; `unknown` for NULL.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "unknown",
            Value::Boolean(_) => "boolean",
            Value::SmallInt(_) => "smallint",
            Value::Integer(_) => "integer",
            Value::BigInt(_) => "bigint",
            Value::Numeric(_) | Value::LongNumeric(_) => "numeric",
            Value::Double(_) => "double precision",
            Value::Text(_) => "text",
            Value::Bytea(_) => "bytea",
            Value::Date(_) => "date",
            Value::Timestamp(_) => "timestamp without time zone",
            Value::TimestampTz(_) => "timestamp with time zone",
            Value::Time(_) => "time without time zone",
            Value::Uuid(_) => "uuid",
            Value::Interval(_) => "interval",
            Value::Array(_) => "array",
            Value::Object(_) => "regclass",
            Value::Enum(value) => value.of.printed(),
            Value::Row(value) => value.of.printed(),
        }
    }

    /// The type that the value has by itself: text for every string, the first element's type for
    /// an array; `None` for NULL and for an array without elements that are not NULL.
    pub fn data_type(&self) -> Option<DataType> {
        Some(match self {
            Value::Null => return None,
            Value::Boolean(_) => DataType::Boolean,
            Value::SmallInt(_) => DataType::SmallInt,
            Value::Integer(_) => DataType::Integer,
            Value::BigInt(_) => DataType::BigInt,
            Value::Numeric(_) | Value::LongNumeric(_) => DataType::NUMERIC,
            Value::Double(_) => DataType::Double,
            Value::Text(_) => DataType::Text,
            Value::Bytea(_) => DataType::Bytea,
            Value::Date(_) => DataType::Date,
            Value::Timestamp(_) => DataType::TIMESTAMP,
            Value::TimestampTz(_) => DataType::TIMESTAMPTZ,
            Value::Time(_) => DataType::TIME,
            Value::Uuid(_) => DataType::Uuid,
            Value::Interval(_) => DataType::INTERVAL,
            Value::Array(elements) => DataType::array(elements.iter().find_map(Value::data_type)?),
            Value::Object(_) => DataType::Catalog(CatalogType::RegClass),
            Value::Enum(value) => DataType::Enum(value.of.clone()),
            Value::Row(value) => DataType::Row(value.of.clone()),
        })
    }

    /// The value as psql prints it; `None` for NULL. CHAR(n) comes without its padding, which
    /// [`format_value`] adds.
    pub fn to_text(&self) -> Option<String> {
        self.to_text_in(&Style::default())
    }

    /// [`Value::to_text`] in a session's style.
    pub fn to_text_in(&self, style: &Style<'_>) -> Option<String> {
        Some(match self {
            Value::Null => return None,
            Value::Boolean(value) => if *value { "t" } else { "f" }.to_string(),
            Value::SmallInt(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::BigInt(value) => value.to_string(),
            Value::Numeric(value) => value.to_string(),
            Value::LongNumeric(value) => value.to_string(),
            Value::Double(value) => format_double_in(*value, style.float_digits),
            Value::Text(value) => value.clone(),
            Value::Bytea(value) => format_bytea(value),
            Value::Date(value) => format_date(*value),
            Value::Timestamp(value) => format_timestamp(*value),
            Value::TimestampTz(value) => format_timestamptz_in(*value, &style.zone),
            Value::Time(value) => format_time(*value),
            Value::Uuid(value) => format_uuid(value),
            Value::Interval(value) => value.to_string(),
            Value::Array(elements) => format_array(elements, None, style),
            Value::Object(object) => object.name.clone(),
            Value::Enum(value) => value.label().to_owned(),
            Value::Row(value) => value.print(style),
        })
    }
}

impl fmt::Display for Value {
    /// As psql prints it, NULL as `NULL`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_text().as_deref().unwrap_or("NULL"))
    }
}

/// The value as psql prints a column of this type: CHAR(n) padded with blanks to n characters,
/// NULL as the empty string.
pub fn format_value(value: &Value, data_type: &DataType) -> String {
    format_value_in(value, data_type, &Style::default())
}

/// [`format_value`] in a session's style.
pub fn format_value_in(value: &Value, data_type: &DataType, style: &Style<'_>) -> String {
    match (value, data_type) {
        (Value::Text(text), DataType::Char(length)) => {
            // A width of a format goes up to 65,535.
            let blanks = (*length as usize).saturating_sub(text.chars().count());
            format!("{text}{}", " ".repeat(blanks))
        }
        (Value::Array(elements), DataType::Array(element)) => {
            format_array(elements, Some(element), style)
        }
        (Value::Array(elements), DataType::Catalog(vector))
            if vector.representation() == Representation::Vector =>
        {
            let elements: Vec<String> = elements.iter().map(Value::to_string).collect();
            elements.join(" ")
        }
        (Value::Double(value), DataType::Catalog(CatalogType::Real)) => {
            format_real_in(*value, style.float_digits)
        }
        _ => value.to_text_in(style).unwrap_or_default(),
    }
}

/// `{1,NULL,"a b"}`: elements are quoted where PostgreSQL's `array_out` quotes them.
fn format_array(elements: &[Value], element_type: Option<&DataType>, style: &Style<'_>) -> String {
    let mut out = String::from("{");
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let text = match element_type {
            _ if element.is_null() => {
                out.push_str("NULL");
                continue;
            }
            Some(data_type) => format_value_in(element, data_type, style),
            None => element.to_text_in(style).unwrap_or_default(),
        };
        let special = |character: char| {
            matches!(
                character,
                '"' | '\\' | '{' | '}' | ',' | ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c'
            )
        };
        let nested = matches!(element, Value::Array(_));
        if !nested
            && (text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(special))
        {
            out.push('"');
            for character in text.chars() {
                if matches!(character, '"' | '\\') {
                    out.push('\\');
                }
                out.push(character);
            }
            out.push('"');
        } else {
            let _ = write!(out, "{text}");
        }
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_in_psql() {
        let text = |text: &str| Value::Text(text.to_string());
        for (value, printed) in [
            (Value::Boolean(true), "t"),
            (Value::SmallInt(-5), "-5"),
            (Value::Double(1e15), "1e+15"),
            (Value::Double(-0.0), "-0"),
            (Value::Double(f64::INFINITY), "Infinity"),
            (Value::Bytea(vec![0, 171]), "\\x00ab"),
            (Value::Date(0), "2000-01-01"),
            (Value::Timestamp(-1), "1999-12-31 23:59:59.999999"),
            (Value::TimestampTz(0), "2000-01-01 00:00:00+00"),
            (Value::Date(i32::MAX), "infinity"),
            (
                Value::Interval(Interval::new(14, -3, 1_500_000)),
                "1 year 2 mons -3 days +00:00:01.5",
            ),
            (Value::Null, "NULL"),
            (
                Value::Array(vec![
                    text("a"),
                    text("b c"),
                    Value::Null,
                    text("null"),
                    text(""),
                ]),
                "{a,\"b c\",NULL,\"null\",\"\"}",
            ),
            (Value::Array(vec![text("q\"\\,{}")]), "{\"q\\\"\\\\,{}\"}"),
            (Value::Array(Vec::new()), "{}"),
        ] {
            assert_eq!(value.to_string(), printed);
        }
        assert_eq!(Value::Null.to_text(), None);
    }

    #[test]
    fn char_is_padded_to_its_length_when_printed() {
        let value = Value::Text("añ".to_string());
        assert_eq!(format_value(&value, &DataType::Char(4)), "añ  ");
        assert_eq!(format_value(&value, &DataType::VarChar(Some(4))), "añ");
        assert_eq!(format_value(&Value::Null, &DataType::Char(4)), "");
        let array = Value::Array(vec![value]);
        assert_eq!(
            format_value(&array, &DataType::array(DataType::Char(3))),
            "{\"añ \"}"
        );
    }

    #[test]
    fn values_of_the_catalogs_print_as_their_types_say() {
        let vector = Value::Array(vec![Value::SmallInt(1), Value::SmallInt(3)]);
        let number = Value::BigInt(4_294_967_295);
        for (value, data_type, printed) in [
            (&vector, CatalogType::Int2Vector, "1 3"),
            (&number, CatalogType::Oid, "4294967295"),
            (&Value::Double(-1.0), CatalogType::Real, "-1"),
            (&Value::Double(1e6), CatalogType::Real, "1e+06"),
            (&Value::Double(0.1), CatalogType::Real, "0.1"),
        ] {
            assert_eq!(format_value(value, &DataType::Catalog(data_type)), printed);
        }
    }

    #[test]
    fn a_value_is_four_words_at_most() {
        assert!(size_of::<Value>() <= 32);
    }
}
