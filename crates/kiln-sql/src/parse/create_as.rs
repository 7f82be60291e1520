//! CREATE TABLE … AS, and SELECT … INTO, which is the same.

use std::ops::Range;

use kiln_engine::OnCommit;
use kiln_storage::error::{Result, SqlState};
use sqlparser::ast::{self, Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::prepare;
use super::statement::{Statement, query};
use super::tokens::Tokens;
use super::{sequence, types};

/// `CREATE TABLE name (columns) AS query`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAs {
    /// Whether it is the session's own.
    pub is_temporary: bool,
    /// What becomes of a temporary table when a transaction commits, if that is said.
    pub on_commit: Option<OnCommit>,
    /// Its name.
    pub name: ObjectName,
    /// One that is there is no error.
    pub if_not_exists: bool,
    /// The names of its first columns.
    pub columns: Vec<Ident>,
    /// The query, or an EXECUTE.
    pub rows: Box<Statement>,
    /// Whether the table gets the rows, and not only the columns.
    pub with_data: bool,
}

/// Parses CREATE TABLE … AS whose name begins at `at` or behind IF NOT EXISTS; `None` when it is
/// another CREATE TABLE.
pub(super) fn create(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    at: usize,
    is_temporary: bool,
) -> Result<Option<Statement>> {
    let if_not_exists = tokens.words(at, &["if", "not", "exists"]);
    let at = if if_not_exists { at + 3 } else { at };
    if at >= range.end {
        return Ok(None);
    }
    let (name, mut at) = sequence::name(tokens, at..range.end)?;
    let mut listed = None;
    if *tokens.get(at) == Token::LParen && at < range.end {
        let close = tokens.find(at + 1, |tokens, at| *tokens.get(at) == Token::RParen)?;
        listed = Some(at + 1..close);
        at = close + 1;
    }
    if at < range.end && tokens.word(at) == "using" {
        sequence::check_access_method(tokens, at + 1)?;
        at += 2;
    }
    let options = at;
    let starts = |at: &usize| tokens.word(*at) == "as";
    let Some(as_) = (options..range.end).find(starts) else {
        return Ok(None);
    };
    let on_commit = on_commit(tokens, options..as_);
    if on_commit.is_none() && as_ > options {
        return Err(tokens.unsupported(options, "an option of a table"));
    }
    if on_commit.is_some() && !is_temporary {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(tokens.error_at(options, SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let columns = match listed {
        Some(listed) => names(tokens, listed)?,
        None => Some(Vec::new()),
    };
    let Some(columns) = columns else {
        return Err(tokens.syntax_error(as_));
    };
    let (body, with_data) = data(tokens, as_ + 1..range.end);
    if body.is_empty() {
        return Err(tokens.syntax_error(body.end));
    }
    let rows = match tokens.word(body.start) {
        "execute" => prepare::execute(tokens, body)?,
        "select" | "values" | "with" | "table" => Statement::Query(query(tokens, body)?),
        "" if *tokens.get(body.start) == Token::LParen => Statement::Query(query(tokens, body)?),
        _ => return Err(tokens.syntax_error(body.start)),
    };
    Ok(Some(Statement::CreateTableAs(Box::new(CreateTableAs {
        is_temporary,
        on_commit,
        name,
        if_not_exists,
        columns,
        rows: Box::new(rows),
        with_data,
    }))))
}

/// The ON COMMIT that is all of `range`; `None` when it is anything else.
fn on_commit(tokens: &Tokens<'_>, range: Range<usize>) -> Option<OnCommit> {
    let forms: [(&[&str], OnCommit); 3] = [
        (
            &["on", "commit", "preserve", "rows"],
            OnCommit::PreserveRows,
        ),
        (&["on", "commit", "delete", "rows"], OnCommit::DeleteRows),
        (&["on", "commit", "drop"], OnCommit::Drop),
    ];
    let is_all = |words: &[&str]| range.len() == words.len() && tokens.words(range.start, words);
    let mut forms = forms.into_iter();
    forms.find_map(|(words, on_commit)| is_all(words).then_some(on_commit))
}

/// A list of names; `None` when it is anything else.
fn names(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Option<Vec<Ident>>> {
    let parts = tokens.split(range);
    if parts.iter().any(|part| part.len() != 1) {
        return Ok(None);
    }
    let names = parts
        .iter()
        .map(|part| types::identifier(tokens, part.start));
    names.collect::<Result<_>>().map(Some)
}

/// The query before WITH [NO] DATA, and whether the rows are wanted.
pub(super) fn data(tokens: &Tokens<'_>, range: Range<usize>) -> (Range<usize>, bool) {
    let ends_with = |words: &[&str]| {
        let start = range.end.checked_sub(words.len());
        start.filter(|start| *start > range.start && tokens.words(*start, words))
    };
    match (
        ends_with(&["with", "no", "data"]),
        ends_with(&["with", "data"]),
    ) {
        (Some(end), _) => (range.start..end, false),
        (_, Some(end)) => (range.start..end, true),
        _ => (range, true),
    }
}

/// The INTO of the first SELECT of a query, taken out of it.
pub(super) fn take_into(body: &mut ast::SetExpr) -> Option<ast::SelectInto> {
    match body {
        ast::SetExpr::Select(select) => select.into.take(),
        ast::SetExpr::SetOperation { left, .. } => take_into(left),
        ast::SetExpr::Query(query) => take_into(&mut query.body),
        _ => None,
    }
}

/// The CREATE TABLE … AS that a SELECT … INTO is; the token at `at` is INTO.
pub(super) fn select_into(
    tokens: &Tokens<'_>,
    at: usize,
    into: ast::SelectInto,
    query: Box<ast::Query>,
) -> Result<Statement> {
    if into.unlogged {
        return Err(tokens.unsupported(at, "SELECT INTO an unlogged table"));
    }
    let name = match into.targets.as_slice() {
        [ast::Expr::Identifier(name)] => vec![name.clone()],
        [ast::Expr::CompoundIdentifier(parts)] => parts.clone(),
        _ => return Err(tokens.syntax_error(at + 1)),
    };
    Ok(Statement::CreateTableAs(Box::new(CreateTableAs {
        is_temporary: into.temporary,
        on_commit: None,
        name: ObjectName::from(name),
        if_not_exists: false,
        columns: Vec::new(),
        rows: Box::new(Statement::Query(query)),
        with_data: true,
    })))
}
