//! INSERT, UPDATE, DELETE and MERGE.
//!
//! Each statement becomes steps that run once for each row: compute the new values (converted as
//! an assignment converts), check NOT NULL and CHECK, write, check references, count, and hand the
//! RETURNING columns to a sink. That is PostgreSQL's order, so that of several violations the same
//! one is reported. A record is read in one step and written in one.
//!
//! What a statement writes must not change which rows it finds. Where it could (an update of an
//! indexed column, a subquery on the changed table) rows, or rows with their new values, are
//! collected first.
//!
//! | module | holds |
//! |---|---|
//! | `insert`, `conflict` | INSERT, ON CONFLICT |
//! | `update` | UPDATE, DELETE, and the change of one row |
//! | `merge` | MERGE |
//! | `generated` | generated columns of the row |
//! | `constraints` | NOT NULL and CHECK, with the row in the message |
//! | `references` | REFERENCES, from either side |
//! | `actions` | the end of a statement: referential actions (CASCADE, SET NULL and so on), AFTER triggers |
//! | `triggers` | which triggers fire, and BEFORE triggers |
//! | `target` | what a statement changes: a table, also by way of a view |
//! | `single` | programs that write one row from Rust |

mod actions;
mod assign;
mod conflict;
mod constraints;
mod deferred;
mod generated;
mod insert;
mod merge;
mod references;
mod single;
mod target;
mod triggers;
mod update;

pub(super) use actions::Following;
pub(super) use deferred::Waiting;
pub use deferred::deferred_check_program;
pub use single::{delete_program, insert_program, update_program};
pub(crate) use target::{Updatability, updatability};

use kiln_engine::SearchPath;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Arithmetic, Instruction, Reg, Step, Width};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{Column, ColumnId};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, ObjectName, SelectItem, SelectItemQualifiedWildcardKind};

use super::bound::{Bound, ColumnMeta, SourceId};
use super::coerce::{CastContext, cast_context, coerce};
use super::domain::domain_of;
pub(in crate::compile) use super::expression::stored_expression;
use super::names::figure_name;
use super::query::{OutputColumn, Sink};
use super::{Compiler, fail, name_of, position_of, row_name, unsupported};
use target::Target;

/// The sink once more: its turn comes in a closure that may be called several times.
fn again<'s, 'a>(sink: &'s mut Option<Sink<'_, 'a>>) -> Option<Sink<'s, 'a>> {
    match sink {
        Some(sink) => Some(&mut **sink),
        None => None,
    }
}

/// A RETURNING list, bound.
struct Returning {
    columns: Vec<(ColumnMeta, Bound)>,
}

impl Returning {
    fn metas(&self) -> Vec<ColumnMeta> {
        self.columns.iter().map(|(meta, _)| meta.clone()).collect()
    }
}

impl<'a> Compiler<'a> {
    /// Sets the statement's counter to zero.
    fn start_counting(&mut self, counter: Option<Reg>) {
        if let Some(target) = counter {
            let source = self.builder.constant(DataType::BigInt, Value::BigInt(0));
            self.builder.scalar(Instruction::Move { target, source });
        }
    }

    /// Counts one row.
    fn count_row(&mut self, counter: Option<Reg>) {
        if let Some(target) = counter {
            let right = self.builder.constant(DataType::BigInt, Value::BigInt(1));
            self.builder.scalar(Instruction::Integer {
                op: Arithmetic::Add,
                width: Width::Eight,
                target,
                left: target,
                right,
            });
        }
    }

    /// Binds a RETURNING list over the rows in scope, of which `*` means those of `wildcard`.
    fn bind_returning(
        &mut self,
        items: Option<&[SelectItem]>,
        wildcard: &[SourceId],
    ) -> Result<Returning> {
        let mut columns = Vec::new();
        let mut push = |name: String, bound: Bound| columns.push((name, bound));
        for item in items.unwrap_or_default() {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    push(figure_name(expr), self.bind_expected(expr, None)?);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    push(name_of(alias), self.bind_expected(expr, None)?);
                }
                SelectItem::Wildcard(_) => {
                    for source in wildcard {
                        for column in self.columns_of_row(*source) {
                            push(column.name, column.bound);
                        }
                    }
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let row = row_name(name)?;
                    let known = wildcard.iter().find(|id| self.source(**id).name == row);
                    let source = known.ok_or_else(|| {
                        fail(
                            SqlState::UNDEFINED_TABLE,
                            format!("missing FROM-clause entry for table \"{row}\""),
                            position_of(name),
                        )
                    })?;
                    for column in self.columns_of_row(*source) {
                        push(column.name, column.bound);
                    }
                }
                _ => return Err(unsupported("this form of output", position_of(item))),
            }
        }
        if columns.is_empty() && items.is_some() {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "RETURNING must have at least one column",
                None,
            ));
        }
        let columns = columns.into_iter().map(|(name, bound)| {
            let meta = ColumnMeta {
                name,
                data_type: bound.data_type.clone(),
                origin: self.origin_of(&bound),
            };
            (meta, bound)
        });
        Ok(Returning {
            columns: columns.collect(),
        })
    }

    /// Computes a RETURNING list.
    fn emit_returning(&mut self, returning: &Returning) -> Result<Vec<OutputColumn>> {
        let bounds: Vec<Bound> = returning
            .columns
            .iter()
            .map(|(_, bound)| bound.clone())
            .collect();
        let values = self.emit_all(&bounds)?;
        let columns = returning.columns.iter().zip(values);
        Ok(columns
            .map(|((meta, _), value)| OutputColumn {
                name: meta.name.clone(),
                data_type: meta.data_type.clone(),
                register: value.register,
            })
            .collect())
    }

    /// Calls the sink with no row of the statement in scope.
    fn call_sink(&mut self, sink: Sink<'_, 'a>, columns: &[OutputColumn]) -> Result<()> {
        let hidden = std::mem::take(&mut self.levels);
        let result = self.outside_statement(|compiler| sink(compiler, columns));
        self.levels = hidden;
        result
    }

    /// Runs `body` where neither variables nor rows nor parameters can be named: the text of a
    /// DEFAULT or CHECK means the same wherever its table is changed.
    pub(super) fn isolated<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // Its parameters may be of one row of the statement around it.
        self.without_names(|compiler| compiler.outside_statement(body))
    }

    /// Binds what can name nothing of what is around it.
    pub(in super::super) fn without_names<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let variables = std::mem::take(&mut self.variables);
        let levels = std::mem::take(&mut self.levels);
        let positional = std::mem::take(&mut self.positional);
        let with_names = std::mem::take(&mut self.with_names);
        let result = bind(self);
        self.variables = variables;
        self.levels = levels;
        self.positional = positional;
        self.with_names = with_names;
        result
    }

    /// Binds an expression of a table over its row `source`, which it may call by the table's name,
    /// whatever the statement does. It can name nothing else.
    fn named_as_table<T>(
        &mut self,
        table: &Table,
        source: SourceId,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let name = name_in_schema(&table.schema().name).to_owned();
        let alias = std::mem::replace(&mut self.source_mut(source).name, name);
        let bound = self.isolated(|compiler| {
            compiler.push_rows(&[source]);
            bind(compiler)
        });
        self.source_mut(source).name = alias;
        bound
    }

    /// Binds the value that `column` has when a statement gives none.
    pub(super) fn bind_default(&mut self, column: &Column) -> Result<Bound> {
        let domain = domain_of(column, self.catalog)?;
        let of_domain = domain.as_ref().and_then(|domain| domain.default.as_ref());
        match column.default.as_ref().or(of_domain) {
            None => {
                let null = Bound::null(column.data_type.clone(), None);
                self.of_column(null, column)
            }
            Some(text) => {
                let expr = stored_expression(text)?;
                self.along(&SearchPath::default(), |compiler| {
                    compiler.isolated(|compiler| {
                        let bound = compiler.bind(&expr)?;
                        compiler.for_column(bound, column, "default expression")
                    })
                })
            }
        }
    }

    /// The column that a target means, which may name a part of it behind its name, for a statement
    /// that is `doing` something with it.
    fn target_column_of(
        &self,
        target: &Target,
        name: &ObjectName,
        doing: &str,
    ) -> Result<ColumnId> {
        let position = position_of(name);
        match name.0.as_slice() {
            [part] => match part.as_ident() {
                Some(ident) => target.column(ident, doing),
                None => Err(unsupported("a function as a column's name", position)),
            },
            [part, ..] => match part.as_ident() {
                // PostgreSQL takes `t.v` for a field of a column called t.
                Some(ident) => target.column(ident, doing).map_err(|error| {
                    error
                        .with_hint("SET target columns cannot be qualified with the relation name.")
                }),
                None => Err(unsupported("a function as a column's name", position)),
            },
            [] => Err(unsupported("a nameless column", position)),
        }
    }

    /// Whether a part of a statement may have a subquery that reads `table`, also by way of a view.
    /// It looks at the text, so that it also says yes to some that do not: those rows are collected
    /// without need.
    fn may_read(&self, parts: &[String], table: &Table) -> bool {
        let name = &table.schema().name;
        let mut names = vec![name_in_schema(name).to_lowercase()];
        let has_query = |text: &str| text.contains("select") || text.contains("table");
        let texts = parts.iter().map(|part| part.to_lowercase());
        let texts: Vec<String> = texts.filter(|text| has_query(text)).collect();
        if texts.is_empty() {
            return false;
        }
        let views = self.catalog.views_over(name).into_iter();
        names.extend(views.map(|view| name_in_schema(&view).to_lowercase()));
        let mut texts = texts.iter();
        texts.any(|text| names.iter().any(|name| text.contains(name)))
    }

    /// All columns of `table` that are in registers as `values`, as a row called `alias`.
    fn declare_new_row(&mut self, table: &Table, alias: &str, values: &[Reg]) -> SourceId {
        let columns = table.schema().columns.iter().zip(values);
        let columns: Vec<(String, DataType, Reg)> = columns
            .map(|(column, register)| (column.name.clone(), column.data_type.clone(), *register))
            .collect();
        let source = self.declare_register_row(alias, &columns, None);
        let visible = values.len().min(table.schema().shown().len());
        self.source_mut(source).visible = visible;
        source
    }

    /// Runs the steps that `body` appends when `condition` is not TRUE.
    fn unless(&mut self, condition: Reg, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.open();
        let result = body(self);
        let otherwise = self.close();
        self.builder.push(Step::If {
            condition,
            then: Vec::new(),
            otherwise,
        });
        result
    }

    /// Runs the steps that `body` appends when `condition` is TRUE.
    fn when(&mut self, condition: Reg, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.open();
        let result = body(self);
        let then = self.close();
        self.builder.push(Step::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
        result
    }
}

impl Compiler<'_> {
    /// A value for `column`, converted as an assignment does it, and checked where the column is of
    /// a domain; `what` is what messages call it.
    pub(super) fn for_column(&self, bound: Bound, column: &Column, what: &str) -> Result<Bound> {
        self.of_column(converted(bound, column, what)?, column)
    }
}

/// Converts a value as an assignment to `column` does; `what` is what the message calls it.
pub(super) fn converted(bound: Bound, column: &Column, what: &str) -> Result<Bound> {
    let target = &column.data_type;
    let convertible = bound.is_unknown()
        || bound.data_type == *target
        || cast_context(&bound.data_type, target)
            .is_some_and(|context| context <= CastContext::Assignment);
    if !convertible {
        return Err(fail(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "column \"{}\" is of type {} but {what} is of type {}",
                column.name,
                column.domain.as_deref().unwrap_or(target.base_name()),
                bound.data_type.base_name()
            ),
            bound.position,
        )
        .with_hint("You will need to rewrite or cast the expression."));
    }
    coerce(bound, target, CastContext::Assignment)
}

/// Whether `expr` is the word DEFAULT in the place of a value.
fn is_default(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Identifier(ident)
            if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default")
    )
}

/// A name in double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Names joined by commas.
fn names(table: &Table, columns: &[ColumnId]) -> String {
    let columns = columns
        .iter()
        .map(|id| table.schema().columns[id.index()].name.as_str());
    columns.collect::<Vec<_>>().join(", ")
}

/// The columns of `table` that statements can name.
fn shown_columns(table: &Table) -> impl Iterator<Item = ColumnId> + use<> {
    (0..table.schema().shown().len() as u16).map(ColumnId)
}

/// The columns of `table`, all of them, those that hold keys of indexes included.
fn all_columns(table: &Arc<Table>) -> impl Iterator<Item = ColumnId> + use<> {
    (0..table.schema().columns.len() as u16).map(ColumnId)
}
