//! COPY: what is copied, which way, and its options as they stand.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::prepare::Part;
use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// `COPY what FROM STDIN` or `COPY what TO STDOUT`, or with a file of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// What is copied.
    pub what: Copied,
    /// Whether rows come from the client, or from the file.
    pub is_in: bool,
    /// The file of the server, if it is not the client.
    pub file: Option<String>,
    /// Names of options in lower case, and what was given to each.
    pub options: Vec<(String, Vec<String>)>,
}

/// What [`struct@Copy`] copies.
#[derive(Clone, Debug, PartialEq)]
pub enum Copied {
    /// These columns of a table, or all.
    Table {
        /// The table.
        name: ast::ObjectName,
        /// Columns; none stands for all.
        columns: Vec<ast::Ident>,
    },
    /// The rows of a statement.
    Query(Part),
}

/// Parses all of `range` as a COPY.
pub(super) fn copy(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut options = Vec::new();
    let mut at = range.start + 1;
    if tokens.word(at) == "binary" {
        options.push(option("format", ["binary".to_owned()]));
        at += 1;
    }
    let (what, next) = match tokens.get(at) {
        Token::LParen => query(tokens, at, range.end)?,
        _ => table(tokens, at, range.end)?,
    };
    let is_in = match tokens.word(next) {
        "from" => true,
        "to" => false,
        _ => return Err(tokens.syntax_error(next)),
    };
    if is_in && matches!(what, Copied::Query(_)) {
        return Err(tokens.syntax_error(next));
    }
    let end = next + 1;
    let file = match (is_in, tokens.word(end)) {
        (true, "stdin") | (false, "stdout") => None,
        (true, "stdout") | (false, "stdin") => return Err(tokens.syntax_error(end)),
        (_, "program") => return Err(tokens.unsupported(end, "COPY with a program")),
        _ => match tokens.get(end) {
            Token::SingleQuotedString(path) | Token::EscapedStringLiteral(path) => {
                Some(path.clone())
            }
            _ => return Err(tokens.syntax_error(end)),
        },
    };
    let mut at = end + 1;
    if at < range.end && tokens.word(at) == "with" {
        at += 1;
    }
    if at < range.end && *tokens.get(at) == Token::LParen {
        let close = range.end - 1;
        if *tokens.get(close) != Token::RParen {
            let position = (at..range.end).find(|at| tokens.word(*at) == "where");
            return Err(match position {
                Some(position) => tokens.unsupported(position, "COPY with WHERE"),
                None => tokens.syntax_error(range.end),
            });
        }
        for part in tokens.split(at + 1..close) {
            options.push(listed(tokens, part)?);
        }
    } else {
        older(tokens, at..range.end, &mut options)?;
    }
    Ok(Statement::Copy(Box::new(Copy {
        what,
        is_in,
        file,
        options,
    })))
}

fn option<const N: usize>(name: &str, values: [String; N]) -> (String, Vec<String>) {
    (name.to_owned(), values.into())
}

/// A statement in brackets, and what comes behind it.
fn query(tokens: &Tokens<'_>, open: usize, end: usize) -> Result<(Copied, usize)> {
    let is_close = |tokens: &Tokens<'_>, at: usize| *tokens.get(at) == Token::RParen;
    let close = tokens.find(open + 1, is_close)?;
    if close >= end || close == open + 1 {
        return Err(tokens.syntax_error(open + 1));
    }
    match tokens.word(open + 1) {
        "select" | "values" | "with" | "table" | "insert" | "update" | "delete" | "" => {}
        _ => return Err(tokens.syntax_error(open + 1)),
    }
    Ok((Copied::Query(Part::of(tokens, open + 1..close)), close + 1))
}

/// A table, its columns, and what comes behind them.
fn table(tokens: &Tokens<'_>, start: usize, end: usize) -> Result<(Copied, usize)> {
    let ends =
        |at: &usize| *tokens.get(*at) == Token::LParen || matches!(tokens.word(*at), "from" | "to");
    let mut next = (start..end).find(ends).unwrap_or(end);
    let name = ast::ObjectName::from(types::identifiers(tokens, start..next)?);
    let mut columns = Vec::new();
    if next < end && *tokens.get(next) == Token::LParen {
        let close = (next..end).find(|at| *tokens.get(*at) == Token::RParen);
        let close = close.ok_or_else(|| tokens.syntax_error(end))?;
        columns = names(tokens, next + 1..close)?;
        next = close + 1;
    }
    Ok((Copied::Table { name, columns }, next))
}

fn names(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<ast::Ident>> {
    let parts = tokens.split(range).into_iter();
    let name = |part: Range<usize>| match part.len() {
        1 => types::identifier(tokens, part.start),
        _ => Err(tokens.syntax_error(part.start)),
    };
    parts.map(name).collect()
}

/// An option of the list in brackets: a name, and a value, some names in brackets, or nothing.
fn listed(tokens: &Tokens<'_>, range: Range<usize>) -> Result<(String, Vec<String>)> {
    let name = tokens.word(range.start);
    if name.is_empty() {
        return Err(tokens.syntax_error(range.start));
    }
    let value = range.start + 1;
    let values = match range.len() {
        1 => Vec::new(),
        2 => vec![text(tokens, value)?],
        _ if *tokens.get(value) == Token::LParen && *tokens.get(range.end - 1) == Token::RParen => {
            columns(tokens, value + 1..range.end - 1)?
        }
        _ => return Err(tokens.syntax_error(value + 1)),
    };
    Ok((name.to_owned(), values))
}

fn columns(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<String>> {
    let names = names(tokens, range)?.into_iter();
    Ok(names.map(|name| name.value).collect())
}

/// A value: a text, a word, a number or an asterisk.
fn text(tokens: &Tokens<'_>, at: usize) -> Result<String> {
    match tokens.get(at) {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text.clone()),
        Token::Number(digits, _) => Ok(digits.clone()),
        Token::Mul => Ok("*".to_owned()),
        Token::Word(word) => Ok(word.value.clone()),
        _ => Err(tokens.syntax_error(at)),
    }
}

/// Options as before PostgreSQL 9.0, without brackets, which psql's users write still.
fn older(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    options: &mut Vec<(String, Vec<String>)>,
) -> Result<()> {
    let mut at = range.start;
    let within = |at: usize| match at < range.end {
        true => Ok(at),
        false => Err(tokens.syntax_error(range.end)),
    };
    while at < range.end {
        let word = tokens.word(at).to_owned();
        at += 1;
        match word.as_str() {
            "binary" | "csv" => options.push(option("format", [word])),
            "freeze" | "header" => options.push(option(&word, [])),
            "delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding" => {
                if tokens.word(within(at)?) == "as" {
                    at += 1;
                }
                let value = text(tokens, within(at)?)?;
                options.push(option(word.trim_end_matches('s'), [value]));
                at += 1;
            }
            "force" => {
                let name = match tokens.word(within(at)?) {
                    "quote" => "force_quote",
                    "not" => "force_not_null",
                    "null" => "force_null",
                    _ => return Err(tokens.syntax_error(at)),
                };
                at += if name == "force_not_null" { 2 } else { 1 };
                let mut given = vec![text(tokens, within(at)?)?];
                at += 1;
                while at < range.end && *tokens.get(at) == Token::Comma {
                    given.push(text(tokens, within(at + 1)?)?);
                    at += 2;
                }
                options.push((name.to_owned(), given));
            }
            "where" => return Err(tokens.unsupported(at - 1, "COPY with WHERE")),
            _ => return Err(tokens.syntax_error(at - 1)),
        }
    }
    Ok(())
}
