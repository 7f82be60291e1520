//! CREATE VIEW.

use std::collections::BTreeSet;

use kiln_engine::{View, ViewRead};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;

use super::super::bound::Kind;
use super::super::dml::Updatability;
use super::super::view::Recorded;
use super::super::{
    CatalogView, Compiler, Position, dml, fail, name_of, new_relation_name, position_of, scratch,
    unsupported,
};
use crate::parse::{CreateView, Star};

/// The view that CREATE VIEW makes, but for the functions that it calls.
///
/// # Errors
/// PostgreSQL's: 42P07 when another relation has the name, 42P16 where the columns of a view that
/// is replaced would be others, 42P17 for a view that reads from itself, 42701 for a column twice;
/// 0A000 for what is not supported.
pub fn create_view(statement: &CreateView, catalog: &dyn CatalogView) -> Result<View> {
    let position = position_of(&statement.name);
    let name = new_relation_name(catalog, &statement.name, statement.is_temporary)?;
    let old = catalog.view(&name).filter(|_| statement.or_replace);
    if old.is_none() && super::names::is_relation(catalog, &name) {
        return Err(name_taken(&name, catalog, statement.or_replace, position));
    }
    let mut compiler = scratch(catalog);
    compiler.recorded = Some(Recorded::default());
    let mut bound = compiler.bind_query(&statement.query)?;
    bound.decide_outputs()?;
    let recorded = compiler.recorded.take().unwrap_or_default();
    let mut columns: Vec<_> = bound
        .columns
        .iter()
        .map(|column| (column.name.clone(), column.data_type.clone()))
        .collect();
    if statement.columns.len() > columns.len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(fail(SqlState::SYNTAX_ERROR, message, None));
    }
    for (column, name) in columns.iter_mut().zip(&statement.columns) {
        column.0 = name_of(name);
    }
    let mut names = BTreeSet::new();
    for (name, data_type) in &columns {
        let Some(of) = data_type.row() else { continue };
        if of.is_record() {
            let message = format!("column \"{name}\" has pseudo-type {data_type}");
            return Err(fail(SqlState::INVALID_TABLE_DEFINITION, message, None));
        }
        if catalog.composite(of.name()).as_ref() != Some(of) {
            let what = format!("a view's column of the type of a table's rows ({data_type})");
            return Err(unsupported(what, None));
        }
    }
    if let Some((column, _)) = columns.iter().find(|(name, _)| !names.insert(name.clone())) {
        let message = format!("column \"{column}\" specified more than once");
        return Err(fail(SqlState::DUPLICATE_COLUMN, message, None));
    }
    if let Some(old) = &old {
        check_columns(old, &columns)?;
        if reads_from(catalog, &recorded.relations, &name) {
            let message = format!("infinite recursion detected in rules for relation \"{name}\"");
            return Err(fail(SqlState::INVALID_OBJECT_DEFINITION, message, None));
        }
    }
    let view = View {
        query: without_stars(&statement.text, &statement.stars, &recorded.stars)?,
        reads: reads(&compiler, &bound, recorded.relations),
        path: catalog.path(),
        name,
        columns,
        rows: kiln_engine::ViewRows::Computed,
        check_option: statement.check_option,
        calls: Vec::new(),
        types: Vec::new(),
    };
    if view.check_option.is_some()
        && let Updatability::Not(reason) = dml::updatability(catalog, &view)?
    {
        let message =
            "WITH CHECK OPTION is supported only on automatically updatable views".to_owned();
        return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, None).with_hint(reason));
    }
    Ok(view)
}

fn name_taken(name: &str, catalog: &dyn CatalogView, replaces: bool, position: Position) -> Error {
    let is_view = catalog.view(name).is_some();
    let name = name_in_schema(name);
    match replaces && !is_view {
        true => {
            let message = format!("\"{name}\" is not a view");
            fail(SqlState::WRONG_OBJECT_TYPE, message, position)
        }
        false => {
            let message = format!("relation \"{name}\" already exists");
            fail(SqlState::DUPLICATE_TABLE, message, position)
        }
    }
}

/// Whether the columns of a view that takes the place of `old` begin with those of it.
fn check_columns(old: &View, new: &[(String, kiln_storage::types::DataType)]) -> Result<()> {
    let refused = |message: String| Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
    if new.len() < old.columns.len() {
        return refused("cannot drop columns from view".to_owned());
    }
    for ((old, old_type), (new, new_type)) in old.columns.iter().zip(new) {
        if old != new {
            let message = format!("cannot change name of view column \"{old}\" to \"{new}\"");
            return refused(message).map_err(|error| {
                error.with_hint(
                    "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
                )
            });
        }
        if old_type != new_type {
            return refused(format!(
                "cannot change data type of view column \"{old}\" from {old_type} to {new_type}"
            ));
        }
    }
    Ok(())
}

/// Whether one of `relations` is the view called `name`, or reads from it.
fn reads_from(catalog: &dyn CatalogView, relations: &[String], name: &str) -> bool {
    let mut open: Vec<String> = relations.to_vec();
    let mut seen = BTreeSet::new();
    while let Some(relation) = open.pop() {
        if relation == name {
            return true;
        }
        if seen.insert(relation.clone())
            && let Some(view) = catalog.view(&relation)
        {
            open.extend(view.reads.iter().map(|read| read.relation.clone()));
        }
    }
    false
}

/// What a query names, with the columns of tables that it uses.
fn reads(
    compiler: &Compiler<'_>,
    bound: &super::super::bound::BoundQuery,
    relations: Vec<String>,
) -> Vec<ViewRead> {
    let mut used = BTreeSet::new();
    bound.visit(&mut |bound| {
        if let Kind::Column { source, column } = &bound.kind
            && let Some(table) = &compiler.source(*source).table
        {
            let schema = table.schema();
            let column = schema.columns[usize::from(*column)].name.clone();
            used.insert((schema.name.clone(), column));
        }
    });
    let of = |relation: String| {
        let columns = used.iter().filter(|(table, _)| *table == relation);
        ViewRead {
            columns: columns.map(|(_, column)| column.clone()).collect(),
            relation,
        }
    };
    relations.into_iter().map(of).collect()
}

/// The text of a query with columns in the place of each `*`, so that a table may get columns that
/// a view does not show.
fn without_stars(text: &str, stars: &[Star], found: &[(Position, String)]) -> Result<String> {
    let mut changed = text.to_owned();
    for star in stars.iter().rev() {
        let at = Some((star.position.line, star.position.column));
        let Some((_, columns)) = found.iter().find(|(position, _)| *position == at) else {
            continue;
        };
        if columns.is_empty() {
            return Err(unsupported("a view of rows without columns", at));
        }
        let columns = match star.is_table {
            true => format!("SELECT {columns} FROM"),
            false => columns.clone(),
        };
        changed.replace_range(star.bytes.clone(), &columns);
    }
    Ok(changed)
}
