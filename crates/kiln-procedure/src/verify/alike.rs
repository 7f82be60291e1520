//! Which types can stand for each other.

use kiln_storage::types::{DataType, Representation, Value};

/// Whether a slot of type `from` can stand where `to` is expected: one representation, and every
/// value of the one is a value of the other but for lengths, precisions and scales.
pub(super) fn assignable(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    match (from, to) {
        (T::SmallInt, T::SmallInt | T::Integer | T::BigInt) => true,
        (T::Integer, T::Integer | T::BigInt) | (T::BigInt, T::BigInt) => true,
        (T::Timestamp(_) | T::TimestampTz(_), T::Timestamp(_) | T::TimestampTz(_)) => true,
        (T::Array(from), T::Array(to)) => assignable(from, to),
        (T::Catalog(catalog), T::BigInt) => catalog.representation() == Representation::Number,
        (T::SmallInt | T::Integer | T::BigInt, T::Catalog(catalog)) => {
            catalog.representation() == Representation::Number
        }
        _ => same_family(from, to) && !from.is_integer(),
    }
}

/// Whether a value names an object, of whatever kind, and the type is one of objects.
pub(super) fn names_objects(value: &Value, data_type: &DataType) -> bool {
    let is_of_objects = matches!(
        data_type,
        DataType::Catalog(catalog) if catalog.representation() == Representation::Object
    );
    is_of_objects && matches!(value, Value::Object(_))
}

/// Whether two types have one representation and compare with each other.
pub(super) fn same_family(left: &DataType, right: &DataType) -> bool {
    use DataType as T;
    match (left, right) {
        (T::Array(left), T::Array(right)) => same_family(left, right),
        (T::Catalog(_), _) | (_, T::Catalog(_)) => {
            let plain = |data_type: &DataType| plain(data_type).unwrap_or(data_type.clone());
            match (plain(left), plain(right)) {
                (T::Catalog(left), T::Catalog(right)) => left == right,
                (left, right) => same_family(&left, &right),
            }
        }
        (T::Timestamp(_) | T::TimestampTz(_), T::Timestamp(_) | T::TimestampTz(_)) => true,
        _ => {
            left.is_integer() && right.is_integer()
                || left.is_string() && right.is_string()
                || left.without_modifier() == right.without_modifier()
        }
    }
}

/// The type whose representation a type of the catalogs has, if it has that of another one.
fn plain(data_type: &DataType) -> Option<DataType> {
    let DataType::Catalog(catalog) = data_type else {
        return None;
    };
    match catalog.representation() {
        Representation::Number => Some(DataType::BigInt),
        Representation::Text => Some(DataType::Text),
        Representation::Double => Some(DataType::Double),
        Representation::Vector => catalog.element().map(DataType::array),
        Representation::Object => None,
    }
}
