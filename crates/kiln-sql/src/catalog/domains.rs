//! Domains, as the relations show them.

use kiln_storage::schema::{Check, Column, TableSchema};
use kiln_storage::types::Value;

use super::expression;
use super::pretty::pretty_over_value;
use super::snapshot::{DomainEntry, Snapshot};
use super::values::{Row, boolean, integer, oid, optional, text};
use super::{PUBLIC_OID, class};
use crate::compile::{quote_identifier, stored_expression};

impl DomainEntry {
    /// Its name as it is printed.
    pub fn printed(&self) -> String {
        quote_identifier(&self.domain.name)
    }

    /// Its checks with their numbers.
    pub fn checks(&self) -> impl Iterator<Item = (u32, &Check)> {
        self.checks.iter().copied().zip(&self.domain.checks)
    }

    /// Its default value, as SQL.
    pub fn default(&self) -> Option<String> {
        let default = self.domain.default.as_ref()?;
        Some(match stored_expression(default) {
            Ok(expr) => expression::printed_default(&expr, &self.domain.base),
            Err(_) => default.clone(),
        })
    }

    /// The condition of a check, as SQL.
    pub fn condition(&self, check: &Check) -> String {
        // VALUE is what its only column would be.
        let column = Column {
            name: "value".to_owned(),
            data_type: self.domain.base.clone(),
            domain: None,
            not_null: false,
            default: None,
            generated: None,
        };
        let schema = TableSchema {
            name: self.domain.name.clone(),
            columns: vec![column],
            primary_key: Vec::new(),
            primary_key_name: None,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            triggers: Vec::new(),
            unbuilt: Vec::new(),
            partition_by: None,
        };
        expression::of_value(&schema, &check.expression)
    }

    /// What follows the name of a check in ADD CONSTRAINT.
    pub fn definition(&self, check: &Check, is_pretty: bool) -> String {
        let condition = self.condition(check);
        let condition = match is_pretty {
            true => pretty_over_value(&condition),
            false => condition,
        };
        let validity = if check.is_valid { "" } else { " NOT VALID" };
        format!("CHECK ({condition}){validity}")
    }

    /// The number of its collation.
    pub(super) fn collation(&self) -> u32 {
        match self.domain.collation.as_deref() {
            Some("C" | "ucs_basic") => class::C_COLLATION,
            Some("POSIX") => class::POSIX_COLLATION,
            _ => class::collation(&self.domain.base),
        }
    }
}

/// The rows of `pg_constraint` for the checks of domains.
pub(super) fn constraints(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    for entry in &snapshot.domains {
        for (number, check) in entry.checks() {
            rows.push(vec![
                oid(number),
                text(check.name.as_str()),
                oid(PUBLIC_OID),
                text("c"),
                boolean(false),
                boolean(false),
                boolean(check.is_valid),
                oid(0),
                oid(entry.oid),
                oid(0),
                oid(0),
                oid(0),
                text(" "),
                text(" "),
                text(" "),
                boolean(true),
                integer(0),
                boolean(false),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                optional(Some(entry.condition(check))),
            ]);
        }
    }
    rows
}
