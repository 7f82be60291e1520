//! ALTER ROLE and ALTER DATABASE … SET and RESET: the settings with which sessions begin.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::{self, Ident};

use super::role::{self, RoleName};
use super::statement::{self, Statement};
use super::tokens::Tokens;
use super::types;

/// A change of the settings with which sessions begin.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleSetting {
    /// The role whose sessions do; `None` for all roles.
    pub role: Option<RoleName>,
    /// The database in which they do, where one is named.
    pub database: Option<Ident>,
    /// What becomes of them.
    pub change: SettingChange,
}

/// What a [`RoleSetting`] changes.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingChange {
    /// `SET`.
    Set(Box<ast::Set>),
    /// `RESET name`, or `RESET ALL`.
    Reset(Option<String>),
}

/// Parses `ALTER ROLE name | ALL [IN DATABASE name] SET | RESET …`, whose name is at `at`; `None`
/// for another ALTER ROLE.
pub(super) fn of_role(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    at: usize,
) -> Result<Option<Statement>> {
    let is_in = tokens.words(at + 1, &["in", "database"]);
    let change = at + if is_in { 4 } else { 1 };
    if !is_in && !matches!(tokens.word(change), "set" | "reset") {
        return Ok(None);
    }
    let role = match tokens.word(at) {
        "all" => None,
        _ => Some(role::role(tokens, at)?),
    };
    let database = match is_in {
        true => Some(types::identifier(tokens, at + 3)?),
        false => None,
    };
    let change = changed(tokens, change..range.end)?;
    Ok(Some(Statement::RoleSetting(Box::new(RoleSetting {
        role,
        database,
        change,
    }))))
}

/// Parses `ALTER DATABASE name SET | RESET …`.
pub(super) fn of_database(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = range.start + 2;
    let is_setting =
        matches!(tokens.word(at + 1), "set" | "reset") && tokens.word(at + 2) != "tablespace";
    if !is_setting {
        return Err(tokens.unsupported(range.start, "this form of ALTER DATABASE"));
    }
    Ok(Statement::RoleSetting(Box::new(RoleSetting {
        role: None,
        database: Some(types::identifier(tokens, at)?),
        change: changed(tokens, at + 1..range.end)?,
    })))
}

fn changed(tokens: &Tokens<'_>, range: Range<usize>) -> Result<SettingChange> {
    let at = range.start;
    if tokens.words(range.end.saturating_sub(2), &["from", "current"]) {
        return Err(tokens.unsupported(range.end - 2, "FROM CURRENT"));
    }
    let parsed = match tokens.word(at) {
        "set" if tokens.word(at + 1) == "local" => return Err(tokens.syntax_error(at + 2)),
        "set" => statement::control(tokens, range)?,
        "reset" => statement::reset(tokens, range)?,
        _ => return Err(tokens.syntax_error(at)),
    };
    match parsed {
        Statement::Set(set) => Ok(SettingChange::Set(set)),
        Statement::Reset(name) => Ok(SettingChange::Reset(name)),
        _ => Err(tokens.syntax_error(at + 1)),
    }
}
