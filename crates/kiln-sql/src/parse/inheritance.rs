//! `ONLY t`, `ONLY (t)` and `t *`: which tables are meant of those that inherit from one. There is
//! no inheritance, so the SQL parser gets the table alone.

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::tokenizer::Token;

use super::reserved::is_reserved;
use super::table_command::is_before_query;
use super::tokens::Tokens;

/// Puts nothing into the place of such words among some tokens of a statement.
///
/// # Errors
/// 42601 for ONLY anywhere else.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    let mut levels = vec![Level::default()];
    // Where the name began that ends before the token at hand, if it is that of a table.
    let mut is_name_of_table = false;
    for (at, index) in indexes.iter().enumerate() {
        let words = Words {
            tokens,
            indexes,
            at,
        };
        let level = levels.last().copied().unwrap_or_default();
        let is_place = words.is_place_of_table(level);
        match tokens.get(*index) {
            Token::Word(_) if tokens.word(*index) == "only" => {
                let is_table = is_place && words.leave_out(instead);
                if !is_table && !words.is_other_only() {
                    return Err(tokens.syntax_error(*index));
                }
            }
            Token::Word(_) => {
                let continues = words.before(1) == &Token::Period && is_name_of_table;
                let is_name = continues || !is_reserved(tokens.word(*index));
                is_name_of_table = is_name && (continues || is_place);
            }
            Token::Period => {}
            Token::Mul => {
                if is_name_of_table && words.before(1) != &Token::Period {
                    instead.insert(*index, Vec::new());
                }
                is_name_of_table = false;
            }
            token => {
                is_name_of_table = false;
                match token {
                    Token::LParen | Token::LBracket => levels.push(Level::default()),
                    Token::RParen | Token::RBracket if levels.len() > 1 => {
                        levels.pop();
                    }
                    _ => {}
                }
            }
        }
        if let Some(level) = levels.last_mut() {
            level.go_on(&words);
        }
    }
    Ok(())
}

/// What the tokens since a parenthesis say of those that follow.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Whether SELECT, UPDATE or DELETE stands among them, so that a FROM is theirs.
    is_query: bool,
    /// Whether USING names a table, as in DELETE and MERGE.
    is_using: bool,
    /// Whether commas separate tables.
    is_list: bool,
}

impl Level {
    fn go_on(&mut self, words: &Words<'_, '_>) {
        match words.word(0) {
            "select" | "update" => {
                self.is_query = true;
                self.is_list = false;
            }
            "delete" => {
                self.is_query = true;
                self.is_using = true;
            }
            "merge" => self.is_using = true,
            "from" if words.word(1) != "distinct" => self.is_list = self.is_query,
            "using" => self.is_list |= self.is_using,
            "truncate" => self.is_list = true,
            "where" | "set" | "group" | "order" | "values" | "returning" | "window" | "having" => {
                self.is_list = false
            }
            _ => {}
        }
    }
}

/// The tokens around a place.
struct Words<'t, 'a> {
    tokens: &'t Tokens<'a>,
    indexes: &'t [usize],
    at: usize,
}

impl Words<'_, '_> {
    /// The token so many before the one at hand.
    fn before(&self, distance: usize) -> &Token {
        let at = self.at.checked_sub(distance);
        at.map_or(&Token::EOF, |at| self.tokens.get(self.indexes[at]))
    }

    /// The word so many tokens before the one at hand.
    fn word(&self, distance: usize) -> &str {
        let at = self.at.checked_sub(distance);
        at.map_or("", |at| self.tokens.word(self.indexes[at]))
    }

    /// Whether what stands here is a table of FROM, or what a statement changes.
    fn is_place_of_table(&self, level: Level) -> bool {
        match (self.word(1), self.before(1)) {
            ("join" | "update" | "truncate", _) => true,
            ("using", _) => level.is_using,
            ("from", _) => level.is_list && self.word(2) != "distinct",
            ("into", _) => self.word(2) == "merge",
            ("on", _) => self.is_index(),
            ("table", _) => {
                let before = self.at.saturating_sub(1);
                self.word(2) == "truncate" || is_before_query(self.tokens, self.indexes, before)
            }
            // Only where a table follows: another ONLY is refused.
            ("only", _) => self.word(2) != "as",
            (_, Token::Comma) => level.is_list,
            // A join in parentheses.
            (_, Token::LParen) => matches!(self.word(2), "from" | "join"),
            _ => false,
        }
    }

    /// Whether ON is that of CREATE INDEX.
    fn is_index(&self) -> bool {
        let word = |at: usize| self.indexes.get(at).map_or("", |at| self.tokens.word(*at));
        self.at < 12
            && word(0) == "create"
            && (word(1) == "index" || (word(1) == "unique" && word(2) == "index"))
    }

    /// Leaves ONLY out, also the parentheses of what it stands before; says whether that is a table.
    fn leave_out(&self, instead: &mut BTreeMap<usize, Vec<Token>>) -> bool {
        let at = |at: usize| self.indexes.get(at).copied().unwrap_or(usize::MAX);
        let token = |place: usize| self.tokens.get(at(place));
        match token(self.at + 1) {
            Token::Word(_) => {
                instead.insert(at(self.at), Vec::new());
                true
            }
            Token::LParen => {
                let is_name =
                    |place: &usize| matches!(token(*place), Token::Word(_) | Token::Period);
                let open = self.at + 1;
                let close = (open + 1..self.indexes.len()).find(|place| !is_name(place));
                let close = close.filter(|close| *close > open + 1);
                match close.filter(|close| *token(*close) == Token::RParen) {
                    Some(close) => {
                        let left_out = [self.at, open, close].map(|it| (at(it), Vec::new()));
                        instead.extend(left_out);
                        true
                    }
                    None => false,
                }
            }
            _ => false,
        }
    }

    /// Whether ONLY is that of FETCH FIRST … ROWS ONLY or READ ONLY, or a label.
    fn is_other_only(&self) -> bool {
        let is_word = matches!(self.word(1), "row" | "rows" | "read" | "as");
        is_word || *self.before(1) == Token::Period
    }
}
