//! What stands in FROM and GROUP BY and the SQL parser does not know, as what it knows. Marks are
//! names with a byte 0, which no other name has.
//!
//! | written | parsed |
//! |---|---|
//! | `JOIN b USING (x, y) AS u` | `JOIN b USING (x, y, "AS\0".u)` |
//! | `ROWS FROM (f(1), g(2))` | `"ROWS FROM\0"(f(1), g(2))` |
//! | `GROUP BY DISTINCT x, y` | `GROUP BY "DISTINCT\0", x, y` |

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::ast::{Expr, Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::tokens::Tokens;

const USING_ALIAS: &str = "AS\u{0}";
const ROWS_FROM: &str = "ROWS FROM\u{0}";
const DISTINCT: &str = "DISTINCT\u{0}";

/// Puts marks into the place of these clauses.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    let get = |at: usize| tokens.get_among(indexes, at);
    let word = |at: usize| tokens.word_among(indexes, at);
    let mark = |name: &str| Token::make_word(name, Some('"'));
    for at in 0..indexes.len() {
        match word(at) {
            "using" if *get(at + 1) == Token::LParen => {
                let is_name = |at: usize| matches!(get(at), Token::Word(_));
                let mut end = at + 2;
                while is_name(end) && *get(end + 1) == Token::Comma {
                    end += 2;
                }
                let is_list = is_name(end) && *get(end + 1) == Token::RParen;
                if is_list && word(end + 2) == "as" && is_name(end + 3) {
                    let alias = get(end + 3).clone();
                    let name = vec![Token::Comma, mark(USING_ALIAS), Token::Period, alias];
                    instead.insert(indexes[end + 1], [name, vec![Token::RParen]].concat());
                    instead.insert(indexes[end + 2], Vec::new());
                    instead.insert(indexes[end + 3], Vec::new());
                }
            }
            "rows" if word(at + 1) == "from" && *get(at + 2) == Token::LParen => {
                let before = at.checked_sub(1).map_or("", word);
                let is_item = matches!(before, "from" | "join" | "lateral" | "using")
                    || at > 0 && *get(at - 1) == Token::Comma;
                if is_item {
                    refuse_columns(tokens, &indexes[at + 3..])?;
                    instead.insert(indexes[at], vec![mark(ROWS_FROM)]);
                    instead.insert(indexes[at + 1], Vec::new());
                }
            }
            "group" if word(at + 1) == "by" => match word(at + 2) {
                "distinct" => {
                    instead.insert(indexes[at + 2], vec![mark(DISTINCT), Token::Comma]);
                }
                "all" => {
                    instead.insert(indexes[at + 2], Vec::new());
                }
                _ => {}
            },
            _ => {}
        }
    }
    Ok(())
}

/// # Errors
/// 0A000 where a function of ROWS FROM has a list of columns, `f() AS (a INT)`.
fn refuse_columns(tokens: &Tokens<'_>, indexes: &[usize]) -> Result<()> {
    let mut open = 0_usize;
    for index in indexes {
        match tokens.get(*index) {
            Token::LParen | Token::LBracket => open += 1,
            Token::RParen | Token::RBracket if open == 0 => return Ok(()),
            Token::RParen | Token::RBracket => open -= 1,
            _ if open == 0 && tokens.word(*index) == "as" => {
                return Err(tokens.unsupported(*index, "a list of columns in ROWS FROM"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The alias that stands behind the columns of USING, if this is it and no column.
pub(crate) fn using_alias(name: &ObjectName) -> Option<&Ident> {
    let [mark, alias] = name.0.as_slice() else {
        return None;
    };
    let is_mark = mark.as_ident()?.value == USING_ALIAS;
    alias.as_ident().filter(|_| is_mark)
}

/// Whether the arguments of what is called so are the functions of a ROWS FROM.
pub(crate) fn is_rows_from(name: &ObjectName) -> bool {
    let [mark] = name.0.as_slice() else {
        return false;
    };
    mark.as_ident().is_some_and(|mark| mark.value == ROWS_FROM)
}

/// The expressions of a GROUP BY, and whether it is GROUP BY DISTINCT.
pub(crate) fn grouped_by(items: &[Expr]) -> (&[Expr], bool) {
    match items {
        [Expr::Identifier(mark), items @ ..] if mark.value == DISTINCT => (items, true),
        _ => (items, false),
    }
}
