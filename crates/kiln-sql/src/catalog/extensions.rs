//! Extensions: those of a database, and those that it may have.

use kiln_storage::types::Value;

use super::snapshot::{PLPGSQL_OID, Snapshot};
use super::values::{Row, array, boolean, oid, optional, text};
use super::{FIRST_ROLE_OID, PG_CATALOG_OID};
use crate::compile::extensions::{EXTENSIONS, Extension, PLPGSQL};

/// What every database has besides.
static LANGUAGE: Extension = Extension {
    name: PLPGSQL,
    version: "1.0",
    comment: "PL/pgSQL procedural language",
    functions: &[],
};

fn available() -> impl Iterator<Item = &'static Extension> {
    EXTENSIONS.iter().chain([&LANGUAGE])
}

/// What says that an extension is in a database.
fn installed(snapshot: &Snapshot, extension: &Extension) -> bool {
    let mut created = snapshot.extensions.iter();
    extension.name == PLPGSQL || created.any(|entry| entry.name == extension.name)
}

/// The extensions that there are.
pub(super) fn pg_extension(snapshot: &Snapshot) -> Vec<Row> {
    let row = |number, schema, relocatable, extension: &Extension| {
        vec![
            oid(number),
            text(extension.name),
            oid(FIRST_ROLE_OID),
            oid(schema),
            boolean(relocatable),
            text(extension.version),
            Value::Null,
            Value::Null,
        ]
    };
    let created = snapshot.extensions.iter().filter_map(|entry| {
        let extension = Extension::find(&entry.name)?;
        let schema = snapshot.schema_oid(&entry.schema)?;
        Some(row(entry.oid, schema, true, extension))
    });
    let language = row(PLPGSQL_OID, PG_CATALOG_OID, false, &LANGUAGE);
    [language].into_iter().chain(created).collect()
}

/// Those that could be created.
pub(super) fn pg_available_extensions(snapshot: &Snapshot) -> Vec<Row> {
    let row = |extension: &Extension| {
        let version = installed(snapshot, extension).then_some(extension.version);
        vec![
            text(extension.name),
            text(extension.version),
            optional(version),
            text(extension.comment),
        ]
    };
    available().map(row).collect()
}

/// Their versions.
pub(super) fn pg_available_extension_versions(snapshot: &Snapshot) -> Vec<Row> {
    let row = |extension: &Extension| {
        let is_language = extension.name == PLPGSQL;
        vec![
            text(extension.name),
            text(extension.version),
            boolean(installed(snapshot, extension)),
            boolean(true),
            boolean(true),
            boolean(!is_language),
            optional(is_language.then_some("pg_catalog")),
            array([]),
            text(extension.comment),
        ]
    };
    available().map(row).collect()
}
