//! Types as SQL writes them.

use kiln_engine::Domain;
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{CatalogType, DataType};
use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as Written, ExactNumberInfo, ObjectName,
    TimezoneInfo,
};

use super::{CatalogView, Position, fail, name_of, unsupported};
use crate::catalog::type_named;

/// The longest CHAR and VARCHAR, as in PostgreSQL.
const LENGTH_MAX: u64 = 10_485_760;

/// The type that `written` names: one of PostgreSQL's own, an enum or a composite type. A domain is none: where it may
/// stand, [`declared_type`](super::declared_type) is asked.
///
/// # Errors
/// 42704 for an unknown type, 22023 for a length or precision out of range, 0A000 for a type that
/// is not supported.
pub fn data_type(
    written: &Written,
    catalog: &dyn CatalogView,
    position: Position,
) -> Result<DataType> {
    let of_users = |name: &ObjectName| {
        let name = match qualified(name, position) {
            Ok((None, name)) => name,
            Ok((Some(schema), name)) if schema == "public" => name,
            _ => return None,
        };
        let enumeration = catalog.enumeration(&name).map(DataType::Enum);
        enumeration.or_else(|| catalog.composite(&name).map(DataType::Row))
    };
    match (written, plain_type(written, position)) {
        (Written::Custom(name, modifiers), Err(error))
            if modifiers.is_empty() && error.state() == SqlState::UNDEFINED_OBJECT =>
        {
            if let Some(domain) = domain_named(written, catalog) {
                return Err(misplaced(&domain.name, position));
            }
            of_users(name).ok_or(error)
        }
        (Written::Array(array), Err(error)) if error.state() == SqlState::UNDEFINED_OBJECT => {
            match array_element(array) {
                Some(element) if domain_named(element, catalog).is_some() => {
                    Err(unsupported("an array of a domain", position))
                }
                Some(element) => array_of(data_type(element, catalog, position)?),
                None => Err(error),
            }
        }
        (_, known) => known,
    }
}

/// The domain that `written` names.
pub(super) fn domain_named(written: &Written, catalog: &dyn CatalogView) -> Option<Arc<Domain>> {
    let Written::Custom(name, modifiers) = written else {
        return None;
    };
    let is_own =
        plain_type(written, None).is_err_and(|error| error.state() == SqlState::UNDEFINED_OBJECT);
    if !modifiers.is_empty() || !is_own {
        return None;
    }
    match qualified(name, None).ok()? {
        (None, name) => catalog.domain(&name),
        (Some(schema), name) if schema == "public" => catalog.domain(&name),
        _ => None,
    }
}

/// As in PostgreSQL the number of dimensions is no part of a type.
fn array_of(element: DataType) -> Result<DataType> {
    Ok(match element {
        array @ DataType::Array(_) => array,
        element => DataType::array(element),
    })
}

/// The type of an array's elements, as it was written.
fn array_element(array: &ArrayElemTypeDef) -> Option<&Written> {
    match array {
        ArrayElemTypeDef::SquareBracket(element, _)
        | ArrayElemTypeDef::AngleBracket(element)
        | ArrayElemTypeDef::Parenthesis(element)
        | ArrayElemTypeDef::Qualified(element, _) => Some(element),
        ArrayElemTypeDef::None => None,
    }
}

/// The type that `written` names, if it is one of PostgreSQL's own.
///
/// # Errors
/// As [`data_type`]; 42704 for an enum.
pub fn plain_type(written: &Written, position: Position) -> Result<DataType> {
    Ok(match written {
        Written::SmallInt(None) | Written::Int2(None) => DataType::SmallInt,
        Written::Integer(None) | Written::Int(None) | Written::Int4(None) => DataType::Integer,
        Written::BigInt(None) | Written::Int8(None) => DataType::BigInt,
        Written::Numeric(info) | Written::Decimal(info) | Written::Dec(info) => {
            numeric(info, position)?
        }
        Written::Double(ExactNumberInfo::None)
        | Written::DoublePrecision
        | Written::Float8
        | Written::Float64 => DataType::Double,
        Written::Float(ExactNumberInfo::None) => DataType::Double,
        Written::Float(ExactNumberInfo::Precision(bits)) => match bits {
            0 => {
                return Err(fail(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "precision for type float must be at least 1 bit",
                    position,
                ));
            }
            1..=24 => DataType::REAL,
            25..=53 => DataType::Double,
            _ => {
                return Err(fail(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "precision for type float must be less than 54 bits",
                    position,
                ));
            }
        },
        Written::Real | Written::Float4 | Written::Float32 => DataType::REAL,
        Written::Boolean | Written::Bool => DataType::Boolean,
        Written::Character(length) | Written::Char(length) => {
            DataType::Char(character_length(length, "char", position)?.unwrap_or(1))
        }
        Written::CharacterVarying(length)
        | Written::CharVarying(length)
        | Written::Varchar(length) => {
            DataType::VarChar(character_length(length, "varchar", position)?)
        }
        Written::Text => DataType::Text,
        Written::Bytea => DataType::Bytea,
        Written::Date => DataType::Date,
        Written::Timestamp(precision, zone) => match zone {
            TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => {
                DataType::Timestamp(digits_of_seconds(*precision))
            }
            TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => {
                DataType::TimestampTz(digits_of_seconds(*precision))
            }
        },
        Written::Time(precision, zone) => match zone {
            TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => {
                DataType::Time(digits_of_seconds(*precision))
            }
            _ => return Err(unsupported("type time with time zone", position)),
        },
        Written::Uuid => DataType::Uuid,
        Written::JSON => DataType::JSON,
        Written::JSONB => DataType::JSONB,
        Written::Regclass => DataType::Catalog(CatalogType::RegClass),
        Written::Interval {
            fields: None,
            precision,
        } => DataType::Interval(digits_of_seconds(*precision)),
        Written::Array(array) if let Some(element) = array_element(array) => {
            array_of(plain_type(element, position)?)?
        }
        Written::Custom(name, modifiers) => {
            let (schema, name) = qualified(name, position)?;
            if let Some(known) = of_schema(schema.as_deref(), &name)
                && modifiers.is_empty()
            {
                return Ok(known);
            }
            match name.as_str() {
                "bpchar" => {
                    let length = modifiers.first().and_then(|length| length.parse().ok());
                    let Some(length) = length.filter(|_| modifiers.len() == 1) else {
                        return Err(unsupported("type bpchar without a length", position));
                    };
                    let length = CharacterLength::IntegerLength { length, unit: None };
                    let length = character_length(&Some(length), "char", position)?;
                    DataType::Char(length.unwrap_or(1))
                }
                "timestamptz" if modifiers.is_empty() => DataType::TIMESTAMPTZ,
                "int2" => DataType::SmallInt,
                "int4" => DataType::Integer,
                "int8" => DataType::BigInt,
                "float8" => DataType::Double,
                "bool" => DataType::Boolean,
                // The name of a portal.
                "refcursor" if modifiers.is_empty() => DataType::Text,
                "timetz" | "money" | "xml" | "inet" | "cidr" | "macaddr" | "hstore"
                | "tsvector" | "tsquery" | "bit" | "varbit" | "point" | "record" => {
                    return Err(unsupported(format!("type {name}"), position));
                }
                _ => {
                    return Err(fail(
                        SqlState::UNDEFINED_OBJECT,
                        format!("type \"{name}\" does not exist"),
                        position,
                    ));
                }
            }
        }
        other => {
            let name = other.to_string().to_lowercase();
            return Err(unsupported(format!("type {name}"), position));
        }
    })
}

/// Whether `written` is CHAR without a length, which is not CHAR(1).
pub(super) fn is_bpchar(written: &Written) -> bool {
    let Written::Custom(name, modifiers) = written else {
        return false;
    };
    let named = qualified(name, None);
    let schema_is_own = |schema: Option<String>| schema.is_none_or(|schema| schema == "pg_catalog");
    modifiers.is_empty()
        && named.is_ok_and(|(schema, name)| name == "bpchar" && schema_is_own(schema))
}

/// The schema of a type's name, if it was written, and the name.
fn qualified(name: &ObjectName, position: Position) -> Result<(Option<String>, String)> {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    let is_char =
        |ident: &&sqlparser::ast::Ident| ident.quote_style.is_some() && ident.value == "char";
    match parts.collect::<Vec<_>>().as_slice() {
        // With quotes it is another type than CHAR.
        [.., last] if is_char(last) => Ok((None, "\"char\"".to_owned())),
        [schema, name] => Ok((Some(name_of(schema)), name_of(name))),
        [name] => Ok((None, name_of(name))),
        _ => Err(unsupported("a type of another database", position)),
    }
}

/// The type with this name in the catalog, or in `information_schema`.
fn of_schema(schema: Option<&str>, name: &str) -> Option<DataType> {
    match (schema, name) {
        (Some("information_schema"), "sql_identifier") => Some(DataType::NAME),
        (Some("information_schema"), "cardinal_number") => Some(DataType::Integer),
        (Some("information_schema"), "character_data") => Some(DataType::VarChar(None)),
        (Some("information_schema"), "yes_or_no") => Some(DataType::VarChar(Some(3))),
        (Some("information_schema"), "time_stamp") => Some(DataType::TIMESTAMPTZ),
        (None | Some("pg_catalog"), "\"char\"") => Some(DataType::Catalog(CatalogType::Char)),
        (None, "bpchar" | "char") => None,
        (None | Some("pg_catalog"), name) => type_named(name),
        _ => None,
    }
}

/// The digits of a second that a type was written with: at most six, as in PostgreSQL, which warns
/// of more.
pub(super) fn digits_of_seconds(written: Option<u64>) -> Option<u8> {
    written.map(|digits| u8::try_from(digits.min(6)).unwrap_or(6))
}

fn numeric(info: &ExactNumberInfo, position: Position) -> Result<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(DataType::NUMERIC),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let invalid = |message: String| fail(SqlState::INVALID_PARAMETER_VALUE, message, position);
    if !(1..=1000).contains(&precision) {
        return Err(invalid(format!(
            "NUMERIC precision {precision} must be between 1 and 1000"
        )));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(invalid(format!(
            "NUMERIC scale {scale} must be between -1000 and 1000"
        )));
    }
    Ok(DataType::numeric(precision as u16, scale as i16))
}

fn character_length(
    length: &Option<CharacterLength>,
    name: &str,
    position: Position,
) -> Result<Option<u32>> {
    let invalid = |message: String| fail(SqlState::INVALID_PARAMETER_VALUE, message, position);
    match length {
        None => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => match length {
            0 => Err(invalid(format!(
                "length for type {name} must be at least 1"
            ))),
            length if *length > LENGTH_MAX => Err(invalid(format!(
                "length for type {name} cannot exceed {LENGTH_MAX}"
            ))),
            length => Ok(Some(*length as u32)),
        },
        Some(CharacterLength::Max) => Err(unsupported(format!("{name}(max)"), position)),
    }
}

/// Whether both are one type apart from length, precision and scale.
pub(super) fn same_base(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::Char(_), DataType::Char(_)) => true,
        (DataType::Array(left), DataType::Array(right)) => same_base(left, right),
        _ => left.without_modifier() == right.without_modifier(),
    }
}

/// The error for a domain where a type of its own is needed.
#[cold]
pub(super) fn misplaced(name: &str, position: Position) -> Error {
    let message = format!("a domain ({name}) in this place is not supported");
    fail(SqlState::FEATURE_NOT_SUPPORTED, message, position)
}
