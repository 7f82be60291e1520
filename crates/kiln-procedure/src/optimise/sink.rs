//! Reads a column only where it is needed: a column that a `CASE` uses in one of its branches is
//! read in that branch.
//!
//! Moved is the reading of a column whose register is used in one branch of one conditional
//! further down in the same block, and nowhere else, when nothing in between can change the
//! column or the record's handle. A branch runs at most once for each run of its block, so no
//! column is read more often than before.

use kiln_storage::schema::ColumnId;

use super::effects::Effects;
use crate::ir::*;
use crate::names::{Use, for_each_step, step_blocks_mut, step_registers};
use crate::procedure::Procedure;

/// How often each register is named in the whole program.
struct Counts {
    reads: Vec<u32>,
    writes: Vec<u32>,
}

impl Counts {
    fn of(block: &[Step], registers: usize) -> Counts {
        let mut counts = Counts {
            reads: vec![0; registers],
            writes: vec![0; registers],
        };
        for_each_step(block, &mut |step| {
            step_registers(step, &mut |register, usage| {
                let list = match usage {
                    Use::Read => &mut counts.reads,
                    Use::Write => &mut counts.writes,
                };
                if let Some(count) = list.get_mut(register.0 as usize) {
                    *count += 1;
                }
            });
        });
        counts
    }

    fn reads_of(&self, register: Reg) -> u32 {
        self.reads
            .get(register.0 as usize)
            .copied()
            .unwrap_or(u32::MAX)
    }
}

/// Moves reads into the branches that need them.
pub(super) fn run(procedure: &mut Procedure) {
    let counts = Counts::of(&procedure.body, procedure.registers.len());
    let mut body = std::mem::take(&mut procedure.body);
    block(procedure, &counts, &mut body);
    procedure.body = body;
}

fn block(procedure: &mut Procedure, counts: &Counts, steps: &mut Block) {
    // From the end, so that what is moved into a branch is looked at again inside it.
    for position in (0..steps.len()).rev() {
        if let Step::Read { .. } = steps[position] {
            sink(procedure, counts, steps, position);
        }
    }
    steps.retain(|step| !matches!(step, Step::Read { columns, .. } if columns.is_empty()));
    for step in steps {
        for inner in step_blocks_mut(step).into_iter().flatten() {
            block(procedure, counts, inner);
        }
    }
}

/// Moves what it can of the read at `position`.
fn sink(procedure: &mut Procedure, counts: &Counts, steps: &mut Block, position: usize) {
    let Step::Read {
        op,
        table,
        record,
        columns,
    } = steps[position].clone()
    else {
        return;
    };
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    for (column, register) in columns {
        match destination(counts, steps, position, table, record, column, register) {
            Some(to) => moved.push((to, (column, register))),
            None => kept.push((column, register)),
        }
    }
    if moved.is_empty() {
        return;
    }
    moved.sort_by_key(|(to, _)| *to);
    for group in moved.chunk_by(|a, b| a.0 == b.0) {
        let ((at, second), columns) = (group[0].0, group.iter().map(|(_, column)| *column));
        let Step::If {
            then, otherwise, ..
        } = &mut steps[at]
        else {
            continue;
        };
        let Some(operation) = procedure.operations.get(op.0 as usize).cloned() else {
            return;
        };
        procedure.operations.push(operation);
        let op = OpId((procedure.operations.len() - 1) as u16);
        let read = Step::Read {
            op,
            table,
            record,
            columns: columns.collect(),
        };
        let branch = if second { otherwise } else { then };
        branch.insert(0, read);
    }
    if let Step::Read { columns, .. } = &mut steps[position] {
        *columns = kept.into();
    }
}

/// The conditional further down, and whether its second branch, that alone uses `register`.
fn destination(
    counts: &Counts,
    steps: &[Step],
    position: usize,
    table: TableRef,
    record: RecordReg,
    column: ColumnId,
    register: Reg,
) -> Option<(usize, bool)> {
    if counts.writes.get(register.0 as usize) != Some(&1) || counts.reads_of(register) == 0 {
        return None;
    }
    for (at, step) in steps.iter().enumerate().skip(position + 1) {
        if let Step::If {
            then, otherwise, ..
        } = step
        {
            let inside = |block: &[Step]| Counts::of(block, counts.reads.len()).reads_of(register);
            for (second, branch) in [(false, then), (true, otherwise)] {
                if inside(branch) == counts.reads_of(register) {
                    return Some((at, second));
                }
            }
        }
        let mut reads_it = false;
        for_each_step(std::slice::from_ref(step), &mut |step| {
            step_registers(step, &mut |used, usage| {
                reads_it |= usage == Use::Read && *used == register;
            });
        });
        let effects = Effects::of(step);
        let changes_it = effects.records.contains(&record)
            || effects
                .tables
                .get(&table)
                .is_some_and(|effects| effects.deletes || effects.updates.contains(column));
        if reads_it || changes_it {
            return None;
        }
    }
    None
}
