//! Numbers of objects that clients see: what PostgreSQL calls their OIDs.
//!
//! An object keeps its number while it lives: when it is altered, truncated or replaced, and when
//! the database is opened again. The numbers are a part of the catalog and are written down with
//! it. Who changes the catalog says nothing of them: when a change is complete, what is gone loses
//! its number, and what is new gets the next one, in the order of [`NumberedObject`]. So the
//! statements that a log kept give the same numbers again.

use std::collections::BTreeMap;
use std::fmt;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{PUBLIC_SCHEMA, beside, schema_of};
use kiln_storage::table::Table;

use super::objects::Catalog;
use super::text_form::{Counted, Reader};
use crate::roles::{FIRST_ROLE, Object};

/// PostgreSQL gives its own objects the numbers before.
pub const FIRST_NUMBER: u32 = 16_384;

/// An object that has a number, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumberedObject {
    /// A table.
    Table(String),
    /// The type of a table's rows.
    RowType(String),
    /// The type of arrays of these.
    RowArrayType(String),
    /// An index.
    Index(String),
    /// A constraint of a table.
    Constraint(String, String),
    /// The default value of a table's column.
    Default(String, String),
    /// A function or procedure.
    Routine(String),
    /// A role other than the first, which has number 10 as PostgreSQL's has.
    Role(String),
    /// A sequence.
    Sequence(String),
    /// A view.
    View(String),
    /// A trigger of a table.
    Trigger(String, String),
    /// A schema other than `public`, which has PostgreSQL's number.
    Schema(String),
    /// An extension.
    Extension(String),
    /// An enum.
    Enum(String),
    /// The type of its arrays.
    EnumArray(String),
    /// A label of an enum.
    EnumLabel(String, String),
    /// A domain.
    Domain(String),
    /// The type of arrays of its values.
    DomainArray(String),
    /// A check of a domain.
    DomainCheck(String, String),
    /// A composite type.
    Composite(String),
    /// The type of arrays of its values.
    CompositeArray(String),
    /// What `pg_class` has of it.
    CompositeRelation(String),
}

impl NumberedObject {
    /// The word for its kind, and its name in one part or two.
    fn parts(&self) -> (&'static str, &str, Option<&str>) {
        match self {
            NumberedObject::Table(name) => ("table", name, None),
            NumberedObject::RowType(name) => ("row-type", name, None),
            NumberedObject::RowArrayType(name) => ("row-array-type", name, None),
            NumberedObject::Index(name) => ("index", name, None),
            NumberedObject::Constraint(table, name) => ("constraint", table, Some(name)),
            NumberedObject::Default(table, name) => ("default", table, Some(name)),
            NumberedObject::Routine(name) => ("routine", name, None),
            NumberedObject::Role(name) => ("role", name, None),
            NumberedObject::Sequence(name) => ("sequence", name, None),
            NumberedObject::View(name) => ("view", name, None),
            NumberedObject::Trigger(table, name) => ("trigger", table, Some(name)),
            NumberedObject::Schema(name) => ("namespace", name, None),
            NumberedObject::Extension(name) => ("extension", name, None),
            NumberedObject::Enum(name) => ("enum", name, None),
            NumberedObject::EnumArray(name) => ("enum-array", name, None),
            NumberedObject::EnumLabel(of, label) => ("enum-label", of, Some(label)),
            NumberedObject::Domain(name) => ("domain", name, None),
            NumberedObject::DomainArray(name) => ("domain-array", name, None),
            NumberedObject::DomainCheck(of, check) => ("domain-check", of, Some(check)),
            NumberedObject::Composite(name) => ("composite", name, None),
            NumberedObject::CompositeArray(name) => ("composite-array", name, None),
            NumberedObject::CompositeRelation(name) => ("composite-relation", name, None),
        }
    }

    /// What privileges are granted for; `None` for what has none.
    pub(crate) fn object(&self) -> Option<Object> {
        match self {
            NumberedObject::Table(name) | NumberedObject::View(name) => Some(Object::table(name)),
            NumberedObject::Routine(name) => Some(Object::routine(name)),
            NumberedObject::Sequence(name) => Some(Object::sequence(name)),
            NumberedObject::Schema(name) => Some(Object::schema(name)),
            NumberedObject::Enum(name)
            | NumberedObject::Domain(name)
            | NumberedObject::Composite(name) => Some(Object::of_type(name)),
            _ => None,
        }
    }

    /// The schema in which it is, or which it is itself.
    pub(crate) fn schema(&self) -> &str {
        match self {
            NumberedObject::Schema(name) => name,
            NumberedObject::Role(_) | NumberedObject::Extension(_) => PUBLIC_SCHEMA,
            other => schema_of(other.parts().1),
        }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// XX001.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<NumberedObject> {
        let kind = reader.word();
        let name = match kind {
            "role" | "namespace" | "extension" => reader.counted()?.to_owned(),
            _ => reader.qualified()?,
        };
        Ok(match kind {
            "table" => NumberedObject::Table(name),
            "row-type" => NumberedObject::RowType(name),
            "row-array-type" => NumberedObject::RowArrayType(name),
            "index" => NumberedObject::Index(name),
            "constraint" => NumberedObject::Constraint(name, reader.counted()?.to_owned()),
            "default" => NumberedObject::Default(name, reader.counted()?.to_owned()),
            "routine" => NumberedObject::Routine(name),
            "role" => NumberedObject::Role(name),
            "sequence" => NumberedObject::Sequence(name),
            "view" => NumberedObject::View(name),
            "trigger" => NumberedObject::Trigger(name, reader.counted()?.to_owned()),
            "namespace" => NumberedObject::Schema(name),
            "extension" => NumberedObject::Extension(name),
            "enum" => NumberedObject::Enum(name),
            "enum-array" => NumberedObject::EnumArray(name),
            "enum-label" => NumberedObject::EnumLabel(name, reader.counted()?.to_owned()),
            "domain" => NumberedObject::Domain(name),
            "domain-array" => NumberedObject::DomainArray(name),
            "domain-check" => NumberedObject::DomainCheck(name, reader.counted()?.to_owned()),
            "composite" => NumberedObject::Composite(name),
            "composite-array" => NumberedObject::CompositeArray(name),
            "composite-relation" => NumberedObject::CompositeRelation(name),
            _ => return Err(reader.damaged("a kind of object before it")),
        })
    }
}

/// The numbers of a catalog's objects.
#[derive(Clone, Debug)]
pub struct ObjectNumbers {
    next: u32,
    numbers: BTreeMap<NumberedObject, u32>,
}

impl Default for ObjectNumbers {
    fn default() -> ObjectNumbers {
        ObjectNumbers {
            next: FIRST_NUMBER,
            numbers: BTreeMap::new(),
        }
    }
}

impl ObjectNumbers {
    /// The number of an object of the catalog.
    pub fn get(&self, object: &NumberedObject) -> Option<u32> {
        self.numbers.get(object).copied()
    }

    /// The numbers of a schema and of the objects in it.
    pub(crate) fn of_schema(&self, schema: &str) -> ObjectNumbers {
        let own = self.numbers.iter();
        let own = own.filter(|(object, _)| object.schema() == schema);
        ObjectNumbers {
            next: self.next,
            numbers: own
                .map(|(object, number)| (object.clone(), *number))
                .collect(),
        }
    }

    /// These and other numbers, after which the next ones come; they are not below `first`.
    pub(crate) fn with(&self, others: &ObjectNumbers, first: u32) -> ObjectNumbers {
        let mut numbers = self.numbers.clone();
        let others_of = others.numbers.iter();
        numbers.extend(others_of.map(|(object, number)| (object.clone(), *number)));
        ObjectNumbers {
            next: others.next.max(first),
            numbers,
        }
    }

    /// Objects keep their numbers under other names: those that `name` gives for them, where it
    /// gives one.
    pub(crate) fn rename(&mut self, name: impl Fn(&NumberedObject) -> Option<NumberedObject>) {
        let numbers = std::mem::take(&mut self.numbers).into_iter();
        let numbers = numbers.map(|(object, number)| (name(&object).unwrap_or(object), number));
        self.numbers = numbers.collect();
    }

    /// Numbers what is new in the catalog, which it returns, and forgets what is gone.
    ///
    /// # Errors
    /// 54000 when all numbers are given out.
    pub(crate) fn follow(&mut self, catalog: &Catalog) -> Result<Vec<NumberedObject>> {
        let mut known = std::mem::take(&mut self.numbers);
        let mut objects = Vec::new();
        for table in catalog.tables.values() {
            add_table(table, &mut objects);
        }
        let routines = catalog.procedures.keys().cloned();
        objects.extend(routines.map(NumberedObject::Routine));
        let roles = catalog.roles.iter().map(|role| role.name.clone());
        let roles = roles.filter(|name| name != FIRST_ROLE);
        objects.extend(roles.map(NumberedObject::Role));
        let sequences = catalog.sequences.keys().cloned();
        objects.extend(sequences.map(NumberedObject::Sequence));
        let views = catalog.views().filter(|view| !view.is_materialized());
        let views = views.map(|view| view.name.clone());
        objects.extend(views.map(NumberedObject::View));
        let schemas = catalog.schemas.iter().cloned();
        objects.extend(schemas.map(NumberedObject::Schema));
        let extensions = catalog.extensions.keys().cloned();
        objects.extend(extensions.map(NumberedObject::Extension));
        for of in catalog.enums() {
            let name = || of.name().to_owned();
            objects.extend([
                NumberedObject::Enum(name()),
                NumberedObject::EnumArray(name()),
            ]);
            let labels = of.labels().iter();
            objects.extend(labels.map(|it| NumberedObject::EnumLabel(name(), it.text.clone())));
        }
        for of in catalog.composites() {
            let name = || of.name().to_owned();
            objects.extend([
                NumberedObject::Composite(name()),
                NumberedObject::CompositeArray(name()),
                NumberedObject::CompositeRelation(name()),
            ]);
        }
        for domain in catalog.domains() {
            let name = || domain.name.clone();
            objects.extend([
                NumberedObject::Domain(name()),
                NumberedObject::DomainArray(name()),
            ]);
            let checks = domain.checks.iter();
            let checks = checks.map(|it| NumberedObject::DomainCheck(name(), it.name.clone()));
            objects.extend(checks);
        }
        objects.sort_unstable();
        let mut new = Vec::new();
        for object in objects {
            let number = match known.remove(&object) {
                Some(number) => number,
                None => {
                    new.push(object.clone());
                    self.give_out()?
                }
            };
            self.numbers.insert(object, number);
        }
        Ok(new)
    }

    /// The number of an object that a change makes, which needs it before the change is complete.
    ///
    /// # Errors
    /// 54000 when all numbers are given out.
    pub(crate) fn number(&mut self, object: NumberedObject) -> Result<u32> {
        match self.get(&object) {
            Some(number) => Ok(number),
            None => {
                let number = self.give_out()?;
                self.numbers.insert(object, number);
                Ok(number)
            }
        }
    }

    fn give_out(&mut self) -> Result<u32> {
        let number = self.next;
        self.next = number.checked_add(1).ok_or_else(|| {
            let message = "the database has given out all numbers of objects";
            Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        })?;
        Ok(number)
    }

    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// XX001.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<ObjectNumbers> {
        let mut numbers = ObjectNumbers::default();
        if !reader.takes("numbers") {
            return Ok(numbers);
        }
        reader.expect("next")?;
        numbers.next = reader.number()?;
        while reader.takes("number") {
            let number: u32 = reader.number()?;
            let object = NumberedObject::read(reader)?;
            let is_possible = (FIRST_NUMBER..numbers.next).contains(&number);
            if !is_possible || numbers.numbers.insert(object, number).is_some() {
                return Err(reader.damaged("another number before it"));
            }
        }
        let mut given: Vec<u32> = numbers.numbers.values().copied().collect();
        given.sort_unstable();
        match given.windows(2).any(|pair| pair[0] == pair[1]) {
            true => Err(reader.damaged("a number for each object before it")),
            false => Ok(numbers),
        }
    }
}

/// What of a table has a number.
fn add_table(table: &Arc<Table>, objects: &mut Vec<NumberedObject>) {
    let schema = table.schema();
    let name = || schema.name.clone();
    objects.extend([
        NumberedObject::Table(name()),
        NumberedObject::RowType(name()),
        NumberedObject::RowArrayType(name()),
    ]);
    for column in schema.shown() {
        if column.default.is_some() || column.generated.is_some() {
            objects.push(NumberedObject::Default(name(), column.name.clone()));
        }
    }
    let triggers = schema.triggers.iter();
    let triggers = triggers.map(|it| NumberedObject::Trigger(name(), it.name.clone()));
    objects.extend(triggers);
    let mut constraint = |constraint: &str| {
        objects.push(NumberedObject::Constraint(name(), constraint.to_owned()));
    };
    schema.checks.iter().for_each(|it| constraint(&it.name));
    let keys = schema.foreign_keys.iter();
    keys.for_each(|it| constraint(&it.name));
    for index in table.indexes() {
        let index = index.definition();
        if index.constraint && !index.columns.is_empty() {
            constraint(&index.name);
        }
    }
    let indexes = table.indexes().iter().map(|index| index.definition());
    let indexes = indexes.chain(schema.unbuilt.iter().map(|index| &index.definition));
    let indexes = indexes.filter(|index| !index.columns.is_empty());
    objects.extend(indexes.map(|index| NumberedObject::Index(beside(&schema.name, &index.name))));
}

impl fmt::Display for NumberedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name, rest) = self.parts();
        write!(f, "{kind} {}", Counted(name))?;
        match rest {
            Some(rest) => write!(f, " {}", Counted(rest)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ObjectNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.next == FIRST_NUMBER {
            return Ok(());
        }
        writeln!(f, "numbers next {}", self.next)?;
        for (object, number) in &self.numbers {
            writeln!(f, "  number {number} {object}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_their_text() {
        let mut catalog = Catalog::default();
        let schema = kiln_storage::schema::TableSchema {
            name: "a b".to_owned(),
            columns: Vec::new(),
            primary_key: Vec::new(),
            primary_key_name: None,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            triggers: Vec::new(),
            unbuilt: Vec::new(),
            partition_by: None,
        };
        let table = Table::new(kiln_storage::schema::TableId(1), schema, 0, Vec::new());
        let table = Arc::new(table.expect("it is a table"));
        catalog.tables.insert("a b".to_owned(), table);
        let mut numbers = ObjectNumbers::default();
        numbers.follow(&catalog).expect("there are numbers");
        let name = || "a b".to_owned();
        assert_eq!(numbers.get(&NumberedObject::Table(name())), Some(16_384));
        assert_eq!(numbers.get(&NumberedObject::RowType(name())), Some(16_385));
        let text = numbers.to_string();
        let read = ObjectNumbers::read(&mut Reader::new(&text)).expect("it was written");
        assert_eq!(read.to_string(), text);
        // What is gone takes its number along.
        catalog.tables.clear();
        numbers.follow(&catalog).expect("there are numbers");
        assert_eq!(numbers.to_string(), "numbers next 16387\n");
        for damaged in [
            "numbers next 16385 number 16385 table 1:a",
            "numbers next 16390 number 3 table 1:a",
            "numbers next 16390 number 16384 table 1:a number 16384 table 1:b",
            "numbers next 16390 number 16384 cloud 1:a",
        ] {
            assert!(
                ObjectNumbers::read(&mut Reader::new(damaged)).is_err(),
                "{damaged}"
            );
        }
    }
}
