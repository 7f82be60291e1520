//! CREATE DOMAIN, and the parts of ALTER DOMAIN: checked as PostgreSQL checks them.

use kiln_engine::Domain;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::{Check, Column};
use sqlparser::ast::{DataType, Expr, Value};

use super::super::domain::check_condition;
use super::super::{
    CatalogView, DeclaredType, Position, declared_type, dml, fail, name_of, object_name,
    position_of, quote_identifier, refuse_reserved, unsupported,
};
use super::{kept_default, names, table};
use crate::parse::{CreateDomain, DomainCheck};

/// The domain that a CREATE DOMAIN declares.
///
/// # Errors
/// 42704 for an unknown type, 42804 for one that no domain can be over, and what is wrong with its
/// expressions.
pub fn create_domain(
    name: &str,
    statement: &CreateDomain,
    catalog: &dyn CatalogView,
) -> Result<Domain> {
    if let Some(last) = statement.name.0.last().and_then(|part| part.as_ident()) {
        refuse_reserved(last)?;
    }
    let position = position_of(&statement.name);
    refuse_rows(&statement.data_type, catalog, position)?;
    let DeclaredType { data_type, domain } =
        declared_type(&statement.data_type, catalog, position)?;
    if !data_type.is_storable() {
        return Err(unsupported(
            format!("a domain over type {data_type}"),
            position,
        ));
    }
    let mut collation = None;
    if let Some(written) = &statement.collation {
        let known = object_name(written)?;
        if !matches!(known.as_str(), "C" | "POSIX" | "default" | "ucs_basic") {
            return Err(unsupported(format!("collation \"{known}\""), position)
                .with_hint("Text is compared byte by byte, as in collation \"C\"."));
        }
        if !data_type.is_string() {
            let message = format!(
                "collations are not supported by type {}",
                data_type.base_name()
            );
            return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
        }
        collation = Some(known).filter(|known| known != "default");
    }
    let mut created = Domain {
        name: name.to_owned(),
        base: data_type,
        over: domain.as_ref().map(|domain| domain.name.clone()),
        not_null: statement.not_null,
        default: domain.as_ref().and_then(|domain| domain.default.clone()),
        collation: collation.or_else(|| domain.as_ref()?.collation.clone()),
        checks: Vec::new(),
    };
    if let Some(expr) = &statement.default {
        created.default = domain_default(expr, &created, catalog)?;
    }
    for written in &statement.checks {
        let check = domain_check(written, &created, catalog)?;
        created.checks.push(check);
    }
    Ok(created)
}

/// Refuses the type of a table's rows.
fn refuse_rows(written: &DataType, catalog: &dyn CatalogView, position: Position) -> Result<()> {
    if let DataType::Custom(name, modifiers) = written
        && modifiers.is_empty()
        && let Ok(relation) = super::super::relation_name(catalog, name)
        && (catalog.table(&relation).is_some() || catalog.view(&relation).is_some())
    {
        return Err(unsupported(
            "a domain over the type of a table's rows",
            position,
        ));
    }
    Ok(())
}

/// The default value of a domain as it is kept; NULL is none.
///
/// # Errors
/// What is wrong with it.
pub fn domain_default(
    expr: &Expr,
    domain: &Domain,
    catalog: &dyn CatalogView,
) -> Result<Option<String>> {
    let mut compiler = table::scratch(catalog);
    let bound = compiler.bind(expr).map_err(|error| {
        // No row is in scope, so a name can only be meant for a column.
        if error.state() == SqlState::UNDEFINED_COLUMN {
            let message = "cannot use column reference in DEFAULT expression";
            fail(SqlState::FEATURE_NOT_SUPPORTED, message, position_of(expr))
        } else {
            error
        }
    })?;
    if matches!(expr, Expr::Value(value) if value.value == Value::Null) {
        return Ok(None);
    }
    // Messages speak of the domain as of a column.
    let column = Column {
        name: domain.name.clone(),
        data_type: domain.base.clone(),
        domain: None,
        not_null: false,
        default: None,
        generated: None,
    };
    dml::converted(bound, &column, "default expression")?;
    kept_default(expr, &domain.base, catalog).map(Some)
}

/// A check of a domain, with a name.
///
/// # Errors
/// 42710 for a name that is taken, and what is wrong with the condition.
pub fn domain_check(
    written: &DomainCheck,
    domain: &Domain,
    catalog: &dyn CatalogView,
) -> Result<Check> {
    let position = position_of(&written.condition);
    let text = written.condition.to_string();
    if text.to_lowercase().contains("(select") {
        let message = "cannot use subquery in check constraint";
        return Err(fail(SqlState::FEATURE_NOT_SUPPORTED, message, position));
    }
    check_condition(&written.condition, &domain.base, catalog)?;
    let name = match &written.name {
        Some(name) => {
            let name = name_of(name);
            if domain.check(&name).is_some() {
                let message = format!(
                    "constraint \"{name}\" for domain \"{}\" already exists",
                    domain.name
                );
                return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
            }
            name
        }
        None => names::choose(&domain.name, None, "check", |name| {
            domain.check(name).is_some()
        }),
    };
    Ok(Check {
        name,
        expression: text,
        is_valid: !written.not_valid,
    })
}

/// The error for a check whose name another one has.
#[cold]
pub fn check_exists(check: &str, domain: &str) -> Error {
    let domain = quote_identifier(domain);
    let message = format!("constraint \"{check}\" for domain {domain} already exists");
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}
