//! SET and SHOW. There is little to set: a few settings that scripts for PostgreSQL begin with are
//! taken when they ask for what is so anyway, and refused when they ask for something else.

use std::time::Duration;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{self, Expr, Set, TransactionAccessMode, TransactionMode};

use super::result::{ResultSet, StatementResult};
use crate::compile::{Position, fail, position_of, unsupported};

/// Settings with their only value.
const FIXED: &[(&str, &str)] = &[
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("datestyle", "ISO, MDY"),
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_read_only", "off"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("lc_collate", "C"),
    ("search_path", "public"),
    ("server_encoding", "UTF8"),
    ("server_version", "17.0"),
    ("standard_conforming_strings", "on"),
    ("timezone", "UTC"),
    ("transaction_isolation", "serializable"),
    ("transaction_read_only", "off"),
];

/// Settings that say nothing to us, whatever their value.
const IGNORED: &[&str] = &[
    "application_name",
    "check_function_bodies",
    "client_min_messages",
    "default_table_access_method",
    "default_tablespace",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "lock_timeout",
    "row_security",
    "xmloption",
];

/// What SET asks for.
pub(super) enum Change {
    /// Nothing that is not so already.
    None,
    /// `statement_timeout`.
    StatementTimeout(Option<Duration>),
    /// `synchronous_commit`.
    SynchronousCommit(bool),
}

/// Settings of a session that SHOW shows.
pub(super) struct Shown {
    pub statement_timeout: Option<Duration>,
    pub synchronous_commit: bool,
}

/// Checks SET.
///
/// # Errors
/// 42704 for an unknown setting, 0A000 for a value that is not supported.
pub(super) fn set(set: &Set) -> Result<Change> {
    match set {
        Set::SetTransaction { modes, .. } => {
            transaction_modes(modes)?;
            Ok(Change::None)
        }
        Set::SetTimeZone { value, .. } => single("timezone", std::slice::from_ref(value), None),
        Set::SingleAssignment {
            variable, values, ..
        } => {
            let name = variable.to_string().trim_matches('"').to_lowercase();
            single(&name, values, position_of(variable))
        }
        Set::SetNames { charset_name, .. } => {
            let name = charset_name.value.to_uppercase();
            match matches!(name.as_str(), "UTF8" | "UTF-8") {
                true => Ok(Change::None),
                false => Err(unsupported(format!("client encoding {name}"), None)),
            }
        }
        Set::SetNamesDefault {} => Ok(Change::None),
        _ => Err(unsupported("this form of SET", None)),
    }
}

fn single(name: &str, values: &[Expr], position: Position) -> Result<Change> {
    let words: Vec<String> = values.iter().map(word).collect();
    let value = words.join(", ");
    if name == "statement_timeout" {
        return Ok(Change::StatementTimeout(timeout(&value, position)?));
    }
    if name == "synchronous_commit" {
        return synchronous_commit(&value, position);
    }
    if IGNORED.contains(&name) {
        return Ok(Change::None);
    }
    let Some((_, only)) = FIXED.iter().find(|(known, _)| *known == name) else {
        return Err(fail(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
            position,
        ));
    };
    let lower = value.to_lowercase();
    let same = lower == only.to_lowercase()
        || lower == "default"
        || match name {
            "timezone" => matches!(
                lower.as_str(),
                "etc/utc" | "gmt" | "z" | "0" | "+00" | "local"
            ),
            "client_encoding" => lower == "utf-8" || lower == "unicode",
            "search_path" => lower.contains("public") || lower.is_empty(),
            "datestyle" => lower.starts_with("iso"),
            "default_transaction_isolation" | "transaction_isolation" => {
                // A stronger isolation than asked for is none the worse.
                ["read committed", "read uncommitted", "repeatable read"].contains(&lower.as_str())
            }
            _ => ["true", "yes", "1"].contains(&lower.as_str()) && *only == "on",
        };
    if same {
        return Ok(Change::None);
    }
    Err(unsupported(format!("{name} = {value}"), position)
        .with_hint(format!("It is always {only}.")))
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

/// PostgreSQL's values; there are no replicas, so that all but `off` mean the same.
fn synchronous_commit(value: &str, position: Position) -> Result<Change> {
    let is_synchronous = match value.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "local" | "remote_write" | "remote_apply" | "default" => true,
        "off" | "false" | "no" | "0" => false,
        _ => {
            let message =
                format!("invalid value for parameter \"synchronous_commit\": \"{value}\"");
            let error = fail(SqlState::INVALID_PARAMETER_VALUE, message, position);
            let hint = "Available values: local, remote_write, remote_apply, on, off.";
            return Err(error.with_hint(hint));
        }
    };
    Ok(Change::SynchronousCommit(is_synchronous))
}

/// Milliseconds, or a number with a unit.
fn timeout(value: &str, position: Position) -> Result<Option<Duration>> {
    if value.eq_ignore_ascii_case("default") {
        return Ok(None);
    }
    let digits = value.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let factor = match unit.trim() {
        "" | "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let milliseconds =
        factor.and_then(|factor: u64| number.parse::<u64>().ok()?.checked_mul(factor));
    match milliseconds {
        Some(0) => Ok(None),
        Some(milliseconds) => Ok(Some(Duration::from_millis(milliseconds))),
        None => Err(fail(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"statement_timeout\": \"{value}\""),
            position,
        )),
    }
}

/// Checks the modes of BEGIN. Every isolation level is taken, as every transaction is
/// serializable.
///
/// # Errors
/// 0A000 for READ ONLY.
pub(super) fn transaction_modes(modes: &[TransactionMode]) -> Result<()> {
    for mode in modes {
        if let TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) = mode {
            return Err(unsupported("a READ ONLY transaction", None));
        }
    }
    Ok(())
}

/// SHOW.
///
/// # Errors
/// 42704 for an unknown setting.
pub(super) fn show(name: &[ast::Ident], settings: &Shown) -> Result<StatementResult> {
    let name = shown(name);
    let value = if name == "synchronous_commit" {
        let switch = if settings.synchronous_commit {
            "on"
        } else {
            "off"
        };
        switch.to_owned()
    } else if name == "statement_timeout" {
        settings
            .statement_timeout
            .map_or("0".to_owned(), |timeout| {
                format!("{}ms", timeout.as_millis())
            })
    } else {
        let known = FIXED.iter().find(|(known, _)| *known == name);
        let (_, value) = known.ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
            )
        })?;
        (*value).to_owned()
    };
    Ok(StatementResult {
        tag: "SHOW".to_owned(),
        result: Some(ResultSet {
            columns: vec![(column_of(name), DataType::Text)],
            rows: vec![vec![Value::Text(value)]],
        }),
        notices: Vec::new(),
    })
}

/// The setting that SHOW names.
fn shown(name: &[ast::Ident]) -> String {
    let words: Vec<String> = name
        .iter()
        .map(|ident| ident.value.to_lowercase())
        .collect();
    match words.join(" ").as_str() {
        "time zone" => "timezone".to_owned(),
        "transaction isolation level" => "transaction_isolation".to_owned(),
        _ => words.join("."),
    }
}

/// What the column of SHOW is called.
pub(super) fn shown_column(name: &[ast::Ident]) -> String {
    column_of(shown(name))
}

fn column_of(name: String) -> String {
    match name.as_str() {
        "timezone" => "TimeZone".to_owned(),
        "datestyle" => "DateStyle".to_owned(),
        "intervalstyle" => "IntervalStyle".to_owned(),
        _ => name,
    }
}
