//! Which parameter of a routine gets which argument of a call.

use kiln_storage::error::{Error, Result, SqlState};
use sqlparser::ast::Ident;

use super::super::bound::{Bound, Routine, RoutineParameter};
use super::super::coerce::{CastContext, coerce, converts_implicitly};
use super::super::{Compiler, Position, fail, functions, name_of, position_of_span};
use crate::parse::{ArgumentMode, RoutineKind, behind_variadic};

/// An argument, with its name if it has one.
pub(in super::super) type Argument<'g> = (Option<&'g Ident>, Bound);

impl Routine {
    /// The input parameters' values, converted: `given` are the arguments in the order written.
    /// With `outputs` there is one for each OUT parameter too, as in CALL; it is not even computed.
    ///
    /// # Errors
    /// 42883 when the routine takes other arguments.
    pub(in super::super) fn arguments(
        &self,
        c: &mut Compiler<'_>,
        given: &[Argument<'_>],
        outputs: bool,
        position: Position,
    ) -> Result<Vec<Bound>> {
        let chosen = self.chosen(given, outputs, position)?;
        let gathers = self.gathers(given);
        let mut values = Vec::new();
        for (parameter, chosen) in self.taken(outputs).zip(chosen) {
            if let (Some(first), ArgumentMode::Variadic, true) = (chosen, parameter.mode, gathers) {
                values.push(self.gathered(parameter, given, first, position)?);
                continue;
            }
            let bound = match (chosen, &parameter.default) {
                (Some(number), _) if !parameter.mode.is_input() => {
                    let given = &given[number].1;
                    if given.is_open_parameter() {
                        coerce(given.clone(), &parameter.data_type, CastContext::Assignment)?;
                    }
                    continue;
                }
                (Some(number), _) => given[number].1.clone(),
                (None, Some(default)) => c.isolated(|c| c.bind(default))?,
                (None, None) => return Err(self.undefined(given, position)),
            };
            if chosen.is_some() && !converts_implicitly(&bound, &parameter.data_type) {
                return Err(self.undefined(given, position));
            }
            values.push(coerce(
                bound,
                &parameter.data_type,
                CastContext::Assignment,
            )?);
        }
        Ok(values)
    }

    /// Whether a call gives the elements of the VARIADIC parameter one by one.
    fn gathers(&self, given: &[Argument<'_>]) -> bool {
        let mut parameters = self.parameters.iter();
        let is_array =
            |(name, _): &Argument<'_>| name.is_some_and(|name| behind_variadic(name).is_some());
        parameters.any(|it| it.mode == ArgumentMode::Variadic) && !given.iter().any(is_array)
    }

    /// The arguments from `first` on as the array that the VARIADIC parameter is.
    fn gathered(
        &self,
        parameter: &RoutineParameter,
        given: &[Argument<'_>],
        first: usize,
        position: Position,
    ) -> Result<Bound> {
        let element = parameter.data_type.element();
        let element = element.ok_or_else(|| self.undefined(given, position))?;
        let mut elements = Vec::with_capacity(given.len() - first);
        for (_, bound) in &given[first..] {
            if !converts_implicitly(bound, &element) {
                return Err(self.undefined(given, position));
            }
            elements.push(coerce(bound.clone(), &element, CastContext::Assignment)?);
        }
        let array = parameter.data_type.clone();
        Ok(functions::direct(
            functions::construct_array(),
            elements,
            array,
            position,
        ))
    }

    /// The parameters that a call may give.
    pub(super) fn taken(&self, outputs: bool) -> impl Iterator<Item = &RoutineParameter> {
        let parameters = self.parameters.iter();
        parameters.filter(move |parameter| outputs || parameter.mode.is_input())
    }

    /// For each parameter that a call may give, the argument that it gets.
    pub(super) fn chosen(
        &self,
        given: &[Argument<'_>],
        outputs: bool,
        position: Position,
    ) -> Result<Vec<Option<usize>>> {
        let mut chosen: Vec<Option<usize>> = vec![None; self.taken(outputs).count()];
        let gathers = self.gathers(given);
        if gathers && given.iter().any(|(name, _)| name.is_some()) {
            return Err(self.undefined(given, position));
        }
        for (number, (name, _)) in given.iter().enumerate() {
            let name = name.map(shown_name).filter(|name| !name.is_empty());
            let target = match name {
                None if gathers && number >= chosen.len() && !chosen.is_empty() => continue,
                None => Some(number).filter(|number| *number < chosen.len()),
                Some(name) => self
                    .taken(outputs)
                    .position(|parameter| parameter.name == name),
            };
            let Some(target) = target else {
                return Err(self.undefined(given, position));
            };
            if chosen[target].replace(number).is_some() {
                let name = given[number].0.map(shown_name).unwrap_or_default();
                let message = format!("argument name \"{name}\" used more than once");
                let own = given[number]
                    .0
                    .and_then(|ident| position_of_span(ident.span));
                return Err(fail(SqlState::SYNTAX_ERROR, message, own.or(position)));
            }
        }
        Ok(chosen)
    }

    /// The error of a call with other arguments than the routine takes.
    pub(super) fn undefined(&self, given: &[Argument<'_>], position: Position) -> Error {
        undefined(self.kind, &self.name, given, position)
    }
}

/// `procedure p(integer, b => unknown) does not exist`.
pub(super) fn undefined(
    kind: RoutineKind,
    name: &str,
    given: &[Argument<'_>],
    position: Position,
) -> Error {
    let kind = match kind {
        RoutineKind::Function => "function",
        RoutineKind::Procedure => "procedure",
    };
    let message = format!("{kind} {name}({}) does not exist", types_of(given));
    fail(SqlState::UNDEFINED_FUNCTION, message, position).with_hint(format!(
        "No {kind} matches the given name and argument types. You might need to add explicit type casts."
    ))
}

/// The types of arguments as error messages list them.
pub(super) fn types_of(given: &[Argument<'_>]) -> String {
    let types = given
        .iter()
        .map(|(name, bound)| match name.map(shown_name) {
            Some(name) if !name.is_empty() => format!("{name} => {}", bound.type_name()),
            _ => bound.type_name(),
        });
    types.collect::<Vec<_>>().join(", ")
}

/// The name of an argument, without the mark of VARIADIC.
fn shown_name(name: &Ident) -> String {
    match behind_variadic(name) {
        Some(own) => own.to_owned(),
        None => name_of(name),
    }
}
