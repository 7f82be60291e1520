//! Objects by name: how REGCLASS and its like read and print them.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::{PUBLIC_SCHEMA, beside, parts as parts_of, qualified, schema_of};
use kiln_storage::types::{CatalogType, DataType, ObjectName, Value};

use super::snapshot::{ObjectOf, RoutineEntry, Snapshot, TableEntry};
use super::{DATABASE, PG_CATALOG_OID, PUBLIC_OID, Relation, builtin};
use crate::compile::{CatalogView, TEMPORARY_SCHEMA, along_path, quote_identifier, schema_meant};
use crate::parse::type_of_text;

/// The number of the schema `information_schema`.
pub(super) fn information_schema_oid() -> u32 {
    let rows = builtin::rows("pg_namespace").iter();
    let mut oids = rows.filter_map(|row| match (row.first(), row.get(1)) {
        (Some(Value::BigInt(oid)), Some(Value::Text(name))) if name == "information_schema" => {
            u32::try_from(*oid).ok()
        }
        _ => None,
    });
    oids.next().unwrap_or_default()
}

/// The number of a schema that every database has.
pub(super) fn schema_oid(name: &str) -> Option<u32> {
    match name {
        "pg_catalog" => Some(PG_CATALOG_OID),
        PUBLIC_SCHEMA => Some(PUBLIC_OID),
        "information_schema" => Some(information_schema_oid()),
        _ => None,
    }
}

impl Snapshot {
    /// The number of a schema.
    pub fn schema_oid(&self, name: &str) -> Option<u32> {
        let own = || self.schemas.iter().find(|(_, known)| known == name);
        schema_oid(name).or_else(|| own().map(|(oid, _)| *oid))
    }

    /// The number of the schema of what the catalog knows by this name.
    pub fn schema_oid_of(&self, qualified: &str) -> u32 {
        self.schema_oid(schema_of(qualified)).unwrap_or_default()
    }

    /// The name of a schema.
    pub fn schema_name(&self, oid: u32) -> Option<&str> {
        let names = ["pg_catalog", PUBLIC_SCHEMA, "information_schema"];
        let mut own = self.schemas.iter();
        names
            .into_iter()
            .find(|name| schema_oid(name) == Some(oid))
            .or_else(|| {
                own.find(|(known, _)| *known == oid)
                    .map(|(_, name)| name.as_str())
            })
    }

    /// Whether the name without the schema means this relation: none of the system has it, and none
    /// before it along the path.
    pub fn is_visible(&self, qualified_name: &str) -> bool {
        let (schema, name) = parts_of(qualified_name);
        let has = |schema: &&str| self.relation_oid(&qualified(schema, name)).is_some();
        Relation::find("pg_catalog", name).is_none()
            && self.path.schemas().find(has) == Some(schema)
    }

    /// A relation's name, with its schema where it is not visible without.
    pub fn shown(&self, qualified: &str) -> String {
        let (schema, name) = parts_of(qualified);
        match self.is_visible(qualified) {
            true => quote_identifier(name),
            false => format!("{}.{}", quote_identifier(schema), quote_identifier(name)),
        }
    }
}

/// A name, qualified or not, in its parts: folded to lower case but where it is quoted.
///
/// # Errors
/// 42602.
fn parts(text: &str) -> Result<Vec<String>> {
    let invalid = || Error::new(SqlState::INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_part(quoted).ok_or_else(invalid)?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let (part, after) = rest.split_at(end);
                (part.trim_end().to_lowercase(), after)
            }
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        let after = after.trim_start();
        if after.is_empty() {
            return Ok(parts);
        }
        rest = after.strip_prefix('.').ok_or_else(invalid)?.trim_start();
    }
}

/// What stands up to the quote that ends it, and what comes after.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                part.push('"');
                rest = after;
            }
            None => return Some((part, after)),
        }
    }
}

/// The number that a text is, if it is one.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The schema of a relation that a text means, if it has one, and its name there.
///
/// # Errors
/// 42602; 42P01 for one of another database.
fn relation_parts(text: &str) -> Result<(Option<String>, String)> {
    let mut parts = parts(text.trim())?;
    let name = parts.pop().unwrap_or_default();
    let schema = parts.pop();
    match parts.as_slice() {
        [] => Ok((schema, name)),
        [database] if database == DATABASE => Ok((schema, name)),
        _ => {
            let message = format!("relation \"{}\" does not exist", text.trim());
            Err(Error::new(SqlState::UNDEFINED_TABLE, message))
        }
    }
}

/// The qualified name of the relation that a text means, along the path of `catalog`.
///
/// # Errors
/// As [`relation_parts`]; 3F000 for a schema that there is not.
pub(super) fn relation_of(text: &str, catalog: &dyn CatalogView) -> Result<String> {
    let (schema, name) = relation_parts(text)?;
    let schema = schema.map(|schema| schema_meant(catalog, &schema).to_owned());
    match schema {
        Some(schema) if !catalog.has_schema(&schema) && schema_oid(&schema).is_none() => {
            Err(missing(SqlState::INVALID_SCHEMA_NAME, "schema", &schema))
        }
        Some(schema) => Ok(qualified(&schema, &name)),
        None => Ok(along_path(catalog, &name)),
    }
}

/// The qualified name of the relation that a text in an expression which the catalog keeps means.
///
/// # Errors
/// As [`relation_parts`].
pub(super) fn stored_relation(text: &str) -> Result<String> {
    let (schema, name) = relation_parts(text)?;
    Ok(qualified(schema.as_deref().unwrap_or(PUBLIC_SCHEMA), &name))
}

impl Snapshot {
    /// The object that a text names, as the input function of a `reg` type reads it.
    ///
    /// # Errors
    /// 42P01, 42704, 42883 and their like where there is none; 42602.
    pub fn object_named(&self, kind: CatalogType, text: &str) -> Result<ObjectName> {
        let trimmed = text.trim();
        let oid = match number(trimmed) {
            _ if trimmed == "-" => 0,
            Some(oid) => oid,
            None => self.oid_named(kind, trimmed)?,
        };
        Ok(self.object_name(kind, oid))
    }

    fn oid_named(&self, kind: CatalogType, text: &str) -> Result<u32> {
        match kind {
            CatalogType::RegClass => self.class_named(text),
            CatalogType::RegType => self.type_named(text),
            CatalogType::RegProc => self.routine_named(text),
            CatalogType::RegProcedure => self.routine_with_arguments(text),
            CatalogType::RegNamespace => {
                let parts = parts(text)?;
                let oid = parts.first().and_then(|name| self.schema_oid(name));
                oid.ok_or_else(|| missing(SqlState::INVALID_SCHEMA_NAME, "schema", text))
            }
            CatalogType::RegRole => {
                let parts = parts(text)?;
                let oid = parts.first().and_then(|name| self.role_oid(name));
                oid.ok_or_else(|| missing(SqlState::UNDEFINED_OBJECT, "role", text))
            }
            other => Err(Error::internal(format!(
                "no object is of type {}",
                other.name()
            ))),
        }
    }

    /// The parts of a name, with the session's temporary schema in the place of `pg_temp`.
    fn parts_meant(&self, text: &str) -> Result<Vec<String>> {
        let mut parts = parts(text)?;
        if let (Some(schema), Some((_, own))) = (parts.iter_mut().rev().nth(1), &self.temporary)
            && schema == TEMPORARY_SCHEMA
        {
            schema.clone_from(own);
        }
        Ok(parts)
    }

    fn class_named(&self, text: &str) -> Result<u32> {
        let parts = self.parts_meant(text)?;
        let system = |schema: &str, name: &str| Relation::find(schema, name).map(|it| it.oid);
        let oid = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [name] => system("pg_catalog", name).or_else(|| {
                let mut schemas = self.path.schemas();
                schemas.find_map(|schema| self.relation_oid(&qualified(schema, name)))
            }),
            [schema, _] | [DATABASE, schema, _] if self.schema_oid(schema).is_none() => {
                return Err(missing(SqlState::INVALID_SCHEMA_NAME, "schema", schema));
            }
            [schema, name] | [DATABASE, schema, name] => {
                system(schema, name).or_else(|| self.relation_oid(&qualified(schema, name)))
            }
            _ => None,
        };
        oid.ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", parts.join("."));
            Error::new(SqlState::UNDEFINED_TABLE, message)
        })
    }

    /// The number of the type that a text names.
    ///
    /// # Errors
    /// 42704.
    pub fn type_named(&self, text: &str) -> Result<u32> {
        let unknown = || missing(SqlState::UNDEFINED_OBJECT, "type", text);
        let bare = text.strip_prefix("pg_catalog.").unwrap_or(text);
        let written = type_of_text(text).map_err(|_| unknown())?;
        // What SQL calls CHAR is another type than the one that the catalog calls so.
        let names = builtin::types().iter();
        let mut names = names.filter(|known| !matches!(known.name, "char"));
        if let Some(known) = names.find(|known| known.name == bare) {
            return Ok(known.oid);
        }
        if let Ok(data_type) = crate::compile::plain_type(&written, None) {
            return Ok(builtin::oid_of(&data_type));
        }
        let (base, is_array) = match text.strip_suffix("[]") {
            Some(base) => (base, true),
            None => (text, false),
        };
        let parts = self.parts_meant(base)?;
        let table = match parts.as_slice() {
            [name] => {
                let mut schemas = self.path.schemas();
                schemas.find_map(|schema| self.table(&qualified(schema, name)))
            }
            [schema, name] => self.table(&qualified(schema, name)),
            _ => None,
        };
        let of_public = match parts.as_slice() {
            [name] => Some(name),
            [schema, name] if schema == "public" => Some(name),
            _ => None,
        };
        if let Some(of) = of_public.and_then(|name| self.enumeration(name))
            && table.is_none()
        {
            return Ok(if is_array { of.array_oid() } else { of.oid() });
        }
        if let Some(entry) = of_public.and_then(|name| self.composite(name))
            && table.is_none()
        {
            let of = &entry.of;
            return Ok(if is_array { of.array_oid() } else { of.oid() });
        }
        if let Some(entry) = of_public.and_then(|name| self.domain(name))
            && table.is_none()
        {
            return Ok(if is_array { entry.array_oid } else { entry.oid });
        }
        let table = table.ok_or_else(unknown)?;
        Ok(if is_array {
            table.row_array_type
        } else {
            table.row_type
        })
    }

    fn routine_named(&self, text: &str) -> Result<u32> {
        let parts = parts(text)?;
        let Some(name) = parts.last() else {
            return Err(missing(SqlState::UNDEFINED_FUNCTION, "function", text));
        };
        let own = self.routines.iter().filter(|routine| routine.name == *name);
        let own = own.map(|routine| routine.oid);
        let (in_public, in_catalog) = match parts.len() {
            1 => (true, true),
            _ => (parts[0] == "public", parts[0] == "pg_catalog"),
        };
        let mut found: Vec<u32> = Vec::new();
        if in_catalog {
            found.extend(builtin_functions(name).map(|(oid, _)| oid));
        }
        if in_public {
            found.extend(own);
        }
        match found.as_slice() {
            [only] => Ok(*only),
            [] => Err(missing(SqlState::UNDEFINED_FUNCTION, "function", text)),
            _ => Err(Error::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("more than one function named \"{text}\""),
            )),
        }
    }

    fn routine_with_arguments(&self, text: &str) -> Result<u32> {
        let unknown = || missing(SqlState::UNDEFINED_FUNCTION, "function", text);
        let (name, rest) = text.split_once('(').ok_or_else(|| {
            Error::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                "expected a left parenthesis",
            )
        })?;
        let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| {
            Error::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                "expected a right parenthesis",
            )
        })?;
        let types = inside
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let types: Vec<u32> = types
            .map(|part| self.type_named(part))
            .collect::<Result<_>>()?;
        let parts = parts(name)?;
        let name = parts.last().ok_or_else(unknown)?;
        let mut builtin = builtin_functions(name);
        if let Some((oid, _)) = builtin.find(|(_, arguments)| *arguments == types) {
            return Ok(oid);
        }
        let mut own = self.routines.iter();
        let own = own.find(|routine| routine.name == *name && routine.argument_oids() == types);
        own.map(|routine| routine.oid).ok_or_else(unknown)
    }

    /// An object as a `reg` type prints it.
    pub fn object_name(&self, kind: CatalogType, oid: u32) -> ObjectName {
        let name = match kind {
            _ if oid == 0 => Some("-".to_owned()),
            CatalogType::RegClass => self.class_name(oid),
            CatalogType::RegType => self.type_name(oid),
            CatalogType::RegProc => self.routine_name(oid).map(|(name, _)| name),
            CatalogType::RegProcedure => self.routine_name(oid).map(|(name, arguments)| {
                let arguments: Vec<String> = arguments
                    .into_iter()
                    .map(|oid| self.type_name(oid).unwrap_or_else(|| "???".to_owned()))
                    .collect();
                format!("{name}({})", arguments.join(","))
            }),
            CatalogType::RegNamespace => self.schema_name(oid).map(quote_identifier),
            CatalogType::RegRole => match self.object(oid) {
                Some(ObjectOf::Role(role)) => Some(quote_identifier(&role.name)),
                _ => None,
            },
            _ => None,
        };
        let name = name.unwrap_or_else(|| oid.to_string());
        ObjectName { oid, name }
    }

    fn class_name(&self, oid: u32) -> Option<String> {
        let of_index;
        let own = match self.object(oid) {
            Some(ObjectOf::Table(table)) => table.qualified(),
            Some(ObjectOf::Index(table, index)) => {
                of_index = beside(table.qualified(), &index.definition.name);
                &of_index
            }
            Some(ObjectOf::Sequence(sequence)) => sequence.sequence.name(),
            Some(ObjectOf::View(view)) => &view.view.name,
            Some(ObjectOf::CompositeRelation(of)) => return Some(of.printed().to_owned()),
            _ => {
                let relation = Snapshot::system_relation(oid)?;
                return Some(match relation.schema {
                    "pg_catalog" => relation.name.to_owned(),
                    schema => format!("{schema}.{}", relation.name),
                });
            }
        };
        Some(self.shown(own))
    }

    /// A type as `format_type` prints it without a modifier.
    pub fn type_name(&self, oid: u32) -> Option<String> {
        builtin::printed_type(oid).or_else(|| match self.object(oid)? {
            ObjectOf::RowType(table) => Some(self.shown_type(table)),
            ObjectOf::RowArrayType(table) => Some(format!("{}[]", self.shown_type(table))),
            ObjectOf::Enum(of) => Some(of.printed().to_owned()),
            ObjectOf::EnumArray(of) => Some(of.printed_array().to_owned()),
            ObjectOf::Composite(of) => Some(of.printed().to_owned()),
            ObjectOf::CompositeArray(of) => Some(of.printed_array().to_owned()),
            ObjectOf::Domain(entry) => Some(entry.printed()),
            ObjectOf::DomainArray(entry) => Some(format!("{}[]", entry.printed())),
            _ => None,
        })
    }

    /// The type of a table's rows, which no relation of the system hides.
    fn shown_type(&self, table: &TableEntry) -> String {
        match self
            .path
            .schemas()
            .any(|schema| schema == table.schema_name())
        {
            true => quote_identifier(table.name()),
            false => self.shown(table.qualified()),
        }
    }

    fn routine_name(&self, oid: u32) -> Option<(String, Vec<u32>)> {
        if let Some(ObjectOf::Routine(routine)) = self.object(oid) {
            return Some((quote_identifier(&routine.name), routine.argument_oids()));
        }
        let mut rows = builtin::rows("pg_proc").iter();
        let row = rows.find(|row| row.first() == Some(&Value::BigInt(oid.into())))?;
        let (_, arguments) = builtin_function(row)?;
        match row.get(1) {
            Some(Value::Text(name)) => Some((quote_identifier(name), arguments)),
            _ => None,
        }
    }
}

impl RoutineEntry {
    /// The numbers of the types of its input arguments.
    pub fn argument_oids(&self) -> Vec<u32> {
        self.facts
            .as_ref()
            .map_or_else(Vec::new, |facts| facts.input_oids())
    }
}

/// The numbers of PostgreSQL's functions of a name, and those of their arguments' types.
fn builtin_functions(name: &str) -> impl Iterator<Item = (u32, Vec<u32>)> {
    let rows = builtin::rows("pg_proc").iter();
    rows.filter(move |row| matches!(row.get(1), Some(Value::Text(known)) if known == name))
        .filter_map(|row| builtin_function(row))
}

fn builtin_function(row: &[Value]) -> Option<(u32, Vec<u32>)> {
    let number = |value: &Value| match value {
        Value::BigInt(number) => u32::try_from(*number).ok(),
        _ => None,
    };
    let Some(Value::Array(arguments)) = row.get(19) else {
        return None;
    };
    let arguments = arguments.iter().map(number).collect::<Option<_>>()?;
    Some((number(row.first()?)?, arguments))
}

#[cold]
fn missing(state: SqlState, what: &str, name: &str) -> Error {
    Error::new(state, format!("{what} \"{name}\" does not exist"))
}

/// The value of a `reg` type that a type of ours is, for `pg_typeof`.
pub(crate) fn type_object(data_type: &DataType) -> Value {
    Value::Object(Box::new(ObjectName {
        oid: builtin::oid_of(data_type),
        name: data_type.base_name().to_owned(),
    }))
}

/// The type with this number, as an object.
pub(super) fn type_numbered(oid: u32) -> Value {
    let name = builtin::printed_type(oid).unwrap_or_else(|| oid.to_string());
    Value::Object(Box::new(ObjectName { oid, name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let of = |text: &str| parts(text).map(|parts| parts.join("|"));
        assert_eq!(of("Public.Items").as_deref(), Ok("public|items"));
        assert_eq!(of("\"A.\"\"b\".\"C\"").as_deref(), Ok("A.\"b|C"));
        for invalid in ["", ".", "a.", "\"a", "\"a\"b", "a..b"] {
            assert!(of(invalid).is_err(), "{invalid}");
        }
    }
}
