//! Types and schemas: `pg_type`, `pg_namespace`.

use kiln_engine::Object;
use kiln_storage::types::{CatalogType, ObjectName, Value};

use super::snapshot::{Snapshot, TableEntry};
use super::values::{Row, boolean, integer, no_function, oid, text};
use super::{FIRST_ROLE_OID, builtin};

/// PostgreSQL's types, and the row types of tables.
pub(super) fn pg_type(snapshot: &Snapshot) -> Vec<Row> {
    let rows = snapshot
        .tables
        .iter()
        .flat_map(|table| row_types(snapshot, table));
    builtin::rows("pg_type")
        .iter()
        .cloned()
        .chain(rows)
        .collect()
}

fn row_types(snapshot: &Snapshot, table: &TableEntry) -> [Row; 2] {
    let function = |name: &str| {
        let found = snapshot.object_named(CatalogType::RegProc, name);
        let found = found.unwrap_or(ObjectName {
            oid: 0,
            name: "-".to_owned(),
        });
        Value::Object(Box::new(found))
    };
    let row = |is_array: bool| -> Row {
        let functions = match is_array {
            true => ["array_in", "array_out", "array_recv", "array_send"],
            false => ["record_in", "record_out", "record_recv", "record_send"],
        };
        let [input, output, receive, send] = functions.map(function);
        let name = match is_array {
            true => format!("_{}", table.name()),
            false => table.name().to_owned(),
        };
        vec![
            oid(if is_array {
                table.row_array_type
            } else {
                table.row_type
            }),
            text(name),
            oid(snapshot.schema_oid_of(table.qualified())),
            oid(FIRST_ROLE_OID),
            Value::SmallInt(-1),
            boolean(false),
            text(if is_array { "b" } else { "c" }),
            text(if is_array { "A" } else { "C" }),
            boolean(false),
            boolean(true),
            text(","),
            oid(if is_array { 0 } else { table.oid }),
            match is_array {
                true => function("array_subscript_handler"),
                false => no_function(),
            },
            oid(if is_array { table.row_type } else { 0 }),
            oid(if is_array { 0 } else { table.row_array_type }),
            input,
            output,
            receive,
            send,
            no_function(),
            no_function(),
            match is_array {
                true => function("array_typanalyze"),
                false => no_function(),
            },
            text("d"),
            text("x"),
            boolean(false),
            oid(0),
            integer(-1),
            integer(0),
            oid(0),
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    };
    [row(false), row(true)]
}

/// Schemas.
pub(super) fn pg_namespace(snapshot: &Snapshot) -> Vec<Row> {
    let own = snapshot.schemas.iter().map(|(number, name)| {
        let privileges = super::roles::privileges_of(snapshot, &Object::schema(name.clone()));
        vec![oid(*number), text(name), oid(FIRST_ROLE_OID), privileges]
    });
    let system = builtin::rows("pg_namespace").iter().cloned();
    system.chain(own).collect()
}
