//! Removes writes to registers that are written again, or no longer wanted, before a step reads
//! them: `FOUND` behind most statements.
//!
//! [`dead`](super::dead) removes registers that no step reads; this follows the paths backwards. A
//! register is *live* where some path from there reads it before writing it. In a loop that makes
//! more than one iteration, a register counts as live if the loop reads it anywhere, or if it is
//! live where the loop leaves the loops around it to.

use super::dead::is_pure;
use super::numbering::{numbers_in_range, runs_once};
use crate::ir::*;
use crate::names::{Use, for_each_step, step_blocks, step_blocks_mut, step_registers};
use crate::procedure::Procedure;

/// Registers, a bit each.
#[derive(Clone)]
struct Live(Vec<u64>);

impl Live {
    fn nothing(registers: usize) -> Live {
        Live(vec![0; registers.div_ceil(64)])
    }

    fn contains(&self, register: Reg) -> bool {
        self.0[register.0 as usize / 64] >> (register.0 % 64) & 1 != 0
    }

    fn insert(&mut self, register: Reg) {
        self.0[register.0 as usize / 64] |= 1 << (register.0 % 64);
    }

    fn remove(&mut self, register: Reg) {
        self.0[register.0 as usize / 64] &= !(1 << (register.0 % 64));
    }

    fn add(&mut self, other: &Live) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }
}

/// Removes computations that cannot raise, and columns of reads, whose registers are not live.
pub(super) fn run(procedure: &mut Procedure) {
    // Programs that name what does not exist are for verification to refuse.
    if !numbers_in_range(procedure) {
        return;
    }
    let mut pass = Pass {
        registers: procedure.registers.len(),
        targets: Vec::new(),
        kept: Live::nothing(procedure.registers.len()),
    };
    let behind = Live::nothing(procedure.registers.len());
    pass.block(&mut procedure.body, behind);
}

struct Pass {
    registers: usize,
    /// For each loop around the step, innermost last: what is live behind it, and where its next
    /// iteration begins.
    targets: Vec<(Live, Live)>,
    /// What is live behind the protected regions around the step: an error may lead there from any
    /// step.
    kept: Live,
}

impl Pass {
    /// Sweeps a block, behind which `live` are live; gives those before it.
    fn block(&mut self, block: &mut Block, live: Live) -> Live {
        let mut live = live;
        let mut position = block.len();
        live.add(&self.kept);
        while position > 0 {
            position -= 1;
            if !self.step(&mut block[position], &mut live) {
                block.remove(position);
            }
            live.add(&self.kept);
        }
        live
    }

    /// Sweeps a step; `live` are live behind it and then before it. Says whether it is to stay.
    fn step(&mut self, step: &mut Step, live: &mut Live) -> bool {
        match step {
            Step::Scalar(instruction) => {
                let mut is_wanted = !is_pure(instruction);
                step_registers(step, &mut |register, usage| {
                    is_wanted |= usage == Use::Write && live.contains(*register);
                });
                if !is_wanted {
                    return false;
                }
            }
            Step::Read { columns, .. } => {
                if columns
                    .iter()
                    .any(|(_, register)| !live.contains(*register))
                {
                    let wanted = columns
                        .iter()
                        .filter(|(_, register)| live.contains(*register));
                    *columns = wanted.copied().collect();
                }
                if columns.is_empty() {
                    return false;
                }
            }
            Step::If {
                then, otherwise, ..
            } => {
                let mut before = self.block(then, live.clone());
                before.add(&self.block(otherwise, live.clone()));
                *live = before;
                if then.is_empty() && otherwise.is_empty() {
                    return false;
                }
            }
            Step::Loop {
                before,
                condition: None,
                body,
            } if before.is_empty() && runs_once(body) => {
                // There is no next iteration.
                let nothing = Live::nothing(self.registers);
                self.targets.push((live.clone(), nothing.clone()));
                *live = self.block(body, nothing);
                self.targets.pop();
                return true;
            }
            Step::Exit { depth } => *live = self.target(*depth).0.clone(),
            Step::Continue { depth } => *live = self.target(*depth).1.clone(),
            Step::Return | Step::Raise { .. } | Step::RaiseAgain { .. } => {
                *live = Live::nothing(self.registers);
            }
            Step::Protect { caught, body, .. } => {
                live.remove(*caught);
                let behind = live.clone();
                let mut kept = self.kept.clone();
                kept.add(&behind);
                let outside = std::mem::replace(&mut self.kept, kept);
                self.targets.push((behind.clone(), behind.clone()));
                *live = self.block(body, behind);
                self.targets.pop();
                self.kept = outside;
                return true;
            }
            Step::Loop { .. }
            | Step::ForRange { .. }
            | Step::ForEach { .. }
            | Step::ForBuffer { .. }
            | Step::Scan { .. } => {
                let behind = live.clone();
                for block in step_blocks(step) {
                    self.add_jumps(block, 0, live);
                }
                for_each_step(std::slice::from_ref(step), &mut |inner| {
                    step_registers(inner, &mut |register, usage| {
                        if usage == Use::Read {
                            live.insert(*register);
                        }
                    });
                });
                self.targets.push((behind, live.clone()));
                for block in step_blocks_mut(step).into_iter().flatten() {
                    self.block(block, live.clone());
                }
                self.targets.pop();
                // It may run no iteration: what it writes is not certainly written.
                return true;
            }
            _ => {}
        }
        let mut read = Vec::new();
        step_registers(step, &mut |register, usage| match usage {
            Use::Read => read.push(*register),
            Use::Write => live.remove(*register),
        });
        for register in read {
            live.insert(register);
        }
        true
    }

    /// Adds what is live where a block within `inside` loops and one more jumps to, past all of
    /// these.
    fn add_jumps(&self, block: &[Step], inside: u16, live: &mut Live) {
        for step in block {
            match step {
                Step::Exit { depth } if *depth > inside => {
                    live.add(&self.target(depth - inside - 1).0);
                }
                Step::Continue { depth } if *depth > inside => {
                    live.add(&self.target(depth - inside - 1).1);
                }
                _ => {}
            }
            let inside = inside + !matches!(step, Step::If { .. }) as u16;
            for block in step_blocks(step) {
                self.add_jumps(block, inside, live);
            }
        }
    }

    /// What is live behind the loop `depth` levels out, and where its next iteration begins.
    fn target(&self, depth: u16) -> &(Live, Live) {
        let position = self.targets.len().checked_sub(depth as usize + 1);
        &self.targets[position.expect("numbers_in_range looks at EXITs")]
    }
}
