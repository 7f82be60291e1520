//! Sequences and identity columns, of which the SQL parser knows too little.

use std::ops::Range;

use kiln_storage::error::{Position, Result, SqlState};
use kiln_storage::sequence::Identity;
use sqlparser::ast::{self, Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::like::{self, Like};
use super::statement::Statement;
use super::tokens::Tokens;
use super::types;

/// `CREATE SEQUENCE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSequence {
    /// Whether it is the session's own.
    pub is_temporary: bool,
    /// Its name.
    pub name: ObjectName,
    /// One that is there is no error.
    pub if_not_exists: bool,
    /// What it is.
    pub options: SequenceOptions,
}

/// `ALTER SEQUENCE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSequence {
    /// Its name.
    pub name: ObjectName,
    /// One that is missing is no error.
    pub if_exists: bool,
    /// What it becomes.
    pub options: SequenceOptions,
}

/// The options of a sequence that were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceOptions {
    /// `AS type`.
    pub data_type: Option<ast::DataType>,
    /// `INCREMENT BY`.
    pub increment: Option<i64>,
    /// `MINVALUE`, or `NO MINVALUE`.
    pub min: Option<Option<i64>>,
    /// `MAXVALUE`, or `NO MAXVALUE`.
    pub max: Option<Option<i64>>,
    /// `START WITH`.
    pub start: Option<i64>,
    /// `RESTART`, with a value or without.
    pub restart: Option<Option<i64>>,
    /// `CACHE`.
    pub cache: Option<i64>,
    /// `CYCLE`, or `NO CYCLE`.
    pub cycle: Option<bool>,
    /// `OWNED BY`: the parts of the column's name, or none for NONE.
    pub owned_by: Option<Vec<Ident>>,
    /// `SEQUENCE NAME`, for an identity column.
    pub name: Option<ObjectName>,
}

/// `GENERATED … AS IDENTITY` of a column of `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentityColumn {
    /// The column.
    pub column: Ident,
    /// Whether it takes values that are given.
    pub identity: Identity,
    /// Its sequence.
    pub options: SequenceOptions,
}

/// `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// What the SQL parser knows of it.
    pub table: ast::CreateTable,
    /// Its identity columns; a column may be there twice.
    pub identities: Vec<IdentityColumn>,
    /// The columns that actions of foreign keys set, where they are listed.
    pub set_columns: Vec<SetColumns>,
    /// The relations whose columns it has too.
    pub likes: Vec<Like>,
}

/// The list of columns behind `ON DELETE SET NULL` or `SET DEFAULT`.
#[derive(Clone, Debug, PartialEq)]
pub struct SetColumns {
    /// Where the name of the referenced table stands.
    pub references: Position,
    /// The columns.
    pub columns: Vec<Ident>,
}

/// What ALTER TABLE does to a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnChange {
    /// `SET DEFAULT`, or `DROP DEFAULT`.
    Default(Option<Box<ast::Expr>>),
    /// `ADD GENERATED … AS IDENTITY`.
    AddIdentity(Identity, Box<SequenceOptions>),
    /// `SET GENERATED …`, and `SET` of options of its sequence.
    SetIdentity(Option<Identity>, Box<SequenceOptions>),
    /// `DROP IDENTITY`.
    DropIdentity {
        /// One that is none is no error.
        if_exists: bool,
    },
    /// `DROP EXPRESSION`.
    DropExpression {
        /// One that is computed from nothing is no error.
        if_exists: bool,
    },
    /// `SET NOT NULL`, or `DROP NOT NULL`.
    NotNull(bool),
    /// `TYPE`, with the expression behind USING.
    Type(Box<ast::DataType>, Option<Box<ast::Expr>>),
    /// `SET STATISTICS`, `SET STORAGE`, `SET COMPRESSION`, `SET (…)` and `RESET (…)`: how
    /// PostgreSQL stores the column and counts its values.
    WithoutEffect,
}

/// Parses CREATE SEQUENCE, whose name begins at `at` or behind IF NOT EXISTS.
pub(super) fn create(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    at: usize,
    is_temporary: bool,
) -> Result<Statement> {
    let if_not_exists = tokens.words(at, &["if", "not", "exists"]);
    let at = if if_not_exists { at + 3 } else { at };
    let (name, at) = name(tokens, at..range.end)?;
    Ok(Statement::CreateSequence(Box::new(CreateSequence {
        is_temporary,
        name,
        if_not_exists,
        options: options(tokens, at..range.end, false)?,
    })))
}

/// Parses ALTER SEQUENCE.
pub(super) fn alter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Statement> {
    let at = range.start + 2;
    let if_exists = tokens.words(at, &["if", "exists"]);
    let at = if if_exists { at + 2 } else { at };
    let (name, at) = name(tokens, at..range.end)?;
    match tokens.word(at) {
        "" if at >= range.end => return Err(tokens.syntax_error(at)),
        "set" => return Err(tokens.unsupported(at, "ALTER SEQUENCE … SET")),
        _ => {}
    }
    Ok(Statement::AlterSequence(Box::new(AlterSequence {
        name,
        if_exists,
        options: options(tokens, at..range.end, false)?,
    })))
}

/// Parses a name with its schema, and says where it ends.
pub(super) fn name(tokens: &Tokens<'_>, range: Range<usize>) -> Result<(ObjectName, usize)> {
    let mut end = range.start + 1;
    while end + 1 < range.end && *tokens.get(end) == Token::Period {
        end += 2;
    }
    let parts = types::identifiers(tokens, range.start..end)?;
    Ok((ObjectName::from(parts), end))
}

/// Parses options of a sequence; of an identity column's in parentheses if `is_identity`.
fn options(tokens: &Tokens<'_>, range: Range<usize>, is_identity: bool) -> Result<SequenceOptions> {
    let mut options = SequenceOptions::default();
    let mut at = range.start;
    while at < range.end {
        at = option(tokens, at..range.end, is_identity, &mut options)?;
    }
    Ok(options)
}

/// Parses one option; returns where the next one begins.
fn option(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    is_identity: bool,
    options: &mut SequenceOptions,
) -> Result<usize> {
    let at = range.start;
    let value = |after: usize, noise: &str| {
        let is_noise = !noise.is_empty() && tokens.word(after) == noise;
        number(tokens, if is_noise { after + 1 } else { after })
    };
    let (is_new, next) = match tokens.word(at) {
        "as" => {
            let end = type_end(tokens, at + 1..range.end);
            let written = tokens.sql(at + 1..end, |parser| parser.parse_data_type())?;
            (options.data_type.replace(written).is_none(), end)
        }
        "increment" => {
            let (increment, next) = value(at + 1, "by")?;
            (options.increment.replace(increment).is_none(), next)
        }
        "minvalue" => {
            let (min, next) = value(at + 1, "")?;
            (options.min.replace(Some(min)).is_none(), next)
        }
        "maxvalue" => {
            let (max, next) = value(at + 1, "")?;
            (options.max.replace(Some(max)).is_none(), next)
        }
        "start" => {
            let (start, next) = value(at + 1, "with")?;
            (options.start.replace(start).is_none(), next)
        }
        "cache" => {
            let (cache, next) = value(at + 1, "")?;
            (options.cache.replace(cache).is_none(), next)
        }
        "restart" => {
            let has_value = tokens.word(at + 1) == "with" || is_number(tokens, at + 1);
            let (restart, next) = match has_value {
                true => value(at + 1, "with").map(|(value, next)| (Some(value), next))?,
                false => (None, at + 1),
            };
            (options.restart.replace(restart).is_none(), next)
        }
        "cycle" => (options.cycle.replace(true).is_none(), at + 1),
        "no" => match tokens.word(at + 1) {
            "minvalue" => (options.min.replace(None).is_none(), at + 2),
            "maxvalue" => (options.max.replace(None).is_none(), at + 2),
            "cycle" => (options.cycle.replace(false).is_none(), at + 2),
            _ => return Err(tokens.syntax_error(at + 1)),
        },
        "owned" if tokens.word(at + 1) == "by" => {
            if is_identity {
                return Err(tokens.syntax_error(at));
            }
            let (owner, next) = match tokens.word(at + 2) {
                "none" => (Vec::new(), at + 3),
                _ => owner(tokens, at + 2..range.end)?,
            };
            (options.owned_by.replace(owner).is_none(), next)
        }
        "sequence" if tokens.word(at + 1) == "name" => {
            if !is_identity {
                let message = "invalid sequence option SEQUENCE NAME";
                return Err(tokens.error_at(at, SqlState::SYNTAX_ERROR, message));
            }
            let (name, next) = name(tokens, at + 2..range.end)?;
            (options.name.replace(name).is_none(), next)
        }
        _ => return Err(tokens.syntax_error(at)),
    };
    match is_new {
        true => Ok(next),
        false => {
            let message = "conflicting or redundant options";
            Err(tokens.error_at(at, SqlState::SYNTAX_ERROR, message))
        }
    }
}

fn owner(tokens: &Tokens<'_>, range: Range<usize>) -> Result<(Vec<Ident>, usize)> {
    let (name, next) = name(tokens, range)?;
    let parts = name.0.iter().filter_map(|part| part.as_ident().cloned());
    Ok((parts.collect(), next))
}

/// Where a type ends that begins here: before the next option.
fn type_end(tokens: &Tokens<'_>, range: Range<usize>) -> usize {
    const OPTIONS: [&str; 12] = [
        "increment",
        "minvalue",
        "maxvalue",
        "start",
        "cache",
        "restart",
        "cycle",
        "no",
        "owned",
        "sequence",
        "as",
        "set",
    ];
    let mut rest = range.start + 1..range.end;
    let end = rest.find(|at| OPTIONS.contains(&tokens.word(*at)));
    end.unwrap_or(range.end)
}

fn is_number(tokens: &Tokens<'_>, at: usize) -> bool {
    let at = match tokens.get(at) {
        Token::Plus | Token::Minus => at + 1,
        _ => at,
    };
    matches!(tokens.get(at), Token::Number(..))
}

/// Parses a whole number with its sign; returns where the next token is.
fn number(tokens: &Tokens<'_>, at: usize) -> Result<(i64, usize)> {
    let (is_negative, digits) = match tokens.get(at) {
        Token::Minus => (true, at + 1),
        Token::Plus => (false, at + 1),
        _ => (false, at),
    };
    let Token::Number(written, _) = tokens.get(digits) else {
        return Err(tokens.syntax_error(digits));
    };
    let text = match is_negative {
        true => format!("-{written}"),
        false => written.clone(),
    };
    let value = text.parse::<i64>().map_err(|_| {
        let is_whole = written.bytes().all(|byte| byte.is_ascii_digit());
        let (state, message) = match is_whole {
            true => (
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value \"{text}\" is out of range for type bigint"),
            ),
            false => (
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type bigint: \"{text}\""),
            ),
        };
        tokens.error_at(digits, state, message)
    })?;
    Ok((value, digits + 1))
}

/// `ALWAYS` or `BY DEFAULT`; returns where the next token is.
fn identity(tokens: &Tokens<'_>, at: usize) -> Option<(Identity, usize)> {
    match tokens.word(at) {
        "always" => Some((Identity::Always, at + 1)),
        "by" if tokens.word(at + 1) == "default" => Some((Identity::ByDefault, at + 2)),
        _ => None,
    }
}

/// `GENERATED … AS IDENTITY [(options)]` at `at`, if it is there; returns where the next token is.
fn generated(
    tokens: &Tokens<'_>,
    at: usize,
    end: usize,
) -> Result<Option<(Identity, SequenceOptions, usize)>> {
    if tokens.word(at) != "generated" {
        return Ok(None);
    }
    let Some((identity, next)) = identity(tokens, at + 1) else {
        return Ok(None);
    };
    if !tokens.words(next, &["as", "identity"]) {
        return Ok(None);
    }
    let open = next + 2;
    if open >= end || *tokens.get(open) != Token::LParen {
        return Ok(Some((identity, SequenceOptions::default(), open)));
    }
    let close = (open..end).find(|at| *tokens.get(*at) == Token::RParen);
    let close = close.ok_or_else(|| tokens.syntax_error(end))?;
    if close == open + 1 {
        return Err(tokens.syntax_error(close));
    }
    let options = options(tokens, open + 1..close, true)?;
    Ok(Some((identity, options, close + 1)))
}

/// Whether an identity column takes values that are given, and its sequence.
pub(super) type WrittenIdentity = (Identity, SequenceOptions);

/// A column's definition in the parts that the SQL parser knows, and what it does not.
#[derive(Default)]
pub(super) struct ColumnParts {
    /// The stretches that it knows.
    pub known: Vec<Range<usize>>,
    pub identities: Vec<WrittenIdentity>,
    pub set_columns: Vec<SetColumns>,
}

/// Divides a column's definition. The statement's action begins at `action`.
pub(super) fn column_parts(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    action: usize,
) -> Result<ColumnParts> {
    let mut parts = ColumnParts::default();
    let (mut start, mut at, mut depth) = (range.start, range.start + 2, 0_i32);
    while at < range.end {
        match tokens.get(at) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0
            && let Some((identity, options, next)) = generated(tokens, at, range.end)?
        {
            parts.identities.push((identity, options));
            // A CONSTRAINT name before it names nothing.
            let named = at >= start + 2 && tokens.word(at - 2) == "constraint";
            parts.known.push(start..if named { at - 2 } else { at });
            (start, at) = (next, next);
            continue;
        }
        if let Some((list, next)) = listed_columns(tokens, at, action..range.end)? {
            parts.set_columns.push(list);
            parts.known.push(start..at);
            depth -= 1;
            (start, at) = (next, next);
            continue;
        }
        at += 1;
    }
    parts.known.push(start..range.end);
    Ok(parts)
}

/// The access method of a table, which is the one that rows have.
///
/// # Errors
/// 42704 for another one.
pub(super) fn check_access_method(tokens: &Tokens<'_>, at: usize) -> Result<()> {
    let method = types::identifier(tokens, at)?.value;
    match method.as_str() {
        "heap" => Ok(()),
        _ => {
            let message = format!("access method \"{method}\" does not exist");
            Err(tokens.error_at(at, SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

/// Parses CREATE TABLE: the SQL parser all but the identities of columns, and lists of columns that
/// actions set.
pub(super) fn create_table(tokens: &Tokens<'_>, range: Range<usize>) -> Result<CreateTable> {
    let (mut identities, mut set_columns) = (Vec::new(), Vec::new());
    let mut parts = Vec::new();
    let (mut start, mut at, mut depth) = (range.start, range.start, 0_i32);
    // A table that is not logged in PostgreSQL is logged here.
    if tokens.word(at + 1) == "unlogged" {
        parts.push(at..at + 1);
        (start, at) = (at + 2, at + 2);
    }
    // Where the definition of the present column begins.
    let mut column = None;
    let (mut likes, mut columns, mut has_element) = (Vec::new(), 0, false);
    while at < range.end {
        match tokens.get(at) {
            Token::LParen => {
                depth += 1;
                if depth == 1 {
                    column.get_or_insert(at + 1);
                }
            }
            Token::RParen => depth -= 1,
            Token::Comma if depth == 1 => column = Some(at + 1),
            _ => {}
        }
        if depth == 0 && column.is_some() && tokens.word(at) == "using" {
            check_access_method(tokens, at + 1)?;
            parts.push(start..at);
            (start, at) = (at + 2, at + 2);
            continue;
        }
        if depth == 1 && column == Some(at) {
            if tokens.word(at) == "like" {
                let (like, next) = like::like(tokens, at..range.end, columns)?;
                likes.push(like);
                // The comma goes that would be left over: the one before it, or behind it if it is
                // the first.
                let is_comma = *tokens.get(next) == Token::Comma;
                parts.push(start..at - usize::from(has_element));
                start = next + usize::from(is_comma && !has_element);
                column = is_comma.then_some(next + 1);
                at = next + usize::from(is_comma);
                continue;
            }
            columns += usize::from(!is_table_constraint(tokens.word(at)));
            has_element = true;
        }
        if depth == 1
            && let Some(column) = column
            && at > column + 1
            && let Some((identity, options, next)) = generated(tokens, at, range.end)?
        {
            identities.push(IdentityColumn {
                column: types::identifier(tokens, column)?,
                identity,
                options,
            });
            // A CONSTRAINT name before it names nothing.
            let named = at >= start + 2 && tokens.word(at - 2) == "constraint";
            parts.push(start..if named { at - 2 } else { at });
            (start, at) = (next, next);
            continue;
        }
        if let Some((list, next)) = listed_columns(tokens, at, range.clone())? {
            set_columns.push(list);
            parts.push(start..at);
            depth -= 1;
            (start, at) = (next, next);
            continue;
        }
        at += 1;
    }
    parts.push(start..range.end);
    match tokens.sql_parts(None, &parts, |parser| parser.parse_statement())? {
        ast::Statement::CreateTable(table) => Ok(CreateTable {
            table,
            identities,
            set_columns,
            likes,
        }),
        _ => Err(tokens.syntax_error(range.start + 1)),
    }
}

/// Whether an element of a table that begins with this word is no column.
fn is_table_constraint(word: &str) -> bool {
    const WORDS: [&str; 6] = [
        "constraint",
        "primary",
        "unique",
        "check",
        "foreign",
        "exclude",
    ];
    WORDS.contains(&word)
}

/// Parses the list of columns that opens at `at` behind an action of a foreign key; gives what
/// follows it.
pub(super) fn listed_columns(
    tokens: &Tokens<'_>,
    at: usize,
    range: Range<usize>,
) -> Result<Option<(SetColumns, usize)>> {
    if *tokens.get(at) != Token::LParen || at < range.start + 5 {
        return Ok(None);
    }
    let action = at - 4;
    let is_action = tokens.word(action) == "on"
        && tokens.word(at - 2) == "set"
        && matches!(tokens.word(at - 1), "null" | "default");
    let mut before = (range.start..action).rev();
    let references = before.find(|at| tokens.word(*at) == "references");
    let (true, Some(references)) = (is_action, references) else {
        return Ok(None);
    };
    if tokens.word(action + 1) != "delete" {
        let what = tokens.word(at - 1).to_uppercase();
        let message =
            format!("a column list with SET {what} is only supported for ON DELETE actions");
        return Err(tokens.error_at(at, SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let close = (at..range.end).find(|at| *tokens.get(*at) == Token::RParen);
    let close = close.ok_or_else(|| tokens.syntax_error(range.end))?;
    let column = |part: Range<usize>| match part.len() {
        1 => types::identifier(tokens, part.start),
        _ => Err(tokens.syntax_error(part.start)),
    };
    let columns = tokens.split(at + 1..close).into_iter().map(column);
    let list = SetColumns {
        references: tokens.position(references + 1),
        columns: columns.collect::<Result<_>>()?,
    };
    Ok(Some((list, close + 1)))
}

/// Parses `ALTER [COLUMN] name …` of ALTER TABLE.
pub(super) fn altered_column(
    tokens: &Tokens<'_>,
    range: Range<usize>,
) -> Result<(Ident, ColumnChange)> {
    let mut at = range.start + 1;
    if tokens.word(at) == "column" {
        at += 1;
    }
    let column = types::identifier(tokens, at)?;
    let at = at + 1;
    let refused = || tokens.unsupported(at, "this form of ALTER TABLE … ALTER COLUMN");
    let change = match (tokens.word(at), tokens.word(at + 1)) {
        ("set", "default") => {
            let expr = tokens.expression(at + 2..range.end)?.expr;
            ColumnChange::Default(Some(Box::new(expr)))
        }
        ("drop", "default") if at + 2 == range.end => ColumnChange::Default(None),
        ("set", "not") if tokens.word(at + 2) == "null" && at + 3 == range.end => {
            ColumnChange::NotNull(true)
        }
        ("drop", "not") if tokens.word(at + 2) == "null" && at + 3 == range.end => {
            ColumnChange::NotNull(false)
        }
        ("type", _) => column_type(tokens, at + 1..range.end)?,
        ("set", "data") if tokens.word(at + 2) == "type" => column_type(tokens, at + 3..range.end)?,
        ("add", "generated") => match generated(tokens, at + 1, range.end)? {
            Some((identity, options, next)) if next == range.end => {
                ColumnChange::AddIdentity(identity, Box::new(options))
            }
            Some((_, _, next)) => return Err(tokens.syntax_error(next)),
            None => return Err(refused()),
        },
        ("drop", "expression") => {
            let if_exists = tokens.words(at + 2, &["if", "exists"]);
            if at + if if_exists { 4 } else { 2 } != range.end {
                return Err(tokens.syntax_error(at + 2));
            }
            ColumnChange::DropExpression { if_exists }
        }
        ("drop", "identity") => {
            let if_exists = tokens.words(at + 2, &["if", "exists"]);
            if at + if if_exists { 4 } else { 2 } != range.end {
                return Err(tokens.syntax_error(at + 2));
            }
            ColumnChange::DropIdentity { if_exists }
        }
        ("set", "generated" | "increment" | "minvalue" | "maxvalue" | "start" | "cache" | "no")
        | ("set", "cycle" | "restart")
        | ("restart", _) => set_identity(tokens, at..range.end)?,
        ("set", "statistics" | "storage" | "compression")
            if at + 3 + usize::from(*tokens.get(at + 2) == Token::Minus) == range.end =>
        {
            ColumnChange::WithoutEffect
        }
        ("set", "statistics" | "storage" | "compression") if at + 2 == range.end => {
            return Err(tokens.syntax_error(range.end));
        }
        ("set" | "reset", "") if *tokens.get(range.end - 1) == Token::RParen => {
            ColumnChange::WithoutEffect
        }
        ("set" | "drop" | "add" | "reset", _) => return Err(refused()),
        _ => return Err(tokens.syntax_error(at)),
    };
    Ok((column, change))
}

/// Parses a type with `COLLATE …` and `USING …` behind it.
fn column_type(tokens: &Tokens<'_>, range: Range<usize>) -> Result<ColumnChange> {
    let mut rest = range.clone();
    let using = rest.find(|at| tokens.word(*at) == "using");
    let end = using.unwrap_or(range.end);
    if let Some(at) = (range.start..end).find(|at| tokens.word(*at) == "collate") {
        return Err(tokens.unsupported(at, "COLLATE here"));
    }
    let data_type = tokens.sql(range.start..end, |parser| parser.parse_data_type())?;
    let using = match using {
        Some(at) => Some(Box::new(tokens.expression(at + 1..range.end)?.expr)),
        None => None,
    };
    Ok(ColumnChange::Type(Box::new(data_type), using))
}

/// Parses `SET GENERATED …`, `SET option` and `RESTART`, one after the other.
fn set_identity(tokens: &Tokens<'_>, range: Range<usize>) -> Result<ColumnChange> {
    let (mut options, mut generated, mut at) = (SequenceOptions::default(), None, range.start);
    while at < range.end {
        match tokens.word(at) {
            "set" if tokens.word(at + 1) == "generated" => {
                let found = identity(tokens, at + 2);
                let (identity, next) = found.ok_or_else(|| tokens.syntax_error(at + 2))?;
                if generated.replace(identity).is_some() {
                    let message = "conflicting or redundant options";
                    return Err(tokens.error_at(at, SqlState::SYNTAX_ERROR, message));
                }
                at = next;
            }
            "set" => at = option(tokens, at + 1..range.end, true, &mut options)?,
            "restart" => at = option(tokens, at..range.end, true, &mut options)?,
            _ => return Err(tokens.syntax_error(at)),
        }
    }
    Ok(ColumnChange::SetIdentity(generated, Box::new(options)))
}

/// What an INSERT overrides: see [`overriding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// `OVERRIDING SYSTEM VALUE`: values that are given count for identity columns.
    SystemValue,
    /// `OVERRIDING USER VALUE`: they do not.
    UserValue,
}

impl Overriding {
    const SYSTEM: &'static str = "overriding system value";
    const USER: &'static str = "overriding user value";

    /// What stands for the three words in the tree of an INSERT, where the SQL parser has a place
    /// for a list of partitions.
    pub(super) fn marker(tokens: &Tokens<'_>, at: usize) -> Option<&'static str> {
        if tokens.words(at, &["overriding", "system", "value"]) {
            Some(Overriding::SYSTEM)
        } else if tokens.words(at, &["overriding", "user", "value"]) {
            Some(Overriding::USER)
        } else {
            None
        }
    }

    /// What a marker stands for.
    pub(super) fn of_marker(marker: &str) -> Option<Overriding> {
        match marker {
            Overriding::SYSTEM => Some(Overriding::SystemValue),
            Overriding::USER => Some(Overriding::UserValue),
            _ => None,
        }
    }
}

/// Whether the marker stands where the SQL parser has taken it for an alias and a list of columns:
/// behind the name of a table.
pub fn is_overriding_list(insert: &ast::Insert) -> bool {
    let is_marker = |name: &ast::ObjectName| {
        let name = name.to_string();
        [Overriding::SYSTEM, Overriding::USER].contains(&name.trim_matches('"'))
    };
    let alias = insert.table_alias.as_ref();
    alias.is_some_and(|alias| !alias.explicit && alias.alias.value == "partition")
        && matches!(insert.columns.as_slice(), [name] if is_marker(name))
}

/// What an INSERT overrides.
///
/// # Errors
/// 0A000 for a list of partitions, which is not PostgreSQL's.
pub fn overriding(insert: &ast::Insert) -> Result<Option<Overriding>> {
    if is_overriding_list(insert) {
        let is_system = insert.columns[0].to_string().contains(Overriding::SYSTEM);
        return Ok(Some(match is_system {
            true => Overriding::SystemValue,
            false => Overriding::UserValue,
        }));
    }
    let Some(partitions) = &insert.partitioned else {
        return Ok(None);
    };
    match partitions.as_slice() {
        [ast::Expr::Identifier(marker)] if marker.value == Overriding::SYSTEM => {
            Ok(Some(Overriding::SystemValue))
        }
        [ast::Expr::Identifier(marker)] if marker.value == Overriding::USER => {
            Ok(Some(Overriding::UserValue))
        }
        _ => Err(kiln_storage::error::Error::unsupported(
            "this form of INSERT is not supported",
        )),
    }
}
