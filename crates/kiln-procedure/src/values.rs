//! Values in slots: put there and taken out, compared and hashed.

use std::cmp::Ordering;

use kiln_storage::slot::row::{Field, Fields, Form};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::{
    DataType, Decimal, EnumValue, Interval, Number, ObjectName, Representation, RowValue, Value,
    json,
};

use crate::ir::Class;

/// Puts a value into a slot, with its bytes and elements in `heap`.
pub fn push_value(heap: &mut Heap, value: &Value) -> Slot {
    match value {
        Value::Null => Slot::NULL,
        Value::Boolean(value) => Slot::from_bool(*value),
        Value::SmallInt(value) => Slot::from_i64(*value as i64),
        Value::Integer(value) => Slot::from_i64(*value as i64),
        Value::BigInt(value) => Slot::from_i64(*value),
        Value::Numeric(value) => Slot::from_decimal(*value),
        Value::LongNumeric(value) => heap.push_number(value),
        Value::Double(value) => Slot::from_f64(*value),
        Value::Text(value) => heap.push_str(value),
        Value::Bytea(value) => heap.push_bytes(value),
        Value::Date(days) => Slot::from_i64(*days as i64),
        Value::Timestamp(microseconds)
        | Value::TimestampTz(microseconds)
        | Value::Time(microseconds) => Slot::from_i64(*microseconds),
        Value::Uuid(bytes) => heap.push_bytes(bytes),
        Value::Interval(interval) => heap.push_interval(*interval),
        Value::Array(values) => {
            let slots: Vec<Slot> = values.iter().map(|value| push_value(heap, value)).collect();
            heap.push_array(&slots)
        }
        Value::Object(object) => heap.push_bytes(&object.to_bytes()),
        Value::Enum(value) => Slot::from_i64(value.number),
        Value::Row(row) => {
            let fields: Vec<Slot> = row.fields.iter().map(|it| push_value(heap, it)).collect();
            let packed = heap.pack_row(&Form::letters(&row.of), &fields);
            // A value that was made has less than a gigabyte.
            packed.unwrap_or(Slot::NULL)
        }
    }
}

/// The value in a slot of `data_type`.
pub fn to_value(heap: &Heap, slot: Slot, data_type: &DataType) -> Value {
    if slot.is_null() {
        return Value::Null;
    }
    match data_type {
        DataType::SmallInt => Value::SmallInt(slot.as_i64() as i16),
        DataType::Integer => Value::Integer(slot.as_i64() as i32),
        DataType::BigInt => Value::BigInt(slot.as_i64()),
        DataType::Numeric { .. } => match slot.is_long() {
            false => Value::Numeric(slot.as_decimal()),
            true => Value::LongNumeric(Box::new(heap.number(slot))),
        },
        DataType::Double => Value::Double(slot.as_f64()),
        DataType::Boolean => Value::Boolean(slot.as_bool()),
        DataType::Char(_) | DataType::VarChar(_) | DataType::Text => {
            Value::Text(heap.str(slot).to_owned())
        }
        DataType::Bytea => Value::Bytea(heap.bytes(slot).to_vec()),
        DataType::Date => Value::Date(slot.as_i64() as i32),
        DataType::Timestamp(_) => Value::Timestamp(slot.as_i64()),
        DataType::TimestampTz(_) => Value::TimestampTz(slot.as_i64()),
        DataType::Time(_) => Value::Time(slot.as_i64()),
        DataType::Uuid => Value::Uuid(
            heap.bytes(slot)
                .try_into()
                .expect("a UUID has sixteen bytes"),
        ),
        DataType::Interval(_) => Value::Interval(heap.interval(slot)),
        DataType::Enum(of) => Value::Enum(EnumValue {
            number: slot.as_i64(),
            of: of.clone(),
        }),
        DataType::Row(of) => {
            let mut scratch = Heap::new();
            let row = scratch.push_bytes(heap.bytes(slot));
            let fields = of.fields().iter().enumerate().map(|(number, field)| {
                let slot = scratch.row_field(row, number).unwrap_or(Slot::NULL);
                to_value(&scratch, slot, &field.data_type)
            });
            let fields = fields.collect();
            RowValue::value(of, fields)
        }
        DataType::Array(element) => {
            let elements = heap.array(slot).iter();
            Value::Array(
                elements
                    .map(|slot| to_value(heap, *slot, element))
                    .collect(),
            )
        }
        DataType::Catalog(catalog) => match catalog.representation() {
            Representation::Number => Value::BigInt(slot.as_i64()),
            Representation::Text => Value::Text(heap.str(slot).to_owned()),
            Representation::Double => Value::Double(slot.as_f64()),
            Representation::Vector => {
                let element = catalog.element().unwrap_or(DataType::SmallInt);
                to_value(heap, slot, &DataType::array(element))
            }
            Representation::Object => {
                let object = ObjectName::from_bytes(heap.bytes(slot));
                Value::Object(Box::new(object))
            }
        },
    }
}

/// Compares two slots of a class; NULLs are handled by the caller.
#[inline]
pub fn compare(heap: &Heap, class: Class, left: Slot, right: Slot) -> std::cmp::Ordering {
    match class {
        Class::Integer => left.as_i64().cmp(&right.as_i64()),
        Class::Decimal => match Slot::either_long(left, right) {
            false => left.as_decimal().cmp(&right.as_decimal()),
            true => compare_long(heap, left, right),
        },
        Class::Double => compare_doubles(left.as_f64(), right.as_f64()),
        Class::Bytes => heap.bytes(left).cmp(heap.bytes(right)),
        Class::Interval => heap.interval(left).cmp(&heap.interval(right)),
        Class::Json => json::compare_texts(heap.str(left), heap.str(right)),
        Class::Row => compare_rows(heap.bytes(left), heap.bytes(right)),
        Class::Integers
        | Class::Decimals
        | Class::Doubles
        | Class::Texts
        | Class::Intervals
        | Class::Rows => compare_arrays(heap, class, left, right),
    }
}

/// PostgreSQL: NaN equals itself and is greater than every number.
#[inline]
fn compare_doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

#[cold]
fn compare_long(heap: &Heap, left: Slot, right: Slot) -> std::cmp::Ordering {
    heap.number(left).cmp(&heap.number(right))
}

fn hash_decimal(value: Decimal) -> u64 {
    let normal = value.normalize();
    fold(normal.mantissa() as u64 ^ (normal.scale() as u64) << 56)
}

/// A number with zeros behind its last digit may be equal to one of few digits.
#[cold]
fn hash_long(number: Number) -> u64 {
    let number = number.normalize();
    match number.to_decimal() {
        Some(decimal) => hash_decimal(decimal),
        None => {
            let mut bytes = Vec::new();
            number.append_bytes_to(&mut bytes);
            hash_bytes(&bytes)
        }
    }
}

/// As in PostgreSQL (`array_cmp`), NULL elements are equal to each other and after all others.
#[cold]
fn compare_arrays(heap: &Heap, class: Class, left: Slot, right: Slot) -> std::cmp::Ordering {
    let class = class.of_elements().expect("a class of arrays");
    let (left, right) = (heap.array(left), heap.array(right));
    let pairs = left.iter().zip(right);
    let orders = pairs.map(|(left, right)| match (left.is_null(), right.is_null()) {
        (false, false) => compare(heap, class, *left, *right),
        (left, right) => left.cmp(&right),
    });
    let mut unequal = orders.filter(|order| order.is_ne());
    unequal.next().unwrap_or(left.len().cmp(&right.len()))
}

/// As in PostgreSQL (`record_cmp`), NULL fields are equal to each other and after all others.
#[cold]
fn compare_rows(left: &[u8], right: &[u8]) -> Ordering {
    compare_each(Fields::of(left), Fields::of(right))
}

fn compare_each(left: Fields<'_>, right: Fields<'_>) -> Ordering {
    let count = left.left().cmp(&right.left());
    let orders = left
        .zip(right)
        .map(|(left, right)| compare_fields(left, right));
    let mut unequal = orders.filter(|order| order.is_ne());
    unequal.next().unwrap_or(count)
}

/// Two fields of one form; what has another one is of a row that is being changed.
fn compare_fields(left: Field<'_>, right: Field<'_>) -> Ordering {
    match (left, right) {
        (Field::Null, Field::Null) => Ordering::Equal,
        (Field::Null, _) => Ordering::Greater,
        (_, Field::Null) => Ordering::Less,
        (Field::Word(left), Field::Word(right)) => left.cmp(&right),
        (Field::Decimal(left), Field::Decimal(right)) => left.as_decimal().cmp(&right.as_decimal()),
        (Field::Double(left), Field::Double(right)) => compare_doubles(left, right),
        (Field::Bytes(left), Field::Bytes(right)) => left.cmp(right),
        (Field::Interval(left), Field::Interval(right)) => left.cmp(&right),
        (Field::Json(left), Field::Json(right)) => json::compare_texts(text(left), text(right)),
        (Field::Row(left), Field::Row(right)) => compare_rows(left, right),
        (Field::Array(left), Field::Array(right)) => compare_each(left, right),
        (left, right) => number_of(left).cmp(&number_of(right)),
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("null")
}

fn number_of(field: Field<'_>) -> Option<Number> {
    match field {
        Field::Decimal(slot) => Some(slot.as_decimal().into()),
        Field::Number(bytes) => Number::from_bytes(bytes),
        _ => None,
    }
}

/// A hash for which rows that [`compare_rows`] calls equal are equal.
#[cold]
fn hash_fields(fields: Fields<'_>) -> u64 {
    fields.fold(0, |state: u64, field| {
        let hash = match field {
            Field::Null => MULTIPLIER,
            Field::Word(word) => fold(word as u64),
            Field::Decimal(slot) => hash_decimal(slot.as_decimal()),
            Field::Number(_) => number_of(field).map_or(0, hash_long),
            Field::Double(value) => hash_double(value),
            Field::Bytes(bytes) => hash_bytes(bytes),
            Field::Interval(interval) => hash_interval(interval),
            Field::Json(bytes) => hash_bytes(json::normal_form(text(bytes)).as_bytes()),
            Field::Row(row) => hash_fields(Fields::of(row)),
            Field::Array(elements) => hash_fields(elements),
        };
        fold(state.rotate_left(5) ^ hash)
    })
}

fn hash_double(value: f64) -> u64 {
    let value = value + 0.0;
    fold(if value.is_nan() {
        u64::MAX
    } else {
        value.to_bits()
    })
}

fn hash_interval(interval: Interval) -> u64 {
    let days = interval.months as i128 * 30 + interval.days as i128;
    fold((days * 86_400_000_000 + interval.microseconds as i128) as u64)
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

fn fold(value: u64) -> u64 {
    let mixed = value.wrapping_mul(MULTIPLIER);
    mixed ^ (mixed >> 32)
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = fold(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = fold(state ^ u64::from_le_bytes(word));
    }
    state
}

/// A hash for which slots that [`compare`] calls equal are equal; NULLs are.
pub fn hash(heap: &Heap, class: Class, slot: Slot) -> u64 {
    if slot.is_null() {
        return MULTIPLIER;
    }
    match class {
        Class::Integer => fold(slot.as_i64() as u64),
        Class::Decimal if slot.is_long() => hash_long(heap.number(slot)),
        Class::Decimal => hash_decimal(slot.as_decimal()),
        Class::Double => hash_double(slot.as_f64()),
        Class::Bytes => hash_bytes(heap.bytes(slot)),
        Class::Json => hash_bytes(json::normal_form(heap.str(slot)).as_bytes()),
        // Intervals of one length may be written in several ways; their hash must not tell.
        Class::Interval => hash_interval(heap.interval(slot)),
        Class::Row => hash_fields(Fields::of(heap.bytes(slot))),
        Class::Integers
        | Class::Decimals
        | Class::Doubles
        | Class::Texts
        | Class::Intervals
        | Class::Rows => {
            let class = class.of_elements().expect("a class of arrays");
            let elements = heap.array(slot).iter();
            elements.fold(0, |state: u64, element| {
                fold(state.rotate_left(5) ^ hash(heap, class, *element))
            })
        }
    }
}
