//! Which values can be told apart, and put in order.

use kiln_procedure::ir::{Class, SortKey};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{
    Expr, OrderByKind, OrderByOptions, OrderBySort, Query, Value as Literal, ValueWithSpan,
};

use super::bound::{Bound, OrderKey};
use super::{Position, fail, object_name, position_of, unsupported};

/// What a clause asks of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Which are the same.
    Equality,
    /// Which comes first.
    Order,
}

/// How values of a type compare in a clause.
///
/// # Errors
/// 42883 for JSON, which has no operators; 0A000 for types whose values do not compare.
pub(super) fn class_in(
    clause: &str,
    needs: Needs,
    data_type: &DataType,
    position: Position,
) -> Result<Class> {
    let base = match data_type {
        DataType::Array(element) => &**element,
        other => other,
    };
    match base {
        DataType::Row(_) | DataType::Catalog(_)
            if *base == DataType::JSON || base.row().is_some() && Class::of(base).is_none() =>
        {
            let needed = match needs {
                Needs::Equality => "equality",
                Needs::Order => "ordering",
            };
            let message = format!("could not identify an {needed} operator for type {base}");
            let error = fail(SqlState::UNDEFINED_FUNCTION, message, position);
            Err(match needs {
                Needs::Equality => error,
                Needs::Order => {
                    error.with_hint("Use an explicit ordering operator or modify the query.")
                }
            })
        }
        _ => Class::of(data_type)
            .ok_or_else(|| unsupported(format!("{clause} of {data_type}"), position)),
    }
}

/// The items of ORDER BY.
pub(super) fn order_items(query: &Query) -> Result<Vec<(&Expr, OrderByOptions)>> {
    let Some(order_by) = &query.order_by else {
        return Ok(Vec::new());
    };
    if order_by.interpolate.is_some() {
        return Err(unsupported("INTERPOLATE", position_of(query)));
    }
    match &order_by.kind {
        OrderByKind::All(_) => Err(unsupported("ORDER BY ALL", position_of(query))),
        OrderByKind::Expressions(items) => items
            .iter()
            .map(|item| {
                if item.with_fill.is_some() {
                    return Err(unsupported("WITH FILL", position_of(&item.expr)));
                }
                Ok((&item.expr, item.options.clone()))
            })
            .collect(),
    }
}

/// A key with its direction.
///
/// # Errors
/// 42809 for an operator that does not sort.
pub(super) fn order_key(bound: Bound, options: OrderByOptions) -> Result<OrderKey> {
    let descending = match &options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Using(operator)) => match object_name(operator)?.as_str() {
            "<" => false,
            ">" => true,
            other => {
                return Err(fail(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("operator {other} is not a valid ordering operator"),
                    bound.position,
                )
                .with_hint(
                    "Ordering operators must be \"<\" or \">\" members of btree operator families.",
                ));
            }
        },
    };
    class_in("ORDER BY", Needs::Order, &bound.data_type, bound.position)?;
    Ok(OrderKey {
        bound,
        descending,
        nulls_first: options.nulls_first.unwrap_or(descending),
    })
}

/// The output column that a plain number in ORDER BY or GROUP BY means, counted from 0.
///
/// # Errors
/// 42P10 when there is no such column.
pub(super) fn output_number(expr: &Expr, columns: usize) -> Result<Option<usize>> {
    let Expr::Value(ValueWithSpan {
        value: Literal::Number(digits, _),
        ..
    }) = expr
    else {
        return Ok(None);
    };
    match digits.parse::<usize>() {
        Ok(number) if (1..=columns).contains(&number) => Ok(Some(number - 1)),
        _ => Err(fail(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("position {digits} is not in select list"),
            position_of(expr),
        )),
    }
}

/// The sort key for a column of a buffer.
///
/// # Errors
/// As [`class_in`].
pub(super) fn sort_key(column: usize, key: &OrderKey) -> Result<SortKey> {
    let class = class_in(
        "ORDER BY",
        Needs::Order,
        &key.bound.data_type,
        key.bound.position,
    )?;
    Ok(SortKey {
        column: column as u16,
        class,
        descending: key.descending,
        nulls_first: key.nulls_first,
    })
}
