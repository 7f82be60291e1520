//! Which builtin a call means: PostgreSQL's rules for choosing among signatures, and the calls of
//! builtins whose types no signature says.

mod enumeration;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::DataType;

use super::bound::{Bound, Builtin, Kind, Operation};
use super::category::{Category, category, is_preferred};
use super::coerce::{CastContext, coerce, converts_implicitly, session_style};
use super::constant::operation;
use super::functions::{Function, Signature, Ty, candidates, exists, reads_style};
use super::types::same_base;
use super::{Position, fail, unsupported};
use crate::catalog::is_missing_function;

/// Binds a call of the builtin `name`.
///
/// # Errors
/// 42883 when there is none for these arguments, 42725 when there are several.
pub(super) fn bind(name: &str, arguments: Vec<Bound>, position: Position) -> Result<Bound> {
    if let Some(bound) = enumeration::bind(name, &arguments, position)? {
        return Ok(bound);
    }
    let all = candidates(name);
    let Some(signature) = choose(&all, &arguments) else {
        let is_ambiguous = all
            .iter()
            .filter(|signature| accepts(signature, &arguments))
            .nth(1)
            .is_some();
        return Err(no_function(name, &arguments, is_ambiguous, position));
    };
    let mut element = None;
    for (ty, argument) in signature.arguments.iter().zip(&arguments) {
        match (ty, argument.data_type.element()) {
            (Ty::AnyArray, Some(inner)) if !argument.is_unknown() => {
                element = Some(inner);
            }
            (Ty::AnyElement, _) if !argument.is_unknown() && element.is_none() => {
                element = Some(argument.data_type.clone());
            }
            _ => {}
        }
    }
    let element = element.unwrap_or(DataType::Text);
    let mut operands = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.into_iter().enumerate() {
        let ty = signature
            .arguments
            .get(index)
            .or(signature.arguments.last());
        let target = match ty {
            Some(Ty::AnyText) => {
                if let Kind::Parameter(parameter) = &argument.kind {
                    // Any type would do, so that none is decided.
                    parameter.leave_undecided(argument.position);
                    operands.push(Bound::null(DataType::Text, argument.position));
                    continue;
                }
                operands.push(super::coerce::to_output_text(argument)?);
                continue;
            }
            Some(Ty::AnyArray) => DataType::array(element.clone()),
            Some(Ty::AnyElement) => element.clone(),
            Some(ty) => ty.data_type(),
            None => continue,
        };
        operands.push(coerce(argument, &target, CastContext::Implicit)?);
    }
    if reads_style(signature.name, signature.arguments) {
        operands.push(session_style(position));
    }
    let result = match signature.result {
        Ty::AnyArray => DataType::array(element),
        Ty::AnyElement => element,
        other => other.data_type(),
    };
    let call = match signature.function {
        Function::Scalar(function) => Operation::Call(Builtin {
            name: signature.name,
            function,
            volatile: signature.volatile,
        }),
        Function::Catalog(call) => Operation::Consult(call),
    };
    Ok(operation(call, operands, result, position))
}

#[cold]
fn no_function(name: &str, arguments: &[Bound], ambiguous: bool, position: Position) -> Error {
    if !exists(name) && is_missing_function(name) {
        return unsupported(format!("function {name}"), position);
    }
    let types: Vec<String> = arguments.iter().map(Bound::type_name).collect();
    let call = format!("{name}({})", types.join(", "));
    if ambiguous {
        return fail(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("function {call} is not unique"),
            position,
        )
        .with_hint(
            "Could not choose a best candidate function. You might need to add explicit type \
             casts.",
        );
    }
    fail(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {call} does not exist"),
        position,
    )
    .with_hint(
        "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
    )
}

fn is_variadic(signature: &Signature) -> bool {
    signature.arguments.last() == Some(&Ty::AnyText)
}

fn accepts(signature: &Signature, arguments: &[Bound]) -> bool {
    let fits = if is_variadic(signature) {
        arguments.len() >= signature.arguments.len()
    } else {
        arguments.len() == signature.arguments.len()
    };
    if !fits {
        return false;
    }
    let mut element: Option<DataType> = None;
    signature
        .arguments
        .iter()
        .zip(arguments)
        .all(|(ty, argument)| {
            if argument.is_unknown() {
                return true;
            }
            match (ty, argument.data_type.element()) {
                (Ty::AnyText, _) => true,
                (Ty::AnyArray, Some(inner)) => {
                    let agrees = element
                        .as_ref()
                        .is_none_or(|known| same_base(known, &inner));
                    element = Some(inner);
                    agrees
                }
                (Ty::AnyArray, None) => false,
                (Ty::AnyElement, _) => match &element {
                    Some(known) => converts_implicitly(argument, known),
                    None => {
                        element = Some(argument.data_type.clone());
                        true
                    }
                },
                (ty, _) => converts_implicitly(argument, &ty.data_type()),
            }
        })
}

/// PostgreSQL's rules (manual, section 10.3): an exact match; else the most exact matches, then
/// the most preferred types; then literals without a type are taken for strings where a string
/// fits, or for the category that all candidates agree on.
fn choose(all: &[Signature], arguments: &[Bound]) -> Option<Signature> {
    let mut left: Vec<&Signature> = all
        .iter()
        .filter(|signature| accepts(signature, arguments))
        .collect();
    let ty_of = |signature: &Signature, index: usize| {
        signature
            .arguments
            .get(index)
            .or(signature.arguments.last())
            .copied()
    };
    let is_exact = |signature: &Signature, index: usize| {
        let argument = &arguments[index];
        match ty_of(signature, index) {
            _ if argument.is_unknown() => false,
            Some(ty) if ty.is_polymorphic() => true,
            Some(ty) => same_base(&ty.data_type(), &argument.data_type),
            None => false,
        }
    };
    let exact = |signature: &&Signature| {
        (0..arguments.len())
            .filter(|index| is_exact(signature, *index))
            .count()
    };
    let preferred = |signature: &&Signature| {
        (0..arguments.len())
            .filter(|index| {
                is_exact(signature, *index)
                    || (!arguments[*index].is_unknown()
                        && ty_of(signature, *index).is_some_and(|ty| is_preferred(&ty.data_type())))
            })
            .count()
    };
    for measure in [&exact as &dyn Fn(&&Signature) -> usize, &preferred] {
        if let Some(best) = left.iter().map(measure).max() {
            left.retain(|signature| measure(signature) == best);
        }
    }
    for (index, _) in arguments
        .iter()
        .enumerate()
        .filter(|(_, argument)| argument.is_unknown())
    {
        if left.len() < 2 {
            break;
        }
        let of =
            |signature: &&Signature| ty_of(signature, index).map(|ty| category(&ty.data_type()));
        let wanted = if left
            .iter()
            .any(|signature| of(signature) == Some(Category::String))
        {
            Some(Category::String)
        } else {
            let first = left.first().and_then(of);
            left.iter()
                .all(|signature| of(signature) == first)
                .then_some(first)
                .flatten()
        };
        let Some(wanted) = wanted else { continue };
        left.retain(|signature| of(signature) == Some(wanted));
        let is_best = |signature: &&Signature| {
            ty_of(signature, index).is_some_and(|ty| is_preferred(&ty.data_type()))
        };
        if left.iter().any(is_best) {
            left.retain(is_best);
        }
    }
    match left.as_slice() {
        [] => None,
        [only] => Some(**only),
        several => {
            // Last: assume literals to be of the type that all other arguments share.
            let known = arguments.iter().find(|argument| !argument.is_unknown())?;
            let same: Vec<&&Signature> = several
                .iter()
                .filter(|signature| {
                    (0..arguments.len()).all(|index| {
                        ty_of(signature, index)
                            .is_some_and(|ty| same_base(&ty.data_type(), &known.data_type))
                    })
                })
                .collect();
            match same.as_slice() {
                [only] => Some(***only),
                _ => None,
            }
        }
    }
}
