//! Values from text, as PostgreSQL's input functions read them.

use std::borrow::Cow;

use super::datetime::{
    parse_date, parse_interval, parse_time, parse_timestamp, parse_timestamptz_in, round_seconds,
};
use super::double::{narrowed, parse_double};
use super::text::{character_length, parse_bytea, parse_uuid};
use super::{
    CatalogType, DataType, Decimal, EnumValue, Number, ObjectName, Representation, Style, Value,
    json,
};
use crate::error::{Error, Result, SqlState};

/// The value of this type that the text writes. A length, or precision and scale, of the type is
/// enforced as on assignment to a column.
///
/// # Errors
/// PostgreSQL's: 22P02 (22007 for dates and times) for malformed text, 22003 and 22008 for values
/// out of range, 22001 for a string that is too long.
pub fn parse_value(data_type: &DataType, text: &str) -> Result<Value> {
    parse_value_in(data_type, text, &Style::default())
}

/// [`parse_value`] in a session's style.
///
/// # Errors
/// As there.
pub fn parse_value_in(data_type: &DataType, text: &str, style: &Style<'_>) -> Result<Value> {
    Ok(match data_type {
        DataType::SmallInt => Value::SmallInt(parse_integer(text, "smallint")?),
        DataType::Integer => Value::Integer(parse_integer(text, "integer")?),
        DataType::BigInt => Value::BigInt(parse_integer(text, "bigint")?),
        DataType::Numeric { precision_scale } => {
            let value = parse_numeric(text)?;
            match precision_scale {
                Some((precision, scale)) => rescale_numeric(&value, *precision, *scale)?,
                None => value,
            }
        }
        DataType::Double => Value::Double(parse_double(text)?),
        DataType::Boolean => Value::Boolean(parse_boolean(text)?),
        DataType::Char(_) | DataType::VarChar(_) | DataType::Text => {
            Value::Text(fit_text(text, data_type, false)?.into_owned())
        }
        DataType::Bytea => Value::Bytea(parse_bytea(text)?),
        DataType::Date => Value::Date(parse_date(text)?),
        DataType::Timestamp(digits) => {
            Value::Timestamp(round_seconds(parse_timestamp(text)?, *digits))
        }
        DataType::TimestampTz(digits) => Value::TimestampTz(round_seconds(
            parse_timestamptz_in(text, &style.zone)?,
            *digits,
        )),
        DataType::Time(digits) => Value::Time(round_seconds(parse_time(text)?, *digits)),
        DataType::Uuid => Value::Uuid(parse_uuid(text)?),
        DataType::Interval(digits) => Value::Interval(parse_interval(text)?.rounded(*digits)),
        DataType::Array(element) => {
            let rest = text;
            ArrayReader { text, rest, style }.read(element)?
        }
        DataType::Enum(of) => Value::Enum(EnumValue {
            number: of.require(text)?,
            of: of.clone(),
        }),
        DataType::Row(of) => of.parse(text, style)?,
        DataType::Catalog(catalog) => parse_catalog_value(*catalog, text)?,
    })
}

/// Reads a NUMERIC, as [`Number::parse`] does.
///
/// # Errors
/// 22P02 for anything else, 22003 beyond PostgreSQL's limits.
pub fn parse_numeric(text: &str) -> Result<Value> {
    match Decimal::parse(text) {
        Ok(value) => Ok(Value::Numeric(value)),
        Err(error) if error.state() == SqlState::INVALID_TEXT_REPRESENTATION => Err(error),
        Err(_) => Number::parse(text).map(Value::from),
    }
}

/// A NUMERIC as a column NUMERIC(`precision`, `scale`) stores it; any other value as it is.
///
/// # Errors
/// 22003 for a number out of its range.
pub fn rescale_numeric(value: &Value, precision: u16, scale: i16) -> Result<Value> {
    match value {
        Value::Numeric(value) => match value.rescale(precision, scale) {
            Ok(value) => Ok(Value::Numeric(value)),
            Err(_) => Ok(Number::from(*value).rescale(precision, scale)?.into()),
        },
        Value::LongNumeric(value) => Ok(value.rescale(precision, scale)?.into()),
        other => Ok(other.clone()),
    }
}

fn parse_catalog_value(catalog: CatalogType, text: &str) -> Result<Value> {
    Ok(match catalog.representation() {
        Representation::Text if catalog == CatalogType::Json => {
            json::read(text)?;
            Value::Text(text.to_owned())
        }
        Representation::Text if catalog == CatalogType::Jsonb => {
            Value::Text(json::canonical(text)?)
        }
        Representation::Text if catalog == CatalogType::JsonPath => {
            Value::Text(json::path::canonical_path(text)?)
        }
        Representation::Number => Value::BigInt(parse_number(text, catalog.name())?.into()),
        Representation::Text if catalog == CatalogType::Char => {
            Value::Text(CatalogType::read_char(text)?)
        }
        Representation::Text => Value::Text(catalog.fit(text).to_owned()),
        Representation::Double => {
            let is_range = |error: &Error| error.state() == SqlState::NUMERIC_VALUE_OUT_OF_RANGE;
            let narrow = parse_double(text).and_then(narrowed);
            let narrow = narrow.map_err(|error| match is_range(&error) {
                true => Error::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("\"{}\" is out of range for type real", text.trim_ascii()),
                ),
                false => Error::invalid_input("real", text),
            })?;
            Value::Double(narrow)
        }
        Representation::Vector => {
            let element = catalog.element().unwrap_or(DataType::SmallInt);
            let elements = text.split_ascii_whitespace();
            let elements = elements.map(|element_text| parse_value(&element, element_text));
            Value::Array(elements.collect::<Result<_>>()?)
        }
        // The object is looked for where there is a catalog.
        Representation::Object => Value::Object(Box::new(ObjectName {
            oid: 0,
            name: text.to_owned(),
        })),
    })
}

/// A number of 32 bits without a sign. As in PostgreSQL, one with a sign stands for what has the
/// same bits.
fn parse_number(text: &str, type_name: &str) -> Result<u32> {
    let number: i64 = parse_integer(text, type_name)?;
    let bits = u32::try_from(number).ok();
    let bits = bits.or_else(|| i32::try_from(number).ok().map(|number| number as u32));
    bits.ok_or_else(|| {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type {type_name}"),
        )
    })
}

/// The string as a column of this type holds it: CHAR(n) without trailing blanks, and not longer
/// than the type allows. Blanks past the limit are cut silently; other characters are cut in an
/// explicit cast and refused otherwise.
///
/// # Errors
/// 22001, `value too long for type character varying(16)`.
pub fn fit_text<'a>(
    text: &'a str,
    data_type: &DataType,
    explicit_cast: bool,
) -> Result<Cow<'a, str>> {
    let (limit, text) = match data_type {
        DataType::Char(limit) => (*limit, text.trim_end_matches(' ')),
        DataType::VarChar(Some(limit)) => (*limit, text),
        _ => return Ok(Cow::Borrowed(text)),
    };
    let limit = limit as usize;
    // No more characters than bytes: most strings need no counting.
    if text.len() <= limit || character_length(text) <= limit {
        return Ok(Cow::Borrowed(text));
    }
    let cut = text
        .char_indices()
        .nth(limit)
        .map_or(text.len(), |(at, _)| at);
    let (kept, excess) = text.split_at(cut);
    if !explicit_cast && excess.bytes().any(|byte| byte != b' ') {
        return Err(Error::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {data_type}"),
        ));
    }
    Ok(Cow::Borrowed(match data_type {
        DataType::Char(_) => kept.trim_end_matches(' '),
        _ => kept,
    }))
}

/// An integer of a width: blanks around, a sign, decimal digits.
fn parse_integer<T: TryFrom<i128>>(text: &str, type_name: &str) -> Result<T> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::invalid_input(type_name, text));
    }
    trimmed
        .parse::<i128>()
        .ok()
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| {
            Error::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{text}\" is out of range for type {type_name}"),
            )
        })
}

/// A boolean: any prefix of `true`, `false`, `yes`, `no` that is not ambiguous, `on`, `off`, `1`,
/// `0`.
fn parse_boolean(text: &str) -> Result<bool> {
    let trimmed = text.trim_ascii().to_ascii_lowercase();
    let prefix_of = |word: &str, least: usize| trimmed.len() >= least && word.starts_with(&trimmed);
    if prefix_of("true", 1) || prefix_of("yes", 1) || trimmed == "on" || trimmed == "1" {
        Ok(true)
    } else if prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || trimmed == "0" {
        Ok(false)
    } else {
        Err(Error::invalid_input("boolean", text))
    }
}

/// Reads `{1,"a b",NULL}`.
struct ArrayReader<'a> {
    text: &'a str,
    rest: &'a str,
    style: &'a Style<'a>,
}

impl ArrayReader<'_> {
    #[cold]
    fn malformed(&self, detail: &str) -> Error {
        Error::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{}\"", self.text),
        )
        .with_detail(detail)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
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

    fn read(mut self, element: &DataType) -> Result<Value> {
        self.skip_blanks();
        if !self.eat('{') {
            return Err(
                self.malformed("Array value must start with \"{\" or dimension information.")
            );
        }
        let mut elements = Vec::new();
        self.skip_blanks();
        if !self.eat('}') {
            loop {
                self.skip_blanks();
                elements.push(self.element(element)?);
                self.skip_blanks();
                if self.eat('}') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.unexpected());
                }
            }
        }
        self.skip_blanks();
        if !self.rest.is_empty() {
            return Err(self.malformed("Junk after closing right brace."));
        }
        Ok(Value::Array(elements))
    }

    #[cold]
    fn unexpected(&self) -> Error {
        match self.rest.chars().next() {
            None => self.malformed("Unexpected end of input."),
            Some('"') => self.malformed("Unexpected array element."),
            Some(character) => self.malformed(&format!("Unexpected \"{character}\" character.")),
        }
    }

    fn element(&mut self, element: &DataType) -> Result<Value> {
        if self.rest.starts_with('{') {
            return Err(Error::unsupported(
                "arrays of more than one dimension are not supported",
            ));
        }
        if self.eat('"') {
            let mut content = String::new();
            loop {
                let Some(character) = self.rest.chars().next() else {
                    return Err(self.unexpected());
                };
                self.rest = &self.rest[character.len_utf8()..];
                match character {
                    '"' => {
                        // What follows is judged before the content, as in PostgreSQL.
                        self.skip_blanks();
                        if !self.rest.starts_with([',', '}']) {
                            return Err(self.unexpected());
                        }
                        return parse_value_in(element, &content, self.style);
                    }
                    '\\' => content.push(self.escaped()?),
                    _ => content.push(character),
                }
            }
        }
        let mut content = String::new();
        let mut kept = 0;
        while let Some(character) = self.rest.chars().next() {
            if matches!(character, ',' | '}') {
                break;
            }
            if matches!(character, '{' | '"') {
                return Err(self.unexpected());
            }
            self.rest = &self.rest[character.len_utf8()..];
            if character == '\\' {
                content.push(self.escaped()?);
                kept = content.len();
            } else {
                content.push(character);
                if !character.is_ascii_whitespace() {
                    kept = content.len();
                }
            }
        }
        // Blanks before a delimiter are none of the element's.
        content.truncate(kept);
        if content.is_empty() {
            return Err(self.unexpected());
        }
        if content.eq_ignore_ascii_case("null") {
            return Ok(Value::Null);
        }
        parse_value_in(element, &content, self.style)
    }

    /// The character after a backslash.
    fn escaped(&mut self) -> Result<char> {
        let Some(character) = self.rest.chars().next() else {
            return Err(self.unexpected());
        };
        self.rest = &self.rest[character.len_utf8()..];
        Ok(character)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_fit_their_columns_as_in_postgresql() {
        let assigned = |text: &str, data_type: &DataType| {
            fit_text(text, data_type, false).map(Cow::into_owned)
        };
        let three = DataType::VarChar(Some(3));
        assert_eq!(assigned("añb", &three), Ok("añb".to_string()));
        assert_eq!(assigned("ab   ", &three), Ok("ab ".to_string()));
        assert_eq!(assigned("ab   ", &DataType::Char(3)), Ok("ab".to_string()));
        assert_eq!(assigned("ab   ", &DataType::Text), Ok("ab   ".to_string()));
        for (data_type, name) in [
            (three.clone(), "character varying(3)"),
            (DataType::Char(3), "character(3)"),
        ] {
            let error = assigned("abcd", &data_type).unwrap_err();
            assert_eq!(error.state(), SqlState::STRING_DATA_RIGHT_TRUNCATION);
            assert_eq!(error.message(), format!("value too long for type {name}"));
        }
        assert_eq!(fit_text("abcd", &three, true).unwrap(), "abc");
        assert_eq!(fit_text("ab d", &DataType::Char(3), true).unwrap(), "ab");
    }

    #[test]
    fn garbage_of_every_type_is_an_error_and_never_a_panic() {
        use crate::types::format_value;
        use kiln_platform::random::Random;
        let types = [
            DataType::SmallInt,
            DataType::BigInt,
            DataType::numeric(5, 2),
            DataType::Double,
            DataType::Boolean,
            DataType::Char(3),
            DataType::Bytea,
            DataType::Date,
            DataType::TIMESTAMP,
            DataType::TIMESTAMPTZ,
            DataType::TIME,
            DataType::Uuid,
            DataType::INTERVAL,
            DataType::array(DataType::Date),
            DataType::OID,
            DataType::NAME,
            DataType::Catalog(CatalogType::OidVector),
            DataType::Catalog(CatalogType::Real),
        ];
        let alphabet: Vec<char> = "0123456789-+:./ ,{}\"\\xeETZPYMDHSabcdjn@é日"
            .chars()
            .collect();
        let mut random = Random::from_seed(8);
        let mut read = 0;
        for round in 0..60_000 {
            let length = random.between(0, 14);
            let text: String = (0..length)
                .map(|_| alphabet[random.below(alphabet.len())])
                .collect();
            let data_type = &types[round % types.len()];
            match parse_value(data_type, &text) {
                // What was read prints, and what it prints reads back.
                Ok(value) => {
                    read += 1;
                    let printed = format_value(&value, data_type);
                    let again = parse_value(data_type, &printed)
                        .unwrap_or_else(|error| panic!("{text} -> {printed}: {error}"));
                    assert_eq!(format_value(&again, data_type), printed, "from {text}");
                }
                Err(error) => assert_ne!(error.state(), SqlState::INTERNAL_ERROR),
            }
        }
        assert!(read > 1_000, "only {read} texts were read");
    }
}
