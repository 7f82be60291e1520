//! `format()`.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};

use super::super::quoting::{quote_identifier, quote_literal};
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
            (_, false) => quote_literal(heap.str(*argument)),
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

pub(super) const FORMAT: Named = ("format", {
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

signatures! {
    "format"(Text) -> Text = FORMAT;
    "format"(Text, AnyText) -> Text = FORMAT;
}
