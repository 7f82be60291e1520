//! Texts as literals and as identifiers of SQL.

/// The text as a string literal of SQL.
pub(crate) fn quote_literal(text: &str) -> String {
    let escapes = if text.contains('\\') { "E" } else { "" };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push_str(escapes);
    quoted.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            quoted.push(character);
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}

/// The text as an identifier of SQL.
pub(crate) fn quote_identifier(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && text
            .chars()
            .all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_')
        && !crate::parse::is_quoted_when_printed(text);
    if is_plain {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('"', "\"\""))
    }
}
