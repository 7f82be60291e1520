//! Strings and bytes.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::text::{self, LikePattern, Side};
use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfd, is_nfkc, is_nfkd};

use super::super::quote_identifier;
use super::super::quoting::quote_literal;
use super::cast::strict;
use super::{Named, check_length, int4, part_of, range_in, signatures};

fn push(heap: &mut Heap, text: &str) -> Result<Slot> {
    check_length(text.len())?;
    Ok(heap.push_str(text))
}

/// A normal form of Unicode.
#[derive(Clone, Copy)]
enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl Form {
    /// # Errors
    /// 22023 for a name that is none.
    fn named(name: &str) -> Result<Form> {
        Ok(match name.to_ascii_uppercase().as_str() {
            "NFC" => Form::Nfc,
            "NFD" => Form::Nfd,
            "NFKC" => Form::Nfkc,
            "NFKD" => Form::Nfkd,
            _ => {
                let message = format!("invalid normalization form: {name}");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        })
    }

    fn is_of(self, text: &str) -> bool {
        text.is_ascii()
            || match self {
                Form::Nfc => is_nfc(text),
                Form::Nfd => is_nfd(text),
                Form::Nfkc => is_nfkc(text),
                Form::Nfkd => is_nfkd(text),
            }
    }
}

fn normalized(heap: &mut Heap, text: Slot, form: Form) -> Result<Slot> {
    let whole = heap.str(text);
    if form.is_of(whole) {
        return Ok(text);
    }
    let normal: String = match form {
        Form::Nfc => whole.nfc().collect(),
        Form::Nfd => whole.nfd().collect(),
        Form::Nfkc => whole.nfkc().collect(),
        Form::Nfkd => whole.nfkd().collect(),
    };
    push(heap, &normal)
}

fn trimmed(heap: &Heap, text: Slot, characters: &str, side: Side) -> Slot {
    let whole = heap.str(text);
    part_of(
        heap,
        text,
        range_in(whole, text::trim(whole, characters, side)),
    )
}

fn trimmed_of(heap: &Heap, text: Slot, characters: Slot, side: Side) -> Slot {
    trimmed(heap, text, heap.str(characters), side)
}

fn sliced(heap: &Heap, text: Slot, part: &str) -> Slot {
    part_of(heap, text, range_in(heap.str(text), part))
}

/// The bytes from `start`, counted from 1, on, or as many as `length` says.
fn bytes_part(heap: &Heap, bytes: Slot, start: i64, length: Option<i64>) -> Result<Slot> {
    let whole = heap.bytes(bytes).len() as i64;
    let end = match length {
        Some(length) if length < 0 => {
            return Err(Error::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(length) => (start - 1 + length).clamp(0, whole),
        None => whole,
    };
    let from = (start - 1).clamp(0, end);
    Ok(part_of(heap, bytes, from as usize..end as usize))
}

/// The position of the first byte of `text` that is `byte`; eight bytes at a time.
fn find_byte(text: &[u8], byte: u8) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let wanted = u64::from_ne_bytes([byte; 8]);
    let (words, rest) = text.as_chunks::<8>();
    for (position, word) in words.iter().enumerate() {
        let difference = u64::from_le_bytes(*word) ^ wanted;
        // The lowest high bit that is left is that of the first zero byte.
        let zeros = difference.wrapping_sub(ONES) & !difference & HIGHS;
        if zeros != 0 {
            return Some(position * 8 + zeros.trailing_zeros() as usize / 8);
        }
    }
    let position = rest.iter().position(|known| *known == byte)?;
    Some(words.len() * 8 + position)
}

/// Whether `needle` occurs in `text`; no allocation, as it stands for the pattern `%needle%`.
fn contains(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, rest)) = needle.split_first() else {
        return true;
    };
    let mut at = 0;
    while at + needle.len() <= text.len() {
        let last = text.len() - rest.len();
        match find_byte(&text[at..last], *first) {
            None => return false,
            Some(offset) => {
                at += offset + 1;
                if text[at..].starts_with(rest) {
                    return true;
                }
            }
        }
    }
    false
}

/// Joins what is not NULL, with `separator` between.
fn joined(heap: &mut Heap, separator: Option<Slot>, parts: &[Slot]) -> Result<Slot> {
    let mut bytes = Vec::new();
    let mut is_first = true;
    for part in parts.iter().filter(|part| !part.is_null()) {
        if let Some(separator) = separator.filter(|_| !is_first) {
            bytes.extend_from_slice(heap.bytes(separator));
        }
        is_first = false;
        bytes.extend_from_slice(heap.bytes(*part));
        check_length(bytes.len())?;
    }
    Ok(heap.push_bytes(&bytes))
}

/// Declares builtins that see their NULLs.
macro_rules! lenient {
    ($($constant:ident = $name:literal, |$heap:ident, $arguments:ident| $body:expr;)*) => {
        $(pub(super) const $constant: Named = ($name, {
            fn function($heap: &mut Heap, $arguments: &[Slot]) -> Result<Slot> {
                let _ = &$heap;
                $body
            }
            function
        });)*
    };
}

/// How many of several values are NULL, or are not.
fn count_of(arguments: &[Slot], null: bool) -> Slot {
    let counted = arguments.iter().filter(|slot| slot.is_null() == null);
    Slot::from_i64(counted.count() as i64)
}

lenient! {
    CONCAT = "concat", |heap, arguments| joined(heap, None, arguments);
    CONCAT_WS = "concat_ws", |heap, arguments| match arguments {
        [separator, parts @ ..] if !separator.is_null() => joined(heap, Some(*separator), parts),
        _ => Ok(Slot::NULL),
    };
    NUM_NULLS = "num_nulls", |heap, arguments| Ok(count_of(arguments, true));
    NUM_NONNULLS = "num_nonnulls", |heap, arguments| Ok(count_of(arguments, false));
    QUOTE_NULLABLE = "quote_nullable", |heap, arguments| match arguments {
        [text] if !text.is_null() => {
            let quoted = quote_literal(heap.str(*text));
            push(heap, &quoted)
        }
        _ => Ok(heap.push_str("NULL")),
    };
}

strict! {
    LENGTH = "length", |heap, text| {
        Ok(Slot::from_i64(text::character_length(heap.str(text)) as i64))
    };
    OCTET_LENGTH = "octet_length", |heap, text| Ok(Slot::from_i64(heap.bytes(text).len() as i64));
    BIT_LENGTH = "bit_length", |heap, text| {
        Ok(Slot::from_i64(8 * heap.bytes(text).len() as i64))
    };
    LOWER = "lower", |heap, text| {
        let result = text::lower(heap.str(text));
        push(heap, &result)
    };
    UPPER = "upper", |heap, text| {
        let result = text::upper(heap.str(text));
        push(heap, &result)
    };
    INITCAP = "initcap", |heap, text| {
        let result = text::initcap(heap.str(text));
        push(heap, &result)
    };
    REVERSE = "reverse", |heap, text| {
        let result = text::reverse(heap.str(text));
        push(heap, &result)
    };
    NORMALIZE_NFC = "normalize", |heap, text| normalized(heap, text, Form::Nfc);
    NORMALIZE = "normalize", |heap, text, form| {
        let form = Form::named(heap.str(form))?;
        normalized(heap, text, form)
    };
    IS_NORMALIZED_NFC = "is_normalized", |heap, text| {
        Ok(Slot::from_bool(Form::Nfc.is_of(heap.str(text))))
    };
    IS_NORMALIZED = "is_normalized", |heap, text, form| {
        let form = Form::named(heap.str(form))?;
        Ok(Slot::from_bool(form.is_of(heap.str(text))))
    };
    SUBSTRING = "substring", |heap, text, start| {
        Ok(sliced(heap, text, text::substring(heap.str(text), int4(start), None)?))
    };
    SUBSTRING_FOR = "substring", |heap, text, start, length| {
        let part = text::substring(heap.str(text), int4(start), Some(int4(length)))?;
        Ok(sliced(heap, text, part))
    };
    BYTEA_SUBSTRING = "substring", |heap, bytes, start| {
        bytes_part(heap, bytes, i64::from(int4(start)), None)
    };
    BYTEA_SUBSTRING_FOR = "substring", |heap, bytes, start, length| {
        bytes_part(heap, bytes, i64::from(int4(start)), Some(i64::from(int4(length))))
    };
    BYTEA_POSITION = "position", |heap, bytes, needle| {
        let (whole, needle) = (heap.bytes(bytes), heap.bytes(needle));
        let found = (0..=whole.len()).find(|at| whole[*at..].starts_with(needle));
        Ok(Slot::from_i64(found.map_or(0, |at| at as i64 + 1)))
    };
    LEFT = "left", |heap, text, count| {
        // Of bytes that are characters each, as many as there are to be: nothing to count.
        let bytes = heap.bytes(text);
        if let Ok(count) = usize::try_from(int4(count)) {
            if bytes.len() <= count {
                return Ok(text);
            }
            if bytes[..count].is_ascii() {
                let (offset, _) = text.span();
                return Ok(Slot::from_span(offset as u32, count as u32));
            }
        }
        Ok(sliced(heap, text, text::left(heap.str(text), int4(count))))
    };
    RIGHT = "right", |heap, text, count| {
        Ok(sliced(heap, text, text::right(heap.str(text), int4(count))))
    };
    BTRIM = "btrim", |heap, text| Ok(trimmed(heap, text, " ", Side::Both));
    LTRIM = "ltrim", |heap, text| Ok(trimmed(heap, text, " ", Side::Leading));
    RTRIM = "rtrim", |heap, text| Ok(trimmed(heap, text, " ", Side::Trailing));
    BTRIM_OF = "btrim", |heap, text, characters| {
        Ok(trimmed_of(heap, text, characters, Side::Both))
    };
    LTRIM_OF = "ltrim", |heap, text, characters| {
        Ok(trimmed_of(heap, text, characters, Side::Leading))
    };
    RTRIM_OF = "rtrim", |heap, text, characters| {
        Ok(trimmed_of(heap, text, characters, Side::Trailing))
    };
    LPAD = "lpad", |heap, text, length| {
        let result = text::pad_left(heap.str(text), int4(length), " ")?;
        push(heap, &result)
    };
    LPAD_WITH = "lpad", |heap, text, length, fill| {
        let result = text::pad_left(heap.str(text), int4(length), heap.str(fill))?;
        push(heap, &result)
    };
    RPAD = "rpad", |heap, text, length| {
        let result = text::pad_right(heap.str(text), int4(length), " ")?;
        push(heap, &result)
    };
    RPAD_WITH = "rpad", |heap, text, length, fill| {
        let result = text::pad_right(heap.str(text), int4(length), heap.str(fill))?;
        push(heap, &result)
    };
    REPEAT = "repeat", |heap, text, count| {
        heap.spend(text.span().1.saturating_mul(int4(count).max(0) as usize))?;
        let result = text::repeat(heap.str(text), int4(count))?;
        push(heap, &result)
    };
    REPLACE = "replace", |heap, text, from, to| {
        let result = text::replace(heap.str(text), heap.str(from), heap.str(to))?;
        push(heap, &result)
    };
    STRPOS = "strpos", |heap, text, needle| {
        Ok(Slot::from_i64(i64::from(text::position(heap.str(text), heap.str(needle)))))
    };
    SPLIT_PART = "split_part", |heap, text, delimiter, field| {
        let whole = heap.str(text);
        let part = text::split_part(whole, heap.str(delimiter), int4(field))?;
        Ok(part_of(heap, text, range_in(whole, part)))
    };
    TRANSLATE = "translate", |heap, text, from, to| {
        let result = text::translate(heap.str(text), heap.str(from), heap.str(to));
        push(heap, &result)
    };
    OVERLAY = "overlay", |heap, text, new, start| {
        let result = text::overlay(heap.str(text), heap.str(new), int4(start), None)?;
        push(heap, &result)
    };
    OVERLAY_FOR = "overlay", |heap, text, new, start, length| {
        let result =
            text::overlay(heap.str(text), heap.str(new), int4(start), Some(int4(length)))?;
        push(heap, &result)
    };
    ASCII = "ascii", |heap, text| Ok(Slot::from_i64(i64::from(text::ascii(heap.str(text)))));
    CHR = "chr", |heap, code| {
        let character = text::chr(int4(code))?;
        Ok(heap.push_str(character.encode_utf8(&mut [0; 4])))
    };
    STARTS_WITH = "starts_with", |heap, text, prefix| {
        Ok(Slot::from_bool(heap.bytes(text).starts_with(heap.bytes(prefix))))
    };
    QUOTE_LITERAL = "quote_literal", |heap, text| {
        let quoted = quote_literal(heap.str(text));
        push(heap, &quoted)
    };
    QUOTE_IDENT = "quote_ident", |heap, text| {
        let quoted = quote_identifier(heap.str(text));
        push(heap, &quoted)
    };
    TO_HEX = "to_hex", |heap, value| {
        let text = format!("{:x}", value.as_i64());
        Ok(heap.push_str(&text))
    };
    TO_HEX_4 = "to_hex", |heap, value| {
        let text = format!("{:x}", value.as_i64() as i32);
        Ok(heap.push_str(&text))
    };
    ENCODE = "encode", |heap, bytes, form| {
        let text = text::encode(heap.bytes(bytes), heap.str(form))?;
        push(heap, &text)
    };
    DECODE = "decode", |heap, text, form| {
        let bytes = text::decode(heap.str(text), heap.str(form))?;
        Ok(heap.push_bytes(&bytes))
    };
    BYTEA_CONCAT = "byteacat", |heap, left, right| {
        check_length(heap.bytes(left).len() + heap.bytes(right).len())?;
        Ok(heap.concat(left, right))
    };

    LIKE = "like", |heap, text, pattern| {
        let matches = LikePattern::new(heap.str(pattern), false).matches(heap.str(text))?;
        Ok(Slot::from_bool(matches))
    };
    ILIKE = "ilike", |heap, text, pattern| {
        let matches = LikePattern::new(heap.str(pattern), true).matches(heap.str(text))?;
        Ok(Slot::from_bool(matches))
    };
    LIKE_ESCAPE = "like_escape", |heap, text, pattern, escape| {
        let pattern = LikePattern::with_escape(heap.str(pattern), heap.str(escape), false)?;
        Ok(Slot::from_bool(pattern.matches(heap.str(text))?))
    };
    ILIKE_ESCAPE = "ilike_escape", |heap, text, pattern, escape| {
        let pattern = LikePattern::with_escape(heap.str(pattern), heap.str(escape), true)?;
        Ok(Slot::from_bool(pattern.matches(heap.str(text))?))
    };
    CONTAINS = "like_contains", |heap, text, needle| {
        Ok(Slot::from_bool(contains(heap.bytes(text), heap.bytes(needle))))
    };
    ENDS_WITH = "like_ends_with", |heap, text, suffix| {
        Ok(Slot::from_bool(heap.bytes(text).ends_with(heap.bytes(suffix))))
    };
}

/// The function for a LIKE with this pattern, where known, and what takes the pattern's place.
pub(in super::super) fn like(
    pattern: Option<&str>,
    ignore_case: bool,
    has_escape: bool,
) -> (Named, Option<String>) {
    if has_escape {
        return (
            if ignore_case {
                ILIKE_ESCAPE
            } else {
                LIKE_ESCAPE
            },
            None,
        );
    }
    if ignore_case {
        return (ILIKE, None);
    }
    if let Some(pattern) = pattern.filter(|pattern| !pattern.contains(['\\', '_'])) {
        let inside = pattern.trim_start_matches('%').trim_end_matches('%');
        let (leading, trailing) = (pattern.starts_with('%'), pattern.ends_with('%'));
        if !inside.contains('%') && !inside.is_empty() {
            let inside = Some(inside.to_owned());
            match (leading, trailing) {
                (true, true) => return (CONTAINS, inside),
                (false, true) => return (STARTS_WITH, inside),
                (true, false) => return (ENDS_WITH, inside),
                (false, false) => {}
            }
        }
    }
    (LIKE, None)
}

/// The concatenation of bytes.
pub(in super::super) const fn bytea_concat() -> Named {
    BYTEA_CONCAT
}

signatures! {
    "length"(Text) -> Int4 = LENGTH;
    "length"(Bytea) -> Int4 = OCTET_LENGTH;
    "char_length"(Text) -> Int4 = LENGTH;
    "character_length"(Text) -> Int4 = LENGTH;
    "octet_length"(Text) -> Int4 = OCTET_LENGTH;
    "octet_length"(Bytea) -> Int4 = OCTET_LENGTH;
    "bit_length"(Text) -> Int4 = BIT_LENGTH;
    "bit_length"(Bytea) -> Int4 = BIT_LENGTH;
    "lower"(Text) -> Text = LOWER;
    "upper"(Text) -> Text = UPPER;
    "initcap"(Text) -> Text = INITCAP;
    "reverse"(Text) -> Text = REVERSE;
    "normalize"(Text) -> Text = NORMALIZE_NFC;
    "normalize"(Text, Text) -> Text = NORMALIZE;
    "is_normalized"(Text) -> Boolean = IS_NORMALIZED_NFC;
    "is_normalized"(Text, Text) -> Boolean = IS_NORMALIZED;
    "substring"(Text, Int4) -> Text = SUBSTRING;
    "substring"(Text, Int4, Int4) -> Text = SUBSTRING_FOR;
    "substring"(Bytea, Int4) -> Bytea = BYTEA_SUBSTRING;
    "substring"(Bytea, Int4, Int4) -> Bytea = BYTEA_SUBSTRING_FOR;
    "substr"(Bytea, Int4) -> Bytea = BYTEA_SUBSTRING;
    "substr"(Bytea, Int4, Int4) -> Bytea = BYTEA_SUBSTRING_FOR;
    "position"(Bytea, Bytea) -> Int4 = BYTEA_POSITION;
    "substr"(Text, Int4) -> Text = SUBSTRING;
    "substr"(Text, Int4, Int4) -> Text = SUBSTRING_FOR;
    "left"(Text, Int4) -> Text = LEFT;
    "right"(Text, Int4) -> Text = RIGHT;
    "btrim"(Text) -> Text = BTRIM;
    "btrim"(Text, Text) -> Text = BTRIM_OF;
    "ltrim"(Text) -> Text = LTRIM;
    "ltrim"(Text, Text) -> Text = LTRIM_OF;
    "rtrim"(Text) -> Text = RTRIM;
    "rtrim"(Text, Text) -> Text = RTRIM_OF;
    "lpad"(Text, Int4) -> Text = LPAD;
    "lpad"(Text, Int4, Text) -> Text = LPAD_WITH;
    "rpad"(Text, Int4) -> Text = RPAD;
    "rpad"(Text, Int4, Text) -> Text = RPAD_WITH;
    "repeat"(Text, Int4) -> Text = REPEAT;
    "replace"(Text, Text, Text) -> Text = REPLACE;
    "strpos"(Text, Text) -> Int4 = STRPOS;
    "position"(Text, Text) -> Int4 = STRPOS;
    "split_part"(Text, Text, Int4) -> Text = SPLIT_PART;
    "translate"(Text, Text, Text) -> Text = TRANSLATE;
    "overlay"(Text, Text, Int4) -> Text = OVERLAY;
    "overlay"(Text, Text, Int4, Int4) -> Text = OVERLAY_FOR;
    "ascii"(Text) -> Int4 = ASCII;
    "chr"(Int4) -> Text = CHR;
    "starts_with"(Text, Text) -> Boolean = STARTS_WITH;
    "quote_literal"(Text) -> Text = QUOTE_LITERAL;
    "quote_nullable"(Text) -> Text = QUOTE_NULLABLE;
    "quote_ident"(Text) -> Text = QUOTE_IDENT;
    "to_hex"(Int4) -> Text = TO_HEX_4;
    "to_hex"(Int8) -> Text = TO_HEX;
    "encode"(Bytea, Text) -> Text = ENCODE;
    "decode"(Text, Text) -> Bytea = DECODE;
    "num_nulls"(AnyText) -> Int4 = NUM_NULLS;
    "num_nonnulls"(AnyText) -> Int4 = NUM_NONNULLS;
    "concat"(AnyText) -> Text = CONCAT;
    "concat_ws"(Text, AnyText) -> Text = CONCAT_WS;
}
