//! Rows that Rust code writes, checked as SQL checks them.

use kiln_engine::{Catalog, RowPrograms};
use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_storage::error::Result;
use kiln_storage::schema::ColumnId;
use kiln_storage::table::Table;

use super::panics::caught;
use crate::catalog::View;
use crate::compile::dml;

/// Makes the programs for [`kiln_engine::Transaction`].
pub(super) struct CheckedRows;

impl RowPrograms for CheckedRows {
    fn insert(
        &self,
        catalog: &Catalog,
        table: &Arc<Table>,
        ignore_conflict: bool,
    ) -> Result<Program> {
        caught(|| dml::insert_program(&View::of(catalog), table, ignore_conflict))
    }

    fn update(
        &self,
        catalog: &Catalog,
        table: &Arc<Table>,
        columns: &[ColumnId],
    ) -> Result<Program> {
        caught(|| dml::update_program(&View::of(catalog), table, columns))
    }

    fn delete(&self, catalog: &Catalog, table: &Arc<Table>) -> Result<Program> {
        caught(|| dml::delete_program(&View::of(catalog), table))
    }
}
