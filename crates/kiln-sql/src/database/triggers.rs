//! Triggers come, change and go. They are a part of their tables, so that what was compiled for a
//! table follows.

use kiln_engine::{Catalog, CatalogChange};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::Trigger;
use kiln_storage::table::Table;
use sqlparser::ast::ObjectName;

use super::definition::Definition;
use super::dependents::Dependent;
use super::design;
use super::result::{Notice, StatementResult};
use crate::catalog::{View, relation_of};
use crate::compile::ddl::{self, missing_trigger};
use crate::compile::{fail, name_of, position_of, written_name};
use crate::parse::{CreateTrigger, DropTrigger, RenameTrigger, SwitchedTrigger, WhichTrigger};

/// CREATE TRIGGER.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateTrigger,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let table = find(change.catalog(), &statement.table)?;
        let trigger = ddl::create_trigger(statement, &table, &View::of(change.catalog()))?;
        let name = &table.schema().name;
        let known = table.schema().triggers.iter();
        if known.clone().any(|known| known.name == trigger.name) && !statement.or_replace {
            return Err(duplicate(&trigger.name, name));
        }
        change.alter_schema(name, |schema| {
            schema.triggers.retain(|known| known.name != trigger.name);
            schema.triggers.push(trigger.clone());
            sort(&mut schema.triggers);
        })?;
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("CREATE TRIGGER"))
}

/// Triggers fire by their names.
fn sort(triggers: &mut [Trigger]) {
    triggers.sort_by(|one, other| one.name.cmp(&other.name));
}

fn duplicate(name: &str, table: &str) -> Error {
    let table = name_in_schema(table);
    let message = format!("trigger \"{name}\" for relation \"{table}\" already exists");
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}

/// The table of a trigger.
fn find(catalog: &Catalog, written: &ObjectName) -> Result<Arc<Table>> {
    let (qualified, position) = (relation_of(catalog, written)?, position_of(written));
    let name = name_in_schema(&qualified);
    if catalog.materialized_view(&qualified).is_some() {
        let message = format!("relation \"{name}\" cannot have triggers");
        let detail = "This operation is not supported for materialized views.";
        return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, None).with_detail(detail));
    }
    if let Some(table) = catalog.table(&qualified) {
        return Ok(table.clone());
    }
    if catalog.view(&qualified).is_some() {
        let message = format!("\"{name}\" is a view");
        let detail = "Views cannot have row-level BEFORE or AFTER triggers.";
        return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, None).with_detail(detail));
    }
    if catalog.sequence(&qualified).is_some() {
        let message = format!("relation \"{name}\" cannot have triggers");
        let detail = "This operation is not supported for sequences.";
        return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, None).with_detail(detail));
    }
    let name = written_name(written);
    let message = format!("relation \"{name}\" does not exist");
    Err(fail(SqlState::UNDEFINED_TABLE, message, position))
}

/// DROP TRIGGER.
pub(super) fn drop(
    definition: &Definition<'_>,
    statement: &DropTrigger,
) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("DROP TRIGGER");
    result.notices = definition.change_catalog(|change| {
        let table = match find(change.catalog(), &statement.table) {
            Ok(table) => table,
            Err(error) if statement.if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
                let message = format!("{}, skipping", error.message());
                return Ok(vec![Notice::new(message)]);
            }
            Err(error) => return Err(error),
        };
        let (name, table) = (name_of(&statement.name), table.schema().name.clone());
        if !has(change.catalog(), &table, &name) {
            if statement.if_exists {
                let table = name_in_schema(&table);
                let message =
                    format!("trigger \"{name}\" for relation \"{table}\" does not exist, skipping");
                return Ok(vec![Notice::new(message)]);
            }
            return Err(missing_trigger(&name, &table));
        }
        change.alter_schema(&table, |schema| {
            schema.triggers.retain(|it| it.name != name)
        })?;
        design::derive(change)?;
        Ok(Vec::new())
    })?;
    Ok(result)
}

fn has(catalog: &Catalog, table: &str, name: &str) -> bool {
    let table = catalog.table(table);
    table.is_some_and(|table| table.schema().triggers.iter().any(|it| it.name == name))
}

/// ALTER TRIGGER … RENAME.
pub(super) fn rename(
    definition: &Definition<'_>,
    statement: &RenameTrigger,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let table = find(change.catalog(), &statement.table)?;
        let table = table.schema().name.clone();
        let (from, to) = (name_of(&statement.name), name_of(&statement.to));
        if has(change.catalog(), &table, &to) {
            return Err(duplicate(&to, &table));
        }
        if !has(change.catalog(), &table, &from) {
            return Err(missing_trigger(&from, &table));
        }
        change.alter_schema(&table, |schema| {
            let meant = schema.triggers.iter_mut().filter(|it| it.name == from);
            meant.for_each(|it| it.name.clone_from(&to));
            sort(&mut schema.triggers);
        })?;
        change.renumber_trigger(&table, &from, &to);
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("ALTER TRIGGER"))
}

/// Switches triggers of a table that is altered on or off.
///
/// # Errors
/// 42704 for a trigger that there is not; 0A000 where the checks of foreign keys would be switched
/// off.
pub(super) fn switch(
    triggers: &mut [Trigger],
    table: &str,
    has_foreign_keys: bool,
    switched: &SwitchedTrigger,
) -> Result<()> {
    let is_enabled = switched.is_enabled;
    match &switched.which {
        WhichTrigger::Named(name) => {
            let name = name_of(name);
            let mut triggers = triggers.iter_mut();
            let trigger = triggers.find(|it| it.name == name);
            trigger
                .ok_or_else(|| missing_trigger(&name, table))?
                .is_enabled = is_enabled;
        }
        WhichTrigger::All if has_foreign_keys && !is_enabled => {
            let message =
                "disabling the checks of foreign keys (DISABLE TRIGGER ALL) is not supported";
            return Err(Error::unsupported(message).with_hint("Use DISABLE TRIGGER USER."));
        }
        WhichTrigger::All | WhichTrigger::User => {
            triggers
                .iter_mut()
                .for_each(|it| it.is_enabled = is_enabled);
        }
    }
    Ok(())
}

/// The triggers that call a function.
pub(super) fn of_function(catalog: &Catalog, function: &str) -> Vec<Dependent> {
    let mut found = Vec::new();
    for (table, known) in catalog.tables() {
        let triggers = known.schema().triggers.iter();
        let triggers = triggers.filter(|trigger| trigger.function == function);
        found.extend(triggers.map(|trigger| Dependent::Trigger {
            table: table.to_owned(),
            name: trigger.name.clone(),
        }));
    }
    found
}

/// Has the triggers of all tables call a function by another name.
pub(super) fn rename_function(change: &mut CatalogChange<'_>, from: &str, to: &str) -> Result<()> {
    for dependent in of_function(change.catalog(), from) {
        change.alter_schema(dependent.table(), |schema| {
            let triggers = schema.triggers.iter_mut();
            let meant = triggers.filter(|trigger| trigger.function == from);
            meant.for_each(|trigger| to.clone_into(&mut trigger.function));
        })?;
    }
    Ok(())
}
