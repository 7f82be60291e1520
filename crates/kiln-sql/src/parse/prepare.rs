//! Prepared statements in SQL: PREPARE, EXECUTE, DEALLOCATE.

use std::ops::Range;

use kiln_storage::error::{Position, Result};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::script::SourceStatement;
use super::statement::{Statement, query_parts};
use super::tokens::Tokens;
use super::types;

/// A part of a script that is parsed by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its text.
    pub text: String,
    /// Where that begins.
    pub position: Position,
}

/// `PREPARE name (types) AS statement`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// What the statement is called.
    pub name: String,
    /// The types of its first parameters; `None` for `unknown`, which is to be inferred.
    pub types: Vec<Option<ast::DataType>>,
    /// The statement.
    pub statement: Part,
}

/// `EXECUTE name (values)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Execute {
    /// What the statement is called.
    pub name: String,
    /// The query of one row that gives its parameters their values.
    pub values: Option<Box<ast::Query>>,
}

impl Part {
    /// The part as a statement of its own.
    pub fn source(&self) -> SourceStatement<'_> {
        SourceStatement {
            text: &self.text,
            line: self.position.line,
            column: self.position.column,
        }
    }

    /// These tokens, of which there is at least one.
    pub(super) fn of(tokens: &Tokens<'_>, range: Range<usize>) -> Part {
        Part {
            position: tokens.position(range.start),
            text: tokens.text(range).to_owned(),
        }
    }
}

/// Parses PREPARE.
pub(super) fn prepare(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let name = range.start + 1;
    if tokens.word(name) == "transaction" {
        return Err(tokens.unsupported(range.start, "two-phase commit"));
    }
    let mut at = name + 1;
    let mut known = Vec::new();
    if *tokens.get(at) == Token::LParen {
        let close = tokens.find(at + 1, |tokens, at| *tokens.get(at) == Token::RParen)?;
        for part in tokens.split(at + 1..close) {
            known.push(match tokens.word(part.start) {
                "unknown" if part.len() == 1 => None,
                _ => Some(tokens.sql(part, |parser| parser.parse_data_type())?),
            });
        }
        at = close + 1;
    }
    if tokens.word(at) != "as" || at >= range.end {
        return Err(tokens.syntax_error(at));
    }
    match tokens.word(at + 1) {
        "select" | "insert" | "update" | "delete" | "merge" | "values" | "with" | "table" => {}
        "" if *tokens.get(at + 1) == Token::LParen => {}
        _ => return Err(tokens.syntax_error(at + 1)),
    }
    Ok(Statement::Prepare(Box::new(Prepare {
        name: types::identifier(tokens, name)?.value,
        types: known,
        statement: Part::of(tokens, at + 1..range.end),
    })))
}

/// Parses EXECUTE.
pub(super) fn execute(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let name = types::identifier(tokens, range.start + 1)?.value;
    let open = range.start + 2;
    let values = match range.len() {
        2 => None,
        3.. if *tokens.get(open) == Token::LParen
            && *tokens.get(range.end - 1) == Token::RParen =>
        {
            let within = open + 1..range.end - 1;
            match within.is_empty() {
                true => None,
                false => Some(query_parts(tokens, Some("select"), &[within])?),
            }
        }
        _ => return Err(tokens.syntax_error(open)),
    };
    Ok(Statement::Execute(Box::new(Execute { name, values })))
}

/// Parses DEALLOCATE.
pub(super) fn deallocate(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut name = range.start + 1;
    if tokens.word(name) == "prepare" && range.len() > 2 {
        name += 1;
    }
    all_or_name(tokens, name..range.end).map(Statement::Deallocate)
}

/// A name, or `None` for ALL.
pub(super) fn all_or_name(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Option<String>> {
    match range.len() {
        1 if tokens.word(range.start) == "all" => Ok(None),
        1 => types::identifier(tokens, range.start).map(|name| Some(name.value)),
        0 => Err(tokens.syntax_error(range.start)),
        _ => Err(tokens.syntax_error(range.start + 1)),
    }
}
