//! Generated columns: `GENERATED ALWAYS AS (expression) STORED`.
//!
//! The catalog keeps the expression as text. It names other columns of its row and immutable
//! functions alone, so that its value changes when one of these columns does, and at no other time.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ForeignKey, ReferentialAction, TableSchema};
use kiln_storage::types::DataType;
use sqlparser::ast::{
    BinaryOperator, ColumnDef, ColumnOption, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GeneratedExpressionMode,
};

use super::super::bound::{Bound, Kind};
use super::super::dml::converted;
use super::super::expression::{named_columns, visit};
use super::super::{
    CatalogView, Compiler, Position, declared_type, expression_type, expression_type_in, fail,
    name_of, object_name, position_of, position_of_span, scratch, stored_expression,
};
use crate::catalog::is_immutable;
use crate::parse::Volatility;

/// The expression that a column's definition says it is computed from.
pub(super) fn written<'d>(table: &str, definition: &'d ColumnDef) -> Result<Option<&'d Expr>> {
    let mut found = None;
    for option in &definition.options {
        let ColumnOption::Generated {
            generation_expr: Some(expr),
            generation_expr_mode,
            ..
        } = &option.option
        else {
            continue;
        };
        if *generation_expr_mode != Some(GeneratedExpressionMode::Stored) {
            let message = "syntax error: a generated column is STORED";
            return Err(fail(SqlState::SYNTAX_ERROR, message, position_of(expr)));
        }
        if found.replace(expr).is_some() {
            let (column, position) = (&definition.name, position_of_span(definition.name.span));
            let message = format!(
                "multiple generation clauses specified for column \"{}\" of table \"{table}\"",
                name_of(column)
            );
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
    }
    Ok(found)
}

/// Checks the expressions from which the columns behind the first `known` are computed.
///
/// # Errors
/// 42P17 for one that names a generated column or is not immutable, 42804 for another type, 0A000
/// for a subquery.
pub(super) fn check(schema: &TableSchema, known: usize, catalog: &dyn CatalogView) -> Result<()> {
    for at in known..schema.shown().len() {
        if let Some(text) = &schema.columns[at].generated {
            check_expression(schema, at, &stored_expression(text)?, catalog)?;
        }
    }
    Ok(())
}

fn check_expression(
    schema: &TableSchema,
    at: usize,
    expr: &Expr,
    catalog: &dyn CatalogView,
) -> Result<()> {
    let column = &schema.columns[at];
    let bound = bind_over(
        schema,
        catalog,
        "column generation expressions",
        |compiler| compiler.bind(expr),
    )?;
    if bound.any(|part| matches!(part.kind, Kind::Subquery(_))) {
        let message = "cannot use subquery in column generation expression";
        return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, None));
    }
    let named = named_columns(expr, schema)?;
    let mut named = named.iter().map(|column| &schema.columns[column.index()]);
    if let Some(other) = named.find(|column| column.generated.is_some()) {
        let name = &other.name;
        let message =
            format!("cannot use generated column \"{name}\" in column generation expression");
        let detail = "A generated column cannot reference another generated column.";
        return Err(not_valid(message).with_detail(detail));
    }
    if !is_fixed(expr, schema, catalog)? {
        let message = "generation expression is not immutable".to_owned();
        return Err(not_valid(message));
    }
    converted(bound, column, "default expression").map(drop)
}

/// Binds an expression over a row of a table, to see what it is.
pub(in super::super) fn bind_over<'c>(
    schema: &TableSchema,
    catalog: &'c dyn CatalogView,
    clause: &'static str,
    bind: impl FnOnce(&mut Compiler<'c>) -> Result<Bound>,
) -> Result<Bound> {
    let mut compiler = scratch(catalog);
    let registers: Vec<_> = (schema.shown().iter())
        .map(|column| {
            let register = compiler.builder.register(column.data_type.clone());
            (column.name.clone(), column.data_type.clone(), register)
        })
        .collect();
    let source = compiler.declare_register_row(name_in_schema(&schema.name), &registers, None);
    compiler.push_rows_of(&[source], clause);
    bind(&mut compiler)
}

pub(super) fn not_valid(message: String) -> kiln_storage::error::Error {
    kiln_storage::error::Error::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// Whether an expression has the same value for the same row at all times.
pub(super) fn is_fixed(
    expr: &Expr,
    schema: &TableSchema,
    catalog: &dyn CatalogView,
) -> Result<bool> {
    let mut is_fixed = true;
    visit(expr, &mut |part| {
        is_fixed &= is_fixed_part(part, schema, catalog)
    })?;
    Ok(is_fixed)
}

fn is_fixed_part(part: &Expr, schema: &TableSchema, catalog: &dyn CatalogView) -> bool {
    let type_of = |expr: &Expr| expression_type_in(expr, Some(schema), catalog);
    match part {
        Expr::Function(function) => is_fixed_call(function, schema, catalog),
        Expr::Extract { expr, .. } => !matches!(type_of(expr), Some(DataType::TimestampTz(_))),
        Expr::Cast {
            expr, data_type, ..
        } => match (type_of(expr), declared_type(data_type, catalog, None)) {
            (Some(from), Ok(to)) => is_fixed_cast(&from, &to.data_type),
            _ => true,
        },
        Expr::BinaryOp { left, op, right } => is_fixed_operator(type_of(left), op, type_of(right)),
        _ => true,
    }
}

fn is_fixed_call(function: &Function, schema: &TableSchema, catalog: &dyn CatalogView) -> bool {
    let Ok(name) = object_name(&function.name) else {
        return false;
    };
    if let Some(routine) = catalog.routine(&name) {
        return routine.volatility == Volatility::Immutable;
    }
    let arguments = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        // `current_date` and its like.
        FunctionArguments::None => return false,
        FunctionArguments::Subquery(_) => return false,
    };
    let types: Vec<Option<DataType>> = (arguments.iter())
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                expression_type(expr, Some(schema))
            }
            _ => None,
        })
        .collect();
    is_immutable(&name, &types)
}

/// Whether values convert in the same way at all times and under all settings. Labels of an enum
/// may get other texts; PostgreSQL's conversions of dates and times to and from texts depend on
/// DateStyle, and those between times with and without a zone on TimeZone.
fn is_fixed_cast(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (Array(from), Array(to)) => is_fixed_cast(from, to),
        (Array(_), to) => !to.is_string(),
        (from, Array(_)) => !from.is_string(),
        (Enum(_), to) if to.is_string() => false,
        (from, Enum(_)) if from.is_string() => false,
        (Date | Timestamp(_) | TimestampTz(_), to) if to.is_string() => false,
        (from, Date | Time(_) | Timestamp(_) | TimestampTz(_)) if from.is_string() => false,
        (TimestampTz(_), Date | Time(_) | Timestamp(_)) | (Date | Timestamp(_), TimestampTz(_)) => {
            false
        }
        _ => true,
    }
}

fn is_fixed_operator(left: Option<DataType>, op: &BinaryOperator, right: Option<DataType>) -> bool {
    if *op == BinaryOperator::StringConcat {
        // What is joined to a text becomes one.
        let mut sides = left.iter().chain(&right);
        let is_array = sides.clone().any(|side| matches!(side, DataType::Array(_)));
        return is_array || sides.all(|side| is_fixed_cast(side, &DataType::Text));
    }
    let (Some(left), Some(right)) = (left, right) else {
        return true;
    };
    let has_zone = |one: &DataType, other: &DataType| {
        use DataType::{Date, Interval, Timestamp, TimestampTz};
        matches!(one, TimestampTz(_)) && matches!(other, Date | Timestamp(_) | Interval(_))
    };
    !has_zone(&left, &right) && !has_zone(&right, &left)
}

/// Refuses actions of a foreign key that would set generated columns.
///
/// # Errors
/// 42601.
pub(super) fn check_actions(
    schema: &TableSchema,
    key: &ForeignKey,
    position: Position,
) -> Result<()> {
    let mut columns = key.columns.iter();
    if !columns.any(|column| schema.columns[column.index()].generated.is_some()) {
        return Ok(());
    }
    let sets = |action| {
        matches!(
            action,
            ReferentialAction::SetNull | ReferentialAction::SetDefault
        )
    };
    let event = match (key.on_update, key.on_delete) {
        (ReferentialAction::Cascade, _) => "UPDATE",
        (on_update, _) if sets(on_update) => "UPDATE",
        (_, on_delete) if sets(on_delete) => "DELETE",
        _ => return Ok(()),
    };
    let message =
        format!("invalid ON {event} action for foreign key constraint containing generated column");
    Err(fail(SqlState::SYNTAX_ERROR, message, position))
}
