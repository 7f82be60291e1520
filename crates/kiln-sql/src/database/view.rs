//! The engine's catalog as the compiler sees it, and routines compiled for it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kiln_engine::{
    Access, Catalog, CurrentCatalog, Domain, Lookups, NumberedObject, Procedure, SearchPath, Source,
};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::{Failure, Step, TextSource};
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::sequence::Sequence;
use kiln_storage::table::Table;
use kiln_storage::types::EnumType;

use sqlparser::ast::ObjectName;

use super::panics::caught;
use crate::compile::CatalogView;
use crate::compile::plpgsql::{CompiledFunction, Routine, compile_function};
use crate::parse::{self, FunctionDefinition, RoutineKind, SourceStatement, function_header};

/// The tables and routines of a catalog.
pub(super) struct View<'a> {
    catalog: &'a Catalog,
    /// Along which names without a schema are looked for.
    path: RefCell<SearchPath>,
    /// The view whose query is bound.
    bound: RefCell<Option<Arc<kiln_engine::View>>>,
    /// Definitions read so far: the compiler knows the nodes of one by their addresses.
    definitions: RefCell<BTreeMap<String, Arc<FunctionDefinition>>>,
    /// What was looked up.
    lookups: RefCell<Lookups>,
}

impl<'a> View<'a> {
    /// A view of `catalog`, along its path.
    pub fn of(catalog: &'a Catalog) -> View<'a> {
        View::along(catalog, catalog.path())
    }

    /// A view of `catalog`, along another path.
    pub fn along(catalog: &'a Catalog, path: &SearchPath) -> View<'a> {
        View {
            catalog,
            path: RefCell::new(path.clone()),
            bound: RefCell::default(),
            definitions: RefCell::default(),
            lookups: RefCell::default(),
        }
    }
}

impl View<'_> {
    /// The names of the sequences that were looked for.
    pub fn sequences(&self) -> Vec<String> {
        let lookups = self.lookups.borrow();
        lookups.sequences().map(str::to_owned).collect()
    }

    /// The names of the routines that were looked for and found.
    pub fn procedures(&self) -> Vec<String> {
        let lookups = self.lookups.borrow();
        lookups.procedures().map(str::to_owned).collect()
    }

    /// The names of the enums and domains that were looked for and found.
    pub fn types(&self) -> Vec<String> {
        let lookups = self.lookups.borrow();
        lookups.types().map(str::to_owned).collect()
    }

    /// What the caller of what was compiled must be allowed to do.
    pub fn into_accesses(self) -> Arc<[Access]> {
        self.lookups.into_inner().accesses().cloned().collect()
    }
}

impl CatalogView for View<'_> {
    fn path(&self) -> SearchPath {
        self.path.borrow().clone()
    }

    fn see_along(&self, path: SearchPath) -> SearchPath {
        self.path.replace(path)
    }

    fn see_as(&self, view: Option<Arc<kiln_engine::View>>) -> Option<Arc<kiln_engine::View>> {
        self.bound.replace(view)
    }

    fn seen_as(&self) -> Option<Arc<kiln_engine::View>> {
        self.bound.borrow().clone()
    }

    fn temporary_schema(&self) -> Option<&str> {
        self.catalog.temporary_schema()
    }

    fn has_schema(&self, name: &str) -> bool {
        self.catalog.has_schema(name)
    }

    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let found = self.catalog.table(name);
        self.lookups.borrow_mut().note_table(name, found);
        found.cloned()
    }

    fn tables(&self) -> Vec<Arc<Table>> {
        let tables = self.catalog.tables();
        tables.map(|(_, table)| table.clone()).collect()
    }

    fn referencing(&self, name: &str) -> Vec<Arc<Table>> {
        let names = self.catalog.referencing(name);
        let tables = names.filter_map(|name| self.catalog.table(name).cloned());
        let tables: Vec<Arc<Table>> = tables.collect();
        self.lookups.borrow_mut().note_referencing(name, &tables);
        tables
    }

    fn view(&self, name: &str) -> Option<Arc<kiln_engine::View>> {
        let found = self.catalog.view(name);
        self.lookups.borrow_mut().note_view(name, found);
        found.cloned()
    }

    fn views_over(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        let mut at = 0;
        while at < names.len() {
            let views = self.catalog.views().filter(|view| view.reads(&names[at]));
            let views: Vec<String> = views.map(|view| view.name.clone()).collect();
            names.extend(
                views
                    .into_iter()
                    .filter(|view| !names.contains(view))
                    .collect::<Vec<_>>(),
            );
            at += 1;
        }
        names.remove(0);
        names
    }

    fn routine(&self, name: &str) -> Option<Arc<FunctionDefinition>> {
        let found = self.catalog.procedure(name);
        self.lookups.borrow_mut().note_procedure(name, found);
        let mut definitions = self.definitions.borrow_mut();
        if let Some(known) = definitions.get(name) {
            return Some(known.clone());
        }
        let definition = definition(found?.source()?)?;
        definitions.insert(name.to_owned(), definition.clone());
        Some(definition)
    }

    fn sequence(&self, name: &str) -> Option<Arc<Sequence>> {
        let found = self.catalog.sequence(name);
        self.lookups.borrow_mut().note_sequence(name, found);
        found.cloned()
    }

    fn enumeration(&self, name: &str) -> Option<Arc<EnumType>> {
        let found = self.catalog.enumeration(name);
        self.lookups.borrow_mut().note_enum(name, found);
        found.cloned()
    }

    fn domain(&self, name: &str) -> Option<Arc<Domain>> {
        let found = self.catalog.domain(name);
        self.lookups.borrow_mut().note_domain(name, found);
        found.cloned()
    }

    fn identity_sequence(&self, table: &str, column: &str) -> Option<Arc<Sequence>> {
        let mut owned = self.catalog.owned_sequences(table);
        let found = owned.find(|sequence| {
            let owner = sequence.definition().owner.as_ref();
            owner.is_some_and(|owner| owner.column == column && owner.identity.is_some())
        })?;
        self.sequence(found.name())
    }

    fn table_oid(&self, name: &str) -> u32 {
        let object = NumberedObject::Table(name.to_owned());
        self.catalog.numbers().get(&object).unwrap_or_default()
    }

    fn domain_oid(&self, name: &str) -> u32 {
        let object = NumberedObject::Domain(name.to_owned());
        self.catalog.numbers().get(&object).unwrap_or_default()
    }

    fn current(&self) -> Option<Arc<CurrentCatalog>> {
        Some(self.catalog.current().along(&self.path.borrow()))
    }

    fn note_access(&self, access: Access) {
        // What is a session's own it may use.
        if self.catalog.is_temporary(&access.object.name) {
            return;
        }
        self.lookups.borrow_mut().note_access(access);
    }

    fn has_function(&self, name: &str) -> bool {
        let found = self.catalog.procedure(name);
        self.lookups.borrow_mut().note_procedure(name, found);
        found.is_some()
    }
}

fn statement(source: &Source) -> SourceStatement<'_> {
    SourceStatement {
        text: &source.text,
        line: source.line,
        column: source.column,
    }
}

/// What the statement that created a routine says.
fn definition(source: &Source) -> Option<Arc<FunctionDefinition>> {
    match parse::statement(&statement(source)) {
        Ok(parse::Statement::CreateFunction(mut definition)) => {
            definition.header.path = source.path.clone();
            Some(Arc::from(definition))
        }
        _ => None,
    }
}

/// The header of a stored function or procedure; `None` for one that Rust code made.
pub(crate) fn routine(catalog: &Catalog, procedure: &Procedure) -> Option<Routine> {
    let source = procedure.source()?;
    let mut header = function_header(&statement(source)).ok()?;
    header.path = source.path.clone();
    Routine::of(&View::of(catalog), &header).ok()
}

/// The qualified name of a relation that a statement names, as the catalog is seen.
///
/// # Errors
/// Those of [`relation_name`](crate::compile::relation_name).
pub(crate) fn relation_of(catalog: &Catalog, name: &ObjectName) -> Result<String> {
    crate::compile::relation_name(&View::of(catalog), name)
}

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
    let mut lookups = view.lookups.into_inner();
    if definition.is_definer {
        lookups.forget_accesses();
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
