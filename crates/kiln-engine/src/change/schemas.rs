//! Schemas made, removed and renamed.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::PUBLIC_SCHEMA;

use super::catalog_change::CatalogChange;
use crate::catalog::{NumberedObject, SearchPath};
use crate::errors;
use crate::roles::Object;

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
            return Err(errors::undefined_schema(name));
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
            return Err(errors::undefined_schema(name));
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
