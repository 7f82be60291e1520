//! VACUUM, ANALYZE, REINDEX and CLUSTER.

use std::ops::Range;

use kiln_storage::error::{Result, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// `VACUUM`. Memory is reused without it.
#[derive(Clone, Debug, PartialEq)]
pub struct Vacuum {
    /// Whether the tables are analysed.
    pub analyze: bool,
    /// The tables; none stands for all.
    pub tables: Vec<ast::ObjectName>,
}

/// `REINDEX` or `CLUSTER`. Indexes and rows are in memory, in good order: what is named has to be
/// there, and stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Reorder {
    /// The statement's command.
    pub command: &'static str,
    /// The schema.
    pub schema: Option<ast::ObjectName>,
    /// The table.
    pub table: Option<ast::ObjectName>,
    /// The index.
    pub index: Option<ast::ObjectName>,
}

/// Parses ANALYZE of all tables, or of those named. Its options have no effect, and all columns are
/// looked at.
pub(super) fn analyze(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let start = behind_options(tokens, range.start + 1, &range, &["verbose"])?;
    let parts = match start < range.end {
        true => tokens.split(start..range.end),
        false => Vec::new(),
    };
    let tables = parts.into_iter().map(|part| table(tokens, part));
    Ok(Statement::Analyze(tables.collect::<Result<_>>()?))
}

/// A table, perhaps with columns in parentheses, which mean nothing.
fn table(tokens: &Tokens<'_>, part: Range<usize>) -> Result<ast::ObjectName> {
    let columns = part.clone().find(|at| *tokens.get(*at) == Token::LParen);
    if columns.is_some() && *tokens.get(part.end - 1) != Token::RParen {
        return Err(tokens.syntax_error(part.end));
    }
    let name = types::identifiers(tokens, part.start..columns.unwrap_or(part.end))?;
    Ok(ast::ObjectName::from(name))
}

/// The token behind options in parentheses at `at`, and behind one of `words`.
fn behind_options(
    tokens: &Tokens<'_>,
    at: usize,
    range: &Range<usize>,
    words: &[&str],
) -> Result<usize> {
    let at = match *tokens.get(at) == Token::LParen {
        true => {
            let close = (at..range.end).find(|at| *tokens.get(*at) == Token::RParen);
            close.ok_or_else(|| tokens.syntax_error(range.end))? + 1
        }
        false => at,
    };
    Ok(at + usize::from(at < range.end && words.contains(&tokens.word(at))))
}

/// Parses `REINDEX [(…)] INDEX | TABLE | SCHEMA | DATABASE | SYSTEM [CONCURRENTLY] name`.
pub(super) fn reindex(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let kind_at = behind_options(tokens, range.start + 1, &range, &[])?;
    let at = behind_options(tokens, kind_at + 1, &range, &["concurrently"])?;
    let name = ast::ObjectName::from(types::identifiers(tokens, at..range.end)?);
    let mut reorder = Reorder {
        command: "REINDEX",
        schema: None,
        table: None,
        index: None,
    };
    match tokens.word(kind_at) {
        "index" => reorder.index = Some(name),
        "table" => reorder.table = Some(name),
        "schema" => reorder.schema = Some(name),
        "database" | "system" => {}
        _ => return Err(tokens.syntax_error(kind_at)),
    }
    Ok(Statement::Reorder(reorder))
}

/// Parses `CLUSTER [VERBOSE] [table [USING index]]` or `CLUSTER index ON table`.
pub(super) fn cluster(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = behind_options(tokens, range.start + 1, &range, &["verbose"])?;
    let between = (at..range.end).find(|at| matches!(tokens.word(*at), "using" | "on"));
    let name = |range| types::identifiers(tokens, range).map(ast::ObjectName::from);
    let first = match at < range.end {
        true => Some(name(at..between.unwrap_or(range.end))?),
        false => None,
    };
    let second = between.map(|at| name(at + 1..range.end)).transpose()?;
    let (table, index) = match between.map(|at| tokens.word(at)) {
        Some("on") => (second, first),
        _ => (first, second),
    };
    Ok(Statement::Reorder(Reorder {
        command: "CLUSTER",
        schema: None,
        table,
        index,
    }))
}

/// Parses VACUUM with PostgreSQL's options, of which only ANALYZE means something here.
pub(super) fn vacuum(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 1;
    let mut analyze = false;
    let is_analyze = |at: usize| matches!(tokens.word(at), "analyze" | "analyse");
    if at < range.end && *tokens.get(at) == Token::LParen {
        let close = (at..range.end).find(|at| *tokens.get(*at) == Token::RParen);
        let close = close.ok_or_else(|| tokens.syntax_error(range.end))?;
        for option in tokens.split(at + 1..close) {
            let is_off = matches!(tokens.word(option.end - 1), "false" | "off");
            analyze |= is_analyze(option.start) && !is_off;
        }
        at = close + 1;
    }
    while at < range.end
        && (is_analyze(at) || matches!(tokens.word(at), "full" | "freeze" | "verbose"))
    {
        analyze |= is_analyze(at);
        at += 1;
    }
    let tables = match at < range.end {
        true => tokens.split(at..range.end),
        false => Vec::new(),
    };
    let columns = tables.iter().cloned().flatten();
    let columns = columns
        .into_iter()
        .find(|at| *tokens.get(*at) == Token::LParen);
    if let Some(at) = columns.filter(|_| !analyze) {
        let message = "ANALYZE option must be specified when a column list is provided";
        return Err(tokens.error_at(at, SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let tables = tables.into_iter().map(|part| table(tokens, part));
    Ok(Statement::Vacuum(Vacuum {
        analyze,
        tables: tables.collect::<Result<_>>()?,
    }))
}
