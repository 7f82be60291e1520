//! SQL types and values with PostgreSQL's semantics.
//!
//! | module | holds |
//! |---|---|
//! | [`decimal`] | NUMERIC in two words |
//! | [`number`] | NUMERIC of any length, NaN and the infinities |
//! | [`datetime`] | DATE, TIMESTAMP, TIMESTAMPTZ and INTERVAL |
//! | [`double`] | DOUBLE PRECISION in and out of text, and its order |
//! | `catalog` | types whose values are those of another type |
//! | [`enumeration`] | enums |
//! | [`row`] | rows as values |
//! | [`json`] | JSON and JSONB |
//! | [`bytes`] | values as bytes that name their types |
//! | [`text`] | LIKE, character functions, BYTEA and UUID |

pub mod bytes;
pub mod datetime;
pub mod decimal;
pub mod double;
pub mod enumeration;
pub mod json;
pub mod number;
pub mod row;
pub mod text;

mod catalog;
mod convert;
mod data_type;
mod parse;
mod style;
mod value;

pub use catalog::{CatalogType, ObjectName, Representation};
pub use convert::{FromRow, FromValue};
pub use data_type::{DataType, OutOfLine};
pub use datetime::Interval;
pub use decimal::Decimal;
pub use enumeration::{EnumLabel, EnumPosition, EnumType, EnumValue};
pub use number::Number;
pub use parse::{fit_text, parse_numeric, parse_value, parse_value_in, rescale_numeric};
pub use row::{RowField, RowType, RowValue};
pub use style::Style;
pub use value::{Value, format_value, format_value_in};

#[cfg(test)]
mod vector_tests;
