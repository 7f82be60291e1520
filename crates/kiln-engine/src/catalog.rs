//! The catalog: which tables, views, sequences and procedures there are. Immutable; a change makes
//! the next one.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use kiln_platform::sync::{Arc, Mutex, OnceLock, Weak, lock};
use kiln_procedure::Program;
use kiln_storage::error::Result;
use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::sequence::{Sequence, SequenceId};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, EnumType};

use crate::comments::Comments;
use crate::errors;
use crate::locks::RowLocks;
use crate::lookups::Lookups;
use crate::numbers::ObjectNumbers;
use crate::open_sessions::OpenSessions;
use crate::records::RecordPrograms;
use crate::roles::{Access, Roles};
use crate::schemas::SearchPath;
use crate::statement::{CatalogStatement, Source};
use crate::temporary::TemporarySchema;
use crate::views::View;

/// One use of an index by a compiled procedure; the physical design follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexUse {
    /// The table.
    pub table: TableId,
    /// The index's position in [`Table::indexes`].
    pub index: u16,
    /// A look-up of a whole unique key, and not a scan.
    pub point: bool,
    /// How many leading key columns are fixed.
    pub prefix_columns: usize,
}

/// A stored procedure.
#[derive(Clone)]
pub struct Procedure {
    program: Arc<Program>,
    source: Option<Arc<Source>>,
    index_uses: Vec<IndexUse>,
    lookups: Lookups,
}

impl Procedure {
    /// A procedure that Rust code made: no statement says what it does, so that a catalog that has
    /// it cannot be written down.
    pub fn new(program: Arc<Program>) -> Procedure {
        Procedure {
            program,
            source: None,
            index_uses: Vec::new(),
            lookups: Lookups::default(),
        }
    }

    /// A procedure compiled from the statement `source`; the compiler looked up `lookups`, and the
    /// program uses indexes as `index_uses` says.
    pub fn compiled(
        program: Arc<Program>,
        source: Arc<Source>,
        index_uses: Vec<IndexUse>,
        lookups: Lookups,
    ) -> Procedure {
        Procedure {
            program,
            source: Some(source),
            index_uses,
            lookups,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// What it runs.
    #[inline(always)]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The statement that created it; `None` when Rust code did.
    pub fn source(&self) -> Option<&Arc<Source>> {
        self.source.as_ref()
    }

    /// How its program uses indexes.
    pub fn index_uses(&self) -> &[IndexUse] {
        &self.index_uses
    }

    /// What its caller must be allowed to do besides calling it.
    pub fn accesses(&self) -> impl Iterator<Item = &Access> {
        self.lookups.accesses()
    }

    /// What its compiler looked up.
    pub(crate) fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    /// How often it was called since it was created or the database opened, with the calls of those
    /// that it has replaced. A call counts when it has committed: in a transaction block, when the
    /// block has.
    pub fn calls(&self) -> u64 {
        self.program.calls.get().map_or(0, |calls| calls.sum())
    }

    /// Has it weigh, where a design is derived from calls, as if it had been called so often
    /// besides: to see what would follow from a load before there is one.
    pub fn assume_calls(&self, calls: u64) {
        if let Some(counts) = self.program.calls.get() {
            counts.assume(calls);
        }
    }

    /// Names and types of the columns of its result.
    pub fn columns(&self) -> &Arc<[(String, DataType)]> {
        &self.program.result.columns
    }
}

/// Makes the programs by which Rust code writes single rows ([`crate::Transaction`]), for layers
/// that know more about a table than the engine: CHECK and REFERENCES constraints.
///
/// The parameters of each program are the values in the order named, with the types of their
/// columns; lengths, precisions and NOT NULL are checked before.
pub trait RowPrograms: Send + Sync {
    /// Inserts a row; one parameter for each column, in table order. With `ignore_conflict` the
    /// program emits one BOOLEAN, whether it inserted; else it raises 23505 when a key is taken.
    ///
    /// # Errors
    /// Why there can be no such program.
    fn insert(
        &self,
        catalog: &Catalog,
        table: &Arc<Table>,
        ignore_conflict: bool,
    ) -> Result<Program>;

    /// Updates `columns` of the row with a primary key: parameters are the key, then the new
    /// values. Emits one BOOLEAN: whether there was such a row.
    ///
    /// # Errors
    /// Why there can be no such program.
    fn update(
        &self,
        catalog: &Catalog,
        table: &Arc<Table>,
        columns: &[ColumnId],
    ) -> Result<Program>;

    /// Deletes the row with a primary key, the parameters. Emits one BOOLEAN: whether there was
    /// such a row.
    ///
    /// # Errors
    /// Why there can be no such program.
    fn delete(&self, catalog: &Catalog, table: &Arc<Table>) -> Result<Program>;
}

/// Which catalog is in force: for programs, which outlive the catalog for which they were compiled.
/// All catalogs of a database share it.
#[derive(Default)]
pub struct CurrentCatalog {
    catalog: Mutex<Weak<Catalog>>,
    row_locks: Arc<RowLocks>,
    open_sessions: Arc<OpenSessions>,
    /// What is seen along another path than the default one: of which catalog, and how it is seen.
    along: Option<Along>,
}

/// The catalog in force, seen along a path.
struct Along {
    of: Arc<CurrentCatalog>,
    path: SearchPath,
    /// A catalog in force, and how it is seen.
    last: Mutex<Option<(Weak<Catalog>, Arc<Catalog>)>>,
}

impl CurrentCatalog {
    /// A current catalog for users beside those that share `other`, in the same database.
    pub(crate) fn beside(other: &CurrentCatalog) -> CurrentCatalog {
        CurrentCatalog {
            catalog: Mutex::default(),
            row_locks: other.row_locks.clone(),
            open_sessions: other.open_sessions.clone(),
            along: None,
        }
    }

    /// The same, seen along a path.
    pub fn along(self: &Arc<CurrentCatalog>, path: &SearchPath) -> Arc<CurrentCatalog> {
        if path.is_default() {
            return self.clone();
        }
        Arc::new(CurrentCatalog {
            along: Some(Along {
                of: self.clone(),
                path: path.clone(),
                last: Mutex::default(),
            }),
            ..CurrentCatalog::beside(self)
        })
    }

    /// The locks of rows that statements take.
    pub fn row_locks(&self) -> &Arc<RowLocks> {
        &self.row_locks
    }

    /// The sessions that are open.
    pub fn open_sessions(&self) -> &Arc<OpenSessions> {
        &self.open_sessions
    }

    /// The catalog in force; `None` before the first one, and when the database is gone.
    pub fn get(&self) -> Option<Arc<Catalog>> {
        let Some(Along { of, path, last }) = &self.along else {
            return lock(&self.catalog).upgrade();
        };
        let current = of.get()?;
        let mut last = lock(last);
        if let Some((of, seen)) = &*last
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(&current))
        {
            return Some(seen.clone());
        }
        let seen = current.along(path);
        *last = Some((Arc::downgrade(&current), seen.clone()));
        Some(seen)
    }

    pub(crate) fn set(&self, catalog: &Arc<Catalog>) {
        *lock(&self.catalog) = Arc::downgrade(catalog);
    }
}

/// Which tables, views, sequences and procedures there are at one time.
pub struct Catalog {
    pub(crate) version: u64,
    /// Besides `public`.
    pub(crate) schemas: BTreeSet<String>,
    /// Along which names without a schema are looked for.
    pub(crate) path: SearchPath,
    /// Of the session that sees it, if it has something of its own.
    pub(crate) temporary: Option<Arc<TemporarySchema>>,
    pub(crate) next_table_id: u32,
    pub(crate) tables: BTreeMap<String, Arc<Table>>,
    pub(crate) sequences: BTreeMap<String, Arc<Sequence>>,
    pub(crate) views: BTreeMap<String, Arc<View>>,
    pub(crate) enums: BTreeMap<String, Arc<EnumType>>,
    /// With their schemas.
    pub(crate) extensions: BTreeMap<String, String>,
    /// The versions of the catalog in which tables took the places of others.
    pub(crate) changed: BTreeMap<TableId, u64>,
    pub(crate) procedures: BTreeMap<String, Arc<Procedure>>,
    pub(crate) roles: Arc<Roles>,
    pub(crate) numbers: Arc<ObjectNumbers>,
    pub(crate) comments: Arc<Comments>,
    pub(crate) statement: Option<Arc<CatalogStatement>>,
    pub(crate) row_programs: Option<Arc<dyn RowPrograms>>,
    pub(crate) current: Arc<CurrentCatalog>,
    /// What a layer above has made of it; it goes with this catalog.
    pub(crate) derived: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Programs made on demand; they go with this catalog.
    pub(crate) record_programs: RecordPrograms,
}

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog {
            version: 0,
            schemas: BTreeSet::new(),
            path: SearchPath::default(),
            temporary: None,
            next_table_id: 1,
            tables: BTreeMap::new(),
            sequences: BTreeMap::new(),
            views: BTreeMap::new(),
            enums: BTreeMap::new(),
            extensions: BTreeMap::new(),
            changed: BTreeMap::new(),
            procedures: BTreeMap::new(),
            roles: Arc::default(),
            numbers: Arc::default(),
            comments: Arc::default(),
            statement: None,
            row_programs: None,
            current: Arc::default(),
            derived: OnceLock::new(),
            record_programs: RecordPrograms::default(),
        }
    }
}

impl Catalog {
    /// The same entries, to be changed.
    pub(crate) fn next(&self) -> Catalog {
        Catalog {
            version: self.version + 1,
            ..self.copied()
        }
    }

    /// The same entries.
    pub(crate) fn copied(&self) -> Catalog {
        Catalog {
            version: self.version,
            schemas: self.schemas.clone(),
            path: self.path.clone(),
            temporary: self.temporary.clone(),
            next_table_id: self.next_table_id,
            tables: self.tables.clone(),
            sequences: self.sequences.clone(),
            views: self.views.clone(),
            enums: self.enums.clone(),
            extensions: self.extensions.clone(),
            changed: self.changed.clone(),
            procedures: self.procedures.clone(),
            roles: self.roles.clone(),
            numbers: self.numbers.clone(),
            comments: self.comments.clone(),
            statement: None,
            row_programs: self.row_programs.clone(),
            current: self.current.clone(),
            derived: OnceLock::new(),
            record_programs: RecordPrograms::default(),
        }
    }

    /// Grows with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number that the next table gets.
    pub fn next_table_id(&self) -> TableId {
        TableId(self.next_table_id)
    }

    /// The statement that made this catalog of the one before; `None` when Rust code did.
    pub fn statement(&self) -> Option<&Arc<CatalogStatement>> {
        self.statement.as_ref()
    }

    /// The table called `name`.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The table called `name`.
    ///
    /// # Errors
    /// 42P01.
    pub fn require_table(&self, name: &str) -> Result<&Arc<Table>> {
        self.table(name)
            .ok_or_else(|| errors::undefined_table(name))
    }

    /// The table with this number.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.id() == id)
    }

    /// Whether a table took the place of another one after the catalog had this version.
    pub(crate) fn is_changed_since(&self, version: u64, id: TableId) -> bool {
        let changed = self.changed.get(&id);
        changed.is_some_and(|changed| *changed > version)
    }

    /// All tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &Arc<Table>)> {
        self.tables
            .iter()
            .map(|(name, table)| (name.as_str(), table))
    }

    /// The sequence called `name`.
    pub fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        self.sequences.get(name)
    }

    /// The sequence with this number.
    pub fn sequence_by_id(&self, id: SequenceId) -> Option<&Arc<Sequence>> {
        self.sequences.values().find(|sequence| sequence.id() == id)
    }

    /// All sequences, by name.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// The sequences that go with a table.
    pub fn owned_sequences<'a>(
        &'a self,
        table: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Sequence>> {
        self.sequences().filter(move |sequence| {
            let owner = sequence.definition().owner.as_ref();
            owner.is_some_and(|owner| owner.table == table)
        })
    }

    /// The procedure called `name`.
    pub fn procedure(&self, name: &str) -> Option<&Arc<Procedure>> {
        self.procedures.get(name)
    }

    /// The procedure called `name`.
    ///
    /// # Errors
    /// 42883.
    pub fn require_procedure(&self, name: &str) -> Result<&Arc<Procedure>> {
        self.procedure(name)
            .ok_or_else(|| errors::undefined_procedure(name))
    }

    /// All procedures, by name.
    pub fn procedures(&self) -> impl Iterator<Item = &Arc<Procedure>> {
        self.procedures.values()
    }

    /// The roles, and what they may do.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// What `make` makes of it, once for each catalog. It must not hold the catalog.
    ///
    /// # Panics
    /// When something of another type was asked for before.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Catalog) -> T) -> Arc<T> {
        let derived = self.derived.get_or_init(|| Arc::new(make(self)));
        let derived = derived.clone().downcast();
        derived.expect("one type is made of catalogs")
    }

    /// Which catalog is in force, now and later.
    pub fn current(&self) -> &Arc<CurrentCatalog> {
        &self.current
    }

    /// The numbers of its objects.
    pub fn numbers(&self) -> &ObjectNumbers {
        &self.numbers
    }

    /// The names of the tables that reference `name`, itself included if it does.
    pub fn referencing<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.tables().filter_map(move |(other, table)| {
            let keys = &table.schema().foreign_keys;
            keys.iter().any(|key| key.table == name).then_some(other)
        })
    }
}
