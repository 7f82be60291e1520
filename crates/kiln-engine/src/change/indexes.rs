//! Indexes made, built anew and removed.

use kiln_platform::sync::{Arc, lock};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::beside;
use kiln_storage::schema::{IndexDefinition, IndexKind};
use kiln_storage::table::Table;

use super::catalog_change::CatalogChange;
use super::tables::duplicate;
use crate::errors;

impl CatalogChange<'_> {
    /// Adds an index to a table and fills it; returns the table that has it.
    ///
    /// # Errors
    /// 42P01; 42P07 when an index of that name exists; those of [`Table::with_index`].
    pub fn add_index(&mut self, table: &str, definition: IndexDefinition) -> Result<Arc<Table>> {
        let name = beside(table, &definition.name);
        if self.index_owner(&name).is_some() {
            return Err(duplicate(&definition.name));
        }
        self.check_no_sequence_or_view(&name)?;
        self.claim(table)?;
        let old = self.catalog.require_table(table)?;
        let new = match self.inner.is_restoring() {
            true => old.with_empty_index(definition)?,
            false => old.with_index(definition, &lock(&self.inner.maintenance))?,
        };
        Ok(self.replace(table, new))
    }

    /// Adds a unique index to a table and declares it the primary key of that; returns the table
    /// that has it.
    ///
    /// # Errors
    /// As [`CatalogChange::add_index`]; 42P16 when the table has a primary key.
    pub fn add_primary_index(
        &mut self,
        table: &str,
        definition: IndexDefinition,
    ) -> Result<Arc<Table>> {
        let schema = self.catalog.require_table(table)?.schema();
        if !schema.primary_key.is_empty() || schema.primary_key_name.is_some() {
            let message = format!("multiple primary keys for table \"{table}\" are not allowed");
            return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        let name = definition.name.clone();
        self.add_index(table, definition)?;
        self.alter_schema(table, |schema| schema.primary_key_name = Some(name))
    }

    /// Builds an index of a table anew as another kind; returns the table that has it.
    ///
    /// # Errors
    /// 42P01, 42704.
    pub fn rebuild_index(
        &mut self,
        table: &str,
        index: &str,
        kind: IndexKind,
    ) -> Result<Arc<Table>> {
        self.claim(table)?;
        let old = self.catalog.require_table(table)?;
        let position = old
            .indexes()
            .iter()
            .position(|known| known.definition().name == index);
        let position = position.ok_or_else(|| errors::undefined_index(index))?;
        if position == 0 && kind.is_hash() {
            return Err(Error::unsupported(
                "the first index of a table is always ordered",
            ));
        }
        let new = match self.inner.is_restoring() && position > 0 {
            true => old.with_emptied_index(position, kind),
            false => old.with_rebuilt_index(position, kind, &lock(&self.inner.maintenance))?,
        };
        Ok(self.replace(table, new))
    }

    /// Removes an index of a table; returns the table without it.
    ///
    /// # Errors
    /// 42P01 when there is no such table; 42704 when it has no such secondary index.
    pub fn drop_index(&mut self, table: &str, index: &str) -> Result<Arc<Table>> {
        self.claim(table)?;
        let old = self.catalog.require_table(table)?;
        let new = old
            .without_index(index)
            .ok_or_else(|| errors::undefined_index(index))?;
        Ok(self.replace(table, new))
    }

    /// The name of the table that has an index called `index`, which is in the schema of its table.
    pub fn index_owner(&self, index: &str) -> Option<&str> {
        self.catalog.index_owner(index)
    }
}
