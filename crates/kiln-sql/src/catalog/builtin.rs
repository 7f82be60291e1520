//! PostgreSQL's own objects, as COPY wrote them in PostgreSQL 15.

use std::collections::HashMap;

use kiln_platform::sync::OnceLock;
use kiln_storage::types::{CatalogType, DataType, ObjectName, Value, parse_value};

use super::Relation;
use super::values::Row;

/// The relations that have such objects.
const FILES: [(&str, &str); 11] = [
    ("pg_type", include_str!("data/pg_type.tsv")),
    ("pg_proc", include_str!("data/pg_proc.tsv")),
    ("pg_operator", include_str!("data/pg_operator.tsv")),
    ("pg_cast", include_str!("data/pg_cast.tsv")),
    ("pg_am", include_str!("data/pg_am.tsv")),
    ("pg_opclass", include_str!("data/pg_opclass.tsv")),
    ("pg_opfamily", include_str!("data/pg_opfamily.tsv")),
    ("pg_collation", include_str!("data/pg_collation.tsv")),
    ("pg_language", include_str!("data/pg_language.tsv")),
    ("pg_namespace", include_str!("data/pg_namespace.tsv")),
    ("pg_tablespace", include_str!("data/pg_tablespace.tsv")),
];

/// The rows of a relation that are PostgreSQL's own.
pub(super) fn rows(relation: &str) -> &'static [Row] {
    static ROWS: OnceLock<HashMap<&'static str, Vec<Row>>> = OnceLock::new();
    let all = ROWS.get_or_init(|| {
        FILES
            .into_iter()
            .map(|(name, file)| (name, read(name, file)))
            .collect()
    });
    all.get(relation).map_or(&[], Vec::as_slice)
}

fn read(name: &str, file: &str) -> Vec<Row> {
    let Some(relation) = Relation::find("pg_catalog", name) else {
        return Vec::new();
    };
    let lines = file.lines();
    let rows = lines.map(|line| {
        let fields = line.split('\t').zip(&relation.columns);
        fields
            .map(|(field, column)| value(field, &column.data_type))
            .collect()
    });
    rows.collect()
}

/// A field that COPY wrote. The files have no escapes but that of NULL, and of backslashes.
fn value(field: &str, data_type: &DataType) -> Value {
    if field == "\\N" {
        return Value::Null;
    }
    let field = field.replace("\\\\", "\\");
    match data_type {
        DataType::Catalog(CatalogType::RegProc) => {
            let oid = functions_by_name().get(field.as_str()).copied();
            Value::Object(Box::new(ObjectName {
                oid: oid.unwrap_or_default(),
                name: field,
            }))
        }
        _ => parse_value(data_type, &field).unwrap_or_default(),
    }
}

/// Whether PostgreSQL 15 has a function of this name that statements call, and Kiln has not. The
/// file has the names of those in `pg_proc` that no operator, type, cast, index or aggregate is
/// made of.
pub(crate) fn is_missing_function(name: &str) -> bool {
    const NAMES: &str = include_str!("data/functions.txt");
    NAMES.lines().any(|known| known == name)
}

/// PostgreSQL's functions by name; of several with one name, the first.
fn functions_by_name() -> &'static HashMap<&'static str, u32> {
    static NAMES: OnceLock<HashMap<&'static str, u32>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let (_, file) = FILES[1];
        let mut names = HashMap::new();
        for line in file.lines() {
            let mut fields = line.split('\t');
            if let (Some(Ok(oid)), Some(name)) = (fields.next().map(str::parse), fields.next()) {
                names.entry(name).or_insert(oid);
            }
        }
        names
    })
}

/// Whether PostgreSQL's function of this name gives the same result for the same arguments at all
/// times, and under all settings. Arguments whose types are not known fit any.
pub(crate) fn is_immutable(name: &str, arguments: &[Option<DataType>]) -> bool {
    // PostgreSQL says that it is, and has it depend on the time zone.
    if name == "age" && arguments.contains(&Some(DataType::TIMESTAMPTZ)) {
        return false;
    }
    let of_name = FILES[1].1.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let is_meant = *fields.get(1)? == name;
        is_meant.then(|| (fields[VOLATILITY], fields[ARGUMENT_TYPES]))
    });
    let fits = |types: &str| {
        let mut types = types.split(' ').filter(|it| !it.is_empty());
        let each = arguments
            .iter()
            .all(|argument| match (types.next(), argument) {
                (Some(oid), Some(known)) => oid == oid_of(known).to_string(),
                (known, _) => known.is_some(),
            });
        each && types.next().is_none()
    };
    let all: Vec<(&str, &str)> = of_name.collect();
    let fitting: Vec<&(&str, &str)> = all.iter().filter(|(_, types)| fits(types)).collect();
    let immutable = |(volatility, _): &(&str, &str)| *volatility == "i";
    match fitting.is_empty() {
        true => all.iter().all(immutable),
        false => fitting.into_iter().all(immutable),
    }
}

/// The names of the arguments of each of PostgreSQL's functions of a name that has some, with how
/// many of them have no default.
pub(crate) fn argument_names(function: &str) -> Vec<(Vec<&'static str>, usize)> {
    let of_name = FILES[1].1.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        if *fields.get(1)? != function {
            return None;
        }
        let list = |at: usize| fields[at].trim_matches(['{', '}']).split(',');
        let defaults: usize = fields[DEFAULTS].parse().ok()?;
        let names: Vec<&str> = match fields[ARGUMENT_MODES] {
            "\\N" => list(ARGUMENT_NAMES).collect(),
            _ => {
                let with_modes = list(ARGUMENT_NAMES).zip(list(ARGUMENT_MODES));
                let given = with_modes.filter(|(_, mode)| matches!(*mode, "i" | "b" | "v"));
                given.map(|(name, _)| name).collect()
            }
        };
        let required = names.len().checked_sub(defaults)?;
        (fields[ARGUMENT_NAMES] != "\\N").then_some((names, required))
    });
    of_name.collect()
}

/// The columns of `pg_proc` that say how many arguments have defaults, and what all are called and
/// are for.
const DEFAULTS: usize = 17;
const ARGUMENT_MODES: usize = 21;
const ARGUMENT_NAMES: usize = 22;

/// The columns of `pg_proc` that say how volatile a function is, and which arguments it takes.
const VOLATILITY: usize = 14;
const ARGUMENT_TYPES: usize = 19;

/// One of PostgreSQL's types.
#[derive(Debug)]
pub(super) struct BuiltinType {
    pub oid: u32,
    /// Its name in the catalog, for instance `int4`.
    pub name: &'static str,
    /// The type of its elements, or 0.
    pub element: u32,
    /// The type of its arrays, or 0.
    pub array: u32,
    /// Whether it is the type of the arrays of its elements, and no vector.
    pub is_array: bool,
    pub length: i16,
    pub by_value: bool,
    pub alignment: &'static str,
    pub storage: &'static str,
}

/// PostgreSQL's types.
pub(super) fn types() -> &'static [BuiltinType] {
    static TYPES: OnceLock<Vec<BuiltinType>> = OnceLock::new();
    TYPES.get_or_init(|| rows("pg_type").iter().filter_map(builtin_type).collect())
}

/// The type with this number.
pub(super) fn type_by_oid(oid: u32) -> Option<&'static BuiltinType> {
    types().iter().find(|known| known.oid == oid)
}

fn builtin_type(row: &'static Row) -> Option<BuiltinType> {
    let number = |column: usize| match row.get(column) {
        Some(Value::BigInt(number)) => u32::try_from(*number).ok(),
        _ => None,
    };
    let text = |column: usize| match row.get(column) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let (oid, name) = (number(0)?, text(1)?);
    Some(BuiltinType {
        oid,
        name,
        element: number(13)?,
        array: number(14)?,
        is_array: text(7)? == "A" && name.starts_with('_'),
        length: match row.get(4) {
            Some(Value::SmallInt(length)) => *length,
            _ => return None,
        },
        by_value: row.get(5) == Some(&Value::Boolean(true)),
        alignment: text(22)?,
        storage: text(23)?,
    })
}

/// The number of a type of ours; 0 where PostgreSQL has none.
pub(crate) fn oid_of(data_type: &DataType) -> u32 {
    let named = |name: &str| types().iter().find(|known| known.name == name);
    match data_type {
        DataType::Enum(of) => of.oid(),
        DataType::Row(of) => of.oid(),
        DataType::Array(element) => match &**element {
            DataType::Enum(of) => of.array_oid(),
            DataType::Row(of) => of.array_oid(),
            element => type_by_oid(oid_of(element)).map_or(0, |element| element.array),
        },
        DataType::Catalog(catalog) => catalog.oid(),
        other => named(internal_name(other)).map_or(0, |known| known.oid),
    }
}

/// The name of a type in the catalog.
pub(crate) fn internal_name(data_type: &DataType) -> &str {
    match data_type {
        DataType::SmallInt => "int2",
        DataType::Integer => "int4",
        DataType::BigInt => "int8",
        DataType::Numeric { .. } => "numeric",
        DataType::Double => "float8",
        DataType::Boolean => "bool",
        DataType::Char(_) => "bpchar",
        DataType::VarChar(_) => "varchar",
        DataType::Text => "text",
        DataType::Bytea => "bytea",
        DataType::Date => "date",
        DataType::Timestamp(_) => "timestamp",
        DataType::TimestampTz(_) => "timestamptz",
        DataType::Time(_) => "time",
        DataType::Uuid => "uuid",
        DataType::Interval(_) => "interval",
        DataType::Enum(of) => of.name(),
        DataType::Row(of) => of.name(),
        DataType::Array(element) => match &**element {
            DataType::Enum(of) => of.array_name(),
            DataType::Row(of) => of.array_name(),
            element => type_by_oid(oid_of(element))
                .and_then(|element| type_by_oid(element.array))
                .map_or("anyarray", |array| array.name),
        },
        DataType::Catalog(catalog) => {
            type_by_oid(catalog.oid()).map_or("unknown", |known| known.name)
        }
    }
}

/// The type of ours that a number of PostgreSQL's means, without a length; `None` for one that is
/// not here.
pub(super) fn type_of(oid: u32) -> Option<DataType> {
    const PLAIN: [DataType; 16] = [
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::NUMERIC,
        DataType::Double,
        DataType::Boolean,
        DataType::Char(u32::MAX),
        DataType::VarChar(None),
        DataType::Text,
        DataType::Bytea,
        DataType::Date,
        DataType::TIMESTAMP,
        DataType::TIMESTAMPTZ,
        DataType::TIME,
        DataType::Uuid,
        DataType::INTERVAL,
    ];
    let known = type_by_oid(oid)?;
    if known.is_array {
        return type_of(known.element).map(DataType::array);
    }
    let mut catalogs = CatalogType::ALL.into_iter();
    let catalog = catalogs.find(|catalog| catalog.oid() == oid);
    let mut plain = PLAIN.into_iter();
    catalog
        .map(DataType::Catalog)
        .or_else(|| plain.find(|plain| internal_name(plain) == known.name))
}

/// The type of ours that has this name in the catalog, for instance `int4` or `_text`.
pub(crate) fn type_named(name: &str) -> Option<DataType> {
    let known = types().iter().find(|known| known.name == name)?;
    type_of(known.oid)
}

/// What `format_type` prints for a type without a modifier that is PostgreSQL's own.
pub(super) fn printed_type(oid: u32) -> Option<String> {
    let known = type_by_oid(oid)?;
    if let Some(data_type) = type_of(oid) {
        return Some(data_type.base_name().to_owned());
    }
    Some(match known.is_array {
        true => format!("{}[]", printed_type(known.element)?),
        false => known.name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_are_rows_of_their_relations() {
        for (name, file) in FILES {
            let relation = Relation::find("pg_catalog", name).expect(name);
            assert_eq!(rows(name).len(), file.lines().count(), "{name}");
            for (row, line) in rows(name).iter().zip(file.lines()) {
                assert_eq!(row.len(), relation.columns.len(), "{name}: {line}");
                for ((value, column), field) in
                    row.iter().zip(&relation.columns).zip(line.split('\t'))
                {
                    let is_null = field == "\\N";
                    assert_eq!(value.is_null(), is_null, "{name}.{}: {line}", column.name);
                    assert!(!(is_null && column.not_null), "{name}.{}", column.name);
                }
            }
        }
    }

    #[test]
    fn types_have_the_numbers_of_postgresql() {
        for (data_type, oid) in [
            (DataType::Integer, 23),
            (DataType::array(DataType::Text), 1009),
            (DataType::Char(u32::MAX), 1042),
            (DataType::OID, 26),
            (DataType::array(DataType::NAME), 1003),
        ] {
            assert_eq!(oid_of(&data_type), oid);
            assert_eq!(type_of(oid), Some(data_type));
        }
        assert_eq!(printed_type(2278).as_deref(), Some("void"));
        assert_eq!(printed_type(1263).as_deref(), Some("cstring[]"));
        assert_eq!(printed_type(1042).as_deref(), Some("character"));
    }
}
