//! CREATE INDEX and DROP INDEX.

use kiln_engine::CatalogChange;
use kiln_storage::error::{Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, ForeignKey, IndexDefinition};
use kiln_storage::table::Table;
use sqlparser::ast;

use super::definition::{Definition, dropped};
use super::dependents::{self, Dependent, depended_on};
use super::design;
use super::follow;
use super::result::{Notice, StatementResult};
use super::views;
use crate::catalog::{View, is_auxiliary};
use crate::compile::ddl::{self, Draft, IndexDeclaration};
use crate::compile::{fail, position_of, row_name, short_name};
use crate::parse::Drop;

/// CREATE INDEX.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &ast::CreateIndex,
) -> Result<StatementResult> {
    let created = StatementResult::of_tag("CREATE INDEX");
    let is_new = definition.change_catalog(|change| {
        let declaration = ddl::create_index(statement, &View::of(change.catalog()))?;
        let Some(declaration) = declaration else {
            return Ok(false);
        };
        add(change, declaration)?;
        design::derive(change)?;
        Ok(true)
    })?;
    if is_new {
        return Ok(created);
    }
    let name = statement
        .name
        .as_ref()
        .map(row_name)
        .transpose()?
        .unwrap_or_default();
    Ok(created.with_notice(Notice::new(format!(
        "relation \"{name}\" already exists, skipping"
    ))))
}

/// The part of DROP INDEX that comes before the design is derived anew.
pub(super) fn drop(change: &mut CatalogChange<'_>, statement: &Drop) -> Result<Vec<Notice>> {
    let (mut notices, mut gone) = (Vec::new(), Vec::new());
    for name in &statement.names {
        let position = position_of(name);
        let Some(name) = dropped(change.catalog(), statement, name, &mut notices)? else {
            continue;
        };
        let shown = name_in_schema(&name);
        let owner = change.index_owner(&name).map(str::to_owned);
        let table = owner.and_then(|owner| change.catalog().table(&owner).cloned());
        let definition = table.as_ref().and_then(|table| {
            let indexes = table.indexes().iter().map(|index| index.definition());
            let unbuilt = table.schema().unbuilt.iter();
            let mut indexes = indexes.chain(unbuilt.map(|index| &index.definition));
            indexes.find(|known| known.name == shown && !is_auxiliary(table, known))
        });
        let (Some(table), Some(definition)) = (&table, definition) else {
            if change.catalog().materialized_view(&name).is_some() {
                return Err(views::is_materialized(&name, "an index", position));
            }
            if change.catalog().table(&name).is_some() {
                let message = format!("\"{shown}\" is not an index");
                return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                    .with_hint("Use DROP TABLE to remove a table."));
            }
            if change.catalog().view(&name).is_some() {
                let message = format!("\"{shown}\" is not an index");
                return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                    .with_hint("Use DROP VIEW to remove a view."));
            }
            if change.catalog().sequence(&name).is_some() {
                let message = format!("\"{shown}\" is not an index");
                return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                    .with_hint("Use DROP SEQUENCE to remove a sequence."));
            }
            if statement.if_exists {
                notices.push(Notice::new(format!(
                    "index \"{shown}\" does not exist, skipping"
                )));
                continue;
            }
            let message = format!("index \"{shown}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_OBJECT, message, position));
        };
        let table_name = &table.schema().name;
        if definition.constraint {
            let on = short_name(table_name);
            return Err(depended_on(
                format!(
                    "cannot drop index {} because constraint {shown} on table {on} requires it",
                    short_name(&name)
                ),
                format!("The index belongs to constraint {shown}."),
                &format!("You can drop constraint {shown} on table {on} instead."),
            ));
        }
        let depending: Vec<Dependent> = match definition.unique {
            true => needing(change, table, definition),
            false => Vec::new(),
        };
        if !depending.is_empty() && !statement.cascade {
            let depending = depending.into_iter();
            let what = format!("index {}", short_name(&name));
            let depending: Vec<_> = depending.map(|it| (it, what.clone())).collect();
            return Err(dependents::refusal(&what, &depending));
        }
        notices.extend(dependents::cascade(change, &depending)?);
        for auxiliary in table.indexes().iter().map(|index| index.definition()) {
            let derived = auxiliary.kind.is_hash()
                && is_auxiliary(table, auxiliary)
                && auxiliary.name.strip_suffix("_hash") == Some(shown);
            if derived {
                change.drop_index(table_name, &auxiliary.name)?;
            }
        }
        let is_unbuilt = !table
            .indexes()
            .iter()
            .any(|index| index.definition().name == shown);
        match is_unbuilt || has_hidden(table, definition) {
            true => gone.push((table_name.clone(), shown.to_owned())),
            false => {
                change.drop_index(table_name, shown)?;
            }
        }
    }
    follow::remove_indexes(change, &gone)?;
    Ok(notices)
}

/// Adds an index to a table, whose rows get the columns that the index needs.
pub(super) fn add(change: &mut CatalogChange<'_>, declaration: IndexDeclaration) -> Result<()> {
    let table = declaration.table.clone();
    if declaration.hidden.is_empty() && declaration.is_built() {
        return change
            .add_index(&table.schema().name, declaration.definition)
            .map(|_| ());
    }
    let mut draft = Draft::of(&table, |index| is_auxiliary(&table, index));
    draft.add_index(declaration);
    follow::follow(change, &mut draft)
}

fn has_hidden(table: &Table, definition: &IndexDefinition) -> bool {
    let schema = table.schema();
    let mut columns = definition.columns.iter();
    columns.any(|column| schema.columns[column.index()].is_hidden())
}

/// The foreign keys that only this unique index backs.
fn needing(change: &CatalogChange<'_>, table: &Table, index: &IndexDefinition) -> Vec<Dependent> {
    let same = |columns: &[ColumnId], key: &ForeignKey| {
        columns.len() == key.referenced.len()
            && columns.iter().all(|column| key.referenced.contains(column))
    };
    dependents::references(change, &table.schema().name, |key| {
        let mut others = table.indexes().iter().map(|known| known.definition());
        same(&index.columns, key)
            && !others.any(|known| {
                known.unique
                    && known.name != index.name
                    && !is_auxiliary(table, known)
                    && same(&known.columns, key)
            })
    })
}
