//! What COMMENT says of objects.
//!
//! A comment is a part of the catalog and is written down with it. It goes with its object as the
//! object's number does: under another name, and when the object is gone.

use std::collections::BTreeMap;
use std::fmt;

use kiln_storage::error::Result;
use kiln_storage::qualified::schema_of;

use super::numbers::NumberedObject;
use super::objects::Catalog;
use super::text_form::{Counted, Reader};
use crate::roles::FIRST_ROLE;

/// What a comment may be on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Commented {
    /// An object that has a number, or the first role.
    Object(NumberedObject),
    /// A column of a table or view.
    Column(String, String),
    /// The database.
    Database,
    /// The schema `public`.
    Schema,
}

/// The comments of a catalog.
#[derive(Clone, Debug, Default)]
pub struct Comments {
    texts: BTreeMap<Commented, String>,
}

impl Comments {
    /// All of them, in a fixed order. One on the schema may be empty: there is none then, not even
    /// PostgreSQL's own.
    pub fn iter(&self) -> impl Iterator<Item = (&Commented, &str)> {
        self.texts.iter().map(|(on, text)| (on, text.as_str()))
    }

    /// The comments on the objects of a schema.
    pub(crate) fn of_schema(&self, schema: &str) -> Comments {
        let is_of = |on: &Commented| match on {
            Commented::Object(object) => object.schema() == schema,
            Commented::Column(of, _) => schema_of(of) == schema,
            Commented::Database | Commented::Schema => false,
        };
        let own = self.texts.iter().filter(|(on, _)| is_of(on));
        Comments {
            texts: own.map(|(on, text)| (on.clone(), text.clone())).collect(),
        }
    }

    /// These and other comments.
    pub(crate) fn with(&self, others: &Comments) -> Comments {
        let mut texts = self.texts.clone();
        let others = others.texts.iter();
        texts.extend(others.map(|(on, text)| (on.clone(), text.clone())));
        Comments { texts }
    }

    /// Says something of an object, or nothing any more.
    pub(crate) fn set(&mut self, on: Commented, text: &str) {
        if text.is_empty() && on != Commented::Schema {
            self.texts.remove(&on);
        } else {
            self.texts.insert(on, text.to_owned());
        }
    }

    /// Comments stay with objects that have other names: those that `name` gives for them, where it
    /// gives one.
    pub(crate) fn rename(&mut self, name: impl Fn(&NumberedObject) -> Option<NumberedObject>) {
        let relation = |relation: &String| {
            let table = name(&NumberedObject::Table(relation.clone()));
            match table.or_else(|| name(&NumberedObject::View(relation.clone()))) {
                Some(NumberedObject::Table(to) | NumberedObject::View(to)) => Some(to),
                _ => None,
            }
        };
        self.replace(|on| match on {
            Commented::Object(object) => name(object).map(Commented::Object),
            Commented::Column(of, column) => {
                relation(of).map(|to| Commented::Column(to, column.clone()))
            }
            Commented::Database | Commented::Schema => None,
        });
    }

    /// The comment on a column stays with it under another name.
    pub(crate) fn rename_column(&mut self, table: &str, from: &str, to: &str) {
        self.replace(|on| match on {
            Commented::Column(of, column) if of == table && column == from => {
                Some(Commented::Column(of.clone(), to.to_owned()))
            }
            _ => None,
        });
    }

    fn replace(&mut self, with: impl Fn(&Commented) -> Option<Commented>) {
        let texts = std::mem::take(&mut self.texts).into_iter();
        let texts = texts.map(|(on, text)| (with(&on).unwrap_or(on), text));
        self.texts = texts.collect();
    }

    /// Forgets those on what the catalog does not have any more. Its numbers are up to date.
    pub(crate) fn follow(&mut self, catalog: &Catalog) {
        self.texts.retain(|on, _| match on {
            Commented::Object(NumberedObject::Role(name)) if name == FIRST_ROLE => true,
            Commented::Object(object) => catalog.numbers().get(object).is_some(),
            Commented::Column(of, column) => {
                let table = catalog.table(of).map(|table| table.schema());
                let view = catalog.view(of).map(|view| view.columns.iter());
                table.is_some_and(|schema| schema.column(column).is_some())
                    || view.is_some_and(|mut columns| columns.any(|(name, _)| name == column))
            }
            Commented::Database | Commented::Schema => true,
        });
    }

    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// XX001.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Comments> {
        let mut comments = Comments::default();
        while reader.takes("comment") {
            let on = if reader.takes("database") {
                Commented::Database
            } else if reader.takes("schema") {
                Commented::Schema
            } else if reader.takes("column") {
                let relation = reader.qualified()?;
                Commented::Column(relation, reader.counted()?.to_owned())
            } else {
                Commented::Object(NumberedObject::read(reader)?)
            };
            let text = reader.counted()?.to_owned();
            if comments.texts.insert(on, text).is_some() {
                return Err(reader.damaged("one comment on each object before it"));
            }
        }
        Ok(comments)
    }
}

impl fmt::Display for Comments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (on, text) in &self.texts {
            f.write_str("comment ")?;
            match on {
                Commented::Object(object) => write!(f, "{object}")?,
                Commented::Column(relation, column) => {
                    write!(f, "column {} {}", Counted(relation), Counted(column))?;
                }
                Commented::Database => f.write_str("database")?,
                Commented::Schema => f.write_str("schema")?,
            }
            writeln!(f, " {}", Counted(text))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_come_back_from_their_text() {
        let mut comments = Comments::default();
        let table = || NumberedObject::Table("a b".to_owned());
        comments.set(Commented::Object(table()), "two\nlines");
        comments.set(Commented::Column("a b".to_owned(), "c".to_owned()), "of c");
        comments.set(Commented::Database, "all");
        comments.set(Commented::Schema, "");
        let text = comments.to_string();
        let read = Comments::read(&mut Reader::new(&text)).expect("it was written");
        assert_eq!(read.to_string(), text);
        assert_eq!(read.iter().count(), 4);
        for damaged in [
            "comment database",
            "comment cloud 1:a 1:b",
            "comment column 1:a 1:b",
            "comment schema 1:a comment schema 1:b",
        ] {
            let read = Comments::read(&mut Reader::new(damaged));
            assert!(read.is_err(), "{damaged}");
        }
    }

    #[test]
    fn columns_follow_the_name_of_their_relation() {
        let mut comments = Comments::default();
        let column = |of: &str, name: &str| Commented::Column(of.to_owned(), name.to_owned());
        comments.set(column("t", "a"), "x");
        comments.set(column("u", "a"), "y");
        comments.rename(|object| match object {
            NumberedObject::Table(name) if name == "t" => {
                Some(NumberedObject::Table("v".to_owned()))
            }
            _ => None,
        });
        comments.rename_column("v", "a", "b");
        let left: Vec<_> = comments
            .iter()
            .map(|(on, text)| (on.clone(), text))
            .collect();
        assert_eq!(left, [(column("u", "a"), "y"), (column("v", "b"), "x")]);
    }
}
