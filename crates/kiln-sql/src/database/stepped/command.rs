//! EXECUTE, and calls that are all of a query.

use kiln_storage::error::{Error, Position, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query, Select, SelectItem,
    SetExpr, TableFactor,
};

use super::Run;
use super::piece::{Columns, of};
use crate::database::panics::{caught, of_statement};
use crate::database::prepared::StatementKind;
use crate::database::result::StatementResult;
use crate::parse::plpgsql::{Command, Into};
use crate::parse::{Call, CallArgument, Expression, Statement as Tree, script};

impl Run<'_> {
    /// Runs the commands of a text, all with the same parameters.
    pub(super) fn run_command(
        &mut self,
        text: &str,
        types: &[(String, DataType)],
        values: &[Value],
    ) -> Result<StatementResult> {
        let sources = caught(|| Ok(script(text)))?;
        let mut last = StatementResult::default();
        for source in &sources {
            let declared = types.iter().map(|(_, data_type)| Some(data_type.clone()));
            let statement = self.session.analyse(source, declared.collect())?;
            let refused = match (statement.kind(), statement.tree().map(|tree| &**tree)) {
                (StatementKind::TransactionControl | StatementKind::Savepoint, _) => {
                    Some("EXECUTE of transaction commands is not implemented")
                }
                (_, Some(Tree::Copy(_))) => Some("COPY in a body is not supported"),
                (_, Some(Tree::Vacuum(_))) => Some("VACUUM in a body is not supported"),
                (_, Some(Tree::Checkpoint)) => Some("CHECKPOINT in a body is not supported"),
                _ => None,
            };
            if let Some(refused) = refused {
                return Err(Error::unsupported(refused));
            }
            let portal = self.session.bind(&statement, values)?;
            let ran = self.session.dispatch(&statement, portal.values());
            last = ran.map_err(|error| of_statement(error, statement.text()))?;
            let notices = std::mem::take(&mut last.notices);
            self.keep(Vec::new(), notices)?;
        }
        Ok(last)
    }

    /// Computes the text and the values of a command, and runs it.
    fn command(&mut self, command: &Command) -> Result<StatementResult> {
        let (_, text) = self.value(&command.text, Some(DataType::Text), of::STEP)?;
        let Value::Text(text) = text else {
            let message = "query string argument of EXECUTE is null";
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let (types, values) = self.values(&command.using)?;
        self.callees.clear();
        self.run_command(&text, &types, &values)
    }

    /// EXECUTE.
    pub(super) fn execute(&mut self, command: &Command, into: Option<&Into>) -> Result<()> {
        let result = self.command(command)?;
        let count = result.row_count().unwrap_or(0);
        self.row_count = i64::try_from(count).unwrap_or(i64::MAX);
        let Some(into) = into else {
            return Ok(());
        };
        let Some(result) = result.result else {
            let message = "INTO used with a command that cannot return data";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        };
        if into.strict && result.rows.is_empty() {
            let message = "query returned no rows";
            return Err(Error::new(SqlState::NO_DATA_FOUND, message));
        }
        if into.strict && result.rows.len() > 1 {
            let message = "query returned more than one row";
            return Err(Error::new(SqlState::TOO_MANY_ROWS, message)
                .with_hint("Make sure the query returns a single row, or use LIMIT 1."));
        }
        let row = result.rows.first().map(Vec::as_slice);
        self.row_count = i64::from(row.is_some());
        self.assign(&into.targets, &result.columns, row)
    }

    /// The rows that a command gives to a loop.
    pub(super) fn rows_of_command(
        &mut self,
        command: &Command,
    ) -> Result<(Columns, Vec<Vec<Value>>)> {
        let result = self.command(command)?;
        match result.result {
            Some(result) => Ok((result.columns, result.rows)),
            None => {
                let message = format!("cannot open {} query as cursor", word_of(&result.tag));
                Err(Error::new(SqlState::INVALID_CURSOR_DEFINITION, message))
            }
        }
    }

    /// `RETURN QUERY EXECUTE`; returns the number of rows.
    pub(super) fn give_command(&mut self, command: &Command) -> Result<usize> {
        let (columns, rows) = self.rows_of_command(command)?;
        let types = self.routine.result.types();
        let given = columns
            .iter()
            .map(|(_, data_type)| data_type.without_modifier());
        if !given.eq(types.iter().map(DataType::without_modifier)) {
            let message = "structure of query does not match function result type";
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let count = rows.len();
        self.keep(rows, Vec::new())?;
        Ok(count)
    }
}

/// Where a call that a query was read as says to stand; the errors of its parts have places of
/// their own.
const START: Position = Position { line: 1, column: 1 };

/// The command's first word.
fn word_of(tag: &str) -> &str {
    tag.split(' ').next().unwrap_or_default()
}

/// The call that is all of a query: `SELECT f(…)` or `SELECT * FROM f(…)`.
pub(super) fn only_call(query: &Query) -> Option<Call> {
    let Query {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks,
        ..
    } = query
    else {
        return None;
    };
    let SetExpr::Select(select) = &**body else {
        return None;
    };
    let Select {
        distinct: None,
        projection,
        from,
        selection: None,
        group_by,
        having: None,
        ..
    } = &**select
    else {
        return None;
    };
    let is_grouped = !matches!(group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    if is_grouped || !locks.is_empty() {
        return None;
    }
    let (name, arguments) = match (projection.as_slice(), from.as_slice()) {
        ([SelectItem::UnnamedExpr(Expr::Function(function))], []) => {
            let FunctionArguments::List(list) = &function.args else {
                return None;
            };
            let is_plain = function.over.is_none()
                && function.filter.is_none()
                && list.duplicate_treatment.is_none()
                && list.clauses.is_empty();
            is_plain.then_some((&function.name, &list.args))?
        }
        ([SelectItem::Wildcard(_)], [table]) if table.joins.is_empty() => match &table.relation {
            TableFactor::Table {
                name,
                args: Some(arguments),
                alias: None,
                ..
            } => (name, &arguments.args),
            _ => return None,
        },
        _ => return None,
    };
    let mut given = Vec::new();
    for argument in arguments {
        let (name, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (None, value),
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                ..
            } => (Some(name.clone()), value),
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(value),
                ..
            } => (Some(name.clone()), value),
            _ => return None,
        };
        given.push(CallArgument {
            name,
            value: Expression {
                position: START,
                expr: value.clone(),
            },
        });
    }
    Some(Call {
        position: START,
        name: name.clone(),
        arguments: given,
    })
}
