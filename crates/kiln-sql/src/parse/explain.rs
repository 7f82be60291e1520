//! EXPLAIN: its options, and the statements that it explains.

use std::ops::Range;

use kiln_storage::error::{Error, Position, Result, SqlState};
use sqlparser::tokenizer::Token;

use super::statement::{Statement, parse};
use super::tokens::Tokens;
use super::types;

/// `EXPLAIN [(options)] statement`.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// The options as they were written; [`Explain::options`] says what they mean.
    pub written: Vec<WrittenOption>,
    /// A query, INSERT, UPDATE, DELETE, CALL or EXECUTE.
    pub statement: Box<Statement>,
}

/// An option as it was written: `COSTS off`.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenOption {
    /// Its name, in lower case unless it was quoted.
    pub name: String,
    /// Its value, if there is one.
    pub value: Option<String>,
    /// Where the name stands.
    pub position: Position,
}

/// What EXPLAIN shows, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainOptions {
    /// The statement is run as well.
    pub analyze: bool,
    /// Which updates are deferred to the commit is shown too.
    pub verbose: bool,
    /// How long the statement has run is shown with its rows.
    pub timing: bool,
    /// How long the statement has run is shown at the end.
    pub summary: bool,
    /// How the explanation is written.
    pub format: ExplainFormat,
}

/// How an explanation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    /// A line for each operation.
    Text,
    /// A tree of objects.
    Json,
}

impl Explain {
    /// What the options mean.
    ///
    /// # Errors
    /// 42601 for an option that there is none of and for values that are none; 22023 for options
    /// that contradict each other; 0A000 for those that are not supported.
    pub fn options(&self) -> Result<ExplainOptions> {
        let (mut timing, mut summary) = (None, None);
        let mut options = ExplainOptions {
            analyze: false,
            verbose: false,
            timing: false,
            summary: false,
            format: ExplainFormat::Text,
        };
        let mut has_log = false;
        for option in &self.written {
            match option.name.as_str() {
                "analyze" => options.analyze = option.boolean()?,
                "verbose" => options.verbose = option.boolean()?,
                // There are no estimates of costs, no pages that are read and no settings of a
                // planner to show.
                "costs" | "buffers" | "settings" => drop(option.boolean()?),
                "wal" => has_log = option.boolean()?,
                "timing" => timing = Some(option.boolean()?),
                "summary" => summary = Some(option.boolean()?),
                "format" => options.format = option.format()?,
                name => {
                    let message = format!("unrecognized EXPLAIN option \"{name}\"");
                    return Err(option.error(SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        options.timing = timing.unwrap_or(options.analyze);
        options.summary = summary.unwrap_or(options.analyze);
        for (name, is_on) in [("WAL", has_log), ("TIMING", options.timing)] {
            if is_on && !options.analyze {
                let message = format!("EXPLAIN option {name} requires ANALYZE");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        match has_log {
            true => Err(Error::unsupported("EXPLAIN with the option WAL")),
            false => Ok(options),
        }
    }
}

impl WrittenOption {
    fn boolean(&self) -> Result<bool> {
        let value = self.value.as_deref().map(str::to_ascii_lowercase);
        match value.as_deref() {
            None | Some("true" | "on" | "1") => Ok(true),
            Some("false" | "off" | "0") => Ok(false),
            Some(_) => {
                let message = format!("{} requires a Boolean value", self.name);
                Err(Error::new(SqlState::SYNTAX_ERROR, message))
            }
        }
    }

    fn format(&self) -> Result<ExplainFormat> {
        let Some(value) = &self.value else {
            let message = format!("{} requires a parameter", self.name);
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        };
        match value.as_str() {
            "text" => Ok(ExplainFormat::Text),
            "json" => Ok(ExplainFormat::Json),
            "xml" | "yaml" => {
                let feature = format!("EXPLAIN with the format {}", value.to_ascii_uppercase());
                Err(Error::unsupported(feature).with_hint("Use FORMAT JSON."))
            }
            _ => {
                let message =
                    format!("unrecognized value for EXPLAIN option \"format\": \"{value}\"");
                Err(self.error(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        }
    }

    fn error(&self, state: SqlState, message: String) -> Error {
        Error::new(state, message).at(self.position.line, self.position.column)
    }
}

/// Parses EXPLAIN.
pub(super) fn explain(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut start = range.start + 1;
    let begins_query = |at: usize| {
        let word = tokens.word(at);
        matches!(word, "select" | "values" | "with" | "table") || *tokens.get(at) == Token::LParen
    };
    let mut written = Vec::new();
    if *tokens.get(start) == Token::LParen && !begins_query(start + 1) {
        let close = tokens.find(start + 1, |tokens, at| *tokens.get(at) == Token::RParen)?;
        for part in tokens.split(start + 1..close) {
            written.push(option(tokens, part)?);
        }
        start = close + 1;
    } else {
        for names in [["analyze", "analyse"], ["verbose", "verbose"]] {
            if names.contains(&tokens.word(start)) {
                written.push(WrittenOption {
                    name: names[0].to_owned(),
                    value: None,
                    position: tokens.position(start),
                });
                start += 1;
            }
        }
    }
    let runs = written.iter().any(|option| option.name == "analyze");
    let statement = explained(tokens, start..range.end, runs)?;
    Ok(Statement::Explain(Explain {
        written,
        statement: Box::new(statement),
    }))
}

/// Parses an option: its name, and a word, text or number behind it.
fn option(tokens: &Tokens<'_>, range: Range<usize>) -> Result<WrittenOption> {
    let name = match tokens.word(range.start) {
        _ if range.is_empty() => return Err(tokens.syntax_error(range.start)),
        "analyze" | "analyse" => "analyze".to_owned(),
        _ => types::identifier(tokens, range.start)?.value,
    };
    let value = range.start + 1..range.end;
    let sign = match tokens.get(value.start) {
        Token::Minus if value.len() == 2 => "-",
        _ => "",
    };
    let last = value.start + sign.len();
    if value.len() > 1 + sign.len() {
        return Err(tokens.syntax_error(last + 1));
    }
    let value = match tokens.get(last) {
        _ if value.is_empty() => None,
        Token::Word(word) if sign.is_empty() => Some(word.value.clone()),
        Token::SingleQuotedString(text) if sign.is_empty() => Some(text.clone()),
        Token::Number(digits, _) => Some(format!("{sign}{digits}")),
        _ => return Err(tokens.syntax_error(last)),
    };
    Ok(WrittenOption {
        name,
        value,
        position: tokens.position(range.start),
    })
}

/// Parses the statement that is explained, and run if `runs` says so. A cursor is explained as its
/// query, and so is a table that is created of one.
fn explained(tokens: &Tokens<'_>, range: Range<usize>, runs: bool) -> Result<Statement> {
    let start = range.start;
    if range.is_empty() {
        return Err(tokens.syntax_error(range.end));
    }
    if matches!(
        tokens.word(start),
        "explain" | "analyze" | "analyse" | "verbose"
    ) {
        return Err(tokens.syntax_error(start));
    }
    match parse(tokens, range)? {
        Statement::Declare(declare) => Ok(Statement::Query(declare.query)),
        Statement::CreateTableAs(_) if runs => {
            Err(tokens.unsupported(start, "EXPLAIN ANALYZE of CREATE TABLE AS"))
        }
        Statement::CreateTableAs(create) => Ok(*create.rows),
        statement @ (Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_)
        | Statement::Call(_)
        | Statement::Execute(_)) => Ok(statement),
        _ => Err(tokens.syntax_error(start)),
    }
}
