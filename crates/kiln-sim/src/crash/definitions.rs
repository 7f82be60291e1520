//! The client that changes the catalog, one step after the other, each of which follows from its
//! number: a statement, or a block of several.

use std::collections::{BTreeMap, BTreeSet};

/// Steps before a table is dropped again.
const CYCLE: u64 = 11;

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

/// The name of the table that a block makes of it.
fn copy(cycle: u64) -> String {
    format!("extra_copy_{cycle}")
}

/// The statements of step `step`, from 1 on.
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
        9 => {
            let copy = copy(cycle);
            format!(
                "BEGIN;
                 UPDATE {table} SET v = v + 1000;
                 DROP INDEX {table}_t;
                 CREATE TABLE {copy} (id INTEGER{key}, v INTEGER, t TEXT);
                 INSERT INTO {copy} SELECT id, v, t FROM {table};
                 CREATE INDEX {copy}_v ON {copy} (v);
                 INSERT INTO {copy} VALUES (11, 12, 'eleven');
                 DELETE FROM {table} WHERE id = 7;
                 CREATE OR REPLACE FUNCTION extra() RETURNS INTEGER LANGUAGE plpgsql AS $$ BEGIN RETURN {cycle} + 1000; END $$;
                 COMMIT"
            )
        }
        _ => format!("DROP TABLE {table}, {}", copy(cycle)),
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
            made.function = Some(cycle as i64 + 1000);
        } else if at == 10 {
            made.tables.remove(&name);
            made.tables.remove(&copy(cycle));
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
            9 => {
                known.indexes.remove(&format!("{name}_t"));
                let rows = std::mem::take(&mut known.rows).into_iter();
                let rows: BTreeSet<_> = rows.map(|(id, v, t)| (id, v + 1000, t)).collect();
                known.rows = rows.iter().filter(|row| row.0 != 7).cloned().collect();
                let mut copied = MadeTable {
                    rows,
                    indexes: [format!("{}_v", copy(cycle))].into(),
                };
                copied.rows.insert((11, 12, "eleven".to_owned()));
                made.tables.insert(copy(cycle), copied);
            }
            _ => {}
        }
    }
    made
}
