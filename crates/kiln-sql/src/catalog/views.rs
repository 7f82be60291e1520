//! PostgreSQL's views over its catalogs: `pg_tables`, `pg_indexes`, `pg_settings`.

use kiln_storage::types::Value;

use super::snapshot::Snapshot;
use super::values::{Row, boolean, text};
use super::{Relation, class, deparse};

/// Tables.
pub(super) fn pg_tables(snapshot: &Snapshot) -> Vec<Row> {
    let row = |schema: &str, name: &str, has_indexes: bool, has_triggers: bool| {
        vec![
            text(schema),
            text(name),
            text("kiln"),
            Value::Null,
            boolean(has_indexes),
            boolean(false),
            boolean(has_triggers),
            boolean(false),
        ]
    };
    let system = Relation::all()
        .iter()
        .filter(|relation| relation.kind == "r");
    let system = system.map(|relation| row(relation.schema, relation.name, false, false));
    let own = snapshot.tables.iter().map(|table| {
        let has_indexes = !table.indexes.is_empty();
        let has_triggers = class::has_foreign_keys(snapshot, table);
        row("public", table.name(), has_indexes, has_triggers)
    });
    system.chain(own).collect()
}

/// Indexes.
pub(super) fn pg_indexes(snapshot: &Snapshot) -> Vec<Row> {
    let tables = snapshot.tables.iter();
    let rows = tables.flat_map(|table| {
        let indexes = table.indexes.iter();
        indexes.map(|index| {
            vec![
                text("public"),
                text(table.name()),
                text(index.definition.name.clone()),
                Value::Null,
                text(deparse::index(table, index)),
            ]
        })
    });
    rows.collect()
}

/// The settings of the session: each with its value and what it is for.
pub(super) fn pg_settings(_: &Snapshot, session: &Value) -> Vec<Row> {
    let Value::Array(settings) = session else {
        return Vec::new();
    };
    let rows = settings
        .as_chunks::<3>()
        .0
        .iter()
        .map(|[name, value, description]| {
            vec![
                name.clone(),
                value.clone(),
                Value::Null,
                text("Client"),
                description.clone(),
                Value::Null,
                text("user"),
                text("string"),
                text("session"),
                Value::Null,
                Value::Null,
                Value::Null,
                value.clone(),
                value.clone(),
                Value::Null,
                Value::Null,
                boolean(false),
            ]
        });
    rows.collect()
}
