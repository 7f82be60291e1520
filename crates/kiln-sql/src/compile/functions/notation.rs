//! Texts in notations of their own: identifiers, Unicode escapes, sizes, objects as lists.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, Decimal, json};

use super::array::check_elements;
use super::cast::strict;
use super::{Function, Named, Signature, Ty, check_length};
use kiln_storage::types::json::canonical;

/// The names of an identifier with dots, as SQL reads them.
fn identifiers(text: &str, is_strict: bool) -> Result<Vec<String>> {
    let invalid = |detail: &str| {
        let message = format!("string is not a valid identifier: \"{text}\"");
        let error = Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        match detail {
            "" => error,
            detail => error.with_detail(detail),
        }
    };
    let is_blank = |letter: char| matches!(letter, ' ' | '\t' | '\n' | '\r' | '\x0c');
    let is_start =
        |letter: char| letter == '_' || letter.is_ascii_alphabetic() || !letter.is_ascii();
    let is_part = |letter: char| is_start(letter) || letter.is_ascii_digit() || letter == '$';
    let (mut names, mut rest) = (Vec::new(), text.trim_start_matches(is_blank));
    let mut is_after_dot = false;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut left = quoted;
            loop {
                let Some(end) = left.find('"') else {
                    return Err(invalid("String has unclosed double quotes."));
                };
                name.push_str(&left[..end]);
                left = &left[end + 1..];
                match left.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        left = more;
                    }
                    None => break,
                }
            }
            if name.is_empty() {
                return Err(invalid("Quoted identifier must not be empty."));
            }
            names.push(name);
            rest = left;
        } else if rest.starts_with(is_start) {
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            names.push(rest[..end].to_ascii_lowercase());
            rest = &rest[end..];
        } else {
            return Err(invalid(match (rest.starts_with('.'), is_after_dot) {
                (true, _) => "No valid identifier before \".\".",
                (_, true) => "No valid identifier after \".\".",
                _ => "",
            }));
        }
        rest = rest.trim_start_matches(is_blank);
        match rest.strip_prefix('.') {
            Some(more) => {
                is_after_dot = true;
                rest = more.trim_start_matches(is_blank);
            }
            None if rest.is_empty() || !is_strict => return Ok(names),
            None => return Err(invalid("")),
        }
    }
}

fn parse_ident(heap: &mut Heap, text: Slot, is_strict: bool) -> Result<Slot> {
    let names = identifiers(heap.str(text), is_strict)?;
    let names: Vec<Slot> = names.iter().map(|name| heap.push_str(name)).collect();
    Ok(heap.push_array(&names))
}

/// The text with its Unicode escapes as the characters that they stand for.
fn unescaped(text: &str) -> Result<String> {
    let invalid_pair = || Error::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut high) = (text, None);
    while let Some(at) = rest.find('\\') {
        if high.is_some() && at > 0 {
            return Err(invalid_pair());
        }
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(more) = rest.strip_prefix('\\') {
            if high.is_some() {
                return Err(invalid_pair());
            }
            out.push('\\');
            rest = more;
            continue;
        }
        let (skipped, digits) = match rest.as_bytes().first() {
            Some(b'+') => (1, 6),
            Some(b'u') => (1, 4),
            Some(b'U') => (1, 8),
            _ => (0, 4),
        };
        let written = rest.get(skipped..skipped + digits);
        let written = written.filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = written.and_then(|it| u32::from_str_radix(it, 16).ok());
        let Some(code) = code else {
            let hint = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.";
            let message = "invalid Unicode escape";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message).with_hint(hint));
        };
        rest = &rest[skipped + digits..];
        let code = match (high.take(), code) {
            (Some(high), 0xdc00..=0xdfff) => {
                0x1_0000_u32 + ((high - 0xd800) << 10) + (code - 0xdc00)
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(invalid_pair()),
            (None, 0xd800..=0xdbff) => {
                high = Some(code);
                continue;
            }
            (None, code) => code,
        };
        match char::from_u32(code).filter(|letter| *letter != '\0') {
            Some(letter) => out.push(letter),
            None => {
                let message = format!("invalid Unicode code point: {code:04X}");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
    }
    if high.is_some() {
        return Err(invalid_pair());
    }
    out.push_str(rest);
    Ok(out)
}

/// The bytes of a size such as `1.5 GB`.
fn size_in_bytes(text: &str) -> Result<i64> {
    let invalid = || {
        let message = format!("invalid size: \"{text}\"");
        Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
    };
    let trimmed = text.trim_matches(|letter: char| letter.is_ascii_whitespace());
    let unsigned = trimmed.trim_start_matches(['+', '-']);
    let sign = trimmed.len() - unsigned.len();
    let is_of_number = |at: usize, letter: char| {
        letter.is_ascii_digit()
            || letter == '.'
            || (matches!(letter, 'e' | 'E') && {
                let rest = &unsigned[at + 1..];
                let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
                rest.starts_with(|digit: char| digit.is_ascii_digit())
            })
            || (matches!(letter, '+' | '-')
                && at > 0
                && matches!(unsigned.as_bytes()[at - 1], b'e' | b'E'))
    };
    let mut letters = unsigned.char_indices();
    let end = letters.find(|(at, letter)| !is_of_number(*at, *letter));
    let end = end.map_or(unsigned.len(), |(at, _)| at);
    let number = &unsigned[..end];
    if sign > 1 || !number.bytes().any(|letter| letter.is_ascii_digit()) {
        return Err(invalid());
    }
    let number: Decimal = format!("{}{number}", &trimmed[..sign])
        .trim_start_matches('+')
        .parse()
        .map_err(|_| invalid())?;
    let unit = unsigned[end..].trim_start().to_ascii_lowercase();
    let shift = match unit.as_str() {
        "" | "bytes" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        "pb" => 50,
        _ => {
            let unit = unsigned[end..].trim_start();
            return Err(invalid()
                .with_detail(format!("Invalid size unit: \"{unit}\"."))
                .with_hint(
                    "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".",
                ));
        }
    };
    number.try_mul(Decimal::new(1_i128 << shift, 0)?)?.to_i64()
}

/// An object of keys and values, each a text or NULL.
fn object(heap: &Heap, keys: &[Slot], values: &[Slot]) -> Result<String> {
    let mut text = String::from("{");
    for (key, value) in keys.iter().zip(values) {
        if key.is_null() {
            let message = "null value not allowed for object key";
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        if text.len() > 1 {
            text.push_str(", ");
        }
        json::quote(heap.str(*key), &mut text);
        text.push_str(" : ");
        match value.is_null() {
            true => text.push_str("null"),
            false => json::quote(heap.str(*value), &mut text),
        }
        check_length(text.len())?;
    }
    text.push('}');
    Ok(text)
}

/// An object of the elements of a list: each key with its value behind it.
fn object_of_list(heap: &Heap, list: Slot) -> Result<String> {
    let (pairs, rest) = heap.array(list).as_chunks::<2>();
    if !rest.is_empty() {
        let message = "array must have even number of elements";
        return Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    }
    let keys: Vec<Slot> = pairs.iter().map(|pair| pair[0]).collect();
    let values: Vec<Slot> = pairs.iter().map(|pair| pair[1]).collect();
    object(heap, &keys, &values)
}

fn object_of_lists(heap: &Heap, keys: Slot, values: Slot) -> Result<String> {
    let (keys, values) = (heap.array(keys), heap.array(values));
    if keys.len() != values.len() {
        let message = "mismatched array dimensions";
        return Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    }
    object(heap, keys, values)
}

/// `array_fill(value, lengths)` of one dimension; the value may be NULL.
pub(in super::super) const ARRAY_FILL: Named = ("array_fill", |heap, arguments| {
    let [value, lengths] = arguments else {
        return Ok(Slot::NULL);
    };
    let null = |what: &str| {
        let message = format!("{what} cannot be null");
        Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
    };
    if lengths.is_null() {
        return null("dimension array or low bound array");
    }
    let length = match heap.array(*lengths) {
        [] => 0,
        [length] if length.is_null() => return null("dimension values"),
        [length] => length.as_i64(),
        _ => return Err(Error::unsupported("an array of more than one dimension")),
    };
    let count = usize::try_from(length).unwrap_or(usize::MAX);
    check_elements(count)?;
    Ok(heap.push_array(&vec![*value; count]))
});

strict! {
    PARSE_IDENT = "parse_ident", |heap, text| parse_ident(heap, text, true);
    PARSE_IDENT_STRICT = "parse_ident", |heap, text, is_strict| {
        parse_ident(heap, text, is_strict.as_bool())
    };
    UNISTR = "unistr", |heap, text| {
        let text = unescaped(heap.str(text))?;
        Ok(heap.push_str(&text))
    };
    SIZE_BYTES = "pg_size_bytes", |heap, text| {
        Ok(Slot::from_i64(size_in_bytes(heap.str(text))?))
    };
    JSON_OBJECT = "json_object", |heap, list| {
        let text = object_of_list(heap, list)?;
        Ok(heap.push_str(&text))
    };
    JSON_OBJECT_OF_LISTS = "json_object", |heap, keys, values| {
        let text = object_of_lists(heap, keys, values)?;
        Ok(heap.push_str(&text))
    };
    JSONB_OBJECT = "jsonb_object", |heap, list| {
        let text = canonical(&object_of_list(heap, list)?)?;
        Ok(heap.push_str(&text))
    };
    JSONB_OBJECT_OF_LISTS = "jsonb_object", |heap, keys, values| {
        let text = canonical(&object_of_lists(heap, keys, values)?)?;
        Ok(heap.push_str(&text))
    };
}

const JSON: Ty = Ty::Catalog(CatalogType::Json);
const JSONB: Ty = Ty::Catalog(CatalogType::Jsonb);

const fn of(name: &'static str, arguments: &'static [Ty], result: Ty, named: Named) -> Signature {
    Signature {
        name,
        arguments,
        result,
        function: Function::Scalar(named.1),
        volatile: false,
    }
}

pub(super) static SIGNATURES: &[Signature] = &[
    of("parse_ident", &[Ty::Text], Ty::TextArray, PARSE_IDENT),
    of(
        "parse_ident",
        &[Ty::Text, Ty::Boolean],
        Ty::TextArray,
        PARSE_IDENT_STRICT,
    ),
    of("unistr", &[Ty::Text], Ty::Text, UNISTR),
    of("pg_size_bytes", &[Ty::Text], Ty::Int8, SIZE_BYTES),
    of("json_object", &[Ty::TextArray], JSON, JSON_OBJECT),
    of(
        "json_object",
        &[Ty::TextArray, Ty::TextArray],
        JSON,
        JSON_OBJECT_OF_LISTS,
    ),
    of("jsonb_object", &[Ty::TextArray], JSONB, JSONB_OBJECT),
    of(
        "jsonb_object",
        &[Ty::TextArray, Ty::TextArray],
        JSONB,
        JSONB_OBJECT_OF_LISTS,
    ),
];
