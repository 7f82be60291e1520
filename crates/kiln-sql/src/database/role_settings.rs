//! ALTER ROLE and ALTER DATABASE … SET and RESET: the settings with which sessions begin.
//!
//! The catalog keeps them with the roles. There is one database, so that those of the database are
//! those of all roles.

use kiln_engine::{Role, RoleSettings, Source};
use kiln_storage::error::{Error, Result, SqlState};

use super::definition::Definition;
use super::result::StatementResult;
use super::settings::{self, Assignment, Scope};
use crate::catalog::DATABASE;
use crate::compile::{name_of, quote_identifier, quote_literal, unsupported};
use crate::parse::{RoleName, RoleSetting, SettingChange, Statement as Tree};

/// The command of such a statement.
pub(super) fn tag(setting: &RoleSetting) -> &'static str {
    match (&setting.role, &setting.database) {
        (None, Some(_)) => "ALTER DATABASE",
        _ => "ALTER ROLE",
    }
}

/// What it sets, each with its value or `None` for RESET; no name stands for all.
fn changes(setting: &RoleSetting) -> Result<Vec<(Option<String>, Option<String>)>> {
    let shown = |name: &str| settings::shown_name(name).to_owned();
    let set = match &setting.change {
        SettingChange::Reset(name) => return Ok(vec![(name.as_deref().map(shown), None)]),
        SettingChange::Set(set) => settings::assignments(set)?,
    };
    let mut changes = Vec::with_capacity(set.len());
    for Assignment { name, value, scope } in set {
        if scope == Scope::Block {
            return Err(unsupported("SET LOCAL of a role", None));
        }
        if matches!(name.as_str(), "role" | "session_authorization") || name.starts_with("kiln.") {
            return Err(unsupported(format!("{name} as a setting of a role"), None));
        }
        if let Some(value) = &value {
            settings::check(&name, value)?;
        }
        changes.push((Some(shown(&name)), value));
    }
    Ok(changes)
}

/// Changes the settings with which sessions begin.
///
/// # Errors
/// 42704 for a role or setting that there is not, 3D000 for another database; those of SET.
pub(super) fn change(
    definition: &Definition<'_>,
    setting: &RoleSetting,
) -> Result<StatementResult> {
    if let Some(database) = &setting.database
        && name_of(database) != DATABASE
    {
        let message = format!("database \"{}\" does not exist", name_of(database));
        return Err(Error::new(SqlState::INVALID_CATALOG_NAME, message));
    }
    let role = match &setting.role {
        None => None,
        Some(RoleName::Name(name)) => Some(name.as_str()),
        Some(RoleName::Current) => {
            return Err(Error::internal("the session's role is not known here"));
        }
    };
    let changes = changes(setting)?;
    definition.change_catalog(|change| {
        change.change_settings(role, |known: &mut RoleSettings| {
            for (name, value) in &changes {
                match (name, value) {
                    (None, _) => known.clear(),
                    (Some(name), Some(value)) => drop(known.insert(name.clone(), value.clone())),
                    (Some(name), None) => drop(known.remove(name)),
                }
            }
        })
    })?;
    Ok(StatementResult::of_tag(tag(setting)))
}

/// The statement that is run and logged in the place of one that means the session's role.
///
/// # Errors
/// Those of SET.
pub(super) fn to_log(setting: &RoleSetting, session_role: &str) -> Result<Option<(Tree, Source)>> {
    if setting.role != Some(RoleName::Current) {
        return Ok(None);
    }
    let changes = changes(setting)?;
    let [(name, value)] = changes.as_slice() else {
        return Err(Error::internal("a SET of several settings"));
    };
    let change = match (name, value) {
        (None, _) => "RESET ALL".to_owned(),
        (Some(name), None) => format!("RESET {name}"),
        // A list of names, which has its quotes.
        (Some(name), Some(value)) if name == "search_path" => format!("SET {name} TO {value}"),
        (Some(name), Some(value)) => format!("SET {name} TO {}", quote_literal(value)),
    };
    let role = quote_identifier(session_role);
    let source = Source::of_text(format!("ALTER ROLE {role} {change}"));
    let logged = RoleSetting {
        role: Some(RoleName::Name(session_role.to_owned())),
        ..setting.clone()
    };
    Ok(Some((Tree::RoleSetting(Box::new(logged)), source)))
}

/// Whether a role may make this change: it may, of its own sessions.
pub(super) fn is_own(setting: &RoleSetting, role: &Role) -> bool {
    match &setting.role {
        Some(RoleName::Current) => true,
        Some(RoleName::Name(name)) => *name == role.name,
        None => false,
    }
}
