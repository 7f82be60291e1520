//! Types and schemas: `pg_type`, `pg_enum`, `pg_namespace`.

use kiln_engine::{FIRST_ROLE, Object};
use kiln_storage::qualified::PUBLIC_SCHEMA;
use kiln_storage::types::{CatalogType, DataType, EnumType, ObjectName, Value};

use super::snapshot::{CompositeEntry, DomainEntry, Snapshot, TableEntry, type_oid};
use super::values::{Row, boolean, integer, no_function, oid, optional, text};
use super::{FIRST_ROLE_OID, PUBLIC_OID, builtin};

/// PostgreSQL's types, the row types of tables, enums, composite types and domains.
pub(super) fn pg_type(snapshot: &Snapshot) -> Vec<Row> {
    let rows = snapshot
        .tables
        .iter()
        .flat_map(|table| row_types(snapshot, table));
    let enums = snapshot.enums.iter();
    let rows = rows.chain(enums.flat_map(|entry| enum_types(snapshot, &entry.of)));
    let composites = snapshot.composites.iter();
    let rows = rows.chain(composites.flat_map(|entry| composite_types(snapshot, entry)));
    let domains = snapshot.domains.iter();
    let rows = rows.chain(domains.flat_map(|entry| domain_types(snapshot, entry)));
    builtin::rows("pg_type")
        .iter()
        .cloned()
        .chain(rows)
        .collect()
}

/// A type of users, and of their arrays.
struct TypeRow<'a> {
    oid: u32,
    array_oid: u32,
    name: &'a str,
    schema: u32,
    /// `e` for an enum, `c` for the rows of a table; and its category.
    kind: &'static str,
    category: &'static str,
    length: i16,
    owner: u32,
    /// The table whose rows it is of.
    relation: u32,
    /// The functions from and to texts, and from and to bytes.
    functions: [&'static str; 4],
    alignment: &'static str,
    storage: &'static str,
}

fn enum_types(snapshot: &Snapshot, of: &EnumType) -> [Row; 2] {
    let row = TypeRow {
        oid: of.oid(),
        array_oid: of.array_oid(),
        name: of.name(),
        schema: PUBLIC_OID,
        kind: "e",
        category: "E",
        length: 4,
        owner: snapshot.owner_oid(&Object::of_type(of.name())),
        relation: 0,
        functions: ["enum_in", "enum_out", "enum_recv", "enum_send"],
        alignment: "i",
        storage: "p",
    };
    row.into_rows(snapshot)
}

fn composite_types(snapshot: &Snapshot, entry: &CompositeEntry) -> [Row; 2] {
    let of = &entry.of;
    let row = TypeRow {
        oid: of.oid(),
        array_oid: of.array_oid(),
        name: of.name(),
        schema: PUBLIC_OID,
        kind: "c",
        category: "C",
        length: -1,
        owner: snapshot.owner_oid(&Object::of_type(of.name())),
        relation: entry.relation,
        functions: ["record_in", "record_out", "record_recv", "record_send"],
        alignment: "d",
        storage: "x",
    };
    row.into_rows(snapshot)
}

fn row_types(snapshot: &Snapshot, table: &TableEntry) -> [Row; 2] {
    let row = TypeRow {
        oid: table.row_type,
        array_oid: table.row_array_type,
        name: table.name(),
        schema: snapshot.schema_oid_of(table.qualified()),
        kind: "c",
        category: "C",
        length: -1,
        owner: snapshot.owner_oid(&Object::table(table.qualified())),
        relation: table.oid,
        functions: ["record_in", "record_out", "record_recv", "record_send"],
        alignment: "d",
        storage: "x",
    };
    row.into_rows(snapshot)
}

impl TypeRow<'_> {
    /// The row of the type, and that of its array type.
    fn into_rows(self, snapshot: &Snapshot) -> [Row; 2] {
        let array_alignment = match self.alignment {
            "d" => "d",
            _ => "i",
        };
        let name = format!("_{}", self.name);
        let mut array = TypeRow::of_array(&name, self.array_oid, self.schema, array_alignment);
        array.owner = self.owner;
        let array = array.row(snapshot, Some(self.oid));
        [self.row(snapshot, None), array]
    }

    /// The type of the arrays of a type.
    fn of_array<'n>(name: &'n str, oid: u32, schema: u32, alignment: &'static str) -> TypeRow<'n> {
        TypeRow {
            oid,
            array_oid: 0,
            name,
            schema,
            kind: "b",
            category: "A",
            length: -1,
            owner: FIRST_ROLE_OID,
            relation: 0,
            functions: ["array_in", "array_out", "array_recv", "array_send"],
            alignment,
            storage: "x",
        }
    }

    fn row(&self, snapshot: &Snapshot, element: Option<u32>) -> Row {
        let function = |name: &str| function(snapshot, name);
        let of_arrays = |name: &str| match element {
            Some(_) => function(name),
            None => no_function(),
        };
        let [input, output, receive, send] = self.functions.map(function);
        vec![
            oid(self.oid),
            text(self.name),
            oid(self.schema),
            oid(self.owner),
            Value::SmallInt(self.length),
            boolean(self.length > 0),
            text(self.kind),
            text(self.category),
            boolean(false),
            boolean(true),
            text(","),
            oid(self.relation),
            of_arrays("array_subscript_handler"),
            oid(element.unwrap_or_default()),
            oid(self.array_oid),
            input,
            output,
            receive,
            send,
            no_function(),
            no_function(),
            of_arrays("array_typanalyze"),
            text(self.alignment),
            text(self.storage),
            boolean(false),
            oid(0),
            integer(-1),
            integer(0),
            oid(0),
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    }
}

/// A function of the system, as a row names it.
fn function(snapshot: &Snapshot, name: &str) -> Value {
    let found = snapshot.object_named(CatalogType::RegProc, name);
    let found = found.unwrap_or(ObjectName {
        oid: 0,
        name: "-".to_owned(),
    });
    Value::Object(Box::new(found))
}

/// The row of a type that a domain can be over.
fn row_of(snapshot: &Snapshot, data_type: &DataType) -> Option<Row> {
    if let Some(of) = data_type.enumeration() {
        let [own, array] = enum_types(snapshot, of);
        return Some(match data_type {
            DataType::Array(_) => array,
            _ => own,
        });
    }
    let composite = data_type.row().and_then(|of| snapshot.composite(of.name()));
    if let Some(entry) = composite {
        let [own, array] = composite_types(snapshot, entry);
        return Some(match data_type {
            DataType::Array(_) => array,
            _ => own,
        });
    }
    let number = oid(type_oid(data_type));
    let mut rows = builtin::rows("pg_type").iter();
    rows.find(|row| row.first() == Some(&number)).cloned()
}

/// The row of the type of a domain's arrays, by the numbers of both and the row of the domain.
fn array_row(snapshot: &Snapshot, name: &str, (element, number): (u32, u32), domain: &Row) -> Row {
    let alignment = if domain[22] == text("d") { "d" } else { "i" };
    let array = TypeRow::of_array(name, number, PUBLIC_OID, alignment);
    array.row(snapshot, Some(element))
}

/// The labels of enums.
pub(super) fn pg_enum(snapshot: &Snapshot) -> Vec<Row> {
    let rows = snapshot.enums.iter().flat_map(|entry| {
        let labels = entry.of.labels().iter().zip(&entry.labels).enumerate();
        labels.map(|(at, (label, number))| {
            vec![
                oid(*number),
                oid(entry.of.oid()),
                Value::Double((at + 1) as f64),
                text(&label.text),
            ]
        })
    });
    rows.collect()
}

/// Schemas.
pub(super) fn pg_namespace(snapshot: &Snapshot) -> Vec<Row> {
    let own = snapshot.schemas.iter().map(|(number, name)| {
        let privileges = super::roles::privileges_of(snapshot, &Object::schema(name.clone()));
        let owner = snapshot.owner_oid(&Object::schema(name.clone()));
        vec![oid(*number), text(name), oid(owner), privileges]
    });
    let system = builtin::rows("pg_namespace").iter().cloned();
    let mut rows: Vec<Row> = system.chain(own).collect();
    // `public` is the system's until it is given to a role, or privileges for it.
    let public = rows.iter_mut().find(|row| row[0] == oid(PUBLIC_OID));
    if let Some([_, _, owner, privileges]) = public.map(Vec::as_mut_slice) {
        let object = Object::schema(PUBLIC_SCHEMA);
        if snapshot.owner(&object) != FIRST_ROLE {
            *owner = oid(snapshot.owner_oid(&object));
        }
        let granted = super::roles::privileges_of(snapshot, &object);
        if granted != Value::Null {
            *privileges = granted;
        }
    }
    rows
}

/// The rows of `pg_type` for a domain and its arrays.
fn domain_types(snapshot: &Snapshot, entry: &DomainEntry) -> Vec<Row> {
    let domain = &entry.domain;
    let Some(mut row) = row_of(snapshot, &domain.base) else {
        return Vec::new();
    };
    let over = domain.over.as_ref();
    let over = over.and_then(|over| snapshot.domain(over));
    let (base, modifier) = match over {
        Some(over) => (over.oid, -1),
        None => (type_oid(&domain.base), domain.base.modifier()),
    };
    let dimensions = i32::from(matches!(domain.base, DataType::Array(_)) && over.is_none());
    let collation = entry.collation();
    for (at, value) in [
        (0, oid(entry.oid)),
        (1, text(domain.name.as_str())),
        (2, oid(PUBLIC_OID)),
        (
            3,
            oid(snapshot.owner_oid(&Object::of_type(domain.name.as_str()))),
        ),
        (6, text("d")),
        (8, boolean(false)),
        (11, oid(0)),
        (12, no_function()),
        (13, oid(0)),
        (14, oid(entry.array_oid)),
        (15, function_of_domains(2597, "domain_in")),
        (17, function_of_domains(2598, "domain_recv")),
        (19, no_function()),
        (20, no_function()),
        (24, boolean(domain.not_null)),
        (25, oid(base)),
        (26, integer(modifier)),
        (27, integer(dimensions)),
        (28, oid(collation)),
        (29, Value::Null),
        (30, optional(entry.default())),
        (31, Value::Null),
    ] {
        row[at] = value;
    }
    let of_array = array_row(
        snapshot,
        &format!("_{}", domain.name),
        (entry.oid, entry.array_oid),
        &row,
    );
    vec![row, of_array]
}

/// A function that domains alone have, as a row names it.
fn function_of_domains(oid: u32, name: &str) -> Value {
    let name = name.to_owned();
    Value::Object(Box::new(ObjectName { oid, name }))
}
