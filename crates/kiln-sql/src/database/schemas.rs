//! CREATE SCHEMA, ALTER SCHEMA and DROP SCHEMA.

use kiln_engine::{Catalog, CatalogChange, Object};
use kiln_storage::error::{Error, Result, SqlState};

use super::definition::Definition;
use super::dependents;
use super::design;
use super::objects::{give, role_meant};
use super::result::{Notice, StatementResult};
use super::sequences;
use super::tables::drop_all_tables;
use super::views::{self, Dependency};
use crate::compile::{name_of, quote_identifier, short_name, undefined_schema};
use crate::parse::{AlterSchema, CreateSchema, DropSchema, SchemaChange};

/// CREATE SCHEMA.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateSchema,
) -> Result<StatementResult> {
    let created = StatementResult::of_tag("CREATE SCHEMA");
    let skipped = definition.change_catalog(|change| {
        let owner = statement.owner.as_ref();
        let owner = owner.map(|owner| role_meant(change, owner)).transpose()?;
        let name = match (&statement.name, &owner) {
            (Some(name), _) => name_of(name),
            (None, Some(role)) => role.clone(),
            (None, None) => return Err(Error::internal("a schema has a name or an owner")),
        };
        if statement.if_not_exists && change.catalog().has_schema(&name) {
            return Ok(Some(name));
        }
        change.create_schema(&name)?;
        if let Some(owner) = &owner {
            change.set_owner(owner);
        }
        design::derive(change)?;
        Ok(None)
    })?;
    Ok(match skipped {
        None => created,
        Some(name) => created.with_notice(Notice::new(format!(
            "schema \"{name}\" already exists, skipping"
        ))),
    })
}

/// ALTER SCHEMA.
pub(super) fn alter(
    definition: &Definition<'_>,
    statement: &AlterSchema,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let name = name_of(&statement.name);
        if !change.catalog().has_schema(&name) {
            return Err(undefined_schema(&name));
        }
        match &statement.change {
            SchemaChange::Owner(role) => give(change, Object::schema(name), role)?,
            SchemaChange::Rename(to) => change.rename_schema(&name, &name_of(to))?,
        }
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("ALTER SCHEMA"))
}

/// DROP SCHEMA.
pub(super) fn drop(definition: &Definition<'_>, statement: &DropSchema) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("DROP SCHEMA");
    result.notices = definition.change_catalog(|change| {
        let mut notices = Vec::new();
        for name in &statement.names {
            let name = name_of(name);
            if change.catalog().has_schema(&name) {
                notices.extend(drop_one(change, &name, statement.cascade)?);
                continue;
            }
            if matches!(name.as_str(), "pg_catalog" | "information_schema") {
                let message = format!(
                    "cannot drop schema {name} because it is required by the database system"
                );
                return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            }
            if !statement.if_exists {
                return Err(undefined_schema(&name));
            }
            let message = format!("schema \"{name}\" does not exist, skipping");
            notices.push(Notice::new(message));
        }
        design::derive(change)?;
        Ok(notices)
    })?;
    Ok(result)
}

/// What is in a schema, in the order of PostgreSQL's lists: of the numbers of objects.
fn contents(catalog: &Catalog, schema: &str) -> Vec<Content> {
    let is_owned = |name: &str| {
        let sequence = catalog.sequence(name);
        sequence.is_some_and(|sequence| sequence.definition().owner.is_some())
    };
    let names = catalog.objects_of_schema(schema);
    let mut found: Vec<Content> = names
        .filter(|name| !is_owned(name))
        .map(|name| Content::of(catalog, name))
        .collect();
    found.sort_by_key(|content| content.number);
    found
}

/// A table, view, sequence or extension in a schema.
struct Content {
    number: u32,
    kind: &'static str,
    name: String,
}

impl Content {
    fn of(catalog: &Catalog, name: &str) -> Content {
        use kiln_engine::NumberedObject::{Sequence, Table, View};
        let name = name.to_owned();
        let (kind, object) = if catalog.table(&name).is_some() {
            ("table", Table(name.clone()))
        } else if catalog.view(&name).is_some() {
            ("view", View(name.clone()))
        } else {
            ("sequence", Sequence(name.clone()))
        };
        let number = catalog.numbers().get(&object).unwrap_or_default();
        Content { number, kind, name }
    }

    fn described(&self) -> String {
        match self.kind {
            "extension" => format!("extension {}", quote_identifier(&self.name)),
            kind => format!("{kind} {}", short_name(&self.name)),
        }
    }
}

fn drop_one(change: &mut CatalogChange<'_>, schema: &str, cascade: bool) -> Result<Vec<Notice>> {
    let mut contents = contents(change.catalog(), schema);
    let extensions = change.catalog().extensions();
    let extensions = extensions.filter(|(_, of)| *of == schema);
    contents.extend(extensions.map(|(name, _)| Content {
        number: 0,
        kind: "extension",
        name: name.to_owned(),
    }));
    if !contents.is_empty() && !cascade {
        let quoted = quote_identifier(schema);
        let lines = contents
            .iter()
            .map(|it| format!("{} depends on schema {quoted}", it.described()));
        return Err(dependents::depended_on(
            format!("cannot drop schema {quoted} because other objects depend on it"),
            lines.collect::<Vec<_>>().join("\n"),
            "Use DROP ... CASCADE to drop the dependent objects too.",
        ));
    }
    let views = contents.iter().filter(|it| it.kind == "view");
    let views: Vec<&str> = views.map(|it| it.name.as_str()).collect();
    let dropped: Vec<Dependency<'_>> = views.iter().map(|name| Dependency::View(name)).collect();
    views::drop_dependents(change, &dropped, true)?;
    for view in &views {
        if change.catalog().view(view).is_some() {
            change.drop_view(view)?;
        }
    }
    let tables = contents.iter().filter(|it| it.kind == "table");
    let tables: Vec<String> = tables.map(|it| it.name.clone()).collect();
    drop_all_tables(change, &tables, true)?;
    for sequence in contents.iter().filter(|it| it.kind == "sequence") {
        if change.catalog().sequence(&sequence.name).is_some() {
            sequences::drop_all(change, std::slice::from_ref(&sequence.name), true)?;
        }
    }
    for extension in contents.iter().filter(|it| it.kind == "extension") {
        change.drop_extension(&extension.name)?;
    }
    change.drop_schema(schema)?;
    let mut notices = Vec::new();
    match contents.as_slice() {
        [] => {}
        [one] => notices.push(Notice::new(format!("drop cascades to {}", one.described()))),
        several => {
            let message = format!("drop cascades to {} other objects", several.len());
            notices.push(Notice::new(message));
        }
    }
    Ok(notices)
}
