//! COMMENT.

use kiln_engine::{Catalog, CatalogChange, Commented, NumberedObject};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use sqlparser::ast::{Ident, ObjectName};

use super::definition::Definition;
use super::functions::{find_routine, missing_routine};
use super::objects::table_of_index;
use super::result::{Notice, StatementResult};
use crate::catalog::{DATABASE, relation_of};
use crate::compile::extensions::PLPGSQL;
use crate::compile::{
    name_of, object_name, plain_type, quote_identifier, undefined_schema, unsupported, written_name,
};
use crate::parse::{Comment, CommentedObject, RelationKind};

/// COMMENT.
pub(super) fn comment(definition: &Definition<'_>, statement: &Comment) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("COMMENT");
    if let CommentedObject::Database(name) = &statement.object
        && name_of(name) != DATABASE
    {
        // A dump may be read into a database that has another name.
        let message = format!("database \"{}\" does not exist", name_of(name));
        result.notices.push(Notice::warning(&message));
        return Ok(result);
    }
    definition.change_catalog(|change| {
        let on = commented(change, &statement.object)?;
        change.comment(on, &statement.text);
        Ok(())
    })?;
    Ok(result)
}

/// What a comment is on.
///
/// # Errors
/// 42P01, 42704, 42703, 42883 and 3F000 for what there is not; 42809 for what is of another kind.
fn commented(change: &CatalogChange<'_>, object: &CommentedObject) -> Result<Commented> {
    let numbered = match object {
        CommentedObject::Relation(kind, name) => relation(change, *kind, name)?,
        CommentedObject::Column(name) => return column(change, name),
        CommentedObject::Routine(kind, signature) => {
            match find_routine(change, *kind, signature)? {
                Some(name) => NumberedObject::Routine(name),
                None => return Err(missing_routine(change.catalog(), *kind, signature)?),
            }
        }
        CommentedObject::Constraint(name, table) => constraint(change, name, table)?,
        CommentedObject::DomainConstraint(domain, name) => {
            let (domain, name) = (object_name(domain)?, name_of(name));
            let Some(known) = change.catalog().domain(&domain) else {
                let message = format!("type \"{domain}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            };
            if known.check(&name).is_none() {
                let quoted = quote_identifier(&domain);
                let message = format!("constraint \"{name}\" for domain {quoted} does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
            NumberedObject::DomainCheck(domain, name)
        }
        CommentedObject::Role(name) => {
            let name = name_of(name);
            change.catalog().roles().require(&name)?;
            NumberedObject::Role(name)
        }
        CommentedObject::Database(_) => return Ok(Commented::Database),
        CommentedObject::Schema(name) => return schema(change.catalog(), name),
        CommentedObject::Extension(name) => extension(change.catalog(), name)?,
        CommentedObject::Type(written) => row_type(change, written)?,
    };
    Ok(Commented::Object(numbered))
}

/// The kind of a relation, and the object that it is.
fn found(change: &CatalogChange<'_>, name: &str) -> Option<(RelationKind, NumberedObject)> {
    let (catalog, owned) = (change.catalog(), name.to_owned());
    if catalog.materialized_view(name).is_some() {
        Some((RelationKind::MaterializedView, NumberedObject::Table(owned)))
    } else if catalog.table(name).is_some() {
        Some((RelationKind::Table, NumberedObject::Table(owned)))
    } else if catalog.view(name).is_some() {
        Some((RelationKind::View, NumberedObject::View(owned)))
    } else if catalog.sequence(name).is_some() {
        Some((RelationKind::Sequence, NumberedObject::Sequence(owned)))
    } else {
        table_of_index(change, name).map(|_| (RelationKind::Index, NumberedObject::Index(owned)))
    }
}

fn relation(
    change: &CatalogChange<'_>,
    wanted: RelationKind,
    written: &ObjectName,
) -> Result<NumberedObject> {
    let name = relation_of(change.catalog(), written)?;
    match found(change, &name) {
        Some((kind, object)) if kind == wanted => Ok(object),
        Some(_) => {
            let message = format!(
                "\"{}\" is not {}",
                name_in_schema(&name),
                wanted.described()
            );
            Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        None => Err(no_relation(written)),
    }
}

fn no_relation(written: &ObjectName) -> Error {
    let name = written_name(written);
    let message = format!("relation \"{name}\" does not exist");
    Error::new(SqlState::UNDEFINED_TABLE, message)
}

fn column(change: &CatalogChange<'_>, written: &ObjectName) -> Result<Commented> {
    let mut parts = written.0.clone();
    let column = parts.pop();
    let column = column.as_ref().and_then(|part| part.as_ident());
    let (Some(column), false) = (column.map(name_of), parts.is_empty()) else {
        let message = "column name must be qualified";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    };
    let catalog = change.catalog();
    let written = ObjectName(parts);
    let name = relation_of(catalog, &written)?;
    let is_there = match found(change, &name) {
        Some((RelationKind::Table | RelationKind::MaterializedView, _)) => catalog
            .require_table(&name)?
            .schema()
            .column(&column)
            .is_some(),
        Some((RelationKind::View, _)) => {
            let view = catalog.view(&name);
            view.is_some_and(|view| view.columns.iter().any(|(known, _)| *known == column))
        }
        Some((kind, _)) => {
            let name = name_in_schema(&name);
            let message = format!("cannot set comment on relation \"{name}\"");
            let kinds = match kind {
                RelationKind::Index => "indexes",
                _ => "sequences",
            };
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_detail(format!("This operation is not supported for {kinds}.")));
        }
        None => return Err(no_relation(&written)),
    };
    match is_there {
        true => Ok(Commented::Column(name, column)),
        false => {
            let name = name_in_schema(&name);
            let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
            Err(Error::new(SqlState::UNDEFINED_COLUMN, message))
        }
    }
}

fn constraint(
    change: &CatalogChange<'_>,
    constraint: &Ident,
    table: &ObjectName,
) -> Result<NumberedObject> {
    let (constraint, written) = (name_of(constraint), table);
    let table = relation_of(change.catalog(), written)?;
    if found(change, &table).is_none() {
        return Err(no_relation(written));
    }
    let object = NumberedObject::Constraint(table.clone(), constraint.clone());
    match change.catalog().numbers().get(&object) {
        Some(_) => Ok(object),
        None => {
            let table = name_in_schema(&table);
            let message =
                format!("constraint \"{constraint}\" for table \"{table}\" does not exist");
            Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

fn schema(catalog: &Catalog, name: &Ident) -> Result<Commented> {
    match name_of(name).as_str() {
        "public" => Ok(Commented::Schema),
        name @ ("pg_catalog" | "information_schema") => {
            let what = format!("a comment on the schema {name}");
            Err(unsupported(what, None))
        }
        name if catalog.has_schema(name) => {
            Ok(Commented::Object(NumberedObject::Schema(name.to_owned())))
        }
        name => Err(undefined_schema(name)),
    }
}

fn extension(catalog: &Catalog, name: &Ident) -> Result<NumberedObject> {
    let name = name_of(name);
    if name == PLPGSQL {
        return Err(unsupported("a comment on the extension plpgsql", None));
    }
    match catalog.extension_schema(&name) {
        Some(_) => Ok(NumberedObject::Extension(name)),
        None => {
            let message = format!("extension \"{name}\" does not exist");
            Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

/// A type of users, or the type of a table's rows.
fn row_type(
    change: &CatalogChange<'_>,
    written: &sqlparser::ast::DataType,
) -> Result<NumberedObject> {
    if plain_type(written, None).is_ok() {
        return Err(unsupported("a comment on a type of the system", None));
    }
    let name = match written {
        sqlparser::ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            if let Ok(name) = object_name(name)
                && change.catalog().enumeration(&name).is_some()
            {
                return Ok(NumberedObject::Enum(name));
            }
            if let Ok(name) = object_name(name)
                && change.catalog().composite(&name).is_some()
            {
                return Ok(NumberedObject::Composite(name));
            }
            if let Ok(name) = object_name(name)
                && change.catalog().domain(&name).is_some()
            {
                return Ok(NumberedObject::Domain(name));
            }
            relation_of(change.catalog(), name)?
        }
        other => other.to_string(),
    };
    match change.catalog().table(&name) {
        Some(_) => Ok(NumberedObject::RowType(name)),
        None => {
            let message = format!("type \"{name}\" does not exist");
            Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}
