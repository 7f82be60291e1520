//! Catalogs that were written down, and statements that a log kept, made again.

use kiln_engine::{CatalogStatement, Engine, Options, WrittenCatalog};
use kiln_storage::error::Result;

use super::definition::Definition;
use super::panics::caught;
use super::routine::recompile_routine;
use super::{Database, design, splits};
use crate::parse::{self, SourceStatement};

/// Puts the tables and procedures of a catalog that was written down into an empty database.
pub(super) fn restore_catalog(engine: &Engine, written: &WrittenCatalog) -> Result<()> {
    engine.change_catalog(|change| {
        change.restore(written)?;
        for source in written.procedures() {
            let procedure = recompile_routine(change.catalog(), source)?;
            change.create_procedure(procedure, false)?;
        }
        // Those that call one which came later.
        design::recompile(change)?;
        splits::derive_unwritten(change)
    })
}

impl Database {
    /// Opens a database with the tables and procedures of a catalog that was written down
    /// ([`Engine::written_catalog`](kiln_engine::Engine::written_catalog)), without rows. Its
    /// catalog is written as the same text: numbers, row numbers and the physical design of tables
    /// are what they were, whatever the options say.
    ///
    /// ```
    /// use kiln_sql::{Database, Options};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// let database = Database::open(Options::new().workers(1))?;
    /// database.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)")?;
    /// let text = database.engine().written_catalog()?.to_string();
    ///
    /// let rebuilt = Database::rebuild(Options::new().workers(1), &text.parse()?)?;
    /// assert_eq!(rebuilt.engine().written_catalog()?.to_string(), text);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::open`]; XX001 for what no catalog can have been.
    pub fn rebuild(options: Options, written: &WrittenCatalog) -> Result<Database> {
        let database = Database::open(options)?;
        restore_catalog(database.engine(), written)?;
        Ok(database)
    }

    /// Runs a statement again that changed a catalog
    /// ([`Catalog::statement`](kiln_engine::Catalog::statement)), on the catalog that it changed
    /// then. It makes the same catalog again, under the settings that were in force.
    ///
    /// # Errors
    /// 55000 when the present catalog is not the one that the statement changed; those of the
    /// statement, which it can only have when rows are not as they were.
    pub fn redo(&self, statement: &CatalogStatement) -> Result<()> {
        if let Some(table) = &statement.refilled {
            return self.engine().change_catalog(|change| {
                change.redo(statement)?;
                change.empty_table(table)?;
                design::recompile(change)
            });
        }
        let source = SourceStatement {
            text: &statement.source.text,
            line: statement.source.line,
            column: statement.source.column,
        };
        let tree = caught(|| parse::statement(&source))?;
        Definition::again(self.engine(), statement).run(&tree)?;
        Ok(())
    }
}
