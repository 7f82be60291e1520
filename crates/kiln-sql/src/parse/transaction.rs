//! Statements about transactions: BEGIN, COMMIT, ROLLBACK, savepoints, and the modes of
//! transactions.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;

use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// What a transaction is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionMode {
    /// `ISOLATION LEVEL`.
    Isolation(IsolationLevel),
    /// `READ ONLY`, or `READ WRITE`.
    ReadOnly(bool),
    /// `DEFERRABLE`, or `NOT DEFERRABLE`.
    Deferrable(bool),
}

/// How far a transaction asks to be kept apart from others. All are serializable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// `READ UNCOMMITTED`.
    ReadUncommitted,
    /// `READ COMMITTED`.
    ReadCommitted,
    /// `REPEATABLE READ`.
    RepeatableRead,
    /// `SERIALIZABLE`.
    Serializable,
}

impl IsolationLevel {
    const ALL: [(&'static str, IsolationLevel); 4] = [
        ("serializable", IsolationLevel::Serializable),
        ("repeatable read", IsolationLevel::RepeatableRead),
        ("read committed", IsolationLevel::ReadCommitted),
        ("read uncommitted", IsolationLevel::ReadUncommitted),
    ];

    /// The level of this name, in lower case.
    pub fn of(name: &str) -> Option<IsolationLevel> {
        let mut all = IsolationLevel::ALL.iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, level)| *level)
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        let mut all = IsolationLevel::ALL.iter();
        all.find(|(_, level)| *level == self)
            .map_or("", |(name, _)| name)
    }
}

/// `BEGIN`, or `START TRANSACTION`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Which of the two it is.
    pub is_start: bool,
    /// What the transaction is to be like.
    pub modes: Vec<TransactionMode>,
}

impl Begin {
    /// Its command tag.
    pub fn tag(&self) -> &'static str {
        match self.is_start {
            true => "START TRANSACTION",
            false => "BEGIN",
        }
    }
}

/// `SET TRANSACTION`, or `SET SESSION CHARACTERISTICS AS TRANSACTION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTransaction {
    /// Whether it is about the session's transactions to come.
    pub is_of_session: bool,
    /// The modes; never empty.
    pub modes: Vec<TransactionMode>,
}

/// `SET CONSTRAINTS`: when constraints are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetConstraints {
    /// The constraints; none stands for all.
    pub names: Vec<ObjectName>,
    /// Whether they are checked at COMMIT.
    pub is_deferred: bool,
}

/// Parses BEGIN or START TRANSACTION.
pub(super) fn begin(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 1;
    let is_start = tokens.word(range.start) == "start";
    if is_start {
        expect(tokens, at, "transaction")?;
        at += 1;
    } else {
        at = after_noise(tokens, at);
    }
    let modes = modes(tokens, at..range.end)?;
    Ok(Statement::Begin(Begin { is_start, modes }))
}

/// Parses COMMIT, END, ROLLBACK or ABORT.
pub(super) fn end(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let first = tokens.word(range.start);
    if tokens.word(range.start + 1) == "prepared" {
        return Err(tokens.unsupported(range.start + 1, "two-phase commit"));
    }
    let mut at = after_noise(tokens, range.start + 1);
    if first == "rollback" && tokens.word(at) == "to" {
        at += 1 + usize::from(tokens.word(at + 1) == "savepoint");
        return name(tokens, at..range.end).map(Statement::RollbackTo);
    }
    let chain = tokens.words(at, &["and", "chain"]);
    if chain {
        at += 2;
    } else if tokens.words(at, &["and", "no", "chain"]) {
        at += 3;
    }
    if at != range.end {
        return Err(tokens.syntax_error(at));
    }
    Ok(match first {
        "commit" | "end" => Statement::Commit { chain },
        _ => Statement::Rollback { chain },
    })
}

/// Parses SAVEPOINT.
pub(super) fn savepoint(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    name(tokens, range.start + 1..range.end).map(Statement::Savepoint)
}

/// Parses RELEASE.
pub(super) fn release(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let is_named = tokens.word(range.start + 1) == "savepoint" && range.len() > 2;
    let start = range.start + 1 + usize::from(is_named);
    name(tokens, start..range.end).map(Statement::Release)
}

/// Parses SET CONSTRAINTS, whose second word stands at `first`.
fn set_constraints(tokens: &Tokens<'_>, first: usize, end: usize) -> Result<Statement> {
    let last = end - 1;
    let is_deferred = match tokens.word(last) {
        "deferred" => true,
        "immediate" => false,
        _ if last > first + 1 => return Err(tokens.syntax_error(last)),
        _ => return Err(tokens.syntax_error(end)),
    };
    if last <= first + 1 {
        return Err(tokens.syntax_error(last));
    }
    let names = match tokens.word(first + 1) {
        "all" if last == first + 2 => Vec::new(),
        _ => {
            let names = tokens.split(first + 1..last).into_iter();
            let names = names.map(|name| types::identifiers(tokens, name).map(ObjectName::from));
            names.collect::<Result<_>>()?
        }
    };
    Ok(Statement::SetConstraints(SetConstraints {
        names,
        is_deferred,
    }))
}

/// Parses SET of a transaction's modes, or of its constraints; `None` for another SET.
pub(super) fn set(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Option<Statement>> {
    const SESSION: &[&str] = &["session", "characteristics", "as", "transaction"];
    let first = range.start + 1;
    if tokens.word(first) == "constraints" {
        return set_constraints(tokens, first, range.end).map(Some);
    }
    let (is_of_session, start) = match tokens.word(first) {
        "transaction" => (false, first + 1),
        "local" if tokens.word(first + 1) == "transaction" => (false, first + 2),
        _ if tokens.words(first, SESSION) => (true, first + SESSION.len()),
        _ => return Ok(None),
    };
    if tokens.word(start) == "snapshot" {
        return Err(tokens.unsupported(start, "SET TRANSACTION SNAPSHOT"));
    }
    let modes = modes(tokens, start..range.end)?;
    if modes.is_empty() {
        return Err(tokens.syntax_error(range.end));
    }
    let set = SetTransaction {
        is_of_session,
        modes,
    };
    Ok(Some(Statement::SetTransaction(set)))
}

/// Modes, with commas between them or without.
fn modes(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<TransactionMode>> {
    let mut modes = Vec::new();
    let mut at = range.start;
    while at < range.end {
        if !modes.is_empty() && *tokens.get(at) == Token::Comma {
            at += 1;
        }
        let (mode, length) = match tokens.word(at) {
            "isolation" => {
                expect(tokens, at + 1, "level")?;
                let (level, length) = match (tokens.word(at + 2), tokens.word(at + 3)) {
                    ("serializable", _) => (IsolationLevel::Serializable, 1),
                    ("repeatable", "read") => (IsolationLevel::RepeatableRead, 2),
                    ("repeatable", _) => return Err(tokens.syntax_error(at + 3)),
                    ("read", "committed") => (IsolationLevel::ReadCommitted, 2),
                    ("read", "uncommitted") => (IsolationLevel::ReadUncommitted, 2),
                    _ => return Err(tokens.syntax_error(at + 2)),
                };
                (TransactionMode::Isolation(level), 2 + length)
            }
            "read" => match tokens.word(at + 1) {
                "only" => (TransactionMode::ReadOnly(true), 2),
                "write" => (TransactionMode::ReadOnly(false), 2),
                _ => return Err(tokens.syntax_error(at + 1)),
            },
            "deferrable" => (TransactionMode::Deferrable(true), 1),
            "not" => {
                expect(tokens, at + 1, "deferrable")?;
                (TransactionMode::Deferrable(false), 2)
            }
            _ => return Err(tokens.syntax_error(at)),
        };
        modes.push(mode);
        at += length;
    }
    Ok(modes)
}

/// Behind `WORK` or `TRANSACTION`, which mean nothing.
fn after_noise(tokens: &Tokens<'_>, at: usize) -> usize {
    at + usize::from(matches!(tokens.word(at), "work" | "transaction"))
}

fn expect(tokens: &Tokens<'_>, at: usize, word: &str) -> Result<()> {
    match tokens.word(at) == word {
        true => Ok(()),
        false => Err(tokens.syntax_error(at)),
    }
}

/// The name that is all of `range`.
fn name(tokens: &Tokens<'_>, range: Range<usize>) -> Result<String> {
    let name = types::identifier(tokens, range.start)?.value;
    match range.len() {
        1 => Ok(name),
        _ => Err(tokens.syntax_error(range.start + 1)),
    }
}
