//! Commands that are run as clients would run them: EXECUTE, definitions and settings, COMMIT and
//! ROLLBACK.

use std::ops::Range;

use kiln_storage::error::{Result, SqlState};

use super::ast::{Command, StatementKind};
use super::parser::Parser;
use super::sql;
use crate::parse::tokens::Tokens;

/// Words that begin commands without values, which PostgreSQL runs in a body as they are written.
const UTILITIES: &[&str] = &[
    "alter", "analyze", "comment", "create", "drop", "grant", "listen", "lock", "reindex", "reset",
    "revoke", "set", "truncate", "unlisten",
];

/// Whether a command that begins with this word is run as it is written.
pub(super) fn is_utility(word: &str) -> bool {
    UTILITIES.contains(&word)
}

impl Parser<'_, '_> {
    /// `EXECUTE text [INTO [STRICT] targets] [USING values]`, the last two in either order.
    pub(super) fn execute(&mut self) -> Result<StatementKind> {
        let end = self.semicolon()?;
        let (mut into, mut using) = (None, None);
        let mut next = self.clause(self.next + 1)?;
        let text = self.tokens.expression(self.next + 1..next)?;
        while next < end {
            let (word, at) = (self.tokens.word(next), next);
            if word == "into" && into.is_none() {
                let (found, after) = sql::into(self.tokens, at, end)?;
                (into, next) = (Some(found), after);
            } else if word == "using" && using.is_none() {
                next = self.clause(at + 1)?;
                using = Some(expressions(self.tokens, at + 1..next)?);
            } else {
                return Err(self.tokens.syntax_error(next));
            }
        }
        self.next = end + 1;
        let using = using.unwrap_or_default();
        Ok(StatementKind::Execute {
            command: Box::new(Command { text, using }),
            into,
        })
    }

    /// Where the next clause of EXECUTE begins, or its semicolon.
    fn clause(&self, from: usize) -> Result<usize> {
        self.tokens.find(from, |tokens, index| {
            matches!(tokens.word(index), "into" | "using")
                || *tokens.get(index) == sqlparser::tokenizer::Token::SemiColon
        })
    }

    /// A command without values, whose first token is next.
    pub(super) fn utility(&mut self) -> Result<StatementKind> {
        let end = self.semicolon()?;
        let text = self.tokens.text(self.next..end).to_owned();
        self.next = end + 1;
        Ok(StatementKind::Utility(text))
    }

    /// `COMMIT` or `ROLLBACK`.
    pub(super) fn end_transaction(&mut self) -> Result<StatementKind> {
        let commits = self.word() == "commit";
        self.next += 1;
        if self.take_word("and") {
            let keeps = !self.take_word("no");
            self.expect_word("chain")?;
            if keeps {
                return Err(self.tokens.unsupported(self.next - 1, "AND CHAIN"));
            }
        }
        self.expect(&sqlparser::tokenizer::Token::SemiColon)?;
        Ok(StatementKind::EndTransaction { commits })
    }
}

/// `text [USING values]` of a loop or of RETURN QUERY.
pub(super) fn command(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Command> {
    let is_using = |index: &usize| tokens.word(*index) == "using";
    let end = tokens.find(range.start, |_, index| {
        index == range.end || is_using(&index)
    })?;
    let text = tokens.expression(range.start..end)?;
    let using = match end < range.end {
        true => expressions(tokens, end + 1..range.end)?,
        false => Vec::new(),
    };
    Ok(Command { text, using })
}

fn expressions(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<crate::parse::Expression>> {
    if range.is_empty() {
        return Err(tokens.error(range.start, SqlState::SYNTAX_ERROR, "missing expression"));
    }
    let parts = tokens.split(range).into_iter();
    parts.map(|part| tokens.expression(part)).collect()
}
