//! CREATE FUNCTION and DROP FUNCTION, and routines by name.

use kiln_engine::{Catalog, CatalogChange};
use kiln_storage::error::{Error, Result, SqlState};

use super::definition::Definition;
use super::dependents;
use super::design;
use super::result::{Notice, StatementResult};
use super::routine::compile_routine;
use super::triggers;
use super::views::{self, Dependency};
use crate::catalog::{View, routine_of};
use crate::compile::plpgsql::Routine;
use crate::compile::{fail, object_name, position_of, quote_identifier, unsupported};
use crate::parse::{self, DropFunction, FunctionDefinition, RoutineKind, RoutineSignature};

/// CREATE FUNCTION and CREATE PROCEDURE.
pub(super) fn create_function(
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
    let refused = |message: &str| {
        let hint = format!(
            "Use DROP {} {name} first.",
            kind_name(old.kind).to_uppercase()
        );
        Err(Error::new(SqlState::INVALID_FUNCTION_DEFINITION, message).with_hint(hint))
    };
    if old.result != new.result {
        return refused("cannot change return type of existing function");
    }
    // Calls name parameters, and leave out those with defaults.
    let inputs = |routine: &Routine| -> Vec<(String, bool)> {
        let parameters = routine.parameters.iter();
        let inputs = parameters.filter(|parameter| parameter.mode.is_input());
        let inputs = inputs.map(|input| (input.name.clone(), input.default.is_some()));
        inputs.collect()
    };
    for ((known, had_default), (name, has_default)) in inputs(old).into_iter().zip(inputs(new)) {
        if !known.is_empty() && known != name {
            return refused(&format!(
                "cannot change name of input parameter \"{known}\""
            ));
        }
        if had_default && !has_default {
            return refused("cannot remove parameter defaults from existing function");
        }
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
pub(super) fn drop_function(
    definition: &Definition<'_>,
    statement: &DropFunction,
) -> Result<StatementResult> {
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
