//! Functions and procedures: their headers and their bodies.
//!
//! A body is compiled statement by statement into one program: variables are registers, control
//! flow is the IR's, and everything that SQL says is left to the [`Compiler`]. Three things of
//! PL/pgSQL do not follow the order of the text, and are why a body may be compiled several
//! times:
//!
//! - *Errors come late.* PostgreSQL analyses an expression or statement when it first runs, so a
//!   misspelt column is an error of the call that reaches it, and not of `CREATE FUNCTION`. A
//!   statement that does not compile is noted with its error and the body compiled anew; then a
//!   step that raises the error stands in its place. What the language itself refuses (an unknown
//!   target, a constant assigned to), and what is not supported, are errors of creation.
//! - *Records get their fields from what is assigned to them*, which may follow their first use
//!   in the text (in a loop). The shapes that a compilation has found are known to the next one.
//! - *FOUND* is a variable that nearly every statement writes and few read: it is kept only where
//!   a later statement may look at it (`liveness`).
//!
//! | module | holds |
//! |---|---|
//! | `routine` | headers: parameters, results |
//! | `body` | blocks, declarations, the dispatch over statements |
//! | `control` | IF, CASE, loops, EXIT |
//! | `variables` | scopes, records |
//! | `assign` | targets, assignments |
//! | `rows` | SELECT INTO, PERFORM, INSERT, UPDATE, DELETE, loops over rows |
//! | `results` | RETURN in all its forms |
//! | `raise` | RAISE and ASSERT |
//! | `exception` | EXCEPTION clauses, GET STACKED DIAGNOSTICS |
//! | `call` | calls of other routines, compiled in place |
//! | `piece` | statements and expressions of bodies that the session runs step by step |
//! | `trigger` | trigger functions, compiled where a row is written |
//! | `matching` | which parameter gets which argument |
//! | `liveness` | where FOUND is read; other questions to the syntax tree |
//! | `passes` | over the finished steps: unassigned records, needless copies |

mod assign;
mod body;
mod call;
mod control;
mod cursor;
mod exception;
mod liveness;
mod matching;
mod passes;
mod piece;
mod raise;
mod results;
mod routine;
mod row_values;
mod rows;
mod trigger;
mod variables;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use kiln_engine::{IndexUse, Object};
use kiln_platform::sync::Arc;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Error, Result, SqlState};

use super::bound::Shape;
use super::{CatalogView, Compiler, Position, fail};
use crate::parse::{self, FunctionDefinition};
use body::Body;

pub use super::bound::{ResultKind, Routine, RoutineParameter};
pub use cursor::{cursor_arguments, unbound};
pub use piece::{
    CompiledPiece, Frame, FrameScope, Kind, Work, check_names, compile_piece, is_stepped,
    runs_stepped,
};
pub(super) use trigger::{Firing, Returned};

/// A routine ready to run.
#[derive(Debug)]
pub struct CompiledFunction {
    /// Its header.
    pub routine: Routine,
    /// Its body. The program's parameters are the header's input parameters in order; its rows
    /// are as [`ResultKind`] says.
    pub program: Program,
    /// The uses of indexes in its body.
    pub requirements: Vec<IndexUse>,
    /// The errors that calls will meet at statements which could not be compiled: as PostgreSQL,
    /// which finds them when such a statement runs. If the catalog changes, compiling anew may
    /// cure them.
    pub deferred: Vec<Error>,
}

/// How many statements may wait for their error; with more, the first is an error of creation.
const DEFERRED_MAX: usize = 64;

/// What compilations of one routine learn for the next; see the module's documentation. Nodes of
/// the syntax tree are known by their address.
#[derive(Debug, Default)]
pub(super) struct Inference {
    /// Statements and declarations that do not compile, with what PostgreSQL says when they run.
    deferred: HashMap<usize, Error>,
    /// The shapes that a record variable takes, by its declaration.
    shapes: HashMap<usize, Vec<Shape>>,
    /// Whether this compilation added to either.
    grew: bool,
    /// Whether it found a record's shape.
    reshaped: bool,
    /// The error on its way out is noted already.
    grew_by_error: bool,
    /// The error on its way out is one of creation.
    refused: bool,
    /// The routines that are being compiled, outermost first.
    active: Vec<Active>,
    /// By what authority what is compiled does what it does, and how many routines were being
    /// compiled when that was set.
    authority: (Authority, usize),
    /// The routines called whose bodies hold no surprise any more. They are kept, so that the
    /// addresses of their nodes stay theirs.
    learnt: Vec<Arc<FunctionDefinition>>,
    /// The functions of triggers, one for each trigger and event, as `learnt`.
    of_triggers: Vec<(String, Arc<FunctionDefinition>)>,
}

/// A routine that is being compiled.
#[derive(Debug)]
struct Active {
    /// Its name; that of a trigger for its function.
    name: String,
    /// The name of the routine itself.
    routine: String,
    /// Whether its owner needs the privileges for what its body does, and its caller none. Of the
    /// outermost routine that does not matter here.
    is_definer: bool,
}

/// By what authority something is done.
#[derive(Clone, Debug, Default)]
pub(super) enum Authority {
    /// That of the role that runs it.
    #[default]
    Caller,
    /// That of the owner of a view or routine.
    OwnerOf(Object),
    /// That of the database: no role needs privileges.
    Database,
}

impl Inference {
    /// By what authority the statement at hand does what it does: the innermost view or SECURITY
    /// DEFINER routine decides.
    pub(super) fn authority(&self) -> Authority {
        let (authority, depth) = &self.authority;
        let mut within = self.active.iter().skip(*depth).rev();
        match within.find(|routine| routine.is_definer) {
            Some(routine) => Authority::OwnerOf(Object::routine(&routine.routine)),
            None => authority.clone(),
        }
    }

    /// Returns what to restore.
    pub(super) fn set_authority(&mut self, authority: Authority) -> (Authority, usize) {
        let depth = self.active.len();
        std::mem::replace(&mut self.authority, (authority, depth))
    }

    /// Sets back what [`Inference::set_authority`] returned.
    pub(super) fn restore_authority(&mut self, was: (Authority, usize)) {
        self.authority = was;
    }

    /// Whether the routine called `name` is being compiled.
    fn is_active(&self, name: &str) -> bool {
        self.active.iter().any(|routine| routine.name == name)
    }
}

/// Compiles a function or procedure.
///
/// # Errors
/// What PostgreSQL reports when the function is created; 0A000, with its place, for what is not
/// supported.
pub fn compile_function(
    catalog: &dyn CatalogView,
    definition: &FunctionDefinition,
) -> Result<CompiledFunction> {
    let routine = Routine::of(catalog, definition)?;
    if let parse::Body::PlPgSql(block) = &definition.body
        && is_stepped(block)
    {
        return piece::stepped_function(catalog, definition, routine);
    }
    let mut inference = Inference::default();
    inference.active.push(Active {
        name: routine.name.clone(),
        routine: routine.name.clone(),
        is_definer: false,
    });
    if routine.result == ResultKind::Trigger {
        return compile_trigger_function(catalog, definition, routine, inference);
    }
    let compiler = repeat(catalog, &mut inference, |compiler| {
        compile_routine(compiler, &routine, definition)
    })?;
    finish(compiler, routine, inference)
}

/// Checks a trigger function. Its program only says that it cannot be called: its body is compiled
/// where a trigger fires.
fn compile_trigger_function(
    catalog: &dyn CatalogView,
    definition: &FunctionDefinition,
    routine: Routine,
    mut inference: Inference,
) -> Result<CompiledFunction> {
    let checked = repeat(catalog, &mut inference, |compiler| {
        compiler.builder = ProgramBuilder::new(&routine.name, []);
        Body::new(compiler, &routine).checked_trigger(compiler, definition)
    });
    // A body with more statements than are noted that need the columns of a table has no other
    // fault yet.
    match checked {
        Err(error) if inference.deferred.len() <= DEFERRED_MAX => return Err(error),
        _ => {}
    }
    let mut compiler = Compiler::new(ProgramBuilder::new(&routine.name, []), catalog);
    let error = not_called();
    compiler.builder.push(variables::raise_step(&error));
    finish(compiler, routine, Inference::default())
}

/// The error for a call of a trigger function.
fn not_called() -> Error {
    Error::unsupported("trigger functions can only be called as triggers")
}

fn compile_routine(
    compiler: &mut Compiler<'_>,
    routine: &Routine,
    definition: &FunctionDefinition,
) -> Result<()> {
    compiler.builder = ProgramBuilder::new(&routine.name, routine.inputs());
    compiler.builder.returns(routine.result_columns());
    Body::new(compiler, routine).routine(compiler, &definition.body)
}

fn finish(
    mut compiler: Compiler<'_>,
    routine: Routine,
    inference: Inference,
) -> Result<CompiledFunction> {
    #[cfg(test)]
    crate::database::panics::planted::reach(crate::database::panics::planted::Step::Finish);
    compiler.end()?;
    if compiler.builder.is_too_large() {
        return Err(fail(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "the procedure is too large",
            None,
        ));
    }
    Ok(CompiledFunction {
        routine,
        program: compiler.builder.finish(),
        requirements: compiler.requirements,
        deferred: inference.deferred.into_values().collect(),
    })
}

/// Compiles the block of a DO statement.
///
/// # Errors
/// As [`compile_function`].
pub fn compile_do(
    catalog: &dyn CatalogView,
    block: &parse::plpgsql::Block,
) -> Result<CompiledFunction> {
    let routine = Routine::anonymous();
    let mut inference = Inference::default();
    let compiler = repeat(catalog, &mut inference, |compiler| {
        compiler.builder = ProgramBuilder::new(&routine.name, []);
        Body::new(compiler, &routine).anonymous(compiler, block)
    })?;
    finish(compiler, routine, inference)
}

/// Compiles until nothing new is learnt; returns the compiler of the last time.
fn repeat<'a>(
    catalog: &'a dyn CatalogView,
    inference: &mut Inference,
    mut compile: impl FnMut(&mut Compiler<'_>) -> Result<()>,
) -> Result<Compiler<'a>> {
    let depth = inference.active.len();
    loop {
        let mut compiler = Compiler::new(ProgramBuilder::new("", []), catalog);
        inference.grew = false;
        inference.grew_by_error = false;
        inference.reshaped = false;
        inference.refused = false;
        inference.active.truncate(depth);
        compiler.routines = std::mem::take(inference);
        let result = compile(&mut compiler);
        *inference = std::mem::take(&mut compiler.routines);
        if inference.reshaped {
            // Accesses to the record may have failed for want of the shape.
            inference.deferred.clear();
        }
        match result {
            Err(error) if !inference.grew || inference.deferred.len() > DEFERRED_MAX => {
                return Err(error);
            }
            Ok(()) if !inference.grew => return Ok(compiler),
            _ => {}
        }
    }
}

/// Learns all that there is to learn about a routine that is to be compiled in the place of a
/// call: there, only whole statements could be compiled anew.
///
/// # Errors
/// 0A000 when it calls what is being compiled.
fn learn(
    c: &mut Compiler<'_>,
    definition: &Arc<FunctionDefinition>,
    routine: &Routine,
) -> Result<()> {
    if c.routines
        .learnt
        .iter()
        .any(|known| Arc::ptr_eq(known, definition))
    {
        return Ok(());
    }
    c.routines.learnt.push(definition.clone());
    let active = Active {
        name: routine.name.clone(),
        routine: routine.name.clone(),
        is_definer: definition.is_definer,
    };
    apart(c, active, |catalog, inference| {
        repeat(catalog, inference, |compiler| {
            compiler.along(&definition.path, |compiler| {
                compile_routine(compiler, routine, definition)
            })
        })
        .map(drop)
    })
}

/// Compiles another routine, to learn about it, while what is around it waits.
fn apart(
    c: &mut Compiler<'_>,
    active: Active,
    learn: impl FnOnce(&dyn CatalogView, &mut Inference) -> Result<()>,
) -> Result<()> {
    let mut inference = std::mem::take(&mut c.routines);
    let outer = (
        inference.grew,
        inference.grew_by_error,
        inference.refused,
        inference.reshaped,
    );
    let known = inference.deferred.clone();
    inference.active.push(active);
    let result = learn(c.catalog, &mut inference);
    inference.active.pop();
    inference.deferred.extend(known);
    if result.is_ok() {
        (
            inference.grew,
            inference.grew_by_error,
            inference.refused,
            inference.reshaped,
        ) = outer;
    }
    c.routines = inference;
    result
}

/// A place of the parser as one of the compiler.
fn at(position: parse::Position) -> Position {
    Some((position.line, position.column))
}
