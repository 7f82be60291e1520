//! The types of columns and expressions, named as PostgreSQL names them.

use std::fmt;
use std::str::FromStr;

use kiln_platform::sync::Arc;

use super::{CatalogType, EnumType, Representation, RowType};

/// The type of a column or an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// SMALLINT, 16 bits signed.
    SmallInt,
    /// INTEGER, 32 bits signed.
    Integer,
    /// BIGINT, 64 bits signed.
    BigInt,
    /// NUMERIC; with a precision (digits in all) and a scale (digits after the point) it is
    /// rounded and checked when stored.
    Numeric {
        /// Precision and scale as declared; `None` keeps each value's own scale.
        precision_scale: Option<(u16, i16)>,
    },
    /// DOUBLE PRECISION, IEEE 754 binary64.
    Double,
    /// BOOLEAN.
    Boolean,
    /// CHAR(n): at most n characters, held without trailing blanks, padded when printed.
    Char(u32),
    /// VARCHAR(n), or VARCHAR without a limit: at most n characters.
    VarChar(Option<u32>),
    /// TEXT.
    Text,
    /// BYTEA, a string of bytes.
    Bytea,
    /// DATE, days since 2000-01-01.
    Date,
    /// TIMESTAMP WITHOUT TIME ZONE, microseconds since 2000-01-01 00:00; with the digits of a
    /// second to which it is rounded when stored.
    Timestamp(Option<u8>),
    /// TIMESTAMP WITH TIME ZONE, microseconds since 2000-01-01 00:00 UTC; with digits as TIMESTAMP.
    TimestampTz(Option<u8>),
    /// TIME WITHOUT TIME ZONE, microseconds since midnight; with digits as TIMESTAMP.
    Time(Option<u8>),
    /// UUID, 16 bytes.
    Uuid,
    /// INTERVAL: months, days and microseconds; with digits as TIMESTAMP.
    Interval(Option<u8>),
    /// A one-dimensional array whose first element has the number 1.
    Array(Box<DataType>),
    /// An enum: labels that users name.
    Enum(Arc<EnumType>),
    /// Rows: a composite type, the rows of a table, or a record.
    Row(Arc<RowType>),
    /// A type whose values are those of another one; most are types of expressions, not of columns.
    Catalog(CatalogType),
}

/// What values of a type keep in the heap, apart from their slots; see
/// [`DataType::out_of_line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfLine {
    /// Nothing.
    Nothing,
    /// The digits of the numbers that no slot has room for; their slots say which those are.
    LongNumbers,
    /// All of the value, as bytes.
    Bytes,
    /// The elements, which are slots themselves.
    Elements,
}

impl DataType {
    /// NUMERIC without precision and scale.
    pub const NUMERIC: DataType = DataType::Numeric {
        precision_scale: None,
    };

    /// TIMESTAMP WITHOUT TIME ZONE, to the microsecond.
    pub const TIMESTAMP: DataType = DataType::Timestamp(None);

    /// TIMESTAMP WITH TIME ZONE, to the microsecond.
    pub const TIMESTAMPTZ: DataType = DataType::TimestampTz(None);

    /// TIME WITHOUT TIME ZONE, to the microsecond.
    pub const TIME: DataType = DataType::Time(None);

    /// INTERVAL, to the microsecond.
    pub const INTERVAL: DataType = DataType::Interval(None);

    /// OID, the number of an object.
    pub const OID: DataType = DataType::Catalog(CatalogType::Oid);

    /// JSON, as it was written.
    pub const JSON: DataType = DataType::Catalog(CatalogType::Json);

    /// JSONB.
    pub const JSONB: DataType = DataType::Catalog(CatalogType::Jsonb);

    /// REAL, IEEE 754 binary32, held as a DOUBLE PRECISION.
    pub const REAL: DataType = DataType::Catalog(CatalogType::Real);

    /// NAME, a text of at most 63 bytes.
    pub const NAME: DataType = DataType::Catalog(CatalogType::Name);

    /// NUMERIC(precision, scale).
    pub const fn numeric(precision: u16, scale: i16) -> DataType {
        DataType::Numeric {
            precision_scale: Some((precision, scale)),
        }
    }

    /// The array type with this element.
    pub fn array(element: DataType) -> DataType {
        DataType::Array(Box::new(element))
    }

    /// Whether a table's column can have this type.
    pub fn is_storable(&self) -> bool {
        match self {
            DataType::Array(element) => {
                !matches!(**element, DataType::Array(_)) && element.is_storable()
            }
            DataType::Row(of) => !of.is_record(),
            DataType::Catalog(catalog) => catalog.is_storable(),
            _ => true,
        }
    }

    /// The type that rows have in a column of this type: arrays lie in them as bytes, see
    /// [`Packing`](crate::slot::Packing).
    pub fn in_rows(&self) -> &DataType {
        match self {
            DataType::Array(_) => &DataType::Bytea,
            other => other,
        }
    }

    /// What values of the type keep in the heap.
    pub fn out_of_line(&self) -> OutOfLine {
        match self {
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Double
            | DataType::Boolean
            | DataType::Date
            | DataType::Timestamp(_)
            | DataType::TimestampTz(_)
            | DataType::Time(_)
            | DataType::Enum(_) => OutOfLine::Nothing,
            DataType::Numeric { .. } => OutOfLine::LongNumbers,
            DataType::Char(_)
            | DataType::VarChar(_)
            | DataType::Text
            | DataType::Bytea
            | DataType::Uuid
            | DataType::Interval(_)
            | DataType::Row(_) => OutOfLine::Bytes,
            DataType::Array(_) => OutOfLine::Elements,
            DataType::Catalog(catalog) => match catalog.representation() {
                Representation::Number | Representation::Double => OutOfLine::Nothing,
                Representation::Text | Representation::Object => OutOfLine::Bytes,
                Representation::Vector => OutOfLine::Elements,
            },
        }
    }

    /// SMALLINT, INTEGER or BIGINT.
    pub fn is_integer(&self) -> bool {
        matches!(
            self,
            DataType::SmallInt | DataType::Integer | DataType::BigInt
        )
    }

    /// An integer type, NUMERIC or DOUBLE PRECISION.
    pub fn is_number(&self) -> bool {
        self.is_integer() || matches!(self, DataType::Numeric { .. } | DataType::Double)
    }

    /// CHAR, VARCHAR, TEXT, or a type of the catalogs whose values are used as texts.
    pub fn is_string(&self) -> bool {
        match self {
            DataType::Char(_) | DataType::VarChar(_) | DataType::Text => true,
            DataType::Catalog(catalog) => catalog.is_string(),
            _ => false,
        }
    }

    /// The type of the elements of an array, or of a vector.
    pub fn element(&self) -> Option<DataType> {
        match self {
            DataType::Array(element) => Some((**element).clone()),
            DataType::Catalog(catalog) => catalog.element(),
            _ => None,
        }
    }

    /// DATE, TIMESTAMP or TIMESTAMPTZ.
    pub fn is_datetime(&self) -> bool {
        matches!(
            self,
            DataType::Date | DataType::Timestamp(_) | DataType::TimestampTz(_)
        )
    }

    /// The type without length, precision and scale: what decides which operator applies.
    #[must_use]
    pub fn without_modifier(&self) -> DataType {
        match self {
            DataType::Numeric { .. } => DataType::NUMERIC,
            DataType::VarChar(_) => DataType::VarChar(None),
            DataType::Timestamp(_) => DataType::TIMESTAMP,
            DataType::TimestampTz(_) => DataType::TIMESTAMPTZ,
            DataType::Time(_) => DataType::TIME,
            DataType::Interval(_) => DataType::INTERVAL,
            DataType::Array(element) => DataType::array(element.without_modifier()),
            other => other.clone(),
        }
    }

    /// What it was declared with, as PostgreSQL keeps it (`atttypmod`), or -1.
    pub fn modifier(&self) -> i32 {
        // PostgreSQL counts the four bytes of a length before it.
        let length = |length: u32| i32::try_from(length).map_or(-1, |it| it.saturating_add(4));
        match self {
            DataType::Char(u32::MAX) => -1,
            DataType::Char(limit) | DataType::VarChar(Some(limit)) => length(*limit),
            DataType::Numeric {
                precision_scale: Some((precision, scale)),
            } => (i32::from(*precision) << 16 | i32::from(*scale) & 0x7ff) + 4,
            DataType::Array(element) => element.modifier(),
            // Above the digits it says of which fields the interval may be: of all.
            DataType::Interval(Some(digits)) => 0x7fff << 16 | i32::from(*digits),
            _ => self.digits_of_seconds().map_or(-1, i32::from),
        }
    }

    /// The digits of a second to which values of a time, timestamp or interval are rounded, if it
    /// was declared with a number of them.
    pub fn digits_of_seconds(&self) -> Option<u8> {
        match self {
            DataType::Timestamp(digits)
            | DataType::TimestampTz(digits)
            | DataType::Time(digits)
            | DataType::Interval(digits) => *digits,
            _ => None,
        }
    }

    /// The enum that it is, or of which it is an array.
    pub fn enumeration(&self) -> Option<&Arc<EnumType>> {
        match self {
            DataType::Enum(of) => Some(of),
            DataType::Array(element) => element.enumeration(),
            _ => None,
        }
    }

    /// The type of rows that it is, or of which it is an array.
    pub fn row(&self) -> Option<&Arc<RowType>> {
        match self {
            DataType::Row(of) => Some(of),
            DataType::Array(element) => element.row(),
            _ => None,
        }
    }

    /// The type with other labels and another name, where it is the enum `of` or an array of it.
    #[must_use]
    pub fn with_enumeration(&self, of: &Arc<EnumType>) -> DataType {
        match self {
            DataType::Enum(known) if known == of => DataType::Enum(of.clone()),
            DataType::Array(element) => DataType::array(element.with_enumeration(of)),
            other => other.clone(),
        }
    }

    /// A text that says all of the type, from which [`FromStr`] makes it again: its name, of an
    /// enum the labels, of a row the fields too.
    pub fn described(&self) -> String {
        match self {
            DataType::Enum(of) => of.to_string(),
            DataType::Row(of) => of.to_string(),
            DataType::Array(element) => format!("{}[]", element.described()),
            other => other.to_string(),
        }
    }

    /// PostgreSQL's name without length, precision and scale, as its error messages use it.
    pub fn base_name(&self) -> &str {
        match self {
            DataType::SmallInt => "smallint",
            DataType::Integer => "integer",
            DataType::BigInt => "bigint",
            DataType::Numeric { .. } => "numeric",
            DataType::Double => "double precision",
            DataType::Boolean => "boolean",
            DataType::Char(_) => "character",
            DataType::VarChar(_) => "character varying",
            DataType::Text => "text",
            DataType::Bytea => "bytea",
            DataType::Date => "date",
            DataType::Timestamp(_) => "timestamp without time zone",
            DataType::TimestampTz(_) => "timestamp with time zone",
            DataType::Time(_) => "time without time zone",
            DataType::Uuid => "uuid",
            DataType::Interval(_) => "interval",
            DataType::Array(element) => match **element {
                DataType::SmallInt => "smallint[]",
                DataType::Integer => "integer[]",
                DataType::BigInt => "bigint[]",
                DataType::Numeric { .. } => "numeric[]",
                DataType::Double => "double precision[]",
                DataType::Boolean => "boolean[]",
                DataType::Char(_) => "character[]",
                DataType::VarChar(_) => "character varying[]",
                DataType::Text => "text[]",
                DataType::Bytea => "bytea[]",
                DataType::Date => "date[]",
                DataType::Timestamp(_) => "timestamp without time zone[]",
                DataType::TimestampTz(_) => "timestamp with time zone[]",
                DataType::Time(_) => "time without time zone[]",
                DataType::Uuid => "uuid[]",
                DataType::Interval(_) => "interval[]",
                DataType::Array(_) => "array",
                DataType::Enum(ref element) => element.printed_array(),
                DataType::Row(ref element) => element.printed_array(),
                DataType::Catalog(element) => element.array_name(),
            },
            DataType::Enum(of) => of.printed(),
            DataType::Row(of) => of.printed(),
            DataType::Catalog(catalog) => catalog.name(),
        }
    }
}

impl fmt::Display for DataType {
    /// The name that PostgreSQL's `format_type` prints, for instance `numeric(12,2)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Numeric {
                precision_scale: Some((precision, scale)),
            } => {
                write!(f, "numeric({precision},{scale})")
            }
            // That of a literal or parameter: no length is known.
            DataType::Char(u32::MAX) => f.write_str("character"),
            DataType::Char(length) => write!(f, "character({length})"),
            DataType::VarChar(Some(length)) => write!(f, "character varying({length})"),
            DataType::Timestamp(Some(digits)) => write!(f, "timestamp({digits}) without time zone"),
            DataType::TimestampTz(Some(digits)) => write!(f, "timestamp({digits}) with time zone"),
            DataType::Time(Some(digits)) => write!(f, "time({digits}) without time zone"),
            DataType::Interval(Some(digits)) => write!(f, "interval({digits})"),
            DataType::Array(element) => write!(f, "{element}[]"),
            other => f.write_str(other.base_name()),
        }
    }
}

/// The type that [`DataType`] prints as this name, or [`DataType::described`] describes so; the
/// error is that there is none.
impl FromStr for DataType {
    type Err = ();

    fn from_str(name: &str) -> Result<DataType, ()> {
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
        if let Some(element) = name.strip_suffix("[]") {
            return element.parse().map(DataType::array);
        }
        if name.starts_with("enum ") {
            let read = EnumType::read(name).ok_or(())?;
            return Ok(DataType::Enum(Arc::new(read)));
        }
        if name.starts_with("row ") {
            let read = RowType::read(name).ok_or(())?;
            return Ok(DataType::Row(Arc::new(read)));
        }
        if let Some(plain) = PLAIN.iter().find(|known| known.base_name() == name) {
            return Ok(plain.clone());
        }
        let mut catalogs = CatalogType::ALL.into_iter();
        if let Some(known) = catalogs.find(|known| known.name() == name) {
            return Ok(DataType::Catalog(known));
        }
        let (base, modifier) = name.split_once('(').ok_or(())?;
        if let Some((digits, rest)) = modifier.split_once(") ") {
            let digits = digits.parse::<u8>().map_err(drop)?;
            return match (base, rest) {
                ("timestamp", "without time zone") => Ok(DataType::Timestamp(Some(digits))),
                ("timestamp", "with time zone") => Ok(DataType::TimestampTz(Some(digits))),
                ("time", "without time zone") => Ok(DataType::Time(Some(digits))),
                _ => Err(()),
            };
        }
        let modifier = modifier.strip_suffix(')').ok_or(())?;
        let length = || modifier.parse::<u32>().map_err(drop);
        match base {
            "character" => Ok(DataType::Char(length()?)),
            "character varying" => Ok(DataType::VarChar(Some(length()?))),
            "interval" => Ok(DataType::Interval(Some(modifier.parse().map_err(drop)?))),
            "numeric" => {
                let (precision, scale) = modifier.split_once(',').ok_or(())?;
                let precision = precision.parse::<u16>().map_err(drop)?;
                let scale = scale.parse::<i16>().map_err(drop)?;
                let is_valid = (1..=1000).contains(&precision) && (-1000..=1000).contains(&scale);
                match is_valid {
                    true => Ok(DataType::numeric(precision, scale)),
                    false => Err(()),
                }
            }
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_format_type() {
        for (data_type, name) in [
            (DataType::VarChar(Some(16)), "character varying(16)"),
            (DataType::VarChar(None), "character varying"),
            (
                DataType::Timestamp(Some(3)),
                "timestamp(3) without time zone",
            ),
            (
                DataType::TimestampTz(Some(0)),
                "timestamp(0) with time zone",
            ),
            (DataType::Time(Some(6)), "time(6) without time zone"),
            (DataType::Interval(Some(2)), "interval(2)"),
            (DataType::INTERVAL, "interval"),
            (DataType::Char(9), "character(9)"),
            (DataType::Char(u32::MAX), "character"),
            (DataType::numeric(12, 2), "numeric(12,2)"),
            (DataType::numeric(1000, -5), "numeric(1000,-5)"),
            (DataType::NUMERIC, "numeric"),
            (DataType::TIMESTAMP, "timestamp without time zone"),
            (DataType::TIMESTAMPTZ, "timestamp with time zone"),
            (DataType::array(DataType::numeric(4, 1)), "numeric(4,1)[]"),
            (DataType::array(DataType::Integer), "integer[]"),
            (DataType::NAME, "name"),
            (DataType::Catalog(CatalogType::Char), "\"char\""),
            (DataType::array(DataType::OID), "oid[]"),
        ] {
            assert_eq!(data_type.to_string(), name);
            assert_eq!(name.parse(), Ok(data_type));
        }
    }
    #[test]
    fn what_is_no_name_of_a_type_is_refused() {
        for name in [
            "",
            "int",
            "numeric(1)",
            "numeric(1001,1)",
            "numeric(0,0)",
            "character(",
            "text(3)",
            "[]",
        ] {
            assert_eq!(name.parse::<DataType>(), Err(()), "{name}");
        }
    }
}
