//! Composite types in `information_schema`: `attributes` and `user_defined_types`.

use super::super::snapshot::Snapshot;
use super::super::values::{Row, integer};
use super::Maker;

/// The attributes of composite types.
pub(super) fn attributes(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("attributes");
    let mut rows = Vec::new();
    for entry in &snapshot.composites {
        for (at, field) in entry.of.fields().iter().enumerate() {
            let row = maker
                .row()
                .named("udt", "public", entry.of.name())
                .with("attribute_name", field.name.as_str())
                .with(
                    "ordinal_position",
                    integer(i32::try_from(at + 1).unwrap_or(i32::MAX)),
                )
                .with("is_nullable", "YES")
                .typed("attribute_udt", &field.data_type)
                .with("dtd_identifier", (at + 1).to_string())
                .with("is_derived_reference_attribute", "NO");
            rows.push(row.row);
        }
    }
    rows
}

/// Composite types.
pub(super) fn user_defined_types(snapshot: &Snapshot) -> Vec<Row> {
    let maker = Maker::of("user_defined_types");
    let rows = snapshot.composites.iter().map(|entry| {
        let row = maker
            .row()
            .named("user_defined_type", "public", entry.of.name())
            .with("user_defined_type_category", "STRUCTURED")
            .with("is_instantiable", "YES");
        row.row
    });
    rows.collect()
}
