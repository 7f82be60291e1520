//! Binding SELECT: its rows, its groups, its output.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::Comparison;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::table::Table;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{
    self, Distinct, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, Query, SelectItem,
    SelectItemQualifiedWildcardKind, TableAlias, TableFactor, TableWithJoins,
};

use super::aggregate::AggregateCall;
use super::bound::{Bound, Kind};
use super::coerce::{CastContext, coerce};
use super::plpgsql::Callee;
use super::query::{
    Body, BoundQuery, ColumnMeta, OrderKey, order_items, order_key, output_number,
    rewrite_in_place,
};
use super::scope::{AggregatePolicy, Level, Source, SourceId};
use super::{
    Compiler, Position, fail, name_of, object_name, operators, position_of, relation_name,
};
use super::{position_of_span, unsupported};

/// A bound SELECT.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub items: Vec<FromItem>,
    /// The conjuncts of WHERE and of the inner joins' ON.
    pub filters: Vec<Bound>,
    pub outputs: Vec<Bound>,
    /// Which outputs are literals without a type of their own.
    pub open_outputs: Vec<usize>,
    pub distinct: bool,
    pub grouping: Option<Grouping>,
}

/// GROUP BY, or aggregates without it.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    /// Each key over the rows, and the slot by which outputs name it.
    pub keys: Vec<(Bound, usize)>,
    /// Each aggregate and its slot.
    pub aggregates: Vec<(AggregateCall, usize)>,
    pub having: Option<Bound>,
}

/// One source of rows in FROM.
#[derive(Clone, Debug)]
pub(crate) struct FromItem {
    pub source: SourceId,
    pub kind: ItemKind,
    /// The conjuncts of ON when this is the right side of a LEFT JOIN.
    pub left: Option<Vec<Bound>>,
}

#[derive(Clone, Debug)]
pub(crate) enum ItemKind {
    Table(Arc<Table>),
    Derived(Box<BoundQuery>),
    /// `unnest(array)`.
    Unnest(Bound),
    /// `generate_series(first, last, step)`.
    Series(Bound, Bound, Bound),
    /// A call of a user's function.
    Routine(Box<Callee>, Vec<Bound>),
}

impl Select {
    /// A SELECT of `outputs` from one source.
    pub(super) fn over(source: SourceId, kind: ItemKind, outputs: Vec<Bound>) -> Select {
        Select {
            items: vec![FromItem { source, kind, left: None }],
            filters: Vec::new(),
            outputs,
            open_outputs: Vec::new(),
            distinct: false,
            grouping: None,
        }
    }

    /// The expressions over the rows of FROM, apart from those of the items.
    pub(super) fn row_expressions(&self) -> Vec<&Bound> {
        let mut all: Vec<&Bound> = Vec::new();
        match &self.grouping {
            None => all.extend(&self.outputs),
            Some(grouping) => {
                all.extend(grouping.keys.iter().map(|(key, _)| key));
                for (call, _) in &grouping.aggregates {
                    all.extend(call.operands());
                }
            }
        }
        all
    }

    pub(super) fn visit(&self, f: &mut dyn FnMut(&Bound)) {
        for item in &self.items {
            match &item.kind {
                ItemKind::Table(_) => {}
                ItemKind::Derived(query) => query.visit(f),
                ItemKind::Unnest(array) => array.visit(f),
                ItemKind::Series(first, last, step) => {
                    [first, last, step].into_iter().for_each(|bound| bound.visit(f));
                }
                ItemKind::Routine(_, arguments) => {
                    arguments.iter().for_each(|bound| bound.visit(f));
                }
            }
            item.left.iter().flatten().for_each(|bound| bound.visit(f));
        }
        self.filters.iter().chain(&self.outputs).for_each(|bound| bound.visit(f));
        if let Some(grouping) = &self.grouping {
            grouping.keys.iter().for_each(|(key, _)| key.visit(f));
            for (call, _) in &grouping.aggregates {
                call.operands().into_iter().for_each(|bound| bound.visit(f));
            }
            grouping.having.iter().for_each(|bound| bound.visit(f));
        }
    }

    pub(super) fn rewrite(&mut self, replace: &mut dyn FnMut(&Bound) -> Option<Bound>) {
        for item in &mut self.items {
            match &mut item.kind {
                ItemKind::Table(_) => {}
                ItemKind::Derived(query) => query.rewrite(replace),
                ItemKind::Unnest(array) => rewrite_in_place(array, replace),
                ItemKind::Series(first, last, step) => {
                    for bound in [first, last, step] {
                        rewrite_in_place(bound, replace);
                    }
                }
                ItemKind::Routine(_, arguments) => {
                    for bound in arguments {
                        rewrite_in_place(bound, replace);
                    }
                }
            }
            for bound in item.left.iter_mut().flatten() {
                rewrite_in_place(bound, replace);
            }
        }
        for bound in self.filters.iter_mut().chain(&mut self.outputs) {
            rewrite_in_place(bound, replace);
        }
        if let Some(grouping) = &mut self.grouping {
            for (key, _) in &mut grouping.keys {
                rewrite_in_place(key, replace);
            }
            for (call, _) in &mut grouping.aggregates {
                let parts = call.argument.iter_mut().chain(&mut call.delimiter);
                for bound in parts.chain(&mut call.filter) {
                    rewrite_in_place(bound, replace);
                }
            }
            if let Some(having) = &mut grouping.having {
                rewrite_in_place(having, replace);
            }
        }
    }
}

/// What FROM has given so far.
#[derive(Default)]
struct FromScope {
    items: Vec<FromItem>,
    filters: Vec<Bound>,
    /// In the order in which `*` lists them.
    sources: Vec<SourceId>,
    /// The columns that USING merged, which `*` lists first.
    merged: Vec<(SourceId, usize)>,
}

/// The operands of the ANDs at the top of a condition.
pub(super) fn conjuncts(bound: Bound, into: &mut Vec<Bound>) {
    match bound.kind {
        Kind::And(operands) => operands.into_iter().for_each(|operand| conjuncts(operand, into)),
        Kind::Constant(Value::Boolean(true)) => {}
        _ => into.push(bound),
    }
}

impl Compiler<'_> {
    pub(super) fn bind_select(
        &mut self,
        select: &ast::Select,
        query: &Query,
    ) -> Result<BoundQuery> {
        refuse_unknown_clauses(select)?;
        let from = self.bind_from(&select.from)?;
        self.levels.push(Level {
            sources: from.sources.clone(),
            aggregates: AggregatePolicy::Refused("WHERE"),
        });
        let result = self.bind_select_parts(select, query, from);
        self.levels.pop();
        result
    }

    fn bind_select_parts(
        &mut self,
        select: &ast::Select,
        query: &Query,
        from: FromScope,
    ) -> Result<BoundQuery> {
        let mut filters = from.filters;
        if let Some(selection) = &select.selection {
            let bound = self.bind_condition(selection, "WHERE")?;
            conjuncts(bound, &mut filters);
        }
        self.allow_aggregates(AggregatePolicy::Allowed);
        let mut outputs = Vec::new();
        let mut columns = Vec::new();
        let mut open_outputs = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let bound = self.bind(expr)?;
                    columns.push(figure_name(expr));
                    outputs.push(bound);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let bound = self.bind(expr)?;
                    columns.push(name_of(alias));
                    outputs.push(bound);
                }
                SelectItem::Wildcard(options) => {
                    let position = position_of_span(options.wildcard_token.0.span);
                    refuse_wildcard_options(options, position)?;
                    if from.sources.is_empty() {
                        return Err(fail(
                            SqlState::SYNTAX_ERROR,
                            "SELECT * with no tables specified is not valid",
                            position,
                        ));
                    }
                    for (source, column) in self.wildcard(&from.sources, &from.merged) {
                        self.push_column(source, column, &mut outputs, &mut columns);
                    }
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let position = position_of(name);
                    refuse_wildcard_options(options, position)?;
                    self.qualified_wildcard(&object_name(name)?, position, &mut outputs, &mut columns)?;
                }
                SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => {
                    return Err(unsupported("this form of output", position_of(item)));
                }
            }
        }
        for (index, bound) in outputs.iter_mut().enumerate() {
            if matches!(bound.kind, Kind::Row(_)) {
                return Err(unsupported("a row as a value", bound.position));
            }
            if bound.is_unknown() {
                open_outputs.push(index);
                let taken = std::mem::replace(bound, Bound::boolean(true));
                let data_type = taken.data_type.clone();
                *bound = coerce(taken, &data_type, CastContext::Implicit)?;
            }
        }
        let distinct = match &select.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => {
                return Err(unsupported("DISTINCT ON", position_of(query)));
            }
        };
        let keys = self.bind_group_by(select, &outputs, &columns)?;
        let mut having = None;
        if let Some(expr) = &select.having {
            self.allow_aggregates(AggregatePolicy::Allowed);
            having = Some(self.bind_condition(expr, "HAVING")?);
        }
        self.allow_aggregates(AggregatePolicy::Allowed);
        let mut order = Vec::new();
        for (expr, options) in order_items(query)? {
            let bound = self.bind_order_item(expr, &outputs, &columns)?;
            if distinct && !outputs.contains(&bound) {
                return Err(fail(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    position_of(expr),
                ));
            }
            if bound.as_constant().is_none() {
                order.push(order_key(bound, options));
            }
        }
        let is_grouped = keys.is_some()
            || having.is_some()
            || outputs
                .iter()
                .chain(order.iter().map(|key| &key.bound))
                .any(|bound| has_aggregate(bound));
        let grouping = if is_grouped {
            let keys = keys.unwrap_or_default();
            Some(self.group(keys, having, &mut outputs, &mut order, &from.sources)?)
        } else {
            None
        };
        let columns = columns
            .into_iter()
            .zip(&outputs)
            .map(|(name, bound)| ColumnMeta { name, data_type: bound.data_type.clone() })
            .collect();
        Ok(BoundQuery {
            body: Body::Select(Box::new(Select {
                items: from.items,
                filters,
                outputs,
                open_outputs,
                distinct,
                grouping,
            })),
            columns,
            order,
            limit: None,
            offset: None,
        })
    }

    fn allow_aggregates(&mut self, policy: AggregatePolicy) {
        if let Some(level) = self.levels.last_mut() {
            level.aggregates = policy;
        }
    }

    /// `TABLE name`.
    pub(super) fn bind_table_query(&mut self, name: &Ident, query: &Query) -> Result<BoundQuery> {
        let table = self.table(&name_of(name), None)?;
        let alias = name_of(name);
        let source = self.add_table_source(&table, &alias, None);
        let mut outputs = Vec::new();
        let mut columns = Vec::new();
        for column in 0..self.source(source).visible {
            self.push_column(source, column, &mut outputs, &mut columns);
        }
        let columns: Vec<ColumnMeta> = columns
            .into_iter()
            .zip(&outputs)
            .map(|(name, bound)| ColumnMeta { name, data_type: bound.data_type.clone() })
            .collect();
        let mut order = Vec::new();
        self.levels.push(Level {
            sources: vec![source],
            aggregates: AggregatePolicy::Refused("ORDER BY"),
        });
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let mut bind = || -> Result<()> {
            for (expr, options) in order_items(query)? {
                order.push(order_key(self.bind_order_item(expr, &outputs, &names)?, options));
            }
            Ok(())
        };
        let result = bind();
        self.levels.pop();
        result?;
        let select = Select::over(source, ItemKind::Table(table), outputs);
        let body = Body::Select(Box::new(select));
        Ok(BoundQuery { body, columns, order, limit: None, offset: None })
    }

    fn push_column(
        &self,
        source: SourceId,
        column: usize,
        outputs: &mut Vec<Bound>,
        columns: &mut Vec<String>,
    ) {
        let (name, data_type) = self.source(source).columns[column].clone();
        columns.push(name);
        let column = column as u16;
        outputs.push(Bound::new(Kind::Column { source, column }, data_type, None));
    }

    fn wildcard(
        &self,
        sources: &[SourceId],
        merged: &[(SourceId, usize)],
    ) -> Vec<(SourceId, usize)> {
        let mut all: Vec<(SourceId, usize)> = merged.to_vec();
        for source in sources {
            let Source { visible, merged: hidden, .. } = self.source(*source);
            for column in 0..*visible {
                if !hidden.contains(&column) && !merged.contains(&(*source, column)) {
                    all.push((*source, column));
                }
            }
        }
        all
    }

    fn qualified_wildcard(
        &self,
        name: &str,
        position: Position,
        outputs: &mut Vec<Bound>,
        columns: &mut Vec<String>,
    ) -> Result<()> {
        let found = self
            .levels
            .iter()
            .rev()
            .flat_map(|level| &level.sources)
            .find(|source| self.source(**source).name == name);
        if let Some(source) = found {
            for column in 0..self.source(*source).visible {
                self.push_column(*source, column, outputs, columns);
            }
            return Ok(());
        }
        if let Some(super::Variable::Record { fields }) = self.variable(&[name.to_owned()]) {
            for field in fields {
                columns.push(field.name);
                outputs.push(Bound::register(field.register, field.data_type, position));
            }
            return Ok(());
        }
        Err(fail(
            SqlState::UNDEFINED_TABLE,
            format!("missing FROM-clause entry for table \"{name}\""),
            position,
        ))
    }

    /// GROUP BY; `None` when there is none.
    fn bind_group_by(
        &mut self,
        select: &ast::Select,
        outputs: &[Bound],
        names: &[String],
    ) -> Result<Option<Vec<Bound>>> {
        let items = match &select.group_by {
            GroupByExpr::Expressions(items, modifiers) => {
                if !modifiers.is_empty() {
                    return Err(unsupported("WITH ROLLUP and its kin", position_of(&select.group_by)));
                }
                items
            }
            GroupByExpr::All(_) => {
                return Err(unsupported("GROUP BY ALL", position_of(&select.group_by)));
            }
        };
        if items.is_empty() {
            return Ok(None);
        }
        self.allow_aggregates(AggregatePolicy::Refused("GROUP BY"));
        let mut keys: Vec<Bound> = Vec::new();
        for item in items {
            let bound = match output_number(item, outputs.len())? {
                Some(index) => outputs[index].clone(),
                None => self.bind_group_item(item, outputs, names)?,
            };
            if has_aggregate(&bound) {
                return Err(fail(
                    SqlState::GROUPING_ERROR,
                    "aggregate functions are not allowed in GROUP BY",
                    position_of(item),
                ));
            }
            if !keys.contains(&bound) {
                keys.push(bound);
            }
        }
        Ok(Some(keys))
    }

    /// A name in GROUP BY is a column of the rows first, and else one of the output.
    fn bind_group_item(
        &mut self,
        item: &Expr,
        outputs: &[Bound],
        names: &[String],
    ) -> Result<Bound> {
        let result = self.bind_expected(item, None);
        match (result, item) {
            (Err(error), Expr::Identifier(ident)) if error.state() == SqlState::UNDEFINED_COLUMN => {
                let name = name_of(ident);
                names
                    .iter()
                    .position(|known| *known == name)
                    .map(|index| outputs[index].clone())
                    .ok_or(error)
            }
            (result, _) => result,
        }
    }

    /// A name in ORDER BY is a column of the output first.
    fn bind_order_item(
        &mut self,
        item: &Expr,
        outputs: &[Bound],
        names: &[String],
    ) -> Result<Bound> {
        if let Some(index) = output_number(item, outputs.len())? {
            return Ok(outputs[index].clone());
        }
        if let Expr::Identifier(ident) = item {
            let name = name_of(ident);
            let mut found: Option<&Bound> = None;
            for (bound, known) in outputs.iter().zip(names) {
                if *known != name {
                    continue;
                }
                if found.is_some_and(|first| first != bound) {
                    return Err(fail(
                        SqlState::AMBIGUOUS_COLUMN,
                        format!("ORDER BY \"{name}\" is ambiguous"),
                        position_of(item),
                    ));
                }
                found = Some(bound);
            }
            if let Some(bound) = found {
                return Ok(bound.clone());
            }
        }
        if let Expr::Value(literal) = item {
            if !matches!(literal.value, ast::Value::Null | ast::Value::Placeholder(_)) {
                return Err(fail(
                    SqlState::SYNTAX_ERROR,
                    "non-integer constant in ORDER BY",
                    position_of(item),
                ));
            }
        }
        self.bind_expected(item, None)
    }

    /// Replaces group keys and aggregates in the outputs by slots.
    fn group(
        &mut self,
        mut keys: Vec<Bound>,
        having: Option<Bound>,
        outputs: &mut [Bound],
        order: &mut [OrderKey],
        sources: &[SourceId],
    ) -> Result<Grouping> {
        self.add_dependent_keys(&mut keys, outputs, order, having.as_ref(), sources);
        let keys: Vec<(Bound, usize)> =
            keys.into_iter().map(|key| (key, self.new_slot())).collect();
        let mut aggregates: Vec<(AggregateCall, usize)> = Vec::new();
        let mut next = self.next_slot;
        let mut replace = |bound: &Bound| -> Option<Bound> {
            let slot = |number: usize| {
                Bound::new(Kind::Slot(number), bound.data_type.clone(), bound.position)
            };
            if let Some((_, number)) = keys.iter().find(|(key, _)| key == bound) {
                return Some(slot(*number));
            }
            let Kind::Aggregate(call) = &bound.kind else { return None };
            if let Some((_, number)) = aggregates.iter().find(|(known, _)| *known == **call) {
                return Some(slot(*number));
            }
            next += 1;
            aggregates.push(((**call).clone(), next));
            Some(slot(next))
        };
        let mut having = having;
        for bound in outputs
            .iter_mut()
            .chain(order.iter_mut().map(|key| &mut key.bound))
            .chain(&mut having)
        {
            rewrite_in_place(bound, &mut replace);
        }
        self.next_slot = next;
        let all = outputs.iter().chain(order.iter().map(|key| &key.bound)).chain(&having);
        for bound in all {
            let mut stray = None;
            bound.visit(&mut |node| {
                if let Kind::Column { source, column } = node.kind
                    && sources.contains(&source)
                    && stray.is_none()
                {
                    stray = Some((source, column, node.position));
                }
            });
            if let Some((source, column, position)) = stray {
                let source = self.source(source);
                return Err(fail(
                    SqlState::GROUPING_ERROR,
                    format!(
                        "column \"{}.{}\" must appear in the GROUP BY clause or be used in an \
                         aggregate function",
                        source.name, source.columns[column as usize].0
                    ),
                    position,
                ));
            }
        }
        Ok(Grouping { keys, aggregates, having })
    }

    /// With a table's whole primary key among the group keys, its other columns are keys too: they
    /// depend on it.
    fn add_dependent_keys(
        &self,
        keys: &mut Vec<Bound>,
        outputs: &[Bound],
        order: &[OrderKey],
        having: Option<&Bound>,
        sources: &[SourceId],
    ) {
        let mut used = Vec::new();
        let all = outputs.iter().chain(order.iter().map(|key| &key.bound)).chain(having);
        for bound in all {
            collect_outside_aggregates(bound, &mut used);
        }
        for source in sources {
            let Some(table) = &self.source(*source).table else { continue };
            let primary_key = &table.schema().primary_key;
            let has = |column: u16| {
                keys.iter().any(|key| {
                    matches!(key.kind, Kind::Column { source: of, column: known }
                        if of == *source && known == column)
                })
            };
            if primary_key.is_empty() || !primary_key.iter().all(|column| has(column.0)) {
                continue;
            }
            let dependent: Vec<&Bound> = used
                .iter()
                .filter(|bound| matches!(bound.kind, Kind::Column { source: of, .. } if of == *source))
                .collect();
            for bound in dependent {
                if !keys.contains(bound) {
                    keys.push(bound.clone());
                }
            }
        }
    }

    fn bind_from(&mut self, from: &[TableWithJoins]) -> Result<FromScope> {
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
                        return Err(unsupported("a LEFT JOIN with a join on its right", position));
                    }
                    scope.items[items_before].left = Some(on);
                    self.source_mut(scope.sources[middle]).nullable = true;
                }
                Side::Right => {
                    let left_is_one = items_before == first_item + 1
                        && scope.items[first_item].left.is_none()
                        && scope.items.len() == items_before + 1;
                    if !left_is_one {
                        return Err(unsupported("a RIGHT JOIN with a join on its left", position));
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
                    source.columns[..source.visible].iter().map(|(name, _)| name.clone())
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
            let kind = Kind::Column { source, column: column as u16 };
            Bound::new(kind, data_type, position)
        };
        let (one, other) = (column(self, left), column(self, right));
        on.push(operators::compare(Comparison::Equal, one, other, position)?);
        let (shown, hidden) = if side == Side::Right { (right, left) } else { (left, right) };
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
                let table_name = relation_name(name)?;
                let alias_name =
                    alias.as_ref().map_or_else(|| table_name.clone(), |alias| name_of(&alias.name));
                if let Some(index) =
                    self.ctes.iter().rposition(|(known, _, _)| *known == table_name)
                {
                    // A name in the body of a WITH query means what came before it.
                    let after = self.ctes.split_off(index);
                    let (_, columns, query) = after[0].clone();
                    let bound = self.bind_query(&query);
                    self.ctes.extend(after);
                    let mut bound = bound?;
                    rename(&mut bound.columns, &columns, &table_name, position)?;
                    return self.add_derived(bound, &alias_name, alias.as_ref(), scope, position);
                }
                let table = self.table(&table_name, position)?;
                self.check_alias(&alias_name, scope, position)?;
                let source = self.add_table_source(&table, &alias_name, position);
                self.rename_columns(source, alias.as_ref(), position)?;
                scope.sources.push(source);
                scope.items.push(FromItem { source, kind: ItemKind::Table(table), left: None });
                Ok(())
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
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
                let bound = self.bind_query(subquery)?;
                self.add_derived(bound, &name_of(&alias.name), Some(alias), scope, position)
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
            TableFactor::Function { lateral: _, name, args, with_ordinality: false, alias } => {
                let exprs = function_arguments(args, position)?;
                let name = object_name(name)?;
                self.bind_table_function(&name, &exprs, alias.as_ref(), scope, position)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.bind_joined(table_with_joins, scope)
            }
            _ => Err(unsupported("this source of rows in FROM", position)),
        }
    }

    fn check_alias(&self, name: &str, scope: &FromScope, position: Position) -> Result<()> {
        if scope.sources.iter().any(|source| self.source(*source).name == name) {
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
        bound: BoundQuery,
        name: &str,
        alias: Option<&TableAlias>,
        scope: &mut FromScope,
        position: Position,
    ) -> Result<()> {
        self.check_alias(name, scope, position)?;
        let source = self.add_derived_source(name, &bound.columns, position);
        self.rename_columns(source, alias, position)?;
        scope.sources.push(source);
        let kind = ItemKind::Derived(Box::new(bound));
        scope.items.push(FromItem { source, kind, left: None });
        Ok(())
    }

    fn bind_table_function(
        &mut self,
        name: &str,
        arguments: &[(Option<&Ident>, &Expr)],
        alias: Option<&TableAlias>,
        scope: &mut FromScope,
        position: Position,
    ) -> Result<()> {
        let is_routine =
            !matches!(name, "unnest" | "generate_series") && self.knows_routine(name);
        // Arguments may name the sources before: these functions are lateral.
        self.levels.push(Level {
            sources: scope.sources.clone(),
            aggregates: AggregatePolicy::Refused("functions in FROM"),
        });
        let bounds: Result<Vec<Bound>> = arguments
            .iter()
            .map(|(_, argument)| match is_routine {
                // Its parameters give literals their types.
                true => self.bind(argument),
                false => self.bind_expected(argument, None),
            })
            .collect();
        self.levels.pop();
        let mut bounds = bounds?;
        if is_routine {
            let given = arguments.iter().map(|(name, _)| *name).zip(bounds).collect();
            return self.bind_routine_source(name, given, alias, scope, position);
        }
        if arguments.iter().any(|(name, _)| name.is_some()) {
            return Err(unsupported("an argument by name of this function", position));
        }
        let (kind, data_type) = match (name, bounds.len()) {
            ("unnest", 1) => {
                let array = bounds.swap_remove(0);
                let DataType::Array(element) = array.data_type.clone() else {
                    return Err(fail(
                        SqlState::UNDEFINED_FUNCTION,
                        format!("function unnest({}) does not exist", array.type_name()),
                        position,
                    ));
                };
                (ItemKind::Unnest(array), *element)
            }
            ("generate_series", 2 | 3) => {
                let is_wide =
                    bounds.iter().any(|bound| bound.data_type == DataType::BigInt);
                let data_type = if is_wide { DataType::BigInt } else { DataType::Integer };
                if bounds.iter().any(|bound| !bound.data_type.is_integer()) {
                    return Err(unsupported("generate_series of this type", position));
                }
                let mut parts = Vec::with_capacity(3);
                for bound in bounds {
                    parts.push(coerce(bound, &data_type, CastContext::Implicit)?);
                }
                let step = match parts.len() {
                    3 => parts.pop(),
                    _ => None,
                };
                let step = step.unwrap_or_else(|| {
                    Bound::constant(Value::BigInt(1), DataType::BigInt, position)
                });
                let step = coerce(step, &DataType::BigInt, CastContext::Implicit)?;
                let (Some(last), Some(first)) = (parts.pop(), parts.pop()) else {
                    return Err(unsupported("this call", position));
                };
                if !matches!(step.as_constant(), Some(Value::BigInt(step)) if *step != 0) {
                    return Err(unsupported(
                        "generate_series with a step that is not a constant other than 0",
                        position,
                    ));
                }
                (ItemKind::Series(first, last, step), data_type)
            }
            _ => {
                return Err(fail(
                    SqlState::UNDEFINED_FUNCTION,
                    format!(
                        "function {name}({}) does not exist",
                        bounds.iter().map(Bound::type_name).collect::<Vec<_>>().join(", ")
                    ),
                    position,
                ));
            }
        };
        let alias_name = alias.map_or_else(|| name.to_owned(), |alias| name_of(&alias.name));
        self.check_alias(&alias_name, scope, position)?;
        let columns = [ColumnMeta { name: alias_name.clone(), data_type }];
        let source = self.add_derived_source(&alias_name, &columns, position);
        self.rename_columns(source, alias, position)?;
        scope.sources.push(source);
        scope.items.push(FromItem { source, kind, left: None });
        Ok(())
    }

    /// A call of a user's function in FROM.
    fn bind_routine_source(
        &mut self,
        name: &str,
        given: Vec<(Option<&Ident>, Bound)>,
        alias: Option<&TableAlias>,
        scope: &mut FromScope,
        position: Position,
    ) -> Result<()> {
        let is_joined = !scope.sources.is_empty();
        let (callee, arguments) = Callee::bind(self, name, given, is_joined, position)?;
        let alias_name = alias.map_or_else(|| name.to_owned(), |alias| name_of(&alias.name));
        self.check_alias(&alias_name, scope, position)?;
        let columns: Vec<ColumnMeta> = callee
            .columns_in_from(&alias_name)
            .into_iter()
            .map(|(name, data_type)| ColumnMeta { name, data_type })
            .collect();
        let source = self.add_derived_source(&alias_name, &columns, position);
        self.rename_columns(source, alias, position)?;
        scope.sources.push(source);
        let kind = ItemKind::Routine(Box::new(callee), arguments);
        scope.items.push(FromItem { source, kind, left: None });
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

    fn rename_columns(
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
            return Err(too_many_columns(&name, available, alias.columns.len(), position));
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

fn has_aggregate(bound: &Bound) -> bool {
    let mut found = false;
    visit_level(bound, &mut |node| found |= matches!(node.kind, Kind::Aggregate(_)));
    found
}

/// Visits the nodes of this query level only.
fn visit_level(bound: &Bound, f: &mut dyn FnMut(&Bound)) {
    f(bound);
    bound.operands().into_iter().for_each(|operand| visit_level(operand, f));
}

fn collect_outside_aggregates(bound: &Bound, columns: &mut Vec<Bound>) {
    match &bound.kind {
        Kind::Aggregate(_) => {}
        Kind::Column { .. } => columns.push(bound.clone()),
        _ => {
            for operand in bound.operands() {
                collect_outside_aggregates(operand, columns);
            }
        }
    }
}

fn rename(
    columns: &mut [ColumnMeta],
    names: &[String],
    table: &str,
    position: Position,
) -> Result<()> {
    if names.len() > columns.len() {
        return Err(too_many_columns(table, columns.len(), names.len(), position));
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
        format!("table \"{table}\" has {available} columns available but {given} columns specified"),
        position,
    )
}

fn refuse_wildcard_options(
    options: &ast::WildcardAdditionalOptions,
    position: Position,
) -> Result<()> {
    let has_options = options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_except.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
        || options.opt_alias.is_some();
    if has_options { Err(unsupported("this form of *", position)) } else { Ok(()) }
}

fn refuse_unknown_clauses(select: &ast::Select) -> Result<()> {
    let position = position_of(select);
    let refuse = |what: &str| Err(unsupported(what, position));
    if select.into.is_some() {
        return refuse("SELECT INTO here");
    }
    if !select.named_window.is_empty() || select.qualify.is_some() {
        return refuse("WINDOW and QUALIFY");
    }
    if select.top.is_some()
        || select.exclude.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.value_table_mode.is_some()
        || select.select_modifiers.as_ref().is_some_and(|modifiers| modifiers.is_any_set())
    {
        return refuse("this clause of SELECT");
    }
    Ok(())
}

/// The arguments of a function in FROM, with the names of those that are given by name.
fn function_arguments(
    arguments: &[ast::FunctionArg],
    position: Position,
) -> Result<Vec<(Option<&Ident>, &Expr)>> {
    use ast::{FunctionArg, FunctionArgExpr};
    let mut read = Vec::with_capacity(arguments.len());
    for argument in arguments {
        read.push(match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => (Some(name), expr),
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
        Expr::Cast { expr, data_type, .. } => match figure(expr) {
            Some((name, true)) => strong(name),
            weak => type_column_name(data_type).map(|name| (name, false)).or(weak),
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
        Expr::AtTimeZone { .. } => known("timezone"),
        Expr::Subquery(query) => match &*query.body {
            ast::SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(expr) => figure(expr),
                SelectItem::ExprWithAlias { alias, .. } => strong(name_of(alias)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The internal name of a type, which names the column of a cast.
fn type_column_name(written: &ast::DataType) -> Option<String> {
    let data_type = super::types::data_type(written, None).ok()?;
    Some(
        match data_type {
            DataType::SmallInt => "int2",
            DataType::Integer => "int4",
            DataType::BigInt => "int8",
            DataType::Numeric { .. } => "numeric",
            DataType::Double => "float8",
            DataType::Boolean => "bool",
            DataType::Char(_) => "bpchar",
            DataType::VarChar(_) => "varchar",
            DataType::Text => "text",
            DataType::Bytea => "bytea",
            DataType::Date => "date",
            DataType::Timestamp => "timestamp",
            DataType::TimestampTz => "timestamptz",
            DataType::Uuid => "uuid",
            DataType::Interval => "interval",
            DataType::Array(_) => return figure_array(written),
        }
        .to_owned(),
    )
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
