//! Expressions in indexes, and predicates of partial ones. A hidden column of the table holds their
//! values.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::TableSchema;
use kiln_storage::types::DataType;
use sqlparser::ast::{CastKind, Expr};

use super::super::bound::{Bound, Kind};
use super::super::expression::named_columns;
use super::super::names::figure_name;
use super::super::{CatalogView, fail, position_of, unsupported};
use super::generated;

/// What an index without a name calls an expression.
pub(crate) fn name(expr: &Expr) -> String {
    match figure_name(expr) {
        name if name == "?column?" => "expr".to_owned(),
        name => name,
    }
}

/// Refuses what is no call of a function and stands without parentheses around it.
///
/// # Errors
/// 42601.
pub(super) fn check_form(expr: &Expr) -> Result<()> {
    let near = match expr {
        Expr::BinaryOp { op, .. } => op.to_string(),
        Expr::Cast {
            kind: CastKind::DoubleColon,
            ..
        } => "::".to_owned(),
        Expr::Case { .. } => "CASE".to_owned(),
        Expr::UnaryOp { op, .. } => op.to_string(),
        Expr::Value(value) => value.to_string(),
        _ => return Ok(()),
    };
    let message = format!("syntax error at or near \"{near}\"");
    Err(fail(SqlState::SYNTAX_ERROR, message, position_of(expr)))
}

/// Checks an expression of an index; returns its type.
///
/// # Errors
/// 42P17 for one that is not immutable, 0A000 for a subquery and for generated columns.
pub(super) fn check(
    schema: &TableSchema,
    expr: &Expr,
    catalog: &dyn CatalogView,
) -> Result<DataType> {
    let bound = bind(schema, expr, catalog)?;
    check_bound(schema, expr, &bound, "expression", catalog)?;
    let data_type = match bound.is_unknown() {
        true => DataType::Text,
        false => bound.data_type,
    };
    match data_type.is_storable() {
        true => Ok(data_type),
        false => {
            let what = format!("an index over an expression of type {data_type}");
            Err(unsupported(what, position_of(expr)))
        }
    }
}

/// Binds an expression of an index.
pub(super) fn bind(schema: &TableSchema, expr: &Expr, catalog: &dyn CatalogView) -> Result<Bound> {
    generated::bind_over(schema, catalog, "index expressions", |compiler| {
        compiler.bind(expr)
    })
}

/// Checks the predicate of a partial index.
///
/// # Errors
/// As for [`check`], and 42804 for one that is no condition.
pub(super) fn check_predicate(
    schema: &TableSchema,
    expr: &Expr,
    catalog: &dyn CatalogView,
) -> Result<()> {
    let bound = generated::bind_over(schema, catalog, "index predicates", |compiler| {
        compiler.bind_condition(expr, "WHERE")
    })?;
    check_bound(schema, expr, &bound, "predicate", catalog)
}

/// What a hidden column holds for a partial index with this predicate.
pub(super) fn predicate_column(predicate: &Expr) -> String {
    format!("{PREDICATE_BEGINNING}{predicate}{PREDICATE_END}")
}

/// The predicate of a partial index of which a hidden column holds `text`.
pub fn predicate_text(text: &str) -> Option<&str> {
    text.strip_prefix(PREDICATE_BEGINNING)?
        .strip_suffix(PREDICATE_END)
}

const PREDICATE_BEGINNING: &str = "CASE WHEN ";
const PREDICATE_END: &str = " THEN true END";

fn check_bound(
    schema: &TableSchema,
    expr: &Expr,
    bound: &Bound,
    what: &str,
    catalog: &dyn CatalogView,
) -> Result<()> {
    let position = position_of(expr);
    if bound.any(|part| matches!(part.kind, Kind::Subquery(_))) {
        let message = format!("cannot use subquery in index {what}");
        return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
    }
    if !generated::is_fixed(expr, schema, catalog)? {
        let message = format!("functions in index {what} must be marked IMMUTABLE");
        return Err(generated::not_valid(message));
    }
    let named = named_columns(expr, schema)?;
    let mut named = named.iter().map(|column| &schema.columns[column.index()]);
    match named.find(|column| column.generated.is_some()) {
        Some(column) => {
            let what = format!(
                "the generated column \"{}\" in an index {what}",
                column.name
            );
            Err(unsupported(what, position))
        }
        None => Ok(()),
    }
}
