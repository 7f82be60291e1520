//! Places in a script, which every error and every node of the syntax trees carries.
//!
//! Lines and columns count from 1, and columns count characters, as `psql` and editors do.

use kiln_storage::error::Position;
use sqlparser::tokenizer::{Location, Span};

/// The first character of a script.
pub(super) const START: Position = Position { line: 1, column: 1 };

/// The place after `character`, which stands at `position`.
pub(super) fn after(position: Position, character: char) -> Position {
    if character == '\n' {
        Position {
            line: position.line.saturating_add(1),
            column: 1,
        }
    } else {
        Position {
            line: position.line,
            column: position.column.saturating_add(1),
        }
    }
}

/// The place after all of `text`, which begins at `position`.
pub(super) fn after_text(position: Position, text: &str) -> Position {
    text.chars().fold(position, after)
}

pub(super) fn location(position: Position) -> Location {
    Location::new(u64::from(position.line), u64::from(position.column))
}

/// The place of the first character of `span`, which nodes of `sqlparser`'s syntax tree report
/// through its trait `Spanned`. Nodes that have no place report an empty span: the result is
/// then `None`.
pub fn position_of(span: Span) -> Option<Position> {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    (span.start.line > 0).then(|| Position {
        line: number(span.start.line),
        column: number(span.start.column),
    })
}
