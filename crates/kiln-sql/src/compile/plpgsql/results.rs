//! What comes back: RETURN, RETURN NEXT, RETURN QUERY, and the end of a body.

use kiln_platform::sync::Arc;
use kiln_procedure::ir::{BufferId, Instruction, Reg, Step};
use kiln_storage::error::{Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Expr, Value as Literal};

use super::super::bound::ResultKind;
use super::super::coerce::CastContext;
use super::super::query::{OutputColumn, QueryOptions};
use super::super::scope::Field;
use super::super::types::same_base;
use super::super::{Compiler, Position, Typed, fail, unsupported};
use super::at;
use super::body::{Body, creation_error};
use super::piece::stepped_only;
use super::trigger::Returned;
use super::variables::{failure, refuse, set_boolean, set_null};
use crate::parse::plpgsql::RowSource;
use crate::parse::{self, Expression, RoutineKind, Statement};

/// Where the rows of a body go, and what ends it.
#[derive(Clone, Debug)]
pub(super) enum Destination {
    /// They are the program's rows, and RETURN ends the program.
    Program,
    /// The body is compiled within another: its one row goes to registers, and RETURN leaves the
    /// IR loop that has `outside` loops around it.
    Registers { outside: usize, row: Vec<Reg> },
    /// The body is that of a trigger function: the row of a BEFORE trigger goes to registers.
    Trigger {
        outside: usize,
        returned: Option<Returned>,
    },
    /// As that of registers, but its rows are collected.
    Buffer { outside: usize, buffer: BufferId },
}

impl Body {
    /// Hands out a row of the result, whose registers have the result's types. What a variable of a
    /// result's domain has was checked when it was assigned.
    ///
    /// # Errors
    /// Those of the checks of the result's domains.
    pub(super) fn give(&mut self, c: &mut Compiler<'_>, row: &[Reg]) -> Result<()> {
        for (register, domain) in row.iter().zip(&self.routine.result_domains) {
            if let Some(domain) = domain
                && !c
                    .domain_of_register(*register)
                    .is_some_and(|known| Arc::ptr_eq(known, domain))
            {
                c.check_domain(*register, domain)?;
            }
        }
        self.hand_out(c, row);
        Ok(())
    }

    /// As [`Body::give`], of a row whose values are not looked at.
    pub(super) fn hand_out(&mut self, c: &mut Compiler<'_>, row: &[Reg]) {
        match &self.destination {
            Destination::Program => c.builder.push(Step::Emit { row: row.into() }),
            // Its rows are those of `return_row`.
            Destination::Trigger { .. } => {}
            Destination::Registers { row: targets, .. } => {
                for (target, source) in targets.iter().zip(row) {
                    let (target, source) = (*target, *source);
                    c.builder.scalar(Instruction::Move { target, source });
                }
            }
            Destination::Buffer { buffer, .. } => {
                c.builder.push(Step::BufferPush {
                    buffer: *buffer,
                    row: row.into(),
                });
            }
        }
    }

    /// Ends the body.
    pub(super) fn leave(&mut self, c: &mut Compiler<'_>) {
        let step = match &self.destination {
            Destination::Program => Step::Return,
            Destination::Registers { outside, .. }
            | Destination::Trigger { outside, .. }
            | Destination::Buffer { outside, .. } => Step::Exit {
                depth: c.relative(*outside),
            },
        };
        c.builder.push(step);
    }

    /// The row of output parameters.
    fn output_row(&self) -> Vec<Reg> {
        self.outputs.iter().map(|slot| slot.register).collect()
    }

    /// What happens when control reaches the end of the body.
    pub(super) fn end(&mut self, c: &mut Compiler<'_>, position: Position) -> Result<()> {
        match &self.routine.result {
            ResultKind::Void | ResultKind::SetOfScalar(_) | ResultKind::SetOfRows(_) => {}
            ResultKind::Trigger => Self::end_of_trigger(c, position),
            ResultKind::Scalar(_) | ResultKind::Row(_) if self.routine.has_outputs() => {
                let row = self.output_row();
                self.give(c, &row)?;
            }
            ResultKind::Scalar(_) | ResultKind::Row(_) => {
                let error = fail(
                    SqlState::FUNCTION_EXECUTED_NO_RETURN_STATEMENT,
                    "control reached end of function without RETURN",
                    position,
                );
                c.builder.push(Step::Raise {
                    error: Box::new(failure(&error)),
                });
            }
        }
        Ok(())
    }

    /// `RETURN [value]`.
    pub(super) fn return_value(
        &mut self,
        c: &mut Compiler<'_>,
        value: Option<&Expression>,
        position: Position,
    ) -> Result<()> {
        if self.routine.result == ResultKind::Trigger {
            return self.return_row(c, value, position);
        }
        let mismatch = SqlState::DATATYPE_MISMATCH;
        let result = &self.routine.result;
        match (result, value) {
            (_, Some(_)) if result.is_set() => {
                let message = "RETURN cannot have a parameter in function returning set";
                let error = creation_error(c, mismatch, message, position);
                return Err(error.with_hint("Use RETURN NEXT or RETURN QUERY."));
            }
            (ResultKind::Void, Some(_)) if self.routine.kind == RoutineKind::Procedure => {
                let message = "RETURN cannot have a parameter in a procedure";
                return Err(creation_error(c, SqlState::SYNTAX_ERROR, message, position));
            }
            (ResultKind::Void, Some(_)) => {
                let message = "RETURN cannot have a parameter in function returning void";
                return Err(creation_error(c, mismatch, message, position));
            }
            (_, Some(_)) if self.routine.has_outputs() => {
                let message = "RETURN cannot have a parameter in function with OUT parameters";
                return Err(creation_error(c, mismatch, message, position));
            }
            (ResultKind::Scalar(data_type), Some(value)) => {
                let data_type = data_type.clone();
                if let Destination::Registers { row, .. } = &self.destination
                    && let [target] = row.as_slice()
                {
                    let target = *target;
                    c.expression_into(&value.expr, target, &data_type, CastContext::Variable)?;
                } else {
                    let context = CastContext::Variable;
                    let register = c.expression_as(&value.expr, &data_type, context)?;
                    self.give(c, &[register])?;
                }
            }
            (ResultKind::Row(columns), Some(value)) => {
                let columns = columns.clone();
                let row = self.record_row(c, value, &columns, "RETURN")?;
                self.give(c, &row)?;
            }
            (ResultKind::Void, None) => {}
            (result, None) if result.is_set() => {}
            (_, None) if self.routine.has_outputs() => {
                let row = self.output_row();
                self.give(c, &row)?;
            }
            (_, None) => {
                let message = "missing expression: RETURN needs a value here";
                return Err(creation_error(c, SqlState::SYNTAX_ERROR, message, position));
            }
            (_, Some(value)) => {
                return Err(refuse(c, unsupported("this RETURN", at(value.position))));
            }
        }
        self.leave(c);
        Ok(())
    }

    /// The fields of the record variable that `value` names, as a row of the result.
    fn record_row(
        &mut self,
        c: &mut Compiler<'_>,
        value: &Expression,
        columns: &[(String, DataType)],
        statement: &str,
    ) -> Result<Vec<Reg>> {
        let position = at(value.position);
        if matches!(&value.expr, Expr::Value(it) if matches!(it.value, Literal::Null)) {
            let null = |(_, data_type): &(String, DataType)| {
                c.builder.constant(data_type.clone(), Value::Null)
            };
            return Ok(columns.iter().map(null).collect());
        }
        let fields = match self.named_fields(c, &value.expr, position)? {
            Some(fields) => fields,
            None => match c.row_columns(&value.expr)? {
                Some(columns) => {
                    let fields = columns.into_iter().map(|column| Field {
                        name: column.name,
                        register: column.register,
                        data_type: column.data_type,
                    });
                    fields.collect()
                }
                None => {
                    let message = format!(
                        "cannot return non-composite value from function returning composite type \
                         by {statement}"
                    );
                    return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
                }
            },
        };
        let fits = fields.len() == columns.len()
            && fields
                .iter()
                .zip(columns)
                .all(|(field, (_, data_type))| same_base(&field.data_type, data_type));
        if !fits {
            let message = format!("wrong record type supplied in {statement}");
            return Err(fail(SqlState::DATATYPE_MISMATCH, message, position));
        }
        let mut row = Vec::with_capacity(fields.len());
        for (field, (_, data_type)) in fields.iter().zip(columns) {
            let typed = Typed {
                register: field.register,
                data_type: field.data_type.clone(),
            };
            row.push(c.cast(&typed, data_type, CastContext::Variable, position)?);
        }
        Ok(row)
    }

    fn require_set(
        &mut self,
        c: &mut Compiler<'_>,
        statement: &str,
        position: Position,
    ) -> Result<()> {
        if self.routine.result.is_set() {
            return Ok(());
        }
        let message = format!("cannot use {statement} in a non-SETOF function");
        Err(creation_error(
            c,
            SqlState::DATATYPE_MISMATCH,
            &message,
            position,
        ))
    }

    /// `RETURN NEXT [value]`.
    pub(super) fn return_next(
        &mut self,
        c: &mut Compiler<'_>,
        value: Option<&Expression>,
        position: Position,
    ) -> Result<()> {
        self.require_set(c, "RETURN NEXT", position)?;
        let row = match (value, self.routine.has_outputs()) {
            (None, true) => self.output_row(),
            (None, false) => {
                let message = "missing expression: RETURN NEXT needs a value here";
                return Err(creation_error(c, SqlState::SYNTAX_ERROR, message, position));
            }
            (Some(_), true) => {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                return Err(creation_error(
                    c,
                    SqlState::DATATYPE_MISMATCH,
                    message,
                    position,
                ));
            }
            (Some(value), false) => match &self.routine.result {
                ResultKind::SetOfRows(columns) => {
                    let columns = columns.clone();
                    self.record_row(c, value, &columns, "RETURN NEXT")?
                }
                result => {
                    let types = result.types();
                    let Some(data_type) = types.first() else {
                        return Ok(());
                    };
                    vec![c.expression_as(&value.expr, data_type, CastContext::Variable)?]
                }
            },
        };
        self.give(c, &row)?;
        Ok(())
    }

    /// `RETURN QUERY rows`.
    pub(super) fn return_query(
        &mut self,
        c: &mut Compiler<'_>,
        rows: &RowSource,
        found: bool,
        position: Position,
    ) -> Result<()> {
        self.require_set(c, "RETURN QUERY", position)?;
        let seen = self.seen(c, rows, found);
        if let Some(seen) = seen {
            set_boolean(c, seen, false);
        }
        self.clear_count(c);
        let types = self.routine.result.types();
        let sink = &mut |body: &mut Self, c: &mut Compiler<'_>, columns: &[OutputColumn]| {
            let row = result_row(c, columns, &types, position)?;
            body.give(c, &row)?;
            body.count(c);
            if let Some(seen) = seen {
                set_boolean(c, seen, true);
            }
            Ok(())
        };
        match rows {
            RowSource::Query(query) => {
                c.query(query, QueryOptions::default(), &mut |c, columns| {
                    sink(self, c, columns)
                })?;
            }
            RowSource::Data(statement) => {
                self.run_data(
                    c,
                    statement,
                    None,
                    Some(&mut |body, c, columns| sink(body, c, columns)),
                )?;
            }
            RowSource::Execute(_) => return Err(refuse(c, stepped_only(position))),
        }
        self.set_found(c, seen);
        Ok(())
    }

    /// The statements of a body in LANGUAGE sql: the last one's rows are the result.
    pub(super) fn sql_statements(
        &mut self,
        c: &mut Compiler<'_>,
        statements: &[(parse::Position, Statement)],
    ) -> Result<()> {
        for (index, (position, statement)) in statements.iter().enumerate() {
            let is_last = index + 1 == statements.len();
            let gives = is_last && self.routine.result != ResultKind::Void;
            let types = self.routine.result.types();
            let is_set = self.routine.result.is_set();
            let position = at(*position);
            let outer = c.loop_depth();
            // Without SETOF the first row is the result.
            let given = c.builder.register(DataType::Boolean);
            let is_null_before = match &self.destination {
                Destination::Registers { row, .. } if gives => {
                    set_null(c, row.iter().copied());
                    true
                }
                _ => false,
            };
            if gives && !is_set {
                set_boolean(c, given, false);
            }
            let sink = &mut |body: &mut Self,
                             c: &mut Compiler<'_>,
                             columns: &[OutputColumn],
                             may_leave: bool|
             -> Result<()> {
                if !gives {
                    return Ok(());
                }
                let row = sql_row(c, columns, &types, position)?;
                if is_set {
                    body.give(c, &row)?;
                    return Ok(());
                }
                if may_leave {
                    body.give(c, &row)?;
                    set_boolean(c, given, true);
                    if c.loop_depth() > outer {
                        let depth = c.relative(outer);
                        c.builder.push(Step::Exit { depth });
                    }
                    return Ok(());
                }
                c.open();
                body.give(c, &row)?;
                set_boolean(c, given, true);
                let otherwise = c.close();
                c.builder.push(Step::If {
                    condition: given,
                    then: Vec::new(),
                    otherwise,
                });
                Ok(())
            };
            match statement {
                Statement::Query(query) => {
                    c.query(query, QueryOptions::default(), &mut |c, columns| {
                        sink(self, c, columns, true)
                    })?;
                }
                Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Merge(_) => {
                    let has_rows = statement_returns(statement);
                    if gives && !has_rows {
                        return Err(no_result(position));
                    }
                    let mut row_sink =
                        |body: &mut Self, c: &mut Compiler<'_>, columns: &[OutputColumn]| {
                            sink(body, c, columns, false)
                        };
                    let row_sink: Option<super::rows::BodySink<'_, '_>> =
                        if has_rows { Some(&mut row_sink) } else { None };
                    self.run_data(c, statement, None, row_sink)?;
                }
                Statement::Call(call) if !gives => self.call(c, call)?,
                _ if gives => return Err(no_result(position)),
                _ => {
                    let error = unsupported("this statement in a function", position);
                    return Err(error);
                }
            }
            if gives && !is_set && !is_null_before {
                c.open();
                let row: Vec<Reg> = self
                    .routine
                    .result
                    .types()
                    .into_iter()
                    .map(|data_type| c.builder.constant(data_type, Value::Null))
                    .collect();
                self.give(c, &row)?;
                let otherwise = c.close();
                c.builder.push(Step::If {
                    condition: given,
                    then: Vec::new(),
                    otherwise,
                });
            }
        }
        if statements.is_empty() && self.routine.result != ResultKind::Void {
            return Err(no_result(None));
        }
        c.pop_variables();
        self.scopes.pop();
        Ok(())
    }
}

fn statement_returns(statement: &Statement) -> bool {
    match statement {
        Statement::Insert(insert) => insert.returning.is_some(),
        Statement::Update(update) => update.returning.is_some(),
        Statement::Delete(delete) => delete.returning.is_some(),
        _ => false,
    }
}

fn no_result(position: Position) -> kiln_storage::error::Error {
    fail(
        SqlState::INVALID_FUNCTION_DEFINITION,
        "return type mismatch in function declared to return a value",
        position,
    )
    .with_detail("Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
}

/// The columns of RETURN QUERY, which must have the types of the result.
fn result_row(
    c: &mut Compiler<'_>,
    columns: &[OutputColumn],
    types: &[DataType],
    position: Position,
) -> Result<Vec<Reg>> {
    let mismatch = |detail: String| {
        let message = "structure of query does not match function result type";
        fail(SqlState::DATATYPE_MISMATCH, message, position).with_detail(detail)
    };
    if let ([column], [_, _, ..]) = (columns, types)
        && let DataType::Row(of) = &column.data_type
    {
        let columns = c.columns_of_value(column.register, of);
        return result_row(c, &columns, types, position);
    }
    if columns.len() != types.len() {
        return Err(mismatch(format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            columns.len(),
            types.len()
        )));
    }
    let mut row = Vec::with_capacity(columns.len());
    for (index, (column, data_type)) in columns.iter().zip(types).enumerate() {
        if !same_base(&column.data_type, data_type) {
            return Err(mismatch(format!(
                "Returned type {} does not match expected type {} in column {}.",
                column.data_type.base_name(),
                data_type.base_name(),
                index + 1
            )));
        }
        let typed = Typed {
            register: column.register,
            data_type: column.data_type.clone(),
        };
        row.push(c.cast(&typed, data_type, CastContext::Variable, position)?);
    }
    Ok(row)
}

/// The columns of the last statement of a body in LANGUAGE sql.
fn sql_row(
    c: &mut Compiler<'_>,
    columns: &[OutputColumn],
    types: &[DataType],
    position: Position,
) -> Result<Vec<Reg>> {
    if let ([column], [_, _, ..]) = (columns, types)
        && let DataType::Row(of) = &column.data_type
    {
        let columns = c.columns_of_value(column.register, of);
        return sql_row(c, &columns, types, position);
    }
    if columns.len() != types.len() {
        let detail = match columns.len() > types.len() {
            true => "Final statement returns too many columns.",
            false => "Final statement returns too few columns.",
        };
        let message = "return type mismatch in function declared to return another row";
        let state = SqlState::INVALID_FUNCTION_DEFINITION;
        return Err(fail(state, message, position).with_detail(detail));
    }
    let mut row = Vec::with_capacity(columns.len());
    for (column, data_type) in columns.iter().zip(types) {
        let typed = Typed {
            register: column.register,
            data_type: column.data_type.clone(),
        };
        row.push(c.cast(&typed, data_type, CastContext::Assignment, position)?);
    }
    Ok(row)
}
