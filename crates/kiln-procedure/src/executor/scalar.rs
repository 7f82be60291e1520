//! Instructions: scalar work on registers.

use kiln_storage::error::{Error, SqlState};
use kiln_storage::slot::{Heap, Slot};
use kiln_storage::types::Decimal;

use super::{Executor, Flow};
use crate::access::Access;
use crate::frame;
use crate::ir::*;

impl<'a, A: Access> Executor<'a, A> {
    #[inline(always)]
    pub(super) fn scalar(&mut self, instruction: &'a Instruction) -> Flow {
        match instruction {
            Instruction::Move { target, source } => self.set(*target, self.get(*source)),
            Instruction::SetNull { target } => self.set(*target, Slot::NULL),
            Instruction::Integer {
                op,
                width,
                target,
                left,
                right,
            } => {
                let operands = (self.get(*left), self.get(*right));
                let slot = strict2(operands, |a, b| {
                    integer(*op, *width, a.as_i64(), b.as_i64())
                });
                self.set(*target, attempt!(self, slot));
            }
            Instruction::Decimal {
                op,
                target,
                left,
                right,
            } => {
                let operands = (self.get(*left), self.get(*right));
                let slot = strict2(operands, |a, b| {
                    decimal(*op, a.as_decimal(), b.as_decimal())
                });
                self.set(*target, attempt!(self, slot));
            }
            Instruction::Double {
                op,
                target,
                left,
                right,
            } => {
                let operands = (self.get(*left), self.get(*right));
                let slot = strict2(operands, |a, b| double(*op, a.as_f64(), b.as_f64()));
                self.set(*target, attempt!(self, slot));
            }
            Instruction::Compare {
                op,
                class,
                target,
                left,
                right,
            } => {
                let slot = self.compare(*op, *class, self.get(*left), self.get(*right));
                self.set(*target, slot);
            }
            Instruction::IsNull {
                target,
                source,
                negated,
            } => {
                let null = self.get(*source).is_null();
                self.set(*target, Slot::from_bool(null != *negated));
            }
            Instruction::Not { target, source } => {
                let slot = self.get(*source);
                self.set(
                    *target,
                    strict(slot, |slot| Slot::from_bool(!slot.as_bool())),
                );
            }
            Instruction::And {
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let false_ = |slot: Slot| !slot.is_null() && !slot.as_bool();
                let slot = if false_(a) || false_(b) {
                    Slot::FALSE
                } else if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    Slot::TRUE
                };
                self.set(*target, slot);
            }
            Instruction::Or {
                target,
                left,
                right,
            } => {
                let (a, b) = (self.get(*left), self.get(*right));
                let slot = if a.is_true() || b.is_true() {
                    Slot::TRUE
                } else if Slot::either_null(a, b) {
                    Slot::NULL
                } else {
                    Slot::FALSE
                };
                self.set(*target, slot);
            }
            Instruction::IntegerToDecimal { target, source } => {
                let convert = |slot: Slot| Slot::from_decimal(Decimal::from_i64(slot.as_i64()));
                self.set(*target, strict(self.get(*source), convert));
            }
            Instruction::IntegerToDouble { target, source } => {
                let convert = |slot: Slot| Slot::from_f64(slot.as_i64() as f64);
                self.set(*target, strict(self.get(*source), convert));
            }
            Instruction::CheckWidth {
                width,
                target,
                source,
            } => {
                let slot = strict1(self.get(*source), |slot| {
                    fit(*width, slot.as_i64()).map(|()| slot)
                });
                self.set(*target, attempt!(self, slot));
            }
            Instruction::Rescale {
                target,
                source,
                precision,
                scale,
            } => {
                let slot = strict1(self.get(*source), |slot| {
                    let rescaled = slot.as_decimal().rescale(*precision, *scale)?;
                    Ok(Slot::from_decimal(rescaled))
                });
                self.set(*target, attempt!(self, slot));
            }
            Instruction::Concat {
                target,
                left,
                right,
            } => {
                let operands = (self.get(*left), self.get(*right));
                let heap = &mut self.frame.memory.heap;
                let slot = strict2(operands, |a, b| Ok(heap.concat(a, b)));
                self.set(*target, attempt!(self, slot));
            }
            Instruction::Element {
                target,
                array,
                index,
            } => {
                let (array, index) = (self.get(*array), self.get(*index));
                self.set(*target, element(&self.frame.memory.heap, array, index));
            }
            Instruction::ArrayLength { target, array } => {
                let length = |array: Slot| Slot::from_i64(array.span().1 as i64);
                self.set(*target, strict(self.get(*array), length));
            }
            Instruction::Call {
                function,
                target,
                arguments,
                ..
            } => {
                let mut values = [Slot::NULL; ARGUMENTS_MAX];
                let values = &mut values[..arguments.len()];
                for (value, register) in values.iter_mut().zip(arguments) {
                    *value = self.get(*register);
                }
                let slot = attempt!(self, function(&mut self.frame.memory.heap, values));
                self.set(*target, slot);
            }
            Instruction::Require {
                condition,
                null_fails,
                error,
            } => {
                let slot = self.get(*condition);
                let fails = if slot.is_null() {
                    *null_fails
                } else {
                    !slot.as_bool()
                };
                if fails {
                    return self.raise(error);
                }
            }
            Instruction::RequireNotNull { source, error } => {
                if self.get(*source).is_null() {
                    return self.raise(error);
                }
            }
        }
        Flow::Next
    }

    #[inline(always)]
    fn compare(&self, op: Comparison, class: Class, left: Slot, right: Slot) -> Slot {
        if Slot::either_null(left, right) {
            let both = left.is_null() && right.is_null();
            return match op {
                Comparison::Distinct => Slot::from_bool(!both),
                Comparison::NotDistinct => Slot::from_bool(both),
                _ => Slot::NULL,
            };
        }
        let ordering = frame::compare(&self.frame.memory.heap, class, left, right);
        Slot::from_bool(match op {
            Comparison::Equal | Comparison::NotDistinct => ordering.is_eq(),
            Comparison::NotEqual | Comparison::Distinct => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        })
    }
}

/// The most arguments of a builtin; front ends combine longer lists.
pub const ARGUMENTS_MAX: usize = 16;

/// A function of one value that cannot fail; NULL of NULL.
#[inline(always)]
fn strict(slot: Slot, compute: impl FnOnce(Slot) -> Slot) -> Slot {
    if slot.is_null() { slot } else { compute(slot) }
}

/// A function of one value; NULL of NULL.
#[inline(always)]
fn strict1(slot: Slot, compute: impl FnOnce(Slot) -> Result<Slot, Error>) -> Result<Slot, Error> {
    if slot.is_null() {
        Ok(slot)
    } else {
        compute(slot)
    }
}

/// A function of two values; NULL when one of them is.
#[inline(always)]
fn strict2(
    (a, b): (Slot, Slot),
    compute: impl FnOnce(Slot, Slot) -> Result<Slot, Error>,
) -> Result<Slot, Error> {
    if Slot::either_null(a, b) {
        Ok(Slot::NULL)
    } else {
        compute(a, b)
    }
}

/// The element of `array` at `index`, from 1; NULL outside.
#[inline(always)]
pub(super) fn element(heap: &Heap, array: Slot, index: Slot) -> Slot {
    if Slot::either_null(array, index) {
        return Slot::NULL;
    }
    let position = index.as_i64().checked_sub(1);
    let position = position.and_then(|position| usize::try_from(position).ok());
    position
        .and_then(|at| heap.array(array).get(at))
        .copied()
        .unwrap_or(Slot::NULL)
}

#[inline(always)]
fn fit(width: Width, value: i64) -> Result<(), Error> {
    let fits = match width {
        Width::Two => value == value as i16 as i64,
        Width::Four => value == value as i32 as i64,
        Width::Eight => true,
    };
    if fits {
        Ok(())
    } else {
        Err(out_of_range(width))
    }
}

#[cold]
fn out_of_range(width: Width) -> Error {
    let name = match width {
        Width::Two => "smallint",
        Width::Four => "integer",
        Width::Eight => "bigint",
    };
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{name} out of range"),
    )
}

#[cold]
fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[inline(always)]
fn integer(op: Arithmetic, width: Width, a: i64, b: i64) -> Result<Slot, Error> {
    let value = match op {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide if b == 0 => return Err(division_by_zero()),
        Arithmetic::Divide => a.checked_div(b),
        Arithmetic::Remainder if b == 0 => return Err(division_by_zero()),
        // The least integer modulo -1 is 0, whatever the machine thinks of the quotient.
        Arithmetic::Remainder => Some(a.wrapping_rem(b)),
    };
    let value = value.ok_or_else(|| out_of_range(width))?;
    fit(width, value)?;
    Ok(Slot::from_i64(value))
}

#[inline(always)]
fn decimal(op: Arithmetic, a: Decimal, b: Decimal) -> Result<Slot, Error> {
    let value = match op {
        Arithmetic::Add => a.try_add(b),
        Arithmetic::Subtract => a.try_sub(b),
        Arithmetic::Multiply => a.try_mul(b),
        Arithmetic::Divide => a.try_div(b),
        Arithmetic::Remainder => a.try_rem(b),
    };
    Ok(Slot::from_decimal(value?))
}

fn double(op: Arithmetic, a: f64, b: f64) -> Result<Slot, Error> {
    let range = |message: &'static str| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
    let value = match op {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        // PostgreSQL divides NaN by anything.
        Arithmetic::Divide | Arithmetic::Remainder if b == 0.0 && !a.is_nan() => {
            return Err(division_by_zero());
        }
        Arithmetic::Divide => a / b,
        Arithmetic::Remainder => a % b,
    };
    if value.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(range("value out of range: overflow"));
    }
    let product = matches!(op, Arithmetic::Multiply | Arithmetic::Divide);
    if value == 0.0 && product && a != 0.0 && b.is_finite() && (b != 0.0) {
        return Err(range("value out of range: underflow"));
    }
    Ok(Slot::from_f64(value))
}
