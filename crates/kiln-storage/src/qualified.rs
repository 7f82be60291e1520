//! Names of objects with their schemas, as a catalog keeps them.
//!
//! A catalog knows an object of the schema `public` by its name alone, and one of another schema by
//! the schema's name, a dot and the object's name. No schema has a dot in its name, so that the
//! first dot tells the two apart; an object of `public` with a dot in its name has its schema
//! before it.

/// The schema in which names without one are, unless a search path says otherwise.
pub const PUBLIC_SCHEMA: &str = "public";

/// The name by which a catalog knows `name` of `schema`.
///
/// ```
/// use kiln_storage::qualified::{parts, qualified};
/// assert_eq!(qualified("public", "item"), "item");
/// assert_eq!(qualified("shop", "item"), "shop.item");
/// assert_eq!(parts("shop.item"), ("shop", "item"));
/// assert_eq!(parts(&qualified("public", "a.b")), ("public", "a.b"));
/// ```
pub fn qualified(schema: &str, name: &str) -> String {
    match schema == PUBLIC_SCHEMA && !name.contains('.') {
        true => name.to_owned(),
        false => format!("{schema}.{name}"),
    }
}

/// The schema and the name of what a catalog knows as `qualified`.
pub fn parts(qualified: &str) -> (&str, &str) {
    qualified
        .split_once('.')
        .unwrap_or((PUBLIC_SCHEMA, qualified))
}

/// The schema of what a catalog knows as `qualified`.
pub fn schema_of(qualified: &str) -> &str {
    parts(qualified).0
}

/// The name within its schema of what a catalog knows as `qualified`.
pub fn name_in_schema(qualified: &str) -> &str {
    parts(qualified).1
}

/// The name by which a catalog knows `name` of the schema in which `other` is.
pub fn beside(other: &str, name: &str) -> String {
    qualified(schema_of(other), name)
}
