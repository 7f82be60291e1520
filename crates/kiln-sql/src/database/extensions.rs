//! CREATE EXTENSION, ALTER EXTENSION and DROP EXTENSION.

use kiln_storage::error::{Error, Result, SqlState};
use sqlparser::ast::Ident;

use super::definition::Definition;
use super::design;
use super::result::{Notice, StatementResult};
use crate::compile::extensions::{Extension, PLPGSQL};
use crate::compile::name_of;
use crate::parse::ExtensionStatement;

/// Runs one of the three.
pub(super) fn run(
    definition: &Definition<'_>,
    statement: &ExtensionStatement,
) -> Result<StatementResult> {
    match statement {
        ExtensionStatement::Create {
            if_not_exists,
            name,
            schema,
            version,
        } => {
            let schema = schema.as_ref();
            create(
                definition,
                &name_of(name),
                *if_not_exists,
                schema,
                version.as_deref(),
            )
        }
        ExtensionStatement::Update { name, version } => {
            update(definition, &name_of(name), version.as_deref())
        }
        ExtensionStatement::Drop { if_exists, names } => drop(definition, names, *if_exists),
    }
}

fn create(
    definition: &Definition<'_>,
    name: &str,
    if_not_exists: bool,
    schema: Option<&Ident>,
    version: Option<&str>,
) -> Result<StatementResult> {
    let is_created = definition.change_catalog(|change| {
        let is_there = name == PLPGSQL || change.catalog().extension_schema(name).is_some();
        if is_there && if_not_exists {
            return Ok(false);
        }
        if is_there {
            let message = format!("extension \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        let extension = Extension::find(name).ok_or_else(|| unavailable(name))?;
        check_version(extension, version)?;
        let schema = match schema {
            Some(schema) => name_of(schema),
            None => match change.catalog().path().first() {
                Some(schema) => schema.to_owned(),
                None => {
                    let message = "no schema has been selected to create in";
                    return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message));
                }
            },
        };
        change.create_extension(name, &schema)?;
        design::derive(change)?;
        Ok(true)
    })?;
    let result = StatementResult::of_tag("CREATE EXTENSION");
    Ok(match is_created {
        true => result,
        false => result.with_notice(Notice::new(format!(
            "extension \"{name}\" already exists, skipping"
        ))),
    })
}

fn update(
    definition: &Definition<'_>,
    name: &str,
    version: Option<&str>,
) -> Result<StatementResult> {
    let installed = definition.change_catalog(|change| {
        if name == PLPGSQL {
            return Ok("1.0");
        }
        let installed = change.catalog().extension_schema(name);
        let extension = installed.and_then(|_| Extension::find(name));
        let extension = extension.ok_or_else(|| undefined(name))?;
        check_version(extension, version)?;
        Ok(extension.version)
    })?;
    let message = format!("version \"{installed}\" of extension \"{name}\" is already installed");
    Ok(StatementResult::of_tag("ALTER EXTENSION").with_notice(Notice::new(message)))
}

fn drop(definition: &Definition<'_>, names: &[Ident], if_exists: bool) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("DROP EXTENSION");
    result.notices = definition.change_catalog(|change| {
        let mut notices = Vec::new();
        for name in names {
            let name = name_of(name);
            if name == PLPGSQL {
                return Err(Error::unsupported("dropping the extension plpgsql"));
            }
            if change.catalog().extension_schema(&name).is_some() {
                change.drop_extension(&name)?;
            } else if if_exists {
                let message = format!("extension \"{name}\" does not exist, skipping");
                notices.push(Notice::new(message));
            } else {
                return Err(undefined(&name));
            }
        }
        design::derive(change)?;
        Ok(notices)
    })?;
    Ok(result)
}

fn check_version(extension: &Extension, wanted: Option<&str>) -> Result<()> {
    match wanted {
        Some(wanted) if wanted != extension.version => {
            let (name, version) = (extension.name, extension.version);
            let message = format!("extension \"{name}\" has no version \"{wanted}\"");
            Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint(format!("It has version \"{version}\".")))
        }
        _ => Ok(()),
    }
}

#[cold]
fn unavailable(name: &str) -> Error {
    let message = format!("extension \"{name}\" is not available");
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .with_hint("pg_available_extensions lists those that are.")
}

#[cold]
fn undefined(name: &str) -> Error {
    let message = format!("extension \"{name}\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}
