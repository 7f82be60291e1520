//! Which steps before an update belong to it, and who else looks at what they compute.

use std::collections::BTreeSet;

use kiln_storage::schema::{ColumnId, ColumnSet};

use super::{
    Candidate, Derivation, Observer, Reason, can_raise, is_pure, registers_of, taints_into,
    taints_of,
};
use crate::ir::*;
use crate::names::{Use, for_each_step, step_operation, step_registers};

impl<'a> Derivation<'a> {
    /// The steps of the region to be left out when the columns in `observed` are read as ever, and
    /// who looks at the others nevertheless.
    pub(super) fn elide(
        &self,
        update: &Candidate<'a>,
        observed: ColumnSet,
    ) -> (Vec<bool>, Vec<Observer>) {
        let taints = taints_of(update, observed);
        let of = |register: &Reg| taints.get(register).copied().unwrap_or_default();
        let mut found = Vec::new();
        let mut look = |columns: ColumnSet, reason: Reason| {
            found.extend(columns.iter().map(|column| Observer { column, reason }));
        };
        let parts: Vec<_> = update.region.iter().map(registers_of).collect();
        let mut elided: Vec<bool> = Vec::with_capacity(update.region.len());
        for (step, (read, _)) in update.region.iter().zip(&parts) {
            let takes = read
                .iter()
                .fold(ColumnSet::EMPTY, |all, register| all.union(of(register)));
            let is_elided = !takes.is_empty();
            if is_elided && !is_pure(step) {
                look(takes, Reason::Branch);
            }
            elided.push(is_elided);
        }
        // What may raise behind an elided step that may raise goes with it, or neither does.
        let mut raises = ColumnSet::EMPTY;
        for position in 0..update.region.len() {
            let step = &update.region[position];
            let (read, written) = &parts[position];
            if !can_raise(std::slice::from_ref(step)) {
                continue;
            }
            if elided[position] {
                let taken = read.iter().map(of);
                raises = taken.fold(raises, ColumnSet::union);
            } else if !raises.is_empty() {
                let alone = is_pure(step)
                    && written.iter().all(|register| {
                        self.is_read_only_by(*register, update, |at| elided[at] || at == position)
                    });
                match alone {
                    true => elided[position] = true,
                    false => look(raises, Reason::Order),
                }
            }
        }
        // No step outside may take what elided steps write.
        let inside: BTreeSet<*const Step> = update
            .region
            .iter()
            .zip(&elided)
            .filter(|(_, is_elided)| **is_elided)
            .flat_map(|(step, _)| {
                let mut all = Vec::new();
                for_each_step(std::slice::from_ref(step), &mut |step| {
                    all.push(step as *const Step);
                });
                all
            })
            .collect();
        for (register, columns) in &taints {
            for reader in &self.readers[register.0 as usize] {
                if inside.contains(&(*reader as *const Step)) {
                    continue;
                }
                if step_operation(reader) == Some(update.op) {
                    continue;
                }
                for reason in self.sinks(*register, reader, update) {
                    look(*columns, reason);
                }
            }
        }
        // The operands have their values when the update comes, not when the step would have run.
        for (position, (read, written)) in parts.iter().enumerate() {
            if !elided[position] {
                continue;
            }
            let later = position + 1..parts.len();
            let overwritten = later.filter(|at| !elided[*at]).any(|at| {
                let (_, later) = &parts[at];
                read.iter().chain(written).any(|one| later.contains(one))
            });
            if overwritten {
                let taken = read.iter().map(of).fold(ColumnSet::EMPTY, ColumnSet::union);
                look(taken, Reason::Order);
            }
        }
        let left = taints_into(&taints, update);
        let steps: Vec<Step> = update
            .region
            .iter()
            .zip(&elided)
            .filter(|(_, is_elided)| **is_elided)
            .map(|(step, _)| step.clone())
            .collect();
        if self.notices && can_raise(&steps) {
            look(left, Reason::Notice);
        }
        (elided, found)
    }

    /// Whether a register is read by no step but the update and the ones of its region for which
    /// `may` holds, and not written into an indexed column, which is when the update comes.
    fn is_read_only_by(
        &self,
        register: Reg,
        update: &Candidate<'a>,
        may: impl Fn(usize) -> bool,
    ) -> bool {
        self.readers[register.0 as usize].iter().all(|reader| {
            if step_operation(reader) == Some(update.op) {
                let mut into = update.columns.iter().filter(|(_, from)| *from == register);
                return !into.any(|(column, _)| update.indexed.contains(*column));
            }
            update.region.iter().enumerate().any(|(position, step)| {
                let mut is_inside = false;
                for_each_step(std::slice::from_ref(step), &mut |inner| {
                    is_inside |= std::ptr::eq(inner, *reader);
                });
                is_inside && may(position)
            })
        })
    }

    /// Where a value that `reader` takes out of `register` ends: computations are followed.
    fn sinks(&self, register: Reg, reader: &'a Step, update: &Candidate<'a>) -> Vec<Reason> {
        let mut reasons = BTreeSet::new();
        let mut seen: BTreeSet<Reg> = BTreeSet::from([register]);
        let mut open: Vec<(Reg, &Step)> = vec![(register, reader)];
        while let Some((register, reader)) = open.pop() {
            if let Step::Scalar(_) = reader {
                let mut targets = Vec::new();
                step_registers(reader, &mut |target, usage| {
                    if usage == Use::Write {
                        targets.push(*target);
                    }
                });
                if targets.is_empty() {
                    reasons.insert(Reason::Branch);
                }
                for target in targets {
                    if seen.insert(target) {
                        let readers = self.readers[target.0 as usize].iter();
                        open.extend(readers.map(|reader| (target, *reader)));
                    }
                }
                continue;
            }
            let op = step_operation(reader);
            reasons.insert(match (reader, op) {
                (Step::Emit { .. }, _) => Reason::Returned,
                (Step::Lookup { .. } | Step::Scan { .. }, Some(op)) => Reason::Key(op),
                (Step::Update { columns, .. }, Some(op)) if op == update.op => {
                    let into = columns.iter().filter(|(_, from)| *from == register);
                    match into
                        .clone()
                        .any(|(column, _)| update.indexed.contains(*column))
                    {
                        true => Reason::Indexed(op),
                        // It is a part of this update after all.
                        false => continue,
                    }
                }
                (Step::Update { .. } | Step::Insert { .. }, Some(op)) => Reason::Written(op),
                (
                    Step::If { .. }
                    | Step::Loop { .. }
                    | Step::ForRange { .. }
                    | Step::ForEach { .. }
                    | Step::ForBuffer { .. },
                    _,
                ) => Reason::Branch,
                _ => Reason::Kept,
            });
        }
        if reasons.is_empty() {
            // It goes round in a loop.
            reasons.insert(Reason::Kept);
        }
        reasons.into_iter().collect()
    }

    /// The earlier read of the same record that a new value was computed from outside of the
    /// region.
    pub(super) fn read_apart(&self, update: &Candidate<'a>, value: Reg) -> Option<OpId> {
        let mut definitions: Vec<(Reg, &Step)> = Vec::new();
        for_each_step(&self.procedure.body, &mut |step| {
            step_registers(step, &mut |register, usage| {
                if usage == Use::Write {
                    definitions.push((*register, step));
                }
            });
        });
        let mut seen = BTreeSet::from([value]);
        let mut open = vec![value];
        while let Some(register) = open.pop() {
            for (target, step) in &definitions {
                if *target != register {
                    continue;
                }
                match step {
                    Step::Read {
                        op,
                        record,
                        table,
                        columns,
                    } if *record == update.record && *table == update.table => {
                        let written = |(column, from): &(ColumnId, Reg)| {
                            *from == register
                                && update.columns.iter().any(|(known, _)| known == column)
                        };
                        if columns.iter().any(written) {
                            return Some(*op);
                        }
                    }
                    Step::Scalar(_) => step_registers(step, &mut |register, usage| {
                        if usage == Use::Read && seen.insert(*register) {
                            open.push(*register);
                        }
                    }),
                    _ => {}
                }
            }
        }
        None
    }
}
