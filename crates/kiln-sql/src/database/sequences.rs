//! Statements that define sequences, and those on tables as far as they are about sequences.

use std::collections::BTreeSet;

use kiln_engine::{Catalog, CatalogChange};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{Column, ColumnId};
use kiln_storage::sequence::{Sequence, SequenceDefinition, SequenceOwner};
use kiln_storage::table::Table;
use sqlparser::ast::Ident;

use super::definition::{Definition, depended_on};
use super::design;
use super::result::{Notice, StatementResult};
use super::view::View;
use crate::compile::{ddl, fail, name_of, object_name, position_of, relation_name, unsupported};
use crate::parse::{AlterSequence, ColumnChange, CreateSequence, Drop, SequenceOptions};

/// CREATE SEQUENCE.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateSequence,
) -> Result<StatementResult> {
    let created = StatementResult::of_tag("CREATE SEQUENCE");
    let name = relation_name(&statement.name)?;
    let is_new = definition.change_catalog(|change| {
        if is_relation(change, &name) {
            if statement.if_not_exists {
                return Ok(false);
            }
            let message = format!("relation \"{name}\" already exists");
            let position = position_of(&statement.name);
            return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
        }
        let (mut made, restart) = ddl::created_sequence(name.clone(), &statement.options)?;
        if let Some(parts) = &statement.options.owned_by {
            made.owner = ddl::owner_of(parts, &View::of(change.catalog()))?;
        }
        change.create_sequence(made, restart)?;
        design::settle(change)?;
        Ok(true)
    })?;
    if is_new {
        return Ok(created);
    }
    Ok(created.with_notice(Notice::new(format!(
        "relation \"{name}\" already exists, skipping"
    ))))
}

/// ALTER SEQUENCE.
pub(super) fn alter(
    definition: &Definition<'_>,
    statement: &AlterSequence,
) -> Result<StatementResult> {
    let altered = StatementResult::of_tag("ALTER SEQUENCE");
    let name = relation_name(&statement.name)?;
    let is_there = definition.change_catalog(|change| {
        let position = position_of(&statement.name);
        let Some(old) = change.catalog().sequence(&name).cloned() else {
            if is_relation(change, &name) {
                let message = format!("\"{name}\" is not a sequence");
                return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
            }
            if statement.if_exists {
                return Ok(false);
            }
            let message = format!("relation \"{name}\" does not exist");
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
        design::settle(change)?;
        Ok(true)
    })?;
    if is_there {
        return Ok(altered);
    }
    Ok(altered.with_notice(Notice::new(format!(
        "relation \"{name}\" does not exist, skipping"
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
        let name = object_name(written)?;
        if change.catalog().sequence(&name).is_some() {
            if !found.contains(&name) {
                found.push(name);
            }
        } else if change.catalog().table(&name).is_some() || change.index_owner(&name).is_some() {
            let kind = match change.catalog().table(&name) {
                Some(_) => ("TABLE", "a table"),
                None => ("INDEX", "an index"),
            };
            let message = format!("\"{name}\" is not a sequence");
            let hint = format!("Use DROP {} to remove {}.", kind.0, kind.1);
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position).with_hint(hint));
        } else if statement.if_exists {
            let message = format!("sequence \"{name}\" does not exist, skipping");
            notices.push(Notice::new(message));
        } else {
            let message = format!("sequence \"{name}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        }
    }
    let mut cascaded = Vec::new();
    for name in &found {
        let Some(sequence) = change.catalog().sequence(name) else {
            continue;
        };
        if let Some(SequenceOwner {
            table,
            column,
            identity: Some(_),
        }) = &sequence.definition().owner
        {
            let column = format!("column {column} of table {table}");
            return Err(Error::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop sequence {name} because {column} requires it"),
            )
            .with_hint(format!("You can drop {column} instead.")));
        }
        cascaded.extend(dependents(change.catalog(), name, None));
    }
    if !cascaded.is_empty() && !statement.cascade {
        return Err(refuse_drop(&found, change.catalog()));
    }
    notices.extend(cascade(change, &cascaded)?);
    for name in &found {
        change.drop_sequence(name)?;
    }
    Ok(notices)
}

fn refuse_drop(found: &[String], catalog: &Catalog) -> Error {
    let details = found.iter().flat_map(|name| {
        let lines = dependents(catalog, name, None).into_iter();
        lines.map(move |dependent| {
            let dependent = dependent.described();
            format!("{dependent} depends on sequence {name}")
        })
    });
    let details: Vec<String> = details.collect();
    let message = match found {
        [name] => format!("cannot drop sequence {name} because other objects depend on it"),
        _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
    depended_on(message, details.join("\n"), hint)
}

/// Removes default values, and says so.
fn cascade(change: &mut CatalogChange<'_>, cascaded: &[Dependent]) -> Result<Vec<Notice>> {
    for Dependent { table, column, .. } in cascaded {
        change.set_column_default(table, *column, None, false)?;
    }
    let message = match cascaded {
        [] => return Ok(Vec::new()),
        [one] => format!("drop cascades to {}", one.described()),
        many => format!("drop cascades to {} other objects", many.len()),
    };
    Ok(vec![Notice::new(message)])
}

/// A column whose default value draws from a sequence.
struct Dependent {
    table: String,
    column: ColumnId,
    name: String,
}

impl Dependent {
    fn described(&self) -> String {
        format!(
            "default value for column {} of table {}",
            self.name, self.table
        )
    }
}

/// The columns of tables other than `except` whose default values name a sequence.
fn dependents(catalog: &Catalog, sequence: &str, except: Option<&str>) -> Vec<Dependent> {
    let mut found = Vec::new();
    for (table, columns) in catalog.tables() {
        if Some(table) == except {
            continue;
        }
        for (at, column) in columns.schema().columns.iter().enumerate() {
            if sequences_of_default(catalog, column).contains(sequence) {
                found.push(Dependent {
                    table: table.to_owned(),
                    column: ColumnId(at as u16),
                    name: column.name.clone(),
                });
            }
        }
    }
    found
}

/// The sequences that a column's default value names.
pub(crate) fn sequences_of_default(catalog: &Catalog, column: &Column) -> BTreeSet<String> {
    // All functions of sequences are called so.
    let draws = |default: &&String| default.to_ascii_lowercase().contains("val");
    let Some(default) = column.default.as_ref().filter(draws) else {
        return BTreeSet::new();
    };
    let view = View::of(catalog);
    match ddl::bind_default_text(default, &view) {
        Ok(()) => view.sequences().into_iter().collect(),
        Err(_) => BTreeSet::new(),
    }
}

/// Checks that dropping these tables leaves no default value of another one that draws from a sequence of theirs; with
/// `cascade` such default values go.
pub(super) fn drop_owned(
    change: &mut CatalogChange<'_>,
    tables: &[String],
    cascade_to: bool,
) -> Result<Vec<Notice>> {
    let mut cascaded = Vec::new();
    for table in tables {
        let catalog = change.catalog();
        for sequence in catalog.owned_sequences(table) {
            let name = sequence.name();
            let others = dependents(catalog, name, Some(table)).into_iter();
            let others = others.filter(|it| !tables.contains(&it.table));
            let others: Vec<Dependent> = others.collect();
            if let Some(first) = others.first()
                && !cascade_to
            {
                let described = first.described();
                return Err(depended_on(
                    format!("cannot drop table {table} because other objects depend on it"),
                    format!("{described} depends on sequence {name}"),
                    "Use DROP ... CASCADE to drop the dependent objects too.",
                ));
            }
            cascaded.extend(others);
        }
    }
    cascade(change, &cascaded)
}

/// ALTER TABLE … ALTER COLUMN. Returns what there is to say.
pub(super) fn alter_column(
    change: &mut CatalogChange<'_>,
    table: &sqlparser::ast::ObjectName,
    written: &Ident,
    column: &ColumnChange,
) -> Result<Option<Notice>> {
    let position = position_of(table);
    let name = relation_name(table)?;
    let Some(found) = change.catalog().table(&name).cloned() else {
        let message = format!("relation \"{name}\" does not exist");
        return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
    };
    let wanted = name_of(written);
    let id = found.schema().column(&wanted).ok_or_else(|| {
        let message = format!("column \"{wanted}\" of relation \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    let on = AlteredColumn {
        identity: identity_of(change.catalog(), &name, &wanted),
        table: found,
        id,
    };
    match column {
        ColumnChange::Default(expr) => on.set_default(change, expr.as_deref()).map(|()| None),
        ColumnChange::AddIdentity(identity, options) => {
            let definition = &on.table.schema().columns[id.index()];
            let view = View::of(change.catalog());
            let schema = on.table.schema();
            let made = ddl::added_identity(schema, definition, (*identity, options), &view)?;
            let default = ddl::sequence_default(&made.name);
            change.create_sequence(made, None)?;
            change.set_column_default(&name, id, Some(default), true)?;
            Ok(None)
        }
        ColumnChange::SetIdentity(identity, options) => {
            let sequence = on.require_identity()?;
            on.set_identity(change, &sequence, *identity, options)?;
            Ok(None)
        }
        ColumnChange::DropIdentity { if_exists } => match &on.identity {
            None if *if_exists => Ok(Some(Notice::new(format!(
                "column \"{wanted}\" of relation \"{name}\" is not an identity column, skipping"
            )))),
            _ => {
                let sequence = on.require_identity()?;
                change.set_column_default(&name, id, None, false)?;
                change.drop_sequence(sequence.name())?;
                Ok(None)
            }
        },
    }
}

/// The sequence of an identity column.
fn identity_of(catalog: &Catalog, table: &str, column: &str) -> Option<Arc<Sequence>> {
    let mut owned = catalog.owned_sequences(table);
    let found = owned.find(|sequence| {
        let owner = sequence.definition().owner.as_ref();
        owner.is_some_and(|owner| owner.column == column && owner.identity.is_some())
    });
    found.cloned()
}

/// A column that is altered.
struct AlteredColumn {
    table: Arc<Table>,
    id: ColumnId,
    /// Its sequence, if it is an identity column.
    identity: Option<Arc<Sequence>>,
}

impl AlteredColumn {
    fn names(&self) -> (&str, &Column) {
        let schema = self.table.schema();
        (&schema.name, &schema.columns[self.id.index()])
    }

    fn set_default(
        &self,
        change: &mut CatalogChange<'_>,
        expr: Option<&sqlparser::ast::Expr>,
    ) -> Result<()> {
        let (table, column) = self.names();
        if self.identity.is_some() {
            let message = format!(
                "column \"{}\" of relation \"{table}\" is an identity column",
                column.name
            );
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            return Err(match expr {
                Some(_) => error,
                None => {
                    error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
                }
            });
        }
        let view = View::of(change.catalog());
        let default = expr.map(|expr| ddl::declared_default(expr, column, &view));
        let default = default.transpose()?;
        change.set_column_default(table, self.id, default, false)?;
        Ok(())
    }

    fn require_identity(&self) -> Result<Arc<Sequence>> {
        let (table, column) = self.names();
        self.identity.clone().ok_or_else(|| {
            Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "column \"{}\" of relation \"{table}\" is not an identity column",
                    column.name
                ),
            )
        })
    }

    fn set_identity(
        &self,
        change: &mut CatalogChange<'_>,
        sequence: &Sequence,
        identity: Option<kiln_storage::sequence::Identity>,
        options: &SequenceOptions,
    ) -> Result<()> {
        if options.name.is_some() || options.owned_by.is_some() || options.data_type.is_some() {
            return Err(unsupported("this option of an identity column", None));
        }
        let (last, _) = change.sequence_state(sequence.name())?;
        let old: &SequenceDefinition = sequence.definition();
        let (new, restart) = ddl::altered_identity(old, last, identity, options)?;
        change.alter_sequence(new, restart)
    }
}
