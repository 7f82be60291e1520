//! PostgreSQL's views over its catalogs: `pg_tables`, `pg_views`, `pg_indexes`; and of what a
//! session has: `pg_settings`, `pg_prepared_statements`, `pg_cursors`; and of what all sessions
//! have locked by name: `pg_locks`.

use kiln_engine::Object;
use kiln_storage::qualified::{name_in_schema, qualified, schema_of};
use kiln_storage::types::{Value, datetime};

use super::names::type_numbered;
use super::snapshot::Snapshot;
use super::values::{Row, array, bigint, boolean, integer, oid, small, text};
use super::{DATABASE_OID, Relation, class, deparse};

/// Tables.
pub(super) fn pg_tables(snapshot: &Snapshot) -> Vec<Row> {
    let row = |schema: &str, name: &str, has_indexes: bool, has_triggers: bool| {
        let qualified = qualified(schema, name);
        vec![
            text(schema),
            text(name),
            text(snapshot.owner(&Object::table(qualified))),
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
        let has_triggers = class::has_triggers(snapshot, table);
        row(table.schema_name(), table.name(), has_indexes, has_triggers)
    });
    system.chain(own).collect()
}

/// Views, but for those of the system.
pub(super) fn pg_views(snapshot: &Snapshot) -> Vec<Row> {
    let views = snapshot.views.iter().map(|entry| {
        vec![
            text(schema_of(&entry.view.name)),
            text(name_in_schema(&entry.view.name)),
            text(snapshot.owner(&Object::table(&entry.view.name))),
            text(deparse::view(&entry.view)),
        ]
    });
    views.collect()
}

/// Indexes.
pub(super) fn pg_indexes(snapshot: &Snapshot) -> Vec<Row> {
    let tables = snapshot.tables.iter();
    let rows = tables.flat_map(|table| {
        let indexes = table.indexes.iter();
        indexes.map(|index| {
            vec![
                text(table.schema_name()),
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

/// The rows of what a session has, each of `N` texts.
pub(super) fn listed<const N: usize>(session: &Value, row: impl Fn([&str; N]) -> Row) -> Vec<Row> {
    let Value::Array(texts) = session else {
        return Vec::new();
    };
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    };
    let texts: Vec<String> = texts.iter().map(text).collect();
    let rows = texts.as_chunks::<N>().0.iter();
    rows.map(|texts| row(texts.each_ref().map(String::as_str)))
        .collect()
}

/// A TIMESTAMPTZ of so many microseconds since 1970.
pub(super) fn time(unix_us: &str) -> Value {
    let unix_us = unix_us.parse::<i64>().unwrap_or_default();
    let epoch_us = datetime::UNIX_EPOCH_DAYS * 86_400 * datetime::MICROSECONDS_PER_SECOND;
    Value::TimestampTz(unix_us - epoch_us)
}

/// The session's prepared statements. Their plans are made anew when the catalog changes, and none
/// is for given values alone.
pub(super) fn pg_prepared_statements(_: &Snapshot, session: &Value) -> Vec<Row> {
    listed(session, |[name, statement, since, types, from_sql]| {
        let types = types.split_whitespace().filter_map(|oid| oid.parse().ok());
        vec![
            text(name),
            text(statement),
            time(since),
            array(types.map(type_numbered)),
            boolean(from_sql == "true"),
            bigint(0),
            bigint(0),
        ]
    })
}

/// The session's cursors and portals.
pub(super) fn pg_cursors(_: &Snapshot, session: &Value) -> Vec<Row> {
    listed(session, |[name, statement, is_held, goes_back, since]| {
        vec![
            text(name),
            text(statement),
            boolean(is_held == "true"),
            boolean(false),
            boolean(goes_back == "true"),
            time(since),
        ]
    })
}

/// What sessions have locked by name, and what they wait for. Locks of the protocol are not among
/// them.
pub(super) fn pg_locks(_: &Snapshot, session: &Value) -> Vec<Row> {
    listed(
        session,
        |[kind, first, second, third, number, mode, granted, since]| {
            let numbers =
                [first, second, third].map(|text| text.parse::<u32>().unwrap_or_default());
            let is_relation = kind != "advisory";
            let of = |is_shown: bool, value: Value| if is_shown { value } else { Value::Null };
            vec![
                text(kind),
                oid(DATABASE_OID),
                of(is_relation, oid(numbers[0])),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                of(!is_relation, oid(numbers[0])),
                of(!is_relation, oid(numbers[1])),
                of(!is_relation, small(numbers[2] as usize)),
                text(format!("{number}/1")),
                integer(number.parse().unwrap_or_default()),
                text(mode),
                boolean(granted == "true"),
                boolean(false),
                of(!since.is_empty(), time(since)),
            ]
        },
    )
}
