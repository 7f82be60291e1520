//! Values as clients write and read them: PostgreSQL's types by number, and their text and binary
//! formats.

mod binary;
mod text;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{CatalogType, DataType};

pub use binary::{decode_binary, encode_binary};
pub use text::{decode_text, encode_text};

/// Types with their numbers, those of their arrays, and the bytes of a value, or -1 where they vary
/// (`pg_type.dat` of PostgreSQL's sources).
const TYPES: &[(DataType, u32, u32, i16)] = &[
    (DataType::Boolean, 16, 1000, 1),
    (DataType::Bytea, 17, 1001, -1),
    (DataType::BigInt, 20, 1016, 8),
    (DataType::SmallInt, 21, 1005, 2),
    (DataType::Integer, 23, 1007, 4),
    (DataType::Text, 25, 1009, -1),
    (DataType::Double, 701, 1022, 8),
    (DataType::Char(1), 1042, 1014, -1),
    (DataType::VarChar(None), 1043, 1015, -1),
    (DataType::Date, 1082, 1182, 4),
    (DataType::TIME, 1083, 1183, 8),
    (DataType::TIMESTAMP, 1114, 1115, 8),
    (DataType::TIMESTAMPTZ, 1184, 1185, 8),
    (DataType::INTERVAL, 1186, 1187, 16),
    (DataType::NUMERIC, 1700, 1231, -1),
    (DataType::Uuid, 2950, 2951, 16),
];

/// "unknown": the type of a literal, which is to be inferred.
const UNKNOWN: u32 = 705;

fn known(data_type: &DataType) -> Option<&'static (DataType, u32, u32, i16)> {
    let is_same =
        |known: &DataType| std::mem::discriminant(known) == std::mem::discriminant(data_type);
    TYPES.iter().find(|(known, ..)| is_same(known))
}

/// The number of a type.
pub fn oid(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Array(element) => match **element {
            DataType::Catalog(element) => element.array_oid(),
            DataType::Enum(ref element) => element.array_oid(),
            DataType::Row(ref element) => element.array_oid(),
            _ => known(element).map_or(UNKNOWN, |(_, _, array, _)| *array),
        },
        DataType::Catalog(catalog) => catalog.oid(),
        DataType::Enum(of) => of.oid(),
        DataType::Row(of) => of.oid(),
        _ => known(data_type).map_or(UNKNOWN, |(_, oid, ..)| *oid),
    }
}

/// The bytes that a value of the type has, or -1 where they vary.
pub fn type_length(data_type: &DataType) -> i16 {
    match data_type {
        DataType::Catalog(catalog) => catalog.length(),
        // PostgreSQL has the number of the label, which no client sees.
        DataType::Enum(_) => 4,
        _ => known(data_type).map_or(-1, |(.., length)| *length),
    }
}

/// The type that a client declares a parameter of, of those that PostgreSQL has; `None` where it is
/// to be inferred.
///
/// # Errors
/// 42704 for a number that is no type here.
pub fn parameter_type(oid: u32) -> Result<Option<DataType>> {
    if matches!(oid, 0 | UNKNOWN) {
        return Ok(None);
    }
    if oid == CatalogType::Void.oid() {
        return Ok(Some(DataType::Catalog(CatalogType::Void)));
    }
    for catalog in CatalogType::ALL {
        if catalog.oid() == oid {
            return Ok(Some(DataType::Catalog(catalog)));
        }
        if catalog.array_oid() == oid {
            return Ok(Some(DataType::array(DataType::Catalog(catalog))));
        }
    }
    for (data_type, own, array, _) in TYPES {
        // What a parameter of CHAR has is not cut or padded.
        let data_type = match data_type {
            DataType::Char(_) => &DataType::Text,
            other => other,
        };
        if *own == oid {
            return Ok(Some(data_type.clone()));
        }
        if *array == oid {
            return Ok(Some(DataType::array(data_type.clone())));
        }
    }
    let message = format!("type with OID {oid} does not exist");
    Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_numbers() {
        for (data_type, oid_of, array, _) in TYPES {
            assert_eq!(oid(data_type), *oid_of);
            assert_eq!(oid(&DataType::array(data_type.clone())), *array);
            let back = parameter_type(*oid_of).expect("it is one");
            if !matches!(data_type, DataType::Char(_)) {
                assert_eq!(back.as_ref(), Some(data_type));
            }
        }
        for catalog in CatalogType::ALL.map(DataType::Catalog) {
            assert_eq!(parameter_type(oid(&catalog)), Ok(Some(catalog)));
        }
        assert_eq!(parameter_type(0), Ok(None));
        let void = DataType::Catalog(CatalogType::Void);
        assert_eq!(parameter_type(oid(&void)), Ok(Some(void)));
        assert!(parameter_type(99_999).is_err());
        assert_eq!(DataType::Char(10).modifier(), 14);
        let money = DataType::Numeric {
            precision_scale: Some((12, 2)),
        };
        assert_eq!((money.modifier(), type_length(&money)), (786_438, -1));
    }
}
