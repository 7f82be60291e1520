//! Settings in a file: TOML with a line for each, `listen = "127.0.0.1:5432"`.

use std::collections::BTreeMap;
use std::path::Path;

use kiln_platform::file;
use toml::de::{DeTable, DeValue};

use super::table::SETTINGS;

/// A setting's value in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As the flag would have it.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// Reads a file of settings.
///
/// # Errors
/// A sentence with the file and the line: for a file that cannot be read, or is no TOML, and for a
/// setting that is not known or cannot have that value.
pub fn read(path: &Path) -> Result<BTreeMap<&'static str, Entry>, String> {
    let text = file::read_to_string(path).map_err(|error| format!("cannot read {error}"))?;
    parse(&text).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<&'static str, Entry>, (usize, String)> {
    let line_of = |offset: usize| 1 + text[..offset.min(text.len())].matches('\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        (line_of(offset), error.message().to_owned())
    })?;
    let mut entries = BTreeMap::new();
    for (name, value) in table.get_ref() {
        let line = line_of(name.span().start);
        let known = SETTINGS
            .iter()
            .find(|setting| setting.name == name.get_ref());
        let setting = known.ok_or_else(|| (line, unknown(name.get_ref())))?;
        let text = as_text(value.get_ref()).ok_or_else(|| {
            let why = "it is a text, a number, true or false, or a list of texts";
            (line, format!("{}: {why}", setting.name))
        })?;
        (setting.check)(&text).map_err(|why| (line, format!("{}: {why}", setting.name)))?;
        entries.insert(setting.name, Entry { text, line });
    }
    Ok(entries)
}

/// The value as a flag would have it.
fn as_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Array(values) => {
            let texts: Option<Vec<&str>> = (values.iter())
                .map(|value| match value.get_ref() {
                    DeValue::String(text) => Some(&**text),
                    _ => None,
                })
                .collect();
            Some(texts?.join(","))
        }
        _ => None,
    }
}

/// Says that there is no such setting, and which one may be meant.
fn unknown(name: &str) -> String {
    let nearest = SETTINGS.iter().min_by_key(|it| distance(it.name, name));
    let nearest = nearest.map_or("", |setting| setting.name);
    format!("there is no setting {name}; the nearest is {nearest}")
}

/// How many characters have to be put in, taken away or changed to make one name of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, character) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, theirs) in other.iter().enumerate() {
            let changed = diagonal + usize::from(character != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_that_flags_would_have() {
        let text = "# a comment\nlisten = [\"127.0.0.1:1\", \"[::1]:2\"]\nconnections = 7\n\ntls_required = true\nlog_slow = \"1s\"\n";
        let entries = parse(text).expect("it is right");
        let found: Vec<(&str, &str, usize)> = entries
            .iter()
            .map(|(name, it)| (*name, it.text.as_str(), it.line))
            .collect();
        let expected = [
            ("connections", "7", 3),
            ("listen", "127.0.0.1:1,[::1]:2", 2),
            ("log_slow", "1s", 6),
            ("tls_required", "true", 5),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, line, part) in [
            (
                "\nlisen = \"x\"",
                2,
                "there is no setting lisen; the nearest is listen",
            ),
            (
                "connections = 7\n\nlog-slow = \"1s\"",
                3,
                "the nearest is log_slow",
            ),
            (
                "\n\n[server]\nlisten = \"127.0.0.1:1\"",
                3,
                "there is no setting server",
            ),
            (
                "connections = 0",
                1,
                "connections: it is a number from 1 to 60000",
            ),
            (
                "connections = 1.5",
                1,
                "connections: it is a text, a number",
            ),
            ("listen = \"a\"\n= 3", 2, ""),
            ("auth = \"trust\"\nauth = \"trust\"", 2, "duplicate key"),
        ] {
            let (found, why) = parse(text).expect_err(text);
            assert!(
                found == line && why.contains(part),
                "{text}: {found}: {why}"
            );
        }
    }
}
