//! SQL within transactions that are Rust closures.

use std::ops::{Deref, DerefMut};

use kiln_engine::{Arguments, IntoValues, SearchPath, Statement as _};
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::Value;

use super::constraints::Check;
use super::panics::{caught, of_statement};
use super::plan_cache::PlanCache;
use super::result::{ResultSet, StatementResult};
use super::statement::result_of;
use crate::parse::{SourceStatement, Statement, script};

/// A transaction inside [`Database::transaction`](super::Database::transaction): the engine's
/// transaction, with its access to single rows and its calls, and SQL.
pub struct Transaction<'t, 'e> {
    inner: &'t mut kiln_engine::Transaction<'e>,
    statements: &'t PlanCache,
}

impl<'t, 'e> Transaction<'t, 'e> {
    fn new(
        inner: &'t mut kiln_engine::Transaction<'e>,
        statements: &'t PlanCache,
    ) -> Transaction<'t, 'e> {
        Transaction { inner, statements }
    }

    /// Runs `body` in a transaction, and then checks what that has left to its end.
    pub(super) fn run_in<T>(
        inner: &mut kiln_engine::Transaction<'_>,
        statements: &PlanCache,
        body: &mut impl FnMut(&mut Transaction<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        inner.leave_checks();
        let value = body(&mut Transaction::new(inner, statements))?;
        for (check, mut arguments) in Check::all(inner.take_pending()) {
            let program = check.program(inner.catalog())?;
            inner.run(&program, &mut arguments)?;
        }
        Ok(value)
    }

    /// Runs a query, INSERT, UPDATE or DELETE with the values of its parameters.
    ///
    /// # Errors
    /// PostgreSQL's; 0A000 for any other statement. The transaction cannot commit then.
    pub fn execute(&mut self, sql: &str, parameters: impl IntoValues) -> Result<StatementResult> {
        let values = parameters.into_values();
        let sources = caught(|| Ok(script(sql)))?;
        let [source] = sources.as_slice() else {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "exactly one statement is expected",
            ));
        };
        self.run(source, &values)
            .map_err(|error| of_statement(error, source.text).or_at(source.position()))
    }

    fn run(&mut self, source: &SourceStatement<'_>, values: &[Value]) -> Result<StatementResult> {
        let catalog = self.inner.catalog().clone();
        let statement = self.statements.statement(
            source,
            vec![None; values.len()],
            &catalog,
            &SearchPath::default(),
            only_on_data,
        )?;
        let portal = statement.bind(values)?;
        let (program, shape) = statement.plan(&catalog)?.data()?;
        let mut arguments = Arguments::from_values(portal.values());
        let rows = self.inner.run(&program, &mut arguments)?;
        Ok(result_of(shape, rows))
    }

    /// Runs a statement and returns its rows; see [`Transaction::execute`].
    ///
    /// # Errors
    /// Those of [`Transaction::execute`].
    pub fn query(&mut self, sql: &str, parameters: impl IntoValues) -> Result<ResultSet> {
        Ok(self.execute(sql, parameters)?.result.unwrap_or_default())
    }
}

/// Refuses what cannot be part of a closure's transaction.
fn only_on_data(tree: &Statement) -> Result<()> {
    match tree {
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_) => Ok(()),
        _ => Err(Error::unsupported(
            "only statements on data run in a transaction",
        )),
    }
}

impl<'e> Deref for Transaction<'_, 'e> {
    type Target = kiln_engine::Transaction<'e>;

    fn deref(&self) -> &kiln_engine::Transaction<'e> {
        self.inner
    }
}

impl<'e> DerefMut for Transaction<'_, 'e> {
    fn deref_mut(&mut self) -> &mut kiln_engine::Transaction<'e> {
        self.inner
    }
}
