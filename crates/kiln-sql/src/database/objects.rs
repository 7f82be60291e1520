//! What statements say of objects of several kinds: their command, their names and their owners.

use kiln_engine::{Catalog, CatalogChange, Object, ObjectKind};
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

/// The role that a statement names, where `CURRENT_USER` is the one that runs it.
///
/// # Errors
/// 42704 for one that there is not.
pub(super) fn role_meant(change: &CatalogChange<'_>, role: &RoleName) -> Result<String> {
    match role {
        RoleName::Current => Ok(change.owner().to_owned()),
        RoleName::Name(name) => {
            change.catalog().roles().require(name)?;
            Ok(name.clone())
        }
    }
}

/// `OWNER TO`: gives an object to a role, and with a table the sequences that its columns own.
///
/// # Errors
/// 42704 for a role that there is not.
pub(super) fn give(change: &mut CatalogChange<'_>, object: Object, to: &RoleName) -> Result<()> {
    let owner = role_meant(change, to)?;
    if object.kind == ObjectKind::Table {
        let sequences = change.catalog().sequences().filter(|sequence| {
            let owner = sequence.definition().owner.as_ref();
            owner.is_some_and(|owner| owner.table == object.name)
        });
        let names: Vec<String> = sequences.map(|it| it.name().to_owned()).collect();
        for name in names {
            change.change_owner(Object::sequence(name), &owner)?;
        }
    }
    change.change_owner(object, &owner)
}
