//! Statements on data, compiled to programs, and what their rows mean.

use kiln_engine::{Access, Catalog, Rows};
use kiln_platform::sync::Arc;
use kiln_procedure::ir::Step;
use kiln_procedure::{Program, ProgramBuilder};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::panics::caught;
use super::result::{Notice, ResultSet, StatementResult};
use crate::catalog::View;
use crate::compile::{
    ColumnMeta, Compiler, OutputColumn, Parameters, QueryOptions, SessionValue, SessionValues,
};
use crate::parse::{self, Statement};

/// What a program's rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Those of a query.
    Query,
    /// Those of RETURNING, after this command.
    Returning(&'static str),
    /// One row of one number: how many rows this command changed.
    Count(&'static str),
}

/// A compiled statement.
#[derive(Clone)]
pub(super) struct Prepared {
    pub program: Arc<Program>,
    pub shape: Shape,
    /// The types of its parameters.
    pub parameters: Arc<[DataType]>,
    /// The columns of the program's rows.
    pub columns: Arc<[ColumnMeta]>,
    /// What its role must be allowed to do.
    pub accesses: Arc<[Access]>,
    /// What the session gives it, as parameters behind its own.
    pub session_values: Arc<[SessionValue]>,
}

/// Compiles a query, INSERT, UPDATE or DELETE; the types that `declared` lacks of its parameters
/// `$1`, `$2`, … are inferred.
///
/// # Errors
/// What PostgreSQL reports when it analyses the statement; 0A000 for what is not supported.
pub(super) fn compile(
    catalog: &Catalog,
    statement: &Statement,
    declared: &[Option<DataType>],
) -> Result<Prepared> {
    let mut all = declared.to_vec();
    loop {
        let view = View::of(catalog);
        let own = declared.len();
        let mut prepared = caught(|| compile_on_data(&view, statement, own, &all))?;
        if prepared.session_values.len() == all.len() - own {
            prepared.accesses = view.into_accesses();
            return Ok(prepared);
        }
        let asked = prepared.session_values.iter();
        all.truncate(own);
        all.extend(asked.map(|value| Some(value.data_type())));
    }
}

fn compile_on_data(
    view: &View<'_>,
    statement: &Statement,
    own: usize,
    declared: &[Option<DataType>],
) -> Result<Prepared> {
    let builder = ProgramBuilder::of_parameters(name(statement), declared);
    let mut compiler = Compiler::new(builder, view);
    compiler.session_values = Some(SessionValues {
        own,
        reserved: declared.len() - own,
        asked: Vec::new(),
    });
    let parameters = compiler.infer_positional(declared);
    let mut emit = |compiler: &mut Compiler<'_>, columns: &[OutputColumn]| {
        let row = columns.iter().map(|column| column.register).collect();
        compiler.builder.push(Step::Emit { row });
        Ok(())
    };
    let behind_with = match statement {
        Statement::Query(query) => parse::change_of(query),
        _ => None,
    };
    if let (Statement::Query(query), None) = (statement, behind_with) {
        let columns = compiler.query(query, QueryOptions::default(), &mut emit)?;
        return finish(compiler, Shape::Query, columns, &parameters);
    }
    let (command, returns) = match statement {
        Statement::Insert(insert) => ("INSERT 0", insert.returning.is_some()),
        Statement::Update(update) => ("UPDATE", update.returning.is_some()),
        Statement::Delete(delete) => ("DELETE", delete.returning.is_some()),
        Statement::Merge(_) => ("MERGE", false),
        Statement::Query(_) if let Some(change) = behind_with => change,
        _ => return Err(Error::internal("only statements on data are compiled")),
    };
    let counter = (!returns).then(|| compiler.builder.register(DataType::BigInt));
    let sink: Option<crate::compile::Sink<'_, '_>> = if returns { Some(&mut emit) } else { None };
    let columns = match statement {
        Statement::Insert(insert) => compiler.insert(insert, sink, counter)?,
        Statement::Update(update) => compiler.update(update, sink, counter)?,
        Statement::Delete(delete) => compiler.delete(delete, sink, counter)?,
        Statement::Merge(merge) => {
            compiler.merge(merge, counter)?;
            Vec::new()
        }
        Statement::Query(query) => compiler.change_with(query, sink, counter)?,
        _ => Vec::new(),
    };
    let Some(counter) = counter else {
        return finish(compiler, Shape::Returning(command), columns, &parameters);
    };
    compiler.builder.push(Step::Emit {
        row: [counter].into(),
    });
    let count = ColumnMeta {
        name: "count".to_owned(),
        data_type: DataType::BigInt,
        origin: None,
    };
    finish(compiler, Shape::Count(command), vec![count], &parameters)
}

fn finish(
    mut compiler: Compiler<'_>,
    shape: Shape,
    columns: Vec<ColumnMeta>,
    parameters: &Parameters,
) -> Result<Prepared> {
    #[cfg(test)]
    super::panics::planted::reach(super::panics::planted::Step::Finish);
    let mut types = parameters.types()?;
    let session_values = compiler.session_values.take().unwrap_or_default();
    types.truncate(session_values.own);
    parameters.tell(&mut compiler.builder);
    compiler.end()?;
    if compiler.builder.is_too_large() {
        return Err(Error::new(
            SqlState::STATEMENT_TOO_COMPLEX,
            "the statement is too large",
        ));
    }
    let named = columns.iter();
    let named = named.map(|column| (column.name.clone(), column.data_type.clone()));
    compiler.builder.returns(named.collect());
    Ok(Prepared {
        program: Arc::new(compiler.builder.finish()),
        shape,
        parameters: types.into(),
        columns: columns.into(),
        accesses: Arc::default(),
        session_values: session_values.asked.into(),
    })
}

fn name(statement: &Statement) -> &'static str {
    match statement {
        Statement::Insert(_) => "INSERT",
        Statement::Update(_) => "UPDATE",
        Statement::Delete(_) => "DELETE",
        Statement::Merge(_) => "MERGE",
        _ => "SELECT",
    }
}

/// What a compiled statement's rows say.
pub(super) fn result_of(shape: Shape, rows: Rows) -> StatementResult {
    let notices = notices_of(&rows);
    match shape {
        Shape::Query => {
            let result = ResultSet::from(rows);
            let tag = format!("SELECT {}", result.len());
            StatementResult {
                tag,
                result: Some(result),
                notices,
            }
        }
        Shape::Returning(command) => {
            let result = ResultSet::from(rows);
            let tag = format!("{command} {}", result.len());
            StatementResult {
                tag,
                result: Some(result),
                notices,
            }
        }
        Shape::Count(command) => {
            let count = match rows.values().first().and_then(|row| row.first()) {
                Some(Value::BigInt(count)) => *count,
                _ => 0,
            };
            StatementResult {
                tag: format!("{command} {count}"),
                result: None,
                notices,
            }
        }
    }
}

/// What the rows of a CALL say.
pub(super) fn result_of_call(rows: Rows) -> StatementResult {
    let notices = notices_of(&rows);
    let result = (!rows.columns().is_empty()).then(|| ResultSet::from(rows));
    StatementResult {
        result,
        notices,
        ..StatementResult::of_tag("CALL")
    }
}

/// The notices that came with some rows.
pub(super) fn notices_of(rows: &Rows) -> Vec<Notice> {
    let notices = rows.notices().iter();
    notices
        .map(|notice| Notice::of_level(notice.level, notice.message.clone()))
        .collect()
}

impl From<Rows> for ResultSet {
    fn from(rows: Rows) -> ResultSet {
        ResultSet {
            columns: rows.columns().to_vec(),
            rows: rows.into_values(),
        }
    }
}
