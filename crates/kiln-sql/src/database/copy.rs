//! COPY: the statement on data that it stands for.

use kiln_engine::{Access, Catalog, Role};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{Column as SchemaColumn, TableSchema};

use super::prepared::{Column, Statement};
use crate::catalog::relation_of;
use crate::compile::sql_name;
use crate::parse::{self, Copied, SourceStatement};

/// What a COPY copies, and how.
#[derive(Clone, Debug)]
pub struct Copying {
    /// Whether rows come from the client, or from the file.
    pub is_in: bool,
    /// The file of the server, if it is not the client.
    pub file: Option<String>,
    /// The query whose rows go to the client, or the INSERT of a row that came from there, whose
    /// parameters are its columns.
    pub statement: Statement,
    /// The columns that are copied.
    pub columns: Vec<Column>,
    /// What is copied into or from, as messages call it.
    pub name: String,
    /// Names of options in lower case, and what was given to each.
    pub options: Vec<(String, Vec<String>)>,
    /// What its role must be allowed to do.
    pub(super) accesses: Arc<[Access]>,
}

impl Copying {
    /// The state of this COPY at its beginning.
    ///
    /// # Errors
    /// What PostgreSQL reports for the table and its columns, or for the query.
    pub(super) fn of(copy: &parse::Copy, catalog: &Arc<Catalog>) -> Result<Copying> {
        let analyse = |source: &SourceStatement<'_>| {
            let tree = Arc::new(parse::statement(source)?);
            Statement::analyse(tree, source, Vec::new(), catalog, catalog.path())
        };
        let (name, columns) = match &copy.what {
            Copied::Table { name, columns } => (relation_of(catalog, name)?, columns),
            Copied::Query(part) => {
                let statement = analyse(&part.source())?;
                let Some(columns) = statement.columns() else {
                    let message = "COPY query must have a RETURNING clause";
                    return Err(Error::unsupported(message));
                };
                return Ok(Copying {
                    accesses: statement.plan(catalog)?.accesses().into(),
                    is_in: false,
                    file: copy.file.clone(),
                    columns: columns.to_vec(),
                    statement,
                    name: "query".to_owned(),
                    options: copy.options.clone(),
                });
            }
        };
        if catalog.view(&name).is_some() {
            let (direction, hint) = match copy.is_in {
                true => ("to", "Use INSERT, or copy to its table."),
                false => ("from", "Try the COPY (SELECT ...) TO variant."),
            };
            let name = name_in_schema(&name);
            let message = format!("cannot copy {direction} view \"{name}\"");
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).with_hint(hint));
        }
        if catalog.materialized_view(&name).is_some() {
            let direction = if copy.is_in { "to" } else { "from" };
            let name = name_in_schema(&name);
            let message = format!("cannot copy {direction} materialized view \"{name}\"");
            let error = Error::new(SqlState::WRONG_OBJECT_TYPE, message);
            return Err(match copy.is_in {
                true => error,
                false => error.with_hint("Try the COPY (SELECT ...) TO variant."),
            });
        }
        let mut names: Vec<String> = Vec::new();
        for column in columns {
            if names.contains(&column.value) {
                let message = format!("column \"{}\" specified more than once", column.value);
                return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            names.push(column.value.clone());
        }
        if let Some(table) = catalog.table(&name) {
            without_generated(&mut names, table.schema())?;
        }
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let list = list.join(", ");
        let what = if names.is_empty() { "*" } else { &list };
        let select = format!("SELECT {what} FROM {}", sql_name(&name));
        let select = analyse(&SourceStatement::from(select.as_str()))?;
        let columns = select.columns().unwrap_or_default().to_vec();
        let statement = match copy.is_in {
            false => select,
            true => {
                let list: Vec<String> = columns.iter().map(|it| quoted(&it.name)).collect();
                let values: Vec<String> = (1..=list.len()).map(|it| format!("${it}")).collect();
                let (list, values) = (list.join(", "), values.join(", "));
                // Rows that are copied have their own values of identity columns.
                let insert = format!(
                    "INSERT INTO {} ({list}) OVERRIDING SYSTEM VALUE VALUES ({values})",
                    sql_name(&name)
                );
                let tree = Arc::new(parse::statement(&SourceStatement::from(insert.as_str()))?);
                let source = SourceStatement::from(insert.as_str());
                Statement::analyse(
                    tree,
                    &source,
                    vec![None; columns.len()],
                    catalog,
                    catalog.path(),
                )?
            }
        };
        Ok(Copying {
            accesses: statement.plan(catalog)?.accesses().into(),
            is_in: copy.is_in,
            file: copy.file.clone(),
            statement,
            columns,
            name: name_in_schema(&name).to_owned(),
            options: copy.options.clone(),
        })
    }
}

/// Whether a role may read or write files of the server.
///
/// # Errors
/// 42501 unless it is a superuser.
pub(super) fn check_file(copy: &parse::Copy, role: &Role) -> Result<()> {
    if copy.file.is_none() || role.is_superuser {
        return Ok(());
    }
    let (right, what) = match copy.is_in {
        true => ("pg_read_server_files", "from"),
        false => ("pg_write_server_files", "to"),
    };
    let message =
        format!("must be superuser or have privileges of the {right} role to COPY {what} a file");
    let error = Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message);
    let hint =
        "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.";
    Err(error.with_hint(hint))
}

/// The columns that are copied: a table's generated columns are not.
fn without_generated(names: &mut Vec<String>, schema: &TableSchema) -> Result<()> {
    let (generated, others): (Vec<&SchemaColumn>, Vec<_>) =
        (schema.shown().iter()).partition(|column| column.generated.is_some());
    if generated.is_empty() {
        return Ok(());
    }
    if let Some(column) = generated.iter().find(|it| names.contains(&it.name)) {
        let message = format!("column \"{}\" is a generated column", column.name);
        let error = Error::new(SqlState::INVALID_COLUMN_REFERENCE, message);
        return Err(error.with_detail("Generated columns cannot be used in COPY."));
    }
    if others.is_empty() {
        let message = "COPY of a table that has generated columns alone is not supported";
        return Err(Error::unsupported(message));
    }
    if names.is_empty() {
        names.extend(others.iter().map(|column| column.name.clone()));
    }
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
