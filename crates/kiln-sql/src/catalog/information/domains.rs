//! Domains, their checks, and the columns that are of them.

use kiln_storage::types::{DataType, Value};

use super::super::snapshot::Snapshot;
use super::super::values::{Row, optional, text, yes_or_no};
use super::super::{DATABASE, builtin};
use super::Maker;

/// Domains.
pub(super) fn domains(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("domains");
    let rows = snapshot.domains.iter().map(|entry| {
        let row = maker
            .row()
            .named("domain", "public", &entry.domain.name)
            .of_domain(&entry.domain)
            .with("domain_default", optional(entry.default()))
            .with("dtd_identifier", "1");
        // An array is shown as such here, and as ARRAY among columns.
        let row = match (&entry.domain.over, &entry.domain.base) {
            (None, array @ DataType::Array(_)) => {
                row.with("data_type", array.without_modifier().to_string())
            }
            _ => row,
        };
        match entry.domain.collation.as_deref() {
            Some(collation) => row.named("collation", "pg_catalog", collation).row,
            None => row.row,
        }
    });
    rows.collect()
}

/// Checks of domains.
pub(super) fn domain_constraints(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("domain_constraints");
    let checks = snapshot.domains.iter().flat_map(|entry| {
        let checks = entry.domain.checks.iter();
        checks.map(move |check| (entry, check))
    });
    let rows = checks.map(|(entry, check)| {
        maker
            .row()
            .named("constraint", "public", &check.name)
            .named("domain", "public", &entry.domain.name)
            .with("is_deferrable", yes_or_no(false))
            .with("initially_deferred", yes_or_no(false))
            .row
    });
    rows.collect()
}

/// Columns that are of domains.
pub(super) fn column_domain_usage(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("column_domain_usage");
    let mut rows = Vec::new();
    for table in &snapshot.tables {
        for column in table.schema().shown() {
            if let Some(domain) = &column.domain {
                let row = maker
                    .row()
                    .named("domain", "public", domain)
                    .of_qualified("table", table.qualified())
                    .with("column_name", column.name.as_str());
                rows.push(row.row);
            }
        }
    }
    rows
}

/// The types that domains are over.
pub(super) fn domain_udt_usage(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("domain_udt_usage");
    let rows = snapshot.domains.iter().map(|entry| {
        let base: &DataType = &entry.domain.base;
        let (schema, name) = match (&entry.domain.over, base.enumeration()) {
            (Some(over), _) => ("public", over.as_str()),
            (None, Some(_)) => ("public", builtin::internal_name(base)),
            (None, None) => ("pg_catalog", builtin::internal_name(base)),
        };
        maker
            .row()
            .named("udt", schema, name)
            .named("domain", "public", &entry.domain.name)
            .row
    });
    rows.collect()
}

/// The conditions of the checks of domains, as `check_constraints` has them.
pub(super) fn conditions(snapshot: &Snapshot) -> impl Iterator<Item = Vec<Value>> {
    snapshot.domains.iter().flat_map(|entry| {
        let checks = entry.domain.checks.iter();
        checks.map(move |check| {
            let definition = entry.definition(check, false);
            let clause = definition.strip_prefix("CHECK ").unwrap_or(&definition);
            let name = text(check.name.as_str());
            vec![text(DATABASE), text("public"), name, text(clause)]
        })
    })
}
