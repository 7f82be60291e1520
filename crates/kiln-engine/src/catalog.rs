//! The catalog: which tables and procedures there are. Immutable; a change makes the next one.

use std::any::Any;
use std::collections::BTreeMap;

use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_storage::error::Result;
use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;

use crate::errors;
use crate::records::RecordPrograms;

/// What a layer above attaches to the catalog's entries; the engine only keeps it.
pub type Extra = Arc<dyn Any + Send + Sync>;

/// A table of the catalog.
#[derive(Clone)]
pub struct TableEntry {
    /// The table.
    pub table: Arc<Table>,
    /// What the layer above attached.
    pub extra: Option<Extra>,
    /// The version of the catalog in which the table took the place of another one; 0 if it never did.
    pub(crate) changed: u64,
}

/// A stored procedure.
#[derive(Clone)]
pub struct Procedure {
    program: Arc<Program>,
    source: String,
    extra: Option<Extra>,
}

impl Procedure {
    /// A procedure called as its program is; `source` is the text that created it.
    pub fn new(program: Arc<Program>, source: impl Into<String>) -> Procedure {
        Procedure {
            program,
            source: source.into(),
            extra: None,
        }
    }

    /// Attaches something of the layer above.
    #[must_use]
    pub fn with_extra(mut self, extra: Extra) -> Procedure {
        self.extra = Some(extra);
        self
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

    /// The text that created it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the layer above attached.
    pub fn extra(&self) -> Option<&Extra> {
        self.extra.as_ref()
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

/// Which tables and procedures there are at one time.
#[derive(Default)]
pub struct Catalog {
    pub(crate) version: u64,
    pub(crate) tables: BTreeMap<String, TableEntry>,
    pub(crate) procedures: BTreeMap<String, Arc<Procedure>>,
    pub(crate) extra: Option<Extra>,
    pub(crate) row_programs: Option<Arc<dyn RowPrograms>>,
    /// Programs made on demand; they go with this catalog.
    pub(crate) record_programs: RecordPrograms,
}

impl Catalog {
    /// The same entries, to be changed.
    pub(crate) fn next(&self) -> Catalog {
        Catalog {
            version: self.version + 1,
            tables: self.tables.clone(),
            procedures: self.procedures.clone(),
            extra: self.extra.clone(),
            row_programs: self.row_programs.clone(),
            record_programs: RecordPrograms::default(),
        }
    }

    /// Grows with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The table called `name`.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name).map(|entry| &entry.table)
    }

    /// The table called `name` with what is attached to it.
    pub fn table_entry(&self, name: &str) -> Option<&TableEntry> {
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
        self.tables
            .values()
            .map(|entry| &entry.table)
            .find(|table| table.id() == id)
    }

    /// Whether a table took the place of another one after the catalog had this version.
    pub(crate) fn is_changed_since(&self, version: u64, id: TableId) -> bool {
        let mut entries = self.tables.values();
        entries.any(|entry| entry.table.id() == id && entry.changed > version)
    }

    /// All tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &TableEntry)> {
        self.tables
            .iter()
            .map(|(name, entry)| (name.as_str(), entry))
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

    /// What the layer above attached to the catalog as a whole.
    pub fn extra(&self) -> Option<&Extra> {
        self.extra.as_ref()
    }

    /// The names of the tables that reference `name`, itself included if it does.
    pub fn referencing<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.tables().filter_map(move |(other, entry)| {
            let keys = &entry.table.schema().foreign_keys;
            keys.iter().any(|key| key.table == name).then_some(other)
        })
    }
}
