//! Domains, as the relations show them.

use kiln_engine::{Catalog, Domain, NumberedObject, Object};
use kiln_platform::sync::Arc;
use kiln_storage::schema::{Check, Column, TableSchema};
use kiln_storage::types::{DataType, ObjectName, Value};

use super::expression;
use super::pretty::pretty_over_value;
use super::snapshot::{Snapshot, type_oid};
use super::types;
use super::values::{Row, boolean, integer, no_function, oid, optional, text};
use super::{PUBLIC_OID, class};
use crate::compile::{quote_identifier, stored_expression};

/// A domain, and the numbers of it, of the type of its arrays and of its checks in their order.
pub(crate) struct DomainEntry {
    pub oid: u32,
    pub array_oid: u32,
    pub domain: Arc<Domain>,
    pub checks: Vec<u32>,
}

impl DomainEntry {
    pub fn new(domain: &Arc<Domain>, catalog: &Catalog) -> DomainEntry {
        let name = || domain.name.clone();
        let number = |object| catalog.numbers().get(&object).unwrap_or_default();
        let checks = domain.checks.iter();
        let checks =
            checks.map(|check| number(NumberedObject::DomainCheck(name(), check.name.clone())));
        DomainEntry {
            oid: number(NumberedObject::Domain(name())),
            array_oid: number(NumberedObject::DomainArray(name())),
            checks: checks.collect(),
            domain: domain.clone(),
        }
    }

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
    fn collation(&self) -> u32 {
        match self.domain.collation.as_deref() {
            Some("C" | "ucs_basic") => class::C_COLLATION,
            Some("POSIX") => class::POSIX_COLLATION,
            _ => class::collation(&self.domain.base),
        }
    }
}

/// The rows of `pg_type` for a domain and its arrays.
pub(super) fn domain_types(snapshot: &Snapshot, entry: &DomainEntry) -> Vec<Row> {
    let domain = &entry.domain;
    let Some(mut row) = types::row_of(snapshot, &domain.base) else {
        return Vec::new();
    };
    let over = domain.over.as_ref();
    let over = over.and_then(|over| snapshot.domain(over));
    let (base, modifier) = match over {
        Some(over) => (over.oid, -1),
        None => (type_oid(&domain.base), domain.base.modifier()),
    };
    let dimensions = i32::from(matches!(domain.base, DataType::Array(_)) && over.is_none());
    let collation = entry.collation();
    for (at, value) in [
        (0, oid(entry.oid)),
        (1, text(domain.name.as_str())),
        (2, oid(PUBLIC_OID)),
        (
            3,
            oid(snapshot.owner_oid(&Object::of_type(domain.name.as_str()))),
        ),
        (6, text("d")),
        (8, boolean(false)),
        (11, oid(0)),
        (12, no_function()),
        (13, oid(0)),
        (14, oid(entry.array_oid)),
        (15, function(2597, "domain_in")),
        (17, function(2598, "domain_recv")),
        (19, no_function()),
        (20, no_function()),
        (24, boolean(domain.not_null)),
        (25, oid(base)),
        (26, integer(modifier)),
        (27, integer(dimensions)),
        (28, oid(collation)),
        (29, Value::Null),
        (30, optional(entry.default())),
        (31, Value::Null),
    ] {
        row[at] = value;
    }
    let of_array = types::array_row(
        snapshot,
        &format!("_{}", domain.name),
        (entry.oid, entry.array_oid),
        &row,
    );
    vec![row, of_array]
}

/// A function that domains alone have, as a row names it.
fn function(oid: u32, name: &str) -> Value {
    let name = name.to_owned();
    Value::Object(Box::new(ObjectName { oid, name }))
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
