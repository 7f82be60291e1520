//! CREATE TYPE … AS (…), and ALTER TYPE and DROP TYPE of composite types.
//!
//! Values keep their fields in the order and with the types that the type had when they were made.
//! So a type that a column, another type, a domain, a view or a routine uses is not altered.

use kiln_engine::{Catalog, CatalogChange, Object};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::Column;
use kiln_storage::types::{DataType, RowField, RowType};
use sqlparser::ast::ColumnDef;

use super::definition::Definition;
use super::dependents::Dependent;
use super::design;
use super::domains;
use super::functions::argument_types;
use super::objects::give;
use super::result::{Notice, StatementResult};
use super::types::{Found, NamedType, type_name};
use crate::catalog::{View, routine_of};
use crate::compile::{column_type, name_of, quote_identifier, refuse_reserved, unsupported};
use crate::parse::{CreateComposite, RoutineKind, TypeChange};

/// CREATE TYPE … AS (…).
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateComposite,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let name = type_name(change.catalog(), &statement.name)?;
        let mut fields = Vec::new();
        for written in &statement.fields {
            let field = field(change.catalog(), written)?;
            add(&mut fields, field)?;
        }
        change.create_composite(&name, &quote_identifier(&name), fields)?;
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("CREATE TYPE"))
}

fn add(fields: &mut Vec<RowField>, field: RowField) -> Result<()> {
    if fields.iter().any(|known| known.name == field.name) {
        let message = format!("column \"{}\" specified more than once", field.name);
        return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
    }
    fields.push(field);
    Ok(())
}

/// A field as it is declared.
fn field(catalog: &Catalog, written: &ColumnDef) -> Result<RowField> {
    let declared = column_type(&written.data_type, &View::of(catalog), None)?;
    if let Some(domain) = &declared.domain {
        let what = format!("an attribute of a domain ({})", domain.name);
        return Err(unsupported(what, None));
    }
    let data_type = declared.data_type;
    if data_type.enumeration().is_some() {
        let what = format!("an attribute of an enum ({data_type})");
        return Err(unsupported(what, None));
    }
    if !data_type.is_storable() {
        let what = format!("an attribute of type {data_type}");
        return Err(unsupported(what, None));
    }
    let name = name_of(&written.name);
    Ok(RowField { name, data_type })
}

/// ALTER TYPE of a composite type.
pub(super) fn alter(
    change: &mut CatalogChange<'_>,
    name: &str,
    altered: &TypeChange,
) -> Result<Option<Notice>> {
    let Some(of) = change.catalog().composite(name).cloned() else {
        return Err(Error::internal("a composite type is gone"));
    };
    if let TypeChange::Owner(role) = altered {
        give(change, Object::of_type(name), role)?;
        return Ok(None);
    }
    let mut fields = of.fields().to_vec();
    let missing = |field: &str| {
        let message = format!("column \"{field}\" of relation \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_COLUMN, message)
    };
    match altered {
        TypeChange::AddField(written) => {
            let field = field(change.catalog(), written)?;
            if of.position(&field.name).is_some() {
                let message = format!(
                    "column \"{}\" of relation \"{name}\" already exists",
                    field.name
                );
                return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            fields.push(field);
        }
        TypeChange::DropField {
            name: field,
            if_exists,
        } => {
            let field = name_of(field);
            match of.position(&field) {
                Some(at) => drop(fields.remove(at)),
                None if *if_exists => {
                    let message = format!(
                        "column \"{field}\" of relation \"{name}\" does not exist, skipping"
                    );
                    return Ok(Some(Notice::new(message)));
                }
                None => return Err(missing(&field)),
            }
        }
        TypeChange::RenameField(from, to) => {
            let (from, to) = (name_of(from), name_of(to));
            let at = of.position(&from).ok_or_else(|| missing(&from))?;
            if of.position(&to).is_some() {
                let message = format!("column \"{to}\" of relation \"{name}\" already exists");
                return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
            }
            fields[at].name = to;
        }
        TypeChange::Rename(to) => {
            refuse_reserved(to)?;
            refuse_use(change.catalog(), &of, "renaming")?;
            let to = name_of(to);
            change.rename_composite(name, &to, &quote_identifier(&to))?;
            return Ok(None);
        }
        _ => {
            let message = format!("{} is not an enum", of.printed());
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
    }
    refuse_use(change.catalog(), &of, "altering")?;
    change.alter_composite(name, fields)?;
    Ok(None)
}

/// Refuses to alter a type that something uses.
fn refuse_use(catalog: &Catalog, of: &Arc<RowType>, how: &str) -> Result<()> {
    for other in catalog.composites() {
        let mut fields = other.fields().iter();
        if fields.any(|field| field.data_type.row() == Some(of)) {
            let other = other.printed();
            let what = format!("{how} type {}, which type {other} uses,", of.printed());
            return Err(unsupported(what, None));
        }
    }
    match depending_on(catalog, of)?.first() {
        Some((user, _)) => {
            let what = format!(
                "{how} type {}, which {} uses,",
                of.printed(),
                user.described()
            );
            Err(unsupported(what, None))
        }
        None => Ok(()),
    }
}

/// The error of what only composite types have.
#[cold]
pub(super) fn no_composite(printed: &str) -> Error {
    let message = format!("{printed} is not a composite type");
    Error::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// DROP TYPE of composite types.
pub(super) fn drop_all(
    change: &mut CatalogChange<'_>,
    names: &[String],
    cascade: bool,
) -> Result<Vec<Notice>> {
    let known = names
        .iter()
        .filter_map(|name| change.catalog().composite(name));
    let mut found: Vec<Arc<RowType>> = known.cloned().collect();
    found.dedup();
    let mut depending = Found::default();
    for of in &found {
        for other in change.catalog().composites() {
            let mut fields = other.fields().iter();
            let uses = fields.any(|field| field.data_type.row() == Some(of));
            if uses && !found.contains(other) {
                let (of, other) = (of.printed(), other.printed());
                let what = format!("dropping type {of}, of which type {other} has an attribute,");
                return Err(unsupported(what, None));
            }
        }
        for (dependent, on) in depending_on(change.catalog(), of)? {
            depending.add(dependent, on);
        }
    }
    let what = match found.as_slice() {
        [one] => format!("type {}", one.printed()),
        _ => String::new(),
    };
    let notices = depending.remove(change, &what, cascade)?;
    for of in &found {
        change.drop_composite(of.name())?;
    }
    Ok(notices.into_iter().collect())
}

/// What depends on a type, each with that of which it does.
fn depending_on(catalog: &Catalog, of: &Arc<RowType>) -> Result<Vec<(Dependent, String)>> {
    let mut found = Found::default();
    for of_type in [
        DataType::array(DataType::Row(of.clone())),
        DataType::Row(of.clone()),
    ] {
        let is_of = |column: &Column| column.data_type == of_type;
        found.add_columns(catalog, &format!("type {of_type}"), is_of);
    }
    let on = format!("type {}", of.printed());
    if let Some(other) = domains::naming(catalog, of.name())? {
        let what = format!("dropping type {}, which domain {other} names,", of.name());
        return Err(unsupported(what, None));
    }
    let named = NamedType {
        name: of.name(),
        is_of: &|column| column.data_type.row() == Some(of),
        shows: &|data_type| data_type.row() == Some(of),
    };
    found.add_naming(catalog, &named, &on)?;
    for routine in routines(catalog, of) {
        found.add(routine, on.clone());
    }
    Ok(found.all)
}

/// The functions and procedures with an argument or a result of a type.
fn routines(catalog: &Catalog, of: &Arc<RowType>) -> Vec<Dependent> {
    let is_of = |data_type: &DataType| data_type.row() == Some(of);
    let found = catalog.procedures().filter_map(|procedure| {
        let known = routine_of(catalog, procedure)?;
        let uses = known.parameters.iter().any(|it| is_of(&it.data_type))
            || known.result.types().iter().any(is_of);
        if !uses {
            return None;
        }
        let types = argument_types(catalog, &known.name);
        let name = quote_identifier(&known.name);
        let kind = match known.kind {
            RoutineKind::Function => "function",
            RoutineKind::Procedure => "procedure",
        };
        Some(Dependent::Routine {
            described: format!("{kind} {name}({types})"),
            name: known.name,
        })
    });
    found.collect()
}
