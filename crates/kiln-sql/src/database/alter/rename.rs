//! Other names, and other owners.

use kiln_engine::{Catalog, CatalogChange, Domain, Object, Source};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{name_in_schema, qualified, schema_of};
use kiln_storage::table::Table;
use sqlparser::ast::{Ident, ObjectName};

use super::super::definition::Definition;
use super::super::design;
use super::super::functions::{find_routine, kind_name, missing_routine};
use super::super::objects::{give, renamed, role_meant, table_of_index, tag};
use super::super::result::{Notice, StatementResult};
use super::super::routine::recompile_routine;
use super::super::triggers;
use super::super::views::{self, Dependency};
use super::{missing, skipped};
use crate::catalog::{base_of, is_auxiliary, relation_of};
use crate::compile::ddl::{Renamed, parameters, renamed_expression};
use crate::compile::{
    fail, name_of, position_of, position_of_span, quote_identifier, refuse_reserved, unsupported,
};
use crate::parse::{
    AlterObject, AlterTable, AlteredObject, NewName, ObjectChange, RoleName, RoutineKind,
    RoutineSignature, renamed_routine,
};

/// ALTER INDEX, ALTER SEQUENCE, ALTER FUNCTION and their like, with another name or owner.
pub(in super::super) fn object(
    definition: &Definition<'_>,
    statement: &AlterObject,
) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag(tag(&statement.object));
    let notice = definition.change_catalog(|change| {
        let notice = match (&statement.object, &statement.change) {
            (AlteredObject::Routine(kind, signature), altered) => {
                alter_routine(change, *kind, signature, altered).map(|()| None)?
            }
            (AlteredObject::Index(name) | AlteredObject::Sequence(name), altered) => {
                let is_sequence = matches!(statement.object, AlteredObject::Sequence(_));
                match relation_named(change, name)? {
                    None if statement.if_exists => Some(skipped(name)),
                    None => return Err(missing(name)),
                    Some(relation) => {
                        if is_sequence && !matches!(relation, Relation::Sequence(_)) {
                            let message = format!(
                                "\"{}\" is not a sequence",
                                name_in_schema(relation.name())
                            );
                            let position = position_of(name);
                            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
                        }
                        alter_relation(change, &relation, altered)?;
                        None
                    }
                }
            }
        };
        design::derive(change)?;
        Ok(notice)
    })?;
    result.notices.extend(notice);
    Ok(result)
}

/// A relation by its name.
enum Relation {
    Table(String),
    /// An index, and its table.
    Index(String, String),
    Sequence(String),
    View(String),
}

impl Relation {
    fn name(&self) -> &str {
        match self {
            Relation::Table(name)
            | Relation::Index(name, _)
            | Relation::Sequence(name)
            | Relation::View(name) => name,
        }
    }
}

fn relation_named(change: &CatalogChange<'_>, written: &ObjectName) -> Result<Option<Relation>> {
    let catalog = change.catalog();
    let name = relation_of(catalog, written)?;
    if catalog.table(&name).is_some() {
        return Ok(Some(Relation::Table(name)));
    }
    if catalog.sequence(&name).is_some() {
        return Ok(Some(Relation::Sequence(name)));
    }
    if catalog.view(&name).is_some() {
        return Ok(Some(Relation::View(name)));
    }
    let table = table_of_index(change, &name);
    Ok(table.map(|table| Relation::Index(name, table)))
}

fn alter_relation(
    change: &mut CatalogChange<'_>,
    relation: &Relation,
    altered: &ObjectChange,
) -> Result<()> {
    match altered {
        ObjectChange::Owner(role) => give_relation(change, relation, role),
        ObjectChange::Rename(to) => rename_relation(change, relation, to),
        ObjectChange::Parameters(names) => {
            parameters::check_parameters(names, parameters::OF_INDEX)
        }
    }
}

fn rename_relation(
    change: &mut CatalogChange<'_>,
    relation: &Relation,
    written: &NewName,
) -> Result<()> {
    let position = match written {
        NewName::Name(to) => position_of_span(to.span),
        NewName::Schema(_) => None,
    };
    if let (Relation::Index(name, _), NewName::Schema(_)) = (relation, written) {
        let message = format!("\"{}\" is an index", name_in_schema(name));
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_hint("Move its table: an index is in the schema of that."));
    }
    let to = renamed(change.catalog(), relation.name(), written)?;
    if to == relation.name() && matches!(written, NewName::Schema(_)) {
        return Ok(());
    }
    if matches!(written, NewName::Schema(_)) {
        refuse_taken(change, &to)?;
    }
    let new = name_in_schema(&to).to_owned();
    match relation {
        Relation::View(name) => return views::rename_one(change, name, &to, position),
        Relation::Table(name) => {
            views::refuse_rename(change.catalog(), Dependency::Table(name))?;
        }
        Relation::Sequence(name) => {
            views::refuse_rename(change.catalog(), Dependency::Sequence(name))?;
        }
        Relation::Index(..) => {}
    }
    let renamed = match relation {
        Relation::Table(from) => match written {
            NewName::Name(_) => change.rename_table(from, &to).and_then(|()| {
                rename_in_table(change, &to, Renamed::Table(name_in_schema(from)), &new)
            }),
            NewName::Schema(_) => move_table(change, from, &to),
        },
        Relation::View(_) => Ok(()),
        Relation::Index(from, table) => rename_index(change, table, name_in_schema(from), &new),
        Relation::Sequence(from) => {
            if let (Some(owner), NewName::Schema(_)) = (owner_of(change.catalog(), from), written) {
                let name = name_in_schema(from);
                let message = "cannot move an owned sequence into another schema";
                let detail = format!("Sequence \"{name}\" is linked to table \"{owner}\".");
                return Err(
                    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(detail)
                );
            }
            rename_sequence(change, from, &to)
        }
    };
    renamed.map_err(|error| match (error.state(), position) {
        (SqlState::DUPLICATE_TABLE, Some((line, column))) => error.at(line, column),
        _ => error,
    })
}

/// The table with which a sequence goes, without its schema.
fn owner_of(catalog: &Catalog, sequence: &str) -> Option<String> {
    let owner = catalog.sequence(sequence)?.definition().owner.as_ref()?;
    Some(name_in_schema(&owner.table).to_owned())
}

fn rename_sequence(change: &mut CatalogChange<'_>, from: &str, to: &str) -> Result<()> {
    change.rename_sequence(from, to)?;
    rename_everywhere(change, Renamed::Sequence(from), to)
}

/// # Errors
/// 42P07 where a relation has this name.
fn refuse_taken(change: &CatalogChange<'_>, name: &str) -> Result<()> {
    let catalog = change.catalog();
    let is_taken = catalog.table(name).is_some()
        || catalog.view(name).is_some()
        || catalog.sequence(name).is_some()
        || change.index_owner(name).is_some();
    if !is_taken {
        return Ok(());
    }
    let (schema, name) = (schema_of(name), name_in_schema(name));
    let message = format!("relation \"{name}\" already exists in schema \"{schema}\"");
    Err(Error::new(SqlState::DUPLICATE_TABLE, message))
}

/// Moves a table into another schema, with its indexes and the sequences that go with it.
fn move_table(change: &mut CatalogChange<'_>, from: &str, to: &str) -> Result<()> {
    let table = change.catalog().require_table(from)?.clone();
    let schema = schema_of(to);
    for index in table.indexes() {
        refuse_taken(change, &qualified(schema, &index.definition().name))?;
    }
    change.rename_table(from, to)?;
    let owned = change.catalog().owned_sequences(to);
    let owned: Vec<String> = owned.map(|it| it.name().to_owned()).collect();
    let mut owned = owned.iter();
    owned.try_for_each(|sequence| {
        rename_sequence(
            change,
            sequence,
            &qualified(schema, name_in_schema(sequence)),
        )
    })
}

/// ALTER TABLE … RENAME TO and SET SCHEMA, which take indexes and sequences as well.
pub(super) fn relation(
    change: &mut CatalogChange<'_>,
    statement: &AlterTable,
    to: &NewName,
) -> Result<Vec<Notice>> {
    match relation_named(change, &statement.name)? {
        Some(found) => rename_relation(change, &found, to).map(|()| Vec::new()),
        None => not_there(statement),
    }
}

/// ALTER TABLE … OWNER TO.
pub(super) fn relation_owner(
    change: &mut CatalogChange<'_>,
    statement: &AlterTable,
    role: &RoleName,
) -> Result<Vec<Notice>> {
    match relation_named(change, &statement.name)? {
        Some(relation) => give_relation(change, &relation, role).map(|()| Vec::new()),
        None => not_there(statement),
    }
}

fn not_there(statement: &AlterTable) -> Result<Vec<Notice>> {
    match statement.if_exists {
        true => Ok(vec![skipped(&statement.name)]),
        false => Err(missing(&statement.name)),
    }
}

/// Gives a relation to a role. An index belongs to the owner of its table, whatever is said.
fn give_relation(
    change: &mut CatalogChange<'_>,
    relation: &Relation,
    role: &RoleName,
) -> Result<()> {
    let object = match relation {
        Relation::Table(name) | Relation::View(name) => Object::table(name),
        Relation::Sequence(name) => Object::sequence(name),
        Relation::Index(..) => return role_meant(change, role).map(|_| ()),
    };
    give(change, object, role)
}

/// RENAME COLUMN.
pub(super) fn column(
    change: &mut CatalogChange<'_>,
    table: &Arc<Table>,
    from: &Ident,
    to: &Ident,
) -> Result<()> {
    refuse_reserved(to)?;
    let schema = table.schema();
    let (from, written, to) = (name_of(from), from, name_of(to));
    if schema.column(&from).is_none() {
        let message = format!("column \"{from}\" does not exist");
        let position = position_of_span(written.span);
        return Err(fail(SqlState::UNDEFINED_COLUMN, message, position));
    }
    if schema.column(&to).is_some() {
        let message = format!(
            "column \"{to}\" of relation \"{}\" already exists",
            name_in_schema(&schema.name)
        );
        return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
    }
    views::refuse_rename_of_column(change.catalog(), &schema.name, &from)?;
    rename_in_table(change, &schema.name, Renamed::Column(&from), &to)?;
    change.rename_column(&schema.name, &from, &to)
}

/// RENAME CONSTRAINT.
pub(super) fn constraint(
    change: &mut CatalogChange<'_>,
    table: &Arc<Table>,
    from: &str,
    to: &str,
) -> Result<()> {
    let schema = table.schema();
    let name = &schema.name;
    let is_row_check = |wanted: &str| {
        let mut checks = schema.checks.iter().map(|check| &check.name);
        let mut keys = schema.foreign_keys.iter().map(|key| &key.name);
        checks.any(|known| known == wanted) || keys.any(|known| known == wanted)
    };
    let is_key = |wanted: &str| {
        let mut indexes = table.indexes().iter().map(|index| index.definition());
        indexes.any(|it| it.constraint && !it.columns.is_empty() && it.name == wanted)
    };
    if !is_row_check(from) && !is_key(from) {
        let name = name_in_schema(name);
        let message = format!("constraint \"{from}\" for table \"{name}\" does not exist");
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    }
    if is_row_check(to) || (is_row_check(from) && is_key(to)) {
        let name = name_in_schema(name);
        let message = format!("constraint \"{to}\" for relation \"{name}\" already exists");
        return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
    }
    if is_key(from) {
        return rename_index(change, name, from, to);
    }
    change.alter_schema(name, |schema| {
        let checks = schema.checks.iter_mut().map(|check| &mut check.name);
        let keys = schema.foreign_keys.iter_mut().map(|key| &mut key.name);
        let meant = checks.chain(keys).filter(|known| *known == from);
        meant.for_each(|known| to.clone_into(known));
    })?;
    change.renumber_constraint(name, from, to);
    Ok(())
}

/// Renames an index with the constraint that it belongs to. The hash index beside it is derived
/// anew.
fn rename_index(change: &mut CatalogChange<'_>, table: &str, from: &str, to: &str) -> Result<()> {
    let known = change.catalog().require_table(table)?.clone();
    let indexes = known.indexes().iter().map(|index| index.definition());
    let mut derived = indexes.filter(|it| is_auxiliary(&known, it));
    if let Some(derived) = derived.find(|it| base_of(it) == from) {
        change.drop_index(table, &derived.name)?;
    }
    change.rename_index(table, from, to)
}

fn alter_routine(
    change: &mut CatalogChange<'_>,
    kind: Option<RoutineKind>,
    signature: &RoutineSignature,
    altered: &ObjectChange,
) -> Result<()> {
    let Some(from) = find_routine(change, kind, signature)? else {
        return Err(missing_routine(change.catalog(), kind, signature)?);
    };
    let to = match altered {
        ObjectChange::Owner(role) => return give(change, Object::routine(from), role),
        ObjectChange::Rename(NewName::Name(to)) => name_of(to),
        ObjectChange::Rename(NewName::Schema(_)) => {
            return Err(unsupported("a routine of another schema than public", None));
        }
        ObjectChange::Parameters(_) => {
            return Err(Error::internal("a routine has no parameters of storage"));
        }
    };
    if change.catalog().procedure(&to).is_some() {
        let kind = kind.map_or("routine", kind_name);
        let message = format!("{kind} {to} already exists in schema \"public\"");
        return Err(Error::new(SqlState::DUPLICATE_FUNCTION, message));
    }
    views::refuse_rename(change.catalog(), Dependency::Function(&from, ""))?;
    let known = change.catalog().require_procedure(&from)?.source().cloned();
    let source = known.ok_or_else(|| {
        Error::unsupported("another name for a procedure of Rust code is not supported")
    })?;
    let renamed = Arc::new(Source {
        text: renamed_routine(&source.text, &quote_identifier(&to))?,
        ..(*source).clone()
    });
    let procedure = recompile_routine(change.catalog(), &renamed)?;
    change.rename_procedure(&from, procedure)?;
    triggers::rename_function(change, &from, &to)?;
    rename_everywhere(change, Renamed::Routine(&from), &to)
}

/// Has the expressions of all tables and domains name something by another name.
fn rename_everywhere(change: &mut CatalogChange<'_>, what: Renamed<'_>, to: &str) -> Result<()> {
    let tables = change.catalog().tables().map(|(name, _)| name.to_owned());
    let tables: Vec<String> = tables.collect();
    let mut tables = tables.iter();
    tables.try_for_each(|table| rename_in_table(change, table, what, to))?;
    let domains: Vec<Domain> = change
        .catalog()
        .domains()
        .map(|it| (**it).clone())
        .collect();
    for mut domain in domains {
        let checks = domain.checks.iter_mut().map(|check| &mut check.expression);
        let mut is_changed = false;
        for text in checks.chain(&mut domain.default) {
            if let Some(renamed) = renamed_expression(text, what, to)? {
                *text = renamed;
                is_changed = true;
            }
        }
        if is_changed {
            let name = domain.name.clone();
            change.alter_domain(&name, |known| {
                *known = domain;
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Has the expressions of a table name something by another name.
fn rename_in_table(
    change: &mut CatalogChange<'_>,
    table: &str,
    what: Renamed<'_>,
    to: &str,
) -> Result<()> {
    let mut schema = change.catalog().require_table(table)?.schema().clone();
    let defaults = schema.columns.iter_mut();
    let defaults = defaults.flat_map(|column| [&mut column.default, &mut column.generated]);
    let defaults = defaults.flatten();
    let checks = schema.checks.iter_mut().map(|check| &mut check.expression);
    let mut is_changed = false;
    let triggers = schema.triggers.iter_mut();
    let conditions = triggers.filter_map(|trigger| trigger.condition.as_mut());
    for text in defaults.chain(checks).chain(conditions) {
        if let Some(renamed) = renamed_expression(text, what, to)? {
            *text = renamed;
            is_changed = true;
        }
    }
    if is_changed {
        change.alter_schema(table, |known| *known = schema)?;
    }
    Ok(())
}
