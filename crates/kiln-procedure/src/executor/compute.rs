//! The ops that compute and jump and touch no record: those that procedures and updaters have in
//! common.

/// Matches an op of `code`: the common ones are carried out on `memory`, for the others there are
/// arms.
///
/// It is the one place where a step is charged to a virtual core, whichever of the two runs it.
///
/// The caller's macros say how registers are taken and set, how the code goes on elsewhere, how
/// entries of its tables are found, what becomes of an error, and what there is to do after
/// something that may have moved the registers. So each has the ops in its own way: the executor
/// without a check of a number.
macro_rules! match_op {
    (
        $op:expr, $code:expr, $memory:expr,
        [$get:ident, $set:ident, $jump:ident, $jump_if:ident, $entry:ident, $attempt:ident, $called:ident, $refetch:ident]
        { $($others:tt)* }
    ) => {
        {
            use kiln_storage::slot::Slot;
            use kiln_storage::types::Decimal;
            use $crate::executor::{errors, scalar};
            kiln_platform::work::charge(kiln_platform::work::Work::Step);
            match $op {
                Op::Move { target, source } => $set!(target, $get!(source)),
                Op::SetNull { target } => $set!(target, Slot::NULL),
                Op::Add {
                    width,
                    target,
                    left,
                    right,
                } => {
                    let (a, b) = ($get!(left), $get!(right));
                    let result = a.as_i64().checked_add(b.as_i64());
                    $set!(target, $attempt!(scalar::sized((a, b), result, width)));
                }
                Op::Subtract {
                    width,
                    target,
                    left,
                    right,
                } => {
                    let (a, b) = ($get!(left), $get!(right));
                    let result = a.as_i64().checked_sub(b.as_i64());
                    $set!(target, $attempt!(scalar::sized((a, b), result, width)));
                }
                Op::Multiply {
                    width,
                    target,
                    left,
                    right,
                } => {
                    let (a, b) = ($get!(left), $get!(right));
                    let result = a.as_i64().checked_mul(b.as_i64());
                    $set!(target, $attempt!(scalar::sized((a, b), result, width)));
                }
                Op::Decimal {
                    op,
                    target,
                    left,
                    right,
                } => {
                    let (a, b) = ($get!(left), $get!(right));
                    match scalar::small_decimal(op, a, b) {
                        Some(slot) => $set!(target, slot),
                        None => {
                            let slot = scalar::any_decimal(&mut $memory.heap, op, a.words(), b.words());
                            $set!(target, $attempt!(slot));
                            $called!();
                        }
                    }
                }
                Op::CompareIntegers {
                    accepts,
                    target,
                    left,
                    right,
                } => {
                    let (a, b) = ($get!(left), $get!(right));
                    let is_true = accepts.accepts(a.as_i64(), b.as_i64());
                    $set!(
                        target,
                        if Slot::either_null(a, b) {
                            Slot::NULL
                        } else {
                            Slot::from_bool(is_true)
                        }
                    );
                }
                Op::IsNull {
                    target,
                    source,
                    negated,
                } => $set!(target, Slot::from_bool($get!(source).is_null() != negated)),
                Op::CheckWidth {
                    width,
                    target,
                    source,
                } => {
                    let slot = $get!(source);
                    if !slot.is_null() {
                        $attempt!(scalar::fit(width, slot.as_i64()));
                    }
                    $set!(target, slot);
                }
                Op::IntegerToDecimal { target, source } => {
                    let slot = $get!(source);
                    let number = Decimal::from_i64(slot.as_i64());
                    $set!(
                        target,
                        if slot.is_null() {
                            slot
                        } else {
                            Slot::from_decimal(number)
                        }
                    );
                }
                Op::Rescale {
                    target,
                    source,
                    precision,
                    scale,
                } => {
                    let slot = $get!(source);
                    if scalar::is_scaled(slot, precision, scale) {
                        $set!(target, slot);
                    } else {
                        let slot = scalar::rescale(&mut $memory.heap, slot.words(), precision, scale);
                        $set!(target, $attempt!(slot));
                    }
                }
                Op::Element {
                    target,
                    array,
                    index,
                } => {
                    let heap = &$memory.heap;
                    $set!(target, scalar::element(heap, $get!(array), $get!(index)));
                }
                Op::Concat {
                    target,
                    left,
                    right,
                } => {
                    let (a, b) = ($get!(left), $get!(right));
                    $set!(
                        target,
                        if Slot::either_null(a, b) {
                            Slot::NULL
                        } else {
                            $memory.heap.concat(a, b)
                        }
                    );
                }
                Op::Call { call } => {
                    let call = $entry!($code.calls, call);
                    $attempt!(scalar::call(&mut $memory, call));
                    $called!();
                    $refetch!();
                }
                Op::Scalar { instruction } => {
                    let instruction = $entry!($code.instructions, instruction);
                    $attempt!(scalar::compute(&mut $memory, instruction));
                    $refetch!();
                }

                Op::Jump { to } => $jump!(to),
                Op::JumpIf {
                    when,
                    condition,
                    to,
                } => $jump_if!($get!(condition).is_true(), when, to),
                Op::JumpIfFalse {
                    when,
                    condition,
                    to,
                } => $jump_if!($get!(condition).is_false(), when, to),
                Op::JumpIfIntegers {
                    when,
                    accepts,
                    left,
                    right,
                    to,
                } => {
                    let (a, b) = ($get!(left), $get!(right));
                    let is_true = accepts.accepts(a.as_i64(), b.as_i64());
                    $jump_if!(is_true & !Slot::either_null(a, b), when, to);
                }
                Op::JumpIfNull { when, source, to } => $jump_if!($get!(source).is_null(), when, to),
                Op::JumpIfAnyNull {
                    when,
                    registers,
                    to,
                } => {
                    // Mostly none is: all are looked at, without a jump for each.
                    let registers = $entry!($code.register_lists, registers).iter();
                    let any = registers.fold(0, |any, register| any | $get!(*register).words().1);
                    $jump_if!(any & 1 != 0, when, to);
                }
                Op::Switch { source, table } => {
                    let (slot, table) = ($get!(source), $entry!($code.switches, table));
                    let case = slot.as_i64().wrapping_sub(table.least) as usize;
                    if let Some(to) = table.to.get(case).filter(|_| !slot.is_null()) {
                        $jump!(*to);
                    }
                }
                Op::Require {
                    condition,
                    null_fails,
                    failure,
                } => {
                    let slot = $get!(condition);
                    if !slot.is_true() && (null_fails || !slot.is_null()) {
                        let failure = &$code.failures[failure as usize];
                        $attempt!(Err(errors::error(&$memory, failure)));
                    }
                }
                Op::RequireNotNull { source, failure } => {
                    if $get!(source).is_null() {
                        let failure = &$code.failures[failure as usize];
                        $attempt!(Err(errors::error(&$memory, failure)));
                    }
                }
                $($others)*
            }
        }
    };
}
pub(crate) use match_op;
