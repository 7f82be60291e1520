//! Materialized views: views whose rows are kept.
//!
//! A materialized view is a table that has the columns of a query; the catalog knows the query
//! ([`kiln_engine::View`]), and whether it was run. REFRESH deletes the rows and inserts those that
//! the query gives now, in one transaction: others see the rows before or those after. A log keeps the rows, and runs no query again.

use kiln_engine::{CatalogChange, ViewRows};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{Column, TableSchema};
use sqlparser::ast::ObjectName;

use super::definition::Definition;
use super::design;
use super::prepared::Statement;
use super::result::{Notice, StatementResult};
use super::session::Session;
use crate::catalog::{View, is_auxiliary, relation_of};
use crate::compile::ddl;
use crate::compile::{fail, new_relation_name, position_of, sql_name, unsupported, written_name};
use crate::parse::{
    self, CreateMaterializedView, RefreshMaterializedView, SourceStatement, Statement as Tree,
};

/// CREATE MATERIALIZED VIEW, without the rows.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateMaterializedView,
) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("CREATE MATERIALIZED VIEW");
    let notice = definition.change_catalog(|change| {
        let catalog = View::of(change.catalog());
        let name = new_relation_name(&catalog, &statement.view.name, false)?;
        if statement.if_not_exists && change.catalog().is_relation(&name) {
            let name = name_in_schema(&name);
            let message = format!("relation \"{name}\" already exists, skipping");
            return Ok(Some(Notice::new(message)));
        }
        let mut view = ddl::create_view(&statement.view, &catalog)?;
        view.calls = catalog.procedures();
        view.types = catalog.types();
        view.rows = match statement.with_data {
            true => ViewRows::Stored,
            false => ViewRows::Missing,
        };
        let reads_temporary =
            |read: &kiln_engine::ViewRead| change.catalog().is_temporary(&read.relation);
        if view.reads.iter().any(reads_temporary) {
            let message = "materialized views must not use temporary tables or views";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        change.create_table(schema_of_view(&view)?, 0, Vec::new())?;
        change.materialize_view(view)?;
        design::derive(change)?;
        Ok(None)
    })?;
    result.notices.extend(notice);
    Ok(result)
}

/// The table that keeps the rows of a view.
///
/// # Errors
/// 0A000 for a column of a type that tables do not have.
fn schema_of_view(view: &kiln_engine::View) -> Result<TableSchema> {
    let columns = view.columns.iter().map(|(name, data_type)| {
        if !data_type.is_storable() {
            return Err(unsupported(format!("a column of type {data_type}"), None));
        }
        Ok(Column {
            name: name.clone(),
            data_type: data_type.clone(),
            domain: None,
            not_null: false,
            default: None,
            generated: None,
        })
    });
    Ok(TableSchema {
        name: view.name.clone(),
        columns: columns.collect::<Result<_>>()?,
        primary_key: Vec::new(),
        primary_key_name: None,
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        unbuilt: Vec::new(),
        partition_by: None,
    })
}

/// What REFRESH changes of the catalog: whether the view has rows.
pub(super) fn refresh(
    definition: &Definition<'_>,
    statement: &RefreshMaterializedView,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let view = find(change, &statement.name)?;
        let rows = match statement.with_data {
            true => ViewRows::Stored,
            false => ViewRows::Missing,
        };
        if !statement.with_data {
            change.truncate_table(&view.name)?;
        }
        change.materialize_view(kiln_engine::View {
            rows,
            ..(*view).clone()
        })?;
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("REFRESH MATERIALIZED VIEW"))
}

/// The materialized view that a statement names.
fn find(change: &CatalogChange<'_>, written: &ObjectName) -> Result<Arc<kiln_engine::View>> {
    let name = relation_of(change.catalog(), written)?;
    find_in(change.catalog(), &name, written)
}

fn find_in(
    catalog: &kiln_engine::Catalog,
    name: &str,
    written: &ObjectName,
) -> Result<Arc<kiln_engine::View>> {
    if let Some(view) = catalog.materialized_view(name) {
        return Ok(view.clone());
    }
    let (state, message) = if catalog.table(name).is_some() {
        let message = format!("\"{}\" is not a materialized view", name_in_schema(name));
        (SqlState::FEATURE_NOT_SUPPORTED, message)
    } else if catalog.is_relation(name) {
        let message = format!(
            "\"{}\" is not a table or materialized view",
            name_in_schema(name)
        );
        (SqlState::WRONG_OBJECT_TYPE, message)
    } else {
        let message = format!("relation \"{}\" does not exist", written_name(written));
        (SqlState::UNDEFINED_TABLE, message)
    };
    Err(fail(state, message, position_of(written)))
}

impl Session {
    /// CREATE MATERIALIZED VIEW.
    pub(super) fn create_materialized_view(
        &mut self,
        tree: &Tree,
        create: &CreateMaterializedView,
        statement: &Statement,
    ) -> Result<StatementResult> {
        if !create.with_data {
            return self.define(tree, statement);
        }
        self.in_one_transaction(|session| {
            let defined = session.define(tree, statement)?;
            if !defined.notices.is_empty() {
                return Ok(defined);
            }
            let name = relation_of(&session.seen(), &create.view.name)?;
            let count = session.refill(&name)?;
            Ok(StatementResult::of_tag(&format!("SELECT {count}")))
        })
    }

    /// REFRESH MATERIALIZED VIEW.
    pub(super) fn refresh_materialized_view(
        &mut self,
        tree: &Tree,
        refresh: &RefreshMaterializedView,
        statement: &Statement,
    ) -> Result<StatementResult> {
        if !refresh.with_data && !refresh.concurrently {
            return self.define(tree, statement);
        }
        self.in_one_transaction(|session| {
            let seen = session.seen();
            let name = relation_of(&seen, &refresh.name)?;
            let view = find_in(&seen, &name, &refresh.name)?;
            let is_populated = view.rows == ViewRows::Stored;
            if refresh.concurrently && !is_populated {
                let message =
                    "CONCURRENTLY cannot be used when the materialized view is not populated";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            if !refresh.with_data {
                let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            if refresh.concurrently && !has_key(&seen, &name) {
                let message = format!(
                    "cannot refresh materialized view \"{}\" concurrently",
                    written_qualified(&name)
                );
                let hint = "Create a unique index with no WHERE clause on one or more columns of \
                            the materialized view.";
                let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
                return Err(Error::new(state, message).with_hint(hint));
            }
            if !is_populated {
                session.define(tree, statement)?;
            }
            session.refill(&name)?;
            Ok(StatementResult::of_tag("REFRESH MATERIALIZED VIEW"))
        })
    }

    /// Puts the rows that the query gives now in the place of those that are there; returns how
    /// many they are.
    fn refill(&mut self, name: &str) -> Result<u64> {
        let name = sql_name(name);
        // Of such an INSERT the compiler takes the view in FROM for its query.
        let texts = [
            format!("DELETE FROM {name}"),
            format!("INSERT INTO {name} SELECT * FROM {name}"),
        ];
        let mut count = 0;
        for text in &texts {
            let source = SourceStatement::from(text.as_str());
            let mut tree = parse::statement(&source)?;
            parse::refill(&mut tree);
            let seen = self.seen();
            let path = seen.path();
            let statement = Statement::analyse(Arc::new(tree), &source, Vec::new(), &seen, path)?;
            self.authorize(&statement)?;
            count = self
                .run_data(&statement, &[])?
                .row_count()
                .unwrap_or_default();
        }
        Ok(count)
    }
}

/// The name of a relation as messages have it that name its schema always.
fn written_qualified(name: &str) -> String {
    let schema = kiln_storage::qualified::schema_of(name);
    format!("{schema}.{}", name_in_schema(name))
}

/// Whether a table has a unique index of all its rows over columns alone.
fn has_key(catalog: &kiln_engine::Catalog, name: &str) -> bool {
    catalog.table(name).is_some_and(|table| {
        let schema = table.schema();
        let mut indexes = table.indexes().iter().map(|index| index.definition());
        indexes.any(|index| {
            let mut columns = index.columns.iter();
            index.unique
                && !index.partial
                && !index.columns.is_empty()
                && !is_auxiliary(table, index)
                && !columns.any(|column| schema.columns[column.index()].is_hidden())
        })
    })
}
