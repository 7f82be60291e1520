//! Builtin functions: a table of signatures for each subject, and what computes them.

mod array;
mod array_search;
mod bits;
pub(super) mod cast;
pub(super) mod cast_array;
mod catalog;
mod datetime;
mod digest;
mod enumeration;
mod extensions;
mod format;
mod hash;
pub(super) mod in_range;
mod json;
mod json_build;
mod json_change;
mod json_path;
mod json_record;
mod json_rows;
mod math;
mod notation;
mod pattern;
mod random;
mod regex;
pub(super) mod regression;
mod row;
mod series;
pub(super) mod spread;
pub(super) mod statistics;
mod string;
mod to_char_number;
mod to_number;
mod trigonometry;

use kiln_procedure::ir::ScalarFunction;
use kiln_procedure::number::product_work;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, DataType, Decimal, Number};

use super::Position;
use super::bound::{Bound, SESSION_STYLE};
use super::constant::call;
use crate::catalog::CatalogCall;

pub(crate) use super::quoting::quote_identifier;
pub(crate) use array::array_set;
pub(super) use array::{
    any_of, array_append, array_concat, array_prepend, array_set_in_row, array_set_slice,
    array_slice, construct_array, extreme, order_of, sorted_texts, sorted_values,
};
pub(super) use array_search::{
    array_contains, array_overlaps, array_position, array_positions, array_remove, array_replace,
};
pub(crate) use cast::Named;
pub(super) use catalog::{partition_ancestors, takes_role};
pub(super) use datetime::{MOMENT_IN_ZONE, date_operator, extract, interval_negate, reads_style};
pub(super) use enumeration::{ENUM_TO_TEXT, TEXT_TO_ENUM, range as enum_range};
pub(super) use json::{TEXT_TO_JSON, TEXT_TO_JSONB, compare_jsonb, from_jsonb};
pub(super) use json_build::{
    ROWS_TO_JSON, build_array, build_object, json_of, json_of_row, listed, on_a_line, pair,
};
pub(super) use json_change::JSONB_WITH_PART;
pub(super) use json_path::TEXT_TO_JSONPATH;
pub(super) use json_record::JSON_FIELDS;
pub(super) use json_rows::{JsonRows, json_rows};
pub(super) use math::{double_negate, integer_operator, power};
pub(super) use notation::ARRAY_FILL;
pub(super) use regex::{regex_match, similar_to};
pub(super) use row::{
    ROW, ROW_FIELD, ROW_IS_NOT_NULL, ROW_IS_NULL, ROW_TO_ROW, ROW_TO_TEXT, ROW_UNLESS_NULL,
    TEXT_TO_ROW,
};
pub(super) use series::series;
pub(super) use string::{bytea_concat, like};

/// The most bytes that one call may produce.
const RESULT_BYTES_MAX: usize = 0x3fff_ffff;

/// Refuses results that are too large.
///
/// # Errors
/// 54000.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes > RESULT_BYTES_MAX {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "requested length too large",
        ));
    }
    Ok(())
}

/// A type in a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    Int2,
    Int4,
    Int8,
    Numeric,
    Real,
    Double,
    Boolean,
    Text,
    Bytea,
    Date,
    Timestamp,
    TimestampTz,
    Time,
    Uuid,
    Interval,
    /// An array of one type, and…
    AnyArray,
    /// …that type.
    AnyElement,
    TextArray,
    /// Arrays of texts, each of them a row.
    TextArrays,
    NameArray,
    JsonbArray,
    /// A type of the catalogs.
    Catalog(CatalogType),
    /// The rest of the arguments, as they are printed.
    AnyText,
}

impl Ty {
    pub(super) fn data_type(self) -> DataType {
        match self {
            Ty::Int2 => DataType::SmallInt,
            Ty::Int4 => DataType::Integer,
            Ty::Int8 => DataType::BigInt,
            Ty::Numeric => DataType::NUMERIC,
            Ty::Real => DataType::REAL,
            Ty::Double => DataType::Double,
            Ty::Boolean => DataType::Boolean,
            Ty::Text | Ty::AnyText | Ty::AnyArray | Ty::AnyElement => DataType::Text,
            Ty::Bytea => DataType::Bytea,
            Ty::Date => DataType::Date,
            Ty::Timestamp => DataType::TIMESTAMP,
            Ty::TimestampTz => DataType::TIMESTAMPTZ,
            Ty::Time => DataType::TIME,
            Ty::Uuid => DataType::Uuid,
            Ty::Interval => DataType::INTERVAL,
            Ty::TextArray => DataType::array(DataType::Text),
            Ty::TextArrays => DataType::array(DataType::array(DataType::Text)),
            Ty::JsonbArray => DataType::array(DataType::JSONB),
            Ty::NameArray => DataType::array(DataType::NAME),
            Ty::Catalog(catalog) => DataType::Catalog(catalog),
        }
    }

    pub(super) fn is_polymorphic(self) -> bool {
        matches!(self, Ty::AnyArray | Ty::AnyElement | Ty::AnyText)
    }
}

/// One signature of a builtin.
#[derive(Clone, Copy)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) arguments: &'static [Ty],
    pub(super) result: Ty,
    pub(super) function: Function,
    pub(super) volatile: bool,
}

/// What computes a builtin.
#[derive(Clone, Copy)]
pub(super) enum Function {
    Scalar(ScalarFunction),
    Catalog(CatalogCall),
}

/// Declares the signatures of a subject.
macro_rules! signatures {
    ($($name:literal ($($argument:ident),*) -> $result:ident = $named:expr;)*) => {
        pub(super) static SIGNATURES: &[$crate::compile::functions::Signature] = &[
            $($crate::compile::functions::Signature {
                name: $name,
                arguments: &[$($crate::compile::functions::Ty::$argument),*],
                result: $crate::compile::functions::Ty::$result,
                function: $crate::compile::functions::Function::Scalar($named.1),
                volatile: false,
            }),*
        ];
    };
}
use signatures;

pub(super) fn candidates(name: &str) -> Vec<Signature> {
    [
        math::SIGNATURES,
        string::SIGNATURES,
        bits::SIGNATURES,
        trigonometry::SIGNATURES,
        datetime::SIGNATURES,
        array::SIGNATURES,
        format::SIGNATURES,
        to_char_number::SIGNATURES,
        catalog::SIGNATURES,
        regex::SIGNATURES,
        digest::SIGNATURES,
        hash::SIGNATURES,
        json::SIGNATURES,
        json_change::SIGNATURES,
        json_path::SIGNATURES,
        to_number::SIGNATURES,
        notation::SIGNATURES,
        extensions::SIGNATURES,
        extensions::VOLATILE,
    ]
    .into_iter()
    .flatten()
    .filter(|signature| signature.name == name)
    .copied()
    .chain((name == "gen_random_uuid").then_some(Signature {
        name: "gen_random_uuid",
        arguments: &[],
        result: Ty::Uuid,
        function: Function::Scalar(random::GEN_RANDOM_UUID),
        volatile: true,
    }))
    .chain((name == "random").then_some(Signature {
        name: "random",
        arguments: &[],
        result: Ty::Double,
        function: Function::Scalar(random::RANDOM),
        volatile: true,
    }))
    .chain((name == "clock_timestamp").then_some(Signature {
        name: "clock_timestamp",
        arguments: &[],
        result: Ty::TimestampTz,
        function: Function::Scalar(datetime::CLOCK),
        volatile: true,
    }))
    .collect()
}

/// What SQL calls now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Now {
    /// When the transaction began.
    Transaction,
    /// When the client's statement did.
    Statement,
}

/// The time as a TIMESTAMPTZ; not to be folded.
pub(super) const fn clock(now: Now) -> Named {
    match now {
        Now::Transaction => ("now", datetime::TRANSACTION_CLOCK),
        Now::Statement => ("statement_timestamp", datetime::CLOCK),
    }
}

/// The style of the session that calls; not to be folded.
pub(super) const STYLE: Named = (SESSION_STYLE, datetime::STYLE);

/// Whether there is a builtin called `name`.
pub(super) fn exists(name: &str) -> bool {
    !candidates(name).is_empty()
}

/// The integer of an argument as the 32 bits that SQL's INTEGER has.
fn int4(slot: Slot) -> i32 {
    slot.as_i64() as i32
}

/// How many multiplications of the result's length a root, a logarithm, an exponential or a power
/// goes through, for [`Heap::spend`].
const TERMS: usize = 128;

/// A function of a NUMERIC: in two words where argument and result have so few digits.
fn of_number(
    heap: &mut Heap,
    value: Slot,
    short: impl FnOnce(Decimal) -> Result<Decimal>,
    long: impl FnOnce(&Number) -> Result<Number>,
) -> Result<Slot> {
    if !value.is_long()
        && let Ok(result) = short(value.as_decimal())
    {
        return Ok(Slot::from_decimal(result));
    }
    heap.spend(product_work(value, value))?;
    let result = long(&heap.number(value))?;
    let result = heap.push_number(&result);
    heap.spend(product_work(result, result).saturating_mul(TERMS))?;
    Ok(result)
}

/// The same of two NUMERICs.
fn of_numbers(
    heap: &mut Heap,
    left: Slot,
    right: Slot,
    short: impl FnOnce(Decimal, Decimal) -> Result<Decimal>,
    long: impl FnOnce(&Number, &Number) -> Result<Number>,
) -> Result<Slot> {
    if !Slot::either_long(left, right)
        && let Ok(result) = short(left.as_decimal(), right.as_decimal())
    {
        return Ok(Slot::from_decimal(result));
    }
    heap.spend(product_work(left, right))?;
    let result = long(&heap.number(left), &heap.number(right))?;
    let result = heap.push_number(&result);
    heap.spend(product_work(result, result).saturating_mul(TERMS))?;
    Ok(result)
}

/// The part of a heap text that `part`, a slice of it, covers.
fn part_of(heap: &Heap, text: Slot, part: std::ops::Range<usize>) -> Slot {
    let (offset, length) = text.span();
    debug_assert!(
        part.end <= length,
        "part {part:?} of a text of {length} bytes"
    );
    let _ = heap;
    Slot::from_span((offset + part.start) as u32, (part.end - part.start) as u32)
}

/// Where `part`, a slice of `whole`, begins and ends in it.
fn range_in(whole: &str, part: &str) -> std::ops::Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    if start + part.len() <= whole.len() {
        start..start + part.len()
    } else {
        0..0
    }
}

/// A call with all arguments given, for binders of special syntax.
pub(super) fn direct(
    named: Named,
    operands: Vec<Bound>,
    data_type: DataType,
    position: Position,
) -> Bound {
    call(named, operands, data_type, position)
}
