//! Blocks and their handlers, conditionals and loops, run step by step.

use kiln_procedure::ir::DiagnosticItem;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{BinaryOperator, Expr, Ident};

use super::Run;
use super::piece::{Columns, of};
use crate::compile::name_of;
use crate::compile::plpgsql::{FrameScope, Kind, runs_stepped};
use crate::parse::Expression;
use crate::parse::plpgsql::{
    Block, CaseArm, ExitKind, ForRange, Loop, RaiseMessage, RowSource, Statement, StatementKind,
    Target,
};

/// Where a statement leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next one.
    Next,
    /// Behind the loop or block with this label, or the innermost loop.
    Exit(Option<String>),
    /// To the next round of the loop with this label, or of the innermost one.
    Continue(Option<String>),
    /// To the end of the body.
    Return,
}

/// The name under which CASE keeps its operand, as in PostgreSQL.
const OPERAND: &str = "__Case__Variable__";

impl Run<'_> {
    fn list(&mut self, list: &[Statement]) -> Result<Flow> {
        for statement in list {
            match self.statement(statement)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> Result<Flow> {
        self.session.session.check_limits()?;
        if !self.is_run_stepped(statement) {
            return self.statement_as_a_piece(statement).map(|()| Flow::Next);
        }
        self.deeper(|run| run.step(statement))
    }

    /// Whether a statement is run in parts: also where an error in the middle of it is handled, as
    /// variables keep what was assigned to them until then.
    fn is_run_stepped(&mut self, statement: &Statement) -> bool {
        let is_compound = matches!(
            statement.kind,
            StatementKind::Block(_)
                | StatementKind::If { .. }
                | StatementKind::Case { .. }
                | StatementKind::Loop(_)
                | StatementKind::While { .. }
                | StatementKind::ForRange(_)
                | StatementKind::ForQuery { .. }
                | StatementKind::ForEach { .. }
                | StatementKind::ForCursor(_)
        );
        if is_compound && self.protected > 0 {
            return true;
        }
        let run = std::cell::RefCell::new(self);
        runs_stepped(statement, &|call| run.borrow_mut().callee(call).is_some())
    }

    fn step(&mut self, statement: &Statement) -> Result<Flow> {
        match &statement.kind {
            StatementKind::Block(block) => return self.block(block),
            StatementKind::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    if self.holds(condition)? {
                        return self.list(body);
                    }
                }
                return self.list(otherwise);
            }
            StatementKind::Case {
                operand,
                arms,
                otherwise,
            } => return self.case(operand.as_ref(), arms, otherwise.as_deref()),
            StatementKind::Loop(body) => {
                return loop {
                    if let Some(flow) = self.iteration(body)? {
                        break Ok(flow);
                    }
                };
            }
            StatementKind::While { condition, body } => {
                while self.holds(condition)? {
                    if let Some(flow) = self.iteration(body)? {
                        return Ok(flow);
                    }
                }
            }
            StatementKind::ForRange(range) => return self.for_range(range),
            StatementKind::ForQuery {
                targets,
                rows,
                body,
            } => {
                let (columns, rows) = match rows {
                    RowSource::Execute(command) => self.rows_of_command(command)?,
                    rows => self.rows_of(rows)?,
                };
                return self.for_rows(targets, &columns, rows, body);
            }
            StatementKind::ForEach {
                target,
                array,
                body,
            } => {
                let (data_type, value) = self.value(array, None, of::VALUES)?;
                let (columns, rows) = elements(data_type, value)?;
                return self.for_rows(std::slice::from_ref(target), &columns, rows, body);
            }
            StatementKind::Exit {
                kind,
                label,
                condition,
            } => {
                let leaves = match condition {
                    Some(condition) => self.holds(condition)?,
                    None => true,
                };
                let label = label.as_ref().map(name_of);
                return Ok(match (leaves, kind) {
                    (false, _) => Flow::Next,
                    (true, ExitKind::Exit) => Flow::Exit(label),
                    (true, ExitKind::Continue) => Flow::Continue(label),
                });
            }
            StatementKind::Return(_) => {
                self.give(statement)?;
                return Ok(Flow::Return);
            }
            StatementKind::ReturnNext(_) => {
                self.give(statement)?;
            }
            StatementKind::ReturnQuery(rows) => {
                let count = match rows {
                    RowSource::Execute(command) => self.give_command(command)?,
                    _ => self.give(statement)?,
                };
                self.found = count > 0;
                self.row_count = i64::try_from(count).unwrap_or(i64::MAX);
            }
            StatementKind::Execute { command, into } => self.execute(command, into.as_ref())?,
            StatementKind::Utility(text) => {
                self.callees.clear();
                self.run_command(text, &[], &[])?;
            }
            StatementKind::Open(open) => {
                self.open_cursor(open)?;
            }
            StatementKind::CursorStep(step) => self.cursor_step(step)?,
            StatementKind::CloseCursor(cursor) => self.close_cursor(cursor)?,
            StatementKind::ForCursor(it) => return self.for_cursor(it),
            StatementKind::EndTransaction { commits } => self.end_transaction(*commits)?,
            StatementKind::Call(call) => match self.callee(call) {
                Some(callee) => self.call(call, &callee)?,
                None => self.statement_as_a_piece(statement)?,
            },
            StatementKind::Raise(raise)
                if raise.message == RaiseMessage::Again && !self.caught.is_empty() =>
            {
                let caught = self.caught.last().cloned();
                return caught.map_or(Ok(Flow::Next), Err);
            }
            StatementKind::GetStacked(items) => {
                let Some(error) = self.caught.last().cloned() else {
                    return self.statement_as_a_piece(statement).map(|()| Flow::Next);
                };
                for (target, item) in items {
                    let text = Value::from(diagnosed(&error, *item));
                    let columns = [(String::new(), DataType::Text)];
                    self.assign(std::slice::from_ref(target), &columns, Some(&[text]))?;
                }
            }
            _ => self.statement_as_a_piece(statement)?,
        }
        Ok(Flow::Next)
    }

    /// Opens a scope for what `run` does.
    pub(super) fn scope<T>(
        &mut self,
        scope: FrameScope,
        values: Vec<Value>,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let depth = self.frame.scopes.len();
        self.frame.scopes.push(scope);
        self.values.extend(values);
        let result = run(self);
        self.close_scopes(depth);
        result
    }

    /// Forgets the variables of all scopes but the first so many.
    fn close_scopes(&mut self, depth: usize) {
        self.forget_cursors(depth);
        self.frame.scopes.truncate(depth);
        let variables = self.frame.scopes.iter().flat_map(|scope| &scope.variables);
        let values = variables.map(|(_, kind)| kind.types().len()).sum();
        self.values.truncate(values);
    }

    pub(super) fn block(&mut self, block: &Block) -> Result<Flow> {
        let label = block.label.as_ref().map(name_of);
        let scope = FrameScope {
            label: label.clone(),
            variables: Vec::new(),
        };
        let flow = self.scope(scope, Vec::new(), |run| {
            for declaration in &block.declarations {
                run.declare(declaration)?;
                run.know_cursor(declaration);
            }
            match block.handlers.is_empty() {
                true => run.list(&block.body),
                false => run.protected(block),
            }
        })?;
        Ok(match flow {
            Flow::Exit(Some(left)) if Some(&left) == label.as_ref() => Flow::Next,
            flow => flow,
        })
    }

    /// The statements of a block with handlers. A savepoint is where its error leads back to;
    /// variables stay as they are.
    fn protected(&mut self, block: &Block) -> Result<Flow> {
        let name = format!("\u{1}{}", self.session.stepped_depth);
        let depth = self.frame.scopes.len();
        self.session.set_savepoint(&name)?;
        self.protected += 1;
        let ran = self.list(&block.body);
        self.protected -= 1;
        let error = match ran {
            Ok(flow) => {
                self.session.release_savepoint(&name)?;
                return Ok(flow);
            }
            Err(error) => error,
        };
        let mut handlers = block.handlers.iter();
        let handler = handlers.find(|handler| {
            let mut conditions = handler.conditions.iter();
            conditions.any(|condition| condition.catches(error.state()))
        });
        // A transaction that has lost to others is over.
        let Some(handler) = handler.filter(|_| !self.session.has_lost()) else {
            return Err(error);
        };
        self.close_scopes(depth);
        self.session.roll_back_to(&name)?;
        self.session.release_savepoint(&name)?;
        let texts = [
            error.state().as_str().to_owned(),
            error.message().to_owned(),
        ];
        let scope = FrameScope {
            label: None,
            variables: ["sqlstate", "sqlerrm"]
                .map(|name| (name.to_owned(), text_constant()))
                .into(),
        };
        self.caught.push(error);
        let result = self.scope(scope, texts.map(Value::from).into(), |run| {
            run.list(&handler.body)
        });
        self.caught.pop();
        result
    }

    fn case(
        &mut self,
        operand: Option<&Expression>,
        arms: &[CaseArm],
        otherwise: Option<&[Statement]>,
    ) -> Result<Flow> {
        let Some(operand) = operand else {
            return self.arms(arms, otherwise, Self::holds);
        };
        let (data_type, value) = self.value(operand, None, of::VALUES)?;
        let kind = Kind::Scalar {
            data_type,
            domain: None,
            constant: true,
            not_null: false,
        };
        let scope = FrameScope {
            label: None,
            variables: vec![(OPERAND.to_owned(), kind)],
        };
        self.scope(scope, vec![value], |run| {
            run.arms(arms, otherwise, |run, value| run.is_operand(value))
        })
    }

    fn arms(
        &mut self,
        arms: &[CaseArm],
        otherwise: Option<&[Statement]>,
        mut takes: impl FnMut(&mut Self, &Expression) -> Result<bool>,
    ) -> Result<Flow> {
        for arm in arms {
            for value in &arm.values {
                if takes(self, value)? {
                    return self.list(&arm.body);
                }
            }
        }
        match otherwise {
            Some(otherwise) => self.list(otherwise),
            None => Err(Error::new(SqlState::CASE_NOT_FOUND, "case not found")
                .with_hint("CASE statement is missing ELSE part.")),
        }
    }

    /// Whether the operand of the CASE around it equals a value.
    fn is_operand(&mut self, value: &Expression) -> Result<bool> {
        self.holds_of(value, || Expression {
            position: value.position,
            expr: Expr::BinaryOp {
                left: Box::new(Expr::Identifier(Ident::with_quote('"', OPERAND))),
                op: BinaryOperator::Eq,
                right: Box::new(Expr::Nested(Box::new(value.expr.clone()))),
            },
        })
    }

    /// Runs a loop's statements once; returns where they lead, unless that is the next round.
    pub(super) fn iteration(&mut self, body: &Loop) -> Result<Option<Flow>> {
        self.session.session.check_limits()?;
        let label = body.label.as_ref().map(name_of);
        let is_own = |named: &Option<String>| named.is_none() || *named == label;
        Ok(match self.list(&body.body)? {
            Flow::Next => None,
            Flow::Continue(named) if is_own(&named) => None,
            Flow::Exit(named) if is_own(&named) => Some(Flow::Next),
            flow => Some(flow),
        })
    }

    fn for_rows(
        &mut self,
        targets: &[Target],
        columns: &Columns,
        rows: Vec<Vec<Value>>,
        body: &Loop,
    ) -> Result<Flow> {
        let has_rows = !rows.is_empty();
        if !has_rows {
            self.assign(targets, columns, None)?;
        }
        for row in rows {
            self.assign(targets, columns, Some(&row))?;
            if let Some(flow) = self.iteration(body)? {
                self.found = true;
                return Ok(flow);
            }
        }
        self.found = has_rows;
        Ok(Flow::Next)
    }

    fn for_range(&mut self, range: &ForRange) -> Result<Flow> {
        let mut bound = |expression: &Expression, what: &str| -> Result<i32> {
            match self.value(expression, Some(DataType::Integer), of::STEP)?.1 {
                Value::Integer(value) => Ok(value),
                _ => {
                    let message = format!("{what} of FOR loop cannot be null");
                    Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
                }
            }
        };
        let from = bound(&range.from, "lower bound")?;
        let to = bound(&range.to, "upper bound")?;
        let step = match &range.step {
            Some(step) => bound(step, "BY value")?,
            None => 1,
        };
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let step = if range.reverse { -step } else { step };
        let kind = Kind::Scalar {
            data_type: DataType::Integer,
            domain: None,
            constant: false,
            not_null: false,
        };
        let scope = FrameScope {
            label: range.body.label.as_ref().map(name_of),
            variables: vec![(name_of(&range.variable), kind)],
        };
        let place = self.values.len();
        self.scope(scope, vec![Value::Null], |run| {
            let (mut next, mut iterated) = (Some(from), false);
            while let Some(value) = next
                && (if range.reverse {
                    value >= to
                } else {
                    value <= to
                })
            {
                iterated = true;
                run.values[place] = Value::Integer(value);
                if let Some(flow) = run.iteration(&range.body)? {
                    run.found = true;
                    return Ok(flow);
                }
                next = value.checked_add(step);
            }
            run.found = iterated;
            Ok(Flow::Next)
        })
    }
}

fn text_constant() -> Kind {
    Kind::Scalar {
        data_type: DataType::Text,
        domain: None,
        constant: true,
        not_null: false,
    }
}

/// The elements of an array, as rows of one column.
fn elements(data_type: DataType, value: Value) -> Result<(Columns, Vec<Vec<Value>>)> {
    let mut element = match data_type {
        DataType::Array(element) => *element,
        other => {
            let message = format!(
                "FOREACH expression must yield an array, not type {}",
                other.base_name()
            );
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
    };
    let mut values = match value {
        Value::Array(values) => values,
        _ => {
            let message = "FOREACH expression must not be null";
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
    };
    while let DataType::Array(inner) = element {
        element = *inner;
        let parts = values.into_iter().filter_map(|value| match value {
            Value::Array(values) => Some(values),
            _ => None,
        });
        values = parts.flatten().collect();
    }
    let rows = values.into_iter().map(|value| vec![value]);
    Ok((vec![(String::new(), element)], rows.collect()))
}

/// What GET STACKED DIAGNOSTICS says of an error.
fn diagnosed(error: &Error, item: DiagnosticItem) -> String {
    let (state, subject) = (error.state(), error.subject());
    let text = match item {
        DiagnosticItem::ReturnedSqlState => Some(state.as_str()),
        DiagnosticItem::MessageText => Some(error.message()),
        DiagnosticItem::Detail => error.detail(),
        DiagnosticItem::Hint => error.hint(),
        DiagnosticItem::Context => error.context(),
        DiagnosticItem::ColumnName => subject.column.as_deref(),
        DiagnosticItem::ConstraintName => subject.constraint.as_deref(),
        DiagnosticItem::DataTypeName => subject.data_type.as_deref(),
        DiagnosticItem::TableName => subject.table.as_deref(),
        DiagnosticItem::SchemaName => subject.schema.as_deref(),
    };
    text.unwrap_or_default().to_owned()
}
