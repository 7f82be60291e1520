//! The comments of a catalog.

use kiln_engine::{Catalog, Commented, FIRST_ROLE, NumberedObject};

use super::super::{DATABASE_OID, FIRST_ROLE_OID, PG_CATALOG_OID, PUBLIC_OID};
use super::{PLPGSQL_OID, Snapshot};
use crate::compile::extensions::Extension;

/// The relation that has the object of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommentClass {
    /// Tables, indexes, sequences, views, and columns of these.
    Class,
    Procedure,
    Constraint,
    Trigger,
    Type,
    Namespace,
    Extension,
    /// Roles.
    AuthId,
    Database,
}

/// A comment.
pub(crate) struct CommentEntry {
    pub object: u32,
    pub class: CommentClass,
    /// The column, from 1; 0 for the object itself.
    pub column: i32,
    pub text: String,
}

impl CommentClass {
    /// The relation's name.
    pub fn name(self) -> &'static str {
        self.named().0
    }

    pub fn named(self) -> (&'static str, u32) {
        match self {
            CommentClass::Class => ("pg_class", 1259),
            CommentClass::Procedure => ("pg_proc", 1255),
            CommentClass::Constraint => ("pg_constraint", 2606),
            CommentClass::Trigger => ("pg_trigger", 2620),
            CommentClass::Type => ("pg_type", 1247),
            CommentClass::Namespace => ("pg_namespace", 2615),
            CommentClass::Extension => ("pg_extension", 3079),
            CommentClass::AuthId => ("pg_authid", 1260),
            CommentClass::Database => ("pg_database", 1262),
        }
    }

    /// Whether the objects are of all databases of a server in PostgreSQL.
    pub fn is_shared(self) -> bool {
        matches!(self, CommentClass::AuthId | CommentClass::Database)
    }
}

/// The comments of a catalog, those that PostgreSQL makes among them.
pub(super) fn entries(catalog: &Catalog, snapshot: &Snapshot) -> Vec<CommentEntry> {
    let entry = |object, class, text: &str| CommentEntry {
        object,
        class,
        column: 0,
        text: text.to_owned(),
    };
    let plpgsql = "PL/pgSQL procedural language";
    let mut entries = vec![
        entry(
            PG_CATALOG_OID,
            CommentClass::Namespace,
            "system catalog schema",
        ),
        entry(PLPGSQL_OID, CommentClass::Extension, plpgsql),
    ];
    let mut of_schema = "standard public schema";
    for (on, text) in catalog.comments().iter() {
        match on {
            Commented::Object(object) => {
                let number = catalog.numbers().get(object);
                let number = number.or_else(|| first_role(object));
                entries.extend(number.map(|number| entry(number, class_of(object), text)));
            }
            Commented::Column(relation, column) => {
                let oid = snapshot.relation_oid(relation);
                let column = column_number(catalog, relation, column);
                entries.extend(oid.zip(column).map(|(oid, column)| CommentEntry {
                    column,
                    ..entry(oid, CommentClass::Class, text)
                }));
            }
            Commented::Database => {
                entries.push(entry(DATABASE_OID, CommentClass::Database, text));
            }
            Commented::Schema => of_schema = text,
        }
    }
    for extension in &snapshot.extensions {
        let is_said = |entry: &CommentEntry| entry.object == extension.oid;
        if let Some(known) = Extension::find(&extension.name)
            && !entries.iter().any(is_said)
        {
            entries.push(entry(extension.oid, CommentClass::Extension, known.comment));
        }
    }
    if !of_schema.is_empty() {
        entries.push(entry(PUBLIC_OID, CommentClass::Namespace, of_schema));
    }
    entries
}

fn first_role(object: &NumberedObject) -> Option<u32> {
    match object {
        NumberedObject::Role(name) if name == FIRST_ROLE => Some(FIRST_ROLE_OID),
        _ => None,
    }
}

fn class_of(object: &NumberedObject) -> CommentClass {
    match object {
        NumberedObject::Routine(_) => CommentClass::Procedure,
        NumberedObject::Constraint(..) | NumberedObject::DomainCheck(..) => {
            CommentClass::Constraint
        }
        NumberedObject::RowType(_)
        | NumberedObject::RowArrayType(_)
        | NumberedObject::Enum(_)
        | NumberedObject::EnumArray(_)
        | NumberedObject::EnumLabel(..)
        | NumberedObject::Domain(_)
        | NumberedObject::DomainArray(_)
        | NumberedObject::Composite(_)
        | NumberedObject::CompositeArray(_) => CommentClass::Type,
        NumberedObject::Role(_) => CommentClass::AuthId,
        NumberedObject::Trigger(..) => CommentClass::Trigger,
        NumberedObject::Schema(_) => CommentClass::Namespace,
        NumberedObject::Extension(_) => CommentClass::Extension,
        NumberedObject::Table(_)
        | NumberedObject::CompositeRelation(_)
        | NumberedObject::Index(_)
        | NumberedObject::Default(..)
        | NumberedObject::Sequence(_)
        | NumberedObject::View(_) => CommentClass::Class,
    }
}

/// The number of a column of a table or view, from 1.
fn column_number(catalog: &Catalog, relation: &str, column: &str) -> Option<i32> {
    let of_table = || {
        let column = catalog.table(relation)?.schema().column(column)?;
        Some(column.index())
    };
    let of_view = || {
        let mut columns = catalog.view(relation)?.columns.iter();
        columns.position(|(name, _)| name == column)
    };
    let position = of_table().or_else(of_view)?;
    i32::try_from(position + 1).ok()
}
