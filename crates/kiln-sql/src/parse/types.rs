//! Types as declarations write them.

use super::tokens::Tokens;
use kiln_storage::error::{Position, Result};
use sqlparser::ast::{DataType, Ident};
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// The type of an argument, a variable or a result.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeReference {
    /// Its first token.
    pub position: Position,
    /// What it names.
    pub kind: TypeKind,
}

/// What a [`TypeReference`] names.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// A type of SQL, arrays of them included (`numeric(12,2)`, `int[]`). A name that the SQL
    /// parser does not know is `DataType::Custom`: a table's row type, for instance.
    Sql(DataType),
    /// `variable%TYPE` or `table.column%TYPE`; the names in lower case unless quoted.
    Like(Vec<Ident>),
    /// `table%ROWTYPE`.
    RowOf(Vec<Ident>),
    /// `RECORD`.
    Record,
    /// `TRIGGER`, which a trigger function returns.
    Trigger,
}

/// Whether the words at `first` and after it are one type name of two words, such as
/// `double precision`, and not a name and its type.
fn is_two_word_type(tokens: &Tokens<'_>, first: usize) -> bool {
    matches!(
        (tokens.word(first), tokens.word(first + 1)),
        ("double", "precision")
            | ("character" | "char" | "bit", "varying")
            | ("national", "character" | "char")
            | ("timestamp" | "time", "with" | "without")
    )
}

/// Whether `range`, a declaration of an argument or result column, begins with a name.
pub(super) fn begins_with_name(tokens: &Tokens<'_>, range: Range<usize>) -> bool {
    range.len() > 1
        && matches!(tokens.get(range.start), Token::Word(_))
        && matches!(tokens.get(range.start + 1), Token::Word(_))
        && !is_two_word_type(tokens, range.start)
}

/// Parses all of `range` as a type.
pub(super) fn parse(tokens: &Tokens<'_>, range: Range<usize>) -> Result<TypeReference> {
    let position = tokens.position(range.start);
    let of_kind = |kind| Ok(TypeReference { position, kind });
    if range.is_empty() {
        return Err(tokens.syntax_error(range.end));
    }
    if range.len() == 1 {
        match tokens.word(range.start) {
            "record" => return of_kind(TypeKind::Record),
            "trigger" => return of_kind(TypeKind::Trigger),
            "event_trigger" | "internal" | "cstring" => {
                let feature = format!("type {}", tokens.word(range.start));
                return Err(tokens.unsupported(range.start, &feature));
            }
            _ => {}
        }
    }
    if tokens.word(range.start) == "setof" {
        return Err(tokens.syntax_error(range.start));
    }
    if let Some(percent) = range
        .clone()
        .find(|index| *tokens.get(*index) == Token::Mod)
    {
        let path = identifiers(tokens, range.start..percent)?;
        let suffix = percent + 1;
        if suffix + 1 < range.end {
            return Err(if tokens.word(suffix) == "type" {
                tokens.unsupported(suffix + 1, "an array of a copied type (%TYPE[])")
            } else {
                tokens.syntax_error(suffix + 1)
            });
        }
        return match tokens.word(suffix) {
            "type" => of_kind(TypeKind::Like(path)),
            "rowtype" => of_kind(TypeKind::RowOf(path)),
            _ => Err(tokens.syntax_error(suffix)),
        };
    }
    of_kind(TypeKind::Sql(
        tokens.sql(range, |parser| parser.parse_data_type())?,
    ))
}

/// Parses all of `range` as identifiers with periods between them.
pub(super) fn identifiers(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<Ident>> {
    let mut path = Vec::new();
    for (offset, index) in range.clone().enumerate() {
        match tokens.get(index) {
            Token::Word(_) if offset % 2 == 0 => path.push(identifier(tokens, index)?),
            Token::Period if offset % 2 == 1 => {}
            _ => return Err(tokens.syntax_error(index)),
        }
    }
    if range.len().is_multiple_of(2) {
        return Err(tokens.syntax_error(range.end));
    }
    Ok(path)
}

/// The identifier at `index`.
pub(super) fn identifier(tokens: &Tokens<'_>, index: usize) -> Result<Ident> {
    match tokens.get(index) {
        Token::Word(word) => {
            let mut identifier = Ident::with_span(tokens.span(index), word.value.clone());
            identifier.quote_style = word.quote_style;
            Ok(identifier)
        }
        _ => Err(tokens.syntax_error(index)),
    }
}

/// The type that a text names, as `::` would read it.
///
/// # Errors
/// 42601.
pub fn type_of_text(text: &str) -> Result<DataType> {
    let tokens = Tokens::new(text, Position { line: 1, column: 1 })?;
    tokens.sql(0..tokens.len(), |parser| parser.parse_data_type())
}
