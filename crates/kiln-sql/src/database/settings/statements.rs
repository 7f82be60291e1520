//! What SET, SET TRANSACTION and SHOW ask for.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::datetime::{self, Interval};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{self, ContextModifier, Expr, Set, SetSessionAuthorizationParamKind};

use super::known::known;
use super::{Assignment, NO_ROLE, Scope};
use crate::compile::{name_of, quote_identifier, unsupported};
use crate::database::result::{ResultSet, StatementResult};
use crate::parse::TransactionMode;

/// What SET asks for, one thing after the other.
///
/// # Errors
/// 0A000 for a form of SET that is not supported.
pub(in crate::database) fn assignments(set: &Set) -> Result<Vec<Assignment>> {
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
                Expr::Identifier(word) if word.value.eq_ignore_ascii_case("local") => None,
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
                .map_or_else(|| NO_ROLE.to_owned(), name_of);
            one("role", Some(role), scope_of(context_modifier))
        }
        Set::SetSessionAuthorization(set) => {
            let role = match &set.kind {
                SetSessionAuthorizationParamKind::Default => None,
                SetSessionAuthorizationParamKind::User(name) => Some(name_of(name)),
            };
            one("session_authorization", role, scope_of(&Some(set.scope)))
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
pub(in crate::database) fn modes_of(
    modes: &[TransactionMode],
    is_of_session: bool,
) -> Vec<Assignment> {
    let (prefix, scope) = match is_of_session {
        true => ("default_transaction", Scope::Session),
        false => ("transaction", Scope::Block),
    };
    let on = |is_on: bool| if is_on { "on" } else { "off" };
    let modes = modes.iter().map(|mode| {
        let (name, value) = match mode {
            TransactionMode::ReadOnly(is_on) => ("read_only", on(*is_on)),
            TransactionMode::Deferrable(is_on) => ("deferrable", on(*is_on)),
            TransactionMode::Isolation(level) => ("isolation", level.name()),
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
pub(in crate::database) fn show(name: &[ast::Ident], value: String) -> StatementResult {
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
pub(in crate::database) fn show_all(rows: Vec<[String; 3]>) -> StatementResult {
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
pub(in crate::database) fn shown(name: &[ast::Ident]) -> Option<String> {
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
pub(in crate::database) fn shown_columns(name: &[ast::Ident]) -> Vec<String> {
    match shown(name) {
        None => ALL_COLUMNS.map(str::to_owned).into(),
        Some(name) => {
            let shown = known(&name).map_or(name.as_str(), |(_, shown, ..)| *shown);
            vec![shown.to_owned()]
        }
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

/// The schemas that SET names, as a list that [`schemas_of`] reads.
fn schema_list(values: &[Expr]) -> String {
    let names = values.iter().map(|value| quote_identifier(&word(value)));
    names.collect::<Vec<_>>().join(", ")
}
