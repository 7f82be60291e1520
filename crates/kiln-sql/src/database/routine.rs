//! Routines compiled for a catalog.

use kiln_engine::{Catalog, Object, Procedure, Source};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Failure, Step, TextSource};
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Error, Result, SqlState};

use super::panics::caught;
use crate::catalog::{View, definition};
use crate::compile::plpgsql::{CompiledFunction, Routine, compile_function};
use crate::parse::{FunctionDefinition, RoutineKind};

/// Compiles a routine for the catalog.
///
/// # Errors
/// What PostgreSQL reports when the routine is created.
pub(super) fn compile_routine(
    catalog: &Catalog,
    definition: &FunctionDefinition,
    source: &Arc<Source>,
) -> Result<Procedure> {
    let view = View::along(catalog, &source.path);
    let compiled = caught(|| compile_function(&view, definition))?;
    Ok(procedure(definition, compiled, source, view))
}

/// Compiles the routine that `source` created. When that fails its program only raises the error.
///
/// # Errors
/// 2BP01 when its header names a table that is gone; XX001 when `source` creates no routine.
pub(super) fn recompile_routine(catalog: &Catalog, source: &Arc<Source>) -> Result<Procedure> {
    let view = View::along(catalog, &source.path);
    let definition = caught(|| Ok(definition(source)))?.ok_or_else(|| {
        let message = "a procedure is kept with a text that creates none";
        Error::new(SqlState::DATA_CORRUPTED, message)
    })?;
    let compiled = match caught(|| compile_function(&view, &definition)) {
        Ok(compiled) => compiled,
        Err(error) => {
            let routine = Routine::of(&view, &definition);
            let routine = routine.map_err(|error| depends(&definition, &error))?;
            CompiledFunction {
                program: raising_program(&routine, &error),
                routine,
                requirements: Vec::new(),
                deferred: vec![error],
            }
        }
    };
    Ok(procedure(&definition, compiled, source, view))
}

/// The error of a change after which a header means nothing any more.
fn depends(definition: &FunctionDefinition, error: &Error) -> Error {
    let kind = match definition.kind {
        RoutineKind::Function => "function",
        RoutineKind::Procedure => "procedure",
    };
    let name = &definition.name;
    Error::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("the header of {kind} {name} depends on what this drops"),
    )
    .with_detail(format!("Without it: {}.", error.message()))
    .with_hint(format!("Drop {kind} {name} first."))
}

fn procedure(
    definition: &FunctionDefinition,
    compiled: CompiledFunction,
    source: &Arc<Source>,
    view: View<'_>,
) -> Procedure {
    let mut lookups = view.into_lookups();
    if definition.is_definer {
        lookups.act_on_behalf_of(&Object::routine(&compiled.routine.name));
    }
    Procedure::compiled(
        Arc::new(compiled.program),
        source.clone(),
        compiled.requirements,
        lookups,
    )
}

/// A program with the routine's parameters that raises `error`.
fn raising_program(routine: &Routine, error: &Error) -> Program {
    let mut builder = ProgramBuilder::new(&routine.name, routine.inputs());
    builder.returns(routine.result_columns());
    let text = |text: Option<&str>| text.map(|text| TextSource::Literal(text.to_owned()));
    builder.push(Step::Raise {
        error: Box::new(Failure {
            state: error.state(),
            message: error.message().to_owned(),
            arguments: Box::default(),
            detail: text(error.detail()),
            hint: text(error.hint()),
            subject: None,
            position: error
                .position()
                .map(|position| (position.line, position.column)),
        }),
    });
    builder.finish()
}
