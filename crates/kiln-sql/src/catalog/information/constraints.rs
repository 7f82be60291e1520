//! Constraints.

use kiln_storage::qualified::schema_of;
use kiln_storage::schema::{ColumnId, Deferral};
use kiln_storage::types::Value;

use super::super::snapshot::{ConstraintEntry, ConstraintKind, Snapshot, TableEntry};
use super::super::values::{Row, text, yes_or_no};
use super::super::{PUBLIC_OID, deparse, expression};
use super::{DATABASE, Maker, position};

/// NOT NULL of a column is a constraint too, by a name that PostgreSQL makes of numbers.
fn not_null(table: &TableEntry) -> impl Iterator<Item = (String, &str)> {
    let columns = table.schema().columns.iter().enumerate();
    let columns = columns.filter(|(_, column)| column.not_null);
    columns.map(|(at, column)| {
        let name = format!("{PUBLIC_OID}_{}_{}_not_null", table.oid, at + 1);
        (name, column.name.as_str())
    })
}

fn all(snapshot: &Snapshot) -> impl Iterator<Item = (&TableEntry, &ConstraintEntry)> {
    let tables = snapshot.tables.iter();
    tables.flat_map(|table| {
        table
            .constraints
            .iter()
            .map(move |constraint| (table, constraint))
    })
}

/// Constraints by the tables that have them.
pub(super) fn table_constraints(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("table_constraints");
    let row = |table: &TableEntry, name: &str, kind: &str, deferral: Deferral| {
        let row = maker
            .row()
            .named("constraint", table.schema_name(), name)
            .of_qualified("table", table.qualified())
            .with("constraint_type", kind)
            .with("is_deferrable", yes_or_no(deferral.is_deferrable()))
            .with(
                "initially_deferred",
                yes_or_no(deferral.is_initially_deferred()),
            )
            .with("enforced", yes_or_no(true));
        match kind {
            "UNIQUE" => row.with("nulls_distinct", yes_or_no(true)).row,
            _ => row.row,
        }
    };
    let declared = all(snapshot).map(|(table, constraint)| {
        let kind = match &constraint.kind {
            ConstraintKind::Check(_) => "CHECK",
            ConstraintKind::ForeignKey(_) => "FOREIGN KEY",
            ConstraintKind::Primary(_) => "PRIMARY KEY",
            ConstraintKind::Unique(_) => "UNIQUE",
        };
        row(table, &constraint.name, kind, table.deferral_of(constraint))
    });
    let tables = snapshot.tables.iter();
    let others = tables.flat_map(|table| not_null(table).map(move |(name, _)| (table, name)));
    let others = others.map(|(table, name)| row(table, &name, "CHECK", Deferral::No));
    declared.chain(others).collect()
}

/// The columns of keys.
pub(super) fn key_column_usage(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("key_column_usage");
    let mut rows = Vec::new();
    for (table, constraint) in all(snapshot) {
        let columns: &[ColumnId] = match &constraint.kind {
            ConstraintKind::Check(_) => continue,
            ConstraintKind::Primary(at) | ConstraintKind::Unique(at) => {
                &table.indexes[*at].definition.columns
            }
            ConstraintKind::ForeignKey(foreign) => &foreign.columns,
        };
        for (at, column) in columns.iter().enumerate() {
            let row = maker
                .row()
                .named("constraint", table.schema_name(), &constraint.name)
                .of_qualified("table", table.qualified())
                .with(
                    "column_name",
                    table.schema().columns[column.index()].name.as_str(),
                )
                .with("ordinal_position", position(at));
            let row = row.with(
                "position_in_unique_constraint",
                position_in_key(snapshot, constraint, at),
            );
            rows.push(row.row);
        }
    }
    rows
}

/// The place of the column in the key that a foreign key refers to.
fn position_in_key(snapshot: &Snapshot, constraint: &ConstraintEntry, at: usize) -> Value {
    let ConstraintKind::ForeignKey(foreign) = &constraint.kind else {
        return Value::Null;
    };
    let referenced = snapshot.table(&foreign.table);
    let index = referenced.and_then(|table| table.index_over(&foreign.referenced));
    let place = index.and_then(|index| {
        let mut columns = index.definition.columns.iter();
        columns.position(|column| *column == foreign.referenced[at])
    });
    place.map_or(Value::Null, position)
}

/// The columns that constraints are about: of a foreign key, those that it refers to.
pub(super) fn constraint_column_usage(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("constraint_column_usage");
    let mut rows = Vec::new();
    for (table, constraint) in all(snapshot) {
        let (of, columns): (&TableEntry, Vec<usize>) = match &constraint.kind {
            ConstraintKind::Check(text) => (table, expression::columns_of(table.schema(), text)),
            ConstraintKind::Primary(at) | ConstraintKind::Unique(at) => {
                let columns = table.indexes[*at].definition.columns.iter();
                (table, columns.map(|column| column.index()).collect())
            }
            ConstraintKind::ForeignKey(foreign) => {
                let Some(referenced) = snapshot.table(&foreign.table) else {
                    continue;
                };
                let columns = foreign.referenced.iter().map(|column| column.index());
                (referenced, columns.collect())
            }
        };
        for column in columns {
            let row = maker
                .row()
                .of_qualified("table", of.qualified())
                .with("column_name", of.schema().columns[column].name.as_str())
                .named("constraint", table.schema_name(), &constraint.name);
            rows.push(row.row);
        }
    }
    rows
}

/// The tables that constraints are about, CHECK aside.
pub(super) fn constraint_table_usage(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("constraint_table_usage");
    let rows = all(snapshot).filter_map(|(table, constraint)| {
        let of = match &constraint.kind {
            ConstraintKind::Check(_) => return None,
            ConstraintKind::ForeignKey(foreign) => snapshot.table(&foreign.table)?,
            _ => table,
        };
        let row = maker.row().of_qualified("table", of.qualified());
        Some(
            row.named("constraint", table.schema_name(), &constraint.name)
                .row,
        )
    });
    rows.collect()
}

/// Foreign keys.
pub(super) fn referential_constraints(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("referential_constraints");
    let rows = all(snapshot).filter_map(|(table, constraint)| {
        let ConstraintKind::ForeignKey(foreign) = &constraint.kind else {
            return None;
        };
        let referenced = snapshot.table(&foreign.table);
        let index = referenced.and_then(|table| table.index_over(&foreign.referenced));
        let row = maker
            .row()
            .named("constraint", table.schema_name(), &constraint.name)
            .with(
                "match_option",
                if foreign.match_full { "FULL" } else { "NONE" },
            )
            .with("update_rule", foreign.on_update.name())
            .with("delete_rule", foreign.on_delete.name());
        // An index alone is no constraint.
        Some(match index.filter(|index| index.constraint.is_some()) {
            Some(index) => {
                let schema = schema_of(&foreign.table);
                row.named("unique_constraint", schema, &index.definition.name)
                    .row
            }
            None => row.row,
        })
    });
    rows.collect()
}

/// CHECK and NOT NULL.
pub(super) fn check_constraints(snapshot: &Snapshot) -> Vec<Row> {
    let row = |table: &TableEntry, name: String, clause: String| {
        let schema = text(table.schema_name());
        vec![text(DATABASE), schema, text(name), text(clause)]
    };
    let checks = all(snapshot).filter_map(|(table, constraint)| match &constraint.kind {
        ConstraintKind::Check(_) => {
            let definition = deparse::constraint(snapshot, table, constraint);
            let clause = definition.strip_prefix("CHECK ").unwrap_or(&definition);
            Some(row(table, constraint.name.clone(), clause.to_owned()))
        }
        _ => None,
    });
    let tables = snapshot.tables.iter();
    let not_null = tables.flat_map(|table| not_null(table).map(move |found| (table, found)));
    let not_null =
        not_null.map(|(table, (name, column))| row(table, name, format!("{column} IS NOT NULL")));
    let of_domains = super::domains::conditions(snapshot);
    checks.chain(not_null).chain(of_domains).collect()
}
