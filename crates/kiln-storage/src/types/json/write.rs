//! Writing JSON.

use std::fmt::Write;

use super::canonical;
use super::reader::{Json, Node, read};
use crate::error::Result;

/// Appends a text as a JSON string, with its quotes.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Appends the canonical text of a JSONB value.
///
/// # Errors
/// As [`canonical`](canonical::canonical).
pub fn write(value: &Json<'_>, out: &mut String) -> Result<()> {
    canonical::append(value, out)
}

/// A JSONB value over several lines, as `jsonb_pretty` writes it.
///
/// # Errors
/// Those of [`read`].
pub fn pretty(text: &str) -> Result<String> {
    let mut out = String::new();
    lines(&read(text)?, 0, &mut out)?;
    Ok(out)
}

fn lines(value: &Json<'_>, depth: usize, out: &mut String) -> Result<()> {
    let indent = |depth: usize, out: &mut String| {
        out.push('\n');
        (0..depth * 4).for_each(|_| out.push(' '));
    };
    let close = match &value.node {
        Node::Array(_) => ']',
        Node::Object(_) => '}',
        _ => return write(value, out),
    };
    out.push(if close == ']' { '[' } else { '{' });
    for (position, element) in value.elements().into_iter().flatten().enumerate() {
        if position > 0 {
            out.push(',');
        }
        indent(depth + 1, out);
        lines(element, depth + 1, out)?;
    }
    for (position, (key, member)) in value.members().into_iter().flatten().enumerate() {
        if position > 0 {
            out.push(',');
        }
        indent(depth + 1, out);
        let _ = write!(out, "\"{key}\": ");
        lines(member, depth + 1, out)?;
    }
    indent(depth, out);
    out.push(close);
    Ok(())
}

/// Appends a value without the members of objects that are `null`, and without blanks.
pub fn without_nulls(value: &Json<'_>, out: &mut String) {
    match &value.node {
        Node::Array(elements) => {
            out.push('[');
            for (position, element) in elements.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                without_nulls(element, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            let kept = members
                .iter()
                .filter(|(_, member)| !matches!(member.node, Node::Null));
            for (position, (key, member)) in kept.enumerate() {
                if position > 0 {
                    out.push(',');
                }
                let _ = write!(out, "\"{key}\":");
                without_nulls(member, out);
            }
            out.push('}');
        }
        _ => out.push_str(value.text),
    }
}
