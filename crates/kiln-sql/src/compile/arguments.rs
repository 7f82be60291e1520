//! Calls from outside of a procedure: the values of their arguments.

use kiln_procedure::ir::Step;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::Result;
use kiln_storage::types::{DataType, Value};

use super::plpgsql::Routine;
use super::{CatalogView, Compiler, Position, Typed};
use crate::parse::CallArgument;

/// The arguments of a call, converted to the types of the routine's input parameters.
#[derive(Debug)]
pub enum CallArguments {
    /// Known.
    Constant(Vec<Value>),
    /// Emitted by a program as one row.
    Computed(Box<Program>),
}

/// Binds the arguments of a call of `routine`. `outputs` says that the call has an argument for
/// each OUT parameter too, as CALL has and function calls have not. `parameters` are the types of
/// `$1`, `$2`, …, which are the program's parameters.
///
/// # Errors
/// 42883 when the routine takes other arguments; errors of the expressions.
pub fn bind_call(
    catalog: &dyn CatalogView,
    routine: &Routine,
    arguments: &[CallArgument],
    outputs: bool,
    parameters: &[DataType],
    position: Position,
) -> Result<CallArguments> {
    let names = parameters
        .iter()
        .map(|data_type| (String::new(), data_type.clone()));
    let builder = ProgramBuilder::new("arguments", names);
    let mut compiler = Compiler::new(builder, catalog);
    let typed = parameters
        .iter()
        .enumerate()
        .map(|(number, data_type)| Typed {
            register: compiler.builder.parameter(number),
            data_type: data_type.clone(),
        });
    let typed = typed.collect();
    compiler.set_positional(typed);

    let mut given = Vec::with_capacity(arguments.len());
    for argument in arguments {
        given.push((argument.name.as_ref(), compiler.bind(&argument.value.expr)?));
    }
    let values = routine.arguments(&mut compiler, &given, outputs, position)?;
    let constants: Option<Vec<Value>> = values
        .iter()
        .map(|bound| bound.as_constant().cloned())
        .collect();
    if let Some(constants) = constants {
        return Ok(CallArguments::Constant(constants));
    }
    let registers = compiler.emit_all(&values)?;
    let row = registers.iter().map(|typed| typed.register).collect();
    compiler.builder.push(Step::Emit { row });
    compiler.builder.returns(routine.inputs());
    Ok(CallArguments::Computed(Box::new(compiler.builder.finish())))
}
