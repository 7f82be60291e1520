//! The text format: values as people write them.

use std::io::Write;

use kiln_storage::error::Result;
use kiln_storage::types::text::{not_utf8, utf8};
use kiln_storage::types::{
    DataType, Style, Value, format_value, format_value_in, parse_value, parse_value_in,
};

/// Appends a value of this type as text, in the style of its session. NULL is nothing.
pub fn encode_text(value: &Value, data_type: &DataType, style: &Style<'_>, bytes: &mut Vec<u8>) {
    // To memory nothing fails.
    let _ = match (value, data_type) {
        (Value::SmallInt(value), _) => write!(bytes, "{value}"),
        (Value::Integer(value), _) => write!(bytes, "{value}"),
        (Value::BigInt(value), _) => write!(bytes, "{value}"),
        (Value::Boolean(value), _) => bytes.write_all(if *value { b"t" } else { b"f" }),
        (Value::Text(_), DataType::Char(_)) => {
            bytes.write_all(format_value(value, data_type).as_bytes())
        }
        (Value::Text(value), _) => bytes.write_all(value.as_bytes()),
        _ => bytes.write_all(format_value_in(value, data_type, style).as_bytes()),
    };
}

/// The value of this type that a text says, in the style of its session.
///
/// # Errors
/// 22021 for what is no text, 22P02 and its like for one that is no such value.
pub fn decode_text(bytes: &[u8], data_type: &DataType, style: &Style<'_>) -> Result<Value> {
    if bytes.contains(&0) {
        return Err(not_utf8(&[0]));
    }
    let text = utf8(bytes)?;
    match data_type {
        DataType::Text | DataType::VarChar(None) => Ok(Value::Text(text.to_owned())),
        // A label is looked for where the statement runs: the type may have others then.
        DataType::Enum(_) => Ok(Value::Text(text.to_owned())),
        DataType::Array(element) if element.enumeration().is_some() => {
            parse_value(&DataType::array(DataType::Text), text)
        }
        _ => parse_value_in(data_type, text, style),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_postgresql() {
        for (data_type, text) in [
            (DataType::SmallInt, "-32768"),
            (DataType::Integer, "42"),
            (DataType::BigInt, "-9223372036854775808"),
            (DataType::NUMERIC, "12345.6780"),
            (DataType::Double, "1e+300"),
            (DataType::Boolean, "t"),
            (DataType::Char(4), "ab  "),
            (DataType::Text, "äöü"),
            (DataType::Bytea, "\\x00ff"),
            (DataType::Date, "2026-11-23"),
            (DataType::TIMESTAMP, "2026-11-23 12:00:00.5"),
            (DataType::TIMESTAMPTZ, "2026-11-23 12:00:00+00"),
            (DataType::Uuid, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            (DataType::INTERVAL, "1 day 02:03:04"),
            (DataType::TIME, "02:03:04.5"),
            (DataType::array(DataType::Integer), "{1,NULL,3}"),
        ] {
            let value = decode_text(text.as_bytes(), &data_type, &Style::default()).expect(text);
            let mut bytes = Vec::new();
            encode_text(&value, &data_type, &Style::default(), &mut bytes);
            assert_eq!(String::from_utf8_lossy(&bytes), text);
        }
        for bytes in [&b"\xff"[..], b"a\0b"] {
            let error =
                decode_text(bytes, &DataType::Text, &Style::default()).expect_err("it is no text");
            assert_eq!(error.state().as_str(), "22021");
        }
        let error =
            decode_text(b"x", &DataType::Integer, &Style::default()).expect_err("it is no number");
        assert_eq!(error.state().as_str(), "22P02");
    }
}
