//! `U&'…'` and `U&"…"`, whose characters may be written by their numbers: `\00e4`, or `\+01f600`.
//! `UESCAPE '!'` behind it has another character stand for the backslash.

use kiln_storage::error::{Error, SqlState};

/// The characters that a text with these escapes stands for.
///
/// # Errors
/// 42601 for an escape that is none.
pub(super) fn decoded(text: &str, escape: char) -> Result<String, Error> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    // The first half of a pair that is to be one character.
    let mut half: Option<u32> = None;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        let is_doubled = rest.starts_with(escape);
        if character != escape || is_doubled {
            if half.is_some() {
                return Err(invalid("invalid Unicode surrogate pair"));
            }
            if is_doubled && character == escape {
                rest = &rest[escape.len_utf8()..];
            }
            value.push(character);
            continue;
        }
        let (digits, after) = match rest.strip_prefix('+') {
            Some(rest) => (6, rest),
            None => (4, rest),
        };
        let written = after.get(..digits);
        let written = written.filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = written.and_then(|it| u32::from_str_radix(it, 16).ok()) else {
            let hint = "Unicode escapes must be \\XXXX or \\+XXXXXX.";
            return Err(invalid("invalid Unicode escape").with_hint(hint));
        };
        rest = &after[digits..];
        let code = match (half.take(), code) {
            (None, 0xd800..=0xdbff) => {
                half = Some(code);
                continue;
            }
            (Some(first), 0xdc00..=0xdfff) => 0x1_0000 + ((first - 0xd800) << 10) + (code - 0xdc00),
            (Some(_), _) | (None, 0xdc00..=0xdfff) => {
                return Err(invalid("invalid Unicode surrogate pair"));
            }
            (None, code) => code,
        };
        match char::from_u32(code) {
            Some(character) if code != 0 => value.push(character),
            _ => return Err(invalid("invalid Unicode escape value")),
        }
    }
    match half {
        Some(_) => Err(invalid("invalid Unicode surrogate pair")),
        None => Ok(value),
    }
}

/// The character that UESCAPE names.
///
/// # Errors
/// 42601 for what cannot be one.
pub(super) fn escape_character(text: &str) -> Result<char, Error> {
    let mut characters = text.chars();
    let only = characters.next().filter(|_| characters.next().is_none());
    let may_be = |it: &char| {
        !it.is_ascii_hexdigit() && !matches!(it, '+' | '\'' | '"') && !it.is_ascii_whitespace()
    };
    let only = only.filter(may_be);
    only.ok_or_else(|| {
        invalid(&format!(
            "invalid Unicode escape character at or near \"'{text}'\""
        ))
    })
}

#[cold]
fn invalid(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_characters() {
        let value = |text| decoded(text, '\\').map_err(|error| error.message().to_owned());
        for (text, expected) in [
            ("d\\0061t\\+000061", "data"),
            ("\\\\", "\\"),
            ("\\d83d\\de00", "\u{1f600}"),
            ("\\+01f600ä", "\u{1f600}ä"),
        ] {
            assert_eq!(value(text).as_deref(), Ok(expected));
        }
        let pair = Err("invalid Unicode surrogate pair".to_owned());
        let escape = Err("invalid Unicode escape".to_owned());
        let number = Err("invalid Unicode escape value".to_owned());
        for text in ["\\d83d", "\\d83dx", "\\de00", "\\d83d\\0061"] {
            assert_eq!(value(text), pair, "{text}");
        }
        for text in ["\\", "\\00", "\\00ä1", "\\+0061", "\\xyzw"] {
            assert_eq!(value(text), escape, "{text}");
        }
        for text in ["\\0000", "\\+110000"] {
            assert_eq!(value(text), number, "{text}");
        }
        assert_eq!(decoded("d!0061!!", '!').as_deref().ok(), Some("da!"));
    }
}
