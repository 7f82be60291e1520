//! CREATE, ALTER and DROP EXTENSION.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Token;

use super::schema;
use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// `CREATE EXTENSION`, `ALTER EXTENSION` or `DROP EXTENSION`.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionStatement {
    /// `CREATE EXTENSION [IF NOT EXISTS] name [WITH] [SCHEMA schema] [VERSION version] [CASCADE]`.
    Create {
        /// One that is there already is no error.
        if_not_exists: bool,
        /// Its name.
        name: Ident,
        /// Where its objects go, if the statement says so.
        schema: Option<Ident>,
        /// Which version, if the statement says so.
        version: Option<String>,
    },
    /// `ALTER EXTENSION name UPDATE [TO version]`.
    Update {
        /// Its name.
        name: Ident,
        /// To which version, if the statement says so.
        version: Option<String>,
    },
    /// `DROP EXTENSION`.
    Drop {
        /// A missing one is no error.
        if_exists: bool,
        /// Which; never empty.
        names: Vec<Ident>,
    },
}

/// Parses CREATE EXTENSION.
pub(super) fn create(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 2;
    let if_not_exists = tokens.words(at, &["if", "not", "exists"]);
    if if_not_exists {
        at += 3;
    }
    let name = types::identifier(tokens, at)?;
    at += 1;
    at += usize::from(at < range.end && tokens.word(at) == "with");
    let (mut schema, mut version, mut cascade) = (None, None, false);
    while at < range.end {
        match tokens.word(at) {
            "schema" if schema.is_none() => {
                schema = Some(types::identifier(tokens, at + 1)?);
                at += 2;
            }
            "version" if version.is_none() => {
                version = Some(version_at(tokens, at + 1)?);
                at += 2;
            }
            "cascade" if !cascade => {
                cascade = true;
                at += 1;
            }
            _ => return Err(tokens.syntax_error(at)),
        }
    }
    Ok(Statement::Extension(Box::new(ExtensionStatement::Create {
        if_not_exists,
        name,
        schema,
        version,
    })))
}

/// Parses ALTER EXTENSION.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = range.start + 2;
    let name = types::identifier(tokens, at)?;
    match tokens.word(at + 1) {
        "update" => {}
        "set" | "add" | "drop" => {
            return Err(tokens.unsupported(range.start, "this form of ALTER EXTENSION"));
        }
        _ => return Err(tokens.syntax_error(at + 1)),
    }
    let (version, end) = match at + 2 < range.end && tokens.word(at + 2) == "to" {
        true => (Some(version_at(tokens, at + 3)?), at + 4),
        false => (None, at + 2),
    };
    match end < range.end {
        true => Err(tokens.syntax_error(end)),
        false => Ok(Statement::Extension(Box::new(ExtensionStatement::Update {
            name,
            version,
        }))),
    }
}

/// Parses DROP EXTENSION. CASCADE and RESTRICT make no difference: no object can depend on what is
/// built in.
pub(super) fn drop(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut start = range.start + 2;
    let if_exists = tokens.words(start, &["if", "exists"]);
    if if_exists {
        start += 2;
    }
    let mut end = range.end;
    if end > start + 1 && matches!(tokens.word(end - 1), "cascade" | "restrict") {
        end -= 1;
    }
    Ok(Statement::Extension(Box::new(ExtensionStatement::Drop {
        if_exists,
        names: schema::names(tokens, start..end)?,
    })))
}

/// A version, which is a name or a string.
fn version_at(tokens: &Tokens<'_>, at: usize) -> Result<String> {
    match tokens.get(at) {
        Token::SingleQuotedString(version) => Ok(version.clone()),
        _ => types::identifier(tokens, at).map(|version| version.value),
    }
}
