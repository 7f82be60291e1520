//! Queries that are no SELECT: VALUES, UNION, INTERSECT and EXCEPT, and the order of what they
//! give.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, Query};

use super::bound::{Body, Bound, BoundQuery, ColumnMeta, Kind, OrderKey, SetOperation};
use super::category::common_type;
use super::coerce::{CastContext, coerce};
use super::order::{order_items, order_key, output_number};
use super::scope::{AggregatePolicy, Level};
use super::{Compiler, fail, name_of, position_of, unsupported};

impl Compiler<'_> {
    pub(super) fn bind_values(
        &mut self,
        values: &sqlparser::ast::Values,
    ) -> Result<Vec<Vec<Bound>>> {
        let mut rows: Vec<Vec<Bound>> = Vec::with_capacity(values.rows.len());
        self.levels
            .push(Level::empty(AggregatePolicy::Refused("VALUES")));
        let mut bind = || -> Result<()> {
            for row in &values.rows {
                let mut bounds = Vec::new();
                for expr in row.iter() {
                    bounds.push(self.bind(expr)?);
                }
                if rows
                    .first()
                    .is_some_and(|first| first.len() != bounds.len())
                {
                    return Err(fail(
                        SqlState::SYNTAX_ERROR,
                        "VALUES lists must all be the same length",
                        row.iter().next().and_then(position_of),
                    ));
                }
                rows.push(bounds);
            }
            Ok(())
        };
        let result = bind();
        self.levels.pop();
        result?;
        if rows.is_empty() || rows[0].is_empty() {
            return Err(fail(SqlState::SYNTAX_ERROR, "VALUES without a row", None));
        }
        for column in 0..rows[0].len() {
            let all: Vec<&Bound> = rows.iter().map(|row| &row[column]).collect();
            let data_type = common_type("VALUES", &all, rows[0][column].position)?;
            for row in &mut rows {
                let taken = std::mem::replace(&mut row[column], Bound::boolean(true));
                row[column] = coerce(taken, &data_type, CastContext::Implicit)?;
            }
        }
        Ok(rows)
    }

    pub(super) fn bind_set(
        &mut self,
        (operation, all): (SetOperation, bool),
        mut left: BoundQuery,
        mut right: BoundQuery,
        query: &Query,
        position: super::Position,
    ) -> Result<BoundQuery> {
        if left.columns.len() != right.columns.len() {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                format!(
                    "each {} query must have the same number of columns",
                    operation.name()
                ),
                position,
            ));
        }
        let mut columns = Vec::with_capacity(left.columns.len());
        for index in 0..left.columns.len() {
            let open = |query: &BoundQuery| match &query.body {
                Body::Select(select) if select.open_outputs.contains(&index) => {
                    select.outputs[index].clone()
                }
                _ => Bound::new(
                    Kind::Slot(index),
                    query.columns[index].data_type.clone(),
                    position,
                ),
            };
            let (one, other) = (open(&left), open(&right));
            let (one, other) = (reopened(one), reopened(other));
            let data_type = common_type(operation.name(), &[&one, &other], position)?;
            left.cast_column(index, one, &data_type)?;
            right.cast_column(index, other, &data_type)?;
            columns.push(ColumnMeta {
                name: left.columns[index].name.clone(),
                data_type,
                origin: None,
            });
        }
        let order = self.bind_output_order(query, &columns)?;
        Ok(BoundQuery {
            with: Vec::new(),
            body: Body::Set {
                operation,
                left: Box::new(left),
                right: Box::new(right),
                all,
            },
            columns,
            order,
            limit: None,
            offset: None,
        })
    }

    /// ORDER BY over output columns alone, by name or number.
    pub(super) fn bind_output_order(
        &mut self,
        query: &Query,
        columns: &[ColumnMeta],
    ) -> Result<Vec<OrderKey>> {
        let mut keys = Vec::new();
        for (expr, options) in order_items(query)? {
            let position = position_of(expr);
            let index = match expr {
                Expr::Identifier(ident) => {
                    let name = name_of(ident);
                    columns
                        .iter()
                        .position(|column| column.name == name)
                        .ok_or_else(|| {
                            fail(
                                SqlState::UNDEFINED_COLUMN,
                                format!("column \"{name}\" does not exist"),
                                position,
                            )
                        })?
                }
                _ => match output_number(expr, columns.len())? {
                    Some(index) => index,
                    None => {
                        return Err(unsupported(
                            "ORDER BY with an expression over a UNION or VALUES",
                            position,
                        ));
                    }
                },
            };
            let data_type = columns[index].data_type.clone();
            let bound = Bound::new(Kind::Slot(index), data_type, position);
            keys.push(order_key(bound, options)?);
        }
        Ok(keys)
    }
}

impl BoundQuery {
    /// Gives an output column another type; `open` is its literal when the type was open.
    pub(super) fn cast_column(
        &mut self,
        index: usize,
        open: Bound,
        data_type: &DataType,
    ) -> Result<()> {
        if self.columns[index].data_type == *data_type && !open.is_unknown() {
            return Ok(());
        }
        match &mut self.body {
            Body::Select(select) => {
                let old = select.outputs[index].clone();
                let source = if open.is_unknown() { open } else { old };
                // What was equal under DISTINCT still is: numbers and strings widen one to one.
                select.outputs[index] = coerce(source, data_type, CastContext::Implicit)?;
            }
            Body::Values(rows) => {
                for row in rows {
                    let taken = std::mem::replace(&mut row[index], Bound::boolean(true));
                    row[index] = coerce(taken, data_type, CastContext::Implicit)?;
                }
            }
            Body::Set { left, right, .. } => {
                let same = |query: &BoundQuery| {
                    Bound::new(
                        Kind::Slot(index),
                        query.columns[index].data_type.clone(),
                        None,
                    )
                };
                let (one, other) = (same(left), same(right));
                left.cast_column(index, one, data_type)?;
                right.cast_column(index, other, data_type)?;
            }
            Body::Windowed(_) | Body::Recursive(_) => {
                return Err(Error::internal("a conversion of what is within a query"));
            }
        }
        self.columns[index].data_type = data_type.clone();
        Ok(())
    }
}

impl BoundQuery {
    /// Makes outputs TEXT whose type is open still: where a query is a part of another one,
    /// nothing outside decides.
    pub(super) fn decide_outputs(&mut self) -> Result<()> {
        let Body::Select(select) = &mut self.body else {
            return Ok(());
        };
        for output in select
            .outputs
            .iter_mut()
            .filter(|output| output.is_open_parameter())
        {
            let taken = std::mem::replace(output, Bound::boolean(true));
            *output = coerce(taken, &DataType::Text, CastContext::Implicit)?;
        }
        Ok(())
    }
}

/// A literal that became TEXT because nothing said what it was, as it was before.
pub(super) fn reopened(bound: Bound) -> Bound {
    let position = bound.position;
    match bound.kind {
        Kind::Constant(Value::Text(text)) => {
            Bound::new(Kind::Unknown(Some(text)), DataType::Text, position)
        }
        Kind::Constant(Value::Null) => Bound::new(Kind::Unknown(None), DataType::Text, position),
        kind => Bound { kind, ..bound },
    }
}
