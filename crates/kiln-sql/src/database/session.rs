//! Sessions: statements one after the other, transaction blocks included.

use std::time::Duration;

use kiln_engine::{Arguments, Catalog, Ended, IntoValues, Rows};
use kiln_platform::sync::Arc;
use kiln_procedure::Program;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Value;

use super::cache::StatementCache;
use super::panics::{caught, of_statement};
use super::result::{Notice, ResultSet, StatementResult};
use super::statement::{Prepared, notices_of, result_of};
use super::view::{View, stored};
use super::{definition, explain, parameters, settings};
use crate::compile::plpgsql::compile_do;
use crate::compile::{CallArguments, bind_call, fail, object_name, position_of};
use crate::parse::{self, Call, RoutineKind, SourceStatement, Statement, script};

/// How often a statement is started again that had to be run as several programs and met a
/// conflict, before the conflict is reported.
const ATTEMPTS_MAX: usize = 1_000;

/// One client's statements. Each is a transaction of its own, or a part of the one between BEGIN
/// and COMMIT.
///
/// A statement on its own is repeated until it commits; in a transaction block, of which the
/// client has seen results, a conflict is reported as 40001. After an error in a block everything
/// but its end is refused with 25P02. Dropping a session rolls an open block back.
pub struct Session {
    session: kiln_engine::Session,
    cache: StatementCache,
    statement_timeout: Option<Duration>,
}

impl Session {
    pub(super) fn new(session: kiln_engine::Session) -> Session {
        Session {
            session,
            cache: StatementCache::default(),
            statement_timeout: None,
        }
    }

    /// Runs the statements of a script up to the first that fails.
    ///
    /// # Errors
    /// That statement's, with line and column in the script.
    pub fn execute(&mut self, text: &str) -> Result<Vec<StatementResult>> {
        caught(|| Ok(script(text)))?
            .iter()
            .map(|source| self.execute_statement(source))
            .collect()
    }

    /// Runs one statement of a script.
    ///
    /// # Errors
    /// PostgreSQL's, with line and column in the script.
    pub fn execute_statement(&mut self, source: &SourceStatement<'_>) -> Result<StatementResult> {
        self.run_source(source, &[])
    }

    /// Runs one statement with the values of its parameters `$1`, `$2`, ….
    ///
    /// # Errors
    /// PostgreSQL's, with line and column in the text; 42601 unless it is one statement.
    pub fn run(&mut self, sql: &str, parameters: impl IntoValues) -> Result<StatementResult> {
        let values = parameters.into_values();
        let sources = caught(|| Ok(script(sql)))?;
        let [source] = sources.as_slice() else {
            let message = match sources.len() {
                0 => "there is no statement",
                _ => "cannot insert multiple commands into a prepared statement",
            };
            self.session.fail();
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        };
        if values.is_empty() {
            return self.run_source(source, &[]);
        }
        let text = match values.iter().any(Value::is_null) {
            true => parameters::inline(source.text, &values, Value::is_null),
            false => source.text.to_owned(),
        };
        let first = self.run_source(
            &SourceStatement {
                text: &text,
                ..*source
            },
            &values,
        );
        let is_text = |value: &Value| matches!(value, Value::Null | Value::Text(_));
        match first {
            // PostgreSQL would infer the type of a text parameter.
            Err(error)
                if values.iter().any(|value| matches!(value, Value::Text(_)))
                    && is_type_error(&error)
                    && !self.session.in_transaction() =>
            {
                let text = parameters::inline(source.text, &values, is_text);
                self.run_source(
                    &SourceStatement {
                        text: &text,
                        ..*source
                    },
                    &values,
                )
                .map_err(|second| {
                    if is_type_error(&second) {
                        error
                    } else {
                        second
                    }
                })
            }
            result => result,
        }
    }

    /// Runs one statement and returns its rows; see [`Session::run`].
    ///
    /// # Errors
    /// As there; a statement that returns no rows gives a result without columns.
    pub fn query(&mut self, sql: &str, parameters: impl IntoValues) -> Result<ResultSet> {
        Ok(self.run(sql, parameters)?.result.unwrap_or_default())
    }

    /// Whether a transaction block is open or failed.
    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    /// Whether the transaction block has failed, so that only its end is accepted.
    pub fn has_failed(&self) -> bool {
        self.session.has_failed()
    }

    /// The catalog that the next statement would see.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.session.catalog()
    }

    /// Rolls an open transaction block back.
    pub fn roll_back(&mut self) {
        if self.session.in_transaction() {
            // There is a block, so that this cannot fail.
            let _ = self.session.roll_back();
        }
    }

    fn run_source(
        &mut self,
        source: &SourceStatement<'_>,
        values: &[Value],
    ) -> Result<StatementResult> {
        let result = self.dispatch(source, values);
        if result.is_err() {
            self.session.fail();
        }
        result.map_err(|error| of_statement(error, source.text).or_at(source.position()))
    }

    fn dispatch(
        &mut self,
        source: &SourceStatement<'_>,
        values: &[Value],
    ) -> Result<StatementResult> {
        let parsed = self.cache.parse(source, parameters::types(values))?;
        let statement = parsed.statement.clone();
        match &*statement {
            Statement::Commit => return self.commit(),
            Statement::Rollback => return self.end_without_effects(),
            _ if self.session.has_failed() => return Err(failed_block()),
            _ => {}
        }
        match &*statement {
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_) => {
                let cache = &mut self.cache;
                let mut shape = None;
                let mut arguments = Arguments::from_values(values);
                let rows = self.session.run_with(
                    |catalog| {
                        let Prepared {
                            program,
                            shape: known,
                        } = cache.prepare(catalog, &parsed)?;
                        shape = Some(known);
                        Ok(program)
                    },
                    &mut arguments,
                )?;
                shape
                    .map(|shape| result_of(shape, rows))
                    .ok_or_else(|| Error::internal("a program ran that was not compiled"))
            }
            Statement::Call(call) => self.call(call, values),
            Statement::Do(block) => {
                let rows = self.session.run_with(
                    |catalog| {
                        let compiled = caught(|| compile_do(&View(catalog), block))?;
                        Ok(Arc::new(compiled.program))
                    },
                    &mut Arguments::new(),
                )?;
                let notices = notices_of(&rows);
                Ok(StatementResult {
                    notices,
                    ..StatementResult::of_tag("DO")
                })
            }
            Statement::Begin(modes) => self.begin(modes),
            Statement::Set(set) => {
                if let settings::Change::StatementTimeout(timeout) = settings::set(set)? {
                    self.statement_timeout = timeout;
                    self.session.set_statement_timeout(timeout);
                }
                Ok(StatementResult::of_tag("SET"))
            }
            Statement::Show(name) => settings::show(name, self.statement_timeout),
            Statement::Explain(statement) => self.explain(statement, values),
            Statement::Truncate(truncate) if self.session.in_transaction() => {
                self.truncate_in_block(truncate)
            }
            _ => self.define(&statement, source),
        }
    }

    fn define(
        &mut self,
        statement: &Statement,
        source: &SourceStatement<'_>,
    ) -> Result<StatementResult> {
        let engine = self.session.engine().clone();
        if self.session.in_transaction() {
            return Err(Error::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "a statement that defines cannot run inside a transaction block",
            )
            .with_hint("Commit first: tables, indexes and functions are defined at once."));
        }
        match statement {
            Statement::CreateTable(create) => definition::create_table(&engine, create),
            Statement::CreateIndex(create) => definition::create_index(&engine, create),
            Statement::CreateFunction(create) => {
                definition::create_function(&engine, create, source.text)
            }
            Statement::AlterTable(alter) => definition::alter_table(&engine, alter),
            Statement::Drop(drop) => definition::drop(&engine, drop),
            Statement::DropFunction(drop) => definition::drop_function(&engine, drop),
            Statement::Truncate(truncate) => definition::truncate(&engine, truncate),
            _ => Err(Error::internal(
                "a statement of this kind was handled before",
            )),
        }
    }

    fn begin(&mut self, modes: &[sqlparser::ast::TransactionMode]) -> Result<StatementResult> {
        settings::transaction_modes(modes)?;
        let result = StatementResult::of_tag("BEGIN");
        if self.session.in_transaction() {
            let warning = Notice::warning("there is already a transaction in progress");
            return Ok(result.with_notice(warning));
        }
        self.session.begin()?;
        Ok(result)
    }

    fn commit(&mut self) -> Result<StatementResult> {
        if !self.session.in_transaction() {
            let warning = Notice::warning("there is no transaction in progress");
            return Ok(StatementResult::of_tag("COMMIT").with_notice(warning));
        }
        match self.session.commit()? {
            Ended::Committed => Ok(StatementResult::of_tag("COMMIT")),
            Ended::RolledBack => Ok(StatementResult::of_tag("ROLLBACK")),
        }
    }

    fn end_without_effects(&mut self) -> Result<StatementResult> {
        let result = StatementResult::of_tag("ROLLBACK");
        if !self.session.in_transaction() {
            let warning = Notice::warning("there is no transaction in progress");
            return Ok(result.with_notice(warning));
        }
        self.session.roll_back()?;
        Ok(result)
    }

    /// TRUNCATE in a transaction block, which must be undone with it: row by row.
    fn truncate_in_block(
        &mut self,
        truncate: &sqlparser::ast::Truncate,
    ) -> Result<StatementResult> {
        for target in &truncate.table_names {
            let delete = format!("DELETE FROM {}", target.name);
            let source = SourceStatement::from(delete.as_str());
            let parsed = self.cache.parse(&source, Vec::new())?;
            let cache = &mut self.cache;
            self.session.run_with(
                |catalog| Ok(cache.prepare(catalog, &parsed)?.program),
                &mut Arguments::new(),
            )?;
        }
        Ok(StatementResult::of_tag("TRUNCATE TABLE"))
    }

    /// CALL.
    fn call(&mut self, call: &Call, values: &[Value]) -> Result<StatementResult> {
        let rows = self.call_rows(call, values)?;
        let notices = notices_of(&rows);
        let result = (!rows.columns().is_empty()).then(|| ResultSet::from(rows));
        Ok(StatementResult {
            result,
            notices,
            ..StatementResult::of_tag("CALL")
        })
    }

    fn call_rows(&mut self, call: &Call, values: &[Value]) -> Result<Rows> {
        let name = object_name(&call.name)?;
        let types = parameters::types(values);
        let bind =
            |catalog: &Catalog| {
                let position = position_of(&call.name);
                let routine = catalog.procedure(&name).and_then(|known| stored(known));
                let Some(routine) = routine else {
                    let message = format!("procedure {name} does not exist");
                    return Err(fail(SqlState::UNDEFINED_FUNCTION, message, position).with_hint(
                    "No procedure matches the given name and argument types. You might need to \
                     add explicit type casts.",
                ));
                };
                if routine.routine.kind == RoutineKind::Function {
                    let message = format!("{name} is not a procedure");
                    return Err(fail(SqlState::WRONG_OBJECT_TYPE, message, position)
                        .with_hint("To call a function, use SELECT."));
                }
                let view = View(catalog);
                bind_call(
                    &view,
                    &routine.routine,
                    &call.arguments,
                    true,
                    &types,
                    position,
                )
            };
        let program = |catalog: &Catalog| -> Result<Arc<Program>> {
            Ok(catalog.require_procedure(&name)?.program().clone())
        };
        let bind = |catalog: &Catalog| caught(|| bind(catalog));
        match bind(&self.session.catalog())? {
            CallArguments::Constant(constants) => {
                let mut arguments = Arguments::from_values(&constants);
                self.session
                    .run_with(|catalog| program(catalog), &mut arguments)
            }
            CallArguments::Computed(_) => self.in_one_transaction(|session| {
                let mut parameters = Arguments::from_values(values);
                let computed = session.run_with(
                    |catalog| match bind(catalog)? {
                        CallArguments::Computed(program) => Ok(Arc::from(program)),
                        CallArguments::Constant(_) => {
                            Err(Error::internal("arguments became constant"))
                        }
                    },
                    &mut parameters,
                )?;
                let constants = computed.into_values().pop().unwrap_or_default();
                let mut arguments = Arguments::from_values(&constants);
                session.run_with(|catalog| program(catalog), &mut arguments)
            }),
        }
    }

    /// Runs several programs as one transaction: within the open block, or in one of their own
    /// that starts again after a conflict.
    fn in_one_transaction<T>(
        &mut self,
        mut body: impl FnMut(&mut kiln_engine::Session) -> Result<T>,
    ) -> Result<T> {
        if self.session.in_transaction() {
            return body(&mut self.session);
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            self.session.begin()?;
            let result = match body(&mut self.session) {
                Ok(value) => self.session.commit().map(|_| value),
                Err(error) => {
                    self.session.roll_back()?;
                    Err(error)
                }
            };
            match result {
                Err(error)
                    if error.state() == SqlState::SERIALIZATION_FAILURE
                        && attempts < ATTEMPTS_MAX => {}
                result => return result,
            }
        }
    }

    fn explain(&mut self, explain: &parse::Explain, values: &[Value]) -> Result<StatementResult> {
        let catalog = self.session.catalog();
        let (program, mut text) = match &*explain.statement {
            Statement::Call(call) => {
                let procedure = catalog.require_procedure(&object_name(&call.name)?)?;
                (
                    procedure.program().clone(),
                    explain::procedure(&catalog, procedure),
                )
            }
            statement => {
                let types = parameters::types(values);
                let prepared = super::statement::compile(&catalog, statement, &types)?;
                let text = explain::text(&prepared.program);
                (prepared.program, text)
            }
        };
        if explain.analyze {
            let rows = match &*explain.statement {
                Statement::Call(call) => self.call_rows(call, values)?,
                _ => self
                    .session
                    .run(&program, &mut Arguments::from_values(values))?,
            };
            text.push_str(&format!("Rows: {}\n", rows.len()));
        }
        Ok(explain::as_rows(&text))
    }
}

/// Whether another type of a parameter may make the error go away.
fn is_type_error(error: &Error) -> bool {
    [
        SqlState::DATATYPE_MISMATCH,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::CANNOT_COERCE,
    ]
    .contains(&error.state())
}

fn failed_block() -> Error {
    Error::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}
