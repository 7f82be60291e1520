//! Portals: statements with the values of their parameters, whose rows are handed out in portions.

use std::ops::Range;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Value;

use super::prepared::Statement;
use super::result::{Notice, ResultSet, StatementResult};
use crate::parse::Direction;

/// A statement that is bound to the values of its parameters: to be executed once, and then fetched
/// from.
///
/// Its result is finished when it has been executed, whatever the row limit: under most protocols
/// rows from before the commit may turn out wrong. So a portal outlives its transaction, and holds
/// no lock. Rows that were handed out are gone, unless it is the portal of a cursor that goes
/// backward.
#[derive(Clone, Debug)]
pub struct Portal {
    statement: Statement,
    values: Vec<Value>,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Bound,
    Finished(Finished),
    Failed,
}

/// A result and what was handed out of it.
#[derive(Clone, Debug)]
struct Finished {
    tag: String,
    /// `None` when the statement returns no rows.
    rows: Option<Cursor>,
    notices: Vec<Notice>,
}

/// Rows, and a place among them.
#[derive(Clone, Debug)]
struct Cursor {
    rows: Vec<Vec<Value>>,
    /// The row, from 1, that was fetched last; 0 before the first, and one more than there are
    /// behind the last.
    at: usize,
    /// Whether it goes backward, so that rows stay.
    goes_back: bool,
}

/// What one execution of a portal, or fetch from it, gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Portion {
    /// The next rows, each with a value for every column of the statement.
    pub rows: Vec<Vec<Value>>,
    /// The row limit ended the portion: there may be more rows. As in PostgreSQL that is so when
    /// exactly as many rows were left.
    pub suspended: bool,
    /// PostgreSQL's command tag. That of a query counts the rows of this portion.
    pub tag: String,
    /// Messages that were raised; only the first portion has them.
    pub notices: Vec<Notice>,
}

impl Portal {
    pub(super) fn new(statement: Statement, values: Vec<Value>) -> Portal {
        Portal {
            statement,
            values,
            state: State::Bound,
        }
    }

    /// Its statement.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The values of its parameters.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Whether it has been executed, so that [`Portal::fetch`] goes on with it.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished(_))
    }

    /// Whether it can be executed.
    ///
    /// # Errors
    /// 55000 after an error.
    pub(super) fn check(&self) -> Result<()> {
        match self.state {
            State::Failed => Err(cannot_run()),
            _ => Ok(()),
        }
    }

    /// Whether it is still to be executed.
    ///
    /// # Errors
    /// 55000 when it was executed.
    pub(super) fn check_bound(&self) -> Result<()> {
        match self.state {
            State::Bound => Ok(()),
            _ => Err(cannot_run()),
        }
    }

    /// Notes how the execution ended.
    pub(super) fn end(&mut self, result: Result<StatementResult>) -> Result<()> {
        match result {
            Ok(StatementResult {
                tag,
                result,
                notices,
            }) => {
                let rows = result.map(|ResultSet { rows, .. }| Cursor {
                    rows,
                    at: 0,
                    goes_back: false,
                });
                self.state = State::Finished(Finished { tag, rows, notices });
                Ok(())
            }
            Err(error) => {
                self.state = State::Failed;
                Err(error)
            }
        }
    }

    /// Hands out the next rows of the finished result, at most `row_limit`; 0 means all.
    ///
    /// # Errors
    /// 55000 unless the portal was executed.
    pub fn fetch(&mut self, row_limit: usize) -> Result<Portion> {
        let State::Finished(finished) = &mut self.state else {
            return Err(cannot_run());
        };
        let notices = std::mem::take(&mut finished.notices);
        let Some(cursor) = &mut finished.rows else {
            return Ok(Portion {
                tag: finished.tag.clone(),
                notices,
                ..Portion::default()
            });
        };
        let limit = if row_limit == 0 {
            usize::MAX
        } else {
            row_limit
        };
        let rows = cursor.forward(limit);
        let rows: Vec<Vec<Value>> = rows.into_iter().map(|row| cursor.row(row)).collect();
        let tag = match finished.tag.starts_with("SELECT ") {
            true => format!("SELECT {}", rows.len()),
            false => finished.tag.clone(),
        };
        Ok(Portion {
            suspended: rows.len() == limit,
            rows,
            tag,
            notices,
        })
    }

    /// Whether it goes backward as well.
    pub(super) fn is_backward(&self) -> bool {
        match &self.state {
            State::Finished(finished) => finished.rows.as_ref().is_some_and(|rows| rows.goes_back),
            State::Bound | State::Failed => false,
        }
    }

    /// Bytes of the rows that it keeps.
    pub(super) fn bytes(&self) -> usize {
        match &self.state {
            State::Finished(Finished {
                rows: Some(cursor), ..
            }) => cursor.rows.iter().map(|row| bytes_of(row)).sum(),
            _ => 0,
        }
    }

    /// Lets the finished result go backward as well.
    pub(super) fn goes_back(&mut self) {
        if let State::Finished(finished) = &mut self.state
            && let Some(cursor) = &mut finished.rows
        {
            cursor.goes_back = true;
        }
    }

    /// The rows that come next in a direction, and how many they are; only counted where that is
    /// all that is asked.
    ///
    /// # Errors
    /// 55000 for a direction that it may not take, and for a portal without rows.
    pub(super) fn take(
        &mut self,
        direction: Direction,
        only_counts: bool,
    ) -> Result<(Vec<Vec<Value>>, usize)> {
        let State::Finished(finished) = &mut self.state else {
            return Err(cannot_run());
        };
        let cursor = finished.rows.as_mut().ok_or_else(cannot_run)?;
        if !cursor.goes_back && cursor.goes_backward(direction, only_counts) {
            return Err(only_forward());
        }
        let taken = cursor.take(direction);
        let count = taken.len();
        let rows = match only_counts {
            true => Vec::new(),
            false => taken.into_iter().map(|row| cursor.row(row)).collect(),
        };
        Ok((rows, count))
    }
}

impl Cursor {
    /// A row by its number, from 1.
    fn row(&mut self, number: usize) -> Vec<Value> {
        let row = &mut self.rows[number - 1];
        match self.goes_back {
            true => row.clone(),
            false => std::mem::take(row),
        }
    }

    /// The numbers of the next rows, and goes there.
    fn forward(&mut self, most: usize) -> Range<usize> {
        let count = self.rows.len();
        let first = (self.at + 1).min(count + 1);
        let last = self.at.saturating_add(most).min(count);
        let rows = first..(last + 1).max(first);
        self.at = if rows.len() < most { count + 1 } else { last };
        rows
    }

    /// Whether it would go backward, or stay on a row, which has been handed out, to give it again.
    /// What PostgreSQL reaches by way of the end is backward of that.
    fn goes_backward(&self, direction: Direction, only_counts: bool) -> bool {
        let (at, has_moved) = (self.at as i128, self.at > 0);
        let is_on_row = (1..=self.rows.len()).contains(&self.at);
        match direction {
            Direction::Forward(0) | Direction::Relative(0) => is_on_row && !only_counts,
            Direction::Forward(number) | Direction::Relative(number) => number < 0,
            Direction::ForwardAll => false,
            Direction::BackwardAll => has_moved || !only_counts,
            Direction::Absolute(0) => has_moved,
            Direction::Absolute(number) => i128::from(number) <= at || number < 0,
        }
    }

    /// The rows, from 1, that come next in a direction, and goes there.
    fn take(&mut self, direction: Direction) -> Vec<usize> {
        let count = self.rows.len();
        let (at, behind) = (self.at, count + 1);
        let nearest =
            |target: i128| usize::try_from(target.max(0)).map_or(behind, |it| it.min(behind));
        let one = |target: i128| {
            let target = nearest(target);
            let is_row = (1..=count).contains(&target);
            (if is_row { vec![target] } else { Vec::new() }, target)
        };
        let backward = |most: usize| {
            let first = at.saturating_sub(most).max(1);
            let rows: Vec<usize> = (first..at).rev().collect();
            let to = if rows.len() < most { 0 } else { first };
            (rows, to)
        };
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (rows, to) = match direction {
            Direction::Forward(0) => one(at as i128),
            Direction::Forward(number @ 1..) => {
                return self.forward(size(number.unsigned_abs())).collect();
            }
            Direction::Forward(number) => backward(size(number.unsigned_abs())),
            Direction::ForwardAll => return self.forward(usize::MAX).collect(),
            Direction::BackwardAll => backward(usize::MAX),
            Direction::Absolute(number @ 0..) => one(number.into()),
            Direction::Absolute(number) => one(behind as i128 + i128::from(number)),
            Direction::Relative(number) => one(at as i128 + i128::from(number)),
        };
        self.at = to;
        rows
    }
}

/// Bytes of a row, or of the elements of an array.
pub(super) fn bytes_of(values: &[Value]) -> usize {
    let beside = values.iter().map(|value| match value {
        Value::Text(text) => text.len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Array(elements) => bytes_of(elements),
        Value::Object(object) => size_of_val(&**object) + object.name.len(),
        _ => 0,
    });
    size_of::<Vec<Value>>() + size_of_val(values) + beside.sum::<usize>()
}

#[cold]
fn only_forward() -> Error {
    let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    let error = Error::new(state, "cursor can only scan forward");
    error.with_hint("Declare it with SCROLL option to enable backward scan.")
}

#[cold]
fn cannot_run() -> Error {
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the portal cannot be run",
    )
}
