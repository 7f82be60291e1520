//! The statements of SQL that exist here, told apart by their first words.

use super::alter::{self, AlterObject, AlterTable};
use super::comment::{self, Comment};
use super::copy::{self, Copy};
use super::create_as::{self, CreateTableAs};
use super::cursor::{self, Declare, Fetch};
use super::domain::{self, AlterDomain, CreateDomain};
use super::drop::{self, Drop, DropFunction};
use super::explain::{self, Explain};
use super::extension::{self, ExtensionStatement};
use super::function::{self, FunctionDefinition};
use super::lock::{self, LockTable};
use super::maintenance::{self, Reorder, Vacuum};
use super::materialized::{self, CreateMaterializedView, RefreshMaterializedView};
use super::merge;
use super::notify::{self, Notify};
use super::plpgsql;
use super::prepare::{self, Execute, Prepare};
use super::role::{self, DefaultPrivileges, DropRole, Grant, GrantRoles, Owned, RoleDefinition};
use super::role_setting::RoleSetting;
use super::schema::{self, AlterSchema, CreateSchema, DropSchema};
use super::script::SourceStatement;
use super::sequence::{self, AlterSequence, CreateSequence, CreateTable};
use super::tokens::{Expression, Tokens};
use super::transaction::{self, Begin, SetConstraints, SetTransaction};
use super::trigger::{self, CreateTrigger, DropTrigger, RenameTrigger};
use super::type_definition::{self, AlterType, CreateComposite, CreateEnum};
use super::types;
use super::variadic;
use super::view::{self, AlterView, CreateView};
use kiln_storage::error::{Position, Result, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// A statement. Queries and statements on data are `sqlparser`'s trees, in which unquoted
/// identifiers are in lower case and spans count from the start of the script.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `SELECT`, `VALUES`, `TABLE` or `WITH …`; the latter may hold statements on data.
    Query(Box<ast::Query>),
    /// `INSERT`.
    Insert(Box<ast::Insert>),
    /// `UPDATE`.
    Update(Box<ast::Update>),
    /// `DELETE`.
    Delete(Box<ast::Delete>),
    /// `MERGE`.
    Merge(Box<ast::Merge>),
    /// `CREATE TABLE`.
    CreateTable(Box<CreateTable>),
    /// `CREATE TABLE … AS`, or `SELECT … INTO`.
    CreateTableAs(Box<CreateTableAs>),
    /// `CREATE SCHEMA`.
    CreateSchema(CreateSchema),
    /// `ALTER SCHEMA`.
    AlterSchema(AlterSchema),
    /// `DROP SCHEMA`.
    DropSchema(DropSchema),
    /// `CREATE EXTENSION`, `ALTER EXTENSION` or `DROP EXTENSION`.
    Extension(Box<ExtensionStatement>),
    /// `CREATE SEQUENCE`.
    CreateSequence(Box<CreateSequence>),
    /// `ALTER SEQUENCE`.
    AlterSequence(Box<AlterSequence>),
    /// `CREATE VIEW`.
    CreateView(Box<CreateView>),
    /// `CREATE MATERIALIZED VIEW`.
    CreateMaterializedView(Box<CreateMaterializedView>),
    /// `REFRESH MATERIALIZED VIEW`.
    RefreshMaterializedView(Box<RefreshMaterializedView>),
    /// `ALTER VIEW … RENAME`.
    AlterView(Box<AlterView>),
    /// `CREATE TYPE … AS ENUM`.
    CreateEnum(Box<CreateEnum>),
    /// `CREATE TYPE … AS (…)`.
    CreateComposite(Box<CreateComposite>),
    /// `ALTER TYPE`.
    AlterType(Box<AlterType>),
    /// `CREATE DOMAIN`.
    CreateDomain(Box<CreateDomain>),
    /// `ALTER DOMAIN`.
    AlterDomain(Box<AlterDomain>),
    /// `CREATE INDEX`.
    CreateIndex(Box<ast::CreateIndex>),
    /// `ALTER TABLE`.
    AlterTable(Box<AlterTable>),
    /// `ALTER INDEX`, `ALTER SEQUENCE`, `ALTER FUNCTION` and their like, with another name or
    /// owner.
    AlterObject(Box<AlterObject>),
    /// `CREATE TRIGGER`.
    CreateTrigger(Box<CreateTrigger>),
    /// `DROP TRIGGER`.
    DropTrigger(Box<DropTrigger>),
    /// `ALTER TRIGGER … RENAME`.
    RenameTrigger(Box<RenameTrigger>),
    /// `DROP TABLE`, `DROP INDEX`, `DROP SEQUENCE`, `DROP VIEW`, `DROP TYPE` or `DROP DOMAIN`.
    Drop(Drop),
    /// `TRUNCATE`.
    Truncate(Box<ast::Truncate>),
    /// `ANALYZE` of these tables; none stands for all.
    Analyze(Vec<ast::ObjectName>),
    /// `BEGIN` or `START TRANSACTION`.
    Begin(Begin),
    /// `COMMIT` or `END`.
    Commit {
        /// `AND CHAIN`: another transaction begins.
        chain: bool,
    },
    /// `ROLLBACK` or `ABORT`.
    Rollback {
        /// `AND CHAIN`: another transaction begins.
        chain: bool,
    },
    /// `SAVEPOINT` of this name.
    Savepoint(String),
    /// `RELEASE` of the savepoint of this name.
    Release(String),
    /// `ROLLBACK TO` the savepoint of this name.
    RollbackTo(String),
    /// `SET TRANSACTION`.
    SetTransaction(SetTransaction),
    /// `SET CONSTRAINTS`.
    SetConstraints(SetConstraints),
    /// `CREATE FUNCTION` or `CREATE PROCEDURE`.
    CreateFunction(Box<FunctionDefinition>),
    /// `DROP FUNCTION`, `DROP PROCEDURE` or `DROP ROUTINE`.
    DropFunction(DropFunction),
    /// `CREATE ROLE` or `CREATE USER`.
    CreateRole(Box<RoleDefinition>),
    /// `ALTER ROLE` or `ALTER USER`.
    AlterRole(Box<RoleDefinition>),
    /// ALTER ROLE or ALTER DATABASE … SET or RESET.
    RoleSetting(Box<RoleSetting>),
    /// `DROP ROLE` or `DROP USER`.
    DropRole(DropRole),
    /// `REASSIGN OWNED` or `DROP OWNED`.
    Owned(Owned),
    /// `GRANT` or `REVOKE` of privileges.
    Grant(Box<Grant>),
    /// `GRANT` or `REVOKE` of roles.
    GrantRoles(Box<GrantRoles>),
    /// `ALTER DEFAULT PRIVILEGES`.
    DefaultPrivileges(Box<DefaultPrivileges>),
    /// `COMMENT`.
    Comment(Box<Comment>),
    /// `CALL`.
    Call(Call),
    /// `EXPLAIN`.
    Explain(Explain),
    /// `SET`.
    Set(Box<ast::Set>),
    /// `SHOW` of a setting, whose name's parts these are; `all` stands for each of them.
    Show(Vec<ast::Ident>),
    /// `RESET` of a setting, or of all.
    Reset(Option<String>),
    /// `DISCARD`.
    Discard(Discarded),
    /// `PREPARE`.
    Prepare(Box<Prepare>),
    /// `EXECUTE`.
    Execute(Box<Execute>),
    /// `DEALLOCATE` of a prepared statement, or of all.
    Deallocate(Option<String>),
    /// `DECLARE` of a cursor.
    Declare(Box<Declare>),
    /// `FETCH` or `MOVE`.
    Fetch(Fetch),
    /// `CLOSE` of a cursor, or of all.
    Close(Option<String>),
    /// `LOCK TABLE`.
    Lock(LockTable),
    /// `LISTEN` to a channel.
    Listen(String),
    /// `UNLISTEN` of a channel, or of all.
    Unlisten(Option<String>),
    /// `NOTIFY`.
    Notify(Notify),
    /// `COPY`.
    Copy(Box<Copy>),
    /// `REINDEX` or `CLUSTER`.
    Reorder(Reorder),
    /// `VACUUM`.
    Vacuum(Vacuum),
    /// `CHECKPOINT`.
    Checkpoint,
    /// `DO`: a block of PL/pgSQL that runs once.
    Do(Box<plpgsql::Block>),
}

impl Statement {
    /// Whether it looks at data as of a moment, for which PostgreSQL takes a snapshot.
    pub fn looks_at_data(&self) -> bool {
        !matches!(
            self,
            Statement::Begin(_)
                | Statement::Commit { .. }
                | Statement::Rollback { .. }
                | Statement::Savepoint(_)
                | Statement::Release(_)
                | Statement::RollbackTo(_)
                | Statement::Set(_)
                | Statement::SetTransaction(_)
                | Statement::SetConstraints(_)
                | Statement::Show(_)
                | Statement::Reset(_)
                | Statement::Fetch(_)
                | Statement::Lock(_)
                | Statement::Listen(_)
                | Statement::Unlisten(_)
                | Statement::Notify(_)
        )
    }
}

/// What `DISCARD` forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// All that the session has.
    All,
    /// Plans, which are made anew when they are needed.
    Plans,
    /// Values of sequences.
    Sequences,
    /// Temporary tables.
    Temporary,
}

/// Which of the two callable things is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineKind {
    /// Called in expressions and in FROM.
    Function,
    /// Called with `CALL`.
    Procedure,
}

/// `CALL procedure(arguments)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The CALL keyword.
    pub position: Position,
    /// The procedure.
    pub name: ast::ObjectName,
    /// The arguments in the order written.
    pub arguments: Vec<CallArgument>,
}

/// An argument of a [`Call`].
#[derive(Clone, Debug, PartialEq)]
pub struct CallArgument {
    /// The parameter that `name => value` names.
    pub name: Option<ast::Ident>,
    /// The value.
    pub value: Expression,
}

/// The command of the INSERT, UPDATE, DELETE or MERGE that stands behind a WITH, and whether it has
/// RETURNING.
pub fn change_of(query: &ast::Query) -> Option<(&'static str, bool)> {
    match &*query.body {
        ast::SetExpr::Insert(ast::Statement::Insert(insert)) => {
            Some(("INSERT 0", insert.returning.is_some()))
        }
        ast::SetExpr::Update(ast::Statement::Update(update)) => {
            Some(("UPDATE", update.returning.is_some()))
        }
        ast::SetExpr::Delete(ast::Statement::Delete(delete)) => {
            Some(("DELETE", delete.returning.is_some()))
        }
        ast::SetExpr::Merge(_) => Some(("MERGE", false)),
        _ => None,
    }
}

/// Statements of PostgreSQL that are refused by name; everything else is a syntax error.
const REFUSED: &[&str] = &["import", "load", "security"];

/// Parses one statement of a script, which [`script`](super::script()) found.
///
/// # Errors
///
/// 42601 for what is not PostgreSQL's syntax, 0A000 for what is but is not supported, 54001 for
/// what nests too deep; each with line and column in the script.
pub fn statement(source: &SourceStatement<'_>) -> Result<Statement> {
    let tokens = Tokens::new(source.text, source.position())?;
    let mut end = tokens.len();
    if end > 0 && *tokens.get(end - 1) == Token::SemiColon {
        end -= 1;
    }
    if let Some(second) = (0..end).find(|index| *tokens.get(*index) == Token::SemiColon) {
        return Err(tokens.error(
            second,
            SqlState::SYNTAX_ERROR,
            "cannot run several statements as one: syntax error",
        ));
    }
    parse(&tokens, 0..end)
}

/// Parses all of `range` as a statement.
pub(super) fn parse(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let first = range.start;
    if range.is_empty() {
        return Err(tokens.syntax_error(range.end));
    }
    match tokens.word(first) {
        "select" | "values" | "with" | "table" => select(tokens, range),
        "" if *tokens.get(first) == Token::LParen => select(tokens, range),
        "insert" | "update" | "delete" | "merge" => data_statement(tokens, None, &[range]),
        "create" => create(tokens, range),
        "drop" if tokens.word(first + 1) == "owned" => role::owned(tokens, range),
        "reassign" => role::owned(tokens, range),
        "drop" => drop::drop(tokens, range),
        "alter" => alter::alter(tokens, range),
        "begin" | "start" => transaction::begin(tokens, range),
        "commit" | "end" | "rollback" | "abort" => transaction::end(tokens, range),
        "savepoint" => transaction::savepoint(tokens, range),
        "release" => transaction::release(tokens, range),
        "truncate" | "set" | "show" => control(tokens, range),
        "analyze" | "analyse" => maintenance::analyze(tokens, range),
        "grant" | "revoke" => role::grant(tokens, range),
        "comment" => comment::comment(tokens, range),
        "copy" => copy::copy(tokens, range),
        "prepare" => prepare::prepare(tokens, range),
        "execute" => prepare::execute(tokens, range),
        "deallocate" => prepare::deallocate(tokens, range),
        "declare" => cursor::declare(tokens, range),
        "fetch" | "move" => cursor::fetch(tokens, range),
        "close" => cursor::close(tokens, range),
        "lock" => lock::lock(tokens, range),
        "reset" => reset(tokens, range),
        "discard" => discard(tokens, range),
        "listen" => notify::listen(tokens, range),
        "unlisten" => notify::unlisten(tokens, range),
        "notify" => notify::notify(tokens, range).map(Statement::Notify),
        "vacuum" => maintenance::vacuum(tokens, range),
        "checkpoint" if range.len() == 1 => Ok(Statement::Checkpoint),
        "reindex" => maintenance::reindex(tokens, range),
        "cluster" => maintenance::cluster(tokens, range),
        "refresh" => materialized::refresh(tokens, range),
        "call" => call(tokens, range).map(Statement::Call),
        "explain" => explain::explain(tokens, range),
        "do" => function::do_block(tokens, range).map(|block| Statement::Do(Box::new(block))),
        word if REFUSED.contains(&word) => {
            Err(tokens.unsupported(first, &word.to_ascii_uppercase()))
        }
        _ => Err(tokens.syntax_error(first)),
    }
}

/// Parses all of `range` as a query, or as SELECT … INTO.
fn select(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let parts = [range];
    let mut query = tokens.sql_parts(None, &parts, |parser| parser.parse_query())?;
    match create_as::take_into(&mut query.body) {
        None => Ok(Statement::Query(query)),
        Some(into) => create_as::select_into(tokens, into_at(tokens, &parts), into, query),
    }
}

/// The first INTO.
fn into_at(tokens: &Tokens<'_>, parts: &[Range<usize>]) -> usize {
    let mut all = parts.iter().cloned().flatten();
    all.find(|at| tokens.word(*at) == "into").unwrap_or(0)
}

/// Parses all of `range` as a query.
pub(super) fn query(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Box<ast::Query>> {
    query_parts(tokens, None, &[range])
}

/// Parses the tokens of `parts` as one query, with the keyword `leading` before them.
pub(super) fn query_parts(
    tokens: &Tokens<'_>,
    leading: Option<&str>,
    parts: &[Range<usize>],
) -> Result<Box<ast::Query>> {
    let mut query = tokens.sql_parts(leading, parts, |parser| parser.parse_query())?;
    match create_as::take_into(&mut query.body) {
        None => Ok(query),
        Some(_) => {
            let into = into_at(tokens, parts);
            let message = "SELECT ... INTO is not allowed here";
            Err(tokens.error_at(into, SqlState::SYNTAX_ERROR, message))
        }
    }
}

/// Parses the tokens of `parts` as one INSERT, UPDATE, DELETE, MERGE or query.
pub(super) fn data_statement(
    tokens: &Tokens<'_>,
    leading: Option<&str>,
    parts: &[Range<usize>],
) -> Result<Statement> {
    let first = parts.first().map_or(0, |part| part.start);
    // The SQL parser takes INSERT without INTO, as MySQL does.
    if leading.is_none() && tokens.word(first) == "insert" && tokens.word(first + 1) != "into" {
        return Err(tokens.syntax_error(first + 1));
    }
    if leading.is_none() && tokens.word(first) == "merge" {
        return merge::merge(tokens, parts);
    }
    let mut all = parts.iter().cloned().flatten();
    if let Some(at) = all.find(|at| tokens.words(*at, &["where", "current", "of"])) {
        return Err(tokens.unsupported(at, "WHERE CURRENT OF"));
    }
    Ok(
        match tokens.sql_parts(leading, parts, |parser| parser.parse_statement())? {
            ast::Statement::Insert(insert) => Statement::Insert(Box::new(insert)),
            ast::Statement::Update(update) => Statement::Update(Box::new(update)),
            ast::Statement::Delete(delete) => Statement::Delete(Box::new(delete)),
            ast::Statement::Query(query) => Statement::Query(query),
            _ => return Err(tokens.syntax_error(first)),
        },
    )
}

fn create(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let first = range.start;
    let mut kind = first + 1;
    let or_replace = tokens.words(kind, &["or", "replace"]);
    if or_replace {
        kind += 2;
    }
    let temporary = temporary_words(tokens, kind);
    if temporary > 0 {
        return create_temporary(tokens, range, kind + temporary, or_replace);
    }
    match tokens.word(kind) {
        "function" | "procedure" => function::definition(tokens, range, kind, or_replace)
            .map(|definition| Statement::CreateFunction(Box::new(definition))),
        "role" | "user" | "group" if !or_replace => role::create(tokens, range, kind),
        "table" | "unique" | "index" | "sequence" if or_replace => Err(tokens.syntax_error(kind)),
        word @ ("global" | "local" | "foreign") if tokens.word(kind + 1) != "data" => {
            Err(tokens.unsupported(kind, &format!("CREATE {} TABLE", word.to_ascii_uppercase())))
        }
        "unlogged" if !or_replace && tokens.word(kind + 1) == "table" => {
            match create_as::create(tokens, range.clone(), kind + 2, false)? {
                Some(statement) => Ok(statement),
                None => sequence::create_table(tokens, range)
                    .map(|table| Statement::CreateTable(Box::new(table))),
            }
        }
        "table" => match create_as::create(tokens, range.clone(), kind + 1, false)? {
            Some(statement) => Ok(statement),
            None => sequence::create_table(tokens, range)
                .map(|table| Statement::CreateTable(Box::new(table))),
        },
        "schema" if !or_replace => schema::create(tokens, range),
        "extension" if !or_replace => extension::create(tokens, range),
        "sequence" if !or_replace => sequence::create(tokens, range, kind + 1, false),
        "type" if !or_replace => type_definition::create(tokens, range, kind + 1),
        "domain" if !or_replace => domain::create(tokens, range, kind + 1),
        "view" => view::create(tokens, range, kind + 1, (or_replace, false)),
        "materialized" if !or_replace && tokens.word(kind + 1) == "view" => {
            materialized::create(tokens, range, kind + 2)
        }
        "trigger" => trigger::create(tokens, range, kind + 1, or_replace),
        "constraint" if tokens.word(kind + 1) == "trigger" => {
            Err(tokens.unsupported(kind, "a constraint trigger"))
        }
        "unique" | "index" => match tokens.sql(range, |parser| parser.parse_statement())? {
            ast::Statement::CreateIndex(index) => Ok(Statement::CreateIndex(Box::new(index))),
            _ => Err(tokens.syntax_error(kind)),
        },
        "" => Err(tokens.syntax_error(kind)),
        word if is_object(word) => {
            Err(tokens.unsupported(first, &format!("CREATE {}", word.to_ascii_uppercase())))
        }
        _ => Err(tokens.syntax_error(kind)),
    }
}

/// How many words at `at` say that what is created is temporary.
fn temporary_words(tokens: &Tokens<'_>, at: usize) -> usize {
    let scope = usize::from(matches!(tokens.word(at), "local" | "global"));
    match tokens.word(at + scope) {
        "temp" | "temporary" => scope + 1,
        _ => 0,
    }
}

/// Parses CREATE TEMPORARY; the word for the kind of object stands at `kind`.
fn create_temporary(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    kind: usize,
    or_replace: bool,
) -> Result<Statement> {
    match tokens.word(kind) {
        "table" if !or_replace => match create_as::create(tokens, range.clone(), kind + 1, true)? {
            Some(statement) => Ok(statement),
            None => sequence::create_table(tokens, range)
                .map(|table| Statement::CreateTable(Box::new(table))),
        },
        "sequence" if !or_replace => sequence::create(tokens, range, kind + 1, true),
        "view" => view::create(tokens, range, kind + 1, (or_replace, true)),
        "recursive" => Err(tokens.unsupported(kind, "CREATE RECURSIVE VIEW")),
        _ => Err(tokens.syntax_error(kind)),
    }
}

/// Whether PostgreSQL has a CREATE or DROP of this kind of object.
pub(super) fn is_object(word: &str) -> bool {
    const OBJECTS: &[&str] = &[
        "access",
        "aggregate",
        "cast",
        "collation",
        "conversion",
        "constraint",
        "database",
        "domain",
        "event",
        "extension",
        "foreign",
        "language",
        "large",
        "materialized",
        "operator",
        "owned",
        "policy",
        "publication",
        "recursive",
        "rule",
        "schema",
        "sequence",
        "server",
        "statistics",
        "subscription",
        "system",
        "tablespace",
        "text",
        "transform",
        "trigger",
        "trusted",
        "type",
        "view",
    ];
    OBJECTS.contains(&word)
}

/// Parses RESET of a setting.
pub(super) fn reset(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let first = range.start + 1;
    let name = match tokens.word(first) {
        "all" if range.len() == 2 => None,
        "time" if tokens.words(first, &["time", "zone"]) && range.len() == 3 => {
            Some("timezone".to_owned())
        }
        "session" if tokens.words(first, &["session", "authorization"]) && range.len() == 3 => {
            Some("session_authorization".to_owned())
        }
        _ => {
            let parts = types::identifiers(tokens, first..range.end)?.into_iter();
            let parts: Vec<String> = parts.map(|part| part.value.to_lowercase()).collect();
            Some(parts.join("."))
        }
    };
    Ok(Statement::Reset(name))
}

fn discard(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let what = range.start + 1;
    if range.len() > 2 {
        return Err(tokens.syntax_error(what + 1));
    }
    match tokens.word(what) {
        "all" => Ok(Statement::Discard(Discarded::All)),
        "plans" => Ok(Statement::Discard(Discarded::Plans)),
        "sequences" => Ok(Statement::Discard(Discarded::Sequences)),
        "temp" | "temporary" => Ok(Statement::Discard(Discarded::Temporary)),
        _ => Err(tokens.syntax_error(what)),
    }
}

/// Statements of a few words that the SQL parser knows.
pub(super) fn control(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let first = range.start;
    if tokens.word(first) == "set"
        && let Some(set) = transaction::set(tokens, range.clone())?
    {
        return Ok(set);
    }
    if tokens.words(first, &["set", "local", "session", "authorization"]) {
        let parts = [first..first + 1, first + 2..range.end];
        return match tokens.sql_parts(None, &parts, |parser| parser.parse_statement())? {
            ast::Statement::Set(ast::Set::SetSessionAuthorization(mut set)) => {
                set.scope = ast::ContextModifier::Local;
                let set = ast::Set::SetSessionAuthorization(set);
                Ok(Statement::Set(Box::new(set)))
            }
            _ => Err(tokens.syntax_error(first + 1)),
        };
    }
    match tokens.sql(range, |parser| parser.parse_statement())? {
        ast::Statement::Truncate(truncate) => Ok(Statement::Truncate(Box::new(truncate))),
        ast::Statement::Set(set) => Ok(Statement::Set(Box::new(set))),
        ast::Statement::ShowVariable { variable } => Ok(Statement::Show(variable)),
        _ => Err(tokens.syntax_error(first)),
    }
}

/// Parses all of `range` as a CALL.
pub(super) fn call(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Call> {
    let position = tokens.position(range.start);
    let open = range
        .clone()
        .find(|index| *tokens.get(*index) == Token::LParen)
        .unwrap_or(range.end);
    let name = types::identifiers(tokens, range.start + 1..open)?;
    let close = range.end - 1;
    if open >= close || *tokens.get(close) != Token::RParen {
        return Err(tokens.syntax_error(range.end));
    }
    let mut arguments = Vec::new();
    if open + 1 < close {
        for mut argument in tokens.split(open + 1..close) {
            let is_variadic = argument.len() > 1 && tokens.word(argument.start) == "variadic";
            argument.start += usize::from(is_variadic);
            let named = matches!(
                tokens.get(argument.start + 1),
                Token::RArrow | Token::Assignment
            );
            let mut name = None;
            if named && argument.len() > 1 {
                name = Some(types::identifier(tokens, argument.start)?);
                argument.start += 2;
            }
            if is_variadic {
                let own = name.as_ref().map_or("", |name| name.value.as_str());
                name = Some(variadic::marked(own));
            }
            let value = tokens.expression(argument)?;
            arguments.push(CallArgument { name, value });
        }
    }
    Ok(Call {
        position,
        name: ast::ObjectName::from(name),
        arguments,
    })
}
