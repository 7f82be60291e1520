//! Binding SELECT: its rows, its groups, its output.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::ColumnId;
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{
    self, Distinct, Expr, GroupByExpr, Query, SelectItem, SelectItemQualifiedWildcardKind,
};

use super::bound::{
    AggregateCall, Body, Bound, BoundQuery, ColumnMeta, ColumnOrigin, FromItem, Grouping, ItemKind,
    Kind, OrderKey, Output, Select, SourceId, conjuncts, rewrite_in_place,
};
use super::coerce::{CastContext, coerce};
use super::from::FromScope;
use super::grouping_sets::{GroupBy, Named, grouping_of, sets_of};
use super::names::figure_name;
use super::order::{Needs, class_in, order_items, order_key, output_number};
use super::row_value;
use super::scope::{AggregatePolicy, Level};
use super::{Compiler, Position, fail, name_of, position_of, row_name};
use super::{position_of_span, unsupported};
use crate::parse::{ALL_FIELDS, grouped_by};

impl Compiler<'_> {
    pub(super) fn bind_select(
        &mut self,
        select: &ast::Select,
        query: &Query,
    ) -> Result<BoundQuery> {
        refuse_unknown_clauses(select)?;
        let from = self.bind_from(&select.from)?;
        let number = self.new_slot();
        self.levels.push(Level {
            number,
            ..from.level(AggregatePolicy::Refused("WHERE"))
        });
        refuse_equal_windows(&select.named_window)?;
        let windows = std::mem::replace(&mut self.windows, select.named_window.clone());
        let result = self.bind_select_parts(select, query, from, number);
        self.windows = windows;
        self.levels.pop();
        result
    }

    /// Binds an output. One that is a row becomes an output for each field, of which all but the
    /// first go to `fields`.
    fn bind_output(
        &mut self,
        expr: &Expr,
        name: String,
        fields: &mut Vec<(String, Bound)>,
    ) -> Result<(String, Bound)> {
        let Some([(first, rows), (second, other)]) = self.bind_row_call(expr)? else {
            return Ok((name, self.bind(expr)?));
        };
        let position = position_of(expr);
        let rows = self.add_row_function(rows, position)?;
        let other = self.add_row_function(other, position)?;
        fields.push((field_of_row(&name, second), other));
        Ok((field_of_row(&name, first), rows))
    }

    /// The fields of the row that `(expr).*` means.
    fn bind_fields(&mut self, row: &Expr) -> Result<Vec<(String, Bound)>> {
        let position = position_of(row);
        let bound = self.bind(row)?;
        row_value::fields(&bound, position)
    }

    fn bind_select_parts(
        &mut self,
        select: &ast::Select,
        query: &Query,
        from: FromScope,
        level: usize,
    ) -> Result<BoundQuery> {
        let mut filters = from.filters;
        self.allow_aggregates(AggregatePolicy::Allowed);
        self.output = Some(Output::default());
        let mut outputs = Vec::new();
        let mut columns = Vec::new();
        let mut open_outputs = Vec::new();
        // Further fields of outputs that are rows come last, so that the numbers of outputs mean
        // what they meant.
        let mut fields = Vec::new();
        for item in projection(select) {
            match item {
                SelectItem::UnnamedExpr(expr) if let Some(row) = starred(expr) => {
                    for (name, bound) in self.bind_fields(&row)? {
                        columns.push(name);
                        outputs.push(bound);
                    }
                }
                SelectItem::UnnamedExpr(expr) => {
                    let (name, bound) = self.bind_output(expr, figure_name(expr), &mut fields)?;
                    columns.push(name);
                    outputs.push(bound);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let (name, bound) = self.bind_output(expr, name_of(alias), &mut fields)?;
                    columns.push(name);
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
                    self.record_star(position, &from.columns);
                    for column in &from.columns {
                        columns.push(column.name.clone());
                        outputs.push(column.bound.clone());
                    }
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let position = position_of(name);
                    refuse_wildcard_options(options, position)?;
                    let (row, first) = (row_name(name)?, columns.len());
                    self.qualified_wildcard(&row, position, &mut outputs, &mut columns)?;
                    self.record_row(position, &row, &columns[first..]);
                }
                SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => {
                    return Err(unsupported("this form of output", position_of(item)));
                }
            }
        }
        for (name, bound) in fields {
            columns.push(name);
            outputs.push(bound);
        }
        let mut output = self.output.take();
        // After the output, as in PostgreSQL: the first context decides a parameter's type.
        if let Some(selection) = &select.selection {
            self.allow_aggregates(AggregatePolicy::Refused("WHERE"));
            let bound = self.bind_condition(selection, "WHERE")?;
            conjuncts(bound, &mut filters);
            self.allow_aggregates(AggregatePolicy::Allowed);
        }
        for (index, bound) in outputs.iter_mut().enumerate() {
            if bound.is_unknown() {
                open_outputs.push(index);
                // What the query is part of may still decide; TEXT is the last resort.
                if bound.is_open_parameter() {
                    continue;
                }
                let taken = std::mem::replace(bound, Bound::boolean(true));
                let data_type = taken.data_type.clone();
                *bound = coerce(taken, &data_type, CastContext::Implicit)?;
            }
            // GROUP BY and ORDER BY may name it: its copies are one computation.
            if bound.is_volatile() {
                let taken = std::mem::replace(bound, Bound::boolean(true));
                *bound = self.share(taken);
            }
        }
        let distinct = matches!(select.distinct, Some(Distinct::Distinct));
        if distinct && outputs.is_empty() {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "SELECT DISTINCT must have at least one column",
                position_of(query),
            ));
        }
        let origins: Vec<_> = outputs.iter().map(|bound| self.origin_of(bound)).collect();
        let keys = self.bind_group_by(select, &outputs, &columns)?;
        let mut items = from.items;
        if let (Some(output), Some(GroupBy { keys, .. })) = (&mut output, &keys) {
            let functions = functions_grouped_by(keys, output);
            items.extend(functions);
        }
        let mut having = None;
        if let Some(expr) = &select.having {
            self.allow_aggregates(AggregatePolicy::Allowed);
            having = Some(self.bind_condition(expr, "HAVING")?);
        }
        self.allow_aggregates(AggregatePolicy::Allowed);
        self.output = output;
        let (mut order, mut named) = (Vec::new(), Named::default());
        for (expr, options) in order_items(query)? {
            let (bound, output) = self.bind_order_item(expr, &outputs, &columns)?;
            if distinct && !outputs.contains(&bound) {
                return Err(fail(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    position_of(expr),
                ));
            }
            if bound.as_constant().is_none() {
                order.push(order_key(bound, options)?);
                named.order.push(output);
            }
        }
        let distinct_on = match &select.distinct {
            Some(Distinct::On(items)) => {
                let keys = self.bind_distinct_on(items, &outputs, &columns, &order)?;
                let (keys, outputs) = keys.into_iter().unzip();
                named.distinct_on = outputs;
                keys
            }
            _ => Vec::new(),
        };
        let windows = self.bind_named_windows(&select.named_window)?;
        let output = self.output.take().unwrap_or_default();
        let mut bound = Select {
            items,
            filters,
            outputs,
            open_outputs,
            distinct,
            distinct_on,
            row_functions: output.row_functions,
            grouping: None,
        };
        let is_grouped = keys.is_some()
            || having.is_some()
            // One whose value nothing needs makes groups all the same.
            || self.aggregated.contains(&level);
        if is_grouped {
            // Windows that no call uses are over the groups as well.
            let sorted = order.len();
            order.extend(windows);
            match keys {
                Some(
                    ref by @ GroupBy {
                        sets: Some(ref sets),
                        ..
                    },
                ) => {
                    named.order.resize(order.len(), None);
                    let order = (order.as_mut_slice(), &named);
                    self.group_by_sets(&mut bound, (by, sets), having, order, level)?;
                }
                keys => {
                    let keys = keys.map_or_else(Vec::new, |keys| keys.keys);
                    self.group(&mut bound, keys, having, &mut order, level)?;
                }
            }
            order.truncate(sorted);
        }
        self.split_at_windows(&mut bound, &mut order, level)?;
        let columns = columns
            .into_iter()
            .zip(&bound.outputs)
            .zip(origins)
            .map(|((name, bound), origin)| ColumnMeta {
                name,
                data_type: bound.data_type.clone(),
                origin,
            })
            .collect();
        Ok(BoundQuery {
            with: Vec::new(),
            body: Body::Select(Box::new(bound)),
            columns,
            order,
            limit: None,
            offset: None,
        })
    }

    pub(super) fn allow_aggregates(&mut self, policy: AggregatePolicy) {
        if let Some(level) = self.levels.last_mut() {
            level.aggregates = policy;
        }
    }

    /// The column of a table that an expression is.
    pub(super) fn origin_of(&self, bound: &Bound) -> Option<ColumnOrigin> {
        let Kind::Column { source, column } = bound.kind else {
            return None;
        };
        let source = self.source(source);
        let table = source.table.as_ref()?;
        let definition = table.schema().columns.get(usize::from(column))?;
        Some(ColumnOrigin {
            table: table.id(),
            table_oid: self.catalog.table_oid(&table.schema().name),
            column: ColumnId(column),
            not_null: definition.not_null && !source.nullable,
        })
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
            for column in self.columns_of_row(*source) {
                columns.push(column.name);
                outputs.push(column.bound);
            }
            return Ok(());
        }
        if let Some(super::Variable::Record { fields, .. }) = self.variable(&[name.to_owned()]) {
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
    ) -> Result<Option<GroupBy>> {
        let items = match &select.group_by {
            GroupByExpr::Expressions(items, modifiers) => {
                if !modifiers.is_empty() {
                    return Err(unsupported(
                        "WITH ROLLUP and its kin",
                        position_of(&select.group_by),
                    ));
                }
                items
            }
            GroupByExpr::All(_) => {
                return Err(unsupported("GROUP BY ALL", position_of(&select.group_by)));
            }
        };
        let (items, is_distinct) = grouped_by(items);
        if items.is_empty() {
            return Ok(None);
        }
        self.allow_aggregates(AggregatePolicy::Refused("GROUP BY"));
        let mut by = GroupBy::default();
        let Some(sets) = sets_of(items)? else {
            for item in items {
                let (bound, output) = self.bind_group_key(item, outputs, names)?;
                by.add(bound, output, false);
            }
            return Ok(Some(by));
        };
        let mut positions: Vec<Vec<usize>> = Vec::with_capacity(sets.len());
        for set in sets {
            let mut own = Vec::with_capacity(set.len());
            for item in set {
                let (bound, output) = self.bind_group_key(item, outputs, names)?;
                let at = by.add(bound, output, true);
                if !own.contains(&at) {
                    own.push(at);
                }
            }
            let is_known = positions.iter().any(|known| is_same_set(known, &own));
            if !is_distinct || !is_known {
                positions.push(own);
            }
        }
        by.sets = Some(positions);
        Ok(Some(by))
    }

    /// Binds an expression of GROUP BY; returns it, and which output it is.
    fn bind_group_key(
        &mut self,
        item: &Expr,
        outputs: &[Bound],
        names: &[String],
    ) -> Result<(Bound, Option<usize>)> {
        let (bound, output) = match output_number(item, outputs.len())? {
            Some(index) => (outputs[index].clone(), Some(index)),
            None => self.bind_group_item(item, outputs, names)?,
        };
        let level = self.levels.last().map_or(0, |level| level.number);
        if has_aggregate(&bound, level) {
            return Err(fail(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in GROUP BY",
                position_of(item),
            ));
        }
        if bound.any(|node| matches!(&node.kind, Kind::Window(call) if call.level == level)) {
            return Err(fail(
                SqlState::WINDOWING_ERROR,
                "window functions are not allowed in GROUP BY",
                bound.position,
            ));
        }
        Ok((bound, output))
    }

    /// A name in GROUP BY is a column of the rows first, and else one of the output.
    fn bind_group_item(
        &mut self,
        item: &Expr,
        outputs: &[Bound],
        names: &[String],
    ) -> Result<(Bound, Option<usize>)> {
        match (self.bind_expected(item, None), item) {
            (Err(error), Expr::Identifier(ident))
                if error.state() == SqlState::UNDEFINED_COLUMN =>
            {
                let name = name_of(ident);
                let index = names.iter().position(|known| *known == name);
                let index = index.ok_or(error)?;
                Ok((outputs[index].clone(), Some(index)))
            }
            (result, _) => result.map(|bound| output_of_form(bound, outputs)),
        }
    }

    /// A name in ORDER BY is a column of the output first. Returns which output the item is, too.
    fn bind_order_item(
        &mut self,
        item: &Expr,
        outputs: &[Bound],
        names: &[String],
    ) -> Result<(Bound, Option<usize>)> {
        if let Some(index) = output_number(item, outputs.len())? {
            return Ok((outputs[index].clone(), Some(index)));
        }
        if let Expr::Identifier(ident) = item {
            let name = name_of(ident);
            let mut found: Option<(&Bound, usize)> = None;
            for (index, (bound, known)) in outputs.iter().zip(names).enumerate() {
                if *known != name {
                    continue;
                }
                if found.is_some_and(|(first, _)| first != bound) {
                    return Err(fail(
                        SqlState::AMBIGUOUS_COLUMN,
                        format!("ORDER BY \"{name}\" is ambiguous"),
                        position_of(item),
                    ));
                }
                found = found.or(Some((bound, index)));
            }
            if let Some((bound, index)) = found {
                return Ok((bound.clone(), Some(index)));
            }
        }
        if let Expr::Value(literal) = item
            && !matches!(literal.value, ast::Value::Null | ast::Value::Placeholder(_))
        {
            return Err(fail(
                SqlState::SYNTAX_ERROR,
                "non-integer constant in ORDER BY",
                position_of(item),
            ));
        }
        let bound = self.bind_expected(item, None)?;
        Ok(output_of_form(bound, outputs))
    }

    /// DISTINCT ON, whose expressions have to lead the order.
    fn bind_distinct_on(
        &mut self,
        items: &[Expr],
        outputs: &[Bound],
        names: &[String],
        order: &[OrderKey],
    ) -> Result<Vec<(Bound, Option<usize>)>> {
        let mut keys: Vec<(Bound, Option<usize>)> = Vec::with_capacity(items.len());
        for item in items {
            let key = self.bind_order_item(item, outputs, names)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        // Those that the order names come first in it, in any order.
        let leading = order.iter().take(keys.len());
        let is_key = |key: &&OrderKey| keys.iter().any(|(bound, _)| *bound == key.bound);
        let others = leading.filter(|key| !is_key(key)).count();
        if others > 0 {
            return Err(fail(
                SqlState::INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                items.first().and_then(position_of),
            ));
        }
        Ok(keys)
    }

    /// Groups the rows of a SELECT: group keys and aggregates in its outputs become slots.
    fn group(
        &mut self,
        select: &mut Select,
        mut keys: Vec<Bound>,
        having: Option<Bound>,
        order: &mut [OrderKey],
        level: usize,
    ) -> Result<()> {
        let sources: Vec<SourceId> = select.items.iter().map(|item| item.source).collect();
        for key in &keys {
            class_in("GROUP BY", Needs::Equality, &key.data_type, key.position)?;
        }
        // GROUPING takes none of those that depend on others.
        let written = keys.len();
        self.add_dependent_keys(&mut keys, select, order, having.as_ref(), &sources);
        let keys: Vec<(Bound, usize)> =
            keys.into_iter().map(|key| (key, self.new_slot())).collect();
        let mut aggregates: Vec<(AggregateCall, usize)> = Vec::new();
        let mut next = self.next_slot;
        let mut failed = None;
        let mut replace = |bound: &Bound| -> Option<Bound> {
            let slot = |number: usize| {
                Bound::new(Kind::Slot(number), bound.data_type.clone(), bound.position)
            };
            if let Some((_, number)) = keys.iter().find(|(key, _)| key.is_key_of(bound)) {
                return Some(slot(*number));
            }
            match grouping_of(bound, keys[..written].iter().map(|(key, _)| key)) {
                Some(Ok(_)) => {
                    let none = Value::Integer(0);
                    return Some(Bound::constant(none, DataType::Integer, bound.position));
                }
                Some(Err(error)) => {
                    failed.get_or_insert(error);
                    return Some(Bound::null(DataType::Integer, bound.position));
                }
                None => {}
            }
            let Kind::Aggregate(call) = &bound.kind else {
                return None;
            };
            if call.level != level {
                return None;
            }
            if let Some((_, number)) = aggregates
                .iter()
                .find(|(known, _)| known.is_same(call, false))
            {
                return Some(slot(*number));
            }
            next += 1;
            aggregates.push(((**call).clone(), next));
            Some(slot(next))
        };
        let mut having = having;
        for bound in select
            .output_expressions_mut(order)
            .into_iter()
            .chain(&mut having)
        {
            rewrite_in_place(bound, &mut replace);
        }
        self.next_slot = next;
        if let Some(error) = failed {
            return Err(error);
        }
        let all = select.output_expressions(order).into_iter();
        self.refuse_stray(all.chain(&having), &sources)?;
        select.grouping = Some(Grouping {
            keys,
            aggregates,
            having,
        });
        Ok(())
    }

    /// With a table's whole primary key among the group keys, its other columns are keys too: they
    /// depend on it.
    fn add_dependent_keys(
        &self,
        keys: &mut Vec<Bound>,
        select: &Select,
        order: &[OrderKey],
        having: Option<&Bound>,
        sources: &[SourceId],
    ) {
        let mut used = Vec::new();
        for bound in select.output_expressions(order).into_iter().chain(having) {
            collect_outside_aggregates(bound, &mut used);
        }
        for source in sources {
            let Some(table) = &self.source(*source).table else {
                continue;
            };
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
                .filter(
                    |bound| matches!(bound.kind, Kind::Column { source: of, .. } if of == *source),
                )
                .collect();
            for bound in dependent {
                if !keys.contains(bound) {
                    keys.push(bound.clone());
                }
            }
        }
    }
}

/// Whether two grouping sets have the same keys.
fn is_same_set(one: &[usize], other: &[usize]) -> bool {
    one.len() == other.len() && one.iter().all(|key| other.contains(key))
}

/// An expression of GROUP BY or ORDER BY, and which output it is. The output that is written as a
/// volatile expression is: that, and not another computation, is meant.
fn output_of_form(bound: Bound, outputs: &[Bound]) -> (Bound, Option<usize>) {
    let is_volatile = bound.is_volatile();
    let same = |output: &Bound| match is_volatile {
        true => output.has_form_of(&bound),
        false => *output == bound,
    };
    match outputs.iter().position(same) {
        Some(index) if is_volatile => (outputs[index].clone(), Some(index)),
        index => (bound, index),
    }
}

/// Whether an aggregate over the rows of a level is in it, in subqueries too.
fn has_aggregate(bound: &Bound, level: usize) -> bool {
    bound.any(|node| matches!(&node.kind, Kind::Aggregate(call) if call.level == level))
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
    if has_options {
        Err(unsupported("this form of *", position))
    } else {
        Ok(())
    }
}

/// # Errors
/// 42P20 for a second window of a name.
fn refuse_equal_windows(windows: &[ast::NamedWindowDefinition]) -> Result<()> {
    for (at, window) in windows.iter().enumerate() {
        let name = name_of(&window.0);
        if windows[..at].iter().any(|other| name_of(&other.0) == name) {
            let message = format!("window \"{name}\" is already defined");
            return Err(fail(
                SqlState::WINDOWING_ERROR,
                message,
                position_of(window),
            ));
        }
    }
    Ok(())
}

fn refuse_unknown_clauses(select: &ast::Select) -> Result<()> {
    let position = position_of(select);
    let refuse = |what: &str| Err(unsupported(what, position));
    if select.into.is_some() {
        let message = "SELECT ... INTO is not allowed here";
        return Err(fail(SqlState::SYNTAX_ERROR, message, position));
    }
    if select.qualify.is_some() {
        return refuse("QUALIFY");
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
        || select
            .select_modifiers
            .as_ref()
            .is_some_and(|modifiers| modifiers.is_any_set())
    {
        return refuse("this clause of SELECT");
    }
    Ok(())
}

/// The outputs. SELECT without any has an empty tuple in their place (`parse/dialect.rs`).
fn projection(select: &ast::Select) -> &[SelectItem] {
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(Expr::Tuple(none))] if none.is_empty() => &[],
        items => items,
    }
}

/// The name of the column that is a field of the row in a column. No name that is written has a
/// zero.
pub(super) fn field_of_row(column: &str, field: &str) -> String {
    format!("{column}\0{field}")
}

/// Refuses rows among the columns of a query whose rows are handed out.
///
/// # Errors
/// 0A000.
pub(super) fn refuse_rows(columns: &[ColumnMeta]) -> Result<()> {
    match columns.iter().any(|column| column.name.contains('\0')) {
        true => Err(unsupported("a row as a value", None)),
        false => Ok(()),
    }
}

/// The functions that give rows and that GROUP BY names, taken out of the output: groups are made
/// of the rows that they give, so that they stand in FROM. Functions of their arguments go along.
fn functions_grouped_by(keys: &[Bound], output: &mut Output) -> Vec<FromItem> {
    let is_named = |source: &SourceId| keys.iter().any(|key| key.sources().contains(source));
    let mut all = output.row_functions.iter();
    let last = all.rposition(|(source, _)| is_named(source));
    let moved = output
        .row_functions
        .drain(..last.map_or(0, |last| last + 1));
    let items = moved.map(|(source, functions)| FromItem {
        source,
        kind: ItemKind::Functions(Box::new(functions)),
        left: None,
    });
    items.collect()
}

/// The row of which an output is all fields, as `(expr).*` is read.
fn starred(expr: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else {
        return None;
    };
    let (last, before) = access_chain.split_last()?;
    match last {
        ast::AccessExpr::Dot(Expr::Identifier(field)) if field.value == ALL_FIELDS => {}
        _ => return None,
    }
    Some(match before.is_empty() {
        true => (**root).clone(),
        false => Expr::CompoundFieldAccess {
            root: root.clone(),
            access_chain: before.to_vec(),
        },
    })
}
