//! Materialized views: CREATE, REFRESH and ALTER MATERIALIZED VIEW, and the changes by which their
//! rows are made.

use std::ops::Range;

use kiln_storage::error::Result;
use sqlparser::ast::{self, FromTable, ObjectName};

use super::alter::{self, AlterObject, AlteredObject};
use super::create_as;
use super::sequence;
use super::statement::Statement;
use super::tokens::Tokens;
use super::view::{self, CreateView};

/// `CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateMaterializedView {
    /// One that is there is no error.
    pub if_not_exists: bool,
    /// What is kept of the query.
    pub view: CreateView,
    /// Whether the query is run at once.
    pub with_data: bool,
}

/// `REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RefreshMaterializedView {
    /// The view.
    pub name: ObjectName,
    /// Whether it must have a unique index.
    pub concurrently: bool,
    /// Whether the query is run; else the view loses its rows.
    pub with_data: bool,
}

/// Parses CREATE MATERIALIZED VIEW; `at` is behind these words.
pub(super) fn create(tokens: &Tokens<'_>, range: Range<usize>, at: usize) -> Result<Statement> {
    let if_not_exists = tokens.words(at, &["if", "not", "exists"]);
    let at = if if_not_exists { at + 3 } else { at };
    let (body, with_data) = create_as::data(tokens, at..range.end);
    match view::create(tokens, range.start..body.end, at, (false, false))? {
        Statement::CreateView(view) if view.check_option.is_none() => Ok(
            Statement::CreateMaterializedView(Box::new(CreateMaterializedView {
                if_not_exists,
                view: *view,
                with_data,
            })),
        ),
        _ => Err(tokens.syntax_error(body.end)),
    }
}

/// Parses REFRESH MATERIALIZED VIEW.
pub(super) fn refresh(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 1;
    for word in ["materialized", "view"] {
        if tokens.word(at) != word {
            return Err(tokens.syntax_error(at));
        }
        at += 1;
    }
    let concurrently = tokens.word(at) == "concurrently";
    at += usize::from(concurrently);
    if at >= range.end {
        return Err(tokens.syntax_error(range.end));
    }
    let (rest, with_data) = create_as::data(tokens, at..range.end);
    let (name, end) = sequence::name(tokens, rest.clone())?;
    if end != rest.end {
        return Err(tokens.syntax_error(end));
    }
    Ok(Statement::RefreshMaterializedView(Box::new(
        RefreshMaterializedView {
            name,
            concurrently,
            with_data,
        },
    )))
}

/// Parses ALTER MATERIALIZED VIEW, of which RENAME TO, SET SCHEMA and OWNER TO are there.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 3;
    let if_exists = tokens.words(at, &["if", "exists"]);
    if if_exists {
        at += 2;
    }
    if tokens.word(range.start + 2) != "view" || at >= range.end {
        return Err(tokens.syntax_error(at.min(range.end)));
    }
    let (name, at) = sequence::name(tokens, at..range.end)?;
    let change = alter::object_change(tokens, at..range.end)?
        .ok_or_else(|| tokens.unsupported(range.start, "this form of ALTER MATERIALIZED VIEW"))?;
    Ok(Statement::AlterObject(Box::new(AlterObject {
        object: AlteredObject::MaterializedView(name),
        if_exists,
        change,
    })))
}

/// Makes a DELETE one that takes the rows of a materialized view away, and an INSERT one that gives
/// it those of its query. The library reads no statement of PostgreSQL's that says so.
pub fn refill(tree: &mut Statement) {
    match tree {
        Statement::Insert(insert) => insert.ignore = true,
        Statement::Delete(delete) => {
            if let FromTable::WithFromKeyword(tables) = &mut delete.from {
                delete.from = FromTable::WithoutKeyword(std::mem::take(tables));
            }
        }
        _ => {}
    }
}

/// Whether an INSERT gives a materialized view its rows.
pub fn refills(insert: &ast::Insert) -> bool {
    insert.ignore
}

/// Whether a DELETE takes the rows of a materialized view away.
pub fn empties(delete: &ast::Delete) -> bool {
    matches!(delete.from, FromTable::WithoutKeyword(_))
}
