//! Settings of a session: what can be set, to which values, and until when.
//!
//! Many settings of PostgreSQL have one value here, which is what most clients ask for at their start. That is taken, and what asks for
//! something else is refused. A setting with a point in its name that is not known belongs to the client, as in PostgreSQL.

use std::collections::BTreeMap;
use std::time::Duration;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::datetime::{self, Interval};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{self, ContextModifier, Expr, Set};

use super::result::{ResultSet, StatementResult};
use crate::compile::{quote_identifier, unsupported};
use crate::parse::TransactionMode;

/// A setting: its name in lower case, as PostgreSQL writes it, its default, its values and what it is for.
type Known = (&'static str, &'static str, &'static str, Kind, &'static str);

/// Which values a setting takes.
#[derive(Clone, Copy)]
enum Kind {
    /// Its default and these other words for it, in lower case.
    Fixed(&'static [&'static str]),
    /// A time zone, which must be UTC.
    Zone,
    /// None: it says what is so.
    ReadOnly,
    Boolean,
    /// Numbers from the first to the second.
    Integer(i64, i64),
    /// Milliseconds, or a number with a unit; 0 for none.
    Duration,
    /// One of these.
    Word(&'static [&'static str]),
    /// A list of schemas, of which only one has tables.
    SchemaPath,
    /// Whatever is asked for is taken, and serializable is given.
    Isolation,
    Text,
}

const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error",
];

/// The version of PostgreSQL that clients take the server for.
pub(crate) const SERVER_VERSION: &str = "15.0 (Kiln)";

/// Names in lower case, as PostgreSQL writes them, defaults, values, and descriptions; by name.
const KNOWN: &[Known] = &[
    (
        "application_name",
        "application_name",
        "",
        Kind::Text,
        "The name of the client's program, for reports.",
    ),
    (
        "backslash_quote",
        "backslash_quote",
        "safe_encoding",
        Kind::Fixed(&["on"]),
        "How \\' is read in texts that begin with E.",
    ),
    (
        "bytea_output",
        "bytea_output",
        "hex",
        Kind::Fixed(&[]),
        "How bytes are written.",
    ),
    (
        "check_function_bodies",
        "check_function_bodies",
        "on",
        Kind::Boolean,
        "Taken for pg_dump; bodies are always checked.",
    ),
    (
        "client_encoding",
        "client_encoding",
        "UTF8",
        Kind::Fixed(&["utf-8", "unicode", "'utf-8'"]),
        "The encoding of the client's texts.",
    ),
    (
        "client_min_messages",
        "client_min_messages",
        "notice",
        Kind::Word(LEVELS),
        "Messages below this level are not sent.",
    ),
    (
        "datestyle",
        "DateStyle",
        "ISO, MDY",
        Kind::Fixed(&["iso", "iso, us", "iso,mdy"]),
        "How dates are written and read.",
    ),
    (
        "default_table_access_method",
        "default_table_access_method",
        "heap",
        Kind::Text,
        "Taken for pg_dump; there is one.",
    ),
    (
        "default_tablespace",
        "default_tablespace",
        "",
        Kind::Text,
        "Taken for pg_dump; there is one.",
    ),
    (
        "default_text_search_config",
        "default_text_search_config",
        "pg_catalog.simple",
        Kind::Text,
        "Taken for drivers; there is no text search.",
    ),
    (
        "default_transaction_deferrable",
        "default_transaction_deferrable",
        "off",
        Kind::Boolean,
        "Taken for drivers; no transaction needs it.",
    ),
    (
        "default_transaction_isolation",
        "default_transaction_isolation",
        "serializable",
        Kind::Isolation,
        "The isolation of transactions, which are all serializable.",
    ),
    (
        "default_transaction_read_only",
        "default_transaction_read_only",
        "off",
        Kind::Boolean,
        "Whether transactions may only read, unless they say otherwise.",
    ),
    (
        "escape_string_warning",
        "escape_string_warning",
        "on",
        Kind::Boolean,
        "Taken for drivers; texts with a backslash are as they stand.",
    ),
    (
        "extra_float_digits",
        "extra_float_digits",
        "1",
        Kind::Integer(-15, 3),
        "Taken for drivers; numbers are always written exactly.",
    ),
    (
        "idle_in_transaction_session_timeout",
        "idle_in_transaction_session_timeout",
        "0",
        Kind::Duration,
        "How long a transaction block may wait for its next statement; 0 for as long as it likes.",
    ),
    (
        "idle_session_timeout",
        "idle_session_timeout",
        "0",
        Kind::Fixed(&["0ms"]),
        "How long a session may idle.",
    ),
    (
        "integer_datetimes",
        "integer_datetimes",
        "on",
        Kind::ReadOnly,
        "Times are whole microseconds.",
    ),
    (
        "intervalstyle",
        "IntervalStyle",
        "postgres",
        Kind::Fixed(&[]),
        "How intervals are written.",
    ),
    (
        "is_superuser",
        "is_superuser",
        "",
        Kind::ReadOnly,
        "Whether the session's role is a superuser.",
    ),
    (
        "kiln.protocol",
        "kiln.protocol",
        "",
        Kind::Text,
        "The protocol of all transactions; a superuser changes it for the whole database.",
    ),
    (
        "kiln.replay",
        "kiln.replay",
        "on",
        Kind::Boolean,
        "Whether blocks run again when they meet conflicts.",
    ),
    (
        "lc_collate",
        "lc_collate",
        "C",
        Kind::ReadOnly,
        "The order of texts.",
    ),
    (
        "lc_ctype",
        "lc_ctype",
        "C",
        Kind::ReadOnly,
        "The classes of characters.",
    ),
    (
        "lc_messages",
        "lc_messages",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "The language of messages.",
    ),
    (
        "lc_monetary",
        "lc_monetary",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "How money is written.",
    ),
    (
        "lc_numeric",
        "lc_numeric",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "How numbers are written by to_char.",
    ),
    (
        "lc_time",
        "lc_time",
        "C",
        Kind::Fixed(&["en_us.utf-8", "en_us.utf8", "en_us", "posix"]),
        "How dates are written by to_char.",
    ),
    (
        "lock_timeout",
        "lock_timeout",
        "0",
        Kind::Duration,
        "How long a statement waits for a worker, or for a table that is being changed; 0 for as long as it takes.",
    ),
    (
        "max_identifier_length",
        "max_identifier_length",
        "63",
        Kind::ReadOnly,
        "Bytes of a name.",
    ),
    (
        "max_index_keys",
        "max_index_keys",
        "32",
        Kind::ReadOnly,
        "Columns of a key, at most.",
    ),
    (
        "password_encryption",
        "password_encryption",
        "scram-sha-256",
        Kind::Fixed(&[]),
        "How passwords are kept.",
    ),
    (
        "quote_all_identifiers",
        "quote_all_identifiers",
        "off",
        Kind::Boolean,
        "Taken for pg_dump.",
    ),
    (
        "role",
        "role",
        "none",
        Kind::Fixed(&[]),
        "The role that was changed to.",
    ),
    (
        "row_security",
        "row_security",
        "on",
        Kind::Boolean,
        "Taken for pg_dump; there are no policies.",
    ),
    (
        "search_path",
        "search_path",
        "\"$user\", public",
        Kind::SchemaPath,
        "Where names without a schema are looked for.",
    ),
    (
        "server_encoding",
        "server_encoding",
        "UTF8",
        Kind::ReadOnly,
        "The encoding of all texts.",
    ),
    (
        "server_version",
        "server_version",
        SERVER_VERSION,
        Kind::ReadOnly,
        "The version of PostgreSQL whose protocol and SQL this is like.",
    ),
    (
        "server_version_num",
        "server_version_num",
        "150000",
        Kind::ReadOnly,
        "The same as a number.",
    ),
    (
        "session_authorization",
        "session_authorization",
        "",
        Kind::ReadOnly,
        "The session's role.",
    ),
    (
        "standard_conforming_strings",
        "standard_conforming_strings",
        "on",
        Kind::Fixed(&["true", "yes", "1"]),
        "A backslash in a text is one.",
    ),
    (
        "statement_timeout",
        "statement_timeout",
        "0",
        Kind::Duration,
        "How long a statement may take; 0 for as long as it needs.",
    ),
    (
        "synchronous_commit",
        "synchronous_commit",
        "on",
        Kind::Word(&[
            "on",
            "off",
            "local",
            "remote_write",
            "remote_apply",
            "true",
            "false",
            "yes",
            "no",
            "1",
            "0",
        ]),
        "Whether a commit waits until it is on disk.",
    ),
    (
        "timezone",
        "TimeZone",
        "UTC",
        Kind::Zone,
        "The time zone in which times are written and read.",
    ),
    (
        "transaction_deferrable",
        "transaction_deferrable",
        "off",
        Kind::Boolean,
        "Taken for drivers; no transaction needs it.",
    ),
    (
        "transaction_isolation",
        "transaction_isolation",
        "serializable",
        Kind::Isolation,
        "The isolation of the transaction, which is serializable.",
    ),
    (
        "transaction_read_only",
        "transaction_read_only",
        "off",
        Kind::Boolean,
        "Whether the transaction may only read.",
    ),
    (
        "xmloption",
        "xmloption",
        "content",
        Kind::Text,
        "Taken for pg_dump; there is no XML.",
    ),
];

/// Settings of a client's own that a session may have, and bytes of a value.
const OWN_MAX: usize = 1_000;
const VALUE_BYTES_MAX: usize = 64 << 10;

fn known(name: &str) -> Option<&'static Known> {
    let found = KNOWN.binary_search_by(|(known, ..)| (*known).cmp(name));
    found.ok().map(|at| &KNOWN[at])
}

/// Values that are not the defaults, by name.
type Values = BTreeMap<String, String>;

/// The settings of a session.
#[derive(Default)]
pub(super) struct Settings {
    /// What the session began with: RESET goes back to it.
    first: Values,
    now: Values,
    /// What holds after the open block; there once something was set in it.
    after: Option<Box<After>>,
    /// Whether the open block may only read, if it said so.
    pub block_reads_only: Option<bool>,
    /// Settings that have changed and that the client was not told of.
    untold: Vec<&'static str>,
}

/// What holds after a block.
#[derive(Clone)]
struct After {
    commit: Values,
    rollback: Values,
}

/// Settings at a savepoint.
pub(super) struct Saved {
    now: Values,
    after: Option<Box<After>>,
    block_reads_only: Option<bool>,
}

/// How long a value holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Until the session ends.
    Session,
    /// Until the block ends.
    Block,
}

/// What SET asks for.
pub(super) struct Assignment {
    pub name: String,
    /// `None` for the default.
    pub value: Option<String>,
    pub scope: Scope,
}

impl Settings {
    /// A setting's value; `None` for one that is not known.
    pub fn get(&self, name: &str) -> Option<&str> {
        let set = self.now.get(name).map(String::as_str);
        set.or_else(|| known(name).map(|(_, _, default, ..)| *default))
    }

    /// Whether a setting was given a value.
    pub fn is_set(&self, name: &str) -> bool {
        self.now.contains_key(name)
    }

    /// Whether a setting is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("on")
    }

    /// A setting that is a time.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        let milliseconds = self.get(name).and_then(milliseconds)?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// Whether messages of this level are sent.
    pub fn sends(&self, level: &str) -> bool {
        let rank = |level: &str| {
            LEVELS
                .iter()
                .position(|known| known.eq_ignore_ascii_case(level))
        };
        let least = self.now.get("client_min_messages");
        least.is_none_or(|least| rank(level) >= rank(least) || level.eq_ignore_ascii_case("info"))
    }

    /// Whether nothing was set.
    pub fn is_fresh(&self) -> bool {
        self.now.is_empty() && self.first.is_empty()
    }

    /// Begins with a value to which RESET goes back.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn begin_with(&mut self, name: &str, value: &str) -> Result<()> {
        if let Some(value) = checked(name, value)? {
            self.first.insert(name.to_owned(), value.clone());
            self.now.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// Gives a setting a value, or `None` for what it began with.
    ///
    /// # Errors
    /// 42704 for an unknown setting, 55P02 for one that cannot be changed, 22023 for a value that is none, 0A000 for one that is not
    /// supported, 53400 for too many.
    pub fn set(&mut self, assignment: Assignment, in_block: bool) -> Result<()> {
        let Assignment { name, value, scope } = assignment;
        let value = match value {
            Some(value) => checked(&name, &value)?,
            None => match known(&name) {
                None if !self.now.contains_key(&name) => return Err(unknown(&name)),
                _ => self.first.get(&name).cloned(),
            },
        };
        if name == "transaction_read_only" {
            self.block_reads_only = value.map(|value| value == "on");
            return Ok(());
        }
        if self.now.len() >= OWN_MAX && !self.now.contains_key(&name) {
            let message = format!("a session has at most {OWN_MAX} settings");
            return Err(Error::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message));
        }
        if in_block && self.after.is_none() {
            self.after = Some(Box::new(After {
                commit: self.now.clone(),
                rollback: self.now.clone(),
            }));
        }
        if let Some(after) = &mut self.after
            && scope == Scope::Session
        {
            put(&mut after.commit, &name, value.as_deref());
        }
        put(&mut self.now, &name, value.as_deref());
        if let Some((name, ..)) = known(&name) {
            self.untold.push(name);
        }
        Ok(())
    }

    /// Goes back to what the session began with.
    pub fn reset_all(&mut self, in_block: bool) {
        let names: Vec<String> = self.now.keys().cloned().collect();
        for name in names {
            let assignment = Assignment {
                name,
                value: None,
                scope: Scope::Session,
            };
            // Each is there.
            let _ = self.set(assignment, in_block);
        }
    }

    /// The block is over. Says whether settings have changed.
    pub fn end_block(&mut self, is_committed: bool) -> bool {
        self.block_reads_only = None;
        let Some(after) = self.after.take() else {
            return false;
        };
        let After { commit, rollback } = *after;
        self.replace(if is_committed { commit } else { rollback });
        true
    }

    /// As they are now.
    pub fn save(&self) -> Saved {
        Saved {
            now: self.now.clone(),
            after: self.after.clone(),
            block_reads_only: self.block_reads_only,
        }
    }

    /// As they were.
    pub fn restore(&mut self, saved: &Saved) {
        self.replace(saved.now.clone());
        self.after = saved.after.clone();
        self.block_reads_only = saved.block_reads_only;
    }

    fn replace(&mut self, values: Values) {
        let before = std::mem::replace(&mut self.now, values);
        for (name, ..) in KNOWN {
            if before.get(*name) != self.now.get(*name) {
                self.untold.push(name);
            }
        }
    }

    /// Settings that have changed since this was asked last, as PostgreSQL writes their names.
    pub fn changed(&mut self) -> Vec<(&'static str, String)> {
        let mut names = std::mem::take(&mut self.untold);
        names.sort_unstable();
        names.dedup();
        let shown = |name: &str| known(name).map_or("", |(_, shown, ..)| *shown);
        let names = names.into_iter();
        names
            .map(|name| (shown(name), self.get(name).unwrap_or_default().to_owned()))
            .collect()
    }

    /// All settings that there are, each with its value and what it is for.
    pub fn all(&self) -> Vec<[String; 3]> {
        let known = KNOWN.iter().map(|(name, shown, _, _, description)| {
            let value = self.get(name).unwrap_or_default();
            [*shown, value, *description].map(str::to_owned)
        });
        let own = self.now.iter().filter(|(name, _)| known_is_none(name));
        let own =
            own.map(|(name, value)| [name.clone(), value.clone(), "Of the client.".to_owned()]);
        known.chain(own).collect()
    }
}

fn known_is_none(name: &str) -> bool {
    known(name).is_none()
}

fn put(values: &mut Values, name: &str, value: Option<&str>) {
    match value {
        Some(value) => drop(values.insert(name.to_owned(), value.to_owned())),
        None => drop(values.remove(name)),
    }
}

/// A value as it is kept; `None` when it is the default.
fn checked(name: &str, value: &str) -> Result<Option<String>> {
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
        Kind::Zone => match is_utc(&lower) {
            Ok(true) => (*default).to_owned(),
            Ok(false) => {
                let hint =
                    "Times are read and written in UTC. AT TIME ZONE gives those of another zone.";
                let message = format!("{shown} = {value} is not supported");
                return Err(Error::unsupported(message).with_hint(hint));
            }
            Err(_) => return Err(invalid(None)),
        },
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
        Kind::Isolation => match lower.as_str() {
            "serializable" | "repeatable read" | "read committed" | "read uncommitted" => {
                "serializable".to_owned()
            }
            _ => return Err(invalid(None)),
        },
        Kind::Text if value.len() > VALUE_BYTES_MAX => {
            let message = format!("the value of \"{shown}\" has more than {VALUE_BYTES_MAX} bytes");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Kind::Text => value.to_owned(),
    };
    // What was asked for is kept even where it is the default: the session may have begun with something else.
    Ok(Some(kept))
}

#[cold]
pub(super) fn unknown(name: &str) -> Error {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

/// Whether a time zone is UTC; a number stands for hours.
///
/// # Errors
/// 22023 for what is none.
fn is_utc(zone: &str) -> Result<bool> {
    match zone.parse::<f64>() {
        Ok(hours) => Ok(hours == 0.0),
        Err(_) if zone == "local" => Ok(true),
        Err(_) => datetime::is_utc(zone),
    }
}

/// The hours of an interval that stands for a time zone.
///
/// # Errors
/// 22007 for what is no interval, 22023 for one that has more than a time.
fn hours_of(interval: &ast::Interval) -> Result<String> {
    let Interval {
        months,
        days,
        microseconds,
    } = datetime::parse_interval(&word(&interval.value))?;
    if months != 0 || days != 0 {
        let message = format!("invalid value for parameter \"TimeZone\": \"{interval}\"");
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let hours = microseconds as f64 / datetime::MICROSECONDS_PER_HOUR as f64;
    Ok(hours.to_string())
}

fn boolean(word: &str) -> Option<bool> {
    match word {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// The schemas that SET names, as a list that [`schemas_of`] reads.
fn schema_list(values: &[Expr]) -> String {
    let names = values.iter().map(|value| quote_identifier(&word(value)));
    names.collect::<Vec<_>>().join(", ")
}

/// The names in the value of `search_path`: folded to lower case but where they are quoted. `None` where it is no list of names.
pub(super) fn schemas_of(value: &str) -> Option<Vec<String>> {
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
fn milliseconds(value: &str) -> Option<u64> {
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

/// Milliseconds in the largest unit that keeps them whole, as PostgreSQL shows them.
pub(super) fn with_unit(milliseconds: u64) -> String {
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

/// What SET asks for, one thing after the other.
///
/// # Errors
/// 0A000 for a form of SET that is not supported.
pub(super) fn assignments(set: &Set) -> Result<Vec<Assignment>> {
    let scope_of = |scope: &Option<ContextModifier>| match scope {
        Some(ContextModifier::Local) => Scope::Block,
        _ => Scope::Session,
    };
    let one = |name: &str, value: Option<String>, scope| {
        vec![Assignment {
            name: name.to_owned(),
            value,
            scope,
        }]
    };
    Ok(match set {
        Set::SetTimeZone { local, value } => {
            let scope = if *local { Scope::Block } else { Scope::Session };
            let value = match value {
                Expr::Interval(interval) => Some(hours_of(interval)?),
                value => value_of(std::slice::from_ref(value)),
            };
            one("timezone", value, scope)
        }
        Set::SetRole {
            role_name,
            context_modifier,
        } => {
            let role = role_name
                .as_ref()
                .map_or("none", |role| role.value.as_str());
            one("role", Some(role.to_owned()), scope_of(context_modifier))
        }
        Set::SingleAssignment {
            scope,
            variable,
            values,
            ..
        } => {
            let parts = variable
                .0
                .iter()
                .map(|part| part.to_string().trim_matches('"').to_lowercase());
            let name: Vec<String> = parts.collect();
            let name = name.join(".");
            let value = match name.as_str() {
                "search_path" => value_of(values).map(|_| schema_list(values)),
                _ => value_of(values),
            };
            one(&name, value, scope_of(scope))
        }
        Set::SetNames { charset_name, .. } => one(
            "client_encoding",
            Some(charset_name.value.clone()),
            Scope::Session,
        ),
        Set::SetNamesDefault {} => one("client_encoding", None, Scope::Session),
        _ => return Err(unsupported("this form of SET", None)),
    })
}

/// What modes of the present transaction set, or of those to come.
pub(super) fn modes_of(modes: &[TransactionMode], is_of_session: bool) -> Vec<Assignment> {
    let (prefix, scope) = match is_of_session {
        true => ("default_transaction", Scope::Session),
        false => ("transaction", Scope::Block),
    };
    let on = |is_on: bool| if is_on { "on" } else { "off" };
    let modes = modes.iter().map(|mode| {
        let (name, value) = match mode {
            TransactionMode::ReadOnly(is_on) => ("read_only", on(*is_on)),
            TransactionMode::Deferrable(is_on) => ("deferrable", on(*is_on)),
            TransactionMode::IsolationLevel => ("isolation", "serializable"),
        };
        Assignment {
            name: format!("{prefix}_{name}"),
            value: Some(value.to_owned()),
            scope,
        }
    });
    modes.collect()
}

/// Values as one text; `None` for DEFAULT.
fn value_of(values: &[Expr]) -> Option<String> {
    let words: Vec<String> = values.iter().map(word).collect();
    match words.as_slice() {
        [word] if word.eq_ignore_ascii_case("default") && !is_text(&values[0]) => None,
        _ => Some(words.join(", ")),
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(_))
}

/// A value as text, without its quotes.
fn word(expr: &Expr) -> String {
    match expr {
        Expr::Value(value) => value
            .value
            .clone()
            .into_string()
            .unwrap_or_else(|| value.value.to_string()),
        Expr::Identifier(ident) => ident.value.clone(),
        other => other.to_string(),
    }
}

/// SHOW of a setting.
pub(super) fn show(name: &[ast::Ident], value: String) -> StatementResult {
    StatementResult {
        tag: "SHOW".to_owned(),
        result: Some(ResultSet {
            columns: vec![(shown_columns(name).swap_remove(0), DataType::Text)],
            rows: vec![vec![Value::Text(value)]],
        }),
        notices: Vec::new(),
    }
}

/// SHOW ALL.
pub(super) fn show_all(rows: Vec<[String; 3]>) -> StatementResult {
    let columns = ALL_COLUMNS
        .iter()
        .map(|name| ((*name).to_owned(), DataType::Text));
    let rows = rows.into_iter().map(|row| row.map(Value::Text).into());
    StatementResult {
        tag: "SHOW".to_owned(),
        result: Some(ResultSet {
            columns: columns.collect(),
            rows: rows.collect(),
        }),
        notices: Vec::new(),
    }
}

const ALL_COLUMNS: [&str; 3] = ["name", "setting", "description"];

/// The setting that SHOW names; `None` for all.
pub(super) fn shown(name: &[ast::Ident]) -> Option<String> {
    let words = name.iter().map(|ident| ident.value.to_lowercase());
    let words: Vec<String> = words.collect();
    match words.join(" ").as_str() {
        "all" => None,
        "time zone" => Some("timezone".to_owned()),
        "transaction isolation level" => Some("transaction_isolation".to_owned()),
        "session authorization" => Some("session_authorization".to_owned()),
        _ => Some(words.join(".")),
    }
}

/// What the columns of SHOW are called.
pub(super) fn shown_columns(name: &[ast::Ident]) -> Vec<String> {
    match shown(name) {
        None => ALL_COLUMNS.map(str::to_owned).into(),
        Some(name) => {
            let shown = known(&name).map_or(name.as_str(), |(_, shown, ..)| *shown);
            vec![shown.to_owned()]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_by_name() {
        assert!(KNOWN.is_sorted_by_key(|(name, ..)| *name));
        for (name, shown, default, kind, _) in KNOWN {
            assert_eq!(shown.to_lowercase(), *name);
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
        assert_eq!(milliseconds("5 weeks"), None);
        assert_eq!(milliseconds("99999999999"), None);
    }
}
