//! Bits and bytes of BYTEA, and texts as bytes of an encoding.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::text::Encoding;

use super::cast::strict;
use super::signatures;

/// The place of one of so many bits or bytes.
///
/// # Errors
/// 2202E when there is none with this number.
fn place(number: Slot, count: usize) -> Result<usize> {
    let number = number.as_i64();
    let place = usize::try_from(number).ok().filter(|place| *place < count);
    place.ok_or_else(|| {
        let last = count as i64 - 1;
        let message = format!("index {number} out of valid range, 0..{last}");
        Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
    })
}

/// The bytes, one of which was changed.
fn changed(heap: &mut Heap, bytes: Slot, at: usize, change: impl FnOnce(u8) -> u8) -> Slot {
    let mut bytes = heap.bytes(bytes).to_vec();
    bytes[at] = change(bytes[at]);
    heap.push_bytes(&bytes)
}

/// # Errors
/// 22023 for an encoding that is not there.
fn encoding(name: &str, way: &str) -> Result<Encoding> {
    Encoding::of(name).ok_or_else(|| {
        let message = format!("invalid {way} encoding name \"{name}\"");
        Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

strict! {
    GET_BIT = "get_bit", |heap, bytes, number| {
        let bytes = heap.bytes(bytes);
        let at = place(number, bytes.len() * 8)?;
        Ok(Slot::from_i64(i64::from(bytes[at / 8] >> (at % 8) & 1)))
    };
    SET_BIT = "set_bit", |heap, bytes, number, bit| {
        let at = place(number, heap.bytes(bytes).len() * 8)?;
        let bit = u8::try_from(bit.as_i64()).ok().filter(|bit| *bit <= 1).ok_or_else(|| {
            Error::new(SqlState::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")
        })?;
        let change = |byte: u8| byte & !(1 << (at % 8)) | bit << (at % 8);
        Ok(changed(heap, bytes, at / 8, change))
    };
    GET_BYTE = "get_byte", |heap, bytes, number| {
        let bytes = heap.bytes(bytes);
        let at = place(number, bytes.len())?;
        Ok(Slot::from_i64(i64::from(bytes[at])))
    };
    SET_BYTE = "set_byte", |heap, bytes, number, byte| {
        let at = place(number, heap.bytes(bytes).len())?;
        Ok(changed(heap, bytes, at, |_| byte.as_i64() as u8))
    };
    BIT_COUNT = "bit_count", |heap, bytes| {
        let ones = heap.bytes(bytes).iter().map(|byte| i64::from(byte.count_ones()));
        Ok(Slot::from_i64(ones.sum()))
    };
    CONVERT_FROM = "convert_from", |heap, bytes, name| {
        let text = encoding(heap.str(name), "source")?.decode(heap.bytes(bytes))?;
        Ok(heap.push_str(&text))
    };
    CONVERT_TO = "convert_to", |heap, text, name| {
        let bytes = encoding(heap.str(name), "destination")?.encode(heap.str(text))?;
        Ok(heap.push_bytes(&bytes))
    };
}

signatures! {
    "get_bit"(Bytea, Int8) -> Int4 = GET_BIT;
    "set_bit"(Bytea, Int8, Int4) -> Bytea = SET_BIT;
    "get_byte"(Bytea, Int4) -> Int4 = GET_BYTE;
    "set_byte"(Bytea, Int4, Int4) -> Bytea = SET_BYTE;
    "bit_count"(Bytea) -> Int8 = BIT_COUNT;
    "convert_from"(Bytea, Text) -> Text = CONVERT_FROM;
    "convert_to"(Text, Text) -> Bytea = CONVERT_TO;
}
