//! CREATE, ALTER and DROP SCHEMA.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::Ident;

use super::role::{self, RoleName};
use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// `CREATE SCHEMA [IF NOT EXISTS] [name] [AUTHORIZATION role]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSchema {
    /// A schema that is there already is no error.
    pub if_not_exists: bool,
    /// Its name; that of its owner, if none is given.
    pub name: Option<Ident>,
    /// The owner, if the statement names one.
    pub owner: Option<RoleName>,
}

/// `DROP SCHEMA`.
#[derive(Clone, Debug, PartialEq)]
pub struct DropSchema {
    /// A missing schema is no error.
    pub if_exists: bool,
    /// Which; never empty.
    pub names: Vec<Ident>,
    /// What is in it goes too.
    pub cascade: bool,
}

/// `ALTER SCHEMA`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSchema {
    /// Which.
    pub name: Ident,
    /// What becomes of it.
    pub change: SchemaChange,
}

/// What [`AlterSchema`] changes.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaChange {
    /// `RENAME TO`.
    Rename(Ident),
    /// `OWNER TO`.
    Owner(RoleName),
}

/// Parses CREATE SCHEMA.
pub(super) fn create(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 2;
    let if_not_exists = tokens.words(at, &["if", "not", "exists"]);
    if if_not_exists {
        at += 3;
    }
    let mut name = None;
    if tokens.word(at) != "authorization" {
        name = Some(types::identifier(tokens, at)?);
        at += 1;
    }
    let mut owner = None;
    if at < range.end && tokens.word(at) == "authorization" {
        owner = Some(role::role(tokens, at + 1)?);
        at += 2;
    }
    if at < range.end {
        return match tokens.word(at) {
            "create" | "grant" => Err(tokens.unsupported(at, "CREATE SCHEMA with what is in it")),
            _ => Err(tokens.syntax_error(at)),
        };
    }
    Ok(Statement::CreateSchema(CreateSchema {
        if_not_exists,
        name,
        owner,
    }))
}

/// Parses DROP SCHEMA.
pub(super) fn drop(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut start = range.start + 2;
    let if_exists = tokens.words(start, &["if", "exists"]);
    if if_exists {
        start += 2;
    }
    let mut end = range.end;
    let cascade = end > start + 1 && tokens.word(end - 1) == "cascade";
    if cascade || (end > start + 1 && tokens.word(end - 1) == "restrict") {
        end -= 1;
    }
    Ok(Statement::DropSchema(DropSchema {
        if_exists,
        names: names(tokens, start..end)?,
        cascade,
    }))
}

/// Parses ALTER SCHEMA.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = range.start + 2;
    let name = types::identifier(tokens, at)?;
    let change = if tokens.words(at + 1, &["rename", "to"]) {
        SchemaChange::Rename(types::identifier(tokens, at + 3)?)
    } else if tokens.words(at + 1, &["owner", "to"]) {
        SchemaChange::Owner(role::role(tokens, at + 3)?)
    } else {
        return Err(tokens.syntax_error(at + 1));
    };
    match at + 4 < range.end {
        true => Err(tokens.syntax_error(at + 4)),
        false => Ok(Statement::AlterSchema(AlterSchema { name, change })),
    }
}

/// Parses names of schemas, with commas between them.
pub(super) fn names(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<Ident>> {
    let parts = tokens.split(range).into_iter();
    let names = parts.map(|part| match part.len() {
        1 => types::identifier(tokens, part.start),
        _ => Err(tokens.syntax_error(part.start + 1)),
    });
    names.collect()
}
