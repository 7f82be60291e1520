//! Builtin functions: a table of signatures for each subject, and PostgreSQL's rules for choosing
//! among them.

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
mod series;
pub(super) mod statistics;
mod string;
mod to_number;
mod trigonometry;

use kiln_procedure::ir::ScalarFunction;
use kiln_procedure::number::product_work;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{CatalogType, DataType, Decimal, Number};

use super::bound::{Bound, Builtin, Kind, Operation};
use super::category::{Category, category, is_preferred, same_base};
use super::coerce::{CastContext, call, coerce, converts_implicitly, operation};
use super::{Position, fail, unsupported};
use crate::catalog::{CatalogCall, is_missing_function};

pub(crate) use array::array_set;
pub(super) use array::{
    any_of, array_append, array_concat, array_prepend, array_set_in_row, array_slice,
    construct_array, extreme, order_of, sorted_texts, sorted_values,
};
pub(super) use array_search::{
    array_contains, array_overlaps, array_position, array_positions, array_remove, array_replace,
};
pub(crate) use cast::Named;
pub(super) use catalog::{partition_ancestors, takes_role};
pub(super) use datetime::{date_operator, extract, interval_negate};
pub(super) use enumeration::{ENUM_TO_TEXT, TEXT_TO_ENUM};
pub(super) use json::{TEXT_TO_JSON, TEXT_TO_JSONB, compare_jsonb, from_jsonb};
pub(super) use json_build::{
    build_array, build_object, json_of, json_of_row, listed, on_a_line, pair,
};
pub(super) use json_path::TEXT_TO_JSONPATH;
pub(super) use json_record::JSON_FIELDS;
pub(super) use json_rows::{JsonRows, json_rows};
pub(super) use math::{double_negate, integer_operator, power};
pub(super) use notation::ARRAY_FILL;
pub(super) use regex::{regex_match, similar_to};
pub(super) use series::series;
pub(super) use string::{bytea_concat, like};
pub(crate) use string::{quote_identifier, quote_literal};

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
enum Ty {
    Int2,
    Int4,
    Int8,
    Numeric,
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
    fn data_type(self) -> DataType {
        match self {
            Ty::Int2 => DataType::SmallInt,
            Ty::Int4 => DataType::Integer,
            Ty::Int8 => DataType::BigInt,
            Ty::Numeric => DataType::NUMERIC,
            Ty::Double => DataType::Double,
            Ty::Boolean => DataType::Boolean,
            Ty::Text | Ty::AnyText | Ty::AnyArray | Ty::AnyElement => DataType::Text,
            Ty::Bytea => DataType::Bytea,
            Ty::Date => DataType::Date,
            Ty::Timestamp => DataType::TIMESTAMP,
            Ty::TimestampTz => DataType::TIMESTAMPTZ,
            Ty::Time => DataType::TIME,
            Ty::Uuid => DataType::Uuid,
            Ty::Interval => DataType::Interval,
            Ty::TextArray => DataType::array(DataType::Text),
            Ty::TextArrays => DataType::array(DataType::array(DataType::Text)),
            Ty::JsonbArray => DataType::array(DataType::JSONB),
            Ty::NameArray => DataType::array(DataType::NAME),
            Ty::Catalog(catalog) => DataType::Catalog(catalog),
        }
    }

    fn is_polymorphic(self) -> bool {
        matches!(self, Ty::AnyArray | Ty::AnyElement | Ty::AnyText)
    }
}

/// One signature of a builtin.
#[derive(Clone, Copy)]
struct Signature {
    name: &'static str,
    arguments: &'static [Ty],
    result: Ty,
    function: Function,
    volatile: bool,
}

/// What computes a builtin.
#[derive(Clone, Copy)]
enum Function {
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

fn candidates(name: &str) -> Vec<Signature> {
    [
        math::SIGNATURES,
        string::SIGNATURES,
        bits::SIGNATURES,
        trigonometry::SIGNATURES,
        datetime::SIGNATURES,
        array::SIGNATURES,
        format::SIGNATURES,
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

/// Whether there is a builtin called `name`.
pub(super) fn exists(name: &str) -> bool {
    !candidates(name).is_empty()
}

/// Binds a call of the builtin `name`.
///
/// # Errors
/// 42883 when there is none for these arguments, 42725 when there are several.
pub(super) fn bind(name: &str, arguments: Vec<Bound>, position: Position) -> Result<Bound> {
    if let Some(bound) = enumeration::bind(name, &arguments, position)? {
        return Ok(bound);
    }
    let all = candidates(name);
    let Some(signature) = choose(&all, &arguments) else {
        let is_ambiguous = all
            .iter()
            .filter(|signature| accepts(signature, &arguments))
            .nth(1)
            .is_some();
        return Err(no_function(name, &arguments, is_ambiguous, position));
    };
    let mut element = None;
    for (ty, argument) in signature.arguments.iter().zip(&arguments) {
        match (ty, argument.data_type.element()) {
            (Ty::AnyArray, Some(inner)) if !argument.is_unknown() => {
                element = Some(inner);
            }
            (Ty::AnyElement, _) if !argument.is_unknown() && element.is_none() => {
                element = Some(argument.data_type.clone());
            }
            _ => {}
        }
    }
    let element = element.unwrap_or(DataType::Text);
    let mut operands = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.into_iter().enumerate() {
        let ty = signature
            .arguments
            .get(index)
            .or(signature.arguments.last());
        let target = match ty {
            Some(Ty::AnyText) => {
                if let Kind::Parameter(parameter) = &argument.kind {
                    // Any type would do, so that none is decided.
                    parameter.leave_undecided(argument.position);
                    operands.push(Bound::null(DataType::Text, argument.position));
                    continue;
                }
                operands.push(super::coerce::to_output_text(argument)?);
                continue;
            }
            Some(Ty::AnyArray) => DataType::array(element.clone()),
            Some(Ty::AnyElement) => element.clone(),
            Some(ty) => ty.data_type(),
            None => continue,
        };
        operands.push(coerce(argument, &target, CastContext::Implicit)?);
    }
    let result = match signature.result {
        Ty::AnyArray => DataType::array(element),
        Ty::AnyElement => element,
        other => other.data_type(),
    };
    let call = match signature.function {
        Function::Scalar(function) => Operation::Call(Builtin {
            name: signature.name,
            function,
            volatile: signature.volatile,
        }),
        Function::Catalog(call) => Operation::Consult(call),
    };
    Ok(operation(call, operands, result, position))
}

#[cold]
fn no_function(name: &str, arguments: &[Bound], ambiguous: bool, position: Position) -> Error {
    if !exists(name) && is_missing_function(name) {
        return unsupported(format!("function {name}"), position);
    }
    let types: Vec<String> = arguments.iter().map(Bound::type_name).collect();
    let call = format!("{name}({})", types.join(", "));
    if ambiguous {
        return fail(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("function {call} is not unique"),
            position,
        )
        .with_hint(
            "Could not choose a best candidate function. You might need to add explicit type \
             casts.",
        );
    }
    fail(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {call} does not exist"),
        position,
    )
    .with_hint(
        "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
    )
}

fn is_variadic(signature: &Signature) -> bool {
    signature.arguments.last() == Some(&Ty::AnyText)
}

fn accepts(signature: &Signature, arguments: &[Bound]) -> bool {
    let fits = if is_variadic(signature) {
        arguments.len() >= signature.arguments.len()
    } else {
        arguments.len() == signature.arguments.len()
    };
    if !fits {
        return false;
    }
    let mut element: Option<DataType> = None;
    signature
        .arguments
        .iter()
        .zip(arguments)
        .all(|(ty, argument)| {
            if argument.is_unknown() {
                return true;
            }
            match (ty, argument.data_type.element()) {
                (Ty::AnyText, _) => true,
                (Ty::AnyArray, Some(inner)) => {
                    let agrees = element
                        .as_ref()
                        .is_none_or(|known| same_base(known, &inner));
                    element = Some(inner);
                    agrees
                }
                (Ty::AnyArray, None) => false,
                (Ty::AnyElement, _) => match &element {
                    Some(known) => converts_implicitly(argument, known),
                    None => {
                        element = Some(argument.data_type.clone());
                        true
                    }
                },
                (ty, _) => converts_implicitly(argument, &ty.data_type()),
            }
        })
}

/// PostgreSQL's rules (manual, section 10.3): an exact match; else the most exact matches, then
/// the most preferred types; then literals without a type are taken for strings where a string
/// fits, or for the category that all candidates agree on.
fn choose(all: &[Signature], arguments: &[Bound]) -> Option<Signature> {
    let mut left: Vec<&Signature> = all
        .iter()
        .filter(|signature| accepts(signature, arguments))
        .collect();
    let ty_of = |signature: &Signature, index: usize| {
        signature
            .arguments
            .get(index)
            .or(signature.arguments.last())
            .copied()
    };
    let is_exact = |signature: &Signature, index: usize| {
        let argument = &arguments[index];
        match ty_of(signature, index) {
            _ if argument.is_unknown() => false,
            Some(ty) if ty.is_polymorphic() => true,
            Some(ty) => same_base(&ty.data_type(), &argument.data_type),
            None => false,
        }
    };
    let exact = |signature: &&Signature| {
        (0..arguments.len())
            .filter(|index| is_exact(signature, *index))
            .count()
    };
    let preferred = |signature: &&Signature| {
        (0..arguments.len())
            .filter(|index| {
                is_exact(signature, *index)
                    || (!arguments[*index].is_unknown()
                        && ty_of(signature, *index).is_some_and(|ty| is_preferred(&ty.data_type())))
            })
            .count()
    };
    for measure in [&exact as &dyn Fn(&&Signature) -> usize, &preferred] {
        if let Some(best) = left.iter().map(measure).max() {
            left.retain(|signature| measure(signature) == best);
        }
    }
    for (index, _) in arguments
        .iter()
        .enumerate()
        .filter(|(_, argument)| argument.is_unknown())
    {
        if left.len() < 2 {
            break;
        }
        let of =
            |signature: &&Signature| ty_of(signature, index).map(|ty| category(&ty.data_type()));
        let wanted = if left
            .iter()
            .any(|signature| of(signature) == Some(Category::String))
        {
            Some(Category::String)
        } else {
            let first = left.first().and_then(of);
            left.iter()
                .all(|signature| of(signature) == first)
                .then_some(first)
                .flatten()
        };
        let Some(wanted) = wanted else { continue };
        left.retain(|signature| of(signature) == Some(wanted));
        let is_best = |signature: &&Signature| {
            ty_of(signature, index).is_some_and(|ty| is_preferred(&ty.data_type()))
        };
        if left.iter().any(is_best) {
            left.retain(is_best);
        }
    }
    match left.as_slice() {
        [] => None,
        [only] => Some(**only),
        several => {
            // Last: assume literals to be of the type that all other arguments share.
            let known = arguments.iter().find(|argument| !argument.is_unknown())?;
            let same: Vec<&&Signature> = several
                .iter()
                .filter(|signature| {
                    (0..arguments.len()).all(|index| {
                        ty_of(signature, index)
                            .is_some_and(|ty| same_base(&ty.data_type(), &known.data_type))
                    })
                })
                .collect();
            match same.as_slice() {
                [only] => Some(***only),
                _ => None,
            }
        }
    }
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
