//! SQL inside of function bodies: INTO is cut out of the tokens, the rest is parsed as SQL.

use super::ast::{Into, RowSource, StatementKind, Target};
use super::command;
use crate::parse::statement;
use crate::parse::tokens::Tokens;
use crate::parse::types;
use kiln_storage::error::{Error, Result, SqlState};
use sqlparser::ast::{Query, SetExpr};
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// Parses `range` as a query or statement on data.
pub(super) fn sql(tokens: &Tokens<'_>, range: Range<usize>) -> Result<StatementKind> {
    let (into, parts) = cut_into(tokens, range.clone())?;
    let first = range.start;
    let is_query = !matches!(tokens.word(first), "insert" | "update" | "delete" | "merge");
    if is_query {
        let query = statement::query_parts(tokens, None, &parts)?;
        refuse_data_after_with(tokens, first, &query)?;
        let Some(into) = into else {
            return Ok(StatementKind::Unexecutable(no_destination(tokens, first)));
        };
        return Ok(StatementKind::Select { query, into });
    }
    let statement = statement::data_statement(tokens, None, &parts)?;
    let returns = has_returning(&statement);
    match &into {
        None if returns => {
            return Ok(StatementKind::Unexecutable(no_destination(tokens, first)));
        }
        Some(into) if !returns => {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "INTO used with a command that cannot return data",
            )
            .at(into.position.line, into.position.column));
        }
        _ => {}
    }
    Ok(StatementKind::Data {
        statement: Box::new(statement),
        into,
    })
}

/// Parses `range` as a query, as a statement on data with RETURNING, or as EXECUTE.
pub(super) fn rows(tokens: &Tokens<'_>, range: Range<usize>) -> Result<RowSource> {
    let first = range.start;
    if tokens.word(first) == "execute" {
        let command = command::command(tokens, first + 1..range.end)?;
        return Ok(RowSource::Execute(Box::new(command)));
    }
    if !matches!(tokens.word(first), "insert" | "update" | "delete" | "merge") {
        let query = statement::query(tokens, range)?;
        refuse_data_after_with(tokens, first, &query)?;
        return Ok(RowSource::Query(query));
    }
    let statement = statement::data_statement(tokens, None, &[range])?;
    if !has_returning(&statement) {
        let message = format!(
            "{} without RETURNING has no rows",
            tokens.word(first).to_ascii_uppercase()
        );
        return Err(tokens.error_at(first, SqlState::SYNTAX_ERROR, message));
    }
    Ok(RowSource::Data(Box::new(statement)))
}

fn has_returning(statement: &crate::parse::Statement) -> bool {
    match statement {
        crate::parse::Statement::Insert(insert) => insert.returning.is_some(),
        crate::parse::Statement::Update(update) => update.returning.is_some(),
        crate::parse::Statement::Delete(delete) => delete.returning.is_some(),
        _ => false,
    }
}

fn refuse_data_after_with(tokens: &Tokens<'_>, first: usize, query: &Query) -> Result<()> {
    if matches!(
        query.body.as_ref(),
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    ) {
        return Err(tokens.unsupported(first, "WITH before INSERT, UPDATE or DELETE"));
    }
    Ok(())
}

fn no_destination(tokens: &Tokens<'_>, index: usize) -> Error {
    tokens
        .error_at(
            index,
            SqlState::SYNTAX_ERROR,
            "query has no destination for result data",
        )
        .with_hint(
            "If you want to discard the results of a SELECT, use PERFORM instead; otherwise add \
             INTO.",
        )
}

/// Finds INTO and its targets wherever they stand. The stretches of `range` around them are the
/// SQL.
fn cut_into(tokens: &Tokens<'_>, range: Range<usize>) -> Result<(Option<Into>, Vec<Range<usize>>)> {
    let mut found: Option<Into> = None;
    let mut parts = Vec::with_capacity(2);
    let mut start = range.start;
    let mut index = range.start;
    while index < range.end {
        let is_into = tokens.word(index) == "into"
            && (index == range.start || !matches!(tokens.word(index - 1), "insert" | "merge"));
        if !is_into {
            index += 1;
            continue;
        }
        if found.is_some() {
            return Err(tokens.error_at(
                index,
                SqlState::SYNTAX_ERROR,
                "INTO specified more than once",
            ));
        }
        parts.push(start..index);
        let (into, after) = into(tokens, index, range.end)?;
        found = Some(into);
        start = after;
        index = after;
    }
    parts.push(start..range.end);
    Ok((found, parts))
}

/// Parses INTO, which stands at `index`; also the first token after its targets.
pub(super) fn into(tokens: &Tokens<'_>, index: usize, end: usize) -> Result<(Into, usize)> {
    let position = tokens.position(index);
    let mut next = index + 1;
    let strict = tokens.word(next) == "strict";
    if strict {
        next += 1;
    }
    let mut targets = Vec::new();
    loop {
        let first = next;
        next += 1;
        while next + 1 < end && *tokens.get(next) == Token::Period {
            next += 2;
        }
        if first >= end {
            return Err(tokens.syntax_error(first));
        }
        targets.push(Target {
            position: tokens.position(first),
            path: types::identifiers(tokens, first..next)?,
            places: Vec::new(),
        });
        if next >= end || *tokens.get(next) != Token::Comma {
            return Ok((
                Into {
                    position,
                    strict,
                    targets,
                },
                next,
            ));
        }
        next += 1;
    }
}
