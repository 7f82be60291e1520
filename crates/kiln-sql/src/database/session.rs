//! Sessions: statements one after the other, transaction blocks included.

use std::borrow::Cow;

use kiln_engine::{Arguments, CancelHandle, Catalog, IntoValues, Program, Rows, SearchPath};
use kiln_platform::sync::Arc;
use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::types::{DataType, Value};
use sqlparser::ast::{Set, TruncateIdentityOption};

use super::call::{self, CallPart, CallPlan, Part};
use super::copy::{Copying, check_file};
use super::held::{self, Rare, Warnings};
use super::names::Names;
use super::ownership::check_definition;
use super::panics::{caught, of_statement};
use super::plan_cache::PlanCache;
use super::portal::{Portal, Portion};
use super::prepared::{Plan, Statement, StatementKind};
use super::result::{ResultSet, StatementResult};
use super::roles;
use super::settings;
use super::settings::{Assignment, NO_ROLE, Scope, Settings};
use super::statement::{notices_of, result_of_call};
use super::stepped::stepped_of;
use crate::catalog::View;
use crate::compile::plpgsql::{compile_do, is_stepped};
use crate::compile::{SessionValue, TEMPORARY_SCHEMA, parameter_count};
use crate::parse::{Discarded, SourceStatement, Statement as Tree, script};

/// One client's statements. Each is a transaction of its own, or a part of the one between BEGIN
/// and COMMIT.
///
/// A statement on its own is repeated until it commits. A transaction block is run again after a
/// conflict, and goes on when all results are what the client has seen; else the conflict is
/// reported as 40001. After an error in a block everything but its end is refused with 25P02.
/// Dropping a session rolls an open block back.
pub struct Session {
    pub(super) session: kiln_engine::Session,
    pub(super) statements: Arc<PlanCache>,
    /// Who runs the statements.
    pub(super) role: Box<str>,
    pub(super) settings: Settings,
    pub(super) names: Names,
    /// Those of the open block, the last one last.
    pub(super) savepoints: Vec<held::Named>,
    /// What few sessions have; boxed, so that the others stay small.
    pub(super) rare: Option<Box<Rare>>,
    /// Those of the statement that runs.
    pub(super) warnings: Option<Box<Warnings>>,
    /// Whether a statement was submitted whose outcome has not come.
    pub(super) is_submitted: bool,
    /// How deep the statements nest that are run step by step.
    pub(super) stepped_depth: u16,
    /// Statements that are compiled with temporary objects; there once the session has defined
    /// some.
    pub(super) temporary: Option<Arc<PlanCache>>,
}

impl Session {
    pub(super) fn new(
        mut session: kiln_engine::Session,
        statements: Arc<PlanCache>,
        role: &str,
    ) -> Session {
        session.set_replay(true);
        session.show_as(Some(role));
        Session {
            session,
            statements,
            role: role.into(),
            settings: Settings::default(),
            names: Names::default(),
            savepoints: Vec::new(),
            rare: None,
            warnings: None,
            is_submitted: false,
            stepped_depth: 0,
            temporary: None,
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
        self.parse_source(&source, declared)
    }

    /// [`Session::parse`] of a statement of a script.
    pub(super) fn parse_source(
        &mut self,
        source: &SourceStatement<'_>,
        declared: &[Option<DataType>],
    ) -> Result<Statement> {
        let count = parameter_count(source.text).inspect_err(|_| self.session.fail())?;
        let mut declared = declared.to_vec();
        declared.resize(count.max(declared.len()), None);
        self.analyse(source, declared)
    }

    /// [`Session::parse`] for a thread that must not wait: `None` for a statement with an error,
    /// which `parse` reports once the catalog that the statement does not fit is on disk. The
    /// session stays as it was.
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
        let bound =
            admitted.and_then(|()| self.followed(statement)?.bind_in(values, &self.style()));
        bound.map_err(|error| self.failed(error))
    }

    /// The statement with its names as the search path has them now, if another one was set since
    /// it was parsed.
    ///
    /// # Errors
    /// Those of its analysis.
    pub(super) fn followed<'s>(&self, statement: &'s Statement) -> Result<Cow<'s, Statement>> {
        let is_default = statement.path().is_default()
            && !self.settings.is_set("search_path")
            && self.temporary.is_none();
        match statement.tree() {
            Some(tree) if !is_default && *statement.path() != self.path() => {
                self.rewritten(statement, (**tree).clone()).map(Cow::Owned)
            }
            _ => Ok(Cow::Borrowed(statement)),
        }
    }

    /// A statement has failed, and with it the open block; returns what to tell the client.
    fn failed(&mut self, error: Error) -> Error {
        let refused = error.state() == SqlState::IN_FAILED_SQL_TRANSACTION;
        let timeout = match refused {
            true => self.session.tell_of_timeout(),
            false => None,
        };
        self.session.fail();
        timeout.unwrap_or(error)
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
            if row_limit > 0 {
                let room = self.names.check_bytes(portal.bytes());
                room.inspect_err(|_| self.session.fail())?;
            }
        }
        portal.fetch(row_limit)
    }

    /// # Errors
    /// 55000 while a statement that was submitted is on its way; 57P01 when another session has
    /// ended this one.
    pub(super) fn check_idle(&self) -> Result<()> {
        self.check_terminated()?;
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

    /// # Errors
    /// 57P01 when another session has ended this one, by `pg_terminate_backend`; 54000 when it
    /// listens, and has not taken what has come: each statement ends so. It is to be dropped.
    pub fn check_terminated(&self) -> Result<()> {
        if let Some(mailbox) = self.mailbox() {
            mailbox.check()?;
        }
        self.session.check_terminated()
    }

    /// Fails the open transaction block, for an error that the layer above finds by itself. Does
    /// nothing outside of one.
    pub fn fail(&mut self) {
        self.session.fail();
    }

    /// Whether blocks are run again when they meet conflicts with other transactions, so that the
    /// client need not; see [`kiln_engine::Session::set_replay`]. They are unless this is turned
    /// off.
    pub fn replays(&self) -> bool {
        self.session.replays()
    }

    /// Whether the last block has failed because of other transactions alone: it may be tried again
    /// by a client to which nothing of it was told.
    pub fn has_lost(&self) -> bool {
        self.session.has_lost()
    }

    /// Has them run again, or not.
    pub fn set_replay(&mut self, replays: bool) {
        let value = if replays { "on" } else { "off" };
        // It is a setting, and this is a value of it.
        let _ = self.assign(Assignment {
            name: "kiln.replay".to_owned(),
            value: Some(value.to_owned()),
            scope: Scope::Session,
        });
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
            self.end_block(false);
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
    pub(super) fn analyse(
        &mut self,
        source: &SourceStatement<'_>,
        declared: Vec<Option<DataType>>,
    ) -> Result<Statement> {
        self.analysed(source, declared).map_err(|error| {
            let error = self.failed(error);
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
        let (catalog, path) = (self.session.catalog(), self.path());
        let has_failed = self.session.has_failed();
        let admit = |tree: &Tree| admit(tree, has_failed);
        let statement = match (self.session.has_definitions(), &self.temporary) {
            // What is compiled for the block's own catalog is of use for nothing else.
            (true, _) => PlanCache::uncached(source, declared, &catalog, &path, admit)?,
            (false, Some(own)) if catalog.temporary_schema().is_some() => {
                own.statement(source, declared, &catalog, &path, admit)?
            }
            (false, _) => (self.statements).statement(source, declared, &catalog, &path, admit)?,
        };
        Ok(self.names.described(statement))
    }

    /// Along which names without a schema are looked for: the schemas of `search_path` that there
    /// are, behind that of temporary objects if it is not among them.
    pub(super) fn path(&self) -> SearchPath {
        let catalog = self.session.catalog();
        let path = self.path_set(&catalog);
        match catalog.temporary_schema() {
            None => path,
            Some(own) => path.behind(own),
        }
    }

    fn path_set(&self, catalog: &Catalog) -> SearchPath {
        if !self.settings.is_set("search_path") && !catalog.has_schema(self.acting_role()) {
            return SearchPath::default();
        }
        let value = self.settings.get("search_path").unwrap_or_default();
        let schemas = settings::schemas_of(value).unwrap_or_default();
        let schemas = schemas.into_iter().map(|schema| match schema.as_str() {
            "$user" => self.acting_role().to_owned(),
            TEMPORARY_SCHEMA => catalog.temporary_schema().unwrap_or_default().to_owned(),
            _ => schema,
        });
        let mut found: Vec<String> = Vec::new();
        for schema in schemas.filter(|schema| catalog.has_schema(schema)) {
            if !found.contains(&schema) {
                found.push(schema);
            }
        }
        SearchPath::new(found)
    }

    /// The catalog as the session sees it.
    pub(super) fn seen(&self) -> Arc<Catalog> {
        self.session.catalog().along(&self.path())
    }

    /// Refuses what a failed block refuses.
    fn admit(&self, tree: &Tree) -> Result<()> {
        admit(tree, self.session.has_failed())
    }

    /// Whether the session's role may run the statement.
    ///
    /// # Errors
    /// 42501; 42704 when the role is gone.
    pub(super) fn authorize(&self, statement: &Statement) -> Result<()> {
        let catalog = self.session.catalog();
        let roles = catalog.roles();
        let role = match roles.require(self.acting_role()) {
            // What others' views and routines do, their owners must be allowed to do.
            Ok(role) if role.is_superuser && roles.belongs_to_superusers() => return Ok(()),
            Ok(role) => role,
            // A session whose role is gone can go back to its own.
            Err(_) if statement.tree().is_some_and(|tree| sets_role(tree)) => return Ok(()),
            Err(error) => return Err(error),
        };
        if statement.kind() == StatementKind::Definition
            || matches!(
                statement.tree().map(|tree| &**tree),
                Some(Tree::Truncate(_))
            )
        {
            let Some(tree) = statement.tree() else {
                return Ok(());
            };
            if roles::is_free(tree) && self.is_of_temporary(tree)? {
                return Ok(());
            }
            return check_definition(&self.seen(), role, tree, statement.command());
        }
        let plan = statement.plan(&catalog)?;
        let mut accesses = plan.accesses().iter();
        accesses.try_for_each(|access| roles.check(role, access))
    }

    /// Its number, by which metrics and messages name it; no other session of the database has the
    /// same.
    pub fn number(&self) -> u64 {
        self.session.number()
    }

    /// The name of the role that opened the session.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// The name of the role that SET SESSION AUTHORIZATION has named, or that opened the session.
    pub(super) fn session_role(&self) -> &str {
        self.settings
            .given("session_authorization")
            .unwrap_or(&self.role)
    }

    /// The name of the role with whose privileges statements run.
    pub(super) fn acting_role(&self) -> &str {
        match self.settings.given("role") {
            Some(role) if role != NO_ROLE => role,
            _ => self.session_role(),
        }
    }

    fn run_statement(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        self.check_idle()?;
        self.session.begin_statement();
        let mut result = self.dispatch(statement, values);
        self.session.end_statement();
        if let (Some(warnings), Ok(result)) = (self.warnings.take(), &mut result) {
            result.notices.extend(warnings.0);
        }
        let result = result.map(|result| self.audible(result));
        result.map_err(|error| {
            let error = self.failed(error);
            of_statement(error, statement.text()).or_at(statement.position())
        })
    }

    pub(super) fn dispatch(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        let Some(tree) = statement.tree() else {
            return Ok(StatementResult::default());
        };
        self.admit(tree)?;
        self.authorize(statement)?;
        self.check_writable(statement)?;
        self.settings.modes.has_looked |= tree.looks_at_data();
        match &**tree {
            Tree::Commit { chain: true } => self.and_chain("COMMIT", Session::commit),
            Tree::Rollback { chain: true } => {
                self.and_chain("ROLLBACK", Session::end_without_effects)
            }
            Tree::Commit { chain: false } => self.commit(),
            Tree::Rollback { chain: false } => self.end_without_effects(),
            Tree::Query(_)
            | Tree::Insert(_)
            | Tree::Update(_)
            | Tree::Delete(_)
            | Tree::Merge(_) => self.run_data(statement, values),
            Tree::Call(_) => self.call(statement, values),
            Tree::Do(block) if is_stepped(block) => self.do_stepped(block),
            Tree::Do(_) => {
                let block: Arc<dyn kiln_engine::Statement> = Arc::new(Block {
                    tree: tree.clone(),
                    role: self.acting_role().to_owned(),
                    path: statement.path().clone(),
                });
                let rows = self.session.run_statement(&block, &mut Arguments::new())?;
                let notices = notices_of(&rows);
                Ok(StatementResult {
                    notices,
                    ..StatementResult::of_tag("DO")
                })
            }
            Tree::Begin(begin) => self.begin(begin),
            Tree::Savepoint(name) => self.set_savepoint(name),
            Tree::Release(name) => self.release_savepoint(name),
            Tree::RollbackTo(name) => self.roll_back_to(name),
            Tree::Set(set) => self.set(settings::assignments(set)?, "SET LOCAL"),
            Tree::SetTransaction(set) => {
                let modes = settings::modes_of(&set.modes, set.is_of_session);
                self.set(modes, "SET TRANSACTION")
            }
            Tree::SetConstraints(set) => self.set_constraints(set),
            Tree::Reset(name) => {
                let in_block = self.session.in_transaction();
                match name {
                    None => {
                        self.settings.reset_all(in_block);
                        self.apply_settings();
                    }
                    Some(name) => self.assign(Assignment {
                        name: name.clone(),
                        value: None,
                        scope: Scope::Session,
                    })?,
                }
                Ok(StatementResult::of_tag("RESET"))
            }
            Tree::Show(name) => match settings::shown(name) {
                Some(shown) => Ok(settings::show(name, self.setting(&shown)?)),
                None => {
                    let mut rows = self.settings.all();
                    for [name, value, _] in &mut rows {
                        *value = self.setting(&name.to_lowercase())?;
                    }
                    Ok(settings::show_all(rows))
                }
            },
            Tree::Discard(what) => self.discard(*what),
            Tree::Prepare(prepare) => self.prepare(prepare, statement.text()),
            Tree::Execute(execute) => {
                let (prepared, values) = self.execute_as(execute, statement, values)?;
                self.dispatch(&prepared, &values)
            }
            Tree::Deallocate(name) => self.deallocate(name.as_deref()),
            Tree::Declare(declare) => self.declare(declare, statement, values),
            Tree::Fetch(fetch) => self.fetch(fetch),
            Tree::Close(name) => self.close(name.as_deref()),
            Tree::Lock(lock) => self.lock_tables(lock),
            Tree::Listen(channel) => self.listen(channel),
            Tree::Unlisten(channel) => self.unlisten(channel.as_deref()),
            Tree::Notify(notify) => self.notify(notify),
            Tree::Copy(_) => Err(Error::unsupported("COPY without a client of a server")
                .with_hint("Connect to `kiln serve`, with psql's \\copy for instance.")),
            Tree::Vacuum(vacuum) => self.vacuum(vacuum),
            Tree::Checkpoint => self.checkpoint(),
            Tree::Reorder(reorder) => self.reorder(reorder),
            Tree::Explain(explain) => self.explain(explain, statement, values),
            Tree::CreateTableAs(create) => self.create_table_as(create, statement),
            Tree::CreateMaterializedView(create) => {
                self.create_materialized_view(tree, create, statement)
            }
            Tree::RefreshMaterializedView(refresh) => {
                self.refresh_materialized_view(tree, refresh, statement)
            }
            Tree::Truncate(truncate)
                if self.session.in_transaction()
                    && truncate.identity != Some(TruncateIdentityOption::Restart)
                    && !self.is_of_temporary(tree)? =>
            {
                self.truncate_in_block(truncate)
            }
            tree => self.define(tree, statement),
        }
    }

    /// A query, INSERT, UPDATE or DELETE.
    pub(super) fn run_data(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<StatementResult> {
        if statement.kind() == StatementKind::Write
            && let plan @ Plan::Stepped(call) = &statement.plan(&self.session.catalog())?
            && let Some(stepped) = stepped_of(plan)
        {
            return self.call_stepped(statement, call, stepped, values);
        }
        let program = statement.to_run();
        let mut arguments = self.arguments(statement, values)?;
        let rows = self.session.run_statement(&program, &mut arguments);
        if !statement.session_values().is_empty() {
            self.warn_of_missed();
        }
        statement.result_of(rows?)
    }

    /// The values of a statement's parameters, and behind them what the session gives it.
    pub(super) fn arguments(
        &mut self,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Arguments> {
        let mut all = values.to_vec();
        for value in statement.session_values() {
            all.push(match value {
                SessionValue::Advisory(call) => self.advisory(call, statement, values)?,
                SessionValue::Sleep(seconds) => self.sleep(seconds, statement, values)?,
                SessionValue::Terminate(arguments) => {
                    self.terminate(arguments, statement, values)?
                }
                value => self.session_value(value, values)?,
            });
        }
        Ok(Arguments::from_values(&all))
    }

    /// What a COPY copies, and how.
    ///
    /// # Errors
    /// 25P02 in a failed block, 42501 without the privilege, 25006 for rows that come in where that
    /// is not allowed; 55000 for another statement. An error fails an open block.
    pub fn copy(&mut self, statement: &Statement) -> Result<Arc<Copying>> {
        self.copying(statement).map_err(|error| {
            self.session.fail();
            of_statement(error, statement.text()).or_at(statement.position())
        })
    }

    fn copying(&mut self, statement: &Statement) -> Result<Arc<Copying>> {
        let no_copy = || Error::internal("the statement is no COPY");
        let tree = statement.tree().ok_or_else(no_copy)?;
        self.admit(tree)?;
        if let Tree::Copy(copy) = &**tree {
            let catalog = self.session.catalog();
            check_file(copy, catalog.roles().require(self.acting_role())?)?;
        }
        self.authorize(statement)?;
        self.check_writable(statement)?;
        self.settings.modes.has_looked = true;
        match statement.plan(&self.session.catalog())? {
            Plan::Copy(copying) => Ok(copying),
            _ => Err(no_copy()),
        }
    }

    /// CALL.
    fn call(&mut self, statement: &Statement, values: &[Value]) -> Result<StatementResult> {
        let Plan::Call(plan) = statement.plan(&self.session.catalog())? else {
            return Err(Error::internal("a CALL was planned as something else"));
        };
        if let Some(stepped) = &plan.stepped {
            return self.call_stepped(statement, &plan, stepped, values);
        }
        let rows = self.call_rows(statement, &plan, values)?;
        Ok(result_of_call(rows))
    }

    pub(super) fn call_rows(
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
        self.in_one_transaction(|session| {
            call::compute_and_call(&mut session.session, statement, values)
        })
    }
}

/// The block of a DO statement, compiled whenever it runs.
struct Block {
    tree: Arc<Tree>,
    role: String,
    path: SearchPath,
}

impl kiln_engine::Statement for Block {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        let Tree::Do(block) = &*self.tree else {
            return Err(Error::internal("the statement is no DO"));
        };
        let view = View::along(catalog, &self.path);
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

/// Whether a statement names the role with whose privileges others run.
fn sets_role(tree: &Tree) -> bool {
    match tree {
        Tree::Set(set) => matches!(**set, Set::SetRole { .. } | Set::SetSessionAuthorization(_)),
        Tree::Reset(name) => matches!(name.as_deref(), Some("role" | "session_authorization")),
        Tree::Discard(what) => matches!(what, Discarded::All),
        _ => false,
    }
}

/// Refuses, in a failed block, all but its end.
fn admit(tree: &Tree, has_failed: bool) -> Result<()> {
    let is_end = matches!(
        tree,
        Tree::Commit { .. } | Tree::Rollback { .. } | Tree::RollbackTo(_)
    );
    if has_failed && !is_end {
        return Err(Error::new(
            SqlState::IN_FAILED_SQL_TRANSACTION,
            "current transaction is aborted, commands ignored until end of transaction block",
        ));
    }
    Ok(())
}
