//! Functions of any number of arguments, of which an array has the last: `concat(VARIADIC …)`.

use kiln_procedure::ir::ScalarFunction;
use kiln_storage::error::Result;
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::DataType;

use super::Named;
use super::format::FORMAT;
use super::string::{CONCAT, CONCAT_WS, NUM_NONNULLS, NUM_NULLS};

/// Calls a function with the elements of the last argument; NULL where there is no array.
fn spread(heap: &mut Heap, arguments: &[Slot], named: Named) -> Result<Slot> {
    let Some((array, before)) = arguments.split_last() else {
        return Ok(Slot::NULL);
    };
    let mut all = before.to_vec();
    match array.is_null() {
        // Without arguments, a template may have no place for one.
        true if named.0 == FORMAT.0 => {}
        true => return Ok(Slot::NULL),
        false => all.extend_from_slice(heap.array(*array)),
    }
    (named.1)(heap, &all)
}

/// A function that takes its last arguments as an array.
pub(in super::super) struct Spread {
    pub named: Named,
    /// How many arguments stand before the array.
    pub before: usize,
    /// Whether the elements are texts.
    pub of_texts: bool,
    pub data_type: DataType,
}

impl Spread {
    /// The one of this name.
    pub(in super::super) fn of(name: &str) -> Option<Spread> {
        let (function, before): (ScalarFunction, usize) = match name {
            "concat" => (|heap, arguments| spread(heap, arguments, CONCAT), 0),
            "concat_ws" => (|heap, arguments| spread(heap, arguments, CONCAT_WS), 1),
            "format" => (|heap, arguments| spread(heap, arguments, FORMAT), 1),
            "num_nulls" => (|heap, arguments| spread(heap, arguments, NUM_NULLS), 0),
            "num_nonnulls" => (|heap, arguments| spread(heap, arguments, NUM_NONNULLS), 0),
            _ => return None,
        };
        let (name, of_texts) = match name {
            "concat" => ("concat_variadic", true),
            "concat_ws" => ("concat_ws_variadic", true),
            "format" => ("format_variadic", true),
            "num_nulls" => ("num_nulls_variadic", false),
            _ => ("num_nonnulls_variadic", false),
        };
        Some(Spread {
            named: (name, function),
            before,
            of_texts,
            data_type: match of_texts {
                true => DataType::Text,
                false => DataType::Integer,
            },
        })
    }
}
