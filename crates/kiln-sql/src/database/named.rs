//! What a session gives names to: prepared statements and cursors.

use std::collections::HashMap;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::prepared::{Column, Statement, StatementKind};
use super::result::{ResultSet, StatementResult};
use super::session::Session;
use crate::compile::data_type;
use crate::parse::{Declare, Direction, Execute, Fetch, Prepare, Statement as Tree};

/// Prepared statements, and cursors, that a session may have at a time.
pub const NAMES_MAX: usize = 10_000;

/// The names of a session.
#[derive(Default)]
pub(super) struct Names {
    statements: HashMap<String, Statement>,
    cursors: HashMap<String, Cursor>,
}

/// A finished result, and a place in it.
struct Cursor {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
    /// The row, from 1, that was fetched last; 0 before the first, and one more than there are behind the last.
    at: usize,
    /// Whether it may only go forward.
    is_forward: bool,
    /// Whether it outlives its transaction.
    is_held: bool,
    /// Whether it is of the open block.
    is_of_block: bool,
}

impl Names {
    /// Whether nothing has a name.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.cursors.is_empty()
    }

    /// The block is over, and with it what does not outlive it.
    pub fn end_block(&mut self, is_committed: bool) {
        self.cursors.retain(|_, cursor| match is_committed {
            true => cursor.is_held,
            false => !cursor.is_of_block,
        });
        for cursor in self.cursors.values_mut() {
            cursor.is_of_block = false;
        }
    }

    /// What a statement returns that is about something with a name.
    pub fn described(&self, statement: Statement) -> Statement {
        match statement.tree().map(|tree| &**tree) {
            Some(Tree::Fetch(fetch)) if !fetch.is_move => {
                let cursor = self.cursors.get(&fetch.cursor);
                let columns = cursor.map(|cursor| cursor.columns.clone());
                statement.with_description(columns, StatementKind::Utility)
            }
            Some(Tree::Execute(execute)) => match self.statements.get(&execute.name) {
                Some(prepared) => {
                    let columns = prepared.columns().map(<[Column]>::to_vec);
                    statement.with_description(columns, prepared.kind())
                }
                None => statement,
            },
            _ => statement,
        }
    }
}

impl Session {
    /// Gives a statement a name, by which EXECUTE finds it too. The empty name is taken without a question, and any other once.
    ///
    /// # Errors
    /// 42P05 when the name is taken, 54000 for too many.
    pub fn keep_statement(&mut self, name: &str, statement: Statement) -> Result<()> {
        let statements = &mut self.names.statements;
        if !name.is_empty() {
            if statements.contains_key(name) {
                let message = format!("prepared statement \"{name}\" already exists");
                return Err(Error::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message));
            }
            check_room(statements.len(), "prepared statements")?;
        }
        statements.insert(name.to_owned(), statement);
        Ok(())
    }

    /// The statement of this name.
    ///
    /// # Errors
    /// 26000 when there is none.
    pub fn kept_statement(&self, name: &str) -> Result<&Statement> {
        self.names.statements.get(name).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                _ => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// Forgets the statement of this name; says whether there was one.
    pub fn forget_statement(&mut self, name: &str) -> bool {
        self.names.statements.remove(name).is_some()
    }

    /// The columns of a cursor.
    ///
    /// # Errors
    /// 34000 when there is none of this name.
    pub fn cursor_columns(&self, name: &str) -> Result<&[Column]> {
        let cursor = self.names.cursors.get(name);
        let cursor = cursor.ok_or_else(|| no_cursor(name))?;
        Ok(&cursor.columns)
    }

    /// Forgets the cursor of this name; says whether there was one.
    pub fn close_cursor(&mut self, name: &str) -> bool {
        self.names.cursors.remove(name).is_some()
    }

    /// PREPARE.
    pub(super) fn prepare(&mut self, prepare: &Prepare) -> Result<StatementResult> {
        let types = prepare.types.iter().map(|declared| {
            let known = declared.as_ref().map(|declared| data_type(declared, None));
            known.transpose()
        });
        let types: Vec<Option<DataType>> = types.collect::<Result<_>>()?;
        let statement = self.parse_source(&prepare.statement.source(), &types)?;
        self.keep_statement(&prepare.name, statement)?;
        Ok(StatementResult::of_tag("PREPARE"))
    }

    /// EXECUTE: the statement and its values.
    pub(super) fn execute_as(
        &mut self,
        execute: &Execute,
        statement: &Statement,
        values: &[Value],
    ) -> Result<(Statement, Vec<Value>)> {
        let prepared = self.kept_statement(&execute.name)?.clone();
        let given = match &execute.values {
            Some(_) => self.run_data(statement, values)?.result,
            None => None,
        };
        let given = given
            .and_then(|mut result| result.rows.pop())
            .unwrap_or_default();
        let wanted = prepared.parameters().len();
        if given.len() != wanted {
            let name = &execute.name;
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            let got = given.len();
            return Err(error.with_detail(format!("Expected {wanted} parameters but got {got}.")));
        }
        let values = prepared.bind(&given)?.values().to_vec();
        Ok((prepared, values))
    }

    /// DEALLOCATE.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<StatementResult> {
        let Some(name) = name else {
            self.names.statements.clear();
            return Ok(StatementResult::of_tag("DEALLOCATE ALL"));
        };
        self.kept_statement(name)?;
        self.forget_statement(name);
        Ok(StatementResult::of_tag("DEALLOCATE"))
    }

    /// DECLARE.
    pub(super) fn declare(
        &mut self,
        declare: &Declare,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        let Declare {
            name, scroll, hold, ..
        } = declare;
        let is_of_block = self.in_transaction();
        if !is_of_block && !hold {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message));
        }
        if self.names.cursors.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_CURSOR, message));
        }
        check_room(self.names.cursors.len(), "cursors")?;
        let result = self.run_data(statement, values)?;
        let ResultSet { columns, rows } = result.result.unwrap_or_default();
        let columns = columns.into_iter().map(|(name, data_type)| Column {
            name,
            data_type,
            origin: None,
        });
        let cursor = Cursor {
            columns: columns.collect(),
            rows,
            at: 0,
            is_forward: *scroll == Some(false),
            is_held: *hold,
            is_of_block,
        };
        self.names.cursors.insert(name.clone(), cursor);
        let notices = result.notices;
        Ok(StatementResult {
            notices,
            ..StatementResult::of_tag("DECLARE CURSOR")
        })
    }

    /// FETCH and MOVE.
    pub(super) fn fetch(&mut self, fetch: &Fetch) -> Result<StatementResult> {
        let name = &fetch.cursor;
        let cursor = self.names.cursors.get_mut(name);
        let cursor = cursor.ok_or_else(|| no_cursor(name))?;
        let taken = cursor.take(fetch.direction)?;
        if fetch.is_move {
            return Ok(StatementResult::of_tag(&format!("MOVE {}", taken.len())));
        }
        let columns = cursor.columns.iter();
        let columns = columns.map(|column| (column.name.clone(), column.data_type.clone()));
        let rows = taken.iter().map(|row| cursor.rows[row - 1].clone());
        Ok(StatementResult {
            result: Some(ResultSet {
                columns: columns.collect(),
                rows: rows.collect(),
            }),
            ..StatementResult::of_tag(&format!("FETCH {}", taken.len()))
        })
    }

    /// CLOSE.
    pub(super) fn close(&mut self, name: Option<&str>) -> Result<StatementResult> {
        match name {
            None => {
                self.names.cursors.clear();
                Ok(StatementResult::of_tag("CLOSE CURSOR ALL"))
            }
            Some(name) if self.close_cursor(name) => Ok(StatementResult::of_tag("CLOSE CURSOR")),
            Some(name) => Err(no_cursor(name)),
        }
    }
}

impl Cursor {
    /// The rows, from 1, that come next in a direction, and goes there.
    ///
    /// # Errors
    /// 55000 for a direction that it may not take.
    fn take(&mut self, direction: Direction) -> Result<Vec<usize>> {
        let count = self.rows.len();
        let (at, behind) = (self.at, count + 1);
        let nearest =
            |target: i128| usize::try_from(target.max(0)).map_or(behind, |it| it.min(behind));
        let one = |target: i128| {
            let target = nearest(target);
            let is_row = (1..=count).contains(&target);
            (if is_row { vec![target] } else { Vec::new() }, target)
        };
        let forward = |most: usize| {
            let last = at.saturating_add(most).min(count);
            let rows: Vec<usize> = (at + 1..=last).collect();
            let to = if rows.len() < most { behind } else { last };
            (rows, to)
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
            Direction::Forward(number @ 1..) => forward(size(number.unsigned_abs())),
            Direction::Forward(number) => backward(size(number.unsigned_abs())),
            Direction::ForwardAll => forward(usize::MAX),
            Direction::BackwardAll => backward(usize::MAX),
            Direction::Absolute(number @ 0..) => one(number.into()),
            Direction::Absolute(number) => one(behind as i128 + i128::from(number)),
            Direction::Relative(number) => one(at as i128 + i128::from(number)),
        };
        let goes_back = to < at || matches!(direction, Direction::BackwardAll);
        if self.is_forward && goes_back {
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            let error = Error::new(state, "cursor can only scan forward");
            return Err(error.with_hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.at = to;
        Ok(rows)
    }
}

#[cold]
fn no_cursor(name: &str) -> Error {
    let message = format!("cursor \"{name}\" does not exist");
    Error::new(SqlState::INVALID_CURSOR_NAME, message)
}

fn check_room(count: usize, what: &str) -> Result<()> {
    match count < NAMES_MAX {
        true => Ok(()),
        false => {
            let message = format!("a session has at most {NAMES_MAX} {what}");
            Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
        }
    }
}
