//! Binding FROM: tables, subqueries, functions, and how they are joined.
//!
//! A join of inner joins is a flat list of items and conditions, whose order the planner chooses,
//! and so is the left side of LEFT JOIN. The side of an outer join that gives NULLs has to be one
//! item: a join there becomes one (`join`), as do the two sides of FULL JOIN.

use kiln_engine::Privilege;
use kiln_platform::sync::Arc;
use kiln_procedure::ir::Comparison;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::table::Table;
use kiln_storage::types::DataType;
use sqlparser::ast;
use sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, TableAlias, TableFactor, TableWithJoins,
};

use super::bound::{
    Body, Bound, BoundQuery, ColumnMeta, FromItem, ItemKind, Kind, Select, SourceId, conjuncts,
};
use super::category::common_type;
use super::coerce::{CastContext, coalesce, coerce};
use super::rows::TargetView;
use super::scope::{AggregatePolicy, Level, NamedColumn, Source};
use super::{
    Compiler, Position, fail, name_of, object_name, operators, position_of, relation_name,
    routine_name, row_name, unsupported,
};
use crate::catalog::Relation;
use crate::parse::{is_rows_from, using_alias};

/// What a FROM, or a part of it, gives.
#[derive(Default)]
pub(super) struct FromScope {
    pub items: Vec<FromItem>,
    pub filters: Vec<Bound>,
    /// The rows by which columns can be named.
    pub sources: Vec<SourceId>,
    /// What can be named without them, in the order in which `*` lists it.
    pub columns: Vec<NamedColumn>,
}

impl FromScope {
    /// The scope as the innermost level of names.
    pub(super) fn level(&self, aggregates: AggregatePolicy) -> Level {
        Level {
            number: 0,
            sources: self.sources.clone(),
            columns: self.columns.iter().cloned().collect(),
            aggregates,
            is_barred: false,
        }
    }

    /// The source of the only item, if an outer join can give NULLs for it as it stands.
    fn only_source(&self) -> Option<SourceId> {
        match self.items.as_slice() {
            [item] if item.left.is_none() && self.filters.is_empty() => Some(item.source),
            _ => None,
        }
    }

    /// Adds what stands behind it, without its names.
    fn take_rows(&mut self, other: &mut FromScope) {
        self.items.append(&mut other.items);
        self.filters.append(&mut other.filters);
    }

    fn take_names(&mut self, other: &mut FromScope) {
        self.sources.append(&mut other.sources);
        self.columns.append(&mut other.columns);
    }
}

impl Compiler<'_> {
    pub(super) fn bind_from(&mut self, from: &[TableWithJoins]) -> Result<FromScope> {
        self.bind_from_after(FromScope::default(), from)
    }

    /// Binds what stands behind `scope` in FROM.
    fn bind_from_after(
        &mut self,
        mut scope: FromScope,
        from: &[TableWithJoins],
    ) -> Result<FromScope> {
        for joined in from {
            let around = [scope.level(LATERAL)];
            let mut next = self.bind_joined(joined, &around)?;
            self.check_names(&scope, &next)?;
            scope.take_rows(&mut next);
            scope.take_names(&mut next);
        }
        Ok(scope)
    }

    /// Binds a join. What is LATERAL in it may name the rows of `around`.
    fn bind_joined(&mut self, joined: &TableWithJoins, around: &[Level]) -> Result<FromScope> {
        let mut scope = self.bind_factor(&joined.relation, around)?;
        for join in &joined.joins {
            scope = self.bind_join(scope, join, around)?;
        }
        Ok(scope)
    }

    fn bind_join(
        &mut self,
        mut left: FromScope,
        join: &Join,
        around: &[Level],
    ) -> Result<FromScope> {
        let position = position_of(&join.relation);
        if join.global {
            return Err(unsupported("GLOBAL joins", position));
        }
        let (constraint, side) = side_of(&join.join_operator, position)?;
        let mut right = match &join.relation {
            TableFactor::Table { args: None, .. } => self.bind_factor(&join.relation, &[])?,
            factor => {
                let mut before = left.level(LATERAL);
                before.is_barred = matches!(side, Side::Right | Side::Full);
                let around: Vec<Level> = around.iter().cloned().chain([before]).collect();
                self.bind_factor(factor, &around)?
            }
        };
        self.check_names(&left, &right)?;
        if matches!(side, Side::Right | Side::Full) && !self.can_be_null(&left) {
            left = self.one_item(left);
        }
        if matches!(side, Side::Left | Side::Full) && !self.can_be_null(&right) {
            right = self.one_item(right);
        }
        let (on, columns) = self.bind_constraint(constraint, &left, &right, side)?;
        let mut joined = FromScope::default();
        match side {
            Side::Inner => {
                joined.take_rows(&mut left);
                joined.take_rows(&mut right);
                joined.filters.extend(on);
            }
            Side::Left => {
                self.set_outer(&mut right, on);
                joined.take_rows(&mut left);
                joined.take_rows(&mut right);
            }
            // `a RIGHT JOIN b` is `b LEFT JOIN a`.
            Side::Right => {
                self.set_outer(&mut left, on);
                joined.take_rows(&mut right);
                joined.take_rows(&mut left);
            }
            Side::Full => {
                joined = self.full_join(left, right, on, columns)?;
                return self.named_using(joined, constraint, position);
            }
        }
        joined.take_names(&mut left);
        joined.take_names(&mut right);
        joined.columns = columns;
        self.named_using(joined, constraint, position)
    }

    /// Gives the columns that USING merges the name that stands behind it, if one does.
    fn named_using(
        &mut self,
        mut joined: FromScope,
        constraint: &JoinConstraint,
        position: Position,
    ) -> Result<FromScope> {
        let JoinConstraint::Using(names) = constraint else {
            return Ok(joined);
        };
        let Some(alias) = names.last().and_then(using_alias) else {
            return Ok(joined);
        };
        let name = name_of(alias);
        if joined
            .sources
            .iter()
            .any(|it| self.source(*it).name == name)
        {
            let message = format!("table name \"{name}\" specified more than once");
            return Err(fail(SqlState::DUPLICATE_ALIAS, message, position));
        }
        let merged = &joined.columns[..names.len() - 1];
        let types = merged
            .iter()
            .map(|it| (it.name.clone(), it.bound.data_type.clone()));
        let types: Vec<(String, DataType)> = types.collect();
        let shown = merged.iter().map(|it| it.bound.clone()).collect();
        let source = self.add_source(Source::showing(&name, &types, shown, position));
        joined.sources.push(source);
        Ok(joined)
    }

    /// Whether NULLs for the only item of `scope` make all that it shows NULL.
    fn can_be_null(&self, scope: &FromScope) -> bool {
        let shows_columns = |source: &SourceId| {
            let shown = self.source(*source).shown.iter().flat_map(|them| &**them);
            shown
                .into_iter()
                .all(|bound| matches!(bound.kind, Kind::Column { .. }))
        };
        scope.only_source().is_some() && scope.sources.iter().all(shows_columns)
    }

    /// Makes the only item of `scope` the side of an outer join that gives NULLs.
    fn set_outer(&mut self, scope: &mut FromScope, on: Vec<Bound>) {
        for item in &mut scope.items {
            item.left = Some(on.clone());
            self.source_mut(item.source).nullable = true;
            self.source_mut(item.source).may_miss = true;
        }
        for source in &scope.sources {
            self.source_mut(*source).may_miss = true;
        }
    }

    /// The conditions of a join, and what can be named of it without a table.
    fn bind_constraint(
        &mut self,
        constraint: &JoinConstraint,
        left: &FromScope,
        right: &FromScope,
        side: Side,
    ) -> Result<(Vec<Bound>, Vec<NamedColumn>)> {
        let names = match constraint {
            JoinConstraint::On(expr) => {
                let mut level = left.level(AggregatePolicy::Refused("JOIN conditions"));
                level.sources.extend(&right.sources);
                let columns = left.columns.iter().chain(&right.columns).cloned();
                let columns: Vec<NamedColumn> = columns.collect();
                level.columns = columns.as_slice().into();
                self.levels.push(level);
                let bound = self.bind_condition(expr, "JOIN/ON");
                self.levels.pop();
                let mut on = Vec::new();
                conjuncts(bound?, &mut on);
                return Ok((on, columns));
            }
            JoinConstraint::Using(names) => {
                let columns = names.iter().filter(|name| using_alias(name).is_none());
                let name = |name| Ok((object_name(name)?, position_of(name)));
                columns.map(name).collect::<Result<Vec<_>>>()?
            }
            JoinConstraint::Natural => common_columns(left, right)
                .into_iter()
                .map(|name| (name, None))
                .collect(),
            JoinConstraint::None => Vec::new(),
        };
        let (mut on, mut columns) = (Vec::new(), Vec::new());
        for (name, position) in &names {
            let one = using_column(&left.columns, name, "left", *position)?;
            let other = using_column(&right.columns, name, "right", *position)?;
            on.push(operators::compare(
                Comparison::Equal,
                one.clone(),
                other.clone(),
                *position,
            )?);
            columns.push(NamedColumn {
                name: name.clone(),
                bound: merged(one, other, side, *position)?,
            });
        }
        let is_merged = |column: &&NamedColumn| names.iter().any(|(name, _)| *name == column.name);
        let rest = left.columns.iter().chain(&right.columns);
        columns.extend(rest.filter(|column| !is_merged(column)).cloned());
        Ok((on, columns))
    }

    /// Refuses a name that two parts of FROM have.
    fn check_names(&self, left: &FromScope, right: &FromScope) -> Result<()> {
        for id in &right.sources {
            let Source { name, position, .. } = self.source(*id);
            let is_known = |known: &SourceId| self.source(*known).name == *name;
            if left.sources.iter().any(is_known) {
                return Err(fail(
                    SqlState::DUPLICATE_ALIAS,
                    format!("table name \"{name}\" specified more than once"),
                    *position,
                ));
            }
        }
        Ok(())
    }

    pub(super) fn bind_factor(
        &mut self,
        factor: &TableFactor,
        around: &[Level],
    ) -> Result<FromScope> {
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
                    || !partitions.is_empty()
                    || json_path.is_some()
                    || sample.is_some()
                    || !index_hints.is_empty()
                {
                    return Err(unsupported("this form of a table in FROM", position));
                }
                if let Some(args) = args.as_ref().filter(|_| is_rows_from(name)) {
                    let alias = alias.as_ref();
                    return self.bind_rows_from(
                        &args.args,
                        alias,
                        *with_ordinality,
                        around,
                        position,
                    );
                }
                if let Some(args) = args {
                    let table_name = routine_name(self.catalog, name)?;
                    let exprs = function_arguments(&args.args, position)?;
                    let call = CallInFrom {
                        name: &table_name,
                        arguments: &exprs,
                        alias: alias.as_ref(),
                        has_ordinality: *with_ordinality,
                        position,
                    };
                    return self.bind_table_function(&call, around);
                }
                if *with_ordinality {
                    return Err(fail(
                        SqlState::SYNTAX_ERROR,
                        "syntax error at or near \"with\"",
                        position,
                    ));
                }
                if let Some(relation) = self.system_relation(name)? {
                    return self.bind_relation(relation, alias.as_ref(), position);
                }
                let alias_name = match alias {
                    Some(alias) => name_of(&alias.name),
                    None => row_name(name)?,
                };
                let with = match name.0.as_slice() {
                    [part] => match part.as_ident() {
                        Some(ident) => self.with_query(&name_of(ident), position)?,
                        None => None,
                    },
                    _ => None,
                };
                if let Some((reference, columns)) = with {
                    let kind = ItemKind::With(reference);
                    let alias = alias.as_ref();
                    return self.derived(kind, &columns, &alias_name, alias, position);
                }
                let table_name = relation_name(self.catalog, name)?;
                self.record_relation(&table_name);
                if let Some(view) = self.view_in_from(&table_name) {
                    return self.bind_view(&view, &alias_name, alias.as_ref(), position);
                }
                if self.catalog.table(&table_name).is_none()
                    && let Some(sequence) = self.catalog.sequence(&table_name)
                {
                    return self.bind_sequence_relation(sequence, alias.as_ref(), position);
                }
                let table = self.table_for(Privilege::Select, &table_name, position)?;
                self.refuse_missing_rows(&table_name);
                let source = self.add_table_source(&table, &alias_name, position);
                self.rename_columns(source, alias.as_ref(), position)?;
                Ok(self.scope_of(source, ItemKind::Table(table)))
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample,
            } => {
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
                let outside = self.levels.len();
                if *lateral {
                    self.levels.extend_from_slice(around);
                }
                let bound = self.bind_query(subquery);
                self.levels.truncate(outside);
                let mut bound = bound?;
                bound.decide_outputs()?;
                let columns = bound.columns.clone();
                let kind = ItemKind::Derived(Box::new(bound));
                let name = name_of(&alias.name);
                self.derived(kind, &columns, &name, Some(alias), position)
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality,
            } => {
                let exprs: Vec<_> = array_exprs.iter().map(|expr| (None, expr)).collect();
                let call = CallInFrom {
                    name: "unnest",
                    arguments: &exprs,
                    alias: alias.as_ref(),
                    has_ordinality: *with_ordinality,
                    position,
                };
                self.bind_table_function(&call, around)
            }
            TableFactor::Function {
                lateral: _,
                name,
                args,
                with_ordinality,
                alias,
            } => {
                if is_rows_from(name) {
                    let alias = alias.as_ref();
                    return self.bind_rows_from(args, alias, *with_ordinality, around, position);
                }
                let exprs = function_arguments(args, position)?;
                let name = routine_name(self.catalog, name)?;
                let call = CallInFrom {
                    name: &name,
                    arguments: &exprs,
                    alias: alias.as_ref(),
                    has_ordinality: *with_ordinality,
                    position,
                };
                self.bind_table_function(&call, around)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                let scope = self.bind_joined(table_with_joins, around)?;
                match alias {
                    None => Ok(scope),
                    Some(alias) => self.named_join(scope, alias, position),
                }
            }
            _ => Err(unsupported("this source of rows in FROM", position)),
        }
    }

    fn bind_relation(
        &mut self,
        relation: &'static Relation,
        alias: Option<&TableAlias>,
        position: Position,
    ) -> Result<FromScope> {
        let columns = relation.columns.iter().map(|column| ColumnMeta {
            name: column.name.to_owned(),
            data_type: column.data_type.clone(),
            origin: None,
        });
        let columns: Vec<ColumnMeta> = columns.collect();
        let session = self.session_of(relation, position)?;
        let name = alias.map_or_else(|| relation.name.to_owned(), |alias| name_of(&alias.name));
        let kind = ItemKind::Catalog(relation, session);
        self.derived(kind, &columns, &name, alias, position)
    }

    /// The scope of one item.
    pub(super) fn scope_of(&self, source: SourceId, kind: ItemKind) -> FromScope {
        FromScope {
            items: vec![FromItem {
                source,
                kind,
                left: None,
            }],
            filters: Vec::new(),
            sources: vec![source],
            columns: self.columns_of_row(source),
        }
    }

    /// The scope of rows that are no table's.
    pub(super) fn derived(
        &mut self,
        kind: ItemKind,
        columns: &[ColumnMeta],
        name: &str,
        alias: Option<&TableAlias>,
        position: Position,
    ) -> Result<FromScope> {
        let source = self.add_derived_source(name, columns, position);
        self.rename_columns(source, alias, position)?;
        Ok(self.scope_of(source, kind))
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
        let source = self.add_source(Source {
            name: name.to_owned(),
            visible: table.schema().shown().len(),
            columns,
            table: Some(table.clone()),
            record: None,
            position,
            within: None,
            shown: None,
            nullable: false,
            may_miss: false,
            is_value: false,
        });
        self.note_computed(source, table);
        source
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
            within: None,
            shown: None,
            visible: columns.len(),
            nullable: true,
            may_miss: false,
            is_value: false,
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
        let available = self.source(source).visible;
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

    /// The query that finds the rows of an UPDATE or DELETE, the target among its sources, and the
    /// source by which the target's columns are named.
    pub(super) fn bind_target(
        &mut self,
        (table, view): (&Arc<Table>, Option<&TargetView>),
        alias: &str,
        from: &[TableWithJoins],
        selection: Option<&Expr>,
        position: Position,
    ) -> Result<(BoundQuery, SourceId, SourceId, Level)> {
        let target = self.add_table_source(table, alias, position);
        let mut scope = self.scope_of(target, ItemKind::Table(table.clone()));
        let mut named = target;
        if let Some(view) = view {
            let shown = self.show_row(view, target, alias)?;
            named = shown.source;
            let conditions = shown.conditions.into_iter();
            scope.filters = conditions.flat_map(|(_, filters)| filters).collect();
            scope.sources = vec![named];
            scope.columns = self.columns_of_row(named);
        }
        let scope = self.bind_from_after(scope, from)?;
        let names = scope.level(AggregatePolicy::Refused("this clause"));
        let mut filters = scope.filters;
        if let Some(selection) = selection {
            self.levels.push(Level {
                aggregates: AggregatePolicy::Refused("WHERE"),
                ..names.clone()
            });
            let bound = self.bind_condition(selection, "WHERE");
            self.levels.pop();
            conjuncts(bound?, &mut filters);
        }
        let select = Select {
            items: scope.items,
            filters,
            outputs: Vec::new(),
            ..Select::default()
        };
        let query = BoundQuery {
            with: Vec::new(),
            body: Body::Select(Box::new(select)),
            columns: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: None,
        };
        Ok((query, target, named, names))
    }
}

/// Where aggregates stand that a LATERAL item takes from the rows before it.
const LATERAL: AggregatePolicy = AggregatePolicy::Refused("FROM clause of their own query level");

/// A call of a function in FROM.
pub(super) struct CallInFrom<'e> {
    pub name: &'e str,
    pub arguments: &'e [(Option<&'e sqlparser::ast::Ident>, &'e Expr)],
    pub alias: Option<&'e TableAlias>,
    pub has_ordinality: bool,
    pub position: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Inner,
    Left,
    Right,
    Full,
}

fn side_of(operator: &JoinOperator, position: Position) -> Result<(&JoinConstraint, Side)> {
    let (constraint, side) = match operator {
        JoinOperator::CrossJoin(constraint) => return Ok((constraint, Side::Inner)),
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (constraint, Side::Inner)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (constraint, Side::Left)
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (constraint, Side::Right)
        }
        JoinOperator::FullOuter(constraint) => (constraint, Side::Full),
        _ => return Err(unsupported("this kind of join", position)),
    };
    match constraint {
        JoinConstraint::None => Err(fail(
            SqlState::SYNTAX_ERROR,
            "syntax error: a join without ON, USING or NATURAL",
            position,
        )),
        _ => Ok((constraint, side)),
    }
}

/// The names that both sides of a join have.
fn common_columns(left: &FromScope, right: &FromScope) -> Vec<String> {
    let mut common: Vec<String> = Vec::new();
    for NamedColumn { name, .. } in &left.columns {
        let is_right = right.columns.iter().any(|column| column.name == *name);
        if is_right && !common.contains(name) {
            common.push(name.clone());
        }
    }
    common
}

/// The column of one side of a join that USING means.
fn using_column(
    columns: &[NamedColumn],
    name: &str,
    side: &str,
    position: Position,
) -> Result<Bound> {
    let mut found = columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column.bound.clone()),
        (Some(_), Some(_)) => Err(fail(
            SqlState::AMBIGUOUS_COLUMN,
            format!("common column name \"{name}\" appears more than once in {side} table"),
            position,
        )),
        (None, _) => Err(fail(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
            position,
        )),
    }
}

/// The value of a column that USING merges.
fn merged(left: Bound, right: Bound, side: Side, position: Position) -> Result<Bound> {
    let data_type = common_type("JOIN/USING", &[&left, &right], position)?;
    let convert = |bound: Bound| coerce(bound, &data_type, CastContext::Implicit);
    let is_column = |bound: &Bound| matches!(bound.kind, Kind::Column { .. });
    match side {
        Side::Inner => {
            let (left, right) = (convert(left)?, convert(right)?);
            let is_left = is_column(&left) || !is_column(&right);
            Ok(if is_left { left } else { right })
        }
        Side::Left => convert(left),
        Side::Right => convert(right),
        Side::Full => coalesce(vec![left, right], data_type, position),
    }
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

/// The arguments of a function in FROM, with the names of those that are given by name.
pub(super) fn function_arguments(
    arguments: &[ast::FunctionArg],
    position: Position,
) -> Result<Vec<(Option<&Ident>, &Expr)>> {
    use ast::{FunctionArg, FunctionArgExpr};
    let mut read = Vec::with_capacity(arguments.len());
    for argument in arguments {
        read.push(match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(expr),
                ..
            } => (Some(name), expr),
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(expr),
                ..
            } => (Some(name), expr),
            _ => return Err(unsupported("this argument", position)),
        });
    }
    Ok(read)
}
