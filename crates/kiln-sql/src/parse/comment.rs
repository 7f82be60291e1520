//! COMMENT.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::{self, Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::drop::{RoutineSignature, routine_signature};
use super::sequence;
use super::statement::{RoutineKind, Statement};
use super::tokens::Tokens;
use super::types;

/// `COMMENT ON object IS text`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    /// What it is on.
    pub object: CommentedObject,
    /// What it says; empty for NULL, which takes a comment away.
    pub text: String,
}

/// What a [`Comment`] is on, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum CommentedObject {
    /// A table, index, sequence or view.
    Relation(RelationKind, ObjectName),
    /// A column, with the table or view before it.
    Column(ObjectName),
    /// A function or procedure; `None` for ROUTINE, which takes either.
    Routine(Option<RoutineKind>, RoutineSignature),
    /// A constraint of a table.
    Constraint(Ident, ObjectName),
    /// A role.
    Role(Ident),
    /// A database.
    Database(Ident),
    /// A schema.
    Schema(Ident),
    /// An extension.
    Extension(Ident),
    /// A check of a domain, by the domain and its own name.
    DomainConstraint(ObjectName, Ident),
    /// A type.
    Type(Box<ast::DataType>),
}

/// Which kind of relation is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// A table.
    Table,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
}

impl RelationKind {
    /// With its article.
    pub fn described(self) -> &'static str {
        match self {
            RelationKind::Table => "a table",
            RelationKind::Index => "an index",
            RelationKind::Sequence => "a sequence",
            RelationKind::View => "a view",
            RelationKind::MaterializedView => "a materialized view",
        }
    }
}

/// Kinds of objects that PostgreSQL has, by their first words.
const REFUSED: &[&str] = &[
    "access",
    "aggregate",
    "cast",
    "collation",
    "conversion",
    "event",
    "foreign",
    "language",
    "large",
    "operator",
    "policy",
    "procedural",
    "publication",
    "rule",
    "server",
    "statistics",
    "subscription",
    "tablespace",
    "text",
    "transform",
    "trigger",
];

/// Parses COMMENT.
pub(super) fn comment(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let (on, mut kind) = (range.start + 1, range.start + 2);
    if tokens.word(on) != "on" {
        return Err(tokens.syntax_error(on));
    }
    let word = tokens.word(kind);
    if REFUSED.contains(&word) {
        let feature = format!("COMMENT ON {}", word.to_ascii_uppercase());
        return Err(tokens.unsupported(range.start, &feature));
    }
    if tokens.words(kind, &["materialized", "view"]) {
        kind += 1;
    }
    let mut rest = kind + 1..range.end;
    let is = rest
        .find(|at| tokens.word(*at) == "is")
        .unwrap_or(range.end);
    let named = kind + 1..is;
    let relation =
        |of_kind| name(tokens, named.clone()).map(|name| CommentedObject::Relation(of_kind, name));
    let routine = |of_kind| {
        let signature = routine_signature(tokens, named.clone());
        signature.map(|signature| CommentedObject::Routine(of_kind, signature))
    };
    let object = match word {
        "table" => relation(RelationKind::Table)?,
        "index" => relation(RelationKind::Index)?,
        "sequence" => relation(RelationKind::Sequence)?,
        "view" => relation(RelationKind::View)?,
        "materialized" if tokens.word(kind) == "view" => relation(RelationKind::MaterializedView)?,
        "column" => CommentedObject::Column(name(tokens, named)?),
        "function" => routine(Some(RoutineKind::Function))?,
        "procedure" => routine(Some(RoutineKind::Procedure))?,
        "routine" => routine(None)?,
        "constraint" => constraint(tokens, named)?,
        "role" => CommentedObject::Role(single(tokens, named)?),
        "database" => CommentedObject::Database(single(tokens, named)?),
        "schema" => CommentedObject::Schema(single(tokens, named)?),
        "extension" => CommentedObject::Extension(single(tokens, named)?),
        "type" | "domain" => {
            let data_type = tokens.sql(named, |parser| parser.parse_data_type())?;
            CommentedObject::Type(Box::new(data_type))
        }
        _ => return Err(tokens.syntax_error(kind)),
    };
    let text = text(tokens, is, range.end)?;
    Ok(Statement::Comment(Box::new(Comment { object, text })))
}

/// Parses all of `range` as a name.
fn name(tokens: &Tokens<'_>, range: Range<usize>) -> Result<ObjectName> {
    if range.is_empty() {
        return Err(tokens.syntax_error(range.end));
    }
    let (name, after) = sequence::name(tokens, range.clone())?;
    match after == range.end {
        true => Ok(name),
        false => Err(tokens.syntax_error(after)),
    }
}

/// Parses all of `range` as a name of one part.
fn single(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Ident> {
    match range.len() {
        0 => Err(tokens.syntax_error(range.start)),
        1 => types::identifier(tokens, range.start),
        _ => Err(tokens.syntax_error(range.start + 1)),
    }
}

/// Parses `name ON table`.
fn constraint(tokens: &Tokens<'_>, range: Range<usize>) -> Result<CommentedObject> {
    let on = range.start + 1;
    if tokens.word(on) != "on" || range.len() < 3 {
        return Err(tokens.syntax_error(on.min(range.end)));
    }
    let constraint = types::identifier(tokens, range.start)?;
    if tokens.word(on + 1) == "domain" && range.len() > 3 {
        let domain = name(tokens, on + 2..range.end)?;
        return Ok(CommentedObject::DomainConstraint(domain, constraint));
    }
    let table = name(tokens, on + 1..range.end)?;
    Ok(CommentedObject::Constraint(constraint, table))
}

/// Parses the text behind IS.
fn text(tokens: &Tokens<'_>, is: usize, end: usize) -> Result<String> {
    let at = is + 1;
    if is >= end {
        return Err(tokens.syntax_error(end));
    }
    let text = match tokens.get(at) {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => text.clone(),
        Token::DollarQuotedString(text) => text.value.clone(),
        _ if at < end && tokens.word(at) == "null" => String::new(),
        _ => return Err(tokens.syntax_error(at)),
    };
    match at + 1 == end {
        true => Ok(text),
        false => Err(tokens.syntax_error(at + 1)),
    }
}
