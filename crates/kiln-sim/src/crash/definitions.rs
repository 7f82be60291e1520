//! The client that changes the catalog, one statement after the other, each of which follows from its number.

use std::collections::{BTreeMap, BTreeSet};

/// Statements before a table is dropped again.
const CYCLE: u64 = 10;

/// What the client has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// The tables that are there, by name.
    pub(super) tables: BTreeMap<String, MadeTable>,
    /// What its function returns, if there is one.
    pub(super) function: Option<i64>,
}

/// A table of its.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MadeTable {
    /// Rows: (id, v, t).
    pub(super) rows: BTreeSet<(i64, i64, String)>,
    /// The names of the indexes that it has asked for.
    pub(super) indexes: BTreeSet<String>,
}

/// The name of the table of a cycle.
fn table(cycle: u64) -> String {
    format!("extra_{cycle}")
}

/// Statement `step`, from 1 on.
pub(super) fn statement(step: u64) -> String {
    let (cycle, at) = ((step - 1) / CYCLE, (step - 1) % CYCLE);
    let table = table(cycle);
    let key = if cycle.is_multiple_of(2) {
        " PRIMARY KEY"
    } else {
        ""
    };
    match at {
        0 => format!("CREATE TABLE {table} (id INTEGER{key}, v INTEGER, t TEXT)"),
        1 => format!(
            "INSERT INTO {table} SELECT i, i * 2, 'text ' || i FROM generate_series(1, 3) i"
        ),
        2 => format!("CREATE INDEX {table}_v ON {table} (v)"),
        3 => format!("UPDATE {table} SET id = id + 100, v = v + 1"),
        4 => format!("CREATE UNIQUE INDEX {table}_t ON {table} (t)"),
        5 => format!("TRUNCATE {table}"),
        6 => format!("INSERT INTO {table} VALUES (7, 8, 'seven'), (9, 10, 'nine')"),
        7 => format!(
            "CREATE OR REPLACE FUNCTION extra() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN {cycle}; END $$"
        ),
        8 => format!("DROP INDEX {table}_v"),
        _ => format!("DROP TABLE {table}"),
    }
}

/// What is there after so many statements.
pub(super) fn made(steps: u64) -> Made {
    let mut made = Made::default();
    for step in 1..=steps {
        let (cycle, at) = ((step - 1) / CYCLE, (step - 1) % CYCLE);
        let name = table(cycle);
        if at == 7 {
            made.function = Some(cycle as i64);
        } else if at == 9 {
            made.tables.remove(&name);
        }
        let known = match at {
            0 => made.tables.entry(name.clone()).or_default(),
            _ => match made.tables.get_mut(&name) {
                Some(known) => known,
                None => continue,
            },
        };
        match at {
            1 => known
                .rows
                .extend((1..=3).map(|i| (i, i * 2, format!("text {i}")))),
            2 => _ = known.indexes.insert(format!("{name}_v")),
            3 => {
                let rows = std::mem::take(&mut known.rows).into_iter();
                known.rows = rows.map(|(id, v, t)| (id + 100, v + 1, t)).collect();
            }
            4 => _ = known.indexes.insert(format!("{name}_t")),
            5 => known.rows.clear(),
            6 => known
                .rows
                .extend([(7, 8, "seven".to_owned()), (9, 10, "nine".to_owned())]),
            8 => _ = known.indexes.remove(&format!("{name}_v")),
            _ => {}
        }
    }
    made
}
