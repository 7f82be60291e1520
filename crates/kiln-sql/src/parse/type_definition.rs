//! CREATE TYPE and ALTER TYPE: enums and composite types.

use std::ops::Range;
use std::slice::from_ref;

use kiln_storage::error::Result;
use sqlparser::ast::{ColumnDef, Ident, ObjectName};
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

/// `CREATE TYPE name AS (fields)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateComposite {
    /// Its name.
    pub name: ObjectName,
    /// Its fields, in their order.
    pub fields: Vec<ColumnDef>,
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
    /// `ADD ATTRIBUTE`.
    AddField(ColumnDef),
    /// `DROP ATTRIBUTE`.
    DropField {
        /// The field.
        name: Ident,
        /// One that is missing is no error.
        if_exists: bool,
    },
    /// `RENAME ATTRIBUTE from TO to`.
    RenameField(Ident, Ident),
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
            let fields = fields(tokens, at + 1..range.end)?;
            let created = CreateComposite { name, fields };
            return Ok(Statement::CreateComposite(Box::new(created)));
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
        ("add", "attribute") => {
            let end = end_of_attribute(tokens, range.clone())?;
            TypeChange::AddField(field(tokens, at + 2..end)?)
        }
        ("drop", "attribute") => {
            let if_exists = tokens.words(at + 2, &["if", "exists"]);
            let place = at + 2 + if if_exists { 2 } else { 0 };
            let end = end_of_attribute(tokens, range.clone())?;
            let name =
                tokens.sql_parts(None, from_ref(&(place..end)), |it| it.parse_identifier())?;
            TypeChange::DropField { name, if_exists }
        }
        ("rename", "attribute") => {
            let end = end_of_attribute(tokens, range.clone())?;
            if end != at + 5 || tokens.word(at + 3) != "to" {
                return Err(tokens.syntax_error((at + 3).min(end)));
            }
            let ident = |at: usize| {
                tokens.sql_parts(None, from_ref(&(at..at + 1)), |it| it.parse_identifier())
            };
            TypeChange::RenameField(ident(at + 2)?, ident(at + 4)?)
        }
        ("alter", "attribute") => {
            return Err(tokens.unsupported(at, "another type of an attribute"));
        }
        ("set", _) => return Err(tokens.unsupported(at, "this form of ALTER TYPE")),
        _ => match alter::object_change(tokens, at..range.end)? {
            Some(ObjectChange::Rename(NewName::Name(to))) => TypeChange::Rename(to),
            Some(ObjectChange::Rename(NewName::Schema(_))) => {
                return Err(tokens.unsupported(at, "a type of another schema than public"));
            }
            Some(ObjectChange::Owner(role)) => TypeChange::Owner(role),
            Some(ObjectChange::Parameters(_)) => return Err(tokens.syntax_error(range.start)),
            None => return Err(tokens.syntax_error(at.min(range.end))),
        },
    };
    Ok(Statement::AlterType(Box::new(AlterType { name, change })))
}

/// The fields in parentheses.
fn fields(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<ColumnDef>> {
    let close = range.end - 1;
    if *tokens.get(close) != Token::RParen || close <= range.start {
        return Err(tokens.syntax_error(range.end));
    }
    if close == range.start + 1 {
        return Ok(Vec::new());
    }
    let parts = tokens.split(range.start + 1..close);
    parts.into_iter().map(|part| field(tokens, part)).collect()
}

/// A field: its name and its type.
fn field(tokens: &Tokens<'_>, range: Range<usize>) -> Result<ColumnDef> {
    let parts = [range.clone()];
    let column = tokens.sql_parts(None, &parts, |parser| parser.parse_column_def())?;
    match column.options.first() {
        None => Ok(column),
        Some(_) => Err(tokens.unsupported(range.start, "an option of an attribute")),
    }
}

/// What ends before CASCADE or RESTRICT, which mean something for tables of the type alone.
fn end_of_attribute(tokens: &Tokens<'_>, range: Range<usize>) -> Result<usize> {
    match tokens.word(range.end - 1) {
        "cascade" | "restrict" => Ok(range.end - 1),
        _ => Ok(range.end),
    }
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
