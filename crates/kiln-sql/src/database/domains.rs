//! CREATE DOMAIN, ALTER DOMAIN and DROP DOMAIN, and what depends on a domain.
//!
//! Expressions, queries of views and headers of routines are kept as they were written. What names
//! a domain, of which another name would be unknown there, keeps it from being renamed.

use kiln_engine::{Catalog, CatalogChange, Domain, Object, Procedure};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::Check;
use sqlparser::ast::ObjectName;

use super::definition::Definition;
use super::dependents::Dependent;
use super::design;
use super::follow::first_row;
use super::functions::argument_types;
use super::objects::give;
use super::result::{Notice, StatementResult};
use super::types::{self, Found, NamedType, type_name, undefined};
use crate::catalog::{View, routine_of};
use crate::compile::{ddl, name_of, quote_identifier, refuse_reserved, sql_name, unsupported};
use crate::parse::{AlterDomain, CreateDomain, DomainChange, DomainCheck, Drop, RoutineKind};

/// CREATE DOMAIN.
pub(super) fn create(
    definition: &Definition<'_>,
    statement: &CreateDomain,
) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let name = type_name(change.catalog(), &statement.name)?;
        let domain = ddl::create_domain(&name, statement, &View::of(change.catalog()))?;
        change.create_domain(domain)?;
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("CREATE DOMAIN"))
}

/// ALTER DOMAIN.
pub(super) fn alter(
    definition: &Definition<'_>,
    statement: &AlterDomain,
) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("ALTER DOMAIN");
    let notice = definition.change_catalog(|change| {
        let domain = find(change.catalog(), &statement.name)?;
        let notice = alter_domain(change, &domain, &statement.change)?;
        design::derive(change)?;
        Ok(notice)
    })?;
    result.notices.extend(notice);
    Ok(result)
}

fn alter_domain(
    change: &mut CatalogChange<'_>,
    domain: &Domain,
    altered: &DomainChange,
) -> Result<Option<Notice>> {
    let name = domain.name.as_str();
    match altered {
        DomainChange::Default(expr) => {
            let view = View::of(change.catalog());
            let default = match expr {
                Some(expr) => ddl::domain_default(expr, domain, &view)?,
                None => None,
            };
            change.alter_domain(name, |domain| {
                domain.default = default;
                Ok(())
            })?;
        }
        DomainChange::NotNull(not_null) => {
            change.alter_domain(name, |domain| {
                domain.not_null = *not_null;
                Ok(())
            })?;
            if *not_null {
                check_rows(change, name, None)?;
            }
        }
        DomainChange::AddCheck(written) => add_check(change, domain, written)?,
        DomainChange::DropConstraint {
            name: dropped,
            if_exists,
        } => {
            let dropped = name_of(dropped);
            if domain.check(&dropped).is_none() {
                let message = missing_check(&dropped, name);
                if *if_exists {
                    return Ok(Some(Notice::new(format!("{message}, skipping"))));
                }
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
            change.alter_domain(name, |domain| {
                domain.checks.retain(|check| check.name != dropped);
                Ok(())
            })?;
        }
        DomainChange::Validate(validated) => {
            let validated = name_of(validated);
            let Some(check) = domain.check(&validated) else {
                let message = missing_check(&validated, name);
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            };
            if !check.is_valid {
                check_rows(change, name, Some(check))?;
                change.alter_domain(name, |domain| {
                    let checks = domain.checks.iter_mut();
                    checks
                        .filter(|check| check.name == validated)
                        .for_each(|check| check.is_valid = true);
                    Ok(())
                })?;
            }
        }
        DomainChange::RenameConstraint(from, to) => {
            let (from, to) = (name_of(from), name_of(to));
            if domain.check(&from).is_none() {
                let quoted = quote_identifier(name);
                let message = format!("constraint \"{from}\" for domain {quoted} does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
            if domain.check(&to).is_some() {
                return Err(ddl::check_exists(&to, name));
            }
            change.alter_domain(name, |domain| {
                let checks = domain.checks.iter_mut();
                checks
                    .filter(|check| check.name == from)
                    .for_each(|check| check.name.clone_from(&to));
                Ok(())
            })?;
            change.renumber_domain_check(name, &from, &to);
        }
        DomainChange::Rename(to) => {
            refuse_reserved(to)?;
            rename(change, name, &name_of(to))?;
        }
        DomainChange::Owner(role) => give(change, Object::of_type(name), role)?,
    }
    Ok(None)
}

/// Calls a domain otherwise.
///
/// # Errors
/// 0A000 where an expression names it; 42710 for a name that is taken.
pub(super) fn rename(change: &mut CatalogChange<'_>, from: &str, to: &str) -> Result<()> {
    let catalog = change.catalog();
    let mut users = Found::default();
    users.add_naming(catalog, &only_named(from), "")?;
    let routines = routines(catalog, from);
    let mut users = users.all.iter().map(|(user, _)| user).chain(&routines);
    if let Some(user) = users.next() {
        let user = user.described();
        let what = format!("renaming domain {from}, which {user} names,");
        return Err(unsupported(what, None));
    }
    if let Some(other) = naming(catalog, from)? {
        let what = format!("renaming domain {from}, which domain {other} names,");
        return Err(unsupported(what, None));
    }
    change.rename_domain(from, to)
}

/// A domain that names a type in an expression.
pub(super) fn naming(catalog: &Catalog, name: &str) -> Result<Option<String>> {
    for domain in catalog.domains() {
        let checks = domain.checks.iter().map(|check| &check.expression);
        for text in checks.chain(&domain.default) {
            if ddl::names_type(text, name)? {
                return Ok(Some(domain.name.clone()));
            }
        }
    }
    Ok(None)
}

fn add_check(change: &mut CatalogChange<'_>, domain: &Domain, written: &DomainCheck) -> Result<()> {
    let view = View::of(change.catalog());
    let check = ddl::domain_check(written, domain, &view)?;
    change.alter_domain(&domain.name, |domain| {
        domain.checks.push(check.clone());
        Ok(())
    })?;
    match check.is_valid {
        true => check_rows(change, &domain.name, Some(&check)),
        false => Ok(()),
    }
}

/// Checks the rows with columns of a domain, or of one over it, against a check of it, or for
/// NULLs.
fn check_rows(change: &mut CatalogChange<'_>, domain: &str, check: Option<&Check>) -> Result<()> {
    // What a recovery makes again was checked.
    if change.is_made_again() {
        return Ok(());
    }
    let domains = with_derived(change.catalog(), domain);
    let mut columns = Vec::new();
    for (table, known) in change.catalog().tables() {
        for column in known.schema().shown() {
            if column
                .domain
                .as_ref()
                .is_some_and(|it| domains.contains(it))
            {
                columns.push((table.to_owned(), column.name.clone()));
            }
        }
    }
    for (table, column) in columns {
        let quoted = quote_identifier(&column);
        let fails = match check {
            Some(check) => format!("NOT ({})", check.expression),
            None => "value IS NULL".to_owned(),
        };
        let query = format!(
            "SELECT 1 FROM (SELECT {quoted} AS value FROM {}) AS rows_of_domain WHERE {fails} \
             LIMIT 1",
            sql_name(&table)
        );
        if first_row(change, &query)?.is_some() {
            let table = name_in_schema(&table);
            let (state, what) = match check {
                Some(_) => (
                    SqlState::CHECK_VIOLATION,
                    "contains values that violate the new constraint",
                ),
                None => (SqlState::NOT_NULL_VIOLATION, "contains null values"),
            };
            let message = format!("column \"{column}\" of table \"{table}\" {what}");
            return Err(Error::new(state, message));
        }
    }
    Ok(())
}

/// A domain, and those that are over it.
fn with_derived(catalog: &Catalog, name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let mut at = 0;
    while at < names.len() {
        let over = catalog.domains();
        let over = over.filter(|domain| domain.over.as_ref() == Some(&names[at]));
        let over: Vec<String> = over.map(|domain| domain.name.clone()).collect();
        names.extend(over);
        at += 1;
    }
    names
}

/// DROP DOMAIN.
pub(super) fn drop(change: &mut CatalogChange<'_>, statement: &Drop) -> Result<Vec<Notice>> {
    let (mut found, mut notices) = (Vec::<String>::new(), Vec::new());
    for written in &statement.names {
        let catalog = change.catalog();
        let name = type_name(catalog, written)?;
        if catalog.domain(&name).is_some() {
            if !found.contains(&name) {
                found.push(name);
            }
        } else if is_other_type(catalog, &name) {
            let message = format!("\"{written}\" is not a domain");
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        } else if statement.if_exists {
            let message = format!("type \"{name}\" does not exist, skipping");
            notices.push(Notice::new(message));
        } else {
            return Err(undefined(&name, written));
        }
    }
    notices.extend(drop_all(change, &found, statement.cascade)?);
    Ok(notices)
}

/// Removes domains, and what depends on them.
///
/// # Errors
/// 2BP01 where something does, without `cascade`.
pub(super) fn drop_all(
    change: &mut CatalogChange<'_>,
    names: &[String],
    cascade: bool,
) -> Result<Option<Notice>> {
    let mut depending = Found::default();
    for name in names {
        depending.add_of_domain(change.catalog(), name)?;
    }
    let is_dropped = |it: &Dependent| matches!(it, Dependent::Domain(name) if names.contains(name));
    depending.all.retain(|(it, _)| !is_dropped(it));
    let what = match names {
        [one] => format!("type {}", quote_identifier(one)),
        _ => String::new(),
    };
    let notice = depending.remove(change, &what, cascade)?;
    names.iter().try_for_each(|name| change.drop_domain(name))?;
    Ok(notice)
}

impl Found {
    /// Adds a domain that depends on a type, and what depends on the domain.
    ///
    /// # Errors
    /// As [`Found::add_naming`].
    pub fn add_domain(&mut self, catalog: &Catalog, domain: &Domain, on: &str) -> Result<()> {
        self.add(Dependent::Domain(domain.name.clone()), on.to_owned());
        self.add_of_domain(catalog, &domain.name)
    }

    /// Adds what depends on a domain.
    fn add_of_domain(&mut self, catalog: &Catalog, name: &str) -> Result<()> {
        let on = format!("type {}", quote_identifier(name));
        for domain in catalog.domains() {
            if domain.over.as_deref() == Some(name) {
                self.add_domain(catalog, domain, &on)?;
            }
        }
        self.add_columns(catalog, &on, |column| {
            column.domain.as_deref() == Some(name)
        });
        self.add_naming(catalog, &only_named(name), &on)?;
        if let Some(other) = naming(catalog, name)? {
            let what = format!("dropping domain {name}, which domain {other} names,");
            return Err(unsupported(what, None));
        }
        for routine in routines(catalog, name) {
            self.add(routine, on.clone());
        }
        Ok(())
    }
}

/// A domain, by its name alone: its columns are found otherwise.
fn only_named(name: &str) -> NamedType<'_> {
    NamedType {
        name,
        is_of: &|_| false,
        shows: &|_| false,
    }
}

/// The functions and procedures with an argument or a result of a domain.
fn routines(catalog: &Catalog, name: &str) -> Vec<Dependent> {
    let is_of = |domain: &Option<Arc<Domain>>| domain.as_ref().is_some_and(|it| it.name == name);
    let uses = |procedure: &Arc<Procedure>| {
        routine_of(catalog, procedure).filter(|known| {
            known.parameters.iter().any(|it| is_of(&it.domain))
                || known.result_domains.iter().any(is_of)
        })
    };
    let found = catalog.procedures().filter_map(|procedure| {
        let known = uses(procedure)?;
        let types = argument_types(catalog, &known.name);
        let (name, kind) = (quote_identifier(&known.name), known.kind);
        let kind = match kind {
            RoutineKind::Function => "function",
            RoutineKind::Procedure => "procedure",
        };
        Some(Dependent::Routine {
            name: known.name,
            described: format!("{kind} {name}({types})"),
        })
    });
    found.collect()
}

/// The domain that ALTER DOMAIN names.
fn find(catalog: &Catalog, written: &ObjectName) -> Result<Arc<Domain>> {
    let name = type_name(catalog, written)?;
    if let Some(domain) = catalog.domain(&name) {
        return Ok(domain.clone());
    }
    Err(match is_other_type(catalog, &name) {
        true => {
            let printed = types::plain(&name).map(|known| known.to_string());
            let printed = printed.unwrap_or_else(|| quote_identifier(&name));
            let message = format!("{printed} is not a domain");
            Error::new(SqlState::WRONG_OBJECT_TYPE, message)
        }
        false => undefined(&name, written),
    })
}

fn is_other_type(catalog: &Catalog, name: &str) -> bool {
    catalog.enumeration(name).is_some()
        || catalog.table(name).is_some()
        || catalog.view(name).is_some()
        || types::plain(name).is_some()
}

fn missing_check(check: &str, domain: &str) -> String {
    format!("constraint \"{check}\" of domain \"{domain}\" does not exist")
}
