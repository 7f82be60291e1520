//! `format()` and `to_char` of numbers.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::Number;

use super::super::quoting::{quote_identifier, quote_literal};
use super::cast::strict;
use super::{Named, check_length, signatures};

#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// `format(template, …)` with `%s`, `%I`, `%L`, `%%`, positions (`%1$s`) and widths (`%-5s`).
fn format_text(heap: &Heap, template: &str, arguments: &[Slot]) -> Result<String> {
    let mut out = String::new();
    let mut next = 0;
    let mut rest = template.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            out.push('%');
            continue;
        }
        let mut number: Option<usize> = None;
        let digits =
            |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<usize>> {
                let mut value = None;
                while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
                    rest.next();
                    let raised = value.unwrap_or(0_usize) * 10 + digit as usize;
                    if raised > 0x3fff_ffff {
                        return Err(Error::new(
                            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                            "number is out of range",
                        ));
                    }
                    value = Some(raised);
                }
                Ok(value)
            };
        let mut width = digits(&mut rest)?;
        let mut left_aligned = false;
        if width.is_some() && rest.peek() == Some(&'$') {
            rest.next();
            number = width.take();
        }
        if width.is_none() && rest.peek() == Some(&'-') {
            rest.next();
            left_aligned = true;
        }
        if width.is_none() {
            width = digits(&mut rest)?;
        }
        let Some(kind) = rest.next() else {
            return Err(invalid("unterminated format() type specifier")
                .with_hint("For a single \"%\" use \"%%\"."));
        };
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(
                invalid(format!("unrecognized format() type specifier \"{kind}\""))
                    .with_hint("For a single \"%\" use \"%%\"."),
            );
        }
        let index = match number {
            Some(0) => {
                return Err(invalid(
                    "format specifies argument 0, but arguments are numbered from 1",
                ));
            }
            Some(number) => number - 1,
            None => next,
        };
        next = index + 1;
        let Some(argument) = arguments.get(index) else {
            return Err(invalid("too few arguments for format()"));
        };
        let text = match (kind, argument.is_null()) {
            ('s', true) => String::new(),
            ('I', true) => {
                return Err(Error::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            (_, true) => "NULL".to_owned(),
            ('s', false) => heap.str(*argument).to_owned(),
            ('I', false) => quote_identifier(heap.str(*argument)),
            (_, false) => quote_literal(heap.str(*argument)).trim_start().to_owned(),
        };
        let missing = width.unwrap_or(0).saturating_sub(text.chars().count());
        check_length(out.len().saturating_add(text.len()).saturating_add(missing))?;
        let padding = " ".repeat(missing);
        if left_aligned {
            out.push_str(&text);
            out.push_str(&padding);
        } else {
            out.push_str(&padding);
            out.push_str(&text);
        }
    }
    Ok(out)
}

const FORMAT: Named = ("format", {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        let [template, arguments @ ..] = arguments else {
            return Ok(Slot::NULL);
        };
        if template.is_null() {
            return Ok(Slot::NULL);
        }
        let text = format_text(heap, heap.str(*template), arguments)?;
        Ok(heap.push_str(&text))
    }
    function
});

/// A number printed by a template of `9`, `0`, `.`, `,`, `FM`, `S`, `MI`, `D`, `G`, `L` is not
/// among them.
fn number_text(value: &Number, template: &str) -> Result<String> {
    let mut fill = true;
    let mut sign_anywhere = false;
    let mut minus_at_end = false;
    let mut pattern = template;
    if let Some(rest) = pattern
        .strip_prefix("FM")
        .or_else(|| pattern.strip_prefix("fm"))
    {
        fill = false;
        pattern = rest;
    }
    let upper = pattern.to_ascii_uppercase();
    let mut body = upper.as_str();
    let mut sign_at_end = false;
    if let Some(rest) = body.strip_prefix('S') {
        sign_anywhere = true;
        body = rest;
    } else if let Some(rest) = body.strip_suffix("MI") {
        minus_at_end = true;
        body = rest;
    } else if let Some(rest) = body.strip_suffix('S') {
        sign_anywhere = true;
        sign_at_end = true;
        body = rest;
    }
    if let Some(strange) = body
        .chars()
        .find(|character| !matches!(character, '9' | '0' | '.' | ',' | 'D' | 'G'))
    {
        return Err(Error::unsupported(format!(
            "the template pattern \"{strange}\" of to_char for numbers is not supported"
        )));
    }
    let (whole, fraction) = match body.find(['.', 'D']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let places = fraction.map_or(0, str::len);
    let rounded = value.round(places as i32)?;
    let text = rounded.abs().to_string();
    let (digits, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let digits = if digits == "0" && places > 0 {
        ""
    } else {
        digits
    };
    let room = whole
        .chars()
        .filter(|character| matches!(character, '9' | '0'))
        .count();
    let overflows = digits.len() > room;
    // Digits are printed from the first 0 of the template on, or from the first digit.
    let first_zero = whole.find('0').map(|at| {
        whole[at..]
            .chars()
            .filter(|character| matches!(character, '9' | '0'))
            .count()
    });
    let printed = first_zero.unwrap_or(0).max(digits.len());
    let mut left = String::new();
    let mut slot = room;
    for character in whole.chars() {
        match character {
            '9' | '0' => {
                if overflows {
                    left.push('#');
                } else if slot <= printed {
                    let from_end = slot;
                    let digit = digits
                        .len()
                        .checked_sub(from_end)
                        .and_then(|at| digits.as_bytes().get(at))
                        .map_or('0', |byte| *byte as char);
                    left.push(digit);
                } else if fill {
                    left.push(' ');
                }
                slot -= 1;
            }
            _ if slot < printed => left.push(','),
            _ if fill => left.push(' '),
            _ => {}
        }
    }
    let negative = rounded.is_negative() && !rounded.is_zero();
    let spaces = left.len() - left.trim_start_matches(' ').len();
    let body_left = &left[spaces..];
    let mut right = String::new();
    // NaN and the infinities stand where the whole digits do.
    if let Some(fraction) = fraction.filter(|_| overflows || value.is_finite()) {
        right.push('.');
        if overflows {
            right.push_str(&"#".repeat(fraction.len()));
        } else {
            right.push_str(decimals);
            if !fill {
                // FM drops zeros that stand for a 9.
                let kept = fraction.rfind('0').map_or(0, |at| at + 1);
                while right.len() - 1 > kept && right.ends_with('0') {
                    right.pop();
                }
            }
        }
    }
    let sign = if sign_anywhere {
        if negative { "-" } else { "+" }
    } else if minus_at_end {
        ""
    } else if negative {
        "-"
    } else if fill {
        " "
    } else {
        ""
    };
    let padding = " ".repeat(spaces);
    let mut out = if sign_at_end {
        format!("{padding}{body_left}{right}{sign}")
    } else {
        format!("{padding}{sign}{body_left}{right}")
    };
    if minus_at_end {
        match (negative, fill) {
            (true, _) => out.push('-'),
            (false, true) => out.push(' '),
            (false, false) => {}
        }
    }
    Ok(out)
}

strict! {
    TO_CHAR_DECIMAL = "to_char", |heap, value, template| {
        let text = number_text(&heap.number(value), heap.str(template))?;
        Ok(heap.push_str(&text))
    };
    TO_CHAR_INTEGER = "to_char", |heap, value, template| {
        let text = number_text(&Number::from(value.as_i64()), heap.str(template))?;
        Ok(heap.push_str(&text))
    };
    TO_CHAR_DOUBLE = "to_char", |heap, value, template| {
        let text = number_text(&Number::from_f64(value.as_f64())?, heap.str(template))?;
        Ok(heap.push_str(&text))
    };
}

signatures! {
    "format"(Text) -> Text = FORMAT;
    "format"(Text, AnyText) -> Text = FORMAT;
    "to_char"(Numeric, Text) -> Text = TO_CHAR_DECIMAL;
    "to_char"(Int4, Text) -> Text = TO_CHAR_INTEGER;
    "to_char"(Int8, Text) -> Text = TO_CHAR_INTEGER;
    "to_char"(Double, Text) -> Text = TO_CHAR_DOUBLE;
}
