//! The engine's catalog as the compiler sees it, and what is kept there about routines.

use kiln_engine::{Catalog, Extra, Procedure};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Failure, Step, TextSource};
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Error, Result};
use kiln_storage::table::Table;

use super::panics::caught;
use crate::compile::plpgsql::{CompiledFunction, Routine, compile_function};
use crate::compile::{CatalogView, IndexUse};
use crate::parse::FunctionDefinition;

/// The tables and routines of a catalog.
pub(super) struct View<'a>(pub &'a Catalog);

impl CatalogView for View<'_> {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.0.table(name).cloned()
    }

    fn tables(&self) -> Vec<Arc<Table>> {
        self.0
            .tables()
            .map(|(_, entry)| entry.table.clone())
            .collect()
    }

    fn routine(&self, name: &str) -> Option<Arc<FunctionDefinition>> {
        let stored = stored(self.0.procedure(name)?)?;
        Some(stored.definition.clone())
    }

    fn has_function(&self, name: &str) -> bool {
        self.0.procedure(name).is_some()
    }
}

/// What the catalog keeps about a function or procedure besides its program.
pub(super) struct StoredRoutine {
    /// As it was created.
    pub definition: Arc<FunctionDefinition>,
    /// Its header.
    pub routine: Routine,
    /// The indexes that its program uses.
    pub requirements: Vec<IndexUse>,
    /// Whether statements of it wait with an error for the call that reaches them: a change of the
    /// catalog may cure them.
    pub has_errors: bool,
}

/// What is stored with `procedure`.
pub(super) fn stored(procedure: &Procedure) -> Option<Arc<StoredRoutine>> {
    procedure
        .extra()
        .cloned()
        .and_then(|extra| Arc::downcast(extra).ok())
}

/// Compiles a routine for the catalog.
///
/// # Errors
/// What PostgreSQL reports when the routine is created.
pub(super) fn compile_routine(
    catalog: &Catalog,
    definition: Arc<FunctionDefinition>,
    source: &str,
) -> Result<Procedure> {
    let compiled = caught(|| compile_function(&View(catalog), &definition))?;
    let CompiledFunction {
        routine,
        program,
        requirements,
        deferred,
    } = compiled;
    let has_errors = !deferred.is_empty();
    Ok(procedure(
        program,
        source,
        StoredRoutine {
            definition,
            routine,
            requirements,
            has_errors,
        },
    ))
}

/// Compiles a stored routine again. When that fails its program only raises the error.
pub(super) fn recompile_routine(catalog: &Catalog, old: &Procedure) -> Option<Procedure> {
    let known = stored(old)?;
    let fresh = compile_routine(catalog, known.definition.clone(), old.source());
    Some(fresh.unwrap_or_else(|error| {
        let stored = StoredRoutine {
            definition: known.definition.clone(),
            routine: known.routine.clone(),
            requirements: Vec::new(),
            has_errors: true,
        };
        procedure(
            raising_program(&known.routine, &error),
            old.source(),
            stored,
        )
    }))
}

fn procedure(program: Program, source: &str, stored: StoredRoutine) -> Procedure {
    let extra: Extra = Arc::new(stored);
    Procedure::new(Arc::new(program), source).with_extra(extra)
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
            constraint: None,
            position: error
                .position()
                .map(|position| (position.line, position.column)),
        }),
    });
    builder.finish()
}
