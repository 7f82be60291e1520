//! CREATE TYPE, ALTER TYPE and DROP TYPE, and what depends on an enum.
//!
//! Expressions, queries of views and headers of routines are kept as they were written. What names
//! a type, or a label, of which another name would be unknown there, is not renamed.

use kiln_engine::{Catalog, CatalogChange, Object};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{Column, ColumnId, TableSchema};
use kiln_storage::types::{DataType, EnumPosition, EnumType};
use sqlparser::ast::ObjectName;

use super::composites;
use super::definition::Definition;
use super::dependents::Dependent;
use super::design;
use super::domains;
use super::functions::argument_types;
use super::objects::give;
use super::result::{Notice, StatementResult};
use super::types::{Found, NamedType, plain, type_name, undefined};
use crate::catalog::routine_of;
use crate::compile::ddl::{names_type, stored_literal};
use crate::compile::{name_of, quote_identifier, refuse_reserved, unsupported};
use crate::parse::{AlterType, CreateEnum, Drop, TypeChange};

/// CREATE TYPE … AS ENUM.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateEnum,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let name = type_name(change.catalog(), &statement.name)?;
        change.create_enum(&name, &quote_identifier(&name), &statement.labels)?;
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("CREATE TYPE"))
}

/// ALTER TYPE.
pub(super) fn alter(definition: &Definition<'_>, statement: &AlterType) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("ALTER TYPE");
    let notice = definition.change_catalog(|change| {
        let name = type_name(change.catalog(), &statement.name)?;
        let notice = match (change.catalog().domain(&name), &statement.change) {
            (Some(_), TypeChange::Rename(to)) => {
                refuse_reserved(to)?;
                domains::rename(change, &name, &name_of(to))?;
                None
            }
            (Some(_), TypeChange::Owner(role)) => {
                give(change, Object::of_type(name), role)?;
                None
            }
            _ if change.catalog().composite(&name).is_some() => {
                composites::alter(change, &name, &statement.change)?
            }
            _ => {
                let of = find(change.catalog(), &statement.name)?;
                alter_enum(change, &of, &statement.change)?
            }
        };
        design::derive(change)?;
        Ok(notice)
    })?;
    result.notices.extend(notice);
    Ok(result)
}

fn alter_enum(
    change: &mut CatalogChange<'_>,
    of: &Arc<EnumType>,
    altered: &TypeChange,
) -> Result<Option<Notice>> {
    let name = of.name();
    match altered {
        TypeChange::AddLabel {
            if_not_exists,
            label,
            beside,
        } => {
            if *if_not_exists && of.number(label).is_some() {
                let message = format!("enum label \"{label}\" already exists, skipping");
                return Ok(Some(Notice::new(message)));
            }
            let place = match beside {
                None => EnumPosition::Last,
                Some((other, true)) => EnumPosition::After(other),
                Some((other, false)) => EnumPosition::Before(other),
            };
            change.alter_enum(name, |of| of.add(label, place))?;
        }
        TypeChange::RenameLabel(from, to) => rename_label(change, of, from, to)?,
        TypeChange::Rename(to) => {
            refuse_reserved(to)?;
            let to = name_of(to);
            if let Some(user) = naming(change.catalog(), of)?.first() {
                let what = format!("renaming type {name}, which {user} names,");
                return Err(unsupported(what, None));
            }
            change.rename_enum(name, &to, &quote_identifier(&to))?;
        }
        TypeChange::Owner(role) => give(change, Object::of_type(name), role)?,
        TypeChange::AddField(_) | TypeChange::DropField { .. } | TypeChange::RenameField(..) => {
            return Err(composites::no_composite(of.printed()));
        }
    }
    Ok(None)
}

/// The enum that ALTER TYPE names.
fn find(catalog: &Catalog, written: &ObjectName) -> Result<Arc<EnumType>> {
    let name = type_name(catalog, written)?;
    if let Some(of) = catalog.enumeration(&name) {
        return Ok(of.clone());
    }
    let is_other = catalog.table(&name).is_some()
        || catalog.view(&name).is_some()
        || catalog.composite(&name).is_some()
        || catalog.domain(&name).is_some();
    let other = match is_other {
        true => Some(quote_identifier(&name)),
        false => plain(&name).map(|known| known.to_string()),
    };
    Err(match other {
        Some(other) => Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("{other} is not an enum"),
        ),
        None => undefined(&name, written),
    })
}

/// Renames a label, also where it is the default value of a column.
///
/// # Errors
/// 0A000 where another expression may name it.
fn rename_label(
    change: &mut CatalogChange<'_>,
    of: &Arc<EnumType>,
    from: &str,
    to: &str,
) -> Result<()> {
    if let Some(user) = using_label(change.catalog(), of, from)? {
        let what = format!("renaming label \"{from}\", which {user} may name,");
        return Err(unsupported(what, None));
    }
    change.alter_enum(of.name(), |of| of.rename_label(from, to))?;
    change.renumber_label(of.name(), from, to);
    for (table, column) in defaults_of(change.catalog(), of, from) {
        change.alter_schema(&table, |schema| {
            let literal = format!("'{}'", to.replace('\'', "''"));
            schema.columns[column.index()].default = Some(literal);
        })?;
    }
    Ok(())
}

/// The columns of an enum whose default value is a label.
fn defaults_of(catalog: &Catalog, of: &Arc<EnumType>, label: &str) -> Vec<(String, ColumnId)> {
    let mut found = Vec::new();
    for (table, columns) in catalog.tables() {
        for (at, column) in columns.schema().columns.iter().enumerate() {
            let default = column.default.as_deref().and_then(stored_literal);
            let is_label = column.data_type == DataType::Enum(of.clone());
            if is_label && default.as_deref() == Some(label) {
                found.push((table.to_owned(), ColumnId(at as u16)));
            }
        }
    }
    found
}

/// An expression or view in which a text stands that is a label, and may mean it.
fn using_label(catalog: &Catalog, of: &Arc<EnumType>, label: &str) -> Result<Option<String>> {
    let literal = format!("'{}'", label.replace('\'', "''"));
    let has = |text: &str| text.contains(&literal);
    for (table, known) in catalog.tables() {
        let schema = known.schema();
        let mut is_used = schema
            .columns
            .iter()
            .any(|column| column.data_type.enumeration() == Some(of));
        for (described, text) in expressions(schema) {
            is_used |= names_type(text, of.name())?;
            if is_used && has(text) && stored_literal(text).is_none() {
                return Ok(Some(format!("{described} of table {table}")));
            }
        }
    }
    for domain in catalog.domains() {
        let is_over = domain.base.enumeration() == Some(of);
        let checks = domain.checks.iter().map(|check| &check.expression);
        for text in checks.chain(&domain.default) {
            if has(text) && (is_over || names_type(text, of.name())?) {
                return Ok(Some(format!("domain {}", domain.name)));
            }
        }
    }
    let mut views = catalog.views();
    Ok(views
        .find(|view| has(&view.query))
        .map(|view| format!("view {}", view.name)))
}

/// The expressions of a table, each with what it is for.
fn expressions(schema: &TableSchema) -> impl Iterator<Item = (String, &String)> {
    let columns = schema.columns.iter();
    let of_columns = columns.flat_map(|column| {
        let name = &column.name;
        let default = column.default.iter();
        let default =
            default.map(move |text| (format!("the default value of column {name}"), text));
        let generated = column.generated.iter();
        let what = move || match column.is_hidden() {
            true => format!("an index over {}", column.label()),
            false => format!("generated column {name}"),
        };
        default.chain(generated.map(move |text| (what(), text)))
    });
    let checks = schema.checks.iter();
    let checks = checks.map(|it| (format!("constraint {}", it.name), &it.expression));
    let triggers = schema.triggers.iter();
    let triggers =
        triggers.filter_map(|it| Some((format!("trigger {}", it.name), it.condition.as_ref()?)));
    of_columns.chain(checks).chain(triggers)
}

/// What names an enum in a text: expressions, views and headers of routines.
fn naming(catalog: &Catalog, of: &Arc<EnumType>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (table, known) in catalog.tables() {
        for (described, text) in expressions(known.schema()) {
            if names_type(text, of.name())? {
                found.push(format!("{described} of table {table}"));
            }
        }
    }
    let domain = domains::naming(catalog, of.name())?;
    found.extend(domain.map(|domain| format!("domain {domain}")));
    let views = catalog.views().filter(|view| view.names_type(of.name()));
    found.extend(views.map(|view| format!("view {}", view.name)));
    let routines = routines(catalog, of).into_iter();
    found.extend(routines.map(|it| it.described()));
    Ok(found)
}

/// The functions and procedures with an argument or a result of an enum.
fn routines(catalog: &Catalog, of: &Arc<EnumType>) -> Vec<Dependent> {
    let is_of = |data_type: &DataType| data_type.enumeration() == Some(of);
    let uses = |procedure: &Arc<kiln_engine::Procedure>| {
        routine_of(catalog, procedure).filter(|known| {
            known.parameters.iter().any(|it| is_of(&it.data_type))
                || known.result.types().iter().any(is_of)
        })
    };
    let found = catalog.procedures().filter_map(|procedure| {
        let known = uses(procedure)?;
        let types = argument_types(catalog, &known.name);
        let (name, kind) = (quote_identifier(&known.name), known.kind);
        let kind = match kind {
            crate::parse::RoutineKind::Function => "function",
            crate::parse::RoutineKind::Procedure => "procedure",
        };
        Some(Dependent::Routine {
            name: known.name,
            described: format!("{kind} {name}({types})"),
        })
    });
    found.collect()
}

/// DROP TYPE.
pub(super) fn drop(change: &mut CatalogChange<'_>, statement: &Drop) -> Result<Vec<Notice>> {
    let (mut found, mut notices) = (Vec::<Arc<EnumType>>::new(), Vec::new());
    let (mut of_domains, mut of_rows) = (Vec::new(), Vec::new());
    for written in &statement.names {
        let catalog = change.catalog();
        let name = type_name(catalog, written)?;
        if let Some(of) = catalog.enumeration(&name) {
            if !found.contains(of) {
                found.push(of.clone());
            }
        } else if catalog.domain(&name).is_some() {
            of_domains.push(name);
        } else if catalog.composite(&name).is_some() {
            of_rows.push(name);
        } else if let Some(error) = required(catalog, &name) {
            return Err(error);
        } else if statement.if_exists {
            let message = format!("type \"{name}\" does not exist, skipping");
            notices.push(Notice::new(message));
        } else {
            return Err(undefined(&name, written));
        }
    }
    let mut depending = Found::default();
    for of in &found {
        for (dependent, on) in depending_on(change.catalog(), of)? {
            depending.add(dependent, on);
        }
    }
    let what = match found.as_slice() {
        [one] => format!("type {}", one.printed()),
        _ => String::new(),
    };
    notices.extend(depending.remove(change, &what, statement.cascade)?);
    for of in &found {
        change.drop_enum(of.name())?;
    }
    of_domains.retain(|name| change.catalog().domain(name).is_some());
    of_domains.dedup();
    notices.extend(domains::drop_all(change, &of_domains, statement.cascade)?);
    notices.extend(composites::drop_all(change, &of_rows, statement.cascade)?);
    Ok(notices)
}

/// Why a type cannot be dropped that is no enum; `None` where there is none.
fn required(catalog: &Catalog, name: &str) -> Option<Error> {
    let quoted = quote_identifier(name);
    let error = |message| Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message);
    let relation = match (catalog.table(name), catalog.view(name)) {
        (Some(_), _) => format!("table {quoted}"),
        (_, Some(_)) => format!("view {quoted}"),
        _ => {
            let known = plain(name)?;
            let message =
                format!("cannot drop type {known} because it is required by the database system");
            return Some(error(message));
        }
    };
    let message = format!("cannot drop type {quoted} because {relation} requires it");
    Some(error(message).with_hint(format!("You can drop {relation} instead.")))
}

/// What depends on an enum, each with that of which it does.
fn depending_on(catalog: &Catalog, of: &Arc<EnumType>) -> Result<Vec<(Dependent, String)>> {
    let mut found = Found::default();
    for of_type in [
        DataType::array(DataType::Enum(of.clone())),
        DataType::Enum(of.clone()),
    ] {
        let is_of = |column: &Column| column.data_type == of_type && column.domain.is_none();
        found.add_columns(catalog, &format!("type {of_type}"), is_of);
    }
    let on = format!("type {}", of.printed());
    for domain in catalog.domains() {
        if domain.base.enumeration() == Some(of) && domain.over.is_none() {
            found.add_domain(catalog, domain, &on)?;
        }
    }
    if let Some(other) = domains::naming(catalog, of.name())? {
        let what = format!("dropping type {}, which domain {other} names,", of.name());
        return Err(unsupported(what, None));
    }
    let named = NamedType {
        name: of.name(),
        is_of: &|column| column.data_type.enumeration() == Some(of),
        shows: &|data_type| data_type.enumeration() == Some(of),
    };
    found.add_naming(catalog, &named, &on)?;
    for routine in routines(catalog, of) {
        found.add(routine, on.clone());
    }
    Ok(found.all)
}
