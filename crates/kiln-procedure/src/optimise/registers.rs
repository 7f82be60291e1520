//! Numbers registers and records anew, without those that no step names any more.
//!
//! The parameters stay first, where the arguments go as they are. Behind them come the constants,
//! those that fit into their registers first, so that one copy puts them there; then all other
//! registers in the order in which the steps name them. So what a procedure uses lies in few cache
//! lines.

use kiln_storage::types::Value;

use crate::ir::*;
use crate::names::{
    for_each_step, for_each_step_mut, step_record, step_record_mut, step_registers,
    step_registers_mut,
};
use crate::procedure::Procedure;

/// New numbers for old ones, given in the order in which they are asked for.
struct Numbers {
    /// The new number of each old one that was asked for.
    new: Vec<Option<u16>>,
    /// The old numbers in the order of the new ones.
    old: Vec<u16>,
}

impl Numbers {
    fn of(count: usize) -> Numbers {
        Numbers {
            new: vec![None; count],
            old: Vec::new(),
        }
    }

    /// Whether there is such an old number; it has a new one from now on.
    fn give(&mut self, old: u16) -> bool {
        let Some(new) = self.new.get_mut(old as usize) else {
            return false;
        };
        if new.is_none() {
            *new = Some(self.old.len() as u16);
            self.old.push(old);
        }
        true
    }

    fn number_of(&self, old: u16) -> u16 {
        self.new[old as usize].expect("everything that is named has a number")
    }
}

/// Numbers the registers and the records of a program anew.
pub fn renumber_registers(procedure: &mut Procedure) {
    let mut named = Numbers::of(procedure.registers.len());
    let mut records = Numbers::of(procedure.records);
    let mut is_valid = true;
    for_each_step(&procedure.body, &mut |step| {
        step_registers(step, &mut |register, _| is_valid &= named.give(register.0));
        if let Some((record, _)) = step_record(step) {
            is_valid &= records.give(record.0);
        }
    });
    if !is_valid {
        // Verification reports it.
        return;
    }
    let is_named = |constant: &Constant| named.new[constant.register.0 as usize].is_some();
    procedure.constants.retain(is_named);
    procedure
        .constants
        .sort_by_key(|constant| !fits_register(&constant.value));
    let mut registers = Numbers::of(procedure.registers.len());
    let parameters = procedure
        .parameters
        .iter()
        .map(|parameter| parameter.register.0);
    let constants = procedure
        .constants
        .iter()
        .map(|constant| constant.register.0);
    for register in parameters.chain(constants).chain(named.old) {
        registers.give(register);
    }
    let new = |register: &mut Reg| register.0 = registers.number_of(register.0);
    for parameter in &mut procedure.parameters {
        new(&mut parameter.register);
    }
    for constant in &mut procedure.constants {
        new(&mut constant.register);
    }
    for_each_step_mut(&mut procedure.body, &mut |step| {
        step_registers_mut(step, &mut |register, _| new(register));
        if let Some(record) = step_record_mut(step) {
            record.0 = records.number_of(record.0);
        }
    });
    let types = registers.old.iter();
    procedure.registers = types
        .map(|old| procedure.registers[*old as usize].clone())
        .collect();
    procedure.records = records.old.len();
}

/// Whether a value has no bytes or elements outside its register.
fn fits_register(value: &Value) -> bool {
    !matches!(
        value,
        Value::Text(_)
            | Value::Bytea(_)
            | Value::Uuid(_)
            | Value::Interval(_)
            | Value::Array(_)
            | Value::Object(_)
            | Value::Row(_)
    )
}
