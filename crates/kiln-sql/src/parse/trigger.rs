//! Triggers: CREATE, ALTER and DROP.

use std::ops::Range;

use kiln_storage::error::{Result, SqlState};
use kiln_storage::schema::{TriggerEvent, TriggerTime};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::sequence;
use super::statement::Statement;
use super::tokens::{Expression, Tokens};
use super::types;

/// `CREATE TRIGGER … FOR EACH ROW`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigger {
    /// One of this name gives way.
    pub or_replace: bool,
    /// Its name.
    pub name: Ident,
    /// When it fires.
    pub time: TriggerTime,
    /// For which changes; none twice, and never empty.
    pub events: Vec<TriggerEvent>,
    /// The columns of `UPDATE OF`.
    pub columns: Vec<Ident>,
    /// Its table.
    pub table: ObjectName,
    /// The condition behind WHEN.
    pub condition: Option<Expression>,
    /// Its function.
    pub function: ObjectName,
    /// What the function is given.
    pub arguments: Vec<String>,
}

/// `DROP TRIGGER`.
#[derive(Clone, Debug, PartialEq)]
pub struct DropTrigger {
    /// One that is missing is no error.
    pub if_exists: bool,
    /// Its name.
    pub name: Ident,
    /// Its table.
    pub table: ObjectName,
}

/// `ALTER TRIGGER … RENAME TO`.
#[derive(Clone, Debug, PartialEq)]
pub struct RenameTrigger {
    /// Its name.
    pub name: Ident,
    /// Its table.
    pub table: ObjectName,
    /// What it is called from then on.
    pub to: Ident,
}

/// `ENABLE TRIGGER` or `DISABLE TRIGGER` of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchedTrigger {
    /// Which one.
    pub which: WhichTrigger,
    /// Whether it fires from then on.
    pub is_enabled: bool,
}

/// What a [`SwitchedTrigger`] names.
#[derive(Clone, Debug, PartialEq)]
pub enum WhichTrigger {
    /// A trigger.
    Named(Ident),
    /// `USER`: all triggers that were created.
    User,
    /// `ALL`: those of foreign keys too.
    All,
}

/// Parses CREATE TRIGGER, whose name stands at `at`.
pub(super) fn create(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    at: usize,
    or_replace: bool,
) -> Result<Statement> {
    let name = types::identifier(tokens, at)?;
    let (time, at) = match tokens.word(at + 1) {
        "before" => (TriggerTime::Before, at + 2),
        "after" => (TriggerTime::After, at + 2),
        "instead" => return Err(tokens.unsupported(at + 1, "an INSTEAD OF trigger")),
        _ => return Err(tokens.syntax_error(at + 1)),
    };
    let (events, columns, at) = events(tokens, at..range.end)?;
    if tokens.word(at) != "on" || at >= range.end {
        return Err(tokens.syntax_error(at));
    }
    let (table, at) = sequence::name(tokens, at + 1..range.end)?;
    let at = row_level(tokens, at..range.end)?;
    let (condition, at) = match tokens.word(at) {
        "when" if *tokens.get(at + 1) == Token::LParen => {
            let close = closing(tokens, at + 1, range.end)?;
            (Some(tokens.expression(at + 2..close)?), close + 1)
        }
        "when" => return Err(tokens.syntax_error(at + 1)),
        _ => (None, at),
    };
    if tokens.word(at) != "execute" {
        return Err(tokens.syntax_error(at));
    }
    if !matches!(tokens.word(at + 1), "function" | "procedure") {
        return Err(tokens.syntax_error(at + 1));
    }
    let (function, open) = sequence::name(tokens, at + 2..range.end)?;
    let arguments = arguments(tokens, open..range.end)?;
    Ok(Statement::CreateTrigger(Box::new(CreateTrigger {
        or_replace,
        name,
        time,
        events,
        columns,
        table,
        condition,
        function,
        arguments,
    })))
}

/// Parses `event OR event …`, and gives what follows it.
fn events(
    tokens: &Tokens<'_>,
    range: Range<usize>,
) -> Result<(Vec<TriggerEvent>, Vec<Ident>, usize)> {
    let (mut events, mut columns, mut at) = (Vec::new(), Vec::new(), range.start);
    loop {
        let event = match tokens.word(at) {
            "insert" => TriggerEvent::Insert,
            "update" => TriggerEvent::Update,
            "delete" => TriggerEvent::Delete,
            "truncate" => return Err(tokens.unsupported(at, "a TRUNCATE trigger")),
            _ => return Err(tokens.syntax_error(at)),
        };
        if events.contains(&event) {
            let near = tokens.source(at);
            let message = format!("duplicate trigger events specified at or near \"{near}\"");
            return Err(tokens.error_at(at, SqlState::SYNTAX_ERROR, message));
        }
        events.push(event);
        at += 1;
        if event == TriggerEvent::Update && tokens.word(at) == "of" {
            columns.push(types::identifier(tokens, at + 1)?);
            at += 2;
            while *tokens.get(at) == Token::Comma {
                columns.push(types::identifier(tokens, at + 1)?);
                at += 2;
            }
        }
        if tokens.word(at) != "or" || at >= range.end {
            return Ok((events, columns, at));
        }
        at += 1;
    }
}

/// Parses `FOR EACH ROW`; gives what follows it. A trigger without it fires for statements.
fn row_level(tokens: &Tokens<'_>, range: Range<usize>) -> Result<usize> {
    let at = range.start;
    if tokens.word(at) == "referencing" {
        return Err(tokens.unsupported(at, "a transition table"));
    }
    let each = at + 1 + usize::from(tokens.word(at + 1) == "each");
    match (tokens.word(at), tokens.word(each)) {
        ("for", "row") => Ok(each + 1),
        ("for", "statement") | ("when" | "execute", _) => {
            Err(tokens.unsupported(at, "a trigger FOR EACH STATEMENT"))
        }
        ("for", _) => Err(tokens.syntax_error(each)),
        _ => Err(tokens.syntax_error(at)),
    }
}

/// The parenthesis that closes the one at `open`.
fn closing(tokens: &Tokens<'_>, open: usize, end: usize) -> Result<usize> {
    let mut depth = 0;
    for at in open..end {
        match tokens.get(at) {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Ok(at),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    Err(tokens.syntax_error(end))
}

/// Parses all of `range` as the arguments in parentheses, which are texts however they are written.
fn arguments(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<String>> {
    if range.len() < 2 || *tokens.get(range.start) != Token::LParen {
        return Err(tokens.syntax_error(range.start));
    }
    let close = range.end - 1;
    if *tokens.get(close) != Token::RParen {
        return Err(tokens.syntax_error(range.end));
    }
    if range.len() == 2 {
        return Ok(Vec::new());
    }
    let parts = tokens.split(range.start + 1..close).into_iter();
    let argument = |part: Range<usize>| {
        if part.len() != 1 {
            return Err(tokens.syntax_error((part.start + 1).min(part.end)));
        }
        Ok(match tokens.get(part.start) {
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            Token::Word(word) => word.value.clone(),
            Token::Number(number, _) => number.clone(),
            _ => return Err(tokens.syntax_error(part.start)),
        })
    };
    parts.map(argument).collect()
}

/// Parses DROP TRIGGER.
pub(super) fn drop(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 2;
    let if_exists = tokens.words(at, &["if", "exists"]);
    if if_exists {
        at += 2;
    }
    let (name, table, at) = named_on(tokens, at..range.end)?;
    let has_behaviour = matches!(tokens.word(at), "cascade" | "restrict");
    match at + usize::from(has_behaviour) < range.end {
        true => Err(tokens.syntax_error(at + usize::from(has_behaviour))),
        false => Ok(Statement::DropTrigger(Box::new(DropTrigger {
            if_exists,
            name,
            table,
        }))),
    }
}

/// Parses ALTER TRIGGER.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let (name, table, at) = named_on(tokens, range.start + 2..range.end)?;
    if !tokens.words(at, &["rename", "to"]) {
        return Err(match tokens.word(at) {
            "depends" | "no" => tokens.unsupported(at, "ALTER TRIGGER … DEPENDS ON EXTENSION"),
            _ => tokens.syntax_error(at),
        });
    }
    let to = types::identifier(tokens, at + 2)?;
    match at + 3 < range.end {
        true => Err(tokens.syntax_error(at + 3)),
        false => Ok(Statement::RenameTrigger(Box::new(RenameTrigger {
            name,
            table,
            to,
        }))),
    }
}

/// Parses `name ON table`, and gives what follows it.
fn named_on(tokens: &Tokens<'_>, range: Range<usize>) -> Result<(Ident, ObjectName, usize)> {
    let name = types::identifier(tokens, range.start)?;
    let on = range.start + 1;
    if tokens.word(on) != "on" || on + 1 >= range.end {
        return Err(tokens.syntax_error(on));
    }
    let (table, at) = sequence::name(tokens, on + 1..range.end)?;
    Ok((name, table, at))
}

/// Parses `ENABLE TRIGGER …` or `DISABLE TRIGGER …` of ALTER TABLE.
pub(super) fn switched(tokens: &Tokens<'_>, range: Range<usize>) -> Result<SwitchedTrigger> {
    let at = range.start + 2;
    if at + 1 != range.end {
        return Err(tokens.syntax_error((at + 1).min(range.end)));
    }
    let which = match tokens.word(at) {
        "all" => WhichTrigger::All,
        "user" => WhichTrigger::User,
        _ => WhichTrigger::Named(types::identifier(tokens, at)?),
    };
    Ok(SwitchedTrigger {
        which,
        is_enabled: tokens.word(range.start) == "enable",
    })
}
