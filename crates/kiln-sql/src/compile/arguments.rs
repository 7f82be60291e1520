//! Calls from outside of a procedure: the values of their arguments.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::Step;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::Result;
use kiln_storage::types::{CatalogType, DataType, Value};

use super::bound::{Bound, Kind, Routine};
use super::{CatalogView, Compiler, Position};
use crate::parse::CallArgument;

/// The arguments of a call, for the routine's input parameters.
#[derive(Debug)]
pub enum CallArguments {
    /// Each is at hand before anything runs.
    Direct(Vec<CallArgumentValue>),
    /// Emitted by a program as one row.
    Computed(Arc<Program>),
}

/// An argument that needs no computation.
#[derive(Clone, Debug, PartialEq)]
pub enum CallArgumentValue {
    /// A constant of the input parameter's type.
    Constant(Value),
    /// The statement's parameter at this position, counted from 0.
    Parameter(usize),
}

/// Binds the arguments of a call of `routine`. `outputs` says that the call has an argument for
/// each OUT parameter too, as CALL has and function calls have not. `declared` are the types of
/// `$1`, `$2`, …, as far as they are known; the result has all of them.
///
/// # Errors
/// 42883 when the routine takes other arguments; errors of the expressions.
pub fn bind_call(
    catalog: &dyn CatalogView,
    routine: &Routine,
    arguments: &[CallArgument],
    outputs: bool,
    declared: &[Option<DataType>],
    position: Position,
) -> Result<(CallArguments, Vec<DataType>)> {
    // What a client declares as void is an output parameter's, whose type is known.
    let void = DataType::Catalog(CatalogType::Void);
    let declared = declared
        .iter()
        .map(|one| one.clone().filter(|it| *it != void));
    let declared: &[Option<DataType>] = &declared.collect::<Vec<_>>();
    let mut compiler = Compiler::new(
        ProgramBuilder::of_parameters("arguments", declared),
        catalog,
    );
    let parameters = compiler.infer_positional(declared);
    let mut given = Vec::with_capacity(arguments.len());
    for argument in arguments {
        given.push((argument.name.as_ref(), compiler.bind(&argument.value.expr)?));
    }
    let values = routine.arguments(&mut compiler, &given, outputs, position)?;
    let direct = values
        .iter()
        .map(|bound| direct(bound, &compiler, declared.len()));
    if let Some(direct) = direct.collect::<Option<Vec<CallArgumentValue>>>() {
        return Ok((CallArguments::Direct(direct), parameters.types()?));
    }
    let registers = compiler.emit_all(&values)?;
    let row = registers.iter().map(|typed| typed.register).collect();
    compiler.builder.push(Step::Emit { row });
    compiler.builder.returns(routine.inputs());
    let types = parameters.types()?;
    parameters.tell(&mut compiler.builder);
    let program = Arc::new(compiler.finish()?);
    Ok((CallArguments::Computed(program), types))
}

/// The value that `bound` is without any computation.
fn direct(bound: &Bound, compiler: &Compiler<'_>, parameters: usize) -> Option<CallArgumentValue> {
    match &bound.kind {
        Kind::Constant(value) => Some(CallArgumentValue::Constant(value.clone())),
        Kind::Register(register) => (0..parameters)
            .find(|position| compiler.builder.parameter(*position) == *register)
            .map(CallArgumentValue::Parameter),
        _ => None,
    }
}
