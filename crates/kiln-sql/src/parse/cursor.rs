//! Cursors in SQL: DECLARE, FETCH, MOVE, CLOSE.

use std::ops::Range;

use kiln_storage::error::{Error, Result, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::prepare::all_or_name;
use super::statement::{Statement, change_of, query};
use super::tokens::Tokens;
use super::types;

/// `DECLARE name CURSOR FOR query`.
#[derive(Clone, Debug, PartialEq)]
pub struct Declare {
    /// What the cursor is called.
    pub name: String,
    /// Whether it may go backward, if that is said.
    pub scroll: Option<bool>,
    /// Whether it outlives its transaction.
    pub hold: bool,
    /// The query.
    pub query: Box<ast::Query>,
}

/// `FETCH` or `MOVE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Whether the rows are passed over.
    pub is_move: bool,
    /// The cursor.
    pub cursor: String,
    /// Which rows.
    pub direction: Direction,
}

/// Which rows of a cursor come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// This many rows from here on; backward if it is negative, the current one for 0.
    Forward(i64),
    /// All that are ahead.
    ForwardAll,
    /// All that are behind, the nearest first.
    BackwardAll,
    /// The one at this place, from 1, or from the end if it is negative.
    Absolute(i64),
    /// The one so many rows from here.
    Relative(i64),
}

/// Parses DECLARE.
pub(super) fn declare(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let name = types::identifier(tokens, range.start + 1)?.value;
    let mut at = range.start + 2;
    let [mut scroll, mut insensitive] = [None; 2];
    let both = |option: Option<bool>, value, names| match option {
        Some(other) if other != value => {
            let message = format!("cannot specify both {names}");
            Err(Error::new(SqlState::INVALID_CURSOR_DEFINITION, message))
        }
        _ => Ok(Some(value)),
    };
    loop {
        match tokens.word(at) {
            "binary" => return Err(tokens.unsupported(at, "a cursor of binary values")),
            // What a cursor shows never changes.
            word @ ("insensitive" | "asensitive") => {
                let names = "ASENSITIVE and INSENSITIVE";
                insensitive = both(insensitive, word == "insensitive", names)?;
            }
            "no" if tokens.word(at + 1) == "scroll" => {
                scroll = both(scroll, false, "SCROLL and NO SCROLL")?;
                at += 1;
            }
            "scroll" => scroll = both(scroll, true, "SCROLL and NO SCROLL")?,
            "cursor" => break,
            _ => return Err(tokens.syntax_error(at)),
        }
        at += 1;
    }
    at += 1;
    let hold = tokens.words(at, &["with", "hold"]);
    if hold || tokens.words(at, &["without", "hold"]) {
        at += 2;
    }
    if tokens.word(at) != "for" || at + 1 >= range.end {
        return Err(tokens.syntax_error(at));
    }
    match tokens.word(at + 1) {
        "select" | "values" | "with" | "table" => {}
        "" if *tokens.get(at + 1) == Token::LParen => {}
        _ => return Err(tokens.syntax_error(at + 1)),
    }
    let query = query(tokens, at + 1..range.end)?;
    check_reads(
        &query,
        hold,
        scroll == Some(true),
        insensitive == Some(true),
    )?;
    Ok(Statement::Declare(Box::new(Declare {
        name,
        scroll,
        hold,
        query,
    })))
}

/// Checks that a cursor's query changes nothing, and locks rows only where a cursor may.
fn check_reads(query: &ast::Query, hold: bool, scroll: bool, insensitive: bool) -> Result<()> {
    let parts = query.with.iter().flat_map(|with| &with.cte_tables);
    let changes = |part: &ast::Cte| change_of(&part.query).is_some();
    if change_of(query).is_some() || parts.into_iter().any(changes) {
        let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let Some(lock) = query.locks.first() else {
        return Ok(());
    };
    let state = SqlState::FEATURE_NOT_SUPPORTED;
    let (state, option, is_not, detail) = match (hold, scroll, insensitive) {
        (true, ..) => (state, "CURSOR WITH HOLD", "supported", "Holdable"),
        (_, true, _) => (state, "SCROLL CURSOR", "supported", "Scrollable"),
        (_, _, true) => {
            let state = SqlState::INVALID_CURSOR_DEFINITION;
            (state, "INSENSITIVE CURSOR", "valid", "Insensitive")
        }
        _ => return Ok(()),
    };
    let message = format!(
        "DECLARE {option} ... FOR {} is not {is_not}",
        lock.lock_type
    );
    let detail = format!("{detail} cursors must be READ ONLY.");
    Err(Error::new(state, message).with_detail(detail))
}

/// Parses FETCH or MOVE.
pub(super) fn fetch(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 1;
    let (count, counted) = number(tokens, at);
    let direction = match (tokens.word(at), count) {
        ("next", _) => Direction::Forward(1),
        ("prior", _) => Direction::Forward(-1),
        ("first", _) => Direction::Absolute(1),
        ("last", _) => Direction::Absolute(-1),
        ("all", _) => Direction::ForwardAll,
        (word @ ("absolute" | "relative" | "forward" | "backward"), _) => {
            let (count, after) = number(tokens, at + 1);
            let is_all = tokens.word(at + 1) == "all";
            let direction = match (word, count) {
                ("absolute", Some(count)) => Direction::Absolute(count),
                ("relative", Some(count)) => Direction::Relative(count),
                ("absolute" | "relative", None) => return Err(tokens.syntax_error(at + 1)),
                ("forward", Some(count)) => Direction::Forward(count),
                ("forward", None) if is_all => Direction::ForwardAll,
                ("forward", None) => Direction::Forward(1),
                (_, Some(count)) => Direction::Forward(count.saturating_neg()),
                (_, None) if is_all => Direction::BackwardAll,
                (_, None) => Direction::Forward(-1),
            };
            // The word before the cursor is passed over below.
            at = match (count, is_all) {
                (Some(_), _) => after - 1,
                (None, is_all) => at + usize::from(is_all),
            };
            direction
        }
        (_, Some(count)) => {
            at = counted - 1;
            Direction::Forward(count)
        }
        _ => {
            at -= 1;
            Direction::Forward(1)
        }
    };
    at += 1;
    if matches!(tokens.word(at), "from" | "in") && at + 1 < range.end {
        at += 1;
    }
    if at + 1 != range.end {
        return Err(tokens.syntax_error(at.min(range.end)));
    }
    Ok(Statement::Fetch(Fetch {
        is_move: tokens.word(range.start) == "move",
        cursor: types::identifier(tokens, at)?.value,
        direction,
    }))
}

/// The number at `at`, if there is one, and what comes behind it.
fn number(tokens: &Tokens<'_>, at: usize) -> (Option<i64>, usize) {
    let is_negative = *tokens.get(at) == Token::Minus;
    let digits = at + usize::from(is_negative || *tokens.get(at) == Token::Plus);
    let Token::Number(text, _) = tokens.get(digits) else {
        return (None, at);
    };
    let number = text.parse::<i64>().ok();
    let number = number.map(|number| if is_negative { -number } else { number });
    (number, digits + 1)
}

/// Parses CLOSE.
pub(super) fn close(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    all_or_name(tokens, range.start + 1..range.end).map(Statement::Close)
}
