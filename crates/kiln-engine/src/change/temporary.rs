//! Temporary tables, sequences and views: what a session has for itself, and loses when it ends.
//!
//! They are in a schema of the session, and in no catalog in force. The session's statements are
//! compiled for the catalog in force with its own objects laid over it ([`Temporary::over`]). So a
//! definition of temporary objects changes nothing that another session looks at: it shuts no gate,
//! waits for no block, and the log, checkpoints and recovery know nothing of it. Tables have
//! numbers that no table of a catalog in force has, by which a commit leaves their rows out of its
//! report ([`TableId::is_durable`]).
//!
//! In a block the objects are those of the last definition. When an attempt of the block is rolled
//! back they are those from before the block again, and a replay makes the definitions anew, with
//! the block's other statements.

use std::collections::BTreeMap;

use kiln_platform::sync::{Arc, Mutex, MutexGuard, Weak, lock};
use kiln_procedure::Program;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{name_in_schema, schema_of};
use kiln_storage::schema::TableId;
use kiln_storage::sequence::Sequence;
use kiln_storage::table::Table;

use super::catalog_change::CatalogChange;
use super::definition::Definition;
use super::within_block::{Refused, WithinBlock};
use crate::catalog::{
    Catalog, Comments, CurrentCatalog, ObjectNumbers, OnCommit, TemporarySchema, View,
    schema_of_session,
};
use crate::errors;
use crate::kernel::{EngineInner, SeesCatalog};

/// The first number of a temporary object: each session gives them out for itself, and no object of
/// a catalog in force comes so far.
const FIRST_NUMBER: u32 = 0x7000_0000;

/// A definition of temporary objects in progress.
pub(crate) struct TemporaryChange {
    /// Whether no transaction runs meanwhile.
    pub is_alone: bool,
    /// Whether it has found that it needs that.
    pub must_be_alone: bool,
}

/// Why temporary objects were not changed.
pub(crate) enum Unchanged {
    /// Rows have to be brought up to date, while no transaction runs.
    MustBeAlone,
    Conflict(Error),
    Final(Error),
}

/// The temporary objects of a session, in the course of its statements. Also those look at it who
/// run what the session has submitted.
pub(crate) struct Temporary {
    schema: Arc<str>,
    state: Mutex<Changing>,
}

struct Changing {
    /// As the last transaction has left them.
    committed: Arc<Objects>,
    /// As the open block has them.
    current: Arc<Objects>,
    /// What the block has had in between.
    former: Vec<Arc<Objects>>,
    /// The catalog over which they were laid last, and what came of it.
    seen: Option<(Weak<Catalog>, Arc<Catalog>)>,
}

/// The objects at one time.
#[derive(Clone, Default)]
struct Objects {
    tables: BTreeMap<String, Arc<Table>>,
    sequences: BTreeMap<String, Arc<Sequence>>,
    views: BTreeMap<String, Arc<View>>,
    on_commit: BTreeMap<String, OnCommit>,
    numbers: ObjectNumbers,
    comments: Comments,
}

impl Objects {
    /// Those in the temporary schema of a catalog.
    fn of(catalog: &Catalog, schema: &str) -> Objects {
        fn within<V: Clone>(all: &BTreeMap<String, V>, schema: &str) -> BTreeMap<String, V> {
            let all = all.iter().filter(|(name, _)| schema_of(name) == schema);
            all.map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        }
        let tables = within(&catalog.tables, schema);
        let mut on_commit = catalog
            .temporary
            .as_ref()
            .map_or_else(BTreeMap::new, |it| it.on_commit.clone());
        on_commit.retain(|name, _| tables.contains_key(name));
        Objects {
            sequences: within(&catalog.sequences, schema),
            views: within(&catalog.views, schema),
            numbers: catalog.numbers.of_schema(schema),
            comments: catalog.comments.of_schema(schema),
            tables,
            on_commit,
        }
    }

    fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.sequences.is_empty() && self.views.is_empty()
    }

    fn has_table(&self, table: &Arc<Table>) -> bool {
        let mut tables = self.tables.values();
        tables.any(|known| Arc::ptr_eq(known, table))
    }

    fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.id() == id)
    }

    /// Refuses a table that would keep rows which refer to rows that a commit takes away.
    ///
    /// # Errors
    /// 0A000.
    fn check_on_commit(&self) -> Result<()> {
        for (name, on_commit) in &self.on_commit {
            let mut others = self.tables.iter().filter(|(other, table)| {
                let mut keys = table.schema().foreign_keys.iter();
                let ends = self.on_commit.get(*other);
                let outlives = ends != Some(on_commit) && ends != Some(&OnCommit::Drop);
                outlives && keys.any(|key| key.table == *name)
            });
            if let Some((other, _)) = others.next() {
                let (other, name) = (name_in_schema(other), name_in_schema(name));
                let message = "unsupported ON COMMIT and foreign key combination";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .with_detail(format!("Table \"{other}\" references \"{name}\", but they do not have the same ON COMMIT setting.")));
            }
        }
        Ok(())
    }

    /// What is left of them when a transaction has committed.
    fn after_commit(&self, inner: &EngineInner) -> Objects {
        let mut left = self.clone();
        for (name, on_commit) in &self.on_commit {
            match on_commit {
                OnCommit::PreserveRows => {}
                OnCommit::DeleteRows => left.empty(name, inner),
                OnCommit::Drop => left.drop_table(name),
            }
        }
        left
    }

    fn empty(&mut self, name: &str, inner: &EngineInner) {
        let Some(table) = self.tables.get_mut(name) else {
            return;
        };
        if table.indexes()[0].is_empty() {
            return;
        }
        let others = table.indexes().iter().skip(1);
        let others = others.map(|index| index.definition().clone()).collect();
        let id = inner.unlogged_table_id();
        let emptied = Table::new(id, table.schema().clone(), 0, others);
        *table = Arc::new(emptied.expect("there is a table like it"));
    }

    /// Removes a table with the sequences that go with it, and the views that read from it.
    fn drop_table(&mut self, name: &str) {
        self.tables.remove(name);
        self.on_commit.remove(name);
        self.sequences.retain(|_, sequence| {
            let owner = sequence.definition().owner.as_ref();
            owner.is_none_or(|owner| owner.table != name)
        });
        let mut gone = vec![name.to_owned()];
        while let Some(name) = gone.pop() {
            let readers = self.views.values().filter(|view| view.reads(&name));
            let readers: Vec<String> = readers.map(|view| view.name.clone()).collect();
            for reader in readers {
                self.views.remove(&reader);
                gone.push(reader);
            }
        }
    }

    /// The catalog `base` with these objects.
    fn over(&self, schema: &Arc<str>, base: &Catalog) -> Arc<Catalog> {
        fn add<V: Clone>(all: &mut BTreeMap<String, V>, own: &BTreeMap<String, V>) {
            all.extend(
                own.iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        let mut seen = base.copied();
        add(&mut seen.tables, &self.tables);
        add(&mut seen.sequences, &self.sequences);
        add(&mut seen.views, &self.views);
        seen.schemas.insert(schema.to_string());
        seen.numbers = Arc::new(base.numbers.with(&self.numbers, FIRST_NUMBER));
        seen.comments = Arc::new(base.comments.with(&self.comments));
        seen.temporary = Some(Arc::new(TemporarySchema {
            name: schema.clone(),
            on_commit: self.on_commit.clone(),
        }));
        let current = Arc::new(CurrentCatalog::beside(&base.current));
        seen.current = current.clone();
        let seen = Arc::new(seen);
        current.set(&seen);
        seen
    }
}

impl Temporary {
    /// Those of the session with this number, which has none yet.
    pub fn of_session(number: u64) -> Temporary {
        let none = Arc::new(Objects::default());
        Temporary {
            schema: schema_of_session(number).into(),
            state: Mutex::new(Changing {
                committed: none.clone(),
                current: none,
                former: Vec::new(),
                seen: None,
            }),
        }
    }

    /// The name of their schema, while there is something in it.
    pub fn schema(&self) -> Option<Arc<str>> {
        let is_empty = self.state().current.is_empty();
        (!is_empty).then(|| self.schema.clone())
    }

    /// A catalog as the session sees it: with its own objects, if it has some.
    pub fn over(&self, base: &Arc<Catalog>) -> Arc<Catalog> {
        let mut state = self.state();
        if state.current.is_empty() {
            state.seen = None;
            return base.clone();
        }
        // An address is not used again while a weak pointer holds it.
        if let Some((known, seen)) = &state.seen
            && std::ptr::eq(known.as_ptr(), Arc::as_ptr(base))
        {
            return seen.clone();
        }
        let seen = state.current.over(&self.schema, base);
        state.seen = Some((Arc::downgrade(base), seen.clone()));
        seen
    }

    /// Whether a table loses its rows, or goes, when a transaction commits that a program is.
    pub fn ends_with(&self, program: &Program) -> bool {
        let state = self.state();
        let is_of = |name: &String| program.tables.iter().any(|it| it.schema().name == *name);
        state.current.on_commit.keys().any(is_of)
    }

    /// Whether a table loses its rows, or goes, when a transaction commits.
    pub fn ends_something(&self) -> bool {
        !self.state().current.on_commit.is_empty()
    }

    /// Makes the change of a definition, in a block whose attempt is open. Gives back what the
    /// block has become.
    pub fn define<'a>(
        &self,
        inner: &'a EngineInner,
        base: &Arc<Catalog>,
        mut block: WithinBlock<'a>,
        (number, definition): (u64, &dyn Definition),
        is_alone: bool,
    ) -> (std::result::Result<(), Unchanged>, WithinBlock<'a>) {
        let before = self.state().current.over(&self.schema, base);
        block.former = before.clone();
        let mut change = CatalogChange::new(inner, before);
        change.temporary = Some(TemporaryChange {
            is_alone,
            must_be_alone: false,
        });
        change.block = Some(block);
        let applied = change.apply(number, definition);
        let must_be_alone = change.temporary.as_ref().is_some_and(|it| it.must_be_alone);
        let block = change.block.take().expect("a change keeps its block");
        let changed = match applied {
            Ok(()) => {
                let objects = Objects::of(&change.catalog, &self.schema);
                let checked = objects.check_on_commit();
                checked
                    .map(|()| self.set_current(inner, objects))
                    .map_err(Unchanged::Final)
            }
            Err(_) if must_be_alone => Err(Unchanged::MustBeAlone),
            Err(Refused::Final(error)) => Err(Unchanged::Final(error)),
            Err(Refused::Conflict(error)) => Err(Unchanged::Conflict(error)),
            Err(Refused::Awaits) => Err(Unchanged::Conflict(errors::catalog_changed())),
        };
        (changed, block)
    }

    fn set_current(&self, inner: &EngineInner, objects: Objects) {
        inner.know_temporary(objects.tables.values());
        let mut state = self.state();
        let former = std::mem::replace(&mut state.current, Arc::new(objects));
        state.former.push(former);
        state.seen = None;
    }

    /// The block has committed, or a statement outside of one. Tables that end with a transaction
    /// do so now.
    pub fn commit(&self, inner: &EngineInner) {
        let current = self.state().current.clone();
        if !current.on_commit.is_empty() {
            self.set_current(inner, current.after_commit(inner));
        }
        self.keep_current(inner);
    }

    fn keep_current(&self, inner: &EngineInner) {
        let state = &mut *self.state();
        let former = std::mem::replace(&mut state.committed, state.current.clone());
        state.former.push(former);
        state.give_up_former(inner);
    }

    /// The attempt of the block is over without a commit: they are as before it.
    pub fn give_up(&self, inner: &EngineInner) {
        let state = &mut *self.state();
        if Arc::ptr_eq(&state.current, &state.committed) {
            return;
        }
        let former = std::mem::replace(&mut state.current, state.committed.clone());
        state.former.push(former);
        state.seen = None;
        state.give_up_former(inner);
    }

    /// The session has ended.
    pub fn end(&self, inner: &EngineInner) {
        self.set_current(inner, Objects::default());
        self.keep_current(inner);
    }

    fn state(&self) -> MutexGuard<'_, Changing> {
        lock(&self.state)
    }
}

impl SeesCatalog for Temporary {
    fn forget_seen(&self) {
        self.state().seen = None;
    }
}

impl Changing {
    /// Lets go of the tables that are not there any more.
    fn give_up_former(&mut self, inner: &EngineInner) {
        let mut gone: Vec<Arc<Table>> = Vec::new();
        for objects in self.former.drain(..) {
            for table in objects.tables.values() {
                let is_known = self.committed.has_table(table)
                    || gone.iter().any(|known| Arc::ptr_eq(known, table));
                if !is_known {
                    gone.push(table.clone());
                }
            }
        }
        for table in &gone {
            let successor = self.committed.table_by_id(table.id());
            table.supersede(successor.map(|table| &**table));
        }
        inner.give_up_temporary(gone);
    }
}

impl CatalogChange<'_> {
    /// Whether it is of temporary objects of a session, and of no others.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Says what becomes of a temporary table when a transaction commits.
    pub fn set_on_commit(&mut self, table: &str, on_commit: OnCommit) {
        if let Some(schema) = &mut self.catalog.temporary
            && on_commit != OnCommit::PreserveRows
        {
            let schema = Arc::make_mut(schema);
            schema.on_commit.insert(table.to_owned(), on_commit);
        }
    }

    /// Removes all temporary objects.
    pub fn drop_temporary(&mut self) {
        let Some(own) = self.catalog.temporary.clone() else {
            return;
        };
        let is_other = |name: &String| schema_of(name) != &*own.name;
        self.catalog.tables.retain(|name, _| is_other(name));
        self.catalog.sequences.retain(|name, _| is_other(name));
        self.catalog.views.retain(|name, _| is_other(name));
    }

    /// A temporary table is called otherwise.
    pub(crate) fn rename_on_commit(&mut self, from: &str, to: &str) {
        if let Some(schema) = &mut self.catalog.temporary
            && schema.on_commit.contains_key(from)
        {
            let schema = Arc::make_mut(schema);
            let moved = schema.on_commit.remove(from);
            schema
                .on_commit
                .extend(moved.map(|moved| (to.to_owned(), moved)));
        }
    }

    /// Checks that a definition of temporary objects changes one of these, and that its rows are up
    /// to date if they matter.
    ///
    /// # Errors
    /// When no transaction may run for that: the definition is made again so.
    pub(crate) fn claim_temporary(&mut self, id: TableId, rows_matter: bool) -> Result<()> {
        let settles_later = self.inner.common().settles_later();
        let Some(temporary) = &mut self.temporary else {
            return Ok(());
        };
        if id.is_durable() {
            let message = "a definition of temporary objects changes a permanent one";
            return Err(Error::internal(message));
        }
        if !rows_matter || !settles_later {
            return Ok(());
        }
        if !temporary.is_alone {
            temporary.must_be_alone = true;
            let message = "the rows of a temporary table are not up to date";
            return Err(Error::internal(message));
        }
        self.inner.settle_table(id);
        Ok(())
    }
}
