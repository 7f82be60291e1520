//! CREATE VIEW, DROP VIEW and ALTER VIEW, and the queries of views as catalogs keep them.

use std::collections::BTreeSet;
use std::ops::Range;

use kiln_engine::CheckOption;
use kiln_storage::error::{Position, Result};
use sqlparser::ast::{Ident, ObjectName, Query};
use sqlparser::tokenizer::Token;

use super::alter::{self, ObjectChange};
use super::statement::{Statement, query};
use super::tokens::Tokens;
use super::{sequence, table_command, types};

/// `CREATE [OR REPLACE] VIEW name [(columns)] AS query [WITH … CHECK OPTION]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// Whether it may take the place of a view of that name.
    pub or_replace: bool,
    /// Whether it is the session's own.
    pub is_temporary: bool,
    /// Its name.
    pub name: ObjectName,
    /// The names of its first columns.
    pub columns: Vec<Ident>,
    /// The query.
    pub query: Box<Query>,
    /// The query as it was written.
    pub text: String,
    /// The places of the text that may be a `*` or `t.*` for columns.
    pub stars: Vec<Star>,
    /// Which rows INSERT and UPDATE may leave in it.
    pub check_option: Option<CheckOption>,
}

/// A `*` or `t.*` in the text of a query, or a TABLE, which has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Star {
    /// Where it begins in the script.
    pub position: Position,
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// Whether it is TABLE.
    pub is_table: bool,
}

/// `ALTER VIEW`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterView {
    /// The view.
    pub name: ObjectName,
    /// A missing view is no error.
    pub if_exists: bool,
    /// What becomes of it.
    pub change: ObjectChange,
}

/// Parses CREATE VIEW, whose name stands at `at`.
pub(super) fn create(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    at: usize,
    (or_replace, is_temporary): (bool, bool),
) -> Result<Statement> {
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let (name, mut at) = sequence::name(tokens, at..range.end)?;
    let mut columns = Vec::new();
    if at < range.end && *tokens.get(at) == Token::LParen {
        let close = (at..range.end).find(|at| *tokens.get(*at) == Token::RParen);
        let close = close.ok_or_else(|| tokens.syntax_error(range.end))?;
        for part in tokens.split(at + 1..close) {
            if part.len() != 1 {
                return Err(tokens.syntax_error(part.start));
            }
            columns.push(types::identifier(tokens, part.start)?);
        }
        at = close + 1;
    }
    if tokens.word(at) == "with" {
        return Err(tokens.unsupported(at, "an option of a view"));
    }
    if tokens.word(at) != "as" {
        return Err(tokens.syntax_error(at));
    }
    let (check_option, end) = check_option(tokens, at + 1..range.end);
    let body = at + 1..end;
    if body.is_empty() {
        return Err(tokens.syntax_error(body.start));
    }
    let parsed = query(tokens, body.clone())?;
    Ok(Statement::CreateView(Box::new(CreateView {
        or_replace,
        is_temporary,
        name,
        columns,
        query: parsed,
        text: tokens.text(body.clone()).to_owned(),
        stars: stars(tokens, body),
        check_option,
    })))
}

/// The WITH CHECK OPTION that ends `range`, and where it begins.
fn check_option(tokens: &Tokens<'_>, range: Range<usize>) -> (Option<CheckOption>, usize) {
    let ends_with = |words: &[&str]| {
        let start = range.end.checked_sub(words.len());
        start.filter(|start| *start > range.start && tokens.words(*start, words))
    };
    let forms: [(&[&str], CheckOption); 3] = [
        (&["with", "check", "option"], CheckOption::Cascaded),
        (
            &["with", "cascaded", "check", "option"],
            CheckOption::Cascaded,
        ),
        (&["with", "local", "check", "option"], CheckOption::Local),
    ];
    let mut found = forms
        .iter()
        .filter_map(|(words, option)| Some((*option, ends_with(words)?)));
    match found.next() {
        Some((option, start)) => (Some(option), start),
        None => (None, range.end),
    }
}

/// Each `*` of a query with the names before it, and each TABLE. Stars that multiply are among
/// them.
fn stars(tokens: &Tokens<'_>, range: Range<usize>) -> Vec<Star> {
    let first = tokens.bytes(range.start).start;
    let indexes: Vec<usize> = range.clone().collect();
    let tables: BTreeSet<usize> = table_command::commands(tokens, &indexes).collect();
    let stars = range
        .clone()
        .filter(|at| matches!(tokens.get(*at), Token::Mul) || tables.contains(at));
    let stars = stars.map(|star| {
        let mut start = star;
        while start >= range.start + 2 && *tokens.get(start - 1) == Token::Period {
            start -= 2;
        }
        Star {
            position: tokens.position(start),
            bytes: tokens.bytes(start).start - first..tokens.bytes(star).end - first,
            is_table: tables.contains(&star),
        }
    });
    stars.collect()
}

/// Parses ALTER VIEW, of which RENAME TO, SET SCHEMA and OWNER TO are there.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 2;
    let if_exists = tokens.words(at, &["if", "exists"]);
    if if_exists {
        at += 2;
    }
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let (name, at) = sequence::name(tokens, at..range.end)?;
    if at >= range.end {
        return Err(tokens.syntax_error(at));
    }
    if tokens.words(at, &["rename", "column"]) {
        return Err(tokens.unsupported(range.start, "ALTER VIEW … RENAME COLUMN"));
    }
    let change = alter::object_change(tokens, at..range.end)?
        .ok_or_else(|| tokens.unsupported(range.start, "this form of ALTER VIEW"))?;
    Ok(Statement::AlterView(Box::new(AlterView {
        name,
        if_exists,
        change,
    })))
}

/// Parses the query of a view that a catalog keeps. Places in it mean nothing to those who use the
/// view: the tree has none.
///
/// # Errors
/// 42601 for a text that is no query.
pub fn stored_query(text: &str) -> Result<Box<Query>> {
    let mut tokens = Tokens::new(text, Position { line: 1, column: 1 })?;
    tokens.forget_positions();
    let end = tokens.len();
    query(&tokens, 0..end)
}
