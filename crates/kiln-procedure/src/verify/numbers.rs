//! The first pass: every number is in range, and nothing else is looked at before.

use super::{Path, block_names};
use crate::ir::*;
use crate::names::{Use, step_blocks, step_name, step_operation, step_record, step_registers};
use crate::procedure::Procedure;

/// Checks all numbers, that every operation has one step of its kind, and that loops are left by
/// steps within them.
pub(super) fn verify(procedure: &Procedure) -> Result<(), String> {
    let mut fixed = vec![false; procedure.registers.len()];
    let parameters = procedure
        .parameters
        .iter()
        .map(|parameter| parameter.register);
    for register in parameters.chain(procedure.constants.iter().map(|constant| constant.register)) {
        fixed[register.0 as usize] = true;
    }
    let seen = vec![false; procedure.operations.len()];
    let mut numbers = Numbers {
        procedure,
        path: Path::default(),
        fixed,
        seen,
        loops: 0,
        regions: 0,
    };
    numbers.block("body", &procedure.body)?;
    match numbers.seen.iter().position(|seen| !seen) {
        Some(missing) => Err(format!("operation {missing} has no step")),
        None => Ok(()),
    }
}

struct Numbers<'a> {
    procedure: &'a Procedure,
    path: Path,
    /// Whether a register is a parameter's or a constant's.
    fixed: Vec<bool>,
    /// Whether an operation has had its step.
    seen: Vec<bool>,
    /// The number of loops around the step.
    loops: usize,
    /// The number of protected regions around the step.
    regions: usize,
}

impl Numbers<'_> {
    fn block(&mut self, name: &'static str, steps: &[Step]) -> Result<(), String> {
        self.path.enter(name);
        for (position, step) in steps.iter().enumerate() {
            self.path.at(position);
            self.step(step)
                .map_err(|rule| format!("{} ({}): {rule}", self.path, step_name(step)))?;
            let is_loop = !matches!(step, Step::If { .. });
            for (name, inner) in block_names(step).into_iter().zip(step_blocks(step)) {
                // The block before a loop's condition lies outside of the loop, and must not be
                // left by EXIT: whether that means this loop or the one around it would depend
                // on who reads it.
                let around = self.loops;
                self.loops = match step {
                    Step::Loop { .. } if name == "before" => 0,
                    _ => around + is_loop as usize,
                };
                let is_region = matches!(step, Step::Protect { .. });
                self.regions += is_region as usize;
                self.block(name, inner)?;
                self.regions -= is_region as usize;
                self.loops = around;
            }
        }
        self.path.leave();
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let procedure = self.procedure;
        let fixed = |register: Reg| self.fixed[register.0 as usize];
        let mut fault: Option<String> = None;
        step_registers(step, &mut |register, usage| {
            if register.0 as usize >= procedure.registers.len() {
                fault.get_or_insert(format!("register {} does not exist", register.0));
            } else if usage == Use::Write && fixed(*register) {
                let rule = format!("register {} is a parameter or a constant", register.0);
                fault.get_or_insert(rule);
            }
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        if let Some((record, _)) = step_record(step)
            && record.0 as usize >= procedure.records
        {
            return Err(format!("record {} does not exist", record.0));
        }
        match step {
            Step::BufferClear { buffer }
            | Step::BufferSort { buffer, .. }
            | Step::BufferCount { buffer, .. } => drop(self.buffer(*buffer)?),
            Step::BufferFill { buffer, rows, .. } => {
                let (width, given) = (self.buffer(*buffer)?, rows.width());
                if given != width {
                    let buffer = buffer.0;
                    return Err(format!(
                        "buffer {buffer} has {width} columns, the rows of {} {given}",
                        rows.name()
                    ));
                }
            }
            Step::BufferPush { buffer, row }
            | Step::BufferPushDistinct { buffer, row, .. }
            | Step::BufferRow { buffer, row, .. }
            | Step::ForBuffer { buffer, row, .. } => {
                let width = self.buffer(*buffer)?;
                if row.len() != width {
                    let (buffer, given) = (buffer.0, row.len());
                    return Err(format!(
                        "buffer {buffer} has {width} columns, the row {given}"
                    ));
                }
            }
            Step::Protect { region, .. }
            | Step::Diagnose { region, .. }
            | Step::RaiseAgain { region }
                if region.0 as usize >= procedure.regions =>
            {
                return Err(format!("region {} does not exist", region.0));
            }
            Step::NoteUndo { .. } if self.regions == 0 => {
                return Err("a change is noted outside of every protected region".to_owned());
            }
            Step::Exit { depth } | Step::Continue { depth } if *depth as usize >= self.loops => {
                return Err(format!("depth {depth} within {} loops", self.loops));
            }
            _ => {}
        }
        match step {
            Step::BufferSort { buffer, by } => {
                let width = self.buffer(*buffer)?;
                if let Some(key) = by.iter().find(|key| key.column as usize >= width) {
                    return Err(format!(
                        "the buffer has {width} columns, the key {}",
                        key.column
                    ));
                }
            }
            Step::ForBuffer {
                buffer, matching, ..
            } => {
                let width = self.buffer(*buffer)?;
                if let Some(one) = matching.iter().find(|one| one.column as usize >= width) {
                    return Err(format!(
                        "the buffer has {width} columns, the match {}",
                        one.column
                    ));
                }
                if matching.len() > MATCHES_MAX {
                    return Err(format!(
                        "{} columns to match, at most {MATCHES_MAX}",
                        matching.len()
                    ));
                }
            }
            Step::BufferPushDistinct { row, classes, .. } if row.len() != classes.len() => {
                return Err(format!(
                    "{} classes for {} columns",
                    classes.len(),
                    row.len()
                ));
            }
            Step::Emit { row } if row.len() != procedure.result.columns.len() => {
                let (given, columns) = (row.len(), procedure.result.columns.len());
                return Err(format!("{given} values for {columns} result columns"));
            }
            Step::Scalar(
                Instruction::Call { arguments, .. } | Instruction::Consult { arguments, .. },
            ) if arguments.len() > ARGUMENTS_MAX => {
                return Err(format!(
                    "{} arguments, at most {ARGUMENTS_MAX}",
                    arguments.len()
                ));
            }
            _ => {}
        }
        self.operation(step)
    }

    fn buffer(&self, buffer: BufferId) -> Result<usize, String> {
        let width = self.procedure.buffers.get(buffer.0 as usize);
        width
            .copied()
            .ok_or_else(|| format!("buffer {} does not exist", buffer.0))
    }

    fn operation(&mut self, step: &Step) -> Result<(), String> {
        let Some(op) = step_operation(step) else {
            return Ok(());
        };
        let procedure = self.procedure;
        let (table, kind) = match step {
            Step::Lookup { table, .. } => (table, OperationKind::Lookup),
            Step::Scan { table, .. } => (table, OperationKind::Scan),
            Step::Read { table, .. } => (table, OperationKind::Read),
            Step::Update { table, .. } => (table, OperationKind::Update),
            Step::Insert { table, .. } => (table, OperationKind::Insert),
            Step::Delete { table, .. } => (table, OperationKind::Delete),
            _ => return Ok(()),
        };
        let Some(operation) = procedure.operations.get(op.0 as usize) else {
            return Err(format!("operation {} does not exist", op.0));
        };
        if std::mem::replace(&mut self.seen[op.0 as usize], true) {
            return Err(format!("operation {} has two steps", op.0));
        }
        let Some(table) = procedure.tables.get(table.0 as usize) else {
            return Err(format!("table {} does not exist", table.0));
        };
        if operation.kind != kind || operation.table != table.id() {
            return Err(format!(
                "operation {} is of another kind or on another table",
                op.0
            ));
        }
        let indexes = table.indexes();
        let index_at = |index: u16| {
            let found = indexes.get(index as usize);
            found.ok_or_else(|| format!("table {} has no index {index}", table.schema().name))
        };
        let columns_max = table.schema().columns.len();
        match step {
            Step::Lookup { index, key, .. } => {
                let index = index_at(*index)?;
                let definition = index.definition();
                if !index.supports_lookup() || definition.columns.is_empty() {
                    return Err(format!("index {} cannot be looked up", definition.name));
                }
                if key.len() != definition.columns.len() {
                    let (given, columns) = (key.len(), definition.columns.len());
                    return Err(format!(
                        "{given} values for the {columns} columns of the key"
                    ));
                }
            }
            Step::Scan { index, range, .. } => {
                let index = index_at(*index)?;
                let definition = index.definition();
                if !index.is_ordered() {
                    return Err(format!("index {} is not ordered", definition.name));
                }
                let bounded = range.lower.is_some() || range.upper.is_some();
                if range.prefix.len() + bounded as usize > definition.columns.len() {
                    return Err(format!(
                        "a range over more columns than {} has",
                        definition.name
                    ));
                }
            }
            Step::Read { columns, .. } | Step::Update { columns, .. } => {
                let beyond = columns
                    .iter()
                    .find(|(column, _)| column.index() >= columns_max);
                if let Some((column, _)) = beyond {
                    return Err(format!("column {} does not exist", column.0));
                }
            }
            Step::Insert {
                values, conflict, ..
            } => {
                if values.len() != columns_max {
                    return Err(format!("{} values for {columns_max} columns", values.len()));
                }
                if let Some(Conflict {
                    index: Some(index), ..
                }) = conflict
                    && !index_at(*index)?.definition().unique
                {
                    return Err("a conflict on an index that is not unique".to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }
}
