//! The values of a field in a JSON object, or in each of an array of them.

use kiln_storage::error::Result;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::json::{Json, Node, read};

use super::array::check_elements;
use super::cast::strict;
use super::json::{member, plain, refused};

/// The objects in a value.
///
/// # Errors
/// 22023, in PostgreSQL's words for the function of this name.
fn objects<'a, 'b>(value: &'b Json<'a>, name: &str) -> Result<&'b [Json<'a>]> {
    let is_set = name.ends_with("set");
    // PostgreSQL's words differ for JSON and JSONB, and name a function of its own.
    let call = |of: &str| {
        refused(match (is_set, name.starts_with("jsonb")) {
            (false, _) => format!("cannot call populate_composite on {of}"),
            (true, false) => format!("cannot call {name} on {of}"),
            (true, true) => format!("cannot call {name} on a non-array"),
        })
    };
    match (&value.node, is_set) {
        (Node::Array(elements), true) => {
            let is_object = |element: &Json<'_>| element.members().is_some();
            match elements.iter().all(is_object) {
                true => Ok(elements),
                false => Err(refused(format!(
                    "argument of {name} must be an array of objects"
                ))),
            }
        }
        (Node::Object(_), false) => Ok(std::slice::from_ref(value)),
        (Node::Object(_), true) => Err(call("an object")),
        (Node::Array(_), false) => Err(call("an array")),
        _ => Err(call("a scalar")),
    }
}

fn fields(heap: &mut Heap, value: Slot, [key, name]: [Slot; 2], as_json: bool) -> Result<Slot> {
    let texts: Result<Vec<Option<String>>> = {
        let (key, value) = (heap.str(key), read(heap.str(value))?);
        let each = objects(&value, heap.str(name))?.iter();
        each.map(|object| match member(object, key)? {
            None => Ok(None),
            Some(found) if !as_json => plain(found),
            Some(found) if matches!(found.node, Node::Null) => Ok(None),
            Some(found) => Ok(Some(found.text.to_owned())),
        })
        .collect()
    };
    let texts = texts?;
    check_elements(texts.len())?;
    let slots: Vec<Slot> = texts
        .into_iter()
        .map(|text| text.map_or(Slot::NULL, |text| heap.push_str(&text)))
        .collect();
    Ok(heap.push_array(&slots))
}

strict! {
    /// An array of the values of a key, as texts or as JSON; of the function by whose name errors
    /// are said.
    JSON_FIELDS = "json_fields", |heap, value, key, name, as_json| {
        fields(heap, value, [key, name], as_json.as_bool())
    };
}
