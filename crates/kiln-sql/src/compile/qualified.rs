//! Names of relations as statements write them, and as the catalog knows them.
//!
//! This is the one place where the search path is followed: what follows looks for qualified names
//! alone.

use kiln_engine::{SearchPath, View};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{PUBLIC_SCHEMA, parts as in_parts, qualified, schema_of};
use sqlparser::ast::ObjectName;

use super::quoting::quote_identifier;
use super::{
    CatalogView, Compiler, fail, name_of, object_name, position_of, refuse_reserved, unsupported,
};
use crate::catalog::DATABASE;

/// The qualified name of the table, view, sequence or index that a statement names. Without a
/// schema it is the first along the search path. Where there is none along another path than the
/// default one, the name is that of nothing.
///
/// # Errors
/// 42601 for a reserved word without quotes.
pub fn relation_name(catalog: &dyn CatalogView, name: &ObjectName) -> Result<String> {
    let (schema, name) = parts(name)?;
    let Some(schema) = schema else {
        return Ok(along_path(catalog, &name));
    };
    Ok(qualified(schema_meant(catalog, &schema), &name))
}

/// The schema by which statements mean the temporary one of their session.
pub const TEMPORARY_SCHEMA: &str = "pg_temp";

/// The schema that a statement means by this name.
pub fn schema_meant<'n>(catalog: &'n dyn CatalogView, schema: &'n str) -> &'n str {
    match schema {
        TEMPORARY_SCHEMA => catalog.temporary_schema().unwrap_or(schema),
        _ => schema,
    }
}

/// The schema that a name is written with, if it is.
///
/// # Errors
/// 42601 for a reserved word without quotes.
pub fn schema_written(name: &ObjectName) -> Result<Option<String>> {
    parts(name).map(|(schema, _)| schema)
}

/// The qualified name that a new temporary relation gets, in the temporary schema `own`.
///
/// # Errors
/// 42601 for a reserved word without quotes; 42P16 for one of another schema.
pub fn temporary_name(own: &str, name: &ObjectName) -> Result<String> {
    let position = position_of(name);
    match parts(name)? {
        (Some(schema), _) if schema != TEMPORARY_SCHEMA && schema != own => {
            let message = "cannot create temporary relation in non-temporary schema";
            Err(fail(SqlState::INVALID_TABLE_DEFINITION, message, position))
        }
        (_, name) => Ok(qualified(own, &name)),
    }
}

/// The qualified name that a relation without a schema has: see [`relation_name`].
pub fn along_path(catalog: &dyn CatalogView, name: &str) -> String {
    let path = catalog.path();
    if path.is_default() {
        return qualified(PUBLIC_SCHEMA, name);
    }
    let names = || path.schemas().map(|schema| qualified(schema, name));
    let view = catalog.seen_as();
    let of_view = view.and_then(|view| names().find(|name| view.reads(name)));
    of_view
        .or_else(|| names().find(|name| is_relation(catalog, name)))
        .unwrap_or_else(|| qualified("", name))
}

/// The qualified name that a new relation gets: of the schema that it names, or of the first along
/// the search path. One that `is_temporary` is in the temporary schema of the session.
///
/// # Errors
/// 42601 for a reserved word without quotes; 3F000 without such a schema; 42501 for one of the
/// system; 42P16 for a temporary one of another schema.
pub fn new_relation_name(
    catalog: &dyn CatalogView,
    name: &ObjectName,
    is_temporary: bool,
) -> Result<String> {
    let position = position_of(name);
    let own = catalog.temporary_schema();
    if let (true, Some(own)) = (is_temporary, own) {
        return temporary_name(own, name);
    }
    let (schema, name) = parts(name)?;
    let path = catalog.path();
    let schema = match &schema {
        Some(schema) => schema_meant(catalog, schema),
        None => (path.schemas().find(|schema| Some(*schema) != own)).ok_or_else(|| {
            let message = "no schema has been selected to create in";
            fail(SqlState::INVALID_SCHEMA_NAME, message, position)
        })?,
    };
    if matches!(schema, "pg_catalog" | "information_schema") {
        let message = format!("permission denied to create \"{schema}.{name}\"");
        let error = fail(SqlState::INSUFFICIENT_PRIVILEGE, message, position);
        return Err(error.with_detail("System catalog modifications are currently disallowed."));
    }
    match catalog.has_schema(schema) {
        true => Ok(qualified(schema, &name)),
        false => Err(undefined_schema(schema)),
    }
}

/// The name of a function or procedure, all of which are in `public`.
///
/// # Errors
/// 0A000 for another schema that there is; those of [`object_name`].
pub fn routine_name(catalog: &dyn CatalogView, name: &ObjectName) -> Result<String> {
    if let [schema, _] = name.0.as_slice()
        && let Some(schema) = schema.as_ident().map(name_of)
        && schema != PUBLIC_SCHEMA
        && catalog.has_schema(&schema)
    {
        let what = "a function or procedure of another schema than public";
        return Err(unsupported(what, position_of(name)));
    }
    object_name(name)
}

/// A name as a statement writes it, for messages.
pub fn written_name(name: &ObjectName) -> String {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    parts.map(name_of).collect::<Vec<_>>().join(".")
}

/// What the rows of a relation are called where it has no alias: by its name without a schema.
///
/// # Errors
/// 42601 for a reserved word without quotes.
pub fn row_name(name: &ObjectName) -> Result<String> {
    parts(name).map(|(_, name)| name)
}

/// A qualified name as SQL reads it along any path.
pub fn sql_name(qualified: &str) -> String {
    match in_parts(qualified) {
        ("", name) => quote_identifier(name),
        (schema, name) => format!("{}.{}", quote_identifier(schema), quote_identifier(name)),
    }
}

/// A qualified name as SQL reads it along the default path, without a schema where it needs none.
pub fn kept_name(qualified: &str) -> String {
    match in_parts(qualified) {
        (PUBLIC_SCHEMA, name) => quote_identifier(name),
        _ => sql_name(qualified),
    }
}

/// As [`kept_name`], for messages: without the session's temporary schema.
pub fn short_name(qualified: &str) -> String {
    match in_parts(qualified) {
        (schema, name) if schema.starts_with("pg_temp_") => quote_identifier(name),
        _ => kept_name(qualified),
    }
}

/// What is missing where a name means nothing, for messages of DROP: the schema, or what is called
/// so in it.
///
/// # Errors
/// Those of a name that cannot be read.
pub fn missing_schema(catalog: &dyn CatalogView, name: &ObjectName) -> Result<Option<String>> {
    let (schema, _) = parts(name)?;
    let is_known = |schema: &str| {
        catalog.has_schema(schema) || matches!(schema, "pg_catalog" | "information_schema")
    };
    Ok(schema.filter(|schema| !is_known(schema)))
}

/// The error of a schema that there is not.
#[cold]
pub fn undefined_schema(name: &str) -> Error {
    let message = format!("schema \"{name}\" does not exist");
    Error::new(SqlState::INVALID_SCHEMA_NAME, message)
}

/// The schema of a name, if it has one, and the name in it.
fn parts(name: &ObjectName) -> Result<(Option<String>, String)> {
    let position = position_of(name);
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        let Some(ident) = part.as_ident() else {
            return Err(unsupported("a function as part of a name", position));
        };
        refuse_reserved(ident)?;
        parts.push(name_of(ident));
    }
    let (last, schema) = (parts.pop().unwrap_or_default(), parts.pop());
    match parts.as_slice() {
        [] => Ok((schema, last)),
        [database] if database == DATABASE => Ok((schema, last)),
        _ => Err(unsupported("a cross-database reference", position)),
    }
}

impl Compiler<'_> {
    /// Runs `body` while names without a schema are looked for along another path: that of what was
    /// defined before.
    pub(super) fn along<T>(&mut self, path: &SearchPath, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.catalog.see_along(path.clone());
        let outer_view = self.catalog.see_as(None);
        let result = body(self);
        self.catalog.see_as(outer_view);
        self.catalog.see_along(outer);
        result
    }

    /// Runs `body`, which binds what is in the query of a view: names mean what they meant when the
    /// view was created.
    pub(super) fn along_view<T>(
        &mut self,
        view: &Arc<View>,
        body: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.along(&view.path, |compiler| {
            compiler.catalog.see_as(Some(view.clone()));
            body(compiler)
        })
    }
}

/// Whether a table, a view, an index or a sequence is called `name`.
pub(crate) fn is_relation(catalog: &dyn CatalogView, name: &str) -> bool {
    is_relation_of(catalog, name, |_| true)
}

/// Whether a relation is called `name` that is no index of the table called `table`.
pub(super) fn is_relation_besides(catalog: &dyn CatalogView, name: &str, table: &str) -> bool {
    is_relation_of(catalog, name, |other| other != table)
}

fn is_relation_of(
    catalog: &dyn CatalogView,
    name: &str,
    has_indexes: impl Fn(&str) -> bool,
) -> bool {
    let (schema, in_schema) = in_parts(name);
    catalog.table(name).is_some()
        || catalog.view(name).is_some()
        || catalog.sequence(name).is_some()
        || catalog.tables().iter().any(|table| {
            let mut indexes = table.indexes().iter();
            has_indexes(&table.schema().name)
                && schema_of(&table.schema().name) == schema
                && indexes.any(|index| index.definition().name == in_schema)
        })
}

/// Whether a qualified name is of the session's temporary schema.
pub fn is_temporary(catalog: &dyn CatalogView, name: &str) -> bool {
    catalog.temporary_schema() == Some(schema_of(name))
}
