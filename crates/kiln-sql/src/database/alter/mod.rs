//! ALTER of tables, indexes, sequences and routines.
//!
//! The changes of one ALTER TABLE are made in PostgreSQL's order, whatever the order in which they
//! are written: what goes, goes first. They are gathered in a [`Draft`] of the table; its rows are
//! put into another layout once, if they have to be.
//!
//! | module | holds |
//! |---|---|
//! | `column` | default values and identities of columns |
//! | `drop` | columns and constraints that go, with what depends on them |
//! | `rename` | other names, other owners |
//! | `rows` | rows that follow, and are checked |

mod column;
mod drop;
mod rename;

use kiln_engine::{CatalogChange, Object};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::Deferral;
use kiln_storage::table::Table;
use sqlparser::ast::{Ident, ObjectName};

use super::definition::Definition;
use super::objects::give;
use super::result::{Notice, StatementResult};
use super::triggers;
use super::{design, follow};
use crate::catalog::{View, is_auxiliary, relation_of};
use crate::compile::ddl::parameters::{self, check_parameters};
use crate::compile::ddl::{self, Draft};
use crate::compile::{fail, name_of, position_of, written_name};
use crate::parse::{AddedColumn, AlterTable, ColumnChange, DroppedPart, TableAction};

pub(super) use rename::object;

/// ALTER TABLE.
pub(super) fn table(
    definition: &Definition<'_>,
    statement: &AlterTable,
) -> Result<StatementResult> {
    let mut result = StatementResult::of_tag("ALTER TABLE");
    result.notices = definition.change_catalog(|change| {
        let notices = match statement.actions.as_slice() {
            [TableAction::Rename(to)] => rename::relation(change, statement, to)?,
            [TableAction::Owner(role)] => rename::relation_owner(change, statement, role)?,
            actions => match find(change, statement)? {
                Some(table) => alter(change, &table, actions)?,
                None => vec![skipped(&statement.name)],
            },
        };
        design::derive(change)?;
        Ok(notices)
    })?;
    Ok(result)
}

/// What there is to say of a relation that is missing.
fn skipped(written: &ObjectName) -> Notice {
    let name = written_name(written);
    Notice::new(format!("relation \"{name}\" does not exist, skipping"))
}

/// The error for a relation that is missing.
fn missing(written: &ObjectName) -> Error {
    let name = written_name(written);
    let message = format!("relation \"{name}\" does not exist");
    fail(SqlState::UNDEFINED_TABLE, message, position_of(written))
}

/// The table that a statement alters; `None` where IF EXISTS finds none.
fn find(change: &CatalogChange<'_>, statement: &AlterTable) -> Result<Option<Arc<Table>>> {
    let name = relation_of(change.catalog(), &statement.name)?;
    if let Some(table) = change.catalog().table(&name) {
        return Ok(Some(table.clone()));
    }
    let kind = match (change.index_owner(&name), change.catalog().sequence(&name)) {
        (Some(_), _) => "indexes",
        (None, Some(_)) => "sequences",
        (None, None) if statement.if_exists => return Ok(None),
        (None, None) => return Err(missing(&statement.name)),
    };
    let name = name_in_schema(&name);
    let message = format!("ALTER action cannot be performed on relation \"{name}\"");
    let position = position_of(&statement.name);
    Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
        .with_detail(format!("This operation is not supported for {kind}.")))
}

/// Drops a column that goes with something else, and what depends on it.
pub(super) fn drop_column(change: &mut CatalogChange<'_>, table: &str, name: &str) -> Result<()> {
    let Some(known) = change.catalog().table(table).cloned() else {
        return Ok(());
    };
    let dropped = TableAction::DropColumn(DroppedPart {
        name: Ident::with_quote('"', name),
        if_exists: true,
        cascade: true,
    });
    alter(change, &known, &[dropped]).map(|_| ())
}

fn alter(
    change: &mut CatalogChange<'_>,
    table: &Arc<Table>,
    actions: &[TableAction],
) -> Result<Vec<Notice>> {
    let name = &table.schema().name;
    match actions {
        [TableAction::RenameColumn(from, to)] => {
            return rename::column(change, table, from, to).map(|()| Vec::new());
        }
        [TableAction::RenameConstraint(from, to)] => {
            let (from, to) = (name_of(from), name_of(to));
            return rename::constraint(change, table, &from, &to).map(|()| Vec::new());
        }
        [TableAction::PartitionBy(expression)] => {
            let partitioning = ddl::divided(table, Some(&expression.expr))?;
            change.partition_table(name, Some(partitioning))?;
            return Ok(Vec::new());
        }
        [TableAction::Replicated] => {
            let partitioning = ddl::divided(table, None)?;
            change.partition_table(name, Some(partitioning))?;
            return Ok(Vec::new());
        }
        _ => {}
    }
    let mut ordered: Vec<&TableAction> = actions.iter().collect();
    ordered.sort_by_key(|action| pass(action));
    let mut alteration = Alteration {
        draft: Draft::of(table, |index| is_auxiliary(table, index)),
        notices: Vec::new(),
    };
    for action in ordered {
        alteration.make(change, action)?;
    }
    follow::follow(change, &mut alteration.draft)?;
    Ok(alteration.notices)
}

/// When a change is made among those of its statement.
fn pass(action: &TableAction) -> u8 {
    match action {
        TableAction::DropColumn(_) | TableAction::DropConstraint(_) => 0,
        TableAction::Column(_, change) => match change {
            ColumnChange::NotNull(false)
            | ColumnChange::Default(None)
            | ColumnChange::DropExpression { .. }
            | ColumnChange::DropIdentity { .. }
            | ColumnChange::WithoutEffect => 0,
            ColumnChange::Type(..) => 1,
            ColumnChange::NotNull(true) | ColumnChange::SetIdentity(..) => 4,
            ColumnChange::Default(Some(_)) | ColumnChange::AddIdentity(..) => 5,
        },
        TableAction::AddColumn(_) => 2,
        TableAction::AddConstraint(_) => 3,
        _ => 6,
    }
}

/// A table that is being altered.
struct Alteration<'s> {
    draft: Draft<'s>,
    notices: Vec<Notice>,
}

impl<'s> Alteration<'s> {
    fn make(&mut self, change: &mut CatalogChange<'_>, action: &'s TableAction) -> Result<()> {
        match action {
            TableAction::AddColumn(added) => self.add_column(change, added),
            TableAction::DropColumn(dropped) => self.drop_column(change, dropped),
            TableAction::Column(ident, altered) => self.alter_column(change, ident, altered),
            TableAction::AddConstraint(added) => self.draft.add_constraint(added),
            TableAction::DropConstraint(dropped) => self.drop_constraint(change, dropped),
            TableAction::AlterConstraint(name, deferral) => {
                self.alter_constraint(&name_of(name), *deferral)
            }
            TableAction::ValidateConstraint(name) => self.validate(&name_of(name)),
            TableAction::SwitchTrigger(switched) => {
                let schema = &mut self.draft.schema;
                let is_referenced = change.catalog().referencing(&schema.name).next().is_some();
                let has_keys = is_referenced || !schema.foreign_keys.is_empty();
                triggers::switch(&mut schema.triggers, &schema.name, has_keys, switched)
            }
            TableAction::Parameters(names) => check_parameters(names, parameters::OF_TABLE),
            TableAction::WithoutEffect => Ok(()),
            TableAction::Owner(role) => give(change, Object::table(&self.draft.schema.name), role),
            TableAction::Rename(_)
            | TableAction::RenameColumn(..)
            | TableAction::RenameConstraint(..)
            | TableAction::PartitionBy(_)
            | TableAction::Replicated => Err(Error::internal(
                "a change that stands alone is among others",
            )),
        }
    }

    fn add_column(&mut self, change: &mut CatalogChange<'_>, added: &'s AddedColumn) -> Result<()> {
        let name = name_of(&added.definition.name);
        if self.draft.schema.column(&name).is_some() {
            let table = name_in_schema(&self.draft.schema.name);
            let message = format!("column \"{name}\" of relation \"{table}\" already exists");
            if added.if_not_exists {
                self.notices
                    .push(Notice::new(format!("{message}, skipping")));
                return Ok(());
            }
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let made = self.draft.add_column(added, &View::of(change.catalog()))?;
        match made {
            Some(sequence) => change.create_sequence(sequence, None),
            None => Ok(()),
        }
    }

    fn validate(&mut self, name: &str) -> Result<()> {
        let schema = &mut self.draft.schema;
        let checks = schema.checks.iter_mut();
        let checks = checks.map(|check| (&check.name, &mut check.is_valid));
        let keys = schema.foreign_keys.iter_mut();
        let keys = keys.map(|key| (&key.name, &mut key.is_valid));
        if let Some((_, is_valid)) = checks.chain(keys).find(|(known, _)| *known == name) {
            if !std::mem::replace(is_valid, true) {
                self.draft.unchecked.push(name.to_owned());
            }
            return Ok(());
        }
        Err(self.no_such_constraint(name, "foreign key or check constraint"))
    }

    fn alter_constraint(&mut self, name: &str, deferral: Deferral) -> Result<()> {
        let mut keys = self.draft.schema.foreign_keys.iter_mut();
        match keys.find(|key| key.name == name) {
            Some(key) => {
                key.deferral = deferral;
                Ok(())
            }
            None => Err(self.no_such_constraint(name, "foreign key constraint")),
        }
    }

    /// The error of a constraint that is not there, or is not of the kind that is wanted.
    fn no_such_constraint(&self, name: &str, wanted: &str) -> Error {
        let table = name_in_schema(&self.draft.schema.name);
        let constraint = format!("constraint \"{name}\" of relation \"{table}\"");
        match self.draft.has_constraint(name) {
            true => Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{constraint} is not a {wanted}"),
            ),
            false => Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("{constraint} does not exist"),
            ),
        }
    }
}
