//! CREATE TABLE … AS and SELECT … INTO.
//!
//! The table and its rows are one change: in a transaction block of its own, outside of one, an
//! empty table with the columns of the query is created, and an INSERT of the query fills it. A log
//! has both in one entry, with the values of the rows.

use kiln_engine::{Catalog, OnCommit, Source};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::types::Value;
use sqlparser::ast::Ident;

use super::prepared::{Column, Statement};
use super::result::{Notice, StatementResult};
use super::session::Session;
use crate::catalog::View;
use crate::compile::{
    fail, name_of, new_relation_name, position_of, position_of_span, sql_name, temporary_name,
};
use crate::parse::{self, CreateTableAs, SourceStatement, Statement as Tree};

impl Session {
    /// CREATE TABLE … AS.
    pub(super) fn create_table_as(
        &mut self,
        create: &CreateTableAs,
        statement: &Statement,
    ) -> Result<StatementResult> {
        let seen = self.seen();
        let is_temporary = self.is_of_temporary(&Tree::CreateTableAs(Box::new(create.clone())))?;
        let name = match is_temporary {
            true => temporary_name(&self.session.own_schema(), &create.name)?,
            false => new_relation_name(&View::of(&seen), &create.name, false)?,
        };
        if seen.is_relation(&name) {
            let message = format!("relation \"{}\" already exists", name_in_schema(&name));
            if create.if_not_exists {
                let notice = Notice::new(format!("{message}, skipping"));
                return Ok(StatementResult::of_tag("CREATE TABLE AS").with_notice(notice));
            }
            let position = position_of(&create.name);
            return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
        }
        let (rows, values) = self.rows_of(create, statement)?;
        self.authorize(&rows)?;
        let columns = columns(create, rows.columns().unwrap_or_default(), &seen)?;
        let mut created = created(&name, &columns);
        created.push_str(match create.on_commit {
            None | Some(OnCommit::PreserveRows) => "",
            Some(OnCommit::DeleteRows) => " ON COMMIT DELETE ROWS",
            Some(OnCommit::Drop) => " ON COMMIT DROP",
        });
        if !create.with_data {
            self.define_text(&created)?;
            return Ok(StatementResult::of_tag("CREATE TABLE AS"));
        }
        self.in_one_transaction(|session| {
            session.define_text(&created)?;
            session.fill(&name, &rows, &values)
        })
    }

    /// The query that gives the rows, and the values of its parameters.
    fn rows_of(
        &mut self,
        create: &CreateTableAs,
        statement: &Statement,
    ) -> Result<(Statement, Vec<Value>)> {
        let rows = self.rewritten(statement, (*create.rows).clone())?;
        let Tree::Execute(execute) = &*create.rows else {
            return Ok((rows, Vec::new()));
        };
        let (prepared, values) = self.execute_as(execute, &rows, &[])?;
        match prepared.tree().map(|tree| &**tree) {
            Some(Tree::Query(query)) if parse::change_of(query).is_none() => Ok((prepared, values)),
            _ => {
                let message = "prepared statement is not a SELECT";
                Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
        }
    }

    /// Inserts the rows of a query.
    fn fill(&mut self, table: &str, rows: &Statement, values: &[Value]) -> Result<StatementResult> {
        let template = format!("INSERT INTO {} VALUES (1)", sql_name(table));
        let mut insert = parse::statement(&SourceStatement::from(template.as_str()))?;
        if let (Tree::Insert(insert), Some(Tree::Query(query))) =
            (&mut insert, rows.tree().map(|tree| &**tree))
        {
            insert.source = Some(query.clone());
        }
        let insert = self.rewritten(rows, insert)?;
        let mut result = self.run_data(&insert, values)?;
        let count = result.row_count().unwrap_or_default();
        result.tag = format!("SELECT {count}");
        Ok(result)
    }

    fn define_text(&mut self, text: &str) -> Result<()> {
        let tree = parse::statement(&SourceStatement::from(text))?;
        let source = Source {
            text: text.to_owned(),
            line: 1,
            column: 1,
            path: self.path(),
        };
        self.define_as(&tree, source).map(|_| ())
    }
}

/// The columns of the table: those of the query, with the names that were given.
///
/// # Errors
/// 42601 for too many names, 42701 for one that is there twice, 0A000 for a type that no column
/// has.
fn columns(create: &CreateTableAs, of_query: &[Column], catalog: &Catalog) -> Result<Vec<Column>> {
    if create.columns.len() > of_query.len() {
        let message = "too many column names were specified";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let mut columns: Vec<Column> = Vec::new();
    let mut given = create.columns.iter();
    for column in of_query {
        let given: Option<&Ident> = given.next();
        let name = given.map_or_else(|| column.name.clone(), name_of);
        let position = given.and_then(|ident| position_of_span(ident.span));
        if columns.iter().any(|known| known.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let is_composite = |name: &str| catalog.composite(name).is_some();
        let of_table = column
            .data_type
            .row()
            .is_some_and(|of| !is_composite(of.name()));
        if !column.data_type.is_storable() || of_table {
            let data_type = &column.data_type;
            let message = format!("a column of type {data_type} is not supported");
            return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
        }
        columns.push(Column {
            name,
            ..column.clone()
        });
    }
    Ok(columns)
}

/// The CREATE TABLE of these columns.
fn created(name: &str, columns: &[Column]) -> String {
    let columns = columns.iter();
    let columns = columns.map(|it| format!("{} {}", quoted(&it.name), it.data_type));
    let columns: Vec<String> = columns.collect();
    format!("CREATE TABLE {} ({})", sql_name(name), columns.join(", "))
}

/// The name in quotes, whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
