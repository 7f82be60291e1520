//! CREATE TABLE, DROP TABLE, TRUNCATE and ANALYZE.

use kiln_engine::{Catalog, CatalogChange, OnCommit};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use sqlparser::ast;

use super::definition::{Definition, dropped, is_other_relation};
use super::dependents::{self, Dependent};
use super::design;
use super::like;
use super::result::{Notice, StatementResult};
use super::sequences;
use super::splits;
use super::views::{self, Dependency};
use crate::catalog::{View, relation_of};
use crate::compile::ddl::TableDeclaration;
use crate::compile::{ddl, fail, position_of, row_name, short_name, unsupported, written_name};
use crate::parse::{self, Drop};

/// CREATE TABLE.
pub(super) fn create_table(
    definition: &Definition<'_>,
    statement: &parse::CreateTable,
) -> Result<StatementResult> {
    let created = StatementResult::of_tag("CREATE TABLE");
    let is_new = definition.change_catalog(|change| {
        let expanded = like::expanded(statement, change.catalog())?;
        let table = expanded.as_ref().map_or(statement, |it| &it.table);
        let declaration = ddl::create_table(table, &View::of(change.catalog()))?;
        let Some(TableDeclaration {
            schema,
            indexes,
            sequences,
        }) = declaration
        else {
            return Ok(false);
        };
        for sequence in sequences {
            change.create_sequence(sequence, None)?;
        }
        let name = schema.name.clone();
        change.create_table(schema, 0, indexes)?;
        if let Some(on_commit) = &statement.table.on_commit {
            change.set_on_commit(&name, self::on_commit(on_commit));
        }
        if let Some(expanded) = &expanded {
            expanded.follow(change, &name)?;
        }
        design::derive(change)?;
        Ok(true)
    })?;
    if is_new {
        return Ok(created);
    }
    let name = row_name(&statement.table.name)?;
    Ok(created.with_notice(Notice::new(format!(
        "relation \"{name}\" already exists, skipping"
    ))))
}

pub(super) fn drop_tables(change: &mut CatalogChange<'_>, statement: &Drop) -> Result<Vec<Notice>> {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    for name in &statement.names {
        let position = position_of(name);
        let Some(name) = dropped(change.catalog(), statement, name, &mut notices)? else {
            continue;
        };
        let shown = name_in_schema(&name);
        if change.catalog().materialized_view(&name).is_some() {
            return Err(views::is_materialized(&name, "a table", position));
        }
        if change.catalog().table(&name).is_some() {
            if !found.contains(&name) {
                found.push(name);
            }
        } else if statement.if_exists && !is_other_relation(change, &name) {
            notices.push(Notice::new(format!(
                "table \"{shown}\" does not exist, skipping"
            )));
        } else if change.index_owner(&name).is_some() {
            let message = format!("\"{shown}\" is not a table");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("Use DROP INDEX to remove an index."));
        } else if change.catalog().sequence(&name).is_some() {
            let message = format!("\"{shown}\" is not a table");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("Use DROP SEQUENCE to remove a sequence."));
        } else if change.catalog().view(&name).is_some() {
            let message = format!("\"{shown}\" is not a table");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("Use DROP VIEW to remove a view."));
        } else {
            let message = format!("table \"{shown}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        }
    }
    notices.extend(drop_all_tables(change, &found, statement.cascade)?);
    Ok(notices)
}

/// Removes tables, and what depends on them. Returns what there is to say.
///
/// # Errors
/// 2BP01 where something else depends on them, without `cascade`.
pub(super) fn drop_all_tables(
    change: &mut CatalogChange<'_>,
    found: &[String],
    cascade: bool,
) -> Result<Vec<Notice>> {
    let mut depending = Vec::new();
    for name in found {
        let references = dependents::references(change, name, |_| true).into_iter();
        let references = references.map(|it| (it, format!("table {}", short_name(name))));
        depending.extend(references);
        depending.extend(sequences::drawing_from(change.catalog(), name));
    }
    depending.retain(|(it, _)| !found.iter().any(|name| name == it.table()));
    if !depending.is_empty() && !cascade {
        let what = match found {
            [one] => format!("table {}", short_name(one)),
            _ => String::new(),
        };
        return Err(dependents::refusal(&what, &depending));
    }
    let depending: Vec<Dependent> = depending.into_iter().map(|(it, _)| it).collect();
    let mut notices = Vec::from_iter(dependents::cascade(change, &depending)?);
    let dropped: Vec<Dependency<'_>> = found.iter().map(|name| Dependency::Table(name)).collect();
    notices.extend(views::drop_dependents(change, &dropped, cascade)?);
    for name in found {
        change.drop_table(name)?;
    }
    Ok(notices)
}

/// A table other than those of `except` that refers to the table called `name`, and by which
/// constraint.
fn referring(catalog: &Catalog, name: &str, except: &[String]) -> Option<(String, String)> {
    catalog.tables().find_map(|(other, table)| {
        if other == name || except.iter().any(|known| known == other) {
            return None;
        }
        let mut keys = table.schema().foreign_keys.iter();
        let key = keys.find(|key| key.table == name)?;
        Some((other.to_owned(), key.name.clone()))
    })
}

/// The tables that TRUNCATE empties, those that CASCADE adds included.
///
/// # Errors
/// 42P01; 0A000 for a table that another one refers to, without CASCADE.
pub(super) fn truncated(catalog: &Catalog, statement: &ast::Truncate) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for target in &statement.table_names {
        let position = position_of(&target.name);
        let name = relation_of(catalog, &target.name)?;
        if catalog.view(&name).is_some() || catalog.materialized_view(&name).is_some() {
            let message = format!("\"{}\" is not a table", name_in_schema(&name));
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
        }
        if catalog.table(&name).is_none() {
            let message = format!("relation \"{}\" does not exist", written_name(&target.name));
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let cascade = matches!(statement.cascade, Some(ast::CascadeOption::Cascade));
    let mut at = 0;
    while at < names.len() {
        while let Some((other, _)) = referring(catalog, &names[at], &names) {
            if !cascade {
                let name = &names[at];
                return Err(Error::unsupported(
                    "cannot truncate a table referenced in a foreign key constraint",
                )
                .with_detail(format!("Table \"{other}\" references \"{name}\"."))
                .with_hint(format!(
                    "Truncate table \"{other}\" at the same time, or use TRUNCATE ... CASCADE."
                )));
            }
            names.push(other);
        }
        at += 1;
    }
    Ok(names)
}

/// The tables in an order in which their rows can go one table after the other: those that refer to
/// others first. In a circle any is first.
pub(super) fn referring_first(catalog: &Catalog, mut names: Vec<String>) -> Vec<String> {
    let mut ordered = Vec::with_capacity(names.len());
    while !names.is_empty() {
        let is_referred_to = |name: &String| {
            let mut others = catalog.referencing(name);
            others.any(|other| other != name && names.iter().any(|known| known == other))
        };
        let free = names.iter().position(|name| !is_referred_to(name));
        ordered.push(names.remove(free.unwrap_or(0)));
    }
    ordered
}

/// TRUNCATE.
pub(super) fn truncate(
    definition: &Definition<'_>,
    statement: &ast::Truncate,
) -> Result<StatementResult> {
    if statement.partitions.is_some() || statement.on_cluster.is_some() {
        return Err(unsupported("this form of TRUNCATE", None));
    }
    definition.change_catalog(|change| {
        let restarts = matches!(
            statement.identity,
            Some(ast::TruncateIdentityOption::Restart)
        );
        for name in truncated(change.catalog(), statement)? {
            change.truncate_table(&name)?;
            if restarts {
                change.restart_owned_sequences(&name)?;
            }
        }
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("TRUNCATE TABLE"))
}

/// ANALYZE: derives anew which columns of tables are split, from the calls that were counted.
pub(super) fn analyze(
    definition: &Definition<'_>,
    names: &[ast::ObjectName],
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let mut tables = Vec::new();
        for name in names {
            let (table, position) = (relation_of(change.catalog(), name)?, position_of(name));
            if change.catalog().table(&table).is_none() {
                let message = format!("relation \"{}\" does not exist", written_name(name));
                return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
            }
            tables.push(table);
        }
        match tables.is_empty() {
            true => splits::analyse_all(change),
            false => splits::analyse(change, &tables),
        }
    })?;
    Ok(StatementResult::of_tag("ANALYZE"))
}

/// What becomes of a temporary table when a transaction commits.
fn on_commit(written: &ast::OnCommit) -> OnCommit {
    match written {
        ast::OnCommit::PreserveRows => OnCommit::PreserveRows,
        ast::OnCommit::DeleteRows => OnCommit::DeleteRows,
        ast::OnCommit::Drop => OnCommit::Drop,
    }
}
