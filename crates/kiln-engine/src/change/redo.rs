//! Changes made again, from their statements or as a whole written catalog.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::table::Table;

use super::catalog_change::CatalogChange;
use crate::catalog::{CatalogStatement, TableSplit, WrittenCatalog};

impl CatalogChange<'_> {
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
        self.owner.clone_from(&statement.owner);
        self.set_statement(statement.source.clone());
        Ok(())
    }

    /// Splits the columns that the statement has split which makes this change again,
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
            for (arena, next) in &table.row_numbers {
                made.restore_row_number(*arena, *next);
            }
            let name = table.schema.name.clone();
            self.catalog.tables.insert(name, Arc::new(made));
        }
        self.catalog.schemas.clone_from(&written.schemas);
        self.catalog.extensions.clone_from(&written.extensions);
        self.restore_sequences(&written.sequences);
        let enums = written.enums.iter();
        self.catalog.enums = enums.map(|of| (of.name().to_owned(), of.clone())).collect();
        let composites = written.composites.iter();
        self.catalog.composites = composites
            .map(|of| (of.name().to_owned(), of.clone()))
            .collect();
        let domains = written.domains.iter();
        self.catalog.domains = domains
            .map(|domain| (domain.name.clone(), domain.clone()))
            .collect();
        let views = written.views.iter();
        self.catalog.views = views
            .map(|view| (view.name.clone(), view.clone()))
            .collect();
        self.catalog.roles = Arc::new(written.roles.clone());
        self.catalog.numbers = Arc::new(written.numbers.clone());
        self.catalog.comments = Arc::new(written.comments.clone());
        Ok(())
    }
}
