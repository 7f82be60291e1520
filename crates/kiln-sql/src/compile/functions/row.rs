//! Rows as values: made of their fields, taken apart, tested and printed.
//!
//! A function over rows of any type is given the type's description
//! ([`RowType`](kiln_storage::types::RowType)) as a text.

use kiln_procedure::frame::{push_value, to_value};
use kiln_storage::error::{Error, Result};
use kiln_storage::slot::row::{Form, all_null};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{DataType, RowType, Style, format_value_in};

use super::Named;
use super::cast::{parse_value_in, strict};
use super::cast_array::{convert, fit};

/// A row of the fields behind the text that says how each is packed.
pub(in super::super) const ROW: Named = ("row", pack);

/// As [`ROW`]; NULL where all fields are.
pub(in super::super) const ROW_UNLESS_NULL: Named = ("row_unless_null", |heap, arguments| {
    let fields = arguments.get(1..).unwrap_or_default();
    match fields.iter().all(|field| field.is_null()) {
        true => Ok(Slot::NULL),
        false => pack(heap, arguments),
    }
});

/// Whether a row is NULL, or all its fields are.
pub(in super::super) const ROW_IS_NULL: Named = ("row_is_null", |heap, arguments| {
    test(heap, arguments, false)
});

/// Whether a row is not NULL, and none of its fields is.
pub(in super::super) const ROW_IS_NOT_NULL: Named = ("row_is_not_null", |heap, arguments| {
    test(heap, arguments, true)
});

fn pack(heap: &mut Heap, arguments: &[Slot]) -> Result<Slot> {
    let Some((letters, fields)) = arguments.split_first() else {
        return Err(Error::internal("a row without its form"));
    };
    let letters = heap.str(*letters).to_owned();
    heap.pack_row(&letters, fields)
}

fn test(heap: &mut Heap, arguments: &[Slot], negated: bool) -> Result<Slot> {
    let [row] = arguments else {
        return Err(Error::internal(
            "wrong number of arguments for a test of a row",
        ));
    };
    Ok(Slot::from_bool(match row.is_null() {
        true => !negated,
        false => all_null(heap.bytes(*row), negated),
    }))
}

fn described(heap: &Heap, description: Slot) -> Result<DataType> {
    let parsed = heap.str(description).parse();
    parsed.map_err(|()| Error::internal("the type of a row has no description"))
}

strict! {
    /// A field, by its number.
    ROW_FIELD = "row_field", |heap, row, number| {
        let number = usize::try_from(number.as_i64()).unwrap_or(usize::MAX);
        heap.row_field(row, number)
    };
    /// A row as it is printed.
    ROW_TO_TEXT = "record_out", |heap, row, description, style| {
        let data_type = described(heap, description)?;
        let value = to_value(heap, row, &data_type);
        let text = format_value_in(&value, &data_type, &Style::read(heap.bytes(style)));
        super::check_length(text.len())?;
        Ok(heap.push_str(&text))
    };
    /// A row of one type as one of another type with as many fields.
    ROW_TO_ROW = "row_to_row", |heap, row, from, to, style| {
        let (from, to) = (described(heap, from)?, described(heap, to)?);
        match (from, to) {
            (DataType::Row(from), DataType::Row(to)) => change(heap, row, (&from, &to), style),
            _ => Err(Error::internal("the type of a row is no type of rows")),
        }
    };
    /// The row that a text writes.
    TEXT_TO_ROW = "record_in", |heap, text, description, style| {
        let data_type = described(heap, description)?;
        let style = Style::read(heap.bytes(style));
        let value = parse_value_in(heap.str(text), &data_type, &style)?;
        Ok(push_value(heap, &value))
    };
}

fn change(
    heap: &mut Heap,
    row: Slot,
    (from, to): (&RowType, &RowType),
    style: Slot,
) -> Result<Slot> {
    let mut slots = Vec::with_capacity(to.fields().len());
    for (number, (from, to)) in from.fields().iter().zip(to.fields()).enumerate() {
        let mut slot = heap.row_field(row, number)?;
        if !slot.is_null() && from.data_type != to.data_type {
            slot = convert(heap, slot, (&from.data_type, &to.data_type), style)?;
        }
        if !slot.is_null() {
            slot = fit(heap, slot, &to.data_type, false)?;
        }
        slots.push(slot);
    }
    heap.pack_row(&Form::letters(to), &slots)
}
