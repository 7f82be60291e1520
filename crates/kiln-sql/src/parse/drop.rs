//! DROP of what is called by a name, and of routines.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::statement::{RoutineKind, Statement, is_object};
use super::tokens::Tokens;
use super::types::TypeReference;
use super::{extension, function, role, schema, trigger, types};

/// What [`Statement::Drop`] removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropKind {
    /// A table.
    Table,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
    /// A type.
    Type,
    /// A domain.
    Domain,
}

/// `DROP TABLE`, `DROP INDEX`, `DROP SEQUENCE`, `DROP VIEW`, `DROP TYPE` or `DROP DOMAIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    /// What is removed.
    pub kind: DropKind,
    /// A missing object is no error.
    pub if_exists: bool,
    /// What is removed, by name; never empty.
    pub names: Vec<ast::ObjectName>,
    /// What depends on it goes too.
    pub cascade: bool,
}

/// `DROP FUNCTION`, `DROP PROCEDURE` or `DROP ROUTINE`.
#[derive(Clone, Debug, PartialEq)]
pub struct DropFunction {
    /// `None` for `DROP ROUTINE`, which takes either.
    pub kind: Option<RoutineKind>,
    /// A missing routine is no error.
    pub if_exists: bool,
    /// What is removed; never empty.
    pub routines: Vec<RoutineSignature>,
    /// What depends on it goes too.
    pub cascade: bool,
}

/// A routine named by [`DropFunction`].
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineSignature {
    /// Its name.
    pub name: ast::ObjectName,
    /// The types of its input arguments, where they were given.
    pub arguments: Option<Vec<TypeReference>>,
}

pub(super) fn drop(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let kind = range.start + 1;
    match tokens.word(kind) {
        "table" => drop_named(tokens, range, DropKind::Table),
        "index" => drop_named(tokens, range, DropKind::Index),
        "sequence" => drop_named(tokens, range, DropKind::Sequence),
        "view" => drop_named(tokens, range, DropKind::View),
        "materialized" if tokens.word(kind + 1) == "view" => {
            drop_named(tokens, range, DropKind::MaterializedView)
        }
        "type" => drop_named(tokens, range, DropKind::Type),
        "domain" => drop_named(tokens, range, DropKind::Domain),
        "schema" => schema::drop(tokens, range),
        "extension" => extension::drop(tokens, range),
        "trigger" => trigger::drop(tokens, range),
        "function" => drop_function(tokens, range, Some(RoutineKind::Function)),
        "procedure" => drop_function(tokens, range, Some(RoutineKind::Procedure)),
        "routine" => drop_function(tokens, range, None),
        "role" | "user" | "group" => role::drop(tokens, range),
        word if is_object(word) => {
            let feature = format!("DROP {}", word.to_ascii_uppercase());
            Err(tokens.unsupported(range.start, &feature))
        }
        _ => Err(tokens.syntax_error(kind)),
    }
}

/// Parses what DROP names: `[CONCURRENTLY] [IF EXISTS] name, … [CASCADE | RESTRICT]`.
fn drop_named(tokens: &Tokens<'_>, range: Range<usize>, kind: DropKind) -> Result<Statement> {
    let mut at = range.start + 2 + usize::from(kind == DropKind::MaterializedView);
    // No other transaction waits for the drop of an index in any case.
    at += usize::from(kind == DropKind::Index && tokens.word(at) == "concurrently");
    let if_exists = tokens.words(at, &["if", "exists"]);
    if if_exists {
        at += 2;
    }
    let mut end = range.end;
    let cascade = end > at + 1 && tokens.word(end - 1) == "cascade";
    if cascade || (end > at + 1 && tokens.word(end - 1) == "restrict") {
        end -= 1;
    }
    let parts = tokens.split(at..end).into_iter();
    let names = parts.map(|part| types::identifiers(tokens, part).map(ast::ObjectName::from));
    Ok(Statement::Drop(Drop {
        kind,
        if_exists,
        names: names.collect::<Result<_>>()?,
        cascade,
    }))
}

fn drop_function(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    kind: Option<RoutineKind>,
) -> Result<Statement> {
    let mut start = range.start + 2;
    let if_exists = tokens.words(start, &["if", "exists"]);
    if if_exists {
        start += 2;
    }
    let mut end = range.end;
    let cascade = end > start + 1 && tokens.word(end - 1) == "cascade";
    if cascade || (end > start + 1 && tokens.word(end - 1) == "restrict") {
        end -= 1;
    }
    let routines = tokens.split(start..end).into_iter();
    let routines = routines.map(|routine| routine_signature(tokens, routine));
    Ok(Statement::DropFunction(DropFunction {
        kind,
        if_exists,
        routines: routines.collect::<Result<_>>()?,
        cascade,
    }))
}

/// Parses a routine's name, and the types of its arguments where they are given.
pub(super) fn routine_signature(
    tokens: &Tokens<'_>,
    range: Range<usize>,
) -> Result<RoutineSignature> {
    let mut rest = range.clone();
    let open = rest.find(|index| *tokens.get(*index) == Token::LParen);
    let open = open.unwrap_or(range.end);
    let name = ast::ObjectName::from(types::identifiers(tokens, range.start..open)?);
    let arguments = if open < range.end {
        let close = range.end - 1;
        if close <= open || *tokens.get(close) != Token::RParen {
            return Err(tokens.syntax_error(range.end));
        }
        let arguments = function::arguments(tokens, open + 1..close)?;
        let inputs = arguments
            .into_iter()
            .filter(|argument| argument.mode.is_input());
        Some(inputs.map(|argument| argument.data_type).collect())
    } else {
        None
    };
    Ok(RoutineSignature { name, arguments })
}
