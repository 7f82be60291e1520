//! REFERENCES in CREATE TABLE.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, Deferral, ForeignKey, ReferentialAction, TableSchema};
use kiln_storage::types::DataType;
use sqlparser::ast::{
    self, ConstraintCharacteristics, ConstraintReferenceMatchKind, DeferrableInitial,
    ForeignKeyConstraint, Ident,
};

use super::super::coerce::{CastContext, cast_context};
use super::super::qualified::is_temporary;
use super::super::{
    CatalogView, Position, fail, name_of, position_of, position_of_span, relation_name,
    unsupported, written_name,
};
use super::table::{UniqueKey, column_called};
use super::{generated, names};
use crate::parse::SetColumns;

/// Checks a REFERENCES constraint of the table `schema`, whose unique keys are `own_keys`.
pub(super) fn foreign_key(
    schema: &TableSchema,
    own_keys: &[UniqueKey],
    columns: Vec<ColumnId>,
    (constraint, set_columns): (&ForeignKeyConstraint, &[&SetColumns]),
    name: Option<&Ident>,
    catalog: &dyn CatalogView,
    is_taken: &dyn Fn(&str) -> bool,
) -> Result<ForeignKey> {
    let position = position_of(&constraint.foreign_table);
    if matches!(
        constraint.match_kind,
        Some(ConstraintReferenceMatchKind::Partial)
    ) {
        return Err(unsupported("MATCH PARTIAL", position));
    }
    let target = referenced_table(schema, &constraint.foreign_table, catalog)?;
    let shown = written_name(&constraint.foreign_table);
    let other = catalog.table(&target);
    if other.is_some() && is_temporary(catalog, &schema.name) && !is_temporary(catalog, &target) {
        let message = "constraints on temporary tables may reference only temporary tables";
        return Err(fail(SqlState::INVALID_TABLE_DEFINITION, message, None));
    }
    let (referenced_schema, keys) = if target == schema.name {
        (
            schema,
            own_keys
                .iter()
                .map(|key| (key.columns.clone(), key.deferral))
                .collect::<Vec<_>>(),
        )
    } else {
        let Some(other) = &other else {
            if catalog.view(&target).is_some() {
                let message = format!("referenced relation \"{shown}\" is not a table");
                return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
            }
            let message = format!("relation \"{shown}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        };
        if catalog.materialized_view(&other.schema().name).is_some() {
            let message = format!("referenced relation \"{shown}\" is not a table");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
        }
        let indexes = other.indexes().iter().map(|index| index.definition());
        let unique = indexes.filter(|index| index.keeps_unique());
        let keys = unique.map(|index| (index.columns.clone(), index.deferral));
        (other.schema(), keys.collect())
    };
    let referenced = if constraint.referred_columns.is_empty() {
        let primary = match (&referenced_schema.primary_key_name, &other) {
            (Some(name), Some(other)) if referenced_schema.primary_key.is_empty() => {
                let mut indexes = other.indexes().iter();
                let index = indexes.find(|index| {
                    let definition = index.definition();
                    definition.name == *name && definition.unique
                });
                index.map_or_else(Vec::new, |index| index.definition().columns.clone())
            }
            _ => referenced_schema.primary_key.clone(),
        };
        if primary.is_empty() && referenced_schema.primary_key_name.is_some() {
            return Err(deferrable_key("primary key", &shown, position));
        }
        if primary.is_empty() {
            let message = format!("there is no primary key for referenced table \"{shown}\"");
            return Err(fail(SqlState::UNDEFINED_OBJECT, message, position));
        }
        primary
    } else {
        let mut referenced = Vec::new();
        for ident in &constraint.referred_columns {
            let name = name_of(ident);
            referenced.push(referenced_schema.column(&name).ok_or_else(|| {
                let message = format!(
                    "column \"{name}\" referenced in foreign key constraint does not exist"
                );
                fail(SqlState::UNDEFINED_COLUMN, message, position)
            })?);
        }
        referenced
    };
    if referenced.len() != columns.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(fail(SqlState::INVALID_FOREIGN_KEY, message, position));
    }
    let same = |(key, _): &&(Vec<ColumnId>, Deferral)| {
        key.len() == referenced.len() && referenced.iter().all(|column| key.contains(column))
    };
    let mut same_keys = keys.iter().filter(same).peekable();
    if same_keys.peek().is_some() && same_keys.all(|(_, deferral)| deferral.is_deferrable()) {
        return Err(deferrable_key("unique constraint", &shown, position));
    }
    if !keys.iter().any(|key| same(&key)) {
        let message = format!(
            "there is no unique constraint matching given keys for referenced table \"{shown}\""
        );
        return Err(fail(SqlState::INVALID_FOREIGN_KEY, message, position));
    }
    let list: Vec<&str> = columns
        .iter()
        .map(|column| schema.columns[column.index()].name.as_str())
        .collect();
    let name = match name {
        Some(name) => name_of(name),
        None => names::choose(
            name_in_schema(&schema.name),
            Some(&list.join("_")),
            "fkey",
            is_taken,
        ),
    };
    let set_columns = set_columns.iter().find(|list| {
        let at = (list.references.line, list.references.column);
        position == Some(at)
    });
    let set_columns = set_columns.map_or(&[][..], |list| list.columns.as_slice());
    let key = ForeignKey {
        name,
        set_on_delete: columns_set(schema, &columns, set_columns)?,
        columns,
        table: target,
        referenced,
        is_valid: true,
        on_delete: action(constraint.on_delete),
        on_update: action(constraint.on_update),
        match_full: constraint.match_kind == Some(ConstraintReferenceMatchKind::Full),
        deferral: deferral(&constraint.characteristics)?,
    };
    generated::check_actions(schema, &key, position)?;
    check_types(schema, &key, referenced_schema).map_err(|error| match position {
        Some((line, column)) => error.at(line, column),
        None => error,
    })?;
    Ok(key)
}

/// The table that a foreign key of the table `schema` refers to, which may be that table, though it
/// is not there yet.
fn referenced_table(
    schema: &TableSchema,
    written: &ast::ObjectName,
    catalog: &dyn CatalogView,
) -> Result<String> {
    let found = relation_name(catalog, written)?;
    let is_own = match written.0.len() {
        1 => {
            catalog.table(&found).is_none() && written_name(written) == name_in_schema(&schema.name)
        }
        _ => false,
    };
    Ok(if is_own { schema.name.clone() } else { found })
}

/// Whether the columns of a foreign key can be compared with those that they refer to.
///
/// # Errors
/// 42804.
pub(super) fn check_types(
    schema: &TableSchema,
    key: &ForeignKey,
    referenced: &TableSchema,
) -> Result<()> {
    for (column, other) in key.columns.iter().zip(&key.referenced) {
        let (own, other) = (
            &schema.columns[column.index()],
            &referenced.columns[other.index()],
        );
        if !comparable(&own.data_type, &other.data_type) {
            let name = &key.name;
            let message = format!("foreign key constraint \"{name}\" cannot be implemented");
            let error = Error::new(SqlState::DATATYPE_MISMATCH, message);
            return Err(error.with_detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                own.name,
                other.name,
                own.data_type.base_name(),
                other.data_type.base_name()
            )));
        }
    }
    Ok(())
}

/// The columns that an action sets, where they are listed.
fn columns_set(
    schema: &TableSchema,
    columns: &[ColumnId],
    listed: &[Ident],
) -> Result<Vec<ColumnId>> {
    let mut set = Vec::new();
    for ident in listed {
        let column = column_called(schema, ident, "referenced in foreign key constraint ")?;
        if !columns.contains(&column) {
            let message = format!(
                "column \"{}\" referenced in ON DELETE SET action must be part of foreign key",
                name_of(ident)
            );
            let position = position_of_span(ident.span);
            return Err(fail(SqlState::INVALID_COLUMN_REFERENCE, message, position));
        }
        if !set.contains(&column) {
            set.push(column);
        }
    }
    Ok(set)
}

/// Rows may share a key that is deferrable for a while, so that none refers to it.
fn deferrable_key(what: &str, table: &str, position: Position) -> Error {
    let message = format!("cannot use a deferrable {what} for referenced table \"{table}\"");
    fail(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        message,
        position,
    )
}

/// Whether the check of a constraint may wait.
///
/// # Errors
/// 42601 for INITIALLY DEFERRED without DEFERRABLE, 0A000 for NOT ENFORCED.
pub(super) fn deferral(written: &Option<ConstraintCharacteristics>) -> Result<Deferral> {
    let Some(written) = written else {
        return Ok(Deferral::No);
    };
    if written.enforced == Some(false) {
        return Err(unsupported("a constraint that is NOT ENFORCED", None));
    }
    let is_deferred = written.initially == Some(DeferrableInitial::Deferred);
    match (written.deferrable, is_deferred) {
        (Some(false), true) => {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
        (_, true) => Ok(Deferral::InitiallyDeferred),
        (Some(true), false) => Ok(Deferral::InitiallyImmediate),
        (_, false) => Ok(Deferral::No),
    }
}

/// Whether a referencing value is compared with a referenced one: as PostgreSQL finds an operator
/// for the referenced key's index, for both types or for one to which the referencing type converts
/// by itself.
fn comparable(own: &DataType, other: &DataType) -> bool {
    use DataType::{Date, Double};
    let (own, other) = (&own.without_modifier(), &other.without_modifier());
    let is_family = |members: &[DataType]| members.contains(own) && members.contains(other);
    cast_context(own, other) == Some(CastContext::Implicit)
        || own.is_integer() && other.is_integer()
        || is_family(&[Double, DataType::REAL])
        || is_family(&[Date, DataType::TIMESTAMP, DataType::TIMESTAMPTZ])
}

fn action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    match written {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}
