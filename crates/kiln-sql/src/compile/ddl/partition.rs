//! PARTITION BY: how a table's rows are divided over partitions.
//!
//! `CREATE TABLE … PARTITION BY HASH (column)` is PostgreSQL's. There it makes a table without rows
//! of its own, so scripts that are to run on both leave it out, and have a script of these beside
//! them:
//!
//! ```sql
//! ALTER TABLE t PARTITION BY HASH (column);
//! ALTER TABLE u SET REPLICATED;
//! ```

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ForeignKey, Partitioning, ReferentialAction, TableSchema};
use kiln_storage::table::Table;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::super::{fail, name_of, object_name, position_of, unsupported};
use super::table::column_called;

/// How the rows of a table are divided by PARTITION BY, or by SET REPLICATED, which has no
/// expression.
///
/// # Errors
/// 42703 without the column, 0A000 when a unique key does not have it.
pub fn divided(table: &Table, by: Option<&Expr>) -> Result<Partitioning> {
    let partitioning = match by {
        Some(expr) => declared(table.schema(), expr)?,
        None => Partitioning::Replicated,
    };
    let schema = TableSchema {
        partition_by: Some(partitioning),
        ..table.schema().clone()
    };
    let definitions = table.indexes().iter().map(|index| index.definition());
    let unique = definitions.filter(|definition| definition.keeps_unique());
    check_keys(
        &schema,
        unique.map(|definition| definition.columns.as_slice()),
    )?;
    check_actions(&schema)?;
    Ok(partitioning)
}

/// What `HASH (column)` says.
pub(super) fn declared(schema: &TableSchema, expr: &Expr) -> Result<Partitioning> {
    let position = position_of(expr);
    let refused = || unsupported("PARTITION BY anything but HASH of one column", position);
    let Expr::Function(function) = expr else {
        return Err(refused());
    };
    let method = object_name(&function.name)?;
    if matches!(method.as_str(), "range" | "list") {
        let what = format!("PARTITION BY {}", method.to_uppercase());
        let hint = "Leave it out: a table keeps all its rows, and an index finds a range of them.";
        return Err(unsupported(what, position).with_hint(hint));
    }
    if method != "hash" {
        let message = format!("unrecognized partitioning strategy \"{method}\"");
        return Err(fail(SqlState::INVALID_PARAMETER_VALUE, message, position));
    }
    let FunctionArguments::List(list) = &function.args else {
        return Err(refused());
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(ident)))] =
        list.args.as_slice()
    else {
        return Err(refused());
    };
    let column = column_called(schema, ident, "named in partition key ")?;
    if schema.columns[column.index()].generated.is_some() {
        let message = "cannot use generated column in partition key";
        let detail = format!("Column \"{}\" is a generated column.", name_of(ident));
        let error = fail(SqlState::INVALID_OBJECT_DEFINITION, message, position);
        return Err(error.with_detail(detail));
    }
    Ok(Partitioning::Column(column))
}

/// Whether each of a table's unique keys has the column by which its rows are divided, as
/// PostgreSQL demands; so that a look-up of a key knows the partition.
///
/// # Errors
/// 0A000.
pub(super) fn check_keys<'k>(
    schema: &TableSchema,
    mut unique: impl Iterator<Item = &'k [ColumnId]>,
) -> Result<()> {
    let Some(column) = schema.partition_column() else {
        return Ok(());
    };
    // The key of a table without one is a hidden number, and has no columns.
    let lacks = |key: &&[ColumnId]| !key.is_empty() && !key.contains(&column);
    let Some(key) = unique.find(lacks) else {
        return Ok(());
    };
    let kind = match key == schema.primary_key {
        true => "PRIMARY KEY",
        false => "UNIQUE",
    };
    let message = "unique constraint on partitioned table must include all partitioning columns";
    Err(
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(format!(
            "{kind} constraint on table \"{}\" lacks column \"{}\" which is part of the partition key.",
            name_in_schema(&schema.name),
            schema.columns[column.index()].name
        )),
    )
}

/// Refuses actions of foreign keys that would change the column by which rows are divided: a row
/// stays where it is.
///
/// # Errors
/// 0A000.
pub(super) fn check_actions(schema: &TableSchema) -> Result<()> {
    let Some(column) = schema.partition_column() else {
        return Ok(());
    };
    let changes = |key: &&ForeignKey| {
        let on_delete = matches!(
            key.on_delete,
            ReferentialAction::SetNull | ReferentialAction::SetDefault
        );
        on_delete && key.columns_set_on_delete().contains(&column)
            || key.on_update.changes_rows() && key.columns.contains(&column)
    };
    let Some(key) = schema.foreign_keys.iter().find(changes) else {
        return Ok(());
    };
    let name = &schema.columns[column.index()].name;
    let what = format!("an action that changes the partition key \"{name}\"");
    Err(unsupported(what, None)
        .with_detail(format!("It is one of the foreign key \"{}\".", key.name)))
}
