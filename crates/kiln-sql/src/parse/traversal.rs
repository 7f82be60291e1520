//! `SEARCH … SET …` and `CYCLE … SET … USING …` behind a query of WITH RECURSIVE, which the SQL
//! parser does not know. It gets them as the ORDER BY of that query, which has none itself: calls
//! of functions whose names have a byte 0.
//!
//! ```text
//! t AS (SELECT …) SEARCH DEPTH FIRST BY a, b SET c
//! t AS (SELECT … ORDER BY "SEARCH DEPTH\0"(a, b, c))
//! ```

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderByKind, Query,
};
use sqlparser::tokenizer::Token;

use super::tokens::Tokens;

const DEPTH: &str = "SEARCH DEPTH\u{0}";
const BREADTH: &str = "SEARCH BREADTH\u{0}";
const CYCLE: &str = "CYCLE\u{0}";

/// What stands behind a recursive query.
#[derive(Default)]
pub(crate) struct Traversal {
    pub search: Option<Search>,
    pub cycle: Option<Cycle>,
}

/// SEARCH.
pub(crate) struct Search {
    /// DEPTH FIRST, and not BREADTH FIRST.
    pub is_deep: bool,
    pub columns: Vec<Ident>,
    /// The column by which the rows can be sorted.
    pub set: Ident,
}

/// CYCLE.
pub(crate) struct Cycle {
    pub columns: Vec<Ident>,
    /// The column that says whether a row closes a cycle, and what it has then and else.
    pub mark: Ident,
    pub value: Expr,
    pub default: Expr,
    /// The column with the way to the row.
    pub path: Ident,
}

impl Traversal {
    /// That of a query of WITH, if it has one.
    pub fn of(query: &Query) -> Option<Traversal> {
        let OrderByKind::Expressions(order) = &query.order_by.as_ref()?.kind else {
            return None;
        };
        let mut found = Traversal::default();
        for by in order {
            let Expr::Function(call) = &by.expr else {
                return None;
            };
            let FunctionArguments::List(list) = &call.args else {
                return None;
            };
            let arguments = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            });
            let mut arguments = arguments.collect::<Option<Vec<Expr>>>()?;
            let name = call.name.0.first()?.as_ident()?.value.as_str();
            match name {
                DEPTH | BREADTH => {
                    let set = ident(arguments.pop()?)?;
                    found.search = Some(Search {
                        is_deep: name == DEPTH,
                        columns: arguments.into_iter().map(ident).collect::<Option<_>>()?,
                        set,
                    });
                }
                CYCLE => {
                    let path = ident(arguments.pop()?)?;
                    let (default, value) = (arguments.pop()?, arguments.pop()?);
                    let mark = ident(arguments.pop()?)?;
                    found.cycle = Some(Cycle {
                        columns: arguments.into_iter().map(ident).collect::<Option<_>>()?,
                        mark,
                        value,
                        default,
                        path,
                    });
                }
                _ => return None,
            }
        }
        Some(found)
    }
}

fn ident(expr: Expr) -> Option<Ident> {
    match expr {
        Expr::Identifier(ident) => Some(ident),
        _ => None,
    }
}

/// Puts ORDER BY into the place of these clauses.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    let get = |at: usize| tokens.get_among(indexes, at);
    for at in 1..indexes.len() {
        if *get(at - 1) != Token::RParen || instead.get(&indexes[at]).is_some_and(Vec::is_empty) {
            continue;
        }
        let mut reader = Reader {
            tokens,
            indexes,
            at,
        };
        let calls = [reader.search(), reader.cycle()];
        let calls: Vec<Vec<Token>> = calls.into_iter().flatten().collect();
        if calls.is_empty() {
            continue;
        }
        let mut order = vec![
            Token::make_word("order", None),
            Token::make_word("by", None),
        ];
        order.extend(calls.join(&Token::Comma));
        let close = indexes[at - 1];
        let closing = instead.remove(&close).unwrap_or(vec![Token::RParen]);
        order.extend(closing);
        instead.insert(close, order);
        for index in &indexes[at..reader.at] {
            instead.insert(*index, Vec::new());
        }
    }
    Ok(())
}

/// Reads clauses; each method stays where it is when its clause does not follow.
struct Reader<'t, 'a> {
    tokens: &'t Tokens<'a>,
    indexes: &'t [usize],
    at: usize,
}

impl Reader<'_, '_> {
    fn get(&self, at: usize) -> &Token {
        self.tokens.get_among(self.indexes, at)
    }

    fn word(&self, at: usize) -> &str {
        self.tokens.word_among(self.indexes, at)
    }

    /// Names with commas between them, and where they end.
    fn names(&self, mut at: usize) -> Option<(Vec<Token>, usize)> {
        let mut names = Vec::new();
        loop {
            names.push(self.name(at)?);
            if *self.get(at + 1) != Token::Comma {
                return Some((names, at + 1));
            }
            at += 2;
        }
    }

    fn name(&self, at: usize) -> Option<Token> {
        match self.get(at) {
            Token::Word(word) => Some(Token::make_word(&word.value, Some('"'))),
            _ => None,
        }
    }

    fn search(&mut self) -> Option<Vec<Token>> {
        let mark = match (self.word(self.at), self.word(self.at + 1)) {
            ("search", "depth") => DEPTH,
            ("search", "breadth") => BREADTH,
            _ => return None,
        };
        if (self.word(self.at + 2), self.word(self.at + 3)) != ("first", "by") {
            return None;
        }
        let (mut names, at) = self.names(self.at + 4)?;
        if self.word(at) != "set" {
            return None;
        }
        names.push(self.name(at + 1)?);
        self.at = at + 2;
        Some(call(mark, names.into_iter().map(|name| vec![name])))
    }

    fn cycle(&mut self) -> Option<Vec<Token>> {
        if self.word(self.at) != "cycle" {
            return None;
        }
        let (mut names, mut at) = self.names(self.at + 1)?;
        if self.word(at) != "set" {
            return None;
        }
        names.push(self.name(at + 1)?);
        at += 2;
        let mut values = [true, false].map(|value| {
            let word = if value { "true" } else { "false" };
            vec![Token::make_word(word, None)]
        });
        if self.word(at) == "to" {
            for (value, end) in values.iter_mut().zip(["default", "using"]) {
                let start = at + 1;
                at = (start..self.indexes.len()).find(|at| self.word(*at) == end)?;
                *value = (start..at).map(|at| self.get(at).clone()).collect();
            }
        }
        if self.word(at) != "using" {
            return None;
        }
        let path = self.name(at + 1)?;
        self.at = at + 2;
        let names = names.into_iter().map(|name| vec![name]);
        Some(call(CYCLE, names.chain(values).chain([vec![path]])))
    }
}

fn call(name: &str, arguments: impl Iterator<Item = Vec<Token>>) -> Vec<Token> {
    let arguments: Vec<Vec<Token>> = arguments.collect();
    let mut tokens = vec![Token::make_word(name, Some('"')), Token::LParen];
    tokens.extend(arguments.join(&Token::Comma));
    tokens.push(Token::RParen);
    tokens
}
