//! Portals: statements with the values of their parameters, whose rows are handed out in portions.

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Value;

use super::prepared::Statement;
use super::result::{Notice, ResultSet, StatementResult};

/// A statement that is bound to the values of its parameters: to be executed once, and then fetched
/// from.
///
/// Its result is finished when it has been executed, whatever the row limit: under most protocols
/// rows from before the commit may turn out wrong. So a portal outlives its transaction, and holds
/// no lock.
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
    rows: Option<std::vec::IntoIter<Vec<Value>>>,
    notices: Vec<Notice>,
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
                let rows = result.map(|ResultSet { rows, .. }| rows.into_iter());
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
        let Some(rest) = &mut finished.rows else {
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
        let rows: Vec<Vec<Value>> = rest.by_ref().take(limit).collect();
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
}

#[cold]
fn cannot_run() -> Error {
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the portal cannot be run",
    )
}
