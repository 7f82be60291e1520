//! Statements that define sequences, and what depends on these.

use kiln_engine::{Catalog, CatalogChange};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::ColumnId;
use kiln_storage::sequence::{Sequence, SequenceOwner};

use super::definition::{Definition, dropped, is_other_relation};
use super::dependents::{self, Dependent};
use super::design;
use super::result::{Notice, StatementResult};
use super::views::{self, Dependency};
use crate::catalog::{View, relation_of, sequences_of, sequences_of_default};
use crate::compile::{
    ddl, fail, new_relation_name, position_of, row_name, short_name, unsupported, written_name,
};
use crate::parse::{AlterSequence, CreateSequence, Drop};

/// CREATE SEQUENCE.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateSequence,
) -> Result<StatementResult> {
    let created = StatementResult::of_tag("CREATE SEQUENCE");
    let shown = row_name(&statement.name)?;
    let is_new = definition.change_catalog(|change| {
        let view = View::of(change.catalog());
        let name = new_relation_name(&view, &statement.name, statement.is_temporary)?;
        if is_relation(change, &name) {
            if statement.if_not_exists {
                return Ok(false);
            }
            let message = format!("relation \"{shown}\" already exists");
            let position = position_of(&statement.name);
            return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
        }
        let (mut made, restart) = ddl::created_sequence(name.clone(), &statement.options)?;
        if let Some(parts) = &statement.options.owned_by {
            made.owner = ddl::owner_of(parts, &View::of(change.catalog()))?;
        }
        change.create_sequence(made, restart)?;
        design::derive(change)?;
        Ok(true)
    })?;
    if is_new {
        return Ok(created);
    }
    Ok(created.with_notice(Notice::new(format!(
        "relation \"{shown}\" already exists, skipping"
    ))))
}

/// ALTER SEQUENCE.
pub(super) fn alter(
    definition: &Definition<'_>,
    statement: &AlterSequence,
) -> Result<StatementResult> {
    let altered = StatementResult::of_tag("ALTER SEQUENCE");
    let shown = written_name(&statement.name);
    let is_there = definition.change_catalog(|change| {
        let name = relation_of(change.catalog(), &statement.name)?;
        let position = position_of(&statement.name);
        let Some(old) = change.catalog().sequence(&name).cloned() else {
            if is_relation(change, &name) {
                let message = format!("\"{}\" is not a sequence", name_in_schema(&name));
                return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
            }
            if statement.if_exists {
                return Ok(false);
            }
            let message = format!("relation \"{shown}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        };
        let (last, _) = change.sequence_state(&name)?;
        let (mut new, restart) = ddl::altered_sequence(old.definition(), last, &statement.options)?;
        if let Some(parts) = &statement.options.owned_by {
            let owner = ddl::owner_of(parts, &View::of(change.catalog()))?;
            if let Some(SequenceOwner {
                table,
                identity: Some(_),
                ..
            }) = &new.owner
            {
                let message = "cannot change ownership of identity sequence";
                let detail = format!("Sequence \"{name}\" is linked to table \"{table}\".");
                let error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                return Err(error.with_detail(detail));
            }
            new.owner = owner;
        }
        change.alter_sequence(new, restart)?;
        design::derive(change)?;
        Ok(true)
    })?;
    if is_there {
        return Ok(altered);
    }
    Ok(altered.with_notice(Notice::new(format!(
        "relation \"{shown}\" does not exist, skipping"
    ))))
}

/// Whether a table, an index or a sequence has this name.
fn is_relation(change: &CatalogChange<'_>, name: &str) -> bool {
    change.catalog().sequence(name).is_some()
        || change.catalog().table(name).is_some()
        || change.index_owner(name).is_some()
}

/// DROP SEQUENCE.
pub(super) fn drop(change: &mut CatalogChange<'_>, statement: &Drop) -> Result<Vec<Notice>> {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    for written in &statement.names {
        let position = position_of(written);
        let Some(name) = dropped(change.catalog(), statement, written, &mut notices)? else {
            continue;
        };
        if change.catalog().sequence(&name).is_some() {
            if !found.contains(&name) {
                found.push(name);
            }
        } else if is_other_relation(change, &name) {
            if change.catalog().materialized_view(&name).is_some() {
                return Err(views::is_materialized(&name, "a sequence", position));
            }
            let kind = match (change.catalog().table(&name), change.catalog().view(&name)) {
                (Some(_), _) => ("TABLE", "a table"),
                (_, Some(_)) => ("VIEW", "a view"),
                _ => ("INDEX", "an index"),
            };
            let message = format!("\"{}\" is not a sequence", name_in_schema(&name));
            let hint = format!("Use DROP {} to remove {}.", kind.0, kind.1);
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position).with_hint(hint));
        } else if statement.if_exists {
            let message = format!(
                "sequence \"{}\" does not exist, skipping",
                name_in_schema(&name)
            );
            notices.push(Notice::new(message));
        } else {
            let message = format!("sequence \"{}\" does not exist", name_in_schema(&name));
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        }
    }
    notices.extend(drop_all(change, &found, statement.cascade)?);
    Ok(notices)
}

/// Removes sequences, and what depends on them. Returns what there is to say.
///
/// # Errors
/// 2BP01 where something else depends on them, without `cascade`; for the sequence of an identity
/// column.
pub(super) fn drop_all(
    change: &mut CatalogChange<'_>,
    found: &[String],
    cascade: bool,
) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    let mut depending = Vec::new();
    for name in found {
        let Some(sequence) = change.catalog().sequence(name) else {
            continue;
        };
        if let Some(SequenceOwner {
            table,
            column,
            identity: Some(_),
        }) = &sequence.definition().owner
        {
            let column = format!("column {column} of table {}", short_name(table));
            return Err(Error::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!(
                    "cannot drop sequence {} because {column} requires it",
                    short_name(name)
                ),
            )
            .with_hint(format!("You can drop {column} instead.")));
        }
        if let Some(domain) = drawing_domain(change.catalog(), name) {
            let what = format!("dropping sequence {name}, from which domain {domain} draws,");
            return Err(unsupported(what, None));
        }
        let defaults = dependents(change.catalog(), name, None).into_iter();
        depending.extend(defaults.map(|it| (it, format!("sequence {}", short_name(name)))));
    }
    if !depending.is_empty() && !cascade {
        let what = match found {
            [one] => format!("sequence {}", short_name(one)),
            _ => String::new(),
        };
        return Err(dependents::refusal(&what, &depending));
    }
    let dropped: Vec<Dependency<'_>> = found
        .iter()
        .map(|name| Dependency::Sequence(name))
        .collect();
    notices.extend(views::drop_dependents(change, &dropped, cascade)?);
    let depending: Vec<Dependent> = depending.into_iter().map(|(it, _)| it).collect();
    notices.extend(dependents::cascade(change, &depending)?);
    for name in found {
        change.drop_sequence(name)?;
    }
    Ok(notices)
}

/// The default values of tables other than `except` that name a sequence.
pub(super) fn dependents(
    catalog: &Catalog,
    sequence: &str,
    except: Option<&str>,
) -> Vec<Dependent> {
    let mut found = Vec::new();
    for (table, columns) in catalog.tables() {
        if Some(table) == except {
            continue;
        }
        for (at, column) in columns.schema().columns.iter().enumerate() {
            if sequences_of_default(catalog, column).contains(sequence) {
                found.push(Dependent::Default {
                    table: table.to_owned(),
                    column: ColumnId(at as u16),
                    name: column.name.clone(),
                });
            }
        }
    }
    found
}

/// A domain whose default value names a sequence.
fn drawing_domain(catalog: &Catalog, sequence: &str) -> Option<String> {
    let mut domains = catalog.domains();
    let found = domains.find(|it| sequences_of(catalog, it.default.as_ref()).contains(sequence));
    found.map(|domain| domain.name.clone())
}

/// The default values of other tables that draw from a sequence of this one, each with that.
pub(super) fn drawing_from(catalog: &Catalog, table: &str) -> Vec<(Dependent, String)> {
    let sequences = catalog.owned_sequences(table).flat_map(|sequence| {
        let name = sequence.name();
        let others = dependents(catalog, name, Some(table)).into_iter();
        others.map(move |it| (it, format!("sequence {}", short_name(name))))
    });
    sequences.collect()
}

/// The sequence of an identity column.
pub(super) fn identity_of(catalog: &Catalog, table: &str, column: &str) -> Option<Arc<Sequence>> {
    let mut owned = catalog.owned_sequences(table);
    let found = owned.find(|sequence| {
        let owner = sequence.definition().owner.as_ref();
        owner.is_some_and(|owner| owner.column == column && owner.identity.is_some())
    });
    found.cloned()
}
