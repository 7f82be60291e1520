//! What depends on an object that goes, and goes with it under CASCADE.

use kiln_engine::{Catalog, CatalogChange};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::ColumnId;

use super::follow;
use super::result::Notice;
use crate::compile::{quote_identifier, short_name};

/// Something of a table that depends on another object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dependent {
    /// The default value of a column.
    Default {
        table: String,
        column: ColumnId,
        name: String,
    },
    /// A generated column, of the table that is altered.
    Column { table: String, name: String },
    /// A trigger.
    Trigger { table: String, name: String },
    /// A foreign key.
    Reference { table: String, constraint: String },
    /// An index over expressions.
    Index { table: String, name: String },
    /// A CHECK constraint.
    Check { table: String, name: String },
    /// A view.
    View(String),
    /// A materialized view.
    MaterializedView(String),
    /// A domain.
    Domain(String),
    /// A function or procedure, and as PostgreSQL names it.
    Routine { name: String, described: String },
}

impl Dependent {
    /// A view, materialized or not.
    pub fn of_view(catalog: &Catalog, name: String) -> Dependent {
        match catalog.materialized_view(&name) {
            Some(_) => Dependent::MaterializedView(name),
            None => Dependent::View(name),
        }
    }

    /// As PostgreSQL names it.
    pub fn described(&self) -> String {
        match self {
            Dependent::Default { table, name, .. } => {
                let (name, table) = (quote_identifier(name), short_name(table));
                format!("default value for column {name} of table {table}")
            }
            Dependent::Column { table, name } => {
                let (name, table) = (quote_identifier(name), short_name(table));
                format!("column {name} of table {table}")
            }
            Dependent::Trigger { table, name } => {
                let (name, table) = (quote_identifier(name), short_name(table));
                format!("trigger {name} on table {table}")
            }
            Dependent::Reference { table, constraint } => {
                let (name, table) = (quote_identifier(constraint), short_name(table));
                format!("constraint {name} on table {table}")
            }
            Dependent::Index { name, .. } => format!("index {}", quote_identifier(name)),
            Dependent::Check { table, name } => {
                let (name, table) = (quote_identifier(name), short_name(table));
                format!("constraint {name} on table {table}")
            }
            Dependent::View(name) => format!("view {}", short_name(name)),
            Dependent::MaterializedView(name) => {
                format!("materialized view {}", short_name(name))
            }
            Dependent::Domain(name) => format!("type {}", quote_identifier(name)),
            Dependent::Routine { described, .. } => described.clone(),
        }
    }

    /// The table that it is of, or the view, domain or routine.
    pub fn table(&self) -> &str {
        match self {
            Dependent::Default { table, .. }
            | Dependent::Column { table, .. }
            | Dependent::Trigger { table, .. }
            | Dependent::Index { table, .. }
            | Dependent::Check { table, .. }
            | Dependent::Reference { table, .. } => table,
            Dependent::View(name)
            | Dependent::MaterializedView(name)
            | Dependent::Domain(name)
            | Dependent::Routine { name, .. } => name,
        }
    }

    /// Takes it away.
    pub fn remove(&self, change: &mut CatalogChange<'_>) -> Result<()> {
        match self {
            Dependent::View(name) | Dependent::MaterializedView(name) => {
                return change.drop_view(name);
            }
            Dependent::Domain(name) => return change.drop_domain(name),
            Dependent::Routine { name, .. } => return change.drop_procedure(name),
            Dependent::Index { table, name } => {
                return follow::remove_indexes(change, &[(table.clone(), name.clone())]);
            }
            _ => {}
        }
        change.alter_schema(self.table(), |schema| match self {
            Dependent::Default { column, .. } => schema.columns[column.index()].default = None,
            Dependent::Reference { constraint, .. } => {
                schema.foreign_keys.retain(|key| key.name != *constraint);
            }
            Dependent::Trigger { name, .. } => schema.triggers.retain(|it| it.name != *name),
            Dependent::Check { name, .. } => schema.checks.retain(|it| it.name != *name),
            Dependent::Column { .. }
            | Dependent::Index { .. }
            | Dependent::View(_)
            | Dependent::MaterializedView(_)
            | Dependent::Domain(_)
            | Dependent::Routine { .. } => {}
        })?;
        Ok(())
    }
}

/// The foreign keys of tables that refer to the one called `name`, which `is_meant` picks.
pub(super) fn references(
    change: &CatalogChange<'_>,
    name: &str,
    is_meant: impl Fn(&kiln_storage::schema::ForeignKey) -> bool,
) -> Vec<Dependent> {
    let mut found = Vec::new();
    for (table, referring) in change.catalog().tables() {
        let keys = referring.schema().foreign_keys.iter();
        let keys = keys.filter(|key| key.table == name && is_meant(key));
        found.extend(keys.map(|key| Dependent::Reference {
            table: table.to_owned(),
            constraint: key.name.clone(),
        }));
    }
    found
}

/// The error for objects on which others depend: `what` is what cannot be dropped, and each
/// dependent stands with what it depends on.
#[cold]
pub(super) fn refusal(what: &str, dependents: &[(Dependent, String)]) -> Error {
    let message = match what {
        "" => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        what => format!("cannot drop {what} because other objects depend on it"),
    };
    let lines = dependents
        .iter()
        .map(|(dependent, on)| format!("{} depends on {on}", dependent.described()));
    let detail = lines.collect::<Vec<_>>().join("\n");
    let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
    depended_on(message, detail, hint)
}

pub(super) fn depended_on(message: String, detail: String, hint: &str) -> Error {
    Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_detail(detail)
        .with_hint(hint)
}

/// What CASCADE has to say.
pub(super) fn cascaded(dependents: &[Dependent]) -> Option<Notice> {
    let message = match dependents {
        [] => return None,
        [one] => format!("drop cascades to {}", one.described()),
        many => format!("drop cascades to {} other objects", many.len()),
    };
    Some(Notice::new(message))
}

/// Takes away what depends on something that goes, and says so.
pub(super) fn cascade(
    change: &mut CatalogChange<'_>,
    dependents: &[Dependent],
) -> Result<Option<Notice>> {
    let mut all = dependents.iter();
    all.try_for_each(|dependent| dependent.remove(change))?;
    Ok(cascaded(dependents))
}
