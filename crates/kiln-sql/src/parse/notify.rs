//! `LISTEN`, `UNLISTEN` and `NOTIFY`.

use std::ops::Range;

use kiln_storage::error::{Position, Result};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::statement::{self, Statement};
use super::tokens::Tokens;
use super::types;

/// Bytes of a name, behind which PostgreSQL leaves the rest out.
const NAME_BYTES_MAX: usize = 63;

/// `NOTIFY`.
#[derive(Clone, Debug, PartialEq)]
pub struct Notify {
    /// The channel.
    pub channel: String,
    /// What is told; empty where it is not given.
    pub payload: String,
}

impl Notify {
    /// The query that does the same, as if it had been written at `position`.
    ///
    /// # Errors
    /// None that is known: the query is well formed.
    pub(super) fn query(&self, position: Position) -> Result<Box<ast::Query>> {
        let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let (channel, payload) = (literal(&self.channel), literal(&self.payload));
        let text = format!("SELECT pg_catalog.pg_notify({channel}, {payload})");
        let tokens = Tokens::new(&text, position)?;
        statement::query(&tokens, 0..tokens.len())
    }
}

/// Parses LISTEN.
pub(super) fn listen(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let name = channel(tokens, &range)?;
    end(tokens, range.start + 2, &range)?;
    Ok(Statement::Listen(name))
}

/// Parses UNLISTEN.
pub(super) fn unlisten(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = range.start + 1;
    let name = match at < range.end && *tokens.get(at) == Token::Mul {
        true => None,
        false => Some(channel(tokens, &range)?),
    };
    end(tokens, at + 1, &range)?;
    Ok(Statement::Unlisten(name))
}

/// Parses NOTIFY.
pub(super) fn notify(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Notify> {
    let channel = channel(tokens, &range)?;
    let at = range.start + 2;
    if at == range.end {
        let payload = String::new();
        return Ok(Notify { channel, payload });
    }
    if *tokens.get(at) != Token::Comma {
        return Err(tokens.syntax_error(at));
    }
    if at + 1 == range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let payload = match tokens.get(at + 1) {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => text.clone(),
        Token::DollarQuotedString(text) => text.value.clone(),
        _ => return Err(tokens.syntax_error(at + 1)),
    };
    end(tokens, at + 2, &range)?;
    Ok(Notify { channel, payload })
}

/// The channel behind the first word.
fn channel(tokens: &Tokens<'_>, range: &Range<usize>) -> Result<String> {
    let at = range.start + 1;
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let mut name = types::identifier(tokens, at)?.value;
    let end = (0..=name.len().min(NAME_BYTES_MAX)).rfind(|at| name.is_char_boundary(*at));
    name.truncate(end.unwrap_or_default());
    Ok(name)
}

/// Checks that a statement ends at `at`.
fn end(tokens: &Tokens<'_>, at: usize, range: &Range<usize>) -> Result<()> {
    match at == range.end {
        true => Ok(()),
        false => Err(tokens.syntax_error(at)),
    }
}
