//! Changes of the catalog, made while no transaction runs. Open blocks that use none of the tables
//! that a change replaces or removes may stand aside meanwhile.

use std::collections::BTreeMap;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{ColumnSet, TableId};
use kiln_storage::table::Table;

use super::temporary::TemporaryChange;
use super::within_block::WithinBlock;
use crate::catalog::{
    Catalog, CatalogStatement, Commented, Comments, NumberedObject, Source, TableSplit,
};
use crate::errors;
use crate::kernel::{EngineInner, SlotUser};
use crate::options::DesignFactors;
use crate::roles::{FIRST_ROLE, Object, Roles};

/// A change of the catalog in progress; see
/// [`Engine::change_catalog`](crate::Engine::change_catalog).
///
/// Nothing of it is seen before it is complete, and nothing of it is left when it fails.
pub struct CatalogChange<'a> {
    pub(crate) inner: &'a EngineInner,
    pub(crate) before: Arc<Catalog>,
    pub(crate) catalog: Catalog,
    /// Which columns of tables are split from now on.
    pub(crate) splits: Vec<(Arc<Table>, ColumnSet)>,
    /// Which columns of tables have a lock of their own from now on.
    pub(crate) unwritten: Vec<(Arc<Table>, ColumnSet)>,
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
    /// The role to which new objects belong; `None` for the first one.
    pub(crate) owner: Option<String>,
    /// Whether its session writes texts in another style than the default: what it computes then
    /// is not told the style, since it may be computed again without the session.
    pub(crate) has_style: bool,
}

impl<'a> CatalogChange<'a> {
    pub(crate) fn new(inner: &'a EngineInner, before: Arc<Catalog>) -> CatalogChange<'a> {
        let catalog = before.next();
        CatalogChange {
            inner,
            before,
            catalog,
            splits: Vec::new(),
            unwritten: Vec::new(),
            awaited: Vec::new(),
            design: inner.options.basis_factors.design(),
            source: None,
            block: None,
            temporary: None,
            known_splits: None,
            moment_us: None,
            rewritten: Vec::new(),
            owner: None,
            has_style: false,
        }
    }

    /// The session that makes it writes texts in the default style, or in another one: then a
    /// program that asks for the style is refused.
    pub fn set_has_style(&mut self, has_style: bool) {
        self.has_style = has_style;
    }

    /// The role to which the objects belong that it makes: the one that runs the statement.
    pub fn owner(&self) -> &str {
        self.owner.as_deref().unwrap_or(FIRST_ROLE)
    }

    /// Has the objects that it makes belong to this role.
    pub fn set_owner(&mut self, role: &str) {
        self.owner = (role != FIRST_ROLE).then(|| role.to_owned());
    }

    /// The tables whose blocks it must wait for, if it is not complete for that reason.
    pub(crate) fn awaited(&self) -> &[TableId] {
        &self.awaited
    }

    /// Whether it changes which columns of a table are split.
    pub(crate) fn splits_tables(&self) -> bool {
        !self.splits.is_empty()
    }

    /// The error of waiting for them in vain.
    #[cold]
    pub(crate) fn in_use(&self) -> Error {
        let user = self
            .inner
            .blocks
            .user_of(&self.awaited, self.own_worker_slot());
        let (id, user) = user.unwrap_or((self.awaited[0], SlotUser::Engine));
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

    pub(super) fn claim_table(&mut self, id: TableId, name: &str) -> Result<()> {
        if self.is_temporary() {
            return self.claim_temporary(id, false);
        }
        match self.inner.blocks.user_of(&[id], self.own_worker_slot()) {
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

    /// Leaves the catalog its number: to those that look at it, what the change does is none.
    pub(crate) fn keep_version(&mut self) {
        self.catalog.version = self.before.version;
    }

    /// Whether a statement makes the change.
    pub(crate) fn is_statement(&self) -> bool {
        self.source.is_some()
    }

    /// Checks that the change can be logged.
    ///
    /// # Errors
    /// 55000 for one that no statement makes.
    pub(crate) fn check_logged(&self) -> Result<()> {
        if self.inner.log().is_some() && !self.is_statement() {
            let message = "a database with a log can only be changed by statements";
            let error = Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
            return Err(error.with_hint("Use CREATE, ALTER and DROP in place of Rust code."));
        }
        Ok(())
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

    /// Says something of an object that there is, in the place of what was said before; an empty
    /// text takes that away.
    pub fn comment(&mut self, on: Commented, text: &str) {
        self.comments().set(on, text);
    }

    pub(crate) fn comments(&mut self) -> &mut Comments {
        Arc::make_mut(&mut self.catalog.comments)
    }

    pub(crate) fn roles(&mut self) -> &mut Roles {
        Arc::make_mut(&mut self.catalog.roles)
    }

    /// The tables as changed so far, by their numbers.
    pub(super) fn current_tables(&self) -> BTreeMap<TableId, &Arc<Table>> {
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

    /// A new object belongs to the role that makes it.
    ///
    /// # Errors
    /// 42704 when that is no role.
    pub(crate) fn give_to_owner(&mut self, object: Object) -> Result<()> {
        match self.owner.clone() {
            Some(owner) => self.roles().set_owner(object, &owner),
            None => Ok(()),
        }
    }

    /// Gives numbers and privileges to the objects that it has made, and forgets numbers and
    /// comments of those that are gone.
    ///
    /// # Errors
    /// 54000 when all numbers of objects are given out; 42704 when their owner is no role.
    pub(crate) fn number_objects(&mut self) -> Result<()> {
        let mut numbers = (*self.catalog.numbers).clone();
        let new = numbers.follow(&self.catalog)?;
        self.catalog.numbers = Arc::new(numbers);
        for object in new.iter().filter_map(NumberedObject::object) {
            self.roles().give_defaults(&object);
            self.give_to_owner(object)?;
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
                owner: self.owner.clone(),
                refilled: None,
                version: self.catalog.version,
                first_table_id: TableId(self.before.next_table_id),
                design: self.design,
                source,
            })
        })
    }

    /// Puts the whole into force. Returns the new catalog and the tables that are replaced or gone;
    /// no transaction runs.
    pub(crate) fn put_in_force(self) -> (Catalog, Vec<Arc<Table>>) {
        for (table, columns) in &self.splits {
            table.split_by(*columns);
        }
        for (table, columns) in &self.unwritten {
            table.set_unwritten(*columns);
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
