//! Extensions created and removed.
//!
//! What an extension brings is built in. A catalog keeps which ones a user has created, and in
//! which schemas: their functions are found there by qualified names.

use kiln_storage::error::{Error, Result, SqlState};

use super::catalog_change::CatalogChange;
use crate::errors;

impl CatalogChange<'_> {
    /// Adds an extension, whose objects belong to a schema.
    ///
    /// # Errors
    /// 42710 when there is one of this name; 3F000.
    pub fn create_extension(&mut self, name: &str, schema: &str) -> Result<()> {
        if self.catalog.extensions.contains_key(name) {
            let message = format!("extension \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        if !self.catalog.has_schema(schema) {
            return Err(errors::undefined_schema(schema));
        }
        let (name, schema) = (name.to_owned(), schema.to_owned());
        self.catalog.extensions.insert(name, schema);
        Ok(())
    }

    /// Removes an extension.
    ///
    /// # Errors
    /// 42704.
    pub fn drop_extension(&mut self, name: &str) -> Result<()> {
        match self.catalog.extensions.remove(name) {
            Some(_) => Ok(()),
            None => {
                let message = format!("extension \"{name}\" does not exist");
                Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
            }
        }
    }
}
