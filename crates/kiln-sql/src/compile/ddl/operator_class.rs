//! Operator classes: which values the access method of an index takes.
//!
//! PostgreSQL's names of them are known for the types that columns have. They decide whether an
//! index may be declared; what an index is built of is our own decision.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::IndexMethod;
use kiln_storage::types::DataType;
use sqlparser::ast::IndexColumn;

use super::super::{Position, fail, object_name};

/// The types of columns, as operator classes call them, with the name that their classes begin
/// with.
const TYPES: [(&str, &str); 23] = [
    ("\"char\"", "char"),
    ("array", "array"),
    ("bigint", "int8"),
    ("boolean", "bool"),
    ("bytea", "bytea"),
    ("character", "bpchar"),
    ("character varying", "text"),
    ("date", "date"),
    ("double precision", "float8"),
    ("enum", "enum"),
    ("integer", "int4"),
    ("interval", "interval"),
    ("jsonb", "jsonb"),
    ("name", "name"),
    ("numeric", "numeric"),
    ("oid", "oid"),
    ("real", "float4"),
    ("smallint", "int2"),
    ("text", "text"),
    ("time without time zone", "time"),
    ("timestamp with time zone", "timestamptz"),
    ("timestamp without time zone", "timestamp"),
    ("uuid", "uuid"),
];

/// Classes of an access method that are not the default of their type, with the beginning of that
/// one's name.
const OTHERS: [(IndexMethod, &str, &str); 9] = [
    (IndexMethod::BTree, "bpchar_pattern_ops", "bpchar"),
    (IndexMethod::BTree, "text_pattern_ops", "text"),
    (IndexMethod::BTree, "varchar_ops", "text"),
    (IndexMethod::BTree, "varchar_pattern_ops", "text"),
    (IndexMethod::Hash, "bpchar_pattern_ops", "bpchar"),
    (IndexMethod::Hash, "text_pattern_ops", "text"),
    (IndexMethod::Hash, "varchar_ops", "text"),
    (IndexMethod::Hash, "varchar_pattern_ops", "text"),
    (IndexMethod::Gin, "jsonb_path_ops", "jsonb"),
];

/// Classes of types that columns do not have.
const OF_OTHER_TYPES: [(IndexMethod, &[&str]); 3] = [
    (IndexMethod::Gin, &["tsvector_ops"]),
    (
        IndexMethod::Gist,
        &[
            "box_ops",
            "circle_ops",
            "inet_ops",
            "multirange_ops",
            "point_ops",
            "poly_ops",
            "range_ops",
            "tsquery_ops",
            "tsvector_ops",
        ],
    ),
    (
        IndexMethod::SpGist,
        &[
            "box_ops",
            "inet_ops",
            "kd_point_ops",
            "poly_ops",
            "quad_point_ops",
            "range_ops",
        ],
    ),
];

/// The classes of an access method for a type whose classes begin with `stem`, the default one
/// first.
fn classes(method: IndexMethod, stem: &str) -> Vec<String> {
    let default = match method {
        IndexMethod::BTree | IndexMethod::Hash => Some("ops"),
        IndexMethod::Gin => matches!(stem, "array" | "jsonb").then_some("ops"),
        IndexMethod::Gist => None,
        IndexMethod::SpGist => (stem == "text").then_some("ops"),
        IndexMethod::Brin => {
            let has_none = matches!(stem, "array" | "bool" | "enum" | "jsonb");
            (!has_none).then_some("minmax_ops")
        }
    };
    let mut found: Vec<String> = default.iter().map(|ops| format!("{stem}_{ops}")).collect();
    if method == IndexMethod::Brin && default.is_some() {
        found.push(format!("{stem}_bloom_ops"));
        let is_of_bytes = matches!(stem, "bpchar" | "bytea" | "char" | "name" | "text");
        if !is_of_bytes {
            found.push(format!("{stem}_minmax_multi_ops"));
        }
    }
    let others = OTHERS.iter();
    let others = others.filter(|(of, _, of_stem)| *of == method && *of_stem == stem);
    found.extend(others.map(|(_, name, _)| (*name).to_owned()));
    found
}

/// With what the names of the classes of a type begin; none for one that has none.
fn stem_of(data_type: &DataType) -> Option<&'static str> {
    let name = match data_type {
        DataType::Array(_) => "array",
        DataType::Enum(_) => "enum",
        other => other.base_name(),
    };
    let mut known = TYPES.iter();
    known.find(|(of, _)| *of == name).map(|(_, stem)| *stem)
}

/// Checks the class of a column, or that there is one by default. Returns its name where it is not
/// the default.
///
/// # Errors
/// 42704 for a class that is not known, and where the type has none by default; 42804 for one of
/// another type.
pub(super) fn check(
    method: IndexMethod,
    column: &IndexColumn,
    data_type: &DataType,
    position: Position,
) -> Result<Option<String>> {
    let own = stem_of(data_type).map_or(Vec::new(), |stem| classes(method, stem));
    let type_name = data_type.base_name();
    let using = method.name();
    let Some(class) = &column.operator_class else {
        let has_default = stem_of(data_type).is_some_and(|stem| {
            // A class for another use is none by default.
            (own.first()).is_some_and(|first| first.starts_with(stem))
        });
        if has_default {
            return Ok(None);
        }
        let message = format!(
            "data type {type_name} has no default operator class for access method \"{using}\""
        );
        let hint = "You must specify an operator class for the index or define a default operator \
                    class for the data type.";
        return Err(fail(SqlState::UNDEFINED_OBJECT, message, position).with_hint(hint));
    };
    let class = object_name(class)?;
    if let Some(at) = own.iter().position(|known| *known == class) {
        return Ok((at > 0).then_some(class));
    }
    let of_types = TYPES.iter().flat_map(|(_, stem)| classes(method, stem));
    let mut of_others = OF_OTHER_TYPES.iter().filter(|(of, _)| *of == method);
    let is_known = of_types.into_iter().any(|known| known == class)
        || of_others.any(|(_, names)| names.contains(&class.as_str()));
    if !is_known {
        let message =
            format!("operator class \"{class}\" does not exist for access method \"{using}\"");
        return Err(fail(SqlState::UNDEFINED_OBJECT, message, position));
    }
    let message = format!("operator class \"{class}\" does not accept data type {type_name}");
    Err(fail(SqlState::DATATYPE_MISMATCH, message, position))
}
