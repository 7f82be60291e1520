//! Tables made, removed, emptied and divided.

use kiln_platform::sync::Arc;
use kiln_protocols::factors::Claims;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{
    ColumnSet, IndexDefinition, IndexKind, Partitioning, TableId, TableSchema,
};
use kiln_storage::table::Table;

use super::catalog_change::CatalogChange;
use crate::errors;
use crate::roles::Object;

impl CatalogChange<'_> {
    /// Adds an empty table. The first `partition_columns` columns of its primary key partition
    /// that index (see [`IndexKind::Ordered`]).
    ///
    /// # Errors
    /// 42P07 when the name is taken, and those of [`Table::new`].
    pub fn create_table(
        &mut self,
        schema: TableSchema,
        partition_columns: usize,
        indexes: Vec<IndexDefinition>,
    ) -> Result<Arc<Table>> {
        let name = schema.name.clone();
        if self.catalog.tables.contains_key(&name) {
            return Err(duplicate(&name));
        }
        // A block may have deleted a row of the other table with a program that knows nothing of
        // this one.
        for key in &schema.foreign_keys {
            if key.table != name {
                self.claim_whole(&key.table)?;
            }
        }
        self.check_no_sequence_or_view(&name)?;
        self.check_no_own_type(&name)?;
        let id = self.next_table_id()?;
        let table = Arc::new(Table::new(id, schema, partition_columns, indexes)?);
        self.catalog.tables.insert(name, table.clone());
        Ok(table)
    }

    /// Gives out a table number. One of a change that fails was never seen and is given out again,
    /// so that the numbers follow from the changes that were made.
    pub(crate) fn next_table_id(&mut self) -> Result<TableId> {
        if let Some(id) = self.tried_table_id() {
            return Ok(id);
        }
        let id = self.catalog.next_table_id;
        self.catalog.next_table_id = id.checked_add(1).ok_or_else(|| {
            let message = "the database has given out all table numbers";
            Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        })?;
        Ok(TableId(id))
    }

    /// Removes a table with its rows and the sequences that go with it. Procedures that use it must
    /// go, or be compiled without it, in the same change.
    ///
    /// # Errors
    /// 42P01.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        self.claim_whole(name)?;
        let removed = self.catalog.tables.remove(name);
        let removed = removed.ok_or_else(|| errors::undefined_table(name))?;
        self.catalog.changed.remove(&removed.id());
        self.catalog.views.remove(name);
        self.roles().forget(&Object::table(name));
        self.drop_owned_sequences(name)?;
        Ok(())
    }

    /// Puts an empty table of the same shape in a table's place.
    ///
    /// # Errors
    /// 42P01.
    pub fn truncate_table(&mut self, name: &str) -> Result<Arc<Table>> {
        self.claim_whole(name)?;
        let old = self.catalog.require_table(name)?.clone();
        let table = self.emptied(&old, true)?;
        Ok(self.replace(name, table))
    }

    /// An empty table like `old`, with a number of its own. If it is `whole`, it also gets the old
    /// table's secondary indexes.
    pub(crate) fn emptied(&mut self, old: &Table, whole: bool) -> Result<Table> {
        let partition_columns = match old.indexes()[0].definition().kind {
            IndexKind::Ordered { partition_columns } => partition_columns,
            IndexKind::Hash | IndexKind::SplitHash => 0,
        };
        let others = old.indexes().iter().skip(1).filter(|_| whole);
        let indexes = others.map(|index| index.definition().clone()).collect();
        let id = self.next_table_id()?;
        let table = Table::new(id, old.schema().clone(), partition_columns, indexes)?;
        table.split_by(old.split());
        table.set_unwritten(old.unwritten());
        Ok(table)
    }

    pub(crate) fn replace(&mut self, name: &str, table: Table) -> Arc<Table> {
        let table = Arc::new(table);
        if let Some(entry) = self.catalog.tables.get_mut(name) {
            let old = std::mem::replace(entry, table.clone());
            let version = self.catalog.version;
            self.catalog.changed.remove(&old.id());
            self.catalog.changed.insert(table.id(), version);
        }
        table
    }

    /// Has protocols with timestamp splitting cover these columns of a table by a second timestamp
    /// ([`Table::split_by`]), from the completion of this change on.
    ///
    /// # Errors
    /// 42P01.
    pub fn split_table(&mut self, name: &str, columns: ColumnSet) -> Result<()> {
        let table = self.catalog.require_table(name)?.clone();
        self.splits.retain(|(other, _)| other.id() != table.id());
        // What a block tries out shares tables with others.
        if table.split() != columns && !self.is_trial() && !self.is_temporary() {
            self.claim_table(table.id(), name)?;
            self.splits.push((table, columns));
        }
        Ok(())
    }

    /// Whether transactions claim records by column group ([`Claims::Columns`]).
    pub fn claims_columns(&self) -> bool {
        self.inner.common().factors().claims == Claims::Columns
    }

    /// Has protocols that claim records by column group keep a lock for these columns of a table
    /// ([`Table::set_unwritten`]), from the completion of this change on.
    ///
    /// # Errors
    /// 42P01.
    pub fn set_unwritten(&mut self, name: &str, columns: ColumnSet) -> Result<()> {
        let table = self.catalog.require_table(name)?.clone();
        self.unwritten.retain(|(other, _)| other.id() != table.id());
        // What a block tries out shares tables with others.
        if table.unwritten() != columns && !self.is_trial() && !self.is_temporary() {
            self.claim_table(table.id(), name)?;
            self.unwritten.push((table, columns));
        }
        Ok(())
    }

    /// Whether no open block is in the way of another split of a table.
    pub fn can_split_now(&self, table: TableId) -> bool {
        let inner = self.inner;
        inner
            .blocks
            .user_of(&[table], self.own_worker_slot())
            .is_none()
            && (!inner.common().orders_columns() || inner.gate.is_empty())
    }

    /// Divides a table's rows over partitions in another way; returns the table that says so.
    ///
    /// # Errors
    /// 42P01; those of [`Table::with_partitioning`].
    pub fn partition_table(
        &mut self,
        table: &str,
        partitioning: Option<Partitioning>,
    ) -> Result<Arc<Table>> {
        self.claim(table)?;
        let old = self.catalog.require_table(table)?;
        let new = old.with_partitioning(partitioning)?;
        Ok(self.replace(table, new))
    }
}

#[cold]
pub(crate) fn duplicate(name: &str) -> Error {
    let name = name_in_schema(name);
    Error::new(
        SqlState::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists"),
    )
}
