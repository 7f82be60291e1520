//! Calls of builtin functions with arguments by name, and with an array in place of the last
//! arguments.

use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::DataType;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Subscript, Value,
};

use super::bound::Bound;
use super::coerce::{CastContext, coerce};
use super::functions::spread::Spread;
use super::json::Maker;
use super::{Compiler, Position, fail, functions, name_of, position_of, unsupported};
use crate::catalog::argument_names;
use crate::parse::behind_variadic;

/// The value behind VARIADIC.
pub(super) fn variadic(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(value),
            ..
        }
        | FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(value),
            ..
        } if behind_variadic(name).is_some() => Some(value),
        _ => None,
    }
}

/// What stands for an argument that is left out before one that is given.
fn default_of(function: &str, argument: &str) -> Option<Expr> {
    let value = match (function, argument) {
        ("make_interval", _) => Value::Number("0".to_owned(), false),
        ("jsonb_set" | "jsonb_set_lax", "create_if_missing") => Value::Boolean(true),
        (_, "silent" | "insert_after") => Value::Boolean(false),
        (_, "vars") => Value::SingleQuotedString("{}".to_owned()),
        _ => return None,
    };
    Some(Expr::value(value))
}

impl Compiler<'_> {
    fn undefined_call(&mut self, name: &str, shown: &[String], position: Position) -> super::Error {
        let message = format!("function {name}({}) does not exist", shown.join(", "));
        let hint = "No function matches the given name and argument types. You might need to add \
                    explicit type casts.";
        fail(SqlState::UNDEFINED_FUNCTION, message, position).with_hint(hint)
    }

    /// The call of a builtin function with its arguments in their places; some were given by name.
    ///
    /// # Errors
    /// 42883 where it has no such arguments, 42601 where they are given twice, or by place behind
    /// others.
    pub(super) fn placed(&mut self, function: &Function, name: &str) -> Result<Function> {
        let position = position_of(function);
        let FunctionArguments::List(list) = &function.args else {
            return Ok(function.clone());
        };
        let mut given: Vec<(Option<String>, &Expr)> = Vec::with_capacity(list.args.len());
        let mut shown = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let (named, value) = match argument {
                FunctionArg::Named { name, arg, .. } => (Some(name_of(name)), arg),
                FunctionArg::ExprNamed {
                    name: Expr::Identifier(name),
                    arg,
                    ..
                } => (Some(name_of(name)), arg),
                FunctionArg::Unnamed(arg) => (None, arg),
                FunctionArg::ExprNamed { .. } => {
                    return Err(unsupported("this argument", position));
                }
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Err(unsupported("this argument", position));
            };
            if named.is_none() && given.last().is_some_and(|(name, _)| name.is_some()) {
                let message = "positional argument cannot follow named argument";
                return Err(fail(SqlState::SYNTAX_ERROR, message, position_of(value)));
            }
            if named.is_some() && given.iter().any(|(other, _)| *other == named) {
                let named = named.unwrap_or_default();
                let message = format!("argument name \"{named}\" used more than once");
                return Err(fail(SqlState::SYNTAX_ERROR, message, position));
            }
            let type_name = self.bind(value)?.type_name();
            shown.push(match &named {
                Some(named) => format!("{named} => {type_name}"),
                None => type_name,
            });
            given.push((named, value));
        }
        let mut known = argument_names(name);
        if name == "make_interval" {
            // The list of PostgreSQL's functions does not have it.
            let parts = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
            known.push((parts.to_vec(), 0));
        }
        for (names, required) in known {
            if let Some(arguments) = arranged(name, &given, &names, required) {
                let mut call = function.clone();
                if let FunctionArguments::List(list) = &mut call.args {
                    let unnamed = |value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
                    list.args = arguments.into_iter().map(unnamed).collect();
                }
                return Ok(call);
            }
        }
        Err(self.undefined_call(name, &shown, position))
    }

    /// Binds a call whose last argument stands behind VARIADIC; `None` for other calls.
    ///
    /// # Errors
    /// 42804 for one that is no array, 42883 for functions that take no number of arguments.
    pub(super) fn bind_variadic_call(
        &mut self,
        function: &Function,
        name: &str,
    ) -> Result<Option<Bound>> {
        let FunctionArguments::List(list) = &function.args else {
            return Ok(None);
        };
        let Some((last, before)) = list.args.split_last() else {
            return Ok(None);
        };
        let position = position_of(function);
        if before.iter().any(|argument| variadic(argument).is_some()) {
            let message = "syntax error at or near \",\"";
            return Err(fail(SqlState::SYNTAX_ERROR, message, position));
        }
        let Some(value) = variadic(last) else {
            return Ok(None);
        };
        let mut arguments = Vec::with_capacity(list.args.len());
        for argument in before {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                return Err(unsupported("this argument", position));
            };
            arguments.push(self.bind(expr)?);
        }
        let array = self.bind(value)?;
        let mut shown: Vec<String> = arguments.iter().map(Bound::type_name).collect();
        let is_array = !array.is_unknown() && array.data_type.element().is_some();
        let refused =
            |message: &str| fail(SqlState::DATATYPE_MISMATCH, message, position_of(value));
        if let Some(spread) = Spread::of(name) {
            if arguments.len() != spread.before {
                shown.push(array.type_name());
                return Err(self.undefined_call(name, &shown, position));
            }
            if !is_array {
                return Err(refused("VARIADIC argument must be an array"));
            }
            let text = |bound| coerce(bound, &DataType::Text, CastContext::Implicit);
            arguments = arguments.into_iter().map(text).collect::<Result<_>>()?;
            arguments.push(match spread.of_texts {
                true => self.texts_of(array, position)?,
                false => array,
            });
            let Spread {
                named, data_type, ..
            } = spread;
            return Ok(Some(functions::direct(
                named, arguments, data_type, position,
            )));
        }
        let step = match name {
            "jsonb_extract_path" | "json_extract_path" => Some(BinaryOperator::HashArrow),
            "jsonb_extract_path_text" | "json_extract_path_text" => {
                Some(BinaryOperator::HashLongArrow)
            }
            _ => None,
        };
        if let (Some(op), [FunctionArg::Unnamed(FunctionArgExpr::Expr(document))]) = (step, before)
        {
            let path = Expr::BinaryOp {
                left: Box::new(document.clone()),
                op,
                right: Box::new(value.clone()),
            };
            return self.bind(&path).map(Some);
        }
        let is_builder = matches!(
            name,
            "json_build_array" | "jsonb_build_array" | "json_build_object" | "jsonb_build_object"
        );
        let Some(maker) = Maker::of(name).filter(|_| is_builder && arguments.is_empty()) else {
            shown.push(array.type_name());
            return Err(self.undefined_call(name, &shown, position));
        };
        if !is_array {
            return Err(refused("VARIADIC argument must be an array"));
        }
        let Expr::Array(written) = value else {
            let what = format!("{name} of an array that is no ARRAY[…]");
            return Err(unsupported(what, position));
        };
        // Each element as the array has it.
        let element = |at: usize| Expr::CompoundFieldAccess {
            root: Box::new(Expr::Nested(Box::new(value.clone()))),
            access_chain: vec![AccessExpr::Subscript(Subscript::Index {
                index: Expr::value(Value::Number((at + 1).to_string(), false)),
            })],
        };
        let elements: Vec<Expr> = (0..written.elem.len()).map(element).collect();
        let elements: Vec<&Expr> = elements.iter().collect();
        self.bind_json(maker, name, &elements, position).map(Some)
    }
}

/// The arguments in the order of a function's names, if it has those that are given, and all that it
/// needs.
fn arranged(
    function: &str,
    given: &[(Option<String>, &Expr)],
    names: &[&str],
    required: usize,
) -> Option<Vec<Expr>> {
    let mut places: Vec<Option<Expr>> = vec![None; names.len()];
    for (at, (named, value)) in given.iter().enumerate() {
        let at = match named {
            Some(named) => names.iter().position(|name| name == named)?,
            None => at,
        };
        let place = places.get_mut(at)?;
        if place.is_some() {
            return None;
        }
        *place = Some((*value).clone());
    }
    let count = places.iter().rposition(Option::is_some)? + 1;
    if count < required {
        return None;
    }
    let each = places.into_iter().take(count).enumerate();
    each.map(|(at, place)| match place {
        Some(value) => Some(value),
        None if at < required => None,
        None => default_of(function, names[at]),
    })
    .collect()
}
