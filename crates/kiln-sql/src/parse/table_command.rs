//! `TABLE t`, which is short for `SELECT * FROM t`: the SQL parser knows it in few of the places
//! where a query may stand, and without the clauses of one.

use std::collections::BTreeMap;

use kiln_storage::error::Result;
use sqlparser::tokenizer::Token;

use super::reserved::is_reserved;
use super::tokens::Tokens;

/// Puts what stands for TABLE among some tokens of a statement into `instead`.
pub(super) fn rewrite(
    tokens: &Tokens<'_>,
    indexes: &[usize],
    instead: &mut BTreeMap<usize, Vec<Token>>,
) -> Result<()> {
    for index in commands(tokens, indexes) {
        let [select, from] = ["select", "from"].map(Token::make_keyword);
        instead.insert(index, vec![select, Token::Mul, from]);
    }
    Ok(())
}

/// The TABLEs that are queries among some tokens of a statement.
pub(super) fn commands<'t>(
    tokens: &'t Tokens<'_>,
    indexes: &'t [usize],
) -> impl Iterator<Item = usize> + 't {
    let is_name = |index: usize| match tokens.word(index) {
        "" => matches!(tokens.get(index), Token::Word(_)),
        word => word == "only" || !is_reserved(word),
    };
    let numbered = indexes.iter().enumerate();
    let found = numbered.filter(move |(at, index)| {
        tokens.word(**index) == "table"
            && indexes.get(at + 1).is_some_and(|next| is_name(*next))
            && is_before_query(tokens, indexes, *at)
    });
    found.map(|(_, index)| *index)
}

/// Whether a query may stand at a place.
pub(super) fn is_before_query(tokens: &Tokens<'_>, indexes: &[usize], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return true;
    };
    let word = |at: usize| tokens.word(indexes[at]);
    match (word(before), tokens.get(indexes[before])) {
        ("union" | "intersect" | "except" | "as", _) => true,
        ("all" | "distinct", _) => {
            before > 0 && matches!(word(before - 1), "union" | "intersect" | "except")
        }
        ("", Token::LParen) => true,
        // The rows of an INSERT.
        (_, Token::Word(_) | Token::RParen) => is_behind_insert(tokens, &indexes[..at]),
        _ => false,
    }
}

/// Whether these tokens are `INSERT INTO t [AS x] [(columns)] [OVERRIDING … VALUE]`, with a WITH
/// before.
fn is_behind_insert(tokens: &Tokens<'_>, indexes: &[usize]) -> bool {
    let mut depth = 0_usize;
    for (at, index) in indexes.iter().enumerate().rev() {
        match tokens.get(*index) {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            // What stands before it was looked at for that one.
            Token::Word(_) if tokens.word(*index) == "table" => return false,
            Token::Word(_) if depth == 0 => match tokens.word(*index) {
                "into" => return at > 0 && tokens.word(indexes[at - 1]) == "insert",
                "select" | "from" | "values" | "set" | "returning" => return false,
                _ => {}
            },
            Token::Period | Token::Word(_) | Token::Comma => {}
            _ if depth > 0 => {}
            _ => return false,
        }
    }
    false
}
