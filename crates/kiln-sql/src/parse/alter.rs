//! ALTER TABLE, and other names and owners of what is altered otherwise by statements of its own.

use std::ops::Range;

use kiln_storage::error::{Error, Result, SqlState};
use kiln_storage::schema::Deferral;
use kiln_storage::sequence::Identity;
use sqlparser::ast::{self, Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::domain;
use super::drop::{RoutineSignature, routine_signature};
use super::extension;
use super::materialized;
use super::role::{self, RoleName};
use super::role_setting;
use super::schema;
use super::sequence::{self, ColumnChange, SequenceOptions, SetColumns};
use super::statement::{self, RoutineKind, Statement};
use super::tokens::{Expression, Tokens};
use super::trigger::{self, SwitchedTrigger};
use super::type_definition;
use super::types;
use super::view;

/// `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub name: ObjectName,
    /// One that is missing is no error.
    pub if_exists: bool,
    /// What is changed; never empty. Another name, another owner and Kiln's own changes stand
    /// alone.
    pub actions: Vec<TableAction>,
}

/// One change of an [`AlterTable`].
#[derive(Clone, Debug, PartialEq)]
pub enum TableAction {
    /// `RENAME TO` or `SET SCHEMA`.
    Rename(NewName),
    /// `RENAME [COLUMN] from TO to`.
    RenameColumn(Ident, Ident),
    /// `RENAME CONSTRAINT from TO to`.
    RenameConstraint(Ident, Ident),
    /// `OWNER TO`.
    Owner(RoleName),
    /// `ADD [COLUMN]`.
    AddColumn(Box<AddedColumn>),
    /// `DROP [COLUMN]`.
    DropColumn(DroppedPart),
    /// `ALTER [COLUMN]`.
    Column(Ident, ColumnChange),
    /// `ADD` of a constraint.
    AddConstraint(Box<AddedConstraint>),
    /// `ALTER CONSTRAINT`: whether a foreign key's check may wait.
    AlterConstraint(Ident, Deferral),
    /// `VALIDATE CONSTRAINT`.
    ValidateConstraint(Ident),
    /// `DROP CONSTRAINT`.
    DropConstraint(DroppedPart),
    /// How rows are divided over partitions: the expression behind PARTITION BY. PostgreSQL has no
    /// such change.
    PartitionBy(Box<Expression>),
    /// `ENABLE TRIGGER` or `DISABLE TRIGGER`.
    SwitchTrigger(SwitchedTrigger),
    /// `SET (…)` or `RESET (…)`: parameters of PostgreSQL's storage, which have no effect.
    Parameters(Vec<Ident>),
    /// `REPLICA IDENTITY …`, `CLUSTER ON index` and their like: how PostgreSQL stores and
    /// replicates the table.
    WithoutEffect,
    /// `SET REPLICATED`: every partition has all rows. PostgreSQL has no such change.
    Replicated,
}

/// A column that is added to a table.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedColumn {
    /// What the SQL parser knows of it.
    pub definition: ast::ColumnDef,
    /// `GENERATED … AS IDENTITY`; there may be several, which is an error.
    pub identities: Vec<(Identity, SequenceOptions)>,
    /// The lists of columns behind SET NULL and SET DEFAULT.
    pub set_columns: Vec<SetColumns>,
    /// One that is there is no error.
    pub if_not_exists: bool,
}

/// A constraint that is added to a table.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedConstraint {
    /// The constraint.
    pub constraint: ast::TableConstraint,
    /// The lists of columns behind SET NULL and SET DEFAULT.
    pub set_columns: Vec<SetColumns>,
    /// `NOT VALID`: the rows that there are need not satisfy it.
    pub not_valid: bool,
}

/// A column or constraint that a table loses.
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedPart {
    /// Its name.
    pub name: Ident,
    /// One that is missing is no error.
    pub if_exists: bool,
    /// What depends on it goes too.
    pub cascade: bool,
}

/// `ALTER INDEX`, `ALTER SEQUENCE`, `ALTER FUNCTION` and their like, with another name or owner.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterObject {
    /// What is altered.
    pub object: AlteredObject,
    /// One that is missing is no error.
    pub if_exists: bool,
    /// What becomes of it.
    pub change: ObjectChange,
}

/// What an [`AlterObject`] alters.
#[derive(Clone, Debug, PartialEq)]
pub enum AlteredObject {
    /// An index.
    Index(ObjectName),
    /// A sequence.
    Sequence(ObjectName),
    /// A materialized view.
    MaterializedView(ObjectName),
    /// A function or procedure; without a kind either.
    Routine(Option<RoutineKind>, RoutineSignature),
}

/// How a statement calls something from then on.
#[derive(Clone, Debug, PartialEq)]
pub enum NewName {
    /// `RENAME TO`: otherwise, in the same schema.
    Name(Ident),
    /// `SET SCHEMA`: the same, in another one.
    Schema(Ident),
}

/// What an [`AlterObject`] changes.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectChange {
    /// `RENAME TO` or `SET SCHEMA`.
    Rename(NewName),
    /// `OWNER TO`.
    Owner(RoleName),
    /// `SET (…)` or `RESET (…)` of an index: parameters of PostgreSQL's storage, which have no
    /// effect.
    Parameters(Vec<Ident>),
}

/// Parses ALTER.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    match tokens.word(range.start + 1) {
        "role" | "user" | "group" => role::alter(tokens, range),
        "database" => role_setting::of_database(tokens, range),
        "sequence" => match another_name(tokens, range.clone(), AlteredObject::Sequence)? {
            Some(statement) => Ok(statement),
            None => sequence::alter(tokens, range),
        },
        "index" => match another_name(tokens, range.clone(), AlteredObject::Index)? {
            Some(statement) => Ok(statement),
            None => index(tokens, range),
        },
        "function" => routine(tokens, range, Some(RoutineKind::Function)),
        "procedure" => routine(tokens, range, Some(RoutineKind::Procedure)),
        "routine" => routine(tokens, range, None),
        "table" => table(tokens, range),
        "view" => view::alter(tokens, range),
        "materialized" => materialized::alter(tokens, range),
        "trigger" => trigger::alter(tokens, range),
        "schema" => schema::alter(tokens, range),
        "extension" => extension::alter(tokens, range),
        "type" => type_definition::alter(tokens, range),
        "domain" => domain::alter(tokens, range),
        word if statement::is_object(word) => {
            let feature = format!("ALTER {}", word.to_ascii_uppercase());
            Err(tokens.unsupported(range.start, &feature))
        }
        "default" if tokens.word(range.start + 2) == "privileges" => {
            role::default_privileges(tokens, range)
        }
        _ => Err(tokens.syntax_error(range.start + 1)),
    }
}

/// Parses `ALTER kind [IF EXISTS] name RENAME TO …` or `OWNER TO …`; `None` for any other change.
fn another_name(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    object: impl FnOnce(ObjectName) -> AlteredObject,
) -> Result<Option<Statement>> {
    let (if_exists, at) = if_exists(tokens, range.start + 2);
    let (name, at) = sequence::name(tokens, at..range.end)?;
    let Some(change) = object_change(tokens, at..range.end)? else {
        return Ok(None);
    };
    Ok(Some(Statement::AlterObject(Box::new(AlterObject {
        object: object(name),
        if_exists,
        change,
    }))))
}

/// Parses `ALTER INDEX [IF EXISTS] name SET (…)` or `RESET (…)`.
fn index(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let (if_exists, at) = if_exists(tokens, range.start + 2);
    let (name, at) = sequence::name(tokens, at..range.end)?;
    let is_list = *tokens.get(at + 1) == Token::LParen;
    if !is_list || !matches!(tokens.word(at), "set" | "reset") {
        return Err(tokens.unsupported(range.start, "this form of ALTER INDEX"));
    }
    Ok(Statement::AlterObject(Box::new(AlterObject {
        object: AlteredObject::Index(name),
        if_exists,
        change: ObjectChange::Parameters(parameters(tokens, at + 1..range.end)?),
    })))
}

/// The names in `(name [= value], …)`, with that of their namespace before them.
fn parameters(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<Ident>> {
    let last = range.end - 1;
    if *tokens.get(last) != Token::RParen || range.start + 1 >= last {
        return Err(tokens.syntax_error(last));
    }
    let parts = tokens.split(range.start + 1..last).into_iter();
    let name = |part: Range<usize>| {
        let end = part.clone().find(|at| *tokens.get(*at) == Token::Eq);
        let mut idents = types::identifiers(tokens, part.start..end.unwrap_or(part.end))?;
        let mut name = idents
            .pop()
            .ok_or_else(|| tokens.syntax_error(part.start))?;
        if let Some(namespace) = idents.pop() {
            name.value = format!("{}.{}", namespace.value, name.value);
        }
        Ok(name)
    };
    parts.map(name).collect()
}

/// Parses `RENAME TO …` or `OWNER TO …`; `None` for anything else.
pub(super) fn object_change(
    tokens: &Tokens<'_>,
    range: Range<usize>,
) -> Result<Option<ObjectChange>> {
    let at = range.start;
    let change = match tokens.word(at) {
        "rename" => ObjectChange::Rename(NewName::Name(renamed(tokens, at + 1)?)),
        "set" if tokens.word(at + 1) == "schema" => {
            ObjectChange::Rename(NewName::Schema(types::identifier(tokens, at + 2)?))
        }
        "owner" => ObjectChange::Owner(owner(tokens, at)?),
        _ => return Ok(None),
    };
    match at + 3 < range.end {
        true => Err(tokens.syntax_error(at + 3)),
        false => Ok(Some(change)),
    }
}

/// The role behind `OWNER TO`.
fn owner(tokens: &Tokens<'_>, at: usize) -> Result<RoleName> {
    match tokens.word(at + 1) {
        "to" => role::role(tokens, at + 2),
        _ => Err(tokens.syntax_error(at + 1)),
    }
}

/// The name behind `TO`.
fn renamed(tokens: &Tokens<'_>, at: usize) -> Result<Ident> {
    match tokens.word(at) {
        "to" => types::identifier(tokens, at + 1),
        _ => Err(tokens.syntax_error(at)),
    }
}

fn if_exists(tokens: &Tokens<'_>, at: usize) -> (bool, usize) {
    match tokens.words(at, &["if", "exists"]) {
        true => (true, at + 2),
        false => (false, at),
    }
}

fn routine(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    kind: Option<RoutineKind>,
) -> Result<Statement> {
    let start = range.start + 2;
    let is_change = |at: &usize| {
        matches!(tokens.word(*at), "rename" | "owner") || tokens.words(*at, &["set", "schema"])
    };
    let at = (start + 1..range.end).rfind(is_change);
    let refused = || tokens.unsupported(range.start, "this form of ALTER of a routine");
    let at = at.ok_or_else(refused)?;
    let signature = routine_signature(tokens, start..at)?;
    let change = object_change(tokens, at..range.end)?.ok_or_else(refused)?;
    Ok(Statement::AlterObject(Box::new(AlterObject {
        object: AlteredObject::Routine(kind, signature),
        if_exists: false,
        change,
    })))
}

fn table(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let (if_exists, mut at) = if_exists(tokens, range.start + 2);
    if tokens.word(at) == "only" {
        at += 1;
    }
    let (name, at) = sequence::name(tokens, at..range.end)?;
    let at = match tokens.get(at) {
        // The table with those that inherit from it, of which there are none.
        Token::Mul => at + 1,
        _ => at,
    };
    if at >= range.end {
        return Err(tokens.syntax_error(at));
    }
    let mut actions = Vec::new();
    for part in tokens.split(at..range.end) {
        let action = action(tokens, part.clone())?;
        if part.end < range.end && stands_alone(&action) {
            return Err(tokens.syntax_error(part.end));
        }
        if !actions.is_empty() && stands_alone(&action) {
            return Err(tokens.syntax_error(part.start));
        }
        actions.push(action);
    }
    Ok(Statement::AlterTable(Box::new(AlterTable {
        name,
        if_exists,
        actions,
    })))
}

/// Whether no other change may be made with this one.
fn stands_alone(action: &TableAction) -> bool {
    matches!(
        action,
        TableAction::Rename(_)
            | TableAction::RenameColumn(..)
            | TableAction::RenameConstraint(..)
            | TableAction::PartitionBy(_)
            | TableAction::Replicated
    )
}

fn action(tokens: &Tokens<'_>, range: Range<usize>) -> Result<TableAction> {
    let at = range.start;
    if range.is_empty() {
        return Err(tokens.syntax_error(at));
    }
    match (tokens.word(at), tokens.word(at + 1)) {
        ("add", "constraint" | "primary" | "unique" | "foreign" | "check" | "exclude") => {
            added_constraint(tokens, at + 1..range.end)
        }
        ("add", _) => added_column(tokens, at + 1..range.end),
        ("drop", "constraint") => {
            dropped(tokens, at + 2..range.end).map(TableAction::DropConstraint)
        }
        ("drop", "column") => dropped(tokens, at + 2..range.end).map(TableAction::DropColumn),
        ("drop", _) => dropped(tokens, at + 1..range.end).map(TableAction::DropColumn),
        ("alter", "constraint") => {
            let name = types::identifier(tokens, at + 2)?;
            let deferral = deferral(tokens, at + 3..range.end)?;
            Ok(TableAction::AlterConstraint(name, deferral))
        }
        ("alter", _) => sequence::altered_column(tokens, range)
            .map(|(column, change)| TableAction::Column(column, change)),
        ("rename", _) => rename(tokens, range),
        ("owner", _) => {
            ends_at(tokens, at + 3, range.end)?;
            owner(tokens, at).map(TableAction::Owner)
        }
        ("validate", "constraint") => {
            ends_at(tokens, at + 3, range.end)?;
            types::identifier(tokens, at + 2).map(TableAction::ValidateConstraint)
        }
        ("partition", "by") => {
            let expression = tokens.expression(at + 2..range.end)?;
            Ok(TableAction::PartitionBy(Box::new(expression)))
        }
        ("set", "replicated") => {
            ends_at(tokens, at + 2, range.end)?;
            Ok(TableAction::Replicated)
        }
        ("set", "schema") => {
            ends_at(tokens, at + 3, range.end)?;
            let schema = types::identifier(tokens, at + 2)?;
            Ok(TableAction::Rename(NewName::Schema(schema)))
        }
        ("enable" | "disable", "trigger") => {
            trigger::switched(tokens, range).map(TableAction::SwitchTrigger)
        }
        ("set" | "reset", _) if *tokens.get(at + 1) == Token::LParen => {
            parameters(tokens, at + 1..range.end).map(TableAction::Parameters)
        }
        ("cluster", "on") => {
            ends_at(tokens, at + 3, range.end)?;
            Ok(TableAction::WithoutEffect)
        }
        ("set", "without") if matches!(tokens.word(at + 2), "cluster" | "oids") => {
            ends_at(tokens, at + 3, range.end)?;
            Ok(TableAction::WithoutEffect)
        }
        ("set", "logged" | "unlogged") => {
            ends_at(tokens, at + 2, range.end)?;
            Ok(TableAction::WithoutEffect)
        }
        ("set", "tablespace") if tokens.word(at + 2) == "pg_default" => {
            ends_at(tokens, at + 3, range.end)?;
            Ok(TableAction::WithoutEffect)
        }
        ("set", "access") if tokens.words(at + 2, &["method", "heap"]) => {
            ends_at(tokens, at + 4, range.end)?;
            Ok(TableAction::WithoutEffect)
        }
        ("replica", "identity") => {
            let words = match tokens.word(at + 2) {
                "full" | "default" | "nothing" => 3,
                "using" if tokens.word(at + 3) == "index" => 5,
                _ => return Err(tokens.syntax_error(at + 2)),
            };
            ends_at(tokens, at + words, range.end)?;
            Ok(TableAction::WithoutEffect)
        }
        (
            word @ ("set" | "reset" | "enable" | "disable" | "cluster" | "replica" | "inherit"
            | "no" | "of" | "not" | "force" | "attach" | "detach"),
            _,
        ) => {
            let feature = format!("ALTER TABLE … {}", word.to_ascii_uppercase());
            Err(tokens.unsupported(at, &feature))
        }
        _ => Err(tokens.syntax_error(at)),
    }
}

/// `[NOT] DEFERRABLE` and `INITIALLY DEFERRED` or `IMMEDIATE`, in any order.
fn deferral(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Deferral> {
    let (mut deferrable, mut deferred) = (None, None);
    let mut at = range.start;
    while at < range.end {
        let (word, next) = (tokens.word(at), tokens.word(at + 1));
        let (place, value, words) = match (word, next) {
            ("deferrable", _) => (&mut deferrable, true, 1),
            ("not", "deferrable") => (&mut deferrable, false, 2),
            ("initially", "deferred") => (&mut deferred, true, 2),
            ("initially", "immediate") => (&mut deferred, false, 2),
            _ => return Err(tokens.syntax_error(at)),
        };
        if at + words > range.end || place.replace(value).is_some() {
            return Err(tokens.syntax_error(at));
        }
        at += words;
    }
    match (deferrable, deferred) {
        (Some(false), Some(true)) => {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
        (_, Some(true)) => Ok(Deferral::InitiallyDeferred),
        (Some(true), _) => Ok(Deferral::InitiallyImmediate),
        _ => Ok(Deferral::No),
    }
}

fn ends_at(tokens: &Tokens<'_>, at: usize, end: usize) -> Result<()> {
    match at < end {
        true => Err(tokens.syntax_error(at)),
        false => Ok(()),
    }
}

fn rename(tokens: &Tokens<'_>, range: Range<usize>) -> Result<TableAction> {
    let at = range.start + 1;
    let (from, action): (usize, fn(Ident, Ident) -> TableAction) = match tokens.word(at) {
        "to" if at + 2 == range.end => {
            let name = types::identifier(tokens, at + 1)?;
            return Ok(TableAction::Rename(NewName::Name(name)));
        }
        "constraint" => (at + 1, TableAction::RenameConstraint),
        "column" => (at + 1, TableAction::RenameColumn),
        _ => (at, TableAction::RenameColumn),
    };
    ends_at(tokens, from + 3, range.end)?;
    let name = types::identifier(tokens, from)?;
    Ok(action(name, renamed(tokens, from + 1)?))
}

fn dropped(tokens: &Tokens<'_>, range: Range<usize>) -> Result<DroppedPart> {
    let (if_exists, at) = if_exists(tokens, range.start);
    let behaviour = tokens.word(at + 1);
    let is_behaviour = matches!(behaviour, "cascade" | "restrict");
    ends_at(tokens, at + 1 + usize::from(is_behaviour), range.end)?;
    if at >= range.end {
        return Err(tokens.syntax_error(at));
    }
    Ok(DroppedPart {
        name: types::identifier(tokens, at)?,
        if_exists,
        cascade: behaviour == "cascade" && at + 1 < range.end,
    })
}

fn added_column(tokens: &Tokens<'_>, range: Range<usize>) -> Result<TableAction> {
    let mut at = range.start;
    if tokens.word(at) == "column" {
        at += 1;
    }
    let if_not_exists = tokens.words(at, &["if", "not", "exists"]);
    if if_not_exists {
        at += 3;
    }
    let sequence::ColumnParts {
        known,
        identities,
        set_columns,
    } = sequence::column_parts(tokens, at..range.end, range.start)?;
    let definition = tokens.sql_parts(None, &known, |parser| parser.parse_column_def())?;
    Ok(TableAction::AddColumn(Box::new(AddedColumn {
        definition,
        identities,
        set_columns,
        if_not_exists,
    })))
}

fn added_constraint(tokens: &Tokens<'_>, range: Range<usize>) -> Result<TableAction> {
    let mut end = range.end;
    let not_valid = end >= range.start + 2 && tokens.words(end - 2, &["not", "valid"]);
    if not_valid {
        end -= 2;
    }
    // There is one tablespace.
    if end >= range.start + 4 && tokens.words(end - 4, &["using", "index", "tablespace"]) {
        end -= 4;
    }
    let is_kept = |at: usize| tokens.words(at, &["using", "index"]);
    if let Some(at) = (range.start..end).find(|at| is_kept(*at)) {
        return Err(tokens.unsupported(at, "a key of an index that there is"));
    }
    let (mut parts, mut set_columns) = (Vec::new(), Vec::new());
    let (mut start, mut at) = (range.start, range.start);
    while at < end {
        if let Some((list, next)) = sequence::listed_columns(tokens, at, range.start..end)? {
            set_columns.push(list);
            parts.push(start..at);
            (start, at) = (next, next);
        } else {
            at += 1;
        }
    }
    parts.push(start..end);
    let parsed = tokens.sql_parts(None, &parts, |parser| {
        parser.parse_optional_table_constraint()
    })?;
    let constraint = parsed.ok_or_else(|| tokens.syntax_error(range.start))?;
    let is_checked = matches!(
        constraint,
        ast::TableConstraint::Check(_) | ast::TableConstraint::ForeignKey(_)
    );
    if not_valid && !is_checked {
        let kind = match constraint {
            ast::TableConstraint::PrimaryKey(_) => "PRIMARY KEY",
            ast::TableConstraint::Unique(_) => "UNIQUE",
            _ => "EXCLUDE",
        };
        let message = format!("{kind} constraints cannot be marked NOT VALID");
        return Err(tokens.error_at(end, SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(TableAction::AddConstraint(Box::new(AddedConstraint {
        constraint,
        set_columns,
        not_valid,
    })))
}

/// The text of a statement that creates a routine, with another name for it.
///
/// # Errors
/// 42601 for a text that creates none.
pub fn renamed_routine(text: &str, name: &str) -> Result<String> {
    let tokens = Tokens::new(text, super::Position { line: 1, column: 1 })?;
    let mut start = 0;
    while start < tokens.len() && !matches!(tokens.word(start), "function" | "procedure") {
        start += 1;
    }
    let (_, end) = sequence::name(&tokens, start + 1..tokens.len())?;
    let written = tokens.text(start + 1..end);
    let at = written.as_ptr().addr() - text.as_ptr().addr();
    let behind = &text[at + written.len()..];
    Ok(format!("{}{name}{behind}", &text[..at]))
}
