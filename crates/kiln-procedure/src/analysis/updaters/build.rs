//! From the elided steps to an updater with registers of its own.

use std::collections::{BTreeMap, BTreeSet};

use kiln_platform::sync::Arc;
use kiln_storage::schema::{ColumnId, ColumnSet};
use kiln_storage::types::DataType;

use super::simplify::{fold, remove_dead, undefined};
use super::{
    Candidate, DeferredUpdate, Derivation, Taints, UpdaterSource, can_raise, registers_of,
};
use crate::ir::*;
use crate::names::{Use, for_each_step, for_each_step_mut, step_registers, step_registers_mut};

impl Derivation<'_> {
    /// Makes the updater; says too whether a NOT NULL was proven. `None` when a step of the region
    /// cannot be moved after all.
    pub(super) fn build(
        &self,
        update: &Candidate<'_>,
        taints: &Taints,
        elided: &[bool],
        changed: ColumnSet,
        observed: ColumnSet,
    ) -> Option<(DeferredUpdate, bool)> {
        let procedure = self.procedure;
        let columns = changed
            .iter()
            .filter(|column| !update.indexed.contains(*column))
            .collect::<ColumnSet>();
        let outputs: Vec<(ColumnId, Reg)> = update
            .columns
            .iter()
            .copied()
            .filter(|(column, _)| columns.contains(*column))
            .collect();
        // Its inputs: the old values that are deferred to the commit.
        let mut inputs: Vec<(ColumnId, Reg)> = Vec::new();
        let mut unread: Vec<(OpId, ColumnSet)> = Vec::new();
        for step in update.region {
            if let Step::Read {
                op,
                record,
                columns,
                ..
            } = step
                && *record == update.record
            {
                let mut set = ColumnSet::EMPTY;
                for (column, register) in columns {
                    let is_deferred = !observed.contains(*column) && taints.contains_key(register);
                    if is_deferred {
                        set.insert(*column);
                        inputs.push((*column, *register));
                    }
                }
                if !set.is_empty() {
                    unread.push((*op, set));
                }
            }
        }
        let mut steps: Block = update
            .region
            .iter()
            .zip(elided)
            .filter(|(_, is_elided)| **is_elided)
            .map(|(step, _)| step.clone())
            .collect();
        let constant = |register: Reg| {
            let mut constants = procedure.constants.iter();
            constants.find(|constant| constant.register == register)
        };
        let taken: BTreeSet<Reg> = inputs.iter().map(|(_, register)| *register).collect();
        let schema = procedure.tables[update.table.0 as usize].schema();
        let written: BTreeSet<Reg> = steps.iter().flat_map(|step| registers_of(step).1).collect();
        // What is not NULL if no operand is.
        let mut present: BTreeSet<Reg> = inputs
            .iter()
            .filter(|(column, _)| schema.columns[column.index()].not_null)
            .map(|(_, register)| *register)
            .collect();
        let read = steps.iter().flat_map(|step| registers_of(step).0);
        present.extend(read.filter(|register| {
            !taken.contains(register)
                && !written.contains(register)
                && constant(*register).is_none_or(|constant| !constant.value.is_null())
        }));
        let tested = tested_for_null(&steps);
        let mut proven = false;
        steps = fold(steps, &mut present, &mut BTreeSet::new(), &mut proven);
        let results: BTreeSet<Reg> = outputs.iter().map(|(_, register)| *register).collect();
        remove_dead(&mut steps, &results);
        // Its operands: what it reads and has not written itself, on some path.
        let mut needed = BTreeSet::new();
        let mut defined = taken.clone();
        undefined(&steps, &mut defined, &mut needed);
        for (_, register) in &outputs {
            if !defined.contains(register) {
                needed.insert(*register);
            }
        }
        let operands: Vec<Reg> = needed.iter().copied().collect();
        // If none of these is NULL, what is proven holds, and what remains to be tested depends on
        // old values alone: the procedure goes on as if all tests had been passed.
        let guard: Box<[Reg]> = tested
            .into_iter()
            .filter(|register| {
                !taken.contains(register)
                    && !written.contains(register)
                    && constant(*register).is_none()
            })
            .collect();
        // Registers of its own: inputs, operands, the rest.
        let mut types: Vec<DataType> = Vec::new();
        let mut numbers: BTreeMap<Reg, Reg> = BTreeMap::new();
        let take = |register: Reg, types: &mut Vec<DataType>| {
            types.push(procedure.registers[register.0 as usize].clone());
            Reg(types.len() as u16 - 1)
        };
        for (_, register) in &inputs {
            let number = take(*register, &mut types);
            numbers.insert(*register, number);
        }
        let mut copies: Block = Vec::new();
        let first: Vec<Reg> = operands
            .iter()
            .map(|register| take(*register, &mut types))
            .collect();
        let written: BTreeSet<Reg> = steps.iter().flat_map(|step| registers_of(step).1).collect();
        for (register, number) in operands.iter().zip(first) {
            if written.contains(register) {
                // Written on some paths: it starts with the operand, which must not be what an
                // elided step gave it in the iteration of a loop before.
                let is_fresh = update.region.iter().zip(elided).any(|(step, is_elided)| {
                    !is_elided
                        && matches!(step, Step::Scalar(_))
                        && registers_of(step).1.contains(register)
                });
                if !is_fresh {
                    return None;
                }
                let target = take(*register, &mut types);
                copies.push(Step::Scalar(Instruction::Move {
                    target,
                    source: number,
                }));
                numbers.insert(*register, target);
            } else {
                numbers.insert(*register, number);
            }
        }
        for step in &steps {
            let (read, written) = registers_of(step);
            for register in read.union(&written) {
                if !numbers.contains_key(register) {
                    let number = take(*register, &mut types);
                    numbers.insert(*register, number);
                }
            }
        }
        for_each_step_mut(&mut steps, &mut |step| {
            step_registers_mut(step, &mut |register, _| *register = numbers[register]);
        });
        let can_raise = can_raise(&steps);
        copies.append(&mut steps);
        let outputs = outputs
            .iter()
            .map(|(column, register)| (*column, numbers[register]))
            .collect();
        let read: Box<[ColumnId]> = inputs.iter().map(|(column, _)| *column).collect();
        let updater = UpdaterSource::new(copies, types, read, operands.len(), outputs, can_raise)?;
        let deferred = DeferredUpdate {
            op: update.op,
            columns,
            unread,
            guard,
            operands: operands.into(),
            updater: Arc::new(updater),
            elided: elided.into(),
        };
        Some((deferred, proven))
    }
}

/// What tests for NULL look at, and what that is computed from.
fn tested_for_null(steps: &[Step]) -> BTreeSet<Reg> {
    let mut tested = BTreeSet::new();
    for_each_step(steps, &mut |step| match step {
        Step::Scalar(
            Instruction::IsNull { source, .. } | Instruction::RequireNotNull { source, .. },
        ) => {
            tested.insert(*source);
        }
        Step::Scalar(Instruction::AnyNull { sources, .. }) => tested.extend(sources),
        _ => {}
    });
    loop {
        let before = tested.len();
        for_each_step(steps, &mut |step| {
            let mut read = Vec::new();
            let mut is_tested = false;
            step_registers(step, &mut |register, usage| match usage {
                Use::Read => read.push(*register),
                Use::Write => is_tested |= tested.contains(register),
            });
            if is_tested {
                tested.extend(read);
            }
        });
        if tested.len() == before {
            return tested;
        }
    }
}
