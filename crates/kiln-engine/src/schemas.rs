//! Schemas, and the path along which names without one are looked for.
//!
//! A catalog keeps its objects by qualified names ([`kiln_storage::qualified`]), and look-ups take
//! these alone: who reads a name that a client wrote makes a qualified one of it first, with the
//! path by which the catalog is seen. The catalog in force is seen along the default path; a
//! session with another one sees a copy.

use std::collections::BTreeSet;
use std::fmt;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{PUBLIC_SCHEMA, parts, schema_of};

use crate::catalog::Catalog;
use crate::change::CatalogChange;
use crate::numbers::NumberedObject;
use crate::roles::Object;
use crate::text_form::{Counted, Reader};

/// The schemas in which a name without one is looked for, in their order; `pg_catalog` comes before
/// all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SearchPath(Option<Arc<[String]>>);

impl SearchPath {
    /// These schemas, each of which there is.
    pub fn new(schemas: Vec<String>) -> SearchPath {
        let is_default = schemas.iter().eq([PUBLIC_SCHEMA].iter());
        SearchPath((!is_default).then(|| schemas.into()))
    }

    /// Whether it is `public` alone.
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// The schemas.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        let default = self.0.is_none().then_some(PUBLIC_SCHEMA);
        let schemas = self.0.iter().flat_map(|schemas| schemas.iter());
        default.into_iter().chain(schemas.map(String::as_str))
    }

    /// The same path without a schema.
    #[must_use]
    pub fn without(&self, schema: &str) -> SearchPath {
        match self.schemas().any(|known| known == schema) {
            true => {
                let others = self.schemas().filter(|known| *known != schema);
                SearchPath::new(others.map(str::to_owned).collect())
            }
            false => self.clone(),
        }
    }

    /// The same path with a schema before all others, if it does not have it.
    #[must_use]
    pub fn behind(&self, schema: &str) -> SearchPath {
        match self.schemas().any(|known| known == schema) {
            true => self.clone(),
            false => {
                let all = [schema].into_iter().chain(self.schemas());
                SearchPath::new(all.map(str::to_owned).collect())
            }
        }
    }

    /// Where a new object without a schema goes.
    pub fn first(&self) -> Option<&str> {
        self.schemas().next()
    }
}

impl Catalog {
    /// The names of the schemas of users, `public` among them.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        let others = self.schemas.iter().map(String::as_str);
        others.chain([PUBLIC_SCHEMA])
    }

    /// Whether there is a schema of users with this name.
    pub fn has_schema(&self, name: &str) -> bool {
        name == PUBLIC_SCHEMA || self.schemas.contains(name)
    }

    /// Along which its names without a schema are looked for.
    pub fn path(&self) -> &SearchPath {
        &self.path
    }

    /// The same catalog, seen along another path.
    pub fn along(self: &Arc<Catalog>, path: &SearchPath) -> Arc<Catalog> {
        if self.path == *path {
            return self.clone();
        }
        let mut seen = self.copied();
        seen.path = path.clone();
        Arc::new(seen)
    }

    /// Whether a table, view, sequence or index is known by this qualified name.
    pub fn is_relation(&self, name: &str) -> bool {
        self.tables.contains_key(name)
            || self.views.contains_key(name)
            || self.sequences.contains_key(name)
            || self.index_owner(name).is_some()
    }

    /// The name of the table that has an index called `index`, which is in the schema of its table.
    pub fn index_owner(&self, index: &str) -> Option<&str> {
        let (schema, index) = parts(index);
        let mut tables = self.tables();
        tables.find_map(|(name, table)| {
            let is_beside = schema_of(name) == schema;
            let mut indexes = table.indexes().iter();
            (is_beside && indexes.any(|known| known.definition().name == index)).then_some(name)
        })
    }

    /// The qualified names of the tables, views and sequences of a schema.
    pub fn objects_of_schema<'a>(&'a self, schema: &'a str) -> impl Iterator<Item = &'a str> {
        let tables = self.tables.keys().chain(self.views.keys());
        let all = tables.chain(self.sequences.keys()).map(String::as_str);
        all.filter(move |name| schema_of(name) == schema)
    }
}

impl CatalogChange<'_> {
    /// Has names without a schema looked for along `path` from here on. The catalog that comes into
    /// force is seen along the default path.
    pub fn see_along(&mut self, path: &SearchPath) {
        self.catalog.path = path.clone();
    }

    /// Adds a schema.
    ///
    /// # Errors
    /// 42P06 when the name is taken, 42939 for one that is the system's; 0A000 for one with a dot.
    pub fn create_schema(&mut self, name: &str) -> Result<()> {
        if name.starts_with("pg_") {
            let message = format!("unacceptable schema name \"{name}\"");
            return Err(Error::new(SqlState::RESERVED_NAME, message)
                .with_detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        if name.contains('.') {
            let message = "a schema whose name has a dot is not supported";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if self.catalog.has_schema(name) || name == "information_schema" {
            let message = format!("schema \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_SCHEMA, message));
        }
        self.catalog.schemas.insert(name.to_owned());
        Ok(())
    }

    /// Removes a schema, in which there is nothing.
    ///
    /// # Errors
    /// 3F000; 2BP01 when something is in it; 0A000 for `public`.
    pub fn drop_schema(&mut self, name: &str) -> Result<()> {
        if name == PUBLIC_SCHEMA {
            let message = "dropping the schema public is not supported";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if !self.catalog.schemas.contains(name) {
            return Err(undefined_schema(name));
        }
        if let Some(object) = self.catalog.objects_of_schema(name).next() {
            let message = format!("cannot drop schema {name} because other objects depend on it");
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_detail(format!("{object} is in it.")));
        }
        self.catalog.schemas.remove(name);
        self.roles().forget(&Object::schema(name));
        Ok(())
    }

    /// Gives a schema another name, in which there is nothing.
    ///
    /// # Errors
    /// 3F000; as [`CatalogChange::create_schema`] and [`CatalogChange::drop_schema`].
    pub fn rename_schema(&mut self, name: &str, to: &str) -> Result<()> {
        if !self.catalog.has_schema(name) {
            return Err(undefined_schema(name));
        }
        if name == PUBLIC_SCHEMA || self.catalog.objects_of_schema(name).next().is_some() {
            let message = "renaming a schema that has something in it is not supported";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_hint("Create one with the new name, and the objects in it."));
        }
        self.create_schema(to)?;
        self.renumber(|object| match object {
            NumberedObject::Schema(known) if known == name => {
                Some(NumberedObject::Schema(to.to_owned()))
            }
            _ => None,
        });
        self.roles()
            .rename(&Object::schema(name), Object::schema(to));
        self.catalog.schemas.remove(name);
        Ok(())
    }
}

/// As `path in 4:shop `; the default path as nothing.
impl fmt::Display for SearchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(schemas) = &self.0 else {
            return Ok(());
        };
        f.write_str("path ")?;
        schemas
            .iter()
            .try_for_each(|schema| write!(f, "in {} ", Counted(schema)))
    }
}

/// Reads what [`SearchPath`] writes.
///
/// # Errors
/// XX001.
pub(crate) fn read_path(reader: &mut Reader<'_>) -> Result<SearchPath> {
    if !reader.takes("path") {
        return Ok(SearchPath::default());
    }
    let mut schemas = Vec::new();
    while reader.takes("in") {
        schemas.push(reader.counted()?.to_owned());
    }
    Ok(SearchPath::new(schemas))
}

/// Reads names of a written catalog: before there were schemas a name might have a dot, of which
/// nothing more was meant.
pub(crate) fn of_former_catalog(name: &str, schemas: &BTreeSet<String>) -> String {
    match name.split_once('.') {
        Some((schema, _)) if schema != PUBLIC_SCHEMA && !schemas.contains(schema) => {
            format!("{PUBLIC_SCHEMA}.{name}")
        }
        _ => name.to_owned(),
    }
}

/// The error of a schema that there is not.
#[cold]
pub(crate) fn undefined_schema(name: &str) -> Error {
    let message = format!("schema \"{name}\" does not exist");
    Error::new(SqlState::INVALID_SCHEMA_NAME, message)
}
