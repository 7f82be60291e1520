//! The relations of `information_schema`.
//!
//! Each role sees what there is: it is no more than `pg_catalog` says.

mod composites;
mod constraints;
mod domains;
mod routines;
mod tables;
mod triggers;

use std::collections::HashMap;

use kiln_engine::Domain;
use kiln_storage::qualified::parts;
use kiln_storage::types::{DataType, Value};

use super::snapshot::Snapshot;
use super::values::{Row, integer, text};
use super::{DATABASE, Relation, builtin};

/// The function that makes the rows of a relation; `None` for a relation without rows.
pub(super) fn rows_of(name: &str) -> Option<fn(&Snapshot) -> Vec<Row>> {
    Some(match name {
        "schemata" => tables::schemata,
        "tables" => tables::tables,
        "columns" => tables::columns,
        "views" => tables::views,
        "view_table_usage" => tables::view_table_usage,
        "sequences" => tables::sequences,
        "triggers" => triggers::triggers,
        "table_privileges" | "role_table_grants" => tables::table_privileges,
        "table_constraints" => constraints::table_constraints,
        "key_column_usage" => constraints::key_column_usage,
        "constraint_column_usage" => constraints::constraint_column_usage,
        "constraint_table_usage" => constraints::constraint_table_usage,
        "referential_constraints" => constraints::referential_constraints,
        "check_constraints" => constraints::check_constraints,
        "domains" => domains::domains,
        "domain_constraints" => domains::domain_constraints,
        "column_domain_usage" => domains::column_domain_usage,
        "domain_udt_usage" => domains::domain_udt_usage,
        "attributes" => composites::attributes,
        "user_defined_types" => composites::user_defined_types,
        "routines" => routines::routines,
        "parameters" => routines::parameters,
        "routine_privileges" | "role_routine_grants" => routines::routine_privileges,
        "information_schema_catalog_name" => catalog_name,
        "enabled_roles" => enabled_roles,
        _ => return None,
    })
}

/// Makes rows of a relation from values by name; the other columns are NULL.
struct Maker {
    columns: HashMap<&'static str, usize>,
    width: usize,
}

impl Maker {
    fn of(relation: &str) -> Maker {
        let relation = Relation::find("information_schema", relation);
        let columns = relation.map_or(&[][..], |relation| &relation.columns);
        Maker {
            columns: columns
                .iter()
                .enumerate()
                .map(|(at, column)| (column.name, at))
                .collect(),
            width: columns.len(),
        }
    }

    fn row(&self) -> RowOf<'_> {
        RowOf {
            maker: self,
            row: vec![Value::Null; self.width],
        }
    }
}

/// A row in the making.
struct RowOf<'a> {
    maker: &'a Maker,
    row: Row,
}

impl RowOf<'_> {
    /// Gives a column its value.
    fn with(mut self, column: &str, value: impl Into<Value>) -> Self {
        let at = self.maker.columns.get(column);
        debug_assert!(at.is_some(), "no column {column}");
        if let Some(at) = at {
            self.row[*at] = value.into();
        }
        self
    }

    /// Names an object in the columns that begin so.
    fn named(self, prefix: &str, schema: &str, name: &str) -> Self {
        self.with(&format!("{prefix}_catalog"), DATABASE)
            .with(&format!("{prefix}_schema"), schema)
            .with(&format!("{prefix}_name"), name)
    }

    /// Names what the catalog knows by this name in the columns that begin so.
    fn of_qualified(self, prefix: &str, qualified: &str) -> Self {
        let (schema, name) = parts(qualified);
        self.named(prefix, schema, name)
    }

    /// What there is to be said of the type of a domain, or of a column of it: the type that the
    /// domain is over.
    fn of_domain(self, domain: &Domain) -> Self {
        match &domain.over {
            Some(over) => self
                .named("udt", "public", over)
                .with("data_type", "USER-DEFINED"),
            None => self.of_type(&domain.base),
        }
    }

    /// What there is to be said of a type.
    fn of_type(self, data_type: &DataType) -> Self {
        self.typed("udt", data_type)
    }

    /// As [`RowOf::of_type`], where the columns that name the type begin so.
    fn typed(self, prefix: &str, data_type: &DataType) -> Self {
        let facts = TypeFacts::of(data_type);
        let named = match data_type {
            DataType::Array(_) => "ARRAY",
            DataType::Enum(_) | DataType::Row(_) => "USER-DEFINED",
            other => other.base_name(),
        };
        let is_of_users = data_type.enumeration().is_some() || data_type.row().is_some();
        let schema = match is_of_users {
            true => "public",
            false => "pg_catalog",
        };
        self.named(prefix, schema, builtin::internal_name(data_type))
            .with("data_type", named)
            .with("character_maximum_length", facts.characters)
            .with("character_octet_length", facts.bytes)
            .with("numeric_precision", facts.precision)
            .with("numeric_precision_radix", facts.radix)
            .with("numeric_scale", facts.scale)
            .with("datetime_precision", facts.datetime)
    }
}

/// The numbers that belong to a type.
#[derive(Default)]
struct TypeFacts {
    characters: Option<i32>,
    bytes: Option<i32>,
    precision: Option<i32>,
    radix: Option<i32>,
    scale: Option<i32>,
    datetime: Option<i32>,
}

impl TypeFacts {
    fn of(data_type: &DataType) -> TypeFacts {
        /// The bytes of a text without a limit, as PostgreSQL says it.
        const TEXT_BYTES: i32 = 1 << 30;
        let none = TypeFacts::default;
        let binary = |precision, scale| TypeFacts {
            precision: Some(precision),
            radix: Some(2),
            scale,
            ..none()
        };
        let length = |length: u32| i32::try_from(length).unwrap_or(i32::MAX);
        match data_type {
            DataType::SmallInt => binary(16, Some(0)),
            DataType::Integer => binary(32, Some(0)),
            DataType::BigInt => binary(64, Some(0)),
            DataType::Double => binary(53, None),
            DataType::Numeric { precision_scale } => TypeFacts {
                precision: precision_scale.map(|(precision, _)| precision.into()),
                radix: Some(10),
                // As in PostgreSQL 15, a scale below zero shows as the eleven bits that it has.
                scale: precision_scale.map(|(_, scale)| i32::from(scale) & 0x7ff),
                ..none()
            },
            DataType::Char(limit) | DataType::VarChar(Some(limit)) if *limit != u32::MAX => {
                TypeFacts {
                    characters: Some(length(*limit)),
                    bytes: Some(length(limit.saturating_mul(4))),
                    ..none()
                }
            }
            DataType::Char(_) | DataType::VarChar(_) | DataType::Text => TypeFacts {
                bytes: Some(TEXT_BYTES),
                ..none()
            },
            DataType::Date => TypeFacts {
                datetime: Some(0),
                ..none()
            },
            DataType::Timestamp(_)
            | DataType::TimestampTz(_)
            | DataType::Time(_)
            | DataType::Interval(_) => TypeFacts {
                datetime: Some(data_type.digits_of_seconds().map_or(6, i32::from)),
                ..none()
            },
            _ => none(),
        }
    }
}

/// The name of the database.
fn catalog_name(_: &Snapshot) -> Vec<Row> {
    vec![vec![text(DATABASE)]]
}

/// Roles.
fn enabled_roles(snapshot: &Snapshot) -> Vec<Row> {
    let roles = snapshot.roles.iter();
    roles
        .map(|(_, role)| vec![text(role.name.clone())])
        .collect()
}

/// A position, from 1.
fn position(at: usize) -> Value {
    integer(i32::try_from(at + 1).unwrap_or(i32::MAX))
}
