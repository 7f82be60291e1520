//! Arrays between registers, which have their elements, and rows, which have them as bytes.

use kiln_storage::error::Result;
use kiln_storage::slot::{Heap, Packing, Slot};
use kiln_storage::types::DataType;

use crate::ir::ScalarFunction;

/// The array that a row has as these bytes.
pub(crate) fn unpack(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    match arguments {
        [packed] if !packed.is_null() => heap.unpack_array(*packed),
        _ => Ok(Slot::NULL),
    }
}

/// What makes the bytes of an array.
pub(crate) fn pack(packing: Packing) -> ScalarFunction {
    fn packed(heap: &mut Heap, arguments: &[Slot], packing: Packing) -> Slot {
        match arguments {
            [array] if !array.is_null() => heap.pack_array(*array, packing),
            _ => Slot::NULL,
        }
    }
    match packing {
        Packing::Words => |heap, arguments| Ok(packed(heap, arguments, Packing::Words)),
        Packing::Decimals => |heap, arguments| Ok(packed(heap, arguments, Packing::Decimals)),
        Packing::Strings => |heap, arguments| Ok(packed(heap, arguments, Packing::Strings)),
    }
}

/// The value of type `data_type` of what a row has in such a column.
///
/// # Errors
/// XX001 for bytes that no array was packed to.
pub fn from_row(heap: &mut Heap, slot: Slot, data_type: &DataType) -> Result<Slot> {
    match data_type {
        DataType::Array(_) => unpack(heap, &[slot]),
        _ => Ok(slot),
    }
}

/// What a row has for a value of type `data_type`.
pub fn for_row(heap: &mut Heap, slot: Slot, data_type: &DataType) -> Slot {
    match data_type {
        DataType::Array(element) if !slot.is_null() => heap.pack_array(slot, Packing::of(element)),
        _ => slot,
    }
}
