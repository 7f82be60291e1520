//! Changes of the catalog, made while no transaction runs. Open blocks that use none of the tables
//! that a change replaces or removes may stand aside meanwhile.

use std::collections::BTreeMap;

use kiln_platform::sync::{Arc, lock};
use kiln_procedure::CallCounts;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema};
use kiln_storage::schema::{
    ColumnSet, IndexDefinition, IndexKind, Partitioning, TableId, TableSchema,
};
use kiln_storage::table::{Table, WORKERS_MAX};

use crate::catalog::{Catalog, Procedure, RowPrograms};
use crate::errors;
use crate::memory::SeatUser;
use crate::numbers::NumberedObject;
use crate::options::{DesignFactors, RESERVED};
use crate::roles::{Object, ObjectKind, Privileges, Role, Roles};
use crate::shared::Shared;
use crate::statement::{CatalogStatement, Source, TableSplit};
use crate::temporary::TemporaryChange;
use crate::within_block::WithinBlock;
use crate::written::WrittenCatalog;

/// A change of the catalog in progress; see
/// [`Engine::change_catalog`](crate::Engine::change_catalog).
///
/// Nothing of it is seen before it is complete, and nothing of it is left when it fails.
pub struct CatalogChange<'a> {
    pub(crate) inner: &'a Shared,
    pub(crate) before: Arc<Catalog>,
    pub(crate) catalog: Catalog,
    /// Which columns of tables are kept apart from now on.
    pub(crate) splits: Vec<(Arc<Table>, ColumnSet)>,
    /// Tables that it changes and that an open block uses: it must wait, and begin anew.
    pub(crate) awaited: Vec<TableId>,
    pub(crate) design: DesignFactors,
    pub(crate) source: Option<Arc<Source>>,
    /// The transaction block of which it is a part, if it is.
    pub(crate) block: Option<WithinBlock<'a>>,
    /// What it is of, if it is of temporary objects of a session alone.
    pub(crate) temporary: Option<TemporaryChange>,
    /// The splits of the statement that makes this change again.
    pub(crate) known_splits: Option<Vec<TableSplit>>,
    /// When it is made, if what it does depends on that; see [`CatalogChange::moment_us`].
    pub(crate) moment_us: Option<i64>,
    /// Tables whose rows are others' now, in another layout; in the order in which they were.
    pub(crate) rewritten: Vec<Arc<Table>>,
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
            design: inner.options.basis_factors.design(),
            source: None,
            block: None,
            temporary: None,
            known_splits: None,
            moment_us: None,
            rewritten: Vec::new(),
        }
    }

    /// The tables whose blocks it must wait for, if it is not complete for that reason.
    pub(crate) fn awaited(&self) -> &[TableId] {
        &self.awaited
    }

    /// Whether it changes which columns a table keeps apart.
    pub(crate) fn splits_tables(&self) -> bool {
        !self.splits.is_empty()
    }

    /// The error of waiting for them in vain.
    #[cold]
    pub(crate) fn in_use(&self) -> Error {
        let user = self.inner.blocks.user_of(&self.awaited, self.own_seat());
        let (id, user) = user.unwrap_or((self.awaited[0], SeatUser::Engine));
        let table = self.before.table_by_id(id);
        let name = table.map_or("", |table| &table.schema().name);
        errors::table_in_use(name, user)
    }

    /// Checks that no open block uses a table that this is about to change, and brings its rows up
    /// to date.
    ///
    /// # Errors
    /// 42P01 when there is no such table. 55P03 when an open block uses it, or when the block that
    /// contains this change needs rows of its own: the change is made anew later.
    pub(crate) fn claim(&mut self, name: &str) -> Result<()> {
        let id = self.claim_whole(name)?;
        self.claim_temporary(id, true)?;
        self.want_own(id, name, true)
    }

    /// As [`CatalogChange::claim`], of a table whose rows are only looked at.
    pub(crate) fn claim_to_read(&mut self, name: &str) -> Result<()> {
        let id = self.claim_whole(name)?;
        self.claim_temporary(id, true)?;
        self.want_own(id, name, false)
    }

    /// As [`CatalogChange::claim`], of a table whose rows do not matter: it goes, or others refer
    /// to it.
    pub(crate) fn claim_whole(&mut self, name: &str) -> Result<TableId> {
        let id = self.catalog.require_table(name)?.id();
        self.claim_table(id, name)?;
        Ok(id)
    }

    fn claim_table(&mut self, id: TableId, name: &str) -> Result<()> {
        if self.is_temporary() {
            return self.claim_temporary(id, false);
        }
        match self.inner.blocks.user_of(&[id], self.own_seat()) {
            None => {
                self.inner.settle_table(id);
                Ok(())
            }
            Some((_, user)) => {
                self.awaited.push(id);
                Err(errors::table_in_use(name, user))
            }
        }
    }

    /// Says which statement makes this change. Without one it is a change of Rust code, which a
    /// log can only keep as the whole catalog that came of it.
    pub fn set_statement(&mut self, source: Arc<Source>) {
        self.source = Some(source);
    }

    /// Makes this change what `statement` says it was: its text, and the settings in force then.
    /// The caller runs the statement.
    ///
    /// # Errors
    /// 55000 when the present catalog is not the one that the statement changed.
    pub fn redo(&mut self, statement: &CatalogStatement) -> Result<()> {
        let (version, id) = (self.before.version + 1, self.before.next_table_id);
        if (statement.version, statement.first_table_id.0) != (version, id) {
            return Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "the statement made version {} of a catalog, with tables from number {}; the next \
                     one here is version {version}, with tables from number {id}",
                    statement.version, statement.first_table_id.0
                ),
            )
            .with_hint("Run all statements since the catalog was written, in their order."));
        }
        self.design = statement.design;
        self.known_splits = Some(statement.splits.clone());
        self.moment_us = statement.moment_us;
        self.set_statement(statement.source.clone());
        Ok(())
    }

    /// Keeps apart the columns that the statement kept apart which makes this change again,
    /// whatever was called since; false when the change is a new one.
    ///
    /// # Errors
    /// XX001 when the statement names what is not there.
    pub fn redo_splits(&mut self) -> Result<bool> {
        let Some(splits) = self.known_splits.clone() else {
            return Ok(false);
        };
        for TableSplit { table, columns } in splits {
            let known = self.catalog.table_by_id(table).map(|table| table.schema());
            let known = known.filter(|schema| {
                let mut columns = columns.iter();
                columns.all(|column| column.index() < schema.columns.len())
            });
            let name = known.map(|schema| schema.name.clone()).ok_or_else(|| {
                let message = format!("the statement splits table {}, which is none", table.0);
                Error::new(SqlState::DATA_CORRUPTED, message)
            })?;
            self.split_table(&name, columns)?;
        }
        Ok(true)
    }

    /// Restores version, table numbers and tables of a written catalog. The caller restores the
    /// procedures: it has the compiler.
    ///
    /// # Errors
    /// 55000 when there are tables or procedures already; XX001 for what no catalog can have been;
    /// those of [`Table::new`].
    pub fn restore(&mut self, written: &WrittenCatalog) -> Result<()> {
        if !self.catalog.tables.is_empty() || !self.catalog.procedures.is_empty() {
            return Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "a catalog can only be rebuilt in an empty database",
            ));
        }
        written.check()?;
        self.catalog.version = written.version;
        self.catalog.next_table_id = written.next_table_id.0;
        for table in &written.tables {
            let indexes = table.indexes.iter().skip(1).cloned().collect();
            let schema = table.schema.clone();
            let made = Table::new(table.id, schema, table.partition_columns(), indexes)?;
            let (first, wanted) = (made.indexes()[0].definition(), &table.indexes[0]);
            if (&first.name, &first.columns, first.kind)
                != (&wanted.name, &wanted.columns, wanted.kind)
            {
                let message = format!("index \"{}\" cannot be the first of its table", wanted.name);
                return Err(Error::new(SqlState::DATA_CORRUPTED, message));
            }
            made.split_by(table.split);
            for (memory, next) in &table.row_numbers {
                made.restore_row_number(*memory, *next);
            }
            let name = table.schema.name.clone();
            self.catalog.tables.insert(name, Arc::new(made));
        }
        self.catalog.schemas.clone_from(&written.schemas);
        self.catalog.extensions.clone_from(&written.extensions);
        self.restore_sequences(&written.sequences);
        let enums = written.enums.iter();
        self.catalog.enums = enums.map(|of| (of.name().to_owned(), of.clone())).collect();
        let views = written.views.iter();
        self.catalog.views = views
            .map(|view| (view.name.clone(), view.clone()))
            .collect();
        self.catalog.roles = Arc::new(written.roles.clone());
        self.catalog.numbers = Arc::new(written.numbers.clone());
        self.catalog.comments = Arc::new(written.comments.clone());
        Ok(())
    }

    /// Leaves the catalog its number: to those that look at it, what the change does is none.
    pub(crate) fn keep_version(&mut self) {
        self.catalog.version = self.before.version;
    }

    /// Whether a statement makes the change.
    pub(crate) fn is_statement(&self) -> bool {
        self.source.is_some()
    }

    /// The catalog before the change; of one that is a part of a transaction block, before its last
    /// statement.
    pub fn before(&self) -> &Catalog {
        let block = self.block.as_ref();
        block.map_or(&self.before, WithinBlock::former)
    }

    /// The catalog as changed so far.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The settings that the derived physical design depends on.
    pub fn design(&self) -> DesignFactors {
        self.design
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
        self.check_no_enum(&name)?;
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
        Ok(table)
    }

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

    /// The name of the table that has an index called `index`, which is in the schema of its table.
    pub fn index_owner(&self, index: &str) -> Option<&str> {
        self.catalog.index_owner(index)
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

    /// Whether no open block is in the way of another split of a table.
    pub fn can_split_now(&self, table: TableId) -> bool {
        let inner = self.inner;
        inner.blocks.user_of(&[table], self.own_seat()).is_none()
            && (!inner.common().orders_columns() || inner.gate.is_empty())
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
        let replaced = self.catalog.procedures.get(&name);
        let known = replaced.and_then(|replaced| replaced.program().calls.get());
        // Who replaces a procedure does not change how often clients call it.
        let calls = known.cloned().unwrap_or_else(|| {
            let seats = WORKERS_MAX - RESERVED;
            Arc::new(CallCounts::new(seats))
        });
        // One that Rust code made, and that was created before, has its own.
        procedure.program().calls.get_or_init(|| calls);
        self.catalog.procedures.insert(name, Arc::new(procedure));
        Ok(())
    }

    /// Removes a procedure.
    ///
    /// # Errors
    /// 42883.
    pub fn drop_procedure(&mut self, name: &str) -> Result<()> {
        let removed = self.catalog.procedures.remove(name);
        removed.ok_or_else(|| errors::undefined_procedure(name))?;
        self.roles().forget(&Object::routine(name));
        Ok(())
    }

    pub(crate) fn roles(&mut self) -> &mut Roles {
        Arc::make_mut(&mut self.catalog.roles)
    }

    /// Adds a role.
    ///
    /// # Errors
    /// 42710 when the name is taken, 42939 for one that is reserved.
    pub fn create_role(&mut self, role: Role) -> Result<()> {
        self.roles().create(role)
    }

    /// Replaces the role that has this name.
    ///
    /// # Errors
    /// 42704 when no role has the name; 0A000 when the first role would no longer be a superuser,
    /// or could not connect.
    pub fn alter_role(&mut self, role: Role) -> Result<()> {
        self.roles().replace(role)
    }

    /// Removes a role.
    ///
    /// # Errors
    /// 42704 when no role has the name; 2BP01 for the first role, and for one that has privileges.
    pub fn drop_role(&mut self, name: &str) -> Result<()> {
        self.roles().drop(name)
    }

    /// Gives privileges for an object to a role, or to [`PUBLIC`](crate::PUBLIC).
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn grant(&mut self, object: &Object, grantee: &str, granted: Privileges) -> Result<()> {
        (self.roles()).change(object, grantee, |privileges| privileges.and(granted))
    }

    /// Takes privileges for an object away.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn revoke(&mut self, object: &Object, grantee: &str, revoked: Privileges) -> Result<()> {
        (self.roles()).change(object, grantee, |privileges| privileges.without(revoked))
    }

    /// Makes a role a member of another one: it may do what that one may do. Says whether it was
    /// none before.
    ///
    /// # Errors
    /// 42704 when there is no such role; 0LP01 when the other one is a member of it.
    pub fn add_member(&mut self, member: &str, role: &str) -> Result<bool> {
        self.roles().add_member(member, role)
    }

    /// Ends a membership; says whether there was one.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn remove_member(&mut self, member: &str, role: &str) -> Result<bool> {
        self.roles().remove_member(member, role)
    }

    /// Changes what a grantee may do with objects of a kind that are made from here on, in one
    /// schema or in all.
    ///
    /// # Errors
    /// 42704 when there is no such role.
    pub fn change_default_privileges(
        &mut self,
        kind: ObjectKind,
        schema: Option<&str>,
        grantee: &str,
        change: impl FnOnce(Privileges) -> Privileges,
    ) -> Result<()> {
        (self.roles()).change_defaults(kind, schema, grantee, change)
    }

    /// Sets the factory that makes the programs for rows written from Rust.
    pub fn set_row_programs(&mut self, programs: Arc<dyn RowPrograms>) {
        self.catalog.row_programs = Some(programs);
    }

    /// The procedures that use a table which is not in the catalog any more, or not in that
    /// shape, or whose compiler looked up what is another thing now: they must be compiled again
    /// or dropped before the change is complete.
    pub fn stale_procedures(&self) -> Vec<Arc<Procedure>> {
        let tables = self.current_tables();
        let stale = self.catalog.procedures.values().filter(|procedure| {
            let mut used = procedure.program().tables.iter();
            used.any(|table| !is_current(&tables, table))
                || !procedure.lookups().hold_in(&self.catalog)
        });
        stale.cloned().collect()
    }

    fn current_tables(&self) -> BTreeMap<TableId, &Arc<Table>> {
        let tables = self.catalog.tables.values();
        tables.map(|table| (table.id(), table)).collect()
    }

    /// Checks the whole and puts it into force. Returns the new catalog and the tables that are
    /// replaced or gone. No transaction runs meanwhile.
    ///
    /// # Errors
    /// 2BP01; 54000 when all numbers of objects are given out.
    pub(crate) fn complete(mut self) -> Result<(Catalog, Vec<Arc<Table>>)> {
        self.check_procedures()?;
        self.number_objects()?;
        let statement = self.statement();
        self.catalog.statement = statement;
        Ok(self.put_in_force())
    }

    /// Gives numbers and privileges to the objects that it has made, and forgets numbers and
    /// comments of those that are gone.
    ///
    /// # Errors
    /// 54000 when all numbers of objects are given out.
    pub(crate) fn number_objects(&mut self) -> Result<()> {
        let mut numbers = (*self.catalog.numbers).clone();
        let new = numbers.follow(&self.catalog)?;
        self.catalog.numbers = Arc::new(numbers);
        for object in new.iter().filter_map(NumberedObject::object) {
            self.roles().give_defaults(&object);
        }
        let mut comments = (*self.catalog.comments).clone();
        comments.follow(&self.catalog);
        self.catalog.comments = Arc::new(comments);
        Ok(())
    }

    /// The statement that makes it, if one does.
    fn statement(&mut self) -> Option<Arc<CatalogStatement>> {
        let splits = self.splits.iter().map(|(table, columns)| TableSplit {
            table: table.id(),
            columns: *columns,
        });
        let splits = splits.collect();
        self.source.take().map(|source| {
            Arc::new(CatalogStatement {
                splits,
                moment_us: self.moment_us,
                refilled: None,
                version: self.catalog.version,
                first_table_id: TableId(self.before.next_table_id),
                design: self.design,
                source,
            })
        })
    }

    /// Checks that no procedure uses a table that this has changed.
    ///
    /// # Errors
    /// 2BP01.
    pub(crate) fn check_procedures(&self) -> Result<()> {
        if self.is_temporary() {
            return Ok(());
        }
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
        Ok(())
    }

    /// Puts the whole into force. Returns the new catalog and the tables that are replaced or gone;
    /// no transaction runs.
    pub(crate) fn put_in_force(self) -> (Catalog, Vec<Arc<Table>>) {
        for (table, columns) in &self.splits {
            table.split_by(*columns);
        }
        let tables = self.current_tables();
        let mut replaced = Vec::new();
        for old in self.before.tables.values() {
            let new = tables.get(&old.id());
            if new.is_none_or(|new| !Arc::ptr_eq(new, old)) {
                old.supersede(new.map(|table| &***table));
                replaced.push(old.clone());
            }
        }
        self.inner.keep_rewritten(&self.rewritten);
        self.supersede_sequences();
        (self.catalog, replaced)
    }
}

fn is_current(tables: &BTreeMap<TableId, &Arc<Table>>, table: &Arc<Table>) -> bool {
    tables
        .get(&table.id())
        .is_some_and(|current| Arc::ptr_eq(current, table))
}

#[cold]
pub(crate) fn duplicate(name: &str) -> Error {
    let name = name_in_schema(name);
    Error::new(
        SqlState::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists"),
    )
}
