//! What the value of a setting may be, and how it is kept.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::datetime::{self, Interval, Zone};

use super::known::{Kind, known};
use crate::parse::IsolationLevel;

/// Bytes of a value of a client's own setting.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// A value as it is kept; `None` when it is the default.
pub(super) fn checked(name: &str, value: &str) -> Result<Option<String>> {
    let Some((_, shown, default, kind, _)) = known(name) else {
        let is_part = |part: &str| {
            let mut characters = part.chars();
            let is_first = |first: char| first.is_alphabetic() || first == '_';
            characters.next().is_some_and(is_first)
        };
        // As in PostgreSQL; those of Kiln are known.
        if !name.contains('.') || name.starts_with("kiln.") || !name.split('.').all(is_part) {
            return Err(unknown(name));
        }
        if value.len() > VALUE_BYTES_MAX {
            let message = format!("the value of \"{name}\" has more than {VALUE_BYTES_MAX} bytes");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        return Ok(Some(value.to_owned()));
    };
    let lower = value.trim().to_lowercase();
    let refused = || {
        let error = Error::unsupported(format!("{shown} = {value} is not supported"));
        error.with_hint(format!("It is always {default}."))
    };
    let invalid = |hint: Option<String>| {
        let message = format!("invalid value for parameter \"{shown}\": \"{value}\"");
        let error = Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    };
    let kept = match kind {
        Kind::Fixed(others) => {
            let is_same = lower == default.to_lowercase() || others.contains(&lower.as_str());
            match is_same {
                true => (*default).to_owned(),
                false => return Err(refused()),
            }
        }
        Kind::Zone => zone_of(value).ok_or_else(|| invalid(None))?,
        Kind::ReadOnly => {
            let message = format!("parameter \"{shown}\" cannot be changed");
            let state = SqlState::parse("55P02").unwrap_or(SqlState::INVALID_PARAMETER_VALUE);
            return Err(Error::new(state, message));
        }
        Kind::Boolean => match boolean(&lower) {
            Some(true) => "on".to_owned(),
            Some(false) => "off".to_owned(),
            None => {
                let message = format!("parameter \"{shown}\" requires a Boolean value");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        },
        Kind::Integer(least, most) => match lower.parse::<i64>() {
            Ok(number) if (*least..=*most).contains(&number) => number.to_string(),
            Ok(number) => {
                let message = format!(
                    "{number} is outside the valid range for parameter \"{shown}\" ({least} .. {most})"
                );
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            Err(_) => return Err(invalid(None)),
        },
        Kind::Real => match lower.parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => number.to_string(),
            Ok(number) => {
                let message =
                    format!("{number} is outside the valid range for parameter \"{shown}\"");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            Err(_) => return Err(invalid(None)),
        },
        Kind::Size(unit) => match kilobytes(value.trim(), *unit) {
            Some(kilobytes) => with_size(kilobytes),
            None => {
                let hint =
                    "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
                return Err(invalid(Some(hint.to_owned())));
            }
        },
        Kind::Duration => match milliseconds(&lower) {
            Some(milliseconds) => with_unit(milliseconds),
            None => {
                let hint =
                    "Valid units for this parameter are \"ms\", \"s\", \"min\", \"h\", and \"d\".";
                return Err(invalid(Some(hint.to_owned())));
            }
        },
        Kind::Word(words) if words.contains(&lower.as_str()) => match boolean(&lower) {
            Some(true) => "on".to_owned(),
            Some(false) => "off".to_owned(),
            None => lower,
        },
        Kind::Word(words) => {
            return Err(invalid(Some(format!(
                "Available values: {}.",
                words.join(", ")
            ))));
        }
        Kind::SchemaPath => match schemas_of(value) {
            Some(_) => value.to_owned(),
            None => {
                let error = invalid(None);
                return Err(error.with_detail("List syntax is invalid."));
            }
        },
        Kind::Isolation => match IsolationLevel::of(&lower) {
            Some(level) => level.name().to_owned(),
            None => return Err(invalid(None)),
        },
        Kind::Text if value.len() > VALUE_BYTES_MAX => {
            let message = format!("the value of \"{shown}\" has more than {VALUE_BYTES_MAX} bytes");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Kind::Text => value.to_owned(),
    };
    // What was asked for is kept even where it is the default: the session may have begun with
    // something else.
    Ok(Some(kept))
}

#[cold]
pub(in crate::database) fn unknown(name: &str) -> Error {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

/// The name of the time zone that a value says: a name, hours, or an interval of hours.
fn zone_of(value: &str) -> Option<String> {
    let interval = "interval";
    let is_interval = value.get(..interval.len());
    let named = match is_interval.is_some_and(|word| word.eq_ignore_ascii_case(interval)) {
        false => Zone::of_setting(value),
        true => {
            let quoted = value[interval.len()..].trim();
            let hours = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
            let Interval {
                months: 0,
                days: 0,
                microseconds,
            } = datetime::parse_interval(hours).ok()?
            else {
                return None;
            };
            let hours = microseconds as f64 / datetime::MICROSECONDS_PER_HOUR as f64;
            Zone::of_setting(&hours.to_string())
        }
    };
    named.ok().map(|(_, name)| name)
}

/// Whether a value is one of those that mean `on`.
pub(in crate::database) fn is_true(value: &str) -> bool {
    boolean(&value.trim().to_lowercase()) == Some(true)
}

fn boolean(word: &str) -> Option<bool> {
    match word {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// The names in the value of `search_path`: folded to lower case but where they are quoted. `None`
/// where it is no list of names.
pub(in crate::database) fn schemas_of(value: &str) -> Option<Vec<String>> {
    let (mut names, mut rest) = (Vec::new(), value.trim());
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let after = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"')?;
                names.push(quoted[..end].to_owned());
                quoted[end + 1..].trim_start()
            }
            None => {
                let end = rest.find([',', ' ']).unwrap_or(rest.len());
                if end == 0 {
                    return None;
                }
                names.push(rest[..end].to_lowercase());
                rest[end..].trim_start()
            }
        };
        match after.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => return after.is_empty().then_some(names),
        }
    }
}

/// Milliseconds, or a number with a unit; at most what PostgreSQL takes.
pub(super) fn milliseconds(value: &str) -> Option<u64> {
    let digits = value.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let factor = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let milliseconds = number.parse::<u64>().ok()?.checked_mul(factor)?;
    (milliseconds <= i32::MAX as u64).then_some(milliseconds)
}

/// Kilobytes of a size; a number alone counts `unit` kilobytes.
fn kilobytes(value: &str, unit: u64) -> Option<u64> {
    let digits = value.chars().take_while(char::is_ascii_digit).count();
    let (number, named) = value.split_at(digits);
    let number = number.parse::<u64>().ok()?;
    match named.trim() {
        "" => number.checked_mul(unit),
        "B" => Some(number >> 10),
        "kB" => Some(number),
        "MB" => number.checked_mul(1 << 10),
        "GB" => number.checked_mul(1 << 20),
        "TB" => number.checked_mul(1 << 30),
        _ => None,
    }
}

/// Kilobytes in the largest unit that keeps them whole, as PostgreSQL shows them.
fn with_size(kilobytes: u64) -> String {
    let units = [(1 << 30, "TB"), (1 << 20, "GB"), (1 << 10, "MB")];
    let whole = units
        .iter()
        .find(|(factor, _)| kilobytes > 0 && kilobytes.is_multiple_of(*factor));
    match whole {
        _ if kilobytes == 0 => "0".to_owned(),
        Some((factor, unit)) => format!("{}{unit}", kilobytes / factor),
        None => format!("{kilobytes}kB"),
    }
}

/// Milliseconds in the largest unit that keeps them whole, as PostgreSQL shows them.
pub(in crate::database) fn with_unit(milliseconds: u64) -> String {
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "min"),
        (1_000, "s"),
    ];
    let whole = units
        .iter()
        .find(|(factor, _)| milliseconds.is_multiple_of(*factor));
    match whole {
        _ if milliseconds == 0 => "0".to_owned(),
        Some((factor, unit)) => format!("{}{unit}", milliseconds / factor),
        None => format!("{milliseconds}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::all;
    use super::*;

    #[test]
    fn settings_take_their_defaults() {
        for (name, _, default, kind, _) in all() {
            if !matches!(kind, Kind::ReadOnly | Kind::Text) {
                assert_eq!(
                    checked(name, default),
                    Ok(Some((*default).to_owned())),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn times_are_shown_as_in_postgresql() {
        for (given, shown) in [
            ("0", "0"),
            ("1500", "1500ms"),
            ("90s", "90s"),
            ("60000", "1min"),
        ] {
            let milliseconds = milliseconds(given).expect("it is a time");
            assert_eq!(with_unit(milliseconds), shown);
        }
        for (given, shown) in [
            ("64kB", "64kB"),
            ("2048", "2MB"),
            ("1 GB", "1GB"),
            ("0", "0"),
        ] {
            assert_eq!(kilobytes(given, 1).map(with_size).as_deref(), Some(shown));
        }
        assert_eq!(kilobytes("8", 8).map(with_size).as_deref(), Some("64kB"));
        assert_eq!(kilobytes("3 lumps", 1), None);
        assert_eq!(milliseconds("5 weeks"), None);
        assert_eq!(milliseconds("99999999999"), None);
    }
}
