//! The rules of the IR, checked once before a program can run.
//!
//! The executor indexes registers, record registers and buffers without looking whether they
//! exist, and trusts the types of what it finds there. So a program that breaks a rule must not
//! come into being: [`verify`] is called by [`ProgramBuilder::finish`](crate::ProgramBuilder),
//! and says which step breaks which rule.
//!
//! The rules come in two groups:
//!
//! - *Shape* (in `numbers`, `meanings` and `types`): every number is in range; every operation
//!   has one step, of its kind and on its table; operands have the types that their step
//!   expects; parameters and constants are never written; a record register, a buffer's column
//!   and a register with a saved handle each mean one table or one type throughout; EXIT and
//!   CONTINUE stay within the loops around them. These do not depend on the order of steps.
//! - *Flow* (in `flow`): on every path, a register is written before it is read, a record is
//!   found before it is used, and a buffer is emptied before rows are put into it. Branches join
//!   by intersection; a loop's body sees what was before the loop and may run no time at all.
//!   A look-up counts as finding its record on both outcomes: that the record is used only
//!   where `found` is TRUE is left to the executor, which knows by then.

mod alike;
mod flow;
mod meanings;
mod numbers;
mod types;

use crate::ir::{Reg, Step};
use crate::procedure::Procedure;

/// Checks that a procedure keeps the IR's rules.
///
/// # Errors
/// The first step that breaks a rule, by its path from the body (`body.2.then.0 (Move): …`), and
/// the rule.
pub fn verify(procedure: &Procedure) -> Result<(), String> {
    declarations(procedure)?;
    numbers::verify(procedure)?;
    types::verify(procedure, meanings::Meanings::of(procedure)?)?;
    flow::verify(procedure)
}

/// Parameters, constants, buffers.
fn declarations(procedure: &Procedure) -> Result<(), String> {
    let type_of = |register: Reg| procedure.registers.get(register.0 as usize);
    for (position, parameter) in procedure.parameters.iter().enumerate() {
        let name = &parameter.name;
        if parameter.register.0 as usize != position {
            return Err(format!(
                "parameter {position} ({name}) is not in register {position}"
            ));
        }
        if type_of(parameter.register) != Some(&parameter.data_type) {
            return Err(format!(
                "the register of parameter {name} is not of its type"
            ));
        }
    }
    let mut holders = vec![false; procedure.registers.len()];
    for constant in &procedure.constants {
        let register = constant.register.0;
        let Some(data_type) = type_of(constant.register) else {
            return Err(format!("a constant's register {register} does not exist"));
        };
        let is_parameter = (register as usize) < procedure.parameters.len();
        if is_parameter || std::mem::replace(&mut holders[register as usize], true) {
            return Err(format!(
                "a constant's register {register} holds something else already"
            ));
        }
        if let Some(value_type) = constant.value.data_type()
            && !alike::assignable(&value_type, data_type)
            && !alike::names_objects(&constant.value, data_type)
        {
            return Err(format!(
                "register {register} is {data_type}, its constant {value_type}"
            ));
        }
    }
    if let Some(empty) = procedure.buffers.iter().position(|width| *width == 0) {
        return Err(format!("buffer {empty} has no column"));
    }
    Ok(())
}

/// Where a step is: the names of the blocks around it and its position in each.
#[derive(Default)]
struct Path(Vec<(&'static str, usize)>);

impl Path {
    fn enter(&mut self, block: &'static str) {
        self.0.push((block, 0));
    }

    fn at(&mut self, position: usize) {
        if let Some(last) = self.0.last_mut() {
            last.1 = position;
        }
    }

    fn leave(&mut self) {
        self.0.pop();
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (position, (block, step)) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "." };
            write!(f, "{separator}{block}.{step}")?;
        }
        Ok(())
    }
}

/// The names of the two blocks of a step in a [`Path`], in the order of
/// [`step_blocks`](crate::names::step_blocks).
fn block_names(step: &Step) -> [&'static str; 2] {
    match step {
        Step::If { .. } => ["then", "otherwise"],
        Step::Loop { .. } => ["before", "body"],
        _ => ["body", "body"],
    }
}
