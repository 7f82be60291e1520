//! Functions and operators over JSON and JSONB.
//!
//! Operators have their symbols for names here. What makes JSON of SQL's values is in
//! `compile/json.rs`.

use kiln_procedure::ir::Comparison;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::json::{self, Json, Node, canonical, normal_number, read, unescape};
use kiln_storage::types::{CatalogType, DataType, Number};

use super::cast::strict;
use super::{Function, Named, Signature, Ty, check_length};

/// A text as a result, or NULL.
pub(super) fn given(heap: &mut Heap, text: Option<String>) -> Result<Slot> {
    match text {
        Some(text) => {
            check_length(text.len())?;
            Ok(heap.push_str(&text))
        }
        None => Ok(Slot::NULL),
    }
}

#[cold]
pub(super) fn refused(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message.into())
}

/// The member of an object with this key: the last of several.
pub(super) fn member<'a, 'b>(value: &'b Json<'a>, key: &str) -> Result<Option<&'b Json<'a>>> {
    for (raw, member) in value.members().unwrap_or_default().iter().rev() {
        if unescape(raw)? == key {
            return Ok(Some(member));
        }
    }
    Ok(None)
}

/// The place of an element that is counted from 0, or from the end if it is negative.
pub(super) fn place(count: usize, position: i64) -> Option<usize> {
    let at = match position {
        0.. => position,
        _ => position + count as i64,
    };
    usize::try_from(at).ok().filter(|at| *at < count)
}

/// As [`element`]; what is neither array nor object counts as the only element of one.
fn element_or_all<'a, 'b>(value: &'b Json<'a>, position: i64) -> Option<&'b Json<'a>> {
    match value.node {
        Node::Array(_) | Node::Object(_) => element(value, position),
        _ => place(1, position).map(|_| value),
    }
}

fn element<'a, 'b>(value: &'b Json<'a>, position: i64) -> Option<&'b Json<'a>> {
    let elements = value.elements()?;
    elements.get(place(elements.len(), position)?)
}

/// What a path of keys and positions leads to.
fn follow<'a, 'b>(value: &'b Json<'a>, path: &[&str]) -> Result<Option<&'b Json<'a>>> {
    let mut value = value;
    for step in path {
        let next = match &value.node {
            Node::Object(_) => member(value, step)?,
            Node::Array(_) => step.parse().ok().and_then(|at| element(value, at)),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// A value as a text: what a string says, nothing for `null`, and else its JSON.
pub(super) fn plain(value: &Json<'_>) -> Result<Option<String>> {
    Ok(match &value.node {
        Node::Null => None,
        Node::String(raw) => Some(unescape(raw)?.into_owned()),
        _ => Some(value.text.to_owned()),
    })
}

/// A part of a value, as JSON or as a text.
fn part(
    heap: &mut Heap,
    value: Slot,
    as_text: bool,
    find: impl for<'a, 'b> FnOnce(&Heap, &'b Json<'a>) -> Result<Option<&'b Json<'a>>>,
) -> Result<Slot> {
    let value = read(heap.str(value))?;
    let text = match find(heap, &value)? {
        None => None,
        Some(found) if as_text => plain(found)?,
        Some(found) => Some(found.text.to_owned()),
    };
    given(heap, text)
}

/// The texts of an array; `None` when one is NULL.
pub(super) fn texts(heap: &Heap, array: Slot) -> Option<Vec<&str>> {
    let elements = heap.array(array).iter();
    let texts = elements.map(|text| (!text.is_null()).then(|| heap.str(*text)));
    texts.collect()
}

fn at_path(heap: &mut Heap, value: Slot, path: Slot, as_text: bool) -> Result<Slot> {
    part(heap, value, as_text, |heap, value| {
        match texts(heap, path) {
            Some(path) => follow(value, &path),
            None => Ok(None),
        }
    })
}

/// As [`at_path`], with the path as the arguments behind the first.
fn at_arguments(heap: &mut Heap, arguments: &[Slot], as_text: bool) -> Result<Slot> {
    if arguments.iter().any(|argument| argument.is_null()) {
        return Ok(Slot::NULL);
    }
    let path = heap.push_array(&arguments[1..]);
    at_path(heap, arguments[0], path, as_text)
}

fn extract_path(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    at_arguments(heap, arguments, false)
}

fn extract_path_text(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    at_arguments(heap, arguments, true)
}

/// Whether a text is a key of an object, an element of an array, or the value.
fn exists(value: &Json<'_>, key: &str) -> Result<bool> {
    let is_key = |one: &Json<'_>| -> Result<bool> {
        match &one.node {
            Node::String(raw) => Ok(unescape(raw)? == key),
            _ => Ok(false),
        }
    };
    match &value.node {
        Node::Object(_) => Ok(member(value, key)?.is_some()),
        Node::Array(elements) => {
            for one in elements {
                if is_key(one)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => is_key(value),
    }
}

fn exist(heap: &Heap, value: Slot, keys: Slot, all: bool) -> Result<Slot> {
    let value = read(heap.str(value))?;
    for key in heap.array(keys).iter().filter(|key| !key.is_null()) {
        if exists(&value, heap.str(*key))? != all {
            return Ok(Slot::from_bool(!all));
        }
    }
    Ok(Slot::from_bool(all))
}

fn compared(heap: &Heap, left: Slot, right: Slot) -> Result<std::cmp::Ordering> {
    let (left, right) = (read(heap.str(left))?, read(heap.str(right))?);
    Ok(json::compare(&left, &right))
}

fn array_length(heap: &Heap, value: Slot) -> Result<Slot> {
    let value = read(heap.str(value))?;
    match &value.node {
        Node::Array(elements) => Ok(Slot::from_i64(elements.len() as i64)),
        Node::Object(_) => Err(refused("cannot get array length of a non-array")),
        _ => Err(refused("cannot get array length of a scalar")),
    }
}

/// The number that a JSONB is, for a cast.
fn number(heap: &Heap, value: Slot, type_name: &str) -> Result<Number> {
    let value = read(heap.str(value))?;
    match value.node {
        Node::Number => Number::parse(&normal_number(value.text)?),
        _ => Err(no_cast(&value, type_name)),
    }
}

#[cold]
fn no_cast(value: &Json<'_>, type_name: &str) -> Error {
    let what = match value.node {
        Node::Number => "numeric",
        _ => value.type_name(),
    };
    refused(format!("cannot cast jsonb {what} to type {type_name}"))
}

strict! {
    TEXT_TO_JSON = "json", |heap, text| {
        read(heap.str(text))?;
        Ok(text)
    };
    TEXT_TO_JSONB = "jsonb", |heap, text| {
        let text = canonical(heap.str(text))?;
        Ok(heap.push_str(&text))
    };
    TO_BOOLEAN = "bool", |heap, value| {
        let value = read(heap.str(value))?;
        match value.node {
            Node::Boolean(truth) => Ok(Slot::from_bool(truth)),
            _ => Err(no_cast(&value, "boolean")),
        }
    };
    TO_NUMERIC = "numeric", |heap, value| {
        let number = number(heap, value, "numeric")?;
        Ok(heap.push_number(&number))
    };
    TO_SMALLINT = "int2", |heap, value| {
        Ok(Slot::from_i64(number(heap, value, "smallint")?.to_i16()?.into()))
    };
    TO_INTEGER = "int4", |heap, value| {
        Ok(Slot::from_i64(number(heap, value, "integer")?.to_i32()?.into()))
    };
    TO_BIGINT = "int8", |heap, value| {
        Ok(Slot::from_i64(number(heap, value, "bigint")?.to_i64()?))
    };
    TO_DOUBLE = "float8", |heap, value| {
        let value = read(heap.str(value))?;
        match value.node {
            Node::Number => {
                Ok(Slot::from_f64(kiln_storage::types::double::parse_double(value.text)?))
            }
            _ => Err(no_cast(&value, "double precision")),
        }
    };
    FIELD = "object_field", |heap, value, key| {
        part(heap, value, false, |heap, value| member(value, heap.str(key)))
    };
    FIELD_TEXT = "object_field_text", |heap, value, key| {
        part(heap, value, true, |heap, value| member(value, heap.str(key)))
    };
    ELEMENT = "array_element", |heap, value, position| {
        part(heap, value, false, |_, value| Ok(element(value, position.as_i64())))
    };
    ELEMENT_TEXT = "array_element_text", |heap, value, position| {
        part(heap, value, true, |_, value| Ok(element(value, position.as_i64())))
    };
    ELEMENT_B = "jsonb_array_element", |heap, value, position| {
        part(heap, value, false, |_, value| Ok(element_or_all(value, position.as_i64())))
    };
    ELEMENT_TEXT_B = "jsonb_array_element_text", |heap, value, position| {
        part(heap, value, true, |_, value| Ok(element_or_all(value, position.as_i64())))
    };
    AT_PATH = "extract_path", |heap, value, path| at_path(heap, value, path, false);
    AT_PATH_TEXT = "extract_path_text", |heap, value, path| at_path(heap, value, path, true);
    CONTAINS = "jsonb_contains", |heap, left, right| {
        let (left, right) = (read(heap.str(left))?, read(heap.str(right))?);
        Ok(Slot::from_bool(json::contains(&left, &right)))
    };
    CONTAINED = "jsonb_contained", |heap, left, right| {
        let (left, right) = (read(heap.str(left))?, read(heap.str(right))?);
        Ok(Slot::from_bool(json::contains(&right, &left)))
    };
    EXISTS = "jsonb_exists", |heap, value, key| {
        Ok(Slot::from_bool(exists(&read(heap.str(value))?, heap.str(key))?))
    };
    EXISTS_ANY = "jsonb_exists_any", |heap, value, keys| exist(heap, value, keys, false);
    EXISTS_ALL = "jsonb_exists_all", |heap, value, keys| exist(heap, value, keys, true);
    EQUAL = "jsonb_eq", |heap, left, right| Ok(Slot::from_bool(compared(heap, left, right)?.is_eq()));
    NOT_EQUAL = "jsonb_ne", |heap, left, right| Ok(Slot::from_bool(compared(heap, left, right)?.is_ne()));
    LESS = "jsonb_lt", |heap, left, right| Ok(Slot::from_bool(compared(heap, left, right)?.is_lt()));
    LESS_OR_EQUAL = "jsonb_le", |heap, left, right| Ok(Slot::from_bool(compared(heap, left, right)?.is_le()));
    GREATER = "jsonb_gt", |heap, left, right| Ok(Slot::from_bool(compared(heap, left, right)?.is_gt()));
    GREATER_OR_EQUAL = "jsonb_ge", |heap, left, right| {
        Ok(Slot::from_bool(compared(heap, left, right)?.is_ge()))
    };
    TYPE_OF = "json_typeof", |heap, value| {
        let name = read(heap.str(value))?.type_name();
        Ok(heap.push_str(name))
    };
    LENGTH = "json_array_length", |heap, value| array_length(heap, value);
    PRETTY = "jsonb_pretty", |heap, value| {
        let text = json::pretty(heap.str(value))?;
        given(heap, Some(text))
    };
    STRIP_NULLS = "json_strip_nulls", |heap, value| {
        let mut text = String::new();
        json::without_nulls(&read(heap.str(value))?, &mut text);
        given(heap, Some(text))
    };
    STRIP_NULLS_B = "jsonb_strip_nulls", |heap, value| {
        let mut text = String::new();
        json::without_nulls(&read(heap.str(value))?, &mut text);
        let text = canonical(&text)?;
        given(heap, Some(text))
    };
}

/// A comparison whose operands may be NULL, which is like itself and like nothing else.
fn is_distinct(heap: &Heap, arguments: &[Slot]) -> Result<bool> {
    match arguments {
        [left, right] if left.is_null() || right.is_null() => Ok(left.is_null() != right.is_null()),
        [left, right] => Ok(compared(heap, *left, *right)?.is_ne()),
        _ => Err(Error::internal("a comparison has two operands")),
    }
}

fn distinct(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    Ok(Slot::from_bool(is_distinct(heap, arguments)?))
}

fn not_distinct(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    Ok(Slot::from_bool(!is_distinct(heap, arguments)?))
}

/// The comparison of two JSONB values.
pub(in super::super) fn compare_jsonb(comparison: Comparison) -> Named {
    match comparison {
        Comparison::Equal => EQUAL,
        Comparison::NotEqual => NOT_EQUAL,
        Comparison::Less => LESS,
        Comparison::LessOrEqual => LESS_OR_EQUAL,
        Comparison::Greater => GREATER,
        Comparison::GreaterOrEqual => GREATER_OR_EQUAL,
        Comparison::Distinct => ("jsonb_distinct", distinct),
        Comparison::NotDistinct => ("jsonb_not_distinct", not_distinct),
    }
}

/// The cast of a JSONB to a type that is no text; `None` where there is none.
pub(in super::super) fn from_jsonb(target: &DataType) -> Option<(Named, DataType)> {
    Some(match target {
        DataType::Boolean => (TO_BOOLEAN, DataType::Boolean),
        DataType::SmallInt => (TO_SMALLINT, DataType::SmallInt),
        DataType::Integer => (TO_INTEGER, DataType::Integer),
        DataType::BigInt => (TO_BIGINT, DataType::BigInt),
        DataType::Numeric { .. } => (TO_NUMERIC, DataType::NUMERIC),
        DataType::Double => (TO_DOUBLE, DataType::Double),
        _ => return None,
    })
}

const JSON: Ty = Ty::Catalog(CatalogType::Json);
const JSONB: Ty = Ty::Catalog(CatalogType::Jsonb);

const fn of(name: &'static str, arguments: &'static [Ty], result: Ty, named: Named) -> Signature {
    Signature {
        name,
        arguments,
        result,
        function: Function::Scalar(named.1),
        volatile: false,
    }
}

const PATH: Named = ("extract_path", extract_path);
const PATH_TEXT: Named = ("extract_path_text", extract_path_text);

pub(super) static SIGNATURES: &[Signature] = &[
    of("->", &[JSON, Ty::Text], JSON, FIELD),
    of("->", &[JSON, Ty::Int4], JSON, ELEMENT),
    of("->", &[JSONB, Ty::Text], JSONB, FIELD),
    of("->", &[JSONB, Ty::Int4], JSONB, ELEMENT_B),
    of("->>", &[JSON, Ty::Text], Ty::Text, FIELD_TEXT),
    of("->>", &[JSON, Ty::Int4], Ty::Text, ELEMENT_TEXT),
    of("->>", &[JSONB, Ty::Text], Ty::Text, FIELD_TEXT),
    of("->>", &[JSONB, Ty::Int4], Ty::Text, ELEMENT_TEXT_B),
    of("#>", &[JSON, Ty::TextArray], JSON, AT_PATH),
    of("#>", &[JSONB, Ty::TextArray], JSONB, AT_PATH),
    of("#>>", &[JSON, Ty::TextArray], Ty::Text, AT_PATH_TEXT),
    of("#>>", &[JSONB, Ty::TextArray], Ty::Text, AT_PATH_TEXT),
    of("@>", &[JSONB, JSONB], Ty::Boolean, CONTAINS),
    of("<@", &[JSONB, JSONB], Ty::Boolean, CONTAINED),
    of("?", &[JSONB, Ty::Text], Ty::Boolean, EXISTS),
    of("?|", &[JSONB, Ty::TextArray], Ty::Boolean, EXISTS_ANY),
    of("?&", &[JSONB, Ty::TextArray], Ty::Boolean, EXISTS_ALL),
    of("json_extract_path", &[JSON, Ty::AnyText], JSON, PATH),
    of("jsonb_extract_path", &[JSONB, Ty::AnyText], JSONB, PATH),
    of(
        "json_extract_path_text",
        &[JSON, Ty::AnyText],
        Ty::Text,
        PATH_TEXT,
    ),
    of(
        "jsonb_extract_path_text",
        &[JSONB, Ty::AnyText],
        Ty::Text,
        PATH_TEXT,
    ),
    of("json_typeof", &[JSON], Ty::Text, TYPE_OF),
    of("jsonb_typeof", &[JSONB], Ty::Text, TYPE_OF),
    of("json_array_length", &[JSON], Ty::Int4, LENGTH),
    of("jsonb_array_length", &[JSONB], Ty::Int4, LENGTH),
    of("jsonb_pretty", &[JSONB], Ty::Text, PRETTY),
    of("json_strip_nulls", &[JSON], JSON, STRIP_NULLS),
    of("jsonb_strip_nulls", &[JSONB], JSONB, STRIP_NULLS_B),
    of("json_object_field", &[JSON, Ty::Text], JSON, FIELD),
    of("json_array_element", &[JSON, Ty::Int4], JSON, ELEMENT),
    of("jsonb_object_field", &[JSONB, Ty::Text], JSONB, FIELD),
    of("jsonb_array_element", &[JSONB, Ty::Int4], JSONB, ELEMENT_B),
    of(
        "json_object_field_text",
        &[JSON, Ty::Text],
        Ty::Text,
        FIELD_TEXT,
    ),
    of(
        "json_array_element_text",
        &[JSON, Ty::Int4],
        Ty::Text,
        ELEMENT_TEXT,
    ),
    of(
        "jsonb_object_field_text",
        &[JSONB, Ty::Text],
        Ty::Text,
        FIELD_TEXT,
    ),
    of(
        "jsonb_array_element_text",
        &[JSONB, Ty::Int4],
        Ty::Text,
        ELEMENT_TEXT_B,
    ),
    of("jsonb_contains", &[JSONB, JSONB], Ty::Boolean, CONTAINS),
    of("jsonb_contained", &[JSONB, JSONB], Ty::Boolean, CONTAINED),
    of("jsonb_exists", &[JSONB, Ty::Text], Ty::Boolean, EXISTS),
    of(
        "jsonb_exists_any",
        &[JSONB, Ty::TextArray],
        Ty::Boolean,
        EXISTS_ANY,
    ),
    of(
        "jsonb_exists_all",
        &[JSONB, Ty::TextArray],
        Ty::Boolean,
        EXISTS_ALL,
    ),
];
