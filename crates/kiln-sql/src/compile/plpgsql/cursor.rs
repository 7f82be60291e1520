//! Cursors of bodies that are run step by step: which variables are cursors, and what OPEN gives
//! their arguments.

use kiln_storage::error::{Error, Result, SqlState};
use sqlparser::ast::Ident;

use super::super::{fail, name_of};
use super::at;
use crate::parse::Expression;
use crate::parse::plpgsql::{BoundCursor, Target};

/// The values of a cursor's arguments in the order of its declaration.
///
/// # Errors
/// 42601 where they do not fit the declaration.
pub fn cursor_arguments<'e>(
    cursor: &Target,
    bound: &BoundCursor,
    given: Option<&'e [(Option<Ident>, Expression)]>,
) -> Result<Vec<&'e Expression>> {
    let name = cursor.path.last().map(name_of).unwrap_or_default();
    let refused = |message: String| fail(SqlState::SYNTAX_ERROR, message, at(cursor.position));
    let given = match (given, bound.arguments.len()) {
        (None, 0) => return Ok(Vec::new()),
        (Some(_), 0) => return Err(refused(format!("cursor \"{name}\" has no arguments"))),
        (None, _) => return Err(refused(format!("cursor \"{name}\" has arguments"))),
        (Some(given), _) => given,
    };
    let mut values: Vec<Option<&Expression>> = vec![None; bound.arguments.len()];
    for (position, (named, value)) in given.iter().enumerate().take(values.len()) {
        let place = match named {
            None => position,
            Some(named) => {
                let named = name_of(named);
                let mut arguments = bound.arguments.iter();
                let place = arguments.position(|it| name_of(&it.name) == named);
                place.ok_or_else(|| {
                    refused(format!(
                        "cursor \"{name}\" has no argument named \"{named}\""
                    ))
                })?
            }
        };
        if values[place].replace(value).is_some() {
            let argument = name_of(&bound.arguments[place].name);
            return Err(refused(format!(
                "value for parameter \"{argument}\" of cursor \"{name}\" specified more than once"
            )));
        }
    }
    if given.len() > values.len() {
        return Err(refused(format!("too many arguments for cursor \"{name}\"")));
    }
    let values: Option<Vec<&Expression>> = values.into_iter().collect();
    values.ok_or_else(|| refused(format!("not enough arguments for cursor \"{name}\"")))
}

/// The error of a loop over what is no cursor with a query of its own, and of an OPEN without one.
#[cold]
pub fn unbound(cursor: &Target, is_loop: bool) -> Error {
    let message = match is_loop {
        true => "cursor FOR loop must use a bound cursor variable",
        false => "OPEN of a cursor without a query of its own needs FOR",
    };
    fail(SqlState::SYNTAX_ERROR, message, at(cursor.position))
}

/// The error of an OPEN … FOR of a cursor that has a query of its own.
#[cold]
pub fn bound_already(cursor: &Target) -> Error {
    let message = "OPEN of a cursor with a query of its own takes no FOR";
    fail(SqlState::SYNTAX_ERROR, message, at(cursor.position))
}
