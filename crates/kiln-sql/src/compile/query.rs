//! Queries: what they are called and what they give back.
use kiln_procedure::Reg;
use kiln_storage::error::Result;
use kiln_storage::types::DataType;
use sqlparser::ast::Query;

use super::Compiler;

/// A column of a query's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Its name, as PostgreSQL names it.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
}

/// A column of a result row, inside a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Its value. It may be a variable's or a constant's own register: do not write to it.
    pub register: Reg,
}

/// How a query is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryOptions {
    /// All rows are computed before the first turn of the sink: needed when the sink writes to
    /// tables that the query reads.
    pub materialise: bool,
}

impl Compiler<'_> {
    /// Compiles `query`; `sink` is called once, where the registers of one result row are ready.
    /// Rows of the query cannot be named in the sink; variables can.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the query; 0A000 for what is not supported; what
    /// the sink returns.
    pub fn query(
        &mut self,
        query: &Query,
        options: QueryOptions,
        sink: &mut dyn FnMut(&mut Self, &[OutputColumn]) -> Result<()>,
    ) -> Result<Vec<ColumnMeta>> {
        todo!()
    }

    /// Names and types of a query's columns, without compiling it.
    ///
    /// # Errors
    /// As [`Compiler::query`].
    pub fn query_columns(&mut self, query: &Query) -> Result<Vec<ColumnMeta>> {
        todo!()
    }

    /// Compiles `query` as the head of a FOR loop: `body` runs for each row, and EXIT and CONTINUE
    /// in it mean this loop.
    ///
    /// # Errors
    /// As [`Compiler::query`].
    pub fn for_query(
        &mut self,
        query: &Query,
        label: Option<&str>,
        options: QueryOptions,
        body: &mut dyn FnMut(&mut Self, &[OutputColumn]) -> Result<()>,
    ) -> Result<Vec<ColumnMeta>> {
        todo!()
    }
}
