//! Statements that define: tables, indexes, functions, and how columns are split.

use std::cell::RefCell;

use kiln_engine::{Catalog, CatalogChange, CatalogStatement, Engine, SearchPath, Source};
use kiln_platform::sync::{Arc, Mutex, lock};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::qualified::name_in_schema;
use sqlparser::ast;

use super::alter;
use super::comments;
use super::dependents::{self, Dependent};
use super::design;
use super::domains;
use super::enums;
use super::extensions;
use super::indexes;
use super::like;
use super::panics::caught;
use super::result::{Notice, StatementResult};
use super::role_settings;
use super::roles;
use super::routine::compile_routine;
use super::schemas;
use super::sequences;
use super::splits;
use super::temporary;
use super::triggers;
use super::views::{self, Dependency};
use crate::catalog::{View, relation_of, routine_of};
use crate::compile::ddl::{self, TableDeclaration};
use crate::compile::plpgsql::Routine;
use crate::compile::{
    fail, missing_schema, object_name, position_of, quote_identifier, relation_name, row_name,
    short_name, undefined_schema, unsupported, written_name,
};
use crate::parse::{
    self, Drop, DropFunction, DropKind, FunctionDefinition, RoutineKind, RoutineSignature,
    Statement as Tree,
};

/// A statement that defines, on its way into a database's catalog.
pub(super) struct Definition<'a> {
    source: Arc<Source>,
    /// The role that runs it; `None` for that which a log has kept.
    role: Option<String>,
    change: Change<'a>,
}

/// How it changes the catalog.
enum Change<'a> {
    /// By itself; as it did when it was run first, if a log has kept that.
    OfEngine(&'a Engine, Option<&'a CatalogStatement>),
    /// As a part of a transaction block, by what this runs.
    OfBlock(&'a RunChange<'a>),
}

type RunChange<'a> =
    dyn Fn(&mut dyn FnMut(&mut CatalogChange<'_>) -> Result<()>) -> Result<()> + 'a;

impl<'a> Definition<'a> {
    /// The statement of a client with this role.
    pub fn new(engine: &'a Engine, source: Source, role: &str) -> Definition<'a> {
        Definition {
            source: Arc::new(source),
            role: Some(role.to_owned()),
            change: Change::OfEngine(engine, None),
        }
    }

    /// A statement that a log kept.
    pub fn again(engine: &'a Engine, statement: &'a CatalogStatement) -> Definition<'a> {
        Definition {
            source: statement.source.clone(),
            role: None,
            change: Change::OfEngine(engine, Some(statement)),
        }
    }

    /// Runs the statement, whose syntax tree is `tree`.
    ///
    /// # Errors
    /// PostgreSQL's; the catalog is as before then.
    pub fn run(&self, tree: &Tree) -> Result<StatementResult> {
        match tree {
            Tree::CreateTable(statement) => create_table(self, statement),
            Tree::CreateSchema(statement) => schemas::create(self, statement),
            Tree::AlterSchema(statement) => schemas::alter(self, statement),
            Tree::DropSchema(statement) => schemas::drop(self, statement),
            Tree::Extension(statement) => extensions::run(self, statement),
            Tree::CreateSequence(statement) => sequences::create(self, statement),
            Tree::AlterSequence(statement) => sequences::alter(self, statement),
            Tree::CreateIndex(statement) => indexes::create(self, statement),
            Tree::CreateView(statement) => views::create(self, statement),
            Tree::AlterView(statement) => views::alter_view(self, statement),
            Tree::CreateEnum(statement) => enums::create(self, statement),
            Tree::AlterType(statement) => enums::alter(self, statement),
            Tree::CreateDomain(statement) => domains::create(self, statement),
            Tree::AlterDomain(statement) => domains::alter(self, statement),
            Tree::CreateTrigger(statement) => triggers::create(self, statement),
            Tree::DropTrigger(statement) => triggers::drop(self, statement),
            Tree::RenameTrigger(statement) => triggers::rename(self, statement),
            Tree::CreateFunction(statement) => create_function(self, statement),
            Tree::AlterTable(statement) => alter::table(self, statement),
            Tree::AlterObject(statement) => alter::object(self, statement),
            Tree::Drop(statement) => drop(self, statement),
            Tree::DropFunction(statement) => drop_function(self, statement),
            Tree::Truncate(statement) => truncate(self, statement),
            Tree::Analyze(names) => analyze(self, names),
            Tree::CreateRole(statement) => roles::create(self, statement),
            Tree::AlterRole(statement) => roles::alter(self, statement),
            Tree::RoleSetting(statement) => role_settings::change(self, statement),
            Tree::DropRole(statement) => roles::drop(self, statement),
            Tree::Owned(statement) => roles::owned(self, statement),
            Tree::Grant(statement) => roles::grant(self, statement),
            Tree::GrantRoles(statement) => roles::grant_roles(self, statement),
            Tree::DefaultPrivileges(statement) => roles::default_privileges(self, statement),
            Tree::Comment(statement) => comments::comment(self, statement),
            _ => Err(Error::internal("the statement is none that defines")),
        }
    }

    /// Changes the catalog, or leaves it as it is when `change` fails or panics.
    pub(super) fn change_catalog<T>(
        &self,
        mut change: impl FnMut(&mut CatalogChange<'_>) -> Result<T>,
    ) -> Result<T> {
        let (engine, known) = match self.change {
            Change::OfEngine(engine, known) => (engine, known),
            Change::OfBlock(run) => {
                let mut changed = None;
                run(&mut |catalog| {
                    changed = Some(self.seen(catalog, &mut change)?);
                    Ok(())
                })?;
                return changed.ok_or_else(|| Error::internal("a block runs what it is given"));
            }
        };
        engine.change_catalog(|catalog| {
            match known {
                Some(known) => catalog.redo(known)?,
                None => catalog.set_statement(self.source.clone()),
            }
            self.seen(catalog, &mut change)
        })
    }
}

impl Definition<'_> {
    /// Runs `change` with the names of the statement looked for along its path.
    fn seen<T>(
        &self,
        catalog: &mut CatalogChange<'_>,
        change: &mut impl FnMut(&mut CatalogChange<'_>) -> Result<T>,
    ) -> Result<T> {
        catalog.see_along(&self.source.path);
        if let Some(role) = &self.role {
            catalog.set_owner(role);
        }
        let changed = caught(|| change(catalog));
        catalog.see_along(&SearchPath::default());
        changed
    }
}

/// The qualified name of what a statement drops; `None` where its schema is missing and that is no
/// error.
///
/// # Errors
/// 3F000 for a schema that there is not.
pub(super) fn dropped(
    catalog: &Catalog,
    statement: &Drop,
    written: &ast::ObjectName,
    notices: &mut Vec<Notice>,
) -> Result<Option<String>> {
    let view = View::of(catalog);
    match missing_schema(&view, written)? {
        None => relation_name(&view, written).map(Some),
        Some(schema) if statement.if_exists => {
            let message = format!("schema \"{schema}\" does not exist, skipping");
            notices.push(Notice::new(message));
            Ok(None)
        }
        Some(schema) => Err(undefined_schema(&schema)),
    }
}

/// A statement that defines, in a transaction block.
pub(super) struct DefinitionOfBlock {
    tree: Arc<Tree>,
    source: Arc<Source>,
    role: String,
    /// What it gave when it was tried last.
    result: Mutex<Option<StatementResult>>,
}

impl DefinitionOfBlock {
    /// One of a client with this role.
    pub fn new(tree: Arc<Tree>, source: Source, role: &str) -> DefinitionOfBlock {
        DefinitionOfBlock {
            tree,
            role: role.to_owned(),
            source: Arc::new(source),
            result: Mutex::default(),
        }
    }

    /// What it gave.
    pub fn take_result(&self) -> StatementResult {
        lock(&self.result).take().unwrap_or_default()
    }
}

impl kiln_engine::Definition for DefinitionOfBlock {
    fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn define(&self, change: &mut CatalogChange<'_>) -> Result<()> {
        let change = RefCell::new(change);
        let run = |body: &mut dyn FnMut(&mut CatalogChange<'_>) -> Result<()>| {
            body(&mut change.borrow_mut())
        };
        let definition = Definition {
            source: self.source.clone(),
            role: Some(self.role.clone()),
            change: Change::OfBlock(&run),
        };
        *lock(&self.result) = Some(definition.run(&self.tree)?);
        Ok(())
    }
}

/// CREATE TABLE.
fn create_table(
    definition: &Definition<'_>,
    statement: &parse::CreateTable,
) -> Result<StatementResult> {
    let created = StatementResult::of_tag("CREATE TABLE");
    let is_new = definition.change_catalog(|change| {
        let expanded = like::expanded(statement, change.catalog())?;
        let table = expanded.as_ref().map_or(statement, |it| &it.table);
        let declaration = ddl::create_table(table, &View::of(change.catalog()))?;
        let Some(TableDeclaration {
            schema,
            indexes,
            sequences,
        }) = declaration
        else {
            return Ok(false);
        };
        for sequence in sequences {
            change.create_sequence(sequence, None)?;
        }
        let name = schema.name.clone();
        change.create_table(schema, 0, indexes)?;
        if let Some(on_commit) = &statement.table.on_commit {
            change.set_on_commit(&name, temporary::on_commit(on_commit));
        }
        if let Some(expanded) = &expanded {
            expanded.follow(change, &name)?;
        }
        design::derive(change)?;
        Ok(true)
    })?;
    if is_new {
        return Ok(created);
    }
    let name = row_name(&statement.table.name)?;
    Ok(created.with_notice(Notice::new(format!(
        "relation \"{name}\" already exists, skipping"
    ))))
}

/// DROP TABLE, DROP INDEX, DROP SEQUENCE, DROP VIEW, DROP TYPE and DROP DOMAIN.
fn drop(definition: &Definition<'_>, statement: &Drop) -> Result<StatementResult> {
    let tag = match statement.kind {
        DropKind::Table => "DROP TABLE",
        DropKind::Index => "DROP INDEX",
        DropKind::Sequence => "DROP SEQUENCE",
        DropKind::View => "DROP VIEW",
        DropKind::Type => "DROP TYPE",
        DropKind::Domain => "DROP DOMAIN",
    };
    let mut result = StatementResult::of_tag(tag);
    result.notices = definition.change_catalog(|change| {
        let notices = match statement.kind {
            DropKind::Table => drop_tables(change, statement)?,
            DropKind::Index => indexes::drop(change, statement)?,
            DropKind::Sequence => sequences::drop(change, statement)?,
            DropKind::View => views::drop(change, statement)?,
            DropKind::Type => enums::drop(change, statement)?,
            DropKind::Domain => domains::drop(change, statement)?,
        };
        design::derive(change)?;
        Ok(notices)
    })?;
    Ok(result)
}

fn drop_tables(change: &mut CatalogChange<'_>, statement: &Drop) -> Result<Vec<Notice>> {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    for name in &statement.names {
        let position = position_of(name);
        let Some(name) = dropped(change.catalog(), statement, name, &mut notices)? else {
            continue;
        };
        let shown = name_in_schema(&name);
        if change.catalog().table(&name).is_some() {
            if !found.contains(&name) {
                found.push(name);
            }
        } else if statement.if_exists && !is_other_relation(change, &name) {
            notices.push(Notice::new(format!(
                "table \"{shown}\" does not exist, skipping"
            )));
        } else if change.index_owner(&name).is_some() {
            let message = format!("\"{shown}\" is not a table");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("Use DROP INDEX to remove an index."));
        } else if change.catalog().sequence(&name).is_some() {
            let message = format!("\"{shown}\" is not a table");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("Use DROP SEQUENCE to remove a sequence."));
        } else if change.catalog().view(&name).is_some() {
            let message = format!("\"{shown}\" is not a table");
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                .with_hint("Use DROP VIEW to remove a view."));
        } else {
            let message = format!("table \"{shown}\" does not exist");
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        }
    }
    notices.extend(drop_all_tables(change, &found, statement.cascade)?);
    Ok(notices)
}

/// Removes tables, and what depends on them. Returns what there is to say.
///
/// # Errors
/// 2BP01 where something else depends on them, without `cascade`.
pub(super) fn drop_all_tables(
    change: &mut CatalogChange<'_>,
    found: &[String],
    cascade: bool,
) -> Result<Vec<Notice>> {
    let mut depending = Vec::new();
    for name in found {
        let references = dependents::references(change, name, |_| true).into_iter();
        let references = references.map(|it| (it, format!("table {}", short_name(name))));
        depending.extend(references);
        depending.extend(sequences::drawing_from(change.catalog(), name));
    }
    depending.retain(|(it, _)| !found.iter().any(|name| name == it.table()));
    if !depending.is_empty() && !cascade {
        let what = match found {
            [one] => format!("table {}", short_name(one)),
            _ => String::new(),
        };
        return Err(dependents::refusal(&what, &depending));
    }
    let depending: Vec<Dependent> = depending.into_iter().map(|(it, _)| it).collect();
    let mut notices = Vec::from_iter(dependents::cascade(change, &depending)?);
    let dropped: Vec<Dependency<'_>> = found.iter().map(|name| Dependency::Table(name)).collect();
    notices.extend(views::drop_dependents(change, &dropped, cascade)?);
    for name in found {
        change.drop_table(name)?;
    }
    Ok(notices)
}

/// Whether a table, an index, a sequence or a view has this name.
pub(super) fn is_other_relation(change: &CatalogChange<'_>, name: &str) -> bool {
    let catalog = change.catalog();
    change.index_owner(name).is_some()
        || catalog.table(name).is_some()
        || catalog.sequence(name).is_some()
        || catalog.view(name).is_some()
}

/// A table other than those of `except` that refers to the table called `name`, and by which
/// constraint.
fn referring(catalog: &Catalog, name: &str, except: &[String]) -> Option<(String, String)> {
    catalog.tables().find_map(|(other, table)| {
        if other == name || except.iter().any(|known| known == other) {
            return None;
        }
        let mut keys = table.schema().foreign_keys.iter();
        let key = keys.find(|key| key.table == name)?;
        Some((other.to_owned(), key.name.clone()))
    })
}

/// The tables that TRUNCATE empties, those that CASCADE adds included.
///
/// # Errors
/// 42P01; 0A000 for a table that another one refers to, without CASCADE.
pub(super) fn truncated(catalog: &Catalog, statement: &ast::Truncate) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for target in &statement.table_names {
        let position = position_of(&target.name);
        let name = relation_of(catalog, &target.name)?;
        if catalog.view(&name).is_some() {
            let message = format!("\"{}\" is not a table", name_in_schema(&name));
            return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position));
        }
        if catalog.table(&name).is_none() {
            let message = format!("relation \"{}\" does not exist", written_name(&target.name));
            return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let cascade = matches!(statement.cascade, Some(ast::CascadeOption::Cascade));
    let mut at = 0;
    while at < names.len() {
        while let Some((other, _)) = referring(catalog, &names[at], &names) {
            if !cascade {
                let name = &names[at];
                return Err(Error::unsupported(
                    "cannot truncate a table referenced in a foreign key constraint",
                )
                .with_detail(format!("Table \"{other}\" references \"{name}\"."))
                .with_hint(format!(
                    "Truncate table \"{other}\" at the same time, or use TRUNCATE ... CASCADE."
                )));
            }
            names.push(other);
        }
        at += 1;
    }
    Ok(names)
}

/// The tables in an order in which their rows can go one table after the other: those that refer to
/// others first. In a circle any is first.
pub(super) fn referring_first(catalog: &Catalog, mut names: Vec<String>) -> Vec<String> {
    let mut ordered = Vec::with_capacity(names.len());
    while !names.is_empty() {
        let is_referred_to = |name: &String| {
            let mut others = catalog.referencing(name);
            others.any(|other| other != name && names.iter().any(|known| known == other))
        };
        let free = names.iter().position(|name| !is_referred_to(name));
        ordered.push(names.remove(free.unwrap_or(0)));
    }
    ordered
}

/// TRUNCATE.
fn truncate(definition: &Definition<'_>, statement: &ast::Truncate) -> Result<StatementResult> {
    if statement.partitions.is_some() || statement.on_cluster.is_some() {
        return Err(unsupported("this form of TRUNCATE", None));
    }
    definition.change_catalog(|change| {
        let restarts = matches!(
            statement.identity,
            Some(ast::TruncateIdentityOption::Restart)
        );
        for name in truncated(change.catalog(), statement)? {
            change.truncate_table(&name)?;
            if restarts {
                change.restart_owned_sequences(&name)?;
            }
        }
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag("TRUNCATE TABLE"))
}

/// ANALYZE: derives anew which columns of tables are split, from the calls that were counted.
fn analyze(definition: &Definition<'_>, names: &[ast::ObjectName]) -> Result<StatementResult> {
    definition.change_catalog(|change| {
        let mut tables = Vec::new();
        for name in names {
            let (table, position) = (relation_of(change.catalog(), name)?, position_of(name));
            if change.catalog().table(&table).is_none() {
                let message = format!("relation \"{}\" does not exist", written_name(name));
                return Err(fail(SqlState::UNDEFINED_TABLE, message, position));
            }
            tables.push(table);
        }
        match tables.is_empty() {
            true => splits::analyse_all(change),
            false => splits::analyse(change, &tables),
        }
    })?;
    Ok(StatementResult::of_tag("ANALYZE"))
}

/// CREATE FUNCTION and CREATE PROCEDURE.
fn create_function(
    definition: &Definition<'_>,
    function: &FunctionDefinition,
) -> Result<StatementResult> {
    let mut function = function.clone();
    function.header.path = definition.source.path.clone();
    let function = &function;
    definition.change_catalog(|change| {
        let catalog = change.catalog();
        let procedure = compile_routine(catalog, function, &definition.source)?;
        let old = catalog.procedure(procedure.name());
        if let Some(old) = old.and_then(|old| routine_of(catalog, old)) {
            let new = Routine::of(&View::of(catalog), function)?;
            check_replacement(&old, &new, function.or_replace)
                .map_err(|error| error.or_at(function.position))?;
        }
        change.create_procedure(procedure, function.or_replace)?;
        design::derive(change)
    })?;
    Ok(StatementResult::of_tag(match function.kind {
        RoutineKind::Function => "CREATE FUNCTION",
        RoutineKind::Procedure => "CREATE PROCEDURE",
    }))
}

/// Whether a routine may take the place of one with its name.
fn check_replacement(old: &Routine, new: &Routine, or_replace: bool) -> Result<()> {
    let types = |routine: &Routine| -> Vec<_> {
        routine
            .inputs()
            .into_iter()
            .map(|(_, data_type)| data_type)
            .collect()
    };
    let name = &new.name;
    if types(old) != types(new) {
        return Err(Error::unsupported(format!(
            "a second {} called {name}, for other argument types, is not supported",
            kind_name(new.kind)
        ))
        .with_hint("Give it another name, or drop the first."));
    }
    if old.kind != new.kind {
        return Err(
            Error::new(SqlState::WRONG_OBJECT_TYPE, "cannot change routine kind")
                .with_detail(format!("\"{name}\" is a {}.", kind_name(old.kind))),
        );
    }
    if !or_replace {
        return Err(Error::new(
            SqlState::DUPLICATE_FUNCTION,
            format!("function \"{name}\" already exists with same argument types"),
        ));
    }
    if old.result != new.result {
        return Err(Error::new(
            SqlState::INVALID_FUNCTION_DEFINITION,
            "cannot change return type of existing function",
        )
        .with_hint(format!(
            "Use DROP {} {name} first.",
            kind_name(old.kind).to_uppercase()
        )));
    }
    Ok(())
}

pub(super) fn kind_name(kind: RoutineKind) -> &'static str {
    match kind {
        RoutineKind::Function => "function",
        RoutineKind::Procedure => "procedure",
    }
}

/// DROP FUNCTION, DROP PROCEDURE and DROP ROUTINE.
fn drop_function(definition: &Definition<'_>, statement: &DropFunction) -> Result<StatementResult> {
    let kind = statement.kind.map_or("routine", kind_name);
    let mut result = StatementResult::of_tag(&format!("DROP {}", kind.to_uppercase()));
    result.notices = definition.change_catalog(|change| {
        let mut notices = Vec::new();
        for signature in &statement.routines {
            match find_routine(change, statement.kind, signature)? {
                Some(name) => {
                    let types = argument_types(change.catalog(), &name);
                    let dropped = [Dependency::Function(&name, &types)];
                    let triggers = triggers::of_function(change.catalog(), &name);
                    if !triggers.is_empty() && !statement.cascade {
                        let what = format!("function {}({types})", quote_identifier(&name));
                        let depending = triggers.into_iter().map(|it| (it, what.clone()));
                        return Err(dependents::refusal(&what, &depending.collect::<Vec<_>>()));
                    }
                    notices.extend(dependents::cascade(change, &triggers)?);
                    notices.extend(views::drop_dependents(change, &dropped, statement.cascade)?);
                    change.drop_procedure(&name)?;
                }
                None if statement.if_exists => {
                    let name = object_name(&signature.name)?;
                    let types = match &signature.arguments {
                        Some(arguments) => type_names(change.catalog(), arguments)?.join(", "),
                        None => String::new(),
                    };
                    notices.push(Notice::new(format!(
                        "{kind} {name}({types}) does not exist, skipping"
                    )));
                }
                None => {
                    let catalog = change.catalog();
                    return Err(missing_routine(catalog, statement.kind, signature)?);
                }
            }
        }
        design::derive(change)?;
        Ok(notices)
    })?;
    Ok(result)
}

/// The error for a signature that means no routine.
pub(super) fn missing_routine(
    catalog: &Catalog,
    kind: Option<RoutineKind>,
    signature: &RoutineSignature,
) -> Result<Error> {
    let kind = kind.map_or("routine", kind_name);
    let name = object_name(&signature.name)?;
    let message = match &signature.arguments {
        None => format!("could not find a {kind} named \"{name}\""),
        Some(arguments) => {
            let types = type_names(catalog, arguments)?.join(", ");
            format!("{kind} {name}({types}) does not exist")
        }
    };
    let position = position_of(&signature.name);
    Ok(fail(SqlState::UNDEFINED_FUNCTION, message, position))
}

/// The stored name of the routine that a signature means.
pub(super) fn find_routine(
    change: &CatalogChange<'_>,
    kind: Option<RoutineKind>,
    signature: &RoutineSignature,
) -> Result<Option<String>> {
    let name = object_name(&signature.name)?;
    let known = change.catalog().procedure(&name);
    let Some(known) = known.and_then(|known| routine_of(change.catalog(), known)) else {
        return Ok(None);
    };
    if let Some(arguments) = &signature.arguments {
        let inputs = known.inputs();
        let names = type_names(change.catalog(), arguments)?;
        let same = names.len() == inputs.len()
            && names
                .iter()
                .zip(&inputs)
                .all(|(name, (_, known))| name == known.base_name());
        if !same {
            return Ok(None);
        }
    }
    if let Some(kind) = kind
        && kind != known.kind
    {
        let types = known.inputs();
        let types: Vec<&str> = types
            .iter()
            .map(|(_, data_type)| data_type.base_name())
            .collect();
        let message = format!("{name}({}) is not a {}", types.join(", "), kind_name(kind));
        return Err(fail(
            SqlState::WRONG_OBJECT_TYPE,
            message,
            position_of(&signature.name),
        ));
    }
    Ok(Some(name))
}

/// The types of a routine's arguments, with commas between them.
pub(super) fn argument_types(catalog: &Catalog, name: &str) -> String {
    let known = catalog.procedure(name);
    let known = known.and_then(|known| routine_of(catalog, known));
    let inputs = known.map(|known| known.inputs()).unwrap_or_default();
    let types = inputs.iter().map(|(_, data_type)| data_type.base_name());
    types.collect::<Vec<_>>().join(",")
}

fn type_names(catalog: &Catalog, arguments: &[parse::TypeReference]) -> Result<Vec<String>> {
    let view = View::of(catalog);
    arguments
        .iter()
        .map(|argument| match &argument.kind {
            parse::TypeKind::Sql(written) => {
                let position = Some((argument.position.line, argument.position.column));
                let data_type = crate::compile::data_type(written, &view, position)?;
                Ok(data_type.base_name().to_owned())
            }
            _ => {
                let position = Some((argument.position.line, argument.position.column));
                Err(unsupported("this type in a signature", position))
            }
        })
        .collect()
}
