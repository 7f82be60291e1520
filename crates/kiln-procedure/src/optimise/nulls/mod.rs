//! Which registers are not NULL, and tests that are decided by that.
//!
//! A front end tests what it cannot know: the values for NOT NULL columns, the operands of what is
//! not strict. Seen as a whole, a procedure tells more. A column that is NOT NULL gives no NULL,
//! nor does arithmetic without one; a look-up finds nothing by a NULL, so that where it found
//! something its key has none; and behind a test that raises, what was tested is there.
//!
//! The values that may be NULL and are not followed further are *roots*: arguments, columns that
//! may be NULL, elements of arrays. Every other value is NULL exactly when one of its roots is
//! ([`Known::nulls`]). So of several values in one test those are enough whose roots the others do
//! not have: of `s_ytd + quantity` and `s_order_cnt + quantity`, with both columns NOT NULL, one.
//!
//! ```text
//!   quantity := quantities[line]            a root
//!   amount := price * quantity              NULL when the root is
//!   raise when one of quantity, amount, price is NULL     ──►    raise when quantity is NULL
//!   raise when amount is NULL               ──►    (nothing)
//! ```
//!
//! Facts are of values, not of registers: they hold while the value does, wherever it is copied,
//! and end only where paths meet. A loop's body starts without those that any of its iterations may
//! change. What a CHECK, a RAISE or a branch decides is left alone but for tests for NULL and what
//! follows from them.

mod facts;

use std::collections::VecDeque;

use facts::{Facts, Known, NEVER, SetId, Sets};
use kiln_storage::types::Value;

use super::effects::Effects;
use super::numbering::{has_blocks, numbers_in_range, runs_once};
use crate::ir::*;
use crate::names::{Use, step_registers};
use crate::procedure::Procedure;

/// Decides tests for NULL, and takes the branches that follow.
pub(super) fn run(procedure: &mut Procedure) {
    // Programs that name what does not exist are for verification to refuse.
    if !numbers_in_range(procedure) {
        return;
    }
    let mut sets = Sets::new();
    let mut facts = Facts::new(&mut sets, procedure.registers.len());
    for constant in &procedure.constants {
        let known = match &constant.value {
            Value::Null => Known::of(sets.always()),
            Value::Boolean(truth) => Known {
                truth: Some(*truth),
                ..Known::of(NEVER)
            },
            _ => Known::of(NEVER),
        };
        facts.set(constant.register, known);
    }
    let mut body = std::mem::take(&mut procedure.body);
    let mut pass = Pass {
        procedure,
        sets,
        exits: Vec::new(),
    };
    pass.block(&mut body, facts);
    procedure.body = body;
}

struct Pass<'a> {
    procedure: &'a Procedure,
    sets: Sets,
    /// For each open loop, innermost last: what is known at its exits, if it is followed.
    exits: Vec<Option<Exits>>,
}

/// What is known where a followed loop is left; `None` when it was not left yet.
#[derive(Default)]
struct Exits(Option<Facts>);

impl Pass<'_> {
    /// Rewrites a block; `None` when its end is never reached.
    fn block(&mut self, block: &mut Block, facts: Facts) -> Option<Facts> {
        let mut rest: VecDeque<Step> = std::mem::take(block).into();
        let mut facts = facts;
        while let Some(step) = rest.pop_front() {
            if let Step::If {
                condition,
                then,
                otherwise,
            } = step
            {
                if let Some(taken) = self.decided(&facts, condition) {
                    let branch = if taken { then } else { otherwise };
                    for step in branch.into_iter().rev() {
                        rest.push_front(step);
                    }
                    continue;
                }
                facts = self.conditional(condition, then, otherwise, facts, block)?;
            } else {
                facts = self.step(step, facts, block)?;
            }
        }
        Some(facts)
    }

    /// Whether a conditional takes its first branch, if that is certain.
    fn decided(&self, facts: &Facts, condition: Reg) -> Option<bool> {
        match facts.always_null(&self.sets, condition) {
            true => Some(false),
            false => facts.get(condition).truth,
        }
    }

    fn conditional(
        &mut self,
        condition: Reg,
        then: Block,
        otherwise: Block,
        facts: Facts,
        out: &mut Block,
    ) -> Option<Facts> {
        let (mut then, mut otherwise) = (then, otherwise);
        let (mut if_so, mut if_not) = (facts.clone(), facts);
        if_so.assume(&self.sets, condition, true);
        // Otherwise it may be NULL.
        if if_not.never_null(&self.sets, condition) {
            if_not.assume(&self.sets, condition, false);
        }
        let after_then = self.block(&mut then, if_so);
        let after_otherwise = self.block(&mut otherwise, if_not);
        out.push(Step::If {
            condition,
            then,
            otherwise,
        });
        self.join(after_then, after_otherwise)
    }

    fn join(&mut self, left: Option<Facts>, right: Option<Facts>) -> Option<Facts> {
        match (left, right) {
            (Some(left), Some(right)) => Some(Facts::join(&mut self.sets, left, right)),
            (one, None) | (None, one) => one,
        }
    }

    fn step(&mut self, step: Step, facts: Facts, out: &mut Block) -> Option<Facts> {
        let (mut step, mut facts) = (step, facts);
        let followed = matches!(
            &step,
            Step::Loop { before, condition: None, body } if before.is_empty() && runs_once(body)
        );
        // Before its first iteration a loop reads what is known; in its iterations, what any of
        // them may leave.
        self.start_loop(&step, &mut facts);
        let bounds: Vec<SetId> = match &step {
            Step::Scan { range, .. } => {
                let ends = [range.lower, range.upper].into_iter().flatten();
                let registers = range.prefix.iter().copied();
                let registers = registers.chain(ends.map(|bound| bound.value));
                registers
                    .map(|register| facts.get(register).nulls)
                    .collect()
            }
            _ => Vec::new(),
        };
        if has_blocks(&step) && !followed {
            for register in Effects::of(&step).registers {
                facts.set(register, Known::of(self.sets.fresh()));
            }
        }
        match &mut step {
            Step::Scalar(instruction) => {
                if !self.scalar(instruction, &mut facts) {
                    return Some(facts);
                }
            }
            Step::Exit { depth } => {
                let target = self.exits.len().checked_sub(*depth as usize + 1);
                out.push(step);
                if let Some(target) = target
                    && let Some(Exits(known)) = &mut self.exits[target]
                {
                    let known = known.take();
                    let joined = self.join(known, Some(facts));
                    self.exits[target] = Some(Exits(joined));
                }
                return None;
            }
            Step::Continue { .. } | Step::Return | Step::Raise { .. } | Step::RaiseAgain { .. } => {
                out.push(step);
                return None;
            }
            Step::Loop {
                before,
                condition,
                body,
            } => {
                self.exits.push(followed.then(Exits::default));
                if let Some(mut inside) = self.block(before, facts.clone()) {
                    if let Some(condition) = condition {
                        inside.assume(&self.sets, *condition, true);
                    }
                    self.block(body, inside);
                }
                let exits = self.exits.pop().flatten();
                out.push(step);
                return match followed {
                    true => exits.and_then(|exits| exits.0),
                    false => Some(facts),
                };
            }
            Step::ForRange { variable, body, .. } => {
                let mut inside = facts.clone();
                inside.set(*variable, Known::of(NEVER));
                self.iterations(body, inside);
            }
            Step::Scan { body, .. } => {
                let mut inside = facts.clone();
                // A NULL among them makes the range empty.
                for nulls in bounds {
                    inside.refute(&self.sets, nulls);
                }
                self.iterations(body, inside);
            }
            Step::ForEach { body, .. }
            | Step::ForBuffer { body, .. }
            | Step::Protect { body, .. } => {
                self.iterations(body, facts.clone());
            }
            _ => self.operation(&step, &mut facts),
        }
        out.push(step);
        Some(facts)
    }

    fn iterations(&mut self, body: &mut Block, facts: Facts) {
        self.exits.push(None);
        self.block(body, facts);
        self.exits.pop();
    }

    /// A loop that starts has not raised for a NULL.
    fn start_loop(&mut self, step: &Step, facts: &mut Facts) {
        let registers: &[Reg] = match step {
            Step::ForRange {
                first, last, step, ..
            } => &[*first, *last, *step],
            Step::ForEach { array, .. } => &[*array],
            _ => return,
        };
        for register in registers {
            let nulls = facts.get(*register).nulls;
            facts.refute(&self.sets, nulls);
        }
    }

    /// A step without blocks that is no instruction.
    fn operation(&mut self, step: &Step, facts: &mut Facts) {
        let before = facts.clone();
        step_registers(step, &mut |register, usage| {
            if usage == Use::Write {
                facts.set(*register, Known::of(self.sets.fresh()));
            }
        });
        match step {
            Step::Lookup { key, found, .. } => {
                let nulls = key.iter().map(|register| before.get(*register).nulls);
                let nulls: Vec<SetId> = nulls.collect();
                let if_true = self.union(nulls);
                facts.set(
                    *found,
                    Known {
                        if_true,
                        ..Known::of(NEVER)
                    },
                );
            }
            Step::Read { table, columns, .. } => {
                let schema = self.procedure.tables[table.0 as usize].schema();
                for (column, register) in columns {
                    if schema.columns[column.index()].not_null {
                        facts.set(*register, Known::of(NEVER));
                    }
                }
            }
            Step::Insert {
                conflict: Some(Conflict { inserted, .. }),
                ..
            } => facts.set(*inserted, Known::of(NEVER)),
            Step::BufferPushDistinct { added, .. } => facts.set(*added, Known::of(NEVER)),
            Step::BufferCount { target, .. } => facts.set(*target, Known::of(NEVER)),
            _ => {}
        }
    }

    fn union(&mut self, sets: impl IntoIterator<Item = SetId>) -> SetId {
        let mut union = NEVER;
        for set in sets {
            union = self.sets.union(union, set);
        }
        union
    }

    /// Follows an instruction, and simplifies it; says whether it is to stay.
    fn scalar(&mut self, instruction: &mut Instruction, facts: &mut Facts) -> bool {
        use Instruction as I;
        self.reduce(instruction, facts);
        let of = |register: &Reg| facts.get(*register);
        let (target, known) = match &*instruction {
            I::Move { target, source } => (*target, of(source)),
            I::SetNull { target } => (*target, Known::of(self.sets.always())),
            I::Integer {
                target,
                left,
                right,
                ..
            }
            | I::Decimal {
                target,
                left,
                right,
                ..
            }
            | I::Double {
                target,
                left,
                right,
                ..
            }
            | I::Concat {
                target,
                left,
                right,
            } => {
                let nulls = self.sets.union(of(left).nulls, of(right).nulls);
                (*target, Known::of(nulls))
            }
            I::Compare {
                op,
                target,
                left,
                right,
                ..
            } => {
                let nulls = match op {
                    Comparison::Distinct | Comparison::NotDistinct => NEVER,
                    _ => self.sets.union(of(left).nulls, of(right).nulls),
                };
                (*target, Known::of(nulls))
            }
            I::IntegerToDecimal { target, source }
            | I::IntegerToDouble { target, source }
            | I::CheckWidth { target, source, .. }
            | I::Rescale { target, source, .. }
            | I::ArrayLength {
                target,
                array: source,
            } => (*target, Known::of(of(source).nulls)),
            I::IsNull {
                target,
                source,
                negated,
            } => {
                let (nulls, mut known) = (of(source).nulls, Known::of(NEVER));
                match negated {
                    true => known.if_true = nulls,
                    false => known.if_false = nulls,
                }
                if facts.never_null(&self.sets, *source) {
                    known.truth = Some(*negated);
                } else if facts.always_null(&self.sets, *source) {
                    known.truth = Some(!*negated);
                }
                (*target, known)
            }
            I::AnyNull { target, sources } => {
                let nulls: Vec<SetId> = sources.iter().map(|source| of(source).nulls).collect();
                let mut known = Known::of(NEVER);
                known.if_false = self.union(nulls);
                if sources
                    .iter()
                    .any(|one| facts.always_null(&self.sets, *one))
                {
                    known.truth = Some(true);
                }
                (*target, known)
            }
            I::Not { target, source } => {
                let Known {
                    nulls,
                    truth,
                    if_true,
                    if_false,
                } = of(source);
                let known = Known {
                    nulls,
                    truth: truth.map(|truth| !truth),
                    if_true: if_false,
                    if_false: if_true,
                };
                (*target, known)
            }
            I::And {
                target,
                left,
                right,
            } => {
                let (left, right) = (of(left), of(right));
                let nulls = [left.nulls, right.nulls, left.if_true, right.if_true];
                let mut known = self.connective(facts, left, right);
                known.if_true = self.union(nulls);
                known.truth = match (left.truth, right.truth) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
                (*target, known)
            }
            I::Or {
                target,
                left,
                right,
            } => {
                let (left, right) = (of(left), of(right));
                let nulls = [left.nulls, right.nulls, left.if_false, right.if_false];
                let mut known = self.connective(facts, left, right);
                known.if_false = self.union(nulls);
                known.truth = match (left.truth, right.truth) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                };
                (*target, known)
            }
            I::Element { target, .. } | I::Call { target, .. } | I::Consult { target, .. } => {
                (*target, Known::of(self.sets.fresh()))
            }
            I::Require { .. } => return true,
            I::RequireNotNull { source, .. } => {
                if facts.never_null(&self.sets, *source) {
                    return false;
                }
                let nulls = of(source).nulls;
                facts.refute(&self.sets, nulls);
                return true;
            }
        };
        facts.set(target, known);
        true
    }

    /// What AND and OR have in common: not NULL when neither side is.
    fn connective(&mut self, facts: &Facts, left: Known, right: Known) -> Known {
        let is_open = |known: Known| facts.open(&self.sets, known.nulls).next().is_some();
        let may_be_null = is_open(left) || is_open(right);
        Known::of(match may_be_null {
            true => self.sets.fresh(),
            false => NEVER,
        })
    }

    /// Leaves those of several values to a test for NULL that decide it.
    fn reduce(&self, instruction: &mut Instruction, facts: &Facts) {
        let Instruction::AnyNull { target, sources } = instruction else {
            return;
        };
        let roots = |register: Reg| facts.open(&self.sets, facts.get(register).nulls);
        // From the end, so that of two with the same roots the first stays: the test of one update
        // stays a test of that update's values.
        let mut left: Vec<Reg> = sources.to_vec();
        for position in (0..left.len()).rev() {
            let others = |root| {
                let mut others = left.iter().enumerate();
                others.any(|(other, register)| {
                    other != position && roots(*register).any(|known| known == root)
                })
            };
            if roots(left[position]).all(others) {
                left.remove(position);
            }
        }
        let target = *target;
        match left.as_slice() {
            // Decided, which a test of one of them says as well.
            [] => {
                if let Some(source) = sources.first() {
                    *instruction = Instruction::IsNull {
                        target,
                        source: *source,
                        negated: false,
                    };
                }
            }
            [source] => {
                *instruction = Instruction::IsNull {
                    target,
                    source: *source,
                    negated: false,
                };
            }
            _ => *sources = left.into(),
        }
    }
}
