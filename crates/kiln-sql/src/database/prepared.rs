//! Statements in stages: one is parsed and analysed once, described, bound to values and executed
//! any number of times.

use kiln_engine::{Access, Catalog, Rows, SearchPath};
use kiln_platform::sync::{Arc, Mutex, OnceLock, Weak, lock};
use kiln_procedure::Program;
use kiln_storage::error::{Error, Position, Result, SqlState};
use kiln_storage::types::{DataType, Style, Value};

use super::call::CallPlan;
use super::copy::Copying;
use super::explain::Explanation;
use super::objects;
use super::portal::Portal;
use super::result::StatementResult;
use super::statement::{Prepared, Shape, compile, result_of, result_of_call};
use super::stepped::stepped_call;
use super::{explain, role_settings, settings, values};
use crate::compile::{ColumnMeta, ColumnOrigin, SessionValue};
use crate::parse::{self, DropKind, ExtensionStatement, RoutineKind};

/// A column of a statement's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name. Names may repeat.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// The column of a table that it shows, where it shows one as it stands.
    pub origin: Option<ColumnOrigin>,
}

/// What kind of thing a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// There is no statement: the text has no token.
    Empty,
    /// It reads and has no effects.
    Read,
    /// It may change rows: INSERT, UPDATE, DELETE, TRUNCATE, CALL, DO, a query that calls a
    /// function which writes.
    Write,
    /// BEGIN, COMMIT or ROLLBACK.
    TransactionControl,
    /// SAVEPOINT, RELEASE or ROLLBACK TO, in a transaction block.
    Savepoint,
    /// SET, SHOW or EXPLAIN.
    Utility,
    /// It changes the catalog.
    Definition,
}

/// A statement that was parsed and analysed: the types of its parameters and columns are known.
///
/// It belongs to no session and no transaction, and may be bound and executed by any session of its
/// database. When the catalog changed since, it is compiled again by itself; its parameters keep
/// their types, and execution fails with 0A000 if its columns would not.
#[derive(Clone)]
pub struct Statement {
    inner: Arc<Inner>,
}

struct Inner {
    text: String,
    position: Position,
    /// `None` for the empty statement.
    tree: Option<Arc<parse::Statement>>,
    /// The parameters' types as far as the client declared them.
    declared: Vec<Option<DataType>>,
    /// Along which its names without a schema are looked for.
    path: SearchPath,
    /// What the first analysis found.
    description: OnceLock<Description>,
    /// Whether its columns are those of something that has a name in the session.
    is_of_session: bool,
    /// The statement compiled for the catalog beside it.
    plan: Mutex<Option<(Weak<Catalog>, Plan)>>,
}

struct Description {
    parameters: Vec<DataType>,
    columns: Option<Vec<Column>>,
    kind: StatementKind,
    /// What the session gives it, as parameters behind its own.
    session_values: Arc<[SessionValue]>,
}

/// A statement compiled for one catalog.
#[derive(Clone)]
pub(super) enum Plan {
    /// A query, INSERT, UPDATE or DELETE.
    Data(Prepared),
    Call(Arc<CallPlan>),
    /// A query that only calls a function which is run step by step.
    Stepped(Arc<CallPlan>),
    Explain(Arc<ExplainPlan>),
    Copy(Arc<Copying>),
    /// Nothing of it is compiled ahead.
    Other,
}

/// EXPLAIN of a statement that is compiled ahead.
pub(super) struct ExplainPlan {
    pub explanation: Explanation,
    /// What EXPLAIN ANALYZE runs.
    pub analyzed: Plan,
}

impl Statement {
    /// The statement without a token.
    pub(super) fn empty() -> Statement {
        let position = Position { line: 1, column: 1 };
        let statement = Statement::of(
            None,
            String::new(),
            position,
            Vec::new(),
            &SearchPath::default(),
        );
        let description = Description {
            parameters: Vec::new(),
            columns: None,
            kind: StatementKind::Empty,
            session_values: Arc::default(),
        };
        let _ = statement.inner.description.set(description);
        statement
    }

    /// What a cursor says that a body has opened: it is not run again.
    pub(super) fn of_rows(columns: Vec<Column>) -> Statement {
        Statement::empty().with_description(Some(columns), StatementKind::Utility)
    }

    /// Analyses a statement.
    ///
    /// # Errors
    /// What PostgreSQL reports when it analyses the statement; 42P18 and 42P08 for parameters whose
    /// types cannot be inferred.
    pub(super) fn analyse(
        tree: Arc<parse::Statement>,
        source: &parse::SourceStatement<'_>,
        declared: Vec<Option<DataType>>,
        catalog: &Arc<Catalog>,
        path: &SearchPath,
    ) -> Result<Statement> {
        let text = source.text.to_owned();
        let statement = Statement::of(Some(tree), text, source.position(), declared, path);
        statement.plan(catalog)?;
        Ok(statement)
    }

    fn of(
        tree: Option<Arc<parse::Statement>>,
        text: String,
        position: Position,
        declared: Vec<Option<DataType>>,
        path: &SearchPath,
    ) -> Statement {
        Statement {
            inner: Arc::new(Inner {
                text,
                position,
                tree,
                declared,
                path: path.clone(),
                description: OnceLock::new(),
                is_of_session: false,
                plan: Mutex::new(None),
            }),
        }
    }

    /// The statement with columns that the session knows.
    pub(super) fn with_description(
        &self,
        columns: Option<Vec<Column>>,
        kind: StatementKind,
    ) -> Statement {
        let inner = &*self.inner;
        let description = Description {
            parameters: self.parameters().to_vec(),
            columns,
            kind,
            session_values: self.session_values().into(),
        };
        Statement {
            inner: Arc::new(Inner {
                text: inner.text.clone(),
                position: inner.position,
                tree: inner.tree.clone(),
                declared: inner.declared.clone(),
                path: inner.path.clone(),
                description: OnceLock::from(description),
                is_of_session: true,
                plan: Mutex::new(None),
            }),
        }
    }

    /// The text, without its semicolon.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// Where the text begins in its script.
    pub(super) fn position(&self) -> Position {
        self.inner.position
    }

    /// The syntax tree; `None` for the empty statement.
    pub(super) fn tree(&self) -> Option<&Arc<parse::Statement>> {
        self.inner.tree.as_ref()
    }

    /// Along which its names without a schema are looked for.
    pub(super) fn path(&self) -> &SearchPath {
        &self.inner.path
    }

    fn description(&self) -> Option<&Description> {
        self.inner.description.get()
    }

    /// The types of the parameters `$1`, `$2`, …: those declared, the others inferred.
    pub fn parameters(&self) -> &[DataType] {
        self.description().map_or(&[], |it| &it.parameters)
    }

    /// The columns of the rows; `None` for a statement that returns no rows.
    pub fn columns(&self) -> Option<&[Column]> {
        self.description().and_then(|it| it.columns.as_deref())
    }

    /// What kind of thing the statement does.
    pub fn kind(&self) -> StatementKind {
        self.description()
            .map_or(StatementKind::Empty, |it| it.kind)
    }

    /// What the session gives it before it runs, as parameters behind its own.
    pub(super) fn session_values(&self) -> &[SessionValue] {
        self.description().map_or(&[], |it| &it.session_values)
    }

    /// The command as PostgreSQL's command tags begin, for instance `INSERT` or `CREATE TABLE`;
    /// empty for the empty statement.
    pub fn command(&self) -> &'static str {
        self.tree().map_or("", |tree| command(tree))
    }

    /// Whether it is COMMIT or ROLLBACK with AND CHAIN.
    pub fn is_chained(&self) -> bool {
        let tree = self.tree().map(|tree| &**tree);
        matches!(
            tree,
            Some(
                parse::Statement::Commit { chain: true }
                    | parse::Statement::Rollback { chain: true }
            )
        )
    }

    /// The procedure that it calls, if it is a CALL.
    pub fn procedure(&self) -> Option<&str> {
        match self.tree().map(|tree| &**tree) {
            Some(parse::Statement::Call(call)) => {
                let name = call.name.0.last()?.as_ident()?;
                Some(&name.value)
            }
            _ => None,
        }
    }

    /// Gives the parameters their values, converted to the parameters' types; texts are read as
    /// literals of them. The session that will execute the portal may be asked to do it instead, as
    /// an error must fail its block: [`Session::bind`](super::Session::bind).
    ///
    /// # Errors
    /// 08P01 for a wrong number of values, 42804 for a type that does not convert, 22P02, 22003 and
    /// their like for values that do not fit.
    pub fn bind(&self, values: &[Value]) -> Result<Portal> {
        self.bind_in(values, &Style::default())
    }

    /// [`Statement::bind`] in the style of a session.
    pub(super) fn bind_in(&self, values: &[Value], style: &Style<'_>) -> Result<Portal> {
        let values = values::bind(self.parameters(), values, style)?;
        Ok(Portal::new(self.clone(), values))
    }

    /// Whether the statement is compiled for `catalog`.
    pub(super) fn is_planned_for(&self, catalog: &Arc<Catalog>) -> bool {
        let plan = lock(&self.inner.plan);
        plan.as_ref()
            .is_some_and(|(known, _)| is_same(known, catalog))
    }

    /// The statement compiled for `catalog`.
    ///
    /// # Errors
    /// Those of the compiler; 0A000 when the columns are not what was described.
    pub(super) fn plan(&self, catalog: &Arc<Catalog>) -> Result<Plan> {
        self.inner.plan(catalog)
    }

    /// What the rows say that its program has emitted.
    ///
    /// # Errors
    /// XX000 for a statement that has no program.
    pub(super) fn result_of(&self, rows: Rows) -> Result<StatementResult> {
        let tree = self.tree().map(|tree| &**tree);
        let returns = |returning: bool, command| match returning {
            true => Shape::Returning(command),
            false => Shape::Count(command),
        };
        let shape = match tree {
            Some(parse::Statement::Call(_)) => return Ok(result_of_call(rows)),
            Some(parse::Statement::Query(query))
                if let Some((command, returning)) = parse::change_of(query) =>
            {
                returns(returning, command)
            }
            Some(
                parse::Statement::Query(_)
                | parse::Statement::Declare(_)
                | parse::Statement::Execute(_),
            ) => Shape::Query,
            Some(parse::Statement::Insert(it)) => returns(it.returning.is_some(), "INSERT 0"),
            Some(parse::Statement::Update(it)) => returns(it.returning.is_some(), "UPDATE"),
            Some(parse::Statement::Delete(it)) => returns(it.returning.is_some(), "DELETE"),
            Some(parse::Statement::Merge(_)) => returns(false, "MERGE"),
            _ => return Err(cannot_submit()),
        };
        Ok(result_of(shape, rows))
    }

    /// What a query, INSERT, UPDATE or DELETE is to those that ask for its program.
    pub(super) fn to_run(&self) -> Arc<dyn kiln_engine::Statement> {
        self.inner.clone()
    }
}

impl kiln_engine::Statement for Inner {
    fn program(&self, catalog: &Arc<Catalog>) -> Result<Arc<Program>> {
        match self.plan(catalog)? {
            Plan::Data(prepared) => Ok(prepared.program),
            Plan::Stepped(call) => Err(call.only_alone()),
            _ => Err(cannot_submit()),
        }
    }

    fn text(&self) -> Option<&str> {
        Some(&self.text)
    }
}

/// The error of a statement that needs a thread of its own.
#[cold]
pub(super) fn cannot_submit() -> Error {
    Error::unsupported("a statement of this kind cannot be submitted")
        .with_hint("Execute it in a thread of its own.")
}

impl Inner {
    fn plan(&self, catalog: &Arc<Catalog>) -> Result<Plan> {
        let Some(tree) = &self.tree else {
            return Ok(Plan::Other);
        };
        let mut plan = lock(&self.plan);
        if let Some((known, plan)) = &*plan
            && is_same(known, catalog)
        {
            return Ok(plan.clone());
        }
        let mut declared = match self.description.get() {
            Some(known) => known.parameters.iter().cloned().map(Some).collect(),
            None => self.declared.clone(),
        };
        for data_type in declared.iter_mut().flatten() {
            // It may have other labels since.
            if let Some(of) = data_type.enumeration()
                && let Some(DataType::Enum(now)) = catalog.type_numbered(of.oid())
            {
                *data_type = data_type.with_enumeration(&now);
            }
        }
        let (fresh, description) = plan_of(tree, &declared, &catalog.along(&self.path))?;
        let known = self.description.get_or_init(|| Description {
            parameters: description.parameters,
            columns: description.columns.clone(),
            kind: description.kind,
            session_values: description.session_values,
        });
        if !self.is_of_session
            && !is_same_shape(known.columns.as_deref(), description.columns.as_deref())
        {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cached plan must not change result type",
            ));
        }
        *plan = Some((Arc::downgrade(catalog), fresh.clone()));
        Ok(fresh)
    }
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statement")
            .field("text", &self.inner.text)
            .field("parameters", &self.parameters())
            .field("columns", &self.columns())
            .finish_non_exhaustive()
    }
}

/// Whether `known` is `catalog`: an address is not used again while a weak pointer holds it.
fn is_same(known: &Weak<Catalog>, catalog: &Arc<Catalog>) -> bool {
    std::ptr::eq(known.as_ptr(), Arc::as_ptr(catalog))
}

fn is_same_shape(one: Option<&[Column]>, other: Option<&[Column]>) -> bool {
    let shape = |columns: &[Column]| -> Vec<(String, DataType)> {
        let columns = columns.iter();
        let columns = columns.map(|column| (column.name.clone(), column.data_type.clone()));
        columns.collect()
    };
    one.map(shape) == other.map(shape)
}

/// Compiles a statement, as far as that is done ahead.
fn plan_of(
    tree: &parse::Statement,
    declared: &[Option<DataType>],
    catalog: &Arc<Catalog>,
) -> Result<(Plan, Description)> {
    use parse::Statement as Tree;
    let described = |columns, kind| -> Result<Description> {
        Ok(Description {
            parameters: without_inference(declared)?,
            columns,
            kind,
            session_values: Arc::default(),
        })
    };
    Ok(match tree {
        Tree::Query(query) if let Some(call) = stepped_call(catalog, query) => {
            let plan = Arc::new(CallPlan::of_function(catalog, &call, declared)?);
            let description = Description {
                parameters: plan.parameters.clone(),
                columns: Some(plan.columns()),
                kind: StatementKind::Write,
                session_values: Arc::default(),
            };
            (Plan::Stepped(plan), description)
        }
        Tree::Query(_) | Tree::Insert(_) | Tree::Update(_) | Tree::Delete(_) | Tree::Merge(_) => {
            let prepared = compile(catalog, tree, declared)?;
            let columns = match prepared.shape {
                Shape::Count(_) => None,
                _ => Some(prepared.columns.iter().map(Column::from).collect()),
            };
            let description = Description {
                parameters: prepared.parameters.to_vec(),
                columns,
                kind: match &prepared.program.analysis {
                    it if it.is_read_only() && !it.advances() => StatementKind::Read,
                    _ => StatementKind::Write,
                },
                session_values: prepared.session_values.clone(),
            };
            (Plan::Data(prepared), description)
        }
        Tree::Call(call) => {
            let plan = CallPlan::of(catalog, call, declared)?;
            let columns = plan.columns();
            let description = Description {
                parameters: plan.parameters.clone(),
                columns: (!columns.is_empty()).then_some(columns),
                kind: StatementKind::Write,
                session_values: Arc::default(),
            };
            (Plan::Call(Arc::new(plan)), description)
        }
        Tree::Explain(explain) => explanation_of(explain, declared, catalog)?,
        Tree::Show(name) => {
            let columns = settings::shown_columns(name);
            let columns = columns.iter().map(|name| Column::of_text(name)).collect();
            (
                Plan::Other,
                described(Some(columns), StatementKind::Utility)?,
            )
        }
        Tree::Declare(declare) => {
            let query = Tree::Query(declare.query.clone());
            let (plan, inner) = plan_of(&query, declared, catalog)?;
            let description = Description {
                columns: None,
                kind: StatementKind::Utility,
                ..inner
            };
            (plan, description)
        }
        Tree::Execute(execute) => match &execute.values {
            Some(query) => {
                let query = Tree::Query(query.clone());
                let (plan, inner) = plan_of(&query, declared, catalog)?;
                let description = Description {
                    columns: None,
                    kind: StatementKind::Utility,
                    ..inner
                };
                (plan, description)
            }
            None => (Plan::Other, described(None, StatementKind::Utility)?),
        },
        // Its parameters are those of the statement that is prepared.
        Tree::Prepare(_) => {
            let description = Description {
                parameters: Vec::new(),
                columns: None,
                kind: StatementKind::Utility,
                session_values: Arc::default(),
            };
            (Plan::Other, description)
        }
        // Nothing of the query is kept: it fills a table that there is not yet.
        Tree::CreateTableAs(create) => {
            plan_of(&create.rows, declared, catalog)?;
            (Plan::Other, described(None, StatementKind::Definition)?)
        }
        Tree::Copy(copy) => {
            let copying = Copying::of(copy, catalog)?;
            let kind = match copying.is_in {
                true => StatementKind::Write,
                false => copying.statement.kind(),
            };
            (Plan::Copy(Arc::new(copying)), described(None, kind)?)
        }
        other => (Plan::Other, described(None, kind(other))?),
    })
}

/// Compiles the statement of an EXPLAIN, and explains it. What EXECUTE runs is known to the session
/// alone.
fn explanation_of(
    explain: &parse::Explain,
    declared: &[Option<DataType>],
    catalog: &Arc<Catalog>,
) -> Result<(Plan, Description)> {
    let (analyzed, inner) = plan_of(&explain.statement, declared, catalog)?;
    let options = explain.options()?;
    let description = Description {
        parameters: inner.parameters,
        columns: Some(vec![explain::column(options.format)]),
        kind: match options.analyze {
            true => inner.kind,
            false => StatementKind::Utility,
        },
        session_values: inner.session_values,
    };
    let explanation = match &analyzed {
        _ if matches!(*explain.statement, parse::Statement::Execute(_)) => {
            return Ok((Plan::Other, description));
        }
        Plan::Data(prepared) => Explanation::of_program(&prepared.program, options),
        Plan::Call(call) => {
            let procedure = catalog.require_procedure(&call.name)?;
            Explanation::of_procedure(catalog, procedure, options)
        }
        _ => return Err(Error::unsupported("EXPLAIN of this statement")),
    };
    let plan = ExplainPlan {
        explanation,
        analyzed,
    };
    Ok((Plan::Explain(Arc::new(plan)), description))
}

/// The parameters' types where there is no expression to infer one from.
fn without_inference(declared: &[Option<DataType>]) -> Result<Vec<DataType>> {
    let declared = declared.iter().enumerate();
    let types = declared.map(|(index, data_type)| {
        data_type.clone().ok_or_else(|| {
            Error::new(
                SqlState::INDETERMINATE_DATATYPE,
                format!("could not determine data type of parameter ${}", index + 1),
            )
        })
    });
    types.collect()
}

/// What kind of thing a statement does that is not compiled ahead.
fn kind(tree: &parse::Statement) -> StatementKind {
    use parse::Statement as Tree;
    match tree {
        Tree::Begin(_) | Tree::Commit { .. } | Tree::Rollback { .. } => {
            StatementKind::TransactionControl
        }
        Tree::Savepoint(_) | Tree::Release(_) | Tree::RollbackTo(_) => StatementKind::Savepoint,
        Tree::Set(_)
        | Tree::SetTransaction(_)
        | Tree::SetConstraints(_)
        | Tree::Show(_)
        | Tree::Reset(_)
        | Tree::Discard(_)
        | Tree::Prepare(_)
        | Tree::Execute(_)
        | Tree::Deallocate(_)
        | Tree::Declare(_)
        | Tree::Fetch(_)
        | Tree::Close(_)
        | Tree::Lock(_)
        | Tree::Checkpoint
        | Tree::Explain(_) => StatementKind::Utility,
        // What it does is done when its transaction commits.
        Tree::Listen(_) | Tree::Unlisten(_) | Tree::Notify(_) => StatementKind::Read,
        Tree::Copy(_) => StatementKind::Write,
        Tree::Truncate(_) | Tree::Do(_) | Tree::Call(_) => StatementKind::Write,
        Tree::Query(_) | Tree::Insert(_) | Tree::Update(_) | Tree::Delete(_) | Tree::Merge(_) => {
            StatementKind::Write
        }
        Tree::CreateTable(_)
        | Tree::CreateTableAs(_)
        | Tree::CreateSchema(_)
        | Tree::AlterSchema(_)
        | Tree::DropSchema(_)
        | Tree::Extension(_)
        | Tree::CreateSequence(_)
        | Tree::AlterSequence(_)
        | Tree::CreateIndex(_)
        | Tree::CreateTrigger(_)
        | Tree::DropTrigger(_)
        | Tree::RenameTrigger(_)
        | Tree::CreateView(_)
        | Tree::AlterView(_)
        | Tree::CreateMaterializedView(_)
        | Tree::RefreshMaterializedView(_)
        | Tree::CreateEnum(_)
        | Tree::CreateComposite(_)
        | Tree::AlterType(_)
        | Tree::CreateDomain(_)
        | Tree::AlterDomain(_)
        | Tree::AlterTable(_)
        | Tree::AlterObject(_)
        | Tree::Analyze(_)
        | Tree::Vacuum(_)
        | Tree::Reorder(_)
        | Tree::Drop(_)
        | Tree::CreateFunction(_)
        | Tree::DropFunction(_)
        | Tree::CreateRole(_)
        | Tree::AlterRole(_)
        | Tree::RoleSetting(_)
        | Tree::DropRole(_)
        | Tree::Owned(_)
        | Tree::Grant(_)
        | Tree::GrantRoles(_)
        | Tree::DefaultPrivileges(_)
        | Tree::Comment(_) => StatementKind::Definition,
    }
}

fn command(tree: &parse::Statement) -> &'static str {
    use parse::Statement as Tree;
    match tree {
        Tree::Query(_) => "SELECT",
        Tree::Insert(_) => "INSERT",
        Tree::Update(_) => "UPDATE",
        Tree::Delete(_) => "DELETE",
        Tree::Merge(_) => "MERGE",
        Tree::CreateTable(_) => "CREATE TABLE",
        Tree::CreateTableAs(_) => "CREATE TABLE AS",
        Tree::CreateSchema(_) => "CREATE SCHEMA",
        Tree::AlterSchema(_) => "ALTER SCHEMA",
        Tree::DropSchema(_) => "DROP SCHEMA",
        Tree::Extension(statement) => match **statement {
            ExtensionStatement::Create { .. } => "CREATE EXTENSION",
            ExtensionStatement::Update { .. } => "ALTER EXTENSION",
            ExtensionStatement::Drop { .. } => "DROP EXTENSION",
        },
        Tree::CreateSequence(_) => "CREATE SEQUENCE",
        Tree::AlterSequence(_) => "ALTER SEQUENCE",
        Tree::CreateIndex(_) => "CREATE INDEX",
        Tree::CreateTrigger(_) => "CREATE TRIGGER",
        Tree::DropTrigger(_) => "DROP TRIGGER",
        Tree::RenameTrigger(_) => "ALTER TRIGGER",
        Tree::CreateView(_) => "CREATE VIEW",
        Tree::AlterView(_) => "ALTER VIEW",
        Tree::CreateMaterializedView(_) => "CREATE MATERIALIZED VIEW",
        Tree::RefreshMaterializedView(_) => "REFRESH MATERIALIZED VIEW",
        Tree::CreateEnum(_) | Tree::CreateComposite(_) => "CREATE TYPE",
        Tree::AlterType(_) => "ALTER TYPE",
        Tree::CreateDomain(_) => "CREATE DOMAIN",
        Tree::AlterDomain(_) => "ALTER DOMAIN",
        Tree::AlterTable(_) => "ALTER TABLE",
        Tree::AlterObject(statement) => objects::tag(&statement.object),
        Tree::Analyze(_) => "ANALYZE",
        Tree::Drop(drop) => match drop.kind {
            DropKind::Table => "DROP TABLE",
            DropKind::Index => "DROP INDEX",
            DropKind::Sequence => "DROP SEQUENCE",
            DropKind::View => "DROP VIEW",
            DropKind::MaterializedView => "DROP MATERIALIZED VIEW",
            DropKind::Type => "DROP TYPE",
            DropKind::Domain => "DROP DOMAIN",
        },
        Tree::Truncate(_) => "TRUNCATE TABLE",
        Tree::Begin(begin) => begin.tag(),
        Tree::Commit { .. } => "COMMIT",
        Tree::Rollback { .. } | Tree::RollbackTo(_) => "ROLLBACK",
        Tree::Savepoint(_) => "SAVEPOINT",
        Tree::Release(_) => "RELEASE",
        Tree::CreateFunction(definition) => match definition.kind {
            RoutineKind::Function => "CREATE FUNCTION",
            RoutineKind::Procedure => "CREATE PROCEDURE",
        },
        Tree::DropFunction(drop) => match drop.kind {
            Some(RoutineKind::Function) => "DROP FUNCTION",
            Some(RoutineKind::Procedure) => "DROP PROCEDURE",
            None => "DROP ROUTINE",
        },
        Tree::CreateRole(_) => "CREATE ROLE",
        Tree::AlterRole(_) => "ALTER ROLE",
        Tree::RoleSetting(it) => role_settings::tag(it),
        Tree::DropRole(_) => "DROP ROLE",
        Tree::Owned(owned) if owned.to.is_some() => "REASSIGN OWNED",
        Tree::Owned(_) => "DROP OWNED",
        Tree::GrantRoles(grant) if grant.is_revoke => "REVOKE ROLE",
        Tree::GrantRoles(_) => "GRANT ROLE",
        Tree::DefaultPrivileges(_) => "ALTER DEFAULT PRIVILEGES",
        Tree::Grant(grant) if grant.is_revoke => "REVOKE",
        Tree::Grant(_) => "GRANT",
        Tree::Comment(_) => "COMMENT",
        Tree::Call(_) => "CALL",
        Tree::Explain(_) => "EXPLAIN",
        Tree::Set(_) | Tree::SetTransaction(_) => "SET",
        Tree::SetConstraints(_) => "SET CONSTRAINTS",
        Tree::Show(_) => "SHOW",
        Tree::Do(_) => "DO",
        Tree::Reset(_) => "RESET",
        Tree::Discard(_) => "DISCARD",
        Tree::Prepare(_) => "PREPARE",
        Tree::Execute(_) => "EXECUTE",
        Tree::Deallocate(_) => "DEALLOCATE",
        Tree::Declare(_) => "DECLARE CURSOR",
        Tree::Fetch(fetch) if fetch.is_move => "MOVE",
        Tree::Fetch(_) => "FETCH",
        Tree::Close(_) => "CLOSE CURSOR",
        Tree::Lock(_) => "LOCK TABLE",
        Tree::Listen(_) => "LISTEN",
        Tree::Unlisten(_) => "UNLISTEN",
        Tree::Notify(_) => "NOTIFY",
        Tree::Copy(_) => "COPY",
        Tree::Vacuum(_) => "VACUUM",
        Tree::Checkpoint => "CHECKPOINT",
        Tree::Reorder(reorder) => reorder.command,
    }
}

impl Column {
    /// A column of texts that comes from no table.
    pub(super) fn of_text(name: &str) -> Column {
        Column {
            name: name.to_owned(),
            data_type: DataType::Text,
            origin: None,
        }
    }
}

impl From<&ColumnMeta> for Column {
    fn from(column: &ColumnMeta) -> Column {
        Column {
            name: column.name.clone(),
            data_type: column.data_type.clone(),
            origin: column.origin,
        }
    }
}

impl Plan {
    /// What its role must be allowed to do.
    pub(super) fn accesses(&self) -> &[Access] {
        match self {
            Plan::Data(prepared) => &prepared.accesses,
            Plan::Call(call) | Plan::Stepped(call) => call.accesses(),
            Plan::Explain(explain) => explain.analyzed.accesses(),
            Plan::Copy(copying) => &copying.accesses,
            Plan::Other => &[],
        }
    }

    /// The program that runs, and what its rows are, for statements on data.
    ///
    /// # Errors
    /// XX000 for any other statement.
    pub(super) fn data(self) -> Result<(Arc<Program>, Shape)> {
        match self {
            Plan::Data(prepared) => Ok((prepared.program, prepared.shape)),
            _ => Err(Error::internal("only statements on data have a program")),
        }
    }
}
