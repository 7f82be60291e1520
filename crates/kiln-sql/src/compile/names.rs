//! The names of output columns that have no alias.

use kiln_storage::types::DataType;
use sqlparser::ast::{self, Expr, SelectItem};

use super::name_of;
use crate::catalog::internal_name;

/// The name that PostgreSQL gives an output column without an alias.
pub(super) fn figure_name(expr: &Expr) -> String {
    figure(expr).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// The name and whether it is a strong one, which a cast does not replace by its type.
fn figure(expr: &Expr) -> Option<(String, bool)> {
    let strong = |name: String| Some((name, true));
    let known = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Identifier(ident) => strong(name_of(ident)),
        Expr::CompoundIdentifier(idents) => strong(name_of(idents.last()?)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(Expr::Identifier(ident)) => Some(name_of(ident)),
                _ => None,
            });
            field.map(|name| (name, true)).or_else(|| figure(root))
        }
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        Expr::Function(function) => strong(name_of(function.name.0.last()?.as_ident()?)),
        Expr::Cast {
            expr, data_type, ..
        } => match figure(expr) {
            Some((name, true)) => strong(name),
            weak => type_column_name(data_type)
                .map(|name| (name, false))
                .or(weak),
        },
        Expr::TypedString(typed) => type_column_name(&typed.data_type).map(|name| (name, false)),
        Expr::Interval(_) => Some(("interval".to_owned(), false)),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figure) {
            Some((name, true)) => strong(name),
            _ => Some(("case".to_owned(), false)),
        },
        Expr::Array(_) => known("array"),
        Expr::Tuple(_) => known("row"),
        Expr::Exists { negated: false, .. } => known("exists"),
        Expr::Extract { .. } => known("extract"),
        Expr::Ceil { .. } => known("ceil"),
        Expr::Floor { .. } => known("floor"),
        Expr::Position { .. } => known("position"),
        Expr::Substring { shorthand, .. } => known(if *shorthand { "substr" } else { "substring" }),
        Expr::Trim { trim_where, .. } => known(match trim_where {
            None | Some(ast::TrimWhereField::Both) => "btrim",
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
        }),
        Expr::Overlay { .. } => known("overlay"),
        Expr::IsNormalized { negated: false, .. } => known("is_normalized"),
        Expr::AtTimeZone { .. } => known("timezone"),
        Expr::Subquery(query) => match &*query.body {
            ast::SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(expr) => figure(expr),
                SelectItem::ExprWithAlias { alias, .. } => strong(name_of(alias)),
                _ => None,
            },
            ast::SetExpr::Values(_) => known("column1"),
            _ => None,
        },
        _ => None,
    }
}

/// The internal name of a type, which names the column of a cast.
fn type_column_name(written: &ast::DataType) -> Option<String> {
    let data_type = match (super::types::plain_type(written, None), written) {
        (Ok(data_type), _) => data_type,
        // An enum, if it is a type.
        (Err(_), ast::DataType::Custom(name, _)) => return name.0.last()?.as_ident().map(name_of),
        (Err(_), ast::DataType::Array(_)) => return figure_array(written),
        _ => return None,
    };
    match data_type {
        DataType::Array(_) => figure_array(written),
        other => Some(internal_name(&other).to_owned()),
    }
}

fn figure_array(written: &ast::DataType) -> Option<String> {
    match written {
        ast::DataType::Array(
            ast::ArrayElemTypeDef::SquareBracket(element, _)
            | ast::ArrayElemTypeDef::Qualified(element, _),
        ) => type_column_name(element),
        _ => None,
    }
}
