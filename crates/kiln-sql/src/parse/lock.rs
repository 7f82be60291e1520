//! `LOCK TABLE`.

use std::ops::Range;

use kiln_engine::LockMode;
use kiln_storage::error::Result;
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;

use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// `LOCK TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct LockTable {
    /// The tables, in the order in which they are locked; never empty.
    pub tables: Vec<ObjectName>,
    /// How.
    pub mode: LockMode,
    /// Whether it is an error that one is not free.
    pub no_wait: bool,
}

/// The modes as they are written.
const MODES: &[(&[&str], LockMode)] = &[
    (&["access", "share"], LockMode::AccessShare),
    (&["row", "share"], LockMode::RowShare),
    (&["row", "exclusive"], LockMode::RowExclusive),
    (
        &["share", "update", "exclusive"],
        LockMode::ShareUpdateExclusive,
    ),
    (&["share"], LockMode::Share),
    (&["share", "row", "exclusive"], LockMode::ShareRowExclusive),
    (&["exclusive"], LockMode::Exclusive),
    (&["access", "exclusive"], LockMode::AccessExclusive),
];

/// Parses LOCK TABLE.
pub(super) fn lock(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let first = range.start + 1 + usize::from(tokens.word(range.start + 1) == "table");
    let mut end = range.end;
    let no_wait = end > first && tokens.word(end - 1) == "nowait";
    end -= usize::from(no_wait);
    let mut mode = LockMode::AccessExclusive;
    if end > first && tokens.word(end - 1) == "mode" {
        let Some(start) = (first..end).rfind(|at| tokens.word(*at) == "in") else {
            return Err(tokens.syntax_error(end - 1));
        };
        let is_written =
            |words: &[&str]| start + 1 + words.len() == end - 1 && tokens.words(start + 1, words);
        let known = MODES.iter().find(|(words, _)| is_written(words));
        mode = known.ok_or_else(|| tokens.syntax_error(start + 1))?.1;
        end = start;
    }
    if first >= end {
        return Err(tokens.syntax_error(end));
    }
    let parts = tokens.split(first..end).into_iter();
    let tables = parts.map(|part| table(tokens, part));
    Ok(Statement::Lock(LockTable {
        tables: tables.collect::<Result<_>>()?,
        mode,
        no_wait,
    }))
}

/// A table, with the words that say something of tables that inherit from it, which there are not.
fn table(tokens: &Tokens<'_>, mut part: Range<usize>) -> Result<ObjectName> {
    if tokens.word(part.start) == "only" {
        part.start += 1;
    }
    if part.len() > 1 && *tokens.get(part.end - 1) == Token::Mul {
        part.end -= 1;
    }
    types::identifiers(tokens, part).map(ObjectName::from)
}
