//! Enums: conversions from and to texts, and the functions over their labels.
//!
//! A function over values of an enum is given the type's description
//! ([`EnumType`](kiln_storage::types::EnumType)) as a text.

use kiln_storage::error::{Error, Result};
use kiln_storage::slot::Slot;
use kiln_storage::types::enumeration::{label_in, number_in};

use super::cast::strict;

strict! {
    /// The label of a value.
    ENUM_TO_TEXT = "enum_out", |heap, value, description| {
        let label = label_in(heap.str(description), value.as_i64()).map(str::to_owned);
        let label = label.ok_or_else(|| Error::internal("the number is of no label"))?;
        Ok(heap.push_str(&label))
    };
    /// The value with a label.
    TEXT_TO_ENUM = "enum_in", |heap, label, description| {
        Ok(Slot::from_i64(number_in(heap.str(description), heap.str(label))?))
    };
}

/// Those of all values from the first to the second; NULL stands for the end of the type.
pub(in super::super) fn range(
    heap: &mut kiln_storage::slot::Heap,
    arguments: &[Slot],
) -> Result<Slot> {
    let [low, high, all] = arguments else {
        return Err(Error::internal("wrong number of arguments for enum_range"));
    };
    let is_within = |value: &Slot| {
        let value = value.as_i64();
        (low.is_null() || low.as_i64() <= value) && (high.is_null() || value <= high.as_i64())
    };
    let within: Vec<Slot> = heap.array(*all).iter().copied().filter(is_within).collect();
    Ok(heap.push_array(&within))
}
