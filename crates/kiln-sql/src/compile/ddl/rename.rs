//! Other names in the expressions that a catalog keeps as text: PostgreSQL keeps what they mean,
//! which has another name then.

use kiln_storage::error::Result;
use kiln_storage::types::DataType as ColumnType;
use sqlparser::ast::{
    ArrayElemTypeDef, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, ObjectNamePart, Value as Literal,
};

use super::super::expression::walk;
use super::super::{CatalogView, kept_name, name_of, quote_identifier, stored_expression};
use crate::catalog::{qualified_name, stored_name};

/// What has another name.
#[derive(Clone, Copy, Debug)]
pub enum Renamed<'a> {
    /// The table of the expression.
    Table(&'a str),
    /// A column of that.
    Column(&'a str),
    /// A function.
    Routine(&'a str),
    /// A sequence.
    Sequence(&'a str),
}

/// An expression as it is kept, where something is called `to` now; `None` when it does not name
/// that.
///
/// # Errors
/// 0A000 for an expression of which it is not known what it names.
pub fn renamed_expression(text: &str, what: Renamed<'_>, to: &str) -> Result<Option<String>> {
    let mut expr = stored_expression(text)?;
    let before = expr.clone();
    walk(&mut expr, &mut |expr| rename(expr, what, to))?;
    Ok((expr != before).then(|| expr.to_string()))
}

/// The text of a default value that a statement gives. The catalog reads it along the default path,
/// so that sequences of other schemas have them in their names.
///
/// # Errors
/// 0A000 for an expression of which it is not known what it names.
pub fn kept_default(
    expr: &Expr,
    data_type: &ColumnType,
    catalog: &dyn CatalogView,
) -> Result<String> {
    // A label of the column's enum is kept without its cast, so that the type may get another name.
    if let (
        Expr::Cast {
            expr: label,
            data_type: written,
            ..
        },
        ColumnType::Enum(of),
    ) = (expr, data_type)
        && matches!(**label, Expr::Value(_))
        && names_enum(written, of.name())
    {
        return Ok(label.to_string());
    }
    if catalog.path().is_default() {
        return Ok(expr.to_string());
    }
    let mut expr = expr.clone();
    walk(&mut expr, &mut |part| {
        if let Expr::Function(function) = part
            && let Some(text) = sequence_named(function)
            && let Ok(name) = qualified_name(text, catalog)
        {
            *text = kept_name(&name);
        }
    })?;
    Ok(expr.to_string())
}

/// An expression over the VALUE of a domain, which is written so.
pub fn over_value(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    // Parts that are not known keep their names.
    let _ = walk(&mut expr, &mut |part| {
        if let Expr::Identifier(ident) = part
            && name_of(ident) == "value"
        {
            *ident = Ident::new("VALUE");
        }
    });
    expr
}

/// An expression in which columns are named without the rows that they are of.
pub fn without_rows(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    // Parts that are not known keep their names.
    let _ = walk(&mut expr, &mut |part| {
        if let Expr::CompoundIdentifier(path) = part
            && let Some(last) = path.pop()
        {
            *part = Expr::Identifier(last);
        }
    });
    expr
}

/// An identifier as an expression has it.
fn identifier(name: &str) -> Ident {
    match quote_identifier(name) == name {
        true => Ident::new(name),
        false => Ident::with_quote('"', name),
    }
}

fn rename(expr: &mut Expr, what: Renamed<'_>, to: &str) {
    match (expr, what) {
        (Expr::Identifier(ident), Renamed::Column(from)) if name_of(ident) == from => {
            *ident = identifier(to);
        }
        (Expr::CompoundIdentifier(path), Renamed::Column(from)) => {
            if let Some(last) = path.last_mut()
                && name_of(last) == from
            {
                *last = identifier(to);
            }
        }
        (Expr::CompoundIdentifier(path), Renamed::Table(from)) => {
            let qualifier = path.len().checked_sub(2).and_then(|at| path.get_mut(at));
            if let Some(qualifier) = qualifier
                && name_of(qualifier) == from
            {
                *qualifier = identifier(to);
            }
        }
        (Expr::Function(function), Renamed::Routine(from)) => {
            if let Some(ObjectNamePart::Identifier(last)) = function.name.0.last_mut()
                && name_of(last) == from
            {
                *last = identifier(to);
            }
        }
        (Expr::Function(function), Renamed::Sequence(from)) => rename_sequence(function, from, to),
        _ => {}
    }
}

/// The text by which a function of sequences names one.
fn sequence_named(function: &mut Function) -> Option<&mut String> {
    let last = function.name.0.last().and_then(|part| part.as_ident())?;
    if !matches!(name_of(last).as_str(), "nextval" | "currval" | "setval") {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return None;
    };
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(first)) = list.args.first_mut()? else {
        return None;
    };
    let mut literal = first;
    while let Expr::Cast { expr, .. } | Expr::Nested(expr) = literal {
        literal = expr;
    }
    match literal {
        Expr::Value(value) => match &mut value.value {
            Literal::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The name in the first argument of a function of sequences.
fn rename_sequence(function: &mut Function, from: &str, to: &str) {
    if let Some(text) = sequence_named(function)
        && stored_name(text).is_ok_and(|name| name == from)
    {
        *text = kept_name(to);
    }
}

/// Whether an expression names an enum.
///
/// # Errors
/// 0A000 for an expression of which it is not known what it names.
pub fn names_type(text: &str, name: &str) -> Result<bool> {
    let mut found = false;
    walk(&mut stored_expression(text)?, &mut |expr| {
        let written = match expr {
            Expr::Cast { data_type, .. } => data_type,
            Expr::TypedString(typed) => &typed.data_type,
            _ => return,
        };
        found |= names_enum(written, name);
    })?;
    Ok(found)
}

/// Whether a type that was written is an enum of this name, or an array of it.
fn names_enum(written: &DataType, name: &str) -> bool {
    match written {
        DataType::Custom(known, _) => {
            let last = known.0.last().and_then(|part| part.as_ident());
            last.is_some_and(|last| name_of(last) == name)
        }
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::Qualified(element, _),
        ) => names_enum(element, name),
        _ => false,
    }
}

/// The text of an expression that is nothing but a literal.
pub fn stored_literal(text: &str) -> Option<String> {
    match stored_expression(text).ok()? {
        Expr::Value(value) => value.value.into_string(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, what: Renamed<'_>, to: &str, expected: Option<&str>) {
        let renamed = renamed_expression(text, what, to).expect("it is an expression");
        assert_eq!(renamed.as_deref(), expected, "{text}");
    }

    #[test]
    fn columns_are_renamed_where_they_are_meant() {
        let column = Renamed::Column("date");
        check(
            "date > '2020-01-01'::DATE AND t.date IS NOT NULL",
            column,
            "day",
            Some("day > '2020-01-01'::DATE AND t.day IS NOT NULL"),
        );
        check("length(a) > 1", column, "day", None);
        check(
            "CASE WHEN a IN (1, b) THEN coalesce(b, 'b') ELSE b END = trim(b)",
            Renamed::Column("b"),
            "Two Words",
            Some(
                "CASE WHEN a IN (1, \"Two Words\") THEN coalesce(\"Two Words\", 'b') \
                 ELSE \"Two Words\" END = TRIM(\"Two Words\")",
            ),
        );
    }

    #[test]
    fn tables_routines_and_sequences_are_renamed() {
        check(
            "t.a > 0 AND a < 9",
            Renamed::Table("t"),
            "u",
            Some("u.a > 0 AND a < 9"),
        );
        check(
            "f(f(a)) > g(1)",
            Renamed::Routine("f"),
            "h",
            Some("h(h(a)) > g(1)"),
        );
        let sequence = Renamed::Sequence("s");
        check(
            "nextval('public.s'::regclass) + nextval('s_b')",
            sequence,
            "r",
            Some("nextval('r'::REGCLASS) + nextval('s_b')"),
        );
        check("length('s')", sequence, "r", None);
    }
}
