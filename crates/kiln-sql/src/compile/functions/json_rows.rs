//! What is in a JSON value, as arrays for functions that give rows.

use kiln_storage::error::Result;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::json::{Json, Node, read, unescape};

use super::Named;
use super::array::check_elements;
use super::cast::strict;
use super::json::{plain, refused};

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum JsonRows {
    /// The elements of an array.
    Elements,
    /// The keys of an object.
    Keys,
    /// The values of an object.
    Values,
}

fn type_of(value: &Json<'_>) -> (bool, bool) {
    (value.elements().is_some(), value.members().is_some())
}

/// PostgreSQL's words differ for JSON and JSONB.
fn elements<'a, 'b>(value: &'b Json<'a>, is_binary: bool) -> Result<&'b [Json<'a>]> {
    match (&value.node, is_binary) {
        (Node::Array(elements), _) => Ok(elements),
        (Node::Object(_), true) => Err(refused("cannot extract elements from an object")),
        (_, true) => Err(refused("cannot extract elements from a scalar")),
        (Node::Object(_), false) => Err(refused("cannot call json_array_elements on a non-array")),
        (_, false) => Err(refused("cannot call json_array_elements on a scalar")),
    }
}

fn keys<'a, 'b>(value: &'b Json<'a>, is_binary: bool) -> Result<&'b [(&'a str, Json<'a>)]> {
    let name = if is_binary {
        "jsonb_object_keys"
    } else {
        "json_object_keys"
    };
    match (value.members(), type_of(value)) {
        (Some(members), _) => Ok(members),
        (None, (true, _)) => Err(refused(format!("cannot call {name} on an array"))),
        (None, _) => Err(refused(format!("cannot call {name} on a scalar"))),
    }
}

fn members<'a, 'b>(value: &'b Json<'a>, is_binary: bool) -> Result<&'b [(&'a str, Json<'a>)]> {
    match (value.members(), is_binary, type_of(value)) {
        (Some(members), _, _) => Ok(members),
        (None, true, _) => Err(refused("cannot call jsonb_each on a non-object")),
        (None, false, (true, _)) => Err(refused("cannot deconstruct an array as an object")),
        (None, false, _) => Err(refused("cannot deconstruct a scalar")),
    }
}

fn listed(
    heap: &mut Heap,
    value: Slot,
    (rows, is_binary, as_text): (JsonRows, bool, bool),
) -> Result<Slot> {
    let texts: Vec<Option<String>> = {
        let value = read(heap.str(value))?;
        let shown = |one: &Json<'_>| match as_text {
            true => plain(one),
            false => Ok(Some(one.text.to_owned())),
        };
        let texts: Result<Vec<Option<String>>> = match rows {
            JsonRows::Elements => elements(&value, is_binary)?.iter().map(shown).collect(),
            JsonRows::Keys => {
                let members = match as_text {
                    // Keys alone were asked for.
                    true => keys(&value, is_binary)?,
                    false => members(&value, is_binary)?,
                };
                let keys = members.iter();
                keys.map(|(raw, _)| Ok(Some(unescape(raw)?.into_owned())))
                    .collect()
            }
            JsonRows::Values => {
                let members = members(&value, is_binary)?.iter();
                members.map(|(_, member)| shown(member)).collect()
            }
        };
        texts?
    };
    check_elements(texts.len())?;
    let texts: Vec<Slot> = texts
        .into_iter()
        .map(|text| text.map_or(Slot::NULL, |text| heap.push_str(&text)))
        .collect();
    Ok(heap.push_array(&texts))
}

/// An array of what is in a JSON value. Keys as a text (`as_text`) are all that is asked for; else
/// they go with their values.
pub(in super::super) fn json_rows(rows: JsonRows, is_binary: bool, as_text: bool) -> Named {
    use JsonRows::{Elements, Keys, Values};
    strict! {
        ELEMENTS = "json_array_elements", |heap, value| listed(heap, value, (Elements, false, false));
        ELEMENTS_TEXT = "json_array_elements_text", |heap, value| {
            listed(heap, value, (Elements, false, true))
        };
        ELEMENTS_B = "jsonb_array_elements", |heap, value| listed(heap, value, (Elements, true, false));
        ELEMENTS_TEXT_B = "jsonb_array_elements_text", |heap, value| {
            listed(heap, value, (Elements, true, true))
        };
        KEYS = "json_object_keys", |heap, value| listed(heap, value, (Keys, false, true));
        KEYS_B = "jsonb_object_keys", |heap, value| listed(heap, value, (Keys, true, true));
        KEYS_OF_EACH = "json_each_keys", |heap, value| listed(heap, value, (Keys, false, false));
        KEYS_OF_EACH_B = "jsonb_each_keys", |heap, value| listed(heap, value, (Keys, true, false));
        VALUES = "json_each", |heap, value| listed(heap, value, (Values, false, false));
        VALUES_TEXT = "json_each_text", |heap, value| listed(heap, value, (Values, false, true));
        VALUES_B = "jsonb_each", |heap, value| listed(heap, value, (Values, true, false));
        VALUES_TEXT_B = "jsonb_each_text", |heap, value| listed(heap, value, (Values, true, true));
    }
    match (rows, is_binary, as_text) {
        (Elements, false, false) => ELEMENTS,
        (Elements, false, true) => ELEMENTS_TEXT,
        (Elements, true, false) => ELEMENTS_B,
        (Elements, true, true) => ELEMENTS_TEXT_B,
        (Keys, false, true) => KEYS,
        (Keys, true, true) => KEYS_B,
        (Keys, false, false) => KEYS_OF_EACH,
        (Keys, true, false) => KEYS_OF_EACH_B,
        (Values, false, false) => VALUES,
        (Values, false, true) => VALUES_TEXT,
        (Values, true, false) => VALUES_B,
        (Values, true, true) => VALUES_TEXT_B,
    }
}
