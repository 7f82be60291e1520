//! `CREATE FUNCTION`, `CREATE PROCEDURE` and `DO`: the header, and the body handed to the parser
//! of its language.

use super::plpgsql;
use super::position::{after, after_text};
use super::script::{SourceStatement, script_at};
use super::statement::{self, RoutineKind, Statement};
use super::tokens::{Expression, Tokens};
use super::types::{self, TypeReference};
use kiln_engine::SearchPath;
use kiln_storage::error::{Error, Position, Result, SqlState};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::tokenizer::Token;
use std::borrow::Cow;
use std::ops::Deref;
use std::ops::Range;

/// `CREATE FUNCTION` or `CREATE PROCEDURE`.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDefinition {
    /// How it is called.
    pub header: FunctionHeader,
    /// What it does.
    pub body: Body,
}

impl Deref for FunctionDefinition {
    type Target = FunctionHeader;

    fn deref(&self) -> &FunctionHeader {
        &self.header
    }
}

/// A routine without its body.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionHeader {
    /// The CREATE keyword.
    pub position: Position,
    /// An existing routine of this name gives way.
    pub or_replace: bool,
    /// Function or procedure.
    pub kind: RoutineKind,
    /// Its name.
    pub name: ObjectName,
    /// Its arguments in order, output arguments included.
    pub arguments: Vec<Argument>,
    /// Its RETURNS clause; `None` for procedures, and for functions whose result is their output
    /// arguments.
    pub returns: Option<Returns>,
    /// What its result may depend on.
    pub volatility: Volatility,
    /// A null argument makes the result null without running the body.
    pub strict: bool,
    /// Its caller needs no privileges for what its body does (SECURITY DEFINER).
    pub is_definer: bool,
    /// Along which its names without a schema are looked for: that of the session that created it.
    pub path: SearchPath,
}

/// An argument of a routine.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its first token.
    pub position: Position,
    /// Its direction.
    pub mode: ArgumentMode,
    /// Its name, if it has one.
    pub name: Option<Ident>,
    /// Its type.
    pub data_type: TypeReference,
    /// Its value where a call leaves it out.
    pub default: Option<Expression>,
}

/// The direction of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentMode {
    /// `IN`, and where none is written.
    In,
    /// `OUT`.
    Out,
    /// `INOUT`.
    InOut,
    /// `VARIADIC`: the elements of an array, which a call gives one by one.
    Variadic,
}

impl ArgumentMode {
    /// Whether callers pass a value.
    pub fn is_input(self) -> bool {
        self != ArgumentMode::Out
    }

    /// Whether the value at the end is part of the result.
    pub fn is_output(self) -> bool {
        matches!(self, ArgumentMode::Out | ArgumentMode::InOut)
    }
}

/// The RETURNS clause of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Returns {
    /// `VOID`.
    Void,
    /// One value, or one record: [`TypeKind::Record`](super::TypeKind::Record).
    Type(TypeReference),
    /// `SETOF type`.
    SetOf(TypeReference),
    /// `TABLE (columns)`.
    Table(Vec<ResultColumn>),
}

/// A column of `RETURNS TABLE (…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// Its name, which is a variable of the body as well.
    pub name: Ident,
    /// Its type.
    pub data_type: TypeReference,
}

/// What the result of a function may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// On its arguments only.
    Immutable,
    /// On its arguments and the database, which it does not change.
    Stable,
    /// On anything. The default.
    Volatile,
}

/// What a routine does.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// `LANGUAGE plpgsql`.
    PlPgSql(plpgsql::Block),
    /// `LANGUAGE sql`: statements, each with the position of its first token. The last one's rows
    /// are the result.
    Sql(Vec<(Position, Statement)>),
}

/// Reads the header of a CREATE FUNCTION or CREATE PROCEDURE that was parsed before, and not its
/// body, which may be long.
///
/// # Errors
/// Those of [`statement`](super::statement()) that concern the header.
pub fn function_header(source: &SourceStatement<'_>) -> Result<FunctionHeader> {
    let tokens = Tokens::new(source.text, source.position())?;
    let mut end = tokens.len();
    if end > 0 && *tokens.get(end - 1) == Token::SemiColon {
        end -= 1;
    }
    let or_replace = tokens.words(1, &["or", "replace"]);
    let kind = if or_replace { 3 } else { 1 };
    header(&tokens, 0..end, kind, or_replace).map(|(header, _)| header)
}

/// What a routine was created with, as far as catalogs show it.
#[derive(Clone, Debug)]
pub struct FunctionSource {
    /// Its header.
    pub header: FunctionHeader,
    /// The language of its body.
    pub language: String,
    /// Its body, as it was written.
    pub body: String,
}

/// Reads a CREATE FUNCTION or CREATE PROCEDURE that was parsed before; its body stays a text.
///
/// # Errors
/// As [`function_header`].
pub fn function_source(source: &SourceStatement<'_>) -> Result<FunctionSource> {
    let tokens = Tokens::new(source.text, source.position())?;
    let mut end = tokens.len();
    if end > 0 && *tokens.get(end - 1) == Token::SemiColon {
        end -= 1;
    }
    let or_replace = tokens.words(1, &["or", "replace"]);
    let kind = if or_replace { 3 } else { 1 };
    let (header, attributes) = header(&tokens, 0..end, kind, or_replace)?;
    let body = attributes
        .body
        .map(|at| body_text(&tokens, at))
        .transpose()?;
    let language = attributes.language.map(|(_, language)| language);
    Ok(FunctionSource {
        header,
        language: language.unwrap_or_default(),
        body: body.map(|(text, _)| text.into_owned()).unwrap_or_default(),
    })
}

fn header(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    kind: usize,
    or_replace: bool,
) -> Result<(FunctionHeader, Attributes)> {
    let routine = match tokens.word(kind) {
        "procedure" => RoutineKind::Procedure,
        _ => RoutineKind::Function,
    };
    let open = (kind..range.end)
        .find(|index| *tokens.get(*index) == Token::LParen)
        .ok_or_else(|| tokens.syntax_error(range.end))?;
    let name = ObjectName::from(types::identifiers(tokens, kind + 1..open)?);
    let close = closing(tokens, open, range.end)?;
    let arguments = arguments(tokens, open + 1..close)?;
    let mut attributes = Attributes::parse(tokens, close + 1..range.end)?;
    if let (RoutineKind::Procedure, Some((at, _))) = (routine, &attributes.returns) {
        return Err(tokens.syntax_error(*at));
    }
    let header = FunctionHeader {
        position: tokens.position(range.start),
        or_replace,
        kind: routine,
        name,
        arguments,
        returns: attributes.returns.take().map(|(_, returns)| returns),
        volatility: attributes.volatility.unwrap_or(Volatility::Volatile),
        strict: attributes.strict.unwrap_or(false),
        is_definer: attributes.is_definer.unwrap_or(false),
        path: SearchPath::default(),
    };
    Ok((header, attributes))
}

/// Parses `range`, whose token at `kind` is FUNCTION or PROCEDURE.
pub(super) fn definition(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    kind: usize,
    or_replace: bool,
) -> Result<FunctionDefinition> {
    let (header, attributes) = header(tokens, range.clone(), kind, or_replace)?;
    let Some(body) = attributes.body else {
        return Err(tokens.error_at(
            range.start,
            SqlState::INVALID_FUNCTION_DEFINITION,
            "no function body specified",
        ));
    };
    let body = match attributes.language.as_ref().map(|(_, name)| name.as_str()) {
        Some("plpgsql") => Body::PlPgSql(plpgsql_body(tokens, body)?),
        Some("sql") => Body::Sql(sql_body(tokens, body)?),
        Some(other) => {
            let at = attributes
                .language
                .as_ref()
                .map_or(range.start, |(at, _)| *at);
            return Err(other_language(tokens, at, other));
        }
        None => {
            return Err(tokens.error_at(
                range.start,
                SqlState::INVALID_FUNCTION_DEFINITION,
                "no language specified",
            ));
        }
    };
    Ok(FunctionDefinition { header, body })
}

/// Parses all of `range` as `DO [LANGUAGE plpgsql] $$…$$`.
pub(super) fn do_block(tokens: &Tokens<'_>, range: Range<usize>) -> Result<plpgsql::Block> {
    let mut body = None;
    let mut index = range.start + 1;
    while index < range.end {
        if tokens.word(index) == "language" {
            let language = language_name(tokens, index + 1)?;
            if language != "plpgsql" {
                return Err(other_language(tokens, index + 1, &language));
            }
            index += 2;
        } else if is_body(tokens, index) && body.is_none() {
            body = Some(index);
            index += 1;
        } else {
            return Err(tokens.syntax_error(index));
        }
    }
    match body {
        Some(body) => plpgsql_body(tokens, body),
        None => Err(tokens.syntax_error(range.end)),
    }
}

/// The parenthesis that closes the one at `open`.
fn closing(tokens: &Tokens<'_>, open: usize, end: usize) -> Result<usize> {
    let mut depth = 0_usize;
    for index in open..end {
        match tokens.get(index) {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    return Ok(index);
                }
            }
            _ => {}
        }
    }
    Err(tokens.syntax_error(end))
}

/// Parses all of `range` as the list of arguments, without its parentheses.
pub(super) fn arguments(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Vec<Argument>> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    tokens
        .split(range)
        .into_iter()
        .map(|range| argument(tokens, range))
        .collect()
}

fn argument(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Argument> {
    if range.is_empty() {
        return Err(tokens.syntax_error(range.end));
    }
    let position = tokens.position(range.start);
    let default = range
        .clone()
        .find(|index| tokens.word(*index) == "default" || *tokens.get(*index) == Token::Eq);
    let mut declared = range.start..default.unwrap_or(range.end);
    let mut mode = mode_at(tokens, &mut declared)?;
    let mut name = None;
    if types::begins_with_name(tokens, declared.clone()) {
        name = Some(types::identifier(tokens, declared.start)?);
        declared.start += 1;
        // PostgreSQL takes the mode after the name as well.
        if mode.is_none() && declared.len() > 1 {
            mode = mode_at(tokens, &mut declared)?;
        }
    }
    let data_type = types::parse(tokens, declared)?;
    let default = match default {
        Some(at) => Some(tokens.expression(at + 1..range.end)?),
        None => None,
    };
    Ok(Argument {
        position,
        mode: mode.unwrap_or(ArgumentMode::In),
        name,
        data_type,
        default,
    })
}

/// Takes the mode off the front of `range`, if there is one.
fn mode_at(tokens: &Tokens<'_>, range: &mut Range<usize>) -> Result<Option<ArgumentMode>> {
    let (mode, words) = match tokens.word(range.start) {
        "in" if range.len() > 1 && tokens.word(range.start + 1) == "out" => {
            (ArgumentMode::InOut, 2)
        }
        "in" => (ArgumentMode::In, 1),
        "out" => (ArgumentMode::Out, 1),
        "inout" => (ArgumentMode::InOut, 1),
        "variadic" => (ArgumentMode::Variadic, 1),
        _ => return Ok(None),
    };
    range.start += words;
    Ok(Some(mode))
}

fn is_body(tokens: &Tokens<'_>, index: usize) -> bool {
    matches!(
        tokens.get(index),
        Token::DollarQuotedString(_)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
    )
}

fn language_name(tokens: &Tokens<'_>, index: usize) -> Result<String> {
    match tokens.get(index) {
        Token::Word(word) => Ok(word.value.clone()),
        Token::SingleQuotedString(name) => Ok(name.to_ascii_lowercase()),
        _ => Err(tokens.syntax_error(index)),
    }
}

/// The refusal of a language that PostgreSQL or a well-known extension of it has, or 42704.
fn other_language(tokens: &Tokens<'_>, index: usize, name: &str) -> Error {
    const KNOWN: [&str; 12] = [
        "sql",
        "c",
        "internal",
        "plperl",
        "plperlu",
        "plpython3u",
        "pltcl",
        "pltclu",
        "plv8",
        "plr",
        "pljava",
        "plrust",
    ];
    if KNOWN.contains(&name) {
        return tokens.unsupported(index, &format!("LANGUAGE {name}"));
    }
    let message = format!("language \"{name}\" does not exist");
    tokens.error_at(index, SqlState::UNDEFINED_OBJECT, message)
}

/// What follows the arguments, in any order.
#[derive(Default)]
struct Attributes {
    returns: Option<(usize, Returns)>,
    language: Option<(usize, String)>,
    volatility: Option<Volatility>,
    strict: Option<bool>,
    is_definer: Option<bool>,
    /// The token that holds the body.
    body: Option<usize>,
}

impl Attributes {
    fn parse(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Attributes> {
        let mut found = Attributes::default();
        let mut index = range.start;
        let redundant = |index| {
            Err(tokens.error_at(
                index,
                SqlState::SYNTAX_ERROR,
                "conflicting or redundant options",
            ))
        };
        while index < range.end {
            let words = |words: &[&str]| tokens.words(index, words);
            let at = index;
            if words(&["returns", "null", "on", "null", "input"]) || words(&["strict"]) {
                index += if words(&["strict"]) { 1 } else { 5 };
                if found.strict.replace(true).is_some() {
                    return redundant(at);
                }
            } else if words(&["called", "on", "null", "input"]) {
                index += 4;
                if found.strict.replace(false).is_some() {
                    return redundant(at);
                }
            } else if words(&["security", "definer"]) || words(&["security", "invoker"]) {
                let is_definer = tokens.word(index + 1) == "definer";
                index += 2;
                if found.is_definer.replace(is_definer).is_some() {
                    return redundant(at);
                }
            } else if words(&["returns"]) {
                let (returns, next) = returns(tokens, index + 1..range.end)?;
                index = next;
                if found.returns.replace((at, returns)).is_some() {
                    return redundant(at);
                }
            } else if words(&["language"]) {
                let name = language_name(tokens, index + 1)?;
                index += 2;
                if found.language.replace((at + 1, name)).is_some() {
                    return redundant(at);
                }
            } else if words(&["as"]) {
                if !is_body(tokens, index + 1) {
                    return Err(tokens.syntax_error(index + 1));
                }
                if found.body.replace(index + 1).is_some() {
                    return redundant(at);
                }
                index += 2;
            } else if let Some(volatility) = match tokens.word(index) {
                "immutable" => Some(Volatility::Immutable),
                "stable" => Some(Volatility::Stable),
                "volatile" => Some(Volatility::Volatile),
                _ => None,
            } {
                index += 1;
                if found.volatility.replace(volatility).is_some() {
                    return redundant(at);
                }
            } else {
                index += ignored(tokens, index)?;
            }
        }
        Ok(found)
    }
}

/// The number of tokens of an attribute that changes nothing here: hints to PostgreSQL's planner.
fn ignored(tokens: &Tokens<'_>, index: usize) -> Result<usize> {
    let followed_by = |words: &[&str]| words.contains(&tokens.word(index + 1));
    match tokens.word(index) {
        "leakproof" => Ok(1),
        "not" if followed_by(&["leakproof"]) => Ok(2),
        "parallel" if followed_by(&["safe", "unsafe", "restricted"]) => Ok(2),
        "cost" | "rows" if matches!(tokens.get(index + 1), Token::Number(..)) => Ok(2),
        "set" => Err(tokens.unsupported(index, "a setting of a function (SET)")),
        "window" => Err(tokens.unsupported(index, "WINDOW")),
        "support" => Err(tokens.unsupported(index, "SUPPORT")),
        "transform" => Err(tokens.unsupported(index, "TRANSFORM")),
        "begin" if followed_by(&["atomic"]) => {
            Err(tokens.unsupported(index, "a body of the form BEGIN ATOMIC … END"))
        }
        "return" => Err(tokens.unsupported(index, "a body of the form RETURN expression")),
        _ => Err(tokens.syntax_error(index)),
    }
}

/// Parses what follows RETURNS; also the first token after it.
fn returns(tokens: &Tokens<'_>, range: Range<usize>) -> Result<(Returns, usize)> {
    const ATTRIBUTES: &[&str] = &[
        "as",
        "begin",
        "called",
        "cost",
        "immutable",
        "language",
        "leakproof",
        "not",
        "parallel",
        "return",
        "returns",
        "rows",
        "security",
        "set",
        "stable",
        "strict",
        "support",
        "transform",
        "volatile",
        "window",
    ];
    if tokens.word(range.start) == "table" {
        let open = range.start + 1;
        if *tokens.get(open) != Token::LParen {
            return Err(tokens.syntax_error(open));
        }
        let close = closing(tokens, open, range.end)?;
        let mut columns = Vec::new();
        for column in tokens.split(open + 1..close) {
            if !types::begins_with_name(tokens, column.clone()) {
                return Err(tokens.syntax_error(column.end));
            }
            columns.push(ResultColumn {
                name: types::identifier(tokens, column.start)?,
                data_type: types::parse(tokens, column.start + 1..column.end)?,
            });
        }
        return Ok((Returns::Table(columns), close + 1));
    }
    let end = range
        .clone()
        .find(|index| ATTRIBUTES.contains(&tokens.word(*index)))
        .unwrap_or(range.end);
    let returns = match tokens.word(range.start) {
        "setof" => Returns::SetOf(types::parse(tokens, range.start + 1..end)?),
        "void" if range.start + 1 == end => Returns::Void,
        _ => Returns::Type(types::parse(tokens, range.start..end)?),
    };
    Ok((returns, end))
}

/// The text of the body that the token at `index` holds, and where in the script it begins.
///
/// Where a quoted body holds doubled quotes, columns after one of them are too small by one.
fn body_text<'a>(tokens: &Tokens<'a>, index: usize) -> Result<(Cow<'a, str>, Position)> {
    let source = tokens.source(index);
    let position = tokens.position(index);
    match tokens.get(index) {
        Token::DollarQuotedString(body) => {
            let tag = source.len().saturating_sub(body.value.len()) / 2;
            let text = &source[tag..source.len() - tag];
            Ok((Cow::Borrowed(text), after_text(position, &source[..tag])))
        }
        Token::SingleQuotedString(value) => Ok((Cow::Owned(value.clone()), after(position, '\''))),
        _ => Err(tokens.unsupported(index, "a function body with escapes (E'…')")),
    }
}

fn plpgsql_body(tokens: &Tokens<'_>, index: usize) -> Result<plpgsql::Block> {
    let (text, position) = body_text(tokens, index)?;
    plpgsql::parser::body(&Tokens::new(&text, position)?)
}

fn sql_body(tokens: &Tokens<'_>, index: usize) -> Result<Vec<(Position, Statement)>> {
    let (text, position) = body_text(tokens, index)?;
    let mut statements = Vec::new();
    for source in script_at(&text, position) {
        let Position { line, column } = source.position();
        let text: &str = source.text;
        let inner = Tokens::new(text, source.position())?;
        let statement = statement::statement(&SourceStatement { text, line, column })?;
        let refused = match &statement {
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Call(_) => None,
            Statement::Begin(_)
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint(_)
            | Statement::Release(_)
            | Statement::RollbackTo(_) => Some("a transaction statement in a function"),
            _ => {
                Some("a statement other than a query, INSERT, UPDATE, DELETE or CALL in a function")
            }
        };
        if let Some(feature) = refused {
            return Err(inner.unsupported(0, feature));
        }
        statements.push((source.position(), statement));
    }
    Ok(statements)
}
