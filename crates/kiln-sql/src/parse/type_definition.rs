//! CREATE TYPE, ALTER TYPE and DROP TYPE: enums.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::alter::{self, NewName, ObjectChange};
use super::sequence;
use super::statement::Statement;
use super::tokens::Tokens;

/// `CREATE TYPE name AS ENUM (labels)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateEnum {
    /// Its name.
    pub name: ObjectName,
    /// Its labels, in their order.
    pub labels: Vec<String>,
}

/// `ALTER TYPE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterType {
    /// The type.
    pub name: ObjectName,
    /// What becomes of it.
    pub change: TypeChange,
}

/// What an [`AlterType`] changes.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeChange {
    /// `ADD VALUE`.
    AddLabel {
        /// One that is there is no error.
        if_not_exists: bool,
        /// The label.
        label: String,
        /// The label that it stands beside, and whether behind that; else it is the last one.
        beside: Option<(String, bool)>,
    },
    /// `RENAME VALUE from TO to`.
    RenameLabel(String, String),
    /// `RENAME TO`.
    Rename(Ident),
    /// `OWNER TO`.
    Owner(super::RoleName),
}

/// Parses CREATE TYPE, whose name stands at `at`.
pub(super) fn create(tokens: &Tokens<'_>, range: Range<usize>, at: usize) -> Result<Statement> {
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let (name, at) = sequence::name(tokens, at..range.end)?;
    if tokens.word(at) != "as" || at >= range.end {
        return Err(tokens.unsupported(range.start, "a base type"));
    }
    match tokens.word(at + 1) {
        "enum" => {}
        "range" => return Err(tokens.unsupported(at + 1, "a range type")),
        "" if *tokens.get(at + 1) == Token::LParen => {
            return Err(tokens.unsupported(at + 1, "a composite type"));
        }
        _ => return Err(tokens.syntax_error(at + 1)),
    }
    let (open, close) = (at + 2, range.end - 1);
    if close <= open || *tokens.get(open) != Token::LParen {
        return Err(tokens.syntax_error(open.min(range.end)));
    }
    if *tokens.get(close) != Token::RParen {
        return Err(tokens.syntax_error(range.end));
    }
    let mut labels = Vec::new();
    if close > open + 1 {
        for part in tokens.split(open + 1..close) {
            labels.push(label(tokens, part.start)?);
            if part.len() != 1 {
                return Err(tokens.syntax_error(part.start + 1));
            }
        }
    }
    Ok(Statement::CreateEnum(Box::new(CreateEnum { name, labels })))
}

/// Parses ALTER TYPE.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = range.start + 2;
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let (name, at) = sequence::name(tokens, at..range.end)?;
    let change = match (tokens.word(at), tokens.word(at + 1)) {
        ("add", "value") => add_label(tokens, at + 2..range.end)?,
        ("rename", "value") => {
            let from = label(tokens, at + 2)?;
            if tokens.word(at + 3) != "to" {
                return Err(tokens.syntax_error(at + 3));
            }
            let to = label(tokens, at + 4)?;
            ends_at(tokens, at + 5, range.end)?;
            TypeChange::RenameLabel(from, to)
        }
        ("add" | "drop" | "alter" | "rename", "attribute") => {
            return Err(tokens.unsupported(at, "an attribute of a composite type"));
        }
        ("set", _) => return Err(tokens.unsupported(at, "this form of ALTER TYPE")),
        _ => match alter::object_change(tokens, at..range.end)? {
            Some(ObjectChange::Rename(NewName::Name(to))) => TypeChange::Rename(to),
            Some(ObjectChange::Rename(NewName::Schema(_))) => {
                return Err(tokens.unsupported(at, "an enum of another schema than public"));
            }
            Some(ObjectChange::Owner(role)) => TypeChange::Owner(role),
            Some(ObjectChange::Parameters(_)) => return Err(tokens.syntax_error(range.start)),
            None => return Err(tokens.syntax_error(at.min(range.end))),
        },
    };
    Ok(Statement::AlterType(Box::new(AlterType { name, change })))
}

/// Parses what follows `ADD VALUE`.
fn add_label(tokens: &Tokens<'_>, range: Range<usize>) -> Result<TypeChange> {
    let mut at = range.start;
    let if_not_exists = tokens.words(at, &["if", "not", "exists"]);
    if if_not_exists {
        at += 3;
    }
    let added = label(tokens, at)?;
    let is_behind = match tokens.word(at + 1) {
        "before" => Some(false),
        "after" => Some(true),
        _ => None,
    };
    let beside = match is_behind {
        Some(is_behind) => Some((label(tokens, at + 2)?, is_behind)),
        None => None,
    };
    ends_at(tokens, at + if beside.is_some() { 3 } else { 1 }, range.end)?;
    Ok(TypeChange::AddLabel {
        if_not_exists,
        label: added,
        beside,
    })
}

/// The label at `at`: a text.
fn label(tokens: &Tokens<'_>, at: usize) -> Result<String> {
    match tokens.get(at) {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Ok(text.clone()),
        Token::DollarQuotedString(text) => Ok(text.value.clone()),
        _ => Err(tokens.syntax_error(at)),
    }
}

fn ends_at(tokens: &Tokens<'_>, at: usize, end: usize) -> Result<()> {
    match at == end {
        true => Ok(()),
        false => Err(tokens.syntax_error(at.min(end))),
    }
}
