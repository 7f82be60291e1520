//! Generated columns of rows that are inserted or changed.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::Reg;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::table::Table;

use super::super::Compiler;
use super::super::bound::{Bound, SourceId};
use super::super::expression::columns_of_generated;
use super::{all_columns, stored_expression};

/// The generated columns of a table.
pub(super) fn generated_columns(table: &Table) -> ColumnSet {
    let columns = table.schema().columns.iter().enumerate();
    let generated = columns.filter(|(_, column)| column.generated.is_some());
    generated.map(|(at, _)| ColumnId(at as u16)).collect()
}

/// These columns, and the generated columns that are computed from them.
pub(super) fn with_generated(table: &Table, changed: ColumnSet) -> Result<ColumnSet> {
    let mut all = changed;
    for column in generated_columns(table).iter() {
        if columns_of_generated(table.schema(), column)?.intersects(changed) {
            all.insert(column);
        }
    }
    Ok(all)
}

/// The error for a statement that gives a generated column a value.
#[cold]
pub(super) fn refusal(table: &Table, column: ColumnId, message: impl Fn(&str) -> String) -> Error {
    let name = &table.schema().columns[column.index()].name;
    let error = Error::new(SqlState::GENERATED_ALWAYS, message(name));
    error.with_detail(format!("Column \"{name}\" is a generated column."))
}

impl Compiler<'_> {
    /// Binds what these generated columns are computed from, over the row `source`.
    pub(in super::super) fn bind_generated(
        &mut self,
        table: &Arc<Table>,
        source: SourceId,
        columns: ColumnSet,
    ) -> Result<Vec<(ColumnId, Bound)>> {
        let schema = table.schema();
        let mut values = Vec::new();
        for column in columns.iter() {
            let definition = &schema.columns[column.index()];
            let Some(text) = &definition.generated else {
                continue;
            };
            let expr = stored_expression(text)?;
            let bound = self.named_as_table(table, source, |compiler| {
                let bound = compiler.bind(&expr)?;
                compiler.for_column(bound, definition, "default expression")
            })?;
            // What an index has of a row depends on no session.
            let bound = match definition.is_hidden() {
                true => bound.in_default_style(),
                false => bound,
            };
            values.push((column, bound));
        }
        Ok(values)
    }

    /// All columns of a new row, of which the generated ones are computed.
    pub(super) fn compute_generated(
        &mut self,
        table: &Arc<Table>,
        values: &[Reg],
    ) -> Result<Vec<Reg>> {
        let mut values = values.to_vec();
        let columns = generated_columns(table);
        if columns.is_empty() {
            return Ok(values);
        }
        debug_assert_eq!(values.len(), all_columns(table).count());
        let source = self.declare_new_row(table, name_in_schema(&table.schema().name), &values);
        let generated = self.bind_generated(table, source, columns)?;
        let (columns, bounds): (Vec<ColumnId>, Vec<Bound>) = generated.into_iter().unzip();
        for (column, value) in columns.into_iter().zip(self.emit_all(&bounds)?) {
            values[column.index()] = value.register;
        }
        Ok(values)
    }
}
