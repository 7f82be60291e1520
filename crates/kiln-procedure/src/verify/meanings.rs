//! One meaning for each record register, each register and each column of a buffer.
//!
//! A handle that was saved in a register becomes a record again without a check at run time. So
//! such a register, and every buffer column that it goes through, holds handles of one table and
//! nothing else, and no step that computes may touch it.

use kiln_storage::types::DataType;

use super::alike::assignable;
use crate::ir::*;
use crate::names::{for_each_step, step_name, step_registers};
use crate::procedure::Procedure;

/// What a register, or a column of a buffer, holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A value of the register's type.
    Value,
    /// The handle of a record of this table.
    Handle(TableRef),
}

/// What each record register, register and buffer column means throughout the program.
pub(super) struct Meanings {
    /// The table of each record register.
    pub records: Vec<Option<TableRef>>,
    /// What each register holds.
    pub registers: Vec<Option<Content>>,
    /// What each column of each buffer holds, and the widest type pushed there.
    pub columns: Vec<Vec<(Option<Content>, Option<DataType>)>>,
}

/// Sets a meaning, or checks that it is the known one; `true` when it is new.
fn agree<T: Copy + PartialEq>(known: &mut Option<T>, meaning: T) -> Result<bool, ()> {
    match known {
        Some(known) if *known == meaning => Ok(false),
        Some(_) => Err(()),
        None => {
            *known = Some(meaning);
            Ok(true)
        }
    }
}

impl Meanings {
    /// Finds the meanings.
    ///
    /// # Errors
    /// When something would have two.
    pub fn of(procedure: &Procedure) -> Result<Meanings, String> {
        let mut meanings = Meanings {
            records: vec![None; procedure.records],
            registers: vec![None; procedure.registers.len()],
            columns: procedure
                .buffers
                .iter()
                .map(|width| vec![(None, None); *width])
                .collect(),
        };
        let fixed = procedure
            .parameters
            .iter()
            .map(|parameter| parameter.register);
        for register in fixed.chain(procedure.constants.iter().map(|constant| constant.register)) {
            meanings.registers[register.0 as usize] = Some(Content::Value);
        }
        // Handles flow through registers and buffers, also against the order of steps (a loop's
        // end comes before its beginning), hence the repetition. Each round adds a meaning.
        loop {
            let (mut changed, mut fault) = (false, None);
            for_each_step(&procedure.body, &mut |step| {
                if fault.is_none() {
                    match meanings.learn(procedure, step) {
                        Ok(new) => changed |= new,
                        Err(rule) => fault = Some(format!("({}): {rule}", step_name(step))),
                    }
                }
            });
            if let Some(fault) = fault {
                return Err(fault);
            }
            if !changed {
                return Ok(meanings);
            }
        }
    }

    fn learn(&mut self, procedure: &Procedure, step: &Step) -> Result<bool, String> {
        let of_record =
            |record: RecordReg| move |()| format!("record {} is of two tables", record.0);
        let of_register = |register: Reg| {
            move |()| {
                format!(
                    "register {} holds a handle here and something else there",
                    register.0
                )
            }
        };
        let mut changed = false;
        match step {
            Step::Lookup { table, record, .. }
            | Step::Scan { table, record, .. }
            | Step::Read { table, record, .. }
            | Step::Update { table, record, .. }
            | Step::Insert { table, record, .. }
            | Step::Delete { table, record, .. }
            | Step::NoteUndo { table, record, .. } => {
                let known = &mut self.records[record.0 as usize];
                changed |= agree(known, *table).map_err(of_record(*record))?;
            }
            Step::SaveRecord { target, record } => {
                if let Some(table) = self.records[record.0 as usize] {
                    let known = &mut self.registers[target.0 as usize];
                    changed |=
                        agree(known, Content::Handle(table)).map_err(of_register(*target))?;
                }
                return Ok(changed);
            }
            Step::RestoreRecord { record, source } => {
                if let Some(Content::Handle(table)) = self.registers[source.0 as usize] {
                    let known = &mut self.records[record.0 as usize];
                    changed |= agree(known, table).map_err(of_record(*record))?;
                }
                return Ok(changed);
            }
            Step::BufferFill { buffer, rows, .. } => {
                for (known, _) in &mut self.columns[buffer.0 as usize][..rows.width()] {
                    let fault = |()| format!("buffer {} holds two kinds of things", buffer.0);
                    changed |= agree(known, Content::Value).map_err(fault)?;
                }
            }
            Step::BufferPush { buffer, row } => {
                for (column, register) in row.iter().enumerate() {
                    changed |= self.push(procedure, *buffer, column, *register)?;
                }
                return Ok(changed);
            }
            Step::BufferPushDistinct {
                buffer, row, added, ..
            } => {
                for (column, register) in row.iter().enumerate() {
                    changed |= self.push(procedure, *buffer, column, *register)?;
                }
                let known = &mut self.registers[added.0 as usize];
                return Ok(changed | agree(known, Content::Value).map_err(of_register(*added))?);
            }
            Step::ForBuffer {
                buffer,
                matching,
                row,
                ..
            } => {
                for Match { value, .. } in matching {
                    let known = &mut self.registers[value.0 as usize];
                    changed |= agree(known, Content::Value).map_err(of_register(*value))?;
                }
                for (column, register) in row.iter().enumerate() {
                    if let Some(content) = self.columns[buffer.0 as usize][column].0 {
                        let known = &mut self.registers[register.0 as usize];
                        changed |= agree(known, content).map_err(of_register(*register))?;
                    }
                }
                return Ok(changed);
            }
            _ => {}
        }
        // Every other step reads and writes values; so no handle is ever computed.
        let mut fault = None;
        step_registers(step, &mut |register, _| match agree(
            &mut self.registers[register.0 as usize],
            Content::Value,
        ) {
            Ok(new) => changed |= new,
            Err(()) => fault = Some(of_register(*register)(())),
        });
        fault.map_or(Ok(changed), Err)
    }

    /// A push of `register` into a column.
    fn push(
        &mut self,
        procedure: &Procedure,
        buffer: BufferId,
        column: usize,
        register: Reg,
    ) -> Result<bool, String> {
        let fault = || {
            format!(
                "column {column} of buffer {} holds two kinds of things",
                buffer.0
            )
        };
        let Some(content) = self.registers[register.0 as usize] else {
            return Ok(false);
        };
        let (known, known_type) = &mut self.columns[buffer.0 as usize][column];
        let mut changed = agree(known, content).map_err(|()| fault())?;
        let data_type = &procedure.registers[register.0 as usize];
        match known_type {
            None => {
                *known_type = Some(data_type.clone());
                changed = true;
            }
            Some(widest) if assignable(data_type, widest) => {}
            Some(widest) if assignable(widest, data_type) => {
                *known_type = Some(data_type.clone());
                changed = true;
            }
            Some(_) => return Err(fault()),
        }
        Ok(changed)
    }
}
