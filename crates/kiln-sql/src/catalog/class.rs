//! Tables, indexes, sequences and columns: `pg_class`, `pg_attribute`, `pg_attrdef`, `pg_index`.

use kiln_engine::{Object, ViewRows};
use kiln_storage::qualified::name_in_schema;
use kiln_storage::schema::{ColumnId, IndexMethod, TableSchema};
use kiln_storage::sequence::Identity;
use kiln_storage::types::{CatalogType, DataType, Value};

use super::relation::RelationColumn;
use super::snapshot::{
    CompositeEntry, IndexEntry, SequenceEntry, Snapshot, TableEntry, ViewEntry, type_oid,
};
use super::values::{Row, array, boolean, integer, oid, optional, small, text};
use super::{FIRST_ROLE_OID, PUBLIC_OID, Relation, builtin, deparse, names, roles};

use crate::compile::SEQUENCE_COLUMNS;

/// The access method of tables.
const HEAP: u32 = 2;

/// The number of the access method of an index.
const fn method_oid(method: IndexMethod) -> u32 {
    match method {
        IndexMethod::BTree => 403,
        IndexMethod::Hash => 405,
        IndexMethod::Gist => 783,
        IndexMethod::Gin => 2742,
        IndexMethod::Brin => 3580,
        IndexMethod::SpGist => 4000,
    }
}

/// The collation of texts.
const DEFAULT_COLLATION: u32 = 100;
/// The collation of names.
pub(super) const C_COLLATION: u32 = 950;
/// The number of the collation "POSIX".
pub(super) const POSIX_COLLATION: u32 = 951;

/// What of a row of `pg_class` differs.
struct Class {
    oid: u32,
    name: String,
    schema: u32,
    row_type: u32,
    method: u32,
    pages: i32,
    has_index: bool,
    kind: &'static str,
    columns: usize,
    checks: usize,
    owner: u32,
    /// Whether it has triggers, or foreign keys are checked for it, which PostgreSQL does by
    /// triggers.
    has_triggers: bool,
    privileges: Value,
    /// How an update says which row it changed: by its key, or not at all.
    identity: &'static str,
    /// Whether it can be read: a materialized view whose query was not run cannot.
    is_populated: bool,
}

impl Class {
    fn into_row(self, snapshot: &Snapshot) -> Row {
        let own = snapshot.temporary.as_ref().map(|(oid, _)| *oid);
        let persistence = if own == Some(self.schema) { "t" } else { "p" };
        let is_stored = matches!(self.kind, "r" | "i" | "S" | "m");
        let none = || boolean(false);
        vec![
            oid(self.oid),
            text(self.name),
            oid(self.schema),
            oid(self.row_type),
            oid(0),
            oid(self.owner),
            oid(self.method),
            oid(if is_stored { self.oid } else { 0 }),
            oid(0),
            integer(self.pages),
            // Kiln counts no rows. That of an index is what was there when it was built.
            Value::Double(match self.kind {
                "i" => 0.0,
                "S" => 1.0,
                _ => -1.0,
            }),
            integer(0),
            oid(0),
            boolean(self.has_index),
            none(),
            text(persistence),
            text(self.kind),
            small(self.columns),
            small(self.checks),
            boolean(matches!(self.kind, "v" | "m")),
            boolean(self.has_triggers),
            none(),
            none(),
            none(),
            boolean(self.is_populated),
            text(self.identity),
            none(),
            oid(0),
            Value::BigInt(0),
            Value::BigInt(0),
            self.privileges,
            Value::Null,
            Value::Null,
        ]
    }
}

/// Tables, indexes, and the relations of the system.
pub(super) fn pg_class(snapshot: &Snapshot) -> Vec<Row> {
    let system = Relation::all().iter().map(|relation| {
        let class = Class {
            oid: relation.oid,
            name: relation.name.to_owned(),
            schema: names::schema_oid(relation.schema).unwrap_or_default(),
            row_type: 0,
            method: if relation.kind == "r" { HEAP } else { 0 },
            pages: 0,
            has_index: false,
            kind: relation.kind,
            columns: relation.columns.len(),
            checks: 0,
            owner: FIRST_ROLE_OID,
            has_triggers: false,
            privileges: array([text("kiln=arwdDxt/kiln"), text("=r/kiln")]),
            identity: "n",
            is_populated: true,
        };
        class.into_row(snapshot)
    });
    let mut rows: Vec<Row> = system.collect();
    for table in &snapshot.tables {
        rows.push(table_row(snapshot, table));
        let indexes = table.indexes.iter();
        rows.extend(indexes.map(|index| index_row(snapshot, table, index)));
    }
    let sequences = snapshot.sequences.iter();
    rows.extend(sequences.map(|sequence| sequence_row(snapshot, sequence)));
    let views = snapshot.views.iter();
    rows.extend(views.map(|view| view_row(snapshot, view)));
    let composites = snapshot.composites.iter();
    rows.extend(composites.map(|entry| composite_row(snapshot, entry)));
    rows
}

fn composite_row(snapshot: &Snapshot, entry: &CompositeEntry) -> Row {
    let name = entry.of.name();
    let class = Class {
        oid: entry.relation,
        name: name.to_owned(),
        schema: PUBLIC_OID,
        row_type: entry.of.oid(),
        method: 0,
        pages: 0,
        has_index: false,
        kind: "c",
        columns: entry.of.fields().len(),
        checks: 0,
        owner: snapshot.owner_oid(&Object::of_type(name)),
        has_triggers: false,
        privileges: Value::Null,
        identity: "n",
        is_populated: true,
    };
    class.into_row(snapshot)
}

fn view_row(snapshot: &Snapshot, entry: &ViewEntry) -> Row {
    let name = &entry.view.name;
    let class = Class {
        oid: entry.oid,
        name: name_in_schema(name).to_owned(),
        schema: snapshot.schema_oid_of(name),
        row_type: 0,
        method: 0,
        pages: 0,
        has_index: false,
        kind: "v",
        columns: entry.view.columns.len(),
        checks: 0,
        owner: snapshot.owner_oid(&Object::table(name)),
        has_triggers: false,
        privileges: roles::privileges_of(snapshot, &Object::table(name)),
        identity: "n",
        is_populated: true,
    };
    class.into_row(snapshot)
}

fn sequence_row(snapshot: &Snapshot, sequence: &SequenceEntry) -> Row {
    let name = sequence.sequence.name();
    let class = Class {
        oid: sequence.oid,
        name: name_in_schema(name).to_owned(),
        schema: snapshot.schema_oid_of(name),
        row_type: 0,
        method: 0,
        pages: 1,
        has_index: false,
        kind: "S",
        columns: SEQUENCE_COLUMNS.len(),
        checks: 0,
        owner: snapshot.owner_oid(&Object::sequence(name)),
        has_triggers: false,
        privileges: roles::privileges_of(snapshot, &Object::sequence(name)),
        identity: "n",
        is_populated: true,
    };
    class.into_row(snapshot)
}

fn table_row(snapshot: &Snapshot, table: &TableEntry) -> Row {
    let (schema, view) = (table.schema(), table.view.as_ref());
    let class = Class {
        oid: table.oid,
        name: table.name().to_owned(),
        schema: snapshot.schema_oid_of(&schema.name),
        row_type: table.row_type,
        method: HEAP,
        pages: pages(table.table.slab().bytes_reserved()),
        has_index: !table.indexes.is_empty(),
        kind: if view.is_some() { "m" } else { "r" },
        columns: schema.shown().len(),
        checks: schema.checks.len(),
        owner: snapshot.owner_oid(&Object::table(table.qualified())),
        has_triggers: has_triggers(snapshot, table),
        privileges: roles::privileges_of(snapshot, &Object::table(schema.name.clone())),
        identity: "d",
        is_populated: view.is_none_or(|view| view.rows != ViewRows::Missing),
    };
    class.into_row(snapshot)
}

/// Whether a table has triggers, or foreign keys, or others refer to it.
pub(super) fn has_triggers(snapshot: &Snapshot, table: &TableEntry) -> bool {
    let mut keys = snapshot.tables.iter().flat_map(|other| {
        let keys = other.schema().foreign_keys.iter();
        keys.map(|key| (other.oid, key.table.as_str()))
    });
    !table.triggers.is_empty() || keys.any(|(of, to)| of == table.oid || to == table.qualified())
}

fn index_row(snapshot: &Snapshot, table: &TableEntry, index: &IndexEntry) -> Row {
    let definition = &index.definition;
    let class = Class {
        oid: index.oid,
        name: definition.name.clone(),
        schema: snapshot.schema_oid_of(table.qualified()),
        row_type: 0,
        method: method_oid(definition.method),
        pages: 0,
        has_index: false,
        kind: "i",
        columns: definition.key_columns().len(),
        checks: 0,
        owner: snapshot.owner_oid(&Object::table(table.qualified())),
        has_triggers: false,
        privileges: Value::Null,
        identity: "n",
        is_populated: true,
    };
    class.into_row(snapshot)
}

/// Bytes as PostgreSQL's pages.
fn pages(bytes: usize) -> i32 {
    i32::try_from(bytes.div_ceil(8_192)).unwrap_or(i32::MAX)
}

/// What of a row of `pg_attribute` differs.
struct Attribute<'a> {
    relation: u32,
    name: &'a str,
    data_type: &'a DataType,
    /// The number of its domain, if it is of one.
    domain: Option<u32>,
    number: i16,
    not_null: bool,
    has_default: bool,
    /// `a` or `d` for an identity column.
    identity: &'static str,
    is_generated: bool,
}

impl Attribute<'_> {
    fn into_row(self) -> Row {
        let type_oid = type_oid(self.data_type);
        // An enum is printed as an INTEGER lies, and its array as any other.
        let lies_as = match self.data_type {
            DataType::Enum(_) => builtin::oid_of(&DataType::Integer),
            DataType::Row(_) => builtin::oid_of(&DataType::array(DataType::BigInt)),
            DataType::Array(element) if element.row().is_some() => {
                builtin::oid_of(&DataType::array(DataType::BigInt))
            }
            DataType::Array(element) if element.enumeration().is_some() => {
                builtin::oid_of(&DataType::array(DataType::Integer))
            }
            _ => type_oid,
        };
        let known = builtin::type_by_oid(lies_as);
        let dimensions = i32::from(matches!(self.data_type, DataType::Array(_)));
        vec![
            oid(self.relation),
            text(self.name),
            oid(self.domain.unwrap_or(type_oid)),
            // What ANALYZE counts.
            integer(-1),
            Value::SmallInt(known.map_or(-1, |known| known.length)),
            Value::SmallInt(self.number),
            integer(dimensions),
            integer(-1),
            // A domain says it itself.
            integer(match self.domain {
                Some(_) => -1,
                None => self.data_type.modifier(),
            }),
            boolean(known.is_some_and(|known| known.by_value)),
            text(known.map_or("i", |known| known.alignment)),
            text(known.map_or("p", |known| known.storage)),
            text(""),
            boolean(self.not_null),
            boolean(self.has_default),
            boolean(false),
            text(self.identity),
            text(if self.is_generated { "s" } else { "" }),
            boolean(false),
            boolean(true),
            integer(0),
            oid(collation(self.data_type)),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    }
}

/// The collation of a type; 0 where it has none.
pub(super) fn collation(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Catalog(CatalogType::Name | CatalogType::NodeTree) => C_COLLATION,
        DataType::Catalog(_) => 0,
        DataType::Array(element) => collation(element),
        other if other.is_string() => DEFAULT_COLLATION,
        _ => 0,
    }
}

/// Columns of tables, indexes, and the relations of the system.
pub(super) fn pg_attribute(snapshot: &Snapshot) -> Vec<Row> {
    let number = |at: usize| i16::try_from(at + 1).unwrap_or(i16::MAX);
    let mut rows: Vec<Row> = Vec::new();
    for relation in Relation::all() {
        for (at, column) in relation.columns.iter().enumerate() {
            let RelationColumn {
                name,
                data_type,
                not_null,
            } = column;
            let attribute = Attribute {
                relation: relation.oid,
                name,
                data_type,
                domain: None,
                number: number(at),
                not_null: *not_null,
                has_default: false,
                identity: "",
                is_generated: false,
            };
            rows.push(attribute.into_row());
        }
    }
    for table in &snapshot.tables {
        let columns = &table.schema().columns;
        for (at, column) in table.schema().shown().iter().enumerate() {
            let attribute = Attribute {
                relation: table.oid,
                name: &column.name,
                data_type: &column.data_type,
                domain: snapshot.domain_oid(column),
                number: number(at),
                not_null: column.not_null,
                has_default: table.defaults.iter().any(|(_, of)| *of == at),
                identity: match snapshot.identity(table.qualified(), &column.name) {
                    None => "",
                    Some((_, Identity::Always)) => "a",
                    Some((_, Identity::ByDefault)) => "d",
                },
                is_generated: column.generated.is_some(),
            };
            rows.push(attribute.into_row());
        }
        for index in &table.indexes {
            let names = deparse::index_columns(table, index);
            let keys = index.definition.key_columns().iter();
            for (at, (column, name)) in keys.zip(&names).enumerate() {
                let column = &columns[column.index()];
                let attribute = Attribute {
                    relation: index.oid,
                    name,
                    data_type: &column.data_type,
                    domain: snapshot.domain_oid(column),
                    number: number(at),
                    not_null: false,
                    has_default: false,
                    identity: "",
                    is_generated: false,
                };
                rows.push(attribute.into_row());
            }
        }
    }
    for entry in &snapshot.views {
        for (at, (name, data_type)) in entry.view.columns.iter().enumerate() {
            let attribute = Attribute {
                relation: entry.oid,
                name,
                data_type,
                domain: None,
                number: number(at),
                not_null: false,
                has_default: false,
                identity: "",
                is_generated: false,
            };
            rows.push(attribute.into_row());
        }
    }
    for entry in &snapshot.composites {
        for (at, field) in entry.of.fields().iter().enumerate() {
            let attribute = Attribute {
                relation: entry.relation,
                name: &field.name,
                data_type: &field.data_type,
                domain: None,
                number: number(at),
                not_null: false,
                has_default: false,
                identity: "",
                is_generated: false,
            };
            rows.push(attribute.into_row());
        }
    }
    for sequence in &snapshot.sequences {
        for (at, (name, data_type)) in SEQUENCE_COLUMNS.iter().enumerate() {
            let attribute = Attribute {
                relation: sequence.oid,
                name,
                data_type,
                domain: None,
                number: number(at),
                not_null: true,
                has_default: false,
                identity: "",
                is_generated: false,
            };
            rows.push(attribute.into_row());
        }
    }
    rows
}

/// Default values.
pub(super) fn pg_attrdef(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in &snapshot.tables {
        for (number, column) in &table.defaults {
            rows.push(vec![
                oid(*number),
                oid(table.oid),
                small(column + 1),
                optional(super::deparse::column_default(table, *column)),
            ]);
        }
    }
    rows
}

/// Indexes.
pub(super) fn pg_index(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in &snapshot.tables {
        for index in &table.indexes {
            let definition = &index.definition;
            let columns = || definition.key_columns().iter();
            let types = columns().map(|column| &table.schema().columns[column.index()].data_type);
            rows.push(vec![
                oid(index.oid),
                oid(table.oid),
                small(columns().count()),
                small(columns().count()),
                boolean(definition.keeps_unique()),
                boolean(definition.nulls_equal),
                boolean(index.is_primary),
                boolean(false),
                boolean(!definition.deferral.is_deferrable()),
                boolean(false),
                boolean(true),
                boolean(false),
                boolean(true),
                boolean(true),
                boolean(false),
                key_numbers(table.schema(), definition.key_columns()),
                array(types.clone().map(|data_type| oid(collation(data_type)))),
                array(types.enumerate().map(|(at, data_type)| {
                    let class = index.classes.get(at).and_then(Option::as_deref);
                    oid(operator_class(definition.method, class, data_type))
                })),
                array(columns().map(|_| Value::SmallInt(0))),
                optional(deparse::index_expressions(table, index)),
                optional(deparse::index_predicate(table, index)),
            ]);
        }
    }
    rows
}

/// The columns of an index, with 0 for each expression.
fn key_numbers(schema: &TableSchema, columns: &[ColumnId]) -> Value {
    let numbers = columns.iter().map(|column| {
        let is_hidden = schema.columns[column.index()].is_hidden();
        small(if is_hidden { 0 } else { column.index() + 1 })
    });
    array(numbers)
}

/// The class of operators that an index has for values of a type: the one of this name, or the
/// default one.
pub(super) fn operator_class(
    method: IndexMethod,
    class: Option<&str>,
    data_type: &DataType,
) -> u32 {
    const ANY_ARRAY: u32 = 2277;
    const ANY_ENUM: u32 = 3500;
    // VARCHAR is ordered as TEXT is.
    let wanted = match data_type {
        DataType::VarChar(_) => type_oid(&DataType::Text),
        DataType::Array(_) => ANY_ARRAY,
        DataType::Enum(_) => ANY_ENUM,
        other => type_oid(other),
    };
    let classes = builtin::rows("pg_opclass").iter();
    let mut classes = classes.filter(|row| {
        let [_, of, name, _, _, _, input, is_default, ..] = row.as_slice() else {
            return false;
        };
        let is_it = match class {
            Some(class) => *name == text(class),
            None => *is_default == boolean(true),
        };
        *of == oid(method_oid(method)) && *input == oid(wanted) && is_it
    });
    match classes.next().and_then(|row| row.first()) {
        Some(Value::BigInt(found)) => u32::try_from(*found).unwrap_or_default(),
        _ => 0,
    }
}
