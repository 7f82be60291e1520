//! Changes of the catalog, made while no transaction runs. Open blocks that use none of the tables that a change
//! replaces or removes may stand aside meanwhile.

use std::collections::BTreeMap;

use kiln_platform::sync::{Arc, lock};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{
    ColumnSet, IndexDefinition, IndexKind, Partitioning, TableId, TableSchema,
};
use kiln_storage::table::Table;

use crate::catalog::{Catalog, Extra, Procedure, RowPrograms, TableEntry};
use crate::errors;
use crate::memory::SeatUser;
use crate::options::Options;
use crate::shared::Shared;

/// A change of the catalog in progress; see [`Engine::change_catalog`](crate::Engine::change_catalog).
///
/// Nothing of it is seen before it is complete, and nothing of it is left when it fails.
pub struct CatalogChange<'a> {
    inner: &'a Shared,
    before: Arc<Catalog>,
    catalog: Catalog,
    /// Which columns of tables are kept apart from now on.
    splits: Vec<(Arc<Table>, ColumnSet)>,
    /// Tables that it changes and that an open block uses: it must wait, and begin anew.
    awaited: Vec<TableId>,
}

impl<'a> CatalogChange<'a> {
    pub(crate) fn new(inner: &'a Shared, before: Arc<Catalog>) -> CatalogChange<'a> {
        let catalog = before.next();
        CatalogChange {
            inner,
            before,
            catalog,
            splits: Vec::new(),
            awaited: Vec::new(),
        }
    }

    /// The tables whose blocks it must wait for, if it is not complete for that reason.
    pub(crate) fn awaited(&self) -> &[TableId] {
        &self.awaited
    }

    /// The error of waiting for them in vain.
    #[cold]
    pub(crate) fn in_use(&self) -> Error {
        let user = self.inner.blocks.user_of(&self.awaited);
        let (id, user) = user.unwrap_or((self.awaited[0], SeatUser::Engine));
        let table = self.before.table_by_id(id);
        let name = table.map_or("", |table| &table.schema().name);
        errors::table_in_use(name, user)
    }

    /// Checks that no open block uses a table that this is about to change.
    ///
    /// # Errors
    /// 42P01; 55P03 when one does: the change is made anew later.
    fn claim(&mut self, name: &str) -> Result<()> {
        let id = self.catalog.require_table(name)?.id();
        self.claim_table(id, name)
    }

    fn claim_table(&mut self, id: TableId, name: &str) -> Result<()> {
        match self.inner.blocks.user_of(&[id]) {
            None => Ok(()),
            Some((_, user)) => {
                self.awaited.push(id);
                Err(errors::table_in_use(name, user))
            }
        }
    }

    /// The catalog as changed so far.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The settings of the database.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

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
        extra: Option<Extra>,
    ) -> Result<Arc<Table>> {
        let name = schema.name.clone();
        if self.catalog.tables.contains_key(&name) {
            return Err(duplicate(&name));
        }
        // A block may have deleted a row of the other table with a program that knows nothing of this one.
        for key in &schema.foreign_keys {
            if key.table != name {
                self.claim(&key.table)?;
            }
        }
        let id = TableId(self.inner.next_table_id());
        let table = Arc::new(Table::new(id, schema, partition_columns, indexes)?);
        self.catalog.tables.insert(
            name,
            TableEntry {
                table: table.clone(),
                extra,
                changed: 0,
            },
        );
        Ok(table)
    }

    /// Removes a table with its rows. Procedures that use it must go, or be compiled without it,
    /// in the same change.
    ///
    /// # Errors
    /// 42P01.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        self.claim(name)?;
        let removed = self.catalog.tables.remove(name);
        removed
            .map(|_| ())
            .ok_or_else(|| errors::undefined_table(name))
    }

    /// Puts an empty table of the same shape in a table's place.
    ///
    /// # Errors
    /// 42P01.
    pub fn truncate_table(&mut self, name: &str) -> Result<Arc<Table>> {
        self.claim(name)?;
        let old = self.catalog.require_table(name)?;
        let partition_columns = match old.indexes()[0].definition().kind {
            IndexKind::Ordered { partition_columns } => partition_columns,
            IndexKind::Hash | IndexKind::SplitHash => 0,
        };
        let indexes = old
            .indexes()
            .iter()
            .skip(1)
            .map(|index| index.definition().clone());
        let (schema, indexes) = (old.schema().clone(), indexes.collect());
        let id = TableId(self.inner.next_table_id());
        let table = Table::new(id, schema, partition_columns, indexes)?;
        Ok(self.replace(name, table))
    }

    /// Adds an index to a table and fills it; returns the table that has it.
    ///
    /// # Errors
    /// 42P01; 42P07 when an index of that name exists; those of [`Table::with_index`].
    pub fn add_index(&mut self, table: &str, definition: IndexDefinition) -> Result<Arc<Table>> {
        if self.index_owner(&definition.name).is_some() {
            return Err(duplicate(&definition.name));
        }
        self.claim(table)?;
        let old = self.catalog.require_table(table)?;
        let new = old.with_index(definition, &lock(&self.inner.maintenance))?;
        Ok(self.replace(table, new))
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
        let new = old.with_rebuilt_index(position, kind, &lock(&self.inner.maintenance))?;
        Ok(self.replace(table, new))
    }

    /// Removes an index of a table; returns the table without it.
    ///
    /// # Errors
    /// 42P01; 42704 when the table has no such index besides its first.
    pub fn drop_index(&mut self, table: &str, index: &str) -> Result<Arc<Table>> {
        self.claim(table)?;
        let old = self.catalog.require_table(table)?;
        let new = old
            .without_index(index)
            .ok_or_else(|| errors::undefined_index(index))?;
        Ok(self.replace(table, new))
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

    /// The name of the table that has an index called `index`.
    pub fn index_owner(&self, index: &str) -> Option<&str> {
        let mut tables = self.catalog.tables();
        tables.find_map(|(name, entry)| {
            let mut indexes = entry.table.indexes().iter();
            indexes
                .any(|known| known.definition().name == index)
                .then_some(name)
        })
    }

    fn replace(&mut self, name: &str, table: Table) -> Arc<Table> {
        let table = Arc::new(table);
        if let Some(entry) = self.catalog.tables.get_mut(name) {
            entry.table = table.clone();
            entry.changed = self.catalog.version;
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
        if table.split() != columns {
            self.claim_table(table.id(), name)?;
            self.splits.push((table, columns));
        }
        Ok(())
    }

    /// Attaches something to a table, in place of what was attached.
    ///
    /// # Errors
    /// 42P01.
    pub fn set_table_extra(&mut self, name: &str, extra: Option<Extra>) -> Result<()> {
        let entry = self.catalog.tables.get_mut(name);
        entry.ok_or_else(|| errors::undefined_table(name))?.extra = extra;
        Ok(())
    }

    /// Adds a procedure, or replaces the one of that name if `or_replace`.
    ///
    /// # Errors
    /// 42723 when the name is taken.
    pub fn create_procedure(&mut self, procedure: Procedure, or_replace: bool) -> Result<()> {
        let name = procedure.name().to_owned();
        if !or_replace && self.catalog.procedures.contains_key(&name) {
            return Err(Error::new(
                SqlState::DUPLICATE_FUNCTION,
                format!("procedure {name} already exists"),
            )
            .with_hint("Use CREATE OR REPLACE, or drop it first."));
        }
        self.catalog.procedures.insert(name, Arc::new(procedure));
        Ok(())
    }

    /// Removes a procedure.
    ///
    /// # Errors
    /// 42883.
    pub fn drop_procedure(&mut self, name: &str) -> Result<()> {
        let removed = self.catalog.procedures.remove(name);
        removed
            .map(|_| ())
            .ok_or_else(|| errors::undefined_procedure(name))
    }

    /// Attaches something to the catalog as a whole, in place of what was attached.
    pub fn set_extra(&mut self, extra: Option<Extra>) {
        self.catalog.extra = extra;
    }

    /// Says who makes the programs for rows written from Rust.
    pub fn set_row_programs(&mut self, programs: Arc<dyn RowPrograms>) {
        self.catalog.row_programs = Some(programs);
    }

    /// The procedures that use a table which is not in the catalog any more, or not in that
    /// shape: they must be compiled again or dropped before the change is complete.
    pub fn stale_procedures(&self) -> Vec<Arc<Procedure>> {
        let tables = self.current_tables();
        let stale = self.catalog.procedures.values().filter(|procedure| {
            procedure
                .program()
                .tables
                .iter()
                .any(|table| !is_current(&tables, table))
        });
        stale.cloned().collect()
    }

    fn current_tables(&self) -> BTreeMap<TableId, &Arc<Table>> {
        self.catalog
            .tables
            .values()
            .map(|entry| (entry.table.id(), &entry.table))
            .collect()
    }

    /// Checks the whole and puts it into force. Returns the new catalog and the tables that are
    /// replaced or gone; nobody runs a transaction.
    ///
    /// # Errors
    /// 2BP01.
    pub(crate) fn complete(self) -> Result<(Catalog, Vec<Arc<Table>>)> {
        if let Some(procedure) = self.stale_procedures().first() {
            return Err(Error::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!(
                    "procedure {} uses a table that this changes",
                    procedure.name()
                ),
            )
            .with_hint("Compile it again, or drop it, in the same change."));
        }
        for (table, columns) in &self.splits {
            table.split_by(*columns);
        }
        let tables = self.current_tables();
        let mut replaced = Vec::new();
        for entry in self.before.tables.values() {
            let (old, new) = (&entry.table, tables.get(&entry.table.id()));
            if new.is_none_or(|new| !Arc::ptr_eq(new, old)) {
                old.supersede(new.map(|table| &***table));
                replaced.push(old.clone());
            }
        }
        Ok((self.catalog, replaced))
    }
}

fn is_current(tables: &BTreeMap<TableId, &Arc<Table>>, table: &Arc<Table>) -> bool {
    tables
        .get(&table.id())
        .is_some_and(|current| Arc::ptr_eq(current, table))
}

#[cold]
fn duplicate(name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists"),
    )
}
