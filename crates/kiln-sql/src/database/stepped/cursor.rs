//! Cursors of a body: portals of the session, which its variables name.

use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::Run;
use super::control::Flow;
use super::piece::{Columns, of};
use crate::compile::name_of;
use crate::compile::plpgsql::{FrameScope, Kind, cursor_arguments, unbound};
use crate::parse::plpgsql::{
    BoundCursor, CursorStep, Declaration, ForCursor, Open, OpenSource, RowSource, Target, Towards,
};
use crate::parse::{Direction, Expression};

/// A variable of the body that has a query of its own.
pub(super) struct Known {
    /// The block that declares it, by its depth.
    scope: usize,
    name: String,
    cursor: Arc<BoundCursor>,
}

impl Run<'_> {
    /// Notes a cursor that the innermost block has declared.
    pub(super) fn know_cursor(&mut self, declaration: &Declaration) {
        if let Some(cursor) = &declaration.cursor {
            self.cursors.push(Known {
                scope: self.frame.scopes.len() - 1,
                name: name_of(&declaration.name),
                cursor: cursor.clone(),
            });
        }
    }

    /// Forgets the cursors of all blocks but the first so many.
    pub(super) fn forget_cursors(&mut self, depth: usize) {
        self.cursors.retain(|known| known.scope < depth);
    }

    /// The block of a variable, by its depth, and where its value is.
    ///
    /// # Errors
    /// 42601 when there is none.
    fn variable(&self, target: &Target) -> Result<(usize, usize)> {
        let path: Vec<String> = target.path.iter().map(name_of).collect();
        let (mut place, mut found) = (0, None);
        for (depth, scope) in self.frame.scopes.iter().enumerate() {
            for (name, kind) in &scope.variables {
                let is_meant = match path.as_slice() {
                    [only] => only == name,
                    [label, last] => scope.label.as_ref() == Some(label) && last == name,
                    _ => false,
                };
                if is_meant && matches!(kind, Kind::Scalar { .. }) {
                    found = Some((depth, place));
                }
                place += kind.types().len();
            }
        }
        found.ok_or_else(|| {
            let message = format!("\"{}\" is not a known variable", path.join("."));
            Error::new(SqlState::SYNTAX_ERROR, message)
        })
    }

    /// The query that the declaration of a variable has.
    fn bound(&self, target: &Target, scope: usize) -> Option<Arc<BoundCursor>> {
        let name = target.path.last().map(name_of)?;
        let known = self.cursors.iter().rev();
        let mut known = known.filter(|known| known.scope == scope && known.name == name);
        known.next().map(|known| known.cursor.clone())
    }

    /// The name of the portal that a variable means.
    ///
    /// # Errors
    /// 22004 when it means none.
    fn portal_of(&self, target: &Target) -> Result<String> {
        let (_, place) = self.variable(target)?;
        match &self.values[place] {
            Value::Text(name) => Ok(name.clone()),
            _ => {
                let name = target.path.last().map(name_of).unwrap_or_default();
                let message = format!("cursor variable \"{name}\" is null");
                Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
            }
        }
    }

    /// OPEN; returns the name of the portal.
    pub(super) fn open_cursor(&mut self, open: &Open) -> Result<String> {
        let (scope, place) = self.variable(&open.cursor)?;
        let known = match &self.values[place] {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        };
        if let Some(name) = &known
            && self.session.kept_portal(name).is_ok()
        {
            let message = format!("cursor \"{name}\" already in use");
            return Err(Error::new(SqlState::DUPLICATE_CURSOR, message));
        }
        let (scroll, (columns, rows)) = match &open.source {
            OpenSource::Rows(rows) => (open.scroll, self.rows_of_source(rows)?),
            OpenSource::Bound(given) => {
                let bound = self.bound(&open.cursor, scope);
                let bound = bound.ok_or_else(|| unbound(&open.cursor, false))?;
                let rows = self.bound_rows(&open.cursor, &bound, given.as_deref())?;
                (bound.scroll, rows)
            }
        };
        let name = known.unwrap_or_else(|| self.session.unnamed_portal());
        self.session.open_rows(&name, (columns, rows), scroll)?;
        self.values[place] = Value::Text(name.clone());
        Ok(name)
    }

    fn rows_of_source(&mut self, rows: &RowSource) -> Result<(Columns, Vec<Vec<Value>>)> {
        match rows {
            RowSource::Execute(command) => self.rows_of_command(command),
            rows => self.rows_of(rows),
        }
    }

    /// The rows of a cursor's own query.
    fn bound_rows(
        &mut self,
        cursor: &Target,
        bound: &BoundCursor,
        given: Option<&[(Option<sqlparser::ast::Ident>, Expression)]>,
    ) -> Result<(Columns, Vec<Vec<Value>>)> {
        let mut values = Vec::new();
        for value in cursor_arguments(cursor, bound, given)? {
            values.push(self.value(value, None, of::VALUES)?);
        }
        let scope = FrameScope {
            label: cursor.path.last().map(name_of),
            variables: Vec::new(),
        };
        self.scope(scope, Vec::new(), |run| {
            for (declaration, (target, (data_type, value))) in
                (bound.arguments.iter()).zip(bound.targets.iter().zip(values))
            {
                run.declare(declaration)?;
                let columns = [(String::new(), data_type)];
                run.assign(std::slice::from_ref(target), &columns, Some(&[value]))?;
            }
            run.rows_of(&bound.rows)
        })
    }

    /// FETCH and MOVE.
    pub(super) fn cursor_step(&mut self, step: &CursorStep) -> Result<()> {
        let name = self.portal_of(&step.cursor)?;
        let direction = self.direction(&step.towards)?;
        let is_move = step.into.is_none();
        let taken = self.session.step_portal(&name, direction, is_move)?;
        if let Some(targets) = &step.into {
            let row = taken.rows.first().map(Vec::as_slice);
            self.assign(targets, &taken.columns, row)?;
        }
        self.found = taken.count > 0;
        self.row_count = i64::try_from(taken.count).unwrap_or(i64::MAX);
        Ok(())
    }

    fn direction(&mut self, towards: &Towards) -> Result<Direction> {
        let mut count = |count: &Expression| -> Result<i64> {
            match self.value(count, Some(DataType::Integer), of::STEP)?.1 {
                Value::Integer(count) => Ok(count.into()),
                _ => {
                    let message = "relative or absolute cursor position is null";
                    Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
                }
            }
        };
        Ok(match towards {
            Towards::Fixed(direction) => *direction,
            Towards::Absolute(number) => Direction::Absolute(count(number)?),
            Towards::Relative(number) => Direction::Relative(count(number)?),
            Towards::Forward(number) => Direction::Forward(count(number)?),
            Towards::Backward(number) => Direction::Forward(count(number)?.saturating_neg()),
        })
    }

    /// CLOSE.
    pub(super) fn close_cursor(&mut self, cursor: &Target) -> Result<()> {
        let name = self.portal_of(cursor)?;
        self.session.close(Some(&name)).map(drop)
    }

    /// A loop over the rows of a cursor, which it opens and closes.
    pub(super) fn for_cursor(&mut self, statement: &ForCursor) -> Result<Flow> {
        let (_, place) = self.variable(&statement.open.cursor)?;
        let was = self.values[place].clone();
        let name = self.open_cursor(&statement.open)?;
        let record = statement.record.path.last().map(name_of);
        let scope = FrameScope {
            label: statement.body.label.as_ref().map(name_of),
            variables: vec![(record.unwrap_or_default(), Kind::Record(None))],
        };
        let (flow, has_rows) = self.scope(scope, Vec::new(), |run| {
            let mut has_rows = false;
            loop {
                let taken = run
                    .session
                    .step_portal(&name, Direction::Forward(1), false)?;
                let row = taken.rows.first().map(Vec::as_slice);
                if row.is_none() {
                    return Ok((Flow::Next, has_rows));
                }
                has_rows = true;
                let record = std::slice::from_ref(&statement.record);
                run.assign(record, &taken.columns, row)?;
                if let Some(flow) = run.iteration(&statement.body)? {
                    return Ok((flow, has_rows));
                }
            }
        })?;
        self.session.forget_portal(&name);
        if was.is_null() {
            // Records may have got other shapes.
            let (_, place) = self.variable(&statement.open.cursor)?;
            self.values[place] = Value::Null;
        }
        self.found = has_rows;
        Ok(flow)
    }
}
