//! BYTEA and UUID to and from text.

use crate::error::{Error, Result, SqlState};

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

fn push_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push(HEX_DIGITS[usize::from(byte >> 4)] as char);
        out.push(HEX_DIGITS[usize::from(byte & 15)] as char);
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// Bytes in PostgreSQL's hex format: `\x0aff`.
pub fn format_bytea(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + 2 * bytes.len());
    out.push_str("\\x");
    push_hex(bytes, &mut out);
    out
}

/// Bytes in PostgreSQL's escape format: printable ASCII as itself, `\\` for a backslash, three
/// octal digits for the rest.
pub fn format_bytea_escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(byte as char),
            _ => {
                out.push('\\');
                for shift in [6, 3, 0] {
                    out.push((b'0' + (byte >> shift & 7)) as char);
                }
            }
        }
    }
    out
}

/// Reads bytes in hex format (`\x…`, blanks between pairs allowed) or in escape format.
///
/// # Errors
/// 22023 for malformed hex, 22P02 for a malformed escape.
pub fn parse_bytea(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex),
        None => parse_escape(text.as_bytes()),
    }
}

/// Pairs of hex digits, with blanks between pairs.
pub(super) fn parse_hex(text: &str) -> Result<Vec<u8>> {
    let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if matches!(character, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let digit = |character: char| {
            character
                .to_digit(16)
                .ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{character}\"")))
        };
        let high = digit(character)?;
        let low = characters
            .next()
            .ok_or_else(|| invalid("invalid hexadecimal data: odd number of digits".to_string()))?;
        bytes.push((high << 4 | digit(low)?) as u8);
    }
    Ok(bytes)
}

fn parse_escape(text: &[u8]) -> Result<Vec<u8>> {
    let invalid = || {
        Error::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type bytea",
        )
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match *after {
            [b'\\', ..] => {
                bytes.push(b'\\');
                rest = &after[1..];
            }
            [
                high @ b'0'..=b'3',
                middle @ b'0'..=b'7',
                low @ b'0'..=b'7',
                ..,
            ] => {
                bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                rest = &after[3..];
            }
            _ => return Err(invalid()),
        }
    }
    Ok(bytes)
}

/// A UUID in its usual form: 8, 4, 4, 4 and 12 lower-case hex digits with hyphens between.
pub fn format_uuid(uuid: &[u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (index, part) in [
        &uuid[..4],
        &uuid[4..6],
        &uuid[6..8],
        &uuid[8..10],
        &uuid[10..],
    ]
    .into_iter()
    .enumerate()
    {
        if index > 0 {
            out.push('-');
        }
        push_hex(part, &mut out);
    }
    out
}

/// Reads a UUID: 32 hex digits of either case, a hyphen allowed after every four, braces allowed
/// around.
///
/// # Errors
/// 22P02 for anything else.
pub fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    let invalid = || Error::invalid_input("uuid", text);
    let mut bytes = text.as_bytes();
    if let [b'{', inner @ .., b'}'] = bytes {
        bytes = inner;
    } else if bytes.first() == Some(&b'{') {
        return Err(invalid());
    }
    let mut uuid = [0; 16];
    for (index, byte) in uuid.iter_mut().enumerate() {
        let [high, low, rest @ ..] = bytes else {
            return Err(invalid());
        };
        match (hex_digit(*high), hex_digit(*low)) {
            (Some(high), Some(low)) => *byte = high << 4 | low,
            _ => return Err(invalid()),
        }
        bytes = rest;
        if index % 2 == 1 && index < 15 {
            bytes = bytes.strip_prefix(b"-").unwrap_or(bytes);
        }
    }
    if bytes.is_empty() {
        Ok(uuid)
    } else {
        Err(invalid())
    }
}

/// `encode(bytes, format)`: `hex`, `escape` or `base64` (in lines of 76 characters).
///
/// # Errors
/// 22023 for another format.
pub fn encode(bytes: &[u8], format: &str) -> Result<String> {
    if format.eq_ignore_ascii_case("hex") {
        let mut out = String::with_capacity(2 * bytes.len());
        push_hex(bytes, &mut out);
        return Ok(out);
    }
    if format.eq_ignore_ascii_case("escape") {
        return Ok(encode_escape(bytes));
    }
    if format.eq_ignore_ascii_case("base64") {
        return Ok(encode_base64(bytes));
    }
    Err(unknown_encoding(format))
}

/// `decode(text, format)`, the reverse of [`encode`].
///
/// # Errors
/// 22023 for another format or malformed text.
pub fn decode(text: &str, format: &str) -> Result<Vec<u8>> {
    if format.eq_ignore_ascii_case("hex") {
        return parse_hex(text);
    }
    if format.eq_ignore_ascii_case("escape") {
        return parse_escape(text.as_bytes());
    }
    if format.eq_ignore_ascii_case("base64") {
        return decode_base64(text);
    }
    Err(unknown_encoding(format))
}

#[cold]
fn unknown_encoding(format: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unrecognized encoding: \"{format}\""),
    )
    .with_hint("The encodings are base64, escape and hex.")
}

/// `encode`'s escape format differs from BYTEA's: only NUL, bytes above 127 and backslashes are
/// escaped.
fn encode_escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            0 | 128.. => out.push_str(&format!("\\{byte:03o}")),
            b'\\' => out.push_str("\\\\"),
            _ => out.push(byte as char),
        }
    }
    out
}

const BASE64_DIGITS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_LINE: usize = 76;

fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    let mut line = 0;
    for chunk in bytes.chunks(3) {
        if line == BASE64_LINE {
            out.push('\n');
            line = 0;
        }
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(group);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if digit <= chunk.len() {
                BASE64_DIGITS[index] as char
            } else {
                '='
            });
        }
        line += 4;
    }
    out
}

fn decode_base64(text: &str) -> Result<Vec<u8>> {
    let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut digits, mut padding) = (0_u32, 0, 0);
    for character in text.chars() {
        if matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let known = BASE64_DIGITS
            .iter()
            .position(|digit| *digit as char == character);
        let value = match known {
            Some(value) if padding == 0 => value as u32,
            None if character == '=' && digits >= 2 => {
                padding += 1;
                0
            }
            None if character == '=' => {
                return Err(invalid(
                    "unexpected \"=\" while decoding base64 sequence".to_string(),
                ));
            }
            _ => {
                return Err(invalid(format!(
                    "invalid symbol \"{character}\" found while decoding base64 sequence"
                )));
            }
        };
        bits = bits << 6 | value;
        digits += 1;
        if digits == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (bits, digits) = (0, 0);
        }
    }
    if digits != 0 {
        return Err(invalid("invalid base64 end sequence".to_string())
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(bytes)
}
