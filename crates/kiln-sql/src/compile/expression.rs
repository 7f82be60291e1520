//! Expressions as they are written: their parts, and the columns that they name.

use kiln_storage::error::{Error, Result};
use kiln_storage::schema::{ColumnId, ColumnSet, TableSchema};
use sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByExpr,
    SelectItem, SetExpr, Subscript,
};

use super::{Position, name_of, position_of, unsupported};
use crate::parse::stored_query;

/// The expression that the catalog keeps as text. Its tree has no places, as that of a
/// [`stored_query`].
pub(crate) fn stored_expression(text: &str) -> Result<Expr> {
    let query = stored_query(&format!("SELECT {text}"))?;
    if let SetExpr::Select(select) = *query.body
        && let [SelectItem::UnnamedExpr(expr)] = select.projection.as_slice()
    {
        return Ok(expr.clone());
    }
    let message = format!("the stored expression {text} is none");
    Err(Error::internal(message))
}

/// Calls `visit` for an expression and all within it.
///
/// # Errors
/// 0A000 for an expression whose parts are not known.
pub(super) fn walk(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) -> Result<()> {
    visit(expr);
    let mut parts: Vec<&mut Expr> = Vec::new();
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Interval(_) => {}
        Expr::Nested(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotUnknown(inner)
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::Cast { expr: inner, .. }
        | Expr::Extract { expr: inner, .. }
        | Expr::Ceil { expr: inner, .. }
        | Expr::Floor { expr: inner, .. }
        | Expr::IsNormalized { expr: inner, .. }
        | Expr::Collate { expr: inner, .. } => parts.push(inner),
        Expr::BinaryOp { left, right, .. }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right)
        | Expr::AnyOp { left, right, .. }
        | Expr::AllOp { left, right, .. }
        | Expr::Position {
            expr: left,
            r#in: right,
        }
        | Expr::AtTimeZone {
            timestamp: left,
            time_zone: right,
        } => parts.extend([&mut **left, &mut **right]),
        Expr::Like {
            expr,
            pattern,
            escape_char,
            ..
        }
        | Expr::ILike {
            expr,
            pattern,
            escape_char,
            ..
        }
        | Expr::SimilarTo {
            expr,
            pattern,
            escape_char,
            ..
        } => {
            parts.extend([&mut **expr, &mut **pattern]);
            parts.extend(escape_char.as_deref_mut());
        }
        Expr::Between {
            expr, low, high, ..
        } => parts.extend([&mut **expr, &mut **low, &mut **high]),
        Expr::InList { expr, list, .. } => {
            parts.push(expr);
            parts.extend(list);
        }
        Expr::Tuple(items) => parts.extend(items),
        Expr::Array(array) => parts.extend(&mut array.elem),
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            parts.extend(operand.as_deref_mut());
            for branch in conditions {
                parts.extend([&mut branch.condition, &mut branch.result]);
            }
            parts.extend(else_result.as_deref_mut());
        }
        Expr::Substring {
            expr,
            substring_from,
            substring_for,
            ..
        } => {
            parts.push(expr);
            parts.extend(substring_from.as_deref_mut());
            parts.extend(substring_for.as_deref_mut());
        }
        Expr::Trim {
            expr,
            trim_what,
            trim_characters,
            ..
        } => {
            parts.push(expr);
            parts.extend(trim_what.as_deref_mut());
            parts.extend(trim_characters.iter_mut().flatten());
        }
        Expr::Overlay {
            expr,
            overlay_what,
            overlay_from,
            overlay_for,
        } => {
            parts.extend([&mut **expr, &mut **overlay_what, &mut **overlay_from]);
            parts.extend(overlay_for.as_deref_mut());
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            parts.push(root);
            for access in access_chain {
                if let AccessExpr::Subscript(Subscript::Index { index }) = access {
                    parts.push(index);
                }
            }
        }
        Expr::Function(function) => arguments(function, &mut parts)?,
        other => {
            let feature = format!("another name for what the expression {other} names");
            return Err(unsupported(feature, None));
        }
    }
    parts.into_iter().try_for_each(|part| walk(part, visit))
}

fn arguments<'e>(function: &'e mut Function, parts: &mut Vec<&'e mut Expr>) -> Result<()> {
    match &mut function.args {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) => {
            return Err(unsupported("another name for what a query names", None));
        }
        FunctionArguments::List(list) => {
            for argument in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
                | FunctionArg::Named {
                    arg: FunctionArgExpr::Expr(expr),
                    ..
                }
                | FunctionArg::ExprNamed {
                    arg: FunctionArgExpr::Expr(expr),
                    ..
                } = argument
                {
                    parts.push(expr);
                }
            }
        }
    }
    Ok(())
}

/// Calls `visit` for an expression that a column is generated from, and all within it.
///
/// # Errors
/// 0A000 for an expression whose parts are not known.
pub(super) fn visit(expr: &Expr, visit: &mut dyn FnMut(&Expr)) -> Result<()> {
    let mut expr = expr.clone();
    let position = position_of(&expr);
    walk(&mut expr, &mut |part| visit(part))
        .map_err(|_| unsupported("this expression for a generated column", position))
}

/// The columns that an expression names.
///
/// # Errors
/// 0A000 for an expression whose parts are not known.
pub(super) fn named_columns(expr: &Expr, schema: &TableSchema) -> Result<ColumnSet> {
    let mut named = ColumnSet::EMPTY;
    visit(expr, &mut |part| {
        let ident = match part {
            Expr::Identifier(ident) => Some(ident),
            Expr::CompoundIdentifier(path) => path.last(),
            _ => None,
        };
        if let Some(column) = ident.and_then(|ident| schema.column(&name_of(ident))) {
            named.insert(column);
        }
    })?;
    Ok(named)
}

/// The columns from which a generated column is computed; none for another column.
///
/// # Errors
/// XX000 for a text that is no expression.
pub fn columns_of_generated(schema: &TableSchema, column: ColumnId) -> Result<ColumnSet> {
    match &schema.columns[column.index()].generated {
        Some(text) => named_columns(&stored_expression(text)?, schema),
        None => Ok(ColumnSet::EMPTY),
    }
}

/// The arguments of a call as they were written.
#[derive(Clone)]
pub(super) struct Call<'e> {
    pub(super) name: String,
    pub(super) arguments: Vec<&'e Expr>,
    pub(super) is_star: bool,
    pub(super) distinct: bool,
    pub(super) filter: Option<&'e Expr>,
    pub(super) order: &'e [OrderByExpr],
    /// Behind WITHIN GROUP.
    pub(super) within: &'e [OrderByExpr],
    pub(super) position: Position,
}
