//! Calls from outside of a procedure: which parameter gets which argument, and the arguments'
//! values.

use kiln_procedure::ir::Step;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::bound::Bound;
use super::coerce::{CastContext, cast_context, coerce};
use super::plpgsql::Routine;
use super::{CatalogView, Compiler, Position, Typed, fail, name_of, position_of_span};
use crate::parse::{CallArgument, RoutineKind};

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

    let given: Vec<Bound> = arguments
        .iter()
        .map(|argument| compiler.bind(&argument.value.expr))
        .collect::<Result<_>>()?;
    let undefined = || undefined(routine.kind, &routine.name, arguments, &given, position);
    let taken: Vec<_> = routine
        .parameters
        .iter()
        .filter(|parameter| outputs || parameter.mode.is_input())
        .collect();
    let mut chosen: Vec<Option<usize>> = vec![None; taken.len()];
    for (number, argument) in arguments.iter().enumerate() {
        let target = match &argument.name {
            None if number < taken.len() => number,
            None => return Err(undefined()),
            Some(ident) => {
                let name = name_of(ident);
                let found = taken.iter().position(|parameter| parameter.name == name);
                match found {
                    Some(target) if chosen[target].is_none() => target,
                    Some(_) => {
                        return Err(fail(
                            SqlState::SYNTAX_ERROR,
                            format!("argument name \"{name}\" used more than once"),
                            position_of_span(ident.span),
                        ));
                    }
                    None => return Err(undefined()),
                }
            }
        };
        chosen[target] = Some(number);
    }
    let mut values = Vec::new();
    for (parameter, chosen) in taken.iter().zip(&chosen) {
        if !parameter.mode.is_input() {
            // The argument of an OUT parameter is not even computed.
            if chosen.is_none() {
                return Err(undefined());
            }
            continue;
        }
        let bound = match (chosen, &parameter.default) {
            (Some(number), _) => given[*number].clone(),
            (None, Some(default)) => compiler.isolated(|compiler| compiler.bind(default))?,
            (None, None) => return Err(undefined()),
        };
        let converts = bound.is_unknown()
            || cast_context(&bound.data_type, &parameter.data_type) == Some(CastContext::Implicit);
        if !converts && chosen.is_some() {
            return Err(undefined());
        }
        values.push(coerce(
            bound,
            &parameter.data_type,
            CastContext::Assignment,
        )?);
    }
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

/// `procedure p(integer, unknown) does not exist`.
fn undefined(
    kind: RoutineKind,
    name: &str,
    arguments: &[CallArgument],
    given: &[Bound],
    position: Position,
) -> Error {
    let types = arguments
        .iter()
        .zip(given)
        .map(|(argument, bound)| match &argument.name {
            Some(name) => format!("{} => {}", name_of(name), bound.type_name()),
            None => bound.type_name(),
        });
    let types: Vec<String> = types.collect();
    let kind = match kind {
        RoutineKind::Function => "function",
        RoutineKind::Procedure => "procedure",
    };
    fail(
        SqlState::UNDEFINED_FUNCTION,
        format!("{kind} {name}({}) does not exist", types.join(", ")),
        position,
    )
    .with_hint(format!(
        "No {kind} matches the given name and argument types. You might need to add explicit type casts."
    ))
}
