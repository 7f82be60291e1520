//! Views of activity and statistics. What is not counted is 0, as in a PostgreSQL that has just
//! begun to count.

use kiln_storage::types::Value;

use super::snapshot::{IndexEntry, Snapshot, TableEntry};
use super::values::{Row, bigint, integer, oid, text};
use super::views::{listed, time};
use super::{DATABASE, DATABASE_OID};

/// Counts that are all 0.
fn zeros(count: usize) -> impl Iterator<Item = Value> {
    std::iter::repeat_n(bigint(0), count)
}

fn of_tables(snapshot: &Snapshot, rest: impl Fn() -> Vec<Value>) -> Vec<Row> {
    let rows = snapshot.tables.iter().map(|table| {
        let mut row = vec![
            oid(table.oid),
            text(table.schema_name()),
            text(table.name()),
        ];
        row.extend(rest());
        row
    });
    rows.collect()
}

fn of_indexes(snapshot: &Snapshot, counts: usize) -> Vec<Row> {
    let row = |table: &TableEntry, index: &IndexEntry| {
        let mut row = vec![
            oid(table.oid),
            oid(index.oid),
            text(table.schema_name()),
            text(table.name()),
            text(index.definition.name.clone()),
        ];
        row.extend(zeros(counts));
        row
    };
    let tables = snapshot.tables.iter();
    let rows = tables.flat_map(|table| table.indexes.iter().map(move |index| row(table, index)));
    rows.collect()
}

/// Tables, and how they are used.
pub(super) fn pg_stat_user_tables(snapshot: &Snapshot) -> Vec<Row> {
    of_tables(snapshot, || {
        let never = std::iter::repeat_n(Value::Null, 4);
        zeros(12).chain(never).chain(zeros(4)).collect()
    })
}

/// The same within a transaction.
pub(super) fn pg_stat_xact_user_tables(snapshot: &Snapshot) -> Vec<Row> {
    of_tables(snapshot, || zeros(8).collect())
}

/// Indexes, and how they are used.
pub(super) fn pg_stat_user_indexes(snapshot: &Snapshot) -> Vec<Row> {
    of_indexes(snapshot, 3)
}

/// What was read of tables: nothing is on disk.
pub(super) fn pg_statio_user_tables(snapshot: &Snapshot) -> Vec<Row> {
    of_tables(snapshot, || zeros(8).collect())
}

/// What was read of indexes.
pub(super) fn pg_statio_user_indexes(snapshot: &Snapshot) -> Vec<Row> {
    of_indexes(snapshot, 2)
}

/// Functions, whose calls PostgreSQL counts only where it is asked to.
pub(super) fn pg_stat_user_functions(_: &Snapshot) -> Vec<Row> {
    Vec::new()
}

/// The database.
pub(super) fn pg_stat_database(_: &Snapshot) -> Vec<Row> {
    let mut row = vec![oid(DATABASE_OID), text(DATABASE), integer(1)];
    row.extend(zeros(13));
    row.extend([Value::Null, Value::Null]);
    row.extend(std::iter::repeat_n(Value::Double(0.0), 5));
    row.extend(zeros(4));
    row.push(Value::Null);
    vec![row]
}

/// Conflicts with a recovery that goes on.
pub(super) fn pg_stat_database_conflicts(_: &Snapshot) -> Vec<Row> {
    let mut row = vec![oid(DATABASE_OID), text(DATABASE)];
    row.extend(zeros(5));
    vec![row]
}

/// The process that writes pages.
pub(super) fn pg_stat_bgwriter(_: &Snapshot) -> Vec<Row> {
    let mut row: Row = zeros(2).collect();
    row.extend([Value::Double(0.0), Value::Double(0.0)]);
    row.extend(zeros(6));
    row.push(Value::Null);
    vec![row]
}

/// The process that archives logs.
pub(super) fn pg_stat_archiver(_: &Snapshot) -> Vec<Row> {
    vec![vec![
        bigint(0),
        Value::Null,
        Value::Null,
        bigint(0),
        Value::Null,
        Value::Null,
        Value::Null,
    ]]
}

/// The sessions: the number of each, its role, the name of its client's program, what it does, when
/// it began, when its open block did, and whether the session that asks may know more than the
/// first two.
pub(super) fn pg_stat_activity(snapshot: &Snapshot, sessions: &Value) -> Vec<Row> {
    listed(
        sessions,
        |[
            number,
            role,
            application,
            state,
            began_us,
            block_us,
            is_known,
        ]| {
            let is_known = is_known == "true";
            let known = |value| if is_known { value } else { Value::Null };
            let block = match block_us {
                "" => Value::Null,
                block_us => time(block_us),
            };
            let mut row = vec![
                oid(DATABASE_OID),
                text(DATABASE),
                integer(number.parse().unwrap_or_default()),
                Value::Null,
                snapshot.role_oid(role).map_or(Value::Null, oid),
                text(role),
                text(application),
                Value::Null,
                Value::Null,
                Value::Null,
                known(time(began_us)),
                known(block),
            ];
            row.extend(std::iter::repeat_n(Value::Null, 4));
            row.extend([
                known(text(state)),
                Value::Null,
                Value::Null,
                Value::Null,
                match is_known {
                    true => Value::Null,
                    false => text("<insufficient privilege>"),
                },
                known(text("client backend")),
            ]);
            row
        },
    )
}
