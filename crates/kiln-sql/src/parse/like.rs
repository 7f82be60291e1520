//! LIKE among the elements of CREATE TABLE.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;

use super::sequence;
use super::tokens::Tokens;

/// `LIKE relation INCLUDING …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    /// How many columns are written before it.
    pub before: usize,
    /// The table or view whose columns are taken.
    pub relation: ObjectName,
    /// What is taken besides names, types and NOT NULL.
    pub included: Included,
}

/// What [`Like`] takes from a table besides its columns. Statistics, storage and compression have
/// no meaning here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Included {
    /// Default values.
    pub defaults: bool,
    /// CHECK constraints.
    pub constraints: bool,
    /// What generated columns are computed from.
    pub generated: bool,
    /// Identities.
    pub identity: bool,
    /// Indexes, PRIMARY KEY and UNIQUE.
    pub indexes: bool,
    /// What COMMENT says of columns, and of constraints and indexes that are taken.
    pub comments: bool,
}

/// Parses LIKE, behind `before` columns; gives what follows it.
pub(super) fn like(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    before: usize,
) -> Result<(Like, usize)> {
    if range.len() < 2 {
        return Err(tokens.syntax_error(range.end));
    }
    let (relation, mut at) = sequence::name(tokens, range.start + 1..range.end)?;
    let mut included = Included::default();
    while let word @ ("including" | "excluding") = tokens.word(at) {
        let is_included = word == "including";
        match tokens.word(at + 1) {
            "defaults" => included.defaults = is_included,
            "constraints" => included.constraints = is_included,
            "identity" => included.identity = is_included,
            "indexes" => included.indexes = is_included,
            "comments" => included.comments = is_included,
            "generated" => included.generated = is_included,
            "compression" | "statistics" | "storage" => {}
            "all" => {
                included = Included {
                    defaults: is_included,
                    constraints: is_included,
                    generated: is_included,
                    identity: is_included,
                    indexes: is_included,
                    comments: is_included,
                }
            }
            _ => return Err(tokens.syntax_error(at + 1)),
        }
        at += 2;
    }
    match tokens.get(at) {
        Token::Comma | Token::RParen => Ok((
            Like {
                before,
                relation,
                included,
            },
            at,
        )),
        _ => Err(tokens.syntax_error(at)),
    }
}
