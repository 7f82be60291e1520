//! JSON made of SQL's values: of one, of an array, of a list of arguments.

use kiln_procedure::frame::to_value;
use kiln_storage::error::{Error, Result};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::json::{canonical, quote};
use kiln_storage::types::{CatalogType, DataType, Style, Value, format_value_in};

use super::Named;
use super::cast::{self, strict};
use super::json::{given, refused};

/// How the text of a value becomes JSON.
#[derive(Clone, Copy)]
enum Form {
    /// It is JSON.
    Json,
    /// A number, unless it says `NaN` or `Infinity`.
    Number,
    /// `t` or `f`.
    Boolean,
    /// A time, with a `T` where its text has a blank, and with minutes in its zone.
    Time,
    /// Any other text.
    Text,
}

impl Form {
    fn of(data_type: &DataType) -> Form {
        match data_type {
            DataType::Catalog(CatalogType::Json | CatalogType::Jsonb) => Form::Json,
            DataType::Boolean => Form::Boolean,
            DataType::Timestamp(_) | DataType::TimestampTz(_) => Form::Time,
            DataType::Catalog(CatalogType::Real) => Form::Number,
            other if other.is_number() => Form::Number,
            _ => Form::Text,
        }
    }

    fn append(self, text: &str, out: &mut String) {
        let is_number = text.ends_with(|last: char| last.is_ascii_digit());
        match self {
            Form::Json => out.push_str(text),
            Form::Number if is_number => out.push_str(text),
            Form::Number | Form::Text => quote(text, out),
            Form::Boolean => out.push_str(if text.starts_with('t') {
                "true"
            } else {
                "false"
            }),
            Form::Time => {
                out.push('"');
                let (text, era) = match text.strip_suffix(" BC") {
                    Some(text) => (text, " BC"),
                    None => (text, ""),
                };
                out.push_str(&text.replacen(' ', "T", 1));
                // A zone of whole hours has no minutes in its text.
                let before = text.len().saturating_sub(3);
                if text.contains(':') && text[before..].starts_with(['+', '-']) {
                    out.push_str(":00");
                }
                out.push_str(era);
                out.push('"');
            }
        }
    }
}

/// Declares for each form a function of a text, and one of the text of an array.
macro_rules! by_form {
    ($($form:ident $one:ident $many:ident;)*) => {
        strict! {
            $($one = "to_json", |heap, text| {
                let mut out = String::new();
                Form::$form.append(heap.str(text), &mut out);
                given(heap, Some(out))
            };
            $many = "to_json", |heap, text| {
                let out = of_array(heap.str(text), Form::$form)?;
                given(heap, Some(out))
            };)*
        }

        /// What makes JSON of the text of a value of this type.
        pub(in super::super) fn json_of(data_type: &DataType) -> Named {
            match (data_type.element(), data_type) {
                (Some(element), DataType::Array(_)) => match Form::of(&element) {
                    $(Form::$form => $many,)*
                },
                _ => match Form::of(data_type) {
                    $(Form::$form => $one,)*
                },
            }
        }
    };
}

by_form! {
    Json OF_JSON OF_JSONS;
    Number OF_NUMBER OF_NUMBERS;
    Boolean OF_BOOLEAN OF_BOOLEANS;
    Time OF_TIME OF_TIMES;
    Text OF_TEXT OF_TEXTS;
}

/// The text of an array as JSON, without blanks.
fn of_array(text: &str, form: Form) -> Result<String> {
    let mut out = String::from("[");
    for (position, element) in cast::parse_array(text)?.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        match element {
            Some(element) => form.append(&element, &mut out),
            None => out.push_str("null"),
        }
    }
    out.push(']');
    Ok(out)
}

/// Appends a value as JSON, without blanks; rows are objects.
fn append_value(value: &Value, data_type: &DataType, style: &Style<'_>, out: &mut String) {
    match (value, data_type) {
        (Value::Null, _) => out.push_str("null"),
        (Value::Row(row), _) => {
            out.push('{');
            for (number, ((value, data_type), field)) in
                row.typed().zip(row.of.fields()).enumerate()
            {
                if number > 0 {
                    out.push(',');
                }
                quote(&field.name, out);
                out.push(':');
                append_value(value, data_type, style, out);
            }
            out.push('}');
        }
        (Value::Array(elements), DataType::Array(element)) => {
            out.push('[');
            for (number, value) in elements.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                append_value(value, element, style, out);
            }
            out.push(']');
        }
        _ => Form::of(data_type).append(&format_value_in(value, data_type, style), out),
    }
}

fn text_or_null<'h>(heap: &'h Heap, value: &Slot) -> &'h str {
    match value.is_null() {
        true => "null",
        false => heap.str(*value),
    }
}

fn joined(heap: &Heap, values: &[Slot]) -> String {
    let values: Vec<&str> = values
        .iter()
        .map(|value| text_or_null(heap, value))
        .collect();
    // What is on a line of its own is not so at the beginning.
    format!("[{}]", values.join(", ").trim_start())
}

/// Keys and values in turn as the members of an object; `between` is written between a key and its
/// value.
fn members(
    heap: &Heap,
    arguments: &[Slot],
    between: &str,
    no_key: fn(usize) -> Error,
) -> Result<Vec<String>> {
    let pairs = arguments.chunks_exact(2).enumerate();
    pairs
        .map(|(position, pair)| {
            let [key, value] = pair else {
                return Err(Error::internal("a member has a key and a value"));
            };
            if key.is_null() {
                return Err(no_key(position * 2 + 1));
            }
            let mut out = String::new();
            quote(heap.str(*key), &mut out);
            Ok(out + between + text_or_null(heap, value))
        })
        .collect()
}

/// A key of a JSON is NULL, or one of a JSONB.
#[cold]
fn no_key(number: usize) -> Error {
    let error = refused(format!("argument {number} cannot be null"));
    error.with_hint("Object keys should be text.")
}

#[cold]
fn no_key_b(number: usize) -> Error {
    refused(format!("argument {number}: key must not be null"))
}

fn array(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let text = joined(heap, arguments);
    given(heap, Some(text))
}

fn array_b(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let text = canonical(&joined(heap, arguments))?;
    given(heap, Some(text))
}

fn object(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let text = format!(
        "{{{}}}",
        members(heap, arguments, " : ", no_key)?.join(", ")
    );
    given(heap, Some(text))
}

fn object_b(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let text = format!("{{{}}}", members(heap, arguments, ":", no_key_b)?.join(","));
    let text = canonical(&text)?;
    given(heap, Some(text))
}

fn row(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let text = format!("{{{}}}", members(heap, arguments, ":", no_key)?.join(","));
    given(heap, Some(text))
}

/// The function that makes an array of a list of JSON values.
pub(in super::super) fn build_array(is_binary: bool) -> Named {
    match is_binary {
        false => ("json_build_array", array),
        true => ("jsonb_build_array", array_b),
    }
}

/// The function that makes an object of a list of keys and JSON values.
pub(in super::super) fn build_object(is_binary: bool) -> Named {
    match is_binary {
        false => ("json_build_object", object),
        true => ("jsonb_build_object", object_b),
    }
}

/// The function that makes an object, without blanks, of the names and values of a row.
pub(in super::super) const fn json_of_row() -> Named {
    ("row_to_json", row)
}

strict! {
    /// A row, or an array of rows, of the type that is described.
    ROWS_TO_JSON = "rows_to_json", |heap, rows, description, style| {
        let data_type: DataType = heap.str(description).parse().map_err(|()| {
            Error::internal("the type of a row has no description")
        })?;
        let mut out = String::new();
        let value = to_value(heap, rows, &data_type);
        append_value(&value, &data_type, &Style::read(heap.bytes(style)), &mut out);
        given(heap, Some(out))
    };
    ON_A_LINE = "json_line", |heap, element| {
        let text = format!("\n {}", heap.str(element));
        given(heap, Some(text))
    };
}

/// A row or an array as `json_agg` collects it: on a line of its own.
pub(in super::super) const fn on_a_line() -> Named {
    ON_A_LINE
}

/// A key and a value, as `json_object_agg` collects them.
pub(in super::super) fn pair() -> Named {
    fn function(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
        if arguments.first().is_none_or(|key| key.is_null()) {
            let message = "field name must not be null";
            return Err(refused(message));
        }
        let text = members(heap, arguments, " : ", no_key)?.concat();
        given(heap, Some(text))
    }
    ("json_pair", function)
}

/// What an aggregate has collected: values as an array, pairs as an object.
pub(in super::super) fn listed(is_binary: bool, is_object: bool) -> Named {
    strict! {
        VALUES = "json_agg", |heap, values| {
            let text = joined(heap, heap.array(values));
            given(heap, Some(text))
        };
        VALUES_B = "jsonb_agg", |heap, values| {
            let text = canonical(&joined(heap, heap.array(values)))?;
            given(heap, Some(text))
        };
        PAIRS = "json_object_agg", |heap, pairs| {
            let pairs = joined(heap, heap.array(pairs));
            let text = format!("{{ {} }}", &pairs[1..pairs.len() - 1]);
            given(heap, Some(text))
        };
        PAIRS_B = "jsonb_object_agg", |heap, pairs| {
            let pairs = joined(heap, heap.array(pairs));
            let text = canonical(&format!("{{{}}}", &pairs[1..pairs.len() - 1]))?;
            given(heap, Some(text))
        };
    }
    match (is_binary, is_object) {
        (false, false) => VALUES,
        (true, false) => VALUES_B,
        (false, true) => PAIRS,
        (true, true) => PAIRS_B,
    }
}
