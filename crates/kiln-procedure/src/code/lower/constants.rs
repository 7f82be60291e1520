//! How constants get into their registers.

use std::collections::{BTreeMap, BTreeSet};

use kiln_storage::types::Value;

use super::{Lowering, number};
use crate::analysis::Analysis;
use crate::code::Op;
use crate::ir::*;
use crate::names::{Use, for_each_step, step_blocks, step_registers};
use crate::procedure::Procedure;
use crate::values::push_value;

/// Constants that only branches read which end with an error: the texts of messages, mostly. They
/// are put into their registers where such a branch begins, and cost nothing elsewhere.
#[derive(Default)]
pub(super) struct RareConstants {
    /// The constants of each such branch, by the address of its first step.
    by_branch: BTreeMap<*const Step, Vec<Reg>>,
    /// All of them.
    registers: BTreeSet<Reg>,
}

/// Whether a branch ends with an error, or looks for which one it is.
fn is_rare(block: &[Step]) -> bool {
    matches!(
        block.last(),
        Some(Step::Raise { .. } | Step::Scalar(Instruction::RequireNotNull { .. }))
    )
}

/// The outermost branches of a block that are rare.
fn rare_branches<'a>(block: &'a [Step], found: &mut Vec<&'a [Step]>) {
    for step in block {
        for inner in step_blocks(step) {
            match matches!(step, Step::If { .. }) && is_rare(inner) {
                true => found.push(inner),
                false => rare_branches(inner, found),
            }
        }
    }
}

/// How often a block reads each register.
fn count_reads(block: &[Step], reads: &mut BTreeMap<Reg, u32>) {
    for_each_step(block, &mut |step| {
        step_registers(step, &mut |register, usage| {
            if usage == Use::Read {
                *reads.entry(*register).or_default() += 1;
            }
        });
    });
}

impl RareConstants {
    pub fn of(procedure: &Procedure, analysis: &Analysis) -> RareConstants {
        let mut branches = Vec::new();
        rare_branches(&procedure.body, &mut branches);
        let mut by_branch = BTreeMap::new();
        if branches.is_empty() || procedure.constants.is_empty() {
            return RareConstants {
                by_branch,
                registers: BTreeSet::new(),
            };
        }
        let (mut everywhere, mut in_rare) = (BTreeMap::new(), BTreeMap::<Reg, u32>::new());
        count_reads(&procedure.body, &mut everywhere);
        let reads_of = |branch: &&[Step]| {
            let mut reads = BTreeMap::new();
            count_reads(branch, &mut reads);
            reads
        };
        let reads: Vec<BTreeMap<Reg, u32>> = branches.iter().map(reads_of).collect();
        for (register, count) in reads.iter().flatten() {
            *in_rare.entry(*register).or_default() += count;
        }
        // What is deferred to the commit takes its operands on the way.
        for update in analysis.deferrable() {
            for operand in &update.operands {
                in_rare.remove(operand);
            }
        }
        let constants = procedure.constants.iter();
        let registers: BTreeSet<Reg> = constants
            .map(|constant| constant.register)
            .filter(|register| {
                let count = in_rare.get(register);
                count.is_some() && count == everywhere.get(register)
            })
            .collect();
        for (branch, reads) in branches.iter().zip(&reads) {
            let rare = reads.keys().filter(|register| registers.contains(register));
            let rare: Vec<Reg> = rare.copied().collect();
            if !rare.is_empty() {
                by_branch.insert(branch.as_ptr(), rare);
            }
        }
        RareConstants {
            by_branch,
            registers,
        }
    }
}

impl Lowering<'_> {
    /// The branch of a conditional.
    pub(super) fn branch(&mut self, steps: &[Step]) {
        if let Some(registers) = self.rare.by_branch.get(&steps.as_ptr()) {
            let constants = self.procedure.constants.iter();
            let constants = constants.filter(|constant| registers.contains(&constant.register));
            let list = constants.cloned().collect();
            let list = number(&mut self.code.rare_constants, list);
            self.emit(Op::Constants { list });
        }
        self.block(steps);
    }

    /// Sorts the constants by how they get into their registers.
    pub(super) fn constants(&mut self) {
        for constant in &self.procedure.constants {
            let (register, code) = (constant.register, &mut self.code);
            let is_rare = self.rare.registers.contains(&register);
            let heap = &mut code.constant_bytes;
            match &constant.value {
                Value::Array(_) | Value::Text(_) | Value::Bytea(_) if is_rare => {}
                Value::Uuid(_) | Value::Interval(_) | Value::Object(_) | Value::Row(_)
                    if is_rare => {}
                Value::LongNumeric(number) if number.is_finite() && is_rare => {}
                Value::Array(_) => code.other_constants.push(constant.clone()),
                Value::Text(_)
                | Value::Bytea(_)
                | Value::Uuid(_)
                | Value::Interval(_)
                | Value::Object(_)
                | Value::Row(_) => {
                    let slot = push_value(heap, &constant.value);
                    code.byte_constants.push((register, slot));
                }
                Value::LongNumeric(number) if number.is_finite() => {
                    let slot = push_value(heap, &constant.value);
                    code.byte_constants.push((register, slot));
                }
                value => self.constants.push((register, push_value(heap, value))),
            }
        }
        for (register, slot) in &self.constants {
            if self.rare.registers.contains(register) {
                continue;
            }
            let stretches = &mut self.code.constants;
            match stretches.last_mut() {
                Some((first, slots)) if *first + slots.len() == register.0 as usize => {
                    slots.push(*slot);
                }
                _ => stretches.push((register.0 as usize, vec![*slot])),
            }
        }
    }
}
