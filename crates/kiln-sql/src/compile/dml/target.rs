//! What INSERT, UPDATE and DELETE change: a table, also by way of a view.
//!
//! A view whose query is a condition on the rows of one table, or of such a view, can be changed:
//! the statement changes the rows of the table. Only its names and conditions are the view's. The
//! row at hand is the table's; a second source *shows* it, with the view's columns, as a view in
//! FROM shows those of its tables.

use std::rc::Rc;

use kiln_engine::{CheckOption, Object, Privilege, View};
use kiln_platform::sync::Arc;
use kiln_procedure::ProgramBuilder;
use kiln_storage::error::{Error, Result, SqlState, Subject};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::ColumnId;
use kiln_storage::table::Table;
use sqlparser::ast::{
    self, Distinct, Expr, GroupByExpr, Ident, Query, SelectItem, SetExpr, TableFactor,
};

use super::super::bound::{Body, Bound, BoundQuery, FromItem, ItemKind, Kind, SourceId, conjuncts};
use super::super::rows::{Layer, TargetView};
use super::super::scope::{AggregatePolicy, Source};
use super::super::{
    CatalogView, Compiler, Position, fail, name_of, position_of_span, relation_name,
};
use super::constraints::failure;
use super::shown_columns;
use crate::parse::stored_query;

/// What a statement changes.
pub(super) struct Target {
    pub table: Arc<Table>,
    /// The view by way of which it does.
    pub view: Option<Rc<TargetView>>,
}

/// Where a view leads to.
enum Layers {
    /// The views from it down, and the table that the last one reads from.
    Of(Vec<Layer>, String),
    /// This view among them, whose rows cannot be changed, and why.
    Not(String, &'static str),
}

/// A row of the table as a view shows it.
pub(in super::super) struct ShownRow {
    pub source: SourceId,
    /// For each view, its name and the conditions that its rows satisfy.
    pub conditions: Vec<(String, Vec<Bound>)>,
}

impl Target {
    /// What the statement calls it.
    pub fn name(&self) -> &str {
        match &self.view {
            Some(view) => &view.layers[0].view.name,
            None => &self.table.schema().name,
        }
    }

    /// The columns of the table that a statement without a list of columns gives values for.
    ///
    /// # Errors
    /// 0A000 for a view's column that is none of the table's.
    pub fn columns(&self, width: usize, doing: &str) -> Result<Vec<ColumnId>> {
        match &self.view {
            None => Ok(shown_columns(&self.table).collect()),
            Some(view) => {
                let columns = view.columns.iter().enumerate();
                let columns = columns.map(|(at, (name, column))| match column {
                    Some(column) => Ok(*column),
                    None if at < width => Err(self.no_column(name, doing)),
                    None => Ok(ColumnId(u16::MAX)),
                });
                columns.collect()
            }
        }
    }

    fn no_column(&self, name: &str, doing: &str) -> Error {
        let view = name_in_schema(self.name());
        let message = format!("cannot {doing} column \"{name}\" of view \"{view}\"");
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(
            "View columns that are not columns of their base relation are not updatable.",
        )
    }

    /// The column called `ident` that a statement assigns to.
    pub fn column(&self, ident: &Ident, doing: &str) -> Result<ColumnId> {
        let name = name_of(ident);
        let found = match &self.view {
            None => self.table.schema().column(&name),
            Some(view) => match view.columns.iter().find(|(known, _)| *known == name) {
                Some((name, None)) => return Err(self.no_column(name, doing)),
                Some((_, column)) => *column,
                None => None,
            },
        };
        found.ok_or_else(|| {
            let relation = name_in_schema(self.name());
            let message = format!("column \"{name}\" of relation \"{relation}\" does not exist");
            let position = position_of_span(ident.span);
            fail(SqlState::UNDEFINED_COLUMN, message, position)
        })
    }
}

impl Target {
    /// Whether the view asks about rows that the statement may have changed by then.
    pub fn has_subquery(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.has_subquery)
    }
}

impl TargetView {
    /// The views whose conditions a new row must satisfy.
    pub fn checked(&self) -> Vec<bool> {
        let mut is_cascaded = false;
        let layers = self.layers.iter();
        layers
            .map(|layer| {
                let own = layer.view.check_option;
                is_cascaded |= own == Some(CheckOption::Cascaded);
                is_cascaded || own.is_some()
            })
            .collect()
    }
}

impl Compiler<'_> {
    /// What a statement changes that names `name`.
    ///
    /// # Errors
    /// 42P01; 55000 for a view that cannot be changed.
    pub(super) fn target(
        &mut self,
        privilege: Privilege,
        name: &str,
        position: Position,
    ) -> Result<Target> {
        let Some(view) = self.view(name) else {
            if self.catalog.materialized_view(name).is_some() && !self.refilled {
                let name = name_in_schema(name);
                let message = format!("cannot change materialized view \"{name}\"");
                return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, None));
            }
            let table = self.table_for(privilege, name, position)?;
            return Ok(Target { table, view: None });
        };
        let (layers, relation) = match self.layers(view)? {
            Layers::Of(layers, relation) => (layers, relation),
            Layers::Not(view, reason) => return Err(not_updatable(&view, privilege, reason)),
        };
        let table = self.table(&relation, position)?;
        let columns = columns_of(&layers, &table);
        let is_delete = privilege == Privilege::Delete;
        if !is_delete && columns.iter().all(|(_, column)| column.is_none()) {
            let reason = "Views that have no updatable columns are not automatically updatable.";
            return Err(not_updatable(&layers[0].view.name, privilege, reason));
        }
        let view = Some(Rc::new(TargetView {
            has_subquery: layers.iter().any(|layer| layer.has_subquery),
            layers,
            columns,
        }));
        let target = Target { table, view };
        self.note_writing(&target, privilege);
        Ok(target)
    }

    /// The role that runs the statement must be allowed to change what it names, and the owner of
    /// each view what that reads from.
    pub(super) fn note_writing(&mut self, target: &Target, privilege: Privilege) {
        self.note_access(Object::table(target.name()), privilege);
        let Some(view) = &target.view else {
            return;
        };
        let below = view.layers.iter().skip(1).map(|layer| &layer.view.name);
        let below = below.chain([&target.table.schema().name]);
        for (layer, relation) in view.layers.iter().zip(below) {
            self.by_owner_of(&layer.view.name, |compiler| {
                compiler.note_access(Object::table(relation), privilege);
            });
        }
    }

    /// Follows a view down to its table.
    fn layers(&mut self, view: Arc<View>) -> Result<Layers> {
        let (mut layers, mut next) = (Vec::new(), view);
        loop {
            let query = stored_query(&next.query)?;
            let bound = self.bind_view_query(&next)?;
            if let Some(reason) = reason_of(&query, &bound) {
                return Ok(Layers::Not(next.name.clone(), reason));
            }
            let (relation, alias) =
                self.along_view(&next, |compiler| only_relation(&query, compiler.catalog))?;
            let mut has_subquery = false;
            bound.visit(&mut |bound| has_subquery |= matches!(bound.kind, Kind::Subquery(_)));
            layers.push(Layer {
                view: next,
                query,
                has_subquery,
                alias,
            });
            match self.view(&relation) {
                Some(view) => next = view,
                None => return Ok(Layers::Of(layers, relation)),
            }
        }
    }

    /// The row `source` of the table as the view shows it, under the name `alias`.
    pub(in super::super) fn show_row(
        &mut self,
        view: &TargetView,
        source: SourceId,
        alias: &str,
    ) -> Result<ShownRow> {
        let own = self.source(source).name.clone();
        let mut conditions = Vec::new();
        let mut shown = source;
        for layer in view.layers.iter().rev() {
            self.source_mut(shown).name.clone_from(&layer.alias);
            let (outputs, filters) = self.by_owner_of(&layer.view.name, |compiler| {
                compiler.without_names(|compiler| {
                    compiler.along_view(&layer.view, |compiler| compiler.bind_layer(layer, shown))
                })
            })?;
            conditions.push((layer.view.name.clone(), filters));
            let position = self.source(source).position;
            let View { name, columns, .. } = &*layer.view;
            let name = name_in_schema(name);
            shown = self.add_source(Source::showing(name, columns, outputs, position));
        }
        conditions.reverse();
        self.source_mut(shown).name = alias.to_owned();
        self.source_mut(source).name = own;
        Ok(ShownRow {
            source: shown,
            conditions,
        })
    }

    /// The columns and the conditions of a view over the row that it reads.
    fn bind_layer(&mut self, layer: &Layer, row: SourceId) -> Result<(Vec<Bound>, Vec<Bound>)> {
        let SetExpr::Select(select) = &*layer.query.body else {
            return Err(Error::internal("a view that can be changed is a SELECT"));
        };
        let level = self.level_of(&[row], AggregatePolicy::Refused("this clause"));
        self.levels.push(level);
        let mut outputs = Vec::with_capacity(select.projection.len());
        for (item, (_, data_type)) in select.projection.iter().zip(&layer.view.columns) {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                return Err(Error::internal("a view that can be changed has a *"));
            };
            outputs.push(self.bind_expected(expr, Some(data_type))?);
        }
        let mut filters = Vec::new();
        if let Some(selection) = &select.selection {
            conjuncts(self.bind_condition(selection, "WHERE")?, &mut filters);
        }
        self.levels.pop();
        Ok((outputs, filters))
    }

    /// Raises unless a new row is in the views that check it.
    pub(super) fn emit_view_checks(
        &mut self,
        table: &Arc<Table>,
        source: SourceId,
        checks: &[(String, Bound)],
        position: Position,
    ) -> Result<()> {
        for (view, condition) in checks {
            let holds = self.emit_condition(condition)?;
            self.unless(holds, |compiler| {
                let detail = compiler.failing_row(table, source)?;
                let name = name_in_schema(view);
                let message = format!("new row violates check option for view \"{name}\"");
                let state = SqlState::WITH_CHECK_OPTION_VIOLATION;
                let mut error = failure(state, message, detail, position);
                error.subject = Some(Box::new(Subject::table(view)));
                compiler.raise(error);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The conditions that a row must satisfy when it was changed by way of a view.
    pub(super) fn view_checks(&self, view: &TargetView, shown: &ShownRow) -> Vec<(String, Bound)> {
        let layers = shown.conditions.iter().zip(view.checked());
        let checked = layers.filter(|(_, is_checked)| *is_checked);
        let checks = checked.flat_map(|((name, conditions), _)| {
            let conditions = conditions.iter();
            conditions.map(|condition| (name.clone(), condition.clone()))
        });
        // As PostgreSQL: those of the views below first.
        let mut checks: Vec<_> = checks.collect();
        checks.reverse();
        checks
    }
}

/// Whether the rows of a view can be changed.
pub(crate) enum Updatability {
    /// PostgreSQL's reason why they cannot.
    Not(&'static str),
    /// They can, by way of the columns for which this is true.
    Columns(Vec<bool>),
}

/// Whether the rows of a view can be changed.
///
/// # Errors
/// Those of its query.
pub(crate) fn updatability(catalog: &dyn CatalogView, view: &View) -> Result<Updatability> {
    let mut compiler = Compiler::new(ProgramBuilder::new("", []), catalog);
    let layers = compiler.layers(Arc::new(view.clone()));
    Ok(match layers? {
        Layers::Not(_, reason) => Updatability::Not(reason),
        Layers::Of(layers, relation) => {
            let table = compiler.table(&relation, None)?;
            let columns = columns_of(&layers, &table);
            let columns = columns.iter().map(|(_, column)| column.is_some());
            Updatability::Columns(columns.collect())
        }
    })
}

/// The columns of the first view, and those of the table that they are.
fn columns_of(layers: &[Layer], table: &Table) -> Vec<(String, Option<ColumnId>)> {
    let columns = table.schema().shown().iter().enumerate();
    let mut below: Vec<(String, Option<ColumnId>)> = columns
        .map(|(at, column)| (column.name.clone(), Some(ColumnId(at as u16))))
        .collect();
    for layer in layers.iter().rev() {
        let SetExpr::Select(select) = &*layer.query.body else {
            continue;
        };
        let items = select.projection.iter().zip(&layer.view.columns);
        let columns = items.map(|(item, (name, _))| {
            let read = column_read(item, &layer.alias);
            let known = read.and_then(|read| below.iter().find(|(known, _)| *known == read));
            (name.clone(), known.and_then(|(_, column)| *column))
        });
        below = columns.collect();
    }
    below
}

/// The column that an output is, where it is one as it stands.
fn column_read(item: &SelectItem, alias: &str) -> Option<String> {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return None;
    };
    let mut expr = expr;
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    match expr {
        Expr::Identifier(ident) => Some(name_of(ident)),
        Expr::CompoundIdentifier(idents) => match idents.as_slice() {
            [row, column] if name_of(row) == alias => Some(name_of(column)),
            [_, row, column] if name_of(row) == alias => Some(name_of(column)),
            _ => None,
        },
        _ => None,
    }
}

/// The table or view from which a view that can be changed reads, and what it calls its rows.
fn only_relation(query: &Query, catalog: &dyn CatalogView) -> Result<(String, String)> {
    if let SetExpr::Select(select) = &*query.body
        && let [from] = select.from.as_slice()
        && let TableFactor::Table { name, alias, .. } = &from.relation
    {
        let relation = relation_name(catalog, name)?;
        let alias = alias.as_ref().map(|alias| name_of(&alias.name));
        let alias = alias.unwrap_or_else(|| name_in_schema(&relation).to_owned());
        return Ok((relation, alias));
    }
    Err(Error::internal(
        "a view that can be changed reads from one relation",
    ))
}

/// Whether a name says that it is one of the system's.
fn is_of_system(name: &ast::ObjectName) -> bool {
    let schema = name
        .0
        .len()
        .checked_sub(2)
        .and_then(|at| name.0[at].as_ident());
    let schema = schema.map(name_of);
    matches!(schema.as_deref(), Some("pg_catalog" | "information_schema"))
}

/// PostgreSQL's reason why the rows of a view with this query cannot be changed.
fn reason_of(query: &Query, bound: &BoundQuery) -> Option<&'static str> {
    let select = match &*query.body {
        SetExpr::Select(select) => Some(select),
        _ => None,
    };
    if select
        .is_some_and(|select| matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_))))
    {
        return Some("Views containing DISTINCT are not automatically updatable.");
    }
    if select.is_some_and(|select| has_groups(select)) {
        return Some("Views containing GROUP BY are not automatically updatable.");
    }
    if select.is_some_and(|select| select.having.is_some()) {
        return Some("Views containing HAVING are not automatically updatable.");
    }
    if matches!(*query.body, SetExpr::SetOperation { .. }) {
        return Some(
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        );
    }
    if query.with.is_some() {
        return Some("Views containing WITH are not automatically updatable.");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Some("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    match &bound.body {
        Body::Select(select) if select.items.iter().any(is_windowed) => {
            return Some("Views that return window functions are not automatically updatable.");
        }
        Body::Select(select) if select.grouping.is_some() => {
            return Some("Views that return aggregate functions are not automatically updatable.");
        }
        Body::Select(select) if !select.row_functions.is_empty() => {
            return Some(
                "Views that return set-returning functions are not automatically updatable.",
            );
        }
        _ => {}
    }
    let is_one = select.is_some_and(|select| match select.from.as_slice() {
        [from] => {
            let is_table = match &from.relation {
                TableFactor::Table {
                    name,
                    args: None,
                    alias,
                    ..
                } => {
                    let is_renamed = alias
                        .as_ref()
                        .is_some_and(|alias| !alias.columns.is_empty());
                    let is_system = is_of_system(name);
                    !is_renamed && !is_system
                }
                _ => false,
            };
            is_table && from.joins.is_empty()
        }
        _ => false,
    });
    (!is_one).then_some(
        "Views that do not select from a single table or view are not automatically updatable.",
    )
}

/// Whether an item is what window functions are computed from.
fn is_windowed(item: &FromItem) -> bool {
    let windowed = |query: &BoundQuery| matches!(query.body, Body::Windowed(_));
    matches!(&item.kind, ItemKind::Derived(query) if windowed(query))
}

fn has_groups(select: &ast::Select) -> bool {
    match &select.group_by {
        GroupByExpr::Expressions(items, _) => !items.is_empty(),
        GroupByExpr::All(_) => true,
    }
}

/// The refusal to change rows of a view.
#[cold]
fn not_updatable(view: &str, privilege: Privilege, reason: &str) -> Error {
    let (doing, enabling, event) = match privilege {
        Privilege::Insert => ("insert into", "inserting into", "INSERT"),
        Privilege::Delete => ("delete from", "deleting from", "DELETE"),
        _ => ("update", "updating", "UPDATE"),
    };
    let view = name_in_schema(view);
    let message = format!("cannot {doing} view \"{view}\"");
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .with_detail(reason)
        .with_hint(format!(
            "To enable {enabling} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
        ))
}
