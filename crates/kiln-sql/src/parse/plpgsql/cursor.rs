//! Cursors: their declarations, OPEN, FETCH, MOVE, CLOSE, and loops over them.

use std::ops::Range;

use kiln_platform::sync::Arc;
use kiln_storage::error::{Result, SqlState};
use sqlparser::ast::{self, Ident};
use sqlparser::tokenizer::Token;

use super::ast::{Declaration, Loop, RowSource, StatementKind, Target};
use super::parser::Parser;
use super::sql;
use crate::parse::cursor::Direction;
use crate::parse::tokens::{Expression, Tokens};
use crate::parse::types::{self, TypeKind, TypeReference};

/// The arguments that OPEN, or a loop, gives a cursor: each with its parameter's name where that is
/// written.
pub type CursorArguments = Vec<(Option<Ident>, Expression)>;

/// What `name CURSOR [(arguments)] FOR query` declares.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundCursor {
    /// Whether it may go backward, if that is said.
    pub scroll: Option<bool>,
    /// Its arguments, as variables that its query knows.
    pub arguments: Vec<Declaration>,
    /// The same, as what is assigned to.
    pub targets: Vec<Target>,
    /// The query.
    pub rows: RowSource,
}

/// `OPEN cursor …`, or what a loop opens.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The variable.
    pub cursor: Target,
    /// Whether it may go backward, if that is said.
    pub scroll: Option<bool>,
    /// What it is opened for.
    pub source: OpenSource,
}

/// What a cursor is opened for.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenSource {
    /// The rows of a query or command.
    Rows(RowSource),
    /// The query of its declaration, with these values of its arguments, some of them with names;
    /// `None` without parentheses.
    Bound(Option<CursorArguments>),
}

/// Where FETCH or MOVE goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Towards {
    /// In a direction that is known.
    Fixed(Direction),
    /// To the row with this number.
    Absolute(Expression),
    /// So many rows on.
    Relative(Expression),
    /// Over so many rows.
    Forward(Expression),
    /// Back over so many rows.
    Backward(Expression),
}

/// `FETCH … INTO …`, or `MOVE …`.
#[derive(Clone, Debug, PartialEq)]
pub struct CursorStep {
    /// The variable.
    pub cursor: Target,
    /// Where it goes.
    pub towards: Towards,
    /// What the row is written to; `None` of MOVE.
    pub into: Option<Vec<Target>>,
}

/// `FOR record IN cursor [(arguments)] LOOP …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ForCursor {
    /// A record that the loop declares.
    pub record: Target,
    /// What is opened.
    pub open: Open,
    /// What is repeated.
    pub body: Loop,
}

impl Parser<'_, '_> {
    /// `[[NO] SCROLL] CURSOR [(arguments)] FOR query;` behind the name of a variable.
    pub(super) fn bound_cursor(&mut self, name: Ident, first: usize) -> Result<Declaration> {
        let tokens = self.tokens;
        let position = tokens.position(first);
        let scroll = self.scroll();
        self.expect_word("cursor")?;
        let (mut arguments, mut targets) = (Vec::new(), Vec::new());
        if *self.token() == Token::LParen {
            let close =
                tokens.find(self.next + 1, |tokens, at| *tokens.get(at) == Token::RParen)?;
            for part in tokens.split(self.next + 1..close) {
                let argument = types::identifier(tokens, part.start)?;
                let data_type = types::parse(tokens, part.start + 1..part.end)?;
                targets.push(target_of(tokens, part.start, &argument));
                arguments.push(Declaration {
                    position: tokens.position(part.start),
                    name: argument,
                    constant: false,
                    data_type,
                    not_null: false,
                    default: None,
                    cursor: None,
                });
            }
            self.next = close + 1;
        }
        if !self.take_word("is") {
            self.expect_word("for")?;
        }
        let end = self.semicolon()?;
        let rows = sql::rows(tokens, self.next..end)?;
        if !matches!(rows, RowSource::Query(_)) {
            return Err(tokens.syntax_error(self.next));
        }
        self.next = end + 1;
        let bound = BoundCursor {
            scroll,
            arguments,
            targets,
            rows,
        };
        Ok(Declaration {
            position,
            constant: false,
            data_type: TypeReference {
                position,
                kind: TypeKind::Sql(ast::DataType::Text),
            },
            not_null: false,
            // As in PostgreSQL 15 the portal is called as the variable.
            default: Some(Expression {
                position,
                expr: ast::Expr::value(ast::Value::SingleQuotedString(name.value.clone())),
            }),
            cursor: Some(Arc::new(bound)),
            name,
        })
    }

    /// `SCROLL` or `NO SCROLL`, if it is next.
    fn scroll(&mut self) -> Option<bool> {
        let is_not = self.tokens.words(self.next, &["no", "scroll"]);
        let is_scroll = self.word() == "scroll";
        self.next += if is_not { 2 } else { usize::from(is_scroll) };
        (is_not || is_scroll).then_some(is_scroll)
    }

    /// `OPEN cursor …;`
    pub(super) fn open(&mut self) -> Result<StatementKind> {
        let tokens = self.tokens;
        self.next += 1;
        let cursor = self.target()?;
        let scroll = self.scroll();
        let end = self.semicolon()?;
        let source = if self.take_word("for") {
            OpenSource::Rows(sql::rows(tokens, self.next..end)?)
        } else if scroll.is_some() {
            return Err(tokens.syntax_error(self.next));
        } else {
            OpenSource::Bound(self.cursor_arguments(end)?)
        };
        self.next = end + 1;
        Ok(StatementKind::Open(Box::new(Open {
            cursor,
            scroll,
            source,
        })))
    }

    /// The arguments in parentheses that are all up to `end`; `None` where there is nothing.
    fn cursor_arguments(&mut self, end: usize) -> Result<Option<CursorArguments>> {
        let tokens = self.tokens;
        if self.next == end {
            return Ok(None);
        }
        if *self.token() != Token::LParen || *tokens.get(end - 1) != Token::RParen {
            return Err(tokens.syntax_error(self.next));
        }
        let mut arguments = Vec::new();
        for part in tokens.split(self.next + 1..end - 1) {
            let is_named = part.len() > 2 && *tokens.get(part.start + 1) == Token::Assignment;
            arguments.push(match is_named {
                true => (
                    Some(types::identifier(tokens, part.start)?),
                    tokens.expression(part.start + 2..part.end)?,
                ),
                false => (None, tokens.expression(part)?),
            });
        }
        Ok(Some(arguments))
    }

    /// `FETCH [direction FROM] cursor INTO targets;` and `MOVE [direction FROM] cursor;`
    pub(super) fn cursor_step(&mut self) -> Result<StatementKind> {
        let tokens = self.tokens;
        let first = self.next;
        let is_move = self.word() == "move";
        self.next += 1;
        let end = self.semicolon()?;
        let into = (self.next..end).find(|at| tokens.word(*at) == "into");
        if is_move == into.is_some() {
            return Err(tokens.syntax_error(into.unwrap_or(end)));
        }
        let until = into.unwrap_or(end);
        let from = (self.next..until)
            .rev()
            .find(|at| matches!(tokens.word(*at), "from" | "in"));
        let towards = match from {
            Some(from) => towards(tokens, self.next..from)?,
            None => Towards::Fixed(Direction::Forward(1)),
        };
        self.next = from.map_or(self.next, |from| from + 1);
        let cursor = self.target()?;
        if self.next != until {
            return Err(tokens.syntax_error(self.next));
        }
        let targets = match into {
            None => None,
            Some(into) => {
                let (found, after) = sql::into(tokens, into, end)?;
                if found.strict || after != end {
                    return Err(tokens.syntax_error(if found.strict { into + 1 } else { after }));
                }
                Some(found.targets)
            }
        };
        let is_single = matches!(
            towards,
            Towards::Absolute(_)
                | Towards::Relative(_)
                | Towards::Fixed(
                    Direction::Forward(_) | Direction::Absolute(_) | Direction::Relative(_)
                )
        );
        if !is_move && !is_single {
            let message = "FETCH statement cannot return multiple rows";
            return Err(tokens.error_at(first, SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.next = end + 1;
        Ok(StatementKind::CursorStep(Box::new(CursorStep {
            cursor,
            towards,
            into: targets,
        })))
    }

    /// `CLOSE cursor;`
    pub(super) fn close_cursor(&mut self) -> Result<StatementKind> {
        self.next += 1;
        let cursor = self.target()?;
        self.expect(&Token::SemiColon)?;
        Ok(StatementKind::CloseCursor(cursor))
    }

    /// A loop over the cursor whose name begins at `start`, and whose LOOP is at `end`.
    pub(super) fn for_cursor(
        &mut self,
        label: Option<Ident>,
        (first, targets): (usize, Vec<Target>),
        (start, end): (usize, usize),
    ) -> Result<StatementKind> {
        let tokens = self.tokens;
        let Ok([record]) = <[Target; 1]>::try_from(targets) else {
            let message = "cursor FOR loop must have only one target variable";
            return Err(tokens.error_at(first, SqlState::SYNTAX_ERROR, message));
        };
        if record.path.len() > 1 || !record.places.is_empty() {
            return Err(tokens.syntax_error(first + 1));
        }
        self.next = start;
        let cursor = self.target()?;
        let source = OpenSource::Bound(self.cursor_arguments(end)?);
        self.next = end + 1;
        let body = self.loop_body(label)?;
        Ok(StatementKind::ForCursor(Box::new(ForCursor {
            record,
            open: Open {
                cursor,
                scroll: None,
                source,
            },
            body,
        })))
    }
}

/// A variable as what is assigned to.
fn target_of(tokens: &Tokens<'_>, at: usize, name: &Ident) -> Target {
    Target {
        position: tokens.position(at),
        path: vec![name.clone()],
        places: Vec::new(),
    }
}

/// Parses what stands before FROM.
fn towards(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Towards> {
    let rest = range.start + 1..range.end;
    let is_all = rest.len() == 1 && tokens.word(rest.start) == "all";
    let fixed = |direction: Direction| match rest.is_empty() {
        true => Ok(Towards::Fixed(direction)),
        false => Err(tokens.syntax_error(rest.start)),
    };
    match tokens.word(range.start) {
        _ if range.is_empty() => Ok(Towards::Fixed(Direction::Forward(1))),
        "next" => fixed(Direction::Forward(1)),
        "prior" => fixed(Direction::Forward(-1)),
        "first" => fixed(Direction::Absolute(1)),
        "last" => fixed(Direction::Absolute(-1)),
        "all" => fixed(Direction::ForwardAll),
        "absolute" => tokens.expression(rest).map(Towards::Absolute),
        "relative" => tokens.expression(rest).map(Towards::Relative),
        "forward" if rest.is_empty() => fixed(Direction::Forward(1)),
        "backward" if rest.is_empty() => fixed(Direction::Forward(-1)),
        "forward" if is_all => Ok(Towards::Fixed(Direction::ForwardAll)),
        "backward" if is_all => Ok(Towards::Fixed(Direction::BackwardAll)),
        "forward" => tokens.expression(rest).map(Towards::Forward),
        "backward" => tokens.expression(rest).map(Towards::Backward),
        _ => tokens.expression(range).map(Towards::Forward),
    }
}
