//! String functions with PostgreSQL's semantics: positions count characters from 1.

use crate::error::{Error, Result, SqlState};

/// The most bytes that a string function may produce: PostgreSQL's limit of a value.
const RESULT_BYTES_MAX: usize = 0x3fff_ffff;

/// Which ends [`trim`] works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The start only.
    Leading,
    /// The end only.
    Trailing,
    /// Both ends.
    Both,
}

/// The number of characters.
pub fn character_length(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// The byte at which the character of this index, from 0, begins; the text's length past its end.
fn byte_of_character(text: &str, index: usize) -> usize {
    if text.is_ascii() {
        return index.min(text.len());
    }
    text.char_indices()
        .nth(index)
        .map_or(text.len(), |(at, _)| at)
}

/// `substring(text from start for length)`; characters before the first count towards the
/// length.
///
/// # Errors
/// 22011 for a negative length.
pub fn substring(text: &str, start: i32, length: Option<i32>) -> Result<&str> {
    let first = usize::try_from(i64::from(start) - 1).unwrap_or(0);
    let end = match length {
        None => None,
        Some(length) if length < 0 => {
            return Err(Error::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(length) => {
            let past = i64::from(start) - 1 + i64::from(length);
            Some(usize::try_from(past).unwrap_or(0))
        }
    };
    let from = byte_of_character(text, first);
    let rest = &text[from..];
    Ok(match end {
        None => rest,
        Some(end) => &rest[..byte_of_character(rest, end.saturating_sub(first))],
    })
}

/// The first `count` characters; with a negative count, all but the last `-count`.
pub fn left(text: &str, count: i32) -> &str {
    let keep = if count >= 0 {
        count as usize
    } else {
        character_length(text).saturating_sub(count.unsigned_abs() as usize)
    };
    &text[..byte_of_character(text, keep)]
}

/// The last `count` characters; with a negative count, all but the first `-count`.
pub fn right(text: &str, count: i32) -> &str {
    let skip = if count >= 0 {
        character_length(text).saturating_sub(count as usize)
    } else {
        count.unsigned_abs() as usize
    };
    &text[byte_of_character(text, skip)..]
}

/// The position of the first occurrence of `needle`, from 1; 0 when there is none.
pub fn position(text: &str, needle: &str) -> i32 {
    // A string is shorter than 2^30 bytes.
    text.find(needle)
        .map_or(0, |at| character_length(&text[..at]) as i32 + 1)
}

/// `overlay(text placing new from start for length)`; without a length, as many characters as
/// `new` has are replaced.
///
/// # Errors
/// 22011 when `start` is not positive, 22003 when the end overflows an integer.
pub fn overlay(text: &str, new: &str, start: i32, length: Option<i32>) -> Result<String> {
    if start <= 0 {
        return Err(Error::new(
            SqlState::SUBSTRING_ERROR,
            "negative substring length not allowed",
        ));
    }
    let length = length.unwrap_or(character_length(new) as i32);
    let resume = start
        .checked_add(length)
        .ok_or_else(|| Error::out_of_range("integer"))?;
    let head = substring(text, 1, Some(start - 1))?;
    let tail = substring(text, resume, None)?;
    Ok([head, new, tail].concat())
}

#[cold]
fn too_large() -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "requested length too large",
    )
}

/// The padding that brings `text` to `length` characters, or the cut text when it is longer.
fn padding(text: &str, length: i32, fill: &str) -> Result<std::result::Result<String, usize>> {
    let length = usize::try_from(length).unwrap_or(0);
    let have = character_length(text);
    if have >= length || fill.is_empty() {
        return Ok(Err(byte_of_character(text, length)));
    }
    let widest = fill.chars().map(char::len_utf8).max().unwrap_or(1);
    if (length - have)
        .saturating_mul(widest)
        .saturating_add(text.len())
        > RESULT_BYTES_MAX
    {
        return Err(too_large());
    }
    Ok(Ok(fill.chars().cycle().take(length - have).collect()))
}

/// `lpad`: filled at the start, or cut at the end, to `length` characters.
///
/// # Errors
/// 54000 when the result would be too large.
pub fn pad_left(text: &str, length: i32, fill: &str) -> Result<String> {
    Ok(match padding(text, length, fill)? {
        Ok(padding) => padding + text,
        Err(cut) => text[..cut].to_string(),
    })
}

/// `rpad`: filled, or cut, at the end to `length` characters.
///
/// # Errors
/// 54000 when the result would be too large.
pub fn pad_right(text: &str, length: i32, fill: &str) -> Result<String> {
    Ok(match padding(text, length, fill)? {
        Ok(padding) => text.to_string() + &padding,
        Err(cut) => text[..cut].to_string(),
    })
}

/// The text without the characters of `characters` at its ends.
pub fn trim<'a>(text: &'a str, characters: &str, side: Side) -> &'a str {
    let listed = |character: char| characters.contains(character);
    match side {
        Side::Leading => text.trim_start_matches(listed),
        Side::Trailing => text.trim_end_matches(listed),
        Side::Both => text.trim_matches(listed),
    }
}

/// The text `count` times; nothing for a count below 1.
///
/// # Errors
/// 54000 when the result would be too large.
pub fn repeat(text: &str, count: i32) -> Result<String> {
    let count = usize::try_from(count).unwrap_or(0);
    if text.len().saturating_mul(count) > RESULT_BYTES_MAX {
        return Err(too_large());
    }
    Ok(text.repeat(count))
}

/// The text with each occurrence of `from` replaced by `to`; an empty `from` occurs nowhere.
///
/// # Errors
/// 54000 when the result would be too large.
pub fn replace(text: &str, from: &str, to: &str) -> Result<String> {
    if from.is_empty() {
        return Ok(text.to_string());
    }
    if text.len() / from.len() * to.len() > RESULT_BYTES_MAX {
        return Err(too_large());
    }
    Ok(text.replace(from, to))
}

/// The characters in reverse order.
pub fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

/// Each character of `from` replaced by the character at the same place in `to`, or dropped when
/// `to` is shorter.
pub fn translate(text: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    text.chars()
        .filter_map(
            |character| match from.chars().position(|listed| listed == character) {
                None => Some(character),
                Some(index) => to.get(index).copied(),
            },
        )
        .collect()
}

/// The field of this number, from 1, between occurrences of `delimiter`; a negative number counts
/// from the end. There is no field: the empty string.
///
/// # Errors
/// 22023 for field 0.
pub fn split_part<'a>(text: &'a str, delimiter: &str, field: i32) -> Result<&'a str> {
    if field == 0 {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "field position must not be zero",
        ));
    }
    if delimiter.is_empty() {
        // Nothing separates, so that the text is its only field.
        return Ok(if field.abs() == 1 { text } else { "" });
    }
    let index = field.unsigned_abs() as usize - 1;
    // Fields are found from the start also when they are counted from the end.
    let index = if field > 0 {
        Some(index)
    } else {
        text.split(delimiter).count().checked_sub(index + 1)
    };
    Ok(index
        .and_then(|index| text.split(delimiter).nth(index))
        .unwrap_or_default())
}

/// ASCII letters in upper case, as in the C collation.
pub fn upper(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// ASCII letters in lower case, as in the C collation.
pub fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// The first letter of each word in upper case, the others in lower case; words are runs of ASCII
/// letters and digits.
pub fn initcap(text: &str) -> String {
    let mut in_word = false;
    text.chars()
        .map(|character| {
            let cased = if in_word {
                character.to_ascii_lowercase()
            } else {
                character.to_ascii_uppercase()
            };
            in_word = character.is_ascii_alphanumeric();
            cased
        })
        .collect()
}

/// The code point of the first character; 0 for the empty string.
pub fn ascii(text: &str) -> i32 {
    text.chars().next().map_or(0, |character| character as i32)
}

/// The character of a code point.
///
/// # Errors
/// 22023 for a negative number, 54000 for 0 and for what is no character.
pub fn chr(code_point: i32) -> Result<char> {
    let limit = |message: String| Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
    match u32::try_from(code_point) {
        Err(_) => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "character number must be positive",
        )),
        Ok(0) => Err(limit("null character not permitted".to_string())),
        Ok(code) if code > 0x10_ffff => Err(limit(format!(
            "requested character too large for encoding: {code}"
        ))),
        Ok(code) => char::from_u32(code).ok_or_else(|| {
            limit(format!(
                "requested character not valid for encoding: {code}"
            ))
        }),
    }
}

/// Whether the text begins with `prefix`.
pub fn starts_with(text: &str, prefix: &str) -> bool {
    text.starts_with(prefix)
}
