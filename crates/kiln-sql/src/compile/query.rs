//! Queries as a whole: what the parts are called, set operations, order and limits.

use kiln_procedure::ir::{BufferId, Reg, SortKey, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast;
use sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier};

#[cfg(test)]
use crate::database::panics::planted;

use super::bound::{
    Body, Bound, BoundQuery, ColumnMeta, ItemKind, Kind, OrderKey, Select, SetOperation,
};
use super::limit::Limits;
use super::order::sort_key;
use super::quoting::quote_identifier;
use super::select::refuse_rows;
use super::set::reopened;
use super::{Compiler, fail, locking, position_of, unsupported};
use crate::parse::stored_query;

/// A column of a result row, inside a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Its value. It may be a variable's or a constant's own register: do not write to it.
    pub register: Reg,
}

/// How a query is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryOptions {
    /// All rows are computed before the first iteration of the sink: needed when the sink writes to
    /// tables that the query reads.
    pub materialise: bool,
}

impl Compiler<'_> {
    /// Compiles `query`; `sink` is called once, where the registers of one result row are ready.
    /// Rows of the query cannot be named in the sink; variables can.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the query; 0A000 for what is not supported; what
    /// the sink returns.
    pub fn query(
        &mut self,
        query: &Query,
        options: QueryOptions,
        sink: &mut dyn FnMut(&mut Self, &[OutputColumn]) -> Result<()>,
    ) -> Result<Vec<ColumnMeta>> {
        self.statement_query(query, |compiler, bound| {
            compiler.emit_outputs(bound, options, sink)
        })
    }

    /// Binds a query that is a whole statement, and emits it.
    fn statement_query(
        &mut self,
        query: &Query,
        emit: impl FnOnce(&mut Self, &BoundQuery) -> Result<()>,
    ) -> Result<Vec<ColumnMeta>> {
        let changes = query.with.as_ref().is_some_and(changes_data);
        if !changes {
            let bound = self.bind_query(query)?;
            emit(self, &bound)?;
            return Ok(bound.columns);
        }
        let open = self.open_with.len();
        let result = self.statement(|compiler| {
            compiler.is_statement = true;
            let bound = compiler.bind_query(query)?;
            emit(compiler, &bound)?;
            Ok(bound.columns)
        });
        self.open_with.truncate(open);
        result
    }

    /// As [`Compiler::query`], for rows that are stored in columns of these types: a literal among
    /// the outputs of a SELECT that has no type of its own gets its column's.
    ///
    /// # Errors
    /// Those of [`Compiler::query`].
    pub(super) fn query_for(
        &mut self,
        query: &Query,
        wanted: &[DataType],
        options: QueryOptions,
        sink: &mut dyn FnMut(&mut Self, &[OutputColumn]) -> Result<()>,
    ) -> Result<()> {
        let mut bound = self.bind_query(query)?;
        if let Body::Select(select) = &bound.body
            && !select.distinct
        {
            let open: Vec<(usize, Bound)> = select
                .open_outputs
                .iter()
                .map(|index| (*index, reopened(select.outputs[*index].clone())))
                .collect();
            for (index, literal) in open {
                if let Some(data_type) = wanted.get(index)
                    && literal.is_unknown()
                {
                    bound.cast_column(index, literal, &data_type.without_modifier())?;
                }
            }
        }
        self.emit_outputs(&bound, options, sink)
    }

    /// Names and types of a query's columns, without compiling it.
    ///
    /// # Errors
    /// As [`Compiler::query`].
    pub fn query_columns(&mut self, query: &Query) -> Result<Vec<ColumnMeta>> {
        Ok(self.bind_query(query)?.columns)
    }

    /// Compiles `query` as the head of a FOR loop: `body` runs for each row, and EXIT and CONTINUE
    /// in it mean this loop.
    ///
    /// # Errors
    /// As [`Compiler::query`].
    pub fn for_query(
        &mut self,
        query: &Query,
        label: Option<&str>,
        options: QueryOptions,
        body: &mut dyn FnMut(&mut Self, &[OutputColumn]) -> Result<()>,
    ) -> Result<Vec<ColumnMeta>> {
        self.statement_query(query, |compiler, bound| {
            let outside = compiler.depth;
            let counts = bound.limit.is_some();
            compiler.emit_outputs(bound, options, &mut |compiler, row| {
                compiler.language_loop_body(label, outside, counts, |compiler| body(compiler, row))
            })
        })
    }

    fn emit_outputs(
        &mut self,
        query: &BoundQuery,
        options: QueryOptions,
        sink: &mut dyn FnMut(&mut Self, &[OutputColumn]) -> Result<()>,
    ) -> Result<()> {
        refuse_rows(&query.columns)?;
        self.statement(|compiler| {
            compiler.emit_query(query, options, &mut |compiler, row| {
                let columns: Vec<OutputColumn> = query
                    .columns
                    .iter()
                    .zip(row)
                    .map(|(column, register)| OutputColumn {
                        name: column.name.clone(),
                        data_type: column.data_type.clone(),
                        register: *register,
                    })
                    .collect();
                compiler.outside_statement(|compiler| sink(compiler, &columns))
            })
        })
    }

    /// Binds a query and everything in it.
    pub(super) fn bind_query(&mut self, query: &Query) -> Result<BoundQuery> {
        self.nesting += 4;
        let result = if self.nesting > 100 {
            Err(fail(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
                position_of(query),
            ))
        } else {
            self.bind_query_parts(query)
        };
        self.nesting -= 4;
        result
    }

    fn bind_query_parts(&mut self, query: &Query) -> Result<BoundQuery> {
        // Functions that give rows, and windows, belong to the output of one query.
        let output = self.output.take();
        let bound = self.bind_query_clauses(query);
        self.output = output;
        bound
    }

    fn bind_query_clauses(&mut self, query: &Query) -> Result<BoundQuery> {
        #[cfg(test)]
        planted::reach(planted::Step::Bind);
        let position = position_of(query);
        if !query.locks.is_empty() {
            // Every transaction is serializable: a lock taken by hand would add nothing.
            locking::check(query)?;
        }
        if query
            .fetch
            .as_ref()
            .is_some_and(|fetch| fetch.with_ties || fetch.percent)
        {
            return Err(unsupported("FETCH … WITH TIES and PERCENT", position));
        }
        if query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty()
        {
            return Err(unsupported("this clause of a query", position));
        }
        let known = self.with_names.len();
        let may_change = std::mem::take(&mut self.is_statement);
        let bound = self.bind_with_body(query, may_change);
        self.with_names.truncate(known);
        bound
    }

    fn bind_with_body(&mut self, query: &Query, may_change: bool) -> Result<BoundQuery> {
        let known = self.with_names.len();
        let queries = match &query.with {
            Some(with) if may_change && changes_data(with) => {
                self.open_changing_with(with)?;
                Vec::new()
            }
            Some(with) => self.bind_with(with)?,
            None => Vec::new(),
        };
        let mut bound = self.bind_body(&query.body, query)?;
        self.bind_limit(query, &mut bound)?;
        self.check_locked(&bound, query)?;
        if query.locks.iter().any(|lock| lock.nonblock.is_some()) {
            bound = self.lock_rows(bound, query)?;
        }
        if let Some(with) = query.with.as_ref().filter(|_| !queries.is_empty()) {
            let queries = self.end_with(known, with, queries);
            bound.with.splice(0..0, queries);
        }
        Ok(bound)
    }

    pub(super) fn bind_body(&mut self, body: &SetExpr, query: &Query) -> Result<BoundQuery> {
        let position = position_of(body);
        match body {
            SetExpr::Select(select) => self.bind_select(select, query),
            SetExpr::Query(inner) => {
                let inner = self.bind_query(inner)?;
                if query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none()
                {
                    return Ok(inner);
                }
                let columns = inner.columns.clone();
                let order = self.bind_output_order(query, &columns)?;
                let select = self.select_from(inner)?;
                let order = order
                    .into_iter()
                    .map(|key| {
                        let bound = match key.bound.kind {
                            Kind::Slot(index) => select.outputs[index].clone(),
                            _ => key.bound,
                        };
                        OrderKey { bound, ..key }
                    })
                    .collect();
                Ok(BoundQuery {
                    with: Vec::new(),
                    body: Body::Select(Box::new(select)),
                    columns,
                    order,
                    limit: None,
                    offset: None,
                })
            }
            SetExpr::Values(values) => {
                let rows = self.bind_values(values)?;
                let columns: Vec<ColumnMeta> = rows[0]
                    .iter()
                    .enumerate()
                    .map(|(index, bound)| ColumnMeta {
                        name: format!("column{}", index + 1),
                        data_type: bound.data_type.clone(),
                        origin: None,
                    })
                    .collect();
                let order = self.bind_output_order(query, &columns)?;
                Ok(BoundQuery {
                    with: Vec::new(),
                    body: Body::Values(rows),
                    columns,
                    order,
                    limit: None,
                    offset: None,
                })
            }
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                let operation = match op {
                    SetOperator::Union => SetOperation::Union,
                    SetOperator::Intersect => SetOperation::Intersect,
                    SetOperator::Except => SetOperation::Except,
                    SetOperator::Minus => return Err(unsupported("MINUS", position)),
                };
                let all = match set_quantifier {
                    SetQuantifier::All => true,
                    SetQuantifier::None | SetQuantifier::Distinct => false,
                    _ => return Err(unsupported("BY NAME", position)),
                };
                let bare = bare_query();
                let left = self.bind_body(left, &bare)?;
                let right = self.bind_body(right, &bare)?;
                self.bind_set((operation, all), left, right, query, position)
            }
            // Where the parser has made no SELECT * FROM of it, behind WITH.
            SetExpr::Table(table) => {
                let names = table.schema_name.iter().chain(&table.table_name);
                let names: Vec<String> = names.map(|name| quote_identifier(name)).collect();
                let same = stored_query(&format!("SELECT * FROM {}", names.join(".")))?;
                self.bind_body(&same.body, query)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(unsupported(
                    "a statement that changes data within a query",
                    position,
                ))
            }
        }
    }

    /// Emits a bound query; the sink gets the registers of the output columns.
    pub(super) fn emit_query(
        &mut self,
        query: &BoundQuery,
        options: QueryOptions,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let known = self.open_with.len();
        self.open_with(query);
        let result = self.emit_opened(query, options, sink);
        self.open_with.truncate(known);
        result
    }

    fn emit_opened(
        &mut self,
        query: &BoundQuery,
        options: QueryOptions,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let limits = self.emit_limits(query)?;
        if let Some(condition) = limits.guard {
            self.open();
            let result = self.emit_limited(query, options, &limits, sink);
            let then = self.close();
            self.builder.push(Step::If {
                condition,
                then,
                otherwise: Vec::new(),
            });
            return result;
        }
        self.emit_limited(query, options, &limits, sink)
    }

    pub(super) fn emit_limited(
        &mut self,
        query: &BoundQuery,
        options: QueryOptions,
        limits: &Limits,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let around = self.stops_early;
        self.stops_early |= limits.limit.is_some();
        let result = self.emit_rows(query, options, limits, sink);
        self.stops_early = around;
        result
    }

    fn emit_rows(
        &mut self,
        query: &BoundQuery,
        options: QueryOptions,
        limits: &Limits,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        match &query.body {
            Body::Select(select) => self.emit_select(query, select, options, limits, sink),
            Body::Values(rows) if rows.len() == 1 => {
                self.start_limits(limits);
                self.within_limits(limits, self.depth, &mut |compiler| {
                    let row = compiler.emit_all(&rows[0])?;
                    let row: Vec<Reg> = row.into_iter().map(|typed| typed.register).collect();
                    sink(compiler, &row)
                })
            }
            Body::Values(rows) => {
                let buffer = self.builder.buffer(query.columns.len());
                self.builder.push(Step::BufferClear { buffer });
                for row in rows {
                    let row = self.emit_all(row)?;
                    let row = row.into_iter().map(|typed| typed.register).collect();
                    self.builder.push(Step::BufferPush { buffer, row });
                }
                self.emit_buffer(query, buffer, limits, sink)
            }
            Body::Windowed(windowed) => {
                self.start_limits(limits);
                let outside = self.depth;
                self.emit_windowed(windowed, &mut |compiler, row| {
                    compiler.within_limits(limits, outside, &mut |compiler| sink(compiler, row))
                })
            }
            Body::Recursive(recursive) => self.emit_recursive(recursive, sink),
            Body::Set {
                operation,
                left,
                right,
                all,
            } => {
                let buffer = self.emit_set(*operation, left, right, *all)?;
                self.emit_buffer(query, buffer, limits, sink)
            }
        }
    }

    /// Sorts a buffer whose first columns are the query's outputs, if the query has an order over
    /// them, and hands out its rows.
    fn emit_buffer(
        &mut self,
        query: &BoundQuery,
        buffer: BufferId,
        limits: &Limits,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let mut by = Vec::with_capacity(query.order.len());
        for key in &query.order {
            let Kind::Slot(column) = key.bound.kind else {
                continue;
            };
            by.push(sort_key(column, key)?);
        }
        self.sort(buffer, by);
        let types: Vec<DataType> = query
            .columns
            .iter()
            .map(|column| column.data_type.clone())
            .collect();
        self.emit_buffer_rows(buffer, &types, limits, sink)
    }

    pub(super) fn sort(&mut self, buffer: BufferId, by: Vec<SortKey>) {
        if !by.is_empty() {
            self.builder.push(Step::BufferSort {
                buffer,
                by: by.into(),
            });
        }
    }

    /// A loop over a buffer whose columns have these types, within the limits.
    pub(super) fn emit_buffer_rows(
        &mut self,
        buffer: BufferId,
        types: &[DataType],
        limits: &Limits,
        sink: &mut dyn FnMut(&mut Self, &[Reg]) -> Result<()>,
    ) -> Result<()> {
        let outside = self.depth;
        let row: Vec<Reg> = types
            .iter()
            .map(|data_type| self.builder.register(data_type.clone()))
            .collect();
        self.start_limits(limits);
        self.open_ir_loop();
        let result = self.within_limits(limits, outside, &mut |compiler| sink(compiler, &row));
        let body = self.close_ir_loop();
        self.builder.push(Step::ForBuffer {
            buffer,
            matching: Box::default(),
            row: row.into(),
            body,
        });
        result
    }

    /// A SELECT of all columns of a bound query.
    pub(super) fn select_from(&mut self, inner: BoundQuery) -> Result<Select> {
        let source = self.add_derived_source("", &inner.columns, None);
        let outputs = inner
            .columns
            .iter()
            .enumerate()
            .map(|(column, meta)| {
                let column = column as u16;
                Bound::new(
                    Kind::Column { source, column },
                    meta.data_type.clone(),
                    None,
                )
            })
            .collect();
        Ok(Select::over(
            source,
            ItemKind::Derived(Box::new(inner)),
            outputs,
        ))
    }
}

pub(super) fn bare_query() -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Values(sqlparser::ast::Values {
            explicit_row: false,
            value_keyword: false,
            rows: Vec::new(),
        })),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// What happens to each row that RETURNING gives back. It is called once, where the registers of
/// one row are ready. The statement may still be at work then: a sink that writes to tables or
/// leaves early must collect the rows first.
pub type Sink<'s, 'a> = &'s mut dyn FnMut(&mut Compiler<'a>, &[OutputColumn]) -> Result<()>;

pub(super) fn changes(body: &SetExpr) -> bool {
    matches!(
        body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

/// Whether a query of a WITH changes data.
pub(super) fn changes_data(with: &ast::With) -> bool {
    with.cte_tables.iter().any(|cte| changes(&cte.query.body))
}
