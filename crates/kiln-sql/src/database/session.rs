//! Sessions: statements one after the other, transaction blocks included.

use std::time::Duration;

use kiln_engine::{
    Arguments, CancelHandle, Catalog, Completions, Ended, IntoValues, Program, Reply, Rows, Source,
};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};

use super::cache::StatementCache;
use super::call::{self, CallPart, CallPlan, Part};
use super::definition::Definition;
use super::panics::{caught, of_statement};
use super::portal::{Portal, Portion};
use super::prepared::{ExplainPlan, Plan, Statement, StatementKind, cannot_submit};
use super::result::{Notice, ResultSet, StatementResult};
use super::roles::{self, check_definition};
use super::statement::{notices_of, result_of_call};
use super::view::View;
use super::{explain, settings};
use crate::compile::parameter_count;
use crate::compile::plpgsql::compile_do;
use crate::parse::{self, SourceStatement, Statement as Tree, script};

/// How often a statement is started again that had to be run as several programs and met a
/// conflict, before the conflict is reported.
const ATTEMPTS_MAX: usize = 1_000;

/// One client's statements. Each is a transaction of its own, or a part of the one between BEGIN
/// and COMMIT.
///
/// A statement on its own is repeated until it commits. A transaction block is run again after a conflict, and goes on
/// when all results are what the client has seen; else the conflict is reported as 40001. After an error in a block everything
/// but its end is refused with 25P02. Dropping a session rolls an open block back.
pub struct Session {
    session: kiln_engine::Session,
    statements: Arc<StatementCache>,
    /// Who runs the statements.
    role: String,
    statement_timeout: Option<Duration>,
    /// Whether a statement was submitted whose outcome has not come.
    is_submitted: bool,
}

impl Session {
    pub(super) fn new(
        mut session: kiln_engine::Session,
        statements: Arc<StatementCache>,
        role: &str,
    ) -> Session {
        session.set_replay(true);
        Session {
            session,
            statements,
            role: role.to_owned(),
            statement_timeout: None,
            is_submitted: false,
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
        let statement = self.analyse(source, Vec::new())?;
        self.run_statement(&statement, &[])
    }

    /// Runs one statement with the values of its parameters `$1`, `$2`, …: parses, binds and
    /// executes it.
    ///
    /// # Errors
    /// PostgreSQL's, with line and column in the text; 42601 unless it is one statement.
    pub fn run(&mut self, sql: &str, parameters: impl IntoValues) -> Result<StatementResult> {
        let values = parameters.into_values();
        let Some(source) = self.single(sql)? else {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "there is no statement"));
        };
        let statement = self.analyse(&source, vec![None; values.len()])?;
        let portal = self.bind(&statement, &values)?;
        self.run_statement(&statement, portal.values())
    }

    /// Parses and analyses one statement. The types of its parameters `$1`, `$2`, … are those
    /// declared, and for the others, or `None`, those that PostgreSQL infers from the statement. A
    /// text without any token gives the empty statement.
    ///
    /// ```
    /// use kiln_sql::{DataType, Database, Options, Value};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// let database = Database::open(Options::new().workers(1))?;
    /// let mut session = database.session()?;
    /// session.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, owner VARCHAR(20))")?;
    ///
    /// let insert = session.parse("INSERT INTO account VALUES ($1, $2)", &[])?;
    /// assert_eq!(insert.parameters(), [DataType::Integer, DataType::VarChar(None)]);
    /// assert_eq!(insert.columns(), None);
    /// for (id, owner) in [("1", "Ada"), ("2", "Edsger"), ("3", "Grace")] {
    ///     let mut portal = session.bind(&insert, &[id.into(), owner.into()])?;
    ///     assert_eq!(session.execute_portal(&mut portal, 0)?.tag, "INSERT 0 1");
    /// }
    ///
    /// let select = session.parse("SELECT owner FROM account WHERE id > $1 ORDER BY id", &[])?;
    /// assert_eq!(select.columns().map(|columns| columns[0].name.as_str()), Some("owner"));
    /// let mut portal = session.bind(&select, &[Value::Integer(1)])?;
    /// let first = session.execute_portal(&mut portal, 1)?;
    /// assert_eq!((first.rows, first.suspended), (vec![vec![Value::from("Edsger")]], true));
    /// let rest = portal.fetch(0)?;
    /// assert_eq!((rest.rows.len(), rest.suspended, rest.tag.as_str()), (1, false, "SELECT 1"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What PostgreSQL reports, with line and column; 42601 for several statements, 42P18 and
    /// 42P08 for parameters whose types cannot be inferred, 25P02 in a failed block unless the
    /// statement ends it. An error fails an open block.
    pub fn parse(&mut self, sql: &str, declared: &[Option<DataType>]) -> Result<Statement> {
        let Some(source) = self.single(sql)? else {
            return Ok(Statement::empty());
        };
        let count = parameter_count(source.text).inspect_err(|_| self.session.fail())?;
        let mut declared = declared.to_vec();
        declared.resize(count.max(declared.len()), None);
        self.analyse(&source, declared)
    }

    /// [`Session::parse`] for a thread that must not wait: `None` for a statement with an error, which
    /// `parse` reports once the catalog that the statement does not fit is on disk. The session stays as it was.
    pub fn try_parse(&mut self, sql: &str, declared: &[Option<DataType>]) -> Option<Statement> {
        let sources = caught(|| Ok(script(sql))).ok()?;
        let source = match sources.as_slice() {
            [] => return Some(Statement::empty()),
            [source] => source,
            _ => return None,
        };
        let mut declared = declared.to_vec();
        let count = parameter_count(source.text).ok()?;
        declared.resize(count.max(declared.len()), None);
        self.analysed(source, declared).ok()
    }

    /// [`Statement::bind`] for execution in this session.
    ///
    /// # Errors
    /// As there, and 25P02 in a failed block unless the statement ends it. An error fails an open
    /// block.
    pub fn bind(&mut self, statement: &Statement, values: &[Value]) -> Result<Portal> {
        let admitted = match statement.tree() {
            Some(tree) => self.admit(tree),
            None => Ok(()),
        };
        let bound = admitted.and_then(|()| statement.bind(values));
        bound.inspect_err(|_| self.session.fail())
    }

    /// Executes a portal, and hands out the first rows of its result, at most `row_limit`; 0 means
    /// all. A portal that was executed before is only fetched from, as by [`Portal::fetch`].
    ///
    /// # Errors
    /// PostgreSQL's, with line and column; 55000 for a portal whose execution failed; 0A000 when
    /// the catalog changed so that the columns would be others. An error fails an open block.
    pub fn execute_portal(&mut self, portal: &mut Portal, row_limit: usize) -> Result<Portion> {
        portal.check().inspect_err(|_| self.session.fail())?;
        if !portal.is_finished() {
            let statement = portal.statement().clone();
            let result = self.run_statement(&statement, portal.values());
            portal.end(result)?;
        }
        portal.fetch(row_limit)
    }

    /// Submits a portal to the database's workers, without waiting for its end, for a thread that serves
    /// many sessions. Its outcome arrives in `completions` under `token`; [`Session::complete`] takes it,
    /// and until then the session runs nothing else. The statement's time is bounded, and it can be cancelled, as one
    /// that is executed.
    ///
    /// Queries, INSERT, UPDATE, DELETE, and CALL whose arguments need no query can be submitted, outside of
    /// transaction blocks ([`Session::can_submit`]). Others are executed in a thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kiln_engine::Completions;
    /// use kiln_sql::{Database, Options, Value};
    /// # fn main() -> kiln_storage::error::Result<()> {
    /// let database = Database::open(Options::new().workers(1))?;
    /// database.execute("CREATE TABLE seat (id INTEGER PRIMARY KEY, taken BOOLEAN NOT NULL)")?;
    /// database.execute("INSERT INTO seat SELECT i, FALSE FROM generate_series(1, 100) AS g(i)")?;
    /// let completions = Completions::new(1_000);
    /// let mut clients = Vec::new();
    /// for client in 0..100 {
    ///     let mut session = database.session()?;
    ///     let take = session.parse("UPDATE seat SET taken = TRUE WHERE id = $1", &[])?;
    ///     let portal = session.bind(&take, &[Value::Integer(client + 1)])?;
    ///     let portal = session.submit(portal, &completions, client as u64)?;
    ///     clients.push((session, Some(portal)));
    /// }
    /// let (mut ended, mut left) = (Vec::new(), clients.len());
    /// while left > 0 {
    ///     completions.wait(&mut ended, Duration::from_secs(1));
    ///     for completion in ended.drain(..) {
    ///         let (session, portal) = &mut clients[completion.token as usize];
    ///         let mut portal = portal.take().expect("it was submitted");
    ///         session.complete(&mut portal, completion.result)?;
    ///         assert_eq!(portal.fetch(0)?.tag, "UPDATE 1");
    ///         left -= 1;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 54000 when too many calls wait, so that the portal may be submitted again; 0A000 and 25001 for what cannot be
    /// submitted; 55000 while another statement is on its way, and for a portal that was executed; PostgreSQL's
    /// when the statement cannot be compiled any more. The portal is lost then; clone it to submit it again.
    pub fn submit(
        &mut self,
        portal: Portal,
        completions: &Arc<Completions>,
        token: u64,
    ) -> Result<Portal> {
        self.check_idle()?;
        portal.check_bound()?;
        self.session.begin_statement();
        let submitted = self.offer(&portal, completions, token);
        if let Err(error) = submitted {
            self.session.end_statement();
            let statement = portal.statement();
            return Err(of_statement(error, statement.text()).or_at(statement.position()));
        }
        self.is_submitted = true;
        Ok(portal)
    }

    fn offer(&self, portal: &Portal, completions: &Arc<Completions>, token: u64) -> Result<()> {
        let statement = portal.statement();
        self.authorize(statement)?;
        let (arguments, program) = match statement.plan(&self.session.catalog())? {
            Plan::Data(_) => (Arguments::from_values(portal.values()), statement.to_run()),
            Plan::Call(call) if call.computing().is_none() => (
                call.direct(portal.values()),
                CallPart::of(statement, &call, Part::Direct),
            ),
            _ => return Err(cannot_submit()),
        };
        let submitted = self.session.submit(program, arguments, completions, token);
        Ok(submitted?)
    }

    /// Whether a portal can be submitted now: its kind, and that no block is open.
    pub fn can_submit(&self, portal: &Portal) -> bool {
        let plan = || portal.statement().plan(&self.session.catalog());
        !self.session.in_transaction()
            && match plan() {
                Ok(Plan::Data(_)) => true,
                Ok(Plan::Call(call)) => call.computing().is_none(),
                _ => false,
            }
    }

    /// Takes the outcome of the portal that was submitted, which can be fetched from then.
    ///
    /// # Errors
    /// What the statement raised; 57014 when it was cancelled or its time was over.
    pub fn complete(&mut self, portal: &mut Portal, outcome: Result<Reply>) -> Result<()> {
        let rows = self.session.submitted(outcome);
        self.session.end_statement();
        self.is_submitted = false;
        let statement = portal.statement();
        let result = rows.and_then(|rows| statement.result_of(rows));
        let result = result
            .map_err(|error| of_statement(error, statement.text()).or_at(statement.position()));
        portal.end(result)
    }

    /// # Errors
    /// 55000 while a statement that was submitted is on its way.
    fn check_idle(&self) -> Result<()> {
        match self.is_submitted {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "a statement of this session is on its way",
            )
            .with_hint("Take its outcome first, or use another session.")),
        }
    }

    /// Runs one statement and returns its rows; see [`Session::run`].
    ///
    /// # Errors
    /// As there; a statement that returns no rows gives a result without columns.
    pub fn query(&mut self, sql: &str, parameters: impl IntoValues) -> Result<ResultSet> {
        Ok(self.run(sql, parameters)?.result.unwrap_or_default())
    }

    /// What cancels the statements of this session, from any thread.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.session.cancel_handle()
    }

    /// Fails the open transaction block, for an error that the layer above finds by itself. Does nothing outside of one.
    pub fn fail(&mut self) {
        self.session.fail();
    }

    /// Whether blocks are run again when they meet conflicts with other transactions, so that the client need not; see
    /// [`kiln_engine::Session::set_replay`]. They are unless this is turned off.
    pub fn replays(&self) -> bool {
        self.session.replays()
    }

    /// Whether the last block has failed because of other transactions alone: it may be tried again by a client to which
    /// nothing of it was told.
    pub fn has_lost(&self) -> bool {
        self.session.has_lost()
    }

    /// Has them run again, or not.
    pub fn set_replay(&mut self, replays: bool) {
        self.session.set_replay(replays);
    }

    /// Whether a transaction block is open or failed.
    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    /// Whether the open block holds a worker slot: the session's next statement waits for none.
    pub fn holds_slot(&self) -> bool {
        self.session.holds_slot()
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

    /// The only statement of a text; `None` when it has no token.
    fn single<'t>(&mut self, sql: &'t str) -> Result<Option<SourceStatement<'t>>> {
        match caught(|| Ok(script(sql)))?.as_slice() {
            [] => Ok(None),
            [source] => Ok(Some(*source)),
            _ => {
                self.session.fail();
                Err(Error::new(
                    SqlState::SYNTAX_ERROR,
                    "cannot insert multiple commands into a prepared statement",
                ))
            }
        }
    }

    /// Parses and analyses a statement whose parameters are those declared and no others.
    fn analyse(
        &mut self,
        source: &SourceStatement<'_>,
        declared: Vec<Option<DataType>>,
    ) -> Result<Statement> {
        self.analysed(source, declared).map_err(|error| {
            self.session.fail();
            // It may be of a table that was made or dropped a moment ago.
            match self.session.await_catalog() {
                Ok(()) => of_statement(error, source.text).or_at(source.position()),
                Err(failure) => failure,
            }
        })
    }

    /// [`Session::analyse`] without a consequence for the session.
    fn analysed(
        &self,
        source: &SourceStatement<'_>,
        declared: Vec<Option<DataType>>,
    ) -> Result<Statement> {
        let catalog = self.session.catalog();
        let has_failed = self.session.has_failed();
        self.statements
            .statement(source, declared, &catalog, |tree| admit(tree, has_failed))
    }

    /// Refuses what a failed block refuses.
    fn admit(&self, tree: &Tree) -> Result<()> {
        admit(tree, self.session.has_failed())
    }

    /// Whether the session's role may run the statement.
    ///
    /// # Errors
    /// 42501; 42704 when the role is gone.
    fn authorize(&self, statement: &Statement) -> Result<()> {
        let catalog = self.session.catalog();
        let roles = catalog.roles();
        let role = roles.require(&self.role)?;
        if role.is_superuser {
            return Ok(());
        }
        if statement.kind() == StatementKind::Definition
            || matches!(
                statement.tree().map(|tree| &**tree),
                Some(Tree::Truncate(_))
            )
        {
            let Some(tree) = statement.tree() else {
                return Ok(());
            };
            return check_definition(roles, role, tree, statement.command());
        }
        let plan = statement.plan(&catalog)?;
        let mut accesses = plan.accesses().iter();
        accesses.try_for_each(|access| roles.check(role, access))
    }

    /// The name of the role that runs the statements.
    pub fn role(&self) -> &str {
        &self.role
    }

    fn run_statement(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        self.check_idle()?;
        self.session.begin_statement();
        let result = self.dispatch(statement, values);
        self.session.end_statement();
        result.map_err(|error| {
            self.session.fail();
            of_statement(error, statement.text()).or_at(statement.position())
        })
    }

    fn dispatch(&mut self, statement: &Statement, values: &[Value]) -> Result<StatementResult> {
        let Some(tree) = statement.tree() else {
            return Ok(StatementResult::default());
        };
        self.admit(tree)?;
        self.authorize(statement)?;
        match &**tree {
            Tree::Commit => self.commit(),
            Tree::Rollback => self.end_without_effects(),
            Tree::Query(_) | Tree::Insert(_) | Tree::Update(_) | Tree::Delete(_) => {
                self.run_data(statement, values)
            }
            Tree::Call(_) => self.call(statement, values),
            Tree::Do(_) => {
                let block: Arc<dyn kiln_engine::Statement> = Arc::new(Block {
                    tree: tree.clone(),
                    role: self.role.clone(),
                });
                let rows = self.session.run_statement(&block, &mut Arguments::new())?;
                let notices = notices_of(&rows);
                Ok(StatementResult {
                    notices,
                    ..StatementResult::of_tag("DO")
                })
            }
            Tree::Begin(modes) => self.begin(modes),
            Tree::Set(set) => {
                match settings::set(set)? {
                    settings::Change::None => {}
                    settings::Change::StatementTimeout(timeout) => {
                        self.statement_timeout = timeout;
                        self.session.set_statement_timeout(timeout);
                    }
                    settings::Change::SynchronousCommit(is_synchronous) => {
                        self.session.set_synchronous_commit(is_synchronous);
                    }
                }
                Ok(StatementResult::of_tag("SET"))
            }
            Tree::Show(name) => {
                let settings = settings::Shown {
                    statement_timeout: self.statement_timeout,
                    synchronous_commit: self.session.is_synchronous(),
                };
                settings::show(name, &settings)
            }
            Tree::Explain(explain) => self.explain(explain, statement, values),
            Tree::Truncate(truncate) if self.session.in_transaction() => {
                self.truncate_in_block(truncate)
            }
            tree => {
                let result = self.define(tree, statement);
                self.statements.clear();
                result
            }
        }
    }

    /// A query, INSERT, UPDATE or DELETE.
    fn run_data(&mut self, statement: &Statement, values: &[Value]) -> Result<StatementResult> {
        let program = statement.to_run();
        let mut arguments = Arguments::from_values(values);
        let rows = self.session.run_statement(&program, &mut arguments)?;
        statement.result_of(rows)
    }

    fn define(&mut self, tree: &Tree, statement: &Statement) -> Result<StatementResult> {
        if self.session.in_transaction() {
            return Err(Error::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "a statement that defines cannot run inside a transaction block",
            )
            .with_hint("Commit first: tables, indexes and functions are defined at once."));
        }
        let position = statement.position();
        let source = Source {
            text: statement.text().to_owned(),
            line: position.line,
            column: position.column,
        };
        let engine = self.session.engine();
        match roles::to_log(tree, &self.role)? {
            Some((tree, source)) => Definition::new(engine, source).run(&tree),
            None => Definition::new(engine, source).run(tree),
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
            let statement = self.analyse(&source, Vec::new())?;
            self.run_data(&statement, &[])?;
        }
        Ok(StatementResult::of_tag("TRUNCATE TABLE"))
    }

    /// CALL.
    fn call(&mut self, statement: &Statement, values: &[Value]) -> Result<StatementResult> {
        let Plan::Call(plan) = statement.plan(&self.session.catalog())? else {
            return Err(Error::internal("a CALL was planned as something else"));
        };
        let rows = self.call_rows(statement, &plan, values)?;
        Ok(result_of_call(rows))
    }

    fn call_rows(
        &mut self,
        statement: &Statement,
        plan: &Arc<CallPlan>,
        values: &[Value],
    ) -> Result<Rows> {
        if plan.computing().is_none() && self.session.in_transaction() {
            let mut arguments = plan.direct(values);
            let call = CallPart::of(statement, plan, Part::Direct);
            return self.session.run_statement(&call, &mut arguments);
        }
        if plan.computing().is_none() {
            let called = call::call_directly(&mut self.session, statement, values)?;
            if let Some(rows) = called {
                return Ok(rows);
            }
        }
        self.in_one_transaction(|session| call::compute_and_call(session, statement, values))
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
            self.session.check_limits()?;
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

    fn explain(
        &mut self,
        explain: &parse::Explain,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        let Plan::Explain(plan) = statement.plan(&self.session.catalog())? else {
            return Err(Error::internal("an EXPLAIN was planned as something else"));
        };
        let ExplainPlan { text, analyzed } = &*plan;
        let mut text = text.clone();
        if explain.analyze {
            let rows = match analyzed {
                Plan::Call(call) => self.call_rows(statement, call, values)?,
                analyzed => {
                    let (program, _) = analyzed.clone().data()?;
                    let mut arguments = Arguments::from_values(values);
                    self.session.run(&program, &mut arguments)?
                }
            };
            text.push_str(&format!("Rows: {}\n", rows.len()));
        }
        Ok(explain::as_rows(&text))
    }
}

/// The block of a DO statement, compiled whenever it runs.
struct Block {
    tree: Arc<Tree>,
    role: String,
}

impl kiln_engine::Statement for Block {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        let Tree::Do(block) = &*self.tree else {
            return Err(Error::internal("the statement is no DO"));
        };
        let view = View::of(catalog);
        let compiled = caught(|| compile_do(&view, block))?;
        let roles = catalog.roles();
        let role = roles.require(&self.role)?;
        let accesses = view.into_accesses();
        (accesses.iter()).try_for_each(|access| roles.check(role, access))?;
        Ok(Arc::new(compiled.program))
    }

    fn text(&self) -> Option<&str> {
        Some("DO")
    }
}

/// Refuses, in a failed block, all but its end.
fn admit(tree: &Tree, has_failed: bool) -> Result<()> {
    if has_failed && !matches!(tree, Tree::Commit | Tree::Rollback) {
        return Err(Error::new(
            SqlState::IN_FAILED_SQL_TRANSACTION,
            "current transaction is aborted, commands ignored until end of transaction block",
        ));
    }
    Ok(())
}
