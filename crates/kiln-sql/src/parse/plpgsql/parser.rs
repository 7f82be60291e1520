//! Parses function bodies by recursive descent.

use super::ast::{Block, Declaration, ExitKind, Place, Statement, StatementKind, Target};
use super::{command, raise, sql};
use crate::parse::tokens::{Expression, Tokens};
use crate::parse::types;
use crate::parse::{notify, statement};
use kiln_storage::error::{Result, SqlState};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Token;
use std::ops::Range;
use std::slice;

/// How deep blocks, loops and branches may nest, within a stack of 2 MiB here and in the stages
/// that follow.
const NESTING_LIMIT: usize = 100;

/// Parses all of `tokens` as the body of a function.
pub(in crate::parse) fn body(tokens: &Tokens<'_>) -> Result<Block> {
    let mut parser = Parser {
        tokens,
        next: 0,
        depth: 0,
        scopes: Vec::new(),
    };
    if *tokens.get(0) == Token::Sharp {
        return Err(tokens.unsupported(0, "an option of PL/pgSQL (#)"));
    }
    let label = parser.label()?;
    let block = parser.block(0, label)?;
    if *tokens.get(parser.next) == Token::SemiColon {
        parser.next += 1;
    }
    if parser.next < tokens.len() {
        return Err(tokens.syntax_error(parser.next));
    }
    Ok(block)
}

/// A block or loop around the statement that is being parsed.
pub(super) struct Scope {
    pub label: Option<String>,
    pub is_loop: bool,
}

pub(super) struct Parser<'t, 'a> {
    pub tokens: &'t Tokens<'a>,
    /// The first token that is not parsed yet.
    pub next: usize,
    depth: usize,
    pub scopes: Vec<Scope>,
}

impl Parser<'_, '_> {
    pub(super) fn word(&self) -> &str {
        self.tokens.word(self.next)
    }

    pub(super) fn token(&self) -> &Token {
        self.tokens.get(self.next)
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let taken = self.word() == word;
        if taken {
            self.next += 1;
        }
        taken
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) {
            Ok(())
        } else {
            Err(self.tokens.syntax_error(self.next))
        }
    }

    pub(super) fn expect(&mut self, token: &Token) -> Result<()> {
        if self.token() != token {
            return Err(self.tokens.syntax_error(self.next));
        }
        self.next += 1;
        Ok(())
    }

    pub(super) fn identifier(&mut self) -> Result<Ident> {
        let identifier = types::identifier(self.tokens, self.next)?;
        self.next += 1;
        Ok(identifier)
    }

    /// The next semicolon outside of parentheses.
    pub(super) fn semicolon(&self) -> Result<usize> {
        self.tokens.find(self.next, |tokens, index| {
            *tokens.get(index) == Token::SemiColon
        })
    }

    /// The expression before the word `end`, which is taken as well.
    pub(super) fn expression_until(&mut self, end: &str) -> Result<Expression> {
        let at = self
            .tokens
            .find(self.next, |tokens, index| tokens.word(index) == end)?;
        let expression = self.tokens.expression(self.next..at)?;
        self.next = at + 1;
        Ok(expression)
    }

    /// The expression before the semicolon, which is taken as well.
    pub(super) fn expression_to_end(&mut self) -> Result<Expression> {
        let end = self.semicolon()?;
        let expression = self.tokens.expression(self.next..end)?;
        self.next = end + 1;
        Ok(expression)
    }

    /// `<<label>>`, if it is next.
    fn label(&mut self) -> Result<Option<Ident>> {
        if *self.token() != Token::ShiftLeft {
            return Ok(None);
        }
        self.next += 1;
        let label = self.identifier()?;
        self.expect(&Token::ShiftRight)?;
        Ok(Some(label))
    }

    /// The label that may follow END and must be the one at the beginning.
    pub(super) fn end_label(&mut self, label: Option<&Ident>) -> Result<()> {
        if !matches!(self.token(), Token::Word(_)) {
            return Ok(());
        }
        let at = self.next;
        let end = self.identifier()?;
        let message = match label {
            Some(label) if label.value == end.value => return Ok(()),
            Some(label) => format!(
                "end label \"{}\" differs from block's label \"{}\"",
                end.value, label.value
            ),
            None => format!("end label \"{}\" specified for unlabeled block", end.value),
        };
        Err(self.tokens.error_at(at, SqlState::SYNTAX_ERROR, message))
    }

    /// A block whose first token, its label's included, is at `first`.
    fn block(&mut self, first: usize, label: Option<Ident>) -> Result<Block> {
        let position = self.tokens.position(first);
        let mut declarations: Vec<Declaration> = Vec::new();
        let mut declaring = false;
        while !self.take_word("begin") {
            if self.take_word("declare") {
                declaring = true;
                continue;
            }
            if !declaring {
                return Err(self.tokens.syntax_error(self.next));
            }
            let at = self.next;
            let declaration = self.declaration()?;
            if declarations
                .iter()
                .any(|known| known.name.value == declaration.name.value)
            {
                return Err(self
                    .tokens
                    .error(at, SqlState::SYNTAX_ERROR, "duplicate declaration"));
            }
            declarations.push(declaration);
        }
        self.scopes.push(Scope {
            label: label.as_ref().map(|label| label.value.clone()),
            is_loop: false,
        });
        let body = self.statements()?;
        let handlers = self.handlers()?;
        self.scopes.pop();
        self.expect_word("end")?;
        self.end_label(label.as_ref())?;
        Ok(Block {
            position,
            label,
            declarations,
            body,
            handlers,
        })
    }

    fn declaration(&mut self) -> Result<Declaration> {
        let tokens = self.tokens;
        let position = tokens.position(self.next);
        let name = self.identifier()?;
        match tokens.word(self.next) {
            "alias" => return Err(tokens.unsupported(self.next, "ALIAS")),
            "cursor" | "scroll" | "no" => return self.bound_cursor(name, self.next - 1),
            _ => {}
        }
        let constant = self.take_word("constant");
        let end_of_type = tokens.find(self.next, |tokens, index| {
            matches!(
                tokens.get(index),
                Token::SemiColon | Token::Assignment | Token::Eq
            ) || matches!(tokens.word(index), "default" | "not" | "collate")
        })?;
        let data_type = types::parse(tokens, self.next..end_of_type)?;
        self.next = end_of_type;
        if self.word() == "collate" {
            return Err(tokens.unsupported(self.next, "COLLATE of a variable"));
        }
        let not_null = self.take_word("not");
        if not_null {
            self.expect_word("null")?;
        }
        let has_default = match self.token() {
            Token::Assignment | Token::Eq => true,
            _ => self.word() == "default",
        };
        let default = if has_default {
            self.next += 1;
            Some(self.expression_to_end()?)
        } else {
            if not_null && *self.token() == Token::SemiColon {
                return Err(tokens.error_at(
                    end_of_type,
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    format!(
                        "variable \"{}\" must have a default value, since it's declared NOT NULL",
                        name.value
                    ),
                ));
            }
            self.expect(&Token::SemiColon)?;
            None
        };
        Ok(Declaration {
            position,
            name,
            constant,
            data_type,
            not_null,
            default,
            cursor: None,
        })
    }

    /// Whether the tokens at `next` can only be the beginning of an assignment. Few words are
    /// reserved in PL/pgSQL, so this is asked before any keyword is looked for.
    fn at_assignment(&self) -> bool {
        matches!(self.token(), Token::Word(_))
            && matches!(
                self.tokens.get(self.next + 1),
                Token::Assignment | Token::Eq | Token::Period | Token::LBracket
            )
    }

    /// Statements up to the word that ends the list, which is left.
    pub(super) fn statements(&mut self) -> Result<Vec<Statement>> {
        const ENDS: &[&str] = &["end", "else", "elsif", "elseif", "when", "exception"];
        let mut statements = Vec::new();
        while self.at_assignment() || !ENDS.contains(&self.word()) {
            if self.next >= self.tokens.len() {
                return Err(self.tokens.syntax_error(self.next));
            }
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Statement> {
        if self.depth >= NESTING_LIMIT {
            return Err(self
                .tokens
                .error_at(
                    self.next,
                    SqlState::STATEMENT_TOO_COMPLEX,
                    "stack depth limit exceeded",
                )
                .with_detail(format!(
                    "Statements nest deeper than {NESTING_LIMIT} levels."
                )));
        }
        self.depth += 1;
        let first = self.next;
        let position = self.tokens.position(first);
        let kind = if self.at_assignment() {
            self.assignment()?
        } else {
            self.keyword_statement(first)?
        };
        self.depth -= 1;
        Ok(Statement { position, kind })
    }

    fn assignment(&mut self) -> Result<StatementKind> {
        let target = self.target()?;
        if !matches!(self.token(), Token::Assignment | Token::Eq) {
            return Err(self.tokens.syntax_error(self.next));
        }
        self.next += 1;
        let value = self.expression_to_end()?;
        Ok(StatementKind::Assign { target, value })
    }

    /// `variable`, `record.field`, or a part of these: `array[2]`, `json['key'][0]`, `rows[1].field`.
    pub(super) fn target(&mut self) -> Result<Target> {
        let tokens = self.tokens;
        let position = tokens.position(self.next);
        let mut path = vec![self.identifier()?];
        while *self.token() == Token::Period {
            self.next += 1;
            path.push(self.identifier()?);
        }
        let mut places = Vec::new();
        loop {
            match self.token() {
                Token::LBracket => places.push(self.subscript()?),
                Token::Period => {
                    self.next += 1;
                    places.push(Place::Field(self.identifier()?));
                }
                _ => break,
            }
        }
        Ok(Target {
            position,
            path,
            places,
        })
    }

    /// `[index]` or `[lower:upper]`.
    fn subscript(&mut self) -> Result<Place> {
        let tokens = self.tokens;
        let first = self.next + 1;
        let end = tokens.find(first, |tokens, index| {
            matches!(tokens.get(index), Token::RBracket | Token::Colon)
        })?;
        if *tokens.get(end) == Token::RBracket {
            self.next = end + 1;
            let index = tokens.expression(first..end)?;
            return Ok(Place::Element(Box::new(index)));
        }
        let close = tokens.find(end + 1, |tokens, index| {
            *tokens.get(index) == Token::RBracket
        })?;
        self.next = close + 1;
        let bound = |range: Range<usize>| match range.is_empty() {
            true => Ok(None),
            false => tokens.expression(range).map(Some),
        };
        let bounds = [bound(first..end)?, bound(end + 1..close)?];
        Ok(Place::Slice(Box::new(bounds)))
    }

    /// A statement that is told by its first word or label.
    fn keyword_statement(&mut self, first: usize) -> Result<StatementKind> {
        let tokens = self.tokens;
        let label = self.label()?;
        let at = self.next;
        match tokens.word(at) {
            "declare" | "begin" => {
                let block = self.block(first, label)?;
                self.expect(&Token::SemiColon)?;
                return Ok(StatementKind::Block(block));
            }
            "loop" | "while" | "for" | "foreach" => return self.any_loop(label),
            _ if label.is_some() => return Err(tokens.syntax_error(at)),
            _ => {}
        }
        match tokens.word(at) {
            "if" => self.if_statement(),
            "case" => self.case_statement(),
            "exit" => self.exit(ExitKind::Exit),
            "continue" => self.exit(ExitKind::Continue),
            "return" => self.return_statement(),
            "raise" => {
                self.next += 1;
                let end = self.semicolon()?;
                let raise = raise::raise(tokens, self.next..end)?;
                self.next = end + 1;
                Ok(StatementKind::Raise(raise))
            }
            "null" => {
                self.next += 1;
                self.expect(&Token::SemiColon)?;
                Ok(StatementKind::Null)
            }
            "perform" => {
                let end = self.semicolon()?;
                if at + 1 == end {
                    return Err(tokens.syntax_error(end));
                }
                let rest = at + 1..end;
                let query = statement::query_parts(tokens, Some("select"), slice::from_ref(&rest))?;
                self.next = end + 1;
                Ok(StatementKind::Perform(query))
            }
            "call" => {
                let end = self.semicolon()?;
                let call = statement::call(tokens, at..end)?;
                self.next = end + 1;
                Ok(StatementKind::Call(call))
            }
            "assert" => self.assert(),
            "get" => self.get_diagnostics(),
            "select" | "with" | "values" | "table" | "insert" | "update" | "delete" | "merge" => {
                self.sql_statement()
            }
            "" if *tokens.get(at) == Token::LParen => self.sql_statement(),
            "execute" => self.execute(),
            "open" => self.open(),
            "fetch" | "move" => self.cursor_step(),
            "close" => self.close_cursor(),
            "commit" | "rollback" => self.end_transaction(),
            "notify" => {
                let end = self.semicolon()?;
                let notify = notify::notify(tokens, at..end)?;
                self.next = end + 1;
                notify
                    .query(tokens.position(at))
                    .map(StatementKind::Perform)
            }
            word if command::is_utility(word) => self.utility(),
            word => Err(match refusal(word) {
                Some(feature) => tokens.unsupported(at, feature),
                None => tokens.syntax_error(at),
            }),
        }
    }

    fn sql_statement(&mut self) -> Result<StatementKind> {
        let end = self.semicolon()?;
        let kind = sql::sql(self.tokens, self.next..end)?;
        self.next = end + 1;
        Ok(kind)
    }

    fn return_statement(&mut self) -> Result<StatementKind> {
        let tokens = self.tokens;
        self.next += 1;
        if self.take_word("query") {
            let end = self.semicolon()?;
            if self.next == end {
                return Err(tokens.syntax_error(end));
            }
            let rows = sql::rows(tokens, self.next..end)?;
            self.next = end + 1;
            return Ok(StatementKind::ReturnQuery(rows));
        }
        let is_next = self.take_word("next");
        let value = if *self.token() == Token::SemiColon {
            self.next += 1;
            None
        } else {
            Some(self.expression_to_end()?)
        };
        Ok(if is_next {
            StatementKind::ReturnNext(value)
        } else {
            StatementKind::Return(value)
        })
    }

    fn assert(&mut self) -> Result<StatementKind> {
        let tokens = self.tokens;
        self.next += 1;
        let end = self.semicolon()?;
        let parts = tokens.split(self.next..end);
        if let Some(third) = parts.get(2) {
            return Err(tokens.syntax_error(third.start - 1));
        }
        let mut parts = parts.into_iter();
        let condition = tokens.expression(parts.next().unwrap_or(end..end))?;
        let message = match parts.next() {
            Some(message) => Some(tokens.expression(message)?),
            None => None,
        };
        self.next = end + 1;
        Ok(StatementKind::Assert { condition, message })
    }
}

/// The name of the unsupported feature that a statement beginning with `word` is.
fn refusal(word: &str) -> Option<&'static str> {
    Some(match word {
        "savepoint" | "release" | "start" | "abort" => {
            "a transaction statement in a function or procedure"
        }
        "do" => "DO in a function or procedure",
        "explain" => "EXPLAIN in a function or procedure",
        "copy" => "COPY in a function or procedure",
        "show" => "SHOW in a function or procedure",
        "vacuum" | "cluster" | "refresh" | "prepare" | "deallocate" | "import" => {
            "an administrative statement in a function or procedure"
        }
        _ => return None,
    })
}
