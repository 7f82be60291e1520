//! Where jumps lead, once all code is there.

use super::{Lowering, known};
use crate::code::{Code, Label, Op};

impl Lowering<'_> {
    /// Gives all jumps the positions that they lead to, past jumps that are certain.
    pub(super) fn finish(mut self) -> Code {
        self.resolve();
        self.shorten();
        let ops = self.code.ops.iter();
        self.code.observed_ops = ops.map(|op| op.observed()).collect();
        self.code
    }

    /// Leads jumps to where the jump at their end leads.
    fn shorten(&mut self) {
        self.thread();
        self.skip_jumps();
    }

    /// Leads what goes on at a jump to where that leads.
    fn skip_jumps(&mut self) {
        let Code { ops, switches, .. } = &mut self.code;
        let jumps: Vec<Option<Label>> = ops
            .iter()
            .map(|op| match op {
                Op::Jump { to } => Some(*to),
                _ => None,
            })
            .collect();
        let skip = |to: &mut Label| {
            // A circle of jumps alone stays one.
            for _ in 0..JUMPS_SKIPPED_MAX {
                match jumps[*to as usize] {
                    Some(further) => *to = further,
                    None => break,
                }
            }
        };
        ops.iter_mut().filter_map(goes_to).for_each(skip);
        switches
            .iter_mut()
            .flat_map(|switch| &mut switch.to)
            .for_each(skip);
    }

    /// Passes over questions whose answer is known where one comes from.
    fn thread(&mut self) {
        let lands = |at: usize| self.labels.contains(&Some(at as Label));
        let ops = &mut self.code.ops;
        for at in 0..ops.len() {
            // `Move` of TRUE or FALSE and then a jump to where that is asked.
            if at > 0
                && let Op::Jump { to } = ops[at]
                && let Op::Move { target, source } = ops[at - 1]
                && let Op::JumpIf {
                    when,
                    condition,
                    to: further,
                } = ops[to as usize]
                && condition == target
                && !lands(at)
                && let Some(value) = known(&self.constants, source)
            {
                let jumps = value.is_true() == when;
                let to = if jumps { further } else { to + 1 };
                ops[at] = Op::Jump { to };
            }
            // Two questions with the same answer, one behind the other.
            if let Op::JumpIf {
                when,
                condition,
                to,
            } = ops[at]
                && let Op::JumpIf {
                    when: again,
                    condition: known,
                    to: further,
                } = ops[to as usize]
                && condition == known
            {
                let to = if when == again { further } else { to + 1 };
                ops[at] = Op::JumpIf {
                    when,
                    condition,
                    to,
                };
            }
        }
    }

    fn resolve(&mut self) {
        let switches = self.code.switches.iter_mut();
        for to in switches.flat_map(|switch| &mut switch.to) {
            *to = self.labels[*to as usize].expect("every label has its position");
        }
        for to in self.code.ops.iter_mut().filter_map(goes_to) {
            *to = self.labels[*to as usize].expect("every label has its position");
        }
    }
}

/// Jumps to jumps that are passed over at most.
const JUMPS_SKIPPED_MAX: usize = 8;

/// Where an op may go on besides behind it.
fn goes_to(op: &mut Op) -> Option<&mut Label> {
    match op {
        Op::Jump { to }
        | Op::JumpIf { to, .. }
        | Op::JumpIfFalse { to, .. }
        | Op::JumpIfIntegers { to, .. }
        | Op::JumpIfNull { to, .. }
        | Op::JumpIfAnyNull { to, .. }
        | Op::Again { to }
        | Op::CountFrom { to, .. }
        | Op::CountOn { to, .. }
        | Op::EachFrom { to, .. }
        | Op::EachOn { to, .. }
        | Op::Unwind { to, .. }
        | Op::Lookup { to, .. }
        | Op::UnlessDeferring { to }
        | Op::Defer { to, .. }
        | Op::Scan { to, .. }
        | Op::Protect { to, .. }
        | Op::ForBuffer { to, .. } => Some(to),
        _ => None,
    }
}
