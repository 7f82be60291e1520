//! Parameters of statements, `$1` and so on.
//!
//! A parameter has the type of its value. PostgreSQL instead infers the type from the statement;
//! where that makes a difference, the value is written into the statement as a literal without
//! a type: always for NULL, and for text when the statement does not compile otherwise (`'2024-01-01'`
//! for a DATE).

use kiln_storage::types::{DataType, Value};

/// The types of parameters with these values.
pub(super) fn types(values: &[Value]) -> Vec<DataType> {
    values
        .iter()
        .map(|value| value.data_type().unwrap_or(DataType::Text))
        .collect()
}

/// The statement with the parameters that `is_literal` picks written as literals.
pub(super) fn inline(sql: &str, values: &[Value], is_literal: impl Fn(&Value) -> bool) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(character) = rest.chars().next() {
        let taken = match character {
            '\'' => quoted(rest, '\'', out.ends_with(['e', 'E'])),
            '"' => quoted(rest, '"', false),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment(rest),
            '$' if !out.ends_with(|last: char| last.is_alphanumeric() || last == '_') => {
                let digits = rest[1..].chars().take_while(char::is_ascii_digit).count();
                if digits > 0 {
                    let value = rest[1..=digits]
                        .parse::<usize>()
                        .ok()
                        .and_then(|number| values.get(number.checked_sub(1)?));
                    match value {
                        Some(value) if is_literal(value) => {
                            out.push_str(&literal(value));
                            rest = &rest[1 + digits..];
                            continue;
                        }
                        _ => 1 + digits,
                    }
                } else {
                    dollar_quoted(rest)
                }
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

fn literal(value: &Value) -> String {
    match value.to_text() {
        Some(text) => format!("'{}'", text.replace('\'', "''")),
        None => "NULL".to_owned(),
    }
}

/// The length of a quoted token, its quotes included.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut escaped = false;
    for (position, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if escapes && character == '\\' {
            escaped = true;
        } else if character == quote {
            // A doubled quote begins another token of the same kind, which is as good.
            return position + 1;
        }
    }
    text.len()
}

fn comment(text: &str) -> usize {
    let (mut depth, mut position) = (0_usize, 0);
    while position < text.len() {
        if text[position..].starts_with("/*") {
            depth += 1;
            position += 2;
        } else if text[position..].starts_with("*/") {
            depth -= 1;
            position += 2;
            if depth == 0 {
                return position;
            }
        } else {
            position += text[position..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a dollar-quoted string, or of the dollar alone.
fn dollar_quoted(text: &str) -> usize {
    let Some(end) = text[1..].find('$') else {
        return 1;
    };
    let tag = &text[..end + 2];
    if !tag[1..=end]
        .chars()
        .all(|character| character.is_alphanumeric() || character == '_')
    {
        return 1;
    }
    text[tag.len()..]
        .find(tag)
        .map_or(text.len(), |at| at + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_become_literals() {
        let values = [Value::Null, Value::from("it's"), Value::Integer(3)];
        let all = |_: &Value| true;
        assert_eq!(
            inline(
                "select $1, $2, $3, '$1', \"$1\", a$1 -- $1\n/* $1 /* */ $2 */ + $10",
                &values,
                all
            ),
            "select NULL, 'it''s', '3', '$1', \"$1\", a$1 -- $1\n/* $1 /* */ $2 */ + $10"
        );
        assert_eq!(
            inline("select $$ $1 $$, $x$ $1 $$ $x$, $1", &values, all),
            "select $$ $1 $$, $x$ $1 $$ $x$, NULL"
        );
        assert_eq!(
            inline("select E'\\'$1', 'é''$1', $1", &values, all),
            "select E'\\'$1', 'é''$1', NULL"
        );
        assert_eq!(
            inline("select $1, $3", &values, Value::is_null),
            "select NULL, $3"
        );
        assert_eq!(inline("select 'open $1", &values, all), "select 'open $1");
    }
}
