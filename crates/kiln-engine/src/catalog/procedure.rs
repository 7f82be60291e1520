//! Stored procedures, and what is compiled for a catalog besides.

use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_storage::error::Result;
use kiln_storage::schema::{ColumnId, TableId};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;

use super::lookups::Lookups;
use super::objects::Catalog;
use super::statement::Source;
use crate::errors;
use crate::roles::Access;

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

/// Checks that no table of a program was changed since it was compiled; the worker slot is entered.
#[inline]
pub(crate) fn check_current(program: &Program) -> Result<()> {
    if program.tables.iter().any(|table| table.is_superseded()) {
        return Err(errors::stale(&program.name));
    }
    Ok(())
}
