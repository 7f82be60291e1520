//! Sequences as they are declared: by themselves, by SERIAL, and by identity columns.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{beside, name_in_schema};
use kiln_storage::schema::{Column, TableSchema};
use kiln_storage::sequence::{Identity, SequenceDefinition, SequenceOwner};
use kiln_storage::types::DataType;
use sqlparser::ast::{self, DataType as Written, Ident};

use super::super::{
    CatalogView, Position, dml, fail, kept_name, name_of, relation_name, row_name, scratch, types,
    unsupported, written_name,
};
use super::names;
use crate::parse::SequenceOptions;

/// The type of a column that is declared SERIAL, or its like.
pub(super) fn serial_type(written: &Written) -> Option<DataType> {
    let Written::Custom(name, modifiers) = written else {
        return None;
    };
    let [part] = name.0.as_slice() else {
        return None;
    };
    let name = part.as_ident().filter(|_| modifiers.is_empty())?;
    match name.value.as_str() {
        "smallserial" | "serial2" => Some(DataType::SmallInt),
        "serial" | "serial4" => Some(DataType::Integer),
        "bigserial" | "serial8" => Some(DataType::BigInt),
        _ => None,
    }
}

/// The default value of a column that draws from a sequence, as it is kept.
pub fn sequence_default(sequence: &str) -> String {
    let quoted = kept_name(sequence).replace('\'', "''");
    format!("nextval('{quoted}'::regclass)")
}

/// What a sequence is by itself that has a type and an increment.
fn plain(name: String, data_type: DataType, increment: i64) -> SequenceDefinition {
    let (least, greatest) = SequenceDefinition::range_of(&data_type);
    let (min, max) = match increment > 0 {
        true => (1, greatest),
        false => (least, -1),
    };
    SequenceDefinition {
        name,
        data_type,
        start: if increment > 0 { min } else { max },
        increment,
        min,
        max,
        cache: 1,
        cycle: false,
        owner: None,
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The type of a sequence.
fn type_of(written: &Written, is_identity: bool) -> Result<DataType> {
    let data_type = types::plain_type(written, None)?;
    match data_type {
        DataType::SmallInt | DataType::Integer | DataType::BigInt => Ok(data_type),
        _ if is_identity => Err(invalid(
            "identity column type must be smallint, integer, or bigint",
        )),
        _ => Err(invalid(
            "sequence type must be smallint, integer, or bigint",
        )),
    }
}

/// What CREATE SEQUENCE declares, but for its owner, and the value at which it begins if that is
/// another one than its first.
///
/// # Errors
/// 22023, as PostgreSQL checks the options.
pub fn created_sequence(
    name: String,
    options: &SequenceOptions,
) -> Result<(SequenceDefinition, Option<i64>)> {
    let data_type = match &options.data_type {
        Some(written) => type_of(written, false)?,
        None => DataType::BigInt,
    };
    declared(name, data_type, options)
}

fn declared(
    name: String,
    data_type: DataType,
    options: &SequenceOptions,
) -> Result<(SequenceDefinition, Option<i64>)> {
    let increment = options.increment.unwrap_or(1);
    check_increment(increment)?;
    let base = plain(name, data_type, increment);
    let mut definition = base.clone();
    definition.max = options.max.flatten().unwrap_or(base.max);
    definition.min = options.min.flatten().unwrap_or(base.min);
    let first = match increment > 0 {
        true => definition.min,
        false => definition.max,
    };
    definition.start = options.start.unwrap_or(first);
    definition.cache = options.cache.unwrap_or(1);
    definition.cycle = options.cycle.unwrap_or(false);
    let restart = options
        .restart
        .map(|value| value.unwrap_or(definition.start));
    check(&definition, restart.unwrap_or(definition.start))?;
    Ok((definition, restart))
}

fn check_increment(increment: i64) -> Result<()> {
    match increment {
        0 => Err(invalid("INCREMENT must not be zero")),
        _ => Ok(()),
    }
}

/// Checks a sequence whose last value is `last`.
fn check(definition: &SequenceDefinition, last: i64) -> Result<()> {
    let SequenceDefinition {
        data_type,
        start,
        min,
        max,
        cache,
        ..
    } = definition;
    let (least, greatest) = SequenceDefinition::range_of(data_type);
    let is_in_type = |value: i64| (least..=greatest).contains(&value);
    for (value, what) in [(*max, "MAXVALUE"), (*min, "MINVALUE")] {
        if !is_in_type(value) {
            return Err(invalid(format!(
                "{what} ({value}) is out of range for sequence data type {data_type}"
            )));
        }
    }
    if min >= max {
        let message = format!("MINVALUE ({min}) must be less than MAXVALUE ({max})");
        return Err(invalid(message));
    }
    for (value, what) in [(*start, "START"), (last, "RESTART")] {
        if value < *min {
            return Err(invalid(format!(
                "{what} value ({value}) cannot be less than MINVALUE ({min})"
            )));
        }
        if value > *max {
            return Err(invalid(format!(
                "{what} value ({value}) cannot be greater than MAXVALUE ({max})"
            )));
        }
    }
    if *cache < 1 {
        let message = format!("CACHE ({cache}) must be greater than zero");
        return Err(invalid(message));
    }
    Ok(())
}

/// What ALTER SEQUENCE makes of a sequence whose last value is `last`, and the value at which it
/// begins anew, if it does.
///
/// # Errors
/// 22023, as PostgreSQL checks the options.
pub fn altered_sequence(
    old: &SequenceDefinition,
    last: i64,
    options: &SequenceOptions,
) -> Result<(SequenceDefinition, Option<i64>)> {
    let is_identity = old.owner.as_ref().is_some_and(|it| it.identity.is_some());
    let mut new = old.clone();
    let (mut resets_min, mut resets_max) = (false, false);
    if let Some(written) = &options.data_type {
        new.data_type = type_of(written, is_identity)?;
        let (least, greatest) = SequenceDefinition::range_of(&old.data_type);
        let changes = new.data_type != old.data_type;
        resets_min = changes && old.min == least;
        resets_max = changes && old.max == greatest;
    }
    if let Some(increment) = options.increment {
        check_increment(increment)?;
        new.increment = increment;
    }
    let (least, greatest) = SequenceDefinition::range_of(&new.data_type);
    let is_ascending = new.increment > 0;
    new.max = match options.max {
        Some(Some(max)) => max,
        None if !resets_max => old.max,
        _ if is_ascending || resets_max => greatest,
        _ => -1,
    };
    new.min = match options.min {
        Some(Some(min)) => min,
        None if !resets_min => old.min,
        _ if !is_ascending || resets_min => least,
        _ => 1,
    };
    new.start = options.start.unwrap_or(old.start);
    new.cache = options.cache.unwrap_or(old.cache);
    new.cycle = options.cycle.unwrap_or(old.cycle);
    let restart = options.restart.map(|value| value.unwrap_or(new.start));
    check(&new, restart.unwrap_or(last))?;
    Ok((new, restart))
}

/// The column that OWNED BY names; `None` for NONE.
///
/// # Errors
/// 42601, 42P01, 42703.
pub fn owner_of(parts: &[Ident], catalog: &dyn CatalogView) -> Result<Option<SequenceOwner>> {
    let Some((column, table)) = parts.split_last() else {
        return Ok(None);
    };
    if table.is_empty() {
        let error = Error::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option");
        return Err(error.with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
    }
    let written = ast::ObjectName::from(table.to_vec());
    let name = relation_name(catalog, &written)?;
    let Some(found) = catalog.table(&name) else {
        if names::is_relation(catalog, &name) {
            let name = written_name(&written);
            let message = format!("sequence cannot be owned by relation \"{name}\"");
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let message = format!("relation \"{}\" does not exist", written_name(&written));
        return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
    };
    let column = name_of(column);
    if found.schema().column(&column).is_none() {
        let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
        return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
    }
    Ok(Some(SequenceOwner {
        table: name,
        column,
        identity: None,
    }))
}

/// The sequence of a column that is declared SERIAL, or as an identity.
pub(super) fn of_column(
    schema: &TableSchema,
    column: &Column,
    identity: Option<(Identity, &SequenceOptions)>,
    is_taken: impl Fn(&str) -> bool,
    position: Position,
) -> Result<SequenceDefinition> {
    let none = SequenceOptions::default();
    let options = identity.map_or(&none, |(_, options)| options);
    let table = &schema.name;
    let name = match &options.name {
        Some(name) => {
            let name = match name.0.as_slice() {
                [_] => beside(table, &row_name(name)?),
                _ => {
                    let what = "a sequence of a column in a schema that is named";
                    return Err(unsupported(what, position));
                }
            };
            if is_taken(&name) {
                let name = name_in_schema(&name);
                let message = format!("relation \"{name}\" already exists");
                return Err(fail(SqlState::DUPLICATE_TABLE, message, position));
            }
            name
        }
        None => {
            let is_taken = |name: &str| is_taken(&beside(table, name));
            let first = name_in_schema(table);
            beside(
                table,
                &names::choose(first, Some(&column.name), "seq", is_taken),
            )
        }
    };
    let data_type = match (&column.data_type, &options.data_type) {
        (DataType::SmallInt | DataType::Integer | DataType::BigInt, None) => {
            column.data_type.clone()
        }
        (_, Some(_)) => {
            let message = "conflicting or redundant options";
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
        _ => {
            let message = "identity column type must be smallint, integer, or bigint";
            return Err(invalid(message));
        }
    };
    let (mut definition, restart) = declared(name, data_type, options)?;
    if restart.is_some() {
        return Err(unsupported("RESTART of a new identity column", position));
    }
    definition.owner = Some(SequenceOwner {
        table: table.clone(),
        column: column.name.clone(),
        identity: identity.map(|(identity, _)| identity),
    });
    Ok(definition)
}

/// The sequence of a column that becomes an identity.
///
/// # Errors
/// 55000 when it can be NULL, has a default value or is one; 22023.
pub fn added_identity(
    schema: &TableSchema,
    column: &Column,
    identity: (Identity, &SequenceOptions),
    catalog: &dyn CatalogView,
) -> Result<SequenceDefinition> {
    let (table, name) = (&schema.name, &column.name);
    let refused = |message: String| {
        Err(Error::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
        ))
    };
    let is_taken = |name: &str| names::is_relation(catalog, name);
    let made = of_column(schema, column, Some(identity), is_taken, None)?;
    if !column.not_null {
        return refused(format!(
            "column \"{name}\" of relation \"{table}\" must be declared NOT NULL before identity \
             can be added"
        ));
    }
    if catalog.identity_sequence(table, name).is_some() {
        return refused(format!(
            "column \"{name}\" of relation \"{table}\" is already an identity column"
        ));
    }
    if column.default.is_some() || column.generated.is_some() {
        return refused(format!(
            "column \"{name}\" of relation \"{table}\" already has a default value"
        ));
    }
    Ok(made)
}

/// What the sequence of an identity column becomes, whose last value is `last`, and the value at
/// which it begins anew, if it does.
///
/// # Errors
/// 22023.
pub fn altered_identity(
    old: &SequenceDefinition,
    last: i64,
    identity: Option<Identity>,
    options: &SequenceOptions,
) -> Result<(SequenceDefinition, Option<i64>)> {
    let (mut new, restart) = altered_sequence(old, last, options)?;
    if let (Some(owner), Some(identity)) = (&mut new.owner, identity) {
        owner.identity = Some(identity);
    }
    Ok((new, restart))
}

/// What the sequence of an identity column becomes, whose last value is `last`, when the column has
/// another type.
///
/// # Errors
/// 22023.
pub fn retyped_identity(
    old: &SequenceDefinition,
    last: i64,
    data_type: DataType,
) -> Result<(SequenceDefinition, Option<i64>)> {
    let written = match data_type {
        DataType::SmallInt => Written::SmallInt(None),
        DataType::Integer => Written::Integer(None),
        DataType::BigInt => Written::BigInt(None),
        _ => {
            let message = "identity column type must be smallint, integer, or bigint";
            return Err(invalid(message));
        }
    };
    let options = SequenceOptions {
        data_type: Some(written),
        ..SequenceOptions::default()
    };
    altered_sequence(old, last, &options)
}

/// Binds the default value of a column, as it is kept: the view learns what it names.
///
/// # Errors
/// What is wrong with it by now.
pub fn bind_default_text(text: &str, catalog: &dyn CatalogView) -> Result<()> {
    let expr = dml::stored_expression(text)?;
    scratch(catalog).bind(&expr).map(drop)
}
