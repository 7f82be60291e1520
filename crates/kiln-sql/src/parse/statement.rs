//! The statements of SQL that exist here, told apart by their first words.

use super::alter::{self, AlterObject, AlterTable};
use super::comment::{self, Comment};
use super::copy::{self, Copy};
use super::create_as::{self, CreateTableAs};
use super::cursor::{self, Declare, Fetch};
use super::domain::{self, AlterDomain, CreateDomain};
use super::explain::{self, Explain};
use super::extension::{self, ExtensionStatement};
use super::function::{self, FunctionDefinition};
use super::lock::{self, LockTable};
use super::notify::{self, Notify};
use super::plpgsql;
use super::prepare::{self, Execute, Prepare};
use super::role::{self, DefaultPrivileges, DropRole, Grant, GrantRoles, RoleDefinition};
use super::schema::{self, AlterSchema, CreateSchema, DropSchema};
use super::script::SourceStatement;
use super::sequence::{self, AlterSequence, CreateSequence, CreateTable};
use super::tokens::{Expression, Tokens};
use super::transaction::{self, SetConstraints, SetTransaction, TransactionMode};
use super::trigger::{self, CreateTrigger, DropTrigger, RenameTrigger};
use super::type_definition::{self, AlterType, CreateEnum};
use super::types::{self, TypeReference};
use super::view::{self, CreateView, RenameView};
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
    /// `ALTER VIEW … RENAME`.
    RenameView(Box<RenameView>),
    /// `CREATE TYPE … AS ENUM`.
    CreateEnum(Box<CreateEnum>),
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
    Begin(Vec<TransactionMode>),
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
    /// `DROP ROLE` or `DROP USER`.
    DropRole(DropRole),
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
    /// `DO`: a block of PL/pgSQL that runs once.
    Do(Box<plpgsql::Block>),
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

/// `VACUUM`. Memory is reused without it.
#[derive(Clone, Debug, PartialEq)]
pub struct Vacuum {
    /// Whether the tables are analysed.
    pub analyze: bool,
    /// The tables; none stands for all.
    pub tables: Vec<ast::ObjectName>,
}

/// `REINDEX` or `CLUSTER`. Indexes and rows are in memory, in good order: what is named has to be
/// there, and stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Reorder {
    /// The statement's command.
    pub command: &'static str,
    /// The schema.
    pub schema: Option<ast::ObjectName>,
    /// The table.
    pub table: Option<ast::ObjectName>,
    /// The index.
    pub index: Option<ast::ObjectName>,
}

/// What [`Statement::Drop`] removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropKind {
    /// A table.
    Table,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
    /// A view.
    View,
    /// A type.
    Type,
    /// A domain.
    Domain,
}

/// `DROP TABLE`, `DROP INDEX`, `DROP SEQUENCE`, `DROP VIEW`, `DROP TYPE` or `DROP DOMAIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    /// What is removed.
    pub kind: DropKind,
    /// A missing object is no error.
    pub if_exists: bool,
    /// What is removed, by name; never empty.
    pub names: Vec<ast::ObjectName>,
    /// What depends on it goes too.
    pub cascade: bool,
}

/// Which of the two callable things is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineKind {
    /// Called in expressions and in FROM.
    Function,
    /// Called with `CALL`.
    Procedure,
}

/// `DROP FUNCTION`, `DROP PROCEDURE` or `DROP ROUTINE`.
#[derive(Clone, Debug, PartialEq)]
pub struct DropFunction {
    /// `None` for `DROP ROUTINE`, which takes either.
    pub kind: Option<RoutineKind>,
    /// A missing routine is no error.
    pub if_exists: bool,
    /// What is removed; never empty.
    pub routines: Vec<RoutineSignature>,
    /// What depends on it goes too.
    pub cascade: bool,
}

/// A routine named by [`DropFunction`].
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineSignature {
    /// Its name.
    pub name: ast::ObjectName,
    /// The types of its input arguments, where they were given.
    pub arguments: Option<Vec<TypeReference>>,
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

/// The command of the INSERT, UPDATE or DELETE that stands behind a WITH, and whether it has
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
        _ => None,
    }
}

/// Statements of PostgreSQL that are refused by name; everything else is a syntax error.
const REFUSED: &[&str] = &[
    "checkpoint",
    "import",
    "load",
    "merge",
    "reassign",
    "refresh",
    "security",
];

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
        "insert" | "update" | "delete" => data_statement(tokens, None, &[range]),
        "create" => create(tokens, range),
        "drop" => drop(tokens, range),
        "alter" => alter::alter(tokens, range),
        "begin" | "start" => transaction::begin(tokens, range),
        "commit" | "end" | "rollback" | "abort" => transaction::end(tokens, range),
        "savepoint" => transaction::savepoint(tokens, range),
        "release" => transaction::release(tokens, range),
        "truncate" | "set" | "show" => control(tokens, range),
        "analyze" | "analyse" => analyze(tokens, range),
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
        "vacuum" => vacuum(tokens, range),
        "reindex" => reindex(tokens, range),
        "cluster" => cluster(tokens, range),
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

/// Parses the tokens of `parts` as one INSERT, UPDATE, DELETE or query.
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

/// Parses ANALYZE of all tables, or of those named. Its options have no effect, and all columns are
/// looked at.
fn analyze(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let start = behind_options(tokens, range.start + 1, &range, &["verbose"])?;
    let parts = match start < range.end {
        true => tokens.split(start..range.end),
        false => Vec::new(),
    };
    let table = |part: Range<usize>| {
        let columns = part.clone().find(|at| *tokens.get(*at) == Token::LParen);
        if columns.is_some() && *tokens.get(part.end - 1) != Token::RParen {
            return Err(tokens.syntax_error(part.end));
        }
        let name = types::identifiers(tokens, part.start..columns.unwrap_or(part.end))?;
        Ok(ast::ObjectName::from(name))
    };
    let tables = parts.into_iter().map(table);
    Ok(Statement::Analyze(tables.collect::<Result<_>>()?))
}

/// The token behind options in parentheses at `at`, and behind one of `words`.
fn behind_options(
    tokens: &Tokens<'_>,
    at: usize,
    range: &Range<usize>,
    words: &[&str],
) -> Result<usize> {
    let at = match *tokens.get(at) == Token::LParen {
        true => {
            let close = (at..range.end).find(|at| *tokens.get(*at) == Token::RParen);
            close.ok_or_else(|| tokens.syntax_error(range.end))? + 1
        }
        false => at,
    };
    Ok(at + usize::from(at < range.end && words.contains(&tokens.word(at))))
}

/// Parses `REINDEX [(…)] INDEX | TABLE | SCHEMA | DATABASE | SYSTEM [CONCURRENTLY] name`.
fn reindex(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let kind_at = behind_options(tokens, range.start + 1, &range, &[])?;
    let at = behind_options(tokens, kind_at + 1, &range, &["concurrently"])?;
    let name = ast::ObjectName::from(types::identifiers(tokens, at..range.end)?);
    let mut reorder = Reorder {
        command: "REINDEX",
        schema: None,
        table: None,
        index: None,
    };
    match tokens.word(kind_at) {
        "index" => reorder.index = Some(name),
        "table" => reorder.table = Some(name),
        "schema" => reorder.schema = Some(name),
        "database" | "system" => {}
        _ => return Err(tokens.syntax_error(kind_at)),
    }
    Ok(Statement::Reorder(reorder))
}

/// Parses `CLUSTER [VERBOSE] [table [USING index]]` or `CLUSTER index ON table`.
fn cluster(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = behind_options(tokens, range.start + 1, &range, &["verbose"])?;
    let between = (at..range.end).find(|at| matches!(tokens.word(*at), "using" | "on"));
    let name = |range| types::identifiers(tokens, range).map(ast::ObjectName::from);
    let first = match at < range.end {
        true => Some(name(at..between.unwrap_or(range.end))?),
        false => None,
    };
    let second = between.map(|at| name(at + 1..range.end)).transpose()?;
    let (table, index) = match between.map(|at| tokens.word(at)) {
        Some("on") => (second, first),
        _ => (first, second),
    };
    Ok(Statement::Reorder(Reorder {
        command: "CLUSTER",
        schema: None,
        table,
        index,
    }))
}

/// Parses VACUUM with PostgreSQL's options, of which only ANALYZE means something here.
fn vacuum(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let mut at = range.start + 1;
    let mut analyze = false;
    let is_analyze = |at: usize| matches!(tokens.word(at), "analyze" | "analyse");
    if at < range.end && *tokens.get(at) == Token::LParen {
        let close = (at..range.end).find(|at| *tokens.get(*at) == Token::RParen);
        let close = close.ok_or_else(|| tokens.syntax_error(range.end))?;
        for option in tokens.split(at + 1..close) {
            let is_off = matches!(tokens.word(option.end - 1), "false" | "off");
            analyze |= is_analyze(option.start) && !is_off;
        }
        at = close + 1;
    }
    while at < range.end
        && (is_analyze(at) || matches!(tokens.word(at), "full" | "freeze" | "verbose"))
    {
        analyze |= is_analyze(at);
        at += 1;
    }
    let tables = match at < range.end {
        true => tokens.split(at..range.end),
        false => Vec::new(),
    };
    let table = |part| types::identifiers(tokens, part).map(ast::ObjectName::from);
    Ok(Statement::Vacuum(Vacuum {
        analyze,
        tables: tables.into_iter().map(table).collect::<Result<_>>()?,
    }))
}

/// Parses RESET of a setting.
fn reset(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
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

fn drop(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let kind = range.start + 1;
    match tokens.word(kind) {
        "table" => drop_named(tokens, range, DropKind::Table),
        "index" => drop_named(tokens, range, DropKind::Index),
        "sequence" => drop_named(tokens, range, DropKind::Sequence),
        "view" => drop_named(tokens, range, DropKind::View),
        "type" => drop_named(tokens, range, DropKind::Type),
        "domain" => drop_named(tokens, range, DropKind::Domain),
        "schema" => schema::drop(tokens, range),
        "extension" => extension::drop(tokens, range),
        "trigger" => trigger::drop(tokens, range),
        "function" => drop_function(tokens, range, Some(RoutineKind::Function)),
        "procedure" => drop_function(tokens, range, Some(RoutineKind::Procedure)),
        "routine" => drop_function(tokens, range, None),
        "role" | "user" | "group" => role::drop(tokens, range),
        word if is_object(word) => {
            let feature = format!("DROP {}", word.to_ascii_uppercase());
            Err(tokens.unsupported(range.start, &feature))
        }
        _ => Err(tokens.syntax_error(kind)),
    }
}

/// Parses what DROP names: `[CONCURRENTLY] [IF EXISTS] name, … [CASCADE | RESTRICT]`.
fn drop_named(tokens: &Tokens<'_>, range: Range<usize>, kind: DropKind) -> Result<Statement> {
    let mut at = range.start + 2;
    // No other transaction waits for the drop of an index in any case.
    at += usize::from(kind == DropKind::Index && tokens.word(at) == "concurrently");
    let if_exists = tokens.words(at, &["if", "exists"]);
    if if_exists {
        at += 2;
    }
    let mut end = range.end;
    let cascade = end > at + 1 && tokens.word(end - 1) == "cascade";
    if cascade || (end > at + 1 && tokens.word(end - 1) == "restrict") {
        end -= 1;
    }
    let parts = tokens.split(at..end).into_iter();
    let names = parts.map(|part| types::identifiers(tokens, part).map(ast::ObjectName::from));
    Ok(Statement::Drop(Drop {
        kind,
        if_exists,
        names: names.collect::<Result<_>>()?,
        cascade,
    }))
}

fn drop_function(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    kind: Option<RoutineKind>,
) -> Result<Statement> {
    let mut start = range.start + 2;
    let if_exists = tokens.words(start, &["if", "exists"]);
    if if_exists {
        start += 2;
    }
    let mut end = range.end;
    let cascade = end > start + 1 && tokens.word(end - 1) == "cascade";
    if cascade || (end > start + 1 && tokens.word(end - 1) == "restrict") {
        end -= 1;
    }
    let routines = tokens.split(start..end).into_iter();
    let routines = routines.map(|routine| routine_signature(tokens, routine));
    Ok(Statement::DropFunction(DropFunction {
        kind,
        if_exists,
        routines: routines.collect::<Result<_>>()?,
        cascade,
    }))
}

/// Parses a routine's name, and the types of its arguments where they are given.
pub(super) fn routine_signature(
    tokens: &Tokens<'_>,
    range: Range<usize>,
) -> Result<RoutineSignature> {
    let mut rest = range.clone();
    let open = rest.find(|index| *tokens.get(*index) == Token::LParen);
    let open = open.unwrap_or(range.end);
    let name = ast::ObjectName::from(types::identifiers(tokens, range.start..open)?);
    let arguments = if open < range.end {
        let close = range.end - 1;
        if close <= open || *tokens.get(close) != Token::RParen {
            return Err(tokens.syntax_error(range.end));
        }
        let arguments = function::arguments(tokens, open + 1..close)?;
        let inputs = arguments
            .into_iter()
            .filter(|argument| argument.mode.is_input());
        Some(inputs.map(|argument| argument.data_type).collect())
    } else {
        None
    };
    Ok(RoutineSignature { name, arguments })
}

/// Statements of a few words that the SQL parser knows.
fn control(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
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
        for argument in tokens.split(open + 1..close) {
            let named = matches!(
                tokens.get(argument.start + 1),
                Token::RArrow | Token::Assignment
            );
            arguments.push(if named && argument.len() > 1 {
                CallArgument {
                    name: Some(types::identifier(tokens, argument.start)?),
                    value: tokens.expression(argument.start + 2..argument.end)?,
                }
            } else {
                CallArgument {
                    name: None,
                    value: tokens.expression(argument)?,
                }
            });
        }
    }
    Ok(Call {
        position,
        name: ast::ObjectName::from(name),
        arguments,
    })
}
