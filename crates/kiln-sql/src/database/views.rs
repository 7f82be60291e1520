//! CREATE VIEW, DROP VIEW and ALTER VIEW, and what goes with what a view depends on.

use kiln_engine::{Catalog, CatalogChange, Object};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;

use super::definition::{Definition, dropped};
use super::dependents::{Dependent, depended_on};
use super::design;
use super::objects::{self, give};
use super::result::{Notice, StatementResult};
use crate::catalog::{View, relation_of};
use crate::compile::{
    Position, ddl, fail, position_of, quote_identifier, short_name, unsupported, written_name,
};
use crate::parse::{AlterView, CreateView, Drop, NewName, ObjectChange};

/// What others may depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependency<'n> {
    Table(&'n str),
    View(&'n str),
    Sequence(&'n str),
    /// By its name, with the types of its arguments.
    Function(&'n str, &'n str),
}

impl Dependency<'_> {
    fn described(self) -> String {
        match self {
            Dependency::Table(name) => format!("table {}", short_name(name)),
            Dependency::View(name) => format!("view {}", short_name(name)),
            Dependency::Sequence(name) => format!("sequence {}", short_name(name)),
            Dependency::Function(name, types) => format!("function {name}({types})"),
        }
    }

    /// The views that depend on it, without those that do by way of others.
    fn views(self, catalog: &Catalog) -> Vec<String> {
        let depends = |view: &kiln_engine::View| match self {
            Dependency::Table(name) | Dependency::View(name) | Dependency::Sequence(name) => {
                view.reads(name)
            }
            Dependency::Function(name, _) => view.calls.iter().any(|called| called == name),
        };
        let views = catalog.views().filter(|view| depends(view));
        views.map(|view| view.name.clone()).collect()
    }
}

/// CREATE VIEW.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateView,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let catalog = View::of(change.catalog());
        let mut view = ddl::create_view(statement, &catalog)?;
        view.calls = catalog.procedures();
        view.types = catalog.types();
        change.create_view(view, statement.or_replace)?;
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("CREATE VIEW"))
}

/// ALTER VIEW.
pub(super) fn alter_view(
    definition: &Definition<'_>,
    statement: &AlterView,
) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("ALTER VIEW");
    let notice = definition.change_catalog(|change| {
        let position = position_of(&statement.name);
        let catalog = change.catalog();
        let name = relation_of(catalog, &statement.name)?;
        let shown = written_name(&statement.name);
        if catalog.view(&name).is_none() {
            let exists = catalog.table(&name).is_some() || catalog.sequence(&name).is_some();
            if statement.if_exists && !exists {
                let message = format!("relation \"{shown}\" does not exist, skipping");
                return Ok(Some(Notice::new(message)));
            }
            let (state, message) = match exists {
                true => (
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a view", name_in_schema(&name)),
                ),
                false => (
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{shown}\" does not exist"),
                ),
            };
            return Err(fail(state, message, position));
        }
        match &statement.change {
            ObjectChange::Owner(role) => give(change, Object::table(name), role)?,
            ObjectChange::Rename(to) => {
                let new = objects::renamed(catalog, &name, to)?;
                if new != name || matches!(to, NewName::Name(_)) {
                    rename_one(change, &name, &new, position)?;
                }
            }
            ObjectChange::Parameters(_) => {
                return Err(unsupported("a parameter of a view", position));
            }
        }
        design::derive(change)?;
        Ok(None)
    })?;
    result.notices.extend(notice);
    Ok(result)
}

/// Gives a view another name.
///
/// # Errors
/// 0A000 where others read from it, 42P07 when the name is taken.
pub(super) fn rename_one(
    change: &mut CatalogChange<'_>,
    name: &str,
    new: &str,
    position: Position,
) -> Result<()> {
    let readers = Dependency::View(name).views(change.catalog());
    if let Some(reader) = readers.first() {
        let what = format!("renaming a view from which others read ({reader})");
        return Err(unsupported(what, position)
            .with_hint("Create it under the new name, and replace those that read from it."));
    }
    change.rename_view(name, new)
}

/// DROP VIEW.
pub(super) fn drop(change: &mut CatalogChange<'_>, statement: &Drop) -> Result<Vec<Notice>> {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    for written in &statement.names {
        let position = position_of(written);
        let catalog = change.catalog();
        let Some(name) = dropped(catalog, statement, written, &mut notices)? else {
            continue;
        };
        let shown = name_in_schema(&name);
        let other = if catalog.table(&name).is_some() {
            Some(("TABLE", "a table"))
        } else if catalog.sequence(&name).is_some() {
            Some(("SEQUENCE", "a sequence"))
        } else {
            change.index_owner(&name).map(|_| ("INDEX", "an index"))
        };
        if catalog.view(&name).is_some() {
            if !found.contains(&name) {
                found.push(name);
            }
        } else if let Some((command, kind)) = other {
            let message = format!("\"{shown}\" is not a view");
            let hint = format!("Use DROP {command} to remove {kind}.");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position).with_hint(hint));
        } else if statement.if_exists {
            let message = format!("view \"{shown}\" does not exist, skipping");
            notices.push(Notice::new(message));
        } else {
            let message = format!("view \"{shown}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        }
    }
    let gone: Vec<Dependency<'_>> = found.iter().map(|name| Dependency::View(name)).collect();
    notices.extend(drop_dependents(change, &gone, statement.cascade)?);
    for name in &found {
        change.drop_view(name)?;
    }
    Ok(notices)
}

/// The views that use a column of a table, and those that read from them; each with what it depends
/// on.
pub(super) fn of_column(catalog: &Catalog, table: &str, column: &str) -> Vec<(Dependent, String)> {
    let mut found: Vec<String> = Vec::new();
    let mut depending = Vec::new();
    for view in catalog.views_of_column(table, column) {
        let (column, table) = (quote_identifier(column), short_name(table));
        let on = format!("column {column} of table {table}");
        depending.push((Dependent::View(view.name.clone()), on));
        found.push(view.name.clone());
    }
    add_readers(catalog, found, &mut depending);
    depending
}

/// The views that read from a view, by way of others too; each with what it depends on.
pub(super) fn readers(catalog: &Catalog, view: &str) -> Vec<(Dependent, String)> {
    let mut depending = Vec::new();
    add_readers(catalog, vec![view.to_owned()], &mut depending);
    depending
}

/// Adds the views that read from those of `found`, by way of others too.
fn add_readers(
    catalog: &Catalog,
    mut found: Vec<String>,
    depending: &mut Vec<(Dependent, String)>,
) {
    let mut at = 0;
    while at < found.len() {
        let read = Dependency::View(&found[at]);
        let on = format!("view {}", short_name(&found[at]));
        for view in read.views(catalog) {
            if !found.contains(&view) {
                depending.push((Dependent::View(view.clone()), on.clone()));
                found.push(view);
            }
        }
        at += 1;
    }
}

/// Refuses another name for what views read: their queries are kept as they were written.
///
/// # Errors
/// 0A000.
pub(super) fn refuse_rename(catalog: &Catalog, of: Dependency<'_>) -> Result<()> {
    match of.views(catalog).first() {
        None => Ok(()),
        Some(view) => Err(renamed_under(&of.described(), view)),
    }
}

/// As [`refuse_rename`], for a column of a table.
///
/// # Errors
/// 0A000.
pub(super) fn refuse_rename_of_column(catalog: &Catalog, table: &str, column: &str) -> Result<()> {
    match catalog.views_of_column(table, column).next() {
        None => Ok(()),
        Some(view) => Err(renamed_under(&format!("column {column}"), &view.name)),
    }
}

#[cold]
fn renamed_under(what: &str, view: &str) -> Error {
    let what = format!("renaming {what}, which view {view} uses,");
    unsupported(what, None).with_hint("Drop the view, and create it again after that.")
}

/// Removes the views that depend on what is about to go, but not those of `dropped` themselves.
/// Returns what there is to say.
///
/// # Errors
/// 2BP01 where there are such views, without `cascade`.
pub(super) fn drop_dependents(
    change: &mut CatalogChange<'_>,
    dropped: &[Dependency<'_>],
    cascade: bool,
) -> Result<Vec<Notice>> {
    let catalog = change.catalog();
    let mut gone: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    let mut add = |of: Dependency<'_>, gone: &mut Vec<String>| {
        for view in of.views(catalog) {
            let is_dropped = dropped.contains(&Dependency::View(&view));
            if !is_dropped && !gone.contains(&view) {
                lines.push(format!(
                    "view {} depends on {}",
                    short_name(&view),
                    of.described()
                ));
                gone.push(view);
            }
        }
    };
    dropped.iter().for_each(|of| add(*of, &mut gone));
    let mut at = 0;
    while at < gone.len() {
        let view = gone[at].clone();
        add(Dependency::View(&view), &mut gone);
        at += 1;
    }
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    if !cascade {
        let message = match dropped {
            [one] => format!(
                "cannot drop {} because other objects depend on it",
                one.described()
            ),
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
        return Err(depended_on(message, lines.join("\n"), hint));
    }
    for view in &gone {
        change.drop_view(view)?;
    }
    Ok(vec![Notice::new(match gone.as_slice() {
        [view] => format!("drop cascades to view {}", short_name(view)),
        views => format!("drop cascades to {} other objects", views.len()),
    })])
}
