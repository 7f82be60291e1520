//! The tokens of one statement or function body, and the door to the SQL parser: any stretch of
//! tokens can be parsed as an expression, a query or a statement, and what is wrong with it is
//! reported where it stands in the script, as PostgreSQL words it.

use super::conflict::ConflictTargets;
use super::dialect::Postgres;
use super::lexer::{self, Lexeme};
use super::locking::LockingClauses;
use super::position::{after_text, location};
use super::sequence::Overriding;
use super::subscript::Subscripts;
use super::{
    frame, from_clause, inheritance, merge, special_call, table_command, traversal, variadic,
};
use kiln_storage::error::{Error, Position, Result, SqlState};
use sqlparser::ast::Expr;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};
use std::collections::BTreeMap;
use std::ops::Range;

/// The name of the field that `(row).*` is read as.
pub(crate) const ALL_FIELDS: &str = "*";

/// How deep parentheses, subqueries, CASE and the like may nest. The SQL parser recurses for each
/// level. This keeps it within a stack of 2 MiB as this workspace's profiles compile it; compiled
/// without any optimisation it can need 6 MiB.
const NESTING_LIMIT: usize = 48;

/// How many parentheses and unfinished joins may be open at once. The SQL parser does not count
/// all of them.
const OPEN_LIMIT: usize = 64;

/// How long a chain of operators and clauses may be: `1 + 1 + 1 …` is parsed in a loop but is a
/// tree as deep as it is long, on which later stages recurse.
const CHAIN_LIMIT: usize = 1500;

/// An expression of a function body or header.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Its first token.
    pub position: Position,
    /// What was written; variables are not told from columns here. Unquoted identifiers are in
    /// lower case. An assignment from a query without its SELECT (`total := sum(x) FROM t`) is a
    /// scalar subquery.
    pub expr: Expr,
}

/// The tokens of a text and the text itself.
pub(super) struct Tokens<'a> {
    text: &'a str,
    lexemes: Vec<Lexeme>,
    end: Position,
}

impl<'a> Tokens<'a> {
    /// Reads `text`, whose first character stands at `start` of the script.
    pub(super) fn new(text: &'a str, start: Position) -> Result<Tokens<'a>> {
        Ok(Tokens {
            text,
            lexemes: lexer::lex(text, start)?,
            end: after_text(start, text),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.lexemes.len()
    }

    /// The token at `index`, the end of input past the last.
    pub(super) fn get(&self, index: usize) -> &Token {
        self.lexemes
            .get(index)
            .map_or(&Token::EOF, |lexeme| &lexeme.token.token)
    }

    /// The unquoted word at `index`, in lower case; empty when it is anything else.
    pub(super) fn word(&self, index: usize) -> &str {
        match self.get(index) {
            Token::Word(Word {
                value,
                quote_style: None,
                ..
            }) => value,
            _ => "",
        }
    }

    /// The token at the index that is number `at` of `indexes`, the end of input past the last.
    pub(super) fn get_among(&self, indexes: &[usize], at: usize) -> &Token {
        let index = indexes.get(at);
        index.map_or(&Token::EOF, |index| self.get(*index))
    }

    /// As [`Tokens::get_among`], the unquoted word there.
    pub(super) fn word_among(&self, indexes: &[usize], at: usize) -> &str {
        let index = indexes.get(at);
        index.map_or("", |index| self.word(*index))
    }

    /// Whether the unquoted words from `index` on are `words`.
    pub(super) fn words(&self, index: usize, words: &[&str]) -> bool {
        words
            .iter()
            .enumerate()
            .all(|(offset, word)| self.word(index + offset) == *word)
    }

    pub(super) fn position(&self, index: usize) -> Position {
        self.lexemes
            .get(index)
            .map_or(self.end, |lexeme| lexeme.position)
    }

    pub(super) fn span(&self, index: usize) -> Span {
        self.lexemes.get(index).map_or_else(
            || Span::new(location(self.end), location(self.end)),
            |lexeme| lexeme.token.span,
        )
    }

    /// The token at `index` as it was written.
    pub(super) fn source(&self, index: usize) -> &'a str {
        self.lexemes
            .get(index)
            .map_or("", |lexeme| &self.text[lexeme.start..lexeme.end])
    }

    /// The bytes of the token at `index` in the text.
    pub(super) fn bytes(&self, index: usize) -> Range<usize> {
        let lexeme = self.lexemes.get(index);
        lexeme.map_or(self.text.len()..self.text.len(), |lexeme| {
            lexeme.start..lexeme.end
        })
    }

    /// Takes the places away that trees of these tokens would have.
    pub(super) fn forget_positions(&mut self) {
        for lexeme in &mut self.lexemes {
            lexeme.token.span = Span::empty();
        }
    }

    /// The text of these tokens and of what is between them; there is at least one.
    pub(super) fn text(&self, range: Range<usize>) -> &'a str {
        let first = self.lexemes.get(range.start);
        let last = self.lexemes.get(range.end - 1);
        first
            .zip(last)
            .map_or("", |(first, last)| &self.text[first.start..last.end])
    }

    /// `syntax error at or near "…"`, or `at end of input`.
    pub(super) fn syntax_error(&self, index: usize) -> Error {
        self.error(index, SqlState::SYNTAX_ERROR, "syntax error")
    }

    /// An error whose message ends in the token at `index`.
    pub(super) fn error(&self, index: usize, state: SqlState, message: &str) -> Error {
        let near = if index < self.len() {
            format!("{message} at or near \"{}\"", self.source(index))
        } else {
            format!("{message} at end of input")
        };
        self.error_at(index, state, near)
    }

    /// An error at the token at `index`, with the message as given.
    pub(super) fn error_at(
        &self,
        index: usize,
        state: SqlState,
        message: impl Into<String>,
    ) -> Error {
        let Position { line, column } = self.position(index);
        Error::new(state, message).at(line, column)
    }

    /// The refusal of a feature that begins at the token at `index`.
    pub(super) fn unsupported(&self, index: usize, feature: &str) -> Error {
        self.error_at(
            index,
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{feature} is not supported"),
        )
    }

    /// The first token from `from` on that `stop` accepts and that stands outside of parentheses,
    /// brackets and CASE … END that begin after `from`. A semicolon ends the search: it is the
    /// result when `stop` accepts it, and a syntax error otherwise, as is the end of input.
    pub(super) fn find(&self, from: usize, stop: impl Fn(&Self, usize) -> bool) -> Result<usize> {
        let mut parentheses = 0_usize;
        let mut cases = 0_usize;
        for index in from..self.len() {
            let token = self.get(index);
            if *token == Token::SemiColon {
                if parentheses > 0 {
                    return Err(self.error(
                        index,
                        SqlState::SYNTAX_ERROR,
                        "mismatched parentheses",
                    ));
                }
                return if stop(self, index) {
                    Ok(index)
                } else {
                    Err(self.syntax_error(index))
                };
            }
            if parentheses == 0 && cases == 0 && stop(self, index) {
                return Ok(index);
            }
            match token {
                Token::LParen | Token::LBracket => parentheses += 1,
                Token::RParen | Token::RBracket => match parentheses.checked_sub(1) {
                    Some(fewer) => parentheses = fewer,
                    None => return Err(self.syntax_error(index)),
                },
                Token::Word(Word {
                    quote_style: None,
                    keyword,
                    ..
                }) if index == from || *self.get(index - 1) != Token::Period => match keyword {
                    Keyword::CASE => cases += 1,
                    Keyword::END => cases = cases.saturating_sub(1),
                    _ => {}
                },
                _ => {}
            }
        }
        Err(self.syntax_error(self.len()))
    }

    /// The stretches of `range` between its top-level commas.
    pub(super) fn split(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut start = range.start;
        let mut depth = 0_i64;
        for index in range.clone() {
            match self.get(index) {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::Comma if depth == 0 => {
                    parts.push(start..index);
                    start = index + 1;
                }
                _ => {}
            }
        }
        parts.push(start..range.end);
        parts
    }

    /// Parses all of `range` with `parse`.
    pub(super) fn sql<T>(
        &self,
        range: Range<usize>,
        parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
    ) -> Result<T> {
        self.sql_parts(None, &[range], parse)
    }

    /// Parses the tokens of `parts`, one after the other, with `parse`. `leading` is a keyword to
    /// put before them.
    pub(super) fn sql_parts<T>(
        &self,
        leading: Option<&str>,
        parts: &[Range<usize>],
        parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
    ) -> Result<T> {
        let end = parts.last().map_or(0, |part| part.end);
        let first = parts.first().map_or(end, |part| part.start);
        let mut tokens = Vec::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
        // Which of our tokens each of the parser's is.
        let mut indexes = Vec::with_capacity(tokens.capacity());
        if let Some(keyword) = leading {
            tokens.push(TokenWithSpan::new(
                Token::make_word(keyword, None),
                self.span(first),
            ));
            indexes.push(first);
        }
        let all: Vec<usize> = parts.iter().cloned().flatten().collect();
        let subscripts = Subscripts::of(self, &all);
        let locking = LockingClauses::of(self, &all);
        let conflicts = ConflictTargets::of(self, &all);
        let mut others = BTreeMap::new();
        for rewrite in [
            inheritance::rewrite,
            merge::rewrite,
            table_command::rewrite,
            frame::rewrite,
            from_clause::rewrite,
            special_call::rewrite,
            traversal::rewrite,
            variadic::rewrite,
        ] {
            rewrite(self, &all, &mut others)?;
        }
        let mut rest = parts.iter().cloned().flatten();
        while let Some(index) = rest.next() {
            let other = others.get(&index).map(Vec::as_slice);
            if let (Some(marker), None) = (Overriding::marker(self, index), other) {
                let span = self.span(index);
                let marker = [
                    Token::make_keyword("partition"),
                    Token::LParen,
                    Token::make_word(marker, Some('"')),
                    Token::RParen,
                ];
                tokens.extend(marker.map(|token| TokenWithSpan::new(token, span)));
                indexes.extend([index; 4]);
                rest.by_ref().take(2).for_each(drop);
                continue;
            }
            // `(row).*`, which the library does not know.
            if *self.get(index) == Token::Mul
                && index >= 2
                && *self.get(index - 1) == Token::Period
                && matches!(self.get(index - 2), Token::RParen | Token::RBracket)
            {
                let all = Token::make_word(ALL_FIELDS, Some('"'));
                tokens.push(TokenWithSpan::new(all, self.span(index)));
                indexes.push(index);
                continue;
            }
            let instead = other.or_else(|| subscripts.at(index));
            let instead = instead.or_else(|| locking.at(index));
            if let Some(instead) = instead.or_else(|| conflicts.at(index)) {
                let span = self.span(index);
                let instead = instead.iter().cloned();
                tokens.extend(instead.map(|token| TokenWithSpan::new(token, span)));
                indexes.resize(tokens.len(), index);
                continue;
            }
            tokens.push(self.lexemes[index].token.clone());
            indexes.push(index);
        }
        self.check_depth(&tokens, &indexes)?;
        let dialect = Postgres(PostgreSqlDialect {});
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(NESTING_LIMIT)
            .with_tokens_with_locations(tokens);
        let result = parse(&mut parser);
        let of_parser = |index: usize| indexes.get(index).copied().unwrap_or(end);
        match result {
            Ok(tree) if parser.peek_token_ref().token == Token::EOF => Ok(tree),
            Ok(_) => {
                parser.advance_token();
                Err(self.syntax_error(of_parser(parser.get_current_index())))
            }
            Err(ParserError::RecursionLimitExceeded) => {
                Err(self.too_complex(of_parser(parser.get_current_index())))
            }
            Err(ParserError::ParserError(message) | ParserError::TokenizerError(message)) => {
                let (expected, place) = split_location(&message);
                let index = match place {
                    Some(place) => self
                        .index_at(place)
                        .unwrap_or_else(|| of_parser(parser.get_current_index())),
                    None if expected.ends_with("found: EOF") => end,
                    None => of_parser(parser.get_current_index()),
                };
                let mut error = self.syntax_error(index);
                if let Some(expected) = expected.strip_prefix("Expected: ") {
                    let what = expected
                        .rsplit_once(", found: ")
                        .map_or(expected, |(what, _)| what);
                    error = error.with_detail(format!("Expected {what}."));
                } else if !expected.is_empty() {
                    error = error.with_detail(format!("{expected}."));
                }
                Err(error)
            }
        }
    }

    /// Parses `range` as an expression.
    pub(super) fn expression(&self, range: Range<usize>) -> Result<Expression> {
        let position = self.position(range.start);
        if range.is_empty() {
            return Err(self.error(range.end, SqlState::SYNTAX_ERROR, "missing expression"));
        }
        // PL/pgSQL evaluates an expression as `SELECT expression`, so that a FROM may follow.
        let query_follows = self.has_from(range.clone());
        let expr = if query_follows {
            Expr::Subquery(self.sql_parts(Some("select"), &[range], |parser| parser.parse_query())?)
        } else {
            let parts = self.without_row_marks(range);
            self.sql_parts(None, &parts, |parser| parser.parse_expr())?
        };
        Ok(Expression { position, expr })
    }

    /// The tokens of `range` but for the marks of rows that are compared: `old.* IS DISTINCT FROM
    /// new.*` means the same as `old IS DISTINCT FROM new`.
    fn without_row_marks(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let (mut parts, mut start) = (Vec::new(), range.start);
        for at in range.start + 1..range.end.saturating_sub(1) {
            let is_mark = *self.get(at) == Token::Period && *self.get(at + 1) == Token::Mul;
            let is_right = at >= range.start + 3 && self.words(at - 3, &["distinct", "from"]);
            if is_mark && (is_right || self.word(at + 2) == "is") {
                parts.push(start..at);
                start = at + 2;
            }
        }
        if start < range.end {
            parts.push(start..range.end);
        }
        parts
    }

    /// Whether `range` has a FROM outside of parentheses that is not the one of
    /// `IS DISTINCT FROM`.
    fn has_from(&self, range: Range<usize>) -> bool {
        let mut depth = 0_i64;
        for index in range.clone() {
            match self.get(index) {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth -= 1,
                _ if depth == 0
                    && index > range.start
                    && self.word(index) == "from"
                    && self.word(index - 1) != "distinct" =>
                {
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    fn index_at(&self, place: Position) -> Option<usize> {
        let key = |position: Position| (position.line, position.column);
        self.lexemes
            .binary_search_by_key(&key(place), |lexeme| key(lexeme.position))
            .ok()
    }

    fn too_complex(&self, index: usize) -> Error {
        self.error_at(
            index,
            SqlState::STATEMENT_TOO_COMPLEX,
            "stack depth limit exceeded",
        )
        .with_detail(format!(
            "At most {NESTING_LIMIT} levels of nesting and chains of {CHAIN_LIMIT} operators \
                 are supported."
        ))
    }

    /// Refuses what would become a tree too deep to walk, or what the SQL parser recurses on
    /// without counting, before either happens.
    fn check_depth(&self, tokens: &[TokenWithSpan], indexes: &[usize]) -> Result<()> {
        let mut depth = Depth::default();
        for (token, index) in tokens.iter().zip(indexes) {
            if !depth.allows(&token.token) {
                return Err(self.too_complex(*index));
            }
        }
        Ok(())
    }
}

/// How deep the tree of the tokens so far can be at most: a list element is as deep as its own
/// operators and keywords and the deepest parentheses in it together.
struct Depth {
    levels: Vec<Level>,
    /// Open parentheses and joins that wait for their ON.
    open: usize,
}

/// What stands between two parentheses.
#[derive(Default)]
struct Level {
    /// Operators and keywords of the current list element.
    chain: usize,
    /// Depth of the deepest parentheses in it.
    inner: usize,
    /// Depth of the deepest element before it.
    before: usize,
    /// Its joins that wait for their ON: `a JOIN b JOIN c ON … ON …` nests to the right.
    joins: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.before.max(self.chain + self.inner)
    }
}

impl Default for Depth {
    fn default() -> Depth {
        Depth {
            levels: vec![Level::default()],
            open: 0,
        }
    }
}

impl Depth {
    /// Counts `token`; false when it is one too many.
    fn allows(&mut self, token: &Token) -> bool {
        let is_outermost = self.levels.len() == 1;
        let Some(level) = self.levels.last_mut() else {
            return true;
        };
        match token {
            Token::LParen | Token::LBracket => {
                // Subscripts follow each other without an operator between them.
                level.chain += 1;
                self.open += 1;
                self.levels.push(Level::default());
            }
            Token::RParen | Token::RBracket if !is_outermost => {
                let inside = level.depth();
                self.open -= 1 + level.joins;
                self.levels.pop();
                if let Some(outer) = self.levels.last_mut() {
                    outer.inner = outer.inner.max(inside);
                }
            }
            Token::Comma => {
                self.open -= level.joins;
                *level = Level {
                    before: level.depth(),
                    ..Level::default()
                };
            }
            Token::Word(word) if word.keyword == Keyword::JOIN => {
                level.chain += 1;
                level.joins += 1;
                self.open += 1;
            }
            Token::Word(word) if matches!(word.keyword, Keyword::ON | Keyword::USING) => {
                level.chain += 1;
                let ended = level.joins.min(1);
                level.joins -= ended;
                self.open -= ended;
            }
            Token::Word(word) if word.keyword == Keyword::NoKeyword => {}
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Period => {}
            _ => level.chain += 1,
        }
        self.open <= OPEN_LIMIT
            && self
                .levels
                .last()
                .is_none_or(|level| level.depth() <= CHAIN_LIMIT)
    }
}

/// Separates `… at Line: 3, Column: 14`, with which the SQL parser ends messages.
fn split_location(message: &str) -> (&str, Option<Position>) {
    if let Some((text, place)) = message.rsplit_once(" at Line: ")
        && let Some((line, column)) = place.split_once(", Column: ")
        && let (Ok(line), Ok(column)) = (line.parse(), column.parse())
    {
        return (text, Some(Position { line, column }));
    }
    (message, None)
}
