//! Views in FROM, and what CREATE VIEW notes of a query.
//!
//! A view is expanded where it is named. A query that is nothing but joined rows, conditions and
//! expressions becomes a part of the query that names it: its sources stand in the list of FROM,
//! its conditions among the others, and what its columns are called means its expressions. So a
//! condition on a key goes by the key, through a view as well. Any other query is a subquery.

use kiln_engine::{Object, Privilege, View, ViewRows};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Failure, TextSource};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use sqlparser::ast::TableAlias;

use super::bound::{Body, Bound, BoundQuery, ColumnMeta, ItemKind, Kind, Select};
use super::from::FromScope;
use super::qualified::is_temporary;
use super::scope::{NamedColumn, Source};
use super::{Compiler, Position};
use crate::parse::stored_query;

/// What a query names while it is bound to become a view.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Tables, views and sequences.
    pub relations: Vec<String>,
    /// For each `*`, where it stands and the columns for which it stands, as SQL.
    pub stars: Vec<(Position, String)>,
}

impl Compiler<'_> {
    /// The view called `name`.
    pub(super) fn view(&self, name: &str) -> Option<Arc<View>> {
        self.catalog.view(name)
    }

    /// The view called `name` whose query is run where a query names it. That of a materialized view
    /// is run by the statement alone that gives it its rows.
    pub(super) fn view_in_from(&mut self, name: &str) -> Option<Arc<View>> {
        match self.refilled {
            true => self
                .catalog
                .materialized_view(name)
                .or_else(|| self.view(name)),
            false => self.view(name),
        }
    }

    /// Raises where the rows of a materialized view are read that has none yet.
    pub(super) fn refuse_missing_rows(&mut self, name: &str) {
        let view = self.catalog.materialized_view(name);
        if view.is_none_or(|view| view.rows != ViewRows::Missing) {
            return;
        }
        let name = name_in_schema(name);
        self.raise(Failure {
            state: SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            message: format!("materialized view \"{name}\" has not been populated"),
            arguments: Box::default(),
            detail: None,
            hint: Some(TextSource::Literal(
                "Use the REFRESH MATERIALIZED VIEW command.".to_owned(),
            )),
            subject: None,
            position: None,
        });
    }

    /// Binds a view in FROM.
    pub(super) fn bind_view(
        &mut self,
        view: &Arc<View>,
        name: &str,
        alias: Option<&TableAlias>,
        position: Position,
    ) -> Result<FromScope> {
        self.note_access(Object::table(&view.name), Privilege::Select);
        // Within the query it is not the statement's own.
        let refilled = std::mem::take(&mut self.refilled);
        let bound = self.bind_view_query(view);
        self.refilled = refilled;
        let bound = bound?;
        let columns = view.columns.iter().map(|(name, data_type)| ColumnMeta {
            name: name.clone(),
            data_type: data_type.clone(),
            origin: None,
        });
        let columns: Vec<ColumnMeta> = columns.collect();
        let select = match into_part(bound) {
            Ok(select) => select,
            Err(query) => {
                let kind = ItemKind::Derived(query);
                return self.derived(kind, &columns, name, alias, position);
            }
        };
        // What reads for the view stands where the view is named.
        for item in &select.items {
            self.source_mut(item.source).position = position;
        }
        let source = Source::showing(name, &view.columns, select.outputs, position);
        let source = self.add_source(source);
        self.rename_columns(source, alias, position)?;
        Ok(FromScope {
            items: select.items,
            filters: select.filters,
            sources: vec![source],
            columns: self.columns_of_row(source),
        })
    }

    /// Binds the query of a view, which names nothing of what is around it. The view's owner needs
    /// the privileges for it.
    pub(super) fn bind_view_query(&mut self, view: &Arc<View>) -> Result<BoundQuery> {
        let query = stored_query(&view.query)?;
        let recorded = self.recorded.take();
        let bound = self.by_owner_of(&view.name, |compiler| {
            compiler.without_names(|compiler| {
                compiler.along_view(view, |compiler| compiler.bind_query(&query))
            })
        });
        self.recorded = recorded;
        let mut bound = bound?;
        bound.decide_outputs()?;
        if bound.columns.len() != view.columns.len() {
            let name = &view.name;
            let message = format!("view \"{name}\" has other columns than its query");
            return Err(Error::internal(message));
        }
        let mut columns = bound.columns.iter().zip(&view.columns);
        if is_temporary(self.catalog, &view.name)
            && columns.any(|(bound, (_, known))| bound.data_type != *known)
        {
            // No session waits for what another one has for itself.
            let name = name_in_schema(&view.name);
            let message = format!("what temporary view \"{name}\" reads has changed");
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(Error::new(state, message).with_hint("Create it again."));
        }
        Ok(bound)
    }

    /// The query that is bound names a table, view or sequence.
    pub(super) fn record_relation(&mut self, name: &str) {
        if let Some(recorded) = &mut self.recorded
            && !recorded.relations.iter().any(|known| known == name)
        {
            recorded.relations.push(name.to_owned());
        }
    }

    /// The query that is bound has a `*` for these columns.
    pub(super) fn record_star(&mut self, position: Position, columns: &[NamedColumn]) {
        if self.recorded.is_none() {
            return;
        }
        let quote = super::quoting::quote_identifier;
        let text = |column: &NamedColumn| {
            let name = quote(&column.name);
            let level = self.levels.last().map(|level| level.sources.as_slice());
            let mut sources = level.unwrap_or_default().iter();
            let source = sources.find(|source| {
                let columns = self.columns_of_row(**source);
                columns
                    .iter()
                    .any(|known| known.name == column.name && known.bound == column.bound)
            });
            match source {
                Some(source) => format!("{}.{name}", quote(&self.source(*source).name)),
                None => name,
            }
        };
        let columns: Vec<String> = columns.iter().map(text).collect();
        self.record_columns(position, columns.join(", "));
    }

    /// The query that is bound has a `row.*` for these columns.
    pub(super) fn record_row(&mut self, position: Position, row: &str, columns: &[String]) {
        if self.recorded.is_none() {
            return;
        }
        let quote = super::quoting::quote_identifier;
        let columns = columns
            .iter()
            .map(|column| format!("{}.{}", quote(row), quote(column)));
        let columns: Vec<String> = columns.collect();
        self.record_columns(position, columns.join(", "));
    }

    fn record_columns(&mut self, position: Position, columns: String) {
        if let Some(recorded) = &mut self.recorded {
            recorded.stars.push((position, columns));
        }
    }
}

/// The SELECT of a query that can be a part of another one's; the query itself, if it is none.
fn into_part(query: BoundQuery) -> std::result::Result<Select, Box<BoundQuery>> {
    let is_plain = query.with.is_empty()
        && query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && !query.is_volatile();
    let is_part = |select: &Select| {
        let is_subquery = |bound: &Bound| matches!(bound.kind, Kind::Subquery(_));
        let has_subquery = |output: &Bound| {
            let mut found = false;
            output.visit(&mut |bound| found |= is_subquery(bound));
            found
        };
        !select.items.is_empty()
            && !select.distinct
            && select.distinct_on.is_empty()
            && select.row_functions.is_empty()
            && select.grouping.is_none()
            && !select.outputs.iter().any(has_subquery)
    };
    match query.body {
        Body::Select(select) if is_plain && is_part(&select) => Ok(*select),
        body => Err(Box::new(BoundQuery { body, ..query })),
    }
}
