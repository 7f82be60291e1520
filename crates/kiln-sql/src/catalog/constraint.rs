//! Constraints: `pg_constraint`, and what they depend on, `pg_depend`.

use kiln_storage::schema::{ForeignKey, ReferentialAction};
use kiln_storage::types::Value;

use super::snapshot::{ConstraintEntry, ConstraintKind, Snapshot, TableEntry, type_oid};
use super::values::{Row, array, boolean, column_numbers, integer, oid, optional, text};
use super::{builtin, domains, expression};

/// The number of `pg_class`.
const PG_CLASS: u32 = 1259;
/// The number of `pg_attrdef`.
const PG_ATTRDEF: u32 = 2604;
/// The number of `pg_constraint`.
const PG_CONSTRAINT: u32 = 2606;

/// Constraints of tables and domains.
pub(super) fn pg_constraint(snapshot: &Snapshot) -> Vec<Row> {
    let tables = snapshot.tables.iter();
    let rows = tables.flat_map(|table| {
        let constraints = table.constraints.iter();
        constraints.map(|constraint| row(snapshot, table, constraint))
    });
    rows.chain(domains::constraints(snapshot)).collect()
}

fn row(snapshot: &Snapshot, table: &TableEntry, constraint: &ConstraintEntry) -> Row {
    let schema = table.schema();
    let key_of = |at: &usize| {
        let index = &table.indexes[*at];
        let columns = index.definition.columns.iter().map(|column| column.index());
        (index.oid, column_numbers(columns))
    };
    let (letter, index, key) = match &constraint.kind {
        ConstraintKind::Check(text) => {
            ("c", 0, column_numbers(expression::columns_of(schema, text)))
        }
        ConstraintKind::Primary(at) => {
            let (index, key) = key_of(at);
            ("p", index, key)
        }
        ConstraintKind::Unique(at) => {
            let (index, key) = key_of(at);
            ("u", index, key)
        }
        ConstraintKind::ForeignKey(foreign) => {
            let referenced = snapshot.table(&foreign.table);
            let index = referenced.and_then(|table| table.index_over(&foreign.referenced));
            let columns = foreign.columns.iter().map(|column| column.index());
            (
                "f",
                index.map_or(0, |index| index.oid),
                column_numbers(columns),
            )
        }
    };
    let foreign = match &constraint.kind {
        ConstraintKind::ForeignKey(foreign) => Some(foreign),
        _ => None,
    };
    let deferral = table.deferral_of(constraint);
    let referenced = foreign.and_then(|foreign| snapshot.table(&foreign.table));
    let condition = match &constraint.kind {
        ConstraintKind::Check(text) => Some(expression::check(schema, text)),
        _ => None,
    };
    let when_foreign = |letter: fn(&ForeignKey) -> &'static str| text(foreign.map_or(" ", letter));
    let operators = || match foreign {
        Some(foreign) => array(foreign.columns.iter().map(|column| {
            let data_type = &schema.columns[column.index()].data_type;
            oid(equality(type_oid(data_type)))
        })),
        None => Value::Null,
    };
    vec![
        oid(constraint.oid),
        text(constraint.name.clone()),
        oid(snapshot.schema_oid_of(table.qualified())),
        text(letter),
        boolean(deferral.is_deferrable()),
        boolean(deferral.is_initially_deferred()),
        boolean(constraint.is_valid),
        oid(table.oid),
        oid(0),
        oid(index),
        oid(0),
        oid(referenced.map_or(0, |table| table.oid)),
        when_foreign(|foreign| action_letter(foreign.on_update)),
        when_foreign(|foreign| action_letter(foreign.on_delete)),
        when_foreign(|foreign| if foreign.match_full { "f" } else { "s" }),
        boolean(true),
        integer(0),
        boolean(letter != "c"),
        key,
        match foreign {
            Some(foreign) => column_numbers(foreign.referenced.iter().map(|column| column.index())),
            None => Value::Null,
        },
        operators(),
        operators(),
        operators(),
        match foreign {
            Some(foreign) if !foreign.set_on_delete.is_empty() => {
                let columns = foreign.set_on_delete.iter();
                column_numbers(columns.map(|column| column.index()))
            }
            _ => Value::Null,
        },
        Value::Null,
        optional(condition),
    ]
}

/// How `pg_constraint` writes an action.
fn action_letter(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "a",
        ReferentialAction::Restrict => "r",
        ReferentialAction::Cascade => "c",
        ReferentialAction::SetNull => "n",
        ReferentialAction::SetDefault => "d",
    }
}

/// The operator `=` of a type with itself.
fn equality(data_type: u32) -> u32 {
    // VARCHAR is compared as TEXT is.
    let wanted = if data_type == 1043 { 25 } else { data_type };
    let mut operators = builtin::rows("pg_operator").iter();
    let found = operators.find(|row| {
        matches!(row.as_slice(), [_, name, _, _, _, _, _, left, right, ..]
            if *name == text("=") && *left == oid(wanted) && *right == oid(wanted))
    });
    match found.and_then(|row| row.first()) {
        Some(Value::BigInt(found)) => u32::try_from(*found).unwrap_or_default(),
        _ => 0,
    }
}

/// Which indexes are there for a constraint, and which indexes a foreign key needs.
pub(super) fn pg_depend(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |of: (u32, u32), on: (u32, u32), kind: &str| {
        rows.push(vec![
            oid(of.0),
            oid(of.1),
            integer(0),
            oid(on.0),
            oid(on.1),
            integer(0),
            text(kind),
        ]);
    };
    for table in &snapshot.tables {
        for index in &table.indexes {
            match index.constraint {
                Some(constraint) => add((PG_CLASS, index.oid), (PG_CONSTRAINT, constraint), "i"),
                None => add((PG_CLASS, index.oid), (PG_CLASS, table.oid), "a"),
            }
        }
        for constraint in &table.constraints {
            add((PG_CONSTRAINT, constraint.oid), (PG_CLASS, table.oid), "a");
            if let ConstraintKind::ForeignKey(foreign) = &constraint.kind
                && let Some(referenced) = snapshot.table(&foreign.table)
            {
                add(
                    (PG_CONSTRAINT, constraint.oid),
                    (PG_CLASS, referenced.oid),
                    "n",
                );
            }
        }
    }
    rows.extend(sequence_dependencies(snapshot));
    rows
}

/// Sequences depend on the columns that own them, and default values on the sequences that they
/// draw from.
fn sequence_dependencies(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    for entry in &snapshot.sequences {
        let Some(owner) = &entry.sequence.definition().owner else {
            continue;
        };
        let table = snapshot.table(&owner.table);
        let column = table.and_then(|table| table.schema().column(&owner.column));
        let (Some(table), Some(column)) = (table, column) else {
            continue;
        };
        rows.push(vec![
            oid(PG_CLASS),
            oid(entry.oid),
            integer(0),
            oid(PG_CLASS),
            oid(table.oid),
            integer(i32::from(column.0) + 1),
            text(if owner.identity.is_some() { "i" } else { "a" }),
        ]);
    }
    for table in &snapshot.tables {
        for (default, column) in &table.defaults {
            let on_column = (
                table.oid,
                i32::try_from(column + 1).unwrap_or_default(),
                "a",
            );
            let sequences = table.default_sequences.iter();
            let sequences = sequences.filter(|(of, _)| of == column);
            let sequences = sequences.filter_map(|(_, name)| snapshot.sequence(name));
            let on_sequences = sequences.map(|entry| (entry.oid, 0, "n"));
            for (on, part, kind) in std::iter::once(on_column).chain(on_sequences) {
                rows.push(vec![
                    oid(PG_ATTRDEF),
                    oid(*default),
                    integer(0),
                    oid(PG_CLASS),
                    oid(on),
                    integer(part),
                    text(kind),
                ]);
            }
        }
    }
    rows
}
