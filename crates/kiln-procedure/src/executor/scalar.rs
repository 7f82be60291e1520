//! Scalar work on registers.

use kiln_storage::error::{Error, SqlState};
use kiln_storage::slot::{Heap, Memory, Slot};

use crate::code::Call;
use crate::frame;
use crate::ir::*;
use crate::number;

/// Carries out an instruction that has no op of its own.
pub(crate) fn compute(memory: &mut Memory, instruction: &Instruction) -> Result<(), Error> {
    let get = |register: Reg| memory.slots[register.0 as usize];
    let (target, slot) = match *instruction {
        Instruction::Integer {
            op,
            width,
            target,
            left,
            right,
        } => {
            let divide = |a: Slot, b: Slot| divide(op, width, a.as_i64(), b.as_i64());
            (target, strict(get(left), get(right), divide)?)
        }
        Instruction::Double {
            op,
            target,
            left,
            right,
        } => {
            let compute = |a: Slot, b: Slot| double(op, a.as_f64(), b.as_f64());
            (target, strict(get(left), get(right), compute)?)
        }
        Instruction::Compare {
            op,
            class,
            target,
            left,
            right,
        } => {
            let slot = compare(&memory.heap, op, class, get(left), get(right));
            (target, slot)
        }
        Instruction::Not { target, source } => {
            let source = get(source);
            let not = |slot: Slot, _| Ok(Slot::from_bool(!slot.as_bool()));
            (target, strict(source, source, not)?)
        }
        Instruction::And {
            target,
            left,
            right,
        } => {
            let (a, b) = (get(left), get(right));
            let slot = if a.is_false() || b.is_false() {
                Slot::FALSE
            } else if Slot::either_null(a, b) {
                Slot::NULL
            } else {
                Slot::TRUE
            };
            (target, slot)
        }
        Instruction::Or {
            target,
            left,
            right,
        } => {
            let (a, b) = (get(left), get(right));
            let slot = if a.is_true() || b.is_true() {
                Slot::TRUE
            } else if Slot::either_null(a, b) {
                Slot::NULL
            } else {
                Slot::FALSE
            };
            (target, slot)
        }
        Instruction::IntegerToDouble { target, source } => {
            let source = get(source);
            let convert = |slot: Slot, _| Ok(Slot::from_f64(slot.as_i64() as f64));
            (target, strict(source, source, convert)?)
        }
        Instruction::ArrayLength { target, array } => {
            let array = get(array);
            let length = |array: Slot, _| Ok(Slot::from_i64(array.span().1 as i64));
            (target, strict(array, array, length)?)
        }
        Instruction::AnyNull {
            target,
            ref sources,
        } => {
            let any = sources.iter().any(|source| get(*source).is_null());
            (target, Slot::from_bool(any))
        }
        Instruction::Consult {
            ref function,
            target,
            ref arguments,
        } => {
            let arguments: Vec<Slot> = arguments.iter().map(|register| get(*register)).collect();
            let Memory { heap, draws, .. } = &mut *memory;
            (target, function.call(heap, draws.as_deref(), &arguments)?)
        }
        ref other => unreachable!("{other:?} has an op of its own"),
    };
    memory.slots[target.0 as usize] = slot;
    Ok(())
}

/// Calls a builtin.
pub(crate) fn call(memory: &mut Memory, call: &Call) -> Result<(), Error> {
    let Memory { slots, heap, .. } = memory;
    let mut get = call
        .arguments
        .iter()
        .map(|register| slots[register.0 as usize]);
    // Most builtins have one or two arguments: no array is filled for these.
    let result = match call.arguments.len() {
        1 => (call.function)(heap, &[get.next().unwrap_or(Slot::NULL)]),
        2 => {
            let values = [
                get.next().unwrap_or(Slot::NULL),
                get.next().unwrap_or(Slot::NULL),
            ];
            (call.function)(heap, &values)
        }
        _ => {
            let mut values = [Slot::NULL; ARGUMENTS_MAX];
            let values = &mut values[..call.arguments.len()];
            for (value, argument) in values.iter_mut().zip(get) {
                *value = argument;
            }
            (call.function)(heap, values)
        }
    };
    slots[call.target.0 as usize] = result?;
    if !heap.is_small() && !call.stretches.is_empty() {
        let length = |register: &Reg| slots[register.0 as usize].span().1;
        heap.spend(call.stretches.iter().map(length).sum())?;
    }
    Ok(())
}

/// A function of two values; NULL when one of them is.
#[inline(always)]
fn strict(
    a: Slot,
    b: Slot,
    compute: impl FnOnce(Slot, Slot) -> Result<Slot, Error>,
) -> Result<Slot, Error> {
    if Slot::either_null(a, b) {
        Ok(Slot::NULL)
    } else {
        compute(a, b)
    }
}

/// The result of integer arithmetic on `operands`: NULL when one of them is, and an error when it
/// does not fit its width, or not even 64 bits.
#[inline(always)]
pub(crate) fn sized(
    (a, b): (Slot, Slot),
    result: Option<i64>,
    width: Width,
) -> Result<Slot, Error> {
    strict(a, b, |_, _| match result {
        Some(value) if fits(width, value) => Ok(Slot::from_i64(value)),
        _ => Err(out_of_range(width)),
    })
}

/// The digits and the scale of a NUMERIC that is not NULL, when 64 bits hold the digits.
#[inline(always)]
fn small(slot: Slot) -> Option<(i64, u8)> {
    let (low, high) = slot.words();
    let fits = high as i64 >> 16 == low as i64 >> 63;
    (fits && !slot.is_null_or_long()).then_some((low as i64, (high >> 8) as u8 & 0x3f))
}

/// The opposite.
#[inline(always)]
fn from_small(digits: i64, scale: u8) -> Slot {
    let high = (digits >> 63) as u64;
    Slot::from_words(digits as u64, high << 16 | u64::from(scale) << 8)
}

/// NUMERIC `a op b` for numbers of a few digits, if it is one itself: money, mostly. For all others
/// [`any_decimal`] answers.
#[inline(always)]
pub(crate) fn small_decimal(op: Arithmetic, a: Slot, b: Slot) -> Option<Slot> {
    let ((left, left_scale), (right, right_scale)) = (small(a)?, small(b)?);
    let (digits, scale) = match op {
        Arithmetic::Add if left_scale == right_scale => (left.checked_add(right)?, left_scale),
        Arithmetic::Subtract if left_scale == right_scale => (left.checked_sub(right)?, left_scale),
        Arithmetic::Multiply => (left.checked_mul(right)?, left_scale + right_scale),
        _ => return None,
    };
    // Sixty-three places are the most.
    (scale < 64).then(|| from_small(digits, scale))
}

/// NUMERIC `a op b`, of the words of two slots: by value, so that a caller need not put them into
/// memory for the few calls that come here.
#[inline(never)]
pub(crate) fn any_decimal(
    heap: &mut Heap,
    op: Arithmetic,
    a: (u64, u64),
    b: (u64, u64),
) -> Result<Slot, Error> {
    let (a, b) = (Slot::from_words(a.0, a.1), Slot::from_words(b.0, b.1));
    match aligned_decimal(op, a, b) {
        Some(slot) => Ok(slot),
        None => strict(a, b, |a, b| number::compute(heap, op, a, b)),
    }
}

/// A sum or a difference of numbers of a few digits with different scales, `1 - discount`, if it is
/// such a number itself.
#[inline(always)]
fn aligned_decimal(op: Arithmetic, a: Slot, b: Slot) -> Option<Slot> {
    let ((left, left_scale), (right, right_scale)) = (small(a)?, small(b)?);
    let scale = left_scale.max(right_scale);
    let aligned = |digits: i64, known: u8| {
        let power = POWERS.get((scale - known) as usize)?;
        digits.checked_mul(*power as i64)
    };
    let (left, right) = (aligned(left, left_scale)?, aligned(right, right_scale)?);
    let digits = match op {
        Arithmetic::Add => left.checked_add(right)?,
        Arithmetic::Subtract => left.checked_sub(right)?,
        _ => return None,
    };
    Some(from_small(digits, scale))
}

/// Whether a NUMERIC of few digits has `scale` already and fits `precision`. If not, [`rescale`]
/// says what becomes of it.
#[inline(always)]
pub(crate) fn is_scaled(slot: Slot, precision: u16, scale: i16) -> bool {
    small(slot).is_some_and(|(digits, known)| {
        let limit = POWERS.get(precision as usize);
        i16::from(known) == scale && limit.is_some_and(|limit| digits.unsigned_abs() < *limit)
    })
}

/// `POWERS[k]` is `10^k`.
const POWERS: [u64; 19] = {
    let mut powers = [1; 19];
    let mut exponent = 1;
    while exponent < 19 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// A NUMERIC rounded to `scale`, which must fit `precision`; of the words of a slot, see
/// [`any_decimal`].
#[inline(never)]
pub(crate) fn rescale(
    heap: &mut Heap,
    words: (u64, u64),
    precision: u16,
    scale: i16,
) -> Result<Slot, Error> {
    let slot = Slot::from_words(words.0, words.1);
    strict(slot, slot, |slot, _| {
        number::rescale(heap, slot, precision, scale)
    })
}

fn compare(heap: &Heap, op: Comparison, class: Class, left: Slot, right: Slot) -> Slot {
    if Slot::either_null(left, right) {
        let both = left.is_null() && right.is_null();
        return match op {
            Comparison::Distinct => Slot::from_bool(!both),
            Comparison::NotDistinct => Slot::from_bool(both),
            _ => Slot::NULL,
        };
    }
    let ordering = frame::compare(heap, class, left, right);
    Slot::from_bool(match op {
        Comparison::Equal | Comparison::NotDistinct => ordering.is_eq(),
        Comparison::NotEqual | Comparison::Distinct => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    })
}

/// Whether a counting loop from `first` to `last` has an iteration.
///
/// # Errors
/// 22004 for a NULL, 22023 for a step below 1.
pub(super) fn count_from(
    first: Slot,
    last: Slot,
    step: Slot,
    reverse: bool,
) -> Result<bool, Error> {
    for (slot, name) in [
        (first, "lower bound"),
        (last, "upper bound"),
        (step, "BY value"),
    ] {
        if slot.is_null() {
            let message = format!("{name} of FOR loop cannot be null");
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
    }
    if step.as_i64() <= 0 {
        let message = "BY value of FOR loop must be greater than zero";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(match reverse {
        false => first.as_i64() <= last.as_i64(),
        true => first.as_i64() >= last.as_i64(),
    })
}

/// The elements that a loop over `array` visits.
///
/// # Errors
/// 22004 for NULL.
pub(super) fn elements(heap: &Heap, array: Slot) -> Result<&[Slot], Error> {
    if array.is_null() {
        let message = "FOREACH expression must not be null";
        return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    Ok(heap.array(array))
}

/// The element of `array` at `index`, from 1; NULL outside.
#[inline(always)]
pub(crate) fn element(heap: &Heap, array: Slot, index: Slot) -> Slot {
    if Slot::either_null(array, index) {
        return Slot::NULL;
    }
    // What is below 1 becomes a position that no array has.
    let position = (index.as_i64() as usize).wrapping_sub(1);
    heap.element(array, position).unwrap_or(Slot::NULL)
}

/// Whether an integer fits a width.
#[inline(always)]
fn fits(width: Width, value: i64) -> bool {
    match width {
        Width::Two => value == value as i16 as i64,
        Width::Four => value == value as i32 as i64,
        Width::Eight => true,
    }
}

/// # Errors
/// 22003 unless the integer fits the width.
#[inline(always)]
pub(crate) fn fit(width: Width, value: i64) -> Result<(), Error> {
    match fits(width, value) {
        true => Ok(()),
        false => Err(out_of_range(width)),
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

/// Integer `a / b` or `a % b`.
fn divide(op: Arithmetic, width: Width, a: i64, b: i64) -> Result<Slot, Error> {
    if b == 0 {
        return Err(Error::division_by_zero());
    }
    let value = match op {
        Arithmetic::Divide => a.checked_div(b),
        // The least integer modulo -1 is 0, whatever the machine thinks of the quotient.
        _ => Some(a.wrapping_rem(b)),
    };
    let value = value.ok_or_else(|| out_of_range(width))?;
    fit(width, value)?;
    Ok(Slot::from_i64(value))
}

fn double(op: Arithmetic, a: f64, b: f64) -> Result<Slot, Error> {
    let range = |message: &'static str| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
    let value = match op {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        // PostgreSQL divides NaN by anything.
        Arithmetic::Divide | Arithmetic::Remainder if b == 0.0 && !a.is_nan() => {
            return Err(Error::division_by_zero());
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

#[cfg(test)]
mod tests {
    use kiln_platform::random::Random;
    use kiln_storage::types::Decimal;

    use super::*;

    /// A number of any length and scale, now and then NULL.
    fn any_number(random: &mut Random) -> Slot {
        if random.below(16) == 0 {
            return Slot::NULL;
        }
        let wide = i128::from(random.next_u64() as i64) * i128::from(random.next_u64() as u32);
        let digits = wide >> random.below(96);
        let scale = random.below(40) as u8 & [0x3f, 2][random.below(2)];
        Slot::from_decimal(Decimal::new(digits, scale).expect("95 bits fit"))
    }

    /// The ways for few digits give what the general ones do, to the scale.
    #[test]
    fn short_ways_lead_where_the_long_ones_do() {
        let seed = 1;
        let mut random = Random::from_seed(seed);
        let (mut short, rounds, mut heap) = (0, 200_000, Heap::new());
        for _ in 0..rounds {
            let (a, b) = (any_number(&mut random), any_number(&mut random));
            for op in [
                Arithmetic::Add,
                Arithmetic::Subtract,
                Arithmetic::Multiply,
                Arithmetic::Remainder,
            ] {
                heap.clear();
                let long = strict(a, b, |a, b| number::compute(&mut heap, op, a, b)).ok();
                for slot in [small_decimal(op, a, b), aligned_decimal(op, a, b)] {
                    if slot.is_some() {
                        short += 1;
                        assert_eq!(slot, long, "{op:?} of {a:?}, {b:?}; seed {seed}");
                    }
                }
            }
            let (precision, scale) = (1 + random.below(30) as u16, random.below(4) as i16);
            if is_scaled(a, precision, scale) {
                let rescaled = rescale(&mut heap, a.words(), precision, scale).ok();
                assert_eq!(
                    Some(a),
                    rescaled,
                    "{a:?} as NUMERIC({precision}, {scale}); seed {seed}"
                );
            }
        }
        assert!(short > rounds / 10, "the short ways are tried: {short}");
    }
}
