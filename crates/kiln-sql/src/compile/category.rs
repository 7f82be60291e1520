//! PostgreSQL's categories of types, and the type that alternatives have in common.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{CatalogType, DataType, Representation};

use super::bound::{Bound, Kind};
use super::coerce::{CastContext, cast_context};
use super::types::same_base;
use super::{Position, fail};

/// PostgreSQL's type categories, as far as types of ours are in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Number,
    String,
    Boolean,
    DateTime,
    Timespan,
    Array,
    Enum,
    Composite,
    User,
}

pub(super) fn category(data_type: &DataType) -> Category {
    match data_type {
        DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Numeric { .. }
        | DataType::Double => Category::Number,
        DataType::Char(_) | DataType::VarChar(_) | DataType::Text => Category::String,
        DataType::Boolean => Category::Boolean,
        DataType::Date | DataType::Timestamp(_) | DataType::TimestampTz(_) | DataType::Time(_) => {
            Category::DateTime
        }
        DataType::Interval(_) => Category::Timespan,
        DataType::Array(_) => Category::Array,
        DataType::Enum(_) => Category::Enum,
        DataType::Row(_) => Category::Composite,
        DataType::Bytea | DataType::Uuid => Category::User,
        DataType::Catalog(catalog) => match catalog {
            CatalogType::Name | CatalogType::Char | CatalogType::NodeTree => Category::String,
            CatalogType::Int2Vector | CatalogType::OidVector => Category::Array,
            CatalogType::Oid | CatalogType::Real => Category::Number,
            _ if catalog.representation() == Representation::Object => Category::Number,
            _ => Category::User,
        },
    }
}

/// Whether PostgreSQL prefers the type within its category.
pub(super) fn is_preferred(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Double
            | DataType::Text
            | DataType::Boolean
            | DataType::TimestampTz(_)
            | DataType::Interval(_)
            | DataType::Catalog(CatalogType::Oid)
    )
}

/// The type that CASE, COALESCE, UNION and the like give their alternatives. Arguments whose type
/// is open follow the others.
///
/// # Errors
/// 42804 that names `what` when the types do not go together.
pub(super) fn common_type(
    what: &str,
    alternatives: &[&Bound],
    position: Position,
) -> Result<DataType> {
    let mut common: Option<DataType> = None;
    let mut exact = true;
    for bound in alternatives {
        if bound.is_unknown() {
            exact = exact && bound.is_null_literal();
            continue;
        }
        let next = &bound.data_type;
        let Some(known) = &common else {
            common = Some(next.clone());
            continue;
        };
        if known == next {
            continue;
        }
        exact = exact && same_base(known, next) && known == next;
        if same_base(known, next) {
            if let (DataType::Char(one), DataType::Char(other)) = (known, next) {
                common = Some(DataType::Char(*one.max(other)));
                exact = true;
            }
            continue;
        }
        if category(known) != category(next) {
            return Err(mismatch(what, known, next, position));
        }
        let forward = cast_context(known, next) == Some(CastContext::Implicit);
        let backward = cast_context(next, known) == Some(CastContext::Implicit);
        if !is_preferred(known) && forward && !backward {
            common = Some(next.clone());
        } else if !backward {
            return Err(mismatch(what, known, next, position));
        }
    }
    Ok(match common {
        None => DataType::Text,
        Some(data_type) if exact => data_type,
        // A literal that is longer is not cut: there is no CHAR without a length.
        Some(DataType::Char(length)) => {
            let fits = |bound: &&Bound| match &bound.kind {
                Kind::Unknown(Some(text)) => {
                    text.trim_end_matches(' ').chars().count() <= length as usize
                }
                _ => true,
            };
            match alternatives.iter().all(fits) {
                true => DataType::Char(length),
                false => DataType::Text,
            }
        }
        Some(data_type) => data_type.without_modifier(),
    })
}

fn mismatch(what: &str, left: &DataType, right: &DataType, position: Position) -> Error {
    let (left, right) = (left.base_name(), right.base_name());
    fail(
        SqlState::DATATYPE_MISMATCH,
        format!("{what} types {left} and {right} cannot be matched"),
        position,
    )
}

/// `operator does not exist: …`, 42883.
#[cold]
pub(super) fn no_operator(symbol: &str, left: &Bound, right: &Bound, position: Position) -> Error {
    fail(
        SqlState::UNDEFINED_FUNCTION,
        format!(
            "operator does not exist: {} {symbol} {}",
            left.type_name(),
            right.type_name()
        ),
        position,
    )
    .with_hint(
        "No operator matches the given name and argument types. You might need to add explicit \
         type casts.",
    )
}
