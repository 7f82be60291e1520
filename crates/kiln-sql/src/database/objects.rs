//! What statements say of objects of several kinds: their command, their names and their owners.

use kiln_engine::{Catalog, CatalogChange};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema, qualified};

use crate::catalog::is_auxiliary;
use crate::compile::{name_of, refuse_reserved};
use crate::parse::{AlteredObject, NewName, RoleName, RoutineKind};

/// The command of a statement that alters such an object.
pub(super) fn tag(object: &AlteredObject) -> &'static str {
    match object {
        AlteredObject::Index(_) => "ALTER INDEX",
        AlteredObject::Sequence(_) => "ALTER SEQUENCE",
        AlteredObject::Routine(Some(RoutineKind::Function), _) => "ALTER FUNCTION",
        AlteredObject::Routine(Some(RoutineKind::Procedure), _) => "ALTER PROCEDURE",
        AlteredObject::Routine(None, _) => "ALTER ROUTINE",
    }
}

/// The table that has a declared index of this name.
pub(super) fn table_of_index(change: &CatalogChange<'_>, name: &str) -> Option<String> {
    let table = change.catalog().table(change.index_owner(name)?)?;
    let mut indexes = table.indexes().iter().map(|index| index.definition());
    indexes
        .any(|it| {
            it.name == name_in_schema(name) && !it.columns.is_empty() && !is_auxiliary(table, it)
        })
        .then(|| table.schema().name.clone())
}

/// The qualified name that a relation has from now on.
///
/// # Errors
/// 42939 for a name that is reserved, 3F000 for a schema that there is not.
pub(super) fn renamed(catalog: &Catalog, from: &str, to: &NewName) -> Result<String> {
    match to {
        NewName::Name(to) => {
            refuse_reserved(to)?;
            Ok(beside(from, &name_of(to)))
        }
        NewName::Schema(to) => {
            let schema = name_of(to);
            match catalog.has_schema(&schema) {
                true => Ok(qualified(&schema, name_in_schema(from))),
                false => {
                    let message = format!("schema \"{schema}\" does not exist");
                    Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message))
                }
            }
        }
    }
}

/// Objects belong to the superusers, all of them to each: one that becomes the owner is that
/// already.
///
/// # Errors
/// 42704 for a role that is none; 0A000 for one that is no superuser.
pub(super) fn check_owner(catalog: &Catalog, role: &RoleName) -> Result<()> {
    let RoleName::Name(name) = role else {
        return Ok(());
    };
    match catalog.roles().require(name)?.is_superuser {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "an owner that is no superuser, as {name} is, is not supported"
        ))
        .with_hint(format!(
            "Objects belong to the superusers: GRANT {name} what it needs."
        ))),
    }
}
