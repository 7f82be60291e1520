//! Binding FROM: tables, subqueries, functions, and how they are joined.

use kiln_engine::Privilege;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::Comparison;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast::{Expr, JoinConstraint, JoinOperator, TableAlias, TableFactor, TableWithJoins};

use super::bound::{Bound, Kind};
use super::query::{Body, BoundQuery, ColumnMeta};
use super::scope::{AggregatePolicy, Level, Source, SourceId};
use super::select::{FromItem, ItemKind, Select, conjuncts};
use super::table_function::function_arguments;
use super::{
    Compiler, Position, fail, name_of, object_name, operators, position_of, relation_name,
    unsupported,
};
use crate::catalog::Relation;

/// What FROM has given so far.
#[derive(Default)]
pub(super) struct FromScope {
    pub items: Vec<FromItem>,
    pub filters: Vec<Bound>,
    /// In the order in which `*` lists them.
    pub sources: Vec<SourceId>,
    /// The columns that USING merged, which `*` lists first.
    pub merged: Vec<(SourceId, usize)>,
}

impl Compiler<'_> {
    pub(super) fn bind_from(&mut self, from: &[TableWithJoins]) -> Result<FromScope> {
        let mut scope = FromScope::default();
        for joined in from {
            self.bind_joined(joined, &mut scope)?;
        }
        Ok(scope)
    }

    fn bind_joined(&mut self, joined: &TableWithJoins, scope: &mut FromScope) -> Result<()> {
        let first_source = scope.sources.len();
        let first_item = scope.items.len();
        self.bind_factor(&joined.relation, scope)?;
        for join in &joined.joins {
            let position = position_of(&join.relation);
            if join.global {
                return Err(unsupported("GLOBAL joins", position));
            }
            let (constraint, side) = match &join.join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
                    (constraint, Side::Inner)
                }
                JoinOperator::CrossJoin(constraint) => (constraint, Side::Inner),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                    (constraint, Side::Left)
                }
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                    (constraint, Side::Right)
                }
                JoinOperator::FullOuter(_) => {
                    return Err(unsupported("FULL JOIN", position));
                }
                _ => return Err(unsupported("this kind of join", position)),
            };
            let middle = scope.sources.len();
            let items_before = scope.items.len();
            self.bind_factor(&join.relation, scope)?;
            let mut on = Vec::new();
            match constraint {
                JoinConstraint::On(expr) => {
                    self.levels.push(Level {
                        sources: scope.sources[first_source..].to_vec(),
                        aggregates: AggregatePolicy::Refused("JOIN conditions"),
                    });
                    let bound = self.bind_condition(expr, "JOIN/ON");
                    self.levels.pop();
                    conjuncts(bound?, &mut on);
                }
                JoinConstraint::Using(names) => {
                    for name in names {
                        let position = position_of(name);
                        let name = object_name(name)?;
                        self.merge(&name, first_source, middle, side, scope, &mut on, position)?;
                    }
                }
                JoinConstraint::Natural => {
                    let names = self.common_columns(scope, first_source, middle);
                    for name in names {
                        self.merge(&name, first_source, middle, side, scope, &mut on, position)?;
                    }
                }
                JoinConstraint::None => {}
            }
            match side {
                Side::Inner => scope.filters.append(&mut on),
                Side::Left => {
                    if scope.items.len() != items_before + 1
                        || scope.items[items_before].left.is_some()
                    {
                        return Err(unsupported(
                            "a LEFT JOIN with a join on its right",
                            position,
                        ));
                    }
                    scope.items[items_before].left = Some(on);
                    self.source_mut(scope.sources[middle]).nullable = true;
                }
                Side::Right => {
                    let left_is_one = items_before == first_item + 1
                        && scope.items[first_item].left.is_none()
                        && scope.items.len() == items_before + 1;
                    if !left_is_one {
                        return Err(unsupported(
                            "a RIGHT JOIN with a join on its left",
                            position,
                        ));
                    }
                    // `a RIGHT JOIN b` is `b LEFT JOIN a`.
                    scope.items.swap(first_item, items_before);
                    scope.items[items_before].left = Some(on);
                    self.source_mut(scope.sources[first_source]).nullable = true;
                }
            }
        }
        Ok(())
    }

    fn common_columns(&self, scope: &FromScope, first: usize, middle: usize) -> Vec<String> {
        let names = |sources: &[SourceId]| -> Vec<String> {
            sources
                .iter()
                .flat_map(|id| {
                    let source = self.source(*id);
                    source.columns[..source.visible]
                        .iter()
                        .map(|(name, _)| name.clone())
                })
                .collect()
        };
        let right = names(&scope.sources[middle..]);
        let mut common: Vec<String> = Vec::new();
        for name in names(&scope.sources[first..middle]) {
            if right.contains(&name) && !common.contains(&name) {
                common.push(name);
            }
        }
        common
    }

    /// One column of USING.
    #[expect(
        clippy::too_many_arguments,
        reason = "where the two sides are, and what to add to"
    )]
    fn merge(
        &mut self,
        name: &str,
        first: usize,
        middle: usize,
        side: Side,
        scope: &mut FromScope,
        on: &mut Vec<Bound>,
        position: Position,
    ) -> Result<()> {
        let left = self.using_column(&scope.sources[first..middle], name, "left", position)?;
        let right = self.using_column(&scope.sources[middle..], name, "right", position)?;
        let column = |compiler: &Self, (source, column): (SourceId, usize)| {
            let data_type = compiler.source(source).columns[column].1.clone();
            let kind = Kind::Column {
                source,
                column: column as u16,
            };
            Bound::new(kind, data_type, position)
        };
        let (one, other) = (column(self, left), column(self, right));
        on.push(operators::compare(Comparison::Equal, one, other, position)?);
        let (shown, hidden) = if side == Side::Right {
            (right, left)
        } else {
            (left, right)
        };
        self.source_mut(hidden.0).merged.push(hidden.1);
        if !scope.merged.contains(&shown) {
            scope.merged.retain(|known| *known != hidden);
            scope.merged.push(shown);
        }
        Ok(())
    }

    fn using_column(
        &self,
        sources: &[SourceId],
        name: &str,
        side: &str,
        position: Position,
    ) -> Result<(SourceId, usize)> {
        let mut found = None;
        for id in sources {
            let source = self.source(*id);
            for (index, (known, _)) in source.columns[..source.visible].iter().enumerate() {
                if known == name && !source.merged.contains(&index) {
                    if found.is_some() {
                        return Err(fail(
                            SqlState::AMBIGUOUS_COLUMN,
                            format!(
                                "common column name \"{name}\" appears more than once in {side} \
                                 table"
                            ),
                            position,
                        ));
                    }
                    found = Some((*id, index));
                }
            }
        }
        found.ok_or_else(|| {
            fail(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{name}\" specified in USING clause does not exist in {side} table"
                ),
                position,
            )
        })
    }

    fn bind_factor(&mut self, factor: &TableFactor, scope: &mut FromScope) -> Result<()> {
        let position = position_of(factor);
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                if !with_hints.is_empty()
                    || version.is_some()
                    || *with_ordinality
                    || !partitions.is_empty()
                    || json_path.is_some()
                    || sample.is_some()
                    || !index_hints.is_empty()
                {
                    return Err(unsupported("this form of a table in FROM", position));
                }
                if let Some(args) = args {
                    let table_name = object_name(name)?;
                    let exprs = function_arguments(&args.args, position)?;
                    return self.bind_table_function(
                        &table_name,
                        &exprs,
                        alias.as_ref(),
                        scope,
                        position,
                    );
                }
                if let Some(relation) = self.system_relation(name)? {
                    return self.bind_relation(relation, alias.as_ref(), scope, position);
                }
                let table_name = relation_name(name)?;
                let alias_name = alias
                    .as_ref()
                    .map_or_else(|| table_name.clone(), |alias| name_of(&alias.name));
                if let Some((reference, columns)) = self.with_query(&table_name) {
                    let kind = ItemKind::With(reference);
                    let alias = alias.as_ref();
                    return self.add_derived(kind, &columns, &alias_name, alias, scope, position);
                }
                let table = self.table_for(Privilege::Select, &table_name, position)?;
                self.check_alias(&alias_name, scope, position)?;
                let source = self.add_table_source(&table, &alias_name, position);
                self.rename_columns(source, alias.as_ref(), position)?;
                scope.sources.push(source);
                scope.items.push(FromItem {
                    source,
                    kind: ItemKind::Table(table),
                    left: None,
                });
                Ok(())
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample,
            } => {
                if *lateral {
                    return Err(unsupported("LATERAL", position));
                }
                if sample.is_some() {
                    return Err(unsupported("TABLESAMPLE", position));
                }
                let Some(alias) = alias else {
                    return Err(fail(
                        SqlState::SYNTAX_ERROR,
                        "subquery in FROM must have an alias",
                        position,
                    )
                    .with_hint("For example, FROM (SELECT ...) [AS] foo."));
                };
                let mut bound = self.bind_query(subquery)?;
                bound.decide_outputs()?;
                let columns = bound.columns.clone();
                let kind = ItemKind::Derived(Box::new(bound));
                let name = name_of(&alias.name);
                self.add_derived(kind, &columns, &name, Some(alias), scope, position)
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            } => {
                let exprs: Vec<_> = array_exprs.iter().map(|expr| (None, expr)).collect();
                self.bind_table_function("unnest", &exprs, alias.as_ref(), scope, position)
            }
            TableFactor::Function {
                lateral: _,
                name,
                args,
                with_ordinality: false,
                alias,
            } => {
                let exprs = function_arguments(args, position)?;
                let name = object_name(name)?;
                self.bind_table_function(&name, &exprs, alias.as_ref(), scope, position)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.bind_joined(table_with_joins, scope),
            _ => Err(unsupported("this source of rows in FROM", position)),
        }
    }

    fn bind_relation(
        &mut self,
        relation: &'static Relation,
        alias: Option<&TableAlias>,
        scope: &mut FromScope,
        position: Position,
    ) -> Result<()> {
        let columns = relation.columns.iter().map(|column| ColumnMeta {
            name: column.name.to_owned(),
            data_type: column.data_type.clone(),
            origin: None,
        });
        let columns: Vec<ColumnMeta> = columns.collect();
        let session = self.session_of(relation, position)?;
        let name = alias.map_or_else(|| relation.name.to_owned(), |alias| name_of(&alias.name));
        let kind = ItemKind::Catalog(relation, session);
        self.add_derived(kind, &columns, &name, alias, scope, position)
    }

    pub(super) fn check_alias(
        &self,
        name: &str,
        scope: &FromScope,
        position: Position,
    ) -> Result<()> {
        if scope
            .sources
            .iter()
            .any(|source| self.source(*source).name == name)
        {
            return Err(fail(
                SqlState::DUPLICATE_ALIAS,
                format!("table name \"{name}\" specified more than once"),
                position,
            ));
        }
        Ok(())
    }

    fn add_derived(
        &mut self,
        kind: ItemKind,
        columns: &[ColumnMeta],
        name: &str,
        alias: Option<&TableAlias>,
        scope: &mut FromScope,
        position: Position,
    ) -> Result<()> {
        self.check_alias(name, scope, position)?;
        let source = self.add_derived_source(name, columns, position);
        self.rename_columns(source, alias, position)?;
        scope.sources.push(source);
        scope.items.push(FromItem {
            source,
            kind,
            left: None,
        });
        Ok(())
    }

    pub(super) fn add_table_source(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        position: Position,
    ) -> SourceId {
        let columns: Vec<(String, DataType)> = table
            .schema()
            .columns
            .iter()
            .map(|column| (column.name.clone(), column.data_type.clone()))
            .collect();
        self.add_source(Source {
            name: name.to_owned(),
            visible: columns.len(),
            columns,
            table: Some(table.clone()),
            record: None,
            position,
            merged: Vec::new(),
            nullable: false,
        })
    }

    pub(super) fn add_derived_source(
        &mut self,
        name: &str,
        columns: &[ColumnMeta],
        position: Position,
    ) -> SourceId {
        self.add_source(Source {
            name: name.to_owned(),
            columns: columns
                .iter()
                .map(|column| (column.name.clone(), column.data_type.clone()))
                .collect(),
            table: None,
            record: None,
            position,
            merged: Vec::new(),
            visible: columns.len(),
            nullable: true,
        })
    }

    pub(super) fn rename_columns(
        &mut self,
        source: SourceId,
        alias: Option<&TableAlias>,
        position: Position,
    ) -> Result<()> {
        let Some(alias) = alias else { return Ok(()) };
        if alias.at.is_some() {
            return Err(unsupported("this form of an alias", position));
        }
        let name = name_of(&alias.name);
        let available = self.source(source).columns.len();
        if alias.columns.len() > available {
            return Err(too_many_columns(
                &name,
                available,
                alias.columns.len(),
                position,
            ));
        }
        for (index, column) in alias.columns.iter().enumerate() {
            if column.data_type.is_some() {
                return Err(unsupported("a type in an alias", position));
            }
            self.source_mut(source).columns[index].0 = name_of(&column.name);
        }
        Ok(())
    }

    /// The query that finds the rows of an UPDATE or DELETE, and the target among its sources.
    pub(super) fn bind_target(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        from: &[TableWithJoins],
        selection: Option<&Expr>,
        position: Position,
    ) -> Result<(BoundQuery, SourceId)> {
        let target = self.add_table_source(table, alias, position);
        let mut scope = FromScope::default();
        scope.sources.push(target);
        scope.items.push(FromItem {
            source: target,
            kind: ItemKind::Table(table.clone()),
            left: None,
        });
        for joined in from {
            self.bind_joined(joined, &mut scope)?;
        }
        let mut filters = scope.filters;
        if let Some(selection) = selection {
            self.levels.push(Level {
                sources: scope.sources.clone(),
                aggregates: AggregatePolicy::Refused("WHERE"),
            });
            let bound = self.bind_condition(selection, "WHERE");
            self.levels.pop();
            conjuncts(bound?, &mut filters);
        }
        let select = Select {
            items: scope.items,
            filters,
            outputs: Vec::new(),
            open_outputs: Vec::new(),
            distinct: false,
            grouping: None,
        };
        let query = BoundQuery {
            with: Vec::new(),
            body: Body::Select(Box::new(select)),
            columns: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: None,
        };
        Ok((query, target))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Inner,
    Left,
    Right,
}

pub(super) fn rename(
    columns: &mut [ColumnMeta],
    names: &[String],
    table: &str,
    position: Position,
) -> Result<()> {
    if names.len() > columns.len() {
        return Err(too_many_columns(
            table,
            columns.len(),
            names.len(),
            position,
        ));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
    Ok(())
}

#[cold]
fn too_many_columns(
    table: &str,
    available: usize,
    given: usize,
    position: Position,
) -> kiln_storage::error::Error {
    fail(
        SqlState::INVALID_COLUMN_REFERENCE,
        format!(
            "table \"{table}\" has {available} columns available but {given} columns specified"
        ),
        position,
    )
}
