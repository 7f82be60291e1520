//! Arithmetic on NUMERICs in slots: in two words where operands and result have so few digits, and
//! else by [`Number`](kiln_storage::types::Number).

use kiln_storage::error::Error;
use kiln_storage::slot::{Heap, Slot};

use crate::ir::Arithmetic;

/// NUMERIC `a op b` of numbers that are not NULL, of any length.
///
/// # Errors
/// 22012 for a division by zero, 22003 beyond PostgreSQL's limits.
pub fn compute(heap: &mut Heap, op: Arithmetic, a: Slot, b: Slot) -> Result<Slot, Error> {
    if Slot::either_long(a, b) {
        return compute_long(heap, op, a, b);
    }
    let (left, right) = (a.as_decimal(), b.as_decimal());
    let value = match op {
        Arithmetic::Add => left.try_add(right),
        Arithmetic::Subtract => left.try_sub(right),
        Arithmetic::Multiply => left.try_mul(right),
        Arithmetic::Divide => left.try_div(right),
        Arithmetic::Remainder => left.try_rem(right),
    };
    match value {
        Ok(value) => Ok(Slot::from_decimal(value)),
        Err(_) => compute_long(heap, op, a, b),
    }
}

/// The same of numbers that are long, or whose result is.
#[cold]
fn compute_long(heap: &mut Heap, op: Arithmetic, a: Slot, b: Slot) -> Result<Slot, Error> {
    match op {
        Arithmetic::Add | Arithmetic::Subtract => heap.spend(length(a) + length(b))?,
        _ => heap.spend(product_work(a, b))?,
    }
    let (a, b) = (heap.number(a), heap.number(b));
    let value = match op {
        Arithmetic::Add => a.try_add(&b),
        Arithmetic::Subtract => a.try_sub(&b),
        Arithmetic::Multiply => a.try_mul(&b),
        Arithmetic::Divide => a.try_div(&b),
        Arithmetic::Remainder => a.try_rem(&b),
    };
    Ok(heap.push_number(&value?))
}

/// The bytes of a NUMERIC that is not NULL.
fn length(slot: Slot) -> usize {
    match slot.is_long() {
        true => slot.span().1,
        false => size_of::<Slot>(),
    }
}

/// What a multiplication of two NUMERICs that are not NULL goes through, or a division, for
/// [`Heap::spend`].
pub fn product_work(a: Slot, b: Slot) -> usize {
    let (a, b) = (length(a), length(b));
    a + b + a * b / 64
}

/// A NUMERIC that is not NULL rounded to `scale`, which must fit `precision`.
///
/// # Errors
/// 22003 when it does not.
pub fn rescale(heap: &mut Heap, slot: Slot, precision: u16, scale: i16) -> Result<Slot, Error> {
    if !slot.is_long()
        && let Ok(rescaled) = slot.as_decimal().rescale(precision, scale)
    {
        return Ok(Slot::from_decimal(rescaled));
    }
    heap.spend(product_work(slot, slot))?;
    let rescaled = heap.number(slot).rescale(precision, scale)?;
    Ok(heap.push_number(&rescaled))
}
